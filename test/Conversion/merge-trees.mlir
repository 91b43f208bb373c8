// Merges of merges that nothing else uses are one: each row's largest maximum
// comes first, and each partial result has one weight, as far as registers hold
// all that is merged.
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-distribute-fragments),convert-kvbuffer-to-gpu))" | FileCheck %s

#schedule = #kvbuffer.schedule<BM = 8, BN = 16, BK = 64, warps = 1, mma_shape = [16, 8, 16], swap_a_b = true>
!acc = !kvbuffer.fragment<8x32xf32, acc>
!wide = !kvbuffer.fragment<8x256xf32, acc>
!row = !kvbuffer.fragment<8x1xf32, row>

module attributes {gpu.container_module, kvbuffer.target = "sm_80"} {
gpu.module @work {
  // Two rows of a lane, three parts each.
  // CHECK-LABEL: gpu.func @tree
  // CHECK-COUNT-2: arith.maxnumf
  // CHECK-COUNT-3: math.exp2
  // CHECK-COUNT-2: arith.maxnumf
  // CHECK-COUNT-3: math.exp2
  // CHECK-NOT: math.exp2
  // CHECK: gpu.return
  gpu.func @tree(%parts: memref<4x8x36xf32> {kvbuffer.name = "parts", kvbuffer.access = "workspace"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %a0, %m0, %l0 = kvbuffer.partial_load %parts[%c0] valid(%c8) : memref<4x8x36xf32> -> !acc, !row
    %a1, %m1, %l1 = kvbuffer.partial_load %parts[%c1] valid(%c8) : memref<4x8x36xf32> -> !acc, !row
    %a2, %m2, %l2 = kvbuffer.partial_load %parts[%c2] valid(%c8) : memref<4x8x36xf32> -> !acc, !row
    %a3, %m3, %l3 = kvbuffer.softmax_merge %a0, %m0, %l0 with %a1, %m1, %l1 {scale = 0.5 : f32} : !acc, !row
    %a4, %m4, %l4 = kvbuffer.softmax_merge %a3, %m3, %l3 with %a2, %m2, %l2 {scale = 0.5 : f32} : !acc, !row
    kvbuffer.partial_store %a4, %m4, %l4 into %parts[%c3] valid(%c8) : !acc, !row, memref<4x8x36xf32>
    gpu.return
  }
  // What the first one comes to is needed by itself.
  // CHECK-LABEL: gpu.func @used_twice
  // CHECK-COUNT-8: math.exp2
  // CHECK-NOT: math.exp2
  // CHECK: gpu.return
  gpu.func @used_twice(%parts: memref<4x8x36xf32> {kvbuffer.name = "parts", kvbuffer.access = "workspace"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %a0, %m0, %l0 = kvbuffer.partial_load %parts[%c0] valid(%c8) : memref<4x8x36xf32> -> !acc, !row
    %a1, %m1, %l1 = kvbuffer.partial_load %parts[%c1] valid(%c8) : memref<4x8x36xf32> -> !acc, !row
    %a2, %m2, %l2 = kvbuffer.partial_load %parts[%c2] valid(%c8) : memref<4x8x36xf32> -> !acc, !row
    %a3, %m3, %l3 = kvbuffer.softmax_merge %a0, %m0, %l0 with %a1, %m1, %l1 {scale = 0.5 : f32} : !acc, !row
    %a4, %m4, %l4 = kvbuffer.softmax_merge %a3, %m3, %l3 with %a2, %m2, %l2 {scale = 0.5 : f32} : !acc, !row
    kvbuffer.partial_store %a3, %m3, %l3 into %parts[%c0] valid(%c8) : !acc, !row, memref<4x8x36xf32>
    kvbuffer.partial_store %a4, %m4, %l4 into %parts[%c3] valid(%c8) : !acc, !row, memref<4x8x36xf32>
    gpu.return
  }
  // Three accumulators of 64 registers each are too many.
  // CHECK-LABEL: gpu.func @wide
  // CHECK-COUNT-8: math.exp2
  // CHECK-NOT: math.exp2
  // CHECK: gpu.return
  gpu.func @wide(%parts: memref<4x8x260xf32> {kvbuffer.name = "parts", kvbuffer.access = "workspace"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %a0, %m0, %l0 = kvbuffer.partial_load %parts[%c0] valid(%c8) : memref<4x8x260xf32> -> !wide, !row
    %a1, %m1, %l1 = kvbuffer.partial_load %parts[%c1] valid(%c8) : memref<4x8x260xf32> -> !wide, !row
    %a2, %m2, %l2 = kvbuffer.partial_load %parts[%c2] valid(%c8) : memref<4x8x260xf32> -> !wide, !row
    %a3, %m3, %l3 = kvbuffer.softmax_merge %a0, %m0, %l0 with %a1, %m1, %l1 {scale = 0.5 : f32} : !wide, !row
    %a4, %m4, %l4 = kvbuffer.softmax_merge %a3, %m3, %l3 with %a2, %m2, %l2 {scale = 0.5 : f32} : !wide, !row
    kvbuffer.partial_store %a4, %m4, %l4 into %parts[%c3] valid(%c8) : !wide, !row, memref<4x8x260xf32>
    gpu.return
  }
}
}
