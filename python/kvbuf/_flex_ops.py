# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Torch's operators on numbers as expressions: what each computes, and in which
type."""

from __future__ import annotations

import math

import torch

from ._flex_text import (Expr, Untraced, const, convert, is_const, is_float, narrow,
                         whole)

_TYPES = {"i1": torch.bool, "i32": torch.int32, "i64": torch.int64,
          "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
_KINDS = {dtype: kind for kind, dtype in _TYPES.items()}


def _result(node):
    kind = _KINDS.get(node.meta["val"].dtype)
    if kind is None:
        raise Untraced(f"{node.target} computes a number of type "
                       f"{node.meta['val'].dtype}")
    return kind


def _as(x, kind):
    return convert(x, kind) if isinstance(x, Expr) else const(x, kind)


def _joint(node, *args):
    """The type in which numbers are compared, by torch's rules: numbers of Python's
    count less than tensors."""
    values = [a.meta["val"] if isinstance(a, torch.fx.Node) else a
              for a in node.args[:len(args)]]
    kind = values[0]
    kind = torch.result_type(*values) if len(values) == 2 else kind.dtype
    small = (torch.int8, torch.int16, torch.uint8)
    return "i32" if kind in small else _KINDS.get(kind) or _refuse(node)


def _refuse(node):
    raise Untraced(f"{node.target} is no operator that kvbuf has as a region")


def _op(op, kind, *args):
    return _made(op, kind, tuple(_as(a, kind) for a in args))


def _made(op, kind, args):
    return Expr(op, kind, args) if is_float(kind) else whole(op, kind, args)


def _compared(name, kind, a, b):
    """A comparison in a type, in a narrower one where that has both numbers."""
    a, b = _as(a, kind), _as(b, kind)
    if kind == "i64" and None not in (short := (narrow(a), narrow(b))):
        a, b = short
    return Expr(name, "i1", (a, b))


def _not(e):
    return Expr("xor", "i1", (e, const(1, "i1")))


def _where(c, a, b, kind):
    return _made("where", kind, (c, _as(a, kind), _as(b, kind)))


def _divide(a, b, kind, floor):
    """Quotients of whole numbers, towards 0 or -inf."""
    a, b = _as(a, kind), _divisor(b, kind)
    if floor and is_const(b) and b.args[0] > 0 and not b.args[0] & (b.args[0] - 1):
        return whole("shr", kind, (a, const(b.args[0].bit_length() - 1, kind)))
    q = whole("quotient", kind, (a, b))
    if not floor:
        return q
    return _op("sub", kind, q, convert(_other_side(a, b, kind), kind))


def _floor_divide(a, b, kind):
    """A quotient of floats, down to a whole number, of the exact one: of 1 and 0.1, which
    is a little more than a tenth, 9, where the rounded quotient is 10."""
    a, b = _as(a, kind), _as(b, kind)
    r = _op("rest", kind, a, b)
    q = _op("div", kind, _op("sub", kind, a, r), b)
    q = _where(_other_side(a, b, kind), _op("sub", kind, q, 1), q, kind)
    down = _op("floor", kind, q)
    near = _compared("gt", kind, _op("sub", kind, q, down), 0.5)
    down = _where(near, _op("add", kind, down, 1), down, kind)
    if is_const(b) and b.args[0]:
        return down
    return _where(_compared("eq", kind, b, 0), _op("div", kind, a, b), down, kind)


def _divisor(b, kind):
    """A divisor that is not 0: of a quotient that a function does not choose, the
    divisor may be, by which a program would have no meaning."""
    b = _as(b, kind)
    if is_float(kind) or (is_const(b) and b.args[0]) or b.span[0] > 0 or b.span[1] < 0:
        return b
    return _where(_compared("eq", kind, b, 0), 1, b, kind)


def _other_side(a, b, kind):
    """Whether a rest is not 0 and has not b's sign."""
    r = _made("rest", kind, (a, b))
    signs = Expr("xor", "i1", (_compared("lt", kind, r, 0), _compared("lt", kind, b, 0)))
    return Expr("and", "i1", (_compared("ne", kind, r, 0), signs))


def _remainder(a, b, kind):
    a, b = _as(a, kind), _divisor(b, kind)
    if not is_float(kind) and is_const(b) and b.args[0] > 0 and (
            not b.args[0] & (b.args[0] - 1)):
        return whole("and", kind, (a, const(b.args[0] - 1, kind)))
    r = _made("rest", kind, (a, b))
    return _where(_other_side(a, b, kind), _op("add", kind, r, b), r, kind)


def _power(a, b, kind):
    if not isinstance(b, Expr) and b == 2:
        return _op("mul", kind, a, a)
    if not is_float(kind):
        if isinstance(b, Expr) or not 0 <= b <= 16:
            raise Untraced("a power of whole numbers is computed whose exponent is "
                           "no number of 0 to 16")
        result = const(1, kind)
        for _ in range(int(b)):
            result = _op("mul", kind, result, a)
        return result
    if not isinstance(b, Expr) and b == 0.5:
        return _op("sqrt", kind, a)
    if not isinstance(a, Expr) and a == 2:
        return _op("exp2", kind, b)
    return _op("powf", kind, a, b)


def _shifted(op, kind, x, count):
    """x shifted by what may be no number of its bits: then none is left, of a shift to
    the right copies of the sign."""
    bits = {"i32": 32, "i64": 64}.get(kind)
    if bits is None:
        raise Untraced("booleans are shifted")
    x, count = _as(x, kind), _as(count, kind)
    if 0 <= count.span[0] and count.span[1] < bits:
        return whole(op, kind, (x, count))
    seen = Expr("and", "i1", (_compared("ge", kind, count, 0),
                              _compared("lt", kind, count, bits)))
    if op == "shr":
        return whole(op, kind, (x, _where(seen, count, bits - 1, kind)))
    return _where(seen, whole(op, kind, (x, _where(seen, count, 0, kind))), 0, kind)


_UNARY = {"exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt",
          "tanh", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "erf",
          "erfc"}
_ROUNDING = {"floor": "floor", "ceil": "ceil", "trunc": "trunc",
             "round": "roundeven"}
_COMPARE = {"eq", "ne", "lt", "le", "gt", "ge"}
_BITS = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
         "__and__": "and", "__or__": "or", "__xor__": "xor"}
_SHIFTS = {"bitwise_left_shift": "shl", "__lshift__": "shl",
           "bitwise_right_shift": "shr", "__rshift__": "shr"}


def expression(name, args, kwargs, node):
    """What an operator computes of expressions and numbers."""
    for table in (_arithmetic, _logic, _functions):
        result = table(name, args, kwargs, node)
        if result is not None:
            return result
    return _refuse(node)


def _arithmetic(name, args, kwargs, node):
    if name in ("add", "sub", "rsub"):
        kind, (a, b) = _result(node), args[:2]
        alpha = kwargs.get("alpha", args[2] if len(args) > 2 else 1)
        if name == "rsub":
            a, b = b, a
            if alpha != 1:
                b = None
        if alpha != 1:
            if b is None:
                return _refuse(node)
            b = _op("mul", kind, b, alpha)
        if kind == "i1":  # a sum of booleans is whether one is true
            return _op("or", kind, a, b)
        return _op("add" if name == "add" else "sub", kind, a, b)
    if name == "mul":
        kind = _result(node)
        return _op("and" if kind == "i1" else "mul", kind, *args)
    if name in ("div", "divide", "true_divide", "floor_divide"):
        kind = _result(node)
        mode = kwargs.get("rounding_mode")
        if name == "floor_divide":
            mode = "floor"
        if is_float(kind):
            if mode == "floor":
                return _floor_divide(*args[:2], kind)
            q = _op("div", kind, *args[:2])
            return _op(mode, kind, q) if mode else q
        return _divide(args[0], args[1], kind, mode == "floor")
    if name in ("remainder", "fmod"):
        kind = _result(node)
        return (_remainder(*args, kind) if name == "remainder"
                else _op("rest", kind, args[0], _divisor(args[1], kind)))
    if name == "neg":
        kind = _result(node)
        return _op("mul", kind, args[0], -1) if is_float(kind) else _op(
            "sub", kind, 0, args[0])
    if name in ("maximum", "minimum"):
        kind = _result(node)
        if kind == "i1":
            return _op("or" if name == "maximum" else "and", kind, *args)
        return _op(name[:3], kind, *args)
    if name in ("clamp", "clamp_min", "clamp_max"):
        kind, x = _result(node), args[0]
        least = args[1] if name != "clamp_max" and len(args) > 1 else kwargs.get(
            "min")
        most = (args[1] if name == "clamp_max" else args[2] if len(args) > 2
                else kwargs.get("max"))
        if least is not None:
            x = _op("max", kind, x, least)
        return x if most is None else _op("min", kind, x, most)
    if name == "pow":
        return _power(*args, _result(node))
    return None


def _logic(name, args, kwargs, node):
    if name in _COMPARE:
        kind = _joint(node, *args)
        return _compared(name, kind, *args)
    if name in _BITS:
        return _op(_BITS[name], _result(node), *args)
    if name in ("logical_and", "logical_or", "logical_xor"):
        return _op(name[8:], "i1", *args)
    if name in ("bitwise_not", "logical_not"):
        if name == "logical_not" or args[0].type == "i1":
            return _not(_as(args[0], "i1"))
        return _op("xor", _result(node), args[0], -1)
    if name in _SHIFTS:
        return _shifted(_SHIFTS[name], _result(node), *args)
    if name == "where":
        return _where(_as(args[0], "i1"), *args[1:], _result(node))
    if name == "masked_fill":
        return _where(_as(args[1], "i1"), args[2], args[0], _result(node))
    if name == "isnan":
        return Expr("isnan", "i1", (_as(args[0], "f32"),))
    if name == "isinf":
        return Expr("eq", "i1", (_op("absf", "f32", args[0]),
                                 const(math.inf, "f32")))
    return None


def _functions(name, args, kwargs, node):
    kind = _result(node)
    if name in ("_to_copy", "to", "convert_element_type"):
        return _as(args[0], kind)
    if name in ("zeros_like", "new_zeros"):
        return const(0, kind)
    if name in ("ones_like", "new_ones"):
        return const(1, kind)
    if name in ("full_like", "new_full"):
        return _as(args[-1], kind)
    if name == "abs":
        if is_float(kind):
            return _op("absf", kind, args[0])
        return _op("max", kind, args[0], _op("sub", kind, 0, args[0]))
    if name in ("sign", "sgn") and kind != "i1":
        x, zero = args[0], const(0, kind)
        below = _where(_compared("lt", kind, x, 0), -1, zero, kind)
        return _where(_compared("gt", kind, x, 0), 1, below, kind)
    if name in _ROUNDING:
        if not is_float(kind):
            return args[0]
        if len(args) > 1 or kwargs:
            return _refuse(node)
        return _op(_ROUNDING[name], kind, args[0])
    if name in _UNARY:
        return _op(name, kind, args[0])
    if name == "atan2":
        return _op("atan2", kind, *args)
    if name == "reciprocal":
        return _op("div", kind, 1, args[0])
    if name == "relu":
        return _op("max", kind, args[0], 0)
    if name in ("sigmoid", "silu"):
        fall = _op("exp", kind, _op("mul", kind, args[0], -1))
        below = _op("add", kind, fall, 1)
        return _op("div", kind, 1 if name == "sigmoid" else args[0], below)
    return None
