# RUN: %python %s %bin/kvbuf-emu-test %t.mlir --options='{"lanes":false}'
# RUN: %python %s %bin/kvbuf-emu-test %t.mlir --options='{"portable":true,"lanes":false}'
"""ldmatrix, stmatrix and mma.sync against the fragment layouts of the PTX ISA.

The expected values come from the formulas in the ISA's sections on matrix
fragments, written down again here; numbers are small integers, so that every
sum is exact in any order.
"""
import re
import subprocess
import sys

tool, path, *options = sys.argv[1:]


def run(body, args, shared=0):
    """Runs a kernel on one warp and returns its last buffer, of i32 or f32."""
    text = "module {\n" + body + "\n}\n"
    with open(path, "w") as f:
        f.write(text)
    command = [tool, path, *options, "--block=32", f"--shared={shared}"]
    command += [f"--arg={a}" for a in args] + [f"--print={len(args) - 1}"]
    out = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(x) for x in out.stdout.split(":")[1].split()]


def header(pointers):
    params = ", ".join(f"%p{i}: !llvm.ptr<1>" for i in range(pointers))
    return f"""
  llvm.mlir.global external @dyn() {{addr_space = 3 : i32, alignment = 16 : i64}} : !llvm.array<0 x i8>
  llvm.func @kernel({params}) attributes {{nvvm.kernel}} {{
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %sh = llvm.mlir.addressof @dyn : !llvm.ptr<3>"""


def load_words(pointer, count):
    """%w0.. = words t, t + 32, ... of a buffer."""
    lines = []
    for i in range(count):
        lines.append(f"""
    %c{pointer}_{i} = llvm.mlir.constant({32 * i} : i32) : i32
    %i{pointer}_{i} = llvm.add %t, %c{pointer}_{i} : i32
    %a{pointer}_{i} = llvm.getelementptr %p{pointer}[%i{pointer}_{i}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %w{pointer}_{i} = llvm.load %a{pointer}_{i} : !llvm.ptr<1> -> i32""")
    return "".join(lines)


def store_words(pointer, values, type):
    lines = []
    for i, v in enumerate(values):
        lines.append(f"""
    %sc{i} = llvm.mlir.constant({32 * i} : i32) : i32
    %si{i} = llvm.add %t, %sc{i} : i32
    %sa{i} = llvm.getelementptr %p{pointer}[%si{i}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store {v}, %sa{i} : {type}, !llvm.ptr<1>""")
    return "".join(lines)


SHAPE = "shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>"


def ldmatrix(count, transposed):
    """Row r of matrix m is at byte 16 * ((8 m + r) * 3 % 32): scattered."""
    layout = "col" if transposed else "row"
    result = "i32" if count == 1 else "!llvm.struct<(" + ", ".join(["i32"] * count) + ")>"
    stage = "".join(f"""
    %f{i} = llvm.getelementptr %sh[{4 * 32 * i}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %q{i} = llvm.getelementptr %f{i}[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %w0_{i}, %q{i} : i32, !llvm.ptr<3>""" for i in range(4))
    extract = "".join(f"\n    %r{i} = llvm.extractvalue %m[{i}] : {result}"
                      for i in range(count)) if count > 1 else ""
    values = [f"%r{i}" for i in range(count)] if count > 1 else ["%m"]
    body = header(2) + load_words(0, 4) + stage + f"""
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %c31 = llvm.mlir.constant(31 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %x = llvm.mul %t, %c3 : i32
    %y = llvm.and %x, %c31 : i32
    %z = llvm.mul %y, %c16 : i32
    %at = llvm.getelementptr %sh[%z] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %m = nvvm.ldmatrix %at {{num = {count} : i32, layout = #nvvm.mma_layout<{layout}>, {SHAPE}}} : (!llvm.ptr<3>) -> {result}""" \
        + extract + store_words(1, values, "i32") + "\n    llvm.return\n  }"
    got = run(body, ["buf:i16:256:iota", f"buf:i32:{32 * count}:uninit"], shared=512)
    for m in range(count):
        for lane in range(32):
            def element(row, column):
                return ((8 * m + row) * 3 % 32) * 8 + column
            if transposed:
                lo, hi = element(2 * (lane % 4), lane // 4), element(2 * (lane % 4) + 1, lane // 4)
            else:
                lo, hi = element(lane // 4, 2 * (lane % 4)), element(lane // 4, 2 * (lane % 4) + 1)
            want = lo + 65536 * hi
            assert got[32 * m + lane] == want, (count, transposed, m, lane, got[32 * m + lane], want)


def stmatrix(count, transposed):
    """What stmatrix puts down, read back linearly."""
    layout = "col" if transposed else "row"
    words = ", ".join(f"%w0_{i}" for i in range(count))
    types = ", ".join(["!llvm.ptr<3>"] + ["i32"] * count)
    back = "".join(f"""
    %f{i} = llvm.getelementptr %sh[{128 * i}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %q{i} = llvm.getelementptr %f{i}[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %r{i} = llvm.load %q{i} : !llvm.ptr<3> -> i32""" for i in range(count))
    body = header(2) + load_words(0, count) + f"""
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %z = llvm.mul %t, %c16 : i32
    %at = llvm.getelementptr %sh[%z] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    nvvm.stmatrix %at, {words} {{layout = #nvvm.mma_layout<{layout}>, {SHAPE}}} : {types}""" \
        + back + store_words(1, [f"%r{i}" for i in range(count)], "i32") + "\n    llvm.return\n  }"
    got = run(body, [f"buf:i16:{64 * count}:iota", f"buf:i32:{32 * count}:uninit"], shared=512)
    for m in range(count):
        memory = {}
        for lane in range(32):
            for half in range(2):
                value = 64 * m + 2 * lane + half
                row, column = lane // 4, 2 * (lane % 4) + half
                memory[(column, row) if transposed else (row, column)] = value
        for word in range(32):
            row, column = word // 4, 2 * (word % 4)
            want = memory[row, column] + 65536 * memory[row, column + 1]
            assert got[32 * m + word] == want, (count, transposed, m, word)


def lane_transpose():
    """movmatrix: lane 4 g + t gets the elements 2 t and 2 t + 1 of column g."""
    body = header(2) + load_words(0, 1) + """
    %r = kvbuffer.lane_transpose %w0_0""" \
        + store_words(1, ["%r"], "i32") + "\n    llvm.return\n  }"
    got = run(body, ["buf:i16:64:iota", "buf:i32:32:uninit"])
    for lane in range(32):
        g, t = lane // 4, lane % 4
        want = 8 * 2 * t + g + 65536 * (8 * (2 * t + 1) + g)
        assert got[lane] == want, (lane, got[lane], want)


# Small integers whose products do not repeat in a pattern.
def a_at(i, k):
    return (7 * i + 3 * k) % 11 - 5


def b_at(k, n):
    return (5 * k + 2 * n + k * n) % 13 - 6


def c_at(i, n):
    return 4 * i - 9 * n


def fragment_coordinates(operand, register, lane, half):
    """PTX ISA, "Matrix Fragments for mma.m16n8k8" and "for mma.m16n8k16"."""
    group, thread = lane >> 2, lane % 4
    if operand == "A":  # (row, k)
        return group + 8 * (register % 2), 2 * thread + half + 8 * (register // 2)
    if operand == "B":  # (k, column)
        return 2 * thread + half + 8 * register, group
    return group + 8 * (register // 2), 2 * thread + register % 2  # C and D


def mma(dtype, k):
    regs_a, regs_b = k // 4, k // 8
    packed = "vector<2xf16>" if dtype == "f16" else "i32"

    def operands(pointer, count):
        text, names = load_words(pointer, count), []
        for i in range(count):
            name = f"%w{pointer}_{i}"
            if packed != "i32":
                text += f"\n    %v{pointer}_{i} = llvm.bitcast {name} : i32 to {packed}"
                name = f"%v{pointer}_{i}"
            names.append(name)
        return text, ", ".join(names)

    ta, na = operands(0, regs_a)
    tb, nb = operands(1, regs_b)
    tc = load_words(2, 4)
    nc = []
    for i in range(4):
        tc += f"\n    %v2_{i} = llvm.bitcast %w2_{i} : i32 to f32"
        nc.append(f"%v2_{i}")
    d = "!llvm.struct<(f32, f32, f32, f32)>"
    ptx = f", multiplicandAPtxType = #nvvm.mma_type<{dtype}>, multiplicandBPtxType = #nvvm.mma_type<{dtype}>"
    body = header(4) + ta + tb + tc + f"""
    %d = nvvm.mma.sync A[{na}] B[{nb}] C[{", ".join(nc)}] {{layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = {k}>{ptx}}} : ({packed}, {packed}, f32) -> {d}""" \
        + "".join(f"\n    %d{i} = llvm.extractvalue %d[{i}] : {d}" for i in range(4)) \
        + store_words(3, [f"%d{i}" for i in range(4)], "f32") + "\n    llvm.return\n  }"

    def values(operand, registers, halves, at):
        return [at(*fragment_coordinates(operand, r, lane, h))
                for r in range(registers) for lane in range(32) for h in range(halves)]

    def listed(type, numbers):
        return f"buf:{type}:{len(numbers)}:list=" + "/".join(map(str, numbers))

    got = run(body, [listed(dtype, values("A", regs_a, 2, a_at)),
                     listed(dtype, values("B", regs_b, 2, b_at)),
                     listed("f32", values("C", 4, 1, c_at)), "buf:f32:128:uninit"])
    for r in range(4):
        for lane in range(32):
            i, n = fragment_coordinates("D", r, lane, 0)
            want = c_at(i, n) + sum(a_at(i, x) * b_at(x, n) for x in range(k))
            assert got[32 * r + lane] == want, (dtype, k, r, lane, got[32 * r + lane], want)


for count in (1, 2, 4):
    for transposed in (False, True):
        ldmatrix(count, transposed)
        stmatrix(count, transposed)
for dtype in ("f16", "bf16"):
    for k in (8, 16):
        mma(dtype, k)
