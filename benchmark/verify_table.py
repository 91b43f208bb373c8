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
precision, and their ratio, which may be 1.5.

Exit status: 0 all passed; 1 some case did not; 2 bad usage.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402

#: (row of the table, case, options of the problem, arguments of kvbuf-run).
CASES = []


def case(row, name, options, *runs):
    """Adds a problem and the sizes to run it at."""
    CASES.append((row, name, options, runs))


def fill_cases():
    square = "--size batch=2 --size seq=2048"
    odd = "--size batch=3 --size seq_q=1999 --size seq_k=3001"
    causal = {"causal": True, "lse": True, "head_size": 128}

    case("heads", "MHA 16", {"heads": 16, **causal}, square, odd)
    case("heads", "GQA 16/4", {"heads": 16, "kv_heads": 4, **causal}, odd)
    case("heads", "MQA 16/1", {"heads": 16, "kv_heads": 1, **causal}, odd)
    for heads, kv_heads in (3, 1), (10, 2), (28, 4):
        case("heads", f"GQA {heads}/{kv_heads}",
             {"heads": heads, "kv_heads": kv_heads, **causal}, odd)

    for size in 64, 80, 96, 128, 256:
        for dtype in "bf16", "f16":
            case("head size, type", f"{size} {dtype}",
                 {"heads": 4, "head_size": size, "dtype": dtype,
                  "causal": dtype == "bf16", "lse": dtype == "f16"},
                 odd + " --row-pad=8")
    for size in 40, 72, 192:
        case("head size, type", f"{size} bf16",
             {"heads": 4, "head_size": size, "causal": True}, odd)

    inputs = {"heads": 8, "head_size": 128, "lse": True}
    for dtype in "bf16", "f16":
        for mask in False, True:
            case("inputs", f"{dtype} {'causal' if mask else 'full'}",
                 {**inputs, "dtype": dtype, "causal": mask},
                 *(f"{square} --init={i}" for i in
                   ("normal", "outliers", "octaves", "ramp")))

    for mask in False, True:
        case("lengths", "causal" if mask else "full",
             {"heads": 4, "head_size": 128, "causal": mask, "lse": True},
             "--size batch=4 --size seq_q=1 --size seq_k=4999",
             "--size batch=2 --size seq_q=5000 --size seq_k=1",
             "--size batch=2 --size seq_q=4097 --size seq_k=1023",
             "--size batch=2 --size seq_q=1023 --size seq_k=4097",
             "--size batch=2 --size seq_q=1000 --size seq_k=0",
             "--size seq_q=0 --size seq_k=1000", "--size batch=0 --size seq=1000")

    masks = {"none": {}, "causal": {"causal": True},
             "left": {"window_left": 700}, "right": {"window_right": 300},
             "both": {"window_left": 64, "window_right": 64},
             "causal, left": {"causal": True, "window_left": 1000}}
    for name, mask in masks.items():
        for cap in 0.0, 20.0:
            case("masks", name + (", soft cap" if cap else ""),
                 {"heads": 8, "kv_heads": 2, "head_size": 128, "softcap": cap,
                  "lse": True, **mask}, odd)
    case("masks", "causal, fewer keys", {"heads": 4, "lse": True,
                                         "causal": True},
         "--size batch=2 --size seq_q=3001 --size seq_k=1999")
    sink = {"heads": 8, "kv_heads": 2, "sink": True, "lse": True,
            "head_size": 128}
    case("sink", "full", sink, odd,
         "--size batch=2 --size seq_q=1000 --size seq_k=0")
    case("sink", "causal", {**sink, "causal": True}, odd,
         "--size batch=2 --size seq_q=3000 --size seq_k=1000")
    case("scale", "negative", {**inputs, "scale": -0.1, "causal": True},
         square + " --init=ramp")
    case("scale", "zero", {**inputs, "scale": 0.0}, odd)

    group = {"heads": 8, "kv_heads": 2, "head_size": 128, "causal": True,
             "lse": True}
    lengths = "--lengths-q 1999,0,1,3000"
    cached = "--cache-lengths 0,1777,4096,50"
    case("caches", "ragged", {**group, "query": "ragged", "cache": "ragged"},
         lengths + " --lengths-k 3001,5,0,3000", "--size batch=4 --size seq=2500")
    for query, new in ("dense", "--size seq_q=513"), ("ragged", lengths):
        problem = {**group, "query": query}
        case("caches", f"continuous, {query} queries",
             {**problem, "cache": "continuous"}, f"{new} {cached}",
             f"{new} {cached} --share-pages --separate-tables")
        for page in 256, 128, 64, 32, 16, 1:
            case("caches", f"pages of {page}, {query} queries",
                 {**problem, "cache": "paged", "page_size": page},
                 f"{new} {cached}",
                 f"{new} {cached} --share-pages --separate-tables")
    case("caches", "pages of 64, decode",
         {**group, "cache": "paged", "page_size": 64},
         "--size seq_q=1 --cache-lengths 5000,0,63,64,4097,1,2000,3000")

    case("strides", "dense", {**group}, square + " --layout=heads-major",
         square + " --row-pad=64",
         "--size batch=2 --size seq=1000 --strides q=1024,2048,128,1 "
         "--strides o=4096000,2048,128,1")
    case("strides", "pages of 16",
         {**group, "cache": "paged", "page_size": 16},
         f"--size seq_q=513 {cached} --layout=heads-major --row-pad=8")
    # K and V of 5 GB each: 40000 pages of 64 x 8 x 128, in random order.
    case("64 bit", "pages of 64",
         {"heads": 8, "head_size": 128, "cache": "paged", "page_size": 64,
          "causal": True, "lse": True},
         "--size batch=4 --size seq_q=1000 --size cache=4000 "
         "--size num_blocks=40000")
    # K of 2 x 2.2e9 elements.
    case("64 bit", "dense, distant batches",
         {"heads": 4, "head_size": 128, "causal": True, "lse": True},
         "--size batch=2 --size seq=2000 --strides k=2200000000,512,128,1")


def compile_cases(folder, target, compiler):
    """Writes DIR/NAME.kvbuf for every problem, and DIR/cases.json."""
    import problem

    folder.mkdir(parents=True, exist_ok=True)

    def one(index):
        path = folder / f"{index:03}.kvbuf"
        command = [compiler, "-", "-o", str(path), f"--target={target}"]
        done = subprocess.run(command, input=problem.problem(
            **CASES[index][2]), capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"verify_table.py: error: {CASES[index][:2]} does not "
                     f"compile:\n{done.stderr}")

    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, range(len(CASES))))
    listing = [{"artifact": f"{i:03}.kvbuf", "row": row, "name": name,
                "runs": runs}
               for i, (row, name, _, runs) in enumerate(CASES)]
    (folder / "cases.json").write_text(json.dumps(listing, indent=1))
    print(f"{len(CASES)} kernels for {target} in "
          f"{time.monotonic() - start:.0f} s", flush=True)


def describe(run):
    """The arguments of a run, short enough for a table."""
    return run.replace("--size ", "").replace("--", "")


def run_cases(folder, runner, device, only):
    """Runs DIR/cases.json; returns whether all passed."""
    cases = json.loads((folder / "cases.json").read_text())
    result = folder / "result.json"
    print(f"{'row':<16} {'case':<28} {'worst row':>9} {'baseline':>9} "
          f"{'ratio':>6}  {'':6} sizes")
    passed, failed, ratios, start = 0, 0, [], time.monotonic()
    for c in cases:
        if only and only not in f"{c['row']} {c['name']}":
            continue
        for run in c["runs"]:
            result.unlink(missing_ok=True)
            done = subprocess.run(
                [runner, str(folder / c["artifact"]), f"--device={device}",
                 "--check", "--json", str(result), *run.split()],
                capture_output=True, text=True)
            check = {}
            if result.exists():
                check = json.loads(result.read_text()).get("check", {})
            ok = done.returncode == 0 and check.get("pass") is True
            passed, failed = passed + ok, failed + (not ok)
            numbers = f"{'-':>9} {'-':>9} {'-':>6}"
            if "worst_row" in check:
                value, base = (check["worst_row"][k]
                               for k in ("value", "baseline"))
                ratio = value / base if base else 0.0
                ratios.append(ratio)
                numbers = f"{value:>9.3g} {base:>9.3g} {ratio:>6.3f}"
            print(f"{c['row']:<16} {c['name']:<28} {numbers}  "
                  f"{'pass' if ok else 'FAILED':6} {describe(run)}", flush=True)
            if not ok:
                print(done.stdout + done.stderr, flush=True)
    seconds = time.monotonic() - start
    print(f"{passed} passed, {failed} failed in {seconds:.0f} s; largest ratio "
          f"{max(ratios, default=0):.3f} (limit 1.5)")
    return failed == 0 and passed > 0


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
    parser.add_argument("--only", metavar="TEXT",
                        help="cases whose row and name contain a text")
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
                          find_tool("kvbuf-compile", args.kvbuf_compile))
        if args.compile:
            return
        ok = run_cases(folder, find_tool("kvbuf-run", args.kvbuf_run),
                       args.device, args.only)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
