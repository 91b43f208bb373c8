// PyTorch's scaled_dot_product_attention with a mask from outside.
// Made by torch 2.15.0: torch.export.export, run_decompositions with the core table
// and _scaled_dot_product_flash_attention_for_cpu, _safe_softmax and _softmax;
// torch-mlir 20261001: `fx.export_and_import(ep, output_type="linalg-on-tensors")`.
// f = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
// RUN: %python %S/Inputs/raise_and_run.py %s
// REQUIRES: mlir-runner

#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @main(%arg0: tensor<2x4x24x32xbf16>, %arg1: tensor<2x4x40x32xbf16>, %arg2: tensor<2x4x40x32xbf16>, %arg3: tensor<24x40xi1>) -> tensor<2x4x24x32xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %c0_i64 = arith.constant 0 : i64
    %cst_0 = arith.constant 0xFF800000 : f32
    %false = arith.constant false
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<2x4x24x40xf32>
    %cst_2 = arith.constant 0.42044820762685725 : f64
    %cst_3 = arith.constant 0xFFF0000000000000 : f64
    %cst_4 = arith.constant dense<0xFF80> : tensor<bf16>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<bf16>
    %0 = tensor.empty() : tensor<24x40xbf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%arg3, %cst_5, %cst_4 : tensor<24x40xi1>, tensor<bf16>, tensor<bf16>) outs(%0 : tensor<24x40xbf16>) {
    ^bb0(%in: i1, %in_11: bf16, %in_12: bf16, %out: bf16):
      %39 = arith.select %in, %in_11, %in_12 : bf16
      linalg.yield %39 : bf16
    } -> tensor<24x40xbf16>
    %2 = tensor.empty() : tensor<2x4x24x32xf32>
    %3 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x4x24x32xbf16>) outs(%2 : tensor<2x4x24x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %39 = arith.extf %in : bf16 to f32
      linalg.yield %39 : f32
    } -> tensor<2x4x24x32xf32>
    %4 = tensor.empty() : tensor<2x4x40x32xf32>
    %5 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x4x40x32xbf16>) outs(%4 : tensor<2x4x40x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %39 = arith.extf %in : bf16 to f32
      linalg.yield %39 : f32
    } -> tensor<2x4x40x32xf32>
    %6 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x4x40x32xbf16>) outs(%4 : tensor<2x4x40x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %39 = arith.extf %in : bf16 to f32
      linalg.yield %39 : f32
    } -> tensor<2x4x40x32xf32>
    %7 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<2x4x24x32xf32>) outs(%2 : tensor<2x4x24x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %39 = arith.truncf %cst_2 : f64 to f32
      %40 = arith.mulf %in, %39 : f32
      linalg.yield %40 : f32
    } -> tensor<2x4x24x32xf32>
    %8 = tensor.empty() : tensor<2x4x32x40xf32>
    %transposed = linalg.transpose ins(%5 : tensor<2x4x40x32xf32>) outs(%8 : tensor<2x4x32x40xf32>) permutation = [0, 1, 3, 2] 
    %9 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x4x32x40xf32>) outs(%8 : tensor<2x4x32x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %39 = arith.truncf %cst_2 : f64 to f32
      %40 = arith.mulf %in, %39 : f32
      linalg.yield %40 : f32
    } -> tensor<2x4x32x40xf32>
    %collapsed = tensor.collapse_shape %7 [[0, 1], [2], [3]] : tensor<2x4x24x32xf32> into tensor<8x24x32xf32>
    %collapsed_6 = tensor.collapse_shape %9 [[0, 1], [2], [3]] : tensor<2x4x32x40xf32> into tensor<8x32x40xf32>
    %10 = tensor.empty() : tensor<8x24x40xf32>
    %11 = linalg.fill ins(%cst : f32) outs(%10 : tensor<8x24x40xf32>) -> tensor<8x24x40xf32>
    %12 = linalg.batch_matmul ins(%collapsed, %collapsed_6 : tensor<8x24x32xf32>, tensor<8x32x40xf32>) outs(%11 : tensor<8x24x40xf32>) -> tensor<8x24x40xf32>
    %expanded = tensor.expand_shape %12 [[0, 1], [2], [3]] output_shape [2, 4, 24, 40] : tensor<8x24x40xf32> into tensor<2x4x24x40xf32>
    %13 = tensor.empty() : tensor<2x4x24x40xf32>
    %14 = linalg.generic {indexing_maps = [#map2, #map3, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %1 : tensor<2x4x24x40xf32>, tensor<24x40xbf16>) outs(%13 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %in_11: bf16, %out: f32):
      %39 = arith.extf %in_11 : bf16 to f32
      %40 = arith.addf %in, %39 : f32
      linalg.yield %40 : f32
    } -> tensor<2x4x24x40xf32>
    %15 = tensor.empty() : tensor<2x4x24xi64>
    %16 = linalg.fill ins(%c0_i64 : i64) outs(%15 : tensor<2x4x24xi64>) -> tensor<2x4x24xi64>
    %17 = tensor.empty() : tensor<2x4x24xf32>
    %18 = linalg.fill ins(%cst_0 : f32) outs(%17 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %19:2 = linalg.generic {indexing_maps = [#map2, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%14 : tensor<2x4x24x40xf32>) outs(%18, %16 : tensor<2x4x24xf32>, tensor<2x4x24xi64>) {
    ^bb0(%in: f32, %out: f32, %out_11: i64):
      %39 = linalg.index 3 : index
      %40 = arith.index_cast %39 : index to i64
      %41 = arith.maximumf %in, %out : f32
      %42 = arith.cmpf ogt, %in, %out : f32
      %43 = arith.select %42, %40, %out_11 : i64
      linalg.yield %41, %43 : f32, i64
    } -> (tensor<2x4x24xf32>, tensor<2x4x24xi64>)
    %expanded_7 = tensor.expand_shape %19#0 [[0], [1], [2, 3]] output_shape [2, 4, 24, 1] : tensor<2x4x24xf32> into tensor<2x4x24x1xf32>
    %20 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14, %expanded_7 : tensor<2x4x24x40xf32>, tensor<2x4x24x1xf32>) outs(%13 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %39 = arith.subf %in, %in_11 : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x24x40xf32>
    %21 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20 : tensor<2x4x24x40xf32>) outs(%13 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %39 = math.exp %in : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x24x40xf32>
    %22 = tensor.empty() : tensor<2x4x24x1xf32>
    %23 = linalg.fill ins(%cst : f32) outs(%22 : tensor<2x4x24x1xf32>) -> tensor<2x4x24x1xf32>
    %24 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%21 : tensor<2x4x24x40xf32>) outs(%23 : tensor<2x4x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %39 = arith.addf %in, %out : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x24x1xf32>
    %25 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21, %24 : tensor<2x4x24x40xf32>, tensor<2x4x24x1xf32>) outs(%13 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %39 = arith.divf %in, %in_11 : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x24x40xf32>
    %26 = tensor.empty() : tensor<2x4x24x40xi1>
    %27 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14 : tensor<2x4x24x40xf32>) outs(%26 : tensor<2x4x24x40xi1>) {
    ^bb0(%in: f32, %out: i1):
      %39 = arith.extf %in : f32 to f64
      %40 = arith.cmpf oeq, %39, %cst_3 : f64
      linalg.yield %40 : i1
    } -> tensor<2x4x24x40xi1>
    %28 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27 : tensor<2x4x24x40xi1>) outs(%26 : tensor<2x4x24x40xi1>) {
    ^bb0(%in: i1, %out: i1):
      %39 = arith.cmpi eq, %in, %false : i1
      linalg.yield %39 : i1
    } -> tensor<2x4x24x40xi1>
    %29 = tensor.empty() : tensor<2x4x24x1xi1>
    %30 = linalg.fill ins(%false : i1) outs(%29 : tensor<2x4x24x1xi1>) -> tensor<2x4x24x1xi1>
    %31 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%28 : tensor<2x4x24x40xi1>) outs(%30 : tensor<2x4x24x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %39 = arith.ori %in, %out : i1
      linalg.yield %39 : i1
    } -> tensor<2x4x24x1xi1>
    %32 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%31 : tensor<2x4x24x1xi1>) outs(%29 : tensor<2x4x24x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %39 = arith.cmpi eq, %in, %false : i1
      linalg.yield %39 : i1
    } -> tensor<2x4x24x1xi1>
    %33 = linalg.generic {indexing_maps = [#map5, #map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%32, %cst_1, %25 : tensor<2x4x24x1xi1>, tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>) outs(%13 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: i1, %in_11: f32, %in_12: f32, %out: f32):
      %39 = arith.select %in, %in_11, %in_12 : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x24x40xf32>
    %collapsed_8 = tensor.collapse_shape %33 [[0, 1], [2], [3]] : tensor<2x4x24x40xf32> into tensor<8x24x40xf32>
    %collapsed_9 = tensor.collapse_shape %6 [[0, 1], [2], [3]] : tensor<2x4x40x32xf32> into tensor<8x40x32xf32>
    %34 = tensor.empty() : tensor<8x24x32xf32>
    %35 = linalg.fill ins(%cst : f32) outs(%34 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %36 = linalg.batch_matmul ins(%collapsed_8, %collapsed_9 : tensor<8x24x40xf32>, tensor<8x40x32xf32>) outs(%35 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %expanded_10 = tensor.expand_shape %36 [[0, 1], [2], [3]] output_shape [2, 4, 24, 32] : tensor<8x24x32xf32> into tensor<2x4x24x32xf32>
    %37 = tensor.empty() : tensor<2x4x24x32xbf16>
    %38 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_10 : tensor<2x4x24x32xf32>) outs(%37 : tensor<2x4x24x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %39 = arith.truncf %in : f32 to bf16
      linalg.yield %39 : bf16
    } -> tensor<2x4x24x32xbf16>
    return %38 : tensor<2x4x24x32xbf16>
  }
}
