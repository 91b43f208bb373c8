// Each block stores a part; the one that arrives last adds both up. Nothing says
// that the kernel only reads the parts, so its loads of them must not go through
// a cache that sees no writes: that is an error by itself.
//
// DEFINE: %{lower} = kvbuf-opt --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-rocdl,canonicalize,cse))"
// DEFINE: %{run} = kvbuf-emu-test --entry=combine --grid=2 --block=1 --arg=buf:i32:2:uninit:parts --arg=buf:i32:1:zero:count --arg=buf:i32:1:uninit:sum --print=2
// RUN: %{lower} %s > %t.mlir
// RUN: %{run} %t.mlir | FileCheck %s
// RUN: sed '/llvm.load/s, : !llvm.ptr<1>, invariant&,' %t.mlir > %t.tagged.mlir
// RUN: not %{run} %t.tagged.mlir 2>&1 | FileCheck %s --check-prefix=TAGGED

// CHECK: arg2: 3
// TAGGED: error: 'llvm.load' by thread 0 {{.*}}: invariant load of memory that the kernel writes: the cache that serves it sees no write; 4 bytes at offset {{[04]}} of buffer 'parts'
// TAGGED: note: 'llvm.store': the other one
#global = #gpu.address_space<global>

module attributes {kvbuffer.target = "gfx950"} {
gpu.module @m {
  gpu.func @combine(%parts: memref<2xi32, #global>, %count: memref<1xi32, #global>, %sum: memref<1xi32, #global>) kernel attributes {
      kvbuffer.kernel = #kvbuffer.launch<block = [1, 1, 1], dynamic_shared_bytes = 0>,
      kvbuffer.phase = #kvbuffer.phase<thread>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %b = gpu.block_id x
    %i = arith.index_cast %b : index to i32
    %value = arith.addi %i, %one : i32
    memref.store %value, %parts[%b] : memref<2xi32, #global>
    %n = memref.atomic_rmw addi %one, %count[%c0] : (i32, memref<1xi32, #global>) -> i32
    %last = arith.cmpi eq, %n, %one : i32
    cf.cond_br %last, ^add, ^end
  ^add:
    %x = memref.load %parts[%c0] : memref<2xi32, #global>
    %y = memref.load %parts[%c1] : memref<2xi32, #global>
    %s = arith.addi %x, %y : i32
    memref.store %s, %sum[%c0] : memref<1xi32, #global>
    cf.br ^end
  ^end:
    gpu.return
  }
}
}
