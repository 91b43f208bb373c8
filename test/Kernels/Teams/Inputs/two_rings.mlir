// Attention whose K and V come through a ring each, filled by one team and read by
// another: one text for every chip that has rings. (Where LDS cannot be read
// transposed, V is turned on its way.)

#schedule = #kvbuffer.schedule<BM = 32, BN = 32, warps = 2>
#qbuf = #kvbuffer.kv_buffer<32x64xbf16, open>
#kbuf = #kvbuffer.kv_buffer<32x64xbf16, open>
#vbuf = #kvbuffer.kv_buffer<32x64xbf16, open>

!qo = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
!tile = !kvbuffer.tile<32x64xbf16>
!qa = !kvbuffer.fragment<32x64xbf16, a>
!b = !kvbuffer.fragment<32x64xbf16, b>
!p = !kvbuffer.fragment<32x32xbf16, a>
!s = !kvbuffer.fragment<32x32xf32, acc>
!acc = !kvbuffer.fragment<32x64xf32, acc>
!out = !kvbuffer.fragment<32x64xbf16, acc>
!row = !kvbuffer.fragment<32x1xf32, row>

gpu.module @two_rings_module {
  gpu.func @two_rings(%q: !qo {kvbuffer.name = "q", kvbuffer.shape = ["batch", "seq_q", 4, 64]},
                      %k: !kv {kvbuffer.name = "k"}, %v: !kv {kvbuffer.name = "v"},
                      %o: !qo {kvbuffer.name = "o", kvbuffer.shape = ["batch", "seq_q", 4, 64]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule,
                         kvbuffer.grid = [#kvbuffer.size<ceildiv(seq_q, 32)>, 4, "batch"]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %number = gpu.block_id x
    %head = gpu.block_id y
    %batch = gpu.block_id z
    %row = arith.muli %number, %c32 : index
    %queries = memref.dim %q, %c1 : !qo
    %rest = arith.subi %queries, %row : index
    %keys = kvbuffer.cache.num_keys %k[%batch] new(%queries) : !kv
    %lo, %hi, %full_lo, %full_hi = kvbuffer.key_range %row of %queries keys %keys
      {BM = 32 : i64, mask = #kvbuffer.mask<causal = true>}
    %seen = arith.maxsi %hi, %c0 : index
    %tiles = arith.ceildivui %seen, %c32 : index
    %zero = kvbuffer.fragment_fill 0.0 : !s
    %none = kvbuffer.fragment_fill 0.0 : !acc
    %low = kvbuffer.fragment_fill 0xFF800000 : !row
    %nothing = kvbuffer.fragment_fill 0.0 : !row

    %q_slot = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
    %k_slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %v_slots = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
    %q_ring = kvbuffer.ring %q_slot from @load to [@compute] : !kvbuffer.buffer<#qbuf>
    %k_ring = kvbuffer.ring %k_slots from @load to [@compute] : !kvbuffer.buffer<#kbuf>
    %v_ring = kvbuffer.ring %v_slots from @load to [@compute] : !kvbuffer.buffer<#vbuf>
    kvbuffer.teams {
      kvbuffer.team @compute warps(2) {
        %qs = kvbuffer.ring_wait %q_ring[%c0] : !kvbuffer.ring<#qbuf>
        %acc, %m, %l = scf.for %i = %c0 to %tiles step %c1
            iter_args(%a0 = %none, %m0 = %low, %l0 = %nothing) -> (!acc, !row, !row) {
          %key = arith.muli %i, %c32 : index
          %ks = kvbuffer.ring_wait %k_ring[%i] : !kvbuffer.ring<#kbuf>
          %qf = kvbuffer.fragment_load %qs[0, 0] contracted(cols) : !kvbuffer.staged<#qbuf> -> !qa
          %kf = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !b
          %s = kvbuffer.mma %qf, %kf, %zero {transpose_b} : !qa, !b, !s
          kvbuffer.ring_release %k_ring[%i] : !kvbuffer.ring<#kbuf>
          %h = kvbuffer.mask %s rows(%row, %queries) keys(%key, %keys)
            {mask = #kvbuffer.mask<causal = true>} : !s
          %p, %m1, %l1, %r = kvbuffer.online_softmax %h, %m0, %l0 {scale = 0.125 : f32, masked}
            : !s, !row -> !p
          %a1 = kvbuffer.rescale %a0, %r : !acc, !row
          %vs = kvbuffer.ring_wait %v_ring[%i] : !kvbuffer.ring<#vbuf>
          %vf = kvbuffer.fragment_load %vs[0, 0] contracted(rows) : !kvbuffer.staged<#vbuf> -> !b
          %a2 = kvbuffer.mma %p, %vf, %a1 : !p, !b, !acc
          kvbuffer.ring_release %v_ring[%i] : !kvbuffer.ring<#vbuf>
          scf.yield %a2, %m1, %l1 : !acc, !row, !row
        }
        kvbuffer.ring_release %q_ring[%c0] : !kvbuffer.ring<#qbuf>
        %mean, %lse = kvbuffer.softmax_finish %acc, %m, %l {scale = 0.125 : f32} : !acc, !row
        %rounded = kvbuffer.fragment_convert %mean : !acc -> !out
        %o_tile = kvbuffer.dram_tile %o[%batch, %row, %head] valid(%rest) : !qo -> !tile
        kvbuffer.fragment_store %rounded, %o_tile : !out, !tile
      }
      kvbuffer.team @load warps(2) {
        %q_tile = kvbuffer.dram_tile %q[%batch, %row, %head] valid(%rest) : !qo -> !tile
        kvbuffer.ring_load %q_tile into %q_ring[%c0] : !tile, !kvbuffer.ring<#qbuf>
        scf.for %i = %c0 to %tiles step %c1 {
          %key = arith.muli %i, %c32 : index
          %k_tile = kvbuffer.cache_tile %k[%batch, %head, %key] from %c0 upto %keys : !kv -> !tile
          kvbuffer.ring_load %k_tile into %k_ring[%i] : !tile, !kvbuffer.ring<#kbuf>
          %v_tile = kvbuffer.cache_tile %v[%batch, %head, %key] from %c0 upto %keys : !kv -> !tile
          kvbuffer.ring_load %v_tile into %v_ring[%i] : !tile, !kvbuffer.ring<#vbuf>
        }
      }
    }
    gpu.return
  }
}
