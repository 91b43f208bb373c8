# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlexAttention's functions as what a kernel takes: windows and soft caps where they
are that, regions where they are not."""

from __future__ import annotations

import dataclasses
import math

import torch

from . import _flex_text, _flex_trace
from ._flex_text import KEY, ROW, SCORE, Expr, Untraced, const, is_const


def conjuncts(e):
    """What all has to be true, left to right."""
    if e.op == "and" and e.type == "i1":
        return [part for a in e.args for part in conjuncts(a)]
    return [] if is_const(e, 1) else [e]


def linear(e):
    """(a, b, c) of a * row + b * key + c, or None."""
    if e == ROW:
        return 1, 0, 0
    if e == KEY:
        return 0, 1, 0
    if e.type not in ("i32", "i64"):
        return None
    if e.op == "const":
        return 0, 0, e.args[0]
    if e.op == "convert":
        return linear(e.args[0])
    if e.op in ("add", "sub"):
        x, y = map(linear, e.args)
        sign = 1 if e.op == "add" else -1
        return x and y and tuple(m + sign * n for m, n in zip(x, y))
    return None


def _absolute(e):
    """x, if e is |x|."""
    if e.op == "max" and e.args[1] == Expr("sub", e.type, (
            const(0, e.type), e.args[0])):
        return e.args[0]
    return None


def sides(e):
    """The (left, right) that a condition leaves of keys about the row: None is open.
    None for what is no such condition."""
    if e.op not in ("lt", "le", "gt", "ge"):
        return None
    low, high = e.args if e.op in ("lt", "le") else reversed(e.args)
    strict = e.op in ("lt", "gt")
    inner = _absolute(low)
    if inner is not None and is_const(high):
        d, far = linear(inner), high.args[0] - strict
        if d and d[:2] in ((1, -1), (-1, 1)):
            middle = d[2] * d[0]  # |row - key + middle| <= far
            return far - middle, far + middle
        return None
    x, y = linear(low), linear(high)
    if not (x and y):
        return None
    a, b, c = (n - m for m, n in zip(x, y))
    c -= strict
    if (a, b) == (1, -1):  # row - key + c >= 0
        return None, c
    if (a, b) == (-1, 1):
        return c, None
    return None


def _shown(e):
    """(score, conditions) of choices between a score and -inf, by its place."""
    conditions = []
    while e.op == "where":
        c, a, b = e.args
        if _holds(c, lambda part: part == SCORE, set()):
            break
        if is_const(b, -math.inf):
            conditions, e = [*conditions, *conjuncts(c)], a
        elif is_const(a, -math.inf):
            hidden = Expr("xor", "i1", (c, const(1, "i1")))
            conditions, e = [*conditions, hidden], b
        else:
            break
    return e, conditions


def _softcap(e):
    """c, if e is c * tanh(score / c)."""
    for a, b in (e.args, e.args[::-1]) if e.op == "mul" else ():
        if is_const(b) and b.args[0] > 0 and a.op == "tanh":
            inner, cap = a.args[0], b.args[0]
            if inner == Expr("div", "f32", (SCORE, b)) or inner in (
                    Expr("mul", "f32", (SCORE, const(1 / cap, "f32"))),
                    Expr("mul", "f32", (const(1 / cap, "f32"), SCORE))):
                return cap
    return 0.0


def _holds(e, what, seen):
    """Whether an expression has a part for which `what` is true."""
    if e in seen:
        return False
    seen.add(e)
    return what(e) or any(_holds(a, what, seen) for a in e.args
                          if isinstance(a, Expr))


@dataclasses.dataclass(frozen=True)
class Regions:
    """What a call's functions are for a kernel."""

    causal: bool
    left: int
    right: int
    softcap: float
    #: The lines of regions, "" for none.
    score: str
    visible: str
    #: Of each captured tensor, "rank:type".
    captures: str


class Traced:
    """Functions of scores and visibility, traced. `square` of the calls: whether
    rows are as many as keys, so that windows by a row's number are those about its
    place."""

    def __init__(self, score_mod, mask_mod, device, given, mode=None):
        self.captures = _flex_trace.Captures()
        self.general = True
        #: Whether the score hides keys, besides a mask.
        self.hides_by_score = False
        score, conditions = SCORE, []
        if mask_mod is not None:
            graph = _flex_trace.Graph(mask_mod, False, device, given, mode)
            seen = graph.expression(self.captures, _flex_trace.MASK_PLACES)
            if isinstance(seen, Expr) and seen.type != "i1":
                raise Untraced("the mask's function returns a number that is no boolean, "
                               "which torch refuses")
            seen = _flex_trace.as_type(seen, "i1")
            conditions += conjuncts(seen)
            self.general &= graph.general
        if score_mod is not None:
            graph = _flex_trace.Graph(score_mod, True, device, given, mode)
            score, more = _shown(_flex_trace.as_type(graph.expression(
                self.captures, _flex_trace.SCORE_PLACES), "f32"))
            conditions += more
            self.hides_by_score = bool(more)
            self.general &= graph.general
        self.score, self.conditions = score, conditions
        self._made = {}

    def regions(self, square):
        if square not in self._made:
            self._made[square] = self._regions(square)
        return self._made[square]

    def _regions(self, square):
        causal, left, right, rest = False, -1, -1, []
        for c in self.conditions:
            span = sides(c) if square else None
            if span is None or min(x for x in span if x is not None) < 0:
                rest.append(c)
                continue
            if span[0] is not None:
                left = span[0] if left < 0 else min(left, span[0])
            if span[1] is not None:
                right = span[1] if right < 0 else min(right, span[1])
        if right == 0:
            causal, right = True, -1
        softcap = _softcap(self.score)
        score, visible = "", ""
        types = self.captures.types
        if not softcap and self.score != SCORE:
            score = _flex_text.body(self.score, types)
        if rest:
            seen = rest[0]
            for c in rest[1:]:
                seen = Expr("and", "i1", (seen, c))
            visible = _flex_text.body(seen, types)
        return Regions(causal, left, right, softcap, score, visible, ",".join(
            f"{rank}:{kind}" for rank, kind in types))

    def require_sizes(self, tensors, sizes):
        """Refuses captured tensors that have no element for a place."""
        for number, dim, place in self.captures.needs:
            have, want = tensors[number].shape[dim], sizes[place]
            if have < want:
                raise Untraced(
                    f"a captured tensor of shape {tuple(tensors[number].shape)} is "
                    f"indexed by the {_WORDS[place]} in dimension {dim}; expected "
                    f"{want} elements or more")


_WORDS = {"batch": "batch", "head": "head", "row": "query", "key": "key"}

#: Traced functions by what they follow from.
_known: dict = {}
_MOST = 1024


def traced(score_mod, mask_mod, device):
    """(Traced, the tensors that its functions capture)."""
    key, given = _flex_trace.fingerprint((score_mod, mask_mod))
    if key is not None:
        # Numbers of Python's take torch's default type.
        key = key, device, torch.get_default_dtype()
        found = _known.get(key)
        if found is not None:
            return found, given
    made = Traced(score_mod, mask_mod, device, given)
    if key is not None and made.general:
        if len(_known) >= _MOST:
            _known.clear()
        _known[key] = made
    return made, given
