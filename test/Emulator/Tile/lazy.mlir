// A softmax that is rescaled lazily, one row a block, with scores of which few
// keys of a row have nearly all the weight: O needs the roundings of the largest
// weights, which are not 1, and the log-sum-exp must not have them.

// DEFINE: %{sizes} = --size batch=50 --size seq_q=1 --size seq_k=1000
// DEFINE: %{pipeline} = kvbuf-opt %s --kvbuf-to-scheduled="schedule=lazy_rescale=true"
// RUN: %{pipeline} | kvbuf-tile-run - %{sizes} | FileCheck %s
// CHECK: {{^}}PASS

// Without them.
// RUN: %{pipeline} | sed -e 's/ excess(%[^)]*)//' | not kvbuf-tile-run - %{sizes} 2>&1 | FileCheck %s --check-prefix=OUTPUT
// OUTPUT: the mean error {{.*}} exceeds its limit

// With them in the sum.
// RUN: %{pipeline} | sed -e 's/\(softmax_tail %[a-zA-Z_0-9]*, %[a-zA-Z_0-9]*\) :/\1 excess(%excess) :/' | not kvbuf-tile-run - %{sizes} 2>&1 | FileCheck %s --check-prefix=LSE
// LSE: the log-sum-exp's error {{.*}} exceeds its limit

!qo = memref<?x?x1x64xf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, f16, heads = 1, head_size = 64>
func.func @few_keys(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %lse: memref<?x1x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) {scale = 0.6 : f32}
    : !qo, !kv, !kv, !qo, lse memref<?x1x?xf32>
  return
}
