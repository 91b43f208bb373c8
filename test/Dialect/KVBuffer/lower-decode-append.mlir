// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_80 --kvbuf-lower-problems --canonicalize | FileCheck %s

// An append before an attention of few rows becomes a part of its kernel: each block
// stores the new tokens of its head that its tiles hold, before it reads them.

!q = memref<?x2x32x128xbf16>
!new = memref<?x2x8x128xbf16>
!kv = !kvbuffer.cache<paged, f8E4M3FN, heads = 8, head_size = 128, page_size = 64, scale = f32, granularity = 128>

// CHECK-LABEL: gpu.func @decode(
// CHECK-SAME:    %[[NEW:[a-z0-9]+]]: memref<?x2x8x128xbf16> {kvbuffer.access = "read", kvbuffer.name = "k_new", kvbuffer.shape = ["batch", "seq_q", 8, 128]}
// CHECK-SAME:    {kvbuffer.access = "read", kvbuffer.name = "v_new"
// CHECK-SAME:    kvbuffer.name = "cos", kvbuffer.shape = ["positions", 64]}
// CHECK-SAME:    %[[K:[a-z0-9]+]]: !kvbuffer.cache<{{[^>]*}}> {kvbuffer.access = "read_write", kvbuffer.name = "k"}
// CHECK-SAME:    {kvbuffer.access = "read_write", kvbuffer.name = "v"}
// CHECK-SAME:    op = "attention_after_append"
// CHECK:         kvbuffer.share_work
// CHECK:         scf.for
// CHECK:           %[[FROM:.*]] = arith.muli %{{.*}}, %[[BN:c[0-9]+]] : index
// CHECK-NEXT:      %[[UPTO:.*]] = arith.muli %{{.*}}, %[[BN]] : index
// CHECK-NEXT:      %[[CACHED:.*]] = kvbuffer.cache.num_keys %[[K]][%[[BATCH:.*]]] new(%{{.*}})
// CHECK-NEXT:      %[[SOME:.*]] = arith.cmpi ugt, %[[UPTO]], %[[CACHED]]
// CHECK-NEXT:      scf.if %[[SOME]] {
// CHECK-NEXT:        kvbuffer.append_tokens[%[[BATCH]], %{{.*}}] from %[[FROM]] upto %[[UPTO]] k(%[[NEW]] : {{.*}}) to(%[[K]] : {{.*}}) v({{.*}}) to({{.*}}) rope({{.*}}) {interleaved}
// CHECK:           kvbuffer.dram_load
func.func @decode(%q: !q, %nk: !new, %nv: !new, %cos: memref<?x64xf32>, %sin: memref<?x64xf32>, %k: !kv, %v: !kv, %o: !q) {
  kvbuffer.cache_append k(%nk : !new) to(%k : !kv) v(%nv : !new) to(%v : !kv)
    rope(%cos, %sin : memref<?x64xf32>, memref<?x64xf32>) {interleaved}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !q, !kv, !kv, !q
  return
}
