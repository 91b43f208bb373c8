// Where dies have runs of items, tiles of query rows that read the same keys follow each
// other, along the first coordinate; where not, heads do, as whose number is fixed.
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=gfx950 schedule=split_keys=true" | FileCheck %s --check-prefix=DIES
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=gfx950 schedule=split_keys=true,xcds=1" | FileCheck %s --check-prefix=ONE

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!q = memref<?x40x8x64xbf16>

// DIES-LABEL: gpu.func @slices
// DIES:       %[[LINE:.*]], %[[SPLIT:.*]], %[[BATCH:.*]] = kvbuffer.work_item [<product(2, [[N:[0-9]+]])>, <max(1, min({{.*}}))>, <"batch">]
// DIES:       arith.remui %[[LINE]], %c[[N]]
// DIES:       arith.divui %[[LINE]], %c[[N]]

// ONE-LABEL:  gpu.func @slices
// ONE:        %[[LINE:.*]], %[[BOTH:.*]], %[[BATCH:.*]] = kvbuffer.work_item [<2>, <product({{.*}}, [[N:[0-9]+]])>, <"batch">]
// ONE:        arith.remui %[[BOTH]], %c[[N]]
// ONE:        arith.divui %[[BOTH]], %c[[N]]
func.func @slices(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !q, !kv, !kv, !q
  return
}
