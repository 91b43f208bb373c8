// Clusters by default: where the types fix an even number of tiles of queries, or so
// many that an idle block at the end does not matter; 8 and more, 32 under a mask; at 64
// columns without a mask alone. Heads that share K and V make pairs of an odd number
// of tiles, too. Who wants one block a tile does not get them.

// RUN: kvbuf-opt %s --split-input-file --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s
// RUN: kvbuf-opt %s --split-input-file --kvbuf-choose-schedule="chip=sm_90a schedule=tiles=grid" | FileCheck %s --check-prefix=ALONE
// ALONE-NOT: cluster =
// ALONE: @d64

// CHECK: cluster = 2>
// CHECK: func.func @even
!qo = memref<2x4096x2x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @even(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

// -----

// CHECK-NOT: cluster =
// CHECK: func.func @odd
!qo = memref<2x4200x2x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @odd(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

// -----

// CHECK: cluster = 2>
// CHECK: func.func @many
!qo = memref<2x8300x2x256xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 256>
func.func @many(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

// -----

// CHECK: cluster = 2>
// CHECK: func.func @causal
!qo = memref<2x4096x2x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @causal(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}

// -----

// CHECK-NOT: cluster =
// CHECK: func.func @shorter
!qo = memref<2x3840x2x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @shorter(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}

// -----

// CHECK: cluster = 2>
// CHECK: func.func @eight
!qo = memref<2x1024x2x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @eight(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

// -----

// CHECK-NOT: cluster =
// CHECK: func.func @six
!qo = memref<2x768x2x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @six(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

// -----

// CHECK-NOT: cluster =
// CHECK: func.func @open
!qo = memref<2x?x2x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @open(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

// -----

// CHECK: cluster = 2>
// CHECK: func.func @d64
!qo = memref<2x4096x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
func.func @d64(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

// -----

// CHECK-NOT: cluster =
// CHECK: func.func @d64_causal
!qo = memref<2x4096x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
func.func @d64_causal(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}

// -----

// CHECK: cluster = 2>
// CHECK: func.func @shared
!qo = memref<2x2100x8x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @shared(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}

// -----

// CHECK-NOT: cluster =
// CHECK: func.func @shared_by_three
!qo = memref<2x2100x6x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @shared_by_three(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}
