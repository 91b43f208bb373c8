# RUN: %python %s %S %bin/kvbuf-emu-test %t.mlir
"""A tile of 32 rows of 64 bytes, copied into LDS and read as fragments of a
matrix product, with the 16-byte pieces of a row swizzled by the row: on both
sides, on one side only, and on none.

The copy writes LDS in the order of the lanes, so that its swizzle is in the
places that it reads from.
"""
import json
import sys

sys.path.insert(0, sys.argv[1] + "/Inputs")
from amd_wave import Wave, split, store_words

wave = Wave(sys.argv[2], sys.argv[3], [])


def swizzled(row, chunk, name, on):
    """%<name> = chunk, or with the row's bits 2 and 3 folded in."""
    if not on:
        return f"\n    %{name} = llvm.or {chunk}, %c0 : i32"
    return f"""
    %{name}_r = llvm.lshr {row}, %c2 : i32
    %{name}_x = llvm.and %{name}_r, %c3 : i32
    %{name} = llvm.xor {chunk}, %{name}_x : i32"""


def run(source, read):
    body = "".join(f"\n    %c{n} = llvm.mlir.constant({n} : i32) : i32" for n in (0, 2, 3, 4, 5, 16, 31, 64, 1024))
    body += """
    %stride = llvm.mlir.constant(0 : i16) : i16
    %bytes = llvm.mlir.constant(2048 : i64) : i64
    %flags = llvm.mlir.constant(159744 : i32) : i32
    %b = rocdl.make.buffer.rsrc %p0, %stride, %bytes, %flags : !llvm.ptr<1> to !llvm.ptr<8>
    %row = llvm.lshr %t, %c2 : i32
    %chunk = llvm.and %t, %c3 : i32""" + swizzled("%row", "%chunk", "from", source) + """
    %r64 = llvm.mul %row, %c64 : i32
    %f16 = llvm.mul %from, %c16 : i32
    %at = llvm.add %r64, %f16 : i32
    %half = llvm.getelementptr %sh[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    rocdl.raw.ptr.buffer.load.lds %b, %sh, %c16, %at, %c0, %c0, %c0
    rocdl.raw.ptr.buffer.load.lds %b, %half, %c16, %at, %c1024, %c0, %c0
    rocdl.s.waitcnt 3952
    %m = llvm.and %t, %c31 : i32
    %k = llvm.lshr %t, %c5 : i32""" + swizzled("%m", "%k", "to", read) + """
    %m64 = llvm.mul %m, %c64 : i32
    %t16 = llvm.mul %to, %c16 : i32
    %place = llvm.add %m64, %t16 : i32
    %q = llvm.getelementptr %sh[%place] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %v = llvm.load %q {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>"""
    more, values = split("w", "%v", 4, "vector<4xi32>")
    done = wave.start(body + more + store_words(1, values), ["buf:i32:512:iota", "buf:i32:256:uninit"], more=["--report"])
    assert done.returncode == 0, done.stderr
    numbers, report = done.stdout.split("{", 1)
    kernel = json.loads("{" + report)["kernels"][0]
    conflicts = {line["op"]: line["bank_conflicts"] for line in kernel["memory"] if "bank_conflicts" in line}
    return [int(x) for x in numbers.split(":")[1].split()], conflicts


# Lane l has row l % 32 and the 4 words of its piece l // 32.
want = [16 * (lane % 32) + 4 * (lane // 32) + r for r in range(4) for lane in range(64)]
good, conflicts = run(True, True)
assert good == want and set(conflicts.values()) == {0}, (good, conflicts)
for source, read in ((True, False), (False, True)):
    wrong, _ = run(source, read)
    assert wrong != want
plain, conflicts = run(False, False)
# 16 passes instead of 4.
assert plain == want and conflicts == {"llvm.load": 12, "rocdl.raw.ptr.buffer.load.lds": 0}, conflicts
