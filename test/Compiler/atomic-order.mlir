// Atomic operations keep their order in PTX: LLVM's backend drops it, fences do
// not get lost.
// RUN: kvbuf-compile %s --emit=ptx --ptxas=none -o - | FileCheck %s

module attributes {kvbuffer.target = "sm_90"} {
  gpu.module @kernels {
    // CHECK: .entry count
    llvm.func @count(%q: !llvm.ptr<1>, %o: !llvm.ptr<1>, %n: i32) attributes {
        gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [128, 1, 1],
          grid = [ceildiv(batch, 128), 1, 1],
          dynamic_shared_bytes = 0,
          args = [<pointer "q">, <pointer "o">, <size batch>]>,
        kvbuffer.tensors = [
          #kvbuffer.tensor<"q" : i32[batch], read>,
          #kvbuffer.tensor<"o" : i32[batch], write>]} {
      %one = llvm.mlir.constant(1 : i32) : i32
      // CHECK-NOT: fence
      // CHECK: st.global
      // CHECK: fence.acq_rel.gpu
      // CHECK-NEXT: atom.global.add
      // CHECK-NEXT: fence.acq_rel.gpu
      llvm.store %one, %q : i32, !llvm.ptr<1>
      %a = llvm.atomicrmw add %o, %one syncscope("device") acq_rel : !llvm.ptr<1>, i32
      llvm.store %a, %q : i32, !llvm.ptr<1>
      // CHECK: fence.acq_rel.cta
      // CHECK-NEXT: atom.global.add
      // CHECK-NOT: fence
      // CHECK: atom.global.add
      // CHECK-NOT: fence
      // CHECK: ret
      %b = llvm.atomicrmw add %o, %one syncscope("block") release : !llvm.ptr<1>, i32
      llvm.store %b, %q : i32, !llvm.ptr<1>
      %c = llvm.atomicrmw add %o, %one syncscope("device") monotonic : !llvm.ptr<1>, i32
      llvm.store %c, %q : i32, !llvm.ptr<1>
      llvm.return
    }
  }
}
