#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill attention beside cuDNN's and FlashAttention-2's, both by PyTorch.

    benchmark/build_artifacts.py DIR --target=sm_90a
    PYTHONPATH=python python3 benchmark/cudnn_compare.py --artifacts DIR

The second command needs a CUDA GPU and torch, but no compiler. A case is run
with DIR/CASE.kvbuf or DIR/PROBLEM.kvbuf, and with every CASE@LABEL.kvbuf or
PROBLEM@LABEL.kvbuf beside it (--list prints the names).

All contestants work on the same random normal bf16 tensors, laid out as [batch,
seq, heads, size]. In each case everyone warms up for a second. A ratio means
nothing without its mode:

    --mode=cycles     turns of about --sample-ms without a pause. They are shorter
                      than the power limit takes to act: all have one clock, and
                      the ratio is one of cycles
    --mode=sustained  each contestant holds the card for --seconds at a time, at
                      the clock that its own power allows: the ratio is one of
                      energy, and what long runs see

With CUDA graphs (the default where every contestant can be captured) no turn
holds the host's time. Printed are medians, the middle half, the rate (causal
cases count half of the operations), the clock (cycles counted on the
multiprocessors, see stamps.py) and the ratio of rates to cuDNN's; for a ragged
batch, to the same kernel's with lengths of whole tiles. Errors are in units of
those that plain attention makes with P rounded to bf16, against float32, over
every row, in the same run.

Exit status: 0 every case reaches the required ratio; 1 one does not, or a result
is wrong; 2 bad usage.
"""

import argparse
import datetime
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402


class Lab:
    """Runs cases on the GPU."""

    def __init__(self, rounds, sample_ms, graphs, tile, seconds=0.0,
                 fa2=True):
        import gpu  # torch, which --list and --help do not need
        import kvbuf
        import stamps
        self.gpu, self.kvbuf = gpu, kvbuf
        if not gpu.torch.cuda.is_available():
            raise RuntimeError("no NVIDIA GPU")
        self.rounds, self.sample_ms, self.tile = rounds, sample_ms, tile
        self.seconds, self.fa2 = seconds, fa2
        self.stamps = stamps.available()
        self.graphs = graphs
        self.note = ""
        self.loaded = {}

    def machine(self):
        return {**self.gpu.machine(), "kvbuf": self.kvbuf.version()}

    def load(self, path, case):
        if path not in self.loaded:
            self.loaded[path] = self.kvbuf.load(path)
        artifact = self.loaded[path]
        problem = artifact.manifest.get("problem", {})
        expected = {k: v for k, v in case.options().items() if k != "name"}
        given = {k: problem.get(k) for k in expected}
        if given != expected:
            raise RuntimeError(f"{path} is for {given}; the case "
                               f"'{case.name}' needs {expected}")
        return artifact

    def work(self, case, lengths=()):
        return self.gpu.Work(case.heads, case.kv_heads, case.head_size,
                             case.causal, case.batch, case.seq, lengths)

    def run(self, case, paths):
        """The results of a case."""
        try:
            return self.run_(case, paths)
        except self.kvbuf.Error as error:
            raise RuntimeError(f"{case.name}: {error}") from error

    def run_(self, case, paths):
        works = {"": self.work(case, case.lengths)}
        contestants = {}
        if case.lengths:
            works[f", {common.WHOLE_TILES}"] = self.work(
                case, common.whole_tiles(case.lengths, self.tile))
        else:
            contestants = {common.CUDNN: self.gpu.cudnn(works[""])}
            if self.fa2:
                contestants[common.FA2] = self.gpu.flash_attention_2(works[""])
        where = {name: works[""] for name in contestants}
        for label, path in paths.items():
            artifact = self.load(path, case)
            for suffix, work in works.items():
                contestants[label + suffix] = self.gpu.kernel(work, artifact)
                where[label + suffix] = work
        times = self.measure(contestants)
        checked = {}
        for work in works.values():
            checked |= self.gpu.check(work, {
                name: self.gpu.output(run) for name, run in contestants.items()
                if where[name] is work})
        results = []
        for name in contestants:
            verdict = checked[name]
            results.append(common.Result(
                name, common.Timing(times[name], times[name].megahertz),
                case.flop(where[name].lengths), verdict.largest_ratio,
                verdict.mean_ratio, verdict.wrong))
        return results

    def measure(self, contestants):
        if self.graphs != "off":
            try:
                return self.take_turns(contestants, graphs=True)
            except (RuntimeError, self.kvbuf.Error) as error:
                if self.graphs == "on":
                    raise
                self.graphs = "off"
                self.note = (f"no CUDA graphs: {str(error).splitlines()[0]}; "
                             "the host's time may be part of short turns")
                self.gpu.torch.cuda.synchronize()
        return self.take_turns(contestants, graphs=False)

    def take_turns(self, contestants, graphs):
        if self.seconds:
            return self.gpu.sustain(contestants, self.rounds, self.seconds,
                                    self.sample_ms, graphs, self.stamps)
        return self.gpu.measure(contestants, self.rounds, self.sample_ms,
                                graphs, self.stamps)


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--artifacts", type=pathlib.Path, metavar="DIR",
                        help="where build_artifacts.py left the kernels")
    parser.add_argument("--cases", default="*", metavar="PATTERNS",
                        help="names or patterns, separated by commas [all]")
    parser.add_argument("--list", action="store_true",
                        help="print the cases, and stop")
    parser.add_argument("--mode", choices=["cycles", "sustained"],
                        default="cycles", help="kind of turns [cycles]")
    parser.add_argument("--rounds", type=int, metavar="N",
                        help="turns of each contestant "
                        "[50; 3 where sustained]")
    parser.add_argument("--seconds", type=float, default=1.2, metavar="S",
                        help="seconds of a sustained turn [1.2]")
    parser.add_argument("--no-fa2", dest="fa2", action="store_false",
                        help="leave FlashAttention-2 out")
    parser.add_argument("--sample-ms", type=float, default=5.0, metavar="MS",
                        help="milliseconds of a turn in mode cycles, of a "
                        "graph in both [5]")
    parser.add_argument("--graphs", choices=["auto", "on", "off"],
                        default="auto", help="CUDA graphs [auto]")
    parser.add_argument("--tile", type=int, default=128, metavar="ROWS",
                        help="whole tiles of a ragged batch [128]")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write the numbers to a file")
    args = parser.parse_args(arguments)
    try:
        args.cases = common.select(common.all_cases(), args.cases)
    except ValueError as error:
        parser.error(str(error))
    if args.rounds is None:
        args.rounds = 50 if args.mode == "cycles" else 3
    if args.seconds <= 0:
        parser.error(f"--seconds {args.seconds}: expected more than 0")
    if args.rounds < 2:
        parser.error(f"--rounds {args.rounds}: expected 2 or more")
    if args.tile < 1:
        parser.error(f"--tile {args.tile}: expected 1 or more")
    if not args.list and not args.artifacts:
        parser.error("give --artifacts DIR")
    if args.artifacts and not args.artifacts.is_dir():
        parser.error(f"--artifacts {args.artifacts}: no such folder")
    return args


def compare(args, lab):
    """Runs, prints and judges; returns whether every case does."""
    machine = {**lab.machine(), "date": datetime.date.today().isoformat(),
               "mode": args.mode}
    print(", ".join(f"{k} {v}" for k, v in machine.items()))
    print(common.header())
    records = []
    for case in args.cases:
        case = case.in_mode(args.mode)
        paths = common.find_artifacts(args.artifacts, case)
        if not paths:
            print(f"{case.name}: no {case.problem}.kvbuf in {args.artifacts}",
                  flush=True)
            records.append({"case": case.name, "judged": True,
                            "verdict": "absent"})
            continue
        lines, new = common.rows(case, lab.run(case, paths))
        records += new
        print("\n".join(lines) + "\n", flush=True)
        if args.json:  # a later case may fail
            common.write_json(args.json, machine, records)
    if lab.note:
        print(lab.note)
    best = common.best_verdicts(records)
    count = list(best.values()).count
    print(f"{len(best)} cases: {count('aim')} reach the aim, "
          f"{count('required')} more what is required, {count('MISSED')} miss "
          f"it, {count('WRONG')} wrong, {count('absent')} without a kernel")
    if args.json:
        common.write_json(args.json, machine, records)
    wrong = any(r["verdict"] == "WRONG" for r in records)
    return not wrong and all(v in ("required", "aim") for v in best.values())


def main(arguments=None, make_lab=Lab):
    args = parse(arguments)
    if args.list:
        for case in args.cases:
            print(f"{case.name:<32} {case.problem}")
        return 0
    try:
        lab = make_lab(args.rounds, args.sample_ms, args.graphs, args.tile,
                       args.seconds if args.mode == "sustained" else 0.0,
                       args.fa2)
        return 0 if compare(args, lab) else 1
    except (ImportError, RuntimeError, OSError) as error:
        print(f"cudnn_compare.py: error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    common.need_gpu("cudnn_compare.py", "--list")
    sys.exit(main())
