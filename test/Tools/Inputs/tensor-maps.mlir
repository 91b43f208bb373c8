// Kernels at the target stage that do nothing: what their attributes say of
// tensor maps, a counter, a persistent grid and an alternative.
#problem = #kvbuffer.problem<op = "copy">
#tensors = [
  #kvbuffer.tensor<"k" : bf16[batch, seq_k, 8, 128], read>]
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @kernels {
    llvm.func @mapped(%k: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>,
                                     llvm.align = 64 : i64, nvvm.grid_constant},
                      %counter: !llvm.ptr<1>, %n: i32) attributes {
        gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 384>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.problem = #problem, kvbuffer.tensors = #tensors,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [384, 1, 1],
          grid = [min(product(sms, 1), product(ceildiv(seq_k, 128), batch, 8)), 1, 1],
          dynamic_shared_bytes = 200000,
          requires = "tensor_maps",
          instead = "portable",
          args = [<tensor_map "k", box = [64, 128, 1, 1], dims = [3, 1, 2, 0], swizzle = 128>, <launch_counter>, <size sms>]>} {
      llvm.return
    }
    llvm.func @portable(%k: !llvm.ptr<1>) attributes {
        gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 128>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.problem = #problem, kvbuffer.tensors = #tensors,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [128, 1, 1],
          grid = [seq_k, 8, batch],
          dynamic_shared_bytes = 0,
          args = [<pointer "k">]>} {
      llvm.return
    }
  }
}
