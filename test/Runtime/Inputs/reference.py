"""Recomputes all that --check reports, in numpy.
  reference.py WORK_DIR KVBUF_RUN"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.dirname(__file__))
from make_manifest import manifest  # noqa: E402

RUN = sys.argv.pop()
WORK = pathlib.Path(sys.argv.pop())
RNG = np.random.default_rng(11)


class BF16:
    name, mantissa, least = "bf16", 7, -126

    @staticmethod
    def store(x):
        bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)

    @staticmethod
    def load(bits):
        return (bits.astype(np.uint32) << 16).view(np.float32)


class F16:
    name, mantissa, least = "f16", 10, -14

    @staticmethod
    def store(x):
        return x.astype(np.float16)

    @staticmethod
    def load(x):
        return x.astype(np.float32)


class F32:
    name, mantissa, least = "f32", 23, -126

    @staticmethod
    def store(x):
        return np.asarray(x, np.float32)

    load = store


def attention(q, k, v, problem, sink, dtype, round_):
    """Output rows and log-sum-exp in `dtype`; `round_` is applied to P."""
    group = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, group, 2), np.repeat(v, group, 2)
    s = np.einsum("bihd,bjhd->bhij", q, k) * dtype(problem["scale"])
    if problem.get("softcap"):
        cap = dtype(problem["softcap"])
        s = cap * np.tanh(s / cap)
    i, j = np.ogrid[:q.shape[1], :k.shape[1]]
    diagonal = i + k.shape[1] - q.shape[1]
    if problem.get("causal"):
        s = np.where(j <= diagonal, s, -np.inf)
    if problem.get("window_left", -1) >= 0:
        s = np.where(j >= diagonal - problem["window_left"], s, -np.inf)
    m = s.max(-1, keepdims=True)
    if sink is not None:
        m = np.maximum(m, sink.astype(dtype)[None, :, None, None])
    p = np.exp(s - m)
    total = p.sum(-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink.astype(dtype)[None, :, None, None] - m)
    o = np.einsum("bhij,bjhd->bhid", round_(p), v) / total
    return o.transpose(0, 2, 1, 3), (m + np.log(total))[..., 0]


class Reference(unittest.TestCase):
    def compare(self, kind, scale=1.0, out_kind=None, places=9, **changes):
        problem = {"heads": 4, "kv_heads": 2, "scale": 0.125, **changes}
        if out_kind:
            problem["o_dtype"] = out_kind.name
        out_kind = out_kind or kind
        size = problem.get("head_size", 64)
        columns = problem.get("v_head_size", size)
        WORK.mkdir(parents=True, exist_ok=True)
        os.chdir(WORK)
        pathlib.Path("r.mlir").write_text(json.dumps(
            manifest(dtype=kind.name, lse=True, **problem)))
        tensors = {n: kind.store(scale * RNG.standard_normal((2, s, h, d)))
                   for n, s, h, d in (("q", 33, 4, size), ("k", 57, 2, size),
                                      ("v", 57, 2, columns))}
        sink = None
        if problem.get("sink"):
            sink = tensors["sink"] = RNG.standard_normal(4).astype(np.float32)
        for name, array in tensors.items():
            np.save(f"{name}.npy", array)
        done = subprocess.run(
            [RUN, "r.mlir", "--device=emulator", "--check", "--json=r.json",
             "--output=o=o.npy", "--output=lse=lse.npy",
             *(f"--input={n}={n}.npy" for n in tensors)],
            capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done)
        found = json.loads(pathlib.Path("r.json").read_text())["check"]

        q, k, v = (kind.load(tensors[n]) for n in "qkv")
        ref, ref_lse = attention(*(x.astype(np.float64) for x in (q, k, v)),
                                 problem, sink, np.float64, lambda p: p)
        base, _ = attention(q, k, v, problem, sink, np.float32,
                            lambda p: kind.load(kind.store(p)))
        base = out_kind.load(out_kind.store(base)).astype(np.float64)
        out = out_kind.load(np.load("o.npy")).astype(np.float64)

        def worst_row(x):
            return (np.linalg.norm(x - ref, axis=-1)
                    / np.linalg.norm(ref, axis=-1)).max()

        error, base_error = np.abs(out - ref), np.abs(base - ref)
        at = np.unravel_index(error.argmax(), error.shape)
        ulp = 2.0 ** (max(np.floor(np.log2(abs(ref[at]))), out_kind.least)
                      - out_kind.mantissa)
        expected = {
            "largest_error": (error.max(), base_error.max(),
                              2 * base_error.max() + ulp),
            "mean_error": (error.mean(), base_error.mean(),
                           1.15 * base_error.mean() + 1e-6),
            "worst_row": (worst_row(out), worst_row(base),
                          1.5 * worst_row(base))}
        for name, (value, baseline, limit) in expected.items():
            self.assertAlmostEqual(found[name]["value"] / value, 1, places, name)
            # Sums in fp32 depend on their order; a P may round the other way.
            self.assertAlmostEqual(found[name]["baseline"] / baseline, 1,
                                   delta=0.02, msg=name)
            self.assertAlmostEqual(found[name]["limit"] / limit, 1,
                                   delta=0.02, msg=name)
        row = found["largest_error"]
        self.assertEqual((row["row"]["batch"], row["row"]["query"],
                          row["row"]["head"], row["column"]), at)
        lse_error = np.abs(np.load("lse.npy") - ref_lse)
        share = lse_error / (1e-4 + 1e-5 * np.abs(ref_lse))
        at = np.unravel_index(share.argmax(), share.shape)
        self.assertAlmostEqual(found["log_sum_exp"]["value"], lse_error[at], 9)
        self.assertAlmostEqual(found["log_sum_exp"]["limit"],
                               1e-4 + 1e-5 * abs(ref_lse[at]), 9)

    def test_bf16(self):
        self.compare(BF16)

    def test_f16(self):
        self.compare(F16)

    def test_causal_and_window(self):
        self.compare(BF16, causal=True)
        self.compare(F16, window_left=9)

    def test_softcap_and_sink(self):
        self.compare(BF16, softcap=3.0, scale=1.0)
        self.compare(BF16, sink=True)

    def test_head_size_of_values(self):
        self.compare(BF16, head_size=96, v_head_size=40)
        self.compare(F16, head_size=40, v_head_size=96)

    def test_type_of_the_output(self):
        self.compare(BF16, out_kind=F16)
        self.compare(F16, out_kind=BF16, v_head_size=32)
        # The mock's errors are f32's own: 1e-8, of which 1e-15 is 1e-7.
        self.compare(BF16, out_kind=F32, places=6)

    def test_peaked(self):
        self.compare(BF16, scale=4.0)


if __name__ == "__main__":
    unittest.main()
