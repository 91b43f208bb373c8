// Kernels at the target stage that do nothing: what their attributes say of
// tensor maps, a counter, a persistent grid and an alternative.
#problem = {op = "copy"}
#tensors = [
  {name = "k", dtype = "bf16", shape = ["batch", "seq_k", 8, 128],
   access = "read"}]
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @kernels {
    llvm.func @mapped(%k: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>,
                                     llvm.align = 64 : i64, nvvm.grid_constant},
                      %counter: !llvm.ptr<1>, %n: i32) attributes {
        gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 384>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.problem = #problem, kvbuffer.tensors = #tensors,
        kvbuffer.kernel = {
          block = [384, 1, 1],
          grid = [{min = [{product = ["sms", 1]},
                          {product = [{ceildiv = ["seq_k", 128]}, "batch", 8]}
                         ]}, 1, 1],
          dynamic_shared_bytes = 200000,
          requires = "tensor_maps", instead = "portable",
          args = [{kind = "tensor_map", tensor = "k", dims = [3, 1, 2, 0],
                   box = array<i64: 64, 128, 1, 1>, swizzle = 128},
                  {kind = "launch_counter"}, {kind = "size", name = "sms"}]}} {
      llvm.return
    }
    llvm.func @portable(%k: !llvm.ptr<1>) attributes {
        gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 128>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.problem = #problem, kvbuffer.tensors = #tensors,
        kvbuffer.kernel = {
          block = [128, 1, 1], grid = ["seq_k", 8, "batch"],
          dynamic_shared_bytes = 0,
          args = [{kind = "pointer", tensor = "k"}]}} {
      llvm.return
    }
  }
}
