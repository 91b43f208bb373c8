# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's attention by kvbuf: backend, metadata and implementation.

vLLM's cache of a layer is [blocks, key heads, block size, 2 head size] in any layout,
K and V of a token and head side by side: two views of it are pages as kvbuf takes
them. Lengths, tables and offsets are read on the device alone."""

from __future__ import annotations

import dataclasses
import functools
from typing import ClassVar

import torch
import vllm.envs as envs
from vllm.model_executor.layers.quantization.utils.quant_utils import (
    kFp8StaticTensorSym)
from vllm.v1.attention.backend import (AttentionBackend, AttentionCGSupport,
                                       AttentionImpl, AttentionMetadata,
                                       AttentionMetadataBuilder, AttentionType,
                                       MultipleOf)

import kvbuf
import kvbuf.torch
from kvbuf._flash import prefix_of
from kvbuf._kernels import default_chip

#: The 8-bit floats that caches may hold, by vLLM's names.
_FLOAT8 = {"fp8": torch.float8_e4m3fn, "fp8_e4m3": torch.float8_e4m3fn,
           "fp8_e5m2": torch.float8_e5m2}


def _multiplies_float8():
    """Whether the chip that kernels are for has products of e4m3."""
    return default_chip()[0].startswith(("sm_89", "sm_90"))


class KvbufBackend(AttentionBackend):
    """What vLLM asks before it chooses."""

    supported_dtypes: ClassVar = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes: ClassVar = ["auto", "float16", "bfloat16",
                                           *_FLOAT8]
    forward_includes_kv_cache_update = False

    @staticmethod
    def get_name():
        return "CUSTOM"

    @staticmethod
    def get_impl_cls():
        return KvbufImpl

    @staticmethod
    def get_builder_cls():
        return KvbufMetadataBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None):
        return [MultipleOf(16)]

    @classmethod
    def supports_head_size(cls, head_size):
        return head_size % 8 == 0 and head_size <= 256

    @classmethod
    def supports_compute_capability(cls, capability):
        return capability.major >= 8

    @classmethod
    def supports_attn_type(cls, attn_type):
        return attn_type in (AttentionType.DECODER, AttentionType.ENCODER,
                             AttentionType.ENCODER_ONLY,
                             AttentionType.ENCODER_DECODER)

    @classmethod
    def supports_sink(cls):
        return True

    @classmethod
    def supports_sliding_window(cls):
        return True

    @classmethod
    def supports_non_causal(cls):
        return True

    @classmethod
    def supports_batch_invariance(cls):
        return True

    @classmethod
    def supports_device_cpu_query_lens_mismatch(cls):
        # Steps of as many rows for all are found by the host's numbers.
        return False


@dataclasses.dataclass
class KvbufMetadata(AttentionMetadata):
    """A batch's, shared by the layers."""

    num_actual_tokens: int
    max_query_len: int
    max_seq_len: int
    query_start_loc: torch.Tensor
    seq_lens: torch.Tensor
    block_table: torch.Tensor
    slot_mapping: torch.Tensor
    causal: bool
    #: Where causal is a flag a sequence: up to which key it hides none.
    prefix: torch.Tensor | None
    #: The rows of each sequence if all have as many, else 0.
    rows: int
    #: The fewest of a sequence that has rows.
    shortest: int


def _fewest(offsets):
    """The fewest rows between the host's offsets, but for none."""
    rows = offsets.diff()
    rows = rows[rows > 0]
    return int(rows.min()) if len(rows) else 0


class KvbufMetadataBuilder(AttentionMetadataBuilder[KvbufMetadata]):
    """A graph replays batches whose sequences have as many rows as when it was
    captured, or none."""

    _cudagraph_support = AttentionCGSupport.UNIFORM_BATCH
    supports_update_block_table = True

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self._init_reorder_batch_threshold(1, supports_spec_as_decode=True)

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        common = common_attn_metadata
        if common.rswa_prefix_lens is not None or common.mm_req_doc_ranges:
            raise NotImplementedError("prefixes that stay visible are given; kvbuf "
                                      "has no kernel for them")
        causal, prefix = common.causal, None
        if isinstance(causal, torch.Tensor):
            causal, prefix = True, prefix_of(causal, common.num_reqs)
        longest = common.max_query_len
        uniform = common.num_actual_tokens == common.num_reqs * longest
        return KvbufMetadata(
            num_actual_tokens=common.num_actual_tokens, max_query_len=longest,
            max_seq_len=common.max_seq_len,
            query_start_loc=common.query_start_loc, seq_lens=common.seq_lens,
            block_table=common.block_table_tensor,
            slot_mapping=common.slot_mapping, causal=causal, prefix=prefix,
            rows=longest if uniform else 0,
            shortest=longest if uniform else _fewest(common.query_start_loc_cpu))

    def update_block_table(self, metadata, blk_table, slot_mapping):
        return dataclasses.replace(metadata, block_table=blk_table,
                                   slot_mapping=slot_mapping)


class KvbufImpl(AttentionImpl[KvbufMetadata]):
    """A layer's attention."""

    def __init__(self, num_heads, head_size, scale, num_kv_heads=None,
                 alibi_slopes=None, sliding_window=None, kv_cache_dtype="auto",
                 logits_soft_cap=None, attn_type=AttentionType.DECODER,
                 kv_sharing_target_layer_name=None, sinks=None):
        self.num_heads, self.head_size = num_heads, head_size
        self.num_kv_heads = num_kv_heads or num_heads
        self.scale = float(scale)
        self.slopes = alibi_slopes
        self.window = -1 if sliding_window is None else sliding_window - 1
        self.kv_cache_dtype, self.attn_type = kv_cache_dtype, attn_type
        self.float8 = _FLOAT8.get(kv_cache_dtype)
        self.softcap = logits_soft_cap or 0.0
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        #: vLLM then quantizes queries, too, and kernels multiply 8-bit floats.
        self.supports_quant_query_input = (self.float8 is torch.float8_e4m3fn
                                           and head_size % 16 == 0
                                           and _multiplies_float8())
        self.sinks = sinks
        if sinks is not None and sinks.shape != (num_heads,):
            raise ValueError(f"sinks have shape {tuple(sinks.shape)}; expected "
                             f"{(num_heads,)}, one a query head")

    def pages(self, kv_cache):
        """K's and V's pages [blocks, block size, heads, head size]."""
        return [x if self.float8 is None else x.view(self.float8)
                for x in kv_cache.transpose(1, 2).split(self.head_size, -1)]

    @functools.cached_property
    def _own_slopes(self):
        return torch.tensor(self.slopes, dtype=torch.float32)

    def _more(self, query):
        """Sinks and slopes, on the queries' device."""
        sink = None if self.sinks is None else self.sinks.float()
        slopes = None
        if self.slopes is not None:
            if self._own_slopes.device != query.device:
                self._own_slopes = self._own_slopes.to(query.device)
            slopes = self._own_slopes
        return {"sink": sink, "alibi_slopes": slopes}

    def fused_output_quant_supported(self, quant_key):
        """Results of e4m3 with a number of the tensor: of queries that are so, too."""
        return self.supports_quant_query_input and quant_key == kFp8StaticTensorSym

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output,
                output_scale=None, output_block_scale=None):
        """Writes output [tokens, heads, head size], and returns it; key and value
        are in the cache already."""
        if output_block_scale is not None:
            raise NotImplementedError("output_block_scale is given; kvbuf's 8-bit "
                                      "results have one scale")
        quantized = query.dtype in _FLOAT8.values()
        if output_scale is not None and not quantized:
            raise NotImplementedError(
                f"output_scale is given with queries of {query.dtype}; kvbuf writes "
                "8-bit floats where queries are, too")
        meta = attn_metadata
        if meta is None:  # vLLM measures memory
            return output.fill_(0)
        count = meta.num_actual_tokens
        query, out = query[:count], output[:count]
        query = query.view(count, self.num_heads, self.head_size)
        out = out.view(count, self.num_heads, self.head_size)
        if self.attn_type in (AttentionType.ENCODER, AttentionType.ENCODER_ONLY):
            self._encode(query, key[:count], value[:count], meta, out)
            return output
        k, v = self.pages(kv_cache)
        causal = bool(meta.causal)
        # Of sequences that are not causal a window has two sides.
        one_sided = causal and meta.prefix is None
        window = (self.window, -1 if one_sided else self.window)
        descale = {}
        if self.float8 is not None:
            descale = {"k_descale": layer._k_scale.reshape(1),
                       "v_descale": layer._v_scale.reshape(1)}
        if quantized:
            descale.update(q_descale=layer._q_scale.reshape(1),
                           output_scale=output_scale)
        more = self._more(query)
        invariant = envs.VLLM_BATCH_INVARIANT
        if meta.prefix is not None:
            kvbuf.attention(
                query, k, v, q_offsets=meta.query_start_loc,
                longest_query=meta.max_query_len, shortest_query=meta.shortest,
                page_table=meta.block_table, lengths=meta.seq_lens, causal=True,
                prefix=meta.prefix, window=window, scale=self.scale,
                softcap=self.softcap, out=out, batch_invariant=invariant, **more,
                **descale)
            return output
        if meta.rows and quantized and not invariant:
            shape = -1, meta.rows, *query.shape[1:]
            kvbuf.attention(
                query.view(shape), k, v, page_table=meta.block_table,
                lengths=meta.seq_lens, causal=causal, window=window,
                scale=self.scale, softcap=self.softcap, out=out.view(shape), **more,
                **descale)
            return output
        if meta.rows and not invariant:
            # As many rows of all: kernels for so many, which split keys over
            # blocks; calls that were made before take the shortest way.
            result = kvbuf.torch.flash_attn_with_kvcache(
                query.view(-1, meta.rows, *query.shape[1:]), k, v,
                cache_seqlens=meta.seq_lens, block_table=meta.block_table,
                softmax_scale=self.scale, causal=causal, window_size=window,
                softcap=self.softcap, **more, **descale)
            out.copy_(result.view_as(out))
            return output
        kvbuf.attention(
            query, k, v, q_offsets=meta.query_start_loc,
            longest_query=meta.max_query_len, shortest_query=meta.shortest,
            page_table=meta.block_table, lengths=meta.seq_lens, causal=causal,
            window=window, scale=self.scale, softcap=self.softcap, out=out,
            batch_invariant=invariant, **more,
            **descale)
        return output

    def _encode(self, query, key, value, meta, out):
        """All tokens of a sequence see each other; there is no cache."""
        if self.float8 is not None:
            raise NotImplementedError("an encoder's cache is of 8-bit floats; "
                                      "expected none")
        shape = -1, self.num_kv_heads, self.head_size
        kvbuf.torch.flash_attn_varlen_func(
            query, key.view(shape), value.view(shape), meta.query_start_loc,
            meta.query_start_loc, meta.max_query_len, meta.max_query_len,
            softmax_scale=self.scale, window_size=(self.window, self.window),
            softcap=self.softcap, out=out, min_seqlen_q=meta.shortest,
            **self._more(query))

    def do_kv_cache_update(self, layer, key, value, kv_cache, slot_mapping):
        """Stores key and value [tokens, heads, head size] in their slots; -1 is
        none."""
        if self.attn_type in (AttentionType.ENCODER, AttentionType.ENCODER_ONLY):
            return
        descale = {}
        if self.float8 is not None:
            descale = {"k_descale": layer._k_scale.float().reshape(1),
                       "v_descale": layer._v_scale.float().reshape(1)}
        shape = -1, self.num_kv_heads, self.head_size
        kvbuf.append_slots(key.view(shape), value.view(shape), *self.pages(kv_cache),
                           slot_mapping, **descale)
