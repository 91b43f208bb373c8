// What the verifiers of teams and queues refuse.

// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

func.func @empty() {
  // expected-error @below {{'kvbuffer.teams' op expected at least one kvbuffer.team}}
  kvbuffer.teams {
  }
  return
}

// -----

func.func @beside() {
  // expected-note @below {{the teams are here}}
  kvbuffer.teams {
    kvbuffer.team @one warps(1) {
    }
    // expected-error @below {{'kvbuffer.meet' op is not allowed between teams; expected it in a kvbuffer.team, or outside of kvbuffer.teams}}
    kvbuffer.meet
  }
  return
}

// -----

func.func @same_name() {
  kvbuffer.teams {
    // expected-note @below {{the other team is here}}
    kvbuffer.team @one warps(1) {
    }
    // expected-error @below {{'kvbuffer.team' op is called @one, as another team of this kvbuffer.teams is}}
    kvbuffer.team @one warps(1) {
    }
  }
  return
}

// -----

func.func @open_warps_with_rows() {
  kvbuffer.teams {
    // expected-error @below {{'kvbuffer.team' op has BM(32) but leaves its warps open; expected warps(...)}}
    kvbuffer.team @one BM(32) {
    }
  }
  return
}

// -----

func.func @no_warps() {
  kvbuffer.teams {
    // expected-error @below {{'kvbuffer.team' op expected 1 to 65536 warps, got -1}}
    kvbuffer.team @one warps(-1) {
    }
  }
  return
}

// -----

func.func @no_copies() {
  kvbuffer.teams {
    // expected-error @below {{'kvbuffer.team' op expected 1 to 65536 copies, got 0}}
    kvbuffer.team @one warps(1) x 0 {
    }
  }
  return
}

// -----

func.func @uneven() {
  kvbuffer.teams {
    // expected-error @below {{'kvbuffer.team' op has 32 rows for 3 warps; expected the same number for each}}
    kvbuffer.team @one warps(3) BM(32) {
    }
  }
  return
}

// -----

func.func @registers() {
  kvbuffer.teams {
    // expected-error @below {{'kvbuffer.team' op expected 24 to 256 registers in steps of 8, or 0, got 30}}
    kvbuffer.team @one warps(4) registers(30) {
    }
  }
  return
}

// -----

func.func @arrives(%counters: memref<?xi32>, %n: index) {
  kvbuffer.teams {
    // expected-note @below {{the team is here}}
    kvbuffer.team @one warps(4) x 2 {
      // expected-error @below {{'kvbuffer.arrive_last' op is not allowed in a team: it needs all warps of the block}}
      %last = kvbuffer.arrive_last %counters[%n] of %n : memref<?xi32>
    }
  }
  return
}

// -----

func.func @arguments() {
  kvbuffer.teams {
    // expected-error @below {{'kvbuffer.team' op expected at most one argument of its region, the copy's number, an index}}
    "kvbuffer.team"() <{sym_name = "one", warps = 1 : i64}> ({
    ^bb0(%i: i32):
    }) : () -> ()
  }
  return
}

// -----

func.func @nested() {
  kvbuffer.teams {
    // expected-note @below {{the team is here}}
    kvbuffer.team @one warps(2) {
      // expected-error @below {{'kvbuffer.teams' op is not allowed in a team: it needs all warps of the block}}
      kvbuffer.teams {
        kvbuffer.team @inner warps(1) x 2 {
        }
      }
    }
  }
  return
}

// -----

func.func @halves() {
  kvbuffer.teams {
    // expected-note @below {{the team is here}}
    kvbuffer.team @one warps(2) {
      // expected-error @below {{'kvbuffer.stagger' op is not allowed in a team: it needs all warps of the block}}
      kvbuffer.stagger
    }
  }
  return
}

// -----

func.func @fragment(%a: !kvbuffer.fragment<16x64xf32, acc>, %r: !kvbuffer.fragment<16x1xf32, row>) {
  // expected-note @below {{the value comes from here}}
  %b = kvbuffer.rescale %a, %r : !kvbuffer.fragment<16x64xf32, acc>, !kvbuffer.fragment<16x1xf32, row>
  kvbuffer.teams {
    kvbuffer.team @one warps(1) {
      // expected-error @below {{'kvbuffer.fragment_convert' op uses a '!kvbuffer.fragment<16x64xf32, acc>' from outside of the team, which lies over all warps of the block}}
      %c = kvbuffer.fragment_convert %b : !kvbuffer.fragment<16x64xf32, acc> -> !kvbuffer.fragment<16x64xbf16, acc>
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 32, WN = 32, BK = 64, num_threads = 32, depth = 64, stages = 2>
func.func @token(%tile: !kvbuffer.tile<32x64xbf16>) {
  %c0 = arith.constant 0 : index
  %slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
  // expected-note @below {{the value comes from here}}
  %token = kvbuffer.dram_load %tile into %slots[%c0] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.buffer<#kbuf>
  kvbuffer.teams {
    kvbuffer.team @one warps(1) {
      // expected-error-re @below {{'kvbuffer.lds_stage' op uses a '!kvbuffer.token<{{.*}}>' from outside of the team, which stands for copies of all threads of the block, which await it together}}
      %ks = kvbuffer.lds_stage %token : !kvbuffer.token<#kbuf>
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 32, WN = 32, BK = 64, num_threads = 32, depth = 64, stages = 2>
func.func @shared_buffer(%tile: !kvbuffer.tile<32x64xbf16>) {
  %c0 = arith.constant 0 : index
  %slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
  kvbuffer.teams {
    // expected-note @below {{the team is here}}
    kvbuffer.team @one warps(1) x 2 {
      // expected-error @below {{'kvbuffer.dram_load' op loads into a buffer that teams share; expected the kvbuffer.alloc in the team, or the load before kvbuffer.teams}}
      %token = kvbuffer.dram_load %tile into %slots[%c0] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.buffer<#kbuf>
    }
  }
  return
}

// -----

// expected-error @below {{expected fragments, got 'f32'}}
func.func private @scalars() -> !kvbuffer.queue<f32>

// -----

// expected-error @below {{cannot carry '!kvbuffer.fragment<64x32xbf16, b>', which every warp holds whole; expected role a, acc or row}}
func.func private @operand_b() -> !kvbuffer.queue<!kvbuffer.fragment<64x32xbf16, b>>

// -----

// expected-error @below {{expected fragments of as many rows, got 64 and 32}}
func.func private @rows() -> !kvbuffer.queue<!kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.fragment<32x1xf32, row>>

// -----

!row = !kvbuffer.fragment<64x1xf32, row>
func.func @no_slots() {
  // expected-error @below {{'kvbuffer.queue' op expected 1 to 65536 slots, got 0}}
  %q = kvbuffer.queue slots(0) from @one to [@other] : !kvbuffer.queue<!row>
  return
}

// -----

!row = !kvbuffer.fragment<64x1xf32, row>
func.func @twice() {
  // expected-error @below {{'kvbuffer.queue' op has the team @one twice}}
  %q = kvbuffer.queue slots(1) from @one to [@one] : !kvbuffer.queue<!row>
  return
}

// -----

!row = !kvbuffer.fragment<64x1xf32, row>
func.func @unknown(%n: index) {
  // expected-error @below {{'kvbuffer.queue' op names @other, which is no team of the kvbuffer.teams that use it}}
  %q = kvbuffer.queue slots(1) from @one to [@other] : !kvbuffer.queue<!row>
  // expected-note @below {{the teams are here}}
  kvbuffer.teams {
    kvbuffer.team @one warps(4) {
      %r = kvbuffer.fragment_fill 1.0 : !row
      kvbuffer.queue_put %r to %q[%n] : !kvbuffer.queue<!row>
    }
  }
  return
}

// -----

!row = !kvbuffer.fragment<64x1xf32, row>
func.func @no_taker(%n: index) {
  // expected-error @below {{'kvbuffer.queue' op names @other, which takes nothing from it}}
  %q = kvbuffer.queue slots(1) from @one to [@other] : !kvbuffer.queue<!row>
  kvbuffer.teams {
    kvbuffer.team @one warps(4) {
      %r = kvbuffer.fragment_fill 1.0 : !row
      kvbuffer.queue_put %r to %q[%n] : !kvbuffer.queue<!row>
    }
    // expected-note @below {{the team is here}}
    kvbuffer.team @other warps(4) {
    }
  }
  return
}

// -----

!row = !kvbuffer.fragment<64x1xf32, row>
func.func @copies(%n: index) {
  // expected-error @below {{'kvbuffer.queue' op names @other, of which there are 2; expected a team without copies}}
  %q = kvbuffer.queue slots(1) from @one to [@other] : !kvbuffer.queue<!row>
  kvbuffer.teams {
    kvbuffer.team @one warps(4) {
      %r = kvbuffer.fragment_fill 1.0 : !row
      kvbuffer.queue_put %r to %q[%n] : !kvbuffer.queue<!row>
    }
    // expected-note @below {{the team is here}}
    kvbuffer.team @other warps(4) x 2 {
      %r = kvbuffer.queue_take %q[%n] : !kvbuffer.queue<!row>
    }
  }
  return
}

// -----

!row = !kvbuffer.fragment<64x1xf32, row>
func.func @unlike(%n: index) {
  // expected-error @below {{'kvbuffer.queue' op joins @one of 4 warps to @other of 2; expected as many, with as many rows}}
  %q = kvbuffer.queue slots(1) from @one to [@other] : !kvbuffer.queue<!row>
  kvbuffer.teams {
    kvbuffer.team @one warps(4) {
      %r = kvbuffer.fragment_fill 1.0 : !row
      kvbuffer.queue_put %r to %q[%n] : !kvbuffer.queue<!row>
    }
    // expected-note @below {{the team is here}}
    kvbuffer.team @other warps(2) {
      %r = kvbuffer.queue_take %q[%n] : !kvbuffer.queue<!row>
    }
  }
  return
}

// -----

!row = !kvbuffer.fragment<64x1xf32, row>
func.func @wrong_side(%n: index) {
  // expected-note @below {{the queue is here}}
  %q = kvbuffer.queue slots(1) from @one to [@other] : !kvbuffer.queue<!row>
  kvbuffer.teams {
    kvbuffer.team @one warps(4) {
      // expected-error @below {{'kvbuffer.queue_take' op is expected in one of the teams [@other], which take from the queue}}
      %r = kvbuffer.queue_take %q[%n] : !kvbuffer.queue<!row>
    }
  }
  return
}

// -----

!row = !kvbuffer.fragment<64x1xf32, row>
func.func @outside(%n: index) {
  // expected-note @below {{the queue is here}}
  %q = kvbuffer.queue slots(1) from @one to [@other] : !kvbuffer.queue<!row>
  %r = kvbuffer.fragment_fill 1.0 : !row
  // expected-error @below {{'kvbuffer.queue_put' op is expected in the team @one, which fills the queue}}
  kvbuffer.queue_put %r to %q[%n] : !kvbuffer.queue<!row>
  return
}

// -----

!row = !kvbuffer.fragment<64x1xf32, row>
func.func @passed_on(%n: index, %q: !kvbuffer.queue<!row>) {
  kvbuffer.teams {
    kvbuffer.team @one warps(4) {
      // expected-error @below {{'kvbuffer.queue_take' op uses a queue that is passed on; expected the result of kvbuffer.queue}}
      %r = kvbuffer.queue_take %q[%n] : !kvbuffer.queue<!row>
    }
  }
  return
}

// -----

!row = !kvbuffer.fragment<64x1xf32, row>
func.func @no_shelf() {
  // expected-error @below {{'kvbuffer.shelf' op expected 1 to 65536 slots, got 0}}
  %s = kvbuffer.shelf slots(0) : !kvbuffer.shelf<!row>
  return
}

// -----

!row = !kvbuffer.fragment<64x1xf32, row>
func.func @outside_of_teams(%n: index) {
  %s = kvbuffer.shelf slots(1) : !kvbuffer.shelf<!row>
  // expected-error @below {{'kvbuffer.shelf_get' op is expected in a kvbuffer.team}}
  %r = kvbuffer.shelf_get %s[%n] : !kvbuffer.shelf<!row>
  return
}

// -----

!row = !kvbuffer.fragment<64x1xf32, row>
func.func @passed_shelf(%n: index, %s: !kvbuffer.shelf<!row>) {
  kvbuffer.teams {
    kvbuffer.team @one warps(4) {
      // expected-error @below {{'kvbuffer.shelf_get' op uses a shelf that is passed on; expected the result of kvbuffer.shelf}}
      %r = kvbuffer.shelf_get %s[%n] : !kvbuffer.shelf<!row>
    }
  }
  return
}

// -----

!row = !kvbuffer.fragment<64x1xf32, row>
func.func @other_warps(%n: index) {
  %s = kvbuffer.shelf slots(1) : !kvbuffer.shelf<!row>
  kvbuffer.teams {
    kvbuffer.team @one warps(4) {
      %r = kvbuffer.fragment_fill 1.0 : !row
      // expected-error @below {{'kvbuffer.shelf_put' op is in @one of 4 warps, but @two, which uses the same shelf, has 2; expected as many, with as many rows}}
      kvbuffer.shelf_put %r to %s[%n] : !kvbuffer.shelf<!row>
    }
  }
  kvbuffer.teams {
    kvbuffer.team @two warps(2) {
      // expected-note @below {{the shelf is used here}}
      %r = kvbuffer.shelf_get %s[%n] : !kvbuffer.shelf<!row>
    }
  }
  return
}
