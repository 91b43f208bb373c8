"""Writes sinks as .npy: sinks.py OUT.npy NUMBER..."""

import struct
import sys

values = [float(text) for text in sys.argv[2:]]
header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},)}}"
header += " " * (-(len(header) + 11) % 64) + "\n"
with open(sys.argv[1], "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
               header.encode() + struct.pack(f"<{len(values)}f", *values))
