# Loops over blocks of tiles that go through the same slots, on the emulator.
# RUN: %python %s sm_80
# RUN: %python %s gfx942
# RUN: %python %s gfx950
"""Attention whose tiles move by blocks, with its loop over keys cut in parts.

    blocks.py CHIP

The program is the compiler's own for a schedule with `full_kv = false`; its loop
runs in three parts, of a loop around it, or in two, one after the other. Loads
run ahead of each loop beyond its end; the next one finds its slots free.
"""

import re
import subprocess
import sys
import tempfile

PROBLEM = """!qo = memref<?x?x1x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
func.func @f(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !qo, !kv, !kv, !qo
  return
}
"""
#: Of `loop`: its results, number, end and body; where parts begin, what they carry.
NESTED = """%c3_ = arith.constant 3 : index
{result}:3 = scf.for %turn = %c0 to %c3_ step %c1 iter_args({outer}) -> {types} {{
  %size = arith.ceildivui {end}, %c3_ : index
  %from = arith.muli %turn, %size : index
  %far = arith.addi %from, %size : index
  %to = arith.minsi %far, {end} : index
  %now:3 = scf.for {i} = %from to %to step %c1 iter_args({inner}) -> {types} {{
{body}  }}
  scf.yield %now#0, %now#1, %now#2 : {plain}
}}
"""
HALVES = """%c2_ = arith.constant 2 : index
%half = arith.divui {end}, %c2_ : index
%front:3 = scf.for {i} = %c0 to %half step %c1 iter_args({args}) -> {types} {{
{body}}}
{between}
{result}:3 = scf.for {i} = %half to {end} step %c1 iter_args({after}) -> {types} {{
{body}}}
"""


def run(*command, text=PROBLEM):
    done = subprocess.run(command, input=text, text=True, capture_output=True)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def parts(text, shape, between=""):
    """The program with `shape` in place of its loop."""
    loop = re.search(r" *(%\d+):3 = scf\.for (%\w+) = %c0 to (%\d+) step %c1 "
                     r"iter_args\((.*?)\) -> (\(.*?\)) \{\n(.*?)\n"
                     r"        \} \{kvbuffer\.whole_after_first\}\n", text, re.S)
    result, i, end, args, types, body = loop.groups()
    carried = re.findall(r"(%\w+) = (%\w+)", args)

    def begin(names, values):
        return ", ".join(f"{n} = {v}" for n, v in zip(names, values))

    mine, first = zip(*carried)
    outer = [f"%outer{n}" for n in range(3)]
    return text.replace(loop[0], shape.format(
        result=result, i=i, end=end, args=args, types=types, plain=types[1:-1],
        body=body + "\n", between=between, outer=begin(outer, first),
        inner=begin(mine, outer),
        after=begin(mine, [f"%front#{n}" for n in range(3)])))


chip = sys.argv[1]
for stages in 2, 4:
    text = run("kvbuf-compile", "-", f"--target={chip}", "--emit=tile", "-o", "-",
               f"--schedule=full_kv=false,BM=64,warps=2,BN=64,BK=32,stages={stages}")
    for program in (parts(text, NESTED), parts(text, HALVES),
                    parts(text, HALVES, "kvbuffer.meet")):
        with tempfile.NamedTemporaryFile(suffix=".kvbuf") as file:
            run("kvbuf-compile", "-", f"--target={chip}", "--code=none", "-o",
                file.name, text=program)
            for keys in 320, 33:
                run("kvbuf-run", file.name, "--device=emulator", "--check",
                    "--emulator", "landing=late", "--size", "batch=1", "--size",
                    "seq_q=64", "--size", f"seq_k={keys}")
