"""Programs of the tile stage whose teams walk over keys by themselves: teams that
have rows of their own, and teams that have keys of their own."""

#: What both programs do with a tile of 32 keys, from `%first` on, in steps of
#: `%every` tiles.
WALK = """
      %q_tile = kvbuffer.dram_tile %q[%batch, %row, %head] valid(%left) : !qo -> !qtile
      %q_slot = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %k_slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %v_slots = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
      %q_token = kvbuffer.dram_load %q_tile into %q_slot[%c0] : !qtile, !kvbuffer.buffer<#qbuf>
      %qs = kvbuffer.lds_stage %q_token : !kvbuffer.token<#qbuf>
      %zero = kvbuffer.fragment_fill 0.0 : !scores
      %none = kvbuffer.fragment_fill 0.0 : !acc
      %low = kvbuffer.fragment_fill 0xFF800000 : !row
      %nothing = kvbuffer.fragment_fill 0.0 : !row
      %acc, %m, %l = scf.for %j = %c0 to %count step %c1
          iter_args(%a0 = %none, %m0 = %low, %l0 = %nothing) -> (!acc, !row, !row) {
        %slot = arith.remui %j, %slots : index
        %skipped = arith.muli %j, %every : index
        %number = arith.addi %skipped, %first : index
        %key = arith.muli %number, %c32 : index
        %k_tile = kvbuffer.cache_tile %k[%batch, %kv, %key] from %c0 upto %keys : !kv -> !kvtile
        %k_token = kvbuffer.dram_load %k_tile into %k_slots[%slot] : !kvtile, !kvbuffer.buffer<#kbuf>
        %ks = kvbuffer.lds_stage %k_token : !kvbuffer.token<#kbuf>
        %qf = kvbuffer.fragment_load %qs[0, 0] : !kvbuffer.staged<#qbuf> -> !qa
        %kf = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !kb
        %s = kvbuffer.mma %qf, %kf, %zero {transpose_b} : !qa, !kb, !scores
        %h = kvbuffer.mask %s rows(%row, %queries) keys(%key, %keys)
          {mask = #kvbuffer.mask<causal = false>} : !scores
        %p, %m1, %l1, %r = kvbuffer.online_softmax %h, %m0, %l0 {scale = 0.125 : f32, masked}
          : !scores, !row -> !pa
        %a1 = kvbuffer.rescale %a0, %r : !acc, !row
        %v_tile = kvbuffer.cache_tile %v[%batch, %kv, %key] from %c0 upto %keys : !kv -> !kvtile
        %v_token = kvbuffer.dram_load %v_tile into %v_slots[%slot] : !kvtile, !kvbuffer.buffer<#vbuf>
        %vs = kvbuffer.lds_stage %v_token : !kvbuffer.token<#vbuf>
        %vf = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !vb
        %a2 = kvbuffer.mma %p, %vf, %a1 : !pa, !vb, !acc
        scf.yield %a2, %m1, %l1 : !acc, !row, !row
      }
"""

#: What becomes of it.
FINISH = """
      %out, %lse_row = kvbuffer.softmax_finish %acc, %m, %l {scale = 0.125 : f32} : !acc, !row
      %rounded = kvbuffer.fragment_convert %out : !acc -> !out
"""


def program(chip, team, warps, copies, before, body, heads):
    """The text of a kernel with `copies` teams of `warps` warps."""
    rows = chip.rows * warps
    # As many as fit LDS beside a shelf.
    slots = 2 if chip.name == "gfx942" else 3
    return f"""
#schedule = {chip.schedule(warps, 32, slots)}
#qbuf = {chip.buffer("q", rows, 64, 1, warps)}
#kbuf = {chip.buffer("k", 32, 64, slots, warps)}
#vbuf = {chip.buffer("v", 32, 64, slots, warps)}
!qo = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!result = memref<?x?x{heads}x64xbf16, strided<[?, ?, ?, 1]>>
!lse = memref<?x{heads}x?xf32>
!qtile = !kvbuffer.tile<{rows}x64xbf16>
!kvtile = !kvbuffer.tile<32x64xbf16>
!qa = !kvbuffer.fragment<{rows}x64xbf16, a>
!kb = !kvbuffer.fragment<32x64xbf16, b>
!vb = !kvbuffer.fragment<32x64xbf16, b>
!pa = !kvbuffer.fragment<{rows}x32xbf16, a>
!scores = !kvbuffer.fragment<{rows}x32xf32, acc>
!acc = !kvbuffer.fragment<{rows}x64xf32, acc>
!out = !kvbuffer.fragment<{rows}x64xbf16, acc>
!row = !kvbuffer.fragment<{rows}x1xf32, row>
!shelf = !kvbuffer.shelf<!acc, !row, !row>

gpu.module @teams_module {{
  gpu.func @by_teams(%q: !qo {{kvbuffer.name = "q", kvbuffer.shape = ["batch", "seq_q", 4, 64]}},
      %k: !kv {{kvbuffer.name = "k"}}, %v: !kv {{kvbuffer.name = "v"}},
      %o: !result {{kvbuffer.name = "o", kvbuffer.shape = ["batch", "seq_q", {heads}, 64]}},
      %lse: !lse {{kvbuffer.name = "lse", kvbuffer.shape = ["batch", {heads}, "seq_q"]}})
      kernel attributes {{kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule,
                          kvbuffer.grid = [#kvbuffer.size<ceildiv(seq_q, {before})>, 4, "batch"]}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %slots = arith.constant {slots} : index
    %copies = arith.constant {copies} : index
    %rows = arith.constant {rows} : index
    %number_x = gpu.block_id x
    %head = gpu.block_id y
    %batch = gpu.block_id z
    %kv = arith.divui %head, %c2 : index
    %queries = memref.dim %q, %c1 : !qo
    %keys = kvbuffer.cache.num_keys %k[%batch] new(%queries) : !kv
    %tiles = arith.ceildivui %keys, %c32 : index
    %shelf = kvbuffer.shelf slots({copies}) : !shelf
    kvbuffer.teams {{
      kvbuffer.team @{team} warps({warps}) x {copies} (%copy) {{
{body}
      }}
    }}
    gpu.return
  }}
}}
"""


def own_rows(chip, warps, copies):
    """Each copy has rows of its own, and all keys."""
    body = """
      %part = arith.muli %number_x, %copies : index
      %which = arith.addi %part, %copy : index
      %row = arith.muli %which, %rows : index
      %rest = arith.subi %queries, %row : index
      %left = arith.maxsi %rest, %c0 : index
      %first = arith.constant 0 : index
      %every = arith.constant 1 : index
      %count = arith.addi %tiles, %c0 : index
""" + WALK + FINISH + """
      %o_tile = kvbuffer.dram_tile %o[%batch, %row, %head] valid(%left) : !result -> !qtile
      kvbuffer.fragment_store %rounded, %o_tile : !out, !qtile
      kvbuffer.row_store %lse_row, %lse[%batch, %head, %row] valid(%left) : !row, !lse
"""
    return program(chip, "rows", warps, copies, chip.rows * warps * copies, body, 4)


def own_keys(chip, warps, copies, shelf=False):
    """Each copy has keys of its own, every `copies`-th tile, of all rows; its
    results are those of heads of its own. `shelf`: it leaves them in LDS, and
    another copy, in a second division into teams, finishes them."""
    rows = """
      %row = arith.muli %number_x, %rows : index
      %left = arith.subi %queries, %row : index
"""
    body = rows + """
      %first = arith.addi %copy, %c0 : index
      %every = arith.addi %copies, %c0 : index
      %behind = arith.subi %tiles, %copy : index
      %its = arith.maxsi %behind, %c0 : index
      %count = arith.ceildivui %its, %copies : index
""" + WALK
    if shelf:
        body += f"""
      kvbuffer.shelf_put %acc, %m, %l to %shelf[%copy] : !shelf
      }}
    }}
    kvbuffer.teams {{
      kvbuffer.team @finish warps({warps}) x {copies} (%mine) {{
      %behind_mine = arith.addi %mine, %c1 : index
      %copy = arith.remui %behind_mine, %copies : index
      %acc, %m, %l = kvbuffer.shelf_get %shelf[%copy] : !shelf
""" + rows
    body += FINISH + """
      %base = arith.muli %head, %copies : index
      %place = arith.addi %base, %copy : index
      %o_tile = kvbuffer.dram_tile %o[%batch, %row, %place] valid(%left) : !result -> !qtile
      kvbuffer.fragment_store %rounded, %o_tile : !out, !qtile
      kvbuffer.row_store %lse_row, %lse[%batch, %place, %row] valid(%left) : !row, !lse
"""
    return program(chip, "keys", warps, copies, chip.rows * warps, body, 4 * copies)


#: Joins what teams with keys of their own have left on a shelf: each partial
#: result is like one more key, whose score is its log-sum-exp and whose value is
#: its row of O.
JOIN = """
      %ones = kvbuffer.fragment_fill 1.0 : !scores
      %start = kvbuffer.fragment_fill 0.0 : !acc
      %lowest = kvbuffer.fragment_fill 0xFF800000 : !row
      %zeros = kvbuffer.fragment_fill 0.0 : !row
      %acc, %m, %l = scf.for %i = %c0 to %copies step %c1
          iter_args(%a0 = %start, %m0 = %lowest, %l0 = %zeros) -> (!acc, !row, !row) {
        %own, %sum = kvbuffer.shelf_get %shelf[%i] : !left
        %its = kvbuffer.rescale %ones, %sum : !scores, !row
        %key = kvbuffer.map %its at(%c0, %c0) : !scores -> !scores {
        ^bb0(%x: f32, %r: index, %c: index):
          %none = arith.constant 0xFF800000 : f32
          %isFirst = arith.cmpi eq, %c, %c0 : index
          %score = arith.select %isFirst, %x, %none : f32
          kvbuffer.yield %score : f32
        }
        %p, %m1, %l1, %r0 = kvbuffer.online_softmax %key, %m0, %l0 {scale = 1.0 : f32, masked}
          : !scores, !row -> !pa
        %before = kvbuffer.rescale %ones, %m0 : !scores, !row
        %q1, %m2, %l2, %r1 = kvbuffer.online_softmax %before, %sum, %zeros {scale = 1.0 : f32, masked}
          : !scores, !row -> !pa
        %old = kvbuffer.rescale %a0, %r0 : !acc, !row
        %new = kvbuffer.rescale %own, %r1 : !acc, !row
        %a1 = kvbuffer.map %old, %new : !acc, !acc -> !acc {
        ^bb0(%x: f32, %y: f32, %r: index, %c: index):
          %z = arith.addf %x, %y : f32
          kvbuffer.yield %z : f32
        }
        scf.yield %a1, %m1, %l1 : !acc, !row, !row
      }
      %out, %lse_row = kvbuffer.softmax_finish %acc, %m, %l {scale = 1.0 : f32} : !acc, !row
      %rounded = kvbuffer.fragment_convert %out : !acc -> !out
      %o_tile = kvbuffer.dram_tile %o[%batch, %row, %head] valid(%left) : !result -> !qtile
      kvbuffer.fragment_store %rounded, %o_tile : !out, !qtile
      kvbuffer.row_store %lse_row, %lse[%batch, %head, %row] valid(%left) : !row, !lse
"""


def joined_keys(chip, copies):
    """Each copy, of one warp, has keys of its own, and leaves O and the
    log-sum-exp of these on a shelf; one warp joins them."""
    rows = """
      %row = arith.muli %number_x, %rows : index
      %left = arith.subi %queries, %row : index
"""
    body = rows + """
      %first = arith.addi %copy, %c0 : index
      %every = arith.addi %copies, %c0 : index
      %behind = arith.subi %tiles, %copy : index
      %its = arith.maxsi %behind, %c0 : index
      %count = arith.ceildivui %its, %copies : index
""" + WALK + f"""
      %out, %lse_row = kvbuffer.softmax_finish %acc, %m, %l {{scale = 0.125 : f32}} : !acc, !row
      kvbuffer.shelf_put %out, %lse_row to %shelf[%copy] : !left
      }}
    }}
    kvbuffer.teams {{
      kvbuffer.team @idle warps(1) x {copies - 1} {{
      }}
      kvbuffer.team @join warps(1) {{
""" + rows + JOIN
    text = program(chip, "keys", 1, copies, chip.rows, body, 4)
    return text.replace(": !shelf\n", ": !left\n").replace(
        "!shelf = !kvbuffer.shelf<!acc, !row, !row>",
        "!left = !kvbuffer.shelf<!acc, !row>")
