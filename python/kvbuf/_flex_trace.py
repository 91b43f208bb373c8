# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlexAttention's functions of scores and of visibility as expressions.

make_fx records a function's operators on numbers. What depends on neither score nor
place (a captured tensor, or one computed of such) is computed by torch before each
call, and is a capture of the kernel's; the rest becomes expressions."""

from __future__ import annotations

import functools
import math
import types

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

from . import _flex_ops
from ._flex_text import (BATCH, HEAD, KEY, PLACES, ROW, SCORE, Expr, Untraced,
                         const, convert, narrow)

_KINDS = {torch.bool: "i1", torch.int32: "i32", torch.int64: "i64",
          torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}


def kind_of(dtype):
    if dtype not in _KINDS:
        raise Untraced(f"a number of type {dtype} is computed; kvbuf computes "
                       "booleans, int32, int64, float32, float16 and bfloat16")
    return _KINDS[dtype]


class _Index(TorchFunctionMode):
    """x[i] by a number that is not known is a choice of elements, not of a row
    whose number Python reads."""

    def __torch_function__(self, func, _, args=(), kwargs=None):
        if func is torch.Tensor.__getitem__:
            x, at = args
            at = at if isinstance(at, tuple) else (at,)
            numbers = [isinstance(i, torch.Tensor) and i.dim() == 0
                       and i.dtype is not torch.bool for i in at]
            if any(numbers) and all(n or type(i) is int
                                    for n, i in zip(numbers, at)):
                chosen = []
                for number, i in zip(numbers, at):
                    if number:
                        chosen.append(i)
                    else:
                        x = x.select(len(chosen), i)
                return torch.ops.aten.index.Tensor(x, chosen)
        return func(*args, **(kwargs or {}))


class Row:
    """A part of a captured tensor whose first places are chosen, by expressions, or
    by None where they are still open."""

    def __init__(self, number, dtype, places):
        self.number, self.dtype, self.places = number, dtype, places


class Captures:
    """The tensors that kernels read: how each call gets them, by the numbers that
    captures have."""

    def __init__(self):
        self.graphs, self.nodes = [], []
        #: (rank, type) as the kernel has them.
        self.types = []
        #: Sizes that a capture needs: (number, dimension, place).
        self.needs = set()

    def add(self, graph, node):
        for i, (g, n) in enumerate(zip(self.graphs, self.nodes)):
            if n is node or (g is graph and n.op == node.op == "get_attr"
                             and n.target == node.target):
                return i
        value = node.meta["val"]
        if value.dtype in (torch.int8, torch.int16, torch.uint8):
            stored = "i32"
        else:
            stored = {"i1": "i32"}.get(kind_of(value.dtype), kind_of(value.dtype))
        self.graphs.append(graph)
        self.nodes.append(node)
        self.types.append((max(value.dim(), 1), stored))
        return len(self.nodes) - 1

    def tensors(self, given, device):
        """The tensors of a call, whose functions captured `given`."""
        done, result = {}, []
        types = {"i32": torch.int32, "i64": torch.int64, "f32": torch.float32,
                 "f16": torch.float16, "bf16": torch.bfloat16}
        for graph, node, (_, stored) in zip(self.graphs, self.nodes, self.types):
            x = _compute(graph, node, given, done)
            if x.device != device:
                if x.dim():
                    raise Untraced(f"a captured tensor is on {x.device}, and query "
                                   f"on {device}")
                x = x.to(device)
            x = x.detach().to(types[stored])
            result.append((x.reshape(1) if x.dim() == 0 else x).contiguous())
        return result


def _compute(graph, node, given, done):
    """The value of a node that depends on no place."""
    if node in done:
        return done[node]
    if node.op == "get_attr":
        value = graph.constants[node.target]
        value = given[value] if isinstance(value, int) else value
    else:
        def of(a):
            return _compute(graph, a, given, done)
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), of)
        with torch.no_grad():
            value = node.target(*args, **kwargs)
    done[node] = value
    return value


class Graph:
    """The recorded operators of one function. `mode` is that of captured tensors that
    are fakes."""

    def __init__(self, function, score, device, given, mode=None):
        mode = mode or FakeTensorMode(allow_non_fake_inputs=True)
        with mode:
            # As torch's own function has places; sums and products of them need it.
            args = [torch.empty((), dtype=torch.int64, device=device)
                    for _ in range(4)]
            if score:
                args.insert(0, torch.empty((), device=device))
        try:
            with _Index():
                made = make_fx(lambda *a: function(*a), tracing_mode="fake",
                               _allow_non_fake_inputs=True)(*args)
        except Untraced:
            raise
        except Exception as why:  # whatever the function does
            said = (str(why).strip().splitlines() or [""])[0]
            raise Untraced(f"{_name(function)} is not traced: "
                           f"{type(why).__name__}: {said}") from why
        self.nodes = list(made.graph.nodes)
        #: Tensors by name, or their numbers among the captured ones.
        self.constants = {}
        #: Whether another call with captures like these has this graph.
        self.general = True
        for node in self.nodes:
            if node.op == "get_attr":
                value = functools.reduce(getattr, node.target.split("."), made)
                at = next((i for i, x in enumerate(given) if x is value), None)
                if at is None and not isinstance(value, FakeTensor):
                    self.general = False
                self.constants[node.target] = value if at is None else at

    def expression(self, captures, places):
        """What the function returns; `places` are its arguments."""
        values, arguments = {}, iter(places)
        for node in self.nodes:
            if node.op == "placeholder":
                values[node] = next(arguments)
            elif node.op == "output":
                return _number(node.args[0], values, captures, self)
            elif node.op == "call_function":
                value = _evaluate(node, values, captures, self)
                if value is not None:
                    values[node] = value
        raise Untraced("the function returns nothing")


def _number(arg, values, captures, graph):
    """An argument as an expression or a number of Python's."""
    if not isinstance(arg, torch.fx.Node):
        return arg
    if arg not in values:
        # Of captures alone.
        value = arg.meta["val"]
        constant = graph.constants.get(arg.target) if arg.op == "get_attr" else None
        if isinstance(constant, FakeTensor) and constant.constant is not None:
            value = constant.constant
            if value.dim() == 0:
                return const(value.item(), kind_of(value.dtype))
        if isinstance(constant, FakeTensor):
            raise Untraced("a tensor is made inside of the function")
        values[arg] = Row(captures.add(graph, arg), value.dtype,
                          [None] * value.dim())
    value = values[arg]
    if isinstance(value, Row) and None not in value.places:
        kind = _KINDS.get(value.dtype, "i32")
        places = tuple(value.places) or (const(0, "i32"),)
        for dim, place in enumerate(places):
            if place in PLACES:
                captures.needs.add((value.number, dim, place.op))
        value = values[arg] = Expr("load", kind, (value.number, *places))
    return value


#: Operators that hand on what they get.
_SAME = {"clone", "detach", "alias", "lift_fresh_copy", "lift_fresh", "contiguous",
         "lift"}
_RESHAPED = {"view", "reshape", "squeeze", "_unsafe_view", "expand"}


def _evaluate(node, values, captures, graph):
    """The value of an operator; None where it depends on no place."""
    name = node.target.name().split("::")[-1].split(".")[0]
    if name.endswith("_") and not name.startswith("__"):
        name = name[:-1]  # what is changed in place goes on as the result
        if node.args[0] not in values:
            raise Untraced(f"{node.target} changes what depends on no place, such as "
                           "a captured tensor")
    if name == "scalar_tensor":
        return const(node.args[0], kind_of(node.meta["val"].dtype))
    if name == "full" and not node.args[0]:
        return const(node.args[1], kind_of(node.meta["val"].dtype))
    literal = any(isinstance(graph.constants.get(a.target), FakeTensor)
                  for a in node.all_input_nodes if a.op == "get_attr")
    if not literal and not any(a in values for a in node.all_input_nodes):
        return None
    args = [_number(a, values, captures, graph) if not isinstance(a, (list, tuple))
            else [_number(x, values, captures, graph) for x in a]
            for a in node.args]
    kwargs = {n: _number(a, values, captures, graph)
              for n, a in node.kwargs.items()}
    if not any(isinstance(x, (Expr, Row)) for a in [*args, *kwargs.values()]
               for x in (a if isinstance(a, list) else [a])):
        return None
    if name in _SAME:
        return args[0]
    if name == "index" and isinstance(args[0], Row):
        return _chosen(args[0], args[1])
    if name == "select" and isinstance(args[0], Row):
        return _chosen(args[0], [None] * _open(args[0], args[1])
                       + [const(args[2], "i64")])
    if isinstance(args[0], Row) or node.meta["val"].dim():
        if name in _RESHAPED and not node.meta["val"].dim():
            raise Untraced(f"a row of a captured tensor goes through {name}")
        raise Untraced(f"{node.target} computes a tensor that depends on a place; "
                       "kvbuf computes numbers")
    if name in _RESHAPED:
        return args[0]
    return _flex_ops.expression(name, args, kwargs, node)


def _open(row, dim):
    count = row.places.count(None)
    return dim + count if dim < 0 else dim


def _chosen(row, at):
    """A Row with the first open places chosen."""
    places, given = list(row.places), iter(at)
    for dim, place in enumerate(places):
        if place is None:
            i = next(given, None)
            if i is not None and (not isinstance(i, Expr)
                                  or i.type not in ("i32", "i64")):
                raise Untraced("a captured tensor is indexed by what is no number "
                               "of int32 or int64")
            places[dim] = i and (narrow(i) or i)
    return Row(row.number, row.dtype, places)


def _name(function):
    return getattr(function, "__qualname__", type(function).__name__)


#===------------------------------------------------------------------------===#
# What a function follows from
#===------------------------------------------------------------------------===#


class _Opaque(Exception):
    """Something that may change without being another object."""


_FIXED_MODULES = ("torch", "math", "operator", "functools", "numpy")


def fingerprint(function):
    """(a value that is another one wherever the function would be traced another
    way, the tensors that it captures); (None, tensors) if there is no such value."""
    tensors = []
    try:
        return _print(function, tensors, ()), tensors
    except _Opaque:
        return None, tensors


def _print(x, tensors, above):
    if x is None or isinstance(x, (bool, int, float, str, bytes, torch.dtype,
                                   torch.device)):
        return type(x), x, math.copysign(1, x) if type(x) is float else 0
    if isinstance(x, torch.Tensor):
        at = next((i for i, t in enumerate(tensors) if t is x), len(tensors))
        if at == len(tensors):
            tensors.append(x)
        return ("tensor", type(x), at, tuple(x.shape), x.dtype, x.device,
                x.requires_grad)
    if any(x is y for y in above):
        return ("above", next(i for i, y in enumerate(above) if y is x))
    above = (*above, x)
    if isinstance(x, (tuple, list)):
        return type(x), *[_print(y, tensors, above) for y in x]
    if isinstance(x, dict):
        return dict, *[(_print(n, tensors, above), _print(y, tensors, above))
                       for n, y in x.items()]
    if isinstance(x, functools.partial):
        return "partial", *[_print(y, tensors, above)
                            for y in (x.func, x.args, x.keywords)]
    if isinstance(x, types.FunctionType):
        if (x.__module__ or "").split(".")[0] in _FIXED_MODULES and not x.__closure__:
            return "function", x
        return ("function", x.__code__, _print(x.__defaults__, tensors, above),
                _print(x.__kwdefaults__, tensors, above),
                *[_print(_cell(c), tensors, above) for c in x.__closure__ or ()],
                *_globals(x.__code__, x.__globals__, tensors, above))
    if isinstance(x, types.ModuleType):
        if x.__name__.split(".")[0] in _FIXED_MODULES:
            return "module", x.__name__
        raise _Opaque
    if isinstance(x, (types.BuiltinFunctionType, type)) or (
            type(x).__module__.startswith("torch._ops")):
        return "object", x
    raise _Opaque


def _cell(cell):
    try:
        return cell.cell_contents
    except ValueError:  # not yet
        raise _Opaque from None


def _globals(code, names, tensors, above):
    """What the code, and the code of functions inside of it, names."""
    for name in code.co_names:
        if name in names:
            yield name, _print(names[name], tensors, above)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _globals(inner, names, tensors, above)


SCORE_PLACES = (SCORE, BATCH, HEAD, ROW, KEY)
MASK_PLACES = (BATCH, HEAD, ROW, KEY)


def as_type(value, kind):
    """What a function returned, of a type."""
    if isinstance(value, (bool, int, float)):
        return const(value, kind)
    if not isinstance(value, Expr):
        raise Untraced("the function returns no number")
    return convert(value, kind)
