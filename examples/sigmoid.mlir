// Attention with sigmoid weights: O = sigmoid(Q K^T / 8 + b) V, causal. A program
// of the tile stage, written by hand; no pass knows it.
//
//   kvbuf-compile examples/sigmoid.mlir --target=sm_80 -o sigmoid.kvbuf
//   kvbuf.load("sigmoid.kvbuf")(q=q, k=k, v=v)                       # Python
//
// An item of work is 64 rows of one head: its block walks over the keys in tiles of 64.
// There is no maximum, no sum and no rescaling: a weight depends on its score
// alone, so P is what the region of `kvbuffer.map` makes of S.

#schedule = #kvbuffer.schedule<BM = 64, BN = 64>
#qbuf = #kvbuffer.kv_buffer<64x64xbf16, open>
#kbuf = #kvbuffer.kv_buffer<64x64xbf16, open>
#vbuf = #kvbuffer.kv_buffer<64x64xbf16, open>

!qo = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
!acc = !kvbuffer.fragment<64x64xf32, acc>
!a = !kvbuffer.fragment<64x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
!tile = !kvbuffer.tile<64x64xbf16>

gpu.module @sigmoid_module {
  gpu.func @sigmoid(%q: !qo {kvbuffer.name = "q", kvbuffer.shape = ["batch", "seq_q", 4, 64]},
                    %k: !kv {kvbuffer.name = "k"}, %v: !kv {kvbuffer.name = "v"},
                    %o: !qo {kvbuffer.name = "o", kvbuffer.shape = ["batch", "seq_q", 4, 64]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    // Later rows see more keys; all tiles of a head read the same ones.
    %number, %head, %batch = kvbuffer.work_item [<"seq_q" by 64, growing, sharing = all>, <4>, <"batch">]
    %first, %row = kvbuffer.item_rows %number by 64
    %queries = memref.dim %q, %c1 : !qo
    %left = arith.subi %queries, %row : index
    %keys = kvbuffer.cache.num_keys %k[%batch] new(%queries) : !kv
    // Query i stands at key i + keys - queries, and sees the keys up to there.
    %shift = arith.subi %keys, %queries : index
    // Blocks of a cluster walk over the keys that any of their rows sees.
    %lo, %hi, %full_lo, %full_hi = kvbuffer.key_range %first of %queries keys %keys
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

    %acc = scf.for %i = %c0 to %tiles step %c1 iter_args(%sum = %zero) -> (!acc) {
      // From the last tile to the first: only the first one that is visited can
      // have rows past the end.
      %last = arith.subi %tiles, %c1 : index
      %back = arith.subi %last, %i : index
      %key = arith.muli %back, %c64 : index
      %k_tile = kvbuffer.cache_tile %k[%batch, %head, %key] from %c0 upto %keys : !kv -> !tile
      %k_token = kvbuffer.dram_load %k_tile into %k_slots : !tile, !kvbuffer.buffer<#kbuf>
      %ks = kvbuffer.lds_stage %k_token : !kvbuffer.token<#kbuf>
      %qf = kvbuffer.fragment_load %qs[0, 0] : !kvbuffer.staged<#qbuf> -> !a
      %kf = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !b
      %s = kvbuffer.mma %qf, %kf, %zero {transpose_b} : !a, !b, !acc
      %w = kvbuffer.map %s at(%row, %key) : !acc -> !acc {
      ^bb0(%x: f32, %query: index, %j: index):
        // 1 / (1 + 2^-(x / 8 - 2) log2 e); hidden keys weigh nothing.
        %scale = arith.constant -0.18033688 : f32
        %bias = arith.constant 2.88539008 : f32
        %one = arith.constant 1.0 : f32
        %none = arith.constant 0.0 : f32
        %y = math.fma %x, %scale, %bias : f32
        %e = math.exp2 %y : f32
        %d = arith.addf %e, %one : f32
        %weight = arith.divf %one, %d : f32
        %position = arith.addi %query, %shift : index
        %visible = arith.cmpi sle, %j, %position : index
        %p = arith.select %visible, %weight, %none : f32
        kvbuffer.yield %p : f32
      }
      %p = kvbuffer.fragment_convert %w : !acc -> !a
      %v_tile = kvbuffer.cache_tile %v[%batch, %head, %key] from %c0 upto %keys : !kv -> !tile
      %v_token = kvbuffer.dram_load %v_tile into %v_slots : !tile, !kvbuffer.buffer<#vbuf>
      %vs = kvbuffer.lds_stage %v_token : !kvbuffer.token<#vbuf>
      %vf = kvbuffer.fragment_load %vs[0, 0] contracted(rows) : !kvbuffer.staged<#vbuf> -> !b
      %next = kvbuffer.mma %p, %vf, %sum : !a, !b, !acc
      scf.yield %next : !acc
    } {kvbuffer.whole_after_first}

    %rounded = kvbuffer.fragment_convert %acc : !acc -> !kvbuffer.fragment<64x64xbf16, acc>
    %o_tile = kvbuffer.dram_tile %o[%batch, %row, %head] valid(%left) : !qo -> !tile
    kvbuffer.fragment_store %rounded, %o_tile : !kvbuffer.fragment<64x64xbf16, acc>, !tile
    gpu.return
  }
}
