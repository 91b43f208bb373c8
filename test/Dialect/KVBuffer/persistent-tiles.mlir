// Loops over tiles of queries. (tile-order.py tests the order of the numbers.)

// DEFINE: %{schedule} =
// DEFINE: %{passes} = kvbuf-lower-attention,canonicalize,gpu.module(gpu.func(kvbuf-persistent-tiles,canonicalize,cse))
// DEFINE: %{run} = kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_90a schedule=%{schedule}},%{passes})"

// Every n-th of n blocks. Tiles of equal length: head by head, so x and the head
// are a remainder and a quotient.
// REDEFINE: %{schedule} = tiles=static
// RUN: %{run} | FileCheck %s --check-prefixes=CHECK,STATIC
// RUN: %{run} --remark-format=emitRemark --remarks-filter=kvbuf-persistent-tiles 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// From a counter.
// REDEFINE: %{schedule} = tiles=dynamic
// RUN: %{run} | FileCheck %s --check-prefixes=CHECK,DYNAMIC
// Clusters on heads that share K and V: numbers are of pairs of heads, and the
// grid's clusters are neighbours in its one dimension.
// RUN: kvbuf-opt %S/Inputs/head-pairs.mlir --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_90a schedule=tiles=dynamic,cluster=2},kvbuf-lower-attention,canonicalize,gpu.module(gpu.func(kvbuf-pair-tiles,kvbuf-persistent-tiles,canonicalize,cse)))" | FileCheck %s --check-prefix=PAIRS
// PAIRS:       gpu.func @attend
// PAIRS-SAME:    known_cluster_size = array<i32: 2, 1, 1>
// PAIRS-SAME:    kvbuffer.grid = [{product = [{min = [{ceildiv = [{sum = ["sms", -1]}, 2]}, {product = [{ceildiv = ["seq_q", 128]}, 4, "batch"]}]}, 2]}, 1, 1]
// PAIRS:         %[[BATCH:.*]] = kvbuffer.launch_size "batch"
// PAIRS:         arith.muli %[[BATCH]], %c4
// PAIRS:         %[[PAIR:.*]] = arith.remui %{{.*}}, %c4
// PAIRS:         %[[FIRST:.*]] = arith.muli %[[PAIR]], %c2
// PAIRS:         %[[RANK:.*]] = gpu.cluster_block_id x
// PAIRS:         %[[HEAD:.*]] = arith.addi %[[FIRST]], %[[RANK]]
// PAIRS:         %[[KVHEAD:.*]] = arith.divui %[[PAIR]], %c2
// PAIRS:         kvbuffer.dram_tile %arg0[%{{.*}}, %{{.*}}, %[[HEAD]]]
// PAIRS:         kvbuffer.cache_tile %arg1[%{{.*}}, %[[KVHEAD]],
// PAIRS-NOT:     cluster_block_id y
// Under a mask a cluster's blocks take their neighbouring tiles in turn: by how many
// numbers for each cluster lie before this one.
// RUN: kvbuf-opt %S/Inputs/causal.mlir --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_90a schedule=tiles=dynamic,cluster=4},kvbuf-lower-attention,canonicalize,gpu.module(gpu.func(kvbuf-pair-tiles,kvbuf-persistent-tiles,canonicalize,cse)))" | FileCheck %s --check-prefix=TURNS
// TURNS:         scf.while
// TURNS:         ^bb0(%[[T:.*]]: index):
// TURNS:         %[[FIRST:.*]] = arith.muli %{{.*}}, %c512
// TURNS:         %[[RANK:.*]] = gpu.cluster_block_id x
// TURNS:         %[[CLUSTERS:.*]] = gpu.cluster_dim x
// TURNS:         %[[ROUND:.*]] = arith.divui %[[T]], %[[CLUSTERS]]
// TURNS:         %[[SUM:.*]] = arith.addi %[[RANK]], %[[ROUND]]
// TURNS:         %[[PART:.*]] = arith.remui %[[SUM]], %c4
// TURNS:         %[[ROWS:.*]] = arith.muli %[[PART]], %c128
// TURNS:         %[[OWN:.*]] = arith.addi %[[FIRST]], %[[ROWS]]
// TURNS:         kvbuffer.key_range %[[FIRST]] {{.*}} {BM = 512
// TURNS:         kvbuffer.dram_tile %{{[^ ]*}}[%{{[^ ]*}}, %[[OWN]],
// TURNS-NOT:     %[[RANK]]
// Without one they are alike.
// RUN: sed 's/ {mask = .*true>}//' %S/Inputs/causal.mlir | kvbuf-opt --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_90a schedule=tiles=dynamic,cluster=4},kvbuf-lower-attention,canonicalize,gpu.module(gpu.func(kvbuf-pair-tiles,kvbuf-persistent-tiles,canonicalize,cse)))" | FileCheck %s --check-prefix=ALIKE --implicit-check-not=cluster_dim
// ALIKE:         gpu.cluster_block_id x
// One tile a block: equal tiles keep the grid's order.
// REDEFINE: %{schedule} = tiles=grid
// RUN: %{run} | FileCheck %s --check-prefix=GRID

!qo = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>

// REMARK: persistent-tiles.mlir:{{.*}} remark: [Passed] tiles{{.*}}blocks take tiles {{.*}}in turn
// CHECK-LABEL: gpu.func @full
// The grid: one block for each multiprocessor, no more than tiles.
// CHECK-SAME:    kvbuffer.grid = [{min = [{product = ["sms", 1]}, {product = [{ceildiv = ["seq_q", 128]}, 4, "batch"]}]}, 1, 1]
// CHECK:         kvbuffer.alloc
// CHECK:         %[[SEQ:.*]] = kvbuffer.launch_size "seq_q"
// CHECK:         %[[ROWTILES:.*]] = arith.ceildivui %[[SEQ]], %c128
// CHECK:         %[[BATCH:.*]] = kvbuffer.launch_size "batch"
// CHECK:         %[[HEADS:.*]] = arith.muli %[[BATCH]], %c4
// CHECK:         %[[TOTAL:.*]] = arith.muli %[[ROWTILES]], %[[HEADS]]
// STATIC:        %[[ME:.*]] = gpu.block_id x
// STATIC:        %[[BLOCKS:.*]] = gpu.grid_dim x
// STATIC:        scf.for %[[T:.*]] = %[[ME]] to %[[TOTAL]] step %[[BLOCKS]]
// The next number is asked for when the tile is done.
// DYNAMIC:       %[[FIRST:.*]] = kvbuffer.next_tile of %[[TOTAL]]
// DYNAMIC:       scf.while (%[[N:.*]] = %[[FIRST]])
// DYNAMIC-NEXT:    %[[MORE:.*]] = arith.cmpi slt, %[[N]], %[[TOTAL]]
// DYNAMIC-NEXT:    scf.condition(%[[MORE]]) %[[N]]
// DYNAMIC:       ^bb0(%[[T:.*]]: index):
// CHECK-NEXT:      %[[H:.*]] = arith.divui %[[T]], %[[ROWTILES]]
// CHECK-NEXT:      %[[X:.*]] = arith.remui %[[T]], %[[ROWTILES]]
// CHECK-NEXT:      %[[SEQUENCE:.*]] = arith.divui %[[H]], %c4
// CHECK-NEXT:      %[[HEAD:.*]] = arith.remui %[[H]], %c4
// CHECK-NEXT:      %[[ROW:.*]] = arith.muli %[[X]], %c128
// CHECK-NOT:       gpu.block_id
// CHECK-NOT:       kvbuffer.alloc
// CHECK:           kvbuffer.dram_tile %{{.*}}[%[[SEQUENCE]], %[[ROW]], %[[HEAD]]]
// DYNAMIC:         %[[NEXT:.*]] = kvbuffer.next_tile of %[[TOTAL]]
// DYNAMIC-NEXT:    scf.yield %[[NEXT]]
// GRID-LABEL:  gpu.func @full
// GRID-SAME:     kvbuffer.grid = [{ceildiv = ["seq_q", 128]}, 4, "batch"]
// GRID:          %[[X:.*]] = gpu.block_id x
// GRID:          arith.muli %[[X]], %c128
func.func @full(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

// -----

// Sizes that the types fix are numbers.
!qo = memref<2x256x4x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
// CHECK-LABEL: gpu.func @fixed
// CHECK-SAME:    {product = [{ceildiv = [256, 128]}, 4, 2]}
// CHECK-NOT:     kvbuffer.launch_size
// STATIC:        scf.for %{{.*}} = %{{.*}} to %c16 step
func.func @fixed(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

// -----

// Keys that take turns in L2: those that a row of the page table has room for, not
// as many as queries, of which a cached prefix has more.
!qo = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 16>
// CHECK-LABEL: gpu.func @paged
// CHECK:         %[[PAGES:.*]] = kvbuffer.launch_size "pages_per_seq"
// CHECK:         arith.muli %[[PAGES]], %c16
func.func @paged(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}

// -----

!qo = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<continuous, bf16, heads = 2, head_size = 128>
// CHECK-LABEL: gpu.func @continuous
// CHECK:         kvbuffer.launch_size "max_seq"
func.func @continuous(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}

// -----

// A ragged batch: each block numbers the tiles before its loop. The grid follows
// from shapes, which tell as many tiles and one more for each sequence; no size
// says how long the longest sequence is.
!qo = memref<?x4x128xbf16>
!kv = !kvbuffer.cache<ragged, bf16, heads = 2, head_size = 128>
// CHECK-LABEL: gpu.func @ragged
// CHECK-SAME:    %[[OFFSETS:[^:]*]]: memref<?xi32>
// CHECK-SAME:    %[[NUMBERS:[^:]*]]: memref<?x?xi32> {kvbuffer.access = "workspace", kvbuffer.name = "tile_numbers", kvbuffer.shape = [{min = [{product = ["sms", 1]}, {product = [{sum = [{ceildiv = ["total_q", 128]}, "batch"]}, 4]}]}, "batch"]}
// CHECK-SAME:    kvbuffer.grid = [{min = [{product = ["sms", 1]}, {product = [{sum = [{ceildiv = ["total_q", 128]}, "batch"]}, 4]}]}, 1, 1]
// CHECK-NOT:     "seq_q"
// CHECK:         %[[BLOCK:.*]] = gpu.block_id x
// CHECK:         %[[BATCH:.*]] = kvbuffer.launch_size "batch"
// CHECK:         %[[ROWS:.*]] = memref.dim
// CHECK:         %[[TILES:.*]] = kvbuffer.number_tiles %[[OFFSETS]] of %[[BATCH]] upto %[[ROWS]] by 128 into %[[NUMBERS]][%[[BLOCK]]]
// CHECK:         %[[TOTAL:.*]] = arith.muli %[[TILES]], %c4
// CHECK:         arith.remui %{{.*}}, %[[TILES]]
// CHECK:         kvbuffer.find_tile %{{.*}} in %{{.*}} by 128 numbered %[[NUMBERS]][%[[BLOCK]]] : memref<?xi32>, memref<?x?xi32>
// CHECK-NOT:     gpu.block_id z
func.func @ragged(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %offsets: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) : !qo, !kv, !kv, !qo, offsets memref<?xi32>
  return
}
