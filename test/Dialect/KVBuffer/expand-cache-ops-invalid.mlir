// RUN: kvbuf-opt %s --kvbuf-expand-cache-ops --split-input-file --verify-diagnostics

!dense = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 128>
func.func @unknown_parts(%c: !dense, %b: index) -> index {
  // expected-error @below {{'kvbuffer.cache.cache_length' op uses a cache whose memrefs are not known here; expected one that a kvbuffer.make_cache of this function makes, or an argument of a kernel that kvbuf-expand-arguments has expanded}}
  %n = kvbuffer.cache.cache_length %c[%b] : !dense
  return %n : index
}

// -----

!dense = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 128>
func.func @no_prompt(%data: memref<?x?x8x128xbf16>) -> index {
  %c = kvbuffer.make_cache %data : memref<?x?x8x128xbf16> -> !dense
  // expected-error @below {{'kvbuffer.cache.max_prompt_length' op asks a cache that was made without max_prompt}}
  %n = kvbuffer.cache.max_prompt_length %c : !dense
  return %n : index
}

// -----

!dense = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 128>
func.func @tensors(%data: tensor<?x?x8x128xbf16>, %b: index) -> index {
  %c = kvbuffer.make_cache %data : tensor<?x?x8x128xbf16> -> !dense
  // expected-error @below {{'kvbuffer.cache.cache_length' op uses a cache of tensors; expected one of memrefs: run one-shot-bufferize first}}
  %n = kvbuffer.cache.cache_length %c[%b] : !dense
  return %n : index
}
