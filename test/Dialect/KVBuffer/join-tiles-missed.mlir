// Programs that kvbuf-join-tiles leaves alone, with a warning that says why.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_90a schedule=join_tiles=true},kvbuf-lower-attention,canonicalize,gpu.module(gpu.func(kvbuf-join-tiles)))" --remark-format=emitRemark --remarks-filter=kvbuf-join-tiles 2>&1 >/dev/null | FileCheck %s --check-prefix=GRID
// GRID: warning: not joined: there is no loop over tiles
// GRID: remark: [Missed] join{{.*}}not joined: {{.*}}there is no loop over tiles

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_90a schedule=join_tiles=true},kvbuf-lower-attention,canonicalize,gpu.module(gpu.func(kvbuf-persistent-tiles,kvbuf-join-tiles)))" 2>&1 >/dev/null | FileCheck %s --check-prefix=PLAIN
// PLAIN: warning: not joined: a tile is not a branch on its rows around a branch on its keys, as kvbuf-overlap-products leaves them

!qo = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
