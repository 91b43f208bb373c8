// The programs of nvidia.mlir that name no vendor, on AMD's chips: waves of 64
// lanes, and of 32, which bitcode tells by how it counts lanes.

// RUN: split-file %S/nvidia.mlir %t
// RUN: %rocdl gfx942 %t/vecadd.mlir | %mlir_runner | FileCheck %t/vecadd.mlir
// RUN: %rocdl gfx942 %t/reduce.mlir | %mlir_runner | FileCheck %t/reduce.mlir
// RUN: %rocdl gfx1100 %t/reduce.mlir | %mlir_runner | FileCheck %t/reduce.mlir
// RUN: %rocdl gfx942 %t/printf.mlir | %mlir_runner | FileCheck %t/printf.mlir
// RUN: %rocdl gfx942 %t/async.mlir | %mlir_runner | FileCheck %t/async.mlir
// RUN: %rocdl gfx942 %t/modules.mlir | %mlir_runner | FileCheck %t/modules.mlir
// RUN: %rocdl gfx942 %t/dynamic.mlir | %mlir_runner | FileCheck %t/dynamic.mlir
// RUN: %rocdl gfx1100 %t/transpose.mlir | %mlir_runner | FileCheck %t/transpose.mlir
// RUN: %rocdl gfx942 %t/atomics.mlir | %mlir_runner | FileCheck %t/atomics.mlir
// RUN: %rocdl gfx942 %t/globals.mlir | %mlir_runner | FileCheck %t/globals.mlir
// RUN: %rocdl gfx942 %t/types.mlir | %mlir_runner | FileCheck %t/types.mlir

// Two kernels that wait for each other; faults.
// RUN: split-file %S/streams.mlir %t
// RUN: %rocdl gfx942 %t/exchange.mlir | %mlir_runner | FileCheck %t/exchange.mlir
// RUN: %rocdl gfx942 %t/unordered.mlir | not %mlir_runner 2>&1 | FileCheck %t/unordered.mlir
// RUN: split-file %S/nvidia-faults.mlir %t
// RUN: %rocdl gfx942 %t/diverge.mlir | not %mlir_runner 2>&1 | FileCheck %s --check-prefix=DIVERGE
// RUN: %rocdl gfx942 %t/blocks.mlir | not %mlir_runner 2>&1 | FileCheck %s --check-prefix=BLOCKS
DIVERGE: error: {{.*}}barrier
BLOCKS: error: {{.*}}race
