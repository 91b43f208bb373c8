# Hand-written programs of examples/, on the emulator, against float64.
# RUN: %python %s %src sm_80
# RUN: %python %s %src sm_90
# RUN: %python %s %src sm_90a
# RUN: %python %s %src gfx942
# RUN: %python %s %src gfx950
"""Attention programs of the tile stage that no pass knows: their own score
functions, tensors and weights.

    attention.py SOURCE CHIP

Each program is one file for all chips: kvbuf-complete-program chooses what they
leave open. A result passes by the rule of
kvbuf-run: errors in units of those of the same mathematics with P and O rounded
to bfloat16.
"""

import pathlib
import re
import sys
import unittest

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import check, from_bf16, rounded, to_bf16

CHIP = sys.argv.pop()
SOURCE = pathlib.Path(sys.argv.pop())
RNG = np.random.default_rng()

def program(name):
    """The text of examples/NAME.mlir."""
    return (SOURCE / "examples" / f"{name}.mlir").read_text()


def scores(q, k):
    """[batch, heads, queries, keys]."""
    return np.einsum("bihd,bjhd->bhij", q, k)


def positions(q, k):
    """Queries' and keys' positions, to broadcast."""
    queries, keys = q.shape[1], k.shape[1]
    return (np.arange(queries)[:, None] + keys - queries, np.arange(keys)[None])


def apply(p, v, normalize, plain):
    """O, in float64; `plain`: with P and O rounded to bfloat16."""
    total = p.sum(-1, keepdims=True) if normalize else np.ones(p.shape[:-1] + (1,))
    o = np.einsum("bhij,bjhd->bhid", rounded(p) if plain else p, v)
    o = np.divide(o, total, out=np.zeros_like(o), where=total > 0)
    o = o.transpose(0, 2, 1, 3)
    return rounded(o) if plain else o


def softmax_weights(s):
    top = s.max(-1, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        return np.where(s > -np.inf, np.exp(s - np.where(
            np.isfinite(top), top, 0)), 0)


class Programs(unittest.TestCase):
    def check(self, out, p, v, normalize):
        out = from_bf16(out)
        exact, base = (apply(p, v, normalize, plain) for plain in (False, True))
        check(self, out, exact, base)

    def tensors(self, batch, queries, keys):
        return [to_bf16(RNG.standard_normal((batch, n, 4, 64)))
                for n in (queries, keys, keys)]

    SHAPES = (2, 70, 150), (1, 64, 64), (1, 100, 37), (1, 1, 129)

    def test_sigmoid(self):
        self.check_sigmoid(program("sigmoid"), self.SHAPES)

    #: Instructions of other rows for each product, which 64 x 64 tiles of two warps
    #: are made of: the weights of one change places to be operands of the other.
    EACH = {"gfx942": ("[32, 32, 8]", "[16, 16, 16]"),
            "gfx950": ("[16, 16, 32]", "[32, 32, 16]")}

    def of_each(self, name):
        text = program(name)
        old = "#kvbuffer.schedule<BM = 64, BN = 64>"
        self.assertIn(old, text)
        scores, values = (f"#kvbuffer.instruction<mfma, {x}>" for x in self.EACH[CHIP])
        return text.replace(old, (
            "#kvbuffer.schedule<BM = 64, BN = 64, BK = 32, warps = 2, "
            f"scores = {scores}, values = {values}, swap_a_b = true>"))

    @unittest.skipIf(CHIP not in EACH, "one shape of 16-bit products")
    def test_instruction_of_each_product(self):
        self.check_sigmoid(self.of_each("sigmoid"), self.SHAPES[1:3])
        # Maxima and sums are of the rows of both products' results.
        with self.assertRaisesRegex(kvbuf.Error, (
                "has values for each row of fragments whose rows lie in different "
                "lanes, .* expected one layout of rows")):
            kvbuf.compile(self.of_each("bias"), target=CHIP, machine_code=False)

    def check_sigmoid(self, text, shapes):
        run = kvbuf.compile(text, target=CHIP, machine_code=False)
        for shape in shapes:
            q, k, v = self.tensors(*shape)
            out = np.full(q.shape, 0x7FC0, np.uint16)  # NaN
            run(q=q, k=k, v=v, out=out)
            q, k, v = map(from_bf16, (q, k, v))
            i, j = positions(q, k)
            p = np.where(j <= i, 1 / (1 + np.exp(2 - scores(q, k) / 8)), 0)
            self.check(out, p, v, normalize=False)

    def test_bias(self):
        self.check_bias(kvbuf.compile(program("bias"), target=CHIP, machine_code=False))

    #: Caches that the program makes of memrefs: type, data, other arguments.
    MADE = {
        "dense": ("", "?x?x4x64", '"batch", "seq_k"', ""),
        "ragged": ("", "?x4x64", '"total_k"', "offsets"),
        "continuous": ("", "?x?x4x64", '"slots", "room"', "table, lengths"),
        "paged": (", page_size = 64", "?x64x4x64", '"blocks", 64', "table, lengths"),
    }

    def made(self, kind):
        """The sigmoid program, with caches made of memrefs; both share what says
        where rows are."""
        more, shape, sizes, indices = self.MADE[kind]
        strides = ", ".join(["?"] * shape.count("x")) + ", 1"
        data = f"memref<{shape}xbf16, strided<[{strides}]>>"
        of = {"offsets": ("memref<?xi32>", '#kvbuffer.size<sum(batch, 1)>'),
              "lengths": ("memref<?xi32>", '"batch"'),
              "table": (("memref<?x?xi32>", '"batch", "pages"') if kind == "paged"
                        else ("memref<?xi32>", '"batch"'))}
        names = indices.split(", ") if indices else []
        arguments = [f'%{x}_data: {data} {{kvbuffer.name = "{x}", kvbuffer.shape = '
                     f"[{sizes}, 4, 64]}}" for x in "kv"]
        arguments += [f'%{n}: {of[n][0]} {{kvbuffer.name = "{n}", kvbuffer.shape = '
                      f"[{of[n][1]}]}}" for n in names]
        made = "".join(
            f"    %{x} = kvbuffer.make_cache %{x}_data"
            + (f" indices({', '.join('%' + n for n in names)} : "
               f"{', '.join(of[n][0] for n in names)})" if names else "")
            + f" : {data} -> !kv\n" for x in "kv")
        text = program("sigmoid")
        for old, new in (
                ('%k: !kv {kvbuffer.name = "k"}, %v: !kv {kvbuffer.name = "v"}',
                 ", ".join(arguments)),
                ("    %c0 = arith", made + "    %c0 = arith"),
                ("!kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>",
                 f"!kvbuffer.cache<{kind}, bf16, heads = 4, head_size = 64{more}>")):
            self.assertIn(old, text)
            text = text.replace(old, new, 1)
        return kvbuf.compile(text, target=CHIP, machine_code=False)

    def test_made_caches(self):
        """K and V are every second block of one tensor, the rest of which is
        NaN."""
        for kind in self.MADE:
            run = self.made(kind)
            for batch, queries, keys in (2, 70, 150), (1, 5, 37):
                q, k, v = self.tensors(batch, queries, keys)
                out = np.full(q.shape, 0x7FC0, np.uint16)
                more = {}
                if kind == "ragged":
                    both = np.stack([k.reshape(-1, 4, 64), v.reshape(-1, 4, 64)])
                    more["offsets"] = np.arange(batch + 1, dtype=np.int32) * keys
                elif kind == "dense":
                    both = np.stack([k, v])
                else:
                    run_of = 64 if kind == "paged" else 192
                    per = -(-keys // run_of)
                    blocks = RNG.permutation(batch * per + 2)[:batch * per]
                    both = np.full((2, batch * per + 2, run_of, 4, 64), 0x7FC0,
                                   np.uint16)
                    for i, block in enumerate(blocks):
                        b, at = divmod(i, per)
                        for one, x in zip(both, (k, v)):
                            part = x[b, at * run_of:(at + 1) * run_of]
                            one[block, :len(part)] = part
                    table = blocks.astype(np.int32).reshape(batch, per)
                    more["table"] = table if kind == "paged" else table[:, 0]
                    more["lengths"] = np.full(batch, keys - queries, np.int32)
                apart = np.full(both.shape[:2] + (2,) + both.shape[2:], 0x7FC0,
                                np.uint16)
                apart[:, :, 1] = both
                run(q=q, k=apart[0, :, 1], v=apart[1, :, 1], out=out, **more)
                q, k, v = map(from_bf16, (q, k, v))
                i, j = positions(q, k)
                p = np.where(j <= i, 1 / (1 + np.exp(2 - scores(q, k) / 8)), 0)
                self.check(out, p, v, normalize=False)

    @unittest.skipIf(CHIP[:3] == "gfx", "these chips have a pipeline of their own")
    def test_captured_in_the_loop(self):
        """The region uses what the loop computes for it alone, and the products
        of two tiles overlap: both copies of the region need it."""
        text = program("bias")
        for old, new in (
                ("BN = 64>\n#qbuf",
                 "BN = 64, overlap_products = true>\n#qbuf"),
                ("      %t = kvbuffer.map",
                 "      %more = arith.addi %i, %c1 : index\n"
                 "      %t = kvbuffer.map"),
                ("%distance = arith.subi %j, %position",
                 "%up = arith.addi %j, %more : index\n"
                 "        %down = arith.subi %up, %more : index\n"
                 "        %distance = arith.subi %down, %position")):
            self.assertIn(old, text)
            text = text.replace(old, new, 1)
        self.check_bias(kvbuf.compile(text, target=CHIP, machine_code=False))

    def check_bias(self, run):
        for batch, queries, keys in self.SHAPES:
            q, k, v = self.tensors(batch, queries, keys)
            bias = RNG.standard_normal((4, queries, keys)).astype(np.float32)
            slopes = np.float32([0.5, 0.25, 0.125, 0.0625])
            doc = np.sort(RNG.integers(0, 3, (batch, keys)), -1).astype(np.int32)
            out = np.full(q.shape, 0x7FC0, np.uint16)
            run(q=q, k=k, v=v, bias=bias, slopes=slopes, doc=doc, out=out)
            q, k, v = map(from_bf16, (q, k, v))
            i, j = positions(q, k)
            own = np.take(doc, np.clip(i[:, 0], 0, keys - 1), axis=1)
            seen = (j <= i) & (own[:, :, None] == doc[:, None, :])
            s = (scores(q, k) / 8 + slopes[:, None, None] * (j - i)
                 + bias.astype(np.float64))
            s = np.where(seen[:, None], s, -np.inf)
            self.check(out, softmax_weights(s), v, normalize=True)


if __name__ == "__main__":
    unittest.main()
