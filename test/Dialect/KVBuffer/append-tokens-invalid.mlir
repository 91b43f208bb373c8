// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

!dense = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 128>
func.func @dense(%k: memref<?x1x8x128xbf16>, %kc: !dense, %i: index) {
  // expected-error @below {{expected continuous or paged caches, whose lengths say where new tokens go, got '!kvbuffer.cache<dense, bf16, heads = 8, head_size = 128>'}}
  kvbuffer.append_tokens[%i, %i] from %i upto %i k(%k : memref<?x1x8x128xbf16>) to(%kc : !dense)
  return
}

// -----

!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
func.func @rank(%k: memref<?x8x128xbf16>, %kc: !paged, %i: index) {
  // expected-error @below {{expected k of rank 4 ([batch, rows, heads, head_size]) without offsets, got 'memref<?x8x128xbf16>'}}
  kvbuffer.append_tokens[%i, %i] from %i upto %i k(%k : memref<?x8x128xbf16>) to(%kc : !paged)
  return
}

// -----

!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
func.func @heads(%k: memref<?x1x4x128xbf16>, %kc: !paged, %i: index) {
  // expected-error @below {{expected k with 8 heads of 128 elements side by side, as its cache has, got 'memref<?x1x4x128xbf16>'}}
  kvbuffer.append_tokens[%i, %i] from %i upto %i k(%k : memref<?x1x4x128xbf16>) to(%kc : !paged)
  return
}

// -----

!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
!fewer = !kvbuffer.cache<paged, bf16, heads = 4, head_size = 128, page_size = 16>
func.func @other_heads(%k: memref<?x1x8x128xbf16>, %kc: !paged, %v: memref<?x1x4x128xbf16>, %vc: !fewer, %i: index) {
  // expected-error @below {{expected caches with as many heads, got '!kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>' and '!kvbuffer.cache<paged, bf16, heads = 4, head_size = 128, page_size = 16>'}}
  kvbuffer.append_tokens[%i, %i] from %i upto %i k(%k : memref<?x1x8x128xbf16>) to(%kc : !paged)
    v(%v : memref<?x1x4x128xbf16>) to(%vc : !fewer)
  return
}

// -----

!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
func.func @angles(%k: memref<?x1x8x128xbf16>, %kc: !paged, %cos: memref<?x65xf32>, %i: index) {
  // expected-error @below {{expected tables of 1 to 64 columns, half the elements that are rotated, got 65}}
  kvbuffer.append_tokens[%i, %i] from %i upto %i k(%k : memref<?x1x8x128xbf16>) to(%kc : !paged)
    rope(%cos, %cos : memref<?x65xf32>, memref<?x65xf32>)
  return
}

// -----

!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
func.func @no_angles(%k: memref<?x1x8x128xbf16>, %kc: !paged, %i: index) {
  // expected-error @below {{is interleaved, which belongs to rope(cos, sin)}}
  kvbuffer.append_tokens[%i, %i] from %i upto %i k(%k : memref<?x1x8x128xbf16>) to(%kc : !paged) {interleaved}
  return
}
