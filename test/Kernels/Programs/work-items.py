# Kernels of users that say what their work is, on the emulator, against float64.
# RUN: %python %s %src sm_90a
# RUN: %python %s %src gfx942
# RUN: %python %s %src gfx950
"""Programs with kvbuffer.work_item whose blocks take several items, work together in
clusters and have runs of items by die; no pass knows them.

    work-items.py SOURCE CHIP

They are examples/gemm.mlir, as it is and for the products of many matrices, and
sigmoid.mlir, with more parameters in their schedules. Results are judged as in gemm.py
and attention.py.
"""

import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import kvbuf

import attention

sys.argv += [str(attention.SOURCE), attention.CHIP]
import gemm  # noqa: E402

CHIP = attention.CHIP

def scheduled(text, more):
    """The program with more parameters in its schedule."""
    text, count = re.subn(r"^(#schedule = .*)>$", rf"\1, {more}>", text, flags=re.M)
    assert count == 1
    return text


def target(text):
    """What becomes of a program, and what the compiler says of it."""
    done = subprocess.run(
        ["kvbuf-compile", "-", f"--target={CHIP}", "--emit=target", "--remarks"],
        input=text, text=True, capture_output=True, check=True)
    return done.stdout, done.stderr


def run_sigmoid(test, text, shapes):
    """Runs examples/sigmoid.mlir, changed, and checks its result."""
    run = kvbuf.compile(text, target=CHIP, machine_code=False)
    for batch, queries, keys in shapes:
        q, k, v = (attention.to_bf16(attention.RNG.standard_normal((batch, n, 4, 64)))
                   for n in (queries, keys, keys))
        out = np.full(q.shape, 0x7FC0, np.uint16)  # NaN
        run(q=q, k=k, v=v, out=out)
        q, k, v = map(attention.from_bf16, (q, k, v))
        i, j = attention.positions(q, k)
        p = np.where(j <= i, 1 / (1 + np.exp(2 - attention.scores(q, k) / 8)), 0)
        exact, base = (attention.apply(p, v, normalize=False, plain=plain)
                       for plain in (False, True))
        attention.check(test, attention.from_bf16(out), exact, base)
    return run


def batched(text):
    """The program for four products of each of a batch: four coordinates."""
    text = text.replace("memref<?x?xbf16, strided<[?, 1]>>",
                        "memref<?x4x?x?xbf16, strided<[?, ?, ?, 1]>>")
    text = re.sub(r'kvbuffer.shape = \["(\w)", "(\w)"\]',
                  r'kvbuffer.shape = ["batch", 4, "\1", "\2"]', text)
    one = "    %c1 = arith.constant 1 : index\n"
    text = text.replace(one, one + one.replace("1", "2") + one.replace("1", "3"))
    text = re.sub(r"memref.dim %(\w), %c(\d)",
                  lambda f: f"memref.dim %{f[1]}, %c{int(f[2]) + 2}", text)
    text = re.sub(r"%tile_n = (kvbuffer.work_item .*)\]$",
                  r'%tile_n, %head, %batch = \1, <4>, <"batch">]', text, flags=re.M)
    return re.sub(r"dram_tile %(\w)\[", r"dram_tile %\1[%batch, %head, ", text)


class Products(unittest.TestCase):
    """Many products: an item is a tile of one of them."""

    #: Of one batch more tiles above each other than a strip has, an odd number of them.
    SHAPES = (2, 70, 264, 72), (1, 1160, 40, 64)

    def check(self, text, run=None):
        run = run or kvbuf.compile(text, target=CHIP, machine_code=False)
        for batch, m, n, k in self.SHAPES:
            a, b = (gemm.encode(gemm.RNG.standard_normal((batch, 4, rows, k)), "bf16")
                    for rows in (m, n))
            c = np.full((batch, 4, m, n), gemm.NAN["bf16"], np.uint16)
            run(a=a, b=b, c=c)
            x, y = gemm.decode(a, "bf16"), gemm.decode(b, "bf16").swapaxes(2, 3)
            exact, out = x @ y, gemm.decode(c, "bf16")
            plain = gemm.decode(gemm.encode(
                x.astype(np.float32) @ y.astype(np.float32), "bf16"), "bf16")
            self.assertFalse(np.isnan(out).any(), (batch, m, n, k))
            error, usual = abs(out - exact), abs(plain - exact)
            ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
            self.assertLessEqual((error - ulp).max(), 2 * usual.max())
            self.assertLessEqual(error.mean(), 1.15 * usual.mean() + 1e-6)
        return run

    def program(self, more=""):
        text = batched(gemm.program("gemm", "bf16"))
        return scheduled(text, more) if more else text

    def test_grid(self):
        self.check(self.program())

    def test_tiles(self):
        # What the op means, before any pass: block by block on whole tiles.
        text = self.program().replace(
            'kvbuffer.name = "c"', 'kvbuffer.name = "c", kvbuffer.access = "write"')

        def run(a, b, c):
            with tempfile.TemporaryDirectory() as folder:
                for name, x in {"a": a, "b": b, "c": c}.items():
                    np.save(f"{folder}/{name}.npy", x)
                options = [f"--input={n}={folder}/{n}.npy" for n in "abc"]
                done = subprocess.run(
                    ["kvbuf-tile-run", "-", *options, f"--output=c={folder}/out.npy"],
                    input=text, text=True, capture_output=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                c[:] = np.load(f"{folder}/out.npy").view(np.uint16)

        self.check(text, run)

    @unittest.skipIf(CHIP[:3] != "gfx", "chips of several dies")
    def test_dies(self):
        # The products of a batch are dealt out, strips of tiles of each together.
        run = self.check(self.program("xcds = 4"))
        self.assertEqual(run.manifest["kernels"][0]["grid"][1:], [1, 1])

    @unittest.skipIf(CHIP != "sm_90a", "blocks of producers and consumers")
    def test_loops(self):
        for tiles in "static", "dynamic":
            run = self.check(self.program(f"tiles = {tiles}"))
            self.assertEqual(run.manifest["kernels"][0]["grid"][1:], [1, 1])

    @unittest.skipIf(CHIP != "sm_90a", "blocks of producers and consumers")
    def test_clusters(self):
        # Tiles above each other share B, of which each block loads a part for both.
        for tiles in "static", "dynamic":
            text = self.program(f"tiles = {tiles}, cluster = 2")
            self.check(text)
            code, remarks = target(text)
            self.assertIn("multicast_mask", code)
            self.assertIn("the blocks of a cluster load tiles for each other", remarks)


@unittest.skipIf(CHIP != "sm_90a", "blocks of producers and consumers")
class OneProduct(unittest.TestCase):
    #: More tiles than the emulator has blocks at a time, four; an odd number of them
    #: above each other, so that the last pair has one; and one tile.
    SHAPES = (300, 560, 70), (1, 1, 1)

    def test(self):
        for more in "tiles = static", "tiles = dynamic, cluster = 2":
            text = scheduled(gemm.program("gemm", "bf16"), more)
            gemm.Gemm().check("gemm", "bf16", text=text, shapes=self.SHAPES)


@unittest.skipIf(CHIP[:3] != "gfx", "chips of several dies")
class Dies(unittest.TestCase):
    SHAPES = (2, 150, 150), (1, 64, 200)

    def test_runs(self):
        for dies in 2, 3, 4, 8:
            text = scheduled(attention.program("sigmoid"), f"xcds = {dies}")
            run = run_sigmoid(self, text, self.SHAPES)
            # Consecutive blocks go to the dies in turn.
            self.assertEqual(run.manifest["kernels"][0]["grid"][1:], [1, 1])

    def test_lost(self):
        _, messages = target(scheduled(gemm.program("gemm", "bf16"), "xcds = 8"))
        self.assertIn("warning: items are not dealt to 8 dies", messages)


if __name__ == "__main__":
    unittest.main()
