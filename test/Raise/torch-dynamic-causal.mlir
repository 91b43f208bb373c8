//   def dynamic_causal(q,k,v): return sdpa(q,k,v,is_causal=True)
// Made by torch 2.15.0: torch.export.export, run_decompositions; iree-base-compiler
// 3.13.0: FxImporter, and torch-mlir's passes to linalg on tensors.
// RUN: kvbuf-opt %s --kvbuf-raise-attention=sizes-agree | FileCheck %s
// CHECK-NOT: math.exp
// CHECK-NOT: linalg.batch_matmul
// CHECK: kvbuffer.attention {{.*}} visible {
// CHECK-NOT: linalg.batch_matmul

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0) -> (d0)>
#map4 = affine_map<(d0, d1) -> (0, d1)>
#map5 = affine_map<(d0, d1) -> (d0, 0)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map9 = affine_map<(d0, d1, d2, d3) -> ()>
module {
  func.func @main(%arg0: tensor<?x4x?x32xbf16>, %arg1: tensor<?x4x?x32xbf16>, %arg2: tensor<?x4x?x32xbf16>) -> tensor<?x4x?x32xbf16> {
    %c1_i64 = arith.constant 1 : i64
    %c0_i64 = arith.constant 0 : i64
    %c4_i64 = arith.constant 4 : i64
    %c32_i64 = arith.constant 32 : i64
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %false = arith.constant false
    %cst_1 = arith.constant dense<0xFF800000> : tensor<f32>
    %cst_2 = arith.constant dense<true> : tensor<i1>
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_4 = arith.constant 0xFFF0000000000000 : f64
    %cst_5 = arith.constant 0.42044820762685725 : f64
    %c128_i64 = arith.constant 128 : i64
    %dim = tensor.dim %arg2, %c0 : tensor<?x4x?x32xbf16>
    %0 = arith.index_cast %dim : index to i64
    %dim_6 = tensor.dim %arg2, %c2 : tensor<?x4x?x32xbf16>
    %1 = arith.index_cast %dim_6 : index to i64
    %dim_7 = tensor.dim %arg0, %c0 : tensor<?x4x?x32xbf16>
    %2 = arith.index_cast %dim_7 : index to i64
    %dim_8 = tensor.dim %arg0, %c2 : tensor<?x4x?x32xbf16>
    %3 = arith.index_cast %dim_8 : index to i64
    %4 = arith.cmpi sge, %2, %c0_i64 : i64
    cf.assert %4, "negative values not allowed in new dimensions"
    %5 = arith.cmpi sge, %3, %c0_i64 : i64
    cf.assert %5, "negative values not allowed in new dimensions"
    %6 = tensor.empty(%dim_7, %dim_8) : tensor<?x4x?x32xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<?x4x?x32xbf16>) outs(%6 : tensor<?x4x?x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %174 = arith.extf %in : bf16 to f32
      linalg.yield %174 : f32
    } -> tensor<?x4x?x32xf32>
    %8 = arith.cmpi sge, %2, %c0_i64 : i64
    cf.assert %8, "unimplemented: dynamic negative broadcast sizes"
    %9 = arith.cmpi sge, %3, %c0_i64 : i64
    cf.assert %9, "unimplemented: dynamic negative broadcast sizes"
    %10 = tensor.empty(%dim_7, %dim_8) : tensor<?x4x?x32xf32>
    %11 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%10 : tensor<?x4x?x32xf32>) {
    ^bb0(%out: f32):
      %174 = linalg.index 0 : index
      %175 = linalg.index 1 : index
      %176 = linalg.index 2 : index
      %177 = linalg.index 3 : index
      %178 = arith.cmpi eq, %dim_7, %c1 : index
      %179 = arith.select %178, %c0, %174 : index
      %180 = arith.cmpi eq, %dim_8, %c1 : index
      %181 = arith.select %180, %c0, %176 : index
      %extracted = tensor.extract %7[%179, %175, %181, %177] : tensor<?x4x?x32xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x4x?x32xf32>
    %dim_9 = tensor.dim %arg1, %c0 : tensor<?x4x?x32xbf16>
    %12 = arith.index_cast %dim_9 : index to i64
    %dim_10 = tensor.dim %arg1, %c2 : tensor<?x4x?x32xbf16>
    %13 = arith.index_cast %dim_10 : index to i64
    %14 = arith.cmpi sge, %12, %c0_i64 : i64
    cf.assert %14, "negative values not allowed in new dimensions"
    %15 = arith.cmpi sge, %13, %c0_i64 : i64
    cf.assert %15, "negative values not allowed in new dimensions"
    %16 = tensor.empty(%dim_9, %dim_10) : tensor<?x4x?x32xf32>
    %17 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<?x4x?x32xbf16>) outs(%16 : tensor<?x4x?x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %174 = arith.extf %in : bf16 to f32
      linalg.yield %174 : f32
    } -> tensor<?x4x?x32xf32>
    %18 = arith.cmpi sge, %12, %c0_i64 : i64
    cf.assert %18, "unimplemented: dynamic negative broadcast sizes"
    %19 = arith.cmpi sge, %13, %c0_i64 : i64
    cf.assert %19, "unimplemented: dynamic negative broadcast sizes"
    %20 = tensor.empty(%dim_9, %dim_10) : tensor<?x4x?x32xf32>
    %21 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%20 : tensor<?x4x?x32xf32>) {
    ^bb0(%out: f32):
      %174 = linalg.index 0 : index
      %175 = linalg.index 1 : index
      %176 = linalg.index 2 : index
      %177 = linalg.index 3 : index
      %178 = arith.cmpi eq, %dim_9, %c1 : index
      %179 = arith.select %178, %c0, %174 : index
      %180 = arith.cmpi eq, %dim_10, %c1 : index
      %181 = arith.select %180, %c0, %176 : index
      %extracted = tensor.extract %17[%179, %175, %181, %177] : tensor<?x4x?x32xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x4x?x32xf32>
    %22 = arith.cmpi sge, %0, %c0_i64 : i64
    cf.assert %22, "negative values not allowed in new dimensions"
    %23 = arith.cmpi sge, %1, %c0_i64 : i64
    cf.assert %23, "negative values not allowed in new dimensions"
    %24 = tensor.empty(%dim, %dim_6) : tensor<?x4x?x32xf32>
    %25 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<?x4x?x32xbf16>) outs(%24 : tensor<?x4x?x32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %174 = arith.extf %in : bf16 to f32
      linalg.yield %174 : f32
    } -> tensor<?x4x?x32xf32>
    %26 = arith.cmpi sge, %0, %c0_i64 : i64
    cf.assert %26, "unimplemented: dynamic negative broadcast sizes"
    %27 = arith.cmpi sge, %1, %c0_i64 : i64
    cf.assert %27, "unimplemented: dynamic negative broadcast sizes"
    %28 = tensor.empty(%dim, %dim_6) : tensor<?x4x?x32xf32>
    %29 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%28 : tensor<?x4x?x32xf32>) {
    ^bb0(%out: f32):
      %174 = linalg.index 0 : index
      %175 = linalg.index 1 : index
      %176 = linalg.index 2 : index
      %177 = linalg.index 3 : index
      %178 = arith.cmpi eq, %dim, %c1 : index
      %179 = arith.select %178, %c0, %174 : index
      %180 = arith.cmpi eq, %dim_6, %c1 : index
      %181 = arith.select %180, %c0, %176 : index
      %extracted = tensor.extract %25[%179, %175, %181, %177] : tensor<?x4x?x32xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x4x?x32xf32>
    %30 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<?x4x?x32xf32>) outs(%10 : tensor<?x4x?x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %174 = arith.truncf %cst_5 : f64 to f32
      %175 = arith.mulf %in, %174 : f32
      linalg.yield %175 : f32
    } -> tensor<?x4x?x32xf32>
    cf.assert %23, "negative values not allowed in new dimensions"
    cf.assert %23, "negative values not allowed in new dimensions"
    %31 = tensor.empty(%dim_6, %dim_6) : tensor<?x?xi1>
    %32 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel"]} ins(%cst_2 : tensor<i1>) outs(%31 : tensor<?x?xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<?x?xi1>
    %33 = tensor.empty(%dim_6) : tensor<?xi64>
    %34 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel"]} outs(%33 : tensor<?xi64>) {
    ^bb0(%out: i64):
      %174 = linalg.index 0 : index
      %175 = arith.index_cast %174 : index to i64
      linalg.yield %175 : i64
    } -> tensor<?xi64>
    %expanded = tensor.expand_shape %34 [[0, 1]] output_shape [1, %dim_6] : tensor<?xi64> into tensor<1x?xi64>
    %expanded_11 = tensor.expand_shape %34 [[0, 1]] output_shape [%dim_6, 1] : tensor<?xi64> into tensor<?x1xi64>
    %dim_12 = tensor.dim %expanded, %c1 : tensor<1x?xi64>
    %dim_13 = tensor.dim %expanded_11, %c0 : tensor<?x1xi64>
    %35 = tensor.empty(%dim_13, %dim_12) : tensor<?x?xi64>
    %36 = linalg.generic {indexing_maps = [#map4, #map5, #map2], iterator_types = ["parallel", "parallel"]} ins(%expanded, %expanded_11 : tensor<1x?xi64>, tensor<?x1xi64>) outs(%35 : tensor<?x?xi64>) {
    ^bb0(%in: i64, %in_26: i64, %out: i64):
      %174 = arith.subi %in, %in_26 : i64
      linalg.yield %174 : i64
    } -> tensor<?x?xi64>
    %37 = tensor.empty(%dim_13, %dim_12) : tensor<?x?xi1>
    %38 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%36 : tensor<?x?xi64>) outs(%37 : tensor<?x?xi1>) {
    ^bb0(%in: i64, %out: i1):
      %174 = arith.cmpi sle, %in, %c0_i64 : i64
      linalg.yield %174 : i1
    } -> tensor<?x?xi1>
    %39 = arith.cmpi eq, %dim_13, %dim_6 : index
    cf.assert %39, "mismatched size for broadcast"
    %40 = arith.cmpi eq, %dim_12, %dim_6 : index
    cf.assert %40, "mismatched size for broadcast"
    %41 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%38, %32 : tensor<?x?xi1>, tensor<?x?xi1>) outs(%37 : tensor<?x?xi1>) {
    ^bb0(%in: i1, %in_26: i1, %out: i1):
      %174 = arith.andi %in, %in_26 : i1
      linalg.yield %174 : i1
    } -> tensor<?x?xi1>
    %42 = tensor.empty(%dim_13, %dim_12) : tensor<?x?xf32>
    %43 = linalg.generic {indexing_maps = [#map2, #map1, #map1, #map2], iterator_types = ["parallel", "parallel"]} ins(%41, %cst_3, %cst_1 : tensor<?x?xi1>, tensor<f32>, tensor<f32>) outs(%42 : tensor<?x?xf32>) {
    ^bb0(%in: i1, %in_26: f32, %in_27: f32, %out: f32):
      %174 = arith.select %in, %in_26, %in_27 : f32
      linalg.yield %174 : f32
    } -> tensor<?x?xf32>
    %44 = tensor.empty(%dim_9, %dim_10) : tensor<?x4x32x?xf32>
    %transposed = linalg.transpose ins(%21 : tensor<?x4x?x32xf32>) outs(%44 : tensor<?x4x32x?xf32>) permutation = [0, 1, 3, 2] 
    %45 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<?x4x32x?xf32>) outs(%44 : tensor<?x4x32x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %174 = arith.truncf %cst_5 : f64 to f32
      %175 = arith.mulf %in, %174 : f32
      linalg.yield %175 : f32
    } -> tensor<?x4x32x?xf32>
    %46 = arith.muli %0, %c4_i64 : i64
    cf.assert %22, "unimplemented: dynamic negative broadcast sizes"
    cf.assert %23, "unimplemented: dynamic negative broadcast sizes"
    %47 = tensor.empty(%dim, %dim_6) : tensor<?x4x?x32xf32>
    %48 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%47 : tensor<?x4x?x32xf32>) {
    ^bb0(%out: f32):
      %174 = linalg.index 0 : index
      %175 = linalg.index 1 : index
      %176 = linalg.index 2 : index
      %177 = linalg.index 3 : index
      %178 = arith.cmpi eq, %dim_7, %c1 : index
      %179 = arith.select %178, %c0, %174 : index
      %180 = arith.cmpi eq, %dim_8, %c1 : index
      %181 = arith.select %180, %c0, %176 : index
      %extracted = tensor.extract %30[%179, %175, %181, %177] : tensor<?x4x?x32xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x4x?x32xf32>
    %49 = arith.cmpi slt, %46, %c0_i64 : i64
    %50 = arith.select %49, %c1_i64, %46 : i64
    %51 = arith.extui %49 : i1 to i64
    %52 = arith.muli %50, %1 : i64
    %53 = arith.addi %51, %c1_i64 : i64
    %54 = arith.cmpi slt, %1, %c0_i64 : i64
    %55 = arith.select %54, %50, %52 : i64
    %56 = arith.select %54, %53, %51 : i64
    %57 = arith.muli %55, %c32_i64 : i64
    %58 = arith.cmpi sle, %56, %c1_i64 : i64
    cf.assert %58, "must have at most one inferred (negative) dimension"
    %59 = arith.muli %46, %1 : i64
    %60 = arith.muli %59, %c32_i64 : i64
    %61 = arith.divsi %60, %57 : i64
    %62 = arith.select %49, %61, %46 : i64
    %63 = arith.select %54, %61, %1 : i64
    %from_elements = tensor.from_elements %62, %63, %c32_i64 : tensor<3xi64>
    %reshape = tensor.reshape %48(%from_elements) : (tensor<?x4x?x32xf32>, tensor<3xi64>) -> tensor<?x?x32xf32>
    cf.assert %22, "unimplemented: dynamic negative broadcast sizes"
    cf.assert %23, "unimplemented: dynamic negative broadcast sizes"
    %64 = tensor.empty(%dim, %dim_6) : tensor<?x4x32x?xf32>
    %65 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%64 : tensor<?x4x32x?xf32>) {
    ^bb0(%out: f32):
      %174 = linalg.index 0 : index
      %175 = linalg.index 1 : index
      %176 = linalg.index 2 : index
      %177 = linalg.index 3 : index
      %178 = arith.cmpi eq, %dim_9, %c1 : index
      %179 = arith.select %178, %c0, %174 : index
      %180 = arith.cmpi eq, %dim_10, %c1 : index
      %181 = arith.select %180, %c0, %177 : index
      %extracted = tensor.extract %45[%179, %175, %176, %181] : tensor<?x4x32x?xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x4x32x?xf32>
    %66 = arith.muli %50, %c32_i64 : i64
    %67 = arith.muli %66, %1 : i64
    %68 = arith.select %54, %66, %67 : i64
    cf.assert %58, "must have at most one inferred (negative) dimension"
    %69 = arith.muli %0, %c128_i64 : i64
    %70 = arith.muli %69, %1 : i64
    %71 = arith.divsi %70, %68 : i64
    %72 = arith.select %49, %71, %46 : i64
    %73 = arith.select %54, %71, %1 : i64
    %from_elements_14 = tensor.from_elements %72, %c32_i64, %73 : tensor<3xi64>
    %reshape_15 = tensor.reshape %65(%from_elements_14) : (tensor<?x4x32x?xf32>, tensor<3xi64>) -> tensor<?x32x?xf32>
    %74 = arith.index_cast %62 : i64 to index
    %75 = arith.index_cast %63 : i64 to index
    %76 = arith.index_cast %73 : i64 to index
    %77 = arith.cmpi eq, %62, %72 : i64
    cf.assert %77, "mismatching contracting dimension"
    %78 = tensor.empty(%74, %75, %76) : tensor<?x?x?xf32>
    %79 = linalg.fill ins(%cst : f32) outs(%78 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    %80 = linalg.batch_matmul ins(%reshape, %reshape_15 : tensor<?x?x32xf32>, tensor<?x32x?xf32>) outs(%79 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    %81 = arith.cmpi slt, %0, %c0_i64 : i64
    %82 = arith.select %81, %c1_i64, %0 : i64
    %83 = arith.extui %81 : i1 to i64
    %84 = arith.muli %82, %c4_i64 : i64
    %85 = arith.muli %84, %1 : i64
    %86 = arith.addi %83, %c1_i64 : i64
    %87 = arith.select %54, %84, %85 : i64
    %88 = arith.select %54, %86, %83 : i64
    %89 = arith.muli %87, %1 : i64
    %90 = arith.addi %88, %c1_i64 : i64
    %91 = arith.select %54, %84, %89 : i64
    %92 = arith.select %54, %90, %83 : i64
    %93 = arith.cmpi sle, %92, %c1_i64 : i64
    cf.assert %93, "must have at most one inferred (negative) dimension"
    %94 = arith.muli %62, %63 : i64
    %95 = arith.muli %94, %73 : i64
    %96 = arith.divsi %95, %91 : i64
    %97 = arith.select %81, %96, %0 : i64
    %98 = arith.select %54, %96, %1 : i64
    %from_elements_16 = tensor.from_elements %97, %c4_i64, %98, %98 : tensor<4xi64>
    %reshape_17 = tensor.reshape %80(%from_elements_16) : (tensor<?x?x?xf32>, tensor<4xi64>) -> tensor<?x4x?x?xf32>
    %99 = arith.index_cast %97 : i64 to index
    %100 = arith.index_cast %98 : i64 to index
    %101 = arith.cmpi eq, %100, %dim_13 : index
    cf.assert %101, "mismatched size for broadcast"
    %102 = arith.cmpi eq, %100, %dim_12 : index
    cf.assert %102, "mismatched size for broadcast"
    %103 = tensor.empty(%99, %100, %100) : tensor<?x4x?x?xf32>
    %104 = linalg.generic {indexing_maps = [#map, #map6, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%reshape_17, %43 : tensor<?x4x?x?xf32>, tensor<?x?xf32>) outs(%103 : tensor<?x4x?x?xf32>) {
    ^bb0(%in: f32, %in_26: f32, %out: f32):
      %174 = arith.addf %in, %in_26 : f32
      linalg.yield %174 : f32
    } -> tensor<?x4x?x?xf32>
    %105 = tensor.empty(%99, %100) : tensor<?x4x?xi64>
    %106 = linalg.fill ins(%c0_i64 : i64) outs(%105 : tensor<?x4x?xi64>) -> tensor<?x4x?xi64>
    %107 = tensor.empty(%99, %100) : tensor<?x4x?xf32>
    %108 = linalg.fill ins(%cst_0 : f32) outs(%107 : tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
    %109:2 = linalg.generic {indexing_maps = [#map, #map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%104 : tensor<?x4x?x?xf32>) outs(%108, %106 : tensor<?x4x?xf32>, tensor<?x4x?xi64>) {
    ^bb0(%in: f32, %out: f32, %out_26: i64):
      %174 = linalg.index 3 : index
      %175 = arith.index_cast %174 : index to i64
      %176 = arith.maximumf %in, %out : f32
      %177 = arith.cmpf ogt, %in, %out : f32
      %178 = arith.select %177, %175, %out_26 : i64
      linalg.yield %176, %178 : f32, i64
    } -> (tensor<?x4x?xf32>, tensor<?x4x?xi64>)
    %expanded_18 = tensor.expand_shape %109#0 [[0], [1], [2, 3]] output_shape [%99, 4, %100, 1] : tensor<?x4x?xf32> into tensor<?x4x?x1xf32>
    %dim_19 = tensor.dim %expanded_18, %c0 : tensor<?x4x?x1xf32>
    %110 = arith.cmpi eq, %99, %dim_19 : index
    cf.assert %110, "mismatched size for broadcast"
    %dim_20 = tensor.dim %expanded_18, %c2 : tensor<?x4x?x1xf32>
    %111 = arith.cmpi eq, %100, %dim_20 : index
    cf.assert %111, "mismatched size for broadcast"
    %112 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%104, %expanded_18 : tensor<?x4x?x?xf32>, tensor<?x4x?x1xf32>) outs(%103 : tensor<?x4x?x?xf32>) {
    ^bb0(%in: f32, %in_26: f32, %out: f32):
      %174 = arith.subf %in, %in_26 : f32
      linalg.yield %174 : f32
    } -> tensor<?x4x?x?xf32>
    %113 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%112 : tensor<?x4x?x?xf32>) outs(%103 : tensor<?x4x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %174 = math.exp %in : f32
      linalg.yield %174 : f32
    } -> tensor<?x4x?x?xf32>
    %114 = tensor.empty(%99, %100) : tensor<?x4x?x1xf32>
    %115 = linalg.fill ins(%cst : f32) outs(%114 : tensor<?x4x?x1xf32>) -> tensor<?x4x?x1xf32>
    %116 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%113 : tensor<?x4x?x?xf32>) outs(%115 : tensor<?x4x?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %174 = arith.addf %in, %out : f32
      linalg.yield %174 : f32
    } -> tensor<?x4x?x1xf32>
    %117 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%113, %116 : tensor<?x4x?x?xf32>, tensor<?x4x?x1xf32>) outs(%103 : tensor<?x4x?x?xf32>) {
    ^bb0(%in: f32, %in_26: f32, %out: f32):
      %174 = arith.divf %in, %in_26 : f32
      linalg.yield %174 : f32
    } -> tensor<?x4x?x?xf32>
    %118 = tensor.empty(%99, %100, %100) : tensor<?x4x?x?xi1>
    %119 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%104 : tensor<?x4x?x?xf32>) outs(%118 : tensor<?x4x?x?xi1>) {
    ^bb0(%in: f32, %out: i1):
      %174 = arith.extf %in : f32 to f64
      %175 = arith.cmpf oeq, %174, %cst_4 : f64
      linalg.yield %175 : i1
    } -> tensor<?x4x?x?xi1>
    %120 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%119 : tensor<?x4x?x?xi1>) outs(%118 : tensor<?x4x?x?xi1>) {
    ^bb0(%in: i1, %out: i1):
      %174 = arith.cmpi eq, %in, %false : i1
      linalg.yield %174 : i1
    } -> tensor<?x4x?x?xi1>
    %121 = tensor.empty(%99, %100) : tensor<?x4x?x1xi1>
    %122 = linalg.fill ins(%false : i1) outs(%121 : tensor<?x4x?x1xi1>) -> tensor<?x4x?x1xi1>
    %123 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%120 : tensor<?x4x?x?xi1>) outs(%122 : tensor<?x4x?x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %174 = arith.ori %in, %out : i1
      linalg.yield %174 : i1
    } -> tensor<?x4x?x1xi1>
    %124 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%123 : tensor<?x4x?x1xi1>) outs(%121 : tensor<?x4x?x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %174 = arith.cmpi eq, %in, %false : i1
      linalg.yield %174 : i1
    } -> tensor<?x4x?x1xi1>
    %125 = arith.cmpi sge, %97, %c0_i64 : i64
    cf.assert %125, "negative values not allowed in new dimensions"
    %126 = arith.index_cast %97 : i64 to index
    %127 = arith.cmpi sge, %98, %c0_i64 : i64
    cf.assert %127, "negative values not allowed in new dimensions"
    %128 = arith.index_cast %98 : i64 to index
    cf.assert %127, "negative values not allowed in new dimensions"
    %129 = tensor.empty(%126, %128, %128) : tensor<?x4x?x?xf32>
    %130 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_3 : tensor<f32>) outs(%129 : tensor<?x4x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<?x4x?x?xf32>
    %131 = arith.cmpi eq, %99, %126 : index
    cf.assert %131, "mismatched size for broadcast"
    %132 = arith.cmpi eq, %100, %128 : index
    cf.assert %132, "mismatched size for broadcast"
    %133 = arith.cmpi eq, %128, %100 : index
    cf.assert %133, "mismatched size for broadcast"
    %134 = tensor.empty(%99, %100, %128) : tensor<?x4x?x?xf32>
    %135 = linalg.generic {indexing_maps = [#map8, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%124, %130, %117 : tensor<?x4x?x1xi1>, tensor<?x4x?x?xf32>, tensor<?x4x?x?xf32>) outs(%134 : tensor<?x4x?x?xf32>) {
    ^bb0(%in: i1, %in_26: f32, %in_27: f32, %out: f32):
      %174 = arith.select %in, %in_26, %in_27 : f32
      linalg.yield %174 : f32
    } -> tensor<?x4x?x?xf32>
    cf.assert %22, "unimplemented: dynamic negative broadcast sizes"
    cf.assert %23, "unimplemented: dynamic negative broadcast sizes"
    cf.assert %23, "unimplemented: dynamic negative broadcast sizes"
    %136 = tensor.empty(%dim, %dim_6, %dim_6) : tensor<?x4x?x?xf32>
    %137 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%136 : tensor<?x4x?x?xf32>) {
    ^bb0(%out: f32):
      %174 = linalg.index 0 : index
      %175 = linalg.index 1 : index
      %176 = linalg.index 2 : index
      %177 = linalg.index 3 : index
      %178 = arith.cmpi eq, %99, %c1 : index
      %179 = arith.select %178, %c0, %174 : index
      %180 = arith.cmpi eq, %100, %c1 : index
      %181 = arith.select %180, %c0, %176 : index
      %182 = arith.cmpi eq, %128, %c1 : index
      %183 = arith.select %182, %c0, %177 : index
      %extracted = tensor.extract %135[%179, %175, %181, %183] : tensor<?x4x?x?xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x4x?x?xf32>
    %138 = arith.muli %55, %1 : i64
    %139 = arith.addi %56, %c1_i64 : i64
    %140 = arith.select %54, %50, %138 : i64
    %141 = arith.select %54, %139, %51 : i64
    %142 = arith.cmpi sle, %141, %c1_i64 : i64
    cf.assert %142, "must have at most one inferred (negative) dimension"
    %143 = arith.muli %59, %1 : i64
    %144 = arith.divsi %143, %140 : i64
    %145 = arith.select %49, %144, %46 : i64
    %146 = arith.select %54, %144, %1 : i64
    %from_elements_21 = tensor.from_elements %145, %146, %146 : tensor<3xi64>
    %reshape_22 = tensor.reshape %137(%from_elements_21) : (tensor<?x4x?x?xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
    cf.assert %22, "unimplemented: dynamic negative broadcast sizes"
    cf.assert %23, "unimplemented: dynamic negative broadcast sizes"
    %147 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%47 : tensor<?x4x?x32xf32>) {
    ^bb0(%out: f32):
      %174 = linalg.index 0 : index
      %175 = linalg.index 1 : index
      %176 = linalg.index 2 : index
      %177 = linalg.index 3 : index
      %178 = arith.cmpi eq, %dim, %c1 : index
      %179 = arith.select %178, %c0, %174 : index
      %180 = arith.cmpi eq, %dim_6, %c1 : index
      %181 = arith.select %180, %c0, %176 : index
      %extracted = tensor.extract %29[%179, %175, %181, %177] : tensor<?x4x?x32xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x4x?x32xf32>
    cf.assert %58, "must have at most one inferred (negative) dimension"
    %reshape_23 = tensor.reshape %147(%from_elements) : (tensor<?x4x?x32xf32>, tensor<3xi64>) -> tensor<?x?x32xf32>
    %148 = arith.index_cast %145 : i64 to index
    %149 = arith.index_cast %146 : i64 to index
    %150 = arith.cmpi eq, %145, %62 : i64
    cf.assert %150, "mismatching contracting dimension"
    %151 = arith.cmpi eq, %146, %63 : i64
    cf.assert %151, "mismatching contracting dimension"
    %152 = tensor.empty(%148, %149) : tensor<?x?x32xf32>
    %153 = linalg.fill ins(%cst : f32) outs(%152 : tensor<?x?x32xf32>) -> tensor<?x?x32xf32>
    %154 = linalg.batch_matmul ins(%reshape_22, %reshape_23 : tensor<?x?x?xf32>, tensor<?x?x32xf32>) outs(%153 : tensor<?x?x32xf32>) -> tensor<?x?x32xf32>
    %155 = arith.muli %87, %c32_i64 : i64
    %156 = arith.cmpi sle, %88, %c1_i64 : i64
    cf.assert %156, "must have at most one inferred (negative) dimension"
    %157 = arith.muli %145, %146 : i64
    %158 = arith.muli %157, %c32_i64 : i64
    %159 = arith.divsi %158, %155 : i64
    %160 = arith.select %81, %159, %0 : i64
    %161 = arith.select %54, %159, %1 : i64
    %from_elements_24 = tensor.from_elements %160, %c4_i64, %161, %c32_i64 : tensor<4xi64>
    %reshape_25 = tensor.reshape %154(%from_elements_24) : (tensor<?x?x32xf32>, tensor<4xi64>) -> tensor<?x4x?x32xf32>
    %162 = arith.cmpi sge, %160, %c0_i64 : i64
    cf.assert %162, "negative values not allowed in new dimensions"
    %163 = arith.cmpi sge, %161, %c0_i64 : i64
    cf.assert %163, "negative values not allowed in new dimensions"
    %164 = arith.index_cast %160 : i64 to index
    %165 = arith.index_cast %161 : i64 to index
    %166 = tensor.empty(%164, %165) : tensor<?x4x?x32xbf16>
    %167 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%reshape_25 : tensor<?x4x?x32xf32>) outs(%166 : tensor<?x4x?x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %174 = arith.truncf %in : f32 to bf16
      linalg.yield %174 : bf16
    } -> tensor<?x4x?x32xbf16>
    %168 = arith.index_cast %160 : i64 to index
    %169 = arith.cmpi sge, %160, %c0_i64 : i64
    cf.assert %169, "unimplemented: dynamic negative broadcast sizes"
    %170 = arith.index_cast %161 : i64 to index
    %171 = arith.cmpi sge, %161, %c0_i64 : i64
    cf.assert %171, "unimplemented: dynamic negative broadcast sizes"
    %172 = tensor.empty(%168, %170) : tensor<?x4x?x32xbf16>
    %173 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%172 : tensor<?x4x?x32xbf16>) {
    ^bb0(%out: bf16):
      %174 = linalg.index 0 : index
      %175 = linalg.index 1 : index
      %176 = linalg.index 2 : index
      %177 = linalg.index 3 : index
      %178 = arith.cmpi eq, %164, %c1 : index
      %179 = arith.select %178, %c0, %174 : index
      %180 = arith.cmpi eq, %165, %c1 : index
      %181 = arith.select %180, %c0, %176 : index
      %extracted = tensor.extract %167[%179, %175, %181, %177] : tensor<?x4x?x32xbf16>
      linalg.yield %extracted : bf16
    } -> tensor<?x4x?x32xbf16>
    return %173 : tensor<?x4x?x32xbf16>
  }
}

