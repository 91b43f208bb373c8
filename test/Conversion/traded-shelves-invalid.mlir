// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" --split-input-file --verify-diagnostics

#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 64, stages = 2, warps = 2, mma_shape = [16, 8, 16]>
!row = !kvbuffer.fragment<32x1xf32, row>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @alone() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [2, 1, 1]} {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.shelf' op trades with the other block of a cluster, but the kernel's have 1; expected 'known_cluster_size' of two}}
      %shelf = kvbuffer.shelf slots(1) {kvbuffer.traded} : !kvbuffer.shelf<!row>
      kvbuffer.teams {
        kvbuffer.team @trade warps(2) {
          %m = kvbuffer.fragment_fill 1.0 : !row
          kvbuffer.shelf_put %m to %shelf[%c0] : !kvbuffer.shelf<!row>
          %other = kvbuffer.shelf_get %shelf[%c0] : !kvbuffer.shelf<!row>
        }
      }
      gpu.return
    }
  }
}

// -----

#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 64, stages = 2, warps = 2, mma_shape = [16, 8, 16]>
!row = !kvbuffer.fragment<32x1xf32, row>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @without_rings() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [2, 1, 1], known_cluster_size = array<i32: 2, 1, 1>} {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.shelf' op has no per-lane form in a kernel without kvbuffer.ring, whose teams know their block}}
      %shelf = kvbuffer.shelf slots(1) {kvbuffer.traded} : !kvbuffer.shelf<!row>
      kvbuffer.teams {
        kvbuffer.team @trade warps(2) {
          %m = kvbuffer.fragment_fill 1.0 : !row
          kvbuffer.shelf_put %m to %shelf[%c0] : !kvbuffer.shelf<!row>
          %other = kvbuffer.shelf_get %shelf[%c0] : !kvbuffer.shelf<!row>
        }
      }
      gpu.return
    }
  }
}

// -----

func.func @elsewhere() {
  // expected-error @below {{'arith.constant' op has the attribute 'kvbuffer.traded', which nothing reads here; expected it on a kvbuffer.shelf}}
  %c0 = arith.constant {kvbuffer.traded} 0 : index
  return
}

// -----

#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 64, stages = 2, warps = 2, mma_shape = [16, 8, 16]>
!row = !kvbuffer.fragment<32x1xf32, row>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @no_unit() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [2, 1, 1], known_cluster_size = array<i32: 2, 1, 1>} {
      // expected-error @below {{'kvbuffer.shelf' op attribute 'kvbuffer.traded' must be a unit}}
      %shelf = kvbuffer.shelf slots(1) {kvbuffer.traded = 16 : i64} : !kvbuffer.shelf<!row>
      gpu.return
    }
  }
}
