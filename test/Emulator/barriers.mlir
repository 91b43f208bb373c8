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
