# REQUIRES: jax, torch
# RUN: env KVBUF_LIB_DIR=%lib JAX_PLATFORMS=cpu %python %s
# RUN: %if cuda %{ env KVBUF_LIB_DIR=%lib XLA_PYTHON_CLIENT_PREALLOCATE=false %python %s %}
"""The attention functions on JAX's arrays, on the emulator, and on a GPU where JAX has
one, against float64 and jax.nn.dot_product_attention. Needs JAX and torch, and is
skipped without."""

import pathlib
import sys
import unittest

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
from attention_reference import attention as exactly  # noqa: E402

import kvbuf  # noqa: E402
import kvbuf.torch as kt  # noqa: E402

KEY = jax.random.key(int.from_bytes(np.random.default_rng().bytes(4), "little"))

PROBLEM = """!q = memref<?x?x1x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
func.func @f(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !q, !kv, !kv, !q
  return
}
"""


def normal(i, *shape, dtype=jnp.bfloat16):
    return jax.random.normal(jax.random.fold_in(KEY, i), shape, dtype)


def exact(x):
    return np.asarray(x, np.float64)


class Jax(unittest.TestCase):

    def close(self, o, e, limit=3e-2):
        self.assertEqual(o.shape, e.shape)
        self.assertLess(np.abs(exact(o) - e).max(), limit)

    def test_dense(self):
        for dtype in jnp.bfloat16, jnp.float16:
            q, k, v = (normal(i, 2, n, h, 64, dtype=dtype)
                       for i, n, h in ((0, 9, 4), (1, 20, 2), (2, 20, 2)))
            o, lse = kvbuf.attention(q, k, v, causal=True, return_lse=True)
            self.assertIsInstance(o, jax.Array)
            self.assertEqual(o.dtype, dtype)
            for b in range(2):
                e, el = exactly(exact(q[b]), exact(k[b]), exact(v[b]), causal=True)
                self.close(o[b], e)
                self.close(lse[b], el, 1e-3)

    def test_as_jax(self):
        q = normal(3, 1, 16, 4, 80)
        k, v = normal(4, 1, 16, 4, 80), normal(5, 1, 16, 4, 80)
        o = kt.flash_attn_func(q, k, v, causal=True, softmax_scale=0.3)
        e = jax.nn.dot_product_attention(
            *(x.astype(jnp.float32) for x in (q, k, v)), is_causal=True, scale=0.3)
        self.close(o, exact(e))

    def test_sdpa(self):
        """Torch's function, also of more rows than keys: two launches."""
        for rows in 8, 20:
            q, k, v = normal(3, 1, 2, rows, 64), *(normal(n, 1, 2, 12, 64)
                                                   for n in (4, 5))
            o = kt.scaled_dot_product_attention(q, k, v, is_causal=True)
            q, k, v = (exact(x)[0] for x in (q, k, v))
            s = np.einsum("hid,hjd->hij", q, k) / 8
            s = np.where(np.tri(rows, 12, dtype=bool), s, -np.inf)
            p = np.exp(s - s.max(-1, keepdims=True))
            self.close(o[0], np.einsum("hij,hjd->hid", p / p.sum(-1, keepdims=True),
                                       v))

    def test_results_of_computations(self):
        """Arrays that JAX may still be computing, and one it goes on with."""
        @jax.jit
        def made(x):
            for _ in range(20):
                x = jnp.sin(x) + x
            return x.astype(jnp.float16)
        q, k, v = (made(normal(i, 1, 33, 2, 64, dtype=jnp.float32))
                   for i in (6, 7, 8))
        o = kvbuf.attention(q, k, v)
        twice = jax.jit(lambda x: x + x)(o)
        e, _ = exactly(exact(q[0]), exact(k[0]), exact(v[0]))
        self.close(o[0], e)
        self.assertTrue(jnp.array_equal(twice, o + o))

    def test_pages_and_conversion(self):
        cache = normal(9, 4, 16, 1, 40), normal(10, 4, 16, 1, 40)
        table = jnp.array([[2, 0], [3, 1]], jnp.int32)
        lengths = jnp.array([20, 3], jnp.int32)
        q = normal(11, 2, 1, 2, 40)
        o = kvbuf.attention(q, *cache, page_table=table, lengths=lengths)
        for b, n in enumerate((20, 3)):
            k, v = (exact(x[table[b]]).reshape(32, 1, 40)[:n] for x in cache)
            e, _ = exactly(exact(q[b]), k, v)
            self.close(o[b], e)
        q = normal(12, 1, 5, 2, 64, dtype=jnp.float32)
        o = kvbuf.attention(q, q, q, convert="float16")
        self.assertEqual(o.dtype, jnp.float32)
        self.close(o[0], exactly(*[exact(q[0])] * 3)[0])

    def test_jit(self):
        """Calls inside of what JAX compiles, on what it computes before."""
        @jax.jit
        def step(q, k, v, table, lengths, sink):
            o, lse = kvbuf.attention(q * 1, k, v, page_table=table, lengths=lengths,
                                     sink=sink, return_lse=True)
            return o + o, lse

        k, v = normal(20, 4, 16, 2, 64), normal(21, 4, 16, 2, 64)
        table = jnp.array([[2, 0], [3, 1]], jnp.int32)
        for q, counts in ((normal(22, 2, 1, 4, 64), (20, 3)),
                          (normal(23, 2, 1, 4, 64), (7, 32)),
                          (normal(24, 2, 5, 4, 64), (9, 31))):
            sink = jnp.arange(4, dtype=jnp.float32) / 2
            o, lse = step(q, k, v, table, jnp.array(counts, jnp.int32), sink)
            for b, n in enumerate(counts):
                keys = [exact(x[table[b]]).reshape(32, 2, 64)[:n] for x in (k, v)]
                e, el = exactly(exact(q[b]), *keys)
                # The sink has no value.
                total = np.logaddexp(el, np.asarray(sink)[:, None])
                self.close(o[b], 2 * e * np.exp(el - total).T[..., None], 6e-2)
                self.close(lse[b], total, 1e-3)
        if jax.default_backend() != "cpu":
            return
        # The emulator sees lengths that no cache can have.
        with self.assertRaisesRegex(Exception, "kvbuf: .*k.lengths.* 33"):
            jax.block_until_ready(step(q, k, v, table, jnp.array((33, 1), jnp.int32),
                                       sink))

    def test_jit_of_parts(self):
        """One traced argument is enough; loops, maps and conversions."""
        q = normal(25, 1, 4, 2, 64)
        fixed = jax.jit(lambda sink: kvbuf.attention(q, q, q, sink=sink))
        sink = jnp.ones(2)
        self.assertTrue(jnp.array_equal(fixed(sink),
                                        kvbuf.attention(q, q, q, sink=sink)))
        many = normal(26, 3, 1, 4, 2, 64)
        each = jnp.stack([kvbuf.attention(x, x, x, causal=True) for x in many])
        by_scan = jax.lax.scan(lambda c, x: (c, kvbuf.attention(
            x, x, x, causal=True)), 0, many)[1]
        by_map = jax.vmap(lambda x: kvbuf.attention(x, x, x, causal=True))(many)
        self.assertTrue(jnp.array_equal(by_scan, each))
        self.assertTrue(jnp.array_equal(by_map, each))
        x = normal(27, 1, 5, 2, 60, dtype=jnp.float32)
        o = jax.jit(lambda x: kvbuf.attention(x, x, x, convert="float16"))(x)
        self.assertEqual(o.dtype, jnp.float32)
        self.close(o[0], exactly(*[exact(x[0])] * 3)[0])
        lse = jax.jit(lambda q, k: kvbuf.attention(q, k, k, return_lse=True)[1])(
            q, q[:, :0])
        self.assertTrue((lse == -jnp.inf).all())
        # Parts of the keys, batched and not.
        parts = jax.jit(lambda q: kvbuf.merge_states(*zip(*(
            kvbuf.attention(q, q[:, a:b], q[:, a:b], return_lse=True)
            for a, b in ((0, 3), (3, 4))))))
        o, lse = parts(q)
        e, el = exactly(*[exact(q[0])] * 3)
        self.close(o[0], e)
        self.close(lse[0], el, 1e-3)
        outs, lses = normal(28, 2, 3, 2, 64), normal(29, 2, 2, 3, dtype=jnp.float32)
        total = np.logaddexp(*exact(lses))
        e = (exact(outs) * np.exp(exact(lses) - total).transpose(0, 2, 1)[..., None]
             ).sum(0)
        for merge in jax.jit(kvbuf.merge_states), kvbuf.merge_states:
            o, lse = merge(outs, lses)
            self.close(o, e)
            self.close(lse, total, 1e-5)
        o = jax.jit(lambda x: kt.flash_attn_func(x, x, x, causal=True))(q)
        self.assertTrue(jnp.array_equal(o, kt.flash_attn_func(q, q, q, causal=True)))

    def test_jit_of_constants(self):
        """Arrays that are there, in a function that JAX traces."""
        q = normal(30, 1, 4, 2, 64)
        e, el = exactly(*[exact(q[0])] * 3, causal=True)
        o, lse, x = jax.jit(lambda x: (*kvbuf.attention(
            q, q, q, causal=True, return_lse=True), x + 1))(jnp.zeros(2))
        self.close(o[0], e)
        self.close(lse[0], el, 1e-3)

        offsets = jnp.array((0, 1, 4), jnp.int32)
        o, lse, none = jax.jit(lambda at: kt.flash_attn_varlen_func(
            q[0], q[0], q[0], at, at, 4, 4, return_attn_probs=True))(offsets)
        self.assertEqual(none.shape, (0,))
        for at in slice(0, 1), slice(1, 4):
            e, el = exactly(*[exact(q[0, at])] * 3)
            self.close(o[at], e)
            self.close(lse[:, at], el, 1e-3)

    def test_jit_of_nothing(self):
        """Outputs without elements."""
        q = normal(31, 2, 4, 2, 64)
        attend = jax.jit(lambda q, k: kvbuf.attention(q, k, k, return_lse=True))
        for rows, keys in (q[:, :0], q), (q[:0], q[:0]):
            o, lse = attend(rows, keys)
            self.assertEqual((o.shape, o.dtype), (rows.shape, rows.dtype))
            self.assertEqual(lse.shape, (rows.shape[0], 2, rows.shape[1]))

    def test_refusals(self):
        q = normal(13, 1, 4, 1, 64)
        with self.assertRaisesRegex(ValueError, "out is an array of JAX's, which "
                                    "cannot be changed; take the result"):
            kvbuf.attention(q, q, q, out=q)
        with self.assertRaisesRegex(ValueError, "device and stream are given in a "
                                    "function that JAX traces"):
            jax.jit(lambda x: kvbuf.attention(x, x, x, device="emulator"))(q)
        with self.assertRaisesRegex(ValueError, "cannot be differentiated"):
            jax.grad(lambda x: kvbuf.attention(x, q, q).sum().astype(float))(q)
        kernel = kvbuf.compile(PROBLEM, target="sm_80")
        with self.assertRaisesRegex(NotImplementedError, "'q' is traced by JAX"):
            jax.vmap(lambda x: kernel(q=x, k=q, v=q))(q[None])
        for cache in q, q.astype(jnp.float8_e4m3fn):
            with self.assertRaisesRegex(
                    ValueError, "k_cache is an array of JAX's, which cannot be "
                    "changed; k and v are written to it"):
                kt.flash_attn_with_kvcache(
                    q, cache, cache, k=q, v=q,
                    cache_seqlens=jnp.zeros(1, jnp.int32))


if __name__ == "__main__":
    unittest.main()
