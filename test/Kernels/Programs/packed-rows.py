# Packed rows written by appends and read by lanes, on the emulator, against numpy.
# RUN: %python %s sm_80
# RUN: %python %s sm_90a
# RUN: %python %s gfx942
# RUN: %python %s gfx950
# RUN: %python %s gfx1250
"""Rows of parts of several types: new tokens into them, and their elements by lanes.

    packed-rows.py CHIP

The bytes of a part without scales are those of its elements, bit for bit. A scale of
f32 is the largest magnitude of its group over the type's largest number to a rounding
or two of f32, a power of two the least that is not below; no element is nearer than the
one that is stored, by more than what f32 makes of it. All other bytes stay. What lanes
load is an element's value times its scale, exactly, rounded once to f32.
"""

import pathlib
import sys

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import from_bf16, to_bf16
from numbers8 import float8

CHIP = sys.argv.pop()
RNG = np.random.default_rng()
PAGE, BLOCKS, PER_SEQ = 4, 7, 3

#: Bytes, and parts: (elements, their type, first byte, type of scales, elements of one,
#: first byte of them).
ROWS = {
    656: ((512, "f8E4M3FN", 0, "f32", 128, 512), (64, "bf16", 528, "", 0, 0)),
    528: ((512, "f8E4M3FN", 0, "f8E8M0FNU", 32, 512),),
    # 576 bytes lie together, and 8 behind all rows of a page.
    584: ((448, "f8E4M3FN", 0, "f8E8M0FNU", 64, 576), (64, "bf16", 448, "", 0, 0)),
    # The type of the tensor's elements is not that of the first part's.
    176: ((32, "bf16", 0, "", 0, 0), (96, "f8E5M2", 64, "bf16", 16, 160)),
}

#: Of rows with tails: bytes of a row without, of its tail, and of a page.
TAILS = {584: (576, 8, 2880)}


def row_text(size):
    parts = []
    for count, element, at, scale, group, scale_at in ROWS[size]:
        of = (f", scale = {scale}, granularity = {group}, scale_at = {scale_at}"
              if scale else "")
        parts.append(f"<count = {count}, element = {element}, at = {at}{of}>")
    own, tail = size, ""
    if size in TAILS:
        own, bytes_, page = TAILS[size]
        tail = f", tail = {bytes_}, rows = {PAGE}, stride = {page}"
    return f"<bytes = {own}, parts = [{', '.join(parts)}]{tail}>"


def tensor_of(size, memory, page=None):
    """A cache's memory [pages, bytes of a page] as kernels take it."""
    own, tail, _ = TAILS.get(size, (size, 0, 0))
    return np.lib.stride_tricks.as_strided(
        memory, (len(memory), PAGE, 1, own + (PAGE * tail)),
        (page or memory.shape[1], own, own, 1))


def rows_of(size, memory):
    """[pages, page size, bytes of a row and its tail]."""
    own, tail, _ = TAILS.get(size, (size, 0, 0))
    rows = memory[:, :PAGE * own].reshape(len(memory), PAGE, own)
    tails = memory[:, PAGE * own:PAGE * (own + tail)].reshape(len(memory), PAGE, tail)
    return np.concatenate((rows, tails), 2)


def cache_text(size):
    elements = sum(part[0] for part in ROWS[size])
    return elements, (f"!kvbuffer.cache<paged, bf16, heads = 1, head_size = {elements}, "
                      f"page_size = {PAGE}, row = {row_text(size)}>")


def scales_of(part, row):
    """The scales of a row of bytes, as numbers."""
    count, _, _, scale, group, at = part
    if not scale:
        return np.ones(1)
    width = {"f32": 4, "bf16": 2, "f8E8M0FNU": 1}[scale]
    raw = row[at:at + count // group * width]
    if scale == "f32":
        return raw.view(np.float32).astype(np.float64)
    if scale == "bf16":
        return from_bf16(raw.view(np.uint16)).astype(np.float64)
    return 2.0 ** (raw.astype(np.float64) - 127)


def stored_of(part, row):
    """A part's elements as they are stored."""
    count, element, at = part[:3]
    if element == "bf16":
        return from_bf16(row[at:at + 2 * count].view(np.uint16)).astype(np.float64)
    return float8(element)[row[at:at + count]]


def check_row(size, row, before, x):
    expected, begin = before.copy(), 0
    for part in ROWS[size]:
        count, element, at, scale, group, scale_at = part
        own, begin = x[begin:begin + count], begin + count
        if not scale:
            expected[at:at + 2 * count] = to_bf16(own).view(np.uint8)
            continue
        values = float8(element)
        finite = np.unique(values[np.isfinite(values)])
        largest = abs(own.reshape(-1, group)).max(1)
        scales = scales_of(part, row)
        ratio = largest.astype(np.float32) / np.float32(finite[-1])
        tiny = 2.0 ** -126
        wanted = np.where(ratio < tiny, 1, ratio)
        if scale == "f8E8M0FNU":
            wanted = np.where(largest == 0, 1, np.maximum(ratio, tiny))
            np.testing.assert_array_equal(scales, 2.0 ** np.ceil(np.log2(wanted)))
        else:
            np.testing.assert_allclose(scales, wanted,
                                       rtol=2.0 ** -22 if scale == "f32" else 2.0 ** -8)
        exact = np.clip(own / np.repeat(scales, group), finite[0], finite[-1])
        got = stored_of(part, row)
        above = finite[np.minimum(np.searchsorted(finite, exact), len(finite) - 1)]
        below = finite[np.maximum(np.searchsorted(finite, exact, "right") - 1, 0)]
        best = np.minimum(abs(above - exact), abs(below - exact))
        assert (abs(got - exact) <= best + 8 * 2.0 ** -24 * abs(exact)).all()
        expected[at:at + count] = row[at:at + count]
        width = {"f32": 4, "bf16": 2, "f8E8M0FNU": 1}[scale]
        bytes_ = slice(scale_at, scale_at + count // group * width)
        expected[bytes_] = row[bytes_]
    np.testing.assert_array_equal(row, expected)


def appended(size):
    """A cache with new tokens of three sequences, and where they are."""
    elements, cache = cache_text(size)
    new = f"memref<?x1x{elements}xbf16, strided<[?, ?, 1]>>"
    kernel = kvbuf.compile(
        f"func.func @append(%k: {new}, %kc: {cache}, %o: memref<?xi32>) {{\n"
        f"  kvbuffer.cache_append k(%k : {new}) to(%kc : {cache}) "
        "offsets(%o : memref<?xi32>)\n  return\n}\n", target=CHIP, machine_code=False)
    table = RNG.permutation(BLOCKS)[:2 * PER_SEQ].reshape(2, PER_SEQ).astype(np.int32)
    lengths, counts = np.int32([3, 0]), [5, 2]
    page = TAILS[size][2] if size in TAILS else PAGE * size
    memory = RNG.integers(0, 120, (BLOCKS, page), np.uint8)
    # Magnitudes of groups differ, and one is all zeros; the inverse of one's scale is
    # more than the largest number.
    x = RNG.standard_normal((sum(counts), 1, elements))
    x *= np.exp(2 * RNG.standard_normal((sum(counts), 1, elements // 16))).repeat(16, 2)
    x[1, 0, -128:] = 0
    x[2, 0, :128] = np.tile([1e-37, 0], 64)
    bits = to_bf16(x)
    data, given = rows_of(size, memory), dict(
        k_new=bits, k_table=table, k_lengths=lengths,
        offsets=np.int32([0, *np.cumsum(counts)]))
    if size in TAILS:
        try:
            kernel(k=tensor_of(size, memory, TAILS[size][0] * PAGE), **given)
            raise AssertionError("rows whose tails lie elsewhere")
        except kvbuf.Error as error:
            assert ("stride 2304 of dimension 0; expected a multiple of 2880, as rows "
                    "have tails behind those of their block") in str(error), error
    kernel(k=tensor_of(size, memory), **given)
    after = rows_of(size, memory)
    touched, number = np.zeros((BLOCKS, PAGE), bool), 0
    for b, count in enumerate(counts):
        for i in range(count):
            place = (table[b, (lengths[b] + i) // PAGE], (lengths[b] + i) % PAGE)
            check_row(size, after[place], data[place],
                      from_bf16(bits[number, 0]).astype(np.float64))
            touched[place], number = True, number + 1
    np.testing.assert_array_equal(after[~touched], data[~touched])
    return memory, table, lengths + np.int32(counts)


def check_two_tensors():
    """The parts of rows of 656 bytes as keys and values, of tensors of their own."""
    types = {}
    for name, part in zip("kv", ROWS[656]):
        count, element, at, scale, group, scale_at = part
        of = (f", scale = {scale}, granularity = {group}, scale_at = {scale_at}"
              if scale else "")
        types[name] = (
            f"memref<?x1x{count}xbf16, strided<[?, ?, 1]>>",
            f"!kvbuffer.cache<paged, bf16, heads = 1, head_size = {count}, page_size = "
            f"{PAGE}, row = <bytes = 656, parts = [<count = {count}, element = {element},"
            f" at = {at}{of}>]>>")
    names = ", ".join(f"%{n}: {new}, %{n}c: {cache}" for n, (new, cache) in types.items())
    text = " ".join(f"{n}(%{n} : {new}) to(%{n}c : {cache})"
                    for n, (new, cache) in types.items())
    kernel = kvbuf.compile(
        f"func.func @append({names}, %o: memref<?xi32>) {{\n  kvbuffer.cache_append "
        f"{text} offsets(%o : memref<?xi32>)\n  return\n}}\n", target=CHIP,
        machine_code=False)
    table, lengths = np.int32([[3, 1]]), np.int32([2])
    data = RNG.integers(0, 120, (BLOCKS, PAGE, 1, 656), np.uint8)
    after, x = data.copy(), to_bf16(RNG.standard_normal((3, 1, 576)))
    kernel(k_new=x[..., :512].copy(), v_new=x[..., 512:].copy(), k=after, v=after,
           k_table=table, v_table=table, k_lengths=lengths, v_lengths=lengths,
           offsets=np.int32([0, 3]))
    for i, place in enumerate(((3, 2, 0), (3, 3, 0), (1, 0, 0))):
        check_row(656, after[place], data[place],
                  from_bf16(x[i, 0]).astype(np.float64))
        data[place] = after[place]
    np.testing.assert_array_equal(after, data)


READ = """
!kv = {cache}
gpu.module @m {{
  gpu.func @ask(%c: !kv {{kvbuffer.name = "c"}},
                %where: memref<?x3xi32> {{kvbuffer.name = "where", kvbuffer.shape = ["n", 3]}},
                %values: memref<?x8xf32> {{kvbuffer.name = "values", kvbuffer.shape = ["n", 8]}},
                %raw: memref<?x8x{element}> {{kvbuffer.name = "raw", kvbuffer.shape = ["n", 8]}},
                %scales: memref<?x1x{stored}> {{kvbuffer.name = "scales", kvbuffer.shape = ["n", 1]}})
      kernel attributes {{kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 32, 1, 1>,
                         kvbuffer.grid = [#kvbuffer.size<ceildiv(n, 32)>, 1, 1]}} {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %wave = arith.constant 32 : index
    %begin = arith.constant {begin} : index
    %end = arith.constant {end} : index
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %first = arith.muli %block, %wave : index
    %i = arith.addi %first, %thread : index
    %n = memref.dim %where, %zero : memref<?x3xi32>
    %active = arith.cmpi slt, %i, %n : index
    scf.if %active {{
      %b_ = memref.load %where[%i, %zero] : memref<?x3xi32>
      %t_ = memref.load %where[%i, %one] : memref<?x3xi32>
      %d_ = memref.load %where[%i, %two] : memref<?x3xi32>
      %b = arith.index_cast %b_ : i32 to index
      %t = arith.index_cast %t_ : i32 to index
      %d = arith.index_cast %d_ : i32 to index
      %x = kvbuffer.cache.load %c[%b, %zero, %t, %d] {{alignment = 8 : i64}} : !kv -> vector<8xf32>
      vector.store %x, %values[%i, %zero] : memref<?x8xf32>, vector<8xf32>
      %after = arith.cmpi sge, %d, %begin : index
      %before = arith.cmpi slt, %d, %end : index
      %here = arith.andi %after, %before : i1
      scf.if %here {{
        %q = kvbuffer.cache.load_quantized %c[%b, %zero, %t, %d] {{part = {part} : i64}} : !kv -> vector<8x{element}>
        vector.store %q, %raw[%i, %zero] : memref<?x8x{element}>, vector<8x{element}>
        %s = kvbuffer.cache.load_scale %c[%b, %zero, %t, %d] {{part = {part} : i64}} : !kv -> vector<1x{scale}>
        {convert}
        vector.store %{kept}, %scales[%i, %zero] : memref<?x1x{stored}>, vector<1x{stored}>
      }}
    }}
    gpu.return
  }}
}}
"""


def check_loads(size, memory, table, lengths):
    data = rows_of(size, memory)
    part = next(i for i, p in enumerate(ROWS[size]) if p[3])
    begin = sum(p[0] for p in ROWS[size][:part])
    count, element, at, scale, group, scale_at = ROWS[size][part]
    isPower = scale == "f8E8M0FNU"
    stored = "i8" if isPower else scale
    kernel = kvbuf.compile(READ.format(
        cache=cache_text(size)[1], element=element, scale=scale, stored=stored, part=part,
        begin=begin, end=begin + count, kept="bits" if isPower else "s",
        convert="%bits = arith.bitcast %s : vector<1xf8E8M0FNU> to vector<1xi8>"
        if isPower else ""), target=CHIP, machine_code=False)
    elements = cache_text(size)[0]
    where = np.int32([(b, t, d) for b in range(2) for t in range(-1, PAGE * PER_SEQ, 3)
                      for d in range(0, elements, 24)])
    n = len(where)
    values, raw = np.zeros((n, 8), np.float32), np.zeros((n, 8), np.uint8)
    scales = np.zeros((n, 1), {"i8": np.uint8, "bf16": np.uint16}.get(stored, np.float32))
    kernel(c=tensor_of(size, memory), c_table=table, c_lengths=lengths, where=where, values=values, raw=raw,
           scales=scales)
    for i, (b, t, d) in enumerate(where):
        if t < 0:
            assert not values[i].any() and not raw[i].any() and not scales[i].any()
            continue
        row = data[table[b, t // PAGE], t % PAGE]
        first = 0
        for number, p in enumerate(ROWS[size]):
            if d < first + p[0]:
                break
            first += p[0]
        in_part = d - first
        factor = scales_of(p, row)[in_part // p[4] if p[3] else 0]
        exact = stored_of(p, row)[in_part:in_part + 8] * factor
        np.testing.assert_array_equal(values[i], exact.astype(np.float32), (b, t, d))
        if number == part:
            np.testing.assert_array_equal(raw[i], row[at + in_part:at + in_part + 8])
            width = scales.itemsize
            own = row[scale_at + in_part // group * width:][:width]
            np.testing.assert_array_equal(scales[i].view(np.uint8), own)


for size in ROWS:
    check_loads(size, *appended(size))
check_two_tensors()
print("right")
