// Scales of tokens are asked for before the product of the scores: two look-ups one
// after the other, whose latency nothing else hides.
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=sm_90 schedule=split_keys=true" | FileCheck %s
// Where no row's bits may depend on others, queries keep their type.
// RUN: sed 's/out(%o) {}/out(%o) {batch_invariant}/' %s | kvbuf-opt --kvbuf-to-tile="chip=sm_90 schedule=split_keys=true,split_size=256" | FileCheck %s --check-prefix=INVARIANT --implicit-check-not=fragment_fit
// INVARIANT: kvbuffer.mma %{{.*}} {transpose_b} : <8x128xbf16, a>, <32x128xbf16, b>
// For an output of more bits than bf16 a weight that was scaled is two numbers. Beside
// infinite elements of V, which e5m2 has, neither is 0 unless it is.
// RUN: sed 's/bf16/f16/' %s | kvbuf-opt --kvbuf-to-tile="chip=sm_90 schedule=split_keys=true" | FileCheck %s --check-prefix=TWO
// RUN: sed -e 's/%o: !q/%o: !o/' -e 's/!kv, !q$/!kv, !o/' -e '/^!q/{p;s/!q/!o/;s/bf16/f32/}' %s | kvbuf-opt --kvbuf-to-tile="chip=sm_90 schedule=split_keys=true" | FileCheck %s --check-prefix=TWO
// RUN: sed -e 's/%q: !q/%q: !h/' -e 's/: !q, /: !h, /' -e '/^!q/{p;s/!q/!h/;s/bf16/f16/}' %s | kvbuf-opt --kvbuf-to-tile="chip=sm_90 schedule=split_keys=true" | FileCheck %s --check-prefix=ONE
// ONE:      kvbuffer.online_softmax
// ONE:      %[[W:.*]] = kvbuffer.fragment_convert
// ONE:      kvbuffer.mma %[[W]]
// ONE-NOT:  kvbuffer.mma
// TWO:      %[[P:.*]], %{{.*}}, %{{.*}}, %{{.*}} = kvbuffer.online_softmax
// TWO:      %[[W:.*]] = kvbuffer.map %[[P]], %
// TWO:      %[[REST:.*]] = kvbuffer.map %[[W]], %[[W]] :
// TWO-NEXT: ^{{.*}}(%[[X:.*]]: f32, %[[Y:.*]]: f32, %{{.*}}: index, %{{.*}}: index):
// TWO-NEXT:   %[[N:.*]] = arith.truncf %[[Y]] : f32 to f16
// TWO-NEXT:   %[[R:.*]] = arith.extf %[[N]] : f16 to f32
// TWO-NEXT:   arith.subf %[[X]], %[[R]]
// TWO:      %[[A:.*]] = kvbuffer.fragment_convert %[[W]]
// TWO:      %[[B:.*]] = kvbuffer.fragment_convert %[[REST]]
// TWO:      %[[ACC:.*]] = kvbuffer.mma %[[A]], %[[V:.*]], %
// TWO:      kvbuffer.mma %[[B]], %[[V]], %[[ACC]]
// RUN: sed 's/bf16/f16/;s/f8E4M3FN/f8E5M2/' %s | kvbuf-opt --kvbuf-to-tile="chip=sm_90 schedule=split_keys=true" | FileCheck %s --check-prefix=BELOW
// BELOW-DAG:  %[[LESS:.*]] = arith.constant 0.99999988{{.*}} : f32
// BELOW-DAG:  %[[BITS:.*]] = arith.constant -8192 : i32
// BELOW:      %[[P:.*]], %{{.*}}, %{{.*}}, %{{.*}} = kvbuffer.online_softmax
// BELOW:      %[[W:.*]] = kvbuffer.map %[[P]], %
// BELOW:      %[[MOST:.*]] = kvbuffer.map %[[W]] :
// BELOW:      %[[X:.*]] = arith.mulf %{{.*}}, %[[LESS]]
// BELOW-NEXT: %[[Y:.*]] = arith.bitcast %[[X]] : f32 to i32
// BELOW-NEXT: %[[Z:.*]] = arith.andi %[[Y]], %[[BITS]]
// BELOW-NEXT: arith.bitcast %[[Z]] : i32 to f32
// BELOW:      kvbuffer.map %[[W]], %[[MOST]] :

// Queries become f16, which K is widened to.
// CHECK:      %[[Q:.*]] = kvbuffer.tile_fragment
// CHECK:      %[[HALF:.*]], %[[FACTOR:.*]] = kvbuffer.fragment_fit %[[Q]] :
// CHECK:      scf.for
// CHECK:      %[[KS:.*]] = kvbuffer.map
// CHECK:      kvbuffer.cache_scale %arg1
// CHECK:      %[[VS:.*]] = kvbuffer.map
// CHECK:      kvbuffer.cache_scale %arg2
// CHECK:      kvbuffer.dram_load
// CHECK:      kvbuffer.lds_stage
// CHECK:      %[[K:.*]] = kvbuffer.fragment_load {{.*}} -> <{{.*}}xf16, b>
// CHECK:      %[[P:.*]] = kvbuffer.mma %[[HALF]], %[[K]]
// CHECK:      %[[S:.*]] = kvbuffer.rescale %[[P]], %[[FACTOR]]
// CHECK:      kvbuffer.map %[[S]], %[[KS]]
// CHECK:      kvbuffer.online_softmax
// CHECK:      kvbuffer.map %{{.*}}, %[[VS]]

!kv = !kvbuffer.cache<paged, f8E4M3FN, heads = 2, head_size = 128, page_size = 16, scale = f32, granularity = 128>
!q = memref<?x1x8x128xbf16>
func.func @scaled(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !q, !kv, !kv, !q
  return
}
