// Two problems, each a function of the artifact.
!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
module attributes {kvbuffer.target = "sm_80"} {
  // Each is a function of one problem.

  func.func @first(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    return
  }

  func.func @second(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    return
  }
}
