// Two loops at the target stage, one in the other, written by hand for the tests
// of the report. Each outer iteration computes one product and then walks the
// inner loop, whose iterations compute two and, rarely, scale the sums.
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @kernels {
    llvm.func @nest(%q: !llvm.ptr<1>, %o: !llvm.ptr<1>, %count: i32) attributes {
        gpu.kernel, rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 64, 1, 1>,
        rocdl.flat_work_group_size = "64,64",
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [64, 1, 1],
          grid = [1, 1, 1],
          dynamic_shared_bytes = 0,
          args = [<pointer "q">, <pointer "o">, <size batch>]>,
        kvbuffer.tensors = [
          #kvbuffer.tensor<"q" : f32[batch], read>,
          #kvbuffer.tensor<"o" : f32[batch], write>]} {
      %c0 = llvm.mlir.constant(0 : i32) : i32
      %c1 = llvm.mlir.constant(1 : i32) : i32
      %half = llvm.mlir.constant(dense<0.5> : vector<4xf32>) : vector<4xf32>
      %zero = llvm.mlir.constant(dense<0.0> : vector<4xf32>) : vector<4xf32>
      %a = llvm.load %q : !llvm.ptr<1> -> vector<4xi16>
      llvm.br ^outer(%c0, %zero : i32, vector<4xf32>)
    ^outer(%i: i32, %s0: vector<4xf32>):
      %s1 = rocdl.mfma.f32.16x16x16bf16.1k %a, %a, %s0, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<4xf32>, i32, i32, i32) -> vector<4xf32>
      llvm.br ^inner(%c0, %s1 : i32, vector<4xf32>)
    ^inner(%j: i32, %t0: vector<4xf32>):
      %t1 = rocdl.mfma.f32.16x16x16bf16.1k %a, %a, %t0, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<4xf32>, i32, i32, i32) -> vector<4xf32>
      %t2 = rocdl.mfma.f32.16x16x16bf16.1k %a, %a, %t1, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<4xf32>, i32, i32, i32) -> vector<4xf32>
      %x = llvm.extractelement %t2[%c0 : i32] : vector<4xf32>
      %limit = llvm.mlir.constant(1.0e10 : f32) : f32
      %big = llvm.fcmp "ogt" %x, %limit : f32
      %vote = rocdl.ballot %big : i64
      %none = llvm.mlir.constant(0 : i64) : i64
      %any = llvm.icmp "ne" %vote, %none : i64
      llvm.cond_br %any weights([1, 1000]), ^scale, ^on(%t2 : vector<4xf32>)
    ^scale:
      %scaled = llvm.fmul %t2, %half : vector<4xf32>
      llvm.br ^on(%scaled : vector<4xf32>)
    ^on(%t3: vector<4xf32>):
      %j1 = llvm.add %j, %c1 : i32
      %more = llvm.icmp "slt" %j1, %i : i32
      llvm.cond_br %more, ^inner(%j1, %t3 : i32, vector<4xf32>), ^next
    ^next:
      %i1 = llvm.add %i, %c1 : i32
      %again = llvm.icmp "slt" %i1, %count : i32
      llvm.cond_br %again, ^outer(%i1, %t3 : i32, vector<4xf32>), ^exit
    ^exit:
      llvm.store %t3, %o : vector<4xf32>, !llvm.ptr<1>
      llvm.return
    }
  }
}
