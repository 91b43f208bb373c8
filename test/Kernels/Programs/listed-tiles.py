# A loop over tiles that a list names, as in block-sparse attention, on the emulator.
# RUN: %python %s sm_80
# RUN: %python %s sm_90a
# RUN: %python %s gfx942
# RUN: %python %s gfx950
"""O = sum of (A B_i^T) C_i over the tiles i of a list. Loads run ahead of their
iteration, and so does what tells where they load from, but not past the list's end:
the tensor ends there, and the emulator says what reads beyond it.

    listed-tiles.py CHIP
"""

import pathlib
import sys
import unittest

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import from_bf16, to_bf16

CHIP = sys.argv.pop()
RNG = np.random.default_rng(5)
M = N = D = 64
SHAPE, SWAP, TURNED = {
    "sm_80": ([16, 8, 16], "", ""), "sm_90a": ([16, 8, 16], "", ""),
    "gfx942": ([16, 16, 16], ", swap_a_b = true",
               ", policy = register_staged, order = cols"),
    "gfx950": ([16, 16, 32], ", swap_a_b = true", "")}[CHIP]
TILES = 6


def program(stages):
    return f"""
#schedule = #kvbuffer.schedule<BM = {M}, BN = {N}, BK = 32, stages = {stages}, warps = 4, mma_shape = {SHAPE}{SWAP}>
#abuf = #kvbuffer.kv_buffer<{M}x{D}xbf16, BK = 32, stages = 1>
#bbuf = #kvbuffer.kv_buffer<{N}x{D}xbf16, BK = 32, stages = {stages}>
#cbuf = #kvbuffer.kv_buffer<{N}x{D}xbf16, BK = 32, stages = {stages}{TURNED}>
!in = memref<?x?xbf16, strided<[?, 1]>>
!acc = !kvbuffer.fragment<{M}x{N}xf32, acc>
!a = !kvbuffer.fragment<{M}x{N}xbf16, a>
!b = !kvbuffer.fragment<{N}x{D}xbf16, b>
!tile = !kvbuffer.tile<{N}x{D}xbf16>
gpu.module @listed_module {{
  gpu.func @listed(%a: !in {{kvbuffer.name = "a", kvbuffer.shape = ["m", {D}]}},
                   %b: !in {{kvbuffer.name = "b", kvbuffer.shape = ["n", {D}]}},
                   %c: !in {{kvbuffer.name = "c", kvbuffer.shape = ["n", {D}]}},
                   %list: memref<?xi32> {{kvbuffer.name = "list", kvbuffer.shape = ["most"]}},
                   %count: memref<?xi32> {{kvbuffer.name = "count", kvbuffer.shape = ["one"]}},
                   %o: !in {{kvbuffer.name = "o", kvbuffer.shape = ["m", {D}]}})
      kernel attributes {{kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule,
                         kvbuffer.grid = [1, 1, 1]}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %m = memref.dim %a, %c0 : !in
    %n = memref.dim %b, %c0 : !in
    %n32 = memref.load %count[%c0] : memref<?xi32>
    %tiles = arith.index_cast %n32 : i32 to index
    %as = kvbuffer.alloc : !kvbuffer.buffer<#abuf>
    %bs = kvbuffer.alloc : !kvbuffer.buffer<#bbuf>
    %cs = kvbuffer.alloc : !kvbuffer.buffer<#cbuf>
    %at = kvbuffer.dram_tile %a[%c0, %c0] valid(%m, %c64) : !in -> !tile
    %a1 = kvbuffer.dram_load %at into %as : !tile, !kvbuffer.buffer<#abuf>
    %a2 = kvbuffer.lds_stage %a1 : !kvbuffer.token<#abuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %sum = scf.for %i = %c0 to %tiles step %c1 iter_args(%before = %zero) -> (!acc) {{
      %number = memref.load %list[%i] : memref<?xi32>
      %tile = arith.index_cast %number : i32 to index
      %row = arith.muli %tile, %c64 : index
      %left = arith.subi %n, %row : index
      %bt = kvbuffer.dram_tile %b[%row, %c0] valid(%left, %c64) : !in -> !tile
      %b1 = kvbuffer.dram_load %bt into %bs : !tile, !kvbuffer.buffer<#bbuf>
      %b2 = kvbuffer.lds_stage %b1 : !kvbuffer.token<#bbuf>
      %af = kvbuffer.fragment_load %a2[0, 0] contracted(cols) : !kvbuffer.staged<#abuf> -> !a
      %bf = kvbuffer.fragment_load %b2[0, 0] contracted(cols) : !kvbuffer.staged<#bbuf> -> !b
      %dots = kvbuffer.mma %af, %bf, %zero {{transpose_b}} : !a, !b, !acc
      %p = kvbuffer.fragment_convert %dots : !acc -> !a
      %ct = kvbuffer.dram_tile %c[%row, %c0] valid(%left, %c64) : !in -> !tile
      %c1t = kvbuffer.dram_load %ct into %cs : !tile, !kvbuffer.buffer<#cbuf>
      %c2 = kvbuffer.lds_stage %c1t : !kvbuffer.token<#cbuf>
      %cf = kvbuffer.fragment_load %c2[0, 0] contracted(rows) : !kvbuffer.staged<#cbuf> -> !b
      %next = kvbuffer.mma %p, %cf, %before : !a, !b, !acc
      scf.yield %next : !acc
    }}
    %o16 = kvbuffer.fragment_convert %sum : !acc -> !kvbuffer.fragment<{M}x{D}xbf16, acc>
    %ot = kvbuffer.dram_tile %o[%c0, %c0] valid(%m, %c64) : !in -> !tile
    kvbuffer.fragment_store %o16, %ot : !kvbuffer.fragment<{M}x{D}xbf16, acc>, !tile
    gpu.return
  }}
}}
"""


class ListedTiles(unittest.TestCase):
    def check(self, stages, numbers):
        a, b, c = (to_bf16(RNG.standard_normal(shape))
                   for shape in ((50, D), (N * TILES - 5, D), (N * TILES - 5, D)))
        exact = np.zeros((50, D))
        for i in numbers:
            rows = slice(N * i, N * (i + 1))
            exact += from_bf16(to_bf16(from_bf16(a) @ from_bf16(b[rows]).T)) @ from_bf16(c[rows])
        o = np.full((50, D), 0x7FC0, np.uint16)
        kvbuf.compile(program(stages), target=CHIP, machine_code=False)(
            a=a, b=b, c=c, list=np.array(numbers or [-1], np.int32),
            count=np.array([len(numbers)], np.int32), o=o)
        # bfloat16's rounding of O, and of sums in another order.
        self.assertLessEqual(abs(from_bf16(o) - exact).max(),
                             2 ** -7 * max(1, abs(exact).max()))

    def test_lists(self):
        for numbers in [], [3], [5, 0, 0, 2, 5]:
            with self.subTest(numbers=numbers):
                self.check(2, numbers)
        self.check(3, [1, 5, 3, 0])


if __name__ == "__main__":
    unittest.main()
