# RUN: env KVBUF_LIB_DIR=%lib %python %s
"""kvbuf.append_slots on the emulator: tokens where a list says, in caches of any
strides, of 16-bit and of 8-bit floats; nothing else changes. Expected bytes are those
of the conversions that the package has (to_fp8)."""

import unittest

import numpy as np

import kvbuf

RNG = np.random.default_rng()
BLOCKS, ROWS, HEADS, SIZE = 5, 4, 2, 32


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float16)


def slots(count, dtype):
    """Some of the slots, in any order, and -1."""
    chosen = RNG.permutation(BLOCKS * ROWS)[:count].astype(dtype)
    chosen[RNG.integers(count)] = -1
    return chosen


def cache(order, size=SIZE, dtype=np.float16, more=0):
    """[blocks, rows, heads, size] that lies as `order` says, its rows `more`
    elements apart."""
    dims = dict(B=BLOCKS, N=ROWS, H=HEADS, C=size + more)
    x = np.zeros([dims[n] for n in order], dtype)
    x[...] = RNG.integers(1, 100, x.shape)
    return x.transpose([order.index(n) for n in "BNHC"])[..., :size]


def expected(before, new, where):
    after = np.copy(before)
    for t, slot in enumerate(where):
        if slot >= 0:
            after[slot // ROWS, slot % ROWS] = new[t]
    return after


class Slots(unittest.TestCase):
    def check(self, order, dtype=np.int64, v_size=SIZE, more=0):
        where = slots(9, dtype)
        k, v = normal(11, HEADS, SIZE), normal(11, HEADS, v_size)
        caches = cache(order, more=more), cache(order, v_size, more=more)
        want = [expected(c, x, where) for c, x in zip(caches, (k, v))]
        kvbuf.append_slots(k, v, *caches, where)
        for got, exact in zip(caches, want):
            np.testing.assert_array_equal(got, exact)

    def test_layouts(self):
        """Blocks that follow each other, that do not, rows with others between."""
        for order in "BNHC", "BHNC", "HBNC", "NBHC":
            for dtype in np.int32, np.int64:
                with self.subTest(order, dtype=dtype):
                    self.check(order, dtype)

    def test_sizes(self):
        self.check("BNHC", v_size=48)
        self.check("BHNC", more=SIZE)        # K and V side by side
        self.check("BNHC", more=3)           # not aligned

    def test_rotated(self):
        """Keys by angles of positions that no slot tells, halves and neighbours, into
        16 bits and 8; past the tables by their last row."""
        for interleaved, pairs, kind in ((False, 16, None), (True, 8, None),
                                         (False, 12, "e4m3")):
            with self.subTest(interleaved=interleaved, kind=kind):
                where, count = slots(9, np.int64), 9
                k, v = normal(count, HEADS, SIZE), normal(count, HEADS, SIZE)
                angle = RNG.random((40, pairs), np.float32) * 6
                cos, sin = np.cos(angle), np.sin(angle)
                positions = RNG.integers(0, 40, count).astype(np.int32)
                positions[0] = 1000
                caches = [cache("BNHC", dtype=np.uint8 if kind else np.float16)
                          for _ in "kv"]
                before = [np.copy(c) for c in caches]
                scale = np.array([0.5], np.float32)
                more = {} if not kind else {"k_descale": scale, "v_descale": scale,
                                            "kv_dtype": kind}
                kvbuf.append_slots(k, v, *caches, where, rotary_cos=cos,
                                   rotary_sin=sin, positions=positions,
                                   rotary_interleaved=interleaved, **more)
                row = np.minimum(positions, 39)
                c, s = (x.astype(np.float64)[row][:, None] for x in (cos, sin))
                x = k.astype(np.float64)
                parts = ((slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if interleaved
                         else (slice(0, pairs), slice(pairs, 2 * pairs)))
                a, b = x[..., parts[0]].copy(), x[..., parts[1]].copy()
                x[..., parts[0]], x[..., parts[1]] = a * c - b * s, b * c + a * s
                for got, old, exact in zip(caches, before, (x, v.astype(np.float64))):
                    if kind:
                        got, old = (kvbuf.from_fp8(y, kind) * 0.5 for y in (got, old))
                    np.testing.assert_allclose(
                        got.astype(np.float64), expected(old.astype(np.float64), exact,
                                                         where),
                        # Half a step of 11 bits, of four; e4m3's least steps.
                        rtol=2 ** -4 if kind else 2 ** -11, atol=2 ** -10)

    def test_float8(self):
        for order, of in (("BNHC", "tensor"), ("BHNC", "head")):
            with self.subTest(order):
                where = slots(9, np.int64)
                k, v = normal(9, HEADS, SIZE), normal(9, HEADS, SIZE)
                caches = [cache(order, dtype=np.uint8) for _ in "kv"]
                scales = [np.array([0.5], np.float32) if of == "tensor" else
                          np.array([0.25, 4], np.float32) for _ in "kv"]
                want = []
                for c, x, s in zip(caches, (k, v), scales):
                    by = s if of == "tensor" else s[:, None]
                    want.append(expected(c, kvbuf.to_fp8(
                        x.astype(np.float32) / by, "e4m3"), where))
                kvbuf.append_slots(k, v, *caches, where, k_descale=scales[0],
                                   v_descale=scales[1], kv_dtype="e4m3")
                for got, exact in zip(caches, want):
                    np.testing.assert_array_equal(got, exact)

    def test_scales_of_tokens(self):
        """Made and written: the largest magnitude over e4m3's largest number."""
        where = slots(9, np.int64)
        k, v = normal(9, HEADS, SIZE), normal(9, HEADS, SIZE)
        caches = [cache("BNHC", dtype=np.uint8) for _ in "kv"]
        scales = [np.full((BLOCKS, ROWS, HEADS), 7, np.float32) for _ in "kv"]
        made = [abs(x.astype(np.float32)).max(-1) / np.float32(448) for x in (k, v)]
        want = [expected(s, m, where) for s, m in zip(scales, made)]
        kvbuf.append_slots(k, v, *caches, where, k_descale=scales[0],
                           v_descale=scales[1], kv_dtype="e4m3")
        for c, x, s, exact in zip(caches, (k, v), scales, want):
            np.testing.assert_allclose(s, exact, rtol=1e-6)
            for t, slot in enumerate(where):
                if slot >= 0:
                    at = slot // ROWS, slot % ROWS
                    got = kvbuf.from_fp8(c[at], "e4m3") * s[at][..., None]
                    # Half a step of e4m3's three bits, of the group's largest.
                    np.testing.assert_allclose(
                        got, x[t], rtol=2 ** -4,
                        atol=float(abs(x[t]).max()) * 2 ** -9)

    def test_tokens_in_the_cache(self):
        """Blocks store rows that others still read."""
        caches = cache("BNHC"), cache("BNHC")
        k, v = (x.reshape(-1, HEADS, SIZE)[:3] for x in caches)
        own = normal(3, HEADS, SIZE)
        for name, new in ("k", (k, own)), ("v", (own, v)):
            with self.assertRaisesRegex(
                    kvbuf.Error, f"^tensor '{name}' shares memory with tensor "
                    f"'{name}_new', which is still read"):
                kvbuf.append_slots(*new, *caches, np.arange(2, 5))

    def test_one_cache_for_both(self):
        one = cache("BNHC")
        k, v = normal(3, HEADS, SIZE), normal(3, HEADS, SIZE)
        before = np.copy(one)
        with self.assertRaisesRegex(
                kvbuf.Error, "^tensor 'v' shares memory with tensor 'k', and new tokens "
                "of both are stored at the same places"):
            kvbuf.append_slots(k, v, one, one, np.arange(2, 5))
        np.testing.assert_array_equal(one, before)
        # Scales of tokens, which are stored, too.
        caches = [cache("BNHC", dtype=np.uint8) for _ in "kv"]
        scales = np.full((BLOCKS, ROWS, HEADS), 7, np.float32)
        with self.assertRaisesRegex(
                kvbuf.Error, "^tensor 'v.scales' shares memory with tensor 'k.scales'.*"
                "expected memory of its own$"):
            kvbuf.append_slots(k, v, *caches, np.arange(2, 5), k_descale=scales,
                               v_descale=scales, kv_dtype="e4m3")

    def test_nothing(self):
        caches = cache("BNHC"), cache("BNHC")
        before = [np.copy(c) for c in caches]
        kvbuf.append_slots(normal(0, HEADS, SIZE), normal(0, HEADS, SIZE), *caches,
                           np.zeros(0, np.int64))
        kvbuf.append_slots(normal(3, HEADS, SIZE), normal(3, HEADS, SIZE), *caches,
                           np.full(3, -1, np.int64))
        for got, exact in zip(caches, before):
            np.testing.assert_array_equal(got, exact)

    def test_refused(self):
        k = normal(3, HEADS, SIZE)
        caches = cache("BNHC"), cache("BNHC")
        angles = np.ones((4, 16), np.float32)
        for more, words in (
                ({"rotary_cos": angles}, "rotary_sin is None; expected rotary_cos, "
                 "rotary_sin and positions, or none of them"),
                ({"rotary_cos": angles, "rotary_sin": angles,
                  "positions": np.zeros(2, np.int32)},
                 "positions has 2 tokens, and slot_mapping 3; expected as many or more")):
            with self.assertRaises(ValueError) as caught:
                kvbuf.append_slots(k, k, *caches, np.arange(3), **more)
            self.assertEqual(str(caught.exception), words)
        before = [np.copy(c) for c in caches]
        for where, error, words in (
                (np.array([0, 20, 1]), kvbuf.Error, "slot_mapping holds 20 at 1; "
                 "expected -1, or 0 to 19, a slot of the cache"),
                (np.array([0, 1, -2]), kvbuf.Error, "slot_mapping holds -2 at 2"),
                (np.arange(4), ValueError, "k has 3 tokens, and slot_mapping 4; "
                 "expected as many or more"),
                (np.zeros(3), ValueError, "slot_mapping has type float64; expected "
                 "int32 or int64")):
            with self.subTest(words), self.assertRaises(error) as caught:
                kvbuf.append_slots(k, k, *caches, where)
            self.assertIn(words, str(caught.exception))
        with self.assertRaisesRegex(ValueError, "k has type float32; expected that of "
                                    "its cache, float16"):
            kvbuf.append_slots(k.astype(np.float32), k, *caches, np.arange(3))
        for got, exact in zip(caches, before):
            np.testing.assert_array_equal(got, exact)


if __name__ == "__main__":
    unittest.main()
