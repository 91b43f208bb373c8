# Functions of scores and visibility where keys are split over blocks: heads that share
# a head of the cache, paged caches, ragged queries, on the emulator.
# RUN: %python %s %src sm_80 sm_90a
# RUN: %if ld.lld %{ %python %s %src gfx950 gfx942 %}
"""Runs problems of one to eight query tokens a sequence against float64.

    decode-scores.py SOURCE CHIP...    # all of the first chip, some of others

Slopes, additive biases, documents, a window by the mask with a region beside it,
random trees of speculative tokens and any relation among them, as bits
(examples/scores/tree-bits.mlir). What no sequence uses of the cache holds NaN, and a page
that lies before a sequence's window is not one of the cache's.

A result passes by the rule of kvbuf-run: errors in units of those of the same
mathematics with P and O rounded to bfloat16.
"""

import pathlib
import sys

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import attend, from_bf16, to_bf16

SOURCE, *CHIPS = sys.argv[1:]
RNG = np.random.default_rng()
KV_HEADS, GROUP, SIZE, PAGE = 2, 3, 64, 16
HEADS = KV_HEADS * GROUP
QUERIES = [3, 1, 0, 8, 5]
CACHED = [37, 0, 20, 130, 64]


class Alibi:
    capture = f"memref<{HEADS}xf32>", f"[{HEADS}]"
    score = """
      %slope = memref.load %t_[%head] : memref<6xf32>
      %ahead = arith.subi %key, %position : index
      %i = arith.index_cast %ahead : index to i32
      %d = arith.sitofp %i : i32 to f32
      %less = arith.mulf %slope, %d : f32
      %sum = arith.addf %s, %less : f32
      kvbuffer.yield %sum : f32"""
    mask = "causal = true"

    def __init__(self):
        self.tensor = RNG.random(HEADS).astype(np.float32)

    def of(self, b, i, j):
        slopes = self.tensor.astype(np.float64)[:, None, None]
        return slopes * (j - i), j <= i


class Bias:
    capture = f"memref<?x{HEADS}x8x?xf32>", f'["batch", {HEADS}, 8, "most"]'
    score = """
      %more = memref.load %t_[%batch, %head, %row, %key] : memref<?x6x8x?xf32>
      %sum = arith.addf %s, %more : f32
      kvbuffer.yield %sum : f32"""
    mask = ""

    def __init__(self):
        self.tensor = RNG.standard_normal(
            (len(QUERIES), HEADS, 8, 200)).astype(np.float32)

    def of(self, b, i, j):
        part = self.tensor[b, :, :i.shape[0], :j.shape[1]]
        return part.astype(np.float64), True


class NarrowBias:
    """Rows of 398 bytes: lanes load elements, and ask for no more than that."""
    capture = f"memref<?x{HEADS}x8x?xbf16>", f'["batch", {HEADS}, 8, "most"]'
    score = """
      %narrow = memref.load %t_[%batch, %head, %row, %key] : memref<?x6x8x?xbf16>
      %more = arith.extf %narrow : bf16 to f32
      %sum = arith.addf %s, %more : f32
      kvbuffer.yield %sum : f32"""
    mask = ""

    def __init__(self):
        self.tensor = to_bf16(RNG.standard_normal((len(QUERIES), HEADS, 8, 199)))

    def of(self, b, i, j):
        part = self.tensor[b, :, :i.shape[0], :j.shape[1]]
        return from_bf16(part), True


class Documents:
    """Beside a soft cap, which `score` follows."""
    capture = "memref<?x?xi32>", '["batch", "most"]'
    visible = """
      %own = memref.load %t_[%batch, %position] : memref<?x?xi32>
      %doc = memref.load %t_[%batch, %key] : memref<?x?xi32>
      %same = arith.cmpi eq, %own, %doc : i32
      kvbuffer.yield %same : i1"""
    mask = "causal = true"
    softcap = 5.0

    def __init__(self):
        self.tensor = np.sort(RNG.integers(0, 3, (len(QUERIES), 200))
                              ).astype(np.int32)

    def of(self, b, i, j):
        doc = self.tensor[b]
        return 0, (j <= i) & (doc[i] == doc[j])


class Window:
    """A window by the mask, of whose keys a region hides every third."""
    capture = "memref<1xi32>", "[1]"
    visible = """
      %c0 = arith.constant 0 : index
      %step = memref.load %t_[%c0] : memref<1xi32>
      %by = arith.index_cast %step : i32 to index
      %rest = arith.remui %key, %by : index
      %shown = arith.cmpi ne, %rest, %c0 : index
      kvbuffer.yield %shown : i1"""
    mask = "left = 20, right = 0"
    left = 20

    def __init__(self):
        self.tensor = np.array([3], np.int32)

    def of(self, b, i, j):
        return 0, (j <= i) & (j >= i - 20) & (j % 3 != 0)


def random_tree(nodes):
    """The ancestors of each node and itself; parents come before children."""
    above = []
    for n in range(nodes):
        parent = RNG.integers(-1, n) if n else -1
        above.append((above[parent] if parent >= 0 else []) + [n])
    return above


class TreeBits:
    """Bit n of a token's word: it sees token n of the new ones."""
    example = "tree-bits.mlir"

    def __init__(self):
        self.trees = [random_tree(n) for n in QUERIES]
        self.tensor = np.zeros((len(QUERIES), 8), np.int32)
        for b, tree in enumerate(self.trees):
            for n, above in enumerate(tree):
                self.tensor[b, n] = sum(1 << a for a in above)

    def of(self, b, i, j):
        seen = np.ones((i.shape[0], j.shape[1]), bool)
        first = j.shape[1] - i.shape[0]
        for n, above in enumerate(self.trees[b]):
            seen[n, first:] = False
            seen[n, [first + a for a in above]] = True
        return 0, seen


class AnyBits(TreeBits):
    """No tree: any relation."""

    def __init__(self):
        self.tensor = RNG.integers(0, 256, (len(QUERIES), 8)).astype(np.int32)

    def of(self, b, i, j):
        rows, keys = i.shape[0], j.shape[1]
        bits = (self.tensor[b, :rows, None] >> np.arange(rows)) & 1
        return 0, np.concatenate(
            [np.ones((rows, keys - rows), bool), bits.astype(bool)], 1)


def source(case):
    if name := getattr(case, "example", ""):
        text = pathlib.Path(SOURCE, "examples", "scores", name).read_text()
        return text.replace("memref<?x4x64", f"memref<?x{HEADS}x{SIZE}")
    region = f"%batch: index, %head: index, %row: index, %position: index, " \
             f"%key: index, %t_: {case.capture[0]}):"
    regions = ""
    if score := getattr(case, "score", ""):
        regions += f"    score {{\n    ^bb0(%s: f32, {region}{score}\n    }}\n"
    if visible := getattr(case, "visible", ""):
        regions += f"    visible {{\n    ^bb0({region}{visible}\n    }}\n"
    attributes = ['kvbuffer.lengths = "all"']
    if case.mask:
        attributes.append(f"mask = #kvbuffer.mask<{case.mask}>")
    if cap := getattr(case, "softcap", 0):
        attributes.append(f"softcap = {cap} : f32")
    return f"""
!q = memref<?x{HEADS}x{SIZE}xbf16, strided<[?, ?, 1]>>
!kv = !kvbuffer.cache<paged, bf16, heads = {KV_HEADS}, head_size = {SIZE}, page_size = {PAGE}>
func.func @own(%q: !q, %k: !kv, %v: !kv, %out: !q, %offsets: memref<?xi32>,
    %t: {case.capture[0]} {{kvbuffer.name = "t", kvbuffer.shape = {case.capture[1]}}}) {{
  kvbuffer.attention q(%q) k(%k) v(%v) out(%out) offsets(%offsets) {{{", ".join(attributes)}}}
    : !q, !kv, !kv, !q, offsets memref<?xi32>
    captures(%t : {case.capture[0]})
{regions}  return
}}
"""


def run_case(kind, chip):
    case = kind()
    keys = [q + c for q, c in zip(QUERIES, CACHED)]
    offsets = np.concatenate([[0], np.cumsum(QUERIES)]).astype(np.int32)
    q = to_bf16(RNG.standard_normal((offsets[-1], HEADS, SIZE)))
    pages = [-(-n // PAGE) for n in keys]
    most = max(pages)
    places = RNG.permutation(sum(pages) + 3)
    cache = np.full((2, len(places), PAGE, KV_HEADS, SIZE), 0x7FC0, np.uint16)
    table = np.full((len(keys), most), 1 << 30, np.int32)
    rows = []
    for b, n in enumerate(keys):
        own = to_bf16(RNG.standard_normal((2, n, KV_HEADS, SIZE)))
        rows.append(own)
        for p in range(pages[b]):
            place, places = places[0], places[1:]
            part = own[:, p * PAGE:(p + 1) * PAGE]
            # No row of a sequence without a query reads anything, and no row
            # reads a page that lies before its window.
            left = getattr(case, "left", None)
            if not QUERIES[b] or (left is not None and
                                  (p + 1) * PAGE <= n - QUERIES[b] - left):
                continue
            cache[:, place, :part.shape[1]] = part
            table[b, p] = place
    out = np.full(q.shape, 0x7FC0, np.uint16)  # NaN
    run = kvbuf.compile(source(case), target=chip, machine_code=False)
    lengths = np.array(keys, np.int32)
    run(q=q, k=cache[0], v=cache[1], o=out, q_offsets=offsets,
        **{"words" if hasattr(case, "example") else "t": case.tensor},
        k_table=table, v_table=table, k_lengths=lengths, v_lengths=lengths,
        seq_q=max(QUERIES))
    errors, usuals = [], []
    for b, n in enumerate(keys):
        if not QUERIES[b]:
            continue
        part = slice(offsets[b], offsets[b + 1])
        own, k, v = map(from_bf16, (q[part], *rows[b]))
        k, v = (np.repeat(x, GROUP, 1).transpose(1, 0, 2) for x in (k, v))
        i = np.arange(QUERIES[b])[:, None] + n - QUERIES[b]
        j = np.arange(n)[None]
        s = np.einsum("ihd,hjd->hij", own, k) / 8
        if cap := getattr(case, "softcap", 0):
            s = cap * np.tanh(s / cap)
        added, seen = case.of(b, i, j)
        exact, base = (x.transpose(1, 0, 2)
                       for x in attend(s + added, seen, v)[:2])
        ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
        errors.append((abs(from_bf16(out[part]) - exact), ulp))
        usuals.append(abs(base - exact))
    usual = np.concatenate([u.ravel() for u in usuals])
    error = np.concatenate([e.ravel() for e, _ in errors])
    ulp = np.concatenate([u.ravel() for _, u in errors])
    print(kind.__name__, chip, error.max(), usual.max(), error.mean(),
          usual.mean())
    if not ((error - ulp).max() <= 2 * usual.max() and
            error.mean() <= 1.15 * usual.mean() + 1e-6):
        sys.exit("the kernel computes something else")
    if "_of_few_rows" not in str(run.manifest):
        sys.exit("there is no kernel that splits keys")
    if run.remarks():
        sys.exit(f"another kernel runs: {run.remarks()}")


for chip in CHIPS:
    for kind in (Alibi, TreeBits, NarrowBias, Bias, Documents, Window, AnyBits):
        if chip == CHIPS[0] or kind in (Alibi, TreeBits, NarrowBias):
            run_case(kind, chip)
