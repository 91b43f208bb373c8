// A batch-invariant problem gets no schedule that decides for rows together.

// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=gfx950 | FileCheck %s
// CHECK-NOT: {{teams = halves|ahead = scores|lazy_rescale = true}}
// CHECK: batch_invariant

// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=lazy_rescale=true" 2>&1 | FileCheck %s --check-prefix=TOGETHER
// TOGETHER: choose-schedule-batch-invariant.mlir:[[#@LINE+5]]:3: error: 'kvbuffer.attention' op is batch_invariant, but its schedule has lazy_rescale = true, which rescales the rows of a wave together; expected lazy_rescale = false

!qo = memref<?x?x2x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @prefill(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {batch_invariant} : !qo, !kv, !kv, !qo
  return
}
