// What no kernel does with quantized caches, said at the problem.
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a -split-input-file -verify-diagnostics

!q = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 64, scale = f32, granularity = tensor>
func.func @many_rows(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  // expected-error @below {{has quantized caches, which only kernels of split keys read yet; expected few query rows, as many as the type of q says, or caches of 'bf16'}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !kv, !kv, !q
  return
}

// -----

!q = memref<?x1x4x64xbf16>
!k = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 64>
!v = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 64, scale = f32, granularity = 32>
func.func @groups(%q: !q, %k: !k, %v: !v, %o: !q) {
  // expected-error @below {{has scales for groups of 32 elements of v, which no kernel reads yet; expected granularity = tensor, head or 64}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !k, !v, !q
  return
}

// -----

!q = memref<?x1x4x72xbf16>
!kv = !kvbuffer.cache<dense, f8E5M2, heads = 2, head_size = 72>
func.func @rows(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  // expected-error @below {{has head_size = 72 of k with elements of a byte; expected a multiple of 16}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !kv, !kv, !q
  return
}
