#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What share of K and V each die of a chip finds in its L2, by the order of blocks.

    tools/die-cache.py --target=gfx950 --heads=16 --rows=16384 [--causal]
    tools/die-cache.py --heads=128 --rows=131072 --schedule=xcds=1
    tools/die-cache.py --decode --heads=128 --kv-heads=1 --tiles=8 --head-size=576

The order is that of kvbuf-assign-work: its ids are evaluated for every block. The
rest is a model, and nothing of it was measured:

  - consecutive blocks go to the dies in turn; a die works on as many at once as it
    has compute units (times --blocks), and takes its next one when one ends;
  - all blocks of a die take equally long for as many keys (--keys at a time);
  - its L2 holds K and V alone, --cache-mb of them, and drops what was used longest
    ago; blocks that want the same in the same step read it once.

With --decode it is a kernel that splits keys: --rows are the keys of each of --batch
sequences, of which each block has a share, as many blocks as --blocks for each unit,
or --workers for each head. --tiles blocks have query heads, or rows, of one head of the
cache. --beside bytes for each token and head of the cache lie in lines that a token's
heads share, as scales do.

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
    "index_castui": lambda a: a % WORD,
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
        if found := re.match(r"(%\S+) = arith\.constant (\d+) : (?:index|i32)",
                             line):
            return "constant", found[1], int(found[2])
        if found := re.match(r"(%\S+) = gpu\.block_id  ?([xyz])", line):
            return "id", found[1], "xyz".index(found[2])
        if found := re.match(r'(%\S+) = kvbuffer\.launch_size "(\w+)"', line):
            return "size", found[1], found[2]
        if found := re.match(r"(%\S+) = arith\.select (\S+), (\S+), (\S+) :", line):
            return "select", *found.groups()
        if found := re.match(r"(%\S+) = arith\.cmpi (\w+), (\S+), (\S+) :", line):
            return "compute", found[1], COMPARE[found[2]], found[3], found[4]
        if found := re.match(r"(%\S+) = arith\.(\w+) (\S+?)(?:, (\S+))? :", line):
            return "compute", found[1], OPS[found[2]], *filter(None, found.groups()[2:])
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
                compute, *operands = rest
                values[name] = compute(*(values[operand] for operand in operands))
        raise ValueError("no store")


def chip_schedule(options):
    """(the schedule of the problem as text, its rows a block)."""
    stage = f"--kvbuf-choose-schedule=chip={options.target}"
    if options.decode:  # a head like any other: the order is that of all
        text = problem.problem(seq_q=1, heads=1, kv_heads=1, head_size=128)
        options.schedule = ",".join(
            filter(None, ("split_keys=true", options.schedule)))
    else:
        text = problem.problem(heads=options.heads, kv_heads=options.kv_heads,
                               head_size=options.head_size, causal=options.causal)
    if options.schedule:
        stage += f" schedule={options.schedule}"
    out = subprocess.run([options.kvbuf_opt, "-", stage], input=text, text=True,
                         capture_output=True)
    if out.returncode:
        sys.exit(f"die-cache.py: error: {out.stderr.strip()}")
    found = re.search(r"#kvbuffer\.schedule<BM = (\d+).*>$", out.stdout, re.M)
    return found[0], int(found[1])


def run_blocks(blocks, options):
    """For each die (bytes that blocks read, bytes that came from behind its L2).
    A block is a list of what it reads one after the other, each a list of (name,
    bytes)."""
    result = []
    for die in range(options.dies):
        queue = collections.deque(blocks[die::options.dies])
        running, cache, held = [], collections.OrderedDict(), 0
        room = options.cache_mb * (1 << 20)
        asked = missed = 0
        while queue or running:
            while queue and len(running) < options.units * options.blocks:
                running.append(iter(queue.popleft()))
            after = []
            for block in running:
                if (reads := next(block, None)) is None:
                    continue
                after.append(block)
                for name, size in reads:
                    asked += size
                    if name in cache:
                        cache.move_to_end(name)
                        continue
                    missed += size
                    cache[name] = size
                    held += size
                    # At least what was read last.
                    while held > room and len(cache) > 1:
                        held -= cache.popitem(last=False)[1]
            running = after
        result.append((asked, missed))
    return result


def attention(options, schedule, rows):
    """The blocks of many rows, in the order of their launch: what each reads."""
    grows = ", growing" if options.causal else ""
    order = Order(options.target, schedule,
                  f'<"rows" by {rows}{grows}, sharing = all>, <{options.heads}>, '
                  '<"batch">', options.kvbuf_opt)
    tiles = -(-options.rows // rows)
    heads, batch = options.heads, options.batch
    sizes = {"rows": options.rows, "batch": batch}
    group = heads // (options.kv_heads or heads)
    unit = 2 * 2 * options.keys * options.head_size
    if order.flat:
        items = [order.item(n, sizes) for n in range(tiles * heads * batch)]
    else:  # x, y and z as kvbuf-assign-work places coordinates: x the fastest
        items = [order.item((x, y, z), sizes) for z in range(batch)
                 for y in range(heads) for x in range(tiles)]

    def block(tile, head, b):
        end = options.rows
        if options.causal:
            end = min(end, (tile + 1) * rows)
        for piece in range(-(-end // options.keys)):
            yield [((head // group, b, piece), unit)]
    return [block(*item) for item in items]


def split_keys(options, schedule):
    """The same of a kernel that splits keys, into pieces of the same size."""
    kv_heads = options.kv_heads or options.heads
    lines = kv_heads * options.tiles
    workers = options.workers or max(
        options.batch, options.units * options.blocks * options.dies // lines)
    order = Order(options.target, schedule, f'<{lines}>, <"workers">, <1>',
                  options.kvbuf_opt)
    sizes = {"workers": workers}
    if order.flat:
        items = [order.item(n, sizes) for n in range(lines * workers)]
    else:
        items = [order.item((x, y, 0), sizes) for y in range(workers)
                 for x in range(lines)]
    of_sequence = -(-options.rows // options.keys)
    share = -(-of_sequence * options.batch // workers)
    unit = (1 if options.latent else 2) * options.keys
    row = options.head_size * options.element_bytes

    def block(line, worker, _):
        for n in range(worker * share,
                       min((worker + 1) * share, of_sequence * options.batch)):
            reads = [(("row", line // options.tiles, n), unit * row)]
            if options.beside:
                reads.append((("beside", n), unit * options.beside * kv_heads))
            yield reads
    return [block(*item) for item in items]


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
    parser.add_argument("--decode", action="store_true",
                        help="few rows, whose keys blocks share out")
    parser.add_argument("--tiles", type=int, default=1,
                        help="blocks that read the same keys [1]")
    parser.add_argument("--workers", type=int,
                        help="blocks of one such tile of a head of the cache, over "
                        "all sequences [as many as units run]")
    parser.add_argument("--latent", action="store_true",
                        help="values are a part of the keys")
    parser.add_argument("--element-bytes", type=int, default=2)
    parser.add_argument("--beside", type=int, default=0)
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
    kv_heads = options.kv_heads or options.heads
    if options.decode:
        blocks = split_keys(options, schedule)
        least = ((1 if options.latent else 2) * kv_heads
                 * (options.head_size * options.element_bytes + options.beside))
    else:
        blocks = attention(options, schedule, rows)
        least = 2 * 2 * kv_heads * options.head_size
    found = run_blocks(blocks, options)
    hits = [1 - missed / asked for asked, missed in found if asked]
    result = {"hits": [round(x, 4) for x in hits],
              "behind": sum(m for _, m in found),
              "least": least * options.batch * options.keys
              * -(-options.rows // options.keys),
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
