# RUN: %python %s %src/CONTRIBUTING.md %src
# It notices a file that there is not.
# RUN: %python -c "print('- `lib/Nowhere/Some.cpp`: gone')" > %t.md
# RUN: not %python %s %t.md %src | FileCheck %s
# CHECK: lib/Nowhere/Some.cpp: no such file
"""The files that the contributor's guide names are there."""
import pathlib
import re
import sys

page, source = map(pathlib.Path, sys.argv[1:])
names = re.findall(r"`((?:include|lib|test|tools)/[\w./-]+\.\w+)`", page.read_text())
missing = [name for name in names if not (source / name).is_file()]
for name in missing:
    print(f"{name}: no such file")
sys.exit(not names or bool(missing))
