// A decode loop on tensors alone: pages, tables and lengths are tensors, too, and the
// loop carries the pages from append to append. Caches are made of them in a function
// that is called in the loop; what no append has written is NaN. The host does the same
// plainly, in f64. (decode.mlir has the caches in memory.)
//
// REQUIRES: mlir-runner
// RUN: %outline sm_80 %S/Inputs/reference.mlir %s | FileCheck %s

// Pages that nobody hands on lack a token.
// RUN: sed -e 's/scf.yield %gs, %kn, %vn/scf.yield %gs, %a, %c/' -e 's/call @step(%q, %k, %v, %a, %c/call @step(%q, %k, %v, %kd, %vd/' %s > %t.lost.mlir
// RUN: %outline sm_80 %S/Inputs/reference.mlir %t.lost.mlir 2>&1 | FileCheck %s --check-prefix=LOST

// CHECK: 1
// LOST: 0

!q = tensor<2x1x4x64xbf16>
!new = tensor<2x1x2x64xbf16>
!pages = tensor<?x16x2x64xbf16>
!table = tensor<2x2xi32>
!lengths = tensor<2xi32>
!cache = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>

func.func @step(%q: !q, %k: !new, %v: !new, %kd: !pages, %vd: !pages, %table: !table, %lengths: !lengths) -> (!q, !pages, !pages) {
  %kc = kvbuffer.make_cache %kd indices(%table, %lengths : !table, !lengths) : !pages -> !cache
  %vc = kvbuffer.make_cache %vd indices(%table, %lengths : !table, !lengths) : !pages -> !cache
  kvbuffer.cache_append k(%k : !new) to(%kc : !cache) v(%v : !new) to(%vc : !cache)
  %e = tensor.empty() : !q
  %o = kvbuffer.attention q(%q) k(%kc) v(%vc) out(%e) : !q, !cache, !cache, !q -> !q
  %kn = kvbuffer.cache_tensor %kc into(%kd) : !cache -> !pages
  %vn = kvbuffer.cache_tensor %vc into(%vd) : !cache -> !pages
  return %o, %kn, %vn : !q, !pages, !pages
}

func.func @tokens(%seed: i32, %step: index) -> !new {
  %t = tensor.generate {
    ^bb0(%b: index, %s: index, %h: index, %d: index):
      %f = func.call @number(%seed, %b, %step, %h, %d) : (i32, index, index, index, index) -> f32
      %y = func.call @to_bf16(%f) : (f32) -> bf16
      tensor.yield %y : bf16
  } : !new
  return %t : !new
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  // The last token begins the second page.
  %steps = arith.constant 17 : index
  %seed1 = arith.constant 1 : i32
  %seed2 = arith.constant 2 : i32
  %seed3 = arith.constant 3 : i32
  %nan = arith.constant 0x7FC0 : bf16
  %ek = tensor.empty(%c4) : !pages
  %kd = linalg.fill ins(%nan : bf16) outs(%ek : !pages) -> !pages
  %ev = tensor.empty(%c4) : !pages
  %vd = linalg.fill ins(%nan : bf16) outs(%ev : !pages) -> !pages
  %table = arith.constant dense<[[2, 0], [3, 1]]> : !table

  %true = arith.constant true
  %want = memref.alloc() : memref<64xf64>
  %good:3 = scf.for %step = %c0 to %steps step %c1 iter_args(%g0 = %true, %a = %kd, %c = %vd) -> (i1, !pages, !pages) {
    %word = arith.index_cast %step : index to i32
    %lengths = tensor.from_elements %word, %word : !lengths
    %q = tensor.generate {
      ^bb0(%b: index, %s: index, %h: index, %d: index):
        %f = func.call @number(%seed1, %b, %step, %h, %d) : (i32, index, index, index, index) -> f32
        %y = func.call @to_bf16(%f) : (f32) -> bf16
        tensor.yield %y : bf16
    } : !q
    %k = func.call @tokens(%seed2, %step) : (i32, index) -> !new
    %v = func.call @tokens(%seed3, %step) : (i32, index) -> !new
    %y, %kn, %vn = func.call @step(%q, %k, %v, %a, %c, %table, %lengths)
      : (!q, !new, !new, !pages, !pages, !table, !lengths) -> (!q, !pages, !pages)
    %seen = arith.addi %step, %c1 : index
    %gs = scf.for %b = %c0 to %c2 step %c1 iter_args(%g1 = %g0) -> i1 {
      %gb = scf.for %h = %c0 to %c4 step %c1 iter_args(%g2 = %g1) -> i1 {
        %kh = arith.divui %h, %c2 : index
        func.call @attend_row(%b, %step, %h, %kh, %seen, %want) : (index, index, index, index, index, memref<64xf64>) -> ()
        %gh = scf.for %d = %c0 to %c64 step %c1 iter_args(%g3 = %g2) -> i1 {
          %o = memref.load %want[%d] : memref<64xf64>
          %gotb = tensor.extract %y[%b, %c0, %h, %d] : !q
          %gotf = arith.extf %gotb : bf16 to f32
          %got = arith.extf %gotf : f32 to f64
          %ok = func.call @close(%got, %o) : (f64, f64) -> i1
          %g = arith.andi %g3, %ok : i1
          scf.yield %g : i1
        }
        scf.yield %gh : i1
      }
      scf.yield %gb : i1
    }
    scf.yield %gs, %kn, %vn : i1, !pages, !pages
  }
  %word = arith.extui %good#0 : i1 to i64
  vector.print %word : i64
  return
}
