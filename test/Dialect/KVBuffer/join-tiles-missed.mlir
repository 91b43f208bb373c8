// Programs that kvbuf-join-tiles leaves alone, and why.

// DEFINE: %{schedule} =
// DEFINE: %{passes} = kvbuf-lower-attention,canonicalize,gpu.module(gpu.func(kvbuf-overlap-products,kvbuf-persistent-tiles,kvbuf-join-tiles))
// DEFINE: %{run} = kvbuf-opt %s --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_90a schedule=join_tiles=true,%{schedule}},%{passes})" --remark-format=emitRemark --remarks-filter=kvbuf-join-tiles 2>&1 >/dev/null

// REDEFINE: %{schedule} = tiles=grid
// RUN: %{run} | FileCheck %s --check-prefix=GRID
// GRID: remark: [Missed] join{{.*}}not joined: {{.*}}there is no loop over tiles

// REDEFINE: %{schedule} = overlap_products=false
// RUN: %{run} | FileCheck %s --check-prefix=PLAIN
// PLAIN: remark: [Missed] join{{.*}}not joined: {{.*}}a tile is not a branch on its rows around a branch on its keys, as kvbuf-overlap-products leaves them

!qo = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
