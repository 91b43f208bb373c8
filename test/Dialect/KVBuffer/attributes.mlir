// Attributes print what they parsed, and leave out what is the default.

// RUN: kvbuf-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvbuf-opt %s --emit-bytecode | kvbuf-opt | FileCheck %s

// CHECK-DAG: #[[K:.*]] = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 80, stages = 1>
// CHECK-DAG: #[[V:.*]] = #kvbuffer.kv_buffer<v, f16, streaming, mma_shape = [32, 32, 16], swizzle = [3, 0, 4], BN = 64, WN = 32, BK = 32, num_threads = 256, depth = 64, kv_num_heads = 8, full_kv = false, cache_depth = 576, head_dim_offset = 512, reg_chunk_depth = 32, smem_depth = 96, stages = 1, warp_size = 64>
// CHECK-DAG: #[[R:.*]] = #kvbuffer.kv_buffer<q, f8E4M3FN, register_staged, mma_shape = [32, 32, 64], BN = 32, WN = 32, BK = 64, num_threads = 64, depth = 64, stages = 1, warp_size = 64>
// CHECK-DAG: #[[BLOCKS:.*]] = #kvbuffer.kv_buffer<128x80xbf16, BK = 16, full_kv = false>
// CHECK-DAG: #[[CHUNKS:.*]] = #kvbuffer.kv_buffer<128x80xbf16, BK = 16, reg_chunk_depth = 32, open>
// CHECK-DAG: #schedule{{.*}} = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 2, warps = 4, mma_shape = [16, 8, 16]>
// CHECK-DAG: #schedule{{.*}} = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, stages = 3, warps = 2, mma_shape = [32, 32, 16], swap_a_b = true, q_in_regs = true>

// CHECK-DAG: #schedule{{.*}} = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, stages = 2, warps = 4, mma_shape = [16, 8, 16], reg_chunk_depth = 32, slots = blocks>

// The short form of a neutral buffer.
// CHECK-DAG: #[[S:.*]] = #kvbuffer.kv_buffer<64x128xbf16>
// CHECK-DAG: #[[T:.*]] = #kvbuffer.kv_buffer<64x96xf16, BK = 32, stages = 3, swizzle = [2, 0, 3], policy = register_staged, order = cols>

// A part of longer rows; what is left open is told from the default.
// CHECK-DAG: #[[PART:.*]] = #kvbuffer.kv_buffer<64x64xbf16, cache_depth = 192, head_dim_offset = 64>
// CHECK-DAG: #[[OPEN:.*]] = #kvbuffer.kv_buffer<64x64xbf16, open>
// CHECK-DAG: #[[SOME:.*]] = #kvbuffer.kv_buffer<64x64xbf16, BK = 64, stages = 1, policy = double_buffered, open>
// CHECK-DAG: #schedule{{.*}} = #kvbuffer.schedule<BM = 64, BN = 32>
// CHECK-DAG: #schedule{{.*}} = #kvbuffer.schedule<BM = 64, BN = 32, BK = 16, stages = 3, warps = 2, q_in_regs = true>

// Two terms, and a unit after them.
// CHECK-DAG: #[[TWO:.*]] = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 16, 32], swizzle = [2, 0, 4, 1, 1, 3], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 80, stages = 2, warp_size = 64>
// CHECK-DAG: #[[UNIT:.*]] = #kvbuffer.kv_buffer<64x64xbf16, swizzle = [2, 0, 4, 1, 1, 3, 8]>

// Without an instruction and threads: the schedule says who reads it.
// CHECK-DAG: #[[LEFT:.*]] = #kvbuffer.kv_buffer<k, bf16, double_buffered, BN = 64, BK = 64, depth = 80, stages = 3>

// CHECK: func.func private @buffers() attributes {k = #[[K]], r = #[[R]], v = #[[V]]}
func.func private @buffers() attributes {
  // In any order; what follows from the depth and the block need not be said.
  k = #kvbuffer.kv_buffer<k, bf16, double_buffered, depth = 80, smem_depth = 128, BK = 64, cache_depth = 80, BN = 64, WN = 64, num_threads = 128, mma_shape = [16, 8, 16], stages = 1>,
  v = #kvbuffer.kv_buffer<v, f16, streaming, mma_shape = [32, 32, 16], swizzle = [3, 0, 4], BN = 64, WN = 32, BK = 32, num_threads = 256, depth = 64, kv_num_heads = 8, full_kv = false, cache_depth = 576, head_dim_offset = 512, reg_chunk_depth = 32, smem_depth = 96, stages = 1, warp_size = 64>,
  r = #kvbuffer.kv_buffer<q, f8E4M3FN, register_staged, mma_shape = [32, 32, 64], BN = 32, WN = 32, BK = 64, num_threads = 64, depth = 64, warp_size = 64>
}

// CHECK: func.func private @terms() attributes {two = #[[TWO]], unit = #[[UNIT]]}
func.func private @terms() attributes {
  two = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 16, 32], swizzle = [2, 0, 4, 1, 1, 3], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 80, stages = 2, warp_size = 64>,
  unit = #kvbuffer.kv_buffer<64x64xbf16, swizzle = [2, 0, 4, 1, 1, 3, 8]>
}

// CHECK: func.func private @neutral() attributes {s = #[[S]], t = #[[T]]}
func.func private @neutral() attributes {
  s = #kvbuffer.kv_buffer<64x128xbf16, BK = 128, stages = 1, policy = double_buffered, order = rows>,
  t = #kvbuffer.kv_buffer<64x96xf16, order = cols, policy = register_staged, swizzle = [2, 0, 3], stages = 3, BK = 32>
}

// CHECK: func.func private @open() attributes {open = #[[OPEN]], part = #[[PART]], some = #[[SOME]]}
func.func private @open() attributes {
  part = #kvbuffer.kv_buffer<64x64xbf16, head_dim_offset = 64, cache_depth = 192>,
  open = #kvbuffer.kv_buffer<64x64xbf16, open>,
  some = #kvbuffer.kv_buffer<64x64xbf16, policy = double_buffered, stages = 1, BK = 64, open>
}

func.func private @schedules() attributes {
  open = #kvbuffer.schedule<BN = 32, BM = 64>,
  most = #kvbuffer.schedule<BN = 32, BM = 64, stages = 3, warps = 2, BK = 16, q_in_regs = true>,
  plain = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, mma_shape = [16, 8, 16]>,
  parts = #kvbuffer.schedule<full_kv = false, reg_chunk_depth = 32, BK = 64, BN = 32, BM = 64, mma_shape = [16, 8, 16]>,
  full = #kvbuffer.schedule<q_in_regs = true, swap_a_b = true, BK = 64, BN = 32, BM = 64, mma_shape = [32, 32, 16], warps = 2, stages = 3>
}

// CHECK: func.func private @masks()
// CHECK-SAME: a = #kvbuffer.mask<>, b = #kvbuffer.mask<causal = true>, c = #kvbuffer.mask<left = 0, right = 3>
func.func private @masks() attributes {
  a = #kvbuffer.mask<>,
  b = #kvbuffer.mask<causal = true, left = -1>,
  c = #kvbuffer.mask<left = 0, right = 3>
}

// Rows of a cache are as long as a head unless it says so.
// CHECK: func.func private @caches(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>, !kvbuffer.cache<paged, f16, heads = 1, head_size = 64, page_size = 16, cache_depth = 576, head_dim_offset = 512>, !kvbuffer.cache<ragged, bf16, heads = 2, head_size = 512, cache_depth = 576>)
func.func private @caches(
  !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, head_dim_offset = 0, cache_depth = 64>,
  !kvbuffer.cache<paged, f16, heads = 1, head_size = 64, head_dim_offset = 512, cache_depth = 576, page_size = 16>,
  !kvbuffer.cache<ragged, bf16, heads = 2, head_size = 512, cache_depth = 576>)

// CHECK: func.func private @phases()
// CHECK-SAME: a = #kvbuffer.phase<tile>, b = #kvbuffer.phase<scheduled>, c = #kvbuffer.phase<thread>, d = #kvbuffer.phase<target>
func.func private @phases() attributes {a = #kvbuffer.phase<tile>, b = #kvbuffer.phase<scheduled>, c = #kvbuffer.phase<thread>, d = #kvbuffer.phase<target>}

// Names that are no words stand in quotes; an alias may stand for a part.
// CHECK: func.func private @sizes()
// CHECK-SAME: a = #kvbuffer.size<max(1, floordiv(sms, product(k.batch, -8)), "seq q")>, b = #kvbuffer.size<ceildiv(min(i32, 3), sum(max, 1))>, c = #kvbuffer.size<sum(product(2, n), n)>
#twice = #kvbuffer.size<product(2, n)>
func.func private @sizes() attributes {
  a = #kvbuffer.size<max(1, floordiv("sms", #kvbuffer.size<product(k.batch, -8)>), "seq q")>,
  b = #kvbuffer.size<ceildiv(min(i32, 3), sum(max, 1))>,
  c = #kvbuffer.size<sum(#twice, n)>
}

// CHECK: func.func private @tensors()
// CHECK-SAME: kvbuffer.tensors = [#kvbuffer.tensor<"k" : bf16[num_blocks, 16, "head s"], read, cache>, #kvbuffer.tensor<"w 2" : f32[ceildiv(n, 2), n], workspace>, #kvbuffer.tensor<"codes" : i8[n], read_write>]
func.func private @tensors() attributes {kvbuffer.tensors = [
  #kvbuffer.tensor<"k" : bf16["num_blocks", 16, "head s"], read, cache>,
  #kvbuffer.tensor<"w 2" : f32[#kvbuffer.size<ceildiv(n, 2)>, n], workspace>,
  #kvbuffer.tensor<"codes" : i8[n], read_write>]}

// CHECK: func.func private @left_out() attributes {k = #[[LEFT]]}
func.func private @left_out() attributes {
  k = #kvbuffer.kv_buffer<k, bf16, double_buffered, BN = 64, BK = 64, depth = 80, stages = 3>
}

// When an op of a loop runs, what a kernel computes, and what lies in LDS.
// CHECK: func.func private @typed() attributes {kvbuffer.lds = [#kvbuffer.lds<name = "k", offset = 0, swizzle = [3, 0, 3]>], kvbuffer.problem = #kvbuffer.problem<heads = 8, op = "attention", scale = 5.000000e-01, tensors = {q = "rows"}>, stage = #kvbuffer.stage<1 ahead, one_more>}
func.func private @typed() attributes {
  kvbuffer.problem = #kvbuffer.problem<op = "attention", heads = 8, scale = 0.5, tensors = {q = "rows"}>,
  kvbuffer.lds = [#kvbuffer.lds<name = "k", offset = 0, swizzle = [3, 0, 3]>],
  stage = #kvbuffer.stage<1 ahead, one_more>
}

// Blocks of columns, and chunks in registers, in the short form.
// CHECK: func.func private @parts() attributes {a = #[[BLOCKS]], b = #[[CHUNKS]]}
func.func private @parts() attributes {
  a = #kvbuffer.kv_buffer<128x80xbf16, BK = 16, full_kv = false>,
  b = #kvbuffer.kv_buffer<128x80xbf16, BK = 16, reg_chunk_depth = 32, open>
}
