// RUN: kvbuf-opt %s --kvbuf-expand-arguments --split-input-file --verify-diagnostics

gpu.module @m {
  // expected-error @below {{has no known_block_size, the threads of a block in each dimension; its arguments cannot become parameters without it}}
  gpu.func @kernel() kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, kvbuffer.grid = [1, 1, 1]} {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{has no 'kvbuffer.grid', the blocks of a launch in each dimension; its arguments cannot become parameters without it}}
  gpu.func @kernel() kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>} {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{argument 0 has no 'kvbuffer.name', the name of its tensor}}
  gpu.func @kernel(%x: memref<?xf32>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>, kvbuffer.grid = [1, 1, 1]} {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{has two arguments with 'kvbuffer.name' = "x"}}
  gpu.func @kernel(%x: memref<?xf32> {kvbuffer.name = "x"}, %y: memref<?xf32> {kvbuffer.name = "x"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>, kvbuffer.grid = [1, 1, 1]} {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{argument 0 is "x" of type 'f32'; expected a cache or a strided memref of rank 1 or more}}
  gpu.func @kernel(%x: f32 {kvbuffer.name = "x"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>, kvbuffer.grid = [1, 1, 1]} {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{argument 0 is "x" with elements 'f64'; expected bf16, f16, f32, an 8-bit float, i8, i32 or i64}}
  gpu.func @kernel(%x: memref<?xf64> {kvbuffer.name = "x"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>, kvbuffer.grid = [1, 1, 1]} {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{argument 0 is "x" of type 'memref<?xf32, strided<[2]>>'; expected elements of the last dimension side by side, a stride of 1}}
  gpu.func @kernel(%x: memref<?xf32, strided<[2]>> {kvbuffer.name = "x"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>, kvbuffer.grid = [1, 1, 1]} {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{argument 0 has 'kvbuffer.shape' = ["n"]; expected an array of 2 names, numbers or expressions}}
  gpu.func @kernel(%x: memref<?x?xf32> {kvbuffer.name = "x", kvbuffer.shape = ["n"]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>, kvbuffer.grid = [1, 1, 1]} {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{argument 0 has 'kvbuffer.shape' = [3], whose dimension 0 differs from that of 'memref<4xf32>'}}
  gpu.func @kernel(%x: memref<4xf32> {kvbuffer.name = "x", kvbuffer.shape = [3 : i64]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>, kvbuffer.grid = [1, 1, 1]} {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{argument 0 is a counter of type 'memref<4xf32>'; expected elements i32}}
  gpu.func @kernel(%x: memref<4xf32> {kvbuffer.name = "x", kvbuffer.access = "counter"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>, kvbuffer.grid = [1, 1, 1]} {
    gpu.return
  }
}

// -----

!dense = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
gpu.module @m {
  // expected-error @below {{argument 0 is a cache and a workspace, which the launch provides; expected a memref}}
  gpu.func @kernel(%x: !dense {kvbuffer.name = "x", kvbuffer.access = "workspace"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>, kvbuffer.grid = [1, 1, 1]} {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{argument 0 is "x" of type 'memref<?xf32, strided<[1], offset: 4>>'; expected no offset: the address is that of the first element}}
  gpu.func @kernel(%x: memref<?xf32, strided<[1], offset: 4>> {kvbuffer.name = "x"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>, kvbuffer.grid = [1, 1, 1]} {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{argument 1 fixes n at 8, an argument before it at 4}}
  gpu.func @kernel(%x: memref<4xf32> {kvbuffer.name = "x", kvbuffer.shape = ["n"]}, %y: memref<8xf32> {kvbuffer.name = "y", kvbuffer.shape = ["n"]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>, kvbuffer.grid = [1, 1, 1]} {
    gpu.return
  }
}
