// Graphs of f32 are raised where the caller says what to round them to.

// RUN: kvbuf-opt %s --pass-pipeline='builtin.module(kvbuf-raise-attention{round=bf16})' --mlir-print-local-scope | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-raise-attention --remark-format=emitRemark --remarks-filter=kvbuf-raise-attention 2>&1 | FileCheck %s --check-prefix=WITHOUT
// RUN: not kvbuf-opt %s --pass-pipeline='builtin.module(kvbuf-raise-attention{round=f8})' 2>&1 | FileCheck %s --check-prefix=BAD

// CHECK-LABEL:   func.func @f32(
// CHECK-COUNT-3: arith.truncf %{{.*}} : f32 to bf16
// CHECK:         kvbuffer.attention
// CHECK-SAME:      scale = 1.000000e+00 : f32} : tensor<1x8x1x64xbf16>
// CHECK:         arith.extf %{{.*}} : bf16 to f32
// WITHOUT:       remark: [Missed] raised{{.*}}queries or keys are no tensors of bf16 or f16
// BAD:           expected 'round' to be bf16 or f16, got 'f8'
func.func @f32(%q: tensor<8x64xf32>, %kt: tensor<64x8xf32>, %v: tensor<8x64xf32>, %es: tensor<8x8xf32>, %eo: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = linalg.matmul ins(%q, %kt : tensor<8x64xf32>, tensor<64x8xf32>) outs(%fs : tensor<8x8xf32>) -> tensor<8x8xf32>
  %p = linalg.softmax dimension(1) ins(%s : tensor<8x8xf32>) outs(%es : tensor<8x8xf32>) -> tensor<8x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<8x64xf32>) -> tensor<8x64xf32>
  %o = linalg.matmul ins(%p, %v : tensor<8x8xf32>, tensor<8x64xf32>) outs(%fo : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %o : tensor<8x64xf32>
}
