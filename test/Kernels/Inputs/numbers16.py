"""bfloat16 and references for tests of programs."""

import numpy as np


def to_bf16(x):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def rounded(x):
    return from_bf16(to_bf16(x))


def attend(s, seen, v, rounded=rounded):
    """O of softmax(s) v where `seen`, of scores [..., queries, keys] and values
    [..., keys, columns]; the same with P and O rounded, to bfloat16; and the
    log-sum-exp [..., queries]. A row that sees no key is 0 with a sum of -inf."""
    s = np.where(seen, s, -np.inf)
    top = s.max(-1, keepdims=True, initial=-np.inf)
    p = np.exp(s - np.where(np.isfinite(top), top, 0))
    total = p.sum(-1, keepdims=True)

    def apply(p):
        o = p @ v
        return np.divide(o, total, out=np.zeros_like(o), where=total > 0)
    with np.errstate(divide="ignore"):
        lse = (top + np.log(total))[..., 0]
    return apply(p), rounded(apply(rounded(p))), lse


def softmax(q, k, v, scale=0.125, causal=False):
    """O of softmax(scale q k^T) v, the same with P and O rounded to bfloat16,
    and the log-sum-exp [batch, heads, queries]; heads are grouped. A row that
    sees no key is 0 with a sum of -inf."""
    group = q.shape[2] // k.shape[2]
    k, v = (np.repeat(x, group, axis=2) for x in (k, v))
    s = scale * np.einsum("bihd,bjhd->bhij", q, k)
    queries, keys = s.shape[2:]
    last = np.arange(queries)[:, None] + keys - queries
    exact, base, lse = attend(s, np.arange(keys) <= last if causal else True,
                              v.transpose(0, 2, 1, 3))
    return exact.transpose(0, 2, 1, 3), base.transpose(0, 2, 1, 3), lse


def check(test, out, exact, base):
    """The pass rule of kvbuf-run: errors in units of the baseline's."""
    test.assertFalse(np.isnan(out).any())
    # The rounding of bfloat16 at the reference's magnitude.
    ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
    error, usual = abs(out - exact), abs(base - exact)
    test.assertLessEqual((error - ulp).max(), 2 * usual.max())
    test.assertLessEqual(error.mean(), 1.15 * usual.mean() + 1e-6)


def check_latent(test, run, shapes):
    """Causal attention of 4 heads of 192 columns on one of keys, whose first 128
    columns are the values; `shapes`: sequences, queries, keys."""
    rng = np.random.default_rng()
    for batch, queries, keys in shapes:
        q = to_bf16(rng.standard_normal((batch, queries, 4, 192)))
        k = to_bf16(rng.standard_normal((batch, keys, 1, 192)))
        out = np.full((batch, queries, 8, 64), 0x7FC0, np.uint16)  # NaN
        run(q=q, k=k, out=out)
        out = from_bf16(out).reshape(batch, queries, 4, 128)
        q, k = from_bf16(q), from_bf16(k)
        exact, base, _ = softmax(q, k, k[..., :128], 192 ** -0.5, causal=True)
        check(test, out, exact, base)
