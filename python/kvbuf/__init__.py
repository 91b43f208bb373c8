# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention kernels from MLIR, on numpy arrays, torch tensors and others.

    import kvbuf, numpy as np
    attention = kvbuf.compile("examples/prefill.mlir", target="sm_80")
    o = attention(q=q, k=k, v=v)      # bf16 as uint16 arrays, on the emulator

Tensors may be anything that speaks DLPack, ``__cuda_array_interface__`` or
``__array_interface__``. Those in GPU memory run on that GPU, on torch's (or
CuPy's) current stream; those in host memory run on the emulator.
"""

from ._artifact import Artifact, compile, load
from ._device import Device
from ._library import Error, Interrupted, KernelFault, version

__all__ = ["Artifact", "Device", "Error", "Interrupted", "KernelFault", "compile",
           "load", "version"]
__version__ = "0.1.0"
