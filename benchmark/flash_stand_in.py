# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""transformers' flash_attention_2 where flash-attn is not installed: torch has
flash-attn 2's kernels, too, and here they are under flash-attn's names.

`register` makes two names of transformers' `attn_implementation`: `FLASH` is
transformers' own code for flash-attn, and so cannot be a step of a CUDA graph over a
static cache, whose number of keys it would read on the host. `LENGTHS` is for these:
the kernel that flash-attn has for caches, with the numbers of keys on the device."""

import functools

import torch
import transformers
import transformers.modeling_flash_attention_utils as utilities
from torch.nn.attention.bias import causal_lower_right
from transformers.integrations.flash_attention import flash_attention_forward
from transformers.masking_utils import flash_attention_mask

from kvbuf import _masks
from kvbuf.transformers import mask as mask_of_lengths

FLASH, LENGTHS = "flash_attention_2_of_torch", "lengths_of_torch"


def _kernel(q, k, v, rows, keys, causal, scale, offsets=(None, None), used=None):
    """flash-attn's kernel: dense tensors [sequences, rows, heads, head size], or with
    offsets ragged ones, of which `used` says how many keys count."""
    if q.device.type == "cpu":
        return _on_host(q, k, v, causal, scale, *offsets, used)
    return torch.ops.aten._flash_attention_forward(
        q, k, v, *offsets, rows, keys, 0.0, causal, False, scale=scale,
        seqused_k=used)[0]


def _on_host(q, k, v, causal, scale, row_ends, key_ends, used):
    """The same by definition."""
    if row_ends is not None:
        ends = row_ends.tolist(), key_ends.tolist()
        counts = [None] * (len(row_ends) - 1) if used is None else used.tolist()
        return torch.cat([
            _on_host(q[None, i:j], k[None, a:b][:, :n], v[None, a:b][:, :n], causal,
                     scale, None, None, None)[0]
            for i, j, a, b, n in zip(ends[0], ends[0][1:], ends[1], ends[1][1:],
                                     counts)])
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    mask = causal_lower_right(q.shape[2], k.shape[2]) if causal else None
    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, mask, scale=scale, enable_gqa=True).transpose(1, 2)


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False):
    """flash-attn's, as far as models without windows and soft caps need it."""
    return _kernel(q, k, v, q.shape[1], k.shape[1], causal, softmax_scale)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                           max_seqlen_k, dropout_p=0.0, softmax_scale=None,
                           causal=False):
    """flash-attn's, to which transformers gives texts with padding."""
    return _kernel(q, k, v, max_seqlen_q, max_seqlen_k, causal, softmax_scale,
                   (cu_seqlens_q, cu_seqlens_k))


def one_row(q, k, v, lengths, scale):
    """A row a sequence [sequences, 1, heads, head size] over the first `lengths`
    keys of a static cache [sequences, KV heads, keys, head size]. Each KV head is a
    sequence, as they lie: torch's function, unlike flash-attn's own for caches, wants
    the keys of all sequences as one tensor."""
    batch, heads, keys, size = k.shape
    count = batch * heads
    out = _kernel(q.reshape(count, -1, size), k.view(-1, 1, size),
                  v.view(-1, 1, size), 1, keys, False, scale,
                  _offsets(count, keys, q.device),
                  lengths[:, None].expand(-1, heads).reshape(-1))
    return out.reshape(batch, 1, -1, size)


@functools.lru_cache(maxsize=None)
def _offsets(count, keys, device):
    """Of so many rows, and of as many times these keys: once, as flash-attn's own
    function needs none."""
    at = torch.arange(count + 1, dtype=torch.int32, device=device)
    return at, at * keys


def _by_lengths(module, query, key, value, attention_mask, scaling=None, **_):
    """Attention over a static cache: of prompts, before which it is empty, and of a
    token a text."""
    rows = query.shape[2]
    if rows > 1:
        return flash_attn_func(
            *(x[:, :, :rows].transpose(1, 2) for x in (query, key, value)),
            softmax_scale=scaling, causal=True), None
    form = _masks.form_of(attention_mask)
    return one_row(query.transpose(1, 2), key, value,
                   form.numbers[:, 0].contiguous(), scaling), None


def _imports(of_transformers):
    """transformers' search for flash-attn, to which its functions by torch are
    known."""
    def search(implementation, *arguments, **options):
        if implementation != FLASH:
            return of_transformers(implementation, *arguments, **options)
        return (flash_attn_func, flash_attn_varlen_func, None,
                utilities._pad_input, utilities._unpad_input)
    return search


def register():
    """Makes both names known to transformers."""
    utilities._lazy_imports = _imports(utilities._lazy_imports)
    transformers.AttentionInterface.register(FLASH, flash_attention_forward)
    transformers.AttentionMaskInterface.register(FLASH, flash_attention_mask)
    transformers.AttentionInterface.register(LENGTHS, _by_lengths)
    transformers.AttentionMaskInterface.register(LENGTHS, mask_of_lengths)
