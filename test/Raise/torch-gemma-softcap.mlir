//   def gemma_softcap(q,k,v):
//       w=torch.matmul(q,k.transpose(2,3))*0.0625
//       w=torch.tanh(w/50)*50
//       i=torch.arange(T); m=(i[None]<=i[:,None])&(i[None]>i[:,None]-8)
//       w=w.masked_fill(~m,float('-inf'))
//       w=F.softmax(w,dim=-1,dtype=torch.float32).to(q.dtype)
//       return torch.matmul(w,v)
// Made by torch 2.15.0: torch.export.export, run_decompositions; iree-base-compiler
// 3.13.0: FxImporter, and torch-mlir's passes to linalg on tensors.
// RUN: %python %S/Inputs/raise_and_run.py %s
// REQUIRES: mlir-runner

#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0) -> (d0)>
#map3 = affine_map<(d0, d1) -> (0, d1)>
#map4 = affine_map<(d0, d1) -> (d0, 0)>
#map5 = affine_map<(d0, d1) -> (d0, d1)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map7 = affine_map<(d0, d1, d2, d3) -> ()>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @main(%arg0: tensor<2x4x24x32xbf16>, %arg1: tensor<2x4x24x32xbf16>, %arg2: tensor<2x4x24x32xbf16>) -> tensor<2x4x24x32xbf16> {
    %c8_i64 = arith.constant 8 : i64
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %true = arith.constant true
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant dense<0xFF80> : tensor<bf16>
    %cst_2 = arith.constant 6.250000e-02 : bf16
    %cst_3 = arith.constant 5.000000e+01 : bf16
    %0 = tensor.empty() : tensor<2x4x32x24xbf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<2x4x24x32xbf16>) outs(%0 : tensor<2x4x32x24xbf16>) permutation = [0, 1, 3, 2] 
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2], [3]] : tensor<2x4x24x32xbf16> into tensor<8x24x32xbf16>
    %collapsed_4 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<2x4x32x24xbf16> into tensor<8x32x24xbf16>
    %1 = tensor.empty() : tensor<8x24x24xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %3 = linalg.batch_matmul ins(%collapsed, %collapsed_4 : tensor<8x24x32xbf16>, tensor<8x32x24xbf16>) outs(%2 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %4 = tensor.empty() : tensor<8x24x24xbf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<8x24x24xf32>) outs(%4 : tensor<8x24x24xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %40 = arith.truncf %in : f32 to bf16
      linalg.yield %40 : bf16
    } -> tensor<8x24x24xbf16>
    %expanded = tensor.expand_shape %5 [[0, 1], [2], [3]] output_shape [2, 4, 24, 24] : tensor<8x24x24xbf16> into tensor<2x4x24x24xbf16>
    %6 = tensor.empty() : tensor<2x4x24x24xbf16>
    %7 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x4x24x24xbf16>) outs(%6 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %40 = arith.mulf %in, %cst_2 : bf16
      linalg.yield %40 : bf16
    } -> tensor<2x4x24x24xbf16>
    %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7 : tensor<2x4x24x24xbf16>) outs(%6 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %40 = arith.divf %in, %cst_3 : bf16
      linalg.yield %40 : bf16
    } -> tensor<2x4x24x24xbf16>
    %9 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<2x4x24x24xbf16>) outs(%6 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %40 = math.tanh %in : bf16
      linalg.yield %40 : bf16
    } -> tensor<2x4x24x24xbf16>
    %10 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9 : tensor<2x4x24x24xbf16>) outs(%6 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %40 = arith.mulf %in, %cst_3 : bf16
      linalg.yield %40 : bf16
    } -> tensor<2x4x24x24xbf16>
    %11 = tensor.empty() : tensor<24xi64>
    %12 = linalg.generic {indexing_maps = [#map2], iterator_types = ["parallel"]} outs(%11 : tensor<24xi64>) {
    ^bb0(%out: i64):
      %40 = linalg.index 0 : index
      %41 = arith.index_cast %40 : index to i64
      linalg.yield %41 : i64
    } -> tensor<24xi64>
    %expanded_5 = tensor.expand_shape %12 [[0, 1]] output_shape [1, 24] : tensor<24xi64> into tensor<1x24xi64>
    %expanded_6 = tensor.expand_shape %12 [[0, 1]] output_shape [24, 1] : tensor<24xi64> into tensor<24x1xi64>
    %13 = tensor.empty() : tensor<24x24xi1>
    %14 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel"]} ins(%expanded_5, %expanded_6 : tensor<1x24xi64>, tensor<24x1xi64>) outs(%13 : tensor<24x24xi1>) {
    ^bb0(%in: i64, %in_11: i64, %out: i1):
      %40 = arith.cmpi sle, %in, %in_11 : i64
      linalg.yield %40 : i1
    } -> tensor<24x24xi1>
    %15 = tensor.empty() : tensor<24x1xi64>
    %16 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel"]} ins(%expanded_6 : tensor<24x1xi64>) outs(%15 : tensor<24x1xi64>) {
    ^bb0(%in: i64, %out: i64):
      %40 = arith.subi %in, %c8_i64 : i64
      linalg.yield %40 : i64
    } -> tensor<24x1xi64>
    %17 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel"]} ins(%expanded_5, %16 : tensor<1x24xi64>, tensor<24x1xi64>) outs(%13 : tensor<24x24xi1>) {
    ^bb0(%in: i64, %in_11: i64, %out: i1):
      %40 = arith.cmpi sgt, %in, %in_11 : i64
      linalg.yield %40 : i1
    } -> tensor<24x24xi1>
    %18 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel"]} ins(%14, %17 : tensor<24x24xi1>, tensor<24x24xi1>) outs(%13 : tensor<24x24xi1>) {
    ^bb0(%in: i1, %in_11: i1, %out: i1):
      %40 = arith.andi %in, %in_11 : i1
      linalg.yield %40 : i1
    } -> tensor<24x24xi1>
    %19 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel"]} ins(%18 : tensor<24x24xi1>) outs(%13 : tensor<24x24xi1>) {
    ^bb0(%in: i1, %out: i1):
      %40 = arith.xori %in, %true : i1
      linalg.yield %40 : i1
    } -> tensor<24x24xi1>
    %20 = linalg.generic {indexing_maps = [#map6, #map7, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19, %cst_1, %10 : tensor<24x24xi1>, tensor<bf16>, tensor<2x4x24x24xbf16>) outs(%6 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: i1, %in_11: bf16, %in_12: bf16, %out: bf16):
      %40 = arith.select %in, %in_11, %in_12 : bf16
      linalg.yield %40 : bf16
    } -> tensor<2x4x24x24xbf16>
    %21 = tensor.empty() : tensor<2x4x24x24xf32>
    %22 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20 : tensor<2x4x24x24xbf16>) outs(%21 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %40 = arith.extf %in : bf16 to f32
      linalg.yield %40 : f32
    } -> tensor<2x4x24x24xf32>
    %23 = tensor.empty() : tensor<2x4x24xi64>
    %24 = linalg.fill ins(%c0_i64 : i64) outs(%23 : tensor<2x4x24xi64>) -> tensor<2x4x24xi64>
    %25 = tensor.empty() : tensor<2x4x24xf32>
    %26 = linalg.fill ins(%cst_0 : f32) outs(%25 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %27:2 = linalg.generic {indexing_maps = [#map1, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%22 : tensor<2x4x24x24xf32>) outs(%26, %24 : tensor<2x4x24xf32>, tensor<2x4x24xi64>) {
    ^bb0(%in: f32, %out: f32, %out_11: i64):
      %40 = linalg.index 3 : index
      %41 = arith.index_cast %40 : index to i64
      %42 = arith.maximumf %in, %out : f32
      %43 = arith.cmpf ogt, %in, %out : f32
      %44 = arith.select %43, %41, %out_11 : i64
      linalg.yield %42, %44 : f32, i64
    } -> (tensor<2x4x24xf32>, tensor<2x4x24xi64>)
    %expanded_7 = tensor.expand_shape %27#0 [[0], [1], [2, 3]] output_shape [2, 4, 24, 1] : tensor<2x4x24xf32> into tensor<2x4x24x1xf32>
    %28 = linalg.generic {indexing_maps = [#map1, #map9, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%22, %expanded_7 : tensor<2x4x24x24xf32>, tensor<2x4x24x1xf32>) outs(%21 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %40 = arith.subf %in, %in_11 : f32
      linalg.yield %40 : f32
    } -> tensor<2x4x24x24xf32>
    %29 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28 : tensor<2x4x24x24xf32>) outs(%21 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %40 = math.exp %in : f32
      linalg.yield %40 : f32
    } -> tensor<2x4x24x24xf32>
    %30 = tensor.empty() : tensor<2x4x24x1xf32>
    %31 = linalg.fill ins(%cst : f32) outs(%30 : tensor<2x4x24x1xf32>) -> tensor<2x4x24x1xf32>
    %32 = linalg.generic {indexing_maps = [#map1, #map9], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%29 : tensor<2x4x24x24xf32>) outs(%31 : tensor<2x4x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %40 = arith.addf %in, %out : f32
      linalg.yield %40 : f32
    } -> tensor<2x4x24x1xf32>
    %33 = linalg.generic {indexing_maps = [#map1, #map9, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%29, %32 : tensor<2x4x24x24xf32>, tensor<2x4x24x1xf32>) outs(%21 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %40 = arith.divf %in, %in_11 : f32
      linalg.yield %40 : f32
    } -> tensor<2x4x24x24xf32>
    %34 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%33 : tensor<2x4x24x24xf32>) outs(%6 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %40 = arith.truncf %in : f32 to bf16
      linalg.yield %40 : bf16
    } -> tensor<2x4x24x24xbf16>
    %collapsed_8 = tensor.collapse_shape %34 [[0, 1], [2], [3]] : tensor<2x4x24x24xbf16> into tensor<8x24x24xbf16>
    %collapsed_9 = tensor.collapse_shape %arg2 [[0, 1], [2], [3]] : tensor<2x4x24x32xbf16> into tensor<8x24x32xbf16>
    %35 = tensor.empty() : tensor<8x24x32xf32>
    %36 = linalg.fill ins(%cst : f32) outs(%35 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %37 = linalg.batch_matmul ins(%collapsed_8, %collapsed_9 : tensor<8x24x24xbf16>, tensor<8x24x32xbf16>) outs(%36 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %38 = tensor.empty() : tensor<8x24x32xbf16>
    %39 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%37 : tensor<8x24x32xf32>) outs(%38 : tensor<8x24x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %40 = arith.truncf %in : f32 to bf16
      linalg.yield %40 : bf16
    } -> tensor<8x24x32xbf16>
    %expanded_10 = tensor.expand_shape %39 [[0, 1], [2], [3]] output_shape [2, 4, 24, 32] : tensor<8x24x32xbf16> into tensor<2x4x24x32xbf16>
    return %expanded_10 : tensor<2x4x24x32xbf16>
  }
}

