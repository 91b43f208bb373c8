// A soft cap and a mask by masked_fill, for more keys than queries, through IREE's
// input pipeline. Made by torch 2.15.0 and iree-turbine 3.9.0 (aot.export of
// torch.export.export), iree-base-compiler 3.13.0 (`iree-compile
// --iree-input-type=torch --compile-to=input`); buffers and fences of the ABI became
// arguments and a result by hand.
// w = 20 * tanh(q @ k.mT * 0.125 / 20); softmax(w.masked_fill(j > i + 16, -inf)) @ v
// RUN: %python %S/Inputs/raise_and_run.py %s
// REQUIRES: mlir-runner

module {
  func.func @main(%arg0: tensor<1x4x24x64xf16>, %arg1: tensor<1x4x40x64xf16>, %arg2: tensor<1x4x40x64xf16>) -> tensor<1x4x24x64xf16> {
    %c0_i64 = arith.constant 0 : i64
    %c16_i64 = arith.constant 16 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant dense<0xFC00> : tensor<f16>
    %cst_2 = arith.constant 1.250000e-01 : f16
    %cst_3 = arith.constant 2.000000e+01 : f16
    %3 = tensor.empty() : tensor<1x4x64x40xf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<1x4x40x64xf16>) outs(%3 : tensor<1x4x64x40xf16>) permutation = [0, 1, 3, 2] 
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2], [3]] : tensor<1x4x24x64xf16> into tensor<4x24x64xf16>
    %collapsed_4 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<1x4x64x40xf16> into tensor<4x64x40xf16>
    %4 = tensor.empty() : tensor<4x24x40xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<4x24x40xf32>) -> tensor<4x24x40xf32>
    %6 = linalg.batch_matmul ins(%collapsed, %collapsed_4 : tensor<4x24x64xf16>, tensor<4x64x40xf16>) outs(%5 : tensor<4x24x40xf32>) -> tensor<4x24x40xf32>
    %7 = tensor.empty() : tensor<4x24x40xf16>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6 : tensor<4x24x40xf32>) outs(%7 : tensor<4x24x40xf16>) {
    ^bb0(%in: f32, %out: f16):
      %44 = arith.truncf %in : f32 to f16
      linalg.yield %44 : f16
    } -> tensor<4x24x40xf16>
    %expanded = tensor.expand_shape %8 [[0, 1], [2], [3]] output_shape [1, 4, 24, 40] : tensor<4x24x40xf16> into tensor<1x4x24x40xf16>
    %9 = tensor.empty() : tensor<1x4x24x40xf16>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<1x4x24x40xf16>) outs(%9 : tensor<1x4x24x40xf16>) {
    ^bb0(%in: f16, %out: f16):
      %44 = arith.mulf %in, %cst_2 : f16
      linalg.yield %44 : f16
    } -> tensor<1x4x24x40xf16>
    %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10 : tensor<1x4x24x40xf16>) outs(%9 : tensor<1x4x24x40xf16>) {
    ^bb0(%in: f16, %out: f16):
      %44 = arith.divf %in, %cst_3 : f16
      linalg.yield %44 : f16
    } -> tensor<1x4x24x40xf16>
    %12 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<1x4x24x40xf16>) outs(%9 : tensor<1x4x24x40xf16>) {
    ^bb0(%in: f16, %out: f16):
      %44 = math.tanh %in : f16
      linalg.yield %44 : f16
    } -> tensor<1x4x24x40xf16>
    %13 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12 : tensor<1x4x24x40xf16>) outs(%9 : tensor<1x4x24x40xf16>) {
    ^bb0(%in: f16, %out: f16):
      %44 = arith.mulf %in, %cst_3 : f16
      linalg.yield %44 : f16
    } -> tensor<1x4x24x40xf16>
    %14 = tensor.empty() : tensor<24xi64>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%14 : tensor<24xi64>) {
    ^bb0(%out: i64):
      %44 = linalg.index 0 : index
      %45 = arith.index_cast %44 : index to i64
      linalg.yield %45 : i64
    } -> tensor<24xi64>
    %expanded_5 = tensor.expand_shape %15 [[0, 1]] output_shape [24, 1] : tensor<24xi64> into tensor<24x1xi64>
    %16 = tensor.empty() : tensor<40xi64>
    %17 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%16 : tensor<40xi64>) {
    ^bb0(%out: i64):
      %44 = linalg.index 0 : index
      %45 = arith.index_cast %44 : index to i64
      linalg.yield %45 : i64
    } -> tensor<40xi64>
    %expanded_6 = tensor.expand_shape %17 [[0, 1]] output_shape [1, 40] : tensor<40xi64> into tensor<1x40xi64>
    %18 = tensor.empty() : tensor<24x1xi64>
    %19 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%expanded_5 : tensor<24x1xi64>) outs(%18 : tensor<24x1xi64>) {
    ^bb0(%in: i64, %out: i64):
      %44 = arith.addi %in, %c16_i64 : i64
      linalg.yield %44 : i64
    } -> tensor<24x1xi64>
    %20 = tensor.empty() : tensor<24x40xi1>
    %21 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%expanded_6, %19 : tensor<1x40xi64>, tensor<24x1xi64>) outs(%20 : tensor<24x40xi1>) {
    ^bb0(%in: i64, %in_11: i64, %out: i1):
      %44 = arith.cmpi sgt, %in, %in_11 : i64
      linalg.yield %44 : i1
    } -> tensor<24x40xi1>
    %22 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> ()>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21, %cst_1, %13 : tensor<24x40xi1>, tensor<f16>, tensor<1x4x24x40xf16>) outs(%9 : tensor<1x4x24x40xf16>) {
    ^bb0(%in: i1, %in_11: f16, %in_12: f16, %out: f16):
      %44 = arith.select %in, %in_11, %in_12 : f16
      linalg.yield %44 : f16
    } -> tensor<1x4x24x40xf16>
    %23 = tensor.empty() : tensor<1x4x24x40xf32>
    %24 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%22 : tensor<1x4x24x40xf16>) outs(%23 : tensor<1x4x24x40xf32>) {
    ^bb0(%in: f16, %out: f32):
      %44 = arith.extf %in : f16 to f32
      linalg.yield %44 : f32
    } -> tensor<1x4x24x40xf32>
    %25 = tensor.empty() : tensor<1x4x24xi64>
    %26 = linalg.fill ins(%c0_i64 : i64) outs(%25 : tensor<1x4x24xi64>) -> tensor<1x4x24xi64>
    %27 = tensor.empty() : tensor<1x4x24xf32>
    %28 = linalg.fill ins(%cst_0 : f32) outs(%27 : tensor<1x4x24xf32>) -> tensor<1x4x24xf32>
    %29:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%24 : tensor<1x4x24x40xf32>) outs(%28, %26 : tensor<1x4x24xf32>, tensor<1x4x24xi64>) {
    ^bb0(%in: f32, %out: f32, %out_11: i64):
      %44 = linalg.index 3 : index
      %45 = arith.index_cast %44 : index to i64
      %46 = arith.maximumf %in, %out : f32
      %47 = arith.cmpf ogt, %in, %out : f32
      %48 = arith.select %47, %45, %out_11 : i64
      linalg.yield %46, %48 : f32, i64
    } -> (tensor<1x4x24xf32>, tensor<1x4x24xi64>)
    %expanded_7 = tensor.expand_shape %29#0 [[0], [1], [2, 3]] output_shape [1, 4, 24, 1] : tensor<1x4x24xf32> into tensor<1x4x24x1xf32>
    %30 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24, %expanded_7 : tensor<1x4x24x40xf32>, tensor<1x4x24x1xf32>) outs(%23 : tensor<1x4x24x40xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %44 = arith.subf %in, %in_11 : f32
      linalg.yield %44 : f32
    } -> tensor<1x4x24x40xf32>
    %31 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%30 : tensor<1x4x24x40xf32>) outs(%23 : tensor<1x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %44 = math.exp %in : f32
      linalg.yield %44 : f32
    } -> tensor<1x4x24x40xf32>
    %32 = tensor.empty() : tensor<1x4x24x1xf32>
    %33 = linalg.fill ins(%cst : f32) outs(%32 : tensor<1x4x24x1xf32>) -> tensor<1x4x24x1xf32>
    %34 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%31 : tensor<1x4x24x40xf32>) outs(%33 : tensor<1x4x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %44 = arith.addf %in, %out : f32
      linalg.yield %44 : f32
    } -> tensor<1x4x24x1xf32>
    %35 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%31, %34 : tensor<1x4x24x40xf32>, tensor<1x4x24x1xf32>) outs(%23 : tensor<1x4x24x40xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %44 = arith.divf %in, %in_11 : f32
      linalg.yield %44 : f32
    } -> tensor<1x4x24x40xf32>
    %36 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%35 : tensor<1x4x24x40xf32>) outs(%9 : tensor<1x4x24x40xf16>) {
    ^bb0(%in: f32, %out: f16):
      %44 = arith.truncf %in : f32 to f16
      linalg.yield %44 : f16
    } -> tensor<1x4x24x40xf16>
    %collapsed_8 = tensor.collapse_shape %36 [[0, 1], [2], [3]] : tensor<1x4x24x40xf16> into tensor<4x24x40xf16>
    %collapsed_9 = tensor.collapse_shape %arg2 [[0, 1], [2], [3]] : tensor<1x4x40x64xf16> into tensor<4x40x64xf16>
    %37 = tensor.empty() : tensor<4x24x64xf32>
    %38 = linalg.fill ins(%cst : f32) outs(%37 : tensor<4x24x64xf32>) -> tensor<4x24x64xf32>
    %39 = linalg.batch_matmul ins(%collapsed_8, %collapsed_9 : tensor<4x24x40xf16>, tensor<4x40x64xf16>) outs(%38 : tensor<4x24x64xf32>) -> tensor<4x24x64xf32>
    %40 = tensor.empty() : tensor<4x24x64xf16>
    %41 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%39 : tensor<4x24x64xf32>) outs(%40 : tensor<4x24x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %44 = arith.truncf %in : f32 to f16
      linalg.yield %44 : f16
    } -> tensor<4x24x64xf16>
    %expanded_10 = tensor.expand_shape %41 [[0, 1], [2], [3]] output_shape [1, 4, 24, 64] : tensor<4x24x64xf16> into tensor<1x4x24x64xf16>
    return %expanded_10 : tensor<1x4x24x64xf16>
  }
}
