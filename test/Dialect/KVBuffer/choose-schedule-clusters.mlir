// Problems whose blocks cannot load for each other keep single blocks, with a
// warning; a schedule that insists is an error.

// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=cluster=2" | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=cluster=2" --remark-format=emitRemark --remarks-filter=kvbuf-choose-schedule 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=cluster=2" 2>&1 >/dev/null | FileCheck %s --check-prefix=WARNING --implicit-check-not="no clusters"
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s --check-prefix=DEFAULT
// DEFAULT-NOT: cluster =

// CHECK-DAG: #[[PAIR:.*]] = #kvbuffer.schedule<{{.*}}tiles = dynamic{{.*}}cluster = 2>
// CHECK-DAG: #[[WINDOW:.*]] = #kvbuffer.schedule<BM = 192, {{.*}}stage_output = true>, work = several_tiles<tiles = dynamic>,
// CHECK-DAG: #[[ALONE:.*]] = #kvbuffer.schedule<BM = 128, {{.*}}stage_output = true>, work = several_tiles<tiles = dynamic>,

!qo = memref<?x?x2x128xbf16>
!dense = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
// CHECK: func.func @dense
// CHECK: schedule = #[[PAIR]]
func.func @dense(%q: !qo, %k: !dense, %v: !dense, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !dense, !dense, !qo
  return
}

!paged = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 12>
// REMARK: choose-schedule-clusters.mlir:[[#@LINE+5]]:3: remark: [Missed] cluster{{.*}}no clusters: {{.*}}threads copy tiles over pages of numbers of rows that do not divide
// WARNING: choose-schedule-clusters.mlir:[[#@LINE+4]]:3: warning: no clusters: threads copy tiles over pages of numbers of rows that do not divide
// CHECK: func.func @paged
// CHECK: schedule = #[[ALONE]]
func.func @paged(%q: !qo, %k: !paged, %v: !paged, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !paged, !paged, !qo
  return
}

!ragged = !kvbuffer.cache<ragged, bf16, heads = 2, head_size = 128>
// WARNING: choose-schedule-clusters.mlir:[[#@LINE+3]]:3: warning: no clusters: only tiles of dense caches and of pages are boxes of their tensors
// CHECK: func.func @ragged
func.func @ragged(%q: !qo, %k: !ragged, %v: !ragged, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !ragged, !ragged, !qo
  return
}

// Pages of two rows are boxes.
!boxes = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 2>
// CHECK: func.func @boxes
// CHECK: schedule = #[[PAIRS:.*]]}
func.func @boxes(%q: !qo, %k: !boxes, %v: !boxes, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !boxes, !boxes, !qo
  return
}

// Pages of one row each block copies, at the same time as the other one, and takes turns, too.
!rows = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 1>
// CHECK: func.func @rows
// CHECK: schedule = #[[PAIRS]]}
func.func @rows(%q: !qo, %k: !rows, %v: !rows, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !rows, !rows, !qo
  return
}

// REMARK: choose-schedule-clusters.mlir:[[#@LINE+5]]:3: remark: [Missed] cluster{{.*}}no clusters: {{.*}}a window on the left cuts tiles, which threads then copy
// WARNING: choose-schedule-clusters.mlir:[[#@LINE+4]]:3: warning: no clusters: a window on the left cuts tiles
// CHECK: func.func @window
// CHECK: schedule = #[[WINDOW]]}
func.func @window(%q: !qo, %k: !dense, %v: !dense, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true, left = 100>} : !qo, !dense, !dense, !qo
  return
}
