// Tiles of a ragged batch are numbered before the teams begin: by every warp, each lane
// some neighbouring sequences; one warp writes the numbers, and all meet. Teams find
// their tiles by these.
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-teams)))" | FileCheck %s --check-prefix=TEAMS
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-teams),convert-kvbuffer-to-gpu,canonicalize,cse))" | FileCheck %s

// TEAMS-LABEL: gpu.func @numbers
// TEAMS:         %[[BLOCK:.*]] = gpu.block_id x
// TEAMS:         %[[TILES:.*]] = kvbuffer.number_tiles %{{.*}} of %{{.*}} upto %{{.*}} by 64 into %[[NUMBERS:.*]][%[[BLOCK]]] {over = 8 : i64}
// TEAMS:         kvbuffer.team @consumers
// TEAMS-NOT:     number_tiles
// TEAMS:         kvbuffer.find_tile {{.*}} numbered %[[NUMBERS]][%[[BLOCK]]]
// TEAMS:         kvbuffer.team @producers
// TEAMS:         kvbuffer.next_tile of %[[TILES]]

// CHECK-LABEL: gpu.func @numbers
// CHECK:         %[[EACH:.*]] = arith.ceildivui %{{.*}}, %c32_i32
// CHECK:         %[[OWN:.*]] = scf.for
// CHECK:           %[[ROWS:.*]] = arith.subi
// CHECK:           %[[TILES:.*]] = arith.ceildivui %[[ROWS]], %c64_i32
// CHECK:           %[[LONG:.*]] = arith.cmpi sgt, %[[ROWS]], %c8_i32
// CHECK:           arith.select %[[LONG]], %[[TILES]], %c0_i32
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:         scf.if
// CHECK:           scf.for
// CHECK:             memref.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<{{[0-9]+}}xi32, strided<[1]>>
// CHECK:         gpu.barrier
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], producers = 4, producer_registers = 24, consumer_registers = 240, tiles = dynamic>
module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @numbers(%x: memref<?x4x64xbf16> {kvbuffer.name = "x", kvbuffer.shape = ["total_q", 4, 64]}, %offsets: memref<?xi32> {kvbuffer.name = "starts", kvbuffer.shape = [#kvbuffer.size<sum(batch, 1)>]}, %seen: memref<?xf32> {kvbuffer.name = "seen", kvbuffer.shape = ["batch"]}, %numbers: memref<?x?xi32> {kvbuffer.access = "workspace", kvbuffer.name = "tile_numbers", kvbuffer.shape = ["sms", "batch"]})
        kernel attributes {known_block_size = array<i32: 128, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = ["sms", 1, 1]} {
      %c0 = arith.constant 0 : index
      %batch = kvbuffer.launch_size "batch"
      %rows = memref.dim %x, %c0 : memref<?x4x64xbf16>
      %block = gpu.block_id x
      %tiles = kvbuffer.number_tiles %offsets of %batch upto %rows by 64 into %numbers[%block] {over = 8} : memref<?xi32>, memref<?x?xi32>
      %first = kvbuffer.next_tile of %tiles
      %sequence, %tile = kvbuffer.find_tile %first in %offsets of %batch upto %rows by 64 numbered %numbers[%block] {over = 8} : memref<?xi32>, memref<?x?xi32>
      %row = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<64x1xf32, row>
      kvbuffer.row_store %row, %seen[%sequence] valid(%tile) : !kvbuffer.fragment<64x1xf32, row>, memref<?xf32>
      gpu.return
    }
  }
}
