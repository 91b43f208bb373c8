// A group of consumers begins at the first tile of keys that it sees, and gives back
// those before it, each after it was filled.

// DEFINE: %{schedule} =
// DEFINE: %{passes} = kvbuf-lower-attention,canonicalize,gpu.module(gpu.func(kvbuf-overlap-products,kvbuf-pair-tiles,kvbuf-persistent-tiles,kvbuf-join-tiles,kvbuf-assign-roles,canonicalize,cse,kvbuf-async-products))
// DEFINE: %{run} = kvbuf-opt %s --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_90a schedule=BM=192,BN=128,warps=12,q_stages=1,stage_output=false,producer_registers=32,consumer_registers=160,q_in_regs=false,%{schedule}},%{passes})"

// REDEFINE: %{schedule} = tiles=grid,ping_pong=true
// RUN: %{run} | FileCheck %s

// CHECK:         kvbuffer.warp_roles producers
// CHECK:           kvbuffer.key_range %{{.*}} {BM = 192 : i64, descending,
// CHECK-NOT:       per_group
// CHECK:         consumers
// CHECK:           %[[LO:.*]], %[[HI:.*]], %{{.*}}, %{{.*}} = kvbuffer.key_range %[[ROW:.*]] of %[[N:.*]] keys %[[KEYS:.*]] {BM = 192 : i64, mask = #kvbuffer.mask<causal = true>}
// CHECK:           %{{.*}}, %[[OWN:.*]], %{{.*}}, %[[FULL:.*]] = kvbuffer.key_range %[[ROW]] of %[[N]] keys %[[KEYS]] {BM = 192 : i64, {{.*}}per_group}
// A tile stays where the block has any.
// CHECK:           %[[FIRST:.*]] = arith.maxsi %[[LO]], %c0
// CHECK:           %[[ONE:.*]] = arith.addi %[[FIRST]], %c1
// CHECK:           %[[LEAST:.*]] = arith.maxsi %[[OWN]], %[[ONE]]
// CHECK:           %[[END:.*]] = arith.minsi %[[HI]], %[[LEAST]]
// CHECK:           %[[ALL:.*]] = arith.ceildivui %{{.*}}, %c128
// CHECK:           %[[SEEN:.*]] = arith.ceildivui %{{.*}}, %c128
// CHECK:           %[[SKIPPED:.*]] = arith.subi %[[ALL]], %[[SEEN]]
// The turns of the iterations that it leaves out are taken, too.
// CHECK:           scf.for %[[I:.*]] = %c0 to %[[SKIPPED]]
// CHECK-NEXT:        kvbuffer.ring_wait %kring[%[[I]]]
// CHECK-NEXT:        kvbuffer.ring_release %kring[%[[I]]]
// CHECK-NEXT:        kvbuffer.turn_wait
// CHECK-NEXT:        kvbuffer.turn_pass
// CHECK-NEXT:        kvbuffer.ring_wait %vring[%[[I]]]
// CHECK-NEXT:        kvbuffer.ring_release %vring[%[[I]]]
// CHECK-NEXT:      }
// CHECK:           kvbuffer.ring_wait %kring[%[[SKIPPED]]]
// CHECK:           scf.for
// CHECK:             kvbuffer.turn_wait

// The number of fillings goes on from the block's, whatever a group left out.
// REDEFINE: %{schedule} = tiles=static,ping_pong=false
// RUN: %{run} | FileCheck %s --check-prefix=STATIC
// STATIC:        consumers
// STATIC:          scf.for %{{.*}} iter_args(%[[QN:.*]] = %c0, %[[KN:.*]] = %c0) -> (index, index)
// STATIC:            kvbuffer.key_range {{.*}}per_group
// STATIC:            scf.for %[[I:.*]] = %c0 to %[[SKIPPED:[^ ]*]] step
// STATIC-NEXT:         %[[FILL:.*]] = arith.addi %[[KN]], %[[I]]
// STATIC-NEXT:         kvbuffer.ring_wait %kring[%[[FILL]]]
// STATIC-NEXT:         kvbuffer.ring_release %kring[%[[FILL]]]
// STATIC-NEXT:         kvbuffer.ring_wait %vring[%[[FILL]]]
// STATIC-NEXT:         kvbuffer.ring_release %vring[%[[FILL]]]
// STATIC-NEXT:       }
// STATIC-NEXT:       %[[NEXT:.*]] = arith.addi %[[KN]], %[[SKIPPED]]
// STATIC:            kvbuffer.ring_wait %kring[%[[NEXT]]]

// The rows of the cluster's blocks are not the same: those of a block's group. What
// is loaded is the cluster's matter.
// REDEFINE: %{schedule} = tiles=static,ping_pong=false,cluster=2
// RUN: %{run} | FileCheck %s --check-prefix=CLUSTER
// CLUSTER:       producers
// CLUSTER:         kvbuffer.key_range %{{[^ ]*}} of %{{[^ ]*}} keys %{{[^ ]*}} {BM = 384
// CLUSTER:       consumers
// CLUSTER:         %[[PART:.*]] = arith.muli %{{.*}}, %c192
// CLUSTER:         %[[OWN:.*]] = arith.addi %[[ROW:.*]], %[[PART]]
// CLUSTER:         kvbuffer.key_range %[[ROW]] of %[[N:.*]] keys %[[KEYS:[^ ]*]] {BM = 384 : i64, mask = #kvbuffer.mask<causal = true>}
// CLUSTER:         kvbuffer.key_range %[[OWN]] of %[[N]] keys %[[KEYS]] {BM = 192 : i64, {{.*}}per_group}

// Tiles of queries that are whole tiles of keys: all groups see the last of them. But
// those of a cluster's first block do not see the second one's.
// REDEFINE: %{schedule} = tiles=static,ping_pong=false,BM=128,warps=8,consumer_registers=232
// RUN: %{run} | FileCheck %s --check-prefix=WHOLE
// WHOLE-NOT:     per_group
// REDEFINE: %{schedule} = tiles=static,ping_pong=false,BM=128,warps=8,consumer_registers=232,cluster=2
// RUN: %{run} | FileCheck %s --check-prefix=WIDE
// WIDE:          kvbuffer.key_range {{.*}}BM = 128 : i64, {{.*}}per_group}

// Joined tiles begin a tile in the last iteration of the one before.
// REDEFINE: %{schedule} = tiles=static,ping_pong=false,join_tiles=true
// RUN: %{run} | FileCheck %s --check-prefix=JOINED
// JOINED-NOT:    per_group

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}
