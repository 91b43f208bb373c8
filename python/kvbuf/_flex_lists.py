# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lists of blocks of FlexAttention's BlockMask. A key is seen where they name its
block, and the function, if there is one, is true."""

from __future__ import annotations

import weakref

import torch
from torch.nn.attention import flex_attention as _torch_flex

from . import _attention

#: Rows and keys of blocks are multiples of this where kernels visit what lists name:
#: those of the smallest tiles of queries.
_TILE = 64

#: What was found out about BlockMasks, by them.
_known: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def function_of(block_mask):
    """A BlockMask's function, or None where it has none."""
    if block_mask is None or block_mask.mask_mod in (None, _torch_flex.noop_mask):
        return None
    return block_mask.mask_mod


def has_lists(block_mask):
    """Whether lists say something: torch's own, of a call without a mask, do not."""
    return block_mask is not None and block_mask.seq_lengths != (1, 1)


def why_other_sizes(block_mask, query, key):
    """Why a BlockMask is of another call; "" if it is not. torch refuses such, too."""
    if not has_lists(block_mask):
        return ""
    rows, keys = block_mask.seq_lengths
    if rows != query.shape[2] or keys != key.shape[2]:
        return (f"block_mask is of {rows} rows and {keys} keys; expected "
                f"those of the call, {query.shape[2]} and {key.shape[2]}")
    for n, have, want in zip(("a batch", "heads"), block_mask.shape[:-2], query.shape):
        if have not in (1, want):
            return f"block_mask has {n} of {have}; expected 1 or {want}"
    return ""


def for_kernel(block_mask, query, key):
    """(the Problem's block_mask, its tensors) where kernels can visit the blocks that
    a BlockMask lists, or None: there are many rows, in blocks that are whole tiles."""
    if not has_lists(block_mask):
        return None
    tall, wide = block_mask.BLOCK_SIZE
    if tall % _TILE or wide % _TILE or _attention.few_rows(
            query.shape[2], query.shape[1] // max(key.shape[1], 1)):
        return None
    kind = f"{tall}x{wide}"
    if block_mask.full_kv_num_blocks is None:
        kind += " partly"
    return kind, [x.to(query.device, torch.int32).contiguous()
                  for x in _tensors(block_mask)]


def _tensors(block_mask):
    lists = block_mask.kv_num_blocks, block_mask.kv_indices
    if block_mask.full_kv_num_blocks is None:
        return lists
    return *lists, block_mask.full_kv_num_blocks, block_mask.full_kv_indices


def listed(tensors, blocks):
    """Whether lists, of numbers and indices, name each of so many blocks of keys: int32
    of shape (..., blocks of rows, blocks of keys)."""
    seen = None
    for count, indices in zip(tensors[::2], tensors[1::2]):
        there = torch.arange(indices.shape[-1], device=indices.device) < count[..., None]
        # What is not there goes to a block that nobody asks about.
        at = torch.where(there, indices, blocks).long()
        found = torch.zeros((*indices.shape[:-1], blocks + 1), dtype=torch.int32,
                            device=indices.device).scatter(-1, at, 1)[..., :blocks]
        seen = found if seen is None else seen | found
    return seen


def shown(seen, block_size, mask_mod=None):
    """A function of what lists name, and of a BlockMask's own function."""
    tall, wide = block_size

    def by_lists(batch, head, row, key):
        visible = seen[batch, head, row // tall, key // wide] != 0
        return visible if mask_mod is None else visible & mask_mod(batch, head, row, key)

    return by_lists


def as_function(block_mask, query, key):
    """A BlockMask, lists and function, as one function."""
    wide = block_mask.BLOCK_SIZE[1]
    seen = listed(_tensors(block_mask), -(-key.shape[2] // wide))
    return shown(seen.to(query.device).expand(*query.shape[:2], -1, -1),
                 block_mask.BLOCK_SIZE, function_of(block_mask))


def follow(block_mask, regions, device):
    """Whether lists name all blocks of which a function of windows alone shows something,
    so that it says all that they say. Asks the device once for each BlockMask; False
    where that is not to be had."""
    tensors = _tensors(block_mask)
    if any(x.is_inference() for x in tensors):
        return False  # Nobody counts what is changed in them.
    now = [(id(x), x._version) for x in tensors], regions
    found = _known.get(block_mask)
    if found is None or found[0] != now:
        if torch.device(device).type == "cuda" and (
                torch.cuda.is_current_stream_capturing()):
            return False
        _known[block_mask] = found = now, _names_all(block_mask, regions), tensors
    return found[1]


def _names_all(block_mask, regions):
    (rows, keys), (tall, wide) = block_mask.seq_lengths, block_mask.BLOCK_SIZE
    device = block_mask.kv_indices.device
    row = torch.arange(0, rows, tall, device=device)[:, None]
    key = torch.arange(0, keys, wide, device=device)
    right = 0 if regions.causal else regions.right
    seen = torch.ones((len(row), len(key)), dtype=torch.bool, device=device)
    if right >= 0:
        seen &= key <= (row + tall).clamp(max=rows) - 1 + right
    if regions.left >= 0:
        seen &= (key + wide).clamp(max=keys) - 1 >= row - regions.left
    names = listed(_tensors(block_mask), len(key))
    return not bool((seen & (names == 0)).any())
