// Every kind of cache, with poison wherever a kernel has no business: rows and
// pages that no sequence uses hold NaN, table entries past a sequence's end hold
// an id far out of range.

// DEFINE: %{sizes} = --size batch=3 --size seq_q=70 --size cache=300
// DEFINE: %{run} = kvbuf-opt %s --kvbuf-to-scheduled | kvbuf-tile-run %{sizes} | FileCheck %s
// RUN: %{run}
// REDEFINE: %{sizes} = --size batch=3 --size seq_q=70 --size cache=300 --share-pages --row-pad=8
// RUN: %{run}
// REDEFINE: %{sizes} = --size batch=2 --size seq_q=150 --size cache=200 --seed=7
// RUN: %{run}

!q = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>
!qr = memref<?x4x64xbf16, strided<[?, ?, 1]>>

// CHECK: continuous:
// CHECK: {{^}}PASS
!continuous = !kvbuffer.cache<continuous, bf16, heads = 2, head_size = 64>
func.func @continuous(%q: !qr, %k: !continuous, %v: !continuous, %o: !qr, %offsets: memref<?xi32>, %lse: memref<4x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) lse(%lse) {mask = #kvbuffer.mask<causal = true>}
    : !qr, !continuous, !continuous, !qr, offsets memref<?xi32>, lse memref<4x?xf32>
  return
}

// Parts of wider rows; the rest of each row holds NaN.
// CHECK: wide:
// CHECK: {{^}}PASS
!widek = !kvbuffer.cache<continuous, bf16, heads = 2, head_size = 64, cache_depth = 192, head_dim_offset = 128>
!widev = !kvbuffer.cache<continuous, bf16, heads = 2, head_size = 64, cache_depth = 128>
func.func @wide(%q: !q, %k: !widek, %v: !widev, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !widek, !widev, !q
  return
}

// CHECK: page_128:
// CHECK: {{^}}PASS
!paged128 = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 128>
func.func @page_128(%q: !q, %k: !paged128, %v: !paged128, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !q, !paged128, !paged128, !q
  return
}

// CHECK: page_64_window:
// CHECK: {{^}}PASS
!paged64 = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 64>
func.func @page_64_window(%q: !qr, %k: !paged64, %v: !paged64, %o: !qr, %offsets: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) {mask = #kvbuffer.mask<causal = true, left = 100>}
    : !qr, !paged64, !paged64, !qr, offsets memref<?xi32>
  return
}

// CHECK: page_16:
// CHECK: {{^}}PASS
!paged16 = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
func.func @page_16(%q: !qr, %k: !paged16, %v: !paged16, %o: !qr, %offsets: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) {mask = #kvbuffer.mask<causal = true>}
    : !qr, !paged16, !paged16, !qr, offsets memref<?xi32>
  return
}

// CHECK: page_1:
// CHECK: {{^}}PASS
!paged1 = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 1>
func.func @page_1(%q: !q, %k: !paged1, %v: !paged1, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<left = 20, right = 0>} : !q, !paged1, !paged1, !q
  return
}
