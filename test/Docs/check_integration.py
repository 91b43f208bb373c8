# The commands of docs/integration.md run as they are printed, in that order, and
# print what the page says.
#
# REQUIRES: mlir-runner
# RUN: rm -rf %t && %python %s %src/docs/integration.md %lib %t
#
# An output that differs is found, and so is a command that fails.
# RUN: mkdir -p %t.bad && sed -e 's/^2.32812$/2.35/' %src/docs/integration.md > %t.bad/words.md
# RUN: not %python %s %t.bad/words.md %lib %t | FileCheck %s --check-prefix=WORDS
# WORDS: the page says '2.35', the program '2.32812'
"""Runs the page's programs and commands in a folder of their own.

    check_integration.py PAGE LIBRARIES FOLDER

An MLIR block whose first line names a file is written to it. Commands (`sh`) run in
that folder, with $KVBUF and $LLVM set; a `text` block after `It prints` is what the
commands before it print.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

page, libraries, folder = map(pathlib.Path, sys.argv[1:4])
text = page.read_text()
folder.mkdir(parents=True, exist_ok=True)
tools = pathlib.Path(shutil.which("mlir-opt")).resolve().parent
environment = {**os.environ, "KVBUF": str(libraries), "LLVM": str(tools.parent / "lib")}
printed, commands, compared = "", 0, 0
for match in re.finditer(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
    kind, body = match.groups()
    file = re.match(r"// (\S+\.mlir)\n", body)
    if kind == "mlir" and file:
        (folder / file[1]).write_text(body)
    elif kind == "sh":
        done = subprocess.run(["bash", "-e"], input=body, text=True, cwd=folder, env=environment, stdout=subprocess.PIPE)
        if done.returncode:
            print(f"{body}failed with status {done.returncode}")
            sys.exit(1)
        printed, commands = done.stdout, commands + 1
    elif kind == "text" and re.search(r"It prints[^`]*$", text[: match.start()]):
        compared += 1
        for said, got in zip(body.splitlines(), printed.splitlines() + [""] * 1000):
            if said != got:
                print(f"the page says '{said}', the program '{got}'")
                sys.exit(1)
    elif kind == "cpp":
        source = pathlib.Path(__file__).parents[1] / "Install" / "Inputs" / "consumer" / "outline.cpp"
        if body != source.read_text():
            print(f"the C++ of the page is not that of {source.name}, which test/Install builds")
            sys.exit(1)
if commands < 2 or compared != 1:
    print(f"{commands} commands and {compared} outputs on the page; expected 2 or more, and one")
    sys.exit(1)
