// Elements of slices and concatenations: what is cut out of a tensor stays an operand,
// biases are read where they lie, and one score more than keys is a sink.

// RUN: kvbuf-opt %s --kvbuf-raise-attention --mlir-print-local-scope --remark-format=emitRemark --remarks-filter=kvbuf-raise-attention -o %t.mlir 2> %t.log
// RUN: FileCheck %s < %t.mlir
// RUN: FileCheck %s --check-prefix=REMARK < %t.log

#ijd = affine_map<(b, i, j, d) -> (b, i, d)>
#jd = affine_map<(b, i, j, d) -> (b, j, d)>
#ij = affine_map<(b, i, j, d) -> (b, i, j)>
#id = affine_map<(b, i, j) -> (b, i, j)>
#on_row = affine_map<(b, i, j) -> (i, j)>

// CHECK-LABEL: func.func @keys(
// CHECK:         %[[K:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0] [2, 12, 16]
// CHECK:         %[[K4:.*]] = tensor.expand_shape %[[K]]
// CHECK:         kvbuffer.attention {{.*}} k(%[[K4]]) {{.*}} tensor<2x8x1x16xbf16>, tensor<2x12x1x16xbf16>, tensor<2x12x1x16xbf16>
func.func @keys(%q: tensor<2x8x16xbf16>, %cache: tensor<2x64x16xbf16>, %es: tensor<2x8x12xf32>, %eo: tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16> {
  %zero = arith.constant 0.0 : f32
  %zb = arith.constant 0.0 : bf16
  %k = tensor.extract_slice %cache[0, 0, 0] [2, 12, 16] [1, 1, 1] : tensor<2x64x16xbf16> to tensor<2x12x16xbf16>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %s = linalg.contract indexing_maps = [#ijd, #jd, #ij] ins(%q, %k : tensor<2x8x16xbf16>, tensor<2x12x16xbf16>) outs(%fs : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x8x12xf32>) outs(%es : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %fo = linalg.fill ins(%zb : bf16) outs(%eo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  %o = linalg.contract indexing_maps = [#ij, #jd, #ijd] ins(%p, %k : tensor<2x8x12xf32>, tensor<2x12x16xbf16>) outs(%fo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  return %o : tensor<2x8x16xbf16>
}

// The bias of the first rows and keys of a larger one, and of others.
// CHECK-LABEL: func.func @bias(
// CHECK-SAME:    %{{.*}}: tensor<2x8x16xbf16>, %{{.*}}: tensor<2x12x16xbf16>, %[[BIAS:.*]]: tensor<64x64xf32>, %{{.*}}: tensor<2x8x12xf32>
// CHECK:         %[[LATER:.*]] = tensor.extract_slice %[[BIAS]][5, 7] [8, 12]
// CHECK:         kvbuffer.attention {{.*}} captures(%[[BIAS]], %[[LATER]] : tensor<64x64xf32>, tensor<8x12xf32>) score {
// CHECK-NEXT:    ^bb0(%{{.*}}: f32, %{{.*}}: index, %{{.*}}: index, %[[ROW:.*]]: index, %{{.*}}: index, %[[KEY:.*]]: index, %[[B0:.*]]: tensor<64x64xf32>, %[[B1:.*]]: tensor<8x12xf32>):
// CHECK:           tensor.extract %[[B0]][%[[ROW]], %[[KEY]]]
// CHECK:           tensor.extract %[[B1]][%[[ROW]], %[[KEY]]]
func.func @bias(%q: tensor<2x8x16xbf16>, %k: tensor<2x12x16xbf16>, %bias: tensor<64x64xf32>, %es: tensor<2x8x12xf32>, %eo: tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16> {
  %zero = arith.constant 0.0 : f32
  %zb = arith.constant 0.0 : bf16
  %first = tensor.extract_slice %bias[0, 0] [8, 12] [1, 1] : tensor<64x64xf32> to tensor<8x12xf32>
  %later = tensor.extract_slice %bias[5, 7] [8, 12] [1, 1] : tensor<64x64xf32> to tensor<8x12xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %s = linalg.contract indexing_maps = [#ijd, #jd, #ij] ins(%q, %k : tensor<2x8x16xbf16>, tensor<2x12x16xbf16>) outs(%fs : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %t = linalg.generic {indexing_maps = [#id, #on_row, #on_row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %first, %later : tensor<2x8x12xf32>, tensor<8x12xf32>, tensor<8x12xf32>) outs(%es : tensor<2x8x12xf32>) {
  ^bb0(%a: f32, %x: f32, %y: f32, %c: f32):
    %u = arith.addf %a, %x : f32
    %w = arith.addf %u, %y : f32
    linalg.yield %w : f32
  } -> tensor<2x8x12xf32>
  %p = linalg.softmax dimension(2) ins(%t : tensor<2x8x12xf32>) outs(%es : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %fo = linalg.fill ins(%zb : bf16) outs(%eo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  %o = linalg.contract indexing_maps = [#ij, #jd, #ijd] ins(%p, %k : tensor<2x8x12xf32>, tensor<2x12x16xbf16>) outs(%fo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  return %o : tensor<2x8x16xbf16>
}

// The sink stands first; each of the two heads has one.
// CHECK-LABEL: func.func @sink_first(
// CHECK-SAME:    %[[SINK:[a-z0-9]+]]: tensor<2xf32>
// CHECK-NOT:     tensor.concat
// CHECK:         kvbuffer.attention {{.*}} sink(%[[SINK]]) {{.*}} : tensor<1x8x2x16xbf16>, {{.*}}, sink tensor<2xf32>
func.func @sink_first(%q: tensor<2x8x16xbf16>, %k: tensor<2x12x16xbf16>, %sink: tensor<2xf32>, %es: tensor<2x8x12xf32>, %ec: tensor<2x8x13xf32>, %eo: tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16> {
  %zero = arith.constant 0.0 : f32
  %zb = arith.constant 0.0 : bf16
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %s = linalg.contract indexing_maps = [#ijd, #jd, #ij] ins(%q, %k : tensor<2x8x16xbf16>, tensor<2x12x16xbf16>) outs(%fs : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %e1 = tensor.empty() : tensor<2x8xf32>
  %b = linalg.broadcast ins(%sink : tensor<2xf32>) outs(%e1 : tensor<2x8xf32>) dimensions = [1]
  %one = tensor.expand_shape %b [[0], [1, 2]] output_shape [2, 8, 1] : tensor<2x8xf32> into tensor<2x8x1xf32>
  %all = tensor.concat dim(2) %one, %s : (tensor<2x8x1xf32>, tensor<2x8x12xf32>) -> tensor<2x8x13xf32>
  %p = linalg.softmax dimension(2) ins(%all : tensor<2x8x13xf32>) outs(%ec : tensor<2x8x13xf32>) -> tensor<2x8x13xf32>
  %w = tensor.extract_slice %p[0, 0, 1] [2, 8, 12] [1, 1, 1] : tensor<2x8x13xf32> to tensor<2x8x12xf32>
  %fo = linalg.fill ins(%zb : bf16) outs(%eo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  %o = linalg.contract indexing_maps = [#ij, #jd, #ijd] ins(%w, %k : tensor<2x8x12xf32>, tensor<2x12x16xbf16>) outs(%fo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  return %o : tensor<2x8x16xbf16>
}

// A score for each row is no sink, and neither are keys cut off at the wrong end.
// CHECK-LABEL: func.func @sink_by_row(
// CHECK-NOT:     kvbuffer.attention
// CHECK-LABEL: func.func @cut_at_the_wrong_end(
// CHECK-NOT:     kvbuffer.attention
// REMARK-DAG:  not raised: {{.*}}the sum has one more score than there are keys, which is no number of each head
func.func @sink_by_row(%q: tensor<2x8x16xbf16>, %k: tensor<2x12x16xbf16>, %one: tensor<2x8x1xf32>, %es: tensor<2x8x12xf32>, %ec: tensor<2x8x13xf32>, %eo: tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16> {
  %zero = arith.constant 0.0 : f32
  %zb = arith.constant 0.0 : bf16
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %s = linalg.contract indexing_maps = [#ijd, #jd, #ij] ins(%q, %k : tensor<2x8x16xbf16>, tensor<2x12x16xbf16>) outs(%fs : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %all = tensor.concat dim(2) %s, %one : (tensor<2x8x12xf32>, tensor<2x8x1xf32>) -> tensor<2x8x13xf32>
  %p = linalg.softmax dimension(2) ins(%all : tensor<2x8x13xf32>) outs(%ec : tensor<2x8x13xf32>) -> tensor<2x8x13xf32>
  %w = tensor.extract_slice %p[0, 0, 0] [2, 8, 12] [1, 1, 1] : tensor<2x8x13xf32> to tensor<2x8x12xf32>
  %fo = linalg.fill ins(%zb : bf16) outs(%eo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  %o = linalg.contract indexing_maps = [#ij, #jd, #ijd] ins(%w, %k : tensor<2x8x12xf32>, tensor<2x12x16xbf16>) outs(%fo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  return %o : tensor<2x8x16xbf16>
}

func.func @cut_at_the_wrong_end(%q: tensor<2x8x16xbf16>, %k: tensor<2x12x16xbf16>, %sink: tensor<2xf32>, %es: tensor<2x8x12xf32>, %ec: tensor<2x8x13xf32>, %eo: tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16> {
  %zero = arith.constant 0.0 : f32
  %zb = arith.constant 0.0 : bf16
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %s = linalg.contract indexing_maps = [#ijd, #jd, #ij] ins(%q, %k : tensor<2x8x16xbf16>, tensor<2x12x16xbf16>) outs(%fs : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %e1 = tensor.empty() : tensor<2x8xf32>
  %b = linalg.broadcast ins(%sink : tensor<2xf32>) outs(%e1 : tensor<2x8xf32>) dimensions = [1]
  %one = tensor.expand_shape %b [[0], [1, 2]] output_shape [2, 8, 1] : tensor<2x8xf32> into tensor<2x8x1xf32>
  %all = tensor.concat dim(2) %one, %s : (tensor<2x8x1xf32>, tensor<2x8x12xf32>) -> tensor<2x8x13xf32>
  %p = linalg.softmax dimension(2) ins(%all : tensor<2x8x13xf32>) outs(%ec : tensor<2x8x13xf32>) -> tensor<2x8x13xf32>
  %w = tensor.extract_slice %p[0, 0, 0] [2, 8, 12] [1, 1, 1] : tensor<2x8x13xf32> to tensor<2x8x12xf32>
  %fo = linalg.fill ins(%zb : bf16) outs(%eo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  // REMARK-DAG: :[[@LINE+1]]:8: remark: [Missed]{{.*}}not raised
  %o = linalg.contract indexing_maps = [#ij, #jd, #ijd] ins(%w, %k : tensor<2x8x12xf32>, tensor<2x12x16xbf16>) outs(%fo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  return %o : tensor<2x8x16xbf16>
}
