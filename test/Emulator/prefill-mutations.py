# RUN: %python %s %bin/kvbuf-compile %bin/kvbuf-emu-test %src/examples/prefill.mlir %t.mlir
"""A compiled attention kernel, whole and with one thing broken at a time.

Taking out a wait or a barrier, or loosening a wait by one, must be found, or
be harmless: the same output, bit for bit. Taking the swizzle out of one address
must not go unnoticed. Reading a buffer that is too short must be found at the
copy that does it.
"""
import re
import subprocess
import sys

compiler, emulator, source, path = sys.argv[1:]
# Two tiles of queries, the second one with a tail, and three of keys; of the
# heads only the first runs.
ROWS, HEADS, SIZE = 140, 16, 128
COUNT = ROWS * HEADS * SIZE

target = subprocess.run([compiler, source, "--target=sm_80", "--emit=target"], check=True, capture_output=True,
                        text=True).stdout
shared = re.search(r"dynamic_shared_bytes = (\d+)", target)[1]
lines = target.split("\n")


def run(text, key_count=COUNT):
    """Exit status, output tensor, messages."""
    with open(path, "w") as f:
        f.write(text)
    strides = [f"--arg=i64:{n}" for n in (COUNT, HEADS * SIZE, SIZE)]
    command = [emulator, path, "--entry=prefill", "--block=128", "--grid=2,1,1", f"--shared={shared}"]
    for name, count, modulus in (("q", COUNT, 7), ("k", key_count, 5), ("v", COUNT, 3)):
        command += [f"--arg=buf:bf16:{count}:mod={modulus}:{name}", *strides, f"--arg=i32:{ROWS}"]
    command += [f"--arg=buf:bf16:{COUNT}:zero:o", *strides, "--arg=i32:1", "--print=15"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout, done.stderr


def mutate(number, change):
    changed = list(lines)
    changed[number] = change(changed[number])
    return run("\n".join(changed))


status, good, messages = run(target)
assert status == 0 and not messages, messages

caught = {}
for number, line in enumerate(lines):
    wait = re.search(r"cp\.async\.wait\.group (\d+)", line)
    changes = []
    if wait:
        changes = [("wait", lambda s: ""),
                   ("looser wait", lambda s: s.replace(wait[0], f"cp.async.wait.group {int(wait[1]) + 1}"))]
    elif re.search(r"nvvm\.barrier", line):
        changes = [("barrier", lambda s: "")]
    for what, change in changes:
        status, output, messages = mutate(number, change)
        assert status == 1 or output == good, (what, number)
        caught[what] = caught.get(what, 0) + status
        if status:
            assert re.search(r"error: '(nvvm.ldmatrix|nvvm.cp.async.shared.global)'", messages), messages
assert all(caught.get(what) for what in ("wait", "looser wait", "barrier")), caught

swizzles = [n for n, line in enumerate(lines) if re.search(r"= llvm\.xor .* : i(32|64)", line)]
assert swizzles
noticed = 0
for number in swizzles[:8]:
    status, output, _ = mutate(number, lambda s: re.sub(r"llvm\.xor (%\w+), (%\w+)", r"llvm.or \1, \1", s))
    noticed += status == 1 or output != good
assert noticed, "no swizzle matters"

status, _, messages = run(target, key_count=COUNT - HEADS * SIZE)
assert status == 1 and re.search(r"error: 'nvvm.cp.async.shared.global' .*out of bounds: reads 16 bytes at offset \d+ "
                                 r"of buffer 'k'", messages), messages
