// Stock mlir-opt raises attention.
// RUN: mlir-opt --load-dialect-plugin=%lib/KVBufferPlugin.so \
// RUN:   --load-pass-plugin=%lib/KVBufferPlugin.so \
// RUN:   --pass-pipeline='builtin.module(kvbuf-raise-attention)' %S/../Raise/jax-gqa.mlir \
// RUN:   | FileCheck %s

// CHECK:     kvbuffer.attention
// CHECK-NOT: linalg.
