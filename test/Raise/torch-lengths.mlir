//   def lengths(q,k,v,n):
//       m=torch.arange(T)[None]<n[:,None]
//       return sdpa(q,k,v,attn_mask=m[:,None,None])
// Made by torch 2.15.0: torch.export.export, run_decompositions; iree-base-compiler
// 3.13.0: FxImporter, and torch-mlir's passes to linalg on tensors.
// RUN: %python %S/Inputs/raise_and_run.py %s --range=3=0:24
// RUN: %python %S/Inputs/raise_and_launch.py %build sm_80 %s --pass-options=caches --range=3=0:24 --f32-weights
// RUN: kvbuf-opt %s '--kvbuf-raise-attention=caches' | FileCheck %s
// REQUIRES: mlir-runner
// CHECK: kvbuffer.make_cache %{{.*}} indices({{.*}}) : {{.*}} -> !kvbuffer.cache<continuous
// CHECK: kvbuffer.attention {{.*}}kvbuffer.lengths = "all"
// CHECK-NOT: visible

#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1) -> (0, d1)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map5 = affine_map<(d0, d1, d2, d3) -> ()>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, 0, 0, d3)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @main(%arg0: tensor<2x4x24x32xbf16>, %arg1: tensor<2x4x24x32xbf16>, %arg2: tensor<2x4x24x32xbf16>, %arg3: tensor<2xi64>) -> tensor<2x4x24x32xbf16> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %false = arith.constant false
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<2x4x24x24xf32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<bf16>
    %cst_3 = arith.constant dense<0xFF80> : tensor<bf16>
    %cst_4 = arith.constant 0.42044820762685725 : f64
    %cst_5 = arith.constant 0xFFF0000000000000 : f64
    %0 = tensor.empty() : tensor<24xi64>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<24xi64>) {
    ^bb0(%out: i64):
      %42 = linalg.index 0 : index
      %43 = arith.index_cast %42 : index to i64
      linalg.yield %43 : i64
    } -> tensor<24xi64>
    %expanded = tensor.expand_shape %1 [[0, 1]] output_shape [1, 24] : tensor<24xi64> into tensor<1x24xi64>
    %expanded_6 = tensor.expand_shape %arg3 [[0, 1]] output_shape [2, 1] : tensor<2xi64> into tensor<2x1xi64>
    %2 = tensor.empty() : tensor<2x24xi1>
    %3 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel"]} ins(%expanded, %expanded_6 : tensor<1x24xi64>, tensor<2x1xi64>) outs(%2 : tensor<2x24xi1>) {
    ^bb0(%in: i64, %in_14: i64, %out: i1):
      %42 = arith.cmpi slt, %in, %in_14 : i64
      linalg.yield %42 : i1
    } -> tensor<2x24xi1>
    %expanded_7 = tensor.expand_shape %3 [[0], [1, 2, 3]] output_shape [2, 1, 1, 24] : tensor<2x24xi1> into tensor<2x1x1x24xi1>
    %4 = tensor.empty() : tensor<2x1x1x24xbf16>
    %5 = linalg.generic {indexing_maps = [#map4, #map5, #map5, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_7, %cst_2, %cst_3 : tensor<2x1x1x24xi1>, tensor<bf16>, tensor<bf16>) outs(%4 : tensor<2x1x1x24xbf16>) {
    ^bb0(%in: i1, %in_14: bf16, %in_15: bf16, %out: bf16):
      %42 = arith.select %in, %in_14, %in_15 : bf16
      linalg.yield %42 : bf16
    } -> tensor<2x1x1x24xbf16>
    %6 = tensor.empty() : tensor<2x4x24x32xf32>
    %7 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x4x24x32xbf16>) outs(%6 : tensor<2x4x24x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %42 = arith.extf %in : bf16 to f32
      linalg.yield %42 : f32
    } -> tensor<2x4x24x32xf32>
    %8 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x4x24x32xbf16>) outs(%6 : tensor<2x4x24x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %42 = arith.extf %in : bf16 to f32
      linalg.yield %42 : f32
    } -> tensor<2x4x24x32xf32>
    %9 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x4x24x32xbf16>) outs(%6 : tensor<2x4x24x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %42 = arith.extf %in : bf16 to f32
      linalg.yield %42 : f32
    } -> tensor<2x4x24x32xf32>
    %10 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7 : tensor<2x4x24x32xf32>) outs(%6 : tensor<2x4x24x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %42 = arith.truncf %cst_4 : f64 to f32
      %43 = arith.mulf %in, %42 : f32
      linalg.yield %43 : f32
    } -> tensor<2x4x24x32xf32>
    %11 = tensor.empty() : tensor<2x4x32x24xf32>
    %transposed = linalg.transpose ins(%8 : tensor<2x4x24x32xf32>) outs(%11 : tensor<2x4x32x24xf32>) permutation = [0, 1, 3, 2] 
    %12 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x4x32x24xf32>) outs(%11 : tensor<2x4x32x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %42 = arith.truncf %cst_4 : f64 to f32
      %43 = arith.mulf %in, %42 : f32
      linalg.yield %43 : f32
    } -> tensor<2x4x32x24xf32>
    %collapsed = tensor.collapse_shape %10 [[0, 1], [2], [3]] : tensor<2x4x24x32xf32> into tensor<8x24x32xf32>
    %collapsed_8 = tensor.collapse_shape %12 [[0, 1], [2], [3]] : tensor<2x4x32x24xf32> into tensor<8x32x24xf32>
    %13 = tensor.empty() : tensor<8x24x24xf32>
    %14 = linalg.fill ins(%cst : f32) outs(%13 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %15 = linalg.batch_matmul ins(%collapsed, %collapsed_8 : tensor<8x24x32xf32>, tensor<8x32x24xf32>) outs(%14 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %expanded_9 = tensor.expand_shape %15 [[0, 1], [2], [3]] output_shape [2, 4, 24, 24] : tensor<8x24x24xf32> into tensor<2x4x24x24xf32>
    %16 = tensor.empty() : tensor<2x4x24x24xf32>
    %17 = linalg.generic {indexing_maps = [#map4, #map6, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_9, %5 : tensor<2x4x24x24xf32>, tensor<2x1x1x24xbf16>) outs(%16 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_14: bf16, %out: f32):
      %42 = arith.extf %in_14 : bf16 to f32
      %43 = arith.addf %in, %42 : f32
      linalg.yield %43 : f32
    } -> tensor<2x4x24x24xf32>
    %18 = tensor.empty() : tensor<2x4x24xi64>
    %19 = linalg.fill ins(%c0_i64 : i64) outs(%18 : tensor<2x4x24xi64>) -> tensor<2x4x24xi64>
    %20 = tensor.empty() : tensor<2x4x24xf32>
    %21 = linalg.fill ins(%cst_0 : f32) outs(%20 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %22:2 = linalg.generic {indexing_maps = [#map4, #map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%17 : tensor<2x4x24x24xf32>) outs(%21, %19 : tensor<2x4x24xf32>, tensor<2x4x24xi64>) {
    ^bb0(%in: f32, %out: f32, %out_14: i64):
      %42 = linalg.index 3 : index
      %43 = arith.index_cast %42 : index to i64
      %44 = arith.maximumf %in, %out : f32
      %45 = arith.cmpf ogt, %in, %out : f32
      %46 = arith.select %45, %43, %out_14 : i64
      linalg.yield %44, %46 : f32, i64
    } -> (tensor<2x4x24xf32>, tensor<2x4x24xi64>)
    %expanded_10 = tensor.expand_shape %22#0 [[0], [1], [2, 3]] output_shape [2, 4, 24, 1] : tensor<2x4x24xf32> into tensor<2x4x24x1xf32>
    %23 = linalg.generic {indexing_maps = [#map4, #map8, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17, %expanded_10 : tensor<2x4x24x24xf32>, tensor<2x4x24x1xf32>) outs(%16 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_14: f32, %out: f32):
      %42 = arith.subf %in, %in_14 : f32
      linalg.yield %42 : f32
    } -> tensor<2x4x24x24xf32>
    %24 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%23 : tensor<2x4x24x24xf32>) outs(%16 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %42 = math.exp %in : f32
      linalg.yield %42 : f32
    } -> tensor<2x4x24x24xf32>
    %25 = tensor.empty() : tensor<2x4x24x1xf32>
    %26 = linalg.fill ins(%cst : f32) outs(%25 : tensor<2x4x24x1xf32>) -> tensor<2x4x24x1xf32>
    %27 = linalg.generic {indexing_maps = [#map4, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%24 : tensor<2x4x24x24xf32>) outs(%26 : tensor<2x4x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %42 = arith.addf %in, %out : f32
      linalg.yield %42 : f32
    } -> tensor<2x4x24x1xf32>
    %28 = linalg.generic {indexing_maps = [#map4, #map8, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24, %27 : tensor<2x4x24x24xf32>, tensor<2x4x24x1xf32>) outs(%16 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_14: f32, %out: f32):
      %42 = arith.divf %in, %in_14 : f32
      linalg.yield %42 : f32
    } -> tensor<2x4x24x24xf32>
    %29 = tensor.empty() : tensor<2x4x24x24xi1>
    %30 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17 : tensor<2x4x24x24xf32>) outs(%29 : tensor<2x4x24x24xi1>) {
    ^bb0(%in: f32, %out: i1):
      %42 = arith.extf %in : f32 to f64
      %43 = arith.cmpf oeq, %42, %cst_5 : f64
      linalg.yield %43 : i1
    } -> tensor<2x4x24x24xi1>
    %31 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%30 : tensor<2x4x24x24xi1>) outs(%29 : tensor<2x4x24x24xi1>) {
    ^bb0(%in: i1, %out: i1):
      %42 = arith.cmpi eq, %in, %false : i1
      linalg.yield %42 : i1
    } -> tensor<2x4x24x24xi1>
    %32 = tensor.empty() : tensor<2x4x24x1xi1>
    %33 = linalg.fill ins(%false : i1) outs(%32 : tensor<2x4x24x1xi1>) -> tensor<2x4x24x1xi1>
    %34 = linalg.generic {indexing_maps = [#map4, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%31 : tensor<2x4x24x24xi1>) outs(%33 : tensor<2x4x24x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %42 = arith.ori %in, %out : i1
      linalg.yield %42 : i1
    } -> tensor<2x4x24x1xi1>
    %35 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%34 : tensor<2x4x24x1xi1>) outs(%32 : tensor<2x4x24x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %42 = arith.cmpi eq, %in, %false : i1
      linalg.yield %42 : i1
    } -> tensor<2x4x24x1xi1>
    %36 = linalg.generic {indexing_maps = [#map8, #map4, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%35, %cst_1, %28 : tensor<2x4x24x1xi1>, tensor<2x4x24x24xf32>, tensor<2x4x24x24xf32>) outs(%16 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: i1, %in_14: f32, %in_15: f32, %out: f32):
      %42 = arith.select %in, %in_14, %in_15 : f32
      linalg.yield %42 : f32
    } -> tensor<2x4x24x24xf32>
    %collapsed_11 = tensor.collapse_shape %36 [[0, 1], [2], [3]] : tensor<2x4x24x24xf32> into tensor<8x24x24xf32>
    %collapsed_12 = tensor.collapse_shape %9 [[0, 1], [2], [3]] : tensor<2x4x24x32xf32> into tensor<8x24x32xf32>
    %37 = tensor.empty() : tensor<8x24x32xf32>
    %38 = linalg.fill ins(%cst : f32) outs(%37 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %39 = linalg.batch_matmul ins(%collapsed_11, %collapsed_12 : tensor<8x24x24xf32>, tensor<8x24x32xf32>) outs(%38 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %expanded_13 = tensor.expand_shape %39 [[0, 1], [2], [3]] output_shape [2, 4, 24, 32] : tensor<8x24x32xf32> into tensor<2x4x24x32xf32>
    %40 = tensor.empty() : tensor<2x4x24x32xbf16>
    %41 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_13 : tensor<2x4x24x32xf32>) outs(%40 : tensor<2x4x24x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %42 = arith.truncf %in : f32 to bf16
      linalg.yield %42 : bf16
    } -> tensor<2x4x24x32xbf16>
    return %41 : tensor<2x4x24x32xbf16>
  }
}

