"""How many copies into LDS are in flight at each barrier of an AMD kernel's loops.

Usage: in_flight.py ASM MOST...     one number for each barrier of a loop

LLVM may move plain loads, and the waits that the lowering counts rest on their
place among the copies. So this replays the memory instructions of every loop with
MFMAs, twice, as the hardware counts them (vmcnt: at most N of the youngest remain),
and holds the copies that remain at each barrier against MOST. Status 1 if there are
more, or if no loop was found."""

import re
import sys


def loops(lines):
    labels = {}
    for i, line in enumerate(lines):
        if match := re.match(r"(\.LBB\w+):", line):
            labels[match.group(1)] = i
        elif match := re.match(r"\s+s_c?branch\w*\s+(\.LBB\w+)", line):
            start = labels.get(match.group(1))
            if start is not None:
                yield lines[start:i + 1]


def replay(body):
    """The copies in flight at each barrier of the second pass."""
    flight, found = [], []
    for _ in range(2):
        found = []
        for line in body:
            code = line.split(";")[0]
            if re.match(r"\s+(buffer|global)_(load|store)", code):
                flight.append("copy" if re.search(r"\blds\b", code) else "load")
            elif match := re.search(r"s_waitcnt.*vmcnt\((\d+)\)", code):
                flight = flight[max(0, len(flight) - int(match.group(1))):]
            elif re.match(r"\s+s_barrier", code):
                found.append(flight.count("copy"))
    return found


with open(sys.argv[1], encoding="utf-8") as file:
    source = file.read().splitlines()
most = [int(number) for number in sys.argv[2:]]
checked = 0
for loop in loops(source):
    if not any("v_mfma" in line for line in loop):
        continue
    found = replay(loop)
    # A loop that LLVM turned round begins by another barrier.
    turns = [most[i:] + most[:i] for i in range(len(most))]
    if len(found) != len(most) or found not in turns:
        sys.exit(f"copies in flight at the barriers: {found}; expected {most}")
    checked += 1
if not checked:
    sys.exit("no loop with MFMAs")
