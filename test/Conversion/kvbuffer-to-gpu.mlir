// One warp, one tile of 16 rows and 16 columns, 32 elements contracted: small enough
// that every instruction can be counted by hand.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" | FileCheck %s
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" | FileCheck %s --check-prefix=COUNT
// RUN: sed 's/mma_shape = .16, 8, 16./&, sums_in_lds = true/' %s | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" | FileCheck %s --check-prefix=SUMS

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 32, stages = 1, warps = 1, mma_shape = [16, 8, 16]>
#buf = #kvbuffer.kv_buffer<16x32xbf16>
!x = memref<?x?xbf16, strided<[?, 1]>>
!tile = !kvbuffer.tile<16x32xbf16>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // A tensor becomes its address, the strides but the innermost, and the sizes that
    // the kernel asks for.
    // CHECK-LABEL: gpu.func @gemm(%arg0: memref<bf16>, %arg1: index, %arg2: i32, %arg3: i32, %arg4: memref<bf16>, %arg5: index, %arg6: i32, %arg7: memref<bf16>, %arg8: index)
    // CHECK-SAME:    kvbuffer.kernel = #kvbuffer.launch<alignment = 16, args = [<pointer "a">, <stride "a", dim = 0>, <size m>, <size k>, <pointer "b">
    // Two tiles: 16 x 32 x 2 bytes each, at multiples of 1024.
    // CHECK-SAME:    block = [32, 1, 1], dynamic_shared_bytes = 2048, entry = "gemm", grid = [ceildiv(m, 16), ceildiv(n, 16), 1]>
    // CHECK-SAME:    kvbuffer.phase = #kvbuffer.phase<thread>
    // CHECK-SAME:    kvbuffer.tensors = [#kvbuffer.tensor<"a" : bf16[m, k], read>, #kvbuffer.tensor<"b" : bf16[n, k], read>, #kvbuffer.tensor<"c" : bf16[m, n], write>]
    // A tile is 64 pieces of 16 bytes, two a lane; where its end cuts it, as many bytes
    // as there are.
    // CHECK:         scf.if
    // CHECK-COUNT-2:   nvgpu.device_async_copy {{.*}}, 8 {bypassL1}
    // CHECK-NOT:       nvgpu.device_async_copy
    // CHECK:         } else {
    // CHECK-COUNT-2:   nvgpu.device_async_copy {{.*}}, 8, %{{.*}} {bypassL1}
    // CHECK-NOT:       nvgpu.device_async_copy
    // CHECK:         nvgpu.device_async_create_group
    // CHECK:         nvgpu.device_async_create_group
    // CHECK-NEXT:    nvgpu.device_async_wait %{{.*}} {numGroups = 0 : i32}
    // CHECK-NEXT:    gpu.barrier
    // CHECK-COUNT-4: nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = false}
    // CHECK-NOT:     nvgpu.ldmatrix
    // CHECK:         kvbuffer.lane_mma
    // CHECK-NOT:     gpu.barrier
    // CHECK:         vector.store
    // Two steps of 16 elements, two groups of 8 columns.
    // COUNT-LABEL: gpu.func @gemm
    // COUNT-COUNT-4: kvbuffer.lane_mma
    // COUNT-NOT:     kvbuffer.lane_mma
    // COUNT-LABEL: gpu.func @rows
    gpu.func @gemm(%a: !x {kvbuffer.name = "a", kvbuffer.shape = ["m", "k"]}, %b: !x {kvbuffer.name = "b", kvbuffer.shape = ["n", "k"]}, %c: !x {kvbuffer.name = "c", kvbuffer.shape = ["m", "n"]})
        kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [#kvbuffer.size<ceildiv(m, 16)>, #kvbuffer.size<ceildiv(n, 16)>, 1]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %m = memref.dim %a, %c0 : !x
      %n = memref.dim %b, %c0 : !x
      %k = memref.dim %a, %c1 : !x
      %x = gpu.block_id x
      %y = gpu.block_id y
      %row = arith.muli %x, %c16 : index
      %col = arith.muli %y, %c16 : index
      %rows = arith.subi %m, %row : index
      %cols = arith.subi %n, %col : index
      %a_slot = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %b_slot = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %zero = kvbuffer.fragment_fill 0.0 : !acc
      %at = kvbuffer.dram_tile %a[%row, %c0] valid(%rows, %k) : !x -> !tile
      %bt = kvbuffer.dram_tile %b[%col, %c0] valid(%cols, %k) : !x -> !tile
      %al = kvbuffer.dram_load %at into %a_slot[%c0] : !tile, !kvbuffer.buffer<#buf>
      %bl = kvbuffer.dram_load %bt into %b_slot[%c0] : !tile, !kvbuffer.buffer<#buf>
      %as, %bs = kvbuffer.lds_stage %al, %bl {younger = 0 : i64} : !kvbuffer.token<#buf>, !kvbuffer.token<#buf>
      %af = kvbuffer.fragment_load %as[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<16x32xbf16, a>
      %bf = kvbuffer.fragment_load %bs[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<16x32xbf16, b>
      %sum = kvbuffer.mma %af, %bf, %zero {transpose_b} : !kvbuffer.fragment<16x32xbf16, a>, !kvbuffer.fragment<16x32xbf16, b>, !acc
      %rounded = kvbuffer.fragment_convert %sum : !acc -> !kvbuffer.fragment<16x16xbf16, acc>
      %ct = kvbuffer.dram_tile %c[%row, %col] valid(%rows, %cols) : !x -> !kvbuffer.tile<16x16xbf16>
      kvbuffer.fragment_store %rounded, %ct : !kvbuffer.fragment<16x16xbf16, acc>, !kvbuffer.tile<16x16xbf16>
      gpu.return
    }

    // What rows of scores sum up to: maxima and sums are of a row, whose columns four
    // lanes hold.
    // CHECK-LABEL: gpu.func @rows
    // CHECK-SAME:    dynamic_shared_bytes = 2048
    // CHECK:         scf.for unsigned
    // CHECK:           kvbuffer.lane_mma
    // The row maximum crosses the lanes of a quad, bits 0 and 1: two rows a lane. The sum
    // stays a lane's until the loop ends.
    // CHECK:           gpu.shuffle xor %{{.*}}, %c1_i32, %c32_i32 : f32
    // CHECK:           gpu.shuffle xor %{{.*}}, %c2_i32, %c32_i32 : f32
    // CHECK:           gpu.shuffle xor %{{.*}}, %c1_i32, %c32_i32 : f32
    // CHECK:           gpu.shuffle xor %{{.*}}, %c2_i32, %c32_i32 : f32
    // CHECK-NOT:       gpu.shuffle
    // CHECK:           scf.yield
    // CHECK:         gpu.shuffle xor %{{.*}}, %c1_i32, %c32_i32 : f32
    // CHECK:         memref.store
    // Sums in LDS: a slot of two f32 a lane after the tiles, 256 bytes rounded up.
    // SUMS-LABEL: gpu.func @rows
    // SUMS-SAME:    dynamic_shared_bytes = 3072
    // SUMS:         vector.store {{.*}}alignment = 8{{.*}}vector<2xf32>
    // SUMS:         scf.for
    // SUMS:           vector.load {{.*}}alignment = 8{{.*}}vector<2xf32>
    gpu.func @rows(%a: !x {kvbuffer.name = "a", kvbuffer.shape = ["m", 32]}, %b: !x {kvbuffer.name = "b", kvbuffer.shape = ["n", 32]}, %sums: memref<?xf32> {kvbuffer.name = "sums", kvbuffer.shape = ["m"]})
        kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %m = memref.dim %a, %c0 : !x
      %n = memref.dim %b, %c0 : !x
      %a_slot = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %b_slot = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %zero = kvbuffer.fragment_fill 0.0 : !acc
      %least = kvbuffer.fragment_fill 0xFF800000 : !row
      %none = kvbuffer.fragment_fill 0.0 : !row
      %at = kvbuffer.dram_tile %a[%c0, %c0] valid(%m, %c32) : !x -> !tile
      %al = kvbuffer.dram_load %at into %a_slot[%c0] : !tile, !kvbuffer.buffer<#buf>
      %as = kvbuffer.lds_stage %al {younger = 0 : i64} : !kvbuffer.token<#buf>
      %af = kvbuffer.fragment_load %as[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<16x32xbf16, a>
      %r:2 = scf.for unsigned %i = %c0 to %n step %c16 iter_args(%max = %least, %sum = %none) -> (!row, !row) {
        %bt = kvbuffer.dram_tile %b[%i, %c0] valid(%n, %c32) : !x -> !tile
        %bl = kvbuffer.dram_load %bt into %b_slot[%c0] : !tile, !kvbuffer.buffer<#buf>
        %bs = kvbuffer.lds_stage %bl {younger = 0 : i64} : !kvbuffer.token<#buf>
        %bf = kvbuffer.fragment_load %bs[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<16x32xbf16, b>
        %s = kvbuffer.mma %af, %bf, %zero {transpose_b} : !kvbuffer.fragment<16x32xbf16, a>, !kvbuffer.fragment<16x32xbf16, b>, !acc
        %p, %max1, %sum1, %f = kvbuffer.online_softmax %s, %max, %sum {scale = 1.0 : f32} : !acc, !row -> !kvbuffer.fragment<16x16xbf16, a>
        scf.yield %max1, %sum1 : !row, !row
      }
      %done, %lse = kvbuffer.softmax_finish %zero, %r#0, %r#1 {scale = 1.0 : f32} : !acc, !row
      kvbuffer.row_store %lse, %sums[%c0] valid(%m) : !row, memref<?xf32>
      gpu.return
    }
  }
}
