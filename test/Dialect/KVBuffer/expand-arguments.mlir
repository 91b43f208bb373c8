// What arguments become, of kernels by lanes and of kernels of tiles: one engine
// says it (KernelArguments.h).
// RUN: kvbuf-opt %s --kvbuf-expand-arguments | FileCheck %s
// RUN: kvbuf-opt %s --convert-kvbuffer-to-gpu | FileCheck %s --check-prefix=TILES

!tokens = memref<?x8x128xbf16, strided<[?, ?, 1]>>
!paged = !kvbuffer.cache<paged, f8E4M3FN, heads = 8, head_size = 128, page_size = 16, scale = f32, granularity = 64>

!dense = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!rows = memref<?x16x2x64xbf16>
#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 64, warps = 1, mma_shape = [16, 8, 16]>

module attributes {kvbuffer.target = "sm_80"} {
gpu.module @m {
  // CHECK-LABEL: gpu.func @kernel(
  // CHECK-SAME:    %[[X:.*]]: memref<bf16, #gpu.address_space<global>>, %[[N:.*]]: i32, %[[S0:.*]]: index, %[[S1:.*]]: index, %[[W:.*]]: memref<f32, #gpu.address_space<global>>, %[[WIDE:.*]]: i32, %[[DATA:.*]]: memref<f8E4M3FN, #gpu.address_space<global>>
  // What accesses state is what addresses and strides keep to.
  // CHECK-SAME:    kvbuffer.kernel = #kvbuffer.launch<alignment = 2, args = [<pointer "x", alignment = 8>, <size rows>, <stride "x", dim = 0>, <stride "x", dim = 1>, <pointer "w">, <size wide>, <pointer "c", alignment = 4>
  // CHECK-SAME:    block = [64, 2, 1], dynamic_shared_bytes = 0, entry = "kernel", grid = [ceildiv(rows, 2), 8, 1]>
  // CHECK-SAME:    kvbuffer.tensors = [#kvbuffer.tensor<"x" : bf16[rows, 8, 128], read>, #kvbuffer.tensor<"w" : f32[ceildiv(rows, 2), wide], write>, #kvbuffer.tensor<"c" : f8E4M3FN[num_blocks, 16, 8, 128], read_write, cache>, #kvbuffer.tensor<"c.table" : i64[batch, pages_per_seq], read>, #kvbuffer.tensor<"c.lengths" : i64[batch], read>, #kvbuffer.tensor<"c.scales" : f32[num_blocks, 16, 8, 2], read_write>]
  gpu.func @kernel(%x: !tokens {kvbuffer.name = "x", kvbuffer.shape = ["rows", 8, 128]},
                   %w: memref<?x?xf32> {kvbuffer.name = "w", kvbuffer.shape = [#kvbuffer.size<ceildiv(rows, 2)>, "wide"]},
                   %c: !paged {kvbuffer.name = "c", kvbuffer.index = i64})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 2, 1>,
                         kvbuffer.grid = [#kvbuffer.size<ceildiv(rows, 2)>, 8, 1]} {
    // CHECK:         %[[PLAIN:.*]] = memref.memory_space_cast %[[X]]
    // CHECK:         %[[ROWS:.*]] = arith.index_cast %[[N]] : i32 to index
    // CHECK:         %[[TENSOR:.*]] = memref.reinterpret_cast %[[PLAIN]] to offset: [0], sizes: [%[[ROWS]], 8, 128], strides: [%[[S0]], %[[S1]], 1]
    // A type without strides of its own: rows lie as its sizes say.
    // CHECK:         %[[HALF:.*]] = arith.ceildivui %[[ROWS]], %c2
    // CHECK:         %[[COLS:.*]] = arith.index_cast %[[WIDE]]
    // CHECK:         %[[OUT:.*]] = memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [%[[HALF]], %[[COLS]]], strides: [%[[COLS]], 1]
    // CHECK:         %[[CACHE:.*]] = kvbuffer.make_cache %{{.*}} indices(%{{.*}}, %{{.*}} : memref<?x?xi64, strided<[?, 1]>>, memref<?xi64, strided<[1]>>) scales(%{{.*}} : memref<?x16x8x2xf32, strided<[?, ?, ?, 1]>>) max_prompt(%{{.*}})
    // CHECK:         kvbuffer.cache.max_prompt_length %[[CACHE]]
    // CHECK:         vector.load %[[TENSOR]]
    // CHECK:         memref.store %{{.*}}, %[[OUT]]
    %i = gpu.thread_id x
    %n = kvbuffer.cache.max_prompt_length %c : !paged
    %v = vector.load %x[%i, %i, %i] {alignment = 8} : !tokens, vector<4xbf16>
    %q = kvbuffer.cache.load_quantized %c[%i, %i, %i, %i] {alignment = 4} : !paged -> vector<4xf8E4M3FN>
    kvbuffer.cache.store %q, %c[%i, %i, %n, %i] : vector<4xf8E4M3FN>, !paged
    %s = kvbuffer.cache.load_scale %c[%i, %i, %i, %i] : !paged -> vector<1xf32>
    kvbuffer.cache.store_scale %s, %c[%i, %i, %n, %i] : vector<1xf32>, !paged
    %f = vector.extract %s[0] : f32 from vector<1xf32>
    memref.store %f, %w[%i, %n] : memref<?x?xf32>
    gpu.return
  }

  // A kernel that says its parameters itself is left alone.
  // CHECK-LABEL: gpu.func @mine(%{{.*}}: memref<f32>) kernel
  gpu.func @mine(%x: memref<f32>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, kvbuffer.kernel = #kvbuffer.launch<>} {
    gpu.return
  }

  // What one argument's type fixes is a number wherever its name stands: no
  // launch could tell it from the shapes.
  // CHECK-LABEL: gpu.func @fixed(
  // CHECK-SAME:    %{{[^:]*}}: memref<f32, {{[^>]*}}>>, %{{[^:]*}}: memref<f32, {{[^>]*}}>>) kernel
  // CHECK-SAME:    args = [<pointer "x">, <pointer "y">]
  // CHECK-SAME:    grid = [ceildiv(64, 2), 1, 1]
  // CHECK-SAME:    kvbuffer.tensors = [#kvbuffer.tensor<"x" : f32[64], read>, #kvbuffer.tensor<"y" : f32[64], write>]
  // CHECK:         sizes: [64], strides: [1]
  // CHECK:         sizes: [%c64{{[^]]*}}], strides: [1]
  gpu.func @fixed(%x: memref<64xf32> {kvbuffer.name = "x", kvbuffer.shape = ["n"]},
                  %y: memref<?xf32> {kvbuffer.name = "y", kvbuffer.shape = ["n"]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>,
                         kvbuffer.grid = [#kvbuffer.size<ceildiv("n", 2)>, 1, 1]} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<64xf32>
    memref.store %v, %y[%i] : memref<?xf32>
    gpu.return
  }

  // What is stored into a cache is stored into the memref that it is made of.
  // CHECK-LABEL: gpu.func @made(
  // CHECK-SAME:    kvbuffer.tensors = [#kvbuffer.tensor<"x" : bf16[x.0, 16, 2, 64], read_write, cache>]
  gpu.func @made(%x: !rows {kvbuffer.name = "x"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>,
                         kvbuffer.grid = [1, 1, 1]} {
    %i = gpu.thread_id x
    %c = kvbuffer.make_cache %x : !rows -> !dense
    %v = kvbuffer.cache.load %c[%i, %i, %i, %i] : !dense -> vector<8xbf16>
    kvbuffer.cache.store %v, %c[%i, %i, %i, %i] : vector<8xbf16>, !dense
    gpu.return
  }

  // Tiles know all strides, and the sizes that ops ask for: the same tensors by
  // other parameters. What nothing reads may have any element's address.
  // TILES-LABEL: gpu.func @tiles(
  // TILES-SAME:    args = [<pointer "x", alignment = 2>, <stride "x", dim = 0>, <stride "x", dim = 1>, <size rows>, <pointer "w">, <stride "w", dim = 0>
  // TILES-SAME:    <pointer "c">, <stride "c", dim = 0>, <stride "c", dim = 1{{[^>]*}}>, <stride "c", dim = 2>, <pointer "c.table">, <stride "c.table", dim = 0>, <pointer "c.lengths">, <pointer "c.scales">
  // TILES-SAME:    <pointer "unread", alignment = 2>
  // TILES-SAME:    grid = [ceildiv(rows, 2), 8, 1]
  // TILES-SAME:    kvbuffer.tensors = [#kvbuffer.tensor<"x" : bf16[rows, 8, 128], read>, #kvbuffer.tensor<"w" : f32[ceildiv(rows, 2), wide], read>, #kvbuffer.tensor<"c" : f8E4M3FN[num_blocks, 16, 8, 128], read, cache>, #kvbuffer.tensor<"c.table" : i64[batch, pages_per_seq], read>, #kvbuffer.tensor<"c.lengths" : i64[batch], read>, #kvbuffer.tensor<"c.scales" : f32[num_blocks, 16, 8, 2], read>, #kvbuffer.tensor<"unread" : bf16[3], read>]
  gpu.func @tiles(%x: !tokens {kvbuffer.name = "x", kvbuffer.shape = ["rows", 8, 128]},
                  %w: memref<?x?xf32> {kvbuffer.name = "w", kvbuffer.shape = [#kvbuffer.size<ceildiv(rows, 2)>, "wide"]},
                  %c: !paged {kvbuffer.name = "c", kvbuffer.index = i64},
                  %unread: memref<3xbf16> {kvbuffer.name = "unread"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule,
                         kvbuffer.grid = [#kvbuffer.size<ceildiv(rows, 2)>, 8, 1]} {
    %c0 = arith.constant 0 : index
    %rows = memref.dim %x, %c0 : !tokens
    %f = memref.load %w[%rows, %c0] : memref<?x?xf32>
    gpu.return
  }
}
}
