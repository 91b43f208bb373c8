# REQUIRES: ld.lld
# RUN: %python %s gfx942
# RUN: %python %s gfx950
"""A result that is read too early is a warning of the compiler, with the function and
both instructions; with as many cycles of s_nop as the chip's tables ask for there is
none. Each is planted here by inline assembly, which LLVM looks for no hazards in, two
at a time: in a loop of a kernel, from its end to its head, and in a function.

    hazards.py CHIP
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "Inputs"))
import planted

CHIP = sys.argv[1]
# Passes of the matrix unit for 16x16x16: four. CDNA4's results take a cycle more.
LATER = CHIP == "gfx950"

MFMA = "v_mfma_f32_16x16x16_bf16 v[40:43], v[48:49], v[50:51], v[40:43]"
MOVE, LANE = "v_mov_b32 v40, v44", "v_readfirstlane_b32 s20, v44"
COMPARE = "v_cmp_lt_u32 vcc, v44, v45"
# The first, the second, the cycles between them, and what the message says.
FAULTS = [
    (MFMA, "v_add_f32 v44, v41, v45", 7 + LATER, "reads what"),
    (MFMA, "ds_write_b32 v44, v43", 7 + LATER, "reads what"),
    (MFMA, "global_store_dword v[44:45], v42, off", 7 + LATER, "reads what"),
    (MFMA, "v_mov_b32 v42, v45", 7 + LATER, "writes again what"),
    (MFMA, "v_mfma_f32_16x16x16_bf16 v[52:55], v[42:43], v[50:51], v[52:55]",
     7 + LATER, "takes for A or B what"),
    (MFMA, "v_mfma_f32_16x16x16_bf16 v[52:55], v[48:49], v[50:51], v[42:45]",
     5 + LATER, "takes for a part of C what"),
    ("v_mov_b32 v48, v44", MFMA, 2, "reads what"),
    ("v_exp_f32 v40, v44", "v_add_f32 v41, v40, v44", 1, "reads what"),
    (COMPARE, "v_cndmask_b32 v40, v41, v42, vcc", 2, "reads the scalar that"),
    (LANE, "global_load_dword v40, v41, s[20:21]", 5, "reads the scalar that"),
    (LANE, "v_readlane_b32 s22, v41, s20", 4, "takes for a lane's number the scalar that"),
    # Data for a lane, which is no lane's number.
    (LANE, "v_writelane_b32 v41, s20, 3", 2, "reads the scalar that"),
    (MOVE, "v_readfirstlane_b32 s20, v40", 1, "reads of a lane what"),
    (MOVE, "v_mov_b32_dpp v41, v40 row_shr:1 row_mask:0xf bank_mask:0xf", 2,
     "reads of other lanes what"),
    (COMPARE, "v_div_fmas_f32 v40, v41, v42, v43", 4, "takes the VCC that"),
    ("v_cmpx_lt_u32 v44, v45", "v_readfirstlane_b32 s20, v41", 4, "uses the lanes that"),
    ("s_mov_b32 m0, s20", "buffer_load_dword v40, s[24:27], 0 offen lds", 1,
     "goes to the place in LDS that"),
    ("global_store_dwordx4 v[44:45], v[40:43], off", MOVE, 1,
     "writes again the data that"),
]


def compiled(in_kernel, in_called):
    # Far from what stands before and behind.
    apart = ["s_nop 15", "s_nop 15"]
    done = planted.compiled(CHIP, planted.plant("PLANTED"),
                            {"PLANTED": [*apart, *in_kernel, *apart],
                             "CALLED": [*apart, *in_called, *apart]})
    assert done.returncode == 0, done.stderr
    return re.sub(r"0x[0-9a-f]+", "HERE", done.stderr)


def pair(fault, less):
    """Both instructions with `less` cycles too few between them."""
    first, second, cycles, _ = fault
    wait = [f"s_nop {cycles - less - 1}"] if cycles > less else []
    return [first, *wait, second]


def expect(said, function, fault, less):
    expected = (f"warning: the code of '{function}' does not wait for a result: the "
                f"instruction at HERE {fault[3]} that at HERE writes, {less} cycles too early")
    assert expected in said, (said, expected)


faults = FAULTS + FAULTS[:len(FAULTS) % 2]
for one, other in zip(faults[::2], faults[1::2]):
    said = compiled(pair(one, 1), pair(other, other[2]))
    assert said.count("warning:") == 2, said
    expect(said, "planted", one, 1)
    expect(said, "called", other, other[2])

sound = []
for fault in FAULTS:
    sound += [*pair(fault, 0), "s_nop 15", "s_nop 15"]
assert not compiled(sound, []), compiled(sound, [])

# Registers that are the same for C are forwarded.
assert not compiled([MFMA, MFMA], ["s_mov_b32 m0, s20", "s_nop 0",
                                   "buffer_load_dword v40, s[24:27], 0 offen lds"])

# So are those that another matrix instruction has written since; not where a way has none.
moved = ["v_mfma_f32_16x16x16_bf16 v[38:41], v[48:49], v[50:51], v[40:43]",
         "v_mfma_f32_16x16x16_bf16 v[38:41], v[48:49], v[50:51], v[38:41]"]
assert not compiled([MFMA, *moved], [])
around = [MFMA, "s_cbranch_scc1 2f", moved[0], f"2: {moved[1]}"]
expect(compiled(around, []), "planted", (*FAULTS[5][:3], "takes for a part of C what"), 1 + LATER)

# Around a loop, whose branch, as it is taken, is worth four cycles, and its compare one.
loop = ["1: v_add_f32 v44, v41, v45", "s_nop 1", MFMA, "s_cmp_lt_u32 s20, s21",
        "s_cbranch_scc1 1b"]
expect(compiled(loop, []), "planted", FAULTS[0], 2 + LATER)
assert not compiled(loop[:3] + [f"s_nop {1 + LATER}"] + loop[3:], [])
