// Where a factor of a softmax is 1 nothing changes. On chips whose instructions
// have predicates for nothing a lane leaves such multiplications out; a warp that
// has many of them passes all by where none of its rows needs one.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" | FileCheck %s --check-prefixes=CHECK,LANES
// RUN: sed 's/"sm_90a"/"sm_80"/' %s | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" | FileCheck %s --check-prefix=PLAIN

#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, warps = 4, mma_shape = [16, 8, 16]>
!acc = !kvbuffer.fragment<64x64xf32, acc>
!wide = !kvbuffer.fragment<64x256xf32, acc>
!row = !kvbuffer.fragment<64x1xf32, row>

// PLAIN-NOT: arith.cmpf
// PLAIN-NOT: arith.select
// PLAIN-NOT: kvbuffer.lane_any

module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // 32 accumulators a lane, of two rows.
    // CHECK-LABEL:    gpu.func @narrow
    // LANES:          %[[A:.*]] = arith.cmpf une, %[[F:.*]], %{{.*}} : f32
    // LANES:          %[[B:.*]] = arith.cmpf une, %[[G:.*]], %{{.*}} : f32
    // LANES:          %[[P:.*]] = arith.mulf %[[X:.*]], %[[F]] : f32
    // LANES-NEXT:     arith.select %[[A]], %[[P]], %[[X]] : f32
    // LANES-COUNT-31: arith.select
    // LANES-NOT:      arith.select
    // LANES-NOT:      kvbuffer.lane_any
    // LANES:          gpu.return
    gpu.func @narrow() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %acc = kvbuffer.fragment_fill 2.0 : !acc
      %factor = kvbuffer.fragment_fill 0.5 : !row
      %r = kvbuffer.rescale %acc, %factor : !acc, !row
      gpu.return
    }

    // 128 accumulators a lane.
    // CHECK-LABEL:     gpu.func @wide
    // LANES:           %[[A:.*]] = arith.cmpf une, %{{.*}}, %{{.*}} : f32
    // LANES:           %[[B:.*]] = arith.cmpf une, %{{.*}}, %{{.*}} : f32
    // LANES:           %[[O:.*]] = arith.ori %[[A]], %[[B]] : i1
    // LANES:           %[[ANY:.*]] = kvbuffer.lane_any %[[O]]
    // LANES:           scf.if %[[ANY]]
    // LANES-COUNT-128: arith.select
    // LANES:           scf.yield
    // LANES-NEXT:      } else {
    // LANES-NEXT:      scf.yield
    // LANES-NEXT:      }
    gpu.func @wide() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %acc = kvbuffer.fragment_fill 2.0 : !wide
      %factor = kvbuffer.fragment_fill 0.5 : !row
      %r = kvbuffer.rescale %acc, %factor : !wide, !row
      gpu.return
    }
  }
}
