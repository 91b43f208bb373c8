// Values that are the first columns of the keys: one buffer, one load a tile, and both
// products read its slot.
// RUN: kvbuf-opt %s --kvbuf-to-tile=chip=sm_80 | FileCheck %s
// One slot is filled again when all have read it as both.
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=sm_80 schedule=stages=1,look_ahead=false" | FileCheck %s --check-prefix=ONE

!q = memref<?x1x16x576xbf16>
!o = memref<?x1x16x512xbf16>
!rows = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 64>

// CHECK-LABEL: gpu.func @latent
// CHECK-SAME: problem = #kvbuffer.problem<{{.*}}latent = true{{.*}}v_head_size = 512
// CHECK: %[[KBUF:.*]] = kvbuffer.alloc {label = "k"}
// CHECK: %[[QBUF:.*]] = kvbuffer.alloc {label = "q"}
// CHECK-NOT: kvbuffer.alloc
// CHECK: kvbuffer.dram_load %{{.*}} into %[[QBUF]]
// CHECK: scf.for
// CHECK-NOT: kvbuffer.meet
// CHECK: %[[TILE:.*]] = kvbuffer.cache_tile %arg1
// CHECK: %[[TOKEN:.*]] = kvbuffer.dram_load %[[TILE]] into %[[KBUF]]
// CHECK: %[[SLOT:.*]] = kvbuffer.lds_stage %[[TOKEN]]
// CHECK: kvbuffer.fragment_load %[[SLOT]][0, 0] contracted(cols) : {{.*}} -> <32x576xbf16, b>
// CHECK: transpose_b
// CHECK: kvbuffer.online_softmax
// CHECK-NOT: dram_load
// CHECK: %[[V:.*]] = kvbuffer.fragment_load %[[SLOT]][0, 0] contracted(rows) : {{.*}} -> <32x512xbf16, b>
// CHECK: kvbuffer.mma %{{.*}}, %[[V]], %{{.*}} : {{.*}} <16x512xf32, acc>
// CHECK-NEXT: scf.yield
// ONE-LABEL: gpu.func @latent
// ONE: -> (!kvbuffer.fragment<16x512xf32, acc>, {{.*}}) {
// ONE: kvbuffer.meet
// ONE: kvbuffer.cache_tile
func.func @latent(%q: !q, %rows: !rows, %o: !o) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : !q, !rows, !rows, !o
  return
}

// 128 heads that share a head of the cache are four parts of 32, each of which reads it:
// lines of work, and of the workspace.
// CHECK-LABEL: gpu.func @parts
// CHECK-SAME: memref<2x4x?x32x516xf32>
// CHECK: %[[PART:.*]], %{{.*}} = kvbuffer.work_item [<4>,
// CHECK: %[[HEAD:.*]] = arith.muli %[[PART]], %c32
// CHECK: %[[ROWS:.*]] = arith.divui %[[PART]], %c4
// CHECK: kvbuffer.dram_tile %arg0[%{{.*}}, %{{.*}}, %[[HEAD]]] {{.*}}group = 32
// CHECK: kvbuffer.cache_tile %arg1[%{{.*}}, %[[ROWS]],
func.func @parts(%q: memref<?x1x128x576xbf16>, %rows: !rows, %o: memref<?x1x128x512xbf16>) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : memref<?x1x128x576xbf16>, !rows, !rows, memref<?x1x128x512xbf16>
  return
}

// As many columns as the keys have, and rows whose number types leave open.
// CHECK-LABEL: gpu.func @all
// CHECK-SAME: latent = true
// CHECK: contracted(rows) : {{.*}} -> <{{.*}}x512xbf16, b>
!all = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 512>
func.func @all(%q: memref<?x?x8x512xbf16>, %rows: !all, %o: memref<?x?x8x512xbf16>) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : memref<?x?x8x512xbf16>, !all, !all, memref<?x?x8x512xbf16>
  return
}
