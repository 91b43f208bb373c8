# Buffer policies in programs of the tile stage, on the emulator, against float64.
# RUN: %python %s sm_80
# RUN: %python %s sm_90a
# RUN: %python %s gfx942
# RUN: %python %s gfx950
"""Matrix products C = A B^T and C = A B whose tiles come into LDS by each policy.

    policies.py CHIP

`ahead` keeps two tiles of each matrix in registers, stored in turn into one slot
(the seeds' DecodeKVBuffer with two stages); `slots` lets `kvbuf-run-ahead`
load a register-staged A beside a B that is copied; `strips` loads one strip after
the other through one slot (DecodeStreamingKVBuffer). What lies beside the matrices
is NaN, and so is C before the launch. The last tests leave out the barrier that
ends a slot's reads: the emulator finds that it is overwritten.
"""

import sys
import unittest

import numpy as np

import kvbuf

CHIP = sys.argv.pop()
RNG = np.random.default_rng()
NAN = 0x7FC0

#: The schedule, the slots of A and B^T, and those of B, whose rows are contracted
#: and must be turned where LDS cannot be read transposed.
CHIPS = {
    "sm_80": ("warps = 4, mma_shape = [16, 8, 16]", "swizzle = [3, 0, 3]",
              "swizzle = [3, 0, 3]"),
    "gfx942": ("warps = 2, mma_shape = [32, 32, 8], swap_a_b = true",
               "BK = 32, swizzle = [2, 0, 3]", "BK = 32, order = cols"),
    "gfx950": ("warps = 2, mma_shape = [32, 32, 16], swap_a_b = true",
               "BK = 32, swizzle = [2, 0, 4]", "BK = 32"),
}
CHIPS["sm_90a"] = CHIPS["sm_80"]

BEFORE = """
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = {stages}, {schedule}>
#abuf = #kvbuffer.kv_buffer<64x64xbf16, stages = {stages}, {rows}, policy = {a_policy}>
#bbuf = #kvbuffer.kv_buffer<64x64xbf16, stages = {stages}, {b_slot}, policy = {b_policy}>
!m = memref<?x?xbf16, strided<[?, 1]>>
!tile = !kvbuffer.tile<64x64xbf16>
!a = !kvbuffer.fragment<64x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
!acc = !kvbuffer.fragment<64x64xf32, acc>
gpu.module @m {{
  gpu.func @product(%a: !m {{kvbuffer.name = "a", kvbuffer.shape = ["m", "k"]}},
                    %b: !m {{kvbuffer.name = "b", kvbuffer.shape = {b_shape}}},
                    %c: !m {{kvbuffer.name = "c", kvbuffer.shape = ["m", "n"]}})
      kernel attributes {{kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule,
                         kvbuffer.grid = [#kvbuffer.size<ceildiv(n, 64)>, #kvbuffer.size<ceildiv(m, 64)>, 1]}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %m = memref.dim %a, %c0 : !m
    %n = memref.dim %c, %c1 : !m
    %k = memref.dim %a, %c1 : !m
    %x = gpu.block_id x
    %y = gpu.block_id y
    %row = arith.muli %y, %c64 : index
    %col = arith.muli %x, %c64 : index
    %rows = arith.subi %m, %row : index
    %cols = arith.subi %n, %col : index
    %steps = arith.ceildivui %k, %c64 : index
    %a_slots = kvbuffer.alloc : !kvbuffer.buffer<#abuf>
    %b_slots = kvbuffer.alloc : !kvbuffer.buffer<#bbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
"""

#: Loads of step %STEP into %SLOT, as %A and %B.
LOADS = """
    %STEPat = arith.muli %STEP, %c64 : index
    %STEPleft = arith.subi %k, %STEPat : index
    %STEPat_ile = kvbuffer.dram_tile %a[%row, %STEPat] valid(%rows, %STEPleft) : !m -> !tile
    %STEPbt_ile = kvbuffer.dram_tile %b[B_AT] valid(B_VALID) : !m -> !tile
    %A = kvbuffer.dram_load %STEPat_ile into %a_slots[%SLOT] : !tile, !kvbuffer.buffer<#abuf>
    %B = kvbuffer.dram_load %STEPbt_ile into %b_slots[%SLOT] : !tile, !kvbuffer.buffer<#bbuf>
"""

#: The product of the tiles in %A and %B, added to %sum.
MULTIPLY = """
      %as, %bs = kvbuffer.lds_stage %A, %B : !kvbuffer.token<#abuf>, !kvbuffer.token<#bbuf>
      MORE
      %af = kvbuffer.fragment_load %as[0, 0] contracted(cols) : !kvbuffer.staged<#abuf> -> !a
      %bf = kvbuffer.fragment_load %bs[0, 0] contracted(WHICH) : !kvbuffer.staged<#bbuf> -> !b
      %next = kvbuffer.mma %af, %bf, %sum TRANSPOSE : !a, !b, !acc
"""

AFTER = """
    %rounded = kvbuffer.fragment_convert %product : !acc -> !kvbuffer.fragment<64x64xbf16, acc>
    %c_tile = kvbuffer.dram_tile %c[%row, %col] valid(%rows, %cols) : !m -> !tile
    kvbuffer.fragment_store %rounded, %c_tile : !kvbuffer.fragment<64x64xbf16, acc>, !tile
    gpu.return
  }
}
"""


def program(kind, transposed):
    """The text of one of the three programs for the chip."""
    def loads(step, slot, a, b):
        at, valid = (("%col, %STEPat", "%cols, %STEPleft") if transposed
                     else ("%STEPat, %col", "%STEPleft, %cols"))
        return (LOADS.replace("B_AT", at).replace("B_VALID", valid)
                .replace("%STEP,", f"%{step},").replace("%STEP", f"%{step}_")
                .replace("%SLOT", f"%{slot}").replace("%A", a).replace("%B", b))

    def multiply(a, b, more=""):
        return (MULTIPLY.replace("%A", a).replace("%B", b).replace("MORE", more)
                .replace("WHICH", "cols" if transposed else "rows")
                .replace("TRANSPOSE", "{transpose_b}" if transposed else ""))

    schedule, rows, columns = CHIPS[CHIP]
    policies = {"ahead": ("register_staged",) * 2,
                "slots": ("register_staged", "double_buffered"),
                "strips": ("streaming",) * 2}[kind]
    if "order" in columns and kind == "slots" and not transposed:
        policies = policies[::-1]
    head = BEFORE.format(
        stages=2 if kind == "slots" else 1, schedule=schedule, rows=rows,
        b_slot=rows if transposed else columns, a_policy=policies[0],
        b_policy=policies[1],
        b_shape='["n", "k"]' if transposed else '["k", "n"]')
    loop = ("    %product = scf.for %i = %c0 to %steps step %c1 "
            "iter_args(%sum = %zero")
    if kind == "ahead":
        tokens = "!kvbuffer.token<#abuf>, !kvbuffer.token<#bbuf>"
        return (head + loads("c0", "c0", "%a0", "%b0")
                + loads("c1", "c0", "%a1", "%b1")
                + loop.replace("%product", "%product, %r:4")
                + ", %ta = %a0, %tb = %b0, %ua = %a1, %ub = %b1) -> "
                  f"(!acc, {tokens}, {tokens}) {{\n"
                  "      kvbuffer.meet\n"
                  "      %later = arith.addi %i, %c2 : index\n"
                + multiply("%ta", "%tb", loads("later", "c0", "%va", "%vb"))
                + f"      scf.yield %next, %ua, %ub, %va, %vb : !acc, {tokens}, "
                  f"{tokens}\n    }}\n" + AFTER)
    body = loads("i", "slot", "%ta", "%tb") + multiply("%ta", "%tb")
    body += "      scf.yield %next : !acc\n    }\n"
    first = ("      %slot = arith.remui %i, %c2 : index\n" if kind == "slots"
             else "      %slot = arith.constant 0 : index\n"
                  "      kvbuffer.meet\n")
    return head + loop + ") -> (!acc) {\n" + first + body + AFTER


def encode(x):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def decode(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def embed(rows, cols):
    """An array of NaN whose rows lie multiples of 16 bytes apart, and the matrix
    in it."""
    whole = np.full((rows + 2, cols + -cols % 8 + 8), NAN, np.uint16)
    return whole, whole[:rows, :cols]


class Policies(unittest.TestCase):
    def launch(self, run, transposed, m, n, k):
        _, a = embed(m, k)
        _, b = embed(*((n, k) if transposed else (k, n)))
        whole, c = embed(m, n)
        for x in a, b:
            x[:] = encode(RNG.standard_normal(x.shape))
        run(a=a, b=b, c=c)
        x, y = decode(a), decode(b)
        return whole, c, x, y.T if transposed else y

    def check(self, kind):
        for transposed in True, False:
            run = kvbuf.compile(program(kind, transposed), target=CHIP,
                                machine_code=False)
            for m, n, k in (64, 64, 320), (70, 100, 150), (1, 3, 77), (65, 8, 64):
                with self.subTest(transposed=transposed, shape=(m, n, k)):
                    whole, c, x, y = self.launch(run, transposed, m, n, k)
                    exact, out = x @ y, decode(c)
                    plain = decode(encode(x.astype(np.float32)
                                          @ y.astype(np.float32)))
                    self.assertFalse(np.isnan(out).any())
                    error, usual = abs(out - exact), abs(plain - exact)
                    ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
                    self.assertLessEqual((error - ulp).max(), 2 * usual.max())
                    beside = np.ones(whole.shape, bool)
                    beside[:m, :n] = False
                    self.assertTrue((whole[beside] == NAN).all())

    def test_ahead(self):
        self.check("ahead")

    def test_slots(self):
        self.check("slots")

    def test_strips(self):
        self.check("strips")

    def without_meet(self, kind, transposed):
        text = program(kind, transposed)
        self.assertEqual(text.count("      kvbuffer.meet\n"), 1)
        return kvbuf.compile(text.replace("      kvbuffer.meet\n", ""),
                             target=CHIP, machine_code=False)

    def test_stored_before_readers_are_done(self):
        for transposed in True, False:
            run = self.without_meet("ahead", transposed)
            with self.assertRaisesRegex(kvbuf.KernelFault, "race"):
                self.launch(run, transposed, 64, 64, 320)

    def test_copied_before_readers_are_done(self):
        """Into the one slot that there is, which is told before anything runs."""
        for transposed in True, False:
            with self.assertRaisesRegex(kvbuf.Error, "fills the one slot of its buffer"):
                self.without_meet("strips", transposed)


if __name__ == "__main__":
    unittest.main()
