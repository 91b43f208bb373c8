# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The attention functions that other libraries have named, on tensors of any:
arguments, defaults, layouts and meaning are those of flash-attn 2 and of
torch.nn.functional."""

from __future__ import annotations

import numbers

from . import _ops
from ._append import append as append_tokens
from ._attention import (build, check_window, fits_append, require_flag,
                         require_index, require_number, require_rank,
                         require_readable, require_shape, require_tensor,
                         require_type, run, shape_of)
from ._library import Error


def refuse(name, value, *neutral, why=""):
    """NotImplementedError for an argument that differs from what means
    nothing."""
    for n in neutral:
        # A number may be a graph's symbol, which has not every attribute.
        if value is n or (isinstance(value, (bool, int, float, numbers.Number))
                          and value == n):
            return
    said = f"of shape {shape_of(value)}" if hasattr(value, "shape") else value
    raise NotImplementedError(
        f"{name} is {said}; kvbuf has no kernel for it{why} (expected "
        f"{neutral[0]})")


def options(softmax_scale, causal, window_size, softcap, dropout_p):
    """What all functions share, as `build` takes it."""
    refuse("dropout_p", dropout_p, 0.0, why=", as for all of training")
    left, right = check_window("window_size", window_size)
    causal = require_flag("causal", causal)
    if causal:
        right = -1
    elif right == 0:
        causal, right = True, -1
    softcap = require_number("softcap", softcap)
    return {"scale": softmax_scale, "causal": causal, "left": left,
            "right": right, "softcap": max(softcap, 0.0)}


def bound(name, value, q):
    """The length that no sequence exceeds: q's rows where it is in a device's
    memory, which is not read, as no call waits."""
    if value is None:
        return shape_of(q)[0]
    try:
        require_readable(name, value, "")
    except ValueError:
        return shape_of(q)[0]
    return require_index(name, value, 0)


def results(ops, out, lse, return_attn_probs, return_lse):
    if return_attn_probs:
        # Probabilities exist with dropout only; without, this tensor is empty.
        return out, lse, ops.without_elements(ops.empty((0,), ops.dtype(out), out))
    return (out, lse) if return_lse else out


def dense(q, k, v, dropout_p, softmax_scale, causal, window_size, softcap,
          alibi_slopes, return_attn_probs, return_lse, out, sink, convert,
          q_descale=None, k_descale=None, v_descale=None):
    """flash_attn_func."""
    ops = _ops.of(q, k, v, alibi_slopes, sink, q_descale, k_descale, v_descale)
    request = build(ops, q, k, v, out=out, sink=sink, convert=convert,
                    want_lse=bool(return_attn_probs or return_lse),
                    alibi=alibi_slopes, q_descale=q_descale,
                    k_descale=k_descale, v_descale=v_descale,
                    **options(softmax_scale, causal, window_size, softcap,
                              dropout_p))
    out, lse = run(ops, request, q)
    return results(ops, out, lse, return_attn_probs, return_lse)


#: More keys than any sequence has.
ALL_KEYS = 2**30


def prefix_of(flags, batch):
    """`attention`'s prefix of sequences whose flags say which are causal."""
    if flags is None:
        return None
    require_shape("dynamic_causal", flags, (batch,), "one flag a sequence")
    return (flags == 0) * ALL_KEYS


def varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
           dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes,
           return_attn_probs, block_table, seqused_k, return_lse, out, sink,
           convert, q_descale=None, k_descale=None, v_descale=None,
           min_seqlen_q=None, dynamic_causal=None):
    """flash_attn_varlen_func."""
    ops = _ops.of(q, k, v, cu_seqlens_q, cu_seqlens_k, alibi_slopes, block_table,
                  seqused_k, sink, q_descale, k_descale, v_descale, dynamic_causal)
    max_seqlen_q = bound("max_seqlen_q", max_seqlen_q, q)
    bound("max_seqlen_k", max_seqlen_k, q)  # and that's all of it
    require_rank("cu_seqlens_q", cu_seqlens_q, 1, "(batch + 1)")
    keys = {"k_offsets": cu_seqlens_k}
    if block_table is None:
        if cu_seqlens_k is None:
            raise ValueError("cu_seqlens_k is None, and there is no block_table")
        if seqused_k is not None:
            raise NotImplementedError(
                "seqused_k is given; kvbuf takes it with a block_table alone")
    else:
        if (cu_seqlens_k is None) == (seqused_k is None):
            raise ValueError("block_table goes with cu_seqlens_k or seqused_k, "
                             "one of them")
        require_rank("block_table", block_table, 2, "(batch, pages)")
        lengths = seqused_k
        if lengths is None:
            require_rank("cu_seqlens_k", cu_seqlens_k, 1, "(batch + 1)")
            lengths = cu_seqlens_k[1:] - cu_seqlens_k[:-1]
        keys = {"table": block_table, "lengths": lengths}
    opts = options(softmax_scale, causal if dynamic_causal is None else False,
                   window_size, softcap, dropout_p)
    if dynamic_causal is not None:
        # A right side of 0, which is causal, is open where a flag says so.
        opts["causal"] = True
    request = build(ops, q, k, v, q_offsets=cu_seqlens_q, longest=max_seqlen_q,
                    shortest=min_seqlen_q, **keys, out=out, sink=sink, convert=convert,
                    want_lse=bool(return_attn_probs or return_lse),
                    alibi=alibi_slopes, q_descale=q_descale,
                    k_descale=k_descale, v_descale=v_descale,
                    prefix=prefix_of(dynamic_causal, cu_seqlens_q.shape[0] - 1),
                    **opts)
    out, lse = run(ops, request, q)
    return results(ops, out, lse, return_attn_probs, return_lse)


def with_kvcache(q, k_cache, v_cache, k, v, rotary_cos, rotary_sin,
                 cache_seqlens, cache_batch_idx, cache_leftpad, block_table,
                 softmax_scale, causal, window_size, softcap,
                 rotary_interleaved, alibi_slopes, num_splits,
                 return_softmax_lse, cu_seqlens_q, max_seqlen_q, out, sink,
                 q_descale=None, k_descale=None, v_descale=None):
    """flash_attn_with_kvcache."""
    ops = _ops.of(q, k_cache, v_cache, k, v, cache_seqlens, cache_batch_idx, block_table,
                  alibi_slopes, cu_seqlens_q, sink, q_descale, k_descale, v_descale)
    opts = options(softmax_scale, causal, window_size, softcap, 0.0)
    require_index("num_splits", num_splits, 0)
    ragged = cu_seqlens_q is not None
    require_rank("q", q, 3 if ragged else 4, "(rows, heads, head size)" if ragged
                 else "(batch, rows, heads, head size)")
    if not ops.float8_of(q):
        require_type(ops, "q", q, "f16", "bf16")
    elif k is not None:
        raise NotImplementedError("k and v are given, and q has 8-bit floats; expected "
                                  "tokens that are in the cache already")
    for name, x in ("k_cache", k_cache), ("v_cache", v_cache):
        require_rank(name, x, 4, "(blocks, rows, heads, head size)")
        if ops.strides(x)[-1] != 1 and x.shape[-1] > 1:
            raise ValueError(f"{name} must have a contiguous last dimension")
    batch = cu_seqlens_q.shape[0] - 1 if ragged else q.shape[0]
    if (k is None) != (v is None):
        raise ValueError("k and v go together; one of them is None")
    if (rotary_cos is None) != (rotary_sin is None):
        raise ValueError("rotary_cos and rotary_sin go together; one is None")
    if rotary_cos is not None and k is None:
        raise ValueError("rotary_cos is given without k and v; it applies to "
                         "new keys")
    quantized = bool(ops.float8_of(k_cache))
    if k is not None and quantized and "bytes" in map(ops.float8_of,
                                                      (k_cache, v_cache)):
        raise NotImplementedError("k and v are given with caches of bytes; expected "
                                  "a type that says which 8-bit floats they are")
    if ragged and k is not None:
        raise NotImplementedError("cu_seqlens_q is given with k and v; kvbuf "
                                  "appends to dense batches alone")
    if ragged and max_seqlen_q is None:
        raise ValueError("max_seqlen_q is None; expected the longest query, as "
                         "cu_seqlens_q is given")
    if block_table is not None:
        require_rank("block_table", block_table, 2, "(batch, pages)")
        for name, x in (("cache_batch_idx", cache_batch_idx),
                        ("cache_leftpad", cache_leftpad)):
            if x is not None:
                raise NotImplementedError(f"{name} is given with block_table; "
                                          "expected one of the two")
    for name, x in (("cache_batch_idx", cache_batch_idx),
                    ("cache_leftpad", cache_leftpad)):
        if x is not None:
            require_shape(name, x, (batch,), "one a sequence")
            require_type(ops, name, x, "i32", "i64")
    blocks, most = shape_of(k_cache)[:2]
    if block_table is None and cache_batch_idx is None and blocks < batch:
        raise ValueError(f"k_cache holds {blocks} sequences, and q {batch}")

    lengths = cache_seqlens
    if lengths is None:
        if k is not None:
            raise ValueError("cache_seqlens is None; expected where k and v are "
                             "to be written")
        lengths = (most if block_table is None
                   else most * block_table.shape[1])
    # Angles of how many tokens from the cached ones on; without a mask q has one place.
    turned = 0
    if rotary_cos is not None:
        _check_angles(q, rotary_cos, rotary_sin)
        moving = opts["causal"] or opts["left"] >= 0 or opts["right"] >= 0
        turned = max(k.shape[1] if len(k.shape) == 4 else 0,
                     q.shape[1] if moving else 1)
    if not hasattr(lengths, "shape"):
        require_room(lengths, k, k_cache, block_table)
        if turned:
            require_angles(lengths, turned, rotary_cos)
        lengths = ops.full((batch,), require_index("cache_seqlens", lengths, 0),
                           "i32", q)
    else:
        if len(lengths.shape) == 0:
            raise ValueError("cache_seqlens has no dimension; expected an int "
                             "or one length a sequence")
        require_shape("cache_seqlens", lengths, (batch,), "one a sequence")
        require_type(ops, "cache_seqlens", lengths, "i32", "i64")
        if turned and batch and ops.device_name(lengths) == "emulator":
            require_angles(max(lengths.tolist()), turned, rotary_cos)
    index = ops.dtype(lengths)

    append = None
    if k is not None:
        for name, x in ("k_cache", k_cache), ("v_cache", v_cache):
            ops.require_writable(name, x, "k and v are written to it")
        count = k.shape[1] if len(k.shape) == 4 else 0
        for name, x, cache in ("k", k, k_cache), ("v", v, v_cache):
            require_shape(name, x, (batch, count, *shape_of(cache)[2:]),
                          "new rows of its cache")
            like = q if quantized else cache
            if ops.dtype(x) != ops.dtype(like):
                raise ValueError(f"{name} has type {x.dtype}, and "
                                 f"{'q' if quantized else 'its cache'} "
                                 f"{like.dtype}; expected one type")
        angles, interleaved = None, bool(rotary_interleaved)
        if rotary_cos is not None:
            angles = rotary_cos, rotary_sin
            rows = q.shape[1]
            at = lengths[:, None] + (
                ops.arange(rows, q, index)[None] if moving
                else ops.full((1, rows), 0, index, q))
            q = _rotated(ops, q, at, angles, interleaved)
        if cache_leftpad is None and fits_append(ops, q, k_cache, v_cache, k, v,
                                                 angles, interleaved):
            append = k, v, angles, interleaved
        elif 0 not in shape_of(k) + shape_of(v):
            table = _table(ops, block_table, cache_batch_idx, batch, index, q)
            if angles and interleaved and k.shape[-1] % 2:
                # Lanes hold pairs, which such heads are no whole number of.
                k = _rotated(ops, k, lengths[:, None] + ops.arange(
                    count, q, index)[None], angles, interleaved)
                angles = None
            append_tokens(ops, q, k_cache, v_cache, k, v, angles, interleaved,
                          table, typed_as(ops, lengths, table), k_descale,
                          v_descale)
        if not append:
            lengths = lengths + count

    table = _table(ops, block_table, cache_batch_idx, batch, index, q)
    if cache_leftpad is not None:
        # Every row is a page of its own, so that sequences begin anywhere. Both
        # numbers go into others, by which nobody could check them any more.
        require_counts(ops, "cache_leftpad", cache_leftpad, most)
        require_counts(ops, "cache_seqlens, with the new tokens,", lengths, most)
        cache_leftpad = ops.maximum(cache_leftpad, 0)
        lengths = ops.minimum(lengths, most)
        rows = cache_leftpad[:, None] + ops.arange(most, q, index)[None]
        table = table[:, None] * most + ops.minimum(rows, most - 1)
        lengths = ops.maximum(lengths - cache_leftpad, 0)
        k_cache, v_cache = (x.reshape(blocks * most, 1, *shape_of(x)[2:])
                            for x in (k_cache, v_cache))
    lengths = typed_as(ops, lengths, table)
    if ragged:
        cu_seqlens_q = typed_as(ops, cu_seqlens_q, table)
    request = build(ops, q, k_cache, v_cache, q_offsets=cu_seqlens_q,
                    longest=bound("max_seqlen_q", max_seqlen_q, q) if ragged
                    else None, table=table,
                    lengths=lengths, want_lse=bool(return_softmax_lse), out=out,
                    sink=sink, alibi=alibi_slopes, q_descale=q_descale,
                    k_descale=k_descale, v_descale=v_descale, append=append,
                    counts="cached" if append else "all", **opts)
    out, lse = run(ops, request, q)
    return (out, lse) if return_softmax_lse else out


def require_room(cached, k, k_cache, block_table):
    """Refuses a number of cached tokens that, with the new ones, a sequence's slot or
    row of the table has no room for: one that the host knows on any device."""
    cached = require_index("cache_seqlens", cached, 0)
    room, of = k_cache.shape[1], "rows of a slot"
    if block_table is not None:
        room, of = room * block_table.shape[-1], "rows of a table's pages"
    new = 0 if k is None else k.shape[1]
    if cached + new > room:
        added = f", with {new} new tokens" if new else ""
        raise Error(f"cache_seqlens is {cached}{added}; expected {room - new} or less "
                    f"for {room} {of}")


def require_angles(cached, count, cos):
    """Refuses tokens that are rotated by angles which the tables do not have, where the
    host knows their places; devices take the last that there are."""
    if cached + count > cos.shape[0]:
        raise Error(f"rotary_cos has {cos.shape[0]} positions; expected {cached + count} "
                    f"or more for {count} {'rows' if count > 1 else 'row'} behind "
                    f"{cached} cached tokens")


def typed_as(ops, x, table):
    """Numbers in the type of a table, which may be large and stays as it is."""
    if ops.dtype(x) == ops.dtype(table):
        return x
    return narrow(ops, x) if ops.dtype(table) == "i32" else ops.cast(x, "i64")


def narrow(ops, x):
    """Numbers as int32, those that it has not as the nearest: of their lower bits
    nobody could tell that they are wrong."""
    if ops.dtype(x) == "i32":
        return x
    return ops.cast(ops.minimum(ops.maximum(x, -2**31), 2**31 - 1), "i32")


def require_counts(ops, name, x, most, of="the rows of a slot"):
    """Refuses counts of rows that there are not, ``most`` being all ``of``, where the
    host reads them; devices take the nearest that fits."""
    if ops.device_name(x) != "emulator":
        return
    for b, count in enumerate(x.tolist()):
        if not 0 <= count <= most:
            raise Error(f"{name} holds {count} at {b}; expected 0 to {most}, {of}")


def _table(ops, block_table, cache_batch_idx, batch, index, like):
    """Where each sequence is in a cache."""
    if block_table is not None:
        if "int" not in str(block_table.dtype):
            require_type(ops, "block_table", block_table, "i32", "i64")
        known = ops.dtype(block_table) in ("i32", "i64")
        return block_table if known else narrow(ops, block_table)
    return (ops.arange(batch, like, index) if cache_batch_idx is None
            else cache_batch_idx)


def _check_angles(q, cos, sin):
    require_rank("rotary_cos", cos, 2, "(positions, rotary size / 2)")
    require_shape("rotary_sin", sin, shape_of(cos), "that of rotary_cos")
    if 2 * cos.shape[1] > q.shape[-1] or cos.shape[1] == 0:
        raise ValueError(f"rotary_cos has {cos.shape[1]} columns; expected 1 to "
                         f"half the head size, {q.shape[-1] // 2}")


def _rotated(ops, x, places, angles, interleaved):
    """x by the angles of its rows' places; past the tables by their last, before
    them by their first."""
    cos, sin = angles
    where = ops.maximum(ops.minimum(places, cos.shape[0] - 1), 0)
    return ops.rotated(x, cos[where], sin[where], interleaved)


#: What torch's function is refused for: the error, its words, and what they say of
#: the shapes `q`, `k` and `v`. Torch computes some of these, in its own way.
_SDPA_REFUSALS = {
    "few": (ValueError, "query has {q}, key {k} and value {v} dimensions; expected "
            "2 or more of each", len),
    "count": (NotImplementedError, "query has {q}, key {k} and value {v} "
              "dimensions; kvbuf takes as many of each", len),
    "value": (ValueError, "value has shape {v}, and key {k}; expected them to agree "
              "but for the head size", tuple),
    "size": (ValueError, "key has head size {k}, and query {q}; expected one head "
             "size", lambda x: x[-1]),
    "empty": (NotImplementedError, "query has shape {q}, without elements in a row; "
              "kvbuf takes one head and one element or more", tuple),
    "leading": (NotImplementedError, "key has shape {k}, and query {q}; kvbuf takes "
                "leading dimensions that agree", tuple),
    "heads": (ValueError, "query has {q} heads, and key {k}; expected as many, or "
              "enable_gqa", lambda x: x[-3]),
    "groups": (ValueError, "query has {q} heads, which are no multiple of the {k} "
               "heads of key and value", lambda x: x[-3]),
    "both": (ValueError, "attn_mask is given and is_causal is true; expected one of "
             "the two", tuple),
    "mask": (ValueError, "attn_mask has shape {mask}; expected one that broadcasts "
             "to {grid}, of two dimensions or more", tuple),
}


def sdpa_refusal(q, k, v, mask, is_causal, enable_gqa):
    """Why kvbuf computes no torch's function of such shapes: a key of
    _SDPA_REFUSALS, or "". Graphs ask before they have kvbuf's operator."""
    if len(q) < 2 or len(k) < 2 or len(v) < 2:
        return "few"
    if len(k) != len(q) or len(v) != len(q):
        return "count"
    if k[:-1] != v[:-1]:
        return "value"
    if k[-1] != q[-1]:
        return "size"
    if q[-1] == 0 or (len(q) > 3 and q[-3] == 0):
        return "empty"
    if k[:-3] != q[:-3] or (len(q) == 3 and k[0] != q[0]):
        return "leading"
    if len(q) > 3 and k[-3] != q[-3]:
        if not enable_gqa and k[-3] != 1:
            return "heads"
        if k[-3] == 0 or q[-3] % k[-3]:
            return "groups"
    if mask is None:
        return ""
    if is_causal:
        return "both"
    grid = (*q[:-1], k[-2])
    if not 2 <= len(mask) <= len(grid):
        return "mask"
    for have, want in zip(mask[::-1], grid[::-1]):
        if have != 1 and have != want:
            return "mask"
    return ""


def sdpa(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa,
         convert, flags=None):
    """torch's scaled_dot_product_attention: [..., heads, rows, head size], with
    causal masks from the top left. ``flags`` are a mask's booleans as numbers of
    32 bits, if there are such."""
    ops = _ops.of(query, key, value, attn_mask)
    refuse("dropout_p", dropout_p, 0.0, why=", as for all of training")
    is_causal = require_flag("is_causal", is_causal)
    given = query, key, value, attn_mask
    for name, x in zip(("query", "key", "value", "attn_mask"), given):
        if x is not None:
            require_tensor(name, x)
    shapes = [None if x is None else shape_of(x) for x in given]
    why = sdpa_refusal(*shapes, is_causal, enable_gqa)
    if why:
        kind, words, of = _SDPA_REFUSALS[why]
        q, k, v, mask = shapes
        raise kind(words.format(q=of(q), k=of(k), v=of(v), mask=mask,
                                grid=(*q[:-1], *k[-2:-1])))
    lead = shape_of(query)[:-2]
    q, k, v = (_four(x) for x in (query, key, value))
    scores = {}
    if attn_mask is not None:
        grid = (*lead, query.shape[-2], key.shape[-2])
        kind = ops.dtype(attn_mask)
        floats = kind in ("f32", ops.dtype(query))
        if not floats and kind not in ("bool", "torch.bool"):
            raise ValueError(f"attn_mask has type {attn_mask.dtype}; expected "
                             f"booleans, float32 or query's type, {query.dtype}")
        if flags is None and not floats:
            flags = ops.as_flags("attn_mask", attn_mask)
        mask = attn_mask if floats else flags
        if len(grid) > 4:
            mask = ops.expand(mask, grid)
            mask = mask.reshape(-1, *grid[-3:])
        elif len(grid) == 3:  # sequences of one head
            mask = mask[:, None] if len(mask.shape) == 3 else mask
        scores = {"bias" if floats else "keep": mask}
    q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    rows, keys = q.shape[1], k.shape[1]
    out, parts = None, []
    if not ops.frozen:
        # In memory as torch has it: rows of a head lie together.
        out = ops.empty((q.shape[0], q.shape[2], rows, v.shape[-1]), ops.dtype(q),
                        q).swapaxes(1, 2)

    def part(first, last, causal, upto):
        request = build(ops, q[:, first:last], k[:, :upto], v[:, :upto],
                        scale=scale, causal=causal,
                        out=None if out is None else out[:, first:last],
                        convert=convert, **scores)
        parts.append(run(ops, request, q)[0])

    if not is_causal:
        part(0, rows, False, keys)
    else:
        # Row i sees the keys up to i: a square, and below it whole rows.
        square = min(rows, keys)
        part(0, square, True, square)
        if rows > square:
            part(square, rows, False, keys)
    if out is None:
        out = parts[0] if len(parts) == 1 else ops.np.concatenate(parts, 1)
    result = out.swapaxes(1, 2)
    return result.reshape(*lead, rows, v.shape[-1])


def _four(x):
    if len(x.shape) == 4:
        return x
    if len(x.shape) == 2:
        return x[None, None]
    if len(x.shape) == 3:
        return x[:, None]
    return x.reshape(-1, *shape_of(x)[-3:])
