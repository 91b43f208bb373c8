# examples/three_teams.mlir on the emulator, against float64.
# RUN: %python %s %src sm_80
# RUN: %python %s %src sm_90a
# RUN: %python %s %src gfx942
# RUN: %python %s %src gfx950
"""Three teams that a queue joins: scores and weights, and each half of O.

    three_teams.py SOURCE CHIP
"""

import pathlib
import sys
import unittest

import numpy as np

import kvbuf

sys.path += [str(pathlib.Path(__file__).parent / "Inputs"),
             str(pathlib.Path(__file__).parents[1] / "Inputs")]
from chips import port
from numbers16 import check, from_bf16, softmax, to_bf16

CHIP = sys.argv.pop()
SOURCE = pathlib.Path(sys.argv.pop())
RNG = np.random.default_rng()


class ThreeTeams(unittest.TestCase):
    def test_example(self):
        text = (SOURCE / "examples" / "three_teams.mlir").read_text()
        run = kvbuf.compile(port(text, CHIP), target=CHIP)
        for batch, queries, keys in (2, 40, 150), (1, 32, 64), (1, 3, 1), (1, 1, 300):
            q = to_bf16(RNG.standard_normal((batch, queries, 4, 192)))
            k = to_bf16(RNG.standard_normal((batch, keys, 1, 192)))
            out = np.full((batch, queries, 8, 64), 0x7FC0, np.uint16)  # NaN
            run(q=q, k=k, out=out)
            out = from_bf16(out).reshape(batch, queries, 4, 128)
            q, k = from_bf16(q), from_bf16(k)
            exact, base, _ = softmax(q, k, k[..., :128], 192 ** -0.5, causal=True)
            check(self, out, exact, base)


if __name__ == "__main__":
    unittest.main()
