// Roles over each kind of cache, and each head size's default schedule.

// RUN: split-file %s %t.dir
// RUN: kvbuf-opt %t.dir/ragged.mlir --kvbuf-to-scheduled=chip=sm_90a | kvbuf-tile-run --lengths-q=0,200,1,130 --lengths-k=5,300,0,130 | FileCheck %s --check-prefix=RAGGED
// RUN: kvbuf-opt %t.dir/paged.mlir --kvbuf-to-scheduled=chip=sm_90a | kvbuf-tile-run --lengths-q=3,200 --cache-lengths=100,77 | FileCheck %s --check-prefix=PAGED
// RUN: kvbuf-opt %t.dir/sizes.mlir --kvbuf-to-scheduled=chip=sm_90a | kvbuf-tile-run --size seq_q=200 --size seq_k=300 | FileCheck %s --check-prefix=SIZES

//--- ragged.mlir
!qo = memref<?x4x128xbf16, strided<[?, ?, 1]>>
!kv = !kvbuffer.cache<ragged, bf16, heads = 2, head_size = 128>
// RAGGED: ragged:
// RAGGED: {{^}}PASS
func.func @ragged(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %offsets: memref<?xi32>, %lse: memref<4x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) lse(%lse) {mask = #kvbuffer.mask<causal = true>}
    : !qo, !kv, !kv, !qo, offsets memref<?xi32>, lse memref<4x?xf32>
  return
}

// RAGGED: wide:
// RAGGED: {{^}}PASS
!widek = !kvbuffer.cache<ragged, bf16, heads = 2, head_size = 128, cache_depth = 192, head_dim_offset = 64>
!widev = !kvbuffer.cache<ragged, bf16, heads = 2, head_size = 128, cache_depth = 256>
func.func @wide(%q: !qo, %k: !widek, %v: !widev, %o: !qo, %offsets: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets)
    : !qo, !widek, !widev, !qo, offsets memref<?xi32>
  return
}

//--- paged.mlir
!qo = memref<?x4x64xf16, strided<[?, ?, 1]>>
!p16 = !kvbuffer.cache<paged, f16, heads = 2, head_size = 64, page_size = 16>
!p128 = !kvbuffer.cache<paged, f16, heads = 2, head_size = 64, page_size = 128>
// PAGED: pages16:
// PAGED: {{^}}PASS
func.func @pages16(%q: !qo, %k: !p16, %v: !p16, %o: !qo, %offsets: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) {mask = #kvbuffer.mask<causal = true>}
    : !qo, !p16, !p16, !qo, offsets memref<?xi32>
  return
}
// PAGED: pages128:
// PAGED: {{^}}PASS
func.func @pages128(%q: !qo, %k: !p128, %v: !p128, %o: !qo, %offsets: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets)
    : !qo, !p128, !p128, !qo, offsets memref<?xi32>
  return
}

//--- sizes.mlir
!q96 = memref<?x?x1x96xbf16>
!k96 = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 96>
// SIZES: d96:
// SIZES: {{^}}PASS
func.func @d96(%q: !q96, %k: !k96, %v: !k96, %o: !q96) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q96, !k96, !k96, !q96
  return
}
!q192 = memref<?x?x1x192xbf16>
!k192 = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 192>
// SIZES: d192:
// SIZES: {{^}}PASS
func.func @d192(%q: !q192, %k: !k192, %v: !k192, %o: !q192) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q192, !k192, !k192, !q192
  return
}
!q256 = memref<1x?x1x256xbf16>
!k256 = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 256>
// SIZES: d256:
// SIZES: {{^}}PASS
func.func @d256(%q: !q256, %k: !k256, %v: !k256, %o: !q256) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !q256, !k256, !k256, !q256
  return
}
