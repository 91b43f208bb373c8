// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-rotate-loops)))' | FileCheck %s

// The test stands behind the body: nothing that the loop carries is alive on a way
// out of its head. The loop is entered only if it has an iteration.

gpu.module @m {
  // CHECK-LABEL: gpu.func @sum(
  // CHECK-SAME:    %[[N:.*]]: index, %[[INIT:.*]]: f32, %[[OUT:.*]]: memref<f32>)
  // CHECK:         %[[ENTERS:.*]] = arith.cmpi slt, %c0, %[[N]]
  // CHECK:         %[[RESULT:.*]] = scf.if %[[ENTERS]] -> (f32) {
  // CHECK:           %[[LOOP:.*]]:2 = scf.while (%[[I:.*]] = %c0, %[[X:.*]] = %[[INIT]])
  // CHECK:             %[[Y:.*]] = arith.addf %[[X]], %[[X]]
  // CHECK:             %[[NEXT:.*]] = arith.addi %[[I]], %c1
  // CHECK:             %[[AGAIN:.*]] = arith.cmpi slt, %[[NEXT]], %[[N]]
  // CHECK:             scf.condition(%[[AGAIN]]) %[[NEXT]], %[[Y]]
  // CHECK:           } do {
  // CHECK-NEXT:      ^bb0(%[[J:.*]]: index, %[[Z:.*]]: f32):
  // CHECK-NEXT:        scf.yield %[[J]], %[[Z]]
  // CHECK:           scf.yield %[[LOOP]]#1
  // CHECK:         } else {
  // CHECK:           scf.yield %[[INIT]]
  // CHECK:         memref.store %[[RESULT]], %[[OUT]]
  gpu.func @sum(%n: index, %init: f32, %out: memref<f32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %init) -> f32 {
      %y = arith.addf %x, %x : f32
      scf.yield %y : f32
    }
    memref.store %r, %out[] : memref<f32>
    gpu.return
  }

  // Inner loops too.
  // CHECK-LABEL: gpu.func @nest(
  // CHECK:         scf.if
  // CHECK:           scf.while
  // CHECK:             scf.if
  // CHECK:               scf.while
  // CHECK-NOT:     scf.for
  // CHECK:         gpu.return
  gpu.func @nest(%n: index, %out: memref<?xf32>, %x: f32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      scf.for %j = %i to %n step %c1 {
        memref.store %x, %out[%j] : memref<?xf32>
      }
    }
    gpu.return
  }
}
