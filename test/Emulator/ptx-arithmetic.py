# Statements of PTX that compute: each is one of a kernel that stores its result.
# RUN: rm -rf %t && mkdir -p %t && %python %s %t
"""What PTX ISA says of each instruction, against what the emulator makes of its text.

A case is a statement, its operands (a letter of a constraint and a number as bits) and
the bits of the result; numbers are computed here, by numpy or by hand.
"""

import pathlib
import re
import subprocess
import sys

import numpy as np

FOLDER = pathlib.Path(sys.argv[1])


def f32(x):
    return int(np.float32(x).view(np.uint32))


def f16(x):
    return int(np.float16(x).view(np.uint16))


def bf16(x):
    return f32(x) >> 16  # of numbers that it has


def f64(x):
    return int(np.float64(x).view(np.uint64))


def pair(high, low):
    return high << 16 | low


WORD = 0xFFFFFFFF
A, B, C = 0x12345678, 0x9ABCDEF0, 0x0F0F00FF

CASES = [
    # lop3: 0xE8 is the majority of three, 0xF8 is a | (b & c).
    ("lop3.b32 $0, $1, $2, $3, 0xE8;", ["r"] * 3, [A, B, C], (A & B) | (A & C) | (B & C)),
    ("lop3.b32 $0, $1, $2, $3, 0xf8;", ["r"] * 3, [A, B, C], A | (B & C)),
    # Bytes 1, 0 of b and 3, 0 of a.
    ("prmt.b32 $0, $1, $2, 0x5430;", ["r"] * 2, [A, B],
     (B >> 8 & 255) << 24 | (B & 255) << 16 | (A >> 24) << 8 | (A & 255)),
    ("shf.l.wrap.b32 $0, $1, $2, 40;", ["r"] * 2, [A, B], (B << 8 | A >> 24) & WORD),
    ("shf.l.clamp.b32 $0, $1, $2, 40;", ["r"] * 2, [A, B], A),
    ("shf.r.wrap.b32 $0, $1, $2, 4;", ["r"] * 2, [A, B], (A >> 4 | B << 28) & WORD),
    ("shf.r.clamp.b32 $0, $1, $2, 99;", ["r"] * 2, [A, B], B),
    ("bfe.u32 $0, $1, 8, 12;", ["r"], [A], A >> 8 & 0xFFF),
    ("bfi.b32 $0, $1, $2, 4, 8;", ["r"] * 2, [A, B], B & ~0xFF0 | (A & 255) << 4),
    ("popc.b32 $0, $1;", ["r"], [A], bin(A).count("1")),
    ("clz.b32 $0, $1;", ["r"], [A], 3),
    ("brev.b32 $0, $1;", ["r"], [A], int(f"{A:032b}"[::-1], 2)),
    ("neg.s32 $0, $1;", ["r"], [A], -A & WORD),
    ("abs.s32 $0, $1;", ["r"], [B], -B & WORD),
    ("mul.hi.u32 $0, $1, $2;", ["r"] * 2, [A, B], A * B >> 32),
    ("mul.hi.s32 $0, $1, $2;", ["r"] * 2, [A, B], A * (B - (1 << 32)) >> 32 & WORD),
    ("mad.lo.u32 $0, $1, $2, $3;", ["r"] * 3, [A, B, C], (A * B + C) & WORD),
    ("mul.wide.u16 $0, $1, $2;", ["h"] * 2, [0xFFFF, 0xFFFF], 0xFFFF * 0xFFFF),
    ("min.s32 $0, $1, $2;", ["r"] * 2, [A, B], B),
    ("max.u32 $0, $1, $2;", ["r"] * 2, [A, B], B),
    ("div.u32 $0, $1, $2;", ["r"] * 2, [B, A], B // A),
    ("rem.u32 $0, $1, $2;", ["r"] * 2, [B, A], B % A),
    # By more than 31 nothing is left, but a sign.
    ("shl.b32 $0, $1, $2;", ["r"] * 2, [A, 32], 0),
    ("shr.u32 $0, $1, $2;", ["r"] * 2, [A, 4], A >> 4),
    ("shr.s32 $0, $1, $2;", ["r"] * 2, [B, 77], WORD),
    # Floats.
    ("add.f32 $0, $1, $2;", ["r"] * 2, [f32(1.5), f32(2.25)], f32(3.75)),
    # 1 + 2^-30 towards the larger and the smaller number.
    ("add.rp.f32 $0, $1, $2;", ["r"] * 2, [f32(1), f32(2**-30)], f32(1 + 2**-23)),
    ("sub.rm.f32 $0, $1, $2;", ["r"] * 2, [f32(1), f32(2**-30)], f32(1 - 2**-24)),
    ("mul.f32 $0, $1, $2;", ["r"] * 2, [f32(1.5), f32(-2)], f32(-3)),
    ("fma.rn.f32 $0, $1, $2, $3;", ["r"] * 3, [f32(3), f32(5), f32(0.5)], f32(15.5)),
    ("max.f32 $0, $1, $2;", ["r"] * 2, [f32(np.nan), f32(5)], f32(5)),
    ("min.f32 $0, $1, $2;", ["r"] * 2, [f32(-3), f32(5)], f32(-3)),
    ("neg.f32 $0, $1;", ["r"], [f32(4)], f32(-4)),
    ("abs.f32 $0, $1;", ["r"], [f32(-4)], f32(4)),
    ("sqrt.rn.f32 $0, $1;", ["r"], [f32(6.25)], f32(2.5)),
    ("ex2.approx.f32 $0, $1;", ["r"], [f32(5)], f32(32)),
    ("copysign.f32 $0, $1, $2;", ["r"] * 2, [f32(-1), f32(5)], f32(-5)),
    ("fma.rn.f16x2 $0, $1, $2, $3;", ["r"] * 3,
     [pair(f16(2), f16(3)), pair(f16(5), f16(7)), pair(f16(1), f16(0.5))],
     pair(f16(11), f16(21.5))),
    ("add.bf16x2 $0, $1, $2;", ["r"] * 2, [pair(bf16(1), bf16(2)), pair(bf16(3), bf16(4))],
     pair(bf16(4), bf16(6))),
    ("max.f16x2 $0, $1, $2;", ["r"] * 2, [pair(f16(1), f16(9)), pair(f16(3), f16(4))],
     pair(f16(3), f16(9))),
    ("set.nan.f16x2.f16x2 $0, $1, $1;", ["r"], [pair(0x7E00, f16(2))], pair(f16(1), 0)),
    ("{ .reg .pred p; setp.gt.f32 p, $1, $2; selp.b32 $0, 7, 9, p; }", ["r"] * 2,
     [f32(2), f32(1)], 7),
    # Conversions.
    ("cvt.rn.f16x2.f32 $0, $1, $2;", ["r"] * 2, [f32(1.5), f32(-2)], pair(f16(1.5), f16(-2))),
    # 2049 lies between 2048 and 2050; towards zero it is the former. 2051 to the
    # nearest is 2052, whose last bit is even.
    ("cvt.rz.f16x2.f32 $0, $1, $2;", ["r"] * 2, [f32(2049.5), f32(-2051)],
     pair(f16(2048), f16(-2050))),
    ("cvt.rn.f16x2.f32 $0, $1, $2;", ["r"] * 2, [f32(2049.5), f32(-2051)],
     pair(f16(2050), f16(-2052))),
    ("cvt.rn.relu.f16x2.f32 $0, $1, $2;", ["r"] * 2, [f32(-1), f32(2)], pair(0, f16(2))),
    ("cvt.rn.bf16x2.f32 $0, $1, $2;", ["r"] * 2, [f32(1.5), f32(-2)],
     pair(bf16(1.5), bf16(-2))),
    # E4M3: 1.5 is 0x3C, -448, the largest, 0xFE; E5M2: 1.5 is 0x3E, -2 0xC0.
    ("{ .reg .b16 h; cvt.rn.satfinite.e4m3x2.f32 h, $1, $2; cvt.u32.u16 $0, h; }", ["r"] * 2,
     [f32(1.5), f32(-1000)], 0x3CFE),
    ("{ .reg .b16 h; cvt.rn.satfinite.e5m2x2.f32 h, $1, $2; cvt.u32.u16 $0, h; }", ["r"] * 2,
     [f32(1.5), f32(-2)], 0x3EC0),
    ("{ .reg .b16 h; cvt.u16.u32 h, $1; cvt.rn.f16x2.e5m2x2 $0, h; }", ["r"], [0x3EC0],
     pair(f16(1.5), f16(-2))),
    ("cvt.f32.f16 $0, $1;", ["h"], [f16(0.125)], f32(0.125)),
    ("cvt.rzi.s32.f32 $0, $1;", ["r"], [f32(-2.75)], -2 & WORD),
    ("cvt.rmi.s32.f32 $0, $1;", ["r"], [f32(-2.75)], -3 & WORD),
    ("cvt.rzi.s32.f32 $0, $1;", ["r"], [f32(1e20)], 0x7FFFFFFF),
    ("cvt.rn.f32.s32 $0, $1;", ["r"], [-5 & WORD], f32(-5)),
    ("cvt.rni.f32.f32 $0, $1;", ["r"], [f32(2.5)], f32(2)),
    ("cvt.sat.f32.f32 $0, $1;", ["r"], [f32(2.5)], f32(1)),
    ("cvt.rn.f32.f64 $0, $1;", ["l"], [f64(2.5)], f32(2.5)),
    # Ten bits of a fraction, ties away from zero.
    ("cvt.rna.tf32.f32 $0, $1;", ["r"], [f32(1 + 2**-11)], f32(1 + 2**-10)),
]
TYPES = {"r": "i32", "h": "i16", "l": "i64"}


def main():
    lines = ['target triple = "nvptx64-nvidia-cuda"',
             "define ptx_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {"]
    for k, (text, letters, values, _) in enumerate(CASES):
        # Operands that are loaded are no constants.
        arguments = []
        for j, (letter, value) in enumerate(zip(letters, values)):
            kind = TYPES[letter]
            if kind == "i64" or j == 2:
                arguments.append(f"{kind} {value}")
                continue
            lines += [f"  %p{k}_{j} = getelementptr i32, ptr addrspace(1) %in, i32 {2 * k + j}",
                      f"  %v{k}_{j} = load {kind}, ptr addrspace(1) %p{k}_{j}"]
            arguments.append(f"{kind} %v{k}_{j}")
        lines += [f'  %r{k} = call i32 asm "{text}", "=r,{",".join(letters)}"({", ".join(arguments)})',
                  f"  %o{k} = getelementptr i32, ptr addrspace(1) %out, i32 {k}",
                  f"  store i32 %r{k}, ptr addrspace(1) %o{k}"]
    (FOLDER / "k.ll").write_text("\n".join(lines + ["  ret void", "}"]))
    given = np.zeros(2 * len(CASES), np.uint32)
    for k, (_, _, values, _) in enumerate(CASES):
        for j, value in enumerate(values[:2]):
            given[2 * k + j] = value & WORD
    np.save(FOLDER / "in.npy", given.view(np.int32))
    subprocess.run(["kvbuf-emulate", str(FOLDER / "k.ll"), f"--output=0={FOLDER / 'out.npy'}",
                    f"i32[{len(CASES)}]", str(FOLDER / "in.npy")], check=True)
    found = np.load(FOLDER / "out.npy").view(np.uint32)
    wrong = [f"{text}: {found[k]:#x}, not {right & WORD:#x}"
             for k, (text, _, _, right) in enumerate(CASES) if found[k] != right & WORD]
    print("\n".join(wrong))
    kinds = {re.sub(r"[. ].*", "", text.lstrip("{ ")) for text, *_ in CASES}
    print(f"{len(CASES)} statements of {len(kinds)} kinds")
    sys.exit(bool(wrong))


main()
