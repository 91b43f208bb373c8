// Attention whose values are a part of the keys, by three teams as in
// three_teams.mlir, on chips that have rings: a program of the tile stage, written by
// hand.
//
//   kvbuf-compile examples/three_teams_rings.mlir --target=sm_90a -o three_teams.kvbuf
//   kvbuf.load("three_teams.kvbuf")(q=q, k=k, o=o.view(batch, seq_q, 8, 64))   # Python
//
// One team moves tiles of K, out of whose slots the others read keys and values. Team
// @scores puts the weights of 64 keys into a ring, as any tile lies in LDS: where groups
// of warps multiply, the matrix unit reads them there, for @left and for @right; where
// each warp multiplies by itself, it loads its rows. What belongs to rows, factors,
// maxima and sums, goes through a queue.

#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4>
#qbuf = #kvbuffer.kv_buffer<64x192xbf16, stages = 1, BK = 64, swizzle = [3, 0, 3]>
#kbuf = #kvbuffer.kv_buffer<64x192xbf16, stages = 2, BK = 64, swizzle = [3, 0, 3]>
#pbuf = #kvbuffer.kv_buffer<64x64xbf16, stages = 2, BK = 64, swizzle = [3, 0, 3]>

!q = memref<?x?x4x192xbf16, strided<[?, ?, ?, 1]>>
!o = memref<?x?x8x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 192>
!tile = !kvbuffer.tile<64x192xbf16>
!half = !kvbuffer.tile<64x64xbf16>
!qa = !kvbuffer.fragment<64x192xbf16, a>
!kb = !kvbuffer.fragment<64x192xbf16, b>
!vb = !kvbuffer.fragment<64x64xbf16, b>
!p = !kvbuffer.fragment<64x64xbf16, a>
!s = !kvbuffer.fragment<64x64xf32, acc>
!out = !kvbuffer.fragment<64x64xbf16, acc>
!row = !kvbuffer.fragment<64x1xf32, row>
!rows = !kvbuffer.queue<!row, !row, !row>

gpu.module @three_teams_module {
  gpu.func @three_teams(%q: !q {kvbuffer.name = "q", kvbuffer.shape = ["batch", "seq_q", 4, 192]},
                        %k: !kv {kvbuffer.name = "k"},
                        %o: !o {kvbuffer.name = "o", kvbuffer.shape = ["batch", "seq_q", 8, 64]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule,
                         kvbuffer.grid = [#kvbuffer.size<ceildiv(seq_q, 64)>, 4, "batch"]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %number = gpu.block_id x
    %head = gpu.block_id y
    %batch = gpu.block_id z
    %row = arith.muli %number, %c64 : index
    %twice = arith.muli %head, %c2 : index
    %queries = memref.dim %q, %c1 : !q
    %rest = arith.subi %queries, %row : index
    %keys = kvbuffer.cache.num_keys %k[%batch] new(%queries) : !kv
    %lo, %hi, %full_lo, %full_hi = kvbuffer.key_range %row of %queries keys %keys
      {BM = 64 : i64, mask = #kvbuffer.mask<causal = true>}
    %seen = arith.maxsi %hi, %c0 : index
    %tiles = arith.ceildivui %seen, %c64 : index
    // Fragments of one value mean the same to every team.
    %zero = kvbuffer.fragment_fill 0.0 : !s
    %low = kvbuffer.fragment_fill 0xFF800000 : !row
    %nothing = kvbuffer.fragment_fill 0.0 : !row

    %q_slot = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
    %slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %q_ring = kvbuffer.ring %q_slot from @load to [@scores] : !kvbuffer.buffer<#qbuf>
    %ring = kvbuffer.ring %slots from @load to [@scores, @left, @right] : !kvbuffer.buffer<#kbuf>
    %p_slots = kvbuffer.alloc : !kvbuffer.buffer<#pbuf>
    %weights = kvbuffer.ring %p_slots from @scores to [@left, @right] : !kvbuffer.buffer<#pbuf>
    %rows = kvbuffer.queue slots(2) from @scores to [@left, @right] : !rows
    kvbuffer.teams {
      kvbuffer.team @scores warps(4) {
        %qs = kvbuffer.ring_wait %q_ring[%c0] : !kvbuffer.ring<#qbuf>
        %m, %l = scf.for %i = %c0 to %tiles step %c1
            iter_args(%m0 = %low, %l0 = %nothing) -> (!row, !row) {
          %key = arith.muli %i, %c64 : index
          %staged = kvbuffer.ring_wait %ring[%i] : !kvbuffer.ring<#kbuf>
          %qf = kvbuffer.fragment_load %qs[0, 0] contracted(cols) : !kvbuffer.staged<#qbuf> -> !qa
          %kf = kvbuffer.fragment_load %staged[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !kb
          %s = kvbuffer.mma %qf, %kf, %zero {transpose_b} : !qa, !kb, !s
          kvbuffer.ring_release %ring[%i] : !kvbuffer.ring<#kbuf>
          %h = kvbuffer.mask %s rows(%row, %queries) keys(%key, %keys)
            {mask = #kvbuffer.mask<causal = true>} : !s
          %p, %m1, %l1, %r = kvbuffer.online_softmax %h, %m0, %l0 {scale = 0.0721687824 : f32, masked}
            : !s, !row -> !p
          kvbuffer.ring_put %p into %weights[%i] : !p, !kvbuffer.ring<#pbuf>
          kvbuffer.queue_put %r, %m1, %l1 to %rows[%i] : !rows
          scf.yield %m1, %l1 : !row, !row
        }
        kvbuffer.ring_release %q_ring[%c0] : !kvbuffer.ring<#qbuf>
      }
      kvbuffer.team @left warps(4) {
        %acc, %m, %l = scf.for %i = %c0 to %tiles step %c1
            iter_args(%a0 = %zero, %m0 = %low, %l0 = %nothing) -> (!s, !row, !row) {
          %staged = kvbuffer.ring_wait %ring[%i] : !kvbuffer.ring<#kbuf>
          %r, %m1, %l1 = kvbuffer.queue_take %rows[%i] : !rows
          %a1 = kvbuffer.rescale %a0, %r : !s, !row
          %v = kvbuffer.fragment_load %staged[0, 0] contracted(rows) : !kvbuffer.staged<#kbuf> -> !vb
          %ps = kvbuffer.ring_wait %weights[%i] : !kvbuffer.ring<#pbuf>
          %p = kvbuffer.fragment_load %ps[0, 0] contracted(cols) : !kvbuffer.staged<#pbuf> -> !p
          %a2 = kvbuffer.mma %p, %v, %a1 : !p, !vb, !s
          kvbuffer.ring_release %weights[%i] : !kvbuffer.ring<#pbuf>
          kvbuffer.ring_release %ring[%i] : !kvbuffer.ring<#kbuf>
          scf.yield %a2, %m1, %l1 : !s, !row, !row
        }
        %mean, %lse = kvbuffer.softmax_finish %acc, %m, %l {scale = 0.0721687824 : f32} : !s, !row
        %rounded = kvbuffer.fragment_convert %mean : !s -> !out
        %o_tile = kvbuffer.dram_tile %o[%batch, %row, %twice] valid(%rest) : !o -> !half
        kvbuffer.fragment_store %rounded, %o_tile : !out, !half
      }
      kvbuffer.team @right warps(4) {
        %acc, %m, %l = scf.for %i = %c0 to %tiles step %c1
            iter_args(%a0 = %zero, %m0 = %low, %l0 = %nothing) -> (!s, !row, !row) {
          %staged = kvbuffer.ring_wait %ring[%i] : !kvbuffer.ring<#kbuf>
          %r, %m1, %l1 = kvbuffer.queue_take %rows[%i] : !rows
          %a1 = kvbuffer.rescale %a0, %r : !s, !row
          %v = kvbuffer.fragment_load %staged[0, 64] contracted(rows) : !kvbuffer.staged<#kbuf> -> !vb
          %ps = kvbuffer.ring_wait %weights[%i] : !kvbuffer.ring<#pbuf>
          %p = kvbuffer.fragment_load %ps[0, 0] contracted(cols) : !kvbuffer.staged<#pbuf> -> !p
          %a2 = kvbuffer.mma %p, %v, %a1 : !p, !vb, !s
          kvbuffer.ring_release %weights[%i] : !kvbuffer.ring<#pbuf>
          kvbuffer.ring_release %ring[%i] : !kvbuffer.ring<#kbuf>
          scf.yield %a2, %m1, %l1 : !s, !row, !row
        }
        %mean, %lse = kvbuffer.softmax_finish %acc, %m, %l {scale = 0.0721687824 : f32} : !s, !row
        %rounded = kvbuffer.fragment_convert %mean : !s -> !out
        %place = arith.addi %twice, %c1 : index
        %o_tile = kvbuffer.dram_tile %o[%batch, %row, %place] valid(%rest) : !o -> !half
        kvbuffer.fragment_store %rounded, %o_tile : !out, !half
      }
      kvbuffer.team @load warps(4) {
        %q_tile = kvbuffer.dram_tile %q[%batch, %row, %head] valid(%rest) : !q -> !tile
        kvbuffer.ring_load %q_tile into %q_ring[%c0] : !tile, !kvbuffer.ring<#qbuf>
        scf.for %i = %c0 to %tiles step %c1 {
          %key = arith.muli %i, %c64 : index
          %tile = kvbuffer.cache_tile %k[%batch, %c0, %key] from %c0 upto %keys : !kv -> !tile
          kvbuffer.ring_load %tile into %ring[%i] : !tile, !kvbuffer.ring<#kbuf>
        }
      }
    }
    gpu.return
  }
}
