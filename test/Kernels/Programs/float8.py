# RUN: %python %s
"""Attention over 8-bit queries, keys and values: what noise around zero hides.

All on the emulator, by numpy's bytes, against float64 from the bytes' exact values.
"""
import unittest

import kvbuf
import numpy as np

RNG = np.random.default_rng(3)
#: One warp, so that little is computed.
SMALL = "BM=16,BN=64,warps=1"


def run(q, k, v, target="sm_90", kind="e4m3", schedule=SMALL, options=None, **more):
    out = np.full((*q.shape[:-1], v.shape[-1]), np.nan, np.float32)
    kvbuf.attention(q, k, v, kv_dtype=kind, out=out, target=target,
                    schedule=schedule,
                    device=kvbuf.Device("emulator", **options or {}), **more)
    return out.astype(np.float64)


def exact(q, k, v, kind="e4m3", scale=None):
    q, k, v = (kvbuf.from_fp8(x, kind).astype(np.float64)[0, :, 0] for x in (q, k, v))
    s = q @ k.T * (scale or q.shape[-1] ** -0.5)
    p = np.exp(s - s.max(-1, keepdims=True))
    return (p / p.sum(-1, keepdims=True)) @ v


class Float8(unittest.TestCase):
    def uniform(self, **more):
        """The error of equal weights over many keys, whose values are 1 and a little
        more or less."""
        q = np.zeros((1, 16, 1, 64), np.uint8)
        k = kvbuf.to_fp8(RNG.standard_normal((1, 4096, 1, 64)))
        v = kvbuf.to_fp8(1 + 0.25 * RNG.standard_normal((1, 4096, 1, 64)))
        got, want = run(q, k, v, **more)[0, :, 0], exact(q, k, v)
        return np.abs(got - want).max() / np.abs(want).max()

    def test_sums(self):
        """An H200 keeps 14 bits of a sum of 8-bit products. Two levels hold; of one,
        the second half of the keys loses what lies below 64 of products of 256 that
        are multiples of 32, 16 on average: a thirtieth of the sum, and more where
        keys are many (at 16384 an H200 has lost a quarter)."""
        cut = {"cut_sums": True}
        self.assertLess(self.uniform(options=cut), 2e-3)
        self.assertGreater(self.uniform(options=cut,
                                        schedule=SMALL + ",accumulate=fast"), 1 / 32)
        # Sums of f32 need no second level.
        self.assertLess(self.uniform(schedule=SMALL + ",accumulate=fast"), 2e-3)

    def test_sums_of_groups(self):
        """So do products of warp groups, whose second level is the rescaling."""
        cut, groups = {"cut_sums": True}, "BM=64,warps=4,wideners=2"
        self.assertLess(self.uniform(options=cut, target="sm_90a", schedule=groups), 2e-3)
        self.assertGreater(self.uniform(options=cut, target="sm_90a",
                                        schedule=groups + ",accumulate=fast"), 1 / 32)

    def latent(self, q, rows, schedule="stages=3"):
        """Rows whose first 256 columns are values, in pages, by teams on sm_90a; the
        last page has a slot that nobody uses."""
        keys, page = rows.shape[0], 64
        cache = np.full((-(-keys // page), page, 1, rows.shape[-1]), 0x7F, np.uint8)
        cache.reshape(-1, rows.shape[-1])[:keys] = rows
        table = np.arange(len(cache), dtype=np.int32)[None]
        out = np.full((*q.shape[:-1], 256), np.nan, np.float32)
        kvbuf.attention(q, cache, cache[..., :256], kv_dtype="e4m3", out=out,
                        target="sm_90a", schedule=schedule, page_table=table,
                        lengths=np.array([keys], np.int32),
                        device=kvbuf.Device("emulator", cut_sums=True))
        return out.astype(np.float64)[0, 0]

    def test_sums_of_latent_teams(self):
        """So do those of rows that are keys and values."""
        q = np.zeros((1, 1, 16, 320), np.uint8)
        rows = kvbuf.to_fp8(1 + 0.25 * RNG.standard_normal((4095, 320)))
        want = kvbuf.from_fp8(rows).astype(np.float64)[:, :256].mean(0)

        def error(schedule):
            got = self.latent(q, rows, schedule)
            return np.abs(got - want).max() / np.abs(want).max()
        self.assertLess(error("split_size=4096"), 2e-3)
        self.assertGreater(error("split_size=4096,accumulate=fast"), 1 / 32)

    def test_one_row(self):
        """One row of many has all of the weight, and its values are the result."""
        q = kvbuf.to_fp8(np.full((1, 1, 16, 320), 1.0))
        rows = kvbuf.to_fp8(RNG.standard_normal((1001, 320)) / 8)
        rows[777] = kvbuf.to_fp8(RNG.uniform(4, 8, 320))
        want = np.broadcast_to(kvbuf.from_fp8(rows[777, :256]), (16, 256))
        np.testing.assert_allclose(self.latent(q, rows), want, rtol=1e-5)

    def test_one_key(self):
        """One key of many has all of the weight."""
        keys, at = 1000, 777
        q = kvbuf.to_fp8(np.full((1, 16, 1, 64), 8.0))
        k = kvbuf.to_fp8(RNG.standard_normal((1, keys, 1, 64)) / 8)
        k[0, at] = kvbuf.to_fp8(np.full((1, 64), 8.0))
        v = kvbuf.to_fp8(RNG.standard_normal((1, keys, 1, 64)))
        for target in "sm_90", "gfx950":
            schedule = SMALL if target == "sm_90" else None
            got = run(q, k, v, target=target, schedule=schedule)
            np.testing.assert_array_equal(
                got[0, :, 0], np.broadcast_to(kvbuf.from_fp8(v[0, at]), (16, 64)))

    def test_largest(self):
        """The largest numbers there are, and weights whose first keys are not the
        largest ones."""
        q = kvbuf.to_fp8(np.full((1, 16, 1, 64), 448.0))
        k = kvbuf.to_fp8(np.linspace(-448, 448, 200)[None, :, None, None]
                         * np.ones((1, 1, 1, 64)))
        v = kvbuf.to_fp8(np.full((1, 200, 1, 64), 448.0))
        got = run(q, k, v, scale=2.0 ** -18)
        np.testing.assert_allclose(got[0, :, 0], exact(q, k, v, scale=2.0 ** -18),
                                   rtol=2e-2)

    def test_formats(self):
        """The same bytes are half as much where the formats are AMD's own."""
        q = np.zeros((1, 16, 1, 64), np.uint8)
        k, v = (np.full((1, 64, 1, 64), 0x38, np.uint8) for _ in "kv")
        for target, kind, value in (("gfx950", "e4m3", 1.0), ("gfx942", "e4m3fnuz", 0.5)):
            got = run(q, k, v, target=target, kind=kind, schedule=None)
            np.testing.assert_array_equal(got, value)
        with self.assertRaisesRegex(kvbuf.Error, "has elements of f8E4M3FN, which gfx942 "
                                    "lacks; its 8-bit floats are f8E4M3FNUZ and"):
            run(q, k, v, target="gfx942", schedule=None)

    def test_unused_slots(self):
        """Pages hold no numbers where no sequence has tokens."""
        cache = np.full((4, 16, 1, 64), 0x7F, np.uint8)
        table, lengths = np.array([[2, 0]], np.int32), np.array([21], np.int32)
        tokens = kvbuf.to_fp8(RNG.standard_normal((1, 21, 1, 64)))
        cache[2], cache[0, :5] = tokens[0, :16], tokens[0, 16:]
        q = kvbuf.to_fp8(RNG.standard_normal((1, 12, 1, 64)))
        for target in "sm_90", "gfx950":
            got = run(q, cache, cache, target=target, schedule=None,
                      page_table=table, lengths=lengths)
            np.testing.assert_allclose(got[0, :, 0], exact(q, tokens, tokens),
                                       atol=6e-2)

    def test_descales(self):
        """Those of the queries and of the keys' heads are multiplied."""
        q, k, v = (kvbuf.to_fp8(RNG.standard_normal((1, n, 1, 64)))
                   for n in (12, 80, 80))
        ones = np.ones(1, np.float32)
        want = run(q, k, v, schedule=None, scale=0.25)
        for q_scale, k_scale, v_scale in ((2, 1, 1), (0.5, 4, 1), (2, None, 2)):
            got = run(q, k, v, schedule=None, scale=0.125, q_descale=q_scale * ones,
                      k_descale=None if k_scale is None else k_scale * ones,
                      v_descale=v_scale * ones)
            np.testing.assert_allclose(got, want * v_scale, rtol=1e-5, atol=1e-6)

    def test_signs_of_scales(self):
        """Keys that stand for themselves times a negative number, or 0, beside bf16
        queries, whose products have it as a factor that is positive."""
        values = RNG.standard_normal((1, 70, 1, 64)).astype(np.float32)
        bits = (values.view(np.uint32) >> 16).astype(np.uint16)
        q = (bits.astype(np.uint32) << 16).view(np.float32)[0, :, 0].astype(np.float64)
        cache = kvbuf.to_fp8(RNG.standard_normal((1, 130, 1, 64)))
        k = kvbuf.from_fp8(cache).astype(np.float64)[0, :, 0]
        for target, scale in ("sm_90a", -0.7), ("sm_90a", 0.0), ("sm_80", -0.7):
            out = np.full(bits.shape, np.nan, np.float32)
            kvbuf.attention(bits, cache, cache, kv_dtype="e4m3", out=out, target=target,
                            k_descale=np.array([scale], np.float32), causal=True,
                            device=kvbuf.Device("emulator"))
            s = q @ k.T * scale / 8
            s[np.arange(130) > np.arange(70)[:, None] + 60] = -np.inf
            p = np.exp(s - s.max(-1, keepdims=True))
            want = p / p.sum(-1, keepdims=True) @ k
            np.testing.assert_allclose(out[0, :, 0], want, atol=2e-3)

    def test_output(self):
        """Of 8-bit floats, of the result divided by a scale; what exceeds the largest
        is the largest. Weights and results are rounded to 4 bits."""
        for target, kind, most in (("sm_90", "e4m3", 448), ("gfx950", "e4m3", 448),
                                   ("gfx942", "e4m3fnuz", 240)):
            q, k, v = (kvbuf.to_fp8(RNG.standard_normal((1, n, 1, 64)), kind)
                       for n in (12, 80, 80))
            for scale, v_scale in (2.0 ** -6, None), (2.0 ** -12, 1.5):
                out = np.full((1, 12, 1, 64), 0x80, np.uint8)
                got = kvbuf.attention(
                    q, k, v, kv_dtype=kind, out=out, target=target,
                    schedule=SMALL if target == "sm_90" else None,
                    device=kvbuf.Device("emulator"),
                    output_scale=np.array([scale], np.float32),
                    v_descale=v_scale and np.array([v_scale], np.float32))
                self.assertIs(got, out)
                factor = (v_scale or 1) / scale
                want = exact(q, k, v, kind) * factor
                spread = exact(q, k, v & 0x7F, kind) * factor
                wrong = np.abs(kvbuf.from_fp8(out, kind)[0, :, 0]
                               - np.clip(want, -most, most))
                self.assertTrue((wrong <= (spread + np.abs(want)) / 16).all())
                self.assertEqual((np.abs(want) > 2 * most).any(), scale < 2 ** -10)

    def test_refused(self):
        q = np.zeros((1, 12, 2, 64), np.uint8)
        half = np.zeros((1, 12, 2, 64), np.float16)
        with self.assertRaisesRegex(ValueError, "^q has elements of a byte; expected "
                                    "kv_dtype, which 8-bit floats they are$"):
            kvbuf.attention(q, half, half)
        with self.assertRaisesRegex(ValueError, "^kv_dtype is 'e4m3', and k has type "
                                    "float16; expected bytes or that type$"):
            kvbuf.attention(q, half, half, kv_dtype="e4m3")
        with self.assertRaisesRegex(ValueError, "^q_descale is given, and q has type "
                                    "float16; expected 8-bit floats$"):
            kvbuf.attention(half, half, half, q_descale=np.ones(1, np.float32))
        scale = np.ones(1, np.float32)
        with self.assertRaisesRegex(ValueError, "^output_scale is given, q has type "
                                    "uint8, and no out is given; expected 8-bit floats "
                                    "of both$"):
            kvbuf.attention(q, q, q, kv_dtype="e4m3", output_scale=scale)
        with self.assertRaisesRegex(ValueError, r"^output_scale has shape \(2,\); "
                                    r"expected \(1\)$"):
            kvbuf.attention(q, q, q, kv_dtype="e4m3", out=q,
                            output_scale=np.ones(2, np.float32))
        with self.assertRaisesRegex(NotImplementedError, "^out has 8-bit floats, 8 "
                                    "columns and a last stride of 1; kvbuf takes "
                                    "multiples of 16 columns, side by side$"):
            kvbuf.attention(q[..., :8], q[..., :8], q[..., :8], kv_dtype="e4m3",
                            out=np.zeros((1, 12, 2, 8), np.uint8))
        with self.assertRaisesRegex(ValueError, r"^q_descale has shape \(3,\); expected "
                                    r"\(1\), or \(2\), one a key head; of \(batch, 2\) "
                                    "all sequences' have to be one, expanded$"):
            kvbuf.attention(q, q, q, kv_dtype="e4m3",
                            q_descale=np.ones(3, np.float32))


unittest.main()
