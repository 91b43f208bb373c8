// JAX's jax.nn.dot_product_attention, causal with a window.
// Made by jax 0.10.2: `jax.jit(f).lower(...).as_text()`, without the attribute
// `algorithm` of dot_general, which iree-compile refuses; iree-base-compiler 3.13.0:
// `iree-compile --iree-input-type=stablehlo --compile-to=input`; util.func and
// util.return renamed to func's.
// f = lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True, local_window_size=(7, 0))
// RUN: %python %S/Inputs/raise_and_run.py %s
// REQUIRES: mlir-runner

module {
  func.func @main(%arg0: tensor<1x40x4x32xbf16>, %arg1: tensor<1x40x4x32xbf16>, %arg2: tensor<1x40x4x32xbf16>) -> tensor<1x40x4x32xbf16> {
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant -2.38197633E+38 : f32
    %c7_i32 = arith.constant 7 : i32
    %cst_2 = arith.constant 0.176776692 : f32
    %cst_3 = arith.constant 0.000000e+00 : f32
    %cst_4 = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39]> : tensor<40xi32>
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2], [3, 4]] output_shape [1, 40, 4, 1, 32] : tensor<1x40x4x32xbf16> into tensor<1x40x4x1x32xbf16>
    %0 = tensor.empty() : tensor<1x4x40x1x32xbf16>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<1x40x4x1x32xbf16>) outs(%0 : tensor<1x4x40x1x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x4x40x1x32xbf16>
    %2 = tensor.empty() : tensor<1x4x32x40xbf16>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<1x40x4x32xbf16>) outs(%2 : tensor<1x4x32x40xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x4x32x40xbf16>
    %collapsed = tensor.collapse_shape %1 [[0, 1], [2], [3, 4]] : tensor<1x4x40x1x32xbf16> into tensor<4x40x32xbf16>
    %collapsed_5 = tensor.collapse_shape %3 [[0, 1], [2], [3]] : tensor<1x4x32x40xbf16> into tensor<4x32x40xbf16>
    %4 = tensor.empty() : tensor<4x40x40xf32>
    %5 = linalg.fill ins(%cst_3 : f32) outs(%4 : tensor<4x40x40xf32>) -> tensor<4x40x40xf32>
    %6 = linalg.batch_matmul ins(%collapsed, %collapsed_5 : tensor<4x40x32xbf16>, tensor<4x32x40xbf16>) outs(%5 : tensor<4x40x40xf32>) -> tensor<4x40x40xf32>
    %expanded_6 = tensor.expand_shape %6 [[0, 1], [2], [3, 4]] output_shape [1, 4, 40, 1, 40] : tensor<4x40x40xf32> into tensor<1x4x40x1x40xf32>
    %7 = tensor.empty() : tensor<1x4x40x1x40xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_6 : tensor<1x4x40x1x40xf32>) outs(%7 : tensor<1x4x40x1x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %68 = arith.mulf %in, %cst_2 : f32
      linalg.yield %68 : f32
    } -> tensor<1x4x40x1x40xf32>
    %9 = tensor.empty() : tensor<40x40xi32>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%9 : tensor<40x40xi32>) {
    ^bb0(%out: i32):
      %68 = linalg.index 0 : index
      %69 = arith.index_cast %68 : index to i32
      linalg.yield %69 : i32
    } -> tensor<40x40xi32>
    %11 = tensor.empty() : tensor<40x40xi32>
    %12 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%11 : tensor<40x40xi32>) {
    ^bb0(%out: i32):
      %68 = linalg.index 1 : index
      %69 = arith.index_cast %68 : index to i32
      linalg.yield %69 : i32
    } -> tensor<40x40xi32>
    %13 = tensor.empty() : tensor<40x40xi1>
    %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%10, %12 : tensor<40x40xi32>, tensor<40x40xi32>) outs(%13 : tensor<40x40xi1>) {
    ^bb0(%in: i32, %in_13: i32, %out: i1):
      %68 = arith.cmpi sge, %in, %in_13 : i32
      linalg.yield %68 : i1
    } -> tensor<40x40xi1>
    %15 = tensor.empty() : tensor<1x4x40x40xi1>
    %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14 : tensor<40x40xi1>) outs(%15 : tensor<1x4x40x40xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<1x4x40x40xi1>
    %17 = tensor.empty() : tensor<1x40xi32>
    %18 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%cst_4 : tensor<40xi32>) outs(%17 : tensor<1x40xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<1x40xi32>
    %19 = tensor.empty() : tensor<1x40xi32>
    %20 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%18 : tensor<1x40xi32>) outs(%19 : tensor<1x40xi32>) {
    ^bb0(%in: i32, %out: i32):
      %68 = arith.addi %in, %c7_i32 : i32
      linalg.yield %68 : i32
    } -> tensor<1x40xi32>
    %21 = tensor.empty() : tensor<40x40xi32>
    %22 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%cst_4 : tensor<40xi32>) outs(%21 : tensor<40x40xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<40x40xi32>
    %23 = tensor.empty() : tensor<40x40xi32>
    %24 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%20 : tensor<1x40xi32>) outs(%23 : tensor<40x40xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<40x40xi32>
    %25 = tensor.empty() : tensor<40x40xi1>
    %26 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%22, %24 : tensor<40x40xi32>, tensor<40x40xi32>) outs(%25 : tensor<40x40xi1>) {
    ^bb0(%in: i32, %in_13: i32, %out: i1):
      %68 = arith.cmpi sle, %in, %in_13 : i32
      linalg.yield %68 : i1
    } -> tensor<40x40xi1>
    %27 = tensor.empty() : tensor<40x40xi32>
    %28 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%cst_4 : tensor<40xi32>) outs(%27 : tensor<40x40xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<40x40xi32>
    %29 = tensor.empty() : tensor<40x40xi1>
    %30 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%22, %28 : tensor<40x40xi32>, tensor<40x40xi32>) outs(%29 : tensor<40x40xi1>) {
    ^bb0(%in: i32, %in_13: i32, %out: i1):
      %68 = arith.cmpi sge, %in, %in_13 : i32
      linalg.yield %68 : i1
    } -> tensor<40x40xi1>
    %31 = tensor.empty() : tensor<40x40xi1>
    %32 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%30, %26 : tensor<40x40xi1>, tensor<40x40xi1>) outs(%31 : tensor<40x40xi1>) {
    ^bb0(%in: i1, %in_13: i1, %out: i1):
      %68 = arith.andi %in, %in_13 : i1
      linalg.yield %68 : i1
    } -> tensor<40x40xi1>
    %33 = tensor.empty() : tensor<1x4x40x40xi1>
    %34 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%32 : tensor<40x40xi1>) outs(%33 : tensor<1x4x40x40xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<1x4x40x40xi1>
    %35 = tensor.empty() : tensor<1x4x40x40xi1>
    %36 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16, %34 : tensor<1x4x40x40xi1>, tensor<1x4x40x40xi1>) outs(%35 : tensor<1x4x40x40xi1>) {
    ^bb0(%in: i1, %in_13: i1, %out: i1):
      %68 = arith.andi %in, %in_13 : i1
      linalg.yield %68 : i1
    } -> tensor<1x4x40x40xi1>
    %37 = tensor.empty() : tensor<1x1x4x40x40xi1>
    %38 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%36 : tensor<1x4x40x40xi1>) outs(%37 : tensor<1x1x4x40x40xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<1x1x4x40x40xi1>
    %collapsed_7 = tensor.collapse_shape %8 [[0, 1, 2, 3, 4]] : tensor<1x4x40x1x40xf32> into tensor<6400xf32>
    %expanded_8 = tensor.expand_shape %collapsed_7 [[0, 1, 2, 3, 4]] output_shape [1, 1, 4, 40, 40] : tensor<6400xf32> into tensor<1x1x4x40x40xf32>
    %39 = tensor.empty() : tensor<1x1x4x40x40xf32>
    %40 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%38, %expanded_8 : tensor<1x1x4x40x40xi1>, tensor<1x1x4x40x40xf32>) outs(%39 : tensor<1x1x4x40x40xf32>) {
    ^bb0(%in: i1, %in_13: f32, %out: f32):
      %68 = arith.select %in, %in_13, %cst_1 : f32
      linalg.yield %68 : f32
    } -> tensor<1x1x4x40x40xf32>
    %41 = tensor.empty() : tensor<1x1x4x40xf32>
    %42 = linalg.fill ins(%cst_0 : f32) outs(%41 : tensor<1x1x4x40xf32>) -> tensor<1x1x4x40xf32>
    %43 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%40 : tensor<1x1x4x40x40xf32>) outs(%42 : tensor<1x1x4x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %68 = arith.maximumf %out, %in : f32
      linalg.yield %68 : f32
    } -> tensor<1x1x4x40xf32>
    %44 = tensor.empty() : tensor<1x1x4x40x40xf32>
    %45 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%43 : tensor<1x1x4x40xf32>) outs(%44 : tensor<1x1x4x40x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x4x40x40xf32>
    %46 = tensor.empty() : tensor<1x1x4x40x40xf32>
    %47 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%40, %45 : tensor<1x1x4x40x40xf32>, tensor<1x1x4x40x40xf32>) outs(%46 : tensor<1x1x4x40x40xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %68 = arith.subf %in, %in_13 : f32
      linalg.yield %68 : f32
    } -> tensor<1x1x4x40x40xf32>
    %48 = tensor.empty() : tensor<1x1x4x40x40xf32>
    %49 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%47 : tensor<1x1x4x40x40xf32>) outs(%48 : tensor<1x1x4x40x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %68 = math.exp %in : f32
      linalg.yield %68 : f32
    } -> tensor<1x1x4x40x40xf32>
    %50 = tensor.empty() : tensor<1x1x4x40xf32>
    %51 = linalg.fill ins(%cst_3 : f32) outs(%50 : tensor<1x1x4x40xf32>) -> tensor<1x1x4x40xf32>
    %52 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%49 : tensor<1x1x4x40x40xf32>) outs(%51 : tensor<1x1x4x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %68 = arith.addf %out, %in : f32
      linalg.yield %68 : f32
    } -> tensor<1x1x4x40xf32>
    %53 = tensor.empty() : tensor<1x1x4x40x40xf32>
    %54 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%52 : tensor<1x1x4x40xf32>) outs(%53 : tensor<1x1x4x40x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x4x40x40xf32>
    %55 = tensor.empty() : tensor<1x1x4x40x40xf32>
    %56 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%49, %54 : tensor<1x1x4x40x40xf32>, tensor<1x1x4x40x40xf32>) outs(%55 : tensor<1x1x4x40x40xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %68 = arith.divf %in, %in_13 : f32
      linalg.yield %68 : f32
    } -> tensor<1x1x4x40x40xf32>
    %57 = tensor.empty() : tensor<1x1x4x40x40xbf16>
    %58 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%56 : tensor<1x1x4x40x40xf32>) outs(%57 : tensor<1x1x4x40x40xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %68 = arith.truncf %in : f32 to bf16
      linalg.yield %68 : bf16
    } -> tensor<1x1x4x40x40xbf16>
    %59 = tensor.empty() : tensor<1x4x32x40xbf16>
    %60 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<1x40x4x32xbf16>) outs(%59 : tensor<1x4x32x40xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x4x32x40xbf16>
    %61 = tensor.empty() : tensor<1x4x40x1x40xbf16>
    %62 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%58 : tensor<1x1x4x40x40xbf16>) outs(%61 : tensor<1x4x40x1x40xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x4x40x1x40xbf16>
    %collapsed_9 = tensor.collapse_shape %60 [[0, 1], [2], [3]] : tensor<1x4x32x40xbf16> into tensor<4x32x40xbf16>
    %collapsed_10 = tensor.collapse_shape %62 [[0, 1], [2], [3, 4]] : tensor<1x4x40x1x40xbf16> into tensor<4x40x40xbf16>
    %63 = tensor.empty() : tensor<4x32x40xbf16>
    %64 = linalg.fill ins(%cst : bf16) outs(%63 : tensor<4x32x40xbf16>) -> tensor<4x32x40xbf16>
    %65 = linalg.batch_matmul ins(%collapsed_9, %collapsed_10 : tensor<4x32x40xbf16>, tensor<4x40x40xbf16>) outs(%64 : tensor<4x32x40xbf16>) -> tensor<4x32x40xbf16>
    %expanded_11 = tensor.expand_shape %65 [[0, 1], [2], [3, 4]] output_shape [1, 4, 32, 1, 40] : tensor<4x32x40xbf16> into tensor<1x4x32x1x40xbf16>
    %66 = tensor.empty() : tensor<1x1x40x4x32xbf16>
    %67 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4, d0, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_11 : tensor<1x4x32x1x40xbf16>) outs(%66 : tensor<1x1x40x4x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x1x40x4x32xbf16>
    %collapsed_12 = tensor.collapse_shape %67 [[0], [1, 2], [3], [4]] : tensor<1x1x40x4x32xbf16> into tensor<1x40x4x32xbf16>
    return %collapsed_12 : tensor<1x40x4x32xbf16>
  }
}