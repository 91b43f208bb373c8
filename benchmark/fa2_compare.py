#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill attention beside PyTorch's FlashAttention-2, in one table.

    kvbuf-compile full.mlir --target=sm_90 -o full.kvbuf
    kvbuf-compile causal.mlir --target=sm_90 -o causal.kvbuf
    PYTHONPATH=python python3 benchmark/fa2_compare.py full.kvbuf causal.kvbuf

Needs a CUDA GPU and torch; libkvbuf_runtime.so is found as the Python package
finds it (KVBUF_LIB_DIR). Every artifact (bf16 or f16, dense query and cache)
runs in the cases of its own mask.

All contestants work on the same memory: tensors lie as [batch, seq, heads,
size], and PyTorch gets transposed views of them. In each case every contestant
warms up for a second; then they take turns, one launch each, timed by CUDA
events, so that clocks and temperature are the same for all. Causal cases count
half of the operations. The results are compared with attention in float32.
"""

import argparse
import statistics
import sys
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import kvbuf

#: (batch, sequence length) at 16 heads of size 128, unless told otherwise.
SHAPES = [(4, 4096), (1, 16384)]
WARMUP_SECONDS = 1.0


class Case:
    """Inputs, and what the result should be."""

    def __init__(self, problem, batch, seq):
        self.heads, self.kv_heads = problem["heads"], problem["kv_heads"]
        self.size, self.causal = problem["head_size"], problem["causal"]
        self.scale, self.batch, self.seq = problem["scale"], batch, seq
        dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[problem["dtype"]]
        generator = torch.Generator("cuda").manual_seed(1)
        self.q, self.k, self.v = (
            torch.randn(batch, seq, heads, self.size, device="cuda",
                        dtype=torch.float32, generator=generator).to(dtype)
            for heads in (self.heads, self.kv_heads, self.kv_heads))

    def name(self):
        return f"{self.seq} x {self.batch} {'causal' if self.causal else 'full'}"

    def flop(self):
        full = 4 * self.batch * self.heads * self.seq * self.seq * self.size
        return full / 2 if self.causal else full

    def reference(self, b, h):
        """One head's output in float32."""
        group = self.heads // self.kv_heads
        q, k, v = (x[b, :, i].float() for x, i in (
            (self.q, h), (self.k, h // group), (self.v, h // group)))
        s = q @ k.T * self.scale
        if self.causal:
            s.masked_fill_(torch.ones_like(s, dtype=torch.bool).triu_(1),
                           float("-inf"))
        return torch.softmax(s, -1) @ v

    def errors(self, out):
        """Largest and mean error over the first and the last head."""
        largest, total, count = 0.0, 0.0, 0
        for b, h in {(0, 0), (self.batch - 1, self.heads - 1)}:
            error = (out[b, :, h].float() - self.reference(b, h)).abs()
            largest = max(largest, error.max().item())
            total += error.sum(dtype=torch.float64).item()
            count += error.numel()
        return (float("inf") if largest != largest else largest, total / count)


def sdpa(case, backend):
    """A function that runs PyTorch's attention on the case."""
    q, k, v = (x.transpose(1, 2) for x in (case.q, case.k, case.v))

    def run():
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=case.causal, scale=case.scale,
                enable_gqa=case.heads != case.kv_heads).transpose(1, 2)
    return run


def ours(case, artifact):
    out = torch.empty_like(case.q)
    return lambda: artifact(q=case.q, k=case.k, v=case.v, out=out)


def warm_up(run):
    end = time.monotonic() + WARMUP_SECONDS
    while time.monotonic() < end:
        for _ in range(5):
            run()
        torch.cuda.synchronize()


def measure(contestants, rounds):
    """Milliseconds of each launch, by contestant."""
    for run in contestants.values():
        warm_up(run)
    events = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            pair[0].record()
            run()
            pair[1].record()
            events[name].append(pair)
    # Nothing waits in between: the queue stays full, so that no launch's time
    # holds the host's.
    torch.cuda.synchronize()
    return {name: [a.elapsed_time(b) for a, b in pairs]
            for name, pairs in events.items()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("artifacts", nargs="+", metavar="ARTIFACT.kvbuf")
    parser.add_argument("--shape", action="append", metavar="BATCHxSEQ",
                        help="instead of 4x4096 and 1x16384")
    parser.add_argument("--rounds", type=int, default=100,
                        help="timed launches of each [100]")
    parser.add_argument("--cudnn", action="store_true",
                        help="compare with PyTorch's cuDNN attention too")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("fa2_compare.py: error: no NVIDIA GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    shapes = SHAPES
    if args.shape:
        shapes = [tuple(map(int, text.split("x"))) for text in args.shape]

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, "
          f"kvbuf {kvbuf.version()}")
    print(f"{'case':<22}{'implementation':<34}{'median ms':>10}{'TFLOP/s':>9}"
          f"{'vs FA2':>8}{'middle half ms':>18}{'max error':>11}"
          f"{'mean error':>12}")
    failed = False
    by_mask = {}
    for path in args.artifacts:
        artifact = kvbuf.load(path)
        problem = artifact.manifest["problem"]
        if (problem["query"], problem["cache"]) != ("dense", "dense"):
            sys.exit(f"{path}: expected a dense query and a dense cache")
        key = tuple(problem[k] for k in ("heads", "kv_heads", "head_size",
                                         "dtype", "causal"))
        by_mask.setdefault(key, []).append((path, artifact))
    for batch, seq in shapes:
        for artifacts in by_mask.values():
            case = Case(artifacts[0][1].manifest["problem"], batch, seq)
            contestants = {"PyTorch FlashAttention-2":
                           sdpa(case, SDPBackend.FLASH_ATTENTION)}
            if args.cudnn:
                contestants["PyTorch cuDNN"] = sdpa(
                    case, SDPBackend.CUDNN_ATTENTION)
            for path, artifact in artifacts:
                contestants[path] = ours(case, artifact)
            times = measure(contestants, args.rounds)
            base = None
            limit = None
            for name, run in contestants.items():
                largest, mean = case.errors(run())
                ms = statistics.median(times[name])
                base = base or ms
                quarter = statistics.quantiles(times[name], n=4)
                # The same standard for all: FlashAttention-2's error doubled.
                limit = limit or 2 * largest
                wrong = not largest <= limit
                failed |= wrong
                print(f"{case.name():<22}{name[-32:]:<34}{ms:>10.4f}"
                      f"{case.flop() / ms * 1e-9:>9.1f}{base / ms:>8.3f}"
                      f"{quarter[0]:>9.4f}{quarter[2]:>9.4f}{largest:>11.2e}"
                      f"{mean:>12.2e}{'  WRONG' if wrong else ''}", flush=True)
            print()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
