"""Checks the functions of an artifact, after the format's description.

  functions.py FILE NAME=ALONE ...         each function's manifest and sections are
                                           those of the artifact ALONE
  functions.py --reports FILE NAME[=ALONE] ...   the functions of a JSON report, and
                                           what a report of one of them has
"""

import json
import struct
import sys
import zlib


def read(path):
    """The manifest, and the sections as pairs of kind and data."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"KVBUF\0\0\1", "magic"
    size, crc, length, count = struct.unpack_from("<QIII", data, 8)
    assert size == len(data) and crc == zlib.crc32(data[20:])
    table = [struct.unpack_from("<16sQQ", data, 28 + 32 * i) for i in range(count)]
    start = 28 + 32 * count
    return json.loads(data[start:start + length]), [
        (kind.rstrip(b"\0").decode(), data[offset:offset + size])
        for kind, offset, size in table]


path, *expected = [argument for argument in sys.argv[1:] if argument != "--reports"]
expected = dict((name, file) for name, _, file in (e.partition("=") for e in expected))
if "--reports" in sys.argv:
    with open(path, encoding="utf-8") as file:
        reports = {f["name"]: f["report"] for f in json.load(file)["functions"]}
    assert sorted(reports) == sorted(expected), list(reports)
    assert all(reports.values())
    for name, file in expected.items():
        if file:
            with open(file, encoding="utf-8") as text:
                assert reports[name] == json.load(text), name
    sys.exit()
manifest, sections = read(path)
assert manifest["kvbuf"] == 3
functions = manifest["functions"]
assert [f["manifest"]["name"] for f in functions] == list(expected), functions
numbers = [number for function in functions for number in function["sections"]]
assert numbers == list(range(len(sections)))
for function, alone in zip(functions, expected.values()):
    own, code = read(alone)
    assert own["kvbuf"] in (1, 2)
    assert function["manifest"] == own, function["manifest"]["name"]
    assert [sections[number] for number in function["sections"]] == code
    assert code
