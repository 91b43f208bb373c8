// A block for each item: ids, the order of items, dies, and the grid.

// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-work)))" | FileCheck %s

module attributes {kvbuffer.target = "sm_80"} {
gpu.module @m {
  // CHECK-LABEL: gpu.func @plain
  // CHECK-SAME:    kvbuffer.grid = [#kvbuffer.size<ceildiv(rows, 64)>, 4, #kvbuffer.size<min(batch, 9)>]
  // CHECK-NEXT:    %[[X:.*]] = gpu.block_id x
  // CHECK-NEXT:    %[[Y:.*]] = gpu.block_id y
  // CHECK-NEXT:    %[[Z:.*]] = gpu.block_id z
  // Where no cluster takes several tiles, their rows are the block's.
  // CHECK-NEXT:    %[[BM:.*]] = arith.constant 64
  // CHECK-NEXT:    %[[ROW:.*]] = arith.muli %[[X]], %[[BM]]
  // CHECK-NEXT:    memref.store %[[ROW]], %{{.*}}[%[[Z]], %[[Y]], %[[ROW]]]
  // CHECK-NEXT:    gpu.return
  gpu.func @plain(%o: memref<?x4x?xindex>) kernel {
    %tile, %head, %batch = kvbuffer.work_item [<"rows" by 64, sharing = all>, <4, sharing = 2>, <min(batch, 9)>]
    %first, %row = kvbuffer.item_rows %tile by 64
    memref.store %first, %o[%batch, %head, %row] : memref<?x4x?xindex>
    gpu.return
  }

  // The last ones take longest and come first.
  // CHECK-LABEL: gpu.func @growing
  // CHECK-SAME:    kvbuffer.grid = [#kvbuffer.size<ceildiv(rows, 64)>, 1, 1]
  // CHECK-NEXT:    %[[X:.*]] = gpu.block_id x
  // CHECK-NEXT:    %[[TILES:.*]] = gpu.grid_dim x
  // CHECK-NEXT:    %[[ONE:.*]] = arith.constant 1
  // CHECK-NEXT:    %[[LAST:.*]] = arith.subi %[[TILES]], %[[ONE]]
  // CHECK-NEXT:    %[[TILE:.*]] = arith.subi %[[LAST]], %[[X]]
  // CHECK-NEXT:    memref.store %[[TILE]]
  gpu.func @growing(%o: memref<?xindex>) kernel {
    %tile = kvbuffer.work_item [<"rows" by 64, growing>]
    memref.store %tile, %o[%tile] : memref<?xindex>
    gpu.return
  }

  // Of a ragged batch, those of each sequence.
  // CHECK-LABEL: gpu.func @ragged
  // CHECK-SAME:    kvbuffer.grid = [#kvbuffer.size<sum(ceildiv(rows, 64), users)>, 4, 1]
  // CHECK:         %[[X:.*]] = gpu.block_id x
  // CHECK-NOT:     arith.subi
  // CHECK:         kvbuffer.find_tile %[[X]] in %{{.*}} by 64 {from_end}
  gpu.func @ragged(%starts: memref<?xi32>, %users: index, %rows: index, %o: memref<?x?xindex>) kernel {
    %number, %head = kvbuffer.work_item [<"rows" by 64 over "users" longest "longest", growing>, <4>]
    %user, %tile = kvbuffer.find_tile %number in %starts of %users upto %rows by 64 : memref<?xi32>
    memref.store %head, %o[%user, %tile] : memref<?x?xindex>
    gpu.return
  }

  // All coordinates from the third on stand along z.
  // CHECK-LABEL: gpu.func @four
  // CHECK-SAME:    kvbuffer.grid = ["a", "b", #kvbuffer.size<product(ceildiv(c, 2), d, 5)>]
  // CHECK:         %[[Z:.*]] = gpu.block_id z
  // CHECK:         %[[CSIZE:.*]] = kvbuffer.launch_size "c"
  // CHECK:         %[[CS:.*]] = arith.ceildivui %[[CSIZE]], %{{.*}}
  // CHECK:         %[[C:.*]] = arith.remui %[[Z]], %[[CS]]
  // CHECK:         %[[LEFT:.*]] = arith.divui %[[Z]], %[[CS]]
  // CHECK:         %[[DS:.*]] = kvbuffer.launch_size "d"
  // CHECK:         %[[D:.*]] = arith.remui %[[LEFT]], %[[DS]]
  // CHECK:         %[[E:.*]] = arith.divui %[[LEFT]], %[[DS]]
  // CHECK:         memref.store %[[C]], %{{.*}}[%[[D]], %[[E]]]
  gpu.func @four(%o: memref<?x?xindex>) kernel {
    %a, %b, %c, %d, %e = kvbuffer.work_item [<"a">, <"b">, <"c" by 2>, <"d">, <5>]
    memref.store %c, %o[%d, %e] : memref<?x?xindex>
    gpu.return
  }

  // Items share along both coordinates: strips of eight, numbered along x. What the
  // program asks a tensor for, the tensor says.
  // CHECK-LABEL: gpu.func @strips
  // CHECK-SAME:    kvbuffer.grid = [#kvbuffer.size<product(ceildiv(m, 64), ceildiv(n, 32))>, "batch", 1]
  // CHECK:         %[[X:.*]] = gpu.block_id x
  // CHECK:         %[[M:.*]] = memref.dim %arg0
  // CHECK:         %[[MS:.*]] = arith.ceildivui %[[M]]
  // CHECK:         %[[N:.*]] = kvbuffer.launch_size "n"
  // CHECK:         %[[NS:.*]] = arith.ceildivui %[[N]]
  // CHECK:         %[[EIGHT:.*]] = arith.constant 8
  // CHECK:         %[[STRIP:.*]] = arith.muli %[[EIGHT]], %[[NS]]
  // CHECK:         %[[NUMBER:.*]] = arith.divui %[[X]], %[[STRIP]]
  // CHECK:         %[[INSIDE:.*]] = arith.remui %[[X]], %[[STRIP]]
  // CHECK:         %[[START:.*]] = arith.muli %[[NUMBER]], %[[EIGHT]]
  // CHECK:         %[[LEFT:.*]] = arith.subi %[[MS]], %[[START]]
  // CHECK:         %[[OWN:.*]] = arith.minui %[[LEFT]], %[[EIGHT]]
  // CHECK:         %[[ACROSS:.*]] = arith.remui %[[INSIDE]], %[[OWN]]
  // CHECK:         %[[I:.*]] = arith.addi %[[START]], %[[ACROSS]]
  // CHECK:         %[[J:.*]] = arith.divui %[[INSIDE]], %[[OWN]]
  // CHECK:         %[[B:.*]] = gpu.block_id y
  // CHECK:         memref.store %[[I]], %{{.*}}[%[[J]], %[[B]]]
  gpu.func @strips(%a: memref<?x4xf32> {kvbuffer.shape = ["m", 4]}, %o: memref<?x?xindex>) kernel {
    %i, %j, %b = kvbuffer.work_item [<"m" by 64, sharing = all>, <"n" by 32, sharing = all>, <"batch">]
    %c0 = arith.constant 0 : index
    %m = memref.dim %a, %c0 : memref<?x4xf32>
    memref.store %i, %o[%j, %b] : memref<?x?xindex>
    gpu.return
  }
}
}

// -----

// A kernel that does not know its grid's size computes it. Consecutive blocks go to
// four dies in turn, each of which has a run of four of the 16 heads' tiles
// (assign-work-dies.py looks at every block).
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 32, warps = 4, mma_shape = [16, 16, 16], xcds = 4>
module attributes {kvbuffer.target = "gfx942"} {
gpu.module @m {
  // CHECK-LABEL: gpu.func @dies
  // CHECK-SAME:    kvbuffer.grid = [#kvbuffer.size<product(ceildiv(rows, 64), 16, min(batch, 9))>, 1, 1]
  // CHECK:         %[[ROWS:.*]] = kvbuffer.launch_size "rows"
  // CHECK:         %[[TILES:.*]] = arith.ceildivui %[[ROWS]], %{{.*}}
  // CHECK:         %[[ID:.*]] = gpu.block_id x
  // CHECK-NOT:     gpu.block_id
  // CHECK:         %[[DIE:.*]] = arith.remui %[[ID]], %{{.*}} : index
  // CHECK:         arith.divui %[[ID]], %{{.*}}
  // CHECK:         %[[EACH:.*]] = arith.divui %{{.*}}, %{{.*}} : index
  // CHECK:         arith.muli %[[DIE]], %[[EACH]]
  // CHECK:         %[[LAST:.*]] = arith.subi %[[TILES]], %{{.*}}
  // CHECK-NEXT:    %[[OWN:.*]] = arith.subi %[[LAST]], %{{.*}}
  // CHECK-NEXT:    memref.store %[[OWN]], %{{.*}}[%{{.*}}, %{{.*}}]
  gpu.func @dies(%o: memref<?x16xindex>) kernel attributes {kvbuffer.schedule = #schedule} {
    %tile, %head, %batch = kvbuffer.work_item [<"rows" by 64, growing, sharing = all>, <16, sharing = 4>, <min(batch, 9)>]
    memref.store %tile, %o[%batch, %head] : memref<?x16xindex>
    gpu.return
  }
}
}

// -----

// A kernel that splits keys: each of four dies has a run of items, in numbers of 32 bits, of
// which the first coordinate is the fastest. The host computes what has to be computed.
#runs = #kvbuffer.schedule<BM = 16, BN = 32, BK = 32, warps = 1, mma_shape = [16, 16, 16], work = split_keys<xcds = 4>>
module attributes {kvbuffer.target = "gfx942"} {
gpu.module @m {
  // CHECK-LABEL: gpu.func @runs
  // CHECK-SAME:    kvbuffer.grid = [#kvbuffer.size<product(12, ceildiv(seq_k, 64), batch)>, 1, 1]
  // CHECK:         kvbuffer.launch_value ceildiv(seq_k, 64)
  // CHECK:         %[[ALL:.*]] = arith.muli %{{.*}}, %c12_i32
  // CHECK:         %[[ID:.*]] = arith.index_castui %block_id_x : index to i32
  // CHECK:         %[[NUMBER:.*]] = arith.divui %[[ID]], %c4_i32
  // CHECK:         %[[DIE:.*]] = arith.remui %[[ID]], %c4_i32
  // CHECK:         %[[EACH:.*]] = arith.divui %[[ALL]], %c4_i32
  // CHECK:         %[[MORE:.*]] = arith.remui %[[ALL]], %c4_i32
  // CHECK:         %[[BEFORE:.*]] = arith.muli %[[DIE]], %[[EACH]] : i32
  // CHECK:         %[[ONES:.*]] = arith.minui %[[DIE]], %[[MORE]] : i32
  // CHECK:         %[[FIRST:.*]] = arith.addi %[[BEFORE]], %[[ONES]] : i32
  // CHECK:         %[[ITEM:.*]] = arith.addi %[[FIRST]], %[[NUMBER]] : i32
  // CHECK:         arith.divui %[[ITEM]], %c12_i32
  // CHECK:         %[[LINE:.*]] = arith.remui %[[ITEM]], %c12_i32
  // CHECK:         %[[OWN:.*]] = arith.index_castui %[[LINE]] : i32 to index
  // CHECK:         memref.store %[[OWN]],
  gpu.func @runs(%o: memref<?x?x?xindex>) kernel attributes {kvbuffer.schedule = #runs} {
    %line, %split, %batch = kvbuffer.work_item [<12>, <ceildiv(seq_k, 64)>, <"batch">]
    memref.store %line, %o[%line, %split, %batch] : memref<?x?x?xindex>
    gpu.return
  }
}
}
