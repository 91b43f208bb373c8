// Where a list in memory says which tiles there are, halves of a block take turns, too: the
// numbers are read an iteration before the loads that need them, and none for a tile that
// there is not. The program is that of run-ahead-turns.mlir with a list of places.

// RUN: sed 's/%keys: index,/%keys: index, %list: memref<?xindex>,/; s/%\([xy]\)_at = arith.muli %\([a-z]*\), %c64 : index/%\1_at = memref.load %list[%\2] : memref<?xindex>/' %S/run-ahead-turns.mlir | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=turns},canonicalize,cse)))" | FileCheck %s

// CHECK-LABEL: gpu.func @rotated
// CHECK-SAME:    %[[LIST:[a-z0-9]+]]: memref<?xindex>, %[[LAST:[a-z0-9]+]]: index,
// CHECK:         kvbuffer.stagger{{$}}
// CHECK:         scf.for %[[I:.*]] = %c0 to %[[LAST]] step %c1
// Y of the next tile has its place; that of the one after it is read, up to the tile behind
// the loop.
// CHECK:           %[[XEND:.*]] = arith.subi %[[LAST]], %c3
// CHECK:           %[[XTHERE:.*]] = arith.cmpi slt, %[[I]], %[[XEND]]
// CHECK:           %[[YEND:.*]] = arith.subi %[[LAST]], %c2
// CHECK:           %[[YTHERE:.*]] = arith.cmpi sle, %[[I]], %[[YEND]]
// CHECK:           %[[TWO:.*]] = arith.addi %[[I]], %c2
// CHECK-NEXT:      %[[YREAD:.*]] = scf.if %[[YTHERE]]
// CHECK-NEXT:        memref.load %[[LIST]][%[[TWO]]]
// CHECK:           kvbuffer.dram_tile %{{.*}}[%[[YAT:.*]], %c0] valid(%{{.*}}, %c32)
// CHECK:           kvbuffer.mma
// CHECK:           %[[FOUR:.*]] = arith.addi %[[I]], %c4
// CHECK-NEXT:      %[[XREAD:.*]] = scf.if %[[XTHERE]]
// CHECK-NEXT:        memref.load %[[LIST]][%[[FOUR]]]
// CHECK:           kvbuffer.dram_tile %{{.*}}[%[[XAT:.*]], %c0] valid(%{{.*}}, %c64)
// CHECK:           kvbuffer.softmax_head
// CHECK:           scf.yield {{.*}}%[[YREAD]], {{.*}}%[[XREAD]],
