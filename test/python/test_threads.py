# RUN: %cc -shared -fPIC -o %t.so %S/Inputs/count_umask.c
# RUN: env KVBUF_LIB_DIR=%lib LD_PRELOAD=%t.so %python %s %src %t
"""One Artifact and several threads, on the emulator."""

import ctypes
import os
import pathlib
import shutil
import stat
import sys
import threading
import unittest

import numpy as np

import kvbuf

WORK = pathlib.Path(sys.argv.pop())
SOURCE = pathlib.Path(sys.argv.pop())
RNG = np.random.default_rng()


def bits(*shape):
    """Random bfloat16 of either sign between 1/128 and 2."""
    return (RNG.integers(0x3C00, 0x4000, shape)
            | RNG.integers(0, 2, shape) << 15).astype(np.uint16)


def in_threads(*bodies):
    """Runs them at once; raises what any of them raised."""
    errors, barrier = [], threading.Barrier(len(bodies))

    def run(body):
        try:
            barrier.wait()
            body()
        except BaseException as e:
            errors.append(e)
    threads = [threading.Thread(target=run, args=(b,)) for b in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class Threads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(WORK, ignore_errors=True)
        WORK.mkdir()
        cls.prefill = kvbuf.compile(SOURCE / "examples/prefill.mlir",
                                    target="sm_80")

    def test_calls_take_turns(self):
        # Other lengths in each thread: a launch that took another's arguments
        # would write other rows.
        cases = [[bits(1, n, 16, 128) for _ in range(3)] for n in (1, 3, 5)]
        alone = [self.prefill(q=q, k=k, v=v) for q, k, v in cases]
        fresh = kvbuf.compile(SOURCE / "examples/prefill.mlir", target="sm_80")

        def work(case, expected):
            q, k, v = case
            for _ in range(3):
                o = np.full_like(q, 0xFFFF)
                self.assertIs(fresh(q=q, k=k, v=v, out=o), o)
                np.testing.assert_array_equal(o, expected)
                self.assertIn("kernels", fresh.report())
                self.assertEqual(fresh.remarks(), [])
        in_threads(*(lambda c=c, e=e: work(c, e)
                     for c, e in zip(cases, alone)))

    def test_saving_leaves_the_umask_alone(self):
        calls = ctypes.c_int.in_dll(ctypes.CDLL(None), "umask_calls")
        before = os.umask(0o077)
        self.addCleanup(os.umask, before)
        self.assertGreater(calls.value, 0)  # they are counted
        made = calls.value
        self.prefill.save(WORK / "saved.kvbuf")
        self.assertEqual(calls.value, made)

    def test_saved_files_have_usual_permissions(self):
        path = WORK / "modes.kvbuf"
        before = os.umask(0o027)
        self.addCleanup(os.umask, before)
        for _ in range(2):  # new, and in place of another
            self.prefill.save(path)
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o640)
        self.assertEqual([p.name for p in WORK.glob("modes*")],
                         ["modes.kvbuf"])
        kvbuf.load(path)


if __name__ == "__main__":
    unittest.main()
