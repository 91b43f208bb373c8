# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's sparse latent attention (DeepSeek V3.2's lists of keys) by kvbuf.

An indexer of vLLM's lists the keys that each token sees; vLLM makes rows of the cache of
them, those that are keys first. Each token is then a sequence of one query whose pages
are rows. Prefills that see all of their keys are dense ones, as vLLM computes them for
any such backend."""

from __future__ import annotations

from typing import ClassVar

import torch
from vllm.model_executor.layers.attention.sparse_mla_attention import (
    SparseMLACommonImpl, SparseMLACommonMetadata, SparseMLACommonMetadataBuilder)
from vllm.v1.attention.backend import (AttentionBackend, AttentionCGSupport,
                                       AttentionType, MultipleOf)
from vllm.v1.attention.backends.mla.sparse_utils import (align_blocks_to_rows,
                                                         flat_kv_row_view)

from kvbuf._latent import flash_mla_with_kvcache


class KvbufMLASparseBackend(AttentionBackend):
    """What vLLM asks before it chooses."""

    supported_dtypes: ClassVar = [torch.float16, torch.bfloat16]
    #: fp8_ds_mla: rows of 656 bytes, 512 of e4m3 with four scales and 64 of bfloat16.
    supported_kv_cache_dtypes: ClassVar = ["auto", "float16", "bfloat16", "fp8_ds_mla"]

    @staticmethod
    def get_name():
        return "KVBUF_MLA_SPARSE"

    @staticmethod
    def get_impl_cls():
        return KvbufMLASparseImpl

    @staticmethod
    def get_builder_cls():
        return KvbufMLASparseMetadataBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None):
        return [MultipleOf(16)]

    @classmethod
    def customize_spec(cls, spec):
        return align_blocks_to_rows(spec)

    @classmethod
    def get_supported_head_sizes(cls):
        return [576]

    @classmethod
    def is_mla(cls):
        return True

    @classmethod
    def is_sparse(cls):
        return True

    @classmethod
    def supports_compute_capability(cls, capability):
        return capability.major >= 8


class KvbufMLASparseMetadataBuilder(
        SparseMLACommonMetadataBuilder[SparseMLACommonMetadata]):
    """Tokens of any batch are sequences of their own."""

    metadata_cls = SparseMLACommonMetadata
    _cudagraph_support: ClassVar = AttentionCGSupport.UNIFORM_BATCH

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self._init_reorder_batch_threshold(1, supports_spec_as_decode=True)


class KvbufMLASparseImpl(SparseMLACommonImpl[SparseMLACommonMetadata]):
    """A layer's attention."""

    can_return_lse_for_decode = True
    group_conversion_decode_only = True

    def __init__(self, num_heads, head_size, scale, num_kv_heads, alibi_slopes,
                 sliding_window, kv_cache_dtype, logits_soft_cap, attn_type,
                 kv_sharing_target_layer_name, **mla_args):
        for name, value in (("alibi_slopes", alibi_slopes),
                            ("sliding_window", sliding_window),
                            ("logits_soft_cap", logits_soft_cap)):
            if value:
                raise NotImplementedError(f"{name} is given; kvbuf's backend of sparse "
                                          "latent attention has none")
        if attn_type != AttentionType.DECODER:
            raise NotImplementedError(f"attn_type is {attn_type}; kvbuf's backend of "
                                      "sparse latent attention has decoders alone")
        super().__init__(num_heads, head_size, scale, num_kv_heads, alibi_slopes,
                         sliding_window, kv_cache_dtype, logits_soft_cap, attn_type,
                         kv_sharing_target_layer_name, **mla_args)
        self.packed = kv_cache_dtype == "fp8_ds_mla"
        self.supports_quant_query_input = False

    def _forward_mqa_kernel(self, q, kv_cache, topk_indices, valid_counts, *, layer,
                            block_size, is_decode):
        """(output [tokens, heads, latent columns], log-sum-exps [tokens, heads]) of
        the keys that the lists name, which are rows of the cache."""
        if isinstance(q, tuple):
            q = torch.cat(q, dim=-1)
        rows, _ = flat_kv_row_view(kv_cache, block_size)
        out, lse = flash_mla_with_kvcache(
            q.unsqueeze(1), rows[:, None, None], topk_indices, valid_counts,
            self.kv_lora_rank, softmax_scale=self.scale, is_fp8_kvcache=self.packed)
        return out.squeeze(1), lse.squeeze(2)
