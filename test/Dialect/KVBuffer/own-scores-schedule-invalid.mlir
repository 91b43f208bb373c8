// Schedules that have no place for functions of scores.

// RUN: not kvbuf-opt %s --kvbuf-to-tile="chip=sm_90a schedule=producers=4" 2>&1 | FileCheck %s --check-prefix=ROLES
// ROLES: has a region of its own, for which no warp roles are built; expected producers = 0

!qo = memref<?x1x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @halved(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index):
      %half = arith.constant 0.5 : f32
      %t = arith.mulf %s, %half : f32
      kvbuffer.yield %t : f32
    }
  return
}
