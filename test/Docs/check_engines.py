# The commands on MLIR of docs/engines.md run as they are printed, and print what the
# page says.
#
# REQUIRES: mlir-runner
# RUN: %python %s %src/docs/engines.md %src %lib
#
# An output that differs is found.
# RUN: sed -e 's/^softcap = 2.000000e+01$/softcap = 3.0/' %src/docs/engines.md > %t.md
# RUN: not %python %s %t.md %src %lib | FileCheck %s
# CHECK: the page says 'softcap = 3.0', the program 'softcap = 2.000000e+01'
"""Runs a page's commands that a `text` block after `It prints` follows.

    check_engines.py PAGE SOURCE LIBRARIES

They run in the folder SOURCE, with $KVBUF set."""

import itertools
import os
import pathlib
import re
import subprocess
import sys

page, source, libraries = map(pathlib.Path, sys.argv[1:4])
count = 0
for command, said in re.findall(r"^```sh\n([^`]*)^```\n\nIt prints\n\n```text\n([^`]*)^```",
                                page.read_text(), re.MULTILINE):
    done = subprocess.run(["bash", "-eo", "pipefail"], input=command, text=True,
                          cwd=source, stdout=subprocess.PIPE,
                          env={**os.environ, "KVBUF": str(libraries)})
    if done.returncode:
        print(f"{command}failed with status {done.returncode}")
        sys.exit(1)
    for want, got in itertools.zip_longest(said.splitlines(), done.stdout.splitlines()):
        if want != got:
            print(f"the page says '{want}', the program '{got}'")
            sys.exit(1)
    count += 1
if count < 3:
    print(f"{count} commands on the page; expected 3 or more")
    sys.exit(1)
