# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Repeated calls on torch's tensors: what differs from call to call is read,
found and launched by one function of the runtime."""

from __future__ import annotations

import ctypes
import functools
import weakref
from ctypes import c_char_p, c_int, c_int32, c_size_t, c_void_p, py_object

from . import _library
from ._library import check, lib

#: kvbufCallsLaunch's, where no plan is for such tensors.
NO_PLAN = 4
#: Tensors of a call, outputs among them.
MOST_TENSORS = 7


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
    """(kvbufCallsAdd, kvbufCallsLaunch), which use the interpreter's objects:
    called with its lock held. Objects are given by their id, which is their
    address and takes ctypes half the time of the object itself."""
    library = ctypes.PyDLL(_library.library_path())
    objects = [c_void_p] * MOST_TENSORS
    add, launch = library.kvbufCallsAdd, library.kvbufCallsLaunch
    add.restype = launch.restype = c_int
    add.argtypes = [c_void_p, c_void_p, ctypes.POINTER(c_int32), c_size_t,
                    *objects]
    launch.argtypes = [c_void_p, *objects]
    return add, launch


class Calls:
    """Calls that agree in everything but their tensors. ``count``: tensors of a
    call, outputs among them."""

    __slots__ = ("handle", "launch", "count", "plans", "like", "__weakref__")

    def __init__(self, kind, count):
        python = ctypes.pythonapi
        self.handle = lib.kvbufCallsCreate(
            _exchange(kind), count,
            ctypes.cast(python.PyEval_SaveThread, c_void_p),
            ctypes.cast(python.PyEval_RestoreThread, c_void_p))
        self.launch = _functions()[1]
        self.count = count
        #: What has to live as long as the handle does.
        self.plans = []
        #: A tensor that torch.empty_like makes log-sum-exps of, by q's shape.
        self.like = {}
        if self.handle:
            weakref.finalize(self, lib.kvbufCallsDestroy, self.handle)

    def add(self, plan, order, tensors):
        """From now on calls with tensors like these are launches of `plan`, whose
        address number i is that of tensor order[i]."""
        numbers = (c_int32 * len(order))(*order)
        objects = [*map(id, tensors), *[0] * (MOST_TENSORS - len(tensors))]
        check(_functions()[0](self.handle, plan.handle, numbers, len(order),
                              *objects))
        self.plans.append(plan)


def supported(tensor) -> bool:
    """Whether its framework describes tensors to C."""
    return _exchange(type(tensor)) != 0
