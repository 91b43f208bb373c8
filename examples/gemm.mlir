// C = A B^T: A is m x k, B is n x k, C is m x n, any sizes, rows any distance
// apart. A program of the tile stage, written by hand; no pass knows it.
//
//   kvbuf-compile examples/gemm.mlir --target=sm_80 -o gemm.kvbuf
//   c = kvbuf.load("gemm.kvbuf")(a=a, b=b)                           # Python
//
// A block computes one tile of C and walks along k in windows of both matrices.
// What a window has beyond the end of a matrix reads as zero, and is not stored.
// `kvbuf-run-ahead` pipelines the loop. C = A B: examples/gemm_nn.mlir.

#schedule = #kvbuffer.schedule<BM = 128, BN = 128, stages = 3>
#abuf = #kvbuffer.kv_buffer<128x64xbf16, open>
#bbuf = #kvbuffer.kv_buffer<128x64xbf16, open>

!in = memref<?x?xbf16, strided<[?, 1]>>
!out = memref<?x?xbf16, strided<[?, 1]>>
!a_tile = !kvbuffer.tile<128x64xbf16>
!b_tile = !kvbuffer.tile<128x64xbf16>
!c_tile = !kvbuffer.tile<128x128xbf16>
!a = !kvbuffer.fragment<128x64xbf16, a>
!b = !kvbuffer.fragment<128x64xbf16, b>
!acc = !kvbuffer.fragment<128x128xf32, acc>
!c = !kvbuffer.fragment<128x128xbf16, acc>

gpu.module @gemm_module {
  gpu.func @gemm(%a: !in {kvbuffer.name = "a", kvbuffer.shape = ["m", "k"]},
                 %b: !in {kvbuffer.name = "b", kvbuffer.shape = ["n", "k"]},
                 %c: !out {kvbuffer.name = "c", kvbuffer.shape = ["m", "n"]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %bm = arith.constant 128 : index
    %bn = arith.constant 128 : index
    %bk = arith.constant 64 : index
    %m = memref.dim %a, %c0 : !in
    %n = memref.dim %b, %c0 : !in
    %k = memref.dim %a, %c1 : !in

    // An item is a tile of C. Tiles above each other read the same part of B, tiles
    // side by side the same part of A: blocks that run at the same time get strips.
    %tile_m, %tile_n = kvbuffer.work_item [<"m" by 128, sharing = all>, <"n" by 128, sharing = all>]
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
