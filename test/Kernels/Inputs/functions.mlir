// The functions of a server's model: new tokens are appended to a paged cache, which
// prompts and then single tokens read.
!new = memref<?x?x2x64xbf16>
!prompt = memref<?x?x8x64xbf16>
!token = memref<?x1x8x64xbf16>
!cache = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>

func.func @append(%k: !new, %v: !new, %kc: !cache, %vc: !cache) {
  kvbuffer.cache_append k(%k : !new) to(%kc : !cache) v(%v : !new) to(%vc : !cache)
  return
}

func.func @prefill(%q: !prompt, %k: !cache, %v: !cache, %o: !prompt) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !prompt, !cache, !cache, !prompt
  return
}

func.func @decode(%q: !token, %k: !cache, %v: !cache, %o: !token) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !token, !cache, !cache, !token
  return
}
