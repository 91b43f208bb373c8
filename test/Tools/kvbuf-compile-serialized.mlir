// REQUIRES: ptxas

// A product whose result is read before its wait: ptxas puts one of its own in
// front, and the compiler passes its note on.

// RUN: kvbuf-compile %s --ptxas=%ptxas -o %t.kvbuf 2>&1 | FileCheck %s
// CHECK: warning: ptxas: (C7517) warpgroup.wait is injected

module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @kernels {
    llvm.func @early(%o: !llvm.ptr<1>, %a: i64, %b: i64) attributes {
        gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [128, 1, 1],
          grid = [1, 1, 1],
          dynamic_shared_bytes = 0,
          args = [<pointer "o">, <stride "o", dim = 0>, <stride "o", dim = 0>]>,
        kvbuffer.tensors = [
          #kvbuffer.tensor<"o" : f32[batch, 4], write>]} {
      %s = kvbuffer.wgmma a_desc(%a) b(%b) {a_steps = array<i64: 0, 2>, b_steps = array<i64: 0, 2>, element = bf16, n = 8 : i64} : vector<4xf32>
      %two = llvm.mlir.constant(dense<2.0> : vector<4xf32>) : vector<4xf32>
      %early = llvm.fmul %s, %two : vector<4xf32>
      %t = kvbuffer.wgmma c(%s : vector<4xf32>) a_desc(%a) b(%b) {a_steps = array<i64: 0, 2>, b_steps = array<i64: 0, 2>, element = bf16, n = 8 : i64} : vector<4xf32>
      %r = kvbuffer.wgmma_wait %t {pending = 0 : i64} : vector<4xf32>
      %sum = llvm.fadd %r, %early : vector<4xf32>
      llvm.store %sum, %o : vector<4xf32>, !llvm.ptr<1>
      llvm.return
    }
  }
}
