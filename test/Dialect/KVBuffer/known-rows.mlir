// A kernel whose launches all have one query row of a sequence (`kvbuffer.known_rows`) is
// that of a type which says so: partial results have no rows but those of one, and nobody
// asks how many there are.
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_90a schedule=split_keys=true},kvbuf-lower-problems)" | FileCheck %s

!kv = !kvbuffer.cache<paged, bf16, heads = 4, head_size = 64, page_size = 16>
!open = memref<?x?x16x64xbf16>
!one = memref<?x1x16x64xbf16>

// CHECK-LABEL: gpu.func @known(
// CHECK-SAME:    memref<2x4x?x4x68xf32> {{{.*}}kvbuffer.name = "parts"
// CHECK-SAME:    kvbuffer.schedule = #[[ONE:schedule[0-9]*]]}
// CHECK-NOT:     memref.dim
// CHECK:         kvbuffer.partial_store {{.*}} valid(%c4_
func.func @known(%q: !open, %k: !kv, %v: !kv, %o: !open) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {kvbuffer.known_rows = 1} : !open, !kv, !kv, !open
  return
}

// CHECK-LABEL: gpu.func @typed(
// CHECK-SAME:    memref<2x4x?x4x68xf32> {{{.*}}kvbuffer.name = "parts"
// CHECK-SAME:    kvbuffer.schedule = #[[ONE]]}
// CHECK:         kvbuffer.partial_store {{.*}} valid(%c4_
func.func @typed(%q: !one, %k: !kv, %v: !kv, %o: !one) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !one, !kv, !kv, !one
  return
}

// CHECK-LABEL: gpu.func @open(
// CHECK-SAME:    memref<2x?x?x{{(8|16|32)}}x68xf32> {{{.*}}kvbuffer.name = "parts"
// CHECK:         memref.dim
func.func @open(%q: !open, %k: !kv, %v: !kv, %o: !open) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !open, !kv, !kv, !open
  return
}
