// Stock mlir-opt loads the dialect, its passes and its pipelines.
// RUN: mlir-opt --load-dialect-plugin=%lib/KVBufferPlugin.so \
// RUN:   --load-pass-plugin=%lib/KVBufferPlugin.so \
// RUN:   --pass-pipeline='builtin.module(kvbuf-choose-schedule{chip=sm_80})' %s \
// RUN:   | FileCheck %s
// RUN: mlir-opt --load-dialect-plugin=%lib/KVBufferPlugin.so \
// RUN:   --load-pass-plugin=%lib/KVBufferPlugin.so \
// RUN:   --pass-pipeline='builtin.module(kvbuf-to-tile{chip=sm_80})' %s \
// RUN:   | FileCheck %s --check-prefix=TILE

// CHECK: #kvbuffer.schedule<
// CHECK: kvbuffer.attention
// CHECK-SAME: schedule =
// TILE: gpu.func
// TILE: kvbuffer.phase = #kvbuffer.phase<tile>

!qo = memref<?x?x16x128xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 16, head_size = 128>

func.func @prefill(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>}
    : !qo, !kv, !kv, !qo
  return
}
