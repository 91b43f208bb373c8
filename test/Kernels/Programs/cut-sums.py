# RUN: %python %s
"""What matrix units cut off adds up on long sums of one sign, and parts of them lose less.

Queries are 0, so weights are 1; the values lie between 0 and 1 and the output is f32: all
that is wrong comes from sums. On the emulator with `cut_sums` each step of 16 keys loses
half a unit in a sum's last place, 2^-24 to 2^-23 of the sum, which is half of its last
value on average: for n keys, n / 16 / 2 times 2^-25 to 2^-24.
"""
import unittest

import kvbuf
import numpy as np

KEYS, SIZE = 4096, 64
LEAST, MOST = (KEYS / 32 * 2.0 ** e for e in (-25, -24))
TEXT = f"""
!q = memref<?x?x1x{SIZE}xbf16>
!o = memref<?x?x1x{SIZE}xf32>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = {SIZE}>
func.func @sums(%q: !q, %k: !kv, %v: !kv, %o: !o) {{
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {{}} : !q, !kv, !kv, !o
  return
}}
"""


def bf16(x):
    return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def bias(chip, schedule, **options):
    """The mean of the relative errors."""
    values = np.random.default_rng(1).random((1, KEYS, 1, SIZE))
    # Of 8 bits each: those of every second key lie below a sum's last place.
    values[:, ::2] /= 256
    v = bf16(values)
    exact = (v.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    q = np.zeros((1, 64, 1, SIZE), np.uint16)
    o = np.full((1, 64, 1, SIZE), np.nan, np.float32)
    kernel = kvbuf.compile(TEXT, target=chip, schedule=schedule, machine_code=False)
    kernel(q=q, k=np.zeros((1, KEYS, 1, SIZE), np.uint16), v=v, o=o,
           device=kvbuf.Device("emulator", **options))
    want = exact.mean(1, keepdims=True)
    return ((o - want) / want).mean()


class CutSums(unittest.TestCase):
    def check(self, chip, schedule):
        cut = bias(chip, schedule, cut_sums=True)
        self.assertLess(cut, -LEAST)
        self.assertGreater(cut, -MOST)
        self.assertLess(abs(bias(chip, schedule)), LEAST / 4)
        parts = bias(chip, schedule + ",sum_keys=512", cut_sums=True)
        self.assertLess(abs(parts), abs(cut) / 4)

    def test_mma_sync(self):
        self.check("sm_80", "BN=64")

    def test_wgmma(self):
        self.check("sm_90a", "BN=128,cluster=1")


unittest.main()
