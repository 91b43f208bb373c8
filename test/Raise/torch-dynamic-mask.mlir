//   def dynamic_mask(q,k,v,m): return sdpa(q,k,v,attn_mask=m)
// Made by torch 2.15.0: torch.export.export, run_decompositions; iree-base-compiler
// 3.13.0: FxImporter, and torch-mlir's passes to linalg on tensors.
// RUN: kvbuf-opt %s --kvbuf-raise-attention=sizes-agree | FileCheck %s
// CHECK-NOT: math.exp
// CHECK-NOT: linalg.batch_matmul
// CHECK: kvbuffer.attention {{.*}} visible {
// CHECK-NOT: linalg.batch_matmul

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> ()>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, 0, d2, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @main(%arg0: tensor<2x4x?x32xbf16>, %arg1: tensor<2x4x?x32xbf16>, %arg2: tensor<2x4x?x32xbf16>, %arg3: tensor<2x1x?x?xi1>) -> tensor<2x4x?x32xbf16> {
    %c1_i64 = arith.constant 1 : i64
    %c2_i64 = arith.constant 2 : i64
    %c4_i64 = arith.constant 4 : i64
    %c0_i64 = arith.constant 0 : i64
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c8_i64 = arith.constant 8 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %false = arith.constant false
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<bf16>
    %cst_3 = arith.constant dense<0xFF80> : tensor<bf16>
    %cst_4 = arith.constant 0.42044820762685725 : f64
    %cst_5 = arith.constant 0xFFF0000000000000 : f64
    %dim = tensor.dim %arg2, %c2 : tensor<2x4x?x32xbf16>
    %0 = arith.index_cast %dim : index to i64
    %dim_6 = tensor.dim %arg3, %c2 : tensor<2x1x?x?xi1>
    %dim_7 = tensor.dim %arg3, %c3 : tensor<2x1x?x?xi1>
    %1 = tensor.empty(%dim_6, %dim_7) : tensor<2x1x?x?xbf16>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg3, %cst_2, %cst_3 : tensor<2x1x?x?xi1>, tensor<bf16>, tensor<bf16>) outs(%1 : tensor<2x1x?x?xbf16>) {
    ^bb0(%in: i1, %in_20: bf16, %in_21: bf16, %out: bf16):
      %99 = arith.select %in, %in_20, %in_21 : bf16
      linalg.yield %99 : bf16
    } -> tensor<2x1x?x?xbf16>
    %dim_8 = tensor.dim %arg0, %c2 : tensor<2x4x?x32xbf16>
    %3 = arith.index_cast %dim_8 : index to i64
    %4 = arith.cmpi sge, %3, %c0_i64 : i64
    cf.assert %4, "negative values not allowed in new dimensions"
    %5 = tensor.empty(%dim_8) : tensor<2x4x?x32xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x4x?x32xbf16>) outs(%5 : tensor<2x4x?x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %99 = arith.extf %in : bf16 to f32
      linalg.yield %99 : f32
    } -> tensor<2x4x?x32xf32>
    %7 = arith.cmpi sge, %3, %c0_i64 : i64
    cf.assert %7, "unimplemented: dynamic negative broadcast sizes"
    %8 = tensor.empty(%dim_8) : tensor<2x4x?x32xf32>
    %9 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%8 : tensor<2x4x?x32xf32>) {
    ^bb0(%out: f32):
      %99 = linalg.index 0 : index
      %100 = linalg.index 1 : index
      %101 = linalg.index 2 : index
      %102 = linalg.index 3 : index
      %103 = arith.cmpi eq, %dim_8, %c1 : index
      %104 = arith.select %103, %c0, %101 : index
      %extracted = tensor.extract %6[%99, %100, %104, %102] : tensor<2x4x?x32xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x32xf32>
    %dim_9 = tensor.dim %arg1, %c2 : tensor<2x4x?x32xbf16>
    %10 = arith.index_cast %dim_9 : index to i64
    %11 = arith.cmpi sge, %10, %c0_i64 : i64
    cf.assert %11, "negative values not allowed in new dimensions"
    %12 = tensor.empty(%dim_9) : tensor<2x4x?x32xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x4x?x32xbf16>) outs(%12 : tensor<2x4x?x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %99 = arith.extf %in : bf16 to f32
      linalg.yield %99 : f32
    } -> tensor<2x4x?x32xf32>
    %14 = arith.cmpi sge, %10, %c0_i64 : i64
    cf.assert %14, "unimplemented: dynamic negative broadcast sizes"
    %15 = tensor.empty(%dim_9) : tensor<2x4x?x32xf32>
    %16 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%15 : tensor<2x4x?x32xf32>) {
    ^bb0(%out: f32):
      %99 = linalg.index 0 : index
      %100 = linalg.index 1 : index
      %101 = linalg.index 2 : index
      %102 = linalg.index 3 : index
      %103 = arith.cmpi eq, %dim_9, %c1 : index
      %104 = arith.select %103, %c0, %101 : index
      %extracted = tensor.extract %13[%99, %100, %104, %102] : tensor<2x4x?x32xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x32xf32>
    %17 = arith.cmpi sge, %0, %c0_i64 : i64
    cf.assert %17, "negative values not allowed in new dimensions"
    %18 = tensor.empty(%dim) : tensor<2x4x?x32xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x4x?x32xbf16>) outs(%18 : tensor<2x4x?x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %99 = arith.extf %in : bf16 to f32
      linalg.yield %99 : f32
    } -> tensor<2x4x?x32xf32>
    %20 = arith.cmpi sge, %0, %c0_i64 : i64
    cf.assert %20, "unimplemented: dynamic negative broadcast sizes"
    %21 = tensor.empty(%dim) : tensor<2x4x?x32xf32>
    %22 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%21 : tensor<2x4x?x32xf32>) {
    ^bb0(%out: f32):
      %99 = linalg.index 0 : index
      %100 = linalg.index 1 : index
      %101 = linalg.index 2 : index
      %102 = linalg.index 3 : index
      %103 = arith.cmpi eq, %dim, %c1 : index
      %104 = arith.select %103, %c0, %101 : index
      %extracted = tensor.extract %19[%99, %100, %104, %102] : tensor<2x4x?x32xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x32xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9 : tensor<2x4x?x32xf32>) outs(%8 : tensor<2x4x?x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.truncf %cst_4 : f64 to f32
      %100 = arith.mulf %in, %99 : f32
      linalg.yield %100 : f32
    } -> tensor<2x4x?x32xf32>
    %24 = tensor.empty(%dim_9) : tensor<2x4x32x?xf32>
    %transposed = linalg.transpose ins(%16 : tensor<2x4x?x32xf32>) outs(%24 : tensor<2x4x32x?xf32>) permutation = [0, 1, 3, 2] 
    %25 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x4x32x?xf32>) outs(%24 : tensor<2x4x32x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.truncf %cst_4 : f64 to f32
      %100 = arith.mulf %in, %99 : f32
      linalg.yield %100 : f32
    } -> tensor<2x4x32x?xf32>
    cf.assert %17, "unimplemented: dynamic negative broadcast sizes"
    %26 = tensor.empty(%dim) : tensor<2x4x?x32xf32>
    %27 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%26 : tensor<2x4x?x32xf32>) {
    ^bb0(%out: f32):
      %99 = linalg.index 0 : index
      %100 = linalg.index 1 : index
      %101 = linalg.index 2 : index
      %102 = linalg.index 3 : index
      %103 = arith.cmpi eq, %dim_8, %c1 : index
      %104 = arith.select %103, %c0, %101 : index
      %extracted = tensor.extract %23[%99, %100, %104, %102] : tensor<2x4x?x32xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x32xf32>
    %collapsed = tensor.collapse_shape %27 [[0, 1], [2], [3]] : tensor<2x4x?x32xf32> into tensor<8x?x32xf32>
    cf.assert %17, "unimplemented: dynamic negative broadcast sizes"
    %28 = tensor.empty(%dim) : tensor<2x4x32x?xf32>
    %29 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%28 : tensor<2x4x32x?xf32>) {
    ^bb0(%out: f32):
      %99 = linalg.index 0 : index
      %100 = linalg.index 1 : index
      %101 = linalg.index 2 : index
      %102 = linalg.index 3 : index
      %103 = arith.cmpi eq, %dim_9, %c1 : index
      %104 = arith.select %103, %c0, %102 : index
      %extracted = tensor.extract %25[%99, %100, %101, %104] : tensor<2x4x32x?xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x32x?xf32>
    %collapsed_10 = tensor.collapse_shape %29 [[0, 1], [2], [3]] : tensor<2x4x32x?xf32> into tensor<8x32x?xf32>
    %dim_11 = tensor.dim %collapsed, %c1 : tensor<8x?x32xf32>
    %dim_12 = tensor.dim %collapsed_10, %c2 : tensor<8x32x?xf32>
    %30 = tensor.empty(%dim_11, %dim_12) : tensor<8x?x?xf32>
    %31 = linalg.fill ins(%cst : f32) outs(%30 : tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
    %32 = linalg.batch_matmul ins(%collapsed, %collapsed_10 : tensor<8x?x32xf32>, tensor<8x32x?xf32>) outs(%31 : tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
    %33 = arith.muli %0, %c8_i64 : i64
    %34 = arith.cmpi slt, %0, %c0_i64 : i64
    %35 = arith.select %34, %c8_i64, %33 : i64
    %36 = arith.extui %34 : i1 to i64
    %37 = arith.muli %35, %0 : i64
    %38 = arith.addi %36, %c1_i64 : i64
    %39 = arith.select %34, %c8_i64, %37 : i64
    %40 = arith.select %34, %38, %36 : i64
    %41 = arith.cmpi sle, %40, %c1_i64 : i64
    cf.assert %41, "must have at most one inferred (negative) dimension"
    %42 = arith.index_cast %dim_11 : index to i64
    %43 = arith.muli %42, %c8_i64 : i64
    %44 = arith.index_cast %dim_12 : index to i64
    %45 = arith.muli %43, %44 : i64
    %46 = arith.divsi %45, %39 : i64
    %47 = arith.select %34, %46, %0 : i64
    %from_elements = tensor.from_elements %c2_i64, %c4_i64, %47, %47 : tensor<4xi64>
    %reshape = tensor.reshape %32(%from_elements) : (tensor<8x?x?xf32>, tensor<4xi64>) -> tensor<2x4x?x?xf32>
    %48 = arith.index_cast %47 : i64 to index
    %49 = arith.cmpi eq, %48, %dim_6 : index
    cf.assert %49, "mismatched size for broadcast"
    %50 = arith.cmpi eq, %48, %dim_7 : index
    cf.assert %50, "mismatched size for broadcast"
    %51 = tensor.empty(%48, %48) : tensor<2x4x?x?xf32>
    %52 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%reshape, %2 : tensor<2x4x?x?xf32>, tensor<2x1x?x?xbf16>) outs(%51 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %in_20: bf16, %out: f32):
      %99 = arith.extf %in_20 : bf16 to f32
      %100 = arith.addf %in, %99 : f32
      linalg.yield %100 : f32
    } -> tensor<2x4x?x?xf32>
    %53 = tensor.empty(%48) : tensor<2x4x?xi64>
    %54 = linalg.fill ins(%c0_i64 : i64) outs(%53 : tensor<2x4x?xi64>) -> tensor<2x4x?xi64>
    %55 = tensor.empty(%48) : tensor<2x4x?xf32>
    %56 = linalg.fill ins(%cst_0 : f32) outs(%55 : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
    %57:2 = linalg.generic {indexing_maps = [#map, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%52 : tensor<2x4x?x?xf32>) outs(%56, %54 : tensor<2x4x?xf32>, tensor<2x4x?xi64>) {
    ^bb0(%in: f32, %out: f32, %out_20: i64):
      %99 = linalg.index 3 : index
      %100 = arith.index_cast %99 : index to i64
      %101 = arith.maximumf %in, %out : f32
      %102 = arith.cmpf ogt, %in, %out : f32
      %103 = arith.select %102, %100, %out_20 : i64
      linalg.yield %101, %103 : f32, i64
    } -> (tensor<2x4x?xf32>, tensor<2x4x?xi64>)
    %expanded = tensor.expand_shape %57#0 [[0], [1], [2, 3]] output_shape [2, 4, %48, 1] : tensor<2x4x?xf32> into tensor<2x4x?x1xf32>
    %dim_13 = tensor.dim %expanded, %c2 : tensor<2x4x?x1xf32>
    %58 = arith.cmpi eq, %48, %dim_13 : index
    cf.assert %58, "mismatched size for broadcast"
    %59 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%52, %expanded : tensor<2x4x?x?xf32>, tensor<2x4x?x1xf32>) outs(%51 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %in_20: f32, %out: f32):
      %99 = arith.subf %in, %in_20 : f32
      linalg.yield %99 : f32
    } -> tensor<2x4x?x?xf32>
    %60 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%59 : tensor<2x4x?x?xf32>) outs(%51 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = math.exp %in : f32
      linalg.yield %99 : f32
    } -> tensor<2x4x?x?xf32>
    %61 = tensor.empty(%48) : tensor<2x4x?x1xf32>
    %62 = linalg.fill ins(%cst : f32) outs(%61 : tensor<2x4x?x1xf32>) -> tensor<2x4x?x1xf32>
    %63 = linalg.generic {indexing_maps = [#map, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%60 : tensor<2x4x?x?xf32>) outs(%62 : tensor<2x4x?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.addf %in, %out : f32
      linalg.yield %99 : f32
    } -> tensor<2x4x?x1xf32>
    %64 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%60, %63 : tensor<2x4x?x?xf32>, tensor<2x4x?x1xf32>) outs(%51 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %in_20: f32, %out: f32):
      %99 = arith.divf %in, %in_20 : f32
      linalg.yield %99 : f32
    } -> tensor<2x4x?x?xf32>
    %65 = tensor.empty(%48, %48) : tensor<2x4x?x?xi1>
    %66 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%52 : tensor<2x4x?x?xf32>) outs(%65 : tensor<2x4x?x?xi1>) {
    ^bb0(%in: f32, %out: i1):
      %99 = arith.extf %in : f32 to f64
      %100 = arith.cmpf oeq, %99, %cst_5 : f64
      linalg.yield %100 : i1
    } -> tensor<2x4x?x?xi1>
    %67 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%66 : tensor<2x4x?x?xi1>) outs(%65 : tensor<2x4x?x?xi1>) {
    ^bb0(%in: i1, %out: i1):
      %99 = arith.cmpi eq, %in, %false : i1
      linalg.yield %99 : i1
    } -> tensor<2x4x?x?xi1>
    %68 = tensor.empty(%48) : tensor<2x4x?x1xi1>
    %69 = linalg.fill ins(%false : i1) outs(%68 : tensor<2x4x?x1xi1>) -> tensor<2x4x?x1xi1>
    %70 = linalg.generic {indexing_maps = [#map, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%67 : tensor<2x4x?x?xi1>) outs(%69 : tensor<2x4x?x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %99 = arith.ori %in, %out : i1
      linalg.yield %99 : i1
    } -> tensor<2x4x?x1xi1>
    %71 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%70 : tensor<2x4x?x1xi1>) outs(%68 : tensor<2x4x?x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %99 = arith.cmpi eq, %in, %false : i1
      linalg.yield %99 : i1
    } -> tensor<2x4x?x1xi1>
    %72 = arith.cmpi sge, %47, %c0_i64 : i64
    cf.assert %72, "negative values not allowed in new dimensions"
    %73 = arith.index_cast %47 : i64 to index
    cf.assert %72, "negative values not allowed in new dimensions"
    %74 = tensor.empty(%73, %73) : tensor<2x4x?x?xf32>
    %75 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_1 : tensor<f32>) outs(%74 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x?x?xf32>
    %76 = arith.cmpi eq, %48, %73 : index
    cf.assert %76, "mismatched size for broadcast"
    %77 = arith.cmpi eq, %73, %48 : index
    cf.assert %77, "mismatched size for broadcast"
    %78 = tensor.empty(%48, %73) : tensor<2x4x?x?xf32>
    %79 = linalg.generic {indexing_maps = [#map4, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%71, %75, %64 : tensor<2x4x?x1xi1>, tensor<2x4x?x?xf32>, tensor<2x4x?x?xf32>) outs(%78 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: i1, %in_20: f32, %in_21: f32, %out: f32):
      %99 = arith.select %in, %in_20, %in_21 : f32
      linalg.yield %99 : f32
    } -> tensor<2x4x?x?xf32>
    cf.assert %17, "unimplemented: dynamic negative broadcast sizes"
    cf.assert %17, "unimplemented: dynamic negative broadcast sizes"
    %80 = tensor.empty(%dim, %dim) : tensor<2x4x?x?xf32>
    %81 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%80 : tensor<2x4x?x?xf32>) {
    ^bb0(%out: f32):
      %99 = linalg.index 0 : index
      %100 = linalg.index 1 : index
      %101 = linalg.index 2 : index
      %102 = linalg.index 3 : index
      %103 = arith.cmpi eq, %48, %c1 : index
      %104 = arith.select %103, %c0, %101 : index
      %105 = arith.cmpi eq, %73, %c1 : index
      %106 = arith.select %105, %c0, %102 : index
      %extracted = tensor.extract %79[%99, %100, %104, %106] : tensor<2x4x?x?xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x?xf32>
    cf.assert %41, "must have at most one inferred (negative) dimension"
    %82 = arith.muli %33, %0 : i64
    %83 = arith.divsi %82, %39 : i64
    %84 = arith.select %34, %83, %0 : i64
    %from_elements_14 = tensor.from_elements %c8_i64, %84, %84 : tensor<3xi64>
    %reshape_15 = tensor.reshape %81(%from_elements_14) : (tensor<2x4x?x?xf32>, tensor<3xi64>) -> tensor<8x?x?xf32>
    cf.assert %17, "unimplemented: dynamic negative broadcast sizes"
    %85 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%26 : tensor<2x4x?x32xf32>) {
    ^bb0(%out: f32):
      %99 = linalg.index 0 : index
      %100 = linalg.index 1 : index
      %101 = linalg.index 2 : index
      %102 = linalg.index 3 : index
      %103 = arith.cmpi eq, %dim, %c1 : index
      %104 = arith.select %103, %c0, %101 : index
      %extracted = tensor.extract %22[%99, %100, %104, %102] : tensor<2x4x?x32xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x32xf32>
    %collapsed_16 = tensor.collapse_shape %85 [[0, 1], [2], [3]] : tensor<2x4x?x32xf32> into tensor<8x?x32xf32>
    %86 = arith.index_cast %84 : i64 to index
    %dim_17 = tensor.dim %collapsed_16, %c1 : tensor<8x?x32xf32>
    %87 = arith.index_cast %dim_17 : index to i64
    %88 = arith.cmpi eq, %84, %87 : i64
    cf.assert %88, "mismatching contracting dimension"
    %89 = tensor.empty(%86) : tensor<8x?x32xf32>
    %90 = linalg.fill ins(%cst : f32) outs(%89 : tensor<8x?x32xf32>) -> tensor<8x?x32xf32>
    %91 = linalg.batch_matmul ins(%reshape_15, %collapsed_16 : tensor<8x?x?xf32>, tensor<8x?x32xf32>) outs(%90 : tensor<8x?x32xf32>) -> tensor<8x?x32xf32>
    %expanded_18 = tensor.expand_shape %91 [[0, 1], [2], [3]] output_shape [2, 4, %86, 32] : tensor<8x?x32xf32> into tensor<2x4x?x32xf32>
    %dim_19 = tensor.dim %expanded_18, %c2 : tensor<2x4x?x32xf32>
    %92 = arith.index_cast %dim_19 : index to i64
    %93 = arith.cmpi sge, %92, %c0_i64 : i64
    cf.assert %93, "negative values not allowed in new dimensions"
    %94 = tensor.empty(%dim_19) : tensor<2x4x?x32xbf16>
    %95 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_18 : tensor<2x4x?x32xf32>) outs(%94 : tensor<2x4x?x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %99 = arith.truncf %in : f32 to bf16
      linalg.yield %99 : bf16
    } -> tensor<2x4x?x32xbf16>
    %96 = arith.cmpi sge, %92, %c0_i64 : i64
    cf.assert %96, "unimplemented: dynamic negative broadcast sizes"
    %97 = tensor.empty(%dim_19) : tensor<2x4x?x32xbf16>
    %98 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%97 : tensor<2x4x?x32xbf16>) {
    ^bb0(%out: bf16):
      %99 = linalg.index 0 : index
      %100 = linalg.index 1 : index
      %101 = linalg.index 2 : index
      %102 = linalg.index 3 : index
      %103 = arith.cmpi eq, %dim_19, %c1 : index
      %104 = arith.select %103, %c0, %101 : index
      %extracted = tensor.extract %95[%99, %100, %104, %102] : tensor<2x4x?x32xbf16>
      linalg.yield %extracted : bf16
    } -> tensor<2x4x?x32xbf16>
    return %98 : tensor<2x4x?x32xbf16>
  }
}

