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
  // CHECK-SAME: args = [{{.*}}, <size max(1, floordiv(sms, batch))>]
  // CHECK-SAME: kvbuffer.tensors = [#kvbuffer.tensor<"arrived" : i32[batch, 2], counter>]
  gpu.func @one_warp(%arrived: memref<?x2xi32> {kvbuffer.name = "arrived", kvbuffer.access = "counter", kvbuffer.shape = ["batch", 2]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [2, 1, 1]} {
    %c0 = arith.constant 0 : index
    %n = kvbuffer.launch_value max(1, floordiv(sms, batch))
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
    // NVVM: llvm.fence syncscope("device") release
    // NVVM-NEXT: llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic
    // NVVM-NEXT: llvm.fence syncscope("device") acquire
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
  // One thread arrives and looks some times whether the others have. Who has looked for
  // long enough leaves, but not once all have arrived; so all see alike whether somebody
  // has. If not, shares follow from arrivals, and the block says before its first that it
  // looks no more. Else they come from a second counter. Who is last to say so sets all
  // three back.
  // CHECK-LABEL: gpu.func @together
  gpu.func @together(%arrived: memref<2x3xi32> {kvbuffer.name = "arrived", kvbuffer.access = "counter"},
                     %lengths: memref<?xi32> {kvbuffer.name = "lengths", kvbuffer.shape = ["batch"]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #two, kvbuffer.grid = [2, 1, 1]} {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %yes = arith.constant true
    // CHECK: gpu.barrier
    // CHECK: scf.if
    // CHECK: %[[BEFORE:.*]] = kvbuffer.lane_arrive
    // CHECK: %[[WAIT:.*]]:2 = scf.while
    // CHECK: memref.atomic_rmw addi %c0_i32
    // CHECK: memref.generic_atomic_rmw
    // CHECK: ^bb0(%[[HAD:.*]]: i32):
    // CHECK: %[[MARKED:.*]] = arith.ori %[[HAD]], %c1073741824_i32
    // CHECK: %[[NEXT:.*]] = arith.select %{{.*}}, %[[HAD]], %[[MARKED]]
    // CHECK: memref.atomic_yield %[[NEXT]]
    // CHECK: %[[SHARE:.*]]:2 = scf.if
    // CHECK: kvbuffer.lane_arrive %{{.*}} : memref<?xi32
    // CHECK: %[[OWN:.*]] = kvbuffer.lane_arrive %{{.*}} early
    // CHECK: scf.yield %{{.*}}, %[[OWN]]
    // CHECK: memref.store %[[SHARE]]#0, %{{.*}} : memref<?xi32, #gpu.address_space<workgroup>>
    // CHECK: gpu.barrier
    // CHECK: %[[TOLD:.*]] = memref.load %{{.*}} : memref<?xi32, #gpu.address_space<workgroup>>
    // CHECK: gpu.barrier
    // CHECK: %[[FIRST:.*]] = arith.andi %[[TOLD]], %{{.*}}
    // CHECK: scf.while (%{{.*}} = %[[FIRST]])
    // CHECK: memref.load %{{.*}} : memref<?xi32>
    // CHECK: scf.if
    // CHECK: kvbuffer.lane_arrive
    // CHECK: gpu.barrier
    // CHECK: gpu.barrier
    // CHECK: arith.addi
    // CHECK: scf.yield
    // CHECK: kvbuffer.lane_arrive
    // CHECK-COUNT-3: memref.atomic_rmw assign %c0_i32
    // NVVM-LABEL: llvm.func @together
    // NVVM: llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic
    // NVVM-NEXT: llvm.fence syncscope("device") acquire
    // NVVM: llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic
    // NVVM-NOT: llvm.fence
    // NVVM: llvm.cmpxchg
    // NVVM: llvm.fence syncscope("device") release
    // NVVM-NEXT: llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic
    // NVVM-NEXT: llvm.fence syncscope("device") acquire
    // NVVM: llvm.fence syncscope("device") acquire
    // NVVM-NEXT: llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic
    // NVVM-NEXT: llvm.br
    kvbuffer.after_all %arrived[%c1] of %c2 shares(%c2) patient(%yes) {
    ^bb0(%share: index):
      %n = memref.load %lengths[%share] : memref<?xi32>
    } : memref<2x3xi32>
    gpu.return
  }
  // The lanes of a wave look at four items each, whose loads do not wait for each
  // other: all units first, then where the share begins and ends.
  // CHECK-LABEL: gpu.func @shares
  gpu.func @shares(%lengths: memref<?xi32> {kvbuffer.name = "lengths", kvbuffer.shape = ["batch"]},
                   %arrived: memref<?xi32> {kvbuffer.name = "arrived", kvbuffer.access = "counter", kvbuffer.shape = ["batch"]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [4, 1, 1]} {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %block = gpu.block_id x
    %batch = kvbuffer.launch_size "batch"
    // CHECK: %[[OWN:.*]] = arith.muli %{{.*}}, %c4_i32
    // CHECK: %[[FIRST:.*]] = arith.addi %c0_i32, %[[OWN]]
    // CHECK: arith.addi %[[FIRST]], %c0_i32
    // CHECK: memref.load
    // CHECK: arith.select
    // CHECK: arith.addi %[[FIRST]], %c1_i32
    // CHECK: memref.load
    // CHECK: arith.addi %[[FIRST]], %c2_i32
    // CHECK: memref.load
    // CHECK: arith.addi %[[FIRST]], %c3_i32
    // CHECK: memref.load
    // CHECK-NOT: memref.load
    // CHECK-COUNT-5: gpu.shuffle xor
    // How many have units: items that have none are nobody's.
    // CHECK-COUNT-5: gpu.shuffle xor
    // Those of more items than lanes look at together are added up in a loop, and looked
    // at once more below.
    // CHECK: %[[ALL:[0-9]*]]:2 = scf.if
    // CHECK:   %[[SUM:[0-9]*]]:2 = scf.for %{{.*}} = %c128_i32 to %{{.*}} step %c128_i32{{.*}} iter_args
    // CHECK-COUNT-4: memref.load
    // CHECK:   gpu.shuffle xor %[[SUM]]#0
    // CHECK:   gpu.shuffle xor %[[SUM]]#1
    // As many workers as share them without a rest, of nine in ten and more, if those
    // that are missing would have a tenth of an item of each, or less.
    // CHECK: %[[SOME:.*]] = arith.maxsi %[[ALL]]#1, %c1_i32
    // CHECK: arith.divui
    // CHECK: %[[WHOLE:.*]] = arith.ceildivui %[[SOME]]
    // CHECK: arith.ceildivui %[[SOME]]
    // CHECK: %[[EVEN:.*]] = arith.maxsi
    // CHECK: %[[TENTHS:.*]] = arith.muli %[[WHOLE]], %c10_i32
    // CHECK: %[[LESS:.*]] = arith.subi %[[TENTHS]], %c1_i32
    // CHECK: %[[TEN:.*]] = arith.muli %[[EVEN]], %[[TENTHS]]
    // CHECK: %[[NINE:.*]] = arith.muli %[[WORKERS:.*]], %[[LESS]]
    // CHECK: %[[FEW:.*]] = arith.cmpi slt, %[[TEN]], %[[NINE]]
    // CHECK: %[[USED:.*]] = arith.select %[[FEW]], %[[WORKERS]], %[[EVEN]]
    // CHECK: arith.ceildivui %[[ALL]]#0, %[[USED]]
    // CHECK: scf.for %{{.*}} = %c128_i32 to %{{.*}} step %c128_i32{{.*}} iter_args
    // CHECK-COUNT-4: memref.load
    // CHECK-COUNT-5: gpu.shuffle xor
    // CHECK:   scf.yield
    // CHECK-COUNT-15: gpu.shuffle xor
    %size, %first, %start, %end = kvbuffer.share_work %block of %c4 over %batch least %c1 {
    ^bb0(%i: index):
      %n = memref.load %lengths[%i] : memref<?xi32>
      %units = arith.index_cast %n : i32 to index
      kvbuffer.yield %units : index
    }
    %some = arith.subi %end, %first : index
    %all = arith.addi %some, %start : index
    %count = arith.addi %all, %size : index
    %last = kvbuffer.arrive_last %arrived[%first] of %count : memref<?xi32>
    gpu.return
  }
  // Where each item has a unit or more, whatever it is, nobody counts those that have some:
  // workers follow from the launch, beside the reads.
  // CHECK-LABEL: gpu.func @some
  gpu.func @some(%lengths: memref<?xi32> {kvbuffer.name = "lengths", kvbuffer.shape = ["batch"]},
                 %out: memref<?xi32> {kvbuffer.name = "out", kvbuffer.access = "counter", kvbuffer.shape = ["batch"]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [4, 1, 1]} {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %block = gpu.block_id x
    %batch = kvbuffer.launch_size "batch"
    %pause = kvbuffer.launch_value product(4, min(1, floordiv(batch, 16)))
    // CHECK-COUNT-4: memref.load
    // CHECK: arith.divui
    // CHECK-COUNT-5: gpu.shuffle xor
    // CHECK-NOT: gpu.shuffle
    // CHECK: scf.if
    %size, %first, %start, %end = kvbuffer.share_work %block of %c4 over %batch least %c1 {
    ^bb0(%i: index):
      %n = memref.load %lengths[%i] : memref<?xi32>
      %keys = arith.index_cast %n : i32 to index
      %least = arith.maxui %keys, %c1 : index
      %units = arith.addi %least, %pause : index
      kvbuffer.yield %units : index
    }
    %sum = arith.addi %size, %first : index
    %last = kvbuffer.arrive_last %out[%start] of %sum : memref<?xi32>
    gpu.return
  }
  // A number that may be negative takes an item its unit: those that have some are counted.
  // CHECK-LABEL: gpu.func @perhaps
  gpu.func @perhaps(%lengths: memref<?xi32> {kvbuffer.name = "lengths", kvbuffer.shape = ["batch"]},
                    %out: memref<?xi32> {kvbuffer.name = "out", kvbuffer.access = "counter", kvbuffer.shape = ["batch"]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [4, 1, 1]} {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %block = gpu.block_id x
    %batch = kvbuffer.launch_size "batch"
    %pause = kvbuffer.launch_value product(-1, min(1, floordiv(batch, 16)))
    // CHECK-COUNT-10: gpu.shuffle xor
    // CHECK: scf.if
    %size, %first, %start, %end = kvbuffer.share_work %block of %c4 over %batch least %c1 {
    ^bb0(%i: index):
      %n = memref.load %lengths[%i] : memref<?xi32>
      %keys = arith.index_cast %n : i32 to index
      %least = arith.maxui %keys, %c1 : index
      %units = arith.addi %least, %pause : index
      kvbuffer.yield %units : index
    }
    %sum = arith.addi %size, %first : index
    %last = kvbuffer.arrive_last %out[%start] of %sum : memref<?xi32>
    gpu.return
  }
}
}
