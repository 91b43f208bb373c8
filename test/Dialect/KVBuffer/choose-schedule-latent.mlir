// Where teams have latent attention, no part of the next tile's scores is on its way beside
// the softmax unless a schedule says so, whoever has the heads of a row.

// DEFINE: %{schedule} =
// DEFINE: %{run} = kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=%{schedule}"

// RUN: %{run} | FileCheck %s --implicit-check-not='ahead = scores'
// CHECK-DAG: #[[BEHIND:.*]] = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 3, warps = 4, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4, producer_registers = 24, consumer_registers = 160>, work = split_keys<equal_shares = true>>
// CHECK-DAG: #[[PAIRS:.*]] = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 3, warps = 4, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4, producer_registers = 24, consumer_registers = 160>, work = split_keys<cluster = 2, equal_shares = true>>

// Who asks gets it, or does not.
// REDEFINE: %{schedule} = overlap=true
// RUN: %{run} | FileCheck %s --check-prefix=ASKED --implicit-check-not='equal_shares = true>>'
// ASKED: ahead = scores
// REDEFINE: %{schedule} = overlap=false
// RUN: %{run} | FileCheck %s --check-prefix=REFUSED --implicit-check-not='ahead = scores'
// REFUSED: work = split_keys

// What does not go with split keys is refused for that, not beside what a chip chose.
// REDEFINE: %{schedule} = overlap_products=true
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=PRODUCTS
// PRODUCTS: error: 'kvbuffer.attention' op split_keys = true goes with none of overlap (without producers), overlap_products,
// REDEFINE: %{schedule} = split_keys=false,equal_shares=false
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=WHOLE --implicit-check-not=overlap
// WHOLE: error: 'kvbuffer.attention' op has values that are a part of its keys, in tiles that both products read; expected split_keys = true
// Alike warps of split keys have no such scores.
// REDEFINE: %{schedule} = producers=0,overlap=true
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=ALIKE
// ALIKE: error: 'kvbuffer.attention' op split_keys = true goes with none of overlap (without producers),

!q = memref<?x1x64x576xbf16>
!o = memref<?x1x64x512xbf16>
!rows = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 64>
// CHECK: func.func @one
// CHECK: schedule = #[[PAIRS]]
func.func @one(%q: !q, %rows: !rows, %o: !o) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : !q, !rows, !rows, !o
  return
}

// Two blocks read the same rows: one out of L2, while both are there.
// CHECK: func.func @parts
// CHECK: schedule = #[[BEHIND]]
func.func @parts(%q: memref<?x1x128x576xbf16>, %rows: !rows, %o: memref<?x1x128x512xbf16>) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : memref<?x1x128x576xbf16>, !rows, !rows, memref<?x1x128x512xbf16>
  return
}

// So do those of several query rows.
// CHECK: func.func @queries
// CHECK: schedule = #[[BEHIND]]
func.func @queries(%q: memref<?x2x64x576xbf16>, %rows: !rows, %o: memref<?x2x64x512xbf16>) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : memref<?x2x64x576xbf16>, !rows, !rows, memref<?x2x64x512xbf16>
  return
}

!tokens = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 1>
// CHECK: func.func @tokens
// CHECK: schedule = #[[BEHIND]]
func.func @tokens(%q: !q, %rows: !tokens, %o: !o) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : !q, !tokens, !tokens, !o
  return
}

// Of values of 256 columns all queries are in registers, which they are not with scores
// ahead.
!narrow = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 320, page_size = 64>
// CHECK: func.func @narrow
// CHECK: schedule = #[[PAIRS]]
func.func @narrow(%q: memref<?x1x64x320xbf16>, %rows: !narrow, %o: memref<?x1x64x256xbf16>) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : memref<?x1x64x320xbf16>, !narrow, !narrow, memref<?x1x64x256xbf16>
  return
}
