// Programs that kvbuf-join-tiles leaves alone, with a warning that says why.

// DEFINE: %{pass} = kvbuf-opt --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-join-tiles)))"
// RUN: %{pass} %s --verify-diagnostics
// RUN: %{pass} %s --remark-format=emitRemark --remarks-filter=kvbuf-join-tiles 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: remark: [Missed] join{{.*}}not joined: {{.*}}there is no loop over tiles

// Programs of join-tiles.mlir with one line changed. The number of tiles of keys has
// to be a difference, of which the larger number can grow;
// RUN: sed 's/arith.subi %end, %begin/arith.addi %end, %begin/' %S/join-tiles.mlir | %{pass} 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT
// COUNT-COUNT-2: warning: not joined: the number of tiles of keys is not a difference of two
// a tile that sees no key multiplies keys that have to be hidden from it;
// RUN: sed '/key_range/s/causal = true/right = 2/' %S/join-tiles.mlir | %{pass} 2>&1 >/dev/null | FileCheck %s --check-prefix=MASK
// MASK-COUNT-2: warning: not joined: the first scores are not masked by the mask of the range of keys: a tile that sees none would see some
// RUN: sed 's/arith.ceildivui %hi, /arith.ceildivui %keys, /' %S/join-tiles.mlir | %{pass} 2>&1 >/dev/null | FileCheck %s --check-prefix=MASK
// the end of a tile stands after the beginning of the next, whose fragments take the
// registers.
// RUN: sed 's/%done, %lse = kvbuffer.softmax_finish %r#0,/%more = kvbuffer.mma %qf, %x, %r#0 {transpose_b} : !a, !b, !acc\n %done, %lse = kvbuffer.softmax_finish %more,/' %S/join-tiles.mlir | %{pass} 2>&1 >/dev/null | FileCheck %s --check-prefix=MORE
// MORE-COUNT-2: warning: not joined: a tile's end needs more of its beginning than scalars

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [16, 8, 16], producers = 4, overlap_products = true, tiles = static, join_tiles = true>
!acc = !kvbuffer.fragment<64x16xf32, acc>
gpu.module @m {
  // expected-warning @below {{not joined: there is no loop over tiles}}
  gpu.func @none() kernel attributes {kvbuffer.schedule = #schedule} {
    gpu.return
  }

  // expected-warning @below {{not joined: the loop over tiles carries values}}
  gpu.func @carries(%n: index, %zero: !acc, %a: !kvbuffer.fragment<64x16xbf16, a>, %b: !kvbuffer.fragment<16x16xbf16, b>) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %sum = scf.for %tile = %c0 to %n step %c1 iter_args(%acc = %zero) -> !acc {
      %next = kvbuffer.mma %a, %b, %acc {transpose_b} : !kvbuffer.fragment<64x16xbf16, a>, !kvbuffer.fragment<16x16xbf16, b>, !acc
      scf.yield %next : !acc
    }
    gpu.return
  }

  // Two products of matrices and no softmax between them.
  // expected-warning @below {{not joined: a tile is not a branch on its rows around a branch on its keys, as kvbuf-overlap-products leaves them}}
  gpu.func @products(%n: index, %zero: !acc, %a: !kvbuffer.fragment<64x16xbf16, a>, %b: !kvbuffer.fragment<16x16xbf16, b>, %out: !kvbuffer.tile<64x16xf32>) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %tile = %c0 to %n step %c1 {
      %first = kvbuffer.mma %a, %b, %zero {transpose_b} : !kvbuffer.fragment<64x16xbf16, a>, !kvbuffer.fragment<16x16xbf16, b>, !acc
      %second = kvbuffer.mma %a, %b, %first {transpose_b} : !kvbuffer.fragment<64x16xbf16, a>, !kvbuffer.fragment<16x16xbf16, b>, !acc
      kvbuffer.fragment_store %second, %out : !acc, !kvbuffer.tile<64x16xf32>
    }
    gpu.return
  }
}
