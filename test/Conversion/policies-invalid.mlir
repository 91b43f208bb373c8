// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" --split-input-file --verify-diagnostics

// Buffers whose policy the chip, or whoever fills them, does not carry out.

#buf = #kvbuffer.kv_buffer<64x64xbf16, policy = register_staged, order = cols>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @turned() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      // expected-error @below {{'kvbuffer.alloc' op has a buffer with order = cols, which sm_80 needs not, as it reads shared memory transposed; expected order = rows}}
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      gpu.return
    }
  }
}

// -----

// The engine of gfx1250 copies rows as they are.
#buf = #kvbuffer.kv_buffer<64x64xbf16, BK = 64, swizzle = [3, 0, 3]>
module attributes {kvbuffer.target = "gfx1250"} {
  gpu.module @m {
    gpu.func @rows() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 64, BK = 64, warps = 1, mma_shape = [16, 16, 32], swap_a_b = true>} {
      // expected-error @below {{'kvbuffer.alloc' op has a buffer with a swizzle, which the engine that copies rows on gfx1250 has none of; expected none, or policy = register_staged}}
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      gpu.return
    }
  }
}

// -----

// Copies of 16 bytes keep what the swizzle would part together.
#buf = #kvbuffer.kv_buffer<64x32xf8E4M3FN, swizzle = [2, 0, 4, 8]>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @halves() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 64, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>} {
      // expected-error @below {{'kvbuffer.alloc' op has a buffer whose swizzle moves vectors of 8 bytes; gfx950 copies 16 at a time into shared memory, which have to stay together}}
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      gpu.return
    }
  }
}

// -----

#buf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [32, 32, 8], BN = 64, WN = 64, BK = 32, num_threads = 64, depth = 64, stages = 2, warp_size = 64>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @straight() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 64, BK = 32, warps = 1, mma_shape = [32, 32, 8], swap_a_b = true>} {
      // expected-error @below {{'kvbuffer.alloc' op has the policy double_buffered, whose copies cannot turn columns, which gfx942 does not read transposed; expected register_staged or streaming}}
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
#buf = #kvbuffer.kv_buffer<64x64xbf16, stages = 2, swizzle = [3, 0, 3], policy = register_staged>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @ring(%x: memref<?x64xbf16> {kvbuffer.name = "x"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      // expected-error @below {{'kvbuffer.ring' op has the policy register_staged, but its slots are filled by warps of their own; expected double_buffered}}
      %ring = kvbuffer.ring %buf from @producers to [@consumers] : !kvbuffer.buffer<#buf>
      gpu.return
    }
  }
}

// -----

// Lanes of NVIDIA's chips widen what they read of shared memory.
#buf = #kvbuffer.kv_buffer<64x64xbf16, policy = register_staged>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @widened(%x: memref<?x1x64xf8E4M3FN> {kvbuffer.name = "x"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.alloc' op has a buffer of 'bf16' for tiles of 'f8E4M3FN', which lanes of sm_80 do not widen on their way; expected a buffer of 'f8E4M3FN'}}
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%c0) : memref<?x1x64xf8E4M3FN> -> !kvbuffer.tile<64x64xf8E4M3FN>
      // expected-note @below {{it is filled here}}
      %token = kvbuffer.dram_load %tile into %buf : <64x64xf8E4M3FN>, <#buf>
      gpu.return
    }
  }
}

// -----

// What a buffer's loads have in registers is known by its parameters.
#buf = #kvbuffer.kv_buffer<64x64xbf16, policy = register_staged>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @two(%x: memref<?x1x64xf8E4M3FN> {kvbuffer.name = "x"}, %y: memref<?x1x64xf8E5M2> {kvbuffer.name = "y"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 64, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>} {
      %c0 = arith.constant 0 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%c0) : memref<?x1x64xf8E4M3FN> -> !kvbuffer.tile<64x64xf8E4M3FN>
      %token = kvbuffer.dram_load %tile into %buf : <64x64xf8E4M3FN>, <#buf>
      %other = kvbuffer.dram_tile %y[%c0, %c0] valid(%c0) : memref<?x1x64xf8E5M2> -> !kvbuffer.tile<64x64xf8E5M2>
      // expected-error @below {{'kvbuffer.dram_load' op loads elements 'f8E5M2' into a buffer of parameters that another load fills with 'f8E4M3FN'; expected one type}}
      %second = kvbuffer.dram_load %other into %buf : <64x64xf8E5M2>, <#buf>
      gpu.return
    }
  }
}
