"""8-bit floats, and what appends make of tokens, for tests of programs."""

import numpy as np


def float8(name):
    """The values of the 256 codes of an 8-bit float, by its definition."""
    mantissa, bias = {"f8E4M3FN": (3, 7), "f8E5M2": (2, 15),
                      "f8E4M3FNUZ": (3, 8), "f8E5M2FNUZ": (2, 16)}[name]
    codes = np.arange(256)
    a, sign = codes & 0x7F, np.where(codes & 0x80, -1.0, 1.0)
    exponent, part = a >> mantissa, a & ((1 << mantissa) - 1)
    one = 1 << mantissa
    value = np.where(exponent == 0, part * 2.0 ** (1 - bias - mantissa),
                     (one + part) * 2.0 ** (exponent - bias - mantissa))
    value = sign * value
    if name == "f8E4M3FN":
        value[a == 0x7F] = np.nan
    elif name == "f8E5M2":
        value[a == 0x7C] *= np.inf
        value[a > 0x7C] = np.nan
    else:
        value[0x80] = np.nan
    return value


def rotated(x, position, cos, sin, interleaved):
    """In float64, and the sum of the magnitudes that each element is made of. A
    position past the tables has their last row."""
    n = cos.shape[1]
    c, s = (t[min(position, len(t) - 1)].astype(np.float64) for t in (cos, sin))
    first, second = ((slice(0, 2 * n, 2), slice(1, 2 * n, 2)) if interleaved
                     else (slice(0, n), slice(n, 2 * n)))
    out, size = x.copy(), abs(x)
    a, b = x[..., first], x[..., second]
    out[..., first], out[..., second] = a * c - b * s, b * c + a * s
    size[..., first] = abs(a * c) + abs(b * s)
    size[..., second] = abs(b * c) + abs(a * s)
    return out, size
