# What the page about races says of its kernels is what the tool says.
# REQUIRES: clang
# RUN: rm -rf %t && mkdir %t && %python %s %src/docs/races.md %t
"""Runs the shell blocks of a page, in a folder with its sources.

    check_races.py PAGE FOLDER

A block "```cpp NAME" is a file. What a block "```text exit N" says follows the block
"```sh" before it: the status of the last command, and what its output holds.
"""

import pathlib
import re
import subprocess
import sys

PAGE, FOLDER = map(pathlib.Path, sys.argv[1:3])
BLOCK = re.compile(r"^```(cpp|sh|text)(?: ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)

done, runs = None, 0
for kind, what, text in BLOCK.findall(PAGE.read_text()):
    if kind == "cpp":
        (FOLDER / what).write_text(text)
    elif kind == "sh":
        done = subprocess.run(["bash", "-e", "-c", text], cwd=FOLDER, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    else:
        runs += 1
        assert f"exit {done.returncode}" == what, (what, done.returncode, done.stdout)
        for line in text.splitlines():
            assert line in done.stdout, f"'{line}' is not in:\n{done.stdout}"
assert runs == 4, runs
