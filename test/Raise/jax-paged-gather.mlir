//   def paged_gather(q,kp,vp,table,n):
//       k=kp[table].reshape(B,80,2,D); v=vp[table].reshape(B,80,2,D)
//       m=jnp.arange(80)[None,:]<n[:,None]
//       return dpa(q,k,v,mask=m[:,None,None,:])
// Made by jax 0.10.2: `jax.jit(f).lower(...).as_text()`, without the attribute `algorithm`
// of dot_general, which iree-compile refuses; iree-base-compiler 3.13.0: `iree-compile
// --iree-input-type=stablehlo --compile-to=input`; util.func renamed to func's.
// dpa is jax.nn.dot_product_attention; scores(q, k, scale): einsum('bthd,bshd->bhts', q, k,
// preferred_element_type=f32) * scale, by default D**-0.5; mix(p, v): einsum(
// 'bhts,bshd->bthd', p.astype(v.dtype), v), and mixf with preferred_element_type=f32; rep:
// repeat(x, g, axis=2).
// RUN: %python %S/Inputs/raise_and_run.py %s --range=3=0:19 --range=4=1:80
// RUN: %python %S/Inputs/raise_and_launch.py %build sm_80 %s '--pass-options=caches rows-see-keys' --range=3=0:19 --range=4=1:80
// RUN: kvbuf-opt %s '--kvbuf-raise-attention=caches rows-see-keys' | FileCheck %s
// REQUIRES: mlir-runner
// CHECK-NOT: tensor.extract
// CHECK: %[[K:.*]] = kvbuffer.make_cache %arg1 indices({{.*}}) : tensor<20x16x2x32xbf16> -> !kvbuffer.cache<paged, bf16, heads = 2, head_size = 32, page_size = 16>
// CHECK: %[[V:.*]] = kvbuffer.make_cache %arg2
// CHECK: kvbuffer.attention q({{.*}}) k(%[[K]]) v(%[[V]]) {{.*}}kvbuffer.lengths = "all"
// CHECK-NOT: visible

#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4, d5)>
#map3 = affine_map<(d0) -> (d0)>
#map4 = affine_map<(d0, d1) -> (d1)>
#map5 = affine_map<(d0, d1) -> (d0)>
#map6 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4)>
#map7 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map10 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d0, d3, d4)>
#map11 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, 0, d3, d4)>
#map12 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d0, d4)>
#map13 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map14 = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d4, d2)>
#map15 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4, d0, d2)>
#map16 = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d2, d4)>
module @jit_paged_gather {
  func.func @main(%arg0: tensor<2x1x8x32xbf16>, %arg1: tensor<20x16x2x32xbf16>, %arg2: tensor<20x16x2x32xbf16>, %arg3: tensor<2x5xi32>, %arg4: tensor<2xi32>) -> tensor<2x1x8x32xbf16> {
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant -2.38197633E+38 : f32
    %cst_2 = arith.constant 0.176776692 : f32
    %cst_3 = arith.constant 0.000000e+00 : f32
    %c20_i32 = arith.constant 20 : i32
    %c0_i32 = arith.constant 0 : i32
    %0 = tensor.empty() : tensor<2x5xi1>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg3 : tensor<2x5xi32>) outs(%0 : tensor<2x5xi1>) {
    ^bb0(%in: i32, %out: i1):
      %64 = arith.cmpi slt, %in, %c0_i32 : i32
      linalg.yield %64 : i1
    } -> tensor<2x5xi1>
    %2 = tensor.empty() : tensor<2x5xi32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg3 : tensor<2x5xi32>) outs(%2 : tensor<2x5xi32>) {
    ^bb0(%in: i32, %out: i32):
      %64 = arith.addi %in, %c20_i32 : i32
      linalg.yield %64 : i32
    } -> tensor<2x5xi32>
    %4 = tensor.empty() : tensor<2x5xi32>
    %5 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%1, %3, %arg3 : tensor<2x5xi1>, tensor<2x5xi32>, tensor<2x5xi32>) outs(%4 : tensor<2x5xi32>) {
    ^bb0(%in: i1, %in_13: i32, %in_14: i32, %out: i32):
      %64 = arith.select %in, %in_13, %in_14 : i32
      linalg.yield %64 : i32
    } -> tensor<2x5xi32>
    %expanded = tensor.expand_shape %5 [[0], [1, 2]] output_shape [2, 5, 1] : tensor<2x5xi32> into tensor<2x5x1xi32>
    %6 = tensor.empty() : tensor<2x5x1x16x2x32xbf16>
    %7 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x5x1xi32>) outs(%6 : tensor<2x5x1x16x2x32xbf16>) {
    ^bb0(%in: i32, %out: bf16):
      %64 = arith.index_cast %in : i32 to index
      %65 = linalg.index 3 : index
      %66 = linalg.index 4 : index
      %67 = linalg.index 5 : index
      %extracted = tensor.extract %arg1[%64, %65, %66, %67] : tensor<20x16x2x32xbf16>
      linalg.yield %extracted : bf16
    } -> tensor<2x5x1x16x2x32xbf16>
    %collapsed = tensor.collapse_shape %7 [[0], [1, 2, 3], [4], [5]] : tensor<2x5x1x16x2x32xbf16> into tensor<2x80x2x32xbf16>
    %8 = tensor.empty() : tensor<2x5x1x16x2x32xbf16>
    %9 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x5x1xi32>) outs(%8 : tensor<2x5x1x16x2x32xbf16>) {
    ^bb0(%in: i32, %out: bf16):
      %64 = arith.index_cast %in : i32 to index
      %65 = linalg.index 3 : index
      %66 = linalg.index 4 : index
      %67 = linalg.index 5 : index
      %extracted = tensor.extract %arg2[%64, %65, %66, %67] : tensor<20x16x2x32xbf16>
      linalg.yield %extracted : bf16
    } -> tensor<2x5x1x16x2x32xbf16>
    %collapsed_4 = tensor.collapse_shape %9 [[0], [1, 2, 3], [4], [5]] : tensor<2x5x1x16x2x32xbf16> into tensor<2x80x2x32xbf16>
    %10 = tensor.empty() : tensor<80xi32>
    %11 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel"]} outs(%10 : tensor<80xi32>) {
    ^bb0(%out: i32):
      %64 = linalg.index 0 : index
      %65 = arith.index_cast %64 : index to i32
      linalg.yield %65 : i32
    } -> tensor<80xi32>
    %12 = tensor.empty() : tensor<2x80xi32>
    %13 = linalg.generic {indexing_maps = [#map4, #map], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<80xi32>) outs(%12 : tensor<2x80xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<2x80xi32>
    %14 = tensor.empty() : tensor<2x80xi32>
    %15 = linalg.generic {indexing_maps = [#map5, #map], iterator_types = ["parallel", "parallel"]} ins(%arg4 : tensor<2xi32>) outs(%14 : tensor<2x80xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<2x80xi32>
    %16 = tensor.empty() : tensor<2x80xi1>
    %17 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%13, %15 : tensor<2x80xi32>, tensor<2x80xi32>) outs(%16 : tensor<2x80xi1>) {
    ^bb0(%in: i32, %in_13: i32, %out: i1):
      %64 = arith.cmpi slt, %in, %in_13 : i32
      linalg.yield %64 : i1
    } -> tensor<2x80xi1>
    %18 = tensor.empty() : tensor<2x1x4x1x80xi1>
    %19 = linalg.generic {indexing_maps = [#map6, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%17 : tensor<2x80xi1>) outs(%18 : tensor<2x1x4x1x80xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<2x1x4x1x80xi1>
    %20 = tensor.empty() : tensor<2x2x32x80xbf16>
    %21 = linalg.generic {indexing_maps = [#map8, #map9], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed : tensor<2x80x2x32xbf16>) outs(%20 : tensor<2x2x32x80xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x2x32x80xbf16>
    %collapsed_5 = tensor.collapse_shape %arg0 [[0, 1, 2, 3]] : tensor<2x1x8x32xbf16> into tensor<512xbf16>
    %expanded_6 = tensor.expand_shape %collapsed_5 [[0, 1, 2]] output_shape [4, 4, 32] : tensor<512xbf16> into tensor<4x4x32xbf16>
    %collapsed_7 = tensor.collapse_shape %21 [[0, 1], [2], [3]] : tensor<2x2x32x80xbf16> into tensor<4x32x80xbf16>
    %22 = tensor.empty() : tensor<4x4x80xf32>
    %23 = linalg.fill ins(%cst_3 : f32) outs(%22 : tensor<4x4x80xf32>) -> tensor<4x4x80xf32>
    %24 = linalg.batch_matmul ins(%expanded_6, %collapsed_7 : tensor<4x4x32xbf16>, tensor<4x32x80xbf16>) outs(%23 : tensor<4x4x80xf32>) -> tensor<4x4x80xf32>
    %expanded_8 = tensor.expand_shape %24 [[0, 1], [2, 3], [4]] output_shape [2, 2, 1, 4, 80] : tensor<4x4x80xf32> into tensor<2x2x1x4x80xf32>
    %25 = tensor.empty() : tensor<2x2x1x4x80xf32>
    %26 = linalg.generic {indexing_maps = [#map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_8 : tensor<2x2x1x4x80xf32>) outs(%25 : tensor<2x2x1x4x80xf32>) {
    ^bb0(%in: f32, %out: f32):
      %64 = arith.mulf %in, %cst_2 : f32
      linalg.yield %64 : f32
    } -> tensor<2x2x1x4x80xf32>
    %27 = tensor.empty() : tensor<4x2x1x1x80xi1>
    %28 = linalg.generic {indexing_maps = [#map10, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%19 : tensor<2x1x4x1x80xi1>) outs(%27 : tensor<4x2x1x1x80xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<4x2x1x1x80xi1>
    %29 = tensor.empty() : tensor<4x2x2x1x80xi1>
    %30 = linalg.generic {indexing_maps = [#map11, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%28 : tensor<4x2x1x1x80xi1>) outs(%29 : tensor<4x2x2x1x80xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<4x2x2x1x80xi1>
    %31 = tensor.empty() : tensor<4x2x2x1x80xf32>
    %32 = linalg.generic {indexing_maps = [#map12, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%26 : tensor<2x2x1x4x80xf32>) outs(%31 : tensor<4x2x2x1x80xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4x2x2x1x80xf32>
    %33 = tensor.empty() : tensor<4x2x2x1x80xf32>
    %34 = linalg.generic {indexing_maps = [#map7, #map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%30, %32 : tensor<4x2x2x1x80xi1>, tensor<4x2x2x1x80xf32>) outs(%33 : tensor<4x2x2x1x80xf32>) {
    ^bb0(%in: i1, %in_13: f32, %out: f32):
      %64 = arith.select %in, %in_13, %cst_1 : f32
      linalg.yield %64 : f32
    } -> tensor<4x2x2x1x80xf32>
    %35 = tensor.empty() : tensor<4x2x2x1xf32>
    %36 = linalg.fill ins(%cst_0 : f32) outs(%35 : tensor<4x2x2x1xf32>) -> tensor<4x2x2x1xf32>
    %37 = linalg.generic {indexing_maps = [#map7, #map13], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%34 : tensor<4x2x2x1x80xf32>) outs(%36 : tensor<4x2x2x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %64 = arith.maximumf %out, %in : f32
      linalg.yield %64 : f32
    } -> tensor<4x2x2x1xf32>
    %38 = tensor.empty() : tensor<4x2x2x1x80xf32>
    %39 = linalg.generic {indexing_maps = [#map13, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%37 : tensor<4x2x2x1xf32>) outs(%38 : tensor<4x2x2x1x80xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4x2x2x1x80xf32>
    %40 = tensor.empty() : tensor<4x2x2x1x80xf32>
    %41 = linalg.generic {indexing_maps = [#map7, #map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%34, %39 : tensor<4x2x2x1x80xf32>, tensor<4x2x2x1x80xf32>) outs(%40 : tensor<4x2x2x1x80xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %64 = arith.subf %in, %in_13 : f32
      linalg.yield %64 : f32
    } -> tensor<4x2x2x1x80xf32>
    %42 = tensor.empty() : tensor<4x2x2x1x80xf32>
    %43 = linalg.generic {indexing_maps = [#map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%41 : tensor<4x2x2x1x80xf32>) outs(%42 : tensor<4x2x2x1x80xf32>) {
    ^bb0(%in: f32, %out: f32):
      %64 = math.exp %in : f32
      linalg.yield %64 : f32
    } -> tensor<4x2x2x1x80xf32>
    %44 = tensor.empty() : tensor<4x2x2x1xf32>
    %45 = linalg.fill ins(%cst_3 : f32) outs(%44 : tensor<4x2x2x1xf32>) -> tensor<4x2x2x1xf32>
    %46 = linalg.generic {indexing_maps = [#map7, #map13], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%43 : tensor<4x2x2x1x80xf32>) outs(%45 : tensor<4x2x2x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %64 = arith.addf %out, %in : f32
      linalg.yield %64 : f32
    } -> tensor<4x2x2x1xf32>
    %47 = tensor.empty() : tensor<4x2x2x1x80xf32>
    %48 = linalg.generic {indexing_maps = [#map13, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%46 : tensor<4x2x2x1xf32>) outs(%47 : tensor<4x2x2x1x80xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4x2x2x1x80xf32>
    %49 = tensor.empty() : tensor<4x2x2x1x80xf32>
    %50 = linalg.generic {indexing_maps = [#map7, #map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%43, %48 : tensor<4x2x2x1x80xf32>, tensor<4x2x2x1x80xf32>) outs(%49 : tensor<4x2x2x1x80xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %64 = arith.divf %in, %in_13 : f32
      linalg.yield %64 : f32
    } -> tensor<4x2x2x1x80xf32>
    %51 = tensor.empty() : tensor<4x2x2x1x80xbf16>
    %52 = linalg.generic {indexing_maps = [#map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%50 : tensor<4x2x2x1x80xf32>) outs(%51 : tensor<4x2x2x1x80xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %64 = arith.truncf %in : f32 to bf16
      linalg.yield %64 : bf16
    } -> tensor<4x2x2x1x80xbf16>
    %53 = tensor.empty() : tensor<2x2x32x80xbf16>
    %54 = linalg.generic {indexing_maps = [#map8, #map9], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed_4 : tensor<2x80x2x32xbf16>) outs(%53 : tensor<2x2x32x80xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x2x32x80xbf16>
    %55 = tensor.empty() : tensor<2x2x80x4x1xbf16>
    %56 = linalg.generic {indexing_maps = [#map14, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%52 : tensor<4x2x2x1x80xbf16>) outs(%55 : tensor<2x2x80x4x1xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x2x80x4x1xbf16>
    %collapsed_9 = tensor.collapse_shape %54 [[0, 1], [2], [3]] : tensor<2x2x32x80xbf16> into tensor<4x32x80xbf16>
    %collapsed_10 = tensor.collapse_shape %56 [[0, 1], [2], [3, 4]] : tensor<2x2x80x4x1xbf16> into tensor<4x80x4xbf16>
    %57 = tensor.empty() : tensor<4x32x4xbf16>
    %58 = linalg.fill ins(%cst : bf16) outs(%57 : tensor<4x32x4xbf16>) -> tensor<4x32x4xbf16>
    %59 = linalg.batch_matmul ins(%collapsed_9, %collapsed_10 : tensor<4x32x80xbf16>, tensor<4x80x4xbf16>) outs(%58 : tensor<4x32x4xbf16>) -> tensor<4x32x4xbf16>
    %expanded_11 = tensor.expand_shape %59 [[0, 1], [2], [3, 4]] output_shape [2, 2, 32, 4, 1] : tensor<4x32x4xbf16> into tensor<2x2x32x4x1xbf16>
    %60 = tensor.empty() : tensor<4x2x1x2x32xbf16>
    %61 = linalg.generic {indexing_maps = [#map15, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_11 : tensor<2x2x32x4x1xbf16>) outs(%60 : tensor<4x2x1x2x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<4x2x1x2x32xbf16>
    %62 = tensor.empty() : tensor<2x1x2x4x32xbf16>
    %63 = linalg.generic {indexing_maps = [#map16, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%61 : tensor<4x2x1x2x32xbf16>) outs(%62 : tensor<2x1x2x4x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x1x2x4x32xbf16>
    %collapsed_12 = tensor.collapse_shape %63 [[0], [1], [2, 3], [4]] : tensor<2x1x2x4x32xbf16> into tensor<2x1x8x32xbf16>
    return %collapsed_12 : tensor<2x1x8x32xbf16>
  }
}

