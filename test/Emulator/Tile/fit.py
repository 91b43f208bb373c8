"""What `kvbuffer.fragment_fit` leaves to rows is positive, whatever the sign of its scale:
on tiles as on lanes a score that is hidden first, -inf, stays so, by a negative scale and
by one that is 0.

RUN: rm -rf %t && mkdir %t && %python %s %t
"""

import pathlib
import subprocess
import sys

import numpy as np

folder = pathlib.Path(sys.argv[1])
KERNEL = folder / "fit.mlir"
KERNEL.write_text("""
#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>
!line = memref<?x?x1x16xbf16>
!out = memref<?x?x1x8xbf16>
!acc = !kvbuffer.fragment<16x8xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!o = !kvbuffer.fragment<16x8xbf16, acc>
!tile = !kvbuffer.tile<16x8xbf16>

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @fit(%x: !line {kvbuffer.name = "x"}, %s: memref<1xf32> {kvbuffer.name = "s"},
                  %out: !out {kvbuffer.name = "out"}, %hidden: !out {kvbuffer.name = "hidden"})
        kernel attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %scale = memref.load %s[%c0] : memref<1xf32>
      %tile = kvbuffer.dram_tile %x[%c0, %c0, %c0] valid(%c16) : !line -> !kvbuffer.tile<16x16xbf16>
      %a = kvbuffer.tile_fragment %tile : !kvbuffer.tile<16x16xbf16> -> !kvbuffer.fragment<16x16xbf16, a>
      %half, %factor = kvbuffer.fragment_fit %a times(%scale)
        : !kvbuffer.fragment<16x16xbf16, a> -> !kvbuffer.fragment<16x16xf16, a>, !row
      %b = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<16x8xf16, b>
      %zero = kvbuffer.fragment_fill 0.0 : !acc
      %p = kvbuffer.mma %half, %b, %zero : !kvbuffer.fragment<16x16xf16, a>, !kvbuffer.fragment<16x8xf16, b>, !acc
      %r = kvbuffer.rescale %p, %factor : !acc, !row
      %o = kvbuffer.fragment_convert %r : !acc -> !o
      %to = kvbuffer.dram_tile %out[%c0, %c0, %c0] valid(%c16) : !out -> !tile
      kvbuffer.fragment_store %o, %to : !o, !tile
      %none = kvbuffer.fragment_fill 0xFF800000 : !acc
      %n = kvbuffer.rescale %none, %factor : !acc, !row
      %h = kvbuffer.fragment_convert %n : !acc -> !o
      %there = kvbuffer.dram_tile %hidden[%c0, %c0, %c0] valid(%c16) : !out -> !tile
      kvbuffer.fragment_store %h, %there : !o, !tile
      gpu.return
    }
  }
}
""")


def save(name, array):
    """bf16, of numbers that it has."""
    bits = (np.asarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    np.save(folder / f"{name}.npy", bits)
    return f"{name}={folder / name}.npy"


# Small integers times powers of two, whose sums are exact; zeros times 0.
x = np.random.default_rng(3).integers(-2, 3, (1, 16, 1, 16))
x[..., 4:] = 0
for scale in (0.5, -2.0, 0.0):
    x = x * (scale != 0)
    np.save(folder / "s.npy", np.array([scale], np.float32))
    subprocess.run(
        ["kvbuf-tile-run", KERNEL, "--input", save("x", x), "--input", f"s={folder}/s.npy",
         "--expect", save("hidden", np.full((1, 16, 1, 8), -np.inf)), "--expect",
         save("out", np.repeat(x.sum(-1, keepdims=True) * scale, 8, -1)),
         "--tolerance=0"], check=True)
