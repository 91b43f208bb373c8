// At most 65535 blocks fit along z: y, or x, takes the rest.

// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-work)))" | FileCheck %s
// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-work)))" --remark-format=emitRemark --remarks-filter=kvbuf-assign-work 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// Once folded, a grid stays.
// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-work{blocks=2},kvbuf-assign-work)))" | FileCheck %s --check-prefix=TWO

gpu.module @m {
  // CHECK-LABEL: gpu.func @heads_along_y
  // CHECK-SAME:    kvbuffer.grid = [#kvbuffer.size<ceildiv(rows, 64)>, #kvbuffer.size<product(4, ceildiv(batch, 32768))>, #kvbuffer.size<min(batch, 32768)>]
  // CHECK:         %[[BUFFER:.*]] = kvbuffer.alloc
  // CHECK:         %[[Y:.*]] = gpu.block_id y
  // CHECK:         %[[N:.*]] = arith.constant 4
  // CHECK:         %[[HEAD:.*]] = arith.remui %[[Y]], %[[N]]
  // CHECK:         %[[OUTER:.*]] = arith.divui %[[Y]], %[[N]]
  // CHECK:         %[[STEP:.*]] = arith.constant 32768
  // CHECK:         %[[FIRST:.*]] = arith.muli %[[OUTER]], %[[STEP]]
  // CHECK:         %[[Z:.*]] = gpu.block_id z
  // CHECK:         %[[SEQUENCE:.*]] = arith.addi %[[Z]], %[[FIRST]]
  // CHECK:         %[[BATCH:.*]] = kvbuffer.launch_size "batch"
  // CHECK:         %[[ACTIVE:.*]] = arith.cmpi ult, %[[SEQUENCE]], %[[BATCH]]
  // CHECK:         scf.if %[[ACTIVE]] {
  // CHECK:           %[[X:.*]] = gpu.block_id x
  // CHECK:           memref.store %[[X]], %{{.*}}[%[[SEQUENCE]], %[[HEAD]]]
  // CHECK:           memref.store %[[N]], %{{.*}}[%[[BATCH]], %[[HEAD]]]
  // CHECK:         }
  // CHECK-NEXT:    gpu.return
  // TWO-LABEL: gpu.func @heads_along_y
  // TWO-SAME:    kvbuffer.grid = [#kvbuffer.size<ceildiv(rows, 64)>, #kvbuffer.size<product(4, ceildiv(batch, 2))>, #kvbuffer.size<min(batch, 2)>]
  // TWO:         scf.if
  // TWO-NOT:     scf.if
  // TWO:       gpu.func @heads_along_x
  gpu.func @heads_along_y(%o: memref<?x?xindex>) kernel attributes {kvbuffer.grid = [#kvbuffer.size<ceildiv(rows, 64)>, 4, "batch"]} {
    %x = gpu.block_id x
    %y = gpu.block_id y
    %z = gpu.block_id z
    %ny = gpu.grid_dim y
    %nz = gpu.grid_dim z
    %buffer = kvbuffer.alloc : <#kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, kv_num_heads = 1, stages = 2>>
    memref.store %x, %o[%z, %y] : memref<?x?xindex>
    memref.store %ny, %o[%nz, %y] : memref<?x?xindex>
    gpu.return
  }

  // Where y is no number, along x.
  // CHECK-LABEL: gpu.func @heads_along_x
  // CHECK-SAME:    kvbuffer.grid = [#kvbuffer.size<product(8, ceildiv(sum(a, 1), 32768))>, "rows", #kvbuffer.size<min(sum(a, 1), 32768)>]
  // CHECK:         %[[X:.*]] = gpu.block_id x
  // CHECK:         %[[N:.*]] = arith.constant 8
  // CHECK:         %[[HEAD:.*]] = arith.remui %[[X]], %[[N]]
  // CHECK:         arith.divui %[[X]], %[[N]]
  // CHECK:         %[[Z:.*]] = arith.addi
  // CHECK:         %[[DEPTH:.*]] = kvbuffer.launch_value sum(a, 1)
  // CHECK:         arith.cmpi ult, %[[Z]], %[[DEPTH]]
  // CHECK:         memref.store %[[HEAD]], %{{.*}}[%[[Z]]]
  gpu.func @heads_along_x(%o: memref<?xindex>) kernel attributes {kvbuffer.grid = [8, "rows", #kvbuffer.size<sum(a, 1)>]} {
    %x = gpu.block_id x
    %z = gpu.block_id z
    memref.store %x, %o[%z] : memref<?xindex>
    gpu.return
  }

  // Few enough, whatever the launch says.
  // CHECK-LABEL: gpu.func @number
  // CHECK-SAME:    kvbuffer.grid = ["rows", 4, 100]
  // CHECK-NEXT:    gpu.return
  gpu.func @number() kernel attributes {kvbuffer.grid = ["rows", 4, 100]} {
    gpu.return
  }

  // More than fit, whatever the launch says.
  // CHECK-LABEL: gpu.func @large_number
  // CHECK-SAME:    kvbuffer.grid = ["rows", #kvbuffer.size<product(4, ceildiv(70000, 32768))>, #kvbuffer.size<min(70000, 32768)>]
  gpu.func @large_number() kernel attributes {kvbuffer.grid = ["rows", 4, 70000]} {
    gpu.return
  }

  // CHECK-LABEL: gpu.func @nothing_fixed
  // CHECK-SAME:    kvbuffer.grid = ["rows", "heads", "batch"]
  // REMARK: remark: [Missed] grid{{.*}}launches of more than 65535 blocks along z fail: {{.*}}neither x nor y has a fixed number of blocks
  gpu.func @nothing_fixed() kernel attributes {kvbuffer.grid = ["rows", "heads", "batch"]} {
    gpu.return
  }

  // Blocks of a cluster are neighbours along x.
  // CHECK-LABEL: gpu.func @cluster
  // CHECK-SAME:    kvbuffer.grid = [8, "rows", "batch"]
  // REMARK: remark: [Missed] grid{{.*}}neither x nor y
  gpu.func @cluster() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, kvbuffer.grid = [8, "rows", "batch"]} {
    gpu.return
  }
}
