# RUN: env KVBUF_LIB_DIR=%lib %python %s
"""kvbuf.merge_states on the emulator against float64: any number of parts, without
keys too, of every type; what is refused."""

import itertools
import unittest
import unittest.mock

import numpy as np

import kvbuf

RNG = np.random.default_rng()
TO = {"f32": np.float32, "f16": np.float16, "bf16": kvbuf.to_bf16}


def wide(x):
    return (kvbuf.from_bf16(x) if x.dtype == np.uint16 else x).astype(np.float64)


def exact(outs, lses):
    """The merge in float64."""
    outs, lses = wide(outs), lses.astype(np.float64)
    top = lses.max(0, initial=-np.inf)
    top = np.where(np.isneginf(top), 0, top)
    weights = np.exp(lses - top)
    sums = weights.sum(0)
    with np.errstate(divide="ignore"):
        lse = np.log(sums) + top
    weights = np.where(sums > 0, weights / np.where(sums > 0, sums, 1), 0)
    weights = np.swapaxes(weights, -1, -2)[..., None]
    return (np.where(weights > 0, outs, 0) * weights).sum(0), lse


class Merge(unittest.TestCase):
    def parts(self, count, lead=(2,), rows=5, heads=3, size=40, kind="f32"):
        outs = TO[kind](RNG.standard_normal((count, *lead, rows, heads, size)))
        lses = (RNG.standard_normal((count, *lead, heads, rows)) * 4).astype(
            np.float32)
        return outs, lses

    def check(self, outs, lses, out=None, atol=2e-6):
        result, lse = kvbuf.merge_states(outs, lses, out=out)
        if out is not None:
            self.assertIs(result, out)
        else:
            self.assertEqual(result.dtype, outs.dtype)
        want, want_lse = exact(outs, lses)
        np.testing.assert_allclose(wide(result), want, rtol=0, atol=atol)
        np.testing.assert_allclose(lse, want_lse, rtol=1e-6, atol=2e-6)

    def test_types(self):
        """A rounding to the result's type, of numbers below 8."""
        errors = {"f32": 2e-6, "f16": 4 * 2 ** -11, "bf16": 4 * 2 ** -8}
        for kind, to in itertools.product(TO, TO):
            with self.subTest(kind=kind, to=to):
                outs, lses = self.parts(3, kind=kind)
                self.check(outs, lses, TO[to](np.zeros(outs.shape[1:])),
                           atol=errors[to])

    def test_counts(self):
        for count in 0, 1, 2, 9:
            with self.subTest(count):
                self.check(*self.parts(count))

    def test_sizes(self):
        """Head sizes that lanes do not divide, a long one, ragged rows."""
        for size in 1, 7, 64, 512:
            with self.subTest(size):
                self.check(*self.parts(2, lead=(), rows=70, size=size))

    def test_infinite(self):
        """All of the weight of a row is a sink's."""
        outs, lses = self.parts(3)
        lses[1, 0, 1], outs[1, 0, :, 1] = np.inf, 0
        lses[:, 1, 2] = np.inf
        result, lse = kvbuf.merge_states(outs, lses)
        self.assertTrue((result[0, :, 1] == 0).all() and (lse[0, 1] == np.inf).all())
        np.testing.assert_allclose(result[1, :, 2], outs[:, 1, :, 2].mean(0), atol=2e-6)
        self.assertTrue((lse[1, 2] == np.inf).all() and np.isfinite(lse[0, ::2]).all())

    def test_parts_without_keys(self):
        outs, lses = self.parts(3)
        lses[0, 0] = lses[:, 1, 2] = lses[1:, 1, 0] = -np.inf
        outs[0, 0] = np.nan
        outs[:, 1, :, 2] = np.inf
        self.check(outs, lses)

    def test_large_log_sums(self):
        outs, lses = self.parts(2)
        self.check(outs, lses + np.float32(3e4), atol=2e-6)

    def test_strides(self):
        outs, lses = self.parts(4, rows=12)
        self.check(outs[::2, :, 1::3], lses[::2, :, :, 1::3])
        self.check(outs.swapaxes(1, 2)[:, :2], np.ascontiguousarray(
            self.parts(4, lead=(2,), rows=2)[1]))

    def test_lists(self):
        outs, lses = self.parts(2)
        result, _ = kvbuf.merge_states(list(outs), list(lses))
        np.testing.assert_allclose(result, exact(outs, lses)[0], rtol=0, atol=2e-6)

    def test_parts_of_attention(self):
        """Keys in two halves are all keys."""
        q, k, v = (kvbuf.to_bf16(RNG.standard_normal((1, n, 2, 64)))
                   for n in (5, 30, 30))
        whole, lse = kvbuf.attention(q, k, v, return_lse=True)
        parts = [kvbuf.attention(q, k[:, a:b], v[:, a:b], return_lse=True,
                                 out=np.empty(q.shape, np.float32))
                 for a, b in ((0, 13), (13, 30))]
        both, total = kvbuf.merge_states(*zip(*parts))
        np.testing.assert_allclose(both, wide(whole), rtol=0, atol=2e-2)
        np.testing.assert_allclose(total, lse, rtol=0, atol=1e-5)

    def test_refused(self):
        outs, lses = self.parts(2)
        for words, call in (
                ("lses has shape (2, 2, 5, 3); expected (2, 2, 3, 5), those of outs, "
                 "heads before rows",
                 lambda: kvbuf.merge_states(outs, lses.swapaxes(-1, -2))),
                ("lses has type float64; expected float32",
                 lambda: kvbuf.merge_states(outs, lses.astype(np.float64))),
                ("outs is empty", lambda: kvbuf.merge_states([], [])),
                ("outs has 3 dimensions; expected 5",
                 lambda: kvbuf.merge_states(outs[0, 0], lses))):
            with self.subTest(words), self.assertRaises(ValueError) as caught:
                call()
            self.assertIn(words, str(caught.exception))


class SharedPrefix(unittest.TestCase):
    def test_groups(self):
        """Two groups, of 2 sequences and of one, and one whose prefix is empty; of two
        new rows, with a sink, and of one, whose prefix is in two parts, against
        attention over all tokens of each."""
        for rows, parts in (2, None), (1, 2):
            with self.subTest(rows=rows):
                self.check(rows, parts)

    def test_refused(self):
        """Lengths that tables have no pages for, of which parts would tell nothing, and
        tables of other tensors, or beside what they are made of."""
        q = kvbuf.to_bf16(RNG.standard_normal((2, 1, 4, 32)))
        k, v = (kvbuf.to_bf16(RNG.standard_normal((9, 16, 2, 32))) for _ in "kv")
        given = {name: np.array(x, np.int32) for name, x in {
            "group_offsets": [0, 2], "prefix_table": [[0, 1, 2]], "prefix_lengths": [40],
            "page_table": [[3, 4], [5, 6]], "lengths": [5, 18]}.items()}
        of = {"page_size": 16, "heads": 4}
        tables = kvbuf.shared_prefix_tables(**given, **of)

        def made(**more):
            return lambda: kvbuf.shared_prefix_tables(**{**given, **of, **more})

        def call(q=q, k=k, v=v, **more):
            return lambda: kvbuf.shared_prefix_attention(q, k, v, **more)

        wide_k, wide_v = (x[:8].reshape(4, 32, 2, 32) for x in (k, v))
        for error, words, what in (
                (kvbuf.Error, "prefix_lengths holds 49 at 0; expected 0 to 48",
                 made(prefix_lengths=np.array([49], np.int32))),
                (kvbuf.Error, "lengths holds 33 at 1; expected 0 to 32",
                 made(lengths=np.array([5, 33], np.int32))),
                (kvbuf.Error, "group_offsets holds [0, 1]; expected 0 to 2",
                 made(group_offsets=np.array([0, 1], np.int32))),
                (kvbuf.Error, "group_offsets holds [0, 3, 2]; expected 0 to 2",
                 made(group_offsets=np.array([0, 3, 2], np.int32),
                      prefix_table=np.zeros((2, 3), np.int32),
                      prefix_lengths=np.array([40, 40], np.int32))),
                (kvbuf.Error, "group_offsets holds [0, 1]; expected 0 to 2",
                 call(**{**given, "group_offsets": np.array([0, 1], np.int32)},
                      sink=np.zeros(4, np.float32))),
                (kvbuf.Error, "lengths holds -1 at 0",
                 call(**{**given, "lengths": np.array([-1, 3], np.int32)})),
                (ValueError, "lengths has shape (1,)", made(lengths=given["lengths"][:1])),
                (ValueError, "group_offsets has shape (2,); expected (3,)",
                 made(prefix_table=np.zeros((2, 3), np.int32))),
                (ValueError, "lengths is given with tables",
                 call(tables=tables, lengths=given["lengths"])),
                (ValueError, "group_offsets is None, and so is tables", call()),
                (ValueError, "tables are of 2 sequences, and q has 1",
                 call(q=q[:1], tables=tables)),
                (ValueError, "tables are of 16 rows a page, and k has 32",
                 call(k=wide_k, v=wide_v, tables=tables))):
            with self.subTest(words), self.assertRaises(error) as caught:
                what()
            self.assertIn(words, str(caught.exception))

    def check(self, rows, parts):
        heads, size, page = 4, 32, 16
        q = kvbuf.to_bf16(RNG.standard_normal((4, rows, heads, size)))
        k, v = (kvbuf.to_bf16(RNG.standard_normal((20, page, 2, size))) for _ in "kv")
        places = RNG.permutation(20).astype(np.int32)
        prefix, own = places[:6].reshape(3, 2), places[6:14].reshape(4, 2)
        groups = np.array([0, 2, 3, 4], np.int32)
        shared, lengths = np.array([20, 32, 0], np.int32), np.array(
            [5, 18, 2, 30], np.int32)
        sink = RNG.standard_normal(heads).astype(np.float32)
        given = dict(group_offsets=groups, prefix_table=prefix, prefix_lengths=shared,
                     page_table=own, lengths=lengths)
        kinds = [{}, {"longest_group": 2, "sink": sink, "softcap": 3.0}]
        if parts:
            kinds, given = [{}], {"tables": kvbuf.shared_prefix_tables(
                **given, page_size=page, heads=heads, rows=rows, parts=parts)}
        for more in kinds:
            with unittest.mock.patch("kvbuf._attention.on_run") as runs:
                out, lse = kvbuf.shared_prefix_attention(
                    q, k, v, return_lse=True, **given, **more)
            # One launch of attention, and the merge's.
            self.assertEqual(runs.call_count, 2 if more else 1)
            for b, group in enumerate((0, 0, 1, 2)):
                tokens = [np.concatenate([
                    wide(x)[prefix[group]].reshape(-1, 2, size)[:shared[group]],
                    wide(x)[own[b]].reshape(-1, 2, size)[:lengths[b]]])
                    for x in (k, v)]
                tokens = [x.repeat(2, 1) for x in tokens]
                s = np.einsum("ihd,jhd->hij", wide(q)[b], tokens[0]) * size ** -0.5
                if more:
                    s = 3 * np.tanh(s / 3)
                keys = s.shape[2]
                s[:, np.arange(keys) > np.arange(rows)[:, None] + keys - rows] = -np.inf
                weights = np.exp(s)
                total = weights.sum(-1)
                if more:
                    total += np.exp(sink)[:, None]
                want = np.einsum("hij,jhd->ihd", weights / total[..., None], tokens[1])
                np.testing.assert_allclose(wide(out)[b], want, rtol=0, atol=2e-2)
                np.testing.assert_allclose(lse[b], np.log(total), rtol=0, atol=1e-3)

if __name__ == "__main__":
    unittest.main()
