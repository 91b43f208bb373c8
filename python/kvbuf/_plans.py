# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches on torch's tensors that were made before: see docs/python.md."""

from __future__ import annotations

import contextlib
import numbers
import struct
import threading

import torch

from . import _artifact, _attention, _calls, _kernels, _ops, _tensors
from ._library import check
from ._torch_state import (dispatch_modes, forward_ad, function_modes, is_before_dispatch,
                           is_memory, is_traced_by_jit, level)

_Tensor = torch.Tensor
_empty_like = torch.empty_like
_grad_enabled = torch.is_grad_enabled
_is_compiling = torch.compiler.is_compiling
#: Enough where tensors' types are asked for too, and half the time.
_is_traced = getattr(torch.compiler, "is_dynamo_compiling", _is_compiling)

#: Launches by what they follow from; addresses alone are open.
_plans: dict = {}
_MOST_PLANS = 4096
#: The same on GPUs, where torch describes its tensors to C: functions of a
#: _calls.Calls by what a call says besides its tensors. Each returns what the
#: call does, or None for one that was not made before.
_calls_by_options: dict = {}


def _forget():
    """Every plan."""
    _plans.clear()
    _calls_by_options.clear()


class _Plan:
    """A launch on tensors that differ from the first call's in their addresses
    alone. `run` takes as few steps as it can: whoever calls it pays for each."""

    __slots__ = ("plan", "launch", "handle", "stream", "out", "lse", "order", "pack",
                 "emulated")

    def __init__(self, request, tensors, result, order, plan, given):
        like = tensors[0]
        name = _ops.of(like).device_name(like)
        self.emulated = emulated = name == "emulator"
        if plan is None:
            kernel = _kernels.find(request.problem, _kernels.chip_on(name), None,
                                   emulated)
            plan = kernel.plan(request.arguments(_ops.of(like)),
                               request.sizes_of(kernel))
        self.plan = plan
        self.launch, self.handle = self.plan.launch, self.plan.handle
        self.stream = _tensors.stream_getter(
            like, "host" if emulated else name)
        #: Which of the call's tensors each of the kernel's is; an output that the
        #: call gives is its last one.
        self.order = (*order, len(tensors) - 1) if given else tuple(order)
        #: What empty_like makes an output of, unless that is the query.
        self.out = (None if given or _laid_out_like(result, like)
                    else _shape_of(result))
        #: The same for log-sum-exps, None without.
        self.lse = _shape_of(request.lse) if request.problem.lse else None
        count = len(order) + 1 + (self.lse is not None)
        #: The addresses, as an array of C.
        self.pack = struct.Struct(f"{count}Q").pack

    def run(self, q, data):
        """The output; `data` are the addresses of the call's tensors."""
        out = _empty_like(q if self.out is None else self.out)
        status = self.launch(
            self.handle, self.pack(*[data[i] for i in self.order],
                                   out.data_ptr()), self.stream())
        if status:
            check(status)
        return out

    def run_lse(self, q, data):
        """(output, log-sum-exp)."""
        out = _empty_like(q if self.out is None else self.out)
        lse = _empty_like(self.lse)
        status = self.launch(
            self.handle, self.pack(*[data[i] for i in self.order],
                                   out.data_ptr(), lse.data_ptr()),
            self.stream())
        if status:
            check(status)
        return out, lse

    def run_into(self, out, data):
        """The log-sum-exp, or without one `out`, which the call gave."""
        result, made = out, ()
        if self.lse is not None:
            result = _empty_like(self.lse)
            made = result.data_ptr(),
        status = self.launch(
            self.handle, self.pack(*[data[i] for i in self.order], *made),
            self.stream())
        if status:
            check(status)
        return result


def _shape_of(x):
    """What torch.empty_like makes contiguous tensors like `x` of, without its
    memory."""
    return torch.empty(1, dtype=x.dtype, device=x.device).expand(x.shape)


def _laid_out_like(out, q):
    """Whether torch.empty_like(q) is laid out as `out` is. The stride of one
    element moves nothing."""
    like = torch.empty_like(q)
    return out.shape == q.shape and all(
        n == 1 or a == b
        for n, a, b in zip(out.shape, out.stride(), like.stride()))


def _keep(key, options, request, tensors, result, order, plan, given=False):
    """Keeps a launch whose tensors are the call's, those of `order`, and
    `result`: of the call's the last, if it is `given`. What the launch is found by
    must not change under its hands. `plan` is the launch's, or None."""
    if (options not in _calls_by_options and not _is_value(options)
            or not is_memory(*tensors)):
        return
    if len(_plans) + len(_calls_by_options) >= _MOST_PLANS:
        _forget()
    plan = _Plan(request, tensors, result, order, plan, given)
    outputs = [] if given else [(result, plan.out)]
    if request.problem.lse:
        outputs.append((request.lse, plan.lse))
    if (plan.emulated or len(tensors) > _calls.MOST_INPUTS
            or not _calls.supported(tensors[0])):
        _plans[key] = plan
        return
    function = _calls_by_options.get(options)
    if function is None or len(function.__self__.plans) >= _MOST_PLANS:
        calls = _calls.Calls(_Tensor, len(tensors), len(outputs))
        if not calls:  # another DLPack
            _plans[key] = plan
            return
        function = _calls_by_options[options] = calls.function
    # Outputs are as their first ones, of which what empty_like is given has no memory.
    function.__self__.add(
        plan.plan, [*plan.order, *(len(tensors) + i for i in range(len(outputs)))],
        tensors, [(_empty_like, like, quick, (tuple(x.shape), x.stride(), x.dtype))
                  for x, like in outputs for quick in [_quick_empty(x)]])


def _is_value(options):
    """Whether these are equal only if they mean the same: a tensor is equal to
    itself, whatever it holds."""
    return all(_is_value(x) if isinstance(x, tuple)
               else x is None or isinstance(x, (numbers.Number, str))
               for x in options)


def _quick_empty(x):
    """A function of (shape, strides, type) that allocates on the thread's device
    in less time than torch.empty_like does: what torch's own compiler calls. None
    if there is none."""
    try:
        return getattr(torch._C._dynamo.guards,
                       f"_empty_strided_{x.device.type}")
    except AttributeError:  # another torch
        return None


def _remember(key, options, requests, tensors, numbers, given=False):
    """Keeps a plan of the last of a call's requests, of `_watched`, if the kernel took
    these tensors as they are. `numbers`: which of them each of the kernel's is by its
    name, which tells apart what the call gave twice. `given`: the last one is the
    output."""
    request = requests[-1]
    # Where V lies, which makes it a part of K, no key says.
    if key is None or request.finish or request.empty or request.problem.latent:
        return
    if given:
        if request.out is not tensors[-1]:
            return
    elif not (request.out.is_contiguous() or _laid_out_like(request.out, tensors[0])):
        return
    order = []
    for name, x in request.tensors.items():
        at = numbers.get(name)
        if at is None or not _has_memory_of(x, tensors[at]):
            return
        order.append(at)
    _keep(key, options, request, tensors, request.out, order, requests.plan, given)


def _has_memory_of(x, y):
    """Whether a tensor made of another one is a view that begins where it does, as
    that of any other tensor of its shape and strides would."""
    return x is y or x.data_ptr() == y.data_ptr() != 0


def _are_plain(*tensors):
    """Whether a call of these tensors (None: not given) may be a remembered one:
    nothing records or replaces operators, and memory says what they hold."""
    if (_is_traced() or dispatch_modes() or is_traced_by_jit()
            or (function_modes() and is_before_dispatch())
            or level() is not None or forward_ad._current_level >= 0):
        return False
    grad = _grad_enabled()
    for x in tensors:
        if x is not None and (type(x) is not _Tensor or (grad and x.requires_grad)
                              or x.is_neg()):
            return False
    return True


class _Wide:
    """A call with tensors that its function may have besides those that it always
    has. `numbers` says of the latter which of the kernel's they are by name; `more` of
    the others: (the kernel's names, tensor or None). `out`: the output that is given,
    or None."""

    __slots__ = ("options", "key", "tensors", "numbers", "out", "lse")

    def __init__(self, options, tensors, numbers, more, out, lse):
        here = [i for i, (_, x) in enumerate(more) if x is not None]
        self.numbers = dict(numbers)
        for at, i in enumerate(here, len(tensors)):
            for name in more[i][0]:
                self.numbers[name] = at
        self.tensors = (*tensors, *[more[i][1] for i in here])
        if out is not None:
            self.tensors += out,
        self.out, self.lse, self.key = out, lse, None
        self.options = (*options, *here, out is not None)

    def find(self):
        """What the call returns, None for one that is not remembered."""
        result = plan = None
        try:
            call = _calls_by_options.get(self.options)
        except TypeError:  # what has no hash
            return None
        if call is not None:
            result = call(*self.tensors)
        if result is None:
            try:
                self.key = (self.options, *[(x.shape, x.stride(), x.dtype, x.device)
                                            for x in self.tensors])
                plan = _plans.get(self.key)
            except RuntimeError:  # no strides
                return None
        data = plan and [x.data_ptr() for x in self.tensors]
        if data and 0 not in data:
            if self.out is not None:
                result = plan.run_into(self.out, data)
            else:
                result = (plan.run_lse if self.lse else plan.run)(self.tensors[0], data)
        if result is None or self.out is None:
            return result
        _tensors.changed(self.out)
        return (self.out, result) if self.lse else result

    def remember(self, requests):
        if self.key is not None:
            _remember(self.key, self.options, requests, self.tensors, self.numbers,
                      given=self.out is not None)


class _Requests(list):
    """The Requests of a call."""

    def __init__(self):
        super().__init__()
        #: What `_artifact.new_plans` saw of it.
        self.plans = []

    @property
    def plan(self):
        """The plan that a call of one Request has made for its launch; None where it
        made none, or more."""
        return self.plans[0] if len(self.plans) == len(self) == 1 else None


_requests = threading.local()


@contextlib.contextmanager
def _watched():
    """The Requests that this thread runs within the block."""
    before = getattr(_requests, "seen", None)
    new_plans = _artifact.new_plans
    plans = getattr(new_plans, "seen", None)
    _requests.seen = seen = _Requests()
    new_plans.seen = seen.plans
    try:
        yield seen
    finally:
        _requests.seen, new_plans.seen = before, plans


def _see(request):
    seen = getattr(_requests, "seen", None)
    if seen is not None:
        seen.append(request)


_attention.on_run = _see
