# RUN: env KVBUF_LIB_DIR=%lib %python %s
# RUN: env KVBUF_LIB_DIR=%lib KVBUF_EMULATE=sm_90a %python %s -k prefix
# RUN: env KVBUF_LIB_DIR=%lib KVBUF_EMULATE=gfx942 %python %s -k prefix
"""kvbuf.attention and the functions that other libraries have named, on numpy
arrays and the emulator, against float64: random calls, every argument, and what
is refused."""

import pathlib
import random
import sys
import unittest
import unittest.mock

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
import kvbuf  # noqa: E402
from attention_reference import attention, rotated  # noqa: E402
from kvbuf import _attention, _flash  # noqa: E402

SEED = random.SystemRandom().randrange(1 << 32)
RNG = np.random.default_rng(SEED)
print(f"seed {SEED}")

#: What each type's two roundings, of P and of O, may move results of order 1 by.
LIMIT = {"bf16": 3e-2, "f16": 4e-3}


def make(dtype, *shape):
    x = RNG.standard_normal(shape)
    return kvbuf.to_bf16(x) if dtype == "bf16" else x.astype(np.float16)


def exact(x):
    return (kvbuf.from_bf16(x) if x.dtype == np.uint16 else x).astype(np.float64)


def maybe(probability=0.5):
    return RNG.random() < probability


class Case(unittest.TestCase):
    def close(self, o, expected, dtype, note=""):
        self.assertEqual(o.shape, expected.shape)
        np.testing.assert_allclose(exact(o), expected, rtol=0,
                                   atol=LIMIT[dtype], err_msg=str(note))

    def lse_close(self, lse, expected):
        self.assertEqual(lse.dtype, np.float32)
        self.assertEqual(lse.shape, expected.shape)
        np.testing.assert_allclose(lse, expected, rtol=1e-5, atol=1e-4)


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False,
                    window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                    return_attn_probs=False, return_lse=False, out=None,
                    sink=None):
    return _flash.dense(q, k, v, dropout_p, softmax_scale, causal, window_size,
                        softcap, alibi_slopes, return_attn_probs, return_lse,
                        out, sink, None)


def flash_attn_varlen_func(q, k, v, cu_q, cu_k, max_q, max_k, dropout_p=0.0,
                           softmax_scale=None, causal=False,
                           window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                           return_attn_probs=False, block_table=None,
                           seqused_k=None, return_lse=False, out=None,
                           sink=None):
    return _flash.varlen(q, k, v, cu_q, cu_k, max_q, max_k, dropout_p,
                         softmax_scale, causal, window_size, softcap,
                         alibi_slopes, return_attn_probs, block_table, seqused_k,
                         return_lse, out, sink, None)


def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None,
                            rotary_cos=None, rotary_sin=None,
                            cache_seqlens=None, cache_batch_idx=None,
                            cache_leftpad=None, block_table=None,
                            softmax_scale=None, causal=False,
                            window_size=(-1, -1), softcap=0.0,
                            rotary_interleaved=True, alibi_slopes=None,
                            num_splits=0, return_softmax_lse=False,
                            cu_seqlens_q=None, max_seqlen_q=None, out=None,
                            sink=None):
    return _flash.with_kvcache(
        q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, cache_seqlens,
        cache_batch_idx, cache_leftpad, block_table, softmax_scale, causal,
        window_size, softcap, rotary_interleaved, alibi_slopes, num_splits,
        return_softmax_lse, cu_seqlens_q, max_seqlen_q, out, sink)


#: What all functions share. A run draws two: every kernel takes a while to make.
OPTIONS = RNG.permutation(
    [{}, {"causal": True}, {"window_size": (3, -1), "causal": True},
     {"window_size": (2, 4)}, {"softcap": 2.0, "softmax_scale": 0.3},
     {"window_size": (-1, 0)}])[:2]


def flash_options():
    return OPTIONS[RNG.integers(2)]


def reference_options(o):
    names = {"window_size": "window", "softmax_scale": "scale"}
    return {names.get(n, n): x for n, x in o.items()}


class Flash(Case):
    def test_dense(self):
        for _ in range(6):
            batch, rows, keys = RNG.integers(1, 4), *RNG.integers(1, 40, 2)
            opts = flash_options()
            q, k, v = (make("bf16", batch, n, h, 64)
                       for n, h in ((rows, 4), (keys, 2), (keys, 2)))
            o, lse = flash_attn_func(q, k, v, **opts, return_lse=True)
            for b in range(batch):
                e, el = attention(*map(exact, (q[b], k[b], v[b])),
                                  **reference_options(opts))
                self.close(o[b], e, "bf16", (rows, keys, opts))
                self.lse_close(lse[b], el)

    def test_results(self):
        q, k, v = (make("bf16", 2, n, h, 64) for n, h in ((5, 4), (3, 2), (3, 2)))
        out = np.empty_like(q)
        o, lse, probs = flash_attn_func(q, k, v, causal=True, out=out,
                                        return_attn_probs=True)
        self.assertIs(o, out)
        self.assertEqual(probs.shape, (0,))
        # Five queries, three keys: the first two rows see none.
        self.assertTrue((o[:, :2] == 0).all())
        self.assertTrue(np.isneginf(lse[:, :, :2]).all())
        self.assertEqual(flash_attn_func(q[:0], k[:0], v[:0]).shape, (0, 5, 4, 64))
        o, lse = flash_attn_func(q, k[:, :0], v[:, :0], return_lse=True)
        self.assertTrue((o == 0).all() and np.isneginf(lse).all())

    def test_strides_sizes_and_types(self):
        packed = make("f16", 2, 9, 3, 2, 64)
        q, k, v = (packed[:, :, i] for i in range(3))
        self.close(flash_attn_func(q, k, v)[1], attention(
            *(exact(x[1]) for x in (q, k, v)))[0], "f16")
        # Columns far apart, a head size of 20, and 36 columns in V.
        q, k, v = (make("f16", 1, n, 2, 7) for n in (20, 20, 36))
        q, k, v = (np.moveaxis(x, 1, 3) for x in (q, k, v))
        self.close(flash_attn_func(q, k, v)[0], attention(
            *(exact(x[0]) for x in (q, k, v)))[0], "f16")

    def test_varlen(self):
        for index in np.int32, np.int64, np.int32:
            opts = flash_options()
            lengths_q, lengths_k = RNG.integers(0, 30, (2, 3))
            cu_q, cu_k = (np.cumsum([0, *n], dtype=index)
                          for n in (lengths_q, lengths_k))
            q = make("bf16", cu_q[-1], 4, 64)
            k, v = (make("bf16", cu_k[-1], 2, 64) for _ in "kv")
            o, lse = flash_attn_varlen_func(
                q, k, v, cu_q, cu_k, int(max(lengths_q)), int(max(lengths_k)),
                **opts, return_lse=True)
            for b in range(3):
                of_q, of_k = (slice(c[b], c[b + 1]) for c in (cu_q, cu_k))
                e, el = attention(*map(exact, (q[of_q], k[of_k], v[of_k])),
                                  **reference_options(opts))
                self.close(o[of_q], e, "bf16", opts)
                self.lse_close(lse[:, of_q], el)

    def pages(self, batch, most, page, index=np.int32):
        """K, V, a table and what they hold of each sequence."""
        count = -(-most // page)
        table = RNG.permutation(batch * count + 2)[:batch * count]
        table = table.reshape(batch, count).astype(index)
        k, v = (make("bf16", batch * count + 2, page, 2, 64) for _ in "kv")
        return k, v, table, [
            (k[table[b]].reshape(-1, 2, 64), v[table[b]].reshape(-1, 2, 64))
            for b in range(batch)]

    def test_varlen_pages(self):
        k, v, table, _ = self.pages(2, 40, 16)
        held = [(k[t].reshape(-1, 2, 64), v[t].reshape(-1, 2, 64)) for t in table]
        cu_q, cu_k = np.array([0, 5, 9], np.int32), np.array([0, 33, 50], np.int32)
        q = make("bf16", 9, 4, 64)
        results = [flash_attn_varlen_func(q, k, v, cu_q, cu, 5, 33, causal=True,
                                          block_table=table, seqused_k=used)
                   for cu, used in ((cu_k, None), (None, np.diff(cu_k)))]
        np.testing.assert_array_equal(*results)
        for b, n in enumerate((33, 17)):
            rows = slice(cu_q[b], cu_q[b + 1])
            self.close(results[0][rows], attention(
                exact(q[rows]), *(exact(x[:n]) for x in held[b]),
                causal=True)[0], "bf16")

    def test_varlen_of_few_rows(self):
        """One artifact: the longest query chooses the kernel."""
        k, v, table, held = self.pages(3, 70, 16)
        used = np.array([33, 70, 9], np.int32)
        for lengths in ([1, 1, 1], [3, 0, 8], [1, 33, 0]):
            cu_q = np.cumsum([0, *lengths], dtype=np.int32)
            q = make("bf16", cu_q[-1], 12, 64)
            o = flash_attn_varlen_func(q, k, v, cu_q, None, max(lengths), 70,
                                       causal=True, block_table=table,
                                       seqused_k=used)
            for b in range(3):
                rows = slice(cu_q[b], cu_q[b + 1])
                self.close(o[rows], attention(
                    exact(q[rows]), *(exact(x[:used[b]]) for x in held[b]),
                    causal=True)[0], "bf16", lengths)

    def test_tree(self):
        """New tokens that see any of each other."""
        k, v, table, held = self.pages(3, 70, 16)
        used = np.array([33, 70, 9], np.int32)
        cu_q = np.array([0, 5, 6, 14], np.int32)
        words = RNG.integers(0, 256, (3, 8)).astype(np.int32)
        q = make("bf16", 14, 4, 64)
        o = kvbuf.attention(q, k, v, q_offsets=cu_q, longest_query=8,
                            page_table=table, lengths=used, tree=words)
        for b, n in enumerate(used):
            rows = slice(cu_q[b], cu_q[b + 1])
            count = rows.stop - rows.start
            count_old = n - count
            seen = np.ones((count, n), bool)
            seen[:, count_old:] = words[b, :count, None] >> np.arange(count) & 1
            x, y, z = exact(q[rows]), *(exact(h[:n]) for h in held[b])
            y, z = (np.repeat(h, 2, axis=1) for h in (y, z))
            s = np.where(seen, np.einsum("ihd,jhd->hij", x, y) / 8, -np.inf)
            top = s.max(-1, keepdims=True)
            p = np.exp(s - np.where(np.isfinite(top), top, 0))
            total = np.maximum(p.sum(-1, keepdims=True), 1e-300)
            self.close(o[rows], np.einsum("hij,jhd->ihd", p / total, z), "bf16")
        with self.assertRaisesRegex(ValueError, "tree has shape"):
            kvbuf.attention(q, k, v, q_offsets=cu_q, longest_query=9,
                            page_table=table, lengths=used, tree=words)

    def test_kvcache(self):
        """Random caches, with and without new rows, rotation, padding."""
        for step in range(8):
            batch, rows, most, new = 2, int(RNG.integers(1, 6)), 48, 0
            opts = flash_options()
            paged = bool(step % 2)
            index = np.int64 if step == 3 else np.int32
            more, leftpad = {}, np.zeros(batch, index)
            if paged:
                k_cache, v_cache, table, _ = self.pages(batch, most, 16, index)
                more["block_table"] = table

                def rows_of(cache, b):
                    return cache[table[b]].reshape(-1, 2, 64)
            else:
                k_cache, v_cache = (make("bf16", 4, most, 2, 64) for _ in "kv")
                slots = np.arange(batch)
                if step % 4:
                    slots = RNG.permutation(4)[:batch].astype(index)
                    more["cache_batch_idx"] = slots

                def rows_of(cache, b):
                    return cache[slots[b]]
            lengths = RNG.integers(8, 30, batch).astype(index)
            if step in (2, 4):
                leftpad = RNG.integers(0, 8, batch).astype(index)
                more["cache_leftpad"] = leftpad
            k = v = None
            q = make("bf16", batch, rows, 4, 64)
            before = [(rows_of(k_cache, b).copy(), rows_of(v_cache, b).copy())
                      for b in range(batch)]
            exact_q = exact(q)
            if step >= 3:
                new = int(RNG.integers(1, 5))
                k, v = (make("bf16", batch, new, 2, 64) for _ in "kv")
                more |= {"k": k, "v": v}
            exact_k = None if k is None else exact(k)
            if step >= 5:
                cos, sin = (make("bf16", 64, 16) for _ in "cs")
                interleaved = bool(step % 3)
                more |= {"rotary_cos": cos, "rotary_sin": sin,
                         "rotary_interleaved": interleaved}
                moving = opts.get("causal") or opts.get(
                    "window_size", (-1, -1)) != (-1, -1)
                for b in range(batch):
                    at = lengths[b] + np.arange(rows) * bool(moving)
                    exact_q[b] = rotated(exact_q[b], exact(cos), exact(sin), at,
                                         interleaved)
                    exact_k[b] = rotated(exact_k[b], exact(cos), exact(sin),
                                         lengths[b] + np.arange(new), interleaved)
            o, lse = flash_attn_with_kvcache(
                q, k_cache, v_cache, cache_seqlens=lengths, **more, **opts,
                return_softmax_lse=True, num_splits=int(RNG.integers(3)))
            for b in range(batch):
                n = lengths[b]
                keys, values = (exact(x) for x in before[b])
                if k is not None:
                    keys[n:n + new], values[n:n + new] = exact_k[b], exact(v[b])
                    # Only the new rows were written, and with what was given.
                    np.testing.assert_allclose(
                        exact(rows_of(k_cache, b)), keys, rtol=2**-8, atol=1e-5)
                    np.testing.assert_array_equal(
                        exact(rows_of(v_cache, b)), values)
                e, el = attention(exact_q[b], keys[leftpad[b]:n + new],
                                  values[leftpad[b]:n + new],
                                  **reference_options(opts))
                self.close(o[b], e, "bf16", (step, opts, list(more)))
                np.testing.assert_allclose(lse[b], el, rtol=1e-5, atol=(
                    3e-2 if "rotary_cos" in more else 1e-4))

    def test_kvcache_lengths(self):
        """An int, none, and ragged queries."""
        k_cache, v_cache = (make("bf16", 3, 24, 2, 64) for _ in "kv")
        q = make("bf16", 2, 3, 4, 64)
        for given, n in ((7, 7), (None, 24)):
            o = flash_attn_with_kvcache(q, k_cache, v_cache, cache_seqlens=given,
                                        causal=True)
            for b in range(2):
                self.close(o[b], attention(*(exact(x) for x in (
                    q[b], k_cache[b, :n], v_cache[b, :n])), causal=True)[0],
                    "bf16")
        ragged = make("bf16", 4, 4, 64)
        o = flash_attn_with_kvcache(
            ragged, k_cache, v_cache, cache_seqlens=np.array([5, 20], np.int32),
            cu_seqlens_q=np.array([0, 3, 4], np.int32), max_seqlen_q=3,
            causal=True)
        for b, n, rows in ((0, 5, slice(0, 3)), (1, 20, slice(3, 4))):
            self.close(o[rows], attention(*(exact(x) for x in (
                ragged[rows], k_cache[b, :n], v_cache[b, :n])),
                causal=True)[0], "bf16")

    def test_kvcache_sizes(self):
        """Head sizes that kernels do not have: the cache is copied, the new rows
        are written to the caller's."""
        k_cache, v_cache = make("f16", 2, 16, 2, 59), make("f16", 2, 16, 2, 40)
        q, k = make("f16", 2, 1, 4, 59), make("f16", 2, 1, 2, 59)
        v = make("f16", 2, 1, 2, 40)
        o = flash_attn_with_kvcache(q, k_cache, v_cache, k, v, cache_seqlens=9)
        for b in range(2):
            np.testing.assert_array_equal(k_cache[b, 9], k[b, 0])
            self.close(o[b], attention(*(exact(x) for x in (
                q[b], k_cache[b, :10], v_cache[b, :10])))[0], "f16")

    def test_sdpa(self):
        for _ in range(4):
            batch, rows, keys = RNG.integers(1, 3), *RNG.integers(1, 30, 2)
            causal, group = maybe(), maybe()
            q = make("f16", batch, 4, rows, 64)
            k, v = (make("f16", batch, 2 if group else 4, keys, 64)
                    for _ in "kv")
            o = _flash.sdpa(q, k, v, None, 0.0, causal, None, group, None)
            for b in range(batch):
                e, _ = attention(*(exact(x[b]).swapaxes(0, 1)
                                   for x in (q, k, v)), causal=causal,
                                 top_left=True)
                self.close(o[b], e.swapaxes(0, 1), "f16", (rows, keys, causal))

    def test_sdpa_shapes(self):
        q, k, v = (make("f16", 2, 1, 4, n, 64) for n in (9, 12, 12))
        whole = _flash.sdpa(q, k, v, None, 0.0, False, 0.2, False, None)
        self.assertEqual(whole.shape, q.shape)
        flat = _flash.sdpa(q[0, 0], k[0, 0], v[0, 0], None, 0.0, False, 0.2,
                           False, None)
        np.testing.assert_array_equal(flat, whole[0, 0])
        one = _flash.sdpa(q[1, 0, 2], k[1, 0, 2], v[1, 0, 2], None, 0.0, False,
                          0.2, False, None)
        np.testing.assert_array_equal(one, whole[1, 0, 2])


class Refused(Case):
    """What is not computed, by the argument's name."""

    def setUp(self):
        self.q, self.k, self.v = (make("f16", 2, 5, h, 64) for h in (4, 2, 2))
        self.cache = [make("f16", 3, 16, 2, 64) for _ in "kv"]

    def refused(self, kind, pattern, function, *arguments, **options):
        with self.assertRaisesRegex(kind, pattern):
            function(*arguments, **options)

    def test_dense(self):
        slopes = np.ones(4, np.float32)
        for kind, pattern, options in (
                (NotImplementedError, "^dropout_p is 0.5", {"dropout_p": 0.5}),
                (ValueError, r"^alibi_slopes has shape \(3,\); expected \(4,\), "
                 r"or \(2, 4\)", {"alibi_slopes": slopes[:3]}),
                (ValueError, "^alibi_slopes has type float16; expected float32",
                 {"alibi_slopes": slopes.astype(np.float16)}),
                (ValueError, "^window_size is 3; expected",
                 {"window_size": 3}),
                (ValueError, "^softcap is 'a'", {"softcap": "a"}),
                (ValueError, "^scale is 'b'", {"softmax_scale": "b"}),
                (ValueError, r"^sink has shape \(3,\)",
                 {"sink": np.ones(3, np.float32)}),
                (ValueError, "^out has shape",
                 {"out": np.empty((2, 5, 4, 32), np.float16)})):
            self.refused(kind, pattern, flash_attn_func, self.q, self.k, self.v,
                         **options)
        f = flash_attn_func
        self.refused(ValueError, "^q has type float32; expected float16 or "
                     "bfloat16", f, *(x.astype(np.float32) for x in
                                      (self.q, self.k, self.v)))
        self.refused(ValueError, "^k has type uint16", f, self.q,
                     self.k.view(np.uint16), self.v)
        self.refused(ValueError, "^k has head size 32", f, self.q,
                     self.k[..., :32], self.v)
        self.refused(ValueError, "^v has shape", f, self.q, self.k,
                     self.v[:, :3])
        self.refused(ValueError, "^k has a batch of 1", f, self.q, self.k[:1],
                     self.v[:1])
        self.refused(ValueError, "^q has 3 heads, which are no multiple of the 2",
                     f, self.q[:, :, :3], self.k, self.v)
        self.refused(ValueError, "^q has 3 dimensions; expected 4", f, self.q[0],
                     self.k, self.v)

    def test_masked_arrays(self):
        """Their masks are not in their memory."""
        bare = {"q": self.q, "k": self.k, "v": self.v,
                "bias": np.zeros((5, 5), np.float16), "mask": np.ones((5, 5), bool)}
        for name, x in bare.items():
            hidden = np.ma.masked_array(x, np.zeros(x.shape, bool))
            self.refused(NotImplementedError, f"^{name} is a masked array",
                         kvbuf.attention, **{**bare, name: hidden})
        heads = [x.swapaxes(1, 2) for x in (self.q, self.q, self.q)]
        for i, name in enumerate(("query", "key", "value")):
            self.refused(NotImplementedError, f"^{name} is a masked array",
                         _flash.sdpa, *heads[:i], np.ma.masked_array(heads[i]),
                         *heads[i + 1:], None, 0.0, False, None, False, None)

    def test_no_tensors(self):
        f, given = kvbuf.attention, {"q": self.q, "k": self.k, "v": self.v}
        lengths = np.full(2, 4, np.int32)
        for name, more in (
                ("q", {"q": [1.0]}), ("k", {"k": [1.0]}), ("v", {"v": [1.0]}),
                ("sink", {"sink": [1.0] * 4}), ("q_offsets", {"q_offsets": [0, 2]}),
                ("alibi_slopes", {"alibi_slopes": [1.0] * 4}),
                ("page_table", {"page_table": [[0]] * 2, "lengths": lengths}),
                ("lengths", {"slots": lengths, "lengths": [4] * 2})):
            arguments = given | more
            if name == "q_offsets":
                arguments["q"] = self.q[0]
            self.refused(TypeError, f"^{name} is of type list; expected a tensor", f,
                         **arguments)
        self.refused(TypeError, "^q is of type NoneType; expected a tensor", f, None,
                     self.k, self.v)

    def test_cache(self):
        f, q = flash_attn_with_kvcache, self.q
        table = np.zeros((2, 2), np.int32)
        lengths = np.full(2, 4, np.int32)
        new = {"k": self.k, "v": self.v}
        for kind, pattern, options in (
                (ValueError, "^k and v go together", {"k": self.k}),
                (ValueError, "^cache_seqlens is None", new),
                (ValueError, "^rotary_cos is given without k and v",
                 {"rotary_cos": q, "rotary_sin": q}),
                (ValueError, "^rotary_cos and rotary_sin", {"rotary_cos": q}),
                (NotImplementedError, "^cache_batch_idx is given with block_table",
                 {"cache_batch_idx": lengths, "block_table": table}),
                (NotImplementedError, "^cache_leftpad is given with block_table",
                 {"cache_leftpad": lengths, "block_table": table}),
                (ValueError, r"^cache_seqlens has shape \(1,\)",
                 {"cache_seqlens": lengths[:1]}),
                (ValueError, "^cache_seqlens has type uint8",
                 {"cache_seqlens": lengths.astype(np.uint8)}),
                (ValueError, "^block_table has type float32; expected int32 or int64",
                 {"block_table": table.astype(np.float32)}),
                (ValueError, "^num_splits is -1", {"num_splits": -1}),
                (ValueError, "^alibi_slopes has shape",
                 {"alibi_slopes": np.ones(5, np.float32)})):
            self.refused(kind, pattern, f, q, *self.cache, **options)

    def test_varlen_and_sdpa(self):
        cu = np.array([0, 5], np.int32)
        q, k, v = self.q[0], self.k[0], self.v[0]
        f = flash_attn_varlen_func
        # Bounds that are None follow from the tensors, as flash-attn 4's do.
        np.testing.assert_array_equal(f(q, k, v, cu, cu, None, None),
                                      f(q, k, v, cu, cu, 5, 5))
        self.refused(ValueError, "^cu_seqlens_k is None", f, q, k, v, cu, None,
                     5, 5)
        self.refused(NotImplementedError, "^seqused_k", f, q, k, v, cu, cu, 5, 5,
                     seqused_k=cu[1:])
        self.refused(ValueError, r"^k_offsets has shape \(3,\)", f, q, k, v, cu,
                     np.array([0, 2, 5], np.int32), 5, 5)
        s = _flash.sdpa
        self.refused(ValueError, r"^attn_mask has shape \(3, 4\); expected one "
                     r"that broadcasts to \(2, 5, 4, 4\)", s, self.q,
                     self.q, self.q, np.ones((3, 4), bool), 0.0, False, None,
                     False, None)
        self.refused(ValueError, "^attn_mask has type uint8; expected booleans",
                     s, self.q, self.q, self.q, np.ones((4, 4), np.uint8), 0.0,
                     False, None, False, None)
        f = kvbuf.attention
        self.refused(NotImplementedError, "^a bias or a mask by a tensor is given",
                     f, q, k, v, q_offsets=cu, k_offsets=cu,
                     mask=np.ones((5, 5), bool))
        self.refused(ValueError, r"^bias has shape \(3, 1\); expected one that "
                     r"broadcasts to \(2, 4, 5, 5\)", f, self.q, self.k, self.v,
                     bias=np.ones((3, 1), np.float32))
        self.refused(ValueError, "^attn_mask is given and is_causal", s, self.q,
                     self.q, self.q, np.ones((4, 4), bool), 0.0, True, None,
                     False, None)
        heads = self.q.swapaxes(1, 2), self.k.swapaxes(1, 2)
        self.refused(ValueError, "^query has 4 heads, and key 2", s, heads[0],
                     heads[1], heads[1], None, 0.0, False, None, False, None)


class Scores(Case):
    """Slopes, biases and masks by tensors."""

    def setUp(self):
        self.q, self.k, self.v = (make("bf16", 2, n, h, 64)
                                  for n, h in ((9, 4), (21, 2), (21, 2)))

    def check(self, o, lse, what=None, **options):
        for b in range(2):
            mine = {n: x[b] for n, x in options.items() if n != "causal"}
            e, el = attention(*map(exact, (self.q[b], self.k[b], self.v[b])),
                              causal=options.get("causal", False), **mine)
            self.close(o[b], e, "bf16", what)
            if lse is not None:
                self.lse_close(lse[b], el)

    def test_slopes(self):
        for shape in (4,), (2, 4):
            slopes = RNG.random(shape, np.float32)
            for causal in True, False:
                o, lse = flash_attn_func(self.q, self.k, self.v, causal=causal,
                                         alibi_slopes=slopes, return_lse=True)
                self.check(o, lse, causal=causal,
                           slopes=np.broadcast_to(slopes, (2, 4)))

    def test_slopes_of_ragged(self):
        """The longest query is said, which kernels of own scores do not ask
        for."""
        slopes = RNG.random(4, np.float32)
        cu_q, cu_k = (np.array([0, *n], np.int32).cumsum(dtype=np.int32)
                      for n in ((7, 0, 5), (9, 3, 18)))
        q, k, v = (make("bf16", n, h, 64) for n, h in ((12, 4), (30, 2), (30, 2)))
        o, lse = flash_attn_varlen_func(q, k, v, cu_q, cu_k, 7, 18, causal=True,
                                        alibi_slopes=slopes, return_lse=True)
        for a, b, c, d in zip(cu_q, cu_q[1:], cu_k, cu_k[1:]):
            e, el = attention(exact(q[a:b]), exact(k[c:d]), exact(v[c:d]),
                              causal=True, slopes=slopes)
            self.close(o[a:b], e, "bf16", (a, b))
            self.lse_close(lse[:, a:b], el)

    def test_prefix(self):
        """A causal flag a sequence, over pages, and prefixes whose tokens see each
        other, ragged and dense, one row and many; with a window."""
        pages = [make("bf16", 12, 16, 2, 64) for _ in "kv"]
        table = RNG.permutation(12).reshape(3, 4).astype(np.int32)
        lengths, rows = np.array([50, 33, 60], np.int32), [1, 33, 40]
        at = np.array([0, *rows], np.int32).cumsum(dtype=np.int32)
        q = make("bf16", at[-1], 4, 64)
        keys = [[exact(x[table[b]]).reshape(-1, 2, 64)[:n] for x in pages]
                for b, n in enumerate(lengths)]

        def check(o, prefixes, left=-1):
            for b, n in enumerate(lengths):
                place = np.arange(rows[b])[:, None] + n - rows[b]
                j = np.arange(n)[None]
                keep = (j <= place) | (j < prefixes[b])
                if left >= 0:
                    keep &= abs(j - place) <= left
                e, _ = attention(exact(q[at[b]:at[b + 1]]), *keys[b], keep=keep)
                self.close(o[at[b]:at[b + 1]], e, "bf16", (b, prefixes, left))

        flags = np.array([False, True, False])
        for left in -1, 9:
            o = _flash.varlen(
                q, *pages, at, None, 40, 60, 0.0, None, True, (left, left), 0.0,
                None, False, table, lengths, False, None, None, None,
                dynamic_causal=flags)
            check(o, np.where(flags, 0, 100), left)
        prefixes = np.array([2**31 - 1, 5, 25], np.int32)
        check(kvbuf.attention(q, *pages, q_offsets=at, page_table=table,
                              lengths=lengths, causal=True, prefix=prefixes), prefixes)
        with self.assertRaisesRegex(ValueError, "^prefix is given, and causal is false"):
            kvbuf.attention(q, *pages, q_offsets=at, page_table=table,
                            lengths=lengths, prefix=prefixes)
        prefixes = np.array([4, 0], np.int64)
        o = kvbuf.attention(self.q, self.k, self.v, causal=True, prefix=prefixes)
        place, j = np.arange(9)[:, None] + 12, np.arange(21)[None]
        self.check(o, None, keep=(j <= place) | (j < prefixes[:, None, None]))

    def test_alone(self):
        """Small ragged batches of which nothing is known have one kernel, which
        computes short sequences, too, as have those of which no sequence is short."""
        def problem(keys, batch, longest=40, rows=64, **more):
            at = np.zeros(batch + 1, np.int32)
            q, k = np.zeros((rows, 8, 64), np.uint16), np.zeros((keys, 2, 64), np.uint16)
            return _attention.build(
                _attention._ops.of(q), q, k, k, q_offsets=at, k_offsets=at,
                longest=longest, **more).problem

        self.assertTrue(problem(64, 2).alone)
        self.assertTrue(problem(1024, 13, None).alone)
        for other in (problem(1025, 2), problem(64, 14), problem(64, 2, 8),
                      problem(64, 2, shortest=9), problem(64, 2, batch_invariant=True)):
            self.assertFalse(other.alone)
        # The shortest of three has 220 - 2 * 93 rows; with one more it may have 32.
        self.assertTrue(problem(5000, 1, 64).alone)
        self.assertTrue(problem(5000, 3, 93, 220).alone)
        self.assertFalse(problem(5000, 3, 94, 220).alone)
        q, k, v = (make("bf16", n, h, 64) for n, h in ((43, 4), (60, 2), (60, 2)))
        cu_q, cu_k = (np.array(n, np.int32) for n in ((0, 1, 41, 41, 42),
                                                      (0, 20, 60, 60, 60)))
        with unittest.mock.patch.object(_attention, "on_run") as seen:
            o = flash_attn_varlen_func(q, k, v, cu_q, cu_k, 40, 60, causal=True)
        self.assertTrue(seen.call_args[0][0].problem.alone)
        for a, b, c, d in zip(cu_q, cu_q[1:], cu_k, cu_k[1:]):
            e, _ = attention(exact(q[a:b]), exact(k[c:d]), exact(v[c:d]), causal=True)
            self.close(o[a:b], e, "bf16", (a, b))
        # What looks as if no sequence were short: the rows behind the last are nobody's.
        q, k, v = (make("bf16", n, h, 64) for n, h in ((80, 4), (1030, 2), (1030, 2)))
        cu_q = np.array([0, 40, 41], np.int32)
        with unittest.mock.patch.object(_attention, "on_run") as seen:
            o = flash_attn_varlen_func(q, k, v, cu_q, cu_k[:3], 40, 60, causal=True)
        self.assertTrue(seen.call_args[0][0].problem.alone)
        for a, b, c, d in zip(cu_q, cu_q[1:], cu_k, cu_k[1:]):
            e, _ = attention(exact(q[a:b]), exact(k[c:d]), exact(v[c:d]), causal=True)
            self.close(o[a:b], e, "bf16", (a, b))

    def test_slopes_of_a_cache(self):
        slopes = RNG.random(4, np.float32)
        pages = [make("bf16", 6, 8, 2, 64) for _ in "kv"]
        table = RNG.permutation(6).reshape(2, 3).astype(np.int32)
        lengths = np.array([21, 10], np.int32)
        o = flash_attn_with_kvcache(self.q, *pages, cache_seqlens=lengths,
                                    block_table=table, causal=True,
                                    alibi_slopes=slopes)
        for b, n in enumerate(lengths):
            k, v = (exact(x[table[b]]).reshape(24, 2, 64)[:n] for x in pages)
            e, _ = attention(exact(self.q[b]), k, v, causal=True, slopes=slopes)
            self.close(o[b], e, "bf16", n)

    def test_masks(self):
        rows, keys = 9, 21
        heads = [x.swapaxes(1, 2) for x in (self.q, self.k, self.v)]
        with self.assertRaisesRegex(ValueError, "of two dimensions or more"):
            _flash.sdpa(*heads, np.ones(keys, bool), 0.0, False, None, True,
                        None)
        for shape in ((rows, keys), (2, 1, rows, keys), (2, 1, 1, keys),
                      (4, rows, 1), (1, 4, 1, keys)):
            whole = 2, 4, rows, keys
            keep = RNG.random(shape) > 0.4
            o = _flash.sdpa(*heads, keep, 0.0, False, None, True, None)
            self.check(o.swapaxes(1, 2), None, shape,
                       keep=np.broadcast_to(keep, whole))
            bias = RNG.standard_normal(shape, np.float32)
            bias[RNG.random(shape) > 0.8] = -np.inf
            # The types that torch takes: float32, and the query's.
            with self.assertRaisesRegex(ValueError, "attn_mask has type float16"):
                _flash.sdpa(*heads, bias.astype(np.float16), 0.0, False, None,
                            True, None)
            for x in bias, (bias.view(np.uint32) >> 16).astype(np.uint16):
                o = _flash.sdpa(*heads, x, 0.0, False, None, True, None)
                self.check(o.swapaxes(1, 2), None, shape,
                           bias=np.broadcast_to(exact(x), whole))

    def test_integers_as_masks(self):
        """What is not 0 shows a key, and be it in the upper half of 64 bits."""
        keep = RNG.random((2, 1, 9, 21)) > 0.4
        for dtype, shown in ((np.int32, (1, -2**31)),
                             (np.int64, (1, 2**32, -2**63))):
            mask = np.where(keep, RNG.choice(shown, keep.shape), 0).astype(dtype)
            o = kvbuf.attention(self.q, self.k, self.v, mask=mask)
            self.check(o, None, keep=np.broadcast_to(keep, (2, 4, 9, 21)))
        with self.assertRaisesRegex(ValueError, "^mask has type int8; expected "
                                    "booleans, int32 or int64$"):
            kvbuf.attention(self.q, self.k, self.v, mask=keep.astype(np.int8))

    def test_together(self):
        slopes = RNG.random(4, np.float32)
        bias = RNG.standard_normal((4, 1, 21), np.float32)
        keep = RNG.random((2, 1, 9, 21)) > 0.3
        o, lse = kvbuf.attention(
            self.q, self.k, self.v, causal=True, alibi_slopes=slopes, bias=bias,
            mask=keep, return_lse=True)
        whole = 2, 4, 9, 21
        self.check(o, lse, causal=True, slopes=np.broadcast_to(slopes, (2, 4)),
                   bias=np.broadcast_to(bias, whole),
                   keep=np.broadcast_to(keep, whole))


class Own(Case):
    """kvbuf.attention."""

    def test_random(self):
        for _ in range(4):
            rows, keys = RNG.integers(1, 30, 2)
            q, k, v = (make("bf16", n, h, 64)
                       for n, h in ((rows, 4), (keys, 2), (keys, 2)))
            sink = RNG.standard_normal(4).astype(np.float32)
            o, lse = kvbuf.attention(q[None], k[None], v[None], sink=sink,
                                     window=(5, None), causal=True,
                                     return_lse=True)
            e, el = attention(*map(exact, (q, k, v)), causal=True,
                              window=(5, -1), sink=sink)
            self.close(o[0], e, "bf16")
            self.lse_close(lse[0], el)

    def test_caches(self):
        q = make("bf16", 5, 4, 64)
        at = np.array([0, 2, 5], np.int32)
        pages = [make("bf16", 5, 16, 2, 64) for _ in "kv"]
        table = np.array([[4, 0], [2, 1]], np.int32)
        cached = np.array([18, 3], np.int32)
        for count in "cached", "all":
            lengths = cached if count == "cached" else cached + [2, 3]
            o = kvbuf.attention(q, *pages, q_offsets=at, page_table=table,
                                lengths=lengths.astype(np.int32),
                                lengths_count=count, causal=True,
                                longest_query=3)
            for b, n in enumerate((20, 6)):
                held = [exact(x[table[b]].reshape(-1, 2, 64)[:n]) for x in pages]
                rows = slice(at[b], at[b + 1])
                self.close(o[rows], attention(exact(q[rows]), *held,
                                              causal=True)[0], "bf16")

    def test_float32(self):
        q, k, v = RNG.standard_normal((3, 1, 6, 2, 64)).astype(np.float32)
        with self.assertRaisesRegex(ValueError, "^q has type float32"):
            kvbuf.attention(q, k, v)
        for name, dtype in ("bfloat16", "bf16"), ("float16", "f16"):
            out = np.empty_like(q)
            o = kvbuf.attention(q, k, v, convert=name, out=out)
            self.assertIs(o, out)
            np.testing.assert_allclose(
                o[0], attention(q[0], k[0], v[0])[0], rtol=0,
                atol=2 * LIMIT[dtype])

    def test_expanded_heads(self):
        """Heads of k and v that are one in memory are one of the problem."""
        seen = []
        q, one = make("bf16", 2, 5, 4, 64), make("bf16", 2, 2, 9, 1, 64)
        k, v = (np.broadcast_to(x, (2, 9, 4, 64)) for x in one)
        with unittest.mock.patch.object(_attention, "on_run", seen.append):
            apart = kvbuf.attention(q, k.copy(), v.copy())
            for keys, values in (k, v), (k.copy(), v), (k[..., :3, :], v[..., :3, :]):
                if keys.shape[-2] == 3:
                    with self.assertRaisesRegex(ValueError, "no multiple of the 3"):
                        kvbuf.attention(q, keys, values)
                else:
                    self.close(kvbuf.attention(q, keys, values), exact(apart), "bf16")
        self.assertEqual([x.problem.kv_heads for x in seen], [4, 1, 4])

    def test_tables_keep_their_type(self):
        """Of a table and lengths of two types the lengths become the table's."""
        seen, k = [], make("bf16", 5, 4, 2, 64)
        q, v = make("bf16", 2, 1, 4, 64), make("bf16", 5, 4, 2, 64)
        lengths = np.array([7, 3])
        for kind, other in (np.int64, np.int32), (np.int32, np.int64):
            table = np.array([[3, 1], [0, 4]], kind)
            with unittest.mock.patch.object(_attention, "on_run", seen.append):
                o = flash_attn_with_kvcache(q, k, v, block_table=table,
                                            cache_seqlens=lengths.astype(other))
            self.assertIs(seen[-1].tensors["k_table"], table)
            self.assertEqual(seen[-1].tensors["k_lengths"].dtype, kind)
            for b, n in enumerate(lengths):
                held = [exact(x[table[b]].reshape(-1, 2, 64)[:n]) for x in (k, v)]
                self.close(o[b], attention(exact(q[b]), *held)[0], "bf16")

    def test_head_size_of_values(self):
        """V's own head size is the kernel's: nothing is copied."""
        seen = []
        self.addCleanup(setattr, _attention, "on_run", _attention.on_run)
        _attention.on_run = seen.append
        for rows, size, value_size in (9, 96, 64), (1, 64, 96), (9, 80, 112):
            q, k = make("bf16", 1, rows, 4, size), make("bf16", 1, 30, 2, size)
            v = make("bf16", 1, 30, 2, value_size)
            o, lse = flash_attn_func(q, k, v, causal=True, return_lse=True)
            self.assertEqual(o.shape, (1, rows, 4, value_size))
            e, el = attention(*(exact(x[0]) for x in (q, k, v)), causal=True)
            self.close(o[0], e, "bf16", (size, value_size))
            self.lse_close(lse[0], el)
            problem, tensors = seen[-1].problem, seen[-1].tensors
            self.assertEqual((problem.head_size, problem.v_head_size),
                             (size, value_size))
            self.assertIsNone(seen[-1].finish)
            self.assertTrue(np.shares_memory(tensors["v"], v))
        # Pages, and a function with another layout of its tensors.
        k, v = (make("bf16", 3, 16, 2, n) for n in (96, 64))
        q, table = make("bf16", 1, 9, 4, 96), np.array([[2, 0]], np.int32)
        o = flash_attn_with_kvcache(q, k, v, block_table=table, causal=True,
                                    cache_seqlens=np.array([20], np.int32))
        held = (exact(x[table[0]].reshape(-1, *x.shape[2:])[:20]) for x in (k, v))
        self.close(o[0], attention(exact(q[0]), *held, causal=True)[0], "bf16")

    def test_type_of_the_output(self):
        limits = {np.float32: 1e-4, np.float16: 2.0 ** -9, np.uint16: 2e-2}
        for given, size, value_size in ("bf16", 64, 64), ("f16", 64, 36):
            q, k = (make(given, 1, 9, 2, size) for _ in "qk")
            v = make(given, 1, 9, 2, value_size)
            e, _ = attention(*(exact(x[0]) for x in (q, k, v)))
            # What rounding P may do to a row of numbers of these sizes.
            most = float(np.abs(exact(v)).max())
            for kind, limit in limits.items():
                out = np.empty((1, 9, 2, value_size), kind)
                self.assertIs(kvbuf.attention(q, k, v, out=out), out)
                limit += (2.0 ** -8 if given == "bf16" else 2.0 ** -11) * most
                np.testing.assert_allclose(exact(out)[0], e, rtol=0, atol=limit)
                if kind == np.float32:
                    self.assertFalse((out == out.astype(np.float16)).all())
        with self.assertRaisesRegex(
                ValueError, "out has type int32; expected float16 or bfloat16 or "
                "float32"):
            kvbuf.attention(q, k, k, out=np.empty(q.shape, np.int32))
        with self.assertRaisesRegex(ValueError, "out has shape .*expected"):
            kvbuf.attention(q, k, v, out=np.empty_like(q))

    def test_out_shares_no_memory_with_the_cache(self):
        packed = make("f16", 2, 9, 4, 2, 64)
        q, k, v, o = (packed[:, :, i] for i in range(4))
        e, _ = attention(*(exact(x[1]) for x in (q, k, v)))
        # Rows between those of K and V are of their own.
        self.close(kvbuf.attention(q, k, v, out=o)[1], e, "f16")
        wanted = np.copy(o)
        own = np.empty_like(q)
        kvbuf.attention(q, k, v, out=own)
        np.testing.assert_array_equal(own, wanted)
        whole = np.zeros((3, 9, 2, 64), np.float16)
        # Also where a plan for such tensors is there, and where they share a row.
        for _ in range(2):
            kvbuf.attention(q, whole[1:], v, out=np.empty((2, 9, 2, 64), np.float16))
            for out, what in ((k, "k"), (v, "v")):
                with self.assertRaisesRegex(
                        kvbuf.Error, f"tensor 'o' shares memory with tensor '{what}'"):
                    kvbuf.attention(q, k, v, out=out)
            with self.assertRaisesRegex(kvbuf.Error, "shares memory"):
                kvbuf.attention(q, whole[1:], v, out=whole[:2])
        np.testing.assert_array_equal(wanted, o)

    def test_out_shares_no_memory_with_what_scores_are_made_of(self):
        q, k, v = (make("f16", 1, rows, 2, 64) for rows in (8, 64, 64))
        alibi = np.array([.5, .25], np.float32)
        bias, lse = make("f16", 1, 2, 8, 64), np.zeros((1, 2, 8), np.float32)
        for scores in ({}, {"alibi_slopes": alibi}, {"bias": bias},
                       {"mask": bias > 0}):
            for what, x in (("k", k), ("v", v), ("bias", bias), ("lse", lse)):
                if what == "bias" and "bias" not in scores:
                    continue
                out = np.zeros(q.shape, np.float16) if what == "lse" else (
                    x.ravel()[:q.size].reshape(q.shape))
                own = out.view(np.float32).ravel()[:16].reshape(lse.shape)
                with self.assertRaisesRegex(
                        kvbuf.Error, "^tensor 'o' shares memory with tensor "
                        f"'{what}', which is .*; expected memory of its own$"):
                    kvbuf.attention(q, k, v, out=out, **scores,
                                    lse=own if what == "lse" else None)

    def test_out_in_place_of_the_queries(self):
        """A block has read the rows that it writes, and no others."""
        both = make("f16", 1, 41, 2, 64)
        k, v = (make("f16", 1, 50, 2, 64) for _ in range(2))
        for slopes in None, np.array([.5, .25], np.float32):
            for rows in 1, 40:
                q = np.copy(both[:, :rows])
                wanted = kvbuf.attention(q, k, v, alibi_slopes=slopes)
                np.testing.assert_array_equal(
                    kvbuf.attention(q, k, v, out=q, alibi_slopes=slopes), wanted)
        with self.assertRaisesRegex(
                kvbuf.Error, "^tensor 'o' shares memory with tensor 'q', which is "
                "still read while it is written; expected memory of its own, or 'q' "
                "itself$"):
            kvbuf.attention(both[:, :40], k, v, out=both[:, 1:])

    def test_written_elements_have_addresses_of_their_own(self):
        q, k, v = (make("f16", 2, 5, 2, 64) for _ in range(3))
        e, _ = attention(*(exact(x[1]) for x in (q, k, v)))
        strided = np.lib.stride_tricks.as_strided
        one = make("f16", 1, 5, 2, 64)
        for out, stride, d in (
                (strided(one, q.shape, (0, 256, 128, 2)), 0, 0),
                (strided(one, q.shape, (256, 256, 128, 2)), 128, 0),
                (strided(one, q.shape, (1280, 128, 128, 2)), 64, 1),
                (strided(one, q.shape, (1280, 256, 64, 2)), 32, 2)):
            with self.assertRaisesRegex(
                    kvbuf.Error, f"tensor 'o' is written, and stride {stride} of "
                    f"dimension {d} makes elements overlap; expected an address "
                    "for each"):
                kvbuf.attention(q, k, v, out=out)
        # What is read may, and so may steps that nobody takes.
        read = strided(k[1:], k.shape, (0, *k.strides[1:]))
        room = make("f16", 2, 5, 3, 2, 64)
        for out in (room[:, :, 1], np.moveaxis(make("f16", 2, 2, 5, 64), 1, 2)):
            kvbuf.attention(q, read, v, out=out)
            self.close(out[1], e, "f16")
        first = strided(one, (1, 5, 2, 64), (-256, 256, 128, 2))
        kvbuf.attention(q[1:], k[1:], v[1:], out=first)
        self.close(first[0], e, "f16")

    def test_caches_that_cannot_be_changed(self):
        q, k, v = (make("f16", 2, 1, 2, 64) for _ in range(3))
        caches = [make("f16", 2, 9, 2, 64) for _ in range(2)]
        for n, name in enumerate(("k_cache", "v_cache")):
            given = [np.copy(c) for c in caches]
            given[n].setflags(write=False)
            with self.assertRaisesRegex(
                    ValueError, f"{name} is read-only; k and v are written to it"):
                flash_attn_with_kvcache(q, *given, k, v, cache_seqlens=3)
            for have, had in zip(given, caches):
                np.testing.assert_array_equal(have, had)
            flash_attn_with_kvcache(q, *given, cache_seqlens=3)

    def test_foreign(self):
        """Tensors of which DLPack alone is known."""
        class Only:
            def __init__(self, array):
                self.array, self.shape = array, array.shape

            def __dlpack__(self, **_):
                return self.array.__dlpack__()

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        q, k, v = (make("f16", 1, 6, 2, 64) for _ in "qkv")
        with self.assertRaisesRegex(NotImplementedError, "out cannot be"):
            kvbuf.attention(*map(Only, (q, k, v)))
        out = np.zeros_like(q)
        kvbuf.attention(*map(Only, (q, k, v)), out=Only(out))
        self.close(out[0], attention(*(exact(x[0]) for x in (q, k, v)))[0], "f16")

    def test_errors(self):
        q = make("f16", 1, 6, 2, 64)
        for pattern, options in (
                ("lengths go with", {"slots": np.zeros(1, np.int32)}),
                ("different caches", {"slots": q, "page_table": q}),
                ("lengths_count is 'some'", {"lengths_count": "some"}),
                ("convert is 'int8'", {"convert": "int8"})):
            with self.assertRaisesRegex(ValueError, pattern):
                kvbuf.attention(q, q, q, **options)


class Arrays(unittest.TestCase):
    def test_bf16(self):
        bits = np.arange(1 << 16, dtype=np.uint16)
        values = kvbuf.from_bf16(bits)
        back = kvbuf.to_bf16(values)
        number = ~np.isnan(values)
        np.testing.assert_array_equal(back[number], bits[number])
        self.assertTrue(np.isnan(kvbuf.from_bf16(back[~number])).all())
        # Ties go to the even code.
        self.assertEqual(kvbuf.to_bf16(np.float32(1 + 2**-8)), 0x3F80)
        self.assertEqual(kvbuf.to_bf16(np.float32(1 + 3 * 2**-8)), 0x3F82)

    def test_fp8(self):
        largest = {"e4m3": 448, "e5m2": 57344, "e4m3fnuz": 240,
                   "e5m2fnuz": 57344}
        codes = np.arange(256, dtype=np.uint8)
        for kind, most in largest.items():
            values = kvbuf.from_fp8(codes, kind)
            finite = np.isfinite(values)
            np.testing.assert_array_equal(
                kvbuf.to_fp8(values[finite], kind), codes[finite], kind)
            self.assertEqual(values[finite].max(), most)
            self.assertEqual(kvbuf.from_fp8(kvbuf.to_fp8([1e9], kind), kind), most)
            self.assertTrue(np.isnan(kvbuf.from_fp8(
                kvbuf.to_fp8([np.nan], kind), kind)))
            x = RNG.standard_normal(1000)
            near = np.abs(values[finite][None] - x[:, None]).min(1)
            np.testing.assert_allclose(
                np.abs(kvbuf.from_fp8(kvbuf.to_fp8(x, kind), kind) - x), near)
        with self.assertRaisesRegex(ValueError, "kind is 'e3m4'"):
            kvbuf.to_fp8([1], "e3m4")


if __name__ == "__main__":
    unittest.main()
