# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays that numpy has no types for, as integers of the same bits."""

from __future__ import annotations

import functools


def _numpy():
    import numpy
    return numpy


def to_bf16(array):
    """bfloat16, rounded to the nearest (ties to even), of any array of numbers:
    a uint16 array of the same shape. NaN stays NaN."""
    np = _numpy()
    exact = np.ascontiguousarray(array, np.float32)
    bits = exact.view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    rounded = np.where(np.isnan(exact), bits >> 16 | 0x40, rounded)
    return rounded.astype(np.uint16).reshape(np.shape(array))


def are_bf16(dtype):
    """Whether elements of a type are bfloat16: uint16, a type of that name, or two
    bytes of no type, as which numpy reads such from a file. Structures are none."""
    return dtype.itemsize == 2 and (
        dtype.str == "<u2" or dtype.kind == "V" and dtype.names is None
        and (dtype.name == "bfloat16" or dtype.type is _numpy().void))


def from_bf16(bits):
    """The float32 values of a uint16 array of bfloat16, or of an array of a
    bfloat16 type of two bytes."""
    np = _numpy()
    bits = np.asarray(bits)
    if not are_bf16(bits.dtype):
        raise ValueError(f"bits has type {bits.dtype}; expected uint16, the bits "
                         "of bfloat16")
    return (bits.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


#: (exponent bits, mantissa bits, bias, largest code) of the positive half; codes
#: above the largest are NaN or infinite. FNUZ's only NaN is -0.
_FP8 = {"e4m3": (4, 3, 7, 0x7E), "e5m2": (5, 2, 15, 0x7B),
        "e4m3fnuz": (4, 3, 8, 0x7F), "e5m2fnuz": (5, 2, 16, 0x7F)}


@functools.lru_cache(maxsize=None)
def _fp8_values(kind):
    """The values of the codes 0 to the largest finite one, ascending."""
    np = _numpy()
    _, mantissa, bias, most = _FP8[kind]
    code = np.arange(most + 1)
    fraction, exponent = code & ((1 << mantissa) - 1), code >> mantissa
    normal = exponent > 0
    return np.ldexp((fraction + (normal << mantissa)).astype(np.float64),
                    np.maximum(exponent, 1) - bias - mantissa)


def _fp8_kind(kind):
    if kind not in _FP8:
        raise ValueError(f"kind is {kind!r}; expected one of {', '.join(_FP8)}")
    return kind


def to_fp8(array, kind="e4m3"):
    """8-bit floats of any array of numbers, rounded to the nearest (ties to
    even), as a uint8 array of the same shape. What is too large becomes the
    largest finite number; NaN stays NaN. ``kind``: "e4m3" and "e5m2" as OCP and
    NVIDIA's and AMD's newer chips have them, "e4m3fnuz" and "e5m2fnuz" as gfx942
    has them."""
    np = _numpy()
    values = _fp8_values(_fp8_kind(kind))
    x = np.asarray(array, np.float64)
    size = np.minimum(np.abs(np.where(np.isnan(x), 0, x)), values[-1])
    above = np.searchsorted(values, size)
    below = np.maximum(above - 1, 0)
    up, down = values[above] - size, size - values[below]
    code = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, below)
    fnuz = kind.endswith("fnuz")
    # FNUZ has one zero.
    negative = np.signbit(x) & ~((code == 0) & fnuz)
    code = code | np.where(negative, 0x80, 0)
    return np.where(np.isnan(x), 0x80 if fnuz else 0x7F, code).astype(np.uint8)


def from_fp8(codes, kind="e4m3"):
    """The float32 values of a uint8 array of 8-bit floats; `to_fp8` lists
    the kinds."""
    np = _numpy()
    values = _fp8_values(_fp8_kind(kind))
    codes = np.asarray(codes, np.uint8)
    half = np.full(128, np.nan)
    half[:len(values)] = values
    if kind == "e5m2":
        half[0x7C] = np.inf
    table = np.concatenate([half, -half]).astype(np.float32)
    if kind.endswith("fnuz"):
        table[0x80] = np.nan
    return table[codes]
