# Random loads by lanes, executed on the emulator, against numpy.
# RUN: %python %s sm_80 --seed 1 --cases 4
# RUN: %python %s sm_90a --seed 2 --cases 4
# RUN: %python %s gfx942 --seed 3 --cases 4
# RUN: %python %s gfx950 --seed 4 --cases 4
"""Kernels whose lanes load from caches: vectors of any width up to a head, into any
type, of caches of every kind, type, granularity of scales and order in memory, with
tables and lengths that hold anything.

    cache-widths.py CHIP --seed N --cases N

A case depends on the seed and its number. Every kernel has a cache of 8-bit floats,
three of them a load, and outputs that the call allocates, beside a random one.
"""

import argparse
import random

import numpy as np

import kvbuf

FLOAT8 = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2", "f8E4M3FNUZ": "e4m3fnuz",
          "f8E5M2FNUZ": "e5m2fnuz"}
STORED = {"bf16": np.uint16, "f16": np.float16, "f32": np.float32,
          **dict.fromkeys(FLOAT8, np.uint8)}
LANES = 40


def exact(x, kind):
    """The values of what is stored."""
    if kind in FLOAT8:
        return kvbuf.from_fp8(x, FLOAT8[kind])
    return kvbuf.from_bf16(x) if kind == "bf16" else x.astype(np.float32)


def stored(x, kind):
    """Values, rounded to what is stored."""
    if kind in FLOAT8:
        return kvbuf.to_fp8(x, FLOAT8[kind])
    return kvbuf.to_bf16(x) if kind == "bf16" else x.astype(STORED[kind])


class Case:
    """A cache, and what its lanes load."""

    def __init__(self, rng, draw):
        self.rng = rng
        pick = draw.choice
        self.kind = pick(["dense", "ragged", "continuous", "paged", "paged"])
        self.element = pick(["bf16", "f16", "f32", *FLOAT8])
        self.index = pick(["i32", "i64"])
        self.heads, self.size = pick([1, 2, 3]), pick([8, 12, 24, 40, 64])
        self.first = pick([0, 4, 8])
        self.depth = self.size + self.first + pick([0, 0, 3, 4])
        self.page = pick([1, 2, 3, 5, 16])
        self.width = min(self.size, pick([1, 2, 3, 4, 5, 6, 7, 8, 16, self.size]))
        self.out = pick(["f32", "bf16", "f16", self.element])
        self.scale = self.group = None
        if self.element in FLOAT8 and draw.random() < 0.8:
            self.scale = pick(["f32", "f16", "bf16"])
            self.group = pick(["tensor", "head", 1, 8, 12, self.size])
            if self.by_token:
                self.group = min(self.group, self.size)
                if self.width % self.group and self.group % self.width:
                    self.width = self.group
        self.batch, self.blocks, self.per = pick([1, 2, 3]), pick([4, 7]), pick([1, 2])
        self.rows = self.page if self.kind == "paged" else pick([1, 5, 12])
        self.heads_outside = draw.random() < 0.3

    @property
    def by_token(self):
        return isinstance(self.group, int)

    def __str__(self):
        page = f", page_size = {self.page}" * (self.kind == "paged")
        scale = f", scale = {self.scale}, granularity = {self.group}" if self.scale else ""
        return (f"!kvbuffer.cache<{self.kind}, {self.element}, heads = {self.heads}, "
                f"head_size = {self.size}{page}, cache_depth = {self.depth}, "
                f"head_dim_offset = {self.first}{scale}>")

    def text(self):
        def output(name, kind):
            return (f'%{name}: memref<?x{self.width}x{kind}> {{kvbuffer.name = "{name}", '
                    f'kvbuffer.shape = ["n", {self.width}]}}')
        values, raw = f"vector<{self.width}x{self.out}>", f"vector<{self.width}x{self.element}>"
        return f"""
!kv = {self}
gpu.module @m {{
  gpu.func @ask(%where: memref<?x4xi32> {{kvbuffer.name = "where", kvbuffer.shape = ["n", 4]}},
                %c: !kv {{kvbuffer.name = "c", kvbuffer.index = {self.index}}},
                {output("values", self.out)},
                {output("raw", self.element)})
      kernel attributes {{kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>,
                         kvbuffer.grid = [1, 1, 1]}} {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %three = arith.constant 3 : index
    %i = gpu.thread_id x
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
      %x = kvbuffer.cache.load %c[%b, %h, %t, %d] : !kv -> {values}
      vector.store %x, %values[%i, %zero] : memref<?x{self.width}x{self.out}>, {values}
      %y = kvbuffer.cache.load_quantized %c[%b, %h, %t, %d] : !kv -> {raw}
      vector.store %y, %raw[%i, %zero] : memref<?x{self.width}x{self.element}>, {raw}
    }}
    gpu.return
  }}
}}
"""

    def make(self):
        """The tensors; and where a token's row is, or None."""
        rng, given = self.rng, {}
        kind = np.int32 if self.index == "i32" else np.int64
        if self.kind == "ragged":
            offsets = np.concatenate([[2], 2 + np.cumsum(rng.integers(0, 6, self.batch))])
            given["c_offsets"] = offsets.astype(kind)
            lead, room = (int(offsets[-1]) + 3,), np.diff(offsets)
        elif self.kind == "dense":
            lead, room = (self.batch, self.rows), [self.rows] * self.batch
        else:
            per = self.per if self.kind == "paged" else 1
            lead, room = (self.blocks, self.rows), [self.rows * per] * self.batch
            table = rng.integers(-1, self.blocks + 1, (self.batch, per)).astype(kind)
            table.flat[0] = np.iinfo(kind).max
            given["c_table"] = table if self.kind == "paged" else table[:, 0].copy()
            given["c_lengths"] = rng.integers(-2, room[0] + 3, self.batch).astype(kind)
        data = stored(3 * rng.standard_normal((*lead, self.heads, self.depth)), self.element)
        if self.heads_outside and len(lead) == 2:
            data = np.ascontiguousarray(data.swapaxes(1, 2)).swapaxes(1, 2)
        given["c"] = data
        if self.scale:
            shape = {"tensor": (1,), "head": (self.heads,)}.get(self.group) or (
                *lead, self.heads, -(-self.size // self.group))
            given["c_scales"] = stored(rng.uniform(0.1, 2, shape), self.scale)

        def place(b, t):
            if not 0 <= t < room[b]:
                return None
            if self.kind == "dense":
                return b, t
            if self.kind == "ragged":
                return (int(offsets[b]) + t,)
            block = int(table[b, t // self.rows])
            return (block, t % self.rows) if 0 <= block < self.blocks else None
        return given, place, max(room)

    def check(self, chip):
        given, place, room = self.make()
        where = np.zeros((LANES, 4), np.int32)
        step = self.width if self.by_token else 1
        for column, (least, end) in enumerate((
                (0, self.batch), (0, self.heads), (-2, room + 3),
                (0, (self.size - self.width) // step + 1))):
            where[:, column] = self.rng.integers(least, end, LANES)
        where[:, 3] *= step
        where[:2, 2] = 2**31 - 1, -2**31
        kernel = kvbuf.compile(self.text(), target=chip, machine_code=False)
        # Lengths and tables hold what no host would let by.
        device = kvbuf.Device("emulator", check_lengths=False)
        values, raw = kernel(where=where, device=device, **given)
        for i, (b, h, t, d) in enumerate(where.tolist()):
            at, want = place(b, t), np.zeros(self.width, STORED[self.element])
            if at:
                want = given["c"][at][h, self.first + d:self.first + d + self.width]
            number = exact(want, self.element)
            if self.scale:
                scales = exact(given["c_scales"], self.scale)
                number = number * (
                    scales[0] if self.group == "tensor" else
                    scales[h] if self.group == "head" else
                    scales[at][h][(d + np.arange(self.width)) // self.group] if at
                    else np.float32(0))
            got = exact(values[i], self.out)
            number = exact(stored(number, self.out), self.out)
            assert raw.dtype == want.dtype and raw[i].tobytes() == want.tobytes(), (
                self, i, raw[i], want)
            assert np.array_equal(got, number, equal_nan=True), (self, i, got, number)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("chip")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=10)
    args = parser.parse_args()
    for number in range(args.cases):
        draw = random.Random(f"{args.seed}:{number}")
        case = Case(np.random.default_rng(draw.randrange(2**31)), draw)
        if number == 0:
            # Three bytes a load, rows of an odd number of bytes.
            case.element, case.scale, case.group = "f8E5M2", None, None
            case.width, case.depth, case.first = 3, case.size + 1, 0
        if number == 1:
            case.element, case.scale, case.group = "f16", None, None
            case.width, case.out = 5, "f32"
        case.check(args.chip)


main()
