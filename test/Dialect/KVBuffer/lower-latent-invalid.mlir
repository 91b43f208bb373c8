// What schedules of latent attention, and of other problems, do not have.
// DEFINE: %{schedule} =
// DEFINE: %{run} = not kvbuf-opt %t/latent.mlir --kvbuf-to-tile="chip=sm_80 schedule=%{schedule}" 2>&1
// RUN: split-file %s %t

// REDEFINE: %{schedule} = split_keys=false,equal_shares=false
// RUN: %{run} | FileCheck %s --check-prefix=WHOLE
// WHOLE: latent.mlir:5:3: error: 'kvbuffer.attention' op has values that are a part of its keys, in tiles that both products read; expected split_keys = true

// REDEFINE: %{schedule} = v_path=registers
// RUN: %{run} | FileCheck %s --check-prefix=PATH
// PATH: latent.mlir:5:3: error: 'kvbuffer.attention' op has values that are a part of its keys, and come where these do; expected v_path = direct

// REDEFINE: %{schedule} = stages=9
// RUN: %{run} | FileCheck %s --check-prefix=ROOM
// ROOM: latent.mlir:5:3: error: 'kvbuffer.attention' op the schedule needs {{[0-9]+}} bytes of shared memory, sm_80 has 166912 for a block

// RUN: not kvbuf-opt %t/other.mlir --kvbuf-to-tile="chip=sm_80 schedule=split_keys=true,warps=2,warp_cols=2" 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: other.mlir:4:3: error: 'kvbuffer.attention' op split_keys = true with warp_cols = 2, whose warps share tiles of keys, is for values that are a part of keys (one cache that is k and v); expected warp_cols = 1

// RUN: sed 's/paged, bf16\(.*\)>/paged, f8E4M3FN\1, scale = f32, granularity = 576>/' %t/latent.mlir > %t/tokens.mlir
// RUN: not kvbuf-opt %t/tokens.mlir --kvbuf-to-tile=chip=sm_80 2>&1 | FileCheck %s --check-prefix=TOKENS
// TOKENS: tokens.mlir:5:3: error: 'kvbuffer.attention' op has rows that are keys and values with scales of tokens, by which weights that warps share would be multiplied; expected granularity = tensor or head

// RUN: not kvbuf-opt %t/append.mlir --kvbuf-to-tile=chip=sm_80 2>&1 | FileCheck %s --check-prefix=APPEND
// APPEND: append.mlir:6:3: error: 'kvbuffer.cache_append' op cannot be a part of the attention after it: its values are a part of its keys, of which no kernel stores tokens that it reads; expected a kernel of its own for the append, before

// Packed rows are widened by all lanes of a block, or by a team's warps.
// RUN: sed 's/page_size = 64/&, row = <bytes = 576, parts = [<count = 576, element = f8E4M3FN, at = 0>]>/' %t/latent.mlir > %t/packed.mlir
// RUN: not kvbuf-opt %t/packed.mlir --kvbuf-to-tile="chip=sm_80 schedule=k_path=registers" 2>&1 | FileCheck %s --check-prefix=PACKED
// PACKED: packed.mlir:5:3: error: 'kvbuffer.attention' op has packed rows, which all lanes of a block widen on their way into slots; expected k_path = direct and full_kv = true, not another k_path
// RUN: not kvbuf-opt %t/packed.mlir --kvbuf-to-tile="chip=sm_80 schedule=look_ahead=true" 2>&1 | FileCheck %s --check-prefix=AHEAD
// AHEAD: packed.mlir:5:3: error: 'kvbuffer.attention' op has packed rows, which all lanes of a block widen on their way into slots; expected look_ahead = false, not another look_ahead
// RUN: sed 's/page_size = 64/&, row = <bytes = 592, parts = [<count = 576, element = f8E4M3FN, at = 8>]>/' %t/latent.mlir > %t/alike.mlir
// RUN: kvbuf-opt %t/alike.mlir --kvbuf-to-tile=chip=sm_90a | FileCheck %s --check-prefix=ALIKE
// ALIKE-NOT: kvbuffer.team

//--- latent.mlir
!q = memref<?x1x16x576xbf16>
!o = memref<?x1x16x512xbf16>
!rows = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 64>
func.func @latent(%q: !q, %rows: !rows, %o: !o) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : !q, !rows, !rows, !o
  return
}
//--- other.mlir
!qo = memref<?x1x8x128xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 16>
func.func @other(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
//--- append.mlir
!q = memref<?x1x16x576xbf16>
!o = memref<?x1x16x512xbf16>
!new = memref<?x1x1x576xbf16>
!rows = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 64>
func.func @append(%q: !q, %rows: !rows, %new: !new, %o: !o) {
  kvbuffer.cache_append k(%new : !new) to(%rows : !rows)
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : !q, !rows, !rows, !o
  return
}
