# Rings that teams put fragments into, on the emulator, against float64.
# RUN: %python %s
# Of what lanes have put into a ring, the matrix unit sees what they have fenced; where
# lanes read it, no fence is needed.
# RUN: kvbuf-compile %S/../../../examples/three_teams_rings.mlir --target=sm_90a --emit=ptx -o - | FileCheck %s
# CHECK: fence.proxy.async.shared::cta
# CHECK: wgmma.mma_async
# RUN: kvbuf-compile %S/../../../examples/three_teams_rings.mlir --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=WARPS
# WARPS-NOT: fence.proxy.async.shared::cta
# WARPS: mma.sync
"""Weights go through a ring (examples/three_teams_rings.mlir); a team turns V.

Each team is right for itself wherever it runs: faults in what they tell each other the
emulator finds.
"""

import pathlib
import sys
import unittest

import kvbuf

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE / "Inputs"), str(HERE.parent / "Inputs")]
from numbers16 import check_latent

TEXT = (HERE.parents[2] / "examples" / "three_teams_rings.mlir").read_text()


def changed(*changes, text=TEXT):
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


#: @left's values come turned: a team loads the rows of V's columns, and puts them into
#: slots of which a row is a column of V.
TURNED = changed(
    ("to [@scores, @left, @right] : !kvbuffer.buffer<#kbuf>",
     """to [@scores, @turn, @right] : !kvbuffer.buffer<#kbuf>
    %t_slots = kvbuffer.alloc : !kvbuffer.buffer<#pbuf>
    %turned = kvbuffer.ring %t_slots from @turn to [@left] : !kvbuffer.buffer<#pbuf>"""),
    ("""          %staged = kvbuffer.ring_wait %ring[%i] : !kvbuffer.ring<#kbuf>
          %r, %m1, %l1""",
     """          %staged = kvbuffer.ring_wait %turned[%i] : !kvbuffer.ring<#pbuf>
          %r, %m1, %l1"""),
    ("%staged[0, 0] contracted(rows) : !kvbuffer.staged<#kbuf>",
     "%staged[0, 0] contracted(cols) : !kvbuffer.staged<#pbuf>"),
    ("%p, %v, %a1 : !p, !vb, !s", "%p, %v, %a1 {transpose_b} : !p, !vb, !s"),
    ("""          kvbuffer.ring_release %weights[%i] : !kvbuffer.ring<#pbuf>
          kvbuffer.ring_release %ring[%i] : !kvbuffer.ring<#kbuf>
""", """          kvbuffer.ring_release %weights[%i] : !kvbuffer.ring<#pbuf>
          kvbuffer.ring_release %turned[%i] : !kvbuffer.ring<#pbuf>
"""),
    ("      kvbuffer.team @load warps(4) {\n",
     """      kvbuffer.team @turn warps(4) {
        scf.for %i = %c0 to %tiles step %c1 {
          %staged = kvbuffer.ring_wait %ring[%i] : !kvbuffer.ring<#kbuf>
          %rows_of_v = kvbuffer.fragment_load %staged[0, 0] contracted(cols)
            : !kvbuffer.staged<#kbuf> -> !p
          kvbuffer.ring_release %ring[%i] : !kvbuffer.ring<#kbuf>
          kvbuffer.ring_put %rows_of_v into %turned[%i] {transpose} : !p, !kvbuffer.ring<#pbuf>
        }
      }
      kvbuffer.team @load warps(4) {
"""))


class Puts(unittest.TestCase):
    def check(self, text, shapes, target="sm_90a"):
        check_latent(self, kvbuf.compile(text, target=target,
                                         machine_code=False), shapes)

    def test_weights(self):
        self.check(TEXT, ((2, 100, 300), (1, 3, 1)))

    def test_weights_of_warps(self):
        for target in "sm_90", "sm_100a":
            with self.subTest(target=target):
                self.check(TEXT, ((1, 70, 200),), target)

    def test_turned(self):
        for target in "sm_90a", "sm_90":
            with self.subTest(target=target):
                self.check(TURNED, ((1, 70, 200),), target)

    def test_early_reader(self):
        """Who does not wait for a filling reads what is not there."""
        early = changed(("%ps = kvbuffer.ring_wait %weights[%i]",
                         "%next = arith.addi %i, %c1 : index\n"
                         "          %ps = kvbuffer.ring_wait %weights[%next]"))
        with self.assertRaisesRegex(Exception, "waits|never|complete"):
            self.check(early, ((1, 64, 300),))


if __name__ == "__main__":
    unittest.main()
