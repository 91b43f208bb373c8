// What teams promise, broken on purpose: the diagnostic names the op, and the
// team and its copy.

// RUN: kvbuf-tile-run %s --verify-diagnostics --size seq_q=16 --size seq_k=40

#buf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
#schedule = #kvbuffer.schedule<BM = 32, BN = 16, BK = 16, warps = 2, mma_shape = [16, 8, 16]>
#problem = #kvbuffer.problem<op = "attention", dtype = "bf16", heads = 1, kv_heads = 1, head_size = 16, query = "dense", cache = "dense", causal = false, window_left = -1, window_right = -1, softcap = 0.0, sink = false, lse = false, scale = 0.25>
!qo = memref<?x?x1x16xbf16, strided<[?, ?, ?, 1]>>
!tile = !kvbuffer.tile<16x16xbf16>
!buffer = !kvbuffer.buffer<#buf>
!token = !kvbuffer.token<#buf>
!staged = !kvbuffer.staged<#buf>
!frag = !kvbuffer.fragment<16x16xbf16, a>
!row = !kvbuffer.fragment<16x1xf32, row>
!queue = !kvbuffer.queue<!row>

gpu.module @faults {
  // Another team's meeting is none of this one: the second copy overwrites what
  // it has read itself.
  gpu.func @no_meeting(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    kvbuffer.teams {
      kvbuffer.team @one warps(1) x 2 (%copy) {
        %buf = kvbuffer.alloc : !buffer
        %t0 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
        %s0 = kvbuffer.lds_stage %t0 : !token
        // expected-note @below {{the slot is read here}}
        %f = kvbuffer.fragment_load %s0[0, 0] : !staged -> !frag
        %first = arith.cmpi eq, %copy, %c0 : index
        scf.if %first {
          kvbuffer.meet
        }
        // expected-error @below {{'kvbuffer.dram_load' op in block (0, 0, 0), team @one 1: overwrites slot 0 of the q buffer while threads may still read it: no kvbuffer.lds_stage or kvbuffer.meet stands behind its last read}}
        %t1 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
        %s1 = kvbuffer.lds_stage %t1 : !token
      }
    }
    gpu.return
  }

  gpu.func @in_flight(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    kvbuffer.teams {
      kvbuffer.team @one warps(1) {
        %buf = kvbuffer.alloc : !buffer
        // expected-error @below {{'kvbuffer.dram_load' op in block (0, 0, 0), team @one: is in flight when the team ends: no kvbuffer.lds_stage awaits it}}
        %t0 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
      }
      kvbuffer.team @other warps(1) {
      }
    }
    gpu.return
  }

  // A slot that the block has staged may be read in teams, and loaded anew after
  // they have ended.
  gpu.func @staged_outside(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    %buf = kvbuffer.alloc : !buffer
    %t0 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    %s0 = kvbuffer.lds_stage %t0 : !token
    kvbuffer.teams {
      kvbuffer.team @one warps(1) x 2 {
        %f = kvbuffer.fragment_load %s0[0, 0] : !staged -> !frag
      }
    }
    %t1 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    %s1 = kvbuffer.lds_stage %t1 : !token
    // expected-note @below {{the slot is read here}}
    %f1 = kvbuffer.fragment_load %s1[0, 0] : !staged -> !frag
    // expected-error @below {{overwrites slot 0 of the q buffer while threads may still read it}}
    %t2 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    gpu.return
  }

  gpu.func @never_put(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %queue = kvbuffer.queue slots(2) from @one to [@other] : !queue
    kvbuffer.teams {
      kvbuffer.team @one warps(1) {
        %r = kvbuffer.fragment_fill 1.0 : !row
        kvbuffer.queue_put %r to %queue[%c0] : !queue
      }
      kvbuffer.team @other warps(1) {
        %r0 = kvbuffer.queue_take %queue[%c0] : !queue
        // expected-error @below {{'kvbuffer.queue_take' op in block (0, 0, 0), team @other: takes entry 1, but @one puts no more than 1}}
        %r1 = kvbuffer.queue_take %queue[%c1] : !queue
      }
    }
    gpu.return
  }

  gpu.func @not_taken(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error @below {{'kvbuffer.queue' op in block (0, 0, 0): has 2 entries, of which @other takes 1}}
    %queue = kvbuffer.queue slots(2) from @one to [@other] : !queue
    kvbuffer.teams {
      kvbuffer.team @one warps(1) {
        %r = kvbuffer.fragment_fill 1.0 : !row
        kvbuffer.queue_put %r to %queue[%c0] : !queue
        kvbuffer.queue_put %r to %queue[%c1] : !queue
      }
      kvbuffer.team @other warps(1) {
        %r0 = kvbuffer.queue_take %queue[%c0] : !queue
      }
    }
    gpu.return
  }

  gpu.func @put_out_of_order(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %queue = kvbuffer.queue slots(2) from @one to [@other] : !queue
    kvbuffer.teams {
      kvbuffer.team @one warps(1) {
        %r = kvbuffer.fragment_fill 1.0 : !row
        // expected-error @below {{'kvbuffer.queue_put' op in block (0, 0, 0), team @one: puts entry 1; expected entry 0, the next one}}
        kvbuffer.queue_put %r to %queue[%c1] : !queue
      }
      kvbuffer.team @other warps(1) {
        %r0 = kvbuffer.queue_take %queue[%c0] : !queue
      }
    }
    gpu.return
  }

  gpu.func @taken_twice(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %queue = kvbuffer.queue slots(2) from @one to [@other] : !queue
    kvbuffer.teams {
      kvbuffer.team @one warps(1) {
        %r = kvbuffer.fragment_fill 1.0 : !row
        kvbuffer.queue_put %r to %queue[%c0] : !queue
      }
      kvbuffer.team @other warps(1) {
        %r0 = kvbuffer.queue_take %queue[%c0] : !queue
        // expected-error @below {{'kvbuffer.queue_take' op in block (0, 0, 0), team @other: takes entry 0; expected entry 1, the next one}}
        %r1 = kvbuffer.queue_take %queue[%c0] : !queue
      }
    }
    gpu.return
  }

  gpu.func @in_a_circle(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %there = kvbuffer.queue slots(2) from @one to [@other] : !queue
    %back = kvbuffer.queue slots(2) from @other to [@one] : !queue
    // expected-error @below {{'kvbuffer.teams' op in block (0, 0, 0): has teams that wait for each other, which cannot be executed one after the other}}
    kvbuffer.teams {
      kvbuffer.team @one warps(1) {
        %r = kvbuffer.fragment_fill 1.0 : !row
        kvbuffer.queue_put %r to %there[%c0] : !queue
        %r1 = kvbuffer.queue_take %back[%c0] : !queue
      }
      kvbuffer.team @other warps(1) {
        %r0 = kvbuffer.queue_take %there[%c0] : !queue
        kvbuffer.queue_put %r0 to %back[%c0] : !queue
      }
    }
    gpu.return
  }

  // A ring that is passed on, of which the verifier knows nothing.
  gpu.func @passed_on(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    %slots = kvbuffer.alloc : !buffer
    %ring = kvbuffer.ring %slots from @load to [@reads] : !buffer
    kvbuffer.teams {
      kvbuffer.team @load warps(1) {
        kvbuffer.ring_load %tile into %ring[%c0] : !tile, !kvbuffer.ring<#buf>
      }
      kvbuffer.team @other warps(1) {
        %its = scf.for %i = %c0 to %c1 step %c1 iter_args(%given = %ring) -> !kvbuffer.ring<#buf> {
          // expected-error @below {{'kvbuffer.ring_wait' op in block (0, 0, 0), team @other, iteration 0: takes filling 0 of the q ring, which is for [@reads]}}
          %s = kvbuffer.ring_wait %given[%i] : !kvbuffer.ring<#buf>
          scf.yield %given : !kvbuffer.ring<#buf>
        }
      }
      kvbuffer.team @reads warps(1) {
      }
    }
    gpu.return
  }

  // Each of two teams keeps a slot of one ring until it has the third filling of the
  // other, which needs the slot that the other team keeps.
  gpu.func @crosswise(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    %x_slots = kvbuffer.alloc : !buffer
    %y_slots = kvbuffer.alloc : !buffer
    %x = kvbuffer.ring %x_slots from @fills_x to [@one, @two] : !buffer
    %y = kvbuffer.ring %y_slots from @fills_y to [@one, @two] : !buffer
    kvbuffer.teams {
      kvbuffer.team @fills_x warps(1) {
        kvbuffer.ring_load %tile into %x[%c0] : !tile, !kvbuffer.ring<#buf>
        kvbuffer.ring_load %tile into %x[%c1] : !tile, !kvbuffer.ring<#buf>
        // expected-note @below {{@fills_x waits for the release of filling 0 of the q ring here}}
        kvbuffer.ring_load %tile into %x[%c2] : !tile, !kvbuffer.ring<#buf>
      }
      kvbuffer.team @fills_y warps(1) {
        kvbuffer.ring_load %tile into %y[%c0] : !tile, !kvbuffer.ring<#buf>
        kvbuffer.ring_load %tile into %y[%c1] : !tile, !kvbuffer.ring<#buf>
        // expected-note @below {{@fills_y waits for the release of filling 0 of the q ring here}}
        kvbuffer.ring_load %tile into %y[%c2] : !tile, !kvbuffer.ring<#buf>
      }
      kvbuffer.team @one warps(1) {
        %kept = kvbuffer.ring_wait %x[%c0] : !kvbuffer.ring<#buf>
        %s0 = kvbuffer.ring_wait %y[%c0] : !kvbuffer.ring<#buf>
        kvbuffer.ring_release %y[%c0] : !kvbuffer.ring<#buf>
        %s1 = kvbuffer.ring_wait %y[%c1] : !kvbuffer.ring<#buf>
        kvbuffer.ring_release %y[%c1] : !kvbuffer.ring<#buf>
        // expected-error @below {{'kvbuffer.ring_wait' op in block (0, 0, 0): waits for ever, as teams wait for each other: @one waits for filling 2 of the q ring}}
        %s2 = kvbuffer.ring_wait %y[%c2] : !kvbuffer.ring<#buf>
        kvbuffer.ring_release %x[%c0] : !kvbuffer.ring<#buf>
        kvbuffer.ring_release %y[%c2] : !kvbuffer.ring<#buf>
        %t1 = kvbuffer.ring_wait %x[%c1] : !kvbuffer.ring<#buf>
        kvbuffer.ring_release %x[%c1] : !kvbuffer.ring<#buf>
        %t2 = kvbuffer.ring_wait %x[%c2] : !kvbuffer.ring<#buf>
        kvbuffer.ring_release %x[%c2] : !kvbuffer.ring<#buf>
      }
      kvbuffer.team @two warps(1) {
        %kept = kvbuffer.ring_wait %y[%c0] : !kvbuffer.ring<#buf>
        %s0 = kvbuffer.ring_wait %x[%c0] : !kvbuffer.ring<#buf>
        kvbuffer.ring_release %x[%c0] : !kvbuffer.ring<#buf>
        %s1 = kvbuffer.ring_wait %x[%c1] : !kvbuffer.ring<#buf>
        kvbuffer.ring_release %x[%c1] : !kvbuffer.ring<#buf>
        // expected-note @below {{@two waits for filling 2 of the q ring here}}
        %s2 = kvbuffer.ring_wait %x[%c2] : !kvbuffer.ring<#buf>
        kvbuffer.ring_release %y[%c0] : !kvbuffer.ring<#buf>
        kvbuffer.ring_release %x[%c2] : !kvbuffer.ring<#buf>
        %t1 = kvbuffer.ring_wait %y[%c1] : !kvbuffer.ring<#buf>
        kvbuffer.ring_release %y[%c1] : !kvbuffer.ring<#buf>
        %t2 = kvbuffer.ring_wait %y[%c2] : !kvbuffer.ring<#buf>
        kvbuffer.ring_release %y[%c2] : !kvbuffer.ring<#buf>
      }
    }
    gpu.return
  }

  gpu.func @shelf_at_the_same_time(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %shelf = kvbuffer.shelf slots(2) : !kvbuffer.shelf<!row>
    kvbuffer.teams {
      kvbuffer.team @one warps(1) x 2 (%copy) {
        %r = kvbuffer.fragment_fill 1.0 : !row
        // expected-note @below {{the other team puts here}}
        kvbuffer.shelf_put %r to %shelf[%copy] : !kvbuffer.shelf<!row>
        // expected-error @below {{'kvbuffer.shelf_get' op in block (0, 0, 0), team @one 1: uses slot 0 of a shelf while team @one 0 may use it: they work at the same time}}
        %r0 = kvbuffer.shelf_get %shelf[%c0] : !kvbuffer.shelf<!row>
      }
    }
    gpu.return
  }

  gpu.func @shelf_put_where_another_gets(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %shelf = kvbuffer.shelf slots(2) : !kvbuffer.shelf<!row>
    kvbuffer.teams {
      kvbuffer.team @one warps(1) {
        %r = kvbuffer.fragment_fill 1.0 : !row
        kvbuffer.shelf_put %r to %shelf[%c0] : !kvbuffer.shelf<!row>
      }
    }
    kvbuffer.teams {
      kvbuffer.team @two warps(1) {
        // expected-note @below {{the other team gets here}}
        %r0 = kvbuffer.shelf_get %shelf[%c0] : !kvbuffer.shelf<!row>
      }
      kvbuffer.team @three warps(1) {
        %r = kvbuffer.fragment_fill 2.0 : !row
        // expected-error @below {{'kvbuffer.shelf_put' op in block (0, 0, 0), team @three: uses slot 0 of a shelf while team @two may use it: they work at the same time}}
        kvbuffer.shelf_put %r to %shelf[%c0] : !kvbuffer.shelf<!row>
      }
    }
    gpu.return
  }

  gpu.func @empty_shelf(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %shelf = kvbuffer.shelf slots(2) : !kvbuffer.shelf<!row>
    kvbuffer.teams {
      kvbuffer.team @one warps(1) {
        // expected-error @below {{'kvbuffer.shelf_get' op in block (0, 0, 0), team @one: gets what nobody has put}}
        %r = kvbuffer.shelf_get %shelf[%c1] : !kvbuffer.shelf<!row>
      }
    }
    gpu.return
  }

  gpu.func @no_such_slot(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c2 = arith.constant 2 : index
    %shelf = kvbuffer.shelf slots(2) : !kvbuffer.shelf<!row>
    kvbuffer.teams {
      kvbuffer.team @one warps(1) {
        // expected-error @below {{'kvbuffer.shelf_get' op in block (0, 0, 0), team @one: uses slot 2 of a shelf of 2}}
        %r = kvbuffer.shelf_get %shelf[%c2] : !kvbuffer.shelf<!row>
      }
    }
    gpu.return
  }
}
