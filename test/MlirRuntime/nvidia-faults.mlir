// Faults planted in programs of upstream dialects: each is found, at the
// operation of MLIR's own that makes it, and ends the program.
//
// REQUIRES: mlir-runner
// RUN: split-file %s %t
// RUN: %nvvm %t/race.mlir | not %mlir_runner 2>&1 | FileCheck %t/race.mlir
// RUN: %nvvm %t/wait.mlir | not %mlir_runner 2>&1 | FileCheck %t/wait.mlir
// RUN: %nvvm %t/bounds.mlir | not %mlir_runner 2>&1 | FileCheck %t/bounds.mlir
// RUN: %nvvm %t/unwritten.mlir | not %mlir_runner 2>&1 | FileCheck %t/unwritten.mlir
// RUN: %nvvm %t/diverge.mlir | not %mlir_runner 2>&1 | FileCheck %t/diverge.mlir
// RUN: %nvvm %t/count.mlir | not %mlir_runner 2>&1 | FileCheck %t/count.mlir
// RUN: %nvvm %t/arrivals.mlir | not %mlir_runner 2>&1 | FileCheck %t/arrivals.mlir
// RUN: %nvvm %t/blocks.mlir | not %mlir_runner 2>&1 | FileCheck %t/blocks.mlir

//--- race.mlir
// No barrier between the store and the other thread's load.
// CHECK: error: 'llvm.load' by thread {{.*}}shared-memory race
// CHECK: note: 'llvm.store'
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %m = memref.alloc() : memref<64xf32>
  %u = memref.cast %m : memref<64xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<64xf32, #gpu.address_space<workgroup>>) {
    %k63 = arith.constant 63 : index
    %x = memref.load %m[%tx] : memref<64xf32>
    memref.store %x, %s[%tx] : memref<64xf32, #gpu.address_space<workgroup>>
    %i = arith.subi %k63, %tx : index
    %y = memref.load %s[%i] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %y, %m[%tx] : memref<64xf32>
    gpu.terminator
  }
  return
}

//--- wait.mlir
// The copy is never waited for.
// CHECK: error: 'llvm.load' by thread {{.*}}
// CHECK: note: 'nvvm.cp.async.shared.global'
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 32 : index
  %m = memref.alloc() : memref<128xf32>
  %u = memref.cast %m : memref<128xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<128xf32, #gpu.address_space<workgroup>>) {
    %k4 = arith.constant 4 : index
    %at = arith.muli %tx, %k4 : index
    %t = nvgpu.device_async_copy %m[%at], %s[%at], 4 : memref<128xf32> to memref<128xf32, #gpu.address_space<workgroup>>
    %g = nvgpu.device_async_create_group %t
    %y = memref.load %s[%at] : memref<128xf32, #gpu.address_space<workgroup>>
    memref.store %y, %m[%at] : memref<128xf32>
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
// Device memory that nothing has written.
// CHECK: error: 'llvm.load' by thread 0 {{.*}}allocation 1 (16 bytes)
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 4 : index
  %h = memref.alloc() : memref<4xf32>
  %u = memref.cast %h : memref<4xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  %t0 = gpu.wait async
  %m, %t1 = gpu.alloc async [%t0] () : memref<4xf32>
  gpu.wait [%t1]
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %x = memref.load %m[%tx] : memref<4xf32>
    memref.store %x, %h[%tx] : memref<4xf32>
    gpu.terminator
  }
  return
}

//--- diverge.mlir
// CHECK: error: 'nvvm.barrier' by warp 0 {{.*}}: divergent barrier: 7 of the warp's 32 lanes execute it
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %k7 = arith.constant 7 : index
    %few = arith.cmpi ult, %tx, %k7 : index
    scf.if %few {
      gpu.barrier
    }
    gpu.terminator
  }
  return
}

//--- count.mlir
// The box has 512 bytes, and 1024 are expected.
// CHECK: error: 'nvvm.mbarrier.try_wait.parity' by warp 0 {{.*}}1024 bytes awaited
!bar = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
!map = !nvgpu.tensormap.descriptor<tensor = memref<16x8xi32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 32 : index
  %rows = arith.constant 16 : index
  %cols = arith.constant 8 : index
  %h = memref.alloc() : memref<16x8xi32>
  %z = arith.constant 0 : i32
  linalg.fill ins(%z : i32) outs(%h : memref<16x8xi32>)
  %u = memref.cast %h : memref<16x8xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  %map = nvgpu.tma.create.descriptor %u box[%rows, %cols] : memref<*xi32> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<16x8xi32, #gpu.address_space<workgroup>>) {
    %k0 = arith.constant 0 : index
    %k1 = arith.constant 1 : index
    %bytes = arith.constant 1024 : index
    %ticks = arith.constant 10000000 : index
    %phase = arith.constant false
    %first = arith.cmpi eq, %tx, %k0 : index
    %bar = nvgpu.mbarrier.create -> !bar
    nvgpu.mbarrier.init %bar[%k0], %k1, predicate = %first : !bar
    nvvm.fence.mbarrier.init
    gpu.barrier
    nvgpu.mbarrier.arrive.expect_tx %bar[%k0], %bytes, predicate = %first : !bar
    nvgpu.tma.async.load %map[%k0, %k0], %bar[%k0] to %s, predicate = %first : !map, !bar -> memref<16x8xi32, #gpu.address_space<workgroup>>
    nvgpu.mbarrier.try_wait.parity %bar[%k0], %phase, %ticks : !bar
    gpu.terminator
  }
  return
}

//--- arrivals.mlir
// 32 threads arrive at a barrier for 33.
// CHECK: error: 'nvvm.mbarrier.try_wait.parity' by warp 0 {{.*}}32 of 33 arrivals
!bar = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
!tok = !nvgpu.mbarrier.token
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %k0 = arith.constant 0 : index
    %k33 = arith.constant 33 : index
    %ticks = arith.constant 10000000 : index
    %phase = arith.constant false
    %first = arith.cmpi eq, %tx, %k0 : index
    %bar = nvgpu.mbarrier.create -> !bar
    nvgpu.mbarrier.init %bar[%k0], %k33, predicate = %first : !bar
    gpu.barrier
    %t = nvgpu.mbarrier.arrive %bar[%k0] : !bar -> !tok
    nvgpu.mbarrier.try_wait.parity %bar[%k0], %phase, %ticks : !bar
    gpu.terminator
  }
  return
}

//--- blocks.mlir
// Two blocks write one element.
// CHECK: error: 'llvm.store' by thread 0 {{.*}}block {{[01]}},0,0): global-memory race
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 2 : index
  %m = memref.alloc() : memref<1xi32>
  %u = memref.cast %m : memref<1xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %k0 = arith.constant 0 : index
    %x = arith.index_cast %bx : index to i32
    memref.store %x, %m[%k0] : memref<1xi32>
    gpu.terminator
  }
  return
}
