// A two-stage pipeline of asynchronous copies, whole and with one line taken
// out at a time. Lines keep their numbers: the line is emptied.
//
// DEFINE: %{emulate} = kvbuf-emu-test %t.mlir --block=64 --arg=buf:f32:1024:iota --arg=buf:f32:256:uninit --print=1:0:4 --print=1:252:4
//
// RUN: cp %s %t.mlir
// RUN: %{emulate} | FileCheck %s --check-prefix=GOOD
// RUN: %{emulate} --options='{"landing":"random","seed":3}' | FileCheck %s --check-prefix=GOOD
// RUN: %{emulate} --options='{"landing":"eager"}' | FileCheck %s --check-prefix=GOOD
// RUN: sed 's,^.*// WAIT.*$,,' %s > %t.mlir
// RUN: not %{emulate} 2>&1 | FileCheck %s --check-prefix=WAIT
// RUN: not %{emulate} --options='{"landing":"eager","seed":5}' 2>&1 | FileCheck %s --check-prefix=WAIT
// RUN: sed 's,group 1 // WAIT.*$,group 2,' %s > %t.mlir
// RUN: not %{emulate} 2>&1 | FileCheck %s --check-prefix=WAIT
// RUN: sed 's,^.*// READY.*$,,' %s > %t.mlir
// RUN: not %{emulate} 2>&1 | FileCheck %s --check-prefix=READY
// RUN: sed 's,^.*// FREE.*$,,' %s > %t.mlir
// RUN: not %{emulate} 2>&1 | FileCheck %s --check-prefix=FREE
//
// Without the checks, a missing wait still gives wrong numbers every time:
// late landing leaves the old bytes in place.
// RUN: sed 's,^.*// WAIT.*$,,' %s > %t.mlir
// RUN: %{emulate} --options='{"races":false,"uninitialized":false,"landing_checks":false}' | FileCheck %s --check-prefix=WRONG

// Element j of thread t is the sum over the tiles i of 256 i + 4 (63 - t) + j:
// 4 (4 (63 - t) + j) + 256 * 6.
// GOOD: arg1: 2544 2548 2552 2556
// GOOD: arg1: 1536 1540 1544 1548

// WAIT: error: 'llvm.load' by thread {{.*}}: read of bytes an asynchronous copy still owes
// WAIT-NEXT: note: 'nvvm.cp.async.shared.global': the copy, by warp

// READY: :[[#LOAD:]]:{{[0-9]+}}: error: 'llvm.load' by thread
// READY: 'nvvm.cp.async.shared.global'

// Both ops with their places, and what the bytes are: the kernel says so in
// kvbuffer.lds, a ring of two slots of 16 rows.
// FREE: error: 'nvvm.cp.async.shared.global' by thread {{.*}}: shared-memory race: write of shared byte {{.*}} (byte {{[0-9]+}} of 'tiles') (byte {{[0-9]+}} of 'row {{[0-9]|1[0-5]}}, columns 0 to 15, of slot {{[01]}} of k') with no barrier after the read by warp {{[01]}}, 'llvm.load' at {{.*}}.mlir:{{[0-9]+:[0-9]+}}
// FREE-NEXT: note: 'llvm.load': the read by warp {{[01]}}, 'llvm.load'

// WRONG: arg1: 0 0 0 0

module {
  llvm.mlir.global internal @tiles() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<512 x f32>
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel, kvbuffer.lds = [#kvbuffer.lds<name = "k", offset = 0, slots = 2, slot_bytes = 1024, rows = 16, row_bytes = 64, cols = 16>]} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c63 = llvm.mlir.constant(63 : i32) : i32
    %c256 = llvm.mlir.constant(256 : i32) : i32
    %zero = llvm.mlir.constant(dense<0.0> : vector<4xf32>) : vector<4xf32>
    %tiles = llvm.mlir.addressof @tiles : !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %mine = llvm.mul %t, %c4 : i32
    %r = llvm.sub %c63, %t : i32
    %other = llvm.mul %r, %c4 : i32
    %s0 = llvm.getelementptr %tiles[%mine] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %g0 = llvm.getelementptr %in[%mine] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    nvvm.cp.async.shared.global %s0, %g0, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    llvm.br ^loop(%c0, %zero : i32, vector<4xf32>)
  ^loop(%i: i32, %acc: vector<4xf32>):
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %c4 : i32
    llvm.cond_br %more, ^copy, ^copied
  ^copy:
    %nstage = llvm.and %next, %c1 : i32
    %nat = llvm.mul %nstage, %c256 : i32
    %nmine = llvm.add %nat, %mine : i32
    %s1 = llvm.getelementptr %tiles[%nmine] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %tile = llvm.mul %next, %c256 : i32
    %nsrc = llvm.add %tile, %mine : i32
    %g1 = llvm.getelementptr %in[%nsrc] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    nvvm.cp.async.shared.global %s1, %g1, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    llvm.br ^copied
  ^copied:
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 1 // WAIT
    nvvm.barrier0 // READY
    %stage = llvm.and %i, %c1 : i32
    %at = llvm.mul %stage, %c256 : i32
    %from = llvm.add %at, %other : i32
    %p = llvm.getelementptr %tiles[%from] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %v = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
    %sum = llvm.fadd %acc, %v : vector<4xf32>
    nvvm.barrier0 // FREE
    llvm.cond_br %more, ^loop(%next, %sum : i32, vector<4xf32>), ^end
  ^end:
    %o = llvm.getelementptr %out[%mine] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %sum, %o {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    llvm.return
  }
}
