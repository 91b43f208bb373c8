# REQUIRES: ld.lld
# RUN: %python %s %bin %src %t
"""tools/run-code-object.py: a product whose slots lie beyond the first 64 KiB of LDS, against
float64, whether loads land late or early; without a barrier it is wrong, and what cannot be
run is said in one line, with status 1.
"""

import os
import pathlib
import subprocess
import sys
import types

import numpy as np

binaries, source, stem = sys.argv[1:]
sys.path.append(f"{source}/tools")
sys.path.append(f"{source}/test/Kernels/Inputs")
from code_objects.image import CodeObject, Fault, Instruction, split_operands  # noqa: E402
from code_objects.launch import Launch, open_artifact  # noqa: E402
from code_objects.wave import Wave  # noqa: E402
from numbers16 import from_bf16, to_bf16  # noqa: E402

RNG = np.random.default_rng(3)
ROWS, COLS, DEPTH = 70, 136, 320


def artifact(name, chip="gfx950", *options):
    path = f"{stem}.{name}.kvbuf"
    subprocess.run([f"{binaries}/kvbuf-compile", f"{source}/examples/{name}.mlir",
                    f"--target={chip}", "--no-alternatives", *options, "-o", path], check=True)
    return path


def run(path, *options, **inputs):
    command = [sys.executable, f"{source}/tools/run-code-object.py", path,
               "--disassembler=llvm-objdump", *options]
    for name, array in inputs.items():
        np.save(f"{stem}.{name}.npy", array)
        command += ["--input", f"{name}={stem}.{name}.npy"]
    return subprocess.run(command, capture_output=True, text=True)


def refused(said, path, *options, **inputs):
    done = run(path, *options, **inputs)
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr, done
    assert said in done.stderr, (said, done.stderr)


gemm = artifact("gemm")
manifest, data = open_artifact(gemm)
assert manifest["kernels"][0]["static_shared_bytes"] > 1 << 16
a, b = (to_bf16(RNG.standard_normal((n, DEPTH))) for n in (ROWS, COLS))
want = from_bf16(a).astype(np.float64) @ from_bf16(b).astype(np.float64).T
for landing in "late", "early":
    result = f"{stem}.c.npy"
    if os.path.exists(result):
        os.remove(result)
    done = run(gemm, f"--landing={landing}", "--output", f"c={result}", a=a, b=b)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(from_bf16(np.load(result)), want, rtol=2**-8, atol=2**-8)

# A wave that does not wait for the others reads what these have not loaded.
code = CodeObject(data, "gfx950", "llvm-objdump").instructions
barrier = next(i for i in code if i.name == "s_barrier")
refused("reads bytes of LDS that nothing has written", gemm,
        f"--without={barrier.address:x}", a=a, b=b)
end = next(i for i in code if i.name == "s_endpgm")
refused("is the end of a kernel, which cannot be left out", gemm,
        f"--without={end.address:x}", a=a, b=b)
refused("no instruction at 0x1", gemm, "--without=1", a=a, b=b)
refused("xyz: expected an address in hex", gemm, "--without=xyz")

refused("no --input for tensor 'b'", gemm, a=a)
refused("the kernel has no tensor 'x'; expected one of a, b, c", gemm, a=a, b=b, x=a)
refused("tensor 'b' is float32 of 2 dimensions; expected uint16 of 2", gemm, a=a,
        b=b.astype(np.float32))
refused("tensor 'b' has a size of 312; expected 320", gemm, a=a, b=b[:, :312])
refused("m=two: expected NAME=N", gemm, "--size=m=two")
refused("is no artifact", __file__)
refused("holds no array of NumPy", gemm, "--input", f"a={__file__}")
refused("does not disassemble it", gemm, "--disassembler=false", a=a, b=b)
refused("No such file", gemm, "--disassembler=./no-such-tool", a=a, b=b)
refused("holds no code object", artifact("window", "gfx950", "--code=none"))
refused("gfx1250 is not executed; expected gfx942 or gfx950", artifact("gemm", "gfx1250"),
        a=a, b=b)
# Nothing is taken for what it is not: other types, signs that are changed, results that are
# cut, operands of other blocks. The first two are what is executed.
launch = Launch.__new__(Launch)
for text, runs in (
        ("v_cmp_lt_u32_e32 vcc, v0, v1", True),
        ("v_cndmask_b32_e64 v0, v1, v2, s[0:1]", True),
        ("v_cvt_pk_f32_fp8_sdwa v[0:1], v2 src0_sel:WORD_1", True),
        ("v_cvt_scalef32_pk_f16_fp8 v0, v1, 1.0 op_sel:[1,0,0]", True),
        ("v_cvt_scalef32_pk_f16_fp8 v0, v1, 2.0", False),
        ("v_and_b32_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD "
         "src1_sel:DWORD", False),
        ("v_pk_mul_f16 v0, v1, v2 neg_lo:[1,0]", False),
        ("v_cmp_lt_u16_e32 vcc, v0, v1", False), ("v_cmp_lt_f64_e32 vcc, v[0:1], v[2:3]", False),
        ("v_cmp_class_f32_e32 vcc, v0, v7", False),
        ("v_cndmask_b32_e64 v0, -v1, v2, s[0:1]", False),
        ("v_cvt_f32_f16_e64 v0, |v1|", False), ("v_add_f32_e64 v0, v1, v2 clamp", False),
        ("v_cvt_f32_u32_e64 v0, v1 mul:2", False), ("s_mov_b32 s0, src_shared_base", False),
        ("v_mfma_f32_32x32x8_bf16 v[0:15], v[16:17], v[18:19], v[0:15] cbsz:1", False)):
    name, _, operands = text.partition(" ")
    launch.code = CodeObject.__new__(CodeObject)
    launch.code.index, launch.code.chip = {}, "gfx950"
    made = launch._make(Instruction(0, name, split_operands(operands), text))
    assert callable(made) == runs, (text, made)

wave = Wave(None, 0)
for n, number in enumerate((7, -9, 3)):
    wave.v[n] = np.full(64, number & 0xffffffff, np.uint32)
for name, want in ("v_med3_i32", 3), ("v_med3_u32", 7):
    launch._make(Instruction(0, name, ["v3", "v0", "v1", "v2"], name))(wave)
    assert (wave.v[3] == want).all(), (name, wave.v[3])

# Fields of bits of a scalar: from which on, and how many.
wave.set_scalar(4, 0x9abcdef0)
for text, want, scc in (
        ("s_bfe_u32 s5, s4, 0x80004", 0xef, 1), ("s_bfe_i32 s5, s4, 0x80004", 0xffffffef, 1),
        ("s_bfe_u32 s5, s4, 0x1d0002", 0x6af37bc, 1), ("s_bfe_u32 s5, s4, 0x40000", 0, 0),
        ("s_bfe_u32 s5, s4, 4", 0, 0), ("s_bfe_u32 s5, s4, 0x7f001c", 9, 1)):
    name, _, operands = text.partition(" ")
    launch._make(Instruction(0, name, split_operands(operands), text))(wave)
    assert (wave.s[5], wave.scc) == (want, scc), (text, hex(wave.s[5]), wave.scc)

# Pairs of 16-bit numbers: a constant is the lower half of what it is for both.
for n, number in enumerate((0x3c004400, 0xff0180ff, 8)):
    wave.v[n] = np.full(64, number, np.uint32)
for text, want in (
        ("v_pk_lshlrev_b16 v3, 8, v1 op_sel_hi:[1,0]", 0x80ffff00),
        ("v_pk_ashrrev_i16 v3, 1, v1 op_sel_hi:[0,1]", 0xff80c07f),
        ("v_pk_fma_f16 v3, v0, v0, v0 op_sel_hi:[1,1,0]", 0x45004d00),
        ("v_mul_i32_i24_sdwa v3, sext(v1), v2 dst_sel:DWORD dst_unused:UNUSED_PAD "
         "src0_sel:WORD_1 src1_sel:DWORD", -2040 & 0xffffffff),
        ("v_bfe_i32 v3, v1, 4, 8", 0xf), ("v_cvt_pkrtz_f16_f32 v3, 0x3c007000, v0", 0x20022003)):
    name, _, operands = text.partition(" ")
    launch._make(Instruction(0, name, split_operands(operands), text))(wave)
    assert (wave.v[3] == want).all(), (text, hex(wave.v[3][0]))

# To 8-bit floats: ties, also at the border of what a format has, and what is beyond it.
for n, number in enumerate((464, -465, 17, np.nan)):
    wave.v[n] = np.full(64, number, np.float32).view(np.uint32)
for chip, want in ("gfx950", (0xff7e, 0x7f58)), ("gfx942", (0x8080, 0x8060)):
    launch.code.chip = chip
    for first, codes in zip((0, 2), want):
        text = f"v_cvt_pk_fp8_f32 v4, v{first}, v{first + 1}"
        name, _, operands = text.partition(" ")
        launch._make(Instruction(0, name, split_operands(operands), text))(wave)
        assert (wave.v[4] & 0xffff == codes).all(), (chip, text, hex(wave.v[4][0]))

# A load that a wave comes to a second time may fill its register again, which is ready when
# the second one has been awaited.
wave = Wave(types.SimpleNamespace(late=True), 0)
load, use = (Instruction(0, text.split()[0], split_operands(text.partition(" ")[2]), text)
             for text in ("global_load_dword v0, v[2:3], off", "v_mov_b32_e32 v1, v0"))
for made in load, use:
    launch._make(made)
for left, ready in (2, False), (1, False), (0, True):
    while len(wave.queues["vmcnt"]) < left:
        wave.check_ready(load)
        wave.issue("vmcnt", [("v", 0)], None, load)
    wave.wait("vmcnt", left)
    try:
        wave.check_ready(use)
    except Fault as fault:
        assert not ready and "is not awaited" in str(fault), (left, fault)
    else:
        assert ready, left

# What is not executed is named where a wave comes to it, not before.
layernorm = artifact("layernorm")
manifest, _ = open_artifact(layernorm)
arrays = {t["name"]: np.ones([n if isinstance(n, int) else 2 for n in t["shape"]],
                             {"bf16": np.uint16, "f32": np.float32}[t["dtype"]])
          for t in manifest["tensors"] if t["access"] == "read"}
refused("is not executed", layernorm, **arrays)
