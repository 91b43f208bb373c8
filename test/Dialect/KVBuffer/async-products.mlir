// Products on staged operands: started where they stand, awaited in front of the
// first use of their results; slots go back behind the wait of what reads them.

// DEFINE: %{schedule} =
// DEFINE: %{passes} = kvbuf-lower-attention,canonicalize,gpu.module(gpu.func(kvbuf-overlap-products,kvbuf-persistent-tiles,kvbuf-assign-roles,kvbuf-async-products,canonicalize,cse))
// DEFINE: %{run} = kvbuf-opt %s --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_90a schedule=BM=128,BN=64,warps=8,join_tiles=false,q_stages=1,stage_output=false,ping_pong=false,producer_registers=40,consumer_registers=232,tiles=grid,%{schedule}},%{passes})"

// REDEFINE: %{schedule} = q_in_regs=false
// RUN: %{run} | FileCheck %s
// CHECK:       consumers(8, 232) {
// CHECK:         %[[QS:.*]] = kvbuffer.ring_wait %qring[%c0]
// The first scores are needed at once. From zero: no accumulator.
// CHECK:         %[[K0:.*]] = kvbuffer.ring_wait %kring
// CHECK-NEXT:    %[[F0:.*]] = kvbuffer.mma_start %[[QS]], %[[K0]] {transpose_b} : !kvbuffer.staged<#qbuf>
// CHECK-NEXT:    %[[S0:.*]] = kvbuffer.mma_wait %[[F0]] {younger = 0 : i64}
// CHECK-NEXT:    kvbuffer.ring_release %kring
// CHECK:         kvbuffer.mask %[[S0]]
// CHECK:         scf.for {{.*}} iter_args(%[[ACC:[a-z0-9]*]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[P:[a-z0-9]*]] = %{{.*}})
// CHECK:           %[[KS:.*]] = kvbuffer.ring_wait %kring[%[[KN:.*]]]
// CHECK-NEXT:      %[[SF:.*]] = kvbuffer.mma_start %[[QS]], %[[KS]] {transpose_b}
// CHECK-NEXT:      %[[VS:.*]] = kvbuffer.ring_wait %vring[%[[VN:.*]]]
// CHECK-NEXT:      %[[OF:.*]] = kvbuffer.mma_start %[[P]], %[[VS]], %[[ACC]] : !kvbuffer.fragment<128x64xf32, acc> : !kvbuffer.fragment<128x64xbf16, a>
// The scores' wait leaves the product of P and V in flight.
// CHECK-NOT:       kvbuffer
// CHECK:           %[[S:.*]] = kvbuffer.mma_wait %[[SF]] {younger = 1 : i64}
// CHECK-NEXT:      kvbuffer.ring_release %kring[%[[KN]]]
// CHECK:           kvbuffer.online_softmax
// CHECK-NEXT:      %[[O:.*]] = kvbuffer.mma_wait %[[OF]] {younger = 0 : i64}
// CHECK-NEXT:      kvbuffer.ring_release %vring[%[[VN]]]
// CHECK-NEXT:      kvbuffer.rescale %[[O]]
// CHECK:         }
// CHECK-NEXT:    kvbuffer.ring_release %qring[%c0]
// CHECK:         %[[VL:.*]] = kvbuffer.ring_wait %vring
// CHECK-NEXT:    %[[OL:.*]] = kvbuffer.mma_start %{{.*}}, %[[VL]], %{{.*}} :
// CHECK-NEXT:    %[[LAST:.*]] = kvbuffer.mma_wait %[[OL]] {younger = 0 : i64}
// CHECK-NEXT:    kvbuffer.ring_release %vring
// CHECK-NEXT:    scf.yield %[[LAST]]
// CHECK-NOT:     kvbuffer.mma_start
// CHECK-NOT:     kvbuffer.turn

// Q in registers is operand a; turns are from the start of the scores to that of
// the product of P and V.
// REDEFINE: %{schedule} = q_in_regs=true,ping_pong=true
// RUN: %{run} | FileCheck %s --check-prefix=PINGPONG
// PINGPONG:      %[[QF:.*]] = kvbuffer.fragment_load %qs
// PINGPONG:      kvbuffer.mma_start %[[QF]], %{{.*}} {transpose_b} : !kvbuffer.fragment<128x64xbf16, a>
// PINGPONG:      scf.for
// PINGPONG:        kvbuffer.ring_wait %kring
// PINGPONG-NEXT:   kvbuffer.turn_wait
// PINGPONG-NEXT:   kvbuffer.mma_start %[[QF]]
// PINGPONG-NEXT:   kvbuffer.ring_wait %vring
// PINGPONG-NEXT:   kvbuffer.mma_start
// PINGPONG-NEXT:   kvbuffer.turn_pass
// PINGPONG:        kvbuffer.mma_wait

// Without the overlap each product is awaited before the next one starts, and
// nobody takes turns.
// REDEFINE: %{schedule} = overlap_products=false,ping_pong=true
// RUN: %{run} | FileCheck %s --check-prefix=SERIAL
// RUN: %{run} --remark-format=emitRemark --remarks-filter=kvbuf-async-products 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// SERIAL:      scf.for
// SERIAL:        kvbuffer.mma_start
// SERIAL-NOT:    kvbuffer.mma_start
// SERIAL:        kvbuffer.mma_wait {{.*}} {younger = 0 : i64}
// SERIAL:        %[[SCALED:.*]] = kvbuffer.rescale
// SERIAL:        kvbuffer.mma_start %{{.*}}, %{{.*}}, %[[SCALED]]
// SERIAL-NEXT:   kvbuffer.mma_wait {{.*}} {younger = 0 : i64}
// REMARK-COUNT-1: remark: [Missed] ping-pong{{.*}}no turns: no loop starts two products that overlap

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}
