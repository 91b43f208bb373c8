"""Checks that the documents' CMake is what the consumer's project is built by.

    check_snippets.py SOURCES
"""

import pathlib
import re
import sys

sources = pathlib.Path(sys.argv[1])


def commands(text):
    return {line.split("#")[0].strip() for line in text.splitlines()} - {""}


project = commands((sources / "test/Install/Inputs/consumer/CMakeLists.txt").read_text())
for page in ("README.md", "docs/integration.md"):
    blocks = re.findall(r"^```cmake\n(.*?)^```", (sources / page).read_text(), re.MULTILINE | re.DOTALL)
    if not blocks:
        sys.exit(f"{page} has no CMake")
    for line in sorted(set().union(*map(commands, blocks)) - project):
        sys.exit(f"{page} has '{line}', which the consumer's project lacks")
