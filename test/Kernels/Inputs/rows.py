"""Checks that the first N rows of an output see nothing, and that others do.
  rows.py O.npy LSE.npy N      O: 16-bit words or f16, [batch, rows, heads, size];
                               LSE: f32, [batch, heads, rows]"""

import math
import struct
import sys

import npyfile


def load(path):
    header, data = npyfile.load(path)
    return header["shape"], npyfile.width(header), data


(batch, rows, heads, size), width, o = load(sys.argv[1])
lse_shape, lse_width, lse = load(sys.argv[2])
assert width == 2 and lse_width == 4 and lse_shape == (batch, heads, rows)
lse = struct.unpack(f"<{batch * heads * rows}f", lse)
empty = int(sys.argv[3])
for b in range(batch):
    for i in range(rows):
        for h in range(heads):
            at = ((b * rows + i) * heads + h) * size * width
            zero = not any(o[at:at + size * width])
            value = lse[(b * heads + h) * rows + i]
            place = f"batch {b}, row {i}, head {h}"
            assert zero == (i < empty), f"{place}: zero is {zero}"
            assert (value == -math.inf) == (i < empty), f"{place}: LSE {value}"
            assert not math.isnan(value), f"{place}: LSE is NaN"
