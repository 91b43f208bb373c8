// A decode step whose types fix the sequences and the row: the choice between kernels
// is by these numbers, which no tensor's shape names any more.
//
// REQUIRES: mlir-runner
// RUN: split-file %s %t
// RUN: %outline sm_80 %S/Inputs/reference.mlir %t/program.mlir | FileCheck %s
// RUN: %outline sm_90a %S/Inputs/reference.mlir %t/program.mlir | FileCheck %s

// The same in an artifact: nobody is asked for 'batch'.
// RUN: kvbuf-compile %t/artifact.mlir --target=sm_80 --ptxas=none -o %t.kvbuf
// RUN: kvbuf-inspect %t.kvbuf | FileCheck %s --check-prefix=SIZES

// CHECK: 1
// SIZES: launched if {{.*}}2*2{{.*}} > 0
// SIZES-NEXT: else f_of_small_blocks
// SIZES: sizes seq_k{{$}}

//--- artifact.mlir
!q = memref<2x1x8x64xbf16>
!c = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
func.func @f(%q: !q, %k: !c, %v: !c, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !c, !c, !q
  return
}

//--- program.mlir
!q = tensor<2x1x8x64xbf16>
!kv = tensor<2x160x2x64xbf16>

func.func @step(%q: !q, %k: !kv, %v: !kv) -> !q {
  %e = tensor.empty() : !q
  %o = kvbuffer.attention q(%q) k(%k) v(%v) out(%e) : !q, !kv, !kv, !q -> !q
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
  %keys = arith.constant 160 : index
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
  %y = call @step(%q, %k, %v) : (!q, !kv, !kv) -> !q

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
