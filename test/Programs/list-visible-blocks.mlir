// A kernel that lists which blocks of keys a visible region shows, and the attention that
// visits them.

// RUN: kvbuf-opt %s --split-input-file --kvbuf-list-visible-blocks="rows=64 keys=32" | FileCheck %s

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

// The region knows the sequence, and no head: lists have one head.
// CHECK-LABEL: func.func @documents(
// CHECK-SAME: %{{.*}}: memref<?x1x?xi32> {kvbuffer.name = "kv_num_blocks"}
// CHECK-SAME: %{{.*}}: memref<?x1x?x?xi32> {kvbuffer.name = "kv_indices"}
// CHECK-SAME: %{{.*}}: memref<?x1x?xi32> {kvbuffer.name = "full_kv_num_blocks"}
// CHECK-SAME: %{{.*}}: memref<?x1x?x?xi32> {kvbuffer.name = "full_kv_indices"}
// CHECK: kvbuffer.attention
// CHECK-SAME: block_mask = #kvbuffer.block_mask<rows = 64, keys = 32, lists = [2, 3, 4, 5]>

// Of the captures the kernel has the one that the region reads.
// CHECK-LABEL: gpu.module @documents_lists_module
// CHECK: gpu.func @documents_lists(
// CHECK-SAME: kvbuffer.name = "q", kvbuffer.shape = ["batch", "seq_q", 4, 64]
// CHECK-SAME: kvbuffer.name = "k"
// CHECK-NOT: capture0
// CHECK-SAME: %[[DOC:[a-z0-9]+]]: memref<?x?xi32> {kvbuffer.access = "read", kvbuffer.name = "capture1", kvbuffer.shape = ["capture1_0", "capture1_1"]}
// CHECK-SAME: kvbuffer.access = "write", kvbuffer.name = "kv_num_blocks", kvbuffer.shape = ["batch", 1, #kvbuffer.size<ceildiv(seq_q, 64)>]
// CHECK-SAME: %[[PARTLY:[a-z0-9]+]]: memref<?x1x?x?xi32> {{{.*}}kvbuffer.name = "kv_indices", kvbuffer.shape = ["batch", 1, #kvbuffer.size<ceildiv(seq_q, 64)>, #kvbuffer.size<ceildiv(seq_k, 32)>]
// CHECK-SAME: workgroup(%[[WORDS:.*]] : memref<32xi32
// CHECK-SAME: known_block_size = array<i32: 512, 1, 1>, kvbuffer.grid = [#kvbuffer.size<ceildiv(seq_q, 64)>, 1, "batch"], kvbuffer.phase = #kvbuffer.phase<thread>
// Rounds of eight blocks of keys; causal, so none behind the last row's position.
// CHECK: scf.for %[[BASE:.*]] = %{{.*}} to %{{.*}} step %c8
// A thread has a row, whose number is read once, and all keys.
// CHECK:   scf.for
// CHECK:     memref.load %[[DOC]]
// CHECK:     scf.for
// CHECK:       memref.load %[[DOC]]
// CHECK:       arith.cmpi eq
// CHECK:       arith.cmpi sle
// CHECK:       arith.xori
// CHECK:   kvbuffer.lane_any
// CHECK:   kvbuffer.lane_any
// CHECK:   memref.store %{{.*}}, %[[WORDS]]
// CHECK:   gpu.barrier
// CHECK:   scf.for
// CHECK-COUNT-2: memref.load %[[WORDS]]
// CHECK:     memref.store %{{.*}}, %[[PARTLY]]
func.func @documents(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %slopes: memref<4xf32>, %doc: memref<?x?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
    captures(%slopes, %doc : memref<4xf32>, memref<?x?xi32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index,
         %slope_of: memref<4xf32>, %doc_of: memref<?x?xi32>):
      %slope = memref.load %slope_of[%head] : memref<4xf32>
      %t = arith.mulf %s, %slope : f32
      kvbuffer.yield %t : f32
    }
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index,
         %slope_of: memref<4xf32>, %doc_of: memref<?x?xi32>):
      %own = memref.load %doc_of[%batch, %row] : memref<?x?xi32>
      %its = memref.load %doc_of[%batch, %key] : memref<?x?xi32>
      %t = arith.cmpi eq, %own, %its : i32
      kvbuffer.yield %t : i1
    }
  return
}

// -----

!qo = memref<2x100x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

// Sizes that types fix are numbers. What is read by rows and keys, neighbours read as
// neighbours: a thread has keys, and all rows.
// CHECK-LABEL: func.func @table(
// CHECK-SAME: memref<1x4x2xi32>
// CHECK-SAME: memref<1x4x2x?xi32>
// CHECK: gpu.func @table_lists(
// CHECK-SAME: kvbuffer.shape = [2, 100, 4, 64]
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: memref<4x?x?xi32>
// CHECK-SAME: kvbuffer.shape = [1, 4, 2, #kvbuffer.size<ceildiv(seq_k, 32)>]
// CHECK-SAME: kvbuffer.grid = [2, 4, 1]
// CHECK: %[[ROWS:.*]] = memref.dim
// CHECK: %[[FIRST:.*]] = arith.muli %block_id_x
// CHECK: %[[END:.*]] = arith.minsi %{{.*}}, %[[ROWS]]
// CHECK: scf.for
// CHECK: scf.for %[[KEY:.*]] = %{{.*}} to %{{.*}} step %c64
// CHECK: scf.for %[[ROW:.*]] = %[[FIRST]] to %[[END]] step
// CHECK: memref.load %[[TABLE]][%block_id_y, %[[ROW]], %[[KEY]]]
func.func @table(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %table: memref<4x?x?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%table : memref<4x?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %t: memref<4x?x?xi32>):
      %n = memref.load %t[%head, %row, %key] : memref<4x?x?xi32>
      %c0 = arith.constant 0 : i32
      %seen = arith.cmpi ne, %n, %c0 : i32
      kvbuffer.yield %seen : i1
    }
  return
}

// -----

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

// Nothing is done where lists are there already, and where there is no region.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: kv_num_blocks
// CHECK: kvbuffer.attention
// CHECK-LABEL: func.func @shown(
// CHECK-SAME: kv_num_blocks
// CHECK-LABEL: gpu.func @shown_lists(
// CHECK-NOT: capture
// CHECK-SAME: kvbuffer.grid = [#kvbuffer.size<ceildiv(seq_q, 64)>, 1, 1]
func.func @others(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
func.func @shown(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %seen = arith.cmpi sle, %key, %row : index
      kvbuffer.yield %seen : i1
    }
  return
}
