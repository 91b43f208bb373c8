// A soft cap on lanes: near zero a polynomial, for the scores of all lanes together;
// elsewhere, on AMD's chips and where a row's bits must not depend on others, the
// hyperbolic tangent.

// DEFINE: %{options} = schedule=BM=16,BN=16,BK=32,warps=1,stages=1,split_masks=false
// DEFINE: %{run} = kvbuf-opt %s --kvbuf-to-thread="%{options}"
// RUN: %{run} | FileCheck %s
// RUN: sed -e 's/{softcap/{batch_invariant, softcap/' %s | kvbuf-opt --kvbuf-to-thread="%{options}" | FileCheck %s --check-prefix=EACH
// RUN: kvbuf-opt %s --kvbuf-to-thread=chip=gfx950 | FileCheck %s --check-prefix=EACH

// The bound is half the cap: |s| = 0.5 * 30 / 0.5 = 30.
// CHECK:      %[[BOUND:.*]] = arith.constant 3.000000e+01 : f32
// CHECK-COUNT-8: math.absf
// CHECK:      %[[FAR:.*]] = arith.cmpf ugt, %{{.*}}, %[[BOUND]] : f32
// CHECK:      %[[ANY:.*]] = kvbuffer.lane_any %[[FAR]]
// CHECK:      scf.if %[[ANY]]
// CHECK-COUNT-8: math.tanh
// CHECK-NOT:  math.tanh
// CHECK:      } else {
// CHECK-COUNT-3: math.fma
// CHECK:        arith.mulf

// EACH-NOT: kvbuffer.lane_any %{{.*}} : i1
// EACH:     math.tanh

!qo = memref<?x?x2x32xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 32>
func.func @capped(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {softcap = 30.0 : f32, scale = 0.5 : f32} : !qo, !kv, !kv, !qo
  return
}
