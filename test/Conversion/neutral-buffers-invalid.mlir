// Reads of neutral buffers that a chip cannot do, and windows that it cannot move.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" --split-input-file --verify-diagnostics

// LDS that cannot be read across rows.
#buf = #kvbuffer.kv_buffer<32x32xbf16, swizzle = [2, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 8], swap_a_b = true>
!in = memref<?x?xbf16, strided<[?, 1]>>
!tile = !kvbuffer.tile<32x32xbf16>
!a = !kvbuffer.fragment<32x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
!acc = !kvbuffer.fragment<32x32xf32, acc>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @k(%x: !in {kvbuffer.name = "x", kvbuffer.shape = ["m", "k"]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%c32, %c32) : !in -> !tile
      %token = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !kvbuffer.buffer<#buf>
      %s = kvbuffer.lds_stage %token {younger = 0 : i64} : !kvbuffer.token<#buf>
      // expected-error @below {{'kvbuffer.fragment_load' op contracts rows of a slot whose rows lie side by side, which gfx942 cannot read; expected a buffer with policy = register_staged, order = cols}}
      %b = kvbuffer.fragment_load %s[0, 0] contracted(rows) : !kvbuffer.staged<#buf> -> !b
      gpu.return
    }
  }
}

// -----

// Columns that lie side by side, read along rows.
#buf = #kvbuffer.kv_buffer<32x32xbf16, policy = register_staged, order = cols>
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 8], swap_a_b = true>
!in = memref<?x?xbf16, strided<[?, 1]>>
!tile = !kvbuffer.tile<32x32xbf16>
!a = !kvbuffer.fragment<32x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
!acc = !kvbuffer.fragment<32x32xf32, acc>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @k(%x: !in {kvbuffer.name = "x", kvbuffer.shape = ["m", "k"]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%c32, %c32) : !in -> !tile
      %token = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !kvbuffer.buffer<#buf>
      %s = kvbuffer.lds_stage %token {younger = 0 : i64} : !kvbuffer.token<#buf>
      // expected-error @below {{'kvbuffer.fragment_load' op contracts columns of a slot whose columns lie side by side; expected a buffer with order = rows}}
      %b = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
      gpu.return
    }
  }
}

// -----

// A read along rows has the natural order; what comes from accumulators has theirs.
#buf = #kvbuffer.kv_buffer<32x32xbf16, swizzle = [2, 0, 4]>
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>
!in = memref<?x?xbf16, strided<[?, 1]>>
!tile = !kvbuffer.tile<32x32xbf16>
!a = !kvbuffer.fragment<32x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
!acc = !kvbuffer.fragment<32x32xf32, acc>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @k(%x: !in {kvbuffer.name = "x"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %acc = kvbuffer.fragment_fill 0.0 : !acc
      %c32 = arith.constant 32 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%c32, %c32) : !in -> !tile
      %token = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !kvbuffer.buffer<#buf>
      %s = kvbuffer.lds_stage %token {younger = 0 : i64} : !kvbuffer.token<#buf>
      %a = kvbuffer.fragment_convert %acc : !acc -> !a
      // expected-error @below {{'kvbuffer.fragment_load' op no read of LDS loads this operand's layout on gfx950, #kvbuffer.mma<mfma, b, shape = [32, 32, 16], warps = [1, 1], transpose_b = true, swapped = true, order = [1, 2, 8, 4]>; expected contracted(rows), as its product's other operand comes from accumulators}}
      %b = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
      %p = kvbuffer.mma %a, %b, %acc {transpose_b} : !a, !b, !acc
      gpu.return
    }
  }
}

// -----

// One fragment, two orders.
#buf = #kvbuffer.kv_buffer<32x32xbf16>
#natural = #kvbuffer.mma<mfma, a, shape = [32, 32, 16], warps = [1, 1], swapped = true>
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>
!in = memref<?x?xbf16, strided<[?, 1]>>
!tile = !kvbuffer.tile<32x32xbf16>
!a = !kvbuffer.fragment<32x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
!acc = !kvbuffer.fragment<32x32xf32, acc>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @k(%x: !in {kvbuffer.name = "x"}, %acc: !acc) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%c32, %c32) : !in -> !tile
      %token = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !kvbuffer.buffer<#buf>
      %s = kvbuffer.lds_stage %token {younger = 0 : i64} : !kvbuffer.token<#buf>
      %weights = kvbuffer.fragment_convert %acc : !acc -> !a
      %a = kvbuffer.fragment_load %s[0, 0] : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<32x32xbf16, a, #natural>
      // expected-note @below {{the fragment comes from here}}
      %b = kvbuffer.fragment_load %s[0, 0] contracted(rows) : !kvbuffer.staged<#buf> -> !b
      %p = kvbuffer.mma %weights, %b, %acc : !a, !b, !acc
      // expected-error @below {{'kvbuffer.mma' op needs a fragment in the layout #kvbuffer.mma<mfma, b, shape = [32, 32, 16], warps = [1, 1], swapped = true>, which is handed on in the layout #kvbuffer.mma<mfma, b, shape = [32, 32, 16], warps = [1, 1], swapped = true, order = [1, 2, 8, 4]>; expected one layout, a fragment of its own for each use, or a kvbuffer.exchange}}
      %q = kvbuffer.mma %a, %b, %acc : !kvbuffer.fragment<32x32xbf16, a, #natural>, !b, !acc
      gpu.return
    }
  }
}

// -----

// Rows of a block are copied by 16 bytes.
#buf = #kvbuffer.kv_buffer<32x32xbf16, BK = 4>
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 2, mma_shape = [16, 8, 16]>
!in = memref<?x?xbf16, strided<[?, 1]>>
!tile = !kvbuffer.tile<32x32xbf16>
!a = !kvbuffer.fragment<32x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
!acc = !kvbuffer.fragment<32x32xf32, acc>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @k(%x: !in {kvbuffer.name = "x", kvbuffer.shape = ["m", "k"]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      // expected-error @below {{'kvbuffer.alloc' op has a buffer with BK = 4, rows of 8 bytes; expected a multiple of 16}}
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%c32, %c32) : !in -> !tile
      %token = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !kvbuffer.buffer<#buf>
      %s = kvbuffer.lds_stage %token {younger = 0 : i64} : !kvbuffer.token<#buf>
      gpu.return
    }
  }
}

// -----

// Sizes that no shape names.
#buf = #kvbuffer.kv_buffer<32x32xbf16>
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 2, mma_shape = [16, 8, 16]>
!in = memref<?x?xbf16, strided<[?, 1]>>
!tile = !kvbuffer.tile<32x32xbf16>
!a = !kvbuffer.fragment<32x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
!acc = !kvbuffer.fragment<32x32xf32, acc>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @k(%x: !in {kvbuffer.name = "x", kvbuffer.shape = ["m", "k"]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%c32, %c32) : !in -> !tile
      %token = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !kvbuffer.buffer<#buf>
      %s = kvbuffer.lds_stage %token {younger = 0 : i64} : !kvbuffer.token<#buf>
      // expected-error @below {{'kvbuffer.launch_size' op asks for 'n', which neither an argument's shape nor 'kvbuffer.sizes' names}}
      %n = kvbuffer.launch_size "n"
      gpu.return
    }
  }
}

// -----

// Rows that are turned on their way are told by bits of their numbers.
#buf = #kvbuffer.kv_buffer<48x32xbf16, policy = register_staged, order = cols>
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [16, 16, 16], swap_a_b = true>
!in = memref<?x?xbf16, strided<[?, 1]>>
!tile = !kvbuffer.tile<48x32xbf16>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @k(%x: !in {kvbuffer.name = "x", kvbuffer.shape = ["m", "k"]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%c32, %c32) : !in -> !tile
      // expected-error @below {{'kvbuffer.dram_load' op turns 48 rows on their way into LDS, as gfx942 reads none that lie turned; expected a power of two}}
      %token = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !kvbuffer.buffer<#buf>
      %s = kvbuffer.lds_stage %token {younger = 0 : i64} : !kvbuffer.token<#buf>
      gpu.return
    }
  }
}

// -----

// An instruction of a wave fills whole rows of one block.
#buf = #kvbuffer.kv_buffer<4x16xbf16>
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>
!in = memref<?x?xbf16, strided<[?, 1]>>
!tile = !kvbuffer.tile<4x16xbf16>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @k(%x: !in {kvbuffer.name = "x", kvbuffer.shape = ["m", "k"]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%c16, %c16) : !in -> !tile
      // expected-error @below {{'kvbuffer.dram_load' op copies 4 rows of 16 elements of 'bf16', which the rows of no instruction of gfx950 divide; expected a buffer with policy = register_staged}}
      %token = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !kvbuffer.buffer<#buf>
      %s = kvbuffer.lds_stage %token {younger = 0 : i64} : !kvbuffer.token<#buf>
      gpu.return
    }
  }
}
