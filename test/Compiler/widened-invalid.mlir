// Who gives a problem may not say that a kernel ahead of it has widened its caches: nobody
// would write what it reads.

// RUN: split-file %s %t
// RUN: not kvbuf-compile %t/given.mlir --target=sm_90a --code=none -o %t.kvbuf 2>&1 | FileCheck %s --check-prefix=GIVEN
// RUN: not kvbuf-compile %t/given.mlir --target=sm_90a --code=none --no-alternatives -o %t.kvbuf 2>&1 | FileCheck %s --check-prefix=GIVEN
// GIVEN: given.mlir:5:3: error: 'kvbuffer.attention' op has the attribute 'kvbuffer.widened', but no kernel ahead of its own writes what it would read; expected none, as kernels of this kind are added where they pay

// RUN: kvbuf-opt %t/limits.mlir --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_90a})"

//--- given.mlir
!q = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<paged, f8E4M3FN, heads = 1, head_size = 128, page_size = 16>

func.func @f(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {kvbuffer.widened} : !q, !kv, !kv, !q
  return
}

//--- limits.mlir
// Nothing is there to widen.
!q = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 128, page_size = 16>
func.func @wide(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  // expected-error @below {{has the attribute 'kvbuffer.widened', but no kernel widens its caches ahead; expected 16-bit queries over dense or paged caches of whole rows of 8-bit floats, without scales of tokens, and no bound of the keys but the mask's right one}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {kvbuffer.widened} : !q, !kv, !kv, !q
  return
}

// -----

// Kernels that split keys read the caches themselves.
!q = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<paged, f8E4M3FN, heads = 1, head_size = 128, page_size = 16>
func.func @splits(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  // expected-error @below {{has the attribute 'kvbuffer.widened', which kernels that split keys do not read; expected split_keys = false}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {kvbuffer.widened, schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 128, stages = 2, warps = 1, mma_shape = [16, 8, 16], swap_a_b = true, work = split_keys<equal_shares = true>>} : !q, !kv, !kv, !q
  return
}

// -----

// What is behind the last key would be multiplied as it is.
!q = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<paged, f8E4M3FN, heads = 1, head_size = 128, page_size = 16>
func.func @tiles(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  // expected-error @below {{has the attribute 'kvbuffer.widened', and zeros follow its keys up to a multiple of 128; expected a BN that divides it, got 256}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {kvbuffer.widened, schedule = #kvbuffer.schedule<BM = 64, BN = 256, BK = 64, stages = 2, warps = 4, mma_shape = [16, 8, 16]>} : !q, !kv, !kv, !q
  return
}

// -----

// Queries of bf16 in shared memory are no operand beside keys of f16.
!q = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<paged, f8E4M3FN, heads = 1, head_size = 128, page_size = 16, scale = f32, granularity = tensor>
func.func @queries(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  // expected-error @below {{has the attribute 'kvbuffer.widened', whose keys are of 'f16', which queries are fit to in registers; expected q_in_regs = true}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {kvbuffer.widened, schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [16, 8, 16]>} : !q, !kv, !kv, !q
  return
}
