#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What small pages, soft caps, 8-bit caches, wide heads and odd addresses cost: rates
as parts of a plain kernel's.

    benchmark/parts.py DIR --build [--target=sm_90a]   # with a compiler
    benchmark/parts.py DIR [--only pages]              # with a CUDA GPU and torch

Pages: causal attention of 16 heads of 128 over pages in random order, beside the
kernel for a dense cache with the same keys; 4096 new tokens (4 sequences), and 512
new ones on 8192 cached (8 sequences). Soft caps: full attention of 4096 rows, 4
sequences, with standard normal scores, and with queries times 4 and times 30, beside
the kernel without a cap. Bytes: causal attention of 32 heads on 8 of 128, 4096 rows, 4
sequences, over caches in e4m3 with a scale, beside the same caches in bf16. Wide: 4
heads of 512, causal, one sequence of 16384 rows, beside 8 heads of 256. Odd: causal
attention of 16 heads of 128, 4096 rows, 4 sequences, Q, K and V at addresses that are
no multiples of 4 bytes, and O, too. Contestants of a case take turns of 5 ms without a
pause, from CUDA graphs: parts are of cycles. Results are compared with the plain
kernel's, or with attention in float32 (caps, wide), to 0.03.

Exit status: 0 all results are right; 1 one is not.
"""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402
import problem  # noqa: E402

PAGES = (1, 2, 3, 4, 5, 6, 7, 8, 16, 64, 128)
CAPS = (15.0, 30.0, 50.0)
#: New tokens, keys, sequences.
PREFILLS = {"4096 new": (4096, 4096, 4), "512 on 8192": (512, 8704, 8)}
#: (head size, heads) of the cases with a cap.
SIZES = ((128, 16), (64, 32))
#: Options of the caches that are read in bf16 and in e4m3.
CACHES = {"dense": {}, "p16": {"cache": "paged", "page_size": 16, "lengths": "all"}}
#: (head size, heads) of a wide kernel and the one that it is compared with.
WIDE = ((512, 4), (256, 8))


def problems():
    """Pairs of names and options of the problems."""
    dense = {"heads": 16, "head_size": 128, "causal": True}
    yield "dense", dense
    for page in PAGES:
        yield f"p{page}", dense | {"cache": "paged", "page_size": page,
                                   "lengths": "all"}
    for size, heads in SIZES:
        full = {"heads": heads, "head_size": size}
        yield f"d{size}", full
        for cap in CAPS:
            yield f"d{size}-cap{cap:.0f}", full | {"softcap": cap}
    for cache, more in CACHES.items():
        grouped = {"heads": 32, "kv_heads": 8, "head_size": 128, "causal": True} | more
        yield f"grouped-{cache}", grouped
        yield f"grouped-{cache}-e4m3", grouped | {"kv_dtype": "f8E4M3FN",
                                                  "granularity": "tensor"}
    for size, heads in WIDE:
        yield f"wide{size}", {"heads": heads, "head_size": size, "causal": True}


def kernels():
    """{file name without .kvbuf: (module, schedule)}."""
    return {name: (problem.problem(**options), "") for name, options in problems()}


def paged(torch, k, v, page, generator):
    """The same keys and values in pages at random places; what no key has is NaN."""
    nothing = math.nan if k.dtype.is_floating_point else 0x7F
    batch, keys = k.shape[:2]
    each = math.ceil(keys / page)
    order = torch.randperm(batch * each, device="cuda", generator=generator)
    table = order.view(batch, each).to(torch.int32)
    lengths = torch.full((batch,), keys, device="cuda", dtype=torch.int32)
    given = {}
    for name, x in ("k", k), ("v", v):
        cache = torch.full((batch * each, page, *x.shape[2:]), nothing,
                           device="cuda", dtype=x.dtype)
        rows = torch.full((batch, each * page, *x.shape[2:]), nothing,
                          device="cuda", dtype=x.dtype)
        rows[:, :keys] = x
        cache[order] = rows.view(batch * each, page, *x.shape[2:])
        given |= {name: cache, f"{name}_table": table,
                  f"{name}_lengths": lengths}
    return given


def runner(torch, artifact, q, given, out=None):
    out = torch.full_like(q, math.nan) if out is None else out

    def run():
        return artifact(q=q, out=out, **given)
    run.out = out
    return run


def far_from(out, runs):
    """The runs whose results are not those of `out`."""
    return [name for name, run in runs.items()
            if not (run.out - out).abs().max().item() < 0.03]


def page_runs(torch, load, what, sizes=PAGES):
    """{"dense", or the size of pages: a function that launches}."""
    rows, keys, batch = PREFILLS[what]
    generator = torch.Generator("cuda").manual_seed(rows)
    q, k, v = (torch.randn(batch, n, 16, 128, device="cuda",
                           generator=generator).to(torch.bfloat16)
               for n in (rows, keys, keys))
    runs = {"dense": runner(torch, load("dense"), q, {"k": k, "v": v})}
    for page in sizes:
        runs[f"{page}"] = runner(torch, load(f"p{page}"), q,
                                 paged(torch, k, v, page, generator))
    return runs


def flashinfer_runner(torch, q, given):
    """Launches FlashInfer's prefill over the e4m3 pages that a kernel is given, all of
    them full. Raises ImportError."""
    from flashinfer import prefill
    batch, rows, heads, size = q.shape
    pages, page, kv_heads = given["k"].shape[:3]
    begins = torch.arange(batch + 1, device="cuda", dtype=torch.int32)
    room = torch.empty(2 ** 27, device="cuda", dtype=torch.uint8)
    call = prefill.BatchPrefillWithPagedKVCacheWrapper(room, "NHD")
    call.plan(begins * rows, begins * (pages // batch), given["k_table"].flatten(),
              torch.full((batch,), page, device="cuda", dtype=torch.int32), heads,
              kv_heads, size, page, causal=True, q_data_type=q.dtype,
              kv_data_type=torch.float8_e4m3fn)
    caches = tuple(given[name].view(torch.float8_e4m3fn) for name in "kv")
    out = torch.full_like(q, math.nan)

    def run():
        return call.run(q.view(-1, heads, size), caches, k_scale=1.0, v_scale=1.0,
                        out=out.view(-1, heads, size))
    run.out = out
    return run


def byte_runs(torch, load, cache, peer=None):
    """{"bf16" and "e4m3": a function that launches}, on the same numbers; "FlashInfer"
    too, where that is the `peer`."""
    generator = torch.Generator("cuda").manual_seed(1)
    q, k, v = (torch.randn(4, 4096, heads, 128, device="cuda",
                           generator=generator) for heads in (32, 8, 8))
    k, v = (x.to(torch.float8_e4m3fn) for x in (k, v))
    q, scales, runs = q.to(torch.bfloat16), torch.ones(1, device="cuda"), {}
    for name, stored in (
            ("bf16", [x.to(torch.bfloat16) for x in (k, v)]),
            ("e4m3", [x.view(torch.uint8) for x in (k, v)])):
        given = dict(zip("kv", stored))
        if cache != "dense":
            pages = CACHES[cache]["page_size"]
            given = paged(torch, *stored, pages, generator.manual_seed(2))
        if name == "e4m3":
            given |= {"k_scales": scales, "v_scales": scales}
        kernel = load(f"grouped-{cache}" + ("-e4m3" if name == "e4m3" else ""))
        runs[name] = runner(torch, kernel, q, given)
        if name == "e4m3" and peer:
            runs[peer] = flashinfer_runner(torch, q, given)
    return runs


def wide_runs(torch, load):
    """{head size: a function that launches}, and what is wrong with results."""
    runs, wrong = {}, {}
    for size, heads in WIDE:
        q, k, v = (torch.randn(1, 16384, heads, size, device="cuda").to(
            torch.bfloat16) for _ in range(3))
        name = f"{size}"
        runs[name] = runner(torch, load(f"wide{size}"), q, {"k": k, "v": v})
        runs[name]()
        last = slice(-512, None)
        hidden = torch.ones(512, 16384, device="cuda", dtype=bool).triu(16384 - 511)
        exact = capped(torch, q[:, last], k, v, 0.0, 0, heads - 1, hidden)
        off = (runs[name].out[0, last, heads - 1] - exact).abs().max().item()
        if not off < 0.03:
            wrong[name] = f"off by {off:.3g}"
    return runs, wrong


def odd_runs(torch, load):
    """{where tensors are: a function that launches}."""
    def shifted(x):
        room = torch.empty(x.numel() + 1, device="cuda", dtype=x.dtype)
        return room[1:].view(x.shape).copy_(x)
    q, k, v = (torch.randn(4, 4096, 16, 128, device="cuda").to(torch.bfloat16)
               for _ in range(3))
    kernel = load("dense")
    runs = {"aligned": runner(torch, kernel, q, {"k": k, "v": v})}
    q, k, v = (shifted(x) for x in (q, k, v))
    runs["odd inputs"] = runner(torch, kernel, q, {"k": k, "v": v})
    runs["odd"] = runner(torch, kernel, q, {"k": k, "v": v},
                         shifted(torch.full_like(q, math.nan)))
    return runs


def capped(torch, q, k, v, cap, b, h, hidden=None):
    """Attention of one head in float32."""
    s = q[b, :, h].float() @ k[b, :, h].float().T / math.sqrt(q.shape[-1])
    if cap:
        s = cap * torch.tanh(s / cap)
    if hidden is not None:
        s.masked_fill_(hidden, -math.inf)
    return s.softmax(-1) @ v[b, :, h].float()


def cap_runs(torch, load, size, heads, factor, some=CAPS):
    """{"plain", or the cap: a function that launches}, and what is wrong with results;
    queries times a factor."""
    generator = torch.Generator("cuda").manual_seed(size)
    q, k, v = (torch.randn(4, 4096, heads, size, device="cuda",
                           generator=generator).to(torch.bfloat16)
               for _ in range(3))
    q, runs, wrong = q * factor, {}, {}
    for cap in (0.0, *some):
        name = f"{cap:.0f}" if cap else "plain"
        runs[name] = runner(torch, load(f"d{size}-cap{name}" if cap else f"d{size}"),
                            q, {"k": k, "v": v})
        runs[name]()
        off = max((runs[name].out[b, :, h] - capped(torch, q, k, v, cap, b, h))
                  .abs().max().item() for b, h in ((0, 0), (3, heads - 1)))
        if not off < 0.03:
            wrong[name] = f"off by {off:.3g}"
    return runs, wrong


def cases(torch, load):
    """Kinds, titles of cases and functions that give their contestants, the first the
    plain one, and what is wrong with their results."""
    def compared(make):
        def made():
            runs = make()
            plain = next(iter(runs.values()))
            for run in runs.values():
                run()
            return runs, {name: "not the plain kernel's result"
                          for name in far_from(plain.out, runs)}
        return made
    for what in PREFILLS:
        yield "pages", f"pages, {what}", compared(
            lambda what=what: page_runs(torch, load, what))
    for size, heads in SIZES:
        for factor in (1, 4, 30):
            yield "caps", f"caps, d{size}, queries times {factor}", (
                lambda given=(size, heads, factor): cap_runs(torch, load, *given))
    for cache in CACHES:
        yield "bytes", f"bytes, {cache}", compared(
            lambda cache=cache: byte_runs(torch, load, cache))
    yield "wide", "wide", lambda: tuple(
        dict(reversed(x.items())) for x in wide_runs(torch, load))
    yield "odd", "odd", compared(lambda: odd_runs(torch, load))


def main(arguments=None):
    parser = common.kernels_parser(__doc__, rounds=15, launches=0)
    parser.add_argument("--only", help="measure one kind of cases",
                        choices=["pages", "caps", "bytes", "wide", "odd"])
    options = parser.parse_args(arguments)
    if options.build:
        return common.build(options.folder, kernels(), options.target,
                            options.kvbuf_compile)
    import gpu
    import kvbuf
    import torch
    bad = False
    for kind, title, make in cases(torch, lambda name: kvbuf.load(
            str(options.folder / f"{name}.kvbuf"))):
        if options.only not in (None, kind):
            continue
        runs, wrong = make()
        times = gpu.medians(runs, "cycles", options.rounds)
        plain = next(iter(times))
        bad |= bool(wrong)
        print(f"{title}: {plain} {1e3 * times[plain]:.0f} us; "
              + "  ".join(f"{name} {times[plain] / ms:.3f}"
                          for name, ms in times.items() if name != plain)
              + "".join(f"  WRONG: {name}, {said}" for name, said in wrong.items()),
              flush=True)
        del runs
        torch.cuda.empty_cache()
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
