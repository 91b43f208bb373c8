// MFMAs change sides of a branch where vector instructions on one of them have no MFMA
// beside them.

// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(llvm.func(kvbuf-balance-products)))" | FileCheck %s
// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(llvm.func(kvbuf-balance-products)))" --remark-format=emitRemark --remarks-filter=kvbuf-balance-products 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Four MFMAs of 32 cycles, of which 24 are left to others, in front of a branch; behind
// it five exponentials of 8. Two MFMAs hide them, one would leave 16. The first cannot
// sink, as the rare side reads it; the second must not pass the third, which stays.

// CHECK-LABEL: gpu.module @sinks
// CHECK:       ^bb1(
// CHECK-COUNT-2: rocdl.mfma
// CHECK-NOT:   rocdl.mfma
// CHECK:       llvm.cond_br
// CHECK:       ^bb5:
// CHECK-NEXT:  %[[THIRD:.*]] = rocdl.mfma{{.*}} %arg1, %arg1, %{{.*}}
// CHECK-NEXT:  rocdl.mfma{{.*}} %arg1, %arg1, %[[THIRD]]
// CHECK-COUNT-5: rocdl.exp2
// REMARK:      2 MFMAs moved behind a branch: 0 cycles of vector instructions exposed instead of 40
gpu.module @sinks attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%n: i32, %a: vector<8xbf16>, %c: vector<16xf32>, %p: f32) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    llvm.br ^body(%c0, %p, %c : i32, f32, vector<16xf32>)
  ^body(%i: i32, %x: f32, %acc: vector<16xf32>):
    %m0 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %acc, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m1 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %m0, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m2 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %m1, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m3 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %m2, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %few = llvm.icmp "eq" %i, %c1 : i32
    llvm.cond_br %few weights([1, 1000]), ^rare, ^often
  ^rare:
    %read = llvm.extractelement %m0[%c0 : i32] : vector<16xf32>
    llvm.br ^meet(%read : f32)
  ^often:
    llvm.br ^meet(%x : f32)
  ^meet(%y: f32):
    llvm.br ^behind
  ^behind:
    %e0 = rocdl.exp2 %y f32 -> f32
    %e1 = rocdl.exp2 %e0 f32 -> f32
    %e2 = rocdl.exp2 %e1 f32 -> f32
    %e3 = rocdl.exp2 %e2 f32 -> f32
    %e4 = rocdl.exp2 %e3 f32 -> f32
    rocdl.s.barrier
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %e4, %m3 : i32, f32, vector<16xf32>), ^end
  ^end:
    llvm.return
  }
}

// -----

// The other way round: seven sums of 4 cycles stand beside one MFMA in front, and behind
// stand two with nothing beside them. Of these the one whose operand the branch makes
// stays.

// CHECK-LABEL: gpu.module @rises
// CHECK:       ^bb1(
// CHECK-COUNT-2: rocdl.mfma
// CHECK:       llvm.cond_br
// CHECK:       ^bb4(
// CHECK:       rocdl.mfma
// CHECK-NOT:   rocdl.mfma
// CHECK:       llvm.return
// REMARK:      1 MFMAs moved in front of a branch: 0 cycles of vector instructions exposed instead of 4
gpu.module @rises attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%n: i32, %a: vector<8xbf16>, %c: vector<16xf32>, %p: f32) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    llvm.br ^body(%c0, %p, %c, %c : i32, f32, vector<16xf32>, vector<16xf32>)
  ^body(%i: i32, %x: f32, %acc: vector<16xf32>, %other: vector<16xf32>):
    %m0 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %acc, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %s0 = llvm.fadd %x, %x : f32
    %s1 = llvm.fadd %s0, %x : f32
    %s2 = llvm.fadd %s1, %x : f32
    %s3 = llvm.fadd %s2, %x : f32
    %s4 = llvm.fadd %s3, %x : f32
    %s5 = llvm.fadd %s4, %x : f32
    %s6 = llvm.fadd %s5, %x : f32
    %few = llvm.icmp "eq" %i, %c1 : i32
    llvm.cond_br %few weights([1, 1000]), ^rare, ^often
  ^rare:
    llvm.br ^meet(%acc : vector<16xf32>)
  ^often:
    llvm.br ^meet(%other : vector<16xf32>)
  ^meet(%chosen: vector<16xf32>):
    %m1 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %m0, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m2 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %chosen, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    rocdl.s.barrier
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %s6, %m1, %m2 : i32, f32, vector<16xf32>, vector<16xf32>), ^end
  ^end:
    llvm.return
  }
}
