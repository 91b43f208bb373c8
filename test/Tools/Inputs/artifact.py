"""Reads a .kvbuf file after the format's description, independently of the
library that writes it.

  artifact.py FILE             prints the section kinds, then the manifest
  artifact.py FILE KIND OUT    writes a section's data to OUT
"""

import json
import struct
import sys
import zlib


def read(path):
    data = open(path, "rb").read()
    assert data[:8] == b"KVBUF\0\0\1", "magic"
    size, crc, manifest_bytes, count = struct.unpack_from("<QIII", data, 8)
    assert size == len(data), "size"
    assert crc == zlib.crc32(data[20:]), "checksum"
    table = [struct.unpack_from("<16sQQ", data, 28 + 32 * i) for i in range(count)]
    start = 28 + 32 * count
    manifest = json.loads(data[start : start + manifest_bytes])
    sections = {}
    for kind, offset, length in table:
        assert offset + length <= len(data), "section bounds"
        sections[kind.rstrip(b"\0").decode()] = data[offset : offset + length]
    return manifest, sections


manifest, sections = read(sys.argv[1])
if len(sys.argv) == 4:
    with open(sys.argv[3], "wb") as out:
        out.write(sections[sys.argv[2]])
else:
    print("sections:", " ".join(sections))
    print(json.dumps(manifest, indent=1, sort_keys=True))
