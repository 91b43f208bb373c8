# Values of rows as inputs of a kvbuffer.map, on the emulator.
# RUN: rm -rf %t && mkdir %t
# RUN: %python %s %t sm_80 sm_90a
# RUN: %if ld.lld %{ %python %s %t gfx942 gfx950 %}
"""Each row of a product less its largest element, times its number.

    map-rows.py FOLDER CHIP...
"""

import pathlib
import subprocess
import sys

import numpy as np

import kvbuf

FOLDER = pathlib.Path(sys.argv[1])
RNG = np.random.default_rng()
PROGRAM = """
#schedule = #kvbuffer.schedule<BM = 32, BN = 64, stages = 1, warps = {warps}>
#abuf = #kvbuffer.kv_buffer<32x64xbf16, open>
#bbuf = #kvbuffer.kv_buffer<64x64xbf16, open>
!a_in = memref<?x64xbf16, strided<[?, 1]>>
!out = memref<?x64xf32, strided<[?, 1]>>
!acc = !kvbuffer.fragment<32x64xf32, acc>
!row = !kvbuffer.fragment<32x1xf32, row>
!a = !kvbuffer.fragment<32x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
gpu.module @m {{
  gpu.func @rows(%x: !a_in {{kvbuffer.name = "x", kvbuffer.shape = ["m", 64]}},
                 %w: !a_in {{kvbuffer.name = "w", kvbuffer.shape = ["n", 64]}},
                 %y: !out {{kvbuffer.name = "y", kvbuffer.shape = ["m", 64], kvbuffer.access = "write"}})
      kernel attributes {{kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]}} {{
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %x_slot = kvbuffer.alloc : !kvbuffer.buffer<#abuf>
    %w_slot = kvbuffer.alloc : !kvbuffer.buffer<#bbuf>
    %x_tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%c32, %c64) : !a_in -> !kvbuffer.tile<32x64xbf16>
    %w_tile = kvbuffer.dram_tile %w[%c0, %c0] valid(%c64, %c64) : !a_in -> !kvbuffer.tile<64x64xbf16>
    %x_token = kvbuffer.dram_load %x_tile into %x_slot : !kvbuffer.tile<32x64xbf16>, !kvbuffer.buffer<#abuf>
    %w_token = kvbuffer.dram_load %w_tile into %w_slot : !kvbuffer.tile<64x64xbf16>, !kvbuffer.buffer<#bbuf>
    %xs = kvbuffer.lds_stage %x_token : !kvbuffer.token<#abuf>
    %ws = kvbuffer.lds_stage %w_token : !kvbuffer.token<#bbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %xf = kvbuffer.fragment_load %xs[0, 0] : !kvbuffer.staged<#abuf> -> !a
    %wf = kvbuffer.fragment_load %ws[0, 0] contracted(cols) : !kvbuffer.staged<#bbuf> -> !b
    %s = kvbuffer.mma %xf, %wf, %zero {{transpose_b}} : !a, !b, !acc
    %most = kvbuffer.row_reduce maximum %s : !acc -> !row
    %t = kvbuffer.map %s, %most at(%c0, %c0) : !acc, !row -> !acc {{
    ^bb0(%e: f32, %m: f32, %i: index, %j: index):
      %less = arith.subf %e, %m : f32
      %number = arith.index_cast %i : index to i32
      %factor = arith.sitofp %number : i32 to f32
      %r = arith.mulf %less, %factor : f32
      kvbuffer.yield %r : f32
    }}
    %y_tile = kvbuffer.dram_tile %y[%c0, %c0] valid(%c32, %c64) : !out -> !kvbuffer.tile<32x64xf32>
    kvbuffer.fragment_store %t, %y_tile : !acc, !kvbuffer.tile<32x64xf32>
    gpu.return
  }}
}}
"""

x, w = (kvbuf.to_bf16(RNG.standard_normal((n, 64))) for n in (32, 64))
exact = kvbuf.from_bf16(x).astype(np.float64) @ kvbuf.from_bf16(w).T.astype(np.float64)
exact = (exact - exact.max(1, keepdims=True)) * np.arange(32)[:, None]
for chip in sys.argv[2:]:
    (FOLDER / "source.mlir").write_text(PROGRAM.format(
        warps=1 if chip.startswith("gfx") else 2))
    subprocess.run(["kvbuf-compile", FOLDER / "source.mlir", f"--target={chip}",
                    "--ptxas=none", "--no-alternatives", "-o", FOLDER / "rows.kvbuf"],
                   check=True)
    y = np.full((32, 64), np.nan, np.float32)
    kvbuf.load(FOLDER / "rows.kvbuf")(x=x, w=w, y=y)
    # Sums of 64 products in f32, times up to 31.
    np.testing.assert_allclose(y, exact, rtol=0, atol=2e-3, err_msg=chip)
for name, array in ("x", x), ("w", w), ("y", np.zeros((32, 64), np.float32)):
    np.save(FOLDER / f"{name}.npy", array)
subprocess.run(["kvbuf-tile-run", FOLDER / "source.mlir",
                *(f"--input={n}={FOLDER}/{n}.npy" for n in "xwy"),
                f"--output=y={FOLDER}/out.npy"], check=True)
np.testing.assert_allclose(np.load(FOLDER / "out.npy"), exact, rtol=0, atol=2e-3)
