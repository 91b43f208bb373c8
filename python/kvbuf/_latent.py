# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latent attention under the names that other libraries have given it: docs/latent.md."""

from __future__ import annotations

import torch
from torch import Tensor

from ._attention import (attention, require_index, require_rank, require_shape,
                         require_type)
from ._flash import refuse
from ._ops import of
from ._torch_state import is_traced_by_jit


def get_mla_metadata(*arguments, **named) -> tuple[None, None]:
    """FlashMLA's function of that name, whose result `flash_mla_with_kvcache` is
    given: nothing, for kernels find their work on the device, in the lengths of
    the call."""
    return None, None


def flash_mla_with_kvcache(
        q: Tensor, k_cache: Tensor, block_table: Tensor | None,
        cache_seqlens: Tensor | None, head_dim_v: int,
        tile_scheduler_metadata=None, num_splits=None,
        softmax_scale: float | None = None, causal: bool = False,
        is_fp8_kvcache: bool = False, indices: Tensor | None = None,
        attn_sink: Tensor | None = None, extra_k_cache: Tensor | None = None,
        extra_indices_in_kvcache: Tensor | None = None,
        topk_length: Tensor | None = None,
        extra_topk_length: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Latent attention over pages: FlashMLA's function of that name.

    q (batch, rows, heads, head size), k_cache (pages, page size, KV heads, head
    size), pages of any size, ``block_table`` (batch, pages) and
    ``cache_seqlens`` (batch), int32 or int64, of all tokens, the rows of q among
    them. Values are the first ``head_dim_v`` columns of the cache's rows.
    ``tile_scheduler_metadata`` and ``num_splits`` are not looked at.
    ``attn_sink`` (heads), float32: the result is multiplied by
    exp(lse) / (exp(lse) + exp(attn_sink)).

    Returns out (batch, rows, heads, head_dim_v) and the log-sum-exps (batch,
    heads, rows), float32, without the sink; -inf where a row sees no key, whose
    out is 0.

    8-bit caches and lists of keys (``indices``, ``topk_length`` and ``extra_``)
    are refused."""
    refuse("is_fp8_kvcache", bool(is_fp8_kvcache), False)
    for name, value in (("indices", indices), ("extra_k_cache", extra_k_cache),
                        ("extra_indices_in_kvcache", extra_indices_in_kvcache),
                        ("topk_length", topk_length),
                        ("extra_topk_length", extra_topk_length)):
        refuse(name, value, None, why=", as for all lists of keys")
    ops = of(q)
    require_rank("q", q, 4, "(batch, rows, heads, head size)")
    require_rank("k_cache", k_cache, 4, "(pages, page size, KV heads, head size)")
    if block_table is None or cache_seqlens is None:
        raise ValueError("block_table and cache_seqlens are needed; one of them is "
                         "None")
    require_rank("block_table", block_table, 2, "(batch, pages)")
    width = k_cache.shape[-1]
    if require_index("head_dim_v", head_dim_v, 1) > width:
        raise ValueError(f"head_dim_v is {head_dim_v}; expected at most {width}, "
                         "the columns of k_cache")
    if attn_sink is not None:
        require_shape("attn_sink", attn_sink, (q.shape[2],), "one a query head")
        require_type(ops, "attn_sink", attn_sink, "f32")
    out = None
    if attn_sink is not None:
        # The factor comes before the only rounding.
        out = torch.empty((*q.shape[:-1], head_dim_v), dtype=torch.float32,
                          device=q.device)
    out, lse = attention(q, k_cache, k_cache[..., :head_dim_v],
                         page_table=block_table, lengths=cache_seqlens,
                         scale=softmax_scale, causal=causal, out=out,
                         return_lse=True)
    if attn_sink is not None:
        share = torch.sigmoid(lse - attn_sink[:, None]).transpose(1, 2)
        out = (out * share[..., None]).to(q.dtype)
    return out, lse


def whole_rows(q, qv, k_cache, v_cache, k, v):
    """(queries, rows, values) of flash-attn 3's form of latent attention, in which
    scores are q k + qv v: rows are those of v_cache with the columns of k_cache
    behind them, which lie there in memory already."""
    for name, x in (("q", q), ("qv", qv), ("k_cache", k_cache),
                    ("v_cache", v_cache)):
        if not isinstance(x, Tensor):
            raise NotImplementedError(f"qv is given, and {name} is of type "
                                      f"{type(x).__name__}; expected torch's")
    if torch.compiler.is_compiling() or is_traced_by_jit():
        raise NotImplementedError("qv is given while torch traces, where nothing "
                                  "says where caches lie; expected queries and "
                                  "rows as wholes (kvbuf.attention)")
    if k is not None or v is not None:
        raise NotImplementedError("qv is given with k and v; expected rows that are "
                                  "in the cache already")
    values = v_cache.shape[-1]
    require_shape("qv", qv, (*q.shape[:-1], values), "q's rows, and v_cache's "
                  "columns")
    apart = (k_cache.shape[:-1] != v_cache.shape[:-1]
             or k_cache.dtype != v_cache.dtype
             or k_cache.stride() != v_cache.stride()
             or k_cache.device != v_cache.device
             or k_cache.data_ptr()
             != v_cache.data_ptr() + values * v_cache.element_size())
    width = values + k_cache.shape[-1]
    if apart or min(v_cache.stride()[:-1], default=width) < width:
        raise NotImplementedError(
            "qv is given, and k_cache and v_cache are no parts of the same rows; "
            f"expected views rows[..., {values}:] and rows[..., :{values}] of one "
            "tensor")
    rows = v_cache.as_strided((*v_cache.shape[:-1], width), v_cache.stride())
    return torch.cat((qv, q), -1), rows, rows[..., :values]
