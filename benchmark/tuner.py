#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kvbuf-tune finds that defaults have not, and how well it ranks without a GPU.

    benchmark/tuner.py --run DIR [PROBLEM...]    # needs kvbuf-tune; a GPU for times
    benchmark/tuner.py --join DIR...             # what runs found, as one table

Each problem is tuned twice: on the GPU, by time, and on the emulator, by its model. DIR
then has PROBLEM.gpu.json and PROBLEM.model.json. Functions of scores, whose tensors
kvbuf-tune knows nothing of, try the schedules of the plain problem that stands before
them in DIR, with PyTorch and the tensors of scores.py; no model ranks them. Columns of
the table:

    candidates     schedules that were timed, the compiler's own among them
    fastest        the time of the compiler's own by that of the fastest, in turns long
                   enough for the clock to settle
    model's first  the same of the schedule that the model ranks first, in the turns that
                   all schedules take, as are the two columns behind
    error          the median, over pairs of schedules, of how far the ratio of their
                   modelled cycles is from that of their times
    pairs          the share of pairs, more than 3 % apart in time, that the model has in
                   the order of their times; the order of chance has 0.5

Exit status: 0 no schedule is more than 3 % ahead of the compiler's own; 1 one is, or a
problem could not be tuned; 2 bad usage.
"""

import argparse
import concurrent.futures
import contextlib
import datetime
import functools
import io
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402
import problem  # noqa: E402
import scores  # noqa: E402

#: What a schedule may be ahead of the compiler's own: the part of a time.
AHEAD = 0.03
#: As kvbuf-tune has it: how many take long turns, and milliseconds of these.
FINALS, FINAL_TURN = 8, 200
HEAD = "candidates", "fastest", "model's first", "error", "pairs"
GROUPED = {"heads": 32, "kv_heads": 8, "head_size": 128}


def decode(keys, batch, **options):
    return (lambda: problem.problem(seq_q=1, cache="paged", **GROUPED, **options),
            (f"batch={batch}", "seq_q=1", f"cache={keys - 1}"))


def prefill(size, heads=16, batch=4, seq=4096, **options):
    return (lambda: problem.problem(heads=heads, head_size=size, **options),
            (f"batch={batch}", f"seq={seq}"))


def pages(size, **options):
    return (lambda: problem.problem(causal=True, cache="paged", page_size=size,
                                    **GROUPED, **options),
            ("batch=4", "seq_q=4096", "cache=0"))


#: {name: (the module's text, sizes)}.
PROBLEMS = {
    "d64 full": prefill(64), "d64 causal": prefill(64, causal=True),
    "d128 full": prefill(128), "d128 causal": prefill(128, causal=True),
    "d256 full": prefill(256), "d256 causal": prefill(256, causal=True),
    "d512 causal": prefill(512, heads=4, causal=True),
    "soft cap d64": prefill(64, softcap=30.0),
    "soft cap d128": prefill(128, softcap=30.0),
    "pages of 2": pages(2), "pages of 16": pages(16),
    "e4m3 pages of 16": pages(16, kv_dtype="f8E4M3FN", granularity="tensor"),
    "decode 4096 x 64": decode(4096, 64, page_size=16),
    "decode 131072 x 1": decode(131072, 1, page_size=16),
    "decode e4m3 4096 x 64": decode(4096, 64, page_size=16, kv_dtype="f8E4M3FN",
                                    granularity="tensor"),
}


#: Functions of scores.py: a head size, the function, and the plain problem whose
#: schedules are tried.
FUNCTIONS = {
    "ALiBi d64": (64, "alibi", "d64 causal"),
    "documents d64": (64, "documents", "d64 causal"),
    "ALiBi d128": (128, "alibi", "d128 causal"),
    "documents d128": (128, "documents", "d128 causal"),
    "bias d128": (128, "bias", "d128 full"),
    "blocks of 25 % d128": (128, "blocks25", "d128 full"),
    "window d256": (256, "window", "d256 causal"),
}


#: All of them.
NAMES = (*PROBLEMS, *FUNCTIONS)


def path(folder, name, ending):
    """The file of a problem."""
    return folder / f"{name.replace(' ', '-')}.{ending}"


def time_function(folder, name, compiler, rounds, turn):
    """Times the schedules of a plain problem with a function; why not, where there are
    none. `turn`: milliseconds."""
    size, function, plain = FUNCTIONS[name]
    tried = path(folder, plain, "gpu.json")
    if not tried.exists():
        return f"the schedules of {plain} are not there"
    schedules = [r["schedule"] for r in json.loads(tried.read_text())["results"]]
    text = scores.source(size, "", function)
    with contextlib.redirect_stdout(io.StringIO()):
        common.build(folder / function, {f"{size}-{n}": (text, schedule)
                                         for n, schedule in enumerate(schedules)},
                     "sm_90a", compiler)
    import kvbuf
    import torch
    work, runs = scores.Work(torch, 4, 4096, size), {}
    given = scores.given(scores.captures(torch, function, 4, 4096, 4096))
    for n, schedule in enumerate(schedules):
        file = folder / function / f"{size}-{n}.kvbuf"
        if file.exists():  # a function may refuse what the plain problem takes
            runs[schedule] = functools.partial(
                kvbuf.load(str(file)), q=work.q, k=work.k, v=work.v, o=work.o, **given)
    if "" not in runs:
        return "the compiler's own schedule does not compile"
    first = statistics.median(common.microseconds(torch, runs[""], 8))

    def turns(names, milliseconds, settle):
        launches = max(1, int(1e3 * milliseconds / first))
        times = {schedule: [] for schedule in names}
        for schedule in common.in_turns(names, rounds):
            if settle:
                common.microseconds(torch, runs[schedule], launches)
            times[schedule] += common.microseconds(torch, runs[schedule], launches)
        return {schedule: statistics.median(us) for schedule, us in times.items()}

    short = turns(runs, turn, False)
    best = sorted(short, key=short.get)[:FINALS]
    final = turns(list(dict.fromkeys([*best, ""])), FINAL_TURN, True)
    path(folder, name, "gpu.json").write_text(json.dumps({"results": [
        {"schedule": schedule, "median_us": final.get(schedule, us),
         "short_turns_us": us, "final": schedule in final}
        for schedule, us in short.items()]}), encoding="utf-8")
    return ""


def tune(folder, name, tool, device):
    """Tunes a problem by a command that begins with `tool`; what kvbuf-tune said, where
    it failed."""
    kind = "model" if device == "emulator" else "gpu"
    file = path(folder, name, f"{kind}.mlir")
    text, sizes = PROBLEMS[name]
    file.write_text(text(), encoding="utf-8")
    command = [*tool, str(file), f"--device={device}", "--target=sm_90a", "--no-check",
               "--json", str(file.with_suffix(".json"))]
    for size in sizes:
        command += ["--size", size]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def run(folder, names, options):
    """Tunes problems: one at a time on the GPU, and `jobs` at a time on the emulator;
    returns how many failed."""
    folder.mkdir(parents=True, exist_ok=True)
    tool = [options.kvbuf_tune]
    # The emulator has no time, and takes no turns.
    timed = [*tool, f"--rounds={options.rounds}", f"--turn={options.turn}",
             f"--finals={FINALS}", f"--final-turn={FINAL_TURN}"]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        models = {name: pool.submit(tune, folder, name, tool, "emulator")
                  for name in names if name in PROBLEMS and options.by != "time"}
        for name in names if options.by != "model" else ():
            said = (tune(folder, name, timed, options.device) if name in PROBLEMS else
                    time_function(folder, name, options.kvbuf_compile, options.rounds,
                                  options.turn))
            print(f"{name}: " + (said or "timed"), flush=True)
            failed += bool(said)
        for name, model in models.items():
            if said := model.result():
                print(f"{name}, without a GPU: {said}", flush=True)
                failed += 1
    return failed


def number(x):
    return "" if x is None else f"{x:.3f}"


def compared(gpu, model):
    """A problem's candidates, and the columns `fastest` to `pairs`, of two runs of
    kvbuf-tune; None where the compiler's own was not timed, or the model ranks none of
    what was."""
    own = "(compiler's choice)"
    # A file of before there were long turns, or of --finals=0, has one time each.
    times = {r["schedule"] or own: r.get("short_turns_us", r["median_us"])
             for r in gpu["results"]}
    final = {r["schedule"] or own: r["median_us"] for r in gpu["results"]
             if r.get("final", True)} or times
    if (default := times.get(own)) is None:  # it spills, or does not compile
        return len(times), None, None, None, None
    fastest = final[own] / min(final.values())
    ranked = [(r["modelled_cycles"], times[r["schedule"] or own])
              for r in model["results"]
              if r["offered"] and "modelled_cycles" in r
              and (r["schedule"] or own) in times]
    if not ranked:
        return len(times), fastest, None, None, None
    # Where several share the first place, the least favourable of them counts.
    least = min(cycles for cycles, _ in ranked)
    first = default / max(us for cycles, us in ranked if cycles == least)
    pairs = list(itertools.combinations(ranked, 2))
    apart = [abs(math.log(a[0] / b[0] * b[1] / a[1])) for a, b in pairs]
    told = [(a[0] < b[0]) == (a[1] < b[1]) and a[0] != b[0] for a, b in pairs
            if abs(math.log(a[1] / b[1])) > AHEAD]
    return (len(times), fastest, first,
            math.exp(statistics.median(apart)) - 1 if apart else None,
            statistics.mean(told) if told else None)


def join(folders):
    """[(problem, columns)] of all that was tuned."""
    found = []
    for name in NAMES:
        for folder in folders:
            both = [path(folder, name, f"{kind}.json") for kind in ("gpu", "model")]
            if both[0].exists():
                gpu, model = (json.loads(x.read_text(encoding="utf-8")) if x.exists()
                              else {"results": []} for x in both)
                found.append((name, compared(gpu, model)))
                break
    return found


def record(found):
    """What was found as a run of docs/measured; card and versions are to be filled in."""
    return {"id": "tuner", "title": "kvbuf-tune beside defaults and times",
            "date": datetime.date.today().isoformat(), "card": "", "driver": "",
            "versions": {}, "commit": "",
            "mode": f"turns of {FINAL_TURN} ms of the fastest {FINALS}, behind as long",
            "columns": ["problem", *HEAD],
            "rows": [[name, str(columns[0]), *(number(x) for x in columns[1:])]
                     for name, columns in found],
            "notes": ["`benchmark/tuner.py`"]}


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run", metavar="DIR", type=pathlib.Path)
    what.add_argument("--join", metavar="DIR", type=pathlib.Path, nargs="+")
    parser.add_argument("problems", nargs="*", metavar="PROBLEM",
                        help="names that begin so [all]: "
                        + ", ".join(NAMES).replace("%", "%%"))
    parser.add_argument("--kvbuf-tune", default="kvbuf-tune", metavar="PATH")
    parser.add_argument("--kvbuf-compile", default="kvbuf-compile", metavar="PATH")
    parser.add_argument("--device", default="cuda", help="what times [cuda]")
    parser.add_argument("--by", choices=("time", "model", "both"), default="both",
                        help="what tunes; a machine without a GPU can do --by=model,\n"
                             "whose files go into the same DIR [both]")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count(), metavar="N",
                        help="problems emulated at a time [cores]")
    parser.add_argument("--rounds", type=int, default=5, metavar="N",
                        help="turns of each kernel on the GPU [5]")
    parser.add_argument("--turn", type=int, default=50, metavar="MS",
                        help="milliseconds of a turn [50]")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write the table as a run of docs/measured")
    options = parser.parse_args(arguments)
    names = [name for name in NAMES if not options.problems
             or name.startswith(tuple(options.problems))]
    if not names:
        parser.error(f"no problem begins with {' or '.join(options.problems)}")
    failed = 0
    if options.run:
        failed = run(options.run, names, options)
    found = join(options.join or [options.run])
    print(f"{'problem':24}" + "".join(f"{name:>15}" for name in HEAD))
    for name, (count, fastest, first, error, pairs) in found:
        print(f"{name:24}{count:>15}" + "".join(
            f"{number(x):>15}" for x in (fastest, first, error, pairs)))
    if options.json:
        options.json.write_text(json.dumps(record(found), indent=1) + "\n",
                                encoding="utf-8")
    ahead = [name for name, columns in found if columns[1] and columns[1] > 1 + AHEAD]
    for name in ahead:
        print(f"{name}: a schedule is more than {AHEAD:.0%} ahead")
    untold = [name for name, columns in found if columns[1] is None]
    for name in untold:
        print(f"{name}: the compiler's own schedule has no time")
    return 1 if failed or ahead or untold else 0


if __name__ == "__main__":
    common.need_gpu("tuner.py", "--join", "--by=model")
    sys.exit(main())
