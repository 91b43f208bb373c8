# REQUIRES: torch, vllm
# RUN: env KVBUF_LIB_DIR=%lib PYTHONPATH=%src/python:%src/integrations/vllm %python %s
# RUN: %if cuda %{ env KVBUF_LIB_DIR=%lib PYTHONPATH=%src/python:%src/integrations/vllm KVBUF_TEST_DEVICE=cuda %python %s %}
"""The backend of integrations/vllm on the emulator, and on a GPU where there is one
(KVBUF_TEST_DEVICE=cuda: longer sequences, larger heads, CUDA graphs), by vLLM's own
registry and with its own metadata, caches in several layouts; against float64. No
engine runs. Needs torch and vllm (whose code for the GPU is not used), and is skipped
without."""

import contextlib
import math
import os
import types
import unittest
from unittest import mock

import torch
import vllm.envs as envs
from vllm.model_executor.layers.quantization.utils.quant_utils import (
    kFp8StaticTensorSym)
from vllm.v1.attention.backend import (AttentionCGSupport, AttentionType,
                                       CommonAttentionMetadata)
from vllm.v1.attention.backends.registry import AttentionBackendEnum
from vllm.v1.kv_cache_interface import FullAttentionSpec

import kvbuf_vllm

DEVICE = os.environ.get("KVBUF_TEST_DEVICE", "cpu")
ON_GPU = DEVICE == "cuda"
torch.set_default_device(DEVICE)
HEADS, KV_HEADS, SIZE, BLOCK = (4, 1, 128, 16) if ON_GPU else (4, 2, 32, 16)
#: What a GPU has more of: tokens of a sequence that are cached.
LONGER = 40 if ON_GPU else 1
BLOCKS = 16 * LONGER
CONFIG = types.SimpleNamespace(
    speculative_config=None, parallel_config=types.SimpleNamespace(
        decode_context_parallel_size=1))
LAYER = types.SimpleNamespace(_q_scale=torch.tensor(0.5),
                              _k_scale=torch.tensor(0.5), _v_scale=torch.tensor(0.25))


def reference(q, k, v, causal=True, window=-1, softcap=0.0, sinks=None,
              slopes=None, scale=SIZE ** -0.5):
    """One sequence in float64: q [rows, heads, size], k and v [keys, ...]."""
    q, k, v = (x.double().transpose(0, 1) for x in (q, k, v))
    k, v = (x.repeat_interleave(HEADS // KV_HEADS, 0) for x in (k, v))
    s = q @ k.transpose(1, 2) * scale
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    rows, keys = s.shape[1:]
    at = torch.arange(rows)[:, None] + keys - rows
    j = torch.arange(keys)
    if slopes is not None:
        s = s - torch.tensor(slopes, dtype=torch.float64)[:, None, None] * (
            at - j).abs()
    seen = torch.ones(rows, keys, dtype=torch.bool)
    if causal:
        seen &= j <= at
    if window >= 0:
        seen &= (j >= at - window) & (j <= at + window)
    s = s.masked_fill(~seen, -math.inf)
    if sinks is not None:
        s = torch.cat([s, sinks.double()[:, None, None].expand(-1, rows, 1)], -1)
    return (s.softmax(-1)[..., :keys] @ v).transpose(0, 1)


def cache(order, dtype=torch.bfloat16):
    """[blocks, heads, block size, 2 head size] that lies as `order` says."""
    dims = dict(B=BLOCKS, H=KV_HEADS, N=BLOCK, C=2 * SIZE)
    x = torch.zeros([dims[n] for n in order], dtype=dtype)
    return x.permute([order.index(n) for n in "BHNC"])


class Backend(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kvbuf_vllm.register()
        cls.backend = AttentionBackendEnum.CUSTOM.get_class()

    def setUp(self):
        torch.manual_seed(0)

    def run_batch(self, rows, cached, order="BHNC", padding=0, kind="auto",
                  causal=True, attn_type=AttentionType.DECODER, eight=False,
                  output_scale=None, **options):
        """Fills a cache by do_kv_cache_update, then compares a step of `rows` new
        tokens a sequence. `padding`: requests and tokens that a graph would have
        besides."""
        backend = self.backend
        batch = len(rows)
        cached = [n * LONGER for n in cached]
        lengths = [n + m for n, m in zip(rows, cached)]
        normal = [torch.randn(sum(lengths), h, SIZE).bfloat16()
                  for h in (KV_HEADS, KV_HEADS)]
        q = torch.randn(sum(rows) + padding, HEADS, SIZE).bfloat16()
        table, free = torch.zeros(
            batch + padding, 4 * LONGER, dtype=torch.int32), torch.randperm(
                BLOCKS).tolist()
        slots = []
        for b, n in enumerate(lengths):
            own = [free.pop() for _ in range(-(-n // BLOCK))]
            table[b, :len(own)] = torch.tensor(own)
            slots += [own[i // BLOCK] * BLOCK + i % BLOCK for i in range(n)]
        impl = backend.get_impl_cls()(
            HEADS, SIZE, SIZE ** -0.5, KV_HEADS, options.get("slopes"),
            options.get("window"), kind, options.get("softcap"), attn_type, None,
            **({"sinks": options["sinks"]} if "sinks" in options else {}))
        stored = cache(order, torch.uint8 if kind != "auto" else torch.bfloat16)
        # One that is not stored, and rows after the last that are no token's.
        k, v = (torch.cat([x, torch.full_like(x[:2], math.nan)]) for x in normal)
        slots = torch.tensor(slots + [-1])
        impl.do_kv_cache_update(LAYER, k, v, stored, slots)
        starts = torch.tensor([0] + rows + [0] * padding).cumsum(0).int()
        common = CommonAttentionMetadata(
            query_start_loc=starts, query_start_loc_cpu=starts,
            seq_lens=torch.tensor(lengths + [0] * padding, dtype=torch.int32),
            num_reqs=batch + padding, num_actual_tokens=len(q),
            max_query_len=max(rows), max_seq_len=max(lengths),
            block_table_tensor=table, slot_mapping=slots, causal=causal)
        spec = FullAttentionSpec(block_size=BLOCK, num_kv_heads=KV_HEADS,
                                 head_size=SIZE, dtype=torch.bfloat16)
        builder = backend.get_builder_cls()(spec, ["layer"], CONFIG,
                                            torch.device(DEVICE))
        meta = builder.build(0, common)
        out = torch.full((len(q), HEADS, SIZE), 7.0).bfloat16()
        self.assertEqual(impl.fused_output_quant_supported(kFp8StaticTensorSym),
                         eight or (ON_GPU and kind == "fp8"))
        limits = {"atol": 2e-2, "rtol": 0}
        if eight:
            q = (q / LAYER._q_scale).to(torch.float8_e4m3fn)
            # Weights are rounded to four bits.
            limits["atol"] = 4e-2
        if output_scale is not None:
            out = out.to(torch.float8_e4m3fn)
            limits["rtol"] = 1 / 16
        result = impl.forward(LAYER, q, None, None, stored, meta, out, output_scale)
        self.assertIs(result, out)
        if eight:
            q = q.double() * LAYER._q_scale
        out = out.double() * (1 if output_scale is None else output_scale)
        window = options.pop("window", None)
        window = -1 if window is None else window - 1
        at, first, seen = 0, 0, []
        for n, length in zip(rows, lengths):
            k, v = (x[at:at + length] for x in normal)
            if kind != "auto":
                to = {"fp8": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}
                k, v = ((x.float() / s).to(to[kind]).double() * s
                        for x, s in ((k, LAYER._k_scale), (v, LAYER._v_scale)))
            own = causal if isinstance(causal, bool) else bool(causal[len(seen)])
            seen.append(own)
            want = reference(q[first:first + n], k, v, own, window, **options)
            torch.testing.assert_close(out[first:first + n], want, **limits)
            at, first = at + length, first + n
        return meta

    def test_decode(self):
        """A token each, in caches of several layouts, and requests of a graph that
        are none."""
        for order in "BHNC", "BNHC", "HBNC":
            with self.subTest(order):
                meta = self.run_batch([1, 1, 1], [20, 0, 37], order)
                self.assertEqual(meta.rows, 1)
        self.run_batch([1, 1], [20, 3], padding=2)
        self.assertEqual(self.run_batch([3, 3], [20, 3]).rows, 3)

    def test_mixed(self):
        """Prefills, a chunk of one and decodes in a batch."""
        meta = self.run_batch([1, 19, 8], [33, 0, 12])
        self.assertEqual(meta.rows, 0)

    def test_causal_flags(self):
        """A flag a sequence, on the device: steps of as many rows for all, and of any."""
        for rows in [3, 3, 3], [1, 19, 8]:
            for window in None, 6:
                with self.subTest(rows=rows, window=window):
                    self.run_batch(rows, [33, 0, 12], window=window,
                                   causal=torch.tensor([False, True, False]))

    def test_options(self):
        sinks = torch.randn(HEADS).bfloat16()
        slopes = [0.5, 0.25, 0.125, 0.0625]
        for rows in [1, 1], [1, 9]:
            for options in (dict(sinks=sinks, softcap=0.5, window=6),
                            dict(slopes=slopes), dict(causal=False, window=6)):
                with self.subTest(rows=rows, **options):
                    self.run_batch(rows, [20, 7], **options)

    def test_float8(self):
        for kind, rows in ("fp8", [1, 1]), ("fp8_e5m2", [1, 9]):
            with self.subTest(kind):
                self.run_batch(rows, [20, 7], kind=kind, order="BNHC")

    def test_queries_of_float8(self):
        """vLLM quantizes queries where it is told to; results of 16 bits, and of 8 as it
        fuses what comes after."""
        chip = {} if ON_GPU else {"KVBUF_EMULATE": "sm_90a"}
        with mock.patch.dict(os.environ, chip):
            for rows in [1, 1], [1, 9]:
                for scale in None, torch.tensor([0.0625]):
                    with self.subTest(rows=rows, scale=scale):
                        self.run_batch(rows, [20, 7], kind="fp8", eight=True,
                                       output_scale=scale)

    def test_batch_invariant(self):
        """A sequence's bits do not depend on the others in the batch."""
        results = []
        for rows in [1], [1, 9]:
            with mock.patch.dict(vars(envs), VLLM_BATCH_INVARIANT=True):
                self.setUp()
                impl = self.backend.get_impl_cls()(HEADS, SIZE, SIZE ** -0.5,
                                                   KV_HEADS)
                stored = cache("BHNC").copy_(torch.randn(BLOCKS, KV_HEADS, BLOCK,
                                                         2 * SIZE))
                q = torch.randn(10, HEADS, SIZE).bfloat16()[:sum(rows)]
                starts = torch.tensor([0] + rows).cumsum(0).int()
                lengths = torch.tensor([40, 25][:len(rows)], dtype=torch.int32)
                table = torch.arange(8, dtype=torch.int32).view(2, 4)[:len(rows)]
                meta = self.backend.get_builder_cls()(
                    None, [], CONFIG, torch.device(DEVICE)).build(
                        0, CommonAttentionMetadata(
                            starts, starts, lengths, len(rows), sum(rows),
                            max(rows), 40, table, None))
                results.append(impl.forward(LAYER, q, None, None, stored, meta,
                                            torch.empty_like(q))[0])
        self.assertTrue(torch.equal(*results))

    @unittest.skipUnless(ON_GPU, "graphs are CUDA's")
    def test_graph(self):
        """A step of a graph, new tokens' storage and attention, replayed as vLLM does:
        other lengths, pages, slots and tokens in memory that stays; fewer requests
        than it was captured for."""
        impl = self.backend.get_impl_cls()(HEADS, SIZE, SIZE ** -0.5, KV_HEADS)
        builder = self.backend.get_builder_cls()(None, ["layer"], CONFIG,
                                                 torch.device(DEVICE))
        for rows in 1, 3:
            batch, pages = 4, 4 * LONGER
            stored = cache("BHNC")
            stored.copy_(torch.randn_like(stored))
            q = torch.randn(batch * rows, HEADS, SIZE).bfloat16()
            k, v = torch.randn(2, batch * rows, KV_HEADS, SIZE).bfloat16()
            out = torch.empty_like(q)
            slots = torch.full((batch * rows,), -1)
            lengths = torch.full((batch,), rows, dtype=torch.int32)
            table = torch.zeros(batch, pages, dtype=torch.int32)
            starts = (torch.arange(batch + 1) * rows).int()
            meta = builder.build_for_cudagraph_capture(CommonAttentionMetadata(
                query_start_loc=starts, query_start_loc_cpu=starts.cpu(),
                seq_lens=lengths, num_reqs=batch, num_actual_tokens=batch * rows,
                max_query_len=rows, max_seq_len=pages * BLOCK,
                block_table_tensor=table, slot_mapping=slots, causal=True))

            def step():
                impl.do_kv_cache_update(LAYER, k, v, stored, slots)
                impl.forward(LAYER, q, k, v, stored, meta, out)

            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                step()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
            for count in batch, 2:
                own = [rows + 7, 5 * LONGER, 40 * LONGER, 61 * LONGER][:count]
                lengths.zero_()
                lengths[:count] = torch.tensor(own)
                # Each sequence's pages are its own.
                table.copy_(torch.stack([torch.randperm(pages) * batch + b
                                         for b in range(batch)]))
                slots.fill_(-1)
                for b, n in enumerate(own):
                    at = torch.arange(n - rows, n)
                    slots[b * rows:(b + 1) * rows] = (
                        table[b, at // BLOCK] * BLOCK + at % BLOCK)
                q.copy_(torch.randn_like(q))
                k.copy_(torch.randn_like(k))
                graph.replay()
                both = stored[table.long()].transpose(2, 3).flatten(1, 2)
                for b, n in enumerate(own):
                    part = slice(b * rows, (b + 1) * rows)
                    kept = both[b, :n]
                    self.assertTrue(torch.equal(kept[n - rows:, :, :SIZE], k[part]))
                    want = reference(q[part], kept[..., :SIZE], kept[..., SIZE:])
                    torch.testing.assert_close(out[part].double(), want, atol=2e-2,
                                               rtol=0)

    def test_encoder(self):
        rows = [7, 18]
        q, k, v = (torch.randn(25, h, SIZE).bfloat16()
                   for h in (HEADS, KV_HEADS, KV_HEADS))
        impl = self.backend.get_impl_cls()(HEADS, SIZE, SIZE ** -0.5, KV_HEADS,
                                           attn_type=AttentionType.ENCODER_ONLY)
        starts = torch.tensor([0, 7, 25], dtype=torch.int32)
        meta = self.backend.get_builder_cls()(
            None, [], CONFIG, torch.device(DEVICE)).build(
                0, CommonAttentionMetadata(
                    starts, starts, torch.tensor(rows), 2, 25, 18, 18, None, None,
                    causal=False))
        out = impl.forward(LAYER, q, k, v, None, meta, torch.empty_like(q))
        for part in slice(0, 7), slice(7, 25):
            torch.testing.assert_close(
                out[part].double(), reference(q[part], k[part], v[part], False),
                atol=2e-2, rtol=0)

    def test_asked(self):
        """What vLLM asks, and what is refused by name."""
        backend = self.backend
        capability = types.SimpleNamespace(major=9, minor=0)
        options = dict(
            head_size=128, dtype=torch.bfloat16, kv_cache_dtype="fp8",
            block_size=16, use_mla=False, has_sink=True, use_sparse=False,
            use_mm_prefix=False, use_per_head_quant_scales=False,
            device_capability=capability, attn_type=AttentionType.DECODER,
            has_sliding_window=True, use_non_causal=True, use_batch_invariant=True)
        self.assertEqual(backend.validate_configuration(**options), [])
        self.assertEqual(backend.validate_configuration(
            **dict(options, use_mla=True, block_size=8)),
            ["block_size not supported", "MLA not supported"])
        builder = backend.get_builder_cls()
        self.assertEqual(builder.get_cudagraph_support(CONFIG, None),
                         AttentionCGSupport.UNIFORM_BATCH)
        impl = backend.get_impl_cls()(HEADS, SIZE, 1.0)
        q = torch.zeros(1, HEADS, SIZE)
        self.assertEqual(impl.forward(LAYER, q, q, q, None, None, q + 1).sum(), 0)
        self.assertFalse(impl.fused_output_quant_supported(kFp8StaticTensorSym))
        for name, words in (
                ("output_scale", "output_scale is given with queries of torch.float32; "
                 "kvbuf writes 8-bit floats where queries are, too"),
                ("output_block_scale", "output_block_scale is given; kvbuf's 8-bit "
                 "results have one scale")):
            with self.assertRaisesRegex(NotImplementedError, words):
                impl.forward(LAYER, q, q, q, None, None, q, **{name: torch.ones(1)})
        kvbuf_vllm.register("KVBUF")
        self.assertIs(AttentionBackendEnum["KVBUF"].get_class(), backend)


class Latent(unittest.TestCase):
    """Steps of few rows over latent rows, by vLLM's own classes."""

    @classmethod
    def setUpClass(cls):
        try:
            from vllm.model_executor.layers.attention import mla_attention
        except ImportError as error:  # vLLM's layers need more than its backends do
            raise unittest.SkipTest(str(error))
        cls.layers = mla_attention

    def impl(self, kind, heads=4):
        with mock.patch.object(self.layers, "get_current_vllm_config", lambda: CONFIG):
            return AttentionBackendEnum["KVBUF_MLA"].get_class().get_impl_cls()(
                heads, 576, 192 ** -0.5, 1, None, None, kind, None,
                AttentionType.DECODER, None, q_lora_rank=None, kv_lora_rank=512,
                qk_nope_head_dim=128, qk_rope_head_dim=64, qk_head_dim=192,
                v_head_dim=128, kv_b_proj=None)

    def test_decode(self):
        kvbuf_vllm.register()
        backend = AttentionBackendEnum["KVBUF_MLA"].get_class()
        self.assertTrue(backend.is_mla())
        self.assertEqual(backend.get_name(), "KVBUF_MLA")
        torch.manual_seed(0)
        for kind, each in ("auto", 1), ("auto", 2), ("fp8", 1):
            with self.subTest(kind, each=each):
                impl, heads = self.impl(kind), 4
                lengths = torch.tensor([20 * LONGER, each], dtype=torch.int32)
                table = torch.randperm(4 * LONGER).int().view(2, -1)
                cache = torch.randn(4 * LONGER, BLOCK, 576).bfloat16()
                layer = types.SimpleNamespace(_k_scale=torch.tensor(0.5))
                kept = cache.double()
                if kind == "fp8":
                    cache = cache.to(torch.float8_e4m3fn)
                    kept = cache.double() * 0.5
                    cache = cache.view(torch.uint8)
                q = torch.randn(2 * each, heads, 576).bfloat16()
                step = self.layers.MLACommonDecodeMetadata(
                    block_table=table, seq_lens=lengths, dcp_tot_seq_lens=None)
                meta = types.SimpleNamespace(causal=True, decode=step)
                parts = q[..., :512], q[..., 512:]
                out, lse = impl.forward_mqa(parts, cache, meta, layer)
                for b, n in enumerate(lengths.tolist()):
                    rows = kept[table[b].long()].flatten(0, 1)[:n]
                    own = q[b * each:(b + 1) * each].double()
                    s = own.transpose(0, 1) @ rows.T * 192 ** -0.5
                    at = torch.arange(each)[:, None] + n - each
                    s = s.masked_fill(torch.arange(n) > at, -math.inf)
                    part = slice(b * each, (b + 1) * each)
                    torch.testing.assert_close(
                        out[part].double(),
                        (s.softmax(-1) @ rows[:, :512]).transpose(0, 1), atol=2e-2,
                        rtol=0)
                    torch.testing.assert_close(lse[part].double(),
                                               s.logsumexp(-1).T, atol=1e-3, rtol=0)

    def test_sparse(self):
        """Lists of keys as an indexer leaves them, in a cache whose blocks are apart;
        rows of 16 bits, and packed ones."""
        try:
            from vllm.model_executor.layers.attention import sparse_mla_attention as of
        except ImportError as error:
            self.skipTest(str(error))
        kvbuf_vllm.register()
        backend = AttentionBackendEnum["KVBUF_MLA_SPARSE"].get_class()
        self.assertTrue(backend.is_mla() and backend.is_sparse())
        torch.manual_seed(0)
        heads, most, blocks = 4, 128, 24 * LONGER
        lengths = [100, 7, 60]
        owners = torch.tensor([0, 0, 1, 2], dtype=torch.int32)
        table = torch.randperm(blocks).int().view(3, -1)
        lists = torch.full((6, most), -1, dtype=torch.int32)
        for row, owner in enumerate(owners.tolist()):
            keys = torch.randperm(lengths[owner])[:most - 40 * row].int()
            # -1 may stand between keys.
            lists[row, torch.randperm(most)[:len(keys)]] = keys
        lists[3] = -1  # sees none
        q = torch.randn(4, heads, 576).bfloat16()
        config = types.SimpleNamespace(
            parallel_config=CONFIG.parallel_config,
            attention_config=types.SimpleNamespace(hisparse_config=None))
        for kind in "auto", "fp8_ds_mla":
            cache = torch.randn(blocks, 2, BLOCK, 576).bfloat16()[:, 0]
            kept = cache.double()
            if kind == "fp8_ds_mla":
                cache, kept = self.packed(cache)
            with mock.patch.object(of, "get_current_vllm_config", lambda: config), \
                    mock.patch.object(of, "get_tensor_model_parallel_world_size",
                                      lambda: 1):
                impl = backend.get_impl_cls()(
                    heads, 576, 192 ** -0.5, 1, None, None, kind, None,
                    AttentionType.DECODER, None, q_lora_rank=None, kv_lora_rank=512,
                    qk_nope_head_dim=128, qk_rope_head_dim=64, qk_head_dim=192,
                    v_head_dim=128, kv_b_proj=None)
            impl.topk_indices_buffer, impl.dcp_world_size = lists, 1
            meta = types.SimpleNamespace(num_decode_tokens=4, block_size=BLOCK,
                                         req_id_per_token=owners, block_table=table)
            # vLLM's kernel for a GPU makes rows of the lists.
            by = {} if ON_GPU else {"triton_convert_req_index_to_global_index": _rows_of}
            with mock.patch.multiple(of, **by) if by else contextlib.nullcontext():
                out, lse = impl.forward_mqa((q[..., :512], q[..., 512:]), cache, meta,
                                            LAYER)
            self.assertEqual(out.shape, (4, heads, 512))
            for row, owner in enumerate(owners.tolist()):
                keys = lists[row][lists[row] >= 0].long()
                rows = kept[table[owner].long()].flatten(0, 1)[keys]
                s = q[row].double() @ rows.T * 192 ** -0.5
                want = s.softmax(-1) @ rows[:, :512] if len(keys) else torch.zeros(
                    heads, 512, dtype=torch.float64)
                torch.testing.assert_close(out[row].double(), want, atol=2e-2, rtol=0)
                torch.testing.assert_close(lse[row].double(), s.logsumexp(-1),
                                           atol=1e-3, rtol=0)

    def packed(self, cache):
        """Rows of 656 bytes, blocks apart, and what they stand for."""
        blocks = cache.shape[0]
        scale = torch.full((blocks, BLOCK, 4), 0.5)
        latent = (cache[..., :512].float() * 2).to(torch.float8_e4m3fn)
        parts = (latent.view(torch.uint8), scale.view(torch.uint8),
                 cache[..., 512:].contiguous().view(torch.uint8))
        rows = torch.zeros(blocks, 2, BLOCK, 656, dtype=torch.uint8)
        rows[:, 0] = torch.cat(parts, -1)
        kept = torch.cat([latent.double() * 0.5, cache[..., 512:].double()], -1)
        return rows[:, 0], kept


def _rows_of(owners, table, lists, *, BLOCK_SIZE, BLOCK_STRIDE_ROWS, NUM_TOPK_TOKENS,
             return_valid_counts):
    """What vLLM's kernel of that name computes: rows of the cache, keys first."""
    assert lists.shape[1] == NUM_TOPK_TOKENS and return_valid_counts
    rows, counts = torch.full_like(lists, -1), torch.zeros(len(lists), dtype=torch.int32)
    for i, keys in enumerate(lists.long()):
        keys = keys[keys >= 0]
        rows[i, :len(keys)] = (table[owners[i], keys // BLOCK_SIZE] * BLOCK_STRIDE_ROWS
                               + keys % BLOCK_SIZE)
        counts[i] = len(keys)
    return rows, counts


if __name__ == "__main__":
    unittest.main()
