# RUN: %python %s
"""Which block has which item where a chip has several dies: the ids that
kvbuf-assign-work computes, evaluated for every block of small launches."""

import collections
import itertools
import re
import subprocess
import unittest

SCHEDULE = ("#kvbuffer.schedule<BM = 64, BN = 32, BK = 32, warps = 4, "
            "mma_shape = [16, 16, 16], xcds = {dies}>")
MODULE = """
module attributes {{kvbuffer.target = "gfx942"}} {{
gpu.module @m {{
  gpu.func @f(%o: memref<?x?x?xindex>) kernel attributes {{kvbuffer.schedule = {schedule}}} {{
    %a, %b, %c = kvbuffer.work_item [{items}]
    memref.store %a, %o[%a, %b, %c] : memref<?x?x?xindex>
    gpu.return
  }}
}}
}}
"""

#: What the ops compute. Values stay far from 2^63; those that unsigned ops read
#: may be below 0, where nothing uses the result.
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


PIPELINE = "builtin.module(gpu.module(gpu.func(kvbuf-assign-work)))"


def run(text):
    return subprocess.run(
        ["kvbuf-opt", "-", f"--pass-pipeline={PIPELINE}"], input=text, text=True,
        capture_output=True, check=True).stdout


class Kernel:
    """The pass's result, to be evaluated."""

    def __init__(self, text):
        self.lines = [line.strip() for line in text.splitlines()]
        self.grid = re.search(r"kvbuffer\.grid = \[(.*?, 1, 1)\]", text)

    def item(self, block, sizes):
        """The item of a block."""
        values = {}
        for line in self.lines:
            if found := re.match(r"memref\.store %\S+, %\S+\[(.*?)\]", line):
                return tuple(values[v.strip()] for v in found[1].split(","))
            if found := re.match(r"(%\S+) = arith\.constant (\d+) : index", line):
                values[found[1]] = int(found[2])
            elif found := re.match(r"(%\S+) = gpu\.block_id  ?x", line):
                values[found[1]] = block
            elif found := re.match(r'(%\S+) = kvbuffer\.launch_size "(\w+)"', line):
                values[found[1]] = sizes[found[2]]
            elif found := re.match(
                    r"(%\S+) = arith\.select (%\S+), (%\S+), (%\S+) :", line):
                values[found[1]] = values[found[3] if values[found[2]]
                                          else found[4]]
            elif found := re.match(
                    r"(%\S+) = arith\.cmpi uge, (%\S+), (%\S+) :", line):
                values[found[1]] = values[found[2]] % WORD >= values[found[3]] % WORD
            elif found := re.match(r"(%\S+) = arith\.(\w+) (%\S+), (%\S+) :", line):
                values[found[1]] = self.apply(found[2], values[found[3]],
                                              values[found[4]])
            elif re.match(r"%\S+ =", line):
                raise AssertionError(f"unknown op: {line}")
        raise AssertionError("no store")

    @staticmethod
    def apply(name, a, b):
        if name in ("divui", "remui", "ceildivui") and b == 0:
            raise AssertionError("a division by 0")
        return OPS[name](a, b)


class Dies(unittest.TestCase):
    def items(self, dies, items, counts, sizes):
        """{die: its items, in the order of their blocks}; every item once."""
        kernel = Kernel(run(MODULE.format(
            schedule=SCHEDULE.format(dies=dies), items=items)))
        self.assertTrue(kernel.grid, "blocks stand along x")
        n = counts[0] * counts[1] * counts[2]
        taken = [kernel.item(block, sizes) for block in range(n)]
        self.assertEqual(sorted(taken), sorted(itertools.product(*map(range, counts))))
        result = collections.defaultdict(list)
        for block, item in enumerate(taken):
            result[block % dies].append(item)
        return result

    def check_places(self, dies, counts, ofDie):
        """A die has whole places first, one after the other, and then at most
        one item in `dies` of each place that is left."""
        tiles, heads, batch = counts
        whole = heads * batch // dies
        for die, items in ofDie.items():
            run = [item[1:] for item in items[:whole * tiles]]
            self.assertEqual(len(set(run)), whole if tiles else 0, die)
            for place in set(run):
                self.assertEqual(run.count(place), tiles)

    def test_full(self):
        for dies, heads, batch, rows in itertools.product(
                (2, 8), (1, 3, 8, 12, 16), (1, 3), (1, 200, 640)):
            tiles = -(-rows // 64)
            with self.subTest(dies=dies, heads=heads, batch=batch, rows=rows):
                found = self.items(
                    dies, f'<"rows" by 64, sharing = all>, <{heads}>, <"batch">',
                    (tiles, heads, batch), {"rows": rows, "batch": batch})
                self.check_places(dies, (tiles, heads, batch), found)
                for items in found.values():
                    # Place by place: no place comes twice.
                    run = [item[1:] for item in items[:heads * batch // dies * tiles]]
                    self.assertEqual(len(list(itertools.groupby(run))),
                                     heads * batch // dies)

    def test_growing(self):
        """Long items first, in each place."""
        for dies, heads, rows in itertools.product((2, 8), (3, 8, 16, 20), (64, 640)):
            tiles = -(-rows // 64)
            with self.subTest(dies=dies, heads=heads, rows=rows):
                found = self.items(
                    dies, f'<"rows" by 64, growing, sharing = all>, <{heads}>, '
                    '<"batch">', (tiles, heads, 2), {"rows": rows, "batch": 2})
                self.check_places(dies, (tiles, heads, 2), found)
                for items in found.values():
                    for place in {item[1:] for item in items}:
                        own = [i[0] for i in items if i[1:] == place]
                        self.assertEqual(own, sorted(own, reverse=True))

    def test_last_places(self):
        """A die of 38 compute units ends with the 19 last places' items, the
        longest first; place by place before."""
        items = self.items(
            8, '<"rows" by 64, growing, sharing = all>, <320>, <"batch">',
            (4, 320, 1), {"rows": 256, "batch": 1})[0]
        self.assertEqual([i[0] for i in items],
                         [3, 2, 1, 0] * 21 + [3] * 19 + [2] * 19 + [1] * 19 + [0] * 19)

    def test_strips(self):
        """Products of a batch: each on a die."""
        found = self.items(
            4, '<"m" by 64, sharing = all>, <"n" by 64, sharing = all>, <8>',
            (3, 2, 8), {"m": 150, "n": 128})
        for items in found.values():
            self.assertEqual([k for k, _ in itertools.groupby(i[2] for i in items)],
                             sorted({i[2] for i in items}))


if __name__ == "__main__":
    unittest.main()
