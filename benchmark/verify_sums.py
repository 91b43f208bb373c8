#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Very long sums of one sign, on a GPU: what matrix units cut off must not add up.

    benchmark/verify_sums.py --compile DIR --target=sm_90a    # with a compiler
    benchmark/verify_sums.py --run DIR                        # with a GPU and PyTorch

128 rows of a head on 524288 keys, of which values rise from 0 to 1, and one tile of
values many times; outputs in bf16. The mean error may be 1.15 times that of the exact
result, rounded. Beside it stand PyTorch's and, with one sum for all keys, kvbuf's own.

Exit status: 0 all passed; 1 some did not; 2 bad usage.
"""

import argparse
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402
from problem import problem  # noqa: E402

SIZES = 64, 128, 256
LIMIT = 1.15
#: Keys of each input.
RISING, REPEATED, TILE = 524288, 200003, 128


def compile_all(folder, target, compiler):
    folder.mkdir(parents=True, exist_ok=True)
    for size in SIZES:
        # A schedule of one's own is one kernel's: that of few keys.
        for name, more in (("launch", []), ("one", ["--schedule=sum_keys=0"])):
            subprocess.run([compiler, "-", f"--target={target}", *more, "-o",
                            str(folder / f"{name}{size}.kvbuf")], check=True,
                           input=problem(heads=1, head_size=size), text=True)


def inputs(torch, size):
    """Each input's name, keys' values."""
    rising = torch.arange(RISING, device="cuda", dtype=torch.float64) / RISING
    yield "rising", rising[None, :, None, None].expand(1, -1, 1, size)
    tile = torch.rand(1, TILE, 1, size, device="cuda", dtype=torch.float64)
    yield "repeated", tile.repeat(1, -(-REPEATED // TILE), 1, 1)[:, :REPEATED]


def run_all(folder):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    import kvbuf

    def by_torch(backend):
        def run(q, k, v, o):
            with sdpa_kernel(backend):
                o.copy_(torch.nn.functional.scaled_dot_product_attention(
                    *(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2))
        return run

    torch.manual_seed(1)
    good = True
    print(f"{'':24} {'mean error':>12} {'bias':>12} {'of rounded':>10}")
    for size in SIZES:
        kernels = {"kvbuf": kvbuf.load(str(folder / f"launch{size}.kvbuf")),
                   "kvbuf, one sum": kvbuf.load(str(folder / f"one{size}.kvbuf")),
                   "cuDNN": by_torch(SDPBackend.CUDNN_ATTENTION),
                   "FlashAttention-2": by_torch(SDPBackend.FLASH_ATTENTION)}
        for name, values in inputs(torch, size):
            v = values.to(torch.bfloat16).contiguous()
            k = torch.randn_like(v)
            q = torch.randn(1, 128, 1, size, device="cuda").to(torch.bfloat16) / 4
            scores = torch.einsum("bqhd,bkhd->bqk", q.double(), k.double())
            weights = torch.softmax(scores / size ** 0.5, -1)
            want = torch.einsum("bqk,bkhd->bqhd", weights, v.double())
            least = (want.to(torch.bfloat16).double() - want).abs().mean()
            del scores, weights
            for label, kernel in kernels.items():
                o = torch.full_like(q, float("nan"))
                try:
                    kernel(q=q, k=k, v=v, o=o)
                except RuntimeError as e:  # head sizes that a peer has not
                    print(f"{label} {size} {name}: {str(e).splitlines()[0]}")
                    continue
                error = o.double() - want
                ratio = float(error.abs().mean() / least)
                ok = ratio <= LIMIT
                good &= ok or label != "kvbuf"
                print(f"{label + f' {size} {name}':32} {error.abs().mean():>10.6f} "
                      f"{error.mean():>+10.6f} {ratio:>8.2f} "
                      f"{'' if label != 'kvbuf' else 'pass' if ok else 'FAILED'}",
                      flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--compile", metavar="DIR", type=pathlib.Path)
    what.add_argument("--run", metavar="DIR", type=pathlib.Path)
    parser.add_argument("--target", default="sm_90a", help="chip [sm_90a]")
    parser.add_argument("--kvbuf-compile", metavar="PATH", default="kvbuf-compile")
    args = parser.parse_args()
    if args.compile:
        return compile_all(args.compile, args.target, args.kvbuf_compile)
    if reason := common.why_no_gpu():
        sys.exit(f"verify_sums.py: there is no GPU here: {reason}")
    sys.exit(0 if run_all(args.run) else 1)


if __name__ == "__main__":
    main()
