# The examples that reduce rows, on the emulator, against float64.
# RUN: %python %s %src sm_80
# RUN: %if ld.lld %{ %python %s %src gfx950 %}
"""Layer normalization and argmax, as programs of threads.

    row-reductions.py SOURCE CHIP
"""

import pathlib
import sys

import numpy as np

import kvbuf

FOLDER, CHIP = pathlib.Path(sys.argv[1], "examples"), sys.argv[2]
RNG = np.random.default_rng()


def layernorm():
    run = kvbuf.compile(FOLDER / "layernorm.mlir", target=CHIP)
    for rows, cols in (5, 100), (4, 33), (1, 7):
        x = kvbuf.to_bf16(RNG.standard_normal((rows, cols)) * 3 + 50)
        gamma, beta = RNG.standard_normal((2, cols)).astype(np.float32)
        y = np.full(x.shape, 0x7FC0, np.uint16)  # NaN
        run(x=x, gamma=gamma, beta=beta, y=y)
        exact = kvbuf.from_bf16(x).astype(np.float64)
        exact -= exact.mean(1, keepdims=True)
        exact /= np.sqrt((exact ** 2).mean(1, keepdims=True) + 1e-5)
        exact = exact * gamma + beta
        # A rounding to 8 bits, and sums of f32 of numbers of 50.
        limit = 2.0 ** -8 * abs(exact) + 1e-4
        error = abs(kvbuf.from_bf16(y) - exact)
        assert (error <= limit).all(), (rows, cols, (error - limit).max())


def argmax():
    run = kvbuf.compile(FOLDER / "argmax.mlir", target=CHIP)
    for rows, cols in (6, 100), (3, 31), (1, 1):
        # Few numbers, so that many are equal.
        x = RNG.integers(0, 3, (rows, cols)).astype(np.float32)
        x[0] = -np.inf
        place = np.full(rows, -1, np.int32)
        run(x=x, place=place)
        assert (place == x.argmax(1)).all(), (place, x.argmax(1))


layernorm()
argmax()
