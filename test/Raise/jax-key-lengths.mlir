//   def key_lengths(q,k,v,n): return dpa(q,k,v,key_value_seq_lengths=n)
// Made by jax 0.10.2: `jax.jit(f).lower(...).as_text()`, without the attribute `algorithm`
// of dot_general, which iree-compile refuses; iree-base-compiler 3.13.0: `iree-compile
// --iree-input-type=stablehlo --compile-to=input`; util.func renamed to func's.
// dpa is jax.nn.dot_product_attention; scores(q, k, scale): einsum('bthd,bshd->bhts', q, k,
// preferred_element_type=f32) * scale, by default D**-0.5; mix(p, v): einsum(
// 'bhts,bshd->bthd', p.astype(v.dtype), v), and mixf with preferred_element_type=f32; rep:
// repeat(x, g, axis=2).
// RUN: %python %S/Inputs/raise_and_run.py %s --range=3=1:40
// RUN: %python %S/Inputs/raise_and_launch.py %build sm_80 %s '--pass-options=caches rows-see-keys' --range=3=1:40
// RUN: kvbuf-opt %s '--kvbuf-raise-attention=caches rows-see-keys' | FileCheck %s
// REQUIRES: mlir-runner
// CHECK: kvbuffer.make_cache %{{.*}} indices({{.*}}) : {{.*}} -> !kvbuffer.cache<continuous
// CHECK: kvbuffer.attention {{.*}}kvbuffer.lengths = "all"
// CHECK-NOT: visible

#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0) -> (d0)>
#map5 = affine_map<(d0, d1, d2) -> (d2)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map7 = affine_map<(d0, d1, d2) -> (d0)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, 0, d3)>
#map9 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d4)>
#map10 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d0, d4)>
#map11 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map12 = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d4, d2)>
#map13 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4, d0, d2)>
#map14 = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d2, d4)>
module @jit_key_lengths {
  func.func @main(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x2x32xbf16>, %arg2: tensor<2x40x2x32xbf16>, %arg3: tensor<2xi32>) -> tensor<2x24x4x32xbf16> {
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant -2.38197633E+38 : f32
    %cst_2 = arith.constant 0.176776692 : f32
    %cst_3 = arith.constant 0.000000e+00 : f32
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2, 3], [4]] output_shape [2, 24, 2, 2, 32] : tensor<2x24x4x32xbf16> into tensor<2x24x2x2x32xbf16>
    %0 = tensor.empty() : tensor<2x2x24x2x32xbf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x24x2x2x32xbf16>) outs(%0 : tensor<2x2x24x2x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x2x24x2x32xbf16>
    %2 = tensor.empty() : tensor<2x2x32x40xbf16>
    %3 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x40x2x32xbf16>) outs(%2 : tensor<2x2x32x40xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x2x32x40xbf16>
    %collapsed = tensor.collapse_shape %1 [[0, 1], [2, 3], [4]] : tensor<2x2x24x2x32xbf16> into tensor<4x48x32xbf16>
    %collapsed_4 = tensor.collapse_shape %3 [[0, 1], [2], [3]] : tensor<2x2x32x40xbf16> into tensor<4x32x40xbf16>
    %4 = tensor.empty() : tensor<4x48x40xf32>
    %5 = linalg.fill ins(%cst_3 : f32) outs(%4 : tensor<4x48x40xf32>) -> tensor<4x48x40xf32>
    %6 = linalg.batch_matmul ins(%collapsed, %collapsed_4 : tensor<4x48x32xbf16>, tensor<4x32x40xbf16>) outs(%5 : tensor<4x48x40xf32>) -> tensor<4x48x40xf32>
    %expanded_5 = tensor.expand_shape %6 [[0, 1], [2, 3], [4]] output_shape [2, 2, 24, 2, 40] : tensor<4x48x40xf32> into tensor<2x2x24x2x40xf32>
    %7 = tensor.empty() : tensor<2x2x24x2x40xf32>
    %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_5 : tensor<2x2x24x2x40xf32>) outs(%7 : tensor<2x2x24x2x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %54 = arith.mulf %in, %cst_2 : f32
      linalg.yield %54 : f32
    } -> tensor<2x2x24x2x40xf32>
    %9 = tensor.empty() : tensor<40xi32>
    %10 = linalg.generic {indexing_maps = [#map4], iterator_types = ["parallel"]} outs(%9 : tensor<40xi32>) {
    ^bb0(%out: i32):
      %54 = linalg.index 0 : index
      %55 = arith.index_cast %54 : index to i32
      linalg.yield %55 : i32
    } -> tensor<40xi32>
    %11 = tensor.empty() : tensor<2x1x40xi32>
    %12 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10 : tensor<40xi32>) outs(%11 : tensor<2x1x40xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<2x1x40xi32>
    %13 = tensor.empty() : tensor<2x1x40xi32>
    %14 = linalg.generic {indexing_maps = [#map7, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg3 : tensor<2xi32>) outs(%13 : tensor<2x1x40xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<2x1x40xi32>
    %15 = tensor.empty() : tensor<2x1x40xi1>
    %16 = linalg.generic {indexing_maps = [#map6, #map6, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%12, %14 : tensor<2x1x40xi32>, tensor<2x1x40xi32>) outs(%15 : tensor<2x1x40xi1>) {
    ^bb0(%in: i32, %in_10: i32, %out: i1):
      %54 = arith.cmpi slt, %in, %in_10 : i32
      linalg.yield %54 : i1
    } -> tensor<2x1x40xi1>
    %17 = tensor.empty() : tensor<2x2x24x40xi1>
    %18 = linalg.generic {indexing_maps = [#map8, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16 : tensor<2x1x40xi1>) outs(%17 : tensor<2x2x24x40xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<2x2x24x40xi1>
    %19 = tensor.empty() : tensor<2x2x2x24x40xi1>
    %20 = linalg.generic {indexing_maps = [#map9, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%18 : tensor<2x2x24x40xi1>) outs(%19 : tensor<2x2x2x24x40xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<2x2x2x24x40xi1>
    %21 = tensor.empty() : tensor<2x2x2x24x40xf32>
    %22 = linalg.generic {indexing_maps = [#map10, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<2x2x24x2x40xf32>) outs(%21 : tensor<2x2x2x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x2x24x40xf32>
    %23 = tensor.empty() : tensor<2x2x2x24x40xf32>
    %24 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%20, %22 : tensor<2x2x2x24x40xi1>, tensor<2x2x2x24x40xf32>) outs(%23 : tensor<2x2x2x24x40xf32>) {
    ^bb0(%in: i1, %in_10: f32, %out: f32):
      %54 = arith.select %in, %in_10, %cst_1 : f32
      linalg.yield %54 : f32
    } -> tensor<2x2x2x24x40xf32>
    %25 = tensor.empty() : tensor<2x2x2x24xf32>
    %26 = linalg.fill ins(%cst_0 : f32) outs(%25 : tensor<2x2x2x24xf32>) -> tensor<2x2x2x24xf32>
    %27 = linalg.generic {indexing_maps = [#map1, #map11], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%24 : tensor<2x2x2x24x40xf32>) outs(%26 : tensor<2x2x2x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %54 = arith.maximumf %out, %in : f32
      linalg.yield %54 : f32
    } -> tensor<2x2x2x24xf32>
    %28 = tensor.empty() : tensor<2x2x2x24x40xf32>
    %29 = linalg.generic {indexing_maps = [#map11, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%27 : tensor<2x2x2x24xf32>) outs(%28 : tensor<2x2x2x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x2x24x40xf32>
    %30 = tensor.empty() : tensor<2x2x2x24x40xf32>
    %31 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%24, %29 : tensor<2x2x2x24x40xf32>, tensor<2x2x2x24x40xf32>) outs(%30 : tensor<2x2x2x24x40xf32>) {
    ^bb0(%in: f32, %in_10: f32, %out: f32):
      %54 = arith.subf %in, %in_10 : f32
      linalg.yield %54 : f32
    } -> tensor<2x2x2x24x40xf32>
    %32 = tensor.empty() : tensor<2x2x2x24x40xf32>
    %33 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%31 : tensor<2x2x2x24x40xf32>) outs(%32 : tensor<2x2x2x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %54 = math.exp %in : f32
      linalg.yield %54 : f32
    } -> tensor<2x2x2x24x40xf32>
    %34 = tensor.empty() : tensor<2x2x2x24xf32>
    %35 = linalg.fill ins(%cst_3 : f32) outs(%34 : tensor<2x2x2x24xf32>) -> tensor<2x2x2x24xf32>
    %36 = linalg.generic {indexing_maps = [#map1, #map11], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%33 : tensor<2x2x2x24x40xf32>) outs(%35 : tensor<2x2x2x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %54 = arith.addf %out, %in : f32
      linalg.yield %54 : f32
    } -> tensor<2x2x2x24xf32>
    %37 = tensor.empty() : tensor<2x2x2x24x40xf32>
    %38 = linalg.generic {indexing_maps = [#map11, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%36 : tensor<2x2x2x24xf32>) outs(%37 : tensor<2x2x2x24x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x2x24x40xf32>
    %39 = tensor.empty() : tensor<2x2x2x24x40xf32>
    %40 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%33, %38 : tensor<2x2x2x24x40xf32>, tensor<2x2x2x24x40xf32>) outs(%39 : tensor<2x2x2x24x40xf32>) {
    ^bb0(%in: f32, %in_10: f32, %out: f32):
      %54 = arith.divf %in, %in_10 : f32
      linalg.yield %54 : f32
    } -> tensor<2x2x2x24x40xf32>
    %41 = tensor.empty() : tensor<2x2x2x24x40xbf16>
    %42 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%40 : tensor<2x2x2x24x40xf32>) outs(%41 : tensor<2x2x2x24x40xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %54 = arith.truncf %in : f32 to bf16
      linalg.yield %54 : bf16
    } -> tensor<2x2x2x24x40xbf16>
    %43 = tensor.empty() : tensor<2x2x32x40xbf16>
    %44 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x40x2x32xbf16>) outs(%43 : tensor<2x2x32x40xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x2x32x40xbf16>
    %45 = tensor.empty() : tensor<2x2x40x2x24xbf16>
    %46 = linalg.generic {indexing_maps = [#map12, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%42 : tensor<2x2x2x24x40xbf16>) outs(%45 : tensor<2x2x40x2x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x2x40x2x24xbf16>
    %collapsed_6 = tensor.collapse_shape %44 [[0, 1], [2], [3]] : tensor<2x2x32x40xbf16> into tensor<4x32x40xbf16>
    %collapsed_7 = tensor.collapse_shape %46 [[0, 1], [2], [3, 4]] : tensor<2x2x40x2x24xbf16> into tensor<4x40x48xbf16>
    %47 = tensor.empty() : tensor<4x32x48xbf16>
    %48 = linalg.fill ins(%cst : bf16) outs(%47 : tensor<4x32x48xbf16>) -> tensor<4x32x48xbf16>
    %49 = linalg.batch_matmul ins(%collapsed_6, %collapsed_7 : tensor<4x32x40xbf16>, tensor<4x40x48xbf16>) outs(%48 : tensor<4x32x48xbf16>) -> tensor<4x32x48xbf16>
    %expanded_8 = tensor.expand_shape %49 [[0, 1], [2], [3, 4]] output_shape [2, 2, 32, 2, 24] : tensor<4x32x48xbf16> into tensor<2x2x32x2x24xbf16>
    %50 = tensor.empty() : tensor<2x2x24x2x32xbf16>
    %51 = linalg.generic {indexing_maps = [#map13, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_8 : tensor<2x2x32x2x24xbf16>) outs(%50 : tensor<2x2x24x2x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x2x24x2x32xbf16>
    %52 = tensor.empty() : tensor<2x24x2x2x32xbf16>
    %53 = linalg.generic {indexing_maps = [#map14, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%51 : tensor<2x2x24x2x32xbf16>) outs(%52 : tensor<2x24x2x2x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x24x2x2x32xbf16>
    %collapsed_9 = tensor.collapse_shape %53 [[0], [1], [2, 3], [4]] : tensor<2x24x2x2x32xbf16> into tensor<2x24x4x32xbf16>
    return %collapsed_9 : tensor<2x24x4x32xbf16>
  }
}

