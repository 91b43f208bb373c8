// Few query rows: keys are split over blocks, unless somebody asks for another
// schedule or it does not fit; remarks say so.
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s
// RUN: sed '/^func.func @wide/,$d' %s | kvbuf-opt --kvbuf-choose-schedule="chip=sm_80 schedule=stages=2" | FileCheck %s --check-prefix=ASKED --implicit-check-not=split_keys
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a --remark-format=emitRemark --remarks-filter=kvbuf-choose-schedule 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=gfx942 --remark-format=emitRemark --remarks-filter=kvbuf-choose-schedule 2>&1 >/dev/null | FileCheck %s --check-prefix=AMD

// ASKED: #kvbuffer.schedule<

!kv = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 128>
!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
!one = memref<?x1x32x128xbf16>
!eight = memref<?x8x32x128xbf16>
!nine = memref<?x9x32x128xbf16>
!any = memref<?x?x32x128xbf16>

// CHECK-DAG: #[[ONE:schedule[0-9]*]] = #kvbuffer.schedule<BM = 16, {{.*}}warps = 1, {{.*}}work = split_keys>
// CHECK-DAG: #[[LENGTHS:schedule[0-9]*]] = #kvbuffer.schedule<BM = 16, {{.*}}stages = 4, warps = 1, {{.*}}work = split_keys<equal_shares = true>, ahead = loads<look_ahead = true>>
// CHECK-DAG: #[[TOKENS:schedule[0-9]*]] = #kvbuffer.schedule<BM = 16, {{.*}}stages = 3, warps = 1, {{.*}}work = split_keys<equal_shares = true>, ahead = loads<look_ahead = true>>
// CHECK-DAG: #[[HEADS:schedule[0-9]*]] = #kvbuffer.schedule<BM = 8, BN = 16, {{.*}}stages = 3, warps = 4, {{.*}}swap_a_b = true, work = split_keys<equal_shares = true>, ahead = loads<look_ahead = true>>
// CHECK-DAG: #[[NARROW:schedule[0-9]*]] = #kvbuffer.schedule<BM = 16, BN = 32, {{.*}}stages = 3, warps = 4, {{.*}}work = split_keys<equal_shares = true>, ahead = loads<look_ahead = true>>
// CHECK-DAG: #[[INVARIANT:schedule[0-9]*]] = #kvbuffer.schedule<BM = 16, {{.*}}work = split_keys<split_size = 1024>, ahead = loads<look_ahead = true>>
// CHECK-DAG: #[[ROWS:schedule[0-9]*]] = #kvbuffer.schedule<BM = 32, {{.*}}work = split_keys>
// CHECK-DAG: #[[SHARED:schedule[0-9]*]] = #kvbuffer.schedule<BM = 128, BN = 64, {{.*}}warps = 4, {{.*}}work = split_keys>
// CHECK-DAG: #[[MORE:schedule[0-9]*]] = #kvbuffer.schedule<BM = 64, {{.*}}, teams = moving<producers = 4
// CHECK-DAG: #[[ANY:schedule[0-9]*]] = #kvbuffer.schedule<BM = 128, BN = 128, {{.*}}, teams = moving<producers = 4
// CHECK-DAG: #[[WIDE:schedule[0-9]*]] = #kvbuffer.schedule<BM = 128, BN = 64, {{.*}}stages = 1, warps = 8, {{.*}}, teams = moving<producers = 4

// All caches are as long: each sequence has its own splits.
// CHECK-LABEL: @one
// CHECK: schedule = #[[ONE]]}
// REMARK: choose-schedule-few-rows.mlir:[[#@LINE+3]]:3: remark: [Passed] split_keys{{.*}}keys are split over blocks: the heads that share a head of the cache have {{.*}}4{{.*}} query rows
// AMD: choose-schedule-few-rows.mlir:[[#@LINE+2]]:3: remark: [Passed] split_keys
func.func @one(%q: !one, %k: !kv, %v: !kv, %o: !one) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !one, !kv, !kv, !one
  return
}

// Only the device knows lengths: blocks take equal shares of all of them. Four warps
// have heads side by side.
// CHECK-LABEL: @heads
// CHECK: schedule = #[[HEADS]]}
func.func @heads(%q: !one, %k: !paged, %v: !paged, %o: !one) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !one, !paged, !paged, !one
  return
}

// More rows than eight; heads so narrow that a tile has several pages.
!narrow = !kvbuffer.cache<paged, bf16, heads = 4, head_size = 64, page_size = 16>
!sixteen = memref<?x1x64x64xbf16>
// CHECK-LABEL: @narrow
// CHECK: schedule = #[[NARROW]]}
func.func @narrow(%q: !sixteen, %k: !narrow, %v: !narrow, %o: !sixteen) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !sixteen, !narrow, !narrow, !sixteen
  return
}

// Heads that four warps do not divide, and pages of a few tokens, have blocks of one.
!two = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 16>
!token = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 8>
// CHECK-LABEL: @two
// CHECK: schedule = #[[LENGTHS]]}
func.func @two(%q: memref<?x1x8x128xbf16>, %k: !two, %v: !two, %o: memref<?x1x8x128xbf16>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {}
    : memref<?x1x8x128xbf16>, !two, !two, memref<?x1x8x128xbf16>
  return
}
// CHECK-LABEL: @few_tokens
// CHECK: schedule = #[[TOKENS]]}
func.func @few_tokens(%q: !one, %k: !token, %v: !token, %o: !one) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !one, !token, !token, !one
  return
}

// Splits of a fixed size, which do not depend on the batch.
// CHECK-LABEL: @invariant
// CHECK: schedule = #[[INVARIANT]]}
func.func @invariant(%q: !one, %k: !paged, %v: !paged, %o: !one) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {batch_invariant} : !one, !paged, !paged, !one
  return
}

// CHECK-LABEL: @rows
// CHECK: schedule = #[[ROWS]]}
func.func @rows(%q: !eight, %k: !kv, %v: !kv, %o: !eight) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !eight, !kv, !kv, !eight
  return
}

// Eight tokens of sixteen heads that share a head of the cache are few, too, but more
// than a warp has room for: four warps share a tile.
// CHECK-LABEL: @tiles
// CHECK: schedule = #[[SHARED]]}
func.func @tiles(%q: memref<?x8x128x128xbf16>, %k: !kv, %v: !kv, %o: memref<?x8x128x128xbf16>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {}
    : memref<?x8x128x128xbf16>, !kv, !kv, memref<?x8x128x128xbf16>
  return
}

// More rows than 32, which tiles of a team have of all heads, and rows that the launch
// decides.
// CHECK-LABEL: @more
// CHECK: schedule = #[[MORE]]}
// CHECK-LABEL: @any
// CHECK: schedule = #[[ANY]]}
func.func @more(%q: !nine, %k: !kv, %v: !kv, %o: !nine) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !nine, !kv, !kv, !nine
  return
}
func.func @any(%q: !any, %k: !kv, %v: !kv, %o: !any) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !any, !kv, !kv, !any
  return
}

!kv512 = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 512>
!q512 = memref<?x1x12x512xbf16>
// CHECK-LABEL: @wide
// CHECK: schedule = #[[WIDE]]}
// REMARK: remark: [Missed] split_keys{{.*}}keys are not split over blocks: {{.*}}12{{.*}} query rows of a head size of {{.*}}512{{.*}} need {{.*}}268{{.*}}registers in a lane{{.*}}sm_90a{{.*}} has {{.*}}255
// AMD: remark: [Missed] split_keys{{.*}}keys are not split over blocks: {{.*}}12{{.*}} query rows of a head size of {{.*}}512{{.*}} need {{.*}}131072{{.*}}bytes of shared memory{{.*}}gfx942{{.*}} has {{.*}}65536
func.func @wide(%q: !q512, %k: !kv512, %v: !kv512, %o: !q512) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !q512, !kv512, !kv512, !q512
  return
}
