# Infinite values and what is no number: where keys count, and where none do.
# RUN: %python %s sm_80
# RUN: %python %s sm_90a
# RUN: %if ld.lld %{ %python %s gfx942 %}
# RUN: %if ld.lld %{ %python %s gfx950 %}
"""Kernels of few rows and of many over caches of every kind, on the emulator.

    infinite-values.py CHIP

Some elements of V are infinite, at keys that all rows see: the first of them, the
last, some between. The columns that they are in are infinite in the output; of all
others the output is that of float64. What no row sees (slots of the cache that no
token goes to, rows past a sequence's end and in front of its window) holds
infinities and what is no number, in K and in V, and changes nothing.
"""

import dataclasses
import pathlib
import sys
import unittest

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import attend, from_bf16, to_bf16
from numbers8 import float8

CHIP = sys.argv.pop()
RNG = np.random.default_rng()
KV_HEADS, GROUP = 2, 3
HEADS = KV_HEADS * GROUP
FNUZ = "FNUZ" if CHIP == "gfx942" else ""
UNUSED = np.array([0x7F80, 0xFF80, 0x7FC0], np.uint16)
#: Entries of tables that no cache has.
WILD = 0x3FFFFFFF


@dataclasses.dataclass
class Case:
    """Sequences of `keys` keys and `rows` query rows each."""
    cache: str
    keys: tuple
    rows: tuple
    page: int = 0
    size: int = 64
    ragged: bool = False
    causal: bool = False
    window: int = -1
    kind: str = ""
    scale: str = ""
    dtype: str = "bf16"

    def bits(self, x):
        """Q and the output as the kernel takes them, and their values."""
        return to_bf16(x) if self.dtype == "bf16" else x.astype(np.float16)

    def values(self, bits):
        return (from_bf16(bits) if self.dtype == "bf16"
                else bits.astype(np.float64))

    def first(self, b):
        """The first key that a row sees."""
        if self.window < 0:
            return 0
        return max(0, self.keys[b] - self.rows[b] - self.window)

    def common(self, b):
        """Keys that all rows see: from, and up to."""
        low = max(0, self.keys[b] - 1 - self.window) if self.window >= 0 else 0
        last = self.keys[b] - self.rows[b] + 1 if self.causal else self.keys[b]
        return low, last

    def problem(self):
        kind = self.kind + FNUZ.lower() if self.kind else ""
        return kvbuf.Problem(
            heads=HEADS, kv_heads=KV_HEADS, head_size=self.size, cache=self.cache,
            page_size=self.page, causal=self.causal, window_left=self.window,
            dtype=self.dtype,
            query="ragged" if self.ragged else "dense", lse=True,
            seq_q=0 if self.ragged or max(self.rows) > 8 else self.rows[0],
            k_dtype=kind, v_dtype=kind, k_scale=self.scale, v_scale=self.scale)

    def place(self):
        """The cache's blocks and rows, its table, and where each key lies."""
        batch, most = len(self.keys), max(self.keys)
        if self.cache == "dense":
            self.shape, self.table = (batch, most), None
            self.at = [(np.full(n, b), np.arange(n)) for b, n in enumerate(self.keys)]
        elif self.cache == "ragged":
            starts = np.cumsum([0, *self.keys])
            self.shape, self.table, self.starts = (1, starts[-1]), None, starts
            self.at = [(np.zeros(n, int), starts[b] + np.arange(n))
                       for b, n in enumerate(self.keys)]
        else:
            page = self.page or most + 3
            counts = [-(-n // page) for n in self.keys]
            ids = list(RNG.permutation(sum(counts) + 2))
            self.shape = sum(counts) + 2, page
            self.table = np.full((batch, max(counts) + 1), WILD, np.int32)
            self.at = []
            for b, n in enumerate(self.keys):
                own = np.array([ids.pop() for _ in range(counts[b])], int)
                j = np.arange(n)
                self.at.append((own[j // page], j % page))
                gone = self.first(b) // page
                self.table[b, gone:counts[b]] = own[gone:]

    def fill(self):
        """The caches, and the rows of K and V in float64."""
        shape = *self.shape, KV_HEADS, self.size
        values = float8(dict(e4m3="f8E4M3" + (FNUZ or "FN"),
                             e5m2="f8E5M2" + FNUZ)[self.kind]) if self.kind else None
        self.data, self.scales, self.exact, self.signs = {}, {}, {}, []
        if self.kind:
            wrong = np.flatnonzero(~np.isfinite(values)).astype(np.uint8)
            finite = np.flatnonzero(np.isfinite(values) & (abs(values) <= 32))
        for n in "kv":
            if self.kind:
                data = RNG.choice(wrong, shape)
            else:
                data = RNG.choice(UNUSED, shape)
            scales = (RNG.choice(np.float32([np.inf, np.nan]), shape[:3])
                      if self.scale == "token" else None)
            of_head = (np.float32(RNG.uniform(0.02, 0.05, KV_HEADS))
                       if self.scale == "head" else np.ones(KV_HEADS, np.float32))
            if self.scale == "head":
                self.scales[n] = of_head
            self.exact[n] = []
            for b, keys in enumerate(self.keys):
                rows = slice(self.first(b), keys)
                own = (keys, KV_HEADS, self.size)
                at = tuple(x[rows] for x in self.at[b])
                bits = (RNG.choice(finite, own).astype(np.uint8) if self.kind
                        else to_bf16(RNG.standard_normal(own)))
                factor = np.repeat(of_head[None], keys, 0)
                if scales is not None:
                    factor = np.float32(RNG.uniform(0.02, 0.05, (keys, KV_HEADS)))
                signs = np.zeros((KV_HEADS, self.size))
                low, last = self.common(b)
                if n == "v" and last > low:
                    self.plant(bits, signs, low, last, values)
                if n == "v":
                    self.signs.append(signs)
                data[at] = bits[rows]
                if scales is not None:
                    scales[at] = factor[rows]
                x = values[bits] if self.kind else from_bf16(bits)
                self.exact[n].append(x * factor[..., None].astype(np.float64))
            self.data[n] = data
            if scales is not None:
                self.scales[n] = scales[..., None]

    def plant(self, bits, signs, low, last, values):
        """Infinite elements of V at keys from `low` on, before `last`."""
        if self.kind and not np.isinf(values).any():
            return
        columns = RNG.permutation(self.size)[:6]
        for i, column in enumerate(columns):
            key = [last - 1, low, RNG.integers(low, last)][i // 2]
            head = RNG.integers(KV_HEADS)
            sign = -1.0 if i % 2 else 1.0
            signs[head, column] = sign
            bits[key, head, column] = (
                np.flatnonzero(values == sign * np.inf)[0] if self.kind
                else 0x7F80 if sign > 0 else 0xFF80)

    def run(self, test):
        self.place()
        self.fill()
        offsets = np.cumsum([0, *self.rows]).astype(np.int32)
        shape = ((offsets[-1],) if self.ragged else (len(self.keys), self.rows[0]))
        q = self.bits(RNG.standard_normal((*shape, HEADS, self.size)))
        out = self.bits(np.full(q.shape, np.nan))
        lse = np.full((HEADS, offsets[-1]) if self.ragged else
                      (len(self.keys), HEADS, self.rows[0]), np.nan, np.float32)
        given = dict(q=q, o=out, lse=lse)
        for n in "kv":
            given[n] = self.data[n][0] if self.cache == "ragged" else self.data[n]
            if self.cache == "ragged":
                given[n + "_offsets"] = self.starts.astype(np.int32)
            if self.table is not None:
                given[n + "_table"] = (self.table if self.page
                                       else self.table[:, 0].copy())
                given[n + "_lengths"] = np.int32(self.keys)
            if n in self.scales:
                given[n + "_scales"] = self.scales[n]
        sizes = {}
        if self.ragged:
            given["q_offsets"] = offsets
            sizes["seq_q"] = max(self.rows)
        kernel = kvbuf.compile(self.problem().source(), target=CHIP, machine_code=False)
        kernel(**given, **sizes)
        for b, keys in enumerate(self.keys):
            rows = self.rows[b]
            part = (slice(offsets[b], offsets[b + 1]) if self.ragged
                    else (b, slice(None)))
            k, v = (np.repeat(self.exact[n][b], GROUP, 1).transpose(1, 0, 2)
                    for n in "kv")
            s = np.einsum("ihd,hjd->hij", self.values(q[part]), k)
            s /= self.size ** 0.5
            i, j = np.arange(rows)[:, None] + keys - rows, np.arange(keys)
            seen = np.ones((rows, keys), bool)
            if self.causal:
                seen &= j <= i
            if self.window >= 0:
                seen &= j >= i - self.window
            signs = np.repeat(self.signs[b], GROUP, 0)[None]
            exact, base = (x.transpose(1, 0, 2) for x in
                           attend(s, seen, np.where(np.isfinite(v), v, 0))[:2])
            got = self.values(out[part])
            with test.subTest(sequence=b, case=self):
                infinite = np.broadcast_to(signs != 0, got.shape)
                np.testing.assert_array_equal(
                    got[infinite], np.broadcast_to(signs * np.inf, got.shape)[infinite])
                rest = ~infinite
                test.assertTrue(np.isfinite(got[rest]).all(), got)
                ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
                error = (abs(got - exact) - ulp)[rest]
                test.assertLessEqual(error.max(initial=-1),
                                     2 * abs(base - exact).max(initial=0))
        test.assertTrue(np.isfinite(lse).all())


#: Keys are split into three pieces and fewer.
FEW = dict(keys=(300, 5, 161), rows=(1, 1, 1))
CASES = [
    Case("dense", keys=(300,), rows=(1,)),
    Case("dense", keys=(1300,), rows=(4,), causal=True),
    Case("ragged", **FEW),
    Case("continuous", **FEW, size=80),
    Case("paged", **FEW, page=16),
    # Eleven pieces, which two blocks join and then one.
    Case("paged", keys=(1300, 33), rows=(1, 1), page=16),
    Case("paged", **FEW, page=3, window=100, causal=True),
    Case("paged", **FEW, page=64, size=128),
    Case("paged", keys=(300, 70), rows=(3, 5), page=16, ragged=True, causal=True),
    Case("paged", **FEW, page=16, kind="e5m2", scale="token"),
    # Weights of two numbers, of which neither is 0.
    Case("paged", **FEW, page=16, kind="e5m2", scale="token", dtype="f16"),
    Case("dense", keys=(300,), rows=(2,), kind="e5m2", scale="head"),
    Case("dense", keys=(150,), rows=(40,), causal=True),
    Case("ragged", keys=(70, 140), rows=(70, 20), ragged=True),
    Case("paged", keys=(70, 140), rows=(30, 70), page=16, ragged=True,
         causal=True, window=40),
    Case("paged", keys=(70, 140), rows=(40, 40), page=64),
    Case("paged", keys=(70, 140), rows=(40, 40), page=3, kind="e5m2", scale="token"),
    Case("paged", keys=(70, 140), rows=(40, 40), page=16, kind="e5m2", scale="token",
         dtype="f16"),
]


class InfiniteValues(unittest.TestCase):
    pass


for number, case in enumerate(CASES):
    setattr(InfiniteValues, f"test_{number}_{case.cache}",
            lambda self, case=case: case.run(self))

if __name__ == "__main__":
    unittest.main()
