// examples/gemm.mlir in the sizes of an H100: tiles of 128 x 256 and four slots. One
// warpgroup moves tiles by TMA, two multiply by wgmma. Only the lines of sizes differ;
// no operation does. With `tiles = static` in the schedule, too, blocks stay for more
// than one tile; with `cluster = 2` besides, two of them load tiles of B for each other.
//
//   kvbuf-compile examples/gemm_sm90a.mlir --target=sm_90a -o gemm.kvbuf
//   c = kvbuf.load("gemm.kvbuf")(a=a, b=b)                           # Python
//
// n is a multiple of 8: rows of C lie multiples of 16 bytes apart.

#schedule = #kvbuffer.schedule<BM = 128, BN = 256, BK = 64, stages = 4, warps = 8, mma_shape = [64, 8, 16], producers = 4, producer_registers = 24, consumer_registers = 240>
#abuf = #kvbuffer.kv_buffer<128x64xbf16, stages = 4, BK = 64, swizzle = [3, 0, 3]>
#bbuf = #kvbuffer.kv_buffer<256x64xbf16, stages = 4, BK = 64, swizzle = [3, 0, 3]>

!in = memref<?x?xbf16, strided<[?, 1]>>
!out = memref<?x?xbf16, strided<[?, 1]>>
!a_tile = !kvbuffer.tile<128x64xbf16>
!b_tile = !kvbuffer.tile<256x64xbf16>
!c_tile = !kvbuffer.tile<128x256xbf16>
!a = !kvbuffer.fragment<128x64xbf16, a>
!b = !kvbuffer.fragment<256x64xbf16, b>
!acc = !kvbuffer.fragment<128x256xf32, acc>
!c = !kvbuffer.fragment<128x256xbf16, acc>

gpu.module @gemm_module {
  gpu.func @gemm(%a: !in {kvbuffer.name = "a", kvbuffer.shape = ["m", "k"]},
                 %b: !in {kvbuffer.name = "b", kvbuffer.shape = ["n", "k"]},
                 %c: !out {kvbuffer.name = "c", kvbuffer.shape = ["m", "n"]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %bm = arith.constant 128 : index
    %bn = arith.constant 256 : index
    %bk = arith.constant 64 : index
    %m = memref.dim %a, %c0 : !in
    %n = memref.dim %b, %c0 : !in
    %k = memref.dim %a, %c1 : !in

    // An item is a tile of C. Tiles above each other read the same part of B, tiles
    // side by side the same part of A: blocks that run at the same time get strips.
    %tile_m, %tile_n = kvbuffer.work_item [<"m" by 128, sharing = all>, <"n" by 256, sharing = all>]
    %row = arith.muli %tile_m, %bm : index
    %col = arith.muli %tile_n, %bn : index
    %rows = arith.subi %m, %row : index
    %cols = arith.subi %n, %col : index

    %a_slots = kvbuffer.alloc : !kvbuffer.buffer<#abuf>
    %b_slots = kvbuffer.alloc : !kvbuffer.buffer<#bbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %steps = arith.ceildivui %k, %bk : index
    %product = scf.for %i = %c0 to %steps step %c1 iter_args(%sum = %zero) -> (!acc) {
      %at = arith.muli %i, %bk : index
      %left = arith.subi %k, %at : index
      %a_tile = kvbuffer.dram_tile %a[%row, %at] valid(%rows, %left) : !in -> !a_tile
      %b_tile = kvbuffer.dram_tile %b[%col, %at] valid(%cols, %left) : !in -> !b_tile
      %a_token = kvbuffer.dram_load %a_tile into %a_slots : !a_tile, !kvbuffer.buffer<#abuf>
      %b_token = kvbuffer.dram_load %b_tile into %b_slots : !b_tile, !kvbuffer.buffer<#bbuf>
      %as, %bs = kvbuffer.lds_stage %a_token, %b_token : !kvbuffer.token<#abuf>, !kvbuffer.token<#bbuf>
      %af = kvbuffer.fragment_load %as[0, 0] contracted(cols) : !kvbuffer.staged<#abuf> -> !a
      %bf = kvbuffer.fragment_load %bs[0, 0] contracted(cols) : !kvbuffer.staged<#bbuf> -> !b
      %next = kvbuffer.mma %af, %bf, %sum {transpose_b} : !a, !b, !acc
      scf.yield %next : !acc
    }

    %rounded = kvbuffer.fragment_convert %product : !acc -> !c
    %c_tile = kvbuffer.dram_tile %c[%row, %col] valid(%rows, %cols) : !out -> !c_tile
    kvbuffer.fragment_store %rounded, %c_tile : !c, !c_tile
    gpu.return
  }
}
