// An instruction of sm_100, which sm_80 does not have.
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @kernels {
    llvm.func @wait() attributes {nvvm.kernel, kvbuffer.phase = #kvbuffer.phase<target>,
          kvbuffer.kernel = #kvbuffer.launch<
            block = [32, 1, 1],
            grid = [1, 1, 1],
            dynamic_shared_bytes = 0,
            args = []>,
          kvbuffer.tensors = []} {
      llvm.call_intrinsic "llvm.nvvm.tcgen05.wait.ld"() : () -> ()
      llvm.return
    }
  }
}
