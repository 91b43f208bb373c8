// Kernels whose blocks count each other in wait for earlier launches by
// themselves, and let the next one begin once they run.
// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(convert-scf-to-cf,convert-kvbuffer-to-nvvm))" | FileCheck %s

module attributes {kvbuffer.target = "sm_90"} {
gpu.module @new {
  // The wait is before the first access to memory: what the kernel loads may be
  // of the launch before it.
  // CHECK-LABEL: llvm.func @joins
  // CHECK-NOT: llvm.load
  // CHECK: nvvm.griddepcontrol{{ +}}wait
  // CHECK-NEXT: nvvm.griddepcontrol{{ +}}launch_dependents
  // CHECK: llvm.load
  // CHECK-NOT: griddepcontrol
  // CHECK: llvm.atomicrmw add
  gpu.func @joins(%arrived: memref<4xi32>, %some: memref<4xi32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %one = memref.load %some[%c0] : memref<4xi32>
    %before = kvbuffer.lane_arrive %arrived[%c0] : memref<4xi32>
    memref.store %before, %some[%c0] : memref<4xi32>
    memref.store %one, %some[%c0] : memref<4xi32>
    gpu.return
  }
  // The block's own memory is no other launch's. A block that has nothing to do
  // waits, too: a launch that ended before the one before it would let the next
  // one begin.
  // CHECK-LABEL: llvm.func @some_blocks
  // CHECK-NOT: griddepcontrol
  // CHECK: llvm.store {{.*}} !llvm.ptr<3>
  // CHECK: llvm.cond_br
  // CHECK: nvvm.griddepcontrol{{ +}}wait
  // CHECK-NEXT: nvvm.griddepcontrol{{ +}}launch_dependents
  // CHECK: llvm.atomicrmw add
  // CHECK: llvm.return
  // CHECK: nvvm.griddepcontrol{{ +}}wait
  // CHECK-NEXT: llvm.return
  gpu.func @some_blocks(%arrived: memref<4xi32>, %n: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %shared = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %byte = arith.constant 1 : i8
    memref.store %byte, %shared[%c0] : memref<?xi8, #gpu.address_space<workgroup>>
    %mine = arith.cmpi slt, %c0, %n : index
    cf.cond_br %mine, ^work, ^none
  ^work:
    %before = kvbuffer.lane_arrive %arrived[%c0] : memref<4xi32>
    gpu.return
  ^none:
    gpu.return
  }
  // Blocks that arrive again and again have work left.
  // CHECK-LABEL: llvm.func @again
  // CHECK-NOT: griddepcontrol
  gpu.func @again(%arrived: memref<4xi32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %before = kvbuffer.lane_arrive %arrived[%i] : memref<4xi32>
    }
    gpu.return
  }
  // But where as many run on a multiprocessor as its shared memory has room for twice,
  // those of the next launch have a place beside each.
  // CHECK-LABEL: llvm.func @beside
  // CHECK: nvvm.griddepcontrol{{ +}}wait
  // CHECK-NEXT: nvvm.griddepcontrol{{ +}}launch_dependents
  // CHECK: llvm.atomicrmw add
  gpu.func @beside(%arrived: memref<4xi32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, kvbuffer.resident_blocks = 1, kvbuffer.kernel = #kvbuffer.launch<dynamic_shared_bytes = 98304>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %before = kvbuffer.lane_arrive %arrived[%i] : memref<4xi32>
    }
    gpu.return
  }
  // CHECK-LABEL: llvm.func @two_beside
  // CHECK: nvvm.griddepcontrol{{ +}}wait
  gpu.func @two_beside(%arrived: memref<4xi32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, kvbuffer.resident_blocks = 2, kvbuffer.kernel = #kvbuffer.launch<dynamic_shared_bytes = 49152>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %before = kvbuffer.lane_arrive %arrived[%i] : memref<4xi32>
    }
    gpu.return
  }
  // Not where they have none, or room for three: one multiprocessor would get two.
  // CHECK-LABEL: llvm.func @no_place
  // CHECK-NOT: griddepcontrol
  gpu.func @no_place(%arrived: memref<4xi32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, kvbuffer.resident_blocks = 1, kvbuffer.kernel = #kvbuffer.launch<dynamic_shared_bytes = 131072>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %before = kvbuffer.lane_arrive %arrived[%i] : memref<4xi32>
    }
    gpu.return
  }
  // CHECK-LABEL: llvm.func @more_places
  // CHECK-NOT: griddepcontrol
  gpu.func @more_places(%arrived: memref<4xi32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, kvbuffer.resident_blocks = 1, kvbuffer.kernel = #kvbuffer.launch<dynamic_shared_bytes = 65536>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %before = kvbuffer.lane_arrive %arrived[%i] : memref<4xi32>
    }
    gpu.return
  }
  // Blocks of one warp are many to a multiprocessor.
  // CHECK-LABEL: llvm.func @one_warp
  // CHECK-NOT: griddepcontrol
  gpu.func @one_warp(%arrived: memref<4xi32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %before = kvbuffer.lane_arrive %arrived[%c0] : memref<4xi32>
    gpu.return
  }
  // A number that orders nothing is no arrival.
  // CHECK-LABEL: llvm.func @numbered
  // CHECK-NOT: griddepcontrol
  gpu.func @numbered(%arrived: memref<4xi32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %before = kvbuffer.lane_arrive %arrived[%c0] relaxed : memref<4xi32>
    gpu.return
  }
  // CHECK-LABEL: llvm.func @alone
  // CHECK-NOT: griddepcontrol
  gpu.func @alone(%some: memref<4xi32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    gpu.return
  }
  // Who says when launches begin is left alone.
  // CHECK-LABEL: llvm.func @own
  // CHECK: llvm.atomicrmw add
  // CHECK: nvvm.griddepcontrol{{ +}}wait
  // CHECK-NOT: griddepcontrol
  gpu.func @own(%arrived: memref<4xi32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %before = kvbuffer.lane_arrive %arrived[%c0] : memref<4xi32>
    nvvm.griddepcontrol wait
    gpu.return
  }
}
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
gpu.module @old {
  // CHECK-LABEL: llvm.func @joins
  // CHECK-NOT: griddepcontrol
  gpu.func @joins(%arrived: memref<4xi32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %before = kvbuffer.lane_arrive %arrived[%c0] : memref<4xi32>
    gpu.return
  }
}
}

// -----

// Kernels that share a launch, in whatever order: each lets the next begin once its
// blocks run. One block of those after the first waits at its end, on each way out, so that the
// kernel ends after those before it. It loads at once: what it reads is of launches
// before all of them.
#many = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [16, 8, 16]>
#few = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], split_keys = true>
module attributes {kvbuffer.target = "sm_90"} {
gpu.module @shared {
  // CHECK-LABEL: llvm.func @many
  // CHECK-NOT: llvm.load
  // CHECK: nvvm.griddepcontrol{{ +}}launch_dependents
  // CHECK: %[[WAITS:.*]] = llvm.icmp "eq"
  // CHECK: llvm.load
  // CHECK: llvm.cond_br %[[WAITS]], ^[[WAIT:bb[0-9]+]], ^[[END:bb[0-9]+]]
  // CHECK-NEXT: ^[[WAIT]]:
  // CHECK-NEXT: nvvm.griddepcontrol{{ +}}wait
  // CHECK-NEXT: llvm.br ^[[END]]
  // CHECK-NEXT: ^[[END]]:
  // CHECK-NEXT: llvm.return
  gpu.func @many(%some: memref<4xi32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, kvbuffer.schedule = #many, kvbuffer.shared_rows = array<i64: 8, -1, 8>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = memref.load %some[%c0] : memref<4xi32>
    memref.store %one, %some[%c1] : memref<4xi32>
    gpu.return
  }
  // CHECK-LABEL: llvm.func @few
  // CHECK: nvvm.griddepcontrol{{ +}}launch_dependents
  // CHECK: %[[WAITS:.*]] = llvm.icmp "eq"
  // CHECK: llvm.atomicrmw add
  // CHECK-NEXT: llvm.cond_br %[[WAITS]], ^[[WAIT:bb[0-9]+]], ^[[END:bb[0-9]+]]
  // CHECK-NEXT: ^[[WAIT]]:
  // CHECK-NEXT: nvvm.griddepcontrol{{ +}}wait
  // CHECK-NEXT: llvm.br ^[[END]]
  // CHECK-NEXT: ^[[END]]:
  // CHECK-NEXT: llvm.return
  // CHECK: llvm.cond_br %[[WAITS]], ^[[WAIT]], ^[[END]]
  gpu.func @few(%arrived: memref<4xi32>, %n: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.schedule = #few, kvbuffer.shared_rows = array<i64: 0, 8, 8>} {
    %c0 = arith.constant 0 : index
    %mine = arith.cmpi slt, %c0, %n : index
    cf.cond_br %mine, ^work, ^none
  ^work:
    %before = kvbuffer.lane_arrive %arrived[%c0] relaxed : memref<4xi32>
    gpu.return
  ^none:
    gpu.return
  }
  // Equal shares want as many blocks on each multiprocessor: 5 of 45696 bytes, and
  // of the driver's 1024, do not fit the 233472 that there are. The same for those
  // of more rows.
  // CHECK-LABEL: llvm.func @spread
  // CHECK-SAME: dynamic_shared_bytes = 45696
  // CHECK-LABEL: llvm.func @more_rows
  // CHECK-SAME: dynamic_shared_bytes = 45696
  // CHECK-LABEL: llvm.func @large
  // CHECK-SAME: dynamic_shared_bytes = 65536
  gpu.func @spread() kernel attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.schedule = #few, kvbuffer.shared_rows = array<i64: 0, 4, 8>, kvbuffer.resident_blocks = 4, kvbuffer.kernel = #kvbuffer.launch<dynamic_shared_bytes = 24576>} {
    gpu.return
  }
  gpu.func @more_rows() kernel attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.schedule = #few, kvbuffer.shared_rows = array<i64: 4, 8, 8>, kvbuffer.resident_blocks = 4, kvbuffer.kernel = #kvbuffer.launch<dynamic_shared_bytes = 24576>} {
    gpu.return
  }
  gpu.func @large() kernel attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.schedule = #few, kvbuffer.shared_rows = array<i64: 0, 4, 8>, kvbuffer.resident_blocks = 4, kvbuffer.kernel = #kvbuffer.launch<dynamic_shared_bytes = 65536>} {
    gpu.return
  }
}
}
