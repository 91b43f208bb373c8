# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""New tokens' keys and values into slots of a cache that a list names."""

from __future__ import annotations

import functools
import sys

from . import _append, _ops
from ._attention import (Tensor, float8_kinds, require_rank, require_shape,
                         require_type, shape_of)
from ._device import Device
from ._library import Error


@functools.lru_cache(maxsize=None)
def _unchecked():
    """An emulator that stores nowhere what has no place, as GPUs do."""
    return Device("emulator", check_lengths=False)


def _require_slots(slots, count):
    """Refuses slots that there are not, where the host reads them."""
    for t, slot in enumerate(slots.tolist()):
        if not -1 <= slot < count:
            raise Error(f"slot_mapping holds {slot} at {t}; expected -1, or 0 to "
                        f"{count - 1}, a slot of the cache")


def _as_slots(ops, x):
    """[slots, 1, heads, size] of a cache whose blocks follow each other in memory;
    None of one whose blocks do not."""
    blocks, rows = shape_of(x)[:2]
    block, row = ops.strides(x)[:2]
    if blocks > 1 and rows > 1 and block != rows * row:
        return None
    return x.reshape(blocks * rows, 1, *shape_of(x)[2:])


def _angles(ops, k, cos, sin, positions, interleaved, count):
    """Checked cosines and sines by which tokens are rotated, or None."""
    given = {"rotary_cos": cos, "rotary_sin": sin, "positions": positions}
    missing = [name for name, x in given.items() if x is None]
    if len(missing) == 3:
        return None
    if missing:
        raise ValueError(f"{missing[0]} is None; expected rotary_cos, rotary_sin and "
                         "positions, or none of them")
    require_rank("rotary_cos", cos, 2, "(positions, rotary size / 2)")
    require_shape("rotary_sin", sin, shape_of(cos), "that of rotary_cos")
    if not 0 < 2 * cos.shape[1] <= k.shape[-1]:
        raise ValueError(f"rotary_cos has {cos.shape[1]} columns; expected 1 to half the "
                         f"head size, {k.shape[-1] // 2}")
    if interleaved and k.shape[-1] % 2:
        raise NotImplementedError(f"rotary_interleaved is true, and k has a head size of "
                                  f"{k.shape[-1]}; expected an even one")
    require_rank("positions", positions, 1, "(tokens)")
    require_type(ops, "positions", positions, "i32", "i64")
    if positions.shape[0] < count:
        raise ValueError(f"positions has {positions.shape[0]} tokens, and slot_mapping "
                         f"{count}; expected as many or more")
    return cos, sin


def append_slots(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor,
                 slot_mapping: Tensor, *, k_descale: Tensor | None = None,
                 v_descale: Tensor | None = None, kv_dtype: str | None = None,
                 rotary_cos: Tensor | None = None, rotary_sin: Tensor | None = None,
                 positions: Tensor | None = None, rotary_interleaved: bool = False
                 ) -> None:
    """Stores k and v [tokens, G, head size] in caches [blocks, block size, G, head
    size], of any strides but the last: token t in slot slot_mapping[t] (int32 or
    int64), which is row slot % block size of block slot // block size; -1 is nowhere.
    Tokens after the last that slot_mapping names are not stored.

    Caches are of k's type or of 8-bit floats (torch's, or bytes: ``kv_dtype`` says
    which), with ``k_descale`` and ``v_descale`` as `kvbuf.attention` takes them:
    scales of the tensor or of heads are read, those of tokens are made and written.

    ``rotary_cos`` and ``rotary_sin`` (positions, rotary size / 2; float32, float16 or
    bfloat16) rotate k on its way, token t by the row ``positions``[t] (int32 or int64;
    past the tables by their last, before them by their first): element i with
    i + rotary size / 2, or, ``rotary_interleaved``, 2i with 2i + 1.

    One kernel of kvbuf's; pages whose blocks do not follow each other in memory, and
    scales of tokens, take two operators of the framework before it. No call waits for
    a device. A slot that there is not is an error where the host reads it, and
    nowhere on a GPU."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(k, torch.Tensor):
        from . import _torch_state
        floats = (k, v, k_cache, v_cache, k_descale, v_descale, rotary_cos,
                  rotary_sin)
        lost = _torch_state.wants_derivatives(*floats)
        if lost:
            raise NotImplementedError(f"kvbuf.append_slots {lost}")
        if _torch_state.is_operator("kvbuf.append_slots", *floats, slot_mapping,
                                    positions):
            from . import _slots_operator
            _slots_operator.call(k, v, k_cache, v_cache, slot_mapping, k_descale,
                                 v_descale, kv_dtype, rotary_cos, rotary_sin, positions,
                                 rotary_interleaved)
            return
    ops = _ops.of(k)
    for name, x in ("k", k), ("v", v):
        require_rank(name, x, 3, "(tokens, heads, head size)")
        require_type(ops, name, x, "f16", "bf16", "f32")
    require_rank("slot_mapping", slot_mapping, 1, "(tokens)")
    index = require_type(ops, "slot_mapping", slot_mapping, "i32", "i64")
    count = slot_mapping.shape[0]
    for name, x in ("k_cache", k_cache), ("v_cache", v_cache):
        require_rank(name, x, 4, "(blocks, block size, heads, head size)")
        ops.require_writable(name, x, "k and v are written to it")
        if ops.strides(x)[-1] != 1 and x.shape[-1] > 1:
            raise ValueError(f"{name} must have a contiguous last dimension")
    if shape_of(k_cache)[:3] != shape_of(v_cache)[:3]:
        raise ValueError(f"v_cache has shape {shape_of(v_cache)}, and k_cache "
                         f"{shape_of(k_cache)}; expected them to agree but for the "
                         "head size")
    kinds = float8_kinds(ops, None, k_cache, v_cache, kv_dtype)[1:]
    if kinds[0] != kinds[1]:
        raise ValueError(f"k_cache has type {k_cache.dtype}, and v_cache "
                         f"{v_cache.dtype}; expected one type")
    for name, x, cache in ("k", k, k_cache), ("v", v, v_cache):
        if x.shape[0] < count:
            raise ValueError(f"{name} has {x.shape[0]} tokens, and slot_mapping "
                             f"{count}; expected as many or more")
        require_shape(name, x, (x.shape[0], *shape_of(cache)[2:]),
                      "tokens of its cache")
        if ops.dtype(x) != ops.dtype(k if kinds[0] else cache):
            raise ValueError(f"{name} has type {x.dtype}; expected that of "
                             f"{'k' if kinds[0] else 'its cache'}, "
                             f"{(k if kinds[0] else cache).dtype}")
    angles = _angles(ops, k, rotary_cos, rotary_sin, positions, rotary_interleaved,
                     count)
    blocks, rows = shape_of(k_cache)[:2]
    if 0 in (count, blocks, rows, *shape_of(k)[1:]):
        return
    device = None
    if ops.device_name(k) == "emulator":
        _require_slots(slot_mapping, blocks * rows)
        device = _unchecked()
    caches = [_as_slots(ops, x) for x in (k_cache, v_cache)]
    of_tokens = any(s is not None and len(shape_of(s)) > 2
                    for s in (k_descale, v_descale))
    if of_tokens or any(x is None for x in caches):
        # A sequence for each token, of one page, after so many others.
        caches = k_cache, v_cache
        table, lengths = (slot_mapping // rows)[:, None], slot_mapping % rows
    else:
        table, lengths = slot_mapping, ops.full((count,), 0, index, k)
    _append.append(ops, k, *caches, k[:count, None], v[:count, None], angles,
                   bool(rotary_interleaved), table, lengths, k_descale, v_descale,
                   kinds[0] or None, device, positions[:count] if angles else None)
