#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records what a build makes of some hundred problems and programs, to compare builds.

    tools/record-code.py > before      # then change and build
    tools/record-code.py > after && diff before after

A line for each kernel and chip: name, chip, and the SHA-256 of the target stage,
or `refused`. A change that is to leave code alone leaves all lines alone; where a
line differs, `--keep=FOLDER` of both builds has the texts.
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benchmark"))
from problem import problem

#: Portable, copy engine alone, warpgroups; LDS that is not read transposed, and
#: that is.
CHIPS = "sm_80", "sm_90", "sm_90a", "gfx942", "gfx950"

PAGED = {"cache": "paged", "page_size": 16}
RAGGED = {"query": "ragged", "cache": "paged", "page_size": 64, "causal": True}
FP8 = {"kv_dtype": "f8E4M3FN", "granularity": "head"}
#: Options of benchmark/problem.py by name: of prefill, and of a few rows.
PROBLEMS = {
    "full": {"head_size": 128},
    "causal": {"head_size": 128, "causal": True, "lse": True},
    "d64": {"causal": True, "dtype": "f16"},
    "d256": {"head_size": 256, "causal": True},
    "d80": {"head_size": 80, "causal": True},
    "v-size": {"head_size": 192, "v_head_size": 128, "causal": True},
    "gqa": {"heads": 8, "head_size": 128, "causal": True},
    "window": {"head_size": 128, "window_left": 127, "window_right": 0,
               "softcap": 30.0, "sink": True},
    "pages": PAGED | {"head_size": 128, "causal": True},
    "pages-few-rows": PAGED | {"page_size": 4, "head_size": 128},
    "pages-one-row": PAGED | {"page_size": 1, "head_size": 128},
    "ragged": RAGGED | {"head_size": 128},
    "decode": {"seq_q": 1, "head_size": 128, "heads": 8, "kv_heads": 2},
    "decode-pages": PAGED | {"seq_q": 1, "head_size": 128, "heads": 8, "kv_heads": 2},
    "decode-fp8": FP8 | {"seq_q": 1, "head_size": 128, "heads": 8, "kv_heads": 2},
}
#: Programs and problems in files.
FILES = ("examples/append.mlir", "examples/gemm.mlir", "examples/decode.mlir",
         "examples/three_teams.mlir", "test/Kernels/Teams/Inputs/rings.mlir")


def inputs():
    """Names and texts."""
    for name, options in PROBLEMS.items():
        yield name, problem(**options)
    for name in FILES:
        yield name, (ROOT / name).read_text()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--compiler", default=ROOT / "build/bin/kvbuf-compile")
    parser.add_argument("--only", default="", help="a part of names and chips, `NAME CHIP`")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the texts")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()

    def record(case):
        (name, text), chip = case
        made = subprocess.run(
            [args.compiler, "-", f"--target={chip}", "--emit=target",
             "--no-alternatives", "-o", "-"], input=text, text=True,
            capture_output=True, check=False)
        if made.returncode not in (0, 2):
            raise RuntimeError(f"{name} {chip}: {made.stderr}")
        if args.keep:
            args.keep.mkdir(parents=True, exist_ok=True)
            path = args.keep / f"{name.replace('/', '-')}.{chip}"
            path.write_text(made.stdout or made.stderr)
        digest = hashlib.sha256(made.stdout.encode()).hexdigest()
        return f"{name} {chip} {'refused' if made.returncode else digest}"

    cases = [(case, chip) for case in inputs() for chip in CHIPS
             if args.only in f"{case[0]} {chip}"]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for line in pool.map(record, cases):
            print(line, flush=True)


if __name__ == "__main__":
    main()
