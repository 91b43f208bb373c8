// Blocks of keys that lists name: the loop over tiles takes its places from them, and
// masks those of the first list alone.

// RUN: kvbuf-opt %s --kvbuf-to-tile=chip=sm_80 | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-to-tile=chip=gfx950 | FileCheck %s --check-prefix=TURNS
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=sm_90a" | FileCheck %s --check-prefix=CHOSEN
// RUN: kvbuf-opt %s --kvbuf-to-scheduled="chip=sm_90a" | FileCheck %s --check-prefix=ROLES

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
!numbers = memref<?x?x?xi32>
!blocks = memref<?x?x?x?xi32>

// Three groups of consumers have 192 rows; two have 128.
// CHOSEN: #kvbuffer.schedule<BM = 128, BN = 128,

// CHECK-LABEL: gpu.func @blocks(
// CHECK-SAME: kvbuffer.name = "capture1", kvbuffer.shape = ["list_batch", "list_heads", "list_rows"]
// CHECK-SAME: kvbuffer.name = "capture4", kvbuffer.shape = ["list_batch", "list_heads", "list_rows", "list_keys"]
// CHECK: %[[PART:.*]] = memref.load %arg5[
// CHECK: %[[PARTLY:.*]] = arith.maxsi
// CHECK: memref.load %arg7[
// CHECK: %[[WHOLLY:.*]] = arith.maxsi
// CHECK: %[[PARTS:.*]] = arith.index_cast %[[PARTLY]] : i32 to index
// CHECK: %[[WHOLES:.*]] = arith.index_cast %[[WHOLLY]] : i32 to index
// CHECK: %[[ALL:.*]] = arith.addi %[[PARTS]], %[[WHOLES]]
// CHECK: %[[COUNT:.*]] = arith.muli %[[ALL]], %c2
// Where the end of the sequence cuts a block, it is looked for in each tile, whichever list
// names it. The function is asked of partly visible ones alone.
// CHECK: scf.if
// CHECK: scf.for %[[I:.*]] = %c0 to %[[COUNT]] step %c1
// CHECK:   memref.load %arg6[
// CHECK:   memref.load %arg8[
// CHECK:   %[[EDGE:.*]] = arith.cmpi slt, %[[I]], %[[MASKED:.*]] :
// CHECK:   scf.if %[[EDGE]]
// CHECK:     %[[OWN:.*]] = kvbuffer.map
// CHECK:       %[[SAME:.*]] = arith.cmpi eq
// CHECK-NEXT:  arith.select %[[SAME]],
// CHECK:     %[[CUT:.*]] = arith.cmpi sgt, %{{.*}}, %keys
// CHECK:     scf.if %[[CUT]]
// CHECK-NEXT:  kvbuffer.mask %[[OWN]] {{.*}}{mask = #kvbuffer.mask<>}
// CHECK:   } else {
// CHECK:     scf.if
// CHECK-NEXT:  kvbuffer.mask %s {{.*}}{mask = #kvbuffer.mask<>}
// CHECK:   kvbuffer.online_softmax
// Elsewhere the partly visible ones alone.
// CHECK: } else {
// CHECK: scf.for %[[J:.*]] = %c0 to %[[COUNT]] step %c1
// CHECK:   %[[OTHER:.*]] = arith.cmpi slt, %[[J]], %[[MASKED]]
// CHECK:   scf.if %[[OTHER]]
// CHECK:     kvbuffer.map
// CHECK-NOT:   arith.ori
// CHECK-NOT:   arith.andi
// CHECK-NOT:   kvbuffer.mask
// CHECK:   } else {
// CHECK-NEXT: scf.yield %s
// CHECK:   kvbuffer.online_softmax {{.*}}scale = 1.250000e-01

// Where halves take turns, there is one loop. The function of partly visible tiles knows
// nothing of the sequence's end, which each tile is seldom cut by.
// TURNS: %[[BLOCKS:.*]] = arith.maxsi %{{.*}}, %c0_i32 : i32
// TURNS: %[[PARTS:.*]] = arith.index_cast %[[BLOCKS]] : i32 to index
// TURNS: %[[PARTLY:.*]] = arith.muli %[[PARTS]], %c2
// TURNS: scf.for %[[I:.*]] = %c0 to
// TURNS:   %[[EDGE:.*]] = arith.cmpi slt, %[[I]], %[[PARTLY]]
// TURNS:   scf.if %[[EDGE]]
// TURNS:     %[[MAPPED:.*]] = kvbuffer.map
// TURNS:       %[[SAME:.*]] = arith.cmpi eq
// TURNS-NEXT:  arith.select %[[SAME]],
// TURNS:     kvbuffer.mask %[[MAPPED]] {{.*}}seldom
// TURNS:   } else {
// TURNS:     kvbuffer.mask %s {{.*}}seldom
// TURNS:   kvbuffer.online_softmax
// TURNS-NOT: scf.for

// The mask is asked in each partly visible tile then, the end in the others.
// TURNS: gpu.func @masked(
// TURNS: scf.for
// TURNS:   scf.if
// TURNS-NEXT: %[[BOTH:.*]] = kvbuffer.mask %s {{.*}}{mask = #kvbuffer.mask<causal = true, left = 300>}
// TURNS-NEXT: scf.yield %[[BOTH]]
// TURNS-NEXT: } else {
// TURNS-NEXT: %[[END:.*]] = kvbuffer.mask %s {{.*}}seldom
// TURNS-NEXT: scf.yield %[[END]]
// TURNS-NOT: scf.for

// Producers and consumers walk over the same lists; the consumers' loop over blocks that
// are wholly visible needs no list.
// ROLES: team @consumers
// ROLES-COUNT-2: any_negative
// ROLES-NOT: memref.load
// ROLES-NOT: kvbuffer.map
// ROLES: team @producers
// ROLES: scf.for
// ROLES: memref.load %arg6
func.func @blocks(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %doc: memref<?x?xi32>, %a: !numbers,
                  %b: !blocks, %c: !numbers, %d: !blocks) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o)
    {block_mask = #kvbuffer.block_mask<rows = 128, keys = 128, lists = [1, 2, 3, 4]>} : !qo, !kv, !kv, !qo
    captures(%doc, %a, %b, %c, %d : memref<?x?xi32>, !numbers, !blocks, !numbers, !blocks)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index,
         %doc_of: memref<?x?xi32>, %m0: !numbers, %m1: !blocks, %m2: !numbers, %m3: !blocks):
      %own = memref.load %doc_of[%batch, %row] : memref<?x?xi32>
      %its = memref.load %doc_of[%batch, %key] : memref<?x?xi32>
      %t = arith.cmpi eq, %own, %its : i32
      kvbuffer.yield %t : i1
    }
  return
}

// Beside lists a mask is asked at its own edges, of partly visible blocks, behind the function.
// CHECK-LABEL: gpu.func @masked(
// CHECK: scf.if
// CHECK:   %[[FAR:.*]] = arith.cmpi sgt, %{{.*}}
// CHECK:   %[[NEAR:.*]] = arith.cmpi slt, %{{.*}}
// CHECK:   %[[CROSSES:.*]] = arith.ori %[[FAR]], %[[NEAR]]
// CHECK:   %[[ENDS:.*]] = arith.cmpi sgt, %{{.*}}, %keys
// CHECK:   %[[ASKED:.*]] = arith.ori %[[CROSSES]], %[[ENDS]]
// CHECK:   scf.if %[[ASKED]]
// CHECK-NEXT: kvbuffer.mask {{.*}}{mask = #kvbuffer.mask<causal = true, left = 300>}
// CHECK: } else {
// CHECK:   kvbuffer.mask %s {{.*}}{mask = #kvbuffer.mask<>}
// CHECK: kvbuffer.online_softmax
// CHECK:   %[[FAR:.*]] = arith.cmpi sgt, %{{.*}}
// CHECK:   %[[NEAR:.*]] = arith.cmpi slt, %{{.*}}
// CHECK:   %[[CROSSES:.*]] = arith.ori %[[FAR]], %[[NEAR]]
// CHECK:   scf.if %[[CROSSES]]
// CHECK-NEXT: kvbuffer.mask {{.*}}{mask = #kvbuffer.mask<causal = true, left = 300>}
func.func @masked(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %a: !numbers, %b: !blocks, %c: !numbers,
                  %d: !blocks) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o)
    {mask = #kvbuffer.mask<causal = true, left = 300>, block_mask = #kvbuffer.block_mask<rows = 128, keys = 128, lists = [0, 1, 2, 3]>} : !qo, !kv, !kv, !qo
    captures(%a, %b, %c, %d : !numbers, !blocks, !numbers, !blocks)
  return
}
