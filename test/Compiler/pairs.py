# REQUIRES: ld.lld
# RUN: %python %s
"""CDNA4 may compute instructions on pairs of f32 from what else was in a register: LLVM
selects none of them for gfx950, and takes none of inline assembly. Where a function asks
for them all the same that is a warning with its place, and a fault to --check-isa.
gfx942 computes them right, and has them.

    pairs.py
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "Inputs"))
import planted

PAIRS = "v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32"
# Vectors of f32, of which LLVM makes pairs.
BODY = """
  %a = llvm.load %o : !llvm.ptr<1> -> vector<4xf32>
  %b = llvm.fmul %a, %a : vector<4xf32>
  %c = llvm.fadd %b, %a : vector<4xf32>
  %d = llvm.intr.fma(%c, %a, %b) : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
  llvm.store %d, %o : vector<4xf32>, !llvm.ptr<1>
"""


def module(chip, lines=(), feature=None):
    """The kernel of a chip, with instructions in the function that it calls."""
    text = planted.MODULE.replace("CHIP", chip).replace("BODY", BODY)
    if feature:
        text = text.replace("gpu.kernel,", f'passthrough = [["target-features", "{feature}"]], '
                                           "gpu.kernel,")
    return text.replace("CALLED", "\\0A".join(lines))


def run(*args, text=None):
    return subprocess.run(["kvbuf-compile", *args], input=text, text=True,
                          capture_output=True, check=False)


for chip, has in (("gfx942", True), ("gfx950", False)):
    made = run("-", "--emit=asm", text=module(chip))
    assert made.returncode == 0 and not made.stderr, made.stderr
    assert all((name in made.stdout) == has for name in PAIRS), (chip, made.stdout)
    for name in PAIRS:
        sources = ["v[44:45]"] * (3 if "fma" in name else 2)
        line = f"{name} v[40:41], {', '.join(sources)}"
        made = run("-", "-o", os.devnull, text=module(chip, [line]))
        assert (made.returncode == 0) == has, made.stderr
        assert has or "instruction not supported on this GPU" in made.stderr, made.stderr

with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/x.kvbuf"
    made = run("-", "-o", path, text=module("gfx950", feature="+packed-fp32-ops"))
    assert made.returncode == 0, made.stderr
    expected = "may go wrong: the instruction on a pair of f32 at 0x"
    where = f"{planted.line_of('planted')}:5: warning: the code of 'planted' {expected}"
    assert where in made.stderr and made.stderr.count("go wrong") == 1, made.stderr
    checked = run(path, "--check-isa")
    assert checked.returncode == 2, checked
    assert f"error: 'planted' {expected}" in checked.stderr, checked.stderr
    # Others on parts of registers, or on pairs of other types, are no such.
    made = run("-", "-o", path, text=module("gfx950", [
        "v_pk_add_f16 v40, v44, v45", "v_cvt_pk_fp8_f32 v40, v44, v45",
        "v_dot2_f32_f16 v40, v44, v45, v46", "v_lshl_add_u64 v[40:41], v[44:45], 1, v[46:47]"]))
    assert made.returncode == 0 and "go wrong" not in made.stderr, made.stderr
    assert "go wrong" not in run(path, "--check-isa").stderr
    # On gfx942 all are sound.
    made = run("-", "-o", path, text=module("gfx942"))
    assert made.returncode == 0 and "go wrong" not in made.stderr, made.stderr
    assert "go wrong" not in run(path, "--check-isa").stderr
