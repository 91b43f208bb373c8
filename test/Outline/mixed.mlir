// A ragged batch of long and short sequences: the launch runs several kernels, each for
// its own sequences; one of no row, and one as long as the limit, are among them. Rows that
// nobody writes would be NaN.
//
// REQUIRES: mlir-runner
// RUN: %outline sm_80 %S/Inputs/reference.mlir %s | FileCheck %s
// RUN: %outline sm_90a %S/Inputs/reference.mlir %s | FileCheck %s
// RUN: %outline gfx950 %S/Inputs/reference.mlir %s | FileCheck %s
// RUN: cat %S/Inputs/reference.mlir %s | kvbuf-opt --kvbuf-outline-kernels=chip=sm_80 | FileCheck %s --check-prefix=LAUNCH

// CHECK: 1

// LAUNCH:      scf.if
// LAUNCH:      gpu.launch_func @kvbuf_kernels::@main_attention
// LAUNCH:      gpu.launch_func @kvbuf_kernels::@main_attention_of_few_rows
// LAUNCH:      } else {

!q = memref<?x4x64xbf16>
!kv = memref<?x2x64xbf16>
!offsets = memref<6xi32>
!c = !kvbuffer.cache<ragged, bf16, heads = 2, head_size = 64>

memref.global "private" constant @starts : !offsets = dense<[0, 1, 21, 21, 29, 38]>


// The tokens of all sequences, each counted from its first one.
func.func @tokens(%seed: i32, %heads: index, %starts: !offsets, %out: memref<?x?x64xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  scf.for %b = %c0 to %c5 step %c1 {
    %next = arith.addi %b, %c1 : index
    %from32 = memref.load %starts[%b] : !offsets
    %upto32 = memref.load %starts[%next] : !offsets
    %from = arith.index_cast %from32 : i32 to index
    %upto = arith.index_cast %upto32 : i32 to index
    scf.for %t = %from to %upto step %c1 {
      %i = arith.subi %t, %from : index
      scf.for %h = %c0 to %heads step %c1 {
        scf.for %d = %c0 to %c64 step %c1 {
          %f = func.call @number(%seed, %b, %i, %h, %d) : (i32, index, index, index, index) -> f32
          %x = func.call @to_bf16(%f) : (f32) -> bf16
          memref.store %x, %out[%t, %h, %d] : memref<?x?x64xbf16>
        }
      }
    }
  }
  return
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c38 = arith.constant 38 : index
  %c64 = arith.constant 64 : index
  %seed1 = arith.constant 1 : i32
  %seed2 = arith.constant 2 : i32
  %seed3 = arith.constant 3 : i32
  %given = memref.get_global @starts : !offsets
  %starts = memref.alloc() : !offsets
  memref.copy %given, %starts : !offsets to !offsets
  %q = memref.alloc(%c38) : !q
  %k = memref.alloc(%c38) : !kv
  %v = memref.alloc(%c38) : !kv
  %o = memref.alloc(%c38) : !q
  %nan = arith.constant 0x7FC0 : bf16
  linalg.fill ins(%nan : bf16) outs(%o : !q)
  %qa = memref.cast %q : !q to memref<?x?x64xbf16>
  %ka = memref.cast %k : !kv to memref<?x?x64xbf16>
  %va = memref.cast %v : !kv to memref<?x?x64xbf16>
  call @tokens(%seed1, %c4, %starts, %qa) : (i32, index, !offsets, memref<?x?x64xbf16>) -> ()
  call @tokens(%seed2, %c2, %starts, %ka) : (i32, index, !offsets, memref<?x?x64xbf16>) -> ()
  call @tokens(%seed3, %c2, %starts, %va) : (i32, index, !offsets, memref<?x?x64xbf16>) -> ()
  %kc = kvbuffer.make_cache %k indices(%starts : !offsets) : !kv -> !c
  %vc = kvbuffer.make_cache %v indices(%starts : !offsets) : !kv -> !c
  kvbuffer.attention q(%q) k(%kc) v(%vc) out(%o) offsets(%starts) {mask = #kvbuffer.mask<causal = true>}
    : !q, !c, !c, !q, offsets !offsets

  %true = arith.constant true
  %want = memref.alloc() : memref<64xf64>
  %good = scf.for %b = %c0 to %c5 step %c1 iter_args(%g0 = %true) -> i1 {
    %next = arith.addi %b, %c1 : index
    %from32 = memref.load %starts[%b] : !offsets
    %upto32 = memref.load %starts[%next] : !offsets
    %from = arith.index_cast %from32 : i32 to index
    %upto = arith.index_cast %upto32 : i32 to index
    %gb = scf.for %t = %from to %upto step %c1 iter_args(%g1 = %g0) -> i1 {
      %i = arith.subi %t, %from : index
      %seen = arith.addi %i, %c1 : index
      %gi = scf.for %h = %c0 to %c4 step %c1 iter_args(%g2 = %g1) -> i1 {
        %kh = arith.divui %h, %c2 : index
        func.call @attend_row(%b, %i, %h, %kh, %seen, %want) : (index, index, index, index, index, memref<64xf64>) -> ()
        %gh = scf.for %d = %c0 to %c64 step %c1 iter_args(%g3 = %g2) -> i1 {
          %w = memref.load %want[%d] : memref<64xf64>
          %x = memref.load %o[%t, %h, %d] : !q
          %got = arith.extf %x : bf16 to f64
          %ok = func.call @close(%got, %w) : (f64, f64) -> i1
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
