// The scheduled form of examples/prefill.mlir: one tile of queries a block, K and
// V in rings of their own, products in flight beside the softmax. Parses, keeps to
// the phase and prints as it stands.

// RUN: kvbuf-opt %s | kvbuf-opt | FileCheck %s

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 128, WN = 128, BK = 64, num_threads = 256, depth = 128, kv_num_heads = 16, stages = 2>
#qbuf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 128, WN = 16, BK = 64, num_threads = 256, depth = 128, kv_num_heads = 16, stages = 1>
#schedule = #kvbuffer.schedule<BM = 128, BN = 128, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], producers = 4, producer_registers = 24, consumer_registers = 240, overlap_products = true>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 128, WN = 128, BK = 64, num_threads = 256, depth = 128, kv_num_heads = 16, stages = 2>
!qo = memref<?x?x16x128xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 16, head_size = 128>

module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @prefill_module {
    // CHECK-LABEL: gpu.func @prefill
    gpu.func @prefill(%q: !qo {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}, %v: !kv {kvbuffer.name = "v"}, %o: !qo {kvbuffer.name = "o"}) kernel attributes {
        known_block_size = array<i32: 384, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>,
        kvbuffer.problem = #kvbuffer.problem<cache = "dense", causal = true, dtype = "bf16", head_size = 128, heads = 16, kv_heads = 16, lse = false, op = "attention", query = "dense", scale = 0.088388347648318433, sink = false, softcap = 0.000000e+00, window_left = -1, window_right = -1>,
        kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c128 = arith.constant 128 : index
      %qbuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %vbuf = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
      %qring = kvbuffer.ring %qbuf from @producers to [@consumers] : !kvbuffer.buffer<#qbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      %vring = kvbuffer.ring %vbuf from @producers to [@consumers] : !kvbuffer.buffer<#vbuf>
      // CHECK: kvbuffer.teams {
      kvbuffer.teams {
        // CHECK: kvbuffer.team @consumers warps(8) registers(240) {
        kvbuffer.team @consumers warps(8) registers(240) {
          %x = gpu.block_id x
          %head = gpu.block_id y
          %batch = gpu.block_id z
          %tiles = gpu.grid_dim x
          %last = arith.subi %tiles, %c1 : index
          %index = arith.subi %last, %x : index
          %row = arith.muli %index, %c128 : index
          %queries = memref.dim %q, %c1 : !qo
          %active = arith.cmpi slt, %row, %queries : index
          scf.if %active {
            %keys = kvbuffer.cache.num_keys %k[%batch] new(%queries) : !kv
            %lo, %hi, %flo, %fhi = kvbuffer.key_range %row of %queries keys %keys {BM = 128, mask = #kvbuffer.mask<causal = true>}
            %top = arith.maxsi %hi, %c0 : index
            %end = arith.ceildivui %top, %c128 : index
            %bottom = arith.maxsi %lo, %c0 : index
            %begin = arith.divui %bottom, %c128 : index
            %count = arith.subi %end, %begin : index
            %full = arith.maxsi %fhi, %c0 : index
            %whole = arith.divui %full, %c128 : index
            %edge = arith.subi %end, %whole : index
            %left = arith.subi %queries, %row : index
            %qs = kvbuffer.ring_wait %qring[%c0] : !kvbuffer.ring<#qbuf>
            %acc0 = kvbuffer.fragment_fill 0.000000e+00 : !kvbuffer.fragment<128x128xf32, acc>
            %m0 = kvbuffer.fragment_fill 0xFF800000 : !kvbuffer.fragment<128x1xf32, row>
            %l0 = kvbuffer.fragment_fill 0.000000e+00 : !kvbuffer.fragment<128x1xf32, row>
            %any = arith.cmpi slt, %c0, %count : index
            %r:3 = scf.if %any -> (!kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row>, !kvbuffer.fragment<128x1xf32, row>) {
              // S_0 and its softmax. A mask is right for every tile.
              %end1 = arith.subi %end, %c1 : index
              %key0 = arith.muli %end1, %c128 : index
              %ks0 = kvbuffer.ring_wait %kring[%c0] : !kvbuffer.ring<#kbuf>
              %f0 = kvbuffer.mma_start %qs, %ks0 {transpose_b} : !kvbuffer.staged<#qbuf>, !kvbuffer.staged<#kbuf> -> !kvbuffer.pending<128x128xf32>
              %s0 = kvbuffer.mma_wait %f0 {younger = 0 : i64} : !kvbuffer.pending<128x128xf32>
              kvbuffer.ring_release %kring[%c0] : !kvbuffer.ring<#kbuf>
              %h0 = kvbuffer.mask %s0 rows(%row, %queries) keys(%key0, %keys) {mask = #kvbuffer.mask<causal = true>} : !kvbuffer.fragment<128x128xf32, acc>
              %p1, %m1, %l1, %r1 = kvbuffer.online_softmax %h0, %m0, %l0 {masked, scale = 0.0883883461 : f32} : !kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row> -> !kvbuffer.fragment<128x128xbf16, a>
              // CHECK: scf.for
              %loop:4 = scf.for %i = %c1 to %count step %c1 iter_args(%acc = %acc0, %m = %m1, %l = %l1, %p = %p1) -> (!kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row>, !kvbuffer.fragment<128x1xf32, row>, !kvbuffer.fragment<128x128xbf16, a>) {
                %j = arith.subi %i, %c1 : index
                // CHECK: kvbuffer.ring_wait
                // CHECK: kvbuffer.mma_start
                %ks = kvbuffer.ring_wait %kring[%i] : !kvbuffer.ring<#kbuf>
                %sf = kvbuffer.mma_start %qs, %ks {transpose_b} : !kvbuffer.staged<#qbuf>, !kvbuffer.staged<#kbuf> -> !kvbuffer.pending<128x128xf32>
                // CHECK: kvbuffer.ring_wait
                // CHECK: kvbuffer.mma_start
                %vs = kvbuffer.ring_wait %vring[%j] : !kvbuffer.ring<#vbuf>
                %of = kvbuffer.mma_start %p, %vs, %acc : !kvbuffer.fragment<128x128xf32, acc> : !kvbuffer.fragment<128x128xbf16, a>, !kvbuffer.staged<#vbuf> -> !kvbuffer.pending<128x128xf32>
                // CHECK: kvbuffer.mma_wait
                // CHECK-SAME: younger = 1
                %s = kvbuffer.mma_wait %sf {younger = 1 : i64} : !kvbuffer.pending<128x128xf32>
                kvbuffer.ring_release %kring[%i] : !kvbuffer.ring<#kbuf>
                %masked = arith.cmpi slt, %i, %edge : index
                %h = scf.if %masked -> (!kvbuffer.fragment<128x128xf32, acc>) {
                  %back = arith.subi %end1, %i : index
                  %key = arith.muli %back, %c128 : index
                  %hidden = kvbuffer.mask %s rows(%row, %queries) keys(%key, %keys) {mask = #kvbuffer.mask<causal = true>} : !kvbuffer.fragment<128x128xf32, acc>
                  scf.yield %hidden : !kvbuffer.fragment<128x128xf32, acc>
                } else {
                  scf.yield %s : !kvbuffer.fragment<128x128xf32, acc>
                }
                %p2, %m2, %l2, %r2 = kvbuffer.online_softmax %h, %m, %l {masked, scale = 0.0883883461 : f32} : !kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row> -> !kvbuffer.fragment<128x128xbf16, a>
                // CHECK: kvbuffer.mma_wait
                // CHECK-SAME: younger = 0
                // CHECK: kvbuffer.rescale
                %done = kvbuffer.mma_wait %of {younger = 0 : i64} : !kvbuffer.pending<128x128xf32>
                kvbuffer.ring_release %vring[%j] : !kvbuffer.ring<#vbuf>
                %scaled = kvbuffer.rescale %done, %r2 : !kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
                scf.yield %scaled, %m2, %l2, %p2 : !kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row>, !kvbuffer.fragment<128x1xf32, row>, !kvbuffer.fragment<128x128xbf16, a>
              }
              // No score is left to compute.
              kvbuffer.ring_release %qring[%c0] : !kvbuffer.ring<#qbuf>
              %n = arith.subi %count, %c1 : index
              %vs = kvbuffer.ring_wait %vring[%n] : !kvbuffer.ring<#vbuf>
              %of = kvbuffer.mma_start %loop#3, %vs, %loop#0 : !kvbuffer.fragment<128x128xf32, acc> : !kvbuffer.fragment<128x128xbf16, a>, !kvbuffer.staged<#vbuf> -> !kvbuffer.pending<128x128xf32>
              %done = kvbuffer.mma_wait %of {younger = 0 : i64} : !kvbuffer.pending<128x128xf32>
              kvbuffer.ring_release %vring[%n] : !kvbuffer.ring<#vbuf>
              scf.yield %done, %loop#1, %loop#2 : !kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row>, !kvbuffer.fragment<128x1xf32, row>
            } else {
              kvbuffer.ring_release %qring[%c0] : !kvbuffer.ring<#qbuf>
              scf.yield %acc0, %m0, %l0 : !kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row>, !kvbuffer.fragment<128x1xf32, row>
            }
            %result, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 0.0883883461 : f32} : !kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
            %rounded = kvbuffer.fragment_convert %result : !kvbuffer.fragment<128x128xf32, acc> -> !kvbuffer.fragment<128x128xbf16, acc>
            %otile = kvbuffer.dram_tile %o[%batch, %row, %head] valid(%left) : !qo -> !kvbuffer.tile<128x128xbf16>
            kvbuffer.fragment_store %rounded, %otile : !kvbuffer.fragment<128x128xbf16, acc>, !kvbuffer.tile<128x128xbf16>
          }
        }
        kvbuffer.team @producers warps(4) registers(24) {
          %x = gpu.block_id x
          %head = gpu.block_id y
          %batch = gpu.block_id z
          %tiles = gpu.grid_dim x
          %last = arith.subi %tiles, %c1 : index
          %index = arith.subi %last, %x : index
          %row = arith.muli %index, %c128 : index
          %queries = memref.dim %q, %c1 : !qo
          %active = arith.cmpi slt, %row, %queries : index
          scf.if %active {
            %keys = kvbuffer.cache.num_keys %k[%batch] new(%queries) : !kv
            %lo, %hi, %flo, %fhi = kvbuffer.key_range %row of %queries keys %keys {BM = 128, mask = #kvbuffer.mask<causal = true>}
            %top = arith.maxsi %hi, %c0 : index
            %end = arith.ceildivui %top, %c128 : index
            %bottom = arith.maxsi %lo, %c0 : index
            %begin = arith.divui %bottom, %c128 : index
            %count = arith.subi %end, %begin : index
            %left = arith.subi %queries, %row : index
            %qtile = kvbuffer.dram_tile %q[%batch, %row, %head] valid(%left) : !qo -> !kvbuffer.tile<128x128xbf16>
            kvbuffer.ring_load %qtile into %qring[%c0] : !kvbuffer.tile<128x128xbf16>, !kvbuffer.ring<#qbuf>
            %any = arith.cmpi slt, %c0, %count : index
            scf.if %any {
              %end1 = arith.subi %end, %c1 : index
              %key0 = arith.muli %end1, %c128 : index
              %k0 = kvbuffer.cache_tile %k[%batch, %head, %key0] from %lo upto %keys : !kv -> !kvbuffer.tile<128x128xbf16>
              kvbuffer.ring_load %k0 into %kring[%c0] : !kvbuffer.tile<128x128xbf16>, !kvbuffer.ring<#kbuf>
              scf.for %i = %c1 to %count step %c1 {
                %back = arith.subi %end1, %i : index
                %key = arith.muli %back, %c128 : index
                %kt = kvbuffer.cache_tile %k[%batch, %head, %key] from %lo upto %keys : !kv -> !kvbuffer.tile<128x128xbf16>
                kvbuffer.ring_load %kt into %kring[%i] {whole} : !kvbuffer.tile<128x128xbf16>, !kvbuffer.ring<#kbuf>
                %j = arith.subi %i, %c1 : index
                %vback = arith.subi %end1, %j : index
                %vkey = arith.muli %vback, %c128 : index
                %vt = kvbuffer.cache_tile %v[%batch, %head, %vkey] from %lo upto %keys : !kv -> !kvbuffer.tile<128x128xbf16>
                kvbuffer.ring_load %vt into %vring[%j] : !kvbuffer.tile<128x128xbf16>, !kvbuffer.ring<#vbuf>
              }
              %n = arith.subi %count, %c1 : index
              %vback = arith.subi %end1, %n : index
              %vkey = arith.muli %vback, %c128 : index
              %vt = kvbuffer.cache_tile %v[%batch, %head, %vkey] from %lo upto %keys : !kv -> !kvbuffer.tile<128x128xbf16>
              kvbuffer.ring_load %vt into %vring[%n] : !kvbuffer.tile<128x128xbf16>, !kvbuffer.ring<#vbuf>
            }
          }
        }
      }
      gpu.return
    }
  }
}
