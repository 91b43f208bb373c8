// Patterns that follow from counts and data flow.

// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(llvm.func(kvbuf-schedule-groups)))" | FileCheck %s
// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(llvm.func(kvbuf-schedule-groups)))" --remark-format=emitRemark --remarks-filter=kvbuf-schedule-groups 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Four MFMAs of 32 cycles, 24 of which leave room; four exponentials of 8 cycles
// that are ready at once, then twelve sums of 4 cycles that use them: 80 cycles,
// an even share of 20. One exponential more would not fit beside the first two
// of a slot, and no sum is ready before its exponential, so: 2 exponentials and
// 1 sum, the same, and then 5 sums each.
//
// CHECK-LABEL: gpu.module @even
// CHECK: rocdl.s.barrier
// CHECK-NEXT: rocdl.sched.barrier 0
// CHECK-COUNT-4: rocdl.mfma
// CHECK-COUNT-12: llvm.fadd
// CHECK-NEXT: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 1024, 2, 0
// CHECK-NEXT: rocdl.sched.group.barrier 2, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 1024, 2, 0
// CHECK-NEXT: rocdl.sched.group.barrier 2, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 2, 5, 0
// CHECK-NEXT: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 2, 5, 0
// CHECK-NEXT: rocdl.sched.barrier 0
// CHECK-NEXT: rocdl.s.barrier
// CHECK-NEXT: rocdl.sched.barrier 0
// REMARK: remark: {{.*}}4 MFMAs; 80 cycles of vector instructions beside them, 0 exposed
gpu.module @even attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%n: i32, %a: vector<8xbf16>, %c: vector<16xf32>, %p: f32, %q: f32, %r: f32, %s: f32) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    llvm.br ^body(%c0, %p, %c : i32, f32, vector<16xf32>)
  ^body(%i: i32, %x: f32, %acc: vector<16xf32>):
    rocdl.s.barrier
    %m0 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %acc, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m1 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %m0, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m2 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %m1, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m3 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %m2, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %e0 = rocdl.exp2 %x f32 -> f32
    %e1 = rocdl.exp2 %q f32 -> f32
    %e2 = rocdl.exp2 %r f32 -> f32
    %e3 = rocdl.exp2 %s f32 -> f32
    %s0 = llvm.fadd %e0, %e1 : f32
    %s1 = llvm.fadd %s0, %e2 : f32
    %s2 = llvm.fadd %s1, %e3 : f32
    %s3 = llvm.fadd %s2, %e0 : f32
    %s4 = llvm.fadd %s3, %e0 : f32
    %s5 = llvm.fadd %s4, %e0 : f32
    %s6 = llvm.fadd %s5, %e0 : f32
    %s7 = llvm.fadd %s6, %e0 : f32
    %s8 = llvm.fadd %s7, %e0 : f32
    %s9 = llvm.fadd %s8, %e0 : f32
    %s10 = llvm.fadd %s9, %e0 : f32
    %s11 = llvm.fadd %s10, %e0 : f32
    rocdl.s.barrier
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %s11, %m3 : i32, f32, vector<16xf32>), ^exit
  ^exit:
    llvm.return
  }
}

// -----

// What follows from another class of its slot is asked for behind it. Beside the first MFMA
// are a product and sums that follow from it, and one exponential; beside the second, the
// exponential of what was summed before, then two sums, and the exponential of one of these,
// which would stand in front of it with all exponentials of the slot together.
//
// CHECK-LABEL: gpu.module @follows
// CHECK: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 2, 4, 0
// CHECK-NEXT: rocdl.sched.group.barrier 1024, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 1024, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 2, 2, 0
// CHECK-NEXT: rocdl.sched.group.barrier 1024, 1, 0
gpu.module @follows attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%n: i32, %a: vector<8xbf16>, %c: vector<16xf32>, %p: f32, %q: f32, %r: f32, %s: f32) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    llvm.br ^body(%c0, %p, %c : i32, f32, vector<16xf32>)
  ^body(%i: i32, %x: f32, %acc: vector<16xf32>):
    rocdl.s.barrier
    %m0 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %acc, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m1 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %m0, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %o = llvm.fmul %x, %p : f32
    %o1 = llvm.fadd %o, %q : f32
    %f0 = llvm.fadd %o1, %q : f32
    %e0 = rocdl.exp2 %f0 f32 -> f32
    %f1 = llvm.fadd %o1, %r : f32
    %e1 = rocdl.exp2 %f1 f32 -> f32
    %f2 = llvm.fadd %o1, %s : f32
    %e2 = rocdl.exp2 %f2 f32 -> f32
    %s0 = llvm.fadd %e0, %e1 : f32
    %s1 = llvm.fadd %s0, %e2 : f32
    rocdl.s.barrier
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %s1, %m1 : i32, f32, vector<16xf32>), ^exit
  ^exit:
    llvm.return
  }
}

// -----

// What uses an MFMA's result is not asked for beside it nor beside the next one:
// the unit is done with it only then. An MFMA that needs vector work has it in
// front of it, where nothing hides it. The second piece, behind a branch, has its
// groups in front of the terminator.
//
// CHECK-LABEL: gpu.module @waits
// CHECK: ^bb1
// CHECK: rocdl.sched.group.barrier 2, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 2, 1, 0
// CHECK-NEXT: llvm.cond_br
// REMARK: remark: {{.*}}3 MFMAs; 4 cycles of vector instructions beside them, 4 exposed
gpu.module @waits attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%n: i32, %a: vector<8xbf16>, %c: vector<16xf32>, %p: vector<8xbf16>) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %f0 = llvm.mlir.constant(0.0 : f32) : f32
    llvm.br ^body(%c0, %f0, %c : i32, f32, vector<16xf32>)
  ^body(%i: i32, %x: f32, %acc: vector<16xf32>):
    %y = llvm.fadd %x, %x : f32
    %start = llvm.insertelement %y, %acc[%c0 : i32] : vector<16xf32>
    %m0 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %start, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m1 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %acc, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m2 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %m1, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %z = llvm.extractelement %m0[%c0 : i32] : vector<16xf32>
    %s = llvm.fmul %z, %z : f32
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %s, %m2 : i32, f32, vector<16xf32>), ^exit
  ^exit:
    llvm.return
  }
}

// -----

// A chain of maxima becomes half as many of three operands; scalar work of the
// loop counts as none. On gfx942 an exponential takes 16 cycles of the 24. Outside
// of loops nothing changes.
//
// CHECK-LABEL: gpu.module @maxima
// CHECK-NOT: sched
// CHECK: ^bb1
// CHECK: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 1024, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 2, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 2, 1, 0
// CHECK-NEXT: llvm.cond_br
gpu.module @maxima attributes {kvbuffer.target = "gfx942"} {
  llvm.func @kernel(%n: i32, %a: vector<4xi16>, %c: vector<16xf32>, %p: f32, %q: f32) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %out = rocdl.mfma.f32.32x32x8bf16.1k %a, %a, %c, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %outside = rocdl.exp2 %p f32 -> f32
    llvm.br ^body(%c0, %p, %out : i32, f32, vector<16xf32>)
  ^body(%i: i32, %x: f32, %acc: vector<16xf32>):
    %m0 = rocdl.mfma.f32.32x32x8bf16.1k %a, %a, %acc, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m1 = rocdl.mfma.f32.32x32x8bf16.1k %a, %a, %m0, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %e = rocdl.exp2 %x f32 -> f32
    %x0 = llvm.intr.maxnum(%e, %p) : (f32, f32) -> f32
    %x1 = llvm.intr.maxnum(%x0, %q) : (f32, f32) -> f32
    %x2 = llvm.intr.maxnum(%x1, %outside) : (f32, f32) -> f32
    %x3 = llvm.intr.maxnum(%x2, %x) : (f32, f32) -> f32
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %x3, %m1 : i32, f32, vector<16xf32>), ^exit
  ^exit:
    llvm.return
  }
}

// -----

// Nothing to interleave, a pattern by hand, and a chip without MFMAs.
//
// CHECK-LABEL: gpu.module @nothing
// CHECK-NOT: rocdl.sched
// CHECK-LABEL: gpu.module @kept
// CHECK-COUNT-1: rocdl.sched.group.barrier
// CHECK-NOT: rocdl.sched
// CHECK-LABEL: gpu.module @other
// CHECK-NOT: sched
// REMARK: remark: {{.*}}1 MFMAs with nothing to run beside them
gpu.module @nothing attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%n: i32, %a: vector<8xbf16>, %c: vector<16xf32>) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    llvm.br ^body(%c : vector<16xf32>)
  ^body(%acc: vector<16xf32>):
    %m0 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %acc, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    llvm.br ^body(%m0 : vector<16xf32>)
  }
}
gpu.module @kept attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%n: i32, %a: vector<8xbf16>, %c: vector<16xf32>, %p: f32) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    llvm.br ^body(%c, %p : vector<16xf32>, f32)
  ^body(%acc: vector<16xf32>, %x: f32):
    %m0 = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %acc, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %e = rocdl.exp2 %x f32 -> f32
    rocdl.sched.group.barrier 8, 1, 0
    llvm.br ^body(%m0, %e : vector<16xf32>, f32)
  }
}
gpu.module @other attributes {kvbuffer.target = "sm_80"} {
  llvm.func @kernel() attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    llvm.br ^body
  ^body:
    nvvm.barrier0
    llvm.br ^body
  }
}

// -----

// Beside one MFMA there are 24 cycles. Of 22 sums, more than three and a half times
// that, it has its share; but of very many sums there is no pattern: some stand
// beside it in any order, and LLVM would take long to find one.
//
// CHECK-LABEL: gpu.module @enough
// CHECK: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 2, 6, 0
// CHECK-LABEL: gpu.module @plenty
// CHECK-NOT: sched
// REMARK: remark: {{.*}}1 MFMAs; 24 cycles of vector instructions beside them, 64 exposed
// REMARK: remark: {{.*}}1 MFMAs with more than enough to run beside them
gpu.module @enough attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%n: i32, %a: vector<8xbf16>, %c: vector<16xf32>, %p: f32) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    llvm.br ^body(%c0, %p, %c : i32, f32, vector<16xf32>)
  ^body(%i: i32, %x: f32, %acc: vector<16xf32>):
    %m = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %acc, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %s0 = llvm.fadd %x, %p : f32
    %s1 = llvm.fadd %s0, %p : f32
    %s2 = llvm.fadd %s1, %p : f32
    %s3 = llvm.fadd %s2, %p : f32
    %s4 = llvm.fadd %s3, %p : f32
    %s5 = llvm.fadd %s4, %p : f32
    %s6 = llvm.fadd %s5, %p : f32
    %s7 = llvm.fadd %s6, %p : f32
    %s8 = llvm.fadd %s7, %p : f32
    %s9 = llvm.fadd %s8, %p : f32
    %s10 = llvm.fadd %s9, %p : f32
    %s11 = llvm.fadd %s10, %p : f32
    %s12 = llvm.fadd %s11, %p : f32
    %s13 = llvm.fadd %s12, %p : f32
    %s14 = llvm.fadd %s13, %p : f32
    %s15 = llvm.fadd %s14, %p : f32
    %s16 = llvm.fadd %s15, %p : f32
    %s17 = llvm.fadd %s16, %p : f32
    %s18 = llvm.fadd %s17, %p : f32
    %s19 = llvm.fadd %s18, %p : f32
    %s20 = llvm.fadd %s19, %p : f32
    %s21 = llvm.fadd %s20, %p : f32
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %s21, %m : i32, f32, vector<16xf32>), ^exit
  ^exit:
    llvm.return
  }
}

// -----

gpu.module @plenty attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%n: i32, %a: vector<8xbf16>, %c: vector<16xf32>, %p: vector<512xf32>) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    llvm.br ^body(%c0, %p, %c : i32, vector<512xf32>, vector<16xf32>)
  ^body(%i: i32, %x: vector<512xf32>, %acc: vector<16xf32>):
    %m = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %acc, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %s0 = llvm.fadd %x, %p : vector<512xf32>
    %s1 = llvm.fadd %s0, %p : vector<512xf32>
    %s2 = llvm.fadd %s1, %p : vector<512xf32>
    %s3 = llvm.fadd %s2, %p : vector<512xf32>
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %s3, %m : i32, vector<512xf32>, vector<16xf32>), ^exit
  ^exit:
    llvm.return
  }
}

// -----

// Halves of registers that are put together before the barrier, for MFMAs behind it: LLVM
// puts them together behind it, which is asked for first. Two pairs of one operand; of
// the other, whose halves lie together, nothing. Six sums are all that an MFMA of 32 cycles
// leaves cycles for.
//
// CHECK-LABEL: gpu.module @late
// CHECK: llvm.fadd
// CHECK: rocdl.sched.group.barrier 2, 2, 0
// CHECK-NEXT: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 2, 6, 0
// CHECK-NOT: sched.group
// CHECK-LABEL: gpu.module @late_with_room
// CHECK: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 2, 5, 0
// CHECK-NOT: sched.group
gpu.module @late attributes {kvbuffer.target = "gfx942"} {
  llvm.func @kernel(%n: i32, %a: vector<4xi16>, %b: vector<8xi16>, %c: vector<16xf32>, %p: f32) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    llvm.br ^body(%c0, %p, %c : i32, f32, vector<16xf32>)
  ^body(%i: i32, %x: f32, %acc: vector<16xf32>):
    %odd = llvm.shufflevector %b, %b [1, 3, 5, 7] : vector<8xi16>
    %low = llvm.shufflevector %b, %b [0, 1, 2, 3] : vector<8xi16>
    rocdl.s.barrier
    %m = rocdl.mfma.f32.32x32x8bf16.1k %low, %odd, %acc, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %s0 = llvm.fadd %x, %p : f32
    %s1 = llvm.fadd %s0, %p : f32
    %s2 = llvm.fadd %s1, %p : f32
    %s3 = llvm.fadd %s2, %p : f32
    %s4 = llvm.fadd %s3, %p : f32
    %s5 = llvm.fadd %s4, %p : f32
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %s5, %m : i32, f32, vector<16xf32>), ^exit
  ^exit:
    llvm.return
  }
}

// -----

gpu.module @late_with_room attributes {kvbuffer.target = "gfx942"} {
  llvm.func @kernel(%n: i32, %a: vector<4xi16>, %b: vector<8xi16>, %c: vector<16xf32>, %p: f32) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    llvm.br ^body(%c0, %p, %c : i32, f32, vector<16xf32>)
  ^body(%i: i32, %x: f32, %acc: vector<16xf32>):
    %odd = llvm.shufflevector %b, %b [1, 3, 5, 7] : vector<8xi16>
    rocdl.s.barrier
    %m = rocdl.mfma.f32.32x32x8bf16.1k %a, %odd, %acc, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %s0 = llvm.fadd %x, %p : f32
    %s1 = llvm.fadd %s0, %p : f32
    %s2 = llvm.fadd %s1, %p : f32
    %s3 = llvm.fadd %s2, %p : f32
    %s4 = llvm.fadd %s3, %p : f32
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %s4, %m : i32, f32, vector<16xf32>), ^exit
  ^exit:
    llvm.return
  }
}

// -----

// What is read from LDS element by element is asked for in parts: before an MFMA what
// the next but one needs, not all of it before the first.
//
// CHECK-LABEL: gpu.module @elements
// CHECK: rocdl.sched.group.barrier 256, 6, 0
// CHECK-NEXT: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 2, 5, 0
// CHECK-NEXT: rocdl.sched.group.barrier 256, 2, 0
// CHECK-NEXT: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 256, 2, 0
// CHECK-NEXT: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT: rocdl.sched.group.barrier 8, 1, 0
// CHECK-NOT: rocdl.sched.group.barrier
// REMARK: remark: {{.*}}5 MFMAs; 20 cycles of vector instructions beside them, 0 exposed
gpu.module @elements attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%n: i32, %a: vector<8xbf16>, %c: vector<16xf32>, %p: f32, %lds: !llvm.ptr<3>) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    llvm.br ^body(%c0, %p, %c : i32, f32, vector<16xf32>)
  ^body(%i: i32, %x: f32, %acc: vector<16xf32>):
    rocdl.s.barrier
    %p00 = llvm.getelementptr %lds[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, bf16
    %l00 = llvm.load %p00 : !llvm.ptr<3> -> bf16
    %p01 = llvm.getelementptr %lds[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, bf16
    %u01 = llvm.load %p01 : !llvm.ptr<3> -> vector<1xbf16>
    %l01 = llvm.extractelement %u01[%c0 : i32] : vector<1xbf16>
    %v0 = llvm.insertelement %l00, %a[%c0 : i32] : vector<8xbf16>
    %w0 = llvm.insertelement %l01, %v0[%c1 : i32] : vector<8xbf16>
    %p10 = llvm.getelementptr %lds[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, bf16
    %l10 = llvm.load %p10 : !llvm.ptr<3> -> bf16
    %p11 = llvm.getelementptr %lds[96] : (!llvm.ptr<3>) -> !llvm.ptr<3>, bf16
    %u11 = llvm.load %p11 : !llvm.ptr<3> -> vector<1xbf16>
    %l11 = llvm.extractelement %u11[%c0 : i32] : vector<1xbf16>
    %v1 = llvm.insertelement %l10, %a[%c0 : i32] : vector<8xbf16>
    %w1 = llvm.insertelement %l11, %v1[%c1 : i32] : vector<8xbf16>
    %p20 = llvm.getelementptr %lds[128] : (!llvm.ptr<3>) -> !llvm.ptr<3>, bf16
    %l20 = llvm.load %p20 : !llvm.ptr<3> -> bf16
    %p21 = llvm.getelementptr %lds[160] : (!llvm.ptr<3>) -> !llvm.ptr<3>, bf16
    %u21 = llvm.load %p21 : !llvm.ptr<3> -> vector<1xbf16>
    %l21 = llvm.extractelement %u21[%c0 : i32] : vector<1xbf16>
    %v2 = llvm.insertelement %l20, %a[%c0 : i32] : vector<8xbf16>
    %w2 = llvm.insertelement %l21, %v2[%c1 : i32] : vector<8xbf16>
    %p30 = llvm.getelementptr %lds[192] : (!llvm.ptr<3>) -> !llvm.ptr<3>, bf16
    %l30 = llvm.load %p30 : !llvm.ptr<3> -> bf16
    %p31 = llvm.getelementptr %lds[224] : (!llvm.ptr<3>) -> !llvm.ptr<3>, bf16
    %u31 = llvm.load %p31 : !llvm.ptr<3> -> vector<1xbf16>
    %l31 = llvm.extractelement %u31[%c0 : i32] : vector<1xbf16>
    %v3 = llvm.insertelement %l30, %a[%c0 : i32] : vector<8xbf16>
    %w3 = llvm.insertelement %l31, %v3[%c1 : i32] : vector<8xbf16>
    %p40 = llvm.getelementptr %lds[256] : (!llvm.ptr<3>) -> !llvm.ptr<3>, bf16
    %l40 = llvm.load %p40 : !llvm.ptr<3> -> bf16
    %p41 = llvm.getelementptr %lds[288] : (!llvm.ptr<3>) -> !llvm.ptr<3>, bf16
    %u41 = llvm.load %p41 : !llvm.ptr<3> -> vector<1xbf16>
    %l41 = llvm.extractelement %u41[%c0 : i32] : vector<1xbf16>
    %v4 = llvm.insertelement %l40, %a[%c0 : i32] : vector<8xbf16>
    %w4 = llvm.insertelement %l41, %v4[%c1 : i32] : vector<8xbf16>
    %m0 = rocdl.mfma.f32.32x32x16.bf16 %w0, %a, %acc, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m1 = rocdl.mfma.f32.32x32x16.bf16 %w1, %a, %m0, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m2 = rocdl.mfma.f32.32x32x16.bf16 %w2, %a, %m1, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m3 = rocdl.mfma.f32.32x32x16.bf16 %w3, %a, %m2, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m4 = rocdl.mfma.f32.32x32x16.bf16 %w4, %a, %m3, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %s0 = llvm.fadd %x, %x : f32
    %s1 = llvm.fadd %s0, %x : f32
    %s2 = llvm.fadd %s1, %x : f32
    %s3 = llvm.fadd %s2, %x : f32
    %s4 = llvm.fadd %s3, %x : f32
    rocdl.s.barrier
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^body(%next, %s4, %m4 : i32, f32, vector<16xf32>), ^exit
  ^exit:
    llvm.return
  }
}
