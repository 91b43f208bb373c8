// What each chip has passes, unchanged.

// RUN: kvbuf-opt %s --split-input-file --kvbuf-verify-target | FileCheck %s

// CHECK: gpu.module @gfx950
// CHECK: rocdl.ds.read.tr16.b64
gpu.module @gfx950 attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%r: !llvm.ptr<8>, %lds: !llvm.ptr<3>, %c: vector<16xf32>, %a: vector<8xbf16>, %i: i32) attributes {
      kvbuffer.phase = #kvbuffer.phase<target>,
      kvbuffer.kernel = #kvbuffer.launch<block = [1024, 1, 1], dynamic_shared_bytes = 163840>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %c4095 = llvm.mlir.constant(4095 : i32) : i32
    rocdl.raw.ptr.buffer.load.lds %r, %lds, %c16, %i, %c0, %c4095, %c0
    %t = rocdl.ds.read.tr16.b64 %lds : !llvm.ptr<3> -> vector<4xbf16>
    %s = rocdl.permlane32.swap %i, %i, false, false : (i32, i32) -> !llvm.struct<(i32, i32)>
    %d = rocdl.mfma.f32.32x32x16.bf16 %a, %a, %c, %c0, %c0, %c0 : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    llvm.return
  }
}

// -----

// CHECK: gpu.module @gfx942
// CHECK: rocdl.mfma.f32.32x32x8bf16.1k
gpu.module @gfx942 attributes {kvbuffer.target = "gfx942"} {
  llvm.mlir.global internal @lds() {addr_space = 3 : i32} : !llvm.array<65536 x i8>
  llvm.func @kernel(%r: !llvm.ptr<8>, %c: vector<16xf32>, %a: vector<4xi16>, %i: i32) attributes {
      kvbuffer.phase = #kvbuffer.phase<target>} {
    %lds = llvm.mlir.addressof @lds : !llvm.ptr<3>
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    rocdl.raw.ptr.buffer.load.lds %r, %lds, %c4, %i, %c0, %c0, %c0
    %d = rocdl.mfma.f32.32x32x8bf16.1k %a, %a, %c, %c0, %c0, %c0 : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    llvm.return
  }
}
