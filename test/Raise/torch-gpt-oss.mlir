//   def gpt_oss(q,k,v,s):
//       k,v=repeat_kv(k,2),repeat_kv(v,2)
//       w=torch.matmul(q,k.transpose(2,3))*D**-0.5
//       i=torch.arange(T); w=w.masked_fill(i[None]>i[:,None],float('-inf'))
//       c=torch.cat([w,s.reshape(1,-1,1,1).expand(B,-1,T,-1)],dim=-1)
//       c=c-c.max(dim=-1,keepdim=True).values
//       p=F.softmax(c,dim=-1,dtype=c.dtype)[...,:-1]
//       return torch.matmul(p,v)
// Made by torch 2.15.0: torch.export.export, run_decompositions; iree-base-compiler
// 3.13.0: FxImporter, and torch-mlir's passes to linalg on tensors.
// RUN: %python %S/Inputs/raise_and_run.py %s
// REQUIRES: mlir-runner

#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0) -> (d0)>
#map5 = affine_map<(d0, d1) -> (0, d1)>
#map6 = affine_map<(d0, d1) -> (d0, 0)>
#map7 = affine_map<(d0, d1) -> (d0, d1)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map9 = affine_map<(d0, d1, d2, d3) -> ()>
#map10 = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
#map11 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map12 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @main(%arg0: tensor<2x4x24x32xbf16>, %arg1: tensor<2x2x24x32xbf16>, %arg2: tensor<2x2x24x32xbf16>, %arg3: tensor<4xbf16>) -> tensor<2x4x24x32xbf16> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF80 : bf16
    %cst_1 = arith.constant 0xFF800000 : f32
    %cst_2 = arith.constant dense<0xFF80> : tensor<bf16>
    %cst_3 = arith.constant 0.17677669529663689 : f64
    %0 = tensor.empty() : tensor<2x2x2x24x32xbf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x2x24x32xbf16>) outs(%0 : tensor<2x2x2x24x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x2x2x24x32xbf16>
    %collapsed = tensor.collapse_shape %1 [[0], [1, 2], [3], [4]] : tensor<2x2x2x24x32xbf16> into tensor<2x4x24x32xbf16>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x2x24x32xbf16>) outs(%0 : tensor<2x2x2x24x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x2x2x24x32xbf16>
    %3 = tensor.empty() : tensor<2x4x32x24xbf16>
    %transposed = linalg.transpose ins(%collapsed : tensor<2x4x24x32xbf16>) outs(%3 : tensor<2x4x32x24xbf16>) permutation = [0, 1, 3, 2] 
    %collapsed_4 = tensor.collapse_shape %arg0 [[0, 1], [2], [3]] : tensor<2x4x24x32xbf16> into tensor<8x24x32xbf16>
    %collapsed_5 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<2x4x32x24xbf16> into tensor<8x32x24xbf16>
    %4 = tensor.empty() : tensor<8x24x24xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %6 = linalg.batch_matmul ins(%collapsed_4, %collapsed_5 : tensor<8x24x32xbf16>, tensor<8x32x24xbf16>) outs(%5 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %7 = tensor.empty() : tensor<8x24x24xbf16>
    %8 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6 : tensor<8x24x24xf32>) outs(%7 : tensor<8x24x24xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %42 = arith.truncf %in : f32 to bf16
      linalg.yield %42 : bf16
    } -> tensor<8x24x24xbf16>
    %expanded = tensor.expand_shape %8 [[0, 1], [2], [3]] output_shape [2, 4, 24, 24] : tensor<8x24x24xbf16> into tensor<2x4x24x24xbf16>
    %9 = tensor.empty() : tensor<2x4x24x24xbf16>
    %10 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x4x24x24xbf16>) outs(%9 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %42 = arith.truncf %cst_3 : f64 to bf16
      %43 = arith.mulf %in, %42 : bf16
      linalg.yield %43 : bf16
    } -> tensor<2x4x24x24xbf16>
    %11 = tensor.empty() : tensor<24xi64>
    %12 = linalg.generic {indexing_maps = [#map4], iterator_types = ["parallel"]} outs(%11 : tensor<24xi64>) {
    ^bb0(%out: i64):
      %42 = linalg.index 0 : index
      %43 = arith.index_cast %42 : index to i64
      linalg.yield %43 : i64
    } -> tensor<24xi64>
    %expanded_6 = tensor.expand_shape %12 [[0, 1]] output_shape [1, 24] : tensor<24xi64> into tensor<1x24xi64>
    %expanded_7 = tensor.expand_shape %12 [[0, 1]] output_shape [24, 1] : tensor<24xi64> into tensor<24x1xi64>
    %13 = tensor.empty() : tensor<24x24xi1>
    %14 = linalg.generic {indexing_maps = [#map5, #map6, #map7], iterator_types = ["parallel", "parallel"]} ins(%expanded_6, %expanded_7 : tensor<1x24xi64>, tensor<24x1xi64>) outs(%13 : tensor<24x24xi1>) {
    ^bb0(%in: i64, %in_14: i64, %out: i1):
      %42 = arith.cmpi sgt, %in, %in_14 : i64
      linalg.yield %42 : i1
    } -> tensor<24x24xi1>
    %15 = linalg.generic {indexing_maps = [#map8, #map9, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14, %cst_2, %10 : tensor<24x24xi1>, tensor<bf16>, tensor<2x4x24x24xbf16>) outs(%9 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: i1, %in_14: bf16, %in_15: bf16, %out: bf16):
      %42 = arith.select %in, %in_14, %in_15 : bf16
      linalg.yield %42 : bf16
    } -> tensor<2x4x24x24xbf16>
    %16 = tensor.empty() : tensor<2x4x24x1xbf16>
    %expanded_8 = tensor.expand_shape %arg3 [[0, 1]] output_shape [4, 1] : tensor<4xbf16> into tensor<4x1xbf16>
    %17 = linalg.generic {indexing_maps = [#map10, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_8 : tensor<4x1xbf16>) outs(%16 : tensor<2x4x24x1xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x4x24x1xbf16>
    %concat = tensor.concat dim(3) %15, %17 : (tensor<2x4x24x24xbf16>, tensor<2x4x24x1xbf16>) -> tensor<2x4x24x25xbf16>
    %18 = tensor.empty() : tensor<2x4x24xi64>
    %19 = linalg.fill ins(%c0_i64 : i64) outs(%18 : tensor<2x4x24xi64>) -> tensor<2x4x24xi64>
    %20 = tensor.empty() : tensor<2x4x24xbf16>
    %21 = linalg.fill ins(%cst_0 : bf16) outs(%20 : tensor<2x4x24xbf16>) -> tensor<2x4x24xbf16>
    %22:2 = linalg.generic {indexing_maps = [#map3, #map11, #map11], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%concat : tensor<2x4x24x25xbf16>) outs(%21, %19 : tensor<2x4x24xbf16>, tensor<2x4x24xi64>) {
    ^bb0(%in: bf16, %out: bf16, %out_14: i64):
      %42 = linalg.index 3 : index
      %43 = arith.index_cast %42 : index to i64
      %44 = arith.maximumf %in, %out : bf16
      %45 = arith.cmpf ogt, %in, %out : bf16
      %46 = arith.select %45, %43, %out_14 : i64
      linalg.yield %44, %46 : bf16, i64
    } -> (tensor<2x4x24xbf16>, tensor<2x4x24xi64>)
    %expanded_9 = tensor.expand_shape %22#0 [[0], [1], [2, 3]] output_shape [2, 4, 24, 1] : tensor<2x4x24xbf16> into tensor<2x4x24x1xbf16>
    %23 = tensor.empty() : tensor<2x4x24x25xbf16>
    %24 = linalg.generic {indexing_maps = [#map3, #map12, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%concat, %expanded_9 : tensor<2x4x24x25xbf16>, tensor<2x4x24x1xbf16>) outs(%23 : tensor<2x4x24x25xbf16>) {
    ^bb0(%in: bf16, %in_14: bf16, %out: bf16):
      %42 = arith.subf %in, %in_14 : bf16
      linalg.yield %42 : bf16
    } -> tensor<2x4x24x25xbf16>
    %25 = tensor.empty() : tensor<2x4x24x25xf32>
    %26 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24 : tensor<2x4x24x25xbf16>) outs(%25 : tensor<2x4x24x25xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %42 = arith.extf %in : bf16 to f32
      linalg.yield %42 : f32
    } -> tensor<2x4x24x25xf32>
    %27 = tensor.empty() : tensor<2x4x24xf32>
    %28 = linalg.fill ins(%cst_1 : f32) outs(%27 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %29:2 = linalg.generic {indexing_maps = [#map3, #map11, #map11], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%26 : tensor<2x4x24x25xf32>) outs(%28, %19 : tensor<2x4x24xf32>, tensor<2x4x24xi64>) {
    ^bb0(%in: f32, %out: f32, %out_14: i64):
      %42 = linalg.index 3 : index
      %43 = arith.index_cast %42 : index to i64
      %44 = arith.maximumf %in, %out : f32
      %45 = arith.cmpf ogt, %in, %out : f32
      %46 = arith.select %45, %43, %out_14 : i64
      linalg.yield %44, %46 : f32, i64
    } -> (tensor<2x4x24xf32>, tensor<2x4x24xi64>)
    %expanded_10 = tensor.expand_shape %29#0 [[0], [1], [2, 3]] output_shape [2, 4, 24, 1] : tensor<2x4x24xf32> into tensor<2x4x24x1xf32>
    %30 = linalg.generic {indexing_maps = [#map3, #map12, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%26, %expanded_10 : tensor<2x4x24x25xf32>, tensor<2x4x24x1xf32>) outs(%25 : tensor<2x4x24x25xf32>) {
    ^bb0(%in: f32, %in_14: f32, %out: f32):
      %42 = arith.subf %in, %in_14 : f32
      linalg.yield %42 : f32
    } -> tensor<2x4x24x25xf32>
    %31 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%30 : tensor<2x4x24x25xf32>) outs(%25 : tensor<2x4x24x25xf32>) {
    ^bb0(%in: f32, %out: f32):
      %42 = math.exp %in : f32
      linalg.yield %42 : f32
    } -> tensor<2x4x24x25xf32>
    %32 = tensor.empty() : tensor<2x4x24x1xf32>
    %33 = linalg.fill ins(%cst : f32) outs(%32 : tensor<2x4x24x1xf32>) -> tensor<2x4x24x1xf32>
    %34 = linalg.generic {indexing_maps = [#map3, #map12], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%31 : tensor<2x4x24x25xf32>) outs(%33 : tensor<2x4x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %42 = arith.addf %in, %out : f32
      linalg.yield %42 : f32
    } -> tensor<2x4x24x1xf32>
    %35 = linalg.generic {indexing_maps = [#map3, #map12, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%31, %34 : tensor<2x4x24x25xf32>, tensor<2x4x24x1xf32>) outs(%25 : tensor<2x4x24x25xf32>) {
    ^bb0(%in: f32, %in_14: f32, %out: f32):
      %42 = arith.divf %in, %in_14 : f32
      linalg.yield %42 : f32
    } -> tensor<2x4x24x25xf32>
    %36 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%35 : tensor<2x4x24x25xf32>) outs(%23 : tensor<2x4x24x25xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %42 = arith.truncf %in : f32 to bf16
      linalg.yield %42 : bf16
    } -> tensor<2x4x24x25xbf16>
    %extracted_slice = tensor.extract_slice %36[0, 0, 0, 0] [2, 4, 24, 24] [1, 1, 1, 1] : tensor<2x4x24x25xbf16> to tensor<2x4x24x24xbf16>
    %collapsed_11 = tensor.collapse_shape %extracted_slice [[0, 1], [2], [3]] : tensor<2x4x24x24xbf16> into tensor<8x24x24xbf16>
    %collapsed_12 = tensor.collapse_shape %2 [[0, 1, 2], [3], [4]] : tensor<2x2x2x24x32xbf16> into tensor<8x24x32xbf16>
    %37 = tensor.empty() : tensor<8x24x32xf32>
    %38 = linalg.fill ins(%cst : f32) outs(%37 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %39 = linalg.batch_matmul ins(%collapsed_11, %collapsed_12 : tensor<8x24x24xbf16>, tensor<8x24x32xbf16>) outs(%38 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %40 = tensor.empty() : tensor<8x24x32xbf16>
    %41 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%39 : tensor<8x24x32xf32>) outs(%40 : tensor<8x24x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %42 = arith.truncf %in : f32 to bf16
      linalg.yield %42 : bf16
    } -> tensor<8x24x32xbf16>
    %expanded_13 = tensor.expand_shape %41 [[0, 1], [2], [3]] output_shape [2, 4, 24, 32] : tensor<8x24x32xbf16> into tensor<2x4x24x32xbf16>
    return %expanded_13 : tensor<2x4x24x32xbf16>
  }
}

