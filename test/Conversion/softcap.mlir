// A soft cap on lanes: near zero a polynomial, for the scores of all lanes together;
// elsewhere, and where a row's bits must not depend on others, by exponentials and a
// reciprocal for every two scores; on AMD's chips by the hyperbolic tangent.

// DEFINE: %{options} = schedule=BM=16,BN=16,BK=32,warps=1,stages=1,split_masks=false
// DEFINE: %{run} = kvbuf-opt %s --kvbuf-to-thread="%{options}"
// RUN: %{run} | FileCheck %s
// RUN: sed -e 's/{softcap/{batch_invariant, softcap/' %s | kvbuf-opt --kvbuf-to-thread="%{options}" | FileCheck %s --check-prefix=EACH
// RUN: kvbuf-opt %s --kvbuf-to-thread=chip=gfx950 | FileCheck %s --check-prefix=AMD
// RUN: sed -e 's/x32x/x64x/; s/size = 32/size = 64/' %s | kvbuf-opt --kvbuf-to-thread="chip=sm_90a schedule=ping_pong=true" | FileCheck %s --check-prefix=TURNS
// RUN: sed -e 's/x32x/x64x/; s/size = 32/size = 64/' %s | kvbuf-opt --kvbuf-to-thread="chip=sm_90a schedule=ping_pong=false" | FileCheck %s --check-prefix=NONE

// The bound is half the cap: |s| = 0.5 * 30 / 0.5 = 30.
// CHECK:      %[[BOUND:.*]] = arith.constant 3.000000e+01 : f32
// CHECK-COUNT-8: math.absf
// CHECK:      %[[FAR:.*]] = arith.cmpf ugt, %{{.*}}, %[[BOUND]] : f32
// CHECK:      %[[ANY:.*]] = kvbuffer.lane_any %[[FAR]]
// CHECK:      scf.if %[[ANY]]
// CHECK-COUNT-8: arith.minimumf
// CHECK:        %[[YZ:.*]] = arith.mulf %[[Y:[0-9]+]], %[[Z:[0-9]+]] {{.*}}: f32
// CHECK-NEXT:   %[[R:.*]] = arith.divf %{{.*}}, %[[YZ]] fastmath<arcp> : f32
// CHECK-NEXT:   %[[G:.*]] = arith.mulf %[[R]], %{{.*}} : f32
// CHECK-NEXT:   math.fma %[[G]], %[[Z]], %[[CAP:[a-z0-9_]+]]
// CHECK-NEXT:   math.fma %[[G]], %[[Y]], %[[CAP]]
// CHECK-COUNT-3: arith.divf
// CHECK-NOT:  arith.divf
// CHECK:      } else {
// CHECK-COUNT-3: math.fma
// CHECK:        arith.mulf
// CHECK-NOT:    math.exp2
// CHECK:        scf.yield

// EACH-NOT: kvbuffer.lane_any %{{.*}} : i1
// EACH:     arith.divf {{.*}} fastmath<arcp>

// AMD-NOT: kvbuffer.lane_any %{{.*}} : i1
// AMD:     math.tanh

// Where groups take turns and no mask stands between the cap and the softmax, that is
// in both branches, which return maximum, sum and factor of a lane's two rows as well:
// they would join before the wait for the product that it overlaps.
// TURNS:    scf.if %{{[0-9]+}} -> (vector<{{[^f].*}}, f32, f32, f32, f32, f32, f32) {
// NONE-NOT: scf.if %{{[0-9]+}} -> (vector<{{[^f].*}}, f32, f32, f32, f32, f32, f32) {

!qo = memref<?x?x2x32xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 32>
func.func @capped(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {softcap = 30.0 : f32, scale = 0.5 : f32} : !qo, !kv, !kv, !qo
  return
}
