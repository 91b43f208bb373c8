// A decode loop among other ops: each step appends a token's key and value to paged
// caches and attends to all keys so far. Appends and attention are on tensors, the
// caches in memory; one function has both problems and linalg ops, and another calls it
// in a loop. What no append has written is NaN. The host does the same plainly, in f64.
//
// REQUIRES: mlir-runner
// RUN: %outline sm_80 %S/Inputs/reference.mlir %s | FileCheck %s
// RUN: %outline sm_80,schedule=split_keys=true %S/Inputs/reference.mlir %s | FileCheck %s
// RUN: %outline sm_90a %S/Inputs/reference.mlir %s | FileCheck %s
// RUN: %outline gfx942 %S/Inputs/reference.mlir %s | FileCheck %s
// RUN: %outline gfx950 %S/Inputs/reference.mlir %s | FileCheck %s

// A program that reads one key too few is found.
// RUN: sed -e 's/out(%eo) :/out(%eo) {kvbuffer.lengths = "all"} :/' %s > %t.few.mlir
// RUN: %outline sm_80 %S/Inputs/reference.mlir %t.few.mlir | FileCheck %s --check-prefix=FEW

// CHECK: 1
// FEW: 0

!q = tensor<2x1x4x64xbf16>
!new = tensor<2x1x2x64xbf16>
!data = memref<?x16x2x64xbf16>
!table = memref<2x4xi32>
!lengths = memref<2xi32>
!cache = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>

#id = affine_map<(b, s, h, d) -> (b, s, h, d)>

// A step: the new token's rows come in f32, as a projection makes them.
func.func @step(%q: tensor<2x1x4x64xf32>, %k: tensor<2x1x2x64xf32>, %v: tensor<2x1x2x64xf32>,
                %kd: !data, %vd: !data, %table: !table, %lengths: !lengths) -> tensor<2x1x4x64xf32> {
  %eq = tensor.empty() : !q
  %qb = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%q : tensor<2x1x4x64xf32>) outs(%eq : !q) {
    ^bb0(%in: f32, %out: bf16):
      %y = func.call @to_bf16(%in) : (f32) -> bf16
      linalg.yield %y : bf16
  } -> !q
  %kc = kvbuffer.make_cache %kd indices(%table, %lengths : !table, !lengths) : !data -> !cache
  %vc = kvbuffer.make_cache %vd indices(%table, %lengths : !table, !lengths) : !data -> !cache
  kvbuffer.cache_append k(%k : tensor<2x1x2x64xf32>) to(%kc : !cache) v(%v : tensor<2x1x2x64xf32>) to(%vc : !cache)
  %eo = tensor.empty() : !q
  %o = kvbuffer.attention q(%qb) k(%kc) v(%vc) out(%eo) : !q, !cache, !cache, !q -> !q
  %ef = tensor.empty() : tensor<2x1x4x64xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o : !q) outs(%ef : tensor<2x1x4x64xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %w = arith.extf %in : bf16 to f32
      linalg.yield %w : f32
  } -> tensor<2x1x4x64xf32>
  return %r : tensor<2x1x4x64xf32>
}

// Where a token of a sequence lies: its page and its row.
func.func @place(%table: !table, %b: index, %token: index) -> (index, index) {
  %c16 = arith.constant 16 : index
  %n = arith.divui %token, %c16 : index
  %row = arith.remui %token, %c16 : index
  %word = memref.load %table[%b, %n] : !table
  %page = arith.index_cast %word : i32 to index
  return %page, %row : index, index
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c9 = arith.constant 9 : index
  %c64 = arith.constant 64 : index
  %steps = arith.constant 3 : index
  %seed1 = arith.constant 1 : i32
  %seed2 = arith.constant 2 : i32
  %seed3 = arith.constant 3 : i32
  %one = arith.constant 1 : i32
  %nan = arith.constant 0x7FC0 : bf16

  // Nine pages, dealt to the sequences out of order.
  %kd = memref.alloc(%c9) : !data
  %vd = memref.alloc(%c9) : !data
  linalg.fill ins(%nan : bf16) outs(%kd : !data)
  linalg.fill ins(%nan : bf16) outs(%vd : !data)
  %table = memref.alloc() : !table
  scf.for %b = %c0 to %c2 step %c1 {
    scf.for %i = %c0 to %c4 step %c1 {
      %0 = arith.muli %b, %c4 : index
      %1 = arith.addi %0, %i : index
      %2 = arith.muli %1, %c7 : index
      %3 = arith.addi %2, %c3 : index
      %4 = arith.remui %3, %c9 : index
      %5 = arith.index_cast %4 : index to i32
      memref.store %5, %table[%b, %i] : !table
    }
  }
  // One sequence begins a page in the loop.
  %lengths = memref.alloc() : !lengths
  %len0 = arith.constant 31 : i32
  %len1 = arith.constant 3 : i32
  memref.store %len0, %lengths[%c0] : !lengths
  memref.store %len1, %lengths[%c1] : !lengths
  scf.for %b = %c0 to %c2 step %c1 {
    %word = memref.load %lengths[%b] : !lengths
    %n = arith.index_cast %word : i32 to index
    scf.for %t = %c0 to %n step %c1 {
      %page, %row = func.call @place(%table, %b, %t) : (!table, index, index) -> (index, index)
      scf.for %h = %c0 to %c2 step %c1 {
        scf.for %d = %c0 to %c64 step %c1 {
          %kf = func.call @number(%seed2, %b, %t, %h, %d) : (i32, index, index, index, index) -> f32
          %kb = func.call @to_bf16(%kf) : (f32) -> bf16
          memref.store %kb, %kd[%page, %row, %h, %d] : !data
          %vf = func.call @number(%seed3, %b, %t, %h, %d) : (i32, index, index, index, index) -> f32
          %vb = func.call @to_bf16(%vf) : (f32) -> bf16
          memref.store %vb, %vd[%page, %row, %h, %d] : !data
        }
      }
    }
  }

  %true = arith.constant true
  %want = memref.alloc() : memref<64xf64>
  %good = scf.for %step = %c0 to %steps step %c1 iter_args(%g0 = %true) -> i1 {
    %q = tensor.generate {
      ^bb0(%b: index, %s: index, %h: index, %d: index):
        %f = func.call @number(%seed1, %b, %step, %h, %d) : (i32, index, index, index, index) -> f32
        tensor.yield %f : f32
    } : tensor<2x1x4x64xf32>
    %k = tensor.generate {
      ^bb0(%b: index, %s: index, %h: index, %d: index):
        %word = memref.load %lengths[%b] : !lengths
        %n = arith.index_cast %word : i32 to index
        %f = func.call @number(%seed2, %b, %n, %h, %d) : (i32, index, index, index, index) -> f32
        tensor.yield %f : f32
    } : tensor<2x1x2x64xf32>
    %v = tensor.generate {
      ^bb0(%b: index, %s: index, %h: index, %d: index):
        %word = memref.load %lengths[%b] : !lengths
        %n = arith.index_cast %word : i32 to index
        %f = func.call @number(%seed3, %b, %n, %h, %d) : (i32, index, index, index, index) -> f32
        tensor.yield %f : f32
    } : tensor<2x1x2x64xf32>
    %y = func.call @step(%q, %k, %v, %kd, %vd, %table, %lengths)
      : (tensor<2x1x4x64xf32>, tensor<2x1x2x64xf32>, tensor<2x1x2x64xf32>, !data, !data, !table, !lengths) -> tensor<2x1x4x64xf32>
    %gs = scf.for %b = %c0 to %c2 step %c1 iter_args(%g1 = %g0) -> i1 {
      %word = memref.load %lengths[%b] : !lengths
      %next = arith.addi %word, %one : i32
      memref.store %next, %lengths[%b] : !lengths
      %seen = arith.index_cast %next : i32 to index
      %gb = scf.for %h = %c0 to %c4 step %c1 iter_args(%g2 = %g1) -> i1 {
        %kh = arith.divui %h, %c2 : index
        func.call @attend_row(%b, %step, %h, %kh, %seen, %want) : (index, index, index, index, index, memref<64xf64>) -> ()
        %gh = scf.for %d = %c0 to %c64 step %c1 iter_args(%g3 = %g2) -> i1 {
          %o = memref.load %want[%d] : memref<64xf64>
          %gotf = tensor.extract %y[%b, %c0, %h, %d] : tensor<2x1x4x64xf32>
          %got = arith.extf %gotf : f32 to f64
          %ok = func.call @close(%got, %o) : (f64, f64) -> i1
          %g = arith.andi %g3, %ok : i1
          scf.yield %g : i1
        }
        scf.yield %gh : i1
      }
      scf.yield %gb : i1
    }
    scf.yield %gs : i1
  }
  %word = arith.extui %good : i1 to i64
  vector.print %word : i64
  return
}
