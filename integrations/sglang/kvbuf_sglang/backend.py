# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SGLang's attention by kvbuf.

SGLang's pool of a layer has K and V apart, [tokens, heads, head size]: views of it are
pages as kvbuf takes them, and every page_size-th entry of a request's row of
req_to_token, over page_size, is a page's number. The pool of models with latent
attention has rows [tokens, 1, latent and rope columns]. Lengths, tables and offsets are
read on the device alone."""

from __future__ import annotations

import dataclasses

import torch
from sglang.srt.layers.attention.base_attn_backend import AttentionBackend
from sglang.srt.layers.attention.verify_mask import VerifyMask
from sglang.srt.layers.radix_attention import AttentionType
from sglang.srt.mem_cache.memory_pool import (KVWriteLoc, MHATokenToKVPool,
                                              MLATokenToKVPool)
from sglang.srt.speculative.eagle_utils import TreeMaskMode

import kvbuf
import kvbuf.torch


@dataclasses.dataclass
class KvbufMetadata:
    """A batch's, shared by the layers."""

    #: The keys of each sequence, those of this step too, int32.
    lengths: torch.Tensor
    #: Pages [sequences, pages], int32.
    table: torch.Tensor
    #: The rows of each sequence if all have as many, else 0.
    rows: int
    #: Otherwise where each one's rows begin, and a bound of their number.
    offsets: torch.Tensor | None = None
    longest: int = 0
    #: And the fewest of one that has rows, where the host knows.
    shortest: int = 0
    #: Of drafts in a tree: bit n of a row's word says that it sees draft n, int32.
    tree: torch.Tensor | None = None


class KvbufAttnBackend(AttentionBackend):
    """Of a model runner. A graph replays batches of as many requests, each with as
    many rows (one, or the drafts that are verified)."""

    needs_cpu_seq_lens = False

    def __init__(self, model_runner):
        super().__init__()
        pool = model_runner.token_to_kv_pool
        #: The columns of the latent part, which are the values; 0 without.
        self.latent = 0
        if type(pool) is MLATokenToKVPool and not pool.use_dsa:
            self.latent = pool.kv_lora_rank
        elif not isinstance(pool, MHATokenToKVPool):
            raise NotImplementedError(
                f"the pool is a {type(pool).__name__}; expected MHATokenToKVPool, K and "
                "V of all tokens of each layer, or MLATokenToKVPool, rows of latent "
                "attention without lists of keys")
        self.pool = pool
        self.req_to_token = model_runner.req_to_token_pool.req_to_token
        self.page_size = model_runner.page_size
        self.device = model_runner.device
        self.data_type = self.kv_cache_dtype = model_runner.kv_cache_dtype
        server = model_runner.server_args
        #: Rows of a request whose drafts are verified.
        self.drafts = getattr(server, "speculative_num_draft_tokens", None) or 0
        self.has_trees = (getattr(server, "speculative_eagle_topk", None) or 1) > 1
        if self.has_trees and self.drafts > 32:
            raise NotImplementedError(
                f"speculative_num_draft_tokens is {self.drafts}, and "
                "speculative_eagle_topk more than 1; kvbuf's trees have up to 32 drafts")
        self._mask = self._verify_mask(0) if self.has_trees else None
        self.forward_metadata = None
        self._static = None

    def _pages(self, requests, most=None):
        """The table of requests, of their first `most` tokens."""
        tokens = self.req_to_token[:, :most:self.page_size]
        return tokens[requests] // self.page_size

    def _verify_mask(self, most):
        """Which drafts of its tree each draft sees, of so many requests at most."""
        return VerifyMask(
            buffer=torch.zeros(most * self.drafts ** 2, dtype=torch.bool,
                               device=self.device),
            mode=TreeMaskMode.QLEN_ONLY, max_bs=most)

    @property
    def verify_mask(self):
        """What the draft stage fills in place."""
        return self._mask

    def _words(self, mask, count):
        """A word a draft, of booleans [requests, drafts, drafts]."""
        bits = torch.arange(self.drafts, device=self.device)
        mask = mask[:count * self.drafts ** 2].view(count, self.drafts, self.drafts)
        return (mask.long() << bits).sum(-1).to(torch.int32)

    def _is_tree(self, batch):
        return self.has_trees and batch.forward_mode.is_target_verify()

    def _rows(self, batch):
        """The rows that this step has of each request, or 0 if they differ."""
        mode = batch.forward_mode
        if mode.is_decode():
            return 1
        return self.drafts if mode.is_target_verify() else 0

    def _added(self, batch):
        """Rows of this step that seq_lens does not count."""
        return self.drafts if batch.forward_mode.is_target_verify() else 0

    def init_forward_metadata(self, forward_batch):
        """A step without a graph."""
        batch = forward_batch
        if getattr(batch, "encoder_lens", None) is not None:
            raise NotImplementedError("encoder_lens are given; kvbuf's backend has no "
                                      "cross attention")
        most, known = None, getattr(batch, "seq_lens_cpu", None)
        if known is not None and len(known):
            most = int(known.max()) + self._added(batch)
        meta = KvbufMetadata(
            (batch.seq_lens + self._added(batch)).to(torch.int32),
            self._pages(batch.req_pool_indices, most), self._rows(batch))
        if self._is_tree(batch):
            meta.tree = self._words(batch.spec_info.custom_mask, batch.batch_size)
        if not meta.rows:
            rows = batch.extend_seq_lens
            meta.offsets = torch.nn.functional.pad(
                rows.cumsum(0, dtype=torch.int32), (1, 0))
            on_host = getattr(batch, "extend_seq_lens_cpu", None)
            meta.longest = max(on_host) if on_host else 0
            meta.shortest = min(filter(None, on_host or ()), default=0)
        self.forward_metadata = meta

    def init_cuda_graph_state(self, max_bs, max_num_tokens):
        pages = -(-self.req_to_token.shape[1] // self.page_size)
        self._static = KvbufMetadata(
            torch.zeros(max_bs, dtype=torch.int32, device=self.device),
            torch.zeros((max_bs, pages), dtype=torch.int32, device=self.device), 1)
        if self.has_trees:
            self._mask = self._verify_mask(max_bs)
            self._static.tree = torch.zeros((max_bs, self.drafts), dtype=torch.int32,
                                            device=self.device)

    def init_forward_metadata_out_graph(self, forward_batch, in_capture=False):
        """Before a capture or a replay: memory that stays where it is."""
        rows, count = self._rows(forward_batch), forward_batch.batch_size
        if not rows:
            raise NotImplementedError(
                f"a graph of mode {forward_batch.forward_mode.name} is wanted; kvbuf's "
                "backend has those of decode and of drafts that are verified")
        self.forward_metadata = KvbufMetadata(
            self._static.lengths[:count], self._static.table[:count], rows)
        if self._is_tree(forward_batch):
            self.forward_metadata.tree = self._static.tree[:count]

    def init_forward_metadata_in_graph(self, forward_batch):
        """Part of the graph: no host reads anything."""
        meta, count = self.forward_metadata, forward_batch.batch_size
        meta.lengths.copy_(forward_batch.seq_lens[:count]
                           + self._added(forward_batch))
        meta.table.copy_(self._pages(forward_batch.req_pool_indices[:count]))
        if meta.tree is not None:
            meta.tree.copy_(self._words(self._mask.buffer, count))

    def get_cuda_graph_seq_len_fill_value(self):
        return 1

    def _attend(self, q, k, v, layer, batch, save_kv_cache, sinks=None, **more):
        for name, value in more.items():
            if value is not None and value is not False:
                raise NotImplementedError(f"{name} is given; kvbuf's backend has no "
                                          "kernel for it")
        if layer.is_cross_attention:
            raise NotImplementedError("the layer has cross attention, which kvbuf's "
                                      "backend has not")
        if save_kv_cache and k is not None:
            scales = () if self.latent else (layer.k_scale, layer.v_scale)
            self.pool.set_kv_buffer(layer, KVWriteLoc.for_layer(batch, layer), k, v,
                                    *scales)
        if self.latent and layer.tp_k_head_num > 1:
            return self._attend_dense(q, k, v, layer, batch)
        meta = self.forward_metadata
        q = q.view(-1, layer.tp_q_head_num, layer.qk_head_dim)
        pages = [x.view(-1, self.page_size, *x.shape[1:])
                 for x in (self.pool.get_key_buffer(layer.layer_id),
                           self.pool.get_value_buffer(layer.layer_id))]
        if self.latent:
            pages[1] = pages[0][..., :self.latent]
        causal = layer.attn_type != AttentionType.ENCODER_ONLY
        # Both of its ends count, as kvbuf's do.
        window = layer.sliding_window_size
        window = -1 if window is None else window
        options = {"causal": causal, "softcap": layer.logit_cap or 0.0,
                   "sink": None if sinks is None else sinks.float()}
        sides = (window, -1 if causal else window)
        if self.latent and layer.k_scale is not None:
            raise NotImplementedError("k_scale of a layer of latent attention is given; "
                                      "kvbuf's backend has rows without")
        if not self.latent and pages[0].element_size() == 1:
            for name, scale in ("k_descale", layer.k_scale), ("v_descale",
                                                              layer.v_scale):
                if scale is not None:
                    options[name] = scale.detach().float().reshape(1)
        if meta.tree is not None:
            if window >= 0:
                raise NotImplementedError(
                    "a layer has a window, and drafts are a tree, whose places in the "
                    "sequence kvbuf does not know; expected speculative_eagle_topk 1")
            out = kvbuf.attention(
                q.view(-1, meta.rows, *q.shape[1:]), *pages, lengths=meta.lengths,
                page_table=meta.table, scale=layer.scaling, tree=meta.tree, **options)
        elif meta.rows:
            out = kvbuf.torch.flash_attn_with_kvcache(
                q.view(-1, meta.rows, *q.shape[1:]), *pages,
                cache_seqlens=meta.lengths, block_table=meta.table,
                softmax_scale=layer.scaling, window_size=sides, **options)
        else:
            out = kvbuf.attention(
                q, *pages, q_offsets=meta.offsets, lengths=meta.lengths,
                longest_query=meta.longest or q.shape[0],
                shortest_query=meta.shortest, page_table=meta.table,
                scale=layer.scaling, window=sides, **options)
        return out.reshape(-1, layer.tp_q_head_num * layer.v_head_dim)

    def _require_alone(self, q, k, layer, batch):
        """Refuses a prefill by keys and values of all heads whose requests have tokens
        besides these, or may have: SGLang gives such to backends that it knows."""
        rows = q.numel() // (layer.tp_q_head_num * layer.qk_head_dim)
        keys = k.numel() // (layer.tp_k_head_num * layer.qk_head_dim)
        cached = getattr(batch, "extend_prefix_lens_cpu", None)
        if cached is None:
            lengths, own = (getattr(batch, name, None)
                            for name in ("seq_lens_cpu", "extend_seq_lens_cpu"))
            if lengths is not None and own is not None:
                cached = [int(n) - m for n, m in zip(lengths, own)]
        if (cached is None or any(cached) or keys != rows
                or getattr(batch, "mha_return_lse", None)
                or getattr(batch, "attn_attend_prefix_cache", None)):
            said = ("is not known to the host" if cached is None
                    else f"is {[int(n) for n in cached]}")
            raise NotImplementedError(
                f"a prefill of latent attention has {rows} rows and keys and values of "
                f"all heads of {keys} tokens, and extend_prefix_lens_cpu {said}; kvbuf's "
                "backend takes these of requests without cached tokens alone, and rows "
                "of the pool otherwise")

    def _attend_dense(self, q, k, v, layer, batch):
        """A prefill of latent attention, of requests without cached tokens: keys and
        values of all heads, which are these tokens' alone."""
        meta = self.forward_metadata
        self._require_alone(q, k, layer, batch)
        out = kvbuf.attention(
            q.view(-1, layer.tp_q_head_num, layer.qk_head_dim),
            k.view(-1, layer.tp_k_head_num, layer.qk_head_dim),
            v.view(-1, layer.tp_v_head_num, layer.v_head_dim), causal=True,
            q_offsets=meta.offsets, k_offsets=meta.offsets,
            longest_query=meta.longest or q.shape[0], shortest_query=meta.shortest,
            scale=layer.scaling, softcap=layer.logit_cap or 0.0)
        return out.reshape(-1, layer.tp_q_head_num * layer.v_head_dim)

    def forward_decode(self, q, k, v, layer, forward_batch, save_kv_cache=True,
                       **more):
        return self._attend(q, k, v, layer, forward_batch, save_kv_cache, **more)

    def forward_extend(self, q, k, v, layer, forward_batch, save_kv_cache=True,
                       **more):
        return self._attend(q, k, v, layer, forward_batch, save_kv_cache, **more)
