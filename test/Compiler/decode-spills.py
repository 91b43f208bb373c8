# REQUIRES: ptxas
# RUN: %python %s %ptxas
"""Kernels of few query rows spill little: what begins and ends a piece of a
sequence, and no accumulators or queries. A lane has 255 registers, and a tile of 32
rows of 128 elements 128 words of accumulators and 64 of queries. ptxas counts.

`--all` takes every head size, group, cache and type for two chips.

    test/Compiler/decode-spills.py /usr/local/cuda/bin/ptxas --all
"""

import itertools
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "benchmark"))
from problem import problem

#: Bytes that ptxas may store: a sixteenth of a lane's registers; a quarter where the
#: number of rows is open and tiles have 32, or 16 of heads of 256; half where these
#: widen 8-bit elements, too.
FEW, MORE, MOST = 64, 256, 512
CACHES = {"dense": {}, "ragged": {"query": "ragged", "cache": "ragged"}}
CACHES |= {page: {"query": "ragged", "cache": "paged", "page_size": page,
                  "lengths": "all"} for page in (1, 3, 16, 64)}


def spilled(ptxas, chip, size, group, cache, quantized):
    """What ptxas stores and loads of the kernel for an open number of rows."""
    options = {"heads": 2 * group, "kv_heads": 2, "head_size": size,
               "causal": True, **CACHES[cache]}
    if quantized:
        options.update(kv_dtype="f8E4M3FN", granularity="tensor")
    ptx = subprocess.run(
        ["kvbuf-compile", "-", f"--target={chip}", "--no-alternatives",
         "--schedule=split_keys=true", "--ptxas=none", "--emit=ptx", "-o", "-"],
        check=True, text=True, input=problem(**options),
        capture_output=True).stdout
    said = subprocess.run([ptxas, f"-arch={chip}", "-v", "-", "-o", os.devnull],
                          input=ptx, text=True, check=True,
                          capture_output=True).stderr
    return [int(n) for n in
            re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads",
                      said).groups()]


def main():
    # Eight rows of one head are a tile of 16 at most, of groups of four one of 32.
    cases = [("sm_90a", 128, group, cache, quantized)
             for group, cache, quantized in
             [(1, 16, False), (1, 1, True), (4, 16, False), (4, 1, True)]]
    cases += [("sm_80", 128, 4, "ragged", False), ("sm_90a", 256, 4, 16, False)]
    if "--all" in sys.argv:
        cases = itertools.product(["sm_80", "sm_90a"], [64, 128, 256],
                                  [1, 4, 5, 7, 8, 16], CACHES, [False, True])
    bad = count = 0
    for case in cases:
        found = spilled(sys.argv[1], *case)
        count += 1
        _, size, group, _, quantized = case
        large = group > 2 or size > 128
        most = FEW if not large else MOST if quantized else MORE
        if found[0] > most:
            bad += 1
            print(f"{case}: {found[0]} bytes stored, {found[1]} loaded; "
                  f"expected at most {most} stored")
    print(f"{count} kernels, {bad} spill")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
