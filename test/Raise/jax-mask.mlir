// JAX's jax.nn.dot_product_attention with a mask from outside.
// Made by jax 0.10.2: `jax.jit(f).lower(...).as_text()`, without the attribute
// `algorithm` of dot_general, which iree-compile refuses; iree-base-compiler 3.13.0:
// `iree-compile --iree-input-type=stablehlo --compile-to=input`; util.func and
// util.return renamed to func's.
// f = lambda q, k, v: jax.nn.dot_product_attention(q, k, v, mask=mask)
// RUN: %python %S/Inputs/raise_and_run.py %s
// REQUIRES: mlir-runner

module {
  func.func @main(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x4x32xbf16>, %arg2: tensor<2x40x4x32xbf16>, %arg3: tensor<2x1x24x40xi1>) -> tensor<2x24x4x32xbf16> {
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant -2.38197633E+38 : f32
    %cst_2 = arith.constant 0.176776692 : f32
    %cst_3 = arith.constant 0.000000e+00 : f32
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2], [3, 4]] output_shape [2, 24, 4, 1, 32] : tensor<2x24x4x32xbf16> into tensor<2x24x4x1x32xbf16>
    %0 = tensor.empty() : tensor<2x1x1x24x40xi1>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%arg3 : tensor<2x1x24x40xi1>) outs(%0 : tensor<2x1x1x24x40xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<2x1x1x24x40xi1>
    %2 = tensor.empty() : tensor<2x4x24x1x32xbf16>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x24x4x1x32xbf16>) outs(%2 : tensor<2x4x24x1x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x24x1x32xbf16>
    %4 = tensor.empty() : tensor<2x4x32x40xbf16>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x40x4x32xbf16>) outs(%4 : tensor<2x4x32x40xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x40xbf16>
    %collapsed = tensor.collapse_shape %3 [[0, 1], [2], [3, 4]] : tensor<2x4x24x1x32xbf16> into tensor<8x24x32xbf16>
    %collapsed_4 = tensor.collapse_shape %5 [[0, 1], [2], [3]] : tensor<2x4x32x40xbf16> into tensor<8x32x40xbf16>
    %6 = tensor.empty() : tensor<8x24x40xf32>
    %7 = linalg.fill ins(%cst_3 : f32) outs(%6 : tensor<8x24x40xf32>) -> tensor<8x24x40xf32>
    %8 = linalg.batch_matmul ins(%collapsed, %collapsed_4 : tensor<8x24x32xbf16>, tensor<8x32x40xbf16>) outs(%7 : tensor<8x24x40xf32>) -> tensor<8x24x40xf32>
    %expanded_5 = tensor.expand_shape %8 [[0, 1], [2], [3, 4]] output_shape [2, 4, 24, 1, 40] : tensor<8x24x40xf32> into tensor<2x4x24x1x40xf32>
    %9 = tensor.empty() : tensor<2x4x24x1x40xf32>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_5 : tensor<2x4x24x1x40xf32>) outs(%9 : tensor<2x4x24x1x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %42 = arith.mulf %in, %cst_2 : f32
      linalg.yield %42 : f32
    } -> tensor<2x4x24x1x40xf32>
    %collapsed_6 = tensor.collapse_shape %1 [[0, 1, 2, 3, 4]] : tensor<2x1x1x24x40xi1> into tensor<1920xi1>
    %expanded_7 = tensor.expand_shape %collapsed_6 [[0, 1, 2, 3, 4]] output_shape [1, 2, 1, 24, 40] : tensor<1920xi1> into tensor<1x2x1x24x40xi1>
    %11 = tensor.empty() : tensor<1x2x4x24x40xi1>
    %12 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, 0, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_7 : tensor<1x2x1x24x40xi1>) outs(%11 : tensor<1x2x4x24x40xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<1x2x4x24x40xi1>
    %collapsed_8 = tensor.collapse_shape %10 [[0, 1, 2, 3, 4]] : tensor<2x4x24x1x40xf32> into tensor<7680xf32>
    %expanded_9 = tensor.expand_shape %collapsed_8 [[0, 1, 2, 3, 4]] output_shape [1, 2, 4, 24, 40] : tensor<7680xf32> into tensor<1x2x4x24x40xf32>
    %13 = tensor.empty() : tensor<1x2x4x24x40xf32>
    %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%12, %expanded_9 : tensor<1x2x4x24x40xi1>, tensor<1x2x4x24x40xf32>) outs(%13 : tensor<1x2x4x24x40xf32>) {
    ^bb0(%in: i1, %in_14: f32, %out: f32):
      %42 = arith.select %in, %in_14, %cst_1 : f32
      linalg.yield %42 : f32
    } -> tensor<1x2x4x24x40xf32>
    %15 = tensor.empty() : tensor<1x2x4x24xf32>
    %16 = linalg.fill ins(%cst_0 : f32) outs(%15 : tensor<1x2x4x24xf32>) -> tensor<1x2x4x24xf32>
    %17 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%14 : tensor<1x2x4x24x40xf32>) outs(%16 : tensor<1x2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %42 = arith.maximumf %out, %in : f32
      linalg.yield %42 : f32
    } -> tensor<1x2x4x24xf32>
    %18 = tensor.empty() : tensor<1x2x4x24x40xf32>
    %19 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%17 : tensor<1x2x4x24xf32>) outs(%18 : tensor<1x2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x2x4x24x40xf32>
    %20 = tensor.empty() : tensor<1x2x4x24x40xf32>
    %21 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%14, %19 : tensor<1x2x4x24x40xf32>, tensor<1x2x4x24x40xf32>) outs(%20 : tensor<1x2x4x24x40xf32>) {
    ^bb0(%in: f32, %in_14: f32, %out: f32):
      %42 = arith.subf %in, %in_14 : f32
      linalg.yield %42 : f32
    } -> tensor<1x2x4x24x40xf32>
    %22 = tensor.empty() : tensor<1x2x4x24x40xf32>
    %23 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%21 : tensor<1x2x4x24x40xf32>) outs(%22 : tensor<1x2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %42 = math.exp %in : f32
      linalg.yield %42 : f32
    } -> tensor<1x2x4x24x40xf32>
    %24 = tensor.empty() : tensor<1x2x4x24xf32>
    %25 = linalg.fill ins(%cst_3 : f32) outs(%24 : tensor<1x2x4x24xf32>) -> tensor<1x2x4x24xf32>
    %26 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%23 : tensor<1x2x4x24x40xf32>) outs(%25 : tensor<1x2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %42 = arith.addf %out, %in : f32
      linalg.yield %42 : f32
    } -> tensor<1x2x4x24xf32>
    %27 = tensor.empty() : tensor<1x2x4x24x40xf32>
    %28 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%26 : tensor<1x2x4x24xf32>) outs(%27 : tensor<1x2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x2x4x24x40xf32>
    %29 = tensor.empty() : tensor<1x2x4x24x40xf32>
    %30 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%23, %28 : tensor<1x2x4x24x40xf32>, tensor<1x2x4x24x40xf32>) outs(%29 : tensor<1x2x4x24x40xf32>) {
    ^bb0(%in: f32, %in_14: f32, %out: f32):
      %42 = arith.divf %in, %in_14 : f32
      linalg.yield %42 : f32
    } -> tensor<1x2x4x24x40xf32>
    %31 = tensor.empty() : tensor<1x2x4x24x40xbf16>
    %32 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%30 : tensor<1x2x4x24x40xf32>) outs(%31 : tensor<1x2x4x24x40xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %42 = arith.truncf %in : f32 to bf16
      linalg.yield %42 : bf16
    } -> tensor<1x2x4x24x40xbf16>
    %33 = tensor.empty() : tensor<2x4x32x40xbf16>
    %34 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x40x4x32xbf16>) outs(%33 : tensor<2x4x32x40xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x40xbf16>
    %35 = tensor.empty() : tensor<2x4x40x1x24xbf16>
    %36 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%32 : tensor<1x2x4x24x40xbf16>) outs(%35 : tensor<2x4x40x1x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x40x1x24xbf16>
    %collapsed_10 = tensor.collapse_shape %34 [[0, 1], [2], [3]] : tensor<2x4x32x40xbf16> into tensor<8x32x40xbf16>
    %collapsed_11 = tensor.collapse_shape %36 [[0, 1], [2], [3, 4]] : tensor<2x4x40x1x24xbf16> into tensor<8x40x24xbf16>
    %37 = tensor.empty() : tensor<8x32x24xbf16>
    %38 = linalg.fill ins(%cst : bf16) outs(%37 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %39 = linalg.batch_matmul ins(%collapsed_10, %collapsed_11 : tensor<8x32x40xbf16>, tensor<8x40x24xbf16>) outs(%38 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %expanded_12 = tensor.expand_shape %39 [[0, 1], [2], [3, 4]] output_shape [2, 4, 32, 1, 24] : tensor<8x32x24xbf16> into tensor<2x4x32x1x24xbf16>
    %40 = tensor.empty() : tensor<1x2x24x4x32xbf16>
    %41 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4, d0, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_12 : tensor<2x4x32x1x24xbf16>) outs(%40 : tensor<1x2x24x4x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x2x24x4x32xbf16>
    %collapsed_13 = tensor.collapse_shape %41 [[0, 1], [2], [3], [4]] : tensor<1x2x24x4x32xbf16> into tensor<2x24x4x32xbf16>
    return %collapsed_13 : tensor<2x24x4x32xbf16>
  }
}