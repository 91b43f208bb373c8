// Attention in forms that exporters do not write (test/Raise has theirs).

// RUN: kvbuf-opt %s --kvbuf-raise-attention --mlir-print-local-scope | FileCheck %s

// Named ops: a softmax, a transposed product. What a scale multiplies is Q, in its
// own type; there is one head.
// CHECK-LABEL: func.func @named(
// CHECK-NOT:     linalg.
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {scale = 1.250000e-01 : f32} : tensor<3x8x1x64xf16>, tensor<3x12x1x64xf16>, tensor<3x12x1x64xf16>
func.func @named(%q: tensor<3x8x64xf16>, %k: tensor<3x12x64xf16>, %v: tensor<3x12x64xf16>) -> tensor<3x8x64xf16> {
  %zero = arith.constant 0.0 : f16
  %scale = arith.constant dense<0.125> : tensor<3x8x64xf16>
  %eq = tensor.empty() : tensor<3x8x64xf16>
  %qs = linalg.mul ins(%q, %scale : tensor<3x8x64xf16>, tensor<3x8x64xf16>) outs(%eq : tensor<3x8x64xf16>) -> tensor<3x8x64xf16>
  %es = tensor.empty() : tensor<3x8x12xf16>
  %fs = linalg.fill ins(%zero : f16) outs(%es : tensor<3x8x12xf16>) -> tensor<3x8x12xf16>
  %s = linalg.batch_matmul
      indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, j)>]
      ins(%qs, %k : tensor<3x8x64xf16>, tensor<3x12x64xf16>) outs(%fs : tensor<3x8x12xf16>) -> tensor<3x8x12xf16>
  %p = linalg.softmax dimension(2) ins(%s : tensor<3x8x12xf16>) outs(%es : tensor<3x8x12xf16>) -> tensor<3x8x12xf16>
  %fo = linalg.fill ins(%zero : f16) outs(%eq : tensor<3x8x64xf16>) -> tensor<3x8x64xf16>
  %o = linalg.batch_matmul ins(%p, %v : tensor<3x8x12xf16>, tensor<3x12x64xf16>) outs(%fo : tensor<3x8x64xf16>) -> tensor<3x8x64xf16>
  return %o : tensor<3x8x64xf16>
}

// V's own head size is O's.
// CHECK-LABEL: func.func @head_sizes(
// CHECK:         %[[O:.*]] = tensor.empty() : tensor<3x8x1x128xf16>
// CHECK:         kvbuffer.attention {{.*}} out(%[[O]]
// CHECK-SAME:      tensor<3x8x1x192xf16>, tensor<3x12x1x192xf16>, tensor<3x12x1x128xf16>, tensor<3x8x1x128xf16> -> tensor<3x8x1x128xf16>
func.func @head_sizes(%q: tensor<3x8x192xf16>, %k: tensor<3x12x192xf16>, %v: tensor<3x12x128xf16>) -> tensor<3x8x128xf16> {
  %zero = arith.constant 0.0 : f16
  %es = tensor.empty() : tensor<3x8x12xf16>
  %fs = linalg.fill ins(%zero : f16) outs(%es : tensor<3x8x12xf16>) -> tensor<3x8x12xf16>
  %s = linalg.batch_matmul
      indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, j)>]
      ins(%q, %k : tensor<3x8x192xf16>, tensor<3x12x192xf16>) outs(%fs : tensor<3x8x12xf16>) -> tensor<3x8x12xf16>
  %p = linalg.softmax dimension(2) ins(%s : tensor<3x8x12xf16>) outs(%es : tensor<3x8x12xf16>) -> tensor<3x8x12xf16>
  %eo = tensor.empty() : tensor<3x8x128xf16>
  %fo = linalg.fill ins(%zero : f16) outs(%eo : tensor<3x8x128xf16>) -> tensor<3x8x128xf16>
  %o = linalg.batch_matmul ins(%p, %v : tensor<3x8x12xf16>, tensor<3x12x128xf16>) outs(%fo : tensor<3x8x128xf16>) -> tensor<3x8x128xf16>
  return %o : tensor<3x8x128xf16>
}

// No batch, no heads; the softmax along the other dimension is none.
// CHECK-LABEL: func.func @matmul(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {scale = 1.000000e+00 : f32} : tensor<1x8x1x64xf16>
// CHECK-LABEL: func.func @wrong_axis(
// CHECK-NOT:     kvbuffer.attention
// CHECK:         return
func.func @matmul(%q: tensor<8x64xf16>, %kt: tensor<64x8xf16>, %v: tensor<8x64xf16>, %es: tensor<8x8xf16>, %eo: tensor<8x64xf16>) -> tensor<8x64xf16> {
  %zero = arith.constant 0.0 : f16
  %fs = linalg.fill ins(%zero : f16) outs(%es : tensor<8x8xf16>) -> tensor<8x8xf16>
  %s = linalg.matmul ins(%q, %kt : tensor<8x64xf16>, tensor<64x8xf16>) outs(%fs : tensor<8x8xf16>) -> tensor<8x8xf16>
  %p = linalg.softmax dimension(1) ins(%s : tensor<8x8xf16>) outs(%es : tensor<8x8xf16>) -> tensor<8x8xf16>
  %fo = linalg.fill ins(%zero : f16) outs(%eo : tensor<8x64xf16>) -> tensor<8x64xf16>
  %o = linalg.matmul ins(%p, %v : tensor<8x8xf16>, tensor<8x64xf16>) outs(%fo : tensor<8x64xf16>) -> tensor<8x64xf16>
  return %o : tensor<8x64xf16>
}
func.func @wrong_axis(%q: tensor<8x64xf16>, %kt: tensor<64x8xf16>, %v: tensor<8x64xf16>, %es: tensor<8x8xf16>, %eo: tensor<8x64xf16>) -> tensor<8x64xf16> {
  %zero = arith.constant 0.0 : f16
  %fs = linalg.fill ins(%zero : f16) outs(%es : tensor<8x8xf16>) -> tensor<8x8xf16>
  %s = linalg.matmul ins(%q, %kt : tensor<8x64xf16>, tensor<64x8xf16>) outs(%fs : tensor<8x8xf16>) -> tensor<8x8xf16>
  %p = linalg.softmax dimension(0) ins(%s : tensor<8x8xf16>) outs(%es : tensor<8x8xf16>) -> tensor<8x8xf16>
  %fo = linalg.fill ins(%zero : f16) outs(%eo : tensor<8x64xf16>) -> tensor<8x64xf16>
  %o = linalg.matmul ins(%p, %v : tensor<8x8xf16>, tensor<8x64xf16>) outs(%fo : tensor<8x64xf16>) -> tensor<8x64xf16>
  return %o : tensor<8x64xf16>
}

// Sizes that are not known; divided after the second product; layouts differ. Heads
// come last in Q and K's tokens: none is transposed.
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME:      %[[Q:.*]]: tensor<?x?x4x64xbf16>, %[[K:.*]]: tensor<?x?x4x64xbf16>, %[[V:.*]]: tensor<?x4x?x64xbf16>
// CHECK:         %[[VT:.*]] = linalg.transpose ins(%[[V]] {{.*}} permutation = [0, 2, 1, 3]
// CHECK:         kvbuffer.attention q(%[[Q]]) k(%[[K]]) v(%[[VT]])
#bihd = affine_map<(b, h, i, j, d) -> (b, i, h, d)>
#bjhd = affine_map<(b, h, i, j, d) -> (b, j, h, d)>
#bhij = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#bhi = affine_map<(b, h, i, j) -> (b, h, i)>
#id4 = affine_map<(b, h, i, j) -> (b, h, i, j)>
#pv_p = affine_map<(b, h, i, d, j) -> (b, h, i, j)>
#pv_v = affine_map<(b, h, i, d, j) -> (b, h, j, d)>
#pv_o = affine_map<(b, h, i, d, j) -> (b, i, h, d)>
#o_l = affine_map<(b, i, h, d) -> (b, h, i)>
func.func @dynamic(%q: tensor<?x?x4x64xbf16>, %k: tensor<?x?x4x64xbf16>, %v: tensor<?x4x?x64xbf16>) -> tensor<?x?x4x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -3.40282347E+38 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x4x64xbf16>
  %n = tensor.dim %q, %c1 : tensor<?x?x4x64xbf16>
  %m = tensor.dim %k, %c1 : tensor<?x?x4x64xbf16>
  %es = tensor.empty(%b, %n, %m) : tensor<?x4x?x?xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %s = linalg.contract indexing_maps = [#bihd, #bjhd, #bhij]
      ins(%q, %k : tensor<?x?x4x64xbf16>, tensor<?x?x4x64xbf16>) outs(%fs : tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %er = tensor.empty(%b, %n) : tensor<?x4x?xf32>
  %fm = linalg.fill ins(%lowest : f32) outs(%er : tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %max = linalg.reduce ins(%s : tensor<?x4x?x?xf32>) outs(%fm : tensor<?x4x?xf32>) dimensions = [3]
      (%x: f32, %y: f32) {
        %z = arith.maxnumf %x, %y : f32
        linalg.yield %z : f32
      }
  %e = linalg.generic {indexing_maps = [#id4, #bhi, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %max : tensor<?x4x?x?xf32>, tensor<?x4x?xf32>) outs(%es : tensor<?x4x?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %scale = arith.constant 0.125 : f32
    %d = arith.subf %x, %y : f32
    %ds = arith.mulf %scale, %d : f32
    %w = math.exp %ds : f32
    linalg.yield %w : f32
  } -> tensor<?x4x?x?xf32>
  %fl = linalg.fill ins(%zero : f32) outs(%er : tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %sum = linalg.reduce { arith.addf } ins(%e : tensor<?x4x?x?xf32>) outs(%fl : tensor<?x4x?xf32>) dimensions = [3]
  %eo = tensor.empty(%b, %n) : tensor<?x?x4x64xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<?x?x4x64xf32>) -> tensor<?x?x4x64xf32>
  %o = linalg.contract indexing_maps = [#pv_p, #pv_v, #pv_o]
      ins(%e, %v : tensor<?x4x?x?xf32>, tensor<?x4x?x64xbf16>) outs(%fo : tensor<?x?x4x64xf32>) -> tensor<?x?x4x64xf32>
  %et = tensor.empty(%b, %n) : tensor<?x?x4x64xbf16>
  %r = linalg.generic {indexing_maps = [#id4, #o_l, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o, %sum : tensor<?x?x4x64xf32>, tensor<?x4x?xf32>) outs(%et : tensor<?x?x4x64xbf16>) {
  ^bb0(%x: f32, %y: f32, %z: bf16):
    %one = arith.constant 1.0 : f32
    %inverse = arith.divf %one, %y : f32
    %w = arith.mulf %x, %inverse : f32
    %t = arith.truncf %w : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<?x?x4x64xbf16>
  return %r : tensor<?x?x4x64xbf16>
}

// A mask that is a constant tensor, added; ops on whole tensors.
// CHECK-LABEL: func.func @constant_mask(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      mask = #kvbuffer.mask<causal = true, left = 1>
func.func @constant_mask(%q: tensor<2x4x64xf16>, %k: tensor<2x4x64xf16>, %v: tensor<2x4x64xf16>) -> tensor<2x4x64xf16> {
  %zero = arith.constant 0.0 : f16
  %constant = arith.constant dense<[[0.0, -65504.0, -65504.0, -65504.0], [0.0, 0.0, -65504.0, -65504.0], [-65504.0, 0.0, 0.0, -65504.0], [-65504.0, -65504.0, 0.0, 0.0]]> : tensor<4x4xf16>
  %es = tensor.empty() : tensor<2x4x4xf16>
  %all = linalg.broadcast ins(%constant : tensor<4x4xf16>) outs(%es : tensor<2x4x4xf16>) dimensions = [0]
  %fs = linalg.fill ins(%zero : f16) outs(%es : tensor<2x4x4xf16>) -> tensor<2x4x4xf16>
  %s = linalg.batch_matmul
      indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, j)>]
      ins(%q, %k : tensor<2x4x64xf16>, tensor<2x4x64xf16>) outs(%fs : tensor<2x4x4xf16>) -> tensor<2x4x4xf16>
  %masked = arith.addf %s, %all : tensor<2x4x4xf16>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<2x4x4xf16>) outs(%es : tensor<2x4x4xf16>) -> tensor<2x4x4xf16>
  %eo = tensor.empty() : tensor<2x4x64xf16>
  %fo = linalg.fill ins(%zero : f16) outs(%eo : tensor<2x4x64xf16>) -> tensor<2x4x64xf16>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x4xf16>, tensor<2x4x64xf16>) outs(%fo : tensor<2x4x64xf16>) -> tensor<2x4x64xf16>
  return %o : tensor<2x4x64xf16>
}
