// What no choice fits, and what a program may not leave open.

// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-complete-program)))"

!a = !kvbuffer.fragment<64x64xbf16, a>
!b = !kvbuffer.fragment<24x64xbf16, b>
!acc = !kvbuffer.fragment<64x24xf32, acc>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    // expected-error @+1 {{leaves mma_shape open, but no instruction of gfx942, 32x32x8 and 16x16x16, divides all of its products: 64 rows, multiples of 24 columns and of 64 contracted elements}}
    gpu.func @columns(%a: !a, %b: !b, %zero: !acc) kernel attributes {
        kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 32>} {
      %x = kvbuffer.mma %a, %b, %zero {transpose_b} : !a, !b, !acc
      gpu.return
    }
  }
}

// -----

!a = !kvbuffer.fragment<64x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
!acc = !kvbuffer.fragment<64x16xf32, acc>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    // expected-error @+1 {{leaves mma_shape open, but no instruction of gfx942, 32x32x8 and 16x16x16, divides all of its products: 64 rows, multiples of 16 columns and of 16 contracted elements; 16x16x16 takes 32 of them at a time, as much as a read of LDS gives}}
    gpu.func @contracted(%a: !a, %b: !b, %zero: !acc) kernel attributes {
        kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 16>} {
      %x = kvbuffer.mma %a, %b, %zero {transpose_b} : !a, !b, !acc
      gpu.return
    }
  }
}

// -----

!a = !kvbuffer.fragment<64x64xbf16, a>
!b = !kvbuffer.fragment<32x64xbf16, b>
!acc = !kvbuffer.fragment<64x32xf32, acc>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    // expected-error @+1 {{leaves mma_shape open, but no instruction of gfx942, 32x32x8 and 16x16x16, divides all of its products: 8 rows of a warp, multiples of 32 columns and of 64 contracted elements}}
    gpu.func @rows(%a: !a, %b: !b, %zero: !acc) kernel attributes {
        kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 32, warps = 8>} {
      %x = kvbuffer.mma %a, %b, %zero {transpose_b} : !a, !b, !acc
      gpu.return
    }
  }
}

// -----

// Results of fewer rows than the schedule's tiles.
!a = !kvbuffer.fragment<48x64xbf16, a>
!b = !kvbuffer.fragment<32x64xbf16, b>
!acc = !kvbuffer.fragment<48x32xf32, acc>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    // expected-error @+1 {{divides all of its products: multiples of 16 rows that 4 warps share, multiples of 32 columns and of 64 contracted elements}}
    gpu.func @few_rows(%a: !a, %b: !b, %zero: !acc) kernel attributes {
        kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 32, warps = 4>} {
      %x = kvbuffer.mma %a, %b, %zero {transpose_b} : !a, !b, !acc
      gpu.return
    }
  }
}

// -----

!a = !kvbuffer.fragment<16x64xbf16, a>
!b = !kvbuffer.fragment<32x64xbf16, b>
!acc = !kvbuffer.fragment<16x32xf32, acc>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    // expected-error @+1 {{leaves mma_shape open, but no instruction of gfx942, 32x32x8 and 16x16x16, divides all of its products: 16 rows of a warp, multiples of 32 columns that warp_cols = 4 warps share and of 64 contracted elements}}
    gpu.func @shared_columns(%a: !a, %b: !b, %zero: !acc) kernel attributes {
        kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 32, warps = 4, warp_cols = 4>} {
      %x = kvbuffer.mma %a, %b, %zero {transpose_b} : !a, !b, !acc
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @+1 {{leaves mma_shape open, but has no kvbuffer.mma to choose it by; expected mma_shape}}
    gpu.func @none() kernel attributes {
        kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 32>} {
      gpu.return
    }
  }
}

// -----

#open = #kvbuffer.kv_buffer<64x64xbf16, open>
!tile = !kvbuffer.tile<64x64xbf16>
!a = !kvbuffer.fragment<64x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
!acc = !kvbuffer.fragment<64x64xf32, acc>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @both_ways(%q: !a, %tile: !tile, %zero: !acc) kernel attributes {
        kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 64>} {
      // expected-remark @+1 {{this buffer is read contracted(rows) and contracted(cols); gfx942 reads the former by single elements, and vectors of a buffer that is read in no other way}}
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#open>
      %t = kvbuffer.dram_load %tile into %buf : !tile, !kvbuffer.buffer<#open>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#open>
      %k = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#open> -> !b
      %v = kvbuffer.fragment_load %s[0, 0] contracted(rows) : !kvbuffer.staged<#open> -> !b
      %x = kvbuffer.mma %q, %k, %zero {transpose_b} : !a, !b, !acc
      %y = kvbuffer.mma %q, %v, %x : !a, !b, !acc
      gpu.return
    }
  }
}

// -----

#open = #kvbuffer.kv_buffer<128x128xbf16, open>
!tile = !kvbuffer.tile<128x128xbf16>
!a = !kvbuffer.fragment<64x128xbf16, a>
!b = !kvbuffer.fragment<128x128xbf16, b>
!acc = !kvbuffer.fragment<64x128xf32, acc>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    // Slots are fewer where there is no room, and the program is told.
    // expected-warning @+1 {{1 slot a buffer, not 2, which would take 131072 bytes of shared memory: gfx942 has 65536 for a block}}
    gpu.func @fewer(%q: !a, %tile: !tile, %zero: !acc, %n: index) kernel attributes {
        kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 128>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %k_slots = kvbuffer.alloc : !kvbuffer.buffer<#open>
      %v_slots = kvbuffer.alloc : !kvbuffer.buffer<#open>
      scf.for %i = %c0 to %n step %c1 {
        %t = kvbuffer.dram_load %tile into %k_slots : !tile, !kvbuffer.buffer<#open>
        %u = kvbuffer.dram_load %tile into %v_slots : !tile, !kvbuffer.buffer<#open>
        %s = kvbuffer.lds_stage %t : !kvbuffer.token<#open>
        %k = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#open> -> !b
        %x = kvbuffer.mma %q, %k, %zero {transpose_b} : !a, !b, !acc
      }
      gpu.return
    }
    // expected-error @+1 {{has buffers of 98304 bytes of shared memory, with one slot where their number is open; gfx942 has 65536 for a block; expected smaller tiles}}
    gpu.func @none_fits(%q: !a, %zero: !acc, %k: !b) kernel attributes {
        kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 128>} {
      %x = kvbuffer.alloc : !kvbuffer.buffer<#open>
      %y = kvbuffer.alloc : !kvbuffer.buffer<#open>
      %z = kvbuffer.alloc : !kvbuffer.buffer<#open>
      %s = kvbuffer.mma %q, %k, %zero {transpose_b} : !a, !b, !acc
      gpu.return
    }
  }
}
