# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that torch itself computes, as derivatives are wanted."""

from __future__ import annotations

import math
import warnings

import torch

from . import _flash
from ._settings import settings as _settings
from ._torch_state import wants_derivatives

_torch_sdpa = torch.nn.functional.scaled_dot_product_attention

_warned: set = set()

#: Beyond it a sink is infinite for kernels, whose exponents are in base 2.
_MOST = torch.finfo(torch.float32).max / math.log2(math.e)


def _by_torch(name, *tensors):
    """Whether torch itself has to compute this call."""
    lost = wants_derivatives(*tensors)
    if not lost:
        return False
    if _settings.gradients != "torch":
        raise NotImplementedError(
            f"{name} {lost}, or let torch compute such calls: "
            "kvbuf.torch.configure(gradients=\"torch\")")
    if name not in _warned:
        _warned.add(name)
        why = lost.partition(", and ")[2].partition(";")[0]
        warnings.warn(f"{name}: {why}, so torch computes this call and those like "
                      "it", stacklevel=3)
    return True


def _refuse_by_torch(**given):
    """Refuses what kernels alone compute."""
    for name, value in given.items():
        if value is not None:
            raise NotImplementedError(f"{name} is given, and a derivative is wanted; "
                                      "torch computes no such call")


def _plainly(q, k, v, scale, causal, left, right, softcap, sink=None):
    """Attention of torch's operators, with a backward pass: (out, lse) on
    [batch, rows, heads, columns]; bottom-right masks."""
    if not k.shape[2] or q.shape[2] % k.shape[2]:
        raise ValueError(f"q has {q.shape[2]} heads, which are no multiple of the "
                         f"{k.shape[2]} heads of k and v")
    group = q.shape[2] // k.shape[2]
    k, v = (x.repeat_interleave(group, 2) for x in (k, v))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = torch.einsum("bihd,bjhd->bhij", q.float(), k.float()) * scale
    if softcap > 0:
        s = softcap * torch.tanh(s / softcap)
    rows, keys = s.shape[-2:]
    at = torch.arange(rows, device=q.device)[:, None] + keys - rows
    j = torch.arange(keys, device=q.device)[None]
    hidden = torch.zeros((rows, keys), dtype=torch.bool, device=q.device)
    if causal:
        hidden |= j > at
    if left >= 0:
        hidden |= j < at - left
    if right >= 0:
        hidden |= j > at + right
    s = s.masked_fill(hidden, float("-inf"))
    if sink is not None:
        # Differences from an infinite one are NaN, in gradients too.
        s = torch.cat([s, sink.float().clamp(max=_MOST)[None, :, None, None].expand(
            s.shape[0], -1, rows, 1)], -1)
    lse = torch.logsumexp(s, -1)
    # A row without a key: zeros, and no NaN in a gradient.
    empty = torch.isneginf(lse)[..., None]
    p = torch.exp(s.masked_fill(empty, 0) - lse[..., None].masked_fill(empty, 0))
    p = p.masked_fill(empty, 0)[..., :keys]
    out = torch.einsum("bhij,bjhd->bihd", p, v.float())
    return out.to(q.dtype), lse.masked_fill(lse >= _MOST, float("inf"))


def _varlen_plainly(q, k, v, cu_q, cu_k, opts, sink):
    """Rows of no sequence are 0."""
    at_q, at_k = cu_q.tolist(), cu_k.tolist()
    parts = [_plainly(q[a:b][None], k[c:d][None], v[c:d][None], *opts.values(),
                      sink)
             for a, b, c, d in zip(at_q, at_q[1:], at_k, at_k[1:])]
    outs, sums = [out[0] for out, _ in parts], [lse[0] for _, lse in parts]
    for at, rows in (0, at_q[0]), (len(outs) + 1, q.shape[0] - at_q[-1]):
        outs.insert(at, q.new_zeros((rows, q.shape[1], v.shape[2])))
        sums.insert(at, torch.full((q.shape[1], rows), float("-inf"), device=q.device))
    return torch.cat(outs), torch.cat(sums, 1)
