#!/usr/bin/env python3
"""Writes docs/executed.md: what the emulator executes and what it refuses.

    tools/executed-table.py KVBUF_EMULATE            rewrites the document
    tools/executed-table.py KVBUF_EMULATE --check    says what is not up to date; status 1

All of it is what `kvbuf-emulate --list-ops=json` prints from the tables that the decoder
asks. `--check` also looks for operations of those tables that no decoder mentions.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs/executed.md"
HEAD = """# What the emulator executes

Written by `tools/executed-table.py` from `kvbuf-emulate --list-ops=json`, which prints the
tables that the decoder asks. Forms of an operation that are not executed are refused where
it is decoded, with a message that names the form ([mlir-runner.md](mlir-runner.md)).
"""
TITLES = {"llvm": "LLVM", "nvvm": "NVIDIA's: `nvvm`", "rocdl": "AMD's: `rocdl`",
          "gpu": "MLIR's: `gpu`, below its lowering", "kvbuffer": "kvbuf's: `kvbuffer`"}


def shortened(names, dialect):
    """Names without their dialect; those of one family and many endings in braces."""
    families = {}
    for name in names:
        name = name.removeprefix(dialect + ".")
        front, dot, last = name.rpartition(".")
        families.setdefault(front + dot, []).append(last)
    made = []
    for front, ends in families.items():
        if front and len(ends) > 1:
            made.append(front + "{" + ", ".join(ends) + "}")
        else:
            made += [front + end for end in ends]
    return ", ".join(f"`{name}`" for name in sorted(made))


def functions(names):
    """Functions whose names differ by a rounding or a width, in one piece."""
    groups = {}
    for name in names:
        base = re.sub(r"_(rn|rd|ru|rz|f16|f32|f64)$", "", name)
        groups.setdefault(base, []).append(name[len(base):])
    return ", ".join(
        f"`{base}" + ("{" + ",".join(e or "-" for e in ends) + "}`" if len(ends) > 1
                      else ends[0] + "`") for base, ends in sorted(groups.items()))


def document(data):
    lines = [HEAD]
    for dialect, lists in data["operations"].items():
        lines.append(f"## {TITLES[dialect]}\n")
        executed = lists["executed"]
        lines.append(f"Executed, {len(executed)}: {shortened(executed, dialect)}.\n")
        if "refused" in lists:
            refused = lists["refused"]
            lines.append(f"Refused, {len(refused)}: {shortened(refused, dialect)}.\n")
    lines.append("## PTX in `asm`\n")
    lines.append("Statements that begin with: " + ", ".join(f"`{s}`" for s in data["ptx"]) + ".\n")
    lines.append("## Functions without a body\n")
    for title, front in (("libdevice", "__nv_"), ("ocml", "__ocml_"), ("others", "")):
        names = [n for n in data["functions"] if n.startswith(front)
                 and (front or not n.startswith(("__nv_", "__ocml_")))]
        lines.append(f"Of {title}, {len(names)}: {functions(names)}.\n")
    lines.append("## Detectors\n")
    lines.append("Kinds of faults in reports: " + ", ".join(f"`{k}`" for k in data["detectors"])
                 + ". `test/Foreign/detectors.py` plants each in what each front end writes.\n")
    return "\n".join(lines)


def unheard(data):
    """Rows of Executed.def that no decoder has: they would be refused after all."""
    rows = (ROOT / "lib/Emulator/Executed.def").read_text(encoding="utf-8")
    text = "".join(p.read_text(encoding="utf-8")
                   for p in (ROOT / "lib/Emulator").glob("Decode*.cpp"))
    for name in re.findall(r"EXECUTES\((\w+::\w+)\)", rows):
        if not re.search(rf"\b{name}\b", text):
            yield name
    for name in re.findall(r'EXECUTES_NAME\("([^"]+)"\)', rows):
        short = name.split(".", 1)[1]
        forms = [name, short, short.replace("_", "."), short.removeprefix("read.ptx.sreg."),
                 short.removeprefix("intr.vector.reduce.")]
        # "s.wait.", of which all that is here is known.
        if not any(f'"{form}"' in text for form in forms) and not short.startswith("s.wait."):
            yield name
    yield from data["unknown"]


def main():
    tool, *options = sys.argv[1:]
    data = json.loads(subprocess.run([tool, "--list-ops=json"], stdout=subprocess.PIPE,
                                     check=True).stdout)
    wanted = document(data)
    if "--check" not in options:
        DOCUMENT.write_text(wanted, encoding="utf-8")
        return 0
    wrong = [f"{name} is in Executed.def, and not in the decoder" for name in unheard(data)]
    if not DOCUMENT.exists() or DOCUMENT.read_text(encoding="utf-8") != wanted:
        wrong.append(f"{DOCUMENT.name} is not up to date: run tools/executed-table.py")
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
