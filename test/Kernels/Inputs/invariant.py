"""Bits of rows beside changed neighbours. Files hold 16-bit [batch, rows, ...].

invariant.py make SHAPE OUT   bf16, normally distributed; SHAPE as 2,70,1,128
invariant.py half SHAPE OUT MEAN
                              f16, normally distributed around MEAN
invariant.py louder IN OUT    bf16: every odd row times 32 (its maxima grow later
                              and by more), the others as they are
invariant.py first IN OUT     the first sequence alone
invariant.py slice IN OUT BEGIN END
                              these rows of every sequence
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


def make(text, path, mean=None):
    random.seed(text + path[-6:])
    shape = tuple(int(extent) for extent in text.split(","))
    count = 1
    for extent in shape:
        count *= extent
    header = {"fortran_order": False, "shape": shape}
    if mean is not None:
        numbers = [random.gauss(float(mean), 1) for _ in range(count)]
        return save(path, header | {"descr": "<f2"}, struct.pack(f"<{count}e", *numbers))
    words = [struct.unpack("<I", struct.pack("<f", random.gauss(0, 1)))[0] >> 16
             for _ in range(count)]
    save(path, header | {"descr": "<V2"}, struct.pack(f"<{count}H", *words))


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


def cut(header, data):
    begin, end = (int(text) for text in sys.argv[4:])
    count, size = rows(header)
    batch, _, *rest = header["shape"]
    assert 0 <= begin < end <= count
    return (header | {"shape": (batch, end - begin, *rest)},
            b"".join(data[(b * count + begin) * size:(b * count + end) * size]
                     for b in range(batch)))


command, a, b = sys.argv[1:4]
if command in ("make", "half"):
    make(a, b, *sys.argv[4:])
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
    save(b, *{"louder": louder, "first": first, "slice": cut}[command](header, data))
