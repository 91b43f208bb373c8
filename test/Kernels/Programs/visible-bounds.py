# Functions of visibility that bound keys, on the emulator: prefixes of any size,
# and padding on the left.
# RUN: %python %s sm_80
# RUN: %python %s sm_90a
# RUN: %if ld.lld %{ %python %s gfx950 %}
"""A prefix that all rows see, and what lies before a row, from a key on, against
float64.

    visible-bounds.py CHIP
"""

import pathlib
import sys

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import attend, from_bf16, to_bf16

CHIP = sys.argv[1]
RNG = np.random.default_rng(3)
HEADS, SIZE = 1, 32
SOURCE = f"""
!qo = memref<?x?x{HEADS}x{SIZE}xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = {HEADS}, head_size = {SIZE}>
func.func @f(%q: !qo, %k: !kv, %v: !kv, %o: !qo,
             %last: memref<?xi32> {{kvbuffer.name = "last", kvbuffer.shape = ["batch"]}},
             %least: memref<?xi64> {{kvbuffer.name = "least", kvbuffer.shape = ["batch"]}},
             %first: memref<?xi32> {{kvbuffer.name = "first", kvbuffer.shape = ["batch"]}}) {{
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%last, %least, %first : memref<?xi32>, memref<?xi64>, memref<?xi32>)
    visible {{
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index,
         %l: memref<?xi32>, %m: memref<?xi64>, %f: memref<?xi32>):
      %last32 = memref.load %l[%batch] : memref<?xi32>
      %n = arith.index_cast %key : index to i32
      %prefix = arith.cmpi sle, %n, %last32 : i32
      %two = arith.constant 2 : index
      %near = arith.subi %at, %two : index
      %before = arith.cmpi sle, %key, %near : index
      %either = arith.ori %prefix, %before : i1
      %end = memref.load %m[%batch] : memref<?xi64>
      %w = arith.index_cast %key : index to i64
      %within = arith.cmpi slt, %w, %end : i64
      %both = arith.andi %either, %within : i1
      %start = memref.load %f[%batch] : memref<?xi32>
      %from = arith.cmpi sgt, %n, %start : i32
      // A start that grows with the row.
      %far = arith.constant 350 : index
      %since = arith.subi %at, %far : index
      %window = arith.cmpi sle, %since, %key : index
      %behind = arith.andi %from, %window : i1
      %t = arith.andi %both, %behind : i1
      kvbuffer.yield %t : i1
    }}
  return
}}
"""


def main():
    run = kvbuf.compile(SOURCE, target=CHIP, machine_code=False)
    queries, keys = 260, 420
    last = np.array([-1, 70, 2**31 - 1, 300, 5], np.int32)
    least = np.array([2**40, 400, 2**62, 128, -2**40], np.int64)
    first = np.array([-1, 17, 200, -2**31, 2**31 - 1], np.int32)
    batch = len(last)
    q, k, v = (to_bf16(RNG.standard_normal((batch, n, HEADS, SIZE)))
               for n in (queries, keys, keys))
    out = np.full(q.shape, 0x7FC0, np.uint16)  # NaN
    run(q=q, k=k, v=v, o=out, last=last, least=least, first=first)
    i, j = np.arange(queries)[:, None] + keys - queries, np.arange(keys)[None]
    seen = (((j <= last[:, None, None]) | (j <= i - 2))
            & (j < least[:, None, None]) & (j > first[:, None, None].astype(int))
            & (i - 350 <= j))[:, None]
    q, k, v, out = map(from_bf16, (q, k, v, out))
    s = np.einsum("bihd,bjhd->bhij", q, k) / SIZE ** 0.5
    exact, base = (x.transpose(0, 2, 1, 3) for x in
                   attend(s, seen, v.transpose(0, 2, 1, 3))[:2])
    ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
    error, usual = abs(out - exact), abs(base - exact)
    if np.isnan(out).any() or (error - ulp).max() > 2 * usual.max() or (
            error.mean() > 1.15 * usual.mean() + 1e-6):
        sys.exit(f"the kernel computes something else: {error.max()}, {usual.max()}")


main()
