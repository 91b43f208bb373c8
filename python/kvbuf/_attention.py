# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kvbuf.attention, and what all attention functions go through."""

from __future__ import annotations

import math
import numbers
import operator
import sys
from typing import Any

from . import _kernels, _ops
from ._device import Device
from ._problem import _FLOAT8, Problem

#: torch's, numpy's, or of a library that speaks DLPack.
Tensor = Any


class Request:
    """A problem and its tensors, ready to launch.

    ``tensors`` are the kernel's by name, outputs excepted. ``finish`` makes what
    the caller gets of the kernel's output, or is None."""

    __slots__ = ("problem", "tensors", "sizes", "out", "lse", "finish", "empty")

    def __init__(self, problem, tensors):
        self.problem, self.tensors, self.sizes = problem, tensors, {}
        self.out = self.lse = self.finish = None
        self.empty = False

    def arguments(self, ops):
        """The kernel's tensors by name, outputs last. That they require no
        gradients has been checked, or is not wanted (torch.no_grad)."""
        given = dict(self.tensors, o=self.out)
        if self.problem.lse:
            given["lse"] = self.lse
        return {name: ops.detach(x) for name, x in given.items()}

    def sizes_of(self, kernel):
        """The sizes that this kernel takes: not all order work by the longest
        query."""
        return {n: size for n, size in self.sizes.items() if n in kernel._sizes}


def shape_of(x):
    return tuple(x.shape)


def require_tensor(name, x):
    """A tensor whose memory alone says what it holds."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(x, torch.Tensor):
        if x.is_nested or x.layout is not torch.strided:
            kind = ("a nested tensor" if x.is_nested
                    else f"a tensor of layout {x.layout}")
            raise NotImplementedError(f"{name} is {kind}; expected strides")
    elif numpy is not None and isinstance(x, numpy.ma.MaskedArray):
        raise NotImplementedError(f"{name} is a masked array, whose mask no kernel "
                                  "sees; expected an array without")
    elif not hasattr(x, "shape"):
        raise TypeError(f"{name} is of type {type(x).__name__}; expected a tensor")


def require_rank(name, x, rank, what):
    require_tensor(name, x)
    if len(x.shape) != rank:
        raise ValueError(f"{name} has {len(x.shape)} dimensions; expected "
                         f"{rank}, {what}")


def require_shape(name, x, shape, what):
    require_tensor(name, x)
    if shape_of(x) != tuple(shape):
        raise ValueError(f"{name} has shape {shape_of(x)}; expected "
                         f"{tuple(shape)}, {what}")


def require_number(name, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name} is {value!r}; expected a number")
    return float(value)


def require_readable(name, value, expected):
    """ValueError for a number in a device's memory, which to read means to wait."""
    torch = sys.modules.get("torch")
    if (torch is not None and isinstance(value, torch.Tensor)
            and value.device.type != "cpu"):
        raise ValueError(f"{name} is a tensor on {value.device}, for which the "
                         f"host would have to wait; expected {expected}")


def require_flag(name, value):
    require_readable(name, value, "a boolean")
    return bool(value)


def require_index(name, value, least):
    require_readable(name, value, "an integer")
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}; expected an integer of "
                         f"{least} or more")
    return number


def require_type(ops, name, x, *types):
    require_tensor(name, x)
    dtype = ops.dtype(x)
    if dtype not in types:
        names = {"f16": "float16", "bf16": "bfloat16", "f32": "float32",
                 "i32": "int32", "i64": "int64"}
        raise ValueError(f"{name} has type {names.get(dtype, dtype)}; expected "
                         + " or ".join(names[t] for t in types))
    return dtype


def same_index_type(ops, tensors):
    """The type of tables, lengths and offsets; all have one, int32 or int64."""
    kinds = {}
    for name, x in tensors.items():
        if x is not None:
            kinds[require_type(ops, name, x, "i32", "i64")] = name
    if len(kinds) > 1:
        raise ValueError(f"{kinds['i32']} is int32 and {kinds['i64']} is int64; "
                         "expected one type for all tables, lengths and offsets")
    return next(iter(kinds), "i32")


def float8_kinds(ops, q, k, v, kv_dtype):
    """The 8-bit floats of queries (None: there are none), keys and values, or "" of
    others."""
    if kv_dtype is not None and kv_dtype not in _FLOAT8:
        raise ValueError(f"kv_dtype is {kv_dtype!r}; expected one of "
                         f"{', '.join(_FLOAT8)}, or None")
    kinds = []
    for name, x in ("q", q), ("k", k), ("v", v):
        if name == "q" and (x is None or not ops.float8_of(x)):
            kinds.append("")
            continue
        kind = ops.float8_of(x) or ""
        if kind == "bytes":
            if kv_dtype is None:
                raise ValueError(f"{name} has elements of a byte; expected "
                                 "kv_dtype, which 8-bit floats they are")
            kind = kv_dtype
        elif kv_dtype is not None and kind != kv_dtype:
            raise ValueError(f"kv_dtype is {kv_dtype!r}, and {name} has type "
                             f"{x.dtype}; expected bytes or that type")
        kinds.append(kind)
    if bool(kinds[1]) != bool(kinds[2]):
        raise ValueError(f"k has type {k.dtype}, and v {v.dtype}; expected 8-bit "
                         "floats of both, or of none")
    if kinds[0] and not kinds[0] == kinds[1] == kinds[2]:
        raise ValueError(f"q has type {q.dtype}, k {k.dtype} and v {v.dtype}; "
                         "expected k and v of the 8-bit floats of q")
    return kinds


def times_queries(ops, q_descale, q, k_of, k_scales, heads):
    """(what there is a scale of, the kernel's tensor of scales) of keys that have
    those of the queries, too: scores are products of both."""
    if q_descale is None:
        return k_of, k_scales
    require_type(ops, "q_descale", q_descale, "f32")
    shape = shape_of(q_descale)
    if len(shape) == 2 and shape[1] == heads and ops.strides(q_descale)[0] == 0:
        # One row for all sequences.
        q_descale, shape = q_descale[0], (heads,)
    if shape not in ((), (1,), (heads,)):
        raise ValueError(f"q_descale has shape {shape}; expected (1), or "
                         f"({heads}), one a key head; of (batch, {heads}) all "
                         "sequences' have to be one, expanded")
    of = "head" if shape == (heads,) and heads > 1 else "tensor"
    scales = q_descale.reshape(-1)
    if k_scales is None:
        return of, ops.contiguous(scales)
    if k_of not in ("tensor", "head"):
        # [..., heads, groups]
        return k_of, k_scales * scales.reshape(-1, 1)
    return "head" if "head" in (of, k_of) else "tensor", k_scales * scales


def descaled(ops, name, scale, x, kind):
    """(what there is a scale of, the kernel's tensor of scales)."""
    if scale is None:
        return "", None
    if not kind:
        raise ValueError(f"{name} is given, and {name[0]} has type {x.dtype}; "
                         "expected 8-bit floats")
    require_type(ops, name, scale, "f32")
    shape, heads = shape_of(scale), x.shape[-2]
    if shape in ((), (1,)):
        return "tensor", scale.reshape(1)
    if shape == (heads,):
        return "head", ops.contiguous(scale)
    if len(shape) == 2 and shape[1] == heads and ops.strides(scale)[0] == 0:
        # One row for all sequences.
        return "head", ops.contiguous(scale[0])
    rows = shape_of(x)[:-1]
    if shape in (rows, (*rows, 1)):
        return "token", scale.reshape(*rows, 1)
    size = x.shape[-1]
    if len(shape) == len(rows) + 1 and shape[:-1] == rows and shape[-1] and (
            size % shape[-1] == 0):
        # Of groups of a token's elements.
        return str(size // shape[-1]), scale
    raise ValueError(f"{name} has shape {shape}; expected (1), ({heads}), one a "
                     f"key head, or {rows}, one a token of it, or several, in a "
                     f"last dimension that divides {size}; of (batch, "
                     f"{heads}) all sequences' have to be one, expanded")


def divided(q, v_descale, output_scale, out):
    """v's scales where the result is divided by one: it is a sum of values."""
    if output_scale is None:
        return v_descale
    ops = _ops.of(q)
    require_type(ops, "output_scale", output_scale, "f32")
    if shape_of(output_scale) not in ((), (1,)):
        raise ValueError(f"output_scale has shape {shape_of(output_scale)}; "
                         "expected (1)")
    if not ops.float8_of(q) or out is None or not ops.float8_of(out):
        kind = "no out is given" if out is None else f"out has type {out.dtype}"
        raise ValueError(f"output_scale is given, q has type {q.dtype}, and {kind}; "
                         "expected 8-bit floats of both")
    if v_descale is None:
        return 1 / output_scale.reshape(1)
    if len(v_descale.shape) == 2 and ops.strides(v_descale)[0] == 0:
        v_descale = v_descale[0]  # One row for all sequences.
    return v_descale / output_scale.reshape(1)


def check_operands(ops, q, k, v, convert=None, quantized=False, kind=""):
    """The type in which the kernel computes. ``kind``: the 8-bit floats of q."""
    if kind and convert:
        raise ValueError(f"convert is {convert!r}, and q has type {q.dtype}; "
                         "expected float32, or no convert")
    dtype = kind or require_type(ops, "q", q, "f16", "bf16",
                                 *(["f32"] if convert else []))
    for name, x in ("k", k), ("v", v):
        if not quantized and ops.dtype(x) != dtype:
            raise ValueError(f"{name} has type {x.dtype}, and q {q.dtype}; "
                             "expected one type for q, k and v")
        if ops.place(x) != ops.place(q):
            raise ValueError(f"{name} is on {ops.place(x)}, and q on "
                             f"{ops.place(q)}; expected one device")
    return dtype if dtype != "f32" else {"float16": "f16",
                                         "bfloat16": "bf16"}[convert]


def padded(ops, x, columns):
    """With columns of zeros up to `columns`."""
    missing = columns - x.shape[-1]
    return ops.pad_columns(x, missing) if missing else ops.rows_contiguous(x)


#: Rows of a sequence, times the query heads that share a key head, up to which
#: there is a kernel for each number of rows: it splits keys over blocks. So it
#: does for as few tokens as these whatever the heads, but for more of them than
#: a tile has rows.
FEW_ROWS, FEW_TOKENS = 32, 8

#: Told of each Request that was run.
on_run = None


def execute(ops, request, like, target=None, schedule=None, device=None,
            stream=None):
    """Launches; (output, log-sum-exp or None)."""
    problem = request.problem
    name = ops.device_name(like)
    emulated = name == "emulator"
    if target is None:
        target = _kernels.chip_on(name)
    kernel = _kernels.find(problem, target, schedule, emulated)
    outputs = [request.out] if request.lse is None else [request.out, request.lse]
    outputs = ops.launch(kernel, request.arguments(ops), request.sizes_of(kernel),
                         outputs, name, device, stream)
    return outputs[0], outputs[1] if len(outputs) > 1 else None


def is_part(ops, k, v):
    """Whether v is the first columns of k's rows, in k's memory, for kernels that
    read each row once. Heads of up to 256 columns have others, which are faster
    where there are many rows."""
    if k.shape[-1] <= 256 or v.shape[-1] < 64:
        return False
    place = ops.address(k)
    return k is v or (place is not None and place == ops.address(v)
                      and ops.dtype(k) == ops.dtype(v)
                      and tuple(ops.strides(k)) == tuple(ops.strides(v)))


def is_one_head(ops, k, v):
    """Whether all heads of k and v are one, expanded: queries' heads then share it,
    where a stride of 0 would be copied for copy engines that do not take it."""
    return all(x.shape[-2] > 1 and ops.strides(x)[-2] == 0 for x in (k, v))


def few_rows(rows, group, latent=False):
    """The rows of a sequence if the kernel is to be for that number only, or
    0."""
    if latent:
        return rows if rows <= FEW_TOKENS else 0
    few = rows * group <= FEW_ROWS or (rows <= FEW_TOKENS and group <= FEW_ROWS)
    return rows if few else 0


#: Where a ragged batch of unknown shortest queries has one kernel for all of them:
#: each of its tiles walks over so many keys at most, and there are no more tiles of
#: so many rows than the smallest chip has multiprocessors. Kernels of few rows beside
#: it, which split keys, then save less than it takes to launch them.
ALONE_KEYS, ALONE_TILES, TILE_ROWS = 1024, 108, 128


def runs_alone(q, k, batch, heads, table, longest):
    """Whether such a batch is so small, or has no sequence of few rows, by what the
    host knows."""
    if longest is not None:
        longest = require_index("longest_query", longest, 0)
        if longest <= FEW_ROWS:
            return False  # Launches take a kernel of few rows.
        # So many rows are left to the shortest one where all others are as long as
        # any may be. (Unless the last ends before the rows do: that kernel has
        # sequences of few rows, too.)
        if q.shape[0] - (batch - 1) * longest > FEW_ROWS:
            return True
    keys = (k.shape[0] if len(k.shape) == 3 else
            k.shape[1] * (table.shape[1] if table is not None
                          and len(table.shape) == 2 else 1))
    tiles = (q.shape[0] // TILE_ROWS + batch) * heads
    return keys <= ALONE_KEYS and tiles <= ALONE_TILES


def build(ops, q, k, v, *, q_offsets=None, k_offsets=None, table=None,
          lengths=None, counts="all", longest=None, shortest=None, scale=None, causal=False,
          left=-1, right=-1, softcap=0.0, sink=None, out=None, lse=None,
          want_lse=False, batch_invariant=False, convert=None, alibi=None,
          bias=None, keep=None, q_descale=None, k_descale=None, v_descale=None,
          kv_dtype=None, tree=None, prefix=None, append=None, regions=None,
          captured=()):
    """A Request of tensors in the kernels' layouts, checked.

    ``append``: (keys, values, (cosines, sines) or None, interleaved) of new
    tokens, one for each query row, that the kernel stores first. That they suit
    one, `fits_append` has found.

    ``regions``: the Problem's fields ``score``, ``visible`` and ``captures``, whose
    tensors are ``captured``.

    ``table`` and ``lengths`` are those of a cache: paged if ``table`` has two
    dimensions, continuous if it has one."""
    ragged = q_offsets is not None
    rank = 3 if ragged else 4
    require_rank("q", q, rank, "(rows, heads, head size)" if ragged else
                 "(batch, rows, heads, head size)")
    key_rank = 3 if k_offsets is not None else 4
    if keep is not None:
        require_tensor("mask", keep)
    for name, x in ("k", k), ("v", v):
        require_rank(name, x, key_rank, "(rows, heads, head size)" if
                     key_rank == 3 else "(batch, rows, heads, head size), or "
                     "(blocks, rows, heads, head size) of a cache")
    if shape_of(k)[:-1] != shape_of(v)[:-1]:
        raise ValueError(f"v has shape {shape_of(v)}, and k {shape_of(k)}; "
                         "expected them to agree but for the head size")
    heads, size = shape_of(q)[-2:]
    if k_descale is None and v_descale is None and not append and is_one_head(ops, k, v):
        if v.shape[-2] and heads % v.shape[-2] == 0:
            k, v = k[..., :1, :], v[..., :1, :]
    kv_heads, value_size = shape_of(v)[-2:]
    if k.shape[-1] != size:
        raise ValueError(f"k has head size {k.shape[-1]}, and q {size}; expected "
                         "one head size")
    if kv_heads == 0 or heads % kv_heads:
        raise ValueError(f"q has {heads} heads, which are no multiple of the "
                         f"{kv_heads} heads of k and v")
    q_kind, k_kind, v_kind = float8_kinds(ops, q, k, v, kv_dtype)
    dtype = check_operands(ops, q, k, v, convert, quantized=bool(k_kind),
                           kind=q_kind)
    k_of, k_scales = descaled(ops, "k_descale", k_descale, k, k_kind)
    if q_descale is not None and not q_kind:
        raise ValueError(f"q_descale is given, and q has type {q.dtype}; expected "
                         "8-bit floats")
    rows_of = k_of, k_scales
    k_of, k_scales = times_queries(ops, q_descale, q, k_of, k_scales, kv_heads)
    v_of, v_scales = descaled(ops, "v_descale", v_descale, v, v_kind)
    index = same_index_type(ops, {"q_offsets": q_offsets, "k_offsets": k_offsets,
                                  "table": table, "lengths": lengths})
    if ragged:
        require_rank("q_offsets", q_offsets, 1, "(batch + 1)")
        if q_offsets.shape[0] == 0:
            raise ValueError("q_offsets is empty; expected batch + 1 offsets")
        batch = q_offsets.shape[0] - 1
    else:
        batch = q.shape[0]
    if k_offsets is not None:
        require_shape("k_offsets", k_offsets, (batch + 1,), "batch + 1")
        cache = "ragged"
    elif table is not None:
        cache = "paged" if len(table.shape) == 2 else "continuous"
        require_shape("lengths", lengths, (batch,), "one a sequence")
        if table.shape[0] != batch or len(table.shape) > 2:
            raise ValueError(
                f"the table of blocks has shape {shape_of(table)}; expected "
                f"{batch}, or {batch} by the most pages of a sequence")
    else:
        cache = "dense"
        if k.shape[0] != batch:
            raise ValueError(f"k has a batch of {k.shape[0]}, and q of {batch}")
    if scale is not None:
        scale = require_number("scale", scale)
    elif size % 8:
        scale = size ** -0.5
    if sink is not None:
        require_shape("sink", sink, (heads,), "one a query head")
        require_type(ops, "sink", sink, "f32")
    if alibi is not None:
        require_type(ops, "alibi_slopes", alibi, "f32")
        if shape_of(alibi) not in ((heads,), (batch, heads)):
            raise ValueError(f"alibi_slopes has shape {shape_of(alibi)}; expected "
                             f"{(heads,)}, or {(batch, heads)}")
    if bias is not None or keep is not None:
        if ragged or cache != "dense":
            raise NotImplementedError(
                "a bias or a mask by a tensor is given; kvbuf takes it with dense "
                "q, k and v alone")
        grid = batch, heads, q.shape[1], k.shape[1]
        if bias is not None:
            require_type(ops, "bias", bias, "f16", "bf16", "f32")
            bias = ops.broadcast("bias", bias, grid)
        if keep is not None:
            keep = ops.broadcast("mask", ops.as_flags("mask", keep), grid)
    if tree is not None:
        require_rank("tree", tree, 2, "(batch, tokens)")
        require_type(ops, "tree", tree, "i32")
        rows = longest if ragged else q.shape[1]
        if rows is None:
            raise ValueError("tree is given, and q_offsets without "
                             "longest_query; expected the most new tokens")
        if not rows <= tree.shape[1] <= 32 or tree.shape[0] != batch \
                or not tree.shape[1]:
            raise ValueError(
                f"tree has shape {shape_of(tree)}; expected ({batch}, the new "
                f"tokens of a sequence), here {max(rows, 1)} to 32 of them")
    if prefix is not None:
        require_shape("prefix", prefix, (batch,), "one a sequence")
        require_type(ops, "prefix", prefix, "i32", "i64")
        if not causal:
            raise ValueError("prefix is given, and causal is false; expected a mask "
                             "that hides keys behind the prefix")
    if lse is not None:
        want_lse = True
    unit = 16 if q_kind else 8
    depth, value_depth = (-(-n // unit) * unit for n in (size, value_size))
    # Heads that are padded are copies; rows have one scale, beside that of the
    # queries.
    q_scale = None if q_descale is None else q_descale.reshape(-1)
    latent = (not append and is_part(ops, k, v)
              and (depth, value_depth) == (size, value_size)
              and k_descale is v_descale and rows_of[0] in ("", "tensor", "head")
              and (q_scale is None or (q_scale.shape[0] == 1 and not softcap
                                       and not regions)))
    if latent:
        k_of, k_scales = rows_of
    out_shape = (*shape_of(q)[:-1], value_size)
    stored = "bf16" if q_kind else dtype
    if out is not None:
        ops.require_writable("out", out)
        require_shape("out", out, out_shape, "that of q, and v's head size")
        if q_kind and ops.float8_of(out):
            if ops.float8_of(out) not in ("bytes", q_kind):
                raise ValueError(f"out has type {out.dtype}, and q {q.dtype}; "
                                 "expected 8-bit floats of q's type, or others")
            if value_size % unit or ops.strides(out)[-1] != 1:
                raise NotImplementedError(
                    f"out has 8-bit floats, {value_size} columns and a last stride "
                    f"of {ops.strides(out)[-1]}; kvbuf takes multiples of {unit} "
                    "columns, side by side")
            stored = q_kind
        elif ops.dtype(q) != dtype and not q_kind:
            require_type(ops, "out", out, ops.dtype(q))
        else:
            require_type(ops, "out", out, "f16", "bf16", "f32")
            stored = ops.dtype(out)
    problem = Problem(
        heads=heads, kv_heads=kv_heads, head_size=depth, dtype=dtype,
        query="ragged" if ragged else "dense", cache=cache,
        page_size=k.shape[1] if cache == "paged" else 0, index=index,
        lengths=counts, causal=bool(causal), window_left=left,
        window_right=right, scale=size ** -0.5 if scale is None and depth != size
        else scale, softcap=require_number("softcap", softcap),
        sink=sink is not None, lse=want_lse, batch_invariant=batch_invariant,
        alibi=0 if alibi is None else len(alibi.shape),
        bias="" if bias is None else ops.dtype(bias), hidden=keep is not None,
        tree=tree is not None,
        prefix="" if prefix is None else ops.dtype(prefix),
        seq_q=0 if ragged else few_rows(q.shape[1], heads // kv_heads, latent),
        k_dtype=k_kind, v_dtype="" if latent else v_kind, k_scale=k_of,
        v_scale="" if latent else v_of, latent=latent,
        v_head_size=value_depth if value_depth != depth else 0,
        o_dtype=stored if q_kind or stored != dtype else "",
        alone=(ragged and shortest is None and not latent and not batch_invariant
               and runs_alone(q, k, batch, heads, table, longest)),
        q_scale=latent and q_scale is not None,
        **(regions or {}), **append_fields(ops, append))

    def operand(x, columns=depth):
        if q_kind or (k_kind and x is not q):
            return padded(ops, ops.as_bytes(x), columns)
        return padded(ops, x if ops.dtype(x) == dtype else ops.cast(x, dtype),
                      columns)

    request = Request(problem, {"q": operand(q), "k": operand(k),
                                "v": operand(v, value_depth)})
    tensors = request.tensors
    if append:
        tensors["k_new"], tensors["v_new"] = append[:2]
        if append[2]:
            tensors["cos"], tensors["sin"] = append[2]
    if ragged:
        tensors["q_offsets"] = ops.contiguous(q_offsets)
        if longest is not None:
            request.sizes["seq_q"] = min(
                require_index("longest_query", longest, 0), q.shape[0])
        if shortest is not None:
            request.sizes["shortest_q"] = require_index("shortest_query", shortest, 0)
    if k_offsets is not None:
        tensors["k_offsets"] = tensors["v_offsets"] = ops.contiguous(k_offsets)
    if table is not None:
        tensors["k_table"] = tensors["v_table"] = ops.contiguous(table)
        tensors["k_lengths"] = tensors["v_lengths"] = ops.contiguous(lengths)
    for name, scales in ("k_scales", k_scales), ("v_scales", v_scales):
        if scales is not None:
            tensors[name] = scales
    if latent:
        for name in "v", "v_offsets", "v_table", "v_lengths", "v_scales":
            tensors.pop(name, None)
    if problem.q_scale:
        tensors["q_scale"] = ops.contiguous(q_scale)
    if sink is not None:
        tensors["sink"] = ops.contiguous(sink)
    if alibi is not None:
        tensors["alibi"] = ops.contiguous(alibi)
    if bias is not None:
        tensors["bias"] = bias
    if keep is not None:
        tensors["keep"] = keep
    if tree is not None:
        tensors["tree"] = ops.contiguous(tree)
    if prefix is not None:
        tensors["prefix"] = ops.contiguous(prefix)
    for i, x in enumerate(captured):
        tensors[f"capture{i}"] = x
    plain = value_depth == value_size and (q_kind or ops.dtype(q) == dtype)
    if plain and out is not None and stored == q_kind:
        request.out, request.finish = ops.as_bytes(out), lambda _: out
    elif plain and out is not None and ops.strides(out)[-1] == 1:
        request.out = out
    elif plain and out is None and isinstance(ops, _ops.Foreign):
        raise NotImplementedError(f"out cannot be allocated for a "
                                  f"{type(q).__name__}; pass it")
    elif plain and out is None:
        alike = value_size == size and not q_kind
        if alike:
            request.out = ops.empty_like(q)
        if not alike or ops.strides(request.out)[-1] != 1:
            request.out = ops.empty(out_shape, stored, q)
    else:
        request.out = ops.empty((*shape_of(q)[:-1], value_depth), stored, q)

        def finish(result):
            result = result[..., :value_size]
            if ops.dtype(q) != dtype and not q_kind:
                result = ops.cast(result, ops.dtype(q))
            if out is None:
                return ops.contiguous(result)
            ops.copy(out, result)
            return out

        request.finish = finish
    if want_lse:
        lse_shape = ((heads, q.shape[0]) if ragged
                     else (batch, heads, q.shape[1]))
        if lse is None:
            lse = ops.empty(lse_shape, "f32", q)
        else:
            ops.require_writable("lse", lse)
            require_shape("lse", lse, lse_shape, "one number a row and head")
            require_type(ops, "lse", lse, "f32")
        request.lse = lse
    request.empty = batch == 0 or 0 in out_shape
    return request


def append_fields(ops, append):
    """The fields of a Problem for new tokens that its kernel stores."""
    if not append:
        return {}
    angles, interleaved = append[2:]
    if not angles:
        return {"append": "plain"}
    return {"append": "interleaved" if interleaved else "half",
            "rope": angles[0].shape[1], "angles": ops.dtype(angles[0])}


def fits_append(ops, q, k_cache, v_cache, k, v, angles, interleaved=False):
    """Whether the kernel that attends can store the new tokens itself: there are
    as many as query rows, which one tile holds with all heads that share a key
    head, a warp's lanes hold what is rotated of a head, and all tensors lie as it takes
    them."""
    rows, heads, size = q.shape[1:]
    kv_heads = k_cache.shape[2]
    if (k.shape[1] != rows or not q.shape[0] or not rows or not kv_heads
            or heads % kv_heads or rows * (heads // kv_heads) > FEW_ROWS
            or ops.dtype(q) not in ("f16", "bf16") or size % 8 or size > 256
            or k_cache.shape[-1] != size or v_cache.shape[-1] % 8
            or not 0 < v_cache.shape[-1] <= 256):
        return False

    def lies_well(x, width):
        strides = ops.strides(x)
        place = ops.address(x)
        return (place is not None and place % 16 == 0 and strides[-1] == 1
                and not any(n < 0 or n * width % 16 for n in strides[:-1]))

    stored = 1 if ops.float8_of(k_cache) else 2
    if not (all(lies_well(x, 2) for x in (q, k, v))
            and all(lies_well(x, stored) for x in (k_cache, v_cache))):
        return False
    if not angles:
        return True
    # A lane's elements are rotated together, or none of them.
    rotated = angles[0].shape[1] * (2 if interleaved else 1)
    if size > 32 * math.gcd(rotated, 8):
        return False
    width = {"f32": 4, "f16": 2, "bf16": 2}.get(ops.dtype(angles[0]))
    return bool(width) and ops.dtype(angles[1]) == ops.dtype(angles[0]) and all(
        ops.strides(x) == (x.shape[1], 1) and ops.address(x) % 16 == 0
        for x in angles)


def run(ops, request, like, **where):
    """(output, log-sum-exp or None) of a Request, as its caller gets them."""
    out, lse = request.out, request.lse
    if request.empty:
        out = ops.without_elements(out)
        lse = None if lse is None else ops.without_elements(lse)
    else:
        out, lse = execute(ops, request, like, **where)
    if on_run:
        on_run(request)
    if request.finish:
        out = request.finish(out)
    return out, lse


def check_window(name, window):
    """(left, right) with -1 for open sides."""
    if window is None:
        return -1, -1
    require_readable(name, window, "(left, right)")
    try:
        left, right = window
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {window!r}; expected (left, right)") from None

    def side(value):
        if value is None:
            return -1
        return max(require_index(name, value, -2**31), -1)

    return side(left), side(right)


def attention(
        q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False,
        window: tuple | None = None, scale: float | None = None,
        softcap: float | None = None, sink: Tensor | None = None,
        q_offsets: Tensor | None = None, k_offsets: Tensor | None = None,
        longest_query: int | None = None, shortest_query: int | None = None,
        page_table: Tensor | None = None,
        slots: Tensor | None = None, lengths: Tensor | None = None,
        lengths_count: str = "all", out: Tensor | None = None,
        lse: Tensor | None = None, return_lse: bool = False,
        alibi_slopes: Tensor | None = None, bias: Tensor | None = None,
        mask: Tensor | None = None, tree: Tensor | None = None,
        prefix: Tensor | None = None,
        q_descale: Tensor | None = None, k_descale: Tensor | None = None,
        v_descale: Tensor | None = None, kv_dtype: str | None = None,
        output_scale: Tensor | None = None,
        batch_invariant: bool = False, convert: str | None = None,
        target: str | None = None, schedule: str | None = None,
        device: Device | str | None = None, stream: int | None = None
        ) -> Tensor | tuple[Tensor, Tensor]:
    """softmax(scale * Q K^T) V over the keys that each query sees.

    Tensors are torch's, numpy's (uint16 holds the bits of bfloat16), JAX's, or of
    any library that speaks DLPack or ``__cuda_array_interface__``; the latter
    need ``out``, and JAX's cannot be written. Those in GPU memory run there, on
    their framework's current stream, those in host memory on the emulator. No
    call waits for a device, but those on JAX's arrays; in functions that JAX traces
    (jax.jit, vmap) a call is one of XLA's programs.

    Shapes, with H query heads, G key and value heads (H a multiple of G: query
    head h reads head h // (H / G)), head size D:

    ========================  =====================  ==========================
    \\                         q, out                 k, v
    ========================  =====================  ==========================
    dense                     [batch, rows, H, D]    [batch, keys, G, D]
    ragged queries            [rows, H, D]           any of these
    ragged keys               any of these           [keys, G, D]
    slots of a cache          any of these           [blocks, most, G, D]
    pages of a cache          any of these           [pages, page size, G, D]
    ========================  =====================  ==========================

    Types are bfloat16 and float16. The last dimension's elements lie side by
    side (if not, q, k or v is copied); every other stride is free. A head size
    that is no multiple of 8 costs a copy with zeros. v may have a head size of
    its own, which the result then has. Where v is a view of k's first columns
    (``k[..., :512]``, latent attention), kernels read each row once, for both.

    ``causal``: query row i of n stands at key i + keys - n (bottom-right) and
    sees the keys up to there. ``window=(left, right)``: it sees so many keys
    before and after that place besides it; None, or -1, is no limit.
    ``scale``: of the scores, default 1/sqrt(D). ``softcap`` c > 0 makes a score s
    c * tanh(s / c). ``sink`` [H] (float32): exp(sink[h]) joins the denominator;
    inf makes the rows 0.

    ``alibi_slopes`` [H] or [batch, H] (float32): a score falls by the slope times
    the distance between the key and the query's place. ``bias`` (bfloat16,
    float16 or float32) is added to scores, and hides keys by -inf; ``mask``
    (booleans, or int32 or int64, of which 0 hides) says which keys a row sees. Both
    are [batch, H, rows, keys], any of these 1, with dense q, k and v. ``tree`` [batch, tokens] (int32):
    bit n of a new token's word says that it sees new token n, of up to 32; all see
    the keys before these, as far as ``causal`` and ``window`` let them. ``prefix``
    [batch] (int32 or int64): ``causal`` hides none of a sequence's first so many keys,
    as of a prefix whose tokens see each other; 0 of one that is causal, 2^30 of one
    that is not (a window still hides what is outside of it, a right side, too). On an H200
    slopes cost many rows a tenth to a fifth of the speed, a bias two thirds: a
    number is read for each score, as for a mask.

    ``q_offsets``, ``k_offsets`` [batch + 1]: where each sequence begins and the
    last one ends. ``longest_query``: a bound of the longest query, for a better
    order of work. ``shortest_query``: no query that is not empty has fewer rows, as
    whoever made the offsets knows; where it is more than 8, or than a tile of few
    rows holds, one kernel is launched and not those for short ones besides. Rows of
    shorter queries are not computed then. ``page_table`` [batch, pages] or ``slots`` [batch], with
    ``lengths`` [batch]: where a cache holds each sequence, and its tokens;
    ``lengths_count`` "all" of them, or "cached": those before this call's, whose
    number is that of the sequence's queries. All are int32, or all int64.

    k and v may be 8-bit floats (torch's, or bytes: ``kv_dtype`` says which, "e4m3",
    "e5m2", "e4m3fnuz" or "e5m2fnuz"). ``k_descale`` and ``v_descale`` (float32)
    are what they stand for themselves times: a number of the tensor [1], of each
    head [G] (or [batch, G], one row expanded), or of each token's head, of k's and
    v's shape without the last dimension; or with another last one, of as many
    groups of the head's elements. q may be of the same 8-bit floats, with
    ``q_descale`` [1] or [G] (or [batch, G], one row expanded): products are then of
    8-bit floats, on chips that have them, weights are rounded to e4m3, the result
    is bfloat16 unless ``out`` says otherwise, and ``v_descale`` is of the tensor or
    of each head.

    ``out``: written and returned in place of a new tensor; float32, bfloat16 or
    float16, whatever q's type is (with ``convert`` q's), or of q's 8-bit floats: of
    the result divided by ``output_scale`` [1] (float32), where there is one, as
    they are rounded to; what exceeds the largest is the largest. It shares no memory with
    k or v, which are still read while it is written. With ``return_lse``,
    or ``lse`` (float32, [batch, H, rows], ragged [H, rows]), the result is (out,
    lse), with the natural logarithm of the sum of exp(scores). A row that sees
    no key gives 0 and -inf (with a sink: 0 and the sink).

    ``batch_invariant``: the bits of a row depend on its own sequence alone.
    ``convert`` "bfloat16" or "float16": float32 tensors are rounded to it, and
    the result is float32 again. ``target`` and ``schedule`` overrule the chip
    and the compiler's choice; ``device`` and ``stream``: as for an Artifact.

    Raises ValueError for arguments that do not fit together,
    NotImplementedError for what no kernel computes, Error where the compiler or
    the runtime refuses."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(q, torch.Tensor):
        floats = (q, k, v, sink, alibi_slopes, bias, q_descale, k_descale,
                  v_descale, output_scale, out, lse)
        from . import _torch_state
        lost = _torch_state.wants_derivatives(*floats)
        if lost:
            raise NotImplementedError(
                f"kvbuf.attention {lost}, or on tensors.detach()")
        v_descale = divided(q, v_descale, output_scale, out)
        if _torch_state.is_operator(
                "kvbuf.attention", *floats, q_offsets, k_offsets, page_table,
                slots, lengths, mask, tree, prefix):
            from . import torch as functions
            return functions.attention_by_operator(
                q=q, k=k, v=v, causal=causal, window=window, scale=scale,
                softcap=softcap, sink=sink, q_offsets=q_offsets,
                k_offsets=k_offsets, longest_query=longest_query,
                shortest_query=shortest_query, page_table=page_table, slots=slots, lengths=lengths,
                lengths_count=lengths_count, out=out, lse=lse,
                return_lse=return_lse, alibi_slopes=alibi_slopes, bias=bias,
                mask=mask, tree=tree, prefix=prefix, q_descale=q_descale, k_descale=k_descale,
                v_descale=v_descale, kv_dtype=kv_dtype,
                output_scale=None,  # V's scale has it.
                batch_invariant=batch_invariant,
                convert=convert, target=target, schedule=schedule,
                device=device, stream=stream)
    else:
        v_descale = divided(q, v_descale, output_scale, out)
    ops = _ops.of(q, k, v, sink, q_offsets, k_offsets, page_table, slots, lengths,
                  alibi_slopes, bias, mask, tree, prefix, q_descale, k_descale,
                  v_descale)
    left, right = check_window("window", window)
    causal = require_flag("causal", causal)
    if lengths_count not in ("all", "cached"):
        raise ValueError(f"lengths_count is {lengths_count!r}; expected \"all\" "
                         "or \"cached\"")
    if convert not in (None, "bfloat16", "float16"):
        raise ValueError(f"convert is {convert!r}; expected \"bfloat16\" or "
                         "\"float16\"")
    given = [name for name, value in (
        ("k_offsets", k_offsets), ("page_table", page_table), ("slots", slots))
        if value is not None]
    if len(given) > 1:
        raise ValueError(f"{given[0]} and {given[1]} are of different caches")
    table = page_table if page_table is not None else slots
    if (table is None) != (lengths is None):
        raise ValueError("lengths go with page_table or slots, and these with "
                         "lengths")
    for name, value, rank in ("page_table", page_table, 2), ("slots", slots, 1):
        if value is not None:
            require_rank(name, value, rank, "(batch, pages)" if rank == 2 else
                         "(batch)")
    request = build(
        ops, q, k, v, q_offsets=q_offsets, k_offsets=k_offsets, table=table,
        lengths=lengths, counts=lengths_count, longest=longest_query,
        shortest=shortest_query,
        scale=scale, causal=causal, left=left, right=right,
        softcap=softcap or 0.0, sink=sink, out=out, lse=lse,
        want_lse=return_lse, batch_invariant=batch_invariant, convert=convert,
        alibi=alibi_slopes, bias=bias, keep=mask, q_descale=q_descale,
        k_descale=k_descale, v_descale=v_descale, kv_dtype=kv_dtype, tree=tree,
        prefix=prefix)
    out, lse = run(ops, request, q, target=target, schedule=schedule,
                   device=device, stream=stream)
    return (out, lse) if request.problem.lse else out
