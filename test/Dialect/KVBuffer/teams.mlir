// Teams and queues, printed and read back.

// RUN: kvbuf-opt %s | kvbuf-opt | FileCheck %s
// RUN: kvbuf-opt %s --mlir-print-op-generic | kvbuf-opt | FileCheck %s

// Warps without work stay warps of the block.
// RUN: kvbuf-opt %s --canonicalize --cse | FileCheck %s --check-prefix=IDLE
// IDLE: kvbuffer.team @idle warps(1)

!p = !kvbuffer.fragment<64x32xbf16, a>
!row = !kvbuffer.fragment<64x1xf32, row>
!pairs = !kvbuffer.queue<!p, !row>

// CHECK-LABEL: func.func @teams
func.func @teams(%n: index) {
  // One value means the same however it is spread.
  // CHECK: %[[ONE:.*]] = kvbuffer.fragment_fill
  %one = kvbuffer.fragment_fill 1.0 : !p
  // CHECK: %[[QUEUE:.*]] = kvbuffer.queue slots(2) from @scores to [@left, @right] : {{.*}}<!kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.fragment<64x1xf32, row>>
  %queue = kvbuffer.queue slots(2) from @scores to [@left, @right] : !pairs
  // CHECK: kvbuffer.teams {
  kvbuffer.teams {
    // CHECK-NEXT: kvbuffer.team @scores warps(4) {
    kvbuffer.team @scores warps(4) {
      %r = kvbuffer.fragment_fill 1.0 : !row
      // CHECK: kvbuffer.queue_put %[[ONE]], %{{.*}} to %[[QUEUE]][%{{.*}}] : {{.*}}<!kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.fragment<64x1xf32, row>>
      kvbuffer.queue_put %one, %r to %queue[%n] : !pairs
    }
    // CHECK: kvbuffer.team @left warps(4) {
    kvbuffer.team @left warps(4) {
      // CHECK-NEXT: %{{.*}}, %{{.*}} = kvbuffer.queue_take %[[QUEUE]][%{{.*}}] : {{.*}}<!kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.fragment<64x1xf32, row>>
      %p, %r = kvbuffer.queue_take %queue[%n] : !pairs
    }
    kvbuffer.team @right warps(4) {
      %p, %r = kvbuffer.queue_take %queue[%n] : !pairs
    }
    // CHECK: kvbuffer.team @copies warps(2) x 3 BM(32) (%[[COPY:.*]]) {
    // CHECK-NEXT: arith.addi %[[COPY]], %{{.*}}
    kvbuffer.team @copies warps(2) x 3 BM(32) (%copy) {
      %next = arith.addi %copy, %n : index
      kvbuffer.meet
    }
    // CHECK: kvbuffer.team @idle warps(1) {
    // CHECK-NEXT: }
    kvbuffer.team @idle warps(1) {
    }
  }
  // CHECK: %[[SHELF:.*]] = kvbuffer.shelf slots(4) : {{.*}}<!kvbuffer.fragment<64x1xf32, row>>
  %shelf = kvbuffer.shelf slots(4) : !kvbuffer.shelf<!row>
  kvbuffer.teams {
    kvbuffer.team @keep warps(4) x 4 (%copy) {
      %r = kvbuffer.fragment_fill 1.0 : !row
      // CHECK: kvbuffer.shelf_put %{{.*}} to %[[SHELF]][%{{.*}}] : {{.*}}<!kvbuffer.fragment<64x1xf32, row>>
      kvbuffer.shelf_put %r to %shelf[%copy] : !kvbuffer.shelf<!row>
      // CHECK: kvbuffer.shelf_get %[[SHELF]][%{{.*}}] : {{.*}}<!kvbuffer.fragment<64x1xf32, row>>
      %own = kvbuffer.shelf_get %shelf[%copy] : !kvbuffer.shelf<!row>
    }
  }
  return
}
