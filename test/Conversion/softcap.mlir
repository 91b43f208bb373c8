// A soft cap on lanes: near zero a polynomial, for the scores of all lanes together, as
// a step of its own, where a shorter one goes ahead of it if only a softmax sees its
// errors, or in the softmax's exponent;
// farther from it a longer one; elsewhere, and where a row's bits must not depend on
// others, by exponentials and a reciprocal for every four scores; on AMD's chips, whose
// reciprocals are quick, for each score.

// DEFINE: %{pass} = kvbuf-opt --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))"
// RUN: sed -e 's/row_store %%lse/row_store %%l/' %s | %{pass} | FileCheck %s
// RUN: %{pass} %s | FileCheck %s --check-prefix=SHOWN
// RUN: sed -e 's/kvbuffer.schedule = /kvbuffer.problem = #kvbuffer.problem<op = "attention", batch_invariant = true>, &/' %s | %{pass} | FileCheck %s --check-prefix=EACH
// RUN: sed -e '/kvbuffer.team/d' -e '/} .. teams/d' -e 's/, producers = 4//' -e 's/sm_90a/gfx950/' -e 's/64, 8, 16./16, 16, 32], swap_a_b = true/' -e 's/64x16x/64x32x/g' %s | %{pass} | FileCheck %s --check-prefix=AMD
// DEFINE: %{bare} = sed -e '/kvbuffer.mask /d' -e 's/online_softmax %hidden/online_softmax %capped/'
// RUN: %{bare} %s | %{pass} | FileCheck %s --check-prefix=SOFTMAX
// Without sums that anybody sees and outputs of more bits than bf16.
// DEFINE: %{after} = sed -e 's/%%least = /%%lowest = /' -e '/^ /s/%%capped = .*/%%p0, %%least, %%l1, %%f1 = kvbuffer.online_softmax %%s, %%lowest, %%l0 {scale = 1.0 : f32} : !s, !row -> !kvbuffer.fragment<64x16xbf16, a>\n &/'
// RUN: %{bare} -e '/row_store/d' %s | %{after} | %{pass} | FileCheck %s --check-prefix=UNSEEN
// RUN: %{bare} -e '/row_store/d' -e 's/cap = 30.0/cap = 15.0/' %s | %{after} | %{pass} | FileCheck %s --check-prefix=BELOW
// RUN: %{bare} -e '/row_store/d' -e 's/64x64xf32/64x128xf32/' %s | %{after} | %{pass} | FileCheck %s --check-prefixes=BELOW,WIDE
// RUN: %{bare} -e 's/kvbuffer.row_store %%lse.*/%%t = kvbuffer.dram_tile %%x[%%c0, %%c0] valid(%%m, %%m) : !x -> !kvbuffer.tile<64x64xf32>\n kvbuffer.fragment_store %%done, %%t : !o, !kvbuffer.tile<64x64xf32>/' %s | %{pass} | FileCheck %s --check-prefix=SOFTMAX
// RUN: %{bare} -e 's/64x64xf32/64x256xf32/' %s | %{pass} | FileCheck %s --check-prefix=APART
// RUN: %{bare} -e 's/scale = 0.5/scale = -0.5/' %s | %{pass} | FileCheck %s --check-prefix=APART
// RUN: %{bare} -e 's/cap = 30.0/cap = 300.0/' %s | %{pass} | FileCheck %s --check-prefix=APART

// Two terms reach to |s| = 17.34375 (see below); the bounds behind it are half the cap,
// |s| = 0.5 * 30 / 0.5 = 30, and the cap. Where a log-sum-exp shows their error they
// are left out.
// SHOWN-DAG:  %[[BOUND:.*]] = arith.constant 3.000000e+01 : f32
// SHOWN-DAG:  %[[FARTHER:.*]] = arith.constant 6.000000e+01 : f32
// SHOWN-COUNT-8: math.absf
// SHOWN:      %[[FAR:.*]] = arith.cmpf ugt, %[[LARGEST:.*]], %[[BOUND]] : f32
// SHOWN-NEXT: %[[ANY:.*]] = kvbuffer.lane_any %[[FAR]]
// SHOWN-NEXT: scf.if %[[ANY]]
// SHOWN-NEXT:   arith.cmpf ugt, %[[LARGEST]], %[[FARTHER]] : f32
// CHECK-DAG:  %[[SHORT:.*]] = arith.constant 17.34375 : f32
// CHECK-DAG:  %[[BOUND:.*]] = arith.constant 3.000000e+01 : f32
// CHECK-DAG:  %[[FARTHER:.*]] = arith.constant 6.000000e+01 : f32
// CHECK-COUNT-8: math.absf
// CHECK:      %[[FAR0:.*]] = arith.cmpf ugt, %[[LARGEST:.*]], %[[SHORT]] : f32
// CHECK:      %[[ANY0:.*]] = kvbuffer.lane_any %[[FAR0]]
// CHECK:      scf.if %[[ANY0]]
// CHECK-NEXT: %[[FAR:.*]] = arith.cmpf ugt, %[[LARGEST]], %[[BOUND]] : f32
// CHECK-NEXT: %[[ANY:.*]] = kvbuffer.lane_any %[[FAR]]
// CHECK-NEXT: scf.if %[[ANY]]
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
// CHECK:      } else {
// CHECK:        math.fma
// CHECK-NEXT:   arith.mulf
// CHECK-NEXT:   arith.mulf
// CHECK-NEXT:   math.fma
// CHECK-NOT:    math.exp2
// CHECK:        scf.yield

// EACH-NOT: kvbuffer.lane_any %{{.*}} : i1
// EACH:     arith.divf {{.*}} fastmath<arcp>

// AMD-NOT:     kvbuffer.lane_any %{{.*}} : i1
// AMD-COUNT-4: arith.divf %cst{{.*}}, {{.*}} fastmath<arcp>

// Where no mask stands between the cap and the softmax, that caps by itself, in branches
// that yield exponents below the rows' new maxima: by the shortest polynomial that
// reaches as far as the lane's scores. Two terms are off by 2/15 x^5 / 16 of tanh x, which
// times the cap may be 4e-5 where a log-sum-exp shows it: up to x = 0.1738, rounded down
// to a 128th, |s| = 22/128 * 30 / 0.5 = 10.3125, or 1092943872 as an integer, twice this:
// SOFTMAX-DAG: %[[BITS:.*]] = arith.constant 546471936 : i32
// SOFTMAX-DAG: %[[SIGNED:.*]] = arith.constant 1073741824 : i32
// SOFTMAX-DAG: %[[ABS:.*]] = arith.constant 2147483647 : i32
// The first coefficients are close to 0.5 * log2(e) = 0.72135.
// SOFTMAX-DAG: arith.constant 0.7213{{[0-9]*}} : f32
// In base 2, -2 * cap * log2(e).
// SOFTMAX-DAG: %[[GAIN:.*]] = arith.constant -8.6561{{[0-9]*}}e+01 : f32
// As signed integers, a row's largest score is the largest if it is not negative; negative
// ones are above others as unsigned integers. The smallest score is the largest of those.
// One number says how far from zero the warp's are: half of it, which is no negative integer.
// SOFTMAX-COUNT-4: arith.bitcast %{{.*}} : f32 to i32
// SOFTMAX-COUNT-2: arith.maxsi
// SOFTMAX-NEXT: %[[LARGEST:.*]] = arith.maxsi
// SOFTMAX:     %[[TOP:.*]] = arith.bitcast %[[LARGEST]] : i32 to f32
// SOFTMAX-COUNT-2: arith.maxui
// SOFTMAX-NEXT: %[[LOWEST:.*]] = arith.maxui
// SOFTMAX-NEXT: %[[LOW:.*]] = arith.andi %[[LOWEST]], %[[ABS]]
// SOFTMAX-COUNT-3: arith.maxsi
// SOFTMAX-COUNT-3: arith.maxui
// SOFTMAX-NEXT: arith.andi
// SOFTMAX-NEXT: %[[UNDER:.*]] = arith.maxui %[[LOW]],
// SOFTMAX-NEXT: %[[OVER:.*]] = arith.maxui %[[LARGEST]],
// SOFTMAX-NEXT: arith.maxui %[[OVER]], %[[UNDER]]
// SOFTMAX-NEXT: %[[HALF:.*]] = arith.shrui
// SOFTMAX-NEXT: %[[ALL:.*]] = gpu.subgroup_reduce {{ *}}maxsi %[[HALF]] uniform
// Rows' largest scores are asked for before the branch.
// SOFTMAX-NEXT: gpu.shuffle xor %[[TOP]],
// SOFTMAX-NEXT: arith.maxnumf %[[TOP]],
// SOFTMAX-NEXT: gpu.shuffle
// SOFTMAX-NEXT: %[[ROW:.*]] = arith.maxnumf
// SOFTMAX-COUNT-2: gpu.shuffle
// SOFTMAX-NEXT: arith.maxnumf
// SOFTMAX-NEXT: %[[OUTSIDE:.*]] = arith.cmpi sgt, %[[ALL]], %[[BITS]] : i32
// The exponents and the new maxima of the lane's two rows.
// SOFTMAX-NEXT: %[[CHOSEN:.*]]:4 = scf.if %[[OUTSIDE]] -> (vector<4xf32>, vector<4xf32>, f32, f32)
// Three terms reach farther.
// SOFTMAX-NEXT:  arith.cmpi sgt, %[[ALL]], %{{.*}} : i32
// SOFTMAX-NEXT:  scf.if
// Rows whose scores are negative may be near zero, too.
// SOFTMAX-NEXT:    arith.cmpi sge, %[[ALL]], %[[SIGNED]] : i32
// SOFTMAX-NEXT:    %[[EXACT:.*]]:3 = scf.if
// SOFTMAX-COUNT-6:   arith.maxnumf
// SOFTMAX-COUNT-4:   gpu.shuffle
// SOFTMAX:           gpu.subgroup_reduce {{ *}}maxsi
// SOFTMAX:         } else {
// SOFTMAX-NEXT:      scf.yield %[[ROW]], %{{.*}}, %[[ALL]]
// SOFTMAX-NEXT:    }
// Two polynomials of more terms, then four scores to a reciprocal, with exponents that are
// limited.
// SOFTMAX-NEXT:    arith.cmpi sgt, %[[EXACT]]#2, %{{.*}} : i32
// SOFTMAX-NEXT:    scf.if
// SOFTMAX-NEXT:      arith.cmpi sgt, %[[EXACT]]#2, %{{.*}} : i32
// SOFTMAX-NEXT:      scf.if
// One for each row's maximum, eight for the scores, of which four of one row share a
// reciprocal.
// SOFTMAX-COUNT-10:    arith.minimumf
// SOFTMAX:             arith.mulf %{{.*}}, %[[GAIN]] {{.*}}: f32
// SOFTMAX-NOT:         arith.minimumf
// SOFTMAX:           } else {
// Five terms: of each maximum and each score.
// SOFTMAX:             %[[SQUARE:.*]] = arith.mulf %[[MAX:.*]], %[[MAX]] {{.*}}: f32
// SOFTMAX-NEXT:        %[[F1:.*]] = math.fma %{{.*}}, %[[SQUARE]], %{{.*}} : f32
// SOFTMAX-NEXT:        %[[F2:.*]] = math.fma %[[F1]], %[[SQUARE]], %{{.*}} : f32
// SOFTMAX-NEXT:        %[[F3:.*]] = math.fma %[[F2]], %[[SQUARE]], %{{.*}} : f32
// SOFTMAX-NEXT:        %[[F4:.*]] = math.fma %[[F3]], %[[SQUARE]], %{{.*}} : f32
// SOFTMAX-NEXT:        arith.mulf %[[MAX]], %[[F4]]
// SOFTMAX:         } else {
// Four.
// SOFTMAX:             %[[SQUARE:.*]] = arith.mulf %[[MAX:.*]], %[[MAX]] {{.*}}: f32
// SOFTMAX-NEXT:        %[[F1:.*]] = math.fma %{{.*}}, %[[SQUARE]], %{{.*}} : f32
// SOFTMAX-NEXT:        %[[F2:.*]] = math.fma %[[F1]], %[[SQUARE]], %{{.*}} : f32
// SOFTMAX-NEXT:        %[[F3:.*]] = math.fma %[[F2]], %[[SQUARE]], %{{.*}} : f32
// SOFTMAX-NEXT:        arith.mulf %[[MAX]], %[[F3]]
// SOFTMAX:         } else {
// Three.
// SOFTMAX:             %[[SQUARE:.*]] = arith.mulf %[[MAX:.*]], %[[MAX]] {{.*}}: f32
// SOFTMAX-NEXT:        %[[F1:.*]] = math.fma %{{.*}}, %[[SQUARE]], %{{.*}} : f32
// SOFTMAX-NEXT:        %[[F2:.*]] = math.fma %[[F1]], %[[SQUARE]], %{{.*}} : f32
// SOFTMAX-NEXT:        arith.mulf %[[MAX]], %[[F2]]
// SOFTMAX:       } else {
// Two, of maxima that may be right only if they are not negative.
// SOFTMAX:             %[[SQUARE:.*]] = arith.mulf %[[ROW]], %[[ROW]] {{.*}}: f32
// SOFTMAX-NEXT:        %[[F1:.*]] = math.fma %[[LAST:.*]], %[[SQUARE]], %[[FIRST:.*]] : f32
// SOFTMAX-NEXT:        arith.mulf %[[ROW]], %[[F1]]
// SOFTMAX-NEXT:        arith.mulf
// SOFTMAX-NEXT:        %[[RAISED:.*]] = arith.maxnumf
// SOFTMAX-NEXT:        %[[OFFSET:.*]] = arith.mulf %[[RAISED]],
// SOFTMAX:             math.fma %[[LAST]], %[[SQUARE:[0-9]+]], %[[FIRST]] : f32
// SOFTMAX:             math.fma %[[LAST]], %[[SQUARE:[0-9]+]], %[[FIRST]] : f32
// SOFTMAX-NEXT:        math.fma %{{.*}}, %{{.*}}, %[[OFFSET]] : f32
// SOFTMAX:       scf.yield
// SOFTMAX-NEXT: }
// What is left of the softmax.
// SOFTMAX:      %[[E:.*]] = vector.extract %[[CHOSEN]]#0[0]
// SOFTMAX-NEXT: math.exp2 %[[E]] : f32

// Where no sum is seen, and bf16 is all that is, a score may be wrong by 5e-4: two terms
// reach to x = 0.2891, |s| = 37/128 * 30 / 0.5 = 17.34375, or 1099612160 as an integer. And
// weights far below a row's maximum may be wrong by 4e-9 of its own. So three terms and
// five will do for all scores below theirs. Where a row's maximum is beyond two terms, no
// smallest score is looked for, and three are taken, or five: 8.4377 is what two terms make
// of the score.
// UNSEEN-DAG:  %[[CAPPED:.*]] = arith.constant 8.437{{[0-9]*}} : f32
// UNSEEN:      arith.cmpf ogt, %{{.*}}, %[[CAPPED]] : f32
// UNSEEN:      arith.cmpf ogt, %{{.*}}, %[[CAPPED]] : f32
// UNSEEN-NEXT: %[[OR:.*]] = arith.ori
// UNSEEN-NEXT: %[[ANY:.*]] = kvbuffer.lane_any %[[OR]]
// UNSEEN-NEXT: %[[FOUND:.*]]:4 = scf.if %[[ANY]] -> (i32, i32, f32, f32) {
// UNSEEN-COUNT-6: arith.maxsi
// UNSEEN-NEXT:   arith.bitcast
// UNSEEN-NEXT:   arith.maxui
// UNSEEN-NEXT:   arith.maxui %{{.*}}, %c1099612162
// UNSEEN:        gpu.subgroup_reduce
// UNSEEN:        scf.yield %{{.*}}, %c1099612162
// UNSEEN-NEXT: } else {
// UNSEEN:        arith.maxui
// UNSEEN:        arith.andi
// UNSEEN:        gpu.subgroup_reduce
// UNSEEN:        scf.yield
// UNSEEN-NEXT: }
// UNSEEN-NEXT: arith.cmpi sgt, %[[FOUND]]#0, %c549806080

// Below a cap of 15 these weigh too much, and beside 128 columns that wins nothing.
// WIDE-DAG:   arith.constant 549806080 : i32
// BELOW-NOT:  kvbuffer.lane_any
// BELOW:      arith.maxui
// BELOW:      arith.andi
// BELOW-NOT:  kvbuffer.lane_any
// BELOW:      gpu.subgroup_reduce

// Not where the product of P and V takes longer than that is worth, where a cap turns
// scores round, or where the largest weight is too far from 1.
// APART-NOT: arith.maxui
// APART:     math.absf
// APART-NOT: arith.maxui

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 32, stages = 1, warps = 4, mma_shape = [64, 8, 16], producers = 4>
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
