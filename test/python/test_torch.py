# REQUIRES: torch
# RUN: env KVBUF_LIB_DIR=%lib %python %s
"""kvbuf.torch on the emulator, beside torch's own attention: random calls,
repeated ones, gradients, compiled and exported programs. Needs torch, and is
skipped without."""

import pathlib
import sys
import unittest
import warnings
from unittest import mock

import torch
import torch.nn.functional as F
from torch.autograd import forward_ad
from torch.nn.attention import bias

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
import kvbuf  # noqa: E402
import kvbuf.torch as kt  # noqa: E402
from kvbuf import _ops, _plain  # noqa: E402
from attention_reference import attention  # noqa: E402
from torch_case import RANDOM, Case, exact, normal  # noqa: E402


class Functions(Case):
    def test_dense(self):
        """Random calls, each three times: built, remembered, on new memory."""
        for causal, window in (False, (-1, -1)), (True, (4, 0)):
            rows, keys = RANDOM.randint(1, 30), RANDOM.randint(1, 30)
            for _ in range(3):
                q, k, v = (normal(2, n, h, 64)
                           for n, h in ((rows, 4), (keys, 2), (keys, 2)))
                o, lse, none = kt.flash_attn_func(
                    q, k, v, causal=causal, window_size=window,
                    return_attn_probs=True)
                self.assertEqual((none.numel(), none.dtype), (0, q.dtype))
                for b in range(2):
                    e, el = attention(exact(q[b]), exact(k[b]), exact(v[b]),
                                      causal=causal, window=window)
                    self.close(o[b], e)
                    self.close(lse[b].nan_to_num(neginf=-1e3),
                               torch.as_tensor(el).nan_to_num(neginf=-1e3), 1e-3)
        self.assertIs(kt.flash_attn_func(q, k, v, out=o), o)

    def test_parameters(self):
        """Tensors of classes that say nothing of operators: what they hold."""
        q, k, v = normal(3, 1, 9, 2, 64)
        p = [torch.nn.Parameter(x) for x in (q, k, v)]
        with torch.no_grad():
            self.close(kt.flash_attn_func(*p), kt.flash_attn_func(q, k, v), 0)
            self.close(kt.flash_attn_func(q, p[1], v), kt.flash_attn_func(q, k, v), 0)
            self.close(kt.scaled_dot_product_attention(*p),
                       kt.scaled_dot_product_attention(q, k, v), 0)
            new = normal(2, 1, 1, 2, 64)
            caches = [[x.clone() for x in (k, v)] for _ in range(2)]
            held = [torch.nn.Parameter(x) for x in (q[:, :1], *caches[1])]
            lengths = torch.tensor([4], dtype=torch.int32)
            self.close(
                kt.flash_attn_with_kvcache(*held, *new, cache_seqlens=lengths),
                kt.flash_attn_with_kvcache(q[:, :1], *caches[0], *new,
                                           cache_seqlens=lengths), 0)
            for mine, theirs in zip(*caches):
                self.assertTrue(torch.equal(mine, theirs))
            offsets = torch.tensor([0, 9], dtype=torch.int32)
            self.close(
                kt.flash_attn_varlen_func(*(x[0] for x in p), offsets, offsets, 9, 9),
                kt.flash_attn_func(q, k, v)[0], 0)
            self.close(
                kt.flash_attn_varlen_func(torch.nn.Parameter(q[0]), k[0], v[0],
                                          offsets, offsets, 9, 9),
                kt.flash_attn_func(q, k, v)[0], 0)

    def test_places(self):
        """No GPU is looked for where tensors are on neither, and none writes
        elements that share memory."""
        q, k, v = normal(3, 2, 9, 2, 64)
        with self.assertRaisesRegex(ValueError, "on meta; expected the host, or a GPU"):
            kt.flash_attn_func(*(x.to("meta") for x in (q, k, v)))
        with self.assertRaisesRegex(kvbuf.Error, "stride 0 of dimension 0 makes "
                                                 "elements overlap"):
            kt.flash_attn_func(q, k, v, out=q[:1].clone().expand(2, -1, -1, -1))

    def test_arrays(self):
        """numpy's arrays whose offsets and lengths differ in type."""
        q, k = normal(3, 2, 64), normal(2, 9, 2, 64)
        offsets, lengths = torch.tensor([0, 1, 3]), torch.tensor([4, 9])

        def bits(x):
            return x.view(torch.int16).numpy().view("uint16")
        for mine, theirs in (torch.int32, torch.int64), (torch.int64, torch.int32):
            o = kt.flash_attn_with_kvcache(
                bits(q), bits(k), bits(k), cache_seqlens=lengths.to(mine).numpy(),
                cu_seqlens_q=offsets.to(theirs).numpy(), max_seqlen_q=2)
            e = kt.flash_attn_with_kvcache(
                q, k, k, cache_seqlens=lengths.to(mine),
                cu_seqlens_q=offsets.to(theirs), max_seqlen_q=2)
            self.assertTrue((o == bits(e)).all())

    def test_views(self):
        """What is read of a tensor without DLPack is what DLPack says; what it refuses,
        it still refuses."""
        half = normal(5, 3, 8)
        for x in (half, half.transpose(0, 2), half[1:, ::2], half[:0], half[0, 0, 0],
                  half.to(torch.float16), *(half.to(t) for t in (
                      torch.float32, torch.int32, torch.int64, torch.uint8,
                      torch.float8_e4m3fn, torch.float8_e5m2))):
            own, theirs = kvbuf._tensors.view("x", x), kvbuf._tensors._from_dlpack("x", x)
            self.assertIs(own.owner, x)
            for part in "address", "dtype", "shape", "strides", "device", "writable":
                self.assertEqual(getattr(own, part), getattr(theirs, part), part)
        for x, why in ((normal(2).requires_grad_(), "that require gradient"),
                       (normal(2).double(), "of DLPack type 2 of 64 bits"),
                       (normal(2, 2).to_sparse(), "layout other than")):
            with self.assertRaisesRegex(kvbuf.Error, f"^tensor 'x'.* {why}"):
                kvbuf._tensors.view("x", x)

    def test_remembered(self):
        """A remembered call takes other memory, and only what it was made for."""
        kt._plans.clear()
        q, k, v = normal(3, 1, 9, 2, 64)
        first = kt.flash_attn_func(q, k, v)
        self.assertEqual(len(kt._plans), 1)
        again = kt.flash_attn_func(q.clone(), k.clone(), v.clone())
        self.assertEqual(len(kt._plans), 1)
        self.assertTrue(torch.equal(first, again))
        self.assertNotEqual(first.data_ptr(), again.data_ptr())
        # Another order in memory, dtype, scale, length.
        strided = q.transpose(1, 2).contiguous().transpose(1, 2)
        self.close(kt.flash_attn_func(strided, k, v), first, 0)
        self.close(kt.flash_attn_func(q, k, v, softmax_scale=0.0),
                   v.double().mean(1, keepdim=True).expand(-1, 9, -1, -1))
        self.close(kt.flash_attn_func(q[:, :4], k, v), first[:, :4], 0)
        with self.assertRaisesRegex(ValueError, "^k has type"):
            kt.flash_attn_func(q, k.half(), v)
        with self.assertRaisesRegex(NotImplementedError, "^dropout_p is 0.1"):
            kt.flash_attn_func(q, k, v, 0.1)
        # Columns that are apart are copied, each time.
        apart = normal(1, 9, 64, 2).transpose(2, 3)
        for _ in range(2):
            self.close(kt.flash_attn_func(apart, k, v)[0], attention(
                *(exact(x[0]) for x in (apart, k, v)))[0])

    def test_given_twice(self):
        """A remembered call that gave one tensor in two places; others give two."""
        kt._forget()
        q, k, v = normal(3, 1, 9, 2, 64)
        want = attention(exact(q[0]), exact(k[0]), exact(v[0]))[0]
        kt.flash_attn_func(q, q, q)
        self.close(kt.flash_attn_func(q, k, v)[0], want)
        ends, others = (torch.tensor([0, n, 9], dtype=torch.int32) for n in (5, 2))
        kt.flash_attn_varlen_func(q[0], k[0], v[0], ends, ends, 9, 9)
        got = kt.flash_attn_varlen_func(q[0], k[0], v[0], ends, others, 9, 9)
        for rows, keys in (slice(0, 5), slice(0, 2)), (slice(5, 9), slice(2, 9)):
            self.close(got[rows], attention(exact(q[0, rows]), exact(k[0, keys]),
                                            exact(v[0, keys]))[0])
        blocks, lengths = (torch.tensor(n, dtype=torch.int32) for n in ([1], [2]))
        caches = [torch.cat((normal(1, 9, 2, 64), x)) for x in (k, v)]
        for cache, count in ((caches[:1] * 2, blocks), (caches, lengths)):
            got = kt.flash_attn_with_kvcache(q, *cache, cache_batch_idx=blocks,
                                             cache_seqlens=count)
        self.close(got[0], attention(exact(q[0]), exact(k[0, :2]),
                                     exact(v[0, :2]))[0])
        self.assertEqual(len(kt._plans), 3)

    def test_remembered_with_more(self):
        """Calls with tensors that not every call has are remembered, and right on
        other tensors: as a call that nothing remembers is."""
        q, k, v = normal(2, 9, 4, 64), *normal(2, 2, 9, 2, 64)
        rows = [x.flatten(0, 1) for x in (q, k, v)]
        pages, narrow = normal(2, 8, 16, 2, 64), torch.float8_e4m3fn
        table = torch.arange(8, dtype=torch.int32).view(2, 4)
        counts, ends = (torch.tensor(n, dtype=torch.int32)
                        for n in ([20, 9], [0, 9, 18]))
        calls = (
            (lambda q, k, v, out: kt.flash_attn_func(q, k, v, out=out), q, k, v, q),
            (lambda q, k, v, out, sink: kt.flash_attn_func(
                q, k, v, out=out, sink=sink, return_lse=True), q, k, v,
             q.float(), normal(4, dtype=torch.float32)),
            (kt.flash_attn_func, q, k, normal(2, 9, 2, 128)),
            (lambda q, k, v, a, b: kt.flash_attn_func(
                q, k, v, k_descale=a, v_descale=b), q, k.to(narrow), v.to(narrow),
             *normal(2, 1, dtype=torch.float32).abs()),
            (lambda q, k, v, at, slopes: kt.flash_attn_varlen_func(
                q, k, v, at, at, 9, 9, causal=True, alibi_slopes=slopes),
             *rows, ends, normal(4, dtype=torch.float32).abs()),
            (lambda q, k, v, at, table, used, out: kt.flash_attn_varlen_func(
                q, k, v, at, None, 9, 40, block_table=table, seqused_k=used,
                out=out), rows[0], *pages, ends, table, counts, rows[0]),
            (lambda q, k, v, used: kt.flash_attn_with_kvcache(
                q, k, v, cache_seqlens=used), q, *pages.flatten(1, 2).view(
                    2, 4, 32, 2, 64), counts),
            (lambda q, k, v, table: kt.flash_attn_with_kvcache(
                q, k, v, cache_seqlens=33, block_table=table), q, *pages, table),
            (lambda q, k, v, used, table, at: kt.flash_attn_with_kvcache(
                q, k, v, cache_seqlens=used, block_table=table, cu_seqlens_q=at,
                max_seqlen_q=9), rows[0], *pages, counts, table, ends),
        )
        for number, (call, *tensors) in enumerate(calls):
            with self.subTest(call=number):
                others = [x.flip(0) if x.dtype is not torch.int32 else x.clone()
                          for x in tensors]
                kt._forget()
                want = call(*[x.clone() for x in others])
                kt._forget()
                for given in tensors, others:
                    got = call(*[x.clone() for x in given])
                    self.assertEqual(len(kt._plans), 1)
                for a, b in zip(*([x] if isinstance(x, torch.Tensor) else x
                                  for x in (got, want))):
                    self.assertTrue(torch.equal(a, b))
        # What is given has to fit, each time, and to be memory of its own.
        out = torch.empty_like(q)
        for _ in range(2):
            kt.flash_attn_func(q, k, v, out=out)
        for wrong, error, why in (
                (q[:, :4], ValueError, "^out has shape"),
                (q.detach().requires_grad_(), NotImplementedError, "backward")):
            with self.assertRaisesRegex(error, why):
                kt.flash_attn_func(q, k, v, out=wrong)
        for _ in range(2):
            with self.assertRaisesRegex(kvbuf.Error, "^cache_seqlens is 65; expected 64 "):
                kt.flash_attn_with_kvcache(q, *pages, cache_seqlens=65, block_table=table)
        both = normal(2, 9, 4, 64)
        kt.flash_attn_func(both, both, both, out=out)
        with self.assertRaisesRegex(kvbuf.Error, "shares memory"):
            kt.flash_attn_func(q, both, both, out=both)

    def test_remembered_with_less(self):
        """A remembered call is not that of one with an argument more."""
        q, k, v = normal(2, 9, 4, 64), normal(2, 9, 2, 64), normal(2, 9, 2, 64)
        rows = [x.flatten(0, 1) for x in (q, k, v)]
        ends, counts, one = (torch.tensor(n, dtype=torch.int32) for n in (
            [0, 9, 18], [4, 9], [1, 0]))
        scale, cos = torch.full((1,), 0.25), torch.ones(9, 8)
        for call, more, error, why in (
                (lambda **more: kt.flash_attn_varlen_func(
                    *rows, ends, ends, 9, 9, **more), {"seqused_k": counts},
                 NotImplementedError, "^seqused_k is given"),
                (lambda **more: kt.flash_attn_varlen_func(
                    *rows, ends, ends, 9, 9, **more), {"q_descale": scale},
                 ValueError, "^q_descale is given"),
                (lambda **more: kt.flash_attn_func(q, k, v, **more),
                 {"q_descale": scale}, ValueError, "^q_descale is given"),
                (lambda **more: kt.flash_attn_with_kvcache(
                    q, k, v, cache_seqlens=counts, cache_batch_idx=one, **more),
                 {"q_descale": scale}, ValueError, "^q_descale is given"),
                (lambda **more: kt.flash_attn_with_kvcache(
                    q, k, v, cache_seqlens=counts, cache_batch_idx=one, **more),
                 {"rotary_sin": cos}, ValueError, "^rotary_cos and rotary_sin go"),
                (lambda **more: kt.flash_attn_with_kvcache(
                    q, k, v, cache_seqlens=counts, **more),
                 {"rotary_sin": cos}, ValueError, "^rotary_cos and rotary_sin go")):
            for _ in range(2):
                call()
                with self.subTest(more=list(more)), self.assertRaisesRegex(error, why):
                    call(**more)

    def test_types_of_new_tokens(self):
        """8-bit floats are of caches alone; what is refused writes nothing."""
        q, cache = normal(1, 1, 2, 64), normal(1, 9, 2, 64)
        lengths = torch.tensor([3])
        for kind, error, text in (
                (torch.float8_e4m3fn, NotImplementedError,
                 "^k and v are given, and q has 8-bit floats; expected tokens that are "
                 "in the cache already$"),
                (torch.float32, ValueError,
                 "^q has type (torch.)?float.*; expected float16 or bfloat16$")):
            x, held = q.to(kind), cache.to(kind)
            before = held.clone().float()
            with self.assertRaisesRegex(error, text):
                kt.flash_attn_with_kvcache(x, held, held, x, x,
                                           cache_seqlens=lengths)
            self.assertTrue(torch.equal(held.float(), before))
        held = cache.to(torch.float8_e4m3fn)
        with self.assertRaisesRegex(
                ValueError, "^k has type torch.float8_e4m3fn, and q torch.bfloat16; "
                "expected one type"):
            kt.flash_attn_with_kvcache(q, held, held, q.to(held.dtype),
                                       q.to(held.dtype), cache_seqlens=lengths)

    def test_memory_that_is_not_the_tensor(self):
        """torch's negative bit, and zeros without memory, before and after a call
        that is remembered."""
        z = torch.complex(*normal(2, 1, 9, 64, 2, dtype=torch.float32)).chalf()
        neg = z.conj().imag
        neg = neg.as_strided((1, 9, 2, 64), (1152, 128, 64, 1), neg.storage_offset())
        for x in neg, normal(1, 9, 2, 64)._neg_view():
            with self.subTest(type=x.dtype):
                self.hold_not_the_memory(x)

    def hold_not_the_memory(self, neg):
        self.assertTrue(neg.is_neg())
        half = neg.clone()
        self.assertFalse(half.is_neg())
        zero = torch._efficientzerotensor(half.shape, dtype=half.dtype)
        heads = [x.transpose(1, 2) for x in (neg, half)]
        offsets = torch.tensor([0, 9], dtype=torch.int32)
        lengths = torch.tensor([9], dtype=torch.int32)
        slots = torch.tensor([0], dtype=torch.int32)
        calls = {
            "dense": lambda x, y: kt.flash_attn_func(x, y, y),
            "varlen": lambda x, y: kt.flash_attn_varlen_func(
                x[0], y[0], y[0], offsets, offsets, 9, 9),
            "cache": lambda x, y: kt.flash_attn_with_kvcache(
                x, y, y, cache_seqlens=lengths, cache_batch_idx=slots),
            "own": lambda x, y: kvbuf.attention(x, y, y),
            "sdpa": lambda x, y: kt.scaled_dot_product_attention(
                *(t.transpose(1, 2) for t in (x, y, y))),
        }
        kt._forget()
        for name, f in calls.items():
            with self.subTest(name=name):
                first = f(neg, neg), f(half, neg), f(neg, half)
                want = f(half, half)
                for got in (*first, f(neg, neg), f(half, neg), f(neg, half)):
                    self.close(got, want, 0)
                if name != "own":
                    self.close(f(half, zero), torch.zeros(want.shape), 0)
        self.close(kvbuf.attention(half, zero, half), kvbuf.attention(
            half, torch.zeros_like(half), half), 0)
        self.close(kvbuf.attention(half, half, half, bias=-(neg[..., 0, :9]).mT[0]),
                   kvbuf.attention(half, half, half, bias=-(half[..., 0, :9]).mT[0]), 0)
        for call in (lambda: kt.flash_attn_func(half, half, half, out=neg),
                     lambda: kt.flash_attn_with_kvcache(
                         half[:, :1], neg, neg, half[:, :1], half[:, :1],
                         cache_seqlens=lengths - 1)):
            with self.assertRaisesRegex(ValueError, "torch's negative bit, and cannot "
                                        "be written"):
                call()

    def test_numbers_in_tensors(self):
        """Their values count, whenever they change; those of a device are not
        read."""
        q = normal(1, 40, 2, 64)
        window = torch.tensor([4, 0])
        kt._forget()
        for left in 4, 20:
            window[0] = left
            want = attention(*(exact(q[0]),) * 3, window=(left, 0))[0]
            for w in window, (window[0], 0), [left, 0], window.numpy():
                self.close(kt.flash_attn_func(q, q, q, window_size=w)[0], want)
        self.assertEqual(len(kt._plans), 2)
        kt._forget()
        longest = torch.tensor(0)
        for ends in (0, 20, 40), (0, 5, 40), (0, 3, 40):
            cu = torch.tensor(ends, dtype=torch.int32)
            longest.copy_((cu[1:] - cu[:-1]).max())
            got = [kt.flash_attn_varlen_func(q[0], q[0], q[0], cu, cu, n, n)
                   for n in (longest, torch.empty((), device="meta"))]
            for o in got:
                for a, b in zip(ends, ends[1:]):
                    self.close(o[a:b], attention(*(exact(q[0, a:b]),) * 3)[0])
        # Of bounds 20, 35, 37 and 40, however often they are asked for.
        self.assertEqual(len(kt._plans), 4)
        there = torch.zeros(2, device="meta")
        for name, call in (
                ("window_size", lambda: kt.flash_attn_func(q, q, q, window_size=there)),
                ("window", lambda: kvbuf.attention(q, q, q, window=there)),
                ("causal", lambda: kt.flash_attn_func(q, q, q, causal=there[0])),
                ("is_causal", lambda: kt.scaled_dot_product_attention(
                    q, q, q, is_causal=there[0])),
                ("num_splits", lambda: kt.flash_attn_with_kvcache(
                    q, q, q, num_splits=there[0]))):
            with self.assertRaisesRegex(ValueError, f"^{name} is a tensor on meta, "
                                        "for which the host would have to wait"):
                call()

    def test_varlen(self):
        cu_q = torch.tensor([0, 7, 7, 12], dtype=torch.int32)
        cu_k = torch.tensor([0, 9, 12, 30], dtype=torch.int32)
        for _ in range(2):
            q, k, v = normal(12, 4, 64), normal(30, 2, 64), normal(30, 2, 64)
            o, lse = kt.flash_attn_varlen_func(q, k, v, cu_q, cu_k, 7, 18,
                                               causal=True, return_lse=True)
            for a, b, c, d in ((0, 7, 0, 9), (7, 12, 12, 30)):
                e, el = attention(exact(q[a:b]), exact(k[c:d]), exact(v[c:d]),
                                  causal=True)
                self.close(o[a:b], e)
                self.close(lse[:, a:b], el, 1e-3)

    def test_packed(self):
        """Views of one tensor, which no kernel needs copied."""
        qkv = normal(2, 9, 3, 2, 64)
        q, k, v = qkv.unbind(2)
        o = kt.flash_attn_func(q, k, v, causal=True)
        self.assertTrue(torch.equal(
            kt.flash_attn_qkvpacked_func(qkv, causal=True), o))
        self.assertTrue(torch.equal(
            kt.flash_attn_kvpacked_func(q, qkv[:, :, 1:], causal=True), o))
        cu, flat = torch.tensor([0, 9, 18], dtype=torch.int32), qkv.flatten(0, 1)
        for ragged in (
                kt.flash_attn_varlen_qkvpacked_func(flat, cu, 9, causal=True),
                kt.flash_attn_varlen_kvpacked_func(
                    flat[:, 0], flat[:, 1:], cu, cu, 9, 9, causal=True)):
            self.close(ragged.view_as(o), o, 1e-2)
        with self.assertRaisesRegex(ValueError, "^qkv has shape .*; expected 5 "
                                    "dimensions, and 3 tensors in dimension 2"):
            kt.flash_attn_qkvpacked_func(flat)

    def test_kvcache(self):
        table = torch.tensor([[3, 1], [0, 4]], dtype=torch.int32)
        lengths = torch.tensor([20, 31], dtype=torch.int32)
        k_cache, v_cache = normal(5, 16, 2, 64), normal(5, 16, 2, 64)
        for step in range(3):
            q, k, v = normal(2, 1, 4, 64), normal(2, 1, 2, 64), normal(2, 1, 2, 64)
            more = {"k": k, "v": v} if step == 0 else {}
            o = kt.flash_attn_with_kvcache(q, k_cache, v_cache, **more,
                                           cache_seqlens=lengths, causal=True,
                                           block_table=table)
            if step == 0:
                lengths = lengths + 1
            for b in range(2):
                held = [x[table[b].long()].reshape(-1, 2, 64)[:int(lengths[b])]
                        for x in (k_cache, v_cache)]
                if step == 0:
                    self.assertTrue(torch.equal(held[0][-1], k[b, 0]))
                self.close(o[b], attention(exact(q[b]), *map(exact, held),
                                           causal=True)[0])

    def test_sdpa(self):
        for causal in False, True, True:
            rows, keys = RANDOM.randint(1, 30), RANDOM.randint(1, 30)
            q, k, v = (normal(2, h, n, 64)
                       for n, h in ((rows, 4), (keys, 2), (keys, 2)))
            for _ in range(2):
                mine = kt.scaled_dot_product_attention(
                    q, k, v, is_causal=causal, enable_gqa=True)
                theirs = F.scaled_dot_product_attention(
                    q, k, v, is_causal=causal, enable_gqa=True)
                self.close(mine, theirs)
                self.assertEqual(mine.is_contiguous(), theirs.is_contiguous())

    def test_float32(self):
        q, k, v = normal(3, 1, 6, 2, 64, dtype=torch.float32)
        with self.assertRaisesRegex(ValueError, "^q has type float32"):
            kt.flash_attn_func(q, k, v)
        with kt.configure(float32="float16"):
            o = kt.flash_attn_func(q, k, v)
            self.assertEqual(o.dtype, torch.float32)
            self.close(o[0], attention(*(exact(x[0]) for x in (q, k, v)))[0],
                       5e-3)
        with self.assertRaisesRegex(ValueError, "^q has type float32"):
            kt.flash_attn_func(q, k, v)


    def test_shared_prefix(self):
        """A launch for all parts, also in a graph, and one of each kind, which a sink
        that is nothing has."""
        for rows in 1, 3:
            q = normal(4, rows, 4, 32)
            k, v = normal(2, 20, 16, 2, 32)
            places = torch.randperm(20).int()
            given = {
                "group_offsets": torch.tensor([0, 2, 4]).int(),
                "prefix_table": places[:6].view(2, 3),
                "prefix_lengths": torch.tensor([40, 48]).int(),
                "page_table": places[6:14].view(4, 2),
                "lengths": torch.tensor([5, 18, 3, 30]).int()}
            want, numbers = kvbuf.shared_prefix_attention(
                q, k, v, sink=torch.full((4,), -1e30), return_lse=True, **given)
            o, lse = kvbuf.shared_prefix_attention(q, k, v, return_lse=True, **given)
            torch.testing.assert_close(o, want, atol=2e-2, rtol=0)
            torch.testing.assert_close(lse, numbers, atol=1e-4, rtol=1e-5)
            tables = kvbuf.shared_prefix_tables(**given, page_size=16, heads=4,
                                                rows=rows, parts=3)
            step = torch.compile(lambda q: kvbuf.shared_prefix_attention(
                q, k, v, tables=tables), fullgraph=True, backend="eager")
            torch.testing.assert_close(step(q), want, atol=2e-2, rtol=0)


class OnROCm(Case):
    """ROCm's torch calls its devices cuda; its version alone says what they are."""

    class OfDevice:
        def __init__(self, name):
            self.device = torch.device(name)

    def test_device_names(self):
        of = _ops.Torch().device_name
        for version, kind in (("6.4.43482", "hip"), (None, "cuda")):
            with mock.patch.object(torch.version, "hip", version, create=True):
                self.assertEqual(of(self.OfDevice("cuda:1")), kind + ":1")
                self.assertEqual(of(self.OfDevice("cuda")), kind + ":0")
                self.assertEqual(of(self.OfDevice("cpu")), "emulator")
        with self.assertRaisesRegex(ValueError, "expected the host, or a GPU of "
                                    "CUDA or ROCm"):
            of(self.OfDevice("meta"))


class Gradients(Case):
    def setUp(self):
        self.q, self.k, self.v = normal(3, 1, 8, 2, 64).unbind()
        self.q.requires_grad_()

    def test_refused(self):
        q, k, v = self.q, self.k, self.v
        cu = torch.tensor([0, 8], dtype=torch.int32)
        for name, call in (
                ("flash_attn_func", lambda: kt.flash_attn_func(q, k, v)),
                ("flash_attn_varlen_func", lambda: kt.flash_attn_varlen_func(
                    q[0], k[0], v[0], cu, cu, 8, 8)),
                ("flash_attn_with_kvcache",
                 lambda: kt.flash_attn_with_kvcache(q, k, v)),
                ("scaled_dot_product_attention",
                 lambda: kt.scaled_dot_product_attention(q, k, v)),
                ("kvbuf.attention", lambda: kt.attention(q, k, v))):
            with self.assertRaisesRegex(
                    NotImplementedError, f"^{name} has no backward pass, and a "
                    "tensor requires gradients"):
                call()
            with torch.no_grad():
                call()

    def test_by_torch(self):
        q, k, v = self.q, self.k, self.v
        cu = torch.tensor([0, 8], dtype=torch.int32)
        _plain._warned.clear()
        with kt.configure(gradients="torch"), warnings.catch_warnings(
                record=True) as seen:
            warnings.simplefilter("always")
            for causal, window in ((True, (-1, -1)), (False, (2, 1)),
                                   (True, (-1, -1))):
                o, lse = kt.flash_attn_func(
                    q, k, v, causal=causal, window_size=window, return_lse=True)
                e, el = attention(*(exact(x[0]) for x in (q, k, v)),
                                  causal=causal, window=window)
                self.close(o[0], e)
                self.close(lse[0], el, 1e-3)
            ragged = kt.flash_attn_varlen_func(q[0], k[0], v[0], cu, cu, 8, 8,
                                               causal=True)
            self.close(ragged, o[0], 0)
            part, lse = kt.flash_attn_varlen_func(
                q[0], k[0], v[0], torch.tensor([3, 8]), cu, 8, 8, return_lse=True)
            self.assertEqual((part.shape, lse.shape[1]), (q[0].shape, q.shape[1]))
            self.assertTrue((part[:3] == 0).all() and (part[3] != 0).any())
            for name in "seqused_k", "k_descale":
                with self.assertRaisesRegex(NotImplementedError, f"^{name} is given"):
                    kt.flash_attn_varlen_func(q[0], k[0], v[0], cu, cu, 8, 8,
                                              **{name: torch.tensor([3])})
            with self.assertRaisesRegex(NotImplementedError, "^v_descale is given"):
                kt.flash_attn_func(q, k, v, v_descale=torch.tensor([3.0]))
            with self.assertRaisesRegex(ValueError, "^q has 1 heads"):
                kt.flash_attn_func(q[:, :, :1], k, v)
            # All of the weight of a head's rows is a sink's, and nothing is left to change.
            sink = torch.full(q.shape[2:3], float("inf"), requires_grad=True)
            none, lse = kt.flash_attn_func(q, k, v, sink=sink, return_lse=True)
            self.assertTrue((none == 0).all() and (lse == float("inf")).all())
            for x in torch.autograd.grad(none.float().sum(), (q, sink)):
                self.assertTrue((x == 0).all())
            grad, = torch.autograd.grad(o.float().square().sum(), q)
        self.assertEqual([str(w.message).split(":")[0] for w in seen],
                         ["flash_attn_func", "flash_attn_varlen_func"])
        heads = [x.detach().transpose(1, 2) for x in (q, k, v)]
        heads[0].requires_grad_()
        theirs = F.scaled_dot_product_attention(*heads, is_causal=True)
        expected, = torch.autograd.grad(theirs.float().square().sum(), heads[0])
        self.close(grad, expected.transpose(1, 2), 0.1)


    def test_all_tensors(self):
        """No tensor's derivative is lost, whichever it is, backward or forward."""
        q, k, v = (x.detach() for x in (self.q, self.k, self.v))
        cu, slopes, sink = (torch.tensor(x) for x in ([0, 8], [.5, .25], [.5, .25]))
        cu, angles = cu.int(), torch.rand(2, 8, 32)
        new, scale = k[:, :1].clone(), torch.ones(1)
        codes = k.to(torch.float8_e4m3fn)
        calls = {
            "flash_attn_func": (kt.flash_attn_func, {
                "q": q, "k": k, "v": v, "alibi_slopes": slopes, "sink": sink,
                "out": torch.zeros_like(q)}),
            "flash_attn_varlen_func": (
                lambda **x: kt.flash_attn_varlen_func(
                    **x, cu_seqlens_q=cu, cu_seqlens_k=cu, max_seqlen_q=8,
                    max_seqlen_k=8),
                {"q": q[0], "k": k[0], "v": v[0], "alibi_slopes": slopes,
                 "sink": sink, "out": torch.zeros_like(q[0])}),
            "flash_attn_with_kvcache": (
                lambda **x: kt.flash_attn_with_kvcache(
                    **x, cache_seqlens=torch.tensor([3])),
                {"q": q[:, :1], "k_cache": k, "v_cache": v, "k": new, "v": new,
                 "rotary_cos": angles[0], "rotary_sin": angles[1],
                 "alibi_slopes": slopes, "sink": sink,
                 "out": torch.zeros_like(q[:, :1])}),
            "scaled_dot_product_attention": (
                kt.scaled_dot_product_attention,
                {"query": q, "key": k, "value": v,
                 "attn_mask": torch.zeros(2, 2)}),
            "kvbuf.attention": (kt.attention, {
                "q": q, "k": k, "v": v, "sink": sink, "alibi_slopes": slopes,
                "bias": torch.zeros(8, 8), "out": torch.zeros_like(q),
                "lse": torch.zeros(1, 2, 8)}),
            "kvbuf.attention, scales": (
                lambda **x: kt.attention(k=codes, v=codes, **x),
                {"q": q, "k_descale": scale, "v_descale": scale}),
        }
        for name, (call, tensors) in calls.items():
            call(**tensors)
            name = name.partition(",")[0]
            for which, x in tensors.items():
                with self.subTest(name=name, which=which):
                    with self.assertRaisesRegex(
                            NotImplementedError, f"^{name} has no backward pass, and "
                            "a tensor requires gradients"):
                        call(**{**tensors, which: x.clone().requires_grad_()})
                    with forward_ad.dual_level(), self.assertRaisesRegex(
                            NotImplementedError, f"^{name} has no derivatives in "
                            "forward mode, and a tensor has a tangent; call it on "
                            "forward_ad.unpack_dual"):
                        call(**{**tensors, which: forward_ad.make_dual(
                            x, torch.ones_like(x))})
            with forward_ad.dual_level():
                call(**tensors)  # no tangent, nothing lost

    def test_forward_by_torch(self):
        """A tangent, against a difference of values in float64."""
        q, k, v = (x.detach() for x in (self.q, self.k, self.v))
        way = normal(*q.shape)
        e = 1e-4
        ends = [attention(exact(q[0]) + s * exact(way[0]), exact(k[0]), exact(v[0]),
                          causal=True)[0] for s in (e, -e)]
        want = torch.as_tensor((ends[0] - ends[1]) / (2 * e))

        def f(x):
            return kt.flash_attn_func(x, k, v, causal=True)

        with kt.configure(gradients="torch"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.close(torch.func.jvp(f, (q,), (way,))[1][0], want)
            with forward_ad.dual_level():
                got = forward_ad.unpack_dual(f(forward_ad.make_dual(q, way)))
            self.close(got.tangent[0], want)
            heads = [x.transpose(1, 2) for x in (self.q, k, v)]
            with kt.patch_sdpa(emulate=True) as patch:
                self.assertTrue(F.scaled_dot_product_attention(
                    *heads, is_causal=True).requires_grad)
            self.assertEqual(patch.taken, 0)

    def test_written(self):
        """What a kernel writes is no longer what a backward pass has kept."""
        q, k, v = (x.detach() for x in (self.q, self.k, self.v))
        lengths = torch.tensor([3])

        def append(k, v):
            kt.flash_attn_with_kvcache(q[:, :1], k, v, q[:, :1], q[:, :1],
                                       cache_seqlens=lengths)

        kernel = kvbuf.compile(kvbuf.Problem(heads=2, kv_heads=2, head_size=64,
                                             dtype="bf16").source(), target="sm_80")
        for write in (lambda x, _: kernel(q=q, k=k, v=v, o=x),
                      lambda x, _: kernel(q=q, k=k, v=v, out=x),  # remembered
                      lambda x, _: kt.flash_attn_func(q, k, v, out=x),
                      lambda x, _: kt.attention(q, k, v, out=x),
                      append, lambda x, y: append(y, x)):
            x, y = torch.zeros(2, *q.shape, dtype=q.dtype)
            factor = torch.ones(1, requires_grad=True)
            product = (factor * x).sum()
            with torch.no_grad():
                write(x, y)
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace"):
                product.backward()
        with torch.inference_mode():
            kt.flash_attn_func(q, k, v, out=torch.zeros_like(q))


class Programs(Case):
    """torch.compile without a graph break, torch.export, fake tensors."""

    def test_compiled(self):
        cu = torch.tensor([0, 3, 8], dtype=torch.int32)
        table = torch.tensor([[1]], dtype=torch.int32)
        lengths = torch.tensor([9], dtype=torch.int32)
        q, k, v = normal(3, 1, 8, 2, 64)

        def dense(q, k, v):
            return kt.flash_attn_func(q, k, v, causal=True) * 2

        def lse(q, k, v):
            return kt.flash_attn_func(q, k, v, return_attn_probs=True)[1]

        def varlen(q, k, v):
            return kt.flash_attn_varlen_func(q[0], k[0], v[0], cu, cu, 5, 5)

        def sdpa(q, k, v):
            return kt.scaled_dot_product_attention(q, k, v, is_causal=True)

        def cache(q, k, v):
            k_cache, v_cache = torch.zeros(2, 2, 16, 2, 64, dtype=q.dtype)
            k_cache[1, :8] = k[0]
            v_cache[1, :8] = v[0]
            o = kt.flash_attn_with_kvcache(
                q, k_cache, v_cache, k[:, :1], v[:, :1],
                cache_seqlens=lengths - 1, block_table=table)
            return o, k_cache

        slopes = torch.tensor([0.5, 0.25])
        bias, mask = torch.randn(8, 8), torch.rand(2, 8, 8) < 0.7

        def sloping(q, k, v):
            return kt.flash_attn_func(q, k, v, causal=True, alibi_slopes=slopes)

        def sloping_varlen(q, k, v):
            return kt.flash_attn_varlen_func(q[0], k[0], v[0], cu, cu, 5, 5,
                                             alibi_slopes=slopes)

        def sloping_cache(q, k, v):
            caches = torch.zeros(2, 2, 16, 2, 64, dtype=q.dtype) + 1
            return kt.flash_attn_with_kvcache(
                q, *caches, cache_seqlens=lengths, block_table=table,
                alibi_slopes=slopes, return_softmax_lse=True)

        def masked(q, k, v):
            q, k, v = (x.transpose(1, 2) for x in (q, k, v))
            return (kt.scaled_dot_product_attention(q, k, v, mask) * 2
                    + kt.scaled_dot_product_attention(q, k, v, bias))

        def own(q, k, v):
            o, lse = kvbuf.attention(q, k, v, bias=bias, mask=mask, window=(5, 1),
                                     softcap=9.0, return_lse=True)
            return o * 2, lse

        def own_out(q, k, v):
            o = torch.zeros_like(q)
            kvbuf.attention(q, k, v, causal=True, alibi_slopes=slopes, out=o)
            return o

        def own_ragged(q, k, v):
            return kvbuf.attention(q[0], k[0], v[0], q_offsets=cu, k_offsets=cu,
                                   longest_query=5)

        for f in (dense, lse, varlen, sdpa, cache, sloping, sloping_varlen,
                  sloping_cache, masked, own, own_out, own_ragged):
            torch._dynamo.reset()
            compiled = torch.compile(f, fullgraph=True, backend="aot_eager")
            torch.testing.assert_close(compiled(q, k, v), f(q, k, v), rtol=0,
                                       atol=0)

    def test_exported(self):
        class Model(torch.nn.Module):
            def forward(self, q, k, v):
                return kt.flash_attn_func(q, k, v, causal=True)

        q, k, v = normal(3, 1, 8, 2, 64)
        for strict in False, True:
            rows = torch.export.Dim("rows", min=2, max=64)
            program = torch.export.export(
                Model(), (q, k, v), strict=strict,
                dynamic_shapes=[{1: rows}] * 3)
            self.assertIn("kvbuf.flash_attn", str(program.graph))
            q2, k2, v2 = normal(3, 1, 11, 2, 64)
            self.assertTrue(torch.equal(
                program.module()(q2, k2, v2),
                kt.flash_attn_func(q2, k2, v2, causal=True)))

    def test_exported_masks(self):
        """A mask is an input of the program; rows are a symbol."""
        class Model(torch.nn.Module):
            def forward(self, q, k, v, mask, slopes):
                heads = [x.transpose(1, 2) for x in (q, k, v)]
                return (kt.scaled_dot_product_attention(*heads, mask),
                        kvbuf.attention(q, k, v, alibi_slopes=slopes))

        def inputs(n):
            return (*normal(3, 1, n, 2, 64), torch.rand(n, n) < 0.7,
                    torch.tensor([0.5, 0.25]))

        rows = torch.export.Dim("rows", min=2, max=64)
        for strict in False, True:
            program = torch.export.export(
                Model(), inputs(8), strict=strict, dynamic_shapes=[
                    *[{1: rows}] * 3, {0: rows, 1: rows}, None])
            graph = str(program.graph)
            self.assertIn("kvbuf.sdpa", graph)
            self.assertIn("kvbuf.attention", graph)
            given = inputs(11)
            for got, want in zip(program.module()(*given), Model()(*given)):
                self.assertTrue(torch.equal(got, want))

    def test_refused_where_traced(self):
        """What has no meaning in a graph, and what needs a backward pass."""
        q, k, v = normal(3, 1, 8, 2, 64)
        torch._dynamo.reset()
        with self.assertRaisesRegex(Exception, "device and stream are given"):
            torch.compile(lambda q: kvbuf.attention(q, k, v, device="emulator"),
                          backend="eager", fullgraph=True)(q)
        slopes = torch.ones(2)
        with kt.configure(gradients="torch"), self.assertRaisesRegex(
                NotImplementedError, "^alibi_slopes is given, and a derivative is wanted"):
            kt.flash_attn_func(q.clone().requires_grad_(), k, v,
                               alibi_slopes=slopes)

    def test_operators(self):
        q, k, v = normal(3, 1, 8, 2, 64)
        checks = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")

        def check(name, **given):
            op = getattr(torch.ops.kvbuf, name).default
            for a in op._schema.arguments:  # what no call leaves out
                given.setdefault(a.name, {
                    "bool": False, "float": 0.0, "str": "all"}.get(str(a.type)))
            torch.library.opcheck(op, (), given, test_utils=checks)

        window = {"left": -1, "right": -1}
        for lse in False, True:
            check("flash_attn", q=q, k=k, v=v, causal=True, **window,
                  return_lse=lse)
        heads = dict(zip(("query", "key", "value"),
                         (x.transpose(1, 2) for x in (q, k, v))))
        for mask in None, torch.ones(8, 8, dtype=torch.bool):
            check("sdpa", **heads, attn_mask=mask)
        for kind in None, torch.float32:
            check("attention", q=q, k=k, v=v, bias=torch.zeros(8, 8), **window,
                  return_lse=True, out_type=kind)


if __name__ == "__main__":
    unittest.main()
