# RUN: rm -rf %t && mkdir %t && %python %s %bin/kvbuf-emulate %t
"""Warps of a block that tell each other by words of shared memory.

Warp 0 stores to shared memory and counts; warp 1 polls the count, and reads what was
stored. Right with a release before and an acquire after, by fences or by the operations
themselves; with one of them dropped, or of too narrow a scope, it is a race; and where
nobody counts, nothing goes on.
"""

import pathlib
import subprocess
import sys

TOOL, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])

VENDORS = {
    "nvidia": dict(
        triple="nvptx64-nvidia-cuda", lanes=32, kernel="ptx_kernel", space=3,
        attributes="", block='syncscope("block") ', narrow=None,
        declare="declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
                "declare void @llvm.nvvm.barrier0()",
        tid="call i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
        barrier="call void @llvm.nvvm.barrier0()"),
    "amd": dict(
        triple="amdgcn-amd-amdhsa", lanes=64, kernel="amdgpu_kernel", space=3,
        attributes='"target-cpu"="gfx942" ', block='syncscope("workgroup") ',
        narrow='syncscope("wavefront") ',
        declare="declare i32 @llvm.amdgcn.workitem.id.x()\n"
                "declare void @llvm.amdgcn.s.barrier()\n"
                "declare void @llvm.amdgcn.s.waitcnt(i32)",
        tid="call i32 @llvm.amdgcn.workitem.id.x()",
        # No LDS operation is on its way across the barrier.
        barrier="call void @llvm.amdgcn.s.waitcnt(i32 127)\n"
                "  call void @llvm.amdgcn.s.barrier()"),
}

TEXT = """target triple = "{triple}"
@count = internal addrspace(3) global i32 undef
@data = internal addrspace(3) global [64 x i32] undef
{declare}

define {kernel} void @k(ptr addrspace(1) %out) {attributes}{{
  %t = {tid}
  %lane = and i32 %t, {last}
  %place = getelementptr i32, ptr addrspace(3) @data, i32 %lane
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %lane
  %one = icmp eq i32 %t, 0
  br i1 %one, label %init, label %start
init:
  store i32 0, ptr addrspace(3) @count
  br label %start
start:
  {barrier}
  %first = icmp ult i32 %t, {lanes}
  br i1 %first, label %fill, label %poll
fill:
  %twice = add i32 %lane, %lane
  store i32 %twice, ptr addrspace(3) %place
  {sync}{release}
  br i1 %one, label %tell, label %end
tell:
  {count}
  br label %end
poll:
  %n = load atomic i32, ptr addrspace(3) @count {load}, align 4
  {acquire}
  %there = icmp uge i32 %n, 1
  br i1 %there, label %read, label %poll
read:
  %x = load i32, ptr addrspace(3) %place
  store i32 %x, ptr addrspace(1) %to
  br label %end
end:
  ret void
}}
"""


def run(vendor, message=None, **changes):
    v = VENDORS[vendor]
    block = v["block"]
    parts = dict(
        release=f"fence {block}release", acquire=f"fence {block}acquire",
        count=f"%b = atomicrmw add ptr addrspace(3) @count, i32 1 {block}monotonic",
        load=f"{block}monotonic", sync="", last=v["lanes"] - 1) | changes
    if vendor == "nvidia":
        # One lane counts for all: they meet before it.
        parts["sync"] = "call void @llvm.nvvm.bar.warp.sync(i32 -1)\n  "
        v = v | dict(declare=v["declare"] + "\ndeclare void @llvm.nvvm.bar.warp.sync(i32)")
    path = FOLDER / "k.ll"
    path.write_text(TEXT.format(**(v | parts)))
    subprocess.run(["llvm-as", path, "-o", FOLDER / "k.bc"], check=True)
    done = subprocess.run(
        [TOOL, FOLDER / "k.bc", f"--block={2 * v['lanes']}", f"i32[{v['lanes']}]=0",
         "--print=0"], capture_output=True, text=True)
    said = done.stdout + done.stderr
    if message:
        assert done.returncode and message in said, (vendor, changes, said)
    else:
        assert not done.returncode and "0 2 4 6 8 10 12" in done.stdout, (vendor, said)


RACE = "shared-memory race: read of"
for vendor, v in VENDORS.items():
    block = v["block"]
    count = "%b = atomicrmw add ptr addrspace(3) @count, i32 1 "
    run(vendor)
    run(vendor, release="", count=count + block + "release")
    run(vendor, acquire="", load=block + "acquire")
    run(vendor, RACE, release="")
    run(vendor, RACE, acquire="")
    # A store that is atomic tells, too.
    run(vendor, count=f"store atomic i32 1, ptr addrspace(3) @count {block}monotonic, align 4")
    run(vendor, "shared-memory race",
        count="store i32 1, ptr addrspace(3) @count, align 4")
    # What goes on with the count of another goes on with what it has released.
    run(vendor, count=f"{count}{block}monotonic\n  %c = atomicrmw add ptr addrspace(3) "
                      f"@count, i32 1 {block}monotonic")
    run(vendor, "waits for shared memory to change, and nothing can go on", count="")
    if v["narrow"]:
        run(vendor, RACE, release=f"fence {v['narrow']}release")
        run(vendor, RACE, acquire=f"fence {v['narrow']}acquire")
