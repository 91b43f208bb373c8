// Products on staged operands: started where they stand, awaited before the first
// use of their results; slots go back after the wait of what reads them.

// DEFINE: %{pass} = kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-async-products)))"
// RUN: %{pass} | FileCheck %s
// RUN: %{pass} --verify-diagnostics

// A second run changes nothing: turns, too, are taken once.
// RUN: %{pass} -o %t.once
// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-async-products,kvbuf-async-products)))" -o %t.twice
// RUN: diff %t.once %t.twice

// RUN: %{pass} --remark-format=emitRemark --remarks-filter=kvbuf-async-products 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

#schedule = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, stages = 2, warps = 8, mma_shape = [16, 8, 16], producers = 4>
#left = #kvbuffer.kv_buffer<128x64xbf16, stages = 2, swizzle = [3, 0, 3]>
#right = #kvbuffer.kv_buffer<64x64xbf16, stages = 2, swizzle = [3, 0, 3]>
#one = #kvbuffer.kv_buffer<128x64xbf16, stages = 1, swizzle = [3, 0, 3]>
#words = #kvbuffer.kv_buffer<128x72xf32, stages = 2>
!a = !kvbuffer.fragment<128x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
!sum = !kvbuffer.fragment<128x64xf32, acc>
!out = !kvbuffer.tile<128x64xf32>
gpu.module @m {
  // Both operands come from LDS. The loop carries the sum: it is awaited where the
  // iteration ends, and so are the slots.
  // CHECK-LABEL: gpu.func @gemm
  // CHECK:         scf.for %[[I:.*]] = %c0 to %{{.*}} iter_args(%[[ACC:.*]] = %
  // CHECK-NEXT:      %[[A:.*]] = kvbuffer.ring_wait %[[RA:.*]][%[[I]]]
  // CHECK-NEXT:      %[[B:.*]] = kvbuffer.ring_wait %[[RB:.*]][%[[I]]]
  // CHECK-NEXT:      %[[P:.*]] = kvbuffer.mma_start %[[A]], %[[B]], %[[ACC]] : !kvbuffer.fragment<128x64xf32, acc> {transpose_b} : !kvbuffer.staged<#[[LEFT:.*]]>, <#
  // CHECK-NEXT:      %[[SUM:.*]] = kvbuffer.mma_wait %[[P]] {younger = 0 : i64}
  // CHECK-DAG:       kvbuffer.ring_release %[[RA]][%[[I]]]
  // CHECK-DAG:       kvbuffer.ring_release %[[RB]][%[[I]]]
  // CHECK-NEXT:      scf.yield %[[SUM]]
  gpu.func @gemm(%n: index, %out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a_slots = kvbuffer.alloc : !kvbuffer.buffer<#left>
    %b_slots = kvbuffer.alloc : !kvbuffer.buffer<#right>
    %a_ring = kvbuffer.ring %a_slots from @producers to [@consumers] : !kvbuffer.buffer<#left>
    %b_ring = kvbuffer.ring %b_slots from @producers to [@consumers] : !kvbuffer.buffer<#right>
    kvbuffer.teams {
      kvbuffer.team @consumers warps(8) {
        %zero = kvbuffer.fragment_fill 0.0 : !sum
        %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !sum {
          %as = kvbuffer.ring_wait %a_ring[%i] : !kvbuffer.ring<#left>
          %bs = kvbuffer.ring_wait %b_ring[%i] : !kvbuffer.ring<#right>
          %af = kvbuffer.fragment_load %as[0, 0] contracted(cols) : !kvbuffer.staged<#left> -> !a
          kvbuffer.ring_release %a_ring[%i] : !kvbuffer.ring<#left>
          %bf = kvbuffer.fragment_load %bs[0, 0] contracted(cols) : !kvbuffer.staged<#right> -> !b
          kvbuffer.ring_release %b_ring[%i] : !kvbuffer.ring<#right>
          %next = kvbuffer.mma %af, %bf, %acc {transpose_b} : !a, !b, !sum
          scf.yield %next : !sum
        }
        kvbuffer.fragment_store %sum, %out : !sum, !out
      }
      kvbuffer.team @producers warps(4) {
      }
    }
    gpu.return
  }

  // What lanes read for a product to begin with: words go back as soon as they are
  // multiplied, halves of words behind the start, which takes them.
  // CHECK-LABEL: gpu.func @begun
  // CHECK:         kvbuffer.ring_wait
  // CHECK:         kvbuffer.ring_wait
  // CHECK:         %[[WORDS:.*]] = kvbuffer.ring_wait %[[RW:.*]][%c0]
  // CHECK-NEXT:    kvbuffer.fragment_load %[[WORDS]]
  // CHECK-NEXT:    %[[FIRST:.*]] = kvbuffer.map
  // CHECK:         }
  // CHECK-NEXT:    kvbuffer.ring_release %[[RW]][%c0]
  // CHECK:         kvbuffer.mma_start %{{.*}}, %{{.*}}, %[[FIRST]] :
  // CHECK:         %[[HALVES:.*]] = kvbuffer.ring_wait %[[RH:.*]][%c0]
  // CHECK:         kvbuffer.fragment_load %[[HALVES]]
  // CHECK-NEXT:    %[[SECOND:.*]] = kvbuffer.map
  // CHECK:         }
  // CHECK-NEXT:    kvbuffer.mma_start %{{.*}}, %{{.*}}, %[[SECOND]] :
  // CHECK-NEXT:    kvbuffer.ring_release %[[RH]][%c0]
  gpu.func @begun(%out: !out, %other: !out) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %a_slots = kvbuffer.alloc : !kvbuffer.buffer<#left>
    %b_slots = kvbuffer.alloc : !kvbuffer.buffer<#right>
    %word_slots = kvbuffer.alloc : !kvbuffer.buffer<#words>
    %half_slots = kvbuffer.alloc : !kvbuffer.buffer<#left>
    %a_ring = kvbuffer.ring %a_slots from @producers to [@consumers] : !kvbuffer.buffer<#left>
    %b_ring = kvbuffer.ring %b_slots from @producers to [@consumers] : !kvbuffer.buffer<#right>
    %words = kvbuffer.ring %word_slots from @producers to [@consumers] : !kvbuffer.buffer<#words>
    %halves = kvbuffer.ring %half_slots from @producers to [@consumers] : !kvbuffer.buffer<#left>
    kvbuffer.teams {
      kvbuffer.team @consumers warps(8) {
        %zero = kvbuffer.fragment_fill 0.0 : !sum
        %as = kvbuffer.ring_wait %a_ring[%c0] : !kvbuffer.ring<#left>
        %bs = kvbuffer.ring_wait %b_ring[%c0] : !kvbuffer.ring<#right>
        %af = kvbuffer.fragment_load %as[0, 0] contracted(cols) : !kvbuffer.staged<#left> -> !a
        %bf = kvbuffer.fragment_load %bs[0, 0] contracted(cols) : !kvbuffer.staged<#right> -> !b
        %ws = kvbuffer.ring_wait %words[%c0] : !kvbuffer.ring<#words>
        %w = kvbuffer.fragment_load %ws[0, 0] : !kvbuffer.staged<#words> -> !sum
        kvbuffer.ring_release %words[%c0] : !kvbuffer.ring<#words>
        %first = kvbuffer.map %w : !sum -> !sum {
        ^bb0(%x: f32, %i: index, %j: index):
          %y = arith.mulf %x, %x : f32
          kvbuffer.yield %y : f32
        }
        %s = kvbuffer.mma %af, %bf, %first {transpose_b} : !a, !b, !sum
        kvbuffer.fragment_store %s, %out : !sum, !out
        %hs = kvbuffer.ring_wait %halves[%c0] : !kvbuffer.ring<#left>
        %h = kvbuffer.fragment_load %hs[0, 0] : !kvbuffer.staged<#left> -> !a
        kvbuffer.ring_release %halves[%c0] : !kvbuffer.ring<#left>
        %second = kvbuffer.map %zero, %h : !sum, !a -> !sum {
        ^bb0(%x: f32, %y: bf16, %i: index, %j: index):
          %z = arith.extf %y : bf16 to f32
          kvbuffer.yield %z : f32
        }
        %t = kvbuffer.mma %af, %bf, %second {transpose_b} : !a, !b, !sum
        kvbuffer.fragment_store %t, %other : !sum, !out
      }
      kvbuffer.team @producers warps(4) {
      }
    }
    gpu.return
  }

  // A ring of one slot is not filled anew while a product that begins with it waits for
  // the next filling: that slot is given back where it was.
  // CHECK-LABEL: gpu.func @begun_of_two
  // CHECK:         kvbuffer.ring_wait
  // CHECK-NEXT:    kvbuffer.ring_wait
  // CHECK-NEXT:    kvbuffer.ring_wait %[[ONE:.*]][%c0]
  // CHECK-NEXT:    kvbuffer.fragment_load
  // CHECK-NEXT:    kvbuffer.ring_release %[[ONE]][%c0]
  // CHECK-NEXT:    kvbuffer.ring_wait %[[ONE]][%c1]
  // CHECK-NEXT:    kvbuffer.fragment_load
  // CHECK-NEXT:    kvbuffer.map
  // CHECK:         }
  // CHECK-NEXT:    kvbuffer.mma_start
  // CHECK-NEXT:    kvbuffer.ring_release %[[ONE]][%c1]
  gpu.func @begun_of_two(%out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a_slots = kvbuffer.alloc : !kvbuffer.buffer<#left>
    %b_slots = kvbuffer.alloc : !kvbuffer.buffer<#right>
    %half_slots = kvbuffer.alloc : !kvbuffer.buffer<#one>
    %a_ring = kvbuffer.ring %a_slots from @producers to [@consumers] : !kvbuffer.buffer<#left>
    %b_ring = kvbuffer.ring %b_slots from @producers to [@consumers] : !kvbuffer.buffer<#right>
    %one = kvbuffer.ring %half_slots from @producers to [@consumers] : !kvbuffer.buffer<#one>
    kvbuffer.teams {
      kvbuffer.team @consumers warps(8) {
        %zero = kvbuffer.fragment_fill 0.0 : !sum
        %as = kvbuffer.ring_wait %a_ring[%c0] : !kvbuffer.ring<#left>
        %bs = kvbuffer.ring_wait %b_ring[%c0] : !kvbuffer.ring<#right>
        %af = kvbuffer.fragment_load %as[0, 0] contracted(cols) : !kvbuffer.staged<#left> -> !a
        %bf = kvbuffer.fragment_load %bs[0, 0] contracted(cols) : !kvbuffer.staged<#right> -> !b
        %hs = kvbuffer.ring_wait %one[%c0] : !kvbuffer.ring<#one>
        %h = kvbuffer.fragment_load %hs[0, 0] : !kvbuffer.staged<#one> -> !a
        kvbuffer.ring_release %one[%c0] : !kvbuffer.ring<#one>
        %gs = kvbuffer.ring_wait %one[%c1] : !kvbuffer.ring<#one>
        %g = kvbuffer.fragment_load %gs[0, 0] : !kvbuffer.staged<#one> -> !a
        kvbuffer.ring_release %one[%c1] : !kvbuffer.ring<#one>
        %both = kvbuffer.map %zero, %h, %g : !sum, !a, !a -> !sum {
        ^bb0(%x: f32, %y: bf16, %z: bf16, %i: index, %j: index):
          %w = arith.addf %y, %z : bf16
          %v = arith.extf %w : bf16 to f32
          kvbuffer.yield %v : f32
        }
        %t = kvbuffer.mma %af, %bf, %both {transpose_b} : !a, !b, !sum
        kvbuffer.fragment_store %t, %out : !sum, !out
      }
      kvbuffer.team @producers warps(4) {
      }
    }
    gpu.return
  }

  // A part of a slot is a view of it. A product from zero has no accumulator. What
  // a branch starts cannot be counted: it is awaited before.
  // CHECK-LABEL: gpu.func @parts
  // CHECK:         %[[A:.*]] = kvbuffer.ring_wait
  // CHECK:         %[[B:.*]] = kvbuffer.ring_wait
  // CHECK-DAG:     %[[BV:.*]] = kvbuffer.staged_view %[[B]][0, 32] : {{.*}}64x32
  // CHECK-DAG:     %[[AV:.*]] = kvbuffer.staged_view %[[A]][0, 32] : {{.*}}128x32
  // CHECK:         %[[P:.*]] = kvbuffer.mma_start %[[AV]], %[[BV]] {transpose_b} : !kvbuffer.staged
  // CHECK-NEXT:    %[[SUM:.*]] = kvbuffer.mma_wait %[[P]] {younger = 0 : i64}
  // CHECK-NEXT:    %[[BOTH:.*]] = scf.if
  // CHECK:           %[[Q:.*]] = kvbuffer.mma_start %{{.*}}, %{{.*}}, %[[SUM]] :
  // CHECK-NEXT:      %[[MORE:.*]] = kvbuffer.mma_wait %[[Q]] {younger = 0 : i64}
  // CHECK-NEXT:      scf.yield %[[MORE]]
  // CHECK:         }
  // CHECK-DAG:     kvbuffer.ring_release %{{.*}}[%c0] : <#[[LEFT]]>
  // CHECK-DAG:     kvbuffer.ring_release %{{.*}}[%c0] :
  // CHECK:         kvbuffer.fragment_store %[[BOTH]]
  // CHECK-NOT:     kvbuffer.fragment_load
  gpu.func @parts(%p: i1, %out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %a_slots = kvbuffer.alloc : !kvbuffer.buffer<#left>
    %b_slots = kvbuffer.alloc : !kvbuffer.buffer<#right>
    %a_ring = kvbuffer.ring %a_slots from @producers to [@consumers] : !kvbuffer.buffer<#left>
    %b_ring = kvbuffer.ring %b_slots from @producers to [@consumers] : !kvbuffer.buffer<#right>
    kvbuffer.teams {
      kvbuffer.team @consumers warps(8) {
        %zero = kvbuffer.fragment_fill 0.0 : !sum
        %as = kvbuffer.ring_wait %a_ring[%c0] : !kvbuffer.ring<#left>
        %bs = kvbuffer.ring_wait %b_ring[%c0] : !kvbuffer.ring<#right>
        %af = kvbuffer.fragment_load %as[0, 32] contracted(cols) : !kvbuffer.staged<#left> -> !kvbuffer.fragment<128x32xbf16, a>
        %bf = kvbuffer.fragment_load %bs[0, 32] contracted(cols) : !kvbuffer.staged<#right> -> !kvbuffer.fragment<64x32xbf16, b>
        %sum = kvbuffer.mma %af, %bf, %zero {transpose_b} : !kvbuffer.fragment<128x32xbf16, a>, !kvbuffer.fragment<64x32xbf16, b>, !sum
        %both = scf.if %p -> !sum {
          %af2 = kvbuffer.fragment_load %as[0, 0] contracted(cols) : !kvbuffer.staged<#left> -> !a
          %bf2 = kvbuffer.fragment_load %bs[0, 0] contracted(cols) : !kvbuffer.staged<#right> -> !b
          %more = kvbuffer.mma %af2, %bf2, %sum {transpose_b} : !a, !b, !sum
          scf.yield %more : !sum
        } else {
          scf.yield %sum : !sum
        }
        kvbuffer.ring_release %a_ring[%c0] : !kvbuffer.ring<#left>
        kvbuffer.ring_release %b_ring[%c0] : !kvbuffer.ring<#right>
        kvbuffer.fragment_store %both, %out : !sum, !out
      }
      kvbuffer.team @producers warps(4) {
      }
    }
    gpu.return
  }

  // Some of a slot's columns that are read once, ahead of the loop, stay in registers: their
  // product starts first, and that of the others, which come from the slot, goes on with it.
  // CHECK-LABEL: gpu.func @held
  // CHECK:         %[[A:.*]] = kvbuffer.ring_wait
  // CHECK-NEXT:    %[[HELD:.*]] = kvbuffer.fragment_load %[[A]][0, 0] contracted(cols) : {{.*}}128x32xbf16, a>
  // CHECK:         scf.for
  // CHECK-NEXT:      %[[B:.*]] = kvbuffer.ring_wait %[[RB:.*]][
  // CHECK-NEXT:      %[[B0:.*]] = kvbuffer.staged_view %[[B]][0, 0] : {{.*}}64x32
  // CHECK-NEXT:      %[[P0:.*]] = kvbuffer.mma_start %[[HELD]], %[[B0]], %{{.*}} {transpose_b} : !kvbuffer.fragment<128x32xbf16, a>
  // CHECK-DAG:       %[[B1:.*]] = kvbuffer.staged_view %[[B]][0, 32] : {{.*}}64x32
  // CHECK-DAG:       %[[A1:.*]] = kvbuffer.staged_view %[[A]][0, 32] : {{.*}}128x32
  // CHECK-NEXT:      %[[P1:.*]] = kvbuffer.mma_start %[[A1]], %[[B1]], %[[P0]] {{.*}}{transpose_b}
  // CHECK-NEXT:      kvbuffer.mma_wait %[[P0]] {younger = 1 : i64}
  // CHECK-NEXT:      %[[SUM:.*]] = kvbuffer.mma_wait %[[P1]] {younger = 0 : i64}
  // CHECK-NEXT:      kvbuffer.ring_release %[[RB]][
  // CHECK-NEXT:      scf.yield %[[SUM]]
  gpu.func @held(%n: index, %out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a_slots = kvbuffer.alloc : !kvbuffer.buffer<#left>
    %b_slots = kvbuffer.alloc : !kvbuffer.buffer<#right>
    %a_ring = kvbuffer.ring %a_slots from @producers to [@consumers] : !kvbuffer.buffer<#left>
    %b_ring = kvbuffer.ring %b_slots from @producers to [@consumers] : !kvbuffer.buffer<#right>
    kvbuffer.teams {
      kvbuffer.team @consumers warps(8) {
        %zero = kvbuffer.fragment_fill 0.0 : !sum
        %as = kvbuffer.ring_wait %a_ring[%c0] : !kvbuffer.ring<#left>
        %held = kvbuffer.fragment_load %as[0, 0] contracted(cols) : !kvbuffer.staged<#left> -> !kvbuffer.fragment<128x32xbf16, a>
        %all = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !sum {
          %bs = kvbuffer.ring_wait %b_ring[%i] : !kvbuffer.ring<#right>
          %b0 = kvbuffer.fragment_load %bs[0, 0] contracted(cols) : !kvbuffer.staged<#right> -> !kvbuffer.fragment<64x32xbf16, b>
          %first = kvbuffer.mma %held, %b0, %acc {transpose_b} : !kvbuffer.fragment<128x32xbf16, a>, !kvbuffer.fragment<64x32xbf16, b>, !sum
          %a1 = kvbuffer.fragment_load %as[0, 32] contracted(cols) : !kvbuffer.staged<#left> -> !kvbuffer.fragment<128x32xbf16, a>
          %b1 = kvbuffer.fragment_load %bs[0, 32] contracted(cols) : !kvbuffer.staged<#right> -> !kvbuffer.fragment<64x32xbf16, b>
          %both = kvbuffer.mma %a1, %b1, %first {transpose_b} : !kvbuffer.fragment<128x32xbf16, a>, !kvbuffer.fragment<64x32xbf16, b>, !sum
          kvbuffer.ring_release %b_ring[%i] : !kvbuffer.ring<#right>
          scf.yield %both : !sum
        }
        kvbuffer.ring_release %a_ring[%c0] : !kvbuffer.ring<#left>
        kvbuffer.fragment_store %all, %out : !sum, !out
      }
      kvbuffer.team @producers warps(4) {
      }
    }
    gpu.return
  }
}

// -----

// Two layers of a network, of which the second one multiplies what the first one
// computed an iteration before: x stays in registers.
#schedule = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, stages = 2, warps = 8, mma_shape = [16, 8, 16], producers = 4, q_in_regs = true, ping_pong = true>
#x = #kvbuffer.kv_buffer<128x64xbf16, stages = 1, swizzle = [3, 0, 3]>
#w = #kvbuffer.kv_buffer<64x64xbf16, stages = 2, swizzle = [3, 0, 3]>
!a = !kvbuffer.fragment<128x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
!sum = !kvbuffer.fragment<128x64xf32, acc>
!out = !kvbuffer.tile<128x64xf32>
gpu.module @m {
  // CHECK-LABEL: gpu.func @layers
  // Tiles that a group leaves out: it takes their turns, too.
  // CHECK:         scf.for
  // CHECK-NEXT:      kvbuffer.ring_wait %[[W1:.*]][
  // CHECK-NEXT:      kvbuffer.ring_release %[[W1]][
  // CHECK-NEXT:      kvbuffer.turn_wait
  // CHECK-NEXT:      kvbuffer.turn_pass
  // CHECK-NEXT:      kvbuffer.ring_wait %[[W2:.*]][
  // CHECK-NEXT:      kvbuffer.ring_release %[[W2]][
  // CHECK-NEXT:    }
  // CHECK:         %[[X:.*]] = kvbuffer.fragment_load
  // A turn is from the start of the first product to that of the second, which is
  // in flight beside all that is done to the first one's result.
  // CHECK:         scf.for %[[I:.*]] = %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[HIDDEN:.*]] = %{{.*}})
  // CHECK-NEXT:      %[[S1:.*]] = kvbuffer.ring_wait %[[W1]][%[[I]]]
  // CHECK-NEXT:      kvbuffer.turn_wait
  // CHECK-NEXT:      %[[P1:.*]] = kvbuffer.mma_start %[[X]], %[[S1]] : !kvbuffer.fragment<128x64xbf16, a>
  // CHECK-NEXT:      %[[S2:.*]] = kvbuffer.ring_wait %[[W2]][%[[I]]]
  // CHECK-NEXT:      %[[P2:.*]] = kvbuffer.mma_start %[[HIDDEN]], %[[S2]], %[[ACC]] :
  // CHECK-NEXT:      kvbuffer.turn_pass
  // CHECK-NEXT:      %[[R1:.*]] = kvbuffer.mma_wait %[[P1]] {younger = 1 : i64}
  // CHECK-NEXT:      kvbuffer.ring_release %[[W1]][%[[I]]]
  // CHECK-NEXT:      %[[NEXT:.*]] = kvbuffer.fragment_convert %[[R1]]
  // CHECK-NEXT:      %[[R2:.*]] = kvbuffer.mma_wait %[[P2]] {younger = 0 : i64}
  // CHECK-NEXT:      kvbuffer.ring_release %[[W2]][%[[I]]]
  // CHECK-NEXT:      scf.yield %[[R2]], %[[NEXT]]
  gpu.func @layers(%skipped: index, %n: index, %out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %x_slot = kvbuffer.alloc : !kvbuffer.buffer<#x>
    %w1_slots = kvbuffer.alloc : !kvbuffer.buffer<#w>
    %w2_slots = kvbuffer.alloc : !kvbuffer.buffer<#w>
    %x_ring = kvbuffer.ring %x_slot from @producers to [@consumers] : !kvbuffer.buffer<#x>
    %w1_ring = kvbuffer.ring %w1_slots from @producers to [@consumers] : !kvbuffer.buffer<#w>
    %w2_ring = kvbuffer.ring %w2_slots from @producers to [@consumers] : !kvbuffer.buffer<#w>
    %w3_slots = kvbuffer.alloc : !kvbuffer.buffer<#w>
    %w3_ring = kvbuffer.ring %w3_slots from @producers to [@copy] : !kvbuffer.buffer<#w>
    kvbuffer.teams {
      kvbuffer.team @consumers warps(8) {
        scf.for %i = %c0 to %skipped step %c1 {
          %w1s = kvbuffer.ring_wait %w1_ring[%i] : !kvbuffer.ring<#w>
          kvbuffer.ring_release %w1_ring[%i] : !kvbuffer.ring<#w>
          %w2s = kvbuffer.ring_wait %w2_ring[%i] : !kvbuffer.ring<#w>
          kvbuffer.ring_release %w2_ring[%i] : !kvbuffer.ring<#w>
        }
        %zero = kvbuffer.fragment_fill 0.0 : !sum
        %none = kvbuffer.fragment_fill 0.0 : !a
        %xs = kvbuffer.ring_wait %x_ring[%c0] : !kvbuffer.ring<#x>
        %xf = kvbuffer.fragment_load %xs[0, 0] contracted(cols) : !kvbuffer.staged<#x> -> !a
        kvbuffer.ring_release %x_ring[%c0] : !kvbuffer.ring<#x>
        %sum:2 = scf.for %i = %skipped to %n step %c1 iter_args(%acc = %zero, %hidden = %none) -> (!sum, !a) {
          %w1s = kvbuffer.ring_wait %w1_ring[%i] : !kvbuffer.ring<#w>
          %w1f = kvbuffer.fragment_load %w1s[0, 0] contracted(rows) : !kvbuffer.staged<#w> -> !b
          kvbuffer.ring_release %w1_ring[%i] : !kvbuffer.ring<#w>
          %h = kvbuffer.mma %xf, %w1f, %zero : !a, !b, !sum
          %w2s = kvbuffer.ring_wait %w2_ring[%i] : !kvbuffer.ring<#w>
          %w2f = kvbuffer.fragment_load %w2s[0, 0] contracted(rows) : !kvbuffer.staged<#w> -> !b
          kvbuffer.ring_release %w2_ring[%i] : !kvbuffer.ring<#w>
          %o = kvbuffer.mma %hidden, %w2f, %acc : !a, !b, !sum
          %next = kvbuffer.fragment_convert %h : !sum -> !a
          scf.yield %o, %next : !sum, !a
        }
        kvbuffer.fragment_store %sum#0, %out : !sum, !out
      }
      // Who multiplies nothing is not told that it takes no turns.
      kvbuffer.team @copy warps(4) {
        %w3s = kvbuffer.ring_wait %w3_ring[%c0] : !kvbuffer.ring<#w>
        kvbuffer.ring_release %w3_ring[%c0] : !kvbuffer.ring<#w>
      }
      kvbuffer.team @producers warps(4) {
      }
    }
    gpu.return
  }

  // Each product is awaited before the next one starts, and nobody takes turns.
  // CHECK-LABEL: gpu.func @serial
  // CHECK-NOT:     kvbuffer.turn
  // CHECK:         scf.for
  // CHECK:           %[[P1:.*]] = kvbuffer.mma_start
  // CHECK-NEXT:      %[[R1:.*]] = kvbuffer.mma_wait %[[P1]] {younger = 0 : i64}
  // CHECK-NEXT:      %[[H:.*]] = kvbuffer.fragment_convert %[[R1]]
  // CHECK:           %[[P2:.*]] = kvbuffer.mma_start %[[H]],
  // CHECK-NEXT:      kvbuffer.mma_wait %[[P2]] {younger = 0 : i64}
  // CHECK-NOT:     kvbuffer.turn
  // CHECK:         gpu.return
  gpu.func @serial(%n: index, %out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %w_slots = kvbuffer.alloc : !kvbuffer.buffer<#w>
    %w_ring = kvbuffer.ring %w_slots from @producers to [@consumers] : !kvbuffer.buffer<#w>
    %xf = kvbuffer.fragment_fill 1.0 : !a
    kvbuffer.teams {
      // REMARK: async-products.mlir:[[#@LINE+2]]:{{.*}} remark: [Missed] ping-pong{{.*}}no turns: no loop starts two products that overlap
      // expected-warning @below {{no turns: no loop starts two products that overlap}}
      kvbuffer.team @consumers warps(8) {
        %zero = kvbuffer.fragment_fill 0.0 : !sum
        %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !sum {
          %ws = kvbuffer.ring_wait %w_ring[%i] : !kvbuffer.ring<#w>
          %wf = kvbuffer.fragment_load %ws[0, 0] contracted(rows) : !kvbuffer.staged<#w> -> !b
          %h = kvbuffer.mma %xf, %wf, %zero : !a, !b, !sum
          %hidden = kvbuffer.fragment_convert %h : !sum -> !a
          %o = kvbuffer.mma %hidden, %wf, %acc : !a, !b, !sum
          kvbuffer.ring_release %w_ring[%i] : !kvbuffer.ring<#w>
          scf.yield %o : !sum
        }
        kvbuffer.fragment_store %sum, %out : !sum, !out
      }
      kvbuffer.team @producers warps(4) {
      }
    }
    gpu.return
  }
}

// -----

// Two warps are no group of sm_90a: each multiplies what it reads, and a slot goes
// back when it is read. On sm_90 no warps are one.
#schedule = #kvbuffer.schedule<BM = 32, BN = 64, BK = 64, stages = 2, warps = 2, mma_shape = [16, 8, 16]>
#right = #kvbuffer.kv_buffer<64x64xbf16, stages = 2, swizzle = [3, 0, 3]>
!a = !kvbuffer.fragment<32x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
!sum = !kvbuffer.fragment<32x64xf32, acc>
!out = !kvbuffer.tile<32x64xf32>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @by_warps
    // CHECK:         kvbuffer.team @two
    // CHECK:           kvbuffer.fragment_load
    // CHECK-NEXT:      kvbuffer.ring_release
    // CHECK-NEXT:      kvbuffer.mma %
    gpu.func @by_warps(%out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %slots = kvbuffer.alloc : !kvbuffer.buffer<#right>
      %ring = kvbuffer.ring %slots from @load to [@two] : !kvbuffer.buffer<#right>
      kvbuffer.teams {
        kvbuffer.team @two warps(2) {
          %af = kvbuffer.fragment_fill 1.0 : !a
          %zero = kvbuffer.fragment_fill 0.0 : !sum
          %s = kvbuffer.ring_wait %ring[%c0] : !kvbuffer.ring<#right>
          %bf = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#right> -> !b
          kvbuffer.ring_release %ring[%c0] : !kvbuffer.ring<#right>
          %sum = kvbuffer.mma %af, %bf, %zero {transpose_b} : !a, !b, !sum
          kvbuffer.fragment_store %sum, %out : !sum, !out
        }
        kvbuffer.team @load warps(1) {
        }
      }
      gpu.return
    }
  }
}

// -----

// Nor does a group multiply what is widened, or what lies in no slot.
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [16, 8, 16]>
#narrow = #kvbuffer.kv_buffer<64x64xf8E4M3FN, stages = 2, BK = 64, swizzle = [2, 0, 3]>
!a = !kvbuffer.fragment<64x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
!sum = !kvbuffer.fragment<64x64xf32, acc>
!out = !kvbuffer.tile<64x64xf32>
gpu.module @m {
  // CHECK-LABEL: gpu.func @not_as_it_lies
  // CHECK-NOT:     kvbuffer.mma_start
  // CHECK:         kvbuffer.fragment_load
  // CHECK:         kvbuffer.mma %
  // CHECK:         kvbuffer.mma %
  // REMARK-COUNT-2: remark: [Missed] product{{.*}}each warp multiplies by itself: operand b does not lie in a ring's slot
  gpu.func @not_as_it_lies(%out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %slots = kvbuffer.alloc : !kvbuffer.buffer<#narrow>
    %ring = kvbuffer.ring %slots from @load to [@use] : !kvbuffer.buffer<#narrow>
    kvbuffer.teams {
      kvbuffer.team @use warps(4) {
        %af = kvbuffer.fragment_fill 1.0 : !a
        %zero = kvbuffer.fragment_fill 0.0 : !sum
        %s = kvbuffer.ring_wait %ring[%c0] : !kvbuffer.ring<#narrow>
        %bf = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#narrow> -> !b
        kvbuffer.ring_release %ring[%c0] : !kvbuffer.ring<#narrow>
        %sum = kvbuffer.mma %af, %bf, %zero {transpose_b} : !a, !b, !sum
        %ones = kvbuffer.fragment_fill 1.0 : !b
        %all = kvbuffer.mma %af, %ones, %sum {transpose_b} : !a, !b, !sum
        kvbuffer.fragment_store %all, %out : !sum, !out
      }
      kvbuffer.team @load warps(1) {
      }
    }
    gpu.return
  }
}

// -----

// A product that another one goes on with is awaited once that one is on its way,
// and its slot goes back then; the last one before its result is used.
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [16, 8, 16]>
#blocks = #kvbuffer.kv_buffer<64x192xbf16, stages = 3, BK = 64, swizzle = [3, 0, 3], full_kv = false>
!a = !kvbuffer.fragment<64x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
!sum = !kvbuffer.fragment<64x64xf32, acc>
!out = !kvbuffer.tile<64x64xf32>
gpu.module @m {
  // CHECK-LABEL: gpu.func @blocks
  // CHECK:         %[[K0:.*]] = kvbuffer.ring_wait %[[RING:.*]][%c0]
  // CHECK:         %[[S0:.*]] = kvbuffer.mma_start %[[A:.*]], %[[K0]] {transpose_b}
  // CHECK-NEXT:    %[[K1:.*]] = kvbuffer.ring_wait %[[RING]][%c1]
  // CHECK-NEXT:    %[[S1:.*]] = kvbuffer.mma_start %[[A]], %[[K1]], %[[S0]] : !kvbuffer.pending<64x64xf32> {transpose_b}
  // CHECK-NEXT:    kvbuffer.mma_wait %[[S0]] {younger = 1 : i64}
  // CHECK-NEXT:    kvbuffer.ring_release %[[RING]][%c0]
  // CHECK-NEXT:    %[[K2:.*]] = kvbuffer.ring_wait %[[RING]][%c2]
  // CHECK-NEXT:    %[[S2:.*]] = kvbuffer.mma_start %[[A]], %[[K2]], %[[S1]] : !kvbuffer.pending<64x64xf32> {transpose_b}
  // CHECK-NEXT:    kvbuffer.mma_wait %[[S1]] {younger = 1 : i64}
  // CHECK-NEXT:    kvbuffer.ring_release %[[RING]][%c1]
  // CHECK-NEXT:    %[[ALL:.*]] = kvbuffer.mma_wait %[[S2]] {younger = 0 : i64}
  // CHECK-NEXT:    kvbuffer.ring_release %[[RING]][%c2]
  // CHECK-NEXT:    kvbuffer.fragment_store %[[ALL]]
  gpu.func @blocks(%out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %slots = kvbuffer.alloc : !kvbuffer.buffer<#blocks>
    %ring = kvbuffer.ring %slots from @load to [@use] : !kvbuffer.buffer<#blocks>
    kvbuffer.teams {
      kvbuffer.team @use warps(4) {
        %af = kvbuffer.fragment_fill 1.0 : !a
        %zero = kvbuffer.fragment_fill 0.0 : !sum
        %k0 = kvbuffer.ring_wait %ring[%c0] : !kvbuffer.ring<#blocks>
        %b0 = kvbuffer.fragment_load %k0[0, 0] contracted(cols) : !kvbuffer.staged<#blocks> -> !b
        kvbuffer.ring_release %ring[%c0] : !kvbuffer.ring<#blocks>
        %s0 = kvbuffer.mma %af, %b0, %zero {transpose_b} : !a, !b, !sum
        %k1 = kvbuffer.ring_wait %ring[%c1] : !kvbuffer.ring<#blocks>
        %b1 = kvbuffer.fragment_load %k1[0, 0] contracted(cols) : !kvbuffer.staged<#blocks> -> !b
        kvbuffer.ring_release %ring[%c1] : !kvbuffer.ring<#blocks>
        %s1 = kvbuffer.mma %af, %b1, %s0 {transpose_b} : !a, !b, !sum
        %k2 = kvbuffer.ring_wait %ring[%c2] : !kvbuffer.ring<#blocks>
        %b2 = kvbuffer.fragment_load %k2[0, 0] contracted(cols) : !kvbuffer.staged<#blocks> -> !b
        kvbuffer.ring_release %ring[%c2] : !kvbuffer.ring<#blocks>
        %s2 = kvbuffer.mma %af, %b2, %s1 {transpose_b} : !a, !b, !sum
        kvbuffer.fragment_store %s2, %out : !sum, !out
      }
      kvbuffer.team @load warps(1) {
      }
    }
    gpu.return
  }
}
