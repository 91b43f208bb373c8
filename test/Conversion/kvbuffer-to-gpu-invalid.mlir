// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" --split-input-file --verify-diagnostics

// A kernel without a chip to lower for.
gpu.module @m {
  // expected-error @below {{'gpu.func' op needs a 'kvbuffer.schedule' and a 'kvbuffer.target' on the module}}
  gpu.func @no_target() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
    gpu.return
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has a schedule that does not fit: sm_80 has no matrix instruction of shape 32x32x8; it has 16x8x16}}
    gpu.func @other_mma() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 8]>} {
      gpu.return
    }
  }
}

// -----

// An instruction of products that there are none of.

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has a schedule with scores = 16x8x16, but no product that contracts the columns of operand b; expected mma_shape for all products}}
    gpu.func @no_product() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, scores = #kvbuffer.instruction<mma_sync, [16, 8, 16]>, values = #kvbuffer.instruction<mma_sync, [16, 8, 16]>>} {
      gpu.return
    }
  }
}

// -----

// Limits of schedules are the same for whoever wrote a kernel.

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has a schedule that does not fit: a schedule of 2048 threads does not fit sm_80, which has at most 1024 in a block}}
    gpu.func @threads() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 1024, BN = 16, BK = 16, warps = 64, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has a schedule that does not fit: no 16x8x16 instruction divides the rows of a warp, BM / warps = 8; expected a multiple of 16}}
    gpu.func @rows() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 16, BK = 16, warps = 4, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has a schedule that does not fit: producers = 4 does not fit sm_80, which has no barriers in shared memory that copies complete; expected producers = 0}}
    gpu.func @roles() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [16, 8, 16], producers = 4>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has a schedule that does not fit: ping_pong needs warps with roles; expected producers > 0}}
    gpu.func @halves() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [16, 8, 16], overlap = true, ping_pong = true, lazy_rescale = true>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has a schedule that does not fit: warps = 2 is no whole number of groups of 4; warps = 4 would fit}}
    gpu.func @warps() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 2, mma_shape = [64, 8, 16], producers = 4>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has a schedule that does not fit: BM = 128 is not 64 rows for each of 1 groups of 4 warps; BM = 64 would fit}}
    gpu.func @groups() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 128, BN = 16, BK = 16, warps = 4, mma_shape = [64, 8, 16], producers = 4>} {
      gpu.return
    }
  }
}

// -----

// 32 * (8 * 240 + 4 * 40); 384 threads start with 168 registers each. 4 * 40
// leave 7 * 32 * 8 for 8 warps, in steps of 8: 232.
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has a schedule that does not fit: the roles take 66560 registers, sm_90a gives 64512 to a block of 384 threads; consumer_registers = 232 would fit}}
    gpu.func @registers() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 128, BN = 16, BK = 16, warps = 8, mma_shape = [64, 8, 16], producers = 4, producer_registers = 40, consumer_registers = 240>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op argument 0 has no 'kvbuffer.name', the name of its tensor}}
    gpu.func @nameless(%q: memref<?x?x2x64xbf16>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

// What a manifest could not describe.
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has two arguments with 'kvbuffer.name' = "q"}}
    gpu.func @k(%q: memref<?x?x2x64xbf16> {kvbuffer.name = "q"}, %r: memref<?x?x2x64xbf16> {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op argument 0 is "bias" of type 'index'; expected a cache or a strided memref of rank 1 or more}}
    gpu.func @k(%x: index {kvbuffer.name = "bias"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op argument 0 is "x" of type 'memref<f32>'; expected a cache or a strided memref of rank 1 or more}}
    gpu.func @k(%x: memref<f32> {kvbuffer.name = "x"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op argument 0 is "x" of type 'memref<?x8xbf16, strided<[1, 16]>>'; expected elements of the last dimension side by side, a stride of 1}}
    gpu.func @k(%x: memref<?x8xbf16, strided<[1, 16]>> {kvbuffer.name = "x"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op argument 0 is "x" with elements 'i8'; expected bf16, f16, f32, an 8-bit float, i32 or i64}}
    gpu.func @k(%x: memref<?xi8> {kvbuffer.name = "x"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op attribute 'kvbuffer.access' of argument 0 must be "read", "write", "read_write", "workspace" or "counter", got "append"}}
    gpu.func @k(%x: memref<?xf32> {kvbuffer.name = "x", kvbuffer.access = "append"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op argument 0 has 'kvbuffer.shape' = ["n"]; expected an array of 2 names, numbers or expressions}}
    gpu.func @k(%x: memref<?x?xf32> {kvbuffer.name = "x", kvbuffer.shape = ["n"]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op argument 0 has 'kvbuffer.shape' = ["n", 8], whose dimension 1 differs from that of 'memref<?x4xf32>'}}
    gpu.func @k(%x: memref<?x4xf32> {kvbuffer.name = "x", kvbuffer.shape = ["n", 8]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

// A size that the type leaves open and the shape has as a number.
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op asks for size 0 of argument 0, which has no name in its 'kvbuffer.shape'}}
    gpu.func @k(%x: memref<?xf32> {kvbuffer.name = "x", kvbuffer.shape = [5]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : memref<?xf32>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op argument 1 fixes batch at 3, an argument before it at 2}}
    gpu.func @k(%q: memref<2x?x2x64xbf16> {kvbuffer.name = "q", kvbuffer.shape = ["batch", "seq_q", 2, 64]}, %o: memref<3x?x2x64xbf16> {kvbuffer.name = "o", kvbuffer.shape = ["batch", "seq_q", 2, 64]}, %k: !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

// Threads that are not those of the schedule.
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has known_block_size = array<i32: 64, 1, 1>, but its schedule is for 32 threads; expected array<i32: 32, 1, 1>}}
    gpu.func @threads() kernel attributes {known_block_size = array<i32: 64, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

// K's rows in the order of weights: no read gives a lane those.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [32, 32, 8], swizzle = [2, 0, 4], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 32, warp_size = 64>
!qo = memref<?x?x1x32xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 32>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @orders(%q: !qo {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 8], swap_a_b = true>} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c32 : !kv -> !kvbuffer.tile<32x32xbf16>
      %t = kvbuffer.dram_load %kt into %kbuf[%c0] : !kvbuffer.tile<32x32xbf16>, !kvbuffer.buffer<#kbuf>
      %ks = kvbuffer.lds_stage %t {younger = 0 : i64} : !kvbuffer.token<#kbuf>
      %acc = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<32x32xf32, acc>
      %a = kvbuffer.fragment_convert %acc : !kvbuffer.fragment<32x32xf32, acc> -> !kvbuffer.fragment<32x32xbf16, a>
      // expected-error @below {{'kvbuffer.fragment_load' op no read of LDS loads this operand's layout on gfx942, #kvbuffer.mma<mfma, b, shape = [32, 32, 8], group = 2, warps = [1, 1], transpose_b = true, swapped = true, order = [1, 2, 8, 4]>; expected contracted(rows), as its product's other operand comes from accumulators}}
      %b = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<32x32xbf16, b>
      %s = kvbuffer.mma %a, %b, %acc {transpose_b} : !kvbuffer.fragment<32x32xbf16, a>, !kvbuffer.fragment<32x32xbf16, b>, !kvbuffer.fragment<32x32xf32, acc>
      gpu.return
    }
  }
}

// -----

// Without a phase nothing says that this is a kernel.
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-note @below {{the function is here}}
    gpu.func @phaseless() kernel {
      // expected-error @below {{'kvbuffer.fragment_fill' op is in a function without 'kvbuffer.phase', which is not lowered; expected #kvbuffer.phase<tile> or #kvbuffer.phase<scheduled> on it}}
      %zero = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<32x32xf32, acc>
      gpu.return
    }
  }
}

// -----

// Fragments and parts of them that are no whole instructions.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 32, WN = 32, BK = 32, num_threads = 32, depth = 32>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @columns(%ks: !kvbuffer.staged<#kbuf>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 32, warps = 1, mma_shape = [16, 8, 16]>} {
      // expected-error @below {{'kvbuffer.fragment_load' op has a fragment of 32x8, which is not made of whole 16x8x16 instructions; expected rows in multiples of 8 and columns in multiples of 16}}
      %k = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<32x8xbf16, b>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @part(%w: !kvbuffer.fragment<16x32xbf16, a>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 32, warps = 1, mma_shape = [16, 8, 16]>} {
      // expected-error @below {{'kvbuffer.fragment_slice' op begins at row 0 and column 8, between two 16x8x16 instructions; expected a row and a column that are multiples of 16 and 16}}
      %a = kvbuffer.fragment_slice %w[0, 8] : !kvbuffer.fragment<16x32xbf16, a> -> !kvbuffer.fragment<16x16xbf16, a>
      gpu.return
    }
  }
}

// -----

// Layouts by hand that lanes cannot have.
#acc = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 2]>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @columns() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 32, warps = 1, mma_shape = [16, 8, 16]>} {
      // expected-error @below {{'kvbuffer.fragment_fill' op has a fragment over a grid of 1 x 2 warps in a kernel whose schedule has 1 warps; expected a grid of as many, both powers of two}}
      %zero = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x32xf32, acc, #acc>
      gpu.return
    }
  }
}

// -----

// Columns that two warps share.
#acc = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 2]>
#rows = #kvbuffer.slice<row of #acc>
!s = !kvbuffer.fragment<16x32xf32, acc, #acc>
!row = !kvbuffer.fragment<16x1xf32, row, #rows>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @part(%s: !s) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 32, warps = 2, mma_shape = [16, 8, 16], warp_cols = 2>} {
      // expected-error @below {{'kvbuffer.fragment_slice' op has a fragment whose columns 2 warps share, and some of them alone; expected all 32 columns}}
      %part = kvbuffer.fragment_slice %s[0, 0] : !s -> !kvbuffer.fragment<16x16xf32, acc, #acc>
      gpu.return
    }
  }
}

// -----

#acc = #kvbuffer.mma<mfma, acc, shape = [16, 16, 32], warps = [1, 1]>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @waves() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 32, warps = 1, mma_shape = [16, 8, 16]>} {
      // expected-error @below {{'kvbuffer.fragment_fill' op has a fragment in the layout #kvbuffer.mma<mfma, acc, shape = [16, 16, 32], warps = [1, 1]>, which is for other waves than those of 32 lanes of sm_80}}
      %zero = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x32xf32, acc, #acc>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @rows() kernel attributes {kvbuffer.grid = [1, 1, 1], kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 2, mma_shape = [16, 8, 16]>} {
      %x = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<64x16xbf16, a>
      // expected-error @below {{'kvbuffer.fragment_slice' op takes some of the rows, which 2 warps share; expected all 64 rows}}
      %y = kvbuffer.fragment_slice %x [0, 0] : !kvbuffer.fragment<64x16xbf16, a> -> !kvbuffer.fragment<32x16xbf16, a>
      gpu.return
    }
  }
}

// -----

// An exchange between warps.
#a = #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [1, 1]>
#b = #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [2, 1]>
!qo = memref<?x?x1x16xbf16>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @moved(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.grid = [1, 1, 1], kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 2, mma_shape = [16, 8, 16]>} {
      %x = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<32x16xbf16, a, #a>
      // expected-error @below {{'kvbuffer.exchange' op cannot change #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [1, 1]> into #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [2, 1]>; expected layouts that give each warp the same elements, in whole instructions}}
      %y = kvbuffer.exchange %x : !kvbuffer.fragment<32x16xbf16, a, #a> -> !kvbuffer.fragment<32x16xbf16, a, #b>
      gpu.return
    }
  }
}

// -----

// Lanes' words of a fragment from DRAM are whole.
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @cut(%a: memref<?x?xbf16, strided<[?, 1]>> {kvbuffer.name = "a"}, %o: memref<?x?xbf16, strided<[?, 1]>> {kvbuffer.name = "o"}) kernel attributes {kvbuffer.grid = [1, 1, 1], kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [16, 8, 16]>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c20 = arith.constant 20 : index
      %c32 = arith.constant 32 : index
      %n = memref.dim %a, %c1 : memref<?x?xbf16, strided<[?, 1]>>
      %t = kvbuffer.dram_tile %a[%c0, %c0] valid(%c32, %n) : memref<?x?xbf16, strided<[?, 1]>> -> !kvbuffer.tile<32x32xbf16>
      // expected-error @below {{reads a window whose columns may be cut; expected 32 valid columns, a constant; others go through LDS by kvbuffer.dram_load}}
      %f = kvbuffer.tile_fragment %t : !kvbuffer.tile<32x32xbf16> -> !kvbuffer.fragment<32x32xbf16, a>
      %b = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<32x32xbf16, b>
      %z = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<32x32xf32, acc>
      %r = kvbuffer.mma %f, %b, %z : !kvbuffer.fragment<32x32xbf16, a>, !kvbuffer.fragment<32x32xbf16, b>, !kvbuffer.fragment<32x32xf32, acc>
      %h = kvbuffer.fragment_convert %r : !kvbuffer.fragment<32x32xf32, acc> -> !kvbuffer.fragment<32x32xbf16, acc>
      %ot = kvbuffer.dram_tile %o[%c0, %c0] valid(%c32, %c32) : memref<?x?xbf16, strided<[?, 1]>> -> !kvbuffer.tile<32x32xbf16>
      kvbuffer.fragment_store %h, %ot : !kvbuffer.fragment<32x32xbf16, acc>, !kvbuffer.tile<32x32xbf16>
      gpu.return
    }
  }
}

// -----

// Lanes' words of a fragment from DRAM are whole.
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @odd(%a: memref<?x?xbf16, strided<[?, 1]>> {kvbuffer.name = "a"}, %o: memref<?x?xbf16, strided<[?, 1]>> {kvbuffer.name = "o"}) kernel attributes {kvbuffer.grid = [1, 1, 1], kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [16, 8, 16]>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c20 = arith.constant 20 : index
      %c32 = arith.constant 32 : index
      %n = memref.dim %a, %c1 : memref<?x?xbf16, strided<[?, 1]>>
      %t = kvbuffer.dram_tile %a[%c0, %c0] valid(%c32, %c20) : memref<?x?xbf16, strided<[?, 1]>> -> !kvbuffer.tile<32x20xbf16>
      // expected-error @below {{reads 20 columns; expected a multiple of 8}}
      %f = kvbuffer.tile_fragment %t : !kvbuffer.tile<32x20xbf16> -> !kvbuffer.fragment<32x32xbf16, a>
      %b = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<32x32xbf16, b>
      %z = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<32x32xf32, acc>
      %r = kvbuffer.mma %f, %b, %z : !kvbuffer.fragment<32x32xbf16, a>, !kvbuffer.fragment<32x32xbf16, b>, !kvbuffer.fragment<32x32xf32, acc>
      %h = kvbuffer.fragment_convert %r : !kvbuffer.fragment<32x32xf32, acc> -> !kvbuffer.fragment<32x32xbf16, acc>
      %ot = kvbuffer.dram_tile %o[%c0, %c0] valid(%c32, %c32) : memref<?x?xbf16, strided<[?, 1]>> -> !kvbuffer.tile<32x32xbf16>
      kvbuffer.fragment_store %h, %ot : !kvbuffer.fragment<32x32xbf16, acc>, !kvbuffer.tile<32x32xbf16>
      gpu.return
    }
  }
}

// -----

// Lanes' words of a fragment from DRAM are whole.
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @cut(%a: memref<?x?xbf16, strided<[?, 1]>> {kvbuffer.name = "a"}, %o: memref<?x?xbf16, strided<[?, 1]>> {kvbuffer.name = "o"}) kernel attributes {kvbuffer.grid = [1, 1, 1], kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [16, 16, 16], swap_a_b = true>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c20 = arith.constant 20 : index
      %c32 = arith.constant 32 : index
      %n = memref.dim %a, %c1 : memref<?x?xbf16, strided<[?, 1]>>
      %t = kvbuffer.dram_tile %a[%c0, %c0] valid(%c32, %n) : memref<?x?xbf16, strided<[?, 1]>> -> !kvbuffer.tile<32x32xbf16>
      // expected-error @below {{reads a window whose columns may be cut; expected 32 valid columns, a constant; others go through LDS by kvbuffer.dram_load}}
      %f = kvbuffer.tile_fragment %t : !kvbuffer.tile<32x32xbf16> -> !kvbuffer.fragment<32x32xbf16, a>
      %b = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<32x32xbf16, b>
      %z = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<32x32xf32, acc>
      %r = kvbuffer.mma %f, %b, %z : !kvbuffer.fragment<32x32xbf16, a>, !kvbuffer.fragment<32x32xbf16, b>, !kvbuffer.fragment<32x32xf32, acc>
      %h = kvbuffer.fragment_convert %r : !kvbuffer.fragment<32x32xf32, acc> -> !kvbuffer.fragment<32x32xbf16, acc>
      %ot = kvbuffer.dram_tile %o[%c0, %c0] valid(%c32, %c32) : memref<?x?xbf16, strided<[?, 1]>> -> !kvbuffer.tile<32x32xbf16>
      kvbuffer.fragment_store %h, %ot : !kvbuffer.fragment<32x32xbf16, acc>, !kvbuffer.tile<32x32xbf16>
      gpu.return
    }
  }
}

// -----

// Lanes' words of a fragment from DRAM are whole.
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @odd(%a: memref<?x?xbf16, strided<[?, 1]>> {kvbuffer.name = "a"}, %o: memref<?x?xbf16, strided<[?, 1]>> {kvbuffer.name = "o"}) kernel attributes {kvbuffer.grid = [1, 1, 1], kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [16, 16, 16], swap_a_b = true>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c20 = arith.constant 20 : index
      %c32 = arith.constant 32 : index
      %n = memref.dim %a, %c1 : memref<?x?xbf16, strided<[?, 1]>>
      %t = kvbuffer.dram_tile %a[%c0, %c0] valid(%c32, %c20) : memref<?x?xbf16, strided<[?, 1]>> -> !kvbuffer.tile<32x20xbf16>
      // expected-error @below {{reads 20 columns; expected a multiple of 8}}
      %f = kvbuffer.tile_fragment %t : !kvbuffer.tile<32x20xbf16> -> !kvbuffer.fragment<32x32xbf16, a>
      %b = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<32x32xbf16, b>
      %z = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<32x32xf32, acc>
      %r = kvbuffer.mma %f, %b, %z : !kvbuffer.fragment<32x32xbf16, a>, !kvbuffer.fragment<32x32xbf16, b>, !kvbuffer.fragment<32x32xf32, acc>
      %h = kvbuffer.fragment_convert %r : !kvbuffer.fragment<32x32xf32, acc> -> !kvbuffer.fragment<32x32xbf16, acc>
      %ot = kvbuffer.dram_tile %o[%c0, %c0] valid(%c32, %c32) : memref<?x?xbf16, strided<[?, 1]>> -> !kvbuffer.tile<32x32xbf16>
      kvbuffer.fragment_store %h, %ot : !kvbuffer.fragment<32x32xbf16, acc>, !kvbuffer.tile<32x32xbf16>
      gpu.return
    }
  }
}

// -----

// Work that nobody has given to blocks.
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @work(%a: memref<?xi32> {kvbuffer.name = "a", kvbuffer.shape = ["n"]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, warps = 4, mma_shape = [16, 8, 16]>} {
      // expected-error @below {{'kvbuffer.work_item' op has no per-lane form: no block has an item yet; run kvbuf-assign-work first}}
      %i = kvbuffer.work_item [<"n">]
      gpu.return
    }
  }
}

// -----

// Slots are written down before lanes are.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [2, 0, 3], BN = 32, WN = 32, BK = 32, num_threads = 32, depth = 32, stages = 2>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 32>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @no_slot(%k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.grid = [1, 1, 1], kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 32, warps = 1, mma_shape = [16, 8, 16]>} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c32 : !kv -> !kvbuffer.tile<32x32xbf16>
      // expected-error @below {{'kvbuffer.dram_load' op names none of 2 slots; expected kvbuf-assign-slots to have run}}
      %t = kvbuffer.dram_load %kt into %kbuf : !kvbuffer.tile<32x32xbf16>, !kvbuffer.buffer<#kbuf>
      %ks = kvbuffer.lds_stage %t {younger = 0 : i64} : !kvbuffer.token<#kbuf>
      gpu.return
    }
  }
}

// -----

// Lanes of other warps hold the rows of the operand.
#acc = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 1]>
#a = #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [2, 1]>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @map() kernel attributes {known_block_size = array<i32: 64, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.grid = [1, 1, 1], kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 16, BK = 16, warps = 2, mma_shape = [16, 8, 16]>} {
      %s = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<32x16xf32, acc, #acc>
      %b = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<32x16xbf16, a, #a>
      // expected-error @below {{'kvbuffer.map' op has an input in the layout #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [2, 1]> of which lanes hold other elements than of the result in the layout #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 1]>}}
      %r = kvbuffer.map %s, %b : !kvbuffer.fragment<32x16xf32, acc, #acc>, !kvbuffer.fragment<32x16xbf16, a, #a> -> !kvbuffer.fragment<32x16xf32, acc, #acc> {
      ^bb0(%x: f32, %y: bf16, %i: index, %j: index):
        %z = arith.extf %y : bf16 to f32
        %t = arith.addf %x, %z : f32
        kvbuffer.yield %t : f32
      }
      gpu.return
    }
  }
}
