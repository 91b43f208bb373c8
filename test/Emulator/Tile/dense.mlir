// Dense caches: every mask, lengths that divide nothing, each number of slots.
// The numbers are held to the pass rule against attention in double precision;
// a broken promise would fail the run.

// DEFINE: %{stages} = 2
// DEFINE: %{sizes} = --size seq=150
// DEFINE: %{run} = kvbuf-opt %s --kvbuf-to-scheduled="schedule=stages=%{stages}" | kvbuf-tile-run %{sizes} | FileCheck %s

// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=100 --size seq_k=300 --size batch=2 --row-pad=8
// RUN: %{run}
// Fewer keys than queries: with a causal mask the first rows see none.
// REDEFINE: %{sizes} = --size seq_q=200 --size seq_k=70 --heads-major
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=1 --size seq_k=1
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=5 --size seq_k=0
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=0 --size seq_k=5
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=130 --size seq_k=300 --init=ramp
// RUN: %{run}
// REDEFINE: %{stages} = 1
// RUN: %{run}
// REDEFINE: %{stages} = 3
// RUN: %{run}

// The products of the next tile beside the softmax of this one.
// REDEFINE: %{stages} = 2,overlap=true
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=200 --size seq_k=70
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=5 --size seq_k=0
// RUN: %{run}

// Lazily rescaled, with and without a log-sum-exp, and in turns.
// REDEFINE: %{stages} = 2,lazy_rescale=true
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=130 --size seq_k=300 --init=ramp
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=200 --size seq_k=70
// RUN: %{run}
// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=gfx942 | kvbuf-tile-run --size seq_q=130 --size seq_k=300 --init=ramp | FileCheck %s

// At the tile stage, before any load moves.
// RUN: kvbuf-opt %s --kvbuf-choose-schedule --kvbuf-lower-problems | kvbuf-tile-run --size seq_q=130 --size seq_k=300 | FileCheck %s

!qo = memref<?x?x2x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>

// CHECK: full:
// CHECK: {{^}}PASS
func.func @full(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

// CHECK: causal_lse:
// CHECK: {{^}}PASS
func.func @causal_lse(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %lse: memref<?x2x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) {mask = #kvbuffer.mask<causal = true>}
    : !qo, !kv, !kv, !qo, lse memref<?x2x?xf32>
  return
}

// CHECK: window:
// CHECK: {{^}}PASS
func.func @window(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %lse: memref<?x2x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) {mask = #kvbuffer.mask<left = 10, right = 20>}
    : !qo, !kv, !kv, !qo, lse memref<?x2x?xf32>
  return
}

// CHECK: sliding:
// CHECK: {{^}}PASS
func.func @sliding(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %lse: memref<?x2x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) {mask = #kvbuffer.mask<causal = true, left = 70>}
    : !qo, !kv, !kv, !qo, lse memref<?x2x?xf32>
  return
}

// CHECK: softcap_sink:
// CHECK: {{^}}PASS
func.func @softcap_sink(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %lse: memref<?x2x?xf32>, %sink: memref<?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) sink(%sink)
      {mask = #kvbuffer.mask<causal = true>, softcap = 5.0 : f32, scale = 0.2 : f32}
    : !qo, !kv, !kv, !qo, lse memref<?x2x?xf32>, sink memref<?xf32>
  return
}

// CHECK: negative_scale:
// CHECK: {{^}}PASS
func.func @negative_scale(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {scale = -0.1 : f32} : !qo, !kv, !kv, !qo
  return
}
