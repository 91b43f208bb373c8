# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's operators kvbuf::..., for torch.compile, torch.export, what else traces
operators, and tensors of other kinds than torch.Tensor. Each is made of one of
kvbuf.torch's functions: the parameters of that are those of the schema, so none can
be left out by accident."""

from __future__ import annotations

import inspect

import torch
from torch.nn.attention.bias import CausalBias

from . import _torch_state

#: A parameter's annotation in a schema. A window is two numbers.
_KINDS = {"Tensor": "Tensor", "Tensor | None": "Tensor?", "bool": "bool",
          "int | Tensor | None": "Tensor?", "float": "float",
          "float | None": "float?", "int": "SymInt", "int | None": "SymInt?",
          "str": "str", "str | None": "str?"}


def _plain(x):
    """A tensor of a class that says nothing of operators, such as a Parameter,
    as what it holds: functions hand tensors of other classes to the operators."""
    if isinstance(x, CausalBias):
        raise NotImplementedError("a mask is a CausalBias, whose memory holds "
                                  "nothing; expected causal, or a mask in full")
    if isinstance(x, torch.Tensor) and type(x) is not torch.Tensor:
        return x.as_subclass(torch.Tensor)
    return x


class Operator:
    """kvbuf::name, made of a public function.

    ``left``: the function's parameters that the operator does not have, with what
    becomes of each: the function's own code sees to that before it calls the
    operator. ``window``: the parameter of two numbers, "left" and "right" here.
    ``lse``: the parameter that asks for log-sum-exps; without one the operator has
    one result. ``written``: tensors that a call changes.
    ``softcap`` may be None in Python, and is 0 here.

    An operator of a function with ``out`` is told that tensor's type, and makes
    it; the caller copies."""

    def __init__(self, name, function, *, left=(), window=None, lse=None,
                 written=(), q="q", v="v", offsets=None):
        self.name, self.function = name, function
        self.left, self.window, self.lse = dict(left), window, lse
        self.q, self.v, self.offsets = q, v, offsets
        parameters = inspect.signature(function).parameters
        self.has_out = "out" in parameters
        own = [p for p in parameters.values() if p.name not in self.left]
        marks = iter("abcdefgh")
        schema = []
        for p in own:
            if p.name == window:
                schema += ["SymInt left", "SymInt right"]
                continue
            kind = "float" if p.name == "softcap" else _KINDS[p.annotation]
            if p.name in written:
                kind = kind.replace("Tensor", f"Tensor({next(marks)}!)")
            schema.append(f"{kind} {p.name}")
        if self.has_out:
            schema.append("ScalarType? out_type")
        #: The names of its arguments, all of which a call gives.
        self.names = [text.split()[1] for text in schema]
        result = "(Tensor, Tensor)" if lse else "Tensor"
        made = torch.library.custom_op(
            f"kvbuf::{name}", mutates_args=written,
            schema=f"({', '.join(schema)}) -> {result}")(self._run)
        made.register_fake(self._fake)

    def __call__(self, **given):
        """The operator's results; (out, log-sum-exp or an empty tensor) where it
        has two."""
        if self.window:
            given["left"], given["right"] = given.pop(self.window)
        return getattr(torch.ops.kvbuf, self.name)(**given)

    def _named(self, values, named):
        return {**dict(zip(self.names, values)), **named}

    def _run(self, *values, **named):
        given = {n: _plain(x) for n, x in self._named(values, named).items()}
        of, v = given[self.q], given[self.v]
        if self.window:
            given[self.window] = given.pop("left"), given.pop("right")
        if self.has_out:
            kind = given.pop("out_type")
            if kind is not None:
                given["out"] = _fake_out(of, v, kind)
        result = self.function(**given)
        if not self.lse or given[self.lse]:
            return result
        return result, result.new_empty((0,), dtype=torch.float32)

    def _fake(self, *values, **named):
        given = self._named(values, named)
        q, v = given[self.q], given[self.v]
        if not self.lse:
            return q.new_empty((*q.shape[:-1], v.shape[-1]))
        if not given[self.lse]:
            shape = (0,)
        elif self.offsets is None or given[self.offsets] is None:
            shape = (q.shape[0], q.shape[2], q.shape[1])
        else:
            shape = (q.shape[1], q.shape[0])
        return (_fake_out(q, v, given.get("out_type")),
                q.new_empty(shape, dtype=torch.float32))


def _fake_out(q, v, kind=None):
    """A tensor like the function's result, laid out as that is."""
    if kind is None:
        kind = q.dtype if q.dtype.itemsize > 1 else torch.bfloat16
    shape = (*q.shape[:-1], v.shape[-1])
    if q.shape[-1] == v.shape[-1] and q.shape[-1] % 8 == 0 and (
            kind is not torch.float32):
        like = torch.empty_like(q, dtype=kind)
        if like.stride(-1) == 1:
            return like
    return q.new_empty(shape, dtype=kind)
