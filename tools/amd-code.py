#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which default schedules spill registers or drain loads, for AMD's chips.

    tools/amd-code.py                     all cases: a line for each that does
    tools/amd-code.py --only='latent|e4m3.*gfx942'  those of which `CASE CHIP` has what
                                          this expression finds
    tools/amd-code.py --record=2026-11-29  the same, into docs/measured/amd-code.json,
                                          where other cases stay as they are, and a note
                                          says which are newer
    tools/amd-code.py --sample=6 --check  some at random, held to what is recorded

The cases are those of the rows of the features of docs/support.md. Each is compiled as
by default (but for the copies of tensors, which are kernels of their own), and its code
object read: vector and scalar registers that were spilled, bytes that lanes keep in
memory, and whether a wait in the loop with the most products is for all loads. What is
not recorded does none of it. --check fails where code is worse than its record, where
a row of the document has no cases, and where a case is of no row.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benchmark"))
from problem import problem  # noqa: E402

CHIPS = "gfx942", "gfx950"
RECORD = pathlib.Path("docs/measured/amd-code.json")

MANY = {"head_size": 128, "causal": True, "lse": True}
FEW = {"head_size": 128, "seq_q": 1, "heads": 8, "kv_heads": 2}
E4M3 = {"kv_dtype": "f8E4M3FN", "granularity": "head"}


def pages(size):
    return {"cache": "paged", "page_size": size}


def sweep(name, options, key, values):
    return {f"{name} {value}": options | {key: value} for value in values}


def both(name, options):
    """Many rows and few."""
    return {f"{name}, many rows": MANY | options, f"{name}, few rows": FEW | options}


def files(*names):
    return {name: ROOT / name for name in names}


def own_floats(forms, **options):
    """Products of 8-bit floats in each chip's form."""
    return {chip: options | {"dtype": form, "o_dtype": "bf16"}
            for chip, form in zip(CHIPS, forms)}


E4M3_FORMS, E5M2_FORMS = ("f8E4M3FNUZ", "f8E4M3FN"), ("f8E5M2FNUZ", "f8E5M2")


#: The first words of a row's description -> its cases: a name, and options of
#: benchmark/problem.py, a file, or either by chip.
ROWS = {
    "one KV head for each query head": {
        "heads 8 on 2": MANY | {"heads": 8, "kv_heads": 2},
        "heads 8 on 1": MANY | {"heads": 8, "kv_heads": 1}},
    "groups that do not divide": {
        name: case for n in (3, 5, 7) for name, case in both(
            f"heads {n} on 1", {"heads": n, "kv_heads": 1}).items()},
    "64, 128, 256": {
        **sweep("head size", MANY, "head_size", (64, 128, 256)),
        **sweep("few rows, head size", FEW, "head_size", (64, 128, 256))},
    "80, 96": {
        **sweep("head size", MANY, "head_size", (40, 72, 80, 96, 112, 160, 176, 192, 224)),
        **sweep("few rows, head size", FEW, "head_size", (40, 72, 80, 96))},
    "320, 512": {
        **sweep("head size", MANY, "head_size", (320, 512)),
        **sweep("few rows, head size", FEW, "head_size", (320, 512))},
    "V and O of another one": {
        name: case for k, v in ((192, 128), (128, 64), (64, 128), (80, 112))
        for name, case in both(f"head size {k} with {v}",
                               {"head_size": k, "v_head_size": v}).items()},
    "bf16, f16; fp32 accumulation": {
        "f16": MANY | {"dtype": "f16"}, "no log-sum-exp": MANY | {"lse": False},
        "no log-sum-exp, head size 64": MANY | {"lse": False, "head_size": 64},
        "f16, few rows": FEW | {"dtype": "f16", "lse": True}},
    "O of f32, bf16 or f16": both("O of f32", {"o_dtype": "f32"}),
    "Q, K and V of e4m3 or e5m2": {
        "products of e4m3": own_floats(E4M3_FORMS, **MANY),
        "products of e5m2": own_floats(E5M2_FORMS, **MANY),
        "products of e4m3, few rows": own_floats(E4M3_FORMS, **FEW)},
    "none, causal (bottom-right), windows": {
        "no mask": {"head_size": 128},
        "window": MANY | {"window_left": 127, "window_right": 0, "causal": False},
        "window to the right": {"head_size": 128, "window_right": 63},
        "window, few rows": FEW | {"window_left": 127}},
    "each with a soft cap": both("soft cap", {"softcap": 30.0}),
    "attention sink per head": both("sink", {"sink": True}),
    "negative and zero scale": {"negative scale": MANY | {"scale": -0.1}},
    "dense; ragged, with empty": {
        name: case for cache in ("ragged", "continuous") for query in ("dense", "ragged")
        for name, case in {f"{cache} cache, {query} queries":
                           MANY | {"cache": cache, "query": query}}.items()},
    "paged: pages of 128": {
        name: case for size in (128, 64, 32, 16, 1)
        for name, case in both(f"pages of {size}", pages(size)).items()},
    "pages of 3, 96, 528": {
        name: case for size in (3, 96, 528)
        for name, case in both(f"pages of {size}", pages(size)).items()},
    "lengths that count the new": {
        "lengths of all": MANY | pages(16) | {"lengths": "all"}},
    "tables, lengths and offsets": both("indices of 64 bits",
                                        pages(16) | {"index": "i64"}),
    "cached tokens before the new": {
        "ragged queries, pages of 16": MANY | pages(16) | {"query": "ragged"},
        "ragged queries, pages of 64": MANY | pages(64) | {"query": "ragged"}},
    "rows of K and V that hold more": both(
        "wide rows", {"k_cache_depth": 256, "v_cache_depth": 256,
                      "v_head_dim_offset": 128}),
    "a row's bits do not depend": {
        "batch-invariant": MANY | {"batch_invariant": True}},
    "sigmoid weights; ALiBi": files("examples/sigmoid.mlir", "examples/bias.mlir"),
    "functions of scores and visibility": files(
        *(f"examples/scores/{name}.mlir" for name in (
            "alibi", "bias", "bits", "documents", "relative", "tree", "tree-bits"))),
    "lists of partly and wholly": files("examples/scores/blocks.mlir"),
    "teams: warps with keys or rows": files("examples/three_teams.mlir"),
    "teams joined by rings": {"rings": {
        "gfx950": ROOT / "test/Kernels/Teams/Inputs/rings.mlir"}},
    "C = A B": files("examples/gemm.mlir", "examples/gemm_nn.mlir"),
    "K^T V and an accumulator": files("examples/linear_attention.mlir"),
    "values that are the first columns": {
        f"latent, {heads} heads": {
            "latent": True, "head_size": 576, "v_head_size": 512, "heads": heads,
            "kv_heads": 1, "seq_q": 1, "causal": True} | pages(64)
        for heads in (16, 128)},
    "keys split over blocks": {
        **sweep("rows", FEW, "seq_q", (2, 4, 8)),
        "8 heads on 1, few rows": FEW | {"kv_heads": 1}},
    "chosen at the launch": {
        "ragged queries, 8 heads on 2": MANY | pages(16) | {
            "query": "ragged", "heads": 8, "kv_heads": 2}},
    "few rows over quantized caches": {
        f"{element}, a scale of the {of}, pages of {size}, few rows":
            FEW | pages(size) | {"kv_dtype": element, "granularity": of}
        for element, of, size in (("f8E4M3FN", "tensor", 16), ("f8E5M2", "head", 16),
                                  ("f8E4M3FN", "head", 1), ("f8E4M3FNUZ", "head", 64))},
    "scales of groups of a token's": {
        name: case for of in (128, 64, 32)
        for name, case in both(f"e4m3, a scale of {of} elements, pages of 16",
                               pages(16) | E4M3 | {"granularity": of}).items()},
    "quantized caches, as few rows": {
        **{f"e4m3, pages of {size}": MANY | pages(size) | E4M3
           for size in (1, 3, 16, 528)},
        "e4m3, dense": MANY | E4M3,
        "e4m3, window, pages of 16": MANY | pages(16) | E4M3 | {"window_left": 127},
        "e4m3, ragged queries, pages of 16": MANY | pages(16) | E4M3 | {
            "query": "ragged"},
        "e4m3, head size 64": MANY | pages(16) | E4M3 | {"head_size": 64}},
    "by hand, lane by lane": files("examples/append.mlir"),
}
#: Rows whose code is that of other rows, or that no default schedule makes.
WITHOUT = {
    "multiples of nothing", "sums added up in parts", "no keys: O = 0", "negative, too long",
    "pages shared by sequences", "unused rows, pages", "unused rows hold infinities",
    "run-time batch", "addresses and strides", "the same by copies", "caches beyond 2^31",
    "the same as a problem", "the same lists made", "fragments that change",
    "warps that share columns",
    "ops of another dialect", "sequences of one and of hundreds", "equal shares",
    "`kvbuffer.cache_append` into", "keys rotated by", "e4m3 and e5m2 (FNUZ",
    "V's heads of another", "tables and lengths that", "before attention of few",
    "an append, a prefill", "filled through registers", "attention and appends among",
    "attention raised out", "launches on a caller's", "standard normal, rare",
}


def described_rows(text):
    """The descriptions in the table of features."""
    section = text.split("## Features", 1)[1].split("\n\n`kvbuf-run`", 1)[0]
    rows = [line.split("|")[2].strip() for line in section.split("\n")
            if line.startswith("|")]
    return [row for row in rows[1:] if row and set(row) != {"-"}]


def unmatched(text):
    """What the table and the cases do not have in common, in words."""
    rows = described_rows(text)
    known = [*ROWS, *WITHOUT]
    wrong = [f"no cases for the row '{row[:60]}'" for row in rows
             if sum(row.startswith(words) or row.replace("ᵀ", "").startswith(words)
                    for words in known) != 1]
    return wrong + [f"no row begins with '{words}'" for words in known
                    if not any(row.startswith(words) for row in rows)]


def cases():
    """(case, chip) -> what is compiled."""
    named = {name: case for row in ROWS.values() for name, case in row.items()}
    by_chip = {name: case if isinstance(case, dict) and set(case) <= set(CHIPS)
               else dict.fromkeys(CHIPS, case) for name, case in named.items()}
    return {(name, chip): case for name, one in by_chip.items()
            for chip, case in one.items()}


def faults_of(compiler, case, chip):
    """The numbers of a case that are not 0, by name; a text where it does not
    compile."""
    text = case.read_text() if isinstance(case, pathlib.Path) else problem(**case)
    made = subprocess.run(
        [compiler, "-", f"--target={chip}", "--no-alternatives", "--report=json", "-o",
         os.devnull], input=text, text=True, capture_output=True, check=False)
    if made.returncode:
        why = [line for line in made.stderr.split("\n") if "error: " in line]
        return {"does not compile: " + why[0]: 1}
    kernels = json.loads(made.stdout)["kernels"]
    if not kernels:
        return {"no kernel": 1}
    faults = {}
    for label, key in (("vector registers spilled", "vgpr_spills"),
                       ("scalars spilled", "sgpr_spills"),
                       ("bytes of scratch", "scratch_bytes")):
        faults[label] = max(kernel[key] for kernel in kernels)
    faults["drains"] = max(loop["drains"] for kernel in kernels
                           for loop in [*kernel["loops"], {"hot": 1, "drains": 0}]
                           if loop["hot"])
    return {label: int(number) for label, number in faults.items() if number}


def read_record(root):
    """(case, chip) -> faults."""
    run = json.loads((root / RECORD).read_text(encoding="utf-8"))["runs"][0]
    labels = run["columns"][2:]
    return {(row[0], row[1]): {label: int(cell) if cell != "yes" else 1
                               for label, cell in zip(labels, row[2:]) if cell}
            for row in run["rows"]}


COLUMNS = ["vector registers spilled", "scalars spilled", "bytes of scratch", "drains"]


def lines_of(run):
    """A run as the files of docs/measured have it: a line a row."""
    def dump(x):
        return json.dumps(x, ensure_ascii=False)
    head = {key: x for key, x in run.items() if key not in ("rows", "notes")}
    return (dump(head)[:-1] + ',\n "rows": [\n' +
            ",\n".join("  " + dump(row) for row in run["rows"]) +
            '\n ],\n "notes": ' + dump(run["notes"]) + "}")


def compiled_by(compiler):
    """The LLVM of a compiler."""
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True,
                          check=True).stdout
    return re.search(r"LLVM version (\S+)", said)[1]


#: How the note on cases that are newer than the others begins.
NEWER = "Newer than the others: "


def write_record(root, found, date, only, llvm):
    """Writes what was found into the record of `root`. Where these are cases that `only`
    finds, others stay, with their date."""
    runs = json.loads((root / RECORD).read_text(encoding="utf-8"))["runs"]
    known, notes = read_record(root), [
        note for note in runs[0]["notes"] if not note.startswith(NEWER)]
    if only:
        newer = [note.removeprefix(NEWER).removesuffix(".") for note in runs[0]["notes"]
                 if note.startswith(NEWER)]
        newer = [part for part in "; ".join(newer).split("; ")
                 if part and not part.startswith(f"`{only}` ")]
        notes.append(NEWER + "; ".join([*newer, f"`{only}` ({date}, LLVM {llvm})"]) + ".")
    else:
        runs[0] |= {"date": date, "versions": {"LLVM": llvm}}
    found = {key: found.get(key, known.get(key, {})) for key in cases()}
    runs[0] |= {
        "title": f"default schedules and programs that spill or drain, of {len(found)}",
        "columns": ["case", "chip", *COLUMNS], "notes": notes,
        "rows": [[name, chip, *(("yes" if label == "drains" else str(faults[label]))
                                if label in faults else "" for label in COLUMNS)]
                 for (name, chip), faults in found.items() if faults]}
    (root / RECORD).write_text('{\n"runs": [\n' + ",\n".join(map(lines_of, runs)) +
                               "\n]\n}\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--compiler", default=ROOT / "build/bin/kvbuf-compile")
    parser.add_argument("--only", default="", metavar="REGEX",
                        help="of `CASE CHIP`")
    parser.add_argument("--sample", type=int, help="so many cases, at random")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--check", action="store_true", help="hold to the record")
    parser.add_argument("--record", metavar="DATE", help="write the record, of that day")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT,
                        help="where --check and --record find docs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()

    wrong = []
    chosen = {key: case for key, case in cases().items()
              if re.search(args.only, " ".join(key))}
    if not chosen:
        parser.error(f"no case has what --only={args.only} finds")
    if args.record and args.sample is not None:
        parser.error("--record and --sample: a record is of all cases, or of those that "
                     "--only finds")
    if args.check:
        wrong = unmatched((args.root / "docs/support.md").read_text(encoding="utf-8"))
        record = read_record(args.root)
        wrong += [f"recorded, but no case: {', '.join(key)}" for key in record
                  if key not in cases()]
    if args.sample is not None:
        print(f"--seed={args.seed}")
        keys = random.Random(args.seed).sample(sorted(chosen), args.sample)
        chosen = {key: chosen[key] for key in keys}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        found = dict(zip(chosen, pool.map(
            lambda key: faults_of(args.compiler, chosen[key], key[1]), chosen)))
    for key, faults in found.items():
        if args.check:
            wrong += [f"{', '.join(key)}: {label}: {number}, recorded {known}"
                      for label, number in faults.items()
                      if number > (known := record.get(key, {}).get(label, 0))]
        if faults:
            print(f"{', '.join(key)}: " + ", ".join(
                label if label == "drains" else f"{number} {label}"
                for label, number in faults.items()))
    print(f"{len(found)} cases")
    if args.record:
        write_record(args.root, found, args.record, args.only, compiled_by(args.compiler))
    for text in wrong:
        print(f"error: {text}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
