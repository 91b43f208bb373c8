"""Bits of rows beside changed neighbours. Files hold 16-bit [batch, rows, ...].

invariant.py make SHAPE OUT   bf16, normally distributed; SHAPE as 2,70,1,128
invariant.py louder IN OUT    bf16: every odd row times 32 (its maxima grow later
                              and by more), the others as they are
invariant.py first IN OUT     the first sequence alone
invariant.py same A B         whether even rows of the first sequence have the same
                              bits; exit status 1 and the first other row if not"""

import random
import struct
import sys

from npyfile import load


def save(path, header, data):
    text = repr(header).encode()
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1))
        file.write(text + b"\n" + data)


def rows(header):
    """(rows of a sequence, bytes of a row)."""
    shape = header["shape"]
    size = 2
    for extent in shape[2:]:
        size *= extent
    return shape[1], size


def make(text, path):
    random.seed(text + path[-6:])
    shape = tuple(int(extent) for extent in text.split(","))
    count = 1
    for extent in shape:
        count *= extent
    words = [struct.unpack("<I", struct.pack("<f", random.gauss(0, 1)))[0] >> 16
             for _ in range(count)]
    save(path, {"descr": "<V2", "fortran_order": False, "shape": shape},
         struct.pack(f"<{count}H", *words))


def louder(header, data):
    count, size = rows(header)
    for row in range(1, header["shape"][0] * count, 2):
        for at in range(row * size, (row + 1) * size, 2):
            (word,) = struct.unpack_from("<H", data, at)
            if word & 0x7f80:
                struct.pack_into("<H", data, at, word + (5 << 7))
    return header, data


def first(header, data):
    count, size = rows(header)
    return header | {"shape": (1, *header["shape"][1:])}, data[:count * size]


command, a, b = sys.argv[1:]
if command == "make":
    make(a, b)
    sys.exit()
header, data = load(a)
if command == "same":
    _, other = load(b)
    count, size = rows(header)
    assert count > 2 and any(data), a
    for row in range(0, count, 2):
        span = slice(row * size, (row + 1) * size)
        if data[span] != other[span]:
            sys.exit(f"row {row} has other bits")
else:
    save(b, *{"louder": louder, "first": first}[command](header, data))
