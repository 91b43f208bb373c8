// Regions of which no lists of blocks are made.

// RUN: kvbuf-opt %s --split-input-file --kvbuf-list-visible-blocks --verify-diagnostics
// RUN: not kvbuf-opt %s --split-input-file --kvbuf-list-visible-blocks="rows=0" 2>&1 | FileCheck %s
// RUN: not kvbuf-opt %s --split-input-file --kvbuf-list-visible-blocks="keys=2147483648" 2>&1 | FileCheck %s --check-prefix=KEYS
// CHECK: error: 'builtin.module' op is to be lowered with rows = 0; expected 1 to 2147483647
// KEYS: error: 'builtin.module' op is to be lowered with keys = 2147483648; expected 1 to 2147483647

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
// expected-warning @below {{has no kvbuffer.attention with a visible region and without a block_mask: no lists are made}}
module {
  func.func @plain(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    return
  }
}

// -----

!q = memref<?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @ragged(%q: !q, %k: !kv, %v: !kv, %o: !q, %offsets: memref<?xi32>) {
  // expected-error @below {{has ragged queries, for which no lists are made: expected sequences of equally many rows (no offsets)}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) : !q, !kv, !kv, !q, offsets memref<?xi32>
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %seen = arith.cmpi sle, %key, %row : index
      kvbuffer.yield %seen : i1
    }
  return
}

// -----

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 4, head_size = 64, page_size = 16>
func.func @paged(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  // expected-error @below {{whose lengths the device alone knows, and lists need room: expected a dense cache}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %seen = arith.cmpi sle, %key, %row : index
      kvbuffer.yield %seen : i1
    }
  return
}

// -----

!q = memref<?x4x16x576xbf16>
!o = memref<?x4x16x512xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 576>
func.func @latent(%q: !q, %k: !kv, %o: !o) {
  // expected-error @below {{has values that are a part of its keys, whose kernels read no lists of blocks}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%o) : !q, !kv, !kv, !o
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %seen = arith.cmpi sle, %key, %row : index
      kvbuffer.yield %seen : i1
    }
  return
}

// -----

!t = tensor<2x128x4x64xbf16>
func.func @tensors(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  // expected-error @below {{is on tensors; expected memrefs: run one-shot-bufferize first}}
  %r = kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !t, !t, !t, !t -> !t
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %seen = arith.cmpi sle, %key, %row : index
      kvbuffer.yield %seen : i1
    }
  return %r : !t
}

// -----

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @split(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  // expected-error @below {{has a schedule with split_keys = true, whose kernels read no lists of blocks; expected split_keys = false}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {schedule = #kvbuffer.schedule<BM = 16, BN = 64, BK = 64, warps = 1, mma_shape = [16, 8, 16], split_keys = true>} : !qo, !kv, !kv, !qo
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %seen = arith.cmpi sle, %key, %row : index
      kvbuffer.yield %seen : i1
    }
  return
}

// -----

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @more(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  // expected-error @below {{is not supported beside kvbuffer.attention: expected a function of one kvbuffer.attention and a return}}
  %c0 = arith.constant 0 : index
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %seen = arith.cmpi sle, %key, %row : index
      kvbuffer.yield %seen : i1
    }
  return
}

// -----

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @within(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %often: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %often step %c1 {
    // expected-error @below {{stands where no lists are made for it; expected a function of one kvbuffer.attention and a return, at the top of the module}}
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %seen = arith.cmpi sle, %key, %row : index
      kvbuffer.yield %seen : i1
    }
  }
  return
}

// -----

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func private @taken_lists()
// expected-error @below {{has lists that a function @taken_lists makes, and there is a symbol @taken_lists already}}
func.func @taken(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %seen = arith.cmpi sle, %key, %row : index
      kvbuffer.yield %seen : i1
    }
  return
}

// -----

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
// expected-error @below {{argument 4 is called "kv_indices", as one of the lists is}}
func.func @named(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %c: memref<?xi32> {kvbuffer.name = "kv_indices"}) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo captures(%c : memref<?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %c_: memref<?xi32>):
      %seen = arith.cmpi sle, %key, %row : index
      kvbuffer.yield %seen : i1
    }
  return
}
