"""Checks that the first N rows of an output see nothing, and that others do.
  rows.py O.npy LSE.npy N      O: 16-bit words or f16, [batch, rows, heads, size];
                               LSE: f32, [batch, heads, rows]"""

import math
import struct
import sys


def load(path):
    """Shape, element bytes and data of a C-ordered .npy file."""
    with open(path, "rb") as file:
        assert file.read(6) == b"\x93NUMPY", path
        major, _ = file.read(2)
        (size,) = struct.unpack("<I" if major > 1 else "<H",
                                file.read(4 if major > 1 else 2))
        header = eval(file.read(size).decode(), {"__builtins__": {}})
        assert not header["fortran_order"], path
        return header["shape"], int(header["descr"][2:]), file.read()


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
