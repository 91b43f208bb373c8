# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's latent attention (MLA) by kvbuf: steps of few rows over the cache's rows.

vLLM's cache of a layer is [blocks, block size, latent and rope columns], as
kvbuf's latent kernels read it, each row once. Prefills are what vLLM makes of
them: dense attention of its own, or of the backend that it is told to take."""

from __future__ import annotations

from typing import ClassVar

import torch
import vllm.envs as envs
from vllm.model_executor.layers.attention.mla_attention import (
    MLACommonBackend, MLACommonImpl, MLACommonMetadata, MLACommonMetadataBuilder,
    QueryLenSupport)
from vllm.v1.attention.backend import (AttentionCGSupport, AttentionType,
                                       MultipleOf)

import kvbuf

from .backend import _FLOAT8


class KvbufMLABackend(MLACommonBackend):
    """What vLLM asks before it chooses."""

    supported_dtypes: ClassVar = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes: ClassVar = ["auto", "float16", "bfloat16", *_FLOAT8]

    @staticmethod
    def get_name():
        return "KVBUF_MLA"

    @staticmethod
    def get_impl_cls():
        return KvbufMLAImpl

    @staticmethod
    def get_builder_cls():
        return KvbufMLAMetadataBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None):
        return [MultipleOf(16)]

    @classmethod
    def supports_compute_capability(cls, capability):
        return capability.major >= 8

    @classmethod
    def supports_batch_invariance(cls):
        return True


class KvbufMLAMetadataBuilder(MLACommonMetadataBuilder[MLACommonMetadata]):
    """Decode has as many rows of each request: one, or drafts that are verified."""

    _cudagraph_support: ClassVar = AttentionCGSupport.UNIFORM_BATCH
    query_len_support: ClassVar = QueryLenSupport.UNIFORM


class KvbufMLAImpl(MLACommonImpl[MLACommonMetadata]):
    """A layer's attention."""

    can_return_lse_for_decode = True

    def __init__(self, num_heads, head_size, scale, num_kv_heads, alibi_slopes,
                 sliding_window, kv_cache_dtype, logits_soft_cap, attn_type,
                 kv_sharing_target_layer_name, **mla_args):
        super().__init__(num_heads, head_size, scale, num_kv_heads, alibi_slopes,
                         sliding_window, kv_cache_dtype, logits_soft_cap, attn_type,
                         kv_sharing_target_layer_name, **mla_args)
        for name, value in (("alibi_slopes", alibi_slopes),
                            ("sliding_window", sliding_window),
                            ("logits_soft_cap", logits_soft_cap)):
            if value:
                raise NotImplementedError(f"{name} is given; kvbuf's backend of latent "
                                          "attention has none")
        if attn_type != AttentionType.DECODER:
            raise NotImplementedError(f"attn_type is {attn_type}; kvbuf's backend of "
                                      "latent attention has decoders alone")
        self.float8 = _FLOAT8.get(kv_cache_dtype)
        # Rows of 8-bit floats are widened; queries stay what they are.
        self.supports_quant_query_input = False

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        """(output [rows, heads, latent columns], log-sum-exps [rows, heads]) of the
        steps of few rows; these rows are in the cache already."""
        if isinstance(q, tuple):
            q = torch.cat(q, dim=-1)
        decode = attn_metadata.decode
        lengths, rows = decode.seq_lens, kv_c_and_k_pe_cache.unsqueeze(2)
        scales = {}
        if self.float8 is not None:
            rows = rows.view(self.float8)
            scale = layer._k_scale.reshape(1)
            scales = {"k_descale": scale, "v_descale": scale}
        each = q.shape[0] // max(lengths.shape[0], 1)
        out, lse = kvbuf.attention(
            q.view(-1, each, *q.shape[1:]), rows, rows[..., :self.kv_lora_rank],
            page_table=decode.block_table, lengths=lengths, scale=self.scale,
            causal=each > 1 and bool(attn_metadata.causal), return_lse=True,
            batch_invariant=envs.VLLM_BATCH_INVARIANT, **scales)
        return out.flatten(0, 1), lse.transpose(1, 2).flatten(0, 1)
