# Distances of rows and keys that are clamped: far from a warp's rows all keys of a tile have
# one of them, on the emulator.
# RUN: %python %s
# Where halves take turns such tiles have loops of their own; the bounds of these are wrong.
# RUN: %python %s gfx950
# RUN: %python %s gfx942
"""A relative bias by the clamped distance of the key and the row, either from the other,
with a causal mask and without, against float64. Who takes tiles that a warp's rows are near
for such that they are far from is caught.
"""

import pathlib
import re
import subprocess
import sys
import unittest

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import attend, check, from_bf16, to_bf16

CHIP = sys.argv.pop() if sys.argv[1:] else "sm_90a"
RNG = np.random.default_rng()
SIZE, QUERIES, KEYS = 64, 320, 640
if CHIP != "sm_90a":
    # The rows of a block, more, and enough keys for tiles at both ends.
    QUERIES, KEYS = 300, 1132
# Whole tiles, of 192 rows and 128 keys, or of keys that divide 64, lie so that they are not
# far by a single distance, from either side: bounds that are wrong by one are seen.
LEAST, MOST = -66, 2


def source(causal=False, turned=False, least=LEAST, first=LEAST):
    """Distances from `least` on, of a tensor of those from `first` on."""
    qo = f"memref<?x?x1x{SIZE}xbf16, strided<[?, ?, ?, 1]>>"
    kv = f"!kvbuffer.cache<dense, bf16, heads = 1, head_size = {SIZE}>"
    mask = " {mask = #kvbuffer.mask<causal = true>}" if causal else ""
    of, operands = f"memref<{MOST - first + 1}xf32>", ("%position, %key" if turned else
                                                       "%key, %position")
    return f"""func.func @f(%q: {qo}, %k: {kv}, %v: {kv}, %o: {qo}, %t: {of} {{kvbuffer.name = "t"}}) {{
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o){mask} : {qo}, {kv}, {kv}, {qo}
    captures(%t : {of})
    score {{
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %position: index, %key: index, %t_: {of}):
      %least = arith.constant {least} : index
      %first = arith.constant {first} : index
      %most = arith.constant {MOST} : index
      %distance = arith.subi {operands} : index
      %above = arith.maxsi %distance, %least : index
      %clamped = arith.minsi %above, %most : index
      %number = arith.subi %clamped, %first : index
      %b = memref.load %t_[%number] : {of}
      %r = arith.addf %s, %b : f32
      kvbuffer.yield %r : f32
    }}
  return
}}
"""


def compiled(text):
    return kvbuf.compile(text, target=CHIP, machine_code=False)


class Distances(unittest.TestCase):
    def compare(self, run, causal=False, turned=False, least=LEAST, first=LEAST):
        q, k, v = (to_bf16(RNG.standard_normal((1, n, 1, SIZE)))
                   for n in (QUERIES, KEYS, KEYS))
        # The last distances weigh little beside their neighbours.
        bias = RNG.standard_normal(MOST - first + 1).astype(np.float32) / 4
        bias[1 + least - first::2] += 4
        out = np.full(q.shape, 0x7FC0, np.uint16)
        run(q=q, k=k, v=v, o=out, t=bias)
        i, j = np.arange(QUERIES)[:, None] + KEYS - QUERIES, np.arange(KEYS)[None]
        distance = i - j if turned else j - i
        seen = j <= i if causal else np.ones((QUERIES, KEYS), bool)
        q, k, v = map(from_bf16, (q, k, v))
        s = np.einsum("bihd,bjhd->bhij", q, k) / SIZE ** 0.5
        s = s + bias[distance.clip(least, MOST) - first]
        exact, base = (x.transpose(0, 2, 1, 3) for x in attend(
            s, seen[None, None], v.transpose(0, 2, 1, 3))[:2])
        check(self, from_bf16(out), exact, base)

    def test_distances(self):
        for given in {}, {"causal": True}, {"turned": True}:
            with self.subTest(**given):
                self.compare(compiled(source(**given)), **given)

    def test_tables(self):
        # A wave has a lane for each number, of which products begin with those that they need.
        for given in {}, {"causal": True}, {"turned": True}:
            given = {**given, "least": -40, "first": -40}
            with self.subTest(**given):
                self.compare(compiled(source(**given)), **given)
        if CHIP == "sm_90a":
            return
        thread = subprocess.run(
            ["kvbuf-compile", "-", f"--target={CHIP}", "--emit=thread", "--no-alternatives"],
            input=source(**given), text=True, check=True, stdout=subprocess.PIPE).stdout
        self.compare(compiled(thread), **given)
        # All lanes have the first number.
        wrong, count = re.subn(r"arith\.minsi (%\S+), %c42_i32 : i32",
                               r"arith.xori \1, \1 : i32", thread)
        self.assertGreaterEqual(count, 1)
        with self.assertRaises(AssertionError):
            self.compare(compiled(wrong), **given)

    def test_clamped_beyond(self):
        # No two keys are so far apart, and the tensor has no element for it.
        given = {"least": -(1 << 20), "first": 1 - KEYS}
        self.compare(compiled(source(**given)), **given)

    @unittest.skipIf(CHIP == "sm_90a", "warps find out how far they are")
    def test_far_ends(self):
        tile = subprocess.run(
            ["kvbuf-compile", "-", f"--target={CHIP}", "--emit=tile", "--no-alternatives"],
            input=source(), text=True, check=True, stdout=subprocess.PIPE).stdout
        self.compare(compiled(tile))
        # Where tiles at the left end begin.
        wrong, count = re.subn(f"arith\\.constant {LEAST + 1} : index",
                               "arith.constant 90 : index", tile)
        self.assertEqual(count, 1)
        with self.assertRaises(AssertionError):
            self.compare(compiled(wrong))

    @unittest.skipIf(CHIP == "sm_90a", "scores read for themselves")
    def test_words_of_lanes(self):
        # A word of 32 keys beside 32 rows, and of 48 beside 16, of which the last has 16.
        shape = "mma_shape=16x16x32" if CHIP == "gfx950" else "mma_shape=16x16x16"
        for schedule in "", f"{shape},BM=128":
            for given in {}, {"turned": True}:
                with self.subTest(schedule=schedule, **given):
                    thread = subprocess.run(
                        ["kvbuf-compile", "-", f"--target={CHIP}", "--emit=thread",
                         "--no-alternatives"] + ["--schedule=" + schedule] * bool(schedule),
                        input=source(**given), text=True, check=True,
                        stdout=subprocess.PIPE).stdout
                    self.compare(compiled(thread), **given)
                    # One of the lanes that words come from is the next one.
                    takes = [*re.finditer(r"(%\w+) = arith\.addi (%\w+), %c1_i32\S* overflow<nsw> : i32\n"
                                          r"(?=.*\n?.*gpu\.shuffle +idx %\w+, \1,)", thread)]
                    self.assertGreaterEqual(len(takes), 2)
                    wrong = thread
                    for take in takes:
                        wrong = wrong.replace(take[0], f"{take[1]} = arith.addi {take[2]}, "
                                              f"{take[2]} : i32\n")
                    with self.assertRaises(AssertionError):
                        self.compare(compiled(wrong), **given)

    @unittest.skipIf(CHIP != "sm_90a", "tiles have loops by how far they are")
    def test_fault(self):
        text = subprocess.run(
            ["kvbuf-compile", "-", f"--target={CHIP}", "--emit=thread", "--no-alternatives"],
            input=source(), text=True, check=True, stdout=subprocess.PIPE).stdout
        self.compare(compiled(text))
        # Whether a warp's rows are near.
        wrong, count = re.subn(r"(%\w+) = kvbuffer\.lane_any %\w+",
                               r"\1 = arith.constant false", text)
        self.assertGreaterEqual(count, 1)
        with self.assertRaises(AssertionError):
            self.compare(compiled(wrong))


if __name__ == "__main__":
    unittest.main()
