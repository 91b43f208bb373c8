# Latent attention: what tells that values are a part of keys, and the functions of
# FlashMLA and flash-attn 3.
# REQUIRES: torch
# RUN: env KVBUF_LIB_DIR=%lib %python %s
import dataclasses
import os
import unittest
from unittest import mock

import torch

import kvbuf
from kvbuf import _attention, _latent, _lists, _ops, _packed
from kvbuf.torch import (concat_and_cache_mla, flash_attn_with_kvcache,
                         flash_mla_with_kvcache, get_mla_metadata)

HEADS, PAGE = 16, 64


def reference(q, rows, table, lengths, values, scale=None, causal=False,
              slopes=None):
    """(out, lse) in float64, of [batch, rows, heads, columns]."""
    out, sums = [], []
    for b, length in enumerate(lengths.tolist()):
        keys = rows.double()[table[b].long()].flatten(0, 1)[:length, 0]
        n = q.shape[1]
        scores = torch.einsum("ihd,jd->hij", q[b].double(), keys)
        scores *= scale or q.shape[-1] ** -0.5
        place = torch.arange(n)[:, None] + length - n
        if slopes is not None:
            scores -= slopes[:, None, None] * (place - torch.arange(length)).abs()
        if causal:
            scores.masked_fill_(torch.arange(length) > place, -torch.inf)
        lse = scores.logsumexp(-1)
        weights = (scores - lse[..., None]).exp().nan_to_num(0)
        out.append(torch.einsum("hij,jd->ihd", weights, keys[:, :values]))
        sums.append(lse)
    return torch.stack(out), torch.stack(sums)


def tensors(tokens=1, width=576, heads=HEADS):
    torch.manual_seed(tokens)
    q = torch.randn(2, tokens, heads, width, dtype=torch.bfloat16)
    rows = torch.randn(6, PAGE, 1, width, dtype=torch.bfloat16)
    table = torch.tensor([[4, 1, 5], [2, 0, 3]], dtype=torch.int32)
    return q, rows, table, torch.tensor([130, 70], dtype=torch.int32)


def packed(rows, size):
    """(bytes of a cache, their exact values in float64) of rows [pages, page size, 1,
    elements], in an engine's format."""
    pages, page, _, width = rows.shape
    narrow, group = {656: (512, 128), 584: (448, 64), 528: (512, 32)}[size]
    x = rows[..., 0, :narrow].float().unflatten(-1, (-1, group))
    scales = x.abs().amax(-1) / 448
    if size != 656:
        scales = scales.log2().ceil().exp2()
    codes = (x / scales[..., None]).to(torch.float8_e4m3fn)
    values = torch.cat(((codes.double() * scales.double()[..., None]).flatten(2),
                        rows[..., 0, narrow:].double()), -1)
    # A page has room for more than its rows, as FlashMLA's tests have it.
    own = {656: (page + 1) * 656, 584: (page + 1) * 576, 528: page * 528}[size]
    memory = torch.full((pages, own), 0x7f, dtype=torch.uint8)
    step = 576 if size == 584 else size
    lines = memory[:, :page * step].view(pages, page, step)
    lines[..., :narrow] = codes.flatten(2).view(torch.uint8)
    if size == 656:
        lines[..., 512:528] = scales.view(torch.uint8)
    else:
        powers = (scales.log2() + 127).to(torch.uint8)
        if size == 528:
            lines[..., 512:] = powers
        else:
            memory[:, page * 576:page * 584].view(pages, page, 8)[..., :7] = powers
    if narrow < width:
        begin = 528 if size == 656 else 448
        lines[..., begin:begin + 128] = rows[..., 0, narrow:].contiguous().view(
            torch.uint8)
    cache = memory.as_strided((pages, page, 1, size), (own, size, size, 1))
    return cache, values[:, :, None]


class Latent(unittest.TestCase):
    def close(self, got, expected):
        # Weights and results are rounded to bf16.
        torch.testing.assert_close(got.double(), expected, atol=2e-2, rtol=2e-2)

    def problems(self, call):
        seen, before = [], _attention.on_run

        def see(request):
            seen.append(request)
            before(request)

        _attention.on_run = see
        try:
            result = call()
        finally:
            _attention.on_run = before
        return result, [request.problem for request in seen]

    def test_view(self):
        q, rows, table, lengths = tensors()
        given = {"page_table": table, "lengths": lengths, "return_lse": True}
        (o, lse), problems = self.problems(
            lambda: kvbuf.attention(q, rows, rows[..., :512], **given))
        self.assertTrue(problems[0].latent)
        expected, sums = reference(q, rows, table, lengths, 512)
        self.close(o, expected)
        torch.testing.assert_close(lse.double(), sums, atol=1e-4, rtol=1e-4)

    def test_bytes(self):
        q, rows, table, lengths = tensors()
        scale = torch.tensor([0.5])
        narrow = (rows / 0.5).to(torch.float8_e4m3fn)
        # By alike warps, and by teams.
        for chip in "sm_80", "sm_90a":
            with mock.patch.dict(os.environ, KVBUF_EMULATE=chip):
                o, problems = self.problems(lambda: kvbuf.attention(
                    q, narrow, narrow[..., :512], page_table=table, lengths=lengths,
                    k_descale=scale, v_descale=scale))
            self.assertEqual([(p.latent, p.k_dtype, p.v_dtype) for p in problems],
                             [(True, "e4m3", "")])
            self.close(o, reference(q, narrow.double() * 0.5, table, lengths, 512)[0])

    def test_own_scores(self):
        q, rows, table, lengths = tensors(tokens=2)
        slopes = torch.linspace(0, 0.1, HEADS)
        o, problems = self.problems(lambda: kvbuf.attention(
            q, rows, rows[..., :512], page_table=table, lengths=lengths,
            alibi_slopes=slopes, causal=True))
        self.assertTrue(problems[0].latent)
        self.close(o, reference(q, rows, table, lengths, 512, causal=True,
                                slopes=slopes)[0])

    def test_what_is_no_part(self):
        q, rows, _, _ = tensors()
        from kvbuf._ops import of
        ops = of(q)
        part = rows[..., :512]
        self.assertTrue(_attention.is_part(ops, rows, part))
        self.assertTrue(_attention.is_part(ops, rows, rows))
        for other in (part.clone(), rows[..., 64:], rows[..., :32],
                      rows[:, :, :, :512].contiguous(), part.view(torch.float16)):
            self.assertFalse(_attention.is_part(ops, rows, other))
        narrow = rows[..., :256]
        self.assertFalse(_attention.is_part(ops, narrow, narrow[..., :128]))

    def test_flash_mla(self):
        q, rows, table, lengths = tensors(tokens=2)
        plan = get_mla_metadata(lengths, 2 * HEADS, 1)
        (o, lse), problems = self.problems(lambda: flash_mla_with_kvcache(
            q, rows, table, lengths, 512, *plan, softmax_scale=0.03, causal=True))
        self.assertTrue(problems[0].latent)
        expected, sums = reference(q, rows, table, lengths, 512, 0.03, True)
        self.close(o, expected)
        torch.testing.assert_close(lse.double(), sums, atol=1e-4, rtol=1e-4)

    @mock.patch.dict(os.environ, KVBUF_EMULATE="sm_90a")
    def test_flash_mla_bytes(self):
        # Scores have both scales, values that of the rows.
        q, rows, table, lengths = (x.to(torch.float8_e4m3fn) if x.is_floating_point()
                                   else x for x in tensors())
        of_q, of_rows = torch.tensor([0.5]), torch.tensor([1.5])
        for given in {}, {"descale_k": of_rows}, {"descale_q": of_q,
                                                  "descale_k": of_rows}:
            (o, lse), problems = self.problems(lambda: flash_mla_with_kvcache(
                q, rows, table, lengths, 512, is_fp8_kvcache=True, **given))
            self.assertTrue(problems[0].latent)
            self.assertEqual(o.dtype, torch.bfloat16)
            expected, sums = reference(
                q.float() * given.get("descale_q", torch.ones(1)),
                rows.float() * given.get("descale_k", torch.ones(1)), table, lengths,
                512)
            # Weights are rounded to 4 bits.
            self.assertLess((o - expected).norm() / expected.norm(), 0.03)
            torch.testing.assert_close(lse.double(), sums, atol=1e-4, rtol=1e-4)
        with self.assertRaisesRegex(NotImplementedError, "^descale_k is of shape .*it "
                                    "beside q of torch.bfloat16"):
            flash_mla_with_kvcache(q.bfloat16(), rows.bfloat16(), table, lengths, 512,
                                   descale_k=of_rows)
        for name in "descale_q", "descale_k":
            for bad, said in ((of_q.expand(2), r"has shape \(2,\); expected \(1,\)"),
                              (of_q.double(), "has type torch.float64")):
                with self.assertRaisesRegex(ValueError, f"^{name} {said}"):
                    flash_mla_with_kvcache(q, rows, table, lengths, 512, **{name: bad})
        # A cap comes before the queries' scale would: two caches, and right.
        o = kvbuf.attention(q, rows, rows[..., :512], page_table=table, lengths=lengths,
                            q_descale=of_q, k_descale=of_rows, v_descale=of_rows,
                            softcap=1e4)
        self.assertLess((o - expected).norm() / expected.norm(), 0.03)

    def test_flash_mla_sink(self):
        q, rows, table, lengths = tensors()
        sink = torch.linspace(-2, 9, HEADS)
        o, lse = flash_mla_with_kvcache(q, rows, table, lengths, 512,
                                        attn_sink=sink)
        expected, sums = reference(q, rows, table, lengths, 512)
        share = sums.exp() / (sums.exp() + sink.double().exp()[:, None])
        self.close(o, expected * share.transpose(1, 2)[..., None])
        torch.testing.assert_close(lse.double(), sums, atol=1e-4, rtol=1e-4)

    def test_nothing_to_see(self):
        # Sequences without a key beside no sink; no sequences, no rows, empty lists.
        q, rows, table, lengths = tensors()
        no_sink = torch.full((HEADS,), -torch.inf)
        cache = packed(rows, 656)[0]
        for given in rows, cache:
            kind = {"is_fp8_kvcache": given is cache}
            o, lse = flash_mla_with_kvcache(q, given, table, lengths * 0, 512,
                                            attn_sink=no_sink, **kind)
            self.assertFalse(o.any())
            self.assertTrue((lse == -torch.inf).all())
            for batch, tokens, most in (0, 1, 5), (2, 0, 5), (2, 1, 0):
                o, lse = flash_mla_with_kvcache(
                    q[:batch, :tokens], given, None, None, 512, attn_sink=no_sink,
                    indices=torch.zeros(batch, tokens, most, dtype=torch.int32), **kind)
                self.assertEqual((o.shape, lse.shape), ((batch, tokens, HEADS, 512),
                                                        (batch, HEADS, tokens)))
                self.assertFalse(o.any())

    def test_flash_attn_qv(self):
        q, rows, table, lengths = tensors()
        # Rows are values and then keys.
        o, problems = self.problems(lambda: flash_attn_with_kvcache(
            q[..., 512:], rows[..., 512:], rows[..., :512], qv=q[..., :512],
            cache_seqlens=lengths, block_table=table))
        self.assertTrue(problems[0].latent)
        self.close(o, reference(q, rows, table, lengths, 512)[0])

    def test_no_plan_is_kept(self):
        # Plans are found by shapes and strides, which say nothing of parts.
        q, rows, table, lengths = tensors()
        for _ in range(2):
            _, problems = self.problems(lambda: flash_attn_with_kvcache(
                q, rows, rows[..., :512], cache_seqlens=lengths,
                block_table=table))
            self.assertEqual([p.latent for p in problems], [True])

    def test_lists(self):
        # Two rows a sequence, each with keys of its own, in any order; one list has
        # no key, one the same key twice, one places that the cache does not have.
        q, rows, _, _ = tensors(tokens=2)
        # Pages have rows of others between them.
        rows = torch.stack((rows, torch.full_like(rows, torch.nan)), 1).flatten(
            0, 1)[::2]
        lists = torch.full((2, 2, 70), -1, dtype=torch.int32)
        lists[0, 0] = torch.randperm(6 * PAGE)[:70]
        lists[0, 1, 3:9] = torch.tensor([5, 200, 5, 6 * PAGE, 2**31 - 1, 7])
        lists[1, 0, ::2] = torch.randperm(6 * PAGE)[:35]
        counts = torch.tensor([70, 40], dtype=torch.int32)
        keys = rows.double().flatten(0, 1)[:, 0]
        for given, kind in (None, torch.int32), (counts, torch.int64):
            o, lse = flash_mla_with_kvcache(
                q, rows, None, None, 512, indices=lists.to(kind),
                topk_length=None if given is None else given.to(kind))
            for b, i in (0, 0), (0, 1), (1, 0), (1, 1):
                most = 70 if given is None else int(given[b])
                seen = [n for n in lists[b, i, :most].tolist()
                        if 0 <= n < 6 * PAGE]
                expected, sums = reference(
                    q[b:b + 1, i:i + 1], keys[seen].view(1, -1, 1, 576),
                    torch.zeros(1, 1), torch.tensor([len(seen)]), 512)
                self.close(o[b:b + 1, i:i + 1], expected)
                torch.testing.assert_close(lse[b, :, i].double(), sums[0, :, 0],
                                           atol=1e-4, rtol=1e-4)

    def test_lists_without_gaps(self):
        torch.manual_seed(5)
        pages = 7
        for chip, index, lists, most, size, step in (
                ("sm_80", torch.int32, 5, 2048, 64, 64),
                ("sm_90a", torch.int64, 3, 70, 16, 20),
                ("gfx942", torch.int32, 9, 33, 64, 64),
                ("gfx950", torch.int64, 1, 1, 1, 1)):
            given = torch.randint(-3, pages * size + 3, (lists, most)).to(index)
            counts = torch.randint(-1, most + 2, (lists,)).to(index)
            # Entries that stay where they are, up to a gap.
            given[::2] = given[::2].clamp(0, pages * size - 1)
            given[::4, 700:701] = -1
            counts[0] = most
            with mock.patch.dict(os.environ, KVBUF_EMULATE=chip):
                table, lengths = _lists.without_gaps(
                    _ops.of(given), given, counts, pages, size, step)
            for i, row in enumerate(given.tolist()):
                rows = [key // size * step + key % size
                        for key in row[:max(0, int(counts[i]))]
                        if 0 <= key < pages * size]
                self.assertEqual(table[i].tolist(), rows + [-1] * (most - len(rows)))
                self.assertEqual(lengths[i], len(rows))

    def test_packed_rows(self):
        for size, width in (656, 576), (584, 512), (528, 512):
            q, rows, table, lengths = tensors(width=width)
            cache, values = packed(rows, size)
            # Whichever name the bytes have.
            if size == 584:
                cache = cache.view(torch.float8_e4m3fn)
            o, lse = flash_mla_with_kvcache(q, cache, table, lengths, 512,
                                            is_fp8_kvcache=True)
            expected, sums = reference(q, values, table, lengths, 512)
            self.close(o, expected)
            torch.testing.assert_close(lse.double(), sums, atol=3e-3, rtol=1e-3)

    def test_blocks_of_one_row(self):
        # Whose tails lie behind them, and whose blocks have room for more.
        q, rows, _, lengths = tensors(width=512)
        rows = rows.view(-1, 1, 1, 512)[:131]
        table = torch.stack([torch.randperm(131) for _ in range(2)]).int()
        cache, values = packed(rows, 584)
        o, _ = flash_mla_with_kvcache(q, cache, table, lengths, 512,
                                      is_fp8_kvcache=True)
        self.close(o, reference(q, values, table, lengths, 512)[0])

    def test_packed_lists(self):
        for size, width in (656, 576), (584, 512):
            q, rows, _, _ = tensors(tokens=2, width=width)
            cache, values = packed(rows, size)
            lists = torch.full((2, 2, 70), -1, dtype=torch.int32)
            for b in range(2):
                lists[b, 0] = torch.randperm(6 * PAGE)[:70]
            lists[0, 1, 3:9] = torch.tensor([5, 200, 5, 6 * PAGE, 2**31 - 1, 7])
            # (The last row is what is read for an entry that is no key.)
            lists[lists == 6 * PAGE - 1] = 3
            if size == 656:
                cache.view(torch.uint8)[-1, -1] = 0x7f
            counts = torch.tensor([70, 40], dtype=torch.int32)
            sink = torch.linspace(-2, 9, HEADS)
            o, lse = flash_mla_with_kvcache(
                q, cache, None, None, 512, indices=lists, topk_length=counts,
                is_fp8_kvcache=True, attn_sink=sink)
            keys = values.flatten(0, 1)[:, 0]
            for b, i in (0, 0), (0, 1), (1, 0), (1, 1):
                seen = [n for n in lists[b, i, :counts[b]].tolist()
                        if 0 <= n < 6 * PAGE]
                expected, sums = reference(
                    q[b:b + 1, i:i + 1], keys[seen].view(1, -1, 1, width),
                    torch.zeros(1, 1), torch.tensor([len(seen)]), 512)
                share = sums.exp() / (sums.exp() + sink.double().exp()[:, None])
                self.close(o[b:b + 1, i:i + 1],
                           expected * share.transpose(1, 2)[..., None])
            # The rows of another query would have been seen.
            other, _ = reference(
                q[1:, :1], keys[lists[0, 0].tolist()].view(1, -1, 1, width),
                torch.zeros(1, 1), torch.tensor([70]), 512)
            self.assertGreater((o[1, 0].double() - other[0, 0]).abs().max(), 0.1)

    def test_packed_lists_by_teams(self):
        # Two blocks widen rows for each other, and the kernel takes lists as they are:
        # with a whole tile that names nothing, and in any order.
        q, rows, _, _ = tensors(tokens=2, heads=128)
        cache, values = packed(rows, 656)
        cache = cache.contiguous()
        lists = torch.randperm(6 * PAGE - 1)[:2 * 150].view(1, 2, 150).int()
        lists[0, 0, 60:130] = -1
        lists[0, 1, ::3] = torch.tensor([6 * PAGE, 2**31 - 1] * 25)
        lists = torch.cat((lists, torch.full_like(lists, -1)))
        # What no list names is NaN, among that what is read for an entry that is none.
        unseen = torch.ones(6 * PAGE, dtype=torch.bool)
        unseen[lists[(lists >= 0) & (lists < 6 * PAGE)].long()] = False
        cache.view(-1, 656)[unseen] = 0x7f
        unsorted = mock.patch.object(torch.Tensor, "sort", side_effect=AssertionError)
        for kind in torch.int32, torch.int64:
            with mock.patch.dict(os.environ, KVBUF_EMULATE="sm_90a"), unsorted:
                o, lse = flash_mla_with_kvcache(q, cache, None, None, 512,
                                                indices=lists.to(kind),
                                                is_fp8_kvcache=True)
            keys = values.flatten(0, 1)[:, 0]
            for i, seen in enumerate(lists[0]):
                seen = [n for n in seen.tolist() if 0 <= n < 6 * PAGE]
                expected, sums = reference(
                    q[:1, i:i + 1], keys[seen].view(1, -1, 1, 576),
                    torch.zeros(1, 1), torch.tensor([len(seen)]), 512)
                self.close(o[:1, i:i + 1], expected)
                torch.testing.assert_close(lse[0, :, i].double(), sums[0, :, 0],
                                           atol=3e-3, rtol=1e-3)
            self.assertFalse(o[1].any())
            self.assertTrue((lse[1] == -torch.inf).all())

    def test_packed_faults(self):
        # What the comparison has to tell apart: scales applied twice, or not, and
        # the other e4m3.
        q, rows, table, lengths = tensors()
        cache, values = packed(rows * 3, 656)
        given = {"is_fp8_kvcache": True}
        expected, _ = reference(q, values, table, lengths, 512)

        def differs(o):
            return (o.double() - expected).abs().max() > 0.1

        self.assertFalse(differs(flash_mla_with_kvcache(
            q, cache, table, lengths, 512, **given)[0]))
        known = _packed._ROWS[656]
        for change in (lambda text: text.replace("f8E4M3FN", "f8E4M3FNUZ"),
                       lambda text: text.replace(
                           ", scale = f32, granularity = 128, scale_at = 512", ""),
                       lambda text: text.replace("scale_at = 512",
                                                 "scale_at = 516")):
            wrong = dataclasses.replace(known, text=change(known.text))
            self.assertNotEqual(wrong, known)
            with mock.patch.dict(_packed._ROWS, {656: wrong}):
                try:
                    o = flash_mla_with_kvcache(q, cache, table, lengths, 512,
                                               **given)[0]
                except kvbuf.Error as error:  # bytes that are taken twice
                    self.assertIn("taken twice", str(error))
                    continue
            self.assertTrue(differs(o))
        # Tails are looked for where blocks would have them.
        tails, values = packed(rows[..., :512], 584)
        data, row = _packed.packed_rows(q, tails)
        wrong = dataclasses.replace(row, text=row.text.replace("37440", "38016"))
        with mock.patch.object(_latent, "packed_rows",
                                        lambda *_: (data, wrong)):
            with self.assertRaisesRegex(
                    kvbuf.Error, "'k': stride 37440 of dimension 0; expected a "
                    "multiple of 38016, as rows have tails"):
                flash_mla_with_kvcache(q[..., :512], tails, table, lengths, 512,
                                       **given)
        twice = cache.clone()
        scales = twice[..., 512:528].view(torch.float32)
        scales *= scales.clone()
        self.assertTrue(differs(flash_mla_with_kvcache(
            q, twice, table, lengths, 512, **given)[0]))

    def test_appends(self):
        torch.manual_seed(3)
        rows = torch.randn(5, 576, dtype=torch.bfloat16)
        rows[1] *= 100
        slots = torch.tensor([130, 5, -1, 64, 383])
        bytes_of = torch.zeros(6, PAGE, 656, dtype=torch.uint8)
        plain = torch.zeros(6, PAGE, 576, dtype=torch.bfloat16)
        concat_and_cache_mla(rows[:, :512], rows[:, 512:], plain, slots)
        concat_and_cache_mla(rows[:, :512], rows[:, None, 512:], bytes_of, slots,
                             "fp8_ds_mla")
        flat = plain.flatten(0, 1)
        kept = [0, 1, 3, 4]
        self.assertTrue(torch.equal(flat[slots[kept]], rows[kept]))
        self.assertEqual(int((flat != 0).any(-1).sum()), 4)
        stored = bytes_of.flatten(0, 1)
        self.assertEqual(int((stored != 0).any(-1).sum()), 4)
        stored = stored[slots[kept]]
        latent = rows[kept, :512].float().view(4, 4, 128)
        scales = stored[:, 512:528].contiguous().view(torch.float32)
        torch.testing.assert_close(scales, latent.abs().amax(-1) / 448)
        codes = stored[:, :512].contiguous().view(torch.float8_e4m3fn).float()
        # Half a step of three bits, or of the smallest numbers.
        error = (codes.view(4, 4, 128) * scales[..., None] - latent).abs()
        self.assertTrue((error <= (latent.abs() / 16).maximum(
            scales[..., None] * 2**-10) * 1.001).all())
        self.assertTrue(torch.equal(
            stored[:, 528:].contiguous().view(torch.bfloat16), rows[kept, 512:]))
        with self.assertRaisesRegex(kvbuf.Error, "slot_mapping holds 384 at 0"):
            concat_and_cache_mla(rows[:, :512], rows[:, 512:], plain, slots + 254)
        for cache, kind, words in (
                (plain, "fp8", "expected \"auto\" or \"fp8_ds_mla\""),
                (plain, "fp8_ds_mla", "expected 512, 64 and bytes, 656 a row, or 448"),
                (plain[..., :512], "auto", "rows with both")):
            with self.assertRaisesRegex((ValueError, NotImplementedError), words):
                concat_and_cache_mla(rows[:, :512], rows[:, 512:], cache, slots, kind)

    def test_appends_of_packed_rows(self):
        """Scales that are powers of two, in the row and behind the page's rows: what
        is written is read again."""
        slots = torch.tensor([130, 5, -1, 64, 383])
        kept = [0, 1, 3, 4]
        for size, latent in (584, 448), (528, 448):
            rows = torch.randn(5, 512, dtype=torch.bfloat16)
            rows[1] *= 100
            others = torch.randn(6, PAGE, 1, 512, dtype=torch.bfloat16)
            others.flatten(0, 1)[slots[kept], 0] = rows[kept]
            wanted, _ = packed(others, size)
            cache = torch.zeros(6 * wanted.stride(0), dtype=torch.uint8).as_strided(
                wanted.shape, wanted.stride())
            concat_and_cache_mla(rows[:, :latent], rows[:, latent:], cache[:, :, 0],
                                 slots, "fp8_ds_mla")
            q = torch.randn(1, 1, HEADS, 512, dtype=torch.bfloat16)
            lists = slots[kept].view(1, 1, 4).int()
            got, expected = (flash_mla_with_kvcache(
                q, x, None, None, 512, is_fp8_kvcache=True, indices=lists)[0]
                for x in (cache, wanted))
            torch.testing.assert_close(got, expected, rtol=0, atol=0)
            self.assertTrue(got.abs().max() > 0.1)

    def test_refusals(self):
        q, rows, table, lengths = tensors()
        cases = (
            (ValueError, "k_cache has type torch.bfloat16; expected bytes",
             lambda: flash_mla_with_kvcache(q, rows, table, lengths, 512,
                                            is_fp8_kvcache=True)),
            (NotImplementedError, "k_cache has rows of 640 bytes; expected 528, 584, "
             "656",
             lambda: flash_mla_with_kvcache(
                 q, torch.zeros(6, PAGE, 1, 640, dtype=torch.uint8), table,
                 lengths, 512, is_fp8_kvcache=True)),
            (NotImplementedError, "expected one head, pages of a multiple of 576",
             lambda: flash_mla_with_kvcache(
                 q[..., :512], torch.zeros(6, PAGE, 1, 584, dtype=torch.uint8),
                 table, lengths, 512, is_fp8_kvcache=True)),
            (ValueError, "q has a head size of 576, and rows of 528 bytes have 512",
             lambda: flash_mla_with_kvcache(
                 q, torch.zeros(6, PAGE, 1, 528, dtype=torch.uint8), table,
                 lengths, 512, is_fp8_kvcache=True)),
            (NotImplementedError, "extra_k_cache is of shape",
             lambda: flash_mla_with_kvcache(q, rows, table, lengths, 512,
                                            indices=table[:, None],
                                            extra_k_cache=rows)),
            (NotImplementedError, "causal is True; kvbuf has no kernel for it with "
             "indices",
             lambda: flash_mla_with_kvcache(q, rows, None, None, 512, causal=True,
                                            indices=table[:, None])),
            (NotImplementedError, "from page to page; expected a multiple of 576",
             lambda: flash_mla_with_kvcache(
                 q, rows.as_strided((2, 64, 1, 576), (64 * 584, 576, 576, 1)), None,
                 None, 512, indices=table[:, None])),
            (ValueError, "topk_length is given without indices",
             lambda: flash_mla_with_kvcache(q, rows, table, lengths, 512,
                                            topk_length=lengths)),
            (ValueError, "head_dim_v is 640; expected at most 576",
             lambda: flash_mla_with_kvcache(q, rows, table, lengths, 640)),
            (ValueError, "block_table and cache_seqlens are needed",
             lambda: flash_mla_with_kvcache(q, rows, None, lengths, 512)),
            (NotImplementedError, "no parts of the same rows; expected views",
             lambda: flash_attn_with_kvcache(
                 q[..., 512:], rows[..., 512:].clone(), rows[..., :512],
                 qv=q[..., :512], cache_seqlens=lengths, block_table=table)),
            (NotImplementedError, "qv is given with k and v",
             lambda: flash_attn_with_kvcache(
                 q[..., 512:], rows[..., 512:], rows[..., :512],
                 rows[:2, :1, :, 512:], rows[:2, :1, :, :512],
                 qv=q[..., :512], cache_seqlens=lengths, block_table=table)))
        for kind, words, call in cases:
            with self.assertRaisesRegex(kind, words):
                call()


if __name__ == "__main__":
    unittest.main()
