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
    gpu.func @f(%a: vector<2xf16>, %b: vector<2xf16>, %c: vector<4xf32>, %out: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.lane_mma' op has shape 16x8x16; for f16 gfx950 has 32x32x16 and 16x16x32}}
      %d = kvbuffer.lane_mma a(%a : vector<2xf16>) b(%b : vector<2xf16>) c(%c : vector<4xf32>) {shape = array<i64: 16, 8, 16>}
      vector.store %d, %out[%c0] : memref<?xf32>, vector<4xf32>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @f(%a: vector<8xbf16>, %b: vector<8xbf16>, %c: vector<16xf32>, %out: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.lane_mma' op has shape 32x32x16; for bf16 gfx942 has 32x32x8 and 16x16x16}}
      %d = kvbuffer.lane_mma a(%a : vector<8xbf16>) b(%b : vector<8xbf16>) c(%c : vector<16xf32>) {shape = array<i64: 32, 32, 16>}
      vector.store %d, %out[%c0] : memref<?xf32>, vector<16xf32>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @f(%a: vector<4xf8E4M3FNUZ>, %b: vector<4xf8E4M3FNUZ>, %c: vector<16xf32>, %out: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.lane_mma' op has shape 32x32x8; for f8E4M3FNUZ gfx942 has 32x32x16 and 16x16x32}}
      %d = kvbuffer.lane_mma a(%a : vector<4xf8E4M3FNUZ>) b(%b : vector<4xf8E4M3FNUZ>) c(%c : vector<16xf32>) {shape = array<i64: 32, 32, 8>}
      vector.store %d, %out[%c0] : memref<?xf32>, vector<16xf32>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @f(%a: vector<8xf8E4M3FN>, %b: vector<8xf8E4M3FN>, %c: vector<16xf32>, %out: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.lane_mma' op multiplies elements of f8E4M3FN, which gfx942 lacks; its 8-bit floats are f8E4M3FNUZ and f8E5M2FNUZ}}
      %d = kvbuffer.lane_mma a(%a : vector<8xf8E4M3FN>) b(%b : vector<8xf8E4M3FN>) c(%c : vector<16xf32>) {shape = array<i64: 32, 32, 16>}
      vector.store %d, %out[%c0] : memref<?xf32>, vector<16xf32>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @f(%a: vector<8xf8E4M3FN>, %b: vector<8xf8E5M2FNUZ>, %c: vector<4xf32>, %out: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.lane_mma' op multiplies elements of f8E5M2FNUZ, which gfx950 lacks; its 8-bit floats are f8E4M3FN and f8E5M2}}
      %d = kvbuffer.lane_mma a(%a : vector<8xf8E4M3FN>) b(%b : vector<8xf8E5M2FNUZ>) c(%c : vector<4xf32>) {shape = array<i64: 16, 16, 32>}
      vector.store %d, %out[%c0] : memref<?xf32>, vector<4xf32>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @f(%a: vector<1xf64>, %b: vector<1xf64>, %c: vector<4xf32>, %out: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.lane_mma' op multiplies elements of f64, for which there is no matrix instruction on gfx950; expected bf16, f16, f8E4M3FN or f8E5M2}}
      %d = kvbuffer.lane_mma a(%a : vector<1xf64>) b(%b : vector<1xf64>) c(%c : vector<4xf32>) {shape = array<i64: 16, 16, 4>}
      vector.store %d, %out[%c0] : memref<?xf32>, vector<4xf32>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @f(%a: vector<8xbf16>, %b: vector<8xf16>, %c: vector<4xf32>, %out: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.lane_mma' op multiplies elements of bf16 by f16; expected one type}}
      %d = kvbuffer.lane_mma a(%a : vector<8xbf16>) b(%b : vector<8xf16>) c(%c : vector<4xf32>) {shape = array<i64: 16, 16, 32>}
      vector.store %d, %out[%c0] : memref<?xf32>, vector<4xf32>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @f(%a: vector<4xbf16>, %b: vector<8xbf16>, %c: vector<4xf32>, %out: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.lane_mma' op expected operand a of 1 x 'vector<8xbf16>' for 16x16x32 on gfx950, got 1 x 'vector<4xbf16>'}}
      %d = kvbuffer.lane_mma a(%a : vector<4xbf16>) b(%b : vector<8xbf16>) c(%c : vector<4xf32>) {shape = array<i64: 16, 16, 32>}
      vector.store %d, %out[%c0] : memref<?xf32>, vector<4xf32>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @f(%a: vector<4xf16>, %b: vector<4xf16>, %c: vector<4xf32>, %out: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.lane_mma' op expected operand b of 1 x 'vector<4xf16>' for 16x16x16 on gfx942, got 2 x 'vector<4xf16>'}}
      %d = kvbuffer.lane_mma a(%a : vector<4xf16>) b(%b, %b : vector<4xf16>, vector<4xf16>) c(%c : vector<4xf32>) {shape = array<i64: 16, 16, 16>}
      vector.store %d, %out[%c0] : memref<?xf32>, vector<4xf32>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @f(%a: vector<4xf16>, %b: vector<4xf16>, %c: vector<4xf32>, %out: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-error @below {{'kvbuffer.lane_mma' op expected accumulators 'vector<16xf32>' for 32x32x8 on gfx942, got 'vector<4xf32>'}}
      %d = kvbuffer.lane_mma a(%a : vector<4xf16>) b(%b : vector<4xf16>) c(%c : vector<4xf32>) {shape = array<i64: 32, 32, 8>}
      vector.store %d, %out[%c0] : memref<?xf32>, vector<4xf32>
      gpu.return
    }
  }
}

// -----

#lds = #gpu.address_space<workgroup>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @f(%k: memref<64xbf16>, %m: memref<64xbf16, #lds>, %at: index) kernel {
      // expected-error @below {{'kvbuffer.lane_copy' op copies 16 bytes a lane into LDS; gfx942 can copy 1, 2 or 4}}
      kvbuffer.lane_copy %k[%at] to %m[%at] {bytes = 16 : i64} : memref<64xbf16>, memref<64xbf16, #lds>
      gpu.return
    }
  }
}

// -----

// Copies into LDS that the chip cannot do, and transposed reads of it.
#lds = #gpu.address_space<workgroup>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @f(%r: !kvbuffer.range, %m: memref<64xbf16, #lds>, %i: i32, %at: index) kernel {
      // expected-error @below {{'kvbuffer.range_copy' op copies 16 bytes a lane into LDS; gfx942 can copy 1, 2 or 4}}
      kvbuffer.range_copy %r[%i] to %m[%at] {bytes = 16 : i64} : memref<64xbf16, #lds>
      gpu.return
    }
  }
}

// -----

#lds = #gpu.address_space<workgroup>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @f(%k: memref<64xbf16, 1>, %m: memref<64xbf16, #lds>, %at: index) kernel {
      // expected-error @below {{'amdgpu.gather_to_lds' op copies 16 bytes a lane into LDS; gfx942 can copy 1, 2 or 4}}
      amdgpu.gather_to_lds %k[%at], %m[%at] : vector<8xbf16>, memref<64xbf16, 1>, memref<64xbf16, #lds>
      gpu.return
    }
  }
}

// -----

#lds = #gpu.address_space<workgroup>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @f(%m: memref<64xbf16, #lds>, %at: index, %out: memref<4xbf16>) kernel {
      // expected-error @below {{'amdgpu.transpose_load' op reads LDS transposed, which gfx942 cannot do}}
      %v = amdgpu.transpose_load %m[%at] : memref<64xbf16, #lds> -> vector<4xbf16>
      vector.store %v, %out[%at] : memref<4xbf16>, vector<4xbf16>
      gpu.return
    }
  }
}

// -----

#lds = #gpu.address_space<workgroup>
module attributes {kvbuffer.target = "gfx1250"} {
  gpu.module @m {
    gpu.func @f(%m: memref<64xbf16, #lds>, %at: index, %out: memref<4xbf16>) kernel {
      // expected-error @below {{'amdgpu.transpose_load' op reads LDS transposed, which gfx1250 cannot do by 8 bytes a lane; expected kvbuffer.turned_read}}
      %v = amdgpu.transpose_load %m[%at] : memref<64xbf16, #lds> -> vector<4xbf16>
      vector.store %v, %out[%at] : memref<4xbf16>, vector<4xbf16>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @f(%l: f32, %pair: vector<2xbf16>, %at: index, %out: memref<4xf32>) kernel {
      // expected-error @below {{'kvbuffer.pair_sum' op adds a pair of bf16, which gfx942 cannot do; expected arith.extf and arith.addf}}
      %x = kvbuffer.pair_sum %l, %pair : vector<2xbf16>
      memref.store %x, %out[%at] : memref<4xf32>
      gpu.return
    }
  }
}

// -----

#lds = #gpu.address_space<workgroup>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @f(%m: memref<?xi8, #lds>, %at: index, %out: memref<8xbf16>) kernel {
      // expected-error @below {{'kvbuffer.turned_read' op reads LDS transposed by 16 bytes a lane, which gfx950 cannot do; expected amdgpu.transpose_load}}
      %v = kvbuffer.turned_read %m[%at] : memref<?xi8, #lds> -> vector<8xbf16>
      vector.store %v, %out[%at] : memref<8xbf16>, vector<8xbf16>
      gpu.return
    }
  }
}

// -----

#lds = #gpu.address_space<workgroup>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @f(%k: memref<bf16, 1>, %m: memref<?xi8, #lds>, %at: index, %n: i32, %is: i1) kernel {
      // expected-error @below {{'kvbuffer.box_copy' op asks an engine for boxes, which gfx950 lacks}}
      kvbuffer.box_copy %k[%at] stride(%at) valid(%n) if %is to %m[%at]
        {blocks = 2 : i64, rows = 64 : i64, columns = 16 : i64} : memref<bf16, 1>, memref<?xi8, #lds>
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @f(%x: vector<4xf8E4M3FN>, %out: memref<4xf32>, %at: index) kernel {
      // expected-error @below {{'amdgpu.ext_packed_fp8' op has elements of f8E4M3FN, which gfx942 lacks; its 8-bit floats are f8E4M3FNUZ and f8E5M2FNUZ}}
      %v = amdgpu.ext_packed_fp8 %x[0] : vector<4xf8E4M3FN> to f32
      memref.store %v, %out[%at] : memref<4xf32>
      gpu.return
    }
  }
}
