# What is read by the key alone and only compared, as documents' numbers: a warp finds out
# for a tile's keys together whether all have the same, on the emulator.
# RUN: %python %s
"""Documents whose numbers nobody says to rise, with a causal mask and without, against
float64: tiles within a document, tiles of several, rows of several beside keys of one,
numbers in any order; of 32 and of 64 bits. Who takes tiles of several documents for such
of one is caught. Both by warp groups and where halves of a block take turns.
"""

import itertools
import pathlib
import re
import subprocess
import sys
import unittest

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import attend, check, from_bf16, to_bf16

RNG = np.random.default_rng()
SIZE, QUERIES, KEYS = 64, 200, 520
#: Where halves take turns: whether anything of a tile is hidden, and then whether its keys
#: have different numbers.
QUESTION_OF_ROWS = (r"(%\w+) = kvbuffer\.lane_any %\w+\n"
                    r"(\s*%\w+:\d+ = scf\.if %\w+ -> \((?:f32, )+f32\) \{\n"
                    r"\s*%\w+ = kvbuffer\.lane_any )")
QUESTION = (r"(scf\.if %\w+ -> \((?:f32, )+f32\) \{\n\s*)(%\w+) = kvbuffer\.lane_any %\w+")
#: How lanes compare, and what is seen then.
COMPARISONS = {"eq": np.equal, "ne": np.not_equal}


def source(causal, predicate="eq", bits=32, size=SIZE, halved=False):
    qo = f"memref<?x?x1x{size}xbf16, strided<[?, ?, ?, 1]>>"
    kv = f"!kvbuffer.cache<dense, bf16, heads = 1, head_size = {size}>"
    mask = " {mask = #kvbuffer.mask<causal = true>}" if causal else ""
    of = f"memref<?x?xi{bits}>"
    arguments = f"%batch: index, %head: index, %row: index, %position: index, %key: index, %t_: {of}"
    score = f"""
    score {{
    ^bb0(%score: f32, {arguments}):
      %half = arith.constant 0.5 : f32
      %none = arith.constant 0 : i{bits}
      %number = memref.load %t_[%batch, %key] : {of}
      %is = arith.cmpi eq, %number, %none : i{bits}
      %less = arith.mulf %score, %half : f32
      %result = arith.select %is, %less, %score : f32
      kvbuffer.yield %result : f32
    }}""" if halved else ""
    return f"""func.func @f(%q: {qo}, %k: {kv}, %v: {kv}, %o: {qo},
    %t: {of} {{kvbuffer.name = "t", kvbuffer.shape = ["batch", "seq_k"]}}) {{
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o){mask} : {qo}, {kv}, {kv}, {qo}
    captures(%t : {of}){score}
    visible {{
    ^bb0({arguments}):
      %own = memref.load %t_[%batch, %position] : {of}
      %other = memref.load %t_[%batch, %key] : {of}
      %seen = arith.cmpi {predicate}, %own, %other : i{bits}
      kvbuffer.yield %seen : i1
    }}
  return
}}
"""


def documents(*ends):
    """The number of each key's document; nobody's rise with the keys."""
    return -np.searchsorted(ends, np.arange(KEYS), "right")


NUMBERS = {
    "one": documents(),
    # The first document has whole tiles of keys, and ends with one of them; rows of a warp
    # are of two documents, keys of some tiles of one.
    "tiles": documents(256, 384, 440),
    "cut": documents(100, 330, 475, 476),
    "any": RNG.integers(0, 3, KEYS),
}


def compiled(text, target="sm_90a"):
    return kvbuf.compile(text, target=target, machine_code=False)


def stage(text, target):
    return subprocess.run(
        ["kvbuf-compile", "-", f"--target={target}", "--emit=thread", "--no-alternatives"],
        input=text, text=True, check=True, stdout=subprocess.PIPE).stdout


class ComparedWords(unittest.TestCase):
    def compare(self, run, numbers, causal=False, predicate="eq", bits=32, size=SIZE,
                halved=False):
        q, k, v = (to_bf16(RNG.standard_normal((1, n, 1, size)))
                   for n in (QUERIES, KEYS, KEYS))
        out = np.full(q.shape, 0x7FC0, np.uint16)
        run(q=q, k=k, v=v, o=out, t=numbers[None].astype(f"int{bits}"))
        i, j = np.arange(QUERIES)[:, None] + KEYS - QUERIES, np.arange(KEYS)[None]
        seen = COMPARISONS[predicate](numbers[i], numbers[j])
        if causal:
            seen = seen & (j <= i)
        q, k, v = map(from_bf16, (q, k, v))
        s = np.einsum("bihd,bjhd->bhij", q, k) / size ** 0.5
        if halved:
            s = np.where(numbers == 0, s / 2, s)
        exact, base = (x.transpose(0, 2, 1, 3) for x in attend(
            s, seen[None, None], v.transpose(0, 2, 1, 3))[:2])
        check(self, from_bf16(out), exact, base)

    def test_numbers(self):
        for causal in False, True:
            run = compiled(source(causal))
            for name, numbers in NUMBERS.items():
                with self.subTest(name, causal=causal):
                    self.compare(run, numbers, causal)

    def test_others(self):
        for given in {"predicate": "ne"}, {"bits": 64}:
            run = compiled(source(False, **given))
            for name in "tiles", "cut":
                with self.subTest(name, **given):
                    self.compare(run, NUMBERS[name], **given)

    def test_fault(self):
        text = stage(source(False), "sm_90a")
        # Whether keys differ, and whether anything changes.
        votes = r"(%\w+) = kvbuffer\.lane_any %\w+\n(\s*%\w+ = kvbuffer\.lane_any )"
        wrong, count = re.subn(votes, r"\1 = arith.constant false\n\2", text)
        self.assertGreaterEqual(count, 3)
        for good, run in (True, compiled(text)), (False, compiled(wrong)):
            with self.subTest(good=good):
                self.compare(run, NUMBERS["tiles" if good else "one"])
                if good:
                    self.compare(run, NUMBERS["cut"])
                    continue
                with self.assertRaises(AssertionError):
                    self.compare(run, NUMBERS["cut"])

    def test_turns(self):
        """Halves of a block that take turns: tiles of which a wave sees all stay."""
        for target, given in itertools.product(
                ("gfx942", "gfx950"),
                ({"size": 64}, {"size": 128}, {"size": 192}, {"predicate": "ne"}, {"bits": 64})):
            # Tiles have 32 keys or 64, where what is read is a word.
            text = stage(source(True, **given), target)
            self.assertGreaterEqual(len(re.findall(QUESTION, text)), 2)
            run = compiled(text, target)
            for name in ("any", "cut", "tiles") if "size" in given else ("cut",):
                with self.subTest(target, name=name, **given):
                    self.compare(run, NUMBERS[name], True, **given)

    def test_scores_of_words(self):
        """Scores that stay follow from what is compared, too, of keys of several numbers."""
        given = {"predicate": "ne", "halved": True}
        for target in "sm_90a", "gfx942", "gfx950":
            with self.subTest(target):
                run = compiled(source(True, **given), target)
                self.compare(run, NUMBERS["any"], True, **given)

    def test_fault_in_turns(self):
        text = stage(source(False), "gfx950")
        # Keys count as those of the first one's document; rows as seeing all.
        for wrong, fails in ((re.sub(QUESTION, r"\1\2 = arith.constant false", text), "cut"),
                             (re.sub(QUESTION_OF_ROWS, r"\1 = arith.constant false\n\2", text),
                              "tiles")):
            self.assertNotEqual(wrong, text)
            run = compiled(wrong, "gfx950")
            self.compare(run, NUMBERS["one"])
            with self.assertRaises(AssertionError):
                self.compare(run, NUMBERS[fails])


if __name__ == "__main__":
    unittest.main()
