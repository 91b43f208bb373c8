// A function on tensors, with linalg ops around one attention, through stock tools
// alone: bufferized, outlined, made a gpu.binary, and run by mlir-runner on the
// emulator. The host computes the same in f64, plainly. Rows that nobody writes
// would be NaN.
//
// REQUIRES: mlir-runner
// RUN: %outline sm_80 %S/Inputs/reference.mlir %s | FileCheck %s
// RUN: %outline sm_90a %S/Inputs/reference.mlir %s | FileCheck %s
// RUN: %outline gfx942 %S/Inputs/reference.mlir %s | FileCheck %s
// RUN: %outline gfx950 %S/Inputs/reference.mlir %s | FileCheck %s

// The comparison is no yes-man: another mask is found.
// RUN: sed -e 's/mask<causal = true>/mask<left = 60>/' %s > %t.other.mlir
// RUN: %outline sm_80 %S/Inputs/reference.mlir %t.other.mlir | FileCheck %s --check-prefix=OTHER

// CHECK: 1
// OTHER: 0

!x = tensor<?x?x4x64xf32>
!q = tensor<?x?x4x64xbf16>
!kv = tensor<?x?x2x64xbf16>

#id = affine_map<(b, s, h, d) -> (b, s, h, d)>

// y = attention(bf16(x), k, v) + x, in f32.
func.func @layer(%x: !x, %k: !kv, %v: !kv, %poison: bf16) -> !x {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : !x
  %s = tensor.dim %x, %c1 : !x
  %e = tensor.empty(%b, %s) : !q
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : !x) outs(%e : !q) {
    ^bb0(%in: f32, %out: bf16):
      %y = func.call @to_bf16(%in) : (f32) -> bf16
      linalg.yield %y : bf16
  } -> !q
  %e1 = tensor.empty(%b, %s) : !q
  %init = linalg.fill ins(%poison : bf16) outs(%e1 : !q) -> !q
  %o = kvbuffer.attention q(%q) k(%k) v(%v) out(%init) {mask = #kvbuffer.mask<causal = true>} : !q, !kv, !kv, !q -> !q
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o : !q) outs(%x : !x) {
    ^bb0(%in: bf16, %out: f32):
      %w = arith.extf %in : bf16 to f32
      %sum = arith.addf %w, %out : f32
      linalg.yield %sum : f32
  } -> !x
  return %y : !x
}

func.func @tokens(%seed: i32, %b: index, %s: index) -> !kv {
  %t = tensor.generate %b, %s {
    ^bb0(%i: index, %j: index, %h: index, %d: index):
      %f = func.call @number(%seed, %i, %j, %h, %d) : (i32, index, index, index, index) -> f32
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
  %c64 = arith.constant 64 : index
  %batch = arith.constant 2 : index
  %rows = arith.constant 70 : index
  %keys = arith.constant 90 : index
  %seed1 = arith.constant 1 : i32
  %seed2 = arith.constant 2 : i32
  %seed3 = arith.constant 3 : i32
  %x = tensor.generate %batch, %rows {
    ^bb0(%i: index, %j: index, %h: index, %d: index):
      %f = func.call @number(%seed1, %i, %j, %h, %d) : (i32, index, index, index, index) -> f32
      tensor.yield %f : f32
  } : !x
  %k = call @tokens(%seed2, %batch, %keys) : (i32, index, index) -> !kv
  %v = call @tokens(%seed3, %batch, %keys) : (i32, index, index) -> !kv
  %nan = arith.constant 0x7FC0 : bf16
  %y = call @layer(%x, %k, %v, %nan) : (!x, !kv, !kv, bf16) -> !x

  %true = arith.constant true
  %past = arith.subi %keys, %rows : index
  %want = memref.alloc() : memref<64xf64>
  %good = scf.for %b = %c0 to %batch step %c1 iter_args(%g0 = %true) -> i1 {
    %gb = scf.for %i = %c0 to %rows step %c1 iter_args(%g1 = %g0) -> i1 {
      %seen0 = arith.addi %past, %i : index
      %seen = arith.addi %seen0, %c1 : index
      %gi = scf.for %h = %c0 to %c4 step %c1 iter_args(%g2 = %g1) -> i1 {
        %kh = arith.divui %h, %c2 : index
        func.call @attend_row(%b, %i, %h, %kh, %seen, %want) : (index, index, index, index, index, memref<64xf64>) -> ()
        %gh = scf.for %d = %c0 to %c64 step %c1 iter_args(%g3 = %g2) -> i1 {
          %xf = func.call @number(%seed1, %b, %i, %h, %d) : (i32, index, index, index, index) -> f32
          %x64 = arith.extf %xf : f32 to f64
          %o = memref.load %want[%d] : memref<64xf64>
          %sum = arith.addf %o, %x64 : f64
          %gotf = tensor.extract %y[%b, %i, %h, %d] : !x
          %got = arith.extf %gotf : f32 to f64
          %ok = func.call @close(%got, %sum) : (f64, f64) -> i1
          %g = arith.andi %g3, %ok : i1
          scf.yield %g : i1
        }
        scf.yield %gh : i1
      }
      scf.yield %gi : i1
    }
    scf.yield %gb : i1
  }
  %word = arith.extui %good : i1 to i64
  vector.print %word : i64
  return
}
