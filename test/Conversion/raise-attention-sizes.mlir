// Sizes that are not known: reshapes to sizes that are computed, and broadcasts by
// tensor.extract, as torch-mlir makes them.

// RUN: kvbuf-opt %s --kvbuf-raise-attention --canonicalize --mlir-print-local-scope | FileCheck %s --check-prefixes=CHECK,KNOWN
// RUN: kvbuf-opt %s --kvbuf-raise-attention=sizes-agree --mlir-print-local-scope | FileCheck %s --check-prefixes=CHECK,AGREE

// What is read at the query's own index is as long as the queries: no broadcast. The
// reshape takes as many rows as there are. Nothing is left of the graph.
// CHECK-LABEL: func.func @same(
// CHECK-NOT:     linalg
// CHECK:         kvbuffer.attention
// CHECK-NOT:     linalg
func.func @same(%q: tensor<2x4x?x32xbf16>, %k: tensor<2x4x12x32xbf16>) -> tensor<2x4x?x32xbf16> {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z64 = arith.constant 0 : i64
  %i2 = arith.constant 2 : i64
  %i4 = arith.constant 4 : i64
  %i12 = arith.constant 12 : i64
  %n = tensor.dim %q, %c2 : tensor<2x4x?x32xbf16>
  %e = tensor.empty(%n) : tensor<2x4x?x32xbf16>
  %b = linalg.generic {indexing_maps = [affine_map<(b, h, i, d) -> (b, h, i, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e : tensor<2x4x?x32xbf16>) {
  ^bb0(%out: bf16):
    %ib = linalg.index 0 : index
    %ih = linalg.index 1 : index
    %ii = linalg.index 2 : index
    %id = linalg.index 3 : index
    %one = arith.cmpi eq, %n, %c1 : index
    %at = arith.select %one, %c0, %ii : index
    %x = tensor.extract %q[%ib, %ih, %at, %id] : tensor<2x4x?x32xbf16>
    linalg.yield %x : bf16
  } -> tensor<2x4x?x32xbf16>
  %qc = tensor.collapse_shape %b [[0, 1], [2], [3]] : tensor<2x4x?x32xbf16> into tensor<8x?x32xbf16>
  %kc = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<2x4x12x32xbf16> into tensor<8x12x32xbf16>
  %rows = tensor.dim %qc, %c1 : tensor<8x?x32xbf16>
  %es = tensor.empty(%rows) : tensor<8x?x12xbf16>
  %fs = linalg.fill ins(%zero : bf16) outs(%es : tensor<8x?x12xbf16>) -> tensor<8x?x12xbf16>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, j)>]
      ins(%qc, %kc : tensor<8x?x32xbf16>, tensor<8x12x32xbf16>) outs(%fs : tensor<8x?x12xbf16>) -> tensor<8x?x12xbf16>
  %n64 = arith.index_cast %n : index to i64
  %less = arith.cmpi slt, %n64, %z64 : i64
  %size = arith.select %less, %i12, %n64 : i64
  %to = tensor.from_elements %i2, %i4, %size, %i12 : tensor<4xi64>
  %r = tensor.reshape %s(%to) : (tensor<8x?x12xbf16>, tensor<4xi64>) -> tensor<2x4x?x12xbf16>
  %ep = tensor.empty(%n) : tensor<2x4x?x12xbf16>
  %p = linalg.softmax dimension(3) ins(%r : tensor<2x4x?x12xbf16>) outs(%ep : tensor<2x4x?x12xbf16>) -> tensor<2x4x?x12xbf16>
  %i8 = arith.constant 8 : i64
  %back = tensor.from_elements %i8, %n64, %i12 : tensor<3xi64>
  %pc = tensor.reshape %p(%back) : (tensor<2x4x?x12xbf16>, tensor<3xi64>) -> tensor<8x?x12xbf16>
  %eo = tensor.empty(%rows) : tensor<8x?x32xbf16>
  %fo = linalg.fill ins(%zero : bf16) outs(%eo : tensor<8x?x32xbf16>) -> tensor<8x?x32xbf16>
  %o = linalg.batch_matmul ins(%pc, %kc : tensor<8x?x12xbf16>, tensor<8x12x32xbf16>) outs(%fo : tensor<8x?x32xbf16>) -> tensor<8x?x32xbf16>
  %m = tensor.dim %o, %c1 : tensor<8x?x32xbf16>
  %ox = tensor.expand_shape %o [[0, 1], [2], [3]] output_shape [2, 4, %m, 32] : tensor<8x?x32xbf16> into tensor<2x4x?x32xbf16>
  return %ox : tensor<2x4x?x32xbf16>
}

// Queries of one row may be broadcast to others: that the sizes agree has to be said.
// CHECK-LABEL: func.func @other(
// KNOWN-NOT:     kvbuffer.attention
// AGREE:         kvbuffer.attention
func.func @other(%q: tensor<3x?x32xbf16>, %n: index, %k: tensor<3x12x32xbf16>) -> tensor<3x?x32xbf16> {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %own = tensor.dim %q, %c1 : tensor<3x?x32xbf16>
  %wide = tensor.empty(%own) : tensor<3x?x32xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(b, i, d) -> (b, i, d)>, affine_map<(b, i, d) -> (b, i, d)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q : tensor<3x?x32xbf16>) outs(%wide : tensor<3x?x32xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %x = arith.extf %in : bf16 to f32
    linalg.yield %x : f32
  } -> tensor<3x?x32xf32>
  %e = tensor.empty(%n) : tensor<3x?x32xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(b, i, d) -> (b, i, d)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<3x?x32xf32>) {
  ^bb0(%out: f32):
    %ib = linalg.index 0 : index
    %ii = linalg.index 1 : index
    %id = linalg.index 2 : index
    %one = arith.cmpi eq, %own, %c1 : index
    %at = arith.select %one, %c0, %ii : index
    %x = tensor.extract %w[%ib, %at, %id] : tensor<3x?x32xf32>
    linalg.yield %x : f32
  } -> tensor<3x?x32xf32>
  %f32 = arith.constant 0.0 : f32
  %es = tensor.empty(%n) : tensor<3x?x12xf32>
  %fs = linalg.fill ins(%f32 : f32) outs(%es : tensor<3x?x12xf32>) -> tensor<3x?x12xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, j)>]
      ins(%b, %k : tensor<3x?x32xf32>, tensor<3x12x32xbf16>) outs(%fs : tensor<3x?x12xf32>) -> tensor<3x?x12xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<3x?x12xf32>) outs(%es : tensor<3x?x12xf32>) -> tensor<3x?x12xf32>
  %eo = tensor.empty(%n) : tensor<3x?x32xbf16>
  %fo = linalg.fill ins(%zero : bf16) outs(%eo : tensor<3x?x32xbf16>) -> tensor<3x?x32xbf16>
  %o = linalg.contract indexing_maps = [affine_map<(b, i, j, d) -> (b, i, j)>, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, d)>]
      ins(%p, %k : tensor<3x?x12xf32>, tensor<3x12x32xbf16>) outs(%fo : tensor<3x?x32xbf16>) -> tensor<3x?x32xbf16>
  return %o : tensor<3x?x32xbf16>
}
