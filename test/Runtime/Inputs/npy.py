"""Runs kvbuf-run on .npy files and compares with numpy in float64.
  npy.py WORK_DIR KVBUF_RUN"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.dirname(__file__))
from make_manifest import manifest  # noqa: E402

RUN = sys.argv.pop()
WORK = pathlib.Path(sys.argv.pop())
RNG = np.random.default_rng(3)


def softmax(s):
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)


class Npy(unittest.TestCase):
    def setUp(self):
        WORK.mkdir(parents=True, exist_ok=True)
        os.chdir(WORK)
        self.q, self.k, self.v = (
            RNG.standard_normal((2, n, 2, 64)).astype(np.float16)
            for n in (9, 14, 14))

    def kvbuf(self, *args, **problem):
        pathlib.Path("k.mlir").write_text(json.dumps(manifest(**problem)))
        return subprocess.run([RUN, "k.mlir", "--device=emulator", *args],
                              capture_output=True,
                              text=True)

    def save(self):
        for name in "qkv":
            np.save(f"{name}.npy", getattr(self, name))
        return [f"--input={name}={name}.npy" for name in "qkv"]

    def fails(self, args, message, **problem):
        done = self.kvbuf(*args, **problem)
        self.assertEqual(done.returncode, 2, done)
        self.assertRegex(done.stderr, message)
        self.assertEqual(done.stderr.count("error:"), 1, done.stderr)

    def test_round_trip(self):
        done = self.kvbuf(*self.save(), "--output=o=o.npy", "--check",
                          "--output=lse=lse.npy", dtype="f16", lse=True)
        self.assertEqual(done.returncode, 0, done)
        q, k, v = (x.astype(np.float64) for x in (self.q, self.k, self.v))
        s = np.einsum("bihd,bjhd->bhij", q, k) * .125
        o = np.load("o.npy")
        self.assertEqual((o.dtype, o.shape), (np.float16, (2, 9, 2, 64)))
        np.testing.assert_allclose(
            o.astype(np.float64), np.einsum("bhij,bjhd->bihd", softmax(s), v),
            rtol=2**-10, atol=2**-24)
        np.testing.assert_allclose(np.load("lse.npy"),
                                   np.log(np.exp(s).sum(-1)), rtol=1e-6)

    def test_versions_and_strided_memory(self):
        for name, version in zip("qkv", ((1, 0), (2, 0), (3, 0))):
            with open(f"{name}.npy", "wb") as file:
                np.lib.format.write_array(file, getattr(self, name), version)
        args = [f"--input={name}={name}.npy" for name in "qkv"]
        self.kvbuf(*args, "--output=o=dense.npy", dtype="f16")
        done = self.kvbuf(*args, "--output=o=o.npy", "--layout=heads-major",
                          "--row-pad=8", dtype="f16")
        self.assertEqual(done.returncode, 0, done)
        np.testing.assert_array_equal(np.load("o.npy"), np.load("dense.npy"))

    def test_bf16_as_words(self):
        words = np.full((1, 3, 2, 64), 0x3F80, np.uint16)
        np.save("v.npy", words)
        np.save("w.npy", words.view("V2"))
        for file in "v.npy", "w.npy":
            done = self.kvbuf(f"--input=v={file}", "--output=o=o.npy",
                              "--size=seq_q=5")
            self.assertEqual(done.returncode, 0, done)
            o = np.load("o.npy")
            self.assertEqual(o.dtype, np.uint16)
            self.assertTrue((o == 0x3F80).all())

    def test_page_table(self):
        problem = dict(cache="paged", page_size=4, dtype="f16")
        pool = RNG.standard_normal((3, 4, 2, 64)).astype(np.float16)
        q = self.q[:1, :1]
        np.save("q.npy", q)
        np.save("pool.npy", pool)
        np.save("table.npy", np.array([[2, 0]], np.int32))
        np.save("lengths.npy", np.array([5], np.int32))
        args = ["--input=q=q.npy", "--input=k=pool.npy", "--input=v=pool.npy",
                "--input=k.table=table.npy", "--input=v.table=table.npy",
                "--input=k.lengths=lengths.npy",
                "--input=v.lengths=lengths.npy"]
        done = self.kvbuf(*args, "--check", "--output=o=o.npy", **problem)
        self.assertEqual(done.returncode, 0, done)
        kv = np.concatenate([pool[2], pool[0]])[:6].astype(np.float64)
        s = np.einsum("ihd,jhd->hij", q[0].astype(np.float64), kv) * .125
        np.testing.assert_allclose(np.load("o.npy")[0].astype(np.float64),
                                   np.einsum("hij,jhd->ihd", softmax(s), kv),
                                   rtol=2**-10, atol=2**-24)
        # An id out of range is refused where it is used, not beyond.
        np.save("table.npy", np.array([[2, 3]], np.int32))
        self.fails(args, r"sequence 0 uses page id 3 at position 1; "
                   "expected 0 to 2", **problem)
        np.save("lengths.npy", np.array([3], np.int32))
        self.assertEqual(self.kvbuf(*args, "--check", **problem).returncode, 0)
        np.save("lengths.npy", np.array([9], np.int32))
        self.fails(args, "size pages_per_seq is 2", **problem)
        np.save("lengths.npy", np.array([-1], np.int32))
        self.fails(args, "holds -1 at 0", **problem)

    def test_bad_files(self):
        self.save()
        f16 = dict(dtype="f16")
        cases = [
            (np.zeros((1, 2, 2, 64), np.float32), "type '<f4'; expected '<f2'"),
            (np.zeros((1, 2, 3, 64), np.float16),
             r"shape \[1, 2, 3, 64\]; expected \[batch, seq_q, 2, 64\]"),
            (np.zeros((2, 2, 64), np.float16), r"shape \[2, 2, 64\]; expected"),
            (np.asfortranarray(self.q), "Fortran order; expected C order"),
            (self.q.astype(">f2"), "type '>f2'"),
            (np.zeros(3, dtype=[("a", "<f2")]), "holds records"),
        ]
        for array, message in cases:
            np.save("bad.npy", array)
            self.fails(["--input=q=bad.npy"], message, **f16)
        whole = pathlib.Path("q.npy").read_bytes()
        for content, message in [
                (b"", "not a .npy file"), (b"text" * 9, "not a .npy file"),
                (whole[:40], "truncated in its header"),
                (whole[:-2], "needs 4608"), (whole + b"x", "needs 4608"),
                (whole[:6] + b"\x07" + whole[7:], "version 7"),
                (whole.replace(b"descr", b"dexcr"), "header is malformed")]:
            pathlib.Path("bad.npy").write_bytes(content)
            self.fails(["--input=q=bad.npy"], message, **f16)
        self.fails(["--input=q=absent.npy"], "cannot open 'absent.npy'")
        self.fails(["--input=x=q.npy"], "no such input; it has 'q', 'k'")
        self.fails(["--input=q"], "expected NAME=VALUE")
        self.fails(["--output=q=o.npy"], "no such output; it has 'o'")
        self.fails(["--output=o=absent/o.npy"], "cannot write 'absent/o.npy'")
        self.fails(["--input=q=q.npy", "--size=batch=3"],
                   "--size batch=3 contradicts an input file, where it is 2",
                   **f16)
        np.save("k.npy", self.k[:1])
        self.fails(["--input=q=q.npy", "--input=k=k.npy"], "where batch = 1",
                   **f16)

    def test_shapes_that_contradict_the_problem(self):
        """Rows are found by the problem's sizes, in tensors of the manifest's
        shapes."""
        for cache in "dense", "ragged", "continuous", "paged":
            problem = dict(cache=cache, lse=True, sink=True, query="ragged")
            if cache == "paged":
                problem["page_size"] = 16
            for index, tensor in enumerate(manifest(**problem)["tensors"]):
                content = manifest(**problem)
                shape = content["tensors"][index]["shape"]
                shape[-1] = {"product": [shape[-1], 0]}
                pathlib.Path("k.mlir").write_text(json.dumps(content))
                done = subprocess.run([RUN, "k.mlir", "--device=emulator"],
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, 2, done)
                self.assertRegex(done.stderr, f"tensor '{tensor['name']}' has "
                                 r"(shape \[.*0\]|rows of .*0 elements); "
                                 "the problem needs ")

    def test_offsets_far_apart(self):
        np.save("k.npy", np.array([0, 5], np.int32))
        np.save("v.npy", np.array([-2**31, 2**31 - 1], np.int32))
        self.fails(["--input=k.offsets=k.npy", "--input=v.offsets=v.npy",
                    "--size=seq_q=3"],
                   "'v.offsets': sequence 0 has 4294967295 rows; expected 5",
                   cache="ragged")

    def test_names_that_are_not_utf8(self):
        name = b"k\xff.mlir"
        pathlib.Path(os.fsdecode(name)).write_text(json.dumps(manifest()))
        done = subprocess.run([RUN, name, "--device=emulator", "--size=seq=5",
                               "--json=k.json"], capture_output=True)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("k\ufffd.mlir", pathlib.Path("k.json").read_text())

    def test_nothing_is_written_after_a_fault(self):
        os.environ["KVBUF_MOCK_FAULT"] = "detector"
        try:
            done = self.kvbuf("--output=o=never.npy")
        finally:
            del os.environ["KVBUF_MOCK_FAULT"]
        self.assertEqual(done.returncode, 1, done)
        self.assertFalse(pathlib.Path("never.npy").exists())


if __name__ == "__main__":
    unittest.main()
