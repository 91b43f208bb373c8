# REQUIRES: ptxas
# RUN: %python %s %ptxas
"""No kernel with warp roles spills: ptxas counts.

Of every head size that has a line of its own in the table of schedules, cache and
mask, as many as a test may take; `--all` takes each of them.

    test/Compiler/spills.py /usr/local/cuda/bin/ptxas --all
"""

import itertools
import os
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
]


def spilled(ptxas, options):
    """What ptxas says of the kernel's spills."""
    ptx = subprocess.run(
        ["kvbuf-compile", "-", "--target=sm_90a", "--no-alternatives",
         "--ptxas=none", "--emit=ptx", "-o", "-"], check=True, text=True,
        input=problem(heads=8, **options), capture_output=True).stdout
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
