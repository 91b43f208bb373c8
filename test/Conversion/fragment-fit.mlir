// An operand of bf16 becomes f16 by a power of two that a warp's lanes agree on:
// the largest exponent among its finite elements becomes 14.
// RUN: kvbuf-opt %s --convert-kvbuffer-to-gpu --canonicalize --cse | FileCheck %s

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>
!acc = !kvbuffer.fragment<16x8xf32, acc>
!line = memref<?x?x1x16xbf16>

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @fit
    // Magnitudes as integers, one step of the exponent higher: infinities and NaNs
    // are negative then, so that the largest integer is that of a finite element.
    // CHECK-DAG:     %[[MAGNITUDE:.*]] = arith.constant dense<32767> : vector<2xi16>
    // CHECK-DAG:     %[[STEP:.*]] = arith.constant dense<128> : vector<2xi16>
    // CHECK-DAG:     %[[NONE:.*]] = arith.constant 128 : i16
    // CHECK:         %[[BITS:.*]] = arith.bitcast %[[WORD:.*]] : vector<2xbf16> to vector<2xi16>
    // CHECK-NEXT:    %[[ABS:.*]] = arith.andi %[[BITS]], %[[MAGNITUDE]]
    // CHECK-NEXT:    %[[FIRST:.*]] = arith.addi %[[ABS]], %[[STEP]]
    // CHECK:         arith.maxsi %[[FIRST]],
    // CHECK:         arith.maxsi %{{.*}}, %[[NONE]] : i16
    // CHECK:         %[[OWN:.*]] = arith.extsi
    // Of all the lanes.
    // CHECK:         gpu.shuffle xor %[[OWN]], %c1_i32
    // CHECK:         gpu.shuffle xor %{{.*}}, %c2_i32
    // CHECK:         gpu.shuffle xor %{{.*}}, %c4_i32
    // CHECK:         gpu.shuffle xor %{{.*}}, %c8_i32
    // CHECK:         gpu.shuffle xor %{{.*}}, %c16_i32
    // CHECK:         %[[TOP:.*]] = arith.maxsi
    // Its exponent's field e, one step higher; 2^(14 - (e - 127)) has the field
    // 268 - e.
    // CHECK:         %[[SHIFTED:.*]] = arith.shrui %[[TOP]], %c7_i32
    // CHECK-NEXT:    %[[UP:.*]] = arith.subi %c269_i32, %[[SHIFTED]]
    // CHECK-NEXT:    %[[BOUND:.*]] = arith.minsi %[[UP]], %c253_i32
    // CHECK-NEXT:    %[[DOWN:.*]] = arith.subi %c254_i32, %[[BOUND]]
    // CHECK-NEXT:    %[[BITS1:.*]] = arith.shli %[[BOUND]], %c23_i32
    // CHECK-NEXT:    %[[MUL:.*]] = arith.bitcast %[[BITS1]] : i32 to f32
    // CHECK-NEXT:    %[[BITS2:.*]] = arith.shli %[[DOWN]], %c23_i32
    // CHECK-NEXT:    %[[INVERSE:.*]] = arith.bitcast %[[BITS2]] : i32 to f32
    // A scale's sign goes into the operand: factors are positive.
    // CHECK-NEXT:    %[[SIGNED:.*]] = math.copysign %[[MUL]], %[[SCALE:.*]] : f32
    // CHECK-NEXT:    %[[POSITIVE:.*]] = math.absf %[[SCALE]] : f32
    // CHECK-NEXT:    %[[PRODUCT:.*]] = arith.mulf %[[INVERSE]], %[[POSITIVE]] : f32
    // CHECK-NEXT:    %[[FACTOR:.*]] = arith.maximumf %[[PRODUCT]], %{{.*}} : f32
    // A word's lower element becomes the upper half of a wide number, its upper one
    // is that half.
    // CHECK:         %[[PAIR:.*]] = vector.bitcast %[[WORD]] : vector<2xbf16> to vector<1xi32>
    // CHECK-NEXT:    %[[SPLAT:.*]] = vector.broadcast %[[SIGNED]]
    // CHECK-NEXT:    %[[SHIFTED:.*]] = arith.shli %[[PAIR]], %{{.*}} : vector<1xi32>
    // CHECK-NEXT:    %[[LOWER:.*]] = arith.bitcast %[[SHIFTED]] : vector<1xi32> to vector<1xf32>
    // CHECK-NEXT:    %[[FIT0:.*]] = arith.mulf %[[LOWER]], %[[SPLAT]]
    // CHECK-NEXT:    %[[CLEARED:.*]] = arith.andi %[[PAIR]], %{{.*}} : vector<1xi32>
    // CHECK-NEXT:    %[[UPPER:.*]] = arith.bitcast %[[CLEARED]] : vector<1xi32> to vector<1xf32>
    // CHECK-NEXT:    %[[FIT1:.*]] = arith.mulf %[[UPPER]], %[[SPLAT]]
    // CHECK-NEXT:    %[[FIT:.*]] = vector.interleave %[[FIT0]], %[[FIT1]]
    // CHECK-NEXT:    arith.truncf %[[FIT]] : vector<2xf32> to vector<2xf16>
    // The accumulators' rows, times the factor.
    // CHECK:         %[[P:.*]] = kvbuffer.lane_mma
    // CHECK:         vector.extract %[[P]][0]
    // CHECK-NEXT:    arith.mulf %{{.*}}, %[[FACTOR]] : f32
    gpu.func @fit(%x: !line {kvbuffer.name = "x"}, %y: memref<?x?x1x16xf16> {kvbuffer.name = "y"},
                  %s: memref<1xf32> {kvbuffer.name = "s"}, %out: memref<?x?x1x8xf16> {kvbuffer.name = "out"})
        kernel attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %scale = memref.load %s[%c0] : memref<1xf32>
      %tile = kvbuffer.dram_tile %x[%c0, %c0, %c0] valid(%c16) : !line -> !kvbuffer.tile<16x16xbf16>
      %a = kvbuffer.tile_fragment %tile : !kvbuffer.tile<16x16xbf16> -> !kvbuffer.fragment<16x16xbf16, a>
      %half, %factor = kvbuffer.fragment_fit %a times(%scale)
        : !kvbuffer.fragment<16x16xbf16, a> -> !kvbuffer.fragment<16x16xf16, a>, !kvbuffer.fragment<16x1xf32, row>
      %b = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<16x8xf16, b>
      %zero = kvbuffer.fragment_fill 0.0 : !acc
      %p = kvbuffer.mma %half, %b, %zero
        : !kvbuffer.fragment<16x16xf16, a>, !kvbuffer.fragment<16x8xf16, b>, !acc
      %r = kvbuffer.rescale %p, %factor : !acc, !kvbuffer.fragment<16x1xf32, row>
      %o = kvbuffer.fragment_convert %r : !acc -> !kvbuffer.fragment<16x8xf16, acc>
      %to = kvbuffer.dram_tile %out[%c0, %c0, %c0] valid(%c16) : memref<?x?x1x8xf16> -> !kvbuffer.tile<16x8xf16>
      kvbuffer.fragment_store %o, %to : !kvbuffer.fragment<16x8xf16, acc>, !kvbuffer.tile<16x8xf16>
      gpu.return
    }

    // A softmax of such rows takes the accumulators as they are: the factor belongs to
    // its scale, and to the maximum alone.
    // CHECK-LABEL: gpu.func @softmax
    // CHECK:         %[[FACTOR:.*]] = arith.maximumf
    // CHECK:         %[[P:.*]] = kvbuffer.lane_mma
    // CHECK-NEXT:    %[[S0:.*]] = vector.extract %[[P]][0]
    // CHECK:         %[[TOP:.*]] = arith.maxnumf %{{.*}}, %{{.*}} : f32
    // CHECK:         %[[SCALED:.*]] = arith.mulf %{{.*}}, %[[FACTOR]] : f32
    // CHECK-NEXT:    arith.maxnumf %[[SCALED]], %{{.*}} : f32
    // CHECK:         %[[SCALE:.*]] = arith.mulf %[[FACTOR]], %cst{{.*}} : f32
    // CHECK:         math.fma %[[S0]], %[[SCALE]], %{{.*}} : f32
    gpu.func @softmax(%x: !line {kvbuffer.name = "x"}, %s: memref<1xf32> {kvbuffer.name = "s"},
                      %out: memref<?x?x1x8xf16> {kvbuffer.name = "out"})
        kernel attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %scale = memref.load %s[%c0] : memref<1xf32>
      %tile = kvbuffer.dram_tile %x[%c0, %c0, %c0] valid(%c16) : !line -> !kvbuffer.tile<16x16xbf16>
      %a = kvbuffer.tile_fragment %tile : !kvbuffer.tile<16x16xbf16> -> !kvbuffer.fragment<16x16xbf16, a>
      %half, %factor = kvbuffer.fragment_fit %a times(%scale)
        : !kvbuffer.fragment<16x16xbf16, a> -> !kvbuffer.fragment<16x16xf16, a>, !kvbuffer.fragment<16x1xf32, row>
      %b = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<16x8xf16, b>
      %zero = kvbuffer.fragment_fill 0.0 : !acc
      %m = kvbuffer.fragment_fill -1.0 : !kvbuffer.fragment<16x1xf32, row>
      %scores = kvbuffer.mma %half, %b, %zero
        : !kvbuffer.fragment<16x16xf16, a>, !kvbuffer.fragment<16x8xf16, b>, !acc
      %r = kvbuffer.rescale %scores, %factor : !acc, !kvbuffer.fragment<16x1xf32, row>
      %p, %m1, %l1, %f = kvbuffer.online_softmax %r, %m, %m {scale = 1.0 : f32} : !acc, !kvbuffer.fragment<16x1xf32, row> -> !acc
      %o = kvbuffer.fragment_convert %p : !acc -> !kvbuffer.fragment<16x8xf16, acc>
      %to = kvbuffer.dram_tile %out[%c0, %c0, %c0] valid(%c16) : memref<?x?x1x8xf16> -> !kvbuffer.tile<16x8xf16>
      kvbuffer.fragment_store %o, %to : !kvbuffer.fragment<16x8xf16, acc>, !kvbuffer.tile<16x8xf16>
      gpu.return
    }
  }
}
