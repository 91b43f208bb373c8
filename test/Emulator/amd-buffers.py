# RUN: %python %s %S %bin/kvbuf-emu-test %t.mlir
"""Raw buffers and copies into LDS: what is in range, where bytes go, and what
is refused or reported."""
import sys

sys.path.insert(0, sys.argv[1] + "/Inputs")
from amd_wave import Wave, join, load_words, split, store_words

wave = Wave(sys.argv[2], sys.argv[3], sys.argv[4:])
IN = "buf:i32:1024:iota:in"
names = 0


def constant(value, type="i32"):
    global names
    names += 1
    return f"%k{names}", f"\n    %k{names} = llvm.mlir.constant({value} : {type}) : {type}"


def buffer(pointer, length, name="b"):
    stride, a = constant(0, "i16")
    records, b = constant(length, "i64")
    flags, c = constant(0x27000)
    return a + b + c + f"""
    %{name} = rocdl.make.buffer.rsrc {pointer}, {stride}, {records}, {flags} : !llvm.ptr<1> to !llvm.ptr<8>"""


def scaled(by):
    c, text = constant(by)
    names_at = f"%at{by}"
    return names_at, text + f"\n    {names_at} = llvm.mul %t, {c} : i32"


def load(length, width, wave_offset=0, words=1, lane_bytes=4):
    """What the lanes load from a buffer of `length` bytes, `lane_bytes` apart."""
    at, a = scaled(lane_bytes)
    soffset, b = constant(wave_offset)
    z, c = constant(0)
    text = buffer("%p0", length) + a + b + c + f"""
    %x = rocdl.raw.ptr.buffer.load %b, {at}, {soffset}, {z} : {width}"""
    more, values = split("v", "%x", words, width) if words > 1 else ("", ["%x"])
    got = wave.run(text + more + store_words(1, values), [IN, f"buf:i32:{64 * words}:uninit"])
    return [[got[64 * r + lane] for r in range(words)] for lane in range(64)]


def memory(offset, length):
    """The dword at a byte offset, zero where the buffer ends before it does."""
    return offset // 4 if offset + 4 <= length else 0


for length in (256, 200, 198, 0):
    for wave_offset in (0, 100, 4000):
        got = load(length, "i32", wave_offset)
        assert got == [[memory(4 * lane + wave_offset, length)] for lane in range(64)], (length, wave_offset, got)
# 16 bytes a lane: the dwords in front of the end are still read.
for length in (1024, 16 * 20 + 8, 16 * 20 + 15):
    got = load(length, "vector<4xi32>", 0, 4, 16)
    assert got == [[memory(16 * lane + 4 * r, length) for r in range(4)] for lane in range(64)], (length, got)
got = load(500, "vector<3xi32>", 4, 3, 12)
assert got == [[memory(12 * lane + 4 * r + 4, 500) for r in range(3)] for lane in range(64)], got
# An offset of -1 is beyond every end.
c, text = constant(-1)
z, zt = constant(0)
got = wave.run(buffer("%p0", 4096) + text + zt + f"""
    %x = rocdl.raw.ptr.buffer.load %b, {c}, {z}, {z} : i32""" + store_words(1, ["%x"]), [IN, "buf:i32:64:uninit"])
assert got == [0] * 64

# Stores behind the end are dropped, also those of a part of a lane.
at, a = scaled(16)
z, zt = constant(0)
got = wave.run(load_words(0, 4) + join("x", [f"%w0_{i}" for i in range(4)], "vector<4xi32>") +
               buffer("%p1", 16 * 33 + 4) + a + zt + f"""
    rocdl.raw.ptr.buffer.store %x, %b, {at}, {z}, {z} : vector<4xi32>""", [IN, "buf:i32:256:const=-1"])
assert got == [64 * (i % 4) + i // 4 if 4 * i + 4 <= 16 * 33 + 4 else -1 for i in range(256)], got

# Pointers into a buffer.
at, a = scaled(8)
z, zt = constant(0)
got = wave.run(buffer("%p0", 300) + buffer("%p1", 256, "o") + a + zt + f"""
    %f = llvm.addrspacecast %b : !llvm.ptr<8> to !llvm.ptr<7>
    %g = llvm.getelementptr %f[{at}] : (!llvm.ptr<7>, i32) -> !llvm.ptr<7>, i8
    %h = llvm.getelementptr %g[4] : (!llvm.ptr<7>) -> !llvm.ptr<7>, i8
    %x = llvm.load %h {{alignment = 4 : i64}} : !llvm.ptr<7> -> i32
    %of = llvm.addrspacecast %o : !llvm.ptr<8> to !llvm.ptr<7>
    %og = llvm.getelementptr %of[%t] : (!llvm.ptr<7>, i32) -> !llvm.ptr<7>, i32
    llvm.store %x, %og {{alignment = 4 : i64}} : i32, !llvm.ptr<7>""", [IN, "buf:i32:80:const=-1"])
assert got == [memory(8 * lane + 4, 300) for lane in range(64)] + [-1] * 16, got


def copied(copy, chip="gfx950", length=4096, words=12, fill=True, branch=""):
    """The first words of LDS, filled with -1, after a copy by one wave."""
    minus, text = constant(-1)
    text += buffer("%p0", length)
    for i in range(words if fill else 0):
        text += f"""
    %f{i} = llvm.getelementptr %sh[{256 * i}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %q{i} = llvm.getelementptr %f{i}[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store {minus}, %q{i} : i32, !llvm.ptr<3>"""
    text += copy + "\n    rocdl.s.waitcnt 3952"
    for i in range(words):
        text += f"\n    %x{i} = llvm.load %q{i} : !llvm.ptr<3> -> i32"
    return wave.run(text + store_words(1, [f"%x{i}" for i in range(words)]), [IN, f"buf:i32:{64 * words}:uninit"], chip)


def expected(words, placed):
    want = [-1] * (64 * words)
    for place, value in placed.items():
        want[place // 4] = value
    return want


def raw_copy(bytes, imm, lane_bytes, wave_offset=0, lds=0):
    at, a = scaled(lane_bytes)
    size, b = constant(bytes)
    s, c = constant(wave_offset)
    i, d = constant(imm)
    z, e = constant(0)
    return a + b + c + d + e + f"""
    %dst = llvm.getelementptr %sh[{lds}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    rocdl.raw.ptr.buffer.load.lds %b, %dst, {size}, {at}, {s}, {i}, {z}"""


# The offset is added on both sides; the lanes' bytes lie one behind the other,
# wherever they come from; what is out of range writes zeros.
for bytes, chips in ((4, ("gfx942", "gfx950")), (12, ("gfx950",)), (16, ("gfx950",))):
    for chip in chips:
        for length in (4096, 700):
            got = copied(raw_copy(bytes, 32, 20, 64, 48), chip, length)
            want = {48 + 32 + bytes * lane + k: memory(20 * lane + 64 + 32 + k, length)
                    for lane in range(64) for k in range(0, bytes, 4)}
            assert got == expected(12, want), (bytes, chip, length, got)

# A part of the wave: the lanes keep their places.
odd = "\n    %c1 = llvm.mlir.constant(1 : i32) : i32\n    %odd = llvm.and %t, %c1 : i32\n    %p = llvm.trunc %odd : i32 to i1"
got = copied(odd + "\n    llvm.cond_br %p, ^in, ^out\n  ^in:" + raw_copy(4, 0, 8) + "\n    llvm.br ^out\n  ^out:")
assert got == expected(12, {4 * lane: 2 * lane for lane in range(1, 64, 2)}), got

# The same from global memory, and through a pointer into a buffer.
at, a = scaled(8)
source = a + f"\n    %src = llvm.getelementptr %p0[{at}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8"
for form in ("rocdl.global.load.lds %src, %sh, 16, 32, 0", "rocdl.load.to.lds %src, %sh, 16, 32, 0 : !llvm.ptr<1>"):
    got = copied(source + "\n    " + form)
    assert got == expected(12, {32 + 16 * l + k: (8 * l + 32 + k) // 4 for l in range(64) for k in (0, 4, 8, 12)}), got
got = copied(a + f"""
    %f = llvm.addrspacecast %b : !llvm.ptr<8> to !llvm.ptr<7>
    %g = llvm.getelementptr %f[{at}] : (!llvm.ptr<7>, i32) -> !llvm.ptr<7>, i8
    rocdl.load.to.lds %g, %sh, 4, 0, 0 : !llvm.ptr<7>""", length=260)
assert got == expected(12, {4 * l: memory(8 * l, 260) for l in range(64)}), got

# Atomics: the lanes take turns, each gets its own ticket.
one, o = constant(1)
got = wave.run(o + f"""
    %x = llvm.atomicrmw add %p0, {one} syncscope("agent") monotonic : !llvm.ptr<1>, i32""" + store_words(1, ["%x"]),
               ["buf:i32:1:const=7", "buf:i32:64:uninit"])
assert sorted(got) == list(range(7, 71)), got


def reported(body, message, args=(IN, "buf:i32:64:uninit"), chip="gfx950", status=1):
    done = wave.start(body, args, chip)
    assert done.returncode == status and message in done.stderr, (message, done.stderr)


# In the buffer's range, but behind the memory that there is.
at, a = scaled(64)
z, zt = constant(0)
reported(buffer("%p0", 1 << 20) + a + zt + f"""
    %wide = llvm.mul {at}, {at} : i32
    %x = rocdl.raw.ptr.buffer.load %b, %wide, {z}, {z} : i32""" + store_words(1, ["%x"]),
         "'rocdl.raw.ptr.buffer.load' by thread 1 (lane 1 of warp 0, block 0,0,0): out of bounds: reads 4 bytes at "
         "offset 4096 of buffer 'in' (4096 bytes)")
reported(buffer("%p0", 1 << 20) + raw_copy(16, 0, 4096),
         "'rocdl.raw.ptr.buffer.load.lds' by thread 1 (lane 1 of warp 0, block 0,0,0): out of bounds: reads 16 bytes "
         "at offset 4096 of buffer 'in' (4096 bytes)")
reported(buffer("%p0", 4096) + raw_copy(16, 0, 16, 0, 8000),
         "'rocdl.raw.ptr.buffer.load.lds' by thread 12 (lane 12 of warp 0, block 0,0,0): out of bounds: writes 16 "
         "bytes at shared byte 0x2000; the block has 8192")
# One LDS address for the wave.
at, a = scaled(16)
size, s = constant(16)
z, zt = constant(0)
reported(buffer("%p0", 4096) + a + s + zt + f"""
    %mine = llvm.getelementptr %sh[{at}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    rocdl.raw.ptr.buffer.load.lds %b, %mine, {size}, {at}, {z}, {z}, {z}""",
         "'rocdl.raw.ptr.buffer.load.lds' by warp 0 (block 0,0,0): the lanes name different LDS addresses; the machine "
         "takes one for the wave and adds each lane's place")
reported(buffer("%p0", 4096) + a + s + zt + f"""
    rocdl.raw.ptr.buffer.load.lds %b, %sh, {size}, {z}, {at}, {z}, {z}""",
         "the lanes have different buffers or wave offsets, of which a copy into LDS takes one")

# What no chip or not this one has.
reported(buffer("%p0", 4096) + raw_copy(16, 0, 16),
         "error: the emulator does not execute 'rocdl.raw.ptr.buffer.load.lds': gfx942 copies no 16 bytes a lane into LDS",
         chip="gfx942", status=2)
reported(buffer("%p0", 4096) + raw_copy(8, 0, 16), "gfx950 copies no 8 bytes a lane into LDS", status=2)
reported(buffer("%p0", 4096) + raw_copy(16, 4096, 16), "an offset of 4096, which is not between 0 and 4095", status=2)
stride, s = constant(16, "i16")
records, n = constant(4096, "i64")
flags, f = constant(0x27000)
reported(s + n + f + f"""
    %b = rocdl.make.buffer.rsrc %p0, {stride}, {records}, {flags} : !llvm.ptr<1> to !llvm.ptr<8>""",
         "'rocdl.make.buffer.rsrc': a stride other than the constant 0", status=2)
reported("""
    nvvm.barrier0""", "the emulator does not execute 'nvvm.barrier0': in a kernel for AMD's GPUs", status=2)
reported("""
    rocdl.s.wait.asynccnt 0""", "the emulator does not execute 'rocdl.s.wait.asynccnt'", status=2)
reported("""
    llvm.call_intrinsic "llvm.amdgcn.s.ttracedata"(%t) : (i32) -> ()""",
         "the emulator does not execute 'llvm.call_intrinsic': intrinsic 'llvm.amdgcn.s.ttracedata'", status=2)
# Blocks and LDS as large as the chip allows.
done = wave.start("", ["buf:i32:1:zero"], "gfx942", ["--shared=57345"])
assert done.returncode == 2 and "a block needs 65537 bytes of shared memory; the machine has 65536" in done.stderr, done.stderr
assert wave.start("", ["buf:i32:1:zero"], "gfx950", ["--shared=155648"]).returncode == 0
