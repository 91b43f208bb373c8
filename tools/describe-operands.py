#!/usr/bin/env python3
"""Puts what TableGen says of operands, attributes and results into the reference.

    llvm-tblgen --dump-json KVBuffer.td -o dialect.json
    tools/describe-operands.py dialect.json --into Dialect.md
    tools/describe-operands.py dialect.json --check

mlir-tblgen's tables describe the type of an operand alone; `Arg<TYPE, "words">` and
`Res<TYPE, "words">` have words of their own. --check lists ops without a summary or
a description, and operands, attributes and results without words, and the same of
passes and their options; status 1 if any.
"""

import argparse
import html
import json
import pathlib
import re
import sys


def words_of(records, reference):
    """The words of an argument, "" if it has none."""
    record = records[reference["def"]]
    return record["summary"] if "OpVariable" in record["!superclasses"] else ""


def ops(records):
    """(name, record, {"argument" or "result": {name: words}}) of each op."""
    for name in sorted(records["!instanceof"].get("Op", [])):
        record = records[name]
        dialect = records[record["opDialect"]["def"]]["name"]
        said = {kind: {arg: words_of(records, reference) for reference, arg in record[field]["args"]}
                for kind, field in (("argument", "arguments"), ("result", "results"))}
        yield f"{dialect}.{record['opName']}", record, said


def undescribed(records):
    for name, record, said in ops(records):
        for field in ("summary", "description"):
            if not record[field].strip():
                yield f"{name}: no {field}"
        for kind, words in said.items():
            yield from (f"{name}: no words for {kind} '{arg}'" for arg, text in words.items() if not text)
    for name in sorted(records["!instanceof"].get("PassBase", [])):
        record = records[name]
        options = [records[option["def"]] for option in record["options"]]
        for field in ("summary", "description"):
            if not record[field].strip():
                yield f"{record['argument']}: no {field}"
        yield from (f"{record['argument']}: no words for option '{option['argument']}'"
                    for option in options if not option["description"].strip())


def described(page, records):
    """The page with the words in front of the types, in the last column of tables."""
    said = {name: words for name, _, words in ops(records)}
    out, words = [], {}
    for line in page.split("\n"):
        heading = re.match(r"###+ `([\w.]+)`", line)
        if heading:
            current, words = said.get(heading.group(1), {}), {}
        elif line.startswith(("#### ", "##### ")):
            words = current.get("result" if "Results" in line else "argument", {}) if current else {}
        row = re.match(r"(\| `(\w+)` \| )(.*)", line)
        cell = re.match(r"(<tr><td><code>(\w+)</code></td><td>.*?</td><td>)(.*)", line)
        if row and words.get(row.group(2)):
            line = f"{row.group(1)}{words[row.group(2)]} ({row.group(3).removesuffix(' |')}) |"
        elif cell and words.get(cell.group(2)):
            text = html.escape(words[cell.group(2)], quote=False)
            if not cell.group(3).lower().startswith(text.lower()):
                line = f"{cell.group(1)}{text}; {cell.group(3)}"
        out.append(line)
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("json", type=pathlib.Path)
    parser.add_argument("--into", type=pathlib.Path, metavar="PAGE")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    records = json.loads(args.json.read_text(encoding="utf-8"))
    if args.into:
        page = args.into.read_text(encoding="utf-8")
        args.into.write_text(described(page, records), encoding="utf-8")
    wrong = list(undescribed(records)) if args.check else []
    for line in wrong:
        print(line)
    if args.check:
        print(f"{sum(len(w) for _, _, said in ops(records) for w in said.values())} operands, "
              f"attributes and results, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
