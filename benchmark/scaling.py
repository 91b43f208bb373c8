#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill of one long sequence on several GPUs, against the same on one.

    torchrun --nproc-per-node=4 benchmark/scaling.py [--tokens=131072] ...
    torchrun --nproc-per-node=2 benchmark/scaling.py --ragged=65536,32768,...

Each process takes the GPU of its local rank. In turns, without a pause: the first
process computes the whole sequence alone (the others wait), then all of them
compute their shares, by ring_attention and by allgather_attention. A turn's time
is that of its slowest process. Efficiency is the time of one GPU over n times that
of n. Before, the shares' result is held to the whole's. With --ragged the sequences
of a ragged batch are shared, each by all processes, by ring_attention_varlen.

Needs GPUs and torch's NCCL; kernels come from the cache (docs/python.md).
"""

import argparse
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=131072,
                        help="of the whole sequence (131072)")
    parser.add_argument("--ragged", metavar="N,N,...", type=lambda text: [
        int(n) for n in text.split(",")],
        help="a ragged batch of such sequences, multiples of twice the processes")
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--kv-heads", type=int, default=8)
    parser.add_argument("--head-size", type=int, default=128)
    parser.add_argument("--full", action="store_true", help="no causal mask")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--calls", type=int, default=4, help="of a turn")
    return parser.parse_args()


def main():
    options = arguments()
    if reason := common.why_no_gpu():
        sys.exit(f"scaling.py: there is no GPU here: {reason}")
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        sys.exit("scaling.py: PyTorch is not installed")
    if not torch.cuda.is_available():
        sys.exit("scaling.py: there is no GPU")
    if "LOCAL_RANK" not in os.environ:
        sys.exit("scaling.py: start it by torchrun --nproc-per-node=N")
    import kvbuf.distributed as kd
    from kvbuf.torch import flash_attn_func, flash_attn_varlen_func

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    rank, size = dist.get_rank(), dist.get_world_size()
    causal = not options.full
    generator = torch.Generator(device).manual_seed(int(time.time()))
    seed = torch.tensor([generator.initial_seed()], device=device)
    dist.broadcast(seed, 0)
    generator.manual_seed(int(seed))
    tokens = sum(options.ragged) if options.ragged else options.tokens
    whole = [torch.randn(tokens, heads, options.head_size, dtype=torch.bfloat16,
                         device=device, generator=generator)
             for heads in (options.heads, options.kv_heads, options.kv_heads)]
    if options.ragged:
        ends = torch.tensor([0, *options.ragged], device=device).cumsum(0).int()
        longest = max(options.ragged)
        mine = [kd.shard_varlen(x, ends)[0] for x in whole]
        share = kd.shard_varlen(whole[0], ends)[1]
        on_one = lambda: flash_attn_varlen_func(  # noqa: E731
            *whole, ends, ends, longest, longest, causal=causal)
        on_all = {"ring": lambda: kd.ring_attention_varlen(
            *mine, share, longest // size, causal=causal)}
        together = lambda x: kd.unshard_varlen(x, ends)  # noqa: E731
    else:
        whole = [x[None] for x in whole]
        mine = [kd.shard(x) for x in whole]
        on_one = lambda: flash_attn_func(*whole, causal=causal)  # noqa: E731
        on_all = {
            "ring": lambda: kd.ring_attention(*mine, causal=causal),
            "allgather": lambda: kd.allgather_attention(*mine, causal=causal)}
        together = kd.unshard
    held = torch.stack(mine[1:])

    def exchange():
        """What a ring sends, and no attention."""
        for _ in kd.ring_steps(held):
            pass

    contestants = {"one GPU": lambda: on_one() if rank == 0 else None, **on_all,
                   "ring's messages": exchange}
    results = {name: f() for name, f in contestants.items()}
    for name in on_all:
        o = together(results[name])
        if rank == 0:
            error = (o.float() - results["one GPU"].float()).abs().max().item()
            print(f"{name}: at most {error:.2e} from one GPU's result",
                  flush=True)
            if not error < 2e-2:
                sys.exit("scaling.py: the results differ")
    del results, o

    times = {name: [] for name in contestants}
    for turn in range(options.turns + 1):
        for name, f in contestants.items():
            dist.barrier()
            torch.cuda.synchronize()
            before = time.perf_counter()
            for _ in range(options.calls):
                f()
            torch.cuda.synchronize()
            took = torch.tensor([time.perf_counter() - before], device=device)
            dist.all_reduce(took, dist.ReduceOp.MAX)
            if turn:  # the first one warms up
                times[name].append(took.item() / options.calls)
    if rank == 0:
        one = statistics.median(times["one GPU"])
        flops = 4 * options.heads * options.head_size * sum(
            n ** 2 for n in options.ragged or [tokens])
        flops /= 2 if causal else 1
        what = (f"sequences of {', '.join(map(str, options.ragged))}"
                if options.ragged else f"{tokens} tokens")
        print(f"{torch.cuda.get_device_name()} x {size}, {what}, "
              f"{options.heads}/{options.kv_heads} heads of {options.head_size}, "
              f"{'causal' if causal else 'full'}; median of {options.turns} turns "
              f"of {options.calls} calls")
        print(f"{'':16} {'ms':>9} {'TFLOP/s':>9} {'efficiency':>10}")
        for name, values in times.items():
            t = statistics.median(values)
            line = f"{name:16} {t * 1e3:9.2f}"
            if name != "ring's messages":
                line += f" {flops / t / 1e12:9.0f}"
            if name in on_all:
                line += f" {one / (size * t):10.3f}"
            print(line, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
