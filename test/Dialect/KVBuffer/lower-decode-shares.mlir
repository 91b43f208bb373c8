// Shares of unequal sequences count what a block loses between two of them, and the
// pieces of a sequence are its parts.
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=sm_90 schedule=split_keys=true" | FileCheck %s
// RUN: sed -e 's/head_size = 128/head_size = 64/' -e 's/8x128xbf16/8x64xbf16/' %s | kvbuf-opt --kvbuf-to-tile="chip=sm_90 schedule=split_keys=true,warps=4" | FileCheck %s --check-prefix=WARPS

// A tile of K and V is 8 KiB here: 40 KiB are five of them, four as a power of 2.
// Few sequences have no pause. Four warps of a block read four times as much
// meanwhile, and of tiles of half the size twice as many. A pause is the chip's.
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=gfx942 schedule=split_keys=true" | FileCheck %s --check-prefix=GFX942
// RUN: sed -e 's/head_size = 128/head_size = 64/' -e 's/8x128xbf16/8x64xbf16/' %s | kvbuf-opt --kvbuf-to-tile="chip=gfx950 schedule=split_keys=true" | FileCheck %s --check-prefix=GFX950
// GFX942: kvbuffer.launch_value product(1, min(1, floordiv(batch, 16)))
// GFX950: kvbuffer.launch_value product(2, min(1, floordiv(batch, 16)))
// WARPS: kvbuffer.launch_value product(32, min(1, floordiv(batch, 16)))
// WARPS: kvbuffer.share_work
// CHECK-LABEL: gpu.func @paged
// CHECK: %[[PAUSE:.*]] = kvbuffer.launch_value product(4, min(1, floordiv(batch, 16)))
// CHECK: %[[SIZE:.*]], %[[FIRST:.*]], %[[START:.*]], %[[END:.*]] = kvbuffer.share_work %[[BLOCK:.*]] of
// CHECK:   %[[SOME:.*]] = arith.maxui %{{.*}}, %c1
// CHECK:   %[[UNITS:.*]] = arith.addi %[[SOME]], %[[PAUSE]] : index
// CHECK:   kvbuffer.yield %[[UNITS]] : index
// CHECK: %[[FROM:.*]] = arith.muli %[[BLOCK]], %[[SIZE]]
// CHECK: %[[UPTO:.*]] = arith.addi %[[FROM]], %[[SIZE]]
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %{{.*}} iter_args(%[[AT:.*]] = %[[START]])
// CHECK:   arith.ceildivui
// CHECK:   %[[COUNT:.*]] = arith.maxsi
// CHECK:   %[[TILES:.*]] = arith.maxui %[[COUNT]], %c1
// CHECK:   %[[OWN:.*]] = arith.addi %[[TILES]], %[[PAUSE]] : index
// CHECK:   %[[STOP:.*]] = arith.addi %[[AT]], %[[OWN]]
// CHECK:   %[[LOW:.*]] = arith.maxui %[[FROM]], %[[AT]]
// CHECK:   %[[PART:.*]] = arith.subi %[[LOW]], %[[AT]]
// CHECK:   %[[TIMES:.*]] = arith.muli %[[PART]], %[[COUNT]]
// CHECK:   arith.divui %[[TIMES]], %[[OWN]]
// CHECK:   arith.minui %[[UPTO]], %[[STOP]]
// CHECK:   arith.divui %{{.*}}, %[[OWN]]
!paged = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 16>
!q = memref<?x1x8x128xbf16>
func.func @paged(%q: !q, %k: !paged, %v: !paged, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !q, !paged, !paged, !q
  return
}
