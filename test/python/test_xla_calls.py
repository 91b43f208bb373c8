# RUN: env KVBUF_LIB_DIR=%lib %python %s
"""The runtime library as a handler of XLA's foreign functions, called as XLA calls it:
frames are laid out by XLA's c_api.h (major version 0), on the emulator. test_jax.py has
XLA itself, where JAX is installed."""

import ctypes
import unittest
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64,
                    c_size_t, c_uint32, c_void_p, cast, pointer, sizeof)

import numpy as np

import kvbuf
from kvbuf import _library, _tensors
from kvbuf._library import lib

PROBLEM = """!q = memref<?x?x1x16xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 16>
func.func @f(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {} : !q, !kv, !kv, !q
  return
}
"""
INSTANTIATE, EXECUTE, METADATA, SCALAR, S64, BF16 = 0, 3, 1, 3, 5, 16


def struct(name, *fields):
    """All of XLA's begin with their size and a list of extensions."""
    return type(name, (Structure,), {"_fields_": [
        ("size", c_size_t), ("extension", c_void_p), *fields]})


Version = struct("Version", ("major", c_int), ("minor", c_int))
Metadata = type("Metadata", (Structure,), {"_fields_": [
    ("size", c_size_t), ("version", Version), ("traits", c_uint32),
    ("state", c_int64)]})
Extension = type("Extension", (Structure,), {"_fields_": [
    ("size", c_size_t), ("type", c_int), ("next", c_void_p),
    ("metadata", POINTER(Metadata))]})
ErrorArguments = struct("ErrorArguments", ("message", c_char_p), ("code", c_int))
StreamArguments = struct("StreamArguments", ("context", c_void_p),
                         ("stream", c_void_p))
Create = CFUNCTYPE(c_void_p, POINTER(ErrorArguments))
Stream = CFUNCTYPE(c_void_p, POINTER(StreamArguments))
Api = struct("Api", ("version", Version), ("internal", c_void_p), ("create", Create),
             ("message", c_void_p), ("destroy", c_void_p), ("register", c_void_p),
             ("stream", Stream))
Buffer = struct("Buffer", ("dtype", c_int), ("data", c_void_p), ("rank", c_int64),
                ("dims", POINTER(c_int64)))
Buffers = struct("Buffers", ("count", c_int64), ("types", POINTER(c_int)),
                 ("buffers", POINTER(POINTER(Buffer))))
Span = type("Span", (Structure,), {"_fields_": [("data", c_char_p),
                                                ("size", c_size_t)]})
Scalar = type("Scalar", (Structure,), {"_fields_": [("dtype", c_int),
                                                    ("value", c_void_p)]})
Attributes = struct("Attributes", ("count", c_int64), ("types", POINTER(c_int)),
                    ("names", POINTER(POINTER(Span))), ("values", POINTER(c_void_p)))
Frame = struct("Frame", ("api", POINTER(Api)), ("context", c_void_p), ("stage", c_int),
               ("arguments", Buffers), ("results", Buffers),
               ("attributes", Attributes))


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.handler = ctypes.CDLL(_library.library_path()).kvbufXlaHandler
        cls.handler.restype, cls.handler.argtypes = c_void_p, [c_void_p]
        kernel = kvbuf.compile(PROBLEM, target="sm_80")
        rng = np.random.default_rng()
        cls.q, cls.k, cls.v = (kvbuf.to_bf16(rng.standard_normal((1, n, 1, 16)))
                               for n in (3, 5, 5))
        cls.o = np.zeros_like(cls.q)
        arrays = dict(q=cls.q, k=cls.k, v=cls.v, o=cls.o)
        cls.plan = kernel.plan_of({n: _tensors.view(n, x) for n, x in arrays.items()},
                                  {})
        assert lib.kvbufXlaAdd(7, cls.plan.handle, 4) == 0
        cls.expected = kernel(q=cls.q, k=cls.k, v=cls.v)

    def setUp(self):
        self.said = []

        def create(arguments):
            self.said.append((arguments[0].message.decode(), arguments[0].code))
            return 1

        def stream(arguments):
            arguments[0].stream = None
            return None

        self.api = Api(sizeof(Api), None, Version(sizeof(Version), None, 0, 2), None,
                       Create(create), None, None, None, Stream(stream))
        self.kept = []

    def buffers(self, arrays):
        made = [Buffer(sizeof(Buffer), None, BF16, x.ctypes.data, x.ndim,
                       (c_int64 * x.ndim)(*x.shape)) for x in arrays]
        rows = (POINTER(Buffer) * len(made))(*map(pointer, made))
        types = (c_int * len(made))(*[1] * len(made))
        self.kept += [made, rows, types]
        return Buffers(sizeof(Buffers), None, len(made), types, rows)

    def attributes(self, values):
        numbers = [c_int64(x) for x in values.values()]
        scalars = [Scalar(S64, cast(pointer(x), c_void_p)) for x in numbers]
        spans = [Span(n.encode(), len(n)) for n in values]
        names = (POINTER(Span) * len(spans))(*map(pointer, spans))
        data = (c_void_p * len(spans))(*[cast(pointer(x), c_void_p) for x in scalars])
        types = (c_int * len(spans))(*[SCALAR] * len(spans))
        self.kept += [numbers, scalars, spans, names, data, types]
        return Attributes(sizeof(Attributes), None, len(spans), types, names, data)

    def call(self, inputs, stage=EXECUTE, extension=None, **values):
        frame = Frame(sizeof(Frame), extension, pointer(self.api), None, stage,
                      self.buffers(inputs), self.buffers([self.o]),
                      self.attributes(values))
        return self.handler(ctypes.byref(frame))

    def test_launch(self):
        self.o[...] = 0
        self.assertIsNone(self.call([self.q, self.k, self.v], another=3, number=7))
        self.assertFalse(self.said)
        np.testing.assert_array_equal(self.o, self.expected)

    def test_metadata(self):
        metadata = Metadata(sizeof(Metadata), Version(sizeof(Version), None, 9, 9), 5)
        extension = Extension(24, METADATA, None, pointer(metadata))
        self.o[...] = 0
        self.assertIsNone(self.call([], extension=ctypes.addressof(extension)))
        self.assertEqual((metadata.version.major, metadata.version.minor,
                          metadata.traits), (0, 2, 0))
        # Other stages than execution do nothing.
        self.assertIsNone(self.call([self.q, self.k, self.v], INSTANTIATE, number=7))
        self.assertFalse(self.o.any())

    def test_errors(self):
        for inputs, values, words in (
                ([], {}, "the call has no attribute 'number' of 64 bits"),
                ([], dict(number=8), "this process has no kernel of number 8 on the "
                 "device; trace the function here, on that device"),
                ([self.q], dict(number=7), "the call has 2 buffers, and the kernel "
                 "takes 4")):
            self.assertTrue(self.call(inputs, **values))
            self.assertEqual(self.said.pop(), (f"kvbuf: {words}", 3))
        # What the launch says.
        odd = np.zeros(200, np.uint8)[1:97].view()
        odd = np.lib.stride_tricks.as_strided(odd, self.q.shape, (96, 32, 32, 2))
        self.assertTrue(self.call([odd, self.k, self.v], number=7))
        message, code = self.said.pop()
        self.assertRegex(message, "kvbuf: tensor 'q' starts at address")
        self.assertEqual(code, 13)


if __name__ == "__main__":
    unittest.main()
