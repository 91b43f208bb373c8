// PyTorch's scaled_dot_product_attention with an additive bias.
// Made by torch 2.15.0: torch.export.export, run_decompositions with the core table
// and _scaled_dot_product_flash_attention_for_cpu, _safe_softmax and _softmax;
// torch-mlir 20261001: `fx.export_and_import(ep, output_type="linalg-on-tensors")`.
// f = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
// RUN: %python %S/Inputs/raise_and_run.py %s
// REQUIRES: mlir-runner

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (0, d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @main(%arg0: tensor<2x4x24x32xbf16>, %arg1: tensor<2x4x40x32xbf16>, %arg2: tensor<2x4x40x32xbf16>, %arg3: tensor<1x4x24x40xbf16>) -> tensor<2x4x24x32xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %c0_i64 = arith.constant 0 : i64
    %cst_0 = arith.constant 0xFF800000 : f32
    %false = arith.constant false
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<2x4x24x40xf32>
    %cst_2 = arith.constant 0xFFF0000000000000 : f64
    %cst_3 = arith.constant 0.42044820762685725 : f64
    %0 = tensor.empty() : tensor<2x4x24x32xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x4x24x32xbf16>) outs(%0 : tensor<2x4x24x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %37 = arith.extf %in : bf16 to f32
      linalg.yield %37 : f32
    } -> tensor<2x4x24x32xf32>
    %2 = tensor.empty() : tensor<2x4x40x32xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x4x40x32xbf16>) outs(%2 : tensor<2x4x40x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %37 = arith.extf %in : bf16 to f32
      linalg.yield %37 : f32
    } -> tensor<2x4x40x32xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x4x40x32xbf16>) outs(%2 : tensor<2x4x40x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %37 = arith.extf %in : bf16 to f32
      linalg.yield %37 : f32
    } -> tensor<2x4x40x32xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<2x4x24x32xf32>) outs(%0 : tensor<2x4x24x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %37 = arith.truncf %cst_3 : f64 to f32
      %38 = arith.mulf %in, %37 : f32
      linalg.yield %38 : f32
    } -> tensor<2x4x24x32xf32>
    %6 = tensor.empty() : tensor<2x4x32x40xf32>
    %transposed = linalg.transpose ins(%3 : tensor<2x4x40x32xf32>) outs(%6 : tensor<2x4x32x40xf32>) permutation = [0, 1, 3, 2] 
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x4x32x40xf32>) outs(%6 : tensor<2x4x32x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %37 = arith.truncf %cst_3 : f64 to f32
      %38 = arith.mulf %in, %37 : f32
      linalg.yield %38 : f32
    } -> tensor<2x4x32x40xf32>
    %collapsed = tensor.collapse_shape %5 [[0, 1], [2], [3]] : tensor<2x4x24x32xf32> into tensor<8x24x32xf32>
    %collapsed_4 = tensor.collapse_shape %7 [[0, 1], [2], [3]] : tensor<2x4x32x40xf32> into tensor<8x32x40xf32>
    %8 = tensor.empty() : tensor<8x24x40xf32>
    %9 = linalg.fill ins(%cst : f32) outs(%8 : tensor<8x24x40xf32>) -> tensor<8x24x40xf32>
    %10 = linalg.batch_matmul ins(%collapsed, %collapsed_4 : tensor<8x24x32xf32>, tensor<8x32x40xf32>) outs(%9 : tensor<8x24x40xf32>) -> tensor<8x24x40xf32>
    %expanded = tensor.expand_shape %10 [[0, 1], [2], [3]] output_shape [2, 4, 24, 40] : tensor<8x24x40xf32> into tensor<2x4x24x40xf32>
    %11 = tensor.empty() : tensor<2x4x24x40xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %arg3 : tensor<2x4x24x40xf32>, tensor<1x4x24x40xbf16>) outs(%11 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %in_9: bf16, %out: f32):
      %37 = arith.extf %in_9 : bf16 to f32
      %38 = arith.addf %in, %37 : f32
      linalg.yield %38 : f32
    } -> tensor<2x4x24x40xf32>
    %13 = tensor.empty() : tensor<2x4x24xi64>
    %14 = linalg.fill ins(%c0_i64 : i64) outs(%13 : tensor<2x4x24xi64>) -> tensor<2x4x24xi64>
    %15 = tensor.empty() : tensor<2x4x24xf32>
    %16 = linalg.fill ins(%cst_0 : f32) outs(%15 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %17:2 = linalg.generic {indexing_maps = [#map, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%12 : tensor<2x4x24x40xf32>) outs(%16, %14 : tensor<2x4x24xf32>, tensor<2x4x24xi64>) {
    ^bb0(%in: f32, %out: f32, %out_9: i64):
      %37 = linalg.index 3 : index
      %38 = arith.index_cast %37 : index to i64
      %39 = arith.maximumf %in, %out : f32
      %40 = arith.cmpf ogt, %in, %out : f32
      %41 = arith.select %40, %38, %out_9 : i64
      linalg.yield %39, %41 : f32, i64
    } -> (tensor<2x4x24xf32>, tensor<2x4x24xi64>)
    %expanded_5 = tensor.expand_shape %17#0 [[0], [1], [2, 3]] output_shape [2, 4, 24, 1] : tensor<2x4x24xf32> into tensor<2x4x24x1xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12, %expanded_5 : tensor<2x4x24x40xf32>, tensor<2x4x24x1xf32>) outs(%11 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %37 = arith.subf %in, %in_9 : f32
      linalg.yield %37 : f32
    } -> tensor<2x4x24x40xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18 : tensor<2x4x24x40xf32>) outs(%11 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %37 = math.exp %in : f32
      linalg.yield %37 : f32
    } -> tensor<2x4x24x40xf32>
    %20 = tensor.empty() : tensor<2x4x24x1xf32>
    %21 = linalg.fill ins(%cst : f32) outs(%20 : tensor<2x4x24x1xf32>) -> tensor<2x4x24x1xf32>
    %22 = linalg.generic {indexing_maps = [#map, #map3], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%19 : tensor<2x4x24x40xf32>) outs(%21 : tensor<2x4x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %37 = arith.addf %in, %out : f32
      linalg.yield %37 : f32
    } -> tensor<2x4x24x1xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19, %22 : tensor<2x4x24x40xf32>, tensor<2x4x24x1xf32>) outs(%11 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %37 = arith.divf %in, %in_9 : f32
      linalg.yield %37 : f32
    } -> tensor<2x4x24x40xf32>
    %24 = tensor.empty() : tensor<2x4x24x40xi1>
    %25 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12 : tensor<2x4x24x40xf32>) outs(%24 : tensor<2x4x24x40xi1>) {
    ^bb0(%in: f32, %out: i1):
      %37 = arith.extf %in : f32 to f64
      %38 = arith.cmpf oeq, %37, %cst_2 : f64
      linalg.yield %38 : i1
    } -> tensor<2x4x24x40xi1>
    %26 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%25 : tensor<2x4x24x40xi1>) outs(%24 : tensor<2x4x24x40xi1>) {
    ^bb0(%in: i1, %out: i1):
      %37 = arith.cmpi eq, %in, %false : i1
      linalg.yield %37 : i1
    } -> tensor<2x4x24x40xi1>
    %27 = tensor.empty() : tensor<2x4x24x1xi1>
    %28 = linalg.fill ins(%false : i1) outs(%27 : tensor<2x4x24x1xi1>) -> tensor<2x4x24x1xi1>
    %29 = linalg.generic {indexing_maps = [#map, #map3], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%26 : tensor<2x4x24x40xi1>) outs(%28 : tensor<2x4x24x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %37 = arith.ori %in, %out : i1
      linalg.yield %37 : i1
    } -> tensor<2x4x24x1xi1>
    %30 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%29 : tensor<2x4x24x1xi1>) outs(%27 : tensor<2x4x24x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %37 = arith.cmpi eq, %in, %false : i1
      linalg.yield %37 : i1
    } -> tensor<2x4x24x1xi1>
    %31 = linalg.generic {indexing_maps = [#map3, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%30, %cst_1, %23 : tensor<2x4x24x1xi1>, tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>) outs(%11 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: i1, %in_9: f32, %in_10: f32, %out: f32):
      %37 = arith.select %in, %in_9, %in_10 : f32
      linalg.yield %37 : f32
    } -> tensor<2x4x24x40xf32>
    %collapsed_6 = tensor.collapse_shape %31 [[0, 1], [2], [3]] : tensor<2x4x24x40xf32> into tensor<8x24x40xf32>
    %collapsed_7 = tensor.collapse_shape %4 [[0, 1], [2], [3]] : tensor<2x4x40x32xf32> into tensor<8x40x32xf32>
    %32 = tensor.empty() : tensor<8x24x32xf32>
    %33 = linalg.fill ins(%cst : f32) outs(%32 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %34 = linalg.batch_matmul ins(%collapsed_6, %collapsed_7 : tensor<8x24x40xf32>, tensor<8x40x32xf32>) outs(%33 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %expanded_8 = tensor.expand_shape %34 [[0, 1], [2], [3]] output_shape [2, 4, 24, 32] : tensor<8x24x32xf32> into tensor<2x4x24x32xf32>
    %35 = tensor.empty() : tensor<2x4x24x32xbf16>
    %36 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_8 : tensor<2x4x24x32xf32>) outs(%35 : tensor<2x4x24x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %37 = arith.truncf %in : f32 to bf16
      linalg.yield %37 : bf16
    } -> tensor<2x4x24x32xbf16>
    return %36 : tensor<2x4x24x32xbf16>
  }
}
