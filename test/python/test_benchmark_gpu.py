# RUN: %python %s %src
"""The comparisons' clock and check, on a stand-in for PyTorch: every planted
mistake is found, and times are those of the contestants."""

import pathlib
import sys
import unittest

import numpy as np

SOURCE = pathlib.Path(sys.argv.pop())
sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs/torch_stub"))
sys.path.insert(0, str(SOURCE / "benchmark"))
import common  # noqa: E402
import cudnn_compare  # noqa: E402
import gpu  # noqa: E402
import torch  # noqa: E402

gpu.WARMUP_SECONDS = 0.0


def attention(work):
    """In float64, rounded to bfloat16."""
    out = np.zeros(work.q.shape, np.float32).view(torch.Tensor)
    group = work.heads // work.kv_heads
    for b, length in enumerate(work.lengths):
        q, k, v = (np.asarray(work.sequence(x, b), np.float64)
                   for x in (work.q, work.k, work.v))
        k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
        s = np.einsum("ihd,jhd->hij", q, k) * work.scale
        if work.causal:
            s = np.where(np.tri(length, dtype=bool), s, -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        work.sequence(out, b)[...] = np.einsum("hij,jhd->ihd", p, v)
    return out.to(torch.bfloat16)


def works():
    for causal in False, True:
        yield gpu.Work(4, 2, 16, causal, 2, 70)
        yield gpu.Work(2, 2, 16, causal, 0, 0, lengths=(33, 1, 50))


class Check(unittest.TestCase):
    def setUp(self):
        block = gpu.BLOCK
        self.addCleanup(setattr, gpu, "BLOCK", block)

    def verdict(self, work, out):
        return gpu.check(work, {"x": out})["x"]

    def test_right(self):
        for work in works():
            whole = self.verdict(work, attention(work))
            self.assertEqual(whole.wrong, "")
            self.assertLess(whole.mean_ratio, 1.05)
            # Some rows at a time give the same.
            gpu.BLOCK = 300
            parts = self.verdict(work, attention(work))
            self.assertAlmostEqual(whole.mean, parts.mean, delta=1e-7)
            self.assertAlmostEqual(whole.largest, parts.largest, delta=1e-5)

    def test_wrong(self):
        for work in works():
            good = attention(work)
            for name, message, plant in (
                    ("element", "largest error", lambda o: o.__setitem__(
                        (-1, 0, 3), o[-1, 0, 3] + 0.5)),
                    ("NaN", "NaN", lambda o: o.__setitem__(
                        (-1, 1, 0), np.nan)),
                    ("scale", "error", lambda o: o.__imul__(1.02)),
                    ("small", "mean error", lambda o: o.__imul__(1.003))):
                out = good.copy()
                plant(out)
                self.assertIn(message, self.verdict(work, out).wrong, name)

    def test_wrong_mask(self):
        full, causal = (gpu.Work(2, 2, 16, mask, 1, 40) for mask in (0, 1))
        self.assertIn("largest error", self.verdict(
            causal, attention(full)).wrong)
        self.assertIn("largest error", self.verdict(
            full, attention(causal)).wrong)

    def test_wrong_head(self):
        work = gpu.Work(4, 2, 16, True, 1, 40)
        other = gpu.Work(4, 2, 16, True, 1, 40)
        other.k, other.v = (x[:, :, ::-1] for x in (work.k, work.v))
        self.assertIn("error", self.verdict(work, attention(other)).wrong)

    def test_output_is_poisoned(self):
        work = gpu.Work(2, 2, 16, False, 1, 8)
        run = gpu.kernel(work, lambda **tensors: tensors["out"])
        run.out.fill_(1)
        self.assertIn("NaN", self.verdict(work, gpu.output(run)).wrong)


class Clock(unittest.TestCase):
    CONTESTANTS = {"a": 2.0, "b": 0.5, "c": 30.0}

    def contestants(self):
        return {name: lambda n=name, ms=ms: torch.cuda.launch(n, ms)
                for name, ms in self.CONTESTANTS.items()}

    def test_times(self):
        for graphs in False, True:
            for sample in 0, 10:
                times = gpu.measure(self.contestants(), 7, sample, graphs)
                for name, ms in self.CONTESTANTS.items():
                    self.assertEqual(len(times[name]), 7)
                    np.testing.assert_allclose(times[name], ms, rtol=1e-9)

    def test_turns(self):
        torch.cuda.log.clear()
        gpu.measure(self.contestants(), 3, 10)
        a, b, c = ["a"] * 5, ["b"] * 20, ["c"]
        self.assertEqual(torch.cuda.log[-3 * 26:],
                         [*a, *b, *c, *c, *b, *a, *b, *c, *a])

    def test_sustained(self):
        """Each holds the card for 120 ms at a time, a third of it to settle."""
        for graphs in False, True:
            torch.cuda.log.clear()
            times = gpu.sustain(self.contestants(), 2, 0.12, 10, graphs)
            for name, ms in self.CONTESTANTS.items():
                self.assertEqual(len(times[name]), 2)
                np.testing.assert_allclose(times[name], ms, rtol=1e-9)
        # After the warm-up, one launch to time a graph, then the turn: a's is
        # of 5 launches, b's of 20, c's of 1.
        log = "".join(torch.cuda.log)
        # The second round is the first one backwards.
        self.assertTrue(log.endswith("c" * 5 + "b" * 20 * 13 + "a" * 5 * 13),
                        log[-400:])

    def test_clocks(self):
        class Stamps:
            """Cycles at 1500 MHz for a, 1200 for others."""
            def mark(self):
                return len(torch.cuda.log)

            def megahertz(self, begin, end):
                return 1500 if torch.cuda.log[begin] == "a" else 1200

        for run in (lambda: gpu.measure(self.contestants(), 3, 10,
                                        stamps=Stamps()),
                    lambda: gpu.sustain(self.contestants(), 3, 0.1, 10,
                                        stamps=Stamps())):
            torch.cuda.log.clear()
            times = run()
            self.assertEqual({n: t.megahertz for n, t in times.items()}, {
                "a": [1500] * 3, "b": [1200] * 3, "c": [1200] * 3})

    def test_a_capture_that_fails(self):
        torch.cuda.refuse_capture = True
        self.addCleanup(setattr, torch.cuda, "refuse_capture", False)
        with self.assertRaisesRegex(RuntimeError, "not permitted"):
            gpu.measure(self.contestants(), 3, 10, graphs=True)


class FakeKernels:
    """In place of the package kvbuf: artifacts that compute in PyTorch."""

    class Error(Exception):
        pass

    def __init__(self, milliseconds, planted=lambda out: out):
        self.milliseconds, self.planted = milliseconds, planted
        self.problem = {}

    def version(self):
        return "fake"

    def load(self, path):
        fake = self

        class Artifact:
            manifest = {"problem": fake.problem}

            def __call__(self, q, k, v, out, q_offsets=None, seq_q=0, **_):
                torch.cuda.launch("kvbuf", fake.milliseconds)
                heads, kv_heads, size = (fake.problem[n] for n in (
                    "heads", "kv_heads", "head_size"))
                lengths = () if q_offsets is None else tuple(
                    int(n) for n in np.diff(q_offsets))
                assert q_offsets is None or seq_q == max(lengths)
                work = gpu.Work(heads, kv_heads, size, fake.problem["causal"],
                                *q.shape[:2], lengths)
                work.q, work.k, work.v = q, k, v
                out[...] = fake.planted(attention(work))
                return out
        return Artifact()


class Laboratory(unittest.TestCase):
    """cudnn_compare.py from end to end, at small sizes."""

    def run_(self, case, kernels, graphs="auto"):
        sys.modules["kvbuf"] = kernels
        self.addCleanup(sys.modules.pop, "kvbuf", None)
        kernels.problem = case.options()
        lab = cudnn_compare.Lab(rounds=3, sample_ms=2.0, graphs=graphs, tile=16)
        return lab, lab.run(case, {"kvbuf": pathlib.Path("x.kvbuf")})

    def setUp(self):
        functional = torch.nn.functional
        functional.milliseconds = {"CUDNN_ATTENTION": 1.0,
                                   "FLASH_ATTENTION": 2.0}
        functional.factor, functional.refuse_groups = {}, set()
        torch.cuda.refuse_capture = False

    DENSE = common.Case(4, 2, 16, True, 24, 2, 1.1, 1.2)

    def test_dense(self):
        for refuse in set(), set(gpu.SDPBackend):
            torch.nn.functional.refuse_groups = refuse
            lab, results = self.run_(self.DENSE, FakeKernels(0.8))
            self.assertEqual([(r.name, round(r.timing.median, 6), r.wrong)
                              for r in results],
                             [("cuDNN", 1.0, ""), ("FlashAttention-2", 2.0, ""),
                              ("kvbuf", 0.8, "")])
            self.assertEqual(lab.note, "")
            _, records = common.rows(self.DENSE, results)
            self.assertEqual(records[2]["verdict"], "aim")

    def test_planted_mistakes(self):
        torch.nn.functional.factor = {"CUDNN_ATTENTION": 1.05}
        _, results = self.run_(self.DENSE, FakeKernels(
            0.8, lambda out: out * np.float32(1.05)))
        self.assertEqual([bool(r.wrong) for r in results], [True, False, True])

    def test_without_graphs(self):
        torch.cuda.refuse_capture = True
        lab, results = self.run_(self.DENSE, FakeKernels(0.8))
        self.assertEqual(lab.note, "no CUDA graphs: operation not permitted "
                         "when stream is capturing; the host's time may be "
                         "part of short turns")
        self.assertAlmostEqual(results[2].timing.median, 0.8)
        with self.assertRaisesRegex(RuntimeError, "not permitted"):
            self.run_(self.DENSE, FakeKernels(0.8), graphs="on")

    def test_ragged(self):
        case = common.Case(2, 2, 16, True, 40, 3, 0.9, 1.0, (40, 7, 21))
        _, results = self.run_(case, FakeKernels(1.0))
        self.assertEqual([(r.name, r.wrong) for r in results], [
            ("kvbuf", ""), ("kvbuf, whole tiles", "")])
        # 40, 7 and 21 rows become 32, 16 and 16.
        self.assertEqual(results[1].flop, case.flop((32, 16, 16)))

    def test_another_problem(self):
        class Other(FakeKernels):
            def load(self, path):
                self.problem = {**self.problem, "causal": False}
                return super().load(path)
        with self.assertRaisesRegex(RuntimeError, "^x.kvbuf is for .*'causal': "
                                    "False.* the case 'd16-causal-gqa4_2-24x2'"):
            self.run_(self.DENSE, Other(1.0))


if __name__ == "__main__":
    unittest.main()
