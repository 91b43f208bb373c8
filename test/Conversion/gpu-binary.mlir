// Upstream's pass makes code objects, too. It links with the ld.lld of a ROCm, or of a
// folder that is laid out like one.

// REQUIRES: ld.lld
// RUN: rm -rf %t && mkdir -p %t/llvm/bin
// RUN: not kvbuf-opt %s --gpu-module-to-binary="format=bin toolkit=%t" -o %t/none 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: lld invocation failed
// RUN: %python -c "import os, shutil; os.symlink(shutil.which('ld.lld'), '%t/llvm/bin/ld.lld')"
// RUN: kvbuf-opt %s --gpu-module-to-binary="format=bin toolkit=%t" | FileCheck %s
// CHECK: gpu.binary @m [#gpu.object<#rocdl.target<chip = "gfx942">, bin = "\7FELF

module attributes {gpu.container_module} {
  gpu.module @m [#rocdl.target<chip = "gfx942">] {
    llvm.func @k() attributes {gpu.kernel, rocdl.kernel} {
      llvm.return
    }
  }
}
