// Attention over bytes on sm_90a: what producers load of V a team turns into a ring whose
// columns lie side by side, and puts ones that weights are added up by; a tile's product is
// awaited behind the softmax, whose maxima K's slot waits for, and added by the rescaling.

// RUN: kvbuf-opt %s --kvbuf-to-scheduled="chip=sm_90a schedule=BM=128,warps=8,producer_registers=40,consumer_registers=232,widener_registers=40,overlap_products=true" | FileCheck %s
// RUN: sed -e 's/x64x/x256x/; s/head_size = 64/head_size = 256/' %s | kvbuf-opt --kvbuf-to-scheduled=chip=sm_90a | FileCheck %s --check-prefix=WIDE
// RUN: sed -e 's/x64x/x128x/; s/head_size = 64/head_size = 128/' %s | kvbuf-opt --kvbuf-to-scheduled=chip=sm_90a | FileCheck %s --check-prefix=THREE
// RUN: kvbuf-compile %s --target=sm_90a --no-alternatives --emit=thread --schedule=BM=128,warps=8,producer_registers=40,consumer_registers=232,widener_registers=40,overlap_products=true | FileCheck %s --check-prefix=BESIDE
// RUN: kvbuf-compile %s --target=sm_90a --no-alternatives --emit=thread | FileCheck %s --check-prefix=LATER
// RUN: sed -e 's/x64x/x256x/; s/head_size = 64/head_size = 256/' %s | kvbuf-compile - --target=sm_90a --no-alternatives --emit=thread | FileCheck %s --check-prefix=AHEAD

// CHECK-DAG: #[[ORDER:.*]] = #kvbuffer.mma<mma_sync, b, shape = [16, 16, 32], warps = [1, 2], order = [1, 8, 2, 4, 16], columns = [2, 4, 8, 1]>
// CHECK-DAG: #[[ASLOADED:.*]] = #kvbuffer.kv_buffer<128x64xf8E5M2, stages = 2, swizzle = [2, 0, 3]>
// CHECK-DAG: #[[TURNED:.*]] = #kvbuffer.kv_buffer<128x64xf8E5M2, stages = 2, order = cols>
// CHECK-DAG: #[[ROW:.*]] = #kvbuffer.kv_buffer<32x128xf8E4M3FN, swizzle = [3, 0, 3]>
// CHECK-DAG: %[[RAW:.*]] = kvbuffer.ring %{{.*}} from @producers to [@wideners] : <#[[ASLOADED]]>
// CHECK-DAG: %[[V:.*]] = kvbuffer.ring %{{.*}} from @wideners to [@consumers] : <#[[TURNED]]>
// CHECK-DAG: %[[ONES:.*]] = kvbuffer.ring %{{.*}} from @wideners to [@consumers] : <#[[ROW]]>
// CHECK:     kvbuffer.team @consumers warps(8) registers(232) {
// CHECK:       %[[SLOT:.*]] = kvbuffer.ring_wait %[[ONES]][%c0]
// CHECK:       scf.for
// CHECK:         %[[S:.*]] = kvbuffer.mma_start %{{.*}}, %{{.*}} {transpose_b}
// CHECK:         %[[T:.*]] = kvbuffer.mma_start %[[P:.*]], %{{.*}} : {{.*}}<#[[TURNED]]> -> <128x64xf32
// CHECK:         %[[L:.*]] = kvbuffer.mma_start %[[P]], %{{.*}} {transpose_b} : {{.*}} -> <128x8xf32
// CHECK:         kvbuffer.mma_wait %[[S]] {younger = 2 : i64}
// CHECK:         %{{.*}}, %[[M:.*]], %{{.*}}, %{{.*}} = kvbuffer.online_softmax {{.*}}gain = 2.560000e+02
// CHECK-NEXT:    kvbuffer.ring_release
// CHECK-NEXT:    %[[TILE:.*]] = kvbuffer.mma_wait %[[T]] {younger = 1 : i64}
// CHECK-NEXT:    kvbuffer.ring_release %[[V]]
// CHECK-NEXT:    kvbuffer.rescale %{{.*}}, %{{.*}} plus %[[TILE]]
// CHECK-NEXT:    %[[SUM:.*]] = kvbuffer.mma_wait %[[L]] {younger = 0 : i64}
// CHECK-NEXT:    kvbuffer.rescale %{{.*}}, %{{.*}} plus %[[SUM]] : <128x8xf32
// CHECK:         kvbuffer.row_reduce sum
// CHECK:     kvbuffer.team @wideners warps(2) registers(40) {
// CHECK:       %[[ALL:.*]] = kvbuffer.fragment_fill 1.250000e-01 : <32x128xf8E4M3FN, a
// CHECK:       kvbuffer.ring_put %[[ALL]] into %[[ONES]][%c0]
// CHECK:         %[[READ:.*]] = kvbuffer.ring_wait %[[RAW]][%[[I:.*]]]
// CHECK-NEXT:    %[[F:.*]] = kvbuffer.fragment_load %[[READ]][0, 0] contracted(rows) : <#[[ASLOADED]]> -> <128x64xf8E5M2, b, #[[ORDER]]>
// CHECK-NEXT:    kvbuffer.ring_put %[[F]] into %[[V]][%[[I]]]
// CHECK-NEXT:    kvbuffer.ring_release %[[RAW]][%[[I]]]
// CHECK:     kvbuffer.team @producers warps(2) registers(40) {

// Accumulators of 256 columns leave registers for the product of a part of them alone: the
// next part is in flight while one is added. Vector instructions add weights up.
// WIDE-LABEL:   kvbuffer.team @consumers
// WIDE-NOT:       <128x8xf32
// WIDE:           %[[P:.*]], %{{.*}}, %{{.*}}, %[[R:.*]] = kvbuffer.online_softmax
// WIDE-NEXT:      %[[V:.*]] = kvbuffer.ring_wait
// WIDE-NEXT:      %[[V0:.*]] = kvbuffer.staged_view %[[V]][0, 0]
// WIDE-NEXT:      %[[T0:.*]] = kvbuffer.mma_start %[[P]], %[[V0]] : {{.*}} -> <128x32xf32
// WIDE-NEXT:      %[[V1:.*]] = kvbuffer.staged_view %[[V]][0, 32]
// WIDE-NEXT:      %[[T1:.*]] = kvbuffer.mma_start %[[P]], %[[V1]] : {{.*}} -> <128x32xf32
// WIDE-NEXT:      %[[A0:.*]] = kvbuffer.mma_wait %[[T0]] {younger = 1 : i64}
// WIDE-NEXT:      kvbuffer.rescale %{{.*}}, %[[R]] plus %[[A0]]
// WIDE-NEXT:      kvbuffer.staged_view %[[V]][0, 64]
// WIDE:           kvbuffer.mma_wait %{{.*}} {younger = 0 : i64}
// WIDE-NEXT:      kvbuffer.ring_release
// WIDE-NEXT:      kvbuffer.rescale
// WIDE:           kvbuffer.softmax_finish {{.*}} : <128x32xf32
// WIDE:           %[[O:.*]] = kvbuffer.dram_tile %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %c32] valid(%{{.*}}, %c32) {row_dim = 1 : i64}
// WIDE:           kvbuffer.fragment_store %{{.*}}, %[[O]]

// Three groups of 128 columns have no registers for all of a tile's product either, but shared
// memory for ones; Q has two slots.
// THREE-DAG:    #[[Q:.*]] = #kvbuffer.kv_buffer<192x128xf8E5M2, stages = 2,
// THREE:        kvbuffer.alloc {label = "q", offset = 0 : i64} : <#[[Q]]>
// THREE:        kvbuffer.team @consumers warps(12) registers(160) {
// THREE:          %[[P:.*]], %{{.*}}, %{{.*}}, %[[R:.*]] = kvbuffer.online_softmax
// THREE:          %[[T0:.*]] = kvbuffer.mma_start %[[P]], %{{.*}} -> <192x32xf32
// THREE:          %[[T1:.*]] = kvbuffer.mma_start %[[P]], %{{.*}} -> <192x32xf32
// THREE-NEXT:     %[[A0:.*]] = kvbuffer.mma_wait %[[T0]] {younger = 1 : i64}
// THREE-NEXT:     kvbuffer.rescale %{{.*}}, %[[R]] plus %[[A0]]
// THREE:          %[[L:.*]] = kvbuffer.mma_start %[[P]], %{{.*}} {transpose_b} : {{.*}} -> <192x8xf32
// THREE-NEXT:     %[[SUM:.*]] = kvbuffer.mma_wait %[[L]] {younger = 0 : i64}
// THREE-NEXT:     kvbuffer.rescale %{{.*}}, %[[R]] plus %[[SUM]] : <192x8xf32

// Groups without a softmax beside products of their own begin one after the other.
// LATER:        %[[WANTED:.*]] = arith.muli %{{.*}}, %c700_i32
// LATER-NEXT:   %[[START:.*]] = nvvm.read.ptx.sreg.clock
// LATER-NEXT:   scf.while : () -> () {
// LATER-NEXT:     %[[NOW:.*]] = nvvm.read.ptx.sreg.clock
// LATER-NEXT:     %[[PASSED:.*]] = arith.subi %[[NOW]], %[[START]]
// LATER-NEXT:     %[[WAITS:.*]] = arith.cmpi ult, %[[PASSED]], %[[WANTED]]
// LATER-NEXT:     scf.condition(%[[WAITS]])
// BESIDE-NOT:   nvvm.read.ptx.sreg.clock

// What is turned is stored as rows of matrices, of which a warp's upper lanes have the second
// column of a pair where the others have the first, so that no two have the same banks. The
// next read is asked for before what was read before it is stored, but not beside products
// that overlap with a softmax.
// BESIDE:       %[[UPPER:.*]] = arith.cmpi uge, %{{.*}}, %c16_i32
// BESIDE-NEXT:  %[[FIRST:.*]] = arith.select %[[UPPER]], %c30001_i32, %c25632_i32
// BESIDE-NEXT:  %[[SECOND:.*]] = arith.select %[[UPPER]], %c25632_i32, %c30001_i32
// BESIDE:       nvgpu.ldmatrix
// BESIDE-NOT:   nvgpu.ldmatrix
// BESIDE:       %[[W0:.*]] = nvvm.prmt <default> %[[FIRST]]
// BESIDE:       %[[W1:.*]] = nvvm.prmt <default> %[[FIRST]]
// BESIDE-NEXT:  %[[W2:.*]] = nvvm.prmt <default> %[[SECOND]]
// BESIDE-NEXT:  %[[W3:.*]] = nvvm.prmt <default> %[[SECOND]]
// BESIDE-NOT:   nvgpu.ldmatrix
// BESIDE:       nvvm.stmatrix %{{.*}}, %[[W0]], %[[W1]], %[[W2]], %[[W3]] {
// AHEAD:        nvgpu.ldmatrix
// AHEAD-NOT:    nvvm.stmatrix
// AHEAD:        nvgpu.ldmatrix
// AHEAD:        nvvm.stmatrix
// AHEAD:        nvgpu.ldmatrix

!q = memref<?x?x2x64xf8E5M2>
!o = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, f8E5M2, heads = 1, head_size = 64>
func.func @attention(%q: !q, %k: !kv, %v: !kv, %o: !o) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !kv, !kv, !o
  return
}
