#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws results of `kvbuf-tune --json` or `kvbuf-run --bench --json`, or columns of
docs/measured, by matplotlib.

  benchmark/plot.py OUT.svg RESULTS.json...     (or .png, .pdf)
  benchmark/plot.py OUT.svg docs/measured/prefill.json:cudnn:ratio

FILE:ID:COLUMN is a column of a table of measurements, a bar for each row: the first
number of its cell; of columns of one name the last. Otherwise a bar for each kernel: median time with the middle half of the launches; modelled
cycles or instructions where nothing was timed, which the axis says. Kernels that were
not offered, because they spill, are hatched. All files must hold the same kind of
number. Exit status: 0 drawn, 2 bad input, or matplotlib is missing.
"""

import json
import os
import re
import sys

AXES = {"time": "median time, us (line: the middle half)",
        "model": "modelled cycles: a model, no measurement",
        "instructions": "warp instructions: counted, no time"}


def fail(text):
    print(f"plot.py: error: {text}", file=sys.stderr)
    sys.exit(2)


def read_measured(text):
    """As `read`, of FILE:ID:COLUMN."""
    path, name, column = text.split(":", 2)
    try:
        with open(path) as file:
            runs = json.load(file)["runs"]
        run = next((r for r in runs if r["id"] == name), None)
    except (OSError, ValueError, KeyError, TypeError) as e:
        fail(f"'{path}': expected a file of docs/measured ({e})")
    if run is None:
        fail(f"'{path}': no table '{name}'; expected one of "
             + ", ".join(sorted({r["id"] for r in runs})))
    columns = run["columns"]
    if column not in columns:
        fail(f"'{path}': '{name}' has no column '{column}'; expected one of "
             + ", ".join(f"'{c}'" for c in columns))
    at = len(columns) - 1 - columns[::-1].index(column)
    rows = []
    for row in run["rows"]:
        number = re.match(r"[^\d-]*(-?\d+(?:\.\d+)?)", row[at])
        if number:
            label = ", ".join(row[:next((i for i, cell in enumerate(row) if i and
                                         re.match(r"-?\d", cell)), 1)])
            rows.append((label, float(number[1]), 0.0, 0.0, True))
    what = f"{run['title']}: {column} ({run['date']}, {run['card']})"
    return column, what, rows


def read(path):
    """(kind, what was run, [(label, value, below, above, offered)]) of a file."""
    if path.count(":") >= 2:
        return read_measured(path)
    try:
        with open(path) as file:
            root = json.load(file)
    except (OSError, ValueError) as e:
        fail(f"'{path}': {e}")
    expected = f"'{path}': expected a file of kvbuf-tune --json or kvbuf-run --bench --json"
    if not isinstance(root, dict):
        fail(expected)
    try:
        sizes = root.get("sizes") or {}
        sizes = " ".join(f"{k}={v}" for k, v in sizes.items())
        if "bench" in root:
            b = root["bench"]
            values = [b[k] * 1e6 for k in ("median_s", "lower_quartile_s",
                                           "upper_quartile_s")]
            what = f"{root.get('target', '')} on {root['device']['name']}, {sizes}"
            name = os.path.splitext(os.path.basename(path))[0]
            return "time", what, [(name, *spread(values), True)]
        kind = root["ranked_by"]
        keys = {"time": ("median_us", "lower_quartile_us", "upper_quartile_us"),
                "model": ("modelled_cycles",),
                "instructions": ("warp_instructions",)}[kind]
        what = f"{root['chip']} on {root['device']}, {sizes}"
        rows = [(r["schedule"] or "(compiler's choice)", *spread([r[k] for k in keys]),
                 r.get("offered", True)) for r in root["results"]]
        return kind, what, rows
    except (KeyError, TypeError, AttributeError):
        fail(expected)


def spread(values):
    """The first value and how far the others lie below and above."""
    median, low, high = values if len(values) == 3 else values * 3
    return median, median - low, high - median


def main():
    args = sys.argv[1:]
    if len(args) < 2 or any(a in ("-h", "--help") for a in args):
        print(__doc__)
        sys.exit(0 if "-h" in args or "--help" in args else 2)
    out, files = args[0], [read(path) for path in args[1:]]
    kinds = sorted({kind for kind, _, _ in files})
    if len(kinds) > 1:
        fail(f"the files hold {' and '.join(kinds)}, which one axis cannot show")
    if not any(rows for _, _, rows in files):
        fail("the files hold no results")
    try:
        import matplotlib
    except ImportError:
        fail("matplotlib is not installed (pip install matplotlib)")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    count = sum(len(rows) for _, _, rows in files)
    figure, axes = pyplot.subplots(figsize=(9, 1.6 + 0.32 * count), layout="constrained")
    labels, at = [], 0
    for kind, what, rows in files:
        places = range(at, at + len(rows))
        bars = axes.barh(places, [r[1] for r in rows], label=what,
                         xerr=[[r[2] for r in rows], [r[3] for r in rows]]
                         if kind == "time" else None)
        for bar, row in zip(bars, rows):
            if not row[4]:
                bar.set_hatch("//")
                bar.set_alpha(0.5)
        labels += [r[0] + ("" if r[4] else " (spills: not offered)") for r in rows]
        at += len(rows)
    axes.set_yticks(range(at), labels)
    axes.invert_yaxis()
    axes.set_xlabel(AXES.get(kinds[0], kinds[0]))
    figure.legend(loc="outside upper left", frameon=False)
    try:
        figure.savefig(out)
    except (OSError, ValueError) as e:
        fail(f"'{out}': {e}")


if __name__ == "__main__":
    main()
