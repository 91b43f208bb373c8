// A loop at the target stage, written by hand for the tests of the report: each
// iteration of a wave copies 1 KiB for the next one into LDS, waits for its own, and
// computes one product and two exponentials. `%count` is the number of
// iterations. The wait leaves one copy in flight: vmcnt(1), encoded on gfx9 as
// vm[3:0] | 7 << 4 | lgkm << 8 with lgkm = 15, "do not wait".
#domain = #llvm.alias_scope_domain<id = distinct[0]<>>
#copies = #llvm.alias_scope<id = distinct[1]<>, domain = #domain>
#reads = #llvm.alias_scope<id = distinct[2]<>, domain = #domain>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @kernels {
    llvm.mlir.global internal @lds() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4096 x i8>
    llvm.func @loop(%q: !llvm.ptr<1> {llvm.noalias}, %o: !llvm.ptr<1> {llvm.noalias}, %count: i32) attributes {
        gpu.kernel, rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 128, 1, 1>,
        rocdl.flat_work_group_size = "128,128",
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [128, 1, 1],
          grid = [1, 1, 1],
          dynamic_shared_bytes = 0,
          args = [<pointer "q">, <pointer "o">, <size batch>]>,
        kvbuffer.tensors = [
          #kvbuffer.tensor<"q" : f32[batch], read>,
          #kvbuffer.tensor<"o" : f32[batch], write>]} {
      %c0 = llvm.mlir.constant(0 : i32) : i32
      %c1 = llvm.mlir.constant(1 : i32) : i32
      %c4 = llvm.mlir.constant(4 : i32) : i32
      %c10 = llvm.mlir.constant(10 : i32) : i32
      %c16 = llvm.mlir.constant(16 : i32) : i32
      %stride = llvm.mlir.constant(0 : i16) : i16
      %bytes = llvm.mlir.constant(1048576 : i64) : i64
      %flags = llvm.mlir.constant(159744 : i32) : i32
      %zero = llvm.mlir.constant(dense<0.0> : vector<16xf32>) : vector<16xf32>
      %lds = llvm.mlir.addressof @lds : !llvm.ptr<3>
      %tid = rocdl.workitem.id.x : i32
      %from = llvm.shl %tid, %c4 : i32
      %c6 = llvm.mlir.constant(6 : i32) : i32
      %c11 = llvm.mlir.constant(11 : i32) : i32
      %c63 = llvm.mlir.constant(63 : i32) : i32
      %laneId = llvm.and %tid, %c63 : i32
      %laneByte = llvm.shl %laneId, %c4 : i32
      %waveOf = llvm.lshr %tid, %c6 : i32
      %wave = rocdl.readfirstlane %waveOf : i32
      %waveByte = llvm.shl %wave, %c11 : i32
      %mine = llvm.getelementptr %lds[%waveByte] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %rsrc = rocdl.make.buffer.rsrc %q, %stride, %bytes, %flags : !llvm.ptr<1> to !llvm.ptr<8>
      rocdl.raw.ptr.buffer.load.lds %rsrc, %mine, %c16, %from, %c0, %c0, %c0 {alias_scopes = [#copies]}
      llvm.br ^body(%c0, %zero : i32, vector<16xf32>)
    ^body(%i: i32, %acc: vector<16xf32>):
      %next = llvm.add %i, %c1 : i32
      %slot = llvm.and %i, %c1 : i32
      %other = llvm.xor %slot, %c1 : i32
      %toByte = llvm.shl %other, %c10 : i32
      %offset = llvm.shl %next, %c11 : i32
      %to = llvm.getelementptr %mine[%toByte] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      rocdl.raw.ptr.buffer.load.lds %rsrc, %to, %c16, %from, %offset, %c0, %c0 {alias_scopes = [#copies]}
      rocdl.s.waitcnt 3953
      rocdl.s.barrier
      %atByte = llvm.shl %slot, %c10 : i32
      %lane = llvm.add %atByte, %laneByte : i32
      %at = llvm.getelementptr %mine[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %a = llvm.load %at {alignment = 16 : i64, alias_scopes = [#reads], noalias_scopes = [#copies]} : !llvm.ptr<3> -> vector<8xbf16>
      %d = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %acc, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
      %x0 = llvm.extractelement %d[%c0 : i32] : vector<16xf32>
      %e0 = rocdl.exp2 %x0 f32 -> f32
      %d0 = llvm.insertelement %e0, %d[%c0 : i32] : vector<16xf32>
      %x1 = llvm.extractelement %d0[%c1 : i32] : vector<16xf32>
      %e1 = rocdl.exp2 %x1 f32 -> f32
      %d1 = llvm.insertelement %e1, %d0[%c1 : i32] : vector<16xf32>
      rocdl.s.barrier
      %more = llvm.icmp "slt" %next, %count : i32
      llvm.cond_br %more, ^body(%next, %d1 : i32, vector<16xf32>), ^exit
    ^exit:
      llvm.store %d1, %o {alignment = 64 : i64} : vector<16xf32>, !llvm.ptr<1>
      rocdl.s.waitcnt 3952
      llvm.return
    }
  }
}
