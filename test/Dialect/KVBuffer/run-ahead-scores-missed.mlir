// Loops that the order `scores` leaves alone, with a warning that says why.

// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=scores},canonicalize)))" --verify-diagnostics

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], overlap = true>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
gpu.module @m {
  // The loop carries the scores besides: their product would run twice.
  gpu.func @product(%q: !a, %k: !b, %zero: !acc, %r0: !row, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-warning @below {{not overlapped: more than the scores is read of what would run ahead}}
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%last = %zero, %m = %r0, %l = %r0) -> (!acc, !row, !row) {
      %s = kvbuffer.mma %q, %k, %zero {transpose_b} : !a, !b, !acc
      %capped = kvbuffer.softcap %s {cap = 20.0 : f32, scale = 1.0 : f32} : !acc
      %p, %m1, %l1, %rs = kvbuffer.online_softmax %capped, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      scf.yield %s, %m1, %l1 : !acc, !row, !row
    }
    gpu.return
  }

  gpu.func @carried(%q: !a, %k: !b, %zero: !acc, %r0: !row, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-warning @below {{not overlapped: the scores depend on what the loop carries}}
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%last = %zero, %m = %r0, %l = %r0) -> (!acc, !row, !row) {
      %s = kvbuffer.mma %q, %k, %last {transpose_b} : !a, !b, !acc
      %p, %m1, %l1, %rs = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      scf.yield %s, %m1, %l1 : !acc, !row, !row
    }
    gpu.return
  }

  gpu.func @passed_on(%q: !a, %k: !b, %zero: !acc, %r0: !row, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-warning @below {{not overlapped: the loop carries a value that no op of its own computes}}
    %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %r0, %l = %r0, %x = %c0, %y = %c1) -> (!row, !row, index, index) {
      %s = kvbuffer.mma %q, %k, %zero {transpose_b} : !a, !b, !acc
      %p, %m1, %l1, %rs = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      %sum = arith.addi %x, %y : index
      scf.yield %m1, %l1, %y, %sum : !row, !row, index, index
    }
    gpu.return
  }

  // The maximum runs ahead, with the head: what else reads it would see the next
  // tile's.
  gpu.func @maximum(%q: !a, %x: !b, %zero: !acc, %r0: !row, %n: index, %out: memref<16xf32>) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-warning @below {{not overlapped: the maximum is read by more than the scores}}
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %m = %r0, %l = %r0) -> (!acc, !row, !row) {
      %s = kvbuffer.mma %q, %x, %zero {transpose_b} : !a, !b, !acc
      %m1, %f, %raised = kvbuffer.raise_max %s, %m {scale = 1.0 : f32} : !acc, !row
      %e, %excess = kvbuffer.softmax_head %s, %m1 {operand = bf16, scale = 1.0 : f32} : !acc, !row
      %scaled, %l0 = kvbuffer.apply_raise %raised, %f, %acc, %l : !acc, !row
      %p, %l1 = kvbuffer.softmax_tail %e, %l0 excess(%excess) : !acc, !row -> !a
      kvbuffer.row_store %m, %out[%c0] valid(%n) : !row, memref<16xf32>
      %o = kvbuffer.mma %p, %x, %scaled : !a, !b, !acc
      scf.yield %o, %m1, %l1 : !acc, !row, !row
    }
    gpu.return
  }

  // expected-warning @below {{not overlapped: no loop has a softmax that can be rotated}}
  gpu.func @none() kernel attributes {kvbuffer.schedule = #schedule} {
    gpu.return
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], overlap = true>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
!tile = !kvbuffer.tile<16x16xbf16>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
gpu.module @m {
  // K is awaited once for two products, of which one would run ahead.
  gpu.func @shared(%tile: !tile, %q: !a, %zero: !acc, %r0: !row, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    // expected-warning @below {{not overlapped: more than the scores is read of what would run ahead}}
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %m = %r0, %l = %r0) -> (!acc, !row, !row) {
      %slot = arith.remui %i, %c2 : index
      %t = kvbuffer.dram_load %tile into %kbuf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
      %ks = kvbuffer.lds_stage %t : !kvbuffer.token<#kbuf>
      %kf = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !b
      %s = kvbuffer.mma %q, %kf, %zero {transpose_b} : !a, !b, !acc
      %p, %m1, %l1, %rs = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      %scaled = kvbuffer.rescale %acc, %rs : !acc, !row
      %kf2 = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !b
      %o = kvbuffer.mma %p, %kf2, %scaled {transpose_b} : !a, !b, !acc
      scf.yield %o, %m1, %l1 : !acc, !row, !row
    }
    gpu.return
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], overlap = true>
#buf = #kvbuffer.kv_buffer<16x16xbf16, stages = 1>
!tile = !kvbuffer.tile<16x16xbf16>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
gpu.module @m {
  // The next tile would be loaded into the slot that this one's scores are read from.
  gpu.func @one_slot(%tile: !tile, %q: !a, %zero: !acc, %r0: !row, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %slot = kvbuffer.alloc : !kvbuffer.buffer<#buf>
    // expected-warning @below {{not overlapped: a buffer of one slot cannot be loaded while it is read}}
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %r0, %l = %r0) -> (!row, !row) {
      %t = kvbuffer.dram_load %tile into %slot[%c0] : !tile, !kvbuffer.buffer<#buf>
      %xs = kvbuffer.lds_stage %t : !kvbuffer.token<#buf>
      %xf = kvbuffer.fragment_load %xs[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
      %s = kvbuffer.mma %q, %xf, %zero {transpose_b} : !a, !b, !acc
      %p, %m1, %l1, %rs = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      scf.yield %m1, %l1 : !row, !row
    }
    gpu.return
  }
}
