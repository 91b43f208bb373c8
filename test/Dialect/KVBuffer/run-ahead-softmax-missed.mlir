// Loops that the order `softmax` leaves alone, and why.

// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=softmax})))" --remark-format=emitRemark --remarks-filter=kvbuf-run-ahead 2>&1 | FileCheck %s

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], overlap_products = true>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
gpu.module @m {
  gpu.func @carried(%q: !a, %k: !b, %acc0: !acc, %r0: !row, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // CHECK: run-ahead-softmax-missed.mlir:[[#@LINE+1]]:{{.*}} remark: [Missed] overlap{{.*}}not overlapped: {{.*}}the scores, or what the weights are multiplied by, depend on what the loop carries
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %acc0, %m = %r0, %l = %r0) -> (!acc, !row, !row) {
      %s = kvbuffer.mma %q, %k, %acc {transpose_b} : !a, !b, !acc
      %p, %m1, %l1, %rs = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      %scaled = kvbuffer.rescale %acc, %rs : !acc, !row
      %o = kvbuffer.mma %p, %k, %scaled : !a, !b, !acc
      scf.yield %o, %m1, %l1 : !acc, !row, !row
    }
    gpu.return
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], overlap_products = true>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
gpu.module @m {
  gpu.func @step(%q: !a, %k: !b, %zero: !acc, %r0: !row, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    // CHECK: run-ahead-softmax-missed.mlir:[[#@LINE+1]]:{{.*}} remark: [Missed] overlap{{.*}}not overlapped: {{.*}}the loop's step is not 1
    %r:3 = scf.for %i = %c0 to %n step %c2 iter_args(%acc = %zero, %m = %r0, %l = %r0) -> (!acc, !row, !row) {
      %s = kvbuffer.mma %q, %k, %zero {transpose_b} : !a, !b, !acc
      %p, %m1, %l1, %rs = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      %scaled = kvbuffer.rescale %acc, %rs : !acc, !row
      %o = kvbuffer.mma %p, %k, %scaled : !a, !b, !acc
      scf.yield %o, %m1, %l1 : !acc, !row, !row
    }
    // The maximum alone.
    // CHECK: run-ahead-softmax-missed.mlir:[[#@LINE+1]]:{{.*}} remark: [Missed] overlap{{.*}}not overlapped: {{.*}}the loop does not carry accumulators, a maximum and a sum
    %m9:2 = scf.for %i = %c0 to %n step %c2 iter_args(%m = %r0, %l = %r0) -> (!row, !row) {
      %s = kvbuffer.mma %q, %k, %zero {transpose_b} : !a, !b, !acc
      %p, %m1, %l1, %rs = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      scf.yield %m1, %l1 : !row, !row
    }
    gpu.return
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], overlap_products = true>
!tile = !kvbuffer.tile<16x16xbf16>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
gpu.module @m {
  // A store that the rotated loop would not have.
  gpu.func @store(%q: !a, %k: !b, %zero: !acc, %r0: !row, %n: index, %out: memref<?xf32>) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // CHECK: run-ahead-softmax-missed.mlir:[[#@LINE+1]]:{{.*}} warning: not overlapped: the loop does more than a softmax between two products
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %m = %r0, %l = %r0) -> (!acc, !row, !row) {
      %s = kvbuffer.mma %q, %k, %zero {transpose_b} : !a, !b, !acc
      %p, %m1, %l1, %rs = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      kvbuffer.row_store %m1, %out[%c0] valid(%n) : !row, memref<?xf32>
      %scaled = kvbuffer.rescale %acc, %rs : !acc, !row
      %o = kvbuffer.mma %p, %k, %scaled : !a, !b, !acc
      scf.yield %o, %m1, %l1 : !acc, !row, !row
    }
    gpu.return
  }
  // CHECK: run-ahead-softmax-missed.mlir:[[#@LINE+1]]:{{.*}} warning: not overlapped: no loop has a kvbuffer.online_softmax
  gpu.func @none() kernel attributes {kvbuffer.schedule = #schedule} {
    gpu.return
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], overlap_products = true>
#buf = #kvbuffer.kv_buffer<16x16xbf16, stages = 1>
!tile = !kvbuffer.tile<16x16xbf16>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
gpu.module @m {
  // The second tile would be loaded while the first scores are computed.
  gpu.func @one_slot(%tile: !tile, %q: !a, %y: !b, %zero: !acc, %r0: !row, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %slot = kvbuffer.alloc : !kvbuffer.buffer<#buf>
    // CHECK: run-ahead-softmax-missed.mlir:[[#@LINE+1]]:{{.*}} warning: not overlapped: a buffer of one slot cannot be loaded while it is read
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %m = %r0, %l = %r0) -> (!acc, !row, !row) {
      %t = kvbuffer.dram_load %tile into %slot[%c0] : !tile, !kvbuffer.buffer<#buf>
      %xs = kvbuffer.lds_stage %t : !kvbuffer.token<#buf>
      %xf = kvbuffer.fragment_load %xs[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
      %s = kvbuffer.mma %q, %xf, %zero {transpose_b} : !a, !b, !acc
      %p, %m1, %l1, %rs = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      %scaled = kvbuffer.rescale %acc, %rs : !acc, !row
      %o = kvbuffer.mma %p, %y, %scaled : !a, !b, !acc
      scf.yield %o, %m1, %l1 : !acc, !row, !row
    }
    gpu.return
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], overlap_products = true>
#buf = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
!slots = !kvbuffer.buffer<#buf>
!tile = !kvbuffer.tile<16x16xbf16>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
gpu.module @m {
  gpu.func @one_slot_for_both(%q: !a, %tile: !tile, %zero: !acc, %r0: !row, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %slots = kvbuffer.alloc : !slots
    // CHECK: run-ahead-softmax-missed.mlir:[[#@LINE+1]]:{{.*}} remark: [Missed] overlap{{.*}}not overlapped: {{.*}}the scores and what the weights are multiplied by are read from one slot; expected a load for each
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %m = %r0, %l = %r0) -> (!acc, !row, !row) {
      %t = kvbuffer.dram_load %tile into %slots : !tile, !slots
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#buf>
      %k = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
      %v = kvbuffer.fragment_load %s[0, 0] contracted(rows) : !kvbuffer.staged<#buf> -> !b
      %sc = kvbuffer.mma %q, %k, %zero {transpose_b} : !a, !b, !acc
      %p, %m1, %l1, %f = kvbuffer.online_softmax %sc, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      %scaled = kvbuffer.rescale %acc, %f : !acc, !row
      %o = kvbuffer.mma %p, %v, %scaled : !a, !b, !acc
      scf.yield %o, %m1, %l1 : !acc, !row, !row
    }
    gpu.return
  }

  // An accumulator that nobody adds to, and one that is added to in another order.
  gpu.func @carried_along(%q: !a, %k: !b, %zero: !acc, %r0: !row, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // CHECK: run-ahead-softmax-missed.mlir:[[#@LINE+1]]:{{.*}} remark: [Missed] overlap{{.*}}not overlapped: {{.*}}the loop does not carry accumulators, a maximum and a sum
    %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %other = %zero, %m = %r0, %l = %r0) -> (!acc, !acc, !row, !row) {
      %s = kvbuffer.mma %q, %k, %zero {transpose_b} : !a, !b, !acc
      %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      %scaled = kvbuffer.rescale %acc, %f : !acc, !row
      %o = kvbuffer.mma %p, %k, %scaled : !a, !b, !acc
      scf.yield %o, %other, %m1, %l1 : !acc, !acc, !row, !row
    }
    gpu.return
  }
}
