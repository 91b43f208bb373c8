// Teams as per-lane code: which warps run what, where buffers lie, how warps meet.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" --split-input-file | FileCheck %s

// Four copies of one warp: no branch, a buffer of 12288 bytes for each, and no
// barrier of the block until all have ended.
// CHECK-LABEL: gpu.func @copies
// CHECK-SAME:    block = [128, 1, 1], dynamic_shared_bytes = 49152
// CHECK:         %[[THREAD:.*]] = arith.index_cast %thread_id_x
// CHECK:         %[[WARP:.*]] = arith.shrui %[[THREAD]], %c5_i32
// CHECK-NOT:     scf.if
// CHECK:         %[[OWN:.*]] = arith.muli %[[WARP]], %c12288_i32{{.*}}
// CHECK:         %[[SLOTS:.*]] = arith.addi %c0_i32{{.*}}, %[[OWN]]
// CHECK:         nvgpu.device_async_copy
// CHECK:         nvgpu.device_async_wait
// CHECK-NOT:     gpu.barrier
// CHECK:         nvvm.bar.warp.sync %c-1_i32
// CHECK-NOT:     gpu.barrier
// CHECK:         nvgpu.ldmatrix
// CHECK:         gpu.barrier
// CHECK-NEXT:    gpu.return
#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, stages = 3, warps = 1, mma_shape = [16, 8, 16]>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 32, depth = 64, stages = 3>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @copies(%k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      kvbuffer.teams {
        kvbuffer.team @walk warps(1) x 4 (%copy) {
          %slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
          %key = arith.muli %copy, %c32 : index
          %tile = kvbuffer.cache_tile %k[%c0, %c0, %key] from %c0 upto %c32 : !kv -> !kvbuffer.tile<32x64xbf16>
          %token = kvbuffer.dram_load %tile into %slots[%c0] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.buffer<#kbuf>
          %staged = kvbuffer.lds_stage %token {younger = 0 : i64} : !kvbuffer.token<#kbuf>
          %kf = kvbuffer.fragment_load %staged[0, 0] : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<32x64xbf16, b>
        }
      }
      gpu.return
    }
  }
}

// -----

// Two copies of two warps, then one warp: a branch, and a named barrier for each
// copy. Threads of a team count from its first warp.
// CHECK-LABEL: gpu.func @unlike
// CHECK:         %[[WARP:.*]] = arith.shrui %{{.*}}, %c5_i32
// CHECK:         %[[FIRST:.*]] = arith.cmpi ult, %[[WARP]], %c4_i32
// CHECK:         scf.if %[[FIRST]] {
// CHECK:           %[[COPY:.*]] = arith.divui %[[WARP]], %c2_i32
// CHECK:           %[[ID:.*]] = arith.addi %c1_i32{{.*}}, %[[COPY]]
// CHECK:           nvvm.barrier id = %[[ID]] number_of_threads = %c64_i32
// CHECK:         } else {
// CHECK:           arith.subi %[[WARP]], %c4_i32
// CHECK:           nvvm.bar.warp.sync
// CHECK:         gpu.barrier
#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @unlike() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      kvbuffer.teams {
        kvbuffer.team @pairs warps(2) x 2 {
          kvbuffer.meet
        }
        kvbuffer.team @one warps(1) {
          kvbuffer.meet
        }
      }
      gpu.return
    }
  }
}

// -----

// A queue: barriers 1 and 2 are slot 0's full and empty one, 3 and 4 slot 1's.
// The team that takes says at its start that both are empty, the other waits for
// that again at its end.
// CHECK-LABEL: gpu.func @queue
// CHECK:         scf.if
// The slot is empty, the row's value is stored, the slot is full.
// CHECK:           nvvm.barrier id = %{{.*}} number_of_threads = %c64_i32
// CHECK:           vector.store %{{.*}} : memref<?xi32, #gpu.address_space<workgroup>>, vector<2xi32>
// CHECK:           nvvm.barrier.arrive id = %{{.*}} number_of_threads = %c64_i32
// CHECK:           nvvm.barrier id = %{{.*}} number_of_threads = %c64_i32
// CHECK:           nvvm.barrier id = %{{.*}} number_of_threads = %c64_i32
// CHECK:         } else {
// CHECK:           nvvm.barrier.arrive id = %{{.*}} number_of_threads = %c64_i32
// CHECK:           nvvm.barrier.arrive id = %{{.*}} number_of_threads = %c64_i32
// CHECK:           nvvm.barrier id = %{{.*}} number_of_threads = %c64_i32
// CHECK:           vector.load %{{.*}} : memref<?xi32, #gpu.address_space<workgroup>>, vector<2xi32>
// CHECK:           nvvm.barrier.arrive id = %{{.*}} number_of_threads = %c64_i32
// CHECK:         gpu.barrier
#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
!row = !kvbuffer.fragment<16x1xf32, row>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @queue(%n: memref<?xi32> {kvbuffer.name = "n"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %number = memref.dim %n, %c0 : memref<?xi32>
      %queue = kvbuffer.queue slots(2) from @one to [@other] : !kvbuffer.queue<!row>
      kvbuffer.teams {
        kvbuffer.team @one warps(1) {
          %r = kvbuffer.fragment_fill 1.0 : !row
          kvbuffer.queue_put %r to %queue[%number] : !kvbuffer.queue<!row>
        }
        kvbuffer.team @other warps(1) {
          %r = kvbuffer.queue_take %queue[%number] : !kvbuffer.queue<!row>
        }
      }
      gpu.return
    }
  }
}

// -----

// On AMD a team of one wave waits for itself; an entry is a meeting of the block.
// CHECK-LABEL: gpu.func @waves
// CHECK:         scf.if
// CHECK-NOT:       wave_barrier
// CHECK:           amdgpu.memory_counter_wait ds(0)
// CHECK-NOT:       wave_barrier
// CHECK:           vector.store
// CHECK:           amdgpu.memory_counter_wait ds(0)
// CHECK-NEXT:      kvbuffer.wave_barrier
// CHECK:         } else {
// CHECK:           amdgpu.memory_counter_wait ds(0)
// CHECK-NEXT:      kvbuffer.wave_barrier
// CHECK:           vector.load
// CHECK:         gpu.barrier
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>
!row = !kvbuffer.fragment<32x1xf32, row>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @waves(%n: memref<?xi32> {kvbuffer.name = "n"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %number = memref.dim %n, %c0 : memref<?xi32>
      %queue = kvbuffer.queue slots(2) from @one to [@other] : !kvbuffer.queue<!row>
      kvbuffer.teams {
        kvbuffer.team @one warps(1) {
          kvbuffer.meet
          %r = kvbuffer.fragment_fill 1.0 : !row
          kvbuffer.queue_put %r to %queue[%number] : !kvbuffer.queue<!row>
        }
        kvbuffer.team @other warps(1) {
          %r = kvbuffer.queue_take %queue[%number] : !kvbuffer.queue<!row>
        }
      }
      gpu.return
    }
  }
}
