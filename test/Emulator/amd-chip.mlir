// Which machine a kernel is executed as: the chip that the module or the
// gpu.module names, else the largest of the vendor's.
//
// RUN: split-file %s %t
// RUN: not kvbuf-emu-test %t/attribute.mlir --shared=65537 2>&1 | FileCheck %s --check-prefix=GFX942
// RUN: not kvbuf-emu-test %t/module.mlir --shared=65537 2>&1 | FileCheck %s --check-prefix=GFX942
// RUN: kvbuf-emu-test %t/attribute.mlir --shared=65537 --options='{"max_shared":70000}'
// RUN: kvbuf-emu-test %t/none.mlir --block=1024 --shared=163840
// RUN: not kvbuf-emu-test %t/none.mlir --shared=163841 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not kvbuf-emu-test %t/none.mlir --block=1025 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not kvbuf-emu-test %t/nvidia.mlir --shared=166913 2>&1 | FileCheck %s --check-prefix=SM80
// RUN: kvbuf-emu-test %t/nvidia.mlir --shared=166912

// GFX942: a block needs 65537 bytes of shared memory; the machine has 65536
// NONE: a block needs 163841 bytes of shared memory; the machine has 163840
// THREADS: a block of 1025 threads; the machine takes 1024
// SM80: a block needs 166913 bytes of shared memory; the machine has 166912

//--- attribute.mlir
module attributes {kvbuffer.target = "gfx942"} {
  llvm.func @kernel() attributes {rocdl.kernel} {
    llvm.return
  }
}
//--- module.mlir
module attributes {gpu.container_module} {
  gpu.module @kernels [#rocdl.target<chip = "gfx942">] {
    llvm.func @kernel() attributes {gpu.kernel, rocdl.kernel} {
      %size = rocdl.wavefrontsize : i32
      llvm.return
    }
  }
}
//--- none.mlir
llvm.func @kernel() attributes {rocdl.kernel} {
  llvm.return
}
//--- nvidia.mlir
gpu.module @kernels attributes {kvbuffer.target = "sm_80"} {
  llvm.func @kernel() attributes {nvvm.kernel} {
    llvm.return
  }
}
