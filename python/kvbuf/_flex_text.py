# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions of numbers, and their text as regions of `kvbuffer.attention`
(docs/scores.md)."""

from __future__ import annotations

import math
import struct
import typing
import weakref


class Untraced(NotImplementedError):
    """What a function does that no region says."""


class Expr:
    """A number of a type of MLIR's: "i1", "i32", "i64", "f32", and "f16" and "bf16",
    whose values are kept as f32. ``args`` are expressions, and numbers of Python's
    where the op has such. Expressions that are equal are one object: so comparing and
    looking up cost nothing, however often one is part of another."""

    __slots__ = "op", "type", "args", "span", "__weakref__"
    _made: typing.ClassVar = weakref.WeakValueDictionary()

    def __new__(cls, op: str, kind: str, args: tuple = ()):
        key = op, kind, args
        made = cls._made.get(key)
        if made is None:
            made = super().__new__(cls)
            made.op, made.type, made.args = key
            #: The (least, greatest) of a whole number, as far as is known.
            made.span = None if is_float(kind) else _within(kind, exact_span(op, args))
            made = cls._made.setdefault(key, made)
        return made

    def __repr__(self):
        return f"Expr({self.op!r}, {self.type!r}, {self.args!r})"


def is_float(kind):
    return kind in ("f32", "f16", "bf16")


_SPANS = {"i1": (0, 1), "i32": (-2**31, 2**31 - 1), "i64": (-2**63, 2**63 - 1)}

#: Places are below this, as kernels have them.
_PLACES_END = 2**29


def _within(kind, span):
    """What a type leaves of exact numbers: all that it has, where it lacks some."""
    least, most = _SPANS[kind]
    return span if span and least <= span[0] and span[1] <= most else (least, most)


def exact_span(op: str, args: tuple) -> tuple[int, int] | None:
    """The (least, greatest) that an op on whole numbers gives if no type cuts it off;
    None where nothing is known of it."""
    if op in ("batch", "head", "row", "key"):
        return 0, _PLACES_END - 1
    if op == "const":
        return args[0], args[0]
    if op == "where":
        args = args[1:]
    spans = [a.span for a in args if isinstance(a, Expr)]
    if len(spans) != len(args) or None in spans or op not in _EXACT:
        return None
    return _EXACT[op](*spans)


def _corners(f):
    """The span of what is monotonous in each of its two numbers."""
    def span(a, b):
        all_ = [f(x, y) for x in a for y in b]
        return min(all_), max(all_)
    return span


def _quotients(a, b):
    most = max(abs(a[0]), abs(a[1]))
    return (0, most) if a[0] >= 0 and b[0] >= 0 else (-most, most)


def _rests(a, b):
    most = min(max(abs(b[0]), abs(b[1])), max(abs(a[0]), abs(a[1])))
    return (-most if a[0] < 0 else 0, most if a[1] > 0 else 0)


def _bits(a, b):
    """Of numbers that have a sign, and so many bits besides."""
    size = max(max(n, ~n).bit_length() for n in (*a, *b))
    return (0 if a[0] >= 0 and b[0] >= 0 else -1 << size), (1 << size) - 1


def _left_shifts(a, b):
    if not 0 <= b[0] <= b[1] < 64:
        return None
    return _corners(lambda x, y: x << y)(a, b)


_EXACT = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _corners(lambda x, y: x * y),
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "where": lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
    "and": _bits, "or": _bits, "xor": _bits, "quotient": _quotients, "rest": _rests,
    "shl": _left_shifts,
    "shr": lambda a, b: (min(a[0], 0), max(a[1], 0)),
    "convert": lambda a: a,
}

#: The region's own arguments: scores, and places. In torch's function these are of 64
#: bits, which few need.
SCORE = Expr("score", "f32")
BATCH, HEAD, ROW, KEY = PLACES = tuple(
    Expr(n, "i32") for n in ("batch", "head", "row", "key"))


def const(value, kind):
    return Expr("const", kind, (float(value) if is_float(kind) else int(value),
                                math.copysign(1, value)))


def narrow(e: Expr) -> Expr | None:
    """An expression of 64 bits as one of 32, if it has a value of these; None if not."""
    if e.type == "i32":
        return e
    if e.op == "const" and _within("i32", e.span) == e.span:
        return const(e.args[0], "i32")
    if e.op == "convert" and e.args[0].type in ("i1", "i32"):
        return convert(e.args[0], "i32")
    return None


def whole(op: str, kind: str, args: tuple) -> Expr:
    """An op on whole numbers, in 32 bits where its numbers and what is made of them have
    no more."""
    numbers = args[1:] if op == "where" else args
    if kind == "i64" and None not in (short := [narrow(a) for a in numbers]):
        short = tuple(args[:len(args) - len(short)]) + tuple(short)
        span = exact_span(op, short)
        if span and _within("i32", span) == span:
            return convert(Expr(op, "i32", short), "i64")
    return Expr(op, kind, tuple(args))


def is_const(e, value=None):
    return e.op == "const" and (value is None or e.args[0] == value)


def convert(e, kind):
    """As torch's `to` does it."""
    if e.type == kind:
        return e
    if (e.op, e.type) == ("convert", "i64") and not is_float(e.args[0].type):
        return convert(e.args[0], kind)  # It has lost nothing.
    if e.op == "const" and kind != "i1" and (is_float(kind)
                                             or not is_float(e.type)):
        # Rounded where the text is written.
        return const(e.args[0], kind)
    return Expr("convert", kind, (e,))


_LIBRARY = {"exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt",
            "tanh", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
            "erf", "erfc", "floor", "ceil", "trunc", "roundeven", "absf", "powf",
            "atan2"}
_INTEGER = {"add": "addi", "sub": "subi", "mul": "muli", "min": "minsi",
            "max": "maxsi", "and": "andi", "or": "ori", "xor": "xori",
            "shl": "shli", "shr": "shrsi", "quotient": "divsi", "rest": "remsi"}
_FLOAT = {"add": "addf", "sub": "subf", "mul": "mulf", "div": "divf",
          "min": "minimumf", "max": "maximumf", "rest": "remf"}
_COMPARE = {"eq": ("eq", "oeq"), "ne": ("ne", "une"), "lt": ("slt", "olt"),
            "le": ("sle", "ole"), "gt": ("sgt", "ogt"), "ge": ("sge", "oge")}


class Writer:
    """Lines of a region; each expression once. ``captures`` are (rank, type) by
    number; they are %capture0_ and so on."""

    def __init__(self, captures):
        self.captures, self.lines, self.names = captures, [], {}

    def _line(self, text):
        name = f"%x{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def name(self, e):
        """The name of an expression's value, whose lines are there after this."""
        if e not in self.names:
            # Deep ones do not fit the stack of Python's recursion.
            waiting = [e]
            while waiting:
                top = waiting[-1]
                missing = [a for a in top.args if isinstance(a, Expr)
                           and a not in self.names]
                if missing:
                    waiting += missing
                    continue
                waiting.pop()
                if top not in self.names:
                    self.names[top] = self._rounded(top)
        return self.names[e]

    def _rounded(self, e):
        name = self._write(e)
        if e.type in ("f16", "bf16") and e.op not in ("load", "where"):
            short = self._line(f"arith.truncf {name} : f32 to {e.type}")
            return self._line(f"arith.extf {short} : {e.type} to f32")
        return name

    def _write(self, e):
        kind = "f32" if is_float(e.type) else e.type
        if e.op == "score":
            return "%s"
        if e in PLACES:
            return self._line(f"arith.index_cast %{e.op} : index to i32")
        if e.op == "const":
            return self._line(f"arith.constant {_literal(e.args[0], kind)} : {kind}"
                              if kind != "i1" else
                              f"arith.constant {str(bool(e.args[0])).lower()}")
        if e.op == "load":
            return self._load(e)
        names = [self.names[a] for a in e.args]
        of = e.args[0].type
        if e.op == "convert":
            return self._convert(names[0], of, kind)
        if e.op == "where":
            return self._line(f"arith.select {', '.join(names)} : {kind}")
        if e.op in _COMPARE:
            word = "cmpf" if is_float(of) else "cmpi"
            by = _COMPARE[e.op][is_float(of)]
            if of == "i1" and by.startswith("s"):
                by = "u" + by[1:]
            of = "f32" if is_float(of) else of
            return self._line(f"arith.{word} {by}, {', '.join(names)} : {of}")
        if e.op == "isnan":
            return self._line(f"arith.cmpf uno, {names[0]}, {names[0]} : f32")
        if e.op in _LIBRARY:
            return self._line(f"math.{e.op} {', '.join(names)} : f32")
        table = _FLOAT if is_float(e.type) else _INTEGER
        return self._line(f"arith.{table[e.op]} {', '.join(names)} : {kind}")

    def _convert(self, name, of, to):
        if is_float(of):
            if to == "f32":
                return name
            if to == "i1":
                zero = self._line("arith.constant 0.0 : f32")
                return self._line(f"arith.cmpf une, {name}, {zero} : f32")
            return self._line(f"arith.fptosi {name} : f32 to {to}")
        if to == "i1":
            zero = self._line(f"arith.constant 0 : {of}")
            return self._line(f"arith.cmpi ne, {name}, {zero} : {of}")
        if to == "f32":
            word = "uitofp" if of == "i1" else "sitofp"
        elif of == "i1":
            word = "extui"
        else:
            word = "extsi" if (of, to) == ("i32", "i64") else "trunci"
        return self._line(f"arith.{word} {name} : {of} to {to}")

    def _load(self, e):
        """An element. Numbers below 0 count from the end, as torch has it; what is
        beyond is the nearest element: a launch reports no errors of indices."""
        number, *places = e.args
        rank, stored = self.captures[number]
        memory = memref(rank, stored)
        where = []
        for dim, place in enumerate(places):
            if place in PLACES:  # whose sizes the host has compared
                where.append(f"%{place.op}")
                continue
            at = self._line(f"arith.index_cast {self.names[place]} : {place.type} "
                            "to index")
            dim = self._line(f"arith.constant {dim} : index")
            size = self._line(f"memref.dim %capture{number}_, {dim} : {memory}")
            zero = self._line("arith.constant 0 : index")
            one = self._line("arith.constant 1 : index")
            below = self._line(f"arith.cmpi slt, {at}, {zero} : index")
            wrapped = self._line(f"arith.addi {at}, {size} : index")
            at = self._line(f"arith.select {below}, {wrapped}, {at} : index")
            last = self._line(f"arith.subi {size}, {one} : index")
            at = self._line(f"arith.minsi {at}, {last} : index")
            at = self._line(f"arith.maxsi {at}, {zero} : index")
            where.append(at)
        name = self._line(f"memref.load %capture{number}_[{', '.join(where)}] : "
                          f"{memory}")
        if stored in ("f16", "bf16"):
            return self._line(f"arith.extf {name} : {stored} to f32")
        return self._convert(name, stored, e.type) if stored != e.type else name


def memref(rank, kind):
    """The type of a capture."""
    free = "" if rank == 1 else f", strided<[{'?, ' * (rank - 1)}1]>"
    return f"memref<{'?x' * rank}{kind}{free}>"


def _literal(value, kind):
    if kind != "f32":
        return value
    try:
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        bits = 0x7F800000 if value > 0 else 0xFF800000
    return f"0x{bits:08X}"


def body(e, captures):
    """The lines of a region that yields the expression."""
    writer = Writer(captures)
    name = writer.name(e)
    return "\n".join([*writer.lines, f"kvbuffer.yield {name} : {e.type}"])
