// A soft cap on lanes: near zero a polynomial, for the scores of all lanes together, as
// a step of its own or in the softmax's exponent;
// farther from it a longer one; elsewhere, and where a row's bits must not depend on
// others, by exponentials and a reciprocal for every four scores; on AMD's chips by the
// hyperbolic tangent.

// DEFINE: %{pass} = kvbuf-opt --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))"
// RUN: %{pass} %s | FileCheck %s
// RUN: sed -e 's/kvbuffer.schedule = /kvbuffer.problem = {op = "attention", batch_invariant = true}, &/' %s | %{pass} | FileCheck %s --check-prefix=EACH
// RUN: sed -e '/kvbuffer.team/d' -e '/} .. teams/d' -e 's/, producers = 4//' -e 's/sm_90a/gfx950/' -e 's/16, 8, 16./16, 16, 32], swap_a_b = true/' -e 's/64x16x/64x32x/g' %s | %{pass} | FileCheck %s --check-prefix=AMD
// DEFINE: %{bare} = sed -e '/kvbuffer.mask /d' -e 's/online_softmax %hidden/online_softmax %capped/'
// RUN: %{bare} %s | %{pass} | FileCheck %s --check-prefix=SOFTMAX
// RUN: %{bare} -e 's/cap = 30.0/cap = 50.0/' %s | %{pass} | FileCheck %s --check-prefix=ONESIDED
// Without sums that anybody sees and outputs of more bits than bf16.
// RUN: %{bare} -e '/row_store/d' %s | %{pass} | FileCheck %s --check-prefix=UNSEEN
// RUN: %{bare} -e 's/kvbuffer.row_store %%lse.*/%%t = kvbuffer.dram_tile %%x[%%c0, %%c0] valid(%%m, %%m) : !x -> !kvbuffer.tile<64x64xf32>\n kvbuffer.fragment_store %%done, %%t : !o, !kvbuffer.tile<64x64xf32>/' %s | %{pass} | FileCheck %s --check-prefix=SOFTMAX
// RUN: %{bare} -e 's/64x64xf32/64x256xf32/' %s | %{pass} | FileCheck %s --check-prefix=APART
// RUN: %{bare} -e 's/scale = 0.5/scale = -0.5/' %s | %{pass} | FileCheck %s --check-prefix=APART
// RUN: %{bare} -e 's/cap = 30.0/cap = 300.0/' %s | %{pass} | FileCheck %s --check-prefix=APART

// The bounds are half the cap, |s| = 0.5 * 30 / 0.5 = 30, and the cap.
// CHECK-DAG:  %[[BOUND:.*]] = arith.constant 3.000000e+01 : f32
// CHECK-DAG:  %[[FARTHER:.*]] = arith.constant 6.000000e+01 : f32
// CHECK-COUNT-8: math.absf
// CHECK:      %[[FAR:.*]] = arith.cmpf ugt, %[[LARGEST:.*]], %[[BOUND]] : f32
// CHECK:      %[[ANY:.*]] = kvbuffer.lane_any %[[FAR]]
// CHECK:      scf.if %[[ANY]]
// CHECK-NEXT:   %[[FAR2:.*]] = arith.cmpf ugt, %[[LARGEST]], %[[FARTHER]] : f32
// CHECK-NEXT:   %[[ANY2:.*]] = kvbuffer.lane_any %[[FAR2]]
// CHECK-NEXT:   scf.if %[[ANY2]]
// CHECK-COUNT-8: arith.minimumf
// CHECK:          %[[Y:.*]] = arith.mulf %[[Y0:[0-9]+]], %[[Y1:[0-9]+]] {{.*}}: f32
// CHECK-NEXT:     %[[Z:.*]] = arith.mulf %[[Z0:[0-9]+]], %[[Z1:[0-9]+]] {{.*}}: f32
// CHECK-NEXT:     %[[YZ:.*]] = arith.mulf %[[Y]], %[[Z]] {{.*}}: f32
// CHECK-NEXT:     %[[R:.*]] = arith.divf %{{.*}}, %[[YZ]] fastmath<arcp> : f32
// CHECK-NEXT:     %[[G:.*]] = arith.mulf %[[R]], %{{.*}} : f32
// CHECK-NEXT:     %[[GY:.*]] = arith.mulf %[[G]], %[[Z]] : f32
// CHECK-NEXT:     %[[GZ:.*]] = arith.mulf %[[G]], %[[Y]] : f32
// CHECK:          arith.divf
// CHECK-NOT:      arith.divf
// CHECK:          math.fma %[[GY]], %[[Y1]], %[[CAP:[a-z0-9_]+]]
// CHECK-NEXT:     math.fma %[[GY]], %[[Y0]], %[[CAP]]
// CHECK-NEXT:     math.fma %[[GZ]], %[[Z1]], %[[CAP]]
// CHECK-NEXT:     math.fma %[[GZ]], %[[Z0]], %[[CAP]]
// CHECK:        } else {
// CHECK-COUNT-5:  math.fma
// CHECK:          arith.mulf
// CHECK-NOT:      math.exp2
// CHECK:        }
// CHECK:      } else {
// CHECK-COUNT-3: math.fma
// CHECK:        arith.mulf
// CHECK-NOT:    math.exp2
// CHECK:        scf.yield

// EACH-NOT: kvbuffer.lane_any %{{.*}} : i1
// EACH:     arith.divf {{.*}} fastmath<arcp>

// AMD-NOT: kvbuffer.lane_any %{{.*}} : i1
// AMD:     math.tanh

// Where no mask stands between the cap and the softmax, that caps by itself what lies
// below 3/8 of the cap: |s| = 0.375 * 30 / 0.5 = 22.5. Coefficients, in base 2: those of
// tanh x / x times 0.5 * log2(e), with powers of (0.5 / 30)^2. A branch caps what lies
// above, and makes the polynomial a constant, log2(e).
// SOFTMAX-DAG: %[[C4:.*]] = arith.constant 6.82650{{[0-9]*}}E-9 : f32
// SOFTMAX-DAG: %[[C2:.*]] = arith.constant -6.6680{{[0-9]*}}E-5 : f32
// SOFTMAX-DAG: %[[C0:.*]] = arith.constant 0.721344{{[0-9]*}} : f32
// SOFTMAX-DAG: %[[LOW:.*]] = arith.constant -2.250000e+01 : f32
// SOFTMAX-DAG: %[[HIGH:.*]] = arith.constant 2.250000e+01 : f32
// SOFTMAX-DAG: %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
// SOFTMAX-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// SOFTMAX-DAG: %[[BITS:.*]] = arith.constant 1102315520 : i32
// As signed integers, a row's largest score is the largest if it is not negative; negative
// ones are above the bound as unsigned integers. The smallest score is the largest of
// those.
// SOFTMAX-COUNT-4: arith.bitcast %{{.*}} : f32 to i32
// SOFTMAX-COUNT-2: arith.maxsi
// SOFTMAX-NEXT: %[[LARGEST:.*]] = arith.maxsi
// SOFTMAX:     arith.cmpi ugt, %[[LARGEST]], %[[BITS]] : i32
// SOFTMAX-COUNT-2: arith.maxui
// SOFTMAX-NEXT: %[[LOWEST:.*]] = arith.maxui
// SOFTMAX-NEXT: %[[SMALLEST:.*]] = arith.bitcast %[[LOWEST]] : i32 to f32
// SOFTMAX-NEXT: arith.cmpf ult, %[[SMALLEST]], %[[LOW]] : f32
// SOFTMAX:     %[[OUTSIDE:.*]] = kvbuffer.lane_any
// The scores, the maxima of the lane's two rows, and the coefficients.
// SOFTMAX-NEXT: %[[CHOSEN:.*]]:7 = scf.if %[[OUTSIDE]] ->
// Rows whose scores are negative may be near zero, too.
// SOFTMAX-COUNT-3: arith.maxnumf
// SOFTMAX:       arith.cmpf ugt, %{{.*}}, %[[HIGH]] : f32
// SOFTMAX:       %[[FAR:.*]] = kvbuffer.lane_any
// SOFTMAX-DAG:   %[[A0:.*]] = arith.select %[[FAR]], %[[LOG2E]], %[[C0]] : f32
// SOFTMAX-DAG:   %[[A2:.*]] = arith.select %[[FAR]], %[[ZERO]], %[[C2]] : f32
// SOFTMAX-DAG:   %[[A4:.*]] = arith.select %[[FAR]], %[[ZERO]], %[[C4]] : f32
// SOFTMAX:       scf.if %[[FAR]] -> (vector<4xf32>, vector<4xf32>, f32, f32) {
// SOFTMAX:         arith.divf
// SOFTMAX:       scf.yield {{.*}}, %[[A0]], %[[A2]], %[[A4]] :
// SOFTMAX-NEXT: } else {
// SOFTMAX-NEXT:  scf.yield {{.*}}, %[[C0]], %[[C2]], %[[C4]] :
// SOFTMAX:     %[[R1:.*]] = math.fma %[[CHOSEN]]#6, %[[SQUARE:.*]], %[[CHOSEN]]#5 : f32
// SOFTMAX-NEXT: math.fma %[[R1]], %[[SQUARE]], %[[CHOSEN]]#4 : f32

// With a cap of 50, scores below the range weigh nothing where the row's maximum is at
// least this, and only the maximum is looked at.
// ONESIDED:     %[[LEAST:.*]] = arith.constant -7.7963{{[0-9]*}} : f32
// ONESIDED:     arith.cmpf ult, %{{.*}}, %[[LEAST]] : f32
// ONESIDED:     %[[FAR:.*]] = kvbuffer.lane_any
// ONESIDED:     arith.select %[[FAR]]

// Of caps from 30 on, too, where weights may be wrong by 4e-9 of the largest: the worst
// is wrong by 3.612e-9, with a cap of 30. The least maximum is log(3.612 / 4) / 0.5.
// UNSEEN:     %[[LEAST:.*]] = arith.constant -0.204{{[0-9]*}} : f32
// UNSEEN-NOT: arith.maxui
// UNSEEN:     kvbuffer.lane_any
// UNSEEN-NOT: arith.maxui
// UNSEEN:     arith.cmpf ult, %{{.*}}, %[[LEAST]] : f32

// Not where the product of P and V takes longer than that is worth, where a cap turns
// scores round, or where the largest weight is too far from 1.
// APART:     %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
// APART-NOT: arith.select %{{.*}}, %[[LOG2E]],
// APART:     kvbuffer.lane_any
// APART-NOT: arith.select %{{.*}}, %[[LOG2E]],

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 32, stages = 1, warps = 4, mma_shape = [16, 8, 16], producers = 4>
!x = memref<?x?xf32>
!s = !kvbuffer.fragment<64x16xf32, acc>
!o = !kvbuffer.fragment<64x64xf32, acc>
!row = !kvbuffer.fragment<64x1xf32, row>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @capped(%x: !x {kvbuffer.name = "x", kvbuffer.shape = ["m", "n"]}, %sums: memref<?xf32> {kvbuffer.name = "sums", kvbuffer.shape = ["m"]})
        kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %m = memref.dim %sums, %c0 : memref<?xf32>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(240) {
          %zero = kvbuffer.fragment_fill 0.0 : !s
          %none = kvbuffer.fragment_fill 0.0 : !o
          %least = kvbuffer.fragment_fill 0xFF800000 : !row
          %l0 = kvbuffer.fragment_fill 0.0 : !row
          %s = kvbuffer.map %zero at(%c0, %c0) : !s -> !s {
          ^bb0(%y: f32, %i: index, %j: index):
            %z = memref.load %x[%i, %j] : !x
            kvbuffer.yield %z : f32
          }
          %capped = kvbuffer.softcap %s {cap = 30.0 : f32, scale = 0.5 : f32} : !s
          %hidden = kvbuffer.mask %capped rows(%c0, %m) keys(%c0, %m) {mask = #kvbuffer.mask<>} : !s
          %p, %max, %l, %f = kvbuffer.online_softmax %hidden, %least, %l0 {scale = 1.0 : f32} : !s, !row -> !kvbuffer.fragment<64x16xbf16, a>
          %done, %lse = kvbuffer.softmax_finish %none, %max, %l {scale = 1.0 : f32} : !o, !row
          kvbuffer.row_store %lse, %sums[%c0] valid(%m) : !row, memref<?xf32>
        } // teams
        kvbuffer.team @producers warps(4) registers(24) {
        } // teams
      } // teams
      gpu.return
    }
  }
}
