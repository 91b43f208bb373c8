# Indices that a map's region reads from outside of it, of more than 32 bits and of all
# of 32, on the emulator.
# RUN: %python %s sm_80
# RUN: %python %s sm_90a
# RUN: %if ld.lld %{ %python %s gfx950 %}
"""A program of the tile stage whose map marks the columns before an index that a tensor
holds, and those whose distance from another one is positive.

    map-outer-indices.py CHIP
"""

import sys

import numpy as np

import kvbuf

TEXT = """
!t = memref<?x16x1x32xf32, strided<[?, ?, ?, 1]>>
!f = !kvbuffer.fragment<16x32xf32, acc>
gpu.module @m {
  gpu.func @f(%s: !t {kvbuffer.name = "s", kvbuffer.shape = ["batch", 16, 1, 32]},
              %wide: memref<?xi64> {kvbuffer.name = "wide", kvbuffer.shape = ["batch"]},
              %word: memref<?xi32> {kvbuffer.name = "word", kvbuffer.shape = ["batch"]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.grid = ["batch", 1, 1],
                         kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 32, warps = 1, SHAPE>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %b = gpu.block_id x
    %w = memref.load %wide[%b] : memref<?xi64>
    %end = arith.index_cast %w : i64 to index
    %n = memref.load %word[%b] : memref<?xi32>
    %from = arith.index_cast %n : i32 to index
    %twice = arith.muli %from, %from : index
    %zero = kvbuffer.fragment_fill 0.0 : !f
    %marked = kvbuffer.map %zero at(%c0, %c0) : !f -> !f {
    ^bb0(%x: f32, %row: index, %col: index):
      %one = arith.constant 1.0 : f32
      %two = arith.constant 2.0 : f32
      %four = arith.constant 4.0 : f32
      %none = arith.constant 0 : index
      %before = arith.cmpi slt, %col, %end : index
      %a = arith.select %before, %one, %x : f32
      %apart = arith.subi %col, %from : index
      %behind = arith.cmpi sgt, %apart, %none : index
      %d = arith.select %behind, %two, %x : f32
      %under = arith.cmpi slt, %row, %twice : index
      %e = arith.select %under, %four, %x : f32
      %g = arith.addf %a, %d : f32
      %h = arith.addf %g, %e : f32
      kvbuffer.yield %h : f32
    }
    %tile = kvbuffer.dram_tile %s[%b, %c0, %c0] valid(%c16) : !t -> !kvbuffer.tile<16x32xf32>
    kvbuffer.fragment_store %marked, %tile : !f, !kvbuffer.tile<16x32xf32>
    gpu.return
  }
}
"""
WIDE = np.array([7, 2**32 + 3, -2**32 + 20, 2**31, -2**63, 2**63 - 1, 2**29 + 1, -1, 9], np.int64)
WORD = np.array([5, -2**31, 2**31 - 1, -2**30 - 9, 2**29 + 4, 2**16, 3, 0, -2**30], np.int32)


def main():
    amd = sys.argv[1].startswith("gfx")
    shape = "mma_shape = [16, 16, 32], swap_a_b = true" if amd else "mma_shape = [16, 8, 16]"
    run = kvbuf.compile(TEXT.replace("SHAPE", shape), target=sys.argv[1], machine_code=False)
    s = np.full((len(WIDE), 16, 1, 32), np.nan, np.float32)
    run(s=s, wide=WIDE, word=WORD)
    row, col = np.arange(16)[None, :, None], np.arange(32)[None, None]
    wide, word = WIDE[:, None, None], WORD[:, None, None].astype(np.int64)
    expected = (col < wide) + 2 * (col - word > 0) + 4 * (row < word * word)
    s = s[:, :, 0]
    if (s != expected).any():
        sys.exit(f"wrong for items {sorted(set(np.nonzero(s != expected)[0]))}")


main()
