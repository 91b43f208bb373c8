// The schedule of a product follows from the chip, and from sizes that types fix.
//
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_80 | FileCheck %s --check-prefix=ALIKE
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=gfx942 | FileCheck %s --check-prefix=ALIKE
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s --check-prefix=TEAM
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=producers=0" | FileCheck %s --check-prefix=ALONE
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=BM=64,BN=128" | FileCheck %s --check-prefix=ASKED

// ALIKE: #[[LARGE:.+]] = #kvbuffer.schedule<BM = 128, BN = 128, stages = 3>
// ALIKE: #[[SMALL:.+]] = #kvbuffer.schedule<BM = 64, BN = 64, stages = 3>
// TEAM: #[[LARGE:.+]] = #kvbuffer.schedule<BM = 128, BN = 256, BK = 64, stages = 4, warps = 8, mma_shape = [64, 8, 16]{{.*}}producers = 4, producer_registers = 24, consumer_registers = 240{{.*}}tiles = static
// TEAM: #[[SMALL:.+]] = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 4, warps = 4, mma_shape = [64, 8, 16]{{.*}}producers = 4
// ALONE-NOT: producers
// ALONE: #kvbuffer.schedule<BM = 128, BN = 128, stages = 3>
// ASKED: #kvbuffer.schedule<BM = 64, BN = 128, BK = 64, stages = 4, warps = 4

!any = memref<?x?xbf16, strided<[?, 1]>>

// Sizes that no type tells: large tiles, and launches choose (variants.test).
// ALIKE: kvbuffer.gemm {{.*}}schedule = #[[LARGE]]
// TEAM: kvbuffer.gemm {{.*}}schedule = #[[LARGE]]
func.func @any(%a: !any, %b: !any, %c: !any) {
  kvbuffer.gemm a(%a) b(%b) out(%c) : !any, !any, !any
  return
}

// 8 tiles of 128 x 128 are fewer than a chip's multiprocessors.
// ALIKE: kvbuffer.gemm {{.*}}schedule = #[[SMALL]]
// TEAM: kvbuffer.gemm {{.*}}schedule = #[[SMALL]]
func.func @few(%a: memref<256x?xbf16>, %b: memref<?x512xbf16>, %c: memref<256x512xbf16>) {
  kvbuffer.gemm a(%a) b(%b) out(%c) : memref<256x?xbf16>, memref<?x512xbf16>, memref<256x512xbf16>
  return
}
