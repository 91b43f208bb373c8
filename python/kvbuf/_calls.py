# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Repeated calls on torch's tensors: what differs from call to call is read,
found and launched by one function of the runtime."""

from __future__ import annotations

import ctypes
import functools
from ctypes import (POINTER, Structure, c_char_p, c_int, c_int32, c_ssize_t,
                    c_void_p, py_object)

from . import _library
from ._library import check, lib

#: Tensors of a call.
MOST_INPUTS, MOST_OUTPUTS = 10, 2


class _Python(Structure):
    """kvbufPython."""
    functions = ("PyEval_SaveThread", "PyEval_RestoreThread", "PyObject_Call",
                  "PyObject_CallFunctionObjArgs", "PyObject_CallFunction",
                  "PyTuple_Pack", "PyErr_Clear", "Py_IncRef", "Py_DecRef")
    _fields_ = [(name, c_void_p) for name in (*functions, "none", "check")]


class _Output(Structure):
    """kvbufOutput. Objects are given by their id, which is their address."""
    _fields_ = [(name, c_void_p)
                for name in ("make", "like", "quick", "quick_arguments")]


@functools.lru_cache(maxsize=None)
def _exchange(kind) -> int:
    """The address of a tensor type's DLPackExchangeAPI, 0 without one."""
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return 0
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer = ctypes.cast(pointer, ctypes.PYFUNCTYPE(c_void_p, py_object,
                                                     c_char_p))
    try:
        return pointer(capsule, b"dlpack_exchange_api") or 0
    except ValueError:  # a table under another name
        return 0


@functools.lru_cache(maxsize=None)
def _functions():
    """(kvbufPython, kvbufCallsAdd, a function of an int that makes a call's
    function), which use the interpreter's objects: called with its lock held."""
    api, library = ctypes.pythonapi, ctypes.PyDLL(_library.library_path())
    python = _Python(*(ctypes.cast(getattr(api, name), c_void_p)
                       for name in _Python.functions), id(None), id(check))
    add = library.kvbufCallsAdd
    add.restype = c_int
    add.argtypes = [c_void_p, c_void_p, POINTER(c_int32), c_ssize_t,
                    POINTER(c_void_p), POINTER(_Output)]
    method = library.kvbufCallsMethod
    method.restype, method.argtypes = c_void_p, [c_void_p]
    method = method(ctypes.cast(api.PyLong_AsVoidPtr, c_void_p))
    # A prototype of its own: other modules may have set the shared one's.
    new = ctypes.PYFUNCTYPE(py_object, c_void_p, py_object, c_void_p)(
        ("PyCFunction_NewEx", api))
    return python, add, lambda self: new(method, self, None)


class Calls(int):
    """Calls that agree in everything but their tensors; as an int, the handle,
    0 where the framework's table is unknown. `function` is called with a call's
    tensors and returns its output, or two, or None: such a call was not made
    before. Without outputs it returns the last tensor. It keeps this object."""

    def __new__(cls, kind, inputs, outputs):
        return super().__new__(cls, lib.kvbufCallsCreate(
            _exchange(kind), inputs, outputs, ctypes.byref(_functions()[0])) or 0)

    def __init__(self, kind, inputs, outputs):
        self.counts = inputs, outputs
        #: What has to live as long as the handle does.
        self.plans, self.kept = [], []
        self._destroy = lib.kvbufCallsDestroy

    @property
    def function(self):
        return _functions()[2](self)

    def __del__(self):
        self._destroy(int(self))

    def add(self, plan, order, inputs, outputs):
        """From now on calls with tensors like `inputs` are launches of `plan`,
        whose address number i is that of tensor order[i], inputs first.
        `outputs`: (make, like, quick, its arguments) of each, where make(like),
        or of the first input if `like` is None, is a new one; quick(*arguments)
        too, if the thread works on the plan's device; quick may be None."""
        numbers = (c_int32 * len(order))(*order)
        made = (_Output * len(outputs))(*(
            _Output(*(0 if x is None else id(x) for x in output))
            for output in outputs))
        check(_functions()[1](
            int(self), plan.handle, numbers, len(order),
            (c_void_p * len(inputs))(*map(id, inputs)), made))
        self.plans.append(plan)
        self.kept.append(outputs)


def supported(tensor) -> bool:
    """Whether its framework describes tensors to C."""
    return _exchange(type(tensor)) != 0
