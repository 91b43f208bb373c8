// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-rotate-loops,kvbuf-hoist-reads,canonicalize)))' | FileCheck %s

// What each iteration reads is read once, where the loop is entered, with the arithmetic
// that says where. What follows from the iteration, what a branch reads, what may be
// written, and what another memory holds is read where it was.

gpu.module @m {
  // CHECK-LABEL: gpu.func @own(
  // CHECK-SAME:    %[[DOC:[a-z0-9]+]]: memref<i32>, %[[X:[a-z0-9]+]]: memref<?xi32>, %[[N:[a-z0-9]+]]: index, %[[ROW:[a-z0-9]+]]: index
  // CHECK:         scf.if
  // CHECK:           %[[AT:.*]] = arith.maxsi %[[ROW]], %c0
  // CHECK:           %[[OWN:.*]] = memref.load %{{.*}}[%[[AT]]] : memref<9223372036854775807xi32
  // CHECK-NOT:       memref.load
  // CHECK:           scf.while
  // CHECK-NOT:         memref.load %{{.*}}[%[[AT]]]
  // CHECK:             %[[OTHER:.*]] = memref.load %{{.*}}[%{{.*}}] : memref<9223372036854775807xi32
  // CHECK:             arith.cmpi eq, %[[OWN]], %[[OTHER]]
  // CHECK:             scf.if
  // CHECK:               memref.load
  // CHECK:             memref.load %[[X]]
  // CHECK:             memref.load %alloca
  // CHECK:             scf.condition
  gpu.func @own(%doc: memref<i32>, %x: memref<?xi32>, %n: index, %row: index, %b: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0 : i32
    %flat = memref.reinterpret_cast %doc to offset: [0], sizes: [9223372036854775807], strides: [1]
      : memref<i32> to memref<9223372036854775807xi32, strided<[1]>>
    %own_memory = memref.alloca() : memref<4xi32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> i32 {
      %at = arith.maxsi %row, %c0 : index
      %own = memref.load %flat[%at] : memref<9223372036854775807xi32, strided<[1]>>
      %other = memref.load %flat[%i] : memref<9223372036854775807xi32, strided<[1]>>
      %same = arith.cmpi eq, %own, %other : i32
      %v = arith.extui %same : i1 to i32
      %w = scf.if %b -> i32 {
        %in_branch = memref.load %flat[%n] : memref<9223372036854775807xi32, strided<[1]>>
        scf.yield %in_branch : i32
      } else {
        scf.yield %zero : i32
      }
      %written = memref.load %x[%row] : memref<?xi32>
      %kept = memref.load %own_memory[%c1] : memref<4xi32>
      %s0 = arith.addi %v, %w : i32
      %s1 = arith.addi %s0, %written : i32
      %s2 = arith.addi %s1, %kept : i32
      %next = arith.addi %sum, %s2 : i32
      scf.yield %next : i32
    }
    memref.store %r, %x[%c0] : memref<?xi32>
    gpu.return
  }
}
