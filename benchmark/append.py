#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Appends to paged caches, rotated and quantized: GB/s beside a copy's.

    benchmark/append.py --build DIR --target=sm_90a    # needs kvbuf-compile
    benchmark/append.py DIR                            # needs a GPU and PyTorch

64 new tokens for each of 64 sequences that have 1000, 8 heads of 128, pages of 64
at random places, K rotated by halves. Bytes are those read and written. The copy
moves as many as the e4m3 append, in the same turns; every other round reverses
their order. Before each launch the L2 is flushed by reading. What was stored is
compared with float32, within a rounding of the cache's type.
"""

import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402
from problem import text  # noqa: E402

BATCH, TOKENS, CACHED, HEADS, SIZE, PAGE = 64, 64, 1000, 8, 128, 64
SCALE = 0.01
#: What a cache holds: its elements and what a scale is of, bytes of an element, the
#: relative rounding, and the magnitude below which the error is that of this
#: magnitude.
KINDS = {
    "bf16": (("bf16", ""), 2, 2 ** -8, 0.1),
    "e4m3": (("f8E4M3FN", "tensor"), 1, 2 ** -4, 0.02),
}


def program(kind):
    element, granularity = KINDS[kind][0]
    cache = text.cache_type("paged", element, HEADS, SIZE, PAGE, granularity)
    new = text.rows_type("?x?", HEADS, SIZE, "bf16")
    angles = f"memref<?x{SIZE // 2}xf32>"
    arguments = [(name, type, "") for name, type in (
        ("k", new), ("v", new), ("k_cache", cache), ("v_cache", cache),
        ("cos", angles), ("sin", angles))]
    return text.function("append", arguments, text.append_op(
        {part: (part, new, part + "_cache", cache) for part in ("k", "v")}, angles))


def build(folder, target, compiler):
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        subprocess.run([compiler, "-", f"--target={target}", "-o",
                        str(folder / f"append-{kind}.kvbuf")],
                       input=program(kind), text=True, check=True)


def bytes_of(kind):
    return 2 * BATCH * TOKENS * HEADS * SIZE * (2 + KINDS[kind][1])


def prepare(torch, kind):
    """The tensors of an append, and what tells how many elements came out wrong."""
    _, size, rounding, least = KINDS[kind]
    new = {x: torch.randn(BATCH, TOKENS, HEADS, SIZE, device="cuda",
                          dtype=torch.bfloat16) for x in "kv"}
    pages = (CACHED + TOKENS + PAGE - 1) // PAGE
    dtype = torch.bfloat16 if size == 2 else torch.uint8
    cache = {x: torch.zeros(BATCH * pages, PAGE, HEADS, SIZE, device="cuda",
                            dtype=dtype) for x in "kv"}
    table = torch.randperm(BATCH * pages, device="cuda").to(torch.int32)
    table = table.view(BATCH, pages)
    lengths = torch.full((BATCH,), CACHED, device="cuda", dtype=torch.int32)
    angle = torch.rand(CACHED + TOKENS, SIZE // 2, device="cuda") * 6.28
    given = {"cos": angle.cos(), "sin": angle.sin()}
    for x in "kv":
        given |= {f"{x}_new": new[x], x: cache[x], f"{x}_table": table,
                  f"{x}_lengths": lengths}
        if size == 1:
            given[f"{x}_scales"] = torch.tensor([SCALE], device="cuda")

    def wrong():
        at = torch.arange(CACHED, CACHED + TOKENS, device="cuda")
        c, s = angle.cos()[at][None, :, None], angle.sin()[at][None, :, None]
        low, high = new["k"].float().chunk(2, dim=-1)
        want = {"k": torch.cat([low * c - high * s, high * c + low * s], -1),
                "v": new["v"].float()}
        count = 0
        for x in "kv":
            got = cache[x][table[:, at // PAGE].long(), at % PAGE]
            if size == 1:
                got = got.view(torch.float8_e4m3fn).float() * SCALE
                want[x] = want[x].clamp(-448 * SCALE, 448 * SCALE)
            limit = rounding * want[x].abs().clamp(min=least) * 1.01
            count += ((got.float() - want[x]).abs() > limit).sum().item()
        return count
    return given, wrong


def main():
    parser = common.kernels_parser(__doc__, rounds=4, launches=15)
    options = parser.parse_args()
    if options.build:
        return build(options.folder, options.target, options.kvbuf_compile)
    import torch
    import kvbuf
    print(torch.cuda.get_device_name(), flush=True)
    calls, checks = {}, {}
    for kind in KINDS:
        for path in sorted(options.folder.glob(f"append-{kind}*.kvbuf")):
            artifact = kvbuf.load(str(path))
            given, wrong = prepare(torch, kind)
            calls[path.stem, kind] = lambda a=artifact, g=given: a(**g)
            checks[path.stem] = wrong
    source = torch.empty(bytes_of("e4m3") // 2, device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    calls["copy", "e4m3"] = lambda: target.copy_(source)
    flush = torch.ones(64 << 20, device="cuda", dtype=torch.int32)
    times = {key: [] for key in calls}
    for call in calls.values():
        call()
    for key in common.in_turns(calls, options.rounds):
        times[key] += common.microseconds(torch, calls[key], options.launches,
                                          before=flush.max)
    rate = {key: bytes_of(key[1]) / statistics.median(us) / 1e3
            for key, us in times.items()}
    bad = 0
    for (name, kind), us in times.items():
        count = checks[name]() if name in checks else 0
        bad += count
        print(f"{name:16} {statistics.median(us):7.1f} us "
              f"{rate[name, kind]:6.0f} GB/s "
              f"{rate[name, kind] / rate['copy', 'e4m3']:6.1%} of the copy"
              + (f"  {count} WRONG" if count else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    common.need_gpu("append.py", "--build")
    sys.exit(main())
