//   def bf16_softmax(q,k,v):
//       x=jnp.einsum('bthd,bshd->bhts',q,k)*jnp.bfloat16(0.18); c=jnp.tril(jnp.ones((T,T),bool))
//       return mix(jax.nn.softmax(jnp.where(c,x,jnp.finfo(bf).min),-1),v)
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
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
module @jit_bf16_softmax {
  func.func @main(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x24x4x32xbf16>, %arg2: tensor<2x24x4x32xbf16>) -> tensor<2x24x4x32xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF80 : bf16
    %cst_1 = arith.constant -3.389530e+38 : bf16
    %cst_2 = arith.constant 1.796880e-01 : bf16
    %cst_3 = arith.constant 0.000000e+00 : bf16
    %0 = tensor.empty() : tensor<2x4x24x32xbf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x24x4x32xbf16>) outs(%0 : tensor<2x4x24x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x24x32xbf16>
    %2 = tensor.empty() : tensor<2x4x32x24xbf16>
    %3 = linalg.generic {indexing_maps = [#map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x24x4x32xbf16>) outs(%2 : tensor<2x4x32x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x24xbf16>
    %collapsed = tensor.collapse_shape %1 [[0, 1], [2], [3]] : tensor<2x4x24x32xbf16> into tensor<8x24x32xbf16>
    %collapsed_4 = tensor.collapse_shape %3 [[0, 1], [2], [3]] : tensor<2x4x32x24xbf16> into tensor<8x32x24xbf16>
    %4 = tensor.empty() : tensor<8x24x24xbf16>
    %5 = linalg.fill ins(%cst_3 : bf16) outs(%4 : tensor<8x24x24xbf16>) -> tensor<8x24x24xbf16>
    %6 = linalg.batch_matmul ins(%collapsed, %collapsed_4 : tensor<8x24x32xbf16>, tensor<8x32x24xbf16>) outs(%5 : tensor<8x24x24xbf16>) -> tensor<8x24x24xbf16>
    %expanded = tensor.expand_shape %6 [[0, 1], [2], [3]] output_shape [2, 4, 24, 24] : tensor<8x24x24xbf16> into tensor<2x4x24x24xbf16>
    %7 = tensor.empty() : tensor<2x4x24x24xbf16>
    %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x4x24x24xbf16>) outs(%7 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %48 = arith.mulf %in, %cst_2 : bf16
      linalg.yield %48 : bf16
    } -> tensor<2x4x24x24xbf16>
    %9 = tensor.empty() : tensor<24x24xi32>
    %10 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel", "parallel"]} outs(%9 : tensor<24x24xi32>) {
    ^bb0(%out: i32):
      %48 = linalg.index 0 : index
      %49 = arith.index_cast %48 : index to i32
      linalg.yield %49 : i32
    } -> tensor<24x24xi32>
    %11 = tensor.empty() : tensor<24x24xi32>
    %12 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel", "parallel"]} outs(%11 : tensor<24x24xi32>) {
    ^bb0(%out: i32):
      %48 = linalg.index 1 : index
      %49 = arith.index_cast %48 : index to i32
      linalg.yield %49 : i32
    } -> tensor<24x24xi32>
    %13 = tensor.empty() : tensor<24x24xi1>
    %14 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%10, %12 : tensor<24x24xi32>, tensor<24x24xi32>) outs(%13 : tensor<24x24xi1>) {
    ^bb0(%in: i32, %in_9: i32, %out: i1):
      %48 = arith.cmpi sge, %in, %in_9 : i32
      linalg.yield %48 : i1
    } -> tensor<24x24xi1>
    %15 = tensor.empty() : tensor<2x4x24x24xi1>
    %16 = linalg.generic {indexing_maps = [#map4, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14 : tensor<24x24xi1>) outs(%15 : tensor<2x4x24x24xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<2x4x24x24xi1>
    %17 = tensor.empty() : tensor<2x4x24x24xbf16>
    %18 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16, %8 : tensor<2x4x24x24xi1>, tensor<2x4x24x24xbf16>) outs(%17 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: i1, %in_9: bf16, %out: bf16):
      %48 = arith.select %in, %in_9, %cst_1 : bf16
      linalg.yield %48 : bf16
    } -> tensor<2x4x24x24xbf16>
    %19 = tensor.empty() : tensor<2x4x24xbf16>
    %20 = linalg.fill ins(%cst_0 : bf16) outs(%19 : tensor<2x4x24xbf16>) -> tensor<2x4x24xbf16>
    %21 = linalg.generic {indexing_maps = [#map1, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%18 : tensor<2x4x24x24xbf16>) outs(%20 : tensor<2x4x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %48 = arith.maximumf %out, %in : bf16
      linalg.yield %48 : bf16
    } -> tensor<2x4x24xbf16>
    %22 = tensor.empty() : tensor<2x4x24x24xbf16>
    %23 = linalg.generic {indexing_maps = [#map5, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21 : tensor<2x4x24xbf16>) outs(%22 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x24x24xbf16>
    %24 = tensor.empty() : tensor<2x4x24x24xbf16>
    %25 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18, %23 : tensor<2x4x24x24xbf16>, tensor<2x4x24x24xbf16>) outs(%24 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %in_9: bf16, %out: bf16):
      %48 = arith.subf %in, %in_9 : bf16
      linalg.yield %48 : bf16
    } -> tensor<2x4x24x24xbf16>
    %26 = tensor.empty() : tensor<2x4x24x24xbf16>
    %27 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%25 : tensor<2x4x24x24xbf16>) outs(%26 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %48 = math.exp %in : bf16
      linalg.yield %48 : bf16
    } -> tensor<2x4x24x24xbf16>
    %28 = tensor.empty() : tensor<2x4x24x24xf32>
    %29 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27 : tensor<2x4x24x24xbf16>) outs(%28 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %48 = arith.extf %in : bf16 to f32
      linalg.yield %48 : f32
    } -> tensor<2x4x24x24xf32>
    %30 = tensor.empty() : tensor<2x4x24xf32>
    %31 = linalg.fill ins(%cst : f32) outs(%30 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %32 = linalg.generic {indexing_maps = [#map1, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%29 : tensor<2x4x24x24xf32>) outs(%31 : tensor<2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %48 = arith.addf %out, %in : f32
      linalg.yield %48 : f32
    } -> tensor<2x4x24xf32>
    %33 = tensor.empty() : tensor<2x4x24xbf16>
    %34 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%32 : tensor<2x4x24xf32>) outs(%33 : tensor<2x4x24xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %48 = arith.truncf %in : f32 to bf16
      linalg.yield %48 : bf16
    } -> tensor<2x4x24xbf16>
    %expanded_5 = tensor.expand_shape %34 [[0], [1], [2, 3]] output_shape [2, 4, 24, 1] : tensor<2x4x24xbf16> into tensor<2x4x24x1xbf16>
    %35 = tensor.empty() : tensor<2x4x24x24xbf16>
    %36 = linalg.generic {indexing_maps = [#map7, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_5 : tensor<2x4x24x1xbf16>) outs(%35 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x24x24xbf16>
    %37 = tensor.empty() : tensor<2x4x24x24xbf16>
    %38 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27, %36 : tensor<2x4x24x24xbf16>, tensor<2x4x24x24xbf16>) outs(%37 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %in_9: bf16, %out: bf16):
      %48 = arith.divf %in, %in_9 : bf16
      linalg.yield %48 : bf16
    } -> tensor<2x4x24x24xbf16>
    %39 = tensor.empty() : tensor<2x4x32x24xbf16>
    %40 = linalg.generic {indexing_maps = [#map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x24x4x32xbf16>) outs(%39 : tensor<2x4x32x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x24xbf16>
    %41 = tensor.empty() : tensor<2x4x24x24xbf16>
    %42 = linalg.generic {indexing_maps = [#map8, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%38 : tensor<2x4x24x24xbf16>) outs(%41 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x24x24xbf16>
    %collapsed_6 = tensor.collapse_shape %40 [[0, 1], [2], [3]] : tensor<2x4x32x24xbf16> into tensor<8x32x24xbf16>
    %collapsed_7 = tensor.collapse_shape %42 [[0, 1], [2], [3]] : tensor<2x4x24x24xbf16> into tensor<8x24x24xbf16>
    %43 = tensor.empty() : tensor<8x32x24xbf16>
    %44 = linalg.fill ins(%cst_3 : bf16) outs(%43 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %45 = linalg.batch_matmul ins(%collapsed_6, %collapsed_7 : tensor<8x32x24xbf16>, tensor<8x24x24xbf16>) outs(%44 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %expanded_8 = tensor.expand_shape %45 [[0, 1], [2], [3]] output_shape [2, 4, 32, 24] : tensor<8x32x24xbf16> into tensor<2x4x32x24xbf16>
    %46 = tensor.empty() : tensor<2x24x4x32xbf16>
    %47 = linalg.generic {indexing_maps = [#map9, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_8 : tensor<2x4x32x24xbf16>) outs(%46 : tensor<2x24x4x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x24x4x32xbf16>
    return %47 : tensor<2x24x4x32xbf16>
  }
}

