// Numbers that options of passes and pipelines cannot be.

// RUN: not kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-work{blocks=-1})))" 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-work{blocks=65536})))" 2>&1 | FileCheck %s --check-prefix=MANY
// FEW: error: 'gpu.func' op is to be lowered with blocks = -1; expected 1 to 65535
// MANY: error: 'gpu.func' op is to be lowered with blocks = 65536; expected 1 to 65535
//
// RUN: not kvbuf-opt %s --kvbuf-outline-kernels="multiprocessors=-1" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: 'kvbuffer.attention' op is to be lowered with multiprocessors = -1; expected 0 to 2147483647
//
// RUN: not kvbuf-opt %s --kvbuf-to-tile=alignment=-1 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: not kvbuf-opt %s --kvbuf-to-target=alignment=12 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not kvbuf-opt %s --kvbuf-to-thread=alignment=4611686018427387904 2>&1 | FileCheck %s --check-prefix=HUGE
// RUN: not kvbuf-opt %s --pass-pipeline="builtin.module(kvbuf-to-scheduled{alignment=0})" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: kvbuf-opt %s --kvbuf-to-tile=alignment=2 -o /dev/null
// TILE: alignment = -1; expected 2, 4, 8 or 16
// TARGET: alignment = 12; expected 2, 4, 8 or 16
// HUGE: alignment = 4611686018427387904; expected 2, 4, 8 or 16
// ZERO: alignment = 0; expected 2, 4, 8 or 16

!q = memref<2x1x4x64xbf16>
!c = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
module attributes {kvbuffer.target = "sm_90a"} {
gpu.module @m {
  gpu.func @rows() kernel attributes {kvbuffer.grid = [1, 1, "batch"]} {
    gpu.return
  }
}
func.func @attention(%q: !q, %k: !c, %v: !c, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !c, !c, !q
  return
}
}
