// Heads wider than a product, with a team that moves tiles: work items have parts of V's
// columns, beside the heads that share a head of the cache; K comes in blocks of columns.

// RUN: kvbuf-opt %s --kvbuf-to-tile=chip=sm_90a | FileCheck %s
// Consumers and producers count tiles: the slot of a block follows from its place.
// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=sm_90a | FileCheck %s --check-prefix=TEAMS

// CHECK-DAG: #[[K:.*]] = #kvbuffer.kv_buffer<64x384xbf16, BK = 64, stages = 6, swizzle = [3, 0, 3], full_kv = false>
// CHECK-DAG: #[[V:.*]] = #kvbuffer.kv_buffer<64x192xbf16, BK = 64, swizzle = [3, 0, 3], cache_depth = 384>
// CHECK:     %{{.*}}, %[[LINE:.*]], %[[BATCH:.*]] = kvbuffer.work_item [<"seq_q" by 128, sharing = all>, <12, sharing = 3>, <"batch">]
// CHECK:     %[[GROUP:.*]] = arith.divui %[[LINE]], %c3
// CHECK:     %[[PART:.*]] = arith.remui %[[GROUP]], %c2
// CHECK:     %[[COL:.*]] = arith.muli %[[PART]], %c192
// CHECK:     %[[KV:.*]] = arith.divui %[[GROUP]], %c2
// CHECK:     %[[FIRST:.*]] = arith.muli %[[KV]], %c3
// CHECK:     %[[OTHER:.*]] = arith.remui %[[LINE]], %c3
// CHECK:     %[[HEAD:.*]] = arith.addi %[[FIRST]], %[[OTHER]]
// CHECK:     %[[KT:.*]] = kvbuffer.cache_tile {{.*}} -> <64x384xbf16>
// CHECK:     kvbuffer.dram_load %[[KT]] into %[[KBUF:.*]] : <64x384xbf16>, <#[[K]]>
// CHECK:     %[[S0:.*]] = kvbuffer.mma {{.*}} {transpose_b}
// CHECK:     kvbuffer.dram_load %[[KT]] into %[[KBUF]] {block = 1 : i64}
// CHECK:     kvbuffer.mma %{{.*}}, %{{.*}}, %[[S0]] {transpose_b}
// CHECK:     kvbuffer.dram_load %[[KT]] into %[[KBUF]] {block = 5 : i64}
// CHECK:     %[[VT:.*]] = kvbuffer.cache_tile {{.*}} col %[[COL]] :
// CHECK:     kvbuffer.dram_load %[[VT]] into %{{.*}} : <64x384xbf16>, <#[[V]]>
// CHECK:     kvbuffer.dram_tile %{{.*}}[%[[BATCH]], %{{.*}}, %[[HEAD]], %[[COL]]] valid(%{{.*}}, %c192) {row_dim = 1 : i64}
// CHECK:     %[[ONCE:.*]] = arith.cmpi eq, %[[PART]], %c0
// CHECK:     scf.if %[[ONCE]] {
// CHECK-NEXT:  kvbuffer.row_store

// TEAMS:     kvbuffer.team @producers
// TEAMS:       scf.for %[[I:.*]] = %c1 to
// TEAMS:         %[[TILE:.*]] = arith.muli %{{.*}}, %c6 : index
// TEAMS:         kvbuffer.ring_load %[[T:.*]] into %[[RING:.*]][%[[TILE]]]
// TEAMS:         %[[NEXT:.*]] = arith.addi %[[TILE]], %c1
// TEAMS:         kvbuffer.ring_load %[[T]] into %[[RING]][%[[NEXT]]] {first_col = 64 : i64,
// TEAMS:         %[[LAST:.*]] = arith.addi %[[TILE]], %c5
// TEAMS:         kvbuffer.ring_load %[[T]] into %[[RING]][%[[LAST]]] {first_col = 320 : i64,
!q = memref<?x?x6x384xbf16, strided<[?, ?, ?, 1]>>
!lse = memref<?x6x?xf32>
!cache = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 384>
func.func @wide(%q: !q, %k: !cache, %v: !cache, %o: !q, %lse: !lse) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) : !q, !cache, !cache, !q, lse !lse
  return
}
