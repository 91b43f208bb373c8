//   def alibi(q,k,v,s):
//       i=torch.arange(T); b=s[:,None,None]*(i[None]-i[:,None]).float()
//       w=(torch.matmul(q,k.transpose(2,3))*D**-0.5).float()+b
//       w=w.masked_fill(i[None]>i[:,None],torch.finfo(torch.float32).min)
//       return torch.matmul(F.softmax(w,-1).to(q.dtype),v)
// Made by torch 2.15.0: torch.export.export, run_decompositions; iree-base-compiler
// 3.13.0: FxImporter, and torch-mlir's passes to linalg on tensors.
// RUN: %python %S/Inputs/raise_and_run.py %s
// REQUIRES: mlir-runner

#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1) -> (0, d1)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1, d2) -> (d0, 0, 0)>
#map5 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map10 = affine_map<(d0, d1, d2, d3) -> ()>
#map11 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map12 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @main(%arg0: tensor<2x4x24x32xbf16>, %arg1: tensor<2x4x24x32xbf16>, %arg2: tensor<2x4x24x32xbf16>, %arg3: tensor<4xf32>) -> tensor<2x4x24x32xbf16> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant dense<-3.40282347E+38> : tensor<f32>
    %cst_2 = arith.constant 0.17677669529663689 : f64
    %0 = tensor.empty() : tensor<24xi64>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<24xi64>) {
    ^bb0(%out: i64):
      %39 = linalg.index 0 : index
      %40 = arith.index_cast %39 : index to i64
      linalg.yield %40 : i64
    } -> tensor<24xi64>
    %expanded = tensor.expand_shape %arg3 [[0, 1, 2]] output_shape [4, 1, 1] : tensor<4xf32> into tensor<4x1x1xf32>
    %expanded_3 = tensor.expand_shape %1 [[0, 1]] output_shape [1, 24] : tensor<24xi64> into tensor<1x24xi64>
    %expanded_4 = tensor.expand_shape %1 [[0, 1]] output_shape [24, 1] : tensor<24xi64> into tensor<24x1xi64>
    %2 = tensor.empty() : tensor<24x24xi64>
    %3 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel"]} ins(%expanded_3, %expanded_4 : tensor<1x24xi64>, tensor<24x1xi64>) outs(%2 : tensor<24x24xi64>) {
    ^bb0(%in: i64, %in_11: i64, %out: i64):
      %39 = arith.subi %in, %in_11 : i64
      linalg.yield %39 : i64
    } -> tensor<24x24xi64>
    %4 = tensor.empty() : tensor<24x24xf32>
    %5 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<24x24xi64>) outs(%4 : tensor<24x24xf32>) {
    ^bb0(%in: i64, %out: f32):
      %39 = arith.sitofp %in : i64 to f32
      linalg.yield %39 : f32
    } -> tensor<24x24xf32>
    %6 = tensor.empty() : tensor<4x24x24xf32>
    %7 = linalg.generic {indexing_maps = [#map4, #map5, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded, %5 : tensor<4x1x1xf32>, tensor<24x24xf32>) outs(%6 : tensor<4x24x24xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %39 = arith.mulf %in, %in_11 : f32
      linalg.yield %39 : f32
    } -> tensor<4x24x24xf32>
    %8 = tensor.empty() : tensor<2x4x32x24xbf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<2x4x24x32xbf16>) outs(%8 : tensor<2x4x32x24xbf16>) permutation = [0, 1, 3, 2] 
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2], [3]] : tensor<2x4x24x32xbf16> into tensor<8x24x32xbf16>
    %collapsed_5 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<2x4x32x24xbf16> into tensor<8x32x24xbf16>
    %9 = tensor.empty() : tensor<8x24x24xf32>
    %10 = linalg.fill ins(%cst : f32) outs(%9 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %11 = linalg.batch_matmul ins(%collapsed, %collapsed_5 : tensor<8x24x32xbf16>, tensor<8x32x24xbf16>) outs(%10 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %12 = tensor.empty() : tensor<8x24x24xbf16>
    %13 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11 : tensor<8x24x24xf32>) outs(%12 : tensor<8x24x24xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %39 = arith.truncf %in : f32 to bf16
      linalg.yield %39 : bf16
    } -> tensor<8x24x24xbf16>
    %expanded_6 = tensor.expand_shape %13 [[0, 1], [2], [3]] output_shape [2, 4, 24, 24] : tensor<8x24x24xbf16> into tensor<2x4x24x24xbf16>
    %14 = tensor.empty() : tensor<2x4x24x24xbf16>
    %15 = linalg.generic {indexing_maps = [#map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_6 : tensor<2x4x24x24xbf16>) outs(%14 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %39 = arith.truncf %cst_2 : f64 to bf16
      %40 = arith.mulf %in, %39 : bf16
      linalg.yield %40 : bf16
    } -> tensor<2x4x24x24xbf16>
    %16 = tensor.empty() : tensor<2x4x24x24xf32>
    %17 = linalg.generic {indexing_maps = [#map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15 : tensor<2x4x24x24xbf16>) outs(%16 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %39 = arith.extf %in : bf16 to f32
      linalg.yield %39 : f32
    } -> tensor<2x4x24x24xf32>
    %18 = linalg.generic {indexing_maps = [#map7, #map8, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17, %7 : tensor<2x4x24x24xf32>, tensor<4x24x24xf32>) outs(%16 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %39 = arith.addf %in, %in_11 : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x24x24xf32>
    %19 = tensor.empty() : tensor<24x24xi1>
    %20 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel"]} ins(%expanded_3, %expanded_4 : tensor<1x24xi64>, tensor<24x1xi64>) outs(%19 : tensor<24x24xi1>) {
    ^bb0(%in: i64, %in_11: i64, %out: i1):
      %39 = arith.cmpi sgt, %in, %in_11 : i64
      linalg.yield %39 : i1
    } -> tensor<24x24xi1>
    %21 = linalg.generic {indexing_maps = [#map9, #map10, #map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20, %cst_1, %18 : tensor<24x24xi1>, tensor<f32>, tensor<2x4x24x24xf32>) outs(%16 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: i1, %in_11: f32, %in_12: f32, %out: f32):
      %39 = arith.select %in, %in_11, %in_12 : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x24x24xf32>
    %22 = tensor.empty() : tensor<2x4x24xi64>
    %23 = linalg.fill ins(%c0_i64 : i64) outs(%22 : tensor<2x4x24xi64>) -> tensor<2x4x24xi64>
    %24 = tensor.empty() : tensor<2x4x24xf32>
    %25 = linalg.fill ins(%cst_0 : f32) outs(%24 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %26:2 = linalg.generic {indexing_maps = [#map7, #map11, #map11], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%21 : tensor<2x4x24x24xf32>) outs(%25, %23 : tensor<2x4x24xf32>, tensor<2x4x24xi64>) {
    ^bb0(%in: f32, %out: f32, %out_11: i64):
      %39 = linalg.index 3 : index
      %40 = arith.index_cast %39 : index to i64
      %41 = arith.maximumf %in, %out : f32
      %42 = arith.cmpf ogt, %in, %out : f32
      %43 = arith.select %42, %40, %out_11 : i64
      linalg.yield %41, %43 : f32, i64
    } -> (tensor<2x4x24xf32>, tensor<2x4x24xi64>)
    %expanded_7 = tensor.expand_shape %26#0 [[0], [1], [2, 3]] output_shape [2, 4, 24, 1] : tensor<2x4x24xf32> into tensor<2x4x24x1xf32>
    %27 = linalg.generic {indexing_maps = [#map7, #map12, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21, %expanded_7 : tensor<2x4x24x24xf32>, tensor<2x4x24x1xf32>) outs(%16 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %39 = arith.subf %in, %in_11 : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x24x24xf32>
    %28 = linalg.generic {indexing_maps = [#map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27 : tensor<2x4x24x24xf32>) outs(%16 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %39 = math.exp %in : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x24x24xf32>
    %29 = tensor.empty() : tensor<2x4x24x1xf32>
    %30 = linalg.fill ins(%cst : f32) outs(%29 : tensor<2x4x24x1xf32>) -> tensor<2x4x24x1xf32>
    %31 = linalg.generic {indexing_maps = [#map7, #map12], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%28 : tensor<2x4x24x24xf32>) outs(%30 : tensor<2x4x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %39 = arith.addf %in, %out : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x24x1xf32>
    %32 = linalg.generic {indexing_maps = [#map7, #map12, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28, %31 : tensor<2x4x24x24xf32>, tensor<2x4x24x1xf32>) outs(%16 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %39 = arith.divf %in, %in_11 : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x24x24xf32>
    %33 = linalg.generic {indexing_maps = [#map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%32 : tensor<2x4x24x24xf32>) outs(%14 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %39 = arith.truncf %in : f32 to bf16
      linalg.yield %39 : bf16
    } -> tensor<2x4x24x24xbf16>
    %collapsed_8 = tensor.collapse_shape %33 [[0, 1], [2], [3]] : tensor<2x4x24x24xbf16> into tensor<8x24x24xbf16>
    %collapsed_9 = tensor.collapse_shape %arg2 [[0, 1], [2], [3]] : tensor<2x4x24x32xbf16> into tensor<8x24x32xbf16>
    %34 = tensor.empty() : tensor<8x24x32xf32>
    %35 = linalg.fill ins(%cst : f32) outs(%34 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %36 = linalg.batch_matmul ins(%collapsed_8, %collapsed_9 : tensor<8x24x24xbf16>, tensor<8x24x32xbf16>) outs(%35 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %37 = tensor.empty() : tensor<8x24x32xbf16>
    %38 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%36 : tensor<8x24x32xf32>) outs(%37 : tensor<8x24x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %39 = arith.truncf %in : f32 to bf16
      linalg.yield %39 : bf16
    } -> tensor<8x24x32xbf16>
    %expanded_10 = tensor.expand_shape %38 [[0, 1], [2], [3]] output_shape [2, 4, 24, 32] : tensor<8x24x32xbf16> into tensor<2x4x24x32xbf16>
    return %expanded_10 : tensor<2x4x24x32xbf16>
  }
}

