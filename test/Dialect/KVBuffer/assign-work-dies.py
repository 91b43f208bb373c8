# RUN: %python %s %src
"""Which block has which item where a chip has several dies: the ids that
kvbuf-assign-work computes, evaluated for every block of small launches; and what
tools/die-cache.py makes of them."""

import collections
import importlib.util
import itertools
import json
import pathlib
import subprocess
import sys
import unittest

TOOL = pathlib.Path(sys.argv.pop()) / "tools/die-cache.py"
spec = importlib.util.spec_from_file_location("die_cache", TOOL)
die_cache = importlib.util.module_from_spec(spec)
spec.loader.exec_module(die_cache)

SCHEDULE = ("#kvbuffer.schedule<BM = 64, BN = 32, BK = 32, warps = 4, "
            "mma_shape = [16, 16, 16], xcds = {dies}>")


SPLIT = ("#kvbuffer.schedule<BM = 16, BN = 32, BK = 32, warps = 1, "
         "mma_shape = [16, 16, 16], work = split_keys<xcds = {dies}>>")


class Dies(unittest.TestCase):
    def items(self, dies, items, counts, sizes, schedule=SCHEDULE):
        """{die: its items, in the order of their blocks}; every item once."""
        order = die_cache.Order("gfx942", schedule.format(dies=dies), items)
        self.assertTrue(order.flat, "blocks stand along x")
        n = counts[0] * counts[1] * counts[2]
        taken = [order.item(block, sizes) for block in range(n)]
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


    def test_runs(self):
        """Split keys: a die has items that follow each other, the first coordinate
        the fastest, as many as the others or one more."""
        for dies, lines, splits, batch in itertools.product(
                (2, 3, 8), (1, 2, 8, 12), (1, 5), (1, 7)):
            with self.subTest(dies=dies, lines=lines, splits=splits, batch=batch):
                found = self.items(
                    dies, f'<{lines}>, <"splits">, <"batch">', (lines, splits, batch),
                    {"splits": splits, "batch": batch}, SPLIT)
                numbers = [[line + lines * (split + splits * b)
                            for line, split, b in found.get(die, [])]
                           for die in range(dies)]
                self.assertEqual(sum(numbers, []), list(range(lines * splits * batch)))
                most = max(map(len, numbers))
                self.assertLessEqual(most - min(map(len, numbers)), 1)


class Cache(unittest.TestCase):
    def run_(self, *options):
        return json.loads(subprocess.run(
            [sys.executable, TOOL, "--json", *options], check=True, text=True,
            capture_output=True).stdout)

    def test_one_head(self):
        """Counted by hand: 16 blocks of 256 rows, two a die, that read 8 pieces of
        512 keys side by side; a cache that holds them gives half."""
        found = self.run_("--heads=1", "--rows=4096")
        self.assertEqual(found["hits"], [0.5] * 8)
        # Each die reads the head once.
        self.assertEqual(found["behind"], 8 * found["least"])
        self.assertEqual(found["least"], 2 * 2 * 4096 * 128)

    def test_no_cache(self):
        """One block at once, and a cache of one piece: all is read again."""
        found = self.run_("--heads=1", "--rows=4096", "--units=1", "--cache-mb=0")
        self.assertEqual(found["hits"], [0] * 8)

    def test_order(self):
        for mask in [], ["--causal"]:
            before, after = (self.run_(
                "--heads=16", "--rows=16384", "--keys=2048", f"--schedule=xcds={n}",
                *mask) for n in (1, 8))
            self.assertLess(2 * after["behind"], before["behind"])
            self.assertGreater(min(after["hits"]), 0.9)
            self.assertLess(after["longest"], 1.01)

    def test_tiles_of_the_same_keys(self):
        """Split keys: two tiles of query heads that read the same rows are on one die,
        and not on two; alike many rows of each of three heads, where a pair of eight
        dies' neighbours is apart."""
        latent = ("--decode", "--heads=128", "--kv-heads=1", "--tiles=2", "--latent",
                  "--head-size=576", "--batch=32", "--rows=4096")
        before, after = (self.run_(*latent, f"--schedule=xcds={n}") for n in (1, 8))
        self.assertEqual(before["hits"], [0] * 8)
        self.assertEqual(before["behind"], 2 * before["least"])
        self.assertEqual(after["hits"], [0.5] * 8)
        self.assertEqual(after["behind"], after["least"])
        self.assertEqual(self.run_(*latent), after)

    def test_what_lies_beside_rows(self):
        """Split keys: scales of eight heads lie side by side, and eight dies each read
        all of them where each has a head."""
        scales = ("--decode", "--heads=8", "--beside=4", "--element-bytes=1",
                  "--batch=64", "--rows=4096")
        before, after = (self.run_(*scales, f"--schedule=xcds={n}") for n in (1, 8))
        self.assertEqual(after["behind"], after["least"])
        self.assertAlmostEqual(before["behind"] / before["least"],
                               (128 + 4 * 8) / (128 + 4), places=6)

    def test_uneven(self):
        """Twelve heads: four are dealt tile by tile."""
        found = self.run_("--heads=12", "--rows=8192", "--causal", "--keys=2048")
        self.assertLess(found["longest"], 1.05)


if __name__ == "__main__":
    unittest.main()
