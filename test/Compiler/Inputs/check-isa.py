"""Holds `kvbuf-compile --report=json` of an AMD kernel against limits.

Usage: check-isa.py REPORT LIMIT...       ('-' reads the standard input)

A LIMIT is `key==value`, `key<=value`, or `key>=value`; a key is one of the
report's, through objects with dots. `hot.` stands for the hot loop, `loop1.` for that of
number 1:

    vgpr_spills==0  scratch_bytes==0  waves_per_simd>=2
    hot.drains==false  hot.valu_per_mfma<=5.0  hot.instructions.lds_reads==48

Every kernel is held against every limit, but those for tensors at any address
(`*_unaligned`), and those that copy a tensor before a launch (`*_copies_*`), which
multiply nothing, not against the hot loop's. Status 1 if one does
not hold; 2 if there is nothing to hold against it: no kernel but those, no loop with
MFMAs, no such key.
"""

import json
import operator
import re
import sys

OPERATORS = {"==": operator.eq, "<=": operator.le, ">=": operator.ge}


def fail(message):
    print(f"check-isa: error: {message}")
    sys.exit(2)


def look_up(kernel, key):
    value = kernel
    parts = key.split(".")
    if parts[0] == "hot":
        hot = [loop for loop in kernel["loops"] if loop["hot"]]
        if not hot:
            fail(f"kernel '{kernel['name']}' has no loop with MFMAs")
        value = hot[0]
        parts = parts[1:]
    elif number := re.fullmatch(r"loop(\d+)", parts[0]):
        if int(number[1]) >= len(kernel["loops"]):
            fail(f"kernel '{kernel['name']}' has no {parts[0]}")
        value = kernel["loops"][int(number[1])]
        parts = parts[1:]
    for part in parts:
        if not isinstance(value, dict) or part not in value:
            fail(f"the report has no '{key}'")
        value = value[part]
    return value


def main(path, limits):
    text = sys.stdin.read() if path == "-" else open(path, encoding="utf-8").read()
    try:
        report = json.loads(text)
    except ValueError as error:
        fail(f"not a report: {error}")
    if not report.get("kernels") or not limits:
        fail("no kernel, or no limit")
    held, compared = True, 0
    for kernel in report["kernels"]:
        if kernel["name"].endswith("_unaligned"):
            continue
        for limit in limits:
            match = re.fullmatch(r"([\w.]+)(==|<=|>=)(.+)", limit)
            if not match:
                fail(f"'{limit}' is no limit: expected key==value, key<=value or key>=value")
            key, name, bound = match.groups()
            if key.startswith("hot.") and "_copies_" in kernel["name"]:
                continue
            value = look_up(kernel, key)
            good = OPERATORS[name](value, json.loads(bound))
            held, compared = held and good, compared + 1
            print(f"{'ok' if good else 'FAILED'}: {kernel['name']}: {limit} ({json.dumps(value)})")
    if not compared:
        fail("no kernel that a limit is for")
    return 0 if held else 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        fail("no report; see the usage at the top of this file")
    sys.exit(main(sys.argv[1], sys.argv[2:]))
