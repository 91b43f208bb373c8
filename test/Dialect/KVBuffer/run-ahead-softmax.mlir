// The product of the weights of tile i - 1 beside the scores and softmax of tile i:
// the first scores and their softmax before the loop, the last product after it, all
// of it only if there is a tile. See run-ahead-softmax-program.mlir for a loop whose
// number of iterations is known.

// DEFINE: %{pass} = kvbuf-opt --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=softmax},canonicalize)))"
// RUN: %{pass} %s | FileCheck %s
// RUN: %{pass} %s --remark-format=emitRemark --remarks-filter=kvbuf-run-ahead 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// A schedule that does not ask for it is left alone.
// RUN: sed 's/, overlap_products = true//' %s | %{pass} | FileCheck %s --check-prefix=OFF --implicit-check-not=transpose_b
// OFF-LABEL: gpu.func @attend
// OFF:         kvbuffer.mma {{.*}} {transpose_b}
// OFF-LABEL: gpu.func @capped
// OFF:         kvbuffer.mma {{.*}} {transpose_b}

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], overlap_products = true>
#buf = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
!slots = !kvbuffer.buffer<#buf>
!x = memref<?x16xbf16>
!tile = !kvbuffer.tile<16x16xbf16>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
gpu.module @m {
  // CHECK-LABEL: gpu.func @attend
  // CHECK-SAME:    (%{{.*}}, %[[X:[a-z0-9]+]]: memref<?x16xbf16>, %[[Y:[a-z0-9]+]]: memref<?x16xbf16>, %[[N:[a-z0-9]+]]: index, %[[LEFT:[a-z0-9]+]]: index,
  // CHECK-DAG:     %[[XS:.*]] = kvbuffer.alloc : <#[[$BUF:.*]]>
  // CHECK-DAG:     %[[ZERO:.*]] = kvbuffer.fragment_fill 0.000000e+00 : <16x16xf32, acc>
  // CHECK-DAG:     %[[LEAST:.*]] = kvbuffer.fragment_fill 0xFF800000 : <16x1xf32, row>
  // CHECK-DAG:     %[[NONE:.*]] = kvbuffer.fragment_fill 0.000000e+00 : <16x1xf32, row>
  // CHECK-DAG:     %[[EDGE:.*]] = arith.ceildivui
  // CHECK:         %[[ANY:.*]] = arith.cmpi sgt, %[[N]], %c0
  // CHECK:         %[[ALL:.*]]:3 = scf.if %[[ANY]] -> (!kvbuffer.fragment<16x16xf32, acc>, !kvbuffer.fragment<16x1xf32, row>, !kvbuffer.fragment<16x1xf32, row>)
  // The first scores and their softmax, from the maximum and sum that the loop
  // began with. The mask needs no branch: this follows from the range of its keys, so
  // that it hides nothing of a tile that needs none. Zeros need not be rescaled.
  // CHECK:           %[[T0:.*]] = kvbuffer.dram_load %{{.*}} into %[[XBUF:.*]][%c0] :
  // CHECK:           %[[S0:.*]] = kvbuffer.mma {{.*}} {transpose_b}
  // CHECK-NOT:       scf.if
  // CHECK-NOT:       kvbuffer.rescale
  // CHECK:           %[[H0:.*]] = kvbuffer.mask %[[S0]]
  // CHECK:           %[[P0:.*]], %[[M0:.*]], %[[L0:.*]], %{{.*}} = kvbuffer.online_softmax %[[H0]], %[[LEAST]], %[[NONE]]
  // CHECK-NOT:       kvbuffer.rescale
  // CHECK:           %[[LOOP:.*]]:4 = scf.for %[[I:.*]] = %c1 to %[[N]] step %c1 iter_args(%[[ACC:.*]] = %[[ZERO]], %[[M:.*]] = %[[M0]], %[[L:.*]] = %[[L0]], %[[P:.*]] = %[[P0]])
  // This tile's scores; no tile but the first can be cut.
  // CHECK:             %[[SLOT:.*]] = arith.remui %[[I]], %c2
  // CHECK:             kvbuffer.dram_load %{{.*}} into %[[XBUF]][%[[SLOT]]] {whole}
  // CHECK:             %[[S:.*]] = kvbuffer.mma {{.*}} {transpose_b}
  // The product of the tile before, which comes from that tile's slot.
  // CHECK:             %[[BEFORE:.*]] = arith.subi %[[I]], %c1
  // CHECK:             %[[YSLOT:.*]] = arith.remui %[[BEFORE]], %c2
  // CHECK:             kvbuffer.dram_load %{{.*}} into %[[YBUF:.*]][%[[YSLOT]]] :
  // CHECK:             %[[O:.*]] = kvbuffer.mma %[[P]], %{{.*}}, %[[ACC]] :
  // The mask's branch stays, for kvbuf-split-masked-loops.
  // CHECK:             %[[CUT:.*]] = arith.cmpi slt, %[[I]], %[[EDGE]]
  // CHECK:             %[[H:.*]] = scf.if %[[CUT]]
  // CHECK:               kvbuffer.mask %[[S]]
  // CHECK:             %[[PN:.*]], %[[MN:.*]], %[[LN:.*]], %[[F:.*]] = kvbuffer.online_softmax %[[H]], %[[M]], %[[L]]
  // CHECK:             %[[ON:.*]] = kvbuffer.rescale %[[O]], %[[F]]
  // CHECK:             scf.yield %[[ON]], %[[MN]], %[[LN]], %[[PN]]
  // CHECK-NOT:       transpose_b
  // CHECK:           %[[LAST:.*]] = arith.subi %[[N]], %c1
  // CHECK:           %[[LASTSLOT:.*]] = arith.remui %[[LAST]], %c2
  // CHECK:           kvbuffer.dram_load %{{.*}} into %[[YBUF]][%[[LASTSLOT]]]
  // CHECK:           %[[OL:.*]] = kvbuffer.mma %[[LOOP]]#3, %{{.*}}, %[[LOOP]]#0 :
  // CHECK:           scf.yield %[[OL]], %[[LOOP]]#1, %[[LOOP]]#2
  // CHECK:         } else {
  // CHECK:           scf.yield %[[ZERO]], %[[LEAST]], %[[NONE]]
  // CHECK-NOT:     kvbuffer.mma
  // CHECK:         kvbuffer.softmax_finish %[[ALL]]#0, %[[ALL]]#1, %[[ALL]]#2
  gpu.func @attend(%q: !a, %x: !x, %y: !x, %n: index, %left: index, %out: !tile) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %lo, %hi, %full_lo, %full_hi = kvbuffer.key_range %c0 of %left keys %left {BM = 16 : i64, mask = #kvbuffer.mask<causal = true>}
    %edge = arith.ceildivui %full_hi, %c16 : index
    %x_slots = kvbuffer.alloc : !slots
    %y_slots = kvbuffer.alloc : !slots
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %least = kvbuffer.fragment_fill 0xFF800000 : !row
    %none = kvbuffer.fragment_fill 0.0 : !row
    // REMARK: remark: [Passed] overlap{{.*}}the product of the weights overlaps the next tile's scores and softmax
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %m = %least, %l = %none) -> (!acc, !row, !row) {
      %slot = arith.remui %i, %c2 : index
      %at = arith.muli %i, %c16 : index
      %xt = kvbuffer.dram_tile %x[%at, %c0] valid(%left, %c16) : !x -> !tile
      %xl = kvbuffer.dram_load %xt into %x_slots[%slot] : !tile, !slots
      %xs = kvbuffer.lds_stage %xl : !kvbuffer.token<#buf>
      %xf = kvbuffer.fragment_load %xs[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
      %s = kvbuffer.mma %q, %xf, %zero {transpose_b} : !a, !b, !acc
      %cut = arith.cmpi slt, %i, %edge : index
      %h = scf.if %cut -> (!acc) {
        %masked = kvbuffer.mask %s rows(%c0, %left) keys(%at, %left) {mask = #kvbuffer.mask<causal = true>} : !acc
        scf.yield %masked : !acc
      } else {
        scf.yield %s : !acc
      }
      %p, %m1, %l1, %f = kvbuffer.online_softmax %h, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      %scaled = kvbuffer.rescale %acc, %f : !acc, !row
      %yt = kvbuffer.dram_tile %y[%at, %c0] valid(%left, %c16) : !x -> !tile
      %yl = kvbuffer.dram_load %yt into %y_slots[%slot] : !tile, !slots
      %ys = kvbuffer.lds_stage %yl : !kvbuffer.token<#buf>
      %yf = kvbuffer.fragment_load %ys[0, 0] contracted(rows) : !kvbuffer.staged<#buf> -> !b
      %o = kvbuffer.mma %p, %yf, %scaled : !a, !b, !acc
      scf.yield %o, %m1, %l1 : !acc, !row, !row
    } {kvbuffer.whole_after_first}
    %done, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 1.0 : f32} : !acc, !row
    %rounded = kvbuffer.fragment_convert %done : !acc -> !kvbuffer.fragment<16x16xbf16, acc>
    kvbuffer.fragment_store %rounded, %out : !kvbuffer.fragment<16x16xbf16, acc>, !tile
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
  // What is done to the scores is done while the product is in flight, too: a factor of
  // each row, a cap, a mask. Where
  // any tile may be cut, no load is whole. Whether there is a mask is the program's
  // matter here: for the first scores, too.
  // CHECK-LABEL: gpu.func @capped
  // CHECK-NOT:     {whole}
  // CHECK:         %[[S0:.*]] = kvbuffer.mma {{.*}} {transpose_b}
  // CHECK:         %[[F0:.*]] = kvbuffer.rescale %[[S0]], %[[FACTOR:.*]] :
  // CHECK:         %[[C0:.*]] = kvbuffer.softcap %[[F0]]
  // CHECK:         %[[H0:.*]] = scf.if %[[USED:.*]] ->
  // CHECK-NEXT:      kvbuffer.mask %[[C0]]
  // CHECK:         } else {
  // CHECK-NEXT:      scf.yield %[[C0]]
  // CHECK:         kvbuffer.online_softmax %[[H0]]
  // CHECK:         scf.for
  // CHECK-NOT:       {whole}
  // CHECK:           %[[S:.*]] = kvbuffer.mma {{.*}} {transpose_b}
  // CHECK-NOT:       kvbuffer.{{rescale|softcap}}
  // CHECK:           kvbuffer.mma
  // CHECK-NOT:       transpose_b
  // CHECK:           %[[FIT:.*]] = kvbuffer.rescale %[[S]], %[[FACTOR]] :
  // CHECK:           %[[C:.*]] = kvbuffer.softcap %[[FIT]]
  // CHECK:           %[[H:.*]] = scf.if %[[USED]] ->
  // CHECK-NEXT:        kvbuffer.mask %[[C]]
  // CHECK:           kvbuffer.online_softmax %[[H]]
  gpu.func @capped(%q: !a, %tile: !tile, %y: !b, %zero: !acc, %r0: !row, %n: index, %used: i1, %factor: !row) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %x_slots = kvbuffer.alloc : !slots
    // REMARK: remark: [Passed] overlap
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %m = %r0, %l = %r0) -> (!acc, !row, !row) {
      %slot = arith.remui %i, %c2 : index
      %xl = kvbuffer.dram_load %tile into %x_slots[%slot] : !tile, !slots
      %xs = kvbuffer.lds_stage %xl : !kvbuffer.token<#buf>
      %xf = kvbuffer.fragment_load %xs[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
      %s = kvbuffer.mma %q, %xf, %zero {transpose_b} : !a, !b, !acc
      %fit = kvbuffer.rescale %s, %factor : !acc, !row
      %capped = kvbuffer.softcap %fit {cap = 20.0 : f32, scale = 1.0 : f32} : !acc
      %h = scf.if %used -> (!acc) {
        %masked = kvbuffer.mask %capped rows(%c0, %n) keys(%i, %n) {mask = #kvbuffer.mask<causal = true>} : !acc
        scf.yield %masked : !acc
      } else {
        scf.yield %capped : !acc
      }
      %p, %m1, %l1, %f = kvbuffer.online_softmax %h, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      %scaled = kvbuffer.rescale %acc, %f : !acc, !row
      %o = kvbuffer.mma %p, %y, %scaled : !a, !b, !acc
      scf.yield %o, %m1, %l1 : !acc, !row, !row
    }
    gpu.return
  }
}
