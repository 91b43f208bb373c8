//   def heads_first(q,k,v):
//       x=jnp.einsum('bhtd,bhsd->bhts',q,k,preferred_element_type=f32)*D**-0.5
//       return jnp.einsum('bhts,bhsd->bhtd',jax.nn.softmax(x,-1).astype(bf),v)
// Made by jax 0.10.2: `jax.jit(f).lower(...).as_text()`, without the attribute `algorithm`
// of dot_general, which iree-compile refuses; iree-base-compiler 3.13.0: `iree-compile
// --iree-input-type=stablehlo --compile-to=input`; util.func renamed to func's.
// dpa is jax.nn.dot_product_attention; scores(q, k, scale): einsum('bthd,bshd->bhts', q, k,
// preferred_element_type=f32) * scale, by default D**-0.5; mix(p, v): einsum(
// 'bhts,bshd->bthd', p.astype(v.dtype), v), and mixf with preferred_element_type=f32; rep:
// repeat(x, g, axis=2).
// RUN: %python %S/Inputs/raise_and_run.py %s
// REQUIRES: mlir-runner

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
module @jit_heads_first {
  func.func @main(%arg0: tensor<2x4x24x32xbf16>, %arg1: tensor<2x4x40x32xbf16>, %arg2: tensor<2x4x40x32xbf16>) -> tensor<2x4x24x32xbf16> {
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant 0.176776692 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x4x32x40xbf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x4x40x32xbf16>) outs(%0 : tensor<2x4x32x40xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x40xbf16>
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2], [3]] : tensor<2x4x24x32xbf16> into tensor<8x24x32xbf16>
    %collapsed_3 = tensor.collapse_shape %1 [[0, 1], [2], [3]] : tensor<2x4x32x40xbf16> into tensor<8x32x40xbf16>
    %2 = tensor.empty() : tensor<8x24x40xf32>
    %3 = linalg.fill ins(%cst_2 : f32) outs(%2 : tensor<8x24x40xf32>) -> tensor<8x24x40xf32>
    %4 = linalg.batch_matmul ins(%collapsed, %collapsed_3 : tensor<8x24x32xbf16>, tensor<8x32x40xbf16>) outs(%3 : tensor<8x24x40xf32>) -> tensor<8x24x40xf32>
    %expanded = tensor.expand_shape %4 [[0, 1], [2], [3]] output_shape [2, 4, 24, 40] : tensor<8x24x40xf32> into tensor<2x4x24x40xf32>
    %5 = tensor.empty() : tensor<2x4x24x40xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x4x24x40xf32>) outs(%5 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %28 = arith.mulf %in, %cst_1 : f32
      linalg.yield %28 : f32
    } -> tensor<2x4x24x40xf32>
    %7 = tensor.empty() : tensor<2x4x24xf32>
    %8 = linalg.fill ins(%cst_0 : f32) outs(%7 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %9 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%6 : tensor<2x4x24x40xf32>) outs(%8 : tensor<2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %28 = arith.maximumf %out, %in : f32
      linalg.yield %28 : f32
    } -> tensor<2x4x24xf32>
    %10 = tensor.empty() : tensor<2x4x24x40xf32>
    %11 = linalg.generic {indexing_maps = [#map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9 : tensor<2x4x24xf32>) outs(%10 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x24x40xf32>
    %12 = tensor.empty() : tensor<2x4x24x40xf32>
    %13 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %11 : tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>) outs(%12 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %28 = arith.subf %in, %in_7 : f32
      linalg.yield %28 : f32
    } -> tensor<2x4x24x40xf32>
    %14 = tensor.empty() : tensor<2x4x24x40xf32>
    %15 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%13 : tensor<2x4x24x40xf32>) outs(%14 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %28 = math.exp %in : f32
      linalg.yield %28 : f32
    } -> tensor<2x4x24x40xf32>
    %16 = tensor.empty() : tensor<2x4x24xf32>
    %17 = linalg.fill ins(%cst_2 : f32) outs(%16 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %18 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%15 : tensor<2x4x24x40xf32>) outs(%17 : tensor<2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %28 = arith.addf %out, %in : f32
      linalg.yield %28 : f32
    } -> tensor<2x4x24xf32>
    %19 = tensor.empty() : tensor<2x4x24x40xf32>
    %20 = linalg.generic {indexing_maps = [#map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18 : tensor<2x4x24xf32>) outs(%19 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x24x40xf32>
    %21 = tensor.empty() : tensor<2x4x24x40xf32>
    %22 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15, %20 : tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>) outs(%21 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %28 = arith.divf %in, %in_7 : f32
      linalg.yield %28 : f32
    } -> tensor<2x4x24x40xf32>
    %23 = tensor.empty() : tensor<2x4x24x40xbf16>
    %24 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%22 : tensor<2x4x24x40xf32>) outs(%23 : tensor<2x4x24x40xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %28 = arith.truncf %in : f32 to bf16
      linalg.yield %28 : bf16
    } -> tensor<2x4x24x40xbf16>
    %collapsed_4 = tensor.collapse_shape %24 [[0, 1], [2], [3]] : tensor<2x4x24x40xbf16> into tensor<8x24x40xbf16>
    %collapsed_5 = tensor.collapse_shape %arg2 [[0, 1], [2], [3]] : tensor<2x4x40x32xbf16> into tensor<8x40x32xbf16>
    %25 = tensor.empty() : tensor<8x24x32xbf16>
    %26 = linalg.fill ins(%cst : bf16) outs(%25 : tensor<8x24x32xbf16>) -> tensor<8x24x32xbf16>
    %27 = linalg.batch_matmul ins(%collapsed_4, %collapsed_5 : tensor<8x24x40xbf16>, tensor<8x40x32xbf16>) outs(%26 : tensor<8x24x32xbf16>) -> tensor<8x24x32xbf16>
    %expanded_6 = tensor.expand_shape %27 [[0, 1], [2], [3]] output_shape [2, 4, 24, 32] : tensor<8x24x32xbf16> into tensor<2x4x24x32xbf16>
    return %expanded_6 : tensor<2x4x24x32xbf16>
  }
}

