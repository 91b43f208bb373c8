// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-tile-fragments)))' --split-input-file | FileCheck %s

// A layout that the program names is the step, and that of the parts.
#acc = #kvbuffer.mma<mfma, acc, shape = [16, 16, 32], warps = [1, 1]>
#a = #kvbuffer.mma<mfma, a, shape = [16, 16, 32], warps = [1, 1]>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @named
    // CHECK-COUNT-2: kvbuffer.mma {{.*}} : <32x32xbf16, a, #mma_a>, <32x32xbf16, b>, <32x32xf32, acc, #mma_acc>
    // CHECK-NOT:     kvbuffer.mma
    gpu.func @named(%a: !kvbuffer.fragment<32x64xbf16, a, #a>, %b: !kvbuffer.fragment<64x32xbf16, b>, %s: !kvbuffer.fragment<32x32xf32, acc, #acc>) kernel attributes {kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16]>} {
      %o = kvbuffer.mma %a, %b, %s : !kvbuffer.fragment<32x64xbf16, a, #a>, !kvbuffer.fragment<64x32xbf16, b>, !kvbuffer.fragment<32x32xf32, acc, #acc>
      gpu.return
    }
  }
}

// -----

// Elements that are narrower in LDS: a lane reads those of two instructions at
// once, if they lie in one block, and those of a chunk if there is one. What is
// contracted along rows, and what is as wide in LDS, comes for one instruction.
#kbuf = #kvbuffer.kv_buffer<k, f8E4M3FN, double_buffered, mma_shape = [32, 32, 16], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 64, warp_size = 64>
#short = #kvbuffer.kv_buffer<k, f8E4M3FN, double_buffered, mma_shape = [32, 32, 16], BN = 32, WN = 32, BK = 16, num_threads = 64, depth = 64, warp_size = 64>
#chunks = #kvbuffer.kv_buffer<k, f8E4M3FN, double_buffered, mma_shape = [32, 32, 16], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 64, reg_chunk_depth = 16, warp_size = 64>
#wide = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [32, 32, 16], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 64, warp_size = 64>
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>
!q = !kvbuffer.fragment<32x64xbf16, a>
!k = !kvbuffer.fragment<32x64xbf16, b>
!s = !kvbuffer.fragment<32x32xf32, acc>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @narrow
    // CHECK-COUNT-2: kvbuffer.mma {{.*}} : <32x32xbf16, a>, <32x32xbf16, b>
    // CHECK-NOT:     kvbuffer.mma
    gpu.func @narrow(%q: !q, %ks: !kvbuffer.staged<#kbuf>, %s: !s) kernel attributes {kvbuffer.schedule = #schedule} {
      %k = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !k
      %o = kvbuffer.mma %q, %k, %s {transpose_b} : !q, !k, !s
      gpu.return
    }

    // CHECK-LABEL: gpu.func @short
    // CHECK-COUNT-4: kvbuffer.mma {{.*}} : <32x16xbf16, a>, <32x16xbf16, b>
    // CHECK-NOT:     kvbuffer.mma
    gpu.func @short(%q: !q, %ks: !kvbuffer.staged<#short>, %s: !s) kernel attributes {kvbuffer.schedule = #schedule} {
      %k = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#short> -> !k
      %o = kvbuffer.mma %q, %k, %s {transpose_b} : !q, !k, !s
      gpu.return
    }

    // CHECK-LABEL: gpu.func @chunks
    // CHECK-COUNT-4: kvbuffer.mma {{.*}} : <32x16xbf16, a>, <32x16xbf16, b>
    // CHECK-NOT:     kvbuffer.mma
    gpu.func @chunks(%q: !q, %ks: !kvbuffer.staged<#chunks>, %s: !s) kernel attributes {kvbuffer.schedule = #schedule} {
      %k = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#chunks> -> !k
      %o = kvbuffer.mma %q, %k, %s {transpose_b} : !q, !k, !s
      gpu.return
    }

    // CHECK-LABEL: gpu.func @wide
    // CHECK-COUNT-4: kvbuffer.mma {{.*}} : <32x16xbf16, a>, <32x16xbf16, b>
    // CHECK-NOT:     kvbuffer.mma
    gpu.func @wide(%q: !q, %ks: !kvbuffer.staged<#wide>, %s: !s) kernel attributes {kvbuffer.schedule = #schedule} {
      %k = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#wide> -> !k
      %o = kvbuffer.mma %q, %k, %s {transpose_b} : !q, !k, !s
      gpu.return
    }
  }
}
