#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far the report's model of AMD's chips is from speeds that others have published.

    tools/amd-public.py --check              the stated errors, by today's code and model
    tools/amd-public.py --record=2026-11-30  the same, into docs/measured/amd-code.json

Each row of the run `public` names a kernel, a device, a head size and its published
speed. Our own kernel for that head size is compiled for the device's chip, and the
share of the issue cycles that its MFMAs have in the loop without a mask, by the model,
is set beside the published share of the peak. --check fails where a figure of the table,
or of the text behind it in docs/targets/amd.md, is another one.
"""

import argparse
import functools
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benchmark"))
from problem import problem  # noqa: E402

RECORD = pathlib.Path("docs/measured/amd-code.json")
PAGE = pathlib.Path("docs/targets/amd.md")
#: TFLOP/s of 16-bit matrix products by AMD's data sheets, and of the fastest product of
#: matrices that was published, where one was.
DEVICES = {"MI355X": ("gfx950", 2500, 1580), "MI300X": ("gfx942", 1307, None)}


@functools.lru_cache
def share(compiler, chip, size):
    """The MFMAs' share of the issue cycles, full attention of bf16."""
    text = problem(heads=16, kv_heads=16, head_size=size)
    made = subprocess.run(
        [compiler, "-", f"--target={chip}", "--no-alternatives", "--report=json", "-o",
         os.devnull], input=text, text=True, capture_output=True, check=True)
    loops = json.loads(made.stdout)["kernels"][0]["loops"]
    return max(loop["mfma_share"] for loop in loops if loop["hot"])


def figures(compiler, row):
    """(of the peak, of the product or None, ours, and what ours is of each)."""
    chip, peak, product = DEVICES[row[1]]
    ours, speed = share(compiler, chip, int(row[2])), int(row[3])
    of_product = speed / product if product else None
    return (speed / peak, of_product, ours, ours / (speed / peak),
            ours / of_product if product else None)


def row_of(row, numbers):
    peak, product, ours, over, over_product = numbers
    percent = lambda x: "" if x is None else f"{100 * x:.0f} %"  # noqa: E731
    ratio = lambda x: "" if x is None else f"{x:.2f}"  # noqa: E731
    return [*row[:4], percent(peak), percent(product), percent(ours), ratio(over),
            ratio(over_product)]


def sentences(rows, found):
    """What the page says behind the table."""
    over = [numbers[3] for numbers in found]
    of_product = sorted(round(100 * (numbers[4] - 1)) for numbers in found
                        if numbers[4])
    by_size = {row[2]: numbers[2] for row, numbers in zip(rows, found)
               if row[1] == "MI355X"}
    return [f"an upper limit that is {min(over):.1f} to {max(over):.1f} times what was "
            "measured",
            f"for MI355X has {100 * 1580 / 2500:.0f} % of that peak",
            f"the model is {of_product[0]} to {of_product[-2]} % too high, and "
            f"{of_product[-1]} % for AITER at head size 64",
            f"it puts head size 64 at {by_size['64'] / by_size['128']:.2f} of 128"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--compiler", default=ROOT / "build/bin/kvbuf-compile")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--record", metavar="DATE")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT,
                        help="where docs are")
    args = parser.parse_args()
    path = args.root / RECORD
    text = path.read_text(encoding="utf-8")
    run, = (r for r in json.loads(text)["runs"] if r["id"] == "public")
    found = [figures(args.compiler, row) for row in run["rows"]]
    rows = [row_of(row, numbers) for row, numbers in zip(run["rows"], found)]
    wrong = [f"{' '.join(was[:3])}: recorded {was[4:]}, now {now[4:]}"
             for was, now in zip(run["rows"], rows) if was != now]
    page = re.sub(r"\s+", " ", (args.root / PAGE).read_text(encoding="utf-8"))
    wrong_text = [f"{PAGE} does not say '{sentence}'"
                  for sentence in sentences(rows, found) if sentence not in page]
    if args.record:
        for was, now in zip(run["rows"], rows):
            text = text.replace(json.dumps(was, ensure_ascii=False),
                                json.dumps(now, ensure_ascii=False))
        head = f'"title": {json.dumps(run["title"], ensure_ascii=False)}, "date": "'
        text = text.replace(head + run["date"], head + args.record)
        path.write_text(text, encoding="utf-8")
        wrong = []
    for row in rows:
        print(" | ".join(row))
    for error in (wrong if args.check else []) + wrong_text:
        print(f"error: {error}", file=sys.stderr)
    return 1 if wrong_text or (args.check and wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
