// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-distribute-fragments)))" --split-input-file | FileCheck %s
// Layouts that are there stay.
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-distribute-fragments,kvbuf-distribute-fragments)))" --split-input-file | FileCheck %s

// Weights are operands as they lie, in the natural order.
// CHECK-DAG: #[[ACC:.*]] = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [2, 1]>
// CHECK-DAG: #[[A:.*]] = #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [2, 1]>
// CHECK-DAG: #[[K:.*]] = #kvbuffer.mma<mma_sync, b, shape = [16, 8, 16], warps = [2, 1], transpose_b = true>
// CHECK-DAG: #[[V:.*]] = #kvbuffer.mma<mma_sync, b, shape = [16, 8, 16], warps = [2, 1]>
// CHECK-DAG: #[[ROW:.*]] = #kvbuffer.slice<row of #[[ACC]]>
#qbuf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 32, WN = 16, BK = 16, num_threads = 64, depth = 16>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 32, WN = 32, BK = 16, num_threads = 64, depth = 16>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 32, WN = 32, BK = 16, num_threads = 64, depth = 16>
!s = !kvbuffer.fragment<32x32xf32, acc>
!p = !kvbuffer.fragment<32x32xbf16, a>
!row = !kvbuffer.fragment<32x1xf32, row>
!acc = !kvbuffer.fragment<32x16xf32, acc>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @straight(
    gpu.func @straight(%qs: !kvbuffer.staged<#qbuf>, %ks: !kvbuffer.staged<#kbuf>, %vs: !kvbuffer.staged<#vbuf>, %n: index) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 16, warps = 2, mma_shape = [16, 8, 16]>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      // CHECK: kvbuffer.fragment_load {{.*}} -> <32x16xbf16, a, #[[A]]>
      %q = kvbuffer.fragment_load %qs[0, 0] : !kvbuffer.staged<#qbuf> -> !kvbuffer.fragment<32x16xbf16, a>
      // CHECK: kvbuffer.fragment_fill 0.000000e+00 : <32x16xf32, acc, #[[ACC]]>
      %o = kvbuffer.fragment_fill 0.0 : !acc
      %zero = kvbuffer.fragment_fill 0.0 : !s
      // CHECK: kvbuffer.fragment_fill 1.000000e+00 : <32x1xf32, row, #[[ROW]]>
      %m = kvbuffer.fragment_fill 1.0 : !row
      // CHECK: scf.for {{.*}} -> (!kvbuffer.fragment<32x16xf32, acc, #[[ACC]]>, !kvbuffer.fragment<32x1xf32, row, #[[ROW]]>, !kvbuffer.fragment<32x1xf32, row, #[[ROW]]>)
      %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %o, %max = %m, %sum = %m) -> (!acc, !row, !row) {
        // CHECK: kvbuffer.fragment_load {{.*}} -> <32x16xbf16, b, #[[K]]>
        %k = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<32x16xbf16, b>
        %s = kvbuffer.mma %q, %k, %zero {transpose_b} : !kvbuffer.fragment<32x16xbf16, a>, !kvbuffer.fragment<32x16xbf16, b>, !s
        // CHECK: kvbuffer.online_softmax {{.*}} -> <32x32xbf16, a, #[[A]]>
        // CHECK-NOT: kvbuffer.exchange
        %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %max, %sum {scale = 1.0 : f32} : !s, !row -> !p
        // CHECK: kvbuffer.fragment_load {{.*}} -> <32x16xbf16, b, #[[V]]>
        %v = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !kvbuffer.fragment<32x16xbf16, b>
        %acc1 = kvbuffer.mma %p, %v, %acc : !p, !kvbuffer.fragment<32x16xbf16, b>, !acc
        scf.yield %acc1, %m1, %l1 : !acc, !row, !row
      }
      gpu.return
    }
  }
}

// -----

// Transposed products: each word of the weights is transposed among the lanes,
// right where they are made. What a loop carries is the operand.
// CHECK-DAG: #[[ACC:.*]] = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 1], swapped = true>
// CHECK-DAG: #[[A:.*]] = #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [1, 1], swapped = true>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 32, WN = 32, BK = 16, num_threads = 32, depth = 16>
!s = !kvbuffer.fragment<8x32xf32, acc>
!p = !kvbuffer.fragment<8x32xbf16, a>
!acc = !kvbuffer.fragment<8x16xf32, acc>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @swapped(
    // CHECK-SAME:    %{{.*}}: !kvbuffer.fragment<8x32xf32, acc, #[[ACC]]>
    gpu.func @swapped(%s: !s, %vs: !kvbuffer.staged<#vbuf>, %tile: !kvbuffer.tile<8x16xbf16>, %n: index) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 8, BN = 32, BK = 16, warps = 1, mma_shape = [16, 8, 16], swap_a_b = true>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      // CHECK:      %[[P:.*]] = kvbuffer.fragment_convert {{.*}} -> <8x32xbf16, a, #[[ACC]]>
      // CHECK-NEXT: %[[MOVED:.*]] = kvbuffer.exchange %[[P]] : <8x32xbf16, a, #[[ACC]]> -> <8x32xbf16, a, #[[A]]>
      %p0 = kvbuffer.fragment_convert %s : !s -> !p
      %o = kvbuffer.fragment_fill 0.0 : !acc
      // CHECK: scf.for {{.*}}iter_args({{.*}}, %{{.*}} = %[[MOVED]])
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %o, %p = %p0) -> (!acc, !p) {
        // CHECK: %[[NEXT:.*]] = kvbuffer.exchange
        %p1 = kvbuffer.fragment_convert %s : !s -> !p
        %v = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !kvbuffer.fragment<32x16xbf16, b>
        // CHECK: kvbuffer.mma {{.*}} : <8x32xbf16, a, #[[A]]>
        %acc1 = kvbuffer.mma %p, %v, %acc : !p, !kvbuffer.fragment<32x16xbf16, b>, !acc
        // CHECK: scf.yield %{{.*}}, %[[NEXT]]
        scf.yield %acc1, %p1 : !acc, !p
      }
      // A store wants columns in a lane's words.
      // CHECK:      %[[O:.*]] = kvbuffer.fragment_convert {{.*}} -> <8x16xbf16, acc, #[[ACC]]>
      // CHECK-NEXT: %[[O1:.*]] = kvbuffer.exchange %[[O]] : <8x16xbf16, acc, #[[ACC]]> -> <8x16xbf16, acc, #[[A]]>
      // CHECK-NEXT: kvbuffer.fragment_store %[[O1]]
      %o16 = kvbuffer.fragment_convert %r#0 : !acc -> !kvbuffer.fragment<8x16xbf16, acc>
      kvbuffer.fragment_store %o16, %tile : !kvbuffer.fragment<8x16xbf16, acc>, !kvbuffer.tile<8x16xbf16>
      gpu.return
    }
  }
}

// -----

// MFMA's weights stand in another order than what comes from memory: so does the
// other operand, for each product its own.
// CHECK-DAG: #[[P:.*]] = #kvbuffer.mma<mfma, a, shape = [32, 32, 16], warps = [1, 1], swapped = true, order = [1, 2, 8, 4]>
// CHECK-DAG: #[[V:.*]] = #kvbuffer.mma<mfma, b, shape = [32, 32, 16], warps = [1, 1], swapped = true, order = [1, 2, 8, 4]>
// CHECK-DAG: #[[A:.*]] = #kvbuffer.mma<mfma, a, shape = [32, 32, 16], warps = [1, 1], swapped = true>
// CHECK-DAG: #[[B:.*]] = #kvbuffer.mma<mfma, b, shape = [32, 32, 16], warps = [1, 1], swapped = true>
#qbuf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [32, 32, 16], swizzle = [2, 0, 4], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 32, warp_size = 64>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [32, 32, 16], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 32, warp_size = 64>
!acc = !kvbuffer.fragment<32x32xf32, acc>
!a = !kvbuffer.fragment<32x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @orders(
    gpu.func @orders(%qs: !kvbuffer.staged<#qbuf>, %vs: !kvbuffer.staged<#vbuf>, %s: !acc) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>} {
      %q = kvbuffer.fragment_load %qs[0, 0] : !kvbuffer.staged<#qbuf> -> !a
      %v0 = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !b
      // CHECK: kvbuffer.mma {{.*}} : <32x32xbf16, a, #[[A]]>, <32x32xbf16, b, #[[B]]>
      %r0 = kvbuffer.mma %q, %v0, %s : !a, !b, !acc
      // CHECK: kvbuffer.fragment_convert {{.*}} -> <32x32xbf16, a, #[[P]]>
      %p = kvbuffer.fragment_convert %r0 : !acc -> !a
      %v1 = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !b
      // CHECK: kvbuffer.mma {{.*}} : <32x32xbf16, a, #[[P]]>, <32x32xbf16, b, #[[V]]>
      %r1 = kvbuffer.mma %p, %v1, %s : !a, !b, !acc
      gpu.return
    }
  }
}

// -----

// What a type says goes for its product: here another instruction and other warps
// than the schedule's.
// CHECK-DAG: #[[ACC:.*]] = #kvbuffer.mma<mfma, acc, shape = [16, 16, 32], warps = [2, 1], swapped = true>
// CHECK-DAG: #[[A:.*]] = #kvbuffer.mma<mfma, a, shape = [16, 16, 32], warps = [2, 1], swapped = true>
// CHECK-DAG: #[[OTHER:.*]] = #kvbuffer.mma<mfma, acc, shape = [32, 32, 16], warps = [1, 1], swapped = true>
#own = #kvbuffer.mma<mfma, acc, shape = [16, 16, 32], warps = [2, 1], swapped = true>
!acc = !kvbuffer.fragment<32x32xf32, acc, #own>
!a = !kvbuffer.fragment<32x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @own(
    gpu.func @own(%a: !a, %b: !b, %s: !acc) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>} {
      // CHECK: kvbuffer.mma {{.*}} : <32x32xbf16, a, #[[A]]>, {{.*}}, <32x32xf32, acc, #[[ACC]]>
      %r = kvbuffer.mma %a, %b, %s : !a, !b, !acc
      // CHECK: kvbuffer.fragment_fill 0.000000e+00 : <32x32xf32, acc, #[[OTHER]]>
      %zero = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<32x32xf32, acc>
      gpu.return
    }
  }
}

// -----

// Two warps share the columns of each row: they join the maximum before each step
// and the sum at the end, and P changes places.
// CHECK-DAG: #[[ACC:.*]] = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [2, 2]>
// CHECK-DAG: #[[A:.*]] = #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [2, 2]>
#kbuf = #kvbuffer.kv_buffer<32x16xbf16, BK = 16>
!s = !kvbuffer.fragment<32x32xf32, acc>
!p = !kvbuffer.fragment<32x32xbf16, a>
!row = !kvbuffer.fragment<32x1xf32, row>
!acc = !kvbuffer.fragment<32x16xf32, acc>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @shared(
    gpu.func @shared(%q: !kvbuffer.fragment<32x16xbf16, a>, %k: !kvbuffer.fragment<32x16xbf16, b>, %vs: !kvbuffer.staged<#kbuf>, %n: index) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 16, warps = 4, mma_shape = [16, 8, 16], warp_cols = 2>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %o = kvbuffer.fragment_fill 0.0 : !acc
      %zero = kvbuffer.fragment_fill 0.0 : !s
      %m = kvbuffer.fragment_fill 1.0 : !row
      %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %o, %max = %m, %sum = %m) -> (!acc, !row, !row) {
        // CHECK: %[[S:.*]] = kvbuffer.mma
        %s = kvbuffer.mma %q, %k, %zero {transpose_b} : !kvbuffer.fragment<32x16xbf16, a>, !kvbuffer.fragment<32x16xbf16, b>, !s
        // CHECK-NEXT: %[[TOP:.*]] = kvbuffer.row_reduce maximum %[[S]] : <32x32xf32, acc, #[[ACC]]>
        // CHECK-NEXT: %[[P:.*]], %{{.*}}, %{{.*}}, %{{.*}} = kvbuffer.online_softmax %[[S]], %{{.*}}, %{{.*}} row_max(%[[TOP]]) {{.*}} -> <32x32xbf16, a, #[[ACC]]>
        // CHECK-NEXT: %[[MOVED:.*]] = kvbuffer.exchange %[[P]] {{.*}} -> <32x32xbf16, a, #[[A]]>
        %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %max, %sum {scale = 1.0 : f32} : !s, !row -> !p
        %v = kvbuffer.fragment_load %vs[0, 0] contracted(rows) : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<32x16xbf16, b>
        %x = kvbuffer.rescale %acc, %f : !acc, !row
        // CHECK: kvbuffer.mma %[[MOVED]]
        %next = kvbuffer.mma %p, %v, %x : !p, !kvbuffer.fragment<32x16xbf16, b>, !acc
        scf.yield %next, %m1, %l1 : !acc, !row, !row
      }
      // CHECK: %[[WHOLE:.*]] = kvbuffer.warp_reduce %{{.*}}#2
      // CHECK-NEXT: kvbuffer.softmax_finish %{{.*}}#0, %{{.*}}#1, %[[WHOLE]]
      %out, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 1.0 : f32} : !acc, !row
      gpu.return
    }
  }
}

// -----

// Elements that are narrower in LDS are contracted, and are columns of the
// product, in the order in which lanes read several at once; accumulators of
// scores keep theirs.
// CHECK-DAG: #[[S:.*]] = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 1], swapped = true>
// CHECK-DAG: #[[Q:.*]] = #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [1, 1], swapped = true, order = [1, 4, 8, 2]>
// CHECK-DAG: #[[K:.*]] = #kvbuffer.mma<mma_sync, b, shape = [16, 8, 16], warps = [1, 1], transpose_b = true, swapped = true, order = [1, 4, 8, 2]>
// CHECK-DAG: #[[V:.*]] = #kvbuffer.mma<mma_sync, b, shape = [16, 8, 16], warps = [1, 1], swapped = true, columns = [2, 4, 8, 1]>
// CHECK-DAG: #[[O:.*]] = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 1], swapped = true, columns = [2, 4, 8, 1]>
#kbuf = #kvbuffer.kv_buffer<k, f8E4M3FN, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16>
#vbuf = #kvbuffer.kv_buffer<v, f8E4M3FN, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16>
!tile = !kvbuffer.tile<8x16xbf16>
!acc = !kvbuffer.fragment<8x16xf32, acc>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @narrow(
    gpu.func @narrow(%q: !tile, %ks: !kvbuffer.staged<#kbuf>, %vs: !kvbuffer.staged<#vbuf>, %s: !acc, %p: !kvbuffer.fragment<8x16xbf16, a>, %o: !acc) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 8, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], swap_a_b = true>} {
      %qf = kvbuffer.tile_fragment %q : !tile -> !kvbuffer.fragment<8x16xbf16, a>
      %k = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<16x16xbf16, b>
      // CHECK: kvbuffer.mma {{.*}} : <8x16xbf16, a, #[[Q]]>, <16x16xbf16, b, #[[K]]>, <8x16xf32, acc, #[[S]]>
      %r0 = kvbuffer.mma %qf, %k, %s {transpose_b} : !kvbuffer.fragment<8x16xbf16, a>, !kvbuffer.fragment<16x16xbf16, b>, !acc
      %v = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !kvbuffer.fragment<16x16xbf16, b>
      // CHECK: kvbuffer.mma {{.*}}<16x16xbf16, b, #[[V]]>, <8x16xf32, acc, #[[O]]>
      %r1 = kvbuffer.mma %p, %v, %o : !kvbuffer.fragment<8x16xbf16, a>, !kvbuffer.fragment<16x16xbf16, b>, !acc
      gpu.return
    }
  }
}

// -----

// Partial results lie in memory as those who store them have them: who loads
// them, the same.
// CHECK-DAG: #[[OWN:.*]] = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 1], swapped = true, columns = [2, 4, 8, 1]>
#own = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 1], swapped = true, columns = [2, 4, 8, 1]>
module attributes {kvbuffer.target = "sm_90"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @parts(
    gpu.func @parts(%parts: memref<4x8x36xf32>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.grid = [1, 1, 1], kvbuffer.schedule = #kvbuffer.schedule<BM = 8, BN = 16, BK = 64, warps = 1, mma_shape = [16, 8, 16], swap_a_b = true>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %a = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<8x32xf32, acc, #own>
      %m = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<8x1xf32, row>
      kvbuffer.partial_store %a, %m, %m into %parts[%c0] valid(%c8) : !kvbuffer.fragment<8x32xf32, acc, #own>, !kvbuffer.fragment<8x1xf32, row>, memref<4x8x36xf32>
      // CHECK: kvbuffer.partial_load {{.*}} -> <8x32xf32, acc, #[[OWN]]>
      %b, %n, %l = kvbuffer.partial_load %parts[%c1] valid(%c8) : memref<4x8x36xf32> -> !kvbuffer.fragment<8x32xf32, acc>, !kvbuffer.fragment<8x1xf32, row>
      gpu.return
    }
  }
}

// -----

// What is joined of partial results: a lane has 16 bytes of one row, whatever
// columns these are, and as many rows are side by side as there are. Memory has
// the columns in the order in which the product's lanes store 16 bytes at once.
// What is stored again lies as it is joined.
// CHECK-DAG: #[[ACC:.*]] = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 1], swapped = true>
// CHECK-DAG: #[[JOINED:.*]] = #kvbuffer.blocked<lanes = [4, 8], width = 4, columns = [8, 16, 1, 2, 4]>
// CHECK-DAG: #[[ROW:.*]] = #kvbuffer.slice<row of #[[JOINED]]>
module attributes {kvbuffer.target = "sm_90"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @joined(
    gpu.func @joined(%parts: memref<2x?x4x36xf32>, %n: index) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.grid = [1, 1, 1], kvbuffer.schedule = #kvbuffer.schedule<BM = 8, BN = 16, BK = 64, warps = 1, mma_shape = [16, 8, 16], swap_a_b = true>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %a = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<8x32xf32, acc>
      %m = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<8x1xf32, row>
      // CHECK: kvbuffer.partial_store {{.*}} {columns = array<i64: 8, 16, 1, 2, 4>} : <8x32xf32, acc, #[[ACC]]>
      kvbuffer.partial_store %a, %m, %m into %parts[%c0, %n] valid(%c4) : !kvbuffer.fragment<8x32xf32, acc>, !kvbuffer.fragment<8x1xf32, row>, memref<2x?x4x36xf32>
      // CHECK: kvbuffer.partial_join {{.*}} {columns = array<i64: 8, 16, 1, 2, 4>, scale = 1.000000e+00 : f32} : memref<2x?x4x36xf32> -> <8x32xf32, acc, #[[JOINED]]>, <8x1xf32, row, #[[ROW]]>
      %b, %r, %l = kvbuffer.partial_join %parts[%c0, %c0] of %n step 1 valid(%c4) {scale = 1.0 : f32} : memref<2x?x4x36xf32> -> !kvbuffer.fragment<8x32xf32, acc>, !kvbuffer.fragment<8x1xf32, row>
      // CHECK: kvbuffer.partial_store {{.*}} {columns = array<i64: 8, 16, 1, 2, 4>} : <8x32xf32, acc, #[[JOINED]]>
      kvbuffer.partial_store %b, %r, %l into %parts[%c1, %c0] valid(%c4) : !kvbuffer.fragment<8x32xf32, acc>, !kvbuffer.fragment<8x1xf32, row>, memref<2x?x4x36xf32>
      gpu.return
    }
  }
}

// -----

// Waves of 64 lanes; a product whose lanes have one column of every sixteen.
// Eight rows of a wave have eight lanes each.
// CHECK-DAG: #[[WAVE:.*]] = #kvbuffer.blocked<lanes = [8, 8], width = 4, columns = [16, 32, 1, 2, 4, 8]>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @waves(
    gpu.func @waves(%parts: memref<?x5x132xf32>, %n: index) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.grid = [1, 1, 1], kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 64, warps = 1, mma_shape = [16, 16, 16]>} {
      %c0 = arith.constant 0 : index
      %c5 = arith.constant 5 : index
      %a = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<16x128xf32, acc>
      %m = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x1xf32, row>
      // CHECK: kvbuffer.partial_store {{.*}} {columns = array<i64: 16, 32, 1, 2, 4, 8>} : <16x128xf32, acc, #mma_acc>
      kvbuffer.partial_store %a, %m, %m into %parts[%n] valid(%c5) : !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>, memref<?x5x132xf32>
      // CHECK: kvbuffer.partial_join {{.*}} -> <16x128xf32, acc, #[[WAVE]]>
      %b, %r, %l = kvbuffer.partial_join %parts[%c0] of %n step 1 valid(%c5) {scale = 1.0 : f32} : memref<?x5x132xf32> -> !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>
      gpu.return
    }
  }
}

// -----

// Warps that share rows have them as they were stored, and memory its natural
// order.
module attributes {kvbuffer.target = "sm_90"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @shared(
    gpu.func @shared(%parts: memref<?x16x132xf32>, %n: index) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.grid = [1, 1, 1], kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 64, warps = 2, warp_cols = 2, mma_shape = [16, 8, 16]>} {
      %c0 = arith.constant 0 : index
      %a = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<16x128xf32, acc>
      %m = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x1xf32, row>
      // CHECK: kvbuffer.partial_store {{.*}} valid(%{{.*}}) : <16x128xf32, acc, #mma_acc>
      kvbuffer.partial_store %a, %m, %m into %parts[%n] valid(%n) : !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>, memref<?x16x132xf32>
      // CHECK: kvbuffer.partial_join {{.*}} -> <16x128xf32, acc, #mma_acc>
      %b, %r, %l = kvbuffer.partial_join %parts[%c0] of %n step 1 valid(%n) {scale = 1.0 : f32} : memref<?x16x132xf32> -> !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>
      gpu.return
    }
  }
}

// -----

// Elements that are narrower in LDS, of which a lane reads those of two
// instructions at once: both operands lie for groups of two. The accumulators of
// a product that begins as another one does are made anew.
// CHECK-DAG: #[[ACC:.*]] = #kvbuffer.mma<mfma, acc, shape = [32, 32, 16], warps = [1, 1], swapped = true>
// CHECK-DAG: #[[PAIR:.*]] = #kvbuffer.mma<mfma, acc, shape = [32, 32, 16], group = 2, warps = [1, 1], swapped = true>
// CHECK-DAG: #[[PAIRQ:.*]] = #kvbuffer.mma<mfma, a, shape = [32, 32, 16], group = 2, warps = [1, 1], swapped = true>
// CHECK-DAG: #[[PAIRK:.*]] = #kvbuffer.mma<mfma, b, shape = [32, 32, 16], group = 2, warps = [1, 1], transpose_b = true, swapped = true>
#kbuf = #kvbuffer.kv_buffer<k, f8E4M3FN, double_buffered, mma_shape = [32, 32, 16], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 32, warp_size = 64>
#wide = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [32, 32, 16], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 32, warp_size = 64>
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>
!q = !kvbuffer.fragment<32x32xbf16, a>
!k = !kvbuffer.fragment<32x32xbf16, b>
!acc = !kvbuffer.fragment<32x32xf32, acc>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @pairs(
    gpu.func @pairs(%q: !kvbuffer.tile<32x32xbf16>, %ks: !kvbuffer.staged<#kbuf>, %ws: !kvbuffer.staged<#wide>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %zero = kvbuffer.fragment_fill 0.0 : !acc
      %qf = kvbuffer.tile_fragment %q : !kvbuffer.tile<32x32xbf16> -> !q
      %k = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !k
      // CHECK: kvbuffer.mma {{.*}} : <32x32xbf16, a, #[[PAIRQ]]>, <32x32xbf16, b, #[[PAIRK]]>, <32x32xf32, acc, #[[PAIR]]>
      %s = kvbuffer.mma %qf, %k, %zero {transpose_b} : !q, !k, !acc
      %other = kvbuffer.tile_fragment %q : !kvbuffer.tile<32x32xbf16> -> !q
      %w = kvbuffer.fragment_load %ws[0, 0] : !kvbuffer.staged<#wide> -> !k
      // CHECK: kvbuffer.mma {{.*}}, <32x32xf32, acc, #[[ACC]]>
      %o = kvbuffer.mma %other, %w, %zero {transpose_b} : !q, !k, !acc
      gpu.return
    }

    // An operand that a product of elements of 16 bits has, too, lies for one
    // instruction.
    // CHECK-LABEL: gpu.func @shared(
    gpu.func @shared(%q: !kvbuffer.tile<32x32xbf16>, %ks: !kvbuffer.staged<#kbuf>, %ws: !kvbuffer.staged<#wide>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %zero = kvbuffer.fragment_fill 0.0 : !acc
      %qf = kvbuffer.tile_fragment %q : !kvbuffer.tile<32x32xbf16> -> !q
      %k = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !k
      // CHECK: kvbuffer.mma {{.*}}, <32x32xf32, acc, #[[ACC]]>
      %s = kvbuffer.mma %qf, %k, %zero {transpose_b} : !q, !k, !acc
      %w = kvbuffer.fragment_load %ws[0, 0] : !kvbuffer.staged<#wide> -> !k
      // CHECK: kvbuffer.mma {{.*}}, <32x32xf32, acc, #[[ACC]]>
      %o = kvbuffer.mma %qf, %w, %zero {transpose_b} : !q, !k, !acc
      gpu.return
    }
  }
}

// -----

// What goes from slot to slot lies as lanes store most at once, 8 elements of 16 bits
// each, a row of a block by 8 lanes; each warp has rows of its own. What products or a
// softmax make lies as they do.
// CHECK: #[[BLOCKED:.*]] = #kvbuffer.blocked<warps = 2, lanes = [4, 8], width = 8>
// CHECK: #[[A:.*]] = #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [2, 1]>
#narrow = #kvbuffer.kv_buffer<32x128xf8E4M3FN, stages = 2, BK = 64, swizzle = [2, 0, 3]>
#wide = #kvbuffer.kv_buffer<32x128xbf16, stages = 2, BK = 64, swizzle = [3, 0, 3]>
#weights = #kvbuffer.kv_buffer<32x64xbf16, stages = 2, BK = 64, swizzle = [3, 0, 3]>
!wide = !kvbuffer.fragment<32x128xbf16, a>
!p = !kvbuffer.fragment<32x64xbf16, a>
!s = !kvbuffer.fragment<32x64xf32, acc>
!row = !kvbuffer.fragment<32x1xf32, row>
module attributes {kvbuffer.target = "sm_90"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @put(
    gpu.func @put(%n: index) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 64, warps = 2, mma_shape = [16, 8, 16]>} {
      %b0 = kvbuffer.alloc : !kvbuffer.buffer<#narrow>
      %b1 = kvbuffer.alloc : !kvbuffer.buffer<#wide>
      %b2 = kvbuffer.alloc : !kvbuffer.buffer<#weights>
      %from = kvbuffer.ring %b0 from @load to [@widen] : !kvbuffer.buffer<#narrow>
      %to = kvbuffer.ring %b1 from @widen to [@read] : !kvbuffer.buffer<#wide>
      %ps = kvbuffer.ring %b2 from @widen to [@read] : !kvbuffer.buffer<#weights>
      kvbuffer.teams {
        kvbuffer.team @widen warps(2) {
          %staged = kvbuffer.ring_wait %from[%n] : !kvbuffer.ring<#narrow>
          // CHECK: %[[F:.*]] = kvbuffer.fragment_load {{.*}} -> <32x128xbf16, a, #[[BLOCKED]]>
          %f = kvbuffer.fragment_load %staged[0, 0] contracted(cols) : !kvbuffer.staged<#narrow> -> !wide
          // CHECK: kvbuffer.ring_put %[[F]] into
          kvbuffer.ring_put %f into %to[%n] : !wide, !kvbuffer.ring<#wide>
          %s = kvbuffer.fragment_fill 1.0 : !s
          %m = kvbuffer.fragment_fill 1.0 : !row
          // CHECK: kvbuffer.online_softmax {{.*}} -> <32x64xbf16, a, #[[A]]>
          %p, %m1, %l1, %r = kvbuffer.online_softmax %s, %m, %m {scale = 1.0 : f32} : !s, !row -> !p
          kvbuffer.ring_put %p into %ps[%n] : !p, !kvbuffer.ring<#weights>
        }
        kvbuffer.team @read warps(2) {
        }
        kvbuffer.team @load warps(1) {
        }
      }
      gpu.return
    }
  }
}

// -----

// What groups of warps multiply is of their instruction, for bytes, too; what a warp
// multiplies beside them for itself is of one of as many columns.
// CHECK-DAG: #[[S:.*]] = #kvbuffer.mma<wgmma, acc, shape = [64, 8, 16], warps = [4, 1]>
// CHECK-DAG: #[[Q:.*]] = #kvbuffer.mma<wgmma, a, shape = [64, 8, 16], warps = [4, 1]>
// CHECK-DAG: #[[BYTES:.*]] = #kvbuffer.mma<wgmma, acc, shape = [64, 8, 32], warps = [4, 1]>
// CHECK-DAG: #[[OWN:.*]] = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [4, 1]>
#keys = #kvbuffer.kv_buffer<32x64xbf16, BK = 64, swizzle = [3, 0, 3]>
#bytes = #kvbuffer.kv_buffer<32x64xf8E4M3FN, BK = 64, swizzle = [2, 0, 3]>
!q = !kvbuffer.fragment<64x64xbf16, a>
!k = !kvbuffer.fragment<32x64xbf16, b>
!s = !kvbuffer.fragment<64x32xf32, acc>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @groups(
    gpu.func @groups(%qs: !kvbuffer.staged<#keys>, %ks: !kvbuffer.staged<#keys>, %qb: !kvbuffer.fragment<64x64xf8E4M3FN, a>, %bs: !kvbuffer.staged<#bytes>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, warps = 4, mma_shape = [64, 8, 16]>} {
      // CHECK: %[[QF:.*]] = kvbuffer.fragment_fill 1.000000e+00 : <64x64xbf16, a, #[[Q]]>
      %q = kvbuffer.fragment_fill 1.0 : !q
      // CHECK: kvbuffer.mma_start %[[QF]], {{.*}} -> <64x32xf32, #[[S]]>
      %p = kvbuffer.mma_start %q, %ks {transpose_b} : !q, !kvbuffer.staged<#keys> -> !kvbuffer.pending<64x32xf32>
      %s = kvbuffer.mma_wait %p {younger = 0 : i64} : !kvbuffer.pending<64x32xf32>
      // CHECK: kvbuffer.mma_start {{.*}} -> <64x32xf32, #[[BYTES]]>
      %b = kvbuffer.mma_start %qb, %bs {transpose_b} : !kvbuffer.fragment<64x64xf8E4M3FN, a>, !kvbuffer.staged<#bytes> -> !kvbuffer.pending<64x32xf32>
      %t = kvbuffer.mma_wait %b {younger = 0 : i64} : !kvbuffer.pending<64x32xf32>
      %q1 = kvbuffer.fragment_fill 1.0 : !q
      %k1 = kvbuffer.fragment_fill 1.0 : !k
      %zero = kvbuffer.fragment_fill 0.0 : !s
      // CHECK: kvbuffer.mma {{.*}} <64x32xf32, acc, #[[OWN]]>
      %u = kvbuffer.mma %q1, %k1, %zero {transpose_b} : !q, !k, !s
      gpu.return
    }
  }
}

// -----

// An instruction for each product: what the one makes changes places to be what the
// other contracts.
// CHECK-DAG: #[[S:.*]] = #kvbuffer.mma<mfma, acc, shape = [32, 32, 16], warps = [1, 1], swapped = true>
// CHECK-DAG: #[[P:.*]] = #kvbuffer.mma<mfma, a, shape = [16, 16, 32], warps = [1, 1], swapped = true>
// CHECK-DAG: #[[O:.*]] = #kvbuffer.mma<mfma, acc, shape = [16, 16, 32], warps = [1, 1], swapped = true>
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, scores = #kvbuffer.instruction<mfma, [32, 32, 16]>, values = #kvbuffer.instruction<mfma, [16, 16, 32]>, swap_a_b = true>
!acc = !kvbuffer.fragment<32x32xf32, acc>
!a = !kvbuffer.fragment<32x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @each(
    gpu.func @each(%q: !a, %k: !b, %v: !b) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %zero = kvbuffer.fragment_fill 0.0 : !acc
      %none = kvbuffer.fragment_fill 0.0 : !acc
      // CHECK: kvbuffer.mma {{.*}} {transpose_b} : {{.*}}, {{.*}}, <32x32xf32, acc, #[[S]]>
      %s = kvbuffer.mma %q, %k, %zero {transpose_b} : !a, !b, !acc
      %p = kvbuffer.fragment_convert %s : !acc -> !a
      // CHECK: kvbuffer.exchange {{.*}} -> <32x32xbf16, a, #[[P]]>
      // CHECK: kvbuffer.mma {{.*}}, {{.*}}, {{.*}} : <32x32xbf16, a, #[[P]]>, {{.*}}, <32x32xf32, acc, #[[O]]>
      %o = kvbuffer.mma %p, %v, %none : !a, !b, !acc
      gpu.return
    }
  }
}
