// What the verifiers of roles, rings and products in flight refuse.

// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

func.func @none() {
  // expected-error @below {{'kvbuffer.warp_roles' op expected at least one producer warp, got 0}}
  kvbuffer.warp_roles producers(0, 24) {
  } consumers(8, 240) {
  }
  return
}

// -----

func.func @registers() {
  // expected-error @below {{'kvbuffer.warp_roles' op expected 24 to 256 registers in steps of 8, or 0, got 30}}
  kvbuffer.warp_roles producers(4, 30) {
  } consumers(8, 240) {
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
func.func @wrong_role(%ring: !kvbuffer.ring<#kbuf>, %n: index) {
  // expected-note @below {{the roles are here}}
  kvbuffer.warp_roles producers(4, 24) {
    // expected-error @below {{'kvbuffer.ring_wait' op is not allowed in producers: it belongs to the other role}}
    %ks = kvbuffer.ring_wait %ring[%n] : !kvbuffer.ring<#kbuf>
  } consumers(8, 240) {
  }
  return
}

// -----

func.func @arrives(%counters: memref<?xi32>, %n: index) {
  // expected-note @below {{the roles are here}}
  kvbuffer.warp_roles producers(4, 24) {
  } consumers(8, 240) {
    // expected-error @below {{'kvbuffer.arrive_last' op is not allowed in consumers: it takes all the warps}}
    %last = kvbuffer.arrive_last %counters[%n] of %n : memref<?xi32>
  }
  return
}

// -----

func.func @counter(%total: index) {
  // expected-note @below {{the roles are here}}
  kvbuffer.warp_roles producers(4, 24) {
  } consumers(8, 240) {
    // expected-error @below {{'kvbuffer.next_tile' op is not allowed in consumers: it belongs to the other role}}
    %t = kvbuffer.next_tile of %total
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
func.func @alloc() {
  // expected-note @below {{the roles are here}}
  kvbuffer.warp_roles producers(4, 24) {
  } consumers(8, 240) {
    // expected-error @below {{'kvbuffer.alloc' op is not allowed in consumers: it takes all the warps}}
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
func.func @tile(%tile: !kvbuffer.tile<32x16xbf16>, %ring: !kvbuffer.ring<#kbuf>, %n: index) {
  // expected-error @below {{'kvbuffer.ring_load' op expected a tile of 16 rows, cache_depth = 16 columns and elements 'bf16', got '!kvbuffer.tile<32x16xbf16>'}}
  kvbuffer.ring_load %tile into %ring[%n] : !kvbuffer.tile<32x16xbf16>, !kvbuffer.ring<#kbuf>
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 32, stages = 2>
func.func @shapes(%a: !kvbuffer.fragment<64x16xbf16, a>, %ks: !kvbuffer.staged<#kbuf>) {
  // expected-error @below {{'kvbuffer.mma_start' op cannot multiply '!kvbuffer.fragment<64x16xbf16, a>' by}}
  %s = kvbuffer.mma_start %a, %ks {transpose_b} : !kvbuffer.fragment<64x16xbf16, a>, !kvbuffer.staged<#kbuf> -> !kvbuffer.pending<64x16xf32>
  return
}

// -----

func.func @younger(%p: !kvbuffer.pending<64x16xf32>) {
  // expected-error @below {{'kvbuffer.mma_wait' op expected younger of at least 0, got -1}}
  %s = kvbuffer.mma_wait %p {younger = -1 : i64} : !kvbuffer.pending<64x16xf32>
  return
}

// -----

func.func @size() {
  // expected-error @below {{'kvbuffer.launch_size' op expected the name of a size}}
  %n = kvbuffer.launch_size ""
  return
}

// -----

func.func @results(%a: i64, %b: i64) {
  // expected-error @below {{'kvbuffer.wgmma' op expected results of type 'vector<4xf32>', got 'vector<48xf32>'}}
  %r:2 = kvbuffer.wgmma a_desc(%a) b(%b) {a_steps = array<i64: 0>, b_steps = array<i64: 0>, element = bf16, n = 16 : i64} : vector<48xf32>, vector<48xf32>
  return
}

// -----

func.func @words(%a: vector<4xbf16>, %b: i64) {
  // expected-error @below {{'kvbuffer.wgmma' op expected words of type 'vector<2xbf16>' of a, got 'vector<4xbf16>'}}
  %r = kvbuffer.wgmma a(%a, %a, %a, %a : vector<4xbf16>, vector<4xbf16>, vector<4xbf16>, vector<4xbf16>) b(%b) {a_steps = array<i64>, b_steps = array<i64: 0>, element = bf16, n = 8 : i64} : vector<4xf32>
  return
}

// -----

func.func @awaited(%a: vector<8xf32>) {
  // expected-error @below {{'kvbuffer.wgmma_wait' op expected results of type 'vector<4xf32>', got 'vector<8xf32>'}}
  %r = kvbuffer.wgmma_wait %a {pending = 0 : i64} : vector<8xf32>
  return
}

// -----

// Groups are of consumers.
func.func @no_groups(%i: index) {
  // expected-error @below {{'kvbuffer.key_range' op has per_group outside of the consumers of kvbuffer.warp_roles, whose groups it speaks of}}
  %r:4 = kvbuffer.key_range %i of %i keys %i {BM = 128, mask = #kvbuffer.mask<causal = true>, per_group}
  return
}

// -----

func.func @of_both(%i: index) {
  kvbuffer.warp_roles producers(4, 40) {
  } consumers(8, 232) {
    // expected-error @below {{'kvbuffer.key_range' op has descending and per_group: the first asks for the second}}
    %r:4 = kvbuffer.key_range %i of %i keys %i {BM = 128, mask = #kvbuffer.mask<causal = true>, descending, per_group}
  }
  return
}

// -----

func.func @sign_of_producers(%m: !kvbuffer.fragment<64x1xf32, row>) {
  // expected-note @below {{the roles are here}}
  kvbuffer.warp_roles producers(4, 0) {
    // expected-error @below {{'kvbuffer.any_negative' op is not allowed in producers: it belongs to the other role}}
    %some = kvbuffer.any_negative %m : !kvbuffer.fragment<64x1xf32, row>
  } consumers(4, 0) {
  }
  return
}
