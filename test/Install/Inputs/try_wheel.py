"""try_wheel.py DIST SITE NAME: unpacks a wheel as an installer does, checks it
against its RECORD, and uses it in a process that knows of no other kvbuf."""

import base64
import csv
import hashlib
import os
import pathlib
import subprocess
import sys
import zipfile

DIST, SITE, NAME = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]

COMPILES = """
import kvbuf, numpy as np
x = np.ones((1, 3, 2, 64), np.float16)
assert (kvbuf.attention(x, x, x, causal=True) == 1).all()
# AMD's code needs the linker of the wheel.
kvbuf.precompile([kvbuf.Problem(heads=2, kv_heads=2, head_size=64)], "gfx950")
site = kvbuf.__path__[0]
for line in open("/proc/self/maps"):
    name = line.split()[-1]
    if any(n in name for n in ("libLLVM", "libMLIR", "KVBufferC", "libz3", "icu",
                               "libxml2", "libedit")):
        assert name.startswith(site), name
assert "libLLVM" in open("/proc/self/maps").read()
"""
LAUNCHES = """
import kvbuf
assert kvbuf.version()
try:
    kvbuf.precompile([kvbuf.Problem(heads=2, kv_heads=2, head_size=64)], "sm_80")
except kvbuf.Error as e:
    assert "libKVBufferC.so" in str(e) and "not found" in str(e), e
else:
    raise SystemExit("compiled without a compiler")
"""


def main():
    path, = DIST.glob(NAME.replace("-", "_") + "-*.whl")
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        record, = (n for n in names if n.endswith("/RECORD"))
        rows = list(csv.reader(wheel.read(record).decode().splitlines()))
        assert {row[0] for row in rows} == names, "RECORD lists other files"
        for name, digest, size in rows:
            if name == record:
                continue
            data = wheel.read(name)
            said = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
            assert digest == "sha256=" + said.rstrip(b"=").decode(), name
            assert int(size) == len(data), name
        assert "kvbuf/py.typed" in names and "kvbuf/torch.py" in names
        about, = (n for n in names if n.endswith("/METADATA"))
        needs = [line for line in wheel.read(about).decode().split("\n\n")[0]
                 .splitlines() if line.startswith("Requires-Dist")
                 and "extra ==" not in line]
        assert needs == ["Requires-Dist: numpy"] * (NAME == "kvbuf"), needs
        wheel.extractall(SITE)
        for info in wheel.infolist():
            os.chmod(SITE / info.filename, info.external_attr >> 16 & 0o777)
    if NAME == "kvbuf":
        # A machine may have a linker besides; this one tells that it was used.
        linker = SITE / "kvbuf" / "bin" / "ld.lld"
        linker.rename(linker.with_suffix(".real"))
        linker.write_text('#!/bin/sh\n: > "$0.used"\nexec "${0%.lld}.real" "$@"\n')
        linker.chmod(0o755)
    environment = {"PATH": "/nowhere", "PYTHONPATH": str(SITE),
                   "KVBUF_CACHE_DIR": "none"}
    subprocess.run([sys.executable, "-c",
                    COMPILES if NAME == "kvbuf" else LAUNCHES],
                   env=environment, cwd=SITE, check=True)
    if NAME == "kvbuf":
        assert pathlib.Path(str(linker) + ".used").exists()


main()
