// Batch and rows may be part of the types; the manifest then has numbers for
// them, and sizes that contradict them are refused.

// RUN: kvbuf-run %s --device=emulator --target=sm_80 --size seq_k=99 --check | FileCheck %s
// CHECK: batch=2 seq_q=77 seq_k=99
// CHECK: PASS
// RUN: not kvbuf-run %s --device=emulator --target=sm_80 --size seq_q=99 --check 2>&1 | FileCheck %s --check-prefix=FIXED
// FIXED: error: --size seq_q=99: the kernel's types fix it at 77

// What one type fixes, no tensor may contradict: k has the batch of q.
// RUN: kvbuf-compile %s --target=sm_80 --emit=target -o - | FileCheck %s --check-prefix=SHAPES
// SHAPES: kvbuffer.tensors
// SHAPES-SAME: "k" : bf16[2, seq_k, 1, 64]

!qo = memref<2x77x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
func.func @fixed(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}
