// What a function of the next scores reads for each key is asked for by a map of its own:
// beside these scores, or, where registers do not suffice, when they are there. The program
// is that of run-ahead-turns.mlir with a function in place of the mask.

// DEFINE: %{function} =
// DEFINE: %{chip} = gfx950
// DEFINE: %{run} = sed 's/^gpu.module @m/module attributes {kvbuffer.target = "%{chip}"} { &/; $ s/$/ }/; s/%keys: index,/%keys: index, %bias: memref<?x?xf32>, %w: memref<?xi32>,/; s/^ *%h = kvbuffer.mask \([^ ]*\) .*/%{function}/' %S/run-ahead-turns.mlir | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=turns},canonicalize,cse)))" | FileCheck %s

// A tensor by the row and the key: an element is a word of an accumulator.
// REDEFINE: %{function} = %h = kvbuffer.map \1 at(%c0, %key) : !s -> !s { ^bb0(%v: f32, %i0: index, %j: index): %b = memref.load %bias[%i0, %j] : memref<?x?xf32> %add = arith.addf %v, %b : f32 kvbuffer.yield %add : f32 }
// RUN: %{run} --check-prefix=BIAS
// BIAS:         scf.for
// BIAS:           %[[STAGED:.*]] = kvbuffer.lds_stage
// BIAS:           %[[S:.*]] = kvbuffer.mma %{{.*}} {transpose_b}
// BIAS:           kvbuffer.softmax_tail
// BIAS:           %[[READ:.*]] = kvbuffer.map %{{.*}} at(%c0, %[[KEY:.*]]) :
// BIAS-NEXT:      ^bb0(%{{.*}}: f32, %[[I:.*]]: index, %[[J:.*]]: index):
// BIAS-NEXT:        %[[B:.*]] = memref.load %{{.*}}[%[[I]], %[[J]]]
// BIAS-NEXT:        kvbuffer.yield %[[B]]
// BIAS:           kvbuffer.meet
// BIAS:           kvbuffer.fragment_load %[[STAGED]]
// BIAS:           kvbuffer.map %[[S]], %[[READ]] at(%c0, %[[KEY]]) :
// BIAS-NEXT:      ^bb0(%[[V:.*]]: f32, %[[W:.*]]: f32, %{{.*}}: index, %{{.*}}: index):
// BIAS-NEXT:        %[[SUM:.*]] = arith.addf %[[V]], %[[W]]
// BIAS-NEXT:        kvbuffer.yield %[[SUM]]
// BIAS-NOT:       memref.load
// BIAS:         scf.yield

// In a branch on the iteration it is read in one on the same condition, nothing by the side
// that reads nothing; integers are words as they are. What follows from the row alone stays.
// REDEFINE: %{function} = %first = arith.cmpi slt, %i, %c1 : index %h = scf.if %first -> !s { scf.yield \1 : !s } else { %d = kvbuffer.map \1 at(%c0, %key) : !s -> !s { ^bb0(%v: f32, %i0: index, %j: index): %x1 = memref.load %w[%i0] : memref<?xi32> %x2 = memref.load %w[%j] : memref<?xi32> %le = arith.cmpi sle, %x1, %x2 : i32 %z = arith.constant 0.0 : f32 %ch = arith.select %le, %v, %z : f32 kvbuffer.yield %ch : f32 } scf.yield %d : !s }
// RUN: %{run} --check-prefix=BRANCH
// BRANCH:         scf.for
// BRANCH:           %[[FIRST:.*]] = arith.cmpi slt, %{{.*}}, %c1
// BRANCH:           kvbuffer.softmax_tail
// BRANCH:           %[[READ:.*]] = scf.if %[[FIRST]]
// BRANCH-NEXT:        %[[NONE:.*]] = kvbuffer.fragment_fill 0.0
// BRANCH-NEXT:        scf.yield %[[NONE]]
// BRANCH-NEXT:      } else {
// BRANCH:             %[[MAP:.*]] = kvbuffer.map %{{.*}} at
// BRANCH:               %[[X:.*]] = memref.load
// BRANCH-NEXT:          %[[WORD:.*]] = arith.bitcast %[[X]] : i32 to f32
// BRANCH-NEXT:          kvbuffer.yield %[[WORD]]
// BRANCH:             scf.yield %[[MAP]]
// BRANCH:           kvbuffer.meet
// BRANCH:           scf.if %[[FIRST]]
// BRANCH:             kvbuffer.map %{{.*}}, %[[READ]] at
// BRANCH-NEXT:        ^bb0(%{{.*}}: f32, %[[W:.*]]: f32, %[[I:.*]]: index, %{{.*}}: index):
// BRANCH-DAG:           %[[OTHER:.*]] = arith.bitcast %[[W]] : f32 to i32
// BRANCH-DAG:           %[[OWN:.*]] = memref.load %{{.*}}[%[[I]]]
// BRANCH:               arith.cmpi sle, %[[OWN]], %[[OTHER]]

// What is only compared, lanes share out: it stays in the map, which stands in front of the
// second product, as a wave asks there whether anything of the tile is hidden.
// REDEFINE: %{function} = %first = arith.cmpi slt, %i, %c1 : index %h = scf.if %first -> !s { scf.yield \1 : !s } else { %d = kvbuffer.map \1 at(%c0, %key) : !s -> !s { ^bb0(%v: f32, %i0: index, %j: index): %x1 = memref.load %w[%i0] : memref<?xi32> %x2 = memref.load %w[%j] : memref<?xi32> %eq = arith.cmpi eq, %x1, %x2 : i32 %z = arith.constant 0.0 : f32 %ch = arith.select %eq, %v, %z : f32 kvbuffer.yield %ch : f32 } scf.yield %d : !s }
// RUN: %{run} --check-prefix=ASKS
// ASKS:         scf.for
// ASKS:           kvbuffer.softmax_tail
// ASKS-NOT:       memref.load
// ASKS:           kvbuffer.meet
// ASKS:           kvbuffer.lds_stage
// ASKS-NOT:       kvbuffer.mma
// ASKS:           scf.if
// ASKS:             kvbuffer.map
// ASKS-COUNT-2:       memref.load
// ASKS:           kvbuffer.mma
// ASKS:           kvbuffer.raise_max
// ASKS:           kvbuffer.mma

// What follows from a score, or from another tensor, is read where it was, and so is what
// is no word.
// REDEFINE: %{function} = %h = kvbuffer.map \1 at(%c0, %key) : !s -> !s { ^bb0(%v: f32, %i0: index, %j: index): %x1 = memref.load %w[%j] : memref<?xi32> %at = arith.index_cast %x1 : i32 to index %b = memref.load %bias[%i0, %at] : memref<?x?xf32> %n = arith.fptosi %v : f32 to i32 %m2 = arith.index_cast %n : i32 to index %e2 = memref.load %bias[%m2, %j] : memref<?x?xf32> %add = arith.addf %b, %e2 : f32 kvbuffer.yield %add : f32 }
// RUN: %{run} --check-prefix=STAYS
// STAYS:         scf.for
// STAYS:           kvbuffer.softmax_tail
// STAYS:           %[[READ:.*]] = kvbuffer.map
// STAYS:             memref.load
// STAYS-NOT:         memref.load
// STAYS:           kvbuffer.meet
// STAYS:           kvbuffer.map %{{.*}}, %[[READ]] at
// STAYS:             memref.load
// STAYS:             memref.load

// Of a kernel for no chip nobody knows the registers.
// REDEFINE: %{function} = %h = kvbuffer.map \1 at(%c0, %key) : !s -> !s { ^bb0(%v: f32, %i0: index, %j: index): %b = memref.load %bias[%i0, %j] : memref<?x?xf32> %add = arith.addf %v, %b : f32 kvbuffer.yield %add : f32 }
// RUN: sed 's/%keys: index,/%keys: index, %bias: memref<?x?xf32>,/; s/^ *%h = kvbuffer.mask \([^ ]*\) .*/%{function}/' %S/run-ahead-turns.mlir | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=turns},canonicalize,cse)))" | FileCheck %s --check-prefix=LATE
// LATE:         scf.for
// LATE:           kvbuffer.softmax_tail
// LATE-NOT:       memref.load
// LATE:           kvbuffer.meet
// LATE-NEXT:      kvbuffer.map
// LATE-NEXT:      ^bb0
// LATE-NEXT:        memref.load
// LATE:           kvbuffer.fragment_load
