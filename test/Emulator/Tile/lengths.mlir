// Lengths that no cache can have count as the nearest that it can.

// DEFINE: %{sizes} =
// DEFINE: %{kind} =
// DEFINE: %{run} = sed 's/KIND/%{kind}/' %s | kvbuf-opt --kvbuf-to-scheduled | kvbuf-tile-run --size seq_q=70 --cache-lengths=58,0,20,58 --wild-lengths %{sizes} | FileCheck %s
// REDEFINE: %{kind} = paged, bf16, heads = 1, head_size = 64, page_size = 64
// REDEFINE: %{sizes} = --size pages_per_seq=2
// RUN: %{run}
// REDEFINE: %{kind} = paged, bf16, heads = 1, head_size = 64, page_size = 16
// REDEFINE: %{sizes} = --size pages_per_seq=8
// RUN: %{run}
// REDEFINE: %{kind} = continuous, bf16, heads = 1, head_size = 64
// REDEFINE: %{sizes} = --size max_seq=128
// RUN: %{run}

// CHECK: keys=70..128
// CHECK: {{^}}PASS
!q = memref<?x?x2x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<KIND>
func.func @wild(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>}
    : !q, !kv, !kv, !q
  return
}
