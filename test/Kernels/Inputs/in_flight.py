"""How many copies into LDS are in flight at each barrier of an AMD kernel's loops.

Usage: in_flight.py ASM MOST...     one number for each barrier of a loop

LLVM may move plain loads, and the waits that the lowering counts rest on their
place among the copies. So this replays the memory instructions of every loop with
MFMAs, twice, as the hardware counts them (vmcnt: at most N of the youngest remain),
and holds the copies that remain at each barrier against MOST. Status 1 if there are
more, or if no loop was found."""

import re
import sys


COUNTED = r"\s+((buffer|global)_(load|store)|s_barrier|s_waitcnt.*vmcnt)"


def reachable(successors, start, without=None):
    seen, todo = set(), [start]
    while todo:
        block = todo.pop()
        if block not in seen and block != without:
            seen.add(block)
            todo += successors[block]
    return seen


def loops(lines):
    """The lines of each loop, in their order, which may be turned round.

    A loop is what leads to an edge back to a block that dominates it. LLVM puts
    blocks that seldom run behind everything else: such a one must not hold what is
    counted.
    """
    labels, starts = {}, [0]
    for i, line in enumerate(lines):
        if match := re.match(r"(\.LBB\w+):", line):
            labels[match.group(1)] = i
            starts.append(i)
        elif re.match(r"\s+(s_c?branch|s_endpgm)", line):
            starts.append(i + 1)
    starts = sorted(set(starts))
    ends = starts[1:] + [len(lines)]
    end = dict(zip(starts, ends))
    successors = {}
    for block in starts:
        last = lines[end[block] - 1]
        falls = not re.match(r"\s+(s_branch|s_endpgm)", last) and end[block] < len(lines)
        successors[block] = [end[block]] if falls else []
        if match := re.match(r"\s+s_c?branch\w*\s+(\.LBB\w+)", last):
            successors[block].append(labels[match.group(1)])
    everything = reachable(successors, 0)
    predecessors = {block: [p for p in everything if block in successors[p]] for block in starts}
    for header in sorted(everything):
        outside = reachable(successors, 0, without=header)
        latches = [block for block in predecessors[header] if block not in outside]
        if not latches:
            continue
        # Backwards from the edges, not beyond the header.
        inside = set().union(*(reachable({**predecessors, header: []}, latch) for latch in latches), {header})
        first = last = starts.index(header)
        while first and starts[first - 1] in inside:
            first -= 1
        while last + 1 < len(starts) and starts[last + 1] in inside:
            last += 1
        for block in inside.difference(starts[first:last + 1]):
            if any(re.match(COUNTED, line.split(";")[0]) for line in lines[block:end[block]]):
                sys.exit(f"line {block + 1}: a block of a loop that lies elsewhere moves data")
        yield lines[starts[first]:end[starts[last]]]


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
