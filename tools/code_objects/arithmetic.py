# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of lanes. Exponentials, inverses and sums of products are the emulator's
(lib/Emulator/ExecMath.h, AmdMatrix.cpp), so that results can be compared bit for bit."""

import numpy as np

F32, F64, U32, U64 = np.float32, np.float64, np.uint32, np.uint64
I32, I64 = np.int32, np.int64


def to_odd(a, b, c):
    """a b + c as f64 that is rounded to odd: rounding it to f32 is right once more."""
    product = a.astype(F64) * b.astype(F64)
    c = c.astype(F64)
    total = product + c
    part = total - product
    error = (product - (total - part)) + (c - part)
    bits = total.view(I64)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    step = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(inexact, bits + step, bits).view(F64)


def fma(a, b, c):
    return to_odd(a, b, c).astype(F32)


def flush(x):
    return np.where(np.abs(x) < F32(2.0**-126), np.copysign(F32(0), x), x)


def exp2(x):
    y = np.minimum(np.where(x < -160, F32(-160), x), F32(160))
    big = F32(12582912.0)
    t = y + big
    n = (t.view(I32) - big.view(I32)).astype(I32)
    f = y - (t - big)
    p = np.full_like(f, F32(1.5252733804e-05))
    for term in (1.5403530394e-04, 1.3333558146e-03, 9.6181291076e-03, 5.5504108665e-02,
                 2.4022650696e-01, 6.9314718056e-01, 1.0):
        p = fma(p, f, np.full_like(f, F32(term)))
    low = n >> 1
    scale = [((k + 127).astype(U32) << U32(23)).view(F32) for k in (low, n - low)]
    return flush(p * scale[0] * scale[1])


def to_bf16(x):
    """f32 to the nearest bf16, ties to even."""
    bits = x.view(U32)
    rounded = (bits + U32(0x7fff) + (bits >> U32(16) & U32(1))) >> U32(16)
    return np.where(np.isnan(x), bits >> U32(16) | U32(0x40), rounded).astype(U32)


def max_num(x, y):
    m = np.where(x > y, x, y)
    m = np.where(x == y, (x.view(U32) & y.view(U32)).view(F32), m)
    m = np.where(np.isnan(x), y, m)
    return np.where(np.isnan(y), x, m)


def min_num(x, y):
    m = np.where(x < y, x, y)
    m = np.where(x == y, (x.view(U32) | y.view(U32)).view(F32), m)
    m = np.where(np.isnan(x), y, m)
    return np.where(np.isnan(y), x, m)


def permute(a, b, selectors):
    """v_perm_b32: bytes 0 to 3 are of `b`, 4 to 7 of `a`."""
    both = a.astype(U64) << U64(32) | b.astype(U64)
    result = np.zeros_like(a)
    for i in range(4):
        s = selectors >> U32(8 * i) & U32(0xff)
        byte = (both >> (U64(8) * (s & U32(7)).astype(U64)) & U64(0xff)).astype(U32)
        byte = np.where(s < 8, byte, np.where(s == 12, U32(0), U32(0xff)))
        if np.any((s >= 8) & (s < 12)):
            raise ValueError("a selector of signs")
        result |= byte << U32(8 * i)
    return result


def halves(words, kind):
    """16-bit floats of (registers, lanes) as f32: (lanes, 2 registers)."""
    pairs = np.ascontiguousarray(words.T).view(np.uint16)
    if kind == "bf16":
        return (pairs.astype(U32) << U32(16)).view(F32)
    return pairs.view(np.float16).astype(F32)


def multiply(size, depth, kind, a, b, c):
    """An MFMA of 32 x 32 or 16 x 16: `a`, `b` of (registers, lanes) words, `c` of numbers."""
    return multiply_numbers(size, depth, halves(a, kind), halves(b, kind), c)


def multiply_numbers(size, depth, a, b, c, together=0):
    """The same of `a` and `b` as f32 (lanes, elements). Places: AMD's matrix instruction
    calculator; `together`: of a lane's elements so many follow each other. k one after the
    other, each sum rounded."""
    lane = np.arange(64)

    def operand(numbers):
        matrix = np.zeros((size, depth), F32)
        per_lane = together or numbers.shape[1]
        for element in range(numbers.shape[1]):
            at = element // per_lane * (64 // size) + lane // size
            matrix[lane % size, at * per_lane + element % per_lane] = numbers[:, element]
        return matrix

    left, right = operand(a), operand(b)
    rows = [e // 4 * (256 // size) + 4 * (lane // size) + e % 4 for e in range(c.shape[0])]
    total = np.zeros((size, size), F32)
    for element, row in enumerate(rows):
        total[row, lane % size] = c[element]
    # A product of such floats and a sum of f32 fit f64 but for what f32 rounds alike.
    for k in range(depth):
        product = left[:, k, None].astype(F64) * right[None, :, k].astype(F64)
        total = (product + total).astype(F32)
    return np.stack([total[row, lane % size] for row in rows])
