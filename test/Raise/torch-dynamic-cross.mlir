//   def dynamic_cross(q,k,v): return sdpa(q,k,v)
// Made by torch 2.15.0: torch.export.export, run_decompositions; iree-base-compiler
// 3.13.0: FxImporter, and torch-mlir's passes to linalg on tensors.
// RUN: %python %S/Inputs/raise_and_launch.py %build sm_80 %s 2x4x24x32 2x4x40x32 2x4x40x32 2x4x24x32 --pass-options=sizes-agree --f32-weights
// REQUIRES: mlir-runner

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map3 = affine_map<(d0, d1, d2, d3) -> ()>
module {
  func.func @main(%arg0: tensor<2x4x?x32xbf16>, %arg1: tensor<2x4x?x32xbf16>, %arg2: tensor<2x4x?x32xbf16>) -> tensor<2x4x?x32xbf16> {
    %c2_i64 = arith.constant 2 : i64
    %c4_i64 = arith.constant 4 : i64
    %c0_i64 = arith.constant 0 : i64
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8_i64 = arith.constant 8 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %c1_i64 = arith.constant 1 : i64
    %cst_0 = arith.constant 0xFF800000 : f32
    %false = arith.constant false
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = arith.constant 0xFFF0000000000000 : f64
    %cst_3 = arith.constant 0.42044820762685725 : f64
    %dim = tensor.dim %arg0, %c2 : tensor<2x4x?x32xbf16>
    %0 = arith.index_cast %dim : index to i64
    %dim_4 = tensor.dim %arg2, %c2 : tensor<2x4x?x32xbf16>
    %1 = arith.index_cast %dim_4 : index to i64
    %2 = arith.cmpi sge, %0, %c0_i64 : i64
    cf.assert %2, "negative values not allowed in new dimensions"
    %3 = tensor.empty(%dim) : tensor<2x4x?x32xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x4x?x32xbf16>) outs(%3 : tensor<2x4x?x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %101 = arith.extf %in : bf16 to f32
      linalg.yield %101 : f32
    } -> tensor<2x4x?x32xf32>
    %5 = arith.cmpi sge, %0, %c0_i64 : i64
    cf.assert %5, "unimplemented: dynamic negative broadcast sizes"
    %6 = tensor.empty(%dim) : tensor<2x4x?x32xf32>
    %7 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%6 : tensor<2x4x?x32xf32>) {
    ^bb0(%out: f32):
      %101 = linalg.index 0 : index
      %102 = linalg.index 1 : index
      %103 = linalg.index 2 : index
      %104 = linalg.index 3 : index
      %105 = arith.cmpi eq, %dim, %c1 : index
      %106 = arith.select %105, %c0, %103 : index
      %extracted = tensor.extract %4[%101, %102, %106, %104] : tensor<2x4x?x32xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x32xf32>
    %dim_5 = tensor.dim %arg1, %c2 : tensor<2x4x?x32xbf16>
    %8 = arith.index_cast %dim_5 : index to i64
    %9 = arith.cmpi sge, %8, %c0_i64 : i64
    cf.assert %9, "negative values not allowed in new dimensions"
    %10 = tensor.empty(%dim_5) : tensor<2x4x?x32xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x4x?x32xbf16>) outs(%10 : tensor<2x4x?x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %101 = arith.extf %in : bf16 to f32
      linalg.yield %101 : f32
    } -> tensor<2x4x?x32xf32>
    %12 = arith.cmpi sge, %8, %c0_i64 : i64
    cf.assert %12, "unimplemented: dynamic negative broadcast sizes"
    %13 = tensor.empty(%dim_5) : tensor<2x4x?x32xf32>
    %14 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%13 : tensor<2x4x?x32xf32>) {
    ^bb0(%out: f32):
      %101 = linalg.index 0 : index
      %102 = linalg.index 1 : index
      %103 = linalg.index 2 : index
      %104 = linalg.index 3 : index
      %105 = arith.cmpi eq, %dim_5, %c1 : index
      %106 = arith.select %105, %c0, %103 : index
      %extracted = tensor.extract %11[%101, %102, %106, %104] : tensor<2x4x?x32xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x32xf32>
    %15 = arith.cmpi sge, %1, %c0_i64 : i64
    cf.assert %15, "negative values not allowed in new dimensions"
    %16 = tensor.empty(%dim_4) : tensor<2x4x?x32xf32>
    %17 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x4x?x32xbf16>) outs(%16 : tensor<2x4x?x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %101 = arith.extf %in : bf16 to f32
      linalg.yield %101 : f32
    } -> tensor<2x4x?x32xf32>
    %18 = arith.cmpi sge, %1, %c0_i64 : i64
    cf.assert %18, "unimplemented: dynamic negative broadcast sizes"
    %19 = tensor.empty(%dim_4) : tensor<2x4x?x32xf32>
    %20 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%19 : tensor<2x4x?x32xf32>) {
    ^bb0(%out: f32):
      %101 = linalg.index 0 : index
      %102 = linalg.index 1 : index
      %103 = linalg.index 2 : index
      %104 = linalg.index 3 : index
      %105 = arith.cmpi eq, %dim_4, %c1 : index
      %106 = arith.select %105, %c0, %103 : index
      %extracted = tensor.extract %17[%101, %102, %106, %104] : tensor<2x4x?x32xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x32xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7 : tensor<2x4x?x32xf32>) outs(%6 : tensor<2x4x?x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %101 = arith.truncf %cst_3 : f64 to f32
      %102 = arith.mulf %in, %101 : f32
      linalg.yield %102 : f32
    } -> tensor<2x4x?x32xf32>
    %22 = tensor.empty(%dim_5) : tensor<2x4x32x?xf32>
    %transposed = linalg.transpose ins(%14 : tensor<2x4x?x32xf32>) outs(%22 : tensor<2x4x32x?xf32>) permutation = [0, 1, 3, 2] 
    %23 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x4x32x?xf32>) outs(%22 : tensor<2x4x32x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %101 = arith.truncf %cst_3 : f64 to f32
      %102 = arith.mulf %in, %101 : f32
      linalg.yield %102 : f32
    } -> tensor<2x4x32x?xf32>
    cf.assert %2, "unimplemented: dynamic negative broadcast sizes"
    %24 = tensor.empty(%dim) : tensor<2x4x?x32xf32>
    %25 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%24 : tensor<2x4x?x32xf32>) {
    ^bb0(%out: f32):
      %101 = linalg.index 0 : index
      %102 = linalg.index 1 : index
      %103 = linalg.index 2 : index
      %104 = linalg.index 3 : index
      %105 = arith.cmpi eq, %dim, %c1 : index
      %106 = arith.select %105, %c0, %103 : index
      %extracted = tensor.extract %21[%101, %102, %106, %104] : tensor<2x4x?x32xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x32xf32>
    %collapsed = tensor.collapse_shape %25 [[0, 1], [2], [3]] : tensor<2x4x?x32xf32> into tensor<8x?x32xf32>
    cf.assert %15, "unimplemented: dynamic negative broadcast sizes"
    %26 = tensor.empty(%dim_4) : tensor<2x4x32x?xf32>
    %27 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%26 : tensor<2x4x32x?xf32>) {
    ^bb0(%out: f32):
      %101 = linalg.index 0 : index
      %102 = linalg.index 1 : index
      %103 = linalg.index 2 : index
      %104 = linalg.index 3 : index
      %105 = arith.cmpi eq, %dim_5, %c1 : index
      %106 = arith.select %105, %c0, %104 : index
      %extracted = tensor.extract %23[%101, %102, %103, %106] : tensor<2x4x32x?xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x32x?xf32>
    %collapsed_6 = tensor.collapse_shape %27 [[0, 1], [2], [3]] : tensor<2x4x32x?xf32> into tensor<8x32x?xf32>
    %dim_7 = tensor.dim %collapsed, %c1 : tensor<8x?x32xf32>
    %dim_8 = tensor.dim %collapsed_6, %c2 : tensor<8x32x?xf32>
    %28 = tensor.empty(%dim_7, %dim_8) : tensor<8x?x?xf32>
    %29 = linalg.fill ins(%cst : f32) outs(%28 : tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
    %30 = linalg.batch_matmul ins(%collapsed, %collapsed_6 : tensor<8x?x32xf32>, tensor<8x32x?xf32>) outs(%29 : tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
    %31 = arith.muli %0, %c8_i64 : i64
    %32 = arith.cmpi slt, %0, %c0_i64 : i64
    %33 = arith.select %32, %c8_i64, %31 : i64
    %34 = arith.extui %32 : i1 to i64
    %35 = arith.muli %33, %1 : i64
    %36 = arith.addi %34, %c1_i64 : i64
    %37 = arith.cmpi slt, %1, %c0_i64 : i64
    %38 = arith.select %37, %33, %35 : i64
    %39 = arith.select %37, %36, %34 : i64
    %40 = arith.cmpi sle, %39, %c1_i64 : i64
    cf.assert %40, "must have at most one inferred (negative) dimension"
    %41 = arith.index_cast %dim_7 : index to i64
    %42 = arith.muli %41, %c8_i64 : i64
    %43 = arith.index_cast %dim_8 : index to i64
    %44 = arith.muli %42, %43 : i64
    %45 = arith.divsi %44, %38 : i64
    %46 = arith.select %32, %45, %0 : i64
    %47 = arith.select %37, %45, %1 : i64
    %from_elements = tensor.from_elements %c2_i64, %c4_i64, %46, %47 : tensor<4xi64>
    %reshape = tensor.reshape %30(%from_elements) : (tensor<8x?x?xf32>, tensor<4xi64>) -> tensor<2x4x?x?xf32>
    %48 = arith.index_cast %46 : i64 to index
    %49 = tensor.empty(%48) : tensor<2x4x?xi64>
    %50 = linalg.fill ins(%c0_i64 : i64) outs(%49 : tensor<2x4x?xi64>) -> tensor<2x4x?xi64>
    %51 = tensor.empty(%48) : tensor<2x4x?xf32>
    %52 = linalg.fill ins(%cst_0 : f32) outs(%51 : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
    %53:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%reshape : tensor<2x4x?x?xf32>) outs(%52, %50 : tensor<2x4x?xf32>, tensor<2x4x?xi64>) {
    ^bb0(%in: f32, %out: f32, %out_16: i64):
      %101 = linalg.index 3 : index
      %102 = arith.index_cast %101 : index to i64
      %103 = arith.maximumf %in, %out : f32
      %104 = arith.cmpf ogt, %in, %out : f32
      %105 = arith.select %104, %102, %out_16 : i64
      linalg.yield %103, %105 : f32, i64
    } -> (tensor<2x4x?xf32>, tensor<2x4x?xi64>)
    %expanded = tensor.expand_shape %53#0 [[0], [1], [2, 3]] output_shape [2, 4, %48, 1] : tensor<2x4x?xf32> into tensor<2x4x?x1xf32>
    %54 = arith.index_cast %47 : i64 to index
    %dim_9 = tensor.dim %expanded, %c2 : tensor<2x4x?x1xf32>
    %55 = arith.cmpi eq, %48, %dim_9 : index
    cf.assert %55, "mismatched size for broadcast"
    %56 = tensor.empty(%48, %54) : tensor<2x4x?x?xf32>
    %57 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%reshape, %expanded : tensor<2x4x?x?xf32>, tensor<2x4x?x1xf32>) outs(%56 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %in_16: f32, %out: f32):
      %101 = arith.subf %in, %in_16 : f32
      linalg.yield %101 : f32
    } -> tensor<2x4x?x?xf32>
    %58 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%57 : tensor<2x4x?x?xf32>) outs(%56 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %101 = math.exp %in : f32
      linalg.yield %101 : f32
    } -> tensor<2x4x?x?xf32>
    %59 = tensor.empty(%48) : tensor<2x4x?x1xf32>
    %60 = linalg.fill ins(%cst : f32) outs(%59 : tensor<2x4x?x1xf32>) -> tensor<2x4x?x1xf32>
    %61 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%58 : tensor<2x4x?x?xf32>) outs(%60 : tensor<2x4x?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %101 = arith.addf %in, %out : f32
      linalg.yield %101 : f32
    } -> tensor<2x4x?x1xf32>
    %62 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%58, %61 : tensor<2x4x?x?xf32>, tensor<2x4x?x1xf32>) outs(%56 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %in_16: f32, %out: f32):
      %101 = arith.divf %in, %in_16 : f32
      linalg.yield %101 : f32
    } -> tensor<2x4x?x?xf32>
    %63 = tensor.empty(%48, %54) : tensor<2x4x?x?xi1>
    %64 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%reshape : tensor<2x4x?x?xf32>) outs(%63 : tensor<2x4x?x?xi1>) {
    ^bb0(%in: f32, %out: i1):
      %101 = arith.extf %in : f32 to f64
      %102 = arith.cmpf oeq, %101, %cst_2 : f64
      linalg.yield %102 : i1
    } -> tensor<2x4x?x?xi1>
    %65 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%64 : tensor<2x4x?x?xi1>) outs(%63 : tensor<2x4x?x?xi1>) {
    ^bb0(%in: i1, %out: i1):
      %101 = arith.cmpi eq, %in, %false : i1
      linalg.yield %101 : i1
    } -> tensor<2x4x?x?xi1>
    %66 = tensor.empty(%48) : tensor<2x4x?x1xi1>
    %67 = linalg.fill ins(%false : i1) outs(%66 : tensor<2x4x?x1xi1>) -> tensor<2x4x?x1xi1>
    %68 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%65 : tensor<2x4x?x?xi1>) outs(%67 : tensor<2x4x?x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %101 = arith.ori %in, %out : i1
      linalg.yield %101 : i1
    } -> tensor<2x4x?x1xi1>
    %69 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%68 : tensor<2x4x?x1xi1>) outs(%66 : tensor<2x4x?x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %101 = arith.cmpi eq, %in, %false : i1
      linalg.yield %101 : i1
    } -> tensor<2x4x?x1xi1>
    %70 = arith.cmpi sge, %46, %c0_i64 : i64
    cf.assert %70, "negative values not allowed in new dimensions"
    %71 = arith.index_cast %46 : i64 to index
    %72 = arith.cmpi sge, %47, %c0_i64 : i64
    cf.assert %72, "negative values not allowed in new dimensions"
    %73 = arith.index_cast %47 : i64 to index
    %74 = tensor.empty(%71, %73) : tensor<2x4x?x?xf32>
    %75 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_1 : tensor<f32>) outs(%74 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x?x?xf32>
    %76 = arith.cmpi eq, %48, %71 : index
    cf.assert %76, "mismatched size for broadcast"
    %77 = arith.cmpi eq, %73, %54 : index
    cf.assert %77, "mismatched size for broadcast"
    %78 = tensor.empty(%48, %73) : tensor<2x4x?x?xf32>
    %79 = linalg.generic {indexing_maps = [#map2, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%69, %75, %62 : tensor<2x4x?x1xi1>, tensor<2x4x?x?xf32>, tensor<2x4x?x?xf32>) outs(%78 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: i1, %in_16: f32, %in_17: f32, %out: f32):
      %101 = arith.select %in, %in_16, %in_17 : f32
      linalg.yield %101 : f32
    } -> tensor<2x4x?x?xf32>
    cf.assert %2, "unimplemented: dynamic negative broadcast sizes"
    cf.assert %15, "unimplemented: dynamic negative broadcast sizes"
    %80 = tensor.empty(%dim, %dim_4) : tensor<2x4x?x?xf32>
    %81 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%80 : tensor<2x4x?x?xf32>) {
    ^bb0(%out: f32):
      %101 = linalg.index 0 : index
      %102 = linalg.index 1 : index
      %103 = linalg.index 2 : index
      %104 = linalg.index 3 : index
      %105 = arith.cmpi eq, %48, %c1 : index
      %106 = arith.select %105, %c0, %103 : index
      %107 = arith.cmpi eq, %73, %c1 : index
      %108 = arith.select %107, %c0, %104 : index
      %extracted = tensor.extract %79[%101, %102, %106, %108] : tensor<2x4x?x?xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x?xf32>
    cf.assert %40, "must have at most one inferred (negative) dimension"
    %82 = arith.muli %31, %1 : i64
    %83 = arith.divsi %82, %38 : i64
    %84 = arith.select %32, %83, %0 : i64
    %85 = arith.select %37, %83, %1 : i64
    %from_elements_10 = tensor.from_elements %c8_i64, %84, %85 : tensor<3xi64>
    %reshape_11 = tensor.reshape %81(%from_elements_10) : (tensor<2x4x?x?xf32>, tensor<3xi64>) -> tensor<8x?x?xf32>
    cf.assert %15, "unimplemented: dynamic negative broadcast sizes"
    %86 = tensor.empty(%dim_4) : tensor<2x4x?x32xf32>
    %87 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%86 : tensor<2x4x?x32xf32>) {
    ^bb0(%out: f32):
      %101 = linalg.index 0 : index
      %102 = linalg.index 1 : index
      %103 = linalg.index 2 : index
      %104 = linalg.index 3 : index
      %105 = arith.cmpi eq, %dim_4, %c1 : index
      %106 = arith.select %105, %c0, %103 : index
      %extracted = tensor.extract %20[%101, %102, %106, %104] : tensor<2x4x?x32xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x32xf32>
    %collapsed_12 = tensor.collapse_shape %87 [[0, 1], [2], [3]] : tensor<2x4x?x32xf32> into tensor<8x?x32xf32>
    %88 = arith.index_cast %84 : i64 to index
    %dim_13 = tensor.dim %collapsed_12, %c1 : tensor<8x?x32xf32>
    %89 = arith.index_cast %dim_13 : index to i64
    %90 = arith.cmpi eq, %85, %89 : i64
    cf.assert %90, "mismatching contracting dimension"
    %91 = tensor.empty(%88) : tensor<8x?x32xf32>
    %92 = linalg.fill ins(%cst : f32) outs(%91 : tensor<8x?x32xf32>) -> tensor<8x?x32xf32>
    %93 = linalg.batch_matmul ins(%reshape_11, %collapsed_12 : tensor<8x?x?xf32>, tensor<8x?x32xf32>) outs(%92 : tensor<8x?x32xf32>) -> tensor<8x?x32xf32>
    %expanded_14 = tensor.expand_shape %93 [[0, 1], [2], [3]] output_shape [2, 4, %88, 32] : tensor<8x?x32xf32> into tensor<2x4x?x32xf32>
    %dim_15 = tensor.dim %expanded_14, %c2 : tensor<2x4x?x32xf32>
    %94 = arith.index_cast %dim_15 : index to i64
    %95 = arith.cmpi sge, %94, %c0_i64 : i64
    cf.assert %95, "negative values not allowed in new dimensions"
    %96 = tensor.empty(%dim_15) : tensor<2x4x?x32xbf16>
    %97 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_14 : tensor<2x4x?x32xf32>) outs(%96 : tensor<2x4x?x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %101 = arith.truncf %in : f32 to bf16
      linalg.yield %101 : bf16
    } -> tensor<2x4x?x32xbf16>
    %98 = arith.cmpi sge, %94, %c0_i64 : i64
    cf.assert %98, "unimplemented: dynamic negative broadcast sizes"
    %99 = tensor.empty(%dim_15) : tensor<2x4x?x32xbf16>
    %100 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%99 : tensor<2x4x?x32xbf16>) {
    ^bb0(%out: bf16):
      %101 = linalg.index 0 : index
      %102 = linalg.index 1 : index
      %103 = linalg.index 2 : index
      %104 = linalg.index 3 : index
      %105 = arith.cmpi eq, %dim_15, %c1 : index
      %106 = arith.select %105, %c0, %103 : index
      %extracted = tensor.extract %97[%101, %102, %106, %104] : tensor<2x4x?x32xbf16>
      linalg.yield %extracted : bf16
    } -> tensor<2x4x?x32xbf16>
    return %100 : tensor<2x4x?x32xbf16>
  }
}

