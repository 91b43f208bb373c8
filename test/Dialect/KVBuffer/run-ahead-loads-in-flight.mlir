// Where a copy that copies nothing counts, too, those beyond a loop's last iteration are
// awaited before the slots that they go to are filled again, also where all warps meet
// before, and where slots are named; elsewhere the meeting is enough.

// DEFINE: %{pass} = kvbuf-opt --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=blocks,loads})))"
// RUN: %{pass} %s | FileCheck %s --check-prefixes=CHECK,WAVES
// RUN: sed 's/gfx950/sm_80/' %s | %{pass} | FileCheck %s --check-prefixes=CHECK,LANES

#buf = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
#blocks = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [32, 32, 16], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 64, full_kv = false, stages = 2, warp_size = 64>
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

    // CHECK-LABEL: gpu.func @names
    // CHECK:         %[[LOOP:.*]] = scf.for
    // CHECK:         }
    // WAVES-NEXT:    kvbuffer.lds_stage %[[LOOP]]
    // LANES-NOT:     kvbuffer.meet
    // CHECK:         scf.for
    // CHECK:         }
    // CHECK-NEXT:    gpu.return
    gpu.func @names(%tile: !tile, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %b = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      scf.for %i = %c0 to %n step %c1 {
        %slot = arith.remui %i, %c2 : index
        %t = kvbuffer.dram_load %tile into %b[%slot] : !tile, !kvbuffer.buffer<#buf>
        %s = kvbuffer.lds_stage %t : !kvbuffer.token<#buf>
      }
      scf.for %i = %c0 to %n step %c1 {
        %slot = arith.remui %i, %c2 : index
        %t = kvbuffer.dram_load %tile into %b[%slot] : !tile, !kvbuffer.buffer<#buf>
        %s = kvbuffer.lds_stage %t : !kvbuffer.token<#buf>
      }
      gpu.return
    }

    // The same of blocks, in a loop that comes back to them.
    // CHECK-LABEL: gpu.func @blocks
    // CHECK:         scf.for
    // CHECK:           %[[LOOP:.*]] = scf.for
    // CHECK:             scf.yield
    // CHECK-NEXT:      }
    // WAVES-NEXT:      kvbuffer.lds_stage %[[LOOP]]
    // LANES-NEXT:      kvbuffer.meet
    // CHECK-NEXT:    }
    gpu.func @blocks(%tile: !kvbuffer.tile<32x64xbf16>, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %b = kvbuffer.alloc : !kvbuffer.buffer<#blocks>
      scf.for %o = %c0 to %n step %c1 {
        scf.for %i = %c0 to %n step %c1 {
          %t0 = kvbuffer.dram_load %tile into %b : !kvbuffer.tile<32x64xbf16>, !kvbuffer.buffer<#blocks>
          %s0 = kvbuffer.lds_stage %t0 : !kvbuffer.token<#blocks>
          %t1 = kvbuffer.dram_load %tile into %b {block = 1 : i64} : !kvbuffer.tile<32x64xbf16>, !kvbuffer.buffer<#blocks>
          %s1 = kvbuffer.lds_stage %t1 : !kvbuffer.token<#blocks>
        }
      }
      gpu.return
    }
  }
}
