// JAX's jax.nn.dot_product_attention with an additive bias.
// Made by jax 0.10.2: `jax.jit(f).lower(...).as_text()`, without the attribute
// `algorithm` of dot_general, which iree-compile refuses; iree-base-compiler 3.13.0:
// `iree-compile --iree-input-type=stablehlo --compile-to=input`; util.func and
// util.return renamed to func's.
// f = lambda q, k, v: jax.nn.dot_product_attention(q, k, v, bias=bias)
// RUN: %python %S/Inputs/raise_and_run.py %s
// RUN: %python %S/Inputs/raise_and_launch.py %build sm_80 %s
// REQUIRES: mlir-runner

module {
  func.func @main(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x4x32xbf16>, %arg2: tensor<2x40x4x32xbf16>, %arg3: tensor<2x4x24x40xbf16>) -> tensor<2x24x4x32xbf16> {
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant 0.176776692 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2], [3, 4]] output_shape [2, 24, 4, 1, 32] : tensor<2x24x4x32xbf16> into tensor<2x24x4x1x32xbf16>
    %0 = tensor.empty() : tensor<2x4x24x40xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg3 : tensor<2x4x24x40xbf16>) outs(%0 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %40 = arith.extf %in : bf16 to f32
      linalg.yield %40 : f32
    } -> tensor<2x4x24x40xf32>
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
    %collapsed_3 = tensor.collapse_shape %5 [[0, 1], [2], [3]] : tensor<2x4x32x40xbf16> into tensor<8x32x40xbf16>
    %6 = tensor.empty() : tensor<8x24x40xf32>
    %7 = linalg.fill ins(%cst_2 : f32) outs(%6 : tensor<8x24x40xf32>) -> tensor<8x24x40xf32>
    %8 = linalg.batch_matmul ins(%collapsed, %collapsed_3 : tensor<8x24x32xbf16>, tensor<8x32x40xbf16>) outs(%7 : tensor<8x24x40xf32>) -> tensor<8x24x40xf32>
    %expanded_4 = tensor.expand_shape %8 [[0, 1], [2], [3, 4]] output_shape [2, 4, 24, 1, 40] : tensor<8x24x40xf32> into tensor<2x4x24x1x40xf32>
    %9 = tensor.empty() : tensor<2x4x24x1x40xf32>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_4 : tensor<2x4x24x1x40xf32>) outs(%9 : tensor<2x4x24x1x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %40 = arith.mulf %in, %cst_1 : f32
      linalg.yield %40 : f32
    } -> tensor<2x4x24x1x40xf32>
    %collapsed_5 = tensor.collapse_shape %10 [[0, 1, 2, 3, 4]] : tensor<2x4x24x1x40xf32> into tensor<7680xf32>
    %expanded_6 = tensor.expand_shape %collapsed_5 [[0, 1, 2, 3, 4]] output_shape [1, 2, 4, 24, 40] : tensor<7680xf32> into tensor<1x2x4x24x40xf32>
    %expanded_7 = tensor.expand_shape %1 [[0, 1], [2], [3], [4]] output_shape [1, 2, 4, 24, 40] : tensor<2x4x24x40xf32> into tensor<1x2x4x24x40xf32>
    %11 = tensor.empty() : tensor<1x2x4x24x40xf32>
    %12 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_6, %expanded_7 : tensor<1x2x4x24x40xf32>, tensor<1x2x4x24x40xf32>) outs(%11 : tensor<1x2x4x24x40xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %40 = arith.addf %in, %in_12 : f32
      linalg.yield %40 : f32
    } -> tensor<1x2x4x24x40xf32>
    %13 = tensor.empty() : tensor<1x2x4x24xf32>
    %14 = linalg.fill ins(%cst_0 : f32) outs(%13 : tensor<1x2x4x24xf32>) -> tensor<1x2x4x24xf32>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%12 : tensor<1x2x4x24x40xf32>) outs(%14 : tensor<1x2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %40 = arith.maximumf %out, %in : f32
      linalg.yield %40 : f32
    } -> tensor<1x2x4x24xf32>
    %16 = tensor.empty() : tensor<1x2x4x24x40xf32>
    %17 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%15 : tensor<1x2x4x24xf32>) outs(%16 : tensor<1x2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x2x4x24x40xf32>
    %18 = tensor.empty() : tensor<1x2x4x24x40xf32>
    %19 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%12, %17 : tensor<1x2x4x24x40xf32>, tensor<1x2x4x24x40xf32>) outs(%18 : tensor<1x2x4x24x40xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %40 = arith.subf %in, %in_12 : f32
      linalg.yield %40 : f32
    } -> tensor<1x2x4x24x40xf32>
    %20 = tensor.empty() : tensor<1x2x4x24x40xf32>
    %21 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%19 : tensor<1x2x4x24x40xf32>) outs(%20 : tensor<1x2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %40 = math.exp %in : f32
      linalg.yield %40 : f32
    } -> tensor<1x2x4x24x40xf32>
    %22 = tensor.empty() : tensor<1x2x4x24xf32>
    %23 = linalg.fill ins(%cst_2 : f32) outs(%22 : tensor<1x2x4x24xf32>) -> tensor<1x2x4x24xf32>
    %24 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%21 : tensor<1x2x4x24x40xf32>) outs(%23 : tensor<1x2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %40 = arith.addf %out, %in : f32
      linalg.yield %40 : f32
    } -> tensor<1x2x4x24xf32>
    %25 = tensor.empty() : tensor<1x2x4x24x40xf32>
    %26 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%24 : tensor<1x2x4x24xf32>) outs(%25 : tensor<1x2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x2x4x24x40xf32>
    %27 = tensor.empty() : tensor<1x2x4x24x40xf32>
    %28 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%21, %26 : tensor<1x2x4x24x40xf32>, tensor<1x2x4x24x40xf32>) outs(%27 : tensor<1x2x4x24x40xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %40 = arith.divf %in, %in_12 : f32
      linalg.yield %40 : f32
    } -> tensor<1x2x4x24x40xf32>
    %29 = tensor.empty() : tensor<1x2x4x24x40xbf16>
    %30 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%28 : tensor<1x2x4x24x40xf32>) outs(%29 : tensor<1x2x4x24x40xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %40 = arith.truncf %in : f32 to bf16
      linalg.yield %40 : bf16
    } -> tensor<1x2x4x24x40xbf16>
    %31 = tensor.empty() : tensor<2x4x32x40xbf16>
    %32 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x40x4x32xbf16>) outs(%31 : tensor<2x4x32x40xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x40xbf16>
    %33 = tensor.empty() : tensor<2x4x40x1x24xbf16>
    %34 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%30 : tensor<1x2x4x24x40xbf16>) outs(%33 : tensor<2x4x40x1x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x40x1x24xbf16>
    %collapsed_8 = tensor.collapse_shape %32 [[0, 1], [2], [3]] : tensor<2x4x32x40xbf16> into tensor<8x32x40xbf16>
    %collapsed_9 = tensor.collapse_shape %34 [[0, 1], [2], [3, 4]] : tensor<2x4x40x1x24xbf16> into tensor<8x40x24xbf16>
    %35 = tensor.empty() : tensor<8x32x24xbf16>
    %36 = linalg.fill ins(%cst : bf16) outs(%35 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %37 = linalg.batch_matmul ins(%collapsed_8, %collapsed_9 : tensor<8x32x40xbf16>, tensor<8x40x24xbf16>) outs(%36 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %expanded_10 = tensor.expand_shape %37 [[0, 1], [2], [3, 4]] output_shape [2, 4, 32, 1, 24] : tensor<8x32x24xbf16> into tensor<2x4x32x1x24xbf16>
    %38 = tensor.empty() : tensor<1x2x24x4x32xbf16>
    %39 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4, d0, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_10 : tensor<2x4x32x1x24xbf16>) outs(%38 : tensor<1x2x24x4x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x2x24x4x32xbf16>
    %collapsed_11 = tensor.collapse_shape %39 [[0, 1], [2], [3], [4]] : tensor<1x2x24x4x32xbf16> into tensor<2x24x4x32xbf16>
    return %collapsed_11 : tensor<2x24x4x32xbf16>
  }
}