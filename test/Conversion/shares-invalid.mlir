// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))"

// All lanes of a warp look at the items: a team beside rings has others to wait for.
#slots = #kvbuffer.kv_buffer<64x64xbf16, stages = 2, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], producers = 4, producer_registers = 24, consumer_registers = 240>
!dense = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>

module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @in_team(%k: !dense {kvbuffer.name = "k"},
                      %lengths: memref<?xi32> {kvbuffer.name = "lengths", kvbuffer.shape = ["batch"]})
        kernel attributes {known_block_size = array<i32: 256, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [4, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c64 = arith.constant 64 : index
      %block = gpu.block_id x
      %batch = kvbuffer.launch_size "batch"
      %buffer = kvbuffer.alloc : !kvbuffer.buffer<#slots>
      %ring = kvbuffer.ring %buffer from @load to [@read] : !kvbuffer.buffer<#slots>
      kvbuffer.teams {
        kvbuffer.team @read warps(4) registers(240) {
          %s = kvbuffer.ring_wait %ring[%c0] : !kvbuffer.ring<#slots>
          kvbuffer.ring_release %ring[%c0] : !kvbuffer.ring<#slots>
        }
        kvbuffer.team @load warps(4) registers(24) {
          // expected-error @below {{'kvbuffer.share_pairs' op has no per-lane form in a team beside kvbuffer.ring: the lanes of a warp look at the items together; expected it before the teams}}
          %size, %first, %start, %end, %other, %keep = kvbuffer.share_pairs %block of %c4 over %batch least %c1 pause %c4 {
          ^bb0(%i: index):
            %n = memref.load %lengths[%i] : memref<?xi32>
            %units = arith.index_cast %n : i32 to index
            kvbuffer.yield %units : index
          }
          %tile = kvbuffer.cache_tile %k[%first, %c0, %c0] from %c0 upto %c64 : !dense -> !kvbuffer.tile<64x64xbf16>
          kvbuffer.ring_load %tile into %ring[%c0] : !kvbuffer.tile<64x64xbf16>, !kvbuffer.ring<#slots>
        }
      }
      gpu.return
    }
  }
}
