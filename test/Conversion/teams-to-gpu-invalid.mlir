// Teams that a chip cannot run.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" --split-input-file --verify-diagnostics

#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @waves() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      kvbuffer.teams {
        // expected-error @below {{'kvbuffer.team' op has 2 warps, which cannot meet by themselves: a block of gfx950 has no barrier but its own; expected warps(1)}}
        kvbuffer.team @two warps(2) {
        }
        kvbuffer.team @one warps(1) {
        }
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @barriers() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      kvbuffer.teams {
        // expected-error @below {{'kvbuffer.team' op needs 17 named barriers, a block of sm_80 has 16}}
        kvbuffer.team @pairs warps(2) x 16 {
        }
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @threads() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      // expected-error @below {{'kvbuffer.teams' op has teams of 1056 threads together; sm_80 has at most 1024 in a block}}
      kvbuffer.teams {
        kvbuffer.team @many warps(1) x 33 {
        }
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @rows() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      kvbuffer.teams {
        // expected-error @below {{'kvbuffer.team' op has BM / warps = 8 rows, which no 16x8x16 instruction divides; expected a multiple of 16}}
        kvbuffer.team @two warps(2) BM(16) {
        }
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @three() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      kvbuffer.teams {
        // expected-error @below {{'kvbuffer.team' op has 3 warps and BM = 48; expected powers of two}}
        kvbuffer.team @three warps(3) {
        }
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @uneven() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      // expected-error @below {{'kvbuffer.teams' op has teams of 2 warps together; expected as many as another kvbuffer.teams of the kernel has, 4}}
      kvbuffer.teams {
        kvbuffer.team @two warps(1) x 2 {
        }
      }
      kvbuffer.teams {
        kvbuffer.team @four warps(1) x 4 {
        }
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 32, depth = 64, stages = 2>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @whole_block() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      // expected-error @below {{'kvbuffer.alloc' op takes the whole block, whose teams have 4 warps; expected it in a team, or a schedule with so many warps}}
      %slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @four warps(1) x 4 {
        }
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 64, depth = 64, stages = 2>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @other_threads() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      kvbuffer.teams {
        kvbuffer.team @two warps(1) x 2 {
          // expected-error @below {{'kvbuffer.alloc' op has a buffer with num_threads = 64 in a team that has 1 warps of 32; expected num_threads = 32}}
          %slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
        }
      }
      gpu.return
    }
  }
}

// -----

// Each copy has its slots: 8 of 32 KiB are too many.
#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 32, depth = 128, stages = 2>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @room() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      kvbuffer.teams {
        kvbuffer.team @eight warps(1) x 8 {
          // expected-error @below {{'kvbuffer.alloc' op needs 16 slots of 16384 bytes of shared memory; sm_80 has 166912 for a block, 0 of which are taken}}
          %slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
        }
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
!row = !kvbuffer.fragment<32x1xf32, row>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @queue_rows(%n: memref<?xi32> {kvbuffer.name = "n"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      kvbuffer.teams {
        kvbuffer.team @one warps(1) {
          // expected-error @below {{'kvbuffer.fragment_fill' op has a fragment of 32 rows in a team that has BM = 16}}
          %r = kvbuffer.fragment_fill 1.0 : !row
        }
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
!row = !kvbuffer.fragment<16x1xf32, row>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @queue_barriers() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.queue' op needs 17 named barriers, two for each slot and team that takes; a block of sm_80 has 16}}
      %queue = kvbuffer.queue slots(8) from @one to [@other] : !kvbuffer.queue<!row>
      kvbuffer.teams {
        kvbuffer.team @one warps(1) {
          %r = kvbuffer.fragment_fill 1.0 : !row
          kvbuffer.queue_put %r to %queue[%c0] : !kvbuffer.queue<!row>
        }
        kvbuffer.team @other warps(1) {
          %r = kvbuffer.queue_take %queue[%c0] : !kvbuffer.queue<!row>
        }
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>
!row = !kvbuffer.fragment<32x1xf32, row>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @one_slot() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.queue' op has teams that meet at the block's barrier, as a block of gfx950 has no other; expected slots(2) or more, and no other team and no other queue beside it}}
      %queue = kvbuffer.queue slots(1) from @one to [@other] : !kvbuffer.queue<!row>
      kvbuffer.teams {
        kvbuffer.team @one warps(1) {
          %r = kvbuffer.fragment_fill 1.0 : !row
          kvbuffer.queue_put %r to %queue[%c0] : !kvbuffer.queue<!row>
        }
        kvbuffer.team @other warps(1) {
          %r = kvbuffer.queue_take %queue[%c0] : !kvbuffer.queue<!row>
        }
      }
      gpu.return
    }
  }
}
