# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.nn.attention.flex_attention's function of that name."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention import flex_attention as _torch_flex

from . import _attention, _flex, _flex_compiled, _flex_lists, _ops
from ._library import Error
from ._report import Record
from ._settings import settings
from ._torch_state import speaker, transforms, wants_derivatives

#: torch's. Its warning that it is not compiled is about calls that kvbuf refuses.
_by_torch = _torch_flex.flex_attention

#: Of all calls of `flex_attention`.
record = Record()


def _require_shapes(query, key, value, enable_gqa):
    for name, x in ("query", query), ("key", key), ("value", value):
        _attention.require_rank(name, x, 4, "(batch, heads, rows, head size)")
    if query.shape[0] != key.shape[0]:
        raise NotImplementedError(
            f"query has a batch of {query.shape[0]}, and key of {key.shape[0]}; kvbuf "
            "takes batches that agree")
    if query.shape[1] != key.shape[1] and not enable_gqa:
        raise ValueError(f"query has {query.shape[1]} heads, and key "
                         f"{key.shape[1]}; expected as many, or enable_gqa")


def _require_mask(block_mask, query, key):
    if not key.shape[2]:
        raise ValueError("there are no keys, which torch refuses")
    if why := _flex_lists.why_other_sizes(block_mask, query, key):
        raise ValueError(why)


def _wanted(return_lse, return_aux):
    """Whether log-sum-exps are wanted."""
    if return_aux is not None and return_aux.max_scores:
        raise NotImplementedError("return_aux asks for max_scores, which no kernel "
                                  "returns")
    return bool(return_lse or (return_aux is not None and return_aux.lse))


def _by_kernel(query, key, value, score_mod, block_mask, scale, enable_gqa, want,
               convert):
    """(out, lse or None) of a kernel."""
    others = speaker(query, key, value)
    if others:
        raise NotImplementedError(f"{others} is torch's to ask")
    if transforms():
        raise NotImplementedError("the call is under a transform of torch.func's")
    _require_shapes(query, key, value, enable_gqa)
    _require_mask(block_mask, query, key)
    lists = _flex_lists.for_kernel(block_mask, query, key)
    rows, keys = query.shape[2], key.shape[2]
    traced, given = _flex.traced(score_mod, _flex_lists.function_of(block_mask),
                                 query.device)
    regions = traced.regions(rows == keys)
    if _flex_lists.has_lists(block_mask) and _flex_lists.function_of(block_mask) and (
            not regions.visible and _flex_lists.follow(block_mask, regions,
                                                       query.device)):
        # A window alone is what a kernel has without lists.
        lists = None
    elif _flex_lists.has_lists(block_mask) and (not lists or traced.hides_by_score):
        # Keys that the score hides are hidden in blocks, too, that the mask shows whole.
        lists = None
        traced, given = _flex.traced(
            score_mod, _flex_lists.as_function(block_mask, query, key), query.device)
        regions = traced.regions(rows == keys)
    lost = wants_derivatives(query, key, value, *given)
    if lost:
        raise NotImplementedError(f"flex_attention {lost.partition(';')[0]}")
    captured = []
    if regions.score or regions.visible:
        captured = traced.captures.tensors(given, query.device)
        traced.require_sizes(captured, {
            "batch": query.shape[0], "head": query.shape[1], "row": rows,
            "key": keys})
    return _launch(query, key, value, regions, captured, lists or ("", []), scale,
                   want, convert)


def _launch(query, key, value, regions, captured, lists, scale, want, convert):
    """(out, lse or None) of the kernel of these Regions."""
    kind, tensors = lists
    given = [regions.captures] if regions.score or regions.visible else []
    given += (f"{x.ndim}:i32" for x in tensors)
    fields = {"score": regions.score, "visible": regions.visible, "block_mask": kind,
              "captures": ",".join(filter(None, given))}
    ops = _ops.of(query)
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    # In memory as torch has it: rows of a head lie together.
    out = torch.empty((*query.shape[:-1], value.shape[-1]), dtype=query.dtype,
                      device=query.device).transpose(1, 2)
    request = _attention.build(
        ops, q, k, v, scale=scale, causal=regions.causal, left=regions.left,
        right=regions.right, softcap=regions.softcap, out=out, want_lse=want,
        convert=convert, regions=fields, captured=[*captured, *tensors])
    out, lse = _attention.run(ops, request, q)
    return out.transpose(1, 2), lse


_flex_compiled.launch, _flex_compiled.record = _launch, record
_is_operator = _flex_compiled.available()


def _why_not(query, key, value, block_mask, enable_gqa, return_aux, convert):
    """Why a call that Dynamo traces is torch's; "" if it is not."""
    try:
        _wanted(False, return_aux)
        _require_shapes(query, key, value, enable_gqa)
        _require_mask(block_mask, query, key)
    except (NotImplementedError, ValueError) as why:
        return str(why)
    lost = wants_derivatives(query, key, value)
    if lost:
        return f"flex_attention {lost.partition(';')[0]}"
    if query.dtype not in (torch.bfloat16, torch.float16) and not (
            convert and query.dtype == torch.float32):
        return (f"q has type {str(query.dtype).removeprefix('torch.')}; expected "
                "float16 or bfloat16")
    return ""


def _as_operator(query, key, value, score_mod, block_mask, scale, want, convert):
    """(out, lse) while Dynamo traces."""
    lists = _flex_lists.for_kernel(block_mask, query, key)
    mask = _flex_lists.function_of(block_mask)
    alone = lists is not None and mask is None
    if _flex_lists.has_lists(block_mask) and lists is None:
        mask = _flex_lists.as_function(block_mask, query, key)
    if block_mask is None:
        block_mask = _torch_flex._create_empty_block_mask(query, key)
    if mask is None:
        mask = _torch_flex.noop_mask
    parts = (*block_mask.as_tuple()[:-1], mask)
    return _flex_compiled.call(query, key, value, score_mod, parts, lists, alone,
                               block_mask.BLOCK_SIZE, scale, want, convert)


def _refused(why):
    """Notes a call that is torch's, once a graph."""
    record.refused[why] += 1
    return True


# Dynamo calls this function as it traces.
_refused._dynamo_marked_constant = True


def flex_attention(
        query: Tensor, key: Tensor, value: Tensor,
        score_mod: Callable | None = None,
        block_mask: _torch_flex.BlockMask | None = None,
        scale: float | None = None, enable_gqa: bool = False,
        return_lse: bool = False, kernel_options: dict | None = None, *,
        return_aux: _torch_flex.AuxRequest | None = None
        ) -> Tensor | tuple[Tensor, ...]:
    """torch.nn.attention.flex_attention's function of that name: query (batch,
    heads, rows, head size), key and value (batch, KV heads, keys, head size).

    ``score_mod(score, batch, head, row, key)`` and the mask function of
    ``block_mask`` are traced once, and are regions of the kernel; windows and causal
    masks about as many rows as keys, and soft caps, are what kernels have for
    these. Tensors that they capture are read at each call. A row that sees no key
    is 0. ``kernel_options`` are hints to torch's kernels, and are not used.

    What kvbuf does not take goes to torch: `flex_report` says what and why. Under
    torch.compile a call is an operator of the graph, whose arguments are the captured
    tensors."""
    if _is_operator and torch.compiler.is_dynamo_compiling():
        why = _why_not(query, key, value, block_mask, enable_gqa, return_aux,
                       settings.float32)
        if why:
            _refused(why)
            return _by_torch(query, key, value, score_mod, block_mask, scale,
                             enable_gqa, return_lse, kernel_options,
                             return_aux=return_aux)
        want = return_lse or (return_aux is not None and return_aux.lse)
        out, lse = _as_operator(query, key, value, score_mod, block_mask, scale, want,
                                settings.float32)
        if return_aux is not None:
            return out, _torch_flex.AuxOutput(lse=lse if want else None)
        return (out, lse) if return_lse else out
    return _run(query, key, value, score_mod, block_mask, scale, enable_gqa,
                return_lse, kernel_options, return_aux)


@torch.compiler.disable
def _run(query, key, value, score_mod, block_mask, scale, enable_gqa, return_lse,
         kernel_options, return_aux):
    """flex_attention outside of graphs."""
    try:
        want = _wanted(return_lse, return_aux)
        out, lse = _by_kernel(query, key, value, score_mod, block_mask, scale,
                              enable_gqa, want, settings.float32)
    except (NotImplementedError, ValueError, Error) as why:
        record.refused[str(why)] += 1
        return _by_torch(query, key, value, score_mod, block_mask, scale, enable_gqa,
                         return_lse, kernel_options, return_aux=return_aux)
    record.taken += 1
    if return_aux is not None:
        return out, _torch_flex.AuxOutput(lse=lse)
    return (out, lse) if return_lse else out


def flex_report() -> str:
    """Which calls of `flex_attention` kvbuf took, and why torch had the others."""
    return record.report()
