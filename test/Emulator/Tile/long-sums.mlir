// A sum over many keys: what earlier tiles have added is multiplied by every later
// tile's factor, which has to be exactly 1 where no maximum has changed.

// RUN: kvbuf-opt %s --kvbuf-to-scheduled="schedule=BN=32" | kvbuf-tile-run - --size batch=1 --size seq_q=8 --size seq_k=65536 | FileCheck %s
// CHECK: {{^}}PASS

!qo = memref<?x?x1x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
func.func @many_keys(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %lse: memref<?x1x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) {scale = 1.0 : f32}
    : !qo, !kv, !kv, !qo, lse memref<?x1x?xf32>
  return
}
