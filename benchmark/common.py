# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the comparisons share and needs no GPU: options, cases, statistics,
tables."""

import argparse
import concurrent.futures
import ctypes
import dataclasses
import fnmatch
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys


def why_no_gpu():
    """Why CUDA finds no GPU here, or nothing. Asks the driver, and not torch,
    which may be absent and takes seconds to load."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "the CUDA driver (libcuda.so.1) is not installed"
    count = ctypes.c_int(0)
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status:
        return f"the CUDA driver reports error {status}"
    return "" if count.value else "the CUDA driver finds none"


def need_gpu(script, *without):
    """Ends the script at once where there is no GPU, unless one of the options
    `without` is given, which need none: `--name` with any value, or `--name=value`."""
    given = set(sys.argv[1:]) | {arg.split("=")[0] for arg in sys.argv[1:]}
    if {"-h", "--help", *without} & given:
        return
    if reason := why_no_gpu():
        sys.exit(f"{script}: there is no GPU here: {reason}")


def kernels_parser(doc, *, rounds, launches, what="kernels"):
    """A parser for a script that compiles its `what` into a folder and, in
    another call, measures what lies there; `rounds` and `launches` are usual."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", metavar="DIR", type=pathlib.Path)
    parser.add_argument("--build", action="store_true",
                        help=f"compile the {what} into DIR")
    parser.add_argument("--target", default="sm_90a", help="chip [sm_90a]")
    parser.add_argument("--kvbuf-compile", default="kvbuf-compile",
                        metavar="PATH")
    parser.add_argument("--rounds", type=int, default=rounds,
                        help=f"turns of each contestant [{rounds}]")
    parser.add_argument("--launches", type=int, default=launches,
                        help=f"launches of a turn [{launches}]")
    return parser


def steps_parser(doc, *, target=None, target_help):
    """A parser for a script that compiles into a folder with a compiler, and runs
    what lies there with a GPU, perhaps on another machine."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawTextHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--compile", metavar="DIR", type=pathlib.Path)
    what.add_argument("--run", metavar="DIR", type=pathlib.Path)
    parser.add_argument("--target", default=target, help=target_help)
    return parser


def build(folder, kernels, target, compiler, jobs=None):
    """Compiles {name: (module, schedule)} to NAME.kvbuf in a folder, `jobs` at a time
    [as many as there are cores]; prints how each went, and returns how many failed."""
    folder.mkdir(parents=True, exist_ok=True)

    def one(name, text, schedule):
        return name, subprocess.run(
            [compiler, "-", "-o", str(folder / f"{name}.kvbuf"),
             f"--target={target}", f"--schedule={schedule}"],
            input=text, capture_output=True, text=True)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        running = [pool.submit(one, name, *job) for name, job in kernels.items()]
        for job in concurrent.futures.as_completed(running):
            name, done = job.result()
            failed += done.returncode != 0
            print(f"{name}.kvbuf: {done.stderr if done.returncode else 'done'}",
                  flush=True)
    return failed


def in_turns(labels, rounds):
    """Each label once a round; every other round reverses their order."""
    labels = list(labels)
    for turn in range(rounds):
        yield from labels[::-1] if turn % 2 else labels


def microseconds(torch, run, launches=1, before=lambda: None):
    """Of each of `launches` calls of `run` by events of CUDA, `before` called
    ahead of each. Ends when the device has."""
    pairs = []
    for _ in range(launches):
        before()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        pairs.append((start, end))
    torch.cuda.synchronize()
    return [1e3 * start.elapsed_time(end) for start, end in pairs]


@dataclasses.dataclass(frozen=True)
class Case:
    """A problem at sizes, and how fast it has to be.

    ``required`` and ``aim`` are ratios of rates (operations a second): to
    cuDNN's on the same tensors, or, for ``lengths`` (a ragged batch), to the
    same kernel's on lengths that are whole tiles. They hold for turns of a few
    milliseconds, which measure cycles; ``sustained`` is the pair for turns of a
    second, each at the clock that its own power allows.
    """
    heads: int
    kv_heads: int
    head_size: int
    causal: bool
    seq: int
    batch: int
    required: float
    aim: float
    lengths: tuple = ()
    sustained: tuple = ()

    def in_mode(self, mode):
        """This case, to be judged in a mode: "cycles" or "sustained"."""
        if mode == "cycles" or not self.sustained:
            return self
        required, aim = self.sustained
        return dataclasses.replace(self, required=required, aim=aim)

    @property
    def problem(self):
        """The name of its kernel: all that a compiler needs to know."""
        gqa = "" if self.kv_heads == self.heads else (
            f"-gqa{self.heads}_{self.kv_heads}")
        ragged = "-ragged" if self.lengths else ""
        mask = "causal" if self.causal else "full"
        return f"d{self.head_size}-{mask}{gqa}{ragged}"

    @property
    def name(self):
        sizes = (f"{min(self.lengths)}..{max(self.lengths)}x{self.batch}"
                 if self.lengths else f"{self.seq}x{self.batch}")
        return f"{self.problem}-{sizes}"

    def options(self):
        """For problem.py."""
        layout = "ragged" if self.lengths else "dense"
        return {"name": "attention", "heads": self.heads,
                "kv_heads": self.kv_heads, "head_size": self.head_size,
                "causal": self.causal, "query": layout, "cache": layout}

    def flop(self, lengths=()):
        """Operations of both products; causal cases count half."""
        squares = sum(n * n for n in lengths or self.lengths
                      or [self.seq] * self.batch)
        return 4 * self.heads * self.head_size * squares / (2 if self.causal
                                                           else 1)


def ragged_lengths(count=16, least=100, most=4000, tile=128, seed=1):
    """Random lengths that are no multiple of a tile."""
    random_ = random.Random(seed)
    lengths = [least, most]
    while len(lengths) < count:
        length = random_.randint(least, most)
        if length % tile:
            lengths.append(length)
    return tuple(lengths)


def whole_tiles(lengths, tile=128):
    """Likewise, each rounded to the next multiple of the tile, at least one."""
    return tuple(max(tile, round(n / tile) * tile) for n in lengths)


def all_cases():
    """bf16; 16k tokens and 2048 = heads * head size, unless the case says
    otherwise."""
    cases = []
    for size, full, causal in (
            (128, ((1.08, 1.15), (1.12, 1.15)), ((1.18, 1.27), (1.19, 1.25))),
            (64, ((1.05, 1.12), (1.13, 1.16)), ((1.10, 1.18), (1.12, 1.15))),
            (256, ((1.05, 1.15), (1.09, 1.12)), ((1.15, 1.27), (1.17, 1.22)))):
        for mask, (cycles, sustained) in (False, full), (True, causal):
            for seq, batch in (4096, 4), (16384, 1):
                heads = 2048 // size
                cases.append(Case(heads, heads, size, mask, seq, batch, *cycles,
                                  sustained=sustained))
    cases += [Case(32, 8, 128, True, 4096, 4, 1.15, 1.25,
                   sustained=(1.17, 1.25)),
              Case(32, 8, 128, True, 32768, 1, 1.10, 1.20,
                   sustained=(1.15, 1.20)),
              Case(16, 16, 128, False, 1024, 16, 1.05, 1.15,
                   sustained=(1.10, 1.15)),
              Case(16, 16, 128, True, 1024, 16, 1.10, 1.20,
                   sustained=(1.15, 1.20)),
              Case(16, 16, 128, True, 4000, 16, 0.9, 1.0, ragged_lengths())]
    return cases


def select(cases, patterns):
    """The cases whose name, or kernel, matches one of the patterns (shell
    style, separated by commas). Raises ValueError if one matches none."""
    chosen = []
    for pattern in patterns.split(","):
        found = [c for c in cases if fnmatch.fnmatch(c.name, pattern)
                 or c.problem == pattern]
        if not found:
            raise ValueError(f"no case matches '{pattern}'; there are "
                             + ", ".join(c.name for c in cases))
        chosen += [c for c in found if c not in chosen]
    return [c for c in cases if c in chosen]


def find_artifacts(folder, case):
    """{label: path} of the kernels to run a case with: NAME.kvbuf, and
    NAME@LABEL.kvbuf for others beside it, where NAME is the case's or else its
    problem's."""
    folder = pathlib.Path(folder)
    for name in case.name, case.problem:
        found = {}
        for path in sorted(folder.glob(f"{name}*.kvbuf")):
            stem, _, label = path.name.removesuffix(".kvbuf").partition("@")
            if stem == name:
                found[f"kvbuf {label}".strip()] = path
        if found:
            return found
    return {}


@dataclasses.dataclass
class Timing:
    """Milliseconds of one launch, and clocks where they were counted."""
    samples: list
    megahertz: list = dataclasses.field(default_factory=list)

    @property
    def median(self):
        return statistics.median(self.samples)

    def quartiles(self):
        if len(self.samples) < 2:
            return self.samples[0], self.samples[0]
        lower, _, upper = statistics.quantiles(self.samples, n=4,
                                               method="inclusive")
        return lower, upper


@dataclasses.dataclass
class Result:
    """One contestant's, in one case. Errors are in units of those that plain
    mathematics in the kernel's precision makes (see gpu.check)."""
    name: str
    timing: Timing
    flop: float
    largest: float = math.nan
    mean: float = math.nan
    wrong: str = ""

    @property
    def tflops(self):
        return self.flop / self.timing.median * 1e-9


#: Whose rate the ratios are to: cuDNN's, or that of whole tiles.
CUDNN, FA2, WHOLE_TILES = "cuDNN", "FlashAttention-2", "whole tiles"


def is_ours(name):
    return name.startswith("kvbuf") and WHOLE_TILES not in name


def baseline_of(name, results):
    """The result that this one's ratio is to."""
    names = {r.name: r for r in results}
    return names.get(CUDNN) or names.get(f"{name}, {WHOLE_TILES}")


def verdict(case, ratio, wrong=""):
    """What a ratio means: WRONG, MISSED, required or aim."""
    if wrong:
        return "WRONG"
    if ratio >= case.aim:
        return "aim"
    return "required" if ratio >= case.required else "MISSED"


#: (title, width) of the columns; negative: to the left.
COLUMNS = (("case", -30), ("implementation", -28), ("median ms", 10),
           ("middle half ms", 17), ("TFLOP/s", 8), ("MHz", 5), ("ratio", 6),
           ("required", 9), ("aim", 6), ("verdict", -9), ("max error", 10),
           ("mean error", 11))


def format_row(cells):
    """One line of the table."""
    text = " ".join(f"{cell:<{-width}}" if width < 0 else f"{cell:>{width}}"
                    for cell, (_, width) in zip(cells, COLUMNS))
    return text.rstrip()


def header():
    return format_row([title for title, _ in COLUMNS])


def rows(case, results):
    """Lines and JSON records of a case's results."""
    lines, records = [], []
    for result in results:
        base = baseline_of(result.name, results)
        ratio = result.tflops / base.tflops if base else math.nan
        word = verdict(case, ratio, result.wrong)
        judged = is_ours(result.name)
        if not judged:
            word = "WRONG" if result.wrong else ""
        lower, upper = result.timing.quartiles()
        clocks = result.timing.megahertz
        lines.append(format_row([
            case.name if not lines else "", result.name,
            f"{result.timing.median:.4f}", f"{lower:.4f}..{upper:.4f}",
            f"{result.tflops:.1f}",
            f"{statistics.median(clocks):.0f}" if clocks else "",
            f"{ratio:.3f}" if base else "",
            f"{case.required:.2f}" if judged else "",
            f"{case.aim:.2f}" if judged else "", word,
            f"{result.largest:.3f}", f"{result.mean:.3f}"]))
        if result.wrong:
            lines.append(f"    {result.wrong}")
        records.append({
            "case": case.name, "implementation": result.name,
            "median_ms": result.timing.median, "lower_quartile_ms": lower,
            "upper_quartile_ms": upper, "samples_ms": result.timing.samples,
            "megahertz": clocks,
            "tflops": result.tflops, "ratio": ratio, "judged": judged,
            "required": case.required, "aim": case.aim, "verdict": word,
            "largest_error": result.largest, "mean_error": result.mean,
            "wrong": result.wrong, "lengths": list(case.lengths)})
    return lines, records


def best_verdicts(records):
    """The best verdict of each case: with several kernels, one has to do."""
    order = ["", "WRONG", "absent", "MISSED", "required", "aim"]
    best = {}
    for r in records:
        if r["judged"]:
            old = best.get(r["case"], "")
            best[r["case"]] = max(old, r["verdict"], key=order.index)
    return best


def write_json(path, machine, records):
    """Numbers that are no numbers become null: JSON has none."""
    clean = [{k: None if isinstance(v, float) and math.isnan(v) else v
              for k, v in r.items()} for r in records]
    pathlib.Path(path).write_text(
        json.dumps({"machine": machine, "results": clean}, indent=1) + "\n")
