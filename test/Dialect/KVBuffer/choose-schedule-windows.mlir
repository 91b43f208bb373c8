// Windows with two ends have tiles of fewer keys, and three groups of 64 rows up to 128 columns;
// not where functions hide keys besides, or an end is open, nor, beyond 64 columns, over pages of
// fewer than 8 rows.

// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s

// CHECK-DAG: #[[NARROW:.*]] = #kvbuffer.schedule<BM = 192, BN = 64, BK = 64, stages = 2, warps = 12, mma_shape = [64, 8, 16], teams = moving<producers = 4, producer_registers = 56, consumer_registers = 152, ping_pong = true, stage_output = true>,
// CHECK-DAG: #[[WIDE:.*]] = #kvbuffer.schedule<BM = 192, BN = 80, BK = 64, stages = 2, warps = 12, mma_shape = [64, 8, 16], teams = moving<producers = 4, producer_registers = 56, consumer_registers = 152, ping_pong = true, stage_output = true>,
// CHECK-DAG: #[[WIDE64:.*]] = #kvbuffer.schedule<BM = 192, BN = 96, BK = 64, stages = 2, warps = 12, mma_shape = [64, 8, 16], teams = moving<producers = 4, producer_registers = 56, consumer_registers = 152, ping_pong = true, stage_output = true>,
// CHECK-DAG: #[[TWO:.*]] = #kvbuffer.schedule<BM = 128, BN = 128, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], q_in_regs = true,

!qo = memref<?x?x2x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
// CHECK: func.func @narrow
// CHECK: schedule = #[[NARROW]]}
func.func @narrow(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true, left = 1000>} : !qo, !kv, !kv, !qo
  return
}

// Both ends count.
// CHECK: func.func @wide
// CHECK: schedule = #[[WIDE]]}
func.func @wide(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<left = 1000, right = 600>} : !qo, !kv, !kv, !qo
  return
}

// CHECK: func.func @region
// CHECK: schedule = #[[NARROW]]}
func.func @region(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %c100 = arith.constant 100 : index
      %distance = arith.subi %at, %key : index
      %t = arith.cmpi slt, %distance, %c100 : index
      kvbuffer.yield %t : i1
    }
  return
}

!paged = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 64>
// Tiles of 80 keys would straddle pages.
// CHECK: func.func @paged
// CHECK: schedule = #[[NARROW]]}
func.func @paged(%q: !qo, %k: !paged, %v: !paged, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true, left = 4000>} : !qo, !paged, !paged, !qo
  return
}

!qo64 = memref<?x?x2x64xbf16>
!kv64 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
// CHECK: func.func @d64
// CHECK: schedule = #[[NARROW]]}
func.func @d64(%q: !qo64, %k: !kv64, %v: !kv64, %o: !qo64) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true, left = 127>} : !qo64, !kv64, !kv64, !qo64
  return
}

!small64 = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 1>
// CHECK: func.func @wide64
// CHECK: schedule = #[[WIDE64]]}
func.func @wide64(%q: !qo64, %k: !small64, %v: !small64, %o: !qo64) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true, left = 4000>} : !qo64, !small64, !small64, !qo64
  return
}

// CHECK: func.func @open
// CHECK: schedule = #[[TWO]]}
func.func @open(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<left = 1000>} : !qo, !kv, !kv, !qo
  return
}

!small = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 1>
// CHECK: func.func @small
// CHECK: schedule = #[[TWO]]}
func.func @small(%q: !qo, %k: !small, %v: !small, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true, left = 1000>} : !qo, !small, !small, !qo
  return
}

// CHECK: func.func @besides
// CHECK: schedule = #[[TWO]]}
func.func @besides(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %ids: memref<?x?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true, left = 1000>} : !qo, !kv, !kv, !qo
    captures(%ids : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %ids_: memref<?x?xi32>):
      %c0 = arith.constant 0 : index
      %place = arith.maxsi %at, %c0 : index
      %own = memref.load %ids_[%batch, %place] : memref<?x?xi32>
      %other = memref.load %ids_[%batch, %key] : memref<?x?xi32>
      %t = arith.cmpi eq, %own, %other : i32
      kvbuffer.yield %t : i1
    }
  return
}
