# RUN: env KVBUF_LIB_DIR=%lib %python %s
"""int64 tables, lengths and offsets, as torch makes them, and lengths that
count the new tokens, through the Python package."""

import unittest

import numpy as np

import kvbuf

RNG = np.random.default_rng()


def compile(kind, page="", more=""):
    cache = f"!kvbuffer.cache<{kind}, f16, heads = 1, head_size = 64{page}>"
    q, at = "memref<?x1x64xf16>", "memref<?xi64>"
    index = "{kvbuffer.index = i64}"
    return kvbuf.compile(f"""func.func @f(%q: {q}, %k: {cache} {index},
                                          %v: {cache} {index}, %o: {q},
                                          %at: {at}) {{
      kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%at)
        {{mask = #kvbuffer.mask<causal = true>{more}}}
        : {q}, {cache}, {cache}, {q}, offsets {at}
      return }}""", target="sm_80", machine_code=False)


def attention(q, k, v):
    q, k, v = (x.astype(np.float64)[:, 0] for x in (q, k, v))
    i, j = np.ogrid[:len(q), :len(k)]
    s = np.where(j <= i + len(k) - len(q), q @ k.T / 8, -np.inf)
    top = s.max(-1, keepdims=True, initial=-1e30)
    p = np.exp(s - top)
    total = p.sum(-1, keepdims=True)
    return p @ v / np.where(total, total, 1)


class Indices(unittest.TestCase):
    def test_paged(self):
        run = compile("paged", ", page_size = 24",
                      ', kvbuffer.lengths = "all"')
        queries, lengths = [5, 3, 7], [2, 60, 7]
        offsets = np.cumsum([0, *queries])
        self.assertEqual(offsets.dtype, np.int64)
        table = RNG.permutation(12)[:9].reshape(3, 3)
        q = RNG.standard_normal((15, 1, 64)).astype(np.float16)
        k, v = RNG.standard_normal((2, 12, 24, 1, 64)).astype(np.float16)
        given = dict(q=q, k=k, v=v, k_table=table, v_table=table,
                     k_lengths=np.array(lengths), v_lengths=np.array(lengths),
                     q_offsets=offsets)
        o = run(**given)
        for b, n in enumerate(lengths):
            rows = slice(offsets[b], offsets[b + 1])
            of = [x[table[b]].reshape(-1, 1, 64)[:n] for x in (k, v)]
            np.testing.assert_allclose(o[rows, 0].astype(np.float64),
                                       attention(q[rows], *of), rtol=0,
                                       atol=1e-2)
        given["k_lengths"] = np.array([2, 73, 7])
        with self.assertRaisesRegex(
                kvbuf.Error, "^tensor 'k.lengths' holds 73 at 1; expected 0 to "
                "72, the keys that a sequence has room for$"):
            run(**given)
        with self.assertRaisesRegex(kvbuf.Error, "is i32; expected i64"):
            run(**{**given, "k_table": table.astype(np.int32)})

    def test_ragged(self):
        run = compile("ragged")
        q = RNG.standard_normal((9, 1, 64)).astype(np.float16)
        k, v = RNG.standard_normal((2, 11, 1, 64)).astype(np.float16)
        at, keys = np.array([0, 4, 9]), np.array([0, 1, 11])
        o = run(q=q, k=k, v=v, q_offsets=at, k_offsets=keys, v_offsets=keys)
        for b in range(2):
            rows, of = (slice(x[b], x[b + 1]) for x in (at, keys))
            np.testing.assert_allclose(o[rows, 0].astype(np.float64),
                                       attention(q[rows], k[of], v[of]),
                                       rtol=0, atol=1e-2)


if __name__ == "__main__":
    unittest.main()
