# Functions of visibility that bound keys, on the emulator: prefixes of any size,
# and padding on the left; beside others that say nothing of where keys are.
# RUN: %python %s sm_80
# RUN: %python %s sm_90a
# RUN: %if ld.lld %{ %python %s gfx950 %}
"""A prefix that all rows see, and what lies before a row, from a key on, against
float64; with many rows and with few, of one head and of two that share a head of the
cache. Beside it, keys of any place that a row sees, too, or that none sees: tiles that
these leave no mask, or that they hide, would be wrong.

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
SIZE = 32
SOURCE = f"""
!qo = memref<?xROWSxHEADSx{SIZE}xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = {SIZE}>
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
      %c5 = arith.constant 5 : index
      %c8 = arith.constant 8 : index
      %m3 = arith.constant -3 : index
      %eighth = arith.remui %key, %c8 : index
      %marked = arith.cmpi eq, %eighth, %c5 : index
      %apart = arith.subi %key, %at : index
      %well_before = arith.cmpi sle, %apart, %m3 : index
      %alone = arith.ori %prefix, %before : i1
      %other = arith.ori %marked, %well_before : i1
      %with = arith.ori %prefix, %other : i1
      %end = memref.load %m[%batch] : memref<?xi64>
      %w = arith.index_cast %key : index to i64
      %within = arith.cmpi slt, %w, %end : i64
      %both = arith.andi EITHER, %within : i1
      %start = memref.load %f[%batch] : memref<?xi32>
      %from = arith.cmpi sgt, %n, %start : i32
      // A start that grows with the row.
      %far = arith.constant 350 : index
      %since = arith.subi %at, %far : index
      %window = arith.cmpi sle, %since, %key : index
      %behind = arith.andi %from, %window : i1
      %odd = arith.cmpi ne, %eighth, %two : index
      %bounds = arith.andi %both, STARTS : i1
      %t = arith.andi %bounds, SHOWN : i1
      kvbuffer.yield %t : i1
    }}
  return
}}
"""


#: What the function is, by what joins the bounds: nothing, what shows some keys more, and
#: what hides some; and which starts there are (but for "padding", a window, too, which
#: becomes the mask's).
KINDS = {"bounds": ("%alone", "%both", "%behind"), "or": ("%with", "%both", "%behind"),
         "and": ("%alone", "%odd", "%behind"), "padding": ("%alone", "%both", "%from")}


def run_case(kind, rows, queries, heads):
    either, shown, starts = KINDS[kind]
    run = kvbuf.compile(
        SOURCE.replace("ROWS", rows).replace("HEADS", str(heads))
        .replace("EITHER", either).replace("SHOWN", shown).replace("STARTS", starts),
        target=CHIP, machine_code=False)
    keys = 420
    last = np.array([-1, 70, 2**31 - 1, 300, 5], np.int32)
    least = np.array([2**40, 400, 2**62, 128, -2**40], np.int64)
    first = np.array([-1, 17, 200, -2**31, 2**31 - 1], np.int32)
    batch = len(last)
    q, k, v = (to_bf16(RNG.standard_normal((batch, n, h, SIZE)))
               for n, h in ((queries, heads), (keys, 1), (keys, 1)))
    out = np.full(q.shape, 0x7FC0, np.uint16)  # NaN
    # What no row sees, as padding, may be anything: a tile's first keys are left out.
    unseen = [np.s_[n, :max(min(int(f) + 1, keys), 0)] for n, f in enumerate(first)]
    for place in unseen if rows == "?" else ():
        k[place], v[place] = 0x7FC0, 0x7FC0
    run(q=q, k=k, v=v, o=out, last=last, least=least, first=first)
    for place in unseen:
        k[place], v[place] = 0, 0
    i, j = np.arange(queries)[:, None] + keys - queries, np.arange(keys)[None]
    before = (j % 8 == 5) | (j <= i - 3) if kind == "or" else j <= i - 2
    seen = (((j <= last[:, None, None]) | before)
            & (j < least[:, None, None]) & (j > first[:, None, None].astype(int))
            & ((i - 350 <= j) | (kind == "padding"))
            & ((j % 8 != 2) | (kind != "and")))[:, None]
    q, k, v, out = map(from_bf16, (q, k, v, out))
    k, v = (np.repeat(x, heads, 2) for x in (k, v))
    s = np.einsum("bihd,bjhd->bhij", q, k) / SIZE ** 0.5
    exact, base = (x.transpose(0, 2, 1, 3) for x in
                   attend(s, seen, v.transpose(0, 2, 1, 3))[:2])
    ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
    error, usual = abs(out - exact), abs(base - exact)
    if np.isnan(out).any() or (error - ulp).max() > 2 * usual.max() or (
            error.mean() > 1.15 * usual.mean() + 1e-6):
        sys.exit(f"{kind}, {queries} rows: the kernel computes something else: "
                 f"{error.max()}, {usual.max()}")


run_case("bounds", "?", 260, 1)
run_case("padding", "?", 260, 1)
for kind in KINDS:
    run_case(kind, "5", 5, 2)
if CHIP == "sm_90a":
    run_case("or", "?", 260, 1)
    run_case("and", "?", 260, 1)
    # Tiles of both heads.
    run_case("or", "40", 40, 2)
