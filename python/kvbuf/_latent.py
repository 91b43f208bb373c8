# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latent attention under the names that other libraries have given it: docs/latent.md."""

from __future__ import annotations

import torch
from torch import Tensor

from ._append import append, append_packed
from ._attention import (Request, attention, few_rows, require_index,
                         require_rank, require_shape, require_type, run,
                         same_index_type)
from ._flash import refuse
from ._lists import without_gaps
from ._ops import of
from ._packed import packed_rows, tokens_of
from ._problem import Problem
from ._slots import _require_slots, _unchecked
from ._tensors import order_of
from ._torch_state import is_operator, is_traced_by_jit


def get_mla_metadata(*arguments, **named) -> tuple[None, None]:
    """FlashMLA's function of that name, whose result `flash_mla_with_kvcache` is
    given: nothing, for kernels find their work on the device, in the lengths of
    the call."""
    return None, None


def flash_mla_with_kvcache(
        q: Tensor, k_cache: Tensor, block_table: Tensor | None,
        cache_seqlens: Tensor | None, head_dim_v: int,
        tile_scheduler_metadata=None, num_splits=None,
        softmax_scale: float | None = None, causal: bool = False,
        is_fp8_kvcache: bool = False, indices: Tensor | None = None,
        attn_sink: Tensor | None = None, extra_k_cache: Tensor | None = None,
        extra_indices_in_kvcache: Tensor | None = None,
        topk_length: Tensor | None = None,
        extra_topk_length: Tensor | None = None, descale_q: Tensor | None = None,
        descale_k: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Latent attention over pages: FlashMLA's function of that name.

    q (batch, rows, heads, head size), k_cache (pages, page size, KV heads, head
    size), pages of any size, ``block_table`` (batch, pages) and
    ``cache_seqlens`` (batch), int32 or int64, of all tokens, the rows of q among
    them. Values are the first ``head_dim_v`` columns of the cache's rows.
    ``tile_scheduler_metadata`` and ``num_splits`` are not looked at.
    ``attn_sink`` (heads), float32: the result is multiplied by
    exp(lse) / (exp(lse) + exp(attn_sink)).

    Returns out (batch, rows, heads, head_dim_v) and the log-sum-exps (batch,
    heads, rows), float32, without the sink; -inf where a row sees no key, whose
    out is 0.

    With ``indices`` (batch, rows, most), int32 or int64, each row of q sees the
    keys that its list names, and block_table and cache_seqlens may be None, and
    are not looked at: by their places in the cache, page times page size and row.
    The order does not matter, a place that is named twice counts twice, and -1
    and whatever the cache does not have is no key. ``topk_length`` (batch): how
    many entries at the front of a sequence's lists count. ``causal`` means nothing
    then, and is refused.

    With ``is_fp8_kvcache`` the elements of k_cache are bytes, or e4m3, and its rows
    are packed: of 656 bytes (512 e4m3, four float32 scales of 128 each, 64
    bfloat16), of 584 (448 e4m3 and 64 bfloat16; behind all rows of a page, which
    takes a multiple of 576 bytes, 8 bytes for each, the first 7 E8M0 scales of 64)
    or of 528 (512 e4m3, 16 E8M0 scales of 32). Heads of q have 576, 512 and 512
    elements then.

    q and k_cache may be 8-bit floats of one type, too, with a float32 scale of one
    element each, ``descale_q`` and ``descale_k``, or without; out is bfloat16 then.

    A second cache (``extra_``) is refused."""
    for name, value in (("extra_k_cache", extra_k_cache),
                        ("extra_indices_in_kvcache", extra_indices_in_kvcache),
                        ("extra_topk_length", extra_topk_length)):
        refuse(name, value, None)
    if topk_length is not None and indices is None:
        raise ValueError("topk_length is given without indices, of which it says "
                         "how many count")
    ops = of(q)
    require_rank("q", q, 4, "(batch, rows, heads, head size)")
    require_rank("k_cache", k_cache, 4, "(pages, page size, KV heads, head size)")
    if indices is not None:
        for name, value in ("descale_q", descale_q), ("descale_k", descale_k):
            refuse(name, value, None, why=" with indices")
        refuse("causal", bool(causal), False, why=" with indices")
        return _listed(ops, q, k_cache, indices, topk_length, head_dim_v,
                       softmax_scale, attn_sink, is_fp8_kvcache)
    if block_table is None or cache_seqlens is None:
        raise ValueError("block_table and cache_seqlens are needed without indices; "
                         "one of them is None")
    require_rank("block_table", block_table, 2, "(batch, pages)")
    # Of one type there is nothing to unpack, whatever is said.
    are_bytes = q.dtype == k_cache.dtype and ops.float8_of(q)
    for name, value in ("descale_q", descale_q), ("descale_k", descale_k):
        if not are_bytes:
            refuse(name, value, None,
                   why=f" beside q of {q.dtype} and k_cache of {k_cache.dtype}")
        elif value is not None:
            require_type(ops, name, value, "f32")
            if value.dim():
                require_shape(name, value, (1,), "one scale of all elements")
    if is_fp8_kvcache and not are_bytes:
        data, row = packed_rows(q, k_cache)
        return _packed(ops, q, data, row, block_table, cache_seqlens, head_dim_v,
                       softmax_scale, causal, attn_sink)
    width = k_cache.shape[-1]
    if require_index("head_dim_v", head_dim_v, 1) > width:
        raise ValueError(f"head_dim_v is {head_dim_v}; expected at most {width}, "
                         "the columns of k_cache")
    if attn_sink is not None:
        require_shape("attn_sink", attn_sink, (q.shape[2],), "one a query head")
        require_type(ops, "attn_sink", attn_sink, "f32")
    out = None
    if attn_sink is not None:
        # The factor comes before the only rounding.
        out = torch.empty((*q.shape[:-1], head_dim_v), dtype=torch.float32,
                          device=q.device)
    out, lse = attention(q, k_cache, k_cache[..., :head_dim_v],
                         page_table=block_table, lengths=cache_seqlens,
                         scale=softmax_scale, causal=causal, out=out,
                         return_lse=True, q_descale=descale_q, k_descale=descale_k,
                         v_descale=descale_k)
    if attn_sink is not None:
        out = _beside_sink(out, lse, attn_sink,
                           torch.bfloat16 if are_bytes else q.dtype)
    return out, lse


def _beside_sink(out, lse, sink, dtype):
    """What keys leave a row of beside a sink; 0 where there are none, even if the
    sink is nothing, too."""
    share = torch.sigmoid(lse - sink[:, None]).masked_fill(lse == -torch.inf, 0)
    return (out * share.transpose(1, 2)[..., None]).to(dtype)


def concat_and_cache_mla(kv_c: Tensor, k_pe: Tensor, kv_cache: Tensor,
                         slot_mapping: Tensor, kv_cache_dtype: str = "auto",
                         scale: Tensor | None = None) -> None:
    """Stores rows of latent attention in slots of a cache: vLLM's operator of that
    name. kv_c (tokens, latent columns) and k_pe (tokens, rope columns, or tokens, 1,
    rope columns) go into kv_cache (blocks, block size, columns), token t into slot
    slot_mapping[t] (int32 or int64), row slot % block size of block slot // block
    size; -1 is nowhere.

    ``kv_cache_dtype`` "auto": the cache is of their type, with all columns.
    "fp8_ds_mla": it has packed rows, of 656, 584 or 528 bytes, as
    `flash_mla_with_kvcache` has them: kv_c and k_pe have 512 and 64 columns, 448 and
    64, or together 512. Scales are made. ``scale`` is not looked at."""
    if kv_cache_dtype not in ("auto", "fp8_ds_mla"):
        raise NotImplementedError(f"kv_cache_dtype is {kv_cache_dtype!r}; expected "
                                  '"auto" or "fp8_ds_mla"')
    packed = kv_cache_dtype == "fp8_ds_mla"
    ops = of(kv_c)
    require_rank("kv_c", kv_c, 2, "(tokens, columns)")
    tokens, latent = kv_c.shape
    rope = k_pe.shape[-1]
    k_pe = k_pe.reshape(tokens, rope)
    require_rank("kv_cache", kv_cache, 3, "(blocks, block size, columns)")
    require_rank("slot_mapping", slot_mapping, 1, "(tokens)")
    require_type(ops, "slot_mapping", slot_mapping, "i32", "i64")
    require_type(ops, "kv_c", kv_c, "bf16" if packed else ops.dtype(kv_cache))
    require_type(ops, "k_pe", k_pe, ops.dtype(kv_c))
    if packed:
        _require_packed(latent, rope, kv_cache)
    else:
        require_shape("kv_cache", kv_cache, (*kv_cache.shape[:2], latent + rope),
                      "rows with both")
    if not tokens or 0 in kv_cache.shape:
        return
    count = slot_mapping.shape[0]
    if tokens < count:
        raise ValueError(f"kv_c has {tokens} tokens, and slot_mapping {count}; "
                         "expected as many or more")
    ops.require_writable("kv_cache", kv_cache, "rows are written to it")
    cache = kv_cache[:, :, None]
    blocks, rows = kv_cache.shape[:2]
    device = None
    if ops.device_name(kv_c) == "emulator":
        _require_slots(slot_mapping, blocks * rows)
        device = _unchecked()
    table, place = (slot_mapping // rows)[:, None], slot_mapping % rows
    if packed and kv_cache.shape[-1] != 656:
        data, row = packed_rows(kv_c, cache)
        both = torch.cat((kv_c[:count], k_pe[:count]), -1)[:, None, None]
        return append_packed(ops, row, data, both, table, place, device)
    if packed:
        into = (cache[..., :512].view(torch.float8_e4m3fn),
                cache[..., 528:].view(torch.bfloat16))
        scales = cache[..., 512:528].view(torch.float32)
    else:
        into, scales = (cache[..., :latent], cache[..., latent:]), None
    append(ops, kv_c, *into, kv_c[:count, None, None], k_pe[:count, None, None],
           None, False, table, place, scales, None, device=device)


#: Columns of kv_c and k_pe by the bytes of a row.
_COLUMNS = {656: (512, 64), 584: (448, 64), 528: None}


def _require_packed(latent, rope, cache):
    """That a cache is of packed rows of so many columns."""
    size = cache.shape[-1]
    known = size in _COLUMNS and ((latent, rope) == _COLUMNS[size]
                                  or (size == 528 and latent + rope == 512))
    if not known or cache.element_size() != 1:
        raise ValueError(
            f"kv_c has {latent} columns, k_pe {rope}, and kv_cache type {cache.dtype} "
            f"and rows of {size}; expected 512, 64 and bytes, 656 a row, or 448, 64 and "
            "584, or 512 together and 528")


def _packed(ops, q, data, row, table, lengths, values, scale, causal, sink,
            listed=False):
    """(out, log-sum-exps) over rows that are packed, without plans of launches.
    ``listed``: the table has entries that are no key."""
    if torch.compiler.is_compiling() or is_traced_by_jit():
        raise NotImplementedError("is_fp8_kvcache is True while torch traces; "
                                  "expected a call outside of what is compiled")
    require_type(ops, "q", q, "f16", "bf16")
    batch, rows, heads, width = q.shape
    if width != row.elements:
        raise ValueError(f"q has a head size of {width}, and rows of "
                         f"{row.bytes_in_cache} bytes have {row.elements} "
                         "elements; expected as many")
    if require_index("head_dim_v", values, 1) > width or values % 8:
        raise ValueError(f"head_dim_v is {values}; expected a multiple of 8 up to "
                         f"{width}, the elements of a row")
    if heads % data.shape[2]:
        raise ValueError(f"q has {heads} heads, which are no multiple of the "
                         f"{data.shape[2]} heads of k_cache")
    require_shape("cache_seqlens", lengths, (batch,), "one a sequence")
    require_shape("block_table", table, (batch, table.shape[1]),
                  "a row a sequence")
    index = same_index_type(ops, {"block_table": table, "cache_seqlens": lengths})
    if sink is not None:
        require_shape("attn_sink", sink, (heads,), "one a query head")
        require_type(ops, "attn_sink", sink, "f32")
    dtype, group = ops.dtype(q), heads // data.shape[2]
    table = table.contiguous()
    problem = Problem(
        heads=heads, kv_heads=data.shape[2], head_size=width, dtype=dtype,
        cache="paged", page_size=data.shape[1], index=index, causal=bool(causal),
        visible=_NAMED.replace("i32", index) if listed else "",
        captures=f"2:{index},2:f8E4M3FN" if listed else "",
        scale=None if scale is None else float(scale), lse=True,
        seq_q=few_rows(rows, group, latent=True),
        v_head_size=values if values != width else 0,
        o_dtype="f32" if sink is not None else "", latent=True, row=row.text)
    request = Request(problem, {
        "q": ops.rows_contiguous(q), "k": data, "k_table": table,
        "k_lengths": lengths.contiguous()})
    if listed:
        # Of the rows nothing is asked but how many there are.
        request.tensors |= {"capture0": table, "capture1": data[:, 0, 0].view(
            torch.float8_e4m3fn)}
    request.out = torch.empty(
        (batch, rows, heads, values), device=q.device,
        dtype=torch.float32 if sink is not None else q.dtype)
    request.lse = torch.empty((batch, heads, rows), device=q.device,
                              dtype=torch.float32)
    request.empty = 0 in request.out.shape
    # Only the emulator looks at what tables name.
    emulated = listed and ops.device_name(q) == "emulator"
    out, lse = run(ops, request, q, device=_unchecked() if emulated else None)
    if sink is not None:
        out = _beside_sink(out, lse, sink, q.dtype)
    return out, lse


#: The region of a problem whose table of pages, of one token each, is a list of keys:
#: those that it names and the cache has.
_NAMED = """\
%named = memref.load %capture0_[%batch, %key] : memref<?x?xi32, strided<[?, 1]>>
%c0 = arith.constant 0 : index
%count = memref.dim %capture1_, %c0 : memref<?x?xf8E4M3FN, strided<[?, 1]>>
%tokens = arith.index_cast %count : index to i32
%exists = arith.cmpi ult, %named, %tokens : i32
kvbuffer.yield %exists : i1"""

#: Lengths of whole lists, by their entries, type, device and stream.
_WHOLE = {}


def _whole(table):
    """A length for each row of a table that has all its entries."""
    order = order_of(table)
    count, key = table.shape[0], (table.shape[1], table.dtype, order)
    lengths = _WHOLE.get(key)
    if lengths is None or lengths.shape[0] < count:
        lengths = torch.full((max(1024, 2 * count),), table.shape[1],
                             dtype=table.dtype, device=table.device)
        if order is not None:
            _WHOLE[key] = lengths
    return lengths[:count]


def _rows_named(ops, indices, counts, pages, size, step):
    """(table, lengths): the rows that each list names, and how many; what is no key
    stands behind them."""
    batch, rows, _ = indices.shape
    if is_operator("flash_mla_with_kvcache", indices, counts):
        there = (indices >= 0) & (indices < pages * size)
        if counts is not None:
            places = torch.arange(indices.shape[2], device=indices.device)
            there &= places < counts[:, None, None]
        pages_of = torch.div(indices, size, rounding_mode="floor")
        places_of = pages_of * step + (indices - pages_of * size)
        table = torch.where(there, places_of, -1).sort(-1, descending=True).values
        return (table.flatten(0, 1),
                there.sum(-1, dtype=indices.dtype).reshape(-1))
    lists = ops.rows_contiguous(indices.flatten(0, 1))
    own = (_whole(lists) if counts is None
           else counts.to(lists.dtype).repeat_interleave(rows))
    return without_gaps(ops, lists, own, pages, size, step)


def _listed(ops, q, k_cache, indices, counts, values, scale, sink, packed):
    """Attention of each row of q to the keys of a list of its own: rows are then
    sequences of one row each, and keys pages of one."""
    batch, rows, heads, _ = q.shape
    require_rank("indices", indices, 3, "(batch, rows, most keys)")
    require_shape("indices", indices, (batch, rows, indices.shape[2]),
                  "a list for each row of q")
    require_type(ops, "indices", indices, "i32", "i64")
    pages, size = k_cache.shape[:2]
    data, row = packed_rows(q, k_cache) if packed else (k_cache, None)
    tokens, step = tokens_of(data)
    if counts is not None:
        require_shape("topk_length", counts, (batch,), "one a sequence")
        require_type(ops, "topk_length", counts, "i32", "i64")
    apart = q.reshape(batch * rows, 1, heads, q.shape[-1])
    if packed:
        # The kernel takes lists as they are.
        table = indices
        if step != size:
            there = (indices >= 0) & (indices < pages * size)
            pages_of = torch.div(indices, size, rounding_mode="floor")
            places_of = pages_of * step + (indices - pages_of * size)
            table = torch.where(there, places_of, -1)
        table = table.flatten(0, 1)
        lengths = _whole(table)
        if counts is not None:
            lengths = counts.to(table.dtype).repeat_interleave(rows)
        if not tokens.shape[0]:
            lengths = torch.zeros_like(lengths)
        out, lse = _packed(ops, apart, tokens, row, table, lengths, values, scale,
                           False, sink, listed=True)
    else:
        table, lengths = _rows_named(ops, indices, counts, pages, size, step)
        out, lse = flash_mla_with_kvcache(apart, tokens, table, lengths, values,
                                          softmax_scale=scale, attn_sink=sink)
    return (out.reshape(batch, rows, heads, values),
            lse.reshape(batch, rows, heads).transpose(1, 2))


def whole_rows(q, qv, k_cache, v_cache, k, v):
    """(queries, rows, values) of flash-attn 3's form of latent attention, in which
    scores are q k + qv v: rows are those of v_cache with the columns of k_cache
    behind them, which lie there in memory already."""
    for name, x in (("q", q), ("qv", qv), ("k_cache", k_cache),
                    ("v_cache", v_cache)):
        if not isinstance(x, Tensor):
            raise NotImplementedError(f"qv is given, and {name} is of type "
                                      f"{type(x).__name__}; expected torch's")
    if torch.compiler.is_compiling() or is_traced_by_jit():
        raise NotImplementedError("qv is given while torch traces, where nothing "
                                  "says where caches lie; expected queries and "
                                  "rows as wholes (kvbuf.attention)")
    if k is not None or v is not None:
        raise NotImplementedError("qv is given with k and v; expected rows that are "
                                  "in the cache already")
    values = v_cache.shape[-1]
    require_shape("qv", qv, (*q.shape[:-1], values), "q's rows, and v_cache's "
                  "columns")
    apart = (k_cache.shape[:-1] != v_cache.shape[:-1]
             or k_cache.dtype != v_cache.dtype
             or k_cache.stride() != v_cache.stride()
             or k_cache.device != v_cache.device
             or k_cache.data_ptr()
             != v_cache.data_ptr() + values * v_cache.element_size())
    width = values + k_cache.shape[-1]
    if apart or min(v_cache.stride()[:-1], default=width) < width:
        raise NotImplementedError(
            "qv is given, and k_cache and v_cache are no parts of the same rows; "
            f"expected views rows[..., {values}:] and rows[..., :{values}] of one "
            "tensor")
    rows = v_cache.as_strided((*v_cache.shape[:-1], width), v_cache.stride())
    return torch.cat((qv, q), -1), rows, rows[..., :values]
