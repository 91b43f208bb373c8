# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kvbuf as an attention backend of vLLM: a plugin of the group
vllm.general_plugins. `vllm serve MODEL --attention-backend CUSTOM`, or KVBUF_MLA of
models with latent attention, KVBUF_MLA_SPARSE where that has lists of keys."""


def register(name=None):
    """Makes the backend vLLM's CUSTOM, or the one of another name, which vLLM then
    has, too, and those of latent attention KVBUF_MLA and KVBUF_MLA_SPARSE (lists of
    keys). vLLM calls this in each of its processes."""
    from vllm.v1.attention.backends.registry import (AttentionBackendEnum,
                                                     register_backend)
    register_backend(AttentionBackendEnum.CUSTOM if name is None else name,
                     "kvbuf_vllm.backend.KvbufBackend")
    for latent, backend in (("KVBUF_MLA", "mla.KvbufMLABackend"),
                            ("KVBUF_MLA_SPARSE", "sparse.KvbufMLASparseBackend")):
        if latent in AttentionBackendEnum.__members__:
            latent = AttentionBackendEnum[latent]
        register_backend(latent, f"kvbuf_vllm.{backend}")
