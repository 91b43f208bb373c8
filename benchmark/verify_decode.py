#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random problems of few query rows, each checked against float64.

    benchmark/verify_decode.py --count 20 --target sm_80 --device emulator
    benchmark/verify_decode.py --compile DIR --count 300 --target sm_90a
    benchmark/verify_decode.py --run DIR                 # with a GPU

Groups of 1 to 16 heads, head sizes of 64 to 512, every kind of cache and mask;
query rows that the type says, that the launch says, and ragged ones, of which
some are long: then the launch takes the kernel of many rows. The first form
compiles and runs here; the others compile here and run on the machine with the
GPU, which needs DIR, kvbuf-run and this folder.

A case depends on the seed and its number only. Printed are the kernels that ran
and the cases that did not pass. Exit status: 0 all passed; 1 some did not.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from problem import problem  # noqa: E402


def draw_problem(rng, wide):
    kv_heads = rng.choice([1, 2])
    group = rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16])
    options = {
        "heads": kv_heads * group, "kv_heads": kv_heads,
        "head_size": rng.choice([64, 64, 72, 80, 96, 128, 128, 128, 160, 192,
                                 256] + [320, 512] * wide),
        "dtype": rng.choice(["bf16", "f16"]),
        "query": rng.choice(["dense", "dense", "ragged"]),
        "cache": rng.choice(["dense", "paged", "paged", "ragged", "continuous"]),
        "lse": rng.random() < 0.5, "sink": rng.random() < 0.3,
        "causal": rng.random() < 0.5,
    }
    if rng.random() < 0.25:
        options["window_left"] = rng.choice([0, 7, 64, 300])
        if not options["causal"]:
            options["window_right"] = rng.choice([-1, 0, 5])
    if rng.random() < 0.2:
        options["softcap"] = 20.0
    if rng.random() < 0.1:
        options["scale"] = -0.125
    if options["cache"] == "paged":
        options["page_size"] = rng.choice([1, 3, 16, 16, 48, 64, 128])
    if options["cache"] in ("paged", "continuous"):
        options["lengths"] = rng.choice(["", "all"])
    if options["cache"] != "dense" and rng.random() < 0.2:
        options["index"] = "i64"
    if options["query"] == "dense" and rng.random() < 0.5:
        options["seq_q"] = rng.randint(1, 8)
    # A generator of their own: without them a case is what it was before there
    # were any.
    own = random.Random(str(options))
    if own.random() < 0.25:
        options["v_head_size"] = own.choice([64, 80, 128, 192])
    if own.random() < 0.25:
        options["o_dtype"] = own.choice(["f32", "bf16", "f16"])
    # Heads that warps of a block have side by side.
    if own.random() < 0.4:
        for name in "heads", "kv_heads":
            options[name] *= 4
    return options


def draw_sizes(rng, options, most_keys):
    batch = rng.choice([1, 2, 3, 5, 8])
    run = ["--seed", str(rng.randrange(1000))]
    # Few rows mostly; sometimes as many as make the launch choose otherwise.
    most = rng.choice([1, 1, 2, 4, 8, 8, 40])
    if options["query"] == "ragged":
        queries = [rng.randint(0, most) for _ in range(batch)]
        queries[rng.randrange(batch)] = most
        run += ["--lengths-q", ",".join(map(str, queries))]
    else:
        rows = options.get("seq_q") or most
        queries = [rows] * batch
        run += ["--size", f"batch={batch}", "--size", f"seq_q={rows}"]
    lengths = [rng.choice([0, 1, 15, 16, 17, rng.randint(0, most_keys)])
               for _ in range(batch)]
    lengths[rng.randrange(batch)] = rng.randint(most_keys // 2, most_keys)
    if options["cache"] == "dense":
        run += ["--size", f"seq_k={rng.choice(lengths)}"]
    elif options["cache"] == "ragged":
        run += ["--lengths-k", ",".join(map(str, lengths))]
    else:
        run += ["--cache-lengths", ",".join(map(str, lengths))]
    return run


def make(seed, number, folder, args, most_keys):
    """Compiles one problem; its name, what it is and the arguments of its
    runs."""
    rng = random.Random(f"{seed}:{number}")
    options = draw_problem(rng, args.wide)
    runs = [draw_sizes(rng, options, most_keys) for _ in range(args.sizes)]
    path = folder / f"decode{number}.kvbuf"
    command = [args.kvbuf_compile, "-", f"--target={args.target}", "-o", path]
    if args.device == "emulator":
        command.append("--ptxas=none")
    done = subprocess.run(command, input=problem(**options), text=True,
                          capture_output=True)
    said = " ".join(f"{n}={str(v).lower() if isinstance(v, bool) else v}"
                    for n, v in options.items())
    if done.returncode:
        sys.exit(f"{seed}:{number} {said}\n{done.stderr}")
    return {"artifact": path.name, "problem": said, "runs": runs}


def run(case, arguments, folder, args):
    """(whether it passed, the kernel that ran, what it printed)."""
    if time.monotonic() > args.end:
        return True, "not run", ""
    command = [args.kvbuf_run, folder / case["artifact"],
               f"--device={args.device}", "--check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    chosen = re.search(r"^launched +(\S+)", done.stdout, re.MULTILINE)
    kind = ("one kernel" if not chosen else
            "few rows" if re.search("_of_few(er)?_rows$", chosen[1]) else "many rows")
    return done.returncode == 0, kind, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    build = pathlib.Path(__file__).resolve().parent.parent / "build/bin"
    parser.add_argument("--compile", metavar="DIR", type=pathlib.Path)
    parser.add_argument("--run", metavar="DIR", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=20, help="runs [20]")
    parser.add_argument("--sizes", type=int, default=5,
                        help="runs of each problem, at sizes of their own [5]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=1e9,
                        help="begin no run after so many")
    parser.add_argument("--keys", type=int, help="keys of a sequence, at most")
    parser.add_argument("--wide", type=int, default=1,
                        help="0: no heads of more than 256 elements")
    for tool in "kvbuf-compile", "kvbuf-run":
        here = build / tool
        parser.add_argument(f"--{tool}", metavar="PATH",
                            default=str(here) if here.exists() else tool)
    args = parser.parse_args()
    args.end = time.monotonic() + args.seconds
    most_keys = args.keys or (300 if args.device == "emulator" else 5000)
    with tempfile.TemporaryDirectory() as scratch, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = args.compile or args.run or pathlib.Path(scratch)
        if args.run:
            cases = json.loads((folder / "cases.json").read_text())
        else:
            folder.mkdir(parents=True, exist_ok=True)
            count = -(-args.count // args.sizes)
            cases = list(pool.map(
                lambda n: make(args.seed, n, folder, args, most_keys),
                range(count)))
            (folder / "cases.json").write_text(json.dumps(cases))
        if args.compile:
            return
        jobs = [(c, a, pool.submit(run, c, a, folder, args))
                for c in cases for a in c["runs"]]
        counts = collections.Counter()
        for case, arguments, job in jobs:
            good, kernel, text = job.result()
            counts[kernel] += 1
            if kernel != "not run":
                counts["passed" if good else "FAILED"] += 1
            if not good:
                print(f"FAILED {case['problem']} | {case['artifact']} "
                      f"{' '.join(arguments)}\n{text[-1000:]}", flush=True)
    print(", ".join(f"{what}: {n}" for what, n in sorted(counts.items())))
    sys.exit(1 if counts["FAILED"] or not counts["passed"] else 0)


if __name__ == "__main__":
    main()
