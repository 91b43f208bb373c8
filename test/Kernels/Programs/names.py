"""Names are the program's: the same code comes out of a program whose arguments
have other names, and whose buffers have none.

RUN: %python %s kvbuf-compile | FileCheck %s
CHECK: 11 programs, 0 differ
"""

import re
import subprocess
import sys

sys.path.insert(0, f"{sys.path[0]}/../../../benchmark")
from problem import problem

compiler = sys.argv[1]
NAMES = {"q": "rows", "k": "left", "v": "right", "o": "result"}


def renamed(text):
    """The text with the names of tensors replaced: "q", "k.table", "q_offsets"."""
    return re.sub(r'"([qkvo])(?=["._])', lambda m: '"' + NAMES[m[1]], text)


def run(text, chip, emit, schedule=""):
    """The stage, or the code, and the compiler's warnings."""
    arguments = ["--target=" + chip, "--emit=" + emit, "--no-alternatives"]
    if schedule:
        arguments.append("--schedule=" + schedule)
    done = subprocess.run([compiler, "-", *arguments], input=text, check=True,
                          text=True, capture_output=True)
    # Reports show places in LDS by the buffers' names, code does not use them.
    return (re.sub(r"kvbuffer\.lds = \[.*?>\], ", "", done.stdout),
            re.findall("warning: .*", done.stderr))


differ = 0
cases = [(chip, "", {"causal": True})
         for chip in ("sm_80", "sm_90a", "gfx942", "gfx950")]
cases += [("sm_90a", "", {"query": "ragged", "cache": "ragged"}),
          ("sm_90a", "tiles=static", {}),
          ("sm_90a", "ping_pong=true,cluster=2", {}),
          ("sm_80", "overlap=true", {"causal": True}),
          ("gfx950", "v_path=registers", {}),
          # Turns cut a product where a lane's vector of an operand ends.
          ("gfx942", "BN=32", {}),
          ("gfx942", "BN=32,mma_shape=16x16x16", {})]
for chip, schedule, options in cases:
    text = problem(heads=8, kv_heads=4, head_size=64, **options)
    tile, _ = run(text, chip, "tile", schedule)
    # Attention's programs write what anybody would.
    assert not re.search(r"kv_buffer<[qkvo],", tile), tile
    other = re.sub(r'kvbuffer\.name = "[^"]*"', lambda m: renamed(m[0]), tile)
    other = re.sub(r' {label = "[qkvo]"}', "", other)
    assert not re.search(r'= "[qkvo]"', other), other
    # What the launch passes is part of it, by these names.
    before, warnings = run(tile, chip, "target")
    if run(other, chip, "target") != (renamed(before), warnings):
        differ += 1
        print("differs:", chip, schedule, options)
print(f"{len(cases)} programs, {differ} differ")
