"""Writes a page table of one sequence as .npy: table.py OUT.npy ID..."""

import struct
import sys

ids = [int(text) for text in sys.argv[2:]]
header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': (1, {len(ids)})}}"
header += " " * (-(len(header) + 11) % 64) + "\n"
with open(sys.argv[1], "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
               header.encode() + struct.pack(f"<{len(ids)}i", *ids))
