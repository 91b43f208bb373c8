// A slot of bf16 becomes f16 where it lies, by a power of two: each warp looks at all
// vectors of 16 bytes for the largest exponent, all warps meet, each lane converts its
// own, and all meet again.
// RUN: kvbuf-opt %s --convert-kvbuffer-to-gpu --canonicalize --cse | FileCheck %s

#schedule = #kvbuffer.schedule<BM = 32, BN = 16, BK = 32, stages = 1, warps = 2, mma_shape = [16, 8, 16]>
#qbuf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [2, 0, 3], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 32, stages = 1>
#qhalf = #kvbuffer.kv_buffer<q, f16, double_buffered, mma_shape = [16, 8, 16], swizzle = [2, 0, 3], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 32, stages = 1>
!x = memref<?x?x1x32xbf16>
!a = !kvbuffer.fragment<32x32xf16, a>
!acc = !kvbuffer.fragment<32x8xf32, acc>

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @fit
    // CHECK-DAG:     %[[SCALE:.*]] = memref.load
    // 2048 bytes are 128 vectors: 4 of a lane of each warp, 2 of each thread.
    // CHECK:         nvgpu.device_async_wait
    // CHECK:         gpu.barrier
    // CHECK:         %[[LARGEST:.*]] = scf.for %{{.*}} = %{{.*}} to %c128 step %c32
    // CHECK:           %[[WORD:.*]] = vector.load %{{.*}} vector<8xbf16>
    // CHECK:           arith.maxsi %{{.*}} : vector<8xi16>
    // CHECK-NEXT:      scf.yield
    // CHECK:         gpu.shuffle xor %{{.*}}, %c16_i32
    // CHECK:         %[[SIGNED:.*]] = math.copysign %{{.*}}, %[[SCALE]] : f32
    // CHECK:         gpu.barrier
    // CHECK:         scf.for %{{.*}} = %{{.*}} to %c128 step %c64
    // CHECK:           %[[OLD:.*]] = vector.load %{{.*}}[%[[AT:.*]]] {{.*}} vector<8xbf16>
    // CHECK:           %[[NEW:.*]] = arith.truncf %{{.*}} : vector<8xf32> to vector<8xf16>
    // CHECK:           vector.store %[[NEW]], %{{.*}}[%[[AT]]]
    // CHECK:         gpu.barrier
    // Read as f16 then.
    // CHECK:         nvgpu.ldmatrix
    // CHECK-SAME:      f16
    gpu.func @fit(%x: !x {kvbuffer.name = "x"}, %s: memref<1xf32> {kvbuffer.name = "s"},
                  %out: memref<?x?x1x8xf16> {kvbuffer.name = "out"})
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %scale = memref.load %s[%c0] : memref<1xf32>
      %buffer = kvbuffer.alloc {offset = 0 : i64} : !kvbuffer.buffer<#qbuf>
      %tile = kvbuffer.dram_tile %x[%c0, %c0, %c0] valid(%c32) : !x -> !kvbuffer.tile<32x32xbf16>
      %token = kvbuffer.dram_load %tile into %buffer[%c0] : !kvbuffer.tile<32x32xbf16>, !kvbuffer.buffer<#qbuf>
      %staged = kvbuffer.lds_stage %token {younger = 0 : i64} : !kvbuffer.token<#qbuf>
      %fitted, %factor = kvbuffer.staged_fit %staged times(%scale) : !kvbuffer.staged<#qbuf> -> !kvbuffer.staged<#qhalf>, !kvbuffer.fragment<32x1xf32, row>
      %a = kvbuffer.fragment_load %fitted[0, 0] : !kvbuffer.staged<#qhalf> -> !a
      %b = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<32x8xf16, b>
      %zero = kvbuffer.fragment_fill 0.0 : !acc
      %p = kvbuffer.mma %a, %b, %zero : !a, !kvbuffer.fragment<32x8xf16, b>, !acc
      %o = kvbuffer.rescale %p, %factor : !acc, !kvbuffer.fragment<32x1xf32, row>
      %half = kvbuffer.fragment_convert %o : !acc -> !kvbuffer.fragment<32x8xf16, acc>
      %otile = kvbuffer.dram_tile %out[%c0, %c0, %c0] valid(%c32) : memref<?x?x1x8xf16> -> !kvbuffer.tile<32x8xf16>
      kvbuffer.fragment_store %half, %otile : !kvbuffer.fragment<32x8xf16, acc>, !kvbuffer.tile<32x8xf16>
      gpu.return
    }
  }
}
