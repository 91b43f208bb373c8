// Functions of scores in kernels with warp roles: consumers map the scores between the
// product of Q and K and the softmax, while the product of P and V of the tile before is
// in flight; groups take turns; maxima are compared as integers. Tiles that go beyond
// the last key have a loop of their own. What a function of visibility reads by the key
// has registers of its own, and tiles fewer keys for it, unless it is only compared.

// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=sm_90a --mlir-print-local-scope | FileCheck %s

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

// CHECK-LABEL: gpu.func @documents(
// CHECK-SAME:    BM = 192, BN = 128,
// CHECK:         kvbuffer.team @consumers
// CHECK:         scf.for
// CHECK:           kvbuffer.mask
// CHECK:         scf.while
// CHECK:         scf.for
// CHECK:           kvbuffer.turn_wait
// CHECK:           kvbuffer.mma_start
// CHECK:           kvbuffer.mma_start
// CHECK:           kvbuffer.turn_pass
// CHECK:           %[[S:[a-z0-9_]+]] = kvbuffer.mma_wait {{.*}}younger = 1
// CHECK:           %[[MAPPED:[a-z0-9_]+]] = kvbuffer.map %[[S]]
// CHECK:             memref.load
// CHECK-NOT:       kvbuffer.mask
// CHECK:           kvbuffer.online_softmax %[[MAPPED]], {{.*}}not_negative
// CHECK:           kvbuffer.mma_wait {{.*}}younger = 0
// CHECK:         kvbuffer.team @producers
// CHECK-NOT:     kvbuffer.map
func.func @documents(%q: !qo, %k: !kv, %v: !kv,
    %doc: memref<?x?xi32> {kvbuffer.name = "doc", kvbuffer.shape = ["batch", "seq_k"]}, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%doc : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %d: memref<?x?xi32>):
      %x = memref.load %d[%batch, %row] : memref<?x?xi32>
      %y = memref.load %d[%batch, %key] : memref<?x?xi32>
      %same = arith.cmpi eq, %x, %y : i32
      kvbuffer.yield %same : i1
    }
  return
}

// CHECK-LABEL: gpu.func @levels(
// CHECK-SAME:    BM = 192, BN = 96,
func.func @levels(%q: !qo, %k: !kv, %v: !kv,
    %level: memref<?x?xi32> {kvbuffer.name = "level", kvbuffer.shape = ["batch", "seq_k"]}, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%level : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %l: memref<?x?xi32>):
      %x = memref.load %l[%batch, %row] : memref<?x?xi32>
      %y = memref.load %l[%batch, %key] : memref<?x?xi32>
      %lower = arith.cmpi sle, %x, %y : i32
      kvbuffer.yield %lower : i1
    }
  return
}

// What a function reads for the sequence or the head stands before the loops over keys;
// what follows from it and is an integer, and what it reads by constants from a tensor
// that may be empty, does not.
// CHECK-LABEL: gpu.func @of_head(
// CHECK:         kvbuffer.team @consumers
// CHECK:         %[[SLOPE:.*]] = memref.load %arg4[%{{.*}}] : memref<4xf32>
// CHECK-NEXT:    %[[HALF:.*]] = arith.mulf %[[SLOPE]],
// CHECK:         %[[PREFIX:.*]] = memref.load %arg5[%{{.*}}] : memref<?xi32>
// CHECK:         kvbuffer.online_softmax
// CHECK:         kvbuffer.map
// CHECK-NOT:     memref.load %arg4
// CHECK-NOT:     memref.load %arg5
// CHECK:           arith.mulf %{{.*}}, %[[HALF]]
// CHECK:           %[[END:.*]] = arith.index_cast %[[PREFIX]]
// CHECK:           arith.cmpi slt, %{{.*}}, %[[END]]
// CHECK:           memref.load %arg6[%c0]
func.func @of_head(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %slopes: memref<4xf32>,
                   %prefix: memref<?xi32>, %first: memref<?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%slopes, %prefix, %first : memref<4xf32>, memref<?xi32>, memref<?xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index,
         %a: memref<4xf32>, %b: memref<?xi32>, %c: memref<?xf32>):
      %slope = memref.load %a[%head] : memref<4xf32>
      %c2 = arith.constant 0.5 : f32
      %half = arith.mulf %slope, %c2 : f32
      %n = arith.index_cast %key : index to i32
      %f = arith.sitofp %n : i32 to f32
      %far = arith.mulf %f, %half : f32
      %x = arith.addf %s, %far : f32
      %end32 = memref.load %b[%batch] : memref<?xi32>
      %end = arith.index_cast %end32 : i32 to index
      %near = arith.cmpi slt, %key, %end : index
      %c0 = arith.constant 0 : index
      %bonus = memref.load %c[%c0] : memref<?xf32>
      %zero = arith.constant 0.0 : f32
      %y = arith.select %near, %bonus, %zero : f32
      %t = arith.addf %x, %y : f32
      kvbuffer.yield %t : f32
    }
  return
}

// A bias of 16 bits for each row and key comes through a ring, as tiles of keys do. What is
// added to a score is what its product begins with; the scale, a power of two, queries take;
// the slot is given back behind the start. One of f32 comes likewise, in rows that are 8
// words wider than the tile; lanes read accumulators of it, fence what they have read, and
// give the slot back before their turn.
// CHECK-LABEL: gpu.func @bias(
// CHECK:         %[[RING:[a-z0-9_]+]] = kvbuffer.ring {{.*}}<192x{{.*}}xf16, {{.*}}stages = 2
// CHECK:         kvbuffer.team @consumers
// CHECK:         kvbuffer.ring_wait %qring[{{.*}}] {kvbuffer.scaled_by = 1.250000e-01 : f32}
// CHECK:         scf.while (%{{.*}} = %true
// CHECK:         scf.for
// CHECK:           %[[SLOT:[a-z0-9_]+]] = kvbuffer.ring_wait %[[RING]]
// CHECK-NEXT:      %[[BIAS:[a-z0-9_]+]] = kvbuffer.fragment_load %[[SLOT]][0, 0]
// CHECK:           %[[BEGIN:[a-z0-9_]+]] = kvbuffer.map %{{.*}}, %[[BIAS]]
// CHECK-NEXT:      ^bb0(%{{.*}}: f32, %[[B:.*]]: f16, %{{.*}}: index, %{{.*}}: index):
// CHECK-NEXT:        %[[WIDE:.*]] = arith.extf %[[B]]
// CHECK-NEXT:        kvbuffer.yield %[[WIDE]]
// CHECK:           kvbuffer.turn_wait
// CHECK-NEXT:      kvbuffer.mma_start %{{.*}}, %{{.*}}, %[[BEGIN]] :
// CHECK-NEXT:      kvbuffer.ring_release %[[RING]]
// CHECK:           kvbuffer.turn_pass
// CHECK-NEXT:      %[[S:[a-z0-9_]+]] = kvbuffer.mma_wait {{.*}}younger = 1
// CHECK-NOT:       kvbuffer.map
// CHECK:           kvbuffer.online_softmax %[[S]], {{.*}}{masked, not_negative, scale = 1.000000e+00 : f32, unbounded}
// CHECK:         kvbuffer.softmax_finish {{.*}}scale = 1.000000e+00 : f32, unbounded
// CHECK:         kvbuffer.team @producers
// CHECK:           %[[ALL_ROWS:.*]] = memref.dim %arg3, %c1
// CHECK-NEXT:      %[[ROWS:.*]] = arith.subi %[[ALL_ROWS]], %[[ROW:[0-9a-z]+]]
// CHECK:           %[[ALL_KEYS:.*]] = memref.dim %arg3, %c2
// CHECK-NEXT:      %[[KEYS:.*]] = arith.subi %[[ALL_KEYS]], %[[KEY:[0-9a-z]+]]
// CHECK:           kvbuffer.dram_tile %arg3[%{{[0-9a-z]+}}, %[[ROW]], %[[KEY]]] valid(%[[ROWS]], %[[KEYS]])
// CHECK:           kvbuffer.ring_load %{{.*}} into %[[RING]]
// CHECK-LABEL: gpu.func @wide_bias(
// CHECK:         %[[RING:[a-z0-9_]+]] = kvbuffer.ring {{.*}}<192x88xf32, stages = 2>
// CHECK:         kvbuffer.team @consumers
// CHECK:         scf.while (%{{.*}} = %true
// CHECK:         scf.for
// CHECK:           %[[SLOT:[a-z0-9_]+]] = kvbuffer.ring_wait %[[RING]]
// CHECK-NEXT:      %[[BIAS:[a-z0-9_]+]] = kvbuffer.fragment_load %[[SLOT]][0, 0] {{.*}} -> <192x80xf32, acc,
// CHECK:           %[[BEGIN:[a-z0-9_]+]] = kvbuffer.map %[[BIAS]]
// CHECK-NOT:         memref.load
// CHECK-NOT:         arith.mulf
// CHECK:             kvbuffer.yield
// CHECK:           }
// CHECK-NEXT:      kvbuffer.ring_release %[[RING]]
// CHECK:           kvbuffer.turn_wait
// CHECK-NEXT:      kvbuffer.mma_start %{{.*}}, %{{.*}}, %[[BEGIN]] :
// CHECK:         kvbuffer.team @producers
// CHECK:           kvbuffer.dram_tile %arg3[%{{[0-9a-z]+}}, %{{[0-9a-z]+}}] {{.*}}<192x88xf32>
// CHECK:           kvbuffer.ring_load %{{.*}} into %[[RING]]
func.func @bias(%q: !qo, %k: !kv, %v: !kv, %bias: memref<2x?x?xf16>, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%bias : memref<2x?x?xf16>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %b: memref<2x?x?xf16>):
      %c2 = arith.constant 2 : index
      %group = arith.divui %head, %c2 : index
      %i = arith.index_cast %key : index to i32
      %j = arith.index_cast %i : i32 to index
      %x = memref.load %b[%group, %row, %j] : memref<2x?x?xf16>
      %y = arith.extf %x : f16 to f32
      %t = arith.addf %s, %y : f32
      kvbuffer.yield %t : f32
    }
  return
}

func.func @wide_bias(%q: !qo, %k: !kv, %v: !kv, %bias: memref<?x?xf32>, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%bias : memref<?x?xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %b: memref<?x?xf32>):
      %x = memref.load %b[%row, %key] : memref<?x?xf32>
      %t = arith.addf %s, %x : f32
      kvbuffer.yield %t : f32
    }
  return
}

// A clamped distance: a tile whose distances all are beyond the ends reads one number,
// for its first row and key; others read one a score. Tiles have their keys.
// CHECK-LABEL: gpu.func @relative(
// CHECK-SAME:    BM = 192, BN = 128,
// CHECK:         kvbuffer.team @consumers
// CHECK:         scf.while (%{{.*}} = %true
// CHECK:         scf.for
// CHECK:           kvbuffer.turn_pass
// CHECK:           %[[FIRST:.*]] = arith.subi %[[KEY:[0-9a-z]+]], %[[ROW:[0-9a-z]+]]
// CHECK-NEXT:      %[[AFTER:.*]] = arith.cmpi sge, %[[FIRST]], %c198
// CHECK-NEXT:      %[[BEFORE:.*]] = arith.cmpi sle, %[[FIRST]], %c-134
// CHECK-NEXT:      %[[FAR:.*]] = arith.ori %[[AFTER]], %[[BEFORE]]
// CHECK:           %[[NUMBER:.*]] = memref.load
// CHECK-NEXT:      %[[S:[a-z0-9_]+]] = kvbuffer.mma_wait {{.*}}younger = 1
// CHECK:           scf.if %[[FAR]]
// CHECK-NEXT:        kvbuffer.map %[[S]]
// CHECK-NOT:           memref.load
// CHECK:               arith.addf %{{.*}}, %[[NUMBER]]
// CHECK:           } else {
// CHECK-NEXT:        kvbuffer.map %[[S]]
// CHECK:               memref.load
// CHECK:           kvbuffer.online_softmax {{.*}}not_negative
func.func @relative(%q: !qo, %k: !kv, %v: !kv, %table: memref<4x15xf32>, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%table : memref<4x15xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %b: memref<4x15xf32>):
      %c7 = arith.constant 7 : index
      %cm7 = arith.constant -7 : index
      %far = arith.subi %key, %row : index
      %most = arith.minsi %far, %c7 : index
      %least = arith.maxsi %cm7, %most : index
      %i = arith.addi %least, %c7 : index
      %x = memref.load %b[%head, %i] : memref<4x15xf32>
      %t = arith.addf %s, %x : f32
      kvbuffer.yield %t : f32
    }
  return
}
