//   def half_gqa_einsum(q,k,v):
//       q=q.reshape(B,T,G,2,D); x=jnp.einsum('btgrd,bsgd->bgrts',q,k,preferred_element_type=f32)*0.2
//       p=jax.nn.softmax(x,-1).astype(f16); return jnp.einsum('bgrts,bsgd->btgrd',p,v).reshape(B,T,H,D)
// Made by jax 0.10.2: `jax.jit(f).lower(...).as_text()`, without the attribute `algorithm`
// of dot_general, which iree-compile refuses; iree-base-compiler 3.13.0: `iree-compile
// --iree-input-type=stablehlo --compile-to=input`; util.func renamed to func's.
// dpa is jax.nn.dot_product_attention; scores(q, k, scale): einsum('bthd,bshd->bhts', q, k,
// preferred_element_type=f32) * scale, by default D**-0.5; mix(p, v): einsum(
// 'bhts,bshd->bthd', p.astype(v.dtype), v), and mixf with preferred_element_type=f32; rep:
// repeat(x, g, axis=2).
// RUN: %python %S/Inputs/raise_and_run.py %s
// REQUIRES: mlir-runner

#map = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d1, d4, d2)>
#map3 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map4 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3, d2)>
#map5 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
#map7 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4, d2)>
#map8 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4, d3, d1)>
module @jit_half_gqa_einsum {
  func.func @main(%arg0: tensor<2x24x4x32xf16>, %arg1: tensor<2x40x2x32xf16>, %arg2: tensor<2x40x2x32xf16>) -> tensor<2x24x4x32xf16> {
    %cst = arith.constant 0.000000e+00 : f16
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant 2.000000e-01 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2, 3], [4]] output_shape [2, 24, 2, 2, 32] : tensor<2x24x4x32xf16> into tensor<2x24x2x2x32xf16>
    %0 = tensor.empty() : tensor<2x2x40x32xf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x40x2x32xf16>) outs(%0 : tensor<2x2x40x32xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x2x40x32xf16>
    %2 = tensor.empty() : tensor<2x2x32x24x2xf16>
    %3 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x24x2x2x32xf16>) outs(%2 : tensor<2x2x32x24x2xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x2x32x24x2xf16>
    %collapsed = tensor.collapse_shape %1 [[0, 1], [2], [3]] : tensor<2x2x40x32xf16> into tensor<4x40x32xf16>
    %collapsed_3 = tensor.collapse_shape %3 [[0, 1], [2], [3, 4]] : tensor<2x2x32x24x2xf16> into tensor<4x32x48xf16>
    %4 = tensor.empty() : tensor<4x40x48xf32>
    %5 = linalg.fill ins(%cst_2 : f32) outs(%4 : tensor<4x40x48xf32>) -> tensor<4x40x48xf32>
    %6 = linalg.batch_matmul ins(%collapsed, %collapsed_3 : tensor<4x40x32xf16>, tensor<4x32x48xf16>) outs(%5 : tensor<4x40x48xf32>) -> tensor<4x40x48xf32>
    %expanded_4 = tensor.expand_shape %6 [[0, 1], [2], [3, 4]] output_shape [2, 2, 40, 24, 2] : tensor<4x40x48xf32> into tensor<2x2x40x24x2xf32>
    %7 = tensor.empty() : tensor<2x2x2x24x40xf32>
    %8 = linalg.generic {indexing_maps = [#map4, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_4 : tensor<2x2x40x24x2xf32>) outs(%7 : tensor<2x2x2x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x2x24x40xf32>
    %9 = tensor.empty() : tensor<2x2x2x24x40xf32>
    %10 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<2x2x2x24x40xf32>) outs(%9 : tensor<2x2x2x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %38 = arith.mulf %in, %cst_1 : f32
      linalg.yield %38 : f32
    } -> tensor<2x2x2x24x40xf32>
    %11 = tensor.empty() : tensor<2x2x2x24xf32>
    %12 = linalg.fill ins(%cst_0 : f32) outs(%11 : tensor<2x2x2x24xf32>) -> tensor<2x2x2x24xf32>
    %13 = linalg.generic {indexing_maps = [#map3, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%10 : tensor<2x2x2x24x40xf32>) outs(%12 : tensor<2x2x2x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %38 = arith.maximumf %out, %in : f32
      linalg.yield %38 : f32
    } -> tensor<2x2x2x24xf32>
    %14 = tensor.empty() : tensor<2x2x2x24x40xf32>
    %15 = linalg.generic {indexing_maps = [#map5, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%13 : tensor<2x2x2x24xf32>) outs(%14 : tensor<2x2x2x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x2x24x40xf32>
    %16 = tensor.empty() : tensor<2x2x2x24x40xf32>
    %17 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%10, %15 : tensor<2x2x2x24x40xf32>, tensor<2x2x2x24x40xf32>) outs(%16 : tensor<2x2x2x24x40xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %38 = arith.subf %in, %in_9 : f32
      linalg.yield %38 : f32
    } -> tensor<2x2x2x24x40xf32>
    %18 = tensor.empty() : tensor<2x2x2x24x40xf32>
    %19 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%17 : tensor<2x2x2x24x40xf32>) outs(%18 : tensor<2x2x2x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %38 = math.exp %in : f32
      linalg.yield %38 : f32
    } -> tensor<2x2x2x24x40xf32>
    %20 = tensor.empty() : tensor<2x2x2x24xf32>
    %21 = linalg.fill ins(%cst_2 : f32) outs(%20 : tensor<2x2x2x24xf32>) -> tensor<2x2x2x24xf32>
    %22 = linalg.generic {indexing_maps = [#map3, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%19 : tensor<2x2x2x24x40xf32>) outs(%21 : tensor<2x2x2x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %38 = arith.addf %out, %in : f32
      linalg.yield %38 : f32
    } -> tensor<2x2x2x24xf32>
    %23 = tensor.empty() : tensor<2x2x2x24x40xf32>
    %24 = linalg.generic {indexing_maps = [#map5, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%22 : tensor<2x2x2x24xf32>) outs(%23 : tensor<2x2x2x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x2x24x40xf32>
    %25 = tensor.empty() : tensor<2x2x2x24x40xf32>
    %26 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%19, %24 : tensor<2x2x2x24x40xf32>, tensor<2x2x2x24x40xf32>) outs(%25 : tensor<2x2x2x24x40xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %38 = arith.divf %in, %in_9 : f32
      linalg.yield %38 : f32
    } -> tensor<2x2x2x24x40xf32>
    %27 = tensor.empty() : tensor<2x2x2x24x40xf16>
    %28 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%26 : tensor<2x2x2x24x40xf32>) outs(%27 : tensor<2x2x2x24x40xf16>) {
    ^bb0(%in: f32, %out: f16):
      %38 = arith.truncf %in : f32 to f16
      linalg.yield %38 : f16
    } -> tensor<2x2x2x24x40xf16>
    %29 = tensor.empty() : tensor<2x2x32x40xf16>
    %30 = linalg.generic {indexing_maps = [#map6, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x40x2x32xf16>) outs(%29 : tensor<2x2x32x40xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x2x32x40xf16>
    %31 = tensor.empty() : tensor<2x2x40x2x24xf16>
    %32 = linalg.generic {indexing_maps = [#map7, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%28 : tensor<2x2x2x24x40xf16>) outs(%31 : tensor<2x2x40x2x24xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x2x40x2x24xf16>
    %collapsed_5 = tensor.collapse_shape %30 [[0, 1], [2], [3]] : tensor<2x2x32x40xf16> into tensor<4x32x40xf16>
    %collapsed_6 = tensor.collapse_shape %32 [[0, 1], [2], [3, 4]] : tensor<2x2x40x2x24xf16> into tensor<4x40x48xf16>
    %33 = tensor.empty() : tensor<4x32x48xf16>
    %34 = linalg.fill ins(%cst : f16) outs(%33 : tensor<4x32x48xf16>) -> tensor<4x32x48xf16>
    %35 = linalg.batch_matmul ins(%collapsed_5, %collapsed_6 : tensor<4x32x40xf16>, tensor<4x40x48xf16>) outs(%34 : tensor<4x32x48xf16>) -> tensor<4x32x48xf16>
    %expanded_7 = tensor.expand_shape %35 [[0, 1], [2], [3, 4]] output_shape [2, 2, 32, 2, 24] : tensor<4x32x48xf16> into tensor<2x2x32x2x24xf16>
    %36 = tensor.empty() : tensor<2x24x2x2x32xf16>
    %37 = linalg.generic {indexing_maps = [#map8, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_7 : tensor<2x2x32x2x24xf16>) outs(%36 : tensor<2x24x2x2x32xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x24x2x2x32xf16>
    %collapsed_8 = tensor.collapse_shape %37 [[0], [1], [2, 3], [4]] : tensor<2x24x2x2x32xf16> into tensor<2x24x4x32xf16>
    return %collapsed_8 : tensor<2x24x4x32xf16>
  }
}

