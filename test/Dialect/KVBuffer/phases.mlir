// The phase contract: what may appear in a kernel of each stage.

// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
gpu.module @m {
  gpu.func @tile(%token: !kvbuffer.token<#kbuf>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>} {
    %s = kvbuffer.lds_stage %token : !kvbuffer.token<#kbuf>
    gpu.return
  }
  gpu.func @scheduled(%token: !kvbuffer.token<#kbuf>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>} {
    %s = kvbuffer.lds_stage %token {younger = 0 : i64} : !kvbuffer.token<#kbuf>
    gpu.return
  }
  gpu.func @thread(%w: vector<2xbf16>, %c: vector<4xf32>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>} {
    %i = gpu.thread_id x
    %d = kvbuffer.lane_mma a(%w, %w, %w, %w : vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>)
      b(%w, %w : vector<2xbf16>, vector<2xbf16>) c(%c : vector<4xf32>) {shape = array<i64: 16, 8, 16>}
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-note @below {{the kernel is here}}
  gpu.func @lane_in_tile() kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>} {
    %c1 = arith.constant 1 : index
    scf.for %i = %c1 to %c1 step %c1 {
      // expected-error @below {{'gpu.thread_id' op is not allowed in phase 'tile': values are tiles, not lanes}}
      %t = gpu.thread_id x
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-note @below {{the kernel is here}}
  gpu.func @barrier_in_scheduled() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>} {
    // expected-error @below {{'gpu.barrier' op is not allowed in phase 'scheduled': values are tiles, not lanes}}
    gpu.barrier
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-note @below {{the kernel is here}}
  gpu.func @branch_in_tile(%some: i1) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>} {
    // expected-error @below {{'cf.cond_br' op is not allowed in phase 'tile': its control flow is scf.for, scf.while and scf.if}}
    cf.cond_br %some, ^bb1, ^bb2
  ^bb1:
    cf.br ^bb2
  ^bb2:
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-note @below {{the kernel is here}}
  gpu.func @branch_in_scheduled() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>} {
    // expected-error @below {{'cf.br' op is not allowed in phase 'scheduled': its control flow is scf.for, scf.while and scf.if}}
    cf.br ^bb1
  ^bb1:
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-note @below {{the kernel is here}}
  gpu.func @vector_in_tile(%v: vector<4xf32>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>} {
    // expected-error @below {{'vector.extract' op is not allowed in phase 'tile': values are tiles, not lanes}}
    %x = vector.extract %v[0] : f32 from vector<4xf32>
    gpu.return
  }
}

// -----

!qo = memref<?x?x1x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
gpu.module @m {
  // expected-note @below {{the kernel is here}}
  gpu.func @problem_in_tile(%q: !qo, %k: !kv) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>} {
    // expected-error @below {{'kvbuffer.attention' op is not allowed in phase 'tile': a problem stands in a func.func}}
    kvbuffer.attention q(%q) k(%k) v(%k) out(%q) : !qo, !kv, !kv, !qo
    gpu.return
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
gpu.module @m {
  // expected-note @below {{the kernel is here}}
  gpu.func @uncounted(%token: !kvbuffer.token<#kbuf>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>} {
    // expected-error @below {{'kvbuffer.lds_stage' op is not allowed in phase 'scheduled': the number of younger loads is not counted}}
    %s = kvbuffer.lds_stage %token : !kvbuffer.token<#kbuf>
    gpu.return
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
gpu.module @m {
  // expected-note @below {{the kernel is here}}
  gpu.func @no_slot(%tile: !kvbuffer.tile<16x16xbf16>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>} {
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    // expected-error @below {{'kvbuffer.dram_load' op is not allowed in phase 'scheduled': the slot that it fills is not assigned}}
    %t = kvbuffer.dram_load %tile into %buf : !kvbuffer.tile<16x16xbf16>, !kvbuffer.buffer<#kbuf>
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-note @below {{the kernel is here}}
  gpu.func @open_buffer() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>} {
    // expected-error @below {{'kvbuffer.alloc' op is not allowed in phase 'scheduled': what its buffer leaves open is not chosen}}
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#kvbuffer.kv_buffer<16x16xbf16, open>>
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-note @below {{the kernel is here}}
  gpu.func @open_team() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>} {
    kvbuffer.teams {
      // expected-error @below {{'kvbuffer.team' op is not allowed in phase 'scheduled': the number of its warps is not chosen}}
      kvbuffer.team @one {
      }
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-note @below {{the kernel is here}}
  gpu.func @tile_in_thread() kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>} {
    // expected-error @below {{'kvbuffer.fragment_fill' op is not allowed in phase 'thread': values are lanes, not tiles}}
    %z = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x16xf32, acc>
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-note @below {{the kernel is here}}
  llvm.func @lane_mma_in_target(%w: vector<2xbf16>, %c: vector<4xf32>) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    // expected-error @below {{'kvbuffer.lane_mma' op is not allowed in phase 'target': only llvm and one vendor's dialect remain}}
    %d = kvbuffer.lane_mma a(%w : vector<2xbf16>) b(%w : vector<2xbf16>) c(%c : vector<4xf32>) {shape = array<i64: 16, 8, 16>}
    llvm.return
  }
}

// -----

gpu.module @m {
  // expected-note @below {{the kernel is here}}
  llvm.func @barrier_in_target() attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    // expected-error @below {{'gpu.barrier' op is not allowed in phase 'target': only llvm and one vendor's dialect remain}}
    gpu.barrier
    llvm.return
  }
}

// -----

gpu.module @m {
  // expected-note @below {{the kernel is here}}
  llvm.func @vector_in_target(%v: vector<4xf32>) attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    // expected-error @below {{'vector.extract' op is not allowed in phase 'target': only llvm and one vendor's dialect remain}}
    %x = vector.extract %v[0] : f32 from vector<4xf32>
    llvm.return
  }
}

// -----

gpu.module @m {
  // expected-note @below {{the kernel is here}}
  llvm.func @two_vendors() attributes {kvbuffer.phase = #kvbuffer.phase<target>} {
    nvvm.barrier0
    // expected-error @below {{'rocdl.s.barrier' op is not allowed in phase 'target': the kernel is for another vendor}}
    rocdl.s.barrier
    llvm.return
  }
}

// -----

gpu.module @m {
  // expected-note @below {{the kernel is here}}
  gpu.func @target_in_thread() kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>} {
    // Instructions that only a vendor's dialect has are fine.
    nvvm.barrier0
    // expected-error @below {{'llvm.mlir.zero' op is not allowed in phase 'thread': llvm comes later}}
    %zero = llvm.mlir.zero : i32
    gpu.return
  }
}
