// Where a copy that copies nothing counts, too, those beyond a loop's last iteration are
// awaited before the slots that they go to are filled again, also where all warps meet
// before; elsewhere the meeting is enough.

// DEFINE: %{pass} = kvbuf-opt --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-prefetch-loads)))"
// RUN: %{pass} %s | FileCheck %s --check-prefixes=CHECK,WAVES
// RUN: sed 's/gfx950/sm_80/' %s | %{pass} | FileCheck %s --check-prefixes=CHECK,LANES

#buf = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
!tile = !kvbuffer.tile<16x16xbf16>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @meets
    // CHECK:         %[[LOOP:.*]] = scf.for
    // CHECK:         }
    // WAVES-NEXT:    kvbuffer.lds_stage %[[LOOP]]
    // CHECK-NEXT:    kvbuffer.meet
    // LANES-NOT:     kvbuffer.meet
    // CHECK:         scf.for
    // CHECK:         }
    // CHECK-NEXT:    gpu.return
    gpu.func @meets(%tile: !tile, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %b = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      scf.for %i = %c0 to %n step %c1 {
        %t = kvbuffer.dram_load %tile into %b : !tile, !kvbuffer.buffer<#buf>
        %s = kvbuffer.lds_stage %t : !kvbuffer.token<#buf>
      }
      kvbuffer.meet
      scf.for %i = %c0 to %n step %c1 {
        %t = kvbuffer.dram_load %tile into %b : !tile, !kvbuffer.buffer<#buf>
        %s = kvbuffer.lds_stage %t : !kvbuffer.token<#buf>
      }
      gpu.return
    }
  }
}
