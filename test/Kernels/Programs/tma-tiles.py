# Tensor maps of caches by the makers of KVCacheT, executed on the emulator.
# RUN: %python %s sm_90a
# RUN: %python %s sm_100a
"""Kernels by lanes whose copy engine moves boxes of a cache by
`kvbuffer.cache.create_*_tma_tile`; what lies in shared memory behind them is
compared with numpy's, byte by byte.

    tma-tiles.py CHIP

Rows are gathered on sm_100a alone; ptxas assembles that code where it is found. The
swizzle is that of the PTX ISA, "Swizzling modes".
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import kvbuf

CHIP = sys.argv.pop()
RNG = np.random.default_rng()

TEXT = """
!kv = !kvbuffer.cache<{cache}>
gpu.module @m {{
  gpu.func @copy(%c: !kv {{kvbuffer.name = "c"}},
                 %where: memref<?x8xi32> {{kvbuffer.name = "where", kvbuffer.shape = ["n", 8]}},
                 %out: memref<?x{words}xi32> {{kvbuffer.name = "out", kvbuffer.shape = ["n", {words}]}})
      workgroup(%s : memref<{words}xi32, #gpu.address_space<workgroup>> {{llvm.align = 1024}},
                %bar : memref<1xi64, #gpu.address_space<workgroup>>)
      kernel attributes {{kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 32, 1, 1>,
                         kvbuffer.grid = ["n", 1, 1]}} {{
    %c0 = arith.constant 0 : index
    %i = gpu.block_id x
    %lane = gpu.thread_id x
    %one = arith.constant 1 : i32
    %bytes = arith.constant {bytes} : i32
    %word = memref.extract_aligned_pointer_as_index %bar : memref<1xi64, #gpu.address_space<workgroup>> -> index
    %word64 = arith.index_cast %word : index to i64
    %full = llvm.inttoptr %word64 : i64 to !llvm.ptr<3>
    %line = memref.extract_aligned_pointer_as_index %s : memref<{words}xi32, #gpu.address_space<workgroup>> -> index
    %line64 = arith.index_cast %line : index to i64
    %map = kvbuffer.cache.create_{maker}_tile %c {{{attributes}}} : !kv -> !llvm.ptr
    %first = arith.cmpi eq, %lane, %c0 : index
    scf.if %first {{
      nvvm.mbarrier.init %full, %one : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32
{copies}
    }}
    gpu.barrier
    %parity = arith.constant 0 : i32
    %ticks = arith.constant 10000000 : i32
    nvvm.mbarrier.try_wait.parity %full, %parity, %ticks : !llvm.ptr<3>, i32, i32
    %n = arith.constant {words} : index
    %step = arith.constant 32 : index
    scf.for %j = %lane to %n step %step {{
      %x = memref.load %s[%j] : memref<{words}xi32, #gpu.address_space<workgroup>>
      memref.store %x, %out[%i, %j] : memref<?x{words}xi32>
    }}
    gpu.return
  }}
}}
"""

#: One copy: coordinates from columns %FIRST on of `where`, to byte AT.
COPY = """
      %kN = arith.constant {at} : i64
      %aN = arith.addi %line64, %kN : i64
      %pN = llvm.inttoptr %aN : i64 to !llvm.ptr<3>
{loads}
      nvvm.cp.async.bulk.tensor.shared.cluster.global %pN, %map, %full, box[{list}]
        {{mode = #nvvm.tma_load_mode<{mode}>, isCTAOnly = true}} : !llvm.ptr<3>, !llvm.ptr
"""


def program(cache, maker, attributes, bytes_, copies):
    """`copies`: for each the columns of `where` that are its coordinates."""
    text, size = "", bytes_ // len(copies)
    for n, columns in enumerate(copies):
        loads = "\n".join(
            f"      %i{n}_{d} = arith.constant {column} : index\n"
            f"      %x{n}_{d} = memref.load %where[%i, %i{n}_{d}] : memref<?x8xi32>"
            for d, column in enumerate(columns))
        text += COPY.format(
            at=n * size, loads=loads,
            list=", ".join(f"%x{n}_{d}" for d in range(len(columns))),
            mode="tile_gather4" if "gather4" in maker else "tile"
        ).replace("N", str(n))
    return TEXT.format(cache=cache, maker=maker, attributes=attributes,
                       words=bytes_ // 4, bytes=bytes_, copies=text)


def swizzled(rows, span, start=0):
    """The bytes of rows, one after the other, as they lie in shared memory."""
    flat = np.ascontiguousarray(rows).view(np.uint8).reshape(-1, 16)
    if not span:
        return flat.reshape(-1)
    out = np.empty_like(flat)
    for unit in range(len(flat)):
        row, place = divmod(unit + start // 16, 8)
        out[row * 8 + (place ^ row % (span // 16)) - start // 16] = flat[unit]
    return out.reshape(-1)


class TmaTiles(unittest.TestCase):
    def run_case(self, text, arrays, where):
        artifact = kvbuf.compile(text, target=CHIP, machine_code=False)
        out = np.zeros((len(where), int(text.split("memref<?x")[2].split("x")[0])),
                       np.int32)
        artifact(c=arrays["c"], where=np.int32(where), out=out,
                 **{k: v for k, v in arrays.items() if k != "c"})
        return artifact, out.view(np.uint8)

    def paged(self, blocks, page, heads, depth, dtype, gap=0):
        """Pages with K and V in one tensor: every second block of rows is NaN."""
        info = np.iinfo(dtype)
        whole = RNG.integers(0, info.max, (blocks, 2, page, heads, depth + gap),
                             dtype, endpoint=True)
        return {"c": whole[:, 0, :, :, :depth],
                "c.table": np.zeros((1, 1), np.int32),
                "c.lengths": np.zeros(1, np.int32)}

    def names(self, arrays):
        return {k.replace(".", "_") if k != "c" else k: v
                for k, v in arrays.items()}

    def test_tile(self):
        blocks, page, heads, size = 5, 24, 3, 64
        arrays = self.paged(blocks, page, heads, size, np.uint16)
        for span, columns in (128, 64), (64, 32), (0, 40):
            where = []
            for _ in range(6):
                block, at = RNG.integers(0, blocks), RNG.integers(0, page - 8)
                where.append([RNG.integers(0, 2) * (span // 4),
                              RNG.integers(0, heads), block * 2 * page + at]
                             + [0] * 5)
            text = program(
                f"paged, bf16, heads = {heads}, head_size = {size}, page_size = {page}",
                "tma", f"BN = 8 : i64, BK = {columns} : i64, swizzle = {span} : i64",
                8 * columns * 2, [(0, 1, 2)])
            _, out = self.run_case(text, self.names(arrays), where)
            for (col, head, row, *_), got in zip(where, out):
                want = np.zeros((8, columns), np.uint16)
                block, at = divmod(row, 2 * page)
                part = arrays["c"][block, at:at + 8, head, col:col + columns]
                want[:, :part.shape[1]] = part
                np.testing.assert_array_equal(got, swizzled(want, span))

    def test_ragged(self):
        rows, heads, size = 50, 2, 64
        c = RNG.integers(0, 0xFFFF, (rows, heads, size), np.uint16)
        arrays = {"c": c, "c_offsets": np.int32([0, rows])}
        where = [[0, 16 - n, head, row + n, 0, 0, 0, 0]
                 for n, head, row in ((16, 0, 3), (5, 1, 20), (1, 0, 49), (0, 1, 7),
                                      (10, 1, 40), (16, 1, 0))]
        text = program(f"ragged, bf16, heads = {heads}, head_size = {size}",
                       "ragged_tma", "BN = 16 : i64, swizzle = 128 : i64",
                       16 * 128, [(0, 1, 2, 3)])
        _, out = self.run_case(text, arrays, where)
        for (_, rest, head, end, *_), got in zip(where, out):
            n = 16 - rest
            want = np.zeros((16, size), np.uint16)
            want[:n] = c[end - n:end, head]
            np.testing.assert_array_equal(got, swizzled(want, 128))

    def test_rope(self):
        blocks, page, content, rope = 4, 16, 64, 32
        arrays = self.paged(blocks, page, 1, content + 2 * rope, np.uint8)
        where = [[0, 0, block * 2 * page + at] + [0] * 5
                 for block, at in ((0, 0), (3, 8), (2, 5))]
        text = program(
            f"paged, f8E4M3FN, heads = 1, head_size = {content}, "
            f"cache_depth = {content + 2 * rope}, page_size = {page}", "rope_tma",
            f"BN = 8 : i64, BK = {rope} : i64, padded_depth = {content} : i64, "
            "swizzle = 64 : i64", 8 * rope * 2, [(0, 1, 2)])
        _, out = self.run_case(text, self.names(arrays), where)
        for (_, _, row, *_), got in zip(where, out):
            block, at = divmod(row, 2 * page)
            want = arrays["c"][block, at:at + 8, 0, content:]
            np.testing.assert_array_equal(got, swizzled(want, 64))

    GATHERS = "rows are gathered on sm_100a"

    def gathered(self, arrays, where, page, n):
        """The rows that copy n of each line of `where` asks for."""
        rows = []
        for line in where:
            picked = []
            for row in line[1 + 4 * n:5 + 4 * n] if n == 0 else line[4:8]:
                block, at = divmod(row, 2 * page)
                there = 0 <= row and block < len(arrays["c"])
                picked.append(arrays["c"][block, at].reshape(-1) if there else
                              np.zeros(arrays["c"][0, 0].size, arrays["c"].dtype))
            rows.append(picked)
        return rows

    def rows(self, blocks, page, count):
        return [int(b * 2 * page + t) for b, t in zip(
            RNG.integers(0, blocks, count), RNG.integers(0, page, count))]

    @unittest.skipIf(CHIP != "sm_100a", GATHERS)
    def test_gather4(self):
        blocks, page, width = 6, 8, 64
        arrays = self.paged(blocks, page, 1, width, np.uint16)
        where = [[0] + self.rows(blocks, page, 4) + [0] * 3 for _ in range(8)]
        # Outside: zeros.
        where[0][2], where[1][4] = -1, 10 ** 6
        cache = f"paged, bf16, heads = 1, head_size = {width}, page_size = {page}"
        for span, dtype, size in (128, "", 2), (0, "", 2), (0, "i64", 8):
            attributes = f"tile_width = {width * 2 // size} : i64, swizzle = {span} : i64"
            if dtype:
                attributes += (f", tma_dtype = {dtype}, tile_stride = "
                               f"{width * 2 // size} : i64")
            text = program(cache, "gather4_tma", attributes, 4 * width * 2,
                           [(0, 1, 2, 3, 4)])
            artifact, out = self.run_case(text, self.names(arrays), where)
            for want, got in zip(self.gathered(arrays, where, page, 0), out):
                np.testing.assert_array_equal(got, swizzled(np.array(want), span))
        self.assemble(text)

    @unittest.skipIf(CHIP != "sm_100a", GATHERS)
    def test_several_heads_and_copies(self):
        blocks, page, heads, size = 4, 8, 3, 32
        arrays = self.paged(blocks, page, heads, size, np.uint16)
        where = [[size] + self.rows(blocks, page, 7) for _ in range(4)]
        text = program(
            f"paged, bf16, heads = {heads}, head_size = {size}, page_size = {page}",
            "gather4_tma", f"tile_height = 8 : i64, tile_width = {size} : i64, "
            "swizzle = 64 : i64, l2_promotion = 256 : i64", 8 * size * 2,
            [(0, 1, 2, 3, 4), (0, 4, 5, 6, 7)])
        _, out = self.run_case(text, self.names(arrays), where)
        for k, got in enumerate(out):
            want = np.array([rows[k] for n in (0, 1) for rows in
                             [self.gathered(arrays, where, page, n)]])
            want = want.reshape(8, -1)[:, size:2 * size]
            np.testing.assert_array_equal(got, swizzled(want, 64))

    @unittest.skipIf(CHIP != "sm_100a", GATHERS)
    def test_rope_gather4(self):
        blocks, page, content, rope = 4, 16, 64, 32
        arrays = self.paged(blocks, page, 1, content + 2 * rope, np.uint8)
        where = [[0] + self.rows(blocks, page, 4) + [0] * 3 for _ in range(4)]
        text = program(
            f"paged, f8E4M3FN, heads = 1, head_size = {content}, "
            f"cache_depth = {content + 2 * rope}, page_size = {page}",
            "rope_gather4_tma", f"tile_width = {rope} : i64, padded_depth = "
            f"{content} : i64", 4 * rope * 2, [(0, 1, 2, 3, 4)])
        _, out = self.run_case(text, self.names(arrays), where)
        for want, got in zip(self.gathered(arrays, where, page, 0), out):
            np.testing.assert_array_equal(got, np.array(want)[:, content:].reshape(-1))

    def assemble(self, text):
        """The code with gathering copies is what ptxas takes for the chip."""
        tool = shutil.which("ptxas")
        if not tool or CHIP not in subprocess.run(
                [tool, "--help"], capture_output=True, text=True).stdout:
            return
        with tempfile.TemporaryDirectory() as folder:
            ptx = pathlib.Path(folder) / "gather.ptx"
            subprocess.run(["kvbuf-compile", "-", f"--target={CHIP}", "--emit=ptx",
                            "-o", ptx], input=text, text=True, check=True)
            self.assertIn("tile::gather4", ptx.read_text())
            subprocess.run([tool, f"-arch={CHIP}", ptx, "-o", "/dev/null"],
                           check=True)

    def test_rows_of_another_stride(self):
        if CHIP != "sm_100a":
            with self.assertRaisesRegex(kvbuf.Error, "gathers no rows"):
                kvbuf.compile(program(
                    "paged, bf16, heads = 1, head_size = 64, page_size = 8",
                    "gather4_tma", "tile_width = 64 : i64", 512,
                    [(0, 1, 2, 3, 4)]), target=CHIP, machine_code=False)
            return
        arrays = self.paged(4, 8, 1, 64, np.uint16, gap=8)
        text = program("paged, bf16, heads = 1, head_size = 64, page_size = 8",
                       "gather4_tma", "tile_width = 64 : i64, tile_stride = 64 : i64",
                       512, [(0, 1, 2, 3, 4)])
        with self.assertRaisesRegex(kvbuf.Error, "rows are 144 bytes apart; the "
                                    "kernel's tensor map is of rows 128 bytes apart"):
            self.run_case(text, self.names(arrays), [[0] * 8])


if __name__ == "__main__":
    unittest.main()
