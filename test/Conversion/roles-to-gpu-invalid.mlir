// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" --split-input-file --verify-diagnostics

#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has a schedule that does not fit: producers = 4 does not fit sm_90, which has no products on operands in shared memory; expected producers = 0}}
    gpu.func @wrong_chip(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: memref<?x?x1x64xbf16> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      kvbuffer.warp_roles producers(4, 0) {
      } consumers(4, 0) {
      }
      gpu.return
    }
  }
}

// -----

// Nor where the schedule has none.
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_90"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has warp roles, but the matrix unit of sm_90 does not read operands from LDS by itself; expected a schedule with producers = 0}}
    gpu.func @wrong_chip_by_op(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: memref<?x?x1x64xbf16> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      kvbuffer.warp_roles producers(4, 0) {
      } consumers(4, 0) {
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @other_warps(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: memref<?x?x1x64xbf16> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      // expected-error @below {{'kvbuffer.warp_roles' op has 8 consumer and 1 producer warps, expected the schedule's 4 and 4}}
      kvbuffer.warp_roles producers(1, 0) {
      } consumers(8, 0) {
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 96, BN = 32, BK = 64, warps = 6, mma_shape = [16, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has a schedule that does not fit: warps = 6 is no whole number of groups of 4; warps = 8 would fit}}
    gpu.func @part_of_a_group(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: memref<?x?x1x64xbf16> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      kvbuffer.warp_roles producers(4, 0) {
      } consumers(6, 0) {
      }
      gpu.return
    }
  }
}

// -----

// Roles that no op divides.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @no_roles(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: memref<?x?x1x64xbf16> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      // expected-error @below {{'kvbuffer.ring' op has no per-lane form in a kernel without kvbuffer.warp_roles}}
      %kring = kvbuffer.ring %kbuf {releases = 1 : i64} : !kvbuffer.buffer<#kbuf>
      gpu.return
    }
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @outside(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: memref<?x?x1x64xbf16> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf {releases = 1 : i64} : !kvbuffer.buffer<#kbuf>
      // expected-error @below {{'kvbuffer.ring_wait' op belongs to a role; expected it inside of kvbuffer.warp_roles}}
      %ks = kvbuffer.ring_wait %kring[%c0] : !kvbuffer.ring<#kbuf>
      kvbuffer.warp_roles producers(4, 0) {
      } consumers(4, 0) {
      }
      gpu.return
    }
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @block_load(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c0 : !kv -> !kvbuffer.tile<32x64xbf16>
      // expected-error @below {{'kvbuffer.dram_load' op has no per-lane form beside kvbuffer.warp_roles; expected kvbuffer.ring_load}}
      %token = kvbuffer.dram_load %kt into %kbuf[%c0] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.buffer<#kbuf>
      kvbuffer.warp_roles producers(4, 0) {
      } consumers(4, 0) {
      }
      gpu.return
    }
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @passed_on(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf {releases = 1 : i64} : !kvbuffer.buffer<#kbuf>
      kvbuffer.warp_roles producers(4, 0) {
        %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c0 : !kv -> !kvbuffer.tile<32x64xbf16>
        %last = scf.for %i = %c0 to %c1 step %c1 iter_args(%t = %kt) -> !kvbuffer.tile<32x64xbf16> {
          // expected-error @below {{'kvbuffer.ring_load' op expected a tile that kvbuffer.cache_tile or kvbuffer.dram_tile makes}}
          kvbuffer.ring_load %t into %kring[%i] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.ring<#kbuf>
          scf.yield %t : !kvbuffer.tile<32x64xbf16>
        }
      } consumers(4, 0) {
      }
      gpu.return
    }
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @ring_passed_on(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: memref<?x?x1x64xbf16> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf {releases = 1 : i64} : !kvbuffer.buffer<#kbuf>
      kvbuffer.warp_roles producers(4, 0) {
      } consumers(4, 0) {
        %last = scf.for %i = %c0 to %c1 step %c1 iter_args(%r = %kring) -> !kvbuffer.ring<#kbuf> {
          // expected-error-re @below {{'kvbuffer.ring_wait' op uses a '!kvbuffer.ring<{{.*}}>' that is passed on; expected the result of kvbuffer.ring}}
          %ks = kvbuffer.ring_wait %r[%i] : !kvbuffer.ring<#kbuf>
          scf.yield %r : !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}

// -----

// A swizzle that the copy engine does not have.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [2, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @swizzle(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf {releases = 1 : i64} : !kvbuffer.buffer<#kbuf>
      kvbuffer.warp_roles producers(4, 0) {
        %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c0 : !kv -> !kvbuffer.tile<32x64xbf16>
        // expected-error @below {{'kvbuffer.ring_load' op expected a buffer with swizzle = [3, 0, 3], which the copy engine uses for rows of 128 bytes, got [2, 0, 3]}}
        kvbuffer.ring_load %kt into %kring[%c0] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.ring<#kbuf>
      } consumers(4, 0) {
      }
      gpu.return
    }
  }
}

// -----

// Rows of 256 bytes.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 4], BN = 32, WN = 32, BK = 128, num_threads = 128, depth = 128, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 128, warps = 4, mma_shape = [16, 8, 16], producers = 4>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 128>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @wide_rows(%q: memref<?x?x1x128xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf {releases = 1 : i64} : !kvbuffer.buffer<#kbuf>
      kvbuffer.warp_roles producers(4, 0) {
        %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c0 : !kv -> !kvbuffer.tile<32x128xbf16>
        // expected-error @below {{'kvbuffer.ring_load' op cannot move or multiply LDS blocks with rows of 256 bytes; expected BK to give 32, 64 or 128}}
        kvbuffer.ring_load %kt into %kring[%c0] : !kvbuffer.tile<32x128xbf16>, !kvbuffer.ring<#kbuf>
      } consumers(4, 0) {
      }
      gpu.return
    }
  }
}

// -----

// A box of too many rows.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 512, WN = 512, BK = 64, num_threads = 128, depth = 64, stages = 1>
#schedule = #kvbuffer.schedule<BM = 64, BN = 512, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @many_rows(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf {releases = 1 : i64} : !kvbuffer.buffer<#kbuf>
      kvbuffer.warp_roles producers(4, 0) {
        %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c0 : !kv -> !kvbuffer.tile<512x64xbf16>
        // expected-error @below {{'kvbuffer.ring_load' op loads 512 rows, the copy engine at most 256}}
        kvbuffer.ring_load %kt into %kring[%c0] : !kvbuffer.tile<512x64xbf16>, !kvbuffer.ring<#kbuf>
      } consumers(4, 0) {
      }
      gpu.return
    }
  }
}

// -----

// 32 rows a warp.
#qbuf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 128, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 1>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @warp_rows(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: memref<?x?x1x64xbf16> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %qbuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %qring = kvbuffer.ring %qbuf {releases = 1 : i64} : !kvbuffer.buffer<#qbuf>
      %kring = kvbuffer.ring %kbuf {releases = 1 : i64} : !kvbuffer.buffer<#kbuf>
      kvbuffer.warp_roles producers(4, 0) {
      } consumers(4, 0) {
        %qs = kvbuffer.ring_wait %qring[%c0] : !kvbuffer.ring<#qbuf>
        %ks = kvbuffer.ring_wait %kring[%c0] : !kvbuffer.ring<#kbuf>
        // expected-error @below {{'kvbuffer.mma_start' op has 32 rows a warp, wgmma multiplies 16}}
        %s = kvbuffer.mma_start %qs, %ks {transpose_b} : !kvbuffer.staged<#qbuf>, !kvbuffer.staged<#kbuf> -> !kvbuffer.pending<128x32xf32>
      }
      gpu.return
    }
  }
}

// -----

// More keys than one wgmma has columns.
#qbuf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 16, BK = 64, num_threads = 128, depth = 64, stages = 1>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 512, WN = 512, BK = 64, num_threads = 128, depth = 64, stages = 1>
#schedule = #kvbuffer.schedule<BM = 64, BN = 512, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @columns(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: memref<?x?x1x64xbf16> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %qbuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %qring = kvbuffer.ring %qbuf {releases = 1 : i64} : !kvbuffer.buffer<#qbuf>
      %kring = kvbuffer.ring %kbuf {releases = 1 : i64} : !kvbuffer.buffer<#kbuf>
      kvbuffer.warp_roles producers(4, 0) {
      } consumers(4, 0) {
        %qs = kvbuffer.ring_wait %qring[%c0] : !kvbuffer.ring<#qbuf>
        %ks = kvbuffer.ring_wait %kring[%c0] : !kvbuffer.ring<#kbuf>
        // expected-error @below {{'kvbuffer.mma_start' op has 512 columns; one wgmma has a multiple of 8, at most 256}}
        %s = kvbuffer.mma_start %qs, %ks {transpose_b} : !kvbuffer.staged<#qbuf>, !kvbuffer.staged<#kbuf> -> !kvbuffer.pending<64x512xf32>
      }
      gpu.return
    }
  }
}

// -----

// O through a buffer of another shape.
#obuf = #kvbuffer.kv_buffer<o, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
!qo = memref<?x?x1x64xbf16>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @output(%q: !qo {kvbuffer.name = "q"}, %k: !qo {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %obuf = kvbuffer.alloc : !kvbuffer.buffer<#obuf>
      kvbuffer.warp_roles producers(4, 0) {
      } consumers(4, 0) {
        %acc = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<64x64xf32, acc>
        %o = kvbuffer.fragment_convert %acc : !kvbuffer.fragment<64x64xf32, acc> -> !kvbuffer.fragment<64x64xbf16, acc>
        %t = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c0) : !qo -> !kvbuffer.tile<64x64xbf16>
        // expected-error @below {{'kvbuffer.fragment_store' op goes through a buffer of 2 x 32 x 64, expected 1 x 64 x 64}}
        kvbuffer.fragment_store %o, %t via %obuf : !kvbuffer.buffer<#obuf> : !kvbuffer.fragment<64x64xbf16, acc>, !kvbuffer.tile<64x64xbf16>
      }
      gpu.return
    }
  }
}

// -----

// Clusters that the kernel does not have, and what does not go with them.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @single(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: memref<?x?x1x64xbf16> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      // expected-error @below {{'kvbuffer.ring' op is shared, but the kernel has no clusters; expected 'known_cluster_size'}}
      %kring = kvbuffer.ring %kbuf {releases = 1 : i64, shared} : !kvbuffer.buffer<#kbuf>
      kvbuffer.warp_roles producers(4, 0) {
      } consumers(4, 0) {
      }
      gpu.return
    }
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
!kv = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = 16>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @copied(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf {releases = 1 : i64, shared} : !kvbuffer.buffer<#kbuf>
      kvbuffer.warp_roles producers(4, 0) {
        %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c0 : !kv -> !kvbuffer.tile<32x64xbf16, page_size = 16>
        // expected-error @below {{'kvbuffer.ring_load' op needs threads to copy, which does not go with cluster = 2}}
        kvbuffer.ring_load %kt into %kring[%c0] : !kvbuffer.tile<32x64xbf16, page_size = 16>, !kvbuffer.ring<#kbuf>
      } consumers(4, 0) {
      }
      gpu.return
    }
  }
}

// -----

// Parts of a tile that the swizzle does not begin in anew.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @parts(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {known_cluster_size = array<i32: 8, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf {releases = 1 : i64, shared} : !kvbuffer.buffer<#kbuf>
      kvbuffer.warp_roles producers(4, 0) {
        %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c32 : !kv -> !kvbuffer.tile<32x64xbf16>
        // expected-error @below {{'kvbuffer.ring_load' op cannot divide 32 rows among 8 blocks; expected a multiple of 64}}
        kvbuffer.ring_load %kt into %kring[%c0] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.ring<#kbuf>
      } consumers(4, 0) {
      }
      gpu.return
    }
  }
}

// -----

// A question that a group of warps answers, where there are no groups.
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [16, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @sign(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %m = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<64x1xf32, row>
      // expected-error @below {{'kvbuffer.any_negative' op belongs to a role; expected it inside of kvbuffer.warp_roles}}
      %some = kvbuffer.any_negative %m : !kvbuffer.fragment<64x1xf32, row>
      gpu.return
    }
  }
}
