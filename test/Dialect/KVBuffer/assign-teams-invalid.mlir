// Programs that cannot be divided between two teams.

// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-teams)))"

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [16, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{has producers; expected 'kvbuffer.target' to be a chip that has rings, as kvbuf-choose-schedule checks}}
    gpu.func @chip() kernel attributes {kvbuffer.schedule = #schedule} {
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [64, 8, 16], producers = 4>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 1>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @predicate(%tile: !kvbuffer.tile<16x16xbf16>, %p: i1) kernel attributes {kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      // expected-error @below {{'kvbuffer.dram_load' op has a predicate; expected loads in front of their use, as kvbuf-lower-problems leaves them}}
      %kt = kvbuffer.dram_load %tile into %kbuf[%c0] if %p : !kvbuffer.tile<16x16xbf16>, !kvbuffer.buffer<#kbuf>
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [64, 8, 16], producers = 4>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 1>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @carried(%tile: !kvbuffer.tile<16x16xbf16>, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %first = kvbuffer.dram_load %tile into %kbuf[%c0] : !kvbuffer.tile<16x16xbf16>, !kvbuffer.buffer<#kbuf>
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %first) -> !kvbuffer.token<#kbuf> {
        // expected-error @below {{'kvbuffer.lds_stage' op awaits a load that the program does not issue in front of it in the same iteration}}
        %ks = kvbuffer.lds_stage %t : !kvbuffer.token<#kbuf>
        %next = kvbuffer.dram_load %tile into %kbuf[%c0] : !kvbuffer.tile<16x16xbf16>, !kvbuffer.buffer<#kbuf>
        scf.yield %next : !kvbuffer.token<#kbuf>
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @regions(%n: index) kernel attributes {kvbuffer.schedule = #schedule} {
      // expected-error @below {{'scf.index_switch' op is not supported in a kernel that is split into teams: expected scf.for, scf.if or scf.while}}
      scf.index_switch %n default {
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [64, 8, 16], producers = 4>
#buf = #kvbuffer.kv_buffer<16x16xbf16>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @foreign(%tile: !kvbuffer.tile<16x16xbf16>, %slots: !kvbuffer.buffer<#buf>) kernel attributes {kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.dram_load' op expected a buffer made by kvbuffer.alloc}}
      %t = kvbuffer.dram_load %tile into %slots[%c0] : !kvbuffer.tile<16x16xbf16>, !kvbuffer.buffer<#buf>
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @stores(%n: index, %out: memref<?xindex>) kernel attributes {kvbuffer.schedule = #schedule} {
      // expected-error @below {{'memref.store' op has an effect that producers and consumers would both have; expected a schedule without producers}}
      memref.store %n, %out[%n] : memref<?xindex>
      gpu.return
    }

    // The block would arrive twice.
    gpu.func @arrives(%n: index, %counters: memref<?xi32>) kernel attributes {kvbuffer.schedule = #schedule} {
      // expected-error @below {{'kvbuffer.arrive_last' op has an effect that producers and consumers would both have; expected a schedule without producers}}
      %last = kvbuffer.arrive_last %counters[%n] of %n : memref<?xi32>
      gpu.return
    }
  }
}

// -----

// A program that has divided its warps itself.
#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @divided() kernel attributes {kvbuffer.schedule = #schedule} {
      // expected-error @below {{'kvbuffer.teams' op is not supported in a kernel that is split into teams: expected scf.for, scf.if or scf.while}}
      kvbuffer.teams {
        kvbuffer.team @own warps(4) {
        }
      }
      gpu.return
    }
  }
}

// -----

// By blocks of columns teams count whole tiles.
#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [64, 8, 16], producers = 4>
#blocks = #kvbuffer.kv_buffer<16x48xbf16, stages = 3, BK = 16, swizzle = [1, 0, 3], full_kv = false>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @blocks(%tile: !kvbuffer.tile<16x48xbf16>) kernel attributes {kvbuffer.schedule = #schedule} {
      %slots = kvbuffer.alloc : !kvbuffer.buffer<#blocks>
      %0 = kvbuffer.dram_load %tile into %slots : !kvbuffer.tile<16x48xbf16>, !kvbuffer.buffer<#blocks>
      // expected-error @below {{'kvbuffer.dram_load' op loads block 2 of a tile; expected the blocks from 0 to 2 of each, one after the other}}
      %1 = kvbuffer.dram_load %tile into %slots {block = 2 : i64} : !kvbuffer.tile<16x48xbf16>, !kvbuffer.buffer<#blocks>
      gpu.return
    }
  }
}
