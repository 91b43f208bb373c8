// What a program leaves open is chosen for the chip, by how it is used.

// DEFINE: %{chip} = sm_80
// DEFINE: %{pass} = kvbuf-opt %s --pass-pipeline="builtin.module(kvbuf-choose-target{chip=%{chip}},gpu.module(gpu.func(kvbuf-complete-program)))"
// RUN: %{pass} | FileCheck %s --check-prefixes=CHECK,SM
// REDEFINE: %{chip} = gfx942
// RUN: %{pass} | FileCheck %s --check-prefixes=CHECK,GFX942
// REDEFINE: %{chip} = gfx950
// RUN: %{pass} | FileCheck %s --check-prefixes=CHECK,GFX950

// Where groups of warps multiply what others put into rings, by their instruction.
// REDEFINE: %{chip} = sm_90a
// RUN: %{pass} | FileCheck %s --check-prefixes=SM90A
// SM90A: #[[GROUPS:.*]] = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16]>
// SM90A: #[[WARPS:.*]] = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [16, 8, 16]>

// Without a chip there is nothing to choose by.
// RUN: not kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-complete-program)))" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: 'gpu.func' op leaves a choice to the chip, which its module does not name; expected 'kvbuffer.target' on it

// SM-DAG: #[[TWO:[a-z0-9]+]] = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [16, 8, 16]>
// SM-DAG: #[[KEPT:[a-z0-9]+]] = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 3, warps = 4, mma_shape = [16, 8, 16]>
// SM-DAG: #[[SHARED:[a-z0-9]+]] = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, stages = 2, warps = 4, mma_shape = [16, 8, 16], warp_cols = 4>
// SM-DAG: #[[K:[a-z0-9]+]] = #kvbuffer.kv_buffer<64x64xbf16, stages = 2, swizzle = [3, 0, 3]>
// SM-DAG: #[[ONCE:[a-z0-9]+]] = #kvbuffer.kv_buffer<64x64xbf16, swizzle = [3, 0, 3]>
// SM-DAG: #[[MINE:[a-z0-9]+]] = #kvbuffer.kv_buffer<64x64xbf16, swizzle = [1, 0, 3]>
//
// GFX942-DAG: #[[TWO:[a-z0-9]+]] = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, stages = 2, warps = 2, mma_shape = [32, 32, 8], swap_a_b = true>
// GFX942-DAG: #[[KEPT:[a-z0-9]+]] = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, stages = 3, warps = 4, mma_shape = [16, 16, 16], swap_a_b = true>
// GFX942-DAG: #[[ALONE:[a-z0-9]+]] = #kvbuffer.schedule<BM = 16, BN = 32, BK = 32, stages = 2, warps = 1, mma_shape = [16, 16, 16], swap_a_b = true>
// GFX942-DAG: #[[K:[a-z0-9]+]] = #kvbuffer.kv_buffer<64x64xbf16, BK = 32, stages = 2, swizzle = [2, 0, 3]>
// GFX942-DAG: #[[V:[a-z0-9]+]] = #kvbuffer.kv_buffer<64x64xbf16, BK = 32, stages = 2, policy = register_staged, order = cols>
// GFX942-DAG: #[[ONCE:[a-z0-9]+]] = #kvbuffer.kv_buffer<64x64xbf16, BK = 32, swizzle = [2, 0, 3]>
// GFX942-DAG: #[[MINE:[a-z0-9]+]] = #kvbuffer.kv_buffer<64x64xbf16, swizzle = [1, 0, 3]>
// GFX942-DAG: #[[ROWS:[a-z0-9]+]] = #kvbuffer.kv_buffer<64x64xbf16, BK = 32, stages = 2, swizzle = [2, 0, 3], policy = register_staged>
//
// GFX950-DAG: #[[TWO:[a-z0-9]+]] = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, stages = 2, warps = 2, mma_shape = [32, 32, 16], swap_a_b = true>
// GFX950-DAG: #[[KEPT:[a-z0-9]+]] = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, stages = 3, warps = 4, mma_shape = [16, 16, 32], swap_a_b = true>
// GFX950-DAG: #[[ALONE:[a-z0-9]+]] = #kvbuffer.schedule<BM = 16, BN = 32, BK = 32, stages = 2, warps = 1, mma_shape = [16, 16, 32], swap_a_b = true>
// GFX950-DAG: #[[K:[a-z0-9]+]] = #kvbuffer.kv_buffer<64x64xbf16, BK = 32, stages = 2, swizzle = [2, 0, 4]>
// GFX950-DAG: #[[V:[a-z0-9]+]] = #kvbuffer.kv_buffer<64x64xbf16, BK = 32, stages = 2>
// GFX950-DAG: #[[ONCE:[a-z0-9]+]] = #kvbuffer.kv_buffer<64x64xbf16, BK = 32, swizzle = [3, 0, 3, 2, 0, 4]>
// GFX950-DAG: #[[MINE:[a-z0-9]+]] = #kvbuffer.kv_buffer<64x64xbf16, swizzle = [1, 0, 3]>
// GFX950-DAG: #[[ROWS:[a-z0-9]+]] = #kvbuffer.kv_buffer<64x64xbf16, BK = 32, stages = 2, swizzle = [2, 0, 4], policy = register_staged>

#open = #kvbuffer.kv_buffer<64x64xbf16, open>
#stated = #kvbuffer.kv_buffer<64x64xbf16, BK = 64, stages = 1, swizzle = [1, 0, 3], open>
!tile = !kvbuffer.tile<64x64xbf16>
!acc = !kvbuffer.fragment<64x64xf32, acc>
!a = !kvbuffer.fragment<64x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
gpu.module @m {
  // Warps have an instruction's rows each. Two buffers of one text become two: by
  // the columns that are contracted, and by the rows.
  // CHECK-LABEL: gpu.func @two_ways
  // CHECK-SAME:    kvbuffer.schedule = #[[TWO]]}
  // CHECK:         %buf = kvbuffer.alloc : <#[[K]]>
  // SM:            %buf_0 = kvbuffer.alloc : <#[[K]]>
  // GFX942:        %buf_0 = kvbuffer.alloc : <#[[V]]>
  // GFX950:        %buf_0 = kvbuffer.alloc : <#[[V]]>
  // CHECK-NOT:   open
  gpu.func @two_ways(%q: !a, %tile: !tile, %zero: !acc, %n: index) kernel attributes {
      kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 64>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#open>
    %vbuf = kvbuffer.alloc : !kvbuffer.buffer<#open>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!acc) {
      %kt = kvbuffer.dram_load %tile into %kbuf : !tile, !kvbuffer.buffer<#open>
      %vt = kvbuffer.dram_load %tile into %vbuf : !tile, !kvbuffer.buffer<#open>
      %ks, %vs = kvbuffer.lds_stage %kt, %vt : !kvbuffer.token<#open>, !kvbuffer.token<#open>
      %kf = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#open> -> !b
      %vf = kvbuffer.fragment_load %vs[0, 0] contracted(rows) : !kvbuffer.staged<#open> -> !b
      %s = kvbuffer.mma %q, %kf, %sum {transpose_b} : !a, !b, !acc
      %o = kvbuffer.mma %q, %vf, %s : !a, !b, !acc
      scf.yield %o : !acc
    }
    gpu.return
  }

  // A buffer that no loop fills has one slot, whatever the schedule allows; what is
  // named is kept. Four warps of 16 rows have the smaller instruction. A part of a
  // slot, a token that a loop carries and a branch's slot are the buffer's, too.
  // CHECK-LABEL: gpu.func @kept
  // CHECK-SAME:    kvbuffer.schedule = #[[KEPT]]}
  // CHECK:         %buf = kvbuffer.alloc : <#[[ONCE]]>
  // CHECK:         %buf_0 = kvbuffer.alloc : <#[[MINE]]>
  // CHECK:         kvbuffer.staged_view {{.*}} -> <#[[ONCE]], 64x32 at [0, 32]>
  gpu.func @kept(%q: !a, %tile: !tile, %zero: !acc, %n: index, %yes: i1) kernel attributes {
      kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 64, stages = 3, warps = 4>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %once = kvbuffer.alloc : !kvbuffer.buffer<#open>
    %mine = kvbuffer.alloc : !kvbuffer.buffer<#stated>
    %first = kvbuffer.dram_load %tile into %once : !tile, !kvbuffer.buffer<#open>
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%token = %first) -> (!kvbuffer.token<#open>) {
      scf.yield %token : !kvbuffer.token<#open>
    }
    %s = kvbuffer.lds_stage %last : !kvbuffer.token<#open>
    %either = scf.if %yes -> (!kvbuffer.staged<#open>) {
      scf.yield %s : !kvbuffer.staged<#open>
    } else {
      scf.yield %s : !kvbuffer.staged<#open>
    }
    %part = kvbuffer.staged_view %either[0, 32] : !kvbuffer.staged<#open> -> !kvbuffer.staged<#open, 64x32 at [0, 32]>
    %f = kvbuffer.fragment_load %either[0, 0] contracted(cols) : !kvbuffer.staged<#open> -> !b
    %t = kvbuffer.dram_load %tile into %mine : !tile, !kvbuffer.buffer<#stated>
    %ts = kvbuffer.lds_stage %t : !kvbuffer.token<#stated>
    %g = kvbuffer.fragment_load %ts[0, 0] contracted(cols) : !kvbuffer.staged<#stated> -> !b
    %x = kvbuffer.mma %q, %f, %zero {transpose_b} : !a, !b, !acc
    %y = kvbuffer.mma %q, %g, %x {transpose_b} : !a, !b, !acc
    gpu.return
  }

  // Rows that are looked up one by one go through registers where copies take
  // whole rows of a wave.
  // CHECK-LABEL: gpu.func @gathered
  // SM:            kvbuffer.alloc : <#[[K]]>
  // GFX942:        kvbuffer.alloc : <#[[ROWS]]>
  // GFX950:        kvbuffer.alloc : <#[[ROWS]]>
  gpu.func @gathered(%q: !a, %tile: !kvbuffer.tile<64x64xbf16, page_size = 1>, %zero: !acc, %n: index) kernel attributes {
      kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 64>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#open>
    scf.for %i = %c0 to %n step %c1 {
      %t = kvbuffer.dram_load %tile into %buf : !kvbuffer.tile<64x64xbf16, page_size = 1>, !kvbuffer.buffer<#open>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#open>
      %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#open> -> !b
      %x = kvbuffer.mma %q, %f, %zero {transpose_b} : !a, !b, !acc
    }
    gpu.return
  }

  // Of one slot the next iteration's load overwrites what this one reads.
  // CHECK-LABEL: gpu.func @one_slot
  // CHECK:         kvbuffer.mma
  // CHECK-NEXT:    kvbuffer.meet
  // CHECK-NEXT:    }
  gpu.func @one_slot(%q: !a, %tile: !tile, %zero: !acc, %n: index) kernel attributes {
      kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 64, stages = 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#open>
    scf.for %i = %c0 to %n step %c1 {
      %t = kvbuffer.dram_load %tile into %buf : !tile, !kvbuffer.buffer<#open>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#open>
      %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#open> -> !b
      %x = kvbuffer.mma %q, %f, %zero {transpose_b} : !a, !b, !acc
    }
    gpu.return
  }

  // Few rows of many columns: where a warp's registers are too few for the
  // accumulators (16 x 512 are 256 for each of 32 lanes, 128 of 64), warps share the
  // columns. 32 columns of scores are four times 8, those of the instruction.
  // CHECK-LABEL: gpu.func @few_rows
  // SM-SAME:       kvbuffer.schedule = #[[SHARED]]}
  // GFX942-SAME:   kvbuffer.schedule = #[[ALONE]]}
  // GFX950-SAME:   kvbuffer.schedule = #[[ALONE]]}
  gpu.func @few_rows() kernel attributes {
      kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 32>} {
    %p = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x32xbf16, a>
    %b = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<32x32xbf16, b>
    %s = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x32xf32, acc>
    %v = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<32x512xbf16, b>
    %o = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x512xf32, acc>
    %x = kvbuffer.mma %p, %b, %s {transpose_b} : !kvbuffer.fragment<16x32xbf16, a>, !kvbuffer.fragment<32x32xbf16, b>, !kvbuffer.fragment<16x32xf32, acc>
    %y = kvbuffer.mma %p, %v, %o : !kvbuffer.fragment<16x32xbf16, a>, !kvbuffer.fragment<32x512xbf16, b>, !kvbuffer.fragment<16x512xf32, acc>
    gpu.return
  }

  // Teams that leave their warps open have as many as an instruction of the schedule's
  // rows has room for; where several have no barrier of their own, one.
  // CHECK-LABEL: gpu.func @teams
  // SM:            kvbuffer.team @one warps(2) {
  // GFX942:        kvbuffer.team @one warps(1) {
  // GFX950:        kvbuffer.team @one warps(1) {
  gpu.func @teams() kernel attributes {
      kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 64>} {
    %a = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<32x64xbf16, a>
    %b = kvbuffer.fragment_fill 0.0 : !b
    %c = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<32x64xf32, acc>
    kvbuffer.teams {
      kvbuffer.team @one {
        %x = kvbuffer.mma %a, %b, %c : !kvbuffer.fragment<32x64xbf16, a>, !b, !kvbuffer.fragment<32x64xf32, acc>
      }
    }
    gpu.return
  }

  // SM90A-LABEL: gpu.func @groups
  // SM90A-SAME:    kvbuffer.schedule = #[[GROUPS]]}
  gpu.func @groups(%n: index) kernel attributes {
      kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 64, warps = 4>} {
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#open>
    %ring = kvbuffer.ring %buf from @load to [@multiply] : !kvbuffer.buffer<#open>
    kvbuffer.teams {
      kvbuffer.team @multiply {
        %s = kvbuffer.ring_wait %ring[%n] : !kvbuffer.ring<#open>
        %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#open> -> !b
        %a = kvbuffer.fragment_fill 1.0 : !a
        %zero = kvbuffer.fragment_fill 0.0 : !acc
        %x = kvbuffer.mma %a, %f, %zero {transpose_b} : !a, !b, !acc
      }
      kvbuffer.team @load warps(1) {
      }
    }
    gpu.return
  }

  // A warp has rows of two instructions.
  // SM90A-LABEL: gpu.func @warps
  // SM90A-SAME:    kvbuffer.schedule = #[[WARPS]]}
  gpu.func @warps(%n: index) kernel attributes {
      kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 128, BN = 64, warps = 4>} {
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#open>
    %ring = kvbuffer.ring %buf from @load to [@multiply] : !kvbuffer.buffer<#open>
    kvbuffer.teams {
      kvbuffer.team @multiply {
        %s = kvbuffer.ring_wait %ring[%n] : !kvbuffer.ring<#open>
        %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#open> -> !b
        %a = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<128x64xbf16, a>
        %zero = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<128x64xf32, acc>
        %x = kvbuffer.mma %a, %f, %zero {transpose_b} : !kvbuffer.fragment<128x64xbf16, a>, !b, !kvbuffer.fragment<128x64xf32, acc>
      }
      kvbuffer.team @load warps(1) {
      }
    }
    gpu.return
  }
}
