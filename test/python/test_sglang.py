# REQUIRES: torch, sglang
# RUN: env KVBUF_LIB_DIR=%lib PYTHONPATH=%src/python:%src/integrations/sglang %python %s
# RUN: %if cuda %{ env KVBUF_LIB_DIR=%lib PYTHONPATH=%src/python:%src/integrations/sglang KVBUF_TEST_DEVICE=cuda %python %s %}
"""The backend of integrations/sglang on the emulator, and on a GPU where there is one
(KVBUF_TEST_DEVICE=cuda: longer sequences, larger heads, CUDA graphs), by SGLang's own
registry, on its own pools, layers and modes; against float64. No engine runs. Needs
torch and sglang (whose code for the GPU writes the pool there), and is skipped
without."""

import math
import os
import types
import unittest

import torch
from sglang.srt.arg_groups import choices
from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS
from sglang.srt.layers.radix_attention import AttentionType, RadixAttention
from sglang.srt.mem_cache.memory_pool import (MHATokenToKVPool, MLATokenToKVPool,
                                              ReqToTokenPool)
from sglang.srt.model_executor.forward_batch_info import ForwardMode
from sglang.srt.runtime_context import get_parallel
from sglang.srt.speculative.eagle_utils import TreeMaskMode

import kvbuf_sglang

DEVICE = os.environ.get("KVBUF_TEST_DEVICE", "cpu")
ON_GPU = DEVICE == "cuda"
torch.set_default_device(DEVICE)
HEADS, KV_HEADS, SIZE = (4, 1, 128) if ON_GPU else (4, 2, 32)
#: What a GPU has more of: tokens of a request that are cached.
LONGER = 40 if ON_GPU else 1
PAGE, CONTEXT, TOKENS, DRAFTS = 16, 64 * LONGER, 192 * LONGER, 3


def reference(q, k, v, causal=True, window=-1, softcap=0.0, sinks=None, tree=None):
    """One sequence in float64: q [rows, heads, size], k and v [keys, ...]. `tree`
    says which of the last keys each row sees."""
    q, k, v = (x.double().transpose(0, 1) for x in (q, k, v))
    k, v = (x.repeat_interleave(HEADS // KV_HEADS, 0) for x in (k, v))
    s = q @ k.transpose(1, 2) * SIZE ** -0.5
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    rows, keys = s.shape[1:]
    at, j = torch.arange(rows)[:, None] + keys - rows, torch.arange(keys)
    seen = torch.ones(rows, keys, dtype=torch.bool)
    if causal:
        seen &= j <= at
    if window >= 0:
        seen &= (j >= at - window) & (j <= at + window)
    if tree is not None:
        seen[:, keys - rows:] = tree
    s = s.masked_fill(~seen, -math.inf)
    if sinks is not None:
        s = torch.cat([s, sinks.double()[:, None, None].expand(-1, rows, 1)], -1)
    return (s.softmax(-1)[..., :keys] @ v).transpose(0, 1)


class Backend(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kvbuf_sglang.register()
        kvbuf_sglang.register()

    def setUp(self):
        torch.manual_seed(0)

    def runner(self, kind=torch.bfloat16, page=PAGE, topk=1, drafts=DRAFTS):
        pool = MHATokenToKVPool(
            size=TOKENS, page_size=page, dtype=kind, head_num=KV_HEADS, head_dim=SIZE,
            layer_num=1, device=DEVICE, enable_memory_saver=False)
        server = types.SimpleNamespace(speculative_num_draft_tokens=drafts,
                                       speculative_eagle_topk=topk)
        return types.SimpleNamespace(
            use_mla_backend=False, token_to_kv_pool=pool, page_size=page,
            req_to_token_pool=ReqToTokenPool(8, CONTEXT, DEVICE, False), device=DEVICE,
            kv_cache_dtype=kind, server_args=server)

    def run_batch(self, mode, rows, cached, kind=torch.bfloat16, page=PAGE,
                  graph=False, sinks=None, trees=None, **options):
        """Stores what is cached, then compares a step of `rows` new tokens a
        request; with `graph` by the hooks that graphs have, padded."""
        runner = self.runner(kind, page, *(() if trees is None else (2, rows[0])))
        backend = ATTENTION_BACKENDS["kvbuf"](runner)
        layer = RadixAttention(
            HEADS, SIZE, SIZE ** -0.5, KV_HEADS, 0,
            logit_cap=options.get("softcap", 0.0),
            sliding_window_size=options.get("window", -1),
            attn_type=(AttentionType.DECODER if options.get("causal", True)
                       else AttentionType.ENCODER_ONLY))
        if kind != torch.bfloat16:
            layer.k_scale, layer.v_scale = torch.tensor(0.5), torch.tensor(0.25)
        cached = [n * LONGER for n in cached]
        lengths = [a + b for a, b in zip(rows, cached)]
        k, v = (torch.randn(sum(lengths), KV_HEADS, SIZE).bfloat16() for _ in "kv")
        q = torch.randn(sum(rows), HEADS, SIZE).bfloat16()
        free = (torch.randperm(TOKENS // page) + 1).tolist()
        table = runner.req_to_token_pool.req_to_token
        requests = torch.tensor([5, 2, 7][:len(rows)])
        starts = torch.tensor([0] + lengths).cumsum(0).tolist()
        new = []
        for r, n, own, first in zip(requests, lengths, rows, starts):
            for at in range(0, n, page):
                table[r, at:at + page] = free.pop() * page + torch.arange(page)
            old = slice(first, first + n - own)
            runner.token_to_kv_pool.set_kv_buffer(
                layer, table[r, :n - own].long(), k[old].clone(), v[old].clone(),
                layer.k_scale, layer.v_scale)
            new.append((table[r, n - own:n].long(), slice(first + n - own, first + n)))
        verified = mode == ForwardMode.TARGET_VERIFY
        batch = types.SimpleNamespace(
            forward_mode=mode, batch_size=len(rows), req_pool_indices=requests,
            seq_lens=torch.tensor(cached if verified else lengths),
            seq_lens_cpu=None if graph else torch.tensor(
                cached if verified else lengths, device="cpu"),
            extend_seq_lens=torch.tensor(rows), extend_seq_lens_cpu=rows,
            out_cache_loc=torch.cat([s for s, _ in new]), encoder_lens=None,
            out_cache_loc_is_physical=False,
            spec_info=types.SimpleNamespace(custom_mask=None if trees is None
                                            else trees.flatten()))
        if graph:
            backend.init_cuda_graph_state(4, 4 * DRAFTS)
            backend.init_forward_metadata_out_graph(batch, in_capture=True)
            if trees is not None:
                # As the draft stage does.
                self.assertTrue(backend.verify_mask.fits(len(rows)))
                self.assertEqual(backend.verify_mask.mode, TreeMaskMode.QLEN_ONLY)
                backend.verify_mask.buffer[:trees.numel()] = trees.flatten()
            if not ON_GPU:
                backend.init_forward_metadata_in_graph(batch)
        else:
            backend.init_forward_metadata(batch)
        k_new, v_new = (torch.cat([x[at] for _, at in new]) for x in (k, v))
        more = {} if sinks is None else {"sinks": sinks}

        def step():
            if graph and ON_GPU:
                backend.init_forward_metadata_in_graph(batch)
            return backend.forward(q.flatten(1), k_new, v_new, layer, batch, **more)

        out = step()
        if graph and ON_GPU:
            out = self.replayed(step, batch, table)
        self.assertEqual(out.shape, (sum(rows), HEADS * SIZE))
        out, at = out.view(-1, HEADS, SIZE), 0
        if kind != torch.bfloat16:
            k, v = ((x.float() / s).to(kind).double() * s
                    for x, s in ((k, layer.k_scale), (v, layer.v_scale)))
        for i, (n, own, first) in enumerate(zip(lengths, rows, starts)):
            want = reference(q[at:at + own], k[first:first + n], v[first:first + n],
                             sinks=sinks, tree=None if trees is None else trees[i],
                             **options)
            torch.testing.assert_close(out[at:at + own].double(), want, atol=2e-2,
                                       rtol=0)
            at += own

    def replayed(self, step, batch, table):
        """What a CUDA graph of a step gives that was captured with shorter requests
        in other pages."""
        kept = batch.seq_lens.clone(), table.clone()
        batch.seq_lens.fill_(1)
        table.copy_(table.roll(3 * PAGE, 1))
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            out = step()
        for x, y in zip((batch.seq_lens, table), kept):
            x.copy_(y)
        graph.replay()
        return out

    def test_decode(self):
        for page in PAGE, 1:
            self.run_batch(ForwardMode.DECODE, [1, 1, 1], [20, 3, 37], page=page)
        self.run_batch(ForwardMode.DECODE, [1, 1], [20, 3], graph=True)

    def test_extend(self):
        """Prefills, and chunks after what a request has; decodes among them."""
        self.run_batch(ForwardMode.EXTEND, [7, 19, 8], [0, 0, 12])
        self.run_batch(ForwardMode.MIXED, [1, 9], [33, 4])

    def test_verify(self):
        """Drafts in a chain, which seq_lens does not count."""
        for graph in False, True:
            self.run_batch(ForwardMode.TARGET_VERIFY, [DRAFTS] * 2, [20, 3],
                           graph=graph)

    def test_trees(self):
        """Drafts in trees, of as many words as SGLang's kernel writes booleans: a draft
        sees those on its way from the root."""
        parents = [[-1, 0, 0, 1, 2], [-1, 0, 1, 1, 0]]
        trees = torch.zeros(2, 5, 5, dtype=torch.bool)
        for tree, above in zip(trees, parents):
            for i in range(5):
                seen = i
                while seen >= 0:
                    tree[i, seen] = True
                    seen = above[seen]
        for graph in False, True:
            self.run_batch(ForwardMode.TARGET_VERIFY, [5] * 2, [20, 3], graph=graph,
                           trees=trees)

    def test_latent(self):
        """Rows of latent attention: decode, drafts, and chunks after what is cached, in
        the absorbed form; a prefill of keys and values of all heads."""
        for mode, rows, cached in (
                (ForwardMode.DECODE, [1, 1], [20, 3]),
                (ForwardMode.TARGET_VERIFY, [DRAFTS] * 2, [20, 3]),
                (ForwardMode.EXTEND, [2, 9], [7, 0])):
            with self.subTest(mode):
                self.run_latent(mode, rows, [n * LONGER for n in cached])
        runner = self.latent_runner()
        backend = ATTENTION_BACKENDS["kvbuf"](runner)
        layer = RadixAttention(HEADS, 192, 192 ** -0.5, HEADS, 0, v_head_dim=128)
        rows = [7, 12]
        q, k = torch.randn(2, sum(rows), HEADS, 192).bfloat16()
        v = torch.randn(sum(rows), HEADS, 128).bfloat16()
        batch = self.latent_batch(ForwardMode.EXTEND, rows, rows, torch.tensor([5, 2]))
        backend.init_forward_metadata(batch)
        out = backend.forward(q.flatten(1), k, v, layer, batch, save_kv_cache=False)
        for part in slice(0, 7), slice(7, 19):
            want = torch.nn.functional.scaled_dot_product_attention(
                *(x[part].double().transpose(0, 1) for x in (q, k, v)), is_causal=True)
            torch.testing.assert_close(
                out.view(-1, HEADS, 128)[part].double(), want.transpose(0, 1),
                atol=2e-2, rtol=0)

        # Requests with tokens in the pool, by any of the words that SGLang has for them.
        chunk = {"extend_prefix_lens_cpu": [0, 0]}
        for said, counts, more in (
                (r"is \[0, 5\]", [7, 17], {}),
                (r"is \[5, 0\]", rows, {"extend_prefix_lens_cpu": [5, 0]}),
                ("is not known to the host", rows, {"seq_lens_cpu": None}),
                (r"is \[0, 0\]", rows, {**chunk, "mha_return_lse": True}),
                (r"is \[0, 0\]", rows, {**chunk, "attn_attend_prefix_cache": True})):
            batch = self.latent_batch(ForwardMode.EXTEND, rows, counts,
                                      torch.tensor([5, 2]))
            vars(batch).update(more)
            backend.init_forward_metadata(batch)
            with self.assertRaisesRegex(
                    NotImplementedError, "has 19 rows and keys and values of all heads "
                    "of 19 tokens, and extend_prefix_lens_cpu " + said):
                backend.forward(q.flatten(1), k, v, layer, batch, save_kv_cache=False)
        batch = self.latent_batch(ForwardMode.EXTEND, rows, rows, torch.tensor([5, 2]))
        with self.assertRaisesRegex(NotImplementedError, "heads of 38 tokens"):
            backend.forward(q.flatten(1), torch.cat([k, k]), torch.cat([v, v]), layer,
                            batch, save_kv_cache=False)

    def latent_runner(self):
        runner = self.runner()
        runner.use_mla_backend = True
        runner.token_to_kv_pool = MLATokenToKVPool(
            size=TOKENS, page_size=PAGE, dtype=torch.bfloat16, kv_lora_rank=512,
            qk_rope_head_dim=64, layer_num=1, device=DEVICE, enable_memory_saver=False)
        return runner

    def latent_batch(self, mode, rows, counts, requests, slots=None):
        return types.SimpleNamespace(
            forward_mode=mode, batch_size=len(rows), req_pool_indices=requests,
            seq_lens=torch.tensor(counts),
            seq_lens_cpu=torch.tensor(counts, device="cpu"),
            extend_seq_lens=torch.tensor(rows), extend_seq_lens_cpu=rows,
            out_cache_loc=slots, encoder_lens=None, out_cache_loc_is_physical=False,
            spec_info=None)

    def run_latent(self, mode, rows, cached):
        runner = self.latent_runner()
        backend = ATTENTION_BACKENDS["kvbuf"](runner)
        layer = RadixAttention(HEADS, 576, 192 ** -0.5, 1, 0, v_head_dim=512)
        requests = torch.tensor([5, 2])
        table = runner.req_to_token_pool.req_to_token
        lengths = [a + b for a, b in zip(rows, cached)]
        free, kept, slots = (torch.randperm(TOKENS // PAGE) + 1).tolist(), [], []
        pool = runner.token_to_kv_pool.get_key_buffer(0)
        for r, n, own in zip(requests, lengths, rows):
            for at in range(0, n, PAGE):
                table[r, at:at + PAGE] = free.pop() * PAGE + torch.arange(PAGE)
            kept.append(torch.randn(n, 1, 576).bfloat16())
            pool[table[r, :n - own].long()] = kept[-1][:n - own]
            slots.append(table[r, n - own:n].long())
        verified = mode == ForwardMode.TARGET_VERIFY
        batch = self.latent_batch(mode, rows, cached if verified else lengths, requests,
                                  torch.cat(slots))
        backend.init_forward_metadata(batch)
        q = torch.randn(sum(rows), HEADS, 576).bfloat16()
        new = torch.cat([x[len(x) - own:] for x, own in zip(kept, rows)])
        with get_parallel().override(dcp_enabled=False):
            out = backend.forward(q.flatten(1), new, new[..., :512], layer, batch)
        out, at = out.view(-1, HEADS, 512), 0
        for x, own in zip(kept, rows):
            x = x[:, 0].double()
            s = q[at:at + own].double().transpose(0, 1) @ x.T * 192 ** -0.5
            hidden = torch.arange(len(x)) > torch.arange(own)[:, None] + len(x) - own
            want = s.masked_fill(hidden, -math.inf).softmax(-1) @ x[:, :512]
            torch.testing.assert_close(out[at:at + own].double(), want.transpose(0, 1),
                                       atol=2e-2, rtol=0)
            at += own

    def test_options(self):
        for mode, rows in (ForwardMode.DECODE, [1, 1]), (ForwardMode.EXTEND, [2, 9]):
            self.run_batch(mode, rows, [20, 7], softcap=0.5, window=6,
                           sinks=torch.randn(HEADS).bfloat16())
        self.run_batch(ForwardMode.EXTEND, [5, 9], [0, 0], causal=False)

    def test_float8(self):
        for mode, rows in (ForwardMode.DECODE, [1, 1]), (ForwardMode.EXTEND, [2, 9]):
            self.run_batch(mode, rows, [20, 7], kind=torch.float8_e4m3fn)

    def test_asked(self):
        """What SGLang asks, and what is refused by name."""
        self.assertEqual(choices.ATTENTION_BACKEND_CHOICES.count("kvbuf"), 1)
        runner = self.runner()
        backend = ATTENTION_BACKENDS["kvbuf"](runner)
        self.assertEqual(backend.get_cuda_graph_seq_len_fill_value(), 1)
        backend.init_cuda_graph_state(2, 2)
        batch = types.SimpleNamespace(forward_mode=ForwardMode.EXTEND, batch_size=1)
        with self.assertRaisesRegex(NotImplementedError, "a graph of mode EXTEND"):
            backend.init_forward_metadata_out_graph(batch)
        self.assertIsNone(backend.verify_mask)
        with self.assertRaisesRegex(
                NotImplementedError, "^speculative_num_draft_tokens is 33, and "
                "speculative_eagle_topk more than 1; kvbuf's trees have up to 32 "
                "drafts$"):
            ATTENTION_BACKENDS["kvbuf"](self.runner(topk=4, drafts=33))
        with self.assertRaisesRegex(NotImplementedError, "a layer has a window, and "
                                    "drafts are a tree"):
            self.run_batch(ForwardMode.TARGET_VERIFY, [3], [20], window=6,
                           trees=torch.ones(1, 3, 3, dtype=torch.bool))
        runner.token_to_kv_pool = None
        with self.assertRaisesRegex(
                NotImplementedError, "the pool is a NoneType; expected MHATokenToKVPool, "
                "K and V of all tokens of each layer, or MLATokenToKVPool"):
            ATTENTION_BACKENDS["kvbuf"](runner)
        layer = types.SimpleNamespace(is_cross_attention=True)
        for words, more in (("score_mod is given", {"score_mod": len}),
                            ("cross attention", {})):
            with self.assertRaisesRegex(NotImplementedError, words):
                backend.forward_decode(None, None, None, layer, batch, **more)

    def test_sparse(self):
        """Lists of keys over SGLang's pool for them, by the forwards of its own
        backend: rows of 16 bits, and packed ones; what others' kernels would do is
        refused by name."""
        try:
            from kvbuf_sglang.sparse import KvbufSparseAttnBackend
            from sglang.srt.layers.attention import dsa_backend
            from sglang.srt.mem_cache.memory_pool import DSATokenToKVPool
        except ImportError as error:
            self.skipTest(str(error))
        heads, most = 4, 64
        lists = torch.stack([torch.randperm(128)[:most] for _ in range(3)]).int()
        lists[0, 40:], lists[1, ::3], lists[2] = -1, -1, -1
        q = torch.randn(3, heads, 576).bfloat16()
        layer = RadixAttention(heads, 576, 192 ** -0.5, 1, 0, v_head_dim=512)
        for kind, width in (torch.bfloat16, 576), (torch.float8_e4m3fn, 656):
            with get_parallel().override(dcp_enabled=False, attn_dcp_size=1,
                                         attn_dcp_rank=0):
                pool = DSATokenToKVPool(
                    size=128, page_size=64, kv_lora_rank=512, dtype=kind,
                    qk_rope_head_dim=64, layer_num=1, device=DEVICE,
                    index_head_dim=128, enable_memory_saver=False, kv_cache_dim=width)
            rows = torch.randn(192, 576).bfloat16()
            kept, stored = rows.double(), rows
            if width == 656:
                latent = (rows[:, :512].float() * 2).to(kind)
                kept = torch.cat([latent.double() / 2, rows[:, 512:].double()], -1)
                stored = torch.cat([x.contiguous().view(torch.uint8) for x in (
                    latent, torch.full((192, 4), 0.5), rows[:, 512:])], -1)
            pool.kv_buffer[0].view(stored.dtype).view(192, -1).copy_(stored)
            # Its constructor wants a model runner with all of an engine's settings.
            backend = KvbufSparseAttnBackend.__new__(KvbufSparseAttnBackend)
            backend.token_to_kv_pool, backend.hisparse_coordinator = pool, None
            backend.use_fused_topk, backend.use_mha = True, False
            backend.dsa_topk_backend = dsa_backend.DSATopKBackend.SGL_KERNEL
            backend.dsa_index_kpool, backend.physical_page_size = 1, 64
            backend.kv_cache_dim, backend.dsa_kv_cache_store_fp8 = width, width == 656
            backend.dsa_decode_impl = backend.dsa_prefill_impl = (
                "flashmla_kv" if width == 656 else "flashmla_sparse")
            backend.require_taken()
            backend.forward_metadata = types.SimpleNamespace(
                dsa_cache_seqlens_int32=torch.full((3,), most, dtype=torch.int32))
            out = backend.forward_decode(q.flatten(1), None, None, layer, None,
                                         topk_indices=lists)
            out = out.view(3, heads, 512)
            for row in range(3):
                keys = kept[lists[row][lists[row] >= 0].long()]
                s = q[row].double() @ keys.T * 192 ** -0.5
                want = s.softmax(-1) @ keys[:, :512]
                torch.testing.assert_close(out[row].double(), want, atol=2e-2, rtol=0)
            backend.dsa_decode_impl = "trtllm"
            with self.assertRaisesRegex(NotImplementedError,
                                        "^dsa_decode_impl is 'trtllm'; kvbuf attends"):
                backend.require_taken()


if __name__ == "__main__":
    unittest.main()
