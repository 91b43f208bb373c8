# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's operators kvbuf::..., for torch.compile, torch.export and tensors of
other kinds than torch.Tensor: kvbuf.torch's functions with what they make of
shapes alone. Importing this registers them."""

from __future__ import annotations

import functools

import torch

from . import _attention, _ops
from . import torch as functions
from ._attention import attention

_OPTIONS = ("float? scale, bool causal, SymInt left, SymInt right, "
            "float softcap")


def _plain(x):
    """A tensor of a class that says nothing of operators, such as a Parameter,
    as what it holds: functions hand tensors of other classes to the operators."""
    if isinstance(x, torch.Tensor) and type(x) is not torch.Tensor:
        return x.as_subclass(torch.Tensor)
    return x


def _operator(name, schema, mutates=()):
    """Registers the decorated function as kvbuf::name."""
    def decorate(function):
        @functools.wraps(function)
        def on_plain(*arguments, **options):
            return function(*map(_plain, arguments),
                            **{n: _plain(x) for n, x in options.items()})

        op = torch.library.custom_op(f"kvbuf::{name}", mutates_args=mutates,
                                     schema=schema)(on_plain)
        return op
    return decorate


def _both(result, want):
    """(out, log-sum-exp), the latter empty where it was not asked for."""
    if want:
        return result
    return result, result.new_empty((0,), dtype=torch.float32)


def _options(scale, causal, left, right, softcap):
    return {"softmax_scale": scale, "causal": causal,
            "window_size": (left, right), "softcap": softcap}


@_operator("flash_attn", f"(Tensor q, Tensor k, Tensor v, {_OPTIONS}, Tensor? "
           "sink, bool lse, Tensor? alibi_slopes=None) -> (Tensor, Tensor)")
def _flash_attn(q, k, v, scale, causal, left, right, softcap, sink, lse,
                alibi_slopes=None):
    return _both(functions.flash_attn_func(
        q, k, v, **_options(scale, causal, left, right, softcap), sink=sink,
        alibi_slopes=alibi_slopes, return_lse=lse), lse)


def _fake_out(q, v):
    return torch.empty_like(q) if q.shape[-1] == v.shape[-1] else q.new_empty(
        (*q.shape[:-1], v.shape[-1]))


@_flash_attn.register_fake
def _(q, k, v, scale, causal, left, right, softcap, sink, lse,
      alibi_slopes=None):
    shape = (q.shape[0], q.shape[2], q.shape[1]) if lse else (0,)
    return _fake_out(q, v), q.new_empty(shape, dtype=torch.float32)


@_operator("flash_attn_varlen", "(Tensor q, Tensor k, Tensor v, Tensor "
           "cu_seqlens_q, Tensor? cu_seqlens_k, SymInt max_seqlen_q, SymInt "
           f"max_seqlen_k, {_OPTIONS}, Tensor? block_table, Tensor? seqused_k, "
           "Tensor? sink, bool lse, Tensor? alibi_slopes=None) -> (Tensor, "
           "Tensor)")
def _flash_attn_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                       max_seqlen_k, scale, causal, left, right, softcap,
                       block_table, seqused_k, sink, lse, alibi_slopes=None):
    return _both(functions.flash_attn_varlen_func(
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
        **_options(scale, causal, left, right, softcap),
        block_table=block_table, seqused_k=seqused_k, sink=sink,
        alibi_slopes=alibi_slopes, return_lse=lse), lse)


@_flash_attn_varlen.register_fake
def _(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, scale,
      causal, left, right, softcap, block_table, seqused_k, sink, lse,
      alibi_slopes=None):
    shape = (q.shape[1], q.shape[0]) if lse else (0,)
    return _fake_out(q, v), q.new_empty(shape, dtype=torch.float32)


@_operator("flash_attn_kvcache", "(Tensor q, Tensor(a!) k_cache, Tensor(b!) "
           "v_cache, Tensor? k, Tensor? v, Tensor? rotary_cos, Tensor? "
           "rotary_sin, Tensor? cache_seqlens, Tensor? cache_batch_idx, Tensor? "
           f"cache_leftpad, Tensor? block_table, {_OPTIONS}, bool "
           "rotary_interleaved, SymInt num_splits, bool lse, Tensor? "
           "cu_seqlens_q, SymInt? max_seqlen_q, Tensor? sink, Tensor? "
           "alibi_slopes=None) -> (Tensor, Tensor)",
           mutates=("k_cache", "v_cache"))
def _flash_attn_kvcache(q, k_cache, v_cache, k, v, rotary_cos, rotary_sin,
                        cache_seqlens, cache_batch_idx, cache_leftpad,
                        block_table, scale, causal, left, right, softcap,
                        rotary_interleaved, num_splits, lse, cu_seqlens_q,
                        max_seqlen_q, sink, alibi_slopes=None):
    return _both(functions.flash_attn_with_kvcache(
        q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, cache_seqlens,
        cache_batch_idx, cache_leftpad, block_table,
        **_options(scale, causal, left, right, softcap),
        rotary_interleaved=rotary_interleaved, num_splits=num_splits,
        alibi_slopes=alibi_slopes, return_softmax_lse=lse,
        cu_seqlens_q=cu_seqlens_q,
        max_seqlen_q=max_seqlen_q, sink=sink), lse)


@_flash_attn_kvcache.register_fake
def _(q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, cache_seqlens,
      cache_batch_idx, cache_leftpad, block_table, scale, causal, left, right,
      softcap, rotary_interleaved, num_splits, lse, cu_seqlens_q, max_seqlen_q,
      sink, alibi_slopes=None):
    if not lse:
        shape = (0,)
    elif cu_seqlens_q is None:
        shape = (q.shape[0], q.shape[2], q.shape[1])
    else:
        shape = (q.shape[1], q.shape[0])
    return _fake_out(q, v_cache), q.new_empty(shape, dtype=torch.float32)


@_operator("sdpa", "(Tensor query, Tensor key, Tensor value, bool is_causal, "
           "float? scale, bool enable_gqa, Tensor? attn_mask=None) -> Tensor")
def _sdpa(query, key, value, is_causal, scale, enable_gqa, attn_mask=None):
    return functions.scaled_dot_product_attention(query, key, value, attn_mask,
                                        is_causal=is_causal, scale=scale,
                                        enable_gqa=enable_gqa)


@_sdpa.register_fake
def _(query, key, value, is_causal, scale, enable_gqa, attn_mask=None):
    return query.new_empty((*query.shape[:-1], value.shape[-1]))


#: kvbuf.attention's tensors and what else it takes, as its operator does.
_TENSORS = ("sink", "q_offsets", "k_offsets", "page_table", "slots", "lengths",
            "alibi_slopes", "bias", "mask")


@_operator("attention", "(Tensor q, Tensor k, Tensor v, "
           + ", ".join(f"Tensor? {name}" for name in _TENSORS)
           + ", bool causal, SymInt left, SymInt right, float? scale, float "
           "softcap, SymInt? longest_query, str lengths_count, bool lse, bool "
           "batch_invariant, str? convert, str? target, str? schedule) -> "
           "(Tensor, Tensor)")
def _attention_operator(q, k, v, sink, q_offsets, k_offsets, page_table, slots,
                        lengths, alibi_slopes, bias, mask, causal, left, right,
                        scale, softcap, longest_query, lengths_count, lse,
                        batch_invariant, convert, target, schedule):
    return _both(attention(
        q, k, v, sink=sink, q_offsets=q_offsets, k_offsets=k_offsets,
        page_table=page_table, slots=slots, lengths=lengths,
        alibi_slopes=alibi_slopes, bias=bias, mask=mask, causal=causal,
        window=(left, right), scale=scale, softcap=softcap,
        longest_query=longest_query, lengths_count=lengths_count,
        return_lse=lse, batch_invariant=batch_invariant, convert=convert,
        target=target, schedule=schedule), lse)


@_attention_operator.register_fake
def _(q, k, v, sink, q_offsets, k_offsets, page_table, slots, lengths,
      alibi_slopes, bias, mask, causal, left, right, scale, softcap,
      longest_query, lengths_count, lse, batch_invariant, convert, target,
      schedule):
    if not lse:
        shape = (0,)
    elif q_offsets is None:
        shape = (q.shape[0], q.shape[2], q.shape[1])
    else:
        shape = (q.shape[1], q.shape[0])
    return _fake_out(q, v), q.new_empty(shape, dtype=torch.float32)


def traced_attention(q, k, v, *, window, softcap, return_lse, out, lse, device,
                     stream, **options):
    """kvbuf.attention where torch.compile or torch.export traces it."""
    if device is not None or stream is not None:
        raise ValueError("device and stream are given under torch.compile: they "
                         "are those of the tensors and the graph")
    _attention.refuse_gradients(_ops.of(q), "kvbuf.attention", q, k, v,
                                options["sink"])
    left, right = _attention.check_window("window", window)
    want = return_lse or lse is not None
    result, numbers = torch.ops.kvbuf.attention(
        q, k, v, left=left, right=right, softcap=softcap or 0.0, lse=want,
        **options)
    if out is not None:
        result = out.copy_(result)
    if lse is not None:
        numbers = lse.copy_(numbers)
    return (result, numbers) if want else result
