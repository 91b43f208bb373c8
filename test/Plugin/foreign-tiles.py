# Tiles of caches that kvbuf does not know, of types in a plugin (Foreign/): a program
# of the tile stage, one for all chips, by lanes on the emulator and on whole tiles.
# RUN: %python %s %build/test/Plugin/Foreign/KVBufferForeign.so sm_80
# RUN: %python %s %build/test/Plugin/Foreign/KVBufferForeign.so sm_90a
# RUN: %python %s %build/test/Plugin/Foreign/KVBufferForeign.so gfx942
"""Attention over a cache that keeps the last tokens in place of the oldest, and over
one whose parts stand backwards, against float64.

    foreign-tiles.py PLUGIN CHIP
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Kernels" / "Inputs"))
from numbers16 import attend, check, from_bf16, to_bf16

CHIP = sys.argv.pop()
LOAD = f"--load-dialect-plugin={sys.argv.pop()}"
LOWER = "rocdl" if CHIP.startswith("gfx") else "nvvm"
RNG = np.random.default_rng()
NAN = 0x7FC0
BATCH, QUERIES, HEADS, KV, SIZE, TILE = 3, 5, 4, 2, 64, 32

#: What both programs begin with.
HEAD = """
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, warps = 4>
#buf = #kvbuffer.kv_buffer<32x64xbf16, open>
#qbuf = #kvbuffer.kv_buffer<64x64xbf16, open>
!cache = CACHE
!q = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>
!tile = TILE
!rows = !kvbuffer.tile<64x64xbf16>
!a = !kvbuffer.fragment<64x64xbf16, a>
!b = !kvbuffer.fragment<32x64xbf16, b>
!p = !kvbuffer.fragment<64x32xbf16, a>
!s = !kvbuffer.fragment<64x32xf32, acc>
!acc = !kvbuffer.fragment<64x64xf32, acc>
!row = !kvbuffer.fragment<64x1xf32, row>
module attributes {gpu.container_module, kvbuffer.target = "CHIP"} {
gpu.module @m {
  gpu.func @attend(%q: !q {kvbuffer.name = "q", kvbuffer.shape = ["batch", "seq_q", 4, 64]},
                   %k: !cache {kvbuffer.name = "k"}, %v: !cache {kvbuffer.name = "v"},
                   %o: !q {kvbuffer.name = "o", kvbuffer.shape = ["batch", "seq_q", 4, 64]})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule,
                         kvbuffer.grid = [#kvbuffer.size<ceildiv(seq_q, 64)>, 4, "batch"]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %number = gpu.block_id x
    %head = gpu.block_id y
    %batch = gpu.block_id z
    %of = arith.divui %head, %c2 : index
    %row = arith.muli %number, %c64 : index
    %queries = memref.dim %q, %c1 : !q
    %rest = arith.subi %queries, %row : index
    %keys = kvbuffer.cache.num_keys %k[%batch] new(%c0) : !cache
    %tiles = arith.ceildivui %keys, %c32 : index
    %q_tile = kvbuffer.dram_tile %q[%batch, %row, %head] valid(%rest) : !q -> !rows
    %o_tile = kvbuffer.dram_tile %o[%batch, %row, %head] valid(%rest) : !q -> !rows
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %none = kvbuffer.fragment_fill 0.0 : !s
    %low = kvbuffer.fragment_fill 0xFF800000 : !row
    %nothing = kvbuffer.fragment_fill 0.0 : !row
    %k_slots = kvbuffer.alloc : !kvbuffer.buffer<#buf>
    %v_slots = kvbuffer.alloc : !kvbuffer.buffer<#buf>
    %q_slot = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
"""
#: The loop over tiles of keys; where a tile of K and of V is staged, and given back.
LOOP = """
    %acc, %m, %l = scf.for %i = %c0 to %tiles step %c1
        iter_args(%a0 = %zero, %m0 = %low, %l0 = %nothing) -> (!acc, !row, !row) {
      %key = arith.muli %i, %c32 : index
      STAGE k
      %kf = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
      %dots = kvbuffer.mma %qf, %kf, %none {transpose_b} : !a, !b, !s
      %h = kvbuffer.mask %dots rows(%row, %queries) keys(%key, %keys)
        {mask = #kvbuffer.mask<causal = true>} : !s
      %w, %m1, %l1, %r = kvbuffer.online_softmax %h, %m0, %l0 {scale = 0.125 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %r : !acc, !row
      STAGE v
      %vf = kvbuffer.fragment_load %vs[0, 0] contracted(rows) : !kvbuffer.staged<#buf> -> !b
      %a2 = kvbuffer.mma %w, %vf, %a1 : !p, !b, !acc
      FREE
      scf.yield %a2, %m1, %l1 : !acc, !row, !row
    }
    %mean, %lse = kvbuffer.softmax_finish %acc, %m, %l {scale = 0.125 : f32} : !acc, !row
    %rounded = kvbuffer.fragment_convert %mean : !acc -> !kvbuffer.fragment<64x64xbf16, acc>
    kvbuffer.fragment_store %rounded, %o_tile : !kvbuffer.fragment<64x64xbf16, acc>, !rows
"""
MAKE = "%X_tile = kvbuffer.cache_tile %X[%batch, %of, %key] from %c0 upto %keys : !cache -> !tile\n"
#: Q and the tiles by all warps.
DIRECT = (HEAD + """
    %q_token = kvbuffer.dram_load %q_tile into %q_slot : !rows, !kvbuffer.buffer<#qbuf>
    %qs = kvbuffer.lds_stage %q_token : !kvbuffer.token<#qbuf>
    %qf = kvbuffer.fragment_load %qs[0, 0] contracted(cols) : !kvbuffer.staged<#qbuf> -> !a
""" + re.sub(r"STAGE (\w)", lambda m: (MAKE + """
      %X_token = kvbuffer.dram_load %X_tile into %X_slots : !tile, !kvbuffer.buffer<#buf>
      %Xs = kvbuffer.lds_stage %X_token : !kvbuffer.token<#buf>
""").replace("X", m[1]), LOOP).replace("FREE", "") + "    gpu.return\n  }\n}\n}\n")
#: By a team, through rings.
RINGS = (HEAD + """
    %q_ring = kvbuffer.ring %q_slot from @load to [@work] : !kvbuffer.buffer<#qbuf>
    %k_ring = kvbuffer.ring %k_slots from @load to [@work] : !kvbuffer.buffer<#buf>
    %v_ring = kvbuffer.ring %v_slots from @load to [@work] : !kvbuffer.buffer<#buf>
    kvbuffer.teams {
    kvbuffer.team @work warps(4) {
    %qs = kvbuffer.ring_wait %q_ring[%c0] : !kvbuffer.ring<#qbuf>
    %qf = kvbuffer.fragment_load %qs[0, 0] contracted(cols) : !kvbuffer.staged<#qbuf> -> !a
""" + re.sub(r"STAGE (\w)", r"%\1s = kvbuffer.ring_wait %\1_ring[%i] : !kvbuffer.ring<#buf>", LOOP)
    .replace("FREE", """kvbuffer.ring_release %k_ring[%i] : !kvbuffer.ring<#buf>
      kvbuffer.ring_release %v_ring[%i] : !kvbuffer.ring<#buf>""") + """
    kvbuffer.ring_release %q_ring[%c0] : !kvbuffer.ring<#qbuf>
    }
    kvbuffer.team @load warps(4) {
      kvbuffer.ring_load %q_tile into %q_ring[%c0] : !rows, !kvbuffer.ring<#qbuf>
      scf.for %i = %c0 to %tiles step %c1 {
        %key = arith.muli %i, %c32 : index
""" + "".join((MAKE + "kvbuffer.ring_load %X_tile into %X_ring[%i] : !tile, !kvbuffer.ring<#buf>\n")
              .replace("X", x) for x in "kv") + """
      }
    }
    }
    gpu.return
  }
}
}
""")


def program(text, cache, page=None):
    tile = f"!kvbuffer.tile<32x64xbf16{f', page_size = {page}' if page else ''}>"
    return text.replace("CACHE", cache).replace("TILE", tile).replace("CHIP", CHIP)


def lowered(text):
    return subprocess.run(
        ["kvbuf-opt", "-", LOAD,
         f"--pass-pipeline=builtin.module(kvbuf-lower-to-{LOWER}{{chip={CHIP}}})"],
        input=text, capture_output=True, text=True)


class Sequences:
    """Keys and values of sequences, and the queries of their last tokens."""

    def __init__(self, lengths):
        self.lengths = lengths
        self.q = to_bf16(RNG.standard_normal((BATCH, QUERIES, HEADS, SIZE)))
        self.rows = [[to_bf16(RNG.standard_normal((n, KV, SIZE))) for n in lengths]
                     for _ in "kv"]

    def rolling(self, rows, count):
        """The tensors, of which the cache keeps the last `rows` of `count` tokens."""
        files = {}
        for name, of in zip("kv", self.rows):
            data = np.full((BATCH, rows, KV, SIZE), NAN, np.uint16)
            for b, own in enumerate(of):
                for i, row in enumerate(own):
                    data[b, (count[b] - len(own) + i) % rows] = row
            files[name] = data
            files[f"{name}.count"] = np.array(count, np.int32)
        return files

    def shelves(self, shelves, run):
        files = {}
        for name, of in zip("kv", self.rows):
            data = np.full((BATCH, shelves, run, KV, SIZE), NAN, np.uint16)
            for b, own in enumerate(of):
                for i, row in enumerate(own):
                    data[b, shelves - 1 - i // run, i % run] = row
            files[name] = data
            files[f"{name}.tokens"] = np.array(self.lengths, np.int32)
        return files

    def counted(self, rows):
        files = {}
        for name, of in zip("kv", self.rows):
            data = np.full((BATCH, rows, KV, SIZE), NAN, np.uint16)
            for b, own in enumerate(of):
                data[b, :len(own)] = own
            files[name] = data
            files[f"{name}.lengths"] = np.array(self.lengths, np.int32)
        return files

    def exact(self, b, left=None):
        """The output of a sequence, and the same with the usual rounding; each query
        sees `left` keys before its own."""
        q = from_bf16(self.q[b])
        k, v = (np.repeat(from_bf16(of[b]), HEADS // KV, axis=1) for of in self.rows)
        key, own = np.arange(len(k)), np.arange(QUERIES)[:, None] + len(k) - QUERIES
        seen = (key <= own) & (key >= own - (len(k) if left is None else left))
        exact, base, _ = attend(0.125 * np.einsum("ihd,jhd->hij", q, k), seen,
                                v.transpose(1, 0, 2))
        return exact.transpose(1, 0, 2), base.transpose(1, 0, 2)

    def check(self, test, out, left=None):
        for b in range(BATCH):
            check(test, from_bf16(out[b]), *self.exact(b, left))


class Base(unittest.TestCase):
    def run_on(self, text, case, files, left=None):
        target = lowered(text)
        self.assertEqual(target.returncode, 0, target.stderr)
        self.assertNotIn("foreign.", target.stdout)
        out = np.full(case.q.shape, NAN, np.uint16)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                ["kvbuf-compile", "-", f"--target={CHIP}", "--code=none", "-o",
                 f"{folder}/made.kvbuf"], input=target.stdout, text=True, check=True)
            kvbuf.load(f"{folder}/made.kvbuf")(
                q=case.q, o=out, device=kvbuf.Device("emulator"),
                **{name.replace(".", "_"): x for name, x in files.items()})
        case.check(self, out, left)
        return target.stdout

    def rolling(self):
        """Sequences that have lost tokens, that have room left, and that stand as
        they came."""
        rows = 70
        count = [rows + 13, 37, 3 * rows]
        case = Sequences([min(n, rows) for n in count])
        return case, case.rolling(rows, count)

    def shelves(self, run):
        case = Sequences([run + 5, 2 * run, 64])
        return case, case.shelves(-(-max(case.lengths) // run), run)


class Tiles(Base):
    def test_rows_one_by_one(self):
        """Each row is found when it is loaded; in rings, by copies of lanes."""
        case, files = self.rolling()
        self.run_on(program(DIRECT, "!foreign.rolling<64>", 1), case, files)
        if CHIP != "sm_80":
            self.run_on(program(RINGS, "!foreign.rolling<64>", 1), case, files)

    def test_windows(self):
        """Tiles of which the first rows are not there, either."""
        case, files = self.rolling()
        text = program(DIRECT, "!foreign.rolling<64>", 1).replace("causal = true>", "causal = true, left = 17>")
        text = text.replace("    %tiles = arith.ceildivui %keys,", """
    %lo, %hi, %inner, %outer = kvbuffer.key_range %row of %queries keys %keys
      {BM = 64 : i64, mask = #kvbuffer.mask<causal = true, left = 17>}
    %before = arith.divui %lo, %c32 : index
    %tiles = arith.ceildivui %hi,""")
        text = text.replace("scf.for %i = %c0", "scf.for %i = %before").replace("from %c0", "from %lo")
        self.run_on(text, case, files, left=17)

    def test_runs(self):
        """Of parts that hold whole tiles, each of which is a box; and of smaller ones."""
        case, files = self.shelves(32)
        text = program(DIRECT if CHIP == "sm_80" else RINGS, "!foreign.shelves<64, 32>")
        made = self.run_on(text, case, files)
        self.assertEqual("tensor_map" in made, CHIP == "sm_90a")
        case, files = self.shelves(8)
        self.run_on(program(DIRECT, "!foreign.shelves<64, 8>", 8), case, files)

    def test_stated(self):
        """Rows of which the type states where they are. The tensor goes on, with NaN,
        where a sequence ends."""
        case = Sequences([37, 64, 5])
        self.run_on(program(DIRECT if CHIP == "sm_80" else RINGS, "!foreign.counted<64, 0>"),
                    case, case.counted(70))


@unittest.skipIf(CHIP != "sm_80", "the same for all chips")
class Anywhere(Base):
    def test_made_of_memrefs(self):
        text = program(DIRECT, "!foreign.rolling<64>", 1)
        data = "memref<?x?x2x64xbf16, strided<[?, ?, ?, 1]>>"
        for x in "kv":
            text = text.replace(
                f'%{x}: !cache {{kvbuffer.name = "{x}"}}',
                f'%{x}_data: {data} {{kvbuffer.name = "{x}", kvbuffer.shape = ["batch", "rows", 2, 64]}}, '
                f'%{x}_count: memref<?xi32> {{kvbuffer.name = "{x}.count", kvbuffer.shape = ["batch"]}}')
            text = text.replace(
                "    %number =", f"    %{x} = kvbuffer.make_cache %{x}_data indices(%{x}_count : memref<?xi32>) "
                f": {data} -> !cache\n    %number =")
        case, files = self.rolling()
        self.run_on(text, case, files)

    def test_on_tiles(self):
        """The tile interpreter executes what the type emits, and says what is wrong."""
        case, files = self.rolling()
        out = np.full(case.q.shape, NAN, np.uint16)
        for b in range(BATCH):
            out[b] = to_bf16(case.exact(b)[0])
        text = program(DIRECT, "!foreign.rolling<64>", 1)
        with tempfile.TemporaryDirectory() as folder:
            options = []
            for name, x in ({"q": case.q} | files).items():
                np.save(f"{folder}/{name}.npy", x)
                options += ["--input", f"{name}={folder}/{name}.npy"]
            np.save(f"{folder}/o.npy", out)

            def run(text):
                return subprocess.run(
                    ["kvbuf-tile-run", LOAD, *options, "--expect", f"o={folder}/o.npy"],
                    input=text, capture_output=True, text=True)
            result = run(text)
            self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
            more = run(text.replace("new(%c0)", "new(%c1)").replace(
                "upto %keys", "upto %more").replace(
                "    %tiles =", "    %more = arith.addi %keys, %c1 : index\n    %tiles ="))
            self.assertIn("asks for token 70 of sequence 0, for which k has no row", more.stderr)

    def refused(self, text, message):
        result = lowered(text)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(message, result.stderr)

    def test_refused(self):
        shelves = program(DIRECT, "!foreign.shelves<64, 32>")
        self.refused(
            shelves.replace("%key = arith.muli %i, %c32", "%key = arith.addi %i, %c1"),
            "'kvbuffer.cache_tile' op starts at a key that is not known to be a multiple "
            "of the tile's 32 rows, so that the tile may lie in two pages; expected a "
            "multiple of a constant, or page_size = 32 on the tile")
        self.refused(
            program(DIRECT, "!foreign.rolling<64>"),
            "'kvbuffer.cache_tile' op a tile of 32 rows spans pages of 1: expected "
            "page_size = 1 on the tile")
        self.refused(
            program(DIRECT, "!foreign.counted<64, 32>"),
            "'kvbuffer.cache_tile' op is of '!foreign.counted<64, 32>', which states "
            "where its rows are; expected a table for runs of tokens")
        two = program(DIRECT, "!foreign.rolling<64>", 1)
        two = two.replace(
            "      %k_token = kvbuffer.dram_load %k_tile",
            "      %first = arith.cmpi eq, %i, %c0 : index\n"
            "      %other = kvbuffer.cache_tile %v[%batch, %of, %key] from %c0 upto %keys : !cache -> !tile\n"
            "      %either = arith.select %first, %k_tile, %other : !tile\n"
            "      %k_token = kvbuffer.dram_load %either")
        self.refused(
            two, "'kvbuffer.dram_load' op loads a tile of a cache whose type finds each "
            "row, or another tile; expected tiles of one cache")


@unittest.skipIf(CHIP != "sm_90a", "of clusters")
class Clusters(unittest.TestCase):
    def test_refused(self):
        shared = program(RINGS, "!foreign.rolling<64>", 1).replace(
            "kernel attributes {", "kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, ").replace(
            "kvbuffer.ring %k_slots from @load to [@work] :",
            "kvbuffer.ring %k_slots from @load to [@work] {shared} :")
        result = lowered(shared)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(
            "'kvbuffer.ring_load' op shares rows, each of which the type of their cache "
            "finds, among the blocks of a cluster; expected a ring without shared",
            result.stderr)


if __name__ == "__main__":
    unittest.main()
