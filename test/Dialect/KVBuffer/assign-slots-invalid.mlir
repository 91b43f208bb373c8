// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-slots)))" --split-input-file --verify-diagnostics

#two = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
!tile = !kvbuffer.tile<16x16xbf16>
!two = !kvbuffer.buffer<#two>
gpu.module @m {
  gpu.func @mixed(%tile: !tile, %i: index) kernel {
    %b = kvbuffer.alloc : !two
    // expected-note @below {{the other load is here}}
    %t0 = kvbuffer.dram_load %tile into %b[%i] : !tile, !two
    // expected-error @below {{'kvbuffer.dram_load' op names no slot, and another load into the buffer does; expected all to, or none}}
    %t1 = kvbuffer.dram_load %tile into %b : !tile, !two
    gpu.return
  }
}

// -----

#two = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
!tile = !kvbuffer.tile<16x16xbf16>
!two = !kvbuffer.buffer<#two>
gpu.module @m {
  // Fillings 0 and 2 have one slot of two.
  gpu.func @three_in_flight(%tile: !tile) kernel {
    %b = kvbuffer.alloc : !two
    // expected-note @below {{the other load is here}}
    %t0 = kvbuffer.dram_load %tile into %b : !tile, !two
    %t1 = kvbuffer.dram_load %tile into %b : !tile, !two
    // expected-error @below {{'kvbuffer.dram_load' op fills a slot that another load is on its way to; expected a kvbuffer.lds_stage of that one before, or more than 2 slots}}
    %t2 = kvbuffer.dram_load %tile into %b : !tile, !two
    %s:3 = kvbuffer.lds_stage %t0, %t1, %t2 : !kvbuffer.token<#two>, !kvbuffer.token<#two>, !kvbuffer.token<#two>
    gpu.return
  }

  // With a wait in between they may.
  gpu.func @awaited(%tile: !tile) kernel {
    %b = kvbuffer.alloc : !two
    %t0 = kvbuffer.dram_load %tile into %b : !tile, !two
    %t1 = kvbuffer.dram_load %tile into %b : !tile, !two
    %s = kvbuffer.lds_stage %t0 : !kvbuffer.token<#two>
    %t2 = kvbuffer.dram_load %tile into %b : !tile, !two
    gpu.return
  }
}

// -----

#two = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
!tile = !kvbuffer.tile<16x16xbf16>
!two = !kvbuffer.buffer<#two>
gpu.module @m {
  // The same of slots that the program names: i and i + 2.
  gpu.func @named(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %b = kvbuffer.alloc : !two
    scf.for %i = %c0 to %n step %c1 {
      %now = arith.remui %i, %c2 : index
      %far = arith.addi %i, %c2 : index
      %then = arith.remui %far, %c2 : index
      // expected-note @below {{the other load is here}}
      %t0 = kvbuffer.dram_load %tile into %b[%now] : !tile, !two
      // expected-error @below {{'kvbuffer.dram_load' op fills a slot that another load is on its way to; expected a kvbuffer.lds_stage of that one before, or more than 2 slots}}
      %t1 = kvbuffer.dram_load %tile into %b[%then] : !tile, !two
    }
    gpu.return
  }
}

// -----

#one = #kvbuffer.kv_buffer<16x16xbf16, stages = 1>
!tile = !kvbuffer.tile<16x16xbf16>
!one = !kvbuffer.buffer<#one>
gpu.module @m {
  gpu.func @one_slot(%tile: !tile) kernel {
    %b = kvbuffer.alloc : !one
    // expected-note @below {{the other load is here}}
    %t0 = kvbuffer.dram_load %tile into %b : !tile, !one
    // expected-error @below {{'kvbuffer.dram_load' op fills a slot that another load is on its way to; expected a kvbuffer.lds_stage of that one before, or more than 1 slot}}
    %t1 = kvbuffer.dram_load %tile into %b : !tile, !one
    gpu.return
  }
}

// -----

#two = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
!tile = !kvbuffer.tile<16x16xbf16>
!two = !kvbuffer.buffer<#two>
gpu.module @m {
  gpu.func @unknown(%tile: !tile, %n: index) kernel {
    %b = kvbuffer.alloc : !two
    // expected-note @below {{it is inside of this op}}
    scf.execute_region {
      // expected-error @below {{'kvbuffer.dram_load' op names no slot, and the order in which it runs is not known; expected scf.for, scf.while or scf.if around it, or its slot}}
      %t = kvbuffer.dram_load %tile into %b : !tile, !two
      scf.yield
    }
    gpu.return
  }
}

// -----

#two = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
!tile = !kvbuffer.tile<16x16xbf16>
!two = !kvbuffer.buffer<#two>
gpu.module @m {
  // Its fillings would be counted under two names.
  gpu.func @renamed(%tile: !tile, %c: i1) kernel {
    %a = kvbuffer.alloc : !two
    %b = kvbuffer.alloc : !two
    %r = scf.if %c -> !two {
      scf.yield %a : !two
    } else {
      scf.yield %b : !two
    }
    // expected-error @below {{'kvbuffer.dram_load' op names no slot of a buffer that a loop or branch hands on; expected the result of a kvbuffer.alloc that none does, or its slot}}
    %t = kvbuffer.dram_load %tile into %r : !tile, !two
    gpu.return
  }
}

// -----

#two = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
!tile = !kvbuffer.tile<16x16xbf16>
!two = !kvbuffer.buffer<#two>
gpu.module @m {
  gpu.func @carried(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a = kvbuffer.alloc : !two
    // expected-error @below {{'kvbuffer.dram_load' op names no slot of a buffer that a loop or branch hands on; expected the result of a kvbuffer.alloc that none does, or its slot}}
    %t = kvbuffer.dram_load %tile into %a : !tile, !two
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%b = %a) -> !two {
      scf.yield %b : !two
    }
    gpu.return
  }
}

// -----

// One slot, which the next iteration fills while slower warps read it.
#one = #kvbuffer.kv_buffer<16x16xbf16, stages = 1, BK = 16>
!tile = !kvbuffer.tile<16x16xbf16>
!one = !kvbuffer.buffer<#one>
!token = !kvbuffer.token<#one>
!staged = !kvbuffer.staged<#one>
!a = !kvbuffer.fragment<16x16xbf16, a>
gpu.module @m {
  gpu.func @reused(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !one
    scf.for %i = %c0 to %n step %c1 {
      // expected-error @below {{'kvbuffer.dram_load' op fills the one slot of its buffer, which warps may still read; expected a kvbuffer.meet behind the last read, or stages of at least 2}}
      %t = kvbuffer.dram_load %tile into %b : !tile, !one
      %s = kvbuffer.lds_stage %t : !token
      // expected-note @below {{it is read here}}
      %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !staged -> !a
    }
    gpu.return
  }

  // They meet, at the end of an iteration or because another tile is awaited.
  gpu.func @met(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !one
    %other = kvbuffer.alloc : !one
    scf.for %i = %c0 to %n step %c1 {
      %t = kvbuffer.dram_load %tile into %b : !tile, !one
      %s = kvbuffer.lds_stage %t : !token
      %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !staged -> !a
      kvbuffer.meet
    }
    scf.for %i = %c0 to %n step %c1 {
      %t = kvbuffer.dram_load %tile into %b : !tile, !one
      %s = kvbuffer.lds_stage %t : !token
      %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !staged -> !a
      %t1 = kvbuffer.dram_load %tile into %other : !tile, !one
      %s1 = kvbuffer.lds_stage %t1 : !token
    }
    gpu.return
  }

  // A team of one warp waits for what it reads itself.
  gpu.func @team(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    kvbuffer.teams {
      kvbuffer.team @t warps(1) {
        %b = kvbuffer.alloc : !one
        scf.for %i = %c0 to %n step %c1 {
          %t = kvbuffer.dram_load %tile into %b : !tile, !one
          %s = kvbuffer.lds_stage %t : !token
          %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !staged -> !a
        }
      }
    }
    gpu.return
  }

  // Warps meet where a loop's condition is found.
  gpu.func @condition(%tile: !tile, %on: i1) kernel {
    %b = kvbuffer.alloc : !one
    scf.while : () -> () {
      kvbuffer.meet
      scf.condition(%on)
    } do {
      %t = kvbuffer.dram_load %tile into %b : !tile, !one
      %s = kvbuffer.lds_stage %t : !token
      %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !staged -> !a
      scf.yield
    }
    gpu.return
  }
}

// -----

#one = #kvbuffer.kv_buffer<16x16xbf16, stages = 1, BK = 16>
!tile = !kvbuffer.tile<16x16xbf16>
!one = !kvbuffer.buffer<#one>
!token = !kvbuffer.token<#one>
!staged = !kvbuffer.staged<#one>
!a = !kvbuffer.fragment<16x16xbf16, a>
gpu.module @m {
  // A load where the condition is found, behind a read of the iteration before.
  gpu.func @ahead(%tile: !tile, %on: i1) kernel {
    %b = kvbuffer.alloc : !one
    scf.while : () -> () {
      // expected-error @below {{'kvbuffer.dram_load' op fills the one slot of its buffer}}
      %t = kvbuffer.dram_load %tile into %b : !tile, !one
      %s = kvbuffer.lds_stage %t : !token
      // expected-note @below {{it is read here}}
      %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !staged -> !a
      scf.condition(%on)
    } do {
      scf.yield
    }
    gpu.return
  }
}

// -----

#one = #kvbuffer.kv_buffer<16x16xbf16, stages = 1, BK = 16>
!tile = !kvbuffer.tile<16x16xbf16>
!one = !kvbuffer.buffer<#one>
!token = !kvbuffer.token<#one>
!staged = !kvbuffer.staged<#one>
!a = !kvbuffer.fragment<16x16xbf16, a>
gpu.module @m {
  // In one block, behind a branch in which warps meet, but not in its other side.
  gpu.func @branch(%tile: !tile, %on: i1) kernel {
    %b = kvbuffer.alloc : !one
    %t = kvbuffer.dram_load %tile into %b : !tile, !one
    %s = kvbuffer.lds_stage %t : !token
    // expected-note @below {{it is read here}}
    %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !staged -> !a
    scf.if %on {
      kvbuffer.meet
    }
    // expected-error @below {{'kvbuffer.dram_load' op fills the one slot of its buffer}}
    %t1 = kvbuffer.dram_load %tile into %b : !tile, !one
    %s1 = kvbuffer.lds_stage %t1 : !token
    gpu.return
  }
}
