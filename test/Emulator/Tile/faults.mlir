// Each promise of the tile stage, broken on purpose: the diagnostic names the op
// that breaks it and the other op that takes part.

// RUN: kvbuf-tile-run %s --verify-diagnostics --size seq_q=16 --size seq_k=40

#buf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>
#problem = #kvbuffer.problem<op = "attention", dtype = "bf16", heads = 1, kv_heads = 1, head_size = 16, query = "dense", cache = "dense", causal = false, window_left = -1, window_right = -1, softcap = 0.0, sink = false, lse = false, scale = 0.25>
!qo = memref<?x?x1x16xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 16>
!tile = !kvbuffer.tile<16x16xbf16>
!buffer = !kvbuffer.buffer<#buf>
!token = !kvbuffer.token<#buf>
!staged = !kvbuffer.staged<#buf>
!frag = !kvbuffer.fragment<16x16xbf16, a>

gpu.module @faults {
  // The buffer is loaded anew while other threads may still read it.
  gpu.func @no_barrier(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %buf = kvbuffer.alloc : !buffer
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    %t0 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    %s0 = kvbuffer.lds_stage %t0 : !token
    // expected-note @below {{the slot is read here}}
    %f = kvbuffer.fragment_load %s0[0, 0] : !staged -> !frag
    // expected-error @below {{in block (0, 0, 0): overwrites slot 0 of the q buffer while threads may still read it: no kvbuffer.lds_stage or kvbuffer.meet stands behind its last read}}
    %t1 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    gpu.return
  }

  // A buffer that a loop allocates is the same in every iteration.
  gpu.func @in_a_loop(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    scf.for %i = %c0 to %c2 step %c1 {
      %buf = kvbuffer.alloc : !buffer
      // expected-error @below {{in block (0, 0, 0), iteration 1: overwrites slot 1 of the q buffer while threads may still read it: no kvbuffer.lds_stage or kvbuffer.meet stands behind its last read}}
      %t = kvbuffer.dram_load %tile into %buf[%c1] : !tile, !buffer
      %s = kvbuffer.lds_stage %t : !token
      // expected-note @below {{the slot is read here}}
      %f = kvbuffer.fragment_load %s[0, 0] : !staged -> !frag
    }
    gpu.return
  }

  // Level halves of the block need one meeting between a read and the next load
  // into its slot, staggered ones two. Both are there; then one of two is not.
  gpu.func @one_meeting_apart(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %buf = kvbuffer.alloc : !buffer
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    %t0 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    %s0 = kvbuffer.lds_stage %t0 : !token
    %f0 = kvbuffer.fragment_load %s0[0, 0] : !staged -> !frag
    kvbuffer.meet
    %t1 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    kvbuffer.stagger
    %s1 = kvbuffer.lds_stage %t1 : !token
    kvbuffer.meet
    %f1 = kvbuffer.fragment_load %s1[0, 0] : !staged -> !frag
    kvbuffer.meet
    kvbuffer.meet
    %t2 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    %s2 = kvbuffer.lds_stage %t2 : !token
    kvbuffer.meet
    // expected-note @below {{the slot is read here}}
    %f2 = kvbuffer.fragment_load %s2[0, 0] : !staged -> !frag
    kvbuffer.meet
    // expected-error @below {{overwrites slot 0 of the q buffer while threads may still read it: halves of the block are one meeting apart, and fewer than two stand behind its last read}}
    %t3 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    gpu.return
  }

  // What one half passes is no meeting of both before the other has passed its own.
  gpu.func @stagger_is_no_meeting(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %buf = kvbuffer.alloc : !buffer
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    %t0 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    %s0 = kvbuffer.lds_stage %t0 : !token
    // expected-note @below {{the slot is read here}}
    %f0 = kvbuffer.fragment_load %s0[0, 0] : !staged -> !frag
    kvbuffer.stagger
    // expected-error @below {{overwrites slot 0 of the q buffer while threads may still read it: halves of the block are one meeting apart, and fewer than two stand behind its last read}}
    %t1 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    gpu.return
  }

  gpu.func @half_awaited(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %buf = kvbuffer.alloc : !buffer
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    %t0 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    kvbuffer.stagger
    // expected-note @below {{the load is awaited here}}
    %s0 = kvbuffer.lds_stage %t0 : !token
    // expected-error @below {{reads slot 0 of the q buffer before both halves of the block have awaited their parts of it: they are one meeting apart, and none stands behind the kvbuffer.lds_stage}}
    %f0 = kvbuffer.fragment_load %s0[0, 0] : !staged -> !frag
    gpu.return
  }

  gpu.func @staggered_twice(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    kvbuffer.stagger
    // expected-error @below {{staggers warps that are staggered}}
    kvbuffer.stagger
    gpu.return
  }

  gpu.func @end_alone(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    // expected-error @below {{ends a stagger that has not begun}}
    kvbuffer.stagger {end}
    gpu.return
  }

  gpu.func @no_end(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    // expected-error @below {{is without an end when the block ends}}
    kvbuffer.stagger
    gpu.return
  }

  gpu.func @read_overwritten(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %buf = kvbuffer.alloc : !buffer
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    %t0 = kvbuffer.dram_load %tile into %buf[%c1] : !tile, !buffer
    %s0 = kvbuffer.lds_stage %t0 : !token
    // expected-note @below {{the other load is here}}
    %t1 = kvbuffer.dram_load %tile into %buf[%c1] : !tile, !buffer
    // expected-error @below {{reads slot 1 of the q buffer after another load began to overwrite it}}
    %f = kvbuffer.fragment_load %s0[0, 0] : !staged -> !frag
    gpu.return
  }

  gpu.func @two_loads_in_flight(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %buf = kvbuffer.alloc : !buffer
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    // expected-note @below {{the other load is here}}
    %t0 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    // expected-error @below {{loads into slot 0 of the q buffer while another load into it is in flight}}
    %t1 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    gpu.return
  }

  // Of two slots that are filled in turn the third load takes the first one's, also
  // where the second is switched off.
  gpu.func @three_in_flight(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %off = arith.constant false
    %buf = kvbuffer.alloc : !buffer
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    // expected-note @below {{the other load is here}}
    %t0 = kvbuffer.dram_load %tile into %buf : !tile, !buffer
    %t1 = kvbuffer.dram_load %tile into %buf if %off : !tile, !buffer
    // expected-error @below {{loads into slot 0 of the q buffer while another load into it is in flight}}
    %t2 = kvbuffer.dram_load %tile into %buf : !tile, !buffer
    gpu.return
  }

  gpu.func @staged_twice(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %buf = kvbuffer.alloc : !buffer
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    // expected-note @below {{the token comes from here}}
    %t0 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    // expected-note @below {{it was staged here}}
    %s0 = kvbuffer.lds_stage %t0 : !token
    // expected-error @below {{stages a token that is staged already}}
    %s1 = kvbuffer.lds_stage %t0 : !token
    gpu.return
  }

  // A wait that leaves its own load in flight.
  gpu.func @too_young(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %buf = kvbuffer.alloc : !buffer
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    // expected-note @below {{the awaited load is here}}
    %t0 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    %t1 = kvbuffer.dram_load %tile into %buf[%c1] : !tile, !buffer
    // expected-error @below {{awaits a load that it leaves in flight: younger = 2, but only 1 loads were issued behind it}}
    %s0 = kvbuffer.lds_stage %t0 {younger = 2 : i64} : !token
    gpu.return
  }

  gpu.func @never_awaited(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %buf = kvbuffer.alloc : !buffer
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    %t0 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    // expected-error @below {{is in flight when the block ends: no kvbuffer.lds_stage awaits it}}
    %t1 = kvbuffer.dram_load %tile into %buf[%c1] : !tile, !buffer
    %s0 = kvbuffer.lds_stage %t0 {younger = 1 : i64} : !token
    gpu.return
  }

  gpu.func @no_such_slot(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c16 = arith.constant 16 : index
    %buf = kvbuffer.alloc : !buffer
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    scf.for %i = %c0 to %c3 step %c1 {
      // expected-error @below {{in block (0, 0, 0), iteration 2: loads into slot 2 of the q buffer, which has 2}}
      %t = kvbuffer.dram_load %tile into %buf[%i] : !tile, !buffer
      %s = kvbuffer.lds_stage %t : !token
    }
    gpu.return
  }

  gpu.func @nothing_loaded(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %false = arith.constant false
    %buf = kvbuffer.alloc : !buffer
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    // expected-note @below {{the load is here}}
    %t0 = kvbuffer.dram_load %tile into %buf[%c0] if %false : !tile, !buffer
    %s0 = kvbuffer.lds_stage %t0 : !token
    // expected-error @below {{reads a slot that nothing filled: its load was predicated off}}
    %f = kvbuffer.fragment_load %s0[0, 0] : !staged -> !frag
    gpu.return
  }

  gpu.func @tile_off(%k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c40 = arith.constant 40 : index
    %false = arith.constant false
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    // expected-note @below {{the tile is made here}}
    %tile = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c40 if %false : !kv -> !tile
    // expected-error @below {{loads a tile that was predicated off}}
    %t0 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !kvbuffer.buffer<#kbuf>
    gpu.return
  }

  gpu.func @not_whole(%k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c40 = arith.constant 40 : index
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    // expected-note @below {{the tile is made here}}
    %tile = kvbuffer.cache_tile %k[%c0, %c0, %c32] from %c0 upto %c40 : !kv -> !tile
    // expected-error @below {{is 'whole', but row 8 of its tile is not valid}}
    %t0 = kvbuffer.dram_load %tile into %buf[%c0] {whole} : !tile, !kvbuffer.buffer<#kbuf>
    gpu.return
  }

  // Keys 48 and on do not exist.
  gpu.func @past_the_last_tile(%k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %keys = kvbuffer.cache.num_keys %k[%c0] new(%c16) : !kv
    scf.for %i = %c0 to %c64 step %c16 {
      // expected-error @below {{iteration 48: looks up a tile without a valid row: keys 48 to 64 of [0, 40)}}
      %tile = kvbuffer.cache_tile %k[%c0, %c0, %i] from %c0 upto %keys : !kv -> !tile
    }
    gpu.return
  }

  gpu.func @key_rows_out_of_range(%k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    // expected-error @below {{accesses k[0, 40, 0, 0], outside of its shape [1, 40, 1, 16]}}
    %tile = kvbuffer.cache_tile %k[%c0, %c0, %c32] from %c0 upto %c48 : !kv -> !tile
    gpu.return
  }

  gpu.func @rows_out_of_range(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    // expected-error @below {{accesses q[0, 16, 0, 0], outside of its shape [1, 16, 1, 16]}}
    %tile = kvbuffer.dram_tile %q[%c0, %c1, %c0] valid(%c16) : !qo -> !tile
    gpu.return
  }

  gpu.func @written_twice(%o: !qo {kvbuffer.name = "o"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %zero = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x16xbf16, acc>
    %tile = kvbuffer.dram_tile %o[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    // expected-note @below {{the other store is here}}
    kvbuffer.fragment_store %zero, %tile : !kvbuffer.fragment<16x16xbf16, acc>, !tile
    // expected-error @below {{writes an element of o that another block or store has written}}
    kvbuffer.fragment_store %zero, %tile : !kvbuffer.fragment<16x16xbf16, acc>, !tile
    gpu.return
  }

  gpu.func @writes_input(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %zero = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x16xbf16, acc>
    %tile = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    // expected-error @below {{writes the input q}}
    kvbuffer.fragment_store %zero, %tile : !kvbuffer.fragment<16x16xbf16, acc>, !tile
    gpu.return
  }

  gpu.func @reads_output(%o: !qo {kvbuffer.name = "o"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %buf = kvbuffer.alloc : !buffer
    %tile = kvbuffer.dram_tile %o[%c0, %c0, %c0] valid(%c16) : !qo -> !tile
    // expected-error @below {{reads the output o, which nothing has written}}
    %t0 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !buffer
    gpu.return
  }

  gpu.func @undefined(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    // expected-note @below {{the value comes from here}}
    %nothing = ub.poison : !kvbuffer.fragment<16x16xf32, acc>
    // expected-error @below {{uses an undefined value}}
    %f = kvbuffer.fragment_scale %nothing {factor = 2.0 : f32} : !kvbuffer.fragment<16x16xf32, acc>
    gpu.return
  }

  gpu.func @hidden_score(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c5 = arith.constant 5 : index
    %c16 = arith.constant 16 : index
    %s = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<16x16xf32, acc>
    %m = kvbuffer.fragment_fill 0xFF800000 : !kvbuffer.fragment<16x1xf32, row>
    %l = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x1xf32, row>
    %h = kvbuffer.mask %s rows(%c0, %c16) keys(%c0, %c5) {mask = #kvbuffer.mask<>} : !kvbuffer.fragment<16x16xf32, acc>
    // expected-error @below {{has no 'masked', but the score at [0, 5] is -inf}}
    %p:4 = kvbuffer.online_softmax %h, %m, %l {scale = 1.0 : f32} : !kvbuffer.fragment<16x16xf32, acc>, !kvbuffer.fragment<16x1xf32, row> -> !frag
    gpu.return
  }

  gpu.func @negative_maximum(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %s = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<16x16xf32, acc>
    %m = kvbuffer.fragment_fill -0.5 : !kvbuffer.fragment<16x1xf32, row>
    %l = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x1xf32, row>
    %some = kvbuffer.any_negative %m : !kvbuffer.fragment<16x1xf32, row>
    // Until it is not negative any more.
    %p:4 = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !kvbuffer.fragment<16x16xf32, acc>, !kvbuffer.fragment<16x1xf32, row> -> !frag
    %r:4 = kvbuffer.online_softmax %s, %p#1, %l {scale = 1.0 : f32, not_negative} : !kvbuffer.fragment<16x16xf32, acc>, !kvbuffer.fragment<16x1xf32, row> -> !frag
    // expected-error @below {{has 'not_negative', but the maximum of row 0 is -5.000000e-01}}
    %t:4 = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32, not_negative} : !kvbuffer.fragment<16x16xf32, acc>, !kvbuffer.fragment<16x1xf32, row> -> !frag
    gpu.return
  }

  gpu.func @division(%q: !qo {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.problem = #problem} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error @below {{cannot be computed from (1 : index, 0 : index)}}
    %d = arith.divui %c1, %c0 : index
    gpu.return
  }
}
