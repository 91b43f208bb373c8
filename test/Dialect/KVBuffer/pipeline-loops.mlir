// What the ops of a loop say of when they run is all that the pipeliner knows.

// A loop by hand: numbers are read one iteration ahead, and summed up.
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-pipeline-loops,canonicalize)))" | FileCheck %s
// Compilers make it of a kernel's loops, too.
// RUN: sed 's/index) kernel {/index) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.grid = [1, 1, 1], kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 32, warps = 1, mma_shape = [16, 8, 16]>} {/' %s | kvbuf-opt --pass-pipeline="builtin.module(kvbuf-to-scheduled{chip=sm_80})" | FileCheck %s
// What passes say, they say in the IR; the loop is the same in one step and in two.
// RUN: kvbuf-opt %S/run-ahead-softmax-outputs.mlir --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=softmax annotate-only=true})))" --split-input-file | FileCheck %s --check-prefix=STAGES
// RUN: kvbuf-opt %S/run-ahead-softmax.mlir --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=softmax annotate-only=true},kvbuf-pipeline-loops,canonicalize)))" --split-input-file | FileCheck %S/run-ahead-softmax.mlir
// RUN: kvbuf-opt %S/run-ahead-scores.mlir --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=scores annotate-only=true},kvbuf-pipeline-loops,canonicalize)))" --split-input-file | FileCheck %S/run-ahead-scores.mlir
// RUN: kvbuf-opt %S/run-ahead-blocks.mlir --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=blocks annotate-only=true},kvbuf-pipeline-loops,kvbuf-run-ahead{orders=loads},canonicalize,kvbuf-count-waits)))" --split-input-file | FileCheck %S/run-ahead-blocks.mlir
// RUN: kvbuf-opt %S/run-ahead-turns.mlir --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=turns annotate-only=true},kvbuf-pipeline-loops,canonicalize,cse)))" | FileCheck %S/run-ahead-turns.mlir
// RUN: kvbuf-opt %S/run-ahead-turns.mlir --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=turns annotate-only=true})))" | FileCheck %s --check-prefix=TURNS
// RUN: kvbuf-opt %S/run-ahead-loads-in-turn.mlir --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=loads})))" -o %t.one
// RUN: kvbuf-opt %S/run-ahead-loads-in-turn.mlir --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=loads annotate-only=true},kvbuf-pipeline-loops)))" | diff %t.one -

// What runs two tiles ahead, and what runs one ahead, beyond the last tile, too.
// TURNS: scf.for
// TURNS: kvbuffer.dram_load {{.*}}#kvbuffer.stage<2 ahead, own, at
// TURNS: kvbuffer.dram_load {{.*}}#kvbuffer.stage<1 ahead, all, at
// TURNS: kvbuffer.pipeline = #kvbuffer.pipeline<turns>

// STAGES: kvbuffer.mma {{.*}} {kvbuffer.stage = #kvbuffer.stage<1 ahead, own, at {{[0-9]+}}>, transpose_b}
// STAGES: kvbuffer.online_softmax {{.*}} {kvbuffer.stage = #kvbuffer.stage<1 ahead, own, at {{[0-9]+}}>
// STAGES: kvbuffer.mma {{.*}} {kvbuffer.stage = #kvbuffer.stage<0 ahead, own, at {{[0-9]+}}>}
// STAGES: } {{{.*}}kvbuffer.pipeline = #kvbuffer.pipeline<peeled_ahead>{{.*}}}

gpu.module @m {
  // CHECK-LABEL: gpu.func @numbers(
  // CHECK-SAME: %[[LIST:.*]]: memref<?xi32>, %[[OUT:.*]]: memref<?xi32>, %[[N:.*]]: index
  // CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[N]], %c0
  // CHECK: %[[FIRST:.*]] = scf.if %[[ANY]]
  // CHECK:   memref.load %[[LIST]][%c0]
  // CHECK: scf.for %[[I:.*]] = %c0 to %[[N]] step %c1 iter_args(%[[NOW:.*]] = %[[FIRST]])
  // CHECK:   %[[LAST:.*]] = arith.subi %[[N]], %c1
  // CHECK:   %[[MORE:.*]] = arith.cmpi slt, %[[I]], %[[LAST]]
  // In the order of the places: this iteration's number before the next one.
  // CHECK:   %[[TWICE:.*]] = arith.addi %[[NOW]], %[[NOW]]
  // CHECK:   memref.store %[[TWICE]], %[[OUT]][%[[I]]]
  // CHECK:   %[[NEXT:.*]] = scf.if %[[MORE]]
  // CHECK:     memref.load %[[LIST]]
  // CHECK:   scf.yield %[[NEXT]]
  // CHECK-NOT: kvbuffer.
  gpu.func @numbers(%list: memref<?xi32>, %out: memref<?xi32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %x = memref.load %list[%i] {kvbuffer.stage = #kvbuffer.stage<1 ahead, own, at 2>} : memref<?xi32>
      %y = arith.addi %x, %x {kvbuffer.stage = #kvbuffer.stage<0 ahead, own, at 0>} : i32
      memref.store %y, %out[%i] {kvbuffer.stage = #kvbuffer.stage<0 ahead, own, at 1>} : memref<?xi32>
    } {kvbuffer.pipeline = #kvbuffer.pipeline<predicated>}
    gpu.return
  }

  // A loop leaves the stages of the one behind it alone.
  // CHECK-LABEL: gpu.func @two_loops(
  // CHECK-COUNT-2: scf.for {{.*}} iter_args(
  // CHECK-NOT: kvbuffer.
  gpu.func @two_loops(%list: memref<?xi32>, %out: memref<?xi32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %x = memref.load %list[%i] {kvbuffer.stage = #kvbuffer.stage<1 ahead, own, at 1>} : memref<?xi32>
      memref.store %x, %out[%i] {kvbuffer.stage = #kvbuffer.stage<0 ahead, own, at 0>} : memref<?xi32>
    } {kvbuffer.pipeline = #kvbuffer.pipeline<predicated>}
    scf.for %i = %c0 to %n step %c1 {
      %x = memref.load %out[%i] {kvbuffer.stage = #kvbuffer.stage<1 ahead, own, at 1>} : memref<?xi32>
      memref.store %x, %list[%i] {kvbuffer.stage = #kvbuffer.stage<0 ahead, own, at 0>} : memref<?xi32>
    } {kvbuffer.pipeline = #kvbuffer.pipeline<peeled_now>}
    gpu.return
  }

  // The next number is two further on.
  // CHECK-LABEL: gpu.func @by_two(
  // CHECK-SAME: %[[LIST:.*]]: memref<?xi32>, %{{.*}}: memref<?xi32>, %[[N:.*]]: index
  // CHECK: scf.for %[[I:.*]] = %c0 to %[[N]] step %c2 iter_args(
  // CHECK:   %[[LAST:.*]] = arith.subi %[[N]], %c2
  // CHECK:   %[[MORE:.*]] = arith.cmpi slt, %[[I]], %[[LAST]]
  // CHECK:   %[[NEXT:.*]] = arith.addi %[[I]], %c2
  // CHECK:   scf.if %[[MORE]]
  // CHECK:     memref.load %[[LIST]][%[[NEXT]]]
  gpu.func @by_two(%list: memref<?xi32>, %out: memref<?xi32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    scf.for %i = %c0 to %n step %c2 {
      %x = memref.load %list[%i] {kvbuffer.stage = #kvbuffer.stage<1 ahead, own, at 1>} : memref<?xi32>
      memref.store %x, %out[%i] {kvbuffer.stage = #kvbuffer.stage<0 ahead, own, at 0>} : memref<?xi32>
    } {kvbuffer.pipeline = #kvbuffer.pipeline<predicated>}
    gpu.return
  }
}
