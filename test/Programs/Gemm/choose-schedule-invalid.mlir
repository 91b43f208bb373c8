// RUN: not kvbuf-opt %s --kvbuf-choose-schedule=schedule=split_keys=true 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule=schedule=BM=256,BN=512,warps=8 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_80 schedule=producers=4" 2>&1 | FileCheck %s --check-prefix=TEAM
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule=schedule=BM=0 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not kvbuf-opt %s --kvbuf-lower-problems 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule=schedule=warps=0 2>&1 | FileCheck %s --check-prefix=WARPS
// RUN: not kvbuf-compile %s --target=gfx942 --schedule=BM=8,BN=64 -o %t 2>&1 | FileCheck %s --check-prefix=SHAPE

// OTHER: 'kvbuffer.gemm' op has no schedule with 'split_keys'; expected one of BM, BN, stages, warps, tiles, producers, producer_registers, consumer_registers
// LARGE: 'kvbuffer.gemm' op has a schedule whose tiles of 256 x 512 take 512 registers in a lane of 8 warps for sums alone; sm_80 has 255; expected smaller tiles or more warps
// TEAM: 'kvbuffer.gemm' op producers = 4 {{.*}}sm_80
// WARPS: 'kvbuffer.gemm' op warps must be at least 1, got 0
// SIZE: 'kvbuffer.gemm' op BM must be {{.*}}got 0
// NONE: has no known 'kvbuffer.target'; run kvbuf-choose-schedule first
// SHAPE: leaves mma_shape open, but no instruction of gfx942, {{.*}}, divides all of its products: 8 rows

!any = memref<?x?xbf16, strided<[?, 1]>>
func.func @any(%a: !any, %b: !any, %c: !any) {
  kvbuffer.gemm a(%a) b(%b) out(%c) : !any, !any, !any
  return
}
