# RUN: %python %s %bin/kvbuf-compile %bin/kvbuf-emu-test %src/examples/prefill.mlir %t.mlir gfx942
# RUN: %python %s %bin/kvbuf-compile %bin/kvbuf-emu-test %src/examples/prefill.mlir %t.mlir gfx950
"""A compiled attention kernel for AMD, whole and with one thing broken at a time.

Taking out a wait or a barrier, letting one operation more be on its way, or not
waiting for LDS must be found, or be harmless: the same output, bit for bit.
Taking a swizzle out of an address must not go unnoticed. A buffer that is
longer than its memory must be found at the copy that reads it.
"""
import json
import re
import subprocess
import sys

compiler, emulator, source, path, chip = sys.argv[1:]
# Two tiles of queries, the second one with a tail, and several of keys; of the
# heads only the first runs.
ROWS, HEADS, SIZE = 300, 16, 128
COUNT = ROWS * HEADS * SIZE

target = subprocess.run([compiler, source, f"--target={chip}", "--emit=target"], check=True, capture_output=True,
                        text=True).stdout
block = re.search(r"gpu.known_block_size = array<i32: (\d+)", target)[1]
lines = target.split("\n")


def run(text, key_count=COUNT):
    """Exit status, output tensor, messages, bank conflicts by operation."""
    with open(path, "w") as f:
        f.write(text)
    strides = [f"--arg=i64:{n}" for n in (COUNT, HEADS * SIZE, SIZE)]
    command = [emulator, path, "--entry=prefill", f"--block={block}", "--grid=2,1,1", "--report"]
    for name, count, modulus in (("q", COUNT, 7), ("k", key_count, 5), ("v", COUNT, 3)):
        command += [f"--arg=buf:bf16:{count}:mod={modulus}:{name}", *strides, f"--arg=i32:{ROWS}"]
    command += [f"--arg=buf:bf16:{COUNT}:zero:o", *strides, "--arg=i32:1", f"--dump=15:{path}.o"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    with open(path + ".o", "rb") as f:
        output = f.read()
    conflicts = {}
    for line in json.loads(done.stdout)["kernels"][0]["memory"]:
        if line.get("bank_conflicts"):
            conflicts[line["op"]] = conflicts.get(line["op"], 0) + line["bank_conflicts"]
    return done.returncode, output, done.stderr, conflicts


def mutate(number, change):
    changed = list(lines)
    changed[number] = change(changed[number])
    return run("\n".join(changed))


def waitcnt(vm, lgkm):
    """gfx9's encoding."""
    return f"rocdl.s.waitcnt {vm & 15 | 7 << 4 | lgkm << 8 | vm >> 4 << 14}"


status, good, messages, usual = run(target)
assert status == 0 and not messages, messages
# Reads of fragments are free of conflicts.
assert "rocdl.ds.read.tr16.b64" not in usual and "llvm.load" not in usual, usual

caught = {}
for number, line in enumerate(lines):
    wait = re.search(r"rocdl\.s\.waitcnt (\d+)", line)
    changes = []
    if wait:
        bits = int(wait[1])
        vm, lgkm = bits & 15 | (bits >> 14 & 3) << 4, bits >> 8 & 15
        changes.append(("wait", ""))
        if vm < 63:
            changes.append(("looser wait", waitcnt(vm + 1, lgkm)))
        if lgkm < 15:
            changes.append(("wait for LDS", waitcnt(vm, 15)))
    elif "rocdl.s.barrier" in line:
        changes.append(("barrier", ""))
    for what, instead in changes:
        old = wait[0] if wait else "rocdl.s.barrier"
        status, output, messages, _ = mutate(number, lambda s: s.replace(old, instead))
        assert status == 1 or output == good, (what, number + 1)
        caught[what] = caught.get(what, 0) + status
must = ["wait", "looser wait", "barrier"]
# Reads are used before the barrier that frees their slot; writes are not.
if re.search(r"llvm\.store .*!llvm\.ptr<3>", target):
    must.append("wait for LDS")
assert all(caught.get(what) for what in must), caught

swizzles = [n for n, line in enumerate(lines) if re.search(r"= llvm\.xor .* : i(32|64)", line)]
assert swizzles
wrong = conflicting = 0
for number in swizzles:
    status, output, _, conflicts = mutate(number, lambda s: re.sub(r"llvm\.xor (%\w+), (%\w+)", r"llvm.or \1, \1", s))
    wrong += status == 1 or output != good
    conflicting += conflicts != usual
assert wrong, "no swizzle matters"
assert conflicting, "no swizzle is for the banks"

status, _, messages, _ = run(target, key_count=COUNT - HEADS * SIZE)
assert status == 1 and re.search(r"error: 'rocdl.raw.ptr.buffer.load(.lds)?' .*out of bounds: reads \d+ bytes at offset "
                                 r"\d+ of buffer 'k'", messages), messages
