#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every row of the feature table at real sizes, checked: one line a case.

    benchmark/verify_table.py --compile DIR --target=sm_90    # with a compiler
    benchmark/verify_table.py --run DIR                       # with a GPU

The first command leaves artifacts and a list of cases in DIR; the second needs
only DIR, kvbuf-run and this file on the machine with the GPU. With neither, both
happen here. Every case is compared with attention in float64 (a sample of its
rows; all of them for NaN, for rows without keys and for stray writes). Printed is
the worst row's relative error, that of plain mathematics in the kernel's own
precision, and their ratio, which may be 1.5. Last, launches of kernels whose types
leave rows open are timed beside those of kernels whose types do not.

Exit status: 0 all passed; 1 some case did not; 2 bad usage.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402
from table_cases import CASES, OPEN_TIME, TESTS, TIMED, fill_cases  # noqa: E402
from problem import problem as write_problem  # noqa: E402

def output(command, text=None):
    """What a command that succeeds writes."""
    return subprocess.run(command, input=text, text=True, stdout=subprocess.PIPE,
                          check=True).stdout


def source(problem, target, compiler):
    """A case's module, and what it says to the compiler."""
    if isinstance(problem, pathlib.Path):
        return problem.read_text(), []
    if isinstance(problem, list):
        return output([sys.executable, TESTS / "Inputs/append.py", *problem]), []
    options = dict(problem)
    flags = options.pop("compile", [])
    exchanged = options.pop("exchange", "")
    text = write_problem(**options)
    if exchanged:
        text = output([compiler, "-", f"--target={target}", "--no-split-loops",
                       f"--schedule={exchanged}", "--emit=scheduled"], text)
        text = output([sys.executable, TESTS / "Inputs/exchange.py"], text)
    return text, flags


def compile_cases(folder, target, compiler, only):
    """Writes DIR/NAME.kvbuf for every problem, and DIR/cases.json."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [i for i, c in enumerate(CASES) if wanted(only, *c[:2])]
    problems = {f"{i:03}": (CASES[i][:2], CASES[i][2]) for i in chosen}
    timed = [i for i, c in enumerate(TIMED) if wanted(only, "time", c[0])]
    for i in timed:
        for kind, problem in zip(("open", "fixed"), TIMED[i][1:3]):
            problems[f"{kind}{i}"] = TIMED[i][0], problem

    def one(file):
        name, problem = problems[file]
        path = folder / f"{file}.kvbuf"
        text, flags = source(problem, target, compiler)
        command = [compiler, "-", "-o", str(path), f"--target={target}", *flags]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"verify_table.py: error: {name} does not "
                     f"compile:\n{done.stderr}")

    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, problems))
    listing = [{"artifact": f"{i:03}.kvbuf", "row": CASES[i][0],
                "name": CASES[i][1], "runs": CASES[i][3]} for i in chosen]
    (folder / "cases.json").write_text(json.dumps(listing, indent=1))
    (folder / "timed.json").write_text(json.dumps(
        [[f"open{i}", f"fixed{i}", TIMED[i][0], *TIMED[i][3:]] for i in timed]))
    print(f"{len(problems)} kernels for {target} in "
          f"{time.monotonic() - start:.0f} s", flush=True)


def wanted(only, row, name):
    """Whether a case is among those that --only asks for."""
    return not only or re.search(only, f"{row} {name}") is not None


def describe(run):
    """The arguments of a run, short enough for a table."""
    return run.replace("--size ", "").replace("--", "")


def run_case(artifact, arguments, runner, device):
    """What kvbuf-run says: (its status, its check, the kernels, its output)."""
    with tempfile.TemporaryDirectory() as scratch:
        result = pathlib.Path(scratch) / "result.json"
        done = subprocess.run(
            [runner, str(artifact), f"--device={device}", "--check", "--json",
             str(result), *arguments.split()], capture_output=True, text=True)
        said = json.loads(result.read_text()) if result.exists() else {}
    return (done.returncode, said.get("check", {}), said.get("kernels", []),
            done.stdout + done.stderr)


def run_cases(folder, runner, device, only, jobs):
    """Runs DIR/cases.json; returns whether all passed."""
    cases = json.loads((folder / "cases.json").read_text())
    print(f"{'row':<16} {'case':<28} {'worst row':>9} {'baseline':>9} "
          f"{'ratio':>6}  {'':6} sizes")
    passed, failed, ratios, start = 0, 0, [], time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = [(c, run, pool.submit(run_case, folder / c["artifact"], run,
                                        runner, device))
                   for c in cases if wanted(only, c["row"], c["name"])
                   for run in c["runs"]]
        for c, run, job in waiting:
            status, check, kernels, output = job.result()
            ok = status == 0 and check.get("pass") is True
            passed, failed = passed + ok, failed + (not ok)
            numbers = f"{'-':>9} {'-':>9} {'-':>6}"
            if "worst_row" in check:
                value, base = (check["worst_row"][k]
                               for k in ("value", "baseline"))
                ratio = value / base if base else 0.0
                ratios.append(ratio)
                numbers = f"{value:>9.3g} {base:>9.3g} {ratio:>6.3f}"
            print(f"{c['row']:<16} {c['name']:<28} {numbers}  "
                  f"{'pass' if ok else 'FAILED':6} {describe(run)}  "
                  f"{' '.join(kernels)}", flush=True)
            if not ok:
                print(output, flush=True)
    seconds = time.monotonic() - start
    print(f"{passed} passed, {failed} failed in {seconds:.0f} s; largest ratio "
          f"{max(ratios, default=0):.3f} (limit 1.5)")
    return failed == 0 and passed == len(waiting)


def seconds(artifact, arguments, runner, device):
    """The median of a launch's time, by kvbuf-run."""
    with tempfile.TemporaryDirectory() as scratch:
        result = pathlib.Path(scratch) / "result.json"
        subprocess.run([runner, str(artifact), f"--device={device}", "--bench",
                        "--json", str(result), *arguments.split()],
                       capture_output=True, check=True)
        return json.loads(result.read_text())["bench"]["median_s"]


def compare_times(folder, runner, device):
    """Runs DIR/timed.json, in turns; returns whether no open kernel is late."""
    good = True
    for first, second, name, *runs in json.loads((folder / "timed.json").read_text()):
        times = [min(times) for times in zip(*(
            [seconds(folder / f"{file}.kvbuf", run, runner, device)
             for file, run in zip((first, second), runs)] for _ in range(3)))]
        ratio = times[0] / times[1]
        good &= ratio <= OPEN_TIME
        print(f"{'time':<16} {name:<28} {times[0] * 1e6:>9.1f} {times[1] * 1e6:>9.1f} "
              f"{ratio:>6.3f}  {'pass' if ratio <= OPEN_TIME else 'FAILED'}", flush=True)
    return good


def find_tool(name, given):
    """The path of a tool: as given, beside this tree's build, or in PATH."""
    built = pathlib.Path(__file__).resolve().parent.parent / "build/bin" / name
    path = given or (str(built) if built.exists() else shutil.which(name))
    if not path or not shutil.which(path):
        print(f"verify_table.py: error: {path or name} was not found; "
              f"--{name} can name it", file=sys.stderr)
        sys.exit(2)
    return path


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--compile", metavar="DIR", type=pathlib.Path,
                        help="compile into a folder, and stop")
    parser.add_argument("--run", metavar="DIR", type=pathlib.Path,
                        help="run what --compile left in a folder")
    parser.add_argument("--target", default="sm_90", help="chip [sm_90]")
    parser.add_argument("--device", default="cuda", help="device [cuda]")
    parser.add_argument("--only", metavar="REGEX",
                        help="cases whose row and name match")
    parser.add_argument("--jobs", type=int, default=1,
                        help="runs at a time [1]")
    parser.add_argument("--kvbuf-compile", metavar="PATH")
    parser.add_argument("--kvbuf-run", metavar="PATH")
    args = parser.parse_args()
    if args.device.startswith("cuda") and not args.compile:
        if reason := common.why_no_gpu():
            sys.exit(f"verify_table.py: there is no GPU here: {reason}")
    if args.run and not (args.run / "cases.json").exists():
        parser.error(f"{args.run}/cases.json: no such file; --compile "
                     f"{args.run} makes it")
    fill_cases()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.compile or args.run or pathlib.Path(scratch)
        if not args.run:
            compile_cases(folder, args.target,
                          find_tool("kvbuf-compile", args.kvbuf_compile), args.only)
        if args.compile:
            return
        runner = find_tool("kvbuf-run", args.kvbuf_run)
        ok = run_cases(folder, runner, args.device, args.only, args.jobs)
        if args.device.startswith("cuda"):
            ok &= compare_times(folder, runner, args.device)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
