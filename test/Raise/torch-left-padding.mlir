//   def left_padding(q,k,v,p):
//       i=torch.arange(T); m=(i[None]<=i[:,None])[None]&(i[None,None]>=p[:,None,None])
//       return sdpa(q,k,v,attn_mask=m[:,None])
// Made by torch 2.15.0: torch.export.export, run_decompositions; iree-base-compiler
// 3.13.0: FxImporter, and torch-mlir's passes to linalg on tensors.
// RUN: %python %S/Inputs/raise_and_run.py %s --range=3=0:12
// REQUIRES: mlir-runner

#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1) -> (0, d1)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1, d2) -> (0, d1, d2)>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map7 = affine_map<(d0, d1, d2) -> (d0, 0, d2)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map9 = affine_map<(d0, d1, d2, d3) -> ()>
#map10 = affine_map<(d0, d1, d2, d3) -> (d0, 0, d2, d3)>
#map11 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map12 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
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
      %46 = linalg.index 0 : index
      %47 = arith.index_cast %46 : index to i64
      linalg.yield %47 : i64
    } -> tensor<24xi64>
    %expanded = tensor.expand_shape %1 [[0, 1]] output_shape [1, 24] : tensor<24xi64> into tensor<1x24xi64>
    %expanded_6 = tensor.expand_shape %1 [[0, 1]] output_shape [24, 1] : tensor<24xi64> into tensor<24x1xi64>
    %2 = tensor.empty() : tensor<24x24xi1>
    %3 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel"]} ins(%expanded, %expanded_6 : tensor<1x24xi64>, tensor<24x1xi64>) outs(%2 : tensor<24x24xi1>) {
    ^bb0(%in: i64, %in_17: i64, %out: i1):
      %46 = arith.cmpi sle, %in, %in_17 : i64
      linalg.yield %46 : i1
    } -> tensor<24x24xi1>
    %expanded_7 = tensor.expand_shape %3 [[0, 1], [2]] output_shape [1, 24, 24] : tensor<24x24xi1> into tensor<1x24x24xi1>
    %expanded_8 = tensor.expand_shape %1 [[0, 1, 2]] output_shape [1, 1, 24] : tensor<24xi64> into tensor<1x1x24xi64>
    %expanded_9 = tensor.expand_shape %arg3 [[0, 1, 2]] output_shape [2, 1, 1] : tensor<2xi64> into tensor<2x1x1xi64>
    %4 = tensor.empty() : tensor<2x1x24xi1>
    %5 = linalg.generic {indexing_maps = [#map4, #map5, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_8, %expanded_9 : tensor<1x1x24xi64>, tensor<2x1x1xi64>) outs(%4 : tensor<2x1x24xi1>) {
    ^bb0(%in: i64, %in_17: i64, %out: i1):
      %46 = arith.cmpi sge, %in, %in_17 : i64
      linalg.yield %46 : i1
    } -> tensor<2x1x24xi1>
    %6 = tensor.empty() : tensor<2x24x24xi1>
    %7 = linalg.generic {indexing_maps = [#map4, #map7, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_7, %5 : tensor<1x24x24xi1>, tensor<2x1x24xi1>) outs(%6 : tensor<2x24x24xi1>) {
    ^bb0(%in: i1, %in_17: i1, %out: i1):
      %46 = arith.andi %in, %in_17 : i1
      linalg.yield %46 : i1
    } -> tensor<2x24x24xi1>
    %expanded_10 = tensor.expand_shape %7 [[0], [1, 2], [3]] output_shape [2, 1, 24, 24] : tensor<2x24x24xi1> into tensor<2x1x24x24xi1>
    %8 = tensor.empty() : tensor<2x1x24x24xbf16>
    %9 = linalg.generic {indexing_maps = [#map8, #map9, #map9, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_10, %cst_2, %cst_3 : tensor<2x1x24x24xi1>, tensor<bf16>, tensor<bf16>) outs(%8 : tensor<2x1x24x24xbf16>) {
    ^bb0(%in: i1, %in_17: bf16, %in_18: bf16, %out: bf16):
      %46 = arith.select %in, %in_17, %in_18 : bf16
      linalg.yield %46 : bf16
    } -> tensor<2x1x24x24xbf16>
    %10 = tensor.empty() : tensor<2x4x24x32xf32>
    %11 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x4x24x32xbf16>) outs(%10 : tensor<2x4x24x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %46 = arith.extf %in : bf16 to f32
      linalg.yield %46 : f32
    } -> tensor<2x4x24x32xf32>
    %12 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x4x24x32xbf16>) outs(%10 : tensor<2x4x24x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %46 = arith.extf %in : bf16 to f32
      linalg.yield %46 : f32
    } -> tensor<2x4x24x32xf32>
    %13 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x4x24x32xbf16>) outs(%10 : tensor<2x4x24x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %46 = arith.extf %in : bf16 to f32
      linalg.yield %46 : f32
    } -> tensor<2x4x24x32xf32>
    %14 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<2x4x24x32xf32>) outs(%10 : tensor<2x4x24x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %46 = arith.truncf %cst_4 : f64 to f32
      %47 = arith.mulf %in, %46 : f32
      linalg.yield %47 : f32
    } -> tensor<2x4x24x32xf32>
    %15 = tensor.empty() : tensor<2x4x32x24xf32>
    %transposed = linalg.transpose ins(%12 : tensor<2x4x24x32xf32>) outs(%15 : tensor<2x4x32x24xf32>) permutation = [0, 1, 3, 2] 
    %16 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x4x32x24xf32>) outs(%15 : tensor<2x4x32x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %46 = arith.truncf %cst_4 : f64 to f32
      %47 = arith.mulf %in, %46 : f32
      linalg.yield %47 : f32
    } -> tensor<2x4x32x24xf32>
    %collapsed = tensor.collapse_shape %14 [[0, 1], [2], [3]] : tensor<2x4x24x32xf32> into tensor<8x24x32xf32>
    %collapsed_11 = tensor.collapse_shape %16 [[0, 1], [2], [3]] : tensor<2x4x32x24xf32> into tensor<8x32x24xf32>
    %17 = tensor.empty() : tensor<8x24x24xf32>
    %18 = linalg.fill ins(%cst : f32) outs(%17 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %19 = linalg.batch_matmul ins(%collapsed, %collapsed_11 : tensor<8x24x32xf32>, tensor<8x32x24xf32>) outs(%18 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %expanded_12 = tensor.expand_shape %19 [[0, 1], [2], [3]] output_shape [2, 4, 24, 24] : tensor<8x24x24xf32> into tensor<2x4x24x24xf32>
    %20 = tensor.empty() : tensor<2x4x24x24xf32>
    %21 = linalg.generic {indexing_maps = [#map8, #map10, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_12, %9 : tensor<2x4x24x24xf32>, tensor<2x1x24x24xbf16>) outs(%20 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_17: bf16, %out: f32):
      %46 = arith.extf %in_17 : bf16 to f32
      %47 = arith.addf %in, %46 : f32
      linalg.yield %47 : f32
    } -> tensor<2x4x24x24xf32>
    %22 = tensor.empty() : tensor<2x4x24xi64>
    %23 = linalg.fill ins(%c0_i64 : i64) outs(%22 : tensor<2x4x24xi64>) -> tensor<2x4x24xi64>
    %24 = tensor.empty() : tensor<2x4x24xf32>
    %25 = linalg.fill ins(%cst_0 : f32) outs(%24 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %26:2 = linalg.generic {indexing_maps = [#map8, #map11, #map11], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%21 : tensor<2x4x24x24xf32>) outs(%25, %23 : tensor<2x4x24xf32>, tensor<2x4x24xi64>) {
    ^bb0(%in: f32, %out: f32, %out_17: i64):
      %46 = linalg.index 3 : index
      %47 = arith.index_cast %46 : index to i64
      %48 = arith.maximumf %in, %out : f32
      %49 = arith.cmpf ogt, %in, %out : f32
      %50 = arith.select %49, %47, %out_17 : i64
      linalg.yield %48, %50 : f32, i64
    } -> (tensor<2x4x24xf32>, tensor<2x4x24xi64>)
    %expanded_13 = tensor.expand_shape %26#0 [[0], [1], [2, 3]] output_shape [2, 4, 24, 1] : tensor<2x4x24xf32> into tensor<2x4x24x1xf32>
    %27 = linalg.generic {indexing_maps = [#map8, #map12, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21, %expanded_13 : tensor<2x4x24x24xf32>, tensor<2x4x24x1xf32>) outs(%20 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_17: f32, %out: f32):
      %46 = arith.subf %in, %in_17 : f32
      linalg.yield %46 : f32
    } -> tensor<2x4x24x24xf32>
    %28 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27 : tensor<2x4x24x24xf32>) outs(%20 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %46 = math.exp %in : f32
      linalg.yield %46 : f32
    } -> tensor<2x4x24x24xf32>
    %29 = tensor.empty() : tensor<2x4x24x1xf32>
    %30 = linalg.fill ins(%cst : f32) outs(%29 : tensor<2x4x24x1xf32>) -> tensor<2x4x24x1xf32>
    %31 = linalg.generic {indexing_maps = [#map8, #map12], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%28 : tensor<2x4x24x24xf32>) outs(%30 : tensor<2x4x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %46 = arith.addf %in, %out : f32
      linalg.yield %46 : f32
    } -> tensor<2x4x24x1xf32>
    %32 = linalg.generic {indexing_maps = [#map8, #map12, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28, %31 : tensor<2x4x24x24xf32>, tensor<2x4x24x1xf32>) outs(%20 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_17: f32, %out: f32):
      %46 = arith.divf %in, %in_17 : f32
      linalg.yield %46 : f32
    } -> tensor<2x4x24x24xf32>
    %33 = tensor.empty() : tensor<2x4x24x24xi1>
    %34 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21 : tensor<2x4x24x24xf32>) outs(%33 : tensor<2x4x24x24xi1>) {
    ^bb0(%in: f32, %out: i1):
      %46 = arith.extf %in : f32 to f64
      %47 = arith.cmpf oeq, %46, %cst_5 : f64
      linalg.yield %47 : i1
    } -> tensor<2x4x24x24xi1>
    %35 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%34 : tensor<2x4x24x24xi1>) outs(%33 : tensor<2x4x24x24xi1>) {
    ^bb0(%in: i1, %out: i1):
      %46 = arith.cmpi eq, %in, %false : i1
      linalg.yield %46 : i1
    } -> tensor<2x4x24x24xi1>
    %36 = tensor.empty() : tensor<2x4x24x1xi1>
    %37 = linalg.fill ins(%false : i1) outs(%36 : tensor<2x4x24x1xi1>) -> tensor<2x4x24x1xi1>
    %38 = linalg.generic {indexing_maps = [#map8, #map12], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%35 : tensor<2x4x24x24xi1>) outs(%37 : tensor<2x4x24x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %46 = arith.ori %in, %out : i1
      linalg.yield %46 : i1
    } -> tensor<2x4x24x1xi1>
    %39 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%38 : tensor<2x4x24x1xi1>) outs(%36 : tensor<2x4x24x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %46 = arith.cmpi eq, %in, %false : i1
      linalg.yield %46 : i1
    } -> tensor<2x4x24x1xi1>
    %40 = linalg.generic {indexing_maps = [#map12, #map8, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%39, %cst_1, %32 : tensor<2x4x24x1xi1>, tensor<2x4x24x24xf32>, tensor<2x4x24x24xf32>) outs(%20 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: i1, %in_17: f32, %in_18: f32, %out: f32):
      %46 = arith.select %in, %in_17, %in_18 : f32
      linalg.yield %46 : f32
    } -> tensor<2x4x24x24xf32>
    %collapsed_14 = tensor.collapse_shape %40 [[0, 1], [2], [3]] : tensor<2x4x24x24xf32> into tensor<8x24x24xf32>
    %collapsed_15 = tensor.collapse_shape %13 [[0, 1], [2], [3]] : tensor<2x4x24x32xf32> into tensor<8x24x32xf32>
    %41 = tensor.empty() : tensor<8x24x32xf32>
    %42 = linalg.fill ins(%cst : f32) outs(%41 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %43 = linalg.batch_matmul ins(%collapsed_14, %collapsed_15 : tensor<8x24x24xf32>, tensor<8x24x32xf32>) outs(%42 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %expanded_16 = tensor.expand_shape %43 [[0, 1], [2], [3]] output_shape [2, 4, 24, 32] : tensor<8x24x32xf32> into tensor<2x4x24x32xf32>
    %44 = tensor.empty() : tensor<2x4x24x32xbf16>
    %45 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_16 : tensor<2x4x24x32xf32>) outs(%44 : tensor<2x4x24x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %46 = arith.truncf %in : f32 to bf16
      linalg.yield %46 : bf16
    } -> tensor<2x4x24x32xbf16>
    return %45 : tensor<2x4x24x32xbf16>
  }
}

