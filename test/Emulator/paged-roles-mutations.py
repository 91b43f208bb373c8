# RUN: %python %s %python %src/benchmark/problem.py %bin/kvbuf-compile %bin/kvbuf-run %t
"""A compiled kernel with warp roles over small pages, whose producers gather
tiles that are cut with cp.async for the matrix unit, broken in one place at a
time. The lengths make the first, the last and the only tile of a sequence such
a tile.

Taking out a wait, a commit, a fence or a barrier must be found, or be harmless:
the result passes the check.
"""
import os
import re
import subprocess
import sys

python, problem, compiler, runner, path = sys.argv[1:]
SCHEDULE = ("BM=128,BN=128,warps=8,producers=4,producer_registers=40,consumer_registers=232,overlap_products=true,"
            "split_masks=true,sums_in_lds=false,stage_output=true,tiles=dynamic")
source = subprocess.run([python, problem, "cache=paged", "page_size=16", "causal=true", "heads=1", "head_size=64"],
                        check=True, capture_output=True, text=True).stdout
target = subprocess.run([compiler, "-", "--target=sm_90a", f"--schedule={SCHEDULE}", "--emit=target"], input=source,
                        check=True, capture_output=True, text=True).stdout
lines = target.split("\n")


def run(text):
    """Whether the result passes, and the emulator's messages."""
    with open(path + ".mlir", "w") as f:
        f.write(text)
    subprocess.run([compiler, path + ".mlir", "--target=sm_90a", "--ptxas=none", "-o", path + ".kvbuf"], check=True)
    done = subprocess.run([runner, path + ".kvbuf", "--device=emulator", "--check", "--check-rows=all",
                           "--size", "seq_q=100", "--cache-lengths", "0,450"], capture_output=True, text=True)
    return "PASS" in done.stdout, re.findall(r"error: '.*", done.stdout + done.stderr)


passes, messages = run(target)
assert passes and not messages, messages

MUTATIONS = {
    "wait for cp.async": r"cp\.async\.wait\.group",
    "commit of cp.async": r"nvvm\.cp\.async\.commit\.group",
    "proxy fence": r"nvvm\.fence\.proxy",
    "barrier": r"^ *nvvm\.barrier",
    "wait for an mbarrier": r"nvvm\.mbarrier\.try_wait",
    "arrival": r"nvvm\.mbarrier\.arrive",
}
caught, missed = {}, []
for number, line in enumerate(lines):
    for what, pattern in MUTATIONS.items():
        if not re.search(pattern, line):
            continue
        passes, messages = run("\n".join(lines[:number] + [""] + lines[number + 1:]))
        caught.setdefault(what, []).append(bool(messages))
        if not messages and not passes:
            missed.append((what, number + 1, line.strip()))
        if os.environ.get("SHOW"):
            print(what, number + 1, passes, messages[0][:200] if messages else "")
assert not missed, missed
assert all(sum(caught.get(what, [0])) for what in MUTATIONS), caught
# Nothing else orders the copies of cp.async before the products.
for what in ("wait for cp.async", "commit of cp.async", "proxy fence"):
    assert all(caught[what]), (what, caught[what])
