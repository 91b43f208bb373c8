// Sizes that no shape names, other names for a cache's sizes, and the parts of
// tensors in a problem.

// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

gpu.module @m {
  // expected-error @below {{key 'longest' of attribute 'kvbuffer.sizes' must be an integer, the name of a size or #kvbuffer.size<...>, got {of = "rows"}}}
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
  // expected-error @below {{key 'q' of 'tensors' of #kvbuffer.problem must be a string, the tensor's name, got 1}}
  gpu.func @part() kernel attributes {kvbuffer.problem = #kvbuffer.problem<op = "gemm", tensors = {q = 1}>} {
    gpu.return
  }
}

// -----

!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
gpu.module @m {
  // expected-error @below {{attribute 'kvbuffer.sizes' of argument 0 renames an unknown size 'num_block'; did you mean 'num_blocks'? (expected num_blocks, batch or pages_per_seq)}}
  gpu.func @unknown(%k: !kv {kvbuffer.sizes = {num_block = "pool"}}) kernel {
    gpu.return
  }
}

// -----

!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
gpu.module @m {
  // expected-error @below {{attribute 'kvbuffer.sizes' of argument 0 must be a dictionary from names of sizes to names, on a kernel's cache, got {num_blocks = 7 : i64}}}
  gpu.func @number(%k: !kv {kvbuffer.sizes = {num_blocks = 7 : i64}}) kernel {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{attribute 'kvbuffer.sizes' of argument 0 must be a dictionary from names of sizes to names, on a kernel's cache, got {rows = "n"}}}
  gpu.func @memref(%x: memref<?xf32> {kvbuffer.sizes = {rows = "n"}}) kernel {
    gpu.return
  }
}

// -----

// Nothing reads it on a problem's function.
!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
// expected-error @below {{attribute 'kvbuffer.sizes' of argument 0 must be a dictionary from names of sizes to names, on a kernel's cache, got {num_blocks = "pool"}}}
func.func @problem(%k: !kv {kvbuffer.sizes = {num_blocks = "pool"}}) {
  return
}
