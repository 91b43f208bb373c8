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
half of the operations. The results are compared with attention in float32 by
the rule of kvbuf-run, every row of them.
"""

import argparse
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402

if __name__ == "__main__":
    common.need_gpu("fa2_compare.py")

import torch  # noqa: E402

import gpu  # noqa: E402
from common import Timing  # noqa: E402

import kvbuf  # noqa: E402

#: (batch, sequence length) at 16 heads of size 128, unless told otherwise.
SHAPES = [(4, 4096), (1, 16384)]


def make_work(problem, batch, seq):
    """The inputs of a problem of a manifest."""
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[problem["dtype"]]
    return gpu.Work(problem["heads"], problem["kv_heads"],
                    problem["head_size"], problem["causal"], batch, seq,
                    dtype=dtype, scale=problem["scale"])


def flop(work):
    full = 4 * work.heads * work.size * sum(n * n for n in work.lengths)
    return full / 2 if work.causal else full


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
            work = make_work(artifacts[0][1].manifest["problem"], batch, seq)
            contestants = {"PyTorch FlashAttention-2":
                           gpu.flash_attention_2(work)}
            if args.cudnn:
                contestants["PyTorch cuDNN"] = gpu.cudnn(work)
            for path, artifact in artifacts:
                contestants[path] = gpu.kernel(work, artifact)
            times = gpu.measure(contestants, args.rounds)
            verdicts = gpu.check(work, {name: gpu.output(run) for name, run
                                        in contestants.items()})
            title = f"{seq} x {batch} {'causal' if work.causal else 'full'}"
            base = math.nan
            for name in contestants:
                timing, verdict = Timing(times[name]), verdicts[name]
                ms = timing.median
                base = ms if math.isnan(base) else base
                lower, upper = timing.quartiles()
                failed |= bool(verdict.wrong)
                print(f"{title:<22}{name[-32:]:<34}{ms:>10.4f}"
                      f"{flop(work) / ms * 1e-9:>9.1f}{base / ms:>8.3f}"
                      f"{lower:>9.4f}{upper:>9.4f}{verdict.largest:>11.2e}"
                      f"{verdict.mean:>12.2e}"
                      f"{'  WRONG: ' if verdict.wrong else ''}{verdict.wrong}",
                      flush=True)
            print()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
