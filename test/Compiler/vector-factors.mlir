// A number that a loop multiplies many constants by is in a register of each lane there: a
// multiply-add takes each constant as it is, which it does not beside a scalar register. For
// a few constants LLVM keeps it where it is.
// RUN: kvbuf-compile %s --emit=llvm -o - | FileCheck %s
// RUN: kvbuf-compile %s --emit=asm -o - | FileCheck %s --check-prefix=ASM

module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @kernels {
    // CHECK-LABEL: define amdgpu_kernel void @scaled(
    // ASM-LABEL:   scaled:
    llvm.func @scaled(%p: !llvm.ptr<1>, %n: i32) attributes {
        gpu.kernel, rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 64, 1, 1>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [64, 1, 1],
          grid = [batch, 1, 1],
          dynamic_shared_bytes = 0,
          args = [<pointer "p">, <size batch>]>,
        kvbuffer.tensors = [
          #kvbuffer.tensor<"p" : f32[batch], write>]} {
      %zero = llvm.mlir.constant(0 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %c3 = llvm.mlir.constant(3.0 : f32) : f32
      %c5 = llvm.mlir.constant(5.0 : f32) : f32
      %c6 = llvm.mlir.constant(6.0 : f32) : f32
      %c7 = llvm.mlir.constant(7.0 : f32) : f32
      %c9 = llvm.mlir.constant(9.0 : f32) : f32
      %c10 = llvm.mlir.constant(10.0 : f32) : f32
      %c11 = llvm.mlir.constant(11.0 : f32) : f32
      %c12 = llvm.mlir.constant(12.0 : f32) : f32
      // CHECK: %[[MANY:.*]] = load float
      // CHECK: %[[HELD:.*]] = call float asm "", "=v,0"(float %[[MANY]])
      // CHECK: %[[FEW:.*]] = load float
      // CHECK-NOT: asm
      %many = llvm.load %p invariant : !llvm.ptr<1> -> f32
      %second = llvm.getelementptr %p[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
      %few = llvm.load %second invariant : !llvm.ptr<1> -> f32
      %lane = rocdl.workitem.id.x : i32
      %at = llvm.getelementptr %p[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.br ^loop(%zero : i32)
    // CHECK-COUNT-8: call float @llvm.fma.f32(float {{.*}}, float %[[HELD]], float
    // CHECK-COUNT-7: call float @llvm.fma.f32(float {{.*}}, float %[[FEW]], float
    // ASM-COUNT-8: v_fm{{(ac_f32_e32 v[0-9]+, 0x|amk)}}
    ^loop(%i: i32):
      %x = llvm.load volatile %at : !llvm.ptr<1> -> f32
      %a0 = llvm.intr.fma(%c3, %many, %x) : (f32, f32, f32) -> f32
      %a1 = llvm.intr.fma(%c5, %many, %a0) : (f32, f32, f32) -> f32
      %a2 = llvm.intr.fma(%c6, %many, %a1) : (f32, f32, f32) -> f32
      %a3 = llvm.intr.fma(%c7, %many, %a2) : (f32, f32, f32) -> f32
      %a4 = llvm.intr.fma(%c9, %many, %a3) : (f32, f32, f32) -> f32
      %a5 = llvm.intr.fma(%c10, %many, %a4) : (f32, f32, f32) -> f32
      %a6 = llvm.intr.fma(%c11, %many, %a5) : (f32, f32, f32) -> f32
      %a7 = llvm.intr.fma(%c12, %many, %a6) : (f32, f32, f32) -> f32
      %b0 = llvm.intr.fma(%c3, %few, %a7) : (f32, f32, f32) -> f32
      %b1 = llvm.intr.fma(%c5, %few, %b0) : (f32, f32, f32) -> f32
      %b2 = llvm.intr.fma(%c6, %few, %b1) : (f32, f32, f32) -> f32
      %b3 = llvm.intr.fma(%c7, %few, %b2) : (f32, f32, f32) -> f32
      %b4 = llvm.intr.fma(%c9, %few, %b3) : (f32, f32, f32) -> f32
      %b5 = llvm.intr.fma(%c10, %few, %b4) : (f32, f32, f32) -> f32
      %b6 = llvm.intr.fma(%c11, %few, %b5) : (f32, f32, f32) -> f32
      llvm.store volatile %b6, %at : f32, !llvm.ptr<1>
      %j = llvm.add %i, %one : i32
      %more = llvm.icmp "slt" %j, %n : i32
      llvm.cond_br %more, ^loop(%j : i32), ^done
    ^done:
      llvm.return
    }
  }
}
