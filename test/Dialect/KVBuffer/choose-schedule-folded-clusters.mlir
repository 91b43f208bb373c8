// Tiles of all heads that share a head of the cache read the same keys: two of them
// are a cluster's, and take turns as well.

// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=cluster=2" 2>&1 >/dev/null | FileCheck %s --check-prefix=WARNING --implicit-check-not=warning

// CHECK-DAG: #[[PAIR:.*]] = #kvbuffer.schedule<BM = 128,{{.*}}ping_pong = true>, work = several_tiles<tiles = dynamic, cluster = 2>
// CHECK-DAG: #[[ALONE:.*]] = #kvbuffer.schedule<BM = 128,{{.*}}ping_pong = true>, work = several_tiles<tiles = dynamic>

!q64 = memref<?x64x8x128xbf16>
!q48 = memref<?x48x8x128xbf16>
!k = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>

// A tree, which is sure to hide no key: 256 rows of four heads.
// CHECK: func.func @tree
// CHECK: schedule = #[[PAIR]]
func.func @tree(%q: !q64, %k: !k, %v: !k, %words: memref<?x64xi64>, %o: !q64) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q64, !k, !k, !q64
    captures(%words : memref<?x64xi64>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %position: index, %key: index, %words_: memref<?x64xi64>):
      %c0 = arith.constant 0 : index
      %one = arith.constant 1 : i64
      %first = arith.subi %position, %row : index
      %token = arith.subi %key, %first : index
      %before = arith.cmpi slt, %token, %c0 : index
      %at = arith.maxsi %token, %c0 : index
      %by = arith.index_cast %at : index to i64
      %word = memref.load %words_[%batch, %row] : memref<?x64xi64>
      %shifted = arith.shrui %word, %by : i64
      %low = arith.andi %shifted, %one : i64
      %marked = arith.cmpi eq, %low, %one : i64
      %seen = arith.ori %before, %marked : i1
      kvbuffer.yield %seen : i1
    }
  return
}

// Two tiles, the second of which has 64 rows.
// CHECK: func.func @rows
// CHECK: schedule = #[[PAIR]]
func.func @rows(%q: !q48, %k: !k, %v: !k, %o: !q48) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !q48, !k, !k, !q48
  return
}

// A function that hides the last keys, or the first ones, from some rows.
// CHECK: func.func @before
// CHECK: schedule = #[[ALONE]]
// WARNING: choose-schedule-folded-clusters.mlir:[[#@LINE+2]]:3: warning: no clusters: a function of visibility shows other keys
func.func @before(%q: !q64, %k: !k, %v: !k, %ends: memref<?xi32>, %o: !q64) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q64, !k, !k, !q64
    captures(%ends : memref<?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %position: index, %key: index, %ends_: memref<?xi32>):
      %end = memref.load %ends_[%batch] : memref<?xi32>
      %number = arith.index_cast %key : index to i32
      %seen = arith.cmpi slt, %number, %end : i32
      kvbuffer.yield %seen : i1
    }
  return
}

// CHECK: func.func @behind
// CHECK: schedule = #[[ALONE]]
// WARNING: choose-schedule-folded-clusters.mlir:[[#@LINE+2]]:3: warning: no clusters: a function of visibility shows other keys
func.func @behind(%q: !q64, %k: !k, %v: !k, %o: !q64) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q64, !k, !k, !q64
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %position: index, %key: index):
      %c100 = arith.constant 100 : index
      %away = arith.subi %key, %position : index
      %near = arith.cmpi sge, %away, %c100 : index
      kvbuffer.yield %near : i1
    }
  return
}
