# 8-bit floats to f32 and back, and to 16-bit floats, all codes of each format, on
# the emulator.
# RUN: %python %s
"""Compares with the definition of each format, and rounding with what numpy finds
to be the nearest value."""

import numpy as np

import kvbuf

FORMATS = {"f8E4M3FN": (3, 7), "f8E5M2": (2, 15), "f8E4M3FNUZ": (3, 8),
           "f8E5M2FNUZ": (2, 16)}
N = 4096

TEXT = """
gpu.module @m {
  gpu.func @kernel(%codes: memref<256xTYPE> {kvbuffer.name = "codes"},
                   %values: memref<256xf32> {kvbuffer.name = "values"},
                   %half: memref<256xf32> {kvbuffer.name = "half"},
                   %brain: memref<256xf32> {kvbuffer.name = "brain"},
                   %alone: memref<256xf32> {kvbuffer.name = "alone"},
                   %x: memref<4096xf32> {kvbuffer.name = "x"},
                   %y: memref<4096xTYPE> {kvbuffer.name = "y"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>,
                         known_block_size = array<i32: 64, 1, 1>, kvbuffer.grid = [1, 1, 1]} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %step = arith.constant 256 : index
    %n = arith.constant 4096 : index
    %t = gpu.thread_id x
    %first = arith.muli %t, %c4 : index
    %a = vector.load %codes[%first] : memref<256xTYPE>, vector<4xTYPE>
    %b = arith.extf %a : vector<4xTYPE> to vector<4xf32>
    vector.store %b, %values[%first] : memref<256xf32>, vector<4xf32>
    %h = arith.extf %a : vector<4xTYPE> to vector<4xf16>
    %hf = arith.extf %h : vector<4xf16> to vector<4xf32>
    vector.store %hf, %half[%first] : memref<256xf32>, vector<4xf32>
    %g = arith.extf %a : vector<4xTYPE> to vector<4xbf16>
    %gf = arith.extf %g : vector<4xbf16> to vector<4xf32>
    vector.store %gf, %brain[%first] : memref<256xf32>, vector<4xf32>
    %two = vector.load %codes[%first] : memref<256xTYPE>, vector<2xTYPE>
    %w = arith.extf %two : vector<2xTYPE> to vector<2xbf16>
    %wf = arith.extf %w : vector<2xbf16> to vector<2xf32>
    vector.store %wf, %alone[%first] : memref<256xf32>, vector<2xf32>
    scf.for %i = %first to %n step %step {
      %c = vector.load %x[%i] : memref<4096xf32>, vector<4xf32>
      %d = arith.truncf %c : vector<4xf32> to vector<4xTYPE>
      vector.store %d, %y[%i] : memref<4096xTYPE>, vector<4xTYPE>
    }
    gpu.return
  }
}
"""


def definition(name):
    mantissa, bias = FORMATS[name]
    codes = np.arange(256)
    a, sign = codes & 0x7F, np.where(codes & 0x80, -1.0, 1.0)
    exponent, part, one = a >> mantissa, a & ((1 << mantissa) - 1), 1 << mantissa
    value = np.where(exponent == 0, part * 2.0 ** (1 - bias - mantissa),
                     (one + part) * 2.0 ** (exponent - bias - mantissa)) * sign
    if name == "f8E4M3FN":
        value[a == 0x7F] = np.nan
    elif name == "f8E5M2":
        value[a == 0x7C] = sign[a == 0x7C] * np.inf
        value[a > 0x7C] = np.nan
    else:
        value[0x80] = np.nan
    return value


def nearest(x, name):
    """The codes of the nearest elements, ties to even codes."""
    values = definition(name)
    positive = values[:0x80]
    top = np.nanmax(positive[np.isfinite(positive)])
    finite = np.flatnonzero(np.isfinite(positive))
    last = int(np.flatnonzero(positive == top)[0])
    # The first value that is none: where the next element would be.
    beyond = 2 * top - positive[last - 1]
    table = np.append(positive[finite], beyond)
    a = abs(x.astype(np.float64))
    high = np.clip(np.searchsorted(table, a), 1, len(table) - 1)
    low = high - 1
    up = table[high] - a
    down = a - table[low]
    code = np.where((up < down) | ((up == down) & (high % 2 == 0)), high, low)
    code = np.where(a >= beyond, last + 1, code)
    fnuz = name.endswith("FNUZ")
    nan = {"f8E4M3FN": 0x7F, "f8E5M2": 0x7E}.get(name, 0x80)
    code = np.where(code > last, 0x7C if name == "f8E5M2" else nan, code)
    code = np.where(np.isnan(x), nan, code)
    sign = np.where(np.signbit(x), 0x80, 0)
    if fnuz:
        sign = np.where(code == 0, 0, sign)
    return (code | sign).astype(np.uint8)


rng = np.random.default_rng()
for name in FORMATS:
    # Chips that multiply a format have an instruction to widen by.
    for chip in ("sm_80", "gfx942", *["sm_90", "gfx950"] * (not name.endswith("FNUZ"))):
        kernel = kvbuf.compile(TEXT.replace("TYPE", name), target=chip,
                               machine_code=False)
        values = definition(name)
        # Elements, points half-way between them, and their neighbours; any bits.
        finite = np.sort(values[np.isfinite(values)]).astype(np.float32)
        middle = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
        edges = np.concatenate([finite, middle, np.nextafter(middle, np.inf),
                                np.nextafter(middle, -np.inf), 1.0625 * finite,
                                np.float32([np.inf, -np.inf, np.nan, 0.0, -0.0])])
        rest = N - len(edges)
        x = np.concatenate([edges, np.ldexp(rng.standard_normal(rest // 2), rng.integers(
            -20, 20, rest // 2)), rng.integers(0, 1 << 32, rest - rest // 2, np.uint64)
            .astype(np.uint32).view(np.float32)]).astype(np.float32)
        # Kernels flush what is no normal f32; to these formats it is nothing.
        codes = np.arange(256, dtype=np.uint8)
        decoded, y = np.zeros(256, np.float32), np.zeros(N, np.uint8)
        wide = {w: np.full(256, 7, np.float32) for w in ("half", "brain", "alone")}
        kernel(codes=codes, values=decoded, x=x, y=y, **wide)
        pairs = np.arange(256) % 4 < 2
        for label, got in wide.items():
            where = pairs if label == "alone" else np.full(256, True)
            np.testing.assert_array_equal(got[where], values.astype(np.float32)[where],
                                          f"{name} {chip} {label}")
            np.testing.assert_array_equal(np.signbit(got)[where & (values == 0)],
                                          np.signbit(values)[where & (values == 0)],
                                          f"{name} {chip} {label} zeros")
        np.testing.assert_array_equal(decoded, values.astype(np.float32), name)
        np.testing.assert_array_equal(np.signbit(decoded)[values == 0],
                                      np.signbit(values)[values == 0])
        wanted = nearest(x, name)
        bad = np.flatnonzero(y != wanted)
        assert not len(bad), (name, chip, len(bad), x[bad[:4]], y[bad[:4]], wanted[bad[:4]])
