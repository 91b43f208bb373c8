# A program by hand whose rows several warps share, on the emulator.
# RUN: %python %s %bin/kvbuf-compile sm_80
# RUN: %python %s %bin/kvbuf-compile sm_90a
# RUN: %python %s %bin/kvbuf-compile gfx942
# RUN: %python %s %bin/kvbuf-compile gfx950
"""S = A B^T, times each row's maximum and sum; and that, rounded, times V. No
softmax, no mask. The first lines say a grid of warps, rows x columns: in the type
of S's accumulators, or by the schedule.

    rows.py KVBUF_COMPILE CHIP

Each barrier that the lowering has put between warps is taken out in turn: the
emulator must say so.
"""

import pathlib
import subprocess
import sys
import unittest

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import from_bf16, to_bf16

CHIP = sys.argv.pop()
COMPILER = sys.argv.pop()
RNG = np.random.default_rng()
M, N, K, D = 64, 64, 32, 64
#: Instruction, transposed products or not, buffers whose rows are contracted.
SHAPES = {"sm_80": ([16, 8, 16], "mma_sync", False, ""),
          "sm_90a": ([16, 8, 16], "mma_sync", False, ""),
          "gfx942": ([16, 16, 16], "mfma", True,
                     ", policy = register_staged, order = cols"),
          "gfx950": ([16, 16, 32], "mfma", True, "")}
#: What meets warps at the target stage.
BARRIER = {"sm": "nvvm.barrier", "gf": "rocdl.s.barrier"}[CHIP[:2]]


def program(rows, cols, by_type, repeats=1, sums_only=False):
    shape, unit, swapped, turned = SHAPES[CHIP]
    group = 2 if CHIP == "gfx942" else 1
    swap = ", swap_a_b = true" if swapped else ""
    layout = (f"#kvbuffer.mma<{unit}, acc, shape = {shape}, "
              f"{f'group = {group}, ' if group > 1 else ''}"
              f"warps = [{rows}, {cols}]{', swapped = true' if swapped else ''}>")
    grid = "" if by_type else f", warp_cols = {cols}"
    named = f", {layout}" if by_type else ""
    body = f"""\
      %all = kvbuffer.row_reduce sum %dots : !s -> !row
      %twice = kvbuffer.rescale %dots, %all : !s, !row
      %next = kvbuffer.rescale %nothing, %all : !o, !row""" if sums_only else f"""\
      %top = kvbuffer.row_reduce maximum %dots : !s -> !row
      %all = kvbuffer.row_reduce sum %dots : !s -> !row
      %once = kvbuffer.rescale %dots, %top : !s, !row
      %twice = kvbuffer.rescale %once, %all : !s, !row
      %p = kvbuffer.fragment_convert %twice : !s -> !kvbuffer.fragment<{M}x{N}xbf16, a>
      %next = kvbuffer.mma %p, %vf, %nothing
        : !kvbuffer.fragment<{M}x{N}xbf16, a>, !kvbuffer.fragment<{N}x{D}xbf16, b>, !o"""
    return f"""
#schedule = #kvbuffer.schedule<BM = {M}, BN = {N}, BK = 32, stages = 1, warps = {rows * cols}, mma_shape = {shape}{swap}{grid}>
#abuf = #kvbuffer.kv_buffer<{M}x{K}xbf16, BK = 32, stages = 1>
#bbuf = #kvbuffer.kv_buffer<{N}x{K}xbf16, BK = 32, stages = 1>
#vbuf = #kvbuffer.kv_buffer<{N}x{D}xbf16, BK = 32, stages = 1{turned}>
!in = memref<?x?xbf16, strided<[?, 1]>>
!s = !kvbuffer.fragment<{M}x{N}xf32, acc{named}>
!o = !kvbuffer.fragment<{M}x{D}xf32, acc{named}>
!row = !kvbuffer.fragment<{M}x1xf32, row>
!tile = !kvbuffer.tile<{M}x{N}xbf16>
gpu.module @rows_module {{
  gpu.func @rows(%a: !in {{kvbuffer.name = "a", kvbuffer.shape = ["m", {K}]}},
                 %b: !in {{kvbuffer.name = "b", kvbuffer.shape = ["n", {K}]}},
                 %v: !in {{kvbuffer.name = "v", kvbuffer.shape = ["n", {D}]}},
                 %s: !in {{kvbuffer.name = "s", kvbuffer.shape = ["m", {N}]}},
                 %o: !in {{kvbuffer.name = "o", kvbuffer.shape = ["m", {D}]}})
      kernel attributes {{kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule,
                         kvbuffer.grid = [1, 1, 1]}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %repeats = arith.constant {repeats} : index
    %m = memref.dim %a, %c0 : !in
    %n = memref.dim %b, %c0 : !in
    %as = kvbuffer.alloc : !kvbuffer.buffer<#abuf>
    %bs = kvbuffer.alloc : !kvbuffer.buffer<#bbuf>
    %vs = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
    %at = kvbuffer.dram_tile %a[%c0, %c0] valid(%m, %c64) : !in -> !kvbuffer.tile<{M}x{K}xbf16>
    %bt = kvbuffer.dram_tile %b[%c0, %c0] valid(%n, %c64) : !in -> !kvbuffer.tile<{N}x{K}xbf16>
    %vt = kvbuffer.dram_tile %v[%c0, %c0] valid(%n, %c64) : !in -> !kvbuffer.tile<{N}x{D}xbf16>
    %a1 = kvbuffer.dram_load %at into %as[%c0] : !kvbuffer.tile<{M}x{K}xbf16>, !kvbuffer.buffer<#abuf>
    %b1 = kvbuffer.dram_load %bt into %bs[%c0] : !kvbuffer.tile<{N}x{K}xbf16>, !kvbuffer.buffer<#bbuf>
    %v1 = kvbuffer.dram_load %vt into %vs[%c0] : !kvbuffer.tile<{N}x{D}xbf16>, !kvbuffer.buffer<#vbuf>
    %a2, %b2, %v2 = kvbuffer.lds_stage %a1, %b1, %v1 : !kvbuffer.token<#abuf>, !kvbuffer.token<#bbuf>, !kvbuffer.token<#vbuf>
    %af = kvbuffer.fragment_load %a2[0, 0] contracted(cols) : !kvbuffer.staged<#abuf> -> !kvbuffer.fragment<{M}x{K}xbf16, a>
    %bf = kvbuffer.fragment_load %b2[0, 0] contracted(cols) : !kvbuffer.staged<#bbuf> -> !kvbuffer.fragment<{N}x{K}xbf16, b>
    %vf = kvbuffer.fragment_load %v2[0, 0] contracted(rows) : !kvbuffer.staged<#vbuf> -> !kvbuffer.fragment<{N}x{D}xbf16, b>
    %none = kvbuffer.fragment_fill 0.0 : !s
    %dots = kvbuffer.mma %af, %bf, %none {{transpose_b}}
      : !kvbuffer.fragment<{M}x{K}xbf16, a>, !kvbuffer.fragment<{N}x{K}xbf16, b>, !s
    // The same again and again: nothing but LDS changes.
    %nothing = kvbuffer.fragment_fill 0.0 : !o
    %scores, %sum = scf.for %i = %c0 to %repeats step %c1 iter_args(%x = %none, %y = %nothing) -> (!s, !o) {{
{body}
      scf.yield %twice, %next : !s, !o
    }}
    %s16 = kvbuffer.fragment_convert %scores : !s -> !kvbuffer.fragment<{M}x{N}xbf16, acc{named}>
    %o16 = kvbuffer.fragment_convert %sum : !o -> !kvbuffer.fragment<{M}x{D}xbf16, acc{named}>
    %st = kvbuffer.dram_tile %s[%c0, %c0] valid(%m, %c64) : !in -> !tile
    %ot = kvbuffer.dram_tile %o[%c0, %c0] valid(%m, %c64) : !in -> !tile
    kvbuffer.fragment_store %s16, %st : !kvbuffer.fragment<{M}x{N}xbf16, acc{named}>, !tile
    kvbuffer.fragment_store %o16, %ot : !kvbuffer.fragment<{M}x{D}xbf16, acc{named}>, !tile
    gpu.return
  }}
}}
"""


class Rows(unittest.TestCase):
    def setUp(self):
        self.a, self.b, self.v = (to_bf16(RNG.standard_normal(shape)) for shape in
                                  ((50, K), (N, K), (N, D)))
        dots = from_bf16(self.a) @ from_bf16(self.b).T
        self.s = dots * dots.max(-1, keepdims=True) * dots.sum(-1, keepdims=True)
        self.o = from_bf16(to_bf16(self.s)) @ from_bf16(self.v)

    def run_text(self, text):
        """What the emulator says; the largest errors, by a row's largest value."""
        s, o = (np.full((50, n), 0x7FC0, np.uint16) for n in (N, D))
        try:
            kvbuf.compile(text, target=CHIP,
                          machine_code=False)(a=self.a, b=self.b, v=self.v, s=s, o=o)
        except kvbuf.Error as error:
            return str(error), None
        return "", max(
            (abs(from_bf16(x) - exact).max(-1) / abs(exact).max(-1)).max()
            for x, exact in ((s, self.s), (o, self.o)))

    def check(self, *args):
        message, error = self.run_text(program(*args))
        self.assertEqual(message, "")
        # bfloat16's rounding, and half of one of P for O.
        self.assertLess(error, 2 ** -6)

    def test_grids(self):
        for rows, cols, by_type in (2, 2, True), (1, 4, False), (4, 1, True):
            with self.subTest(rows=rows, cols=cols):
                self.check(rows, cols, by_type)

    def test_barriers(self):
        # One for the tiles; one for each of two reductions and an exchange. Where
        # nothing else meets in the loop, two for a reduction.
        for sums_only, count in (False, 4), (True, 3):
            text = program(2, 2, False, repeats=2, sums_only=sums_only)
            lines = subprocess.run(
                [COMPILER, "-", f"--target={CHIP}", "--emit=target"], input=text,
                check=True, capture_output=True, text=True).stdout.split("\n")
            barriers = [i for i, line in enumerate(lines) if BARRIER in line]
            self.assertEqual(self.run_text("\n".join(lines))[0], "")
            self.assertEqual(len(barriers), count)
            for i in barriers[1:]:
                message, _ = self.run_text("\n".join(lines[:i] + lines[i + 1:]))
                self.assertRegex(message, "race|which nothing has written")


if __name__ == "__main__":
    unittest.main()
