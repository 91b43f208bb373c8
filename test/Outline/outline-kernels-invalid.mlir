// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics --kvbuf-outline-kernels=chip=sm_80

!q = memref<?x?x4x64xbf16>
!c = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @given_cache(%q: !q, %k: !c) {
  // expected-error @below {{has a cache 'k' that no kvbuffer.make_cache makes in this function; the launch needs its memrefs}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !q, !c, !c, !q
  return
}

// -----

!q = tensor<?x?x4x64xbf16>
func.func @tensors(%q: !q) -> !q {
  // expected-error @below {{is on tensors; expected memrefs: run one-shot-bufferize first}}
  %r = kvbuffer.attention q(%q) k(%q) v(%q) out(%q) : !q, !q, !q, !q -> !q
  return %r : !q
}

// -----

!q = memref<?x?x4x64xbf16>
!c = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func private @outer()
module @nested {
  func.func @f(%q: !q, %m: !q) {
    %k = kvbuffer.make_cache %m : !q -> !c
    // expected-error @below {{stands where it is not outlined; expected it in a function of this module, not in a nested one}}
    kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !q, !c, !c, !q
    return
  }
}

// -----

!q = memref<2x1x4x64xbf16>
!c = !kvbuffer.cache<paged, bf16, heads = 4, head_size = 64, page_size = 16>
func.func @tables(%q: !q, %m: memref<?x16x4x64xbf16>, %table: memref<2x?xi32>, %lengths: memref<2xi64>) {
  // expected-note @below {{the cache is made here}}
  %k = kvbuffer.make_cache %m indices(%table, %lengths : memref<2x?xi32>, memref<2xi64>) : memref<?x16x4x64xbf16> -> !c
  // expected-error @below {{has a cache with tables of 'i32' and 'i64'; kernels take caches whose tables, lengths and offsets have one type}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !q, !c, !c, !q
  return
}

// -----

// What the kernel's own passes refuse they say at the problem.
!q = memref<?x?x4x64xf8E4M3FN>
!o = memref<?x?x4x64xbf16>
!c = !kvbuffer.cache<dense, f8E4M3FN, heads = 4, head_size = 64>
func.func @elements(%q: !q, %m: !q, %n: !q, %o: !o) {
  %k = kvbuffer.make_cache %m : !q -> !c
  %v = kvbuffer.make_cache %n : !q -> !c
  // expected-error @below {{elements of f8E4M3FN}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !c, !c, !o
  return
}

// -----

!q = memref<2x1x4x64xbf16>
!c = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @made_of_tensors(%q: !q, %t: tensor<2x8x4x64xbf16>) {
  // expected-error @below {{is on tensors; expected memrefs: run one-shot-bufferize first}}
  %k = kvbuffer.make_cache %t : tensor<2x8x4x64xbf16> -> !c
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !q, !c, !c, !q
  return
}

// -----

!q = memref<2x1x4x64xbf16>
!c = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
// expected-error @below {{argument 1 is no stream; expected an '!llvm.ptr'}}
func.func @no_stream(%q: !q, %stream: i64 {kvbuffer.stream}) {
  %k = kvbuffer.make_cache %q : !q -> !c
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !q, !c, !c, !q
  return
}

// -----

!q = memref<2x1x4x64xbf16>
!c = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
// expected-error @below {{argument 2 is a second stream; expected one}}
func.func @two_streams(%q: !q, %a: !llvm.ptr {kvbuffer.stream}, %b: !llvm.ptr {kvbuffer.stream}) {
  %k = kvbuffer.make_cache %q : !q -> !c
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !q, !c, !c, !q
  return
}
