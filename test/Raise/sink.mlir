// A score of each head that has no value: put beside those of the keys before the softmax,
// and its weight cut off after it, as gpt-oss computes it. Groups of two heads share keys.
//
// RUN: %python %S/Inputs/raise_and_run.py %s
// RUN: kvbuf-opt %s --kvbuf-raise-attention | FileCheck %s
// REQUIRES: mlir-runner

// CHECK-NOT: tensor.insert_slice
// CHECK:     kvbuffer.attention {{.*}} sink(%{{.*}}) {mask = #kvbuffer.mask<causal = true>, scale = 2.500000e-01 : f32} : {{.*}}, sink tensor<4xf32>
// CHECK-NOT: tensor.extract_slice

#qd = affine_map<(b, g, h, i, j, d) -> (b, i, g, h, d)>
#kd = affine_map<(b, g, h, i, j, d) -> (b, j, g, d)>
#sd = affine_map<(b, g, h, i, j, d) -> (b, g, h, i, j)>
#s = affine_map<(b, h, i, j) -> (b, h, i, j)>
#r = affine_map<(b, h, i, j) -> (b, h, i)>

module {
  func.func @main(%q4: tensor<2x20x4x16xbf16>, %k: tensor<2x30x2x16xbf16>, %v: tensor<2x30x2x16xbf16>, %sinks: tensor<4xbf16>) -> tensor<2x20x4x16xbf16> {
    %zero = arith.constant 0.0 : f32
    %scale = arith.constant 0.25 : f32
    %hidden = arith.constant 0xFF800000 : f32
    %c10 = arith.constant 10 : index
    %q = tensor.expand_shape %q4 [[0], [1], [2, 3], [4]] output_shape [2, 20, 2, 2, 16] : tensor<2x20x4x16xbf16> into tensor<2x20x2x2x16xbf16>
    %es = tensor.empty() : tensor<2x2x2x20x30xf32>
    %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x2x2x20x30xf32>) -> tensor<2x2x2x20x30xf32>
    %qk = linalg.generic {indexing_maps = [#qd, #kd, #sd], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
        ins(%q, %k : tensor<2x20x2x2x16xbf16>, tensor<2x30x2x16xbf16>) outs(%fs : tensor<2x2x2x20x30xf32>) {
    ^bb0(%a: bf16, %b: bf16, %c: f32):
      %x = arith.extf %a : bf16 to f32
      %y = arith.extf %b : bf16 to f32
      %z = arith.mulf %x, %y : f32
      %w = arith.addf %c, %z : f32
      linalg.yield %w : f32
    } -> tensor<2x2x2x20x30xf32>
    %s4 = tensor.collapse_shape %qk [[0], [1, 2], [3], [4]] : tensor<2x2x2x20x30xf32> into tensor<2x4x20x30xf32>
    %em = tensor.empty() : tensor<2x4x20x30xf32>
    %m = linalg.generic {indexing_maps = [#s, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%s4 : tensor<2x4x20x30xf32>) outs(%em : tensor<2x4x20x30xf32>) {
    ^bb0(%a: f32, %c: f32):
      %i = linalg.index 2 : index
      %j = linalg.index 3 : index
      %p = arith.addi %i, %c10 : index
      %see = arith.cmpi sle, %j, %p : index
      %t = arith.mulf %a, %scale : f32
      %w = arith.select %see, %t, %hidden : f32
      linalg.yield %w : f32
    } -> tensor<2x4x20x30xf32>
    %e1 = tensor.empty() : tensor<2x4x20x1xf32>
    %one = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (h)>, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%sinks : tensor<4xbf16>) outs(%e1 : tensor<2x4x20x1xf32>) {
    ^bb0(%a: bf16, %c: f32):
      %x = arith.extf %a : bf16 to f32
      linalg.yield %x : f32
    } -> tensor<2x4x20x1xf32>
    %ec = tensor.empty() : tensor<2x4x20x31xf32>
    %c0 = tensor.insert_slice %m into %ec[0, 0, 0, 0] [2, 4, 20, 30] [1, 1, 1, 1] : tensor<2x4x20x30xf32> into tensor<2x4x20x31xf32>
    %c1 = tensor.insert_slice %one into %c0[0, 0, 0, 30] [2, 4, 20, 1] [1, 1, 1, 1] : tensor<2x4x20x1xf32> into tensor<2x4x20x31xf32>
    %er1 = tensor.empty() : tensor<2x4x20xf32>
    %fm = linalg.fill ins(%hidden : f32) outs(%er1 : tensor<2x4x20xf32>) -> tensor<2x4x20xf32>
    %max = linalg.reduce { arith.maximumf } ins(%c1 : tensor<2x4x20x31xf32>) outs(%fm : tensor<2x4x20xf32>) dimensions = [3]
    %e = linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%c1, %max : tensor<2x4x20x31xf32>, tensor<2x4x20xf32>) outs(%ec : tensor<2x4x20x31xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %x = arith.subf %a, %b : f32
      %y = math.exp %x : f32
      linalg.yield %y : f32
    } -> tensor<2x4x20x31xf32>
    %fl = linalg.fill ins(%zero : f32) outs(%er1 : tensor<2x4x20xf32>) -> tensor<2x4x20xf32>
    %sum = linalg.reduce { arith.addf } ins(%e : tensor<2x4x20x31xf32>) outs(%fl : tensor<2x4x20xf32>) dimensions = [3]
    %p31 = linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%e, %sum : tensor<2x4x20x31xf32>, tensor<2x4x20xf32>) outs(%ec : tensor<2x4x20x31xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %x = arith.divf %a, %b : f32
      linalg.yield %x : f32
    } -> tensor<2x4x20x31xf32>
    %w4 = tensor.extract_slice %p31[0, 0, 0, 0] [2, 4, 20, 30] [1, 1, 1, 1] : tensor<2x4x20x31xf32> to tensor<2x4x20x30xf32>
    %w5 = tensor.expand_shape %w4 [[0], [1, 2], [3], [4]] output_shape [2, 2, 2, 20, 30] : tensor<2x4x20x30xf32> into tensor<2x2x2x20x30xf32>
    %eo = tensor.empty() : tensor<2x20x2x2x16xf32>
    %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x20x2x2x16xf32>) -> tensor<2x20x2x2x16xf32>
    %o = linalg.generic {indexing_maps = [affine_map<(b, i, g, h, d, j) -> (b, g, h, i, j)>, affine_map<(b, i, g, h, d, j) -> (b, j, g, d)>, affine_map<(b, i, g, h, d, j) -> (b, i, g, h, d)>],
        iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
        ins(%w5, %v : tensor<2x2x2x20x30xf32>, tensor<2x30x2x16xbf16>) outs(%fo : tensor<2x20x2x2x16xf32>) {
    ^bb0(%a: f32, %b: bf16, %c: f32):
      %y = arith.extf %b : bf16 to f32
      %z = arith.mulf %a, %y : f32
      %w = arith.addf %c, %z : f32
      linalg.yield %w : f32
    } -> tensor<2x20x2x2x16xf32>
    %o4 = tensor.collapse_shape %o [[0], [1], [2, 3], [4]] : tensor<2x20x2x2x16xf32> into tensor<2x20x4x16xf32>
    %er = tensor.empty() : tensor<2x20x4x16xbf16>
    %r = linalg.generic {indexing_maps = [#s, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%o4 : tensor<2x20x4x16xf32>) outs(%er : tensor<2x20x4x16xbf16>) {
    ^bb0(%a: f32, %c: bf16):
      %x = arith.truncf %a : f32 to bf16
      linalg.yield %x : bf16
    } -> tensor<2x20x4x16xbf16>
    return %r : tensor<2x20x4x16xbf16>
  }
}
