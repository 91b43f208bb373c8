"""Inputs of few pages with a component that all queries and keys share, as real
keys have one.

shared.py SCORE SPREAD QUERIES KEYS PREFIX [DTYPE]
    writes PREFIX.q.npy, .k.npy, .v.npy and .table.npy: one sequence and head of
    size 64 (scale 1/8) whose scores are normally distributed around SCORE, in
    four pages of 64 keys that its table repeats; KEYS counts the queries' own
    and is a multiple of 64. DTYPE: bf16 (the default) or f16."""

import random
import struct
import sys

SIZE = PAGE = 64
PAGES = 4

score, spread = float(sys.argv[1]), float(sys.argv[2])
queries, keys = int(sys.argv[3]), int(sys.argv[4])
prefix, dtype = sys.argv[5], (sys.argv[6:] or ["bf16"])[0]
assert keys % PAGE == 0 and dtype in ("bf16", "f16")


def save(name, shape, descr, data):
    header = repr({"descr": descr, "fortran_order": False, "shape": shape})
    header = header.encode() + b"\n"
    with open(f"{prefix}.{name}.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
                   header + data)


def tensor(name, shape, mean, deviation):
    count = shape[0] * shape[1] * SIZE
    numbers = [random.gauss(mean, deviation) for _ in range(count)]
    if dtype == "f16":
        return save(name, shape, "<f2", struct.pack(f"<{count}e", *numbers))
    # The upper halves of f32.
    data = struct.pack(f"<{count}f", *numbers)
    save(name, shape, "<V2", b"".join(data[i + 2:i + 4]
                                      for i in range(0, 4 * count, 4)))


random.seed(" ".join(sys.argv[1:5]))
# Products of sums: SIZE * a * a * scale in all, and the keys' noise on a, whose
# part has the deviation a * sqrt(SIZE) * scale = a times theirs. Queries differ a
# little, so that their maxima are rounded differently.
a = (score * 8 / SIZE) ** 0.5
tensor("q", (1, queries, 1, SIZE), a, a / 50)
tensor("k", (PAGES, PAGE, 1, SIZE), a, spread / a)
tensor("v", (PAGES, PAGE, 1, SIZE), 0, 1)
ids = [random.randrange(PAGES) for _ in range(keys // PAGE)]
save("table", (1, len(ids)), "<i4", struct.pack(f"<{len(ids)}i", *ids))
