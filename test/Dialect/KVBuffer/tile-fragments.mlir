// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-tile-fragments)))' --split-input-file --verify-diagnostics | FileCheck %s

#qbuf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 64, WN = 64, BK = 32, num_threads = 32, depth = 32, stages = 1>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 32, WN = 32, BK = 32, num_threads = 32, depth = 32, stages = 2>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 32, WN = 32, BK = 32, num_threads = 32, depth = 32, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 32, mma_shape = [16, 8, 16]>
gpu.module @m {
  // K is read along its columns, V along its rows, in steps of 16; what is in
  // registers already is sliced.
  // CHECK-LABEL: gpu.func @steps
  // CHECK-SAME:    %[[QS:[^:]*]]: !kvbuffer.staged<#qbuf>, %[[KS:[^:]*]]: !kvbuffer.staged<#kbuf>, %[[VS:[^:]*]]: !kvbuffer.staged<#vbuf>, %[[P:[^:]*]]: !kvbuffer.fragment<64x32xbf16, a>, %[[S:[^:]*]]: !kvbuffer.fragment<64x32xf32, acc>
  // CHECK-NEXT:    %[[Q0:.*]] = kvbuffer.fragment_load %[[QS]][0, 0] : <#qbuf> -> <64x16xbf16, a>
  // CHECK-NEXT:    %[[K0:.*]] = kvbuffer.fragment_load %[[KS]][0, 0] : <#kbuf> -> <32x16xbf16, b>
  // CHECK-NEXT:    %[[S0:.*]] = kvbuffer.mma %[[Q0]], %[[K0]], %[[S]] {transpose_b}
  // CHECK-NEXT:    %[[Q1:.*]] = kvbuffer.fragment_load %[[QS]][0, 16] : <#qbuf> -> <64x16xbf16, a>
  // CHECK-NEXT:    %[[K1:.*]] = kvbuffer.fragment_load %[[KS]][0, 16] : <#kbuf> -> <32x16xbf16, b>
  // CHECK-NEXT:    %[[S1:.*]] = kvbuffer.mma %[[Q1]], %[[K1]], %[[S0]] {transpose_b}
  // CHECK-NEXT:    %[[P0:.*]] = kvbuffer.fragment_slice %[[P]][0, 0] : <64x32xbf16, a> -> <64x16xbf16, a>
  // CHECK-NEXT:    %[[V0:.*]] = kvbuffer.fragment_load %[[VS]][0, 0] : <#vbuf> -> <16x32xbf16, b>
  // CHECK-NEXT:    %[[O0:.*]] = kvbuffer.mma %[[P0]], %[[V0]], %[[S1]] :
  // CHECK-NEXT:    %[[P1:.*]] = kvbuffer.fragment_slice %[[P]][0, 16] : <64x32xbf16, a> -> <64x16xbf16, a>
  // CHECK-NEXT:    %[[V1:.*]] = kvbuffer.fragment_load %[[VS]][16, 0] : <#vbuf> -> <16x32xbf16, b>
  // CHECK-NEXT:    kvbuffer.mma %[[P1]], %[[V1]], %[[O0]] :
  // CHECK-NEXT:    gpu.return
  gpu.func @steps(%qs: !kvbuffer.staged<#qbuf>, %ks: !kvbuffer.staged<#kbuf>, %vs: !kvbuffer.staged<#vbuf>, %p: !kvbuffer.fragment<64x32xbf16, a>, %s: !kvbuffer.fragment<64x32xf32, acc>) kernel attributes {kvbuffer.schedule = #schedule} {
    %q = kvbuffer.fragment_load %qs[0, 0] : !kvbuffer.staged<#qbuf> -> !kvbuffer.fragment<64x32xbf16, a>
    %k = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<32x32xbf16, b>
    %v = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !kvbuffer.fragment<32x32xbf16, b>
    %s0 = kvbuffer.mma %q, %k, %s {transpose_b} : !kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.fragment<32x32xbf16, b>, !kvbuffer.fragment<64x32xf32, acc>
    %o = kvbuffer.mma %p, %v, %s0 : !kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.fragment<32x32xbf16, b>, !kvbuffer.fragment<64x32xf32, acc>
    gpu.return
  }

  // A fragment loaded outside of the loop stays in registers.
  // CHECK-LABEL: gpu.func @outside
  // CHECK:         %[[Q:.*]] = kvbuffer.fragment_load %{{.*}} -> <64x32xbf16, a>
  // CHECK:         scf.for
  // CHECK-COUNT-2:   kvbuffer.fragment_slice %[[Q]]
  gpu.func @outside(%qs: !kvbuffer.staged<#qbuf>, %ks: !kvbuffer.staged<#kbuf>, %s: !kvbuffer.fragment<64x32xf32, acc>, %i: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %q = kvbuffer.fragment_load %qs[0, 0] : !kvbuffer.staged<#qbuf> -> !kvbuffer.fragment<64x32xbf16, a>
    scf.for %j = %i to %i step %i {
      %k = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<32x32xbf16, b>
      %s0 = kvbuffer.mma %q, %k, %s {transpose_b} : !kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.fragment<32x32xbf16, b>, !kvbuffer.fragment<64x32xf32, acc>
    }
    gpu.return
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 32, WN = 32, BK = 32, num_threads = 32, depth = 96, reg_chunk_depth = 64, stages = 2>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 32, WN = 32, BK = 32, num_threads = 32, depth = 96, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 32, mma_shape = [16, 8, 16], reg_chunk_depth = 64>
gpu.module @m {
  // K comes by chunks of 64 columns, the last has what is left; V as always. A
  // product into a part of the columns stays one.
  // CHECK-LABEL: gpu.func @chunks
  // CHECK-NEXT:    %[[Q0:.*]] = kvbuffer.fragment_slice %{{.*}}[0, 0] : <64x96xbf16, a> -> <64x64xbf16, a>
  // CHECK-NEXT:    %[[K0:.*]] = kvbuffer.fragment_load %{{.*}}[0, 0] : <#kbuf> -> <32x64xbf16, b>
  // CHECK-NEXT:    %[[S0:.*]] = kvbuffer.mma %[[Q0]], %[[K0]], %{{.*}} {transpose_b}
  // CHECK-NEXT:    %[[Q1:.*]] = kvbuffer.fragment_slice %{{.*}}[0, 64] : <64x96xbf16, a> -> <64x32xbf16, a>
  // CHECK-NEXT:    %[[K1:.*]] = kvbuffer.fragment_load %{{.*}}[0, 64] : <#kbuf> -> <32x32xbf16, b>
  // CHECK-NEXT:    kvbuffer.mma %[[Q1]], %[[K1]], %[[S0]] {transpose_b}
  // CHECK-COUNT-2: kvbuffer.mma {{.*}} {column = 32 : i64} : <64x16xbf16, a>, <16x32xbf16, b>, <64x96xf32, acc>
  // CHECK-NOT:     kvbuffer.mma
  gpu.func @chunks(%q: !kvbuffer.fragment<64x96xbf16, a>, %ks: !kvbuffer.staged<#kbuf>, %vs: !kvbuffer.staged<#vbuf>, %p: !kvbuffer.fragment<64x32xbf16, a>, %s: !kvbuffer.fragment<64x32xf32, acc>, %o: !kvbuffer.fragment<64x96xf32, acc>) kernel attributes {kvbuffer.schedule = #schedule} {
    %k = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<32x96xbf16, b>
    %v = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !kvbuffer.fragment<32x32xbf16, b>
    %s0 = kvbuffer.mma %q, %k, %s {transpose_b} : !kvbuffer.fragment<64x96xbf16, a>, !kvbuffer.fragment<32x96xbf16, b>, !kvbuffer.fragment<64x32xf32, acc>
    %o0 = kvbuffer.mma %p, %v, %o {column = 32 : i64} : !kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.fragment<32x32xbf16, b>, !kvbuffer.fragment<64x96xf32, acc>
    gpu.return
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 32, WN = 32, BK = 32, num_threads = 32, depth = 64, reg_chunk_depth = 24, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 32, mma_shape = [16, 8, 16]>
gpu.module @m {
  gpu.func @odd_chunk(%q: !kvbuffer.fragment<64x64xbf16, a>, %ks: !kvbuffer.staged<#kbuf>, %s: !kvbuffer.fragment<64x32xf32, acc>) kernel attributes {kvbuffer.schedule = #schedule} {
    %k = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<32x64xbf16, b>
    // expected-error @below {{has operand b in registers by reg_chunk_depth = 24 columns, which the matrix instruction's K = 16 does not divide}}
    %s0 = kvbuffer.mma %q, %k, %s {transpose_b} : !kvbuffer.fragment<64x64xbf16, a>, !kvbuffer.fragment<32x64xbf16, b>, !kvbuffer.fragment<64x32xf32, acc>
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{has no 'kvbuffer.schedule'}}
  gpu.func @unscheduled() kernel {
    gpu.return
  }
}

// -----

!a = !kvbuffer.fragment<64x24xbf16, a>
!b = !kvbuffer.fragment<32x24xbf16, b>
!s = !kvbuffer.fragment<64x32xf32, acc>
gpu.module @m {
  gpu.func @uneven(%q: !a, %k: !b, %s: !s) kernel attributes {kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 32, mma_shape = [16, 8, 16]>} {
    // expected-error @below {{contracts 24 elements, which the matrix instruction's K = 16 does not divide}}
    %s0 = kvbuffer.mma %q, %k, %s {transpose_b} : !a, !b, !s
    gpu.return
  }
}

// -----

// A kernel by lanes needs no schedule.
// CHECK-LABEL: gpu.func @lanes
gpu.module @m {
  gpu.func @lanes() kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>} {
    gpu.return
  }
}
