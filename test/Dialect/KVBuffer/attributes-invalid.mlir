// What attributes and types refuse, and how they say so.

// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{a window reaches 0 or more keys to either side, or -1 for no limit; got left = -2, right = -1}}
func.func private @f() attributes {a = #kvbuffer.mask<left = -2>}

// -----

// expected-error @below {{a window reaches at most 4611686018427387904 keys to either side, or -1 for no limit; got left = -1, right = 9223372036854775807}}
func.func private @f() attributes {a = #kvbuffer.mask<right = 9223372036854775807>}

// -----

// expected-error @below {{unknown parameter 'BX', expected one of BM, BN, BK, stages, warps, mma_shape, scores, values, swap_a_b, q_in_regs}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BX = 64>}

// -----

// expected-error @below {{repeated parameter 'BM', expected one of BM, BN, BK, stages, warps, mma_shape, scores, values, swap_a_b, q_in_regs}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BM = 64>}

// -----

// expected-error @below {{missing parameter 'BN'}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BK = 64, mma_shape = [16, 8, 16]>}

// -----

// expected-error @below {{missing parameter 'BK'}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, mma_shape = [16, 8, 16]>}

// -----

// expected-error @below {{mma_shape must be three positive sizes M, N, K}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [0, 0, 0]>}

// -----

// expected-error @below {{names swap_a_b, but the order of operands is the matrix instruction's; expected mma_shape beside it, or neither}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, swap_a_b = false>}

// -----

// expected-error @below {{BK must be a power of two, got 48}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, BK = 48>}

// -----

// expected-error @below {{warps must divide BM = 128, got 3}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, warps = 3>}

// -----

// expected-error @below {{expected true or false}}
func.func private @f() attributes {a = #kvbuffer.schedule<swap_a_b = yes>}

// -----

// expected-error @below {{BN must be a power of two, got 48}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 48, BK = 64, mma_shape = [16, 8, 16]>}

// -----

// expected-error @below {{mma_shape must be three positive sizes M, N, K}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8]>}

// -----

// expected-error @below {{stages must be at least 1, got 0}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, stages = 0, mma_shape = [16, 8, 16]>}

// -----

// expected-error @below {{warps must divide BM = 128, got 3}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, warps = 3, mma_shape = [16, 8, 16]>}

// -----

// expected-error @below {{expected an operand: q, k, v, o or any}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<w, bf16, double_buffered>}

// -----

// expected-error @below {{a buffer of any operand is described by its slot, as in 64x128xbf16}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<any, bf16, double_buffered>}

// -----

// expected-error @below {{expected two positive sizes, as in 64x128xbf16}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<64x64x64xbf16>}

// -----

// expected-error @below {{order = cols needs policy = register_staged: elements are turned in registers on their way}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<64x64xbf16, order = cols>}

// -----

// expected-error @below {{policy streaming has one slot, through which strips go one after the other; expected stages = 1, got 2}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<64x64xbf16, stages = 2, policy = streaming>}

// -----

// expected-error @below {{unknown parameter 'depth', expected one of BK, stages, swizzle, policy, order, cache_depth, head_dim_offset}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<64x64xbf16, depth = 64>}

// -----

// expected-error @below {{BK must be a power of two, got 96}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<64x96xbf16>}

// -----

// Rows of words may have any width, but those of several blocks.
func.func private @words() attributes {a = #kvbuffer.kv_buffer<64x96xf32>}
// expected-error @below {{BK must be a power of two, got 24}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<64x96xf32, BK = 24>}

// -----

// expected-error @below {{expected a policy: double_buffered, streaming or register_staged}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, triple_buffered>}

// -----

// expected-error @below {{elements must be numbers of whole bytes, got 'i4'}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, i4, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64>}

// -----

// expected-error @below {{swizzle must be [bits, base, shift], perhaps with these of a second term, and with a unit}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64>}

// -----

// expected-error @below {{swizzle [9, 9, 9] does not fit blocks of 64 rows of 128 bytes: expected base + bits of at most 9 and base + shift of less than 9, bits of a 16-byte vector's number}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [9, 9, 9], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64>}

// -----

// Rows that are no power of two: vectors that changed their rows could leave
// the block.
// expected-error @below {{swizzle [3, 0, 3] does not fit blocks of 48 rows of 64 bytes: expected base + bits of at most 2 and base + shift of less than 8}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 48, WN = 48, BK = 32, num_threads = 128, depth = 64>}

// -----

// Of 8-byte vectors there are twice as many.
// expected-error @below {{swizzle [9, 2, 9] does not fit blocks of 64 rows of 128 bytes: expected base + bits of at most 10 and base + shift of less than 10, bits of a 8-byte vector's number}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [9, 2, 9, 8], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64>}

// -----

// expected-error @below {{the unit of a swizzle must be of 8 or 16 bytes, got 4}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [2, 0, 3, 4], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64>}

// -----

// Numbers of a term are three.
// expected-error @below {{swizzle must be [bits, base, shift], perhaps with these of a second term, and with a unit}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<64x64xbf16, swizzle = [2, 0, 4, 1, 1]>}

// -----

// No third term.
// expected-error @below {{swizzle must be [bits, base, shift], perhaps with these of a second term, and with a unit}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<64x64xbf16, swizzle = [2, 0, 4, 1, 1, 3, 1, 0, 5]>}

// -----

// expected-error @below {{the unit of a swizzle must be of 8 or 16 bytes, got 12}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<64x64xbf16, swizzle = [2, 0, 4, 1, 1, 3, 12]>}

// -----

// Its low 32 bits are 8.
// expected-error @below {{the unit of a swizzle must be of 8 or 16 bytes, got 4294967304}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<64x64xbf16, swizzle = [2, 0, 4, 4294967304]>}

// -----

// A second term is one as the first.
// expected-error @below {{swizzle must be three numbers of 0 to 16 whose shift is not 0, got [1, 1, 0]}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<64x64xbf16, swizzle = [2, 0, 4, 1, 1, 0]>}

// -----

// expected-error @below {{swizzle must be three numbers of 0 to 16 whose shift is not 0, got [1, 17, 3]}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<64x64xbf16, swizzle = [2, 0, 4, 1, 17, 3]>}

// -----

// expected-error @below {{swizzle [2, 1, 3] does not fit blocks of 48 rows of 64 bytes: expected base + bits of at most 2 and base + shift of less than 8}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<48x32xbf16, swizzle = [2, 0, 4, 2, 1, 3]>}

// -----

// Rows of one vector, none of which has another place.
// expected-error @below {{swizzle [1, 0, 6] does not fit blocks of 64 rows of 16 bytes}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [1, 0, 6], BN = 64, WN = 64, BK = 8, num_threads = 128, depth = 64>}

// -----

// expected-error @below {{BK must be a power of two, got 80}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 80, num_threads = 128, depth = 80>}

// -----

// expected-error @below {{WN must divide BN = 64, got 48}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 48, BK = 64, num_threads = 128, depth = 64>}

// -----

// expected-error @below {{num_threads must be a multiple of the wave's 64 lanes, got 96}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [32, 32, 16], BN = 64, WN = 64, BK = 64, num_threads = 96, depth = 64, warp_size = 64>}

// -----

// expected-error @below {{depth, kv_num_heads and stages must be positive}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, stages = 0>}

// -----

// expected-error @below {{smem_depth must be a multiple of BK = 64 that holds depth = 80, got 64}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 80, smem_depth = 64>}

// -----

// expected-error @below {{columns 512 to 640 do not lie in a row of cache_depth = 576}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 128, cache_depth = 576, head_dim_offset = 512>}

// -----

// expected-error @below {{reg_chunk_depth must be in 1..64, got 128}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, reg_chunk_depth = 128>}

// -----

// expected-error @below {{a paged cache needs page_size, the tokens of a page}}
func.func private @f(!kvbuffer.cache<paged, bf16, heads = 8, head_size = 128>)

// -----

// expected-error @below {{attribute 'kvbuffer.index' of argument 0 must be i32 or i64, got i16}}
func.func @f(%k: !kvbuffer.cache<ragged, bf16, heads = 8, head_size = 128> {kvbuffer.index = i16}) {
  return
}

// -----

// expected-error @below {{attribute 'kvbuffer.rising' of argument 0 must be unit, got true}}
func.func @f(%t: memref<?xi32> {kvbuffer.rising = true}) {
  return
}

// -----

// expected-error @below {{page_size belongs to paged caches, not to ragged ones}}
func.func private @f(!kvbuffer.cache<ragged, bf16, heads = 8, head_size = 128, page_size = 16>)

// -----

// expected-error @below {{a cache needs at least one head and one element per head, got heads = 0, head_size = 128}}
func.func private @f(!kvbuffer.cache<dense, bf16, heads = 0, head_size = 128>)

// -----

// expected-error @below {{a cache's elements must be numbers, got 'index'}}
func.func private @f(!kvbuffer.cache<dense, index, heads = 1, head_size = 128>)

// -----

// expected-error @below {{columns 520 to 584 do not lie in a row of cache_depth = 576}}
func.func private @f(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, cache_depth = 576, head_dim_offset = 520>)

// -----

// expected-error @below {{columns 0 to 64 do not lie in a row of cache_depth = 32}}
func.func private @f(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, cache_depth = 32>)

// -----

// expected-error @below {{columns -8 to 56 do not lie in a row of cache_depth = 576}}
func.func private @f(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, cache_depth = 576, head_dim_offset = -8>)

// -----

// expected-error @below {{unknown parameter 'depth', expected page_size, cache_depth, head_dim_offset, scale, granularity or row, each at most once}}
func.func private @f(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, depth = 576>)

// -----

// expected-error @below {{repeated parameter 'cache_depth', expected page_size, cache_depth, head_dim_offset, scale, granularity or row, each at most once}}
func.func private @f(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, cache_depth = 64, cache_depth = 64>)

// -----

// expected-error @below {{expected a kind of cache: dense, ragged, continuous or paged}}
func.func private @f(!kvbuffer.cache<sparse, bf16, heads = 1, head_size = 64>)

// -----

// Lanes would have an instruction for each few elements, without an end.
// expected-error @below {{a fragment has at most 2097152 elements, got 1048576x1048576}}
func.func private @huge(!kvbuffer.fragment<1048576x1048576xf32, acc>)

// -----

// expected-error @below {{expected two positive sizes, as in 64x128xbf16}}
func.func private @f(!kvbuffer.tile<64xbf16>)

// -----

// expected-error @below {{a tile's page_size must be positive and no multiple of its 64 rows, got 128; pages that hold whole tiles need none}}
func.func private @f(!kvbuffer.tile<64x128xbf16, page_size = 128>)

// -----

// expected-error @below {{a tile's page_size must be positive and no multiple of its 64 rows, got -3; pages that hold whole tiles need none}}
func.func private @f(!kvbuffer.tile<64x128xbf16, page_size = -3>)

// -----

// expected-error @below {{expected a role: a, b, acc or row}}
func.func private @f(!kvbuffer.fragment<64x128xbf16, c>)

// -----

// expected-error @below {{a fragment of role row has 1 column, got 8}}
func.func private @f(!kvbuffer.fragment<64x8xf32, row>)

// -----

// expected-error @below {{attribute 'kvbuffer.phase' must be a #kvbuffer.phase<...>}}
func.func private @f() attributes {kvbuffer.phase = "tile"}

// -----

// expected-error @below {{attribute 'kvbuffer.schedule' must be a #kvbuffer.schedule<...>}}
func.func private @f() attributes {kvbuffer.schedule = 1}

// -----

// expected-error @below {{attribute 'kvbuffer.target' must be a string, the chip's name}}
module attributes {kvbuffer.target = 80} {}

// -----

// expected-error @below {{attribute 'kvbuffer.problem' must be a #kvbuffer.problem<...>}}
func.func private @f() attributes {kvbuffer.problem = "attention"}

// -----

// expected-error @below {{attribute 'kvbuffer.tensors' must be an array of #kvbuffer.tensor<...>}}
func.func private @f() attributes {kvbuffer.tensors = {}}

// -----

// expected-error @below {{swizzle must be three numbers of 0 to 16 whose shift is not 0, got [3, 0, 0]}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 0], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64>}

// -----

// expected-error @below {{swizzle must be three numbers of 0 to 16 whose shift is not 0, got [64, 0, 3]}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [64, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64>}

// -----

// expected-error @below {{swizzle must be three numbers of 0 to 16 whose shift is not 0, got [-1, 0, 3]}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [-1, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64>}

// -----

// expected-error @below {{warp_cols must be a power of two that divides warps = 4, got 3}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, warps = 4, mma_shape = [16, 8, 16], warp_cols = 3>}

// -----

// expected-error @below {{warp_cols does not go with lazy_rescale, where each warp decides by itself whether a maximum is raised; expected lazy_rescale = false}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, warps = 4, mma_shape = [16, 8, 16], lazy_rescale = true, warp_cols = 2>}

// -----

// expected-error @below {{split_keys = true goes with none of overlap (without producers), overlap_products, lazy_rescale, sums_in_lds, reg_chunk_depth and full_kv = false}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, stages = 1, warps = 4, mma_shape = [16, 8, 16], reg_chunk_depth = 64, split_keys = true>}

// -----

// expected-error @below {{full_kv = false needs stages of at least 2: the next block is loaded while one is read}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, stages = 1, warps = 4, mma_shape = [16, 8, 16], full_kv = false>}

// -----

// expected-error @below {{v_path = streaming has strips of BK = 64 keys, which do not divide BN = 32; expected a multiple of BK}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 32, BK = 64, stages = 1, warps = 4, mma_shape = [16, 8, 16], v_path = streaming>}

// -----

// expected-error @below {{expected product, sum, ceildiv, floordiv, min or max, got 'power'}}
func.func private @f() attributes {a = #kvbuffer.size<sum(1, power(n, 2))>}

// -----

// expected-error @below {{expected an operator and operands: "n" stands for itself where a size is expected}}
func.func private @f() attributes {a = #kvbuffer.size<n>}

// -----

// expected-error @below {{ceildiv has 3 operands; expected two, a number and what divides it}}
func.func private @f() attributes {a = #kvbuffer.size<ceildiv(n, 2, 3)>}

// -----

// expected-error @below {{expected an integer, the name of a size or #kvbuffer.size<...>, got {sum = 1 : i64}}}
func.func private @f() attributes {a = #kvbuffer.size<max(n, {sum = 1})>}

// -----

// expected-error @below {{expected read, write, read_write, workspace or counter}}
func.func private @f() attributes {a = #kvbuffer.tensor<"k" : bf16[n], reads>}

// -----

// expected-error @below {{tensor "k" has elements 'i1'; expected integers or floats of whole bytes}}
func.func private @f() attributes {a = #kvbuffer.tensor<"k" : i1[n], read>}

// -----

// expected-error @below {{tensor "k" has no dimension; expected one or more}}
func.func private @f() attributes {a = #kvbuffer.tensor<"k" : bf16[], read>}

// -----

// expected-error @below {{tensor "k": expected an integer, the name of a size or #kvbuffer.size<...>, got {}}}
func.func private @f() attributes {a = #kvbuffer.tensor<"k" : bf16[8, {}], read>}

// -----

// expected-error @below {{#kvbuffer.problem has no 'op', the problem's name}}
func.func private @f() attributes {kvbuffer.problem = #kvbuffer.problem<heads = 8>}

// -----

// expected-error @below {{#kvbuffer.lds has no 'name', the buffer's}}
func.func private @f() attributes {kvbuffer.lds = [#kvbuffer.lds<offset = 0>]}

// -----

// expected-error @below {{#kvbuffer.lds has an unknown key 'slot'; did you mean 'slots'?}}
func.func private @f() attributes {kvbuffer.lds = [#kvbuffer.lds<name = "k", slot = 2>]}

// -----

// expected-error @below {{key 'swizzle' of #kvbuffer.lds must be an array of integers, got 3}}
func.func private @f() attributes {kvbuffer.lds = [#kvbuffer.lds<name = "k", swizzle = 3>]}

// -----

// expected-error @below {{attribute 'kvbuffer.lds' must be an array of #kvbuffer.lds<...>}}
func.func private @f() attributes {kvbuffer.lds = [{name = "k"}]}

// -----

// expected-error @below {{expected at most 1024 iterations ahead, got 1000000000000}}
func.func private @f() attributes {kvbuffer.stage = #kvbuffer.stage<1000000000000 ahead, own>}

// -----

// expected-error @below {{expected 0 or more iterations ahead, got -1}}
func.func private @f() attributes {kvbuffer.stage = #kvbuffer.stage<-1 ahead, own>}

// -----

// expected-error @below {{attribute 'kvbuffer.stage' must be a #kvbuffer.stage<...>}}
func.func private @f() attributes {kvbuffer.stage = "ahead"}

// -----

// An instruction goes with threads.
// expected-error @below {{num_threads must be a multiple of the wave's 32 lanes, got 0}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, BK = 64, depth = 64>}

// -----

// expected-error @below {{mma_shape must be three positive sizes M, N, K}}
func.func private @f() attributes {a = #kvbuffer.kv_buffer<k, bf16, double_buffered, BN = 64, BK = 64, num_threads = 128, depth = 64>}

// -----

// expected-error @below {{expected a matrix unit: mma_sync, wgmma, mfma or wmma}}
func.func private @f() attributes {a = #kvbuffer.instruction<dpas, [8, 16, 16]>}

// -----

// expected-error @below {{expected the shape of an instruction, three positive sizes M, N, K}}
func.func private @f() attributes {a = #kvbuffer.instruction<mfma, [32, 32]>}

// -----

// expected-error @below {{there is no instruction mma_sync of shape 32x32x8}}
func.func private @f() attributes {a = #kvbuffer.instruction<mma_sync, [32, 32, 8]>}

// -----

// expected-error @below {{values names the instruction of some products alone; expected scores beside it, or mma_shape for all}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, values = #kvbuffer.instruction<mfma, [32, 32, 8]>>}

// -----

// expected-error @below {{scores names the instruction of some products, and mma_shape that of all; expected mma_shape, or scores and values}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [32, 32, 8], scores = #kvbuffer.instruction<mfma, [32, 32, 8]>, values = #kvbuffer.instruction<mfma, [32, 32, 8]>>}

// -----

// expected-error @below {{missing parameter 'BK'}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, scores = #kvbuffer.instruction<mfma, [32, 32, 8]>, values = #kvbuffer.instruction<mfma, [32, 32, 8]>>}

// -----

// expected-error @below {{expected alike, halves or moving for teams, got 'roles'}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, teams = roles>}

// -----

// expected-error @below {{unknown parameter 'tiles', expected one of xcds, cluster, split_size, equal_shares}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, work = split_keys<tiles = static>>}

// -----

// expected-error @below {{ahead = scores has no parameters; expected none}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, ahead = scores<look_ahead = true>>}

// -----

// expected-error @below {{names overlap beside ahead, which says the same; expected one of them}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8, 16], overlap = true, ahead = scores>}

// -----

// expected-error @below {{teams = moving is nothing by the schedule's parameters, which make it alike; expected those of moving}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8, 16], teams = moving>}

// -----

// expected-error @below {{repeated parameter 'ahead'}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, ahead = scores, ahead = loads>}

// -----

// expected-error @below {{xcds = 8 does not go with warps that have roles; expected producers = 0, or xcds = 1}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8, 16], teams = moving<producers = 4>, work = one_tile<xcds = 8>>}

// -----

// A schedule that leaves its instruction open drops no parameter, either.
// expected-error @below {{tiles = dynamic needs warps with roles; expected producers > 0, or tiles = grid}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, tiles = dynamic>}

// -----

// expected-error @below {{v_path = registers does not go with warps that have roles; expected producers = 0, or v_path = direct}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, teams = moving<producers = 4>, slots = tiles<v_path = registers>>}

// -----

// expected-error @below {{overlap = true is a part of no schedule like this one; expected overlap = false}}
func.func private @f() attributes {a = #kvbuffer.schedule<BM = 128, BN = 64, overlap = true, overlap_products = true>}
