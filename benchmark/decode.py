#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of few query rows: GB/s of K and V, beside what the memory gives.

    benchmark/decode.py --build DIR --target=sm_90a    # needs kvbuf-compile
    benchmark/decode.py DIR                            # needs a GPU and PyTorch

One process; contestants take turns, and every other round the order is
reversed. Before each launch the L2 is flushed by reading (a flush by zeroing
leaves dirty lines, whose writing back is charged to the kernel). The ceiling is
a kernel that copies the same bytes to shared memory and computes nothing
(read_kv.cu). "graph" replays 24 launches over copies that do not
fit the L2. Each result is checked against PyTorch in float32.
"""

import ctypes
import dataclasses
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402
import problem  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Case:
    heads: int
    kv_heads: int
    size: int
    context: int
    batch: int
    page: int = 0
    queries: int = 1
    #: Sequences of 50 to `context` tokens, more of them short than long.
    ragged: bool = False
    #: K and V in e4m3, with a scale each.
    fp8: bool = False

    @property
    def problem(self):
        """The name of the kernel."""
        cache = f"p{self.page}" if self.page else "dense"
        rows = f"-q{self.queries}" if self.queries > 1 else ""
        fp8 = "fp8-" if self.fp8 else ""
        return f"{fp8}h{self.heads}_{self.kv_heads}-d{self.size}-{cache}{rows}"

    @property
    def name(self):
        word = "-ragged" if self.ragged else ""
        return f"{self.problem}-{self.context}x{self.batch}{word}"

    @property
    def lengths(self):
        """Tokens of each sequence."""
        if not self.ragged:
            return [self.context] * self.batch
        lengths = [50 + round((self.context - 50) * (i / (self.batch - 1)) ** 2.2)
                   for i in range(self.batch)]
        random.Random(1).shuffle(lengths)
        return lengths

    @property
    def bytes(self):
        each = 1 if self.fp8 else 2
        return 2 * each * sum(self.lengths) * self.kv_heads * self.size

    def options(self):
        return {"heads": self.heads, "kv_heads": self.kv_heads,
                "head_size": self.size, "seq_q": self.queries,
                "causal": self.queries > 1, "page_size": self.page,
                "cache": "paged" if self.page else "dense",
                "lengths": "all" if self.page else "",
                "kv_dtype": "f8E4M3FN" if self.fp8 else "",
                "granularity": "tensor" if self.fp8 else ""}


CASES = ([Case(32, 8, 128, 8192, 64, page) for page in (0, 64, 16, 1)]
         + [Case(64, 8, 128, 4096, 128, page) for page in (0, 16)]
         + [Case(32, 8, 64, 8192, 128, page) for page in (0, 16)]
         + [Case(32, 8, 256, 8192, 32, page) for page in (0, 16)]
         + [Case(32, 8, 128, 16050, 64, page, ragged=True) for page in (16, 64)]
         + [Case(32, 8, 128, 131072, 1, page) for page in (0, 16)]
         + [Case(32, 8, 128, 8192, 1), Case(32, 8, 128, 1024, 1)]
         + [Case(32, 8, 128, 8192, 64, 0, 4)]
         + [Case(32, 8, 128, 8192, 64, page, fp8=True) for page in (0, 64, 16, 1)]
         + [Case(64, 8, 128, 4096, 128, page, fp8=True) for page in (0, 16)]
         + [Case(16, 4, 512, 8192, 16, page) for page in (16, 64)]
         + [Case(32, 8, 128, 8192, 64, 16, 8, fp8=True)])

#: Schedules to measure besides the default one, by label.
VARIANTS = {"": ""}


class Ceiling:
    """A kernel that copies K and V to shared memory and computes nothing: 64 KB
    are on their way to each multiprocessor, as in the kernels measured. Compiled
    by nvcc, unless the folder has it."""

    def __init__(self, folder):
        library = folder / "libread_kv.so"
        if not library.exists():
            source = pathlib.Path(__file__).resolve().parent / "read_kv.cu"
            subprocess.run(["nvcc", "-arch=native", "-O3", "-shared", "-Xcompiler",
                            "-fPIC", "-o", str(library), str(source)],
                           check=True)
        self.read = ctypes.CDLL(str(library)).readBytes
        self.read.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long,
                              ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]

    def runner(self, torch, k, v):
        blocks = min(
            4 * torch.cuda.get_device_properties(0).multi_processor_count,
            k.nbytes // 4096)
        # Whole steps of 4 KB for each block: a little less than all.
        each = k.nbytes // (4096 * blocks) * 4096 * blocks
        out = torch.empty(1, device="cuda")

        def run():
            status = self.read(k.data_ptr(), v.data_ptr(), each, blocks,
                               out.data_ptr(),
                               torch.cuda.current_stream().cuda_stream)
            assert status == 0, status
        run.share = each / k.nbytes
        return run


def kernels(cases):
    """{file name without .kvbuf: (module, schedule)}."""
    made = {}
    for case in cases:
        for label, schedule in VARIANTS.items():
            name = case.problem + (f"@{label}" if label else "")
            made[name] = (problem.problem(**case.options()),
                          ",".join(filter(None, ["split_keys=true", schedule])))
    return made


def open_kernels(cases):
    """Likewise, of problems that leave the number of query rows open."""
    return {f"{case.problem}@open": (problem.problem(**case.options() | {"seq_q": 0}),
                                     "") for case in cases}


class Tensors:
    """One copy of a case's tensors."""

    def __init__(self, torch, case):
        def normal(*shape):
            return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
        c = case

        def keys(*shape):
            if not c.fp8:
                return normal(*shape)
            # By parts: numbers of a whole cache in f32 would fill the memory.
            x = torch.empty(shape, device="cuda", dtype=torch.float8_e4m3fn)
            for part in x.view(-1).split(1 << 28):
                numbers = 100 * torch.randn(part.shape, device="cuda")
                part.copy_(numbers.clamp(-448, 448))
            return x
        self.q = normal(c.batch, c.queries, c.heads, c.size)
        self.out = torch.empty_like(self.q)
        self.given = {"q": self.q, "out": self.out}
        if not c.page:
            self.k, self.v = (keys(c.batch, c.context, c.kv_heads, c.size)
                              for _ in "kv")
            self.give_cache(torch)
            return
        pages = [math.ceil(n / c.page) for n in c.lengths]
        self.k, self.v = (keys(sum(pages), c.page, c.kv_heads, c.size)
                          for _ in "kv")
        # Pages at random places; no page past a sequence's end exists.
        order = torch.randperm(sum(pages), device="cuda").to(torch.int32)
        self.table = torch.full((c.batch, max(pages)), 0x3FFFFFFF,
                                device="cuda", dtype=torch.int32)
        for b, own in enumerate(order.split(pages)):
            self.table[b, :len(own)] = own
        lengths = torch.tensor(c.lengths, device="cuda", dtype=torch.int32)
        self.give_cache(torch)
        for name in "kv":
            self.given[f"{name}_table"] = self.table
            self.given[f"{name}_lengths"] = lengths

    def give_cache(self, torch):
        self.scales = {}
        for name, x in ("k", self.k), ("v", self.v):
            self.given[name] = x
            if x.element_size() == 1:
                # 8-bit floats go as bytes.
                self.given[name] = x.view(torch.uint8)
                self.scales[name] = torch.tensor(
                    [0.008 if name == "k" else 0.012], device="cuda")
                self.given[f"{name}_scales"] = self.scales[name]

    def sequence(self, which, b, case):
        """Keys or values of a sequence, [tokens, heads, size], float32."""
        x = self.k if which == "k" else self.v
        if not case.page:
            x = x[b]
        else:
            length = case.lengths[b]
            pages = self.table[b, :math.ceil(length / case.page)].long()
            bits = x.view(x.dtype if x.element_size() > 1 else self.q.dtype)
            x = bits[pages].view(x.dtype).flatten(0, 1)[:length]
        scale = self.scales.get(which)
        return x.float() if scale is None else x.float() * scale


def reference(torch, case, tensors, b):
    """[queries, heads, size] of a sequence, float32."""
    q = tensors.q[b].float()
    k, v = (tensors.sequence(w, b, case).repeat_interleave(
        case.heads // case.kv_heads, 1) for w in "kv")
    s = torch.einsum("ihd,jhd->hij", q, k) / math.sqrt(case.size)
    i = torch.arange(case.queries, device="cuda")[:, None]
    keys = case.lengths[b]
    j = torch.arange(keys, device="cuda")[None]
    s.masked_fill_(j > i + keys - case.queries, -math.inf)
    return torch.einsum("hij,jhd->ihd", s.softmax(-1), v)


def measure(torch, case, artifacts, ceiling, rounds, launches, wrong=None):
    """{contestant: microseconds}, medians; checks the results first. What is wrong
    is printed, and added to the list `wrong`."""
    tensors = Tensors(torch, case)
    runs = {}
    for label, artifact in artifacts.items():
        runs[label] = lambda artifact=artifact: artifact(**tensors.given)
        tensors.out.fill_(math.nan)
        runs[label]()
        for b in range(case.batch) if case.ragged else {0, case.batch - 1}:
            want = reference(torch, case, tensors, b)
            error = (tensors.out[b].float() - want).abs().max().item()
            if not error < 2e-2:
                print(f"{case.name} {label}: WRONG, error {error}", flush=True)
                if wrong is not None:
                    wrong.append(f"{label}: error {error}")
    if not case.page and case.queries == 1 and not case.fp8:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        group = case.heads // case.kv_heads
        # The heads of a group as query rows, as cuDNN likes it best.
        q = tensors.q.view(case.batch, case.kv_heads, group, case.size)
        k, v = (x.transpose(1, 2) for x in (tensors.k, tensors.v))

        def cudnn():
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                torch.nn.functional.scaled_dot_product_attention(q, k, v)
        try:
            cudnn()
            runs["cudnn"] = cudnn
        except RuntimeError as error:
            print(f"{case.name}: no cuDNN: {str(error).splitlines()[0]}")
    if ceiling:
        runs["ceiling"] = ceiling.runner(torch, tensors.k, tensors.v)
    flush = torch.empty(64 << 20, device="cuda", dtype=torch.int32)
    times = {label: [] for label in runs}
    for label in common.in_turns(runs, rounds):
        times[label].append(statistics.median(common.microseconds(
            torch, runs[label], launches, before=flush.max)))
    return {label: statistics.median(t) / getattr(runs[label], "share", 1)
            for label, t in times.items()}


def replay(torch, case, artifact=None, ceiling=None):
    """Microseconds a launch in a graph of 24, over copies beyond the L2; of what only
    copies them, without an artifact."""
    copies = [Tensors(torch, case)
              for _ in range(max(1, min(6, (256 << 20) // case.bytes + 1)))]
    runs = [(lambda c=c: artifact(**c.given)) if artifact else
            ceiling.runner(torch, c.k, c.v) for c in copies]
    stream = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        for run in runs:
            run()
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            for n in range(24):
                runs[n % len(runs)]()
    samples = [common.microseconds(torch, graph.replay)[0] / 24
               for _ in range(7)]
    for c in copies:
        if artifact and c.out.isnan().any():
            print(f"{case.name}: WRONG in a graph")
    return statistics.median(samples) / getattr(runs[0], "share", 1)


def main(arguments=None):
    parser = common.kernels_parser(__doc__, rounds=3, launches=10)
    parser.add_argument("--cases", default="", metavar="REGEX",
                        help="names that match [all]")
    parser.add_argument("--variant", action="append", default=[],
                        metavar="LABEL=SCHEDULE",
                        help="one more schedule; may be repeated")
    options = parser.parse_args(arguments)
    for text in options.variant:
        label, _, schedule = text.partition("=")
        VARIANTS[label] = schedule
    cases = [c for c in CASES if re.search(options.cases, c.name)]
    if options.build:
        return common.build(options.folder, kernels(cases), options.target,
                            options.kvbuf_compile)
    import torch
    import kvbuf
    print(torch.cuda.get_device_name(), flush=True)
    try:
        ceiling = Ceiling(options.folder)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"no ceiling: {error}")
        ceiling = None
    for case in cases:
        artifacts = {}
        for path in sorted(options.folder.glob(f"{case.problem}*.kvbuf")):
            label = path.stem[len(case.problem):].lstrip("@-") or "kvbuf"
            if path.stem[len(case.problem):][:1] in ("", "@", "-") and not (
                    path.stem[len(case.problem):].startswith("-q")):
                artifacts[label] = kvbuf.load(str(path))
        if not artifacts:
            continue
        times = measure(torch, case, artifacts, ceiling, options.rounds,
                        options.launches)
        top = times.get("ceiling")
        for label, us in sorted(times.items(), key=lambda x: x[1]):
            line = (f"{case.name:30} {label:14} {us:8.1f} us "
                    f"{case.bytes / us / 1e3:6.0f} GB/s")
            if top:
                line += f"  {top / us:6.1%} of the ceiling"
            if case.batch == 1 and label in artifacts:
                us = replay(torch, case, artifacts[label])
                line += (f"  graph {us:6.1f} us "
                         f"{case.bytes / us / 1e3:6.0f} GB/s")
            print(line, flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    common.need_gpu("decode.py", "--build")
    sys.exit(main())
