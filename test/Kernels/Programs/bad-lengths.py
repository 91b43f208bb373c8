# RUN: env KVBUF_LIB_DIR=%lib %python %s %t
"""Lengths, offsets and tables that no cache can have, through kvbuf-run and through
the C API, whose functions are called as a C program would: launch by launch, and by
a plan whose memory changes between launches. Statuses and messages; and what a
caller cannot hand over at all.

    bad-lengths.py FOLDER

test/python/test_lengths.py has the Python API, and what kernels make of such numbers
where no host reads them; docs/caches.md the whole table."""

import ctypes
import os
import pathlib
import subprocess
import sys
import unittest

import numpy as np

import kvbuf
from kvbuf._library import Size, Tensor, lib

WORK = pathlib.Path(sys.argv.pop())
PAGED = """!q = memref<?x1x4x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
func.func @decode(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>}
    : !q, !kv, !kv, !q
  return
}
"""
RAGGED = """!q = memref<?x4x64xbf16, strided<[?, ?, 1]>>
!kv = !kvbuffer.cache<ragged, bf16, heads = 2, head_size = 64>
func.func @prefill(%q: !q, %k: !kv, %v: !kv, %o: !q, %at: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%at)
    : !q, !kv, !kv, !q, offsets memref<?xi32>
  return
}
"""


class BadLengths(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        WORK.mkdir(parents=True, exist_ok=True)
        os.chdir(WORK)
        cls.paged = kvbuf.compile(PAGED, target="sm_80", machine_code=False)
        cls.paged.save("paged.kvbuf")
        kvbuf.compile(RAGGED, target="sm_80", schedule="BM=64").save("ragged.kvbuf")

    def refused(self, artifact, message, *options, **files):
        for name, numbers in files.items():
            np.save(f"{name}.npy", np.int32(numbers))
            options += (f"--input={name.replace('_', '.', name[0] in 'kv')}="
                        f"{name}.npy",)
        done = subprocess.run(["kvbuf-run", f"{artifact}.kvbuf", "--device=emulator",
                               *options], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr),
                         (2, f"kvbuf-run: error: {message}\n"))

    def test_kvbuf_run(self):
        self.refused("paged", "--cache-lengths: -3 is negative", "--cache-lengths=5,-3")
        self.refused("paged", "tensor 'k.lengths' holds -1 at 1; expected 0 or more",
                     k_lengths=[5, -1])
        self.refused("paged", "size pages_per_seq is 2, but the longest sequence has "
                     "pages: 3", "--size=pages_per_seq=2", k_lengths=[5, 40])
        for table, message in (
                ([[0, 1, 2], [3, 99, 5]], "sequence 1 uses page id 99 at position 1"),
                ([[-1, 1, 2], [3, 4, 5]], "sequence 0 uses page id -1 at position 0")):
            self.refused("paged", f"tensor 'k.table': {message}; expected 0 to 7",
                         "--size=num_blocks=8", k_lengths=[5, 30], k_table=table)
        self.refused("ragged", "tensor 'q_offsets': offsets 7, 3 at 1; expected prefix "
                     "sums, which never fall", "--lengths-k=5,9",
                     q_offsets=[0, 7, 3])
        self.refused("ragged", "tensor 'k.offsets': offsets -2, 3 at 0; expected prefix "
                     "sums, which never fall", "--lengths-q=2,3",
                     k_offsets=[-2, 3, 7])
        self.refused("ragged", "size total_k is 9, but the keys number 900",
                     "--lengths-q=2,3", "--size=total_k=9", k_offsets=[0, 3, 900])

    def test_c_api(self):
        q = np.zeros((2, 1, 4, 64), np.uint16)
        cache = np.zeros((8, 16, 2, 64), np.uint16)
        table, lengths = np.int32([[0, 1, 2], [3, 4, 5]]), np.int32([5, 30])
        arrays = {"q": q, "k": cache, "v": cache, "o": np.zeros_like(q)}
        for n in "kv":
            arrays |= {f"{n}.table": table, f"{n}.lengths": lengths}
        kinds = {"uint16": b"bf16", "int32": b"i32"}

        def tensors(arrays):
            keep = [(ctypes.c_int64 * x.ndim)(*x.shape) for x in arrays.values()]
            return keep, (Tensor * len(arrays))(*(
                Tensor(n.encode(), x.ctypes.data, kinds[str(x.dtype)], x.ndim, shape,
                       None) for (n, x), shape in zip(arrays.items(), keep)))

        with open("paged.kvbuf", "rb") as file:
            image = file.read()
        artifact = lib.kvbufArtifactOpenBytes(image, len(image))
        device = lib.kvbufDeviceOpen(b"emulator", None)
        module = lib.kvbufModuleLoad(device, artifact)
        keep, given = tensors(arrays)
        plan = lib.kvbufPlanCreate(module, given, len(arrays), None, 0)
        self.assertTrue(plan, lib.kvbufLastError())
        data = (ctypes.c_void_p * len(arrays))(*(x.ctypes.data
                                                 for x in arrays.values()))

        def both():
            """The statuses and messages of a launch and of the plan's."""
            results = set()
            for status in (
                    lambda: lib.kvbufModuleLaunch(module, given, len(arrays), None, 0,
                                                  None),
                    lambda: lib.kvbufPlanLaunch(plan, data, None)):
                results.add((status(), lib.kvbufLastError().decode()))
            self.assertEqual(len(results), 1, results)
            return results.pop()

        self.assertEqual(both()[0], 0)
        for at, value, message in (
                ((1,), -1, "tensor 'k.lengths' holds -1 at 1; expected 0 to 48 - 1, the "
                 "keys that a sequence has room for less the new ones"),
                ((1,), 2**31 - 1, "tensor 'k.lengths' holds 2147483647 at 1; expected 0 "
                 "to 48 - 1, the keys that a sequence has room for less the new ones"),
                ((1, 1), 8, "tensor 'k.table' holds 8 at 1, 1, which is looked up; "
                 "expected 0 to 7, a block of 'k'")):
            tensor = table if len(at) > 1 else lengths
            kept, tensor[at] = tensor[at], value
            self.assertEqual(both(), (2, message))
            tensor[at] = kept
            self.assertEqual(both()[0], 0)

        # Workspaces and counters are the runtime's: nobody can give small ones, or
        # some that are not zero.
        for name, kind in ("parts", np.float32), ("arrived", np.int32):
            kinds["float32"] = b"f32"
            more = arrays | {name: np.ones((2, 2, 1), kind)}
            keep, extra = tensors(more)
            self.assertEqual(lib.kvbufModuleLaunch(module, extra, len(more), None, 0,
                                                   None), 2)
            self.assertIn(f"'{name}'", lib.kvbufLastError().decode())
        size = (Size * 1)(Size(b"pages_per_seq", 2))
        self.assertEqual(lib.kvbufModuleLaunch(module, given, len(arrays), size, 1,
                                               None), 2)
        self.assertIn("pages_per_seq", lib.kvbufLastError().decode())
        lib.kvbufPlanDestroy(plan)
        lib.kvbufModuleUnload(module)
        lib.kvbufDeviceClose(device)
        lib.kvbufArtifactClose(artifact)


if __name__ == "__main__":
    unittest.main()
