# Several functions of one module, from Python on the emulator, against float64.
# RUN: %python %s %src sm_80
# RUN: %python %s %src sm_90a
# RUN: %python %s %src gfx942
# RUN: %python %s %src gfx950
"""An artifact of an append, a prefill and a decode serves a batch: what one function
stores, the next one reads. For sm_80 two hand-written programs of the tile stage,
examples/gemm.mlir and sigmoid.mlir, stand in one module, with a problem beside them.

    functions.py SOURCE CHIP
"""

import pathlib
import re
import sys
import unittest

import numpy as np

import kvbuf

CHIP = sys.argv.pop()
SOURCE = pathlib.Path(sys.argv.pop())
RNG = np.random.default_rng(3)
PAGE, HEADS, KV_HEADS, SIZE = 16, 8, 2, 64
MODEL = (SOURCE / "test/Kernels/Inputs/functions.mlir").read_text()


def normal(*shape):
    return kvbuf.to_bf16(RNG.standard_normal(shape))


def exact(x):
    return kvbuf.from_bf16(x).astype(np.float64)


def attention(q, k, v, weigh):
    """Rows [rows, heads, size] on keys [keys, kv_heads, size], the last row at the
    last key; `weigh` makes weights of scores and of what is seen."""
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = np.einsum("ihd,jhd->hij", q, k) * SIZE ** -0.5
    seen = np.tri(len(q), len(k), len(k) - len(q), dtype=bool)
    return np.einsum("hij,jhd->ihd", weigh(scores, seen), v)


def softmax(scores, seen):
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def aliases_apart(text, prefix):
    """The text with a prefix on the names of its aliases, which are a file's."""
    for sign, name in set(re.findall(r"^([!#])(\w+) =", text, re.M)):
        text = re.sub(rf"{sign}{name}\b", f"{sign}{prefix}{name}", text)
    return text


class Model(unittest.TestCase):
    #: Whether launches are on a GPU (benchmark/verify_programs.py), which counts
    #: nothing.
    ON_GPU = False

    def test_serving(self):
        model = kvbuf.compile(MODEL, target=CHIP, machine_code=False)
        self.assertEqual(model.names, ("append", "prefill", "decode"))
        batch, prompt, steps = 2, 21, 3
        k, v = (kvbuf.to_bf16(np.full((8, PAGE, KV_HEADS, SIZE), np.nan)) for _ in "kv")
        table = RNG.permutation(8).astype(np.int32).reshape(batch, 4)
        lengths = np.zeros(batch, np.int32)
        cache = dict(k=k, v=v, k_table=table, v_table=table)
        told = np.empty((batch, 0, KV_HEADS, SIZE)), np.empty((batch, 0, KV_HEADS, SIZE))
        for count, function in [(prompt, "prefill")] + [(1, "decode")] * steps:
            q = normal(batch, count, HEADS, SIZE)
            new = [normal(batch, count, KV_HEADS, SIZE) for _ in "kv"]
            sizes = dict(k_lengths=lengths, v_lengths=lengths)
            model["append"](k_new=new[0], v_new=new[1], **cache, **sizes)
            told = [np.concatenate([old, exact(x)], 1) for old, x in zip(told, new)]
            o = exact(model[function](q=q, **cache, **sizes))
            for b in range(batch):
                expected = attention(exact(q[b]), told[0][b], told[1][b], softmax)
                np.testing.assert_allclose(o[b], expected, atol=0.02)
            lengths = lengths + np.int32(count)
        if not self.ON_GPU:
            self.assertTrue(model["decode"].report())


@unittest.skipIf(CHIP != "sm_80", "the programs are written for the portable path")
class Programs(unittest.TestCase):
    def test_by_hand(self):
        texts = [(SOURCE / f"examples/{name}.mlir").read_text()
                 for name in ("gemm", "sigmoid")]
        module = kvbuf.compile("\n".join(
            aliases_apart(text, f"p{number}_")
            for number, text in enumerate([*texts, MODEL])), target=CHIP,
                               machine_code=False)
        self.assertEqual(module.names, ("gemm", "sigmoid", "append", "prefill", "decode"))

        a, b = normal(70, 40), normal(30, 40)
        c = module["gemm"](a=a, b=b)
        np.testing.assert_allclose(exact(c), exact(a) @ exact(b).T, rtol=0.01, atol=0.02)

        q, k, v = (normal(2, rows, 4, SIZE) for rows in (40, 70, 70))
        o = exact(module["sigmoid"](q=q, k=k, v=v))
        for batch in range(2):
            expected = attention(*(exact(x[batch]) for x in (q, k, v)),
                                 lambda s, seen: seen / (1 + np.exp(2 - s)))
            np.testing.assert_allclose(o[batch], expected, rtol=0.02, atol=0.05)

        # Of the kernels beside it, a function has neither tensors nor code.
        self.assertEqual({t["name"] for t in module["gemm"].manifest["tensors"]},
                         {"a", "b", "c"})
        self.assertEqual([kernel["entry"] for kernel in module["gemm"].manifest["kernels"]],
                         ["gemm", "gemm_unaligned"])
        with self.assertRaisesRegex(TypeError, "gemm takes no argument 'q'"):
            module["gemm"](a=a, b=b, q=q)


unittest.main(argv=sys.argv[:1])
