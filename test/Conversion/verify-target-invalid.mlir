// What a chip lacks is an error at the op; all are said at once.

// RUN: kvbuf-opt %s --split-input-file --kvbuf-verify-target --verify-diagnostics

gpu.module @instructions attributes {kvbuffer.target = "gfx942"} {
  llvm.func @kernel(%r: !llvm.ptr<8>, %g: !llvm.ptr<1>, %lds: !llvm.ptr<3>, %c: vector<16xf32>, %a: vector<8xbf16>, %i: i32) attributes {
      kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    // expected-error@+1 {{'rocdl.raw.ptr.buffer.load.lds' op copies 16 bytes a lane into LDS; gfx942 can copy 1, 2 or 4}}
    rocdl.raw.ptr.buffer.load.lds %r, %lds, %c16, %i, %c0, %c0, %c0
    // expected-error@+1 {{'rocdl.global.load.lds' op copies 12 bytes a lane into LDS; gfx942 can copy 1, 2 or 4}}
    rocdl.global.load.lds %g, %lds, 12, 0, 0
    // expected-error@+1 {{'rocdl.load.to.lds' op copies 16 bytes a lane into LDS; gfx942 can copy 1, 2 or 4}}
    rocdl.load.to.lds %g, %lds, 16, 0, 0 : <1>
    // expected-error@+1 {{'rocdl.ds.read.tr16.b64' op is no instruction of gfx942: transposed LDS reads came with gfx950}}
    %t = rocdl.ds.read.tr16.b64 %lds : !llvm.ptr<3> -> vector<4xbf16>
    // expected-error@+1 {{'rocdl.permlane32.swap' op is no instruction of gfx942: swaps between halves of a wave came with gfx950}}
    %s = rocdl.permlane32.swap %i, %i, false, false : (i32, i32) -> !llvm.struct<(i32, i32)>
    // expected-error@+1 {{'rocdl.mfma.f32.32x32x16.bf16' op is no instruction of gfx942: the chip has no matrix instruction of this shape and type; for bf16 and f16 it has 32x32x8 and 16x16x16}}
    %d = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %c, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    // expected-error@+1 {{'rocdl.s.wait.dscnt' op is no instruction of gfx942: gfx12 has a counter for each kind of access}}
    rocdl.s.wait.dscnt 0
    llvm.return
  }
}

// -----

gpu.module @newer attributes {kvbuffer.target = "gfx1250"} {
  llvm.func @kernel(%r: !llvm.ptr<8>, %lds: !llvm.ptr<3>, %a: vector<8xbf16>, %c: vector<16xf32>, %i: i32) attributes {
      kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    // expected-error@+1 {{'rocdl.mfma.f32.32x32x16.bf16' op is no instruction of gfx1250: MFMA is CDNA's; this chip has WMMA}}
    %d = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %c, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    // expected-error@+1 {{'rocdl.s.waitcnt' op is no instruction of gfx1250: this chip has a counter for each kind of access, and s.wait.* for each}}
    rocdl.s.waitcnt 0
    // expected-error@+1 {{'rocdl.ds.read.tr16.b64' op is no instruction of gfx1250: this chip's transposed LDS reads are ds.load.tr*}}
    %t = rocdl.ds.read.tr16.b64 %lds : !llvm.ptr<3> -> vector<4xbf16>
    // expected-error@+1 {{'rocdl.raw.ptr.buffer.load.lds' op is no instruction of gfx1250: this chip copies into LDS by global.load.async.* and tensor.*}}
    rocdl.raw.ptr.buffer.load.lds %r, %lds, %c4, %i, %c0, %c0, %c0
    rocdl.s.wait.dscnt 0
    llvm.return
  }
}

// -----

gpu.module @offsets attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%r: !llvm.ptr<8>, %lds: !llvm.ptr<3>, %c: vector<4xf32>, %a: vector<2xf32>, %b: vector<2xi16>, %i: i32) attributes {
      kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c8 = llvm.mlir.constant(8 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %c4096 = llvm.mlir.constant(4096 : i32) : i32
    // expected-error@+1 {{op copies 8 bytes a lane into LDS; gfx950 can copy 1, 2, 4, 12 or 16}}
    rocdl.raw.ptr.buffer.load.lds %r, %lds, %c8, %i, %c0, %c0, %c0
    // expected-error@+1 {{op has offset 4096; the instruction has room for 0 to 4095}}
    rocdl.raw.ptr.buffer.load.lds %r, %lds, %c16, %i, %c0, %c4096, %c0
    // expected-error@+1 {{op needs a width and an offset that are constants}}
    rocdl.raw.ptr.buffer.load.lds %r, %lds, %i, %i, %c0, %c0, %c0
    // expected-error@+1 {{op is no instruction of gfx950: the chip has no matrix instruction of this shape and type; for bf16 and f16 it has 32x32x16 and 16x16x32}}
    %d = rocdl.mfma.f32.16x16x8.xf32 %a, %a, %c, %c0, %c0, %c0 : (vector<2xf32>, vector<2xf32>, vector<4xf32>, i32, i32, i32) -> vector<4xf32>
    // expected-error@+1 {{op is no instruction of gfx950: the chip has no matrix instruction}}
    %e = rocdl.mfma.f32.16x16x8bf16 %b, %b, %c, %c0, %c0, %c0 : (vector<2xi16>, vector<2xi16>, vector<4xf32>, i32, i32, i32) -> vector<4xf32>
    llvm.return
  }
}

// -----

// Static and dynamic shared memory together; only what the kernel refers to.
gpu.module @shared attributes {kvbuffer.target = "gfx942"} {
  llvm.mlir.global internal @used() {addr_space = 3 : i32} : !llvm.array<40000 x i8>
  llvm.mlir.global internal @unused() {addr_space = 3 : i32} : !llvm.array<40000 x i8>
  // expected-error@+1 {{'llvm.func' op needs 65600 bytes of shared memory (40000 fixed, 25600 at launch); gfx942 has 65536}}
  llvm.func @kernel() attributes {
      kvbuffer.phase = #kvbuffer.phase<target>,
      kvbuffer.kernel = #kvbuffer.launch<block = [64, 1, 1], dynamic_shared_bytes = 25600>} {
    %0 = llvm.mlir.addressof @used : !llvm.ptr<3>
    %1 = llvm.mlir.addressof @used : !llvm.ptr<3>
    llvm.return
  }
}

// -----

gpu.module @threads attributes {kvbuffer.target = "gfx950"} {
  // expected-error@+1 {{'llvm.func' op has blocks of 1088 threads; gfx950 has at most 1024}}
  llvm.func @kernel() attributes {
      kvbuffer.phase = #kvbuffer.phase<target>,
      kvbuffer.kernel = #kvbuffer.launch<block = [64, 17, 1]>} {
    llvm.return
  }
}

// -----

// Intrinsics have the names of the ops.
gpu.module @intrinsics attributes {kvbuffer.target = "gfx942"} {
  llvm.func @kernel(%r: !llvm.ptr<8>, %lds: !llvm.ptr<3>, %i: i32) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    // expected-error@+1 {{'llvm.call_intrinsic' op copies 16 bytes a lane into LDS; gfx942 can copy 1, 2 or 4}}
    llvm.call_intrinsic "llvm.amdgcn.raw.ptr.buffer.load.lds"(%r, %lds, %c16, %i, %c0, %c0, %c0) : (!llvm.ptr<8>, !llvm.ptr<3>, i32, i32, i32, i32, i32) -> ()
    // expected-error@+1 {{'llvm.call_intrinsic' op calls 'llvm.amdgcn.ds.read.tr16.b64.v4i16', no instruction of gfx942: transposed LDS reads came with gfx950}}
    %t = llvm.call_intrinsic "llvm.amdgcn.ds.read.tr16.b64.v4i16"(%lds) : (!llvm.ptr<3>) -> vector<4xi16>
    // expected-error@+1 {{'llvm.call_intrinsic' op calls 'llvm.nvvm.barrier0', which is another vendor's than gfx942}}
    llvm.call_intrinsic "llvm.nvvm.barrier0"() : () -> ()
    llvm.return
  }
}

// -----

gpu.module @hopper attributes {kvbuffer.target = "sm_80"} {
  llvm.func @kernel(%d: i64, %b: !llvm.ptr<3>, %i: i32) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    // expected-error@+1 {{'nvvm.setmaxregister' op is no instruction of sm_80: it is of sm_90a}}
    nvvm.setmaxregister increase 160
    // expected-error@+1 {{'nvvm.wgmma.fence.aligned' op is no instruction of sm_80: it is of sm_90a}}
    nvvm.wgmma.fence.aligned
    // expected-error@+1 {{'kvbuffer.wgmma' op is no instruction of sm_80: it is of sm_90a}}
    %s:2 = kvbuffer.wgmma a_desc(%d) b(%d) {a_steps = array<i64: 0>, b_steps = array<i64: 0>, element = bf16, n = 16 : i64} : vector<4xf32>, vector<4xf32>
    // expected-error@+1 {{'nvvm.mbarrier.try_wait.parity' op is no instruction of sm_80: it came with sm_90}}
    nvvm.mbarrier.try_wait.parity %b, %i, %i : !llvm.ptr<3>, i32, i32
    llvm.return
  }
}

// -----

gpu.module @matrix_group attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%d: i64) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    // expected-error@+1 {{'kvbuffer.wgmma' op is of another vendor's dialect than gfx950}}
    %s:2 = kvbuffer.wgmma a_desc(%d) b(%d) {a_steps = array<i64: 0>, b_steps = array<i64: 0>, element = bf16, n = 16 : i64} : vector<4xf32>, vector<4xf32>
    llvm.return
  }
}

// -----

gpu.module @vendor attributes {kvbuffer.target = "sm_80"} {
  llvm.func @kernel() attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    // expected-error@+1 {{'rocdl.s.barrier' op is of another vendor's dialect than sm_80}}
    rocdl.s.barrier
    llvm.return
  }
}

// -----

// expected-error@+1 {{'gpu.module' op is for an unknown chip 'gfx90a', expected one of gfx942, gfx950,}}
gpu.module @chip attributes {kvbuffer.target = "gfx90a"} {
}

// -----

// expected-error@+1 {{'gpu.module' op names no chip to verify for: expected 'kvbuffer.target'}}
gpu.module @none {
}

// -----

// Kernels are linked with nothing: what their module only declares is not there.
gpu.module @symbols attributes {kvbuffer.target = "gfx942"} {
  llvm.func @__ocml_exp_f32(f32) -> f32
  llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
  llvm.mlir.global external @table() {addr_space = 1 : i32} : !llvm.array<4 x f32>
  llvm.mlir.global external @lds() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @helper(%x: f32) -> f32 {
    llvm.return %x : f32
  }
  llvm.func @kernel(%x: f32, %p: !llvm.ptr) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    // expected-error@+1 {{'llvm.call' op names '__ocml_exp_f32', which its module only declares; kernels are linked with no library: expected its definition}}
    %y = llvm.call @__ocml_exp_f32(%x) : (f32) -> f32
    // expected-error@+1 {{'llvm.call' op names 'vprintf', which its module only declares}}
    %n = llvm.call @vprintf(%p, %p) : (!llvm.ptr, !llvm.ptr) -> i32
    // expected-error@+1 {{'llvm.mlir.addressof' op names 'table', which its module only declares}}
    %t = llvm.mlir.addressof @table : !llvm.ptr<1>
    %l = llvm.mlir.addressof @lds : !llvm.ptr<3>
    %z = llvm.call @helper(%y) : (f32) -> f32
    llvm.return
  }
}

// -----

// A function without a phase that a kernel may call, and what CUDA's driver has.
gpu.module @helpers attributes {kvbuffer.target = "sm_80"} {
  llvm.func @__nv_expf(f32) -> f32
  llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
  llvm.func @helper(%x: f32, %p: !llvm.ptr) -> f32 {
    %n = llvm.call @vprintf(%p, %p) : (!llvm.ptr, !llvm.ptr) -> i32
    // expected-error@+1 {{'llvm.call' op names '__nv_expf', which its module only declares}}
    %y = llvm.call @__nv_expf(%x) : (f32) -> f32
    llvm.return %y : f32
  }
  llvm.func @kernel(%x: f32, %p: !llvm.ptr) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    %z = llvm.call @helper(%x, %p) : (f32, !llvm.ptr) -> f32
    llvm.return
  }
}
