"""Attention on [batch, heads, seq, size], as slow as tests say."""

import numpy as np

from .. import cuda

#: Milliseconds by backend, and what is wrong: a factor of the result.
milliseconds = {}
factor = {}
#: Backends that refuse grouped heads.
refuse_groups = set()
backend = None


def scaled_dot_product_attention(q, k, v, is_causal, scale, enable_gqa):
    from .. import bfloat16
    if backend in refuse_groups and enable_gqa:
        raise RuntimeError("No available kernel")
    cuda.launch(backend.name, milliseconds[backend.name])
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[1] // k.shape[1], 1) for x in (k, v))
    s = np.asarray(q, np.float64) @ np.swapaxes(k, 2, 3) * scale
    if is_causal:
        s = np.where(np.tri(s.shape[-2], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    out = (p / p.sum(-1, keepdims=True)) @ np.asarray(v, np.float64)
    out *= factor.get(backend.name, 1)
    return out.astype(np.float32).view(type(q)).to(bfloat16)
