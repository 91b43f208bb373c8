// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-count-waits)))' | FileCheck %s

#buf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 4>
!tile = !kvbuffer.tile<16x16xbf16>
!buffer = !kvbuffer.buffer<#buf>
!token = !kvbuffer.token<#buf>

gpu.module @m {
  // Loads behind the youngest of the awaited ones may stay in flight.
  // CHECK-LABEL: gpu.func @straight
  // CHECK-SAME:    kvbuffer.phase = #kvbuffer.phase<scheduled>
  // CHECK:         kvbuffer.lds_stage %{{.*}} {younger = 2 : i64} : !kvbuffer.token<#kbuf>{{$}}
  // CHECK:         kvbuffer.lds_stage %{{.*}}, %{{.*}} {younger = 0 : i64}
  gpu.func @straight(%tile: !tile, %buf: !buffer, %i: index) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>} {
    %a = kvbuffer.dram_load %tile into %buf[%i] : !tile, !buffer
    %b = kvbuffer.dram_load %tile into %buf[%i] : !tile, !buffer
    %c = kvbuffer.dram_load %tile into %buf[%i] : !tile, !buffer
    %sa = kvbuffer.lds_stage %a : !token
    %sb, %sc = kvbuffer.lds_stage %b, %c : !token, !token
    gpu.return
  }

  // A token that a loop carries is one load old on each way into the body; behind
  // the loop it is the first or a later one.
  // CHECK-LABEL: gpu.func @loop
  // CHECK:         scf.for
  // CHECK:           kvbuffer.lds_stage %{{.*}} {younger = 1 : i64}
  // CHECK:         kvbuffer.lds_stage %{{.*}} {younger = 1 : i64}
  // CHECK:         kvbuffer.lds_stage %{{.*}} {younger = 0 : i64}
  gpu.func @loop(%tile: !tile, %buf: !buffer, %i: index) kernel {
    %a = kvbuffer.dram_load %tile into %buf[%i] : !tile, !buffer
    %b = kvbuffer.dram_load %tile into %buf[%i] : !tile, !buffer
    %r:2 = scf.for %j = %i to %i step %i iter_args(%x = %a, %y = %b) -> (!token, !token) {
      %s = kvbuffer.lds_stage %x : !token
      %c = kvbuffer.dram_load %tile into %buf[%i] : !tile, !buffer
      scf.yield %y, %c : !token, !token
    }
    %s0 = kvbuffer.lds_stage %r#0 : !token
    %s1 = kvbuffer.lds_stage %r#1 : !token
    gpu.return
  }

  // The two ways into the body differ: the shorter counts.
  // CHECK-LABEL: gpu.func @paths
  // CHECK:         scf.for
  // CHECK:           kvbuffer.lds_stage %{{.*}} {younger = 0 : i64}
  gpu.func @paths(%tile: !tile, %buf: !buffer, %i: index) kernel {
    %a = kvbuffer.dram_load %tile into %buf[%i] : !tile, !buffer
    %b = kvbuffer.dram_load %tile into %buf[%i] : !tile, !buffer
    %c = kvbuffer.dram_load %tile into %buf[%i] : !tile, !buffer
    %r = scf.for %j = %i to %i step %i iter_args(%x = %a) -> !token {
      %s = kvbuffer.lds_stage %x : !token
      %d = kvbuffer.dram_load %tile into %buf[%i] : !tile, !buffer
      scf.yield %d : !token
    }
    gpu.return
  }

  // Loads in a branch or a loop may not run: they are not counted on.
  // CHECK-LABEL: gpu.func @nested
  // CHECK:         kvbuffer.lds_stage %{{.*}} {younger = 1 : i64}
  gpu.func @nested(%tile: !tile, %buf: !buffer, %i: index, %on: i1) kernel {
    %a = kvbuffer.dram_load %tile into %buf[%i] : !tile, !buffer
    scf.if %on {
      %b = kvbuffer.dram_load %tile into %buf[%i] : !tile, !buffer
    }
    scf.for %j = %i to %i step %i {
      %c = kvbuffer.dram_load %tile into %buf[%i] : !tile, !buffer
    }
    %d = kvbuffer.dram_load %tile into %buf[%i] : !tile, !buffer
    %s = kvbuffer.lds_stage %a : !token
    gpu.return
  }
  // A kernel by lanes is past this stage.
  // CHECK-LABEL: gpu.func @lanes
  // CHECK-SAME:    kvbuffer.phase = #kvbuffer.phase<thread>
  gpu.func @lanes() kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>} {
    %lane = gpu.thread_id x
    gpu.return
  }
}
