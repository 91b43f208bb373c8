# Numbers that rise along the keys (kvbuffer.rising): tiles that functions of visibility
# hide are not visited, on the emulator.
# RUN: %python %s sm_80
# RUN: %python %s sm_90a
# RUN: %if ld.lld %{ %python %s gfx950 %}
"""Documents by their numbers, with a causal mask and without, and keys from the one on
that a tensor has for each row, against float64.

    rising.py CHIP

Keys before the tile that has the first one that a tile of queries sees hold NaN: who
visits them has a NaN. Numbers that fall, against the program's word, are caught.
"""

import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import attend, check, from_bf16, to_bf16

CHIP = sys.argv.pop()
RNG = np.random.default_rng()
#: Keys of a tile, at most.
SIZE, KEYS, TILE = 32, 700, 192

OWN = """
      %c0 = arith.constant 0 : index
      %at = arith.maxsi %position, %c0 : index
      %own = memref.load %t_[%batch, %at] : memref<?x?xi32>"""
#: The bodies of functions; whether a causal mask stands beside them.
FUNCTIONS = {
    "documents": (OWN + """
      %other = memref.load %t_[%batch, %key] : memref<?x?xi32>
      %seen = arith.cmpi eq, %own, %other : i32""", False),
    "causal documents": (OWN + """
      %other = memref.load %t_[%batch, %key] : memref<?x?xi32>
      %seen = arith.cmpi eq, %other, %own : i32""", True),
    "starts": (OWN + """
      %i = arith.index_cast %key : index to i32
      %seen = arith.cmpi sge, %i, %own : i32""", True),
}


def source(name, rows, heads, left=None, page=None):
    body, causal = FUNCTIONS[name]
    qo = f"memref<?x{rows}x{heads}x{SIZE}xbf16, strided<[?, ?, ?, 1]>>"
    kv = f"!kvbuffer.cache<dense, bf16, heads = 1, head_size = {SIZE}>"
    masks = ["causal = true"] * causal + [f"left = {left}"] * (left is not None)
    words = [f"mask = #kvbuffer.mask<{', '.join(masks)}>"] * bool(masks)
    if page:
        kv = f"!kvbuffer.cache<paged, bf16, heads = 1, head_size = {SIZE}, page_size = {page}>"
        words.append('kvbuffer.lengths = "all"')
    mask = f" {{{', '.join(words)}}}" if words else ""
    return f"""func.func @f(%q: {qo}, %k: {kv}, %v: {kv}, %o: {qo},
    %t: memref<?x?xi32> {{kvbuffer.name = "t", kvbuffer.shape = ["batch", "most"], kvbuffer.rising}}) {{
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o){mask} : {qo}, {kv}, {kv}, {qo}
    captures(%t : memref<?x?xi32>)
    visible {{
    ^bb0(%batch: index, %head: index, %row: index, %position: index, %key: index, %t_: memref<?x?xi32>):{body}
      kvbuffer.yield %seen : i1
    }}
  return
}}
"""


class Rising(unittest.TestCase):
    def compare(self, name, run, queries, heads, ends, hidden=0, fault=None):
        """`ends` of each sequence's documents; no row sees the `hidden` first keys."""
        batch, keys = len(ends), ends[0][-1] if ends[0][-1] > KEYS else KEYS
        number = np.array([np.searchsorted(e, np.arange(keys), "right") for e in ends],
                          np.int32)
        begins = np.array([[([0] + e)[n] for n in row]
                           for e, row in zip(ends, number)], np.int32)
        tensor = begins if name == "starts" else 5 * number - 7
        q, k, v = (to_bf16(RNG.standard_normal((batch, n, h, SIZE)))
                   for n, h in ((queries, heads), (keys, 1), (keys, 1)))
        k[:, :hidden], v[:, :hidden] = 0x7FC0, 0x7FC0  # NaN
        out = np.full(q.shape, 0x7FC0, np.uint16)
        run(q=q, k=k, v=v, o=out, t=tensor if fault is None else fault(tensor))
        k[:, :hidden], v[:, :hidden] = 0, 0
        i, j = np.arange(queries)[:, None] + keys - queries, np.arange(keys)[None]
        seen = j >= begins[:, i]
        if name == "documents":
            seen = number[:, i] == number[:, None]
        if FUNCTIONS[name][1]:
            seen = seen & (j <= i)
        q, k, v = map(from_bf16, (q, k, v))
        k, v = (np.repeat(x, heads, 2) for x in (k, v))
        s = np.einsum("bihd,bjhd->bhij", q, k) / SIZE ** 0.5
        exact, base = (x.transpose(0, 2, 1, 3) for x in attend(
            s, seen.reshape(batch, 1, queries, keys), v.transpose(0, 2, 1, 3))[:2])
        check(self, from_bf16(out), exact, base)

    def test_functions(self):
        for name in FUNCTIONS:
            run = kvbuf.compile(source(name, "?", 1), target=CHIP, machine_code=False)
            with self.subTest(name):
                self.compare(name, run, 260, 1, [[100, 300, 520], [KEYS], [689]])
                # One tile of queries, whose first document begins behind some of keys.
                self.compare(name, run, 30, 1, [[500, 675, 690]], hidden=500 - TILE)
                # One begins farther away than all the tiles that are asked one by one.
                self.compare(name, run, 70, 1, [[300, 2460, 2500]], hidden=300 - TILE)
                with self.assertRaises(AssertionError):
                    self.compare(name, run, 260, 1, [[100, 300, 520]],
                                 fault=lambda t: np.ascontiguousarray(t[:, ::-1]))

    def test_first_keys_of_tiles(self):
        """A document that begins with a tile has its first key beside a window, and of
        pages, whose rows are loaded from the first one that counts."""
        ends = [[32, 64, 96, 192, 256, 384, 512, 544], [128, 640]]
        for name in "causal documents", "documents":
            run = kvbuf.compile(source(name, "?", 1, left=5000), target=CHIP,
                                machine_code=False)
            with self.subTest(name):
                self.compare(name, run, 260, 1, ends)
        size = 16
        paged = kvbuf.compile(source("causal documents", "?", 1, page=size), target=CHIP,
                              machine_code=False)

        def run(k, v, **arrays):
            batch, keys = k.shape[:2]
            pages = -(-keys // size)
            rows = ((0, 0), (0, pages * size - keys), (0, 0), (0, 0))
            table = np.arange(batch * pages, dtype=np.int32).reshape(batch, pages)
            for n, x in ("k", k), ("v", v):
                arrays[n] = np.pad(x, rows).reshape(-1, size, 1, SIZE)
                arrays[n + "_table"] = table
                arrays[n + "_lengths"] = np.full(batch, keys, np.int32)
            paged(**arrays)
        self.compare("causal documents", run, 260, 1, ends)

    @unittest.skipIf(CHIP != "sm_90a", "one chip's tiles")
    def test_classes(self):
        """Tiles that are partly visible, called full: at the mask's edge, and at the
        function's. And the first tile, dropped."""
        tiles = subprocess.run(
            ["kvbuf-compile", "-", f"--target={CHIP}", "--emit=tile", "--no-alternatives"],
            input=source("causal documents", "?", 1), text=True, check=True,
            stdout=subprocess.PIPE).stdout
        begin = re.search(r"( *)%lo, .* from (%\w+) ", tiles)
        later = (f"{begin[1]}%one_tile = arith.constant 128 : index\n"
                 f"{begin[1]}%later = arith.addi {begin[2]}, %one_tile : index\n")
        dropped = tiles.replace(begin[0], later + begin[0].replace(begin[2], "%later"))
        edges = re.search(r"cmpi slt, %\w+, (%\w+) : index\n *%\w+ = arith\.cmpi sge, "
                          r"%\w+, (%\w+) : index\n", tiles).groups()
        run = kvbuf.compile(dropped, target=CHIP, machine_code=False)
        with self.assertRaises(AssertionError):
            self.compare("causal documents", run, 260, 1, [[100, 300, 520]])
        for edge, down, up in zip(edges, ("divui", "ceildivui"), ("ceildivui", "divui")):
            bound = re.search(rf"{edge} = arith\.subi %\w+, (%\w+) ", tiles)[1]
            before = f"{bound} = arith.{down} "
            self.assertEqual(tiles.count(before), 1)
            for text, good in ((tiles, True),
                               (tiles.replace(before, f"{bound} = arith.{up} "), False)):
                run = kvbuf.compile(text, target=CHIP, machine_code=False)
                with self.subTest(edge, good=good), (
                        contextlib.nullcontext() if good
                        else self.assertRaises(AssertionError)):
                    self.compare("causal documents", run, 260, 1, [[100, 300, 520]])

    @unittest.skipIf(CHIP != "sm_90a", "the tile program is the same")
    def test_whole_tiles(self):
        """The block-level program."""
        text = subprocess.run(
            ["kvbuf-opt", "-", f"--kvbuf-to-scheduled=chip={CHIP}"], text=True, check=True,
            input=source("causal documents", "?", 1), stdout=subprocess.PIPE).stdout

        def run(**arrays):
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                options = ["--output", f"o={folder / 'o.npy'}",
                           f"--size=seq_k={arrays['k'].shape[1]}"]
                for label, array in arrays.items():
                    np.save(folder / f"{label}.npy", array)
                    options += ["--input", f"{label}={folder / label}.npy"]
                subprocess.run(["kvbuf-tile-run", "-", *options], input=text, text=True,
                               check=True)
                arrays["o"][:] = np.load(folder / "o.npy")
        self.compare("causal documents", run, 260, 1, [[100, 300, 520], [KEYS]])

    def test_few_rows(self):
        run = kvbuf.compile(source("causal documents", "5", 2), target=CHIP,
                            machine_code=False)
        self.compare("causal documents", run, 5, 2, [[100, 697], [698], [KEYS]])


unittest.main()
