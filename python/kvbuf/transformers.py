# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of transformers' models, by one line:

    import kvbuf.transformers
    kvbuf.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(..., attn_implementation="kvbuf")

It takes every architecture whose attention goes through transformers'
AttentionInterface. What no kernel takes goes to torch, and models with attention of
their own keep it; the report says so.
"""

from __future__ import annotations

import functools
import warnings

import torch
from torch import Tensor
from transformers import (AttentionInterface, AttentionMaskInterface,
                          PreTrainedModel)
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import causal_mask_function, sdpa_mask

from . import _masks, _own_attention
from . import torch as functions
from ._attention import attention
from ._library import Error

__all__ = ["Registration", "register"]

_is_compiling = torch.compiler.is_compiling


class Registration(functions.Patch):
    """What `register` returns; as a context manager it ends with the block."""

    def __init__(self, name, emulate, float32):
        super().__init__(emulate)
        self.name, self.float32 = name, float32

        # Each is a function of its own: torch.compile guards on it.
        def attention_by_kvbuf(module, query, key, value, attention_mask,
                               **options):
            return _forward(self, module, query, key, value, attention_mask,
                            **options)

        self.attention = attention_by_kvbuf

    def _leaves(self, model_class):
        """Whether a model keeps attention of its own; then says so."""
        why = _own_attention.of(model_class)
        if why:
            self.refused[why] += 1
            warnings.warn(f"attn_implementation is {self.name!r}, and {why}; the model "
                          "keeps it", stacklevel=3)
        return bool(why)

    def remove(self):
        """transformers forgets the name."""
        if _registered.get(self.name) is self:
            del _registered[self.name]
        if AttentionInterface._global_mapping.get(self.name) is self.attention:
            del AttentionInterface._global_mapping[self.name]
            del AttentionMaskInterface._global_mapping[self.name]


def register(name: str = "kvbuf", *, emulate: bool = False,
             float32: str | None = None) -> Registration:
    """Makes ``name`` an ``attn_implementation`` of transformers' models.

    Padding becomes numbers of keys or ranges of them, causal masks and windows are
    flags; a mask that is none of these is read element by element. Soft caps, sinks,
    biases of positions, heads that share keys, values with a head size of their own,
    packed sequences (``cu_seq_lens_q``) and pages (``block_table``) are taken.

    ``float32``: "bfloat16" or "float16" rounds models of float32 to it, whose results
    are float32 again; by default torch computes them. Tensors of the host go to torch,
    unless ``emulate``. A name with "flash" in it is what transformers' continuous
    batching asks for. Returns a Registration, whose `report` says what torch computed
    and why, and whose `remove` undoes it. Under torch.compile calls are not counted."""
    if float32 not in (None, "bfloat16", "float16"):
        raise ValueError(f"float32 is {float32!r}; expected \"bfloat16\" or "
                         "\"float16\"")
    registration = Registration(name, emulate, float32)
    _look_at_models()
    _registered[name] = registration
    AttentionInterface.register(name, registration.attention)
    AttentionMaskInterface.register(name, mask)
    return registration


#: Registrations by their names.
_registered: dict[str, Registration] = {}


def _look_at_models():
    """From now on a model that is given a registration's name and has attention of
    its own takes what transformers would have chosen for it. Nothing else asks what
    class a model is before masks are made, which such a model would misread."""
    choose = getattr(PreTrainedModel, "get_correct_attn_implementation", None)
    if choose is None or hasattr(choose, "asks_kvbuf"):
        return

    @functools.wraps(choose)
    def get_correct_attn_implementation(self, requested_attention, *more, **options):
        registration = _registered.get(
            str(requested_attention).removeprefix("paged|"))
        if registration is not None and registration._leaves(type(self)):
            requested_attention = None
        return choose(self, requested_attention, *more, **options)

    get_correct_attn_implementation.asks_kvbuf = True
    PreTrainedModel.get_correct_attn_implementation = get_correct_attn_implementation


#===------------------------------------------------------------------------===#
# Masks
#===------------------------------------------------------------------------===#


def mask(batch_size, q_length, kv_length, q_offset=0, kv_offset=0,
         mask_function=causal_mask_function, attention_mask=None,
         local_size=None, allow_is_causal_skip=True,
         allow_is_bidirectional_skip=False, use_vmap=False, device="cpu",
         config=None, **options) -> Tensor | None:
    """The mask of a forward pass, of transformers' AttentionMaskInterface: None, what
    `_masks` makes of it, or booleans [sequences, 1, rows, keys]."""
    pattern, form = None, False
    # What a compiled cache decodes with is made here, too, and wants no booleans.
    free = (allow_is_causal_skip or allow_is_bidirectional_skip
            or (q_length == 1 and isinstance(q_offset, Tensor)
                and not _wants_elements(config)))
    traced = _is_compiling()
    if free and not use_vmap and not traced:
        pattern = _masks.pattern_of(mask_function)
    if pattern is not None:
        form = _masks.make(batch_size, q_length, kv_length, q_offset, kv_offset,
                           pattern, attention_mask, device)
    if form is None:
        return None
    if form:
        return form.tensor()
    # torch's own may leave out a mask that is causal from the top left.
    skip = allow_is_causal_skip and traced and kv_length == q_length
    return sdpa_mask(
        batch_size, q_length, kv_length, q_offset, kv_offset, mask_function,
        attention_mask, local_size, allow_is_causal_skip=skip,
        allow_is_bidirectional_skip=allow_is_bidirectional_skip and traced,
        use_vmap=use_vmap, device=device)


def _wants_elements(config):
    """Whether a model computes with its mask."""
    return "indexed_attention" in (getattr(config, "layer_types", None) or ())


#===------------------------------------------------------------------------===#
# Attention
#===------------------------------------------------------------------------===#


def _forward(registration, module, query, key, value, attention_mask,
             dropout=0.0, scaling=None, sliding_window=None, softcap=None,
             is_causal=None, s_aux=None, position_bias=None, **options):
    """transformers' attention: query, key and value [sequences, heads, rows, head
    size]; (out [sequences, rows, heads, head size], None)."""
    if is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    call = _Call(query, key, value, scaling, softcap, s_aux, position_bias)
    if all(options.get(n) is not None for n in
           ("block_table", "cu_seq_lens_k", "k_cache", "v_cache")):
        # transformers itself has no other way, so it is no question of falling back.
        return call.paged(is_causal, sliding_window, options), None
    call.understand(attention_mask, is_causal, sliding_window, options)
    why = _refused(registration, call, dropout)
    if not _is_compiling():
        if why is None:
            try:
                result = call.by_kvbuf(registration.float32)
                registration.taken += 1
                return result, None
            except (NotImplementedError, ValueError, Error) as error:
                why = str(error)
        registration.refused[why] += 1
    elif why is None:
        return call.by_kvbuf(registration.float32), None
    return call.by_torch(module, dropout), None


def _wants_gradients(*tensors):
    return torch.is_grad_enabled() and any(
        x is not None and x.requires_grad for x in tensors)


def _refused(registration, call, dropout):
    """Why torch computes a call, or None."""
    query, key = call.query, call.key
    if query.device.type == "cpu" and not registration.emulate:
        return "the tensors are in host memory"
    if dropout:
        return "dropout is not 0, as for all of training"
    if _wants_gradients(query, key, call.value, call.bias):
        return "a tensor requires gradients"
    if query.dtype == torch.float32 and registration.float32 is None:
        return "the tensors are float32, and register was not told to round them"
    if query.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        return f"the tensors are {str(query.dtype).removeprefix('torch.')}"
    if key.shape[0] != query.shape[0]:
        return (f"key is of {key.shape[0]} sequences, and query of "
                f"{query.shape[0]}")
    if query.shape[1] % key.shape[1]:
        return f"{query.shape[1]} heads are no multiple of {key.shape[1]}"
    return None


class _Call:
    """A call of a layer's."""

    def __init__(self, query, key, value, scale, softcap, sink, bias):
        self.query, self.key, self.value = query, key, value
        self.scale, self.softcap = scale, softcap or 0.0
        self.sink, self.bias = sink, bias
        if bias is not None:
            self.bias = bias[..., :key.shape[2]]
            if bias.dim() == 3:
                self.bias = self.bias[None]
        #: A mask by its elements, booleans or numbers that are added.
        self.mask = None
        #: What it is besides.
        self.form = None
        self.longest = None

    def understand(self, mask, is_causal, sliding_window, options):
        """Finds out what `mask` and the layer's own flags say."""
        rows, keys = self.query.shape[2], self.key.shape[2]
        window = -1 if sliding_window is None else sliding_window - 1
        self.form = _masks.Form(bool(is_causal), window, "flags")
        form = None if mask is None else _masks.form_of(mask)
        packed = [options.get(n) for n in ("cu_seq_lens_q", "cu_seq_lens_k",
                                           "max_length_q", "max_length_k")]
        if (all(x is not None for x in packed) and self.query.shape[0] == 1
                and (mask is None or (form and form.kind == "offsets"))):
            self.form = (form or self.form)._replace(
                kind="offsets", numbers=torch.stack(
                    [x.to(torch.int32) for x in packed[:2]]))
            self.longest = tuple(packed[2:])
        elif form:
            self.form = form
            if form.kind == "offsets":
                self.longest = rows, keys
        elif mask is not None and mask.dim() == 2:
            # Padding alone, of the last keys.
            mask = mask[:, -keys:].to(torch.bool)
            missing = keys - mask.shape[1]
            self.mask = torch.nn.functional.pad(mask, (0, missing))[:, None, None]
        elif mask is not None:
            self.form = _masks.Form(False, -1, "flags")
            self.mask = mask[..., :keys]

    def elements(self):
        """Everything that masks say, element by element: None, booleans or
        numbers."""
        seen = _masks.as_booleans(self.form, self.query.shape[2],
                                  self.key.shape[2], self.query.device)
        if self.mask is None or seen is None:
            return self.mask if seen is None else seen
        if self.mask.dtype == torch.bool:
            return self.mask & seen
        return self.mask.masked_fill(~seen, float("-inf"))

    def by_kvbuf(self, float32):
        """[sequences, rows, heads, head size]."""
        q, k, v = (x.transpose(1, 2) for x in (self.query, self.key, self.value))
        dtype = q.dtype
        if dtype == torch.float32:
            q, k, v = (x.to(getattr(torch, float32)) for x in (q, k, v))
        sink = None if self.sink is None else self.sink.float()
        form = self.form
        if self.bias is not None or self.mask is not None:
            out = self._with_elements(q, k, v, sink)
        elif form.kind == "flags":
            out = functions.flash_attn_func(
                q, k, v, softmax_scale=self.scale, causal=form.causal,
                window_size=(form.left, form.right), softcap=self.softcap,
                sink=sink)
        elif form.kind == "lengths":
            slots = torch.arange(q.shape[0], dtype=torch.int32, device=q.device)
            out = functions.flash_attn_with_kvcache(
                q, k, v, cache_seqlens=form.numbers[:, 0].contiguous(),
                cache_batch_idx=slots, softmax_scale=self.scale,
                causal=form.causal, window_size=(form.left, form.right),
                softcap=self.softcap, sink=sink)
        else:
            out = self._ragged(q, k, v, sink)
        return out if out.dtype == dtype else out.to(dtype)

    def _with_elements(self, q, k, v, sink):
        form, scores = self.form, {}
        causal, left, right = form.causal, form.left, form.right
        mask = self.mask
        if form.kind != "flags":
            mask, causal, left, right = self.elements(), False, -1, -1
        numbers = [x for x in (self.bias, mask)
                   if x is not None and x.dtype != torch.bool]
        if numbers:
            scores["bias"] = numbers[0] if len(numbers) == 1 else sum(numbers)
        if mask is not None and mask.dtype == torch.bool:
            scores["mask"] = mask
        if (len(scores) == 1 and sink is None
                and not (causal or self.softcap or left >= 0)):
            # The same kernel, by the function that remembers its launches.
            return functions.scaled_dot_product_attention(
                *(x.transpose(1, 2) for x in (q, k, v)), *scores.values(),
                scale=self.scale, enable_gqa=True).transpose(1, 2)
        return attention(q, k, v, causal=causal, window=(left, right),
                         scale=self.scale, softcap=self.softcap, sink=sink,
                         **scores)

    def _ragged(self, q, k, v, sink):
        batch, rows, keys = q.shape[0], q.shape[1], k.shape[1]
        form, longest = self.form, self.longest
        if form.kind == "segments":
            offsets, longest = _masks.segments(form, rows, keys), (rows, keys)
        else:
            offsets = form.numbers[0].contiguous(), form.numbers[-1].contiguous()
        flat = [x.reshape(-1, *x.shape[2:]) for x in (q, k, v)]
        out = functions.flash_attn_varlen_func(
            *flat, *offsets, *(int(n) for n in longest),
            softmax_scale=self.scale, causal=form.causal,
            window_size=(form.left, form.right), softcap=self.softcap, sink=sink)
        return out.reshape(batch, rows, *out.shape[1:])

    def paged(self, is_causal, sliding_window, options):
        """One new token a sequence, which is first written to its page."""
        q, k, v = (x.transpose(1, 2).reshape(-1, 1, x.shape[1], x.shape[3])
                   for x in (self.query, self.key, self.value))
        ends = options["cu_seq_lens_k"].to(torch.int32)
        count = q.shape[0]
        window = -1 if sliding_window is None else sliding_window - 1
        out = functions.flash_attn_with_kvcache(
            q, options["k_cache"], options["v_cache"], k, v,
            cache_seqlens=ends[1:count + 1] - ends[:count] - 1,
            block_table=options["block_table"], softmax_scale=self.scale,
            causal=bool(is_causal), window_size=(window, window),
            softcap=self.softcap,
            sink=None if self.sink is None else self.sink.float())
        return out.reshape(self.query.shape[0], -1, *out.shape[2:])

    def by_torch(self, module, dropout):
        """By transformers' own use of torch's function, or by plain operators what
        that has not."""
        bias, rows = self.bias, self.query.shape[2]
        is_causal = (self.mask is None and rows == self.key.shape[2]
                     and self.form[:3] == (True, -1, "flags"))
        mask = None if is_causal else self.elements()
        if not self.softcap and self.sink is None:
            return sdpa_attention_forward(
                module, self.query, self.key, self.value, mask, dropout=dropout,
                scaling=self.scale, is_causal=is_causal, position_bias=bias)[0]
        q, k, v = self.query, self.key, self.value
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
        scale = q.shape[-1] ** -0.5 if self.scale is None else self.scale
        scores = (q @ k.transpose(2, 3) * scale).float()
        if self.softcap:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        if bias is not None:
            scores = scores + bias
        if is_causal:
            mask = self.elements()
        if mask is not None and mask.dtype != torch.bool:
            scores = scores + mask
        elif mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        if self.sink is not None:
            sinks = self.sink.float()[None, :, None, None]
            scores = torch.cat([scores, sinks.expand(*scores.shape[:3], 1)], -1)
        weights = torch.softmax(scores, -1)[..., :k.shape[2]].to(v.dtype)
        weights = torch.nn.functional.dropout(weights, dropout)
        return (weights @ v).transpose(1, 2)
