//   def static_cache(q,k,v,n):
//       m=(jnp.arange(64)<=n)[None,None,None,:]
//       return dpa(q,k,v,mask=m)
// Made by jax 0.10.2: `jax.jit(f).lower(...).as_text()`, without the attribute `algorithm`
// of dot_general, which iree-compile refuses; iree-base-compiler 3.13.0: `iree-compile
// --iree-input-type=stablehlo --compile-to=input`; util.func renamed to func's.
// dpa is jax.nn.dot_product_attention; scores(q, k, scale): einsum('bthd,bshd->bhts', q, k,
// preferred_element_type=f32) * scale, by default D**-0.5; mix(p, v): einsum(
// 'bhts,bshd->bthd', p.astype(v.dtype), v), and mixf with preferred_element_type=f32; rep:
// repeat(x, g, axis=2).
// RUN: %python %S/Inputs/raise_and_run.py %s --range=3=0:63
// RUN: %python %S/Inputs/raise_and_launch.py %build sm_80 %s '--pass-options=caches rows-see-keys' --range=3=0:63
// RUN: kvbuf-opt %s '--kvbuf-raise-attention=caches rows-see-keys' | FileCheck %s
// REQUIRES: mlir-runner
// CHECK: kvbuffer.make_cache %{{.*}} indices({{.*}}) : {{.*}} -> !kvbuffer.cache<continuous
// CHECK: kvbuffer.attention {{.*}}kvbuffer.lengths = "all"
// CHECK-NOT: visible

#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> ()>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d4)>
#map3 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map6 = affine_map<(d0, d1, d2, d3, d4) -> (d0, 0, 0, d3, d4)>
#map7 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d0, d4)>
#map8 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map9 = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d4, d2)>
#map10 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4, d0, d2)>
#map11 = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d2, d4)>
module @jit_static_cache {
  func.func @main(%arg0: tensor<2x1x8x32xbf16>, %arg1: tensor<2x64x2x32xbf16>, %arg2: tensor<2x64x2x32xbf16>, %arg3: tensor<i32>) -> tensor<2x1x8x32xbf16> {
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant -2.38197633E+38 : f32
    %cst_2 = arith.constant 0.176776692 : f32
    %cst_3 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<64xi32>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<64xi32>) {
    ^bb0(%out: i32):
      %50 = linalg.index 0 : index
      %51 = arith.index_cast %50 : index to i32
      linalg.yield %51 : i32
    } -> tensor<64xi32>
    %2 = tensor.empty() : tensor<64xi32>
    %3 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel"]} ins(%arg3 : tensor<i32>) outs(%2 : tensor<64xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<64xi32>
    %4 = tensor.empty() : tensor<64xi1>
    %5 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%1, %3 : tensor<64xi32>, tensor<64xi32>) outs(%4 : tensor<64xi1>) {
    ^bb0(%in: i32, %in_12: i32, %out: i1):
      %50 = arith.cmpi sle, %in, %in_12 : i32
      linalg.yield %50 : i1
    } -> tensor<64xi1>
    %6 = tensor.empty() : tensor<1x1x4x1x64xi1>
    %7 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%5 : tensor<64xi1>) outs(%6 : tensor<1x1x4x1x64xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<1x1x4x1x64xi1>
    %8 = tensor.empty() : tensor<2x2x32x64xbf16>
    %9 = linalg.generic {indexing_maps = [#map4, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x64x2x32xbf16>) outs(%8 : tensor<2x2x32x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x2x32x64xbf16>
    %collapsed = tensor.collapse_shape %arg0 [[0, 1, 2, 3]] : tensor<2x1x8x32xbf16> into tensor<512xbf16>
    %expanded = tensor.expand_shape %collapsed [[0, 1, 2]] output_shape [4, 4, 32] : tensor<512xbf16> into tensor<4x4x32xbf16>
    %collapsed_4 = tensor.collapse_shape %9 [[0, 1], [2], [3]] : tensor<2x2x32x64xbf16> into tensor<4x32x64xbf16>
    %10 = tensor.empty() : tensor<4x4x64xf32>
    %11 = linalg.fill ins(%cst_3 : f32) outs(%10 : tensor<4x4x64xf32>) -> tensor<4x4x64xf32>
    %12 = linalg.batch_matmul ins(%expanded, %collapsed_4 : tensor<4x4x32xbf16>, tensor<4x32x64xbf16>) outs(%11 : tensor<4x4x64xf32>) -> tensor<4x4x64xf32>
    %expanded_5 = tensor.expand_shape %12 [[0, 1], [2, 3], [4]] output_shape [2, 2, 1, 4, 64] : tensor<4x4x64xf32> into tensor<2x2x1x4x64xf32>
    %13 = tensor.empty() : tensor<2x2x1x4x64xf32>
    %14 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_5 : tensor<2x2x1x4x64xf32>) outs(%13 : tensor<2x2x1x4x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = arith.mulf %in, %cst_2 : f32
      linalg.yield %50 : f32
    } -> tensor<2x2x1x4x64xf32>
    %collapsed_6 = tensor.collapse_shape %7 [[0, 1, 2, 3, 4]] : tensor<1x1x4x1x64xi1> into tensor<256xi1>
    %expanded_7 = tensor.expand_shape %collapsed_6 [[0, 1, 2, 3, 4]] output_shape [4, 1, 1, 1, 64] : tensor<256xi1> into tensor<4x1x1x1x64xi1>
    %15 = tensor.empty() : tensor<4x2x2x1x64xi1>
    %16 = linalg.generic {indexing_maps = [#map6, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_7 : tensor<4x1x1x1x64xi1>) outs(%15 : tensor<4x2x2x1x64xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<4x2x2x1x64xi1>
    %17 = tensor.empty() : tensor<4x2x2x1x64xf32>
    %18 = linalg.generic {indexing_maps = [#map7, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%14 : tensor<2x2x1x4x64xf32>) outs(%17 : tensor<4x2x2x1x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4x2x2x1x64xf32>
    %19 = tensor.empty() : tensor<4x2x2x1x64xf32>
    %20 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%16, %18 : tensor<4x2x2x1x64xi1>, tensor<4x2x2x1x64xf32>) outs(%19 : tensor<4x2x2x1x64xf32>) {
    ^bb0(%in: i1, %in_12: f32, %out: f32):
      %50 = arith.select %in, %in_12, %cst_1 : f32
      linalg.yield %50 : f32
    } -> tensor<4x2x2x1x64xf32>
    %21 = tensor.empty() : tensor<4x2x2x1xf32>
    %22 = linalg.fill ins(%cst_0 : f32) outs(%21 : tensor<4x2x2x1xf32>) -> tensor<4x2x2x1xf32>
    %23 = linalg.generic {indexing_maps = [#map3, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%20 : tensor<4x2x2x1x64xf32>) outs(%22 : tensor<4x2x2x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = arith.maximumf %out, %in : f32
      linalg.yield %50 : f32
    } -> tensor<4x2x2x1xf32>
    %24 = tensor.empty() : tensor<4x2x2x1x64xf32>
    %25 = linalg.generic {indexing_maps = [#map8, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%23 : tensor<4x2x2x1xf32>) outs(%24 : tensor<4x2x2x1x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4x2x2x1x64xf32>
    %26 = tensor.empty() : tensor<4x2x2x1x64xf32>
    %27 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%20, %25 : tensor<4x2x2x1x64xf32>, tensor<4x2x2x1x64xf32>) outs(%26 : tensor<4x2x2x1x64xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %50 = arith.subf %in, %in_12 : f32
      linalg.yield %50 : f32
    } -> tensor<4x2x2x1x64xf32>
    %28 = tensor.empty() : tensor<4x2x2x1x64xf32>
    %29 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%27 : tensor<4x2x2x1x64xf32>) outs(%28 : tensor<4x2x2x1x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = math.exp %in : f32
      linalg.yield %50 : f32
    } -> tensor<4x2x2x1x64xf32>
    %30 = tensor.empty() : tensor<4x2x2x1xf32>
    %31 = linalg.fill ins(%cst_3 : f32) outs(%30 : tensor<4x2x2x1xf32>) -> tensor<4x2x2x1xf32>
    %32 = linalg.generic {indexing_maps = [#map3, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%29 : tensor<4x2x2x1x64xf32>) outs(%31 : tensor<4x2x2x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = arith.addf %out, %in : f32
      linalg.yield %50 : f32
    } -> tensor<4x2x2x1xf32>
    %33 = tensor.empty() : tensor<4x2x2x1x64xf32>
    %34 = linalg.generic {indexing_maps = [#map8, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%32 : tensor<4x2x2x1xf32>) outs(%33 : tensor<4x2x2x1x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4x2x2x1x64xf32>
    %35 = tensor.empty() : tensor<4x2x2x1x64xf32>
    %36 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%29, %34 : tensor<4x2x2x1x64xf32>, tensor<4x2x2x1x64xf32>) outs(%35 : tensor<4x2x2x1x64xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %50 = arith.divf %in, %in_12 : f32
      linalg.yield %50 : f32
    } -> tensor<4x2x2x1x64xf32>
    %37 = tensor.empty() : tensor<4x2x2x1x64xbf16>
    %38 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%36 : tensor<4x2x2x1x64xf32>) outs(%37 : tensor<4x2x2x1x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %50 = arith.truncf %in : f32 to bf16
      linalg.yield %50 : bf16
    } -> tensor<4x2x2x1x64xbf16>
    %39 = tensor.empty() : tensor<2x2x32x64xbf16>
    %40 = linalg.generic {indexing_maps = [#map4, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x64x2x32xbf16>) outs(%39 : tensor<2x2x32x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x2x32x64xbf16>
    %41 = tensor.empty() : tensor<2x2x64x4x1xbf16>
    %42 = linalg.generic {indexing_maps = [#map9, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%38 : tensor<4x2x2x1x64xbf16>) outs(%41 : tensor<2x2x64x4x1xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x2x64x4x1xbf16>
    %collapsed_8 = tensor.collapse_shape %40 [[0, 1], [2], [3]] : tensor<2x2x32x64xbf16> into tensor<4x32x64xbf16>
    %collapsed_9 = tensor.collapse_shape %42 [[0, 1], [2], [3, 4]] : tensor<2x2x64x4x1xbf16> into tensor<4x64x4xbf16>
    %43 = tensor.empty() : tensor<4x32x4xbf16>
    %44 = linalg.fill ins(%cst : bf16) outs(%43 : tensor<4x32x4xbf16>) -> tensor<4x32x4xbf16>
    %45 = linalg.batch_matmul ins(%collapsed_8, %collapsed_9 : tensor<4x32x64xbf16>, tensor<4x64x4xbf16>) outs(%44 : tensor<4x32x4xbf16>) -> tensor<4x32x4xbf16>
    %expanded_10 = tensor.expand_shape %45 [[0, 1], [2], [3, 4]] output_shape [2, 2, 32, 4, 1] : tensor<4x32x4xbf16> into tensor<2x2x32x4x1xbf16>
    %46 = tensor.empty() : tensor<4x2x1x2x32xbf16>
    %47 = linalg.generic {indexing_maps = [#map10, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_10 : tensor<2x2x32x4x1xbf16>) outs(%46 : tensor<4x2x1x2x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<4x2x1x2x32xbf16>
    %48 = tensor.empty() : tensor<2x1x2x4x32xbf16>
    %49 = linalg.generic {indexing_maps = [#map11, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%47 : tensor<4x2x1x2x32xbf16>) outs(%48 : tensor<2x1x2x4x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x1x2x4x32xbf16>
    %collapsed_11 = tensor.collapse_shape %49 [[0], [1], [2, 3], [4]] : tensor<2x1x2x4x32xbf16> into tensor<2x1x8x32xbf16>
    return %collapsed_11 : tensor<2x1x8x32xbf16>
  }
}

