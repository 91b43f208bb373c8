# Queries of every magnitude over quantized keys, whose products are of f16.
# RUN: %python %s sm_80
# RUN: %python %s sm_90a
# RUN: %if ld.lld %{ %python %s gfx942 %}
# RUN: %if ld.lld %{ %python %s gfx950 %}
"""Heads that share keys have queries from 2^-116 to 2^120, on the emulator.

    wide-queries.py CHIP

Queries of bf16 become f16 by a power of two that all rows of a warp share
(`kvbuffer.fragment_fit`, and `kvbuffer.staged_fit` where they lie in LDS). Scales of K
bring the scores of one head to magnitudes about 1; those of heads with smaller queries
are nearer to 0, and right too. A head with an infinity or what is no number in its
queries changes no other head.
"""

import dataclasses
import pathlib
import sys
import unittest

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import attend, check, from_bf16, to_bf16
from numbers8 import float8

CHIP = sys.argv.pop()
RNG = np.random.default_rng()
KV_HEADS, GROUP, SIZE = 2, 4, 64
HEADS = KV_HEADS * GROUP
KIND = "f8E4M3FNUZ" if CHIP == "gfx942" else "f8E4M3FN"


@dataclasses.dataclass
class Case:
    """`power`: of two, of the largest head's queries; the heads of a group lie
    `apart` powers of two from each other. `wrong`: what one head of each group
    has among its queries. `page`: tokens of a page, if there are pages."""
    power: int = 0
    apart: int = 0
    wrong: float = 0
    granularity: str = "tensor"
    rows: int = 1
    keys: int = 150
    size: int = SIZE
    page: int = 0

    def cache(self, k, v):
        """What a kernel is given of K and V."""
        if not self.page:
            return {"k": k, "v": v}
        # From the last page to the first.
        pages = -(-self.keys // self.page)
        given = {}
        for name, x in ("k", k), ("v", v):
            room = np.full((1, pages * self.page, *x.shape[2:]), 0x7F, np.uint8)
            room[:, :self.keys] = x
            given |= {name: room.reshape(pages, self.page, *x.shape[2:])[::-1].copy(),
                      f"{name}_table": np.arange(pages, dtype=np.int32)[None, ::-1].copy(),
                      f"{name}_lengths": np.full(1, self.keys, np.int32)}
        return given

    def run(self, test):
        shape = 1, self.rows, HEADS, self.size
        below = np.arange(HEADS) % GROUP * self.apart
        q = RNG.standard_normal(shape) * np.ldexp(1.0, self.power - below)[:, None]
        if self.wrong:
            q[..., 1::GROUP, RNG.integers(self.size)] = self.wrong
        q = to_bf16(q)
        values = float8(KIND)
        finite = np.flatnonzero(abs(values) <= 8).astype(np.uint8)
        k, v = (RNG.choice(finite, (1, self.keys, KV_HEADS, self.size))
                for _ in "kv")
        # Elements of K have magnitudes about 4.
        unit = np.float32(np.ldexp(0.25, -self.power))
        scales = {"tensor": np.full(1, unit),
                  "head": np.full(KV_HEADS, unit),
                  "token": np.full((1, self.keys, KV_HEADS, 1), unit)}[self.granularity]
        out = np.full(shape, 0x7FC0, np.uint16)
        problem = kvbuf.Problem(
            heads=HEADS, kv_heads=KV_HEADS, head_size=self.size, causal=False,
            seq_q=self.rows if self.rows <= 8 else 0,
            k_dtype="e4m3fnuz" if "FNUZ" in KIND else "e4m3",
            v_dtype="e4m3fnuz" if "FNUZ" in KIND else "e4m3",
            k_scale=self.granularity,
            **({"cache": "paged", "page_size": self.page, "lengths": "all"}
               if self.page else {}))
        kernel = kvbuf.compile(problem.source(), target=CHIP, machine_code=False)
        kernel(q=q, o=out, k_scales=scales, **self.cache(k, v))
        exact_k, exact_v = (np.repeat(values[x][0], GROUP, 1).transpose(1, 0, 2)
                            for x in (k, v))
        with np.errstate(invalid="ignore"):
            s = np.einsum("ihd,hjd->hij", from_bf16(q[0]),
                          exact_k * float(unit)) / self.size ** 0.5
            exact, base, _ = attend(s, True, exact_v)
        got = from_bf16(out[0]).transpose(1, 0, 2)
        for head in range(HEADS):
            with test.subTest(head=head, case=self):
                if self.wrong and head % GROUP == 1:
                    test.assertTrue(np.isnan(got[head]).all())
                else:
                    check(test, got[head], exact[head], base[head])


CASES = [
    Case(),
    Case(power=120, apart=1), Case(power=100, apart=9),
    # Not smaller: GPUs take subnormal elements for 0.
    Case(power=-100, apart=2), Case(power=-30, apart=20),
    # The power of two that they would take is more than f32 has.
    Case(power=-116),
    Case(wrong=np.inf), Case(wrong=np.nan, power=60, apart=3),
    Case(power=40, apart=7, granularity="head", rows=3),
    Case(power=-40, apart=7, granularity="token"),
    # Kernels of many rows, whose warps have rows of one head.
    Case(rows=33, power=90, apart=11), Case(rows=20, wrong=-np.inf),
    Case(rows=20, power=-110, granularity="token"),
    # Tiles of 32 rows, whose queries lie in LDS and are fit there.
    Case(rows=8, size=128, page=16, power=70, apart=9, granularity="head"),
    Case(rows=8, size=128, page=16, wrong=np.inf), Case(rows=8, size=128, page=16, power=-116),
]


class WideQueries(unittest.TestCase):
    pass


for number, case in enumerate(CASES):
    setattr(WideQueries, f"test_{number}", lambda self, case=case: case.run(self))

if __name__ == "__main__":
    unittest.main()
