// Items that the blocks of a cluster take together.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-work)))" | FileCheck %s
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-work)))" --remark-format=emitRemark --remarks-filter=kvbuf-assign-work 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [64, 8, 16], producers = 4, tiles = static, cluster = 2>
#split = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4, cluster = 2, split_keys = true>
module attributes {kvbuffer.target = "sm_90a"} {
gpu.module @m {
  // Neighbours that read the same whatever else: the number is of pairs. Which place
  // they share, every block of a pair computes alike.
  // REMARK: remark: [Passed] cluster{{.*}}"clusters of ", Remark=2, Remark=" blocks take items that read the same"
  // CHECK-LABEL: gpu.func @sharing
  // CHECK-SAME:    known_cluster_size = array<i32: 2, 1, 1>
  // CHECK-SAME:    kvbuffer.grid = [#kvbuffer.size<product(min(ceildiv(sum(sms, -1), 2), product(ceildiv(rows, 64), 4, batch)), 2)>, 1, 1]
  // CHECK:         %[[ME:.*]] = gpu.cluster_id x
  // CHECK:         %[[CLUSTERS:.*]] = gpu.cluster_dim x
  // CHECK:         scf.for %{{.*}} = %[[ME]] to %{{.*}} step %[[CLUSTERS]]
  // CHECK:           %[[TILE:.*]] = arith.remui
  // CHECK:           %[[PAIR:.*]] = arith.remui
  // CHECK:           %[[TWO:.*]] = arith.constant 2
  // CHECK:           %[[FIRST:.*]] = arith.muli %[[PAIR]], %[[TWO]]
  // CHECK:           %[[RANK:.*]] = gpu.cluster_block_id x
  // CHECK:           %[[HEAD:.*]] = arith.addi %[[FIRST]], %[[RANK]]
  // Four heads share, so two pairs do.
  // CHECK:           %[[PAIRS:.*]] = arith.constant 2
  // CHECK:           %[[SHARED:.*]] = arith.divui %[[PAIR]], %[[PAIRS]]
  // CHECK:           %[[THREE:.*]] = arith.constant 3
  // CHECK:           %[[OTHER:.*]] = arith.divui %[[HEAD]], %[[THREE]]
  // CHECK:           %[[ROW:.*]] = arith.muli %[[TILE]]
  // CHECK:           kvbuffer.key_range %[[ROW]] {{.*}}BM = 64
  // CHECK:           memref.store %[[SHARED]], %{{.*}}[%[[HEAD]], %[[OTHER]]]
  gpu.func @sharing(%o: memref<?x?xindex>, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %tile, %head, %batch = kvbuffer.work_item [<"rows" by 64, sharing = all>, <8, sharing = 4>, <"batch">]
    %c4 = arith.constant 4 : index
    %shared = arith.divui %head, %c4 : index
    %c3 = arith.constant 3 : index
    %other = arith.divui %head, %c3 : index
    %first, %row = kvbuffer.item_rows %tile by 64
    %lo, %hi, %fullLo, %fullHi = kvbuffer.key_range %first of %n keys %n {BM = 64, mask = #kvbuffer.mask<>}
    memref.store %shared, %o[%head, %other] : memref<?x?xindex>
    gpu.return
  }

  // Neighbouring rows, where no number of neighbours shares: what the cluster has to
  // agree about is of all its rows, what a block stores of its own.
  // REMARK: remark: [Passed] cluster{{.*}}"clusters of ", Remark=2, Remark=" blocks take neighbouring tiles"
  // CHECK-LABEL: gpu.func @rows
  // CHECK-SAME:    product(ceildiv(rows, 128), 6)
  // CHECK:         scf.for
  // CHECK:           %[[PAIR:.*]] = arith.remui
  // A use of the item itself.
  // CHECK:           %[[FIRST:.*]] = arith.muli %[[PAIR]], %{{.*}}
  // CHECK:           %[[RANK:.*]] = gpu.cluster_block_id x
  // CHECK:           %[[ITEM:.*]] = arith.addi %[[FIRST]], %[[RANK]]
  // CHECK:           %[[BOTH:.*]] = arith.constant 128
  // CHECK:           %[[FIRSTROW:.*]] = arith.muli %[[PAIR]], %[[BOTH]]
  // CHECK:           %[[OWN:.*]] = gpu.cluster_block_id x
  // CHECK-NOT:       cluster_dim
  // CHECK:           %[[PART:.*]] = arith.muli %[[OWN]], %{{.*}}
  // CHECK:           %[[ROW:.*]] = arith.addi %[[FIRSTROW]], %[[PART]]
  // CHECK:           kvbuffer.key_range %[[FIRSTROW]] {{.*}}BM = 128
  // Another range stays the block's own.
  // CHECK:           kvbuffer.key_range %[[ROW]] {{.*}}BM = 64
  // CHECK:           memref.store %[[ROW]], %{{.*}}[%[[ITEM]], %{{.*}}]
  gpu.func @rows(%o: memref<?x?xindex>, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %tile, %head = kvbuffer.work_item [<"rows" by 64, sharing = all>, <6, sharing = 3>]
    %first, %row = kvbuffer.item_rows %tile by 64
    %lo, %hi, %fullLo, %fullHi = kvbuffer.key_range %first of %n keys %n {BM = 64, mask = #kvbuffer.mask<>}
    %lo2, %hi2, %fullLo2, %fullHi2 = kvbuffer.key_range %row of %n keys %n {BM = 64, mask = #kvbuffer.mask<>}
    memref.store %row, %o[%tile, %head] : memref<?x?xindex>
    gpu.return
  }

  // Rows of four heads: a range of keys begins at the query of the cluster's first row.
  // CHECK-LABEL: gpu.func @heads_as_rows
  // CHECK:         %[[FIRSTROW:.*]] = arith.muli
  // CHECK:         %[[QUERY:.*]] = arith.divui %{{.*}}, %c4
  // CHECK:         kvbuffer.key_range %[[QUERY]] {{.*}}BM = 128 : i64, group = 4
  gpu.func @heads_as_rows(%o: memref<?x?xindex>, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c4 = arith.constant 4 : index
    %tile, %head = kvbuffer.work_item [<"rows" by 64, sharing = all>, <6, sharing = 3>]
    %first, %row = kvbuffer.item_rows %tile by 64
    %query = arith.divui %first, %c4 : index
    %lo, %hi, %fullLo, %fullHi = kvbuffer.key_range %query of %n keys %n {BM = 64, group = 4, mask = #kvbuffer.mask<>}
    memref.store %row, %o[%tile, %head] : memref<?x?xindex>
    gpu.return
  }

  // Items that grow are taken in turn: by how many numbers for each cluster lie
  // before this one.
  // CHECK-LABEL: gpu.func @turns
  // CHECK:         scf.for %[[T:.*]] = %{{.*}} to
  // CHECK:           %[[RANK:.*]] = gpu.cluster_block_id x
  // CHECK:           %[[CLUSTERS:.*]] = gpu.cluster_dim x
  // CHECK:           %[[ROUND:.*]] = arith.divui %[[T]], %[[CLUSTERS]]
  // CHECK:           %[[SUM:.*]] = arith.addi %[[RANK]], %[[ROUND]]
  // CHECK:           %[[TURN:.*]] = arith.remui %[[SUM]], %{{.*}}
  // CHECK:           %[[PART:.*]] = arith.muli %[[TURN]], %{{.*}}
  // CHECK:           %[[ROW:.*]] = arith.addi %{{.*}}, %[[PART]]
  // CHECK:           memref.store %[[ROW]]
  gpu.func @turns(%o: memref<?xindex>) kernel attributes {kvbuffer.schedule = #schedule} {
    %tile, %head = kvbuffer.work_item [<"rows" by 64, growing, sharing = all>, <6>] reads 4096
    %first, %row = kvbuffer.item_rows %tile by 64
    memref.store %row, %o[%head] : memref<?xindex>
    gpu.return
  }

  // Numbers over sequences are of pairs, too.
  // CHECK-LABEL: gpu.func @ragged
  // CHECK-SAME:    product(sum(ceildiv(rows, 128), users), 6)
  // CHECK:         kvbuffer.number_tiles {{.*}} by 128 into
  // CHECK:         %{{.*}}, %[[PAIR:.*]] = kvbuffer.find_tile %{{.*}} by 128 numbered
  // CHECK:         %[[FIRST:.*]] = arith.muli %[[PAIR]], %{{.*}}
  // CHECK:         %[[RANK:.*]] = gpu.cluster_block_id x
  // CHECK:         %[[PART:.*]] = arith.muli %[[RANK]], %{{.*}}
  // CHECK:         %[[ROW:.*]] = arith.addi %[[FIRST]], %[[PART]]
  // CHECK:         memref.store %[[ROW]]
  gpu.func @ragged(%starts: memref<?xi32>, %users: index, %tokens: index, %o: memref<?x?xindex>) kernel attributes {kvbuffer.schedule = #schedule} {
    %number, %head = kvbuffer.work_item [<"rows" by 64 over "users", sharing = all>, <6>]
    %user, %tile = kvbuffer.find_tile %number in %starts of %users upto %tokens by 64 : memref<?xi32>
    %first, %row = kvbuffer.item_rows %tile by 64
    memref.store %row, %o[%user, %head] : memref<?x?xindex>
    gpu.return
  }

  // Of split keys each block has an item, and clusters lie along the first coordinate.
  // REMARK: remark: [Passed] cluster{{.*}}"clusters of ", Remark=2, Remark=" blocks take items that read the same"
  // CHECK-LABEL: gpu.func @splits
  // CHECK-SAME:    known_cluster_size = array<i32: 2, 1, 1>
  // CHECK-SAME:    kvbuffer.grid = [4, "splits", "batch"]
  // CHECK-NOT:     gpu.block_id x
  // CHECK:         %[[PAIR:.*]] = gpu.cluster_id x
  // CHECK:         %[[TWO:.*]] = arith.constant 2
  // CHECK:         %[[FIRST:.*]] = arith.muli %[[PAIR]], %[[TWO]]
  // CHECK:         %[[RANK:.*]] = gpu.cluster_block_id x
  // CHECK:         %[[PART:.*]] = arith.addi %[[FIRST]], %[[RANK]]
  // CHECK:         %[[ONE:.*]] = arith.constant 1
  // CHECK:         %[[CACHE:.*]] = arith.divui %[[PAIR]], %[[ONE]]
  // CHECK:         memref.store %[[CACHE]], %{{.*}}[%[[PART]], %{{.*}}]
  gpu.func @splits(%o: memref<?x?xindex>) kernel attributes {kvbuffer.schedule = #split} {
    %part, %block, %batch = kvbuffer.work_item [<4, sharing = 2>, <"splits">, <"batch">]
    %c2 = arith.constant 2 : index
    %cache = arith.divui %part, %c2 : index
    memref.store %cache, %o[%part, %block] : memref<?x?xindex>
    gpu.return
  }

  // REMARK: warning: no clusters of 2: along the first coordinate no 2 neighbouring items read the same
  // CHECK-LABEL: gpu.func @apart
  // CHECK-NOT:     known_cluster_size
  // CHECK:         gpu.block_id x
  gpu.func @apart(%o: memref<?xindex>) kernel attributes {kvbuffer.schedule = #split} {
    %part, %block = kvbuffer.work_item [<4>, <"splits">]
    memref.store %part, %o[%block] : memref<?xindex>
    gpu.return
  }
}
}
