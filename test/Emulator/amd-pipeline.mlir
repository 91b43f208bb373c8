// A two-stage pipeline of copies into LDS by two waves, whole and with one
// thing broken at a time. Lines keep their numbers: a line is emptied.
//
// DEFINE: %{emulate} = kvbuf-emu-test %t.mlir --block=128 --arg=buf:f32:2048:iota --arg=buf:f32:512:uninit --print=1:0:4 --print=1:508:4
//
// RUN: cp %s %t.mlir
// RUN: %{emulate} | FileCheck %s --check-prefix=GOOD
// RUN: %{emulate} --options='{"landing":"random","seed":3}' | FileCheck %s --check-prefix=GOOD
// RUN: %{emulate} --options='{"landing":"eager"}' | FileCheck %s --check-prefix=GOOD
//
// No wait, one too loose by one, and one for the other counter only.
// RUN: sed 's,^.*// WAIT.*$,,' %s > %t.mlir
// RUN: not %{emulate} 2>&1 | FileCheck %s --check-prefix=WAIT
// RUN: not %{emulate} --options='{"landing":"eager","seed":5}' 2>&1 | FileCheck %s --check-prefix=WAIT
// RUN: sed 's,3953 // WAIT,3954 // WAIT,' %s > %t.mlir
// RUN: not %{emulate} 2>&1 | FileCheck %s --check-prefix=WAIT
// RUN: sed 's,3953 // WAIT,49279 // WAIT,' %s > %t.mlir
// RUN: not %{emulate} 2>&1 | FileCheck %s --check-prefix=WAIT
//
// No barrier after the wait, or none before the slot is used again.
// RUN: sed 's,^.*// READY.*$,,' %s > %t.mlir
// RUN: not %{emulate} 2>&1 | FileCheck %s --check-prefix=READY
// RUN: sed 's,^.*// FREE.*$,,' %s > %t.mlir
// RUN: not %{emulate} 2>&1 | FileCheck %s --check-prefix=FREE
//
// The barrier does not wait for the wave's LDS reads. A fence does, and so does
// the use of a value, for which LLVM waits.
// RUN: sed 's,^.*// LGKM.*$,,' %s > %t.mlir
// RUN: not %{emulate} 2>&1 | FileCheck %s --check-prefix=LGKM
// RUN: sed 's,rocdl.s.waitcnt 49279 // LGKM,llvm.fence syncscope("workgroup") release //,' %s > %t.mlir
// RUN: %{emulate} | FileCheck %s --check-prefix=GOOD
// RUN: sed -e 's,^.*// LGKM.*$,,' -e 's,// EARLY ,,' -e 's,^.*// USE.*$,,' %s > %t.mlir
// RUN: %{emulate} | FileCheck %s --check-prefix=GOOD
//
// A copy that is on its way when the wave ends.
// RUN: sed 's,^.*// LAST.*$,,' %s > %t.mlir
// RUN: not %{emulate} 2>&1 | FileCheck %s --check-prefix=LAST
//
// Without the checks, a wait that is too loose still gives wrong numbers every
// time: late landing leaves the old bytes in place.
// RUN: sed 's,3953 // WAIT,3954 // WAIT,' %s > %t.mlir
// RUN: %{emulate} --options='{"races":false,"uninitialized":false,"landing_checks":false}' | FileCheck %s --check-prefix=WRONG

// Element j of thread t is the sum over the tiles i of 512 i + 4 (127 - t) + j:
// 4 (4 (127 - t) + j) + 512 * 6.
// GOOD: arg1: 5104 5108 5112 5116
// GOOD: arg1: 3072 3076 3080 3084

// WAIT: error: 'llvm.load' by thread {{.*}}: read of bytes an asynchronous copy still owes
// WAIT-NEXT: note: 'rocdl.raw.ptr.buffer.load.lds': the copy, by warp

// READY: error: 'llvm.load' by thread {{.*}}: shared-memory race: read of shared byte {{.*}} with no barrier after the write by warp
// READY-NEXT: note: 'rocdl.raw.ptr.buffer.load.lds': the write by warp

// FREE: error: 'rocdl.raw.ptr.buffer.load.lds' by thread {{.*}}: shared-memory race: write of shared byte {{.*}} with no barrier after the read by warp
// FREE-NEXT: note: 'llvm.load': the read by warp {{[01]}}, 'llvm.load'

// LGKM: error: 'rocdl.raw.ptr.buffer.load.lds' by thread {{.*}}: shared-memory race: write of shared byte {{.*}} with no lgkmcnt wait before the barrier that follows the read by warp
// LGKM-NEXT: note: 'llvm.load': the read by warp {{[01]}}, 'llvm.load'

// LAST: error: 'rocdl.raw.ptr.buffer.load.lds' by warp {{.*}}: the wave ends while this copy into LDS may be on its way; it needs a wait for vmcnt(0) before its end

// WRONG-NOT: 5104
// WRONG-NOT: 3072

module attributes {kvbuffer.target = "gfx950"} {
  llvm.mlir.global internal @tiles() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<1024 x f32>
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {rocdl.kernel} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c6 = llvm.mlir.constant(6 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %c127 = llvm.mlir.constant(127 : i32) : i32
    %c1024 = llvm.mlir.constant(1024 : i32) : i32
    %c2048 = llvm.mlir.constant(2048 : i32) : i32
    %stride = llvm.mlir.constant(0 : i16) : i16
    %bytes = llvm.mlir.constant(8192 : i64) : i64
    %flags = llvm.mlir.constant(159744 : i32) : i32
    %zero = llvm.mlir.constant(dense<0.0> : vector<4xf32>) : vector<4xf32>
    %tiles = llvm.mlir.addressof @tiles : !llvm.ptr<3>
    %buffer = rocdl.make.buffer.rsrc %in, %stride, %bytes, %flags : !llvm.ptr<1> to !llvm.ptr<8>
    %t = rocdl.workitem.id.x : i32
    %ww = llvm.lshr %t, %c6 : i32
    %wave = rocdl.readfirstlane %ww : i32
    %part = llvm.mul %wave, %c1024 : i32
    %from = llvm.mul %t, %c16 : i32
    %r = llvm.sub %c127, %t : i32
    %mirror = llvm.mul %r, %c16 : i32
    %s0 = llvm.getelementptr %tiles[%part] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    rocdl.raw.ptr.buffer.load.lds %buffer, %s0, %c16, %from, %c0, %c0, %c0
    llvm.br ^loop(%c0, %zero : i32, vector<4xf32>)
  ^loop(%i: i32, %acc: vector<4xf32>):
    // The copy behind the last tile is out of the buffer's range and brings
    // zeros; so the wait can be the same each time.
    %next = llvm.add %i, %c1 : i32
    %nstage = llvm.and %next, %c1 : i32
    %nslot = llvm.mul %nstage, %c2048 : i32
    %nat = llvm.add %nslot, %part : i32
    %s1 = llvm.getelementptr %tiles[%nat] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %tile = llvm.mul %next, %c2048 : i32
    rocdl.raw.ptr.buffer.load.lds %buffer, %s1, %c16, %from, %tile, %c0, %c0
    rocdl.s.waitcnt 3953 // WAIT for vmcnt(1)
    rocdl.s.barrier // READY
    %stage = llvm.and %i, %c1 : i32
    %slot = llvm.mul %stage, %c2048 : i32
    %at = llvm.add %slot, %mirror : i32
    %q = llvm.getelementptr %tiles[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %v = llvm.load %q {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
    // EARLY %sum = llvm.fadd %acc, %v : vector<4xf32>
    rocdl.s.waitcnt 49279 // LGKM for lgkmcnt(0)
    rocdl.s.barrier // FREE
    %sum = llvm.fadd %acc, %v : vector<4xf32> // USE
    %again = llvm.icmp "slt" %next, %c4 : i32
    llvm.cond_br %again, ^loop(%next, %sum : i32, vector<4xf32>), ^done
  ^done:
    rocdl.s.waitcnt 3952 // LAST for vmcnt(0)
    %o = llvm.getelementptr %out[%from] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    llvm.store %sum, %o {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    llvm.return
  }
}
