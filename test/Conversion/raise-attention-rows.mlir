// Numbers hide keys from rows that see others. Whether a row sees one is proven, or the
// caller says so; elsewhere the numbers stay scores.

// RUN: kvbuf-opt %s --kvbuf-raise-attention --mlir-print-local-scope | FileCheck %s
// RUN: kvbuf-opt %s --pass-pipeline='builtin.module(kvbuf-raise-attention{rows-see-keys})' --mlir-print-local-scope | FileCheck %s --check-prefix=SEE
// RUN: kvbuf-opt %s --kvbuf-raise-attention --remark-format=emitRemark --remarks-filter=kvbuf-raise-attention 2>&1 | FileCheck %s --check-prefix=REMARK

#id = affine_map<(b, i, j) -> (b, i, j)>
#qd = affine_map<(b, i, j, d) -> (b, i, d)>
#kd = affine_map<(b, i, j, d) -> (b, j, d)>
#sd = affine_map<(b, i, j, d) -> (b, i, j)>
#of = affine_map<(b, i, j) -> (b)>

// Key 0 is hidden from no row, whatever the sizes are.
// CHECK-LABEL: func.func @causal(
// CHECK:         kvbuffer.attention
// CHECK-NOT:     mask
// CHECK:         visible {
// CHECK:           arith.cmpi sle
// CHECK-NOT:       arith.select
// CHECK:           kvbuffer.yield %{{.*}} : i1
func.func @causal(%q: tensor<2x?x16xbf16>, %k: tensor<2x?x16xbf16>, %v: tensor<2x?x16xbf16>, %es: tensor<2x?x?xf32>, %eo: tensor<2x?x16xbf16>) -> tensor<2x?x16xbf16> {
  %zero = arith.constant 0.0 : f32
  %zb = arith.constant 0.0 : bf16
  %low = arith.constant -1.0e30 : f32
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %s = linalg.contract indexing_maps = [#qd, #kd, #sd] ins(%q, %k : tensor<2x?x16xbf16>, tensor<2x?x16xbf16>) outs(%fs : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<2x?x?xf32>) outs(%es : tensor<2x?x?xf32>) {
  ^bb0(%a: f32, %c: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %see = arith.cmpi sle, %j, %i : index
    %w = arith.select %see, %a, %low : f32
    linalg.yield %w : f32
  } -> tensor<2x?x?xf32>
  %p = linalg.softmax dimension(2) ins(%m : tensor<2x?x?xf32>) outs(%es : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %fo = linalg.fill ins(%zb : bf16) outs(%eo : tensor<2x?x16xbf16>) -> tensor<2x?x16xbf16>
  %o = linalg.contract indexing_maps = [#sd, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, d)>] ins(%p, %v : tensor<2x?x?xf32>, tensor<2x?x16xbf16>) outs(%fo : tensor<2x?x16xbf16>) -> tensor<2x?x16xbf16>
  return %o : tensor<2x?x16xbf16>
}

// A length may be 0, so that a causal mask beside it is none of the op's either.
// CHECK-LABEL: func.func @length(
// CHECK:         kvbuffer.attention
// CHECK-NOT:     mask
// CHECK:         score {
// CHECK-COUNT-2:   arith.select
// CHECK-NOT:     visible
// CHECK:         return
// SEE-LABEL:   func.func @length(
// SEE:           kvbuffer.attention
// SEE-SAME:        mask = #kvbuffer.mask<causal = true>
// SEE-NOT:       score
// SEE:           visible {
// SEE-NOT:         arith.select
// SEE:             kvbuffer.yield %{{.*}} : i1
// REMARK:      remark: [Passed]{{.*}}attention is kvbuffer.attention now; its window is a change of scores, as other masks or biases may leave a row no key: rows-see-keys says that they do not
// REMARK:      remark: [Passed]{{.*}}attention is kvbuffer.attention now"
func.func @length(%q: tensor<2x8x16xbf16>, %k: tensor<2x8x16xbf16>, %v: tensor<2x8x16xbf16>, %n: tensor<2xi32>, %es: tensor<2x8x8xf32>, %eo: tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16> {
  %zero = arith.constant 0.0 : f32
  %zb = arith.constant 0.0 : bf16
  %low = arith.constant -1.0e30 : f32
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %s = linalg.contract indexing_maps = [#qd, #kd, #sd] ins(%q, %k : tensor<2x8x16xbf16>, tensor<2x8x16xbf16>) outs(%fs : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %m = linalg.generic {indexing_maps = [#id, #of, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %n : tensor<2x8x8xf32>, tensor<2xi32>) outs(%es : tensor<2x8x8xf32>) {
  ^bb0(%a: f32, %l: i32, %c: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %jj = arith.index_cast %j : index to i32
    %short = arith.cmpi slt, %jj, %l : i32
    %see = arith.cmpi sle, %j, %i : index
    %x = arith.select %short, %a, %low : f32
    %w = arith.select %see, %x, %low : f32
    linalg.yield %w : f32
  } -> tensor<2x8x8xf32>
  %p = linalg.softmax dimension(2) ins(%m : tensor<2x8x8xf32>) outs(%es : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %fo = linalg.fill ins(%zb : bf16) outs(%eo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  %o = linalg.contract indexing_maps = [#sd, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, d)>] ins(%p, %v : tensor<2x8x8xf32>, tensor<2x8x16xbf16>) outs(%fo : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  return %o : tensor<2x8x16xbf16>
}
