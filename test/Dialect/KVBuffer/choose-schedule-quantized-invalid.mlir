// What no kernel does with quantized caches, said at the problem.
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a -split-input-file -verify-diagnostics
// RUN: sed -n '/^!q = memref<?x?x4x64/,/^}/p' %s | sed '/expected-error/d' > %t.mlir
// RUN: not kvbuf-opt %t.mlir --kvbuf-choose-schedule="chip=sm_90a schedule=producers=4,wideners=0" 2>&1 | FileCheck %s --check-prefix=ROLES
// RUN: not kvbuf-opt %t.mlir --kvbuf-choose-schedule="chip=sm_80 schedule=warp_cols=2" 2>&1 | FileCheck %s --check-prefix=COLUMNS
// RUN: not kvbuf-opt %t.mlir --kvbuf-choose-schedule="chip=gfx950 schedule=lazy_rescale=true" 2>&1 | FileCheck %s --check-prefix=LAZY

// ROLES: has quantized caches, whose elements products cannot read from shared memory; expected wideners > 0, producers = 0, or caches of 'bf16'
// RUN: sed -e 's/granularity = 64/granularity = 32/' %t.mlir | not kvbuf-opt --kvbuf-choose-schedule="chip=sm_90a schedule=producers=4" 2>&1 | FileCheck %s --check-prefix=PARTS
// RUN: not kvbuf-opt %t.mlir --kvbuf-choose-schedule="chip=sm_90a schedule=BN=48" 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not kvbuf-opt %t.mlir --kvbuf-choose-schedule="chip=sm_90a schedule=wideners=3" 2>&1 | FileCheck %s --check-prefix=POWER
// RUN: not kvbuf-opt %t.mlir --kvbuf-choose-schedule="chip=sm_90a schedule=wideners=0,widener_registers=24" 2>&1 | FileCheck %s --check-prefix=REGISTERS
// RUN: sed -e 's/f8E4M3FN/bf16/; s/, scale = f32, granularity = 64//' %t.mlir | not kvbuf-opt --kvbuf-choose-schedule="chip=sm_90a schedule=producers=4,wideners=4" 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: sed -e 's/head_size = 64, .*>/head_size = 256>/; s/4x64/4x256/' %t.mlir | not kvbuf-opt --kvbuf-choose-schedule="chip=sm_90a schedule=BM=128,BN=32,BK=64,warps=8,swap_a_b=false,producers=4,wideners=4" 2>&1 | FileCheck %s --check-prefix=STARTED
// PARTS: has scales for groups of columns, whose products no team widens for; expected producers = 0
// ROWS: BN = 48 is not 8 rows or more for each of 4 wideners; expected a multiple of 32
// POWER: wideners must be 0 or a power of two, got 3
// REGISTERS: widener_registers needs warps that widen; expected wideners > 0
// SAME: has nothing to widen for wideners = 4: its caches are of 'bf16'; expected wideners = 0
// STARTED: a product of 128 accumulators a lane needs 158 registers, and lanes of 512 threads start with 128 on sm_90a; expected fewer warps
// COLUMNS: has quantized caches, and warp_cols = 2, whose warps share the columns of rows; expected warp_cols = 1
// Where an instruction takes more elements, so have groups.
// RUN: sed -e 's/granularity = 64/granularity = 48/' %t.mlir | not kvbuf-opt --kvbuf-choose-schedule="chip=gfx942" 2>&1 | FileCheck %s --check-prefix=COLUMN
// RUN: sed -e 's/granularity = 64/granularity = 16/' %t.mlir | not kvbuf-opt --kvbuf-choose-schedule="chip=gfx950 schedule=split_keys=true" 2>&1 | FileCheck %s --check-prefix=CONTRACTED
// COLUMN: has scales for groups of 48 elements of v, and a product on gfx942 takes 32 of its columns at a time; expected granularity = tensor, head, 64 or a multiple of 32
// CONTRACTED: has scales for groups of 16 elements of k, and a product on gfx950 contracts 32 of them at a time; expected granularity = tensor, head, 64 or a multiple of 32

// LAZY: has a scale for each token of v, which multiplies weights before they are rounded, and lazy_rescale rounds them first; expected lazy_rescale = false
!q = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 64, scale = f32, granularity = 64>
func.func @asked(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !kv, !kv, !q
  return
}

// -----

!q = memref<?x1x4x64xbf16>
!k = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 64>
!v = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 64, scale = f32, granularity = 24>
func.func @groups(%q: !q, %k: !k, %v: !v, %o: !q) {
  // expected-error @below {{has scales for groups of 24 elements of v, and a product on sm_90a takes 16 of its columns at a time; expected granularity = tensor, head, 64 or a multiple of 16}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !k, !v, !q
  return
}

// -----

!q = memref<?x1x4x72xbf16>
!kv = !kvbuffer.cache<dense, f8E5M2, heads = 2, head_size = 72>
func.func @rows(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  // expected-error @below {{has head_size = 72 of k with elements of a byte; expected a multiple of 16}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !kv, !kv, !q
  return
}
