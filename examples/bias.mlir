// Attention whose scores get ALiBi (a slope a head, times the distance) and an
// additive bias from a tensor, among the tokens of one document only, causal. A
// program of the tile stage, written by hand; no pass knows it.
//
//   kvbuf-compile examples/bias.mlir --target=sm_80 -o bias.kvbuf
//   kvbuf.load("bias.kvbuf")(q=q, k=k, v=v, bias=bias, slopes=slopes, doc=doc)
//
// The score function is the region of `kvbuffer.map`. It runs for every element of
// a tile, also for rows and keys past the end; so it clamps what it reads at.

#schedule = #kvbuffer.schedule<BM = 64, BN = 64>
#qbuf = #kvbuffer.kv_buffer<64x64xbf16, open>
#kbuf = #kvbuffer.kv_buffer<64x64xbf16, open>
#vbuf = #kvbuffer.kv_buffer<64x64xbf16, open>

!qo = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
!bias = memref<4x?x?xf32, strided<[?, ?, 1]>>
!acc = !kvbuffer.fragment<64x64xf32, acc>
!row = !kvbuffer.fragment<64x1xf32, row>
!a = !kvbuffer.fragment<64x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
!tile = !kvbuffer.tile<64x64xbf16>

gpu.module @bias_module {
  gpu.func @bias(%q: !qo {kvbuffer.name = "q", kvbuffer.shape = ["batch", "seq_q", 4, 64]},
                 %k: !kv {kvbuffer.name = "k"}, %v: !kv {kvbuffer.name = "v"},
                 %bias: !bias {kvbuffer.name = "bias", kvbuffer.shape = [4, "seq_q", "seq_k"]},
                 %slopes: memref<4xf32> {kvbuffer.name = "slopes"},
                 %doc: memref<?x?xi32> {kvbuffer.name = "doc", kvbuffer.shape = ["batch", "seq_k"]},
                 %o: !qo {kvbuffer.name = "o", kvbuffer.shape = ["batch", "seq_q", 4, 64]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule,
                         kvbuffer.grid = [#kvbuffer.size<ceildiv(seq_q, 64)>, 4, "batch"]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %number = gpu.block_id x
    %head = gpu.block_id y
    %batch = gpu.block_id z
    %row = arith.muli %number, %c64 : index
    %queries = memref.dim %q, %c1 : !qo
    %left = arith.subi %queries, %row : index
    %keys = kvbuffer.cache.num_keys %k[%batch] new(%queries) : !kv
    %shift = arith.subi %keys, %queries : index
    %last_row = arith.subi %queries, %c1 : index
    %last_key = arith.subi %keys, %c1 : index
    %slope = memref.load %slopes[%head] : memref<4xf32>
    %lo, %hi, %full_lo, %full_hi = kvbuffer.key_range %row of %queries keys %keys
      {BM = 64 : i64, mask = #kvbuffer.mask<causal = true>}
    %seen = arith.maxsi %hi, %c0 : index
    %tiles = arith.ceildivui %seen, %c64 : index

    %q_slot = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
    %k_slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %v_slots = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
    %q_tile = kvbuffer.dram_tile %q[%batch, %row, %head] valid(%left) : !qo -> !tile
    %q_token = kvbuffer.dram_load %q_tile into %q_slot : !tile, !kvbuffer.buffer<#qbuf>
    %qs = kvbuffer.lds_stage %q_token : !kvbuffer.token<#qbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %lowest = kvbuffer.fragment_fill 0xFF800000 : !row
    %nothing = kvbuffer.fragment_fill 0.0 : !row

    %acc, %max, %sum = scf.for %i = %c0 to %tiles step %c1
        iter_args(%a0 = %zero, %m0 = %lowest, %l0 = %nothing) -> (!acc, !row, !row) {
      %last = arith.subi %tiles, %c1 : index
      %back = arith.subi %last, %i : index
      %key = arith.muli %back, %c64 : index
      %k_tile = kvbuffer.cache_tile %k[%batch, %head, %key] from %c0 upto %keys : !kv -> !tile
      %k_token = kvbuffer.dram_load %k_tile into %k_slots : !tile, !kvbuffer.buffer<#kbuf>
      %ks = kvbuffer.lds_stage %k_token : !kvbuffer.token<#kbuf>
      %qf = kvbuffer.fragment_load %qs[0, 0] : !kvbuffer.staged<#qbuf> -> !a
      %kf = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !b
      %s = kvbuffer.mma %qf, %kf, %zero {transpose_b} : !a, !b, !acc
      %t = kvbuffer.map %s at(%row, %key) : !acc -> !acc {
      ^bb0(%x: f32, %query: index, %j: index):
        %scale = arith.constant 0.125 : f32
        %hidden = arith.constant 0xFF800000 : f32
        %position = arith.addi %query, %shift : index
        %distance = arith.subi %j, %position : index
        %n = arith.index_cast %distance : index to i32
        %far = arith.sitofp %n : i32 to f32
        %alibi = arith.mulf %far, %slope : f32
        %r = arith.minsi %query, %last_row : index
        %c = arith.minsi %j, %last_key : index
        %b = memref.load %bias[%head, %r, %c] : !bias
        %both = arith.addf %alibi, %b : f32
        %y = math.fma %x, %scale, %both : f32
        // The query's own document; rows before the first key see nothing.
        %at = arith.minsi %position, %last_key : index
        %own = arith.maxsi %at, %c0 : index
        %doc_q = memref.load %doc[%batch, %own] : memref<?x?xi32>
        %doc_k = memref.load %doc[%batch, %c] : memref<?x?xi32>
        %same = arith.cmpi eq, %doc_q, %doc_k : i32
        %before = arith.cmpi sle, %j, %position : index
        %visible = arith.andi %same, %before : i1
        %z = arith.select %visible, %y, %hidden : f32
        kvbuffer.yield %z : f32
      }
      %p, %m1, %l1, %rescale = kvbuffer.online_softmax %t, %m0, %l0 {scale = 1.0 : f32, masked}
        : !acc, !row -> !a
      %scaled = kvbuffer.rescale %a0, %rescale : !acc, !row
      %v_tile = kvbuffer.cache_tile %v[%batch, %head, %key] from %c0 upto %keys : !kv -> !tile
      %v_token = kvbuffer.dram_load %v_tile into %v_slots : !tile, !kvbuffer.buffer<#vbuf>
      %vs = kvbuffer.lds_stage %v_token : !kvbuffer.token<#vbuf>
      %vf = kvbuffer.fragment_load %vs[0, 0] contracted(rows) : !kvbuffer.staged<#vbuf> -> !b
      %next = kvbuffer.mma %p, %vf, %scaled : !a, !b, !acc
      scf.yield %next, %m1, %l1 : !acc, !row, !row
    } {kvbuffer.whole_after_first}

    %out, %lse = kvbuffer.softmax_finish %acc, %max, %sum {scale = 1.0 : f32} : !acc, !row
    %rounded = kvbuffer.fragment_convert %out : !acc -> !kvbuffer.fragment<64x64xbf16, acc>
    %o_tile = kvbuffer.dram_tile %o[%batch, %row, %head] valid(%left) : !qo -> !tile
    kvbuffer.fragment_store %rounded, %o_tile : !kvbuffer.fragment<64x64xbf16, acc>, !tile
    gpu.return
  }
}
