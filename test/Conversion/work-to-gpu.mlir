// One thread arrives for a block, between two barriers, and all are told.
// RUN: kvbuf-opt %s --convert-kvbuffer-to-gpu | FileCheck %s
// RUN: kvbuf-opt %s \
// RUN:   --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,expand-strided-metadata,lower-affine,convert-scf-to-cf,convert-kvbuffer-to-nvvm))" \
// RUN:   | FileCheck %s --check-prefix=NVVM

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
#two = #kvbuffer.schedule<BM = 32, BN = 16, BK = 64, warps = 2, mma_shape = [16, 8, 16]>

module attributes {gpu.container_module, kvbuffer.target = "sm_80"} {
gpu.module @work {
  // What a launch computes is a parameter; memory of the runtime's is a tensor
  // with that access.
  // CHECK-LABEL: gpu.func @one_warp
  // CHECK-SAME: args = [{{.*}}, {kind = "size", value = {max = [1, {floordiv = ["sms", "batch"]}]}}]
  // CHECK-SAME: kvbuffer.tensors = [{access = "counter", dtype = "i32", name = "arrived", shape = ["batch", 2]}]
  gpu.func @one_warp(%arrived: memref<?x2xi32> {kvbuffer.name = "arrived", kvbuffer.access = "counter", kvbuffer.shape = ["batch", 2]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [2, 1, 1]} {
    %c0 = arith.constant 0 : index
    %n = kvbuffer.launch_value {max = [1, {floordiv = ["sms", "batch"]}]}
    // CHECK: gpu.barrier
    // CHECK: %[[LAST:.*]] = scf.if %{{.*}} -> (i1) {
    // CHECK:   %[[BEFORE:.*]] = kvbuffer.lane_arrive
    // CHECK:   %[[IS:.*]] = arith.cmpi eq, %[[BEFORE]]
    // CHECK:   scf.if %[[IS]] {
    // CHECK:     memref.store %c0_i32
    // CHECK:   scf.yield %[[IS]]
    // CHECK: gpu.barrier
    // CHECK: kvbuffer.lane_any %[[LAST]]
    // NVVM-LABEL: llvm.func @one_warp
    // NVVM: llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") acq_rel
    %last = kvbuffer.arrive_last %arrived[%c0, %c0] of %n : memref<?x2xi32>
    gpu.return
  }
  // Warps tell each other through shared memory.
  // CHECK-LABEL: gpu.func @two_warps
  gpu.func @two_warps(%arrived: memref<4xi32> {kvbuffer.name = "arrived", kvbuffer.access = "counter"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #two, kvbuffer.grid = [2, 1, 1]} {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    // CHECK: kvbuffer.lane_arrive
    // CHECK: memref.store %{{.*}} : memref<?xi32, #gpu.address_space<workgroup>>
    // CHECK: gpu.barrier
    // CHECK: memref.load %{{.*}} : memref<?xi32, #gpu.address_space<workgroup>>
    // CHECK-NOT: lane_any
    %last = kvbuffer.arrive_last %arrived[%c0] of %c2 : memref<4xi32>
    gpu.return
  }
}
}
