// Every thread initialises the mbarrier, the second warp waits for it with no
// barrier in between, and nothing makes it known to the copy engine; a shuffle's
// mask leaves lanes out. GPUs forgive all of it: warnings, unless asked for errors.

// RUN: %nvvm %s | %mlir_runner 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARN --implicit-check-not=error: <%t.err
// RUN: %nvvm %s | env KVBUF_EMULATOR_OPTIONS='{"strict": true}' not %mlir_runner 2>&1 \
// RUN:   | FileCheck %s --check-prefix=STRICT

// CHECK: [120,  376]
// WARN-DAG: warning: 'nvvm.mbarrier.init' {{.*}}again, for as many arrivals; PTX leaves that undefined
// WARN-DAG: warning: 'nvvm.mbarrier.try_wait.parity' {{.*}}with no barrier after its initialisation by warp
// WARN-DAG: warning: 'nvvm.cp.async.bulk.tensor.shared.cluster.global' {{.*}}the copy engine may not see the mbarrier
// WARN-DAG: warning: 'nvvm.shfl.sync' by warp {{[01]}} (block 0,0,0): the member mask leaves out lanes that execute it
// STRICT-DAG: error: 'nvvm.mbarrier.init' {{.*}}which is in use
// STRICT-DAG: error: 'nvvm.shfl.sync' {{.*}}leaves out lanes

!bar = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
!map = !nvgpu.tensormap.descriptor<tensor = memref<8x4xi32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 64 : index
  %rows = arith.constant 8 : index
  %cols = arith.constant 4 : index
  %h = memref.alloc() : memref<8x4xi32>
  %sums = memref.alloc() : memref<2xi32>
  %us = memref.cast %sums : memref<2xi32> to memref<*xi32>
  gpu.host_register %us : memref<*xi32>
  scf.for %i = %c0 to %rows step %c1 {
    scf.for %j = %c0 to %cols step %c1 {
      %r = arith.muli %i, %cols : index
      %s = arith.addi %r, %j : index
      %x = arith.index_cast %s : index to i32
      memref.store %x, %h[%i, %j] : memref<8x4xi32>
    }
  }
  %t0 = gpu.wait async
  %d, %t1 = gpu.alloc async [%t0] () : memref<8x4xi32>
  %t2 = gpu.memcpy async [%t1] %d, %h : memref<8x4xi32>, memref<8x4xi32>
  gpu.wait [%t2]
  %u = memref.cast %d : memref<8x4xi32> to memref<*xi32>
  %map = nvgpu.tma.create.descriptor %u box[%rows, %cols] : memref<*xi32> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<8x4xi32, #gpu.address_space<workgroup>>) {
    %k0 = arith.constant 0 : index
    %k1 = arith.constant 1 : index
    %k4 = arith.constant 4 : index
    %k8 = arith.constant 8 : index
    %k32 = arith.constant 32 : index
    %bytes = arith.constant 128 : index
    %ticks = arith.constant 10000000 : index
    %phase = arith.constant false
    %first = arith.cmpi eq, %tx, %k0 : index
    %half = arith.constant 65535 : i32
    %last = arith.constant 31 : i32
    %lane0 = arith.constant 0 : i32
    %number = arith.divui %tx, %k32 : index
    %number32 = arith.index_cast %number : index to i32
    %warp32 = nvvm.shfl.sync idx %half, %number32, %lane0, %last : i32 -> i32
    %warp = arith.index_cast %warp32 : i32 to index
    %bar = nvgpu.mbarrier.create -> !bar
    nvgpu.mbarrier.init %bar[%k0], %k1 : !bar
    nvgpu.mbarrier.arrive.expect_tx %bar[%k0], %bytes, predicate = %first : !bar
    nvgpu.tma.async.load %map[%k0, %k0], %bar[%k0] to %s, predicate = %first : !map, !bar -> memref<8x4xi32, #gpu.address_space<workgroup>>
    nvgpu.mbarrier.try_wait.parity %bar[%k0], %phase, %ticks : !bar
    // Each warp sums the half of the words that is its own.
    %in = arith.remui %tx, %k32 : index
    %leads = arith.cmpi eq, %in, %k0 : index
    scf.if %leads {
      %from = arith.muli %warp, %k4 : index
      %to = arith.addi %from, %k4 : index
      %zero = arith.constant 0 : i32
      %sum = scf.for %i = %from to %to step %k1 iter_args(%a = %zero) -> (i32) {
        %row = scf.for %j = %k0 to %k4 step %k1 iter_args(%b = %a) -> (i32) {
          %x = memref.load %s[%i, %j] : memref<8x4xi32, #gpu.address_space<workgroup>>
          %y = arith.addi %b, %x : i32
          scf.yield %y : i32
        }
        scf.yield %row : i32
      }
      memref.store %sum, %sums[%warp] : memref<2xi32>
    }
    gpu.terminator
  }
  call @printMemrefI32(%us) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
