# Rows of batch_invariant problems, alone and beside others, on the emulator.
# RUN: %python %s sm_80
# RUN: %python %s sm_90a
# RUN: %if ld.lld %{ %python %s gfx942 %}
# RUN: %if ld.lld %{ %python %s gfx950 %}
"""The bits of a row of a batch_invariant problem do not depend on other rows.

    batch-invariant.py CHIP

Each row is computed beside others whose maxima are larger, without the other
sequences, and without the rows before it; in dense, ragged and paged batches of many
rows and of few. Kernels/batch-invariant.test has the same from the command line.
"""

import pathlib
import sys
import unittest

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[3] / "benchmark"))
from problem import problem  # noqa: E402

CHIP = sys.argv.pop()
RNG = np.random.default_rng()
HEADS, KV_HEADS, SIZE, PAGE = 4, 2, 128, 16


def normal(*shape, dtype="f16"):
    x = RNG.standard_normal(shape)
    return x.astype(np.float16) if dtype == "f16" else kvbuf.to_bf16(x)


class BatchInvariant(unittest.TestCase):
    #: Whether launches are on a GPU (benchmark/verify_programs.py): there are more
    #: rows and keys then.
    ON_GPU = False

    def compile(self, dtype="f16", invariant=True, **options):
        return kvbuf.compile(problem(
            heads=HEADS, kv_heads=KV_HEADS, head_size=SIZE, dtype=dtype,
            batch_invariant=invariant, **options), target=CHIP, machine_code=False)

    def same(self, one, other):
        self.assertTrue(np.asarray(one).size)
        np.testing.assert_array_equal(*(np.asarray(x).view(np.uint16)
                                        for x in (one, other)))

    def dense(self, *, queries=70, keys=200, **options):
        run = self.compile(**options)
        dtype = options.get("dtype", "f16")
        q = normal(2, queries, HEADS, SIZE, dtype=dtype)
        k, v = (normal(2, keys, KV_HEADS, SIZE, dtype=dtype) for _ in "kv")
        o = run(q=q, k=k, v=v)
        # Beside rows of larger scores.
        louder = q.copy()
        exact = q[:, 1::2] if dtype == "f16" else kvbuf.from_bf16(q[:, 1::2])
        louder[:, 1::2] = (exact * 32 if dtype == "f16" else
                           kvbuf.to_bf16(exact * 32))
        self.same(o[:, ::2], run(q=louder, k=k, v=v)[:, ::2])
        # Alone.
        self.same(o[1:], run(q=q[1:], k=k[1:], v=v[1:]))
        # The last rows alone, whose last row is at the last key in both.
        for rows in 1, 7, 33:
            self.same(o[:, -rows:], run(q=q[:, -rows:].copy(), k=k, v=v))
        # Rows in the middle, the keys after them not there yet.
        if options.get("causal"):
            end = queries - 11
            self.same(o[:, 20:end], run(
                q=q[:, 20:end].copy(), k=k[:, :keys - 11].copy(),
                v=v[:, :keys - 11].copy()))

    def test_full(self):
        self.dense()

    def test_causal(self):
        self.dense(causal=True, dtype="bf16")

    def test_window(self):
        self.dense(causal=True, window_left=90)

    def test_long(self):
        if self.ON_GPU:
            self.dense(causal=True, queries=1500, keys=4100)
            self.dense(queries=1500, keys=4100, dtype="bf16")

    def sequences(self, run, counts, lengths, seq_q=None):
        """O of each sequence of a paged batch; the same for each alone, elsewhere."""
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        q = (normal(len(counts), 1, HEADS, SIZE) if seq_q else
             normal(offsets[-1], HEADS, SIZE))
        pages = -(-max(lengths) // PAGE)
        blocks = pages * len(counts)
        k, v = (normal(blocks, PAGE, KV_HEADS, SIZE) for _ in "kv")
        table = RNG.permutation(blocks).reshape(-1, pages).astype(np.int32)
        cached = np.int32(lengths) - np.int32(counts)

        def launch(which, q, k, v, table):
            more = {} if seq_q else {"q_offsets": np.concatenate(
                [[0], np.cumsum([counts[b] for b in which])]).astype(np.int32)}
            return run(q=q, k=k, v=v, k_table=table, v_table=table,
                       k_lengths=cached[which], v_lengths=cached[which], **more)
        o = launch(list(range(len(counts))), q, k, v, table)
        for b in range(len(counts)):
            own = q[b:b + 1] if seq_q else q[offsets[b]:offsets[b + 1]]
            part = o[b:b + 1] if seq_q else o[offsets[b]:offsets[b + 1]]
            order = RNG.permutation(pages)
            alone = launch([b], own, k[table[b]][order], v[table[b]][order],
                           np.argsort(order).astype(np.int32)[None])
            yield part, alone

    def test_ragged(self):
        run = self.compile(causal=True, query="ragged", cache="paged", page_size=PAGE)
        for one, other in self.sequences(run, [70, 1, 33], [150, 300, 33]):
            self.same(one, other)

    LENGTHS = [1, 700, 16, 330, 129]

    def test_few_rows(self):
        """The launch may not choose a kernel by the number of sequences."""
        run = self.compile(seq_q=1, cache="paged", page_size=PAGE)
        for lengths in [self.LENGTHS, *[[5000, 1, 1025, 3000] * 10] * self.ON_GPU]:
            for one, other in self.sequences(run, [1] * len(lengths), lengths, 1):
                self.same(one, other)

    def test_shares(self):
        """Without the attribute pieces of a sequence depend on the others."""
        run = self.compile(seq_q=1, cache="paged", page_size=PAGE, invariant=False)
        with self.assertRaises(AssertionError):
            for one, other in self.sequences(run, [1] * 5, self.LENGTHS, 1):
                self.same(one, other)


if __name__ == "__main__":
    unittest.main()
