// Values that are computed beside an MFMA and used in another block are held at
// the end of their stage.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(llvm.func(kvbuf-guard-sinking)))" | FileCheck %s

// CHECK-LABEL: gpu.module @held
// CHECK: ^bb1(
// CHECK: %[[E:.*]] = rocdl.exp2
// CHECK: %[[OWN:.*]] = llvm.fadd %[[E]], %[[E]]
// CHECK: %[[PACKED:.*]] = llvm.bitcast %{{.*}} : vector<4xf32> to vector<8xbf16>
// CHECK: %[[HE:.*]] = llvm.inline_asm has_side_effects{{.*}} "", "=v,0" %[[E]] : (f32) -> f32
// CHECK-NEXT: %[[HP:.*]] = llvm.inline_asm has_side_effects{{.*}} "", "=v,0" %[[PACKED]] : (vector<8xbf16>) -> vector<8xbf16>
// CHECK-NEXT: rocdl.s.barrier
// CHECK-NOT: inline_asm
// CHECK: llvm.cond_br
// CHECK: ^bb2
// CHECK: llvm.fmul %[[HE]], %[[HE]]
// CHECK: rocdl.mfma{{.*}} %[[HP]], %[[HP]]
// CHECK-NOT: inline_asm
// CHECK: llvm.return
gpu.module @held attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%n: i32, %a: vector<8xbf16>, %c: vector<16xf32>, %lds: !llvm.ptr<3>) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %f0 = llvm.mlir.constant(0.0 : f32) : f32
    %v0 = llvm.mlir.constant(dense<0.0> : vector<4xf32>) : vector<4xf32>
    %tid = rocdl.workitem.id.x : i32
    llvm.br ^body(%c0, %f0, %c : i32, f32, vector<16xf32>)
  ^body(%i: i32, %x: f32, %acc: vector<16xf32>):
    %at = llvm.getelementptr %lds[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    // A load is not held: holding it would wait for it.
    %loaded = llvm.load %at : !llvm.ptr<3> -> f32
    %m0 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %acc, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %e = rocdl.exp2 %loaded f32 -> f32
    %own = llvm.fadd %e, %e : f32
    %v = llvm.insertelement %own, %v0[%c0 : i32] : vector<4xf32>
    %packed = llvm.bitcast %v : vector<4xf32> to vector<8xbf16>
    rocdl.s.barrier
    // No MFMA beside it: it may sink.
    %free = llvm.fadd %loaded, %loaded : f32
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^on, ^exit
  ^on:
    %s = llvm.fmul %e, %e : f32
    %t = llvm.fmul %s, %free : f32
    %u = llvm.fadd %t, %loaded : f32
    %m1 = rocdl.mfma.f32.32x32x16.bf16 %packed, %packed, %m0, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    // What the back edge hands over is made in front of it anyway.
    llvm.br ^body(%next, %u, %m1 : i32, f32, vector<16xf32>)
  ^exit:
    llvm.return
  }
}
