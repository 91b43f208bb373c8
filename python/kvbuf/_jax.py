# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches inside of what JAX compiles: custom calls of XLA's, through its
foreign-function interface. The runtime library is the handler; a call's attribute says
which plan it launches."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import sys
import threading

from . import _library, _ops, _tensors
from ._device import Device
from ._library import check, lib

#: By the number of a custom call: plans, which live as long as the process, as XLA's
#: programs may.
_plans: dict = {}
_lock = threading.Lock()
#: XLA's names of platforms by kvbuf's of devices.
_PLATFORMS = {"emulator": "cpu", "cuda": "CUDA", "hip": "ROCM"}


def is_traced(x) -> bool:
    """Whether x stands for an array in a trace of JAX's."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.core.Tracer)


class Traced(_ops.Jax):
    """What stands for arrays in a trace: of shapes and types that are known. They lie
    on the device that JAX works on by default."""

    def place(self, x):
        device = self.jax.config.jax_default_device or self.jax.devices()[0]
        return self.jax.devices(device)[0] if isinstance(device, str) else device

    def empty(self, shape, dtype, like):
        """What an output will be."""
        return self.jax.ShapeDtypeStruct(tuple(shape), self._kind(dtype))

    def without_elements(self, x):
        return self.np.zeros(x.shape, x.dtype)

    def with_batch(self, x):
        return self.jax.ShapeDtypeStruct((1, *x.shape), x.dtype)

    def full(self, shape, value, dtype, like):
        return self.np.full(shape, value, self._kind(dtype))

    def arange(self, count, like, dtype="i32"):
        return self.np.arange(count, dtype=self._kind(dtype))

    def address(self, x):
        return None

    def is_aligned(self, x, count):
        return count <= 16  # as XLA places all buffers, and more

    def launch(self, kernel, tensors, sizes, outputs, name, device=None, stream=None):
        if device is not None or stream is not None:
            raise ValueError("device and stream are given in a function that JAX "
                             "traces: they are those of its program")
        return _call(self, kernel, name, tensors, sizes, outputs)


@functools.lru_cache(maxsize=None)
def _target(kind):
    """The name of the handler for devices of a kind, made known to XLA."""
    ffi = getattr(sys.modules["jax"], "ffi", None)
    if ffi is None:
        raise NotImplementedError(
            "a call is traced by JAX, whose version has no jax.ffi; expected 0.5 or "
            "newer, or call kvbuf outside of the traced function")
    handler = ctypes.CDLL(_library.library_path()).kvbufXlaHandler
    name = f"kvbuf_{kind}"
    ffi.register_ffi_target(name, ffi.pycapsule(handler), platform=_PLATFORMS[kind])
    return name


def _view(ops, x, number):
    """A tensor as XLA has it: its elements in order, apart from others'."""
    return _tensors.TensorView(
        None, (number + 1) << 40, {"uint8": "u8"}.get(str(x.dtype)) or ops.dtype(x), x.shape,
        ops.strides(x), None)


def _number(ops, kernel, kind, tensors, sizes):
    """What names a plan in any process that has traced the same call."""
    said = repr((_library.version(), kind, kernel.manifest, sorted(sizes.items()), [
        (name, tuple(x.shape), str(x.dtype)) for name, x in tensors.items()]))
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[:7], "little")


def _call(ops, kernel, name, tensors, sizes, outputs):
    """The outputs of a custom call; `outputs` are the last of `tensors`."""
    jax = ops.jax
    kind = name.partition(":")[0]
    target = _target(kind)
    number = _number(ops, kernel, kind, tensors, sizes)
    with _lock:
        if number not in _plans:
            names = [name] if kind == "emulator" else [
                f"{kind}:{device.local_hardware_id}" for device in jax.local_devices()
                if device.platform == ops.place(None).platform]
            views = {kernel._names[n]: _view(ops, x, i)
                     for i, (n, x) in enumerate(tensors.items())}
            made = [kernel.plan_of(views, sizes, Device.shared(n)) for n in names]
            for plan in made:
                check(lib.kvbufXlaAdd(number, plan.handle, len(tensors)))
            _plans[number] = made
    inputs = list(tensors.values())[:len(tensors) - len(outputs)]
    import numpy
    return jax.ffi.ffi_call(target, list(outputs), vmap_method="sequential")(
        *inputs, number=numpy.int64(number))
