// A kernel at the target stage, written by hand: o = 2^q, one element a thread.
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @kernels {
    llvm.func @exp2(%q: !llvm.ptr<1>, %o: !llvm.ptr<1>, %n: i32) attributes {
        gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [128, 1, 1],
          grid = [ceildiv(batch, 128), 1, 1],
          dynamic_shared_bytes = 0,
          args = [<pointer "q">, <pointer "o">, <size batch>]>,
        kvbuffer.tensors = [
          #kvbuffer.tensor<"q" : f32[batch], read>,
          #kvbuffer.tensor<"o" : f32[batch], write>]} {
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %block = nvvm.read.ptx.sreg.ctaid.x : i32
      %size = llvm.mlir.constant(128 : i32) : i32
      %base = llvm.mul %block, %size : i32
      %i = llvm.add %base, %tid : i32
      %in = llvm.icmp "slt" %i, %n : i32
      llvm.cond_br %in, ^body, ^exit
    ^body:
      %from = llvm.getelementptr %q[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %to = llvm.getelementptr %o[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %x = llvm.load %from : !llvm.ptr<1> -> f32
      %y = llvm.intr.exp2(%x) : (f32) -> f32
      llvm.store %y, %to : f32, !llvm.ptr<1>
      llvm.br ^exit
    ^exit:
      llvm.return
    }
  }
}
