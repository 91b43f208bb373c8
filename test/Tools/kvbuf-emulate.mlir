// A kernel of a gpu.module without host code.
//
// RUN: split-file %s %t
// RUN: kvbuf-emulate %t/saxpy.mlir --list | FileCheck %t/saxpy.mlir --check-prefix=LIST
// RUN: kvbuf-emulate %t/saxpy.mlir --kernel=saxpy --grid=2 --block=4 2.0 f32[8]=3 f32[8]=1 --print=2 --output=2=%t/y.npy --report=%t/report.json | FileCheck %t/saxpy.mlir
// RUN: FileCheck %t/saxpy.mlir --check-prefix=REPORT < %t/report.json
// RUN: kvbuf-emulate %t/saxpy.mlir --kernel=saxpy --block=8 1.0 %t/y.npy f32[8]=7 --print=2 | FileCheck %t/saxpy.mlir --check-prefix=TWICE
// RUN: kvbuf-emulate %t/saxpy.mlir --chip=gfx942 --kernel=saxpy --grid=2 --block=4 2.0 f32[8]=3 f32[8]=1 --print=2 | FileCheck %t/saxpy.mlir
// RUN: not kvbuf-emulate %t/saxpy.mlir --kernel=saxpy --block=9 2.0 f32[8]=3 f32[8]=1 2>&1 | FileCheck %t/saxpy.mlir --check-prefix=BOUNDS
// RUN: not kvbuf-emulate %t/saxpy.mlir --kernel=saxpy --block=8 2.0 f32[8]=3 f32[8] 2>&1 | FileCheck %t/saxpy.mlir --check-prefix=UNWRITTEN
// RUN: not kvbuf-emulate %t/saxpy.mlir --kernel=saxpy 2.0 f32[8]=3 2>&1 | FileCheck %t/saxpy.mlir --check-prefix=COUNT
// RUN: not kvbuf-emulate %t/saxpy.mlir --kernel=saxpy 2.0 f16[8]=3 f32[8]=1 2>&1 | FileCheck %t/saxpy.mlir --check-prefix=TYPE
// RUN: not kvbuf-emulate %t/saxpy.mlir --kernel=saxpy 2.0 3 f32[8]=1 2>&1 | FileCheck %t/saxpy.mlir --check-prefix=ARRAY
// RUN: not kvbuf-emulate %t/saxpy.mlir --kernel=other 2>&1 | FileCheck %t/saxpy.mlir --check-prefix=NAME
// RUN: not kvbuf-emulate %t/saxpy.mlir 2>&1 | FileCheck %t/saxpy.mlir --check-prefix=WHICH
// RUN: kvbuf-emulate %t/amd.mlir --chip=gfx942:sramecc+:xnack- --block=4 i32[4] --print=0 | FileCheck %t/amd.mlir
// RUN: kvbuf-emulate %t/amd.mlir --chip=gfx11-generic --block=4 i32[4] --print=0 | FileCheck %t/amd.mlir
// RUN: not kvbuf-emulate %t/saxpy.mlir --chip=sm_9 --kernel=saxpy --block=8 2.0 f32[8]=3 f32[8]=1 2>&1 | FileCheck %t/saxpy.mlir --check-prefix=CHIP
// RUN: not kvbuf-emulate %t/saxpy.mlir --options='{"chip": "gfx"}' --kernel=saxpy --block=8 2.0 f32[8]=3 f32[8]=1 2>&1 | FileCheck %t/saxpy.mlir --check-prefix=GFX
// RUN: not kvbuf-emulate %t/saxpy.mlir --cluster=0 --kernel=saxpy --block=8 2.0 f32[8]=3 f32[8]=1 2>&1 | FileCheck %t/saxpy.mlir --check-prefix=CLUSTER
// RUN: not kvbuf-emulate %t/saxpy.mlir --keep=%t/x --kernel=saxpy --block=8 2.0 f32[8]=3 f32[8]=1 2>&1 | FileCheck %t/saxpy.mlir --check-prefix=CLANG
// RUN: not kvbuf-emulate %t/saxpy.mlir --kernel=saxpy --block=8 1e39 f32[8]=3 f32[8]=1 2>&1 | FileCheck %t/saxpy.mlir --check-prefix=LARGE
// RUN: not kvbuf-emulate %t/saxpy.mlir --kernel=strided --block=2 f32[2,4]=3 2>&1 | FileCheck %t/saxpy.mlir --check-prefix=STRIDED
// RUN: kvbuf-emulate %t/saxpy.mlir --kernel=strided --block=2 f32[2,8]=3 --print=0 | FileCheck %t/saxpy.mlir --check-prefix=FITS
// RUN: not kvbuf-emulate %t/lowered.mlir --block=4 i32[4]=5 i32:4294967296 2>&1 | FileCheck %t/lowered.mlir --check-prefix=BITS
// RUN: not kvbuf-emulate %t/lowered.mlir --block=4 i8[4]=-129 i32:2 2>&1 | FileCheck %t/lowered.mlir --check-prefix=BYTE
// RUN: not kvbuf-emulate %t/lowered.mlir --block=4 i8[257]=iota i32:2 2>&1 | FileCheck %t/lowered.mlir --check-prefix=IOTA
// RUN: kvbuf-emulate %t/lowered.mlir --block=4 i32[4]=4294967295 i32:0x80000000 --print=0 | FileCheck %t/lowered.mlir --check-prefix=SIGN
// RUN: not kvbuf-emulate %t/kernel.ptx 2>&1 | FileCheck %t/kernel.ptx
// RUN: kvbuf-emulate %t/lowered.mlir --block=4 i32[4]=5 i32:2 --print=0 | FileCheck %t/lowered.mlir

//--- saxpy.mlir
// CHECK: 7 7 7 7 7 7 7 7
// TWICE: 14 14 14 14 14 14 14 14
// LIST: saxpy(f32, memref<?xf32>, memref<?xf32>)
// LIST: strided(memref<?x?xf32, strided<[8, 1]>>)
// LIST: other_kernel()
// REPORT: "entry": "saxpy"
// BOUNDS: error: 'llvm.load' by thread 8 {{.*}}out of bounds
// UNWRITTEN: error: 'llvm.load' by thread 0 {{.*}}argument 2
// COUNT: kvbuf-emulate: error: kernel 'saxpy' takes 3 arguments, not 2; --list shows their types
// TYPE: kvbuf-emulate: error: 'f16[8]=3' does not fit the parameter memref<?xf32>
// ARRAY: kvbuf-emulate: error: '3' is no array; expected a .npy file or such as f32[4,8]
// NAME: kvbuf-emulate: error: no kernel 'other'; --list shows those that there are
// CHIP: emulator options: the chip 'sm_9' is unknown; expected 'sm_' or 'gfx' and the chip's number
// GFX: emulator options: the chip 'gfx' is unknown; expected 'sm_' or 'gfx' and the chip's number
// CLUSTER: kvbuf-emulate: error: --cluster takes sizes of at least 1
// CLANG: kvbuf-emulate: error: --keep and --clang are for .cu and .hip, which clang compiles
// LARGE: kvbuf-emulate: error: '1e39' is larger than any number of type f32
// STRIDED: kvbuf-emulate: error: 'f32[2,4]=3' does not fit the parameter memref<?x?xf32, strided<[8, 1]>>
// FITS: 1 3 3 3 3 3 3 3 1 3 3 3 3 3 3 3
// WHICH: kvbuf-emulate: error: the module has 3 kernels; --kernel names one, --list shows them
gpu.module @kernels {
  gpu.func @saxpy(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>) kernel {
    %b = gpu.block_id x
    %n = gpu.block_dim x
    %t = gpu.thread_id x
    %base = arith.muli %b, %n : index
    %i = arith.addi %base, %t : index
    %u = memref.load %x[%i] : memref<?xf32>
    %v = memref.load %y[%i] : memref<?xf32>
    %p = arith.mulf %a, %u : f32
    %s = arith.addf %p, %v : f32
    memref.store %s, %y[%i] : memref<?xf32>
    gpu.return
  }
  gpu.func @strided(%x: memref<?x?xf32, strided<[8, 1]>>) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %one = arith.constant 1.0 : f32
    memref.store %one, %x[%t, %c0] : memref<?x?xf32, strided<[8, 1]>>
    gpu.return
  }
  gpu.func @other_kernel() kernel {
    gpu.return
  }
}

//--- kernel.ptx
// CHECK: is PTX; the emulator executes MLIR, LLVM bitcode and LLVM's textual IR
.version 8.0
.target sm_90a
.address_size 64

//--- lowered.mlir
// CHECK: 7 7 7 7
// BITS: kvbuf-emulate: error: '4294967296' has more bits than i32
// BYTE: kvbuf-emulate: error: '-129' has more bits than i8
// IOTA: kvbuf-emulate: error: 'iota' of 257 elements has more bits than i8
// SIGN: 2147483647 2147483647 2147483647 2147483647
llvm.func @kernel(%p: !llvm.ptr, %n: i32) attributes {nvvm.kernel} {
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %q = llvm.getelementptr %p[%t] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  %x = llvm.load %q : !llvm.ptr -> i32
  %y = llvm.add %x, %n : i32
  llvm.store %y, %q : i32, !llvm.ptr
  llvm.return
}

//--- amd.mlir
// CHECK: 0 1 2 3
llvm.func @kernel(%p: !llvm.ptr<1>) attributes {rocdl.kernel} {
  %t = rocdl.workitem.id.x : i32
  %q = llvm.getelementptr %p[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %t, %q : i32, !llvm.ptr<1>
  llvm.return
}
