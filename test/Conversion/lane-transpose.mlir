// Words that are transposed among the lanes of a warp: one op down to the target
// stage, movmatrix in PTX.

// RUN: kvbuf-compile %s --target=sm_80 --emit=asm | FileCheck %s
// RUN: kvbuf-compile %s --target=sm_80 --emit=target | FileCheck %s --check-prefix=TARGET

// CHECK-LABEL: .entry turn(
// CHECK:       movmatrix.sync.aligned.m8n8.trans.b16 %r{{[0-9]+}}, %r{{[0-9]+}};
// TARGET:      kvbuffer.lane_transpose

module attributes {gpu.container_module, kvbuffer.target = "sm_80"} {
  gpu.module @m {
    llvm.func @turn(%out: !llvm.ptr<1>) attributes {nvvm.kernel, gpu.kernel, kvbuffer.phase = #kvbuffer.phase<target>} {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %turned = kvbuffer.lane_transpose %t
      %at = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %turned, %at : i32, !llvm.ptr<1>
      llvm.return
    }
  }
}
