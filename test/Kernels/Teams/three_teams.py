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

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import check_latent

CHIP = sys.argv.pop()
SOURCE = pathlib.Path(sys.argv.pop())


class ThreeTeams(unittest.TestCase):
    def test_example(self):
        text = (SOURCE / "examples" / "three_teams.mlir").read_text()
        run = kvbuf.compile(text, target=CHIP, machine_code=False)
        check_latent(self, run, ((2, 40, 150), (1, 32, 64), (1, 3, 1), (1, 1, 300)))


if __name__ == "__main__":
    unittest.main()
