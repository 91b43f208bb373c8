# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""flex_attention where torch.compile traces it: one operator of the graph.

Functions are no arguments of operators. So Dynamo records a higher-order operator
first, as it does of torch's own flex_attention: the functions as graphs, whose captured
tensors are arguments. Where the graph is lowered, or runs as it is, that becomes
kvbuf::flex_attention: regions as text, and the tensors that kernels read. What is
computed of captured tensors alone are then operators of the graph, too."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from torch.utils._python_dispatch import _disable_current_modes

from . import _flex, _flex_lists
from ._report import Record


def _shapes(query, value):
    """New tensors like an output and its log-sum-exps."""
    return (query.new_empty((*query.shape[:-1], value.shape[-1])),
            query.new_empty(query.shape[:-1], dtype=torch.float32))


#===------------------------------------------------------------------------===#
# The operator that kernels are behind
#===------------------------------------------------------------------------===#

#: Set by _flex_attention, which imports this module: (out, lse or None) of a kernel,
#: and the record of calls.
launch = None
record: Record = None


@torch.library.custom_op(
    "kvbuf::flex_attention", mutates_args=(),
    schema="(Tensor query, Tensor key, Tensor value, Tensor[] captured, Tensor[] lists, "
           "str kind, bool causal, int left, int right, float softcap, str score, "
           "str visible, str captures, float? scale, bool lse, str? convert) "
           "-> (Tensor, Tensor)")
def _operator(query, key, value, captured, lists, kind, causal, left, right, softcap,
              score, visible, captures, scale, lse, convert):
    regions = _flex.Regions(causal, left, right, softcap, _lines(score),
                            _lines(visible), captures)
    out, numbers = launch(query, key, value, regions, captured, (kind, lists), scale,
                          lse, convert)
    record.taken += 1
    return out, numbers if lse else _shapes(query, value)[1]


def _lines(text):
    return text.replace("\\n", "\n")


def _one_line(text):
    """Inductor writes arguments into comments, of a line each."""
    return text.replace("\n", "\\n")


@_operator.register_fake
def _fake(query, key, value, *_, **__):
    return _shapes(query, value)


#===------------------------------------------------------------------------===#
# The higher-order operator
#===------------------------------------------------------------------------===#


class _Functions(HigherOrderOperator):
    """As torch's `flex_attention` of this kind, whose arguments Dynamo makes of
    functions. `block_mask` is what torch's has, and before its last, the mask's
    function, the tensors of lists for the kernel. `options` are kvbuf's."""

    def __init__(self):
        super().__init__("kvbuf_flex_attention")

    def __call__(self, query, key, value, score_mod, block_mask, scale, options,
                 score_captures=(), mask_captures=()):
        return super().__call__(query, key, value, score_mod, block_mask, scale,
                                options, score_captures, mask_captures)


_functions = _Functions()


def _stand_in(x, mode, exactly):
    """A tensor that says of one of the graph what functions may ask: a size that is not
    known counts as the one it had, unless `exactly`: then the graph is for that."""
    def size(n):
        hint = None if exactly or isinstance(n, int) else getattr(n.node, "hint", None)
        return int(n) if hint is None else int(hint)

    with mode:
        return torch.empty_strided([size(n) for n in x.shape],
                                   [size(n) for n in x.stride()], dtype=x.dtype,
                                   device=x.device)


def _fixed(graph, captures):
    """A graph's captures with numbers as numbers of Python's: a size that is not known
    is an argument wherever a tensor has it, and counts only where the graph uses it."""
    if not captures:
        return []
    arguments = [node for node in graph.graph.nodes if node.op == "placeholder"]
    return [x if isinstance(x, Tensor) else int(x) if node.users else None
            for x, node in zip(captures, arguments[-len(captures):])]


def _traced(score_mod, mask_mod, score_captures, mask_captures, device, seen=(),
            block_size=None):
    """The functions, traced, and what they captured. `seen` has what lists of blocks of
    that size name, which the mask then shows alone."""
    given = [*_fixed(score_mod, score_captures), *_fixed(mask_mod, mask_captures),
             *seen]
    count, end = len(score_captures), len(given) - len(seen)
    for exactly in False, True:
        # Else the outer trace's fakes would be mixed with these.
        with _disable_current_modes(), torch._guards.tracing(None):
            mode = FakeTensorMode(allow_non_fake_inputs=True)
            own = [_stand_in(x, mode, exactly) if isinstance(x, Tensor) else x
                   for x in given]
            mask = None if mask_mod is None else (
                lambda *a: mask_mod(*a, *own[count:end]))
            if seen:
                mask = _flex_lists.shown(own[end], block_size, mask)
            traced = _flex.Traced(
                None if score_mod is None else (
                    lambda *a: score_mod(*a, *own[:count])), mask, device, own, mode)
        # Sizes are in what is computed of tensors; not in elements that are read.
        if all(node.op == "get_attr" for node in traced.captures.nodes):
            break
    return traced, given


def _lowered(query, key, value, score_mod, block_mask, scale, options,
             score_captures, mask_captures):
    """kvbuf::flex_attention of a graph's functions."""
    lists = block_mask[len(block_mask) - 1 - options["lists"]:-1]
    kind, mask_mod = options["kind"], block_mask[-1]
    if options["alone"]:
        mask_mod, mask_captures = None, ()
    functions = (score_mod if options["score"] else None, mask_mod,
                 score_captures if options["score"] else (), mask_captures,
                 query.device)
    traced, given = _traced(*functions)
    if kind and traced.hides_by_score:
        # Keys that the score hides are hidden in blocks, too, that the mask shows whole.
        size = options["block_size"]
        seen = _flex_lists.listed(lists, -(-key.shape[2] // size[1]))
        kind, lists = "", ()
        traced, given = _traced(
            *functions, [seen.expand(*query.shape[:2], -1, -1).contiguous()], size)
    for x in given:
        if isinstance(x, Tensor) and x.requires_grad and torch.is_grad_enabled():
            raise _flex.Untraced("a captured tensor requires gradients")
    rows, keys = query.shape[2], key.shape[2]
    regions = traced.regions(bool(rows == keys))
    captured = []
    if regions.score or regions.visible:
        captured = traced.captures.tensors(given, query.device)
        traced.require_sizes(captured, {
            "batch": query.shape[0], "head": query.shape[1], "row": rows,
            "key": keys})
    if not kind:
        lists = ()
    return torch.ops.kvbuf.flex_attention(
        query, key, value, captured, [x.to(torch.int32).contiguous() for x in lists],
        kind, regions.causal, regions.left, regions.right, float(regions.softcap),
        _one_line(regions.score), _one_line(regions.visible), regions.captures, scale,
        options["lse"], options["convert"])


def _by_torch(query, key, value, score_mod, block_mask, scale, options, *captures):
    """(out, log-sum-exps) of torch's operator of this kind."""
    from torch._higher_order_ops.flex_attention import flex_attention
    theirs = (*block_mask[:len(block_mask) - 1 - options["lists"]], block_mask[-1])
    out, lse, *_ = flex_attention(
        query, key, value, score_mod, theirs,
        query.shape[-1] ** -0.5 if scale is None else scale,
        {"BACKEND": "AUTO", "PRESCALE_QK": False, "ROWS_GUARANTEED_SAFE": False,
         "BLOCKS_ARE_CONTIGUOUS": False, "WRITE_DQ": True, "OUTPUT_LOGSUMEXP": True,
         "OUTPUT_MAX": False}, *captures)
    return out, lse * math.log(2)  # torch's are of base 2


def _made(*given):
    """What becomes of the higher-order operator."""
    try:
        return _lowered(*given)
    except (NotImplementedError, ValueError) as why:
        record.refused[str(why)] += 1
        return _by_torch(*given)


@_functions.py_impl(DispatchKey.CompositeExplicitAutograd)
def _plain(*given):
    return _made(*given)


@_functions.py_impl(DispatchKey.Autograd)
def _autograd(*given):
    captures = [*given[-2], *given[-1]]
    if torch.is_grad_enabled() and any(
            isinstance(x, Tensor) and x.requires_grad for x in captures):
        record.refused["a captured tensor requires gradients"] += 1
        return _by_torch(*given)
    with torch._C._AutoDispatchBelowAutograd():
        return _functions(*given)


@_functions.py_impl(FakeTensorMode)
def _with_fakes(mode, query, key, value, *_):
    with mode:
        return _shapes(query, value)


@_functions.py_impl(ProxyTorchDispatchMode)
def _with_proxies(mode, *given):
    with mode:
        return _made(*given)


@_functions.py_functionalize_impl
def _functionalized(ctx, query, key, value, score_mod, block_mask, scale, options,
                    score_captures, mask_captures):
    tensors = ctx.unwrap_tensors((query, key, value, tuple(block_mask[:-1]),
                                  tuple(score_captures), tuple(mask_captures)))
    query, key, value, parts, score_captures, mask_captures = tensors
    with ctx.redispatch_to_next():
        out = _functions(query, key, value, score_mod, (*parts, block_mask[-1]),
                         scale, options, score_captures, mask_captures)
    return ctx.wrap_tensors(out)


def available() -> bool:
    """Whether this torch's Dynamo makes arguments of functions: it does so for its own
    operator, by that one's name."""
    try:
        from torch._dynamo.variables import higher_order_ops
        known = higher_order_ops._hop_name_to_variable_class
        known.setdefault(_functions.name(), known["flex_attention"])
    except (ImportError, AttributeError, KeyError):  # another torch
        return False
    return True


def call(query, key, value, score_mod, block_mask, lists, alone, block_size, scale, lse,
         convert):
    """(out, log-sum-exps) while Dynamo traces. `block_mask` is a BlockMask's tuple;
    `lists` are _flex_attention's."""
    kind, tensors = lists or ("", ())
    options = {"kind": kind, "lists": len(tensors), "alone": alone,
               "block_size": tuple(block_size),
               "score": score_mod is not None, "lse": lse, "convert": convert}
    return _functions(query, key, value, _same if score_mod is None else score_mod,
                      (*block_mask[:-1], *tensors, block_mask[-1]), scale, options)


def _same(score, batch, head, row, key):
    return score
