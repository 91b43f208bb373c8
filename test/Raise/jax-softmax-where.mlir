//   def softmax_where(q,k,v,m): return mix(jax.nn.softmax(scores(q,k),-1,where=m[:,None,None,:]),v)
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
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map5 = affine_map<() -> ()>
#map6 = affine_map<(d0, d1, d2, d3) -> ()>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
module @jit_softmax_where {
  func.func @main(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x4x32xbf16>, %arg2: tensor<2x40x4x32xbf16>, %arg3: tensor<2x40xi1>) -> tensor<2x24x4x32xbf16> {
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant 0.176776692 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x4x24x32xbf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x24x4x32xbf16>) outs(%0 : tensor<2x4x24x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x24x32xbf16>
    %2 = tensor.empty() : tensor<2x4x32x40xbf16>
    %3 = linalg.generic {indexing_maps = [#map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x40x4x32xbf16>) outs(%2 : tensor<2x4x32x40xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x40xbf16>
    %collapsed = tensor.collapse_shape %1 [[0, 1], [2], [3]] : tensor<2x4x24x32xbf16> into tensor<8x24x32xbf16>
    %collapsed_3 = tensor.collapse_shape %3 [[0, 1], [2], [3]] : tensor<2x4x32x40xbf16> into tensor<8x32x40xbf16>
    %4 = tensor.empty() : tensor<8x24x40xf32>
    %5 = linalg.fill ins(%cst_2 : f32) outs(%4 : tensor<8x24x40xf32>) -> tensor<8x24x40xf32>
    %6 = linalg.batch_matmul ins(%collapsed, %collapsed_3 : tensor<8x24x32xbf16>, tensor<8x32x40xbf16>) outs(%5 : tensor<8x24x40xf32>) -> tensor<8x24x40xf32>
    %expanded = tensor.expand_shape %6 [[0, 1], [2], [3]] output_shape [2, 4, 24, 40] : tensor<8x24x40xf32> into tensor<2x4x24x40xf32>
    %7 = tensor.empty() : tensor<2x4x24x40xf32>
    %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x4x24x40xf32>) outs(%7 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %48 = arith.mulf %in, %cst_1 : f32
      linalg.yield %48 : f32
    } -> tensor<2x4x24x40xf32>
    %9 = tensor.empty() : tensor<2x4x24x40xi1>
    %10 = linalg.generic {indexing_maps = [#map3, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg3 : tensor<2x40xi1>) outs(%9 : tensor<2x4x24x40xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<2x4x24x40xi1>
    %11 = tensor.empty() : tensor<2x4x24x40xf32>
    %12 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10, %8 : tensor<2x4x24x40xi1>, tensor<2x4x24x40xf32>) outs(%11 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: i1, %in_7: f32, %out: f32):
      %48 = arith.select %in, %in_7, %cst_0 : f32
      linalg.yield %48 : f32
    } -> tensor<2x4x24x40xf32>
    %13 = tensor.empty() : tensor<2x4x24xf32>
    %14 = linalg.fill ins(%cst_0 : f32) outs(%13 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %15 = linalg.generic {indexing_maps = [#map1, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%12 : tensor<2x4x24x40xf32>) outs(%14 : tensor<2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %48 = arith.maximumf %out, %in : f32
      linalg.yield %48 : f32
    } -> tensor<2x4x24xf32>
    %16 = tensor.empty() : tensor<2x4x24x40xf32>
    %17 = linalg.generic {indexing_maps = [#map4, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15 : tensor<2x4x24xf32>) outs(%16 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x24x40xf32>
    %18 = tensor.empty() : tensor<2x4x24x40xf32>
    %19 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12, %17 : tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>) outs(%18 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %48 = arith.subf %in, %in_7 : f32
      linalg.yield %48 : f32
    } -> tensor<2x4x24x40xf32>
    %20 = tensor.empty() : tensor<2x4x24x40xf32>
    %21 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19 : tensor<2x4x24x40xf32>) outs(%20 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %48 = math.exp %in : f32
      linalg.yield %48 : f32
    } -> tensor<2x4x24x40xf32>
    %22 = tensor.empty() : tensor<2x4x24x40xf32>
    %23 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10, %21 : tensor<2x4x24x40xi1>, tensor<2x4x24x40xf32>) outs(%22 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: i1, %in_7: f32, %out: f32):
      %48 = arith.select %in, %in_7, %cst_2 : f32
      linalg.yield %48 : f32
    } -> tensor<2x4x24x40xf32>
    %24 = tensor.empty() : tensor<2x4x24xf32>
    %25 = linalg.fill ins(%cst_2 : f32) outs(%24 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %26 = linalg.generic {indexing_maps = [#map1, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%23 : tensor<2x4x24x40xf32>) outs(%25 : tensor<2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %48 = arith.addf %out, %in : f32
      linalg.yield %48 : f32
    } -> tensor<2x4x24xf32>
    %27 = tensor.empty() : tensor<2x4x24x40xf32>
    %28 = linalg.generic {indexing_maps = [#map4, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%26 : tensor<2x4x24xf32>) outs(%27 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x24x40xf32>
    %29 = tensor.empty() : tensor<2x4x24x40xf32>
    %30 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21, %28 : tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>) outs(%29 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %48 = arith.divf %in, %in_7 : f32
      linalg.yield %48 : f32
    } -> tensor<2x4x24x40xf32>
    %31 = tensor.empty() : tensor<f32>
    %32 = linalg.generic {indexing_maps = [#map5], iterator_types = []} outs(%31 : tensor<f32>) {
    ^bb0(%out: f32):
      linalg.yield %cst_2 : f32
    } -> tensor<f32>
    %33 = tensor.empty() : tensor<2x4x24x40xf32>
    %34 = linalg.generic {indexing_maps = [#map6, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%32 : tensor<f32>) outs(%33 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x24x40xf32>
    %35 = tensor.empty() : tensor<2x4x24x40xf32>
    %36 = linalg.generic {indexing_maps = [#map1, #map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10, %30, %34 : tensor<2x4x24x40xi1>, tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>) outs(%35 : tensor<2x4x24x40xf32>) {
    ^bb0(%in: i1, %in_7: f32, %in_8: f32, %out: f32):
      %48 = arith.select %in, %in_7, %in_8 : f32
      linalg.yield %48 : f32
    } -> tensor<2x4x24x40xf32>
    %37 = tensor.empty() : tensor<2x4x24x40xbf16>
    %38 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%36 : tensor<2x4x24x40xf32>) outs(%37 : tensor<2x4x24x40xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %48 = arith.truncf %in : f32 to bf16
      linalg.yield %48 : bf16
    } -> tensor<2x4x24x40xbf16>
    %39 = tensor.empty() : tensor<2x4x32x40xbf16>
    %40 = linalg.generic {indexing_maps = [#map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x40x4x32xbf16>) outs(%39 : tensor<2x4x32x40xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x40xbf16>
    %41 = tensor.empty() : tensor<2x4x40x24xbf16>
    %42 = linalg.generic {indexing_maps = [#map7, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%38 : tensor<2x4x24x40xbf16>) outs(%41 : tensor<2x4x40x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x40x24xbf16>
    %collapsed_4 = tensor.collapse_shape %40 [[0, 1], [2], [3]] : tensor<2x4x32x40xbf16> into tensor<8x32x40xbf16>
    %collapsed_5 = tensor.collapse_shape %42 [[0, 1], [2], [3]] : tensor<2x4x40x24xbf16> into tensor<8x40x24xbf16>
    %43 = tensor.empty() : tensor<8x32x24xbf16>
    %44 = linalg.fill ins(%cst : bf16) outs(%43 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %45 = linalg.batch_matmul ins(%collapsed_4, %collapsed_5 : tensor<8x32x40xbf16>, tensor<8x40x24xbf16>) outs(%44 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %expanded_6 = tensor.expand_shape %45 [[0, 1], [2], [3]] output_shape [2, 4, 32, 24] : tensor<8x32x24xbf16> into tensor<2x4x32x24xbf16>
    %46 = tensor.empty() : tensor<2x24x4x32xbf16>
    %47 = linalg.generic {indexing_maps = [#map8, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_6 : tensor<2x4x32x24xbf16>) outs(%46 : tensor<2x24x4x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x24x4x32xbf16>
    return %47 : tensor<2x24x4x32xbf16>
  }
}

