// Products of views: descriptors of the slot, steps from the view's place on. A
// part of a slot that a fragment is loaded from becomes such a view.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-async-products)))" | FileCheck %s --check-prefix=VIEW
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-async-products),convert-kvbuffer-to-gpu))" | FileCheck %s

#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, warps = 4, mma_shape = [64, 8, 16], producers = 4>
#abuf = #kvbuffer.kv_buffer<64x64xbf16, swizzle = [3, 0, 3]>
// Two blocks of 64 rows of 128 bytes: 8192 bytes, 512 units of 16.
#buf = #kvbuffer.kv_buffer<64x128xbf16, BK = 64, swizzle = [3, 0, 3]>
!in = memref<?x?xbf16, strided<[?, 1]>>
!a = !kvbuffer.fragment<64x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
!acc = !kvbuffer.fragment<64x64xf32, acc>

module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @k
    gpu.func @k(%x: !in {kvbuffer.name = "x", kvbuffer.shape = ["m", "k"]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %m = memref.dim %x, %c0 : !in
      %n = memref.dim %x, %c1 : !in
      %abuf = kvbuffer.alloc : !kvbuffer.buffer<#abuf>
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %aring = kvbuffer.ring %abuf from @producers to [@consumers] : !kvbuffer.buffer<#abuf>
      %ring = kvbuffer.ring %buf from @producers to [@consumers] : !kvbuffer.buffer<#buf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
          %as = kvbuffer.ring_wait %aring[%c0] : !kvbuffer.ring<#abuf>
          // VIEW: %[[S:.*]] = kvbuffer.ring_wait %ring_{{[0-9]+}}[
          %s = kvbuffer.ring_wait %ring[%c0] : !kvbuffer.ring<#buf>
          %af = kvbuffer.fragment_load %as[0, 0] : !kvbuffer.staged<#abuf> -> !a
          %zero = kvbuffer.fragment_fill 0.0 : !acc
          // Columns 64 to 127, contracted: the second block, 32 bytes a step.
          // VIEW: %[[V:.*]] = kvbuffer.staged_view %[[S]][0, 64] : <#{{.*}}> -> <#{{.*}}, 64x64 at [0, 64]>
          // VIEW: kvbuffer.mma_start %{{.*}}, %[[V]] {transpose_b}
          // CHECK: kvbuffer.wgmma
          // CHECK-SAME: b_steps = array<i64: 512, 514, 516, 518>
          %v = kvbuffer.staged_view %s[0, 64] : !kvbuffer.staged<#buf> -> !kvbuffer.staged<#buf, 64x64 at [0, 64]>
          %vf = kvbuffer.fragment_load %v[0, 0] contracted(cols) : !kvbuffer.staged<#buf, 64x64 at [0, 64]> -> !b
          %p = kvbuffer.mma %af, %vf, %zero {transpose_b} : !a, !b, !acc
          // Rows 16 to 47 of the same columns, contracted: 16 rows of 128 bytes a step.
          // VIEW: %[[W:.*]] = kvbuffer.staged_view %[[S]][16, 64] : <#{{.*}}> -> <#{{.*}}, 32x64 at [16, 64]>
          // VIEW: %[[A:.*]] = kvbuffer.staged_view %{{.*}}[0, 0] : <#{{.*}}> -> <#{{.*}}, 64x32 at [0, 0]>
          // VIEW: kvbuffer.mma_start %[[A]], %[[W]], %{{.*}}
          // CHECK: kvbuffer.wgmma c(
          // CHECK-SAME: a_steps = array<i64: 0, 2>, b_steps = array<i64: 640, 768>
          // CHECK-SAME: transpose_b
          %ah = kvbuffer.fragment_load %as[0, 0] : !kvbuffer.staged<#abuf> -> !kvbuffer.fragment<64x32xbf16, a>
          %wf = kvbuffer.fragment_load %s[16, 64] contracted(rows) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<32x64xbf16, b>
          %q = kvbuffer.mma %ah, %wf, %p : !kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.fragment<32x64xbf16, b>, !acc
          // Slots go back after the wait for what reads their views.
          // VIEW:      kvbuffer.mma_wait
          // VIEW:      kvbuffer.ring_release %ring
          kvbuffer.ring_release %aring[%c0] : !kvbuffer.ring<#abuf>
          kvbuffer.ring_release %ring[%c0] : !kvbuffer.ring<#buf>
          %out = kvbuffer.fragment_convert %q : !acc -> !kvbuffer.fragment<64x64xbf16, acc>
        }
        kvbuffer.team @producers warps(4) {
          %at = kvbuffer.dram_tile %x[%c0, %c0] valid(%m, %n) : !in -> !kvbuffer.tile<64x64xbf16>
          kvbuffer.ring_load %at into %aring[%c0] : !kvbuffer.tile<64x64xbf16>, !kvbuffer.ring<#abuf>
          %t = kvbuffer.dram_tile %x[%c0, %c0] valid(%m, %n) : !in -> !kvbuffer.tile<64x128xbf16>
          kvbuffer.ring_load %t into %ring[%c0] : !kvbuffer.tile<64x128xbf16>, !kvbuffer.ring<#buf>
        }
      }
      gpu.return
    }
  }
}
