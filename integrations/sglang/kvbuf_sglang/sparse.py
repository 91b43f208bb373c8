# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SGLang's sparse latent attention (DeepSeek V3.2's lists of keys) by kvbuf.

Lists, tables and what the indexer asks for are SGLang's own backend's; kvbuf attends in
place of FlashMLA's kernels: over rows of 16 bits (flashmla_sparse), and over packed ones
(flashmla_kv)."""

from __future__ import annotations

from sglang.srt.layers.attention.dsa_backend import DeepseekSparseAttnBackend

from kvbuf._latent import flash_mla_with_kvcache

#: The kernels that are replaced, by SGLang's names.
TAKEN = "flashmla_sparse", "flashmla_kv", "flashmla_auto"


class KvbufSparseAttnBackend(DeepseekSparseAttnBackend):
    """Of a model runner whose pool is a DSATokenToKVPool."""

    def __init__(self, model_runner, *arguments, **named):
        super().__init__(model_runner, *arguments, **named)
        self.require_taken()

    def require_taken(self):
        """Refuses the kernels of others that SGLang was told to take."""
        for name in "dsa_prefill_impl", "dsa_decode_impl":
            if getattr(self, name) not in TAKEN:
                raise NotImplementedError(
                    f"{name} is {getattr(self, name)!r}; kvbuf attends in place of "
                    f"{', '.join(TAKEN)} (--dsa-prefill-backend, --dsa-decode-backend)")

    def _listed(self, q, rows, lists, scale, columns, counts=None, sink=None,
                packed=False):
        """[tokens, heads, columns] of q [tokens, heads, size] by rows of the pool."""
        if counts is not None and counts.shape[0] != q.shape[0]:
            counts = None  # Rows of padding; -1 says as much.
        out, _ = flash_mla_with_kvcache(
            q.unsqueeze(1), rows, None, None, columns, softmax_scale=scale,
            indices=lists.unsqueeze(1), topk_length=counts, attn_sink=sink,
            is_fp8_kvcache=packed)
        return out.squeeze(1)

    def _forward_flashmla_sparse(self, q_all, kv_cache, v_head_dim, page_table_1,
                                 sm_scale, topk_length=None, attn_sink=None):
        rows = kv_cache.view(-1, 1, 1, kv_cache.shape[-1])
        sink = None if attn_sink is None else attn_sink.float()
        return self._listed(q_all, rows, page_table_1, sm_scale, v_head_dim,
                            topk_length, sink)

    def _forward_flashmla_kv(self, q_all, kv_cache, v_head_dim, sm_scale, layer, metadata,
                             page_table_1):
        rows = kv_cache.view(-1, self.physical_page_size, 1, self.kv_cache_dim)
        q = q_all.view(-1, layer.tp_q_head_num, layer.head_dim)
        return self._listed(q, rows, page_table_1, sm_scale, v_head_dim,
                            packed=self.dsa_kv_cache_store_fp8)
