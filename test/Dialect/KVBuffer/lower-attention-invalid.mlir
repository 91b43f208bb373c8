// RUN: kvbuf-opt %s --kvbuf-lower-problems --split-input-file --verify-diagnostics

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
// expected-error @below {{has no known 'kvbuffer.target'; run kvbuf-choose-schedule first}}
module {
  func.func @no_target(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    return
  }
}

// -----

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
module attributes {kvbuffer.target = "sm_80"} {
  func.func @no_schedule(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
    // expected-error @below {{has no schedule; run kvbuf-choose-schedule first}}
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    return
  }
}

// -----

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
#s = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  func.func @two(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {schedule = #s} : !qo, !kv, !kv, !qo
    // expected-error @below {{is not supported beside kvbuffer.attention: expected a function of one kvbuffer.attention, perhaps with a kvbuffer.cache_append before it, and a return}}
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {schedule = #s} : !qo, !kv, !kv, !qo
    return
  }
}

// -----

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
#s = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  // expected-error @below {{expected a function without results, as a kernel has none}}
  func.func @result(%q: !qo, %k: !kv, %v: !kv, %o: !qo) -> !qo {
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {schedule = #s} : !qo, !kv, !kv, !qo
    return %o : !qo
  }
}

// -----

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
#s = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  func.func @same(%q: !qo, %k: !kv, %o: !qo) {
    // expected-error @below {{has values that are a part of its keys, in tiles that both products read; expected split_keys = true}}
    kvbuffer.attention q(%q) k(%k) v(%k) out(%o) {schedule = #s} : !qo, !kv, !kv, !qo
    return
  }
}

// -----

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
#s = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  // expected-error @below {{argument 4 is not used by kvbuffer.attention}}
  func.func @unused(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %n: index) {
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {schedule = #s} : !qo, !kv, !kv, !qo
    return
  }
}

// -----

// A schedule that the op brings, for elements that no kernel takes.
!q = memref<?x?x2x64xf8E4M3FN>
!o = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 64>
#s = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  func.func @float8(%q: !q, %k: !kv, %v: !kv, %o: !o) {
    // expected-error @below {{has elements of f8E4M3FN, which sm_80 lacks; it has no 8-bit floats}}
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {schedule = #s} : !q, !kv, !kv, !o
    return
  }
}

// -----

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
#s = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  func.func @called(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {schedule = #s} : !qo, !kv, !kv, !qo
    return
  }
  func.func @caller(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
    // expected-error @below {{refers to @called, which becomes a kernel: expected no reference to it}}
    func.call @called(%q, %k, %v, %o) : (!qo, !kv, !kv, !qo) -> ()
    return
  }
}

// -----

// Problems where the pass does not look.
!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
#s = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8, 16]>
// expected-note @below {{the module is here}}
module attributes {kvbuffer.target = "sm_80"} {
  func.func @lowered(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {schedule = #s} : !qo, !kv, !kv, !qo
    return
  }
  func.func @branch(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %c: i1) {
    scf.if %c {
      // expected-error @below {{'kvbuffer.attention' op stands in a 'scf.if', where it is not lowered; expected a function of one kvbuffer.attention and a return, at the top of the module}}
      kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {schedule = #s} : !qo, !kv, !kv, !qo
    }
    return
  }
}

// -----

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
// expected-note @below {{the module is here}}
module attributes {kvbuffer.target = "sm_80"} {
  func.func @loop(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %n: index) {
    scf.for %i = %n to %n step %n {
      // expected-error @below {{'kvbuffer.attention' op stands in a 'scf.for', where it is not lowered}}
      kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    }
    return
  }
}

// -----

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
// expected-note @below {{the module is here}}
module attributes {kvbuffer.target = "sm_80"} {
  module @inner {
    func.func @nested(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
      // expected-error @below {{'kvbuffer.attention' op stands in a function of a nested 'builtin.module', where it is not lowered}}
      kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
      return
    }
  }
}

// -----

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
// expected-note @below {{the module is here}}
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @kernel(%q: !qo, %k: !kv, %v: !kv, %o: !qo) kernel {
      // expected-error @below {{'kvbuffer.attention' op stands in a 'gpu.func', where it is not lowered}}
      kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
      gpu.return
    }
  }
}

// -----

// What a kernel would have, on the function of a problem: the kernel gets its
// own, so it would be dropped.

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
#s = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  // expected-error @below {{has the attribute 'kvbuffer.schedule', which nothing reads on the function of a kvbuffer.attention; expected it on a kernel (gpu.func)}}
  func.func @schedule_of_function(%q: !qo, %k: !kv, %v: !kv, %o: !qo) attributes {kvbuffer.schedule = #s} {
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {schedule = #s} : !qo, !kv, !kv, !qo
    return
  }
}

// -----

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
#s = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  // expected-error @below {{argument 0 has the attribute 'kvbuffer.name', which nothing reads there: the kvbuffer.attention says what it is}}
  func.func @name_of_argument(%q: !qo {kvbuffer.name = "queries"}, %k: !kv, %v: !kv, %o: !qo) {
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {schedule = #s} : !qo, !kv, !kv, !qo
    return
  }
}

// -----

// `kvbuffer.index` is of a cache's tables and lengths.

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
#s = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  // expected-error @below {{argument 3 has the attribute 'kvbuffer.index', which nothing reads there: the kvbuffer.attention says what it is}}
  func.func @index_of_output(%q: !qo, %k: !kv {kvbuffer.index = i64}, %v: !kv {kvbuffer.index = i64}, %o: !qo {kvbuffer.index = i64}) {
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {schedule = #s} : !qo, !kv, !kv, !qo
    return
  }
}
