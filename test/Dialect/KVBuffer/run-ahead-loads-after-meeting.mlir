// Loops that go through the same three slots: one that other loops repeat, and one in
// a branch after it. Their first loads fill slots before the loop that are read until
// all warps have met: they run ahead only where these meet before, beside the loop.

// DEFINE: %{pass} = kvbuf-opt --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=loads})))"
// RUN: %{pass} %s 2>&1 | FileCheck %s --implicit-check-not=warning
// RUN: sed 's/sm_80/gfx942/' %s | %{pass} 2>&1 | FileCheck %s --implicit-check-not=warning
// RUN: sed /kvbuffer.meet/d %s | %{pass} 2>&1 | FileCheck %s --check-prefix=APART
// APART-COUNT-2: warning: not prefetched: a slot may still be read when the loop begins
// APART-NOT:     warning
// APART:         gpu.func @twice
// APART-NOT:     scf.for {{.*}}!kvbuffer.token

#buf = #kvbuffer.kv_buffer<16x16xbf16, stages = 3>
!tile = !kvbuffer.tile<16x16xbf16>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
!acc = !kvbuffer.fragment<16x16xf32, acc>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @twice
    // CHECK:         scf.for
    // CHECK:           kvbuffer.meet
    // CHECK-COUNT-2:   kvbuffer.dram_load
    // CHECK:           scf.for {{.*}} iter_args({{.*}}!kvbuffer.token
    // CHECK:         scf.if
    // CHECK:           kvbuffer.meet
    // CHECK-COUNT-2:   kvbuffer.dram_load
    // CHECK:           scf.for {{.*}} iter_args({{.*}}!kvbuffer.token
    gpu.func @twice(%x: !tile, %y: !tile, %w: !a, %m: index, %n: index, %more: i1, %zero: !acc, %out: !kvbuffer.tile<16x16xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %slots = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      scf.for %tile = %c0 to %m step %c1 {
        kvbuffer.meet
        %first = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> !acc {
          %slot = arith.remui %i, %c3 : index
          %t = kvbuffer.dram_load %x into %slots[%slot] : !tile, !kvbuffer.buffer<#buf>
          %s = kvbuffer.lds_stage %t : !kvbuffer.token<#buf>
          %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
          %next = kvbuffer.mma %w, %f, %sum {transpose_b} : !a, !b, !acc
          scf.yield %next : !acc
        }
        kvbuffer.fragment_store %first, %out : !acc, !kvbuffer.tile<16x16xf32>
      }
      scf.if %more {
        kvbuffer.meet
        %second = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> !acc {
          %slot = arith.remui %i, %c3 : index
          %t = kvbuffer.dram_load %y into %slots[%slot] : !tile, !kvbuffer.buffer<#buf>
          %s = kvbuffer.lds_stage %t : !kvbuffer.token<#buf>
          %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
          %next = kvbuffer.mma %w, %f, %sum {transpose_b} : !a, !b, !acc
          scf.yield %next : !acc
        }
        kvbuffer.fragment_store %second, %out : !acc, !kvbuffer.tile<16x16xf32>
      }
      gpu.return
    }
  }
}
