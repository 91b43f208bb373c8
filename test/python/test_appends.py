# RUN: env KVBUF_LIB_DIR=%lib %python %s
"""New tokens where a cache has no place for them, or lies anywhere in memory:
flash_attn_with_kvcache on numpy's arrays, whatever kernel stores them."""

import unittest
from unittest import mock

import numpy as np

import kvbuf
from kvbuf import _flash

RNG = np.random.default_rng()
#: A kernel of few rows stores the tokens itself; others have a kernel for it.
FEW, MANY = 1, 40


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float16)


def ints(*x):
    return np.array(x, np.int32)


def anywhere(x, by=1):
    """A copy that begins `by` elements behind a multiple of 64 bytes."""
    memory = np.zeros(x.size + 128 // x.itemsize, x.dtype)
    first = -memory.ctypes.data % 64 // x.itemsize + by
    copy = memory[first:first + x.size].reshape(x.shape)
    copy[...] = x
    return copy


def call(q, k_cache, v_cache, k=None, v=None, lengths=None, *, cos=None, sin=None,
         slots=None, pad=None, table=None, interleaved=False):
    return _flash.with_kvcache(
        q, k_cache, v_cache, k, v, cos, sin, lengths, slots, pad, table, None, True,
        (-1, -1), 0.0, interleaved, None, 0, False, None, None, None, None)


class Places(unittest.TestCase):
    """The host reads what tables and lengths hold, so it refuses, and nothing is
    written."""

    def refuses(self, message, rows, caches, lengths, new=None, size=64, **more):
        new = rows if new is None else new
        k, v = normal(2, new, 2, size), normal(2, new, 2, size)
        before = [np.copy(x) for x in caches]
        with self.assertRaisesRegex(kvbuf.Error, message):
            call(normal(2, rows, 4, size), *caches, k, v, ints(*lengths), **more)
        for x, y in zip(caches, before):
            np.testing.assert_array_equal(x, y)

    def test_numbers_of_the_host(self):
        """An int is refused before any kernel is looked for, so on GPUs, too."""
        caches = normal(4, 16, 2, 64), normal(4, 16, 2, 64)
        table = np.array([[0, 1], [2, 3]], np.int32)
        new = normal(2, 3, 2, 64)
        q = normal(2, 3, 4, 64)
        with mock.patch.object(_flash, "build", side_effect=AssertionError):
            for words, length, k, more in (
                    ("cache_seqlens is 17; expected 16 or less for 16 rows of a slot",
                     17, None, {}),
                    ("cache_seqlens is 14, with 3 new tokens; expected 13 or less for "
                     "16 rows of a slot", 14, new, {}),
                    ("cache_seqlens is 33; expected 32 or less for 32 rows of a "
                     "table's pages", 33, None, {"table": table}),
                    ("cache_seqlens is 30, with 3 new tokens; expected 29 or less for "
                     "32 rows of a table's pages", 30, new, {"table": table})):
                with self.subTest(words), self.assertRaises(kvbuf.Error) as caught:
                    call(q, *caches, k, k, length, **more)
                self.assertEqual(str(caught.exception), words)
        out = call(q, *caches, new, new, 29, table=table)
        np.testing.assert_array_equal(caches[0][[1, 3], 13:], new)
        self.assertEqual(out.shape, q.shape)

    def test_slots(self):
        for rows, new, size in ((FEW, 1, 64), (MANY, MANY, 64), (FEW, 2, 64),
                                (FEW, 1, 60)):
            with self.subTest(rows=rows, new=new, size=size):
                caches = normal(4, 64, 2, size), normal(4, 64, 2, size)
                for lengths in (3, -1), (3, 65 - new):
                    self.refuses(
                        f"'k.lengths' holds {lengths[1]} at 1; expected 0 to 64 - "
                        f"{new}", rows, caches, lengths, new, size)
                for slot in -1, 4:
                    self.refuses(
                        f"'k.table' holds {slot} at 1.*; expected 0 to 3, a block of "
                        "'k'", rows, caches, (3, 5), new, size, slots=ints(0, slot))

    def test_pages(self):
        table = ints([0, 1, 2, 3], [4, 5, 6, 7])
        for rows, new in (FEW, 1), (MANY, MANY):
            caches = normal(9, 16, 2, 64), normal(9, 16, 2, 64)
            for lengths in (3, -5), (3, 65 - new):
                self.refuses(f"'k.lengths' holds {lengths[1]} at 1", rows, caches,
                             lengths, new, table=table)
            for page in -1, 9:
                bad = np.copy(table)
                bad[1, 1] = page
                self.refuses(f"'k.table' holds {page} at 1, 1.*a block of 'k'", rows,
                             caches, (3, 17), new, table=bad)

    def test_wide(self):
        """Numbers of 64 bits beside a table of 32, and the other way round."""
        table = ints([0, 1, 2, 3], [4, 5, 6, 7])
        caches = normal(9, 16, 2, 64), normal(9, 16, 2, 64)
        wide, page = np.array([3, 2**32 + 5]), table.astype(np.int64)
        page[1, 0] += 2**32
        for k in None, normal(2, 2, 2, 64):
            for lengths, pages, what in (
                    (wide, table, "'k.lengths' holds 2147483647 at 1"),
                    (ints(3, 5), page, "'k.table' holds 4294967300 at 1")):
                before = [np.copy(x) for x in caches]
                with self.assertRaisesRegex(kvbuf.Error, what):
                    call(normal(2, 1, 4, 64), *caches, k, k, lengths, table=pages)
                np.testing.assert_array_equal(caches, before)
        with self.assertRaisesRegex(kvbuf.Error,
                                    "'q_offsets' holds 2147483647 at 1"):
            _flash.with_kvcache(
                normal(2, 4, 64), *caches, None, None, None, None, ints(3, 5), None,
                None, table, None, True, (-1, -1), 0.0, False, None, 0, False,
                np.array([0, 2**32 + 1, 2]), 2, None, None)

    def test_tokens_in_the_cache(self):
        """Blocks store rows that others still read; a part of each row that no new
        token goes to is no such."""
        for rows in FEW, MANY:
            for name in "q", "k", "v":
                with self.subTest(rows=rows, name=name):
                    caches = normal(2, 96, 2, 64), normal(2, 96, 2, 64)
                    before = [np.copy(x) for x in caches]
                    new = {"q": normal(2, rows, 2, 64), "k": normal(2, rows, 2, 64),
                           "v": normal(2, rows, 2, 64)}
                    new[name] = caches[name == "v"][:, 10:10 + rows]
                    at = {"q": "q", "k": "k_new", "v": "v_new"}[name]
                    if name == "q" and rows == MANY:
                        continue  # another kernel reads it, after the first
                    with self.assertRaisesRegex(
                            kvbuf.Error, f"^tensor '{'v' if name == 'v' else 'k'}' "
                            f"shares memory with tensor '{at}', which is still read "
                            "while it is written; expected memory of its own$"):
                        call(new["q"], *caches, new["k"], new["v"], ints(20, 21))
                    for x, y in zip(caches, before):
                        np.testing.assert_array_equal(x, y)
        both = normal(2, 96, 2, 128)
        new = normal(2, MANY, 2, 64)
        both[:, :MANY, :, 64:] = new
        v_cache, q = normal(2, 96, 2, 64), normal(2, MANY, 2, 64)
        call(q, both[..., :64], v_cache, both[:, :MANY, :, 64:], new, ints(20, 21))
        for b, at in enumerate((20, 21)):
            np.testing.assert_array_equal(both[b, at:at + MANY, :, :64], new[b])

    def test_one_cache_for_both(self):
        """Different keys and values have no place in the same bytes; what is the same
        for both has one, as rows of latent attention whose first columns are values."""
        table = ints([3, 1], [0, 2])
        for rows in FEW, MANY:
            pool = normal(7, 48, 2, 64)
            for where, caches, more in (
                    ("one tensor", (pool, pool), {}),
                    ("half", (pool[:5], pool[2:]), {}),
                    ("pages", (pool, pool), {"table": table}),
                    # Which is copied to lie side by side.
                    ("pages of another order", (pool, pool),
                     {"table": np.asfortranarray(table)})):
                with self.subTest(where, rows=rows):
                    before = np.copy(pool)
                    k, v = normal(2, rows, 2, 64), normal(2, rows, 2, 64)
                    with self.assertRaises(kvbuf.Error) as caught:
                        call(normal(2, rows, 4, 64), *caches, k, v, ints(5, 7), **more)
                    self.assertEqual(
                        str(caught.exception), "tensor 'v' shares memory with tensor "
                        "'k', and new tokens of both are stored at the same places; "
                        "expected memory of its own, or tensor 'v_new' in the same "
                        "place of 'k_new'")
                    np.testing.assert_array_equal(pool, before)
            angles = [normal(96, 16).astype(np.float32) for _ in "cs"]
            new = normal(2, rows, 2, 64)
            with self.assertRaisesRegex(kvbuf.Error, "expected memory of its own$"):
                call(normal(2, rows, 4, 64), pool, pool, new, new, ints(5, 7),
                     cos=angles[0], sin=angles[1])
            for columns in 64, 40:
                with self.subTest(columns=columns, rows=rows):
                    q, one, two = normal(2, rows, 4, 64), *(np.copy(pool) for _ in "kv")
                    exact = call(q, one, two[..., :columns], new, new[..., :columns],
                                 ints(5, 7))
                    out = call(q, pool, pool[..., :columns], new, new[..., :columns],
                               ints(5, 7))
                    np.testing.assert_array_equal(out, exact)
                    np.testing.assert_array_equal(pool, one)

    def test_reversed(self):
        """What a kernel reads is copied; a copy of a cache would lose new tokens."""
        for rows in FEW, MANY:
            q, k, v = normal(2, rows, 4, 64), *(normal(2, rows, 2, 64) for _ in "kv")
            caches = normal(2, 96, 2, 64), normal(2, 96, 2, 64)
            exact = call(q[:, ::-1].copy(), *(np.copy(x) for x in caches),
                         *(np.copy(x[::-1]) for x in (k, v)), ints(20, 21))
            np.testing.assert_array_equal(call(
                q[:, ::-1], *caches, k[::-1], v[::-1], ints(20, 21)), exact)
            before = [np.copy(x) for x in caches]
            with self.assertRaisesRegex(
                    kvbuf.Error, "^tensor 'k': stride -[0-9]+ of dimension 0 is "
                    "negative$"):
                call(q, caches[0][::-1], caches[1], k, v, ints(20, 21))
            for x, y in zip(caches, before):
                np.testing.assert_array_equal(x, y)

    def test_layouts(self):
        """Caches that lie in one tensor, as engines have them, beside new tokens that are
        parts of another one, or of what lies between: none shares memory."""
        rows, lengths = 3, ints(20, 21)
        qkv = normal(2, rows, 3, 2, 64)
        alone = tuple(qkv[:, :, i] for i in range(3))
        layers = normal(2, 96, 4, 2, 2, 64)
        arena = normal(2 * 2 * 96 * 2 * 64 + qkv.size)
        halves = arena[:-qkv.size].reshape(2, 2, 96, 2, 64)
        behind = arena[-qkv.size:].reshape(3, 2, rows, 2, 64)
        one, two, inner = normal(2, 2, 96, 2, 64), normal(2, 96, 2, 2, 64), normal(
            2, 96, 2, 128)
        for name, k_cache, v_cache, new in (
                ("one after the other", one[0], one[1], alone),
                ("row by row", two[:, :, 0], two[:, :, 1], alone),
                ("beside each other", inner[..., :64], inner[..., 64:], alone),
                ("a layer of several", layers[:, :, 1, 0], layers[:, :, 1, 1],
                 (layers[:, :rows, 0, 0], layers[:, 20:20 + rows, 2, 0],
                  layers[:, 20:20 + rows, 3, 1])),
                ("of one piece of memory", *halves, tuple(behind))):
            with self.subTest(name):
                q, k, v = (np.copy(x) for x in new)
                exact = call(q, np.copy(k_cache), np.copy(v_cache), k, v, lengths)
                np.testing.assert_array_equal(
                    call(new[0], k_cache, v_cache, *new[1:], lengths), exact)
                for x, y in (k_cache, k), (v_cache, v):
                    for b, at in enumerate(lengths):
                        np.testing.assert_array_equal(x[b, at:at + rows], y[b])

    def test_padding(self):
        caches = normal(2, 16, 2, 64), normal(2, 16, 2, 64)
        self.refuses("'k.lengths' holds -1 at 1", 1, caches, (3, -1),
                     pad=ints(0, 0))
        for pad, lengths, message in (
                ((0, -4), (4, 4), "cache_leftpad holds -4 at 1; expected 0 to 16"),
                ((17, 0), (4, 4), "cache_leftpad holds 17 at 0; expected 0 to 16"),
                ((0, 1), (4, 17), "cache_seqlens.* holds 17 at 1; expected 0 to 16"),
                ((0, 1), (-1, 4), "cache_seqlens.* holds -1 at 0")):
            with self.assertRaisesRegex(kvbuf.Error, message):
                call(normal(2, 1, 2, 64), *caches, lengths=ints(*lengths),
                     pad=ints(*pad))


class Memory(unittest.TestCase):
    """Values are what a float64 reference makes of them, wherever tensors are."""

    def check(self, size, rope, interleaved, by, dtype=np.float16, queries=1):
        batch, rows, most, n = 2, 3, 8, ints(2, 4)
        caches = [anywhere(normal(batch, most, 1, size), by) for _ in "kv"]
        k, v = (anywhere(normal(batch, rows, 1, size), by) for _ in "kv")
        wide = RNG.uniform(0, 6, (9, rope + 3))
        cos, sin = (f(wide).astype(dtype)[:, 1:1 + rope]
                    for f in (np.cos, np.sin))
        wanted = [np.copy(x).astype(np.float64) for x in caches]
        for b in range(batch):
            for i in range(rows):
                x = k[b, i, 0].astype(np.float64)
                at = n[b] + i
                first = (slice(0, 2 * rope, 2) if interleaved else
                         slice(0, rope))
                second = (slice(1, 2 * rope, 2) if interleaved else
                          slice(rope, 2 * rope))
                c, s = cos[at].astype(np.float64), sin[at].astype(np.float64)
                one, two = x[first].copy(), x[second].copy()
                x[first], x[second] = one * c - two * s, two * c + one * s
                wanted[0][b, at, 0] = x
                wanted[1][b, at, 0] = v[b, i, 0]
        # More tokens than query rows have a kernel of their own.
        call(normal(batch, queries, 1, size), *caches, k, v, n, cos=cos, sin=sin,
             interleaved=interleaved)
        np.testing.assert_allclose(caches[0].astype(np.float64), wanted[0],
                                   rtol=2**-10, atol=1e-5)
        np.testing.assert_array_equal(caches[1], wanted[1])

    def test_anywhere(self):
        for size, rope, interleaved, by in ((64, 16, False, 1), (64, 32, True, 3),
                                            (21, 4, True, 0)):
            with self.subTest(size=size, rope=rope, interleaved=interleaved):
                self.check(size, rope, interleaved, by)

    def test_parts_of_odd_sizes(self):
        """As many tokens as rows, of which a warp's lanes, by what is rotated together,
        hold no head: a kernel of its own stores them."""
        for size, rope, interleaved in (64, 5, False), (96, 3, True), (256, 12, False):
            with self.subTest(size=size, rope=rope, interleaved=interleaved):
                self.check(size, rope, interleaved, 0, queries=3)


class Angles(unittest.TestCase):
    """Tokens behind the last angles are refused where the host knows where they are."""

    def test_places(self):
        caches = normal(2, 16, 2, 64), normal(2, 16, 2, 64)
        k, v = normal(2, 3, 2, 64), normal(2, 3, 2, 64)
        cos, sin = np.ones((2, 7, 32), np.float16)
        q = normal(2, 3, 4, 64)
        message = ("^rotary_cos has 7 positions; expected 8 or more for 3 rows behind 5 "
                   "cached tokens")
        for lengths in 5, ints(0, 5):
            with self.assertRaisesRegex(kvbuf.Error, message):
                call(q, *caches, k, v, lengths, cos=cos, sin=sin)
        # More rows than tokens, and none of the tables at all.
        with self.assertRaisesRegex(kvbuf.Error, "^rotary_cos has 7 positions; expected 8"):
            call(normal(2, 6, 4, 64), *caches, k, v, 2, cos=cos, sin=sin)
        with self.assertRaisesRegex(kvbuf.Error, "^rotary_cos has 0 positions"):
            call(q, *caches, k, v, 2, cos=cos[:0], sin=sin[:0])
        call(q, *caches, k, v, 4, cos=cos, sin=sin)


if __name__ == "__main__":
    unittest.main()
