# Lists of visible blocks that a kernel makes of a visible region, on the emulator.
# RUN: %python %s sm_80
# RUN: %python %s sm_90a
# RUN: %if ld.lld %{ %python %s gfx942 %}
# RUN: %if ld.lld %{ %python %s gfx1250 lists %}
"""`kvbuf-list-visible-blocks`: its lists against numpy's, of documents, prefixes, windows
and tables, by sequence and by head, of lengths that cut blocks; then attention by these
lists beside attention without any. The checks see faults that are planted in the pass's
text: a block that is left out, one partly visible that is called whole, and rows and keys
behind the last ones that count.

    visible-lists.py CHIP [lists]

With `lists` the attention is left out.
"""

import re
import subprocess
import sys
import unittest

import numpy as np

import kvbuf

sys.path.append(__file__.rsplit("/", 2)[0] + "/Inputs")
from numbers16 import from_bf16, to_bf16

CHIP, *ONLY_LISTS = sys.argv[1:]
del sys.argv[1:]
RNG = np.random.default_rng(5)
BATCH, HEADS, SIZE = 2, 2, 32
NAMES = ["kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"]

#: What captures are, what the region says, which mask is beside it, and whether the region
#: knows the sequence and the head.
REGIONS = {
    "documents": (
        ["memref<?x?xi32>"], ["batch", "seq_k"], """
      %c0 = arith.constant 0 : index
      %place = arith.maxsi %at, %c0 : index
      %own = memref.load %c[%batch, %place] : memref<?x?xi32>
      %its = memref.load %c[%batch, %key] : memref<?x?xi32>
      %t = arith.cmpi eq, %own, %its : i32""", "causal = true", True, False),
    "prefix": (
        ["memref<?x2xi32>"], ["batch", 2], """
      %n = memref.load %c[%batch, %head] : memref<?x2xi32>
      %i = arith.index_cast %key : index to i32
      %in = arith.cmpi slt, %i, %n : i32
      %before = arith.cmpi sle, %key, %at : index
      %t = arith.ori %in, %before : i1""", "", True, True),
    "window": (
        ["memref<f32>"], [], """
      %far = arith.subi %at, %key : index
      %c100 = arith.constant 100 : index
      %t = arith.cmpi sle, %far, %c100 : index""", "left = 170, right = 40", False, False),
    "scalar": (
        ["memref<i32>"], [], """
      %n = memref.load %c[] : memref<i32>
      %i = arith.index_cast %key : index to i32
      %t = arith.cmpi sge, %i, %n : i32""", "", False, False),
    "table": (
        ["memref<2x?x?xi32>"], [2, "seq_q", "seq_k"], """
      %c0 = arith.constant 0 : i32
      %n = memref.load %c[%head, %row, %key] : memref<2x?x?xi32>
      %t = arith.cmpi ne, %n, %c0 : i32""", "", False, True),
    # What is behind a branch is read there alone.
    "branch": (
        ["memref<?x?xi32>"], ["batch", "seq_k"], """
      %c0 = arith.constant 0 : index
      %exists = arith.cmpi sge, %at, %c0 : index
      %t = scf.if %exists -> i1 {
        %own = memref.load %c[%batch, %at] : memref<?x?xi32>
        %its = memref.load %c[%batch, %key] : memref<?x?xi32>
        %less = arith.cmpi sge, %own, %its : i32
        scf.yield %less : i1
      } else {
        %no = arith.constant false
        scf.yield %no : i1
      }""", "", True, False),
}


def source(kind):
    (capture,), shape, body, mask, _, _ = REGIONS[kind]
    shape = ", ".join(f'"{x}"' if isinstance(x, str) else str(x) for x in shape)
    shape = f", kvbuffer.shape = [{shape}]" if shape else ""
    return f"""
!qo = memref<?x?x{HEADS}x{SIZE}xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = {HEADS}, head_size = {SIZE}>
func.func @f(%q: !qo, %k: !kv, %v: !kv, %other: memref<?xf32> {{kvbuffer.name = "other"}},
             %c: {capture} {{kvbuffer.name = "c"{shape}}}, %o: !qo) {{
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {{mask = #kvbuffer.mask<{mask}>}}
    : !qo, !kv, !kv, !qo captures(%other, %c : memref<?xf32>, {capture})
    score {{
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index,
         %other_: memref<?xf32>, %c_: {capture}):
      %slope = memref.load %other_[%head] : memref<?xf32>
      %u = arith.mulf %s, %slope : f32
      kvbuffer.yield %u : f32
    }}
    visible {{
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index,
         %other_: memref<?xf32>, %c_: {capture}):{body.replace("%c[", "%c_[")}
      kvbuffer.yield %t : i1
    }}
  return
}}
"""


def problem(kind, rows, keys):
    """What is captured, and which keys are seen, [batch, heads, rows, keys]."""
    row, key = np.arange(rows)[:, None], np.arange(keys)
    at = row + keys - rows
    if kind == "documents":
        cuts = np.sort(RNG.integers(0, keys, (BATCH, 3)))
        c = np.stack([np.searchsorted(cut, key, side="right") for cut in cuts])
        seen = (c[:, np.maximum(at, 0)[:, 0], None] == c[:, None]) & (key <= at)
        seen = seen[:, None]
    elif kind == "branch":
        c = RNG.integers(0, 9, (BATCH, -(-keys // 80))).repeat(80, 1)[:, :keys]
        seen = (c[:, np.maximum(at, 0)[:, 0], None] >= c[:, None]) & (at >= 0)
        seen = seen[:, None]
    elif kind == "prefix":
        c = RNG.integers(0, keys, (BATCH, HEADS))
        seen = (key < c[:, :, None, None]) | (key <= at)
    elif kind == "window":
        c = np.zeros(1, np.float32)
        seen = (at - key <= 100) & (key <= at + 40)
    elif kind == "scalar":
        c = np.array([min(100, keys)])
        seen = np.broadcast_to(key >= c[0], (rows, keys))
    else:
        # Whole blocks, empty ones, and single elements that differ. The last keys count.
        grain = 96
        c = RNG.integers(0, 2, (HEADS, -(-rows // grain), -(-keys // grain)))
        c[:, :, -1] = 1
        c = c.repeat(grain, 1).repeat(grain, 2)[:, :rows, :keys]
        for at in np.argwhere(RNG.random(c.shape) < 2e-5):
            c[tuple(at)] ^= 1
        seen = c != 0
    seen = np.broadcast_to(seen, (BATCH, HEADS, rows, keys))
    return c if c.dtype == np.float32 else c.astype(np.int32), seen


def expected(kind, seen, tall, wide):
    """For each block of queries the blocks of keys partly and wholly seen."""
    *_, batch, head = REGIONS[kind]
    seen = seen[:None if batch else 1, :None if head else 1]
    rows, keys = seen.shape[2:]
    lists = {}
    for b, h, r in np.ndindex(*seen.shape[:2], -(-rows // tall)):
        partly, wholly = [], []
        for c in range(-(-keys // wide)):
            part = seen[b, h, r * tall:(r + 1) * tall, c * wide:(c + 1) * wide]
            if part.all() and (c + 1) * wide <= keys:
                wholly.append(c)
            elif part.any():
                partly.append(c)
        lists[b, h, r] = partly, wholly
    return lists


class VisibleLists(unittest.TestCase):
    kernels = {}

    def compiled(self, kind, tall, wide, fault=None, alone=True):
        """The kernel that makes lists alone, or the attention beside it, too."""
        key = kind, tall, wide, fault, alone
        if key not in self.kernels:
            text = subprocess.run(
                ["kvbuf-opt", "-", f"--kvbuf-list-visible-blocks=rows={tall} keys={wide}"],
                input=source(kind), text=True, check=True, capture_output=True).stdout
            if alone:
                text = re.sub(r"  func.func @f.*?\n  }\n", "", text, flags=re.S)
            if fault:
                text, count = re.subn(*fault, text)
                self.assertEqual(count, 1, fault)
            self.kernels[key] = kvbuf.compile(text, target=CHIP, machine_code=False)
        return self.kernels[key]

    def lists(self, kind, tall, wide, rows, keys, c, fault=None):
        """The lists' arrays, poisoned before."""
        *_, batch, head = REGIONS[kind]
        shape = [BATCH if batch else 1, HEADS if head else 1, -(-rows // tall)]
        most = -(-keys // wide)
        arrays = [np.full(shape + [most] * i, -2**31, np.int32) for i in (0, 1, 0, 1)]
        qk = {n: np.zeros((BATCH, x, HEADS, SIZE), np.uint16)
              for n, x in (("q", rows), ("k", keys))}
        more = {} if kind == "window" else {"c": c}
        self.compiled(kind, tall, wide, fault)(
            **qk, **more, **dict(zip(NAMES, arrays)))
        return arrays

    def named(self, arrays):
        """What the arrays say, as `expected` does; what is behind a list's end is not
        written."""
        lists = {}
        for at in np.ndindex(arrays[0].shape):
            ends = arrays[0][at], arrays[2][at]
            for end, which in zip(ends, arrays[1::2]):
                self.assertTrue((which[at][end:] == -2**31).all())
            lists[at] = tuple(list(which[at][:end])
                              for end, which in zip(ends, arrays[1::2]))
        return lists

    def test_lists(self):
        some = np.zeros(2, int)
        for kind in REGIONS:
            for tall, wide, rows, keys in ((64, 64, 140, 330), (64, 64, 64, 128),
                                           (192, 32, 200, 300), (32, 192, 45, 400),
                                           (64, 64, 90, 70)):
                with self.subTest(kind=kind, blocks=(tall, wide), rows=rows, keys=keys):
                    c, seen = problem(kind, rows, keys)
                    right = expected(kind, seen, tall, wide)
                    self.assertEqual(self.named(self.lists(
                        kind, tall, wide, rows, keys, c)), right)
                    some += [sum(len(x[i]) for x in right.values()) for i in (0, 1)]
        # Both kinds were there.
        self.assertTrue((some > 50).all(), some)

    def attend(self, kind, rows, keys, c, arrays, tensors):
        o = np.full((BATCH, rows, HEADS, SIZE), 0x7FC0, np.uint16)
        self.compiled(kind, 64, 64, alone=False)["f"](
            **tensors, c=c, other=np.array([1, 0.5], np.float32), o=o,
            **dict(zip(NAMES, arrays)))
        return from_bf16(o)

    @unittest.skipIf(ONLY_LISTS, "lists alone")
    def test_attention(self):
        """Attention by the lists is attention without; by lists that lack a block, or call
        a partly visible one whole, it is not."""
        rows, keys = 150, 290
        for kind in REGIONS:
            c, seen = problem(kind, rows, keys)
            tensors = {n: to_bf16(RNG.standard_normal((BATCH, x, HEADS, SIZE)))
                       for n, x in (("q", rows), ("k", keys), ("v", keys))}
            plain = np.full((BATCH, rows, HEADS, SIZE), 0x7FC0, np.uint16)
            kvbuf.compile(source(kind), target=CHIP, machine_code=False)(
                **tensors, c=c, other=np.array([1, 0.5], np.float32), o=plain)
            plain = from_bf16(plain)
            limit = 2.0 ** -7 * abs(plain).max()
            arrays = self.lists(kind, 64, 64, rows, keys, c)
            far = lambda lists: abs(self.attend(kind, rows, keys, c, lists, tensors)
                                    - plain).max()
            self.assertLess(far(arrays), limit, kind)
            # A block of which much is hidden, and much is not.
            at, i = next((at, i) for at in np.ndindex(arrays[0].shape)
                         for i, block in enumerate(arrays[1][at][:arrays[0][at]])
                         if 0.1 < seen[at[0], at[1], at[2] * 64:(at[2] + 1) * 64,
                                       block * 64:(block + 1) * 64].mean() < 0.9)
            dropped = [x.copy() for x in arrays]
            block = dropped[1][at][i]
            dropped[1][at][i:-1] = dropped[1][at][i + 1:]
            dropped[0][at] -= 1
            self.assertGreater(far(dropped), 4 * limit, kind)
            whole = [x.copy() for x in dropped]
            whole[3][at][whole[2][at]] = block
            whole[2][at] += 1
            self.assertGreater(far(whole), 4 * limit, kind)

    def test_planted(self):
        """Faults of the kernel: lists differ, or the emulator says what is wrong."""
        rows, keys = 70, 580
        for name, fault in FAULTS.items():
            found = []
            for kind in "documents", "table":
                c, seen = problem(kind, rows, keys)
                self.compiled(kind, 64, 64, fault)
                try:
                    lists = self.named(self.lists(kind, 64, 64, rows, keys, c, fault))
                except (AssertionError, kvbuf.Error):
                    lists = None
                found.append(lists != expected(kind, seen, 64, 64))
            self.assertTrue(any(found), name)


#: What is changed in the kernel's text, and to what.
FAULTS = {
    "a block that the last key cuts counts as whole":
        (r"(%\d+ = arith.ori )(%\d+#1), %\d+ : i1", r"\1\2, \2 : i1"),
    "what some threads hide does not count":
        (r"(%\d+ = )kvbuffer.lane_any %\d+\n(?!(.*\n)*.*lane_any)", r"\1arith.constant false\n"),
    "the first block of a round is left out":
        (r"scf.for (%\w+) = %c0\w* to %c8", r"scf.for \1 = %c1 to %c8"),
    "what is behind the last row counts":
        (r"arith.minsi (%\d+), %dim", r"arith.minsi \1, \1"),
    "nobody waits": (r"gpu.barrier\n", "\n"),
    "rounds share a slot": (r"arith.subi (%c16\w*), %\w+", r"arith.subi \1, \1"),
}

if __name__ == "__main__":
    unittest.main()
