# The order of tiles: kvbuf-assign-work's arithmetic, evaluated, names each tile
# once; groups of heads take at most 16 MiB of K and V and have at most 128 tiles, the
# longest tiles of a group come first, and the last group is long.
#
# RUN: kvbuf-opt %S/Inputs/tile-order.mlir --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_90a schedule=tiles=static},kvbuf-lower-problems,canonicalize,gpu.module(gpu.func(kvbuf-assign-work,canonicalize,cse)))" -o %t
# RUN: %python %s %t
"""Evaluates the index arithmetic of a kernel that loops over tiles."""

import re
import sys

OPS = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divui": lambda a, b: a // b,
    "remui": lambda a, b: a % b,
    "ceildivui": lambda a, b: -(-a // b),
    "maxsi": max,
    "minsi": min,
}
LINE = re.compile(r"(%\w+) = arith\.(\w+) (.*?)(?: : .*)?$")


def tiles(lines, sizes):
    """Yields (batch, row, head) of each tile in turn."""
    values = {}

    def run(line):
        """Executes a line of scalar arithmetic; others are left out."""
        size = re.match(r'(%\w+) = kvbuffer\.launch_size "(\w+)"', line)
        if size:
            values[size[1]] = sizes[size[2]]
        op = LINE.match(line)
        if not op:
            return
        result, name, rest = op.groups()
        if name == "constant":
            values[result] = int(rest)
            return
        operands = [values[v] for v in re.findall(r"%\w+", rest)]
        if name == "cmpi" and rest.startswith("ult"):
            values[result] = operands[0] < operands[1]
        elif name == "select":
            values[result] = operands[1] if operands[0] else operands[2]
        elif name in OPS:
            values[result] = OPS[name](*operands)

    start = next(i for i, line in enumerate(lines) if "scf.for" in line)
    end = next(i for i, line in enumerate(lines) if "memref.dim" in line)
    use = next(line for line in lines if "kvbuffer.dram_tile" in line)
    where = re.search(r"\[(%\w+), (%\w+), (%\w+)\]", use).groups()
    for line in lines[:start]:
        run(line)
    tile, total = re.match(r"scf\.for (%\w+) = %\w+ to (%\w+)", lines[start]).groups()
    for t in range(values[total]):
        values[tile] = t
        for line in lines[start + 1 : end]:
            run(line)
        yield tuple(values[v] for v in where)


HEADS, SHARING, BM, KEY_BYTES = 8, 4, 128, 2 * 2 * 128
lines = [line.strip() for line in open(sys.argv[1])]
for batch, queries, keys in [(1, 16384, 16384), (4, 4096, 4096), (40, 1024, 1024),
                             (1, 100, 100), (3, 1000, 200000), (32, 1000, 200000),
                             (16, 2048, 2048)]:
    case = f"batch {batch}, {queries} queries, {keys} keys"
    order = list(tiles(lines, {"batch": batch, "seq_q": queries, "seq_k": keys}))
    row_tiles = -(-queries // BM)
    expected = {(b, r * BM, h) for b in range(batch) for r in range(row_tiles)
                for h in range(HEADS)}
    assert len(order) == len(expected) and set(order) == expected, case

    if row_tiles == 1:
        continue
    # A group ends where its heads' last tile, row 0, has been named for all.
    groups, heads, open_heads = [], set(), set()
    rows = []
    for b, row, h in order:
        heads.add((b, h))
        open_heads.add((b, h))
        rows.append(row)
        if row == 0:
            open_heads.discard((b, h))
            if not open_heads:
                groups.append((len(heads), rows))
                heads, rows = set(), []
    assert not heads, case
    for i, (size, rows) in enumerate(groups):
        assert rows == sorted(rows, reverse=True), f"{case}: not longest first"
        if i + 1 < len(groups):
            held = size // SHARING * keys * KEY_BYTES
            assert size % SHARING == 0, f"{case}: a group of {size} heads"
            assert held <= 16 << 20 or size == SHARING, f"{case}: {held} bytes"
            assert size * row_tiles <= 128 or size == SHARING, f"{case}: {size} heads"
    last, _ = groups[-1]
    all_heads = batch * HEADS
    assert last >= min(all_heads, 256 // row_tiles), f"{case}: {last} heads last"
    if keys == 16384:
        # A head has 128 tiles: one KV head a group, which 4 heads share.
        assert [size for size, _ in groups] == [4, 4], groups
    if batch == 16:
        # 16 tiles a head: 8 heads are a group, and the last one has twice as many.
        assert [size for size, _ in groups] == [8] * 14 + [16], groups
    if batch == 40:
        # 8 tiles a head.
        assert [size for size, _ in groups] == [16] * 18 + [32], groups
    if keys == 200000:
        # More than 16 MiB: one KV head a group, and 32 heads in the end.
        sizes = [24] if batch == 3 else [4] * 56 + [32]
        assert [size for size, _ in groups] == sizes, groups
