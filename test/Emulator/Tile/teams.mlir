// Teams and a queue between them on whole tiles: one computes the weights, the
// other sums the values; and teams that have rows of their own.

// RUN: kvbuf-tile-run %s --size batch=2 --size seq_q=37 --size seq_k=50 | FileCheck %s
// CHECK: queue:
// CHECK: {{^}}PASS
// CHECK: rows:
// CHECK: {{^}}PASS
// RUN: kvbuf-tile-run %s --size batch=1 --size seq_q=1 --size seq_k=130 | FileCheck %s

// A mask less, and the check sees it.
// RUN: sed '/kvbuffer.mask /s/causal = true//' %s | not kvbuf-tile-run - --size batch=1 --size seq_q=37 --size seq_k=50 | FileCheck %s --check-prefix=FAIL
// FAIL: queue:
// FAIL: {{^}}FAIL
// FAIL: rows:
// FAIL: {{^}}FAIL

#schedule = #kvbuffer.schedule<BM = 32, BN = 16, BK = 16, warps = 2, mma_shape = [16, 8, 16]>
#team = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>
#qbuf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 1>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
#problem = #kvbuffer.problem<op = "attention", dtype = "bf16", heads = 1, kv_heads = 1, head_size = 16, query = "dense", cache = "dense", causal = true, window_left = -1, window_right = -1, softcap = 0.0, sink = false, lse = false, scale = 0.25>
!qo = memref<?x?x1x16xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 16>
!tile = !kvbuffer.tile<16x16xbf16>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!out = !kvbuffer.fragment<16x16xbf16, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!weights = !kvbuffer.queue<!a, !row, !row, !row>

gpu.module @m {
  gpu.func @queue(%q: !qo {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}, %v: !kv {kvbuffer.name = "v"}, %o: !qo {kvbuffer.name = "o"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #team, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %number = gpu.block_id x
    %batch = gpu.block_id z
    %row = arith.muli %number, %c16 : index
    %queries = memref.dim %q, %c1 : !qo
    %rest = arith.subi %queries, %row : index
    %left = arith.maxsi %rest, %c0 : index
    %keys = kvbuffer.cache.num_keys %k[%batch] new(%queries) : !kv
    %tiles = arith.ceildivui %keys, %c16 : index
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %low = kvbuffer.fragment_fill 0xFF800000 : !row
    %nothing = kvbuffer.fragment_fill 0.0 : !row
    %weights = kvbuffer.queue slots(2) from @scores to [@values] : !weights
    kvbuffer.teams {
      kvbuffer.team @values warps(1) {
        %slots = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
        %acc, %m, %l = scf.for %i = %c0 to %tiles step %c1
            iter_args(%a0 = %zero, %m0 = %low, %l0 = %nothing) -> (!acc, !row, !row) {
          %slot = arith.remui %i, %c2 : index
          %key = arith.muli %i, %c16 : index
          %tile = kvbuffer.cache_tile %v[%batch, %c0, %key] from %c0 upto %keys : !kv -> !tile
          %token = kvbuffer.dram_load %tile into %slots[%slot] : !tile, !kvbuffer.buffer<#vbuf>
          %staged = kvbuffer.lds_stage %token : !kvbuffer.token<#vbuf>
          %vf = kvbuffer.fragment_load %staged[0, 0] : !kvbuffer.staged<#vbuf> -> !b
          %p, %r, %m1, %l1 = kvbuffer.queue_take %weights[%i] : !weights
          %a1 = kvbuffer.rescale %a0, %r : !acc, !row
          %a2 = kvbuffer.mma %p, %vf, %a1 : !a, !b, !acc
          scf.yield %a2, %m1, %l1 : !acc, !row, !row
        }
        %mean, %lse = kvbuffer.softmax_finish %acc, %m, %l {scale = 0.25 : f32} : !acc, !row
        %rounded = kvbuffer.fragment_convert %mean : !acc -> !out
        %o_tile = kvbuffer.dram_tile %o[%batch, %row, %c0] valid(%left) : !qo -> !tile
        kvbuffer.fragment_store %rounded, %o_tile : !out, !tile
      }
      kvbuffer.team @scores warps(1) {
        %q_slot = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
        %slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
        %q_tile = kvbuffer.dram_tile %q[%batch, %row, %c0] valid(%left) : !qo -> !tile
        %q_token = kvbuffer.dram_load %q_tile into %q_slot[%c0] : !tile, !kvbuffer.buffer<#qbuf>
        %qs = kvbuffer.lds_stage %q_token : !kvbuffer.token<#qbuf>
        %m, %l = scf.for %i = %c0 to %tiles step %c1
            iter_args(%m0 = %low, %l0 = %nothing) -> (!row, !row) {
          %slot = arith.remui %i, %c2 : index
          %key = arith.muli %i, %c16 : index
          %tile = kvbuffer.cache_tile %k[%batch, %c0, %key] from %c0 upto %keys : !kv -> !tile
          %token = kvbuffer.dram_load %tile into %slots[%slot] : !tile, !kvbuffer.buffer<#kbuf>
          %staged = kvbuffer.lds_stage %token : !kvbuffer.token<#kbuf>
          %qf = kvbuffer.fragment_load %qs[0, 0] : !kvbuffer.staged<#qbuf> -> !a
          %kf = kvbuffer.fragment_load %staged[0, 0] : !kvbuffer.staged<#kbuf> -> !b
          %s = kvbuffer.mma %qf, %kf, %zero {transpose_b} : !a, !b, !acc
          %h = kvbuffer.mask %s rows(%row, %queries) keys(%key, %keys) {mask = #kvbuffer.mask<causal = true>} : !acc
          %p, %m1, %l1, %r = kvbuffer.online_softmax %h, %m0, %l0 {scale = 0.25 : f32, masked} : !acc, !row -> !a
          kvbuffer.queue_put %p, %r, %m1, %l1 to %weights[%i] : !weights
          scf.yield %m1, %l1 : !row, !row
        }
      }
    }
    gpu.return
  }

  gpu.func @rows(%q: !qo {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}, %v: !kv {kvbuffer.name = "v"}, %o: !qo {kvbuffer.name = "o"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %number = gpu.block_id x
    %batch = gpu.block_id z
    %queries = memref.dim %q, %c1 : !qo
    %keys = kvbuffer.cache.num_keys %k[%batch] new(%queries) : !kv
    %tiles = arith.ceildivui %keys, %c16 : index
    kvbuffer.teams {
      kvbuffer.team @rows warps(1) x 2 (%copy) {
        %twice = arith.muli %number, %c2 : index
        %part = arith.addi %twice, %copy : index
        %row = arith.muli %part, %c16 : index
        %rest = arith.subi %queries, %row : index
        %left = arith.maxsi %rest, %c0 : index
        %zero = kvbuffer.fragment_fill 0.0 : !acc
        %low = kvbuffer.fragment_fill 0xFF800000 : !row
        %nothing = kvbuffer.fragment_fill 0.0 : !row
        %q_slot = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
        %k_slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
        %v_slots = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
        %q_tile = kvbuffer.dram_tile %q[%batch, %row, %c0] valid(%left) : !qo -> !tile
        %q_token = kvbuffer.dram_load %q_tile into %q_slot[%c0] : !tile, !kvbuffer.buffer<#qbuf>
        %qs = kvbuffer.lds_stage %q_token : !kvbuffer.token<#qbuf>
        %acc, %m, %l = scf.for %i = %c0 to %tiles step %c1
            iter_args(%a0 = %zero, %m0 = %low, %l0 = %nothing) -> (!acc, !row, !row) {
          %slot = arith.remui %i, %c2 : index
          %key = arith.muli %i, %c16 : index
          %k_tile = kvbuffer.cache_tile %k[%batch, %c0, %key] from %c0 upto %keys : !kv -> !tile
          %k_token = kvbuffer.dram_load %k_tile into %k_slots[%slot] : !tile, !kvbuffer.buffer<#kbuf>
          %ks = kvbuffer.lds_stage %k_token : !kvbuffer.token<#kbuf>
          %qf = kvbuffer.fragment_load %qs[0, 0] : !kvbuffer.staged<#qbuf> -> !a
          %kf = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !b
          %s = kvbuffer.mma %qf, %kf, %zero {transpose_b} : !a, !b, !acc
          %h = kvbuffer.mask %s rows(%row, %queries) keys(%key, %keys) {mask = #kvbuffer.mask<causal = true>} : !acc
          %p, %m1, %l1, %r = kvbuffer.online_softmax %h, %m0, %l0 {scale = 0.25 : f32, masked} : !acc, !row -> !a
          %v_tile = kvbuffer.cache_tile %v[%batch, %c0, %key] from %c0 upto %keys : !kv -> !tile
          %v_token = kvbuffer.dram_load %v_tile into %v_slots[%slot] : !tile, !kvbuffer.buffer<#vbuf>
          %vs = kvbuffer.lds_stage %v_token : !kvbuffer.token<#vbuf>
          %vf = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !b
          %a1 = kvbuffer.rescale %a0, %r : !acc, !row
          %a2 = kvbuffer.mma %p, %vf, %a1 : !a, !b, !acc
          scf.yield %a2, %m1, %l1 : !acc, !row, !row
        }
        %mean, %lse = kvbuffer.softmax_finish %acc, %m, %l {scale = 0.25 : f32} : !acc, !row
        %rounded = kvbuffer.fragment_convert %mean : !acc -> !out
        %o_tile = kvbuffer.dram_tile %o[%batch, %row, %c0] valid(%left) : !qo -> !tile
        kvbuffer.fragment_store %rounded, %o_tile : !out, !tile
      }
    }
    gpu.return
  }
}
