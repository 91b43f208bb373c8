//   def llama_eager(q,k,v,mask):
//       k,v=repeat_kv(k,2),repeat_kv(v,2)
//       w=torch.matmul(q,k.transpose(2,3))*D**-0.5+mask[:,:,:,:k.shape[-2]]
//       w=F.softmax(w,dim=-1,dtype=torch.float32).to(q.dtype)
//       return torch.matmul(w,v).transpose(1,2).contiguous()
// Made by torch 2.15.0: torch.export.export, run_decompositions; iree-base-compiler
// 3.13.0: FxImporter, and torch-mlir's passes to linalg on tensors.
// RUN: %python %S/Inputs/raise_and_run.py %s
// REQUIRES: mlir-runner

#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, 0, d2, d3)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @main(%arg0: tensor<2x4x24x32xbf16>, %arg1: tensor<2x2x24x32xbf16>, %arg2: tensor<2x2x24x32xbf16>, %arg3: tensor<2x1x24x24xbf16>) -> tensor<2x24x4x32xbf16> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant 0.17677669529663689 : f64
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
    %collapsed_2 = tensor.collapse_shape %arg0 [[0, 1], [2], [3]] : tensor<2x4x24x32xbf16> into tensor<8x24x32xbf16>
    %collapsed_3 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<2x4x32x24xbf16> into tensor<8x32x24xbf16>
    %4 = tensor.empty() : tensor<8x24x24xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %6 = linalg.batch_matmul ins(%collapsed_2, %collapsed_3 : tensor<8x24x32xbf16>, tensor<8x32x24xbf16>) outs(%5 : tensor<8x24x24xf32>) -> tensor<8x24x24xf32>
    %7 = tensor.empty() : tensor<8x24x24xbf16>
    %8 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6 : tensor<8x24x24xf32>) outs(%7 : tensor<8x24x24xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %32 = arith.truncf %in : f32 to bf16
      linalg.yield %32 : bf16
    } -> tensor<8x24x24xbf16>
    %expanded = tensor.expand_shape %8 [[0, 1], [2], [3]] output_shape [2, 4, 24, 24] : tensor<8x24x24xbf16> into tensor<2x4x24x24xbf16>
    %9 = tensor.empty() : tensor<2x4x24x24xbf16>
    %10 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x4x24x24xbf16>) outs(%9 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %32 = arith.truncf %cst_1 : f64 to bf16
      %33 = arith.mulf %in, %32 : bf16
      linalg.yield %33 : bf16
    } -> tensor<2x4x24x24xbf16>
    %11 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10, %arg3 : tensor<2x4x24x24xbf16>, tensor<2x1x24x24xbf16>) outs(%9 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: bf16, %in_9: bf16, %out: bf16):
      %32 = arith.addf %in, %in_9 : bf16
      linalg.yield %32 : bf16
    } -> tensor<2x4x24x24xbf16>
    %12 = tensor.empty() : tensor<2x4x24x24xf32>
    %13 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<2x4x24x24xbf16>) outs(%12 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %32 = arith.extf %in : bf16 to f32
      linalg.yield %32 : f32
    } -> tensor<2x4x24x24xf32>
    %14 = tensor.empty() : tensor<2x4x24xi64>
    %15 = linalg.fill ins(%c0_i64 : i64) outs(%14 : tensor<2x4x24xi64>) -> tensor<2x4x24xi64>
    %16 = tensor.empty() : tensor<2x4x24xf32>
    %17 = linalg.fill ins(%cst_0 : f32) outs(%16 : tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %18:2 = linalg.generic {indexing_maps = [#map3, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%13 : tensor<2x4x24x24xf32>) outs(%17, %15 : tensor<2x4x24xf32>, tensor<2x4x24xi64>) {
    ^bb0(%in: f32, %out: f32, %out_9: i64):
      %32 = linalg.index 3 : index
      %33 = arith.index_cast %32 : index to i64
      %34 = arith.maximumf %in, %out : f32
      %35 = arith.cmpf ogt, %in, %out : f32
      %36 = arith.select %35, %33, %out_9 : i64
      linalg.yield %34, %36 : f32, i64
    } -> (tensor<2x4x24xf32>, tensor<2x4x24xi64>)
    %expanded_4 = tensor.expand_shape %18#0 [[0], [1], [2, 3]] output_shape [2, 4, 24, 1] : tensor<2x4x24xf32> into tensor<2x4x24x1xf32>
    %19 = linalg.generic {indexing_maps = [#map3, #map6, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%13, %expanded_4 : tensor<2x4x24x24xf32>, tensor<2x4x24x1xf32>) outs(%12 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %32 = arith.subf %in, %in_9 : f32
      linalg.yield %32 : f32
    } -> tensor<2x4x24x24xf32>
    %20 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19 : tensor<2x4x24x24xf32>) outs(%12 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %32 = math.exp %in : f32
      linalg.yield %32 : f32
    } -> tensor<2x4x24x24xf32>
    %21 = tensor.empty() : tensor<2x4x24x1xf32>
    %22 = linalg.fill ins(%cst : f32) outs(%21 : tensor<2x4x24x1xf32>) -> tensor<2x4x24x1xf32>
    %23 = linalg.generic {indexing_maps = [#map3, #map6], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%20 : tensor<2x4x24x24xf32>) outs(%22 : tensor<2x4x24x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %32 = arith.addf %in, %out : f32
      linalg.yield %32 : f32
    } -> tensor<2x4x24x1xf32>
    %24 = linalg.generic {indexing_maps = [#map3, #map6, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20, %23 : tensor<2x4x24x24xf32>, tensor<2x4x24x1xf32>) outs(%12 : tensor<2x4x24x24xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %32 = arith.divf %in, %in_9 : f32
      linalg.yield %32 : f32
    } -> tensor<2x4x24x24xf32>
    %25 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24 : tensor<2x4x24x24xf32>) outs(%9 : tensor<2x4x24x24xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %32 = arith.truncf %in : f32 to bf16
      linalg.yield %32 : bf16
    } -> tensor<2x4x24x24xbf16>
    %collapsed_5 = tensor.collapse_shape %25 [[0, 1], [2], [3]] : tensor<2x4x24x24xbf16> into tensor<8x24x24xbf16>
    %collapsed_6 = tensor.collapse_shape %2 [[0, 1, 2], [3], [4]] : tensor<2x2x2x24x32xbf16> into tensor<8x24x32xbf16>
    %26 = tensor.empty() : tensor<8x24x32xf32>
    %27 = linalg.fill ins(%cst : f32) outs(%26 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %28 = linalg.batch_matmul ins(%collapsed_5, %collapsed_6 : tensor<8x24x24xbf16>, tensor<8x24x32xbf16>) outs(%27 : tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %29 = tensor.empty() : tensor<8x24x32xbf16>
    %30 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%28 : tensor<8x24x32xf32>) outs(%29 : tensor<8x24x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %32 = arith.truncf %in : f32 to bf16
      linalg.yield %32 : bf16
    } -> tensor<8x24x32xbf16>
    %expanded_7 = tensor.expand_shape %30 [[0, 1], [2], [3]] output_shape [2, 4, 24, 32] : tensor<8x24x32xbf16> into tensor<2x4x24x32xbf16>
    %31 = tensor.empty() : tensor<2x24x4x32xbf16>
    %transposed_8 = linalg.transpose ins(%expanded_7 : tensor<2x4x24x32xbf16>) outs(%31 : tensor<2x24x4x32xbf16>) permutation = [0, 2, 1, 3] 
    return %transposed_8 : tensor<2x24x4x32xbf16>
  }
}

