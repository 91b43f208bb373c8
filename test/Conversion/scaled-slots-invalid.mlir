// Lanes multiply slots of rings alone, whose products the matrix unit reads by itself.
// RUN: kvbuf-opt %s --convert-kvbuffer-to-gpu --split-input-file --verify-diagnostics

#schedule = #kvbuffer.schedule<BM = 32, BN = 16, BK = 32, stages = 1, warps = 2, mma_shape = [16, 8, 16]>
#qbuf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [2, 0, 3], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 32, stages = 1>
!x = memref<?x?x1x32xbf16>

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @no_ring(%x: !x {kvbuffer.name = "x"})
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %buffer = kvbuffer.alloc {offset = 0 : i64} : !kvbuffer.buffer<#qbuf>
      %tile = kvbuffer.dram_tile %x[%c0, %c0, %c0] valid(%c32) : !x -> !kvbuffer.tile<32x32xbf16>
      %token = kvbuffer.dram_load %tile into %buffer[%c0] : !kvbuffer.tile<32x32xbf16>, !kvbuffer.buffer<#qbuf>
      // expected-error @below {{'kvbuffer.lds_stage' op has kvbuffer.scaled_by, which slots of rings alone may have here}}
      %staged = kvbuffer.lds_stage %token {younger = 0 : i64, kvbuffer.scaled_by = 0.5 : f32} : !kvbuffer.token<#qbuf>
      gpu.return
    }
  }
}

// -----

// On chips whose products read fragments that lanes have loaded, lanes multiply none of a ring.
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
          // expected-error @below {{'kvbuffer.ring_wait' op multiplies a slot; sm_90 has no products that read it by themselves}}
          %ks = kvbuffer.ring_wait %kring[%c0] {kvbuffer.scaled_by = 0.5 : f32} : !kvbuffer.ring<#kbuf>
        }
        kvbuffer.team @load warps(1) {
        }
      }
      gpu.return
    }
  }
}

// -----

// A slot that two teams await would be multiplied by each.
#qbuf = #kvbuffer.kv_buffer<64x64xbf16, stages = 1, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, warps = 4, mma_shape = [64, 8, 16]>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @two_teams() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %qbuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %qring = kvbuffer.ring %qbuf from @load to [@multiply, @again] : !kvbuffer.buffer<#qbuf>
      kvbuffer.teams {
        kvbuffer.team @multiply warps(4) {
          // expected-error @below {{'kvbuffer.ring_wait' op multiplies a slot that 2 teams await, which each would multiply; expected a ring to one team}}
          %qs = kvbuffer.ring_wait %qring[%c0] {kvbuffer.scaled_by = 0.5 : f32} : !kvbuffer.ring<#qbuf>
        }
        kvbuffer.team @again warps(4) {
          %qs = kvbuffer.ring_wait %qring[%c0] {kvbuffer.scaled_by = 0.5 : f32} : !kvbuffer.ring<#qbuf>
        }
        kvbuffer.team @load warps(4) {
        }
      }
      gpu.return
    }
  }
}

// -----

// So would a filling that each iteration of a loop awaits.
#qbuf = #kvbuffer.kv_buffer<64x64xbf16, stages = 1, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, warps = 4, mma_shape = [64, 8, 16]>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @in_a_loop() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %qbuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %qring = kvbuffer.ring %qbuf from @load to [@multiply] : !kvbuffer.buffer<#qbuf>
      kvbuffer.teams {
        kvbuffer.team @multiply warps(4) {
          scf.for %i = %c0 to %c4 step %c1 {
            // expected-error @below {{'kvbuffer.ring_wait' op multiplies the same filling in each iteration of a loop; expected it in front of the loop}}
            %qs = kvbuffer.ring_wait %qring[%c0] {kvbuffer.scaled_by = 0.5 : f32} : !kvbuffer.ring<#qbuf>
          }
        }
        kvbuffer.team @load warps(4) {
        }
      }
      gpu.return
    }
  }
}

// -----

// And one that is awaited twice.
#qbuf = #kvbuffer.kv_buffer<64x64xbf16, stages = 1, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, warps = 4, mma_shape = [64, 8, 16]>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @twice() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %qbuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %qring = kvbuffer.ring %qbuf from @load to [@multiply] : !kvbuffer.buffer<#qbuf>
      kvbuffer.teams {
        kvbuffer.team @multiply warps(4) {
          // expected-error @below {{'kvbuffer.ring_wait' op multiplies a filling that is awaited twice; expected one kvbuffer.ring_wait for it}}
          %qs = kvbuffer.ring_wait %qring[%c0] {kvbuffer.scaled_by = 0.5 : f32} : !kvbuffer.ring<#qbuf>
          // expected-note @below {{it is awaited here, too}}
          %again = kvbuffer.ring_wait %qring[%c0] : !kvbuffer.ring<#qbuf>
        }
        kvbuffer.team @load warps(4) {
        }
      }
      gpu.return
    }
  }
}

// -----

// What is read as columns of a product, groups read whole, and multiply in part.
#qbuf = #kvbuffer.kv_buffer<64x64xbf16, stages = 1, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, warps = 4, mma_shape = [64, 8, 16]>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @columns() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %qbuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %qring = kvbuffer.ring %qbuf from @load to [@multiply] : !kvbuffer.buffer<#qbuf>
      %kring = kvbuffer.ring %kbuf from @load to [@multiply] : !kvbuffer.buffer<#qbuf>
      kvbuffer.teams {
        kvbuffer.team @multiply warps(4) {
          %qs = kvbuffer.ring_wait %qring[%c0] : !kvbuffer.ring<#qbuf>
          // expected-error @below {{'kvbuffer.ring_wait' op multiplies a slot, of which each group of warps multiplies the rows that its products have; expected it as operand a of products alone}}
          %ks = kvbuffer.ring_wait %kring[%c0] {kvbuffer.scaled_by = 0.5 : f32} : !kvbuffer.ring<#qbuf>
          // expected-note @below {{it is read otherwise here}}
          %pending = kvbuffer.mma_start %qs, %ks {transpose_b} : !kvbuffer.staged<#qbuf>, !kvbuffer.staged<#qbuf> -> !kvbuffer.pending<64x64xf32>
        }
        kvbuffer.team @load warps(4) {
        }
      }
      gpu.return
    }
  }
}

// -----

// Rows that no group has would stay as they are.
#qbuf = #kvbuffer.kv_buffer<128x64xbf16, stages = 1, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, warps = 4, mma_shape = [64, 8, 16]>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @rows() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %qbuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %qring = kvbuffer.ring %qbuf from @load to [@multiply] : !kvbuffer.buffer<#qbuf>
      kvbuffer.teams {
        kvbuffer.team @multiply warps(4) {
          // expected-error @below {{'kvbuffer.ring_wait' op multiplies a slot of 128 rows, of which each of the team's 1 groups of warps multiplies 64; expected 64 rows}}
          %qs = kvbuffer.ring_wait %qring[%c0] {kvbuffer.scaled_by = 0.5 : f32} : !kvbuffer.ring<#qbuf>
        }
        kvbuffer.team @load warps(4) {
        }
      }
      gpu.return
    }
  }
}

// -----

// Nor what lanes read otherwise than as operand a of their own group's products.
#qbuf = #kvbuffer.kv_buffer<64x64xbf16, stages = 1, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, warps = 4, mma_shape = [64, 8, 16]>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @other_rows() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %qbuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %qring = kvbuffer.ring %qbuf from @load to [@multiply] : !kvbuffer.buffer<#qbuf>
      kvbuffer.teams {
        kvbuffer.team @multiply warps(4) {
          // expected-error @below {{'kvbuffer.ring_wait' op multiplies a slot, of which each group of warps multiplies the rows that its products have; expected it as operand a of products alone}}
          %qs = kvbuffer.ring_wait %qring[%c0] {kvbuffer.scaled_by = 0.5 : f32} : !kvbuffer.ring<#qbuf>
          %held = kvbuffer.fragment_load %qs[0, 0] : !kvbuffer.staged<#qbuf> -> !kvbuffer.fragment<64x64xbf16, a, #kvbuffer.mma<wgmma, a, shape = [64, 8, 16], warps = [4, 1]>>
          // expected-note @below {{it is read otherwise here}}
          %alone = kvbuffer.fragment_load %qs[0, 0] : !kvbuffer.staged<#qbuf> -> !kvbuffer.fragment<64x64xbf16, a, #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [4, 1]>>
        }
        kvbuffer.team @load warps(4) {
        }
      }
      gpu.return
    }
  }
}
