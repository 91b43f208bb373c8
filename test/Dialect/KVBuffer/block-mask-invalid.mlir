// Lists of blocks that are none, and schedules that do not go with them.

// RUN: kvbuf-opt %s --split-input-file --kvbuf-to-tile="chip=sm_80" --verify-diagnostics

// expected-error @below {{expected blocks of at most 2147483647 rows and keys, got rows = 64, keys = 2147483648}}
#huge = #kvbuffer.block_mask<rows = 64, keys = 2147483648, lists = [0, 1]>

// -----

// expected-error @below {{expected blocks of at least one row and one key, got rows = 0, keys = 128}}
#blocks = #kvbuffer.block_mask<rows = 0, keys = 128, lists = [0, 1]>

// -----

// expected-error @below {{expected the numbers of 2 captures, of partly visible blocks, or of 4, of wholly visible ones, too; got 3}}
#blocks = #kvbuffer.block_mask<rows = 128, keys = 128, lists = [0, 1, 2]>

// -----

// expected-error @below {{expected numbers of different captures, got 1}}
#blocks = #kvbuffer.block_mask<rows = 128, keys = 128, lists = [1, 1]>

// -----

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @captures(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %a: memref<?x?x?xi32>) {
  // expected-error @below {{has a block_mask that names capture 1; expected one of its 1 captures}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o)
    {block_mask = #kvbuffer.block_mask<rows = 128, keys = 128, lists = [0, 1]>} : !qo, !kv, !kv, !qo
    captures(%a : memref<?x?x?xi32>)
  return
}

// -----

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @types(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %a: memref<?x?x?xi32>, %b: memref<?x?x?x?xi64>) {
  // expected-error @below {{has a block_mask whose blocks are 'memref<?x?x?x?xi64>'; expected i32 of rank 4 ([batch, heads, blocks of queries, most])}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o)
    {block_mask = #kvbuffer.block_mask<rows = 128, keys = 128, lists = [0, 1]>} : !qo, !kv, !kv, !qo
    captures(%a, %b : memref<?x?x?xi32>, memref<?x?x?x?xi64>)
  return
}

// -----

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @numbers(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %a: memref<?x?xi32>, %b: memref<?x?x?x?xi32>) {
  // expected-error @below {{has a block_mask whose numbers of blocks are 'memref<?x?xi32>'; expected i32 of rank 3 ([batch, heads, blocks of queries])}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o)
    {block_mask = #kvbuffer.block_mask<rows = 128, keys = 128, lists = [0, 1]>} : !qo, !kv, !kv, !qo
    captures(%a, %b : memref<?x?xi32>, memref<?x?x?x?xi32>)
  return
}

// -----

!q = memref<?x4x16x576xbf16>
!o = memref<?x4x16x512xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 576>
func.func @latent(%q: !q, %k: !kv, %o: !o, %a: memref<?x?x?xi32>, %b: memref<?x?x?x?xi32>) {
  // expected-error @below {{has a block_mask, and values that are a part of its keys; expected values of their own}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%o)
    {block_mask = #kvbuffer.block_mask<rows = 128, keys = 128, lists = [0, 1]>} : !q, !kv, !kv, !o
    captures(%a, %b : memref<?x?x?xi32>, memref<?x?x?x?xi32>)
  return
}

// -----

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @tiles(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %a: memref<?x?x?xi32>, %b: memref<?x?x?x?xi32>) {
  // expected-error @below {{has a block_mask with blocks of 24 rows and 128 keys; expected BM and BN that divide them, got BM = 128, BN = 64}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o)
    {block_mask = #kvbuffer.block_mask<rows = 24, keys = 128, lists = [0, 1]>} : !qo, !kv, !kv, !qo
    captures(%a, %b : memref<?x?x?xi32>, memref<?x?x?x?xi32>)
  return
}
