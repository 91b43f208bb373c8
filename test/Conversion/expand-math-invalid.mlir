// Functions that nothing computes are errors at the op; all are said at once.

// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(kvbuf-expand-math))" --verify-diagnostics

gpu.module @m {
  gpu.func @kernel(%x: f64, %v: vector<2xf64>) -> (f64, vector<2xf64>) {
    // expected-error@+1 {{'math.exp' op has operands of 'f64', which no chip computes and no formula is for; expected f32, f16 or bf16}}
    %0 = math.exp %x : f64
    // expected-error@+1 {{'math.atan2' op has operands of 'vector<2xf64>'}}
    %1 = math.atan2 %v, %v : vector<2xf64>
    gpu.return %0, %1 : f64, vector<2xf64>
  }
}

// -----

gpu.module @m {
  gpu.func @kernel(%i: i32) -> i32 {
    // expected-error@+1 {{'math.ipowi' op has no instruction on a chip, and no formula takes its place; kernels are linked with no library of functions}}
    %0 = math.ipowi %i, %i : i32
    gpu.return %0 : i32
  }
}
