#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Did a kernel become slower? Two dozen rows, beside a file of their ratios.

    benchmark/guard.py DIR --build [--target=sm_90a]   # needs kvbuf-compile
    benchmark/guard.py DIR                             # needs a GPU and PyTorch

A row's number is a ratio of rates within one process, so that cards and clocks
differ little in it:

    prefill    kvbuf's, of cuDNN's
    decode     bytes of K and V a second, of a kernel that only copies them
    feature    a kernel with a feature, of the plain kernel on the same tensors

Rows that are below the recorded ratio by more than --tolerance are measured once
more, and the better run counts. Printed are all rows; those that fell are named at
the end. Cards differ by 1 to 4 %: record a file of your own card with the code before
a change, and compare with that.

Exit status: 0 no row fell; 1 some did, are missing, or are wrong; 2 bad usage.
"""

import dataclasses
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402
import decode  # noqa: E402
import problem  # noqa: E402

RECORDED = pathlib.Path(__file__).resolve().parent / "guard.json"

#: Of decode.CASES.
DECODE = (
    "h32_8-d128-dense-8192x64", "h32_8-d128-p64-8192x64", "h32_8-d128-p16-8192x64",
    "h32_8-d128-p1-8192x64", "h64_8-d128-p16-4096x128", "h32_8-d64-p16-8192x128",
    "h32_8-d256-p16-8192x32", "h32_8-d128-p16-16050x64-ragged",
    "fp8-h32_8-d128-p16-8192x64", "fp8-h32_8-d128-p1-8192x64")


@dataclasses.dataclass(frozen=True)
class Feature:
    """A kernel beside the plain one, at a batch of `batch` by `seq` rows."""
    name: str
    size: int
    seq: int
    batch: int
    #: Options of benchmark/problem.py that the plain kernel has not.
    more: tuple

    def options(self, plain=False):
        base = {"heads": 16, "kv_heads": 16, "head_size": self.size}
        return base if plain else base | dict(self.more)

    @property
    def shape(self):
        return f"plain-d{self.size}"


FEATURES = tuple(
    Feature(f"{name}-d{size}-4096x4", size, 4096, 4, more)
    for size in (64, 128)
    for name, more in (("softcap", (("softcap", 30.0),)),
                       ("lse", (("lse", True),)),
                       ("batch_invariant", (("batch_invariant", True),))))


def prefill_cases():
    """Cases of cudnn_compare.py, one kernel each."""
    return [c for c in common.all_cases() if not c.lengths]


def decode_cases():
    return [c for c in decode.CASES if c.name in DECODE]


def kernels():
    """{file name without .kvbuf: (module, schedule)}."""
    jobs = {c.problem: (c.options(), "") for c in prefill_cases()}
    jobs |= {c.problem: (c.options(), "split_keys=true") for c in decode_cases()}
    for feature in FEATURES:
        jobs[feature.shape] = feature.options(plain=True), ""
        jobs[feature.name] = feature.options(), ""
    return {name: (problem.problem(**options), schedule)
            for name, (options, schedule) in jobs.items()}


class Lab:
    """Measures rows on the GPU: `row(name)` is a ratio, or None if there is no
    kernel. Raises RuntimeError where a result is wrong."""

    def __init__(self, folder, rounds, launches):
        import gpu
        import kvbuf
        self.gpu, self.kvbuf, self.folder = gpu, kvbuf, folder
        self.rounds, self.launches = rounds, launches
        self.ceiling = None
        self.loaded = {}

    def machine(self):
        return {**self.gpu.machine(), "kvbuf": self.kvbuf.version()}

    def load(self, name):
        path = self.folder / f"{name}.kvbuf"
        if not path.exists():
            return None
        if name not in self.loaded:
            self.loaded[name] = self.kvbuf.load(str(path))
        return self.loaded[name]

    def rate(self, contestants, first, second):
        """That of `second`, of that of `first`: medians of turns of 5 ms."""
        took = self.gpu.measure(contestants, self.rounds, 5.0, graphs=True)
        return (common.Timing(took[first]).median
                / common.Timing(took[second]).median)

    def right(self, work, runs):
        for name, verdict in self.gpu.check(work, {
                name: self.gpu.output(run)
                for name, run in runs.items()}).items():
            if verdict.wrong:
                raise RuntimeError(f"{name}: {verdict.wrong}")

    def prefill(self, case):
        kernel = self.load(case.problem)
        if kernel is None:
            return None
        work = self.gpu.Work(case.heads, case.kv_heads, case.head_size,
                             case.causal, case.batch, case.seq)
        runs = {common.CUDNN: self.gpu.cudnn(work),
                "kvbuf": self.gpu.kernel(work, kernel)}
        self.right(work, {"kvbuf": runs["kvbuf"]})
        return self.rate(runs, common.CUDNN, "kvbuf")

    def feature(self, feature):
        plain, kernel = self.load(feature.shape), self.load(feature.name)
        if plain is None or kernel is None:
            return None
        torch = self.gpu.torch
        work = self.gpu.Work(16, 16, feature.size, False, feature.batch,
                             feature.seq)
        runs = {"plain": self.gpu.kernel(work, plain)}
        out = torch.full_like(work.q, float("nan"))
        tensors = {"q": work.q, "k": work.k, "v": work.v, "out": out}
        if dict(feature.more).get("lse"):
            tensors["lse"] = torch.empty(
                feature.batch, 16, feature.seq, device="cuda",
                dtype=torch.float32)
        runs["feature"] = lambda: kernel(**tensors)
        runs["feature"]()
        if out.isnan().any():
            raise RuntimeError(f"{feature.name}: elements were not written")
        if "softcap" not in dict(feature.more):  # the plain kernel's result
            self.right(work, {"feature": lambda: out})
        return self.rate(runs, "plain", "feature")

    def decode(self, case):
        kernel = self.load(case.problem)
        if kernel is None:
            return None
        if self.ceiling is None:
            self.ceiling = decode.Ceiling(self.folder)
        wrong = []
        took = decode.measure(self.gpu.torch, case, {"kvbuf": kernel},
                              self.ceiling, 3, self.launches, wrong)
        self.gpu.torch.cuda.empty_cache()
        if wrong:
            raise RuntimeError(wrong[0])
        return took["ceiling"] / took["kvbuf"]

    def rows(self):
        """{name: a function that measures}."""
        return {
            **{c.name: lambda c=c: self.prefill(c) for c in prefill_cases()},
            **{c.name: lambda c=c: self.decode(c) for c in decode_cases()},
            **{f.name: lambda f=f: self.feature(f) for f in FEATURES}}


def judge(rows, recorded, tolerance, again=True):
    """Measures and prints the rows; returns ({name: ratio}, names that fell, or
    are missing, or wrong)."""
    measured, bad = {}, {}
    print(f"{'row':40} {'recorded':>8} {'now':>7} {'change':>7}")
    for name, measure in rows.items():
        was = recorded.get(name)
        try:
            now = measure()
            if again and now is not None and was and now < was * (1 - tolerance):
                now = max(now, measure())
        except RuntimeError as error:
            now, bad[name] = None, str(error)
        if now is None:
            bad.setdefault(name, "there is no kernel of it")
            print(f"{name:40} {was or 0:8.3f}  {bad[name]}", flush=True)
            continue
        measured[name] = now
        if was is None:
            print(f"{name:40} {'-':>8} {now:7.3f}", flush=True)
            continue
        if now < was * (1 - tolerance):
            bad[name] = f"fell from {was:.3f} to {now:.3f}"
        print(f"{name:40} {was:8.3f} {now:7.3f} {now / was - 1:+7.1%}"
              + ("  FELL" if name in bad else ""), flush=True)
    return measured, bad


def parse(arguments):
    parser = common.kernels_parser(__doc__, rounds=12, launches=10)
    parser.add_argument("--rows", default="", metavar="REGEX",
                        help="names that match [all]")
    parser.add_argument("--against", type=pathlib.Path, default=RECORDED,
                        metavar="FILE", help="recorded ratios [guard.json]")
    parser.add_argument("--record", type=pathlib.Path, metavar="FILE",
                        help="write the ratios of this run to a file")
    parser.add_argument("--tolerance", type=float, default=0.02, metavar="X",
                        help="what a ratio may fall by [0.02]")
    options = parser.parse_args(arguments)
    if not 0 <= options.tolerance < 1:
        parser.error(f"--tolerance {options.tolerance}: expected 0 or more, and "
                     "less than 1")
    return options


def main(arguments=None, make_lab=Lab):
    options = parse(arguments)
    if options.build:
        return 1 if common.build(options.folder, kernels(), options.target,
                                 options.kvbuf_compile) else 0
    recorded = {}
    if options.against.exists():
        recorded = json.loads(options.against.read_text())["rows"]
    elif not options.record:
        print(f"guard.py: error: {options.against} does not exist; expected "
              "a file that --record wrote", file=sys.stderr)
        return 2
    lab = make_lab(options.folder, options.rounds, options.launches)
    machine = lab.machine()
    print(", ".join(f"{k} {v}" for k, v in machine.items()))
    rows = {name: measure for name, measure in lab.rows().items()
            if re.search(options.rows, name)}
    measured, bad = judge(rows, recorded, options.tolerance)
    if options.record:
        options.record.write_text(json.dumps(
            {"machine": machine,
             "rows": {name: round(x, 4) for name, x in measured.items()}},
            indent=1) + "\n")
    print(f"{len(rows)} rows, {len(bad)} fell or did not run")
    for name, why in bad.items():
        print(f"  {name}: {why}")
    return 1 if bad else 0


if __name__ == "__main__":
    common.need_gpu("guard.py", "--build")
    sys.exit(main())
