// Keys in parts, each with an accumulator that begins at zero: maxima and sums of
// weights go on, and what is there already is brought to the new maximum before the
// part's sum is added to it, with rounding.

// RUN: kvbuf-opt %s --kvbuf-choose-schedule=schedule=BN=64,sum_keys=256 --kvbuf-lower-problems --canonicalize --cse | FileCheck %s
// Half a tile is one.
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=schedule=BN=64,sum_keys=32 --kvbuf-lower-problems --canonicalize --cse | FileCheck %s --check-prefix=ONE

// The groups of a block have the same parts.
// CHECK:      kvbuffer.key_range
// CHECK-NOT:  descending
// CHECK:      %[[COUNT:.*]] = arith.subi
// CHECK-DAG:  %[[ZERO:.*]] = kvbuffer.fragment_fill 0.000000e+00 : <[[ACC:128x128xf32, acc]]>
// CHECK-DAG:  %[[LEAST:.*]] = kvbuffer.fragment_fill 0xFF800000
// CHECK-DAG:  %[[NONE:.*]] = kvbuffer.fragment_fill 0.000000e+00 : <128x1xf32, row>
// CHECK:      %[[PARTS:.*]] = arith.ceildivui %[[COUNT]], %c4
// CHECK:      %[[ALL:.*]]:3 = scf.for %[[PART:.*]] = %c0 to %[[PARTS]] step %c1 iter_args(%[[BEFORE:.*]] = %[[ZERO]], %[[MAX:.*]] = %[[LEAST]], %[[SUM:.*]] = %[[NONE]])
// CHECK:        %[[FIRST:.*]] = arith.muli %[[PART]], %c4
// CHECK:        %[[NEXT:.*]] = arith.addi %[[FIRST]], %c4
// CHECK:        %[[LAST:.*]] = arith.minsi %[[NEXT]], %[[COUNT]]
// CHECK:        %[[OF:.*]]:3 = scf.for %{{.*}} = %[[FIRST]] to %[[LAST]] step %c1 iter_args(%{{.*}} = %[[ZERO]], %{{.*}} = %[[MAX]], %{{.*}} = %[[SUM]])
// CHECK:        %[[ONES:.*]] = kvbuffer.fragment_fill 1.000000e+00
// CHECK:        %[[MAXIMA:.*]] = kvbuffer.rescale %[[ONES]], %[[OF]]#1
// CHECK:        %{{.*}}, %{{.*}}, %{{.*}}, %[[FACTOR:.*]] = kvbuffer.online_softmax %[[MAXIMA]], %[[MAX]], %[[NONE]] {masked, scale = 0.0883883461 : f32}
// CHECK:        %[[BROUGHT:.*]] = kvbuffer.rescale %[[BEFORE]], %[[FACTOR]]
// CHECK:        %[[BOTH:.*]] = kvbuffer.map %[[BROUGHT]], %[[OF]]#0
// CHECK-NEXT:   ^bb0(%[[X:.*]]: f32, %[[Y:.*]]: f32,
// CHECK-NEXT:     %[[ADDED:.*]] = arith.addf %[[X]], %[[Y]] : f32
// CHECK-NEXT:     kvbuffer.yield %[[ADDED]]
// CHECK:        scf.yield %[[BOTH]], %[[OF]]#1, %[[OF]]#2
// CHECK:      kvbuffer.softmax_finish %[[ALL]]#0, %[[ALL]]#1, %[[ALL]]#2

// ONE:        scf.for %[[PART:.*]] = %c0 to %[[COUNT:[a-z0-9]+]] step %c1
// ONE:          %[[NEXT:.*]] = arith.addi %[[PART]], %c1
// ONE:          %[[LAST:.*]] = arith.minsi %[[NEXT]], %[[COUNT]]
// ONE:          scf.for %{{.*}} = %[[PART]] to %[[LAST]] step %c1
!q = memref<?x?x16x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 128>
func.func @causal(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !q, !kv, !kv, !q
  return
}
