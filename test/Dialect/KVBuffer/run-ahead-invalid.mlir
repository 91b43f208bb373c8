// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=loads,score})))" --verify-diagnostics

gpu.module @m {
  // expected-error @below {{no order is called 'score'; expected one of scores, turns, softmax, blocks, loads}}
  gpu.func @f() kernel {
    gpu.return
  }
}
