// A copy of the tensor memory accelerator, which sm_80 does not have.
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @kernels {
    llvm.func @copy(%to: !llvm.ptr<7>, %from: !llvm.ptr<1>, %barrier: !llvm.ptr<3>, %n: i32)
        attributes {nvvm.kernel, kvbuffer.phase = #kvbuffer.phase<target>,
          kvbuffer.kernel = {block = [32 : i32, 1 : i32, 1 : i32],
            grid = [1 : i32, 1 : i32, 1 : i32],
            dynamic_shared_bytes = 0 : i32, args = []},
          kvbuffer.tensors = []} {
      nvvm.cp.async.bulk.shared.cluster.global %to, %from, %barrier, %n
        : !llvm.ptr<7>, !llvm.ptr<1>
      llvm.return
    }
  }
}
