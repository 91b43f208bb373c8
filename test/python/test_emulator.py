# RUN: env KVBUF_LIB_DIR=%lib %python %s %src
"""The Python package over the real compiler and emulator, on numpy arrays; the
results are compared with attention in numpy's float64."""

import pathlib
import subprocess
import sys
import unittest

import numpy as np

import kvbuf

SOURCE = pathlib.Path(sys.argv.pop())
RNG = np.random.default_rng(5)


def bf16(x):
    """Rounds to bfloat16, as uint16 (no NaN here)."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def exact(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def causal_attention(q, k, v):
    s = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(q.shape[-1])
    i, j = np.ogrid[:q.shape[1], :k.shape[1]]
    s = np.where(j <= i + k.shape[1] - q.shape[1], s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bhij,bjhd->bihd", p / p.sum(-1, keepdims=True), v)


class OnlyDLPack:
    """A tensor of which nothing but DLPack is known."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **_):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Prefill(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefill = kvbuf.compile(SOURCE / "examples/prefill.mlir",
                                    target="sm_80")
        cls.q, cls.k, cls.v = (
            bf16(RNG.standard_normal((1, n, 16, 128))) for n in (50, 70, 70))
        cls.expected = causal_attention(*map(exact, (cls.q, cls.k, cls.v)))

    def close(self, o):
        # Two roundings of bfloat16, of P and of O.
        np.testing.assert_allclose(exact(o), self.expected, rtol=0, atol=2e-2)

    def test_allocates_the_output(self):
        self.close(self.prefill(q=self.q, k=self.k, v=self.v))
        report = self.prefill.report()
        self.assertEqual(report["errors"], 0)
        self.assertGreater(report["lane_instructions"], 0)

    def test_dlpack(self):
        o = np.zeros_like(self.q)
        self.prefill(q=OnlyDLPack(self.q), k=OnlyDLPack(self.k),
                     v=OnlyDLPack(self.v), out=OnlyDLPack(o))
        self.close(o)

    def test_heads_outside(self):
        q, k, v = (np.ascontiguousarray(x.transpose(0, 2, 1, 3))
                   .transpose(0, 2, 1, 3) for x in (self.q, self.k, self.v))
        self.close(self.prefill(q=q, k=k, v=v))

    def test_one_buffer_for_everything(self):
        all_ = np.zeros((1, 70, 4, 16, 128), np.uint16)
        for i, x in enumerate((self.q, self.k, self.v)):
            all_[:, :x.shape[1], i] = x
        o = all_[:, :50, 3]
        self.prefill(q=all_[:, :50, 0], k=all_[:, :, 1], v=all_[:, :, 2], out=o)
        self.close(o)

    def test_emulator_options(self):
        device = kvbuf.Device("emulator", landing="random", seed=3)
        self.close(self.prefill(q=self.q, k=self.k, v=self.v, device=device))
        device = kvbuf.Device("emulator", landing="sideways")
        with self.assertRaisesRegex(kvbuf.Error, "landing"):
            self.prefill(q=self.q, k=self.k, v=self.v, device=device)

    def test_diagnostics_have_locations(self):
        with self.assertRaisesRegex(kvbuf.Error, r"<string>:2:.*error"):
            kvbuf.compile("func.func @f() {\n  kvbuffer.nonsense\n}\n",
                          target="sm_80")
        with self.assertRaisesRegex(kvbuf.Error, "unknown target 'sm_1'"):
            kvbuf.compile(SOURCE / "examples/prefill.mlir", target="sm_1")


    def test_target(self):
        """The option's chip, else the module's, else the default."""
        text = (SOURCE / "examples/prefill.mlir").read_text()
        named = text.replace(
            "func.func",
            'module attributes {kvbuffer.target = "gfx942"} {\nfunc.func') + "}"

        def chip(source, **options):
            artifact = kvbuf.compile(source, **options)
            return artifact.manifest["target"]["chip"]

        self.assertEqual(chip(named), "gfx942")
        self.assertEqual(chip(named, target="sm_80"), "sm_80")
        self.assertEqual(chip(text, target="sm_90"), "sm_90")

    def test_machine_code(self):
        """Without a GPU's code, which the artifact says; it runs all the same."""
        kernel = kvbuf.compile(SOURCE / "examples/prefill.mlir", target="sm_90",
                               machine_code=False)
        self.assertEqual(kernel.manifest["code"], "none")
        self.assertNotIn("code", self.prefill.manifest)
        self.close(kernel(q=self.q, k=self.k, v=self.v))


class Ragged(unittest.TestCase):
    """No size says how long the longest sequence is, so none can be too small
    for a kernel."""

    LENGTHS = [3, 0, 450, 70, 1]

    def problem(self):
        text = subprocess.run(
            [sys.executable, SOURCE / "benchmark/problem.py", "heads=1",
             "head_size=64", "query=ragged", "cache=ragged", "causal=true"],
            check=True, capture_output=True, text=True)
        return text.stdout

    def test_every_row_is_written(self):
        offsets = np.cumsum([0, *self.LENGTHS], dtype=np.int32)
        q, k, v = (bf16(RNG.standard_normal((offsets[-1], 1, 64)))
                   for _ in "qkv")
        expected = np.concatenate([
            causal_attention(*(exact(x[a:b])[None] for x in (q, k, v)))[0]
            for a, b in zip(offsets, offsets[1:]) if a < b])
        tensors = {"q": q, "k": k, "v": v, "q_offsets": offsets,
                   "k_offsets": offsets, "v_offsets": offsets}
        # As a GPU, whose memory only the kernel reads.
        gpu_like = kvbuf.Device("emulator", check_lengths=False)
        for target in "sm_80", "sm_90a", "gfx950":
            run = kvbuf.compile(self.problem(), target=target)
            for sizes in {}, {"seq_q": 450}, {"seq_q": 1}:
                out = np.full_like(q, 0x7FFF)
                run(**tensors, out=out, device=gpu_like, **sizes)
                np.testing.assert_allclose(exact(out), expected, rtol=0,
                                           atol=2e-2, err_msg=f"{target} {sizes}")


class Options(unittest.TestCase):
    """What the runtime itself takes of the emulator's options."""

    def test_values(self):
        for own in ({"multiprocessors": number} for number in (1, 1 << 16)):
            kvbuf.Device("emulator", **own)
        for number in 0, -1, 65537, 1 << 64, 2.5, True, "4":
            with self.subTest(number=number), self.assertRaisesRegex(
                    kvbuf.Error, "emulator options: expected 1 to 65536 for "
                    "'multiprocessors'"):
                kvbuf.Device("emulator", multiprocessors=number)
        with self.assertRaisesRegex(kvbuf.Error, "expected true or false for "
                                    "'check_lengths'"):
            kvbuf.Device("emulator", check_lengths=1)


class TensorMaps(unittest.TestCase):
    """An artifact whose kernel takes tensor maps has one without beside it."""

    @classmethod
    def setUpClass(cls):
        cls.prefill = kvbuf.compile(SOURCE / "examples/prefill.mlir",
                                    target="sm_90a")
        cls.q = bf16(RNG.standard_normal((2, 20, 16, 128)))
        # One cache for both sequences: a stride of 0.
        cls.k, cls.v = (np.broadcast_to(bf16(RNG.standard_normal(
            (1, 30, 16, 128))), (2, 30, 16, 128)) for _ in range(2))
        cls.expected = causal_attention(*map(exact, (cls.q, cls.k, cls.v)))

    def kernel(self):
        return [k["entry"] for k in self.prefill.report()["kernels"]]

    def test_maps(self):
        o = self.prefill(q=self.q, k=self.k.copy(), v=self.v.copy())
        np.testing.assert_allclose(exact(o), self.expected, rtol=0, atol=2e-2)
        self.assertEqual(self.prefill.remarks(), [])
        self.assertEqual(self.kernel(), ["prefill_without_clusters"])

    def test_without_maps(self):
        o = self.prefill(q=self.q, k=self.k, v=self.v)
        np.testing.assert_allclose(exact(o), self.expected, rtol=0, atol=2e-2)
        self.assertEqual(len(self.prefill.remarks()), 1)
        self.assertRegex(
            self.prefill.remarks()[0],
            "kernel 'prefill_without_maps' runs in place of 'prefill': tensor "
            "'k': stride 0 of dimension 0 is 0 bytes; a tensor map needs")
        self.assertEqual(self.kernel(), ["prefill_without_maps"])


if __name__ == "__main__":
    unittest.main()
