# RUN: %python %s %python %src/benchmark/problem.py %bin/kvbuf-compile %bin/kvbuf-run %t
# RUN: %python %s %python %src/benchmark/problem.py %bin/kvbuf-compile %bin/kvbuf-run %t 4
"""A compiled kernel whose blocks work in clusters of two, or with an argument 4
of four (sm_90a), whole and broken in one place at a time.

What orders one block's accesses to the other's shared memory must be missed
every time that it is taken out: releases that reach the own block only, a
cluster barrier at the start or the end, bytes that are not expected. Of four
blocks what two cannot show: one that boxes or arrivals do not count.
"""
import os
import re
import subprocess
import sys

python, problem, compiler, runner, path = sys.argv[1:6]
CLUSTER = int((sys.argv[6:] or ["2"])[0])
SCHEDULE = ("BM=64,BN=64,warps=4,producers=4,producer_registers=40,consumer_registers=232,overlap_products=true,"
            f"split_masks=true,ping_pong=false,stage_output=true,tiles=dynamic,cluster={CLUSTER}")
source = subprocess.run([python, problem, "heads=1", "head_size=64"], check=True, capture_output=True, text=True).stdout
target = subprocess.run([compiler, "-", "--target=sm_90a", f"--schedule={SCHEDULE}", "--emit=target"], input=source,
                        check=True, capture_output=True, text=True).stdout
lines = target.split("\n")


def run(changed):
    """Whether the result passes, and the emulator's messages."""
    with open(path + ".mlir", "w") as f:
        f.write("\n".join(changed))
    subprocess.run([compiler, path + ".mlir", "--target=sm_90a", "--ptxas=none", "-o", path + ".kvbuf"], check=True)
    done = subprocess.run([runner, path + ".kvbuf", "--device=emulator", "--check", "--check-rows=all",
                           "--size", "batch=2", "--size", "seq_q=200", "--size", "seq_k=300"],
                          capture_output=True, text=True)
    return "PASS" in done.stdout, re.findall(r"error: '.*", done.stdout + done.stderr)


passes, messages = run(lines)
assert passes and not messages, messages


def at(pattern):
    found = [i for i, line in enumerate(lines) if re.search(pattern, line)]
    assert found, pattern
    return found


def replaced(number, *new):
    return lines[:number] + list(new) + lines[number + 1:]


def operand(number, old, value, width=32):
    """The program with a constant for a line's operand."""
    return replaced(number, f"%mutant = llvm.mlir.constant({value} : i{width}) : i{width}",
                    re.sub(rf"{re.escape(old)}\b", "%mutant", lines[number]))


rank = re.match(r"\s*(%\w+) = nvvm\.read\.ptx\.sreg\.cluster\.ctaid\.x", lines[at(r"cluster\.ctaid\.x")[0]])[1]
# The consumers come first in the text, and wait for their cluster's end last: in front of the producers' code, which
# begins with the change of their registers.
producers = at(r"nvvm\.setmaxregister +decrease")[-1]
end = [i for i in at(r"nvvm\.mbarrier\.try_wait\.parity") if i < producers][-1]
faults = {}


def fault(what, changed):
    faults.setdefault(what, []).append(changed)


# The barrier of the whole cluster, at the start.
meeting, = at(r"nvvm\.cluster\.arrive\.relaxed")
waiting, = at(r"nvvm\.cluster\.wait")
assert waiting > meeting
unmet = lines[:meeting] + lines[meeting + 1:waiting]
fault("no meeting at the start", unmet + lines[waiting + 1:])
fault("no meeting at the start, but of the block", unmet + ["nvvm.barrier"] + lines[waiting + 1:])
fault("arrival at the cluster's barrier", replaced(meeting))
fault("wait at the cluster's barrier", replaced(waiting))
fence, = at(r"nvvm\.fence\.mbarrier\.init")
assert fence < meeting
fault("no fence behind the barriers' making", replaced(fence))
# The end: the last wait of the consumers, who come first.
fault("no wait at the end", replaced(end))
for number in at(r"kvbuffer\.cluster_arrive"):
    to = re.search(r" in (%\w+) if", lines[number])[1]
    fault("no release in the cluster", replaced(number))
    fault("release of the own block only", replaced(number, lines[number].replace(f" in {to} ", f" in {rank} ")))
for number in at(r"kvbuffer\.cluster_store"):
    fault("no word to a block", replaced(number))
for number in at(r"multicast_mask = "):
    mask = re.search(r"multicast_mask = (%\w+)", lines[number])[1]
    fault("box for one block", operand(number, mask, 1, width=16))
    fault("no box", replaced(number))
for number in at(r"nvvm\.mbarrier\.arrive\.expect_tx"):
    bytes_ = re.search(r"expect_tx %\w+, (%\w+)", lines[number])[1]
    size = int(re.search(rf"{re.escape(bytes_)} = llvm\.mlir\.constant\((\d+) : i32\)", target)[1])
    if size:
        fault("fewer bytes expected", operand(number, bytes_, size // 2))
        fault("more bytes expected", operand(number, bytes_, size * 2))
for number in at(r"nvvm\.mbarrier\.try_wait\.parity"):
    fault("no wait for an mbarrier", replaced(number))

if CLUSTER > 2:
    faults.clear()
    for number in at(r"multicast_mask = "):
        mask = re.search(r"multicast_mask = (%\w+)", lines[number])[1]
        lacks = (1 << CLUSTER) - 1 - (1 << number % CLUSTER)
        fault(f"box for all blocks but {number % CLUSTER}", operand(number, mask, lacks, width=16))
    # Barriers for which one thread of each block arrives, and all that run at
    # the end: one of each of four warps, and the one that moves.
    for arrivals in CLUSTER, (4 + 1) * CLUSTER:
        for number in at(r"nvvm\.mbarrier\.init"):
            count = re.search(r"init %\w+, (%\w+)", lines[number])[1]
            if re.search(rf"{re.escape(count)} = llvm\.mlir\.constant\({arrivals} : i32\)", target):
                fault(f"a block's part of {arrivals} arrivals", operand(number, count, arrivals - arrivals // CLUSTER))

# What need not be found where the result is right: the code is not reached with these sizes, or something else orders
# the same.
HARMLESS = {"no wait for an mbarrier", "no release in the cluster", "release of the own block only",
            *(what for what in faults if what.startswith("a block's part"))}
missed = []
for what, mutants in faults.items():
    found = 0
    for changed in mutants:
        passes, messages = run(changed)
        found += bool(messages)
        if not messages and (what not in HARMLESS or not passes):
            missed.append(what)
        if os.environ.get("SHOW"):
            print(what, passes, messages[:1])
    assert found, what
    print(f"{what}: {found} of {len(mutants)} found")
assert not missed, missed
