# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention on torch's tensors, under the names that models already call.

    from kvbuf.torch import flash_attn_func, flash_attn_with_kvcache
    kvbuf.torch.patch_sdpa()       # F.scaled_dot_product_attention from now on

Arguments, defaults, layouts and results are those of flash-attn 2 and of
torch.nn.functional; what kvbuf does not compute raises NotImplementedError with
the argument's name, what does not fit together ValueError. Keyword-only
arguments at the end are kvbuf's. numpy's arrays are taken too.

Tensors on a GPU run there, on the current stream of their device; those of the
host run on the emulator. No call makes the host wait for the device. There is no
backward pass: see `configure`.
"""

from __future__ import annotations

import contextlib

import torch
from torch import Tensor

from . import _attention, _flash, _flash_arguments, _latent, _tensors
from ._attention import attention
from ._flash_arguments import get_scheduler_metadata
from ._flex_attention import flex_attention, flex_report
from ._latent import (concat_and_cache_mla, flash_mla_with_kvcache,
                      get_mla_metadata)
from ._merge import flash_attn_combine, merge_states
from ._operators import Operator
from ._patch import Patch, patch_sdpa
from ._plain import _by_torch, _plainly, _refuse_by_torch, _varlen_plainly
from ._plans import (_are_plain, _calls_by_options, _forget, _is_traced, _plans, _remember,
                     _watched, _Wide)
from ._sdpa import scaled_dot_product_attention
from ._settings import settings as _settings
from ._torch_state import (dispatch_modes, forward_ad, function_modes,
                           is_before_dispatch, is_operator, is_recorded,
                           is_traced_by_jit, level, wants_derivatives)

__all__ = ["Patch", "attention", "concat_and_cache_mla", "configure",
           "flash_attn_combine",
           "flash_attn_func", "flash_attn_kvpacked_func",
           "flash_attn_qkvpacked_func", "flash_attn_varlen_func",
           "flash_attn_varlen_kvpacked_func", "flash_attn_varlen_qkvpacked_func",
           "flash_attn_with_kvcache", "flash_mla_with_kvcache",
           "flex_attention", "flex_report", "get_mla_metadata",
           "get_scheduler_metadata", "merge_states", "patch_sdpa",
           "scaled_dot_product_attention"]

_Tensor = torch.Tensor
_grad_enabled = torch.is_grad_enabled

#: Which of a call's tensors each of the kernel's is, of calls that are remembered.
_DENSE = {"q": 0, "k": 1, "v": 2}
_RAGGED_ROWS = {**_DENSE, "q_offsets": 3}
_RAGGED = {**_RAGGED_ROWS, "k_offsets": 4, "v_offsets": 4}
_CACHE = {**_DENSE, "k_table": 3, "v_table": 3, "k_lengths": 4, "v_lengths": 4}
#: The kernel's names of those that not every call has.
_K_OFFSETS, _Q_OFFSETS = ("k_offsets", "v_offsets"), ("q_offsets",)
_TABLE, _LENGTHS = ("k_table", "v_table"), ("k_lengths", "v_lengths")
_SINK, _ALIBI = ("sink",), ("alibi",)
_K_SCALES, _V_SCALES = ("k_scales",), ("v_scales",)


def configure(
        *, gradients: str | None = None, float32: str | None = None
        ) -> contextlib.AbstractContextManager:
    """Sets what holds for all calls of this module, until it is set again; used
    as a context manager, until the end of the block.

    ``gradients``: what a call does whose tensors require gradients, or have
    tangents (forward mode). "error", the default, raises NotImplementedError;
    "torch" computes with torch's own operators, which have derivatives, and warns
    once.
    ``float32``: None, the default, refuses float32 tensors; "bfloat16" or
    "float16" rounds them to that, and the result is float32 again; "none" goes
    back to the default."""
    before = dict(vars(_settings))
    if gradients not in (None, "error", "torch"):
        raise ValueError(f"gradients is {gradients!r}; expected \"error\" or "
                         "\"torch\"")
    if float32 not in (None, "none", "bfloat16", "float16"):
        raise ValueError(f"float32 is {float32!r}; expected \"bfloat16\", "
                         "\"float16\" or \"none\"")
    if gradients is not None:
        _settings.gradients = gradients
    if float32 is not None:
        _settings.float32 = None if float32 == "none" else float32
        _forget()

    @contextlib.contextmanager
    def until_the_end():
        try:
            yield
        finally:
            vars(_settings).update(before)
            _forget()

    return until_the_end()


#===------------------------------------------------------------------------===#
# The functions
#===------------------------------------------------------------------------===#


def flash_attn_func(
        q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0,
        softmax_scale: float | None = None, causal: bool = False,
        window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0,
        alibi_slopes: Tensor | None = None, deterministic: bool = False,
        return_attn_probs: bool = False, *, return_lse: bool = False,
        out: Tensor | None = None, sink: Tensor | None = None,
        q_descale: Tensor | None = None, k_descale: Tensor | None = None,
        v_descale: Tensor | None = None, output_scale: Tensor | None = None, **more
        ) -> Tensor | tuple[Tensor, ...]:
    """Attention of q (batch, rows, heads, head size) over k and v (batch, keys,
    KV heads, head size): flash-attn's function of that name.

    float16 and bfloat16. ``causal`` and ``window_size`` (left, right; -1: open)
    are aligned bottom-right; a row that sees no key is 0. ``softcap`` > 0 caps
    scores. ``deterministic`` changes nothing: it always is. Returns out, like q;
    with ``return_attn_probs`` (out, softmax_lse, an empty tensor), with
    ``return_lse`` (out, softmax_lse): float32 (batch, heads, rows), -inf for a
    row that sees no key.

    ``alibi_slopes`` (heads) or (batch, heads), float32: scores fall by the slope
    times the distance from the query's place.

    NotImplementedError: ``dropout_p`` other than 0, tensors that require
    gradients. kvbuf's own: ``out`` is written in place of a new
    tensor; ``sink`` (heads), float32, joins each row's denominator; ``k_descale``
    and ``v_descale`` of k and v of 8-bit floats, as `kvbuf.attention` has them, as it
    has 8-bit q with ``q_descale`` and ``output_scale``.
    ``more``: arguments of flash-attn 3 and 4, and of vLLM's (docs/engines.md)."""
    if more:
        return flash_attn_func(
            q, k, v, dropout_p, softmax_scale, causal, alibi_slopes=alibi_slopes,
            softcap=softcap, deterministic=deterministic,
            return_attn_probs=return_attn_probs, out=out, q_descale=q_descale,
            k_descale=k_descale, v_descale=v_descale, output_scale=output_scale,
            **_flash_arguments.resolve(
                "flash_attn_func", more, window_size=window_size, sink=sink,
                return_lse=return_lse))
    if output_scale is not None:
        v_descale = _attention.divided(q, v_descale, output_scale, out)
    want = True if return_attn_probs or return_lse else False
    key = options = wide = None
    if type(window_size) is not tuple:
        window_size = _attention.check_window("window_size", window_size)
    if (type(q) is type(k) is type(v) is _Tensor and alibi_slopes is None
            and out is None and sink is None and q_descale is None
            and k_descale is None and v_descale is None and not _is_traced()
            and not dispatch_modes() and not is_traced_by_jit()
            and not (function_modes() and is_before_dispatch())
            and level() is None and forward_ad._current_level < 0
            and not (_grad_enabled() and (q.requires_grad or k.requires_grad
                                          or v.requires_grad))
            and not (q.is_neg() or k.is_neg() or v.is_neg())):
        options = ("dense", dropout_p, softmax_scale, causal, window_size,
                   softcap, want)
        try:
            call = _calls_by_options.get(options)
            if call is not None:
                result = call(q, k, v)
                if result is not None:
                    if return_attn_probs:
                        return *result, q.new_empty((0,))
                    return result
            key = (q.shape, k.shape, v.shape, q.stride(), k.stride(),
                   v.stride(), q.dtype, k.dtype, v.dtype, q.device,
                   k.device, v.device, options)
            plan = _plans.get(key)
        except (TypeError, RuntimeError):  # what has no hash, or no strides
            key = plan = None
        data = plan and (q.data_ptr(), k.data_ptr(), v.data_ptr())
        if data and 0 not in data:  # torch's zeros have no memory
            if not want:
                return plan.run(q, data)
            both = plan.run_lse(q, data)
            if return_attn_probs:
                return *both, q.new_empty((0,))
            return both
    elif (type(q) is type(k) is type(v) is _Tensor and q_descale is None
            and _are_plain(q, k, v, alibi_slopes, sink, k_descale, v_descale, out)):
        wide = _Wide(("dense", dropout_p, softmax_scale, causal, window_size, softcap,
                      want), (q, k, v), _DENSE,
                     ((_ALIBI, alibi_slopes), (_SINK, sink), (_K_SCALES, k_descale),
                      (_V_SCALES, v_descale)), out, want)
        result = wide.find()
        if result is not None:
            return (*result, q.new_empty((0,))) if return_attn_probs else result
    elif isinstance(q, _Tensor):
        floats = q, k, v, alibi_slopes, sink, out, q_descale, k_descale, v_descale
        by_torch = _by_torch("flash_attn_func", *floats)
        if by_torch or is_operator("flash_attn_func", *floats):
            opts = _flash.options(softmax_scale, causal, window_size, softcap,
                                  dropout_p)
            if by_torch:
                _refuse_by_torch(alibi_slopes=alibi_slopes, q_descale=q_descale,
                                 k_descale=k_descale, v_descale=v_descale)
                result, lse = _plainly(q, k, v, *opts.values(), sink)
            else:
                result, lse = _flash_attn(
                    q=q, k=k, v=v, **_said(opts), alibi_slopes=alibi_slopes,
                    sink=sink, q_descale=q_descale, k_descale=k_descale,
                    v_descale=v_descale, output_scale=None,  # V's scale has it.
                    out_type=_type_of(out), return_lse=want)
            return _given(result, lse, out, return_attn_probs, return_lse)
    with _watched() as requests:
        result = _flash.dense(
            q, k, v, dropout_p, softmax_scale, causal, window_size, softcap,
            alibi_slopes, return_attn_probs, return_lse, out, sink,
            _settings.float32, q_descale, k_descale, v_descale)
    if key is not None:
        _remember(key, options, requests, (q, k, v), _DENSE)
    elif wide is not None:
        wide.remember(requests)
    return result


def _said(opts):
    """`_flash.options` under the functions' own names."""
    return {"softmax_scale": opts["scale"], "causal": opts["causal"],
            "window_size": (opts["left"], opts["right"]),
            "softcap": opts["softcap"]}


def _type_of(out):
    return None if out is None else out.dtype


def _given(result, lse, out, return_attn_probs, return_lse):
    if out is not None:
        _attention.require_shape("out", out, result.shape,
                                 "that of q, and v's head size")
        out.copy_(result)
        result = out
    if return_attn_probs:
        return result, lse, result.new_empty((0,))
    return (result, lse) if return_lse else result


def flash_attn_varlen_func(
        q: Tensor, k: Tensor, v: Tensor,
        cu_seqlens_q: Tensor, cu_seqlens_k: Tensor | None = None,
        max_seqlen_q: int | None = None, max_seqlen_k: int | None = None,
        dropout_p: float = 0.0,
        softmax_scale: float | None = None, causal: bool = False,
        window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0,
        alibi_slopes: Tensor | None = None, deterministic: bool = False,
        return_attn_probs: bool = False, block_table: Tensor | None = None, *,
        seqused_k: Tensor | None = None, min_seqlen_q: int | None = None,
        return_lse: bool = False,
        out: Tensor | None = None, sink: Tensor | None = None,
        q_descale: Tensor | None = None, k_descale: Tensor | None = None,
        v_descale: Tensor | None = None, output_scale: Tensor | None = None,
        dynamic_causal: Tensor | None = None, **more
        ) -> Tensor | tuple[Tensor, ...]:
    """Attention of a ragged batch: flash-attn's function of that name.

    q (all queries, heads, head size), k and v (all keys, KV heads, head size);
    sequence b has the rows cu_seqlens_q[b] to cu_seqlens_q[b + 1], and the keys
    likewise. Offsets are int32 (int64 is taken too) and stay on the device;
    ``max_seqlen_q`` bounds the longest query, for a better order of work, and
    kernels of few rows where it is small; a tensor of a GPU is not read, which would
    wait: then, as without it, that bound is q's rows. With ``block_table`` (batch,
    pages), k and v are pages (pages, page size, KV heads, head size), and a
    sequence's keys are the difference of cu_seqlens_k, or, where that is None,
    ``seqused_k`` (batch). softmax_lse is (heads, all queries).

    ``min_seqlen_q`` is kvbuf's own: what ``shortest_query`` is to `kvbuf.attention`.
    ``dynamic_causal`` (batch), flash-attn 4's: which sequences are causal, as booleans
    or integers, on the device; ``causal`` says nothing then, nor does a right side of 0
    of ``window_size``, by which a mask is causal.

    The rest is as for `flash_attn_func`."""
    if more:
        return flash_attn_varlen_func(
            q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
            dropout_p, softmax_scale, causal, softcap=softcap,
            alibi_slopes=alibi_slopes, deterministic=deterministic,
            return_attn_probs=return_attn_probs, seqused_k=seqused_k,
            min_seqlen_q=min_seqlen_q, out=out, q_descale=q_descale,
            k_descale=k_descale, v_descale=v_descale, output_scale=output_scale,
            dynamic_causal=dynamic_causal, **_flash_arguments.resolve(
                "flash_attn_varlen_func", more, window_size=window_size, sink=sink,
                block_table=block_table, return_lse=return_lse))
    if output_scale is not None:
        v_descale = _attention.divided(q, v_descale, output_scale, out)
    want = True if return_attn_probs or return_lse else False
    key = options = wide = None
    if type(window_size) is not tuple:
        window_size = _attention.check_window("window_size", window_size)
    if type(max_seqlen_q) is not int or type(max_seqlen_k) is not int:
        max_seqlen_q = _bound("max_seqlen_q", max_seqlen_q, q)
        max_seqlen_k = _bound("max_seqlen_k", max_seqlen_k, q)
    if (type(q) is type(k) is type(v) is type(cu_seqlens_q)
            is type(cu_seqlens_k) is _Tensor and alibi_slopes is None
            and out is None and sink is None and block_table is None
            and seqused_k is None and q_descale is None and k_descale is None
            and v_descale is None and dynamic_causal is None
            and not _is_traced() and not dispatch_modes() and not is_traced_by_jit()
            and not (function_modes() and is_before_dispatch())
            and level() is None and forward_ad._current_level < 0
            and not (_grad_enabled() and (q.requires_grad or k.requires_grad
                                          or v.requires_grad))
            and not (q.is_neg() or k.is_neg() or v.is_neg())):
        options = ("varlen", dropout_p, softmax_scale, causal, window_size,
                   softcap, want, max_seqlen_q, max_seqlen_k, min_seqlen_q)
        try:
            call = _calls_by_options.get(options)
            if call is not None:
                result = call(q, k, v, cu_seqlens_q, cu_seqlens_k)
                if result is not None:
                    if return_attn_probs:
                        return *result, q.new_empty((0,))
                    return result
            key = (q.shape, k.shape, v.shape, cu_seqlens_q.shape,
                   cu_seqlens_k.shape, q.stride(), k.stride(), v.stride(),
                   cu_seqlens_q.stride(), cu_seqlens_k.stride(), q.dtype,
                   k.dtype, v.dtype, cu_seqlens_q.dtype, cu_seqlens_k.dtype,
                   q.device, k.device, v.device, cu_seqlens_q.device,
                   cu_seqlens_k.device, options)
            plan = _plans.get(key)
        except (TypeError, RuntimeError):
            key = plan = None
        data = plan and (q.data_ptr(), k.data_ptr(), v.data_ptr(),
                         cu_seqlens_q.data_ptr(), cu_seqlens_k.data_ptr())
        if data and 0 not in data:
            if not want:
                return plan.run(q, data)
            both = plan.run_lse(q, data)
            if return_attn_probs:
                return *both, q.new_empty((0,))
            return both
    elif (type(q) is type(k) is type(v) is type(cu_seqlens_q) is _Tensor
            and q_descale is None and dynamic_causal is None
            and _are_plain(q, k, v, cu_seqlens_q, cu_seqlens_k, block_table, seqused_k,
                           alibi_slopes, sink, k_descale, v_descale, out)):
        wide = _Wide(("varlen", dropout_p, softmax_scale, causal, window_size, softcap,
                      want, max_seqlen_q, max_seqlen_k, min_seqlen_q),
                     (q, k, v, cu_seqlens_q), _RAGGED_ROWS,
                     ((_K_OFFSETS, cu_seqlens_k), (_TABLE, block_table),
                      (_LENGTHS, seqused_k), (_ALIBI, alibi_slopes), (_SINK, sink),
                      (_K_SCALES, k_descale), (_V_SCALES, v_descale)), out, want)
        result = wide.find()
        if result is not None:
            return (*result, q.new_empty((0,))) if return_attn_probs else result
    elif isinstance(q, _Tensor):
        floats = q, k, v, alibi_slopes, sink, out, q_descale, k_descale, v_descale
        by_torch = _by_torch("flash_attn_varlen_func", *floats)
        if by_torch or is_operator("flash_attn_varlen_func", *floats, cu_seqlens_q,
                                   cu_seqlens_k, block_table, seqused_k,
                                   dynamic_causal):
            opts = _flash.options(softmax_scale, causal, window_size, softcap,
                                  dropout_p)
            if by_torch:
                _refuse_by_torch(
                    alibi_slopes=alibi_slopes, block_table=block_table,
                    seqused_k=seqused_k, dynamic_causal=dynamic_causal,
                    q_descale=q_descale, k_descale=k_descale, v_descale=v_descale)
                result, lse = _varlen_plainly(q, k, v, cu_seqlens_q,
                                              cu_seqlens_k, opts, sink)
            else:
                result, lse = _flash_attn_varlen(
                    q=q, k=k, v=v, cu_seqlens_q=cu_seqlens_q,
                    cu_seqlens_k=cu_seqlens_k, max_seqlen_q=max_seqlen_q,
                    max_seqlen_k=max_seqlen_k, **_said(opts),
                    alibi_slopes=alibi_slopes, block_table=block_table,
                    seqused_k=seqused_k, min_seqlen_q=min_seqlen_q, sink=sink, q_descale=q_descale,
                    k_descale=k_descale, v_descale=v_descale, output_scale=None,
                    dynamic_causal=dynamic_causal,
                    out_type=_type_of(out), return_lse=want)
            return _given(result, lse, out, return_attn_probs, return_lse)
    with _watched() as requests:
        result = _flash.varlen(
            q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
            dropout_p, softmax_scale, causal, window_size, softcap,
            alibi_slopes, return_attn_probs, block_table, seqused_k, return_lse,
            out, sink, _settings.float32, q_descale, k_descale, v_descale,
            min_seqlen_q, dynamic_causal)
    if key is not None:
        _remember(key, options, requests,
                  (q, k, v, cu_seqlens_q, cu_seqlens_k), _RAGGED)
    elif wide is not None:
        wide.remember(requests)
    return result


def _bound(name, length, q):
    """A length that no sequence exceeds, as a number: q's rows where a tensor
    cannot be read now."""
    if length is None or (isinstance(length, _Tensor) and is_recorded()):
        return q.shape[0]
    return _flash.bound(name, length, q)


def flash_attn_with_kvcache(
        q: Tensor, k_cache: Tensor, v_cache: Tensor,
        k: Tensor | None = None, v: Tensor | None = None,
        rotary_cos: Tensor | None = None, rotary_sin: Tensor | None = None,
        cache_seqlens: int | Tensor | None = None,
        cache_batch_idx: Tensor | None = None,
        cache_leftpad: Tensor | None = None,
        block_table: Tensor | None = None, softmax_scale: float | None = None,
        causal: bool = False, window_size: tuple[int, int] = (-1, -1),
        softcap: float = 0.0, rotary_interleaved: bool = True,
        alibi_slopes: Tensor | None = None, num_splits: int = 0,
        return_softmax_lse: bool = False, *,
        cu_seqlens_q: Tensor | None = None, max_seqlen_q: int | None = None,
        out: Tensor | None = None, sink: Tensor | None = None,
        q_descale: Tensor | None = None, k_descale: Tensor | None = None,
        v_descale: Tensor | None = None, output_scale: Tensor | None = None,
        qv: Tensor | None = None, **more) -> Tensor | tuple[Tensor, ...]:
    """Attention over a cache: flash-attn's function of that name.

    q (batch, rows, heads, head size). k_cache and v_cache (slots, most tokens,
    KV heads, head size), the slot of a sequence its number or
    ``cache_batch_idx`` (batch); or, with ``block_table`` (batch, pages), pages
    (pages, page size, KV heads, head size) of any size. ``cache_seqlens``: the
    tokens that are cached, an int or (batch), int32 (int64 is taken too); without
    it a cache is full. The first ``cache_leftpad`` (batch) tokens do not count.

    New ``k`` and ``v`` (batch, new tokens, KV heads, head size) are first written
    to the cache at cache_seqlens; it must have room. kvbuf does that, and the
    rotation, by the framework's own operators before the kernel, on the same
    stream: several launches, no synchronization. ``rotary_cos`` and
    ``rotary_sin`` (positions, rotary size / 2) rotate k, and q, at their
    positions; without causal or window all of q is at cache_seqlens.
    ``rotary_interleaved``: columns 0 and 1, 2 and 3, ... make pairs, else column
    0 and rotary size / 2, ...

    ``num_splits`` is a hint that changes no result, and is not used yet. Returns
    out, or with ``return_softmax_lse`` (out, softmax_lse (batch, heads, rows)).

    Caches may be of torch's 8-bit floats, with ``k_descale`` and ``v_descale``
    as `kvbuf.attention` takes them, and q of the same, without new tokens, with
    ``q_descale`` and ``output_scale``.

    kvbuf's own: ``cu_seqlens_q`` (batch + 1) and ``max_seqlen_q`` for ragged q
    (all queries, heads, head size); ``out`` and ``sink`` as for
    `flash_attn_func`, and so are ``more``.

    ``qv`` (q's rows and heads, v_cache's columns), as flash-attn 3 has it for latent
    attention: scores are q k + qv v. k_cache and v_cache are then columns of the
    same rows, rows[..., n:] and rows[..., :n] (docs/latent.md)."""
    if more:
        return flash_attn_with_kvcache(
            q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, cache_seqlens,
            cache_batch_idx, cache_leftpad, softmax_scale=softmax_scale,
            causal=causal, softcap=softcap, rotary_interleaved=rotary_interleaved,
            alibi_slopes=alibi_slopes, num_splits=num_splits,
            cu_seqlens_q=cu_seqlens_q, max_seqlen_q=max_seqlen_q, out=out,
            q_descale=q_descale, k_descale=k_descale, v_descale=v_descale,
            output_scale=output_scale, qv=qv, **_flash_arguments.resolve(
                "flash_attn_with_kvcache", more, window_size=window_size, sink=sink,
                block_table=block_table, return_softmax_lse=return_softmax_lse))
    if qv is not None:
        q, k_cache, v_cache = _latent.whole_rows(q, qv, k_cache, v_cache, k, v)
    if output_scale is not None:
        v_descale = _attention.divided(q, v_descale, output_scale, out)
    descaled = k_descale is not None or v_descale is not None
    key = options = wide = None
    if type(window_size) is not tuple:
        window_size = _attention.check_window("window_size", window_size)
    table = cache_batch_idx if block_table is None else block_table
    if (type(cache_seqlens) is int and k is None and type(q) is type(k_cache) is _Tensor
            and _are_plain(q, k_cache) and k_cache.dim() == 4
            and (block_table is None or block_table.dim() == 2)):
        _flash.require_room(cache_seqlens, k, k_cache, block_table)
        cache_seqlens = _alike(cache_seqlens, len(q) if cu_seqlens_q is None
                               else len(cu_seqlens_q) - 1, q)
    if (type(q) is type(k_cache) is type(v_cache) is type(table)
            is type(cache_seqlens) is _Tensor and k is None and v is None
            and rotary_cos is None and rotary_sin is None and cache_leftpad is None
            and alibi_slopes is None and out is None and sink is None
            and cu_seqlens_q is None and q_descale is None and not descaled
            and k_cache.dtype == q.dtype and not _is_traced()
            and not dispatch_modes() and not is_traced_by_jit()
            and not (function_modes() and is_before_dispatch())
            and level() is None and forward_ad._current_level < 0
            and not (_grad_enabled() and (q.requires_grad
                                          or k_cache.requires_grad
                                          or v_cache.requires_grad))
            and not (q.is_neg() or k_cache.is_neg() or v_cache.is_neg())
            and (cache_batch_idx is None or block_table is None)):
        options = ("cache", softmax_scale, causal, window_size, softcap,
                   return_softmax_lse, num_splits)
        try:
            call = _calls_by_options.get(options)
            if call is not None:
                result = call(q, k_cache, v_cache, table, cache_seqlens)
                if result is not None:
                    return result
            key = (q.shape, k_cache.shape, v_cache.shape, table.shape,
                   cache_seqlens.shape, q.stride(), k_cache.stride(),
                   v_cache.stride(), table.stride(), cache_seqlens.stride(),
                   q.dtype, k_cache.dtype, v_cache.dtype, table.dtype,
                   cache_seqlens.dtype, q.device, k_cache.device,
                   v_cache.device, table.device, cache_seqlens.device, options)
            plan = _plans.get(key)
        except (TypeError, RuntimeError):
            key = plan = None
        data = plan and (q.data_ptr(), k_cache.data_ptr(), v_cache.data_ptr(),
                         table.data_ptr(), cache_seqlens.data_ptr())
        if data and 0 not in data:
            return (plan.run_lse if return_softmax_lse else plan.run)(q, data)
    elif (type(q) is type(k_cache) is type(v_cache) is type(cache_seqlens) is _Tensor
            and k is None and v is None and rotary_cos is None
            and rotary_sin is None and cache_leftpad is None and q_descale is None
            and (cache_batch_idx is None or block_table is None)
            and _are_plain(q, k_cache, v_cache, table, cache_seqlens, cu_seqlens_q,
                           alibi_slopes, sink, k_descale, v_descale, out)):
        if table is None and _is_within(cache_seqlens, k_cache, q, cu_seqlens_q):
            cache_batch_idx = table = _places(cache_seqlens)
        if table is not None:
            wide = _Wide(("cache", softmax_scale, causal, window_size, softcap,
                          return_softmax_lse, num_splits, max_seqlen_q),
                         (q, k_cache, v_cache, table, cache_seqlens), _CACHE,
                         ((_Q_OFFSETS, cu_seqlens_q), (_ALIBI, alibi_slopes),
                          (_SINK, sink), (_K_SCALES, k_descale),
                          (_V_SCALES, v_descale)), out, return_softmax_lse)
            result = wide.find()
            if result is not None:
                return result
    elif isinstance(q, _Tensor):
        floats = (q, k_cache, v_cache, k, v, rotary_cos, rotary_sin,
                  alibi_slopes, sink, q_descale, k_descale, v_descale, out)
        lost = wants_derivatives(*floats)
        if lost:
            raise NotImplementedError(f"flash_attn_with_kvcache {lost}")
        if is_operator("flash_attn_with_kvcache", *floats, cache_seqlens,
                       cache_batch_idx, cache_leftpad, block_table,
                       cu_seqlens_q):
            opts = _flash.options(softmax_scale, causal, window_size, softcap,
                                  0.0)
            if isinstance(max_seqlen_q, _Tensor):
                max_seqlen_q = _bound("max_seqlen_q", max_seqlen_q, q)
            if isinstance(cache_seqlens, int):
                batch = (q.shape[0] if cu_seqlens_q is None
                         else cu_seqlens_q.shape[0] - 1)
                if not is_recorded():  # whose sizes may be open
                    _flash.require_room(cache_seqlens, k, k_cache, block_table)
                cache_seqlens = torch.full((batch,), cache_seqlens,
                                           dtype=torch.int32, device=q.device)
            result, lse = _flash_attn_kvcache(
                q=q, k_cache=k_cache, v_cache=v_cache, k=k, v=v,
                rotary_cos=rotary_cos, rotary_sin=rotary_sin,
                cache_seqlens=cache_seqlens, cache_batch_idx=cache_batch_idx,
                cache_leftpad=cache_leftpad, block_table=block_table,
                **_said(opts), rotary_interleaved=rotary_interleaved,
                alibi_slopes=alibi_slopes, num_splits=num_splits,
                cu_seqlens_q=cu_seqlens_q, max_seqlen_q=max_seqlen_q, sink=sink,
                q_descale=q_descale, k_descale=k_descale, v_descale=v_descale,
                output_scale=None, out_type=_type_of(out),
                return_softmax_lse=bool(return_softmax_lse))
            return _given(result, lse, out, False, return_softmax_lse)
    with _watched() as requests:
        result = _flash.with_kvcache(
            q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, cache_seqlens,
            cache_batch_idx, cache_leftpad, block_table, softmax_scale, causal,
            window_size, softcap, rotary_interleaved, alibi_slopes, num_splits,
            return_softmax_lse, cu_seqlens_q, max_seqlen_q, out, sink,
            q_descale, k_descale, v_descale)
    if key is not None:
        _remember(key, options, requests,
                  (q, k_cache, v_cache, table, cache_seqlens), _CACHE)
    elif wide is not None:
        wide.remember(requests)
    return result


#: The first numbers, by their type, device and stream.
_FIRST: dict = {}


#: Lengths that are all one number, by it, their count, device and stream: a few, as
#: the layers of a step have the same.
_ALIKE: dict = {}
_MOST_ALIKE = 64


def _alike(length, count, q):
    """Lengths of so many sequences that are as long, where q is."""
    order = _tensors.order_of(q)
    key = length, count, order
    lengths = _ALIKE.get(key)
    if lengths is None:
        lengths = torch.full((count,), length, dtype=torch.int32, device=q.device)
        if order is not None:
            if len(_ALIKE) >= _MOST_ALIKE:
                _ALIKE.clear()
            _ALIKE[key] = lengths
    return lengths


def _is_within(lengths, cache, q, offsets):
    """Whether these are lengths of q's sequences, and a cache has a slot for each."""
    count = (q.shape[:1] if offsets is None
             else tuple(n - 1 for n in offsets.shape[:1]))
    return (lengths.shape == count and lengths.shape[0] <= cache.shape[0]
            and lengths.dtype in (torch.int32, torch.int64))


def _places(lengths):
    """The slots of sequences that lie in a cache as they do in the batch."""
    order = _tensors.order_of(lengths)
    count, key = lengths.shape[0], (lengths.dtype, order)
    places = _FIRST.get(key)
    if places is None or places.shape[0] < count:
        places = torch.arange(max(1024, 2 * count), dtype=lengths.dtype,
                              device=lengths.device)
        if order is not None:
            _FIRST[key] = places
    return places[:count]


def flash_attn_qkvpacked_func(
        qkv: Tensor, dropout_p: float = 0.0,
        softmax_scale: float | None = None, causal: bool = False,
        window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0,
        alibi_slopes: Tensor | None = None, deterministic: bool = False,
        return_attn_probs: bool = False) -> Tensor | tuple[Tensor, ...]:
    """`flash_attn_func` on qkv (batch, rows, 3, heads, head size)."""
    return flash_attn_func(*_unpacked("qkv", qkv, 5, 2, 3), dropout_p,
                           softmax_scale, causal, window_size, softcap,
                           alibi_slopes, deterministic, return_attn_probs)


def flash_attn_kvpacked_func(
        q: Tensor, kv: Tensor, dropout_p: float = 0.0,
        softmax_scale: float | None = None, causal: bool = False,
        window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0,
        alibi_slopes: Tensor | None = None, deterministic: bool = False,
        return_attn_probs: bool = False) -> Tensor | tuple[Tensor, ...]:
    """`flash_attn_func` on kv (batch, keys, 2, KV heads, head size)."""
    return flash_attn_func(q, *_unpacked("kv", kv, 5, 2, 2), dropout_p,
                           softmax_scale, causal, window_size, softcap,
                           alibi_slopes, deterministic, return_attn_probs)


def flash_attn_varlen_qkvpacked_func(
        qkv: Tensor, cu_seqlens: Tensor,
        max_seqlen: int, dropout_p: float = 0.0,
        softmax_scale: float | None = None, causal: bool = False,
        window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0,
        alibi_slopes: Tensor | None = None, deterministic: bool = False,
        return_attn_probs: bool = False) -> Tensor | tuple[Tensor, ...]:
    """`flash_attn_varlen_func` on qkv (all tokens, 3, heads, head size)."""
    return flash_attn_varlen_func(*_unpacked("qkv", qkv, 4, 1, 3), cu_seqlens,
                                  cu_seqlens,
                                  max_seqlen, max_seqlen, dropout_p,
                                  softmax_scale, causal, window_size, softcap,
                                  alibi_slopes, deterministic,
                                  return_attn_probs)


def flash_attn_varlen_kvpacked_func(
        q: Tensor, kv: Tensor,
        cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int,
        max_seqlen_k: int, dropout_p: float = 0.0,
        softmax_scale: float | None = None, causal: bool = False,
        window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0,
        alibi_slopes: Tensor | None = None, deterministic: bool = False,
        return_attn_probs: bool = False) -> Tensor | tuple[Tensor, ...]:
    """`flash_attn_varlen_func` on kv (all keys, 2, KV heads, head size)."""
    return flash_attn_varlen_func(q, *_unpacked("kv", kv, 4, 1, 2),
                                  cu_seqlens_q, cu_seqlens_k,
                                  max_seqlen_q, max_seqlen_k, dropout_p,
                                  softmax_scale, causal, window_size, softcap,
                                  alibi_slopes, deterministic,
                                  return_attn_probs)


def _unpacked(name, x, rank, dim, count):
    """The tensors that lie side by side in a dimension of x."""
    if len(x.shape) != rank or x.shape[dim] != count:
        raise ValueError(f"{name} has shape {tuple(x.shape)}; expected {rank} "
                         f"dimensions, and {count} tensors in dimension {dim}")
    return [x[(slice(None),) * dim + (i,)] for i in range(count)]


#===------------------------------------------------------------------------===#
# Operators
#===------------------------------------------------------------------------===#

_MORE = {"more": "other libraries' arguments, resolved"}
_LEFT = {"dropout_p": "refused unless it is 0", "out": "copied to", **_MORE}
_RESULTS = {"deterministic": "changes nothing",
            "return_attn_probs": "adds an empty tensor"}

_flash_attn = Operator("flash_attn", flash_attn_func, left={**_LEFT, **_RESULTS},
                       window="window_size", lse="return_lse")
_flash_attn_varlen = Operator(
    "flash_attn_varlen", flash_attn_varlen_func, left={**_LEFT, **_RESULTS},
    window="window_size", lse="return_lse", offsets="cu_seqlens_q")
_flash_attn_kvcache = Operator(
    "flash_attn_kvcache", flash_attn_with_kvcache,
    left={"out": _LEFT["out"], "qv": "joined with q", **_MORE},
    window="window_size", lse="return_softmax_lse", v="v_cache",
    written=("k_cache", "v_cache", "k_descale", "v_descale"),
    offsets="cu_seqlens_q")
_attention_operator = Operator(
    "attention", attention, window="window", lse="return_lse",
    offsets="q_offsets", left={
        "out": _LEFT["out"], "lse": "copied to",
        "device": "refused: that of the tensors",
        "stream": "refused: that of the graph"})


def attention_by_operator(*, window, softcap, return_lse, out, lse, device,
                          stream, **given):
    """kvbuf.attention as an operator of torch's."""
    if device is not None or stream is not None:
        raise ValueError("device and stream are given under torch.compile: they "
                         "are those of the tensors and the graph")
    result, numbers = _attention_operator(
        **given, window=_attention.check_window("window", window),
        softcap=softcap or 0.0, out_type=_type_of(out),
        return_lse=bool(return_lse or lse is not None))
    if lse is not None:
        _attention.require_shape("lse", lse, numbers.shape,
                                 "one number a row and head")
        numbers = lse.copy_(numbers)
    return _given(result, numbers, out, False, return_lse or lse is not None)
