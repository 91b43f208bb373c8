#!/usr/bin/env python3
"""Writes the tables of the documents from docs/measured/*.json.

    tools/measured-tables.py            rewrites the documents
    tools/measured-tables.py --check    says which are not up to date; status 1

A document holds a table between two comments:

    <!-- measured: FILE/RUN -->            the rows of a run, as they were written down
    <!-- measured: FILE cards NAME -->     a series: the newest card and the worst, side by side
    <!-- measured: FILE techniques NAME -->  a line a technique: what it gained, whether it stayed
    <!-- /measured -->

A file of docs/measured has 'runs', and may have 'series' and 'techniques'. A run has
the fields that REQUIRED names; what was not written down is "". 'notes' are what was
noted with it: figures without a table are there and nowhere else.
"""

import argparse
import json
import pathlib
import re
import sys

REQUIRED = ["id", "title", "date", "card", "driver", "versions", "commit", "mode",
            "columns", "rows", "notes"]
BEGIN = re.compile(r"^<!-- measured: (\S+)(?: (cards|techniques) (\S+))? -->$")
END = "<!-- /measured -->"


class Wrong(Exception):
    """A file or a marker that means nothing."""


def load(folder):
    """The files of docs/measured by name, their runs by id."""
    data = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        runs = {}
        for run in content["runs"]:
            for field in REQUIRED:
                if field not in run:
                    raise Wrong(f"{path.name}: a run lacks '{field}': {run.get('id')}")
            if not re.fullmatch(r"20\d\d-\d\d-\d\d", run["date"]) or not run["card"]:
                raise Wrong(f"{path.name}: run '{run['id']}' has no date or no card")
            if run["id"] in runs:
                raise Wrong(f"{path.name}: two runs '{run['id']}'")
            if any(len(row) != len(run["columns"]) for row in run["rows"]):
                raise Wrong(f"{path.name}: run '{run['id']}' has a row of another width")
            runs[run["id"]] = run
        data[path.stem] = {"runs": runs, "series": content.get("series", {}),
                           "techniques": content.get("techniques", {})}
    return data


def table(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return [re.sub(r"  +", " ", line) for line in lines]


def where(run):
    """One line: when, on what, how."""
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    parts = [run["date"], run["card"], run["driver"] and "driver " + run["driver"],
             versions, run["commit"] and "commit " + run["commit"], run["mode"]]
    return run["title"][0].upper() + run["title"][1:] + " (" + "; ".join(p for p in parts if p) + "):"


def cards(series):
    """The newest card beside the worst of each case."""
    lower = series.get("better") == "lower"
    newest = series["cards"][-1]
    digits = series.get("digits", 3)
    required = series.get("required", {})
    rows = []
    for case in series["cases"]:
        known = [(card["values"][case], card["date"]) for card in series["cards"]
                 if case in card["values"]]
        worst, date = (max if lower else min)(known)
        new = newest["values"].get(case)
        rows.append([case, f"{required[case]:g}" if case in required else "",
                     "" if new is None else f"{new:.{digits}f}",
                     f"{worst:.{digits}f} ({date})"])
    return [f"{series['title'][0].upper()}{series['title'][1:]}, {len(series['cards'])} cards:", ""] + table(
        ["case", "required", f"newest card ({newest['date']})", "worst card"], rows)


def content(data, name, kind, key):
    """The lines between two markers."""
    file, _, run = name.partition("/")
    try:
        if kind == "cards":
            return cards(data[file]["series"][key])
        if kind == "techniques":
            return table(["technique", "by how much", "kept"], data[file]["techniques"][key])
        run = data[file]["runs"][run]
    except KeyError as error:
        raise Wrong(f"nothing measured is called {error.args[0]!r}") from None
    return [where(run), ""] + table(run["columns"], run["rows"])


def rewritten(path, data):
    """The text of a document with its tables as the data has them."""
    out, inside = [], None
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        match = BEGIN.match(line)
        if match:
            if inside:
                raise Wrong(f"{path.name}:{number}: a table begins inside of another one")
            inside = number
            try:
                out += [line, *content(data, *match.groups())]
            except Wrong as error:
                raise Wrong(f"{path.name}:{number}: {error}") from None
        if line == END:
            if not inside:
                raise Wrong(f"{path.name}:{number}: the end of no table")
            inside = None
        if not inside:
            out.append(line)
    if inside:
        raise Wrong(f"{path.name}:{inside}: a table without an end")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="change nothing")
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    args = parser.parse_args()
    try:
        data = load(args.root / "docs/measured")
        old = []
        for path in [*args.root.glob("*.md"), *sorted((args.root / "docs").rglob("*.md"))]:
            text = rewritten(path, data)
            if text != path.read_text(encoding="utf-8"):
                old.append(path)
                if not args.check:
                    path.write_text(text, encoding="utf-8")
    except Wrong as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if args.check and old:
        for path in old:
            print(f"error: {path.relative_to(args.root)}: tables are not up to date; "
                  "run tools/measured-tables.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
