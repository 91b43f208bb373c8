# RUN: env KVBUF_LIB_DIR=%lib LD_LIBRARY_PATH=%build/test/mock-cuda %python %s %t
"""Calls whose tensors the runtime reads through their framework's table of C
functions: a framework of this file's own, on a driver that prints what it gets.
With torch, its functions too, whose tensors are said to be on that driver's
GPU."""

import ctypes
import json
import os
import pathlib
import re
import sys
import threading
import unittest
import weakref
from ctypes import c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Runtime/Inputs"))
import kvbuf  # noqa: E402
from kvbuf import _calls  # noqa: E402
from make_manifest import artifact, manifest  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

WORK = sys.argv.pop()
CODE = b"mock WwwwWwwwWwwwWwwwiii"


class DlTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("rank", c_int32), ("code", c_uint8), ("bits", c_uint8),
                ("lanes", c_uint16), ("shape", ctypes.POINTER(c_int64)),
                ("strides", ctypes.POINTER(c_int64)), ("byte_offset", c_uint64)]


class Table(ctypes.Structure):
    """DLPackExchangeAPI."""
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("older", c_void_p),
                ("others", c_void_p * 3), ("describe", c_void_p),
                ("stream", c_void_p)]


class Foreign:
    """A tensor of this file's framework: on CUDA device 0, stream 0x77."""
    # Weak: what nobody holds is gone, and its number may be another's.
    alive = weakref.WeakValueDictionary()

    def __init__(self, array, offset=0, strides=True):
        self.array = array
        self.shape = (c_int64 * array.ndim)(*array.shape)
        self.strides = (c_int64 * array.ndim)(
            *[n // array.itemsize for n in array.strides]) if strides else None
        self.offset = offset
        Foreign.alive[id(self)] = self

    @property
    def address(self):
        return self.array.ctypes.data + self.offset


def describe(address, out):
    me = Foreign.alive.get(address)
    if me is None:
        return -1
    t = DlTensor.from_address(out)
    t.data, t.byte_offset = me.array.ctypes.data, me.offset
    t.device_type, t.device_id = 2, 0
    t.rank, t.code, t.bits, t.lanes = me.array.ndim, 4, 16, 1
    t.shape = me.shape
    t.strides = me.strides if me.strides is not None else None
    return 0


STREAMS: list = []


def stream(kind, number, out):
    STREAMS.append((kind, number))
    c_void_p.from_address(out).value = 0x77
    return 0


KEEP = (ctypes.PYFUNCTYPE(c_int, c_void_p, c_void_p)(describe),
        ctypes.PYFUNCTYPE(c_int, c_int32, c_int32, c_void_p)(stream))
TABLE = Table(1, 3, None, (c_void_p * 3)(), *(ctypes.cast(f, c_void_p) for f in KEEP))
new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, ctypes.c_char_p, c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi))
NAME = b"dlpack_exchange_api"
Foreign.__dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(TABLE), NAME, None)


def aligned(*shape):
    count = int(np.prod(shape))
    raw = np.zeros(count + 64, np.uint16)
    first = -(raw.ctypes.data // 2) % 32
    return raw[first:first + count].reshape(shape)


def logged(body):
    """What the driver printed meanwhile."""
    with open(WORK + ".log", "w") as log:
        kept = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            body()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
    return pathlib.Path(WORK + ".log").read_text()


def words(text):
    return [int(x, 16) for x in re.findall(r"word (\w+)", text)]


class Own(unittest.TestCase):
    def setUp(self):
        path = pathlib.Path(WORK + ".kvbuf")
        path.write_bytes(artifact(json.dumps(manifest()).encode(),
                                  {"ptx": CODE + b"\0"}))
        self.run_ = kvbuf.load(path)
        self.module = self.run_._module(kvbuf.Device.shared("cuda"))
        self.calls = self.new()

    def new(self, outputs=1):
        calls = _calls.Calls(Foreign, 3, outputs)
        self.assertTrue(calls)
        self.call = calls.function
        return calls

    def plan(self, tensors):
        views = {n: kvbuf._tensors.TensorView(
            t, t.address, "bf16", t.array.shape, None, "cuda:0")
            for n, t in tensors.items()}
        packed, _keep = self.run_._pack(views)
        return kvbuf._artifact._Plan(self.module, packed, len(views), None, 0)

    def fresh(self, keys=6, **options):
        return {n: Foreign(aligned(1, keys if n in "kv" else 5, 2, 64), **options)
                for n in "qkvo"}

    def launch(self, tensors):
        """(the result, what the driver printed) of a call."""
        result = []
        text = logged(lambda: result.append(
            self.call(*(tensors[n] for n in "qkv"))))
        return result[0], text

    def add(self, tensors, make=None, quick=None, arguments=None):
        made = make or (lambda like: Foreign(aligned(*like.array.shape)))
        self.calls.add(self.plan(tensors), [0, 1, 2, 3],
                       [tensors[n] for n in "qkv"],
                       [(made, None, quick, arguments)])

    def test_launches(self):
        first, longer = self.fresh(), self.fresh(keys=9)
        self.assertIsNone(self.launch(first)[0])
        self.add(first)
        self.assertIsNone(self.launch(longer)[0])
        self.add(longer)
        STREAMS.clear()
        for tensors in (first, longer, self.fresh(), self.fresh(keys=9), first):
            o, text = self.launch(tensors)
            self.assertEqual(words(text), [tensors[n].address for n in "qkv"]
                             + [o.address])
        # The current stream is asked for at each launch.
        self.assertEqual(STREAMS, [(2, 0)] * 5)

    def test_outputs(self):
        """They are made as they were said to be, and live as long as anything."""
        first, like = self.fresh(), object()
        seen = []

        def make(x):
            seen.append(x)
            return Foreign(aligned(1, 5, 2, 64))

        self.calls = self.new(outputs=2)
        # The kernel has one output; another's address goes unused.
        self.calls.add(self.plan(first), [0, 1, 2, 4],
                       [first[n] for n in "qkv"],
                       [(make, None, None, None), (make, like, None, None)])
        before = sys.getrefcount(None), sys.getrefcount(like)
        for _ in range(3):
            (o, lse), text = self.launch(first)
            self.assertEqual(words(text)[3], lse.address)
            self.assertEqual((seen[-2], seen[-1]), (first["q"], like))
            # Of the name, the call's argument, and nothing else.
            self.assertEqual(sys.getrefcount(o), 2)
            # A result is the caller's alone.
            gone = weakref.ref(o)
            del o, lse
            self.assertIsNone(gone())
        seen.clear()
        self.assertEqual(sys.getrefcount(like), before[1])

    def test_quick_outputs(self):
        """Another function makes them where the thread works on the device."""
        driver = ctypes.CDLL("libcuda.so.1")
        primary = c_void_p()
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(primary), 0)
        first, kind = self.fresh(), []

        def make(like):
            kind.append("make")
            return Foreign(aligned(1, 5, 2, 64))

        def quick(*arguments):
            kind.append(arguments)
            return Foreign(aligned(1, 5, 2, 64))

        self.add(first, make, quick, (5, "type"))
        self.launch(first)
        driver.cuCtxPushCurrent_v2(primary)
        try:
            o, text = self.launch(first)
        finally:
            driver.cuCtxPopCurrent_v2(ctypes.byref(primary))
        self.launch(first)
        self.assertEqual(words(text)[3], o.address)
        self.assertEqual(kind, ["make", (5, "type"), "make"])

    def test_given_output(self):
        """Without outputs the last tensor is the result."""
        first = self.fresh()
        self.calls = _calls.Calls(Foreign, 4, 0)
        self.call = self.calls.function
        self.calls.add(self.plan(first), [0, 1, 2, 3], list(first.values()), [])
        for tensors in first, self.fresh(), self.fresh():
            count = sys.getrefcount(tensors["o"])
            results = []
            text = logged(lambda: results.append(self.call(*tensors.values())))
            self.assertIs(results.pop(), tensors["o"])
            self.assertEqual(words(text), [x.address for x in tensors.values()])
            self.assertEqual(sys.getrefcount(tensors["o"]), count)

    def test_failing_outputs(self):
        first = self.fresh()
        self.add(first, lambda like: 1 // 0)
        with self.assertRaises(ZeroDivisionError):
            self.launch(first)
        # What is no tensor of the framework.
        second = self.fresh(keys=9)
        self.add(second, lambda like: object())
        with self.assertRaises(SystemError):
            self.launch(second)

    def test_what_a_plan_follows_from(self):
        """Another stride, no strides, another address in its memory."""
        first = self.fresh()
        self.add(first)
        apart = dict(first, k=Foreign(aligned(1, 6, 4, 64)[:, :, ::2]))
        self.assertIsNone(self.launch(apart)[0])
        self.assertIsNone(self.launch(self.fresh(strides=False))[0])
        self.assertIsNotNone(self.launch(self.fresh(offset=64))[0])
        odd = dict(first, q=Foreign(aligned(1, 5, 2, 64), offset=1))
        with self.assertRaisesRegex(kvbuf.Error, "tensor 'q' starts at address"):
            self.launch(odd)
        # The first plan for such tensors stays.
        plans = len(self.calls.plans)
        self.add(self.fresh(), make=lambda like: 1 // 0)
        self.assertIsNotNone(self.launch(first)[0])
        self.assertEqual(len(self.calls.plans), plans + 1)

    def test_refusals(self):
        first = self.fresh()
        self.add(first)
        # No tensor, too few, too many: not such a call.
        self.assertIsNone(self.call(object(), first["k"], first["v"]))
        self.assertIsNone(self.call(first["q"], first["k"]))
        self.assertIsNone(self.call(*first.values()))
        with self.assertRaises(TypeError):
            self.call(first["q"], first["k"], v=first["v"])
        deep = Foreign(np.zeros((1,) * 9, np.uint16))
        self.assertIsNone(self.call(deep, first["k"], first["v"]))
        with self.assertRaises(kvbuf.Error):
            self.calls.add(self.calls.plans[0], [0, 1, 2, 4],
                           [first[n] for n in "qkv"],
                           [(lambda like: None, None, None, None)])
        create = kvbuf._library.lib.kvbufCallsCreate
        python = ctypes.byref(_calls._functions()[0])
        self.assertFalse(create(None, 3, 1, python))
        self.assertFalse(create(ctypes.addressof(TABLE), 3, 1, None))
        for counts in (0, 1), (11, 1), (3, 3):
            self.assertFalse(create(ctypes.addressof(TABLE), *counts, python))
        other = Table(2, 0, None, (c_void_p * 3)(), TABLE.describe, TABLE.stream)
        self.assertFalse(create(ctypes.addressof(other), 3, 1, python))
        self.assertFalse(_calls.supported(np.zeros(1)))

    def test_lifetime(self):
        """A function keeps its calls, they their plans."""
        first = self.fresh()
        self.add(first)
        plan = weakref.ref(self.calls.plans[0])
        del self.calls
        self.assertIsNotNone(self.launch(first)[0])
        self.assertIsNotNone(plan())
        del self.call
        self.assertIsNone(plan())

    def test_threads(self):
        cases = [self.fresh(keys=n) for n in (6, 7, 8)]
        for case in cases:
            self.add(case)
        failed = []

        def work(case):
            for _ in range(200):
                if self.call(*(case[n] for n in "qkv")) is None:
                    failed.append(case)

        threads = [threading.Thread(target=work, args=(c,)) for c in cases]

        def run():
            for t in threads:
                t.start()
            for t in threads:
                t.join()

        self.assertEqual(logged(run).count("launch mock"), 600)
        self.assertEqual(failed, [])


@unittest.skipUnless(torch and _calls._exchange(torch.Tensor),
                     "no torch that describes its tensors to C")
class Torch(unittest.TestCase):
    """kvbuf.torch's functions, whose tensors are taken to be on the GPU."""

    def setUp(self):
        import kvbuf.torch as kt
        from unittest import mock
        self.kt = kt
        self.built = 0

        def find(problem, chip, schedule, emulated):
            self.built += 1
            fields = {"lse": problem.lse, "query": problem.query,
                      "cache": problem.cache, "page_size": problem.page_size}
            text = manifest(**{k: v for k, v in fields.items() if v})
            letters = {"pointer": "W", "stride": "w", "size": "i"}
            code = "mock " + "".join(letters[a["kind"]]
                                     for a in text["kernels"][0]["args"])
            path = pathlib.Path(WORK + ".torch.kvbuf")
            path.write_bytes(artifact(json.dumps(text).encode(),
                                      {"ptx": code.encode() + b"\0"}))
            return kvbuf.load(path)

        for what in (
                mock.patch.dict(kvbuf._tensors._DLPACK_DEVICES, {1: "cuda"}),
                mock.patch.object(kvbuf._tensors, "current_stream",
                                  lambda tensor, device: 0),
                mock.patch.object(kvbuf._tensors, "stream_getter",
                                  lambda tensor, device: lambda: 0),
                mock.patch.object(kvbuf._ops.Torch, "device_name",
                                  lambda ops, x: "cuda:0"),
                mock.patch.object(kvbuf._kernels, "find", find)):
            what.start()
            self.addCleanup(what.stop)
        kt._forget()
        self.addCleanup(kt._forget)

    def calls(self, call, *tensors):
        """What `call` gives for clones of the tensors, three times, each with the
        addresses that the driver got."""
        for time in range(3):
            own = [x.clone() for x in tensors]
            results = []
            text = logged(lambda: results.append(call(*own)))
            # A remembered call takes no kernel.
            if time:
                self.assertEqual(self.built, before)
            before = self.built
            yield own, results[0], words(text)

    def test_dense(self):
        q, k, v = (torch.zeros(1, n, 2, 64, dtype=torch.bfloat16) for n in (5, 6, 6))
        for own, o, got in self.calls(self.kt.flash_attn_func, q, k, v):
            self.assertEqual(got, [x.data_ptr() for x in (*own, o)])
            self.assertEqual(o.shape, q.shape)
        self.assertEqual(len(self.kt._calls_by_options), 1)
        built = self.built
        # Another length is another launch; gradients and other types are seen.
        self.kt.flash_attn_func(q, k[:, :3], v[:, :3])
        self.assertGreater(self.built, built)
        with self.assertRaisesRegex(NotImplementedError, "no backward pass"):
            self.kt.flash_attn_func(q.clone().requires_grad_(), k, v)
        with self.assertRaisesRegex(ValueError, "^k has type"):
            self.kt.flash_attn_func(q, k.half(), v)

    def test_one_plan(self):
        """Tensors of another shape cost one plan: that of the call's launch is kept."""
        from unittest import mock
        made = []
        new = kvbuf._artifact._Plan.__init__

        def count(self, *arguments):
            made.append(self)
            new(self, *arguments)

        functions = (
            (self.kt.flash_attn_func, lambda n: (1, n, 2, 64)),
            (self.kt.scaled_dot_product_attention, lambda n: (1, 2, n, 64)))
        with mock.patch.object(kvbuf._artifact._Plan, "__init__", count):
            for call, shape in functions:
                for keys in 6, 7, 6, 7, 8:
                    q, k, v = (torch.zeros(shape(n), dtype=torch.bfloat16)
                               for n in (5, keys, keys))
                    results = []
                    text = logged(lambda: results.append(call(q, k, v)))
                    self.assertEqual(words(text), [
                        x.data_ptr() for x in (q, k, v, results[0])], (call, keys))
                self.assertEqual(len(made), 3)
                made.clear()

    def test_lse(self):
        q, k, v = (torch.zeros(1, n, 2, 64, dtype=torch.bfloat16) for n in (5, 6, 6))
        for own, (o, lse), got in self.calls(
                lambda *x: self.kt.flash_attn_func(*x, return_lse=True), q, k, v):
            self.assertEqual(got, [x.data_ptr() for x in (*own, o, lse)])
            self.assertEqual((lse.shape, lse.dtype), ((1, 2, 5), torch.float32))

    def test_given_output(self):
        """It is a tensor of the call as others are, and is said to be changed."""
        q, k, v = (torch.zeros(1, n, 2, 64, dtype=torch.bfloat16) for n in (5, 6, 6))
        for want in False, True:
            for own, result, got in self.calls(
                    lambda q, k, v, out: self.kt.flash_attn_func(
                        q, k, v, out=out, return_lse=want), q, k, v, q):
                o, *lse = result if want else [result]
                self.assertIs(o, own[3])
                self.assertEqual(o._version, 1)
                self.assertEqual(got, [x.data_ptr() for x in (*own, *lse)])

    def test_sdpa(self):
        q, k, v = (torch.zeros(1, 2, n, 64, dtype=torch.bfloat16) for n in (5, 6, 6))
        for own, o, got in self.calls(self.kt.scaled_dot_product_attention, q, k, v):
            self.assertEqual(got, [x.data_ptr() for x in (*own, o)])
            self.assertTrue(o.is_contiguous())

    def test_ragged(self):
        q, k, v = (torch.zeros(n, 2, 64, dtype=torch.bfloat16) for n in (5, 6, 6))
        at = [torch.tensor([0, n], dtype=torch.int32) for n in (5, 6)]
        for own, o, got in self.calls(
                lambda q, k, v, a, b: self.kt.flash_attn_varlen_func(
                    q, k, v, a, b, 5, 6), q, k, v, *at):
            q_, k_, v_, a, b = (x.data_ptr() for x in own)
            self.assertEqual(sorted(set(got)), sorted({q_, k_, v_, a, b, o.data_ptr()}))

    def test_cache(self):
        q = torch.zeros(1, 2, 2, 64, dtype=torch.bfloat16)
        k, v = torch.zeros(2, 4, 16, 2, 64, dtype=torch.bfloat16)
        table = torch.tensor([[1, 2]], dtype=torch.int32)
        lengths = torch.tensor([20], dtype=torch.int32)
        for own, o, got in self.calls(
                lambda q, k, v, t, n: self.kt.flash_attn_with_kvcache(
                    q, k, v, cache_seqlens=n, block_table=t), q, k, v, table, lengths):
            self.assertEqual(sorted(set(got)),
                             sorted({x.data_ptr() for x in (*own, o)}))


if __name__ == "__main__":
    unittest.main()
