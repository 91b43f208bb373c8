// Functions of scores read tensors of rank 0, as exporters write positions and factors.
//
// REQUIRES: mlir-runner
// RUN: %outline sm_80 %S/Inputs/reference.mlir %s | FileCheck %s
// RUN: %outline gfx942 %S/Inputs/reference.mlir %s | FileCheck %s

// CHECK: 1

!q = tensor<2x1x8x64xbf16>
!kv = tensor<2x160x2x64xbf16>

func.func @step(%q: !q, %k: !kv, %v: !kv, %keys: tensor<i32>, %scale: tensor<f32>) -> !q {
  %e = tensor.empty() : !q
  %o = kvbuffer.attention q(%q) k(%k) v(%v) out(%e) {scale = 1.0 : f32} : !q, !kv, !kv, !q -> !q
      captures(%keys, %scale : tensor<i32>, tensor<f32>) score {
    ^bb0(%s: f32, %b: index, %h: index, %row: index, %p: index, %key: index, %n: tensor<i32>, %f: tensor<f32>):
      %x = tensor.extract %f[] : tensor<f32>
      %y = arith.mulf %s, %x : f32
      kvbuffer.yield %y : f32
  } visible {
    ^bb0(%b: index, %h: index, %row: index, %p: index, %key: index, %n: tensor<i32>, %f: tensor<f32>):
      %l = tensor.extract %n[] : tensor<i32>
      %j = arith.index_cast %key : index to i32
      %c = arith.cmpi slt, %j, %l : i32
      kvbuffer.yield %c : i1
  }
  return %o : !q
}

func.func @tokens(%seed: i32) -> !kv {
  %t = tensor.generate {
    ^bb0(%b: index, %s: index, %h: index, %d: index):
      %f = func.call @number(%seed, %b, %s, %h, %d) : (i32, index, index, index, index) -> f32
      %y = func.call @to_bf16(%f) : (f32) -> bf16
      tensor.yield %y : bf16
  } : !kv
  return %t : !kv
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %keys = arith.constant 77 : index
  %seen = arith.constant 77 : i32
  %seed1 = arith.constant 1 : i32
  %seed2 = arith.constant 2 : i32
  %seed3 = arith.constant 3 : i32
  %q = tensor.generate {
    ^bb0(%b: index, %s: index, %h: index, %d: index):
      %f = func.call @number(%seed1, %b, %s, %h, %d) : (i32, index, index, index, index) -> f32
      %y = func.call @to_bf16(%f) : (f32) -> bf16
      tensor.yield %y : bf16
  } : !q
  %k = call @tokens(%seed2) : (i32) -> !kv
  %v = call @tokens(%seed3) : (i32) -> !kv
  // A view into a buffer, as a slice of a tensor becomes.
  %words = tensor.from_elements %seed1, %seen : tensor<2xi32>
  %one = tensor.extract_slice %words[1] [1] [1] : tensor<2xi32> to tensor<i32>
  %eighth = arith.constant dense<0.125> : tensor<f32>
  %y = call @step(%q, %k, %v, %one, %eighth) : (!q, !kv, !kv, tensor<i32>, tensor<f32>) -> !q

  %true = arith.constant true
  %want = memref.alloc() : memref<64xf64>
  %good = scf.for %b = %c0 to %c2 step %c1 iter_args(%g0 = %true) -> i1 {
    %gb = scf.for %h = %c0 to %c8 step %c1 iter_args(%g1 = %g0) -> i1 {
      %kh = arith.divui %h, %c4 : index
      func.call @attend_row(%b, %c0, %h, %kh, %keys, %want) : (index, index, index, index, index, memref<64xf64>) -> ()
      %gh = scf.for %d = %c0 to %c64 step %c1 iter_args(%g2 = %g1) -> i1 {
        %o = memref.load %want[%d] : memref<64xf64>
        %gotb = tensor.extract %y[%b, %c0, %h, %d] : !q
        %gotf = arith.extf %gotb : bf16 to f32
        %got = arith.extf %gotf : f32 to f64
        %ok = func.call @close(%got, %o) : (f64, f64) -> i1
        %g = arith.andi %g2, %ok : i1
        scf.yield %g : i1
      }
      scf.yield %gh : i1
    }
    scf.yield %gb : i1
  }
  %word = arith.extui %good : i1 to i64
  vector.print %word : i64
  return
}
