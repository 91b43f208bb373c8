# Attention by teams that share nothing, on the emulator, against float64.
# RUN: %python %s sm_80
# RUN: %python %s sm_90a
# RUN: %python %s gfx942
# RUN: %python %s gfx950
"""Each team walks over keys by itself, through slots and waits of its own.

    attention.py CHIP

Programs, written at the tile stage: teams that have rows of their own; teams that
have keys of their own, whose results the caller joins, or one warp through LDS. A
result passes by the rule of kvbuf-run.
"""

import pathlib
import sys
import unittest

import numpy as np

import kvbuf

sys.path += [str(pathlib.Path(__file__).parent / "Inputs"),
             str(pathlib.Path(__file__).parents[1] / "Inputs")]
from chips import Chip
from numbers16 import check, from_bf16, softmax, to_bf16
from walks import joined_keys, own_keys, own_rows

CHIP = Chip(sys.argv.pop())
RNG = np.random.default_rng()


class Teams(unittest.TestCase):
    SHAPES = (1, 70, 150), (2, 1, 200)

    def tensors(self, batch, queries, keys):
        return [to_bf16(RNG.standard_normal((batch, n, heads, 64)))
                for n, heads in ((queries, 4), (keys, 2), (keys, 2))]

    def run_program(self, text, tensors, heads):
        q, k, v = tensors
        run = kvbuf.compile(text, target=CHIP.name, machine_code=False)
        out = np.full(q.shape[:2] + (heads, 64), 0x7FC0, np.uint16)  # NaN
        lse = np.full((q.shape[0], heads, q.shape[1]), np.nan, np.float32)
        run(q=q, k=k, v=v, out=out, lse=lse)
        return from_bf16(out), lse.astype(np.float64)

    def check_rows(self, warps, copies):
        self.check_whole(own_rows(CHIP, warps, copies))

    def check_whole(self, text):
        for shape in self.SHAPES:
            tensors = self.tensors(*shape)
            out, lse = self.run_program(text, tensors, 4)
            q, k, v = map(from_bf16, tensors)
            exact, base, exact_lse = softmax(q, k, v)
            check(self, out, exact, base)
            self.assertLessEqual(abs(lse - exact_lse).max(), 1e-4)

    def test_keys_joined_in_lds(self):
        self.check_whole(joined_keys(CHIP, 2 if CHIP.lanes == 64 else 4))

    def check_keys(self, warps, copies, shelf=False):
        text = own_keys(CHIP, warps, copies, shelf)
        for shape in self.SHAPES:
            tensors = self.tensors(*shape)
            out, lse = self.run_program(text, tensors, 4 * copies)
            q, k, v = map(from_bf16, tensors)
            for i in range(copies):
                mine = np.arange(k.shape[1]) // 32 % copies == i
                exact, base, exact_lse = softmax(q, k[:, mine], v[:, mine])
                check(self, out[:, :, i::copies], exact, base)
                its = lse[:, i::copies]
                if mine.any():
                    self.assertLessEqual(abs(its - exact_lse).max(), 1e-4)
                else:
                    self.assertTrue((its == -np.inf).all())

    #: As many teams as LDS holds slots for.
    MOST = 2 if CHIP.name == "gfx942" else 4

    def test_rows_of_one_warp(self):
        self.check_rows(1, self.MOST)

    def test_keys_of_one_warp(self):
        self.check_keys(1, self.MOST)

    def test_keys_by_a_shelf(self):
        self.check_keys(1, 2, shelf=True)

    @unittest.skipIf(CHIP.lanes == 64, "these chips have one barrier a block")
    def test_keys_of_two_warps(self):
        self.check_keys(2, 2)


if __name__ == "__main__":
    unittest.main()
