// A region, element by element: each lane runs it for the elements that it holds,
// at their coordinates.
// RUN: kvbuf-opt %s --convert-kvbuffer-to-gpu --canonicalize --cse | FileCheck %s

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>
!acc = !kvbuffer.fragment<16x8xf32, acc>

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // What the manifest says of the arguments follows from their names, sizes and
    // uses.
    // CHECK-LABEL: gpu.func @coordinates
    // CHECK-SAME:    kvbuffer.tensors = [
    // CHECK-SAME:      #kvbuffer.tensor<"bias" : f32[rows, bias.1], read>
    // CHECK-SAME:      #kvbuffer.tensor<"out" : bf16[out.0, out.1, 1, 8], write>
    // An m16n8 accumulator in a lane: rows lane / 4 and 8 on, columns
    // 2 (lane % 4) and 1 on, here from column 16 on.
    // CHECK-DAG:     %[[QUAD:.*]] = arith.andi %[[LANE:.*]], %c3_i32
    // CHECK-DAG:     %[[EVEN:.*]] = arith.shli %[[QUAD]], %c1_i32
    // CHECK-DAG:     %[[COL:.*]] = arith.addi %[[EVEN]], %c16_i32
    // CHECK-DAG:     %[[UPPER:.*]] = arith.andi %[[LANE]], %c28_i32
    // CHECK-DAG:     %[[INWARP:.*]] = arith.shrui %[[UPPER]], %c2_i32
    // CHECK-DAG:     %[[ROW:.*]] = arith.addi %[[INWARP]],
    // CHECK-DAG:     %[[ROW0:.*]] = arith.index_cast %[[ROW]] : i32 to index
    // CHECK-DAG:     %[[COL0:.*]] = arith.index_cast %[[COL]] : i32 to index
    // CHECK:         %[[LINE0:.*]] = arith.muli %[[ROW0]], %[[STRIDE:.*]] : index
    // CHECK-NEXT:    %[[AT:.*]] = arith.addi %[[LINE0]], %[[COL0]]
    // CHECK:         %[[B0:.*]] = memref.load %{{.*}}[%[[AT]]]
    // CHECK-NEXT:    %[[Y0:.*]] = arith.addf %[[B0]], %cst
    // CHECK-NEXT:    %[[E0:.*]] = math.exp2 %[[Y0]]
    // CHECK-NEXT:    %[[COL1:.*]] = arith.addi %[[COL0]], %c1 : index
    // CHECK-NEXT:    arith.addi %[[LINE0]], %[[COL1]]
    // CHECK:         %[[E1:.*]] = math.exp2
    // CHECK-NEXT:    %[[ROW1:.*]] = arith.addi %[[ROW0]], %c8 : index
    // CHECK-NEXT:    %[[LINE1:.*]] = arith.muli %[[ROW1]], %[[STRIDE]] : index
    // CHECK-NEXT:    arith.addi %[[LINE1]], %[[COL0]]
    // CHECK:         %[[E2:.*]] = math.exp2
    // CHECK-NEXT:    arith.addi %[[LINE1]], %[[COL1]]
    // CHECK:         %[[E3:.*]] = math.exp2
    // CHECK-NEXT:    vector.from_elements %[[E0]], %[[E1]], %[[E2]], %[[E3]] : vector<4xf32>
    // CHECK-NOT:     kvbuffer.map
    gpu.func @coordinates(%bias: memref<?x?xf32> {kvbuffer.name = "bias", kvbuffer.shape = ["rows", "bias.1"]},
                          %out: memref<?x?x1x8xbf16> {kvbuffer.name = "out"})
        kernel attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %s = kvbuffer.fragment_fill 1.0 : !acc
      %t = kvbuffer.map %s at(%c0, %c16) : !acc -> !acc {
      ^bb0(%x: f32, %i: index, %j: index):
        %b = memref.load %bias[%i, %j] : memref<?x?xf32>
        %y = arith.addf %x, %b : f32
        %e = math.exp2 %y : f32
        kvbuffer.yield %e : f32
      }
      %r = kvbuffer.fragment_convert %t : !acc -> !kvbuffer.fragment<16x8xbf16, acc>
      %tile = kvbuffer.dram_tile %out[%c0, %c0, %c0] valid(%c16) : memref<?x?x1x8xbf16> -> !kvbuffer.tile<16x8xbf16>
      kvbuffer.fragment_store %r, %tile : !kvbuffer.fragment<16x8xbf16, acc>, !kvbuffer.tile<16x8xbf16>
      gpu.return
    }

    // What lanes load by the element is aligned to one; what is stored by tiles, as
    // the kernel asks.
    // CHECK-LABEL: gpu.func @narrow
    // CHECK-SAME:    kvbuffer.kernel = #kvbuffer.launch<alignment = 16, args = [<pointer "bias", alignment = 2>
    // CHECK-SAME:    <pointer "out">
    gpu.func @narrow(%bias: memref<?x?xbf16> {kvbuffer.name = "bias", kvbuffer.shape = ["rows", "bias.1"]},
                     %out: memref<?x?x1x8xbf16> {kvbuffer.name = "out"})
        kernel attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %s = kvbuffer.fragment_fill 1.0 : !acc
      %t = kvbuffer.map %s at(%c0, %c16) : !acc -> !acc {
      ^bb0(%x: f32, %i: index, %j: index):
        %b = memref.load %bias[%i, %j] : memref<?x?xbf16>
        %w = arith.extf %b : bf16 to f32
        %y = arith.addf %x, %w : f32
        kvbuffer.yield %y : f32
      }
      %r = kvbuffer.fragment_convert %t : !acc -> !kvbuffer.fragment<16x8xbf16, acc>
      %tile = kvbuffer.dram_tile %out[%c0, %c0, %c0] valid(%c16) : memref<?x?x1x8xbf16> -> !kvbuffer.tile<16x8xbf16>
      kvbuffer.fragment_store %r, %tile : !kvbuffer.fragment<16x8xbf16, acc>, !kvbuffer.tile<16x8xbf16>
      gpu.return
    }

    // A half of 16 bits is widened by a shift. What is a sum of a register and a number
    // is multiplied in one instruction for each element; the register once.
    // CHECK-LABEL: gpu.func @numbers
    // CHECK:         %[[HALF:.*]] = arith.bitcast %{{.*}} : bf16 to i16
    // CHECK-NEXT:    %[[WORD:.*]] = arith.extui %[[HALF]] : i16 to i32
    // CHECK-NEXT:    %[[BITS:.*]] = arith.shli %[[WORD]], %c16_i32
    // CHECK-NEXT:    arith.bitcast %[[BITS]] : i32 to f32
    // CHECK:         %[[PRODUCT:.*]] = arith.mulf %{{.*}}, %[[SLOPE:.*]] : f32
    // CHECK:         math.fma %cst{{.*}}, %[[SLOPE]], %[[PRODUCT]]
    // Numbers that are not negative are compared in 32 bits, without a sign too.
    // CHECK:         arith.cmpi sle, %{{.*}}, %{{.*}} : i32
    // CHECK-NOT:     arith.mulf
    // CHECK-NOT:     arith.cmpi ule
    gpu.func @numbers(%bias: memref<?x?xbf16> {kvbuffer.name = "bias", kvbuffer.shape = ["rows", "bias.1"]},
                      %slopes: memref<?xf32> {kvbuffer.name = "slopes", kvbuffer.shape = ["slopes"]},
                      %out: memref<?x?x1x8xbf16> {kvbuffer.name = "out"})
        kernel attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %s = kvbuffer.fragment_fill 1.0 : !acc
      %t = kvbuffer.map %s at(%c0, %c16) : !acc -> !acc {
      ^bb0(%x: f32, %i: index, %j: index):
        %b = memref.load %bias[%i, %j] : memref<?x?xbf16>
        %w = arith.extf %b : bf16 to f32
        %z = arith.constant 0 : index
        %slope = memref.load %slopes[%z] : memref<?xf32>
        %n = arith.index_cast %j : index to i32
        %f = arith.sitofp %n : i32 to f32
        %far = arith.mulf %f, %slope : f32
        %c8 = arith.constant 8 : index
        %m = arith.remui %i, %c8 : index
        %l = arith.remui %j, %c8 : index
        %near = arith.cmpi ule, %l, %m : index
        %z32 = arith.constant 0.0 : f32
        %some = arith.select %near, %far, %z32 : f32
        %y = arith.addf %w, %some : f32
        kvbuffer.yield %y : f32
      }
      %r = kvbuffer.fragment_convert %t : !acc -> !kvbuffer.fragment<16x8xbf16, acc>
      %tile = kvbuffer.dram_tile %out[%c0, %c0, %c0] valid(%c16) : memref<?x?x1x8xbf16> -> !kvbuffer.tile<16x8xbf16>
      kvbuffer.fragment_store %r, %tile : !kvbuffer.fragment<16x8xbf16, acc>, !kvbuffer.tile<16x8xbf16>
      gpu.return
    }
  }
}
