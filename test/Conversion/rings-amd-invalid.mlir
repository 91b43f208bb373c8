// What rings of waves that poll do not have.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" --split-input-file --verify-diagnostics

#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 2, mma_shape = [32, 32, 16], swap_a_b = true>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @numbers() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      // expected-error @below {{'kvbuffer.mailbox' op has no per-lane form on gfx950, whose teams have no barrier of their own}}
      %box = kvbuffer.mailbox from @load to [@multiply] {slots = 2 : i64}
      gpu.return
    }
  }
}

// -----

#buf = #kvbuffer.kv_buffer<32x64xbf16, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 2, mma_shape = [32, 32, 16], swap_a_b = true>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has rings and clusters of 2 blocks, which gfx950 does not have; expected no 'known_cluster_size'}}
    gpu.func @clusters() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1], known_cluster_size = array<i32: 2, 1, 1>} {
      %slots = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %ring = kvbuffer.ring %slots from @load to [@multiply] : !kvbuffer.buffer<#buf>
      gpu.return
    }
  }
}

// -----

#buf = #kvbuffer.kv_buffer<32x64xbf16, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 2, mma_shape = [32, 32, 16], swap_a_b = true>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @copies() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %slots = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %ring = kvbuffer.ring %slots from @load to [@multiply] : !kvbuffer.buffer<#buf>
      kvbuffer.teams {
        // expected-error @below {{'kvbuffer.team' op has 2 copies of 2 warps, which would meet by one counter; expected one copy}}
        kvbuffer.team @others warps(2) x 2 (%i) {
        }
      }
      gpu.return
    }
  }
}
