# RUN: %python %s %S %bin/kvbuf-emu-test %t.mlir
"""What vmcnt and lgkmcnt count, what waits for them, and what barriers do."""
import sys

sys.path.insert(0, sys.argv[1] + "/Inputs")
from amd_wave import Wave

wave = Wave(sys.argv[2], sys.argv[3], [])
OWED = "read of bytes an asynchronous copy still owes"


def waitcnt(vm=63, lgkm=15):
    """gfx9's encoding; 63 and 15 do not wait."""
    return f"\n    rocdl.s.waitcnt {vm & 15 | 7 << 4 | lgkm << 8 | vm >> 4 << 14}"


def run(body, message=None, waves=1):
    constants = "".join(f"\n    %c{n} = llvm.mlir.constant({n} : i32) : i32" for n in (0, 1, 4, 64, 1024))
    setup = constants + """
    %mine = llvm.getelementptr %sh[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %x = llvm.xor %t, %c64 : i32
    %other = llvm.getelementptr %sh[%x] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %g = llvm.getelementptr %p0[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %wide = llvm.getelementptr %p0[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<8xi32>
    %o = llvm.getelementptr %p1[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %w6 = llvm.mlir.constant(6 : i32) : i32
    %ww = llvm.lshr %t, %w6 : i32
    %wave = llvm.mul %ww, %c64 : i32
    %part = llvm.getelementptr %sh[%wave] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %stride = llvm.mlir.constant(0 : i16) : i16
    %bytes = llvm.mlir.constant(4096 : i64) : i64
    %flags = llvm.mlir.constant(159744 : i32) : i32
    %b = rocdl.make.buffer.rsrc %p0, %stride, %bytes, %flags : !llvm.ptr<1> to !llvm.ptr<8>"""
    done = wave.start(setup + body, ["buf:i32:1024:iota", "buf:i32:1024:zero"], waves=waves)
    if message is None:
        assert done.returncode == 0, (body, done.stderr)
    else:
        assert done.returncode == 1 and message in done.stderr, (body, message, done.stderr)


copy = "\n    rocdl.global.load.lds %g, %part, 4, 0, 0"
use = "\n    %r = llvm.load %mine : !llvm.ptr<3> -> i32\n    llvm.store %r, %o : i32, !llvm.ptr<1>"

# A copy lands when no more operations may be on their way than are younger
# than it: loads, stores, atomics and copies alike.
younger = {
    "": 0,
    "\n    %y = llvm.load %g : !llvm.ptr<1> -> i32": 1,
    "\n    llvm.store %c0, %o : i32, !llvm.ptr<1>": 1,
    "\n    %y = rocdl.raw.ptr.buffer.load %b, %c0, %c0, %c0 : vector<4xi32>": 1,
    "\n    %y = rocdl.raw.ptr.buffer.load %b, %c0, %c0, %c0 : vector<3xi32>": 1,
    "\n    rocdl.raw.ptr.buffer.store %c0, %b, %c1024, %c0, %c0 : i32": 1,
    "\n    %y = llvm.atomicrmw add %p1, %c1 monotonic : !llvm.ptr<1>, i32": 1,
    # LLVM loads at most 16 bytes at once.
    "\n    %y = llvm.load %wide {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xi32>": 2,
    "\n    %dst = llvm.getelementptr %part[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8"
    "\n    rocdl.global.load.lds %g, %dst, 4, 0, 0": 1,
    # Not counted: LDS.
    "\n    llvm.store %c0, %other : i32, !llvm.ptr<3>": 0,
}
end = waitcnt(vm=0)
for ops, count in younger.items():
    run(copy + ops + waitcnt(vm=count) + use + end)
    run(copy + ops + waitcnt(vm=count + 1) + use + end, OWED)
# More operations than fit the low field of the wait.
stores = "\n    llvm.store %c0, %o : i32, !llvm.ptr<1>" * 37
run(copy + stores + waitcnt(vm=37) + use + end)
run(copy + stores + waitcnt(vm=38) + use + end, OWED)
# The other counter is no wait, nor are the schedule's hints.
run(copy + waitcnt(lgkm=0) + use + end, OWED)
run(copy + """
    rocdl.sched.barrier 0
    rocdl.sched.group.barrier 8, 1, 0
    rocdl.s.setprio 1
    rocdl.iglp.opt 0
    rocdl.s.nop 0
    llvm.fence syncscope("wavefront") acq_rel""" + use + end, OWED)
# Fences wait, unless they are for the wave alone; so does the barrier that is
# made of them.
run(copy + '\n    llvm.fence syncscope("workgroup") release' + use)
run(copy + "\n    rocdl.barrier" + use)
run(copy + '\n    llvm.call_intrinsic "llvm.amdgcn.s.waitcnt"(%c0) : (i32) -> ()' + use)
run(copy, "the wave ends while this copy into LDS may be on its way")

# Two waves: a write is on its way at the barrier until it has been waited for.
write = "\n    llvm.store %t, %mine : i32, !llvm.ptr<3>"
read = "\n    %r = llvm.load %other : !llvm.ptr<3> -> i32\n    llvm.store %r, %o : i32, !llvm.ptr<1>"
barrier = "\n    rocdl.s.barrier"
run(write + waitcnt(lgkm=0) + barrier + read, waves=2)
run(write + "\n    gpu.barrier" + read, waves=2)
run(write + barrier + read, "with no lgkmcnt wait before the barrier that follows the write by warp", 2)
run(write + waitcnt(vm=0) + barrier + read, "with no lgkmcnt wait before the barrier that follows the write by warp", 2)
run(write + read, "shared-memory race", 2)
# In order: the younger one may stay on its way, the older one not.
second = "\n    %far = llvm.getelementptr %mine[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8"
second += "\n    llvm.store %t, %far : i32, !llvm.ptr<3>"
run(write + second + waitcnt(lgkm=1) + barrier + read, waves=2)
run(second + write + waitcnt(lgkm=1) + barrier + read, "with no lgkmcnt wait", 2)

# A read is complete where its value is used, also through a block argument,
# and so is what the wave did in LDS before it.
before = write + waitcnt(lgkm=0) + barrier + "\n    %v = llvm.load %other : !llvm.ptr<3> -> i32"
over = "\n    llvm.store %c1, %mine : i32, !llvm.ptr<3>"
add = "\n    %z = llvm.add %v, %c1 : i32"
run(before + barrier + over + add, "write of shared byte", 2)
run(before + barrier + over + add, "with no lgkmcnt wait before the barrier that follows the read by warp", 2)
run(before + add + barrier + over, waves=2)
run(before + "\n    llvm.br ^b(%v : i32)\n  ^b(%u: i32):" + add.replace("%v", "%u") + barrier + over, waves=2)
run(before + "\n    llvm.br ^b(%v : i32)\n  ^b(%u: i32):" + barrier + over + add.replace("%v", "%u"),
    "with no lgkmcnt wait", 2)
run(before + "\n    %q = rocdl.ds_bpermute %c4, %t : (i32, i32) -> i32\n    %z = llvm.add %q, %c1 : i32" + barrier + over,
    waves=2)
run(before + "\n    %q = rocdl.ds_bpermute %c4, %t : (i32, i32) -> i32" + barrier + over, "with no lgkmcnt wait", 2)

# A wave that has ended is not waited for.
run("""
    %early = llvm.icmp "ult" %t, %c64 : i32
    llvm.cond_br %early, ^end, ^on
  ^on:
    rocdl.s.barrier
    llvm.br ^end
  ^end:""", waves=2)
# But all lanes of a wave take part.
run("""
    %some = llvm.icmp "ult" %t, %c4 : i32
    llvm.cond_br %some, ^in, ^end
  ^in:
    rocdl.s.barrier
    llvm.br ^end
  ^end:""", "divergent barrier: 4 of the warp's 64 lanes execute it")
