# The README's commands run as they are printed and in that order, its Python
# example too, and say what the README says they do.
# RUN: rm -rf %t && %python %s %src %t
#
# A command that fails is found, and so is an output that differs.
# RUN: mkdir -p %t.bad
# RUN: sed -e 's/--emit=scheduled/--emit=shceduled/' %src/README.md > %t.bad/README.md
# RUN: not %python %s %src %t %t.bad/README.md | FileCheck %s --check-prefix=BAD
# BAD: kvbuf-compile examples/prefill.mlir --emit=shceduled
# BAD-NEXT: failed with status 2
# RUN: sed -e 's/^PASS$/PASSED/' %src/README.md > %t.bad/README.md
# RUN: not %python %s %src %t %t.bad/README.md | FileCheck %s --check-prefix=WORDS
# WORDS: make run: does not print 'PASSED'
"""Runs the README's shell and Python blocks in a folder of their own.

    check_commands.py SOURCE FOLDER [README]

Commands of the section "More to try" and of "From Python" run in the order of
the page, with the tools of PATH; those under "On a machine with a GPU" only
where there is one. What `make run` is said to print is compared line by line.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE, FOLDER = map(pathlib.Path, sys.argv[1:3])
README = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else SOURCE / "README.md"
PAGE = README.read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
GPU = os.path.exists("/dev/nvidia0")


def fail(message):
    print(message)
    sys.exit(1)


def run(command, **arguments):
    return subprocess.run(command, cwd=FOLDER, text=True, capture_output=True,
                          **arguments)


def checked(command, what):
    result = run(command, shell=isinstance(command, str))
    if result.returncode:
        fail(f"{what}\nfailed with status {result.returncode}\n"
             + result.stdout[-2000:] + result.stderr[-2000:])
    return result.stdout


def blocks():
    """(language, text, whether it needs a GPU), without what shows only how to
    build, install or link."""
    for match in BLOCK.finditer(PAGE):
        before = PAGE[:match.start()].rstrip().rsplit("\n\n", 1)[-1]
        language, text = match.groups()
        if language in ("sh", "python") and not re.search(
                r"^(make |kvbuf-opt .*\\|mlir-opt|cmake )|# then -|\bbuild/",
                text, re.MULTILINE):
            yield language, text, "with a GPU" in before


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    (FOLDER / "examples").symlink_to(SOURCE / "examples")
    # `make run`, whose tools are already built.
    makefile = (SOURCE / "Makefile").read_text()
    command = re.search(r"^run: .*\n\t@ninja .*\n\t\$\(BUILD\)/bin/(.*)$",
                        makefile, re.MULTILINE).group(1)
    printed = checked(command, "make run")
    said = re.search(r"`make run` ends like this:\n\n```text\n(.*?)```", PAGE,
                     re.DOTALL).group(1)
    lines = [line.rstrip() for line in printed.splitlines()]
    for line in said.splitlines():
        if line not in lines:
            fail(f"make run: does not print '{line}'")
    count = 0
    for language, text, needs_gpu in blocks():
        if needs_gpu and not GPU:
            continue
        if language == "python":
            # The commands after the last one take its arrays.
            checked([sys.executable, "-c", text + "".join(
                f"\nnp.save('{x}.npy', {x})" for x in "qkv")], text)
            count += 1
            continue
        for command in text.strip().splitlines():
            checked(command.split(" # ")[0], command.split("  #")[0])
            count += 1
    if count < 9:
        fail(f"only {count} commands found")


main()
