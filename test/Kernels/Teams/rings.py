# Teams that rings and a queue join, on the emulator, against float64.
# RUN: %python %s
# Nobody has said that it has producers: the assembler hands out registers anew, and
# tiles begin where the swizzle does, all the same.
# RUN: kvbuf-compile %S/Inputs/rings.mlir --target=sm_90a --emit=ptx -o - | FileCheck %s
# CHECK: .extern .shared .align 1024
# CHECK: .minnctapersm 1
# CHECK: wgmma.mma_async
# Where no group multiplies, each warp reads slots that the same engine fills.
# RUN: kvbuf-compile %S/Inputs/rings.mlir --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=WARPS
# WARPS-NOT: wgmma
# WARPS: .extern .shared .align 1024
# WARPS-DAG: cp.async.bulk.tensor.4d.shared::cluster.global
# WARPS-DAG: ldmatrix
# WARPS-DAG: mma.sync
# WARPS-NOT: wgmma
"""One team that moves for three that multiply: Inputs/rings.mlir, and faults in it.

A ring's slot is empty when every team that reads it has given it back. A team less
that does, a release too many, or registers that move between teams: the emulator says
what comes of it.
"""

import pathlib
import sys
import unittest

import kvbuf
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE / "Inputs"), str(HERE.parent / "Inputs")]
from numbers16 import check, check_latent, from_bf16, softmax, to_bf16
from numbers8 import float8

TEXT = (HERE / "Inputs" / "rings.mlir").read_text()
RELEASE = "          kvbuffer.ring_release %ring[%i] : !kvbuffer.ring<#kbuf>\n"


def changed(*changes, text=TEXT):
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def without(team):
    """The program, but that a team keeps its slots."""
    before, after = TEXT.split(f"kvbuffer.team @{team} ")
    assert RELEASE in after
    return f"{before}kvbuffer.team @{team} {after.replace(RELEASE, '', 1)}"


#: Teams of two warps with all the rows, and one warp that moves.
OF_TWO = changed(("@load warps(4)", "@load warps(1)"),
                 ("warps(4) {", "warps(2) BM(64) {"))
#: Keys, and so values, of 8-bit floats.
WIDENED = changed(
    ("!kvbuffer.cache<dense, bf16,", "!kvbuffer.cache<dense, f8E4M3FN,"),
    ("#kbuf = #kvbuffer.kv_buffer<64x192xbf16,", "#kbuf = #kvbuffer.kv_buffer<64x192xf8E4M3FN,"),
    ("!half =", "!narrow = !kvbuffer.tile<64x192xf8E4M3FN>\n!half ="),
    ("upto %keys : !kv -> !tile", "upto %keys : !kv -> !narrow"),
    ("%tile into %ring[%i] : !tile,", "%tile into %ring[%i] : !narrow,"))


class Rings(unittest.TestCase):
    SHAPES = (2, 100, 300), (1, 64, 64), (1, 3, 1), (1, 1, 500)

    def check(self, text, shapes=SHAPES, target="sm_90a"):
        check_latent(self, kvbuf.compile(text, target=target,
                                         machine_code=False), shapes)

    def test_three_readers(self):
        self.check(TEXT)

    def test_products_of_warps(self):
        """The same program where each warp multiplies what it reads of a slot."""
        self.check(TEXT, ((2, 100, 300), (1, 1, 200)), "sm_90")

    def test_another_generation(self):
        self.check(TEXT, ((1, 70, 300),), "sm_100a")

    def test_counters(self):
        """The same program where waves poll counters, a queue's too. Where LDS has no
        transposed reads, those of the teams that contract rows are of elements; it has
        room for one filling of the queue."""
        self.check(TEXT, ((1, 70, 300), (1, 1, 100)), "gfx950")
        self.check(changed(("slots(2)", "slots(1)")), ((1, 70, 300), (1, 1, 100)),
                   "gfx942")
        with self.assertRaisesRegex(kvbuf.Error, "needs 72704 bytes of shared memory"):
            kvbuf.compile(TEXT, target="gfx942", machine_code=False)

    def test_teams_of_two_warps(self):
        """They are no group, wherever groups of warps multiply."""
        for target in "sm_90", "sm_90a":
            with self.subTest(target=target):
                self.check(OF_TWO, ((1, 70, 300),), target)

    def test_one_warp_moves(self):
        self.check(changed(("@load warps(4)", "@load warps(1)")))

    def test_widened_on_the_way(self):
        """Slots of 8-bit floats, which lanes widen as they read them."""
        rng = np.random.default_rng()
        numbers = float8("f8E4M3FN")
        codes = np.flatnonzero(np.isfinite(numbers) & (abs(numbers) <= 4))
        for target in "sm_90a", "sm_90":
            k = rng.choice(codes, (1, 200, 1, 192)).astype(np.uint8)
            q = to_bf16(rng.standard_normal((1, 70, 4, 192)))
            out = np.full((1, 70, 8, 64), 0x7FC0, np.uint16)  # NaN
            kvbuf.compile(WIDENED, target=target, machine_code=False)(q=q, k=k, out=out)
            keys = numbers[k]
            exact, base, _ = softmax(from_bf16(q), keys, keys[..., :128],
                                     192 ** -0.5, causal=True)
            with self.subTest(target=target):
                check(self, from_bf16(out).reshape(exact.shape), exact, base)

    def test_registers(self):
        """Those of the team that moves go to one that multiplies."""
        self.check(changed(("@left warps(4)", "@left warps(4) registers(160)"),
                           ("@load warps(4)", "@load warps(4) registers(96)")),
                   ((1, 70, 150),))

    def test_kept_slots(self):
        """Nobody fills a slot that one of three teams keeps."""
        for team, target in (("scores", "sm_90a"), ("left", "sm_90a"),
                             ("right", "sm_90a"), ("left", "sm_90"),
                             ("right", "gfx950")):
            with self.assertRaisesRegex(Exception, "waits|never|complete"):
                self.check(without(team), ((1, 64, 300),), target)


if __name__ == "__main__":
    unittest.main()
