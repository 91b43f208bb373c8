# More new tokens than a warp has rows for: tiles that all warps of a block share, and,
# where a team moves them, tiles of all heads that share a head of the cache.
# RUN: %python %s sm_80 sm_90a
"""Runs sequences of 16 and 40 new tokens against float64.

    trees.py CHIP...

Each new token sees the cached ones and a random part of the new ones, or those before it.
Sequences are so few that keys are split over blocks, or, where the chip has a kernel of
tiles for more of them, as many as that takes. Dense caches, and pages whose unused rows
hold NaN. A result passes by the rule of kvbuf-run.
"""

import sys
import unittest
import unittest.mock

import numpy as np

import kvbuf
from kvbuf._module_text import tree_region

sys.path.append(f"{__file__.rpartition('/')[0]}/../Inputs")
from numbers16 import attend, check, from_bf16, to_bf16

RNG = np.random.default_rng()
KV_HEADS, SIZE, PAGE = 2, 64, 16


def source(tokens, group, tree, page):
    heads, word = KV_HEADS * group, "i64" if tokens > 32 else "i32"
    qo = f"memref<?x{tokens}x{heads}x{SIZE}xbf16, strided<[?, ?, ?, 1]>>"
    kind = f"paged, bf16, heads = {KV_HEADS}, head_size = {SIZE}, page_size = {page}"
    kv = f"!kvbuffer.cache<{kind}>" if page else (
        f"!kvbuffer.cache<dense, bf16, heads = {KV_HEADS}, head_size = {SIZE}>")
    attributes = ['kvbuffer.lengths = "all"'] if page else []
    more, captured, region, lse, stored = "", "", "", "", ""
    if tree:
        words = f"memref<?x{tokens}x{word}>"
        more = (f'%words: {words} {{kvbuffer.name = "words", kvbuffer.shape = ["batch", '
                f'{tokens}]}}, ')
        region = tree_region(words, word)
    else:
        attributes.append("mask = #kvbuffer.mask<causal = true>")
        lse = f"%lse: memref<?x{heads}x{tokens}xf32>, "
        captured, stored = " lse(%lse)", f", lse memref<?x{heads}x{tokens}xf32>"
    return f"""func.func @f(%q: {qo}, %k: {kv}, %v: {kv}, {more}{lse}%o: {qo}) {{
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o){captured} {{{", ".join(attributes)}}}
    : {qo}, {kv}, {kv}, {qo}{stored}
{region}  return
}}
"""


def pages_of(caches, page):
    """K and V in pages in any order, their table, and lengths."""
    batch, keys = caches.shape[1:3]
    each = -(-keys // page)
    places = RNG.permutation(batch * each).astype(np.int32).reshape(batch, each)
    pages = np.full((2, batch * each, page, KV_HEADS, SIZE), 0x7FC0, np.uint16)
    for b in range(batch):
        for n, place in enumerate(places[b]):
            part = caches[:, b, n * page:(n + 1) * page]
            pages[:, place, :part.shape[1]] = part
    lengths = np.full(batch, keys, np.int32)
    return {"k": pages[0], "v": pages[1], "k_table": places, "v_table": places,
            "k_lengths": lengths, "v_lengths": lengths}


class Trees(unittest.TestCase):
    def run_case(self, chip, tokens, group, tree=True, page=0, batches=(1,), splits=True,
                 schedule=""):
        run = kvbuf.compile(source(tokens, group, tree, page), target=chip,
                            machine_code=False, schedule=schedule)
        for batch in batches:
            keys = int(RNG.integers(3, 150)) + tokens
            with self.subTest(chip=chip, tokens=tokens, batch=batch, keys=keys):
                self.compare(run, tokens, group, tree, page, batch, keys)
        schedules = [k["schedule"] for k in run.manifest["kernels"]]
        self.assertEqual(any("split_keys" in s for s in schedules), splits, schedules)
        self.assertFalse(run.remarks())
        return schedules

    def compare(self, run, tokens, group, tree, page, batch, keys):
        q = to_bf16(RNG.standard_normal((batch, tokens, KV_HEADS * group, SIZE)))
        caches = to_bf16(RNG.standard_normal((2, batch, keys, KV_HEADS, SIZE)))
        out = np.full(q.shape, 0x7FC0, np.uint16)  # NaN
        given = pages_of(caches, page) if page else dict(zip("kv", caches))
        bits = RNG.integers(0, 2, (batch, tokens, tokens), dtype=np.uint64)
        if tree:
            words = (bits << np.arange(tokens, dtype=np.uint64)).sum(-1, dtype=np.uint64)
            given["words"] = words.view(np.int64) if tokens > 32 else (
                words.astype(np.uint32).view(np.int32))
        else:
            bits = np.tril(np.ones_like(bits))
            given["lse"] = np.full((batch, q.shape[2], tokens), np.nan, np.float32)
        run(q=q, out=out, **given)
        own, k, v = map(from_bf16, (q, *caches))
        k, v = (np.repeat(x, group, 2) for x in (k, v))
        s = np.einsum("bihd,bjhd->bhij", own, k) / SIZE ** 0.5
        seen = np.ones((batch, 1, tokens, keys), bool)
        seen[:, 0, :, -tokens:] = bits
        exact, base, lse = attend(s, seen, v.transpose(0, 2, 1, 3))
        check(self, from_bf16(out), *(x.transpose(0, 2, 1, 3) for x in (exact, base)))
        if not tree:
            np.testing.assert_allclose(given["lse"], lse, atol=1e-2)

    def test_shared_tiles(self):
        for chip in CHIPS:
            # 64 rows, of which each of four warps has 16.
            self.run_case(chip, 16, 4)
            self.run_case(chip, 16, 4, page=PAGE)
        # Two tiles of as many warps as there may be, side by side.
        self.run_case(CHIPS[0], 40, 4, tree=False)

    def test_folded_heads(self):
        for chip in set(CHIPS) & {"sm_90a"}:
            # The emulator has four multiprocessors: a tile each, and one left over.
            first, *others = self.run_case(chip, 16, 4, batches=(2, 1))
            self.assertIn("BM = 64", first)
            self.assertIn("producers", first)
            self.run_case(chip, 40, 2, tree=False, batches=(2, 1))
            self.run_case(chip, 16, 4, page=PAGE, batches=(2,))

    def test_clusters(self):
        # Two blocks load keys for each other; of three tiles one has no partner.
        for chip in set(CHIPS) & {"sm_90a"}:
            for tree, group in (True, 4), (True, 8), (False, 8):
                first, *_ = self.run_case(chip, 64, group, tree, batches=(1, 2),
                                          splits=False, schedule="cluster=2")
                self.assertIn("cluster = 2", first)
            # Of 128 columns they take turns, too.
            with unittest.mock.patch.object(sys.modules[__name__], "SIZE", 128):
                first, *_ = self.run_case(chip, 64, 4, batches=(1, 2), splits=False,
                                          schedule="cluster=2")
                self.assertRegex(first, "BM = 128,.*ping_pong = true")


CHIPS = sys.argv[1:]
unittest.main(argv=sys.argv[:1])
