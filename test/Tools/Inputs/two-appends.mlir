// Two appends and an attention in one function, of which one is a part of it.
!q = memref<?x1x4x64xbf16>
!new = memref<?x1x2x64xbf16>
!cache = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>

func.func @step(%q: !q, %k: !new, %v: !new, %kc: !cache, %vc: !cache, %o: !q) {
  kvbuffer.cache_append k(%k : !new) to(%kc : !cache) v(%v : !new) to(%vc : !cache)
  kvbuffer.cache_append k(%k : !new) to(%kc : !cache) v(%v : !new) to(%vc : !cache)
  kvbuffer.attention q(%q) k(%kc) v(%vc) out(%o) : !q, !cache, !cache, !q
  return
}
