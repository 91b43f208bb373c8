// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-nvvm))" --split-input-file --verify-diagnostics

gpu.module @m {
  gpu.func @no_such_mma(%w: vector<4xbf16>, %c: vector<16xf32>, %out: memref<16xf32>) kernel {
    // expected-error @below {{failed to legalize operation 'kvbuffer.lane_mma' that was explicitly marked illegal}}
    %d = kvbuffer.lane_mma a(%w : vector<4xbf16>) b(%w : vector<4xbf16>) c(%c : vector<16xf32>) {shape = array<i64: 32, 32, 8>}
    %c0 = arith.constant 0 : index
    vector.store %d, %out[%c0] : memref<16xf32>, vector<16xf32>
    gpu.return
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @f(%a: vector<4xbf16>, %b: vector<4xbf16>, %c: vector<16xf32>, %out: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.lane_mma' op has shape 32x32x8; for bf16 sm_80 has 16x8x16}}
      %d = kvbuffer.lane_mma a(%a : vector<4xbf16>) b(%b : vector<4xbf16>) c(%c : vector<16xf32>) {shape = array<i64: 32, 32, 8>}
      vector.store %d, %out[%c0] : memref<?xf32>, vector<16xf32>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @f(%a: vector<4xf8E4M3FN>, %b: vector<4xf8E4M3FN>, %c: vector<4xf32>, %out: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.lane_mma' op multiplies elements of f8E4M3FN, which sm_80 lacks; it has no 8-bit floats}}
      %d = kvbuffer.lane_mma a(%a, %a, %a, %a : vector<4xf8E4M3FN>, vector<4xf8E4M3FN>, vector<4xf8E4M3FN>, vector<4xf8E4M3FN>) b(%b, %b : vector<4xf8E4M3FN>, vector<4xf8E4M3FN>) c(%c : vector<4xf32>) {shape = array<i64: 16, 8, 32>}
      vector.store %d, %out[%c0] : memref<?xf32>, vector<4xf32>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @f(%a: vector<4xf8E4M3FNUZ>, %b: vector<4xf8E4M3FNUZ>, %c: vector<4xf32>, %out: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.lane_mma' op multiplies elements of f8E4M3FNUZ, which sm_90a lacks; its 8-bit floats are f8E4M3FN and f8E5M2}}
      %d = kvbuffer.lane_mma a(%a, %a, %a, %a : vector<4xf8E4M3FNUZ>, vector<4xf8E4M3FNUZ>, vector<4xf8E4M3FNUZ>, vector<4xf8E4M3FNUZ>) b(%b, %b : vector<4xf8E4M3FNUZ>, vector<4xf8E4M3FNUZ>) c(%c : vector<4xf32>) {shape = array<i64: 16, 8, 32>}
      vector.store %d, %out[%c0] : memref<?xf32>, vector<4xf32>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @f(%a: vector<4xf8E5M2>, %b: vector<4xf8E5M2>, %c: vector<4xf32>, %out: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.lane_mma' op has shape 16x8x16; for f8E5M2 sm_90a has 16x16x32 and 16x8x32}}
      %d = kvbuffer.lane_mma a(%a, %a, %a, %a : vector<4xf8E5M2>, vector<4xf8E5M2>, vector<4xf8E5M2>, vector<4xf8E5M2>) b(%b, %b : vector<4xf8E5M2>, vector<4xf8E5M2>) c(%c : vector<4xf32>) {shape = array<i64: 16, 8, 16>}
      vector.store %d, %out[%c0] : memref<?xf32>, vector<4xf32>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "gfx950"} {
  // expected-error @below {{'gpu.module' op is for 'gfx950', which is no NVIDIA chip}}
  gpu.module @m {
  }
}
