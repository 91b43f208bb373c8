# RUN: %python %s %S %bin/kvbuf-emu-test %t.mlir
"""Tensor copies of gfx1250: what the engine moves, and what waits for it.

The descriptor is put together from its fields as MLIR's lowering of
amdgpu.make_dma_descriptor does; what must arrive is computed by loops over the box.
"""
import sys

sys.path.insert(0, sys.argv[1] + "/Inputs")
from amd_wave import Wave, load_words, store_words

wave = Wave(sys.argv[2], sys.argv[3], [])
OWED = "read of bytes an asynchronous copy still owes"
WAIT = "\n    rocdl.s.wait.tensorcnt "
MEET = "\n    rocdl.s.wait.dscnt 0\n    rocdl.s.barrier"


def words(name, values):
    """%<name> = the numbers, or values of i32, as a vector."""
    vector = f"vector<{len(values)}xi32>"
    text = f"\n    %{name}_0 = llvm.mlir.undef : {vector}"
    for i, value in enumerate(values):
        if isinstance(value, int):
            text += f"\n    %{name}_v{i} = llvm.mlir.constant({value} : i32) : i32"
            value = f"%{name}_v{i}"
        text += f"""
    %{name}_k{i} = llvm.mlir.constant({i} : i32) : i32
    %{name}_{i + 1} = llvm.insertelement {value}, %{name}_{i}[%{name}_k{i} : i32] : {vector}"""
    return text + f"\n    %{name} = llvm.bitcast %{name}_{len(values)} : {vector} to {vector}"


def copy(name, box, sizes, strides, at, asked="%first"):
    """A copy of 16-bit elements from %from to byte `at` of LDS."""
    (columns, rows, blocks), (width, height, depth), (line, block) = box, sizes, strides
    signed = lambda n: n - 2 ** 32 if n >= 2 ** 31 else n
    what = [1 << 16, width << 16, width >> 16 | height << 16, height >> 16 | columns << 16,
            blocks << 16 | rows, line, (line >> 32) | block << 16, block >> 16]
    return f"""
    %{name}_c = llvm.mlir.constant({at} : i32) : i32
    %{name}_at = llvm.add %lds, %{name}_c : i32""" + words(name + "a", [asked, f"%{name}_at", "%low", "%top"]) + words(
        name + "b", [signed(w & 0xFFFFFFFF) for w in what]) + words(name + "c", [depth, 0, 0, 0]) + words(
        name + "d", [0] * 4) + f"""
    rocdl.tensor.load.to.lds %{name}a, %{name}b, %{name}c, %{name}d cachepolicy 0 : vector<4xi32>, vector<8xi32>"""


BASE = 24
SETUP = f"""
    %base = llvm.getelementptr %p0[{BASE}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i16
    %address = llvm.ptrtoint %base : !llvm.ptr<1> to i64
    %c32 = llvm.mlir.constant(32 : i64) : i64
    %low = llvm.trunc %address : i64 to i32
    %shifted = llvm.lshr %address, %c32 : i64
    %high = llvm.trunc %shifted : i64 to i32
    %mask = llvm.mlir.constant(33554431 : i32) : i32
    %kind = llvm.mlir.constant(-2147483648 : i32) : i32
    %masked = llvm.and %high, %mask : i32
    %top = llvm.or %masked, %kind : i32
    %lds = llvm.ptrtoint %sh : !llvm.ptr<3> to i32
    %n32 = llvm.mlir.constant(32 : i32) : i32
    %is = llvm.icmp "ult" %t, %n32 : i32
    %first = llvm.zext %is : i1 to i32"""
#: Words t, t + 64, ... of LDS, and where they go.
READ = "".join(f"""
    %r{i} = llvm.getelementptr %sh[{512 + 256 * i}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %q{i} = llvm.getelementptr %r{i}[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %x{i} = llvm.load %q{i} : !llvm.ptr<3> -> i32""" for i in range(2)) + store_words(1, ["%x0", "%x1"])
ARGS = ["buf:i16:2048:iota", "buf:i32:128:uninit"]


def moved(box, sizes, strides):
    """The elements that arrive, two to a word."""
    columns, rows, blocks = box
    elements = []
    for z in range(blocks):
        for y in range(rows):
            for x in range(columns):
                inside = x < sizes[0] and y < sizes[1] and z < sizes[2]
                elements.append(BASE + x + y * strides[0] + z * strides[1] if inside else 0)
    return [low + 65536 * high for low, high in zip(elements[::2], elements[1::2])]


for box, sizes, strides in (
        ((16, 8, 2), (16, 8, 2), (104, 16)),   # all of it
        ((16, 8, 2), (16, 5, 2), (104, 16)),   # rows past the tensor's
        ((16, 8, 2), (16, 0, 2), (104, 16)),   # nothing there
        ((16, 8, 2), (11, 8, 1), (96, 1000)),  # columns, and a block
        ((8, 4, 8), (8, 3, 8), (200, 8))):
    body = SETUP + copy("m", box, sizes, strides, 512) + WAIT + "0" + MEET + READ
    got = wave.run(body, ARGS, "gfx1250")
    assert got == moved(box, sizes, strides), (box, sizes, strides, got)


def check(body, message):
    done = wave.start(SETUP + body, ARGS, "gfx1250")
    if message:
        assert done.returncode == 1 and message in done.stderr, (message, done.stderr)
    else:
        assert done.returncode == 0, done.stderr


ONE = copy("m", (16, 8, 2), (16, 8, 2), (104, 16), 512)
OTHER = copy("n", (16, 8, 2), (16, 8, 2), (104, 16), 1024)
# Loads are counted apart, and the younger of two may stay on its way; one that is not
# asked for counts.
check(ONE + "\n    rocdl.s.wait.loadcnt 0" + MEET + READ + WAIT + "0", OWED)
check(ONE + OTHER + WAIT + "1" + MEET + READ + WAIT + "0", None)
check(OTHER + ONE + WAIT + "1" + MEET + READ + WAIT + "0", OWED)
check(ONE + OTHER.replace("%first", "%mask_no") .replace(
    "\n    %n_c =", "\n    %mask_no = llvm.mlir.constant(0 : i32) : i32\n    %n_c =", 1) + WAIT + "1" + MEET + READ + WAIT + "0", None)
check(ONE, "the wave ends while this copy into LDS may be on its way; it needs a wait for tensorcnt(0) before its end")
check(copy("m", (16, 8, 2), (16, 8, 2), (104, 16), 512, asked="%t") + WAIT + "0",
      "the lanes have different descriptors, of which a tensor copy takes one")
check(copy("m", (12, 8, 2), (12, 8, 2), (104, 16), 512) + WAIT + "0",
      "the descriptor of a tensor copy is not of a box of up to three dimensions")
