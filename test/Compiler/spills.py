# REQUIRES: ptxas
# RUN: %python %s %ptxas
"""No kernel with warp roles spills: ptxas counts.

Of every head size that has a line of its own in the table of schedules, cache and
mask, as many as a test may take; `--all` takes each of them.

    test/Compiler/spills.py /usr/local/cuda/bin/ptxas --all
"""

import itertools
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "benchmark"))
from problem import problem

SIZES = [64, 128, 192, 256]
CACHES = [{}, {"query": "ragged", "cache": "ragged"}, {"cache": "continuous"}] + [
    {"cache": "paged", "page_size": page} for page in (1, 3, 16, 64, 128)]
MASKS = [{}, {"causal": True}, {"causal": True, "window_left": 1000},
         {"causal": True, "lse": True}]
# What moves tiles in each way that there is, at the size with the fewest
# registers for it; and a larger one.
SOME = [
    {"head_size": 64, "cache": "paged", "page_size": 1, "causal": True},
    {"head_size": 64, "cache": "paged", "page_size": 64, "causal": True},
    {"head_size": 64, "query": "ragged", "cache": "ragged", "causal": True,
     "window_left": 1000},
    {"head_size": 128, "cache": "paged", "page_size": 1, "causal": True},
    {"head_size": 64, "function": "documents"},
]

# Functions of scores and visibility, by their examples, at sizes of the table.
FUNCTIONS = ["alibi", "bias", "documents"]
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "scores"


def function(options):
    """The text of an example, of another head size."""
    text = (EXAMPLES / f"{options['function']}.mlir").read_text()
    size = options["head_size"]
    return text.replace("x64xbf16", f"x{size}xbf16").replace(
        "head_size = 64", f"head_size = {size}")


def spilled(ptxas, options):
    """What ptxas says of the kernel's spills."""
    text = (function(options) if "function" in options
            else problem(heads=8, **options))
    ptx = subprocess.run(
        ["kvbuf-compile", "-", "--target=sm_90a", "--no-alternatives",
         "--ptxas=none", "--emit=ptx", "-o", "-"], check=True, text=True,
        input=text, capture_output=True).stdout
    said = subprocess.run([ptxas, "-arch=sm_90a", "-v", "-", "-o", os.devnull],
                          input=ptx, text=True, check=True,
                          capture_output=True).stderr
    return re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads",
                     said).groups()


def main():
    cases = SOME
    if "--all" in sys.argv:
        cases = [{"head_size": size, **cache, **mask} for size, cache, mask
                 in itertools.product(SIZES, CACHES, MASKS)]
        cases += [{"head_size": size, "function": name} for size, name
                  in itertools.product(SIZES, FUNCTIONS)]
    bad = 0
    for options in cases:
        found = spilled(sys.argv[1], options)
        if found != ("0", "0"):
            bad += 1
            print(f"{options}: {found[0]} bytes stored, {found[1]} loaded")
    print(f"{len(cases)} kernels, {bad} spill")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
