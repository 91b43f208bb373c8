// Where vector instructions take more cycles than the MFMAs of their stage hide, what does
// the same to registers that follow each other becomes an op on both.

// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(llvm.func(kvbuf-pair-arithmetic)))" | FileCheck %s
// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(llvm.func(kvbuf-pair-arithmetic)))" --remark-format=emitRemark --remarks-filter=kvbuf-pair-arithmetic 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// One MFMA of 32 cycles leaves 24 to others: an exponential of 16, and two of the six
// multiply-adds. Two pairs take the other four away; the last two stay. A pair begins
// with an even element: 1 and 2 are none. Users find their elements in the pairs.

// CHECK-LABEL: gpu.module @some
// CHECK:       %[[M:.*]] = rocdl.mfma
// CHECK:       %[[X:.*]] = llvm.shufflevector %[[S:.*]], %[[S]] [0, 1] : vector<16xf32>
// CHECK:       %[[PAIR:.*]] = llvm.intr.fma(%[[X]], %{{.*}}, %{{.*}}) : (vector<2xf32>, vector<2xf32>, vector<2xf32>)
// CHECK:       %[[FIRST:.*]] = llvm.extractelement %[[PAIR]][%{{.*}} : i64]
// CHECK:       rocdl.exp2 %[[FIRST]]
// CHECK:       %[[Y:.*]] = llvm.shufflevector %[[S]], %[[S]] [2, 3] : vector<16xf32>
// CHECK:       llvm.intr.fma(%[[Y]], %{{.*}}, %{{.*}}) : (vector<2xf32>, vector<2xf32>, vector<2xf32>)
// CHECK-COUNT-2: llvm.intr.fma({{.*}}) : (f32, f32, f32) -> f32
// CHECK-NOT:   llvm.intr.fma
// REMARK:      2 pairs of f32 in a stage whose vector instructions take 16 cycles more than its MFMAs hide
gpu.module @some attributes {kvbuffer.target = "gfx942"} {
  llvm.func @kernel(%n: i32, %a: vector<4xi16>, %c: vector<16xf32>, %p: f32) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c5 = llvm.mlir.constant(5 : i32) : i32
    llvm.br ^body(%c0, %c, %p : i32, vector<16xf32>, f32)
  ^body(%i: i32, %acc: vector<16xf32>, %x: f32):
    %m = rocdl.mfma.f32.32x32x8bf16.1k %a, %a, %acc, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %s0 = llvm.extractelement %acc[%c0 : i32] : vector<16xf32>
    %s1 = llvm.extractelement %acc[%c1 : i32] : vector<16xf32>
    %s2 = llvm.extractelement %acc[%c2 : i32] : vector<16xf32>
    %s3 = llvm.extractelement %acc[%c3 : i32] : vector<16xf32>
    %s4 = llvm.extractelement %acc[%c4 : i32] : vector<16xf32>
    %s5 = llvm.extractelement %acc[%c5 : i32] : vector<16xf32>
    %f0 = llvm.intr.fma(%s0, %p, %x) : (f32, f32, f32) -> f32
    %e0 = rocdl.exp2 %f0 f32 -> f32
    %f1 = llvm.intr.fma(%s1, %p, %x) : (f32, f32, f32) -> f32
    %f2 = llvm.intr.fma(%s2, %p, %x) : (f32, f32, f32) -> f32
    %f3 = llvm.intr.fma(%s3, %p, %x) : (f32, f32, f32) -> f32
    %f4 = llvm.intr.fma(%s4, %p, %x) : (f32, f32, f32) -> f32
    %f5 = llvm.intr.fma(%s5, %p, %x) : (f32, f32, f32) -> f32
    %v0 = llvm.insertelement %e0, %m[%c0 : i32] : vector<16xf32>
    %v1 = llvm.insertelement %f1, %v0[%c1 : i32] : vector<16xf32>
    %v2 = llvm.insertelement %f2, %v1[%c2 : i32] : vector<16xf32>
    %v3 = llvm.insertelement %f3, %v2[%c3 : i32] : vector<16xf32>
    %v4 = llvm.insertelement %f4, %v3[%c4 : i32] : vector<16xf32>
    %v5 = llvm.insertelement %f5, %v4[%c5 : i32] : vector<16xf32>
    rocdl.s.barrier
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %v5, %p : i32, vector<16xf32>, f32), ^end
  ^end:
    llvm.return
  }
}

// -----

// The same stage where 215 registers are kept beside: a pair would not find two that follow
// each other for an operand and two for a result. Beside 214 it does.

// CHECK-LABEL: gpu.module @full
// CHECK-COUNT-6: llvm.intr.fma({{.*}}) : (f32, f32, f32) -> f32
// CHECK-NOT:   vector<2xf32>
// CHECK:       llvm.return
// REMARK:      no pairs of f32 in a stage that has 253 registers of 256 live
gpu.module @full attributes {kvbuffer.target = "gfx942"} {
  llvm.func @kernel(%n: i32, %a: vector<4xi16>, %c: vector<16xf32>, %p: f32, %k: vector<215xf32>) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c5 = llvm.mlir.constant(5 : i32) : i32
    %id = rocdl.workitem.id.x : i32
    %lane = llvm.sitofp %id : i32 to f32
    %held = llvm.insertelement %lane, %k[%c0 : i32] : vector<215xf32>
    llvm.br ^body(%c0, %c, %p, %held : i32, vector<16xf32>, f32, vector<215xf32>)
  ^body(%i: i32, %acc: vector<16xf32>, %x: f32, %h: vector<215xf32>):
    %m = rocdl.mfma.f32.32x32x8bf16.1k %a, %a, %acc, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %s0 = llvm.extractelement %acc[%c0 : i32] : vector<16xf32>
    %s1 = llvm.extractelement %acc[%c1 : i32] : vector<16xf32>
    %s2 = llvm.extractelement %acc[%c2 : i32] : vector<16xf32>
    %s3 = llvm.extractelement %acc[%c3 : i32] : vector<16xf32>
    %s4 = llvm.extractelement %acc[%c4 : i32] : vector<16xf32>
    %s5 = llvm.extractelement %acc[%c5 : i32] : vector<16xf32>
    %f0 = llvm.intr.fma(%s0, %p, %x) : (f32, f32, f32) -> f32
    %e0 = rocdl.exp2 %f0 f32 -> f32
    %f1 = llvm.intr.fma(%s1, %p, %x) : (f32, f32, f32) -> f32
    %f2 = llvm.intr.fma(%s2, %p, %x) : (f32, f32, f32) -> f32
    %f3 = llvm.intr.fma(%s3, %p, %x) : (f32, f32, f32) -> f32
    %f4 = llvm.intr.fma(%s4, %p, %x) : (f32, f32, f32) -> f32
    %f5 = llvm.intr.fma(%s5, %p, %x) : (f32, f32, f32) -> f32
    %v0 = llvm.insertelement %e0, %m[%c0 : i32] : vector<16xf32>
    %v1 = llvm.insertelement %f1, %v0[%c1 : i32] : vector<16xf32>
    %v2 = llvm.insertelement %f2, %v1[%c2 : i32] : vector<16xf32>
    %v3 = llvm.insertelement %f3, %v2[%c3 : i32] : vector<16xf32>
    %v4 = llvm.insertelement %f4, %v3[%c4 : i32] : vector<16xf32>
    %v5 = llvm.insertelement %f5, %v4[%c5 : i32] : vector<16xf32>
    rocdl.s.barrier
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %v5, %p, %h : i32, vector<16xf32>, f32, vector<215xf32>), ^end
  ^end:
    llvm.return
  }
}

// -----

// CHECK-LABEL: gpu.module @room
// CHECK:       llvm.intr.fma({{.*}}) : (vector<2xf32>, vector<2xf32>, vector<2xf32>)
// REMARK:      2 pairs of f32
gpu.module @room attributes {kvbuffer.target = "gfx942"} {
  llvm.func @kernel(%n: i32, %a: vector<4xi16>, %c: vector<16xf32>, %p: f32, %k: vector<214xf32>) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c5 = llvm.mlir.constant(5 : i32) : i32
    %id = rocdl.workitem.id.x : i32
    %lane = llvm.sitofp %id : i32 to f32
    %held = llvm.insertelement %lane, %k[%c0 : i32] : vector<214xf32>
    llvm.br ^body(%c0, %c, %p, %held : i32, vector<16xf32>, f32, vector<214xf32>)
  ^body(%i: i32, %acc: vector<16xf32>, %x: f32, %h: vector<214xf32>):
    %m = rocdl.mfma.f32.32x32x8bf16.1k %a, %a, %acc, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %s0 = llvm.extractelement %acc[%c0 : i32] : vector<16xf32>
    %s1 = llvm.extractelement %acc[%c1 : i32] : vector<16xf32>
    %s2 = llvm.extractelement %acc[%c2 : i32] : vector<16xf32>
    %s3 = llvm.extractelement %acc[%c3 : i32] : vector<16xf32>
    %s4 = llvm.extractelement %acc[%c4 : i32] : vector<16xf32>
    %s5 = llvm.extractelement %acc[%c5 : i32] : vector<16xf32>
    %f0 = llvm.intr.fma(%s0, %p, %x) : (f32, f32, f32) -> f32
    %e0 = rocdl.exp2 %f0 f32 -> f32
    %f1 = llvm.intr.fma(%s1, %p, %x) : (f32, f32, f32) -> f32
    %f2 = llvm.intr.fma(%s2, %p, %x) : (f32, f32, f32) -> f32
    %f3 = llvm.intr.fma(%s3, %p, %x) : (f32, f32, f32) -> f32
    %f4 = llvm.intr.fma(%s4, %p, %x) : (f32, f32, f32) -> f32
    %f5 = llvm.intr.fma(%s5, %p, %x) : (f32, f32, f32) -> f32
    %v0 = llvm.insertelement %e0, %m[%c0 : i32] : vector<16xf32>
    %v1 = llvm.insertelement %f1, %v0[%c1 : i32] : vector<16xf32>
    %v2 = llvm.insertelement %f2, %v1[%c2 : i32] : vector<16xf32>
    %v3 = llvm.insertelement %f3, %v2[%c3 : i32] : vector<16xf32>
    %v4 = llvm.insertelement %f4, %v3[%c4 : i32] : vector<16xf32>
    %v5 = llvm.insertelement %f5, %v4[%c5 : i32] : vector<16xf32>
    rocdl.s.barrier
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %v5, %p, %h : i32, vector<16xf32>, f32, vector<214xf32>), ^end
  ^end:
    llvm.return
  }
}

// -----

// The same where 93 scalar registers are kept beside: of what is uniform in a pair it would
// need two that follow each other. Beside 92 it has them.

// CHECK-LABEL: gpu.module @scalars
// CHECK-COUNT-6: llvm.intr.fma({{.*}}) : (f32, f32, f32) -> f32
// CHECK-NOT:   vector<2xf32>
// CHECK:       llvm.return
// REMARK:      no pairs of f32 in a stage that has 99 scalar registers of 102 live
gpu.module @scalars attributes {kvbuffer.target = "gfx942"} {
  llvm.func @kernel(%n: i32, %a: vector<4xi16>, %c: vector<16xf32>, %p: f32, %k: vector<93xf32>) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c5 = llvm.mlir.constant(5 : i32) : i32
    llvm.br ^body(%c0, %c, %p, %k : i32, vector<16xf32>, f32, vector<93xf32>)
  ^body(%i: i32, %acc: vector<16xf32>, %x: f32, %h: vector<93xf32>):
    %m = rocdl.mfma.f32.32x32x8bf16.1k %a, %a, %acc, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %s0 = llvm.extractelement %acc[%c0 : i32] : vector<16xf32>
    %s1 = llvm.extractelement %acc[%c1 : i32] : vector<16xf32>
    %s2 = llvm.extractelement %acc[%c2 : i32] : vector<16xf32>
    %s3 = llvm.extractelement %acc[%c3 : i32] : vector<16xf32>
    %s4 = llvm.extractelement %acc[%c4 : i32] : vector<16xf32>
    %s5 = llvm.extractelement %acc[%c5 : i32] : vector<16xf32>
    %f0 = llvm.intr.fma(%s0, %p, %x) : (f32, f32, f32) -> f32
    %e0 = rocdl.exp2 %f0 f32 -> f32
    %f1 = llvm.intr.fma(%s1, %p, %x) : (f32, f32, f32) -> f32
    %f2 = llvm.intr.fma(%s2, %p, %x) : (f32, f32, f32) -> f32
    %f3 = llvm.intr.fma(%s3, %p, %x) : (f32, f32, f32) -> f32
    %f4 = llvm.intr.fma(%s4, %p, %x) : (f32, f32, f32) -> f32
    %f5 = llvm.intr.fma(%s5, %p, %x) : (f32, f32, f32) -> f32
    %v0 = llvm.insertelement %e0, %m[%c0 : i32] : vector<16xf32>
    %v1 = llvm.insertelement %f1, %v0[%c1 : i32] : vector<16xf32>
    %v2 = llvm.insertelement %f2, %v1[%c2 : i32] : vector<16xf32>
    %v3 = llvm.insertelement %f3, %v2[%c3 : i32] : vector<16xf32>
    %v4 = llvm.insertelement %f4, %v3[%c4 : i32] : vector<16xf32>
    %v5 = llvm.insertelement %f5, %v4[%c5 : i32] : vector<16xf32>
    rocdl.s.barrier
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %v5, %p, %h : i32, vector<16xf32>, f32, vector<93xf32>), ^end
  ^end:
    llvm.return
  }
}

// -----

// CHECK-LABEL: gpu.module @fits
// CHECK-COUNT-2: llvm.intr.fma({{.*}}) : (vector<2xf32>, vector<2xf32>, vector<2xf32>)
// REMARK:      2 pairs of f32 in a stage whose vector instructions take 16 cycles more
gpu.module @fits attributes {kvbuffer.target = "gfx942"} {
  llvm.func @kernel(%n: i32, %a: vector<4xi16>, %c: vector<16xf32>, %p: f32, %k: vector<92xf32>) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c5 = llvm.mlir.constant(5 : i32) : i32
    llvm.br ^body(%c0, %c, %p, %k : i32, vector<16xf32>, f32, vector<92xf32>)
  ^body(%i: i32, %acc: vector<16xf32>, %x: f32, %h: vector<92xf32>):
    %m = rocdl.mfma.f32.32x32x8bf16.1k %a, %a, %acc, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %s0 = llvm.extractelement %acc[%c0 : i32] : vector<16xf32>
    %s1 = llvm.extractelement %acc[%c1 : i32] : vector<16xf32>
    %s2 = llvm.extractelement %acc[%c2 : i32] : vector<16xf32>
    %s3 = llvm.extractelement %acc[%c3 : i32] : vector<16xf32>
    %s4 = llvm.extractelement %acc[%c4 : i32] : vector<16xf32>
    %s5 = llvm.extractelement %acc[%c5 : i32] : vector<16xf32>
    %f0 = llvm.intr.fma(%s0, %p, %x) : (f32, f32, f32) -> f32
    %e0 = rocdl.exp2 %f0 f32 -> f32
    %f1 = llvm.intr.fma(%s1, %p, %x) : (f32, f32, f32) -> f32
    %f2 = llvm.intr.fma(%s2, %p, %x) : (f32, f32, f32) -> f32
    %f3 = llvm.intr.fma(%s3, %p, %x) : (f32, f32, f32) -> f32
    %f4 = llvm.intr.fma(%s4, %p, %x) : (f32, f32, f32) -> f32
    %f5 = llvm.intr.fma(%s5, %p, %x) : (f32, f32, f32) -> f32
    %v0 = llvm.insertelement %e0, %m[%c0 : i32] : vector<16xf32>
    %v1 = llvm.insertelement %f1, %v0[%c1 : i32] : vector<16xf32>
    %v2 = llvm.insertelement %f2, %v1[%c2 : i32] : vector<16xf32>
    %v3 = llvm.insertelement %f3, %v2[%c3 : i32] : vector<16xf32>
    %v4 = llvm.insertelement %f4, %v3[%c4 : i32] : vector<16xf32>
    %v5 = llvm.insertelement %f5, %v4[%c5 : i32] : vector<16xf32>
    rocdl.s.barrier
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %v5, %p, %h : i32, vector<16xf32>, f32, vector<92xf32>), ^end
  ^end:
    llvm.return
  }
}

// -----

// Without an MFMA all stand alone, and each pair spares one: products, whose factors differ
// but follow each other, and what is computed of their results. Not those that a sum takes
// in, as LLVM makes one multiply-add of both; not elements 1 and 2; not where the first
// result is needed before the second one can be there.

// CHECK-LABEL: gpu.module @none
// CHECK:       %[[P:.*]] = llvm.fmul %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK:       llvm.fadd %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK-COUNT-2: llvm.fmul {{.*}}contract{{.*}} : f32
// CHECK-COUNT-2: llvm.fadd {{.*}}contract{{.*}} : f32
// CHECK:       llvm.fsub {{.*}} : f32
// CHECK:       llvm.fsub {{.*}} : f32
// CHECK-NOT:   vector<2xf32>
// CHECK:       rocdl.s.barrier
gpu.module @none attributes {kvbuffer.target = "gfx942"} {
  llvm.func @kernel(%n: i32, %u: vector<4xf32>, %w: vector<4xf32>, %p: f32) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %id = rocdl.workitem.id.x : i32
    %lane = llvm.sitofp %id : i32 to f32
    %start = llvm.insertelement %lane, %u[%c0 : i32] : vector<4xf32>
    llvm.br ^body(%c0, %start : i32, vector<4xf32>)
  ^body(%i: i32, %x: vector<4xf32>):
    %x0 = llvm.extractelement %x[%c0 : i32] : vector<4xf32>
    %x1 = llvm.extractelement %x[%c1 : i32] : vector<4xf32>
    %x2 = llvm.extractelement %x[%c2 : i32] : vector<4xf32>
    %x3 = llvm.extractelement %x[%c3 : i32] : vector<4xf32>
    %w0 = llvm.extractelement %w[%c0 : i32] : vector<4xf32>
    %w1 = llvm.extractelement %w[%c1 : i32] : vector<4xf32>
    %a0 = llvm.fmul %x0, %w0 : f32
    %a1 = llvm.fmul %x1, %w1 : f32
    %b0 = llvm.fadd %a0, %p : f32
    %b1 = llvm.fadd %a1, %p : f32
    %d2 = llvm.fmul %x2, %p {fastmathFlags = #llvm.fastmath<contract>} : f32
    %d3 = llvm.fmul %x3, %p {fastmathFlags = #llvm.fastmath<contract>} : f32
    %g2 = llvm.fadd %d2, %w0 {fastmathFlags = #llvm.fastmath<contract>} : f32
    %g3 = llvm.fadd %d3, %w1 {fastmathFlags = #llvm.fastmath<contract>} : f32
    %h1 = llvm.fsub %x1, %p : f32
    %h2 = llvm.fsub %x2, %p : f32
    %r0 = llvm.fadd %h1, %b0 : f32
    %r1 = llvm.fmul %h2, %b1 : f32
    %y0 = llvm.insertelement %r0, %x[%c0 : i32] : vector<4xf32>
    %y1 = llvm.insertelement %r1, %y0[%c1 : i32] : vector<4xf32>
    %y2 = llvm.insertelement %g2, %y1[%c2 : i32] : vector<4xf32>
    %y3 = llvm.insertelement %g3, %y2[%c3 : i32] : vector<4xf32>
    rocdl.s.barrier
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %y3 : i32, vector<4xf32>), ^end
  ^end:
    llvm.return
  }
}

// -----

// A sum whose order is free adds up two pairs at a time, then the elements and what has no
// other; from there on its order is that of the ops. Another sum stays as it is.

// CHECK-LABEL: gpu.module @sums
// CHECK:       %[[A:.*]] = llvm.fadd %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK:       %[[B:.*]] = llvm.fadd %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK:       %[[S:.*]] = llvm.fadd %[[A]], %[[B]] : vector<2xf32>
// CHECK:       %[[LOW:.*]] = llvm.extractelement %[[S]]
// CHECK:       %[[HIGH:.*]] = llvm.extractelement %[[S]]
// CHECK:       %[[BOTH:.*]] = llvm.fadd %{{.*}}, %{{.*}} : f32
// CHECK:       llvm.fadd %[[BOTH]], %{{.*}} : f32
// CHECK-NOT:   vector<2xf32>
// CHECK-COUNT-7: llvm.fadd {{.*}} : f32
// CHECK-NOT:   reassoc
gpu.module @sums attributes {kvbuffer.target = "gfx942"} {
  llvm.func @kernel(%n: i32, %u: vector<8xf32>) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c5 = llvm.mlir.constant(5 : i32) : i32
    %c6 = llvm.mlir.constant(6 : i32) : i32
    %c7 = llvm.mlir.constant(7 : i32) : i32
    %id = rocdl.workitem.id.x : i32
    %lane = llvm.sitofp %id : i32 to f32
    %x = llvm.insertelement %lane, %u[%c0 : i32] : vector<8xf32>
    llvm.br ^body(%c0, %lane, %lane : i32, f32, f32)
  ^body(%i: i32, %sum: f32, %other: f32):
    %x0 = llvm.extractelement %x[%c0 : i32] : vector<8xf32>
    %x1 = llvm.extractelement %x[%c1 : i32] : vector<8xf32>
    %x2 = llvm.extractelement %x[%c2 : i32] : vector<8xf32>
    %x3 = llvm.extractelement %x[%c3 : i32] : vector<8xf32>
    %x4 = llvm.extractelement %x[%c4 : i32] : vector<8xf32>
    %x5 = llvm.extractelement %x[%c5 : i32] : vector<8xf32>
    %x6 = llvm.extractelement %x[%c6 : i32] : vector<8xf32>
    %x7 = llvm.extractelement %x[%c7 : i32] : vector<8xf32>
    %s0 = llvm.fadd %sum, %x0 {fastmathFlags = #llvm.fastmath<reassoc>} : f32
    %s1 = llvm.fadd %s0, %x1 {fastmathFlags = #llvm.fastmath<reassoc>} : f32
    %s2 = llvm.fadd %s1, %x2 {fastmathFlags = #llvm.fastmath<reassoc>} : f32
    %s3 = llvm.fadd %s2, %x3 {fastmathFlags = #llvm.fastmath<reassoc>} : f32
    %s4 = llvm.fadd %s3, %x4 {fastmathFlags = #llvm.fastmath<reassoc>} : f32
    %s5 = llvm.fadd %s4, %x5 {fastmathFlags = #llvm.fastmath<reassoc>} : f32
    %s6 = llvm.fadd %s5, %x6 {fastmathFlags = #llvm.fastmath<reassoc>} : f32
    %s7 = llvm.fadd %s6, %x7 {fastmathFlags = #llvm.fastmath<reassoc>} : f32
    %t0 = llvm.fadd %other, %x0 : f32
    %t1 = llvm.fadd %t0, %x1 : f32
    %t2 = llvm.fadd %t1, %x2 : f32
    %t3 = llvm.fadd %t2, %x3 : f32
    %t4 = llvm.fadd %t3, %x4 : f32
    %t5 = llvm.fadd %t4, %x5 : f32
    %t6 = llvm.fadd %t5, %x6 : f32
    rocdl.s.barrier
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %s7, %t6 : i32, f32, f32), ^end
  ^end:
    llvm.return
  }
}

// -----

// gfx950 has no pairs, and what MFMAs hide needs none.

// CHECK-LABEL: gpu.module @without
// CHECK-NOT:   vector<2xf32>
// CHECK:       llvm.return
gpu.module @without attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%n: i32, %w: vector<4xf32>) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %id = rocdl.workitem.id.x : i32
    %lane = llvm.sitofp %id : i32 to f32
    %start = llvm.insertelement %lane, %w[%c0 : i32] : vector<4xf32>
    llvm.br ^body(%c0, %start : i32, vector<4xf32>)
  ^body(%i: i32, %x: vector<4xf32>):
    %x0 = llvm.extractelement %x[%c0 : i32] : vector<4xf32>
    %x1 = llvm.extractelement %x[%c1 : i32] : vector<4xf32>
    %a0 = llvm.fmul %x0, %lane : f32
    %a1 = llvm.fmul %x1, %lane : f32
    %y0 = llvm.insertelement %a0, %x[%c0 : i32] : vector<4xf32>
    %y1 = llvm.insertelement %a1, %y0[%c1 : i32] : vector<4xf32>
    rocdl.s.barrier
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %y1 : i32, vector<4xf32>), ^end
  ^end:
    llvm.return
  }
}

// -----

// The last op of a stage in front of a barrier is in a pair: the remark is there still.

// CHECK-LABEL: gpu.module @last
// CHECK-COUNT-2: llvm.intr.fma({{.*}}) : (vector<2xf32>, vector<2xf32>, vector<2xf32>)
// CHECK-NOT:   llvm.intr.fma
// CHECK:       rocdl.s.barrier
// REMARK:      2 pairs of f32 in a stage whose vector instructions take 16 cycles more than its MFMAs hide
gpu.module @last attributes {kvbuffer.target = "gfx942"} {
  llvm.func @kernel(%n: i32, %a: vector<4xi16>, %c: vector<16xf32>, %p: f32) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %c3 = llvm.mlir.constant(3 : i32) : i32
    llvm.br ^body(%c0, %c : i32, vector<16xf32>)
  ^body(%i: i32, %acc: vector<16xf32>):
    %s0 = llvm.extractelement %acc[%c0 : i32] : vector<16xf32>
    %s1 = llvm.extractelement %acc[%c1 : i32] : vector<16xf32>
    %s2 = llvm.extractelement %acc[%c2 : i32] : vector<16xf32>
    %s3 = llvm.extractelement %acc[%c3 : i32] : vector<16xf32>
    %f0 = llvm.intr.fma(%s0, %p, %p) : (f32, f32, f32) -> f32
    %f1 = llvm.intr.fma(%s1, %p, %p) : (f32, f32, f32) -> f32
    %f2 = llvm.intr.fma(%s2, %p, %p) : (f32, f32, f32) -> f32
    %f3 = llvm.intr.fma(%s3, %p, %p) : (f32, f32, f32) -> f32
    rocdl.s.barrier
    %v0 = llvm.insertelement %f0, %acc[%c0 : i32] : vector<16xf32>
    %v1 = llvm.insertelement %f1, %v0[%c1 : i32] : vector<16xf32>
    %v2 = llvm.insertelement %f2, %v1[%c2 : i32] : vector<16xf32>
    %v3 = llvm.insertelement %f3, %v2[%c3 : i32] : vector<16xf32>
    %m = rocdl.mfma.f32.32x32x8bf16.1k %a, %a, %v3, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %m : i32, vector<16xf32>), ^end
  ^end:
    llvm.return
  }
}
