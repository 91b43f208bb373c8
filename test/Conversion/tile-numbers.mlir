// A tile's number is all that the counter tells: the addition orders nothing, and no
// fence stands at it.
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" | FileCheck %s
// RUN: kvbuf-opt %s \
// RUN:   --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,expand-strided-metadata,lower-affine,convert-scf-to-cf,convert-kvbuffer-to-nvvm))" \
// RUN:   | FileCheck %s --check-prefix=NVVM

#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], producers = 4, producer_registers = 24, consumer_registers = 240, tiles = dynamic>
module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @numbers
    // CHECK-SAME:    <launch_counter>
    // CHECK:         %[[TILE:.*]] = kvbuffer.lane_arrive %{{.*}}[%c0] relaxed : memref<?xi32>
    // CHECK:         memref.store %[[TILE]]
    // CHECK-NOT:     lane_arrive
    // NVVM-LABEL:  llvm.func @numbers
    // NVVM-NOT:    llvm.fence
    // NVVM:        llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic
    // NVVM-NOT:    llvm.fence
    gpu.func @numbers() kernel attributes {known_block_size = array<i32: 256, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [2, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c10 = arith.constant 10 : index
      %box = kvbuffer.mailbox from @producers to [@consumers] {slots = 2 : i64}
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(240) {
          %tile = kvbuffer.mailbox_take %box[%c0]
        }
        kvbuffer.team @producers warps(4) registers(24) {
          %tile = kvbuffer.next_tile of %c10
          kvbuffer.mailbox_post %tile to %box[%c0]
        }
      }
      gpu.return
    }
  }
}
