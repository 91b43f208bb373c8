// Memrefs at any element's address, rows any distance apart: the launch takes the kernel
// that can read them, by addresses and strides. Where none
// was made, the program ends with a message; and so it does where sizes disagree.
//
// REQUIRES: mlir-runner
// RUN: %outline sm_80 %S/Inputs/reference.mlir %s | FileCheck %s
// RUN: %outline sm_90a %S/Inputs/reference.mlir %s | FileCheck %s
// RUN: %outline gfx942 %S/Inputs/reference.mlir %s | FileCheck %s
// RUN: not %outline gfx942,alternatives=false %S/Inputs/reference.mlir %s | FileCheck %s --check-prefix=ENDS
// RUN: not %outline sm_80,alternatives=false %S/Inputs/reference.mlir %s | FileCheck %s --check-prefix=ENDS
// RUN: sed -e 's/%kv_rows = arith.constant 1/%kv_rows = arith.constant 2/' %s > %t.sizes.mlir
// RUN: not %outline sm_80 %S/Inputs/reference.mlir %t.sizes.mlir | FileCheck %s --check-prefix=SIZES

// CHECK: 1
// ENDS: a kvbuffer.attention: addresses and strides of tensors are no multiples of 16 bytes, which the kernel needs
// SIZES: tensor 'k' of a kvbuffer.attention: dimension 0 is not what other tensors or the kernel say

!wide = memref<1x20x2x67xbf16>
!view = memref<1x20x2x64xbf16, strided<[2680, 134, 67, 1], offset: 3>>
!kv = memref<?x20x2x64xbf16>
!c = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>

func.func @fill(%seed: i32, %m: !kv) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c20 = arith.constant 20 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c20 step %c1 {
    scf.for %h = %c0 to %c2 step %c1 {
      scf.for %d = %c0 to %c64 step %c1 {
        %f = func.call @number(%seed, %c0, %i, %h, %d) : (i32, index, index, index, index) -> f32
        %x = func.call @to_bf16(%f) : (f32) -> bf16
        memref.store %x, %m[%c0, %i, %h, %d] : !kv
      }
    }
  }
  return
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c20 = arith.constant 20 : index
  %c64 = arith.constant 64 : index
  %seed1 = arith.constant 1 : i32
  %seed2 = arith.constant 2 : i32
  %seed3 = arith.constant 3 : i32
  %kv_rows = arith.constant 1 : index
  %qw = memref.alloc() : !wide
  %q = memref.subview %qw[0, 0, 0, 3] [1, 20, 2, 64] [1, 1, 1, 1] : !wide to !view
  %o = memref.alloc(%c1) : !kv
  %k = memref.alloc(%kv_rows) : !kv
  %v = memref.alloc(%kv_rows) : !kv
  call @fill(%seed1, %o) : (i32, !kv) -> ()
  call @fill(%seed2, %k) : (i32, !kv) -> ()
  call @fill(%seed3, %v) : (i32, !kv) -> ()
  %nan = arith.constant 0x7FC0 : bf16
  linalg.fill ins(%nan : bf16) outs(%qw : !wide)
  %os = memref.cast %o : !kv to memref<1x20x2x64xbf16>
  memref.copy %os, %q : memref<1x20x2x64xbf16> to !view
  linalg.fill ins(%nan : bf16) outs(%o : !kv)
  %kc = kvbuffer.make_cache %k : !kv -> !c
  %vc = kvbuffer.make_cache %v : !kv -> !c
  kvbuffer.attention q(%q) k(%kc) v(%vc) out(%os) : !view, !c, !c, memref<1x20x2x64xbf16>

  %true = arith.constant true
  %want = memref.alloc() : memref<64xf64>
  %good = scf.for %i = %c0 to %c20 step %c1 iter_args(%g0 = %true) -> i1 {
    %gi = scf.for %h = %c0 to %c2 step %c1 iter_args(%g1 = %g0) -> i1 {
      func.call @attend_row(%c0, %i, %h, %h, %c20, %want) : (index, index, index, index, index, memref<64xf64>) -> ()
      %gh = scf.for %d = %c0 to %c64 step %c1 iter_args(%g2 = %g1) -> i1 {
        %w = memref.load %want[%d] : memref<64xf64>
        %x = memref.load %o[%c0, %i, %h, %d] : !kv
        %x32 = arith.extf %x : bf16 to f32
        %got = arith.extf %x32 : f32 to f64
        %ok = func.call @close(%got, %w) : (f64, f64) -> i1
        %g = arith.andi %g2, %ok : i1
        scf.yield %g : i1
      }
      scf.yield %gh : i1
    }
    scf.yield %gi : i1
  }
  %word = arith.extui %good : i1 to i64
  vector.print %word : i64
  return
}
