# RUN: %python %s %bin/kvbuf-emu-test %t.mlir
# RUN: %python %s %bin/kvbuf-emu-test %t.mlir --options='{"portable":true}'
"""Every arithmetic operation against Python's integers and numpy's floats.

Each case is one operation on 32 lanes of operands that hold the edges of its
type; everything goes in and comes out as 32-bit words.
"""
import itertools
import struct
import subprocess
import sys

import numpy as np

tool, path, *options = sys.argv[1:]
np.seterr(all="ignore")
LANES = 32
rng = np.random.default_rng(5)


class Kernel:
    """Collects operations; `check` runs them all at once."""

    def __init__(self):
        self.lines, self.cases, self.inputs, self.slots = [], [], [], 0
        self.names = itertools.count()

    def name(self):
        return f"%x{next(self.names)}"

    def emit(self, text):
        r = self.name()
        self.lines.append(f"    {r} = {text}")
        return r

    def address(self, base, word):
        offset = self.emit(f"llvm.mlir.constant({word * LANES} : i32) : i32")
        index = self.emit(f"llvm.add %t, {offset} : i32")
        return self.emit(f"llvm.getelementptr {base}[{index}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32")

    def word(self, values):
        """One 32-bit word a lane."""
        p = self.address("%in", len(self.inputs) // LANES)
        self.inputs += [int(v) & 0xFFFFFFFF for v in values]
        return self.emit(f"llvm.load {p} : !llvm.ptr<1> -> i32")

    def value(self, type, bits):
        """An SSA value of `type` from each lane's bit pattern."""
        width = WIDTH[type]
        low = self.word([b & 0xFFFFFFFF for b in bits])
        if width == 64:
            high = self.word([b >> 32 for b in bits])
            lo, hi = (self.emit(f"llvm.zext {v} : i32 to i64") for v in (low, high))
            c = self.emit("llvm.mlir.constant(32 : i64) : i64")
            shifted = self.emit(f"llvm.shl {hi}, {c} : i64")
            low = self.emit(f"llvm.or {shifted}, {lo} : i64")
        elif width < 32:
            low = self.emit(f"llvm.trunc {low} : i32 to i{width}")
        return low if type[0] == "i" else self.emit(f"llvm.bitcast {low} : i{width} to {type}")

    def result(self, value, type, want, what, close=False):
        width = WIDTH[type]
        if type[0] != "i":
            value = self.emit(f"llvm.bitcast {value} : {type} to i{width}")
        words = [value]
        if width == 64:
            c = self.emit("llvm.mlir.constant(32 : i64) : i64")
            high = self.emit(f"llvm.lshr {value}, {c} : i64")
            words = [self.emit(f"llvm.trunc {v} : i64 to i32") for v in (value, high)]
        elif width < 32:
            words = [self.emit(f"llvm.zext {value} : i{width} to i32")]
        for w in words:
            p = self.address("%out", self.slots)
            self.lines.append(f"    llvm.store {w}, {p} : i32, !llvm.ptr<1>")
            self.slots += 1
        self.cases.append((what, type, self.slots - len(words), len(words), list(want), close))

    def check(self):
        text = ("llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {\n"
                "    %t = nvvm.read.ptx.sreg.tid.x : i32\n" + "\n".join(self.lines) + "\n    llvm.return\n}\n")
        with open(path, "w") as f:
            f.write(text)
        numbers = "/".join(str(x - (x >> 31 << 32)) for x in self.inputs)
        out = subprocess.run([tool, path, *options, "--block=32", f"--arg=buf:i32:{len(self.inputs)}:list={numbers}",
                              f"--arg=buf:i32:{self.slots * LANES}:uninit", "--print=1"],
                             capture_output=True, text=True)
        assert out.returncode == 0, out.stderr
        got = [int(x) & 0xFFFFFFFF for x in out.stdout.split(":")[1].split()]
        for what, type, slot, words, want, close in self.cases:
            for lane in range(LANES):
                bits = sum(got[(slot + w) * LANES + lane] << (32 * w) for w in range(words))
                if want[lane] is not None:
                    assert same(type, bits, want[lane], close), (what, lane, hex(bits), hex(want[lane]))


WIDTH = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}


def decode(type, bits):
    if type == "bf16":
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    code, fmt = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}[type]
    return struct.unpack(fmt, struct.pack(code, bits))[0]


def same(type, bits, want, close):
    if type[0] == "i":
        return bits == want
    x, y = decode(type, bits), decode(type, want)
    if y != y:
        return x != x
    if close:  # a few units in the last place of fp32
        return x == y or abs(x - y) <= 3e-7 * abs(y)
    return bits == want


def signed(x, width):
    return x - (1 << width) if x >> (width - 1) else x


def integers(width):
    top = 1 << width
    edges = [0, 1, 2, 3, 7, top // 2 - 1, top // 2, top // 2 + 1, top - 1, top - 2]
    random = [int(rng.integers(0, 1 << 32)) << 32 | int(rng.integers(0, 1 << 32)) for _ in range(LANES)]
    return [(edges + [r % top for r in random])[i] for i in range(LANES)]


def shuffled(values):
    return [values[(i * 7 + 3) % LANES] for i in range(LANES)]


def integer_cases(k, width):
    type, top = f"i{width}", 1 << width
    a, b = integers(width), shuffled(integers(width))
    va, vb = k.value(type, a), k.value(type, b)
    small = [x % width for x in b]
    vs = k.value(type, small)
    s = lambda x: signed(x, width)
    quotient = lambda x, y: int(abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)

    def binary(op, f, rhs=None, vr=None):
        rhs, vr = rhs or b, vr or vb
        want = []
        for x, y in zip(a, rhs):
            w = f(x, y)
            want.append(None if w is None else w % top)
        if op.startswith("llvm.intr"):
            r = k.emit(f"{op}({va}, {vr}) : ({type}, {type}) -> {type}")
        else:
            r = k.emit(f"{op} {va}, {vr} : {type}")
        k.result(r, type, want, f"{op} {type}")

    binary("llvm.add", lambda x, y: x + y)
    binary("llvm.sub", lambda x, y: x - y)
    binary("llvm.mul", lambda x, y: x * y)
    binary("llvm.udiv", lambda x, y: x // y if y else None)
    binary("llvm.urem", lambda x, y: x % y if y else None)
    binary("llvm.sdiv", lambda x, y: quotient(s(x), s(y)) if y and not (s(x) == -top // 2 and s(y) == -1) else None)
    binary("llvm.srem", lambda x, y: s(x) - quotient(s(x), s(y)) * s(y) if y and s(y) != -1 else None)
    binary("llvm.and", lambda x, y: x & y)
    binary("llvm.or", lambda x, y: x | y)
    binary("llvm.xor", lambda x, y: x ^ y)
    binary("llvm.shl", lambda x, y: x << y, small, vs)
    binary("llvm.lshr", lambda x, y: x >> y, small, vs)
    binary("llvm.ashr", lambda x, y: s(x) >> y, small, vs)
    binary("llvm.intr.umin", min)
    binary("llvm.intr.umax", max)
    binary("llvm.intr.usub.sat", lambda x, y: max(x - y, 0))
    binary("llvm.intr.smin", lambda x, y: min(s(x), s(y)))
    binary("llvm.intr.smax", lambda x, y: max(s(x), s(y)))
    r = k.emit(f'"llvm.intr.abs"({va}) <{{is_int_min_poison = false}}> : ({type}) -> {type}')
    k.result(r, type, [abs(s(x)) % top for x in a], f"abs {type}")
    r = k.emit(f"llvm.intr.ctpop({va}) : ({type}) -> {type}")
    k.result(r, type, [bin(x).count("1") for x in a], f"ctpop {type}")
    low, high = -(top // 2), top // 2 - 1
    binary("llvm.intr.sadd.sat", lambda x, y: min(max(s(x) + s(y), low), high))
    binary("llvm.intr.uadd.sat", lambda x, y: min(x + y, top - 1))
    binary("llvm.intr.ssub.sat", lambda x, y: min(max(s(x) - s(y), low), high))
    for name, f in {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y}.items():
        for sign, number in (("s", s), ("u", lambda x: x)):
            pair = k.emit(f'"llvm.intr.{sign}{name}.with.overflow"({va}, {vb}) : ({type}, {type}) '
                          f"-> !llvm.struct<({type}, i1)>")
            r = k.emit(f"llvm.extractvalue {pair}[0] : !llvm.struct<({type}, i1)>")
            exact = [f(number(x), number(y)) for x, y in zip(a, b)]
            k.result(r, type, [x % top for x in exact], f"{sign}{name}.with.overflow {type}")
            r = k.emit(f"llvm.extractvalue {pair}[1] : !llvm.struct<({type}, i1)>")
            k.result(r, "i1", [int(number(x % top) != x) for x in exact], f"{sign}{name} overflows {type}")
    r = k.emit(f"llvm.intr.bitreverse({va}) : ({type}) -> {type}")
    k.result(r, type, [int(f"{x:0{width}b}"[::-1], 2) for x in a], f"bitreverse {type}")
    if width % 16 == 0:
        r = k.emit(f"llvm.intr.bswap({va}) : ({type}) -> {type}")
        k.result(r, type, [int.from_bytes(x.to_bytes(width // 8, "little"), "big") for x in a], f"bswap {type}")
    r = k.emit(f'"llvm.intr.ctlz"({va}) <{{is_zero_poison = false}}> : ({type}) -> {type}')
    k.result(r, type, [width - x.bit_length() for x in a], f"ctlz {type}")
    r = k.emit(f'"llvm.intr.cttz"({va}) <{{is_zero_poison = false}}> : ({type}) -> {type}')
    k.result(r, type, [(x & -x).bit_length() - 1 if x else width for x in a], f"cttz {type}")
    if width >= 32:
        r = k.emit(f"llvm.intr.fshl({va}, {vb}, {vs}) : ({type}, {type}, {type}) -> {type}")
        k.result(r, type, [(x << n | y >> (width - n)) % top for x, y, n in zip(a, b, small)], f"fshl {type}")
    for p, f in {"eq": lambda x, y: x == y, "ne": lambda x, y: x != y,
                 "ult": lambda x, y: x < y, "ule": lambda x, y: x <= y, "ugt": lambda x, y: x > y,
                 "uge": lambda x, y: x >= y, "slt": lambda x, y: s(x) < s(y), "sle": lambda x, y: s(x) <= s(y),
                 "sgt": lambda x, y: s(x) > s(y), "sge": lambda x, y: s(x) >= s(y)}.items():
        c = k.emit(f'llvm.icmp "{p}" {va}, {vb} : {type}')
        k.result(c, "i1", [int(f(x, y)) for x, y in zip(a, b)], f"icmp {p} {type}")
    r = k.emit(f"llvm.select {c}, {va}, {vb} : i1, {type}")
    k.result(r, type, [x if s(x) >= s(y) else y for x, y in zip(a, b)], f"select {type}")
    for other in (8, 16, 32, 64):
        if other < width:
            r = k.emit(f"llvm.trunc {va} : {type} to i{other}")
            k.result(r, f"i{other}", [x % (1 << other) for x in a], f"trunc {type} i{other}")
        if other > width:
            r = k.emit(f"llvm.zext {va} : {type} to i{other}")
            k.result(r, f"i{other}", a, f"zext {type} i{other}")
            r = k.emit(f"llvm.sext {va} : {type} to i{other}")
            k.result(r, f"i{other}", [s(x) % (1 << other) for x in a], f"sext {type} i{other}")
    if width >= 32:
        for to, np_to in (("f32", np.float32), ("f64", np.float64)):
            np_u, np_s = (np.uint32, np.int32) if width == 32 else (np.uint64, np.int64)
            r = k.emit(f"llvm.uitofp {va} : {type} to {to}")
            k.result(r, to, encode(to, np.array(a, np_u).astype(np_to)), f"uitofp {type} {to}")
            r = k.emit(f"llvm.sitofp {va} : {type} to {to}")
            k.result(r, to, encode(to, np.array([s(x) for x in a], np_s).astype(np_to)), f"sitofp {type} {to}")


def encode(type, array):
    if type == "f16":
        return [int(x) for x in array.astype(np.float16).view(np.uint16)]
    if type == "bf16":
        return [to_bf16(x) for x in array.astype(np.float32)]
    view = {"f32": (np.float32, np.uint32), "f64": (np.float64, np.uint64)}[type]
    return [int(x) for x in array.astype(view[0]).view(view[1])]


def to_bf16(x):
    """Round to nearest, ties to even, by comparing with both neighbours."""
    bits = int(np.float32(x).view(np.uint32))
    if x != x:
        return 0x7FC0
    low = bits >> 16
    if not np.isfinite(x) or bits & 0xFFFF == 0:
        return low
    magnitude = bits & 0x7FFFFFFF
    up = magnitude & 0xFFFF
    return low + (1 if up > 0x8000 or (up == 0x8000 and low & 1) else 0)


def floats(type):
    edges = [0.0, -0.0, 1.0, -1.0, 1.5, np.inf, -np.inf, np.nan, 65504.0, -65520.0, 6e-8, -3e-8, 1e-7, 6.1e-5,
             1e-38, 2.0 ** -126, 3e38, 1.00048828125, 1.0078125, 1.001]
    values = np.array(edges + list(rng.standard_normal(LANES) * 10), np.float64)[:LANES]
    return encode(type, values.astype(np.float32) if type != "f64" else values)


NP = {"f16": np.float16, "bf16": np.float32, "f32": np.float32, "f64": np.float64}


def as_array(type, bits):
    return np.array([decode(type, b) for b in bits], NP[type])


def float_cases(k, type):
    a, b = floats(type), shuffled(floats(type))
    va, vb = k.value(type, a), k.value(type, b)
    x, y = as_array(type, a), as_array(type, b)
    for op, f in (("fadd", np.add), ("fsub", np.subtract), ("fmul", np.multiply), ("fdiv", np.divide)):
        r = k.emit(f"llvm.{op} {va}, {vb} : {type}")
        k.result(r, type, encode(type, f(x, y)), f"{op} {type}")
    r = k.emit(f"llvm.fneg {va} : {type}")
    k.result(r, type, [z ^ (1 << (WIDTH[type] - 1)) for z in a], f"fneg {type}")
    for op, f in (("maxnum", np.fmax), ("minnum", np.fmin), ("maximum", np.maximum), ("minimum", np.minimum)):
        r = k.emit(f"llvm.intr.{op}({va}, {vb}) : ({type}, {type}) -> {type}")
        want = encode(type, f(x, y))
        # Zeros of both signs: their order is checked for fp32 below.
        k.result(r, type, [None if u == 0 and v == 0 else w for u, v, w in zip(x, y, want)], f"{op} {type}")
    nan = [u != u or v != v for u, v in zip(x, y)]
    for p, f in {"oeq": np.equal, "ogt": np.greater, "oge": np.greater_equal, "olt": np.less, "ole": np.less_equal,
                 "one": np.not_equal}.items():
        for unordered in (False, True):
            name = ("u" if unordered else "o") + p[1:]
            c = k.emit(f'llvm.fcmp "{name}" {va}, {vb} : {type}')
            want = [int(unordered) if n else int(z) for n, z in zip(nan, f(x, y))]
            k.result(c, "i1", want, f"fcmp {name} {type}")
    for p, w in (("ord", [int(not n) for n in nan]), ("uno", [int(n) for n in nan])):
        c = k.emit(f'llvm.fcmp "{p}" {va}, {vb} : {type}')
        k.result(c, "i1", w, f"fcmp {p} {type}")
    for op, f in (("sqrt", np.sqrt), ("fabs", np.abs), ("floor", np.floor), ("ceil", np.ceil), ("rint", np.rint)):
        r = k.emit(f"llvm.intr.{op}({va}) : ({type}) -> {type}")
        k.result(r, type, encode(type, f(x)), f"{op} {type}")
    for other in ("f16", "bf16", "f32", "f64"):
        if WIDTH[other] > WIDTH[type]:
            r = k.emit(f"llvm.fpext {va} : {type} to {other}")
            k.result(r, other, encode(other, x.astype(NP[other])), f"fpext {type} {other}")
        if WIDTH[other] < WIDTH[type] and not (type == "f64" and WIDTH[other] == 16):
            r = k.emit(f"llvm.fptrunc {va} : {type} to {other}")
            k.result(r, other, encode(other, x), f"fptrunc {type} {other}")
    for width in (32, 64):
        low, high = -(2 ** (width - 1)), 2 ** (width - 1) - 1
        r = k.emit(f"llvm.fptosi {va} : {type} to i{width}")
        clamp = lambda z, lo, hi: 0 if z != z else lo if z <= lo else hi if z >= hi else int(z)
        k.result(r, f"i{width}", [clamp(float(z), low, high) % (1 << width) for z in x], f"fptosi {type} i{width}")
        r = k.emit(f"llvm.fptoui {va} : {type} to i{width}")
        k.result(r, f"i{width}", [clamp(float(z), 0, 2 ** width - 1) for z in x], f"fptoui {type} i{width}")


def reduction_cases(k):
    """vector.reduce of four elements."""
    for type, dtype in (("i32", np.uint32), ("f32", np.float32)):
        sources = [encode(type, rng.integers(-9, 9, LANES).astype(np.float32)) if type == "f32" else integers(32)
                   for _ in range(4)]
        vector = k.emit(f"llvm.mlir.undef : vector<4x{type}>")
        for i, bits in enumerate(sources):
            v = k.value(type, bits)
            index = k.emit(f"llvm.mlir.constant({i} : i32) : i32")
            vector = k.emit(f"llvm.insertelement {v}, {vector}[{index} : i32] : vector<4x{type}>")
        columns = np.array(sources, np.uint32).view(dtype)
        if type == "i32":
            for op, f in (("add", np.add), ("xor", np.bitwise_xor), ("umax", np.maximum)):
                r = k.emit(f'"llvm.intr.vector.reduce.{op}"({vector}) : (vector<4xi32>) -> i32')
                k.result(r, "i32", [int(x) for x in f.reduce(columns, axis=0, dtype=np.uint32)], f"reduce {op}")
        else:
            start = k.emit("llvm.mlir.constant(0.5 : f32) : f32")
            r = k.emit(f'"llvm.intr.vector.reduce.fadd"({start}, {vector}) : (f32, vector<4xf32>) -> f32')
            k.result(r, "f32", encode("f32", columns.sum(axis=0) + np.float32(0.5)), "reduce fadd")
            r = k.emit(f'"llvm.intr.vector.reduce.fmax"({vector}) : (vector<4xf32>) -> f32')
            k.result(r, "f32", encode("f32", columns.max(axis=0) + np.float32(0)), "reduce fmax")


def f32_cases(k):
    a, b = floats("f32"), shuffled(floats("f32"))
    c = [b[(i + 5) % LANES] for i in range(LANES)]
    va, vb, vc = (k.value("f32", z) for z in (a, b, c))
    x, y, z = (as_array("f32", q).astype(np.float64) for q in (a, b, c))
    # The product of two fp32 numbers is exact in fp64; one rounding of the
    # sum there is harmless unless it falls on a tie, which these do not.
    r = k.emit(f"llvm.intr.fma({va}, {vb}, {vc}) : (f32, f32, f32) -> f32")
    k.result(r, "f32", encode("f32", x * y + z), "fma")
    with_range = np.clip(x, -200, 200)
    vr = k.value("f32", encode("f32", with_range))
    exact = np.exp2(as_array("f32", encode("f32", with_range)).astype(np.float64)).astype(np.float32)
    flushed = np.where(np.abs(exact) < 2.0 ** -126, 0, exact)
    r = k.emit(f"llvm.intr.exp2({vr}) : (f32) -> f32")
    k.result(r, "f32", encode("f32", exact), "exp2", close=True)
    r = k.emit(f'llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"({vr}) : (f32) -> f32')
    k.result(r, "f32", encode("f32", flushed), "ex2.approx.ftz", close=True)
    r = k.emit(f"nvvm.rcp.approx.ftz.f {vr} : f32")
    small = np.abs(with_range) < 2.0 ** -126
    want = np.where(small, np.copysign(np.inf, with_range), 1 / with_range)
    k.result(r, "f32", encode("f32", want), "rcp.approx.ftz", close=True)
    positive = encode("f32", np.abs(with_range) + 1e-3)
    vp = k.value("f32", positive)
    r = k.emit(f"llvm.intr.log2({vp}) : (f32) -> f32")
    k.result(r, "f32", encode("f32", np.log2(as_array("f32", positive).astype(np.float64))), "log2", close=True)
    r = k.emit(f"llvm.intr.copysign({va}, {vb}) : (f32, f32) -> f32")
    k.result(r, "f32", [u & 0x7FFFFFFF | v & 0x80000000 for u, v in zip(a, b)], "copysign")
    zeros = k.value("f32", [0x80000000] * 16 + [0] * 16), k.value("f32", [0] * 16 + [0x80000000] * 16)
    for op, want in (("maxnum", 0), ("minnum", 0x80000000), ("maximum", 0), ("minimum", 0x80000000)):
        r = k.emit(f"llvm.intr.{op}({zeros[0]}, {zeros[1]}) : (f32, f32) -> f32")
        # Compared as integers, for the sign of zero.
        r = k.emit(f"llvm.bitcast {r} : f32 to i32")
        k.result(r, "i32", [want] * LANES, f"{op} of zeros")
    for type in ("bf16", "f16"):
        r = k.emit(f"nvvm.convert.f32x2.to.{type}x2 {va}, {vb} {{rnd = #nvvm.fp_rnd_mode<rn>}} : vector<2x{type}>")
        for half, source in ((1, a), (0, b)):  # the first operand is the upper half
            i = k.emit(f"llvm.mlir.constant({half} : i32) : i32")
            e = k.emit(f"llvm.extractelement {r}[{i} : i32] : vector<2x{type}>")
            k.result(e, type, encode(type, as_array("f32", source)), f"convert f32x2 {type} {half}")


for width in (8, 16, 32, 64):
    k = Kernel()
    integer_cases(k, width)
    k.check()
for type in ("f16", "bf16", "f32", "f64"):
    k = Kernel()
    float_cases(k, type)
    k.check()
k = Kernel()
f32_cases(k)
reduction_cases(k)
k.check()
