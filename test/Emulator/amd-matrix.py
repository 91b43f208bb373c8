# RUN: %python %s %S %bin/kvbuf-emu-test %t.mlir
# RUN: %python %s %S %bin/kvbuf-emu-test %t.mlir --options='{"portable":true}'
"""MFMA, gfx1250's WMMA and ds_read_b64_tr_b16 against their lane maps.

With G = 64 / M groups of M lanes, from AMD's matrix instruction calculator for
the shapes of CDNA3 and, for the two of CDNA4, from the same rule with k / G
elements a lane:
  A[row][k]   lane = M (k // (K / G)) + row, element k % (K / G)
  B[k][col]   lane = M (k // (K / G)) + col, element k % (K / G)
  D[row][col] lane = M (row // 4 % G) + col, register 4 (row // (4 G)) + row % 4
Written here from coordinates to lanes, the other way round than the emulator
does it. Numbers are small integers, so that every sum is exact in any order.
"""
import struct
import sys

import numpy as np

sys.path.insert(0, sys.argv[1] + "/Inputs")
from amd_wave import Wave, join, listed, load_words, split, store_words

wave = Wave(sys.argv[2], sys.argv[3], sys.argv[4:])


def a_at(i, k):
    return (7 * i + 3 * k) % 11 - 5


def b_at(k, n):
    return (5 * k + 2 * n + k * n) % 13 - 6


def c_at(i, n):
    return 4 * i - 9 * n


def mfma(op, m, k, dtype, operand, chip):
    groups, per_lane, registers = 64 // m, m * k // 64, m * m // 64
    a, b = ([None] * (64 * per_lane) for _ in "ab")
    c, want = ([None] * (64 * registers) for _ in "cd")
    for kk in range(k):
        lane, element = m * (kk // (k // groups)), kk % (k // groups)
        for x in range(m):
            # 16-bit elements, two to a word of a register.
            place = 2 * (64 * (element // 2) + lane + x) + element % 2
            a[place], b[place] = a_at(x, kk), b_at(kk, x)
    for row in range(m):
        register = 4 * (row // (4 * groups)) + row % 4
        for col in range(m):
            place = 64 * register + m * (row // 4 % groups) + col
            c[place] = c_at(row, col)
            want[place] = c[place] + sum(a_at(row, x) * b_at(x, col) for x in range(k))
    d = f"vector<{registers}xf32>"
    body = ""
    for p, count in enumerate((per_lane // 2, per_lane // 2, registers)):
        body += load_words(p, count)
        body += join("abc"[p], [f"%w{p}_{i}" for i in range(count)], operand if p < 2 else d)
    body += f"""
    %z = llvm.mlir.constant(0 : i32) : i32
    %d = rocdl.mfma.f32.{op} %a, %b, %c, %z, %z, %z : ({operand}, {operand}, {d}, i32, i32, i32) -> {d}"""
    text, values = split("x", "%d", registers, d, "f32")
    body += text + store_words(3, values, "f32")
    got = wave.run(body, [listed(dtype, a), listed(dtype, b), listed("f32", c), f"buf:f32:{64 * registers}:uninit"], chip)
    assert got == want, (op, next((i, g, w) for i, (g, w) in enumerate(zip(got, want)) if g != w))


for chip in ("gfx942", "gfx950"):
    mfma("32x32x8f16", 32, 8, "f16", "vector<4xf16>", chip)
    mfma("16x16x16f16", 16, 16, "f16", "vector<4xf16>", chip)
    mfma("32x32x8bf16.1k", 32, 8, "bf16", "vector<4xi16>", chip)
    mfma("16x16x16bf16.1k", 16, 16, "bf16", "vector<4xi16>", chip)
mfma("32x32x16.f16", 32, 16, "f16", "vector<8xf16>", "gfx950")
mfma("16x16x32.f16", 16, 32, "f16", "vector<8xf16>", "gfx950")
mfma("32x32x16.bf16", 32, 16, "bf16", "vector<8xbf16>", "gfx950")
mfma("16x16x32.bf16", 16, 32, "bf16", "vector<8xbf16>", "gfx950")

# 8-bit floats: bits of mantissa, and the bias as OCP's OFP8 and as gfx942 has it.
BIAS = {"fp8": (3, {"gfx950": 7, "gfx942": 8}), "bf8": (2, {"gfx950": 15, "gfx942": 16})}


def float8(kind, chip, code):
    """The value of a code, from the text of the formats' descriptions."""
    mantissa, bias = BIAS[kind][0], BIAS[kind][1][chip]
    sign = -1.0 if code >= 128 else 1.0
    exponent, fraction = divmod(code % 128, 2 ** mantissa)
    if chip == "gfx942":
        if code == 128:
            return float("nan")  # where -0 would be; nothing else is special
    elif kind == "fp8":
        if code % 128 == 127:
            return float("nan")  # no infinity
    elif exponent == 31:
        return float("nan") if fraction else sign * float("inf")
    if exponent == 0:
        return sign * fraction * 2.0 ** (1 - bias - mantissa)
    return sign * (1 + fraction / 2 ** mantissa) * 2.0 ** (exponent - bias)


def mfma8(m, k, left, right, chip, a_codes, b_codes):
    """D = A B for codes a_codes[row][k] and b_codes[k][col], as rows."""
    groups, per_lane, registers = 64 // m, m * k // 64, m * m // 64
    a, b = ([0] * (64 * per_lane // 4) for _ in "ab")
    for kk in range(k):
        lane, element = m * (kk // (k // groups)), kk % (k // groups)
        for x in range(m):
            # Four to a word, the first in the lowest bits.
            word, shift = 64 * (element // 4) + lane + x, 8 * (element % 4)
            a[word] |= a_codes[x][kk] << shift
            b[word] |= b_codes[kk][x] << shift
    d = f"vector<{registers}xf32>"
    body = "".join(load_words(p, 2) + join("ab"[p], [f"%w{p}_{i}" for i in range(2)], "i64") for p in range(2))
    body += f"""
    %z = llvm.mlir.constant(0 : i32) : i32
    %c = llvm.mlir.constant(dense<0.0> : {d}) : {d}
    %d = rocdl.mfma.f32.{m}x{m}x{k}.{left}.{right} %a, %b, %c, %z, %z, %z : (i64, i64, {d}, i32, i32, i32) -> {d}"""
    text, values = split("x", "%d", registers, d)
    signed = lambda words: [w - 2 ** 32 if w >= 2 ** 31 else w for w in words]
    got = wave.run(body + text + store_words(2, values),
                   [listed("i32", signed(a)), listed("i32", signed(b)), f"buf:i32:{64 * registers}:uninit"], chip)
    # The bits: as numbers they are printed with six digits.
    got = struct.unpack(f"<{len(got)}f", struct.pack(f"<{len(got)}I", *(int(x) % 2 ** 32 for x in got)))
    return [[got[64 * (4 * (row // (4 * groups)) + row % 4) + m * (row // 4 % groups) + col] for col in range(m)]
            for row in range(m)]


def float8_products(m, k, left, right, chip):
    code_of = {kind: {float8(kind, chip, c): c for c in reversed(range(256))} for kind in BIAS}
    # Lane maps: integers that both formats have, sums that are exact.
    a = [[(7 * i + 3 * kk) % 11 - 5 for kk in range(k)] for i in range(m)]
    b = [[(5 * kk + 2 * n + kk * n) % 9 - 4 for n in range(m)] for kk in range(k)]
    encode = lambda kind, rows: [[code_of[kind][float(x - x % 2 if abs(x) > 4 else x)] for x in row] for row in rows]
    ca, cb = encode(left, a), encode(right, b)
    got = mfma8(m, k, left, right, chip, ca, cb)
    for i in range(m):
        for n in range(m):
            want = sum(float8(left, chip, ca[i][kk]) * float8(right, chip, cb[kk][n]) for kk in range(k))
            assert got[i][n] == want, (chip, m, left, right, i, n, got[i][n], want)
    # Every finite code of both operands, multiplied by one.
    finite = lambda kind: [c for c in range(256) if abs(float8(kind, chip, c)) < float("inf")]
    one = {kind: code_of[kind][1.0] for kind in BIAS}
    for first in range(0, 256, m * k):
        fa, fb = finite(left), finite(right)
        ca = [[fa[(first + i * k + kk) % len(fa)] for kk in range(k)] for i in range(m)]
        eye = [[one[right] if kk == n % k else 0 for n in range(m)] for kk in range(k)]
        got = mfma8(m, k, left, right, chip, ca, eye)
        for i in range(m):
            assert got[i] == [float8(left, chip, ca[i][n % k]) for n in range(m)], (chip, left, i)
        cb = [[fb[(first + kk * m + n) % len(fb)] for n in range(m)] for kk in range(k)]
        eye = [[one[left] if kk == i % k else 0 for kk in range(k)] for i in range(m)]
        got = mfma8(m, k, left, right, chip, eye, cb)
        for i in range(m):
            assert got[i] == [float8(right, chip, cb[i % k][n]) for n in range(m)], (chip, right, i)
    # The others: a row each.
    others = [c for c in range(256) if c not in finite(left)]
    ca = [[others[i] if i < len(others) and kk == 0 else 0 for kk in range(k)] for i in range(m)]
    got = mfma8(m, k, left, right, chip, ca, [[one[right]] * m] * k)
    for i in range(m):
        want = float8(left, chip, others[i]) if i < len(others) else 0.0
        assert all(x == want or (x != x and want != want) for x in got[i]), (chip, left, i, got[i])


for chip in ("gfx942", "gfx950"):
    for m, k in ((32, 16), (16, 32)):
        for left in BIAS:
            for right in BIAS:
                float8_products(m, k, left, right, chip)


def wmma(dtype):
    """Two waves of 32 lanes, a product of random matrices each, against float64.

    A[row][k]: lane row, or row + 16 where k % 16 >= 8; of its 8 registers of two
    elements, those from 4 on are of k >= 16. B[k][col] likewise. D[row][col]: lane
    col + 16 (row // 8), register row % 8. Numbers are few multiples of 1/2, so that
    sums are exact in f32.
    """
    random = np.random.default_rng(1250)
    a, b = random.integers(-8, 9, (2, 2, 16, 32)) / 2
    b = b.transpose(0, 2, 1)
    c = random.integers(-64, 65, (2, 16, 16)) / 4
    want = c + a @ b
    words = {name: np.zeros(64 * count) for name, count in (("a", 16), ("b", 16), ("c", 8))}
    for w in range(2):
        for k in range(32):
            lane, register = 16 * (k % 16 // 8), 4 * (k // 16) + k % 8 // 2
            for x in range(16):
                place = 2 * (64 * register + 32 * w + lane + x) + k % 2
                words["a"][place], words["b"][place] = a[w, x, k], b[w, k, x]
        for row in range(16):
            for col in range(16):
                words["c"][64 * (row % 8) + 32 * w + 16 * (row // 8) + col] = c[w, row, col]
    operand, d = f"vector<16x{dtype}>", "vector<8xf32>"
    body = "".join(load_words(p, 8) + join("abc"[p], [f"%w{p}_{i}" for i in range(8)], operand if p < 2 else d)
                   for p in range(3))
    body += f"""
    %d = rocdl.wmma.f32.16x16x32.{dtype} %a, %b, %c : ({operand}, {operand}, {d}) -> {d}"""
    text, values = split("x", "%d", 8, d, "f32")
    got = wave.run(body + text + store_words(3, values, "f32"),
                   [listed(dtype, words["a"]), listed(dtype, words["b"]), listed("f32", words["c"]), "buf:f32:512:uninit"],
                   "gfx1250")
    for w in range(2):
        for row in range(16):
            for col in range(16):
                have = got[64 * (row % 8) + 32 * w + 16 * (row // 8) + col]
                assert have == want[w, row, col], (dtype, w, row, col, have, want[w, row, col])


wmma("bf16")
wmma("f16")


def transposed_read():
    """The 64 patches of 8 bytes lie scattered, patch p at 8 (11 p % 64)."""
    fill = load_words(0, 2) + "".join(f"""
    %f{i} = llvm.getelementptr %sh[{256 * i}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %q{i} = llvm.getelementptr %f{i}[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %w0_{i}, %q{i} : i32, !llvm.ptr<3>""" for i in range(2))
    body = fill + """
    %c11 = llvm.mlir.constant(11 : i32) : i32
    %c63 = llvm.mlir.constant(63 : i32) : i32
    %x = llvm.mul %t, %c11 : i32
    %y = llvm.and %x, %c63 : i32
    %at = llvm.getelementptr %sh[%y] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
    %v = rocdl.ds.read.tr16.b64 %at : !llvm.ptr<3> -> vector<4xbf16>"""
    text, values = split("r", "%v", 2, "vector<4xbf16>")
    got = wave.run(body + text + store_words(1, values), ["buf:i16:256:iota", "buf:i32:128:uninit"])
    for lane in range(64):
        row16, column = lane & 48, lane % 16
        # Row j of the patch of 4 x 16: lanes 4 j to 4 j + 3, 4 columns each.
        want = [4 * (11 * (row16 + 4 * j + column // 4) % 64) + column % 4 for j in range(4)]
        for word in range(2):
            have = got[64 * word + lane]
            assert have == want[2 * word] + 65536 * want[2 * word + 1], (lane, word, have, want)


transposed_read()


def turned_read():
    """ds_load_tr16_b128 of two waves of 32 lanes: the 64 rows of 16 bytes lie scattered,
    that of lane p at 16 (11 p % 64). Lane 8 g + c has column c of the rows of lanes 8 g
    to 8 g + 7."""
    fill = load_words(0, 4) + "".join(f"""
    %f{i} = llvm.getelementptr %sh[{256 * i}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %q{i} = llvm.getelementptr %f{i}[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %w0_{i}, %q{i} : i32, !llvm.ptr<3>""" for i in range(4))
    body = fill + """
    rocdl.s.wait.dscnt 0
    rocdl.s.barrier
    %c11 = llvm.mlir.constant(11 : i32) : i32
    %c63 = llvm.mlir.constant(63 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %x = llvm.mul %t, %c11 : i32
    %y = llvm.and %x, %c63 : i32
    %z = llvm.mul %y, %c16 : i32
    %at = llvm.getelementptr %sh[%z] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %v = rocdl.ds.load.tr16.b128 %at : !llvm.ptr<3> -> vector<8xbf16>"""
    text, values = split("r", "%v", 4, "vector<8xbf16>")
    got = wave.run(body + text + store_words(1, values), ["buf:i16:512:iota", "buf:i32:256:uninit"], "gfx1250")
    for thread in range(64):
        group, column = thread & ~7, thread % 8
        want = [8 * (11 * (group + row) % 64) + column for row in range(8)]
        for word in range(4):
            have = got[64 * word + thread]
            assert have == want[2 * word] + 65536 * want[2 * word + 1], (thread, word, have, want)


turned_read()


def refused(body, chip, message):
    done = wave.start(body, ["buf:i32:64:uninit"], chip)
    assert done.returncode == 2 and message in done.stderr, done.stderr


v8, v16 = "vector<8xbf16>", "vector<16xf32>"
refused(f"""
    %a = llvm.mlir.undef : {v8}
    %c = llvm.mlir.undef : {v16}
    %z = llvm.mlir.constant(0 : i32) : i32
    %d = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %c, %z, %z, %z : ({v8}, {v8}, {v16}, i32, i32, i32) -> {v16}""", "gfx942",
        "the emulator does not execute 'rocdl.mfma.f32.32x32x16.bf16': gfx942 has no MFMA of shape 32x32x16")
refused(f"""
    %a = llvm.mlir.undef : {v8}
    %c = llvm.mlir.undef : {v16}
    %z = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %d = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %c, %one, %z, %z : ({v8}, {v8}, {v16}, i32, i32, i32) -> {v16}""", "gfx950",
        "the emulator does not execute 'rocdl.mfma.f32.32x32x16.bf16': broadcasts and other modifiers")
refused("""
    %v = rocdl.ds.read.tr16.b64 %sh : !llvm.ptr<3> -> vector<4xbf16>""", "gfx942",
        "the emulator does not execute 'rocdl.ds.read.tr16.b64': gfx942 has no transposed LDS reads")
refused("""
    %v = rocdl.ds.read.tr16.b64 %sh : !llvm.ptr<3> -> vector<4xbf16>""", "gfx1250",
        "the emulator does not execute 'rocdl.ds.read.tr16.b64': gfx1250 has no transposed LDS reads of 8 bytes")
refused("""
    %v = rocdl.ds.load.tr16.b128 %sh : !llvm.ptr<3> -> vector<8xbf16>""", "gfx950",
        "the emulator does not execute 'rocdl.ds.load.tr16.b128': gfx950 has no transposed LDS reads of 16 bytes")
