# RUN: %python %s %python %src/benchmark/problem.py %bin/kvbuf-compile %bin/kvbuf-run %t
"""Packed rows that the blocks of a cluster widen for each other (sm_90a), whole and
broken in one place at a time: releases that reach the own block only, so that the other
one's slot is filled while its teams read it; columns of rows that are not sent, or that
the copy engine may not see yet; and bytes that the barrier does not await.
"""
import re
import subprocess
import sys

python, problem, compiler, runner, path = sys.argv[1:6]
source = subprocess.run([python, problem, "latent=true", "head_size=576", "v_head_size=512", "heads=128", "kv_heads=1",
                         "cache=paged", "page_size=1", "seq_q=1", "row=656"],
                        check=True, capture_output=True, text=True).stdout
target = subprocess.run([compiler, "-", "--target=sm_90a", "--no-alternatives", "--emit=target"], input=source,
                        check=True, capture_output=True, text=True).stdout
lines = target.split("\n")


def run(changed):
    """Whether the result passes, and the emulator's messages."""
    with open(path + ".mlir", "w") as f:
        f.write("\n".join(changed))
    subprocess.run([compiler, path + ".mlir", "--target=sm_90a", "--code=none", "-o", path + ".kvbuf"], check=True)
    done = subprocess.run([runner, path + ".kvbuf", "--device=emulator", "--check", "--cache-lengths", "400"],
                          capture_output=True, text=True)
    return "PASS" in done.stdout, re.findall(r"error: '.*", done.stdout + done.stderr)


def at(pattern):
    found = [i for i, line in enumerate(lines) if re.search(pattern, line)]
    assert found, pattern
    return found


passes, messages = run(lines)
assert passes and not messages, messages

rank = re.match(r"\s*(%\w+) = nvvm\.read\.ptx\.sreg\.cluster\.ctaid\.x", lines[at(r"cluster\.ctaid\.x")[0]])[1]
own = list(lines)
for number in at(r"kvbuffer\.cluster_arrive"):
    to = re.search(r" in (%\w+) if", lines[number])[1]
    # At the end threads arrive at each block by its number.
    if not re.search(rf"{re.escape(to)} = llvm\.mlir\.constant", target):
        own[number] = lines[number].replace(f" in {to} ", f" in {rank} ")
assert own != lines
sends = at(r"kvbuffer\.cluster_copy")
unsent = lines[:sends[0]] + lines[sends[0] + 1:]
fence = [i for i in at(r"nvvm\.fence\.proxy") if i < sends[0]][-1]
unfenced = lines[:fence] + lines[fence + 1:]
# Half of a slot's 32768 bytes come from the other block; each of four warps awaits a quarter of those.
others = re.search(r"(%\w+) = llvm\.mlir\.constant\(4096 : i32\)", target)[1]
awaits = [i for i in at(r"nvvm\.mbarrier\.arrive\.expect_tx") if re.search(rf", {re.escape(others)}\b", lines[i])]
unawaited = list(lines)
unawaited[awaits[0]] = re.sub(rf", {re.escape(others)}\b", ", %none", lines[awaits[0]])
unawaited.insert(awaits[0], "%none = llvm.mlir.constant(0 : i32) : i32")
for what, changed in ("the own block is released alone", own), ("a part is not sent", unsent), (
        "what was stored may not be seen", unfenced), ("bytes are not awaited", unawaited):
    passes, messages = run(changed)
    print(what, passes, messages[:1])
    assert messages, what
