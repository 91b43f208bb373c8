//   def sink_concat(q,k,v,s):
//       x=scores(q,rep(k,2)); c=jnp.tril(jnp.ones((T,T),bool)); x=jnp.where(c,x,-jnp.inf)
//       x=jnp.concatenate([x,jnp.broadcast_to(s.astype(f32)[None,:,None,None],(B,H,T,1))],-1)
//       return mix(jax.nn.softmax(x,-1)[...,:-1],rep(v,2))
// Made by jax 0.10.2: `jax.jit(f).lower(...).as_text()`, without the attribute `algorithm`
// of dot_general, which iree-compile refuses; iree-base-compiler 3.13.0: `iree-compile
// --iree-input-type=stablehlo --compile-to=input`; util.func renamed to func's.
// dpa is jax.nn.dot_product_attention; scores(q, k, scale): einsum('bthd,bshd->bhts', q, k,
// preferred_element_type=f32) * scale, by default D**-0.5; mix(p, v): einsum(
// 'bhts,bshd->bthd', p.astype(v.dtype), v), and mixf with preferred_element_type=f32; rep:
// repeat(x, g, axis=2).
// RUN: %python %S/Inputs/raise_and_run.py %s
// REQUIRES: mlir-runner

#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
#map5 = affine_map<(d0, d1) -> (d0, d1)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map7 = affine_map<(d0) -> (d0)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d1)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map10 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
#map11 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
module @jit_sink_concat {
  func.func @main(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x24x2x32xbf16>, %arg2: tensor<2x24x2x32xbf16>, %arg3: tensor<4xbf16>) -> tensor<2x24x4x32xbf16> {
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant 0.176776692 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x24x2x2x32xbf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x24x2x32xbf16>) outs(%0 : tensor<2x24x2x2x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x24x2x2x32xbf16>
    %collapsed = tensor.collapse_shape %1 [[0], [1], [2, 3], [4]] : tensor<2x24x2x2x32xbf16> into tensor<2x24x4x32xbf16>
    %2 = tensor.empty() : tensor<2x4x24x32xbf16>
    %3 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x24x4x32xbf16>) outs(%2 : tensor<2x4x24x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x24x32xbf16>
    %4 = tensor.empty() : tensor<2x4x32x24xbf16>
    %5 = linalg.generic {indexing_maps = [#map4, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed : tensor<2x24x4x32xbf16>) outs(%4 : tensor<2x4x32x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x24xbf16>
    %collapsed_3 = tensor.collapse_shape %3 [[0, 1], [2], [3]] : tensor<2x4x24x32xbf16> into tensor<8x24x32xbf16>
    %collapsed_4 = tensor.collapse_shape %5 [[0, 1], [2], [3]] : tensor<2x4x32x24xbf16> into tensor<8x32x24xbf16>
    %6 = tensor.empty() : tensor<8x24x24xf32>
    %7 = linalg.fill ins(%cst_2 : f32) outs(%6 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %8 = linalg.batch_matmul ins(%collapsed_3, %collapsed_4 : tensor<8x24x32xbf16>, tensor<8x32x24xbf16>) outs(%7 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %expanded = tensor.expand_shape %8 [[0, 1], [2], [3]] output_shape [2, 4, 24, 24] : tensor<8x24x24xf32> into tensor<2x4x24x24xf32>
    %9 = tensor.empty() : tensor<2x4x24x24xf32>
    %10 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x4x24x24xf32>) outs(%9 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %55 = arith.mulf %in, %cst_1 : f32
      linalg.yield %55 : f32
    } -> tensor<2x4x24x24xf32>
    %11 = tensor.empty() : tensor<24x24xi32>
    %12 = linalg.generic {indexing_maps = [#map5], iterator_types = ["parallel", "parallel"]} outs(%11 : tensor<24x24xi32>) {
    ^bb0(%out: i32):
      %55 = linalg.index 0 : index
      %56 = arith.index_cast %55 : index to i32
      linalg.yield %56 : i32
    } -> tensor<24x24xi32>
    %13 = tensor.empty() : tensor<24x24xi32>
    %14 = linalg.generic {indexing_maps = [#map5], iterator_types = ["parallel", "parallel"]} outs(%13 : tensor<24x24xi32>) {
    ^bb0(%out: i32):
      %55 = linalg.index 1 : index
      %56 = arith.index_cast %55 : index to i32
      linalg.yield %56 : i32
    } -> tensor<24x24xi32>
    %15 = tensor.empty() : tensor<24x24xi1>
    %16 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel"]} ins(%12, %14 : tensor<24x24xi32>, tensor<24x24xi32>) outs(%15 : tensor<24x24xi1>) {
    ^bb0(%in: i32, %in_10: i32, %out: i1):
      %55 = arith.cmpi sge, %in, %in_10 : i32
      linalg.yield %55 : i1
    } -> tensor<24x24xi1>
    %17 = tensor.empty() : tensor<2x4x24x24xi1>
    %18 = linalg.generic {indexing_maps = [#map6, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16 : tensor<24x24xi1>) outs(%17 : tensor<2x4x24x24xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<2x4x24x24xi1>
    %19 = tensor.empty() : tensor<2x4x24x24xf32>
    %20 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18, %10 : tensor<2x4x24x24xi1>, tensor<2x4x24x24xf32>) outs(%19 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: i1, %in_10: f32, %out: f32):
      %55 = arith.select %in, %in_10, %cst_0 : f32
      linalg.yield %55 : f32
    } -> tensor<2x4x24x24xf32>
    %21 = tensor.empty() : tensor<4xf32>
    %22 = linalg.generic {indexing_maps = [#map7, #map7], iterator_types = ["parallel"]} ins(%arg3 : tensor<4xbf16>) outs(%21 : tensor<4xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %55 = arith.extf %in : bf16 to f32
      linalg.yield %55 : f32
    } -> tensor<4xf32>
    %23 = tensor.empty() : tensor<2x4x24x1xf32>
    %24 = linalg.generic {indexing_maps = [#map8, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%22 : tensor<4xf32>) outs(%23 : tensor<2x4x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x24x1xf32>
    %25 = tensor.empty() : tensor<2x4x24x25xf32>
    %inserted_slice = tensor.insert_slice %20 into %25[0, 0, 0, 0] [2, 4, 24, 24] [1, 1, 1, 1] : tensor<2x4x24x24xf32> into tensor<2x4x24x25xf32>
    %inserted_slice_5 = tensor.insert_slice %24 into %inserted_slice[0, 0, 0, 24] [2, 4, 24, 1] [1, 1, 1, 1] : tensor<2x4x24x1xf32> into tensor<2x4x24x25xf32>
    %26 = tensor.empty() : tensor<2x4x24xf32>
    %27 = linalg.fill ins(%cst_0 : f32) outs(%26 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %28 = linalg.generic {indexing_maps = [#map3, #map9], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%inserted_slice_5 : tensor<2x4x24x25xf32>) outs(%27 : tensor<2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %55 = arith.maximumf %out, %in : f32
      linalg.yield %55 : f32
    } -> tensor<2x4x24xf32>
    %29 = tensor.empty() : tensor<2x4x24x25xf32>
    %30 = linalg.generic {indexing_maps = [#map9, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28 : tensor<2x4x24xf32>) outs(%29 : tensor<2x4x24x25xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x24x25xf32>
    %31 = tensor.empty() : tensor<2x4x24x25xf32>
    %32 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%inserted_slice_5, %30 : tensor<2x4x24x25xf32>, tensor<2x4x24x25xf32>) outs(%31 : tensor<2x4x24x25xf32>) {
    ^bb0(%in: f32, %in_10: f32, %out: f32):
      %55 = arith.subf %in, %in_10 : f32
      linalg.yield %55 : f32
    } -> tensor<2x4x24x25xf32>
    %33 = tensor.empty() : tensor<2x4x24x25xf32>
    %34 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%32 : tensor<2x4x24x25xf32>) outs(%33 : tensor<2x4x24x25xf32>) {
    ^bb0(%in: f32, %out: f32):
      %55 = math.exp %in : f32
      linalg.yield %55 : f32
    } -> tensor<2x4x24x25xf32>
    %35 = tensor.empty() : tensor<2x4x24xf32>
    %36 = linalg.fill ins(%cst_2 : f32) outs(%35 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %37 = linalg.generic {indexing_maps = [#map3, #map9], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%34 : tensor<2x4x24x25xf32>) outs(%36 : tensor<2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %55 = arith.addf %out, %in : f32
      linalg.yield %55 : f32
    } -> tensor<2x4x24xf32>
    %38 = tensor.empty() : tensor<2x4x24x25xf32>
    %39 = linalg.generic {indexing_maps = [#map9, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%37 : tensor<2x4x24xf32>) outs(%38 : tensor<2x4x24x25xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x24x25xf32>
    %40 = tensor.empty() : tensor<2x4x24x25xf32>
    %41 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%34, %39 : tensor<2x4x24x25xf32>, tensor<2x4x24x25xf32>) outs(%40 : tensor<2x4x24x25xf32>) {
    ^bb0(%in: f32, %in_10: f32, %out: f32):
      %55 = arith.divf %in, %in_10 : f32
      linalg.yield %55 : f32
    } -> tensor<2x4x24x25xf32>
    %extracted_slice = tensor.extract_slice %41[0, 0, 0, 0] [2, 4, 24, 24] [1, 1, 1, 1] : tensor<2x4x24x25xf32> to tensor<2x4x24x24xf32>
    %42 = tensor.empty() : tensor<2x24x2x2x32xbf16>
    %43 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x24x2x32xbf16>) outs(%42 : tensor<2x24x2x2x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x24x2x2x32xbf16>
    %collapsed_6 = tensor.collapse_shape %43 [[0], [1], [2, 3], [4]] : tensor<2x24x2x2x32xbf16> into tensor<2x24x4x32xbf16>
    %44 = tensor.empty() : tensor<2x4x24x24xbf16>
    %45 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice : tensor<2x4x24x24xf32>) outs(%44 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %55 = arith.truncf %in : f32 to bf16
      linalg.yield %55 : bf16
    } -> tensor<2x4x24x24xbf16>
    %46 = tensor.empty() : tensor<2x4x32x24xbf16>
    %47 = linalg.generic {indexing_maps = [#map4, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed_6 : tensor<2x24x4x32xbf16>) outs(%46 : tensor<2x4x32x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x24xbf16>
    %48 = tensor.empty() : tensor<2x4x24x24xbf16>
    %49 = linalg.generic {indexing_maps = [#map10, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%45 : tensor<2x4x24x24xbf16>) outs(%48 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x24x24xbf16>
    %collapsed_7 = tensor.collapse_shape %47 [[0, 1], [2], [3]] : tensor<2x4x32x24xbf16> into tensor<8x32x24xbf16>
    %collapsed_8 = tensor.collapse_shape %49 [[0, 1], [2], [3]] : tensor<2x4x24x24xbf16> into tensor<8x24x24xbf16>
    %50 = tensor.empty() : tensor<8x32x24xbf16>
    %51 = linalg.fill ins(%cst : bf16) outs(%50 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %52 = linalg.batch_matmul ins(%collapsed_7, %collapsed_8 : tensor<8x32x24xbf16>, tensor<8x24x24xbf16>) outs(%51 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %expanded_9 = tensor.expand_shape %52 [[0, 1], [2], [3]] output_shape [2, 4, 32, 24] : tensor<8x32x24xbf16> into tensor<2x4x32x24xbf16>
    %53 = tensor.empty() : tensor<2x24x4x32xbf16>
    %54 = linalg.generic {indexing_maps = [#map11, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_9 : tensor<2x4x32x24xbf16>) outs(%53 : tensor<2x24x4x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x24x4x32xbf16>
    return %54 : tensor<2x24x4x32xbf16>
  }
}

