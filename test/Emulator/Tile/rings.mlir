// One team moves tiles for two that have rows of their own: both read every slot of
// K's and V's rings, which is filled anew when both have given it back.

// RUN: kvbuf-tile-run %s --size batch=2 --size seq_q=37 --size seq_k=50 | FileCheck %s
// RUN: kvbuf-tile-run %s --size batch=1 --size seq_q=1 --size seq_k=130 | FileCheck %s
// CHECK: readers:
// CHECK: {{^}}PASS

// A team keeps its slots: the team that moves waits for ever, and so does this one.
// RUN: sed '/ring_release %%v_ring.*upper/d' %s | not kvbuf-tile-run - --size batch=1 --size seq_q=37 --size seq_k=50 2>&1 | FileCheck %s --check-prefix=KEPT
// KEPT: error: 'kvbuffer.ring_wait' op in block (0, 0, 0), team @upper, iteration {{[12]}}: waits for ever: @load cannot make filling {{[0-9]}} of the {{[kv]}} ring before filling 0 of the v ring is released
// KEPT: note: it waits for a slot here
// KEPT-NEXT: kvbuffer.ring_load

// With a slot for each tile nobody waits. It is an error all the same.
// RUN: sed -e '/ring_release %%v_ring.*lower/d' -e 's/stages = 2/stages = 4/' %s | not kvbuf-tile-run - --size batch=1 --size seq_q=37 --size seq_k=50 2>&1 | FileCheck %s --check-prefix=LEFT
// LEFT: error: 'kvbuffer.ring_load' op in block (0, 0, 0): makes filling 0 of the v ring, which @lower does not release

// A filling that a team does not wait for.
// RUN: sed -e '/ring_wait %%k_ring/,/ring_release %%k_ring/{s/.*kf = .*/%%kf = kvbuffer.fragment_fill 1.0 : !b/;/ring_/d;}' -e 's/stages = 2/stages = 4/' %s | not kvbuf-tile-run - --size batch=1 --size seq_q=37 --size seq_k=50 2>&1 | FileCheck %s --check-prefix=UNSEEN
// UNSEEN: error: 'kvbuffer.ring_load' op in block (0, 0, 0): makes filling 0 of the k ring, for which @upper does not wait

// A slot that two teams read, which each would multiply.
// RUN: sed 's/ring_wait %%k_ring\[%%i\]/& {kvbuffer.scaled_by = 5.0e-01 : f32}/' %s | not kvbuf-tile-run - --size batch=1 --size seq_q=37 --size seq_k=50 2>&1 | FileCheck %s --check-prefix=CHANGED
// CHANGED: error: 'kvbuffer.ring_wait' op in block (0, 0, 0), team @upper, iteration 0: changes filling 0 of the k ring, which another team reads, too

#schedule = #kvbuffer.schedule<BM = 32, BN = 16, BK = 16, warps = 2, mma_shape = [16, 8, 16]>
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


gpu.module @m {
  gpu.func @readers(%q: !qo {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}, %v: !kv {kvbuffer.name = "v"}, %o: !qo {kvbuffer.name = "o"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %number = gpu.block_id x
    %batch = gpu.block_id z
    %first = arith.muli %number, %c32 : index
    %queries = memref.dim %q, %c1 : !qo
    %keys = kvbuffer.cache.num_keys %k[%batch] new(%queries) : !kv
    %tiles = arith.ceildivui %keys, %c16 : index
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %low = kvbuffer.fragment_fill 0xFF800000 : !row
    %nothing = kvbuffer.fragment_fill 0.0 : !row
    %k_slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %v_slots = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
    %k_ring = kvbuffer.ring %k_slots from @load to [@upper, @lower] : !kvbuffer.buffer<#kbuf>
    %v_ring = kvbuffer.ring %v_slots from @load to [@upper, @lower] : !kvbuffer.buffer<#vbuf>
    kvbuffer.teams {
      kvbuffer.team @upper warps(1) {
        %row = arith.addi %first, %c0 : index
        %rest = arith.subi %queries, %row : index
        %left = arith.maxsi %rest, %c0 : index
        %q_tile = kvbuffer.dram_tile %q[%batch, %row, %c0] valid(%left) : !qo -> !tile
        %qf = kvbuffer.tile_fragment %q_tile : !tile -> !a
        %acc, %m, %l = scf.for %i = %c0 to %tiles step %c1
            iter_args(%a0 = %zero, %m0 = %low, %l0 = %nothing) -> (!acc, !row, !row) {
          %key = arith.muli %i, %c16 : index
          %ks = kvbuffer.ring_wait %k_ring[%i] : !kvbuffer.ring<#kbuf>
          %kf = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !b
          kvbuffer.ring_release %k_ring[%i] : !kvbuffer.ring<#kbuf>
          %s = kvbuffer.mma %qf, %kf, %zero {transpose_b} : !a, !b, !acc
          %h = kvbuffer.mask %s rows(%row, %queries) keys(%key, %keys) {mask = #kvbuffer.mask<causal = true>} : !acc
          %p, %m1, %l1, %r = kvbuffer.online_softmax %h, %m0, %l0 {scale = 0.25 : f32, masked} : !acc, !row -> !a
          %vs = kvbuffer.ring_wait %v_ring[%i] : !kvbuffer.ring<#vbuf>
          %vf = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !b
          kvbuffer.ring_release %v_ring[%i] : !kvbuffer.ring<#vbuf> // upper
          %a1 = kvbuffer.rescale %a0, %r : !acc, !row
          %a2 = kvbuffer.mma %p, %vf, %a1 : !a, !b, !acc
          scf.yield %a2, %m1, %l1 : !acc, !row, !row
        }
        %mean, %lse = kvbuffer.softmax_finish %acc, %m, %l {scale = 0.25 : f32} : !acc, !row
        %rounded = kvbuffer.fragment_convert %mean : !acc -> !out
        %o_tile = kvbuffer.dram_tile %o[%batch, %row, %c0] valid(%left) : !qo -> !tile
        kvbuffer.fragment_store %rounded, %o_tile : !out, !tile
      }
      kvbuffer.team @lower warps(1) {
        %row = arith.addi %first, %c16 : index
        %rest = arith.subi %queries, %row : index
        %left = arith.maxsi %rest, %c0 : index
        %q_tile = kvbuffer.dram_tile %q[%batch, %row, %c0] valid(%left) : !qo -> !tile
        %qf = kvbuffer.tile_fragment %q_tile : !tile -> !a
        %acc, %m, %l = scf.for %i = %c0 to %tiles step %c1
            iter_args(%a0 = %zero, %m0 = %low, %l0 = %nothing) -> (!acc, !row, !row) {
          %key = arith.muli %i, %c16 : index
          %ks = kvbuffer.ring_wait %k_ring[%i] : !kvbuffer.ring<#kbuf>
          %kf = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !b
          kvbuffer.ring_release %k_ring[%i] : !kvbuffer.ring<#kbuf>
          %s = kvbuffer.mma %qf, %kf, %zero {transpose_b} : !a, !b, !acc
          %h = kvbuffer.mask %s rows(%row, %queries) keys(%key, %keys) {mask = #kvbuffer.mask<causal = true>} : !acc
          %p, %m1, %l1, %r = kvbuffer.online_softmax %h, %m0, %l0 {scale = 0.25 : f32, masked} : !acc, !row -> !a
          %vs = kvbuffer.ring_wait %v_ring[%i] : !kvbuffer.ring<#vbuf>
          %vf = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !b
          kvbuffer.ring_release %v_ring[%i] : !kvbuffer.ring<#vbuf> // lower
          %a1 = kvbuffer.rescale %a0, %r : !acc, !row
          %a2 = kvbuffer.mma %p, %vf, %a1 : !a, !b, !acc
          scf.yield %a2, %m1, %l1 : !acc, !row, !row
        }
        %mean, %lse = kvbuffer.softmax_finish %acc, %m, %l {scale = 0.25 : f32} : !acc, !row
        %rounded = kvbuffer.fragment_convert %mean : !acc -> !out
        %o_tile = kvbuffer.dram_tile %o[%batch, %row, %c0] valid(%left) : !qo -> !tile
        kvbuffer.fragment_store %rounded, %o_tile : !out, !tile
      }
      kvbuffer.team @load warps(1) {
        scf.for %i = %c0 to %tiles step %c1 {
          %key = arith.muli %i, %c16 : index
          %k_tile = kvbuffer.cache_tile %k[%batch, %c0, %key] from %c0 upto %keys : !kv -> !tile
          kvbuffer.ring_load %k_tile into %k_ring[%i] : !tile, !kvbuffer.ring<#kbuf>
          %v_tile = kvbuffer.cache_tile %v[%batch, %c0, %key] from %c0 upto %keys : !kv -> !tile
          kvbuffer.ring_load %v_tile into %v_ring[%i] : !tile, !kvbuffer.ring<#vbuf>
        }
      }
    }
    gpu.return
  }
}
