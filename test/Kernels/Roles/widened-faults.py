# RUN: %problem heads=64 kv_heads=2 head_size=128 cache=paged page_size=16 kv_dtype=f8E4M3FN granularity=tensor causal=true | %compile_for --target=sm_90a
# RUN: %python %s %t.kvbuf
"""What a launch needs of the kernel ahead that widens its caches: without it, or without
the blocks that write nothing but zeros behind a sequence's last key, results are found to
be wrong."""

import json
import pathlib
import re
import struct
import subprocess
import sys
import zlib

FILE = pathlib.Path(sys.argv[1])
# Blocks of 64 keys: 17 of them widen 1030 keys, the next one writes zeros up to 1152, and the
# others, for which the table has room, nothing.
SIZES = ["--size", "seq_q=150", "--cache-lengths", "1030", "--size", "pages_per_seq=90"]
BLOCKS = 17


def changed(change):
    """The artifact with another manifest (include/kvbuffer/Runtime/Artifact.h)."""
    data = FILE.read_bytes()
    head = struct.Struct("<8sQIII")
    magic, _, _, size, sections = head.unpack_from(data)
    assert sections == 1, sections
    kind, at, length = struct.unpack_from("<16sQQ", data, head.size)
    begin = head.size + 32
    manifest = json.loads(data[begin:begin + size])
    change({kernel["entry"]: kernel for kernel in manifest["kernels"]}, manifest)
    text = json.dumps(manifest).encode()
    start = (begin + len(text) + 63) // 64 * 64
    rest = struct.pack("<II16sQQ", len(text), 1, kind, start, length) + text
    rest = rest.ljust(start - 20, b"\0") + data[at:at + length]
    path = FILE.with_suffix(".fault.kvbuf")
    path.write_bytes(struct.pack("<8sQI", magic, 20 + len(rest), zlib.crc32(rest)) + rest)
    return path


def run(path):
    return subprocess.run(
        ["kvbuf-run", path, "--device=emulator", "--check", "--check-rows=all", *SIZES],
        capture_output=True, text=True)


def as_it_is(kernels, manifest):
    assert kernels["kernel_of_widened"]["ahead"] == ["kernel_of_widened_ahead"]


def without(kernels, manifest):
    del kernels["kernel_of_widened"]["ahead"]
    manifest["kernels"].remove(kernels["kernel_of_widened_ahead"])


def without_zeros(kernels, manifest):
    kernels["kernel_of_widened_ahead"]["grid"][0] = BLOCKS


good = run(changed(as_it_is))
assert good.returncode == 0 and "PASS" in good.stdout, good.stdout + good.stderr
assert "kernel_of_widened_ahead, kernel_of_widened" in good.stdout + good.stderr
for fault in (without, without_zeros):
    bad = run(changed(fault))
    text = bad.stdout + bad.stderr
    print(fault.__name__, bad.returncode, text)
    assert bad.returncode == 1, text
    for name in ("k.wide", "v.wide"):
        assert re.search(f"of buffer '{name}' .*, some of which nothing has written",
                         text), text
