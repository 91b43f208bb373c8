// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

func.func @expression() {
  // expected-error @below {{'kvbuffer.launch_value' op expected an integer, the name of a size or #kvbuffer.size<...>, got {power = [2, "batch"]}}}
  %n = kvbuffer.launch_value {power = [2, "batch"]}
  return
}

// -----

func.func @indices(%arrived: memref<?x2xi32>, %n: index) {
  // expected-error @below {{'kvbuffer.arrive_last' op expected 2 indices, got 1}}
  %last = kvbuffer.arrive_last %arrived[%n] of %n : memref<?x2xi32>
  return
}

// -----

func.func @counters(%arrived: memref<?x2xi32>, %n: index, %wait: i1) {
  // expected-error @below {{'kvbuffer.after_all' op expected a tensor [.., 3] of counters, got 'memref<?x2xi32>'}}
  kvbuffer.after_all %arrived[%n] of %n shares(%n) patient(%wait) {
  ^bb0(%share: index):
  } : memref<?x2xi32>
  return
}

// -----

func.func @indices_of_three(%arrived: memref<?x3xi32>, %n: index, %wait: i1) {
  // expected-error @below {{'kvbuffer.after_all' op expected 1 indices, got 2}}
  kvbuffer.after_all %arrived[%n, %n] of %n shares(%n) patient(%wait) {
  ^bb0(%share: index):
  } : memref<?x3xi32>
  return
}

// -----

func.func @share(%arrived: memref<?x3xi32>, %n: index, %wait: i1) {
  // expected-error @below {{'kvbuffer.after_all' op expected a region of one index, the share's number}}
  kvbuffer.after_all %arrived[%n] of %n shares(%n) patient(%wait) {
  ^bb0(%share: i32):
  } : memref<?x3xi32>
  return
}

// -----

func.func @room(%parts: memref<?x4x128xf32>, %i: index) {
  // expected-error @below {{'kvbuffer.partial_load' op expected a tensor [.., rows, width] with at most 16 rows and an even width of at least 130, got 'memref<?x4x128xf32>'}}
  %a, %m, %l = kvbuffer.partial_load %parts[%i] valid(%i) : memref<?x4x128xf32> -> !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>
  return
}

// -----

func.func @order(%parts: memref<?x4x132xf32>, %i: index) {
  // expected-error @below {{'kvbuffer.partial_load' op expected columns with each of the powers of two below one that divides the 128 columns once, got [2, 2]}}
  %a, %m, %l = kvbuffer.partial_load %parts[%i] valid(%i) {columns = array<i64: 2, 2>} : memref<?x4x132xf32> -> !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>
  return
}

// -----

func.func @order_of_more(%parts: memref<?x4x36xf32>, %i: index) {
  // expected-error @below {{'kvbuffer.partial_join' op expected columns with each of the powers of two below one that divides the 24 columns once, got [8, 1, 2, 4]}}
  %a, %m, %l = kvbuffer.partial_join %parts[%i] of %i step 1 valid(%i) {columns = array<i64: 8, 1, 2, 4>, scale = 1.0 : f32} : memref<?x4x36xf32> -> !kvbuffer.fragment<16x24xf32, acc>, !kvbuffer.fragment<16x1xf32, row>
  return
}

// -----

func.func @step(%parts: memref<?x4x132xf32>, %i: index) {
  // expected-error @below {{'kvbuffer.partial_join' op expected a step from 1 to 1048576, got 0}}
  %a, %m, %l = kvbuffer.partial_join %parts[%i] of %i step 0 valid(%i) {scale = 1.0 : f32} : memref<?x4x132xf32> -> !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>
  return
}

// -----

func.func @along_nothing(%parts: memref<4x132xf32>, %i: index) {
  // expected-error @below {{'kvbuffer.partial_join' op expected an index, along which partial results lie}}
  %a, %m, %l = kvbuffer.partial_join %parts[] of %i step 1 valid(%i) {scale = 1.0 : f32} : memref<4x132xf32> -> !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>
  return
}

// -----

func.func @join_scale(%parts: memref<?x4x132xf32>, %i: index) {
  // expected-error @below {{'kvbuffer.partial_join' op expected a finite scale above 0}}
  %a, %m, %l = kvbuffer.partial_join %parts[%i] of %i step 1 valid(%i) {scale = -1.0 : f32} : memref<?x4x132xf32> -> !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>
  return
}

// -----

func.func @roles(%parts: memref<?x4x132xf32>, %i: index, %a: !kvbuffer.fragment<16x128xf32, acc>) {
  // expected-error @below {{'kvbuffer.partial_store' op expected an accumulator of f32 and a row value for each of its rows, got '!kvbuffer.fragment<16x128xf32, acc>' and '!kvbuffer.fragment<16x128xf32, acc>'}}
  kvbuffer.partial_store %a, %a, %a into %parts[%i] valid(%i) : !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x128xf32, acc>, memref<?x4x132xf32>
  return
}

// -----

func.func @scale(%a: !kvbuffer.fragment<16x128xf32, acc>, %m: !kvbuffer.fragment<16x1xf32, row>) {
  // expected-error @below {{'kvbuffer.softmax_merge' op expected a finite scale above 0}}
  %b, %n, %l = kvbuffer.softmax_merge %a, %m, %m with %a, %m, %m {scale = 0.0 : f32} : !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>
  return
}

// -----

func.func @no_rows(%sink: memref<8xf32>, %i: index, %a: !kvbuffer.fragment<16x128xf32, acc>, %m: !kvbuffer.fragment<16x1xf32, row>) {
  // expected-error @below {{'kvbuffer.softmax_sink' op expected a group of 1 row or more, got 0}}
  %b, %n, %l = kvbuffer.softmax_sink %a, %m, %m scores(%sink[%i]) {scale = 1.0 : f32, group = 0 : i64} : !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>, memref<8xf32>
  return
}

// -----

func.func @group_without_pages(%q: memref<?x?x8x128xbf16>, %b: index) {
  // expected-error @below {{'kvbuffer.dram_tile' op has a group of 4 rows: expected page_size = 4 on the tile}}
  %t = kvbuffer.dram_tile %q[%b, %b, %b] valid(%b) {group = 4 : i64} : memref<?x?x8x128xbf16> -> !kvbuffer.tile<16x128xbf16>
  return
}

// -----

func.func @negative_group(%b: index) {
  // expected-error @below {{'kvbuffer.key_range' op expected a group of 1 to 65536 rows, got -1}}
  %lo, %hi, %flo, %fhi = kvbuffer.key_range %b of %b keys %b {BM = 16 : i64, group = -1 : i64, mask = #kvbuffer.mask<causal = true>}
  return
}

// -----

func.func @rank(%m: !kvbuffer.fragment<16x1xf32, row>, %lse: memref<?xf32>, %b: index) {
  // expected-error @below {{'kvbuffer.row_store' op stores groups of rows along two dimensions; expected a tensor of rank 2 or more, got 'memref<?xf32>'}}
  kvbuffer.row_store %m, %lse[%b] valid(%b) {group = 4 : i64} : !kvbuffer.fragment<16x1xf32, row>, memref<?xf32>
  return
}

// -----

func.func @item(%i: index) {
  // expected-error @below {{'kvbuffer.share_work' op expected a region of one index, the item's number}}
  %size, %first, %start, %end = kvbuffer.share_work %i of %i over %i least %i {
  ^bb0(%a: index, %b: index):
    kvbuffer.yield %a : index
  }
  return
}

// -----

func.func @units(%i: index, %x: f32) {
  // expected-error @below {{'kvbuffer.share_work' op expected a region that ends with kvbuffer.yield of an index, the item's units}}
  %size, %first, %start, %end = kvbuffer.share_work %i of %i over %i least %i {
  ^bb0(%a: index):
    kvbuffer.yield %x : f32
  }
  return
}

// -----

func.func @pairs(%i: index, %c: i1) {
  // expected-note @below {{the region is here}}
  %size, %first, %start, %end, %other, %keep = kvbuffer.share_pairs %i of %i over %i least %i pause %i {
  ^bb0(%a: index):
    // expected-error @below {{'scf.if' op is not allowed in a kvbuffer.share_pairs: it runs for several items side by side, and cannot branch}}
    %n = scf.if %c -> (index) {
      scf.yield %a : index
    } else {
      scf.yield %i : index
    }
    kvbuffer.yield %n : index
  }
  return
}

// -----

func.func @pair(%i: index) {
  // expected-error @below {{'kvbuffer.share_pairs' op expected a region of one index, the item's number}}
  %size, %first, %start, %end, %other, %keep = kvbuffer.share_pairs %i of %i over %i least %i pause %i {
  ^bb0(%a: index, %b: index):
    kvbuffer.yield %a : index
  }
  return
}

// -----

func.func @branches(%i: index, %c: i1) {
  // expected-note @below {{the region is here}}
  %size, %first, %start, %end = kvbuffer.share_work %i of %i over %i least %i {
  ^bb0(%a: index):
    // expected-error @below {{'scf.if' op is not allowed in a kvbuffer.share_work: it runs for several items side by side, and cannot branch}}
    %n = scf.if %c -> (index) {
      scf.yield %a : index
    } else {
      scf.yield %i : index
    }
    kvbuffer.yield %n : index
  }
  return
}

// -----

func.func @writes(%i: index, %m: memref<?xi32>, %x: i32) {
  // expected-note @below {{the region is here}}
  %size, %first, %start, %end = kvbuffer.share_work %i of %i over %i least %i {
  ^bb0(%a: index):
    // expected-error @below {{'memref.store' op is not allowed in a kvbuffer.share_work: it may only read memory}}
    memref.store %x, %m[%a] : memref<?xi32>
    kvbuffer.yield %a : index
  }
  return
}

// -----

func.func @tiles(%i: index) {
  // expected-note @below {{the region is here}}
  %size, %first, %start, %end = kvbuffer.share_work %i of %i over %i least %i {
  ^bb0(%a: index):
    // expected-error @below {{'kvbuffer.fragment_fill' op is not allowed in a kvbuffer.share_work: of this dialect's ops only those of lengths are}}
    %f = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x16xf32, acc>
    kvbuffer.yield %a : index
  }
  return
}
