// Sums of rounded weights that tell where maxima are too low, on tiles: scores rise block by
// block, by more than 2^8 behind the first tiles, too.

// RUN: kvbuf-opt %s --kvbuf-to-scheduled="chip=gfx950" > %t.mlir
// RUN: FileCheck %s --check-prefix=FORM < %t.mlir
// FORM: kvbuffer.raise_max {{.*}} {exact_only
// FORM: kvbuffer.softmax_settle
// RUN: kvbuf-tile-run %t.mlir --size batch=1 --size seq_q=40 --size seq_k=700 --init=ramp | FileCheck %s
// CHECK: {{^}}PASS

// Maxima that are not raised by as much as the weights are relative to: O is far off.
// RUN: sed -e 's/\(softmax_settle .*{scale = \)[^ ]*/\11.0e30/' %t.mlir | not kvbuf-tile-run - --size batch=1 --size seq_q=40 --size seq_k=700 --init=ramp 2>&1 | FileCheck %s --check-prefix=BEHIND
// BEHIND: exceeds its limit

!qo = memref<?x?x1x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
func.func @rising(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {scale = 2.0 : f32} : !qo, !kv, !kv, !qo
  return
}
