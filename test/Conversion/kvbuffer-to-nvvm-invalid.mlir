// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-nvvm))" --verify-diagnostics

gpu.module @m {
  gpu.func @no_such_mma(%w: vector<4xbf16>, %c: vector<16xf32>, %out: memref<16xf32>) kernel {
    // expected-error @below {{failed to legalize operation 'kvbuffer.lane_mma' that was explicitly marked illegal}}
    %d = kvbuffer.lane_mma a(%w : vector<4xbf16>) b(%w : vector<4xbf16>) c(%c : vector<16xf32>) {shape = array<i64: 32, 32, 8>}
    %c0 = arith.constant 0 : index
    vector.store %d, %out[%c0] : memref<16xf32>, vector<16xf32>
    gpu.return
  }
}
