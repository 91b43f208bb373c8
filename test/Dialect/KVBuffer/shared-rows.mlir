// Several kernels share the launches of a ragged batch (`kvbuffer.shared_rows`): each
// leaves out the sequences that are the other's.
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_80 other-by-launch=true},kvbuf-lower-problems)" | FileCheck %s --check-prefix=MANY
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_80 schedule=split_keys=true},kvbuf-lower-problems)" | FileCheck %s --check-prefix=FEW
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_80" | FileCheck %s --check-prefix=ALONE

!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
!q = memref<?x8x64xbf16>

// Whoever has another kernel for few rows leaves it the sequences that this one is
// for: those without a tile here.
// MANY-LABEL: gpu.func @chosen
// MANY-SAME:    kvbuffer.shared_rows = array<i64: 8, -1, 8>
// MANY:         kvbuffer.find_tile {{.*}} by 128 {over = 8 : i64} : memref<?xi32>
// MANY:         %[[ROWS:.*]] = arith.subi
// MANY:         %[[ROW:.*]], %{{.*}} = kvbuffer.item_rows
// MANY:         %[[LONG:.*]] = arith.cmpi sgt, %[[ROWS]], %c8
// MANY:         %[[OWN:.*]] = arith.select %[[LONG]], %[[ROWS]], %c0
// MANY:         %[[ACTIVE:.*]] = arith.cmpi slt, %[[ROW]], %[[OWN]]
// MANY:         scf.if %[[ACTIVE]]
// ALONE-LABEL: func.func @chosen
// ALONE-NOT:   shared_rows
func.func @chosen(%q: !q, %k: !kv, %v: !kv, %o: !q, %offsets: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) : !q, !kv, !kv, !q, offsets memref<?xi32>
  return
}

// The kernel of few rows takes all where the launch says that none has more, and has
// no more tiles of rows than the others need.
// FEW-LABEL: gpu.func @given
// FEW-SAME:    kvbuffer.resident_blocks = 4 : i64
// FEW-SAME:    kvbuffer.shared_rows = array<i64: 2, 4, 8>
// FEW:         kvbuffer.launch_value max(1, ceildiv(min(seq_q, 4), 8))
// FEW:         kvbuffer.share_work
// FEW:         %[[ROWS:.*]] = arith.subi
// FEW:         %[[MOST:.*]] = kvbuffer.launch_value sum(4, product(1073741824, max(0, min(1, sum(9, product(-1, seq_q))))))
// FEW:         %[[SHORT:.*]] = arith.cmpi sle, %[[ROWS]], %[[MOST]]
// FEW:         %[[OVER:.*]] = kvbuffer.launch_value product(2, max(0, min(1, sum(seq_q, -8))))
// FEW:         %[[LONG:.*]] = arith.cmpi sgt, %[[ROWS]], %[[OVER]]
// FEW:         %[[BETWEEN:.*]] = arith.andi %[[SHORT]], %[[LONG]]
// FEW:         %[[OWN:.*]] = arith.select %[[BETWEEN]], %[[ROWS]], %{{.*}}
// FEW:         kvbuffer.cache.num_keys {{.*}} new(%[[OWN]])
// Beside other kernels no sequence has rows that the launch does not say.
// FEW:         %[[REST:.*]] = kvbuffer.launch_value product(batch, max(0, min(1, sum(9, product(-1, seq_q)))))
// FEW:         scf.for %{{.*}} = %{{.*}} to %[[REST]] step
// ALONE-LABEL: func.func @given
func.func @given(%q: !q, %k: !kv, %v: !kv, %o: !q, %offsets: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) {kvbuffer.shared_rows = array<i64: 2, 4, 8>} : !q, !kv, !kv, !q, offsets memref<?xi32>
  return
}
