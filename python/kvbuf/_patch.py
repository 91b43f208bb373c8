# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's function of attention, by kvbuf in models that are there."""

from __future__ import annotations

import contextlib
import threading

import torch
from torch.nn.attention.bias import CausalBias

from . import _flash
from ._library import Error
from ._report import Record
from ._sdpa import _triangle, scaled_dot_product_attention
from ._settings import settings as _settings
from ._torch_state import function_modes, speaker, wants_derivatives

_Tensor = torch.Tensor
_torch_sdpa = torch.nn.functional.scaled_dot_product_attention
_is_compiling = torch.compiler.is_compiling


class Patch(Record):
    """What `patch_sdpa` returns; as a context manager it ends with the block."""

    def __init__(self, emulate):
        super().__init__()
        self.emulate = emulate
        #: What is in the place of torch's function.
        self.function = None
        self._lifting, self._lifts = threading.Lock(), 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def remove(self):
        """Torch's own function again."""
        with self._lifting:
            if torch.nn.functional.scaled_dot_product_attention is self.function:
                torch.nn.functional.scaled_dot_product_attention = _torch_sdpa
            self.function = None

    @contextlib.contextmanager
    def _lifted(self):
        """Torch's own function in its place: classes of tensors know it by what
        they find there. Other threads' calls are torch's, too, so long."""
        functional = torch.nn.functional
        with self._lifting:
            self._lifts += 1
            if functional.scaled_dot_product_attention is self.function:
                functional.scaled_dot_product_attention = _torch_sdpa
        try:
            yield
        finally:
            with self._lifting:
                self._lifts -= 1
                if (self._lifts == 0 and self.function is not None and
                        functional.scaled_dot_product_attention is _torch_sdpa):
                    functional.scaled_dot_product_attention = self.function


def _graph_takes(emulate, query, key, value, attn_mask, dropout_p, is_causal,
                 enable_gqa):
    """Whether kvbuf's operator takes a call that is traced: what it refuses, a
    graph cannot give to torch."""
    return (dropout_p == 0.0 and (emulate or query.device.type != "cpu")
            and query.dtype in (torch.float16, torch.bfloat16)
            and key.dtype == query.dtype and value.dtype == query.dtype
            and (attn_mask is None or attn_mask.dtype in (
                torch.bool, torch.float32, query.dtype))
            and not _flash.sdpa_refusal(
                query.shape, key.shape, value.shape,
                None if attn_mask is None else attn_mask.shape, is_causal,
                enable_gqa)
            and not wants_derivatives(query, key, value, attn_mask))


def patch_sdpa(*, emulate: bool = False) -> Patch:
    """Routes torch.nn.functional.scaled_dot_product_attention to kvbuf, for all
    code that looks it up there, and what kvbuf does not take to torch.

    Calls with ``attn_mask`` are taken, booleans and floats alike, and torch's causal
    biases; a row that sees no key is 0. Returns a Patch, whose `report` says what was
    not taken and why, and whose `remove` undoes it. Tensors of the host go to torch,
    unless ``emulate``, and so do those whose class, or a mode, has torch's functions
    in its own hands. Under torch.compile calls are not counted."""
    patch = Patch(emulate)

    def scaled_dot_product_attention_by_kvbuf(
            query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False,
            scale=None, enable_gqa=False):
        if _is_compiling():
            if isinstance(attn_mask, CausalBias):
                attn_mask, is_causal = _triangle(attn_mask, query, is_causal)
            call = (scaled_dot_product_attention if _graph_takes(
                emulate, query, key, value, attn_mask, dropout_p, is_causal,
                enable_gqa) else _torch_sdpa)
            return call(query, key, value, attn_mask, dropout_p, is_causal,
                        scale=scale, enable_gqa=enable_gqa)
        others = ""
        try:
            if (type(query) is not _Tensor or type(key) is not _Tensor
                    or type(value) is not _Tensor or function_modes()
                    or (attn_mask is not None
                        and type(attn_mask) is not _Tensor)):
                others = speaker(query, key, value, None if isinstance(
                    attn_mask, CausalBias) else attn_mask)
                if others:
                    raise NotImplementedError(f"{others} is torch's to ask")
            if query.device.type == "cpu" and not emulate:
                raise NotImplementedError("the tensors are in host memory")
            if _settings.gradients == "torch":
                lost = wants_derivatives(query, key, value, attn_mask)
                if lost:
                    raise NotImplementedError(lost.partition(";")[0])
            result = scaled_dot_product_attention(
                query, key, value, attn_mask, dropout_p, is_causal, scale,
                enable_gqa)
            patch.taken += 1
            return result
        except (NotImplementedError, ValueError, Error) as why:
            patch.refused[str(why)] += 1
        with (patch._lifted() if others or isinstance(attn_mask, CausalBias)
              else contextlib.nullcontext()):
            return _torch_sdpa(query, key, value, attn_mask, dropout_p, is_causal,
                               scale=scale, enable_gqa=enable_gqa)

    patch.function = scaled_dot_product_attention_by_kvbuf
    torch.nn.functional.scaled_dot_product_attention = patch.function
    return patch
