// Ragged queries and keys, empty sequences among them.

// DEFINE: %{lengths} = --lengths-q=70,0,130,1 --lengths-k=100,20,0,65
// DEFINE: %{run} = kvbuf-opt %s --kvbuf-to-scheduled | kvbuf-tile-run %{lengths} | FileCheck %s
// RUN: %{run}
// REDEFINE: %{lengths} = --lengths-q=64,64 --lengths-k=64,64
// RUN: %{run}
// Offsets out of range count as the nearest row.
// REDEFINE: %{lengths} = --lengths-q=0,70,0,130,0 --lengths-k=0,20,30,65,0 --wild-lengths
// RUN: %{run}

!q = memref<?x3x64xf16, strided<[?, ?, 1]>>
!kv = !kvbuffer.cache<ragged, f16, heads = 1, head_size = 64>

// CHECK: ragged:
// CHECK: {{^}}PASS
func.func @ragged(%q: !q, %k: !kv, %v: !kv, %o: !q, %offsets: memref<?xi32>, %lse: memref<3x?xf32>, %sink: memref<?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) lse(%lse) sink(%sink)
      {mask = #kvbuffer.mask<causal = true>}
    : !q, !kv, !kv, !q, offsets memref<?xi32>, lse memref<3x?xf32>, sink memref<?xf32>
  return
}

// CHECK: ragged_full:
// CHECK: {{^}}PASS
func.func @ragged_full(%q: !q, %k: !kv, %v: !kv, %o: !q, %offsets: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets)
    : !q, !kv, !kv, !q, offsets memref<?xi32>
  return
}
