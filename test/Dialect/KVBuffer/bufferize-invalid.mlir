// RUN: mlir-opt --load-dialect-plugin=%lib/KVBufferPlugin.so %s --one-shot-bufferize=bufferize-function-boundaries --verify-diagnostics --split-input-file

!q = tensor<2x?x4x64xbf16>
func.func @unknown_strides(%q: !q, %k: tensor<2x?x4x64xbf16>, %o: !q) -> !q {
  // expected-error @below {{cannot use the buffer of operand 0, of type 'memref<2x?x4x64xbf16, strided<[?, ?, ?, ?], offset: ?>>': expected elements of the last dimension side by side, a stride of 1; function-boundary-type-conversion=identity-layout-map makes arguments so}}
  // expected-error @below {{failed to bufferize op}}
  %r = kvbuffer.attention q(%q) k(%k) v(%k) out(%o) : !q, !q, !q, !q -> !q
  return %r : !q
}
