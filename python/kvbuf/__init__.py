# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention kernels from MLIR, on numpy arrays, torch tensors and others.

    import kvbuf, numpy as np
    q, k, v = (kvbuf.to_bf16(x) for x in (q, k, v))    # as uint16 arrays
    o = kvbuf.attention(q, k, v, causal=True)          # here: on the emulator

    prefill = kvbuf.compile("examples/prefill.mlir")   # a kernel of one's own
    o = prefill(q=q, k=k, v=v)

`kvbuf.torch` has the functions of flash-attn and torch.nn.functional. Kernels
are kept on disk (`cache_dir`), and made ahead with `precompile`.

Tensors may be anything that speaks DLPack, ``__cuda_array_interface__`` or
``__array_interface__``. Those in GPU memory run on that GPU, on torch's (or
CuPy's) current stream; those in host memory run on the emulator.
"""

from ._arrays import from_bf16, from_fp8, to_bf16, to_fp8
from ._artifact import Artifact, compile, load
from ._attention import attention
from ._device import Device
from ._kernels import (cache_dir, clear_cache, precompile, save_problems)
from ._library import Error, Interrupted, KernelFault, version
from ._merge import merge_states
from ._prefix import (SharedPrefixTables, shared_prefix_attention,
                      shared_prefix_tables)
from ._problem import Problem
from ._slots import append_slots

__all__ = ["Artifact", "Device", "Error", "Interrupted", "KernelFault",
           "Problem", "SharedPrefixTables", "append_slots", "attention", "cache_dir", "clear_cache", "compile",
           "from_bf16", "from_fp8", "load", "merge_states", "precompile",
           "save_problems", "shared_prefix_attention", "shared_prefix_tables", "to_bf16",
           "to_fp8", "version"]
__version__ = "0.1.0"
