# RUN: env KVBUF_LIB_DIR=%build/test/mock %python %s %t
"""The Python package on numpy arrays, over the mock emulator; the results are
compared with attention in numpy's float64."""

import os
import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Runtime/Inputs"))
import kvbuf  # noqa: E402
from make_manifest import artifact, manifest  # noqa: E402

WORK = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "/tmp/kvbuf-test")
RNG = np.random.default_rng(7)


def to_bf16(x):
    """Rounds float32 to bfloat16, as uint16 (no NaN here)."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def kernel(**problem):
    import json
    text = json.dumps(manifest(**problem))
    return kvbuf.compile(text + "\n", target="sm_80")


def normal(*shape):
    return to_bf16(RNG.standard_normal(shape))


def attention(q, k, v, causal, scale):
    """[B, S, H, D] float64 -> output and log-sum-exp."""
    group = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, group, 2), np.repeat(v, group, 2)
    s = np.einsum("bihd,bjhd->bhij", q, k) * scale
    if causal:
        i = np.arange(q.shape[1])[:, None]
        j = np.arange(k.shape[1])[None, :]
        s = np.where(j <= i + k.shape[1] - q.shape[1], s, -np.inf)
    m = s.max(-1, keepdims=True, initial=-np.inf)
    p = np.exp(s - np.where(np.isfinite(m), m, 0))
    total = p.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (np.where(np.isfinite(m), m, 0) + np.log(total))[..., 0]
    p = np.divide(p, total, out=np.zeros_like(p), where=total > 0)
    return np.einsum("bhij,bjhd->bihd", p, v), lse


class Dense(unittest.TestCase):
    def test_matches_numpy(self):
        run = kernel(heads=4, kv_heads=2, causal=True, lse=True)
        q, k, v = normal(2, 19, 4, 64), normal(2, 11, 2, 64), normal(2, 11, 2, 64)
        result = run(q=q, k=k, v=v)
        o, lse = attention(from_bf16(q), from_bf16(k), from_bf16(v), True, .125)
        np.testing.assert_allclose(from_bf16(result.o), o, rtol=2**-8,
                                   atol=1e-30)
        np.testing.assert_allclose(result.lse, lse, rtol=1e-6)
        self.assertTrue((result.lse[:, :, :8] == -np.inf).all())

    def test_f16_strided_and_given_output(self):
        run = kernel(dtype="f16")
        qkv = RNG.standard_normal((1, 30, 3, 2, 64)).astype(np.float16)
        q, k, v = (qkv[:, :, i] for i in range(3))
        o = np.zeros((1, 30, 2, 64), np.float16)
        self.assertIs(run(q=q, k=k, v=v, out=o), o)
        expected, _ = attention(*(x.astype(np.float64) for x in (q, k, v)),
                                False, .125)
        np.testing.assert_allclose(o.astype(np.float64), expected, rtol=2**-10,
                                   atol=2**-24)

    def test_types_of_two_bytes(self):
        """Bytes of no type, as numpy reads bfloat16 from a file, are such; structures
        are none."""
        q, k, v = normal(1, 3, 2, 64), normal(1, 5, 2, 64), normal(1, 5, 2, 64)
        raw = kernel()(q=q.view("V2"), k=k, v=v)
        np.testing.assert_array_equal(raw.view(np.uint16), kernel()(q=q, k=k, v=v))
        pairs = [x.view([("low", "u1"), ("high", "u1")]) for x in (q, k, v)]
        with self.assertRaisesRegex(kvbuf.Error, "^tensor 'q' has elements of type .*low"):
            kernel()(q=pairs[0], k=k, v=v)
        with self.assertRaisesRegex(ValueError, "^q has type .*low"):
            kvbuf.attention(*pairs)
        with self.assertRaisesRegex(ValueError, "^bits has type .*low"):
            kvbuf.from_bf16(pairs[0])

    def test_no_key(self):
        run = kernel(lse=True)
        o, lse = run(q=normal(1, 3, 2, 64), k=normal(1, 0, 2, 64),
                     v=normal(1, 0, 2, 64))
        self.assertTrue((o == 0).all() and (lse == -np.inf).all())


class TensorMaps(unittest.TestCase):
    def setUp(self):
        self.q = normal(2, 9, 2, 64)
        self.k, self.v = (np.broadcast_to(normal(1, 11, 2, 64), (2, 11, 2, 64))
                          for _ in range(2))

    def test_one_cache_for_all_sequences(self):
        run = kernel(tensor_maps=True, instead="portable")
        o = run(q=self.q, k=self.k, v=self.v)
        self.assertEqual(run.remarks(), [
            "kernel 'portable' runs in place of 'mock': tensor 'k': stride 0 of "
            "dimension 0 is 0 bytes; a tensor map needs a multiple of 16, from "
            "16 to 2^40 - 16"])
        mapped = run(q=self.q, k=self.k.copy(), v=self.v.copy())
        self.assertEqual(run.remarks(), [])
        np.testing.assert_array_equal(o, mapped)

    def test_views_at_odd_elements(self):
        run = kernel(instead="unaligned", alignment=2)
        wide = np.zeros((2, 9, 2, 67), np.uint16)
        wide[..., 3:] = self.q
        k, v = self.k.copy(), self.v.copy()
        o = run(q=wide[..., 3:], k=k, v=v)
        remark, = run.remarks()
        self.assertRegex(remark, "^kernel 'unaligned' runs in place of 'mock': "
                         "tensor 'q' starts at address 0x[0-9a-f]*6; the "
                         "kernel needs a multiple of 16 bytes$")
        aligned = run(q=self.q, k=k, v=v)
        self.assertEqual(run.remarks(), [])
        np.testing.assert_array_equal(o, aligned)

    def test_no_other_kernel(self):
        run = kernel(tensor_maps=True)
        with self.assertRaisesRegex(kvbuf.Error, "^kernel 'mock' cannot run: "
                                    "tensor 'k': stride 0 of dimension 0"):
            run(q=self.q, k=self.k, v=self.v)

    def test_multiprocessors_are_no_argument(self):
        run = kernel(tensor_maps=True)
        with self.assertRaisesRegex(TypeError, "takes no argument 'sms'"):
            run(q=self.q, k=self.k.copy(), v=self.v.copy(), sms=3)


class Ragged(unittest.TestCase):
    def test_longest_query_from_host_offsets(self):
        run = kernel(query="ragged", cache="ragged")
        offsets = np.array([0, 4, 4, 9], np.int32)
        k_offsets = np.array([0, 6, 7, 20], np.int32)
        q, k, v = normal(9, 2, 64), normal(20, 2, 64), normal(20, 2, 64)
        o = run(q=q, k=k, v=v, q_offsets=offsets, k_offsets=k_offsets,
                v_offsets=k_offsets)
        # Any upper bound is as good.
        np.testing.assert_array_equal(o, run(
            q=q, k=k, v=v, q_offsets=offsets, k_offsets=k_offsets,
            v_offsets=k_offsets, seq_q=100))
        for b in range(3):
            rows = slice(offsets[b], offsets[b + 1])
            keys = slice(k_offsets[b], k_offsets[b + 1])
            expected, _ = attention(*(from_bf16(x)[None] for x in
                                      (q[rows], k[keys], v[keys])), False, .125)
            np.testing.assert_allclose(from_bf16(o[rows])[None], expected,
                                       rtol=2**-8, atol=1e-30)

    def test_offsets_that_lead_out_of_q(self):
        run = kernel(query="ragged")
        q, k = normal(9, 2, 64), normal(2, 5, 2, 64)
        for offsets in [0, 4, 2**31 - 1], [0, 5, 3], [-4, 0, 9], [0, 9, 10]:
            with self.assertRaisesRegex(kvbuf.Error, "'q_offsets' has .* in "
                                        "turn; expected offsets that never "
                                        "fall, from 0 to 9, the rows of 'q'"):
                run(q=q, k=k, v=k, q_offsets=np.array(offsets, np.int32))

    def test_sizes_that_are_none(self):
        run = kernel(query="ragged")
        q, k = normal(9, 2, 64), normal(2, 5, 2, 64)
        offsets = np.array([0, 4, 9], np.int32)
        for size in 2**64 + 9, 2**31, -1, 5.5, "9":
            with self.assertRaisesRegex(kvbuf.Error, "size 'seq_q' is .*; "
                                        "expected an integer from 0 to "
                                        "2147483647"):
                run(q=q, k=k, v=k, q_offsets=offsets, seq_q=size)
        run(q=q, k=k, v=k, q_offsets=offsets, seq_q=np.int64(5))

    def test_a_size_that_is_too_small(self):
        run = kernel(query="ragged")
        q, k = normal(9, 2, 64), normal(2, 5, 2, 64)
        offsets = np.array([0, 3, 9], np.int32)
        with self.assertRaisesRegex(
                kvbuf.Error, "^size 'seq_q' is 5, but tensor 'q_offsets' gives "
                "6 rows to sequence 1$"):
            run(q=q, k=k, v=k, q_offsets=offsets, seq_q=5)
        run(q=q, k=k, v=k, q_offsets=offsets, shortest_q=3)
        with self.assertRaisesRegex(
                kvbuf.Error, "^size 'shortest_q' is 4, but tensor 'q_offsets' gives "
                "3 rows to sequence 0$"):
            run(q=q, k=k, v=k, q_offsets=offsets, shortest_q=4)


class Errors(unittest.TestCase):
    def setUp(self):
        self.run_ = kernel()
        self.good = {name: normal(1, 5, 2, 64) for name in "qkv"}

    def fails(self, message, kind=kvbuf.Error, **changes):
        arguments = {**self.good, **changes}
        with self.assertRaisesRegex(kind, message):
            self.run_(**{n: t for n, t in arguments.items() if t is not None})

    def test_wrong_shape(self):
        self.fails(r"'k' has shape \[1, 5, 3, 64\]; expected "
                   r"\[batch, seq_k, 2, 64\]", k=normal(1, 5, 3, 64))

    def test_contradicting_shapes(self):
        self.fails("where batch = 1", k=normal(2, 5, 2, 64))

    def test_wrong_type(self):
        self.fails("'q' is f32; expected bf16",
                   q=np.zeros((1, 5, 2, 64), np.float32))
        self.fails("type '<f8', which no kernel takes",
                   q=np.zeros((1, 5, 2, 64)))

    def test_missing_tensor(self):
        self.fails("missing tensor 'v': bf16 of shape", v=None)

    def test_unknown_argument(self):
        self.fails("takes no argument 'mask'", TypeError, mask=self.good["q"])

    def test_inner_stride(self):
        self.fails("innermost dimension must be contiguous",
                   q=normal(1, 5, 2, 128)[..., ::2])

    def test_negative_stride(self):
        self.fails("is negative", q=normal(1, 5, 2, 64)[:, ::-1])

    def test_misaligned(self):
        flat = np.zeros(5 * 2 * 64 + 1, np.uint16)[1:]
        self.fails("tensor 'q' starts at address 0x[0-9a-f]*2; the kernel needs "
                   "a multiple of 16 bytes", q=flat.reshape(1, 5, 2, 64))

    def test_no_tensor(self):
        self.fails("'q' is a list; expected an object with __dlpack__", q=[1])

    def test_read_only_output(self):
        o = np.zeros((1, 5, 2, 64), np.uint16)
        o.flags.writeable = False
        self.fails("'o' is read-only", out=o)

    def test_unknown_device(self):
        self.fails("unknown device 'tpu'", device="tpu")

    def test_compile_error(self):
        with self.assertRaisesRegex(kvbuf.Error, "<string>:1:1: error"):
            kvbuf.compile("no\nmanifest\n")
        with self.assertRaisesRegex(kvbuf.Error, "cannot open 'absent.mlir'"):
            kvbuf.compile("absent.mlir")

    def test_fault(self):
        os.environ["KVBUF_MOCK_FAULT"] = "detector"
        try:
            self.fails("race on byte 16", kvbuf.KernelFault)
        finally:
            del os.environ["KVBUF_MOCK_FAULT"]


class Artifacts(unittest.TestCase):
    def test_save_and_load(self):
        WORK.mkdir(parents=True, exist_ok=True)
        path = WORK / "a.kvbuf"
        kernel().save(path)
        again = kvbuf.load(path)
        self.assertEqual(again.manifest["target"]["chip"], "sm_80")
        q = normal(1, 4, 2, 64)
        self.assertEqual(again(q=q, k=q, v=q).shape, (1, 4, 2, 64))
        self.assertEqual(again.report()["lane_instructions"], 1234567)

    def test_reads_the_described_format(self):
        import json
        text = json.dumps(manifest()).encode()
        path = WORK / "b.kvbuf"
        WORK.mkdir(parents=True, exist_ok=True)
        path.write_bytes(artifact(text, {"mlir": text, "ptx": b"x"}))
        self.assertEqual(kvbuf.load(path).name, "mock")

    def test_damage(self):
        import json
        text = json.dumps(manifest()).encode()
        good = artifact(text, {"mlir": text})
        path = WORK / "bad.kvbuf"
        WORK.mkdir(parents=True, exist_ok=True)
        flipped = bytearray(good)
        flipped[100] ^= 1
        for content, message in [
                (bytes(flipped), "damaged: the checksum"),
                (good[:-1], "truncated: "), (good[:9], "truncated: "),
                (good + b"x", "damaged: "), (b"", "not a kvbuf artifact"),
                (artifact(text, {}, version=2), "format version 2")]:
            path.write_bytes(content)
            with self.assertRaisesRegex(kvbuf.Error, message):
                kvbuf.load(path)


if __name__ == "__main__":
    unittest.main(verbosity=1)
