// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_80 --kvbuf-lower-problems --split-input-file --verify-diagnostics

!q = memref<?x?x32x128xbf16>
!new = memref<?x?x8x128xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
func.func @many_rows(%q: !q, %nk: !new, %nv: !new, %k: !kv, %v: !kv, %o: !q) {
  // expected-error @below {{cannot be a part of the attention after it: keys are not split over blocks; expected queries that have no more rows than fit a tile, and say so in their type (on sm_80 at most 64, or times the heads that share a head of the cache at most 32)}}
  kvbuffer.cache_append k(%nk : !new) to(%k : !kv) v(%nv : !new) to(%v : !kv)
  // expected-note @below {{the attention is here}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !kv, !kv, !q
  return
}

// -----

!q = memref<?x8x256x128xbf16>
!new = memref<?x8x8x128xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
func.func @several_tiles(%q: !q, %nk: !new, %nv: !new, %k: !kv, %v: !kv, %o: !q) {
  // expected-error @below {{cannot be a part of the attention after it: the query rows of a sequence take several tiles, each of which would store the tokens; expected as many rows as fit one, and a type that says how many there are}}
  kvbuffer.cache_append k(%nk : !new) to(%k : !kv) v(%nv : !new) to(%v : !kv)
  // expected-note @below {{the attention is here}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !kv, !kv, !q
  return
}

// -----

!q = memref<?x1x32x128xbf16>
!new = memref<?x1x8x128xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
func.func @other_caches(%q: !q, %nk: !new, %nv: !new, %k: !kv, %v: !kv, %w: !kv, %o: !q) {
  // expected-error @below {{cannot be a part of the attention after it: expected new keys and values for the caches that it reads}}
  kvbuffer.cache_append k(%nk : !new) to(%k : !kv) v(%nv : !new) to(%w : !kv)
  // expected-note @below {{the attention is here}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !kv, !kv, !q
  return
}

// -----

!q = memref<?x1x32x128xbf16>
!new = memref<?x8x128xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
func.func @ragged(%q: !q, %nk: !new, %nv: !new, %at: memref<?xi32>, %k: !kv, %v: !kv, %o: !q) {
  // expected-error @below {{cannot be a part of the attention after it: expected tokens that follow those of each sequence, without offsets and positions}}
  kvbuffer.cache_append k(%nk : !new) to(%k : !kv) v(%nv : !new) to(%v : !kv) offsets(%at : memref<?xi32>)
  // expected-note @below {{the attention is here}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !kv, !kv, !q
  return
}

// -----

!q = memref<?x1x32x128xbf16>
!new = memref<?x1x8x128xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
func.func @counted(%q: !q, %nk: !new, %nv: !new, %k: !kv, %v: !kv, %o: !q) {
  // expected-error @below {{cannot be a part of the attention after it: expected continuous or paged caches, with lengths that do not count the new tokens}}
  kvbuffer.cache_append k(%nk : !new) to(%k : !kv) v(%nv : !new) to(%v : !kv)
  // expected-note @below {{the attention is here}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {kvbuffer.lengths = "all"} : !q, !kv, !kv, !q
  return
}

// -----

!q = memref<?x1x32x128xbf16>
!new = memref<?x3x8x128xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
func.func @other_count(%q: !q, %nk: !new, %nv: !new, %k: !kv, %v: !kv, %o: !q) {
  // expected-error @below {{cannot be a part of the attention after it: it has 3 tokens of each sequence; expected a token for each of its 1 query rows}}
  kvbuffer.cache_append k(%nk : !new) to(%k : !kv) v(%nv : !new) to(%v : !kv)
  // expected-note @below {{the attention is here}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !kv, !kv, !q
  return
}
