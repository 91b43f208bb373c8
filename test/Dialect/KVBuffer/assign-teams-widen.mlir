// A tile program whose B has 8-bit elements, divided among producers, wideners and
// consumers: producers load B as it is, wideners wait for it, widen it and put it into a
// ring of its own, which consumers read. A, which is as wide as products take it, goes
// from producers to consumers. All number fillings alike.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-teams,canonicalize,cse)))" | FileCheck %s

#schedule = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], producers = 4, producer_registers = 56, consumer_registers = 200, wideners = 4, widener_registers = 56>
#left = #kvbuffer.kv_buffer<q, f16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 128, WN = 16, BK = 64, num_threads = 256, depth = 64, stages = 2>
#right = #kvbuffer.kv_buffer<k, f8E4M3FN, double_buffered, mma_shape = [64, 8, 16], swizzle = [2, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 256, depth = 64, stages = 1>
!x = memref<?x?xf16>
!y = memref<?x?xf8E4M3FN>
!a = !kvbuffer.fragment<128x64xf16, a>
!b = !kvbuffer.fragment<64x64xf16, b>
!sum = !kvbuffer.fragment<128x64xf32, acc>
!out = !kvbuffer.tile<128x64xf32>
// What wideners read, as many threads as they are, from the one slot that the program
// gives it, and what they write: as many slots as the schedule says.
// CHECK-DAG: #[[NARROW:.*]] = #kvbuffer.kv_buffer<k, f8E4M3FN, double_buffered, mma_shape = [64, 8, 16], swizzle = [2, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, stages = 1>
// CHECK-DAG: #[[WIDE:.*]] = #kvbuffer.kv_buffer<k, f16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 256, depth = 64, stages = 2>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @gemm
    // CHECK-SAME:    known_block_size = array<i32: 512, 1, 1>
    // CHECK-DAG:     %[[RA:.*]] = kvbuffer.ring %{{.*}} from @producers to [@consumers]
    // CHECK-DAG:     %[[RN:.*]] = kvbuffer.ring %{{.*}} from @producers to [@wideners] : <#[[NARROW]]>
    // CHECK-DAG:     %[[RW:.*]] = kvbuffer.ring %{{.*}} from @wideners to [@consumers] : <#[[WIDE]]>
    // CHECK:         kvbuffer.team @consumers warps(8) registers(200) {
    // CHECK:           scf.for
    // CHECK:             kvbuffer.ring_wait %[[RA]][%[[I:.*]]]
    // CHECK-NEXT:        %[[BS:.*]] = kvbuffer.ring_wait %[[RW]][%[[I]]]
    // CHECK:             kvbuffer.fragment_load %[[BS]][0, 0] : <#[[WIDE]]> -> <64x64xf16, b>
    // CHECK-NEXT:        kvbuffer.ring_release %[[RW]][%[[I]]]
    // CHECK:             kvbuffer.mma
    // CHECK:         kvbuffer.team @wideners warps(4) registers(56) {
    // CHECK:           scf.for %[[I:.*]] = %c0
    // CHECK-NEXT:        %[[NS:.*]] = kvbuffer.ring_wait %[[RN]][%[[I]]]
    // CHECK-NEXT:        %[[F:.*]] = kvbuffer.fragment_load %[[NS]][0, 0] contracted(cols) : <#[[NARROW]]> -> <64x64xf16, a>
    // CHECK-NEXT:        kvbuffer.ring_release %[[RN]][%[[I]]]
    // CHECK-NEXT:        kvbuffer.ring_put %[[F]] into %[[RW]][%[[I]]] : <64x64xf16, a>, <#[[WIDE]]>
    // CHECK-NEXT:      }
    // CHECK-NEXT:    }
    // CHECK-NEXT:    kvbuffer.team @producers warps(4) registers(56) {
    // CHECK:             kvbuffer.ring_load %{{.*}} into %[[RA]]
    // CHECK:             kvbuffer.ring_load %{{.*}} into %[[RN]]
    // CHECK-NOT:       kvbuffer.ring_put
    gpu.func @gemm(%a: !x, %b: !y, %m: index, %n: index, %k: index, %out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %zero = kvbuffer.fragment_fill 0.0 : !sum
      %steps = arith.ceildivui %k, %c64 : index
      %a_slots = kvbuffer.alloc : !kvbuffer.buffer<#left>
      %b_slots = kvbuffer.alloc : !kvbuffer.buffer<#right>
      %sum = scf.for %i = %c0 to %steps step %c1 iter_args(%acc = %zero) -> !sum {
        %at = arith.muli %i, %c64 : index
        %at_a = kvbuffer.dram_tile %a[%c0, %at] valid(%m, %k) : !x -> !kvbuffer.tile<128x64xf16>
        %token_a = kvbuffer.dram_load %at_a into %a_slots : !kvbuffer.tile<128x64xf16>, !kvbuffer.buffer<#left>
        %at_b = kvbuffer.dram_tile %b[%c0, %at] valid(%n, %k) : !y -> !kvbuffer.tile<64x64xf8E4M3FN>
        %token_b = kvbuffer.dram_load %at_b into %b_slots : !kvbuffer.tile<64x64xf8E4M3FN>, !kvbuffer.buffer<#right>
        %as, %bs = kvbuffer.lds_stage %token_a, %token_b : !kvbuffer.token<#left>, !kvbuffer.token<#right>
        %af = kvbuffer.fragment_load %as[0, 0] : !kvbuffer.staged<#left> -> !a
        %bf = kvbuffer.fragment_load %bs[0, 0] : !kvbuffer.staged<#right> -> !b
        %next = kvbuffer.mma %af, %bf, %acc {transpose_b} : !a, !b, !sum
        scf.yield %next : !sum
      }
      kvbuffer.fragment_store %sum, %out : !sum, !out
      gpu.return
    }
  }
}
