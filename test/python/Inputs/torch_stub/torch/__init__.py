"""As much of PyTorch as benchmark/gpu.py uses, on numpy. 16-bit types are float32
with rounded values; the GPU is a clock that contestants turn forward."""

import numpy as np

from . import backends, cuda, nn  # noqa: F401

bfloat16, float16, float32, float64, int32, bool = (
    "bfloat16", "float16", "float32", "float64", "int32", "bool")
__version__ = "stub"


class version:
    cuda = "stub"


_NUMPY = {float32: np.float32, float64: np.float64, int32: np.int32,
          bool: np.bool_}


class Tensor(np.ndarray):
    def float(self):
        return self.astype(np.float32)

    def to(self, dtype):
        if dtype == bfloat16:
            bits = np.ascontiguousarray(self, np.float32).view(np.uint32)
            bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
            return bits.view(np.float32).view(Tensor)
        return np.asarray(self, np.float16).astype(np.float32).view(Tensor)

    def sum(self, axis=None, keepdim=False, dtype=None, **_):
        return np.asarray(np.sum(np.asarray(self), axis, keepdims=keepdim,
                                 dtype=_NUMPY.get(dtype))).view(Tensor)

    def amax(self, axis, keepdim=False):
        return np.max(self, axis, keepdims=keepdim)

    def norm(self, dim):
        return np.linalg.norm(np.asarray(self), axis=dim).view(Tensor)

    def masked_fill_(self, mask, value):
        self[np.asarray(mask)] = value
        return self

    def triu_(self, diagonal):
        self[...] = np.triu(np.asarray(self), diagonal)
        return self

    def fill_(self, value):
        self[...] = value
        return self

    def clamp_min(self, least):
        return np.maximum(self, least)

    def abs(self):
        return np.abs(self)

    def isnan(self):
        return np.isnan(self)

    def numel(self):
        return self.size

    def repeat_interleave(self, count, axis):
        return np.repeat(self, count, axis)

    def transpose(self, a, b):
        return np.swapaxes(self, a, b)


class Generator:
    def __init__(self, device):
        pass

    def manual_seed(self, seed):
        self.numpy = np.random.default_rng(seed)
        return self


def randn(*shape, generator, **_):
    return generator.numpy.standard_normal(shape).astype(np.float32).view(Tensor)


def tensor(values, dtype, **_):
    return np.array(values, _NUMPY[dtype]).view(Tensor)


def ones_like(x, dtype=float32):
    return np.ones(x.shape, _NUMPY[dtype]).view(Tensor)


def empty_like(x):
    return np.full_like(x, np.nan)


def exp(x):
    return np.exp(x)


def frexp(x):
    class Result:
        exponent = np.frexp(np.asarray(x))[1]
    return Result


def ldexp(x, exponent):
    return np.ldexp(np.asarray(x), exponent).view(Tensor)
