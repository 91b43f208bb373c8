!new = memref<?x2x64xbf16, strided<[?, ?, 1]>>
!paged = !kvbuffer.cache<paged, f8E4M3FN, heads = 2, head_size = 64, page_size = 16, scale = f32, granularity = tensor>

func.func @append(%k: !new, %cache: !paged, %offsets: memref<?xi32>) {
  kvbuffer.cache_append k(%k : !new) to(%cache : !paged) offsets(%offsets : memref<?xi32>)
  return
}
