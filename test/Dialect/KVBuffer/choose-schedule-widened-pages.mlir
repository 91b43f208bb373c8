// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s

// Four warps widen where clusters look up whole pages; where a window or ragged queries
// keep blocks from loading for each other, or pages do not divide tiles, two, which are a
// group together with those that look up.
// CHECK-DAG: #[[FOUR:.*]] = #kvbuffer.schedule<{{.*}}moving<producers = 4, producer_registers = 40, consumer_registers = 224, wideners = 4, widener_registers = 24, {{.*}}cluster = 2>
// CHECK-DAG: #[[TWO:.*]] = #kvbuffer.schedule<{{.*}}BN = 128, {{.*}}moving<producers = 2, producer_registers = 56, consumer_registers = 224, wideners = 2, widener_registers = 56, {{.*}}work = several_tiles<tiles = dynamic>, ahead = softmax>

!q = memref<?x16384x32x128xbf16>
!kv = !kvbuffer.cache<paged, f8E4M3FN, heads = 8, head_size = 128, page_size = 16, scale = f32, granularity = tensor>

// CHECK-LABEL: func.func @shared
// CHECK: schedule = #[[FOUR]]
func.func @shared(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !q, !kv, !kv, !q
  return
}
// CHECK-LABEL: func.func @window
// CHECK: schedule = #[[TWO]]
func.func @window(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true, left = 1000>} : !q, !kv, !kv, !q
  return
}
