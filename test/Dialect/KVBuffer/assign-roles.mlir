// A tile program divided between producers and consumers: the loads in their order,
// everything else with waits and releases, both with the same numbers of fillings.

// DEFINE: %{schedule} =
// DEFINE: %{passes} = kvbuf-lower-attention,canonicalize,gpu.module(gpu.func(kvbuf-overlap-products,kvbuf-persistent-tiles,kvbuf-join-tiles,kvbuf-assign-roles,canonicalize,cse))
// DEFINE: %{run} = kvbuf-opt %s --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_90a schedule=BM=128,BN=64,warps=8,join_tiles=false,q_stages=1,stage_output=false,producer_registers=40,consumer_registers=232,%{schedule}},%{passes})"

// Without overlap, one tile a block: slots are the iteration's.
// REDEFINE: %{schedule} = tiles=grid,overlap_products=false,q_in_regs=false
// RUN: %{run} | FileCheck %s
// RUN: %{run} --remark-format=emitRemark --remarks-filter=kvbuf-assign-roles 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: remark: [Passed] roles{{.*}}4{{.*}} warps move tiles, {{.*}}8{{.*}} multiply in {{.*}}2{{.*}} group(s)

// CHECK-LABEL: gpu.func @attend
// CHECK-SAME:    known_block_size = array<i32: 384, 1, 1>
// CHECK-DAG:     %[[QRING:.*]] = kvbuffer.ring %qbuf {releases = 2 : i64}
// CHECK-DAG:     %[[KRING:.*]] = kvbuffer.ring %kbuf {releases = 2 : i64}
// CHECK-DAG:     %[[VRING:.*]] = kvbuffer.ring %vbuf {releases = 2 : i64}
// CHECK:         kvbuffer.warp_roles producers(4, 40) {
// CHECK:           scf.if
// CHECK:             kvbuffer.ring_load %{{.*}} into %[[QRING]][%c0]
// CHECK:             scf.for %[[I:.*]] = %c0 to
// CHECK-NEXT:          arith.subi
// CHECK:               kvbuffer.ring_load %{{.*}} into %[[KRING]][%[[I]]]
// CHECK:               kvbuffer.ring_load %{{.*}} into %[[VRING]][%[[I]]]
// CHECK-NOT:       kvbuffer.fragment
// CHECK-NOT:       kvbuffer.row_store
// CHECK:         } consumers(8, 232) {
// No look-up of a page is left here, nor any load.
// CHECK-NOT:       kvbuffer.cache_tile
// CHECK-NOT:       kvbuffer.{{.*}}load %tile
// CHECK:           %[[QS:.*]] = kvbuffer.ring_wait %[[QRING]][%c0]
// CHECK:           scf.for %[[I:.*]] = %c0 to
// CHECK:             %[[KS:.*]] = kvbuffer.ring_wait %[[KRING]][%[[I]]]
// CHECK:             kvbuffer.fragment_load %[[QS]]
// CHECK:             kvbuffer.fragment_load %[[KS]]
// CHECK-NEXT:        kvbuffer.ring_release %[[KRING]][%[[I]]]
// CHECK:             %[[VS:.*]] = kvbuffer.ring_wait %[[VRING]][%[[I]]]
// CHECK:             kvbuffer.fragment_load %[[VS]]
// CHECK-NEXT:        kvbuffer.ring_release %[[VRING]][%[[I]]]
// CHECK:           }
// The last read of Q is the loop's.
// CHECK-NEXT:      kvbuffer.ring_release %[[QRING]][%c0]
// CHECK:           kvbuffer.fragment_store
// CHECK-NOT:       kvbuffer.cache_tile

// Rotated: V is one filling late. Q goes back on both sides of the branch on keys.
// REDEFINE: %{schedule} = tiles=grid,q_in_regs=false
// RUN: %{run} | FileCheck %s --check-prefix=OVERLAP
// OVERLAP:       kvbuffer.warp_roles producers
// OVERLAP:         kvbuffer.ring_load %{{.*}} into %qring[%c0]
// OVERLAP:         scf.if
// OVERLAP:           kvbuffer.ring_load %{{.*}} into %kring[%c0]
// OVERLAP:           scf.for %[[I:.*]] = %c1 to
// OVERLAP:             %[[VN:.*]] = arith.addi %[[I]], %c-1
// OVERLAP:             kvbuffer.ring_load %{{.*}} into %kring[%[[I]]] {whole}
// OVERLAP:             kvbuffer.ring_load %{{.*}} into %vring[%[[VN]]]
// OVERLAP:           }
// OVERLAP:           kvbuffer.ring_load %{{.*}} into %vring[
// OVERLAP:       consumers
// OVERLAP:         kvbuffer.ring_wait %qring[%c0]
// OVERLAP:         scf.if
// OVERLAP:           scf.for
// OVERLAP:             kvbuffer.rescale
// OVERLAP-NEXT:        scf.yield
// OVERLAP-NEXT:      }
// OVERLAP-NEXT:      kvbuffer.ring_release %qring[%c0]
// OVERLAP:         } else {
// OVERLAP-NEXT:      kvbuffer.ring_release %qring[%c0]

// With Q in registers, right behind the load of its fragments.
// REDEFINE: %{schedule} = tiles=grid,q_in_regs=true
// RUN: %{run} | FileCheck %s --check-prefix=QREGS
// QREGS:       consumers
// QREGS:         %[[QS:.*]] = kvbuffer.ring_wait %qring[%c0]
// QREGS-NEXT:    kvbuffer.fragment_load %[[QS]]
// QREGS-NEXT:    kvbuffer.ring_release %qring[%c0]
// QREGS-NOT:     %qring

// A loop over tiles carries the counts: one for Q, one for K and V, which are
// filled alike.
// REDEFINE: %{schedule} = tiles=static
// RUN: %{run} | FileCheck %s --check-prefix=STATIC
// STATIC:        kvbuffer.warp_roles producers
// STATIC:          scf.for %{{.*}} iter_args(%[[QN:.*]] = %c0, %[[KN:.*]] = %c0) -> (index, index)
// STATIC:            kvbuffer.ring_load %{{.*}} into %qring[%[[QN]]]
// STATIC:            kvbuffer.ring_load %{{.*}} into %kring[%[[KN]]]
// STATIC:            scf.for %[[I:.*]] = %c1
// STATIC:              %[[K:.*]] = arith.addi %[[KN]], %[[I]]
// STATIC:              kvbuffer.ring_load %{{.*}} into %kring[%[[K]]]
// STATIC:        consumers
// STATIC:          scf.for %{{.*}} iter_args(%[[QN:.*]] = %c0, %[[KN:.*]] = %c0) -> (index, index)
// STATIC:            kvbuffer.ring_wait %qring[%[[QN]]]
// STATIC:            kvbuffer.ring_wait %kring[%[[KN]]]
// STATIC:            scf.for %[[I:.*]] = %c1
// STATIC:              %[[K:.*]] = arith.addi %[[KN]], %[[I]]
// STATIC:              kvbuffer.ring_wait %kring[%[[K]]]

// The counter is the producers'; the consumers read its numbers from a mailbox.
// REDEFINE: %{schedule} = tiles=dynamic
// RUN: %{run} | FileCheck %s --check-prefix=DYNAMIC
// DYNAMIC:       %[[BOX:.*]] = kvbuffer.mailbox {releases = 2 : i64, slots = 2 : i64}
// DYNAMIC:       kvbuffer.warp_roles producers
// DYNAMIC:         %[[T:.*]] = kvbuffer.next_tile of
// DYNAMIC-NEXT:    kvbuffer.mailbox_post %[[T]] to %[[BOX]][%c0]
// DYNAMIC:         scf.while
// DYNAMIC:           %[[T:.*]] = kvbuffer.next_tile of
// DYNAMIC-NEXT:      kvbuffer.mailbox_post %[[T]] to %[[BOX]][%[[N:.*]]]
// DYNAMIC-NEXT:      %[[N1:.*]] = arith.addi %[[N]], %c1
// DYNAMIC:           scf.yield %[[T]],{{.*}} %[[N1]]
// DYNAMIC:       consumers
// DYNAMIC-NOT:     kvbuffer.next_tile
// DYNAMIC:         kvbuffer.mailbox_take %[[BOX]][%c0]
// DYNAMIC:         scf.while
// Read when it is needed.
// DYNAMIC:           kvbuffer.row_store
// DYNAMIC:           %[[T:.*]] = kvbuffer.mailbox_take %[[BOX]][%[[N:.*]]]
// DYNAMIC-NEXT:      %[[N1:.*]] = arith.addi %[[N]], %c1
// DYNAMIC-NEXT:      scf.yield %[[T]],{{.*}} %[[N1]]

// However often the program asks for a tile, there is one mailbox.
// REDEFINE: %{schedule} = tiles=dynamic,join_tiles=true
// RUN: %{run} | FileCheck %s --check-prefix=JOINED
// JOINED:      kvbuffer.mailbox {
// JOINED-NOT:  kvbuffer.mailbox {

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = 64>
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %lse: memref<?x2x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) : !qo, !kv, !kv, !qo, lse memref<?x2x?xf32>
  return
}
