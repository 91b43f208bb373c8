// A page id out of range is an error where it is looked up: at the tile for pages
// that hold whole tiles, at the load for smaller ones.

// DEFINE: %{page} = 64
// DEFINE: %{sched} = sed 's/PAGE/%{page}/' %s | kvbuf-opt --kvbuf-to-scheduled="schedule=BM=64 split-loops=false"
// RUN: %{sched} | kvbuf-tile-run --size seq_q=10 --cache-lengths=150 | FileCheck %s --check-prefix=SOUND
// RUN: %{sched} | not kvbuf-tile-run --size seq_q=10 --cache-lengths=150 --bad-page=1 2>&1 | FileCheck %s --check-prefix=TILE
// REDEFINE: %{page} = 16
// RUN: %{sched} | not kvbuf-tile-run --size seq_q=10 --cache-lengths=150 --bad-page=1000000 2>&1 | FileCheck %s --check-prefix=FAR
// RUN: %{sched} | not kvbuf-tile-run --size seq_q=10 --cache-lengths=150 --bad-page=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: %{sched} | not kvbuf-tile-run --size seq_q=10 --cache-lengths=150 --blocks=0 2>&1 | FileCheck %s --check-prefix=BLOCKS
// RUN: %{sched} | not kvbuf-tile-run --size seq_q=10 --cache-lengths=150 --row-pad=-1 2>&1 | FileCheck %s --check-prefix=PAD
// DEFINE: %{dense} = sed 's/cache<paged\(.*\), page_size = PAGE>/cache<dense\1>/' %s | kvbuf-opt --kvbuf-to-scheduled
// RUN: %{dense} | not kvbuf-tile-run --size seq_q=10 --size seq_k=20 --bad-page=1 2>&1 | FileCheck %s --check-prefix=DENSE
// RUN: %{dense} | not kvbuf-tile-run --size seq_q=10 --size seq_k=20 --wild-lengths 2>&1 | FileCheck %s --check-prefix=WILD
// DENSE: --bad-page: the caches have no tables
// WILD: --wild-lengths: there are no lengths and no offsets
// FAR: --bad-page: 'k.table' has {{[0-9]+}} entries, got 1000000
// NEGATIVE: --bad-page: expected 0 to 2147483647, got -1
// BLOCKS: --blocks: expected 1 to 2147483647, got 0
// PAD: --row-pad: expected 0 to 1048576, got -1
// RUN: %{sched} | not kvbuf-tile-run --size seq_q=10 --cache-lengths=150 --bad-page=7 2>&1 | FileCheck %s --check-prefix=LOAD
// An id behind the last page changes nothing.
// RUN: %{sched} | kvbuf-tile-run --size seq_q=10 --cache-lengths=150 --bad-page=10 | FileCheck %s --check-prefix=SOUND

// SOUND: PASS
// TILE: error: 'kvbuffer.cache_tile' op in block (0, 0, 0), iteration 0: looks up k.table[0, 1] = 1073741823, expected 0 to
// LOAD: error: 'kvbuffer.dram_load' op in block (0, 0, 0), iteration 0: looks up k.table[0, 7] = 1073741823, expected 0 to

!qo = memref<?x?x1x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = PAGE>
func.func @paged(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
