# Teams joined by rings over pages that tiles do not begin with, against float64.
# RUN: %python %s
"""Inputs/rings.mlir with a paged cache, whose tiles begin at keys of their own.

A tile that begins within a page needs other boxes of the copy engine than one that
begins with it, or none. Where a tile begins is a number in the program, or a number
that only the launch knows.
"""

import pathlib
import sys
import unittest

import kvbuf
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE / "Inputs"), str(HERE.parent / "Inputs")]
from numbers16 import attend, check, from_bf16, to_bf16

TEXT = (HERE / "Inputs" / "rings.mlir").read_text()


def program(page, first):
    """Attention over the keys from `first` on, or from `at[0]` on if it is None."""
    text = TEXT
    start = f"    %first = arith.constant {first} : index\n"
    if first is None:
        start = ("    %word = memref.load %at[%c0] : memref<?xi32>\n"
                 "    %first = arith.index_cast %word : i32 to index\n")
    for old, new in (
            ("!kvbuffer.cache<dense, bf16, heads = 1, head_size = 192>",
             "!kvbuffer.cache<paged, bf16, heads = 1, head_size = 192, "
             f"page_size = {page}>"),
            ("!half =", f"!page = !kvbuffer.tile<64x192xbf16, page_size = {page}>\n"
             "!half ="),
            ('%k: !kv {kvbuffer.name = "k"},',
             '%k: !kv {kvbuffer.name = "k"}, %at: memref<?xi32> '
             '{kvbuffer.name = "at", kvbuffer.shape = ["starts"]},'),
            ("    %number = gpu.block_id x\n",
             start + "    %number = gpu.block_id x\n"),
            ("%tiles = arith.ceildivui %seen, %c64",
             "%past = arith.subi %seen, %first : index\n"
             "    %some = arith.maxsi %past, %c0 : index\n"
             "    %tiles = arith.ceildivui %some, %c64"),
            ("          %key = arith.muli %i, %c64 : index\n",
             "          %tile_key = arith.muli %i, %c64 : index\n"
             "          %key = arith.addi %first, %tile_key : index\n"),
            ("from %c0 upto %keys : !kv -> !tile", "from %c0 upto %keys : !kv -> !page"),
            ("%tile into %ring[%i] : !tile,", "%tile into %ring[%i] : !page,")):
        assert old in text, old
        text = text.replace(old, new)
    return text


class Pages(unittest.TestCase):
    def check(self, page, first, at, lengths=(200, 131), queries=70):
        rng = np.random.default_rng()
        batch = len(lengths)
        keys = np.array([n + queries for n in lengths])
        per = -(-keys.max() // page)
        pages = rng.permutation(batch * per + 3)
        # What no key has is NaN, and what no sequence has leads nowhere.
        cache = np.full((len(pages), page, 1, 192), 0x7FC0, np.uint16)
        table = np.full((batch, per), 0x3FFFFFFF, np.int32)
        rows = [to_bf16(rng.standard_normal((n, 1, 192))) for n in keys]
        for b, row in enumerate(rows):
            own = pages[b * per:b * per + -(-len(row) // page)]
            table[b, :len(own)] = own
            padded = np.full((len(own) * page, 1, 192), 0x7FC0, np.uint16)
            padded[:len(row)] = row
            cache[own] = padded.reshape(len(own), page, 1, 192)
        q = to_bf16(rng.standard_normal((batch, queries, 4, 192)))
        out = np.full((batch, queries, 8, 64), 0x7FC0, np.uint16)
        kvbuf.compile(program(page, first), target="sm_90a", machine_code=False)(
            q=q, k=cache, k_table=table, k_lengths=np.array(lengths, np.int32),
            at=np.array([at], np.int32), out=out)
        out = from_bf16(out).reshape(batch, queries, 4, 128)
        for b, row in enumerate(rows):
            k = from_bf16(row)[:, 0]
            s = np.einsum("ihd,jd->hij", from_bf16(q[b]), k) * 192 ** -0.5
            place = np.arange(len(row))
            last = np.arange(queries)[:, None] + len(row) - queries
            exact, base, _ = attend(s, (place <= last) & (place >= at), k[:, :128])
            check(self, out[b], exact.transpose(1, 0, 2), base.transpose(1, 0, 2))

    def test_numbers(self):
        """With a page, with a part of one that is whole boxes, and anywhere."""
        for page, first in ((16, 16), (16, 24), (16, 5), (64, 72), (8, 4), (4, 6)):
            with self.subTest(page=page, first=first):
                self.check(page, first, first)

    def test_known_by_the_launch(self):
        for page, at in (16, 21), (64, 40), (4, 3), (5, 7), (2, 1):
            with self.subTest(page=page, at=at):
                self.check(page, None, at)


if __name__ == "__main__":
    unittest.main()
