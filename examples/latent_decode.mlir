// Decoding with latent attention, by hand: a program of the tile stage, for chips whose
// warps multiply in groups and hand out registers anew (sm_90a).
//
//   kvbuf-compile examples/latent_decode.mlir --target=sm_90a -o latent.kvbuf
//   kvbuf-run latent.kvbuf --cache-lengths 100,4095 --check
//
// Keys are rows of 576 columns, values the first 512 columns of the same rows. A block
// has 64 of the 128 heads that share them, as the rows of a tile. A tile of keys is
// loaded once; three teams read its slot. @scores multiplies by all columns and puts
// weights into a ring; @left and @right have 256 columns of O each, in two products of
// 128, and multiply the weights by theirs. The slot is filled anew when all three have
// given it back. Registers are what decides: 128 accumulators a lane leave 32 for the
// rest, and the teams together have 512 for four lanes.
//
// What belongs to rows goes through a queue: the factor of each tile, then maxima and
// sums. Tiles come from the last one to the first, so that the first one alone needs a
// mask.

#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16]>
#qbuf = #kvbuffer.kv_buffer<64x576xbf16, stages = 1, BK = 64, swizzle = [3, 0, 3]>
#kbuf = #kvbuffer.kv_buffer<64x576xbf16, stages = 2, BK = 64, swizzle = [3, 0, 3]>
#pbuf = #kvbuffer.kv_buffer<64x64xbf16, stages = 1, BK = 64, swizzle = [3, 0, 3]>

!q = memref<?x1x128x576xbf16, strided<[?, ?, ?, 1]>>
!o = memref<?x1x128x512xbf16, strided<[?, ?, ?, 1]>>
!lse = memref<?x128x1xf32>
!kv = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 64>
!tile = !kvbuffer.tile<64x576xbf16>
!part = !kvbuffer.tile<64x128xbf16>
!qa = !kvbuffer.fragment<64x576xbf16, a>
!kb = !kvbuffer.fragment<64x576xbf16, b>
!vb = !kvbuffer.fragment<64x128xbf16, b>
!p = !kvbuffer.fragment<64x64xbf16, a>
!s = !kvbuffer.fragment<64x64xf32, acc>
!acc = !kvbuffer.fragment<64x128xf32, acc>
!out = !kvbuffer.fragment<64x128xbf16, acc>
!row = !kvbuffer.fragment<64x1xf32, row>
!rows = !kvbuffer.queue<!row>

gpu.module @latent_decode_module {
  gpu.func @latent_decode(%q: !q {kvbuffer.name = "q", kvbuffer.shape = ["batch", 1, 128, 576]},
                          %k: !kv {kvbuffer.name = "k"},
                          %o: !o {kvbuffer.name = "o", kvbuffer.shape = ["batch", 1, 128, 512]},
                          %lse: !lse {kvbuffer.name = "lse", kvbuffer.shape = ["batch", 128, 1]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule,
                         kvbuffer.grid = [2, 1, "batch"],
                         kvbuffer.problem = #kvbuffer.problem<op = "attention", dtype = "bf16", heads = 128, kv_heads = 1,
                           head_size = 576, v_head_size = 512, latent = true, cache = "paged", page_size = 64,
                           query = "dense", lse = true, causal = false, scale = 0.041666666666666664,
                           sink = false, softcap = 0.0, window_left = -1, window_right = -1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %c256 = arith.constant 256 : index
    %c384 = arith.constant 384 : index
    %c576 = arith.constant 576 : index
    // Both halves of the heads side by side: the second one reads rows out of L2.
    %half = gpu.block_id x
    %batch = gpu.block_id z
    %head = arith.muli %half, %c64 : index
    %keys = kvbuffer.cache.num_keys %k[%batch] new(%c1) : !kv
    %tiles = arith.ceildivui %keys, %c64 : index
    %after = arith.addi %tiles, %c1 : index
    // Fragments of one value mean the same to every team.
    %zero = kvbuffer.fragment_fill 0.0 : !s
    %none = kvbuffer.fragment_fill 0.0 : !acc
    %low = kvbuffer.fragment_fill 0xFF800000 : !row
    %nothing = kvbuffer.fragment_fill 0.0 : !row

    %q_slot = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
    %k_slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %p_slots = kvbuffer.alloc : !kvbuffer.buffer<#pbuf>
    %q_ring = kvbuffer.ring %q_slot from @load to [@scores] : !kvbuffer.buffer<#qbuf>
    %ring = kvbuffer.ring %k_slots from @load to [@scores, @left, @right] : !kvbuffer.buffer<#kbuf>
    %weights = kvbuffer.ring %p_slots from @scores to [@left, @right] : !kvbuffer.buffer<#pbuf>
    %rows = kvbuffer.queue slots(2) from @scores to [@left, @right] : !rows
    kvbuffer.teams {
      kvbuffer.team @scores warps(4) registers(168) {
        %qs = kvbuffer.ring_wait %q_ring[%c0] : !kvbuffer.ring<#qbuf>
        %m, %l = scf.for %i = %c0 to %tiles step %c1
            iter_args(%m0 = %low, %l0 = %nothing) -> (!row, !row) {
          %left = arith.subi %tiles, %i : index
          %number = arith.subi %left, %c1 : index
          %key = arith.muli %number, %c64 : index
          %staged = kvbuffer.ring_wait %ring[%i] : !kvbuffer.ring<#kbuf>
          %qf = kvbuffer.fragment_load %qs[0, 0] contracted(cols) : !kvbuffer.staged<#qbuf> -> !qa
          %kf = kvbuffer.fragment_load %staged[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !kb
          %s = kvbuffer.mma %qf, %kf, %zero {transpose_b} : !qa, !kb, !s
          kvbuffer.ring_release %ring[%i] : !kvbuffer.ring<#kbuf>
          %first = arith.cmpi eq, %i, %c0 : index
          %h = scf.if %first -> (!s) {
            %masked = kvbuffer.mask %s rows(%c0, %c1) keys(%key, %keys)
              {group = 64 : i64, mask = #kvbuffer.mask<>} : !s
            scf.yield %masked : !s
          } else {
            scf.yield %s : !s
          }
          %p, %m1, %l1, %r = kvbuffer.online_softmax %h, %m0, %l0 {scale = 0.0416666679 : f32, masked}
            : !s, !row -> !p
          kvbuffer.ring_put %p into %weights[%i] : !p, !kvbuffer.ring<#pbuf>
          kvbuffer.queue_put %r to %rows[%i] : !rows
          scf.yield %m1, %l1 : !row, !row
        }
        kvbuffer.ring_release %q_ring[%c0] : !kvbuffer.ring<#qbuf>
        kvbuffer.queue_put %m to %rows[%tiles] : !rows
        kvbuffer.queue_put %l to %rows[%after] : !rows
      }
      kvbuffer.team @left warps(4) registers(160) {
        %acc0, %acc1 = scf.for %i = %c0 to %tiles step %c1
            iter_args(%a0 = %none, %b0 = %none) -> (!acc, !acc) {
          %staged = kvbuffer.ring_wait %ring[%i] : !kvbuffer.ring<#kbuf>
          %r = kvbuffer.queue_take %rows[%i] : !rows
          %a1 = kvbuffer.rescale %a0, %r : !acc, !row
          %b1 = kvbuffer.rescale %b0, %r : !acc, !row
          %v0 = kvbuffer.fragment_load %staged[0, 0] contracted(rows) : !kvbuffer.staged<#kbuf> -> !vb
          %v1 = kvbuffer.fragment_load %staged[0, 128] contracted(rows) : !kvbuffer.staged<#kbuf> -> !vb
          %ps = kvbuffer.ring_wait %weights[%i] : !kvbuffer.ring<#pbuf>
          %p = kvbuffer.fragment_load %ps[0, 0] contracted(cols) : !kvbuffer.staged<#pbuf> -> !p
          %a2 = kvbuffer.mma %p, %v0, %a1 : !p, !vb, !acc
          %b2 = kvbuffer.mma %p, %v1, %b1 : !p, !vb, !acc
          kvbuffer.ring_release %weights[%i] : !kvbuffer.ring<#pbuf>
          kvbuffer.ring_release %ring[%i] : !kvbuffer.ring<#kbuf>
          scf.yield %a2, %b2 : !acc, !acc
        }
        %m = kvbuffer.queue_take %rows[%tiles] : !rows
        %l = kvbuffer.queue_take %rows[%after] : !rows
        %o0, %lse0 = kvbuffer.softmax_finish %acc0, %m, %l {scale = 0.0416666679 : f32} : !acc, !row
        %o1, %lse1 = kvbuffer.softmax_finish %acc1, %m, %l {scale = 0.0416666679 : f32} : !acc, !row
        %r0 = kvbuffer.fragment_convert %o0 : !acc -> !out
        %r1 = kvbuffer.fragment_convert %o1 : !acc -> !out
        %t0 = kvbuffer.dram_tile %o[%batch, %c0, %head, %c0] valid(%c64, %c128) {row_dim = 2 : i64} : !o -> !part
        %t1 = kvbuffer.dram_tile %o[%batch, %c0, %head, %c128] valid(%c64, %c128) {row_dim = 2 : i64} : !o -> !part
        kvbuffer.fragment_store %r0, %t0 : !out, !part
        kvbuffer.fragment_store %r1, %t1 : !out, !part
        kvbuffer.row_store %lse0, %lse[%batch, %head, %c0] valid(%c64) {group = 64 : i64} : !row, !lse
      }
      kvbuffer.team @right warps(4) registers(160) {
        %acc0, %acc1 = scf.for %i = %c0 to %tiles step %c1
            iter_args(%a0 = %none, %b0 = %none) -> (!acc, !acc) {
          %staged = kvbuffer.ring_wait %ring[%i] : !kvbuffer.ring<#kbuf>
          %r = kvbuffer.queue_take %rows[%i] : !rows
          %a1 = kvbuffer.rescale %a0, %r : !acc, !row
          %b1 = kvbuffer.rescale %b0, %r : !acc, !row
          %v0 = kvbuffer.fragment_load %staged[0, 256] contracted(rows) : !kvbuffer.staged<#kbuf> -> !vb
          %v1 = kvbuffer.fragment_load %staged[0, 384] contracted(rows) : !kvbuffer.staged<#kbuf> -> !vb
          %ps = kvbuffer.ring_wait %weights[%i] : !kvbuffer.ring<#pbuf>
          %p = kvbuffer.fragment_load %ps[0, 0] contracted(cols) : !kvbuffer.staged<#pbuf> -> !p
          %a2 = kvbuffer.mma %p, %v0, %a1 : !p, !vb, !acc
          %b2 = kvbuffer.mma %p, %v1, %b1 : !p, !vb, !acc
          kvbuffer.ring_release %weights[%i] : !kvbuffer.ring<#pbuf>
          kvbuffer.ring_release %ring[%i] : !kvbuffer.ring<#kbuf>
          scf.yield %a2, %b2 : !acc, !acc
        }
        %m = kvbuffer.queue_take %rows[%tiles] : !rows
        %l = kvbuffer.queue_take %rows[%after] : !rows
        %o0, %lse0 = kvbuffer.softmax_finish %acc0, %m, %l {scale = 0.0416666679 : f32} : !acc, !row
        %o1, %lse1 = kvbuffer.softmax_finish %acc1, %m, %l {scale = 0.0416666679 : f32} : !acc, !row
        %r0 = kvbuffer.fragment_convert %o0 : !acc -> !out
        %r1 = kvbuffer.fragment_convert %o1 : !acc -> !out
        %t0 = kvbuffer.dram_tile %o[%batch, %c0, %head, %c256] valid(%c64, %c128) {row_dim = 2 : i64} : !o -> !part
        %t1 = kvbuffer.dram_tile %o[%batch, %c0, %head, %c384] valid(%c64, %c128) {row_dim = 2 : i64} : !o -> !part
        kvbuffer.fragment_store %r0, %t0 : !out, !part
        kvbuffer.fragment_store %r1, %t1 : !out, !part
      }
      kvbuffer.team @load warps(4) registers(24) {
        %q_tile = kvbuffer.dram_tile %q[%batch, %c0, %head, %c0] valid(%c64, %c576) {row_dim = 2 : i64} : !q -> !tile
        kvbuffer.ring_load %q_tile into %q_ring[%c0] : !tile, !kvbuffer.ring<#qbuf>
        scf.for %i = %c0 to %tiles step %c1 {
          %left = arith.subi %tiles, %i : index
          %number = arith.subi %left, %c1 : index
          %key = arith.muli %number, %c64 : index
          %tile = kvbuffer.cache_tile %k[%batch, %c0, %key] from %c0 upto %keys : !kv -> !tile
          kvbuffer.ring_load %tile into %ring[%i] : !tile, !kvbuffer.ring<#kbuf>
        }
      }
    }
    gpu.return
  }
}
