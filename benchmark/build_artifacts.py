#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the kernels that cudnn_compare.py measures: DIR/NAME.kvbuf.

    benchmark/build_artifacts.py DIR --target=sm_90a
    benchmark/build_artifacts.py DIR --cases 'd128-*' \\
        --options d128-full=--schedule=BM=128,BN=176 \\
        --options d128-full@bn128=--schedule=BN=128

--options gives further options of kvbuf-compile to one kernel: PROBLEM=TEXT for
a problem, CASE=TEXT for a kernel of one case's own, and NAME@LABEL=TEXT for one
more to run beside it. `cudnn_compare.py --list` prints the names.

Exit status: 0 all compiled; 1 some did not; 2 bad usage.
"""

import argparse
import concurrent.futures
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402
import problem  # noqa: E402


def plan(cases, options):
    """{file name without .kvbuf: (options of the problem, options of
    kvbuf-compile)}. Raises ValueError for a name that is none."""
    known = {}
    for case in cases:
        known[case.problem] = known[case.name] = case
    jobs = {case.problem: (case.options(), []) for case in cases}
    for text in options:
        name, equal, extra = text.partition("=")
        stem = name.partition("@")[0]
        if not equal or stem not in known:
            raise ValueError(f"--options {text}: expected NAME=TEXT or "
                             "NAME@LABEL=TEXT, with a NAME of "
                             + ", ".join(sorted(known)))
        jobs[name] = known[stem].options(), shlex.split(extra)
    return jobs


def build(folder, jobs, target, compiler, workers):
    """Returns the messages of those that failed, by name."""
    folder.mkdir(parents=True, exist_ok=True)

    def one(job):
        name, (options, extra) = job
        command = [compiler, "-", "-o", str(folder / f"{name}.kvbuf"),
                   f"--target={target}", *extra]
        done = subprocess.run(command, input=problem.problem(**options),
                              capture_output=True, text=True)
        word = "failed" if done.returncode else "done"
        print(f"{name}.kvbuf: {word}", flush=True)
        return name, done.stderr if done.returncode else ""

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return {name: text for name, text in pool.map(one, jobs.items())
                if text}


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", metavar="DIR", type=pathlib.Path)
    parser.add_argument("--target", default="sm_90a", help="chip [sm_90a]")
    parser.add_argument("--cases", default="*", metavar="PATTERNS",
                        help="names or patterns, separated by commas [all]")
    parser.add_argument("--options", action="append", default=[],
                        metavar="NAME[@LABEL]=TEXT",
                        help="options of kvbuf-compile; may be repeated")
    parser.add_argument("--kvbuf-compile", metavar="PATH")
    parser.add_argument("-j", type=int, default=os.cpu_count(), metavar="N",
                        help="compilers at a time [one a core]")
    args = parser.parse_args(arguments)
    built = pathlib.Path(__file__).resolve().parent.parent / "build/bin"
    compiler = args.kvbuf_compile or shutil.which(
        "kvbuf-compile", path=f"{built}:{os.environ.get('PATH', '')}")
    if not compiler:
        parser.error("kvbuf-compile was not found; --kvbuf-compile can name it")
    try:
        jobs = plan(common.select(common.all_cases(), args.cases), args.options)
    except ValueError as error:
        parser.error(str(error))
    failed = build(args.folder, jobs, args.target, compiler, max(1, args.j))
    for name, text in failed.items():
        print(f"build_artifacts.py: error: {name} does not compile:\n{text}",
              file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
