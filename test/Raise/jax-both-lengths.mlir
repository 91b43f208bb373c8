//   def both_lengths(q,k,v,m,n): return dpa(q,k,v,query_seq_lengths=m,key_value_seq_lengths=n,is_causal=True)
// Made by jax 0.10.2: `jax.jit(f).lower(...).as_text()`, without the attribute `algorithm`
// of dot_general, which iree-compile refuses; iree-base-compiler 3.13.0: `iree-compile
// --iree-input-type=stablehlo --compile-to=input`; util.func renamed to func's.
// dpa is jax.nn.dot_product_attention; scores(q, k, scale): einsum('bthd,bshd->bhts', q, k,
// preferred_element_type=f32) * scale, by default D**-0.5; mix(p, v): einsum(
// 'bhts,bshd->bthd', p.astype(v.dtype), v), and mixf with preferred_element_type=f32; rep:
// repeat(x, g, axis=2).
// RUN: %python %S/Inputs/raise_and_run.py %s --range=3=0:24 --range=4=0:24
// REQUIRES: mlir-runner

#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map6 = affine_map<(d0) -> (d0)>
#map7 = affine_map<(d0, d1, d2) -> (d1)>
#map8 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map9 = affine_map<(d0, d1, d2) -> (d0)>
#map10 = affine_map<(d0, d1, d2) -> (d2)>
#map11 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map12 = affine_map<(d0, d1, d2) -> (d0, 0, d2)>
#map13 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
#map14 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d4)>
#map15 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map16 = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d4, d2)>
#map17 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4, d0, d2)>
#map18 = affine_map<(d0, d1) -> (d1)>
#map19 = affine_map<(d0, d1) -> (d0)>
#map20 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, 0, 0)>
module @jit_both_lengths {
  func.func @main(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x24x4x32xbf16>, %arg2: tensor<2x24x4x32xbf16>, %arg3: tensor<2xi32>, %arg4: tensor<2xi32>) -> tensor<2x24x4x32xbf16> {
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant -2.38197633E+38 : f32
    %cst_2 = arith.constant 0.176776692 : f32
    %cst_3 = arith.constant 0.000000e+00 : f32
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2], [3, 4]] output_shape [2, 24, 4, 1, 32] : tensor<2x24x4x32xbf16> into tensor<2x24x4x1x32xbf16>
    %0 = tensor.empty() : tensor<2x4x24x1x32xbf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x24x4x1x32xbf16>) outs(%0 : tensor<2x4x24x1x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x24x1x32xbf16>
    %2 = tensor.empty() : tensor<2x4x32x24xbf16>
    %3 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x24x4x32xbf16>) outs(%2 : tensor<2x4x32x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x24xbf16>
    %collapsed = tensor.collapse_shape %1 [[0, 1], [2], [3, 4]] : tensor<2x4x24x1x32xbf16> into tensor<8x24x32xbf16>
    %collapsed_4 = tensor.collapse_shape %3 [[0, 1], [2], [3]] : tensor<2x4x32x24xbf16> into tensor<8x32x24xbf16>
    %4 = tensor.empty() : tensor<8x24x24xf32>
    %5 = linalg.fill ins(%cst_3 : f32) outs(%4 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %6 = linalg.batch_matmul ins(%collapsed, %collapsed_4 : tensor<8x24x32xbf16>, tensor<8x32x24xbf16>) outs(%5 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %expanded_5 = tensor.expand_shape %6 [[0, 1], [2], [3, 4]] output_shape [2, 4, 24, 1, 24] : tensor<8x24x24xf32> into tensor<2x4x24x1x24xf32>
    %7 = tensor.empty() : tensor<2x4x24x1x24xf32>
    %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_5 : tensor<2x4x24x1x24xf32>) outs(%7 : tensor<2x4x24x1x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %84 = arith.mulf %in, %cst_2 : f32
      linalg.yield %84 : f32
    } -> tensor<2x4x24x1x24xf32>
    %9 = tensor.empty() : tensor<24x24xi32>
    %10 = linalg.generic {indexing_maps = [#map4], iterator_types = ["parallel", "parallel"]} outs(%9 : tensor<24x24xi32>) {
    ^bb0(%out: i32):
      %84 = linalg.index 0 : index
      %85 = arith.index_cast %84 : index to i32
      linalg.yield %85 : i32
    } -> tensor<24x24xi32>
    %11 = tensor.empty() : tensor<24x24xi32>
    %12 = linalg.generic {indexing_maps = [#map4], iterator_types = ["parallel", "parallel"]} outs(%11 : tensor<24x24xi32>) {
    ^bb0(%out: i32):
      %84 = linalg.index 1 : index
      %85 = arith.index_cast %84 : index to i32
      linalg.yield %85 : i32
    } -> tensor<24x24xi32>
    %13 = tensor.empty() : tensor<24x24xi1>
    %14 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%10, %12 : tensor<24x24xi32>, tensor<24x24xi32>) outs(%13 : tensor<24x24xi1>) {
    ^bb0(%in: i32, %in_13: i32, %out: i1):
      %84 = arith.cmpi sge, %in, %in_13 : i32
      linalg.yield %84 : i1
    } -> tensor<24x24xi1>
    %15 = tensor.empty() : tensor<2x4x24x24xi1>
    %16 = linalg.generic {indexing_maps = [#map5, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14 : tensor<24x24xi1>) outs(%15 : tensor<2x4x24x24xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<2x4x24x24xi1>
    %17 = tensor.empty() : tensor<24xi32>
    %18 = linalg.generic {indexing_maps = [#map6], iterator_types = ["parallel"]} outs(%17 : tensor<24xi32>) {
    ^bb0(%out: i32):
      %84 = linalg.index 0 : index
      %85 = arith.index_cast %84 : index to i32
      linalg.yield %85 : i32
    } -> tensor<24xi32>
    %19 = tensor.empty() : tensor<2x24x1xi32>
    %20 = linalg.generic {indexing_maps = [#map7, #map8], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18 : tensor<24xi32>) outs(%19 : tensor<2x24x1xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<2x24x1xi32>
    %21 = tensor.empty() : tensor<2x24x1xi32>
    %22 = linalg.generic {indexing_maps = [#map9, #map8], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg3 : tensor<2xi32>) outs(%21 : tensor<2x24x1xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<2x24x1xi32>
    %23 = tensor.empty() : tensor<2x24x1xi1>
    %24 = linalg.generic {indexing_maps = [#map8, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel"]} ins(%20, %22 : tensor<2x24x1xi32>, tensor<2x24x1xi32>) outs(%23 : tensor<2x24x1xi1>) {
    ^bb0(%in: i32, %in_13: i32, %out: i1):
      %84 = arith.cmpi slt, %in, %in_13 : i32
      linalg.yield %84 : i1
    } -> tensor<2x24x1xi1>
    %25 = tensor.empty() : tensor<2x1x24xi32>
    %26 = linalg.generic {indexing_maps = [#map10, #map8], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18 : tensor<24xi32>) outs(%25 : tensor<2x1x24xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<2x1x24xi32>
    %27 = tensor.empty() : tensor<2x1x24xi32>
    %28 = linalg.generic {indexing_maps = [#map9, #map8], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg4 : tensor<2xi32>) outs(%27 : tensor<2x1x24xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<2x1x24xi32>
    %29 = tensor.empty() : tensor<2x1x24xi1>
    %30 = linalg.generic {indexing_maps = [#map8, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel"]} ins(%26, %28 : tensor<2x1x24xi32>, tensor<2x1x24xi32>) outs(%29 : tensor<2x1x24xi1>) {
    ^bb0(%in: i32, %in_13: i32, %out: i1):
      %84 = arith.cmpi slt, %in, %in_13 : i32
      linalg.yield %84 : i1
    } -> tensor<2x1x24xi1>
    %31 = tensor.empty() : tensor<2x24x24xi1>
    %32 = linalg.generic {indexing_maps = [#map11, #map8], iterator_types = ["parallel", "parallel", "parallel"]} ins(%24 : tensor<2x24x1xi1>) outs(%31 : tensor<2x24x24xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<2x24x24xi1>
    %33 = tensor.empty() : tensor<2x24x24xi1>
    %34 = linalg.generic {indexing_maps = [#map12, #map8], iterator_types = ["parallel", "parallel", "parallel"]} ins(%30 : tensor<2x1x24xi1>) outs(%33 : tensor<2x24x24xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<2x24x24xi1>
    %35 = tensor.empty() : tensor<2x24x24xi1>
    %36 = linalg.generic {indexing_maps = [#map8, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel"]} ins(%32, %34 : tensor<2x24x24xi1>, tensor<2x24x24xi1>) outs(%35 : tensor<2x24x24xi1>) {
    ^bb0(%in: i1, %in_13: i1, %out: i1):
      %84 = arith.andi %in, %in_13 : i1
      linalg.yield %84 : i1
    } -> tensor<2x24x24xi1>
    %37 = tensor.empty() : tensor<2x4x24x24xi1>
    %38 = linalg.generic {indexing_maps = [#map13, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%36 : tensor<2x24x24xi1>) outs(%37 : tensor<2x4x24x24xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<2x4x24x24xi1>
    %39 = tensor.empty() : tensor<2x4x24x24xi1>
    %40 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16, %38 : tensor<2x4x24x24xi1>, tensor<2x4x24x24xi1>) outs(%39 : tensor<2x4x24x24xi1>) {
    ^bb0(%in: i1, %in_13: i1, %out: i1):
      %84 = arith.andi %in, %in_13 : i1
      linalg.yield %84 : i1
    } -> tensor<2x4x24x24xi1>
    %41 = tensor.empty() : tensor<1x2x4x24x24xi1>
    %42 = linalg.generic {indexing_maps = [#map14, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%40 : tensor<2x4x24x24xi1>) outs(%41 : tensor<1x2x4x24x24xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<1x2x4x24x24xi1>
    %collapsed_6 = tensor.collapse_shape %8 [[0, 1, 2, 3, 4]] : tensor<2x4x24x1x24xf32> into tensor<4608xf32>
    %expanded_7 = tensor.expand_shape %collapsed_6 [[0, 1, 2, 3, 4]] output_shape [1, 2, 4, 24, 24] : tensor<4608xf32> into tensor<1x2x4x24x24xf32>
    %43 = tensor.empty() : tensor<1x2x4x24x24xf32>
    %44 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%42, %expanded_7 : tensor<1x2x4x24x24xi1>, tensor<1x2x4x24x24xf32>) outs(%43 : tensor<1x2x4x24x24xf32>) {
    ^bb0(%in: i1, %in_13: f32, %out: f32):
      %84 = arith.select %in, %in_13, %cst_1 : f32
      linalg.yield %84 : f32
    } -> tensor<1x2x4x24x24xf32>
    %45 = tensor.empty() : tensor<1x2x4x24xf32>
    %46 = linalg.fill ins(%cst_0 : f32) outs(%45 : tensor<1x2x4x24xf32>) -> tensor<1x2x4x24xf32>
    %47 = linalg.generic {indexing_maps = [#map1, #map15], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%44 : tensor<1x2x4x24x24xf32>) outs(%46 : tensor<1x2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %84 = arith.maximumf %out, %in : f32
      linalg.yield %84 : f32
    } -> tensor<1x2x4x24xf32>
    %48 = tensor.empty() : tensor<1x2x4x24x24xf32>
    %49 = linalg.generic {indexing_maps = [#map15, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%47 : tensor<1x2x4x24xf32>) outs(%48 : tensor<1x2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x2x4x24x24xf32>
    %50 = tensor.empty() : tensor<1x2x4x24x24xf32>
    %51 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%44, %49 : tensor<1x2x4x24x24xf32>, tensor<1x2x4x24x24xf32>) outs(%50 : tensor<1x2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %84 = arith.subf %in, %in_13 : f32
      linalg.yield %84 : f32
    } -> tensor<1x2x4x24x24xf32>
    %52 = tensor.empty() : tensor<1x2x4x24x24xf32>
    %53 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%51 : tensor<1x2x4x24x24xf32>) outs(%52 : tensor<1x2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %84 = math.exp %in : f32
      linalg.yield %84 : f32
    } -> tensor<1x2x4x24x24xf32>
    %54 = tensor.empty() : tensor<1x2x4x24xf32>
    %55 = linalg.fill ins(%cst_3 : f32) outs(%54 : tensor<1x2x4x24xf32>) -> tensor<1x2x4x24xf32>
    %56 = linalg.generic {indexing_maps = [#map1, #map15], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%53 : tensor<1x2x4x24x24xf32>) outs(%55 : tensor<1x2x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %84 = arith.addf %out, %in : f32
      linalg.yield %84 : f32
    } -> tensor<1x2x4x24xf32>
    %57 = tensor.empty() : tensor<1x2x4x24x24xf32>
    %58 = linalg.generic {indexing_maps = [#map15, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%56 : tensor<1x2x4x24xf32>) outs(%57 : tensor<1x2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x2x4x24x24xf32>
    %59 = tensor.empty() : tensor<1x2x4x24x24xf32>
    %60 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%53, %58 : tensor<1x2x4x24x24xf32>, tensor<1x2x4x24x24xf32>) outs(%59 : tensor<1x2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %84 = arith.divf %in, %in_13 : f32
      linalg.yield %84 : f32
    } -> tensor<1x2x4x24x24xf32>
    %61 = tensor.empty() : tensor<1x2x4x24x24xbf16>
    %62 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%60 : tensor<1x2x4x24x24xf32>) outs(%61 : tensor<1x2x4x24x24xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %84 = arith.truncf %in : f32 to bf16
      linalg.yield %84 : bf16
    } -> tensor<1x2x4x24x24xbf16>
    %63 = tensor.empty() : tensor<2x4x32x24xbf16>
    %64 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x24x4x32xbf16>) outs(%63 : tensor<2x4x32x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x32x24xbf16>
    %65 = tensor.empty() : tensor<2x4x24x1x24xbf16>
    %66 = linalg.generic {indexing_maps = [#map16, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%62 : tensor<1x2x4x24x24xbf16>) outs(%65 : tensor<2x4x24x1x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x24x1x24xbf16>
    %collapsed_8 = tensor.collapse_shape %64 [[0, 1], [2], [3]] : tensor<2x4x32x24xbf16> into tensor<8x32x24xbf16>
    %collapsed_9 = tensor.collapse_shape %66 [[0, 1], [2], [3, 4]] : tensor<2x4x24x1x24xbf16> into tensor<8x24x24xbf16>
    %67 = tensor.empty() : tensor<8x32x24xbf16>
    %68 = linalg.fill ins(%cst : bf16) outs(%67 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %69 = linalg.batch_matmul ins(%collapsed_8, %collapsed_9 : tensor<8x32x24xbf16>, tensor<8x24x24xbf16>) outs(%68 : tensor<8x32x24xbf16>) -> tensor<8x32x24xbf16>
    %expanded_10 = tensor.expand_shape %69 [[0, 1], [2], [3, 4]] output_shape [2, 4, 32, 1, 24] : tensor<8x32x24xbf16> into tensor<2x4x32x1x24xbf16>
    %70 = tensor.empty() : tensor<1x2x24x4x32xbf16>
    %71 = linalg.generic {indexing_maps = [#map17, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_10 : tensor<2x4x32x1x24xbf16>) outs(%70 : tensor<1x2x24x4x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x2x24x4x32xbf16>
    %72 = tensor.empty() : tensor<2x24xi32>
    %73 = linalg.generic {indexing_maps = [#map18, #map4], iterator_types = ["parallel", "parallel"]} ins(%18 : tensor<24xi32>) outs(%72 : tensor<2x24xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<2x24xi32>
    %74 = tensor.empty() : tensor<2x24xi32>
    %75 = linalg.generic {indexing_maps = [#map19, #map4], iterator_types = ["parallel", "parallel"]} ins(%arg3 : tensor<2xi32>) outs(%74 : tensor<2x24xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<2x24xi32>
    %76 = tensor.empty() : tensor<2x24xi1>
    %77 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%73, %75 : tensor<2x24xi32>, tensor<2x24xi32>) outs(%76 : tensor<2x24xi1>) {
    ^bb0(%in: i32, %in_13: i32, %out: i1):
      %84 = arith.cmpi slt, %in, %in_13 : i32
      linalg.yield %84 : i1
    } -> tensor<2x24xi1>
    %78 = tensor.empty() : tensor<2x24xbf16>
    %79 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%77 : tensor<2x24xi1>) outs(%78 : tensor<2x24xbf16>) {
    ^bb0(%in: i1, %out: bf16):
      %84 = arith.uitofp %in : i1 to bf16
      linalg.yield %84 : bf16
    } -> tensor<2x24xbf16>
    %expanded_11 = tensor.expand_shape %79 [[0], [1, 2, 3]] output_shape [2, 24, 1, 1] : tensor<2x24xbf16> into tensor<2x24x1x1xbf16>
    %80 = tensor.empty() : tensor<1x2x24x4x32xbf16>
    %81 = linalg.generic {indexing_maps = [#map20, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_11 : tensor<2x24x1x1xbf16>) outs(%80 : tensor<1x2x24x4x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x2x24x4x32xbf16>
    %82 = tensor.empty() : tensor<1x2x24x4x32xbf16>
    %83 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%71, %81 : tensor<1x2x24x4x32xbf16>, tensor<1x2x24x4x32xbf16>) outs(%82 : tensor<1x2x24x4x32xbf16>) {
    ^bb0(%in: bf16, %in_13: bf16, %out: bf16):
      %84 = arith.mulf %in, %in_13 : bf16
      linalg.yield %84 : bf16
    } -> tensor<1x2x24x4x32xbf16>
    %collapsed_12 = tensor.collapse_shape %83 [[0, 1], [2], [3], [4]] : tensor<1x2x24x4x32xbf16> into tensor<2x24x4x32xbf16>
    return %collapsed_12 : tensor<2x24x4x32xbf16>
  }
}

