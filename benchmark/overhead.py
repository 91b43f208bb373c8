#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a repeated call costs the host, from Python and from C, beside torch's.

    benchmark/overhead.py [--rounds 30] [--calls 100] [--json FILE]

Tensors are small (but for ragged ones of many rows, of which a launch may have three
kernels), so that the device waits for the host. Each round makes `--calls` calls of each
function and then waits for the device; printed are the least and the median of the
rounds, in microseconds a call. "one key more a call" is not found among earlier calls.
"launch" is kvbufPlanLaunch, from a loop in C, with the driver's own launch of an empty
kernel beside it (benchmark/overhead.c, built with $CC, or cc; --launch FILE: one that is
built already).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import common

HERE = pathlib.Path(__file__).resolve().parent


def cases(device):
    """{name: a call}, and the tensors of the first one."""
    import torch
    import kvbuf.torch as kt

    def normal(*shape):
        return torch.randn(shape, device=device).bfloat16()

    q, k, v = normal(1, 64, 8, 128), normal(1, 64, 2, 128), normal(1, 64, 2, 128)
    heads = [x.transpose(1, 2).contiguous() for x in (q, k, v)]
    at = torch.tensor([0, 40, 64], dtype=torch.int32, device=device)
    pages = normal(8, 16, 2, 128), normal(8, 16, 2, 128)
    slots = normal(4, 64, 2, 128), normal(4, 64, 2, 128)
    table = torch.arange(8, dtype=torch.int32, device=device).view(2, 4)
    lengths = torch.tensor([60, 33], dtype=torch.int32, device=device)
    index = torch.tensor([3, 1], dtype=torch.int32, device=device)
    one = normal(2, 1, 8, 128)
    ragged = [x[0] for x in (q, k, v)]
    long = normal(4096, 8, 128), normal(4096, 2, 128), normal(4096, 2, 128)
    alike = torch.arange(0, 4097, 512, dtype=torch.int32, device=device)
    apart = torch.tensor([0, 100, 200, 500, 4096], dtype=torch.int32, device=device)
    given = torch.empty_like(q)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    return {
        "flash_attn_func": lambda: kt.flash_attn_func(q, k, v),
        "with log-sum-exp": lambda: kt.flash_attn_func(q, k, v, return_lse=True),
        "with out": lambda: kt.flash_attn_func(q, k, v, out=given),
        "flash_attn_varlen_func, slicing": lambda: kt.flash_attn_varlen_func(
            q[0], k[0], v[0], at, at, 40, 40),
        "flash_attn_varlen_func": lambda: kt.flash_attn_varlen_func(
            *ragged, at, at, 40, 40),
        "the same, min_seqlen_q": lambda: kt.flash_attn_varlen_func(
            *ragged, at, at, 40, 40, min_seqlen_q=24),
        "8 sequences of 512 rows": lambda: kt.flash_attn_varlen_func(
            *long, alike, alike, 512, 512),
        "100 to 3596 rows": lambda: kt.flash_attn_varlen_func(
            *long, apart, apart, 3596, 3596),
        "slicing q, k and v": lambda: (q[0], k[0], v[0]),
        "flash_attn_with_kvcache, pages": lambda: kt.flash_attn_with_kvcache(
            one, *pages, cache_seqlens=lengths, block_table=table),
        "flash_attn_with_kvcache, slots": lambda: kt.flash_attn_with_kvcache(
            one, *slots, cache_seqlens=lengths, cache_batch_idx=index),
        "scaled_dot_product_attention": lambda: kt.scaled_dot_product_attention(
            *heads, enable_gqa=True),
        "torch's own": lambda: sdpa(*heads, enable_gqa=True),
        "empty_like": lambda: torch.empty_like(q),
    }, (q, k, v)


def measure(rounds, calls):
    """{name: microseconds}, their minimum and median."""
    import torch
    made, _ = cases("cuda")
    for call in made.values():
        for _ in range(20):
            call()
    torch.cuda.synchronize()
    took = {name: [] for name in made}
    for _ in range(rounds):
        for name, call in made.items():
            begin = time.perf_counter()
            for _ in range(calls):
                call()
            took[name].append((time.perf_counter() - begin) / calls * 1e6)
            torch.cuda.synchronize()
    took["flash_attn_func, one key more a call"] = growing()
    return {name: {"minimum": min(t), "median": statistics.median(t)}
            for name, t in took.items()}


def growing(device="cuda"):
    """Microseconds of calls of which each is the first of its shape, as the first
    layer's are over a cache that grows."""
    import torch
    import kvbuf.torch as kt
    q = torch.randn(1, 1, 8, 128, device=device).bfloat16()
    cache = torch.randn(2, 1, 2, 512, 128, device=device).bfloat16()
    took = []
    for count in range(64, 512):
        k, v = (x[:, :, :count].transpose(1, 2) for x in cache)
        begin = time.perf_counter()
        kt.flash_attn_func(q, k, v, causal=True)
        took.append((time.perf_counter() - begin) * 1e6)
    if device == "cuda":
        torch.cuda.synchronize()
    return took[8:]


def from_c(rounds, calls, program):
    """The same of overhead.c, which is given an artifact of the first call's
    problem."""
    import kvbuf
    from kvbuf import _kernels
    problem = kvbuf.Problem(heads=8, kv_heads=2, head_size=128)
    library = pathlib.Path(kvbuf._library.library_path()).resolve()
    with tempfile.TemporaryDirectory() as folder:
        artifact = os.path.join(folder, "dense.kvbuf")
        _kernels.find(problem, _kernels.default_chip()[0]).save(artifact)
        if program is None:
            program = os.path.join(folder, "overhead")
            subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", program,
                            HERE / "overhead.c", f"-I{HERE.parent / 'include'}",
                            library, f"-Wl,-rpath,{library.parent}", "-ldl"], check=True)
        said = subprocess.run(
            [program, artifact, str(rounds), str(calls)], check=True,
            stdout=subprocess.PIPE, text=True,
            env={**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(
                [str(library.parent), os.environ.get("LD_LIBRARY_PATH", "")])}).stdout
    return json.loads(said)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--launch", metavar="FILE")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    common.need_gpu("overhead.py")
    result = {}
    print(f"{'us a call':40} {'minimum':>7} {'median':>7}")
    for part in (lambda: measure(options.rounds, options.calls),
                 lambda: from_c(options.rounds, options.calls, options.launch)):
        part = part()
        for name, microseconds in part.items():
            print(f"{name:40} {microseconds['minimum']:7.2f} "
                  f"{microseconds['median']:7.2f}", flush=True)
        result |= part
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
