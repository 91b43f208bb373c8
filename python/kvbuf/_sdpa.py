# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.nn.functional's function of attention."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.attention.bias import CausalBias, CausalVariant

from . import _flash
from ._operators import Operator
from ._plain import _by_torch, _torch_sdpa
from ._plans import (_calls_by_options, _is_traced, _keep, _laid_out_like,
                     _plans, _watched)
from ._settings import settings as _settings
from ._torch_state import (dispatch_modes, forward_ad, function_modes,
                           is_before_dispatch, is_operator, is_traced_by_jit, level)

_Tensor = torch.Tensor
_grad_enabled = torch.is_grad_enabled


def scaled_dot_product_attention(
        query: Tensor, key: Tensor, value: Tensor,
        attn_mask: Tensor | None = None, dropout_p: float = 0.0,
        is_causal: bool = False, scale: float | None = None,
        enable_gqa: bool = False) -> Tensor:
    """torch.nn.functional's function of that name: query (..., heads, rows, head
    size), key and value (..., heads, keys, head size).

    ``is_causal`` is aligned top-left, as torch's. With ``enable_gqa`` the heads
    of key and value divide query's; without, they are as many, or one.
    ``attn_mask`` broadcasts to (..., heads, rows, keys): booleans (true: the row
    sees the key) or float32 or query's floats that are added to scores; a row that
    sees no key is 0. NotImplementedError: ``dropout_p`` other than 0, dimensions
    that are broadcast, tensors that require gradients."""
    if isinstance(query, _Tensor):
        plain = (type(query) is type(key) is type(value) is _Tensor
                 and (attn_mask is None or type(attn_mask) is _Tensor)
                 and not _is_traced() and not dispatch_modes()
                 and not is_traced_by_jit()
                 and not (function_modes() and is_before_dispatch())
                 and level() is None and forward_ad._current_level < 0
                 and not (_grad_enabled() and (
                     query.requires_grad or key.requires_grad
                     or value.requires_grad or (attn_mask is not None and
                                                attn_mask.requires_grad))))
        if not plain:
            if isinstance(attn_mask, CausalBias):
                attn_mask, is_causal = _triangle(attn_mask, query, is_causal)
                return scaled_dot_product_attention(
                    query, key, value, attn_mask, dropout_p, is_causal, scale,
                    enable_gqa)
            tensors = query, key, value, attn_mask
            if _by_torch("scaled_dot_product_attention", *tensors):
                return _torch_sdpa(query, key, value, attn_mask, dropout_p,
                                   is_causal, scale=scale, enable_gqa=enable_gqa)
            if is_operator("scaled_dot_product_attention", *tensors):
                _flash.refuse("dropout_p", dropout_p, 0.0)
                return _sdpa(query=query, key=key, value=value,
                             attn_mask=attn_mask, is_causal=is_causal,
                             scale=scale, enable_gqa=enable_gqa)
        name = None
        tensors = query, key, value
        flags = None
        if attn_mask is not None:
            # Kernels read flags of 32 bits.
            if attn_mask.dtype is torch.bool:
                flags = attn_mask.to(torch.int32)
            elif attn_mask.dtype is torch.int32:
                plain = False  # a call that is refused, like a kept one
            tensors = query, key, value, attn_mask if flags is None else flags
        if plain and query.dim() == 4 and not (
                query.is_neg() or key.is_neg() or value.is_neg()
                or (attn_mask is not None and attn_mask.is_neg())):
            options = ("sdpa", dropout_p, is_causal, scale, enable_gqa,
                       len(tensors))
            call = _calls_by_options.get(options)
            if call is not None:
                result = call(*tensors)
                if result is not None:
                    return result
            plan = None
            try:
                name = (*[(x.shape, x.stride(), x.dtype, x.device)
                          for x in tensors], options)
                plan = _plans.get(name)
            except (TypeError, RuntimeError):
                pass
            data = plan and [x.data_ptr() for x in tensors]
            if data and 0 not in data:
                return plan.run(query, data)
        with _watched() as requests:
            result = _flash.sdpa(query, key, value, attn_mask, dropout_p,
                                 is_causal, scale, enable_gqa,
                                 _settings.float32, flags)
        if name is not None and len(requests) == 1:
            _remember_sdpa(name, options, requests, tensors, result)
        return result
    return _flash.sdpa(query, key, value, attn_mask, dropout_p, is_causal, scale,
                       enable_gqa, _settings.float32)


def _triangle(bias, query, is_causal):
    """(mask, is_causal) of torch's causal biases, whose memory holds nothing."""
    if is_causal:
        raise ValueError("attn_mask is a CausalBias and is_causal is true; expected "
                         "one of the two")
    if (bias.variant is CausalVariant.UPPER_LEFT
            or bias.seq_len_q == bias.seq_len_kv):
        return None, True
    return bias._materialize(query.device), False


def _remember_sdpa(name, options, requests, tensors, result):
    """As `_remember`, for operands that are views of torch's: transposed, or a
    mask that is spread over what it does not have."""
    request = requests[0]
    numbers = {"q": 0, "k": 1, "v": 2, "bias": 3, "keep": 3}
    if (request.finish or request.empty or request.problem.lse
            or request.problem.latent
            or not _laid_out_like(result, tensors[0])
            or any(x.data_ptr() != tensors[numbers[n]].data_ptr()
                   for n, x in request.tensors.items())):
        return
    # The kernel's tensors have the addresses of torch's.
    _keep(name, options, request, tensors, result,
          [numbers[n] for n in request.tensors], requests.plan)


_sdpa = Operator("sdpa", scaled_dot_product_attention,
                 left={"dropout_p": "refused unless it is 0"}, q="query", v="value")
