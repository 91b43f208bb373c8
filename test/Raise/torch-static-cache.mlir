//   def static_cache(q,k,v,pos):
//       m=torch.arange(64)[None]<=pos[:,None]
//       return sdpa(q,k,v,attn_mask=m[None,None],enable_gqa=True)
// Made by torch 2.15.0: torch.export.export, run_decompositions; iree-base-compiler
// 3.13.0: FxImporter, and torch-mlir's passes to linalg on tensors.
// RUN: %python %S/Inputs/raise_and_run.py %s --range=3=0:63
// RUN: %python %S/Inputs/raise_and_launch.py %build sm_80 %s --pass-options=caches --range=3=0:63 --f32-weights
// RUN: kvbuf-opt %s '--kvbuf-raise-attention=caches' | FileCheck %s
// REQUIRES: mlir-runner
// CHECK: kvbuffer.make_cache %{{.*}} indices({{.*}}) : {{.*}} -> !kvbuffer.cache<continuous
// CHECK: kvbuffer.attention {{.*}}kvbuffer.lengths = "all"
// CHECK-NOT: visible

#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> ()>
#map5 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map6 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map7 = affine_map<(d0, d1, d2, d3) -> (0, 0, d2, d3)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @main(%arg0: tensor<2x8x1x32xbf16>, %arg1: tensor<2x2x64x32xbf16>, %arg2: tensor<2x2x64x32xbf16>, %arg3: tensor<1xi64>) -> tensor<2x8x1x32xbf16> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %false = arith.constant false
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<2x8x1x64xf32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<bf16>
    %cst_3 = arith.constant dense<0xFF80> : tensor<bf16>
    %cst_4 = arith.constant 0.42044820762685725 : f64
    %cst_5 = arith.constant 0xFFF0000000000000 : f64
    %0 = tensor.empty() : tensor<64xi64>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<64xi64>) {
    ^bb0(%out: i64):
      %46 = linalg.index 0 : index
      %47 = arith.index_cast %46 : index to i64
      linalg.yield %47 : i64
    } -> tensor<64xi64>
    %expanded = tensor.expand_shape %1 [[0, 1]] output_shape [1, 64] : tensor<64xi64> into tensor<1x64xi64>
    %expanded_6 = tensor.expand_shape %arg3 [[0, 1]] output_shape [1, 1] : tensor<1xi64> into tensor<1x1xi64>
    %2 = tensor.empty() : tensor<1x64xi1>
    %3 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel"]} ins(%expanded, %expanded_6 : tensor<1x64xi64>, tensor<1x1xi64>) outs(%2 : tensor<1x64xi1>) {
    ^bb0(%in: i64, %in_15: i64, %out: i1):
      %46 = arith.cmpi sle, %in, %in_15 : i64
      linalg.yield %46 : i1
    } -> tensor<1x64xi1>
    %expanded_7 = tensor.expand_shape %3 [[0, 1, 2], [3]] output_shape [1, 1, 1, 64] : tensor<1x64xi1> into tensor<1x1x1x64xi1>
    %4 = tensor.empty() : tensor<1x1x1x64xbf16>
    %5 = linalg.generic {indexing_maps = [#map3, #map4, #map4, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_7, %cst_2, %cst_3 : tensor<1x1x1x64xi1>, tensor<bf16>, tensor<bf16>) outs(%4 : tensor<1x1x1x64xbf16>) {
    ^bb0(%in: i1, %in_15: bf16, %in_16: bf16, %out: bf16):
      %46 = arith.select %in, %in_15, %in_16 : bf16
      linalg.yield %46 : bf16
    } -> tensor<1x1x1x64xbf16>
    %6 = tensor.empty() : tensor<2x8x1x32xf32>
    %7 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x8x1x32xbf16>) outs(%6 : tensor<2x8x1x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %46 = arith.extf %in : bf16 to f32
      linalg.yield %46 : f32
    } -> tensor<2x8x1x32xf32>
    %8 = tensor.empty() : tensor<2x2x64x32xf32>
    %9 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x2x64x32xbf16>) outs(%8 : tensor<2x2x64x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %46 = arith.extf %in : bf16 to f32
      linalg.yield %46 : f32
    } -> tensor<2x2x64x32xf32>
    %10 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x2x64x32xbf16>) outs(%8 : tensor<2x2x64x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %46 = arith.extf %in : bf16 to f32
      linalg.yield %46 : f32
    } -> tensor<2x2x64x32xf32>
    %11 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7 : tensor<2x8x1x32xf32>) outs(%6 : tensor<2x8x1x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %46 = arith.truncf %cst_4 : f64 to f32
      %47 = arith.mulf %in, %46 : f32
      linalg.yield %47 : f32
    } -> tensor<2x8x1x32xf32>
    %12 = tensor.empty() : tensor<2x2x4x64x32xf32>
    %13 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%9 : tensor<2x2x64x32xf32>) outs(%12 : tensor<2x2x4x64x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x4x64x32xf32>
    %collapsed = tensor.collapse_shape %13 [[0], [1, 2], [3], [4]] : tensor<2x2x4x64x32xf32> into tensor<2x8x64x32xf32>
    %14 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%10 : tensor<2x2x64x32xf32>) outs(%12 : tensor<2x2x4x64x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x4x64x32xf32>
    %15 = tensor.empty() : tensor<2x8x32x64xf32>
    %transposed = linalg.transpose ins(%collapsed : tensor<2x8x64x32xf32>) outs(%15 : tensor<2x8x32x64xf32>) permutation = [0, 1, 3, 2] 
    %16 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x8x32x64xf32>) outs(%15 : tensor<2x8x32x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %46 = arith.truncf %cst_4 : f64 to f32
      %47 = arith.mulf %in, %46 : f32
      linalg.yield %47 : f32
    } -> tensor<2x8x32x64xf32>
    %collapsed_8 = tensor.collapse_shape %11 [[0, 1], [2], [3]] : tensor<2x8x1x32xf32> into tensor<16x1x32xf32>
    %collapsed_9 = tensor.collapse_shape %16 [[0, 1], [2], [3]] : tensor<2x8x32x64xf32> into tensor<16x32x64xf32>
    %17 = tensor.empty() : tensor<16x1x64xf32>
    %18 = linalg.fill ins(%cst : f32) outs(%17 : tensor<16x1x64xf32>) -> tensor<16x1x64xf32>
    %19 = linalg.batch_matmul ins(%collapsed_8, %collapsed_9 : tensor<16x1x32xf32>, tensor<16x32x64xf32>) outs(%18 : tensor<16x1x64xf32>) -> tensor<16x1x64xf32>
    %expanded_10 = tensor.expand_shape %19 [[0, 1], [2], [3]] output_shape [2, 8, 1, 64] : tensor<16x1x64xf32> into tensor<2x8x1x64xf32>
    %20 = tensor.empty() : tensor<2x8x1x64xf32>
    %21 = linalg.generic {indexing_maps = [#map3, #map7, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_10, %5 : tensor<2x8x1x64xf32>, tensor<1x1x1x64xbf16>) outs(%20 : tensor<2x8x1x64xf32>) {
    ^bb0(%in: f32, %in_15: bf16, %out: f32):
      %46 = arith.extf %in_15 : bf16 to f32
      %47 = arith.addf %in, %46 : f32
      linalg.yield %47 : f32
    } -> tensor<2x8x1x64xf32>
    %22 = tensor.empty() : tensor<2x8x1xi64>
    %23 = linalg.fill ins(%c0_i64 : i64) outs(%22 : tensor<2x8x1xi64>) -> tensor<2x8x1xi64>
    %24 = tensor.empty() : tensor<2x8x1xf32>
    %25 = linalg.fill ins(%cst_0 : f32) outs(%24 : tensor<2x8x1xf32>) -> tensor<2x8x1xf32>
    %26:2 = linalg.generic {indexing_maps = [#map3, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%21 : tensor<2x8x1x64xf32>) outs(%25, %23 : tensor<2x8x1xf32>, tensor<2x8x1xi64>) {
    ^bb0(%in: f32, %out: f32, %out_15: i64):
      %46 = linalg.index 3 : index
      %47 = arith.index_cast %46 : index to i64
      %48 = arith.maximumf %in, %out : f32
      %49 = arith.cmpf ogt, %in, %out : f32
      %50 = arith.select %49, %47, %out_15 : i64
      linalg.yield %48, %50 : f32, i64
    } -> (tensor<2x8x1xf32>, tensor<2x8x1xi64>)
    %expanded_11 = tensor.expand_shape %26#0 [[0], [1], [2, 3]] output_shape [2, 8, 1, 1] : tensor<2x8x1xf32> into tensor<2x8x1x1xf32>
    %27 = linalg.generic {indexing_maps = [#map3, #map9, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21, %expanded_11 : tensor<2x8x1x64xf32>, tensor<2x8x1x1xf32>) outs(%20 : tensor<2x8x1x64xf32>) {
    ^bb0(%in: f32, %in_15: f32, %out: f32):
      %46 = arith.subf %in, %in_15 : f32
      linalg.yield %46 : f32
    } -> tensor<2x8x1x64xf32>
    %28 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27 : tensor<2x8x1x64xf32>) outs(%20 : tensor<2x8x1x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %46 = math.exp %in : f32
      linalg.yield %46 : f32
    } -> tensor<2x8x1x64xf32>
    %29 = tensor.empty() : tensor<2x8x1x1xf32>
    %30 = linalg.fill ins(%cst : f32) outs(%29 : tensor<2x8x1x1xf32>) -> tensor<2x8x1x1xf32>
    %31 = linalg.generic {indexing_maps = [#map3, #map9], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%28 : tensor<2x8x1x64xf32>) outs(%30 : tensor<2x8x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %46 = arith.addf %in, %out : f32
      linalg.yield %46 : f32
    } -> tensor<2x8x1x1xf32>
    %32 = linalg.generic {indexing_maps = [#map3, #map9, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28, %31 : tensor<2x8x1x64xf32>, tensor<2x8x1x1xf32>) outs(%20 : tensor<2x8x1x64xf32>) {
    ^bb0(%in: f32, %in_15: f32, %out: f32):
      %46 = arith.divf %in, %in_15 : f32
      linalg.yield %46 : f32
    } -> tensor<2x8x1x64xf32>
    %33 = tensor.empty() : tensor<2x8x1x64xi1>
    %34 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21 : tensor<2x8x1x64xf32>) outs(%33 : tensor<2x8x1x64xi1>) {
    ^bb0(%in: f32, %out: i1):
      %46 = arith.extf %in : f32 to f64
      %47 = arith.cmpf oeq, %46, %cst_5 : f64
      linalg.yield %47 : i1
    } -> tensor<2x8x1x64xi1>
    %35 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%34 : tensor<2x8x1x64xi1>) outs(%33 : tensor<2x8x1x64xi1>) {
    ^bb0(%in: i1, %out: i1):
      %46 = arith.cmpi eq, %in, %false : i1
      linalg.yield %46 : i1
    } -> tensor<2x8x1x64xi1>
    %36 = tensor.empty() : tensor<2x8x1x1xi1>
    %37 = linalg.fill ins(%false : i1) outs(%36 : tensor<2x8x1x1xi1>) -> tensor<2x8x1x1xi1>
    %38 = linalg.generic {indexing_maps = [#map3, #map9], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%35 : tensor<2x8x1x64xi1>) outs(%37 : tensor<2x8x1x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %46 = arith.ori %in, %out : i1
      linalg.yield %46 : i1
    } -> tensor<2x8x1x1xi1>
    %39 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%38 : tensor<2x8x1x1xi1>) outs(%36 : tensor<2x8x1x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %46 = arith.cmpi eq, %in, %false : i1
      linalg.yield %46 : i1
    } -> tensor<2x8x1x1xi1>
    %40 = linalg.generic {indexing_maps = [#map9, #map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%39, %cst_1, %32 : tensor<2x8x1x1xi1>, tensor<2x8x1x64xf32>, tensor<2x8x1x64xf32>) outs(%20 : tensor<2x8x1x64xf32>) {
    ^bb0(%in: i1, %in_15: f32, %in_16: f32, %out: f32):
      %46 = arith.select %in, %in_15, %in_16 : f32
      linalg.yield %46 : f32
    } -> tensor<2x8x1x64xf32>
    %collapsed_12 = tensor.collapse_shape %40 [[0, 1], [2], [3]] : tensor<2x8x1x64xf32> into tensor<16x1x64xf32>
    %collapsed_13 = tensor.collapse_shape %14 [[0, 1, 2], [3], [4]] : tensor<2x2x4x64x32xf32> into tensor<16x64x32xf32>
    %41 = tensor.empty() : tensor<16x1x32xf32>
    %42 = linalg.fill ins(%cst : f32) outs(%41 : tensor<16x1x32xf32>) -> tensor<16x1x32xf32>
    %43 = linalg.batch_matmul ins(%collapsed_12, %collapsed_13 : tensor<16x1x64xf32>, tensor<16x64x32xf32>) outs(%42 : tensor<16x1x32xf32>) -> tensor<16x1x32xf32>
    %expanded_14 = tensor.expand_shape %43 [[0, 1], [2], [3]] output_shape [2, 8, 1, 32] : tensor<16x1x32xf32> into tensor<2x8x1x32xf32>
    %44 = tensor.empty() : tensor<2x8x1x32xbf16>
    %45 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_14 : tensor<2x8x1x32xf32>) outs(%44 : tensor<2x8x1x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %46 = arith.truncf %in : f32 to bf16
      linalg.yield %46 : bf16
    } -> tensor<2x8x1x32xbf16>
    return %45 : tensor<2x8x1x32xbf16>
  }
}

