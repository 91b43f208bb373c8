// Rows of ragged queries past those that the launch knows of are read in loops of
// their own, before which all warps meet: the loads of both run ahead.
// RUN: kvbuf-opt %s --kvbuf-to-scheduled="chip=sm_80 schedule=split_keys=true" 2>&1 | FileCheck %s --implicit-check-not=warning
// RUN: kvbuf-opt %s --kvbuf-to-scheduled="chip=gfx942 schedule=split_keys=true" 2>&1 | FileCheck %s --implicit-check-not=warning

!qo = memref<?x8x64xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
// CHECK-LABEL: gpu.func @attend
// CHECK:         kvbuffer.meet
// CHECK:         kvbuffer.meet
// CHECK:         scf.for {{.*}} iter_args({{.*}}!kvbuffer.token
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %offsets: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) {mask = #kvbuffer.mask<causal = true>}
    : !qo, !kv, !kv, !qo, offsets memref<?xi32>
  return
}
