//   def alibi(q,k,v,s):
//       i=jnp.arange(T); x=scores(q,k)+s[None,:,None,None]*(i[None,:]-i[:,None]).astype(f32)
//       x=jnp.where(i[None,:]<=i[:,None],x,-1e9)
//       return mix(jax.nn.softmax(x,-1),v)
// Made by jax 0.10.2: `jax.jit(f).lower(...).as_text()`, without the attribute `algorithm`
// of dot_general, which iree-compile refuses; iree-base-compiler 3.13.0: `iree-compile
// --iree-input-type=stablehlo --compile-to=input`; util.func renamed to func's.
// dpa is jax.nn.dot_product_attention; scores(q, k, scale): einsum('bthd,bshd->bhts', q, k,
// preferred_element_type=f32) * scale, by default D**-0.5; mix(p, v): einsum(
// 'bhts,bshd->bthd', p.astype(v.dtype), v), and mixf with preferred_element_type=f32; rep:
// repeat(x, g, axis=2).
// RUN: %python %S/Inputs/raise_and_run.py %s
// REQUIRES: mlir-runner

#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
#map4 = affine_map<(d0, d1) -> (d1)>
#map5 = affine_map<(d0, d1) -> (d0, d1)>
#map6 = affine_map<(d0, d1) -> (d0)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d1)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map9 = affine_map<(d0, d1, d2, d3) -> (0, d1, d2, d3)>
#map10 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map11 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
#map12 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
module @jit_alibi {
  func.func @main(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x24x4x32xbf16>, %arg2: tensor<2x24x4x32xbf16>, %arg3: tensor<4xf32>) -> tensor<2x24x4x32xbf16> {
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant -1.000000e+09 : f32
    %cst_2 = arith.constant 0.176776692 : f32
    %cst_3 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<24xi32>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<24xi32>) {
    ^bb0(%out: i32):
      %62 = linalg.index 0 : index
      %63 = arith.index_cast %62 : index to i32
      linalg.yield %63 : i32
    } -> tensor<24xi32>
    %2 = tensor.empty() : tensor<2x4x24x32xbf16>
    %3 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x24x4x32xbf16>) outs(%2 : tensor<2x4x24x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x24x32xbf16>
    %4 = tensor.empty() : tensor<2x4x32x24xbf16>
    %5 = linalg.generic {indexing_maps = [#map3, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x24x4x32xbf16>) outs(%4 : tensor<2x4x32x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x24xbf16>
    %collapsed = tensor.collapse_shape %3 [[0, 1], [2], [3]] : tensor<2x4x24x32xbf16> into tensor<8x24x32xbf16>
    %collapsed_4 = tensor.collapse_shape %5 [[0, 1], [2], [3]] : tensor<2x4x32x24xbf16> into tensor<8x32x24xbf16>
    %6 = tensor.empty() : tensor<8x24x24xf32>
    %7 = linalg.fill ins(%cst_3 : f32) outs(%6 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %8 = linalg.batch_matmul ins(%collapsed, %collapsed_4 : tensor<8x24x32xbf16>, tensor<8x32x24xbf16>) outs(%7 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %expanded = tensor.expand_shape %8 [[0, 1], [2], [3]] output_shape [2, 4, 24, 24] : tensor<8x24x24xf32> into tensor<2x4x24x24xf32>
    %9 = tensor.empty() : tensor<2x4x24x24xf32>
    %10 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x4x24x24xf32>) outs(%9 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %62 = arith.mulf %in, %cst_2 : f32
      linalg.yield %62 : f32
    } -> tensor<2x4x24x24xf32>
    %11 = tensor.empty() : tensor<24x24xi32>
    %12 = linalg.generic {indexing_maps = [#map4, #map5], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<24xi32>) outs(%11 : tensor<24x24xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<24x24xi32>
    %13 = tensor.empty() : tensor<24x24xi32>
    %14 = linalg.generic {indexing_maps = [#map6, #map5], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<24xi32>) outs(%13 : tensor<24x24xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<24x24xi32>
    %15 = tensor.empty() : tensor<24x24xi32>
    %16 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel"]} ins(%12, %14 : tensor<24x24xi32>, tensor<24x24xi32>) outs(%15 : tensor<24x24xi32>) {
    ^bb0(%in: i32, %in_8: i32, %out: i32):
      %62 = arith.subi %in, %in_8 : i32
      linalg.yield %62 : i32
    } -> tensor<24x24xi32>
    %17 = tensor.empty() : tensor<24x24xf32>
    %18 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel"]} ins(%16 : tensor<24x24xi32>) outs(%17 : tensor<24x24xf32>) {
    ^bb0(%in: i32, %out: f32):
      %62 = arith.sitofp %in : i32 to f32
      linalg.yield %62 : f32
    } -> tensor<24x24xf32>
    %19 = tensor.empty() : tensor<1x4x24x24xf32>
    %20 = linalg.generic {indexing_maps = [#map7, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg3 : tensor<4xf32>) outs(%19 : tensor<1x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x4x24x24xf32>
    %21 = tensor.empty() : tensor<1x4x24x24xf32>
    %22 = linalg.generic {indexing_maps = [#map8, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18 : tensor<24x24xf32>) outs(%21 : tensor<1x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x4x24x24xf32>
    %23 = tensor.empty() : tensor<1x4x24x24xf32>
    %24 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20, %22 : tensor<1x4x24x24xf32>, tensor<1x4x24x24xf32>) outs(%23 : tensor<1x4x24x24xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %62 = arith.mulf %in, %in_8 : f32
      linalg.yield %62 : f32
    } -> tensor<1x4x24x24xf32>
    %25 = tensor.empty() : tensor<2x4x24x24xf32>
    %26 = linalg.generic {indexing_maps = [#map9, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24 : tensor<1x4x24x24xf32>) outs(%25 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x24x24xf32>
    %27 = tensor.empty() : tensor<2x4x24x24xf32>
    %28 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10, %26 : tensor<2x4x24x24xf32>, tensor<2x4x24x24xf32>) outs(%27 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %62 = arith.addf %in, %in_8 : f32
      linalg.yield %62 : f32
    } -> tensor<2x4x24x24xf32>
    %29 = tensor.empty() : tensor<24x24xi1>
    %30 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel"]} ins(%12, %14 : tensor<24x24xi32>, tensor<24x24xi32>) outs(%29 : tensor<24x24xi1>) {
    ^bb0(%in: i32, %in_8: i32, %out: i1):
      %62 = arith.cmpi sle, %in, %in_8 : i32
      linalg.yield %62 : i1
    } -> tensor<24x24xi1>
    %31 = tensor.empty() : tensor<2x4x24x24xi1>
    %32 = linalg.generic {indexing_maps = [#map8, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%30 : tensor<24x24xi1>) outs(%31 : tensor<2x4x24x24xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<2x4x24x24xi1>
    %33 = tensor.empty() : tensor<2x4x24x24xf32>
    %34 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%32, %28 : tensor<2x4x24x24xi1>, tensor<2x4x24x24xf32>) outs(%33 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: i1, %in_8: f32, %out: f32):
      %62 = arith.select %in, %in_8, %cst_1 : f32
      linalg.yield %62 : f32
    } -> tensor<2x4x24x24xf32>
    %35 = tensor.empty() : tensor<2x4x24xf32>
    %36 = linalg.fill ins(%cst_0 : f32) outs(%35 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %37 = linalg.generic {indexing_maps = [#map2, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%34 : tensor<2x4x24x24xf32>) outs(%36 : tensor<2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %62 = arith.maximumf %out, %in : f32
      linalg.yield %62 : f32
    } -> tensor<2x4x24xf32>
    %38 = tensor.empty() : tensor<2x4x24x24xf32>
    %39 = linalg.generic {indexing_maps = [#map10, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%37 : tensor<2x4x24xf32>) outs(%38 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x24x24xf32>
    %40 = tensor.empty() : tensor<2x4x24x24xf32>
    %41 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%34, %39 : tensor<2x4x24x24xf32>, tensor<2x4x24x24xf32>) outs(%40 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %62 = arith.subf %in, %in_8 : f32
      linalg.yield %62 : f32
    } -> tensor<2x4x24x24xf32>
    %42 = tensor.empty() : tensor<2x4x24x24xf32>
    %43 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%41 : tensor<2x4x24x24xf32>) outs(%42 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %62 = math.exp %in : f32
      linalg.yield %62 : f32
    } -> tensor<2x4x24x24xf32>
    %44 = tensor.empty() : tensor<2x4x24xf32>
    %45 = linalg.fill ins(%cst_3 : f32) outs(%44 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %46 = linalg.generic {indexing_maps = [#map2, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%43 : tensor<2x4x24x24xf32>) outs(%45 : tensor<2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %62 = arith.addf %out, %in : f32
      linalg.yield %62 : f32
    } -> tensor<2x4x24xf32>
    %47 = tensor.empty() : tensor<2x4x24x24xf32>
    %48 = linalg.generic {indexing_maps = [#map10, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%46 : tensor<2x4x24xf32>) outs(%47 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x24x24xf32>
    %49 = tensor.empty() : tensor<2x4x24x24xf32>
    %50 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%43, %48 : tensor<2x4x24x24xf32>, tensor<2x4x24x24xf32>) outs(%49 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_8: f32, %out: f32):
      %62 = arith.divf %in, %in_8 : f32
      linalg.yield %62 : f32
    } -> tensor<2x4x24x24xf32>
    %51 = tensor.empty() : tensor<2x4x24x24xbf16>
    %52 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%50 : tensor<2x4x24x24xf32>) outs(%51 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %62 = arith.truncf %in : f32 to bf16
      linalg.yield %62 : bf16
    } -> tensor<2x4x24x24xbf16>
    %53 = tensor.empty() : tensor<2x4x32x24xbf16>
    %54 = linalg.generic {indexing_maps = [#map3, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x24x4x32xbf16>) outs(%53 : tensor<2x4x32x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x24xbf16>
    %55 = tensor.empty() : tensor<2x4x24x24xbf16>
    %56 = linalg.generic {indexing_maps = [#map11, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%52 : tensor<2x4x24x24xbf16>) outs(%55 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x24x24xbf16>
    %collapsed_5 = tensor.collapse_shape %54 [[0, 1], [2], [3]] : tensor<2x4x32x24xbf16> into tensor<8x32x24xbf16>
    %collapsed_6 = tensor.collapse_shape %56 [[0, 1], [2], [3]] : tensor<2x4x24x24xbf16> into tensor<8x24x24xbf16>
    %57 = tensor.empty() : tensor<8x32x24xbf16>
    %58 = linalg.fill ins(%cst : bf16) outs(%57 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %59 = linalg.batch_matmul ins(%collapsed_5, %collapsed_6 : tensor<8x32x24xbf16>, tensor<8x24x24xbf16>) outs(%58 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %expanded_7 = tensor.expand_shape %59 [[0, 1], [2], [3]] output_shape [2, 4, 32, 24] : tensor<8x32x24xbf16> into tensor<2x4x32x24xbf16>
    %60 = tensor.empty() : tensor<2x24x4x32xbf16>
    %61 = linalg.generic {indexing_maps = [#map12, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_7 : tensor<2x4x32x24xbf16>) outs(%60 : tensor<2x24x4x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x24x4x32xbf16>
    return %61 : tensor<2x24x4x32xbf16>
  }
}

