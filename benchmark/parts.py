#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What small pages and soft caps cost: rates as parts of a plain kernel's.

    benchmark/parts.py DIR --build [--target=sm_90a]   # with a compiler
    benchmark/parts.py DIR [--only pages]              # with a CUDA GPU and torch

Pages: causal attention of 16 heads of 128 over pages in random order, beside the
kernel for a dense cache with the same keys; 4096 new tokens (4 sequences), and 512
new ones on 8192 cached (8 sequences). Soft caps: full attention of 4096 rows, 4
sequences, with standard normal scores, and with queries times 4 and times 30, beside
the kernel without a cap. Contestants of a case take turns of 5 ms without a pause,
from CUDA graphs: parts are of cycles. Results are compared with the plain kernel's
(pages) or with attention in float32 (caps), to 0.03.

Exit status: 0 all results are right; 1 one is not.
"""

import math
import pathlib
import subprocess
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


def problems():
    """{name: options of the problem}."""
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


def build(folder, target, compiler):
    folder.mkdir(parents=True, exist_ok=True)
    for name, options in problems():
        done = subprocess.run(
            [compiler, "-", f"--target={target}", "-o",
             str(folder / f"{name}.kvbuf")],
            input=problem.problem(**options), text=True, capture_output=True)
        print(f"{name}.kvbuf: "
              + (done.stderr if done.returncode else "done"), flush=True)


def paged(torch, k, v, page, generator):
    """The same keys and values in pages at random places."""
    batch, keys = k.shape[:2]
    each = math.ceil(keys / page)
    order = torch.randperm(batch * each, device="cuda", generator=generator)
    table = order.view(batch, each).to(torch.int32)
    lengths = torch.full((batch,), keys, device="cuda", dtype=torch.int32)
    given = {}
    for name, x in ("k", k), ("v", v):
        cache = torch.full((batch * each, page, *x.shape[2:]), math.nan,
                           device="cuda", dtype=x.dtype)
        rows = torch.full((batch, each * page, *x.shape[2:]), math.nan,
                          device="cuda", dtype=x.dtype)
        rows[:, :keys] = x
        cache[order] = rows.view(batch * each, page, *x.shape[2:])
        given |= {name: cache, f"{name}_table": table,
                  f"{name}_lengths": lengths}
    return given


def runner(torch, artifact, q, given):
    out = torch.full_like(q, math.nan)

    def run():
        return artifact(q=q, out=out, **given)
    run.out = out
    return run


def turns(gpu, runs, rounds):
    """{name: microseconds}."""
    times = gpu.measure(runs, rounds, sample_ms=5.0, graphs=True)
    return {name: 1e3 * sorted(t)[len(t) // 2] for name, t in times.items()}


def pages(torch, gpu, kvbuf, folder, rounds):
    wrong = False
    for what, (rows, keys, batch) in PREFILLS.items():
        generator = torch.Generator("cuda").manual_seed(rows)
        q, k, v = (torch.randn(batch, n, 16, 128, device="cuda",
                               generator=generator).to(torch.bfloat16)
                   for n in (rows, keys, keys))
        runs = {"dense": runner(torch, kvbuf.load(folder / "dense.kvbuf"), q,
                                {"k": k, "v": v})}
        for page in PAGES:
            path = folder / f"p{page}.kvbuf"
            if path.exists():
                runs[f"{page}"] = runner(torch, kvbuf.load(path), q,
                                         paged(torch, k, v, page, generator))
        times = turns(gpu, runs, rounds)
        expected = runs["dense"].out
        bad = [name for name, run in runs.items()
               if not (run.out - expected).abs().max().item() < 0.03]
        wrong |= bool(bad)
        print(f"{what}: dense {times['dense']:.0f} us; pages of "
              + "  ".join(f"{n} {times['dense'] / t:.3f}"
                          for n, t in times.items() if n != "dense")
              + (f"  WRONG: {', '.join(bad)}" if bad else ""), flush=True)
    return wrong


def capped(torch, q, k, v, cap, b, h):
    """Attention of one head in float32."""
    s = q[b, :, h].float() @ k[b, :, h].float().T / math.sqrt(q.shape[-1])
    if cap:
        s = cap * torch.tanh(s / cap)
    return s.softmax(-1) @ v[b, :, h].float()


def caps(torch, gpu, kvbuf, folder, rounds):
    wrong = False
    for size, heads in SIZES:
        generator = torch.Generator("cuda").manual_seed(size)
        normal, k, v = (torch.randn(4, 4096, heads, size, device="cuda",
                                    generator=generator).to(torch.bfloat16)
                        for _ in range(3))
        for factor in (1, 4, 30):
            q = normal * factor
            names = {f"d{size}": 0.0} | {f"d{size}-cap{c:.0f}": c for c in CAPS}
            runs = {name: runner(torch, kvbuf.load(folder / f"{name}.kvbuf"),
                                 q, {"k": k, "v": v}) for name in names}
            times = turns(gpu, runs, rounds)
            plain, text = times[f"d{size}"], []
            for name, cap in names.items():
                error = max((runs[name].out[b, :, h].float()
                             - capped(torch, q, k, v, cap, b, h)).abs().max().item()
                            for b, h in ((0, 0), (3, heads - 1)))
                bad = not error < 0.03
                wrong |= bad
                text.append(f"{name} {plain / times[name]:.3f}"
                            + (f" WRONG by {error:.3g}" if bad else ""))
            print(f"queries times {factor}: {plain:.0f} us; "
                  + "  ".join(text[1:]), flush=True)
    return wrong


def main(arguments=None):
    parser = common.kernels_parser(__doc__, rounds=15, launches=0)
    parser.add_argument("--only", choices=["pages", "caps"],
                        help="measure one of the two")
    options = parser.parse_args(arguments)
    if options.build:
        build(options.folder, options.target, options.kvbuf_compile)
        return 0
    import gpu
    import kvbuf
    import torch
    wrong = False
    if options.only != "caps":
        wrong |= pages(torch, gpu, kvbuf, options.folder, options.rounds)
    if options.only != "pages":
        wrong |= caps(torch, gpu, kvbuf, options.folder, options.rounds)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
