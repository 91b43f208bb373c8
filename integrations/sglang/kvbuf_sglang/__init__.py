# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kvbuf as an attention backend of SGLang: a plugin of the group sglang.srt.plugins.
`python -m sglang.launch_server --model-path MODEL --attention-backend kvbuf`."""


def register(name="kvbuf"):
    """Makes the backend one of SGLang's, under a name. SGLang calls this in each of
    its processes."""
    from sglang.srt.arg_groups import choices
    from sglang.srt.layers.attention.attention_registry import (
        ATTENTION_BACKENDS, register_attention_backend)
    if name not in choices.ATTENTION_BACKEND_CHOICES:
        choices.add_attention_backend_choices([name])
    if name in ATTENTION_BACKENDS:
        return

    @register_attention_backend(name)
    def create(runner):
        if type(runner.token_to_kv_pool).__name__ == "DSATokenToKVPool":
            # Lists of keys; that module needs more of SGLang than others.
            from .sparse import KvbufSparseAttnBackend
            return KvbufSparseAttnBackend(runner)
        from .backend import KvbufAttnBackend
        return KvbufAttnBackend(runner)
