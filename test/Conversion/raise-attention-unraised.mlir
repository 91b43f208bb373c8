// A softmax of a product's result on its way to another product has a remark, whatever
// keeps the matcher from following it; keys and values may come out of anything.

// RUN: kvbuf-opt %s --kvbuf-raise-attention --mlir-print-local-scope --remark-format=emitRemark --remarks-filter=kvbuf-raise-attention -o %t.mlir 2> %t.log
// RUN: FileCheck %s < %t.mlir
// RUN: FileCheck %s --check-prefix=REMARK --implicit-check-not=remark: < %t.log

#ijd = affine_map<(b, i, j, d) -> (b, i, d)>
#jd = affine_map<(b, i, j, d) -> (b, j, d)>
#ij = affine_map<(b, i, j, d) -> (b, i, j)>
#id = affine_map<(b, i, j) -> (b, i, j)>
#b = affine_map<(b, i, j) -> (b, i)>

// Pages of keys and values, gathered by a table.
// REMARK:      remark: [Passed]
// CHECK-LABEL: func.func @gathered(
// CHECK:         %[[K:.*]] = linalg.generic
// CHECK:           tensor.extract
// CHECK:         kvbuffer.attention
func.func @gathered(%q: tensor<2x8x16xbf16>, %pages: tensor<20x4x16xbf16>, %table: tensor<2x3xi32>, %es: tensor<2x8x12xf32>, %eo: tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16> {
  %zero = arith.constant 0.0 : f32
  %zb = arith.constant 0.0 : bf16
  %ek = tensor.empty() : tensor<2x3x4x16xbf16>
  %g = linalg.generic {indexing_maps = [affine_map<(b, p, i, d) -> (b, p)>, affine_map<(b, p, i, d) -> (b, p, i, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%table : tensor<2x3xi32>) outs(%ek : tensor<2x3x4x16xbf16>) {
  ^bb0(%page: i32, %o: bf16):
    %p = arith.index_cast %page : i32 to index
    %i = linalg.index 2 : index
    %d = linalg.index 3 : index
    %x = tensor.extract %pages[%p, %i, %d] : tensor<20x4x16xbf16>
    linalg.yield %x : bf16
  } -> tensor<2x3x4x16xbf16>
  %k = tensor.collapse_shape %g [[0], [1, 2], [3]] : tensor<2x3x4x16xbf16> into tensor<2x12x16xbf16>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %s = linalg.contract indexing_maps = [#ijd, #jd, #ij] ins(%q, %k : tensor<2x8x16xbf16>, tensor<2x12x16xbf16>) outs(%fs : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x8x12xf32>) outs(%es : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %fo = linalg.fill ins(%zb : bf16) outs(%eo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  %o = linalg.contract indexing_maps = [#ij, #jd, #ijd] ins(%p, %k : tensor<2x8x12xf32>, tensor<2x12x16xbf16>) outs(%fo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  return %o : tensor<2x8x16xbf16>
}

// Weights that the matcher does not follow.
// CHECK-LABEL: func.func @reshaped(
// CHECK-NOT:     kvbuffer.attention
// CHECK:         return
func.func @reshaped(%q: tensor<2x?x16xbf16>, %k: tensor<2x?x16xbf16>, %shape: tensor<3xi64>, %es: tensor<2x?x?xf32>, %eo: tensor<2x?x16xbf16>) -> tensor<2x?x16xbf16> {
  %zero = arith.constant 0.0 : f32
  %zb = arith.constant 0.0 : bf16
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %s = linalg.contract indexing_maps = [#ijd, #jd, #ij] ins(%q, %k : tensor<2x?x16xbf16>, tensor<2x?x16xbf16>) outs(%fs : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x?x?xf32>) outs(%es : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %r = tensor.reshape %p(%shape) : (tensor<2x?x?xf32>, tensor<3xi64>) -> tensor<2x?x?xf32>
  %fo = linalg.fill ins(%zb : bf16) outs(%eo : tensor<2x?x16xbf16>) -> tensor<2x?x16xbf16>
  // REMARK: :[[@LINE+1]]:8: remark: [Missed]{{.*}}what weighs the values comes from a softmax, but elements are not followed through 'tensor.reshape'
  %o = linalg.contract indexing_maps = [#ij, #jd, #ijd] ins(%r, %k : tensor<2x?x?xf32>, tensor<2x?x16xbf16>) outs(%fo : tensor<2x?x16xbf16>) -> tensor<2x?x16xbf16>
  return %o : tensor<2x?x16xbf16>
}

// In a body, too: an element at an index that is computed.
func.func @extracted(%q: tensor<2x8x16xbf16>, %k: tensor<2x8x16xbf16>, %n: index, %es: tensor<2x8x8xf32>, %el: tensor<2x8xf32>, %eo: tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16> {
  %zero = arith.constant 0.0 : f32
  %zb = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %s = linalg.contract indexing_maps = [#ijd, #jd, #ij] ins(%q, %k : tensor<2x8x16xbf16>, tensor<2x8x16xbf16>) outs(%fs : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %e = math.exp %s : tensor<2x8x8xf32>
  %fl = linalg.fill ins(%zero : f32) outs(%el : tensor<2x8xf32>) -> tensor<2x8xf32>
  %l = linalg.reduce { arith.addf } ins(%e : tensor<2x8x8xf32>) outs(%fl : tensor<2x8xf32>) dimensions = [2]
  %w = linalg.generic {indexing_maps = [#b, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%l : tensor<2x8xf32>) outs(%es : tensor<2x8x8xf32>) {
  ^bb0(%sum: f32, %o: f32):
    %b = linalg.index 0 : index
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %one = arith.cmpi eq, %n, %c1 : index
    %at = arith.select %one, %c0, %b : index
    %x = tensor.extract %e[%at, %i, %j] : tensor<2x8x8xf32>
    %y = arith.divf %x, %sum : f32
    linalg.yield %y : f32
  } -> tensor<2x8x8xf32>
  %fo = linalg.fill ins(%zb : bf16) outs(%eo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  // REMARK: :[[@LINE+1]]:8: remark: [Missed]{{.*}}not followed through 'tensor.extract'
  %o = linalg.contract indexing_maps = [#ij, #jd, #ijd] ins(%w, %k : tensor<2x8x8xf32>, tensor<2x8x16xbf16>) outs(%fo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  return %o : tensor<2x8x16xbf16>
}

// Nothing is unknown, but the weights are something else.
func.func @smoothed(%q: tensor<2x8x16xbf16>, %k: tensor<2x8x16xbf16>, %es: tensor<2x8x8xf32>, %eo: tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16> {
  %zero = arith.constant 0.0 : f32
  %zb = arith.constant 0.0 : bf16
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %s = linalg.contract indexing_maps = [#ijd, #jd, #ij] ins(%q, %k : tensor<2x8x16xbf16>, tensor<2x8x16xbf16>) outs(%fs : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x8x8xf32>) outs(%es : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %w = arith.mulf %p, %p : tensor<2x8x8xf32>
  %fo = linalg.fill ins(%zb : bf16) outs(%eo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  // REMARK: :[[@LINE+1]]:8: remark: [Missed]{{.*}}what weighs the values comes from a softmax, but is no exponential divided by its sum
  %o = linalg.contract indexing_maps = [#ij, #jd, #ijd] ins(%w, %k : tensor<2x8x8xf32>, tensor<2x8x16xbf16>) outs(%fo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  return %o : tensor<2x8x16xbf16>
}

// Exponentials between products are not yet a softmax: x * sigmoid(x).
func.func @silu(%q: tensor<2x8x16xbf16>, %k: tensor<2x8x16xbf16>, %es: tensor<2x8x8xf32>, %eo: tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16> {
  %zero = arith.constant 0.0 : f32
  %zb = arith.constant 0.0 : bf16
  %one = arith.constant 1.0 : f32
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %s = linalg.contract indexing_maps = [#ijd, #jd, #ij] ins(%q, %k : tensor<2x8x16xbf16>, tensor<2x8x16xbf16>) outs(%fs : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<2x8x8xf32>) outs(%es : tensor<2x8x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %minus = arith.negf %x : f32
    %e = math.exp %minus : f32
    %sum = arith.addf %one, %e : f32
    %y = arith.divf %x, %sum : f32
    linalg.yield %y : f32
  } -> tensor<2x8x8xf32>
  %fo = linalg.fill ins(%zb : bf16) outs(%eo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  %o = linalg.contract indexing_maps = [#ij, #jd, #ijd] ins(%w, %k : tensor<2x8x8xf32>, tensor<2x8x16xbf16>) outs(%fo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  return %o : tensor<2x8x16xbf16>
}
