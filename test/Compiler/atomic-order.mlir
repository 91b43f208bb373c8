// Atomic operations keep their order in PTX: LLVM's backend drops it, fences do
// not get lost.
// RUN: kvbuf-compile %s --emit=ptx --ptxas=none -o - | FileCheck %s

module attributes {kvbuffer.target = "sm_90"} {
  gpu.module @kernels {
    // CHECK: .entry count
    llvm.func @count(%q: !llvm.ptr<1>, %o: !llvm.ptr<1>, %n: i32) attributes {
        gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = {
          block = [128 : i32, 1 : i32, 1 : i32],
          grid = [{ceildiv = ["batch", 128 : i32]}, 1 : i32, 1 : i32],
          dynamic_shared_bytes = 0 : i32,
          args = [{kind = "pointer", tensor = "q"},
                  {kind = "pointer", tensor = "o"},
                  {kind = "size", name = "batch"}]},
        kvbuffer.tensors = [
          {name = "q", dtype = "i32", shape = ["batch"], access = "read"},
          {name = "o", dtype = "i32", shape = ["batch"], access = "write"}]} {
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
