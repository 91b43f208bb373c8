// Attention of one new token a sequence over a paged cache, keys split over
// blocks. A program of the tile stage, written by hand; no pass knows it.
//
//   kvbuf-compile examples/decode.mlir --target=sm_80 -o decode.kvbuf
//   kvbuf.load("decode.kvbuf")(q=q, k=k, v=v, ...)                   # Python
//
// The rows of a tile are the four query heads that share a head of the cache:
// every key and value is read once. A block of one warp takes a run of keys of
// one sequence and head. Where a sequence has several runs, each block stores
// what its softmax has come to and counts itself in; the last one to arrive
// joins the partial results, in the order of the runs, so that bits repeat.

#schedule = #kvbuffer.schedule<BM = 16, BN = 32>
#kbuf = #kvbuffer.kv_buffer<32x128xbf16, open>
#vbuf = #kvbuffer.kv_buffer<32x128xbf16, open>

// Runs of keys of a sequence: as many as keep 8 blocks a multiprocessor busy,
// but of 128 keys or more.
#runs = #kvbuffer.size<max(1, min(ceildiv(product(pages_per_seq, 64), 128),
                           floordiv(product(sms, 8), product(batch, 2))))>

!qo = memref<?x1x8x128xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 64>
!parts = memref<?x2x?x4x132xf32>
!acc = !kvbuffer.fragment<16x128xf32, acc>
!scores = !kvbuffer.fragment<16x32xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!tile = !kvbuffer.tile<32x128xbf16>
!rows = !kvbuffer.tile<16x128xbf16, page_size = 4>

gpu.module @decode_module {
  gpu.func @decode(%q: !qo {kvbuffer.name = "q", kvbuffer.shape = ["batch", 1, 8, 128]},
                   %k: !kv {kvbuffer.name = "k"}, %v: !kv {kvbuffer.name = "v"},
                   %o: !qo {kvbuffer.name = "o", kvbuffer.shape = ["batch", 1, 8, 128]},
                   %parts: !parts {kvbuffer.name = "parts", kvbuffer.access = "workspace",
                                   kvbuffer.shape = ["batch", 2, #runs, 4, 132]},
                   %arrived: memref<?x2xi32> {kvbuffer.name = "arrived", kvbuffer.access = "counter",
                                              kvbuffer.shape = ["batch", 2]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule,
                         kvbuffer.grid = [#runs, 2, "batch"]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %bn = arith.constant 32 : index
    %run = gpu.block_id x
    %head = gpu.block_id y
    %batch = gpu.block_id z

    // This block's tiles of keys: [first, end).
    %runs = kvbuffer.launch_value #runs
    %keys = kvbuffer.cache.num_keys %k[%batch] new(%c1) : !kv
    %tiles = arith.ceildivui %keys, %bn : index
    %even = arith.ceildivui %tiles, %runs : index
    %share = arith.maxui %even, %c1 : index
    %some = arith.ceildivui %tiles, %share : index
    %used = arith.maxui %some, %c1 : index
    %first = arith.muli %run, %share : index
    %mine = arith.cmpi ult, %run, %used : index
    scf.if %mine {
      %full = arith.addi %first, %share : index
      %end = arith.minui %full, %tiles : index
      %count = arith.subi %end, %first : index
      // Only the sequence's last tile may be cut.
      %whole = arith.divui %keys, %bn : index
      %edge = arith.subi %end, %whole : index
      %begin = arith.muli %first, %bn : index

      %query = arith.muli %head, %c4 : index
      %q_tile = kvbuffer.dram_tile %q[%batch, %c0, %query] valid(%c4) {group = 4 : i64} : !qo -> !rows
      %qf = kvbuffer.tile_fragment %q_tile : !rows -> !kvbuffer.fragment<16x128xbf16, a>
      %k_slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %v_slots = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
      %zero = kvbuffer.fragment_fill 0.0 : !acc
      %lowest = kvbuffer.fragment_fill 0xFF800000 : !row
      %nothing = kvbuffer.fragment_fill 0.0 : !row

      %acc, %max, %sum = scf.for %i = %c0 to %count step %c1
          iter_args(%a0 = %zero, %m0 = %lowest, %l0 = %nothing) -> (!acc, !row, !row) {
        // From the last tile to the first.
        %last = arith.subi %end, %c1 : index
        %back = arith.subi %last, %i : index
        %key = arith.muli %back, %bn : index
        %k_tile = kvbuffer.cache_tile %k[%batch, %head, %key] from %begin upto %keys : !kv -> !tile
        %k_token = kvbuffer.dram_load %k_tile into %k_slots : !tile, !kvbuffer.buffer<#kbuf>
        %ks = kvbuffer.lds_stage %k_token : !kvbuffer.token<#kbuf>
        %kf = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<32x128xbf16, b>
        %none = kvbuffer.fragment_fill 0.0 : !scores
        %s = kvbuffer.mma %qf, %kf, %none {transpose_b}
          : !kvbuffer.fragment<16x128xbf16, a>, !kvbuffer.fragment<32x128xbf16, b>, !scores
        %cut = arith.cmpi slt, %i, %edge : index
        %seen = scf.if %cut -> (!scores) {
          %hidden = kvbuffer.mask %s rows(%c0, %c1) keys(%key, %keys)
            {mask = #kvbuffer.mask<causal = true>, group = 4 : i64} : !scores
          scf.yield %hidden : !scores
        } else {
          scf.yield %s : !scores
        }
        %p, %m1, %l1, %rescale = kvbuffer.online_softmax %seen, %m0, %l0 {scale = 0.088388346 : f32, masked}
          : !scores, !row -> !kvbuffer.fragment<16x32xbf16, a>
        %scaled = kvbuffer.rescale %a0, %rescale : !acc, !row
        %v_tile = kvbuffer.cache_tile %v[%batch, %head, %key] from %begin upto %keys : !kv -> !tile
        %v_token = kvbuffer.dram_load %v_tile into %v_slots : !tile, !kvbuffer.buffer<#vbuf>
        %vs = kvbuffer.lds_stage %v_token : !kvbuffer.token<#vbuf>
        %vf = kvbuffer.fragment_load %vs[0, 0] contracted(rows) : !kvbuffer.staged<#vbuf> -> !kvbuffer.fragment<32x128xbf16, b>
        %a1 = kvbuffer.mma %p, %vf, %scaled
          : !kvbuffer.fragment<16x32xbf16, a>, !kvbuffer.fragment<32x128xbf16, b>, !acc
        scf.yield %a1, %m1, %l1 : !acc, !row, !row
      } {kvbuffer.whole_after_first}

      %alone = arith.cmpi eq, %used, %c1 : index
      %yes = arith.constant true
      %a, %m, %l, %writes = scf.if %alone -> (!acc, !row, !row, i1) {
        scf.yield %acc, %max, %sum, %yes : !acc, !row, !row, i1
      } else {
        kvbuffer.partial_store %acc, %max, %sum into %parts[%batch, %head, %run] valid(%c4) : !acc, !row, !parts
        %is_last = kvbuffer.arrive_last %arrived[%batch, %head] of %used : memref<?x2xi32>
        %ja, %jm, %jl = scf.if %is_last -> (!acc, !row, !row) {
          %ca, %cm, %cl = scf.for %i = %c0 to %used step %c1
              iter_args(%a0 = %zero, %m0 = %lowest, %l0 = %nothing) -> (!acc, !row, !row) {
            %pa, %pm, %pl = kvbuffer.partial_load %parts[%batch, %head, %i] valid(%c4) : !parts -> !acc, !row
            %a1, %m1, %l1 = kvbuffer.softmax_merge %a0, %m0, %l0 with %pa, %pm, %pl {scale = 0.088388346 : f32}
              : !acc, !row
            scf.yield %a1, %m1, %l1 : !acc, !row, !row
          }
          scf.yield %ca, %cm, %cl : !acc, !row, !row
        } else {
          scf.yield %zero, %lowest, %nothing : !acc, !row, !row
        }
        scf.yield %ja, %jm, %jl, %is_last : !acc, !row, !row, i1
      }
      scf.if %writes {
        %out, %lse = kvbuffer.softmax_finish %a, %m, %l {scale = 0.088388346 : f32} : !acc, !row
        %rounded = kvbuffer.fragment_convert %out : !acc -> !kvbuffer.fragment<16x128xbf16, acc>
        %o_tile = kvbuffer.dram_tile %o[%batch, %c0, %query] valid(%c4) {group = 4 : i64} : !qo -> !rows
        kvbuffer.fragment_store %rounded, %o_tile : !kvbuffer.fragment<16x128xbf16, acc>, !rows
      }
    }
    gpu.return
  }
}
