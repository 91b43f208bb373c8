# RUN: %python %s %S %bin/kvbuf-emu-test %t.mlir
# RUN: %python %s %S %bin/kvbuf-emu-test %t.mlir --options='{"portable":true}'
"""Exchange between the lanes of an AMD wave, and its packed arithmetic, against
the CDNA3 ISA's definitions (permlane swaps: CDNA4's)."""
import math
import struct
import sys

sys.path.insert(0, sys.argv[1] + "/Inputs")
from amd_wave import Wave, listed, load_words, store_words

wave = Wave(sys.argv[2], sys.argv[3], sys.argv[4:])
DATA = [1000 + 37 * lane for lane in range(64)]
OLD = [-5 - lane for lane in range(64)]


def check(body, results, want, more=(), type="i32", what=None):
    """`body` computes `results` from %w0_0 = DATA, %w1_0 = OLD and further buffers."""
    buffers = [listed("i32", DATA), listed("i32", OLD), *(listed("i32", m) for m in more)]
    text = "".join(load_words(p, 1) for p in range(len(buffers)))
    got = wave.run(text + body + store_words(len(buffers), results, type), [*buffers, f"buf:{type}:{64 * len(results)}:uninit"])
    want = [x for register in want for x in register]
    assert got == want, (what or body, [(i, g, w) for i, (g, w) in enumerate(zip(got, want)) if g != w][:4])


# DPP: control, source lane (None: none).
def in_row(lane, source):
    return source if source // 16 == lane // 16 and source >= 0 else None


controls = {
    0b00_01_10_11: lambda l: l // 4 * 4 + 3 - l % 4,
    0b11_01_01_00: lambda l: l // 4 * 4 + (0, 1, 1, 3)[l % 4],
    0x101: lambda l: in_row(l, l + 1),
    0x10F: lambda l: in_row(l, l + 15),
    0x113: lambda l: in_row(l, l - 3),
    0x124: lambda l: l // 16 * 16 + (l % 16 - 4) % 16,
    0x130: lambda l: l + 1 if l < 63 else None,
    0x134: lambda l: (l + 1) % 64,
    0x138: lambda l: l - 1 if l else None,
    0x13C: lambda l: (l - 1) % 64,
    0x140: lambda l: l // 16 * 16 + 15 - l % 16,
    0x141: lambda l: l // 8 * 8 + 7 - l % 8,
    0x142: lambda l: l // 16 * 16 - 1 if l > 15 else None,
    0x143: lambda l: 31 if l > 31 else None,
    0x155: lambda l: l // 16 * 16 + 5,
}
for control, source in controls.items():
    for rows, banks, zero in ((15, 15, "true"), (15, 15, "false"), (0b1010, 0b0110, "true")):
        def value(lane):
            if not (rows >> lane // 16 & 1 and banks >> lane % 16 // 4 & 1):
                return OLD[lane]
            s = source(lane)
            return DATA[s] if s is not None else 0 if zero == "true" else OLD[lane]
        check(f"\n    %r = rocdl.update.dpp %w1_0, %w0_0 with {control}, {rows}, {banks}, {zero} : i32", ["%r"],
              [[value(lane) for lane in range(64)]])

# ds_bpermute wraps at 64 lanes and ignores the two low bits.
INDEX = [4 * (13 * lane + 70) + lane % 4 for lane in range(64)]
check("\n    %r = rocdl.ds_bpermute %w2_0, %w0_0 : (i32, i32) -> i32", ["%r"],
      [[DATA[(13 * lane + 70) % 64] for lane in range(64)]], [INDEX])
# ds_permute sends: 13 is odd, so that every lane receives one word.
sent = [0] * 64
for lane in range(64):
    sent[(13 * lane + 70) % 64] = DATA[lane]
check('\n    %r = llvm.call_intrinsic "llvm.amdgcn.ds.permute"(%w2_0, %w0_0) : (i32, i32) -> i32', ["%r"], [sent], [INDEX])

# ds_swizzle: quads, and masks within 32 lanes.
for offset, source in ((0x8000 | 0b10_11_00_01, lambda l: l // 4 * 4 + (1, 0, 3, 2)[l % 4]),
                       (0x1F | 16 << 10, lambda l: l ^ 16),
                       (0x18 | 5 << 5 | 2 << 10, lambda l: l & 32 | ((l & 0x18 | 5) ^ 2))):
    check(f"""
    %o = llvm.mlir.constant({offset} : i32) : i32
    %r = rocdl.ds_swizzle %w0_0, %o : (i32, i32) -> i32""", ["%r"], [[DATA[source(lane)] for lane in range(64)]])

# Swaps: odd groups of the first operand with even groups of the second.
for n in (16, 32):
    first, second = list(DATA), list(OLD)
    for lane in range(64):
        if lane & n:
            first[lane], second[lane - n] = OLD[lane - n], DATA[lane]
    check(f"""
    %s = rocdl.permlane{n}.swap %w0_0, %w1_0, false, false : (i32, i32) -> !llvm.struct<(i32, i32)>
    %r = llvm.extractvalue %s[0] : !llvm.struct<(i32, i32)>
    %q = llvm.extractvalue %s[1] : !llvm.struct<(i32, i32)>""", ["%r", "%q"], [first, second])

# One lane's value, in a part of the wave: lanes 5, 15, 25 ... are active.
check("""
    %c10 = llvm.mlir.constant(10 : i32) : i32
    %c5 = llvm.mlir.constant(5 : i32) : i32
    %c25 = llvm.mlir.constant(25 : i32) : i32
    %m = llvm.urem %t, %c10 : i32
    %p = llvm.icmp "eq" %m, %c5 : i32
    llvm.cond_br %p, ^in, ^out(%w1_0, %w1_0, %w1_0 : i32, i32, i32)
  ^in:
    %f = rocdl.readfirstlane %w0_0 : i32
    %l = rocdl.readlane %w0_0, %c25 : (i32, i32) -> i32
    %d = rocdl.update.dpp %w1_0, %w0_0 with 304, 15, 15, true : i32
    llvm.br ^out(%f, %l, %d : i32, i32, i32)
  ^out(%r0: i32, %r1: i32, %r2: i32):""", ["%r0", "%r1", "%r2"],
      [[DATA[5] if lane % 10 == 5 else OLD[lane] for lane in range(64)],
       [DATA[25] if lane % 10 == 5 else OLD[lane] for lane in range(64)],
       # wave_shl:1 reads the next lane, which is not active: zero.
       [0 if lane % 10 == 5 else OLD[lane] for lane in range(64)]])

# Votes and counts below.
bits = sum(1 << lane for lane in range(64) if lane % 3 == 0)
words = [bits & 0xFFFFFFFF, bits >> 32]
signed = [w - (1 << 32) if w >> 31 else w for w in words]
check("""
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %c32 = llvm.mlir.constant(32 : i64) : i64
    %m = llvm.urem %t, %c3 : i32
    %p = llvm.icmp "eq" %m, %c0 : i32
    %b = rocdl.ballot %p : i64
    %lo = llvm.trunc %b : i64 to i32
    %h = llvm.lshr %b, %c32 : i64
    %hi = llvm.trunc %h : i64 to i32
    %n0 = rocdl.mbcnt.lo %lo, %c3 : (i32, i32) -> i32
    %n1 = rocdl.mbcnt.hi %hi, %n0 : (i32, i32) -> i32""", ["%lo", "%hi", "%n1"],
      [[signed[0]] * 64, [signed[1]] * 64, [3 + len([x for x in range(lane) if x % 3 == 0]) for lane in range(64)]])

# v_perm_b32: bytes of the second operand first, then of the first one; signs;
# 0x00 (12) and 0xFF (13 and above).
A, B = 0x8A7B6C5D, 0x11F2E384


def perm(selector):
    result = 0
    for k in range(4):
        s = selector >> 8 * k & 255
        byte = (B >> 8 * s if s < 4 else A >> 8 * (s - 4)) & 255 if s < 8 else \
            {8: 0xFF, 9: 0, 10: 0, 11: 0xFF, 12: 0}.get(s, 0xFF)
        result |= byte << 8 * k
    return result - (1 << 32) if result >> 31 else result


SELECTORS = [0x07060302, 0x05040100, 0x03020100, 0x00010203, 0x0B0A0908, 0x0D0C070C, 0x10060004]
LANES = [SELECTORS[lane % len(SELECTORS)] for lane in range(64)]
check(f"""
    %a = llvm.mlir.constant({A} : i32) : i32
    %b = llvm.mlir.constant({B} : i32) : i32
    %r = llvm.call_intrinsic "llvm.amdgcn.perm"(%a, %b, %w2_0) : (i32, i32, i32) -> i32""", ["%r"],
      [[perm(s) for s in LANES]], [LANES])

# Dot products of pairs, and conversion toward zero.
check("""
    %a = llvm.mlir.constant(dense<[1.5, -2.0]> : vector<2xbf16>) : vector<2xbf16>
    %b = llvm.mlir.constant(dense<[4.0, 0.25]> : vector<2xbf16>) : vector<2xbf16>
    %c = llvm.sitofp %t : i32 to f32
    %no = llvm.mlir.constant(false) : i1
    %r = llvm.call_intrinsic "llvm.amdgcn.fdot2.f32.bf16"(%a, %b, %c, %no) : (vector<2xbf16>, vector<2xbf16>, f32, i1) -> f32""",
      ["%r"], [[lane + 5.5 for lane in range(64)]], type="f32")


# Every kind of number. Those below f32's normal ones are 0, where c or the sum is one;
# f16 below its own are as they are.
INF, NAN, SMALL = float("inf"), float("nan"), 2.0 ** -130
PAIRS = [(a, b, c) for a in (1.5, -0.0, INF, -INF, NAN, 2.0 ** -24) for b in (-3.0, 0.0, INF)
         for c in (0.25, -INF, SMALL)] + [(-0.0, -0.0, -0.0), (0.0, 0.0, -SMALL), (0.0, 0.0, 2.0 ** -126)]


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def flushed(x):
    return math.copysign(0.0, x) if abs(x) < 2.0 ** -126 else x


def added(a, b, c):
    return flushed(single(single(flushed(c) + a) + b))


def bits_of(x):
    return "nan" if x != x else struct.unpack("<i", struct.pack("<f", x))[0]


def word(numbers, format):
    """The bits of two numbers that the format has."""
    return sum((struct.unpack("<I", struct.pack("<f", x))[0] >> 16 if format == "bf16" else
                struct.unpack("<H", struct.pack("<e", x))[0]) << 16 * i for i, x in enumerate(numbers))


for format, name in (("bf16", "fdot2.f32.bf16"), ("f16", "fdot2")):
    lanes = [PAIRS[lane % len(PAIRS)] for lane in range(64)]
    words = [word(lane[:2], format) for lane in lanes]
    starts = [struct.unpack("<i", struct.pack("<f", c))[0] for _, _, c in lanes]
    buffers = [[w - (1 << 32) if w >> 31 else w for w in words], starts]
    text = "".join(load_words(p, 1) for p in range(2))
    got = wave.run(text + f"""
    %a = llvm.bitcast %w0_0 : i32 to vector<2x{format}>
    %one = llvm.mlir.constant(dense<1.0> : vector<2x{format}>) : vector<2x{format}>
    %c = llvm.bitcast %w1_0 : i32 to f32
    %no = llvm.mlir.constant(false) : i1
    %s = llvm.call_intrinsic "llvm.amdgcn.{name}"(%a, %one, %c, %no) : (vector<2x{format}>, vector<2x{format}>, f32, i1) -> f32
    %r = llvm.bitcast %s : f32 to i32"""
                   + store_words(2, ["%r"], "i32"), [*(listed("i32", b) for b in buffers), "buf:i32:64:uninit"])
    got = [bits_of(struct.unpack("<f", struct.pack("<i", int(g)))[0]) for g in got]
    want = [bits_of(added(*lane)) for lane in lanes]
    assert got == want, [(lane, g, w) for lane, g, w in zip(lanes, got, want) if g != w]


def half_toward_zero(x):
    bits = struct.unpack("<H", struct.pack("<e", x))[0]
    if abs(struct.unpack("<e", struct.pack("<H", bits))[0]) > abs(x):
        bits -= 1
    return bits


NUMBERS = [1.0 + k / 4096 for k in range(32)] + [-70.0 - k / 100 for k in range(32)]
# Rounded to fp32 first, as the buffer holds them.
NUMBERS = [struct.unpack("<f", struct.pack("<f", x))[0] for x in NUMBERS]
FLOATS = [struct.unpack("<i", struct.pack("<f", x))[0] for x in NUMBERS]
want = [half_toward_zero(x) | half_toward_zero(2 * x) << 16 for x in NUMBERS]
check("""
    %x = llvm.bitcast %w2_0 : i32 to f32
    %y = llvm.fadd %x, %x : f32
    %v = rocdl.cvt.pkrtz %x, %y : vector<2xf16>
    %r = llvm.bitcast %v : vector<2xf16> to i32""", ["%r"],
      [[w - (1 << 32) if w >> 31 else w for w in want]], [FLOATS])
assert any(half_toward_zero(x) != struct.unpack("<H", struct.pack("<e", x))[0] for x in NUMBERS)

# Empty assembly pins values and nothing else.
check("""
    %v = llvm.inline_asm has_side_effects asm_dialect = att "", "=v,0" %w0_0 : (i32) -> i32
    %s = llvm.inline_asm has_side_effects asm_dialect = att "; pinned", "=v,=v,0,1" %v, %w1_0 : (i32, i32) -> !llvm.struct<(i32, i32)>
    %r = llvm.extractvalue %s[0] : !llvm.struct<(i32, i32)>
    %q = llvm.extractvalue %s[1] : !llvm.struct<(i32, i32)>""", ["%r", "%q"], [DATA, OLD])

# Median, exponential, logarithm of base 2, reciprocal.
check("""
    %a = llvm.mlir.constant(10.0 : f32) : f32
    %b = llvm.mlir.constant(20.0 : f32) : f32
    %c = llvm.sitofp %t : i32 to f32
    %r = rocdl.fmed3 %a, %c, %b : f32
    %e = rocdl.exp2 %a f32 -> f32
    %l = rocdl.log %e f32 -> f32
    %q = rocdl.rcp %e f32 -> f32""", ["%r", "%e", "%l"],
      [[sorted((10, 20, lane))[1] for lane in range(64)], [1024] * 64, [10] * 64], type="f32")
