# RUN: %python %s %src
# RUN: rm -rf %t && mkdir -p %t/docs/targets && ln -s %src/include %src/lib %t
# RUN: sed -e 's/`ReadGroups.cpp`/`ReadGroup.cpp`/' %src/docs/targets/amd.md > %t/docs/targets/amd.md
# RUN: not %python %s %t 2>&1 | FileCheck %s --check-prefix=NAME
# NAME: the page names ReadGroup.cpp, which is no file
# RUN: sed -e '/^| its name, /d' %src/docs/targets/amd.md > %t/docs/targets/amd.md
# RUN: not %python %s %t 2>&1 | FileCheck %s --check-prefix=PLACE
# PLACE: lib/Runtime/HipDriver.cpp names gfx1250, the page does not name it
"""The places that a chip took (docs/targets/amd.md): each file of the table is there, and each
that names the chip is in the table or beside one that is; no pass of the tile stage names it,
its matrix instruction or its copy engine.

    chip-places.py ROOT
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
CHIP = re.compile(r"gfx1250", re.I)
#: Words of what the chip has that others have not.
OWN = re.compile(r"gfx1250|\bWmma\b|\bWaveBoxes\b|tensorcnt", re.I)
#: Passes of the tile stage, and what programs are made of but their schedules.
NEUTRAL = "lib/Dialect/KVBuffer/Transforms/", "lib/Programs/Attention/"
SCHEDULES = "lib/Programs/Attention/Schedules/"


def main():
    page = (ROOT / "docs/targets/amd.md").read_text(encoding="utf-8")
    section = page.split("## gfx1250", 1)[1]
    table = [line for line in section.split("\n") if line.startswith("| ")]
    named = set(re.findall(r"`(?:\w+/)*(\w+\.(?:cpp|h|def|td))`", "\n".join(table)))
    files = [path for folder in ("include", "lib") for path in (ROOT / folder).rglob("*")
             if path.suffix in (".cpp", ".h", ".def", ".td")]
    there = {path.name for path in files}
    wrong = [f"the page names {name}, which is no file" for name in sorted(named - there)]
    for path in sorted(files):
        where, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        if where.startswith(NEUTRAL) and not where.startswith(SCHEDULES) and (
                found := OWN.search(text)):
            wrong.append(f"{where} says {found[0]}, which only tables and machines know")
        # What declares a thing of one of these files is no place of its own.
        if (CHIP.search(text) and path.name not in named
                and path.with_suffix(".cpp").name not in named
                and not re.search(r"describeGFX1250|scheduleGFX1250", text)):
            wrong.append(f"{where} names gfx1250, the page does not name it")
    if not named:
        wrong.append("the page has no table of places")
    for text in wrong:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
