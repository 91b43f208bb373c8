// Scales of tokens are asked for before the product of the scores: two look-ups one
// after the other, whose latency nothing else hides.
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=sm_90 schedule=split_keys=true" | FileCheck %s

// Queries become f16, which K is widened to.
// CHECK:      %[[Q:.*]] = kvbuffer.tile_fragment
// CHECK:      %[[HALF:.*]], %[[FACTOR:.*]] = kvbuffer.fragment_fit %[[Q]] :
// CHECK:      scf.for
// CHECK:      %[[KS:.*]] = kvbuffer.map
// CHECK:      kvbuffer.cache_scale %arg1
// CHECK:      %[[VS:.*]] = kvbuffer.map
// CHECK:      kvbuffer.cache_scale %arg2
// CHECK:      kvbuffer.dram_load
// CHECK:      kvbuffer.lds_stage
// CHECK:      %[[K:.*]] = kvbuffer.fragment_load {{.*}} -> <{{.*}}xf16, b>
// CHECK:      %[[P:.*]] = kvbuffer.mma %[[HALF]], %[[K]]
// CHECK:      %[[S:.*]] = kvbuffer.rescale %[[P]], %[[FACTOR]]
// CHECK:      kvbuffer.map %[[S]], %[[KS]]
// CHECK:      kvbuffer.online_softmax
// CHECK:      kvbuffer.map %{{.*}}, %[[VS]]

!kv = !kvbuffer.cache<paged, f8E4M3FN, heads = 2, head_size = 128, page_size = 16, scale = f32, granularity = 128>
!q = memref<?x1x8x128xbf16>
func.func @scaled(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !q, !kv, !kv, !q
  return
}
