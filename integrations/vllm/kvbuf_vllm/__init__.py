# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kvbuf as an attention backend of vLLM: a plugin of the group
vllm.general_plugins. `vllm serve MODEL --attention-backend CUSTOM`, or KVBUF_MLA of
models with latent attention."""


def register(name=None):
    """Makes the backend vLLM's CUSTOM, or the one of another name, which vLLM then
    has, too, and that of latent attention KVBUF_MLA. vLLM calls this in each of its processes."""
    from vllm.v1.attention.backends.registry import (AttentionBackendEnum,
                                                     register_backend)
    register_backend(AttentionBackendEnum.CUSTOM if name is None else name,
                     "kvbuf_vllm.backend.KvbufBackend")
    latent = "KVBUF_MLA"
    if latent in AttentionBackendEnum.__members__:
        latent = AttentionBackendEnum[latent]
    register_backend(latent, "kvbuf_vllm.mla.KvbufMLABackend")
