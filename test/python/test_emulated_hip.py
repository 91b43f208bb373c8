# DEFINE: %{there} = env KVBUF_LIB_DIR=%build/test/emulated-hip/lib LD_LIBRARY_PATH=%build/test/emulated-hip/driver KVBUF_CACHE_DIR=%t.cache KVBUF_STANDIN_DEVICES=3 KVBUF_STANDIN_CHIP
# RUN: rm -rf %t.cache
# RUN: %{there}=gfx942 %python %s
# RUN: %{there}=gfx950 %python %s
"""The Python package on AMD's GPUs, from a call to the kernel's result: HIP's driver
is a stand-in with the emulator as its devices (EmulatedHip.cpp)."""

import contextlib
import ctypes
import math
import os
import unittest

import numpy as np

import kvbuf
from kvbuf._tensors import _DLTensor

CHIP = os.environ["KVBUF_STANDIN_CHIP"]
RNG = np.random.default_rng()
HEADS, SIZE, ROWS, KEYS = 2, 64, 5, 43


class Driver:
    """HIP's functions that a program calls besides."""

    def __init__(self):
        self.lib = ctypes.CDLL("libamdhip64.so")

    def __getattr__(self, name):
        function = getattr(self.lib, name)

        def call(*arguments):
            status = function(*arguments)
            if status:
                raise RuntimeError(f"{name} returns {status}")
        return call

    def array(self, x):
        return DeviceArray(self, x)


class DeviceArray:
    """A copy of an array in a device's memory, of the one that is current."""

    def __init__(self, driver, x):
        x = np.ascontiguousarray(x)
        self.driver, self.host = driver, x
        self.shape, self.dtype = x.shape, x.dtype
        at = ctypes.c_uint64()
        driver.hipMalloc(ctypes.byref(at), ctypes.c_size_t(x.nbytes))
        self.at = at
        driver.hipMemcpyHtoD(at, ctypes.c_void_p(x.ctypes.data),
                             ctypes.c_size_t(x.nbytes))
        self.__cuda_array_interface__ = dict(
            x.__array_interface__, data=(at.value, False))

    def read(self):
        x = np.empty_like(self.host)
        self.driver.hipMemcpyDtoH(ctypes.c_void_p(x.ctypes.data), self.at,
                                  ctypes.c_size_t(x.nbytes))
        return x


class Exchanged:
    """An array of a device's that speaks DLPack alone, as ROCm's torch does: numpy's
    capsule, with the address and the kind and number of the device in it."""

    def __init__(self, array, number):
        self.array, self.number = array, number

    def __dlpack_device__(self):
        return 10, self.number

    def __dlpack__(self, stream=None):
        capsule = self.array.host.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype = ctypes.c_void_p
        pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        tensor = _DLTensor.from_address(pointer(capsule, b"dltensor"))
        tensor.data = self.array.at.value
        tensor.device_type, tensor.device_id = self.__dlpack_device__()
        return capsule


@contextlib.contextmanager
def quiet():
    """Nothing is written to the standard error."""
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float16)


def expected(q, k, v):
    q, k, v = (x.astype(np.float64).transpose(0, 2, 1, 3) for x in (q, k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(SIZE)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3)


PROBLEM = f"""
!q = memref<?x?x{HEADS}x{SIZE}xf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, f16, heads = {HEADS}, head_size = {SIZE}>
func.func @kernel(%q: !q, %k: !kv, %v: !kv, %out: !q) {{
  kvbuffer.attention q(%q) k(%k) v(%v) out(%out) : !q, !kv, !kv, !q
  return
}}
"""


class EmulatedHip(unittest.TestCase):
    def setUp(self):
        self.driver = Driver()
        self.driver.hipSetDevice(0)
        self.q = normal(2, ROWS, HEADS, SIZE)
        self.k, self.v = (normal(2, KEYS, HEADS, SIZE) for _ in "kv")

    def check(self, out):
        exact = expected(self.q, self.k, self.v)
        self.assertLess(np.abs(out - exact).max(), 4e-3)

    def arrays(self):
        nothing = np.full_like(self.q, np.nan)
        return [self.driver.array(x) for x in (self.q, self.k, self.v, nothing)]

    def test_attention(self):
        """Arrays of the device's, by the function that chooses the kernel."""
        q, k, v, out = self.arrays()
        kvbuf.attention(q, k, v, out=out)
        self.check(out.read())

    def test_tables(self):
        """Integers of a device's that are asked to follow each other: pages in any
        order, and sequences side by side."""
        driver, pages = self.driver, RNG.permutation(2 * 6)
        k, v = (normal(12, 8, HEADS, SIZE) for _ in "kv")
        table = driver.array(pages.reshape(2, 6).astype(np.int32))
        lengths = driver.array(np.array([KEYS, KEYS], np.int32))
        out = driver.array(np.full_like(self.q, np.nan))
        kvbuf.attention(driver.array(self.q), driver.array(k), driver.array(v),
                        page_table=table, lengths=lengths, out=out)
        self.k, self.v = (x[pages].reshape(2, 48, HEADS, SIZE)[:, :KEYS] for x in (k, v))
        self.check(out.read())
        ends = [driver.array(np.array([0, n, 2 * n], np.int32)) for n in (ROWS, KEYS)]
        rows = [driver.array(x.reshape(-1, HEADS, SIZE)) for x in (self.q, self.k, self.v)]
        out = driver.array(np.full((2 * ROWS, HEADS, SIZE), np.nan, np.float16))
        kvbuf.attention(*rows, q_offsets=ends[0], k_offsets=ends[1], out=out)
        self.check(out.read().reshape(self.q.shape))
        table.__cuda_array_interface__["strides"] = (4, 8)
        with self.assertRaisesRegex(ValueError, "elements that do not follow each other"):
            kvbuf.attention(driver.array(self.q), driver.array(k), driver.array(v),
                            page_table=table, lengths=lengths,
                            out=driver.array(np.full_like(self.q, np.nan)))

    def test_chip(self):
        self.assertEqual(kvbuf._kernels.chip_on("hip"), CHIP)
        run = kvbuf.compile(PROBLEM)
        self.assertEqual(run.manifest["target"]["chip"], CHIP)
        q, k, v, out = self.arrays()
        run(q=q, k=k, v=v, out=out)
        self.check(out.read())
        self.assertEqual(run._last.device.kind, "hip")

    def test_second_device(self):
        run = kvbuf.compile(PROBLEM)
        self.driver.hipSetDevice(1)
        q, k, v, out = self.arrays()
        self.driver.hipSetDevice(0)
        run(q=q, k=k, v=v, out=out, device="hip:1")
        self.driver.hipSetDevice(1)
        self.check(out.read())

    def test_dlpack(self):
        """The kind of device that ROCm's tensors say, and its number."""
        run = kvbuf.compile(PROBLEM)
        self.driver.hipSetDevice(1)
        arrays = self.arrays()
        self.driver.hipSetDevice(0)
        q, k, v, out = (Exchanged(array, 1) for array in arrays)
        run(q=q, k=k, v=v, out=out)
        self.assertEqual(run._last.device.kind, "hip")
        self.driver.hipSetDevice(1)
        self.check(arrays[-1].read())

    def test_graph(self):
        """A captured launch is not run, and each replay takes what is there."""
        run = kvbuf.compile(PROBLEM)
        q, k, v, out = self.arrays()
        run(q=q, k=k, v=v, out=out)
        stream, graph = ctypes.c_void_p(8), ctypes.c_void_p()
        nothing = np.full_like(self.q, np.nan)
        self.driver.hipMemcpyHtoD(out.at, ctypes.c_void_p(nothing.ctypes.data),
                                  ctypes.c_size_t(nothing.nbytes))
        self.driver.hipStreamBeginCapture(stream, 0)
        run(q=q, k=k, v=v, out=out, stream=8)
        self.driver.hipStreamEndCapture(stream, ctypes.byref(graph))
        self.assertTrue(np.isnan(out.read()).all())
        for _ in range(2):
            self.q = normal(*self.q.shape)
            self.driver.hipMemcpyHtoD(q.at, ctypes.c_void_p(self.q.ctypes.data),
                                      ctypes.c_size_t(self.q.nbytes))
            self.driver.hipGraphLaunch(graph, stream)
            self.check(out.read())
        self.driver.hipGraphDestroy(graph)

    def test_memory_of_another_device(self):
        """A kernel that reads it is a fault, and so is whatever comes after on its
        device, as on a GPU. No other test uses the last device."""
        q, k, v, out = self.arrays()
        self.driver.hipSetDevice(2)
        with quiet(), self.assertRaisesRegex(kvbuf.Error, "launch failure"):
            kvbuf.compile(PROBLEM)(q=q, k=k, v=v, out=out, device="hip:2")


if __name__ == "__main__":
    unittest.main()
