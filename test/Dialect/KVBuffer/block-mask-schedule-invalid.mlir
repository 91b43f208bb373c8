// Schedules that are asked for, and do not go with lists of blocks.

// RUN: not kvbuf-opt %s --kvbuf-to-tile="chip=sm_80 schedule=split_keys=true" 2>&1 | FileCheck %s --check-prefix=SPLIT
// RUN: not kvbuf-opt %s --kvbuf-to-tile="chip=sm_90a schedule=BN=96" 2>&1 | FileCheck %s --check-prefix=KEYS
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=sm_90a schedule=cluster=2" 2>&1 | FileCheck %s --check-prefix=CLUSTER

// SPLIT: error: 'kvbuffer.attention' op has a block_mask, whose lists are of tiles of queries that visit all of their keys; expected split_keys = false
// KEYS: error: 'kvbuffer.attention' op has a block_mask with blocks of 128 rows and 128 keys; expected BM and BN that divide them, got BM = 128, BN = 96
// CLUSTER: warning: no clusters: lists of blocks name other keys for each tile of queries
!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @tiles(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %a: memref<?x?x?xi32>, %b: memref<?x?x?x?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o)
    {block_mask = #kvbuffer.block_mask<rows = 128, keys = 128, lists = [0, 1]>} : !qo, !kv, !kv, !qo
    captures(%a, %b : memref<?x?x?xi32>, memref<?x?x?x?xi32>)
  return
}
