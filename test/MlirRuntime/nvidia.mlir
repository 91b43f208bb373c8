// Programs in upstream dialects through stock tools: mlir-opt's pipeline for
// NVIDIA, mlir-runner, and the library in place of libmlir_cuda_runtime.so. The
// expected values are sums and patterns that can be done in the head.
//
// REQUIRES: mlir-runner
// RUN: split-file %s %t
// RUN: %nvvm %t/vecadd.mlir | %mlir_runner | FileCheck %t/vecadd.mlir
// RUN: %nvvm %t/reduce.mlir | %mlir_runner | FileCheck %t/reduce.mlir
// RUN: %nvvm %t/shuffle.mlir | %mlir_runner | FileCheck %t/shuffle.mlir
// RUN: %nvvm %t/printf.mlir | %mlir_runner | FileCheck %t/printf.mlir
// RUN: %nvvm %t/assert.mlir | %mlir_runner 2>&1 | FileCheck %t/assert.mlir
// RUN: %nvvm %t/async.mlir | %mlir_runner | FileCheck %t/async.mlir
// RUN: %nvvm %t/modules.mlir | %mlir_runner | FileCheck %t/modules.mlir
// RUN: %nvvm %t/dynamic.mlir | %mlir_runner | FileCheck %t/dynamic.mlir
// RUN: %nvvm %t/transpose.mlir | %mlir_runner | FileCheck %t/transpose.mlir
// RUN: %nvvm %t/atomics.mlir | %mlir_runner | FileCheck %t/atomics.mlir
// RUN: %nvvm %t/math.mlir | %mlir_runner | FileCheck %t/math.mlir
// RUN: %nvvm %t/globals.mlir | %mlir_runner | FileCheck %t/globals.mlir
// RUN: %nvvm %t/types.mlir | %mlir_runner | FileCheck %t/types.mlir
// RUN: %nvvm %t/ptx.mlir | %mlir_runner | FileCheck %t/ptx.mlir

//--- vecadd.mlir
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
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %x = memref.load %a[%bx] : memref<5xf32>
    %y = memref.load %b[%bx] : memref<5xf32>
    %s = arith.addf %x, %y : f32
    memref.store %s, %a[%bx] : memref<5xf32>
    gpu.terminator
  }
  gpu.host_unregister %ua : memref<*xf32>
  call @printMemrefF32(%ua) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)

//--- reduce.mlir
// Threads 0 to 47 have 1 to 48.
// CHECK: [1176,  48,  1,  48,  1,  0,  63,  48,  1176,  48,  1]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 48 : index
  %r = memref.alloc() : memref<11xi32>
  %u = memref.cast %r : memref<11xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %k1 = arith.constant 1 : i32
    %t = arith.index_cast %tx : index to i32
    %v = arith.addi %t, %k1 : i32
    %f = arith.sitofp %v : i32 to f32
    %add = gpu.all_reduce add %v uniform {} : (i32) -> (i32)
    %maxs = gpu.all_reduce maxsi %v uniform {} : (i32) -> (i32)
    %mins = gpu.all_reduce minsi %v uniform {} : (i32) -> (i32)
    %maxu = gpu.all_reduce maxui %v uniform {} : (i32) -> (i32)
    %minu = gpu.all_reduce minui %v uniform {} : (i32) -> (i32)
    %and = gpu.all_reduce and %v uniform {} : (i32) -> (i32)
    %or = gpu.all_reduce or %v uniform {} : (i32) -> (i32)
    // 1 ^ 2 ^ ... ^ 48 is 48.
    %xor = gpu.all_reduce xor %v uniform {} : (i32) -> (i32)
    %addf = gpu.all_reduce add %f uniform {} : (f32) -> (f32)
    %maxf = gpu.all_reduce maxnumf %f uniform {} : (f32) -> (f32)
    %minf = gpu.all_reduce %f uniform {
    ^bb(%x: f32, %y: f32):
      %m = arith.minimumf %x, %y : f32
      "gpu.yield"(%m) : (f32) -> ()
    } : (f32) -> (f32)
    %iaddf = arith.fptosi %addf : f32 to i32
    %imaxf = arith.fptosi %maxf : f32 to i32
    %iminf = arith.fptosi %minf : f32 to i32
    %k0 = arith.constant 0 : index
    %first = arith.cmpi eq, %tx, %k0 : index
    scf.if %first {
      %i1 = arith.constant 1 : index
      %i2 = arith.constant 2 : index
      %i3 = arith.constant 3 : index
      %i4 = arith.constant 4 : index
      %i5 = arith.constant 5 : index
      %i6 = arith.constant 6 : index
      %i7 = arith.constant 7 : index
      %i8 = arith.constant 8 : index
      %i9 = arith.constant 9 : index
      %i10 = arith.constant 10 : index
      memref.store %add, %r[%k0] : memref<11xi32>
      memref.store %maxs, %r[%i1] : memref<11xi32>
      memref.store %mins, %r[%i2] : memref<11xi32>
      memref.store %maxu, %r[%i3] : memref<11xi32>
      memref.store %minu, %r[%i4] : memref<11xi32>
      memref.store %and, %r[%i5] : memref<11xi32>
      memref.store %or, %r[%i6] : memref<11xi32>
      memref.store %xor, %r[%i7] : memref<11xi32>
      memref.store %iaddf, %r[%i8] : memref<11xi32>
      memref.store %imaxf, %r[%i9] : memref<11xi32>
      memref.store %iminf, %r[%i10] : memref<11xi32>
    }
    gpu.terminator
  }
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)

//--- shuffle.mlir
// CHECK: [1,   0,   3,   2,   5,   4,   7,   6]
// CHECK: [-1,   -1,   0,   1,   2,   3,   4,   5]
// CHECK: [3,   4,   5,   6,   7,   8,   9,   10]
// CHECK: [5,   5,   5,   5,   5,   5,   5,   5]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 32 : index
  %r = memref.alloc() : memref<4x8xi32>
  %u = memref.cast %r : memref<4x8xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i2 = arith.constant 2 : index
    %i3 = arith.constant 3 : index
    %i8 = arith.constant 8 : index
    %w = arith.constant 32 : i32
    %o1 = arith.constant 1 : i32
    %o2 = arith.constant 2 : i32
    %o3 = arith.constant 3 : i32
    %o5 = arith.constant 5 : i32
    %none = arith.constant -1 : i32
    %t = arith.index_cast %tx : index to i32
    %x, %p0 = gpu.shuffle xor %t, %o1, %w : i32
    %up, %p1 = gpu.shuffle up %t, %o2, %w : i32
    %down, %p2 = gpu.shuffle down %t, %o3, %w : i32
    %idx, %p3 = gpu.shuffle idx %t, %o5, %w : i32
    %upv = arith.select %p1, %up, %none : i32
    %downv = arith.select %p2, %down, %none : i32
    %few = arith.cmpi ult, %tx, %i8 : index
    scf.if %few {
      memref.store %x, %r[%i0, %tx] : memref<4x8xi32>
      memref.store %upv, %r[%i1, %tx] : memref<4x8xi32>
      memref.store %downv, %r[%i2, %tx] : memref<4x8xi32>
      memref.store %idx, %r[%i3, %tx] : memref<4x8xi32>
    }
    gpu.terminator
  }
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)

//--- printf.mlir
// CHECK: block 1 thread 2: 12 and 1.500000, 100%
// CHECK-NOT: {{.}}
func.func @main() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c3, %sy = %c1, %sz = %c1) {
    %k1 = arith.constant 1 : index
    %k2 = arith.constant 2 : index
    %p = arith.cmpi eq, %bx, %k1 : index
    %q = arith.cmpi eq, %tx, %k2 : index
    %both = arith.andi %p, %q : i1
    scf.if %both {
      %n = arith.constant 12 : i32
      %f = arith.constant 1.5 : f32
      gpu.printf "block %lld thread %lld: %d and %f, 100%%\n", %bx, %tx, %n, %f : index, index, i32, f32
    }
    gpu.terminator
  }
  return
}

//--- assert.mlir
// The first assertion holds; the second fails for thread 1, and ends it.
// CHECK-DAG: file.py:7: check: block: [0,0,0], thread: [1,0,0] Assertion `an even thread` failed.
// CHECK-DAG: thread 0 goes on
// CHECK-NOT: thread 1 goes on
// CHECK: kvbuf: error: kernel '{{.*}}' ended by a failed assertion
// CHECK: kvbuf: error: a launch is not done: an assertion of a kernel failed before
// CHECK-NOT: second
func.func @main() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c2, %sy = %c1, %sz = %c1) {
    %k1 = arith.constant 1 : index
    %k2 = arith.constant 2 : index
    %small = arith.cmpi ult, %tx, %k2 : index
    cf.assert %small, "a small thread"
    %even = arith.cmpi ne, %tx, %k1 : index
    cf.assert %even, "an even thread" loc("check"("file.py":7:1))
    gpu.printf "thread %lld goes on\n", %tx : index
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.printf "second\n"
    gpu.terminator
  }
  return
}

//--- async.mlir
// Two kernels that need not wait for each other, and one that waits for both.
// CHECK: [42,  43,  44,  45]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 4 : index
  %h = memref.alloc() : memref<4xi32>
  %seven = arith.constant 7 : i32
  linalg.fill ins(%seven : i32) outs(%h : memref<4xi32>)
  %t0 = gpu.wait async
  %a, %t1 = gpu.alloc async [%t0] () : memref<4xi32>
  %b, %t2 = gpu.alloc async [%t0] () : memref<4xi32>
  %t12 = gpu.wait async [%t1, %t2]
  %t3 = gpu.memcpy async [%t12] %a, %h : memref<4xi32>, memref<4xi32>
  %t4 = gpu.launch async [%t3] blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %x = memref.load %a[%tx] : memref<4xi32>
    %y = arith.addi %x, %x : i32
    memref.store %y, %a[%tx] : memref<4xi32>
    gpu.terminator
  }
  %t5 = gpu.wait async
  %t6 = gpu.launch async [%t5] blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %k = arith.constant 28 : i32
    %t = arith.index_cast %tx : index to i32
    %y = arith.addi %t, %k : i32
    memref.store %y, %b[%tx] : memref<4xi32>
    gpu.terminator
  }
  %t46 = gpu.wait async [%t4, %t6]
  %t7 = gpu.launch async [%t46] blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %x = memref.load %a[%tx] : memref<4xi32>
    %y = memref.load %b[%tx] : memref<4xi32>
    %s = arith.addi %x, %y : i32
    memref.store %s, %a[%tx] : memref<4xi32>
    gpu.terminator
  }
  %t8 = gpu.memcpy async [%t7] %h, %a : memref<4xi32>, memref<4xi32>
  %t9 = gpu.dealloc async [%t8] %a : memref<4xi32>
  %t10 = gpu.dealloc async [%t9] %b : memref<4xi32>
  gpu.wait [%t10]
  %u = memref.cast %h : memref<4xi32> to memref<*xi32>
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)

//--- modules.mlir
// CHECK: [3,  5]
module attributes {gpu.container_module} {
  gpu.module @one {
    gpu.func @k(%m: memref<2xi32>) kernel {
      %c0 = arith.constant 0 : index
      %v = arith.constant 3 : i32
      memref.store %v, %m[%c0] : memref<2xi32>
      gpu.return
    }
  }
  gpu.module @two {
    gpu.func @k(%m: memref<2xi32>) kernel {
      %c1 = arith.constant 1 : index
      %v = arith.constant 5 : i32
      memref.store %v, %m[%c1] : memref<2xi32>
      gpu.return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %m = memref.alloc() : memref<2xi32>
    %u = memref.cast %m : memref<2xi32> to memref<*xi32>
    gpu.host_register %u : memref<*xi32>
    gpu.launch_func @one::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<2xi32>)
    gpu.launch_func @two::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<2xi32>)
    call @printMemrefI32(%u) : (memref<*xi32>) -> ()
    return
  }
  func.func private @printMemrefI32(memref<*xi32>)
}

//--- dynamic.mlir
// Two views of dynamic shared memory, one after the other.
// CHECK: [7,  6,  5,  4,  3,  2,  1,  0]
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 8 : index
  %bytes = arith.constant 64 : i32
  %m = memref.alloc() : memref<8xi32>
  %u = memref.cast %m : memref<8xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             dynamic_shared_memory_size %bytes {
    %k0 = arith.constant 0 : index
    %k32 = arith.constant 32 : index
    %k7 = arith.constant 7 : index
    %zero = arith.constant 0 : i32
    %d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %a = memref.view %d[%k0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<8xi32, #gpu.address_space<workgroup>>
    %b = memref.view %d[%k32][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<8xi32, #gpu.address_space<workgroup>>
    %t = arith.index_cast %tx : index to i32
    memref.store %t, %a[%tx] : memref<8xi32, #gpu.address_space<workgroup>>
    memref.store %zero, %b[%tx] : memref<8xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %i = arith.subi %k7, %tx : index
    %x = memref.load %a[%i] : memref<8xi32, #gpu.address_space<workgroup>>
    %y = memref.load %b[%i] : memref<8xi32, #gpu.address_space<workgroup>>
    %s = arith.addi %x, %y : i32
    memref.store %s, %m[%tx] : memref<8xi32>
    gpu.terminator
  }
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)

//--- transpose.mlir
// CHECK: [0,   4,   8,   12]
// CHECK-NEXT: [1,   5,   9,   13]
// CHECK-NEXT: [2,   6,   10,   14]
// CHECK-NEXT: [3,   7,   11,   15]
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 4 : index
  %m = memref.alloc() : memref<4x4xi32>
  %u = memref.cast %m : memref<4x4xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %n, %sz = %c1)
             workgroup(%s : memref<4x4xi32, #gpu.address_space<workgroup>>) {
    %k4 = arith.constant 4 : index
    %row = arith.muli %ty, %k4 : index
    %at = arith.addi %row, %tx : index
    %v = arith.index_cast %at : index to i32
    memref.store %v, %s[%tx, %ty] : memref<4x4xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %x = memref.load %s[%ty, %tx] : memref<4x4xi32, #gpu.address_space<workgroup>>
    memref.store %x, %m[%ty, %tx] : memref<4x4xi32>
    gpu.terminator
  }
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)

//--- atomics.mlir
// 64 threads; 0 + ... + 63 is 2016.
// CHECK: [2016,  63,  -63,  63,  64]
// CHECK: [2016,  63,  64]
// CHECK: [2016]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 32 : index
  %b = arith.constant 2 : index
  %i = memref.alloc() : memref<5xi32>
  %f = memref.alloc() : memref<3xf32>
  %l = memref.alloc() : memref<1xf64>
  %z = arith.constant 0 : i32
  %zf = arith.constant 0.0 : f32
  %zl = arith.constant 0.0 : f64
  linalg.fill ins(%z : i32) outs(%i : memref<5xi32>)
  linalg.fill ins(%zf : f32) outs(%f : memref<3xf32>)
  linalg.fill ins(%zl : f64) outs(%l : memref<1xf64>)
  %ui = memref.cast %i : memref<5xi32> to memref<*xi32>
  %uf = memref.cast %f : memref<3xf32> to memref<*xf32>
  %ul = memref.cast %l : memref<1xf64> to memref<*xf64>
  gpu.host_register %ui : memref<*xi32>
  gpu.host_register %uf : memref<*xf32>
  gpu.host_register %ul : memref<*xf64>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %b, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %k0 = arith.constant 0 : index
    %k1 = arith.constant 1 : index
    %k2 = arith.constant 2 : index
    %k3 = arith.constant 3 : index
    %k4 = arith.constant 4 : index
    %k32 = arith.constant 32 : index
    %base = arith.muli %bx, %k32 : index
    %at = arith.addi %base, %tx : index
    %v = arith.index_cast %at : index to i32
    %zero = arith.constant 0 : i32
    %neg = arith.subi %zero, %v : i32
    %x = arith.sitofp %v : i32 to f32
    %d = arith.extf %x : f32 to f64
    %xone = arith.constant 1.0 : f32
    %r0 = memref.atomic_rmw addi %v, %i[%k0] : (i32, memref<5xi32>) -> i32
    %r1 = memref.atomic_rmw maxs %v, %i[%k1] : (i32, memref<5xi32>) -> i32
    %r2 = memref.atomic_rmw mins %neg, %i[%k2] : (i32, memref<5xi32>) -> i32
    %r3 = memref.atomic_rmw ori %v, %i[%k3] : (i32, memref<5xi32>) -> i32
    %one = arith.constant 1 : i32
    %r4 = memref.atomic_rmw addi %one, %i[%k4] : (i32, memref<5xi32>) -> i32
    %f0 = memref.atomic_rmw addf %x, %f[%k0] : (f32, memref<3xf32>) -> f32
    %f1 = memref.atomic_rmw maximumf %x, %f[%k1] : (f32, memref<3xf32>) -> f32
    %f2 = memref.atomic_rmw addf %xone, %f[%k2] : (f32, memref<3xf32>) -> f32
    %d0 = memref.atomic_rmw addf %d, %l[%k0] : (f64, memref<1xf64>) -> f64
    gpu.terminator
  }
  call @printMemrefI32(%ui) : (memref<*xi32>) -> ()
  call @printMemrefF32(%uf) : (memref<*xf32>) -> ()
  call @printMemrefF64(%ul) : (memref<*xf64>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
func.func private @printMemrefF32(memref<*xf32>)
func.func private @printMemrefF64(memref<*xf64>)

//--- math.mlir
// Each line is a function at 1, or at 0.5 where 1 is no interior point.
// CHECK: [2.71828,  2,  1,  0.841471,  0.540302,  1.55741,  0.761594,  0.785398,  0.523599,  0.842701,  0.693147,  1.1752,  8,  1,  1.41421,  0.5]
func.func @main() {
  %c1 = arith.constant 1 : index
  %m = memref.alloc() : memref<16xf32>
  %u = memref.cast %m : memref<16xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  %in = memref.alloc() : memref<4xf32>
  %ui = memref.cast %in : memref<4xf32> to memref<*xf32>
  gpu.host_register %ui : memref<*xf32>
  %h0 = arith.constant 0 : index
  %h2 = arith.constant 2 : index
  %h3 = arith.constant 3 : index
  %v1 = arith.constant 1.0 : f32
  %v2 = arith.constant 0.5 : f32
  %v3 = arith.constant 2.0 : f32
  %v4 = arith.constant 3.0 : f32
  memref.store %v1, %in[%h0] : memref<4xf32>
  memref.store %v2, %in[%c1] : memref<4xf32>
  memref.store %v3, %in[%h2] : memref<4xf32>
  memref.store %v4, %in[%h3] : memref<4xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i2 = arith.constant 2 : index
    %i3 = arith.constant 3 : index
    %one = memref.load %in[%i0] : memref<4xf32>
    %half = memref.load %in[%i1] : memref<4xf32>
    %two = memref.load %in[%i2] : memref<4xf32>
    %three = memref.load %in[%i3] : memref<4xf32>
    %f0 = math.exp %one : f32
    %f1 = math.exp2 %one : f32
    %f2 = math.log2 %two : f32
    %f3 = math.sin %one : f32
    %f4 = math.cos %one : f32
    %f5 = math.tan %one : f32
    %f6 = math.tanh %one : f32
    %f7 = math.atan %one : f32
    %f8 = math.asin %half : f32
    %f9 = math.erf %one : f32
    %fa = math.log %two : f32
    %fb = math.sinh %one : f32
    %fc = math.powf %two, %three : f32
    %fd = math.cbrt %one : f32
    %fe = math.sqrt %two : f32
    %ff = math.copysign %half, %one : f32
    %v = vector.from_elements %f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8, %f9, %fa, %fb, %fc, %fd, %fe, %ff : vector<16xf32>
    vector.store %v, %m[%i0] : memref<16xf32>, vector<16xf32>
    gpu.terminator
  }
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)

//--- globals.mlir
// A constant table, and a variable that lives from launch to launch.
// CHECK: [10,  20,  30,  3]
module attributes {gpu.container_module} {
  gpu.module @kernels {
    memref.global "private" constant @table : memref<3xi32> = dense<[10, 20, 30]>
    memref.global "private" @count : memref<1xi32> = dense<1>
    gpu.func @k(%m: memref<4xi32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %one = arith.constant 1 : i32
      %t = memref.get_global @table : memref<3xi32>
      %n = memref.get_global @count : memref<1xi32>
      scf.for %i = %c0 to %c3 step %c1 {
        %x = memref.load %t[%i] : memref<3xi32>
        memref.store %x, %m[%i] : memref<4xi32>
      }
      %old = memref.load %n[%c0] : memref<1xi32>
      %new = arith.addi %old, %one : i32
      memref.store %new, %n[%c0] : memref<1xi32>
      memref.store %new, %m[%c3] : memref<4xi32>
      gpu.return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %m = memref.alloc() : memref<4xi32>
    %u = memref.cast %m : memref<4xi32> to memref<*xi32>
    gpu.host_register %u : memref<*xi32>
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<4xi32>)
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<4xi32>)
    call @printMemrefI32(%u) : (memref<*xi32>) -> ()
    return
  }
  func.func private @printMemrefI32(memref<*xi32>)
}

//--- types.mlir
// 3 * 5 + 2 in each type, by f64, f16, bf16, i8 and i64.
// CHECK: [17,  17,  17,  17,  17]
func.func @main() {
  %c1 = arith.constant 1 : index
  %m = memref.alloc() : memref<5xf32>
  %u = memref.cast %m : memref<5xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  %in = memref.alloc() : memref<3xi32>
  %ui = memref.cast %in : memref<3xi32> to memref<*xi32>
  gpu.host_register %ui : memref<*xi32>
  %h0 = arith.constant 0 : index
  %h2 = arith.constant 2 : index
  %v3 = arith.constant 3 : i32
  %v5 = arith.constant 5 : i32
  %v2 = arith.constant 2 : i32
  memref.store %v3, %in[%h0] : memref<3xi32>
  memref.store %v5, %in[%c1] : memref<3xi32>
  memref.store %v2, %in[%h2] : memref<3xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i2 = arith.constant 2 : index
    %i3 = arith.constant 3 : index
    %i4 = arith.constant 4 : index
    %a = memref.load %in[%i0] : memref<3xi32>
    %b = memref.load %in[%i1] : memref<3xi32>
    %c = memref.load %in[%i2] : memref<3xi32>
    %ad = arith.sitofp %a : i32 to f64
    %bd = arith.sitofp %b : i32 to f64
    %cd = arith.sitofp %c : i32 to f64
    %d = math.fma %ad, %bd, %cd : f64
    %d0 = arith.truncf %d : f64 to f32
    %ah = arith.sitofp %a : i32 to f16
    %bh = arith.sitofp %b : i32 to f16
    %ch = arith.sitofp %c : i32 to f16
    %h = math.fma %ah, %bh, %ch : f16
    %d1 = arith.extf %h : f16 to f32
    %ab = arith.sitofp %a : i32 to bf16
    %bb = arith.sitofp %b : i32 to bf16
    %cb = arith.sitofp %c : i32 to bf16
    %p = arith.mulf %ab, %bb : bf16
    %s = arith.addf %p, %cb : bf16
    %d2 = arith.extf %s : bf16 to f32
    %a8 = arith.trunci %a : i32 to i8
    %b8 = arith.trunci %b : i32 to i8
    %c8 = arith.trunci %c : i32 to i8
    %p8 = arith.muli %a8, %b8 : i8
    %s8 = arith.addi %p8, %c8 : i8
    %d3 = arith.sitofp %s8 : i8 to f32
    %a64 = arith.extsi %a : i32 to i64
    %b64 = arith.extsi %b : i32 to i64
    %c64 = arith.extsi %c : i32 to i64
    %p64 = arith.muli %a64, %b64 : i64
    %s64 = arith.addi %p64, %c64 : i64
    %d4 = arith.sitofp %s64 : i64 to f32
    memref.store %d0, %m[%i0] : memref<5xf32>
    memref.store %d1, %m[%i1] : memref<5xf32>
    memref.store %d2, %m[%i2] : memref<5xf32>
    memref.store %d3, %m[%i3] : memref<5xf32>
    memref.store %d4, %m[%i4] : memref<5xf32>
    gpu.terminator
  }
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)

//--- ptx.mlir
// Arithmetic as inline assembly, which libdevice is full of. (2^64 - 1) b is b 2^64 - b;
// NaN is equal or unordered; the first bit of 40 is the 27th from the left; 1 less 1e-9,
// towards zero, is the number before 1.
// CHECK: [-1311768467463790320,  1311768467463790319,  7,  26,  1065353215]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.alloc() : memref<5xi64>
  %in = memref.alloc() : memref<3xi64>
  %v = arith.constant dense<[-1, 1311768467463790320, 40]> : vector<3xi64>
  vector.store %v, %in[%c0] : memref<3xi64>, vector<3xi64>
  %u = memref.cast %m : memref<5xi64> to memref<*xi64>
  %ui = memref.cast %in : memref<3xi64> to memref<*xi64>
  gpu.host_register %u : memref<*xi64>
  gpu.host_register %ui : memref<*xi64>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i2 = arith.constant 2 : index
    %i3 = arith.constant 3 : index
    %i4 = arith.constant 4 : index
    %a = memref.load %in[%i0] : memref<3xi64>
    %b = memref.load %in[%i1] : memref<3xi64>
    %c = memref.load %in[%i2] : memref<3xi64>
    %p = llvm.inline_asm "{\0A .reg .u32 r0, r1, r2, r3, alo, ahi, blo, bhi;\0A mov.b64 {alo,ahi}, $2;\0A mov.b64 {blo,bhi}, $3;\0A mul.lo.u32 r0, alo, blo;\0A mul.hi.u32 r1, alo, blo;\0A mad.lo.cc.u32 r1, alo, bhi, r1;\0A madc.hi.u32 r2, alo, bhi, 0;\0A mad.lo.cc.u32 r1, ahi, blo, r1;\0A madc.hi.cc.u32 r2, ahi, blo, r2;\0A madc.hi.u32 r3, ahi, bhi, 0;\0A mad.lo.cc.u32 r2, ahi, bhi, r2;\0A addc.u32 r3, r3, 0;\0A mov.b64 $0, {r0,r1};\0A mov.b64 $1, {r2,r3};\0A}", "=l,=l,l,l" %a, %b : (i64, i64) -> !llvm.struct<(i64, i64)>
    %low = llvm.extractvalue %p[0] : !llvm.struct<(i64, i64)>
    %high = llvm.extractvalue %p[1] : !llvm.struct<(i64, i64)>
    %nan = llvm.bitcast %a : i64 to f64
    %one = arith.constant 1.0 : f64
    %seven = arith.constant 7.0 : f64
    %eight = arith.constant 8.0 : f64
    %s = llvm.inline_asm "{ .reg .pred __$$temp3;\0A  setp.equ.f64 __$$temp3, $1, $2;\0A  selp.f64 $0, $3, $4, __$$temp3;}", "=d,d,d,d,d" %one, %nan, %seven, %eight : (f64, f64, f64, f64) -> f64
    %si = arith.fptosi %s : f64 to i64
    %c32 = arith.trunci %c : i64 to i32
    %f = llvm.inline_asm "bfind.shiftamt.u32 $0, $1;", "=r,r" %c32 : (i32) -> i32
    %fi = arith.extui %f : i32 to i64
    %x = arith.constant 1.0 : f32
    %y = arith.constant 1.0e-9 : f32
    %d = llvm.inline_asm "sub.rz.f32 $0, $1, $2;", "=f,f,f" %x, %y : (f32, f32) -> f32
    %di = arith.bitcast %d : f32 to i32
    %dw = arith.extui %di : i32 to i64
    memref.store %low, %m[%i0] : memref<5xi64>
    memref.store %high, %m[%i1] : memref<5xi64>
    memref.store %si, %m[%i2] : memref<5xi64>
    memref.store %fi, %m[%i3] : memref<5xi64>
    memref.store %dw, %m[%i4] : memref<5xi64>
    gpu.terminator
  }
  call @printMemrefI64(%u) : (memref<*xi64>) -> ()
  return
}
func.func private @printMemrefI64(memref<*xi64>)
