# RUN: %python %s %src
"""Every attribute with the dialect's prefix has a row in the dialect's description.

The names are those that kvbuf-opt lists where an attribute is unknown: on an op, and
on an argument of a function.
"""

import pathlib
import re
import subprocess
import sys

DESCRIPTION = pathlib.Path(
    sys.argv[1], "include/kvbuffer/Dialect/KVBuffer/IR/KVBufferDialect.td")
MODULES = ["module attributes {kvbuffer.nothing} {}",
           "func.func @f(%x: index {kvbuffer.nothing}) { return }"]

rows = set(re.findall(r"^ +\| `(kvbuffer\.\w+)` \|", DESCRIPTION.read_text(),
                      re.MULTILINE))
for module in MODULES:
    said = subprocess.run(["kvbuf-opt", "-"], input=module, text=True,
                          capture_output=True).stderr
    listed = re.search(r"\(expected (.*)\)", said)
    assert listed, said
    names = set(re.findall(r"kvbuffer\.\w+", listed.group(1)))
    assert len(names) > 4, said
    missing = names - rows
    assert not missing, f"no row in {DESCRIPTION.name}: {sorted(missing)}"
