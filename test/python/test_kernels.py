# RUN: env KVBUF_LIB_DIR=%lib %python %s %t
"""Kernels in memory, on disk, and ahead of their use."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import unittest

import numpy as np

WORK = pathlib.Path(sys.argv.pop())
os.environ["KVBUF_CACHE_DIR"] = str(WORK)
os.environ["KVBUF_EMULATE"] = "gfx950"  # the quickest to compile

import kvbuf  # noqa: E402
from kvbuf import _artifact, _kernels  # noqa: E402

PROBLEM = kvbuf.Problem(heads=2, kv_heads=2, head_size=64, dtype="f16")

CALL = """
import kvbuf, numpy as np
from kvbuf import _artifact
def compile(*arguments, real=_artifact._compile):
    print("compiled")
    return real(*arguments)
_artifact._compile = compile
x = np.ones((1, 3, 2, 64), np.float16)
assert (kvbuf.attention(x, x, x) == 1).all()
"""


class Kernels(unittest.TestCase):
    def setUp(self):
        shutil.rmtree(WORK, ignore_errors=True)
        _kernels._memory.clear()
        self.compiled = 0
        self.real = _artifact._compile
        _artifact._compile = self.counting
        self.addCleanup(setattr, _artifact, "_compile", self.real)

    def counting(self, *arguments):
        self.compiled += 1
        return self.real(*arguments)

    def find(self, problem=PROBLEM):
        return _kernels.find(problem, "gfx950", None, True)

    def files(self):
        return sorted(WORK.glob("*.kvbuf"))

    def works(self, kernel):
        x = np.ones((1, 3, 2, 64), np.float16)
        self.assertTrue((kernel(q=x, k=x, v=x) == 1).all())

    def test_what_is_no_source(self):
        """A problem's fields are none; its text is."""
        problem = kvbuf.Problem(heads=2, kv_heads=2, head_size=64)
        with self.assertRaisesRegex(TypeError, "^source has type Problem; expected a "
                                    "path, or MLIR as text or bytes$"):
            kvbuf.compile(problem)

    def test_memory_then_disk(self):
        kernel = self.find()
        self.assertIs(self.find(), kernel)
        _kernels._memory.clear()
        self.works(self.find())
        self.assertEqual(self.compiled, 1)
        self.assertEqual(len(self.files()), 1)

    def test_what_differs(self):
        """Another chip, schedule, problem, use and compiler are other kernels."""
        keys = {_kernels._key(source, name, _kernels.options_for(
                    chip, schedule, emulated))
                for source in (b"a", b"b", b"\xff") for name in "xy"
                for chip in ("sm_80", "sm_90a") for schedule in (None, "BM=64")
                for emulated in (False, True)}
        self.assertEqual(len(keys), 48)
        self.find()
        path, = self.files()
        older = path.with_name(path.name[:41] + "0" * 16 + ".kvbuf")
        path.rename(older)
        _kernels._memory.clear()
        self.find()
        self.assertEqual(self.compiled, 2)
        self.assertEqual(len(self.files()), 2)

    def test_without_a_compiler(self):
        """What was made elsewhere is found, by any compiler's build."""
        self.find()
        _kernels._memory.clear()
        real = _kernels._compiler_id
        _kernels._compiler_id = lambda options: ""
        self.addCleanup(setattr, _kernels, "_compiler_id", real)
        self.works(self.find())
        self.assertEqual(self.compiled, 1)

    def test_sources(self):
        """kvbuf.compile looks there too; what does not compile is not kept."""
        text = PROBLEM.source()
        for _ in range(2):
            self.works(kvbuf.compile(text, target="gfx950"))
        self.assertEqual(self.compiled, 1)
        for _ in range(2):
            with self.assertRaisesRegex(kvbuf.Error, "<string>:1:"):
                kvbuf.compile("nonsense\n", target="gfx950")
        self.assertEqual(self.compiled, 3)

    def test_ptxas(self):
        """Code for a GPU of another ptxas is another kernel."""
        def made_with(found, **options):
            os.environ["KVBUF_PTXAS"] = str(found)
            return _kernels._compiler_id({"target": "sm_80", **options})

        before = os.environ.get("KVBUF_PTXAS")
        self.addCleanup(lambda: os.environ.pop("KVBUF_PTXAS") if before is None
                        else os.environ.update(KVBUF_PTXAS=before))
        self.assertNotEqual(made_with(sys.executable), made_with("none"))
        self.assertEqual(made_with(sys.executable, ptxas="none"),
                         made_with("none"))

    def test_damaged(self):
        self.find()
        path, = self.files()
        image = bytearray(path.read_bytes())
        for damage in (b"", image[:1000], image[:-1],
                       image[:5000] + bytes([image[5000] ^ 1]) + image[5001:]):
            path.write_bytes(damage)
            _kernels._memory.clear()
            self.works(self.find())
            self.assertEqual(path.read_bytes(), image)
        self.assertEqual(self.compiled, 5)

    def test_limit(self):
        for n, group in enumerate((2, 4, 6)):
            self.find(kvbuf.Problem(heads=group, kv_heads=2, head_size=64,
                                    dtype="f16"))
            for path in self.files():
                if path.stat().st_mtime_ns > 10**15:
                    os.utime(path, (n, n))
        sizes = [path.stat().st_size for path in self.files()]
        _kernels._memory.clear()
        self.find()  # the first: used now
        _kernels._evict(WORK, sum(sizes) - 1)
        self.assertEqual(len(self.files()), 2)
        _kernels._memory.clear()
        self.find()
        self.assertEqual(self.compiled, 3)
        kvbuf.clear_cache()
        self.assertEqual(self.files(), [])

    def test_no_place(self):
        """A cache that cannot be written costs no call."""
        WORK.write_text("a file, no folder")
        self.addCleanup(WORK.unlink)
        self.works(self.find())
        os.environ["KVBUF_CACHE_DIR"] = "none"
        self.addCleanup(os.environ.update, KVBUF_CACHE_DIR=str(WORK))
        self.assertIsNone(kvbuf.cache_dir())
        _kernels._memory.clear()
        self.works(self.find())
        self.assertEqual(self.compiled, 2)

    def test_processes(self):
        """Several at once make one kernel, and all of them have it."""
        WORK.mkdir(parents=True)
        some = [subprocess.Popen([sys.executable, "-c", CALL], text=True,
                                 stdout=subprocess.PIPE) for _ in range(3)]
        said = [p.communicate()[0] for p in some]
        self.assertEqual([p.returncode for p in some], [0, 0, 0])
        self.assertEqual("".join(said), "compiled\n")
        self.assertEqual(len(self.files()), 1)
        self.assertEqual(
            {p.name for p in WORK.iterdir()} - {p.name for p in self.files()},
            {"lock-" + self.files()[0].name[:2]})

    def test_threads(self):
        found = []
        threads = [threading.Thread(target=lambda: found.append(self.find()))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(map(id, found))), 1)
        self.assertEqual(self.compiled, 1)

    def test_ahead(self):
        problems = [PROBLEM, kvbuf.Problem(heads=2, kv_heads=1, head_size=64,
                                           cache="paged", page_size=16)]
        path = WORK.with_suffix(".json")
        kvbuf.save_problems(path, problems)
        self.assertEqual(json.loads(path.read_text())[0],
                         {"heads": 2, "kv_heads": 2, "head_size": 64,
                          "dtype": "f16"})
        seen = []
        made = kvbuf.precompile(
            path, "gfx950", emulated=True, background=True,
            progress=lambda *told: seen.append(told)).result()
        self.assertEqual(seen, [(1, 2, problems[0]), (2, 2, problems[1])])
        self.assertEqual([k.manifest["problem"]["cache"] for k in made],
                         ["dense", "paged"])
        self.assertEqual(_kernels.known(), problems)
        self.assertIs(self.find(), made[0])

    def test_few_rows(self):
        """A kernel for each small number of rows, one for all others."""
        from kvbuf._attention import few_rows
        self.assertEqual([few_rows(*x) for x in ((1, 8), (4, 8), (8, 8), (9, 8),
                                                 (8, 33), (32, 1), (33, 1))],
                         [1, 4, 8, 0, 0, 32, 0])
        few = kvbuf.Problem(heads=2, kv_heads=2, head_size=64, seq_q=3)
        self.assertIn("!q = memref<?x3x2x64xbf16, ", few.source())
        self.assertIn("!q = memref<?x?x2x64xf16, ", PROBLEM.source())

    def test_errors(self):
        for pattern, options in (
                ("dtype is 'f64'; expected one of bf16, f16", {"dtype": "f64"}),
                ("3 query heads are no multiple of 2", {"heads": 3}),
                ("head_size is 20; expected a multiple of 8", {"head_size": 20}),
                ("page_size goes with a paged cache", {"page_size": 16}),
                ("seq_q is 3; expected 0, or the rows", {"seq_q": 3,
                                                         "query": "ragged"}),
                ("scale is inf; expected a finite", {"scale": float("inf")})):
            with self.assertRaisesRegex(ValueError, pattern):
                kvbuf.Problem(**{"heads": 2, "kv_heads": 2, "head_size": 64}
                              | options)
        os.environ["KVBUF_CACHE_MB"] = "much"
        self.addCleanup(os.environ.pop, "KVBUF_CACHE_MB")
        with self.assertRaisesRegex(kvbuf.Error, "KVBUF_CACHE_MB is 'much'"):
            _kernels.cache_limit()


if __name__ == "__main__":
    unittest.main()
