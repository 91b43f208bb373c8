# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the comparisons do on a GPU, with PyTorch: contestants, clocks, checks.

Tensors lie as [batch, seq, heads, size], or [rows, heads, size] for a ragged
batch; PyTorch's attention gets transposed views of them.
"""

import dataclasses
import itertools
import math
import statistics
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

WARMUP_SECONDS = 1.0
#: Elements of a block of scores when the reference is made.
BLOCK = 1 << 26


class Work:
    """Random normal inputs of an attention problem.

    ``lengths``: rows of each sequence of a ragged batch; else ``batch``
    sequences of ``seq`` rows.
    """

    def __init__(self, heads, kv_heads, size, causal, batch, seq, lengths=(),
                 dtype=torch.bfloat16, scale=None, seed=1):
        self.heads, self.kv_heads, self.size = heads, kv_heads, size
        self.causal, self.dtype = causal, dtype
        self.scale = scale if scale is not None else 1 / math.sqrt(size)
        self.lengths = list(lengths) or [seq] * batch
        self.ragged = bool(lengths)
        rows = [sum(lengths)] if self.ragged else [batch, seq]
        generator = torch.Generator("cuda").manual_seed(seed)
        self.q, self.k, self.v = (
            torch.randn(*rows, n, size, device="cuda", dtype=torch.float32,
                        generator=generator).to(dtype)
            for n in (heads, kv_heads, kv_heads))
        ends = list(itertools.accumulate(self.lengths))
        self.offsets = torch.tensor([0, *ends], dtype=torch.int32,
                                    device="cuda")
        self.starts = [0, *ends]

    def sequence(self, tensor, b):
        """[seq, heads, size] of one sequence."""
        if self.ragged:
            return tensor[self.starts[b]:self.starts[b + 1]]
        return tensor[b]


def sdpa(work, backend):
    """A function that runs PyTorch's attention. A backend that refuses grouped
    heads gets K and V repeated, ahead of all timing."""
    q, k, v = (x.transpose(1, 2) for x in (work.q, work.k, work.v))
    grouped = work.heads != work.kv_heads

    def attention(k, v, grouped):
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=work.causal, scale=work.scale,
                enable_gqa=grouped).transpose(1, 2)

    try:
        attention(k, v, grouped)
    except RuntimeError:
        if not grouped:
            raise
        k, v = (x.repeat_interleave(work.heads // work.kv_heads, 1)
                for x in (k, v))
        grouped = False
    return lambda: attention(k, v, grouped)


def cudnn(work):
    return sdpa(work, SDPBackend.CUDNN_ATTENTION)


def flash_attention_2(work):
    return sdpa(work, SDPBackend.FLASH_ATTENTION)


def kernel(work, artifact):
    """Likewise for one of this project's kernels."""
    out = torch.empty_like(work.q)
    tensors = {"q": work.q, "k": work.k, "v": work.v, "out": out}
    if work.ragged:
        tensors |= {"q_offsets": work.offsets, "k_offsets": work.offsets,
                    "v_offsets": work.offsets, "seq_q": max(work.lengths)}

    def run():
        return artifact(**tensors)
    run.out = out
    return run


def output(run):
    """A contestant's result; one that writes where it is told finds NaN there."""
    if hasattr(run, "out"):
        run.out.fill_(float("nan"))
    return run()


def warm_up(run):
    end = time.monotonic() + WARMUP_SECONDS
    while time.monotonic() < end:
        for _ in range(5):
            run()
        torch.cuda.synchronize()


def capture(run, calls):
    """A function that replays `calls` calls of `run` as one CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):  # what is made at the first call is made here
            run()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(calls):
            run()
    return graph.replay


def _event():
    return torch.cuda.Event(enable_timing=True)


def _milliseconds(run, calls):
    """Of one call, roughly."""
    first, last = _event(), _event()
    first.record()
    for _ in range(calls):
        run()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) / calls


class Samples(list):
    """Milliseconds of a launch, one for each turn, and in `megahertz` the clock
    of each turn where stamps told it."""

    def __init__(self, milliseconds, megahertz=()):
        super().__init__(milliseconds)
        self.megahertz = list(megahertz)


class Turn:
    """Launches between two events, and two stamps where there are any."""

    def __init__(self, calls, stamps):
        self.calls, self.stamps = calls, stamps
        self.events, self.marks = [], []

    def point(self):
        """The beginning, and then the end; stamps lie outside of the time."""
        if self.stamps and not self.events:
            self.marks.append(self.stamps.mark())
        event = _event()
        event.record()
        self.events.append(event)
        if self.stamps and len(self.events) == 2:
            self.marks.append(self.stamps.mark())

    def milliseconds(self):
        return self.events[0].elapsed_time(self.events[1]) / self.calls

    @staticmethod
    def samples(turns):
        """Of turns that have run."""
        return Samples([t.milliseconds() for t in turns],
                       [t.stamps.megahertz(*t.marks) for t in turns
                        if t.stamps])


def _prepare(contestants, sample_ms, graphs):
    """Warms up everyone; {name: (a function that launches, launches of it)},
    about `sample_ms` of them, at least one."""
    turns = {}
    for name, run in contestants.items():
        warm_up(run)
        calls = max(1, round(sample_ms / _milliseconds(run, 10)))
        turns[name] = (capture(run, calls) if graphs else
                       lambda run=run, n=calls: [run() for _ in range(n)],
                       calls)
    return turns


def order(names, i):
    """Who runs when in round i: each pair of rounds begins with another one, and the
    second is the first one backwards, so that a clock or a card's heat that drifts
    is everybody's, and so are the predecessors."""
    begin = i // 2 % len(names)
    turned = names[begin:] + names[:begin]
    return turned[::-1] if i % 2 else turned


def measure(contestants, rounds, sample_ms=0.0, graphs=False, stamps=None):
    """{name: Samples, one for each round}.

    Every contestant warms up for a second. Then they take turns without a
    pause (`order`). Turns of a few milliseconds are
    shorter than the power limit takes to act, so all have the clock of their
    mixture: the ratio of two times is one of cycles. A turn is as many launches
    as take about `sample_ms` (at least one) between two events. With `graphs` a
    turn is one CUDA graph, so that what a launch costs the host is no part of
    the time.
    """
    prepared = _prepare(contestants, sample_ms, graphs)
    for launch, _ in prepared.values():
        launch()
    turns = {name: [] for name in contestants}
    names = list(contestants)
    for i in range(rounds):
        for name in order(names, i):
            launch, calls = prepared[name]
            turn = Turn(calls, stamps)
            turn.point()
            launch()
            turn.point()
            turns[name].append(turn)
    # Nothing waits in between: the queue stays full.
    torch.cuda.synchronize()
    return {name: Turn.samples(turns[name]) for name in names}


def sustain(contestants, rounds, seconds, sample_ms=5.0, graphs=False,
            stamps=None):
    """{name: Samples, one for each round}, each at the clock that its own power
    allows.

    Each contestant holds the card for `seconds` at a time, without a pause; the
    first third, in which the clock settles, is left out. Rounds are in `order`.
    """
    prepared = _prepare(contestants, sample_ms, graphs)
    turns = {name: [] for name in contestants}
    names = list(contestants)
    for i in range(rounds):
        for name in order(names, i):
            launch, calls = prepared[name]
            repeats = max(3, round(1e3 * seconds / _milliseconds(launch, 1)))
            settling = repeats // 3
            for _ in range(settling):
                launch()
            turn = Turn(calls * (repeats - settling), stamps)
            turn.point()
            for _ in range(repeats - settling):
                launch()
            turn.point()
            turns[name].append(turn)
            torch.cuda.synchronize()
    return {name: Turn.samples(turns[name]) for name in names}


def medians(contestants, mode, rounds=10, turns=3, seconds=0.6):
    """{name: milliseconds} of launches in graphs. mode "cycles": `rounds` turns of 5 ms
    without a pause; "sustained": `turns` of `seconds`."""
    took = (measure(contestants, rounds, 5.0, graphs=True) if mode == "cycles"
            else sustain(contestants, turns, seconds, graphs=True))
    return {name: statistics.median(samples) for name, samples in took.items()}


class Errors:
    """Of one output: the largest, that beyond an ulp, the sum, the worst
    row's."""

    def __init__(self):
        self.largest = self.beyond = self.total = self.worst = 0.0
        self.nan = False

    def add(self, out, reference, ulp):
        error = (out.float() - reference).abs()
        self.nan |= bool(error.isnan().any())
        self.largest = max(self.largest, error.max().item())
        self.beyond = max(self.beyond, (error - ulp).max().item())
        self.total += error.sum(dtype=torch.float64).item()
        norms = reference.norm(dim=-1).clamp_min(1e-30)
        self.worst = max(self.worst, (error.norm(dim=-1) / norms).max().item())


def _attention(work, b, h):
    """(rows, reference, baseline) of one head of one sequence, some rows at a
    time: attention in float32, and the same with P rounded to the operands' type
    and the result to the output's."""
    group = work.heads // work.kv_heads
    q, k, v = (work.sequence(x, b)[:, i].float() for x, i in (
        (work.q, h), (work.k, h // group), (work.v, h // group)))
    length = q.shape[0]
    step = max(1, BLOCK // max(1, length))
    for begin in range(0, length, step):
        end = min(begin + step, length)
        # No row of a causal block sees what follows its last one.
        seen = end if work.causal else length
        s = q[begin:end] @ k[:seen].T * work.scale
        if work.causal:
            s.masked_fill_(torch.ones_like(s, dtype=torch.bool).triu_(
                begin + 1), float("-inf"))
        p = torch.exp(s - s.amax(-1, keepdim=True))
        total = p.sum(-1, keepdim=True)
        rounded = p.to(work.dtype).float()
        yield (slice(begin, end), p @ v[:seen] / total,
               (rounded @ v[:seen] / total).to(work.dtype).float())


@dataclasses.dataclass
class Verdict:
    """The largest and the mean error, both also in units of the baseline's, and
    what is wrong, or ""."""
    largest: float
    mean: float
    largest_ratio: float
    mean_ratio: float
    wrong: str


def check(work, outputs):
    """{name: Verdict} of outputs that lie like q.

    The rule is kvbuf-run's, with float32 for the reference: with `ulp` the
    rounding of the output at the reference's magnitude, the largest error may be
    twice the baseline's plus ulp, the mean 1.15 times plus 1e-6, the worst row
    1.5 times.
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    bits = {torch.bfloat16: 8, torch.float16: 11}[work.dtype]
    base = Errors()
    errors = {name: Errors() for name in outputs}
    for b in range(len(work.lengths)):
        for h in range(work.heads):
            for rows, reference, baseline in _attention(work, b, h):
                ulp = torch.ldexp(torch.ones_like(reference),
                                  torch.frexp(reference).exponent - bits)
                base.add(baseline, reference, ulp)
                for name, out in outputs.items():
                    errors[name].add(work.sequence(out, b)[rows, h], reference,
                                     ulp)
    count = work.q.numel()
    mean = base.total / count
    verdicts = {}
    for name, e in errors.items():
        own = e.total / count
        wrong = ""
        if e.nan:
            wrong = "the result holds NaN"
        elif e.beyond > 2 * base.largest:
            wrong = (f"largest error {e.largest:.3g}, the baseline's is "
                     f"{base.largest:.3g}")
        elif own > 1.15 * mean + 1e-6:
            wrong = f"mean error {own:.3g}, the baseline's is {mean:.3g}"
        elif e.worst > 1.5 * base.worst:
            wrong = (f"worst row {e.worst:.3g}, the baseline's is "
                     f"{base.worst:.3g}")
        verdicts[name] = Verdict(e.largest, own,
                                 e.largest / max(base.largest, 1e-30),
                                 own / max(mean, 1e-30), wrong)
    return verdicts


def machine():
    """What the numbers were measured on."""
    return {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version()}
