"""Writes integers that are normally distributed around 0 as .npy, so that sums of
products have no rounding: integers.py SHAPE DEVIATION OUT; SHAPE as 1,70,1,128.
f16, of magnitudes up to 255, which bf16 has, too."""

import random
import struct
import sys

shape = tuple(int(extent) for extent in sys.argv[1].split(","))
deviation, path = float(sys.argv[2]), sys.argv[3]
count = 1
for extent in shape:
    count *= extent
random.seed(sys.argv[1] + path[-6:])
numbers = [max(-255, min(255, round(random.gauss(0, deviation)))) for _ in range(count)]
header = repr({"descr": "<f2", "fortran_order": False, "shape": shape}).encode() + b"\n"
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header +
               struct.pack(f"<{count}e", *numbers))
