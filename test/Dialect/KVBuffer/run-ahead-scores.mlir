// The scores of tile i + 1 beside the softmax of tile i: the first scores before the
// loop, the last softmax after it, all of it only if there is a tile.

// DEFINE: %{pass} = kvbuf-opt --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=scores},canonicalize)))"
// RUN: %{pass} %s | FileCheck %s
// RUN: %{pass} %s --remark-format=emitRemark --remarks-filter=kvbuf-run-ahead 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// A schedule that does not ask for it is left alone.
// RUN: sed 's/, overlap = true//' %s | %{pass} | FileCheck %s --check-prefix=OFF --implicit-check-not=transpose_b
// OFF-LABEL: gpu.func @attend
// OFF:         kvbuffer.mma {{.*}} {transpose_b}
// OFF-LABEL: gpu.func @lazy
// OFF:         kvbuffer.mma {{.*}} {transpose_b}

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], overlap = true>
#buf = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
!slots = !kvbuffer.buffer<#buf>
!tile = !kvbuffer.tile<16x16xbf16>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
gpu.module @m {
  // CHECK-LABEL: gpu.func @attend
  // CHECK-SAME:    %[[N:[a-z0-9]+]]: index, %[[EDGE:[a-z0-9]+]]: index) kernel
  // CHECK:         %[[ANY:.*]] = arith.cmpi sgt, %[[N]], %c0
  // CHECK:         %[[ALL:.*]]:3 = scf.if %[[ANY]]
  // CHECK:           %[[LAST:.*]] = arith.subi %[[N]], %c1
  // The first scores, and no mask or softmax.
  // CHECK:           kvbuffer.dram_load %{{.*}} into %[[BUF:.*]][%c0] :
  // CHECK:           %[[S0:.*]] = kvbuffer.mma {{.*}} {transpose_b}
  // CHECK-NOT:       kvbuffer.mask
  // CHECK-NOT:       kvbuffer.online_softmax
  // CHECK:           %[[LOOP:.*]]:4 = scf.for %[[I:.*]] = %c0 to %[[LAST]] step %c1 iter_args(%[[ACC:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}}, %[[S:.*]] = %[[S0]])
  // The next tile's scores, from its own slot.
  // CHECK:             %[[NEXTI:.*]] = arith.addi %[[I]], %c1
  // CHECK:             %[[SLOT:.*]] = arith.remui %[[NEXTI]], %c2
  // CHECK:             kvbuffer.dram_load %{{.*}} into %[[BUF]][%[[SLOT]]] :
  // CHECK:             %[[NEXT:.*]] = kvbuffer.mma {{.*}} {transpose_b}
  // This tile's mask, by its own number, softmax and second product.
  // CHECK:             %[[CUT:.*]] = arith.cmpi slt, %[[I]], %[[EDGE]]
  // CHECK:             %[[H:.*]] = scf.if %[[CUT]]
  // CHECK:               kvbuffer.mask %[[S]] rows(%c0, %{{.*}}) keys(%[[I]], %
  // CHECK:             } else {
  // CHECK:               scf.yield %[[S]]
  // CHECK:             %[[P:.*]], %[[M1:.*]], %[[L1:.*]], %[[F:.*]] = kvbuffer.online_softmax %[[H]], %[[M]], %[[L]]
  // CHECK:             %[[SCALED:.*]] = kvbuffer.rescale %[[ACC]], %[[F]]
  // CHECK:             %[[O:.*]] = kvbuffer.mma %[[P]], %{{.*}}, %[[SCALED]] :
  // CHECK:             scf.yield %[[O]], %[[M1]], %[[L1]], %[[NEXT]]
  // The last softmax is of what the loop carried; no scores are computed here.
  // CHECK-NOT:       transpose_b
  // CHECK:           arith.cmpi slt, %[[LAST]], %[[EDGE]]
  // CHECK:           kvbuffer.mask %[[LOOP]]#3 rows(%c0, %{{.*}}) keys(%[[LAST]], %
  // CHECK:           kvbuffer.online_softmax %{{.*}}, %[[LOOP]]#1, %[[LOOP]]#2
  // CHECK-NOT:       transpose_b
  // CHECK:           kvbuffer.mma
  // CHECK-NOT:       transpose_b
  // CHECK:         } else {
  // CHECK:         kvbuffer.softmax_finish %[[ALL]]#0, %[[ALL]]#1, %[[ALL]]#2
  gpu.func @attend(%q: !a, %xt: !tile, %y: !b, %zero: !acc, %r0: !row, %out: memref<16xf32>, %n: index, %edge: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %x_slots = kvbuffer.alloc : !slots
    // REMARK: remark: [Passed] overlap{{.*}}the scores of the next tile overlap the softmax of this one
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %m = %r0, %l = %r0) -> (!acc, !row, !row) {
      %slot = arith.remui %i, %c2 : index
      %xl = kvbuffer.dram_load %xt into %x_slots[%slot] : !tile, !slots
      %xs = kvbuffer.lds_stage %xl : !kvbuffer.token<#buf>
      %xf = kvbuffer.fragment_load %xs[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
      %s = kvbuffer.mma %q, %xf, %zero {transpose_b} : !a, !b, !acc
      %cut = arith.cmpi slt, %i, %edge : index
      %h = scf.if %cut -> (!acc) {
        %masked = kvbuffer.mask %s rows(%c0, %n) keys(%i, %n) {mask = #kvbuffer.mask<causal = true>} : !acc
        scf.yield %masked : !acc
      } else {
        scf.yield %s : !acc
      }
      %p, %m1, %l1, %f = kvbuffer.online_softmax %h, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      %scaled = kvbuffer.rescale %acc, %f : !acc, !row
      %o = kvbuffer.mma %p, %y, %scaled : !a, !b, !acc
      scf.yield %o, %m1, %l1 : !acc, !row, !row
    }
    %done, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 1.0 : f32} : !acc, !row
    kvbuffer.row_store %lse, %out[%c0] valid(%n) : !row, memref<16xf32>
    gpu.return
  }

  // A softmax in two parts: its maximum and its head run ahead with the scores, the
  // tail stays. Instead of the next tile's number, this one's is compared, with one
  // less.
  // CHECK-LABEL: gpu.func @lazy
  // CHECK-SAME:    %[[N:[a-z0-9]+]]: index, %[[FEW:[a-z0-9]+]]: index) kernel
  // CHECK:         scf.if
  // CHECK:           kvbuffer.mma {{.*}} {transpose_b}
  // CHECK:           %[[M0:.*]], %[[F0:.*]], %[[R0:.*]] = kvbuffer.raise_max
  // CHECK:           %[[X0:.*]], %[[E0:.*]] = kvbuffer.softmax_head
  // CHECK-NOT:       kvbuffer.apply_raise
  // CHECK-NOT:       kvbuffer.softmax_tail
  // CHECK:           %[[BOUND:.*]] = arith.subi %[[FEW]], %c1
  // CHECK:           scf.for %[[I:.*]] = %c0 to %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[M:.*]] = %[[M0]], %[[L:.*]] = %{{.*}}, %[[R:.*]] = %[[R0]], %[[F:.*]] = %[[F0]], %[[X:.*]] = %[[X0]], %[[E:.*]] = %[[E0]])
  // CHECK:             %[[S:.*]] = kvbuffer.mma {{.*}} {transpose_b}
  // CHECK:             %[[EXACT:.*]] = arith.cmpi slt, %[[I]], %[[BOUND]]
  // CHECK:             %[[MN:.*]], %[[FN:.*]], %[[RN:.*]] = kvbuffer.raise_max %[[S]], %[[M]] exact(%[[EXACT]])
  // CHECK:             %[[XN:.*]], %[[EN:.*]] = kvbuffer.softmax_head %[[S]], %[[MN]]
  // CHECK:             %[[A:.*]], %[[LA:.*]] = kvbuffer.apply_raise %[[R]], %[[F]], %[[ACC]], %[[L]]
  // CHECK:             %[[P:.*]], %[[L1:.*]] = kvbuffer.softmax_tail %[[X]], %[[LA]] excess(%[[E]])
  // CHECK:             %[[O:.*]] = kvbuffer.mma %[[P]], %{{.*}}, %[[A]]
  // CHECK:             scf.yield %[[O]], %[[MN]], %[[L1]], %[[RN]], %[[FN]], %[[XN]], %[[EN]]
  // CHECK-NOT:       kvbuffer.softmax_head
  // CHECK:           kvbuffer.softmax_tail
  gpu.func @lazy(%q: !a, %x: !b, %y: !b, %zero: !acc, %r0: !row, %out: memref<16xf32>, %n: index, %few: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // REMARK: remark: [Passed] overlap
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %m = %r0, %l = %r0) -> (!acc, !row, !row) {
      %s = kvbuffer.mma %q, %x, %zero {transpose_b} : !a, !b, !acc
      %exact = arith.cmpi slt, %i, %few : index
      %m1, %f, %raised = kvbuffer.raise_max %s, %m exact(%exact) {scale = 1.0 : f32} : !acc, !row
      %e, %excess = kvbuffer.softmax_head %s, %m1 {operand = bf16, scale = 1.0 : f32} : !acc, !row
      %scaled, %l0 = kvbuffer.apply_raise %raised, %f, %acc, %l : !acc, !row
      %p, %l1 = kvbuffer.softmax_tail %e, %l0 excess(%excess) : !acc, !row -> !a
      %o = kvbuffer.mma %p, %y, %scaled : !a, !b, !acc
      scf.yield %o, %m1, %l1 : !acc, !row, !row
    }
    %done, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 1.0 : f32} : !acc, !row
    kvbuffer.row_store %lse, %out[%c0] valid(%n) : !row, memref<16xf32>
    gpu.return
  }
}
