// Schedules with roles, by head size, page size and queries; and what keeps the
// portable schedule, with the reason.

// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a --remark-format=emitRemark --remarks-filter=kvbuf-choose-schedule 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// A chip without such products, and whoever asks for no producers.
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90 | FileCheck %s --check-prefix=NONE
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=producers=0" | FileCheck %s --check-prefix=NONE
// RUN: kvbuf-compile %src/examples/prefill.mlir --target=sm_90a --schedule='BM=64 , producers = 0' --emit=tile | FileCheck %s --check-prefix=NONE
// NONE-NOT: producers

// CHECK-DAG: #[[D64:.*]] = #kvbuffer.schedule<BM = 192, BN = 128, BK = 64, stages = 2, warps = 12, mma_shape = [64, 8, 16], teams = moving<producers = 4, producer_registers = 32, consumer_registers = 160, ping_pong = true, stage_output = true>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// CHECK-DAG: #[[D96:.*]] = #kvbuffer.schedule<BM = 128, BN = 128, BK = 32, stages = 2, warps = 8, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4, producer_registers = 40, consumer_registers = 232, ping_pong = true, stage_output = true>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// CHECK-DAG: #[[D128:.*]] = #kvbuffer.schedule<BM = 128, BN = 128, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4, producer_registers = 40, consumer_registers = 232, ping_pong = true, stage_output = true>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// CHECK-DAG: #[[FEW:.*]] = #kvbuffer.schedule<BM = 64, BN = 128, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4,
// CHECK-DAG: #[[BIAS:.*]] = #kvbuffer.schedule<BM = 128, BN = 48, BK = 64, stages = 1, warps = 8, mma_shape = [64, 8, 16], teams = moving<producers = 4, producer_registers = 40, consumer_registers = 232>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// CHECK-DAG: #[[PAGED:.*]] = #kvbuffer.schedule<BM = 128, BN = 80, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], teams = moving<producers = 4, producer_registers = 56,
// CHECK-DAG: #[[D320:.*]] = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 1, warps = 8, mma_shape = [64, 8, 16], teams = moving<producers = 4, producer_registers = 40, consumer_registers = 232>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// CHECK-DAG: #[[D256:.*]] = #kvbuffer.schedule<BM = 128, BN = 80, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], teams = moving<producers = 4, producer_registers = 24, consumer_registers = 240>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// CHECK-DAG: #[[PAGE128:.*]] = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], teams = moving<producers = 4, producer_registers = 56, consumer_registers = 224>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// CHECK-DAG: #[[SIX:.*]] = #kvbuffer.schedule<BM = 128, BN = 144, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], teams = moving<producers = 4, producer_registers = 56, consumer_registers = 224, stage_output = true>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// CHECK-DAG: #[[SEVEN:.*]] = #kvbuffer.schedule<BM = 128, BN = 160, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], teams = moving<producers = 4, producer_registers = 56, consumer_registers = 224, stage_output = true>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// CHECK-DAG: #[[FOUR:.*]] = #kvbuffer.schedule<BM = 128, BN = 128, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4, producer_registers = 56, consumer_registers = 224, ping_pong = true, stage_output = true>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// CHECK-DAG: #[[FEW6:.*]] = #kvbuffer.schedule<BM = 64, BN = 128, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4, producer_registers = 56, consumer_registers = 224, stage_output = true>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// CHECK-DAG: #[[CAPPED:.*]] = #kvbuffer.schedule<BM = 128, BN = 128, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4, producer_registers = 56, consumer_registers = 224, stage_output = true>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// CHECK-DAG: #[[BLOCKS:.*]] = #kvbuffer.schedule<BM = 128, BN = 128, BK = 32, stages = 2, warps = 8, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4, producer_registers = 56, consumer_registers = 224, ping_pong = true, stage_output = true>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// Quantized caches have one team more.
// CHECK-DAG: #[[WIDENED:.*]] = #kvbuffer.schedule<BM = 128, BN = 128, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4, producer_registers = 32, consumer_registers = 224, wideners = 4, widener_registers = 32, ping_pong = true, stage_output = true>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// Scales of tokens keep the products apart: nobody takes turns.
// CHECK-DAG: #[[WIDENEDTOKENS:.*]] = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4, producer_registers = 32, consumer_registers = 224, wideners = 4, widener_registers = 32, stage_output = true>, work = several_tiles<tiles = dynamic>>
// Over pages two warps are enough for it, and a group together with those that look up pages.
// CHECK-DAG: #[[WIDENED128:.*]] = #kvbuffer.schedule<BM = 128, BN = 128, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 2, producer_registers = 56, consumer_registers = 224, wideners = 2, widener_registers = 56, ping_pong = true, stage_output = true>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// CHECK-DAG: #[[D24:.*]] = #kvbuffer.schedule<BM = 128, BN = 64, BK = 16, stages = 2, warps = 4, mma_shape = [16, 8, 16]>

!q64 = memref<?x?x2x64xbf16>
!k64 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
// CHECK: func.func @d64
// CHECK: schedule = #[[D64]]
func.func @d64(%q: !q64, %k: !k64, %v: !k64, %o: !q64) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q64, !k64, !k64, !q64
  return
}

!q96 = memref<?x?x2x96xbf16>
!k96 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 96>
// CHECK: func.func @d96
// CHECK: schedule = #[[D96]]
func.func @d96(%q: !q96, %k: !k96, %v: !k96, %o: !q96) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q96, !k96, !k96, !q96
  return
}

!q128 = memref<?x?x2x128xbf16>
!k128 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
// CHECK: func.func @d128
// CHECK: schedule = #[[D128]]
func.func @d128(%q: !q128, %k: !k128, %v: !k128, %o: !q128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q128, !k128, !k128, !q128
  return
}

// No more queries than one group has rows.
!few = memref<?x64x2x128xbf16>
// CHECK: func.func @few
// CHECK: schedule = #[[FEW]]
func.func @few(%q: !few, %k: !k128, %v: !k128, %o: !few) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !few, !k128, !k128, !few
  return
}

!q256 = memref<?x?x2x256xbf16>
!k256 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 256>
// CHECK: func.func @d256
// CHECK: schedule = #[[D256]]
func.func @d256(%q: !q256, %k: !k256, %v: !k256, %o: !q256) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q256, !k256, !k256, !q256
  return
}

// Tiles of 80 keys would straddle pages of 128; who looks up pages needs registers.
!page128 = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 256, page_size = 128>
// CHECK: func.func @page128
// CHECK: schedule = #[[PAGE128]]
func.func @page128(%q: !q256, %k: !page128, %v: !page128, %o: !q256) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q256, !page128, !page128, !q256
  return
}

// The fewest boxes a key: pages of 6 rows have 24 boxes in 144 keys, and those of 7 22
// in 160, beside which lie 6 rows. Q makes room for the scores.
!page6 = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 6>
// CHECK: func.func @page6
// CHECK: schedule = #[[SIX]]
func.func @page6(%q: !q128, %k: !page6, %v: !page6, %o: !q128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q128, !page6, !page6, !q128
  return
}

!page7 = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 7>
// CHECK: func.func @page7
// CHECK: schedule = #[[SEVEN]]
func.func @page7(%q: !q128, %k: !page7, %v: !page7, %o: !q128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q128, !page7, !page7, !q128
  return
}

// Pages that divide a tile, pages that lanes copy and keys that a soft cap
// leaves no registers for keep 128 keys; so do rows of more blocks of columns, and few
// queries.
!page4 = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 4>
// CHECK: func.func @page4
// CHECK: schedule = #[[FOUR]]
func.func @page4(%q: !q128, %k: !page4, %v: !page4, %o: !q128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q128, !page4, !page4, !q128
  return
}

!page9 = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 9>
// CHECK: func.func @page9
// CHECK: schedule = #[[FOUR]]
func.func @page9(%q: !q128, %k: !page9, %v: !page9, %o: !q128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q128, !page9, !page9, !q128
  return
}

// CHECK: func.func @capped
// CHECK: schedule = #[[CAPPED]]
func.func @capped(%q: !q128, %k: !page6, %v: !page6, %o: !q128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {softcap = 30.0 : f32} : !q128, !page6, !page6, !q128
  return
}

!page96 = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 96, page_size = 6>
// CHECK: func.func @blocks
// CHECK: schedule = #[[BLOCKS]]
func.func @blocks(%q: !q96, %k: !page96, %v: !page96, %o: !q96) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q96, !page96, !page96, !q96
  return
}

// CHECK: func.func @few6
// CHECK: schedule = #[[FEW6]]
func.func @few6(%q: !few, %k: !page6, %v: !page6, %o: !few) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !few, !page6, !page6, !few
  return
}

!q24 = memref<?x?x2x24xbf16>
!k24 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 24>
// REMARK: choose-schedule-roles.mlir:[[#@LINE+4]]:3: remark: [Missed] roles{{.*}}no warp roles: {{.*}}head size 24 is not a multiple of 16
// CHECK: func.func @d24
// CHECK: schedule = #[[D24]]
func.func @d24(%q: !q24, %k: !k24, %v: !k24, %o: !q24) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q24, !k24, !k24, !q24
  return
}

!kq = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 256>
// REMARK: choose-schedule-roles.mlir:[[#@LINE+3]]:3: remark: [Missed] roles{{.*}}no warp roles: {{.*}}head size 256 is more than 192, whose products take more registers than lanes of four groups start with
// CHECK: func.func @quantized
func.func @quantized(%q: !q256, %k: !kq, %v: !kq, %o: !q256) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q256, !kq, !kq, !q256
  return
}

!q8 = memref<?x?x2x128xbf16>
!k8 = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 128>
!k8p = !kvbuffer.cache<paged, f8E4M3FN, heads = 2, head_size = 128, page_size = 128>
// CHECK: func.func @widened
// CHECK: schedule = #[[WIDENED]]
func.func @widened(%q: !q8, %k: !k8, %v: !k8, %o: !q8) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q8, !k8, !k8, !q8
  return
}
!k8t = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 128, scale = f32, granularity = 128>
// CHECK: func.func @widened_tokens
// CHECK: schedule = #[[WIDENEDTOKENS]]
func.func @widened_tokens(%q: !q8, %k: !k8t, %v: !k8t, %o: !q8) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q8, !k8t, !k8t, !q8
  return
}
// CHECK: func.func @widened_pages
// CHECK: schedule = #[[WIDENED128]]
func.func @widened_pages(%q: !q8, %k: !k8p, %v: !k8p, %o: !q8) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q8, !k8p, !k8p, !q8
  return
}

// Parts of wide heads are whole blocks: of two parts of 320 columns, of 32.
!q320 = memref<?x?x2x320xbf16>
!k320 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 320>
// CHECK: func.func @d320
// CHECK: schedule = #[[D320]]
func.func @d320(%q: !q320, %k: !k320, %v: !k320, %o: !q320) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q320, !k320, !k320, !q320
  return
}

!q272 = memref<?x?x2x272xbf16>
!k272 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 272>
// REMARK: choose-schedule-roles.mlir:[[#@LINE+3]]:3: remark: [Missed] roles{{.*}}no warp roles: {{.*}}head size 272 is not a multiple of 32, 2 parts of whole blocks
// CHECK: func.func @d272
func.func @d272(%q: !q272, %k: !k272, %v: !k272, %o: !q272) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q272, !k272, !k272, !q272
  return
}

!q528 = memref<?x?x2x528xbf16>
!k528 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 528>
!v64 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!o64 = memref<?x?x2x64xbf16>
// REMARK: choose-schedule-roles.mlir:[[#@LINE+3]]:3: remark: [Missed] roles{{.*}}no warp roles: {{.*}}head size 528 is more than 512, whose rows of Q and K fill shared memory
// CHECK: func.func @d528
func.func @d528(%q: !q528, %k: !k528, %v: !v64, %o: !o64) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q528, !k528, !v64, !o64
  return
}

// Where accumulators of 256 columns and numbers of f32 beside each score leave lanes too few
// registers for a tile of 64 keys (236 of 232), it has fewer.
!qb = memref<?x?x2x320xbf16>
!ob = memref<?x?x2x256xbf16>
!kb = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 320>
!vb = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 256>
// CHECK: func.func @bias
// CHECK: schedule = #[[BIAS]]
func.func @bias(%q: !qb, %k: !kb, %v: !vb, %o: !ob, %bias: memref<?x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qb, !kb, !vb, !ob
    captures(%bias : memref<?x?xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %b: memref<?x?xf32>):
      %x = memref.load %b[%row, %key] : memref<?x?xf32>
      %t = arith.mulf %s, %x : f32
      kvbuffer.yield %t : f32
    }
  return
}

// Tiles of pages have fewer pages then (228 of 224).
!q40 = memref<?x40x8x256xbf16>
!p40 = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 256, page_size = 16>
// CHECK: func.func @bias_pages
// CHECK: schedule = #[[PAGED]]
func.func @bias_pages(%q: !q40, %k: !p40, %v: !p40, %o: !q40, %bias: memref<?x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q40, !p40, !p40, !q40
    captures(%bias : memref<?x?xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %b: memref<?x?xf32>):
      %x = memref.load %b[%row, %key] : memref<?x?xf32>
      %t = arith.mulf %s, %x : f32
      kvbuffer.yield %t : f32
    }
  return
}
