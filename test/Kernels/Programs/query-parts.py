# RUN: %python %s
"""Queries of bf16 as two operands of 8 bits, beside keys of 8 bits that nobody widens.

On the emulator of an sm_90a, by sums that are cut off as an H200's are: scores of all
magnitudes that a softmax has are as near to the exact ones as weights of bf16 would be,
and queries without what rounding to 8 bits leaves are far from it.
"""
import subprocess
import unittest

import kvbuf
import numpy as np

RNG = np.random.default_rng(11)
ROWS, KEYS, SIZE = 70, 200, 128


def problem(**more):
    return kvbuf.Problem(heads=1, kv_heads=1, head_size=SIZE, causal=False, k_dtype="e4m3",
                         v_dtype="e4m3", k_scale="tensor", o_dtype="f32", **more).source()


def rounded(x):
    """To bf16, as bits."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def wide(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def attend(q, k, v):
    s = q.astype(np.float64) @ k.astype(np.float64).T / SIZE ** 0.5
    p = np.exp(s - s.max(-1, keepdims=True))
    return (p / p.sum(-1, keepdims=True)) @ v.astype(np.float64)


def error(got, want):
    return np.sqrt(((got - want) ** 2).mean() / (want ** 2).mean())


class QueryParts(unittest.TestCase):
    def scheduled(self, **more):
        return subprocess.run(
            ["kvbuf-compile", "-", "--target=sm_90a", "--no-alternatives",
             "--emit=scheduled"], input=problem(**more), text=True, check=True,
            stdout=subprocess.PIPE).stdout

    def test_program(self):
        """The consumers multiply keys as they were loaded; only values are widened. No
        row's bits may depend on others' where that is asked for, so that keys are
        widened there."""
        parts = f"{ROWS + 58}x{2 * SIZE}xf8E4M3FN"
        text = self.scheduled()
        self.assertIn(parts, text)
        self.assertEqual(text.count("from @wideners"), 1)
        text = self.scheduled(batch_invariant=True)
        self.assertNotIn(parts, text)
        self.assertEqual(text.count("from @wideners"), 2)

    def test_errors(self):
        kernel = kvbuf.compile(problem(), target="sm_90a", machine_code=False)
        for factor in 1, 4, 10:
            q = rounded(RNG.standard_normal((1, ROWS, 1, SIZE)) * factor)
            # A row whose queries are far smaller than its neighbours'.
            q[0, 3] = rounded(wide(q[0, 3]) / 256)
            k, v = (kvbuf.to_fp8(RNG.standard_normal((1, KEYS, 1, SIZE)))
                    for _ in "kv")
            out = np.full((1, ROWS, 1, SIZE), np.nan, np.float32)
            kernel(q=q, k=k, v=v, o=out, k_scales=np.ones(1, np.float32),
                   device=kvbuf.Device("emulator", cut_sums=True))
            one = (x[0, :, 0] for x in (wide(q), kvbuf.from_fp8(k), kvbuf.from_fp8(v)))
            one = tuple(one)
            want = attend(*one)
            with self.subTest(factor=factor):
                self.assertLess(error(out[0, :, 0], want), 2.0 ** -9)
                # Sums of one part alone.
                part = kvbuf.from_fp8(kvbuf.to_fp8(one[0]))
                self.assertGreater(error(attend(part, *one[1:]), want), 2.0 ** -7)


if __name__ == "__main__":
    unittest.main()
