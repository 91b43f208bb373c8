# RUN: env KVBUF_LIB_DIR=%lib %python %s
"""kvbuf.attention over 8-bit caches, on numpy arrays and the emulator, against
float64; and what is refused."""

import pathlib
import sys
import unittest
from unittest import mock

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
import kvbuf  # noqa: E402
from attention_reference import attention  # noqa: E402
from kvbuf import _flash, _ops  # noqa: E402

RNG = np.random.default_rng()


def codes(kind, *shape):
    return kvbuf.to_fp8(100 * RNG.standard_normal(shape), kind)


class Quantized(unittest.TestCase):
    def test_tokens(self):
        """Dense keys of one type each; a scale for each token and head of K, for
        each head of V."""
        q = RNG.standard_normal((2, 1, 4, 64)).astype(np.float16)
        k, v = codes("e4m3", 2, 40, 2, 64), codes("e4m3", 2, 40, 2, 64)
        ks = RNG.uniform(0.005, 0.02, (2, 40, 2)).astype(np.float32)
        vs = RNG.uniform(0.005, 0.02, 2).astype(np.float32)
        o, lse = kvbuf.attention(q, k, v, kv_dtype="e4m3", k_descale=ks,
                                 v_descale=vs, return_lse=True)
        for b in range(2):
            want, want_lse = attention(
                q[b].astype(np.float64),
                kvbuf.from_fp8(k[b]).astype(np.float64) * ks[b][..., None],
                kvbuf.from_fp8(v[b]).astype(np.float64) * vs[:, None])
            np.testing.assert_allclose(o[b].astype(np.float64), want, atol=4e-3)
            np.testing.assert_allclose(lse[b], want_lse, atol=1e-3)

    def test_cache(self):
        """Pages; a scale for each head of K, one row for all sequences."""
        q = kvbuf.to_bf16(RNG.standard_normal((2, 1, 4, 64)))
        table = np.array([[3, 1], [0, 4]], np.int32)
        lengths = np.array([20, 31], np.int32)
        k, v = (codes("e5m2", 5, 16, 2, 64) for _ in "kv")
        scale = np.broadcast_to(np.array([[0.01, 0.02]], np.float32), (2, 2))
        o = kvbuf.attention(q, k, v, kv_dtype="e5m2", page_table=table,
                            lengths=lengths, k_descale=scale,
                            v_descale=np.array([0.01], np.float32))
        for b in range(2):
            held = [kvbuf.from_fp8(x, "e5m2").astype(np.float64)[table[b]]
                    .reshape(-1, 2, 64)[:lengths[b]] for x in (k, v)]
            want, _ = attention(kvbuf.from_bf16(q[b]).astype(np.float64),
                                held[0] * scale[0][:, None], held[1] * 0.01)
            np.testing.assert_allclose(kvbuf.from_bf16(o[b]), want, atol=3e-2)

    def test_groups(self):
        """Scales of groups of a token's elements: 32 of K's, 16 of V's."""
        for rows in 1, 20:
            q = RNG.standard_normal((1, rows, 4, 64)).astype(np.float16)
            k, v = (codes("e4m3", 1, 400, 2, 64) for _ in "kv")
            ks, vs = (RNG.uniform(0.005, 0.02, (1, 400, 2, n)).astype(np.float32)
                      for n in (2, 4))
            o = kvbuf.attention(q, k, v, kv_dtype="e4m3", k_descale=ks,
                                v_descale=vs)
            held = [kvbuf.from_fp8(x[0]).astype(np.float64)
                    * np.repeat(s[0], 64 // s.shape[-1], axis=-1)
                    for x, s in ((k, ks), (v, vs))]
            want, _ = attention(q[0].astype(np.float64), *held)
            np.testing.assert_allclose(o[0].astype(np.float64), want, atol=4e-3)

    def chunk(self, rows, window):
        """`rows` new tokens on what is cached in pages of 16, a scale for each
        token's head; pages before the window are gone."""
        q = kvbuf.to_bf16(RNG.standard_normal((2, rows, 4, 64)))
        lengths = np.array([150, 61], np.int32)
        table = RNG.permutation(24)[:20].reshape(2, 10).astype(np.int32)
        k, v = (codes("e4m3", 24, 16, 2, 64) for _ in "kv")
        ks, vs = (RNG.uniform(0.005, 0.02, (24, 16, 2)).astype(np.float32)
                  for _ in "kv")
        held = [[kvbuf.from_fp8(x).astype(np.float64)[table[b]]
                 .reshape(-1, 2, 64)[:lengths[b]]
                 * s[table[b]].reshape(-1, 2, 1)[:lengths[b]]
                 for x, s in ((k, ks), (v, vs))] for b in range(2)]
        for b in range(2):
            gone = max(0, lengths[b] - rows - window) // 16 if window >= 0 else 0
            table[b, :gone] = 2**30
            table[b, -(-lengths[b] // 16):] = 2**30
        o = kvbuf.attention(q, k, v, kv_dtype="e4m3", page_table=table,
                            lengths=lengths, k_descale=ks, v_descale=vs,
                            causal=True, window=(window, -1))
        for b in range(2):
            want, _ = attention(kvbuf.from_bf16(q[b]).astype(np.float64),
                                *held[b], causal=True, window=(window, -1))
            np.testing.assert_allclose(kvbuf.from_bf16(o[b]), want, atol=3e-2)

    def test_chunks(self):
        for rows, window in (40, -1), (40, 30), (1, 30):
            with self.subTest(rows=rows, window=window):
                self.chunk(rows, window)

    def refused(self, message, error=ValueError, **more):
        q = np.zeros((1, 1, 2, 64), np.float16)
        k = more.pop("k", np.zeros((1, 8, 2, 64), np.uint8))
        v = more.pop("v", np.zeros((1, 8, 2, 64), np.uint8))
        with self.assertRaisesRegex(error, message):
            kvbuf.attention(q, k, v, **more)

    def test_refused(self):
        self.refused("^k has elements of a byte; expected kv_dtype, which 8-bit "
                     "floats they are$")
        self.refused("^kv_dtype is 'f8E4M3FN'; expected one of e4m3, e5m2, e4m3fnuz, "
                     "e5m2fnuz, or None$", kv_dtype="f8E4M3FN")
        self.refused("^kv_dtype is 'e4m3', and v has type float16; expected bytes "
                     "or that type$", kv_dtype="e4m3",
                     v=np.zeros((1, 8, 2, 64), np.float16))
        self.refused(r"^v_descale has shape \(3,\); expected \(1\), \(2\), one a "
                     r"key head, or \(1, 8, 2\), one a token of it, or several, in "
                     r"a last dimension that divides 64; of \(batch, 2\) all "
                     r"sequences' have to be one, expanded$",
                     kv_dtype="e4m3", v_descale=np.ones(3, np.float32))
        self.refused(r"^k_descale has shape \(1, 8, 2, 5\); expected ",
                     kv_dtype="e4m3", k_descale=np.ones((1, 8, 2, 5), np.float32))
        with self.assertRaisesRegex(ValueError, "^v_scale is '65'; expected one of , "
                                    "tensor, head, token, or a number up to 64, the "
                                    "elements of a group$"):
            kvbuf.Problem(heads=1, kv_heads=1, head_size=64, v_dtype="e4m3",
                          v_scale="65")
        half = np.zeros((1, 8, 2, 64), np.float16)
        self.refused("^k_descale is given, and k has type float16; expected "
                     "8-bit floats$", k=half, v=half,
                     k_descale=np.ones(1, np.float32))
        q = np.zeros((1, 1, 2, 64), np.float16)
        cache = np.zeros((1, 8, 2, 64), np.uint8)
        with self.assertRaisesRegex(NotImplementedError, "^k and v are given with "
                                    "caches of bytes; expected a type that says "
                                    "which 8-bit floats they are$"):
            _flash.with_kvcache(q, cache, cache, q, q, None, None, 3, None,
                                None, None, None, False, (-1, -1), 0.0, True,
                                None, 0, False, None, None, None, None)

    def test_new_tokens(self):
        """k and v of flash_attn_with_kvcache: by the kernel that attends, and,
        where there are other numbers of them than of rows, by one of their own."""
        # numpy has no 8-bit floats: bytes stand for them here.
        def float8_of(self, x):
            return "e4m3" if x.dtype == np.uint8 else None

        for count, size in (1, 64), (2, 64), (1, 128), (2, 32):
            # K's heads have 64 elements, V's `size`.
            caches = [RNG.integers(0, 0x70, (3, 40, 2, n), np.uint8)
                      for n in (64, size)]
            kept = [x.copy() for x in caches]
            scales = [np.float32([s]) for s in (0.03, 0.02)]
            q = RNG.standard_normal((2, 1, 4, 64)).astype(np.float16)
            new = [RNG.standard_normal((2, count, 2, n)).astype(np.float16)
                   for n in (64, size)]
            lengths, slots = np.int32([7, 31]), np.int32([2, 0])
            with mock.patch.object(_ops.Numpy, "float8_of", float8_of):
                o = _flash.with_kvcache(
                    q, *caches, *new, None, None, lengths, slots, None, None, None,
                    True, (-1, -1), 0.0, True, None, 0, False, None, None, None,
                    None, k_descale=scales[0], v_descale=scales[1])
            values = kvbuf.from_fp8(np.arange(256, dtype=np.uint8)).astype(np.float64)
            for b, (n, slot) in enumerate(zip(lengths, slots)):
                keys = n + count
                for cache, before, x, scale in zip(caches, kept, new, scales):
                    got = values[cache[slot, n:keys]] * scale
                    # Half of the distance to the next of 3 bits, or of the
                    # smallest ones.
                    limit = np.maximum(abs(x[b]) * 2.0 ** -4, scale * 2.0 ** -10)
                    self.assertTrue((abs(got - x[b]) <= 1.01 * limit).all())
                    before[slot, n:keys] = cache[slot, n:keys]
                k, v = (np.repeat(values[x[slot, :keys]] * s, 2, axis=1)
                        for x, s in zip(caches, scales))
                s = np.einsum("hd,jhd->hj", q[b, 0].astype(np.float64), k) / 8
                p = np.exp(s - s.max(-1, keepdims=True))
                exact = np.einsum("hj,jhd->hd", p / p.sum(-1, keepdims=True), v)
                np.testing.assert_allclose(o[b, 0].astype(np.float64), exact,
                                           rtol=2e-3, atol=4e-3)
            for cache, before in zip(caches, kept):
                np.testing.assert_array_equal(cache, before)


if __name__ == "__main__":
    unittest.main()
