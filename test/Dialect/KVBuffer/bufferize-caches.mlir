// Caches of tensors: their buffers are used as they are, what an append stores is the
// tensor's new value, and nothing is copied but what is read later.
//
// RUN: mlir-opt --load-dialect-plugin=%lib/KVBufferPlugin.so %s \
// RUN:   --one-shot-bufferize='bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map' \
// RUN:   --canonicalize | FileCheck %s

!data = tensor<?x16x2x64xbf16>
!q = tensor<2x1x4x64xbf16>
!new = tensor<2x1x2x64xbf16>
!cache = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>

// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<2x1x4x64xbf16>, %[[K:[a-z0-9]+]]: memref<2x1x2x64xbf16>, %[[KD:[a-z0-9]+]]: memref<?x16x2x64xbf16>, %[[VD:[a-z0-9]+]]: memref<?x16x2x64xbf16>, %[[TABLE:[a-z0-9]+]]: memref<2x4xi32>, %[[LENGTHS:[a-z0-9]+]]: memref<2xi32>
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: %[[KC:.*]] = kvbuffer.make_cache %[[KD]] indices(%[[TABLE]], %[[LENGTHS]] : memref<2x4xi32>, memref<2xi32>)
// CHECK: %[[VC:.*]] = kvbuffer.make_cache %[[VD]] indices(%[[TABLE]], %[[LENGTHS]]
// CHECK: kvbuffer.cache_append k(%[[K]] : {{.*}}) to(%[[KC]] : {{.*}}) v(%[[K]] : {{.*}}) to(%[[VC]]
// CHECK: kvbuffer.attention q(%[[Q]]) k(%[[KC]]) v(%[[VC]])
// CHECK: return %{{.*}}, %[[KD]], %[[VD]]
func.func @step(%q: !q, %k: !new, %kd: !data, %vd: !data, %table: tensor<2x4xi32>, %lengths: tensor<2xi32>, %o: !q) -> (!q, !data, !data) {
  %kc = kvbuffer.make_cache %kd indices(%table, %lengths : tensor<2x4xi32>, tensor<2xi32>) : !data -> !cache
  %vc = kvbuffer.make_cache %vd indices(%table, %lengths : tensor<2x4xi32>, tensor<2xi32>) : !data -> !cache
  kvbuffer.cache_append k(%k : !new) to(%kc : !cache) v(%k : !new) to(%vc : !cache)
  %r = kvbuffer.attention q(%q) k(%kc) v(%vc) out(%o) : !q, !cache, !cache, !q -> !q
  %kn = kvbuffer.cache_tensor %kc into(%kd) : !cache -> !data
  %vn = kvbuffer.cache_tensor %vc into(%vd) : !cache -> !data
  return %r, %kn, %vn : !q, !data, !data
}

// In a loop, too: the caller's pages get the new tokens.
// CHECK-LABEL: func.func @loop
// CHECK-SAME: %[[D:[a-z0-9]+]]: memref<?x16x2x64xbf16>
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: scf.for
// CHECK: %[[C:.*]] = kvbuffer.make_cache %[[D]]
// CHECK: kvbuffer.cache_append {{.*}} to(%[[C]]
// CHECK: return %[[D]]
func.func @loop(%d: !data, %k: !new, %table: tensor<2x4xi32>, %lengths: tensor<2xi32>, %n: index) -> !data {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %d) -> !data {
    %c = kvbuffer.make_cache %x indices(%table, %lengths : tensor<2x4xi32>, tensor<2xi32>) : !data -> !cache
    kvbuffer.cache_append k(%k : !new) to(%c : !cache)
    %y = kvbuffer.cache_tensor %c into(%x) : !cache -> !data
    scf.yield %y : !data
  }
  return %r : !data
}

// Who reads the old pages later gets them: the cache is of a copy.
// CHECK-LABEL: func.func @old
// CHECK-SAME: %[[D:[a-z0-9]+]]: memref<?x16x2x64xbf16>
// CHECK: %[[COPY:.*]] = memref.alloc
// CHECK: memref.copy %[[D]], %[[COPY]]
// CHECK: %[[C:.*]] = kvbuffer.make_cache %[[COPY]]
// CHECK: kvbuffer.cache_append {{.*}} to(%[[C]]
// CHECK: memref.load %[[D]]
func.func @old(%d: !data, %k: !new, %table: tensor<2x4xi32>, %lengths: tensor<2xi32>, %i: index) -> (bf16, bf16) {
  %c = kvbuffer.make_cache %d indices(%table, %lengths : tensor<2x4xi32>, tensor<2xi32>) : !data -> !cache
  kvbuffer.cache_append k(%k : !new) to(%c : !cache)
  %n = kvbuffer.cache_tensor %c into(%d) : !cache -> !data
  %x = tensor.extract %d[%i, %i, %i, %i] : !data
  %y = tensor.extract %n[%i, %i, %i, %i] : !data
  return %x, %y : bf16, bf16
}

// Nothing is stored: the pages may be read by all.
// CHECK-LABEL: func.func @read
// CHECK-NOT: memref.alloc
// CHECK: return
func.func @read(%q: !q, %d: !data, %table: tensor<2x4xi32>, %lengths: tensor<2xi32>, %o: !q, %i: index) -> (!q, bf16) {
  %c = kvbuffer.make_cache %d indices(%table, %lengths : tensor<2x4xi32>, tensor<2xi32>) : !data -> !cache
  %r = kvbuffer.attention q(%q) k(%c) v(%c) out(%o) : !q, !cache, !cache, !q -> !q
  %x = tensor.extract %d[%i, %i, %i, %i] : !data
  return %r, %x : !q, bf16
}
