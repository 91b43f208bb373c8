// What the verifiers refuse, and how they say so.

// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

!kv = !kvbuffer.cache<dense, f32, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xf32>
func.func @element(%q: !qo, %k: !kv) {
  // expected-error @below {{(C1) expected elements bf16 or f16, got 'f32'}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !qo, !kv, !kv, !qo
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xf16>
func.func @elements(%q: !qo, %k: !kv) {
  // expected-error @below {{(C1) expected one element type for q, k and v, or 8-bit floats for k and v, got 'f16', 'bf16', 'bf16'}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !qo, !kv, !kv, !qo
  return
}

// -----

!k = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 64>
!v = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xbf16>
func.func @half_quantized(%q: !qo, %k: !k, %v: !v) {
  // expected-error @below {{(C1) expected one element type for q, k and v, or 8-bit floats for k and v, got 'bf16', 'f8E4M3FN', 'bf16'}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%q) : !qo, !k, !v, !qo
  return
}

// -----

!kv = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 64>
!q = memref<?x?x2x64xf16>
!o = memref<?x?x2x64xf8E4M3FN>
func.func @out_element(%q: !q, %k: !kv, %o: !o) {
  // expected-error @below {{(C1) expected out of f32, bf16 or f16, got 'f8E4M3FN'}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%o) : !q, !kv, !kv, !o
  return
}

// -----

!kv = !kvbuffer.cache<dense, f8E5M2, heads = 2, head_size = 64>
!q = memref<?x?x2x64xf8E5M2>
!o = memref<?x?x2x64xf8E4M3FN>
func.func @out_of_another_byte(%q: !q, %k: !kv, %o: !o) {
  // expected-error @below {{(C1) expected out of f32, bf16, f16 or 'f8E5M2', got 'f8E4M3FN'}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%o) : !q, !kv, !kv, !o
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
!qo = memref<?x?x2x64xbf16>
func.func @head_sizes(%q: !qo, %k: !kv, %v: !kv) {
  // expected-error @below {{(C2) expected q and k of one head size, got 64 and 128}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%q) : !qo, !kv, !kv, !qo
  return
}

// -----

// One cache that is k and v: O has at most its columns.
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
!q = memref<?x?x2x128xbf16>
!o = memref<?x?x2x192xbf16>
func.func @out_of_part(%q: !q, %kv: !kv, %o: !o) {
  // expected-error @below {{(C4) expected out of at most 128 columns, those of the cache that is k and v, got 'memref<?x?x2x192xbf16>'}}
  kvbuffer.attention q(%q) k(%kv) v(%kv) out(%o) : !q, !kv, !kv, !o
  return
}

// -----

// O has V's head size, not Q's.
!k = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 192>
!v = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
!qo = memref<?x?x2x192xbf16>
func.func @out_head_size(%q: !qo, %k: !k, %v: !v) {
  // expected-error @below {{(C4) expected out to have q's rows and heads and v's head size 128, got 'memref<?x?x2x192xbf16>' for 'memref<?x?x2x192xbf16>'}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%q) : !qo, !k, !v, !qo
  return
}

// -----

!k = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!v = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 68>
!q = memref<?x?x2x64xbf16>
!o = memref<?x?x2x68xbf16>
func.func @value_head_size(%q: !q, %k: !k, %v: !v, %o: !o) {
  // expected-error @below {{(C5) expected a head size that is a multiple of 8 elements (16 bytes), got 68}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !k, !v, !o
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 3, head_size = 64>
!qo = memref<?x?x4x64xbf16>
func.func @heads(%q: !qo, %k: !kv) {
  // expected-error @below {{(C3) expected k and v to have one number of heads that divides q's 4, got 3 and 3}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !qo, !kv, !kv, !qo
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
func.func @no_heads(%q: memref<?x?x0x64xbf16>, %k: !kv) {
  // expected-error @below {{(C3) expected k and v to have one number of heads that divides q's 0, got 2 and 2}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : memref<?x?x0x64xbf16>, !kv, !kv, memref<?x?x0x64xbf16>
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x2x64xbf16>
func.func @rank(%q: !qo, %k: !kv) {
  // expected-error @below {{(C4) expected q of rank 4 ([batch, rows, heads, head_size]) without offsets, got rank 3}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !qo, !kv, !kv, !qo
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xbf16>
func.func @ragged_rank(%q: !qo, %k: !kv, %off: memref<?xi32>) {
  // expected-error @below {{(C4) expected q of rank 3 ([rows, heads, head_size]) with offsets, got rank 4}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) offsets(%off) : !qo, !kv, !kv, !qo, offsets memref<?xi32>
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!q = memref<?x17x2x64xbf16>
!o = memref<3x17x2x64xbf16>
func.func @out_batch(%q: !q, %k: !kv, %o: !o) {
  // expected-error @below {{(C4) expected out to have q's rows and heads and v's head size 64, got 'memref<3x17x2x64xbf16>' for 'memref<?x17x2x64xbf16>'}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%o) : !q, !kv, !kv, !o
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!q = memref<?x?x2x64xbf16, 3>
func.func @shared_memory(%q: !q, %k: !kv) {
  // expected-error @below {{expected tensors in global memory, got 'memref<?x?x2x64xbf16, 3>'}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !q, !kv, !kv, !q
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!q = memref<?x?x2x64xbf16>
!o = memref<?x?x4x64xbf16>
func.func @out_shape(%q: !q, %k: !kv, %o: !o) {
  // expected-error @below {{(C4) expected out to have q's rows and heads and v's head size 64, got 'memref<?x?x4x64xbf16>' for 'memref<?x?x2x64xbf16>'}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%o) : !q, !kv, !kv, !o
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x?x64xbf16>
func.func @dynamic_heads(%q: !qo, %k: !kv) {
  // expected-error @below {{(C4) expected static heads and head_size, the last contiguous, in q and out}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !qo, !kv, !kv, !qo
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xbf16, strided<[?, ?, ?, 2]>>
func.func @strided_rows(%q: !qo, %k: !kv) {
  // expected-error @below {{(C4) expected static heads and head_size, the last contiguous, in q and out}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !qo, !kv, !kv, !qo
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 60>
!qo = memref<?x?x2x60xbf16>
func.func @head_size(%q: !qo, %k: !kv) {
  // expected-error @below {{(C5) expected a head size that is a multiple of 8 elements (16 bytes), got 60}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !qo, !kv, !kv, !qo
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!wide = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64, cache_depth = 576, head_dim_offset = 508>
!qo = memref<?x?x2x64xbf16>
func.func @head_dim_offset(%q: !qo, %k: !kv, %v: !wide) {
  // expected-error @below {{(C5) expected cache_depth and head_dim_offset to be multiples of 8 elements (16 bytes), got 576 and 508 of v}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%q) : !qo, !kv, !wide, !qo
  return
}

// -----

!k = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 64>
!v = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
!qo = memref<?x?x2x64xbf16>
func.func @page_sizes(%q: !qo, %k: !k, %v: !v) {
  // expected-error @below {{expected k and v of one cache kind and page size}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%q) : !qo, !k, !v, !qo
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<2x?x2x64xbf16>
func.func @lse_rows(%q: !qo, %k: !kv, %lse: memref<?x2x17xf32>) {
  // expected-error @below {{expected lse to have the rows of q, got 'memref<?x2x17xf32>' for 'memref<2x?x2x64xbf16>'}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) lse(%lse) : !qo, !kv, !kv, !qo, lse memref<?x2x17xf32>
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xbf16>
func.func @lse(%q: !qo, %k: !kv, %lse: memref<?x?xf32>) {
  // expected-error @below {{expected lse of f32 and rank 3 ([batch, heads, rows]), got 'memref<?x?xf32>'}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) lse(%lse) : !qo, !kv, !kv, !qo, lse memref<?x?xf32>
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xbf16>
func.func @lse_heads(%q: !qo, %k: !kv, %lse: memref<?x4x?xf32>) {
  // expected-error @below {{expected lse of q's 2 heads, got 'memref<?x4x?xf32>'}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) lse(%lse) : !qo, !kv, !kv, !qo, lse memref<?x4x?xf32>
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xbf16>
func.func @sink_heads(%q: !qo, %k: !kv, %sink: memref<4xf32>) {
  // expected-error @below {{expected a sink for each of q's 2 heads, got 'memref<4xf32>'}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) sink(%sink) : !qo, !kv, !kv, !qo, sink memref<4xf32>
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xbf16>
func.func @softcap(%q: !qo, %k: !kv) {
  // expected-error @below {{expected a finite softcap of at least 0}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) {softcap = -1.0 : f32} : !qo, !kv, !kv, !qo
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xbf16>
func.func @scale(%q: !qo, %k: !kv) {
  // expected-error @below {{expected a finite scale}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) {scale = 0x7F800000 : f32} : !qo, !kv, !kv, !qo
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xbf16>
func.func @missing_type(%q: !qo, %k: !kv, %lse: memref<?x2x?xf32>) {
  // expected-error @below {{expected 'lse'}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) lse(%lse) : !qo, !kv, !kv, !qo, sink memref<?x2x?xf32>
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
func.func @tile_element(%k: !kv, %i: index) {
  // expected-error @below {{expected a tile of 'bf16', got 'f16'}}
  %t = kvbuffer.cache_tile %k[%i, %i, %i] from %i upto %i : !kv -> !kvbuffer.tile<64x64xf16>
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
func.func @tile_columns(%k: !kv, %i: index) {
  // expected-error @below {{expected a tile of at most cache_depth = 64 columns, got 128}}
  %t = kvbuffer.cache_tile %k[%i, %i, %i] from %i upto %i : !kv -> !kvbuffer.tile<64x128xbf16>
  return
}

// -----

!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
func.func @small_pages(%k: !kv, %i: index) {
  // expected-error @below {{a tile of 64 rows spans pages of 16: expected page_size = 16 on the tile}}
  %t = kvbuffer.cache_tile %k[%i, %i, %i] from %i upto %i : !kv -> !kvbuffer.tile<64x64xbf16>
  return
}

// -----

!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 64>
func.func @straddling(%k: !kv, %i: index) {
  // expected-error @below {{a tile of 48 rows spans pages of 64: expected page_size = 64 on the tile}}
  %t = kvbuffer.cache_tile %k[%i, %i, %i] from %i upto %i : !kv -> !kvbuffer.tile<48x64xbf16>
  return
}

// -----

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
func.func @no_known_row(%q: !qo, %k: !kv) {
  // expected-error @below {{attribute 'kvbuffer.known_rows' must be an integer of 1 or more}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) {kvbuffer.known_rows = 0} : !qo, !kv, !kv, !qo
  return
}

// -----

!qo = memref<?x1x2x64xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
func.func @known_by_type(%q: !qo, %k: !kv) {
  // expected-error @below {{attribute 'kvbuffer.known_rows' must be with dense queries whose type leaves the number of rows of a sequence open}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) {kvbuffer.known_rows = 1} : !qo, !kv, !kv, !qo
  return
}

// -----

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<ragged, bf16, heads = 2, head_size = 64>
func.func @lengths(%q: !qo, %k: !kv) {
  // expected-error @below {{attribute 'kvbuffer.lengths' must be with a cache that has lengths, a continuous or paged one}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) {kvbuffer.lengths = "all"} : !qo, !kv, !kv, !qo
  return
}

// -----

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 3>
func.func @lengths_of(%q: !qo, %k: !kv) {
  // expected-error @below {{attribute 'kvbuffer.lengths' must be "cached" or "all"}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) {kvbuffer.lengths = "new"} : !qo, !kv, !kv, !qo
  return
}

// -----

!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 64>
func.func @large_pages(%k: !kv, %i: index) {
  // expected-error @below {{a page of 64 holds whole tiles: expected no page_size on the tile, or 64 where it begins anywhere}}
  %t = kvbuffer.cache_tile %k[%i, %i, %i] from %i upto %i : !kv -> !kvbuffer.tile<64x64xbf16, page_size = 16>
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
func.func @pages_of_dense(%k: !kv, %i: index) {
  // expected-error @below {{only paged caches have tiles with page_size}}
  %t = kvbuffer.cache_tile %k[%i, %i, %i] from %i upto %i : !kv -> !kvbuffer.tile<64x64xbf16, page_size = 16>
  return
}

// -----

func.func @dram_tile_rank(%q: memref<?x64xbf16>, %i: index) {
  // expected-error @below {{expected a tensor [.., rows, heads, head_size], got 'memref<?x64xbf16>'; of any other, a window: an index for every dimension, and valid(rows, columns)}}
  %t = kvbuffer.dram_tile %q[%i] valid(%i) : memref<?x64xbf16> -> !kvbuffer.tile<64x64xbf16>
  return
}

// -----

func.func @dram_tile_indices(%q: memref<?x?x2x64xbf16>, %i: index) {
  // expected-error @below {{expected 3 indices, got 2}}
  %t = kvbuffer.dram_tile %q[%i, %i] valid(%i) : memref<?x?x2x64xbf16> -> !kvbuffer.tile<64x64xbf16>
  return
}

// -----

func.func @dram_tile_element(%q: memref<?x?x2x64xbf16>, %i: index) {
  // expected-error @below {{expected a tile of 'bf16'}}
  %t = kvbuffer.dram_tile %q[%i, %i, %i] valid(%i) : memref<?x?x2x64xbf16> -> !kvbuffer.tile<64x64xf16>
  return
}

// -----

func.func @dram_tile_columns(%q: memref<?x?x2x64xbf16>, %i: index) {
  // expected-error @below {{expected a tile of at most 64 columns, got 128}}
  %t = kvbuffer.dram_tile %q[%i, %i, %i] valid(%i) : memref<?x?x2x64xbf16> -> !kvbuffer.tile<64x128xbf16>
  return
}

// -----

func.func @key_range(%i: index) {
  // expected-error @below {{expected a positive BM, got 0}}
  %r:4 = kvbuffer.key_range %i of %i keys %i {BM = 0, mask = #kvbuffer.mask<>}
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, stages = 2>
func.func @load_rows(%tile: !kvbuffer.tile<32x64xbf16>, %buf: !kvbuffer.buffer<#kbuf>, %i: index) {
  // expected-error @below {{expected a tile of 64 rows, cache_depth = 64 columns and elements 'bf16', got '!kvbuffer.tile<32x64xbf16>'}}
  %t = kvbuffer.dram_load %tile into %buf[%i] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.buffer<#kbuf>
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, stages = 2>
func.func @younger(%token: !kvbuffer.token<#kbuf>) {
  // expected-error @below {{expected younger of at least 0, got -1}}
  %s = kvbuffer.lds_stage %token {younger = -1 : i64} : !kvbuffer.token<#kbuf>
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, stages = 2>
func.func @fragment_element(%s: !kvbuffer.staged<#kbuf>) {
  // expected-error @below {{expected a fragment of 'bf16'}}
  %f = kvbuffer.fragment_load %s[0, 0] : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<64x16xf16, b>
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, f8E4M3FN, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, stages = 2>
func.func @fragment_wider(%s: !kvbuffer.staged<#kbuf>) {
  // expected-error @below {{expected a fragment of 'f8E4M3FN', bf16 or f16}}
  %f = kvbuffer.fragment_load %s[0, 0] : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<64x16xf8E5M2, b>
  return
}

// -----

!kv = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 64>
func.func @no_scale(%c: !kv, %i: index) {
  // expected-error @below {{expected a cache with scales, got '!kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 64>'}}
  %s = kvbuffer.cache_scale %c[%i, %i, %i, %i] : !kv
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, stages = 2>
func.func @fragment_role(%s: !kvbuffer.staged<#kbuf>) {
  // expected-error @below {{expected role b for operand k}}
  %f = kvbuffer.fragment_load %s[0, 0] : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<64x16xbf16, a>
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, stages = 2>
func.func @fragment_part(%s: !kvbuffer.staged<#kbuf>) {
  // expected-error @below {{part [0, 56] of 64x16 leaves the slot of 64x64}}
  %f = kvbuffer.fragment_load %s[0, 56] : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<64x16xbf16, b>
  return
}

// -----

func.func @window_indices(%q: memref<?x?xbf16>, %i: index) {
  // expected-error @below {{expected 2 indices with valid(rows, columns), got 1}}
  %t = kvbuffer.dram_tile %q[%i] valid(%i, %i) : memref<?x?xbf16> -> !kvbuffer.tile<64x64xbf16>
  return
}

// -----

func.func @window_rank(%q: memref<?xbf16>, %i: index) {
  // expected-error @below {{expected a tensor [.., rows, columns], got 'memref<?xbf16>'}}
  %t = kvbuffer.dram_tile %q[%i] valid(%i, %i) : memref<?xbf16> -> !kvbuffer.tile<64x64xbf16>
  return
}

// -----

func.func @window_rows(%q: memref<?x?xbf16>, %i: index) {
  // expected-error @below {{expected row_dim from 0 to 0, got 1}}
  %t = kvbuffer.dram_tile %q[%i, %i] valid(%i, %i) {row_dim = 1 : i64} : memref<?x?xbf16> -> !kvbuffer.tile<64x64xbf16>
  return
}

// -----

func.func @window_group(%q: memref<?x?x4x64xbf16>, %i: index) {
  // expected-error @below {{expected row_dim = 1 where a group of heads follows rows, got 2}}
  %t = kvbuffer.dram_tile %q[%i, %i, %i, %i] valid(%i, %i) {group = 4 : i64} : memref<?x?x4x64xbf16> -> !kvbuffer.tile<8x32xbf16, page_size = 4>
  return
}

// -----

func.func @heads_rows(%q: memref<?x4x64xbf16>, %i: index) {
  // expected-error @below {{expected row_dim with valid(rows, columns) only}}
  %t = kvbuffer.dram_tile %q[%i, %i] valid(%i) {row_dim = 0 : i64} : memref<?x4x64xbf16> -> !kvbuffer.tile<64x64xbf16>
  return
}

// -----

func.func @offset() {
  // expected-error @below {{expected an offset that is a multiple of 1024, got 512}}
  %b = kvbuffer.alloc {offset = 512 : i64} : !kvbuffer.buffer<#kvbuffer.kv_buffer<64x64xbf16>>
  return
}

// -----

#buf = #kvbuffer.kv_buffer<64x64xbf16>
func.func @neutral_read(%s: !kvbuffer.staged<#buf>) {
  // expected-error @below {{expected contracted(rows) or contracted(cols): a neutral buffer does not say which}}
  %f = kvbuffer.fragment_load %s[0, 0] : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<64x64xbf16, b>
  return
}

// -----

// Rows of operand a that lies turned are columns of the slot.
#buf = #kvbuffer.kv_buffer<32x64xbf16>
func.func @turned_a(%s: !kvbuffer.staged<#buf>) {
  %whole = kvbuffer.fragment_load %s[0, 0] contracted(rows) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<64x32xbf16, a>
  // expected-error @below {{part [0, 0] of 64x32 leaves the slot of 32x64}}
  %f = kvbuffer.fragment_load %s[0, 0] contracted(rows) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<32x64xbf16, a>
  return
}

// -----

#buf = #kvbuffer.kv_buffer<64x64xbf16>
func.func @neutral_role(%s: !kvbuffer.staged<#buf>) {
  // expected-error @below {{expected role a or b, got acc}}
  %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<64x64xbf16, acc>
  return
}

// -----

// Words no product takes.
#buf = #kvbuffer.kv_buffer<64x72xf32>
func.func @words_role(%s: !kvbuffer.staged<#buf>) {
  %acc = kvbuffer.fragment_load %s[0, 0] : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<64x64xf32, acc>
  // expected-error @below {{expected role acc, got a}}
  %f = kvbuffer.fragment_load %s[0, 0] : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<64x64xf32, a>
  return
}

// -----

#buf = #kvbuffer.kv_buffer<64x64xbf16>
func.func @neutral_product(%s: !kvbuffer.staged<#buf>, %a: !kvbuffer.fragment<64x64xbf16, a>, %acc: !kvbuffer.fragment<64x64xf32, acc>) {
  // expected-note @below {{the fragment is loaded here}}
  %f = kvbuffer.fragment_load %s[0, 0] contracted(rows) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<64x64xbf16, b>
  // expected-error @below {{multiplies by a fragment that was loaded contracted(rows) with transpose_b; expected contracted(cols) or no transpose_b}}
  %p = kvbuffer.mma %a, %f, %acc {transpose_b} : !kvbuffer.fragment<64x64xbf16, a>, !kvbuffer.fragment<64x64xbf16, b>, !kvbuffer.fragment<64x64xf32, acc>
  return
}

// -----

#buf = #kvbuffer.kv_buffer<64x64xbf16>
func.func @view_place(%s: !kvbuffer.staged<#buf>) {
  // expected-error @below {{expected a view at [16, 0] of the slot, got [0, 0]}}
  %v = kvbuffer.staged_view %s[16, 0] : !kvbuffer.staged<#buf> -> !kvbuffer.staged<#buf, 16x64 at [0, 0]>
  return
}

// -----

#buf = #kvbuffer.kv_buffer<64x64xbf16>
func.func @view_part(%s: !kvbuffer.staged<#buf, 32x64 at [0, 0]>) {
  // expected-error @below {{part [0, 0] of 48x64 leaves the view of 32x64}}
  %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#buf, 32x64 at [0, 0]> -> !kvbuffer.fragment<48x64xbf16, b>
  return
}

// -----

#buf = #kvbuffer.kv_buffer<64x64xbf16>
// expected-error @below {{a view of 64x64 at [16, 0] leaves the slot of 64x64}}
func.func private @view_slot(!kvbuffer.staged<#buf, 64x64 at [16, 0]>)

// -----

func.func @store_shape(%f: !kvbuffer.fragment<64x64xbf16, acc>, %tile: !kvbuffer.tile<128x64xbf16>) {
  // expected-error @below {{expected a fragment of 128 rows, at least 64 columns and elements 'bf16', got '!kvbuffer.fragment<64x64xbf16, acc>'}}
  kvbuffer.fragment_store %f, %tile : !kvbuffer.fragment<64x64xbf16, acc>, !kvbuffer.tile<128x64xbf16>
  return
}

// -----

func.func @row_store_role(%f: !kvbuffer.fragment<64x64xf32, acc>, %m: memref<?xf32>, %i: index) {
  // expected-error @below {{expected a fragment of role row}}
  kvbuffer.row_store %f, %m[%i] valid(%i) : !kvbuffer.fragment<64x64xf32, acc>, memref<?xf32>
  return
}

// -----

func.func @row_store_indices(%f: !kvbuffer.fragment<64x1xf32, row>, %m: memref<?x?xf32>, %i: index) {
  // expected-error @below {{expected 2 indices, got 1}}
  kvbuffer.row_store %f, %m[%i] valid(%i) : !kvbuffer.fragment<64x1xf32, row>, memref<?x?xf32>
  return
}

// -----

func.func @row_store_element(%f: !kvbuffer.fragment<64x1xf32, row>, %m: memref<?xbf16>, %i: index) {
  // expected-error @below {{expected a fragment of 'bf16'}}
  kvbuffer.row_store %f, %m[%i] valid(%i) : !kvbuffer.fragment<64x1xf32, row>, memref<?xbf16>
  return
}

// -----

func.func @slice_type(%f: !kvbuffer.fragment<64x64xbf16, a>) {
  // expected-error @below {{expected the source's role and element type}}
  %p = kvbuffer.fragment_slice %f[0, 0] : !kvbuffer.fragment<64x64xbf16, a> -> !kvbuffer.fragment<64x16xbf16, b>
  return
}

// -----

func.func @slice_part(%f: !kvbuffer.fragment<64x64xbf16, a>) {
  // expected-error @below {{part [8, 0] of 64x16 leaves '!kvbuffer.fragment<64x64xbf16, a>'}}
  %p = kvbuffer.fragment_slice %f[8, 0] : !kvbuffer.fragment<64x64xbf16, a> -> !kvbuffer.fragment<64x16xbf16, a>
  return
}

// -----

!a = !kvbuffer.fragment<64x16xbf16, a>
!c = !kvbuffer.fragment<64x64xf32, acc>
func.func @mma_roles(%a: !a, %c: !c) {
  // expected-error @below {{expected roles a, b and acc, got a, a and acc}}
  %s = kvbuffer.mma %a, %a, %c {transpose_b} : !a, !a, !c
  return
}

// -----

!a = !kvbuffer.fragment<64x16xbf16, a>
!b = !kvbuffer.fragment<64x16xf16, b>
!c = !kvbuffer.fragment<64x64xf32, acc>
func.func @mma_elements(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{expected operands of one element type}}
  %s = kvbuffer.mma %a, %b, %c {transpose_b} : !a, !b, !c
  return
}

// -----

!a = !kvbuffer.fragment<64x16xbf16, a>
!b = !kvbuffer.fragment<64x16xbf16, b>
!c = !kvbuffer.fragment<64x64xf32, acc>
func.func @mma_shapes(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{cannot multiply '!kvbuffer.fragment<64x16xbf16, a>' by '!kvbuffer.fragment<64x16xbf16, b>' into '!kvbuffer.fragment<64x64xf32, acc>'}}
  %s = kvbuffer.mma %a, %b, %c : !a, !b, !c
  return
}

// -----

!a = !kvbuffer.fragment<64x16xbf16, a>
!b = !kvbuffer.fragment<32x16xbf16, b>
!c = !kvbuffer.fragment<64x64xf32, acc>
func.func @mma_transposed(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{cannot multiply '!kvbuffer.fragment<64x16xbf16, a>' by '!kvbuffer.fragment<32x16xbf16, b>' (transposed) into '!kvbuffer.fragment<64x64xf32, acc>'}}
  %s = kvbuffer.mma %a, %b, %c {transpose_b} : !a, !b, !c
  return
}

// -----

!a = !kvbuffer.fragment<64x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
!c = !kvbuffer.fragment<64x64xf32, acc>
func.func @mma_column(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{cannot multiply '!kvbuffer.fragment<64x32xbf16, a>' by '!kvbuffer.fragment<32x32xbf16, b>' into '!kvbuffer.fragment<64x64xf32, acc>' from column 48 on}}
  %s = kvbuffer.mma %a, %b, %c {column = 48 : i64} : !a, !b, !c
  return
}

// -----

!a = !kvbuffer.fragment<64x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
!c = !kvbuffer.fragment<64x64xf32, acc>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, stages = 2>
func.func @mma_transposes_v(%a: !a, %vs: !kvbuffer.staged<#vbuf>, %c: !c) {
  // expected-note @below {{the fragment is loaded here}}
  %b = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !b
  // expected-error @below {{multiplies by a fragment of a v buffer, whose rows are contracted, with transpose_b; expected no transpose_b, or a fragment of a k buffer}}
  %s = kvbuffer.mma %a, %b, %c {transpose_b} : !a, !b, !c
  return
}

// -----

// Through slices, selections, branches and loops.
!a = !kvbuffer.fragment<64x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
!w = !kvbuffer.fragment<64x128xbf16, b>
!c = !kvbuffer.fragment<64x64xf32, acc>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 128, stages = 2>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, stages = 2>
func.func @mma_of_k(%a: !a, %ks: !kvbuffer.staged<#kbuf>, %vs: !kvbuffer.staged<#vbuf>, %c: !c, %n: index, %i: i1) {
  %v = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !b
  // expected-note @below {{the fragment is loaded here}}
  %k = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !w
  %part = kvbuffer.fragment_slice %k[0, 64] : !w -> !b
  %one = scf.if %i -> !b {
    scf.yield %v : !b
  } else {
    scf.yield %part : !b
  }
  %two = arith.select %i, %v, %one : !b
  %last = scf.for %j = %n to %n step %n iter_args(%f = %v) -> !b {
    // expected-error @below {{multiplies by a fragment of a k buffer, whose rows are columns of the product, without transpose_b; expected transpose_b, or a fragment of a v buffer}}
    %s = kvbuffer.mma %a, %f, %c : !a, !b, !c
    scf.yield %two : !b
  }
  return
}

// -----

!b = !kvbuffer.fragment<64x64xbf16, b>
#obuf = #kvbuffer.kv_buffer<o, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 16, BK = 64, num_threads = 128, depth = 64>
func.func @load_of_o(%os: !kvbuffer.staged<#obuf>) {
  // expected-error @below {{expected a slot of operand q, k or v: o is no operand of a product}}
  %b = kvbuffer.fragment_load %os[0, 0] : !kvbuffer.staged<#obuf> -> !b
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 128, full_kv = false, stages = 2>
func.func @load_block(%tile: !kvbuffer.tile<64x128xbf16>, %buf: !kvbuffer.buffer<#kbuf>, %i: index) {
  // expected-error @below {{expected a block from 0 to 1, got 2}}
  %t = kvbuffer.dram_load %tile into %buf[%i] {block = 2 : i64} : !kvbuffer.tile<64x128xbf16>, !kvbuffer.buffer<#kbuf>
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 128, stages = 2>
func.func @load_block_of_whole(%tile: !kvbuffer.tile<64x128xbf16>, %buf: !kvbuffer.buffer<#kbuf>, %i: index) {
  // expected-error @below {{expected a block from 0 to 0, got 1}}
  %t = kvbuffer.dram_load %tile into %buf[%i] {block = 1 : i64} : !kvbuffer.tile<64x128xbf16>, !kvbuffer.buffer<#kbuf>
  return
}

// -----

func.func @convert_shape(%f: !kvbuffer.fragment<64x64xf32, acc>) {
  // expected-error @below {{expected fragments of one shape, got '!kvbuffer.fragment<64x64xf32, acc>' and '!kvbuffer.fragment<64x32xbf16, acc>'}}
  %p = kvbuffer.fragment_convert %f : !kvbuffer.fragment<64x64xf32, acc> -> !kvbuffer.fragment<64x32xbf16, acc>
  return
}

// -----

func.func @softcap(%s: !kvbuffer.fragment<64x64xf32, acc>) {
  // expected-error @below {{expected a finite cap above 0}}
  %c = kvbuffer.softcap %s {scale = 1.0 : f32, cap = 0.0 : f32} : !kvbuffer.fragment<64x64xf32, acc>
  return
}

// -----

func.func @softcap_role(%s: !kvbuffer.fragment<64x64xbf16, a>) {
  // expected-error @below {{expected role acc, got a}}
  %c = kvbuffer.softcap %s {scale = 1.0 : f32, cap = 1.0 : f32} : !kvbuffer.fragment<64x64xbf16, a>
  return
}

// -----

func.func @scale_factor(%s: !kvbuffer.fragment<64x64xf32, acc>) {
  // expected-error @below {{expected a finite factor}}
  %c = kvbuffer.fragment_scale %s {factor = 0x7FC00000 : f32} : !kvbuffer.fragment<64x64xf32, acc>
  return
}

// -----

func.func @mask_of_each_tile(%s: !kvbuffer.fragment<64x64xf32, acc>, %i: index) {
  // expected-error @below {{is seldom needed, and has the mask #kvbuffer.mask<causal = true>, which hides keys of any tile; expected one that hides none}}
  %c = kvbuffer.mask %s rows(%i, %i) keys(%i, %i) {mask = #kvbuffer.mask<causal = true>, seldom} : !kvbuffer.fragment<64x64xf32, acc>
  return
}

// -----

func.func @mask_role(%s: !kvbuffer.fragment<64x64xbf16, b>, %i: index) {
  // expected-error @below {{expected role acc, got b}}
  %c = kvbuffer.mask %s rows(%i, %i) keys(%i, %i) {mask = #kvbuffer.mask<>} : !kvbuffer.fragment<64x64xbf16, b>
  return
}

// -----

!s = !kvbuffer.fragment<64x64xf32, acc>
!r = !kvbuffer.fragment<64x1xf32, row>
func.func @softmax_scale(%s: !s, %m: !r) {
  // expected-error @below {{expected a finite scale above 0: the maximum is taken before the scores are scaled}}
  %p:4 = kvbuffer.online_softmax %s, %m, %m {scale = -1.0 : f32} : !s, !r -> !kvbuffer.fragment<64x64xbf16, a>
  return
}

// -----

!s = !kvbuffer.fragment<64x64xf32, acc>
!r = !kvbuffer.fragment<64x1xf32, row>
func.func @softmax_gain(%s: !s, %m: !r) {
  // expected-error @below {{expected a gain that is a power of two, got 3}}
  %p:4 = kvbuffer.online_softmax %s, %m, %m {scale = 1.0 : f32, gain = 3.0 : f32} : !s, !r -> !kvbuffer.fragment<64x64xbf16, a>
  return
}

// -----

!s = !kvbuffer.fragment<64x64xf32, acc>
!r = !kvbuffer.fragment<64x1xf32, row>
func.func @softmax_roles(%s: !s, %m: !r) {
  // expected-error @below {{expected roles acc, row and a}}
  %p:4 = kvbuffer.online_softmax %s, %m, %m {scale = 1.0 : f32} : !s, !r -> !kvbuffer.fragment<64x64xbf16, b>
  return
}

// -----

!s = !kvbuffer.fragment<64x64xf32, acc>
!r = !kvbuffer.fragment<32x1xf32, row>
func.func @softmax_rows(%s: !s, %m: !r) {
  // expected-error @below {{expected scores and p of one shape and a row value for each of their rows}}
  %p:4 = kvbuffer.online_softmax %s, %m, %m {scale = 1.0 : f32} : !s, !r -> !kvbuffer.fragment<64x64xbf16, a>
  return
}

// -----

!s = !kvbuffer.fragment<64x64xf32, acc>
!r = !kvbuffer.fragment<32x1xf32, row>
func.func @rescale(%s: !s, %r: !r) {
  // expected-error @below {{expected an accumulator and a row value for each of its rows, got '!kvbuffer.fragment<64x64xf32, acc>' and '!kvbuffer.fragment<32x1xf32, row>'}}
  %a = kvbuffer.rescale %s, %r : !s, !r
  return
}

// -----

!s = !kvbuffer.fragment<64x64xf32, acc>
func.func @finish(%s: !s) {
  // expected-error @below {{expected an accumulator and a row value for each of its rows, got '!kvbuffer.fragment<64x64xf32, acc>' and '!kvbuffer.fragment<64x64xf32, acc>'}}
  %o, %l = kvbuffer.softmax_finish %s, %s, %s {scale = 1.0 : f32} : !s, !s
  return
}

// -----

func.func @lane_mma(%w: vector<2xbf16>, %c: vector<4xf32>) {
  // expected-error @below {{expected shape of three positive sizes M, N, K}}
  %d = kvbuffer.lane_mma a(%w : vector<2xbf16>) b(%w : vector<2xbf16>) c(%c : vector<4xf32>) {shape = array<i64: 16, 8>}
  return
}

// -----

func.func @no_token(%x: bf16) {
  // expected-error @below {{expected tokens of loads, got 'bf16'}}
  %s = kvbuffer.lds_stage %x : bf16
  return
}

// -----

func.func @gather_page(%m: memref<?x?xbf16>, %n: memref<?xi32>, %i: index) {
  // expected-error @below {{gathers rows: expected page_size = 1 on the tile}}
  %t = kvbuffer.dram_tile %m[%i, %i] gather(%n[%i]) valid(%i, %i) : memref<?x?xbf16>, memref<?xi32> -> !kvbuffer.tile<64x64xbf16>
  return
}

// -----

func.func @gather_apart(%m: memref<?x?xbf16>, %n: memref<?xi32, strided<[2]>>, %i: index) {
  // expected-error @below {{expected numbers of rows side by side, got 'memref<?xi32, strided<[2]>>'}}
  %t = kvbuffer.dram_tile %m[%i, %i] gather(%n[%i]) valid(%i, %i) : memref<?x?xbf16>, memref<?xi32, strided<[2]>> -> !kvbuffer.tile<64x64xbf16, page_size = 1>
  return
}

// -----

func.func @gather_group(%m: memref<?x?x8x64xbf16>, %n: memref<?xi32>, %i: index) {
  // expected-error @below {{has a group of 4 rows: expected none where rows are gathered}}
  %t = kvbuffer.dram_tile %m[%i, %i, %i] gather(%n[%i]) valid(%i) {group = 4 : i64} : memref<?x?x8x64xbf16>, memref<?xi32> -> !kvbuffer.tile<64x64xbf16, page_size = 4>
  return
}

// -----

func.func @scatter(%m: memref<?x?xbf16>, %n: memref<?xi32>, %i: index, %f: !kvbuffer.fragment<64x64xbf16, acc>) {
  %t = kvbuffer.dram_tile %m[%i, %i] gather(%n[%i]) valid(%i, %i) : memref<?x?xbf16>, memref<?xi32> -> !kvbuffer.tile<64x64xbf16, page_size = 1>
  // expected-error @below {{expected a tile of kvbuffer.dram_tile without gather; rows of a cache are stored by kvbuffer.cache_append and kvbuffer.cache.store}}
  kvbuffer.fragment_store %f, %t : !kvbuffer.fragment<64x64xbf16, acc>, !kvbuffer.tile<64x64xbf16, page_size = 1>
  return
}

// -----

!kc = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 64, page_size = 16>
func.func @fragment_of_pages(%c: !kc, %i: index) {
  %t = kvbuffer.cache_tile %c[%i, %i, %i] from %i upto %i : !kc -> !kvbuffer.tile<64x64xbf16, page_size = 16>
  // expected-error @below {{expected a tile of kvbuffer.dram_tile without gather; others go through LDS by kvbuffer.dram_load}}
  %f = kvbuffer.tile_fragment %t : !kvbuffer.tile<64x64xbf16, page_size = 16> -> !kvbuffer.fragment<64x64xbf16, a>
  return
}

// -----

func.func @open_schedule(%q: memref<?x?x2x64xbf16>, %k: !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>, %v: !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>, %o: memref<?x?x2x64xbf16>) {
  // expected-error @below {{'kvbuffer.attention' op has a schedule that leaves mma_shape open, as programs may; expected mma_shape, or no schedule}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {schedule = #kvbuffer.schedule<BM = 64, BN = 64>}
    : memref<?x?x2x64xbf16>, !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>, !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>, memref<?x?x2x64xbf16>
  return
}
