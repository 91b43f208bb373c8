// Packed rows that teams do not widen, each for a reason that is said where teams are asked
// for; alike warps have them by default.

// RUN: not kvbuf-opt %s --split-input-file --kvbuf-to-tile=chip=sm_90a 2>&1 | FileCheck %s

!q = memref<?x1x64x512xbf16>
!rows = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 512, page_size = 64, row = <bytes = 528, parts = [<count = 512, element = f8E4M3FN, at = 8>]>>
func.func @begins(%q: !q, %rows: !rows, %o: !q) {
  // CHECK: error: 'kvbuffer.attention' op has packed rows, and teams fill slots by 64 columns that are of one part and begin at a multiple of 16 bytes; expected producers = 0
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) {schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4, producer_registers = 48, consumer_registers = 160>, work = split_keys<>>} : !q, !rows, !rows, !q
  return
}

// -----

!q = memref<?x1x64x512xbf16>
!rows = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 512, page_size = 64, row = <bytes = 560, parts = [<count = 480, element = f8E4M3FN, at = 0>, <count = 32, element = bf16, at = 480>]>>
func.func @blocks(%q: !q, %rows: !rows, %o: !q) {
  // CHECK: error: 'kvbuffer.attention' op has packed rows, and teams fill slots by 64 columns that are of one part and begin at a multiple of 16 bytes; expected producers = 0
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) {schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4, producer_registers = 48, consumer_registers = 160>, work = split_keys<>>} : !q, !rows, !rows, !q
  return
}

// -----

!q = memref<?x1x64x512xbf16>
!rows = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 512, page_size = 64, row = <bytes = 1024, parts = [<count = 512, element = f16, at = 0>]>>
func.func @wide(%q: !q, %rows: !rows, %o: !q) {
  // CHECK: error: 'kvbuffer.attention' op has packed rows, and teams widen elements of 8 bits, and copy those of q's type; expected producers = 0
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) {schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4, producer_registers = 48, consumer_registers = 160>, work = split_keys<>>} : !q, !rows, !rows, !q
  return
}

// -----

!q = memref<?x1x64x512xbf16>
!rows = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 512, page_size = 64, row = <bytes = 528, parts = [<count = 512, element = f8E4M3FN, at = 0, scale = bf16, granularity = 64, scale_at = 512>]>>
func.func @scales(%q: !q, %rows: !rows, %o: !q) {
  // CHECK: error: 'kvbuffer.attention' op has packed rows, and teams widen by scales in f32 or powers of two, of 8, 16, 32 elements or a multiple of 64; expected producers = 0
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) {schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4, producer_registers = 48, consumer_registers = 160>, work = split_keys<>>} : !q, !rows, !rows, !q
  return
}

// -----

!q = memref<?x1x64x512xbf16>
!rows = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 512, page_size = 64, row = <bytes = 528, parts = [<count = 512, element = f8E4M3FN, at = 0, scale = f8E8M0FNU, granularity = 128, scale_at = 514>]>>
func.func @words(%q: !q, %rows: !rows, %o: !q) {
  // CHECK: error: 'kvbuffer.attention' op has packed rows, and teams read scales by words of 32 bits, which these are not; expected producers = 0
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) {schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 4, producer_registers = 48, consumer_registers = 160>, work = split_keys<>>} : !q, !rows, !rows, !q
  return
}

// -----

// A slot of several parts is widened out of memory beside it alone.

!q = memref<?x1x64x512xbf16>
!rows = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 512, page_size = 64, row = <bytes = 528, parts = [<count = 512, element = f8E4M3FN, at = 0, scale = f8E8M0FNU, granularity = 32, scale_at = 512>]>>
func.func @room(%q: !q, %rows: !rows, %o: !q) {
  // CHECK: error: 'kvbuffer.attention' op producers have no room beside slots for bytes of packed rows that are not widened where they lie; expected fewer stages, overlap = false, or producers = 0
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) {schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], q_in_regs = true, overlap = true, teams = moving<producers = 4, producer_registers = 24, consumer_registers = 160>, work = split_keys<>>} : !q, !rows, !rows, !q
  return
}

// -----

// Nor are scales read from a tail by who widens in the slot.

!q = memref<?x1x64x576xbf16>
!o = memref<?x1x64x512xbf16>
!rows = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 64, row = <bytes = 640, parts = [<count = 512, element = f8E4M3FN, at = 0, scale = f32, granularity = 128, scale_at = 640>, <count = 64, element = bf16, at = 512>], tail = 16, rows = 64, stride = 42240>>
func.func @tail(%q: !q, %rows: !rows, %o: !o) {
  // CHECK: error: 'kvbuffer.attention' op producers have no room beside slots for bytes of packed rows that are not widened where they lie; expected fewer stages, overlap = false, or producers = 0
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) {schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], q_in_regs = true, overlap = true, teams = moving<producers = 4, producer_registers = 24, consumer_registers = 160>, work = split_keys<>>} : !q, !rows, !rows, !o
  return
}

// -----

!q = memref<?x1x64x512xbf16>
!rows = !kvbuffer.cache<paged, f8E4M3FN, heads = 1, head_size = 512, page_size = 64, scale = f32>
func.func @wideners(%q: !q, %rows: !rows, %o: !q) {
  // CHECK: error: 'kvbuffer.attention' op has rows that are keys and values, which the warps that move them widen; expected wideners = 0
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) {schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], q_in_regs = true, teams = moving<producers = 2, producer_registers = 48, consumer_registers = 160, wideners = 2, widener_registers = 48>, work = split_keys<>>} : !q, !rows, !rows, !q
  return
}
