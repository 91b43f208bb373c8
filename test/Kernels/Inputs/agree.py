"""Checks that outputs in bf16 agree.  agree.py FIRST.npy OTHER.npy...

Each is a rounding of nearly the same number, so they differ by one unit in the
last place where it falls near the middle, and by what rounding the weights P to
bf16 may add: 2^-9 of weights that sum to 1, times values of a few units, on either
side."""

import math
import struct
import sys

import npyfile


def load(path):
    header, data = npyfile.load(path)
    assert npyfile.width(header) == 2, path
    words = struct.unpack(f"<{len(data) // 2}H", data)
    return header["shape"], [struct.unpack("<f", struct.pack("<I", w << 16))[0]
                             for w in words]


def first_difference(a, b):
    for i, (x, y) in enumerate(zip(a, b)):
        size = max(abs(x), abs(y), 2.0 ** -7)
        ulp = 2.0 ** (math.floor(math.log2(size)) - 7)
        if not abs(x - y) <= ulp + 2.0 ** -8:
            return f"element {i}: {x} and {y}"
    return None


shape, first = load(sys.argv[1])
assert any(first), "all zero"
for path in sys.argv[2:]:
    other_shape, other = load(path)
    assert other_shape == shape, path
    difference = first_difference(first, other)
    assert not difference, f"{path}: {difference}"
# The comparison notices rows that are exchanged.
row = shape[-1] * shape[-2]
assert first_difference(first, first[row:] + first[:row])
