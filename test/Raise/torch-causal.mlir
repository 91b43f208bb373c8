// PyTorch's scaled_dot_product_attention, causal.
// Made by torch 2.15.0: torch.export.export, run_decompositions with the core table
// and _scaled_dot_product_flash_attention_for_cpu, _safe_softmax and _softmax;
// torch-mlir 20261001: `fx.export_and_import(ep, output_type="linalg-on-tensors")`.
// f = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)
// RUN: %python %S/Inputs/raise_and_run.py %s
// REQUIRES: mlir-runner

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0) -> (d0)>
#map2 = affine_map<(d0, d1) -> (0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, 0)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> ()>
#map6 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @main(%arg0: tensor<2x4x40x32xbf16>, %arg1: tensor<2x4x40x32xbf16>, %arg2: tensor<2x4x40x32xbf16>) -> tensor<2x4x40x32xbf16> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %false = arith.constant false
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<2x4x40x40xf32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_3 = arith.constant dense<0xFF800000> : tensor<f32>
    %cst_4 = arith.constant dense<true> : tensor<40x40xi1>
    %cst_5 = arith.constant 0xFFF0000000000000 : f64
    %cst_6 = arith.constant 0.42044820762685725 : f64
    %0 = tensor.empty() : tensor<2x4x40x32xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x4x40x32xbf16>) outs(%0 : tensor<2x4x40x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %45 = arith.extf %in : bf16 to f32
      linalg.yield %45 : f32
    } -> tensor<2x4x40x32xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x4x40x32xbf16>) outs(%0 : tensor<2x4x40x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %45 = arith.extf %in : bf16 to f32
      linalg.yield %45 : f32
    } -> tensor<2x4x40x32xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x4x40x32xbf16>) outs(%0 : tensor<2x4x40x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %45 = arith.extf %in : bf16 to f32
      linalg.yield %45 : f32
    } -> tensor<2x4x40x32xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<2x4x40x32xf32>) outs(%0 : tensor<2x4x40x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %45 = arith.truncf %cst_6 : f64 to f32
      %46 = arith.mulf %in, %45 : f32
      linalg.yield %46 : f32
    } -> tensor<2x4x40x32xf32>
    %5 = tensor.empty() : tensor<40xi64>
    %6 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%5 : tensor<40xi64>) {
    ^bb0(%out: i64):
      %45 = linalg.index 0 : index
      %46 = arith.index_cast %45 : index to i64
      linalg.yield %46 : i64
    } -> tensor<40xi64>
    %expanded = tensor.expand_shape %6 [[0, 1]] output_shape [1, 40] : tensor<40xi64> into tensor<1x40xi64>
    %expanded_7 = tensor.expand_shape %6 [[0, 1]] output_shape [40, 1] : tensor<40xi64> into tensor<40x1xi64>
    %7 = tensor.empty() : tensor<40x40xi64>
    %8 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%expanded, %expanded_7 : tensor<1x40xi64>, tensor<40x1xi64>) outs(%7 : tensor<40x40xi64>) {
    ^bb0(%in: i64, %in_14: i64, %out: i64):
      %45 = arith.subi %in, %in_14 : i64
      linalg.yield %45 : i64
    } -> tensor<40x40xi64>
    %9 = tensor.empty() : tensor<40x40xi1>
    %10 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<40x40xi64>) outs(%9 : tensor<40x40xi1>) {
    ^bb0(%in: i64, %out: i1):
      %45 = arith.cmpi sle, %in, %c0_i64 : i64
      linalg.yield %45 : i1
    } -> tensor<40x40xi1>
    %11 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%10, %cst_4 : tensor<40x40xi1>, tensor<40x40xi1>) outs(%9 : tensor<40x40xi1>) {
    ^bb0(%in: i1, %in_14: i1, %out: i1):
      %45 = arith.andi %in, %in_14 : i1
      linalg.yield %45 : i1
    } -> tensor<40x40xi1>
    %12 = tensor.empty() : tensor<40x40xf32>
    %13 = linalg.generic {indexing_maps = [#map4, #map5, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%11, %cst_2, %cst_3 : tensor<40x40xi1>, tensor<f32>, tensor<f32>) outs(%12 : tensor<40x40xf32>) {
    ^bb0(%in: i1, %in_14: f32, %in_15: f32, %out: f32):
      %45 = arith.select %in, %in_14, %in_15 : f32
      linalg.yield %45 : f32
    } -> tensor<40x40xf32>
    %14 = tensor.empty() : tensor<2x4x32x40xf32>
    %transposed = linalg.transpose ins(%2 : tensor<2x4x40x32xf32>) outs(%14 : tensor<2x4x32x40xf32>) permutation = [0, 1, 3, 2] 
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x4x32x40xf32>) outs(%14 : tensor<2x4x32x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %45 = arith.truncf %cst_6 : f64 to f32
      %46 = arith.mulf %in, %45 : f32
      linalg.yield %46 : f32
    } -> tensor<2x4x32x40xf32>
    %collapsed = tensor.collapse_shape %4 [[0, 1], [2], [3]] : tensor<2x4x40x32xf32> into tensor<8x40x32xf32>
    %collapsed_8 = tensor.collapse_shape %15 [[0, 1], [2], [3]] : tensor<2x4x32x40xf32> into tensor<8x32x40xf32>
    %16 = tensor.empty() : tensor<8x40x40xf32>
    %17 = linalg.fill ins(%cst : f32) outs(%16 : tensor<8x40x40xf32>) -> tensor<8x40x40xf32>
    %18 = linalg.batch_matmul ins(%collapsed, %collapsed_8 : tensor<8x40x32xf32>, tensor<8x32x40xf32>) outs(%17 : tensor<8x40x40xf32>) -> tensor<8x40x40xf32>
    %expanded_9 = tensor.expand_shape %18 [[0, 1], [2], [3]] output_shape [2, 4, 40, 40] : tensor<8x40x40xf32> into tensor<2x4x40x40xf32>
    %19 = tensor.empty() : tensor<2x4x40x40xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map6, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_9, %13 : tensor<2x4x40x40xf32>, tensor<40x40xf32>) outs(%19 : tensor<2x4x40x40xf32>) {
    ^bb0(%in: f32, %in_14: f32, %out: f32):
      %45 = arith.addf %in, %in_14 : f32
      linalg.yield %45 : f32
    } -> tensor<2x4x40x40xf32>
    %21 = tensor.empty() : tensor<2x4x40xi64>
    %22 = linalg.fill ins(%c0_i64 : i64) outs(%21 : tensor<2x4x40xi64>) -> tensor<2x4x40xi64>
    %23 = tensor.empty() : tensor<2x4x40xf32>
    %24 = linalg.fill ins(%cst_0 : f32) outs(%23 : tensor<2x4x40xf32>) -> tensor<2x4x40xf32>
    %25:2 = linalg.generic {indexing_maps = [#map, #map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%20 : tensor<2x4x40x40xf32>) outs(%24, %22 : tensor<2x4x40xf32>, tensor<2x4x40xi64>) {
    ^bb0(%in: f32, %out: f32, %out_14: i64):
      %45 = linalg.index 3 : index
      %46 = arith.index_cast %45 : index to i64
      %47 = arith.maximumf %in, %out : f32
      %48 = arith.cmpf ogt, %in, %out : f32
      %49 = arith.select %48, %46, %out_14 : i64
      linalg.yield %47, %49 : f32, i64
    } -> (tensor<2x4x40xf32>, tensor<2x4x40xi64>)
    %expanded_10 = tensor.expand_shape %25#0 [[0], [1], [2, 3]] output_shape [2, 4, 40, 1] : tensor<2x4x40xf32> into tensor<2x4x40x1xf32>
    %26 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20, %expanded_10 : tensor<2x4x40x40xf32>, tensor<2x4x40x1xf32>) outs(%19 : tensor<2x4x40x40xf32>) {
    ^bb0(%in: f32, %in_14: f32, %out: f32):
      %45 = arith.subf %in, %in_14 : f32
      linalg.yield %45 : f32
    } -> tensor<2x4x40x40xf32>
    %27 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%26 : tensor<2x4x40x40xf32>) outs(%19 : tensor<2x4x40x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %45 = math.exp %in : f32
      linalg.yield %45 : f32
    } -> tensor<2x4x40x40xf32>
    %28 = tensor.empty() : tensor<2x4x40x1xf32>
    %29 = linalg.fill ins(%cst : f32) outs(%28 : tensor<2x4x40x1xf32>) -> tensor<2x4x40x1xf32>
    %30 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%27 : tensor<2x4x40x40xf32>) outs(%29 : tensor<2x4x40x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %45 = arith.addf %in, %out : f32
      linalg.yield %45 : f32
    } -> tensor<2x4x40x1xf32>
    %31 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27, %30 : tensor<2x4x40x40xf32>, tensor<2x4x40x1xf32>) outs(%19 : tensor<2x4x40x40xf32>) {
    ^bb0(%in: f32, %in_14: f32, %out: f32):
      %45 = arith.divf %in, %in_14 : f32
      linalg.yield %45 : f32
    } -> tensor<2x4x40x40xf32>
    %32 = tensor.empty() : tensor<2x4x40x40xi1>
    %33 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20 : tensor<2x4x40x40xf32>) outs(%32 : tensor<2x4x40x40xi1>) {
    ^bb0(%in: f32, %out: i1):
      %45 = arith.extf %in : f32 to f64
      %46 = arith.cmpf oeq, %45, %cst_5 : f64
      linalg.yield %46 : i1
    } -> tensor<2x4x40x40xi1>
    %34 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%33 : tensor<2x4x40x40xi1>) outs(%32 : tensor<2x4x40x40xi1>) {
    ^bb0(%in: i1, %out: i1):
      %45 = arith.cmpi eq, %in, %false : i1
      linalg.yield %45 : i1
    } -> tensor<2x4x40x40xi1>
    %35 = tensor.empty() : tensor<2x4x40x1xi1>
    %36 = linalg.fill ins(%false : i1) outs(%35 : tensor<2x4x40x1xi1>) -> tensor<2x4x40x1xi1>
    %37 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%34 : tensor<2x4x40x40xi1>) outs(%36 : tensor<2x4x40x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %45 = arith.ori %in, %out : i1
      linalg.yield %45 : i1
    } -> tensor<2x4x40x1xi1>
    %38 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%37 : tensor<2x4x40x1xi1>) outs(%35 : tensor<2x4x40x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %45 = arith.cmpi eq, %in, %false : i1
      linalg.yield %45 : i1
    } -> tensor<2x4x40x1xi1>
    %39 = linalg.generic {indexing_maps = [#map8, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%38, %cst_1, %31 : tensor<2x4x40x1xi1>, tensor<2x4x40x40xf32>, tensor<2x4x40x40xf32>) outs(%19 : tensor<2x4x40x40xf32>) {
    ^bb0(%in: i1, %in_14: f32, %in_15: f32, %out: f32):
      %45 = arith.select %in, %in_14, %in_15 : f32
      linalg.yield %45 : f32
    } -> tensor<2x4x40x40xf32>
    %collapsed_11 = tensor.collapse_shape %39 [[0, 1], [2], [3]] : tensor<2x4x40x40xf32> into tensor<8x40x40xf32>
    %collapsed_12 = tensor.collapse_shape %3 [[0, 1], [2], [3]] : tensor<2x4x40x32xf32> into tensor<8x40x32xf32>
    %40 = tensor.empty() : tensor<8x40x32xf32>
    %41 = linalg.fill ins(%cst : f32) outs(%40 : tensor<8x40x32xf32>) -> tensor<8x40x32xf32>
    %42 = linalg.batch_matmul ins(%collapsed_11, %collapsed_12 : tensor<8x40x40xf32>, tensor<8x40x32xf32>) outs(%41 : tensor<8x40x32xf32>) -> tensor<8x40x32xf32>
    %expanded_13 = tensor.expand_shape %42 [[0, 1], [2], [3]] output_shape [2, 4, 40, 32] : tensor<8x40x32xf32> into tensor<2x4x40x32xf32>
    %43 = tensor.empty() : tensor<2x4x40x32xbf16>
    %44 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_13 : tensor<2x4x40x32xf32>) outs(%43 : tensor<2x4x40x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %45 = arith.truncf %in : f32 to bf16
      linalg.yield %45 : bf16
    } -> tensor<2x4x40x32xbf16>
    return %44 : tensor<2x4x40x32xbf16>
  }
}
