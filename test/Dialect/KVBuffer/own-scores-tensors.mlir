// The regions read tensors, and after bufferization the buffers of these.

// RUN: kvbuf-opt %s | kvbuf-opt | FileCheck %s --check-prefix=KEPT
// RUN: mlir-opt --load-dialect-plugin=%lib/KVBufferPlugin.so %s \
// RUN:   --one-shot-bufferize='bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map' \
// RUN:   --canonicalize | FileCheck %s

// KEPT:        captures(%{{.*}} : tensor<4x?x?xf32>) score {
// KEPT:          tensor.extract

// CHECK-LABEL: func.func @bias(
// CHECK-SAME:    %[[BIAS:[a-z0-9]+]]: memref<4x?x?xf32>
// CHECK-NOT:     memref.copy
// CHECK:         kvbuffer.attention
// CHECK-SAME:      captures(%[[BIAS]] : memref<4x?x?xf32>) score {
// CHECK-NEXT:    ^bb0({{.*}}, %[[B:.*]]: memref<4x?x?xf32>):
// CHECK:           memref.load %[[B]][
// CHECK-NOT:     tensor
// CHECK:         return
func.func @bias(%q: tensor<2x?x4x64xbf16>, %k: tensor<2x?x4x64xbf16>, %bias: tensor<4x?x?xf32>, %o: tensor<2x?x4x64xbf16>)
    -> tensor<2x?x4x64xbf16> {
  %r = kvbuffer.attention q(%q) k(%k) v(%k) out(%o)
    : tensor<2x?x4x64xbf16>, tensor<2x?x4x64xbf16>, tensor<2x?x4x64xbf16>, tensor<2x?x4x64xbf16> -> tensor<2x?x4x64xbf16>
    captures(%bias : tensor<4x?x?xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %b: tensor<4x?x?xf32>):
      %x = tensor.extract %b[%head, %row, %key] : tensor<4x?x?xf32>
      %t = arith.addf %s, %x : f32
      kvbuffer.yield %t : f32
    }
  return %r : tensor<2x?x4x64xbf16>
}
