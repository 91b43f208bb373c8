// Decoding with latent attention, by hand, for every chip: a program of the tile stage.
//
//   kvbuf-compile examples/latent.mlir --target=sm_80 -o latent.kvbuf
//   kvbuf-run latent.kvbuf --cache-lengths 100,4095 --check
//
// Keys are rows of 576 columns, values the first 512 columns of the same rows: a tile is
// loaded once, and its slot is read both ways. Sixteen heads share the rows. Where their
// accumulators, 16 x 512, are too many for the registers of a warp, several warps share
// the columns; kvbuf-complete-program decides that for the chip, with the instruction and
// how slots lie. For teams that share a slot, and more heads: latent_decode.mlir.

#schedule = #kvbuffer.schedule<BM = 16, BN = 32>
#rows = #kvbuffer.kv_buffer<32x576xbf16, open>

!q = memref<?x1x16x576xbf16, strided<[?, ?, ?, 1]>>
!o = memref<?x1x16x512xbf16, strided<[?, ?, ?, 1]>>
!cache = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 64>
!tile = !kvbuffer.tile<32x576xbf16>
!qa = !kvbuffer.fragment<16x576xbf16, a>
!kb = !kvbuffer.fragment<32x576xbf16, b>
!vb = !kvbuffer.fragment<32x512xbf16, b>
!p = !kvbuffer.fragment<16x32xbf16, a>
!s = !kvbuffer.fragment<16x32xf32, acc>
!acc = !kvbuffer.fragment<16x512xf32, acc>
!out = !kvbuffer.fragment<16x512xbf16, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!q_rows = !kvbuffer.tile<16x576xbf16, page_size = 16>
!o_rows = !kvbuffer.tile<16x512xbf16, page_size = 16>

gpu.module @latent_module {
  gpu.func @latent(%q: !q {kvbuffer.name = "q", kvbuffer.shape = ["batch", 1, 16, 576]},
                   %cache: !cache {kvbuffer.name = "k"},
                   %o: !o {kvbuffer.name = "o", kvbuffer.shape = ["batch", 1, 16, 512]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule,
                         kvbuffer.grid = ["batch", 1, 1],
                         kvbuffer.problem = #kvbuffer.problem<op = "attention", dtype = "bf16", heads = 16, kv_heads = 1,
                           head_size = 576, v_head_size = 512, latent = true, cache = "paged", page_size = 64,
                           query = "dense", lse = false, causal = false, scale = 0.041666666666666664,
                           sink = false, softcap = 0.0, window_left = -1, window_right = -1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %bn = arith.constant 32 : index
    %batch = gpu.block_id x
    %keys = kvbuffer.cache.num_keys %cache[%batch] new(%c1) : !cache
    %tiles = arith.ceildivui %keys, %bn : index
    %q_tile = kvbuffer.dram_tile %q[%batch, %c0, %c0] valid(%c16) {group = 16 : i64} : !q -> !q_rows
    %qf = kvbuffer.tile_fragment %q_tile : !q_rows -> !qa
    %slots = kvbuffer.alloc : !kvbuffer.buffer<#rows>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %none = kvbuffer.fragment_fill 0.0 : !s
    %lowest = kvbuffer.fragment_fill 0xFF800000 : !row
    %nothing = kvbuffer.fragment_fill 0.0 : !row
    %acc, %max, %sum = scf.for %i = %c0 to %tiles step %c1
        iter_args(%a0 = %zero, %m0 = %lowest, %l0 = %nothing) -> (!acc, !row, !row) {
      %last = arith.subi %tiles, %c1 : index
      %back = arith.subi %last, %i : index
      %key = arith.muli %back, %bn : index
      %tile = kvbuffer.cache_tile %cache[%batch, %c0, %key] from %c0 upto %keys : !cache -> !tile
      %token = kvbuffer.dram_load %tile into %slots : !tile, !kvbuffer.buffer<#rows>
      %staged = kvbuffer.lds_stage %token : !kvbuffer.token<#rows>
      %kf = kvbuffer.fragment_load %staged[0, 0] contracted(cols) : !kvbuffer.staged<#rows> -> !kb
      %s = kvbuffer.mma %qf, %kf, %none {transpose_b} : !qa, !kb, !s
      %first = arith.cmpi eq, %i, %c0 : index
      %seen = scf.if %first -> (!s) {
        %masked = kvbuffer.mask %s rows(%c0, %c1) keys(%key, %keys)
          {mask = #kvbuffer.mask<>, group = 16 : i64} : !s
        scf.yield %masked : !s
      } else {
        scf.yield %s : !s
      }
      %p, %m1, %l1, %r = kvbuffer.online_softmax %seen, %m0, %l0 {scale = 0.0416666679 : f32, masked}
        : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %r : !acc, !row
      %vf = kvbuffer.fragment_load %staged[0, 0] contracted(rows) : !kvbuffer.staged<#rows> -> !vb
      %a2 = kvbuffer.mma %p, %vf, %a1 : !p, !vb, !acc
      scf.yield %a2, %m1, %l1 : !acc, !row, !row
    }
    %out, %lse = kvbuffer.softmax_finish %acc, %max, %sum {scale = 0.0416666679 : f32} : !acc, !row
    %rounded = kvbuffer.fragment_convert %out : !acc -> !out
    %o_tile = kvbuffer.dram_tile %o[%batch, %c0, %c0] valid(%c16) {group = 16 : i64} : !o -> !o_rows
    kvbuffer.fragment_store %rounded, %o_tile : !out, !o_rows
    gpu.return
  }
}
