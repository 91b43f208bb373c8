// Where blocks have equal shares of all sequences, each of their warps has a head of
// the cache of its own, and all that a block of one warp has: a place among the
// sequences, slots, arrivals and partial results. Nothing is on shelves.
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=sm_90 schedule=split_keys=true,warps=2" | FileCheck %s --implicit-check-not=kvbuffer.shelf
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=gfx942 schedule=split_keys=true,warps=2" | FileCheck %s --implicit-check-not=kvbuffer.shelf

// Heads that warps do not divide have a block each, whose warps share the keys.
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=sm_90 schedule=split_keys=true,warps=8,BM=8,swap_a_b=true" | FileCheck %s --check-prefix=KEYS
// KEYS: kvbuffer.work_item [<4>,
// KEYS: kvbuffer.shelf
// KEYS: kvbuffer.team @keys warps(1) x 8

// Half as many blocks as heads; memory for all heads.
// CHECK-LABEL: gpu.func @paged
// CHECK-SAME: memref<2x4x?x2x{{[0-9]+}}xf32> {kvbuffer.access = "workspace"
// CHECK-SAME: memref<2x4x?xi32> {kvbuffer.access = "counter"
// CHECK:      %[[ITEM:.*]], %[[BLOCK:.*]] = kvbuffer.work_item [<2>,
// CHECK:      kvbuffer.teams {
// CHECK:        kvbuffer.team @heads warps(1) x 2 (%[[COPY:.*]]) {
// CHECK:          %[[FIRST:.*]] = arith.muli %[[ITEM]], %c2
// CHECK:          %[[HEAD:.*]] = arith.addi %[[FIRST]], %[[COPY]]
// CHECK:          kvbuffer.alloc
// CHECK:          kvbuffer.share_work %[[BLOCK]] of
// CHECK:          scf.for
// CHECK:            kvbuffer.meet
// CHECK:            kvbuffer.cache_tile %{{.*}}[%{{.*}}, %[[HEAD]], %{{.*}}]
// CHECK:            kvbuffer.arrive_last %{{.*}}[%c0, %[[HEAD]], %{{.*}}]
!paged = !kvbuffer.cache<paged, bf16, heads = 4, head_size = 64, page_size = 16>
!q = memref<?x1x8x64xbf16>
func.func @paged(%q: !q, %k: !paged, %v: !paged, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !q, !paged, !paged, !q
  return
}
