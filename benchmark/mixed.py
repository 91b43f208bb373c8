#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ragged batches of long and short queries: microseconds of one launch, beside
two that share the work.

    benchmark/mixed.py --build DIR --target=sm_90a    # needs kvbuf-compile
    benchmark/mixed.py DIR                            # needs a GPU and PyTorch

32 query heads on 8 of a paged cache, head size 128, bf16, causal. "mixed" is
one launch of the whole batch; "two" a launch of the sequences of many rows, and
one of those of one row; "long" and "short" each of these alone. All are replayed
as graphs of several launches, in turns. Artifacts of other builds in DIR, named
LABEL.kvbuf, are measured in the same run. Results are checked against PyTorch
in float32.
"""

import math
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import common  # noqa: E402
import problem  # noqa: E402

HEADS, KV_HEADS, SIZE, PAGE = 32, 8, 128, 64

#: Name: rows of each sequence and tokens that are cached before them.
CASES = {
    "2048 + 255 x 1, 2k": ([2048] + [1] * 255, [0] + [2048] * 255),
    "2048 + 255 x 1, 2k..8k": ([2048] + [1] * 255,
                               [0] + [2048 + 24 * i for i in range(255)]),
    "4 x 512 + 60 x 1, 4k": ([512] * 4 + [1] * 60, [0] * 4 + [4096] * 60),
    "8 x 256 + 64 x 1, mingled": (([256] + [1] * 8) * 8, ([2048] + [4096] * 8) * 8),
    "2048 + 255 x 0": ([2048] + [0] * 255, [0] * 256),
    "4 x 2048": ([2048] * 4, [0] * 4),
    "64 x 128": ([128] * 64, [0] * 64),
    "2048": ([2048], [0]),
    "64 x 1, 4k": ([1] * 64, [4096] * 64),
}


class Batch:
    """The tensors of a case, and of the sequences of it that `keep` wants."""

    def __init__(self, torch, rows, cached):
        self.rows, self.keys = rows, [r + c for r, c in zip(rows, cached)]
        pages = [math.ceil(n / PAGE) for n in self.keys]
        self.q = torch.randn(sum(rows), HEADS, SIZE, device="cuda",
                             dtype=torch.bfloat16)
        self.out = torch.empty_like(self.q)
        self.k, self.v = (torch.randn(sum(pages) + 1, PAGE, KV_HEADS, SIZE,
                                      device="cuda", dtype=torch.bfloat16)
                          for _ in "kv")
        order = torch.randperm(sum(pages), device="cuda").to(torch.int32)
        self.table = torch.zeros((len(rows), max(max(pages), 1)), device="cuda",
                                 dtype=torch.int32)
        for b, own in enumerate(order.split(pages)):
            self.table[b, :len(own)] = own
        self.lengths = torch.tensor(self.keys, device="cuda", dtype=torch.int32)
        self.starts = [sum(rows[:i]) for i in range(len(rows) + 1)]

    def given(self, torch, keep=None, longest=None):
        """What a launch of the sequences from `keep[0]` to `keep[1]` is given;
        their rows lie side by side."""
        first, end = keep or (0, len(self.rows))
        low, high = self.starts[first], self.starts[end]
        offsets = torch.tensor([s - low for s in self.starts[first:end + 1]],
                               device="cuda", dtype=torch.int32)
        given = {"q": self.q[low:high], "out": self.out[low:high],
                 "k": self.k, "v": self.v, "q_offsets": offsets,
                 "seq_q": longest or max(self.rows[first:end])}
        for name in "kv":
            given[f"{name}_table"] = self.table[first:end]
            given[f"{name}_lengths"] = self.lengths[first:end]
        return given

    def wrong(self, torch):
        """What is wrong with some sequences' results, or ""."""
        for b in {0, len(self.rows) // 2, len(self.rows) - 1}:
            n, keys = self.rows[b], self.keys[b]
            if not n:
                continue
            low = self.starts[b]
            pages = self.table[b, :math.ceil(keys / PAGE)].long()
            k, v = (x[pages].flatten(0, 1)[:keys].float().repeat_interleave(
                HEADS // KV_HEADS, 1) for x in (self.k, self.v))
            s = torch.einsum("ihd,jhd->hij", self.q[low:low + n].float(), k)
            i = torch.arange(n, device="cuda")[:, None]
            j = torch.arange(keys, device="cuda")[None]
            s = (s / math.sqrt(SIZE)).masked_fill(j > i + keys - n, -math.inf)
            want = torch.einsum("hij,jhd->ihd", s.softmax(-1), v)
            error = (self.out[low:low + n].float() - want).abs().max().item()
            if not error < 2e-2:
                return f"error {error} in sequence {b}"
        return ""


def graph(torch, run, launches):
    stream = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        run()
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(launches):
                run()
    return graph


def kernels():
    """{file name without .kvbuf: (module, schedule)}."""
    return {"kvbuf": (problem.problem(
        heads=HEADS, kv_heads=KV_HEADS, head_size=SIZE, query="ragged", cache="paged",
        page_size=PAGE, causal=True, lengths="all"), "")}


def contestants(torch, name, artifacts):
    """{name: a function that launches}, and what is wrong with results."""
    rows, cached = CASES[name]
    torch.manual_seed(1)
    batch = Batch(torch, rows, cached)
    split = sum(n > 1 for n in rows)
    sorted_ = all(n > 1 for n in rows[:split])
    runs = {}
    for label, artifact in artifacts.items():
        whole = batch.given(torch)
        runs[f"{label} mixed"] = lambda a=artifact, w=whole: a(**w)
        if not sorted_ or not 0 < split < len(rows) or not rows[-1]:
            continue
        long = batch.given(torch, (0, split))
        short = batch.given(torch, (split, len(rows)))
        runs[f"{label} long"] = lambda a=artifact, w=long: a(**w)
        runs[f"{label} short"] = lambda a=artifact, w=short: a(**w)
        other = batch.given(torch, (split, len(rows)), longest=8)
        runs[f"{label} short8"] = lambda a=artifact, w=other: a(**w)
        runs[f"{label} two"] = lambda a=artifact, l=long, s=short: (
            a(**l), a(**s))
    wrong = {}
    for label, run in runs.items():
        if label.endswith("mixed") or label.endswith("two"):
            batch.out.fill_(math.nan)
            run()
            if said := batch.wrong(torch):
                wrong[label] = said
    return runs, wrong


def measure(torch, name, artifacts, launches, rounds):
    runs, wrong = contestants(torch, name, artifacts)
    for label, said in wrong.items():
        print(f"  {name}: {label}: WRONG, {said}", flush=True)
    graphs = {label: graph(torch, run, launches) for label, run in runs.items()}
    times = {label: [] for label in runs}
    for label in common.in_turns(runs, rounds):
        us, = common.microseconds(torch, graphs[label].replay)
        times[label].append(us / launches)
    print(f"{name:26}" + "  ".join(
        f"{label} {statistics.median(t[1:]):.1f}" for label, t in times.items()),
        flush=True)


def main():
    parser = common.kernels_parser(__doc__, rounds=5, launches=10,
                                   what="kernel")
    parser.add_argument("--cases", default="", help="part of a case's name [all]")
    options = parser.parse_args()
    if options.build:
        return common.build(options.folder, kernels(), options.target,
                            options.kvbuf_compile)
    import torch
    import kvbuf
    print(torch.cuda.get_device_name(), flush=True)
    artifacts = {path.stem: kvbuf.load(str(path))
                 for path in sorted(options.folder.glob("*.kvbuf"))}
    for name in CASES:
        if options.cases in name:
            measure(torch, name, artifacts, options.launches, options.rounds)
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
