"""Attention in numpy's float64, written from the functions' documentation."""

import numpy as np


def attention(q, k, v, causal=False, window=(-1, -1), softcap=0.0, scale=None,
              sink=None, top_left=False, slopes=None, bias=None, keep=None):
    """One sequence: q [rows, H, D], k and v [keys, G, D], any real type. Returns
    (out [rows, H, D], lse [H, rows]). Masks are aligned bottom-right. ``slopes``
    [H]; ``bias`` and ``keep`` broadcast to [H, rows, keys]."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    rows, heads, size = q.shape
    keys, group = k.shape[0], heads // k.shape[1]
    scale = size ** -0.5 if scale is None else scale
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    s = np.einsum("ihd,jhd->hij", q, k) * scale
    if softcap > 0:
        s = softcap * np.tanh(s / softcap)
    at = np.arange(rows)[:, None] + (0 if top_left else keys - rows)
    j = np.arange(keys)[None]
    if slopes is not None:
        s = s - np.asarray(slopes, np.float64)[:, None, None] * np.abs(at - j)
    if bias is not None:
        s = s + np.asarray(bias, np.float64)
    seen = np.ones((rows, keys), bool)
    left, right = window
    if causal:
        right = 0
    if left >= 0:
        seen &= j >= at - left
    if right >= 0:
        seen &= j <= at + right
    if keep is not None:
        seen = seen & keep
    s = np.where(seen, s, -np.inf)
    if sink is not None:
        s = np.concatenate([s, np.broadcast_to(
            np.asarray(sink, np.float64)[:, None, None], (heads, rows, 1))], -1)
    most = s.max(-1, keepdims=True, initial=-np.inf)
    most = np.where(np.isfinite(most), most, 0)
    p = np.exp(s - most)
    total = p.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (most + np.log(total))[..., 0]
    p = np.divide(p, total, out=np.zeros_like(p), where=total > 0)
    return np.einsum("hij,jhd->ihd", p[..., :keys], v), lse


def rotated(x, cos, sin, places, interleaved):
    """x [rows, H, D] by the rows `places` of cos and sin [positions, R / 2]."""
    x = np.array(x, np.float64)
    cos, sin = (np.asarray(t, np.float64)[places][:, None] for t in (cos, sin))
    half = cos.shape[-1]
    first = slice(0, 2 * half, 2) if interleaved else slice(0, half)
    second = slice(1, 2 * half, 2) if interleaved else slice(half, 2 * half)
    a, b = x[..., first].copy(), x[..., second].copy()
    x[..., first], x[..., second] = a * cos - b * sin, a * sin + b * cos
    return x
