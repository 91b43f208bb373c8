// What the verifiers of rings, mailboxes and products in flight refuse.

// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
func.func @read_by_filler(%buf: !kvbuffer.buffer<#kbuf>, %n: index) {
  // expected-note @below {{the ring is here}}
  %ring = kvbuffer.ring %buf from @load to [@multiply, @store] : !kvbuffer.buffer<#kbuf>
  kvbuffer.teams {
    kvbuffer.team @multiply warps(8) {
    }
    kvbuffer.team @store warps(4) {
    }
    kvbuffer.team @load warps(4) {
      // expected-error @below {{'kvbuffer.ring_wait' op is expected in one of the teams [@multiply, @store], which take from the ring}}
      %ks = kvbuffer.ring_wait %ring[%n] : !kvbuffer.ring<#kbuf>
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
func.func @filled_by_reader(%tile: !kvbuffer.tile<16x16xbf16>, %buf: !kvbuffer.buffer<#kbuf>, %n: index) {
  // expected-note @below {{the ring is here}}
  %ring = kvbuffer.ring %buf from @load to [@multiply] : !kvbuffer.buffer<#kbuf>
  kvbuffer.teams {
    kvbuffer.team @multiply warps(8) {
      // expected-error @below {{'kvbuffer.ring_load' op is expected in the team @load, which fills the ring}}
      kvbuffer.ring_load %tile into %ring[%n] : !kvbuffer.tile<16x16xbf16>, !kvbuffer.ring<#kbuf>
    }
    kvbuffer.team @load warps(4) {
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
func.func @columns_in_blocks(%tile: !kvbuffer.tile<16x16xbf16>, %buf: !kvbuffer.buffer<#kbuf>, %n: index) {
  %ring = kvbuffer.ring %buf from @load to [@multiply] : !kvbuffer.buffer<#kbuf>
  kvbuffer.teams {
    kvbuffer.team @multiply warps(8) {
    }
    kvbuffer.team @load warps(4) {
      // expected-error @below {{'kvbuffer.ring_load' op expected first_col to be a multiple of BK = 16, got 8}}
      kvbuffer.ring_load %tile into %ring[%n] {first_col = 8 : i64} : !kvbuffer.tile<16x16xbf16>, !kvbuffer.ring<#kbuf>
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
func.func @asks_at_its_end(%tile: !kvbuffer.tile<16x16xbf16>, %buf: !kvbuffer.buffer<#kbuf>, %n: index) {
  %ring = kvbuffer.ring %buf from @load to [@multiply] : !kvbuffer.buffer<#kbuf>
  kvbuffer.teams {
    kvbuffer.team @multiply warps(8) {
    }
    kvbuffer.team @load warps(4) {
      // expected-error @below {{'kvbuffer.ring_load' op asks a table about rows, or has asked; expected begin}}
      kvbuffer.ring_load %tile into %ring[%n] {next_rows = -16 : i64, younger = 1 : i64} : !kvbuffer.tile<16x16xbf16>, !kvbuffer.ring<#kbuf>
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
func.func @begins_and_ends(%tile: !kvbuffer.tile<16x16xbf16>, %buf: !kvbuffer.buffer<#kbuf>, %n: index) {
  %ring = kvbuffer.ring %buf from @load to [@multiply] : !kvbuffer.buffer<#kbuf>
  kvbuffer.teams {
    kvbuffer.team @multiply warps(8) {
    }
    kvbuffer.team @load warps(4) {
      // expected-error @below {{'kvbuffer.ring_load' op both begins a load and ends one; expected begin or younger}}
      kvbuffer.ring_load %tile into %ring[%n] {begin, younger = 1 : i64} : !kvbuffer.tile<16x16xbf16>, !kvbuffer.ring<#kbuf>
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
func.func @fewer_than_none(%tile: !kvbuffer.tile<16x16xbf16>, %buf: !kvbuffer.buffer<#kbuf>, %n: index) {
  %ring = kvbuffer.ring %buf from @load to [@multiply] : !kvbuffer.buffer<#kbuf>
  kvbuffer.teams {
    kvbuffer.team @multiply warps(8) {
    }
    kvbuffer.team @load warps(4) {
      // expected-error @below {{'kvbuffer.ring_load' op expected younger of at least 0, got -2}}
      kvbuffer.ring_load %tile into %ring[%n] {younger = -2 : i64} : !kvbuffer.tile<16x16xbf16>, !kvbuffer.ring<#kbuf>
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<16x16xbf16, stages = 2, BK = 16, cache_depth = 64, head_dim_offset = 16>
func.func @columns_behind(%tile: !kvbuffer.tile<16x64xbf16>, %buf: !kvbuffer.buffer<#kbuf>, %n: index) {
  %ring = kvbuffer.ring %buf from @load to [@multiply] : !kvbuffer.buffer<#kbuf>
  kvbuffer.teams {
    kvbuffer.team @multiply warps(8) {
    }
    kvbuffer.team @load warps(4) {
      kvbuffer.ring_load %tile into %ring[%n] {first_col = 32 : i64} : !kvbuffer.tile<16x64xbf16>, !kvbuffer.ring<#kbuf>
      // expected-error @below {{'kvbuffer.ring_load' op expected first_col of at most 32, where the slot's 16 columns are still the tile's, got 48}}
      kvbuffer.ring_load %tile into %ring[%n] {first_col = 48 : i64} : !kvbuffer.tile<16x64xbf16>, !kvbuffer.ring<#kbuf>
    }
  }
  return
}

// -----

// Blocks are the operand's, and those of a cluster may fill slots for each other.
#kbuf = #kvbuffer.kv_buffer<16x40xbf16, stages = 3, BK = 16, full_kv = false>
func.func @blocks_behind(%tile: !kvbuffer.tile<16x40xbf16>, %buf: !kvbuffer.buffer<#kbuf>, %n: index) {
  %ring = kvbuffer.ring %buf from @load to [@multiply] {shared} : !kvbuffer.buffer<#kbuf>
  kvbuffer.teams {
    kvbuffer.team @multiply warps(8) {
    }
    kvbuffer.team @load warps(4) {
      kvbuffer.ring_load %tile into %ring[%n] {first_col = 32 : i64} : !kvbuffer.tile<16x40xbf16>, !kvbuffer.ring<#kbuf>
      // expected-error @below {{'kvbuffer.ring_load' op expected first_col of at most 32, where the slot's 16 columns are still the tile's, got 48}}
      kvbuffer.ring_load %tile into %ring[%n] {first_col = 48 : i64} : !kvbuffer.tile<16x40xbf16>, !kvbuffer.ring<#kbuf>
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<16x16xbf16, stages = 2, BK = 16, cache_depth = 64>
func.func @columns_of_cluster(%tile: !kvbuffer.tile<16x64xbf16>, %buf: !kvbuffer.buffer<#kbuf>, %n: index) {
  %ring = kvbuffer.ring %buf from @load to [@multiply] {shared} : !kvbuffer.buffer<#kbuf>
  kvbuffer.teams {
    kvbuffer.team @multiply warps(8) {
    }
    kvbuffer.team @load warps(4) {
      // expected-error @below {{'kvbuffer.ring_load' op has columns of its own in a ring that the blocks of a cluster fill for each other; expected first_col = 0}}
      kvbuffer.ring_load %tile into %ring[%n] {first_col = 16 : i64} : !kvbuffer.tile<16x64xbf16>, !kvbuffer.ring<#kbuf>
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
// Not of the block either.
func.func @released_by_block(%buf: !kvbuffer.buffer<#kbuf>, %n: index) {
  // expected-note @below {{the ring is here}}
  %ring = kvbuffer.ring %buf from @load to [@multiply] : !kvbuffer.buffer<#kbuf>
  // expected-error @below {{'kvbuffer.ring_release' op is expected in one of the teams [@multiply], which take from the ring}}
  kvbuffer.ring_release %ring[%n] : !kvbuffer.ring<#kbuf>
  return
}

// -----

func.func @taken_by_poster(%n: index) {
  // expected-note @below {{the mailbox is here}}
  %box = kvbuffer.mailbox from @ask to [@use] {slots = 2 : i64}
  // The blocks of a cluster learn what one of them posts.
  %all = kvbuffer.mailbox from @ask to [@use] {shared, slots = 2 : i64}
  kvbuffer.teams {
    kvbuffer.team @use warps(4) {
    }
    kvbuffer.team @ask warps(4) {
      %right = kvbuffer.mailbox_take %all[%n]
      // expected-error @below {{'kvbuffer.mailbox_take' op is expected in one of the teams [@use], which take from the mailbox}}
      %t = kvbuffer.mailbox_take %box[%n]
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
func.func @itself(%buf: !kvbuffer.buffer<#kbuf>) {
  // expected-error @below {{'kvbuffer.ring' op has the team @load twice}}
  %ring = kvbuffer.ring %buf from @load to [@load] : !kvbuffer.buffer<#kbuf>
  return
}

// -----

func.func @nobody() {
  // expected-error @below {{'kvbuffer.mailbox' op expected at least one team that takes}}
  %box = kvbuffer.mailbox from @ask to [] {slots = 2 : i64}
  return
}

// -----

func.func @no_numbers() {
  // expected-error @below {{'kvbuffer.mailbox' op expected 1 to 65536 slots, got 0}}
  %box = kvbuffer.mailbox from @ask to [@use] {slots = 0 : i64}
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
func.func @unknown(%tile: !kvbuffer.tile<16x16xbf16>, %buf: !kvbuffer.buffer<#kbuf>, %n: index) {
  // expected-error @below {{'kvbuffer.ring' op names @multiply, which is no team of the kvbuffer.teams that use it}}
  %ring = kvbuffer.ring %buf from @load to [@multiply] : !kvbuffer.buffer<#kbuf>
  // expected-note @below {{the teams are here}}
  kvbuffer.teams {
    kvbuffer.team @load warps(4) {
      kvbuffer.ring_load %tile into %ring[%n] : !kvbuffer.tile<16x16xbf16>, !kvbuffer.ring<#kbuf>
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
func.func @copies(%buf: !kvbuffer.buffer<#kbuf>, %n: index) {
  // expected-error @below {{'kvbuffer.ring' op names @multiply, of which there are 2; expected a team without copies}}
  %ring = kvbuffer.ring %buf from @load to [@multiply] : !kvbuffer.buffer<#kbuf>
  kvbuffer.teams {
    // expected-note @below {{the team is here}}
    kvbuffer.team @multiply warps(4) x 2 {
      %ks = kvbuffer.ring_wait %ring[%n] : !kvbuffer.ring<#kbuf>
    }
    kvbuffer.team @load warps(4) {
    }
  }
  return
}

// -----

func.func @told_to_move(%n: index) {
  // expected-error @below {{'kvbuffer.mailbox' op names @load, a team that moves, to take from it; expected a team whose warps do that together}}
  %box = kvbuffer.mailbox from @ask to [@load] {slots = 2 : i64}
  kvbuffer.teams {
    // expected-note @below {{the team is here}}
    kvbuffer.team @load warps(4) {
      %t = kvbuffer.mailbox_take %box[%n]
      %next = kvbuffer.next_tile of %t
    }
    kvbuffer.team @ask warps(4) {
      kvbuffer.mailbox_post %n to %box[%n]
    }
  }
  return
}

// -----

// A team that moves has no fragments.
func.func @computes(%total: index) {
  kvbuffer.teams {
    kvbuffer.team @both warps(4) {
      // expected-error @below {{'kvbuffer.fragment_fill' op is not allowed in @both, a team that moves: one lane of it or some of its warps do that alone; expected it in another team}}
      %m = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<64x1xf32, row>
      // expected-note @below {{the team moves here}}
      %t = kvbuffer.next_tile of %total
    }
  }
  return
}

// -----

// Nor do its warps meet.
func.func @meets(%n: index) {
  %box = kvbuffer.mailbox from @ask to [@use] {slots = 2 : i64}
  kvbuffer.teams {
    kvbuffer.team @use warps(4) {
      kvbuffer.meet
    }
    kvbuffer.team @ask warps(4) {
      // expected-note @below {{the team moves here}}
      kvbuffer.mailbox_post %n to %box[%n]
      // expected-error @below {{'kvbuffer.meet' op is not allowed in @ask, a team that moves: one lane of it or some of its warps do that alone; expected it in another team}}
      kvbuffer.meet
    }
  }
  return
}

// -----

// A ring is the block's.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
func.func @of_a_team() {
  kvbuffer.teams {
    // expected-note @below {{the team is here}}
    kvbuffer.team @one warps(4) {
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      // expected-error @below {{'kvbuffer.ring' op is not allowed in a team: it needs all warps of the block}}
      %ring = kvbuffer.ring %kbuf from @one to [@other] : !kvbuffer.buffer<#kbuf>
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
func.func @tile(%tile: !kvbuffer.tile<32x16xbf16>, %ring: !kvbuffer.ring<#kbuf>, %n: index) {
  // expected-error @below {{'kvbuffer.ring_load' op expected a tile of 16 rows, cache_depth = 16 columns and elements 'bf16', got '!kvbuffer.tile<32x16xbf16>'}}
  kvbuffer.ring_load %tile into %ring[%n] : !kvbuffer.tile<32x16xbf16>, !kvbuffer.ring<#kbuf>
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 32, stages = 2>
func.func @shapes(%a: !kvbuffer.fragment<64x16xbf16, a>, %ks: !kvbuffer.staged<#kbuf>) {
  // expected-error @below {{'kvbuffer.mma_start' op cannot multiply '!kvbuffer.fragment<64x16xbf16, a>' by}}
  %s = kvbuffer.mma_start %a, %ks {transpose_b} : !kvbuffer.fragment<64x16xbf16, a>, !kvbuffer.staged<#kbuf> -> !kvbuffer.pending<64x16xf32>
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<16x16xbf16>
!pending = !kvbuffer.pending<64x16xf32>
func.func @result(%a: !kvbuffer.fragment<64x16xbf16, a>, %ks: !kvbuffer.staged<#kbuf>) -> !kvbuffer.fragment<64x16xf32, acc> {
  %s = kvbuffer.mma_start %a, %ks {transpose_b} : !kvbuffer.fragment<64x16xbf16, a>, !kvbuffer.staged<#kbuf> -> !pending
  // expected-error @below {{'kvbuffer.mma_start' op goes on with a product that something else uses; expected waits whose results nobody uses}}
  %t = kvbuffer.mma_start %a, %ks, %s : !pending {transpose_b} : !kvbuffer.fragment<64x16xbf16, a>, !kvbuffer.staged<#kbuf> -> !pending
  // expected-note @below {{the other use is here}}
  %w = kvbuffer.mma_wait %s {younger = 1 : i64} : !pending
  return %w : !kvbuffer.fragment<64x16xf32, acc>
}

// -----

#kbuf = #kvbuffer.kv_buffer<16x16xbf16>
func.func @columns(%a: !kvbuffer.fragment<64x16xbf16, a>, %ks: !kvbuffer.staged<#kbuf>, %p: !kvbuffer.pending<64x32xf32>) {
  // expected-error @below {{'kvbuffer.mma_start' op expected an accumulator of 64x16, got '!kvbuffer.pending<64x32xf32>'}}
  %t = kvbuffer.mma_start %a, %ks, %p : !kvbuffer.pending<64x32xf32> {transpose_b} : !kvbuffer.fragment<64x16xbf16, a>, !kvbuffer.staged<#kbuf> -> !kvbuffer.pending<64x16xf32>
  return
}

// -----

func.func @younger(%p: !kvbuffer.pending<64x16xf32>) {
  // expected-error @below {{'kvbuffer.mma_wait' op expected younger of at least 0, got -2}}
  %s = kvbuffer.mma_wait %p {younger = -2 : i64} : !kvbuffer.pending<64x16xf32>
  return
}

// -----

func.func @size() {
  // expected-error @below {{'kvbuffer.launch_size' op expected the name of a size}}
  %n = kvbuffer.launch_size ""
  return
}

// -----

func.func @results(%a: i64, %b: i64) {
  // expected-error @below {{'kvbuffer.wgmma' op expected results of type 'vector<4xf32>', got 'vector<48xf32>'}}
  %r:2 = kvbuffer.wgmma a_desc(%a) b(%b) {a_steps = array<i64: 0>, b_steps = array<i64: 0>, element = bf16, n = 16 : i64} : vector<48xf32>, vector<48xf32>
  return
}

// -----

func.func @words(%a: vector<4xbf16>, %b: i64) {
  // expected-error @below {{'kvbuffer.wgmma' op expected words of type 'vector<2xbf16>' of a, got 'vector<4xbf16>'}}
  %r = kvbuffer.wgmma a(%a, %a, %a, %a : vector<4xbf16>, vector<4xbf16>, vector<4xbf16>, vector<4xbf16>) b(%b) {a_steps = array<i64>, b_steps = array<i64: 0>, element = bf16, n = 8 : i64} : vector<4xf32>
  return
}

// -----

func.func @mixed(%a: vector<4xi8>, %b: i64) {
  // expected-error @below {{'kvbuffer.wgmma' op multiplies 'bf16' by 'f8E4M3FN'; expected one type, or f8E4M3FN and f8E5M2}}
  %r = kvbuffer.wgmma a(%a, %a, %a, %a : vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>) b(%b) {a_steps = array<i64>, b_steps = array<i64: 0>, element = f8E4M3FN, a_element = bf16, n = 8 : i64} : vector<4xf32>
  return
}

// -----

func.func @turned(%a: vector<4xi8>, %b: i64) {
  // expected-error @below {{'kvbuffer.wgmma' op has b of 'f8E5M2', whose contracted elements lie side by side; expected no transpose_b}}
  %r = kvbuffer.wgmma a(%a, %a, %a, %a : vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>) b(%b) {a_steps = array<i64>, b_steps = array<i64: 0>, element = f8E5M2, n = 8 : i64, transpose_b} : vector<4xf32>
  return
}

// -----

func.func @unknown(%b: i64) {
  // expected-error @below {{'kvbuffer.wgmma' op expected elements bf16, f16, f8E4M3FN or f8E5M2, got 'f32'}}
  %r = kvbuffer.wgmma a_desc(%b) b(%b) {a_steps = array<i64: 0>, b_steps = array<i64: 0>, element = f32, n = 8 : i64} : vector<4xf32>
  return
}

// -----

func.func @awaited(%a: vector<8xf32>) {
  // expected-error @below {{'kvbuffer.wgmma_wait' op expected results of type 'vector<4xf32>', got 'vector<8xf32>'}}
  %r = kvbuffer.wgmma_wait %a {pending = 0 : i64} : vector<8xf32>
  return
}

// -----

// Groups are of teams that multiply.
func.func @no_groups(%i: index) {
  // expected-error @below {{'kvbuffer.key_range' op has per_group outside of a team that multiplies, whose groups it speaks of}}
  %r:4 = kvbuffer.key_range %i of %i keys %i {BM = 128, mask = #kvbuffer.mask<causal = true>, per_group}
  return
}

// -----

func.func @groups_that_move(%i: index) {
  kvbuffer.teams {
    kvbuffer.team @ask warps(4) {
      %t = kvbuffer.next_tile of %i
      // expected-error @below {{'kvbuffer.key_range' op has per_group outside of a team that multiplies, whose groups it speaks of}}
      %r:4 = kvbuffer.key_range %i of %i keys %i {BM = 128, mask = #kvbuffer.mask<causal = true>, per_group}
    }
  }
  return
}

// -----

func.func @of_both(%i: index) {
  kvbuffer.teams {
    kvbuffer.team @multiply warps(8) registers(232) {
      // expected-error @below {{'kvbuffer.key_range' op has descending and per_group: the first asks for the second}}
      %r:4 = kvbuffer.key_range %i of %i keys %i {BM = 128, mask = #kvbuffer.mask<causal = true>, descending, per_group}
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<32x64xbf16, stages = 2>
func.func @put_elsewhere(%buf: !kvbuffer.buffer<#kbuf>, %p: index) {
  // expected-note @below {{the ring is here}}
  %ring = kvbuffer.ring %buf from @put to [@read] : !kvbuffer.buffer<#kbuf>
  kvbuffer.teams {
    kvbuffer.team @put warps(2) {
    }
    kvbuffer.team @read warps(2) {
      %f = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<32x64xbf16, a>
      // expected-error @below {{'kvbuffer.ring_put' op is expected in the team @put, which fills the ring}}
      kvbuffer.ring_put %f into %ring[%p] : !kvbuffer.fragment<32x64xbf16, a>, !kvbuffer.ring<#kbuf>
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<32x64xbf16, stages = 2>
func.func @put_by_movers(%buf: !kvbuffer.buffer<#kbuf>, %n: index) {
  %ring = kvbuffer.ring %buf from @put to [@read] : !kvbuffer.buffer<#kbuf>
  %one = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<32x64xbf16, a>
  kvbuffer.teams {
    kvbuffer.team @put warps(2) {
      // expected-note @below {{the team moves here}}
      %t = kvbuffer.next_tile of %n
      // expected-error @below {{'kvbuffer.ring_put' op is not allowed in @put, a team that moves}}
      kvbuffer.ring_put %one into %ring[%n] : !kvbuffer.fragment<32x64xbf16, a>, !kvbuffer.ring<#kbuf>
    }
    kvbuffer.team @read warps(2) {
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<32x64xbf16, stages = 2>
func.func @put_whole(%f: !kvbuffer.fragment<32x64xbf16, b>, %ring: !kvbuffer.ring<#kbuf>, %n: index) {
  // expected-error @below {{'kvbuffer.ring_put' op cannot put '!kvbuffer.fragment<32x64xbf16, b>', which every warp holds whole; expected role a or acc}}
  kvbuffer.ring_put %f into %ring[%n] : !kvbuffer.fragment<32x64xbf16, b>, !kvbuffer.ring<#kbuf>
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<32x64xbf16, stages = 2>
func.func @put_rows(%f: !kvbuffer.fragment<32x1xf32, row>, %ring: !kvbuffer.ring<#kbuf>, %n: index) {
  // expected-error @below {{'kvbuffer.ring_put' op cannot put '!kvbuffer.fragment<32x1xf32, row>', which has one value for each row; expected role a or acc}}
  kvbuffer.ring_put %f into %ring[%n] : !kvbuffer.fragment<32x1xf32, row>, !kvbuffer.ring<#kbuf>
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<32x64xbf16, stages = 2>
func.func @put_wider(%f: !kvbuffer.fragment<32x64xf32, acc>, %ring: !kvbuffer.ring<#kbuf>, %n: index) {
  // expected-error @below {{'kvbuffer.ring_put' op expected a fragment of 32x64 elements of 'bf16', as the slot's rows are, got '!kvbuffer.fragment<32x64xf32, acc>'}}
  kvbuffer.ring_put %f into %ring[%n] : !kvbuffer.fragment<32x64xf32, acc>, !kvbuffer.ring<#kbuf>
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<32x64xbf16, stages = 2>
func.func @put_turned(%f: !kvbuffer.fragment<32x64xbf16, a>, %ring: !kvbuffer.ring<#kbuf>, %n: index) {
  // expected-error @below {{'kvbuffer.ring_put' op expected a fragment of 64x32 elements of 'bf16', as the slot's columns are, got '!kvbuffer.fragment<32x64xbf16, a>'}}
  kvbuffer.ring_put %f into %ring[%n] {transpose} : !kvbuffer.fragment<32x64xbf16, a>, !kvbuffer.ring<#kbuf>
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<32x64xbf16, stages = 2>
func.func @put_for_cluster(%buf: !kvbuffer.buffer<#kbuf>, %n: index) {
  %ring = kvbuffer.ring %buf from @put to [@read] {shared} : !kvbuffer.buffer<#kbuf>
  kvbuffer.teams {
    kvbuffer.team @put warps(2) {
      %f = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<32x64xbf16, a>
      // expected-error @below {{'kvbuffer.ring_put' op puts into a ring that the blocks of a cluster fill for each other; expected one without shared}}
      kvbuffer.ring_put %f into %ring[%n] : !kvbuffer.fragment<32x64xbf16, a>, !kvbuffer.ring<#kbuf>
    }
    kvbuffer.team @read warps(2) {
    }
  }
  return
}

// -----

#kbuf = #kvbuffer.kv_buffer<32x64xbf16, stages = 2>
func.func @put_and_load(%ring: !kvbuffer.ring<#kbuf>, %tile: !kvbuffer.tile<32x64xbf16>, %f: !kvbuffer.fragment<32x64xbf16, a>, %n: index) {
  // expected-note @below {{the load is here}}
  kvbuffer.ring_load %tile into %ring[%n] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.ring<#kbuf>
  // expected-error @below {{'kvbuffer.ring_put' op puts into a ring that kvbuffer.ring_load fills; expected one of them}}
  kvbuffer.ring_put %f into %ring[%n] : !kvbuffer.fragment<32x64xbf16, a>, !kvbuffer.ring<#kbuf>
  return
}
