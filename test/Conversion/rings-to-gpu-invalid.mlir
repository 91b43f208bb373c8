// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" --split-input-file --verify-diagnostics

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has a schedule that does not fit: producers = 4 does not fit sm_80, which has no barriers in shared memory that copies complete; expected producers = 0}}
    gpu.func @wrong_chip() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      gpu.return
    }
  }
}

// -----

// Nor where the schedule has none, on a chip without barriers that copies complete.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @wrong_chip_by_op() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      // expected-error @below {{'kvbuffer.ring' op joins teams by barriers in LDS that a copy engine completes, which sm_80 does not have}}
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @no_registers() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      kvbuffer.teams {
        // expected-error @below {{'kvbuffer.team' op has registers(240), but sm_80 hands out none anew; expected a team without registers}}
        kvbuffer.team @multiply warps(4) registers(240) {
        }
        kvbuffer.team @load warps(4) {
        }
      }
      gpu.return
    }
  }
}

// -----

// Rings by themselves hand out no registers.
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_90"} {
  gpu.module @m {
    gpu.func @no_registers_beside_rings() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      kvbuffer.teams {
        // expected-error @below {{'kvbuffer.team' op has registers(240), but sm_90 hands out none anew; expected a team without registers}}
        kvbuffer.team @multiply warps(4) registers(240) {
        }
        kvbuffer.team @load warps(4) {
        }
      }
      gpu.return
    }
  }
}

// -----

// Nor do they multiply.
#kbuf = #kvbuffer.kv_buffer<32x64xbf16, stages = 2, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_90"} {
  gpu.module @m {
    gpu.func @no_products() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @load to [@multiply] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @multiply warps(4) {
          %ks = kvbuffer.ring_wait %kring[%c0] : !kvbuffer.ring<#kbuf>
          %q = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<64x64xbf16, a>
          // expected-error @below {{'kvbuffer.mma_start' op is for chips whose matrix unit reads operands from LDS by itself, which that of sm_90 does not}}
          %sp = kvbuffer.mma_start %q, %ks {transpose_b} : !kvbuffer.fragment<64x64xbf16, a>, !kvbuffer.staged<#kbuf> -> !kvbuffer.pending<64x32xf32>
        }
        kvbuffer.team @load warps(1) {
        }
      }
      gpu.return
    }
  }
}

// -----

// Groups multiply by an instruction of theirs.
#kbuf = #kvbuffer.kv_buffer<32x64xbf16, stages = 2, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @named_otherwise() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @load to [@multiply] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @multiply warps(4) {
          %ks = kvbuffer.ring_wait %kring[%c0] : !kvbuffer.ring<#kbuf>
          %q = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<64x64xbf16, a>
          // expected-error @below {{'kvbuffer.mma_start' op is executed by a group of warps, in a kernel whose schedule has mma_shape = 16x8x16, which each warp executes for itself; expected 64x8x16}}
          %sp = kvbuffer.mma_start %q, %ks {transpose_b} : !kvbuffer.fragment<64x64xbf16, a>, !kvbuffer.staged<#kbuf> -> !kvbuffer.pending<64x32xf32>
        }
        kvbuffer.team @load warps(1) {
        }
      }
      gpu.return
    }
  }
}

// -----

// And such an instruction is of some product.
#kbuf = #kvbuffer.kv_buffer<32x64xbf16, stages = 2, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16]>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @by_warps() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @load to [@multiply] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @multiply warps(4) {
          %ks = kvbuffer.ring_wait %kring[%c0] : !kvbuffer.ring<#kbuf>
          %q = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<64x64xbf16, a>
          %k = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<32x64xbf16, b>
          %zero = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<64x32xf32, acc>
          // expected-error @below {{'kvbuffer.mma' op is executed by each warp for itself, in a kernel whose schedule has mma_shape = 64x8x16, which groups of warps execute; expected 16x8x16, or whole groups of warps that read operand b from a ring's slot}}
          %s = kvbuffer.mma %q, %k, %zero {transpose_b} : !kvbuffer.fragment<64x64xbf16, a>, !kvbuffer.fragment<32x64xbf16, b>, !kvbuffer.fragment<64x32xf32, acc>
        }
        kvbuffer.team @load warps(1) {
        }
      }
      gpu.return
    }
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @part_of_a_group() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        // expected-error @below {{'kvbuffer.team' op has 6 warps, from warp 0 on; expected whole groups of 4, which multiply together on sm_90a}}
        kvbuffer.team @consumers warps(6) {
          // expected-note @below {{this is done by a group}}
          kvbuffer.turn_wait
        }
        kvbuffer.team @producers warps(4) {
        }
      }
      gpu.return
    }
  }
}

// -----

// One warp that moves, in front of those that multiply.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @across_groups() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c1 = arith.constant 1 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @producers warps(1) {
          %tile = kvbuffer.next_tile of %c1
        }
        // expected-error @below {{'kvbuffer.team' op has 4 warps, from warp 1 on; expected whole groups of 4, which multiply together on sm_90a}}
        kvbuffer.team @consumers warps(4) {
          // expected-note @below {{this is done by a group}}
          kvbuffer.turn_wait
        }
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @registers_of_few() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(240) {
        }
        // expected-error @below {{'kvbuffer.team' op has registers(24) for 2 warps, from warp 4 on; sm_90a hands them out to whole groups of 4}}
        kvbuffer.team @producers warps(2) registers(24) {
        }
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @all_registers() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      // expected-error @below {{'kvbuffer.teams' op has teams of 67584 registers together; a block of 384 threads starts with 64512 on sm_90a}}
      kvbuffer.teams {
        kvbuffer.team @consumers warps(8) registers(240) {
        }
        kvbuffer.team @producers warps(4) registers(48) {
        }
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @goes_on() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      // expected-error @below {{'kvbuffer.teams' op hands out registers anew, after which nothing else can run; expected it to be the last op of the kernel, or teams without registers}}
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(240) {
        }
        kvbuffer.team @producers warps(4) registers(24) {
        }
      }
      // expected-note @below {{what follows is here}}
      kvbuffer.teams {
        kvbuffer.team @all warps(8) {
        }
      }
      gpu.return
    }
  }
}

// -----

// Barriers are made ready once.
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @in_a_loop() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c0 to %c1 step %c1 {
        // expected-error @below {{'kvbuffer.mailbox' op is in scf.for; expected it in the kernel's body}}
        %box = kvbuffer.mailbox from @ask to [@use] {slots = 2 : i64}
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @teams_in_a_loop() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %box = kvbuffer.mailbox from @ask to [@use] {slots = 2 : i64}
      scf.for %i = %c0 to %c1 step %c1 {
        // expected-error @below {{'kvbuffer.teams' op is in scf.for; expected it in the kernel's body, as rings join its teams}}
        kvbuffer.teams {
          kvbuffer.team @use warps(4) {
            %n = kvbuffer.mailbox_take %box[%i]
          }
          kvbuffer.team @ask warps(4) {
            kvbuffer.mailbox_post %i to %box[%i]
          }
        }
      }
      gpu.return
    }
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @block_load(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c0 : !kv -> !kvbuffer.tile<32x64xbf16>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
          %own = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
          // expected-error @below {{'kvbuffer.dram_load' op has no per-lane form beside kvbuffer.ring; expected kvbuffer.ring_load}}
          %token = kvbuffer.dram_load %kt into %own[%c0] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.buffer<#kbuf>
        }
        kvbuffer.team @producers warps(4) {
        }
      }
      gpu.return
    }
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @passed_on(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
        }
        kvbuffer.team @producers warps(4) {
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c0 : !kv -> !kvbuffer.tile<32x64xbf16>
          %last = scf.for %i = %c0 to %c1 step %c1 iter_args(%t = %kt) -> !kvbuffer.tile<32x64xbf16> {
            // expected-error @below {{'kvbuffer.ring_load' op expected a tile that kvbuffer.cache_tile or kvbuffer.dram_tile makes}}
            kvbuffer.ring_load %t into %kring[%i] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.ring<#kbuf>
            scf.yield %t : !kvbuffer.tile<32x64xbf16>
          }
        }
      }
      gpu.return
    }
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @ring_passed_on(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: memref<?x?x1x64xbf16> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
          %last = scf.for %i = %c0 to %c1 step %c1 iter_args(%r = %kring) -> !kvbuffer.ring<#kbuf> {
            // expected-error-re @below {{'kvbuffer.ring_wait' op uses a '!kvbuffer.ring<{{.*}}>' that is passed on; expected the result of kvbuffer.ring}}
            %ks = kvbuffer.ring_wait %r[%i] : !kvbuffer.ring<#kbuf>
            scf.yield %r : !kvbuffer.ring<#kbuf>
          }
        }
        kvbuffer.team @producers warps(4) {
        }
      }
      gpu.return
    }
  }
}

// -----

// Rows that are not packed have no other bytes than their slot's.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @ahead(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
        }
        kvbuffer.team @producers warps(4) {
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c0 : !kv -> !kvbuffer.tile<32x64xbf16>
          // expected-error @below {{'kvbuffer.ring_load' op runs ahead of its slot; expected packed rows or pages that lanes copy, and a chip that copies boxes}}
          kvbuffer.ring_load %kt into %kring[%c0] {begin} : !kvbuffer.tile<32x64xbf16>, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}

// -----

// A swizzle that the copy engine does not have.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [2, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @swizzle(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
        }
        kvbuffer.team @producers warps(4) {
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c0 : !kv -> !kvbuffer.tile<32x64xbf16>
          // expected-error @below {{'kvbuffer.ring_load' op expected a buffer with swizzle = [3, 0, 3], which the copy engine uses for rows of 128 bytes, got [2, 0, 3]}}
          kvbuffer.ring_load %kt into %kring[%c0] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}

// -----

// Rows of 256 bytes.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 4], BN = 32, WN = 32, BK = 128, num_threads = 128, depth = 128, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 128, warps = 4, mma_shape = [64, 8, 16], producers = 4>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 128>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @wide_rows(%q: memref<?x?x1x128xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
        }
        kvbuffer.team @producers warps(4) {
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c0 : !kv -> !kvbuffer.tile<32x128xbf16>
          // expected-error @below {{'kvbuffer.ring_load' op cannot move or multiply LDS blocks with rows of 256 bytes; expected BK to give 32, 64 or 128}}
          kvbuffer.ring_load %kt into %kring[%c0] : !kvbuffer.tile<32x128xbf16>, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}

// -----

// A box of too many rows.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 512, WN = 512, BK = 64, num_threads = 128, depth = 64, stages = 1>
#schedule = #kvbuffer.schedule<BM = 64, BN = 512, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @many_rows(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
        }
        kvbuffer.team @producers warps(4) {
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c0 : !kv -> !kvbuffer.tile<512x64xbf16>
          // expected-error @below {{'kvbuffer.ring_load' op loads 512 rows, the copy engine at most 256}}
          kvbuffer.ring_load %kt into %kring[%c0] : !kvbuffer.tile<512x64xbf16>, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}

// -----

// 32 rows a warp.
#qbuf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 128, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 1>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @warp_rows(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: memref<?x?x1x64xbf16> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %qbuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %qring = kvbuffer.ring %qbuf from @producers to [@consumers] : !kvbuffer.buffer<#qbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
          %qs = kvbuffer.ring_wait %qring[%c0] : !kvbuffer.ring<#qbuf>
          %ks = kvbuffer.ring_wait %kring[%c0] : !kvbuffer.ring<#kbuf>
          // expected-error @below {{'kvbuffer.mma_start' op has 32 rows a warp, wgmma multiplies 16}}
          %s = kvbuffer.mma_start %qs, %ks {transpose_b} : !kvbuffer.staged<#qbuf>, !kvbuffer.staged<#kbuf> -> !kvbuffer.pending<128x32xf32>
        }
        kvbuffer.team @producers warps(4) {
        }
      }
      gpu.return
    }
  }
}

// -----

// More keys than one wgmma has columns.
#qbuf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 16, BK = 64, num_threads = 128, depth = 64, stages = 1>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 512, WN = 512, BK = 64, num_threads = 128, depth = 64, stages = 1>
#schedule = #kvbuffer.schedule<BM = 64, BN = 512, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @columns(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: memref<?x?x1x64xbf16> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %qbuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %qring = kvbuffer.ring %qbuf from @producers to [@consumers] : !kvbuffer.buffer<#qbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
          %qs = kvbuffer.ring_wait %qring[%c0] : !kvbuffer.ring<#qbuf>
          %ks = kvbuffer.ring_wait %kring[%c0] : !kvbuffer.ring<#kbuf>
          // expected-error @below {{'kvbuffer.mma_start' op has 512 columns; one wgmma has a multiple of 8, at most 256}}
          %s = kvbuffer.mma_start %qs, %ks {transpose_b} : !kvbuffer.staged<#qbuf>, !kvbuffer.staged<#kbuf> -> !kvbuffer.pending<64x512xf32>
        }
        kvbuffer.team @producers warps(4) {
        }
      }
      gpu.return
    }
  }
}

// -----

// O through a buffer of another shape.
#obuf = #kvbuffer.kv_buffer<o, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
!qo = memref<?x?x1x64xbf16>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @output(%q: !qo {kvbuffer.name = "q"}, %k: !qo {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %obuf = kvbuffer.alloc : !kvbuffer.buffer<#obuf>
      %ring = kvbuffer.ring %obuf from @producers to [@consumers] : !kvbuffer.buffer<#obuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
          %acc = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<64x64xf32, acc>
          %o = kvbuffer.fragment_convert %acc : !kvbuffer.fragment<64x64xf32, acc> -> !kvbuffer.fragment<64x64xbf16, acc>
          %t = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c0) : !qo -> !kvbuffer.tile<64x64xbf16>
          // expected-error @below {{'kvbuffer.fragment_store' op goes through a buffer of 2 x 32 x 64, expected 1 x 64 x 64}}
          kvbuffer.fragment_store %o, %t via %obuf : !kvbuffer.buffer<#obuf> : !kvbuffer.fragment<64x64xbf16, acc>, !kvbuffer.tile<64x64xbf16>
        }
        kvbuffer.team @producers warps(4) {
        }
      }
      gpu.return
    }
  }
}

// -----

// Clusters that the kernel does not have, and what does not go with them.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @single(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: memref<?x?x1x64xbf16> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      // expected-error @below {{'kvbuffer.ring' op is shared, but the kernel has no clusters; expected 'known_cluster_size'}}
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] {shared} : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
        }
        kvbuffer.team @producers warps(4) {
        }
      }
      gpu.return
    }
  }
}

// -----

// Parts of a tile that the swizzle does not begin in anew.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @parts(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {known_cluster_size = array<i32: 8, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] {shared} : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
        }
        kvbuffer.team @producers warps(4) {
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c32 : !kv -> !kvbuffer.tile<32x64xbf16>
          // expected-error @below {{'kvbuffer.ring_load' op cannot divide 32 rows among 8 blocks; expected a multiple of 64}}
          kvbuffer.ring_load %kt into %kring[%c0] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}

// -----

// A question that a group of warps answers, where there are no groups.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @sign() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      %m = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<64x1xf32, row>
      // expected-error @below {{'kvbuffer.any_negative' op is expected in a kvbuffer.team}}
      %some = kvbuffer.any_negative %m : !kvbuffer.fragment<64x1xf32, row>
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @alike() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %m = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<64x1xf32, row>
      kvbuffer.teams {
        kvbuffer.team @one warps(4) {
          // expected-error @below {{'kvbuffer.any_negative' op has no per-lane form in a kernel without kvbuffer.ring}}
          %some = kvbuffer.any_negative %m : !kvbuffer.fragment<64x1xf32, row>
        }
      }
      gpu.return
    }
  }
}

// -----

// A page that holds whole tiles, looked up once, where a tile may begin in its middle.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], producers = 4, producer_registers = 40, consumer_registers = 232>
!k = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = 64>
!tile = !kvbuffer.tile<32x64xbf16>
module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @two_pages(%k: !k {kvbuffer.name = "k"}) kernel attributes {known_block_size = array<i32: 256, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %keys = kvbuffer.cache.num_keys %k[%c0] new(%c0) : !k
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(232) {
        }
        kvbuffer.team @producers warps(4) registers(40) {
          // expected-error @below {{'kvbuffer.cache_tile' op starts at a key that is not known to be a multiple of the tile's 32 rows, so that the tile may lie in two pages; expected a multiple of a constant, or page_size = 64 on the tile}}
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c16] from %c0 upto %keys : !k -> !tile
          kvbuffer.ring_load %kt into %kring[%c0] {whole} : !tile, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}

// -----

// Rows of pages of one token are copied by two warps, a tensor's come in a box: who waits
// counts as many arrivals for each filling.
#buf = #kvbuffer.kv_buffer<64x64xbf16, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, warps = 4, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @arrivals(%x: memref<?x64xbf16> {kvbuffer.name = "x", kvbuffer.shape = ["n", 64]},
                       %k: !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = 1> {kvbuffer.name = "k"})
        kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %slots = kvbuffer.alloc {offset = 0 : i64} : !kvbuffer.buffer<#buf>
      %ring = kvbuffer.ring %slots from @load to [@read] : !kvbuffer.buffer<#buf>
      kvbuffer.teams {
        kvbuffer.team @read warps(4) {
          %s = kvbuffer.ring_wait %ring[%c0] : !kvbuffer.ring<#buf>
          kvbuffer.ring_release %ring[%c0] : !kvbuffer.ring<#buf>
        }
        kvbuffer.team @load warps(4) {
          %a = kvbuffer.dram_tile %x[%c0, %c0] valid(%c64, %c64) : memref<?x64xbf16> -> !kvbuffer.tile<64x64xbf16>
          // expected-error @below {{'kvbuffer.ring_load' op is the work of 1 warp, another load into the ring that of 2, and as many arrive for each filling; expected tiles that come alike}}
          kvbuffer.ring_load %a into %ring[%c0] : !kvbuffer.tile<64x64xbf16>, !kvbuffer.ring<#buf>
          %b = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c64 : !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = 1> -> !kvbuffer.tile<64x64xbf16, page_size = 1>
          // expected-note @below {{the other load is here}}
          kvbuffer.ring_load %b into %ring[%c1] : !kvbuffer.tile<64x64xbf16, page_size = 1>, !kvbuffer.ring<#buf>
        }
      }
      gpu.return
    }
  }
}

// -----

// A ring before the teams does not hide what they ask for.
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16]>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
module attributes {kvbuffer.target = "sm_90"} {
  gpu.module @m {
    gpu.func @no_registers_behind_a_ring() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @producers warps(4) {
        }
        // expected-error @below {{'kvbuffer.team' op has registers(240), but sm_90 hands out none anew; expected a team without registers}}
        kvbuffer.team @consumers warps(4) registers(240) {
        }
      }
      gpu.return
    }
  }
}

// -----

// Who widens packed rows fills a slot by the parts of the ring's own columns.
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
#kbuf = #kvbuffer.kv_buffer<64x64xbf16, stages = 2, BK = 64, swizzle = [3, 0, 3], cache_depth = 576>
!k = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 1, row = <bytes = 656, parts = [<count = 512, element = f8E4M3FN, at = 0, scale = f32, granularity = 128, scale_at = 512>, <count = 64, element = bf16, at = 528>]>>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @columns_of_packed_rows(%k: !k {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
        }
        kvbuffer.team @producers warps(4) {
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c64 : !k -> !kvbuffer.tile<64x576xbf16, page_size = 1>
          // expected-error @below {{'kvbuffer.ring_load' op loads columns of packed rows from the ring's 64 on; expected a ring for each part of them}}
          kvbuffer.ring_load %kt into %kring[%c0] {first_col = 64 : i64} : !kvbuffer.tile<64x576xbf16, page_size = 1>, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}

// -----

// Rows of any width are an engine's, which chips have or not.
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @no_boxes() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      // expected-error @below {{'kvbuffer.alloc' op has a buffer with BK = 40, no power of two, of which the copy engine of a chip takes at most 256 columns, side by side, and sm_80 has none}}
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#kvbuffer.kv_buffer<64x40xf32>>
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @too_wide() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      // expected-error @below {{'kvbuffer.alloc' op has a buffer with BK = 264, no power of two, of which the copy engine of a chip takes at most 256 columns, side by side, and sm_90a no others}}
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#kvbuffer.kv_buffer<64x264xf32>>
      gpu.return
    }
  }
}

// -----

// And lanes read them, who put nothing there.
#buf = #kvbuffer.kv_buffer<64x40xf32, stages = 2>
#acc = #kvbuffer.mma<wgmma, acc, shape = [64, 8, 16], warps = [4, 1]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @no_box() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %ring = kvbuffer.ring %buf from @producers to [@consumers] : !kvbuffer.buffer<#buf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
        }
        kvbuffer.team @producers warps(4) {
          %c0 = arith.constant 0 : index
          %f = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<64x40xf32, acc, #acc>
          // expected-error @below {{'kvbuffer.ring_put' op has a buffer with BK = 40, no power of two, of which rings are made, which kvbuffer.ring_load fills}}
          kvbuffer.ring_put %f into %ring[%c0] : !kvbuffer.fragment<64x40xf32, acc, #acc>, !kvbuffer.ring<#buf>
        }
      }
      gpu.return
    }
  }
}

// -----

// Clusters of a chip whose kernels have none.
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4, tiles = static, cluster = 2>
module attributes {kvbuffer.target = "sm_90"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has a schedule that does not fit: cluster = 2 does not fit sm_90, whose blocks load no tiles for each other; expected at most 1}}
    gpu.func @no_clusters() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4, tiles = static, cluster = 16>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has a schedule that does not fit: cluster = 16 does not fit sm_90a, whose blocks load no tiles for so many others; expected at most 8}}
    gpu.func @large_clusters() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      gpu.return
    }
  }
}
