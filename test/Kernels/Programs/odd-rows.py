# Tiles whose rows are no power of two, in programs of one's own, on the emulator.
# RUN: rm -rf %t && mkdir %t
# RUN: %python %s sm_80 sm_90a
# RUN: %if ld.lld %{ %python %s gfx942 gfx950 gfx1250 %}
"""y = a b of tiles of 48 x 96, 96 x 80 and 48 x 160 elements, against float64. Blocks of
columns lie side by side in LDS, each with all rows of the tile: where those are no power
of two, waves copy other parts of them, by instructions whose rows divide theirs, and
swizzles stay in a row.

    odd-rows.py CHIP...
"""

import itertools
import sys

import numpy as np

import kvbuf

RNG = np.random.default_rng()
PROGRAM = """
#schedule = #kvbuffer.schedule<BM = {size}, BN = 64, stages = 1, warps = {warps}>
#abuf = #kvbuffer.kv_buffer<{m}x{k}xbf16{more}, open>
#bbuf = #kvbuffer.kv_buffer<{rows}x{cols}xbf16{more}, open>
!in = memref<?x?xbf16, strided<[?, 1]>>
!out = memref<?x?xf32, strided<[?, 1]>>
!acc = !kvbuffer.fragment<{m}x{n}xf32, acc>
gpu.module @m {{
  gpu.func @product(%a: !in {{kvbuffer.name = "a", kvbuffer.shape = ["m", "k"]}},
                    %b: !in {{kvbuffer.name = "b", kvbuffer.shape = ["rows", "cols"]}},
                    %y: !out {{kvbuffer.name = "y", kvbuffer.shape = ["m", "n"], kvbuffer.access = "write"}})
      kernel attributes {{kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]}} {{
    %c0 = arith.constant 0 : index
    %m = arith.constant {m} : index
    %n = arith.constant {n} : index
    %k = arith.constant {k} : index
    %rows = arith.constant {rows} : index
    %cols = arith.constant {cols} : index
    %a_slot = kvbuffer.alloc : !kvbuffer.buffer<#abuf>
    %b_slot = kvbuffer.alloc : !kvbuffer.buffer<#bbuf>
    %a_tile = kvbuffer.dram_tile %a[%c0, %c0] valid(%m, %k) : !in -> !kvbuffer.tile<{m}x{k}xbf16>
    %b_tile = kvbuffer.dram_tile %b[%c0, %c0] valid(%rows, %cols) : !in -> !kvbuffer.tile<{rows}x{cols}xbf16>
    %a_token = kvbuffer.dram_load %a_tile into %a_slot : !kvbuffer.tile<{m}x{k}xbf16>, !kvbuffer.buffer<#abuf>
    %b_token = kvbuffer.dram_load %b_tile into %b_slot : !kvbuffer.tile<{rows}x{cols}xbf16>, !kvbuffer.buffer<#bbuf>
    %as, %bs = kvbuffer.lds_stage %a_token, %b_token : !kvbuffer.token<#abuf>, !kvbuffer.token<#bbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %af = kvbuffer.fragment_load %as[0, 0] : !kvbuffer.staged<#abuf> -> !kvbuffer.fragment<{m}x{k}xbf16, a>
    %bf = kvbuffer.fragment_load %bs[0, 0] contracted({by}) : !kvbuffer.staged<#bbuf> -> !kvbuffer.fragment<{rows}x{cols}xbf16, b>
    %s = kvbuffer.mma %af, %bf, %zero {turned} : !kvbuffer.fragment<{m}x{k}xbf16, a>, !kvbuffer.fragment<{rows}x{cols}xbf16, b>, !acc
    %y_tile = kvbuffer.dram_tile %y[%c0, %c0] valid(%m, %n) : !out -> !kvbuffer.tile<{m}x{n}xf32>
    kvbuffer.fragment_store %s, %y_tile : !acc, !kvbuffer.tile<{m}x{n}xf32>
    gpu.return
  }}
}}
"""


def check(chip, m, n, k, warps, columns, more=""):
    """`columns`: whether B's columns are contracted, n x k, or its rows, k x n."""
    name = f"{chip}: {m} x {n} x {k}, {warps} warps, columns={columns}{more}"
    rows, cols = (n, k) if columns else (k, n)
    source = PROGRAM.format(
        m=m, n=n, k=k, rows=rows, cols=cols, warps=warps, more=more,
        size=1 << (m - 1).bit_length(), by="cols" if columns else "rows",
        turned="{transpose_b}" if columns else "")
    if chip == "gfx942" and not columns and k & k - 1:
        # It reads no rows that lie turned, and turns powers of two.
        try:
            kvbuf.compile(source, target=chip, machine_code=False)
        except kvbuf.Error as error:
            assert f"turns {k} rows on their way into LDS" in str(error), error
            return
        raise AssertionError(f"{name}: no error")
    a, b = (kvbuf.to_bf16(RNG.standard_normal(x)) for x in ((m, k), (rows, cols)))
    exact = kvbuf.from_bf16(b).astype(np.float64)
    exact = kvbuf.from_bf16(a).astype(np.float64) @ (exact.T if columns else exact)
    y = np.full((m, n), np.nan, np.float32)
    kvbuf.compile(source, target=chip, machine_code=False)(a=a, b=b, y=y)
    # Sums of up to 160 products in f32.
    np.testing.assert_allclose(y, exact, rtol=0, atol=2e-4, err_msg=name)


for chip, columns in itertools.product(sys.argv[1:], (True, False)):
    check(chip, 48, 96, 64, 1, columns)
    check(chip, 64, 96, 96, 4, columns)
    check(chip, 96, 80 if columns else 64, 160, 1, columns)
    check(chip, 32, 64, 160, 2, columns, ", policy = register_staged")
print("ok")
