"""Names are the program's: the same code comes out of a program whose arguments
have other names, and whose buffers say nothing of attention's operands.

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


def neutral(text, chip):
    """The program with the short form of buffers, and other arguments' names.

    The short form says where rows that products contract are turned on their
    way into LDS; of the long form's, the chip decides."""
    contracted = {}

    def buffer(match):
        alias, body = match[1], match[2]
        operand, element, policy = body.split(", ")[:3]
        number = lambda name, default=0: int(
            (re.search(rf"\b{name} = (\d+)", body) or [0, default])[1])
        BK = number("BK")
        cols = number("smem_depth", -(-number("depth") // BK) * BK)
        contracted[alias] = "rows" if operand == "v" else "cols"
        swizzle = re.search(r", swizzle = \[[^\]]*\]", body)
        staged = policy == "register_staged"
        turned = staged and operand == "v" and chip == "gfx942"
        return (f"#{alias} = #kvbuffer.kv_buffer<{number('BN')}x{cols}x{element}, "
                f"BK = {BK}, stages = {number('stages', 1)}"
                + (swizzle[0] if swizzle else "")
                + (f", policy = {policy}" if staged else "")
                + (", order = cols" if turned else "") + ">")

    text = re.sub(r"#(\w+) = #kvbuffer\.kv_buffer<(.*)>", buffer, text)
    text = re.sub(
        r"(kvbuffer\.fragment_load %\w+\[[^]]*\]) : <#(\w+)>",
        lambda m: f"{m[1]} contracted({contracted[m[2]]}) : <#{m[2]}>", text)
    return re.sub(r'kvbuffer\.name = "[^"]*"', lambda m: renamed(m[0]), text)


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
    other = neutral(tile, chip)
    assert not re.search(r'= "[qkvo]"|kv_buffer<[qkvo],', other), other
    # What the launch passes is part of it, by these names.
    before, warnings = run(tile, chip, "target")
    if run(other, chip, "target") != (renamed(before), warnings):
        differ += 1
        print("differs:", chip, schedule, options)
print(f"{len(cases)} programs, {differ} differ")
