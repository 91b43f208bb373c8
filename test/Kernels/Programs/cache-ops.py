# Every op on caches by lanes, executed on the emulator.
# RUN: %python %s sm_80
# RUN: %python %s gfx942
"""Kernels whose lanes ask caches for lengths, rows, elements, scales and memory; the
answers are compared with numpy's.

    cache-ops.py CHIP
"""

import sys

import numpy as np

import kvbuf

CHIP = sys.argv.pop()
RNG = np.random.default_rng()
HEADS, SIZE, PAGE = 2, 64, 6

TEXT = """
!kv = !kvbuffer.cache<{cache}>
gpu.module @m {{
  gpu.func @ask(%c: !kv {{kvbuffer.name = "c"}},
                %where: memref<?x4xi32> {{kvbuffer.name = "where", kvbuffer.shape = ["n", 4]}},
                %numbers: memref<?x8xi64> {{kvbuffer.name = "numbers", kvbuffer.shape = ["n", 8]}},
                %values: memref<?x8xf32> {{kvbuffer.name = "values", kvbuffer.shape = ["n", 8]}}{more_args})
      kernel attributes {{kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 32, 1, 1>,
                         kvbuffer.grid = [#kvbuffer.size<ceildiv(n, 32)>, 1, 1]}} {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %three = arith.constant 3 : index
    %four = arith.constant 4 : index
    %five = arith.constant 5 : index
    %six = arith.constant 6 : index
    %seven = arith.constant 7 : index
    %wave = arith.constant 32 : index
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %first = arith.muli %block, %wave : index
    %i = arith.addi %first, %thread : index
    %n = memref.dim %where, %zero : memref<?x4xi32>
    %active = arith.cmpi slt, %i, %n : index
    scf.if %active {{
      %b_ = memref.load %where[%i, %zero] : memref<?x4xi32>
      %h_ = memref.load %where[%i, %one] : memref<?x4xi32>
      %t_ = memref.load %where[%i, %two] : memref<?x4xi32>
      %d_ = memref.load %where[%i, %three] : memref<?x4xi32>
      %b = arith.index_cast %b_ : i32 to index
      %h = arith.index_cast %h_ : i32 to index
      %t = arith.index_cast %t_ : i32 to index
      %d = arith.index_cast %d_ : i32 to index
      %a0 = kvbuffer.cache.cache_length %c[%b] : !kv
      %a1 = kvbuffer.cache.max_context_length %c : !kv
      %a2 = kvbuffer.cache.row_idx %c[%b, %t] : !kv
      %a3 = kvbuffer.cache.num_kv_rows %c : !kv
      %a4 = kvbuffer.cache.get_tma_row %c[%t] : !kv
      %a5 = kvbuffer.cache.max_tile_size %c : !kv
      %a6 = kvbuffer.cache.max_prompt_length %c : !kv
      %none = kvbuffer.cache.empty_cache %c : !kv
      %a7 = arith.index_castui %none : i1 to index
      {stores}
      %x = kvbuffer.cache.load %c[%b, %h, %t, %d] : !kv -> vector<8xf32>
      vector.store %x, %values[%i, %zero] : memref<?x8xf32>, vector<8xf32>
      {more}
    }}
    gpu.return
  }}
}}
"""
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven")
STORES = "\n".join(
    f"%w{i} = arith.index_cast %a{i} : index to i64\n"
    f"memref.store %w{i}, %numbers[%i, %{name}] : memref<?x8xi64>"
    for i, name in enumerate(NAMES))


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def e4m3():
    """The values of the codes of the chip's format."""
    bias = 8 if CHIP == "gfx942" else 7
    codes = np.arange(256)
    a, part = codes & 0x7F, codes & 7
    value = np.where(a < 8, part * 2.0 ** (-2 - bias),
                     (8 + part) * 2.0 ** ((a >> 3) - bias - 3))
    return (np.where(codes & 0x80, -1, 1) * value).astype(np.float32)


def check(kind, quantized):
    element = ("f8E4M3FNUZ" if CHIP == "gfx942" else "f8E4M3FN") if quantized else "bf16"
    cache = f"{kind}, {element}, heads = {HEADS}, head_size = {SIZE}"
    if kind == "paged":
        cache += f", page_size = {PAGE}"
    cache += ", cache_depth = 72, head_dim_offset = 8"
    more = more_args = ""
    if quantized:
        cache += ", scale = f32, granularity = 16"
        more_args = (f""",
                %raw: memref<?x8x{element}> {{kvbuffer.name = "raw", kvbuffer.shape = ["n", 8]}},
                %scales: memref<?x2xf32> {{kvbuffer.name = "scales", kvbuffer.shape = ["n", 2]}},
                %views: memref<?x4xf32> {{kvbuffer.name = "views", kvbuffer.shape = ["n", 4]}}""")
        more = f"""
      %q = kvbuffer.cache.load_quantized %c[%b, %h, %t, %d] : !kv -> vector<8x{element}>
      vector.store %q, %raw[%i, %zero] : memref<?x8x{element}>, vector<8x{element}>
      %s = kvbuffer.cache.load_scale %c[%b, %h, %t, %zero] : !kv -> vector<2xf32>
      vector.store %s, %scales[%i, %zero] : memref<?x2xf32>, vector<2xf32>
      // Tiles begin at multiples of three tokens; what has no row asks for none.
      %base = arith.divui %t, %three : index
      %start = arith.muli %base, %three : index
      %in = arith.remui %t, %three : index
      %there = arith.cmpi sge, %a2, %zero : index
      scf.if %there {{
        %tile = kvbuffer.cache.block_paged_ptr %c[%b, %start, %h, %d] : !kv -> memref<3x8x{element}, strided<[?, 1], offset: ?>>
        %y = vector.load %tile[%in, %zero] : memref<3x8x{element}, strided<[?, 1], offset: ?>>, vector<8x{element}>
        %y0 = vector.extract %y[5] : {element} from vector<8x{element}>
        %f0 = arith.extf %y0 : {element} to f32
        memref.store %f0, %views[%i, %zero] : memref<?x4xf32>
        %groups = kvbuffer.cache.scales_block_paged_ptr %c[%b, %start, %h, %d] : !kv -> memref<3x2xf32, strided<[?, 1], offset: ?>>
        %f1 = memref.load %groups[%in, %zero] : memref<3x2xf32, strided<[?, 1], offset: ?>>
        memref.store %f1, %views[%i, %one] : memref<?x4xf32>
        %all = kvbuffer.cache.scales_raw_ptr %c : !kv -> memref<f32, strided<[], offset: ?>>
        %f2 = memref.load %all[] : memref<f32, strided<[], offset: ?>>
        memref.store %f2, %views[%i, %two] : memref<?x4xf32>
        memref.store %f2, %views[%i, %three] : memref<?x4xf32>
      }}"""
    kernel = kvbuf.compile(TEXT.format(cache=cache, stores=STORES, more=more,
                                       more_args=more_args), target=CHIP,
                           machine_code=False)
    batch, blocks, per_seq = 3, 7, 2
    rows = PAGE if kind == "paged" else 12
    given = {}
    if kind == "dense":
        blocks = batch
    if kind == "ragged":
        offsets = np.int32([1, 1, 7, 12])
        given["c_offsets"] = offsets
        shape, lengths, room = (15,), np.diff(offsets), np.diff(offsets)
    else:
        # Blocks lie two of their sizes apart.
        shape = (blocks, 2 * rows)
        room = [12] * batch
        lengths = [12] * batch
    if kind in ("continuous", "paged"):
        table = RNG.permutation(blocks)[:batch * per_seq].reshape(batch, -1)
        if kind == "continuous":
            table = table[:, 0]
        lengths = np.int32([5, -3, 99])
        given["c_table"] = np.int32(table)
        given["c_lengths"] = lengths
        lengths = np.clip(lengths, 0, 12)
    kind_of = np.uint8 if quantized else np.uint16
    data = RNG.integers(0, 126 if quantized else 1 << 14, shape + (HEADS, 72), kind_of)
    scales = RNG.standard_normal(shape + (HEADS, 4)).astype(np.float32)
    if kind != "ragged":
        data, scales = data[:, :rows], scales[:, :rows]
    given["c"] = data
    where = np.stack([RNG.integers(0, batch, 70), RNG.integers(0, HEADS, 70),
                      RNG.integers(-2, 15, 70), 8 * RNG.integers(0, 8, 70)], 1)
    where = where.astype(np.int32)
    where[:, 2] = np.where(where[:, 2] < -1, 1 << 30, where[:, 2])
    if kind in ("continuous", "paged"):  # and a block that is none
        given["c_table"][1] = blocks if kind == "continuous" else [blocks, -1]
    n = len(where)
    numbers, values = np.zeros((n, 8), np.int64), np.zeros((n, 8), np.float32)
    given.update(where=where, numbers=numbers, values=values, max_prompt_length=17)
    if quantized:
        raw, some, views = (np.zeros((n, 8), np.uint8), np.zeros((n, 2), np.float32),
                            np.zeros((n, 4), np.float32))
        given.update(raw=raw, scales=some, views=views, c_scales=scales)
    # Lengths and tables hold what no host would let by.
    kernel(**given, device=kvbuf.Device("emulator", check_lengths=False))
    step = 1 if kind == "ragged" else 2 * rows
    for i, (b, h, t, d) in enumerate(where):
        place, row = None, -1
        if 0 <= t < room[b]:
            if kind == "ragged":
                place = (offsets[b] + t,)
                row = place[0]
            else:
                block, at = b, t
                if kind == "continuous":
                    block = given["c_table"][b]
                elif kind == "paged":
                    block, at = given["c_table"][b, t // PAGE], t % PAGE
                if 0 <= block < blocks:
                    place = (block, at)
                    row = block * step + at
        total = data.shape[0] if kind == "ragged" else (blocks - 1) * step + rows
        tma = t if kind != "paged" else t // PAGE * step + t % PAGE
        wanted = [lengths[b], max(lengths), row, total, tma,
                  {"paged": PAGE, "ragged": 15}.get(kind, 12), 17, 0]
        if t < 0 and kind == "paged":  # no encoded index
            wanted[4] = numbers[i, 4]
        np.testing.assert_array_equal(numbers[i], wanted, f"{kind} {b} {h} {t} {d}")
        got = np.zeros(8, data.dtype) if place is None else data[place][h, 8 + d:16 + d]
        if not quantized:
            np.testing.assert_array_equal(values[i], from_bf16(got))
            continue
        group = np.zeros(4) if place is None else scales[place][h]
        np.testing.assert_array_equal(raw[i], got)
        np.testing.assert_array_equal(some[i], group[:2])
        np.testing.assert_array_equal(
            values[i], e4m3()[got] * np.float32(group[d // 16]))
        if place is None:
            continue
        wanted = [e4m3()[got[5]], group[d // 16], scales.reshape(-1)[0],
                  scales.reshape(-1)[0]]
        np.testing.assert_array_equal(views[i], np.float32(wanted))


for kind in "dense", "ragged", "continuous", "paged":
    for quantized in False, True:
        check(kind, quantized)
