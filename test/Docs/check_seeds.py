# What docs/seeds.md names in its right columns exists: ops, types and attributes
# of the dialect, passes, members of C++ classes, parameters.
#
# RUN: %python %s %src
# It notices names that do not: one planted of each kind.
# RUN: sed -e 's/kvbuffer.dram_load/kvbuffer.dram_lode/' %src/docs/seeds.md > %t.op.md
# RUN: not %python %s %src %t.op.md | FileCheck %s --check-prefix=OP
# OP: kvbuffer.dram_lode: no such op, type or attribute
# RUN: sed -e 's/getNumRepeats/getNumRepeat_/' %src/docs/seeds.md > %t.method.md
# RUN: not %python %s %src %t.method.md | FileCheck %s --check-prefix=METHOD
# METHOD: KVBufferAttr::getNumRepeat_: no such member
# RUN: sed -e 's/kvbuf-count-waits/kvbuf-wait-counts/' %src/docs/seeds.md > %t.pass.md
# RUN: not %python %s %src %t.pass.md | FileCheck %s --check-prefix=PASS
# PASS: kvbuf-wait-counts: no such pass
# RUN: sed -e 's/^| `load_prefill` |.*$/| `load_prefill` | |/' %src/docs/seeds.md > %t.empty.md
# RUN: not %python %s %src %t.empty.md | FileCheck %s --check-prefix=EMPTY
# EMPTY: load_prefill: has no home

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
page = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else root / "docs/seeds.md"
sources = {path: path.read_text()
           for folder in ("include", "lib")
           for path in sorted((root / folder).rglob("*"))
           if path.suffix in (".td", ".h", ".cpp")}
td = "\n".join(text for path, text in sources.items() if path.suffix == ".td")
code = "\n".join(sources.values())
mnemonics = set(re.findall(r'KVBuffer_(?:OpOf<\w+, |Attr<"\w+", |Type<"\w+", )"([\w.]+)"', td))
mnemonics |= set(re.findall(r'KVBuffer_TmaTileMaker<"([\w.]+)">', td))
passes = set(re.findall(r'Pass<"([\w-]+)"', td))


def problem(name):
    if name.startswith("kvbuffer."):
        return None if name[len("kvbuffer."):] in mnemonics else \
            "no such op, type or attribute"
    if name.startswith("kvbuf-"):
        return None if name in passes else "no such pass"
    if "::" in name:
        owner, member = name.split("::")
        # Getters of the dialect's types are generated from their parameters.
        parameter = member[3:4].lower() + member[4:]
        declared = re.search(rf"\b{owner}\b", code) or \
            re.search(rf'KVBuffer_{owner}\b', td)
        found = re.search(rf"\b{member}\b", code) or \
            re.search(rf"\${parameter}\b", td) or re.search(rf":\${parameter}", td)
        return None if declared and found else "no such member"
    return None if re.search(rf"\b{re.escape(name)}\b", code) else "no such name"


failed = False
rows = 0
for line in page.read_text().splitlines():
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    if not line.startswith("|") or len(cells) != 2 or cells[0] in ("name", "---"):
        continue
    rows += 1
    names = re.findall(r"`([^`]+)`", cells[1])
    if not names and not re.search(r"not here\*: \w|as for KVBuffer|: nothing|itself:",
                                   cells[1]):
        print(f"{cells[0].strip('`')}: has no home")
        failed = True
    for name in names:
        if why := problem(name):
            print(f"{name}: {why}")
            failed = True
if rows < 60:
    print(f"only {rows} rows: is {page} complete?")
    failed = True
sys.exit(failed)
