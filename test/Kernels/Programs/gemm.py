# examples/gemm.mlir and gemm_nn.mlir, on the emulator, against float64.
# RUN: %python %s %src sm_80
# RUN: %python %s %src sm_90a
# RUN: %python %s %src gfx942
# RUN: %python %s %src gfx950
"""Matrix products of the tile stage: C = A B^T and C = A B.

    gemm.py SOURCE CHIP

The programs are written for NVIDIA's portable path; for other chips their first
lines (schedule, buffers, the tiles' sizes) are replaced, and nothing else; for
sm_90a examples/gemm_sm90a.mlir is what comes of it. There warps have roles: tiles
move by TMA, products are wgmma. What lies beside the matrices, rows beyond and
columns up to the next row, is NaN; so is the result, of which no element beside C
may be written.
"""

import pathlib
import re
import sys
import unittest

import numpy as np

import kvbuf

CHIP = sys.argv.pop()
SOURCE = pathlib.Path(sys.argv.pop())
RNG = np.random.default_rng()
NAN = {"bf16": 0x7FC0, "f16": 0x7E00}

#: Sizes of tiles, slots, schedule, and what buffers say besides; `columns`: of a
#: buffer whose rows are contracted.
CHIPS = {
    "sm_80": None,
    "sm_90a": dict(
        tile=(128, 256, 64), stages=4, schedule="warps = 8, mma_shape = [16, 8, "
        "16], producers = 4, producer_registers = 24, consumer_registers = 240",
        buffer="BK = 64, swizzle = [3, 0, 3]",
        columns="BK = 64, swizzle = [3, 0, 3]"),
    "gfx942": dict(
        tile=(64, 64, 64), stages=2, schedule="warps = 2, mma_shape = [32, 32, "
        "8], swap_a_b = true", buffer="BK = 32, swizzle = [2, 0, 3]",
        columns="BK = 32, policy = register_staged, order = cols"),
    "gfx950": dict(
        tile=(64, 64, 64), stages=2, schedule="warps = 2, mma_shape = [32, 32, "
        "16], swap_a_b = true", buffer="BK = 32, swizzle = [2, 0, 4]",
        columns="BK = 32"),
}


def program(name, dtype):
    """The text of examples/NAME.mlir for the chip."""
    text = (SOURCE / "examples" / f"{name}.mlir").read_text()
    chip = CHIPS[CHIP]
    if chip:
        m, n, k = chip["tile"]
        stages = chip["stages"]
        b = (n, k, chip["buffer"]) if name == "gemm" else (k, n, chip["columns"])
        head = {
            "#schedule": f"#kvbuffer.schedule<BM = {m}, BN = {n}, BK = 64, "
                         f"stages = {stages}, {chip['schedule']}>",
            "#abuf": f"#kvbuffer.kv_buffer<{m}x{k}xbf16, stages = {stages}, "
                     f"{chip['buffer']}>",
            "#bbuf": f"#kvbuffer.kv_buffer<{b[0]}x{b[1]}xbf16, stages = "
                     f"{stages}, {b[2]}>",
            "!a_tile": f"!kvbuffer.tile<{m}x{k}xbf16>",
            "!b_tile": f"!kvbuffer.tile<{b[0]}x{b[1]}xbf16>",
            "!c_tile": f"!kvbuffer.tile<{m}x{n}xbf16>",
            "!a": f"!kvbuffer.fragment<{m}x{k}xbf16, a>",
            "!b": f"!kvbuffer.fragment<{b[0]}x{b[1]}xbf16, b>",
            "!acc": f"!kvbuffer.fragment<{m}x{n}xf32, acc>",
            "!c": f"!kvbuffer.fragment<{m}x{n}xbf16, acc>"}
        for alias, value in head.items():
            text, count = re.subn(rf"^{re.escape(alias)} = .*$",
                                  f"{alias} = {value}", text, flags=re.M)
            assert count == 1, alias
        for constant, value in ("stages", stages), ("bm", m), ("bn", n), ("bk", k):
            text, count = re.subn(rf"%{constant} = arith.constant \d+",
                                  f"%{constant} = arith.constant {value}", text)
            assert count == 1, constant
        text = re.sub(r'\["(m|n)", 128\]', lambda found: '["%s", %d]' % (
            found[1], m if found[1] == "m" else n), text)
    if (name, CHIP) == ("gemm", "sm_90a"):
        # It has a file of its own, which differs in these lines only.
        own = (SOURCE / "examples" / "gemm_sm90a.mlir").read_text()
        begin = "#schedule = "
        assert own[own.index(begin):] == text[text.index(begin):]
        text = own
    return text.replace("bf16", dtype)


def encode(x, dtype):
    if dtype == "f16":
        return x.astype(np.float16).view(np.uint16)
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def decode(bits, dtype):
    if dtype == "f16":
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def embed(rows, cols, dtype, packed):
    """An array of NaN, and the matrix in it: rows lie multiples of 16 bytes
    apart, or, packed, one after the other."""
    pad = 0 if packed else -cols % 8 + 8
    whole = np.full((rows + 2, cols + pad), NAN[dtype], np.uint16)
    return whole, whole[:rows, :cols]


class Gemm(unittest.TestCase):
    SHAPES = (128, 256, 64), (100, 70, 150), (257, 136, 200), (1, 1, 1), (65, 3, 77)

    def check(self, name, dtype, packed=False):
        run = kvbuf.compile(program(name, dtype), target=CHIP)
        for m, n, k in self.SHAPES:
            _, a = embed(m, k, dtype, packed)
            shape = (n, k) if name == "gemm" else (k, n)
            _, b = embed(*shape, dtype, packed)
            a[:] = encode(RNG.standard_normal(a.shape), dtype)
            b[:] = encode(RNG.standard_normal(b.shape), dtype)
            whole, c = embed(m, n, dtype, packed)
            view = {"bf16": np.uint16, "f16": np.float16}[dtype]
            run(a=a.view(view), b=b.view(view), c=c.view(view))
            x, y = decode(a, dtype), decode(b, dtype)
            y = y.T if name == "gemm" else y
            exact = x @ y
            plain = decode(encode((x.astype(np.float32) @ y.astype(np.float32)),
                                  dtype), dtype)
            out = decode(c, dtype)
            self.assertFalse(np.isnan(out).any(), (m, n, k))
            error, usual = abs(out - exact), abs(plain - exact)
            ulp = np.ldexp(1.0, np.frexp(exact)[1] - (8 if dtype == "bf16" else 11))
            self.assertLessEqual((error - ulp).max(), 2 * usual.max(), (m, n, k))
            self.assertLessEqual(error.mean(), 1.15 * usual.mean() + 1e-6)
            # Nothing beside C.
            beside = np.ones(whole.shape, bool)
            beside[:m, :n] = False
            self.assertTrue((whole[beside] == NAN[dtype]).all(), (m, n, k))

    def test_nt(self):
        self.check("gemm", "bf16")

    def test_nn(self):
        self.check("gemm_nn", "bf16")

    def test_f16(self):
        self.check("gemm", "f16")

    @unittest.skipIf(CHIP != "sm_80", "rows are multiples of 16 bytes apart")
    def test_packed(self):
        self.check("gemm", "bf16", packed=True)
        self.check("gemm_nn", "f16", packed=True)


if __name__ == "__main__":
    unittest.main()
