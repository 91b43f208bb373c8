// Attention whose values are a part of the keys, by three teams: a program of the
// tile stage, written by hand; no pass knows it.
//
//   kvbuf-compile examples/three_teams.mlir --target=sm_80 -o three_teams.kvbuf
//   kvbuf.load("three_teams.kvbuf")(q=q, k=k, o=o.view(batch, seq_q, 8, 64))   # Python
//
// As in multi-head latent attention, V is the first 128 of K's 192 columns. A
// block computes 32 rows of one head. Team @scores walks over K and computes the
// weights; @left and @right own half of O's columns each, and load that half of
// V. What joins them is a queue in LDS: an entry holds the weights of 32 keys,
// and the factor, maximum and sum of each row. Nobody waits for the whole block
// in the loop: each team waits for its own loads, and for entries or free slots
// of the queue. O is passed as twice as many heads of half the columns.

#schedule = #kvbuffer.schedule<BM = 32, BN = 32>
#qbuf = #kvbuffer.kv_buffer<32x192xbf16, open>
#kbuf = #kvbuffer.kv_buffer<32x192xbf16, open>
#vbuf = #kvbuffer.kv_buffer<32x64xbf16, cache_depth = 192, open>
#wbuf = #kvbuffer.kv_buffer<32x64xbf16, cache_depth = 192, head_dim_offset = 64, open>

!q = memref<?x?x4x192xbf16, strided<[?, ?, ?, 1]>>
!o = memref<?x?x8x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 192>
!tile = !kvbuffer.tile<32x192xbf16>
!half = !kvbuffer.tile<32x64xbf16>
!qa = !kvbuffer.fragment<32x192xbf16, a>
!kb = !kvbuffer.fragment<32x192xbf16, b>
!vb = !kvbuffer.fragment<32x64xbf16, b>
!p = !kvbuffer.fragment<32x32xbf16, a>
!s = !kvbuffer.fragment<32x32xf32, acc>
!acc = !kvbuffer.fragment<32x64xf32, acc>
!out = !kvbuffer.fragment<32x64xbf16, acc>
!row = !kvbuffer.fragment<32x1xf32, row>
!weights = !kvbuffer.queue<!p, !row, !row, !row>

gpu.module @three_teams_module {
  gpu.func @three_teams(%q: !q {kvbuffer.name = "q", kvbuffer.shape = ["batch", "seq_q", 4, 192]},
                        %k: !kv {kvbuffer.name = "k"},
                        %o: !o {kvbuffer.name = "o", kvbuffer.shape = ["batch", "seq_q", 8, 64]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule,
                         kvbuffer.grid = [#kvbuffer.size<ceildiv(seq_q, 32)>, 4, "batch"]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %number = gpu.block_id x
    %head = gpu.block_id y
    %batch = gpu.block_id z
    %row = arith.muli %number, %c32 : index
    %twice = arith.muli %head, %c2 : index
    %queries = memref.dim %q, %c1 : !q
    %left = arith.subi %queries, %row : index
    %keys = kvbuffer.cache.num_keys %k[%batch] new(%queries) : !kv
    %lo, %hi, %full_lo, %full_hi = kvbuffer.key_range %row of %queries keys %keys
      {BM = 32 : i64, mask = #kvbuffer.mask<causal = true>}
    %seen = arith.maxsi %hi, %c0 : index
    %tiles = arith.ceildivui %seen, %c32 : index
    // Fragments of one value mean the same to every team.
    %zero = kvbuffer.fragment_fill 0.0 : !s
    %none = kvbuffer.fragment_fill 0.0 : !acc
    %low = kvbuffer.fragment_fill 0xFF800000 : !row
    %nothing = kvbuffer.fragment_fill 0.0 : !row

    %weights = kvbuffer.queue slots(2) from @scores to [@left, @right] : !weights
    kvbuffer.teams {
      kvbuffer.team @scores {
        %q_slot = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
        %slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
        %q_tile = kvbuffer.dram_tile %q[%batch, %row, %head] valid(%left) : !q -> !tile
        %q_token = kvbuffer.dram_load %q_tile into %q_slot : !tile, !kvbuffer.buffer<#qbuf>
        %qs = kvbuffer.lds_stage %q_token : !kvbuffer.token<#qbuf>
        %m, %l = scf.for %i = %c0 to %tiles step %c1
            iter_args(%m0 = %low, %l0 = %nothing) -> (!row, !row) {
          %key = arith.muli %i, %c32 : index
          %tile = kvbuffer.cache_tile %k[%batch, %c0, %key] from %c0 upto %keys : !kv -> !tile
          %token = kvbuffer.dram_load %tile into %slots : !tile, !kvbuffer.buffer<#kbuf>
          %staged = kvbuffer.lds_stage %token : !kvbuffer.token<#kbuf>
          %qf = kvbuffer.fragment_load %qs[0, 0] : !kvbuffer.staged<#qbuf> -> !qa
          %kf = kvbuffer.fragment_load %staged[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !kb
          %s = kvbuffer.mma %qf, %kf, %zero {transpose_b} : !qa, !kb, !s
          %h = kvbuffer.mask %s rows(%row, %queries) keys(%key, %keys)
            {mask = #kvbuffer.mask<causal = true>} : !s
          %p, %m1, %l1, %r = kvbuffer.online_softmax %h, %m0, %l0 {scale = 0.0721687824 : f32, masked}
            : !s, !row -> !p
          kvbuffer.queue_put %p, %r, %m1, %l1 to %weights[%i] : !weights
          scf.yield %m1, %l1 : !row, !row
        }
      }
      kvbuffer.team @left {
        %slots = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
        %acc, %m, %l = scf.for %i = %c0 to %tiles step %c1
            iter_args(%a0 = %none, %m0 = %low, %l0 = %nothing) -> (!acc, !row, !row) {
          %key = arith.muli %i, %c32 : index
          %tile = kvbuffer.cache_tile %k[%batch, %c0, %key] from %c0 upto %keys : !kv -> !tile
          %token = kvbuffer.dram_load %tile into %slots : !tile, !kvbuffer.buffer<#vbuf>
          %staged = kvbuffer.lds_stage %token : !kvbuffer.token<#vbuf>
          %v = kvbuffer.fragment_load %staged[0, 0] contracted(rows) : !kvbuffer.staged<#vbuf> -> !vb
          %p, %r, %m1, %l1 = kvbuffer.queue_take %weights[%i] : !weights
          %a1 = kvbuffer.rescale %a0, %r : !acc, !row
          %a2 = kvbuffer.mma %p, %v, %a1 : !p, !vb, !acc
          scf.yield %a2, %m1, %l1 : !acc, !row, !row
        }
        %mean, %lse = kvbuffer.softmax_finish %acc, %m, %l {scale = 0.0721687824 : f32} : !acc, !row
        %rounded = kvbuffer.fragment_convert %mean : !acc -> !out
        %place = arith.addi %twice, %c0 : index
        %o_tile = kvbuffer.dram_tile %o[%batch, %row, %place] valid(%left) : !o -> !half
        kvbuffer.fragment_store %rounded, %o_tile : !out, !half
      }
      kvbuffer.team @right {
        %slots = kvbuffer.alloc : !kvbuffer.buffer<#wbuf>
        %acc, %m, %l = scf.for %i = %c0 to %tiles step %c1
            iter_args(%a0 = %none, %m0 = %low, %l0 = %nothing) -> (!acc, !row, !row) {
          %key = arith.muli %i, %c32 : index
          %tile = kvbuffer.cache_tile %k[%batch, %c0, %key] from %c0 upto %keys : !kv -> !tile
          %token = kvbuffer.dram_load %tile into %slots : !tile, !kvbuffer.buffer<#wbuf>
          %staged = kvbuffer.lds_stage %token : !kvbuffer.token<#wbuf>
          %v = kvbuffer.fragment_load %staged[0, 0] contracted(rows) : !kvbuffer.staged<#wbuf> -> !vb
          %p, %r, %m1, %l1 = kvbuffer.queue_take %weights[%i] : !weights
          %a1 = kvbuffer.rescale %a0, %r : !acc, !row
          %a2 = kvbuffer.mma %p, %v, %a1 : !p, !vb, !acc
          scf.yield %a2, %m1, %l1 : !acc, !row, !row
        }
        %mean, %lse = kvbuffer.softmax_finish %acc, %m, %l {scale = 0.0721687824 : f32} : !acc, !row
        %rounded = kvbuffer.fragment_convert %mean : !acc -> !out
        %place = arith.addi %twice, %c1 : index
        %o_tile = kvbuffer.dram_tile %o[%batch, %row, %place] valid(%left) : !o -> !half
        kvbuffer.fragment_store %rounded, %o_tile : !out, !half
      }
    }
    gpu.return
  }
}
