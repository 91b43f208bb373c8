#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What share of K and V each die of a chip finds in its L2, by the order of blocks.

    tools/die-cache.py --target=gfx950 --heads=16 --rows=16384 [--causal]
    tools/die-cache.py --heads=128 --rows=131072 --schedule=xcds=1

The order is that of kvbuf-assign-work: its ids are evaluated for every block. The
rest is a model, and nothing of it was measured:

  - consecutive blocks go to the dies in turn; a die works on as many at once as it
    has compute units (times --blocks), and takes its next one when one ends;
  - all blocks of a die take equally long for as many keys (--keys at a time);
  - its L2 holds K and V alone, --cache-mb of them, and drops what was used longest
    ago; blocks that want the same in the same step read it once.

Printed are the shares of all dies (least, mean, most), and the bytes that come from
behind the L2s. With --json, one object.
"""

import argparse
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "benchmark"))
import problem  # noqa: E402

#: What the ops compute. Values stay far from 2^63; those that unsigned ops read may
#: be below 0, where nothing uses the result.
WORD = 1 << 64
OPS = {
    "addi": lambda a, b: a + b, "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b, "minsi": min, "maxsi": max,
    "divui": lambda a, b: a % WORD // (b % WORD),
    "remui": lambda a, b: a % WORD % (b % WORD),
    "ceildivui": lambda a, b: -(-(a % WORD) // (b % WORD)),
    "minui": lambda a, b: min(a % WORD, b % WORD),
    "ori": lambda a, b: a or b,
}
COMPARE = {"uge": lambda a, b: a % WORD >= b % WORD,
           "ult": lambda a, b: a % WORD < b % WORD}

KERNEL = """
module attributes {{kvbuffer.target = "{chip}"}} {{
gpu.module @m {{
  gpu.func @f(%o: memref<?x?x?xindex>) kernel attributes {{kvbuffer.schedule = {schedule}}} {{
    %a, %b, %c = kvbuffer.work_item [{items}]
    memref.store %a, %o[%a, %b, %c] : memref<?x?x?xindex>
    gpu.return
  }}
}}
}}
"""
PIPELINE = "builtin.module(gpu.module(gpu.func(kvbuf-assign-work)))"


class Order:
    """The blocks of a kernel with three coordinates, as kvbuf-assign-work has it:
    `item(block, sizes)` is a block's item along each of them. Raises ValueError
    where a block has no item by its ids alone."""

    def __init__(self, chip, schedule, items, opt="kvbuf-opt"):
        text = subprocess.run(
            [opt, "-", f"--pass-pipeline={PIPELINE}"], text=True,
            input=KERNEL.format(chip=chip, schedule=schedule, items=items),
            capture_output=True, check=True).stdout
        #: Whether all blocks stand along x.
        self.flat = bool(re.search(r"kvbuffer\.grid = \[[^\n]*, 1, 1\]", text))
        self.steps = [step for line in text.splitlines()
                      if (step := self.step(line.strip()))]

    @staticmethod
    def step(line):
        if found := re.match(r"memref\.store %\S+, %\S+\[(.*?)\]", line):
            return "store", *(v.strip() for v in found[1].split(","))
        if found := re.match(r"(%\S+) = arith\.constant (\d+) : index", line):
            return "constant", found[1], int(found[2])
        if found := re.match(r"(%\S+) = gpu\.block_id  ?([xyz])", line):
            return "id", found[1], "xyz".index(found[2])
        if found := re.match(r'(%\S+) = kvbuffer\.launch_size "(\w+)"', line):
            return "size", found[1], found[2]
        if found := re.match(r"(%\S+) = arith\.select (\S+), (\S+), (\S+) :", line):
            return "select", *found.groups()
        if found := re.match(r"(%\S+) = arith\.cmpi (\w+), (\S+), (\S+) :", line):
            return "compute", found[1], COMPARE[found[2]], found[3], found[4]
        if found := re.match(r"(%\S+) = arith\.(\w+) (\S+), (\S+) :", line):
            return "compute", found[1], OPS[found[2]], found[3], found[4]
        if re.match(r"%\S+ =", line):
            raise ValueError(f"unknown op: {line}")
        return None

    def item(self, block, sizes):
        """`block`: its number along x, or its numbers along x, y and z."""
        ids = (block, 0, 0) if isinstance(block, int) else block
        values = {}
        for kind, name, *rest in self.steps:
            if kind == "store":
                return tuple(values[v] for v in (name, *rest))
            if kind == "constant":
                values[name] = rest[0]
            elif kind == "id":
                values[name] = ids[rest[0]]
            elif kind == "size":
                values[name] = sizes[rest[0]]
            elif kind == "select":
                which, yes, no = rest
                values[name] = values[yes if values[which] else no]
            else:
                compute, a, b = rest
                values[name] = compute(values[a], values[b])
        raise ValueError("no store")


def chip_schedule(options):
    """(the schedule of the problem as text, its rows a block)."""
    text = problem.problem(heads=options.heads, kv_heads=options.kv_heads,
                           head_size=options.head_size, causal=options.causal)
    stage = f"--kvbuf-choose-schedule=chip={options.target}"
    if options.schedule:
        stage += f" schedule={options.schedule}"
    out = subprocess.run([options.kvbuf_opt, "-", stage], input=text, text=True,
                         capture_output=True)
    if out.returncode:
        sys.exit(f"die-cache.py: error: {out.stderr.strip()}")
    found = re.search(r"#kvbuffer\.schedule<BM = (\d+).*>$", out.stdout, re.M)
    return found[0], int(found[1])


def shares(order, options, rows_of_block, dies):
    """For each die (keys that blocks read, keys that came from behind its L2), in
    pieces of --keys."""
    tiles = -(-options.rows // rows_of_block)
    heads, batch = options.heads, options.batch
    sizes = {"rows": options.rows, "batch": batch}
    group = heads // (options.kv_heads or heads)
    pieces = -(-options.rows // options.keys)
    room = int(options.cache_mb * (1 << 20)
               // (2 * 2 * options.keys * options.head_size))
    if order.flat:
        blocks = [order.item(n, sizes) for n in range(tiles * heads * batch)]
    else:  # x, y and z as kvbuf-assign-work places coordinates: x the fastest
        blocks = [order.item((x, y, z), sizes) for z in range(batch)
                  for y in range(heads) for x in range(tiles)]
    result = []
    for die in range(dies):
        queue = collections.deque(blocks[die::dies])
        running, cache = [], collections.OrderedDict()
        asked = missed = 0
        while queue or running:
            while queue and len(running) < options.units * options.blocks:
                tile, head, b = queue.popleft()
                last = pieces
                if options.causal:
                    end = min(options.rows, (tile + 1) * rows_of_block)
                    last = -(-end // options.keys)
                running.append([0, last, (head // group, b)])
            for block in running:
                key = block[2], block[0]
                asked += 1
                if key in cache:
                    cache.move_to_end(key)
                else:
                    missed += 1
                    cache[key] = True
                    if len(cache) > max(1, room):
                        cache.popitem(last=False)
                block[0] += 1
            running = [block for block in running if block[0] < block[1]]
        result.append((asked, missed))
    return result


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="gfx950", choices=["gfx942", "gfx950"])
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--kv-heads", type=int, default=0)
    parser.add_argument("--head-size", type=int, default=128)
    parser.add_argument("--rows", type=int, default=16384,
                        help="of queries and keys [16384]")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--schedule", default="", help="as of kvbuf-compile")
    parser.add_argument("--dies", type=int, default=8)
    parser.add_argument("--units", type=int,
                        help="compute units of a die [38 of gfx942, 32 of gfx950]")
    parser.add_argument("--blocks", type=int, default=1,
                        help="blocks of a unit at once [1]")
    parser.add_argument("--keys", type=int, default=512,
                        help="keys that are looked at at a time [512]")
    parser.add_argument("--cache-mb", type=float, default=4.0)
    parser.add_argument("--kvbuf-opt", default=shutil.which("kvbuf-opt") or
                        str(HERE.parent / "build/bin/kvbuf-opt"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if options.units is None:
        options.units = {"gfx942": 38, "gfx950": 32}[options.target]
    for name in ("heads", "head_size", "rows", "batch", "dies", "units", "blocks",
                 "keys"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')}: expected 1 or more")
    return options


def main(arguments=None):
    options = parse(arguments)
    schedule, rows = chip_schedule(options)
    grows = ", growing" if options.causal else ""
    order = Order(options.target, schedule,
                  f'<"rows" by {rows}{grows}, sharing = all>, <{options.heads}>, '
                  '<"batch">', options.kvbuf_opt)
    found = shares(order, options, rows, options.dies)
    hits = [1 - missed / asked for asked, missed in found if asked]
    unit = 2 * 2 * options.keys * options.head_size
    result = {"hits": [round(x, 4) for x in hits],
              "behind": sum(m for _, m in found) * unit,
              "least": unit * (-(-options.rows // options.keys)) * options.batch
              * (options.kv_heads or options.heads),
              "longest": max(a for a, _ in found) / max(1, sum(
                  a for a, _ in found) / options.dies)}
    if options.json:
        print(json.dumps(result))
        return
    print(f"L2 hits by die: {min(hits):.1%} to {max(hits):.1%}, "
          f"mean {sum(hits) / len(hits):.1%}")
    print(f"from behind the L2s: {result['behind'] / 1e9:.2f} GB of K and V, which "
          f"have {result['least'] / 1e9:.2f} GB")
    print(f"the busiest die has {result['longest']:.3f} times the mean's keys")


if __name__ == "__main__":
    main()
