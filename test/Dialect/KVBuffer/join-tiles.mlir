// A tile of queries starts beside the last product of the tile before.

// DEFINE: %{pass} = kvbuf-opt --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-join-tiles,canonicalize,cse)))"
// RUN: %{pass} %s | FileCheck %s
// RUN: %{pass} %s --remark-format=emitRemark --remarks-filter=kvbuf-join-tiles 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// A schedule that does not ask for it is left alone.
// RUN: sed 's/, join_tiles = true//' %s | %{pass} | FileCheck %s --check-prefix=OFF
// OFF-LABEL: gpu.func @static
// OFF:         scf.for
// OFF-NEXT:      arith.muli
// OFF-NOT:     scf.while
// OFF-LABEL: gpu.func @dynamic

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [16, 8, 16], producers = 4, overlap_products = true, tiles = static, join_tiles = true>
!x = memref<?x16xbf16>
!q_tile = !kvbuffer.tile<64x16xbf16>
!a = !kvbuffer.fragment<64x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
!acc = !kvbuffer.fragment<64x16xf32, acc>
!row = !kvbuffer.fragment<64x1xf32, row>
gpu.module @m {
  // CHECK-LABEL: gpu.func @static
  // CHECK-SAME:    (%[[Q:.*]]: memref<?x16xbf16>, %[[X:.*]]: !kvbuffer.fragment<16x16xbf16, b>, %[[Y:.*]]: !kvbuffer.fragment<16x16xbf16, b>, %[[OUT:.*]]: memref<?x16xf32>, %[[N:.*]]: index, %{{.*}}: index, %[[TILES:.*]]: index)
  // CHECK-DAG:     %[[ZERO:.*]] = kvbuffer.fragment_fill 0.000000e+00 : <64x16xf32, acc>
  // CHECK-DAG:     %[[LEAST:.*]] = kvbuffer.fragment_fill 0xFF800000 : <64x1xf32, row>
  // CHECK-DAG:     %[[NONE:.*]] = kvbuffer.fragment_fill 0.000000e+00 : <64x1xf32, row>
  // CHECK-DAG:     %[[BLOCK:.*]] = gpu.block_id x
  // CHECK-DAG:     %[[BLOCKS:.*]] = gpu.grid_dim x
  // The first tile that has rows, with where it is; a number past the last if there is
  // none.
  // CHECK:         %[[T0:.*]]:3 = scf.while (%[[C:.*]] = %[[BLOCK]]) : (index) -> (index, index, index) {
  // CHECK-NEXT:      %[[ROW:.*]] = arith.muli %[[C]], %c64
  // CHECK-NEXT:      %[[ROWS:.*]] = arith.subi %[[N]], %[[ROW]]
  // CHECK-NEXT:      %[[EXISTS:.*]] = arith.cmpi slt, %[[C]], %[[TILES]]
  // CHECK-NEXT:      %[[GO:.*]] = scf.if %[[EXISTS]]
  // CHECK-NEXT:        arith.cmpi sle, %[[ROWS]], %c0
  // CHECK:           scf.condition(%[[GO]]) %[[C]], %[[ROW]], %[[ROWS]]
  // CHECK:           ^bb0(%[[C:.*]]: index, %{{.*}}: index, %{{.*}}: index):
  // CHECK-NEXT:        arith.addi %[[C]], %[[BLOCKS]]
  // CHECK:         %[[SOME:.*]] = arith.cmpi slt, %[[T0]]#0, %[[TILES]]
  // CHECK-NEXT:    scf.if %[[SOME]] {
  // Its first scores and softmax, without a branch: a tile that sees no key multiplies
  // one tile of masked keys.
  // CHECK-NOT:       scf.if
  // CHECK:           %[[BEGIN:.*]] = arith.divui
  // CHECK:           %[[ONE:.*]] = arith.addi %[[BEGIN]], %c1
  // CHECK:           %[[END:.*]] = arith.maxsi %{{.*}}, %[[ONE]]
  // CHECK:           %[[QT:.*]] = kvbuffer.dram_tile %[[Q]][%[[T0]]#1,
  // CHECK-NEXT:      %[[QF:.*]] = kvbuffer.tile_fragment %[[QT]]
  // CHECK-NEXT:      %[[S:.*]] = kvbuffer.mma %[[QF]], %[[X]], %[[ZERO]] {transpose_b}
  // CHECK:           %[[H:.*]] = kvbuffer.mask %[[S]] rows(%[[T0]]#1,
  // CHECK-NEXT:      %[[P0:.*]], %[[M0:.*]], %[[L0:.*]], %{{.*}} = kvbuffer.online_softmax %[[H]], %[[LEAST]], %[[NONE]]
  // The next tile's number is asked for before the loop over keys.
  // CHECK-NEXT:      %[[FROM:.*]] = arith.addi %[[T0]]#0, %[[BLOCKS]]
  // CHECK-NEXT:      %[[T1:.*]]:3 = scf.while (%{{.*}} = %[[FROM]])
  // CHECK:           %[[COUNT:.*]] = arith.subi %[[END]], %[[BEGIN]]
  // CHECK-NEXT:      %[[R:.*]]:4 = scf.for %{{.*}} = %c1 to %[[COUNT]] step %c1 iter_args(%{{.*}} = %[[ZERO]], %{{.*}} = %[[M0]], %{{.*}} = %[[L0]], %{{.*}} = %[[P0]])
  // CHECK:           %[[LAST:.*]]:9 = scf.while (%{{.*}} = %[[T1]]#0, %{{.*}} = %[[T1]]#1, %{{.*}} = %[[T1]]#2, %{{.*}} = %[[T0]]#1, %{{.*}} = %[[T0]]#2, %{{.*}} = %[[R]]#0, %{{.*}} = %[[R]]#1, %{{.*}} = %[[R]]#2, %{{.*}} = %[[R]]#3)
  // CHECK-NEXT:        arith.cmpi slt, %{{.*}}, %[[TILES]]
  // CHECK-NEXT:        scf.condition
  // CHECK:           ^bb0(%[[T:[a-z0-9]*]]: index, %[[ROW:[a-z0-9]*]]: index, %[[ROWS:[a-z0-9]*]]: index, %[[ROW1:[a-z0-9]*]]: index, %[[ROWS1:[a-z0-9]*]]: index, %[[ACC:[a-z0-9]*]]: !kvbuffer.fragment<64x16xf32, acc>, %[[M:[a-z0-9]*]]: !kvbuffer.fragment<64x1xf32, row>, %[[L:[a-z0-9]*]]: !kvbuffer.fragment<64x1xf32, row>, %[[P:[a-z0-9]*]]: !kvbuffer.fragment<64x16xbf16, a>):
  // This tile's first scores, the last product of the tile before,
  // CHECK-NOT:         kvbuffer.fragment_store
  // CHECK:             kvbuffer.dram_tile %[[Q]][%[[ROW]], %c0] valid(%[[ROWS]],
  // CHECK:             %[[S:.*]] = kvbuffer.mma %{{.*}} {transpose_b}
  // CHECK-NEXT:        %[[O:.*]] = kvbuffer.mma %[[P]], %[[Y]], %[[ACC]] :
  // the first softmax, from nothing,
  // CHECK:             %[[H:.*]] = kvbuffer.mask %[[S]] rows(%[[ROW]],
  // CHECK-NEXT:        %[[PN:.*]], %[[MN:.*]], %[[LN:.*]], %{{.*}} = kvbuffer.online_softmax %[[H]], %[[LEAST]], %[[NONE]]
  // the end of the tile before, at its rows,
  // CHECK-NEXT:        %[[RESULT:.*]], %{{.*}} = kvbuffer.softmax_finish %[[O]], %[[M]], %[[L]]
  // CHECK-NEXT:        %[[OT:.*]] = kvbuffer.dram_tile %[[OUT]][%[[ROW1]], %c0] valid(%[[ROWS1]],
  // CHECK-NEXT:        kvbuffer.fragment_store %[[RESULT]], %[[OT]]
  // and this tile's other keys.
  // CHECK:             %[[NEXT:.*]]:3 = scf.while
  // CHECK:             %[[R:.*]]:4 = scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO]], %{{.*}} = %[[MN]], %{{.*}} = %[[LN]], %{{.*}} = %[[PN]])
  // CHECK:             scf.yield %[[NEXT]]#0, %[[NEXT]]#1, %[[NEXT]]#2, %[[ROW]], %[[ROWS]], %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[R]]#3 :
  // CHECK-NEXT:      }
  // The end of the last tile.
  // CHECK-NEXT:      %[[O:.*]] = kvbuffer.mma %[[LAST]]#8, %[[Y]], %[[LAST]]#5
  // CHECK-NEXT:      kvbuffer.softmax_finish %[[O]], %[[LAST]]#6, %[[LAST]]#7
  // CHECK-NEXT:      kvbuffer.dram_tile %[[OUT]][%[[LAST]]#3, %c0] valid(%[[LAST]]#4,
  // CHECK-NEXT:      kvbuffer.fragment_store
  // CHECK-NOT:       kvbuffer.fragment_store
  // REMARK: remark: [Passed] join{{.*}}a tile's first scores overlap the last product of the tile before
  gpu.func @static(%q: !x, %x: !b, %y: !b, %o: memref<?x16xf32>, %n: index, %keys: index, %tiles: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %least = kvbuffer.fragment_fill 0xFF800000 : !row
    %none = kvbuffer.fragment_fill 0.0 : !row
    %block = gpu.block_id x
    %blocks = gpu.grid_dim x
    scf.for %tile = %block to %tiles step %blocks {
      %row = arith.muli %tile, %c64 : index
      %rows = arith.subi %n, %row : index
      %active = arith.cmpi sgt, %rows, %c0 : index
      scf.if %active {
        %qt = kvbuffer.dram_tile %q[%row, %c0] valid(%rows, %c16) : !x -> !q_tile
        %qf = kvbuffer.tile_fragment %qt : !q_tile -> !a
        %lo, %hi, %full_lo, %full_hi = kvbuffer.key_range %row of %n keys %keys {BM = 64 : i64, mask = #kvbuffer.mask<causal = true>}
        %begin = arith.divui %lo, %c16 : index
        %end = arith.ceildivui %hi, %c16 : index
        %count = arith.subi %end, %begin : index
        %any = arith.cmpi sgt, %count, %c0 : index
        %r:3 = scf.if %any -> (!acc, !row, !row) {
          %s0 = kvbuffer.mma %qf, %x, %zero {transpose_b} : !a, !b, !acc
          %key = arith.muli %begin, %c16 : index
          %h0 = kvbuffer.mask %s0 rows(%row, %n) keys(%key, %keys) {mask = #kvbuffer.mask<causal = true>} : !acc
          %p0, %m0, %l0, %f0 = kvbuffer.online_softmax %h0, %least, %none {scale = 1.0 : f32, masked} : !acc, !row -> !a
          %in:4 = scf.for %i = %c1 to %count step %c1 iter_args(%acc = %zero, %m = %m0, %l = %l0, %p = %p0) -> (!acc, !row, !row, !a) {
            %s = kvbuffer.mma %qf, %x, %zero {transpose_b} : !a, !b, !acc
            %t = kvbuffer.mma %p, %y, %acc : !a, !b, !acc
            %p1, %m1, %l1, %f1 = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
            %scaled = kvbuffer.rescale %t, %f1 : !acc, !row
            scf.yield %scaled, %m1, %l1, %p1 : !acc, !row, !row, !a
          }
          %last = kvbuffer.mma %in#3, %y, %in#0 : !a, !b, !acc
          scf.yield %last, %in#1, %in#2 : !acc, !row, !row
        } else {
          scf.yield %zero, %least, %none : !acc, !row, !row
        }
        %done, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 1.0 : f32} : !acc, !row
        %ot = kvbuffer.dram_tile %o[%row, %c0] valid(%rows, %c16) : memref<?x16xf32> -> !kvbuffer.tile<64x16xf32>
        kvbuffer.fragment_store %done, %ot : !acc, !kvbuffer.tile<64x16xf32>
      }
    }
    gpu.return
  }

  // Numbers out of a counter: each search takes the next until one has rows, and no
  // other asks.
  // CHECK-LABEL: gpu.func @dynamic
  // CHECK-NOT:     kvbuffer.next_tile
  // CHECK:         %[[T0:.*]]:3 = scf.while : () -> (index, index, index) {
  // CHECK-NEXT:      kvbuffer.next_tile of %[[TILES:.*]]
  // CHECK-NOT:       kvbuffer.next_tile
  // CHECK:         arith.cmpi slt, %[[T0]]#0, %[[TILES]]
  // CHECK-NOT:       kvbuffer.next_tile
  // CHECK:           kvbuffer.online_softmax
  // CHECK-NEXT:      scf.while
  // CHECK-NEXT:        kvbuffer.next_tile of %[[TILES]]
  // CHECK:           scf.while
  // CHECK-NOT:         kvbuffer.next_tile
  // CHECK:             kvbuffer.mma {{.*}} {transpose_b}
  // CHECK-NEXT:        kvbuffer.mma
  // CHECK-NOT:         kvbuffer.next_tile
  // CHECK:             kvbuffer.fragment_store
  // CHECK-NEXT:        scf.while
  // CHECK-NEXT:          kvbuffer.next_tile of %[[TILES]]
  // CHECK-NOT:     kvbuffer.next_tile
  // REMARK: remark: [Passed] join
  gpu.func @dynamic(%q: !x, %x: !b, %y: !b, %o: memref<?x16xf32>, %n: index, %keys: index, %tiles: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %least = kvbuffer.fragment_fill 0xFF800000 : !row
    %none = kvbuffer.fragment_fill 0.0 : !row
    %first = kvbuffer.next_tile of %tiles
    %stop = scf.while (%tile = %first) : (index) -> index {
      %exists = arith.cmpi slt, %tile, %tiles : index
      scf.condition(%exists) %tile : index
    } do {
    ^bb0(%tile: index):
      %next = kvbuffer.next_tile of %tiles
      %row = arith.muli %tile, %c64 : index
      %rows = arith.subi %n, %row : index
      %active = arith.cmpi sgt, %rows, %c0 : index
      scf.if %active {
        %qt = kvbuffer.dram_tile %q[%row, %c0] valid(%rows, %c16) : !x -> !q_tile
        %qf = kvbuffer.tile_fragment %qt : !q_tile -> !a
        %lo, %hi, %full_lo, %full_hi = kvbuffer.key_range %row of %n keys %keys {BM = 64 : i64, mask = #kvbuffer.mask<causal = true>}
        %begin = arith.divui %lo, %c16 : index
        %end = arith.ceildivui %hi, %c16 : index
        %count = arith.subi %end, %begin : index
        %any = arith.cmpi sgt, %count, %c0 : index
        %r:3 = scf.if %any -> (!acc, !row, !row) {
          %s0 = kvbuffer.mma %qf, %x, %zero {transpose_b} : !a, !b, !acc
          %key = arith.muli %begin, %c16 : index
          %h0 = kvbuffer.mask %s0 rows(%row, %n) keys(%key, %keys) {mask = #kvbuffer.mask<causal = true>} : !acc
          %p0, %m0, %l0, %f0 = kvbuffer.online_softmax %h0, %least, %none {scale = 1.0 : f32, masked} : !acc, !row -> !a
          %in:4 = scf.for %i = %c1 to %count step %c1 iter_args(%acc = %zero, %m = %m0, %l = %l0, %p = %p0) -> (!acc, !row, !row, !a) {
            %s = kvbuffer.mma %qf, %x, %zero {transpose_b} : !a, !b, !acc
            %t = kvbuffer.mma %p, %y, %acc : !a, !b, !acc
            %p1, %m1, %l1, %f1 = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
            %scaled = kvbuffer.rescale %t, %f1 : !acc, !row
            scf.yield %scaled, %m1, %l1, %p1 : !acc, !row, !row, !a
          }
          %last = kvbuffer.mma %in#3, %y, %in#0 : !a, !b, !acc
          scf.yield %last, %in#1, %in#2 : !acc, !row, !row
        } else {
          scf.yield %zero, %least, %none : !acc, !row, !row
        }
        %done, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 1.0 : f32} : !acc, !row
        %ot = kvbuffer.dram_tile %o[%row, %c0] valid(%rows, %c16) : memref<?x16xf32> -> !kvbuffer.tile<64x16xf32>
        kvbuffer.fragment_store %done, %ot : !acc, !kvbuffer.tile<64x16xf32>
      }
      scf.yield %next : index
    }
    gpu.return
  }
}
