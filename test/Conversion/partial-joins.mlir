// A join of partial results by lanes: 16 bytes of a row in each load, all of them
// before the first is looked at; the lanes of a row look at the maxima and sums of
// some partial results each, and tell the others by what these are scaled.
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-distribute-fragments),convert-kvbuffer-to-gpu))" --split-input-file | FileCheck %s
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-distribute-fragments),convert-kvbuffer-to-gpu))" --split-input-file | FileCheck %s --check-prefix=ABSENT

#schedule = #kvbuffer.schedule<BM = 8, BN = 16, BK = 64, warps = 1, mma_shape = [16, 8, 16], swap_a_b = true>
!acc = !kvbuffer.fragment<8x32xf32, acc>
!row = !kvbuffer.fragment<8x1xf32, row>

module attributes {gpu.container_module, kvbuffer.target = "sm_80"} {
gpu.module @work {
  // Four rows, one of each lane; the tile's other rows are none. Five at most, so
  // eight at once and no loop: the eight lanes of a row look at one each.
  // All but the first are zeros where there are fewer: what is read again in their
  // place may be infinite, and 0 times that is no number.
  // ABSENT-LABEL: gpu.func @few
  // ABSENT: gpu.shuffle idx
  // ABSENT-COUNT-7: arith.select {{.*}} : vector<4xf32>
  // ABSENT-NOT: arith.select {{.*}} : vector<4xf32>
  // ABSENT: gpu.return
  // CHECK-LABEL: gpu.func @few
  // CHECK-NOT: scf.for
  // CHECK-COUNT-1: vector.load {{.*}} vector<2xf32>
  // CHECK-NOT: vector.load {{.*}} vector<2xf32>
  // CHECK-COUNT-8: vector.load {{.*}} vector<4xf32>
  // CHECK-NOT: vector.load
  // CHECK-COUNT-3: gpu.shuffle xor
  // CHECK-COUNT-1: math.exp2
  // CHECK-NOT: math.exp2
  // CHECK-COUNT-8: gpu.shuffle idx
  // CHECK-NOT: gpu.shuffle idx
  // CHECK: gpu.return
  gpu.func @few(%parts: memref<9x4x36xf32> {kvbuffer.name = "parts", kvbuffer.access = "workspace"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
    %c0 = arith.constant 0 : index
    %c5 = arith.constant 5 : index
    %c8 = arith.constant 8 : index
    %y = gpu.block_id y
    %many = arith.minui %y, %c5 : index
    %a, %m, %l = kvbuffer.partial_join %parts[%c0] of %many step 1 valid(%c8) {scale = 0.5 : f32} : memref<9x4x36xf32> -> !acc, !row
    kvbuffer.partial_store %a, %m, %l into %parts[%c8] valid(%c8) : !acc, !row, memref<9x4x36xf32>
    gpu.return
  }
  // Sixteen registers of a lane each: ten at a time, which take two thirds of all that
  // it has. Lanes of a row look at one or two, those that are none of the ten at none.
  // CHECK-LABEL: gpu.func @ten
  // CHECK: scf.for {{.*}} step %c10
  // CHECK-COUNT-2: vector.load {{.*}} vector<2xf32>
  // CHECK: arith.cmpi ult, {{.*}}, %c10_i32
  // CHECK-COUNT-40: vector.load {{.*}} vector<4xf32>
  // CHECK-NOT: vector.load
  // CHECK-COUNT-3: math.exp2
  // CHECK-NOT: math.exp2
  // CHECK-COUNT-10: gpu.shuffle idx
  // CHECK-NOT: gpu.shuffle idx
  // CHECK: scf.yield
  gpu.func @ten(%parts: memref<9x4x132xf32> {kvbuffer.name = "parts", kvbuffer.access = "workspace"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %y = gpu.block_id y
    %a, %m, %l = kvbuffer.partial_join %parts[%c0] of %y step 1 valid(%c8) {scale = 0.5 : f32} : memref<9x4x132xf32> -> !kvbuffer.fragment<8x128xf32, acc>, !row
    kvbuffer.partial_store %a, %m, %l into %parts[%c8] valid(%c8) : !kvbuffer.fragment<8x128xf32, acc>, !row, memref<9x4x132xf32>
    gpu.return
  }
  // Any number: sixteen at a time, two for each lane of a row, and what those
  // before them have come to.
  // CHECK-LABEL: gpu.func @many
  // CHECK: scf.for
  // CHECK-COUNT-2: vector.load {{.*}} vector<2xf32>
  // CHECK-COUNT-16: vector.load {{.*}} vector<4xf32>
  // CHECK-NOT: vector.load
  // CHECK-COUNT-3: math.exp2
  // CHECK-NOT: math.exp2
  // CHECK-COUNT-16: gpu.shuffle idx
  // CHECK: scf.yield
  gpu.func @many(%parts: memref<9x4x36xf32> {kvbuffer.name = "parts", kvbuffer.access = "workspace"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %y = gpu.block_id y
    %a, %m, %l = kvbuffer.partial_join %parts[%c0] of %y step 1 valid(%c8) {scale = 0.5 : f32} : memref<9x4x36xf32> -> !acc, !row
    kvbuffer.partial_store %a, %m, %l into %parts[%c8] valid(%c8) : !acc, !row, memref<9x4x36xf32>
    gpu.return
  }
  // Rows that do not exist are 0, though they read those of the last one.
  // ABSENT-LABEL: gpu.func @rows
  // ABSENT: %[[IS_ROW:.*]] = arith.cmpi slt
  // ABSENT: %[[READ:.*]] = vector.load {{.*}} vector<4xf32>
  // ABSENT-NEXT: %[[ZEROS:.*]] = vector.broadcast {{.*}} : f32 to vector<4xf32>
  // ABSENT-NEXT: arith.select %[[IS_ROW]], %[[READ]], %[[ZEROS]] : vector<4xf32>
  // CHECK-LABEL: gpu.func @rows
  gpu.func @rows(%parts: memref<9x4x36xf32> {kvbuffer.name = "parts", kvbuffer.access = "workspace"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %y = gpu.block_id y
    %a, %m, %l = kvbuffer.partial_load %parts[%c0] valid(%y) : memref<9x4x36xf32> -> !acc, !row
    kvbuffer.partial_store %a, %m, %l into %parts[%c1] valid(%y) : !acc, !row, memref<9x4x36xf32>
    gpu.return
  }
}
}

// -----

// Of 256 columns a lane has registers for one partial result at a time: it joins 128
// after the other, two at once. Eight rows lie together, block of 16 columns by block,
// 128 words each, and maxima and sums behind all rows: a warp's load is one piece of
// memory.
#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
!acc = !kvbuffer.fragment<16x256xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>

module attributes {gpu.container_module, kvbuffer.target = "sm_80"} {
gpu.module @work {
  // CHECK-LABEL: gpu.func @wide
  // CHECK-COUNT-2: scf.for
  // CHECK-NOT: scf.for
  // CHECK: gpu.return
  // ABSENT-LABEL: gpu.func @wide
  // ABSENT: scf.for
  // ABSENT: %[[PAIRS:.*]] = arith.constant 4096 : index
  // ABSENT-NEXT: arith.addi %{{.*}}, %[[PAIRS]] : index
  // ABSENT: vector.load {{.*}} vector<2xf32>
  // ABSENT: %[[ROWS:.*]] = arith.constant 8 : i32
  // ABSENT-NEXT: arith.divui %[[ROW:.*]], %[[ROWS]] : i32
  // ABSENT-NEXT: arith.constant 2048 : i32
  // ABSENT: %[[IN_EIGHT:.*]] = arith.remui %[[ROW]], %[[ROWS]] : i32
  // ABSENT-NEXT: %[[BLOCK:.*]] = arith.constant 16 : i32
  // ABSENT-NEXT: arith.muli %[[IN_EIGHT]], %[[BLOCK]] : i32
  // ABSENT: vector.load {{.*}} vector<4xf32>
  // ABSENT-NEXT: %[[NEXT:.*]] = arith.constant 128 : index
  // ABSENT-NEXT: arith.addi %{{.*}}, %[[NEXT]] : index
  // ABSENT-NEXT: vector.load {{.*}} vector<4xf32>
  // ABSENT-COUNT-30: vector.load {{.*}} vector<4xf32>
  // ABSENT-NOT: vector.load {{.*}} vector<4xf32>
  // ABSENT: scf.yield
  gpu.func @wide(%parts: memref<9x16x260xf32> {kvbuffer.name = "parts", kvbuffer.access = "workspace"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %y = gpu.block_id y
    %a, %m, %l = kvbuffer.partial_join %parts[%c0] of %y step 1 valid(%c16) {columns = array<i64: 1, 8, 2, 4>, scale = 0.5 : f32} : memref<9x16x260xf32> -> !acc, !row
    kvbuffer.partial_store %a, %m, %l into %parts[%c8] valid(%c16) {columns = array<i64: 1, 8, 2, 4>} : !acc, !row, memref<9x16x260xf32>
    gpu.return
  }
}
}
