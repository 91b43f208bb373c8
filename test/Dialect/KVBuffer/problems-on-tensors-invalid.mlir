// RUN: kvbuf-opt %s --verify-diagnostics --split-input-file

!q = tensor<?x?x4x64xbf16>
func.func @mixed(%q: !q, %k: tensor<?x?x4x64xbf16>, %o: memref<?x?x4x64xbf16>) {
  // expected-error @below {{(C6) expected all operands but caches to be tensors, as the first is, got 'memref<?x?x4x64xbf16>'}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%o) : !q, tensor<?x?x4x64xbf16>, tensor<?x?x4x64xbf16>, memref<?x?x4x64xbf16>
  return
}

// -----

!q = memref<?x?x4x64xbf16>
func.func @keys(%q: !q, %k: tensor<?x?x4x64xbf16>) {
  // expected-error @below {{(C6) expected all operands but caches to be memrefs, as the first is, got 'tensor<?x?x4x64xbf16>'}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !q, tensor<?x?x4x64xbf16>, tensor<?x?x4x64xbf16>, !q
  return
}

// -----

!q = tensor<?x?x4x64xbf16>
func.func @heads(%q: !q, %k: tensor<?x?x?x64xbf16>) -> !q {
  // expected-error @below {{expected k to be a cache, or a tensor [batch, keys, kv_heads, head_size] with static kv_heads and head_size, got 'tensor<?x?x?x64xbf16>'}}
  %r = kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !q, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, !q -> !q
  return %r : !q
}

// -----

!q = tensor<?x?x4x64xbf16>
func.func @results(%q: !q) {
  // expected-error @below {{expected the number of tensor results (0) to be equal to the number of output tensors (1)}}
  kvbuffer.attention q(%q) k(%q) v(%q) out(%q) : !q, !q, !q, !q
  return
}

// -----

!c = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
func.func @caches(%k: tensor<2x1x2x64xbf16>, %kc: tensor<2x?x2x64xbf16>, %vc: !c, %at: tensor<2xi32>) {
  // expected-error @below {{expected caches of keys and values to be both tensors or both caches, got 'tensor<2x?x2x64xbf16>' and '!kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>'}}
  kvbuffer.cache_append k(%k : tensor<2x1x2x64xbf16>) to(%kc : tensor<2x?x2x64xbf16>) v(%k : tensor<2x1x2x64xbf16>) to(%vc : !c) at(%at : tensor<2xi32>)
  return
}

// -----

func.func @at(%k: tensor<2x1x2x64xbf16>, %kc: tensor<2x?x2x64xbf16>, %at: memref<2xi32>) {
  // expected-error @below {{expected all operands but caches to be tensors, as k is, got 'memref<2xi32>'}}
  kvbuffer.cache_append k(%k : tensor<2x1x2x64xbf16>) to(%kc : tensor<2x?x2x64xbf16>) at(%at : memref<2xi32>)
  return
}

// -----

!data = tensor<?x16x2x64xbf16>
!cache = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
func.func @another_tensor(%d: !data, %other: !data, %table: tensor<2x4xi32>, %lengths: tensor<2xi32>) -> !data {
  // expected-note @below {{the cache is made here}}
  %c = kvbuffer.make_cache %d indices(%table, %lengths : tensor<2x4xi32>, tensor<2xi32>) : !data -> !cache
  // expected-error @below {{expected a cache that a kvbuffer.make_cache of this function makes of 'into' as data}}
  %n = kvbuffer.cache_tensor %c into(%other) : !cache -> !data
  return %n : !data
}

// -----

!data = tensor<?x16x2x64xbf16>
!cache = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
func.func @no_scales(%c: !cache, %d: !data) -> !data {
  // expected-error @below {{expected a cache that a kvbuffer.make_cache of this function makes of 'into' as scales}}
  %n = kvbuffer.cache_tensor %c scales into(%d) : !cache -> !data
  return %n : !data
}
