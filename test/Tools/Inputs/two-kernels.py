"""Launches the kernels of kvbuf-compile-kernels.mlir on the emulator: y is 4 x.

    two-kernels.py ARTIFACT [t]     # with a tensor t of the caller's
"""

import sys

import numpy as np

import kvbuf

x = np.arange(70, dtype=np.float32)
tensors = {name: np.full(70, np.nan, np.float32) for name in ["y", *sys.argv[2:]]}
kvbuf.load(sys.argv[1])(x=x, **tensors, device=kvbuf.Device("emulator"))
assert (tensors["y"] == 4 * x).all(), tensors["y"]
assert all((tensors[name] == 2 * x).all() for name in sys.argv[2:])
