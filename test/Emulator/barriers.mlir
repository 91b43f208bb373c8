// Barrier faults, each with its operation and place.
//
// RUN: split-file %s %t
// RUN: not kvbuf-emu-test %t/divergent.mlir --block=32 2>&1 | FileCheck %t/divergent.mlir
// RUN: not kvbuf-emu-test %t/skip.mlir --block=128 2>&1 | FileCheck %t/skip.mlir
// RUN: not kvbuf-emu-test %t/exit.mlir --block=128 2>&1 | FileCheck %t/exit.mlir
// RUN: not kvbuf-emu-test %t/counts.mlir --block=128 2>&1 | FileCheck %t/counts.mlir
// RUN: not kvbuf-emu-test %t/cross.mlir --block=64 2>&1 | FileCheck %t/cross.mlir
// RUN: kvbuf-emu-test %t/named.mlir --block=128 --arg=buf:f32:64:uninit --print=0:0:4
// RUN: sed 's,^.*// NAMED$,,' %t/named.mlir > %t/loose.mlir
// RUN: not kvbuf-emu-test %t/loose.mlir --block=128 --arg=buf:f32:64:uninit 2>&1 | FileCheck %t/named.mlir
// RUN: kvbuf-emu-test %t/reduce.mlir --block=128 --arg=buf:i32:512:uninit --print=0:0:4 --print=0:96:1 --print=0:128:1 --print=0:224:1 --print=0:256:1 --print=0:352:1 --print=0:384:1 --print=0:480:1 | FileCheck %t/reduce.mlir
// The second half of the warps asks whether all hold where the first half asks whether any does.
// RUN: sed 's,^.*// ALIKE$,,; s,^  // APART ,  ,' %t/reduce.mlir > %t/apart.mlir
// RUN: not kvbuf-emu-test %t/apart.mlir --block=128 --arg=buf:i32:512:uninit 2>&1 | FileCheck %t/reduce.mlir --check-prefix=APART
// RUN: not kvbuf-emu-test %t/unknown.mlir --block=64 2>&1 | FileCheck %t/unknown.mlir

//--- divergent.mlir
llvm.func @kernel() attributes {nvvm.kernel} {
  %c7 = llvm.mlir.constant(7 : i32) : i32
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %low = llvm.icmp "ult" %t, %c7 : i32
  llvm.cond_br %low, ^meet, ^end
^meet:
  // CHECK: :[[#@LINE+1]]:3: error: 'nvvm.barrier0' by warp 0 ({{.*}}): divergent barrier: 7 of the warp's 32 lanes execute it
  nvvm.barrier0
  llvm.br ^end
^end:
  llvm.return
}

//--- skip.mlir
// Half of the warps go round the first barrier, and wait at the second one
// for ever.
llvm.func @kernel() attributes {nvvm.kernel} {
  %c64 = llvm.mlir.constant(64 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %low = llvm.icmp "ult" %t, %c64 : i32
  llvm.cond_br %low, ^meet, ^end
^meet:
  nvvm.barrier0
  llvm.br ^end
^end:
  nvvm.barrier id = %c1
  llvm.return
}
// CHECK: skip.mlir:[[#@LINE-6]]:3: error: 'nvvm.barrier0' by warp 0 ({{.*}}): barrier 0 never completes: 2 of 4 warps arrived (waiting: 0 at barrier 0, 1 at barrier 0, 2 at barrier 1, 3 at barrier 1)
// CHECK: skip.mlir:[[#@LINE-4]]:3: note: 'nvvm.barrier': others wait here

//--- exit.mlir
// Half of the warps end before the barrier.
llvm.func @kernel() attributes {nvvm.kernel} {
  %c64 = llvm.mlir.constant(64 : i32) : i32
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %low = llvm.icmp "ult" %t, %c64 : i32
  llvm.cond_br %low, ^end, ^meet
^meet:
  // CHECK: :[[#@LINE+1]]:3: error: 'nvvm.barrier0' by warp 2 ({{.*}}): barrier 0 never completes: 2 of 4 warps arrived (waiting: 2 at barrier 0, 3 at barrier 0; ended: 0, 1)
  nvvm.barrier0
  llvm.br ^end
^end:
  llvm.return
}

//--- counts.mlir
// Two warps wait for 64 threads and two for 96, at the same barrier.
llvm.func @kernel() attributes {nvvm.kernel} {
  %c64 = llvm.mlir.constant(64 : i32) : i32
  %c96 = llvm.mlir.constant(96 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c32 = llvm.mlir.constant(32 : i32) : i32
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %w = llvm.and %t, %c32 : i32
  %odd = llvm.icmp "ne" %w, %c32 : i32
  llvm.cond_br %odd, ^a, ^b
^a:
  nvvm.barrier id = %c1 number_of_threads = %c64
  llvm.br ^end
^b:
  nvvm.barrier id = %c1 number_of_threads = %c96
  llvm.br ^end
^end:
  llvm.return
}
// CHECK: error: 'nvvm.barrier' by warp {{.*}}: barrier 1 for {{64|96}} threads meets one for {{64|96}}
// CHECK-NEXT: note: 'nvvm.barrier': the other one

//--- cross.mlir
// Two warps wait for each other at different barriers.
llvm.func @kernel() attributes {nvvm.kernel} {
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %c32 = llvm.mlir.constant(32 : i32) : i32
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %low = llvm.icmp "ult" %t, %c32 : i32
  llvm.cond_br %low, ^a, ^b
^a:
  nvvm.barrier id = %c1
  nvvm.barrier id = %c2
  llvm.br ^end
^b:
  nvvm.barrier id = %c2
  nvvm.barrier id = %c1
  llvm.br ^end
^end:
  llvm.return
}
// CHECK: error: 'nvvm.barrier' by warp 0 {{.*}}: barrier 1 never completes: 1 of 2 warps arrived (waiting: 0 at barrier 1, 1 at barrier 2)

//--- named.mlir
// Warps 0 and 1 exchange over barrier 1, which the other two never see. A
// producer arrives at barrier 2 without waiting.
module {
  llvm.mlir.global internal @sh() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x f32>
  llvm.func @kernel(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %c31 = llvm.mlir.constant(31 : i32) : i32
    %c63 = llvm.mlir.constant(63 : i32) : i32
    %c64 = llvm.mlir.constant(64 : i32) : i32
    %sh = llvm.mlir.addressof @sh : !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %f = llvm.uitofp %t : i32 to f32
    %low = llvm.icmp "ult" %t, %c64 : i32
    llvm.cond_br %low, ^pair, ^end
  ^pair:
    %p = llvm.getelementptr %sh[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %f, %p : f32, !llvm.ptr<3>
    %first = llvm.icmp "ule" %t, %c31 : i32
    nvvm.barrier id = %c1 number_of_threads = %c64 // NAMED
    %r = llvm.sub %c63, %t : i32
    %q = llvm.getelementptr %sh[%r] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %x = llvm.load %q : !llvm.ptr<3> -> f32
    llvm.cond_br %first, ^produce, ^consume
  ^produce:
    nvvm.barrier.arrive id = %c2 number_of_threads = %c64
    llvm.br ^store
  ^consume:
    nvvm.barrier id = %c2 number_of_threads = %c64
    llvm.store %x, %q : f32, !llvm.ptr<3>
    llvm.br ^store
  ^store:
    %o = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %x, %o : f32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }
}
// CHECK: error: 'llvm.{{load|store}}' by thread

//--- reduce.mlir
// What threads bring to a barrier and all of them take away. Thread 70 alone brings
// a true predicate: of the block's 128 that is 1, not all, but any; of the half
// with warps 0 and 1, which meet at barriers of their own, none.
llvm.func @kernel(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %c6 = llvm.mlir.constant(6 : i32) : i32
  %c64 = llvm.mlir.constant(64 : i32) : i32
  %c70 = llvm.mlir.constant(70 : i32) : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %mine = llvm.icmp "eq" %t, %c70 : i32
  %others = llvm.icmp "ne" %t, %c70 : i32
  %word = llvm.select %mine, %c64, %c0 : i1, i32
  %half = llvm.lshr %t, %c6 : i32
  %id = llvm.add %half, %c1 : i32
  // By the op at barrier 0, whose predicates are any numbers but 0.
  %count = nvvm.barrier #nvvm.reduction<popc> %word -> i32
  %any = llvm.call_intrinsic "llvm.nvvm.barrier.cta.red.or.aligned.count"(%id, %c64, %mine) : (i32, i32, i1) -> i1 // ALIKE
  // APART %all0 = llvm.icmp "eq" %half, %c0 : i32
  // APART llvm.cond_br %all0, ^low, ^high
  // APART ^low:
  // APART %x = llvm.call_intrinsic "llvm.nvvm.barrier.cta.red.or.aligned.all"(%c2, %mine) : (i32, i1) -> i1
  // APART llvm.br ^on(%x : i1)
  // APART ^high:
  // APART %y = llvm.call_intrinsic "llvm.nvvm.barrier.cta.red.and.aligned.all"(%c2, %mine) : (i32, i1) -> i1
  // APART llvm.br ^on(%y : i1)
  // APART ^on(%any: i1):
  // APART: error: 'llvm.call_intrinsic' by warp {{[0-9]}} ({{.*}}): barrier 2 reduces something else, or nothing, elsewhere
  // APART: note: 'llvm.call_intrinsic': the other one
  %all = llvm.call_intrinsic "llvm.nvvm.barrier.cta.red.and.aligned.count"(%id, %c64, %others) : (i32, i32, i1) -> i1
  %some = llvm.call_intrinsic "llvm.nvvm.barrier.cta.red.popc.aligned.count"(%id, %c64, %others) : (i32, i32, i1) -> i32
  %a = llvm.zext %any : i1 to i32
  %b = llvm.zext %all : i1 to i32
  %c128 = llvm.mlir.constant(128 : i32) : i32
  %at1 = llvm.add %t, %c128 : i32
  %at2 = llvm.add %at1, %c128 : i32
  %at3 = llvm.add %at2, %c128 : i32
  %p0 = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %p1 = llvm.getelementptr %out[%at1] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %p2 = llvm.getelementptr %out[%at2] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %p3 = llvm.getelementptr %out[%at3] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %count, %p0 : i32, !llvm.ptr<1>
  llvm.store %a, %p1 : i32, !llvm.ptr<1>
  llvm.store %b, %p2 : i32, !llvm.ptr<1>
  llvm.store %some, %p3 : i32, !llvm.ptr<1>
  llvm.return
}
// CHECK:      1 1 1 1
// CHECK-NEXT: 1
// CHECK-NEXT: 0
// CHECK-NEXT: 1
// CHECK-NEXT: 1
// CHECK-NEXT: 0
// CHECK-NEXT: 64
// CHECK-NEXT: 63

//--- unknown.mlir
llvm.func @kernel() attributes {nvvm.kernel} {
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %true = llvm.mlir.constant(true) : i1
  // CHECK: :[[#@LINE+1]]:8: error: {{.*}}intrinsic 'llvm.nvvm.barrier.cta.red.xor.aligned.all'
  %x = llvm.call_intrinsic "llvm.nvvm.barrier.cta.red.xor.aligned.all"(%c1, %true) : (i32, i1) -> i1
  llvm.return
}
