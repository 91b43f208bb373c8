#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latent attention over pages in random order, beside FlashMLA in one process.

    benchmark/latent.py [CASE...] [--mode=cycles|sustained] [--json FILE]

Contestants are `kvbuf.torch.flash_mla_with_kvcache` and, where it can be imported,
`flash_mla`'s function of that name, whose dense kernels for Hopper newer releases keep
as "legacy". Both get the same tensors: bf16, rows of 576 columns, values of 512, pages
of 64, the tokens that no length reaches NaN. Where each query row has a list of the
keys that it sees, FlashMLA's `flash_mla_sparse_fwd` takes it; packed rows, of 656
bytes, with a list for each row of a few, its `flash_mla_with_kvcache`. They take turns as CUDA
graphs, a second of warming up before: without a pause, or each holding the card at the
power limit. Every result is compared with fp32 attention on a sample of sequences.

Printed are microseconds, TFLOP/s (2 x heads x tokens x (576 + 512)), bytes of the rows
a second, and the ratio of rates. CASE: names that begin so; all without.

Exit status: 0 done; 1 a result is wrong; 2 no GPU.
"""

import argparse
import dataclasses
import json
import math
import sys

import common

PAGE, WIDTH, VALUES = 64, 576, 512


@dataclasses.dataclass(frozen=True)
class Case:
    heads: int
    batch: int
    tokens: int
    rows: int = 1
    #: Lengths from `tokens` / 2 to 3 / 2 of it.
    ragged: bool = False
    #: Keys that each of `batch` query rows names, of `tokens` that all share, or,
    #: packed, of `tokens` that each sequence has.
    listed: int = 0
    packed: bool = False
    #: Queries and rows in e4m3.
    fp8: bool = False

    @property
    def name(self):
        if self.fp8:
            return f"h{self.heads}-e4m3-{self.batch}x{self.tokens}"
        if self.packed:
            return (f"h{self.heads}-packed-{self.batch}x{self.listed}"
                    + (f"-rows{self.rows}" if self.rows > 1 else ""))
        if self.listed:
            return f"h{self.heads}-lists-{self.batch}x{self.listed}of{self.tokens}"
        return (f"h{self.heads}-{self.batch}x{self.tokens}"
                + (f"-rows{self.rows}" if self.rows > 1 else "")
                + ("-ragged" if self.ragged else ""))

    def lengths(self):
        if not self.ragged:
            return [self.listed or self.tokens] * self.batch
        return [self.tokens // 2 + self.tokens * i // max(1, self.batch - 1)
                for i in range(self.batch)]


CASES = (Case(128, 64, 4096), Case(128, 16, 16384), Case(128, 1, 131072),
         Case(64, 64, 4096), Case(16, 64, 4096), Case(128, 64, 4096, rows=2),
         Case(128, 64, 4096, ragged=True), Case(128, 64, 4096, fp8=True),
         Case(128, 4096, 32768, listed=2048), Case(64, 4096, 32768, listed=2048),
         *(Case(heads, batch, 8192, rows, listed=2048, packed=True)
           for heads, batch, rows in ((128, 128, 1), (128, 128, 2), (64, 128, 1),
                                      (128, 16, 1), (128, 1, 2))))


class Tensors:
    """A case's tensors on the GPU."""

    def __init__(self, torch, case):
        generator = torch.Generator("cuda").manual_seed(1)

        def normal(*shape):
            return torch.randn(*shape, device="cuda", generator=generator).to(
                torch.bfloat16)

        self.case = case
        self.lengths = lengths = case.lengths()
        self.q = normal(case.batch, case.rows, case.heads, WIDTH)
        self.lists = None
        if case.packed:
            count = case.batch * case.tokens
            rows = normal(count, WIDTH)
            self.cache = torch.empty(count, 656, dtype=torch.uint8, device="cuda")
            latent = rows[:, :VALUES].float().view(count, 4, 128)
            scales = latent.abs().amax(-1) / 448
            self.cache[:, :VALUES] = (latent / scales[..., None]).to(
                torch.float8_e4m3fn).view(torch.uint8).view(count, VALUES)
            self.cache[:, VALUES:528] = scales.view(torch.uint8)
            self.cache[:, 528:] = rows[:, VALUES:].contiguous().view(torch.uint8)
            self.cache = self.cache.view(-1, PAGE, 1, 656)
            self.lists = torch.stack([torch.stack([
                torch.randperm(case.tokens, generator=generator, device="cuda")
                [:case.listed] + b * case.tokens for _ in range(case.rows)])
                for b in range(case.batch)]).int()
            return
        if case.listed:
            self.cache = normal(case.tokens // PAGE, PAGE, 1, WIDTH)
            self.lists = torch.stack([
                torch.randperm(case.tokens, generator=generator, device="cuda")
                [:case.listed] for _ in range(case.batch)]).int()[:, None]
            return
        pages = [math.ceil(n / PAGE) for n in lengths]
        order = torch.randperm(sum(pages), generator=generator, device="cuda")
        self.cache = normal(sum(pages), PAGE, 1, WIDTH)
        self.table = torch.zeros(case.batch, max(pages), dtype=torch.int32,
                                 device="cuda")
        at = 0
        for b, (n, own) in enumerate(zip(lengths, pages)):
            self.table[b, :own] = order[at:at + own]
            if n % PAGE:
                self.cache[order[at + own - 1], n % PAGE:] = float("nan")
            at += own
        if case.fp8:
            self.q, self.cache = (x.to(torch.float8_e4m3fn)
                                  for x in (self.q, self.cache))
            self.one = torch.ones(1, device="cuda")
        self.seqlens = torch.tensor(lengths, dtype=torch.int32, device="cuda")

    def reference(self, b):
        """[rows, heads, 512] of a sequence, in fp32."""
        n, rows = self.lengths[b], self.case.rows
        if self.case.packed:
            out = self.q.new_empty(rows, self.case.heads, VALUES, dtype=float)
            for r in range(rows):
                out[r] = self.of_packed(b, r)
            return out.float()
        if self.lists is not None:
            keys = self.cache.reshape(-1, WIDTH)[self.lists[b, 0].long()].float()
            scores = self.q[b].float() @ keys.T / math.sqrt(WIDTH)
            return scores.softmax(-1) @ keys[:, :VALUES]
        pages = self.cache.view(sys.modules["torch"].uint8)[self.table[b].long()]
        keys = pages.view(self.cache.dtype).reshape(-1, WIDTH)[:n].float()
        scores = self.q[b].float() @ keys.T / math.sqrt(WIDTH)
        hidden = [[k > n - rows + r for k in range(n - rows, n)]
                  for r in range(rows)]
        scores[:, :, n - rows:] = scores[:, :, n - rows:].masked_fill(
            self.q.new_tensor(hidden, dtype=bool)[:, None], float("-inf"))
        return scores.softmax(-1) @ keys[:, :VALUES]

    def of_packed(self, b, r):
        """[heads, 512] of a row of a sequence, in fp32."""
        torch = sys.modules["torch"]
        rows = self.cache.view(-1, 656)[self.lists[b, r].long()]
        latent = rows[:, :VALUES].contiguous().view(torch.float8_e4m3fn).float()
        scales = rows[:, VALUES:528].contiguous().view(torch.float32)
        latent = (latent.view(-1, 4, 128) * scales[..., None]).flatten(1)
        rope = rows[:, 528:].contiguous().view(torch.bfloat16).float()
        scores = self.q[b, r].float() @ torch.cat((latent, rope), -1).T
        return (scores / math.sqrt(WIDTH)).softmax(-1) @ latent


def contestants(t):
    """{name: a function that launches, and returns [batch, rows, heads, 512]}."""
    import kvbuf.torch
    causal = t.case.rows > 1
    if t.case.packed:
        return packed_contestants(t)
    if t.case.fp8:
        return fp8_contestants(t)
    if t.lists is None:
        runs = {"kvbuf": lambda: kvbuf.torch.flash_mla_with_kvcache(
            t.q, t.cache, t.table, t.seqlens, VALUES, causal=causal)[0]}
    else:
        runs = {"kvbuf": lambda: kvbuf.torch.flash_mla_with_kvcache(
            t.q, t.cache, None, None, VALUES, indices=t.lists)[0]}
    try:
        import flash_mla
    except ImportError:
        return runs
    legacy = {"use_legacy": True} if flash_mla.has_legacy() else {}
    if t.lists is not None:
        runs["FlashMLA"] = lambda: flash_mla.flash_mla_sparse_fwd(
            t.q[:, 0], t.cache.reshape(-1, 1, WIDTH), t.lists,
            1 / math.sqrt(WIDTH), VALUES, **legacy)[0][:, None]
        return runs
    metadata = flash_mla.get_mla_metadata()[0]
    runs["FlashMLA"] = lambda: flash_mla.flash_mla_with_kvcache(
        t.q, t.cache, t.table, t.seqlens, VALUES, metadata, causal=causal,
        **legacy)[0]
    return runs


def packed_contestants(t):
    import kvbuf.torch
    given = {"is_fp8_kvcache": True, "indices": t.lists}
    runs = {"kvbuf": lambda: kvbuf.torch.flash_mla_with_kvcache(
        t.q, t.cache, None, None, VALUES, **given)[0]}
    try:
        import flash_mla
    except ImportError:
        return runs
    legacy = {"use_legacy": True} if flash_mla.has_legacy() else {}
    metadata = flash_mla.get_mla_metadata()[0]
    runs["FlashMLA"] = lambda: flash_mla.flash_mla_with_kvcache(
        t.q, t.cache.view(sys.modules["torch"].float8_e4m3fn), None, None, VALUES,
        metadata, **given, **legacy)[0]
    return runs


def fp8_contestants(t):
    import kvbuf.torch
    runs = {"kvbuf": lambda: kvbuf.torch.flash_mla_with_kvcache(
        t.q, t.cache, t.table, t.seqlens, VALUES, is_fp8_kvcache=True,
        descale_q=t.one, descale_k=t.one)[0]}
    try:
        import flash_mla
    except ImportError:
        return runs
    plan, _ = flash_mla.get_mla_metadata()
    plan.tile_scheduler_metadata, plan.num_splits = flash_mla.get_mla_decoding_metadata(
        t.seqlens, t.case.rows * t.case.heads, 1, is_fp8_kvcache=True, use_legacy=True)
    runs["FlashMLA"] = lambda: flash_mla.flash_mla_with_kvcache(
        t.q, t.cache, t.table, t.seqlens, VALUES, plan, is_fp8_kvcache=True,
        use_legacy=True, descale_q=t.one, descale_k=t.one)[0]
    return runs


def wrong(torch, t, run):
    """What is wrong with a result, or ""."""
    out = run().float()
    torch.cuda.synchronize()
    if out.isnan().any():
        return "NaN"
    some = sorted({0, len(t.lengths) // 2, len(t.lengths) - 1})
    for b in some:
        exact = t.reference(b)
        error = (out[b] - exact).norm() / exact.norm()
        # P rounded to bf16, and the result; widened rows, too. P rounded to e4m3.
        if error > (8e-3 if t.case.packed else 4e-2 if t.case.fp8 else 6e-3):
            return f"sequence {b} is off by {error:.3g}"
    return ""


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--mode", default="cycles",
                        choices=("cycles", "sustained"))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(arguments)
    common.need_gpu("latent.py")
    import gpu
    torch, records, bad = gpu.torch, [], False
    print(", ".join(f"{k} {v}" for k, v in gpu.machine().items()))
    for case in CASES:
        if options.cases and not any(case.name.startswith(c)
                                     for c in options.cases):
            continue
        t = Tensors(torch, case)
        runs = contestants(t)
        for name, run in runs.items():
            if what := wrong(torch, t, run):
                bad |= name == "kvbuf"
                print(f"{case.name} {name}: WRONG: {what}")
        seconds = {n: ms / 1e3 for n, ms in
                   gpu.medians(runs, options.mode, options.rounds).items()}
        tokens = sum(case.lengths())
        row = 656 if case.packed else WIDTH if case.fp8 else 2 * WIDTH
        for name, s in seconds.items():
            flop = 2 * case.heads * case.rows * tokens * (WIDTH + VALUES)
            print(f"{case.name:24} {name:9} {s * 1e6:9.1f} us "
                  f"{flop / s / 1e12:7.1f} TFLOP/s "
                  f"{tokens * row / s / 1e9:7.0f} GB/s"
                  + (f"  {seconds['FlashMLA'] / s:.3f} of FlashMLA"
                     if name == "kvbuf" and "FlashMLA" in seconds else ""),
                  flush=True)
            records.append({"case": case.name, "mode": options.mode,
                            "name": name, "us": s * 1e6,
                            "tflops": flop / s / 1e12})
        del t, runs
        torch.cuda.empty_cache()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(records, out, indent=1)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
