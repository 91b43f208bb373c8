# What the page about races says of its kernels is what the tool says.
# REQUIRES: clang
# RUN: rm -rf %t && mkdir %t && %python %s %src/docs/races.md %t
"""Runs the shell blocks of a page, in a folder with its sources.

    check_races.py PAGE FOLDER

A block "```cpp NAME" or "```python NAME" is a file. What a block "```text exit N" says
follows the block "```sh" before it: the status of the last command, and what its output
holds. Blocks "```sh triton" are run where Triton is.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

PAGE, FOLDER = map(pathlib.Path, sys.argv[1:3])
BLOCK = re.compile(r"^```(cpp|python|sh|text)(?: ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)

HAS_TRITON = importlib.util.find_spec("triton") is not None
SETTINGS = {**os.environ, "TRITON_CACHE_DIR": str(FOLDER / "cache"),
            "TRITON_DEFAULT_FP_FUSION": "1"}

done, runs = None, 0
for kind, what, text in BLOCK.findall(PAGE.read_text()):
    if kind in ("cpp", "python"):
        (FOLDER / what).write_text(text)
    elif kind == "sh":
        done = None
        if what == "triton" and not HAS_TRITON:
            continue
        text = text.replace("python3 ", f"{sys.executable} ")
        done = subprocess.run(["bash", "-e", "-c", text], cwd=FOLDER, text=True, env=SETTINGS,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    elif done:
        runs += 1
        assert f"exit {done.returncode}" == what, (what, done.returncode, done.stdout)
        for line in text.splitlines():
            assert line in done.stdout, f"'{line}' is not in:\n{done.stdout}"
assert runs == 4 + 2 * HAS_TRITON, runs
