// One-shot bufferization: destinations are written in place, tensors of keys and
// values are dense caches, and nothing is allocated or copied that need not be.
//
// RUN: mlir-opt --load-dialect-plugin=%lib/KVBufferPlugin.so %s \
// RUN:   --one-shot-bufferize='bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map' \
// RUN:   --canonicalize | FileCheck %s --implicit-check-not=memref.alloc --implicit-check-not=memref.copy

!q = tensor<2x?x4x64xbf16>
!kv = tensor<2x?x2x64xbf16>
!lse = tensor<2x4x?xf32>

// CHECK-LABEL: func.func @attend
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<2x?x4x64xbf16>, %[[K:[a-z0-9]+]]: memref<2x?x2x64xbf16>, %[[V:[a-z0-9]+]]: memref<2x?x2x64xbf16>, %[[O:[a-z0-9]+]]: memref<2x?x4x64xbf16>, %[[LSE:[a-z0-9]+]]: memref<2x4x?xf32>
// CHECK-DAG: %[[KC:.*]] = kvbuffer.make_cache %[[K]] : memref<2x?x2x64xbf16> -> !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
// CHECK-DAG: %[[VC:.*]] = kvbuffer.make_cache %[[V]]
// CHECK: kvbuffer.attention q(%[[Q]]) k(%[[KC]]) v(%[[VC]]) out(%[[O]]) lse(%[[LSE]]) {mask = #kvbuffer.mask<causal = true>}
// CHECK-NEXT: return %[[O]], %[[LSE]]
func.func @attend(%q: !q, %k: !kv, %v: !kv, %o: !q, %lse: !lse) -> (!q, !lse) {
  %r, %l = kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) {mask = #kvbuffer.mask<causal = true>}
    : !q, !kv, !kv, !q, lse !lse -> !q, !lse
  return %r, %l : !q, !lse
}

// V's cache has its own head size.
// CHECK-LABEL: func.func @apart
// CHECK-DAG: kvbuffer.make_cache %{{.*}} -> !kvbuffer.cache<dense, bf16, heads = 2, head_size = 192>
// CHECK-DAG: kvbuffer.make_cache %{{.*}} -> !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
// CHECK: kvbuffer.attention {{.*}} memref<2x?x4x128xf32>
func.func @apart(%q: tensor<2x?x4x192xbf16>, %k: tensor<2x?x2x192xbf16>, %v: tensor<2x?x2x128xbf16>, %o: tensor<2x?x4x128xf32>) -> tensor<2x?x4x128xf32> {
  %r = kvbuffer.attention q(%q) k(%k) v(%v) out(%o)
    : tensor<2x?x4x192xbf16>, tensor<2x?x2x192xbf16>, tensor<2x?x2x128xbf16>, tensor<2x?x4x128xf32> -> tensor<2x?x4x128xf32>
  return %r : tensor<2x?x4x128xf32>
}

// Two in a row and a loop: one allocation, for what the first makes.
// CHECK-LABEL: func.func @layers
// CHECK: memref.alloc
// CHECK: kvbuffer.attention
// CHECK: scf.for
// CHECK: kvbuffer.attention
// CHECK: return
func.func @layers(%q: !q, %k: !kv, %v: !kv, %o: !q, %n: index) -> !q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %q, %c1 : !q
  %empty = tensor.empty(%rows) : !q
  %r = kvbuffer.attention q(%q) k(%k) v(%v) out(%empty) : !q, !kv, !kv, !q -> !q
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%x = %o) -> !q {
    %y = kvbuffer.attention q(%r) k(%k) v(%v) out(%x) : !q, !kv, !kv, !q -> !q
    scf.yield %y : !q
  }
  return %s : !q
}

// The old contents of a destination that is read later are copied away; of what
// is read by nobody, nothing is.
// CHECK-LABEL: func.func @reads_later
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<2x?x4x64xbf16>
// CHECK: %[[NEW:.*]] = memref.alloc
// CHECK-NOT: memref.copy
// CHECK: kvbuffer.attention {{.*}} out(%[[NEW]])
// CHECK: kvbuffer.attention q(%[[Q]]) {{.*}} out(%[[NEW]])
func.func @reads_later(%q: !q, %k: !kv) -> !q {
  %r = kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !q, !kv, !kv, !q -> !q
  %s = kvbuffer.attention q(%q) k(%k) v(%k) out(%r) : !q, !kv, !kv, !q -> !q
  return %s : !q
}

// Rows of no sequence keep what a ragged destination held: it is copied where it
// is needed later.
// CHECK-LABEL: func.func @ragged
// CHECK: %[[COPY:.*]] = memref.alloc
// CHECK: memref.copy %{{.*}}, %[[COPY]]
// CHECK: kvbuffer.attention {{.*}} out(%[[COPY]]) offsets(
func.func @ragged(%q: tensor<?x4x64xbf16>, %k: !kv, %o: tensor<?x4x64xbf16>, %offsets: tensor<3xi32>) -> (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>) {
  %r = kvbuffer.attention q(%q) k(%k) v(%k) out(%o) offsets(%offsets) : tensor<?x4x64xbf16>, !kv, !kv, tensor<?x4x64xbf16>, offsets tensor<3xi32> -> tensor<?x4x64xbf16>
  return %r, %o : tensor<?x4x64xbf16>, tensor<?x4x64xbf16>
}

// Appends in a loop go into the caches that the caller gave.
// CHECK-LABEL: func.func @decode
// CHECK-SAME: %[[KC:[a-z0-9]+]]: memref<2x?x2x64xbf16>, %[[VC:[a-z0-9]+]]: memref<2x?x2x64xbf16>
// CHECK: scf.for
// CHECK-DAG: %[[TOK:.*]] = kvbuffer.make_cache %[[KC]]
// CHECK-DAG: %[[TOV:.*]] = kvbuffer.make_cache %[[VC]]
// CHECK: kvbuffer.cache_append k(%{{.*}}) to(%[[TOK]] : {{.*}}) v(%{{.*}}) to(%[[TOV]] : {{.*}}) at(
// CHECK: kvbuffer.attention
func.func @decode(%kc: !kv, %vc: !kv, %n: index, %q: tensor<2x1x4x64xbf16>, %k: tensor<2x1x2x64xbf16>, %at: tensor<2xi32>, %o: tensor<2x1x4x64xbf16>) -> (!kv, !kv, tensor<2x1x4x64xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %kc, %b = %vc, %x = %o) -> (!kv, !kv, tensor<2x1x4x64xbf16>) {
    %new:2 = kvbuffer.cache_append k(%k : tensor<2x1x2x64xbf16>) to(%a : !kv) v(%k : tensor<2x1x2x64xbf16>) to(%b : !kv) at(%at : tensor<2xi32>) -> !kv, !kv
    %y = kvbuffer.attention q(%q) k(%new#0) v(%new#1) out(%x) : tensor<2x1x4x64xbf16>, !kv, !kv, tensor<2x1x4x64xbf16> -> tensor<2x1x4x64xbf16>
    scf.yield %new#0, %new#1, %y : !kv, !kv, tensor<2x1x4x64xbf16>
  }
  return %r#0, %r#1, %r#2 : !kv, !kv, tensor<2x1x4x64xbf16>
}
