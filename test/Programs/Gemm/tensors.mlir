// A product of tensors becomes one of their buffers, in place where nobody needs what
// the destination held, and the host launches its kernels.
//
// REQUIRES: mlir-runner
// RUN: mlir-opt %s --load-dialect-plugin=%lib/KVBufferPlugin.so --load-pass-plugin=%lib/KVBufferPlugin.so --pass-pipeline="builtin.module(one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map})" | FileCheck %s
// RUN: mlir-opt %s --load-dialect-plugin=%lib/KVBufferPlugin.so --load-pass-plugin=%lib/KVBufferPlugin.so --pass-pipeline="builtin.module(one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},kvbuf-outline-kernels{chip=sm_80})" | FileCheck %s --check-prefix=HOST
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: 'kvbuffer.gemm' op is on tensors; expected memrefs: run one-shot-bufferize first

// CHECK-LABEL: func.func @twice
// CHECK-SAME: %[[A:.+]]: memref<64x64xbf16{{.*}}>, %[[B:.+]]: memref
// CHECK: %[[FIRST:.+]] = memref.alloc
// CHECK-NOT: memref.copy
// CHECK: kvbuffer.gemm a(%[[A]]) b(%[[B]]) out(%[[FIRST]])
// CHECK: %[[SECOND:.+]] = memref.alloc
// CHECK: kvbuffer.gemm a(%[[FIRST]]) b(%[[B]]) out(%[[SECOND]]) {transpose_b}
// CHECK: return %[[SECOND]]
// HOST-LABEL: func.func @twice
// HOST: gpu.launch_func {{.*}}@kvbuf_kernels::@twice_gemm
// HOST: gpu.launch_func {{.*}}@kvbuf_kernels::@twice_gemm_1
func.func @twice(%a: tensor<64x64xbf16>, %b: tensor<64x64xbf16>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xbf16>
  %c = kvbuffer.gemm a(%a) b(%b) out(%e)
    : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xbf16>
  %f = tensor.empty() : tensor<64x64xf32>
  %d = kvbuffer.gemm a(%c) b(%b) out(%f) {transpose_b}
    : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32> -> tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}
