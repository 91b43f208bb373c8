// Problems on tensors: their forms print as they are parsed, shapes of results
// follow from destinations, and canonicalization drops what changes nothing.
//
// RUN: kvbuf-opt %s | kvbuf-opt | FileCheck %s
// RUN: kvbuf-opt %s --canonicalize | FileCheck %s --check-prefix=CANON
// RUN: kvbuf-opt %s --resolve-ranked-shaped-type-result-dims --canonicalize \
// RUN:   | FileCheck %s --check-prefix=SHAPE

!q = tensor<?x?x4x64xbf16>
!kv = tensor<?x?x2x64xbf16>
!lse = tensor<?x4x?xf32>
!cache = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>

// CHECK-LABEL: func.func @attend
// CANON-LABEL: func.func @attend
func.func @attend(%q: !q, %k: !kv, %v: !kv, %o: !q, %lse: !lse, %sink: tensor<4xf32>) -> (!q, !lse) {
  // CHECK: kvbuffer.attention q(%{{.*}}) k(%{{.*}}) v(%{{.*}}) out(%{{.*}}) lse(%{{.*}}) sink(%{{.*}}) {scale = 2.500000e-01 : f32} : tensor<?x?x4x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x4x64xbf16>, lse tensor<?x4x?xf32>, sink tensor<4xf32> -> tensor<?x?x4x64xbf16>, tensor<?x4x?xf32>
  // CANON: kvbuffer.attention {{.*}} lse({{.*}} {scale = 2.500000e-01 : f32}
  %r, %l = kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) sink(%sink) {scale = 0.25 : f32}
    : !q, !kv, !kv, !q, lse !lse, sink tensor<4xf32> -> !q, !lse
  return %r, %l : !q, !lse
}

// V's head size and O's element type apart: the result is as its destination.
// CHECK-LABEL: func.func @apart
func.func @apart(%q: tensor<2x?x4x192xbf16>, %k: tensor<2x?x2x192xbf16>, %v: tensor<2x?x2x128xbf16>, %o: tensor<2x?x4x128xf32>) -> tensor<2x?x4x128xf32> {
  // CHECK: : tensor<2x?x4x192xbf16>, tensor<2x?x2x192xbf16>, tensor<2x?x2x128xbf16>, tensor<2x?x4x128xf32> -> tensor<2x?x4x128xf32>
  %r = kvbuffer.attention q(%q) k(%k) v(%v) out(%o)
    : tensor<2x?x4x192xbf16>, tensor<2x?x2x192xbf16>, tensor<2x?x2x128xbf16>, tensor<2x?x4x128xf32> -> tensor<2x?x4x128xf32>
  return %r : tensor<2x?x4x128xf32>
}

// Caches of memrefs, on tensors besides.
// CHECK-LABEL: func.func @paged
func.func @paged(%q: !q, %k: !cache, %v: !cache, %o: !q) -> !q {
  // CHECK: : tensor<?x?x4x64xbf16>, <paged, bf16, heads = 2, head_size = 64, page_size = 16>, <paged, bf16, heads = 2, head_size = 64, page_size = 16>, tensor<?x?x4x64xbf16> -> tensor<?x?x4x64xbf16>
  %r = kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !cache, !cache, !q -> !q
  return %r : !q
}

// CHECK-LABEL: func.func @append
func.func @append(%k: tensor<2x1x2x64xbf16>, %kc: tensor<2x?x2x64xbf16>, %at: tensor<2xi32>) -> (tensor<2x?x2x64xbf16>, tensor<2x?x2x64xbf16>) {
  // CHECK: kvbuffer.cache_append k(%{{.*}} : tensor<2x1x2x64xbf16>) to(%{{.*}} : tensor<2x?x2x64xbf16>) v(%{{.*}} : tensor<2x1x2x64xbf16>) to(%{{.*}} : tensor<2x?x2x64xbf16>) at(%{{.*}} : tensor<2xi32>) -> tensor<2x?x2x64xbf16>, tensor<2x?x2x64xbf16>
  %r:2 = kvbuffer.cache_append k(%k : tensor<2x1x2x64xbf16>) to(%kc : tensor<2x?x2x64xbf16>)
    v(%k : tensor<2x1x2x64xbf16>) to(%kc : tensor<2x?x2x64xbf16>) at(%at : tensor<2xi32>)
    -> tensor<2x?x2x64xbf16>, tensor<2x?x2x64xbf16>
  return %r#0, %r#1 : tensor<2x?x2x64xbf16>, tensor<2x?x2x64xbf16>
}

// Nobody asks for the log-sum-exp; what is left of it is the schedule's and the
// caller's attributes.
// CANON-LABEL: func.func @unused_lse
func.func @unused_lse(%q: !q, %k: !kv, %v: !kv, %o: !q, %lse: !lse, %sink: tensor<4xf32>) -> !q {
  // CANON: %[[R:.*]] = kvbuffer.attention q(%{{.*}}) k(%{{.*}}) v(%{{.*}}) out(%{{.*}}) sink(%{{.*}}) {batch_invariant, llvm.note = "kept", mask = #kvbuffer.mask<causal = true>, softcap = 3.000000e+01 : f32} : {{.*}} -> tensor<?x?x4x64xbf16>
  // CANON-NEXT: return %[[R]]
  %r, %l = kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) sink(%sink) {batch_invariant, llvm.note = "kept", mask = #kvbuffer.mask<causal = true>, softcap = 30.0 : f32}
    : !q, !kv, !kv, !q, lse !lse, sink tensor<4xf32> -> !q, !lse
  return %r : !q
}

// An op of whose results none is used is dead; one on memrefs never is.
// CANON-LABEL: func.func @unused
// CANON-NOT: kvbuffer.attention q(%{{.*}} tensor
// CANON: kvbuffer.attention {{.*}} : memref
// CANON: return
func.func @unused(%q: !q, %k: !kv, %o: !q, %qm: memref<?x?x4x64xbf16>, %c: !cache) {
  %r = kvbuffer.attention q(%q) k(%k) v(%k) out(%o) : !q, !kv, !kv, !q -> !q
  kvbuffer.attention q(%qm) k(%c) v(%c) out(%qm) : memref<?x?x4x64xbf16>, !cache, !cache, memref<?x?x4x64xbf16>
  return
}

// The default scale, a cap of zero, and masks that hide nothing.
// CANON-LABEL: func.func @defaults
func.func @defaults(%q: !q, %k: !kv, %o: !q) -> (!q, !q, !q) {
  // CANON: kvbuffer.attention q({{.*}}) out(%{{[a-z0-9]*}}) : tensor
  %a = kvbuffer.attention q(%q) k(%k) v(%k) out(%o) {scale = 0.125 : f32, softcap = 0.0 : f32, mask = #kvbuffer.mask<>} : !q, !kv, !kv, !q -> !q
  // CANON: kvbuffer.attention {{.*}} {mask = #kvbuffer.mask<causal = true, left = 5>} : tensor
  %b = kvbuffer.attention q(%q) k(%k) v(%k) out(%o) {mask = #kvbuffer.mask<causal = true, left = 5, right = 7>} : !q, !kv, !kv, !q -> !q
  // CANON: kvbuffer.attention {{.*}} {mask = #kvbuffer.mask<right = 7>, scale = 1.500000e-01 : f32} : tensor
  %c = kvbuffer.attention q(%q) k(%k) v(%k) out(%o) {mask = #kvbuffer.mask<right = 7>, scale = 0.15 : f32} : !q, !kv, !kv, !q -> !q
  return %a, %b, %c : !q, !q, !q
}

// SHAPE-LABEL: func.func @shape
// SHAPE-SAME: %[[O:[a-z0-9]+]]: tensor<?x?x4x64xbf16>, %[[LSE:[a-z0-9]+]]: tensor<?x4x?xf32>
// SHAPE-DAG: %[[C1:.*]] = arith.constant 1 : index
// SHAPE-DAG: %[[C2:.*]] = arith.constant 2 : index
// SHAPE-DAG: %[[A:.*]] = tensor.dim %[[O]], %[[C1]]
// SHAPE-DAG: %[[B:.*]] = tensor.dim %[[LSE]], %[[C2]]
// SHAPE: return %[[A]], %[[B]]
func.func @shape(%q: !q, %k: !kv, %o: !q, %lse: !lse) -> (index, index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r, %l = kvbuffer.attention q(%q) k(%k) v(%k) out(%o) lse(%lse) : !q, !kv, !kv, !q, lse !lse -> !q, !lse
  %0 = tensor.dim %r, %c1 : !q
  %1 = tensor.dim %l, %c2 : !lse
  return %0, %1 : index, index
}
