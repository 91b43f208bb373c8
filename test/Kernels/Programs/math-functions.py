# Functions of the math dialect in a kvbuffer.map, on the emulator: as exact as
# docs/scores.md says.
# RUN: rm -rf %t && mkdir %t
# RUN: %python %s %t %src sm_80
# RUN: %if ld.lld %{ %python %s %t %src gfx950 %}
"""Computes each function of 256 numbers and compares it with float64.

    math-functions.py FOLDER SOURCE CHIP

The table of docs/scores.md names every function here and how far off it may be.
"""

import math
import pathlib
import re
import subprocess
import sys

import numpy as np

import kvbuf

FOLDER, SOURCE = map(pathlib.Path, sys.argv[1:3])
CHIP = sys.argv[3]
RNG = np.random.default_rng()
ROWS, COLS = 16, 16


def each(function):
    return np.vectorize(function, otypes=[float])


def between(low, high):
    return lambda n: RNG.uniform(low, high, n)


def sizes(low, high, signed=False):
    """Numbers of every size between two."""
    def draw(n):
        x = np.exp(RNG.uniform(np.log(low), np.log(high), n))
        return x * RNG.choice([-1, 1], n) if signed else x
    return draw


def to_ends(n):
    """Numbers between -1 and 1, half of them close to one of these."""
    near = sizes(1e-6, 0.5)(n // 2)
    ends = (1 - near) * RNG.choice([-1, 1], n // 2)
    return np.concatenate([ends, RNG.uniform(-1, 1, n - n // 2)])


# Its name; what gives its numbers; the function in float64. Of two numbers the
# second is that of the next column.
FUNCTIONS = {
    "exp": (between(-87, 88.5), np.exp),
    "exp2": (between(-125, 127), np.exp2),
    "expm1": (sizes(1e-6, 80, True), np.expm1),
    "log": (sizes(1e-37, 1e38), np.log),
    "log2": (sizes(2, 1e38), np.log2),
    "log10": (sizes(1e-37, 1e38), np.log10),
    "log1p": (sizes(1e-6, 1e30), np.log1p),
    "sqrt": (sizes(1e-37, 1e38), np.sqrt),
    "rsqrt": (sizes(1e-37, 1e38), lambda x: 1 / np.sqrt(x)),
    "cbrt": (sizes(1e-30, 1e30, True), np.cbrt),
    "sin": (between(-50000, 50000), np.sin),
    "cos": (between(-50000, 50000), np.cos),
    "tan": (sizes(1e-6, 30, True), np.tan),
    "asin": (to_ends, np.arcsin),
    "acos": (to_ends, np.arccos),
    "atan": (sizes(1e-5, 1e5, True), np.arctan),
    "atan2": (between(-100, 100), np.arctan2),
    "sinh": (sizes(1e-5, 87, True), np.sinh),
    "cosh": (between(-87, 87), np.cosh),
    "tanh": (between(-20, 20), np.tanh),
    "asinh": (sizes(1e-5, 1e30, True), np.arcsinh),
    "acosh": (lambda n: 1 + sizes(1e-4, 1e30)(n), np.arccosh),
    "atanh": (between(-0.999, 0.999), np.arctanh),
    "erf": (sizes(1e-5, 5, True), each(math.erf)),
    "erfc": (between(-5, 5), each(math.erfc)),
    "powf": (lambda n: sizes(0.1, 10)(n), np.power),
    "fpowi": (between(-3, 3), lambda x: x ** 3),
    "floor": (between(-1e6, 1e6), np.floor),
    "ceil": (between(-1e6, 1e6), np.ceil),
    "trunc": (between(-1e6, 1e6), np.trunc),
    "round": (lambda n: np.round(RNG.uniform(-99, 99, n) * 2) / 2,
              lambda x: np.copysign(np.floor(abs(x) + 0.5), x)),
    "roundeven": (lambda n: np.round(RNG.uniform(-99, 99, n) * 2) / 2, np.round),
    "copysign": (between(-9, 9), np.copysign),
    "absf": (between(-9, 9), abs),
    "minnumf": (between(-9, 9), np.minimum),
    "remf": (between(0.5, 9), np.fmod),
}
BINARY = ("atan2", "powf", "copysign", "minnumf", "remf")
# What holds at single numbers.
INF, NAN = math.inf, math.nan
SPECIAL = {
    "exp": {-INF: 0, INF: INF, NAN: NAN, 0: 1, 200: INF, -200: 0},
    "log": {0: -INF, 1: 0, INF: INF, -1: NAN},
    "sinh": {0: 0, 200: INF, -200: -INF}, "cosh": {0: 1, -200: INF},
    "asinh": {0: 0, -1e38: -math.log(2e38)}, "acosh": {1: 0, 1e38: math.log(2e38)},
    "rsqrt": {4: 0.5}, "sin": {0: 0}, "cos": {0: 1}, "fpowi": {0: 0, -2: -8},
}


def documented():
    """How far off docs/scores.md says that functions may be: of the result, or where
    it says so of 1 where the result is less."""
    text = (SOURCE / "docs" / "scores.md").read_text()
    found = {}
    for names, error, kind in re.findall(
            r"^\| (`.*`) \| (exact|[0-9e.-]+)( of 1)? \|", text, re.M):
        for name in re.findall(r"`(\w+)`", names):
            found[name] = (0.0 if error == "exact" else float(error), bool(kind))
    return found


def source():
    body = ""
    for n, name in enumerate(FUNCTIONS):
        dialect = "arith" if name in ("minnumf", "remf") else "math"
        operands = "%x, %other" if name in BINARY else "%x"
        types = "f32"
        if name == "fpowi":
            operands, types = "%x, %three", "f32, i32"
        body += f"""
    %row{n} = arith.constant {n * ROWS} : index
    %v{n} = kvbuffer.map %z at(%row{n}, %c0) : !acc -> !acc {{
    ^bb0(%ignored: f32, %i: index, %j: index):
      %x = memref.load %numbers[%i, %j] : !in
      %next = arith.addi %j, %c1 : index
      %at = arith.remui %next, %c16 : index
      %other = memref.load %numbers[%i, %at] : !in
      %r = {dialect}.{name} {operands} : {types}
      kvbuffer.yield %r : f32
    }}
    %t{n} = kvbuffer.dram_tile %y[%row{n}, %c0] valid(%c16, %c16) : !in -> !kvbuffer.tile<16x16xf32>
    kvbuffer.fragment_store %v{n}, %t{n} : !acc, !kvbuffer.tile<16x16xf32>"""
    shape, extra = ("[16, 16, 32]", ", swap_a_b = true") if "gfx" in CHIP else ("[16, 8, 16]", "")
    return f"""
#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, stages = 1, warps = 1, mma_shape = {shape}{extra}>
!in = memref<?x16xf32, strided<[?, 1]>>
!acc = !kvbuffer.fragment<16x16xf32, acc>
gpu.module @m {{
  gpu.func @functions(%numbers: !in {{kvbuffer.name = "x", kvbuffer.shape = ["m", 16]}},
                      %y: !in {{kvbuffer.name = "y", kvbuffer.shape = ["m", 16]}})
      kernel attributes {{kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %three = arith.constant 3 : i32
    %z = kvbuffer.fragment_fill 0.0 : !acc{body}
    gpu.return
  }}
}}
"""


x = np.concatenate([draw(ROWS * COLS) for draw, _ in FUNCTIONS.values()])
x = x.astype(np.float32).reshape(-1, COLS)
for n, name in enumerate(FUNCTIONS):
    special = list(SPECIAL.get(name, {}))
    x[n * ROWS, :len(special)] = special
y = np.full(x.shape, np.nan, np.float32)
(FOLDER / "source.mlir").write_text(source())
subprocess.run(["kvbuf-compile", FOLDER / "source.mlir", f"--target={CHIP}", "--ptxas=none",
                "--no-alternatives", "-o", FOLDER / "functions.kvbuf"], check=True)
kvbuf.load(FOLDER / "functions.kvbuf")(x=x, y=y)
limits = documented()
good = True
for n, (name, (_, function)) in enumerate(FUNCTIONS.items()):
    part = slice(n * ROWS, (n + 1) * ROWS)
    numbers = x[part].astype(np.float64)
    with np.errstate(all="ignore"):
        exact = (function(numbers, np.roll(numbers, -1, 1)) if name in BINARY
                 else function(numbers))
        special = SPECIAL.get(name, {})
        got = y[part].astype(np.float64)
        first = got[0, :len(special)]
        expected = np.array(list(special.values()), np.float64)
        wrong = ~(np.isclose(first, expected, 1e-6, 0, equal_nan=True))
        exact, got = exact.ravel()[len(special):], got.ravel()[len(special):]
        limit, absolute = limits[name]
        off = abs(got - exact) / np.maximum(abs(exact), 1 if absolute else 1e-37)
    print(f"{CHIP} {name}: {off.max():.2e} of {limit}, at "
          f"{numbers.ravel()[len(special):][off.argmax()]:.9g}")
    if wrong.any():
        print(f"{name} of {list(special)}: {first}, expected {expected}")
    good &= not wrong.any() and bool(off.max() <= limit)
if not good:
    sys.exit("a function is not what it should be")
