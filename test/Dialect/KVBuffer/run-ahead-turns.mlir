// The parts of an iteration in which halves of a block take turns, and what keeps the
// halves one part apart.

// DEFINE: %{pass} = kvbuf-opt --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=turns},canonicalize,cse)))"
// RUN: %{pass} %s | FileCheck %s
// RUN: %{pass} %s --remark-format=emitRemark --remarks-filter=kvbuf-run-ahead 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// A schedule that does not ask for it is left alone.
// RUN: sed 's/, ping_pong = true//' %s | %{pass} | FileCheck %s --check-prefix=OFF --implicit-check-not=kvbuffer.meet --implicit-check-not=kvbuffer.stagger
// OFF: kvbuffer.softmax_tail

#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, stages = 2, warps = 2, mma_shape = [32, 32, 16], swap_a_b = true, overlap = true, ping_pong = true, lazy_rescale = true>
#xbuf = #kvbuffer.kv_buffer<64x64xbf16, BK = 32, stages = 2>
#ybuf = #kvbuffer.kv_buffer<64x32xbf16, BK = 32, stages = 2>
!x_slots = !kvbuffer.buffer<#xbuf>
!y_slots = !kvbuffer.buffer<#ybuf>
!x = memref<?x64xbf16>
!y = memref<?x32xbf16>
!x_tile = !kvbuffer.tile<64x64xbf16>
!y_tile = !kvbuffer.tile<64x32xbf16>
!q = !kvbuffer.fragment<64x64xbf16, a>
!xf = !kvbuffer.fragment<64x64xbf16, b>
!yf = !kvbuffer.fragment<64x32xbf16, b>
!s = !kvbuffer.fragment<64x64xf32, acc>
!p = !kvbuffer.fragment<64x64xbf16, a>
!o = !kvbuffer.fragment<64x32xf32, acc>
!row = !kvbuffer.fragment<64x1xf32, row>
gpu.module @m {
  // The first loads of the pipeline go to the slot of the first scores, which is read
  // until all have met: X of the tiles 1 and 2, Y of the tile 0. X's first wait is two
  // meetings before its reads, as all others are.
  // CHECK-LABEL: gpu.func @rotated
  // CHECK-SAME:    (%[[Q:[a-z0-9]+]]: !kvbuffer.fragment<64x64xbf16, a>, %[[X:[a-z0-9]+]]: memref<?x64xbf16>, %[[Y:[a-z0-9]+]]: memref<?x32xbf16>, %{{.*}}: index, %[[LAST:[a-z0-9]+]]: index,
  // CHECK:         %[[XS:.*]] = kvbuffer.alloc
  // CHECK:         %[[YS:.*]] = kvbuffer.alloc
  // CHECK:         kvbuffer.softmax_head
  // CHECK-NEXT:    kvbuffer.meet
  // CHECK:         %[[X1T:.*]] = kvbuffer.dram_tile %[[X]][%c64,
  // CHECK-NEXT:    %[[X1:.*]] = kvbuffer.dram_load %[[X1T]] into %[[XS]][%c1] if
  // CHECK:         %[[Y0T:.*]] = kvbuffer.dram_tile %[[Y]][%c0,
  // CHECK-NEXT:    %[[Y0:.*]] = kvbuffer.dram_load %[[Y0T]] into %[[YS]][%c0] :
  // CHECK:         %[[X2T:.*]] = kvbuffer.dram_tile %[[X]][%c128,
  // CHECK-NEXT:    %[[X2:.*]] = kvbuffer.dram_load %[[X2T]] into %[[XS]][%c0] if
  // CHECK:         %[[X1S:.*]] = kvbuffer.lds_stage %[[X1]]
  // CHECK-NEXT:    kvbuffer.stagger{{$}}
  // CHECK-NEXT:    %[[END:.*]]:10 = scf.for %[[I:.*]] = %c0 to %[[LAST]] step %c1 iter_args(%[[ACC:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}}, %[[ANY:.*]] = %{{.*}}, %[[F:.*]] = %{{.*}}, %[[E:.*]] = %{{.*}}, %[[EXCESS:.*]] = %{{.*}}, %[[STAGED:.*]] = %[[X1S]], %[[YT:.*]] = %[[Y0]], %[[XT:.*]] = %[[X2]])
  // No X is loaded past the last tile.
  // CHECK:           %[[MORE:.*]] = arith.subi %[[LAST]], %c2
  // CHECK:           %[[THERE:.*]] = arith.cmpi slt, %[[I]], %[[MORE]]

  // A: X's fragments; Y of the next tile is asked for, that of this tile awaited.
  // CHECK:           %[[A0:.*]], %[[L0:.*]] = kvbuffer.apply_raise %[[ANY]], %[[F]], %[[ACC]], %[[L]]
  // CHECK:           %[[XF:.*]] = kvbuffer.fragment_load %[[STAGED]][0, 0]
  // CHECK-NOT:       kvbuffer.mma
  // CHECK:           %[[NEXT:.*]] = arith.addi %[[I]], %c1
  // CHECK:           %[[NEXTSLOT:.*]] = arith.remui %[[NEXT]], %c2
  // CHECK:           %[[YNEXT:.*]] = kvbuffer.dram_load %{{.*}} into %[[YS]][%[[NEXTSLOT]]] :
  // CHECK-NEXT:      %[[YSTAGED:.*]] = kvbuffer.lds_stage %[[YT]]
  // B: the next scores beside the tail of this tile's softmax.
  // CHECK-NEXT:      %[[S:.*]] = kvbuffer.mma %[[Q]], %[[XF]], %{{.*}} {transpose_b}
  // CHECK-NEXT:      %[[P:.*]], %[[L1:.*]] = kvbuffer.softmax_tail %[[E]], %[[L0]] excess(%[[EXCESS]])
  // CHECK-NEXT:      %[[PA:.*]] = kvbuffer.fragment_slice %[[P]][0, 0]
  // CHECK-NEXT:      %[[PB:.*]] = kvbuffer.fragment_slice %[[P]][0, 16]
  // CHECK-NEXT:      kvbuffer.meet
  // C: Y's fragments; X of the tile after the next is asked for, that of the next
  // awaited.
  // CHECK-NEXT:      %[[YA:.*]] = kvbuffer.fragment_load %[[YSTAGED]][0, 0]
  // CHECK-NEXT:      %[[YB:.*]] = kvbuffer.fragment_load %[[YSTAGED]][16, 0]
  // CHECK-NEXT:      %[[FAR:.*]] = arith.addi %[[I]], %c3
  // CHECK:           %[[FARSLOT:.*]] = arith.remui %[[FAR]], %c2
  // CHECK:           %[[XFAR:.*]] = kvbuffer.dram_load %{{.*}} into %[[XS]][%[[FARSLOT]]] if %[[THERE]]
  // CHECK-NEXT:      %[[XSTAGED:.*]] = kvbuffer.lds_stage %[[XT]]
  // D: a quarter of the second product beside the maximum, with what that needs, and
  // the rest beside the head.
  // CHECK-NEXT:      %[[OA:.*]] = kvbuffer.mma %[[PA]], %[[YA]], %[[A0]] :
  // CHECK-NEXT:      %[[H:.*]] = kvbuffer.mask %[[S]]
  // CHECK-NEXT:      %[[M1:.*]], %[[F1:.*]], %[[ANY1:.*]] = kvbuffer.raise_max %[[H]], %[[M]]
  // CHECK-NEXT:      %[[O:.*]] = kvbuffer.mma %[[PB]], %[[YB]], %[[OA]] :
  // CHECK-NEXT:      %[[E1:.*]], %[[EXCESS1:.*]] = kvbuffer.softmax_head %[[H]], %[[M1]]
  // CHECK-NEXT:      kvbuffer.meet
  // CHECK-NEXT:      scf.yield %[[O]], %[[M1]], %[[L1]], %[[ANY1]], %[[F1]], %[[E1]], %[[EXCESS1]], %[[XSTAGED]], %[[YNEXT]], %[[XFAR]] :
  // CHECK-NEXT:    }
  // CHECK-NEXT:    kvbuffer.stagger {end}

  // Y of the last tile was loaded in the loop.
  // CHECK-NOT:     kvbuffer.dram_tile
  // CHECK-NOT:     kvbuffer.dram_load
  // CHECK:         %[[S:.*]] = kvbuffer.lds_stage %[[END]]#8
  // CHECK-NOT:     kvbuffer.dram_load
  // CHECK:         kvbuffer.fragment_store
  // REMARK: remark: [Passed] turns{{.*}}halves of the block take turns; what the scores read is loaded 2 tiles ahead, what the output reads 1
  gpu.func @rotated(%q: !q, %x: !x, %y: !y, %keys: index, %last: index, %zero: !s, %none: !o, %r0: !row, %out: !kvbuffer.tile<64x32xf32>) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %x_slots = kvbuffer.alloc : !x_slots
    %y_slots = kvbuffer.alloc : !y_slots
    // Scores and head of the first tile.
    %xt0 = kvbuffer.dram_tile %x[%c0, %c0] valid(%keys, %c64) : !x -> !x_tile
    %xl0 = kvbuffer.dram_load %xt0 into %x_slots[%c0] : !x_tile, !x_slots
    %xs0 = kvbuffer.lds_stage %xl0 : !kvbuffer.token<#xbuf>
    %xf0 = kvbuffer.fragment_load %xs0[0, 0] contracted(cols) : !kvbuffer.staged<#xbuf> -> !xf
    %s0 = kvbuffer.mma %q, %xf0, %zero {transpose_b} : !q, !xf, !s
    %m0, %f0, %any0 = kvbuffer.raise_max %s0, %r0 {scale = 1.0 : f32} : !s, !row
    %e0, %excess0 = kvbuffer.softmax_head %s0, %m0 {operand = bf16, scale = 1.0 : f32} : !s, !row
    %r:7 = scf.for %i = %c0 to %last step %c1 iter_args(%acc = %none, %m = %m0, %l = %r0, %any = %any0, %f = %f0, %e = %e0, %excess = %excess0) -> (!o, !row, !row, i1, !row, !s, !row) {
      // The next tile's scores and head.
      %next = arith.addi %i, %c1 : index
      %x_slot = arith.remui %next, %c2 : index
      %x_at = arith.muli %next, %c64 : index
      %xt = kvbuffer.dram_tile %x[%x_at, %c0] valid(%keys, %c64) : !x -> !x_tile
      %xl = kvbuffer.dram_load %xt into %x_slots[%x_slot] : !x_tile, !x_slots
      %xs = kvbuffer.lds_stage %xl : !kvbuffer.token<#xbuf>
      %xf = kvbuffer.fragment_load %xs[0, 0] contracted(cols) : !kvbuffer.staged<#xbuf> -> !xf
      %s = kvbuffer.mma %q, %xf, %zero {transpose_b} : !q, !xf, !s
      %before = arith.muli %i, %c64 : index
      %key = arith.addi %before, %c64 : index
      %h = kvbuffer.mask %s rows(%c0, %keys) keys(%key, %keys) {mask = #kvbuffer.mask<>} : !s
      %m1, %f1, %any1 = kvbuffer.raise_max %h, %m {scale = 1.0 : f32} : !s, !row
      %e1, %excess1 = kvbuffer.softmax_head %h, %m1 {operand = bf16, scale = 1.0 : f32} : !s, !row
      // The tail of this tile's softmax, and its product.
      %scaled, %l1 = kvbuffer.apply_raise %any, %f, %acc, %l : !o, !row
      %p, %l2 = kvbuffer.softmax_tail %e, %l1 excess(%excess) : !s, !row -> !p
      %y_slot = arith.remui %i, %c2 : index
      %y_at = arith.muli %i, %c64 : index
      %yt = kvbuffer.dram_tile %y[%y_at, %c0] valid(%keys, %c32) : !y -> !y_tile
      %yl = kvbuffer.dram_load %yt into %y_slots[%y_slot] : !y_tile, !y_slots
      %ys = kvbuffer.lds_stage %yl : !kvbuffer.token<#ybuf>
      %yf = kvbuffer.fragment_load %ys[0, 0] contracted(rows) : !kvbuffer.staged<#ybuf> -> !yf
      %o = kvbuffer.mma %p, %yf, %scaled : !p, !yf, !o
      scf.yield %o, %m1, %l2, %any1, %f1, %e1, %excess1 : !o, !row, !row, i1, !row, !s, !row
    }
    %scaled, %l1 = kvbuffer.apply_raise %r#3, %r#4, %r#0, %r#2 : !o, !row
    %p, %l2 = kvbuffer.softmax_tail %r#5, %l1 excess(%r#6) : !s, !row -> !p
    %y_slot = arith.remui %last, %c2 : index
    %y_at = arith.muli %last, %c64 : index
    %yt = kvbuffer.dram_tile %y[%y_at, %c0] valid(%keys, %c32) : !y -> !y_tile
    %yl = kvbuffer.dram_load %yt into %y_slots[%y_slot] : !y_tile, !y_slots
    %ys = kvbuffer.lds_stage %yl : !kvbuffer.token<#ybuf>
    %yf = kvbuffer.fragment_load %ys[0, 0] contracted(rows) : !kvbuffer.staged<#ybuf> -> !yf
    %o = kvbuffer.mma %p, %yf, %scaled : !p, !yf, !o
    kvbuffer.fragment_store %o, %out : !o, !kvbuffer.tile<64x32xf32>
    gpu.return
  }
}
