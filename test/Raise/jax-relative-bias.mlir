//   def relative_bias(q,k,v,table):
//       i=jnp.arange(T); d=jnp.clip(i[:,None]-i[None,:],0,7)
//       x=scores(q,k)+jnp.transpose(table[d],(2,0,1))[None].astype(f32)
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
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d1)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map8 = affine_map<(d0, d1, d2) -> (d1, d2, d0)>
#map9 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map10 = affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>
#map11 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
#map12 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
module @jit_relative_bias {
  func.func @main(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x24x4x32xbf16>, %arg2: tensor<2x24x4x32xbf16>, %arg3: tensor<8x4xbf16>) -> tensor<2x24x4x32xbf16> {
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0xFF800000 : f32
    %c8_i32 = arith.constant 8 : i32
    %cst_1 = arith.constant 0.176776692 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %c7_i32 = arith.constant 7 : i32
    %c0_i32 = arith.constant 0 : i32
    %0 = tensor.empty() : tensor<24xi32>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<24xi32>) {
    ^bb0(%out: i32):
      %64 = linalg.index 0 : index
      %65 = arith.index_cast %64 : index to i32
      linalg.yield %65 : i32
    } -> tensor<24xi32>
    %2 = tensor.empty() : tensor<24x24xi32>
    %3 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<24xi32>) outs(%2 : tensor<24x24xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<24x24xi32>
    %4 = tensor.empty() : tensor<24x24xi32>
    %5 = linalg.generic {indexing_maps = [#map3, #map2], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<24xi32>) outs(%4 : tensor<24x24xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<24x24xi32>
    %6 = tensor.empty() : tensor<24x24xi32>
    %7 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%3, %5 : tensor<24x24xi32>, tensor<24x24xi32>) outs(%6 : tensor<24x24xi32>) {
    ^bb0(%in: i32, %in_9: i32, %out: i32):
      %64 = arith.subi %in, %in_9 : i32
      linalg.yield %64 : i32
    } -> tensor<24x24xi32>
    %8 = tensor.empty() : tensor<24x24xi32>
    %9 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%7 : tensor<24x24xi32>) outs(%8 : tensor<24x24xi32>) {
    ^bb0(%in: i32, %out: i32):
      %64 = arith.maxsi %in, %c0_i32 : i32
      linalg.yield %64 : i32
    } -> tensor<24x24xi32>
    %10 = tensor.empty() : tensor<24x24xi32>
    %11 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<24x24xi32>) outs(%10 : tensor<24x24xi32>) {
    ^bb0(%in: i32, %out: i32):
      %64 = arith.minsi %in, %c7_i32 : i32
      linalg.yield %64 : i32
    } -> tensor<24x24xi32>
    %12 = tensor.empty() : tensor<2x4x24x32xbf16>
    %13 = linalg.generic {indexing_maps = [#map4, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x24x4x32xbf16>) outs(%12 : tensor<2x4x24x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x24x32xbf16>
    %14 = tensor.empty() : tensor<2x4x32x24xbf16>
    %15 = linalg.generic {indexing_maps = [#map6, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x24x4x32xbf16>) outs(%14 : tensor<2x4x32x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x24xbf16>
    %collapsed = tensor.collapse_shape %13 [[0, 1], [2], [3]] : tensor<2x4x24x32xbf16> into tensor<8x24x32xbf16>
    %collapsed_3 = tensor.collapse_shape %15 [[0, 1], [2], [3]] : tensor<2x4x32x24xbf16> into tensor<8x32x24xbf16>
    %16 = tensor.empty() : tensor<8x24x24xf32>
    %17 = linalg.fill ins(%cst_2 : f32) outs(%16 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %18 = linalg.batch_matmul ins(%collapsed, %collapsed_3 : tensor<8x24x32xbf16>, tensor<8x32x24xbf16>) outs(%17 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %expanded = tensor.expand_shape %18 [[0, 1], [2], [3]] output_shape [2, 4, 24, 24] : tensor<8x24x24xf32> into tensor<2x4x24x24xf32>
    %19 = tensor.empty() : tensor<2x4x24x24xf32>
    %20 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x4x24x24xf32>) outs(%19 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %64 = arith.mulf %in, %cst_1 : f32
      linalg.yield %64 : f32
    } -> tensor<2x4x24x24xf32>
    %21 = tensor.empty() : tensor<24x24xi1>
    %22 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<24x24xi32>) outs(%21 : tensor<24x24xi1>) {
    ^bb0(%in: i32, %out: i1):
      %64 = arith.cmpi slt, %in, %c0_i32 : i32
      linalg.yield %64 : i1
    } -> tensor<24x24xi1>
    %23 = tensor.empty() : tensor<24x24xi32>
    %24 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<24x24xi32>) outs(%23 : tensor<24x24xi32>) {
    ^bb0(%in: i32, %out: i32):
      %64 = arith.addi %in, %c8_i32 : i32
      linalg.yield %64 : i32
    } -> tensor<24x24xi32>
    %25 = tensor.empty() : tensor<24x24xi32>
    %26 = linalg.generic {indexing_maps = [#map2, #map2, #map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%22, %24, %11 : tensor<24x24xi1>, tensor<24x24xi32>, tensor<24x24xi32>) outs(%25 : tensor<24x24xi32>) {
    ^bb0(%in: i1, %in_9: i32, %in_10: i32, %out: i32):
      %64 = arith.select %in, %in_9, %in_10 : i32
      linalg.yield %64 : i32
    } -> tensor<24x24xi32>
    %expanded_4 = tensor.expand_shape %26 [[0], [1, 2]] output_shape [24, 24, 1] : tensor<24x24xi32> into tensor<24x24x1xi32>
    %27 = tensor.empty() : tensor<24x24x1x4xbf16>
    %28 = linalg.generic {indexing_maps = [#map7, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_4 : tensor<24x24x1xi32>) outs(%27 : tensor<24x24x1x4xbf16>) {
    ^bb0(%in: i32, %out: bf16):
      %64 = arith.index_cast %in : i32 to index
      %65 = linalg.index 3 : index
      %extracted = tensor.extract %arg3[%64, %65] : tensor<8x4xbf16>
      linalg.yield %extracted : bf16
    } -> tensor<24x24x1x4xbf16>
    %29 = tensor.empty() : tensor<24x24x1x4xf32>
    %30 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28 : tensor<24x24x1x4xbf16>) outs(%29 : tensor<24x24x1x4xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %64 = arith.extf %in : bf16 to f32
      linalg.yield %64 : f32
    } -> tensor<24x24x1x4xf32>
    %collapsed_5 = tensor.collapse_shape %30 [[0], [1], [2, 3]] : tensor<24x24x1x4xf32> into tensor<24x24x4xf32>
    %31 = tensor.empty() : tensor<4x24x24xf32>
    %32 = linalg.generic {indexing_maps = [#map8, #map9], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_5 : tensor<24x24x4xf32>) outs(%31 : tensor<4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4x24x24xf32>
    %33 = tensor.empty() : tensor<2x4x24x24xf32>
    %34 = linalg.generic {indexing_maps = [#map10, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%32 : tensor<4x24x24xf32>) outs(%33 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x24x24xf32>
    %35 = tensor.empty() : tensor<2x4x24x24xf32>
    %36 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20, %34 : tensor<2x4x24x24xf32>, tensor<2x4x24x24xf32>) outs(%35 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %64 = arith.addf %in, %in_9 : f32
      linalg.yield %64 : f32
    } -> tensor<2x4x24x24xf32>
    %37 = tensor.empty() : tensor<2x4x24xf32>
    %38 = linalg.fill ins(%cst_0 : f32) outs(%37 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %39 = linalg.generic {indexing_maps = [#map5, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%36 : tensor<2x4x24x24xf32>) outs(%38 : tensor<2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %64 = arith.maximumf %out, %in : f32
      linalg.yield %64 : f32
    } -> tensor<2x4x24xf32>
    %40 = tensor.empty() : tensor<2x4x24x24xf32>
    %41 = linalg.generic {indexing_maps = [#map7, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%39 : tensor<2x4x24xf32>) outs(%40 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x24x24xf32>
    %42 = tensor.empty() : tensor<2x4x24x24xf32>
    %43 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%36, %41 : tensor<2x4x24x24xf32>, tensor<2x4x24x24xf32>) outs(%42 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %64 = arith.subf %in, %in_9 : f32
      linalg.yield %64 : f32
    } -> tensor<2x4x24x24xf32>
    %44 = tensor.empty() : tensor<2x4x24x24xf32>
    %45 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%43 : tensor<2x4x24x24xf32>) outs(%44 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %64 = math.exp %in : f32
      linalg.yield %64 : f32
    } -> tensor<2x4x24x24xf32>
    %46 = tensor.empty() : tensor<2x4x24xf32>
    %47 = linalg.fill ins(%cst_2 : f32) outs(%46 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %48 = linalg.generic {indexing_maps = [#map5, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%45 : tensor<2x4x24x24xf32>) outs(%47 : tensor<2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %64 = arith.addf %out, %in : f32
      linalg.yield %64 : f32
    } -> tensor<2x4x24xf32>
    %49 = tensor.empty() : tensor<2x4x24x24xf32>
    %50 = linalg.generic {indexing_maps = [#map7, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%48 : tensor<2x4x24xf32>) outs(%49 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x24x24xf32>
    %51 = tensor.empty() : tensor<2x4x24x24xf32>
    %52 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%45, %50 : tensor<2x4x24x24xf32>, tensor<2x4x24x24xf32>) outs(%51 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %64 = arith.divf %in, %in_9 : f32
      linalg.yield %64 : f32
    } -> tensor<2x4x24x24xf32>
    %53 = tensor.empty() : tensor<2x4x24x24xbf16>
    %54 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%52 : tensor<2x4x24x24xf32>) outs(%53 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %64 = arith.truncf %in : f32 to bf16
      linalg.yield %64 : bf16
    } -> tensor<2x4x24x24xbf16>
    %55 = tensor.empty() : tensor<2x4x32x24xbf16>
    %56 = linalg.generic {indexing_maps = [#map6, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x24x4x32xbf16>) outs(%55 : tensor<2x4x32x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x24xbf16>
    %57 = tensor.empty() : tensor<2x4x24x24xbf16>
    %58 = linalg.generic {indexing_maps = [#map11, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%54 : tensor<2x4x24x24xbf16>) outs(%57 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x24x24xbf16>
    %collapsed_6 = tensor.collapse_shape %56 [[0, 1], [2], [3]] : tensor<2x4x32x24xbf16> into tensor<8x32x24xbf16>
    %collapsed_7 = tensor.collapse_shape %58 [[0, 1], [2], [3]] : tensor<2x4x24x24xbf16> into tensor<8x24x24xbf16>
    %59 = tensor.empty() : tensor<8x32x24xbf16>
    %60 = linalg.fill ins(%cst : bf16) outs(%59 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %61 = linalg.batch_matmul ins(%collapsed_6, %collapsed_7 : tensor<8x32x24xbf16>, tensor<8x24x24xbf16>) outs(%60 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %expanded_8 = tensor.expand_shape %61 [[0, 1], [2], [3]] output_shape [2, 4, 32, 24] : tensor<8x32x24xbf16> into tensor<2x4x32x24xbf16>
    %62 = tensor.empty() : tensor<2x24x4x32xbf16>
    %63 = linalg.generic {indexing_maps = [#map12, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_8 : tensor<2x4x32x24xbf16>) outs(%62 : tensor<2x24x4x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x24x4x32xbf16>
    return %63 : tensor<2x24x4x32xbf16>
  }
}

