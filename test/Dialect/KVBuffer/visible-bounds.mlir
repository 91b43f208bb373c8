// Functions of visibility that bound keys on the right: tiles behind the bound of the last
// row are not visited, and those before the bound of the first row are not masked. On the
// left it is the other way round.

// RUN: kvbuf-opt %s --kvbuf-to-tile=chip=sm_90a | FileCheck %s

!qo = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 128>

// A prefix that all see, and what lies before the row.
// CHECK-LABEL: gpu.func @prefix(
// CHECK:         %[[LAST:.*]] = arith.minsi %{{.*}}, %{{.*}} : index
// CHECK:         %[[AT:.*]] = arith.addi %[[LAST]],
// CHECK:         %[[READ:.*]] = memref.load %arg4
// CHECK:         arith.minsi %[[READ]], %{{.*}} : i64
// CHECK:         %[[PREFIX:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK:         arith.minsi %[[AT]], %keys
// CHECK:         %[[END:.*]] = arith.maxsi %[[PREFIX]], %{{.*}} : index
// CHECK:         arith.addi %row,
// CHECK:         %lo, %hi, %fullLo, %fullHi = kvbuffer.key_range %first of %dim keys %keys {
// CHECK:         arith.minsi %hi, %[[END]]
// CHECK:         arith.minsi %fullHi,
// CHECK:         scf.for
// CHECK:         scf.if
// CHECK:           kvbuffer.map
// CHECK:           kvbuffer.mask
// CHECK:         } else {
// CHECK-NEXT:      scf.yield %s
func.func @prefix(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %prefix: memref<?xi64>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%prefix : memref<?xi64>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %p: memref<?xi64>):
      %end = memref.load %p[%batch] : memref<?xi64>
      %wide = arith.index_cast %key : index to i64
      %first = arith.cmpi sgt, %end, %wide : i64
      %before = arith.cmpi sle, %key, %at : index
      %t = arith.ori %first, %before : i1
      kvbuffer.yield %t : i1
    }
  return
}

// Padding on the left: the loop over tiles begins at the first row's first key, and masks
// those up to the last row's. The mask alone says where groups of warps begin.
// CHECK-LABEL: gpu.func @starts(
// CHECK-SAME:    %arg4: memref<?xi32>
// CHECK:         memref.load %arg4
// CHECK:         %[[START:.*]] = arith.maxsi %{{.*}}, %c-1
// CHECK-NEXT:    %[[KEY:.*]] = arith.minsi %[[START]], %keys
// CHECK:         memref.load %arg4
// CHECK:         %lo, %hi, %fullLo, %fullHi = kvbuffer.key_range %first of %dim keys %keys from %[[KEY]] {BM = 128 : i64, descending,
// CHECK:         arith.maxsi %fullLo,
// CHECK:         %[[BEGIN:.*]] = arith.maxsi %lo,
// CHECK-NEXT:    arith.divui %[[BEGIN]],
// CHECK:         scf.for
// CHECK:         scf.if
// CHECK:           kvbuffer.map
// CHECK:         } else {
// CHECK-NEXT:      scf.yield %s
func.func @starts(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %starts: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%starts : memref<?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %s: memref<?xi32>):
      %two = arith.constant 2 : index
      %sequence = arith.divui %batch, %two : index
      %start = memref.load %s[%sequence] : memref<?xi32>
      %n = arith.index_cast %key : index to i32
      %from = arith.cmpi sge, %n, %start : i32
      %before = arith.cmpi sge, %at, %key : index
      %t = arith.andi %from, %before : i1
      kvbuffer.yield %t : i1
    }
  return
}

// What is before an end or behind a start has a hole between them, and no bounds.
// CHECK-LABEL: gpu.func @hole(
// CHECK:         scf.if
// CHECK:         } else {
// CHECK:           kvbuffer.map
func.func @hole(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %starts: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%starts : memref<?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %s: memref<?xi32>):
      %start = memref.load %s[%batch] : memref<?xi32>
      %n = arith.index_cast %key : index to i32
      %from = arith.cmpi slt, %start, %n : i32
      %before = arith.cmpi sge, %at, %key : index
      %t = arith.ori %from, %before : i1
      kvbuffer.yield %t : i1
    }
  return
}

// What a row reads bounds nothing here: every tile is visited, and the function runs in
// all of them.
// CHECK-LABEL: gpu.func @ends(
// CHECK:         scf.for
// CHECK:         scf.if
// CHECK:         } else {
// CHECK:           kvbuffer.map
func.func @ends(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %ends: memref<?x?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%ends : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %e: memref<?x?xi32>):
      %end = memref.load %e[%batch, %row] : memref<?x?xi32>
      %n = arith.index_cast %key : index to i32
      %t = arith.cmpi slt, %n, %end : i32
      kvbuffer.yield %t : i1
    }
  return
}

// Numbers that rise along the keys: those of a row's number are looked for, from where
// the first row's begin to where the last row's end, on their side of the row's own.
// Tensors of no keys are not read. Starts are known to the tile of keys that they lie in.
// What a search reads first waits for nothing: both rows' numbers, the first key's, those
// that end the tiles before the first row (the nearest five, and farther ones) and those
// between the rows. Most begin there, and the loops behind find nothing left to do. The
// last row's begin where the first row's do, or behind the first row.
// CHECK-LABEL: gpu.func @documents(
// CHECK:         %[[SOME:.*]] = arith.cmpi sgt, %keys, %
// CHECK:         %[[END:.*]] = scf.if %[[SOME]] -> (index) {
// CHECK:           memref.load %arg4[%{{.*}}, %[[LAST:.*]]] :
// CHECK:           %[[AT:.*]] = arith.minsi %[[LAST]], %keys
// CHECK:           scf.while (%{{.*}} = %[[AT]], %{{.*}} = %keys)
// CHECK-COUNT-15:    memref.load %arg4
// CHECK:         scf.if
// CHECK:           scf.while
// CHECK:         %[[ROWS:.*]]:7 = scf.if %{{.*}} -> (i32, i32, i1, index, index, index, index) {
// CHECK:           %[[OWN:.*]] = memref.load %arg4[%{{.*}}, %[[FIRST:.*]]] :
// CHECK:           %[[AT:.*]] = arith.minsi %[[FIRST]], %keys
// CHECK:           memref.load %arg4[%{{.*}}, %[[LAST]]] :
// CHECK:           %[[LASTAT:.*]] = arith.minsi %[[LAST]], %keys
// CHECK:           %[[BEGIN:.*]] = memref.load %arg4[%{{.*}}, %c0]
// CHECK:           arith.cmpi sge, %[[BEGIN]], %[[OWN]]
// CHECK:           %[[TILE:.*]] = arith.divui %[[AT]], %c128
// CHECK:           %[[UPTO:.*]] = arith.divui %[[LASTAT]], %c128
// CHECK:           %[[KEY:.*]] = arith.muli %[[TILE]], %c128
// CHECK-NEXT:      %[[NEAR:.*]] = arith.subi %[[KEY]], %c1
// CHECK-NEXT:      %[[PLACE:.*]] = arith.maxsi %[[NEAR]], %c0
// CHECK-NEXT:      memref.load %arg4[%{{.*}}, %[[PLACE]]]
// CHECK-COUNT-5:   memref.load %arg4
// CHECK:           %[[FAR:.*]] = arith.subi %{{.*}}, %c5633
// CHECK-NEXT:      %[[PLACE:.*]] = arith.maxsi %[[FAR]], %c0
// CHECK-NEXT:      memref.load %arg4[%{{.*}}, %[[PLACE]]]
// CHECK-COUNT-2:   memref.load %arg4
// CHECK-NOT:       memref.load
// CHECK:         } else {
// CHECK:         %[[TILE:.*]]:2 = scf.while (%{{.*}} = %[[ROWS]]#3, %{{.*}} = %[[ROWS]]#4)
// CHECK:         %[[FOUND:.*]] = arith.muli %[[TILE]]#0, %c128
// CHECK:         %[[BEHIND:.*]] = arith.addi %[[FOUND]], %c1
// CHECK:         %[[WITHIN:.*]] = arith.select %[[ROWS]]#2, %c0, %[[BEHIND]]
// CHECK:         %[[SAME:.*]] = arith.cmpi eq, %[[ROWS]]#0, %[[ROWS]]#1
// CHECK:         scf.while (%{{.*}} = %[[ROWS]]#5, %{{.*}} = %[[ROWS]]#6)
// Keys are loaded from the tile's first one on.
// CHECK:         %[[START:.*]] = arith.select %[[ROWS]]#2, %c0, %[[FOUND]]
// CHECK:         arith.select %[[SAME]], %[[WITHIN]], %
// CHECK:         kvbuffer.key_range %first of %dim keys %keys from %[[START]] {BM = 128 : i64, mask
// CHECK:         arith.minsi %hi, %[[END]]
// CHECK:         scf.for
func.func @documents(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %ids: memref<?x?xi32> {kvbuffer.rising}) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%ids : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %t: memref<?x?xi32>):
      %own = memref.load %t[%batch, %at] : memref<?x?xi32>
      %other = memref.load %t[%batch, %key] : memref<?x?xi32>
      %same = arith.cmpi eq, %own, %other : i32
      kvbuffer.yield %same : i1
    }
  return
}

// Under a causal mask nobody looks for ends, which lie behind the rows.
// CHECK-LABEL: gpu.func @causal(
// CHECK-COUNT-2: scf.while
// CHECK-NOT:     scf.while
// CHECK:         kvbuffer.key_range {{.*}}descending
// CHECK-NOT:     scf.while
// CHECK:         scf.for
func.func @causal(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %ids: memref<?x?xi32> {kvbuffer.rising}) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
    captures(%ids : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %t: memref<?x?xi32>):
      %zero = arith.constant 0 : index
      %place = arith.maxsi %at, %zero : index
      %own = memref.load %t[%batch, %place] : memref<?x?xi32>
      %other = memref.load %t[%batch, %key] : memref<?x?xi32>
      %same = arith.cmpi eq, %own, %other : i32
      kvbuffer.yield %same : i1
    }
  return
}

// Without that word nothing is known.
// CHECK-LABEL: gpu.func @unknown(
// CHECK-NOT:     scf.while
// CHECK:         scf.for
func.func @unknown(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %ids: memref<?x?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%ids : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %t: memref<?x?xi32>):
      %own = memref.load %t[%batch, %at] : memref<?x?xi32>
      %other = memref.load %t[%batch, %key] : memref<?x?xi32>
      %same = arith.cmpi eq, %own, %other : i32
      kvbuffer.yield %same : i1
    }
  return
}
