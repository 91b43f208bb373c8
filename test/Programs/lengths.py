# What a function does, a reader sees at once: none is longer than 120 lines, but for
# the emulator's switches over instructions.
#
# RUN: %python %s %src
# It notices who is longer, a member of a class too.
# RUN: rm -rf %t && mkdir -p %t/lib/Transforms/AMD
# RUN: %python -c "for name, body in (('static int f(int x,\n             int y) {', 119), ('int g() {', 118), ('class C {\n  int h() {', 119)): print(name + '\n' + '    g();\n' * body + ('  }\n};' if 'class' in name else '}'))" > %t/lib/Transforms/AMD/New.cpp
# RUN: not %python %s %t | FileCheck %s
# CHECK-NOT: g()
# CHECK: lib/Transforms/AMD/New.cpp:1: 'static int f(int x,' has 122 lines; expected at most 120
# CHECK-NEXT: lib/Transforms/AMD/New.cpp:244: 'int h() {' has 121 lines; expected at most 120
# CHECK-NOT: {{.}}
"""Checks how long functions are.

    lengths.py SOURCE

The sources are formatted: a function ends with a brace in its first line's column.
"""

import pathlib
import re
import sys

MOST = 120
ROOT = pathlib.Path(sys.argv[1])


def functions(lines):
    """First lines and lengths of what braces end in the column of a function or of
    a class's member."""
    for last, line in enumerate(lines):
        brace = re.fullmatch(r"( {0,2})\}", line)
        if not brace:
            continue
        first = last - 1
        while first and not re.match(brace[1] + r"[^\s}#/]", lines[first]):
            first -= 1
        # A result's type may have a line of its own.
        yield first, last - first + 1


found, files = False, 0
for folder in sorted((ROOT / "lib").iterdir()):
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".cpp", ".h") or folder.name == "Emulator":
            continue
        files += 1
        lines = path.read_text().splitlines()
        for first, length in functions(lines):
            if length > MOST:
                print(f"{path.relative_to(ROOT)}:{first + 1}: '{lines[first].strip()}' "
                      f"has {length} lines; expected at most {MOST}")
                found = True
sys.exit(found or not files)
