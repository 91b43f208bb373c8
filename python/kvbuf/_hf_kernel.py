# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""flash-attn's functions by kvbuf, as a kernel of Hugging Face's `kernels`.

`python -m kvbuf.hf_kernels` copies this file: it is a module of its own there.
transformers finds arguments by their names, so those of every flash-attn are here:
s_aux and learnable_sink are one, as are block_table and page_table."""

import importlib
import pathlib
import sys

try:
    import kvbuf.torch as _kvbuf
except ImportError:
    # Nothing is installed: the copy beside this file.
    sys.path.append(str(pathlib.Path(__file__).resolve().parent / "packages"))
    try:
        _kvbuf = importlib.import_module("kvbuf.torch")
    finally:
        sys.path.pop()

__all__ = ["flash_attn_func", "flash_attn_varlen_func", "flash_attn_with_kvcache"]


def _one(**names):
    """The argument that has several names."""
    given = {name: x for name, x in names.items() if x is not None}
    if len(given) > 1:
        raise ValueError(" and ".join(given) + " are one argument; expected one of "
                         "them")
    return next(iter(given.values()), None)


def _sink(s_aux, learnable_sink):
    sink = _one(s_aux=s_aux, learnable_sink=learnable_sink)
    return None if sink is None else sink.float()


def _window(window_size):
    return (-1, -1) if window_size is None else tuple(
        -1 if side is None else side for side in window_size)


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False,
                    window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                    deterministic=False, return_attn_probs=False, *, s_aux=None,
                    learnable_sink=None, return_lse=False, out=None):
    """`kvbuf.torch.flash_attn_func`."""
    return _kvbuf.flash_attn_func(
        q, k, v, dropout_p, softmax_scale, causal, _window(window_size), softcap,
        alibi_slopes, deterministic, return_attn_probs, return_lse=return_lse,
        out=out, sink=_sink(s_aux, learnable_sink))


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                           max_seqlen_k, dropout_p=0.0, softmax_scale=None,
                           causal=False, window_size=(-1, -1), softcap=0.0,
                           alibi_slopes=None, deterministic=False,
                           return_attn_probs=False, block_table=None, *,
                           page_table=None, seqused_k=None, s_aux=None,
                           learnable_sink=None, return_lse=False, out=None):
    """`kvbuf.torch.flash_attn_varlen_func`."""
    return _kvbuf.flash_attn_varlen_func(
        q, k, v, cu_seqlens_q, cu_seqlens_k, int(max_seqlen_q),
        int(max_seqlen_k), dropout_p, softmax_scale, causal,
        _window(window_size), softcap, alibi_slopes, deterministic,
        return_attn_probs, _one(block_table=block_table, page_table=page_table),
        seqused_k=seqused_k, return_lse=return_lse, out=out,
        sink=_sink(s_aux, learnable_sink))


def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, rotary_cos=None,
                            rotary_sin=None, cache_seqlens=None,
                            cache_batch_idx=None, cache_leftpad=None,
                            block_table=None, softmax_scale=None, causal=False,
                            window_size=(-1, -1), softcap=0.0,
                            rotary_interleaved=True, alibi_slopes=None,
                            num_splits=0, return_softmax_lse=False, *,
                            page_table=None, cu_seqlens_q=None, max_seqlen_q=None,
                            s_aux=None, learnable_sink=None, k_descale=None,
                            v_descale=None, out=None):
    """`kvbuf.torch.flash_attn_with_kvcache`. ``max_seqlen_q`` alone, as transformers
    gives it, says nothing that q's shape does not."""
    return _kvbuf.flash_attn_with_kvcache(
        q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, cache_seqlens,
        cache_batch_idx, cache_leftpad,
        _one(block_table=block_table, page_table=page_table), softmax_scale,
        causal, _window(window_size), softcap, rotary_interleaved, alibi_slopes,
        num_splits, return_softmax_lse, cu_seqlens_q=cu_seqlens_q,
        max_seqlen_q=None if cu_seqlens_q is None else max_seqlen_q, out=out,
        sink=_sink(s_aux, learnable_sink), k_descale=k_descale,
        v_descale=v_descale)
