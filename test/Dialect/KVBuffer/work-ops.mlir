// Ops of work that blocks share print as they are read.
// RUN: kvbuf-opt %s | kvbuf-opt | FileCheck %s

!acc = !kvbuffer.fragment<16x128xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>

// CHECK-LABEL: func @work
func.func @work(%parts: memref<?x4x132xf32>, %arrived: memref<?x2xi32>, %sinks: memref<8xf32>,
                %many: memref<?x32x132xf32>, %together: memref<?x3xi32>,
                %i: index, %n: index, %acc: !acc, %m: !row, %l: !row) {
  // CHECK: kvbuffer.launch_value max(1, floordiv(sms, batch))
  %runs = kvbuffer.launch_value max(1, floordiv(sms, batch))
  // CHECK: kvbuffer.partial_store %{{.*}}, %{{.*}}, %{{.*}} into %{{.*}}[%{{.*}}] valid(%{{.*}}) : <16x128xf32, acc>, <16x1xf32, row>, memref<?x4x132xf32>
  kvbuffer.partial_store %acc, %m, %l into %parts[%i] valid(%n) : !acc, !row, memref<?x4x132xf32>
  // CHECK: %last = kvbuffer.arrive_last %{{.*}}[%{{.*}}, %{{.*}}] of %{{.*}} : memref<?x2xi32>
  %last = kvbuffer.arrive_last %arrived[%i, %i] of %runs : memref<?x2xi32>
  // CHECK: kvbuffer.partial_load %{{.*}}[%{{.*}}] valid(%{{.*}}) : memref<?x4x132xf32> -> <16x128xf32, acc>, <16x1xf32, row>
  %a1, %m1, %l1 = kvbuffer.partial_load %parts[%i] valid(%n) : memref<?x4x132xf32> -> !acc, !row
  // CHECK: kvbuffer.partial_join %{{.*}}[%{{.*}}] of %{{.*}} step 4 valid(%{{.*}}) {columns = array<i64: 2, 1>, scale = 1.250000e-01 : f32} : memref<?x4x132xf32> -> <16x128xf32, acc>, <16x1xf32, row>
  %a4, %m4, %l4 = kvbuffer.partial_join %parts[%i] of %n step 4 valid(%n) {columns = array<i64: 2, 1>, scale = 0.125 : f32} : memref<?x4x132xf32> -> !acc, !row
  // CHECK: kvbuffer.softmax_merge %{{.*}}, %{{.*}}, %{{.*}} with %{{.*}}, %{{.*}}, %{{.*}} {scale = 5.000000e-01 : f32}
  %a2, %m2, %l2 = kvbuffer.softmax_merge %acc, %m, %l with %a1, %m1, %l1 {scale = 0.5 : f32} : !acc, !row
  // CHECK: kvbuffer.softmax_sink %{{.*}}, %{{.*}}, %{{.*}} scores(%{{.*}}[%{{.*}}]) {group = 4 : i64, scale = 5.000000e-01 : f32}
  %a3, %m3, %l3 = kvbuffer.softmax_sink %a2, %m2, %l2 scores(%sinks[%i]) {scale = 0.5 : f32, group = 4 : i64}
    : !acc, !row, memref<8xf32>
  // CHECK: kvbuffer.partial_join %{{.*}}[%{{.*}}] of %{{.*}} step 1 valid(%{{.*}}) from %{{.*}} {scale = 1.250000e-01 : f32} : memref<?x32x132xf32>
  %a5, %m5, %l5 = kvbuffer.partial_join %many[%i] of %n step 1 valid(%n) from %i {scale = 0.125 : f32} : memref<?x32x132xf32> -> !acc, !row
  // CHECK: kvbuffer.after_all %{{.*}}[%{{.*}}] of %{{.*}} shares(%{{.*}}) patient(%{{.*}}) {
  // CHECK-NEXT: ^bb0(%{{.*}}: index):
  // CHECK: } : memref<?x3xi32>
  kvbuffer.after_all %together[%i] of %runs shares(%n) patient(%last) {
  ^bb0(%share: index):
  } : memref<?x3xi32>
  return
}

!paged = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
!tokens = memref<?x1x2x64xbf16>

// CHECK-LABEL: func @tokens
func.func @tokens(%k: !paged, %v: !paged, %new: !tokens, %cos: memref<?x32xf32>, %i: index) {
  // CHECK: kvbuffer.append_tokens[%[[I:.*]], %[[I]]] from %[[I]] upto %[[I]] k(%{{.*}} : memref<?x1x2x64xbf16>) to(%{{.*}} : <paged, {{.*}}>){{$}}
  kvbuffer.append_tokens[%i, %i] from %i upto %i k(%new : !tokens) to(%k : !paged)
  // CHECK: kvbuffer.append_tokens[{{.*}}] from {{.*}} v(%{{.*}} : memref<?x1x2x64xbf16>) to(%{{.*}} : !kvbuffer.cache<{{.*}}>) rope(%{{.*}}, %{{.*}} : memref<?x32xf32>, memref<?x32xf32>) {interleaved}
  kvbuffer.append_tokens[%i, %i] from %i upto %i k(%new : !tokens) to(%k : !paged)
    v(%new : !tokens) to(%v : !paged) rope(%cos, %cos : memref<?x32xf32>, memref<?x32xf32>) {interleaved}
  return
}

// CHECK-LABEL: func @shares
func.func @shares(%k: !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>, %w: index, %n: index) {
  %c1 = arith.constant 1 : index
  // CHECK: %size, %first, %start, %end = kvbuffer.share_work %{{.*}} of %{{.*}} over %{{.*}} least %{{.*}} {
  // CHECK-NEXT: ^bb0(%[[I:.*]]: index):
  // CHECK-NEXT:   %[[KEYS:.*]] = kvbuffer.cache.num_keys %{{.*}}[%[[I]]] new(%{{.*}})
  // CHECK-NEXT:   kvbuffer.yield %[[KEYS]] : index
  // CHECK-NEXT: }
  %size, %first, %start, %end = kvbuffer.share_work %w of %n over %n least %c1 {
  ^bb0(%i: index):
    %keys = kvbuffer.cache.num_keys %k[%i] new(%c1) : !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
    kvbuffer.yield %keys : index
  }
  return
}

// CHECK-LABEL: func @pairs
func.func @pairs(%k: !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>, %w: index, %n: index) {
  %c1 = arith.constant 1 : index
  // CHECK: %size, %first, %start, %end, %other, %keep = kvbuffer.share_pairs %{{.*}} of %{{.*}} over %{{.*}} least %{{.*}} pause %{{.*}} {
  // CHECK-NEXT: ^bb0(%[[I:.*]]: index):
  // CHECK-NEXT:   %[[KEYS:.*]] = kvbuffer.cache.num_keys %{{.*}}[%[[I]]] new(%{{.*}})
  // CHECK-NEXT:   kvbuffer.yield %[[KEYS]] : index
  // CHECK-NEXT: }
  %size, %first, %start, %end, %other, %keep = kvbuffer.share_pairs %w of %n over %n least %c1 pause %c1 {
  ^bb0(%i: index):
    %keys = kvbuffer.cache.num_keys %k[%i] new(%c1) : !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
    kvbuffer.yield %keys : index
  }
  return
}

// CHECK-LABEL: func @behind
func.func @behind(%arrived: memref<?xi32>, %n: index) {
  // CHECK: kvbuffer.arrive_last %{{.*}}[%{{.*}}] of %{{.*}} if_last : memref<?xi32>
  %last = kvbuffer.arrive_last %arrived[%n] of %n if_last : memref<?xi32>
  return
}

// CHECK-LABEL: func @groups
func.func @groups(%q: memref<?x?x8x128xbf16>, %lse: memref<?x8x?xf32>, %b: index, %s: !kvbuffer.fragment<16x32xf32, acc>, %m: !row) {
  // CHECK: kvbuffer.dram_tile {{.*}} {group = 4 : i64} : memref<?x?x8x128xbf16> -> <16x128xbf16, page_size = 4>
  %t = kvbuffer.dram_tile %q[%b, %b, %b] valid(%b) {group = 4 : i64} : memref<?x?x8x128xbf16> -> !kvbuffer.tile<16x128xbf16, page_size = 4>
  // A group may be a whole tile.
  // CHECK: page_size = 16>
  %u = kvbuffer.dram_tile %q[%b, %b, %b] valid(%b) {group = 16 : i64} : memref<?x?x8x128xbf16> -> !kvbuffer.tile<16x128xbf16, page_size = 16>
  // CHECK: kvbuffer.key_range {{.*}} {BM = 16 : i64, group = 4 : i64, mask = #kvbuffer.mask<causal = true>}
  %lo, %hi, %flo, %fhi = kvbuffer.key_range %b of %b keys %b {BM = 16 : i64, group = 4 : i64, mask = #kvbuffer.mask<causal = true>}
  // CHECK: kvbuffer.mask {{.*}} {group = 4 : i64, mask = #kvbuffer.mask<causal = true>}
  %h = kvbuffer.mask %s rows(%b, %b) keys(%b, %b) {group = 4 : i64, mask = #kvbuffer.mask<causal = true>} : !kvbuffer.fragment<16x32xf32, acc>
  // CHECK: kvbuffer.row_store {{.*}} {group = 4 : i64}
  kvbuffer.row_store %m, %lse[%b, %b, %b] valid(%b) {group = 4 : i64} : !row, memref<?x8x?xf32>
  return
}
