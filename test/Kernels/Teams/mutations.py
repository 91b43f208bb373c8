# Programs of teams at the target stage, broken in one place at a time.
# RUN: %python %s %src %bin/kvbuf-compile %t sm_80
# RUN: %python %s %src %bin/kvbuf-compile %t gfx950
"""Taking out a wait or a barrier of a team or of a queue must be found, or be
harmless: the result is right. Two copies of a team in one buffer must be found.

    mutations.py SOURCE KVBUF_COMPILE SCRATCH CHIP
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

import numpy as np

import kvbuf

sys.path += [str(pathlib.Path(__file__).parent / "Inputs"),
             str(pathlib.Path(__file__).parents[1] / "Inputs")]
from chips import Chip
from numbers16 import from_bf16, softmax, to_bf16
from walks import own_keys

CHIP = sys.argv.pop()
SCRATCH = sys.argv.pop()
COMPILER = sys.argv.pop()
SOURCE = pathlib.Path(sys.argv.pop())
RNG = np.random.default_rng()
#: A meeting less of a block's one barrier makes one team come to each meeting
#: after it too early, with everything in order but the entries: there the numbers
#: tell, and not the emulator.
BY_NUMBERS = {"gfx950": "barrier"}.get(CHIP)

#: What is taken out.
MUTATIONS = {
    "sm_80": {
        "wait for copies": r"cp\.async\.wait\.group",
        "barrier of a team or queue": r"nvvm\.barrier (?!\s*$)",
        "arrival": r"nvvm\.barrier\.arrive",
    },
    "gfx950": {
        "wait": r"s\.waitcnt",
        "barrier": r"s\.barrier",
    },
}[CHIP]


def compiled(text, stage):
    """The text of a program, lowered to a stage."""
    return subprocess.run(
        [COMPILER, "-", f"--target={CHIP}", f"--emit={stage}"], input=text,
        check=True, capture_output=True, text=True).stdout


class Mutations(unittest.TestCase):
    def setUp(self):
        self.q = to_bf16(RNG.standard_normal((1, 9, 4, 192)))
        self.k = to_bf16(RNG.standard_normal((1, 120, 1, 192)))
        q, k = from_bf16(self.q), from_bf16(self.k)
        self.exact, _, _ = softmax(q, k, k[..., :128], 192 ** -0.5, causal=True)

    def run_text(self, text):
        """What the emulator says, and whether the result is right."""
        out = np.full((1, 9, 8, 64), 0x7FC0, np.uint16)
        try:
            kvbuf.compile(text, target=CHIP,
                          machine_code=False)(q=self.q, k=self.k, out=out)
        except kvbuf.Error as error:
            return str(error), False
        error = abs(from_bf16(out).reshape(self.exact.shape) - self.exact)
        return "", not np.isnan(error).any() and error.max() < 0.05

    def test_waits_and_barriers(self):
        text = (SOURCE / "examples" / "three_teams.mlir").read_text()
        target = compiled(text, "target")
        self.assertEqual(self.run_text(target), ("", True))
        lines = target.split("\n")
        found = {}
        for number, line in enumerate(lines):
            for what, pattern in MUTATIONS.items():
                if not re.search(pattern, line):
                    continue
                message, right = self.run_text(
                    "\n".join(lines[:number] + lines[number + 1:]))
                if os.environ.get("SHOW"):
                    print(what, number + 1, right, message[:150])
                told = bool(message) or (what == BY_NUMBERS and not right)
                found.setdefault(what, []).append(told)
                self.assertTrue(told or right, (what, number + 1, line))
        for what in MUTATIONS:
            self.assertTrue(any(found.get(what, [])), (what, found))

    def test_one_buffer_for_two_teams(self):
        """Without what tells the copies' buffers apart, they share one."""
        target = compiled(own_keys(Chip(CHIP), 1, 2), "target")
        # Three slots of 32 keys.
        bytes_of_ring = 3 * 32 * 64 * 2
        apart = f"llvm.mlir.constant({bytes_of_ring} : i32)"
        self.assertIn(apart, target)

        def message(text):
            q = to_bf16(RNG.standard_normal((1, 10, 4, 64)))
            k, v = (to_bf16(RNG.standard_normal((1, 200, 2, 64))) for _ in "kv")
            try:
                kvbuf.compile(text, target=CHIP, machine_code=False)(
                    q=q, k=k, v=v, out=np.zeros((1, 10, 8, 64), np.uint16),
                    lse=np.zeros((1, 8, 10), np.float32))
            except kvbuf.Error as error:
                return str(error)
            return ""
        self.assertEqual(message(target), "")
        self.assertRegex(
            message(target.replace(apart, "llvm.mlir.constant(0 : i32)")),
            "race|still owes")


if __name__ == "__main__":
    unittest.main()
