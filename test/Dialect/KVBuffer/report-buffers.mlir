// The members that the seed page derives from a buffer's parameters. Expected
// values are worked out by hand from its formulas, beside each buffer.

// RUN: kvbuf-opt %s --kvbuf-report-buffers --remark-format=emitRemark --remarks-filter-analyse="kvbuf-report-buffers" 2>&1 | FileCheck %s

// num_mmas = ceil((transpose ? WN : depth) / MMA_N), num_k_mmas2 = ceil(BK / MMA_K),
// num_k_tiles = ceil((transpose ? depth : WN) / BK),
// reg_k_tiles = transpose ? ceil(reg_chunk_depth / BK) : num_k_tiles,
// num_repeats = smem_depth / BK, smem_cols = full_kv ? smem_depth : BK,
// smem_stage_size = BN * smem_cols, input_frag_size = MMA_K * MMA_N / WARP_SIZE,
// vm_instrs_per_load = 2 * ceil((full_kv ? BN / 32 * (smem_depth / BK) : 1) / waves),
// registers: num_mmas * num_k_mmas2 * reg_k_tiles * input_frag_size.

// K of a wave of 64 lanes, 4 waves: 64/32, ceil(32/16), 128/32, 128/32, 128/32;
// 64 * 128 elements of 2 bytes, 2 slots; 16 * 32 / 64; 128 bits of bf16; 2 * 4
// units for 4 waves; registers 2 * 2 * 4 * 8.
// CHECK:      remark: [Analysis] buffer
// CHECK-SAME: bytes=32768, dma_units=8, input_frag_size=8, num_k_mmas2=2, num_k_tiles=4, num_mmas=2, num_repeats=4, operand=k, reg_k_tiles=4, reg_tile_size=128, simd_width=8, smem_cols=128, smem_stage_size=8192, stage_bytes=16384, vm_instrs_per_load=4, warp_tile_rows=32, wtile_dim0=64, wtile_dim1=32{{$}}
%k = kvbuffer.alloc : !kvbuffer.buffer<#kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [32, 32, 16], swizzle = [3, 0, 4], BN = 64, WN = 64, BK = 32, num_threads = 256, depth = 128, kv_num_heads = 8, stages = 2, warp_size = 64>>

// V, not transposed: 128/32 along the depth, 64/32 strips of keys; registers
// 4 * 2 * 2 * 8.
// CHECK:      remark: [Analysis] buffer
// CHECK-SAME: bytes=32768, dma_units=8, input_frag_size=8, num_k_mmas2=2, num_k_tiles=2, num_mmas=4, num_repeats=4, operand=v, reg_k_tiles=2, reg_tile_size=128, simd_width=8, smem_cols=128, smem_stage_size=8192, stage_bytes=16384, vm_instrs_per_load=4, warp_tile_rows=32, wtile_dim0=64, wtile_dim1=32{{$}}
%v = kvbuffer.alloc : !kvbuffer.buffer<#kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [32, 32, 16], BN = 64, WN = 64, BK = 32, num_threads = 256, depth = 128, kv_num_heads = 8, stages = 2, warp_size = 64>>

// A head size that is no multiple of BK is padded: smem_depth 128 for 80. 64/8,
// 64/16, ceil(80/64), ceil(80/64), 128/64; 64 * 128 * 2 bytes, 3 slots; 16 * 8 /
// 32; 2 * 2 units for 4 waves; registers 8 * 4 * 2 * 4.
// CHECK:      remark: [Analysis] buffer
// CHECK-SAME: bytes=49152, dma_units=4, input_frag_size=4, num_k_mmas2=4, num_k_tiles=2, num_mmas=8, num_repeats=2, operand=k, reg_k_tiles=2, reg_tile_size=256, simd_width=8, smem_cols=128, smem_stage_size=8192, stage_bytes=16384, vm_instrs_per_load=2, warp_tile_rows=32, wtile_dim0=64, wtile_dim1=64{{$}}
%k80 = kvbuffer.alloc : !kvbuffer.buffer<#kvbuffer.kv_buffer<k, f16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 80, stages = 3>>

// A slot of one BN x BK block (full_kv = false), fp8: 512/32, 64/64, ceil(32/64),
// 512/64; 32 * 64 bytes; 64 * 32 / 64; 16 elements in 16 bytes; one unit;
// registers 16 * 1 * 1 * 32.
// CHECK:      remark: [Analysis] buffer
// CHECK-SAME: bytes=2048, dma_units=1, input_frag_size=32, num_k_mmas2=1, num_k_tiles=1, num_mmas=16, num_repeats=8, operand=v, reg_k_tiles=1, reg_tile_size=512, simd_width=16, smem_cols=64, smem_stage_size=2048, stage_bytes=2048, vm_instrs_per_load=2, warp_tile_rows=32, wtile_dim0=32, wtile_dim1=64{{$}}
%v512 = kvbuffer.alloc : !kvbuffer.buffer<#kvbuffer.kv_buffer<v, f8E4M3FN, streaming, mma_shape = [32, 32, 64], BN = 32, WN = 32, BK = 64, num_threads = 256, depth = 512, full_kv = false, warp_size = 64>>

// Only 64 of 256 columns of K are in registers at once: 64/32 of 256/32 strips.
// 32 * 256 * 2 bytes; 1 * 8 units for 4 waves; registers 1 * 2 * 2 * 8.
// CHECK:      remark: [Analysis] buffer
// CHECK-SAME: bytes=16384, dma_units=8, input_frag_size=8, num_k_mmas2=2, num_k_tiles=8, num_mmas=1, num_repeats=8, operand=k, reg_k_tiles=2, reg_tile_size=32, simd_width=8, smem_cols=256, smem_stage_size=8192, stage_bytes=16384, vm_instrs_per_load=4, warp_tile_rows=32, wtile_dim0=32, wtile_dim1=32{{$}}
%kchunk = kvbuffer.alloc : !kvbuffer.buffer<#kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [32, 32, 16], BN = 32, WN = 32, BK = 32, num_threads = 256, depth = 256, reg_chunk_depth = 64, warp_size = 64>>

// A wave's view of V: 16 columns in a block of 32. ceil(16/16), 32/32, 128/32,
// 32/32; 128 * 32 * 2 bytes; 32 * 16 / 64; 4 * 1 units for 4 waves; registers
// 1 * 1 * 4 * 8.
// CHECK:      remark: [Analysis] buffer
// CHECK-SAME: bytes=8192, dma_units=4, input_frag_size=8, num_k_mmas2=1, num_k_tiles=4, num_mmas=1, num_repeats=1, operand=v, reg_k_tiles=4, reg_tile_size=32, simd_width=8, smem_cols=32, smem_stage_size=4096, stage_bytes=8192, vm_instrs_per_load=2, warp_tile_rows=32, wtile_dim0=128, wtile_dim1=32{{$}}
%vwave = kvbuffer.alloc : !kvbuffer.buffer<#kvbuffer.kv_buffer<v, bf16, register_staged, mma_shape = [16, 16, 32], BN = 128, WN = 128, BK = 32, num_threads = 256, depth = 16, smem_depth = 32, warp_size = 64>>

// The first one, in a kernel whose schedule and chip say the rest: the same.
// CHECK:      remark: [Analysis] buffer
// CHECK-SAME: bytes=32768, dma_units=8, input_frag_size=8, num_k_mmas2=2, num_k_tiles=4, num_mmas=2, num_repeats=4, operand=k, reg_k_tiles=4, reg_tile_size=128, simd_width=8, smem_cols=128, smem_stage_size=8192, stage_bytes=16384, vm_instrs_per_load=4
// Q of it: a warp has 128 / 4 rows, 32/32 instructions.
// CHECK:      remark: [Analysis] buffer
// CHECK-SAME: num_mmas=1, {{.*}}operand=q
#keys = #kvbuffer.kv_buffer<64x128xbf16, BK = 32, stages = 2, swizzle = [3, 0, 4]>
#queries = #kvbuffer.kv_buffer<128x128xbf16, BK = 32>
module attributes {kvbuffer.target = "gfx950"} {
gpu.module @m {
  gpu.func @kernel() kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>,
      kvbuffer.schedule = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 2, warps = 4, mma_shape = [32, 32, 16]>} {
    %left = kvbuffer.alloc : !kvbuffer.buffer<#kvbuffer.kv_buffer<k, bf16, double_buffered, swizzle = [3, 0, 4], BN = 64, BK = 32, depth = 128, stages = 2>>
    %rows = kvbuffer.alloc : !kvbuffer.buffer<#kvbuffer.kv_buffer<q, bf16, double_buffered, BN = 128, BK = 32, depth = 128>>
    gpu.return
  }
  // The short form of both, and of V's as above: reads say what they are. Products
  // of scores and values have instructions of their own: 128/16 of V's, 32/32; registers
  // 8 * 1 * 2 * 8.
  // CHECK:      remark: [Analysis] buffer
  // CHECK-SAME: bytes=32768, dma_units=8, input_frag_size=8, num_k_mmas2=2, num_k_tiles=4, num_mmas=2, num_repeats=4, operand=k, reg_k_tiles=4, reg_tile_size=128, simd_width=8, smem_cols=128, smem_stage_size=8192, stage_bytes=16384, vm_instrs_per_load=4
  // CHECK:      remark: [Analysis] buffer
  // CHECK-SAME: input_frag_size=8, num_k_mmas2=1, num_k_tiles=2, num_mmas=8, {{.*}}operand=v, reg_k_tiles=2, reg_tile_size=128,
  // CHECK:      remark: [Analysis] buffer
  // CHECK-SAME: num_mmas=1, {{.*}}operand=q
  gpu.func @short(%tile: !kvbuffer.tile<64x128xbf16>, %qtile: !kvbuffer.tile<128x128xbf16>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>,
      kvbuffer.schedule = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 2, warps = 4, scores = #kvbuffer.instruction<mfma, [32, 32, 16]>, values = #kvbuffer.instruction<mfma, [16, 16, 32]>>} {
    %k_slots = kvbuffer.alloc {label = "k"} : !kvbuffer.buffer<#keys>
    %v_slots = kvbuffer.alloc : !kvbuffer.buffer<#keys>
    %q_slots = kvbuffer.alloc : !kvbuffer.buffer<#queries>
    %short_kt = kvbuffer.dram_load %tile into %k_slots : !kvbuffer.tile<64x128xbf16>, !kvbuffer.buffer<#keys>
    %short_vt = kvbuffer.dram_load %tile into %v_slots : !kvbuffer.tile<64x128xbf16>, !kvbuffer.buffer<#keys>
    %short_qt = kvbuffer.dram_load %qtile into %q_slots : !kvbuffer.tile<128x128xbf16>, !kvbuffer.buffer<#queries>
    %short_ks, %short_vs, %short_qs = kvbuffer.lds_stage %short_kt, %short_vt, %short_qt : !kvbuffer.token<#keys>, !kvbuffer.token<#keys>, !kvbuffer.token<#queries>
    %short_kf = kvbuffer.fragment_load %short_ks[0, 0] contracted(cols) : !kvbuffer.staged<#keys> -> !kvbuffer.fragment<64x128xbf16, b>
    %short_vf = kvbuffer.fragment_load %short_vs[0, 0] contracted(rows) : !kvbuffer.staged<#keys> -> !kvbuffer.fragment<64x128xbf16, b>
    %short_qf = kvbuffer.fragment_load %short_qs[0, 0] : !kvbuffer.staged<#queries> -> !kvbuffer.fragment<128x128xbf16, a>
    gpu.return
  }
  // Neither the instruction nor the warps are chosen: what the buffer says alone.
  // CHECK:      remark: [Analysis] buffer
  // CHECK-SAME: | bytes=32768, num_repeats=4, simd_width=8, smem_cols=128,
  gpu.func @open(%tile: !kvbuffer.tile<64x128xbf16>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>,
      kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 64>} {
    %open_slots = kvbuffer.alloc : !kvbuffer.buffer<#keys>
    %open_t = kvbuffer.dram_load %tile into %open_slots : !kvbuffer.tile<64x128xbf16>, !kvbuffer.buffer<#keys>
    %open_s = kvbuffer.lds_stage %open_t : !kvbuffer.token<#keys>
    %open_f = kvbuffer.fragment_load %open_s[0, 0] contracted(cols) : !kvbuffer.staged<#keys> -> !kvbuffer.fragment<64x128xbf16, b>
    gpu.return
  }
}
}
