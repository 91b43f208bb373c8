# The examples of docs/python.md run as printed, in that order.
# RUN: rm -rf %t && %python %s %src %t %src/docs/python.md
#
# Those of docs/engines.md, as far as their packages are installed.
# RUN: env PYTHONPATH=%src/python:%src/integrations/vllm:%src/integrations/sglang \
# RUN:   %python %s %src %t.engines %src/docs/engines.md 0
#
# Those of docs/latent.md.
# RUN: %python %s %src %t.latent %src/docs/latent.md 1
#
# One that fails is found, with its line.
# RUN: sed -e 's/o.shape == q.shape/o.shape == k.shape/' %src/docs/python.md > %t.bad
# RUN: not %python %s %src %t %t.bad | FileCheck %s
# CHECK: python.py.tmp.bad:{{[0-9]+}}: AssertionError
"""Runs the Python blocks of a page as one program.

    check_python.py SOURCE FOLDER PAGE [FEWEST]

Blocks that import what is not installed are left out; FEWEST others there are."""

import importlib.util
import os
import pathlib
import re
import sys
import traceback

SOURCE, FOLDER, PAGE = map(pathlib.Path, sys.argv[1:4])
FEWEST = int(sys.argv[4]) if len(sys.argv) > 4 else 6
OPTIONAL = [name for name in ("torch", "transformers", "kernels", "jax", "vllm",
                              "sglang")
            if importlib.util.find_spec(name) is None]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    text, page = PAGE.read_text(), str(PAGE.resolve())
    os.chdir(FOLDER)
    if not os.path.exists("examples"):
        os.symlink(SOURCE / "examples", "examples")
    names, count = {}, 0
    for match in BLOCK.finditer(text):
        block = match.group(1)
        if any(re.search(rf"^(import|from) .*\b{name}\b", block, re.MULTILINE)
               for name in OPTIONAL):
            continue
        lines = text.count("\n", 0, match.start(1))
        try:
            exec(compile("\n" * lines + block, page, "exec"), names)
        except Exception as e:
            line = next(f.lineno for f in
                        reversed(traceback.extract_tb(e.__traceback__))
                        if f.filename == page)
            print(f"{page}:{line}: {type(e).__name__}: {e}")
            sys.exit(1)
        count += 1
    if count < FEWEST:
        print(f"only {count} examples found")
        sys.exit(1)


main()
