// Priority between barriers that enclose MFMAs, also where a stage has branches.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(llvm.func(kvbuf-set-priority)))" | FileCheck %s

// CHECK-LABEL: llvm.func @kernel
// CHECK-NOT: setprio
// CHECK: ^bb1
// CHECK: rocdl.s.barrier
// CHECK-NEXT: rocdl.sched.barrier 0
// CHECK-NEXT: rocdl.s.setprio 1
// CHECK-NEXT: rocdl.mfma
// CHECK-NEXT: llvm.cond_br
// CHECK-NOT: setprio
// CHECK: rocdl.mfma
// CHECK-NEXT: rocdl.s.setprio 0
// CHECK-NEXT: rocdl.sched.barrier 0
// CHECK-NEXT: rocdl.s.barrier
// CHECK-NOT: setprio
gpu.module @kernels attributes {kvbuffer.target = "gfx942"} {
  llvm.func @kernel(%n: i32, %a: vector<4xi16>, %c: vector<16xf32>, %rare: i1) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    rocdl.s.barrier
    %m = rocdl.mfma.f32.32x32x8bf16.1k %a, %a, %c, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    rocdl.s.barrier
    llvm.br ^body(%m : vector<16xf32>)
  ^body(%acc: vector<16xf32>):
    %load = llvm.add %n, %n : i32
    rocdl.s.barrier
    rocdl.sched.barrier 0
    %m0 = rocdl.mfma.f32.32x32x8bf16.1k %a, %a, %acc, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    llvm.cond_br %rare, ^fix(%m0 : vector<16xf32>), ^on(%m0 : vector<16xf32>)
  ^fix(%f: vector<16xf32>):
    %g = llvm.fadd %f, %f : vector<16xf32>
    llvm.br ^on(%g : vector<16xf32>)
  ^on(%o: vector<16xf32>):
    %m1 = rocdl.mfma.f32.32x32x8bf16.1k %a, %a, %o, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    rocdl.sched.barrier 0
    rocdl.s.barrier
    llvm.br ^body(%m1 : vector<16xf32>)
  }
}
