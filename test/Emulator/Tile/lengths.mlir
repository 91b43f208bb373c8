// Lengths that no cache can have count as the nearest that it can; lengths that
// count the new tokens, which may be fewer than those; pages of any number of
// tokens; wide tables, lengths and offsets.

// DEFINE: %{sizes} =
// DEFINE: %{kind} =
// DEFINE: %{attrs} =
// DEFINE: %{index} = i32
// DEFINE: %{run} = sed -e 's/KIND/%{kind}/' -e 's/ATTRS/%{attrs}/' -e 's/INDEX/%{index}/g' %s | kvbuf-opt --kvbuf-to-scheduled | kvbuf-tile-run %{sizes} | FileCheck %s
// REDEFINE: %{kind} = paged, bf16, heads = 1, head_size = 64, page_size = 64
// REDEFINE: %{sizes} = --size seq_q=70 --cache-lengths=58,0,20,58 --wild-lengths --size pages_per_seq=2
// RUN: %{run}
// REDEFINE: %{index} = i64
// REDEFINE: %{kind} = paged, bf16, heads = 1, head_size = 64, page_size = 16
// REDEFINE: %{sizes} = --size seq_q=70 --cache-lengths=58,0,20,58 --wild-lengths --size pages_per_seq=8
// RUN: %{run}
// REDEFINE: %{kind} = continuous, bf16, heads = 1, head_size = 64
// REDEFINE: %{sizes} = --size seq_q=70 --cache-lengths=58,0,20,58 --wild-lengths --size max_seq=128
// RUN: %{run}
// REDEFINE: %{index} = i32
// REDEFINE: %{kind} = paged, bf16, heads = 1, head_size = 64, page_size = 3
// REDEFINE: %{sizes} = --size seq_q=70 --cache-lengths=58,0,21,140
// RUN: %{run}
// REDEFINE: %{index} = i64
// REDEFINE: %{kind} = paged, bf16, heads = 1, head_size = 64, page_size = 176
// REDEFINE: %{sizes} = --size seq_q=70 --cache-lengths=200,0,106,400
// RUN: %{run}
// REDEFINE: %{attrs} = , kvbuffer.lengths = "all"
// REDEFINE: %{sizes} = --size seq_q=70 --lengths-k=0,1,69,70,71,300
// RUN: %{run}
// REDEFINE: %{kind} = continuous, bf16, heads = 1, head_size = 64
// REDEFINE: %{sizes} = --size seq_q=70 --lengths-k=0,1,69,70,128 --size max_seq=128 --wild-lengths
// RUN: %{run}

// CHECK: {{^}}PASS
!q = memref<?x?x2x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<KIND>
func.func @wild(%q: !q, %k: !kv {kvbuffer.index = INDEX}, %v: !kv {kvbuffer.index = INDEX}, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>ATTRS}
    : !q, !kv, !kv, !q
  return
}
