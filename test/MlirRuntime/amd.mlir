// Programs in upstream dialects for AMD's GPUs through stock tools, with the
// library in place of libmlir_rocm_runtime.so. No ROCm is there: calls of its
// device libraries are executed by name.
//
// REQUIRES: mlir-runner
// RUN: split-file %s %t
// RUN: %rocdl gfx942 %t/vecadd.mlir | %mlir_runner | FileCheck %t/vecadd.mlir
// RUN: %rocdl gfx942 %t/reduce.mlir | %mlir_runner | FileCheck %t/reduce.mlir
// RUN: %rocdl gfx942 %t/lanes.mlir | %mlir_runner | FileCheck %t/lanes.mlir
// RUN: %rocdl gfx942 %t/transfer.mlir | %mlir_runner | FileCheck %t/transfer.mlir
// RUN: %rocdl gfx942 %t/buffers.mlir | %mlir_runner | FileCheck %t/buffers.mlir
// RUN: %rocdl gfx942 %t/mfma.mlir | %mlir_runner | FileCheck %t/mfma.mlir
// RUN: %rocdl gfx942 %t/math.mlir | %mlir_runner | FileCheck %t/math.mlir
// RUN: %rocdl gfx942 %t/atomics.mlir | %mlir_runner | FileCheck %t/atomics.mlir
// RUN: %rocdl gfx1100 %t/wmma11.mlir | %mlir_runner | FileCheck %t/wmma11.mlir
// RUN: %rocdl gfx1200 %t/wmma12.mlir | %mlir_runner | FileCheck %t/wmma12.mlir
// RUN: %rocdl gfx942 %t/race.mlir | not %mlir_runner 2>&1 | FileCheck %t/race.mlir
// RUN: %rocdl gfx942 %t/bounds.mlir | not %mlir_runner 2>&1 | FileCheck %t/bounds.mlir
// RUN: %rocdl gfx942 %t/unwritten.mlir | not %mlir_runner 2>&1 | FileCheck %t/unwritten.mlir

//--- vecadd.mlir
// CHECK: thread 4 of 5 adds 8.000000
// CHECK: [0,  3,  6,  9,  12]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 5 : index
  %a = memref.alloc() : memref<5xf32>
  %b = memref.alloc() : memref<5xf32>
  %two = arith.constant 2.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %x = arith.index_cast %i : index to i32
    %f = arith.sitofp %x : i32 to f32
    %g = arith.mulf %f, %two : f32
    memref.store %f, %a[%i] : memref<5xf32>
    memref.store %g, %b[%i] : memref<5xf32>
  }
  %ua = memref.cast %a : memref<5xf32> to memref<*xf32>
  %ub = memref.cast %b : memref<5xf32> to memref<*xf32>
  gpu.host_register %ua : memref<*xf32>
  gpu.host_register %ub : memref<*xf32>
  %da = memref.cast %a : memref<5xf32> to memref<?xf32>
  %ga = call @mgpuMemGetDeviceMemRef1dFloat(%da) : (memref<?xf32>) -> memref<?xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %k4 = arith.constant 4 : index
    %x = memref.load %ga[%tx] : memref<?xf32>
    %y = memref.load %b[%tx] : memref<5xf32>
    %s = arith.addf %x, %y : f32
    memref.store %s, %ga[%tx] : memref<?xf32>
    %last = arith.cmpi eq, %tx, %k4 : index
    scf.if %last {
      gpu.printf "thread %lld of %lld adds %f\n", %tx, %sx, %y : index, index, f32
    }
    gpu.terminator
  }
  call @printMemrefF32(%ua) : (memref<*xf32>) -> ()
  return
}
func.func private @mgpuMemGetDeviceMemRef1dFloat(memref<?xf32>) -> memref<?xf32>
func.func private @printMemrefF32(memref<*xf32>)

//--- reduce.mlir
// Threads 0 to 127 have 1 to 128; lane 5 gets what lane 5 ^ 4 = 1 has, and
// lane 3 what lane 3 - 2 = 1 has.
// CHECK: [8256,  128,  1,  2,  2]
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 128 : index
  %r = memref.alloc() : memref<5xi32>
  %u = memref.cast %r : memref<5xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %k1 = arith.constant 1 : i32
    %k2 = arith.constant 2 : i32
    %k4 = arith.constant 4 : i32
    %k64 = arith.constant 64 : i32
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i2 = arith.constant 2 : index
    %i3 = arith.constant 3 : index
    %i4 = arith.constant 4 : index
    %i5 = arith.constant 5 : index
    %t = arith.index_cast %tx : index to i32
    %v = arith.addi %t, %k1 : i32
    %add = gpu.all_reduce add %v uniform {} : (i32) -> (i32)
    %max = gpu.all_reduce maxsi %v uniform {} : (i32) -> (i32)
    %min = gpu.all_reduce minui %v uniform {} : (i32) -> (i32)
    %x, %p = gpu.shuffle xor %v, %k4, %k64 : i32
    %y, %q = gpu.shuffle up %v, %k2, %k64 : i32
    %first = arith.cmpi eq, %tx, %i0 : index
    scf.if %first {
      memref.store %add, %r[%i0] : memref<5xi32>
      memref.store %max, %r[%i1] : memref<5xi32>
      memref.store %min, %r[%i2] : memref<5xi32>
    }
    %is5 = arith.cmpi eq, %tx, %i5 : index
    scf.if %is5 {
      memref.store %x, %r[%i3] : memref<5xi32>
    }
    %is3 = arith.cmpi eq, %tx, %i3 : index
    scf.if %is3 {
      memref.store %y, %r[%i4] : memref<5xi32>
    }
    gpu.terminator
  }
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)

//--- lanes.mlir
// DPP: shifted right by one in rows of 16 (lane 16 keeps its own), quads
// reversed; a swizzle by lane ^ 1.
// CHECK: [0,   0,   1,   2,   3,   4,   5,   6,   7,   8,   9,   10,   11,   12,   13,   14,   16]
// CHECK-NEXT: [3,   2,   1,   0,   7,   6,   5,   4,   11,   10,   9,   8,   15,   14,   13,   12,   19]
// CHECK-NEXT: [1,   0,   3,   2,   5,   4,   7,   6,   9,   8,   11,   10,   13,   12,   15,   14,   17]
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %r = memref.alloc() : memref<3x17xi32>
  %u = memref.cast %r : memref<3x17xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i2 = arith.constant 2 : index
    %k17 = arith.constant 17 : index
    %v = arith.index_cast %tx : index to i32
    %shr = amdgpu.dpp %v %v row_shr(1 : i32) : i32
    %quad = amdgpu.dpp %v %v quad_perm([3, 2, 1, 0]) : i32
    %swz = amdgpu.swizzle_bitmode %v 31 0 1 : i32
    %few = arith.cmpi ult, %tx, %k17 : index
    scf.if %few {
      memref.store %shr, %r[%i0, %tx] : memref<3x17xi32>
      memref.store %quad, %r[%i1, %tx] : memref<3x17xi32>
      memref.store %swz, %r[%i2, %tx] : memref<3x17xi32>
    }
    gpu.terminator
  }
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)

//--- transfer.mlir
// A vector read that goes over the edge is padded; LDS passes it on.
// CHECK: [5,  6,  7,  -1]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 8 : index
  %a = memref.alloc() : memref<8xi32>
  %b = memref.alloc() : memref<4xi32>
  scf.for %i = %c0 to %n step %c1 {
    %x = arith.index_cast %i : index to i32
    memref.store %x, %a[%i] : memref<8xi32>
  }
  %ua = memref.cast %a : memref<8xi32> to memref<*xi32>
  %ub = memref.cast %b : memref<4xi32> to memref<*xi32>
  gpu.host_register %ua : memref<*xi32>
  gpu.host_register %ub : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<4xi32, #gpu.address_space<workgroup>>) {
    %i0 = arith.constant 0 : index
    %k5 = arith.constant 5 : index
    %pad = arith.constant -1 : i32
    %first = arith.cmpi eq, %tx, %i0 : index
    scf.if %first {
      %v = vector.transfer_read %a[%k5], %pad : memref<8xi32>, vector<4xi32>
      vector.store %v, %s[%i0] : memref<4xi32, #gpu.address_space<workgroup>>, vector<4xi32>
    }
    amdgpu.lds_barrier
    %k4 = arith.constant 4 : index
    %few = arith.cmpi ult, %tx, %k4 : index
    scf.if %few {
      %x = memref.load %s[%tx] : memref<4xi32, #gpu.address_space<workgroup>>
      memref.store %x, %b[%tx] : memref<4xi32>
    }
    gpu.terminator
  }
  call @printMemrefI32(%ub) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)

//--- buffers.mlir
// What a buffer does not have reads as zero and is not written.
// CHECK: [11,  12,  13,  14,  10,  10]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 8 : index
  %four = arith.constant 4 : index
  %a = memref.alloc() : memref<4xi32>
  %b = memref.alloc() : memref<6xi32>
  scf.for %i = %c0 to %four step %c1 {
    %j = arith.addi %i, %c1 : index
    %x = arith.index_cast %j : index to i32
    memref.store %x, %a[%i] : memref<4xi32>
  }
  %ua = memref.cast %a : memref<4xi32> to memref<*xi32>
  %ub = memref.cast %b : memref<6xi32> to memref<*xi32>
  gpu.host_register %ua : memref<*xi32>
  gpu.host_register %ub : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %ten = arith.constant 10 : i32
    %t = arith.index_cast %tx : index to i32
    %x = amdgpu.raw_buffer_load {boundsCheck = true} %a[%t] : memref<4xi32>, i32 -> i32
    %s = arith.addi %x, %ten : i32
    amdgpu.raw_buffer_store {boundsCheck = true} %s -> %b[%t] : i32 -> memref<6xi32>, i32
    gpu.terminator
  }
  call @printMemrefI32(%ub) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)

//--- mfma.mlir
// Lane l holds row (A) and column (B) l mod 32 or l mod 16; with A[i][k] = i
// and B[k][j] = j, element (i, j) is K i j. Register 1 of lane 3 is row 1.
// CHECK: [24,  48,  48,  48]
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %r = memref.alloc() : memref<4xf32>
  %u = memref.cast %r : memref<4xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i2 = arith.constant 2 : index
    %i3 = arith.constant 3 : index
    %k16 = arith.constant 16 : index
    %k32 = arith.constant 32 : index
    %l32 = arith.remui %tx, %k32 : index
    %l16 = arith.remui %tx, %k16 : index
    %a = arith.index_cast %l32 : index to i32
    %b = arith.index_cast %l16 : index to i32
    %ah = arith.sitofp %a : i32 to f16
    %av = vector.broadcast %ah : f16 to vector<4xf16>
    %bh = arith.sitofp %b : i32 to f16
    %bv = vector.broadcast %bh : f16 to vector<4xf16>
    %bf = arith.sitofp %b : i32 to f32
    %b8 = arith.trunci %b : i32 to i8
    %bv8 = vector.broadcast %b8 : i8 to vector<8xi8>
    %z16 = arith.constant dense<0.0> : vector<16xf32>
    %z4 = arith.constant dense<0.0> : vector<4xf32>
    %zi = arith.constant dense<0> : vector<4xi32>
    %d0 = amdgpu.mfma 32x32x8 %av * %av + %z16 blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %d1 = amdgpu.mfma 16x16x16 %bv * %bv + %z4 blgp = none : vector<4xf16>, vector<4xf16>, vector<4xf32>
    // Four products of depth 4 make 16.
    %e0 = amdgpu.mfma 16x16x4 %bf * %bf + %z4 blgp = none : f32, f32, vector<4xf32>
    %e1 = amdgpu.mfma 16x16x4 %bf * %bf + %e0 blgp = none : f32, f32, vector<4xf32>
    %e2 = amdgpu.mfma 16x16x4 %bf * %bf + %e1 blgp = none : f32, f32, vector<4xf32>
    %e3 = amdgpu.mfma 16x16x4 %bf * %bf + %e2 blgp = none : f32, f32, vector<4xf32>
    %f = amdgpu.mfma 16x16x32 %bv8 * %bv8 + %zi blgp = none : vector<8xi8>, vector<8xi8>, vector<4xi32>
    %x0 = vector.extract %d0[1] : f32 from vector<16xf32>
    %x1 = vector.extract %d1[1] : f32 from vector<4xf32>
    %x2 = vector.extract %e3[1] : f32 from vector<4xf32>
    %x3 = vector.extract %f[1] : i32 from vector<4xi32>
    %half = arith.constant 2 : i32
    %x3h = arith.divsi %x3, %half : i32
    %x3f = arith.sitofp %x3h : i32 to f32
    %is3 = arith.cmpi eq, %tx, %i3 : index
    scf.if %is3 {
      memref.store %x0, %r[%i0] : memref<4xf32>
      memref.store %x1, %r[%i1] : memref<4xf32>
      memref.store %x2, %r[%i2] : memref<4xf32>
      memref.store %x3f, %r[%i3] : memref<4xf32>
    }
    gpu.terminator
  }
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)

//--- math.mlir
// CHECK: [2.71828,  0.761594,  0.842701,  8,  0.693147,  1.1752,  0.785398,  0.540302]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = memref.alloc() : memref<8xf32>
  %u = memref.cast %m : memref<8xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  %in = memref.alloc() : memref<3xf32>
  %ui = memref.cast %in : memref<3xf32> to memref<*xf32>
  gpu.host_register %ui : memref<*xf32>
  %v1 = arith.constant 1.0 : f32
  %v2 = arith.constant 2.0 : f32
  %v3 = arith.constant 3.0 : f32
  memref.store %v1, %in[%c0] : memref<3xf32>
  memref.store %v2, %in[%c1] : memref<3xf32>
  memref.store %v3, %in[%c2] : memref<3xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i2 = arith.constant 2 : index
    %one = memref.load %in[%i0] : memref<3xf32>
    %two = memref.load %in[%i1] : memref<3xf32>
    %three = memref.load %in[%i2] : memref<3xf32>
    %f0 = math.exp %one : f32
    %f1 = math.tanh %one : f32
    %f2 = math.erf %one : f32
    %f3 = math.powf %two, %three : f32
    %f4 = math.log %two : f32
    %f5 = math.sinh %one : f32
    %f6 = math.atan %one : f32
    %f7 = math.cos %one : f32
    %v = vector.from_elements %f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7 : vector<8xf32>
    vector.store %v, %m[%i0] : memref<8xf32>, vector<8xf32>
    gpu.terminator
  }
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)

//--- atomics.mlir
// 2 blocks of 64 threads: 0 + ... + 127 is 8128.
// CHECK: [8128,  127,  128]
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %b = arith.constant 2 : index
  %m = memref.alloc() : memref<3xf32>
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%m : memref<3xf32>)
  %u = memref.cast %m : memref<3xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %b, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %k0 = arith.constant 0 : index
    %k1 = arith.constant 1 : index
    %k2 = arith.constant 2 : index
    %base = arith.muli %bx, %sx : index
    %at = arith.addi %base, %tx : index
    %v = arith.index_cast %at : index to i32
    %x = arith.sitofp %v : i32 to f32
    %one = arith.constant 1.0 : f32
    %r0 = memref.atomic_rmw addf %x, %m[%k0] : (f32, memref<3xf32>) -> f32
    %r1 = memref.atomic_rmw maxnumf %x, %m[%k1] : (f32, memref<3xf32>) -> f32
    %r2 = memref.atomic_rmw addf %one, %m[%k2] : (f32, memref<3xf32>) -> f32
    gpu.terminator
  }
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)

//--- wmma11.mlir
// gfx11: lane l has all of row (A) and column (B) l mod 16; register r of a
// result is row 2 r + l / 16. A[i][k] = i + 1, B[k][j] = j + 1: 16 (i+1)(j+1).
// Lane 17 is column 1: registers 0 and 1 are rows 1 and 3.
// CHECK: [64,  128]
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 32 : index
  %r = memref.alloc() : memref<2xf32>
  %u = memref.cast %r : memref<2xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %k16 = arith.constant 16 : index
    %k17 = arith.constant 17 : index
    %l = arith.remui %tx, %k16 : index
    %l1 = arith.addi %l, %i1 : index
    %x = arith.index_cast %l1 : index to i32
    %h = arith.sitofp %x : i32 to f16
    %v = vector.broadcast %h : f16 to vector<16xf16>
    %z = arith.constant dense<0.0> : vector<8xf32>
    %d = amdgpu.wmma 16x16x16 %v * %v + %z : vector<16xf16>, vector<16xf16>, vector<8xf32>
    %y0 = vector.extract %d[0] : f32 from vector<8xf32>
    %y1 = vector.extract %d[1] : f32 from vector<8xf32>
    %is17 = arith.cmpi eq, %tx, %k17 : index
    scf.if %is17 {
      memref.store %y0, %r[%i0] : memref<2xf32>
      memref.store %y1, %r[%i1] : memref<2xf32>
    }
    gpu.terminator
  }
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)

//--- wmma12.mlir
// gfx12: the two halves of a wave share a row of A; register r of a result is
// row r + 8 (l / 16). Lane 17 is column 1: registers 0 and 1 are rows 8 and 9.
// CHECK: [288,  320]
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 32 : index
  %r = memref.alloc() : memref<2xf32>
  %u = memref.cast %r : memref<2xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %k16 = arith.constant 16 : index
    %k17 = arith.constant 17 : index
    %l = arith.remui %tx, %k16 : index
    %l1 = arith.addi %l, %i1 : index
    %x = arith.index_cast %l1 : index to i32
    %h = arith.sitofp %x : i32 to f16
    %v = vector.broadcast %h : f16 to vector<8xf16>
    %z = arith.constant dense<0.0> : vector<8xf32>
    %d = amdgpu.wmma 16x16x16 %v * %v + %z : vector<8xf16>, vector<8xf16>, vector<8xf32>
    %y0 = vector.extract %d[0] : f32 from vector<8xf32>
    %y1 = vector.extract %d[1] : f32 from vector<8xf32>
    %is17 = arith.cmpi eq, %tx, %k17 : index
    scf.if %is17 {
      memref.store %y0, %r[%i0] : memref<2xf32>
      memref.store %y1, %r[%i1] : memref<2xf32>
    }
    gpu.terminator
  }
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)

//--- race.mlir
// CHECK: error: 'llvm.load' by thread {{.*}}shared-memory race
// CHECK: note: 'llvm.store'
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 128 : index
  %m = memref.alloc() : memref<128xf32>
  %u = memref.cast %m : memref<128xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<128xf32, #gpu.address_space<workgroup>>) {
    %k127 = arith.constant 127 : index
    %x = memref.load %m[%tx] : memref<128xf32>
    memref.store %x, %s[%tx] : memref<128xf32, #gpu.address_space<workgroup>>
    %i = arith.subi %k127, %tx : index
    %y = memref.load %s[%i] : memref<128xf32, #gpu.address_space<workgroup>>
    memref.store %y, %m[%tx] : memref<128xf32>
    gpu.terminator
  }
  return
}

//--- bounds.mlir
// CHECK: error: 'llvm.store' by thread 4 {{.*}}: out of bounds
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 5 : index
  %t0 = gpu.wait async
  %m, %t1 = gpu.alloc async [%t0] () : memref<4xf32>
  gpu.wait [%t1]
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %x = arith.constant 1.0 : f32
    memref.store %x, %m[%tx] : memref<4xf32>
    gpu.terminator
  }
  return
}

//--- unwritten.mlir
// Of a vector of 4 in LDS only 2 elements have been written.
// CHECK: error: 'llvm.load' by thread 0 {{.*}}
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 2 : index
  %m = memref.alloc() : memref<4xf32>
  %u = memref.cast %m : memref<4xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<4xf32, #gpu.address_space<workgroup>>) {
    %k0 = arith.constant 0 : index
    %x = memref.load %m[%tx] : memref<4xf32>
    memref.store %x, %s[%tx] : memref<4xf32, #gpu.address_space<workgroup>>
    amdgpu.lds_barrier
    %y = vector.load %s[%k0] : memref<4xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    vector.store %y, %m[%k0] : memref<4xf32>, vector<4xf32>
    gpu.terminator
  }
  return
}
