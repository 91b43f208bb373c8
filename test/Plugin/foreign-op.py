# An op of a dialect that kvbuf does not know, in a plugin (Foreign/), is lowered
# to lanes and executed on whole tiles like kvbuf's own.
# RUN: %python %s %build/test/Plugin/Foreign/KVBufferForeign.so sm_80
# RUN: %python %s %build/test/Plugin/Foreign/KVBufferForeign.so sm_90a
# RUN: %python %s %build/test/Plugin/Foreign/KVBufferForeign.so gfx950
"""S = affine(Q K^T), by lanes against float64 and on tiles by the tile interpreter.

    foreign-op.py PLUGIN CHIP
"""

import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import kvbuf

CHIP = sys.argv.pop()
LOAD = f"--load-dialect-plugin={sys.argv.pop()}"
RNG = np.random.default_rng()
#: A schedule, how to lower, and another layout of accumulators than its own.
CHIPS = {
    "sm_80": ("BM = 32, BN = 32, BK = 32, warps = 2, mma_shape = [16, 8, 16]",
              "nvvm", "mma_sync, acc, shape = [16, 8, 16], warps = [2, 1], "
              "swapped = true"),
    "gfx950": ("BM = 64, BN = 32, BK = 32, warps = 2, mma_shape = [32, 32, 16], "
               "swap_a_b = true", "rocdl",
               "mfma, acc, shape = [16, 16, 32], warps = [2, 1], swapped = true"),
}
CHIPS["sm_90"] = CHIPS["sm_90a"] = CHIPS["sm_80"]
SCHEDULE, LOWER, OTHER = CHIPS[CHIP]
ROWS = int(re.search(r"BM = (\d+)", SCHEDULE)[1])

PROGRAM = f"""
#buf = #kvbuffer.kv_buffer<32x32xbf16, BK = 32>
!in = memref<?x32xbf16, strided<[?, 1]>>
!out = memref<?x32xf32, strided<[?, 1]>>
!scores = !kvbuffer.fragment<{ROWS}x32xf32, acc>
!row = !kvbuffer.fragment<{ROWS}x1xf32, row>
module attributes {{gpu.container_module, kvbuffer.target = "{CHIP}"}} {{
gpu.module @m {{
  gpu.func @scores(%q: !in {{kvbuffer.name = "q", kvbuffer.shape = ["rows", 32]}},
                   %k: !in {{kvbuffer.name = "k", kvbuffer.shape = [32, 32]}},
                   %s: !out {{kvbuffer.name = "s", kvbuffer.shape = ["rows", 32], kvbuffer.access = "write"}})
      kernel attributes {{kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #kvbuffer.schedule<{SCHEDULE}>, kvbuffer.grid = [1, 1, 1]}} {{
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %rows = arith.constant {ROWS} : index
    %qt = kvbuffer.dram_tile %q[%c0, %c0] valid(%rows, %c32) : !in -> !kvbuffer.tile<{ROWS}x32xbf16>
    %a = kvbuffer.tile_fragment %qt : !kvbuffer.tile<{ROWS}x32xbf16> -> !kvbuffer.fragment<{ROWS}x32xbf16, a>
    %slots = kvbuffer.alloc : !kvbuffer.buffer<#buf>
    %kt = kvbuffer.dram_tile %k[%c0, %c0] valid(%c32, %c32) : !in -> !kvbuffer.tile<32x32xbf16>
    %token = kvbuffer.dram_load %kt into %slots[%c0] : !kvbuffer.tile<32x32xbf16>, !kvbuffer.buffer<#buf>
    %ks = kvbuffer.lds_stage %token : !kvbuffer.token<#buf>
    %b = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<32x32xbf16, b>
    %zero = kvbuffer.fragment_fill 0.0 : !scores
    %dots = kvbuffer.mma %a, %b, %zero {{transpose_b}} : !kvbuffer.fragment<{ROWS}x32xbf16, a>, !kvbuffer.fragment<32x32xbf16, b>, !scores
    %half = kvbuffer.fragment_fill 0.5 : !row
    %y = "foreign.OP"(%dots, %half) {{slope = 3.0 : f32ATTR}} : (!scores, !row) -> !scores
    %st = kvbuffer.dram_tile %s[%c0, %c0] valid(%rows, %c32) : !out -> !kvbuffer.tile<{ROWS}x32xf32>
    kvbuffer.fragment_store %y, %st : !scores, !kvbuffer.tile<{ROWS}x32xf32>
    gpu.return
  }}
}}
}}
"""


def to_bf16(x):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def lowered(text, plugin=True):
    return subprocess.run(
        ["kvbuf-opt", "-", *([LOAD] if plugin else []),
         f"--pass-pipeline=builtin.module(kvbuf-lower-to-{LOWER}{{chip={CHIP}}})"],
        input=text, capture_output=True, text=True)


class Foreign(unittest.TestCase):
    def run_scores(self, sums, layout=None):
        text = PROGRAM.replace("OP", "affine").replace("ATTR",
                                                       ", sums" if sums else "")
        if layout:
            text = text.replace("xf32, acc>", f"xf32, acc, #kvbuffer.mma<{layout}>>")
        target = lowered(text)
        self.assertEqual(target.returncode, 0, target.stderr)
        q, k = (to_bf16(RNG.standard_normal((n, 32))) for n in (ROWS, 32))
        out = np.full((ROWS, 32), np.nan, np.float32)
        kvbuf.compile(target.stdout, target=CHIP, machine_code=False)(
            q=q, k=k, s=out, device=kvbuf.Device("emulator"))
        exact = from_bf16(q) @ from_bf16(k).T * 0.5 + 3 * np.arange(32)
        if sums:
            exact = np.broadcast_to(exact.sum(1, keepdims=True), exact.shape)
        np.testing.assert_allclose(out, exact, rtol=1e-5, atol=1e-3)

    def test_lanes(self):
        self.run_scores(sums=False)

    def test_rows(self):
        self.run_scores(sums=True)

    def test_layout(self):
        """The layout that the scores name is the result's and the rows' too."""
        self.run_scores(sums=False, layout=OTHER)
        self.run_scores(sums=True, layout=OTHER)

    def column_sums(self, of="%ks", kind="staged<#buf>"):
        """The program with the sums of K's columns, which threads leave in LDS,
        beside the scores; q, k and what is expected."""
        text = re.sub(r'"foreign.OP"\(%dots, %half\) {.*} : \(!scores, !row\)',
                      f'"foreign.column_sums"(%dots, {of}) : '
                      f"(!scores, !kvbuffer.{kind})", PROGRAM)
        q, k = (to_bf16(RNG.standard_normal((n, 32))) for n in (ROWS, 32))
        exact = from_bf16(q) @ from_bf16(k).T + from_bf16(k).sum(0)
        return text, q, k, exact

    def test_staged_by_lanes(self):
        text, q, k, exact = self.column_sums()
        # Rows of 64 bytes, swizzled.
        for swizzle in "", ", swizzle = [2, 0, 3]":
            target = lowered(text.replace("BK = 32>", f"BK = 32{swizzle}>"))
            self.assertEqual(target.returncode, 0, target.stderr)
            out = np.full((ROWS, 32), np.nan, np.float32)
            kvbuf.compile(target.stdout, target=CHIP, machine_code=False)(
                q=q, k=k, s=out, device=kvbuf.Device("emulator"))
            np.testing.assert_allclose(out, exact, rtol=1e-5, atol=1e-3)

    def test_tile(self):
        """Of a tile in DRAM, 27 rows of which are there: by lanes, and on tiles."""
        text, q, k, _ = self.column_sums("%part", "tile<32x32xbf16>")
        text = text.replace("    %token", """    %c27 = arith.constant 27 : index
    %part = kvbuffer.dram_tile %k[%c0, %c0] valid(%c27, %c32) : !in -> !kvbuffer.tile<32x32xbf16>
    %token""")
        exact = from_bf16(q) @ from_bf16(k).T + from_bf16(k)[:27].sum(0)
        target = lowered(text)
        self.assertEqual(target.returncode, 0, target.stderr)
        out = np.full((ROWS, 32), np.nan, np.float32)
        kvbuf.compile(target.stdout, target=CHIP, machine_code=False)(
            q=q, k=k, s=out, device=kvbuf.Device("emulator"))
        np.testing.assert_allclose(out, exact, rtol=1e-5, atol=1e-3)
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for name, array in ("q", q), ("k", k), ("s", exact.astype(np.float32)):
                files += ["--expect" if name == "s" else "--input",
                          f"{name}={folder}/{name}.npy"]
                np.save(f"{folder}/{name}.npy", array)
            result = subprocess.run(["kvbuf-tile-run", LOAD, *files], input=text,
                                    capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, result.stderr + result.stdout)

    def test_staged_by_tiles(self):
        text, q, k, exact = self.column_sums()
        with tempfile.TemporaryDirectory() as folder:
            files = {}
            for name, array in ("q", q), ("k", k), ("s", exact.astype(np.float32)):
                files[name] = f"{name}={folder}/{name}.npy"
                np.save(f"{folder}/{name}.npy", array)
            run = ["kvbuf-tile-run", LOAD, "--input", files["q"], "--input",
                   files["k"], "--expect", files["s"]]
            result = subprocess.run(run, input=text, capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
            # A slot is not read after a second load into it.
            early = re.sub(r"(    %b = .*\n)",
                           r"\1    kvbuffer.meet\n    %again = kvbuffer.dram_load %kt into %slots[%c0] : "
                           "!kvbuffer.tile<32x32xbf16>, !kvbuffer.buffer<#buf>\n"
                           "    %k2 = kvbuffer.lds_stage %again : !kvbuffer.token<#buf>\n",
                           text)
            result = subprocess.run(run, input=early, capture_output=True, text=True)
            self.assertIn("'foreign.column_sums' op", result.stderr)
            self.assertIn("after another load began to overwrite it", result.stderr)

    @unittest.skipUnless(CHIP == "sm_80", "the same for all chips")
    def test_own_values(self):
        """Ops with values and states of their own, on both ends; that on tiles is asked
        at the block's end."""
        hold = '    %h = "foreign.hold"(%dots) : (!scores) -> index\n'
        give = '    %y = "foreign.give"(%h) : (index) -> !scores\n'
        q, k = (to_bf16(RNG.standard_normal((n, 32))) for n in (ROWS, 32))
        tensors = {"q": q, "k": k,
                   "s": (from_bf16(q) @ from_bf16(k).T).astype(np.float32)}
        same = "    %y = kvbuffer.fragment_scale %dots {factor = 1.0 : f32} : !scores\n"
        block = "in block (0, 0, 0): "
        with tempfile.TemporaryDirectory() as folder:
            run = ["kvbuf-tile-run", LOAD]
            for name, array in tensors.items():
                np.save(f"{folder}/{name}.npy", array)
                run += ["--expect" if name == "s" else "--input",
                        f"{name}={folder}/{name}.npy"]
            for body, error in (
                    (hold + give, None),
                    (hold + give + give.replace("%y", "%z"),
                     f"'foreign.give' op {block}gives what is not held"),
                    (same + give.replace("%y", "%z").replace("%h", "%c0"),
                     f"'foreign.give' op {block}gives what is not held"),
                    (same + hold, f"'foreign.hold' op {block}holds what is not given back "
                                  "when the block ends")):
                text = re.sub(r"    %y = .*\n", lambda m: body, PROGRAM)
                result = subprocess.run(run, input=text, capture_output=True, text=True)
                target = lowered(text)
                if error:
                    self.assertIn(error, result.stderr)
                    self.assertEqual("gives" in error, target.returncode != 0)
                    if "gives" in error:
                        self.assertIn("'foreign.give' op gives what is not held",
                                      target.stderr)
                else:
                    self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
                    self.assertEqual(target.returncode, 0, target.stderr)
                    out = np.full((ROWS, 32), np.nan, np.float32)
                    kvbuf.compile(target.stdout, target=CHIP, machine_code=False)(
                        q=q, k=k, s=out, device=kvbuf.Device("emulator"))
                    np.testing.assert_allclose(out, tensors["s"], rtol=1e-5, atol=1e-3)

    #: Rows of K that exist, of the 32 of its tile.
    VALID = 29

    def scattered(self, page=", page_size = 1"):
        """The program whose tile of K is an op's, which finds each row: K's rows lie
        scattered over four sheets. Its tensors, and what is expected."""
        sheets = "memref<4x?x32xbf16, strided<[?, ?, 1]>>"
        tile = f"!kvbuffer.tile<32x32xbf16{page}>"
        text = re.sub(r"    %kt = .*\n", f"    %n = arith.constant {self.VALID} : index\n"
                      f'    %kt = "foreign.scattered"(%k, %list, %c32, %n) : '
                      f"({sheets}, memref<?xi32>, index, index) -> {tile}\n",
                      re.sub(r"    %(half|y) = .*\n", "", PROGRAM))
        for old, new in (
                ("BK = 32>", "BK = 32, open>"),
                ("%k: !in {kvbuffer.name = \"k\", kvbuffer.shape = [32, 32]}",
                 f'%k: {sheets} {{kvbuffer.name = "k", kvbuffer.shape = [4, "sheet", 32]}}, '
                 '%list: memref<?xi32> {kvbuffer.name = "list", kvbuffer.shape = ["entries"]}'),
                ("%kt into %slots[%c0] : !kvbuffer.tile<32x32xbf16>",
                 f"%kt into %slots[%c0] : {tile}"),
                ("%y, %st", "%dots, %st")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        q, k = (to_bf16(RNG.standard_normal((n, 32))) for n in (ROWS, self.VALID))
        data = np.full((4, 21, 32), 0x7FC0, np.uint16)  # NaN
        numbers = RNG.permutation(data.shape[0] * data.shape[1])[:self.VALID]
        data[numbers % 4, numbers // 4] = k
        entries = np.concatenate([np.full(32, -1), numbers]).astype(np.int32)
        exact = np.zeros((ROWS, 32))
        exact[:, :self.VALID] = from_bf16(q) @ from_bf16(k).T
        return text, {"q": q, "k": data, "list": entries}, exact

    def test_tile_by_lanes(self):
        text, tensors, exact = self.scattered()
        target = lowered(text)
        self.assertEqual(target.returncode, 0, target.stderr)
        out = np.full((ROWS, 32), np.nan, np.float32)
        kvbuf.compile(target.stdout, target=CHIP, machine_code=False)(
            **tensors, s=out, device=kvbuf.Device("emulator"))
        np.testing.assert_allclose(out, exact, rtol=1e-5, atol=1e-3)

    def test_tile_by_tiles(self):
        text, tensors, exact = self.scattered()
        with tempfile.TemporaryDirectory() as folder:
            run = ["kvbuf-tile-run", LOAD, "--expect", f"s={folder}/s.npy"]
            np.save(f"{folder}/s.npy", exact.astype(np.float32))
            for name, array in tensors.items():
                np.save(f"{folder}/{name}.npy", array)
                run += ["--input", f"{name}={folder}/{name}.npy"]
            result = subprocess.run(run, input=text, capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
            more = text.replace(f"constant {self.VALID} :", f"constant {self.VALID + 1} :")
            result = subprocess.run(run, input=more, capture_output=True, text=True)
            self.assertIn("'foreign.scattered' op", result.stderr)
            self.assertIn("accesses list[61], outside of its shape [61]", result.stderr)

    def test_tile_refused(self):
        """A tile whose type says that its rows are one stride apart, and what nobody
        does with one whose rows are found one by one."""
        self.assertIn("'foreign.scattered' op makes a tile whose rows it finds one by one; "
                      "expected page_size = 1 on the tile",
                      lowered(self.scattered(page="")[0]).stderr)
        text, *_ = self.scattered()
        # Of as many rows as accumulators have.
        own = f"!kvbuffer.tile<{ROWS}x32xbf16, page_size = 1>"
        makes = ('    %own = "foreign.scattered"(%k, %list, %c0, %c32) : '
                 f"(memref<4x?x32xbf16, strided<[?, ?, 1]>>, memref<?xi32>, index, index) -> {own}\n")
        acc = f"!kvbuffer.fragment<{ROWS}x32xbf16, acc>"
        stored = text.replace("    gpu.return", makes + (
            f"    %as = kvbuffer.fragment_fill 0.0 : {acc}\n"
            f"    kvbuffer.fragment_store %as, %own : {acc}, {own}\n    gpu.return"))
        self.assertIn("'kvbuffer.fragment_store' op stores into a tile whose rows are found "
                      "one by one; expected a tile of kvbuffer.dram_tile",
                      lowered(stored).stderr)
        read = re.sub(r"    %a = kvbuffer.tile_fragment %qt : .*( ->)",
                      makes + rf"    %a = kvbuffer.tile_fragment %own : {own}\1", text)
        self.assertIn("'kvbuffer.tile_fragment' op expected a tile of kvbuffer.dram_tile "
                      "without gather; others go through LDS by kvbuffer.dram_load",
                      lowered(read).stderr)

    def test_staged_refused(self):
        """Slots whose elements lie elsewhere, and elements that lanes do not read."""
        text, *_ = self.column_sums()
        if CHIP.startswith("gfx"):
            turned = (text.replace("BK = 32>", "BK = 32, policy = register_staged, "
                                   "order = cols>")
                      .replace("contracted(cols)", "contracted(rows)")
                      .replace(" {transpose_b}", ""))
            self.assertIn(f"'foreign.column_sums' op reads elements of a slot that {CHIP} "
                          "has turned; expected a buffer that products contract by "
                          "columns", lowered(turned).stderr)
        small = re.sub(r"    %(qt|a|b) = .*\n", "", text)
        small = re.sub(r"%dots = .*", "%dots = kvbuffer.fragment_fill 0.0 : !scores", small)
        bytes_ = "memref<?x32xf8E4M3FN, strided<[?, 1]>>"
        small = (small.replace("32x32xbf16", "32x32xf8E4M3FN")
                 .replace("%k: !in", f"%k: {bytes_}")
                 .replace("%c32) : !in -> !kvbuffer.tile<32x32xf8",
                          f"%c32) : {bytes_} -> !kvbuffer.tile<32x32xf8"))
        self.assertIn("'foreign.column_sums' op reads single elements of 'f8E4M3FN'; "
                      "expected elements of 16 or 32 bits", lowered(small).stderr)
        tile = small.replace("(%dots, %ks)", "(%dots, %kt)").replace(
            "(!scores, !kvbuffer.staged<#buf>)", "(!scores, !kvbuffer.tile<32x32xf8E4M3FN>)")
        self.assertIn("'foreign.column_sums' op reads single elements of 'f8E4M3FN'; "
                      "expected elements of 16 or 32 bits", lowered(tile).stderr)

    def test_refused(self):
        """An op that says nothing, and one whose plugin is not there."""
        silent = re.sub(r'"foreign.OP"\(%dots, %half\) {.*} : \(!scores, !row\)',
                        '"foreign.silent"(%dots) : (!scores)', PROGRAM)
        result = lowered(silent)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("'foreign.silent' op has no per-lane form; expected an op "
                      "that implements LaneLoweringInterface", result.stderr)
        result = lowered(PROGRAM.replace("OP", "affine").replace("ATTR", ""),
                         plugin=False)
        self.assertIn("unregistered dialect", result.stderr)

    def execute(self, factor, scale):
        """A tile program of attention whose scores are scaled by `factor`, then
        by `scale` times the problem's scale; the status."""
        problem = subprocess.run(
            ["kvbuf-compile", "-", f"--target={CHIP}", "--emit=tile",
             f"--schedule=BM={ROWS},BN=32,warps=2,producers=0"],
            input="""!qo = memref<?x?x2x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
func.func @f(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
""", capture_output=True, text=True)
        self.assertEqual(problem.returncode, 0, problem.stderr)
        lines = []
        for line in problem.stdout.splitlines():
            if found := re.match(r"(\s*)(%\w+, .* = kvbuffer\.online_softmax) "
                                 r"(%\w+), .* : (<\w+, acc>)", line):
                space, _, scores, type_ = found.groups()
                type_ = "!kvbuffer.fragment" + type_
                row = f"!kvbuffer.fragment<{ROWS}x1xf32, row>"
                lines.append(f"{space}%factor = kvbuffer.fragment_fill {factor} : {row}")
                lines.append(f'{space}%scaled = "foreign.affine"({scores}, %factor) '
                             f"{{slope = 0.0 : f32}} : ({type_}, {row}) -> {type_}")
                line = line.replace(f"online_softmax {scores}",
                                    "online_softmax %scaled", 1)
                line = re.sub(r"scale = ([\d.e+-]+)", lambda m:
                              f"scale = {float(m[1]) * scale}", line)
            lines.append(line)
        text = "\n".join(lines)
        self.assertEqual(text.count("foreign.affine"), 1, text)
        text = re.sub(r"(softmax_finish .*scale = )([\d.e+-]+)",
                      lambda m: f"{m[1]}{float(m[2]) * scale}", text)
        return subprocess.run(
            ["kvbuf-tile-run", LOAD, "--size=batch=1", "--size=seq=70"],
            input=text, capture_output=True, text=True)

    def test_tiles(self):
        right = self.execute(0.5, 2)
        self.assertEqual(right.returncode, 0, right.stderr + right.stdout)
        self.assertIn("PASS", right.stdout)
        # It is no op without a meaning: half the scores are another problem.
        self.assertEqual(self.execute(0.5, 1).returncode, 1)


if __name__ == "__main__":
    unittest.main()
