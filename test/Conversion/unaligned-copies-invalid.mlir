// Alignments that are none, and kernels that cannot be made for less than 16.

// RUN: not kvbuf-opt %s --kvbuf-to-thread="alignment=6" 2>&1 | FileCheck %s --check-prefix=SIX
// SIX: error: 'gpu.func' op is to be lowered with alignment = 6; expected 2, 4, 8 or 16
// RUN: not kvbuf-opt %s --kvbuf-to-thread="alignment=32" 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: error: 'gpu.func' op is to be lowered with alignment = 32; expected 2, 4, 8 or 16
// RUN: not kvbuf-opt %s --kvbuf-to-thread="alignment=2 chip=gfx950" 2>&1 | FileCheck %s --check-prefix=AMD
// AMD: error: 'gpu.func' op is to be lowered with alignment = 2, but copies on gfx950 need 16 bytes; expected alignment = 16
// RUN: not kvbuf-opt %s --kvbuf-to-thread="alignment=8 chip=sm_90a" 2>&1 | FileCheck %s --check-prefix=ROLES
// ROLES: error: 'gpu.func' op is to be lowered with alignment = 8, but has warp roles, whose copy engine needs 16 bytes; expected a schedule with producers = 0
// RUN: kvbuf-opt %s --kvbuf-to-thread="alignment=8 chip=sm_90a schedule=producers=0" -o /dev/null

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
