// Causal linear attention: o_i = sum over j <= i of (q_i . k_j) v_j, without a softmax.
// A block has one head and walks over its tokens in chunks of 32. What the chunks
// before have come to is the state S = sum of k_j v_j^T, 64 x 64:
//
//   O = (Q K^T where key <= row) V + Q S, then S = S + K^T V
//
// K^T has the chunk's columns as rows: `contracted(rows)` of operand a. S, an
// accumulator, is operand b of the next chunk's product, rounded to bf16.

#schedule = #kvbuffer.schedule<BM = 32, BN = 32, warps = 1, stages = 1>
#buf = #kvbuffer.kv_buffer<32x64xbf16, open>

!in = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>
!out = memref<?x?x4x64xf32, strided<[?, ?, ?, 1]>>
!tile = !kvbuffer.tile<32x64xbf16>
!rows = !kvbuffer.fragment<32x64xbf16, a>
!keys = !kvbuffer.fragment<32x64xbf16, b>
!scores = !kvbuffer.fragment<32x32xf32, acc>
!o = !kvbuffer.fragment<32x64xf32, acc>
!state = !kvbuffer.fragment<64x64xf32, acc>

gpu.module @linear_attention_module {
  gpu.func @linear_attention(
      %q: !in {kvbuffer.name = "q", kvbuffer.shape = ["batch", "tokens", 4, 64]},
      %k: !in {kvbuffer.name = "k", kvbuffer.shape = ["batch", "tokens", 4, 64]},
      %v: !in {kvbuffer.name = "v", kvbuffer.shape = ["batch", "tokens", 4, 64]},
      %o: !out {kvbuffer.name = "o", kvbuffer.shape = ["batch", "tokens", 4, 64],
                kvbuffer.access = "write"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule,
                         kvbuffer.grid = [1, 4, "batch"]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %chunk = arith.constant 32 : index
    %head = gpu.block_id y
    %batch = gpu.block_id z
    %tokens = memref.dim %q, %c1 : !in
    %chunks = arith.ceildivui %tokens, %chunk : index
    %q_slot = kvbuffer.alloc : !kvbuffer.buffer<#buf>
    %k_slot = kvbuffer.alloc : !kvbuffer.buffer<#buf>
    %v_slot = kvbuffer.alloc : !kvbuffer.buffer<#buf>
    %nothing = kvbuffer.fragment_fill 0.0 : !state
    %no_scores = kvbuffer.fragment_fill 0.0 : !scores
    %no_result = kvbuffer.fragment_fill 0.0 : !o
    %last = scf.for %i = %c0 to %chunks step %c1 iter_args(%s = %nothing) -> (!state) {
      %first = arith.muli %i, %chunk : index
      %left = arith.subi %tokens, %first : index
      %q_tile = kvbuffer.dram_tile %q[%batch, %first, %head] valid(%left) : !in -> !tile
      %k_tile = kvbuffer.dram_tile %k[%batch, %first, %head] valid(%left) : !in -> !tile
      %v_tile = kvbuffer.dram_tile %v[%batch, %first, %head] valid(%left) : !in -> !tile
      %q_token = kvbuffer.dram_load %q_tile into %q_slot : !tile, !kvbuffer.buffer<#buf>
      %k_token = kvbuffer.dram_load %k_tile into %k_slot : !tile, !kvbuffer.buffer<#buf>
      %v_token = kvbuffer.dram_load %v_tile into %v_slot : !tile, !kvbuffer.buffer<#buf>
      %qs, %ks, %vs = kvbuffer.lds_stage %q_token, %k_token, %v_token
        : !kvbuffer.token<#buf>, !kvbuffer.token<#buf>, !kvbuffer.token<#buf>

      // Within the chunk: rows past the last token are zero, and so are their scores.
      %qf = kvbuffer.fragment_load %qs[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !rows
      %kf = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !keys
      %dots = kvbuffer.mma %qf, %kf, %no_scores {transpose_b} : !rows, !keys, !scores
      %seen = kvbuffer.map %dots at(%c0, %c0) : !scores -> !scores {
      ^bb0(%e: f32, %row: index, %key: index):
        %zero = arith.constant 0.0 : f32
        %before = arith.cmpi sle, %key, %row : index
        %kept = arith.select %before, %e, %zero : f32
        kvbuffer.yield %kept : f32
      }
      %p = kvbuffer.fragment_convert %seen : !scores -> !kvbuffer.fragment<32x32xbf16, a>
      %vf = kvbuffer.fragment_load %vs[0, 0] contracted(rows) : !kvbuffer.staged<#buf> -> !keys
      %own = kvbuffer.mma %p, %vf, %no_result : !kvbuffer.fragment<32x32xbf16, a>, !keys, !o

      // The chunks before.
      %sf = kvbuffer.fragment_convert %s : !state -> !kvbuffer.fragment<64x64xbf16, b>
      %all = kvbuffer.mma %qf, %sf, %own : !rows, !kvbuffer.fragment<64x64xbf16, b>, !o
      %o_tile = kvbuffer.dram_tile %o[%batch, %first, %head] valid(%left) : !out -> !kvbuffer.tile<32x64xf32>
      kvbuffer.fragment_store %all, %o_tile : !o, !kvbuffer.tile<32x64xf32>

      // This one: K^T V.
      %kt = kvbuffer.fragment_load %ks[0, 0] contracted(rows) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<64x32xbf16, a>
      %next = kvbuffer.mma %kt, %vf, %s : !kvbuffer.fragment<64x32xbf16, a>, !keys, !state
      scf.yield %next : !state
    }
    gpu.return
  }
}
