# One text with rings on every chip that has them, on the emulator, against float64.
# RUN: %python %s sm_90
# RUN: %python %s sm_90a
# RUN: %python %s sm_100a
# RUN: %python %s gfx942
# RUN: %python %s gfx950
# Where no engine completes barriers, waves poll counters.
# RUN: kvbuf-compile %S/Inputs/two_rings.mlir --target=gfx942 --emit=target -o - | FileCheck %s
# CHECK: atomicrmw uinc_wrap {{.*}} syncscope("workgroup") monotonic
# CHECK: rocdl.s.sleep
"""K and V through a ring each: Inputs/two_rings.mlir, and faults in it.

    two-rings.py CHIP

On AMD's chips a slot's barriers are counters. What they are made of is taken out of
the target stage piece by piece: the emulator finds a race, or that nothing goes on.
"""

import pathlib
import re
import subprocess
import sys
import unittest

import kvbuf
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parent / "Inputs"))
from numbers16 import check, from_bf16, softmax, to_bf16

CHIP = sys.argv.pop()
TEXT = (HERE / "Inputs" / "two_rings.mlir").read_text()
POLLS = unittest.skipIf(CHIP[:3] != "gfx", "an engine completes this chip's barriers")


class TwoRings(unittest.TestCase):
    def run_text(self, text, shapes):
        run = kvbuf.compile(text, target=CHIP, machine_code=False)
        rng = np.random.default_rng()
        for batch, queries, keys in shapes:
            q, k, v = (to_bf16(rng.standard_normal((batch, n, 4, 64)))
                       for n in (queries, keys, keys))
            out = np.full(q.shape, 0x7FC0, np.uint16)  # NaN
            run(q=q, k=k, v=v, out=out)
            exact, base, _ = softmax(*map(from_bf16, (q, k, v)), causal=True)
            check(self, from_bf16(out), exact, base)

    def test_right(self):
        self.run_text(TEXT, ((2, 40, 150), (1, 32, 64), (1, 3, 1), (1, 1, 200)))

    def fails(self, text, message):
        with self.assertRaisesRegex(kvbuf.KernelFault, message):
            self.run_text(text, ((1, 32, 200),))

    def without(self, line):
        self.assertEqual(len(re.findall(line, TEXT)), 1, line)
        return re.sub(line, "", TEXT)

    @POLLS
    def test_kept_slots(self):
        self.fails(self.without(r" *kvbuffer.ring_release %k_ring\[%i\].*\n"),
                   "waits for shared memory to change, and nothing can go on")

    @POLLS
    def test_early_release(self):
        """A slot that is given back while it is read."""
        release = "          kvbuffer.ring_release %v_ring[%i] : !kvbuffer.ring<#vbuf>\n"
        read = "          %vf = kvbuffer.fragment_load"
        self.assertIn(release, TEXT)
        self.fails(TEXT.replace(release, "").replace(read, release + read),
                   "shared-memory race")

    @POLLS
    def test_counters(self):
        target = subprocess.run(
            ["kvbuf-compile", "-", f"--target={CHIP}", "--emit=target"], input=TEXT,
            capture_output=True, text=True, check=True).stdout
        for order in "release", "acquire":
            fence = rf' *llvm.fence syncscope\("workgroup"\) {order}.*\n'
            self.assertRegex(target, fence)
            self.fails(re.sub(fence, "", target), "shared-memory race")


if __name__ == "__main__":
    unittest.main()
