# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Any framework's tensors as (address, type, shape, strides)."""

import ctypes
import functools
import sys
from ctypes import c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p

from ._device import Device
from ._library import Error

_ARRAY_TYPES = {"f2": "f16", "f4": "f32", "i4": "i32", "i8": "i64",
                "u1": "u8", "u2": "u16", "V2": "u16"}
# DLPack's (type code, bits).
_DLPACK_TYPES = {(2, 16): "f16", (4, 16): "bf16", (2, 32): "f32",
                 (0, 32): "i32", (0, 64): "i64", (1, 8): "u8", (1, 16): "u16",
                 (10, 8): "f8E4M3FN", (11, 8): "f8E4M3FNUZ", (12, 8): "f8E5M2",
                 (13, 8): "f8E5M2FNUZ"}
# DLPack's device types: pinned and managed memory is CUDA's.
_DLPACK_DEVICES = {1: "host", 2: "cuda", 3: "host", 10: "hip", 11: "host",
                   13: "cuda"}


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32),
                ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
                ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", ctypes.POINTER(c_int64)),
                ("strides", ctypes.POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class TensorView:
    """A tensor's memory. Keeps the tensor alive.

    ``device`` is "host", "cuda:N" or "hip:N"; strides count elements; ``dtype``
    is a name of the manifest, or "u16" for raw 16-bit words.
    """

    def __init__(self, owner, address, dtype, shape, strides, device,
                 writable=True):
        self.owner = owner
        self.address = address
        self.dtype = dtype
        self.shape = tuple(int(n) for n in shape)
        self.strides = (None if strides is None
                        else tuple(int(n) for n in strides))
        self.device = device
        self.writable = writable


def view(name, tensor):
    """The TensorView of any object that speaks one of the protocols."""
    torch = sys.modules.get("torch")
    if torch is not None and type(tensor) is torch.Tensor:
        plain = _from_torch(torch, tensor)
        if plain is not None:
            return plain
    interface = getattr(tensor, "__array_interface__", None)
    if interface is not None:
        return _from_interface(name, tensor, interface, "host")
    if hasattr(tensor, "__dlpack__"):
        return _from_dlpack(name, tensor)
    interface = getattr(tensor, "__cuda_array_interface__", None)
    if interface is not None:
        return _from_interface(name, tensor, interface, _gpu() + ":0")
    raise Error(
        f"tensor '{name}' is a {type(tensor).__name__}; expected an object "
        "with __dlpack__, __cuda_array_interface__ or __array_interface__")


@functools.lru_cache(maxsize=1)
def _gpu():
    """The kind of GPU that ``__cuda_array_interface__`` means here: what speaks
    it on ROCm says CUDA all the same."""
    for kind in ("cuda", "hip"):
        try:
            Device.shared(kind)
            return kind
        except Error:
            pass
    return "cuda"


def _from_interface(name, tensor, interface, device):
    code = interface["typestr"]
    dtype = _ARRAY_TYPES.get(code[1:])
    # Of parts with names: a structure.
    parts = [part[0] for part in interface.get("descr") or ()]
    if dtype is None or code[0] == ">" or any(parts):
        kind = getattr(tensor, "dtype", code) if any(parts) else code
        raise Error(f"tensor '{name}' has elements of type '{kind}', which no "
                    "kernel takes (bfloat16 travels as uint16)")
    shape, strides = interface["shape"], interface.get("strides")
    if strides is not None:
        size = int(code[2:])
        if any(n % size for n in strides):
            raise Error(f"tensor '{name}' has strides {strides} in bytes, which"
                        f" are no multiples of its element's {size}")
        strides = [n // size for n in strides]
    address, readonly = interface["data"]
    return TensorView(tensor, address or 0, dtype, shape, strides, device,
                      not readonly)


def refuse_traced(name, tensor):
    """NotImplementedError for what stands for an array of JAX's in a trace."""
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(tensor, jax.core.Tracer):
        raise NotImplementedError(
            f"{name} is traced by JAX (jit, grad, vmap), which functions of "
            "kvbuf's, but no kernels, can be part of; call it outside of the traced "
            "function, on its results")


def _from_dlpack(name, tensor):
    refuse_traced(f"tensor '{name}'", tensor)
    on_host = tensor.__dlpack_device__()[0] in (1, 3, 11)
    # -1: no synchronization. The kernel is launched on the stream that the
    # tensor's framework works on, so the order is right already.
    try:
        # JAX takes every number for a stream; its arrays have been waited for.
        plain = on_host or _module_of(tensor) in ("jax", "jaxlib")
        capsule = tensor.__dlpack__() if plain else tensor.__dlpack__(stream=-1)
    except Exception as e:
        raise Error(f"tensor '{name}': {e}") from e
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    t = _DLTensor.from_address(get_pointer(capsule, b"dltensor"))
    dtype = _DLPACK_TYPES.get((t.code, t.bits)) if t.lanes == 1 else None
    device = _DLPACK_DEVICES.get(t.device_type)
    if dtype is None:
        raise Error(f"tensor '{name}' has elements of DLPack type {t.code} of "
                    f"{t.bits} bits, which no kernel takes")
    if device is None:
        raise Error(f"tensor '{name}' is on a device of DLPack type "
                    f"{t.device_type}; expected host, CUDA or ROCm memory")
    if device != "host":
        device += f":{t.device_id}"
    shape = [t.shape[i] for i in range(t.ndim)]
    strides = [t.strides[i] for i in range(t.ndim)] if t.strides else None
    # The capsule is not consumed: when it dies, the framework releases it.
    return TensorView((tensor, capsule), (t.data or 0) + t.byte_offset, dtype,
                      shape, strides, device)


@functools.lru_cache(maxsize=None)
def _torch_types(torch):
    """({type: its name in manifests}, {kind of device: DLPack's number})."""
    types = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "i32": "int32",
             "i64": "int64", "u8": "uint8", "f8E4M3FN": "float8_e4m3fn",
             "f8E4M3FNUZ": "float8_e4m3fnuz", "f8E5M2": "float8_e5m2",
             "f8E5M2FNUZ": "float8_e5m2fnuz"}
    return ({getattr(torch, theirs): ours for ours, theirs in types.items()
             if hasattr(torch, theirs)},
            {"cpu": 1, "cuda": 10 if torch.version.hip else 2})


def _from_torch(torch, tensor):
    """What DLPack says of a tensor of torch's, in an eighth of the time, and of those
    on any GPU, not on the current one alone. None where DLPack is to say why not."""
    types, devices = _torch_types(torch)
    dtype, place = types.get(tensor.dtype), tensor.device
    device = _DLPACK_DEVICES.get(devices.get(place.type))
    if (dtype is None or device is None or tensor.requires_grad
            or tensor.layout is not torch.strided):
        return None
    try:
        address = tensor.data_ptr()
    except RuntimeError:  # of a transform of torch.func's
        return None
    if device != "host":
        device += f":{place.index or 0}"
    return TensorView(tensor, address, dtype, tensor.shape, tensor.stride(), device)


def _module_of(tensor):
    return type(tensor).__module__.split(".")[0]


def changed(tensor):
    """Tells a tensor's framework that a kernel has written it: what a backward
    pass has kept of torch's is no longer that."""
    torch = sys.modules.get("torch")
    if (torch is not None and isinstance(tensor, torch.Tensor)
            and not tensor.is_inference()):
        torch.autograd.graph.increment_version(tensor)


def current_stream(tensor, device):
    """The stream that the tensor's framework works on; 0 if unknown."""
    if device == "host":
        return 0
    framework = sys.modules.get(_module_of(tensor))
    if _module_of(tensor) == "torch":
        return framework.cuda.current_stream(tensor.device).cuda_stream
    if _module_of(tensor) == "cupy":
        return framework.cuda.get_current_stream().ptr
    return 0


def stream_getter(tensor, device):
    """A function of no argument: the stream that the framework of a torch
    tensor works on, on the tensor's device."""
    if device == "host":
        return lambda: 0
    torch = sys.modules["torch"]
    # What torch.cuda.current_stream wraps, at a twentieth of its time.
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:
        return functools.partial(raw, tensor.device.index)
    return lambda: torch.cuda.current_stream(tensor.device).cuda_stream


def order_of(tensor):
    """What a torch tensor that is kept is found by besides what it holds: its device
    and the stream that made it, whose work alone waits for it, and for whoever gets
    its memory next. None where a graph is captured, which is replayed when the tensor
    may be gone: it has its own."""
    if not tensor.is_cuda:
        return tensor.device, 0
    if sys.modules["torch"].cuda.is_current_stream_capturing():
        return None
    return tensor.device, stream_getter(tensor, "cuda")()


def allocate(name, like, dtype, shape):
    """A new tensor of the framework, and on the device, of ``like``."""
    module = _module_of(like)
    if module == "torch":
        torch = sys.modules["torch"]
        types = {"f16": torch.float16, "bf16": torch.bfloat16,
                 "f32": torch.float32, "i32": torch.int32,
                 "i64": torch.int64, "u8": torch.uint8}
        types.update({kind: getattr(torch, name) for kind, name in (
            ("f8E4M3FN", "float8_e4m3fn"), ("f8E5M2", "float8_e5m2"),
            ("f8E4M3FNUZ", "float8_e4m3fnuz"),
            ("f8E5M2FNUZ", "float8_e5m2fnuz")) if hasattr(torch, name)})
        return torch.empty(shape, dtype=types[dtype], device=like.device)
    if module in ("numpy", "cupy"):
        # 8-bit floats are bytes, as arguments may be.
        types = {"f16": "float16", "bf16": "uint16", "f32": "float32",
                 "i32": "int32", "i64": "int64"}
        kind = types.get(dtype, "uint8")
        # Arrays of a bfloat16 extension type get results of the same type.
        if dtype == "bf16" and like.dtype.itemsize == 2 and like.dtype.kind == "V":
            kind = like.dtype
        return sys.modules[module].empty(shape, dtype=kind)
    raise Error(f"output '{name}' cannot be allocated for a "
                f"{type(like).__name__}; pass it")
