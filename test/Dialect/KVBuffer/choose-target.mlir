// Which chip a module is lowered for: what an option names, else what the module
// names, else the default. The same in the pass, in what chooses a schedule and
// in the pipelines.

// RUN: split-file %s %t

// Neither names a chip.
// RUN: kvbuf-opt %t/none.mlir --kvbuf-choose-target | FileCheck %s --check-prefix=DEFAULT
// RUN: kvbuf-opt %t/none.mlir --kvbuf-choose-target=vendor=amd | FileCheck %s --check-prefix=AMD
// RUN: kvbuf-opt %t/none.mlir --kvbuf-choose-schedule | FileCheck %s --check-prefix=DEFAULT
// RUN: kvbuf-opt %t/none.mlir --kvbuf-to-tile | FileCheck %s --check-prefix=DEFAULT
// RUN: kvbuf-opt %t/none.mlir --kvbuf-lower-to-rocdl | FileCheck %s --check-prefix=AMD
// DEFAULT: module attributes {{.*}}kvbuffer.target = "sm_80"
// AMD:     module attributes {{.*}}kvbuffer.target = "gfx950"

// The module does.
// RUN: kvbuf-opt %t/named.mlir --kvbuf-choose-target | FileCheck %s --check-prefix=NAMED
// RUN: kvbuf-opt %t/named.mlir --kvbuf-choose-schedule | FileCheck %s --check-prefix=NAMED
// RUN: kvbuf-opt %t/named.mlir --kvbuf-to-tile | FileCheck %s --check-prefix=NAMED
// RUN: kvbuf-opt %t/named.mlir --kvbuf-to-target | FileCheck %s --check-prefixes=NAMED,LANES
// RUN: kvbuf-opt %t/named.mlir --kvbuf-lower-to-rocdl | FileCheck %s --check-prefixes=NAMED,LANES
// NAMED: module attributes {{.*}}kvbuffer.target = "gfx942"
// LANES: rocdl.mfma

// Both do, and differ.
// RUN: kvbuf-opt %t/named.mlir --kvbuf-choose-target=chip=sm_90 2>&1 | FileCheck %s --check-prefixes=SAID,OTHER
// RUN: kvbuf-opt %t/named.mlir --kvbuf-choose-schedule=chip=sm_90 2>&1 | FileCheck %s --check-prefixes=SAID,OTHER
// RUN: kvbuf-opt %t/named.mlir --kvbuf-to-target=chip=sm_90 2>&1 | FileCheck %s --check-prefixes=SAID,OTHER
// SAID:  remark: is lowered for "sm_90", which an option names; its 'kvbuffer.target' is "gfx942"
// SAID-NOT: remark: is lowered
// OTHER: module attributes {{.*}}kvbuffer.target = "sm_90"

// Both do, and agree.
// RUN: kvbuf-opt %t/named.mlir --kvbuf-to-tile=chip=gfx942 2>&1 | FileCheck %s --implicit-check-not=remark --check-prefix=NAMED

// RUN: kvbuf-opt %t/named.mlir --kvbuf-to-tile=chip=gfx942:sramecc+:xnack- 2>&1 | FileCheck %s --implicit-check-not=remark --check-prefix=NAMED

// Kernels that are lowered already stay with their chip.
// RUN: kvbuf-opt %t/named.mlir --kvbuf-to-tile -o %t/tile.mlir
// RUN: kvbuf-opt %t/tile.mlir --kvbuf-choose-target | FileCheck %s --check-prefix=NAMED
// RUN: not kvbuf-opt %t/tile.mlir --kvbuf-choose-target=chip=sm_80 2>&1 | FileCheck %s --check-prefix=LOWERED
// RUN: not kvbuf-opt %t/tile.mlir --kvbuf-to-thread=chip=sm_80 2>&1 | FileCheck %s --check-prefix=LOWERED
// LOWERED: error: was lowered for "gfx942" already; it cannot be compiled for "sm_80"

// A pipeline of one vendor refuses the other's chips, whoever names them.
// RUN: not kvbuf-opt %t/none.mlir --kvbuf-lower-to-nvvm=chip=gfx942 2>&1 | FileCheck %s --check-prefix=NVVM
// RUN: not kvbuf-opt %t/named.mlir --kvbuf-lower-to-nvvm 2>&1 | FileCheck %s --check-prefix=NVVM
// NVVM: error: the module is to be lowered for gfx942, a chip of amd, but kvbuf-lower-to-nvvm is for chips of nvidia; expected kvbuf-lower-to-rocdl, or kvbuf-to-target for any
// RUN: not kvbuf-opt %t/none.mlir --kvbuf-lower-to-rocdl=chip=sm_80 2>&1 | FileCheck %s --check-prefix=ROCDL
// ROCDL: error: the module is to be lowered for sm_80, a chip of nvidia, but kvbuf-lower-to-rocdl is for chips of amd; expected kvbuf-lower-to-nvvm, or kvbuf-to-target for any

// A chip that is not known.
// RUN: not kvbuf-opt %t/none.mlir --kvbuf-to-target=chip=sm_12 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: unknown target 'sm_12'; expected one of gfx942, gfx950, gfx1250, sm_80,

//--- none.mlir
!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

//--- named.mlir
!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
module attributes {kvbuffer.target = "gfx942"} {
  func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
    kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    return
  }
}
