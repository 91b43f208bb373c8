// Blocks of keys that lists name: the loop over tiles takes its places from them, and
// masks those of the first list alone.

// RUN: kvbuf-opt %s --kvbuf-to-tile=chip=sm_80 | FileCheck %s
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
// CHECK: %[[ALL:.*]] = arith.addi %[[PARTLY]], %[[WHOLLY]]
// CHECK: %[[COUNT:.*]] = arith.muli %[[ALL]], %c2
// Where the end of the sequence cuts a block, all are masked, and the function of one that
// is wholly visible shows all keys that there are.
// CHECK: scf.if
// CHECK: scf.for %[[I:.*]] = %c0 to %[[COUNT]] step %c1
// CHECK:   memref.load %arg6[
// CHECK:   memref.load %arg8[
// CHECK:   %[[EDGE:.*]] = arith.cmpi slt, %[[I]], %[[COUNT]]
// CHECK:   scf.if %[[EDGE]]
// CHECK:     kvbuffer.map
// CHECK:       %[[SAME:.*]] = arith.cmpi eq
// CHECK:       %[[SHOWN:.*]] = arith.ori %[[SAME]],
// CHECK:       %[[EXISTS:.*]] = arith.cmpi slt, %{{.*}}, %keys
// CHECK:       arith.andi %[[SHOWN]], %[[EXISTS]]
// CHECK-NOT: kvbuffer.mask
// CHECK:   kvbuffer.online_softmax
// Elsewhere the partly visible ones alone.
// CHECK: } else {
// CHECK: scf.for %[[J:.*]] = %c0 to %[[COUNT]] step %c1
// CHECK:   %[[OTHER:.*]] = arith.cmpi slt, %[[J]],
// CHECK:   scf.if %[[OTHER]]
// CHECK:     kvbuffer.map
// CHECK-NOT:   arith.ori
// CHECK-NOT:   arith.andi
// CHECK:   } else {
// CHECK-NEXT: scf.yield %s
// CHECK:   kvbuffer.online_softmax {{.*}}scale = 1.250000e-01

// Producers and consumers walk over the same lists; the consumers' loop over blocks that
// are wholly visible needs no list.
// ROLES: team @consumers
// ROLES-COUNT-4: any_negative
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
