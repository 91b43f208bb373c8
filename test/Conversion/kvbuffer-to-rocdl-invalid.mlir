// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-rocdl))" --split-input-file --verify-diagnostics

// expected-error @below {{'gpu.module' op needs a 'kvbuffer.target' on the module that names an AMD chip}}
gpu.module @m {
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  // expected-error @below {{'gpu.module' op needs a 'kvbuffer.target' on the module that names an AMD chip}}
  gpu.module @m {
  }
}

// -----

module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @f(%a: vector<2xf16>, %c: vector<4xf32>, %out: memref<4xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-error @below {{failed to legalize operation 'kvbuffer.lane_mma' that was explicitly marked illegal}}
      %d = kvbuffer.lane_mma a(%a : vector<2xf16>) b(%a : vector<2xf16>) c(%c : vector<4xf32>) {shape = array<i64: 16, 8, 16>}
      vector.store %d, %out[%c0] : memref<4xf32>, vector<4xf32>
      gpu.return
    }
  }
}
