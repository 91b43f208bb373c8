// Of packed rows who moves widens elements, and has more registers for it, which the team
// of the scores leaves: it has none for scores that run ahead. Two slots a half leave room
// for bytes ahead of them.

// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=overlap=true" 2>&1 | FileCheck %s --check-prefix=ASKED
// CHECK: #[[PACKED:.*]] = #kvbuffer.schedule<BM = 64, {{.*}}stages = 2, {{.*}}q_in_regs = true, teams = moving<producers = 4, producer_registers = 48,
// CHECK: #[[CLUSTER:.*]] = #kvbuffer.schedule<{{.*}}producer_registers = 48, {{.*}}work = split_keys<cluster = 2
// CHECK: #[[LISTED:.*]] = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, {{.*}}q_in_regs = true, {{.*}}work = split_keys<cluster = 2>
// ASKED: error: 'kvbuffer.attention' op a lane of the team of the scores needs 160 registers, the schedule gives it 144

!q = memref<?x1x64x576xbf16>
!o = memref<?x1x64x512xbf16>
!packed = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 64, row = <bytes = 656, parts = [<count = 512, element = f8E4M3FN, at = 0, scale = f32, granularity = 128, scale_at = 512>, <count = 64, element = bf16, at = 528>]>>
// CHECK: func.func @packed
// CHECK: schedule = #[[PACKED]]
func.func @packed(%q: !q, %rows: !packed, %o: !o) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : !q, !packed, !packed, !o
  return
}

// Blocks of two parts of the heads widen rows for each other; nobody has looked at whether
// a row keeps its bits then.
// CHECK: func.func @parts
// CHECK: schedule = #[[CLUSTER]]
// CHECK: func.func @invariant
// CHECK-NOT: schedule = #[[CLUSTER]]
!two = memref<?x1x128x576xbf16>
!out = memref<?x1x128x512xbf16>
func.func @parts(%q: !two, %rows: !packed, %o: !out) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : !two, !packed, !packed, !out
  return
}
func.func @invariant(%q: !two, %rows: !packed, %o: !out) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) {batch_invariant} : !two, !packed, !packed, !out
  return
}

// Rows of other parts have teams, too: powers of two of 32 elements, tails, slots of two
// parts, and elements without scales.
// CHECK: func.func @powers
// CHECK: schedule = #[[PACKED]]
!all = memref<?x1x64x512xbf16>
!powers = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 512, page_size = 64, row = <bytes = 528, parts = [<count = 512, element = f8E4M3FN, at = 0, scale = f8E8M0FNU, granularity = 32, scale_at = 512>]>>
func.func @powers(%q: !all, %rows: !powers, %o: !all) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : !all, !powers, !powers, !all
  return
}
// CHECK: func.func @tails
// CHECK: schedule = #[[PACKED]]
!tails = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 512, page_size = 64, row = <bytes = 576, parts = [<count = 448, element = f8E4M3FN, at = 0, scale = f8E8M0FNU, granularity = 64, scale_at = 576>, <count = 64, element = bf16, at = 448>], tail = 8, rows = 64, stride = 37440>>
func.func @tails(%q: !all, %rows: !tails, %o: !all) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : !all, !tails, !tails, !all
  return
}
// CHECK: func.func @plain
// CHECK: schedule = #[[PACKED]]
!plain = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 64, row = <bytes = 576, parts = [<count = 576, element = f8E4M3FN, at = 0>]>>
func.func @plain(%q: !q, %rows: !plain, %o: !o) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : !q, !plain, !plain, !o
  return
}

// All tails of a page together are of any number of bytes, here 28.
// CHECK: func.func @few_tails
!narrow = memref<?x1x4x192xbf16>
!values = memref<?x1x4x128xbf16>
!few = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 192, page_size = 7, row = <bytes = 192, parts = [<count = 192, element = f8E4M3FN, at = 0, scale = f32, granularity = 192, scale_at = 192>], tail = 4, rows = 7, stride = 1536>>
func.func @few_tails(%q: !narrow, %rows: !few, %o: !values) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : !narrow, !few, !few, !values
  return
}

// A list that names the rows, of which the scores' team reads a number for each key, leaves
// tiles as they are: these teams have 64 keys. Lanes vote about them, so that queries stay in
// registers; and as lists are as long as each other, there are no equal shares.
// CHECK: func.func @listed
// CHECK: schedule = #[[LISTED]]
!singles = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 1, row = <bytes = 656, parts = [<count = 512, element = f8E4M3FN, at = 0, scale = f32, granularity = 128, scale_at = 512>, <count = 64, element = bf16, at = 528>]>>
func.func @listed(%q: !two, %rows: !singles, %o: !out, %list: memref<?x?xi32> {kvbuffer.name = "list", kvbuffer.shape = ["batch", "most"]}) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : !two, !singles, !singles, !out
    captures(%list : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %names: memref<?x?xi32>):
      %named = memref.load %names[%batch, %key] : memref<?x?xi32>
      %c9 = arith.constant 9 : i32
      %exists = arith.cmpi ult, %named, %c9 : i32
      kvbuffer.yield %exists : i1
    }
  return
}
