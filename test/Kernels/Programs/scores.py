# Functions of scores and visibility, as problems bring them, on the emulator.
# RUN: %python %s %src sm_80 bias relative
# RUN: %python %s %src sm_90a documents alibi halves bias positions wide words
# RUN: %python %s %src gfx950 alibi documents earlier relative bias
# RUN: %python %s %src gfx942 tree bias documents positions alibi
"""Runs the examples of examples/scores against float64.

    scores.py SOURCE CHIP EXAMPLE...

A result passes by the rule of kvbuf-run: errors in units of those of the same
mathematics with P and O rounded to bfloat16.
"""

import pathlib
import sys

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import attend, from_bf16, to_bf16

SOURCE, CHIP, *NAMES = sys.argv[1:]
RNG = np.random.default_rng()
HEADS = 4


class Bias:
    # Rows that begin at multiples of 16 bytes, whose tiles come through LDS where a team
    # moves them, of 8 bytes, and others.
    sizes = (2, 70, 148), (1, 200, 260), (2, 70, 150), (1, 40, 131), (1, 1, 129)
    if CHIP.startswith("gfx"):
        # Enough tiles for what runs ahead of them.
        sizes += (1, 270, 580),

    def __init__(self, batch, queries, keys, i, j):
        self.bias = RNG.standard_normal((HEADS, queries, keys)).astype(np.float32)
        self.tensors = {"bias": self.bias}
        self.added, self.seen = self.bias.astype(np.float64), True


class Positions(Bias):
    """The bias by the position, which lanes read for themselves: pairs, and words."""
    example, sizes = "bias", ((1, 150, 150), (1, 131, 131))

    @staticmethod
    def edit(text):
        return text.replace("%head, %row, %key]", "%head, %position, %key]")


class Halves:
    """The bias in bf16, whose tiles come through LDS where a team moves them."""
    example = "bias"
    # Rows that begin at multiples of 16 bytes, and others.
    sizes = (2, 70, 152), (1, 1, 129)

    @staticmethod
    def edit(text):
        return text.replace("xf32>", "xbf16>").replace(
            "      %t =", "      %wide = arith.extf %b : bf16 to f32\n      %t ="
        ).replace("%s, %b", "%s, %wide")

    def __init__(self, batch, queries, keys, i, j):
        bias = to_bf16(RNG.standard_normal((HEADS, queries, keys)))
        self.tensors = {"bias": bias}
        self.added, self.seen = from_bf16(bias), True


class Wide(Halves):
    """The same of heads that leave its tiles room for fewer keys."""
    size = 512
    sizes = (1, 70, 152),

    @staticmethod
    def edit(text):
        return Halves.edit(text).replace("x64xbf16", "x512xbf16").replace(
            "head_size = 64", "head_size = 512")


class Words(Bias):
    """The bias in f32 of heads that keep a part of Q in registers beside its slot."""
    example, size, sizes = "bias", 256, ((1, 200, 148),)

    @staticmethod
    def edit(text):
        return text.replace("x64xbf16", "x256xbf16").replace(
            "head_size = 64", "head_size = 256")


class Alibi:
    def __init__(self, batch, queries, keys, i, j):
        slopes = RNG.random(HEADS).astype(np.float32)
        self.tensors = {"slopes": slopes}
        self.added = slopes[:, None, None].astype(np.float64) * (j - i)
        self.seen = j <= i


class Relative:
    # Whole tiles far from the diagonal on both sides, where keys come in teams, too.
    sizes = (1, 400, 400), (1, 1, 129)

    def __init__(self, batch, queries, keys, i, j):
        table = RNG.standard_normal((HEADS, 31)).astype(np.float32)
        self.tensors = {"table": table}
        self.added = table[:, np.clip(j - i, -15, 15) + 15].astype(np.float64)
        self.seen = True


class Documents:
    # Rows of the tensor that begin at odd words, and at even ones.
    sizes = (2, 70, 151), (1, 1, 129)

    def __init__(self, batch, queries, keys, i, j):
        doc = np.sort(RNG.integers(0, 3, (batch, keys)), -1).astype(np.int32)
        self.tensors = {"doc": doc}
        own = np.take(doc, np.clip(i[:, 0], 0, keys - 1), axis=1)
        self.added = 0
        self.seen = ((j <= i) & (own[:, :, None] == doc[:, None, :]))[:, None]


class Earlier(Documents):
    """The keys of earlier documents alone, without a mask: the first ones of most rows come
    many tiles behind those that are looked at for maxima in any case. All scores are near
    -200, where no weight is left unless it is relative to a maximum."""
    example, sizes, first = "documents", ((1, 150, 500),), (16.0, -100.0)

    @staticmethod
    def edit(text):
        return text.replace(" {mask = #kvbuffer.mask<causal = true>}", "").replace(
            "cmpi eq, %own, %other", "cmpi sgt, %own, %other")

    def __init__(self, batch, queries, keys, i, j):
        doc = np.sort(RNG.integers(0, 4, (batch, keys)), -1).astype(np.int32)
        self.tensors, self.added = {"doc": doc}, 0
        self.seen = (doc[:, i[:, 0], None] > doc[:, None, :])[:, None]


class Tree:
    def __init__(self, batch, queries, keys, i, j):
        # Parents come before their children.
        parent = np.array([[RNG.integers(-1, n) if n else -1
                            for n in range(queries)] for _ in range(batch)])
        last = np.zeros((batch, queries), np.int32)
        self.seen = np.ones((batch, 1, queries, keys), bool)
        for b in range(batch):
            # Numbers in depth-first order.
            children = [[] for _ in range(queries + 1)]
            for n in range(queries):
                children[parent[b, n]].append(n)
            order, ancestors = [], []

            def visit(n, above):
                number = len(order)
                order.append(n)
                ancestors.append(above + [number])
                for child in children[n]:
                    visit(child, above + [number])
                last[b, number] = len(order) - 1
            for root in children[-1]:
                visit(root, [])
            for n, above in enumerate(ancestors):
                self.seen[b, 0, n, keys - queries:] = False
                self.seen[b, 0, n, [keys - queries + a for a in above]] = True
        self.tensors, self.added = {"last": last}, 0


class Bits:
    def __init__(self, batch, queries, keys, i, j):
        seen = RNG.random((batch, queries, keys)) < 0.5
        seen[:, 0] = False
        padded = np.zeros((batch, queries, -(-keys // 32) * 32), bool)
        padded[:, :, :keys] = seen
        words = np.packbits(padded, axis=-1, bitorder="little").view(np.int32)
        self.tensors, self.added, self.seen = {"words": words}, 0, seen[:, None]


CASES = {c.__name__.lower(): c
         for c in (Bias, Positions, Halves, Wide, Words, Alibi, Relative, Documents, Earlier,
                   Tree, Bits)}


def main():
    for name in NAMES:
        cases = CASES[name]
        text = pathlib.Path(SOURCE, "examples", "scores",
                            f"{getattr(cases, 'example', name)}.mlir").read_text()
        if hasattr(cases, "edit"):
            text = cases.edit(text)
        run = kvbuf.compile(text, target=CHIP, machine_code=False)
        size = getattr(cases, "size", 64)
        for batch, queries, keys in getattr(cases, "sizes",
                                            ((2, 70, 150), (1, 1, 129))):
            q, k, v = (to_bf16(RNG.standard_normal((batch, n, HEADS, size)))
                       for n in (queries, keys, keys))
            if hasattr(cases, "first"):
                q[..., 0], k[..., 0] = (to_bf16(np.float64(x)) for x in cases.first)
            i = np.arange(queries)[:, None] + keys - queries
            j = np.arange(keys)[None]
            case = cases(batch, queries, keys, i, j)
            out = np.full(q.shape, 0x7FC0, np.uint16)  # NaN
            run(q=q, k=k, v=v, o=out, **case.tensors)
            q, k, v, out = map(from_bf16, (q, k, v, out))
            s = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(size) + case.added
            exact, base = (x.transpose(0, 2, 1, 3) for x in
                           attend(s, case.seen, v.transpose(0, 2, 1, 3))[:2])
            ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
            error, usual = abs(out - exact), abs(base - exact)
            good = (not np.isnan(out).any() and
                    (error - ulp).max() <= 2 * usual.max() and
                    error.mean() <= 1.15 * usual.mean() + 1e-6)
            print(name, CHIP, (batch, queries, keys), error.max(), usual.max())
            if not good:
                sys.exit("the kernel computes something else")
            # Lanes read two words of a row at a time. (A GPU's report counts no conflicts.)
            report = run.report()
            if (name != "bias" or CHIP != "sm_90a" or keys % 4 or
                    "kernels" not in report):
                continue
            conflicts = [line["bank_conflicts"] for kernel in report["kernels"]
                         for line in kernel["memory"]
                         if line["op"] == "llvm.load" and "bank_conflicts" in line]
            if not conflicts or sum(conflicts):
                sys.exit(f"{conflicts} bank conflicts; expected none")


main()
