// Sizes that no shape names, and the parts of tensors in a problem.

// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

gpu.module @m {
  // expected-error @below {{key 'longest' of attribute 'kvbuffer.sizes' must be an integer, a size or {product, sum, ceildiv, floordiv, min or max = [...]}, got {of = "rows"}}}
  gpu.func @expression() kernel attributes {kvbuffer.sizes = {longest = {of = "rows"}}} {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{attribute 'kvbuffer.sizes' must be a dictionary}}
  gpu.func @list() kernel attributes {kvbuffer.sizes = ["longest"]} {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{key 'q' of 'tensors' of attribute 'kvbuffer.problem' must be a string, the tensor's name, got 1}}
  gpu.func @part() kernel attributes {kvbuffer.problem = {op = "gemm", tensors = {q = 1 : i64}}} {
    gpu.return
  }
}
