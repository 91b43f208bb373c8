// Places of buffers in LDS, in the order of the program; with `overlay` those that
// are not in use at the same time share bytes.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-allocate-lds)))" --remark-format=emitRemark --remarks-filter-analyse="kvbuf-allocate-lds" -o %t.mlir 2> %t.remarks
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: FileCheck %s --input-file=%t.remarks --check-prefix=REMARK
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-allocate-lds{overlay=true})))" | FileCheck %s --check-prefix=OVERLAY

// 64 * 64 * 2 bytes, two slots; 16 * 8 * 2, rounded up to 1024.
#large = #kvbuffer.kv_buffer<64x64xbf16, stages = 2>
#small = #kvbuffer.kv_buffer<16x8xbf16>
!large_tile = !kvbuffer.tile<64x64xbf16>
!small_tile = !kvbuffer.tile<16x8xbf16>

gpu.module @m {
  // CHECK-LABEL: gpu.func @in_turn
  // CHECK:         kvbuffer.alloc {offset = 0 : i64}
  // CHECK:         kvbuffer.alloc {offset = 16384 : i64}
  // CHECK:         kvbuffer.alloc {offset = 17408 : i64}
  // REMARK:      remark: [Analysis] lds
  // REMARK-SAME: bytes=33792, shared=0
  // The second buffer is done with at the wait for the third, which all threads
  // meet at; the first is read again after it.
  // OVERLAY-LABEL: gpu.func @in_turn
  // OVERLAY:         kvbuffer.alloc {offset = 0 : i64}
  // OVERLAY:         kvbuffer.alloc {offset = 16384 : i64}
  // OVERLAY:         kvbuffer.alloc {offset = 16384 : i64}
  gpu.func @in_turn(%l: !large_tile, %s: !small_tile, %i: index, %n: index) kernel {
    %c1 = arith.constant 1 : index
    %first = kvbuffer.alloc : !kvbuffer.buffer<#large>
    %second = kvbuffer.alloc : !kvbuffer.buffer<#small>
    %third = kvbuffer.alloc : !kvbuffer.buffer<#large>
    %t0 = kvbuffer.dram_load %l into %first[%i] : !large_tile, !kvbuffer.buffer<#large>
    %t1 = kvbuffer.dram_load %s into %second[%i] : !small_tile, !kvbuffer.buffer<#small>
    %s0, %s1 = kvbuffer.lds_stage %t0, %t1 : !kvbuffer.token<#large>, !kvbuffer.token<#small>
    %f1 = kvbuffer.fragment_load %s1[0, 0] contracted(cols) : !kvbuffer.staged<#small> -> !kvbuffer.fragment<16x8xbf16, b>
    kvbuffer.meet
    %t2 = kvbuffer.dram_load %l into %third[%i] : !large_tile, !kvbuffer.buffer<#large>
    %s2 = kvbuffer.lds_stage %t2 : !kvbuffer.token<#large>
    scf.for %j = %i to %n step %c1 {
      %f0 = kvbuffer.fragment_load %s0[0, 0] contracted(cols) : !kvbuffer.staged<#large> -> !kvbuffer.fragment<64x64xbf16, b>
      %f2 = kvbuffer.fragment_load %s2[0, 0] contracted(cols) : !kvbuffer.staged<#large> -> !kvbuffer.fragment<64x64xbf16, b>
    }
    gpu.return
  }

  // Without a meeting after its last read, a slot may still be read when another
  // thread fills the next buffer.
  // OVERLAY-LABEL: gpu.func @not_met
  // OVERLAY:         kvbuffer.alloc {offset = 0 : i64}
  // OVERLAY:         kvbuffer.alloc {offset = 1024 : i64}
  gpu.func @not_met(%s: !small_tile, %i: index) kernel {
    %first = kvbuffer.alloc : !kvbuffer.buffer<#small>
    %second = kvbuffer.alloc : !kvbuffer.buffer<#small>
    %t0 = kvbuffer.dram_load %s into %first[%i] : !small_tile, !kvbuffer.buffer<#small>
    %s0 = kvbuffer.lds_stage %t0 : !kvbuffer.token<#small>
    %f0 = kvbuffer.fragment_load %s0[0, 0] contracted(cols) : !kvbuffer.staged<#small> -> !kvbuffer.fragment<16x8xbf16, b>
    %t1 = kvbuffer.dram_load %s into %second[%i] : !small_tile, !kvbuffer.buffer<#small>
    %s1 = kvbuffer.lds_stage %t1 : !kvbuffer.token<#small>
    %f1 = kvbuffer.fragment_load %s1[0, 0] contracted(cols) : !kvbuffer.staged<#small> -> !kvbuffer.fragment<16x8xbf16, b>
    gpu.return
  }

  // What a loop carries is in use throughout the loop; given places are kept.
  // CHECK-LABEL: gpu.func @carried
  // CHECK:         kvbuffer.alloc {offset = 0 : i64}
  // CHECK:         kvbuffer.alloc {offset = 2048 : i64}
  // OVERLAY-LABEL: gpu.func @carried
  // OVERLAY:         kvbuffer.alloc {offset = 0 : i64}
  // OVERLAY:         kvbuffer.alloc {offset = 2048 : i64}
  gpu.func @carried(%s: !small_tile, %i: index, %n: index) kernel {
    %c1 = arith.constant 1 : index
    %first = kvbuffer.alloc : !kvbuffer.buffer<#small>
    %second = kvbuffer.alloc {offset = 2048 : i64} : !kvbuffer.buffer<#small>
    %t0 = kvbuffer.dram_load %s into %first[%i] : !small_tile, !kvbuffer.buffer<#small>
    %last = scf.for %j = %i to %n step %c1 iter_args(%t = %t0) -> (!kvbuffer.token<#small>) {
      %s0 = kvbuffer.lds_stage %t : !kvbuffer.token<#small>
      %next = kvbuffer.dram_load %s into %first[%i] : !small_tile, !kvbuffer.buffer<#small>
      scf.yield %next : !kvbuffer.token<#small>
    }
    kvbuffer.meet
    %t1 = kvbuffer.dram_load %s into %second[%i] : !small_tile, !kvbuffer.buffer<#small>
    %s1, %s2 = kvbuffer.lds_stage %t1, %last : !kvbuffer.token<#small>, !kvbuffer.token<#small>
    gpu.return
  }
}
