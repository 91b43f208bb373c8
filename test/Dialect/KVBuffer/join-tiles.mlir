// A tile of queries starts beside the last product of the tile before.

// DEFINE: %{schedule} =
// DEFINE: %{passes} = kvbuf-lower-attention,canonicalize,gpu.module(gpu.func(kvbuf-overlap-products,kvbuf-persistent-tiles,kvbuf-join-tiles,canonicalize,cse))
// DEFINE: %{run} = kvbuf-opt %s --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_90a schedule=join_tiles=true,%{schedule}},%{passes})"

// REDEFINE: %{schedule} = tiles=dynamic
// RUN: %{run} | FileCheck %s --check-prefixes=CHECK,DYNAMIC
// RUN: %{run} --remark-format=emitRemark --remarks-filter=kvbuf-join-tiles 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: remark: [Passed] join{{.*}}a tile's first scores overlap the last product of the tile before
// REDEFINE: %{schedule} = tiles=static
// RUN: %{run} | FileCheck %s --check-prefixes=CHECK,STATIC

// The first tile that has rows.
// STATIC:        %[[FIRST:.*]] = gpu.block_id x
// STATIC:        %[[STEP:.*]] = gpu.grid_dim x
// STATIC:        %[[T0:.*]]:{{[0-9]+}} = scf.while (%[[C:.*]] = %[[FIRST]])
// DYNAMIC:       %[[T0:.*]]:{{[0-9]+}} = scf.while
// DYNAMIC:         kvbuffer.next_tile of %[[TOTAL:.*]]
// CHECK:           scf.condition
// STATIC:          arith.addi %{{.*}}, %[[STEP]]
// CHECK:         arith.cmpi slt, %[[T0]]#0, %
// CHECK:         scf.if
// Its first scores and softmax, and its loop over keys. A tile that sees no key
// multiplies one tile of masked keys, so there is no branch.
// CHECK-NOT:       scf.if
// CHECK:           kvbuffer.mma {{.*}} {transpose_b}
// CHECK:           kvbuffer.mask
// CHECK:           kvbuffer.online_softmax
// The next tile's number is asked for in front of the loop over keys.
// CHECK:           scf.while
// CHECK:           scf.for
// CHECK:           %[[END:.*]]:[[#COUNT:]] = scf.while (%{{.*}} = %{{.*}}
// CHECK-NEXT:        arith.cmpi slt
// CHECK-NEXT:        scf.condition
// CHECK:           ^bb0({{.*}}, %[[ACC:[a-z0-9]*]]: !kvbuffer.fragment<128x128xf32, acc>, %[[M:[a-z0-9]*]]: !kvbuffer.fragment<128x1xf32, row>, %[[L:[a-z0-9]*]]: !kvbuffer.fragment<128x1xf32, row>, %[[P:[a-z0-9]*]]: !kvbuffer.fragment<128x128xbf16, a>):
// This tile's first scores, the last product of the tile before,
// CHECK:             kvbuffer.dram_load {{.*}} into %qbuf
// CHECK:             kvbuffer.dram_load {{.*}} into %kbuf
// CHECK:             %[[S:.*]] = kvbuffer.mma {{.*}} {transpose_b}
// CHECK:             kvbuffer.dram_load {{.*}} into %vbuf
// CHECK:             %[[O:.*]] = kvbuffer.mma %[[P]], %{{.*}}, %[[ACC]]
// the first softmax, from nothing,
// CHECK:             %[[H:.*]] = kvbuffer.mask %[[S]]
// CHECK:             %[[PN:.*]], %[[MN:.*]], %[[LN:.*]], %{{.*}} = kvbuffer.online_softmax %[[H]], %fill{{.*}}, %zero
// the end of the tile before,
// CHECK:             %[[RESULT:.*]], %{{.*}} = kvbuffer.softmax_finish %[[O]], %[[M]], %[[L]]
// CHECK:             kvbuffer.fragment_store
// and this tile's other keys.
// CHECK:             %[[NEXT:.*]]:{{[0-9]+}} = scf.while
// CHECK:             %[[R:.*]]:4 = scf.for {{.*}} iter_args(%{{.*}} = %zero{{.*}}, %{{.*}} = %[[MN]], %{{.*}} = %[[LN]], %{{.*}} = %[[PN]])
// CHECK:             scf.yield %[[NEXT]]#0, {{.*}}, %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[R]]#3 :
// The end of the last tile.
// CHECK:           kvbuffer.mma %[[END]]#[[#COUNT-1]], %{{.*}}, %[[END]]#[[#COUNT-4]]
// CHECK:           kvbuffer.softmax_finish
// CHECK:           kvbuffer.fragment_store
// CHECK-NOT:       kvbuffer.fragment_store

!qo = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}
