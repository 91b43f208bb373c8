# REQUIRES: torch
# RUN: env KVBUF_LIB_DIR=%lib KVBUF_DOCS=%src/docs %python %s
"""Every argument of flash-attn 2, 3 and 4, and of vLLM's fork, is taken, another name,
a hint, or refused by its name; the table of docs/engines.md says so. Needs torch, and
is skipped without."""

import ast
import importlib.util
import inspect
import os
import pathlib
import re
import unittest
from unittest import mock

import torch

import kvbuf
import kvbuf.torch as kt
from kvbuf import _flash_arguments as arguments

#: Parameters of the functions as their sources have them: flash-attn 2.8 and
#: flash-attn-3 (hopper/flash_attn_interface.py), flash-attn-4 4.0.0b36, vLLM 0.33.
THEIRS = {
    "flash_attn_func": """
        q k v dropout_p softmax_scale causal window_size softcap alibi_slopes
        deterministic return_attn_probs
        qv q_descale k_descale v_descale attention_chunk num_splits pack_gqa sm_margin
        learnable_sink score_mod score_mod_bwd mask_mod aux_tensors aux_scalars
        block_sparse_tensors return_lse gather_kv_indices""",
    "flash_attn_varlen_func": """
        q k v cu_seqlens_q cu_seqlens_k max_seqlen_q max_seqlen_k dropout_p
        softmax_scale causal window_size softcap alibi_slopes deterministic
        return_attn_probs block_table
        seqused_q seqused_k qv q_descale k_descale v_descale attention_chunk num_splits
        pack_gqa sm_margin
        page_table learnable_sink score_mod score_mod_bwd mask_mod aux_tensors
        aux_scalars block_sparse_tensors return_lse scheduler_metadata
        seqlen_k_per_split min_seqlen_k gather_kv_indices
        q_v return_softmax_lse out output_scale fa_version s_aux cp_world_size cp_rank
        cp_tot_seqused_k aux_tensor_leading_dims dynamic_causal
        gather_kv_valid_length""",
    "flash_attn_with_kvcache": """
        q k_cache v_cache k v rotary_cos rotary_sin cache_seqlens cache_batch_idx
        cache_leftpad block_table softmax_scale causal window_size softcap
        rotary_interleaved alibi_slopes num_splits return_softmax_lse
        qv page_table cu_seqlens_q cu_seqlens_k_new max_seqlen_q rotary_seqlens
        q_descale k_descale v_descale attention_chunk scheduler_metadata pack_gqa
        sm_margin""",
}


def normal(*shape):
    return torch.randn(shape).bfloat16()


def ints(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


class Names(unittest.TestCase):
    def test_all_are_known(self):
        for function, names in THEIRS.items():
            own = set(inspect.signature(getattr(kt, function)).parameters)
            for name in names.split():
                real = arguments.ALIASES.get(name)
                self.assertTrue(
                    name in own or real in own or name in arguments.HINTS
                    or name in arguments.REFUSED, f"{function}: {name}")

    @unittest.skipUnless(importlib.util.find_spec("vllm"), "vllm is not installed")
    def test_vllm_as_installed(self):
        # Read, as only a GPU's build can be imported.
        package = pathlib.Path(importlib.util.find_spec("vllm").origin).parent
        tree = ast.parse((package / "vllm_flash_attn" /
                          "flash_attn_interface.py").read_text())
        function = next(f for f in tree.body if isinstance(f, ast.FunctionDef)
                        and f.name == "flash_attn_varlen_func")
        names = {a.arg for a in function.args.args}
        self.assertLessEqual(names, set(THEIRS["flash_attn_varlen_func"].split()))

    def test_documented(self):
        page = pathlib.Path(os.environ.get("KVBUF_DOCS", "docs"), "engines.md")
        section = page.read_text().partition("## flash-attn's arguments")[2]
        section = section.partition("\n## ")[0]
        rows = {}
        for line in section.splitlines():
            cells = [c.strip() for c in line.strip("|").split(" | ")]
            if line.startswith("|") and len(cells) == 2:
                for name in re.findall(r"`(\w+)`", cells[0]):
                    rows[name] = cells[1]
        for name in arguments.HINTS:
            self.assertIn("a hint", rows.get(name, ""), name)
        for name, real in arguments.ALIASES.items():
            if not name.startswith("return_"):
                self.assertIn(f"`{real}`", rows.get(name, ""), name)
        for name in arguments.REFUSED:
            self.assertIn("refused", rows.get(name, ""), name)


class Meaning(unittest.TestCase):
    def setUp(self):
        self.q, self.k, self.v = normal(2, 4, 4, 32), normal(2, 9, 2, 32), normal(
            2, 9, 2, 32)
        self.pages = normal(6, 4, 2, 32), normal(6, 4, 2, 32)
        self.table, self.lengths = ints(0, 3, 5, 1, 2, 4).reshape(2, 3), ints(7, 12)
        self.offsets = ints(0, 4, 8)

    def varlen(self, **more):
        return kt.flash_attn_varlen_func(
            q=self.q.flatten(0, 1), k=self.pages[0], v=self.pages[1],
            cu_seqlens_q=self.offsets, seqused_k=self.lengths, causal=True, **more)

    def test_hints_change_nothing(self):
        calls = [
            (kt.flash_attn_func, (self.q, self.k, self.v)),
            (kt.flash_attn_varlen_func, (self.q.flatten(0, 1), self.k.flatten(0, 1),
                                         self.v.flatten(0, 1), self.offsets,
                                         ints(0, 9, 18), 4, 9)),
            (kt.flash_attn_with_kvcache, (self.q, self.k, self.v))]
        for function, call in calls:
            plain = function(*call)
            for name in arguments.HINTS:
                with self.subTest(function.__name__, name=name):
                    self.assertTrue(torch.equal(function(*call, **{name: 3}), plain))

    def test_other_names(self):
        """vLLM's call: no cu_seqlens_k, no bounds."""
        sink = torch.randn(4).bfloat16()
        plain, lse = self.varlen(block_table=self.table, sink=sink.float(),
                                 return_lse=True, max_seqlen_q=4, max_seqlen_k=12)
        for more in ({"page_table": self.table, "s_aux": sink},
                     {"block_table": self.table, "learnable_sink": sink.float()}):
            out, numbers = self.varlen(return_softmax_lse=True, num_splits=2,
                                       fa_version=3, scheduler_metadata=None, **more)
            self.assertTrue(torch.equal(out, plain))
            self.assertTrue(torch.equal(numbers, lse))
        both = [kt.flash_attn_with_kvcache(
            self.q, *self.pages, cache_seqlens=self.lengths, **more)
            for more in ({"block_table": self.table, "return_softmax_lse": True},
                         {"page_table": self.table, "return_lse": True})]
        for a, b in zip(*both):
            self.assertTrue(torch.equal(a, b))

    def test_lengths_of_other_batches(self):
        """It is the lengths that are wrong, whatever finds the sequences."""
        pages = [x[:2].repeat(2, 1, 1, 1) for x in self.pages]
        for count in (1,), (3,), (2, 1):
            lengths = torch.ones(count, dtype=torch.int32)
            for q, more in ((self.q, {}), (self.q.flatten(0, 1), {
                    "cu_seqlens_q": self.offsets, "max_seqlen_q": 4})):
                with self.assertRaisesRegex(ValueError, "cache_seqlens has shape"):
                    kt.flash_attn_with_kvcache(q, *pages, cache_seqlens=lengths,
                                               **more)

    def test_windows_of_fa4(self):
        call = self.q, self.k, self.v
        for theirs, ours in (((None, 0), (-1, 0)), ((3, None), (3, -1)),
                             ((None, None), (-1, -1)), ((2, 1), (2, 1))):
            self.assertTrue(torch.equal(
                kt.flash_attn_func(*call, fa4_window_size=theirs),
                kt.flash_attn_func(*call, window_size=ours)))
            self.assertTrue(torch.equal(
                kt.flash_attn_func(*call, window_size=theirs),
                kt.flash_attn_func(*call, window_size=ours)))
        with self.assertRaisesRegex(NotImplementedError, "moves the window away"):
            kt.flash_attn_func(*call, fa4_window_size=(-2, 3))

    def test_caches_of_float8(self):
        pages = [x.to(torch.float8_e4m3fn) for x in self.pages]
        scales = torch.tensor([0.5]), torch.tensor([2.0])
        exact = [x.float() * s for x, s in zip(pages, scales)]
        out = kt.flash_attn_varlen_func(
            self.q.flatten(0, 1), *pages, self.offsets, None, 4, 12, causal=True,
            seqused_k=self.lengths, block_table=self.table, k_descale=scales[0],
            v_descale=scales[1])
        want = kt.flash_attn_varlen_func(
            self.q.flatten(0, 1), *[x.bfloat16() for x in exact], self.offsets, None,
            4, 12, causal=True, seqused_k=self.lengths, block_table=self.table)
        torch.testing.assert_close(out, want, rtol=0, atol=4e-2)
        k, v = (x.to(torch.float8_e4m3fn) for x in (self.k, self.v))
        out = kt.flash_attn_func(self.q, k, v, k_descale=scales[0],
                                 v_descale=scales[1])
        want = kt.flash_attn_func(self.q, (k.float() * 0.5).bfloat16(),
                                  (v.float() * 2).bfloat16())
        torch.testing.assert_close(out, want, rtol=0, atol=4e-2)

    def test_queries_of_float8(self):
        """As vLLM calls: scales of (batch, key heads), one expanded; results of 16 bits,
        and of 8 that are divided by a scale."""
        kind = torch.float8_e4m3fn
        q, pages = self.q.to(kind), [x.to(kind) for x in self.pages]
        k, v = self.k.to(kind), self.v.to(kind)
        scales = [torch.tensor(x).expand(2, 2) for x in (0.5, 2.0, 0.75)]
        more = dict(zip(("q_descale", "k_descale", "v_descale"), scales))

        def exact(row, k, v):
            """Of one sequence: [rows, heads, size]."""
            row, k, v = (x.double().transpose(0, 1) * s for x, s in zip(
                (row, k, v), (0.5, 2.0, 0.75)))
            s = row @ k.repeat_interleave(2, 0).transpose(1, 2) * 32 ** -0.5
            at = torch.arange(4)[:, None] + k.shape[1] - 4
            s = s.masked_fill(torch.arange(k.shape[1]) > at, -torch.inf)
            return (s.softmax(-1) @ v.repeat_interleave(2, 0)).transpose(0, 1)

        def cached(n, pages):
            return [x[self.table[n].long()].flatten(0, 1)[:self.lengths[n]]
                    for x in pages]

        dense = [exact(q[n], k[n], v[n]) for n in range(2)]
        paged = [exact(q[n], *cached(n, pages)) for n in range(2)]
        flat = {"cu_seqlens_q": self.offsets, "seqused_k": self.lengths,
                "block_table": self.table, "max_seqlen_q": 4}
        calls = [
            (dense, kt.flash_attn_func, (q, k, v), {}),
            (paged, kt.flash_attn_varlen_func, (q.flatten(0, 1), *pages), flat),
            (paged, kt.flash_attn_with_kvcache, (q, *pages),
             {"cache_seqlens": self.lengths, "page_table": self.table})]
        with mock.patch.dict(os.environ, KVBUF_EMULATE="sm_90a"):
            for want, function, call, named in calls:
                with self.subTest(function.__name__):
                    out = function(*call, causal=True, **named, **more)
                    self.assertEqual(out.dtype, torch.bfloat16)
                    torch.testing.assert_close(out.view(2, 4, 4, 32).double(),
                                               torch.stack(want), rtol=0, atol=0.08)
                    eight = torch.empty_like(call[0])
                    given = function(*call, causal=True, out=eight, **named, **more,
                                     output_scale=torch.tensor([0.125]))
                    self.assertIs(given, eight)
                    # Half of the last of four bits, and of the weights.
                    torch.testing.assert_close(
                        eight.view(2, 4, 4, 32).double() * 0.125, torch.stack(want),
                        rtol=1 / 16, atol=0.08)
        with self.assertRaisesRegex(NotImplementedError, "^k and v are given, and q has "
                                    "8-bit floats; expected tokens that are in the "
                                    "cache already$"):
            kt.flash_attn_with_kvcache(q, k, v, self.k[:, :4], self.v[:, :4],
                                       cache_seqlens=self.lengths)
        for name in "q_descale", "output_scale":
            with self.assertRaisesRegex(ValueError, f"^{name} is given, "):
                kt.flash_attn_func(self.q, self.k, self.v,
                                   **{name: torch.tensor([1.0])})

    def test_dynamic_causal(self):
        """Flags as booleans and integers, and in a graph; what each sequence gives by
        itself (test_attention.py has the numbers in float64)."""
        at = ints(0, 5, 14, 17)
        q, k, v = (normal(17, h, 32) for h in (4, 2, 2))
        flags = torch.tensor([True, False, False])

        def call(flags):
            return kt.flash_attn_varlen_func(q, k, v, at, at, 9, 9,
                                             dynamic_causal=flags)

        o = call(flags)
        for a, b, causal in zip(at.tolist(), at[1:].tolist(), flags.tolist()):
            alone = kt.flash_attn_func(q[None, a:b], k[None, a:b], v[None, a:b],
                                       causal=causal)
            torch.testing.assert_close(o[None, a:b], alone, atol=2e-2, rtol=0)
        self.assertTrue(torch.equal(o, call(flags.int())))
        graph = torch.compile(call, fullgraph=True, backend="eager")
        self.assertTrue(torch.equal(o, graph(flags)))
        with self.assertRaisesRegex(ValueError, "^dynamic_causal has shape .2,.; expected .3,."):
            call(flags[:2])

    def test_refused(self):
        for name, (neutral, why) in arguments.REFUSED.items():
            for function, call in (
                    (kt.flash_attn_func, (self.q, self.k, self.v)),
                    (kt.flash_attn_with_kvcache, (self.q, self.k, self.v))):
                function(*call, **{name: neutral})
                if name == "qv" and function is kt.flash_attn_with_kvcache:
                    continue  # taken (test_latent.py)
                with self.subTest(name), self.assertRaises(
                        NotImplementedError) as caught:
                    function(*call, **{name: torch.ones(3)})
                self.assertEqual(
                    str(caught.exception), f"{name} of {function.__name__} is of shape "
                    f"(3,); expected {neutral}: {why}")
        with self.assertRaisesRegex(TypeError, "flash_attn_func has no argument 'k_c'"):
            kt.flash_attn_func(self.q, self.k, self.v, k_c=1)
        with self.assertRaisesRegex(TypeError, "has no argument 'page_table'"):
            kt.flash_attn_func(self.q, self.k, self.v, page_table=self.table)
        with self.assertRaisesRegex(ValueError, "sink and s_aux are one argument"):
            kt.flash_attn_func(self.q, self.k, self.v, sink=torch.ones(4),
                               s_aux=torch.ones(4))

    def test_compiled(self):
        def model(q, k, v, sink):
            return kt.flash_attn_func(q, k, v, learnable_sink=sink, num_splits=2,
                                      pack_gqa=True)

        sink = torch.randn(4)
        out = torch.compile(model, fullgraph=True, backend="eager")(
            self.q, self.k, self.v, sink)
        self.assertTrue(torch.equal(out, model(self.q, self.k, self.v, sink)))


class Combine(unittest.TestCase):
    def test_flash_attn_combine(self):
        outs, lses = torch.randn(3, 2, 5, 4, 32), torch.randn(3, 2, 5, 4)
        lses[0] = -torch.inf
        out, lse = kt.flash_attn_combine(outs, lses, out_dtype=torch.bfloat16)
        weights = lses.double().softmax(0)
        torch.testing.assert_close(
            out.double(), (weights[..., None] * outs).sum(0), rtol=0, atol=1e-2)
        torch.testing.assert_close(lse, lses.logsumexp(0), rtol=0, atol=1e-5)
        self.assertEqual(out.dtype, torch.bfloat16)
        self.assertIsNone(kt.get_scheduler_metadata(2, 1, 9, num_splits=2))

    def test_compiled(self):
        outs, lses = torch.randn(3, 5, 4, 32), torch.randn(3, 4, 5)
        plain = kvbuf.merge_states(outs, lses)
        for a, b in zip(torch.compile(kvbuf.merge_states, fullgraph=True,
                                      backend="aot_eager")(outs, lses), plain):
            self.assertTrue(torch.equal(a, b))
        with self.assertRaisesRegex(NotImplementedError, "no backward pass"):
            kvbuf.merge_states(outs.requires_grad_(), lses)


class Slots(unittest.TestCase):
    def test_compiled(self):
        """Appends by slots, on bfloat16 and in a graph."""
        def step(k, v, k_cache, v_cache, where):
            kvbuf.append_slots(k * 1, v, k_cache, v_cache, where)
            return k_cache + 0

        where = torch.tensor([5, -1, 2])
        k, v = normal(3, 2, 32), normal(3, 2, 32)
        caches = [normal(4, 4, 2, 32) for _ in "kv"]
        want = [x.clone() for x in caches]
        for x, new in zip(want, (k, v)):
            x[1, 1], x[0, 2] = new[0], new[2]
        out = torch.compile(step, fullgraph=True, backend="aot_eager")(
            k, v, *caches, where)
        for x, exact in zip((out, *caches), (want[0], *want)):
            self.assertTrue(torch.equal(x, exact))
        # Rotated by a half turn: the first 16 columns change their sign.
        half = torch.full((9, 8), -1.0), torch.zeros(9, 8)
        turned = torch.compile(
            lambda *given: kvbuf.append_slots(
                *given, rotary_cos=half[0], rotary_sin=half[1],
                positions=torch.tensor([8, 3, 0])), fullgraph=True, backend="aot_eager")
        turned(k, v, *caches, where)
        want[0][1, 1, :, :16], want[0][0, 2, :, :16] = -k[0, :, :16], -k[2, :, :16]
        for x, exact in zip(caches, want):
            self.assertTrue(torch.equal(x, exact))


if __name__ == "__main__":
    unittest.main()
