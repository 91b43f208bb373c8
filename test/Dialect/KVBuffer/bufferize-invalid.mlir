// RUN: mlir-opt --load-dialect-plugin=%lib/KVBufferPlugin.so %s --one-shot-bufferize=bufferize-function-boundaries --verify-diagnostics --split-input-file

!q = tensor<2x?x4x64xbf16>
func.func @unknown_strides(%q: !q, %k: tensor<2x?x4x64xbf16>, %o: !q) -> !q {
  // expected-error @below {{cannot use the buffer of operand 0, of type 'memref<2x?x4x64xbf16, strided<[?, ?, ?, ?], offset: ?>>': expected elements of the last dimension side by side, a stride of 1; function-boundary-type-conversion=identity-layout-map makes arguments so}}
  // expected-error @below {{failed to bufferize op}}
  %r = kvbuffer.attention q(%q) k(%k) v(%k) out(%o) : !q, !q, !q, !q -> !q
  return %r : !q
}

// -----

!q = tensor<2x1x4x64xbf16>
!data = tensor<?x16x2x64xbf16>
!cache = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
func.func @written_in_use(%q: !q, %d: !data, %table: tensor<2x4xi32>, %lengths: tensor<2xi32>, %x: bf16, %i: index) -> (!q, !data) {
  // expected-note @below {{the cache is made here; make another one after the write}}
  %c = kvbuffer.make_cache %d indices(%table, %lengths : tensor<2x4xi32>, tensor<2xi32>) : !data -> !cache
  // expected-error @below {{writes a tensor in place while a cache that is made of it is in use}}
  %n = tensor.insert %x into %d[%i, %i, %i, %i] : !data
  %r = kvbuffer.attention q(%q) k(%c) v(%c) out(%q) : !q, !cache, !cache, !q -> !q
  return %r, %n : !q, !data
}

// -----

!data = tensor<?x16x2x64xbf16>
!cache = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
func.func private @other(!cache)
func.func @given_away(%d: !data, %table: tensor<2x4xi32>, %lengths: tensor<2xi32>, %p: i1) -> !cache {
  %c = kvbuffer.make_cache %d indices(%table, %lengths : tensor<2x4xi32>, tensor<2xi32>) : !data -> !cache
  // expected-error @below {{passes on a cache of tensors; expected it to be used in its function, without another name}}
  return %c : !cache
}
