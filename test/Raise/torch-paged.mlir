//   def paged(q,kp,vp,table,n):
//       k=kp[table].reshape(B,80,2,D).transpose(1,2); v=vp[table].reshape(B,80,2,D).transpose(1,2)
//       m=torch.arange(80)[None]<n[:,None]
//       return sdpa(q.transpose(1,2),k,v,attn_mask=m[:,None,None],enable_gqa=True)
// Made by torch 2.15.0: torch.export.export, run_decompositions; iree-base-compiler
// 3.13.0: FxImporter, and torch-mlir's passes to linalg on tensors.
// RUN: %python %S/Inputs/raise_and_run.py %s --range=3=0:19 --range=4=1:80
// RUN: %python %S/Inputs/raise_and_launch.py %build sm_80 %s '--pass-options=caches' --range=3=0:19 --range=4=1:80 --f32-weights
// RUN: kvbuf-opt %s '--kvbuf-raise-attention=caches' | FileCheck %s
// REQUIRES: mlir-runner
// CHECK-NOT: tensor.extract
// CHECK: %[[K:.*]] = kvbuffer.make_cache %arg1 indices({{.*}}) : tensor<20x16x2x32xbf16> -> !kvbuffer.cache<paged, bf16, heads = 2, head_size = 32, page_size = 16>
// CHECK: %[[V:.*]] = kvbuffer.make_cache %arg2
// CHECK: kvbuffer.attention q({{.*}}) k(%[[K]]) v(%[[V]]) {{.*}}kvbuffer.lengths = "all"
// CHECK-NOT: visible

#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map2 = affine_map<(d0) -> (d0)>
#map3 = affine_map<(d0, d1) -> (0, d1)>
#map4 = affine_map<(d0, d1) -> (d0, 0)>
#map5 = affine_map<(d0, d1) -> (d0, d1)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map7 = affine_map<(d0, d1, d2, d3) -> ()>
#map8 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d0, 0, d2, d3)>
#map10 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map11 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @main(%arg0: tensor<2x1x8x32xbf16>, %arg1: tensor<20x16x2x32xbf16>, %arg2: tensor<20x16x2x32xbf16>, %arg3: tensor<2x5xi64>, %arg4: tensor<2xi64>) -> tensor<2x8x1x32xbf16> {
    %c0_i64 = arith.constant 0 : i64
    %c20_i64 = arith.constant 20 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %false = arith.constant false
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<2x8x1x80xf32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<bf16>
    %cst_3 = arith.constant dense<0xFF80> : tensor<bf16>
    %cst_4 = arith.constant 0.42044820762685725 : f64
    %cst_5 = arith.constant 0xFFF0000000000000 : f64
    %0 = tensor.empty() : tensor<2x5x16x2x32xbf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%arg3 : tensor<2x5xi64>) outs(%0 : tensor<2x5x16x2x32xbf16>) {
    ^bb0(%in: i64, %out: bf16):
      %50 = arith.cmpi slt, %in, %c0_i64 : i64
      %51 = arith.addi %in, %c20_i64 : i64
      %52 = arith.select %50, %51, %in : i64
      %53 = arith.index_cast %52 : i64 to index
      %54 = linalg.index 2 : index
      %55 = linalg.index 3 : index
      %56 = linalg.index 4 : index
      %extracted = tensor.extract %arg1[%53, %54, %55, %56] : tensor<20x16x2x32xbf16>
      linalg.yield %extracted : bf16
    } -> tensor<2x5x16x2x32xbf16>
    %collapsed = tensor.collapse_shape %1 [[0], [1, 2], [3], [4]] : tensor<2x5x16x2x32xbf16> into tensor<2x80x2x32xbf16>
    %2 = tensor.empty() : tensor<2x2x80x32xbf16>
    %transposed = linalg.transpose ins(%collapsed : tensor<2x80x2x32xbf16>) outs(%2 : tensor<2x2x80x32xbf16>) permutation = [0, 2, 1, 3] 
    %3 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%arg3 : tensor<2x5xi64>) outs(%0 : tensor<2x5x16x2x32xbf16>) {
    ^bb0(%in: i64, %out: bf16):
      %50 = arith.cmpi slt, %in, %c0_i64 : i64
      %51 = arith.addi %in, %c20_i64 : i64
      %52 = arith.select %50, %51, %in : i64
      %53 = arith.index_cast %52 : i64 to index
      %54 = linalg.index 2 : index
      %55 = linalg.index 3 : index
      %56 = linalg.index 4 : index
      %extracted = tensor.extract %arg2[%53, %54, %55, %56] : tensor<20x16x2x32xbf16>
      linalg.yield %extracted : bf16
    } -> tensor<2x5x16x2x32xbf16>
    %collapsed_6 = tensor.collapse_shape %3 [[0], [1, 2], [3], [4]] : tensor<2x5x16x2x32xbf16> into tensor<2x80x2x32xbf16>
    %transposed_7 = linalg.transpose ins(%collapsed_6 : tensor<2x80x2x32xbf16>) outs(%2 : tensor<2x2x80x32xbf16>) permutation = [0, 2, 1, 3] 
    %4 = tensor.empty() : tensor<80xi64>
    %5 = linalg.generic {indexing_maps = [#map2], iterator_types = ["parallel"]} outs(%4 : tensor<80xi64>) {
    ^bb0(%out: i64):
      %50 = linalg.index 0 : index
      %51 = arith.index_cast %50 : index to i64
      linalg.yield %51 : i64
    } -> tensor<80xi64>
    %expanded = tensor.expand_shape %5 [[0, 1]] output_shape [1, 80] : tensor<80xi64> into tensor<1x80xi64>
    %expanded_8 = tensor.expand_shape %arg4 [[0, 1]] output_shape [2, 1] : tensor<2xi64> into tensor<2x1xi64>
    %6 = tensor.empty() : tensor<2x80xi1>
    %7 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel"]} ins(%expanded, %expanded_8 : tensor<1x80xi64>, tensor<2x1xi64>) outs(%6 : tensor<2x80xi1>) {
    ^bb0(%in: i64, %in_20: i64, %out: i1):
      %50 = arith.cmpi slt, %in, %in_20 : i64
      linalg.yield %50 : i1
    } -> tensor<2x80xi1>
    %8 = tensor.empty() : tensor<2x8x1x32xbf16>
    %transposed_9 = linalg.transpose ins(%arg0 : tensor<2x1x8x32xbf16>) outs(%8 : tensor<2x8x1x32xbf16>) permutation = [0, 2, 1, 3] 
    %expanded_10 = tensor.expand_shape %7 [[0], [1, 2, 3]] output_shape [2, 1, 1, 80] : tensor<2x80xi1> into tensor<2x1x1x80xi1>
    %9 = tensor.empty() : tensor<2x1x1x80xbf16>
    %10 = linalg.generic {indexing_maps = [#map6, #map7, #map7, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_10, %cst_2, %cst_3 : tensor<2x1x1x80xi1>, tensor<bf16>, tensor<bf16>) outs(%9 : tensor<2x1x1x80xbf16>) {
    ^bb0(%in: i1, %in_20: bf16, %in_21: bf16, %out: bf16):
      %50 = arith.select %in, %in_20, %in_21 : bf16
      linalg.yield %50 : bf16
    } -> tensor<2x1x1x80xbf16>
    %11 = tensor.empty() : tensor<2x8x1x32xf32>
    %12 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_9 : tensor<2x8x1x32xbf16>) outs(%11 : tensor<2x8x1x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %50 = arith.extf %in : bf16 to f32
      linalg.yield %50 : f32
    } -> tensor<2x8x1x32xf32>
    %13 = tensor.empty() : tensor<2x2x80x32xf32>
    %14 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x2x80x32xbf16>) outs(%13 : tensor<2x2x80x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %50 = arith.extf %in : bf16 to f32
      linalg.yield %50 : f32
    } -> tensor<2x2x80x32xf32>
    %15 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_7 : tensor<2x2x80x32xbf16>) outs(%13 : tensor<2x2x80x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %50 = arith.extf %in : bf16 to f32
      linalg.yield %50 : f32
    } -> tensor<2x2x80x32xf32>
    %16 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12 : tensor<2x8x1x32xf32>) outs(%11 : tensor<2x8x1x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = arith.truncf %cst_4 : f64 to f32
      %51 = arith.mulf %in, %50 : f32
      linalg.yield %51 : f32
    } -> tensor<2x8x1x32xf32>
    %17 = tensor.empty() : tensor<2x2x4x80x32xf32>
    %18 = linalg.generic {indexing_maps = [#map8, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%14 : tensor<2x2x80x32xf32>) outs(%17 : tensor<2x2x4x80x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x4x80x32xf32>
    %collapsed_11 = tensor.collapse_shape %18 [[0], [1, 2], [3], [4]] : tensor<2x2x4x80x32xf32> into tensor<2x8x80x32xf32>
    %19 = linalg.generic {indexing_maps = [#map8, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%15 : tensor<2x2x80x32xf32>) outs(%17 : tensor<2x2x4x80x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x4x80x32xf32>
    %20 = tensor.empty() : tensor<2x8x32x80xf32>
    %transposed_12 = linalg.transpose ins(%collapsed_11 : tensor<2x8x80x32xf32>) outs(%20 : tensor<2x8x32x80xf32>) permutation = [0, 1, 3, 2] 
    %21 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_12 : tensor<2x8x32x80xf32>) outs(%20 : tensor<2x8x32x80xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = arith.truncf %cst_4 : f64 to f32
      %51 = arith.mulf %in, %50 : f32
      linalg.yield %51 : f32
    } -> tensor<2x8x32x80xf32>
    %collapsed_13 = tensor.collapse_shape %16 [[0, 1], [2], [3]] : tensor<2x8x1x32xf32> into tensor<16x1x32xf32>
    %collapsed_14 = tensor.collapse_shape %21 [[0, 1], [2], [3]] : tensor<2x8x32x80xf32> into tensor<16x32x80xf32>
    %22 = tensor.empty() : tensor<16x1x80xf32>
    %23 = linalg.fill ins(%cst : f32) outs(%22 : tensor<16x1x80xf32>) -> tensor<16x1x80xf32>
    %24 = linalg.batch_matmul ins(%collapsed_13, %collapsed_14 : tensor<16x1x32xf32>, tensor<16x32x80xf32>) outs(%23 : tensor<16x1x80xf32>) -> tensor<16x1x80xf32>
    %expanded_15 = tensor.expand_shape %24 [[0, 1], [2], [3]] output_shape [2, 8, 1, 80] : tensor<16x1x80xf32> into tensor<2x8x1x80xf32>
    %25 = tensor.empty() : tensor<2x8x1x80xf32>
    %26 = linalg.generic {indexing_maps = [#map6, #map9, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_15, %10 : tensor<2x8x1x80xf32>, tensor<2x1x1x80xbf16>) outs(%25 : tensor<2x8x1x80xf32>) {
    ^bb0(%in: f32, %in_20: bf16, %out: f32):
      %50 = arith.extf %in_20 : bf16 to f32
      %51 = arith.addf %in, %50 : f32
      linalg.yield %51 : f32
    } -> tensor<2x8x1x80xf32>
    %27 = tensor.empty() : tensor<2x8x1xi64>
    %28 = linalg.fill ins(%c0_i64 : i64) outs(%27 : tensor<2x8x1xi64>) -> tensor<2x8x1xi64>
    %29 = tensor.empty() : tensor<2x8x1xf32>
    %30 = linalg.fill ins(%cst_0 : f32) outs(%29 : tensor<2x8x1xf32>) -> tensor<2x8x1xf32>
    %31:2 = linalg.generic {indexing_maps = [#map6, #map10, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%26 : tensor<2x8x1x80xf32>) outs(%30, %28 : tensor<2x8x1xf32>, tensor<2x8x1xi64>) {
    ^bb0(%in: f32, %out: f32, %out_20: i64):
      %50 = linalg.index 3 : index
      %51 = arith.index_cast %50 : index to i64
      %52 = arith.maximumf %in, %out : f32
      %53 = arith.cmpf ogt, %in, %out : f32
      %54 = arith.select %53, %51, %out_20 : i64
      linalg.yield %52, %54 : f32, i64
    } -> (tensor<2x8x1xf32>, tensor<2x8x1xi64>)
    %expanded_16 = tensor.expand_shape %31#0 [[0], [1], [2, 3]] output_shape [2, 8, 1, 1] : tensor<2x8x1xf32> into tensor<2x8x1x1xf32>
    %32 = linalg.generic {indexing_maps = [#map6, #map11, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%26, %expanded_16 : tensor<2x8x1x80xf32>, tensor<2x8x1x1xf32>) outs(%25 : tensor<2x8x1x80xf32>) {
    ^bb0(%in: f32, %in_20: f32, %out: f32):
      %50 = arith.subf %in, %in_20 : f32
      linalg.yield %50 : f32
    } -> tensor<2x8x1x80xf32>
    %33 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%32 : tensor<2x8x1x80xf32>) outs(%25 : tensor<2x8x1x80xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = math.exp %in : f32
      linalg.yield %50 : f32
    } -> tensor<2x8x1x80xf32>
    %34 = tensor.empty() : tensor<2x8x1x1xf32>
    %35 = linalg.fill ins(%cst : f32) outs(%34 : tensor<2x8x1x1xf32>) -> tensor<2x8x1x1xf32>
    %36 = linalg.generic {indexing_maps = [#map6, #map11], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%33 : tensor<2x8x1x80xf32>) outs(%35 : tensor<2x8x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = arith.addf %in, %out : f32
      linalg.yield %50 : f32
    } -> tensor<2x8x1x1xf32>
    %37 = linalg.generic {indexing_maps = [#map6, #map11, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%33, %36 : tensor<2x8x1x80xf32>, tensor<2x8x1x1xf32>) outs(%25 : tensor<2x8x1x80xf32>) {
    ^bb0(%in: f32, %in_20: f32, %out: f32):
      %50 = arith.divf %in, %in_20 : f32
      linalg.yield %50 : f32
    } -> tensor<2x8x1x80xf32>
    %38 = tensor.empty() : tensor<2x8x1x80xi1>
    %39 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%26 : tensor<2x8x1x80xf32>) outs(%38 : tensor<2x8x1x80xi1>) {
    ^bb0(%in: f32, %out: i1):
      %50 = arith.extf %in : f32 to f64
      %51 = arith.cmpf oeq, %50, %cst_5 : f64
      linalg.yield %51 : i1
    } -> tensor<2x8x1x80xi1>
    %40 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%39 : tensor<2x8x1x80xi1>) outs(%38 : tensor<2x8x1x80xi1>) {
    ^bb0(%in: i1, %out: i1):
      %50 = arith.cmpi eq, %in, %false : i1
      linalg.yield %50 : i1
    } -> tensor<2x8x1x80xi1>
    %41 = tensor.empty() : tensor<2x8x1x1xi1>
    %42 = linalg.fill ins(%false : i1) outs(%41 : tensor<2x8x1x1xi1>) -> tensor<2x8x1x1xi1>
    %43 = linalg.generic {indexing_maps = [#map6, #map11], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%40 : tensor<2x8x1x80xi1>) outs(%42 : tensor<2x8x1x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %50 = arith.ori %in, %out : i1
      linalg.yield %50 : i1
    } -> tensor<2x8x1x1xi1>
    %44 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%43 : tensor<2x8x1x1xi1>) outs(%41 : tensor<2x8x1x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %50 = arith.cmpi eq, %in, %false : i1
      linalg.yield %50 : i1
    } -> tensor<2x8x1x1xi1>
    %45 = linalg.generic {indexing_maps = [#map11, #map6, #map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%44, %cst_1, %37 : tensor<2x8x1x1xi1>, tensor<2x8x1x80xf32>, tensor<2x8x1x80xf32>) outs(%25 : tensor<2x8x1x80xf32>) {
    ^bb0(%in: i1, %in_20: f32, %in_21: f32, %out: f32):
      %50 = arith.select %in, %in_20, %in_21 : f32
      linalg.yield %50 : f32
    } -> tensor<2x8x1x80xf32>
    %collapsed_17 = tensor.collapse_shape %45 [[0, 1], [2], [3]] : tensor<2x8x1x80xf32> into tensor<16x1x80xf32>
    %collapsed_18 = tensor.collapse_shape %19 [[0, 1, 2], [3], [4]] : tensor<2x2x4x80x32xf32> into tensor<16x80x32xf32>
    %46 = tensor.empty() : tensor<16x1x32xf32>
    %47 = linalg.fill ins(%cst : f32) outs(%46 : tensor<16x1x32xf32>) -> tensor<16x1x32xf32>
    %48 = linalg.batch_matmul ins(%collapsed_17, %collapsed_18 : tensor<16x1x80xf32>, tensor<16x80x32xf32>) outs(%47 : tensor<16x1x32xf32>) -> tensor<16x1x32xf32>
    %expanded_19 = tensor.expand_shape %48 [[0, 1], [2], [3]] output_shape [2, 8, 1, 32] : tensor<16x1x32xf32> into tensor<2x8x1x32xf32>
    %49 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_19 : tensor<2x8x1x32xf32>) outs(%8 : tensor<2x8x1x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %50 = arith.truncf %in : f32 to bf16
      linalg.yield %50 : bf16
    } -> tensor<2x8x1x32xbf16>
    return %49 : tensor<2x8x1x32xbf16>
  }
}

