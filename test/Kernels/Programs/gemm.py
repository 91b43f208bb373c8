# examples/gemm.mlir and gemm_nn.mlir, on the emulator, against float64.
# RUN: %python %s %src sm_80
# RUN: %python %s %src sm_90a
# RUN: %python %s %src gfx942
# RUN: %python %s %src gfx950
"""Matrix products of the tile stage: C = A B^T and C = A B.

    gemm.py SOURCE CHIP

Each is one file for all chips: kvbuf-complete-program chooses what they leave open.
For sm_90a examples/gemm_sm90a.mlir differs in the lines of sizes, where warps have
roles: tiles move by TMA, products are wgmma. What lies beside the matrices, rows beyond and
columns up to the next row, is NaN; so is the result, of which no element beside C
may be written. With `gather` the rows of A are any of a larger matrix, named by a
list of numbers.
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

#: Sizes of tiles, and what else the lines of sizes say; of others than these the
#: example is taken as it is.
CHIPS = {
    "sm_90a": dict(
        tile=(128, 256, 64), schedule="BK = 64, stages = 4, warps = 8, mma_shape = "
        "[64, 8, 16], producers = 4, producer_registers = 24, consumer_registers = "
        "240", buffer="stages = 4, BK = 64, swizzle = [3, 0, 3]"),
    # A slot for each matrix, which whoever moves fills again when it is given back.
    "one slot": dict(
        tile=(64, 64, 64), schedule="BK = 64, stages = 1, warps = 4, mma_shape = "
        "[64, 8, 16], producers = 4", buffer="open"),
    # Small tiles, which take less time to compile.
    "small": dict(tile=(64, 64, 64), schedule="stages = 2", buffer="open"),
}


def program(name, dtype, of=CHIP):
    """The text of examples/NAME.mlir, in the sizes of a chip."""
    text = (SOURCE / "examples" / f"{name}.mlir").read_text()
    chip = CHIPS.get(of)
    if chip:
        m, n, k = chip["tile"]
        b = (n, k) if name == "gemm" else (k, n)
        head = {
            "#schedule": f"#kvbuffer.schedule<BM = {m}, BN = {n}, "
                         f"{chip['schedule']}>",
            "#abuf": f"#kvbuffer.kv_buffer<{m}x{k}xbf16, {chip['buffer']}>",
            "#bbuf": f"#kvbuffer.kv_buffer<{b[0]}x{b[1]}xbf16, {chip['buffer']}>",
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
        for constant, value in ("bm", m), ("bn", n), ("bk", k):
            text, count = re.subn(rf"%{constant} = arith.constant \d+",
                                  f"%{constant} = arith.constant {value}", text)
            assert count == 1, constant
        text = re.sub(r'<"(m|n)" by 128', lambda found: '<"%s" by %d' % (
            found[1], m if found[1] == "m" else n), text)
    if (name, of) == ("gemm", "sm_90a"):
        # It has a file of its own, which differs in these lines only.
        own = (SOURCE / "examples" / "gemm_sm90a.mlir").read_text()
        begin = "#schedule = "
        assert own[own.index(begin):] == text[text.index(begin):]
        text = own
    return text.replace("bf16", dtype)


def change(text, *pairs, pages=0):
    """`text` with other words; `pages`: of A's or B's tiles."""
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    which = "b" if "dram_tile %b[%c0" in text else "a"
    return re.sub(rf"^(!{which}_tile = .*)>$", rf"\1, page_size = {pages}>", text,
                  flags=re.M)


NUMBERS = '%numbers: memref<?xi32> {kvbuffer.name = "numbers", kvbuffer.shape = ["'


def gathered(text, valid="%left"):
    """The program with row i of A at row numbers[i] of what it is given."""
    return change(
        text,
        ('gpu.func @gemm(%a: !in {kvbuffer.name = "a", kvbuffer.shape = ["m", "k"]},',
         'gpu.func @gemm(%a: !in {kvbuffer.name = "a", kvbuffer.shape = '
         f'["all", "k"]}}, {NUMBERS}m"]}},'),
        ("%m = memref.dim %a, %c0 : !in",
         "%m = memref.dim %numbers, %c0 : memref<?xi32>"),
        ("%a[%row, %at] valid(%rows, %left) : !in -> !a_tile",
         f"%a[%c0, %at] gather(%numbers[%row]) valid(%rows, {valid}) "
         ": !in, memref<?xi32> -> !a_tile"), pages=1)


def gathered_nn(text):
    """The same of B's rows, which are contracted."""
    return change(
        text,
        ('%b: !in {kvbuffer.name = "b", kvbuffer.shape = ["k", "n"]},',
         '%b: !in {kvbuffer.name = "b", kvbuffer.shape = '
         f'["all", "n"]}}, {NUMBERS}k"]}},'),
        ("%b[%at, %col] valid(%left, %cols) : !in -> !b_tile",
         "%b[%c0, %col] gather(%numbers[%at]) valid(%left, %cols) "
         ": !in, memref<?xi32> -> !b_tile"), pages=1)


def grouped(text):
    """The program with four neighbouring rows of A in one row of a tensor of rank
    three."""
    three = "memref<?x4x?xbf16, strided<[?, ?, 1]>>"
    return change(
        text,
        ('gpu.func @gemm(%a: !in {kvbuffer.name = "a", kvbuffer.shape = ["m", "k"]},',
         f'gpu.func @gemm(%a: {three} {{kvbuffer.name = "a", kvbuffer.shape = '
         '["fours", 4, "k"]},'),
        ("%m = memref.dim %a, %c0 : !in",
         f"%four = arith.constant 4 : index\n    %c2 = arith.constant 2 : index\n"
         f"    %fours = memref.dim %a, %c0 : {three}\n"
         "    %m = arith.muli %fours, %four : index"),
        ("%k = memref.dim %a, %c1 : !in", f"%k = memref.dim %a, %c2 : {three}"),
        ("%a[%row, %at] valid(%rows, %left) : !in -> !a_tile",
         f"%a[%above, %c0, %at] valid(%rows, %left) {{group = 4 : i64, row_dim = 0 : "
         f"i64}} : {three} -> !a_tile"),
        ("%rows = arith.subi %m, %row : index",
         "%rows = arith.subi %m, %row : index\n"
         "    %above = arith.divui %row, %four : index"), pages=4)


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
    #: Whether launches are on a GPU (benchmark/verify_programs.py).
    ON_GPU = False
    SHAPES = (128, 256, 64), (100, 70, 150), (257, 136, 200), (1, 1, 1), (65, 3, 77)

    def check(self, name, dtype, packed=False, text=None, shapes=SHAPES):
        run = kvbuf.compile(text or program(name, dtype), target=CHIP,
                            machine_code=False)
        lists = text and "gather" in text
        for m, n, k in shapes:
            nn = name == "gemm_nn"
            rows_a, rows_b = m, k if nn else n
            args = {}
            if lists:
                rows, many = (rows_b, k) if nn else (rows_a, m)
                args["numbers"] = RNG.integers(0, 2 * rows, many, np.int32)
                rows_a, rows_b = (rows_a, 2 * rows) if nn else (2 * rows, rows_b)
            _, a = embed(rows_a, k, dtype, packed)
            _, b = embed(rows_b, n if nn else k, dtype, packed)
            a[:] = encode(RNG.standard_normal(a.shape), dtype)
            b[:] = encode(RNG.standard_normal(b.shape), dtype)
            whole, c = embed(m, n, dtype, packed)
            view = {"bf16": np.uint16, "f16": np.float16}[dtype]
            given = a
            if text and "group = 4" in text:
                # Beside the four rows lies one that nobody may read.
                wide = np.full((m // 4, 5, k + -k % 8 + 8), NAN[dtype], np.uint16)
                given = wide[:, :4, :k]
                given[:] = a.reshape(m // 4, 4, k)
            run(a=given.view(view), b=b.view(view), c=c.view(view), **args)
            if lists:
                a, b = (a, b[args["numbers"]]) if nn else (a[args["numbers"]], b)
            x, y = decode(a, dtype), decode(b, dtype)
            y = y if nn else y.T
            exact = x @ y
            plain = decode(encode((x.astype(np.float32) @ y.astype(np.float32)),
                                  dtype), dtype)
            if text and "maximumf" in text:
                exact, plain = np.maximum(exact, 0), np.maximum(plain, 0)
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
        if self.ON_GPU:
            return
        # Tiles of A and B that other blocks still read.
        run = kvbuf.compile(program("gemm", "bf16"), target=CHIP, machine_code=False)
        both = np.zeros((192, 64), np.uint16)
        a, b = np.zeros((64, 64), np.uint16), np.zeros((64, 64), np.uint16)
        for given, name in (dict(a=both[:64], b=b), "a"), (dict(a=a, b=both[:64]), "b"):
            with self.assertRaisesRegex(
                    kvbuf.Error, f"^tensor 'c' shares memory with tensor '{name}'.*"
                    f"; expected memory of its own, or '{name}' itself$"):
                run(**given, c=both[63:127])
            run(**given, c=both[64:128])

    @unittest.skipIf(CHIP != "sm_90a", "no warps that move alone")
    def test_one_slot(self):
        self.check("gemm", "bf16", text=program("gemm", "bf16", "one slot"),
                   shapes=self.SHAPES[1:3])

    def test_nn(self):
        self.check("gemm_nn", "bf16")

    def test_one_slot(self):
        """Where a second slot has no room, or is not allowed, warps meet before the
        only one is filled again."""
        text = program("gemm", "bf16", "small").replace("stages = 2", "stages = 1")
        self.check("gemm", "bf16", shapes=self.FEW, text=text)

    @unittest.skipIf(CHIP != "sm_90a", "other tests take it as it is")
    def test_one_file(self):
        self.check("gemm", "bf16", shapes=self.FEW,
                   text=program("gemm", "bf16", "as it is"))

    def test_f16(self):
        self.check("gemm", "f16")

    def test_no_negative(self):
        # Elements by a region, also where other warps move the tiles.
        self.check("gemm", "bf16", shapes=((257, 136, 200),), text=change(
            program("gemm", "bf16"),
            ("    %rounded = kvbuffer.fragment_convert %product",
             "    %least = arith.constant 0.0 : f32\n"
             "    %above = kvbuffer.map %product : !acc -> !acc {\n"
             "    ^bb0(%x: f32, %i: index, %j: index):\n"
             "      %y = arith.maximumf %x, %least : f32\n"
             "      kvbuffer.yield %y : f32\n"
             "    }\n"
             "    %rounded = kvbuffer.fragment_convert %above")))

    @staticmethod
    def portable(change, name):
        """The changed program in small tiles, which no team of its own moves."""
        return change(program(name, "bf16", "small"))

    def refused(self, text, message):
        with self.assertRaisesRegex(kvbuf.Error, message):
            kvbuf.compile(text, target=CHIP, machine_code=False)

    FEW = (100, 70, 150), (132, 136, 200)

    def test_gathered(self):
        text = gathered(program("gemm", "bf16"))
        # Open buffers of such tiles go through registers where they have to.
        stated = self.portable(gathered, "gemm").replace(
            "64x64xbf16, open", "64x64xbf16, policy = double_buffered, open")
        if CHIP == "sm_90a":
            self.refused(text, "loads rows that are looked up one by one, of a window "
                         "whose columns may be cut; expected 64 valid columns, a "
                         "constant")
            # Windows that are whole.
            self.check("gemm", "bf16", shapes=((100, 70, 192), (257, 136, 64)),
                       text=gathered(program("gemm", "bf16"), "%bk"))
        if CHIP[:2] == "gf":
            self.refused(stated, r"copies \d+ rows at a time, of a tile that has no more "
                         "than 1 one stride apart; expected a buffer with policy = "
                         "register_staged")
        self.check("gemm", "bf16", text=self.portable(gathered, "gemm"),
                   shapes=self.FEW)

    def test_gathered_nn(self):
        self.check("gemm_nn", "bf16", text=self.portable(gathered_nn, "gemm_nn"),
                   shapes=self.FEW)

    def test_grouped(self):
        # Rows in groups are no box: a team that moves tiles copies them.
        texts = [self.portable(grouped, "gemm")]
        if CHIP == "sm_90a":
            texts.append(grouped(program("gemm", "bf16")))
        for text in texts:
            self.check("gemm", "bf16", text=text, shapes=self.FEW)

    @staticmethod
    def parts(text, whole):
        """The program with `whole`, which may have the loop's body as BODY, in place
        of its loop over windows."""
        loop = re.search(r"    %product = scf.for .*?\n(.*?)    }\n", text, re.S)
        return text.replace(loop[0], whole.replace("BODY", loop[1]))

    #: A third of the windows each time, of buffers that the outer loop allocates, and
    #: the first half of the windows before the second.
    NESTED = """    %c3 = arith.constant 3 : index
    %third = arith.ceildivui %steps, %c3 : index
    %product = scf.for %o = %c0 to %c3 step %c1 iter_args(%before = %zero) -> (!acc) {
      ALLOCS
      %from = arith.muli %o, %third : index
      %far = arith.addi %from, %third : index
      %to = arith.minsi %far, %steps : index
      %part = scf.for %i = %from to %to step %c1 iter_args(%sum = %before) -> (!acc) {
      BODY
      }
      scf.yield %part : !acc
    }
"""
    HALVES = """    %c2 = arith.constant 2 : index
    %half = arith.divui %steps, %c2 : index
    %first = scf.for %i = %c0 to %half step %c1 iter_args(%sum = %zero) -> (!acc) {
    BODY
    }
    %product = scf.for %i = %half to %steps step %c1 iter_args(%sum = %first) -> (!acc) {
    BODY
    }
"""

    @staticmethod
    def named(text):
        """The program with the slot of each load, of two, named by its iteration."""
        return re.sub(
            r"^( *)(%\w+) = (kvbuffer.dram_load %\w+ into %\w+)(.*)$",
            r"\1\2_count = arith.constant 2 : index\n"
            r"\1\2_slot = arith.remui %i, \2_count : index\n"
            r"\1\2 = \3[\2_slot]\4", text, flags=re.M)

    def test_loops(self):
        # Loops that go through the same slots: each finds them free.
        text = program("gemm", "bf16", "small")
        allocs = "".join(re.findall(r"    %._slots = kvbuffer.alloc.*\n", text))
        inside = self.parts(text.replace(allocs, ""),
                            self.NESTED.replace("ALLOCS", allocs))
        outside = self.parts(text, self.NESTED.replace("ALLOCS", ""))
        halves = self.parts(text, self.HALVES)
        second = "    %product = scf.for"
        for one, stages in ((inside, 3), (outside, 2), (halves, 2),
                            (halves.replace(second, "    kvbuffer.meet\n" + second),
                             2), (self.named(halves), 2)):
            self.check("gemm", "bf16", shapes=((65, 64, 520),),
                       text=one.replace("stages = 2", f"stages = {stages}"))

    @unittest.skipIf(CHIP != "sm_80", "rows are multiples of 16 bytes apart")
    def test_packed(self):
        self.check("gemm", "bf16", packed=True)
        self.check("gemm_nn", "f16", packed=True)


if __name__ == "__main__":
    unittest.main()
