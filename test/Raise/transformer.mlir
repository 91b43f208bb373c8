// Two layers of a transformer: norm, projections, rotated queries and keys, causal
// attention with shared heads, MLP, from JAX. The graph runs on the host as it is, and
// raised, bufferized, outlined and run by mlir-runner on the emulator.
//
// The layer was made by jax 0.10.2: `jax.jit(layer).lower(...).as_text()`, without the
// attribute `algorithm` of dot_general, which iree-compile refuses;
// iree-base-compiler 3.13.0: `iree-compile --iree-input-type=stablehlo
// --compile-to=input`; util.func and util.return renamed to func's. @main is by hand.
//   def norm(x):
//     y = x.astype(float32)
//     return (y * rsqrt(mean(y * y, -1, keepdims=True) + 1e-6)).astype(x.dtype)
//   def layer(x, wq, wk, wv, wo, w1, w2):
//     y = norm(x)
//     q = rope((y @ wq * 0.125).reshape(1, 24, 4, 32))
//     k = rope((y @ wk * 0.125).reshape(1, 24, 2, 32))
//     v = (y @ wv * 0.125).reshape(1, 24, 2, 32)
//     o = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(1, 24, 128)
//     x = x + o @ wo * 0.125
//     return x + silu(norm(x) @ w1 * 0.125) @ w2 * 0.125
//
// REQUIRES: mlir-runner
// RUN: %python %S/Inputs/raise_and_launch.py %build sm_80 %s
// RUN: %python %S/Inputs/raise_and_launch.py %build sm_90a %s
// RUN: %python %S/Inputs/raise_and_launch.py %build gfx942 %s
// RUN: %python %S/Inputs/raise_and_launch.py %build gfx950 %s

module {
  func.func private @layer(%arg0: tensor<1x24x64xbf16>, %arg1: tensor<64x128xbf16>, %arg2: tensor<64x64xbf16>, %arg3: tensor<64x64xbf16>, %arg4: tensor<128x64xbf16>, %arg5: tensor<64x96xbf16>, %arg6: tensor<96x64xbf16>) -> tensor<1x24x64xbf16> {
    %cst = arith.constant 1.000000e+00 : bf16
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant -2.38197633E+38 : f32
    %cst_2 = arith.constant 0.176776692 : f32
    %cst_3 = arith.constant 1.000000e+00 : f32
    %cst_4 = arith.constant 1.000000e+04 : f32
    %cst_5 = arith.constant 1.600000e+01 : f32
    %cst_6 = arith.constant 1.250000e-01 : bf16
    %cst_7 = arith.constant 0.000000e+00 : bf16
    %cst_8 = arith.constant 9.99999997E-7 : f32
    %cst_9 = arith.constant 6.400000e+01 : f32
    %cst_10 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x24x64xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x24x64xbf16>) outs(%0 : tensor<1x24x64xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %200 = arith.extf %in : bf16 to f32
      linalg.yield %200 : f32
    } -> tensor<1x24x64xf32>
    %2 = tensor.empty() : tensor<1x24x64xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1 : tensor<1x24x64xf32>) outs(%2 : tensor<1x24x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = arith.mulf %in, %in : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x64xf32>
    %4 = tensor.empty() : tensor<1x24xf32>
    %5 = linalg.fill ins(%cst_10 : f32) outs(%4 : tensor<1x24xf32>) -> tensor<1x24xf32>
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%3 : tensor<1x24x64xf32>) outs(%5 : tensor<1x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = arith.addf %out, %in : f32
      linalg.yield %200 : f32
    } -> tensor<1x24xf32>
    %expanded = tensor.expand_shape %6 [[0], [1, 2]] output_shape [1, 24, 1] : tensor<1x24xf32> into tensor<1x24x1xf32>
    %7 = tensor.empty() : tensor<1x24x1xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded : tensor<1x24x1xf32>) outs(%7 : tensor<1x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = arith.divf %in, %cst_9 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x1xf32>
    %9 = tensor.empty() : tensor<1x24x1xf32>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<1x24x1xf32>) outs(%9 : tensor<1x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = arith.addf %in, %cst_8 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x1xf32>
    %11 = tensor.empty() : tensor<1x24x1xf32>
    %12 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10 : tensor<1x24x1xf32>) outs(%11 : tensor<1x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = math.rsqrt %in : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x1xf32>
    %13 = tensor.empty() : tensor<1x24x64xf32>
    %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, 0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%12 : tensor<1x24x1xf32>) outs(%13 : tensor<1x24x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x24x64xf32>
    %15 = tensor.empty() : tensor<1x24x64xf32>
    %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %14 : tensor<1x24x64xf32>, tensor<1x24x64xf32>) outs(%15 : tensor<1x24x64xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.mulf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x64xf32>
    %17 = tensor.empty() : tensor<1x24x64xbf16>
    %18 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16 : tensor<1x24x64xf32>) outs(%17 : tensor<1x24x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %200 = arith.truncf %in : f32 to bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x64xbf16>
    %collapsed = tensor.collapse_shape %18 [[0, 1], [2]] : tensor<1x24x64xbf16> into tensor<24x64xbf16>
    %19 = tensor.empty() : tensor<24x128xbf16>
    %20 = linalg.fill ins(%cst_7 : bf16) outs(%19 : tensor<24x128xbf16>) -> tensor<24x128xbf16>
    %21 = linalg.matmul ins(%collapsed, %arg1 : tensor<24x64xbf16>, tensor<64x128xbf16>) outs(%20 : tensor<24x128xbf16>) -> tensor<24x128xbf16>
    %expanded_11 = tensor.expand_shape %21 [[0, 1], [2]] output_shape [1, 24, 128] : tensor<24x128xbf16> into tensor<1x24x128xbf16>
    %22 = tensor.empty() : tensor<1x24x128xbf16>
    %23 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_11 : tensor<1x24x128xbf16>) outs(%22 : tensor<1x24x128xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %200 = arith.mulf %in, %cst_6 : bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x128xbf16>
    %expanded_12 = tensor.expand_shape %23 [[0], [1], [2, 3]] output_shape [1, 24, 4, 32] : tensor<1x24x128xbf16> into tensor<1x24x4x32xbf16>
    %24 = tensor.empty() : tensor<16xf32>
    %25 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%24 : tensor<16xf32>) {
    ^bb0(%out: f32):
      %200 = linalg.index 0 : index
      %201 = arith.index_cast %200 : index to i32
      %202 = arith.sitofp %201 : i32 to f32
      linalg.yield %202 : f32
    } -> tensor<16xf32>
    %26 = tensor.empty() : tensor<16xf32>
    %27 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%25 : tensor<16xf32>) outs(%26 : tensor<16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = arith.divf %in, %cst_5 : f32
      linalg.yield %200 : f32
    } -> tensor<16xf32>
    %28 = tensor.empty() : tensor<16xf32>
    %29 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%27 : tensor<16xf32>) outs(%28 : tensor<16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = math.powf %cst_4, %in : f32
      linalg.yield %200 : f32
    } -> tensor<16xf32>
    %30 = tensor.empty() : tensor<16xf32>
    %31 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%29 : tensor<16xf32>) outs(%30 : tensor<16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = arith.divf %cst_3, %in : f32
      linalg.yield %200 : f32
    } -> tensor<16xf32>
    %32 = tensor.empty() : tensor<24xf32>
    %33 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%32 : tensor<24xf32>) {
    ^bb0(%out: f32):
      %200 = linalg.index 0 : index
      %201 = arith.index_cast %200 : index to i32
      %202 = arith.sitofp %201 : i32 to f32
      linalg.yield %202 : f32
    } -> tensor<24xf32>
    %34 = tensor.empty() : tensor<24x16xf32>
    %35 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%33 : tensor<24xf32>) outs(%34 : tensor<24x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<24x16xf32>
    %36 = tensor.empty() : tensor<24x16xf32>
    %37 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%31 : tensor<16xf32>) outs(%36 : tensor<24x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<24x16xf32>
    %38 = tensor.empty() : tensor<24x16xf32>
    %39 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%35, %37 : tensor<24x16xf32>, tensor<24x16xf32>) outs(%38 : tensor<24x16xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.mulf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<24x16xf32>
    %40 = tensor.empty() : tensor<24x16xf32>
    %41 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%39 : tensor<24x16xf32>) outs(%40 : tensor<24x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = math.cos %in : f32
      linalg.yield %200 : f32
    } -> tensor<24x16xf32>
    %42 = tensor.empty() : tensor<24x16xf32>
    %43 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%39 : tensor<24x16xf32>) outs(%42 : tensor<24x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = math.sin %in : f32
      linalg.yield %200 : f32
    } -> tensor<24x16xf32>
    %extracted_slice = tensor.extract_slice %expanded_12[0, 0, 0, 0] [1, 24, 4, 16] [1, 1, 1, 1] : tensor<1x24x4x32xbf16> to tensor<1x24x4x16xbf16>
    %44 = tensor.empty() : tensor<1x24x4x16xf32>
    %45 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice : tensor<1x24x4x16xbf16>) outs(%44 : tensor<1x24x4x16xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %200 = arith.extf %in : bf16 to f32
      linalg.yield %200 : f32
    } -> tensor<1x24x4x16xf32>
    %extracted_slice_13 = tensor.extract_slice %expanded_12[0, 0, 0, 16] [1, 24, 4, 16] [1, 1, 1, 1] : tensor<1x24x4x32xbf16> to tensor<1x24x4x16xbf16>
    %46 = tensor.empty() : tensor<1x24x4x16xf32>
    %47 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_13 : tensor<1x24x4x16xbf16>) outs(%46 : tensor<1x24x4x16xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %200 = arith.extf %in : bf16 to f32
      linalg.yield %200 : f32
    } -> tensor<1x24x4x16xf32>
    %48 = tensor.empty() : tensor<1x24x4x16xf32>
    %49 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%41 : tensor<24x16xf32>) outs(%48 : tensor<1x24x4x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x24x4x16xf32>
    %50 = tensor.empty() : tensor<1x24x4x16xf32>
    %51 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%45, %49 : tensor<1x24x4x16xf32>, tensor<1x24x4x16xf32>) outs(%50 : tensor<1x24x4x16xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.mulf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x4x16xf32>
    %52 = tensor.empty() : tensor<1x24x4x16xf32>
    %53 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%43 : tensor<24x16xf32>) outs(%52 : tensor<1x24x4x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x24x4x16xf32>
    %54 = tensor.empty() : tensor<1x24x4x16xf32>
    %55 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%47, %53 : tensor<1x24x4x16xf32>, tensor<1x24x4x16xf32>) outs(%54 : tensor<1x24x4x16xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.mulf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x4x16xf32>
    %56 = tensor.empty() : tensor<1x24x4x16xf32>
    %57 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%51, %55 : tensor<1x24x4x16xf32>, tensor<1x24x4x16xf32>) outs(%56 : tensor<1x24x4x16xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.subf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x4x16xf32>
    %58 = tensor.empty() : tensor<1x24x4x16xf32>
    %59 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%45, %53 : tensor<1x24x4x16xf32>, tensor<1x24x4x16xf32>) outs(%58 : tensor<1x24x4x16xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.mulf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x4x16xf32>
    %60 = tensor.empty() : tensor<1x24x4x16xf32>
    %61 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%47, %49 : tensor<1x24x4x16xf32>, tensor<1x24x4x16xf32>) outs(%60 : tensor<1x24x4x16xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.mulf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x4x16xf32>
    %62 = tensor.empty() : tensor<1x24x4x16xf32>
    %63 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%59, %61 : tensor<1x24x4x16xf32>, tensor<1x24x4x16xf32>) outs(%62 : tensor<1x24x4x16xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.addf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x4x16xf32>
    %64 = tensor.empty() : tensor<1x24x4x32xf32>
    %inserted_slice = tensor.insert_slice %57 into %64[0, 0, 0, 0] [1, 24, 4, 16] [1, 1, 1, 1] : tensor<1x24x4x16xf32> into tensor<1x24x4x32xf32>
    %inserted_slice_14 = tensor.insert_slice %63 into %inserted_slice[0, 0, 0, 16] [1, 24, 4, 16] [1, 1, 1, 1] : tensor<1x24x4x16xf32> into tensor<1x24x4x32xf32>
    %65 = tensor.empty() : tensor<1x24x4x32xbf16>
    %66 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%inserted_slice_14 : tensor<1x24x4x32xf32>) outs(%65 : tensor<1x24x4x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %200 = arith.truncf %in : f32 to bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x4x32xbf16>
    %67 = tensor.empty() : tensor<24x64xbf16>
    %68 = linalg.fill ins(%cst_7 : bf16) outs(%67 : tensor<24x64xbf16>) -> tensor<24x64xbf16>
    %69 = linalg.matmul ins(%collapsed, %arg2 : tensor<24x64xbf16>, tensor<64x64xbf16>) outs(%68 : tensor<24x64xbf16>) -> tensor<24x64xbf16>
    %expanded_15 = tensor.expand_shape %69 [[0, 1], [2]] output_shape [1, 24, 64] : tensor<24x64xbf16> into tensor<1x24x64xbf16>
    %70 = tensor.empty() : tensor<1x24x64xbf16>
    %71 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_15 : tensor<1x24x64xbf16>) outs(%70 : tensor<1x24x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %200 = arith.mulf %in, %cst_6 : bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x64xbf16>
    %expanded_16 = tensor.expand_shape %71 [[0], [1], [2, 3]] output_shape [1, 24, 2, 32] : tensor<1x24x64xbf16> into tensor<1x24x2x32xbf16>
    %extracted_slice_17 = tensor.extract_slice %expanded_16[0, 0, 0, 0] [1, 24, 2, 16] [1, 1, 1, 1] : tensor<1x24x2x32xbf16> to tensor<1x24x2x16xbf16>
    %72 = tensor.empty() : tensor<1x24x2x16xf32>
    %73 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_17 : tensor<1x24x2x16xbf16>) outs(%72 : tensor<1x24x2x16xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %200 = arith.extf %in : bf16 to f32
      linalg.yield %200 : f32
    } -> tensor<1x24x2x16xf32>
    %extracted_slice_18 = tensor.extract_slice %expanded_16[0, 0, 0, 16] [1, 24, 2, 16] [1, 1, 1, 1] : tensor<1x24x2x32xbf16> to tensor<1x24x2x16xbf16>
    %74 = tensor.empty() : tensor<1x24x2x16xf32>
    %75 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_18 : tensor<1x24x2x16xbf16>) outs(%74 : tensor<1x24x2x16xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %200 = arith.extf %in : bf16 to f32
      linalg.yield %200 : f32
    } -> tensor<1x24x2x16xf32>
    %76 = tensor.empty() : tensor<1x24x2x16xf32>
    %77 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%41 : tensor<24x16xf32>) outs(%76 : tensor<1x24x2x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x24x2x16xf32>
    %78 = tensor.empty() : tensor<1x24x2x16xf32>
    %79 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%73, %77 : tensor<1x24x2x16xf32>, tensor<1x24x2x16xf32>) outs(%78 : tensor<1x24x2x16xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.mulf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x2x16xf32>
    %80 = tensor.empty() : tensor<1x24x2x16xf32>
    %81 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%43 : tensor<24x16xf32>) outs(%80 : tensor<1x24x2x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x24x2x16xf32>
    %82 = tensor.empty() : tensor<1x24x2x16xf32>
    %83 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%75, %81 : tensor<1x24x2x16xf32>, tensor<1x24x2x16xf32>) outs(%82 : tensor<1x24x2x16xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.mulf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x2x16xf32>
    %84 = tensor.empty() : tensor<1x24x2x16xf32>
    %85 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%79, %83 : tensor<1x24x2x16xf32>, tensor<1x24x2x16xf32>) outs(%84 : tensor<1x24x2x16xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.subf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x2x16xf32>
    %86 = tensor.empty() : tensor<1x24x2x16xf32>
    %87 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%73, %81 : tensor<1x24x2x16xf32>, tensor<1x24x2x16xf32>) outs(%86 : tensor<1x24x2x16xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.mulf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x2x16xf32>
    %88 = tensor.empty() : tensor<1x24x2x16xf32>
    %89 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%75, %77 : tensor<1x24x2x16xf32>, tensor<1x24x2x16xf32>) outs(%88 : tensor<1x24x2x16xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.mulf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x2x16xf32>
    %90 = tensor.empty() : tensor<1x24x2x16xf32>
    %91 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%87, %89 : tensor<1x24x2x16xf32>, tensor<1x24x2x16xf32>) outs(%90 : tensor<1x24x2x16xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.addf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x2x16xf32>
    %92 = tensor.empty() : tensor<1x24x2x32xf32>
    %inserted_slice_19 = tensor.insert_slice %85 into %92[0, 0, 0, 0] [1, 24, 2, 16] [1, 1, 1, 1] : tensor<1x24x2x16xf32> into tensor<1x24x2x32xf32>
    %inserted_slice_20 = tensor.insert_slice %91 into %inserted_slice_19[0, 0, 0, 16] [1, 24, 2, 16] [1, 1, 1, 1] : tensor<1x24x2x16xf32> into tensor<1x24x2x32xf32>
    %93 = tensor.empty() : tensor<1x24x2x32xbf16>
    %94 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%inserted_slice_20 : tensor<1x24x2x32xf32>) outs(%93 : tensor<1x24x2x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %200 = arith.truncf %in : f32 to bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x2x32xbf16>
    %95 = tensor.empty() : tensor<24x64xbf16>
    %96 = linalg.fill ins(%cst_7 : bf16) outs(%95 : tensor<24x64xbf16>) -> tensor<24x64xbf16>
    %97 = linalg.matmul ins(%collapsed, %arg3 : tensor<24x64xbf16>, tensor<64x64xbf16>) outs(%96 : tensor<24x64xbf16>) -> tensor<24x64xbf16>
    %expanded_21 = tensor.expand_shape %97 [[0, 1], [2]] output_shape [1, 24, 64] : tensor<24x64xbf16> into tensor<1x24x64xbf16>
    %98 = tensor.empty() : tensor<1x24x64xbf16>
    %99 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_21 : tensor<1x24x64xbf16>) outs(%98 : tensor<1x24x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %200 = arith.mulf %in, %cst_6 : bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x64xbf16>
    %expanded_22 = tensor.expand_shape %99 [[0], [1], [2, 3]] output_shape [1, 24, 2, 32] : tensor<1x24x64xbf16> into tensor<1x24x2x32xbf16>
    %expanded_23 = tensor.expand_shape %66 [[0], [1], [2, 3], [4]] output_shape [1, 24, 2, 2, 32] : tensor<1x24x4x32xbf16> into tensor<1x24x2x2x32xbf16>
    %100 = tensor.empty() : tensor<1x2x24x2x32xbf16>
    %101 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_23 : tensor<1x24x2x2x32xbf16>) outs(%100 : tensor<1x2x24x2x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x2x24x2x32xbf16>
    %102 = tensor.empty() : tensor<1x2x32x24xbf16>
    %103 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%94 : tensor<1x24x2x32xbf16>) outs(%102 : tensor<1x2x32x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x2x32x24xbf16>
    %collapsed_24 = tensor.collapse_shape %101 [[0, 1], [2, 3], [4]] : tensor<1x2x24x2x32xbf16> into tensor<2x48x32xbf16>
    %collapsed_25 = tensor.collapse_shape %103 [[0, 1], [2], [3]] : tensor<1x2x32x24xbf16> into tensor<2x32x24xbf16>
    %104 = tensor.empty() : tensor<2x48x24xf32>
    %105 = linalg.fill ins(%cst_10 : f32) outs(%104 : tensor<2x48x24xf32>) -> tensor<2x48x24xf32>
    %106 = linalg.batch_matmul ins(%collapsed_24, %collapsed_25 : tensor<2x48x32xbf16>, tensor<2x32x24xbf16>) outs(%105 : tensor<2x48x24xf32>) -> tensor<2x48x24xf32>
    %expanded_26 = tensor.expand_shape %106 [[0, 1], [2, 3], [4]] output_shape [1, 2, 24, 2, 24] : tensor<2x48x24xf32> into tensor<1x2x24x2x24xf32>
    %107 = tensor.empty() : tensor<1x2x24x2x24xf32>
    %108 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_26 : tensor<1x2x24x2x24xf32>) outs(%107 : tensor<1x2x24x2x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = arith.mulf %in, %cst_2 : f32
      linalg.yield %200 : f32
    } -> tensor<1x2x24x2x24xf32>
    %109 = tensor.empty() : tensor<24x24xi32>
    %110 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%109 : tensor<24x24xi32>) {
    ^bb0(%out: i32):
      %200 = linalg.index 0 : index
      %201 = arith.index_cast %200 : index to i32
      linalg.yield %201 : i32
    } -> tensor<24x24xi32>
    %111 = tensor.empty() : tensor<24x24xi32>
    %112 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%111 : tensor<24x24xi32>) {
    ^bb0(%out: i32):
      %200 = linalg.index 1 : index
      %201 = arith.index_cast %200 : index to i32
      linalg.yield %201 : i32
    } -> tensor<24x24xi32>
    %113 = tensor.empty() : tensor<24x24xi1>
    %114 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%110, %112 : tensor<24x24xi32>, tensor<24x24xi32>) outs(%113 : tensor<24x24xi1>) {
    ^bb0(%in: i32, %in_37: i32, %out: i1):
      %200 = arith.cmpi sge, %in, %in_37 : i32
      linalg.yield %200 : i1
    } -> tensor<24x24xi1>
    %115 = tensor.empty() : tensor<1x2x24x24xi1>
    %116 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%114 : tensor<24x24xi1>) outs(%115 : tensor<1x2x24x24xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<1x2x24x24xi1>
    %117 = tensor.empty() : tensor<2x1x2x24x24xi1>
    %118 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%116 : tensor<1x2x24x24xi1>) outs(%117 : tensor<2x1x2x24x24xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<2x1x2x24x24xi1>
    %119 = tensor.empty() : tensor<2x1x2x24x24xf32>
    %120 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d0, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%108 : tensor<1x2x24x2x24xf32>) outs(%119 : tensor<2x1x2x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x1x2x24x24xf32>
    %121 = tensor.empty() : tensor<2x1x2x24x24xf32>
    %122 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%118, %120 : tensor<2x1x2x24x24xi1>, tensor<2x1x2x24x24xf32>) outs(%121 : tensor<2x1x2x24x24xf32>) {
    ^bb0(%in: i1, %in_37: f32, %out: f32):
      %200 = arith.select %in, %in_37, %cst_1 : f32
      linalg.yield %200 : f32
    } -> tensor<2x1x2x24x24xf32>
    %123 = tensor.empty() : tensor<2x1x2x24xf32>
    %124 = linalg.fill ins(%cst_0 : f32) outs(%123 : tensor<2x1x2x24xf32>) -> tensor<2x1x2x24xf32>
    %125 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%122 : tensor<2x1x2x24x24xf32>) outs(%124 : tensor<2x1x2x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = arith.maximumf %out, %in : f32
      linalg.yield %200 : f32
    } -> tensor<2x1x2x24xf32>
    %126 = tensor.empty() : tensor<2x1x2x24x24xf32>
    %127 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%125 : tensor<2x1x2x24xf32>) outs(%126 : tensor<2x1x2x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x1x2x24x24xf32>
    %128 = tensor.empty() : tensor<2x1x2x24x24xf32>
    %129 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%122, %127 : tensor<2x1x2x24x24xf32>, tensor<2x1x2x24x24xf32>) outs(%128 : tensor<2x1x2x24x24xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.subf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<2x1x2x24x24xf32>
    %130 = tensor.empty() : tensor<2x1x2x24x24xf32>
    %131 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%129 : tensor<2x1x2x24x24xf32>) outs(%130 : tensor<2x1x2x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = math.exp %in : f32
      linalg.yield %200 : f32
    } -> tensor<2x1x2x24x24xf32>
    %132 = tensor.empty() : tensor<2x1x2x24xf32>
    %133 = linalg.fill ins(%cst_10 : f32) outs(%132 : tensor<2x1x2x24xf32>) -> tensor<2x1x2x24xf32>
    %134 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%131 : tensor<2x1x2x24x24xf32>) outs(%133 : tensor<2x1x2x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = arith.addf %out, %in : f32
      linalg.yield %200 : f32
    } -> tensor<2x1x2x24xf32>
    %135 = tensor.empty() : tensor<2x1x2x24x24xf32>
    %136 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%134 : tensor<2x1x2x24xf32>) outs(%135 : tensor<2x1x2x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x1x2x24x24xf32>
    %137 = tensor.empty() : tensor<2x1x2x24x24xf32>
    %138 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%131, %136 : tensor<2x1x2x24x24xf32>, tensor<2x1x2x24x24xf32>) outs(%137 : tensor<2x1x2x24x24xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.divf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<2x1x2x24x24xf32>
    %139 = tensor.empty() : tensor<2x1x2x24x24xbf16>
    %140 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%138 : tensor<2x1x2x24x24xf32>) outs(%139 : tensor<2x1x2x24x24xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %200 = arith.truncf %in : f32 to bf16
      linalg.yield %200 : bf16
    } -> tensor<2x1x2x24x24xbf16>
    %141 = tensor.empty() : tensor<1x2x32x24xbf16>
    %142 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_22 : tensor<1x24x2x32xbf16>) outs(%141 : tensor<1x2x32x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x2x32x24xbf16>
    %143 = tensor.empty() : tensor<1x2x24x2x24xbf16>
    %144 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%140 : tensor<2x1x2x24x24xbf16>) outs(%143 : tensor<1x2x24x2x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x2x24x2x24xbf16>
    %collapsed_27 = tensor.collapse_shape %142 [[0, 1], [2], [3]] : tensor<1x2x32x24xbf16> into tensor<2x32x24xbf16>
    %collapsed_28 = tensor.collapse_shape %144 [[0, 1], [2], [3, 4]] : tensor<1x2x24x2x24xbf16> into tensor<2x24x48xbf16>
    %145 = tensor.empty() : tensor<2x32x48xbf16>
    %146 = linalg.fill ins(%cst_7 : bf16) outs(%145 : tensor<2x32x48xbf16>) -> tensor<2x32x48xbf16>
    %147 = linalg.batch_matmul ins(%collapsed_27, %collapsed_28 : tensor<2x32x24xbf16>, tensor<2x24x48xbf16>) outs(%146 : tensor<2x32x48xbf16>) -> tensor<2x32x48xbf16>
    %expanded_29 = tensor.expand_shape %147 [[0, 1], [2], [3, 4]] output_shape [1, 2, 32, 2, 24] : tensor<2x32x48xbf16> into tensor<1x2x32x2x24xbf16>
    %148 = tensor.empty() : tensor<2x1x24x2x32xbf16>
    %149 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4, d0, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_29 : tensor<1x2x32x2x24xbf16>) outs(%148 : tensor<2x1x24x2x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x1x24x2x32xbf16>
    %150 = tensor.empty() : tensor<1x24x2x2x32xbf16>
    %151 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%149 : tensor<2x1x24x2x32xbf16>) outs(%150 : tensor<1x24x2x2x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x24x2x2x32xbf16>
    %collapsed_30 = tensor.collapse_shape %151 [[0, 1], [2, 3, 4]] : tensor<1x24x2x2x32xbf16> into tensor<24x128xbf16>
    %152 = tensor.empty() : tensor<24x64xbf16>
    %153 = linalg.fill ins(%cst_7 : bf16) outs(%152 : tensor<24x64xbf16>) -> tensor<24x64xbf16>
    %154 = linalg.matmul ins(%collapsed_30, %arg4 : tensor<24x128xbf16>, tensor<128x64xbf16>) outs(%153 : tensor<24x64xbf16>) -> tensor<24x64xbf16>
    %expanded_31 = tensor.expand_shape %154 [[0, 1], [2]] output_shape [1, 24, 64] : tensor<24x64xbf16> into tensor<1x24x64xbf16>
    %155 = tensor.empty() : tensor<1x24x64xbf16>
    %156 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_31 : tensor<1x24x64xbf16>) outs(%155 : tensor<1x24x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %200 = arith.mulf %in, %cst_6 : bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x64xbf16>
    %157 = tensor.empty() : tensor<1x24x64xbf16>
    %158 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %156 : tensor<1x24x64xbf16>, tensor<1x24x64xbf16>) outs(%157 : tensor<1x24x64xbf16>) {
    ^bb0(%in: bf16, %in_37: bf16, %out: bf16):
      %200 = arith.addf %in, %in_37 : bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x64xbf16>
    %159 = tensor.empty() : tensor<1x24x64xf32>
    %160 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%158 : tensor<1x24x64xbf16>) outs(%159 : tensor<1x24x64xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %200 = arith.extf %in : bf16 to f32
      linalg.yield %200 : f32
    } -> tensor<1x24x64xf32>
    %161 = tensor.empty() : tensor<1x24x64xf32>
    %162 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%160 : tensor<1x24x64xf32>) outs(%161 : tensor<1x24x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = arith.mulf %in, %in : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x64xf32>
    %163 = tensor.empty() : tensor<1x24xf32>
    %164 = linalg.fill ins(%cst_10 : f32) outs(%163 : tensor<1x24xf32>) -> tensor<1x24xf32>
    %165 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%162 : tensor<1x24x64xf32>) outs(%164 : tensor<1x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = arith.addf %out, %in : f32
      linalg.yield %200 : f32
    } -> tensor<1x24xf32>
    %expanded_32 = tensor.expand_shape %165 [[0], [1, 2]] output_shape [1, 24, 1] : tensor<1x24xf32> into tensor<1x24x1xf32>
    %166 = tensor.empty() : tensor<1x24x1xf32>
    %167 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_32 : tensor<1x24x1xf32>) outs(%166 : tensor<1x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = arith.divf %in, %cst_9 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x1xf32>
    %168 = tensor.empty() : tensor<1x24x1xf32>
    %169 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%167 : tensor<1x24x1xf32>) outs(%168 : tensor<1x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = arith.addf %in, %cst_8 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x1xf32>
    %170 = tensor.empty() : tensor<1x24x1xf32>
    %171 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%169 : tensor<1x24x1xf32>) outs(%170 : tensor<1x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %200 = math.rsqrt %in : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x1xf32>
    %172 = tensor.empty() : tensor<1x24x64xf32>
    %173 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, 0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%171 : tensor<1x24x1xf32>) outs(%172 : tensor<1x24x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x24x64xf32>
    %174 = tensor.empty() : tensor<1x24x64xf32>
    %175 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%160, %173 : tensor<1x24x64xf32>, tensor<1x24x64xf32>) outs(%174 : tensor<1x24x64xf32>) {
    ^bb0(%in: f32, %in_37: f32, %out: f32):
      %200 = arith.mulf %in, %in_37 : f32
      linalg.yield %200 : f32
    } -> tensor<1x24x64xf32>
    %176 = tensor.empty() : tensor<1x24x64xbf16>
    %177 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%175 : tensor<1x24x64xf32>) outs(%176 : tensor<1x24x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %200 = arith.truncf %in : f32 to bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x64xbf16>
    %collapsed_33 = tensor.collapse_shape %177 [[0, 1], [2]] : tensor<1x24x64xbf16> into tensor<24x64xbf16>
    %178 = tensor.empty() : tensor<24x96xbf16>
    %179 = linalg.fill ins(%cst_7 : bf16) outs(%178 : tensor<24x96xbf16>) -> tensor<24x96xbf16>
    %180 = linalg.matmul ins(%collapsed_33, %arg5 : tensor<24x64xbf16>, tensor<64x96xbf16>) outs(%179 : tensor<24x96xbf16>) -> tensor<24x96xbf16>
    %expanded_34 = tensor.expand_shape %180 [[0, 1], [2]] output_shape [1, 24, 96] : tensor<24x96xbf16> into tensor<1x24x96xbf16>
    %181 = tensor.empty() : tensor<1x24x96xbf16>
    %182 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_34 : tensor<1x24x96xbf16>) outs(%181 : tensor<1x24x96xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %200 = arith.mulf %in, %cst_6 : bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x96xbf16>
    %183 = tensor.empty() : tensor<1x24x96xbf16>
    %184 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%182 : tensor<1x24x96xbf16>) outs(%183 : tensor<1x24x96xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %200 = arith.negf %in : bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x96xbf16>
    %185 = tensor.empty() : tensor<1x24x96xbf16>
    %186 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%184 : tensor<1x24x96xbf16>) outs(%185 : tensor<1x24x96xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %200 = math.exp %in : bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x96xbf16>
    %187 = tensor.empty() : tensor<1x24x96xbf16>
    %188 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%186 : tensor<1x24x96xbf16>) outs(%187 : tensor<1x24x96xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %200 = arith.addf %in, %cst : bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x96xbf16>
    %189 = tensor.empty() : tensor<1x24x96xbf16>
    %190 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%188 : tensor<1x24x96xbf16>) outs(%189 : tensor<1x24x96xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %200 = arith.divf %cst, %in : bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x96xbf16>
    %191 = tensor.empty() : tensor<1x24x96xbf16>
    %192 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%182, %190 : tensor<1x24x96xbf16>, tensor<1x24x96xbf16>) outs(%191 : tensor<1x24x96xbf16>) {
    ^bb0(%in: bf16, %in_37: bf16, %out: bf16):
      %200 = arith.mulf %in, %in_37 : bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x96xbf16>
    %collapsed_35 = tensor.collapse_shape %192 [[0, 1], [2]] : tensor<1x24x96xbf16> into tensor<24x96xbf16>
    %193 = tensor.empty() : tensor<24x64xbf16>
    %194 = linalg.fill ins(%cst_7 : bf16) outs(%193 : tensor<24x64xbf16>) -> tensor<24x64xbf16>
    %195 = linalg.matmul ins(%collapsed_35, %arg6 : tensor<24x96xbf16>, tensor<96x64xbf16>) outs(%194 : tensor<24x64xbf16>) -> tensor<24x64xbf16>
    %expanded_36 = tensor.expand_shape %195 [[0, 1], [2]] output_shape [1, 24, 64] : tensor<24x64xbf16> into tensor<1x24x64xbf16>
    %196 = tensor.empty() : tensor<1x24x64xbf16>
    %197 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_36 : tensor<1x24x64xbf16>) outs(%196 : tensor<1x24x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %200 = arith.mulf %in, %cst_6 : bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x64xbf16>
    %198 = tensor.empty() : tensor<1x24x64xbf16>
    %199 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%158, %197 : tensor<1x24x64xbf16>, tensor<1x24x64xbf16>) outs(%198 : tensor<1x24x64xbf16>) {
    ^bb0(%in: bf16, %in_37: bf16, %out: bf16):
      %200 = arith.addf %in, %in_37 : bf16
      linalg.yield %200 : bf16
    } -> tensor<1x24x64xbf16>
    return %199 : tensor<1x24x64xbf16>
  }
  func.func @main(%x: tensor<1x24x64xbf16>, %w0: tensor<64x128xbf16>, %w1: tensor<64x64xbf16>, %w2: tensor<64x64xbf16>, %w3: tensor<128x64xbf16>, %w4: tensor<64x96xbf16>, %w5: tensor<96x64xbf16>, %w6: tensor<64x128xbf16>, %w7: tensor<64x64xbf16>, %w8: tensor<64x64xbf16>, %w9: tensor<128x64xbf16>, %w10: tensor<64x96xbf16>, %w11: tensor<96x64xbf16>) -> tensor<1x24x64xbf16> {
    %y = func.call @layer(%x, %w0, %w1, %w2, %w3, %w4, %w5) : (tensor<1x24x64xbf16>, tensor<64x128xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<128x64xbf16>, tensor<64x96xbf16>, tensor<96x64xbf16>) -> tensor<1x24x64xbf16>
    %z = func.call @layer(%y, %w6, %w7, %w8, %w9, %w10, %w11) : (tensor<1x24x64xbf16>, tensor<64x128xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<128x64xbf16>, tensor<64x96xbf16>, tensor<96x64xbf16>) -> tensor<1x24x64xbf16>
    return %z : tensor<1x24x64xbf16>
  }
}
