// Each pass on a kernel that has nothing of the dialect, which is then loaded by
// the pass alone.

// DEFINE: %{pass} =
// DEFINE: %{run} = kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(%{pass})))" | FileCheck %s
// REDEFINE: %{pass} = kvbuf-count-waits
// RUN: %{run}
// REDEFINE: %{pass} = kvbuf-assign-slots
// RUN: %{run}
// REDEFINE: %{pass} = kvbuf-run-ahead{orders=loads}
// RUN: %{run}
// REDEFINE: %{pass} = kvbuf-run-ahead{orders=blocks}
// RUN: %{run}
// REDEFINE: %{pass} = kvbuf-run-ahead{orders=scores}
// RUN: %{run}
// REDEFINE: %{pass} = kvbuf-run-ahead{orders=softmax}
// RUN: %{run}
// REDEFINE: %{pass} = kvbuf-assign-work
// RUN: %{run}
// REDEFINE: %{pass} = kvbuf-assign-teams
// RUN: %{run}
// REDEFINE: %{pass} = kvbuf-share-loads
// RUN: %{run}
// REDEFINE: %{pass} = kvbuf-async-products
// RUN: %{run}
// REDEFINE: %{pass} = kvbuf-lazy-rescale
// RUN: %{run}
// REDEFINE: %{pass} = kvbuf-run-ahead{orders=turns}
// RUN: %{run}
// REDEFINE: %{pass} = kvbuf-split-masked-loops
// RUN: %{run}
// REDEFINE: %{pass} = kvbuf-rotate-loops
// RUN: %{run}

// CHECK: gpu.func @f()
gpu.module @m {
  gpu.func @f() kernel {
    gpu.return
  }
}
