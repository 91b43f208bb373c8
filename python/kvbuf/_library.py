# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libkvbuf_runtime.so through ctypes: declarations and errors."""

import ctypes
import os
import pathlib
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p

LIBRARY = "libkvbuf_runtime.so"
COMPILER = "libKVBufferC.so"


class Error(Exception):
    """Bad usage or bad input; the message says what was expected."""


class KernelFault(Error):
    """The kernel misbehaved on the device, or a detector of the emulator
    fired."""


class Interrupted(Error):
    """The launch was asked to end; Ctrl-C raises KeyboardInterrupt instead."""


class Tensor(ctypes.Structure):
    """kvbufTensor."""
    _fields_ = [("name", c_char_p), ("data", c_void_p), ("dtype", c_char_p),
                ("rank", c_int32), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64))]


class Size(ctypes.Structure):
    """kvbufSize."""
    _fields_ = [("name", c_char_p), ("value", c_int64)]


_TENSORS = [POINTER(Tensor), c_size_t, POINTER(Size), c_size_t]
_PROTOTYPES = {
    "kvbufRuntimeVersion": (c_char_p, []),
    "kvbufLastError": (c_char_p, []),
    "kvbufArtifactOpenFile": (c_void_p, [c_char_p]),
    "kvbufArtifactOpenBytes": (c_void_p, [c_char_p, c_size_t]),
    "kvbufArtifactCompile": (c_void_p, [c_char_p, c_size_t, c_char_p,
                                        c_char_p]),
    "kvbufArtifactSave": (c_int, [c_void_p, c_char_p]),
    "kvbufArtifactManifest": (c_char_p, [c_void_p]),
    "kvbufArtifactFunctionCount": (c_size_t, [c_void_p]),
    "kvbufArtifactFunctionName": (c_char_p, [c_void_p, c_size_t]),
    "kvbufArtifactFunction": (c_void_p, [c_void_p, c_char_p]),
    "kvbufArtifactInferShape": (c_int, [c_void_p, c_char_p, *_TENSORS,
                                        POINTER(c_int64), POINTER(c_int32)]),
    "kvbufArtifactClose": (None, [c_void_p]),
    "kvbufDeviceOpen": (c_void_p, [c_char_p, c_char_p]),
    "kvbufDeviceKind": (c_char_p, [c_void_p]),
    "kvbufDeviceDescription": (c_char_p, [c_void_p]),
    "kvbufDeviceChip": (c_char_p, [c_void_p]),
    "kvbufDeviceInterrupt": (None, [c_void_p]),
    "kvbufDeviceSynchronize": (c_int, [c_void_p]),
    "kvbufDeviceClose": (None, [c_void_p]),
    "kvbufModuleLoad": (c_void_p, [c_void_p, c_void_p]),
    "kvbufModuleLaunch": (c_int, [c_void_p, *_TENSORS, c_void_p]),
    "kvbufPlanCreate": (c_void_p, [c_void_p, *_TENSORS]),
    "kvbufPlanLaunch": (c_int, [c_void_p, c_void_p, c_void_p]),
    "kvbufPlanDestroy": (None, [c_void_p]),
    "kvbufXlaAdd": (c_int, [c_int64, c_void_p, c_size_t]),
    "kvbufCallsCreate": (c_void_p, [c_void_p, c_size_t, c_size_t, c_void_p]),
    "kvbufCallsDestroy": (None, [c_void_p]),
    "kvbufModuleReport": (c_char_p, [c_void_p]),
    "kvbufModuleRemarks": (c_char_p, [c_void_p]),
    "kvbufModuleUnload": (None, [c_void_p]),
}


def _candidates():
    """Where the library may be: $KVBUF_LIB_DIR, beside or above the package
    (an install tree), the build folder of a checkout, the loader's path."""
    if os.environ.get("KVBUF_LIB_DIR"):
        yield os.path.join(os.environ["KVBUF_LIB_DIR"], LIBRARY)
    here = pathlib.Path(__file__).resolve().parent
    for folder in (here, *here.parents[:3]):
        yield str(folder / LIBRARY)
        yield str(folder / "lib" / LIBRARY)
        yield str(folder / "build" / "lib" / LIBRARY)


def library_path():
    """What to open: a file, or a name for the loader to find."""
    return next(filter(os.path.exists, _candidates()), LIBRARY)


def _open():
    try:
        return ctypes.CDLL(library_path())
    except OSError:
        raise ImportError(
            f"{LIBRARY} was not found; build the project, or set "
            "KVBUF_LIB_DIR to the folder that holds it") from None


class _Library:
    """The functions, opened when the first one is used."""

    def __getattr__(self, name):
        library = _open()
        for function, (result, arguments) in _PROTOTYPES.items():
            pointer = getattr(library, function)
            pointer.restype, pointer.argtypes = result, arguments
            setattr(self, function, pointer)
        return self.__dict__[name]


lib = _Library()


def _last_error():
    return lib.kvbufLastError().decode(errors="replace")


def check(status):
    """Raises for a status other than success."""
    if status:
        kind = {1: KernelFault, 3: Interrupted}.get(status, Error)
        raise kind(_last_error())


def check_handle(handle):
    """Raises for a null handle, else returns it."""
    if not handle:
        raise Error(_last_error())
    return handle


def compiler_path():
    """The file of the compiler library that the runtime would open; None if it
    is not among the folders where the runtime itself was found."""
    for path in _candidates():
        if os.path.exists(path):
            folder = os.path.dirname(path)
            for name in COMPILER, os.path.join("..", "lib", COMPILER):
                if os.path.exists(os.path.join(folder, name)):
                    return os.path.join(folder, name)
            return None
    return None


def version():
    """The library's version, as "0.1.0"."""
    return lib.kvbufRuntimeVersion().decode()
