//   def mqa_causal(q,k,v): return dpa(q,k,v,is_causal=True,scale=0.3)
// Made by jax 0.10.2: `jax.jit(f).lower(...).as_text()`, without the attribute `algorithm`
// of dot_general, which iree-compile refuses; iree-base-compiler 3.13.0: `iree-compile
// --iree-input-type=stablehlo --compile-to=input`; util.func renamed to func's.
// dpa is jax.nn.dot_product_attention; scores(q, k, scale): einsum('bthd,bshd->bhts', q, k,
// preferred_element_type=f32) * scale, by default D**-0.5; mix(p, v): einsum(
// 'bhts,bshd->bthd', p.astype(v.dtype), v), and mixf with preferred_element_type=f32; rep:
// repeat(x, g, axis=2).
// RUN: %python %S/Inputs/raise_and_run.py %s
// REQUIRES: mlir-runner

#map = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map5 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d4)>
#map6 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d0, d4)>
#map7 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map8 = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d4, d2)>
#map9 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4, d0, d2)>
#map10 = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d2, d4)>
module @jit_mqa_causal {
  func.func @main(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x24x1x32xbf16>, %arg2: tensor<2x24x1x32xbf16>) -> tensor<2x24x4x32xbf16> {
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant -2.38197633E+38 : f32
    %cst_2 = arith.constant 3.000000e-01 : f32
    %cst_3 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x1x32x24xbf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x24x1x32xbf16>) outs(%0 : tensor<2x1x32x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x1x32x24xbf16>
    %collapsed = tensor.collapse_shape %arg0 [[0], [1, 2], [3]] : tensor<2x24x4x32xbf16> into tensor<2x96x32xbf16>
    %collapsed_4 = tensor.collapse_shape %1 [[0], [1, 2], [3]] : tensor<2x1x32x24xbf16> into tensor<2x32x24xbf16>
    %2 = tensor.empty() : tensor<2x96x24xf32>
    %3 = linalg.fill ins(%cst_3 : f32) outs(%2 : tensor<2x96x24xf32>) -> tensor<2x96x24xf32>
    %4 = linalg.batch_matmul ins(%collapsed, %collapsed_4 : tensor<2x96x32xbf16>, tensor<2x32x24xbf16>) outs(%3 : tensor<2x96x24xf32>) -> tensor<2x96x24xf32>
    %expanded = tensor.expand_shape %4 [[0], [1, 2, 3], [4]] output_shape [2, 1, 24, 4, 24] : tensor<2x96x24xf32> into tensor<2x1x24x4x24xf32>
    %5 = tensor.empty() : tensor<2x1x24x4x24xf32>
    %6 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x1x24x4x24xf32>) outs(%5 : tensor<2x1x24x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = arith.mulf %in, %cst_2 : f32
      linalg.yield %50 : f32
    } -> tensor<2x1x24x4x24xf32>
    %7 = tensor.empty() : tensor<24x24xi32>
    %8 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel", "parallel"]} outs(%7 : tensor<24x24xi32>) {
    ^bb0(%out: i32):
      %50 = linalg.index 0 : index
      %51 = arith.index_cast %50 : index to i32
      linalg.yield %51 : i32
    } -> tensor<24x24xi32>
    %9 = tensor.empty() : tensor<24x24xi32>
    %10 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel", "parallel"]} outs(%9 : tensor<24x24xi32>) {
    ^bb0(%out: i32):
      %50 = linalg.index 1 : index
      %51 = arith.index_cast %50 : index to i32
      linalg.yield %51 : i32
    } -> tensor<24x24xi32>
    %11 = tensor.empty() : tensor<24x24xi1>
    %12 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%8, %10 : tensor<24x24xi32>, tensor<24x24xi32>) outs(%11 : tensor<24x24xi1>) {
    ^bb0(%in: i32, %in_9: i32, %out: i1):
      %50 = arith.cmpi sge, %in, %in_9 : i32
      linalg.yield %50 : i1
    } -> tensor<24x24xi1>
    %13 = tensor.empty() : tensor<2x1x24x24xi1>
    %14 = linalg.generic {indexing_maps = [#map4, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12 : tensor<24x24xi1>) outs(%13 : tensor<2x1x24x24xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<2x1x24x24xi1>
    %15 = tensor.empty() : tensor<4x2x1x24x24xi1>
    %16 = linalg.generic {indexing_maps = [#map5, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%14 : tensor<2x1x24x24xi1>) outs(%15 : tensor<4x2x1x24x24xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<4x2x1x24x24xi1>
    %17 = tensor.empty() : tensor<4x2x1x24x24xf32>
    %18 = linalg.generic {indexing_maps = [#map6, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%6 : tensor<2x1x24x4x24xf32>) outs(%17 : tensor<4x2x1x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4x2x1x24x24xf32>
    %19 = tensor.empty() : tensor<4x2x1x24x24xf32>
    %20 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%16, %18 : tensor<4x2x1x24x24xi1>, tensor<4x2x1x24x24xf32>) outs(%19 : tensor<4x2x1x24x24xf32>) {
    ^bb0(%in: i1, %in_9: f32, %out: f32):
      %50 = arith.select %in, %in_9, %cst_1 : f32
      linalg.yield %50 : f32
    } -> tensor<4x2x1x24x24xf32>
    %21 = tensor.empty() : tensor<4x2x1x24xf32>
    %22 = linalg.fill ins(%cst_0 : f32) outs(%21 : tensor<4x2x1x24xf32>) -> tensor<4x2x1x24xf32>
    %23 = linalg.generic {indexing_maps = [#map2, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%20 : tensor<4x2x1x24x24xf32>) outs(%22 : tensor<4x2x1x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = arith.maximumf %out, %in : f32
      linalg.yield %50 : f32
    } -> tensor<4x2x1x24xf32>
    %24 = tensor.empty() : tensor<4x2x1x24x24xf32>
    %25 = linalg.generic {indexing_maps = [#map7, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%23 : tensor<4x2x1x24xf32>) outs(%24 : tensor<4x2x1x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4x2x1x24x24xf32>
    %26 = tensor.empty() : tensor<4x2x1x24x24xf32>
    %27 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%20, %25 : tensor<4x2x1x24x24xf32>, tensor<4x2x1x24x24xf32>) outs(%26 : tensor<4x2x1x24x24xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %50 = arith.subf %in, %in_9 : f32
      linalg.yield %50 : f32
    } -> tensor<4x2x1x24x24xf32>
    %28 = tensor.empty() : tensor<4x2x1x24x24xf32>
    %29 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%27 : tensor<4x2x1x24x24xf32>) outs(%28 : tensor<4x2x1x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = math.exp %in : f32
      linalg.yield %50 : f32
    } -> tensor<4x2x1x24x24xf32>
    %30 = tensor.empty() : tensor<4x2x1x24xf32>
    %31 = linalg.fill ins(%cst_3 : f32) outs(%30 : tensor<4x2x1x24xf32>) -> tensor<4x2x1x24xf32>
    %32 = linalg.generic {indexing_maps = [#map2, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%29 : tensor<4x2x1x24x24xf32>) outs(%31 : tensor<4x2x1x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = arith.addf %out, %in : f32
      linalg.yield %50 : f32
    } -> tensor<4x2x1x24xf32>
    %33 = tensor.empty() : tensor<4x2x1x24x24xf32>
    %34 = linalg.generic {indexing_maps = [#map7, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%32 : tensor<4x2x1x24xf32>) outs(%33 : tensor<4x2x1x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4x2x1x24x24xf32>
    %35 = tensor.empty() : tensor<4x2x1x24x24xf32>
    %36 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%29, %34 : tensor<4x2x1x24x24xf32>, tensor<4x2x1x24x24xf32>) outs(%35 : tensor<4x2x1x24x24xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %50 = arith.divf %in, %in_9 : f32
      linalg.yield %50 : f32
    } -> tensor<4x2x1x24x24xf32>
    %37 = tensor.empty() : tensor<4x2x1x24x24xbf16>
    %38 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%36 : tensor<4x2x1x24x24xf32>) outs(%37 : tensor<4x2x1x24x24xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %50 = arith.truncf %in : f32 to bf16
      linalg.yield %50 : bf16
    } -> tensor<4x2x1x24x24xbf16>
    %39 = tensor.empty() : tensor<2x1x32x24xbf16>
    %40 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x24x1x32xbf16>) outs(%39 : tensor<2x1x32x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x1x32x24xbf16>
    %41 = tensor.empty() : tensor<2x1x24x4x24xbf16>
    %42 = linalg.generic {indexing_maps = [#map8, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%38 : tensor<4x2x1x24x24xbf16>) outs(%41 : tensor<2x1x24x4x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x1x24x4x24xbf16>
    %collapsed_5 = tensor.collapse_shape %40 [[0], [1, 2], [3]] : tensor<2x1x32x24xbf16> into tensor<2x32x24xbf16>
    %collapsed_6 = tensor.collapse_shape %42 [[0], [1, 2], [3, 4]] : tensor<2x1x24x4x24xbf16> into tensor<2x24x96xbf16>
    %43 = tensor.empty() : tensor<2x32x96xbf16>
    %44 = linalg.fill ins(%cst : bf16) outs(%43 : tensor<2x32x96xbf16>) -> tensor<2x32x96xbf16>
    %45 = linalg.batch_matmul ins(%collapsed_5, %collapsed_6 : tensor<2x32x24xbf16>, tensor<2x24x96xbf16>) outs(%44 : tensor<2x32x96xbf16>) -> tensor<2x32x96xbf16>
    %expanded_7 = tensor.expand_shape %45 [[0], [1, 2], [3, 4]] output_shape [2, 1, 32, 4, 24] : tensor<2x32x96xbf16> into tensor<2x1x32x4x24xbf16>
    %46 = tensor.empty() : tensor<4x2x24x1x32xbf16>
    %47 = linalg.generic {indexing_maps = [#map9, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_7 : tensor<2x1x32x4x24xbf16>) outs(%46 : tensor<4x2x24x1x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<4x2x24x1x32xbf16>
    %48 = tensor.empty() : tensor<2x24x1x4x32xbf16>
    %49 = linalg.generic {indexing_maps = [#map10, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%47 : tensor<4x2x24x1x32xbf16>) outs(%48 : tensor<2x24x1x4x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x24x1x4x32xbf16>
    %collapsed_8 = tensor.collapse_shape %49 [[0], [1], [2, 3], [4]] : tensor<2x24x1x4x32xbf16> into tensor<2x24x4x32xbf16>
    return %collapsed_8 : tensor<2x24x4x32xbf16>
  }
}

