# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the attention functions need of a framework, beside its tensors'
addresses. Nothing here makes the host wait for a device."""

from __future__ import annotations

import sys

from . import _arrays, _tensors
from ._device import Device


class Framework:
    """What most frameworks agree on."""

    #: Whether nobody may write what the framework has made.
    frozen = False

    def float8_of(self, x):
        """The 8-bit float that elements are, "bytes" if they are only such; None
        for others."""
        return None

    def address(self, x):
        """Where a tensor's first element is; None where that is not told."""
        return None

    def without_elements(self, x):
        """An output that has no elements, which no kernel writes."""
        return x

    def is_aligned(self, x, count):
        """Whether a tensor is known to begin at a multiple of so many bytes."""
        address = self.address(x)
        return address is not None and address % count == 0

    def with_batch(self, x):
        """An output as that of one sequence."""
        return x[None]

    def before_launch(self, tensors):
        """Makes a launch come after what has been asked of the tensors."""

    def after_launch(self, device):
        """Makes what the framework does next come after the launch."""

    def launch(self, kernel, tensors, sizes, outputs, name, device=None, stream=None):
        """The outputs of a kernel, the last of `tensors`, on the device of a name."""
        self.before_launch(tensors.values())
        kernel(**tensors, **sizes, device=device, stream=stream)
        self.after_launch(name)
        return outputs

    def require_writable(self, name, x, instead="take the result instead"):
        """ValueError for a tensor that no kernel may write; it ends with what to
        do ``instead``."""

    def broadcast(self, name, x, shape):
        """[batch, heads, rows, keys] of what may have less dimensions, or 1 in
        their place; the last one lies side by side, others may not move."""
        if len(x.shape) > 4 or any(have not in (1, want) for have, want in
                                   zip(x.shape[::-1], shape[::-1])):
            raise ValueError(f"{name} has shape {tuple(x.shape)}; expected one "
                             f"that broadcasts to {tuple(shape)}")
        x = self.rows_contiguous(
            self.expand(x, (*x.shape[:-1], shape[-1])) if len(x.shape)
            else self.expand(x, shape[-1:]))
        return self.expand(x, shape)


def _flags(name, dtype):
    """Whether flags are integers of 64 bits; ValueError for what are none."""
    if dtype not in ("bool", "torch.bool", "i32", "i64", "|b1"):
        raise ValueError(f"{name} has type {dtype}; expected booleans, int32 or "
                         "int64")
    return dtype == "i64"


class Torch(Framework):
    """torch's tensors, on any device."""

    def __init__(self):
        self.torch = sys.modules["torch"]
        self.names = {self.torch.float16: "f16", self.torch.bfloat16: "bf16",
                      self.torch.float32: "f32", self.torch.int32: "i32",
                      self.torch.int64: "i64"}
        self.types = {name: dtype for dtype, name in self.names.items()}
        self.float8 = {getattr(self.torch, f"float8_{theirs}", None): ours
                       for theirs, ours in (
                           ("e4m3fn", "e4m3"), ("e5m2", "e5m2"),
                           ("e4m3fnuz", "e4m3fnuz"), ("e5m2fnuz", "e5m2fnuz"))}
        self.float8[self.torch.uint8] = "bytes"

    def dtype(self, x):
        """Its name in manifests, or torch's own."""
        return self.names.get(x.dtype, str(x.dtype))

    def float8_of(self, x):
        return self.float8.get(x.dtype)

    def as_bytes(self, x):
        return x.view(self.torch.uint8)

    def address(self, x):
        return x.data_ptr()

    def detach(self, x):
        x = x.detach() if x.requires_grad else x
        if x._is_zerotensor():
            return self.torch.zeros_like(x)
        return x.resolve_neg()

    def require_writable(self, name, x, instead="take the result instead"):
        if x.is_neg() or x._is_zerotensor():
            kind = "torch's negative bit" if x.is_neg() else "no memory of its own"
            raise ValueError(f"{name} has {kind}, and cannot be written; {instead}")

    def place(self, x):
        return x.device

    def device_name(self, x):
        """As kvbuf.Device takes it."""
        if x.device.type == "cpu":
            return "emulator"
        if x.device.type != "cuda":
            raise ValueError(f"a tensor is on {x.device}; expected the host, or a "
                             "GPU of CUDA or ROCm")
        kind = "hip" if getattr(self.torch.version, "hip", None) else "cuda"
        return f"{kind}:{x.device.index or 0}"

    def strides(self, x):
        return x.stride()

    def rows_contiguous(self, x):
        """With a last stride of 1."""
        return x if x.stride(-1) == 1 else x.contiguous()

    def contiguous(self, x):
        return x.contiguous()

    def cast(self, x, dtype):
        return x.to(self.types[dtype])

    def empty_like(self, x):
        return self.torch.empty_like(x)

    def empty(self, shape, dtype, like):
        return self.torch.empty(shape, dtype=self.types[dtype],
                                device=like.device)

    def full(self, shape, value, dtype, like):
        return self.torch.full(shape, value, dtype=self.types[dtype],
                               device=like.device)

    def expand(self, x, shape):
        return x.expand(shape)

    def as_flags(self, name, x):
        # Of 64 bits none may be lost.
        wide = _flags(name, self.dtype(x))
        return (x != 0 if wide else x).to(self.torch.int32)

    def arange(self, count, like, dtype="i32"):
        return self.torch.arange(count, dtype=self.types[dtype],
                                 device=like.device)

    def pad_columns(self, x, count):
        """With `count` more columns of zeros."""
        return self.torch.nn.functional.pad(x, (0, count))

    def minimum(self, x, most):
        return x.clamp(max=most)

    def maximum(self, x, least):
        return x.clamp(min=least)

    def rotated(self, x, cos, sin, interleaved):
        """[batch, rows, heads, columns] by [batch, rows, columns / 2]."""
        half = cos.shape[-1]
        rotary, rest = x[..., :2 * half].float(), x[..., 2 * half:]
        cos, sin = (t.float().unsqueeze(2) for t in (cos, sin))
        a, b = ((rotary[..., 0::2], rotary[..., 1::2]) if interleaved
                else (rotary[..., :half], rotary[..., half:]))
        pair = a * cos - b * sin, a * sin + b * cos
        mixed = (self.torch.stack(pair, -1).flatten(-2) if interleaved
                 else self.torch.cat(pair, -1))
        return self.torch.cat([mixed.to(x.dtype), rest], -1)

    def copy(self, to, of):
        to.copy_(of)


class Numpy(Framework):
    """numpy's arrays; uint16, and types of two bytes that numpy does not know,
    are bfloat16."""

    def __init__(self):
        import numpy
        self.np = numpy

    def dtype(self, x):
        if _arrays.are_bf16(x.dtype):
            return "bf16"
        return {"<f2": "f16", "<f4": "f32", "<i4": "i32", "<i8": "i64"}.get(
            x.dtype.str, str(x.dtype))

    def float8_of(self, x):
        return {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
                "float8_e4m3fnuz": "e4m3fnuz", "float8_e5m2fnuz": "e5m2fnuz",
                "uint8": "bytes"}.get(str(x.dtype))

    def as_bytes(self, x):
        return x.view("uint8")

    def address(self, x):
        return x.ctypes.data

    def require_writable(self, name, x, instead="take the result instead"):
        if not x.flags.writeable:
            raise ValueError(f"{name} is read-only; {instead}")

    def detach(self, x):
        return x

    def place(self, x):
        return "host"

    def device_name(self, x):
        return "emulator"

    def strides(self, x):
        return tuple(n // x.itemsize for n in x.strides)

    def rows_contiguous(self, x):
        # Nor do kernels take rows in reverse.
        aligned = not any(n % x.itemsize or n < 0 for n in x.strides)
        return (x if aligned and x.strides[-1] == x.itemsize
                else self.np.ascontiguousarray(x))

    def contiguous(self, x):
        return self.np.ascontiguousarray(x)

    def cast(self, x, dtype):
        have = self.dtype(x)
        if have == dtype:
            return x
        exact = _arrays.from_bf16(x) if have == "bf16" else x
        if dtype == "bf16":
            return _arrays.to_bf16(exact)
        kinds = {"f16": "float16", "f32": "float32", "i32": "int32",
                 "i64": "int64"}
        with self.np.errstate(over="ignore"):
            return exact.astype(kinds[dtype])

    def empty_like(self, x):
        return self.np.empty(x.shape, x.dtype)

    def empty(self, shape, dtype, like):
        kinds = {"f16": "float16", "bf16": "uint16", "f32": "float32",
                 "i32": "int32", "i64": "int64"}
        return self.np.empty(shape, kinds[dtype])

    def full(self, shape, value, dtype, like):
        result = self.empty(shape, dtype, like)
        result[...] = value
        return result

    def expand(self, x, shape):
        return self.np.broadcast_to(x, shape)

    def as_flags(self, name, x):
        wide = _flags(name, self.dtype(x))
        return (x != 0 if wide else x).astype("int32")

    def arange(self, count, like, dtype="i32"):
        return self.np.arange(count, dtype={"i32": "int32",
                                            "i64": "int64"}[dtype])

    def pad_columns(self, x, count):
        return self.np.concatenate(
            [x, self.np.zeros((*x.shape[:-1], count), x.dtype)], -1)

    def minimum(self, x, most):
        return self.np.minimum(x, most)

    def maximum(self, x, least):
        return self.np.maximum(x, least)

    def rotated(self, x, cos, sin, interleaved):
        np, dtype = self.np, self.dtype(x)
        half = cos.shape[-1]
        exact = self.cast(x, "f32")
        rotary, rest = exact[..., :2 * half], exact[..., 2 * half:]
        cos, sin = (self.cast(t, "f32")[:, :, None] for t in (cos, sin))
        a, b = ((rotary[..., 0::2], rotary[..., 1::2]) if interleaved
                else (rotary[..., :half], rotary[..., half:]))
        pair = a * cos - b * sin, a * sin + b * cos
        mixed = (np.stack(pair, -1).reshape(rotary.shape) if interleaved
                 else np.concatenate(pair, -1))
        return self.cast(np.concatenate([mixed, rest], -1), dtype)

    def copy(self, to, of):
        to[...] = of


class Jax(Numpy):
    """JAX's arrays, which nobody but JAX may change: results are new ones. JAX
    knows nothing of launches, so the host waits before and after each, but for those
    in functions that it traces (_jax.Traced)."""

    frozen = True

    def __init__(self):
        self.jax = sys.modules["jax"]
        self.np = self.jax.numpy

    def dtype(self, x):
        return {"float16": "f16", "bfloat16": "bf16", "float32": "f32",
                "int32": "i32", "int64": "i64"}.get(str(x.dtype), str(x.dtype))

    def _kind(self, dtype):
        return {"f16": self.np.float16, "bf16": self.np.bfloat16,
                "f32": self.np.float32, "i32": self.np.int32,
                "i64": self.np.int64}[dtype]

    def place(self, x):
        _tensors.refuse_traced("the call", x)
        devices = x.devices()
        if len(devices) > 1:
            raise ValueError(f"an array is shared by {len(devices)} devices; "
                             "expected one of one device")
        return next(iter(devices))

    def device_name(self, x):
        device = self.place(x)
        if device.platform == "cpu":
            return "emulator"
        kind = "hip" if device.platform == "rocm" else "cuda"
        return f"{kind}:{device.local_hardware_id}"

    def strides(self, x):
        strides = [1]
        for extent in x.shape[:0:-1]:
            strides.append(strides[-1] * max(extent, 1))
        return tuple(reversed(strides))

    def rows_contiguous(self, x):
        return x

    def contiguous(self, x):
        return x

    def cast(self, x, dtype):
        return x.astype(self._kind(dtype))

    def empty_like(self, x):
        return self.empty(x.shape, self.dtype(x), x)

    def empty(self, shape, dtype, like):
        return self.full(shape, 0, dtype, like)

    def full(self, shape, value, dtype, like):
        # A buffer of its own: nothing else may see what a kernel writes. One that is
        # there now, in a function that JAX traces, too, as the call's arrays are.
        with self.jax.ensure_compile_time_eval():
            made = self.np.full(shape, value, self._kind(dtype),
                                device=self.place(like))
        return self.jax.block_until_ready(made)

    def arange(self, count, like, dtype="i32"):
        return self.np.arange(count, dtype=self._kind(dtype),
                              device=self.place(like))

    def before_launch(self, tensors):
        self.jax.block_until_ready(list(tensors))

    def after_launch(self, device):
        if device != "emulator":
            Device.shared(device).synchronize()

    def require_writable(self, name, x, instead="take the result instead"):
        raise ValueError(f"{name} is an array of JAX's, which cannot be changed; "
                         f"{instead}")

    def address(self, x):
        return x.unsafe_buffer_pointer()


class Foreign(Framework):
    """Tensors of any library: their memory is known, nothing can be computed."""

    def dtype(self, x):
        name = self._view(x).dtype
        return "bf16" if name == "u16" else name

    def detach(self, x):
        return x

    def place(self, x):
        return self._view(x).device

    def device_name(self, x):
        place = self.place(x)
        return "emulator" if place == "host" else place

    def strides(self, x):
        view = self._view(x)
        if view.strides is not None:
            return view.strides
        strides = [1]
        for extent in view.shape[:0:-1]:
            strides.append(strides[-1] * max(extent, 1))
        return tuple(reversed(strides))

    def rows_contiguous(self, x):
        if self.strides(x)[-1] != 1:
            raise ValueError(f"a {type(x).__name__} has columns that do not lie "
                             "side by side; make it contiguous")
        return x

    def contiguous(self, x):
        expected = 1
        for stride, extent in zip(self.strides(x)[::-1], x.shape[::-1]):
            if extent > 1 and stride != expected:
                raise ValueError(f"a {type(x).__name__} has elements that do not follow "
                                 "each other; make it contiguous")
            expected *= max(extent, 1)
        return x

    def __getattr__(self, name):
        def refuse(*arguments, **_):
            kind = next((type(a).__name__ for a in arguments
                         if hasattr(a, "__dlpack__")), "tensor")
            raise NotImplementedError(
                f"this call needs '{name}' of tensors, which is there for "
                f"torch's and numpy's, not for a {kind}; pass out, and lse if "
                "it is wanted")
        return refuse

    @staticmethod
    def _view(x):
        return _tensors.view("tensor", x)


_ops: dict = {}


def of(x, *others):
    """The framework of a tensor, or what stands for it where JAX traces one of these,
    and Nones."""
    kind = type(x)
    ops = _ops.get(kind)
    if ops is None:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(x, torch.Tensor):
            ops = Torch()
        elif kind.__module__.split(".")[0] == "numpy":
            ops = Numpy()
        elif "jax" in sys.modules and isinstance(x, sys.modules["jax"].Array):
            from . import _jax
            ops = _jax.Traced() if _jax.is_traced(x) else Jax()
        else:
            ops = Foreign()
        _ops[kind] = ops
    if type(ops) is Jax:
        for other in others:
            if other is not None and type(other) is not kind and isinstance(
                    other, ops.jax.core.Tracer):
                return of(other)
    return ops
