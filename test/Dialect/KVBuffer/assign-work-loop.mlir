// Blocks that take several items. (tile-order.py tests the order of the numbers.)

// DEFINE: %{tiles} = static
// DEFINE: %{run} = sed s/TILES/%{tiles}/ %s | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-work)))"
// RUN: %{run} | FileCheck %s --check-prefixes=CHECK,STATIC
// RUN: %{run} --remark-format=emitRemark --remarks-filter=kvbuf-assign-work 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REDEFINE: %{tiles} = dynamic
// RUN: %{run} | FileCheck %s --check-prefixes=CHECK,DYNAMIC
// One item a block: growing items have an order of their own.
// REDEFINE: %{tiles} = grid
// RUN: %{run} | FileCheck %s --check-prefix=GRID
// Without it, they stand as they do in the grid, from the last one on.
// RUN: sed s/TILES/dynamic/ %s | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-work{several-items=false})))" 2>%t.warnings | FileCheck %s --check-prefix=PLAIN
// What the schedule asks for beyond that is not dropped without a word.
// RUN: FileCheck %s --check-prefix=ALONE < %t.warnings
// ALONE: warning: blocks take one item each: several-items = false leaves out tiles = dynamic of the schedule
// RUN: sed 's/TILES/static, cluster = 2/' %s | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-work{several-items=false})))" 2>&1 >/dev/null | FileCheck %s --check-prefix=CLUSTER
// CLUSTER: warning: blocks take one item each: several-items = false leaves out tiles = static and cluster = 2 of the schedule
// RUN: sed s/TILES/grid/ %s | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-work{several-items=false})))" 2>&1 >/dev/null | FileCheck %s --check-prefix=NOTHING --allow-empty
// NOTHING-NOT: warning

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [64, 8, 16], producers = 4, tiles = TILES>
#buffer = #kvbuffer.kv_buffer<64x64xbf16, stages = 2>
module attributes {kvbuffer.target = "sm_90a"} {
gpu.module @m {
  // Equal items: place by place, so that item and place are a remainder and a
  // quotient. One block for each multiprocessor, no more than items.
  // CHECK-LABEL: gpu.func @equal
  // CHECK-SAME:    kvbuffer.grid = [#kvbuffer.size<min(product(sms, 1), product(ceildiv(rows, 64), 4, min(batch, 9)))>, 1, 1]
  // CHECK-NEXT:    kvbuffer.alloc
  // CHECK:         %[[ROWS:.*]] = kvbuffer.launch_size "rows"
  // CHECK:         %[[TILES:.*]] = arith.ceildivui %[[ROWS]]
  // CHECK:         kvbuffer.launch_size "batch"
  // CHECK:         %[[BATCH:.*]] = arith.minsi
  // CHECK:         %[[HEADS:.*]] = arith.constant 4
  // CHECK:         %[[PLACES:.*]] = arith.muli %[[BATCH]], %[[HEADS]]
  // CHECK:         %[[TOTAL:.*]] = arith.muli %[[TILES]], %[[PLACES]]
  // STATIC:        %[[ME:.*]] = gpu.block_id x
  // STATIC:        %[[BLOCKS:.*]] = gpu.grid_dim x
  // STATIC:        scf.for %[[T:.*]] = %[[ME]] to %[[TOTAL]] step %[[BLOCKS]]
  // The next number is asked for when the item is done.
  // DYNAMIC:       %[[NONE:.*]] = kvbuffer.next_tile of %[[TOTAL]]
  // DYNAMIC:       scf.while (%[[N:.*]] = %[[NONE]])
  // DYNAMIC-NEXT:    %[[MORE:.*]] = arith.cmpi slt, %[[N]], %[[TOTAL]]
  // DYNAMIC-NEXT:    scf.condition(%[[MORE]]) %[[N]]
  // DYNAMIC:       ^bb0(%[[T:.*]]: index):
  // CHECK-NEXT:      %[[PLACE:.*]] = arith.divui %[[T]], %[[TILES]]
  // CHECK-NEXT:      %[[TILE:.*]] = arith.remui %[[T]], %[[TILES]]
  // CHECK-NEXT:      %[[USER:.*]] = arith.divui %[[PLACE]], %[[HEADS]]
  // CHECK-NEXT:      %[[HEAD:.*]] = arith.remui %[[PLACE]], %[[HEADS]]
  // CHECK-NEXT:      memref.store %[[TILE]], %{{.*}}[%[[USER]], %[[HEAD]]]
  // DYNAMIC-NEXT:    %[[NEXT:.*]] = kvbuffer.next_tile of %[[TOTAL]]
  // DYNAMIC-NEXT:    scf.yield %[[NEXT]]
  // CHECK:         gpu.return
  // REMARK: remark: [Passed] tiles{{.*}}"blocks take tiles ", Remark="in turn"
  // GRID-LABEL:  gpu.func @equal
  // GRID-NEXT:     %[[X:.*]] = gpu.block_id x
  // GRID-NEXT:     %[[Y:.*]] = gpu.block_id y
  // GRID-NEXT:     %[[Z:.*]] = gpu.block_id z
  // GRID-NEXT:     kvbuffer.alloc
  // GRID-NEXT:     memref.store %[[X]], %{{.*}}[%[[Z]], %[[Y]]]
  gpu.func @equal(%o: memref<?x4xindex>) kernel attributes {kvbuffer.schedule = #schedule} {
    %tile, %head, %batch = kvbuffer.work_item [<"rows" by 64, sharing = all>, <4>, <min(batch, 9)>]
    %buffer = kvbuffer.alloc : !kvbuffer.buffer<#buffer>
    memref.store %tile, %o[%batch, %head] : memref<?x4xindex>
    gpu.return
  }

  // What types fix is a number.
  // CHECK-LABEL: gpu.func @fixed
  // CHECK-SAME:    product(ceildiv(256, 128), 4, 2)
  // CHECK-NOT:     kvbuffer.launch_size
  gpu.func @fixed(%o: memref<2x4xindex>) kernel attributes {kvbuffer.schedule = #schedule} {
    %tile, %head, %batch = kvbuffer.work_item [<256 by 128>, <4>, <2>]
    memref.store %tile, %o[%batch, %head] : memref<2x4xindex>
    gpu.return
  }

  // Growing items: groups of as many places as have the items of all
  // multiprocessors, and as the cache has bytes for, in multiples of those that
  // share them; the last item of a place first.
  // CHECK-LABEL: gpu.func @growing
  // CHECK:         %[[TILES:.*]] = arith.ceildivui
  // CHECK:         %[[PLACES:.*]] = arith.muli %{{.*}}, %{{.*}}
  // CHECK:         %[[BYTES:.*]] = kvbuffer.launch_size "bytes"
  // CHECK:         %[[READ:.*]] = arith.maxsi %[[BYTES]]
  // CHECK:         %[[ROOM:.*]] = arith.constant 16777216
  // CHECK:         %[[FIT:.*]] = arith.divui %[[ROOM]], %[[READ]]
  // CHECK:         %[[TWICE:.*]] = arith.constant 256
  // CHECK:         %[[LAST2:.*]] = arith.divui %[[TWICE]], %{{.*}}
  // CHECK:         %[[SHARING2:.*]] = arith.constant 4
  // CHECK:         %[[RUNNING:.*]] = arith.divui %[[LAST2]], %[[SHARING2]]
  // CHECK:         %[[BOTH:.*]] = arith.minsi %[[FIT]], %[[RUNNING]]
  // CHECK:         %[[SOME:.*]] = arith.maxsi %[[BOTH]]
  // CHECK:         %[[SHARING:.*]] = arith.constant 2
  // CHECK:         arith.muli %[[SOME]], %[[SHARING]]
  // STATIC:        scf.for
  // DYNAMIC:       scf.while
  // CHECK:           %[[LAST:.*]] = arith.subi %[[TILES]], %{{.*}}
  // CHECK:           %[[TILE:.*]] = arith.subi %[[LAST]], %{{.*}}
  // CHECK:           memref.store %[[TILE]]
  // GRID-LABEL:  gpu.func @growing
  // GRID-SAME:     kvbuffer.grid = [#kvbuffer.size<ceildiv(rows, 64)>, 4, #kvbuffer.size<min(batch, 9)>]
  // GRID:          gpu.block_id z
  // GRID:          arith.constant 16777216
  // GRID:          arith.select
  // PLAIN-LABEL: gpu.func @growing
  // PLAIN-SAME:    kvbuffer.grid = [#kvbuffer.size<ceildiv(rows, 64)>, 4, #kvbuffer.size<min(batch, 9)>]
  // PLAIN-NOT:     arith.select
  // PLAIN:         gpu.grid_dim x
  // PLAIN:         arith.subi
  // PLAIN:         arith.subi
  // PLAIN-NEXT:    memref.store
  gpu.func @growing(%o: memref<?x4xindex>) kernel attributes {kvbuffer.schedule = #schedule} {
    %tile, %head, %batch = kvbuffer.work_item [<"rows" by 64, growing, sharing = all>, <4, sharing = 2>, <min(batch, 9)>] reads "bytes"
    memref.store %tile, %o[%batch, %head] : memref<?x4xindex>
    gpu.return
  }

  // Nothing says how much items read: place by place, the longest of each first.
  // REMARK: remark: [Missed] tiles{{.*}}places follow each other: kvbuffer.work_item does not say how many bytes items read of what they share (reads)
  // CHECK-LABEL: gpu.func @unknown
  // CHECK-NOT:     arith.select
  // STATIC:        scf.for %[[T:.*]] = %{{.*}} to %{{.*}} step
  // DYNAMIC:       ^bb0(%[[T:.*]]: index):
  // CHECK-NEXT:      arith.divui %[[T]], %[[TILES:.*]] :
  // CHECK-NEXT:      %[[X:.*]] = arith.remui %[[T]], %[[TILES]]
  // CHECK-NEXT:      arith.constant 1
  // CHECK-NEXT:      %[[LAST:.*]] = arith.subi %[[TILES]]
  // CHECK-NEXT:      %[[TILE:.*]] = arith.subi %[[LAST]], %[[X]]
  // CHECK-NEXT:      memref.store %[[TILE]]
  gpu.func @unknown(%o: memref<?xindex>) kernel attributes {kvbuffer.schedule = #schedule} {
    %tile, %head = kvbuffer.work_item [<"rows" by 64, growing, sharing = all>, <4, sharing = 2>]
    memref.store %tile, %o[%head] : memref<?xindex>
    gpu.return
  }

  // Numbers over sequences: each block numbers the tiles that there are before its
  // loop, whatever sizes and arguments are called.
  // CHECK-LABEL: gpu.func @ragged
  // CHECK-SAME:    %[[STARTS:[^:]*]]: memref<?xi32>
  // CHECK-SAME:    %[[NUMBERS:[^:]*]]: memref<?x?xi32> {kvbuffer.access = "workspace", kvbuffer.name = "tile_numbers", kvbuffer.shape = [#kvbuffer.size<min(product(sms, 1), product(sum(ceildiv(tokens, 64), users), 4))>, "users"]}
  // CHECK-SAME:    kvbuffer.grid = [#kvbuffer.size<min(product(sms, 1), product(sum(ceildiv(tokens, 64), users), 4))>, 1, 1]
  // CHECK:         %[[BLOCK:.*]] = gpu.block_id x
  // CHECK:         %[[USERS:.*]] = arith.subi
  // CHECK:         %[[TOKENS:.*]] = memref.dim %{{.*}} : memref<?x4x16xbf16>
  // CHECK:         %[[TILES:.*]] = kvbuffer.number_tiles %[[STARTS]] of %[[USERS]] upto %[[TOKENS]] by 64 into %[[NUMBERS]][%[[BLOCK]]]
  // The longest sequence decides over groups.
  // CHECK:         %[[LONGEST:.*]] = kvbuffer.launch_size "longest"
  // CHECK:         arith.ceildivui %[[LONGEST]]
  // CHECK:         arith.muli %[[TILES]],
  // CHECK:         kvbuffer.find_tile %{{.*}} in %{{.*}} by 64 numbered %[[NUMBERS]][%[[BLOCK]]] {from_end}
  gpu.func @ragged(%x: memref<?x4x16xbf16> {kvbuffer.name = "x"}, %starts: memref<?xi32> {kvbuffer.name = "starts"}) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c1 = arith.constant 1 : index
    %number, %head = kvbuffer.work_item [<"tokens" by 64 over "users" longest "longest", growing, sharing = all>, <4>] reads 4096
    %ends = memref.dim %starts, %c0 : memref<?xi32>
    %users = arith.subi %ends, %c1 : index
    %tokens = memref.dim %x, %c0 : memref<?x4x16xbf16>
    %sequence, %tile = kvbuffer.find_tile %number in %starts of %users upto %tokens by 64 : memref<?xi32>
    %first, %row = kvbuffer.item_rows %tile by 64
    %rows = kvbuffer.dram_tile %x[%row, %head] valid(%c64) : memref<?x4x16xbf16> -> !kvbuffer.tile<64x16xbf16>
    gpu.return
  }

  // What uses the number for something else needs those with gaps.
  // CHECK-LABEL: gpu.func @number_used
  // CHECK-NOT:     kvbuffer.number_tiles
  // CHECK:         %[[ROWS:.*]] = kvbuffer.launch_size "tokens"
  // CHECK:         %[[TILES:.*]] = arith.ceildivui %[[ROWS]]
  // CHECK:         %[[USERS:.*]] = kvbuffer.launch_size "users"
  // CHECK:         arith.addi %[[TILES]], %[[USERS]]
  // CHECK:         kvbuffer.find_tile {{.*}} by 64 : memref<?xi32>
  gpu.func @number_used(%starts: memref<?xi32>, %users: index, %tokens: index, %o: memref<?x?xindex>) kernel attributes {kvbuffer.schedule = #schedule} {
    %number = kvbuffer.work_item [<"tokens" by 64 over "users">]
    %sequence, %tile = kvbuffer.find_tile %number in %starts of %users upto %tokens by 64 : memref<?xi32>
    memref.store %tile, %o[%number, %sequence] : memref<?x?xindex>
    gpu.return
  }

  // Strips, whose items share along both coordinates.
  // CHECK-LABEL: gpu.func @strips
  // CHECK:         arith.ceildivui
  // CHECK:         %[[NS:.*]] = arith.ceildivui
  // STATIC:        scf.for %[[T:.*]] = %{{.*}} to %{{.*}} step
  // DYNAMIC:       ^bb0(%[[T:.*]]: index):
  // CHECK-NEXT:      %[[EIGHT:.*]] = arith.constant 8
  // CHECK-NEXT:      %[[STRIP:.*]] = arith.muli %[[EIGHT]], %[[NS]]
  // CHECK-NEXT:      arith.divui %[[T]], %[[STRIP]]
  gpu.func @strips(%o: memref<?xindex>) kernel attributes {kvbuffer.schedule = #schedule} {
    %i, %j = kvbuffer.work_item [<"m" by 64, sharing = all>, <"n" by 32, sharing = all>]
    memref.store %i, %o[%j] : memref<?xindex>
    gpu.return
  }

  // Bytes that may be none, whatever the sizes are, are at least one; others are
  // divided by as they are.
  // CHECK-LABEL: gpu.func @perhaps_none
  // CHECK:         %[[BYTES:.*]] = arith.addi
  // CHECK:         %[[SOME:.*]] = arith.maxsi %[[BYTES]]
  // CHECK:         arith.divui %{{.*}}, %[[SOME]]
  gpu.func @perhaps_none(%o: memref<?xindex>) kernel attributes {kvbuffer.schedule = #schedule} {
    %tile, %head = kvbuffer.work_item [<"rows" by 64, growing, sharing = all>, <4>] reads sum(4096, more)
    memref.store %tile, %o[%head] : memref<?xindex>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @some
  // CHECK:         %[[KEYS:.*]] = kvbuffer.launch_size "keys"
  // CHECK:         %[[ANY:.*]] = arith.maxsi %[[KEYS]]
  // CHECK:         %[[BYTES:.*]] = arith.muli %[[ANY]]
  // CHECK:         arith.divui %{{.*}}, %[[BYTES]]
  gpu.func @some(%o: memref<?xindex>) kernel attributes {kvbuffer.schedule = #schedule} {
    %tile, %head = kvbuffer.work_item [<"rows" by 64, growing, sharing = all>, <4>] reads product(max(keys, 1), 512)
    memref.store %tile, %o[%head] : memref<?xindex>
    gpu.return
  }
}
}
