# The programs of triton_kernels.py: what they are given, and what is right.

import math

import numpy as np
from triton_kernels import *  # noqa: F403


def philox(seed, counters):
    """The first word of Philox 4x32 with 10 rounds, of counters (i, 0, 0, 0)."""
    c = [np.asarray(counters, np.uint64), *[np.zeros(len(counters), np.uint64)] * 3]
    key, low = [seed & 0xFFFFFFFF, seed >> 32], np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]), b & low,
             (a >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]), a & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0].astype(np.uint32)

def integers_of(values):
    return np.asarray(values).astype(np.int32)


def brain(a):
    """The nearest bfloat16 numbers: as bits, and in float64."""
    bits = a.view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)
    return (Bits("*bf16", bits.astype(np.uint16)),
            (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64))


def eighths(random, shape):
    """8-bit floats with 5 bits of exponent, the upper half of fp16: as bits, in float64."""
    a = (random.integers(-4, 5, shape) / 4).astype(np.float16)
    return (a.view(np.uint16) >> 8).astype(np.uint8), a.astype(np.float64)


def collatz(starts):
    counts = np.zeros(len(starts), np.int32)
    for i, v in enumerate(int(s) for s in starts):
        while v > 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            counts[i] += 1
    return counts


class Bits:
    """Numbers of a type that numpy lacks."""

    def __init__(self, type_of_pointer, bits):
        self.type, self.bits = type_of_pointer, bits


def programs(chip):
    """Name, kernel, arguments in order, constants (or B alone), grid, the result in
    float64 (or int32), the tolerance. Of arguments an int is a number and "out" the
    result, of fp32 or int32 where it does not say otherwise ("out:f16"), with what is in
    it before ("out=0"); other strings are arrays that kvbuf-emulate makes."""
    random = np.random.default_rng(1)
    f32 = lambda *s: random.standard_normal(s).astype(np.float32)  # noqa: E731
    f16 = lambda *s: random.standard_normal(s).astype(np.float16)  # noqa: E731
    wide = lambda a: a.astype(np.float64)  # noqa: E731
    x, y, rows = f32(500), f32(500), f32(3, 200)
    yield "add", add, [x, y, "out", 500], 128, (4,), wide(x) + y, 1e-6
    e = np.exp(wide(rows) - rows.max(1, keepdims=True))
    yield "softmax", softmax, [rows, "out", 200], 256, (3,), e / e.sum(1, keepdims=True), 1e-5
    w, d = f32(200), wide(rows) - wide(rows).mean(1, keepdims=True)
    normal = d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * w
    yield "layernorm", layernorm, [rows, w, "out", 200], 256, (3,), normal, 1e-4
    a, b = f16(64, 64), f16(64, 64)
    yield "matmul", matmul, [a, b, "out", 64], 32, (2, 2), wide(a) @ wide(b), 1e-3
    q, k, v = f16(64, 64), f16(128, 64), f16(128, 64)
    p = wide(q) @ wide(k).T * 0.125
    p = np.exp(p - p.max(1, keepdims=True))
    yield ("attention", attention, [q, k, v, "out", 128], 64, (1,),
           p / p.sum(1, keepdims=True) @ wide(v), 4e-3)
    yield "scan", scan, [rows, "out", 200], 256, (3,), np.cumsum(wide(rows), 1), 1e-4
    tall = f32(32, 100)
    yield "columns", columns, [tall, "out", 100], 64, (2,), wide(tall).sum(0), 1e-4
    bins = random.integers(0, 16, 500).astype(np.int32)
    yield ("histogram", histogram, [bins, "out=0", 500], 128, (4,),
           np.bincount(bins, minlength=16).astype(np.int32), 0)
    # As tl.rand makes a number of a word: its absolute value over 2^31, nearly.
    words = philox(77, np.arange(500)).view(np.int32).astype(np.int64)
    keep = np.where(words < 0, -words - 1, words) * 4.6566127342e-10 > 0.5
    yield "dropout", dropout, [x, "out", 77, 500], 128, (4,), np.where(keep, wide(x) * 2, 0), 1e-6
    at = np.array([2, 0, 1, 2], np.int32)
    yield "lookup", lookup, [rows, at, "out", 200], 256, (4,), wide(rows)[at], 0
    square = f32(64, 64)
    yield "transposed", transposed, [square, "out", 64], 32, (2, 2), wide(square).T, 0
    yield "largest", largest, [rows, "out", 200], 256, (3,), integers_of(wide(rows).argmax(1)), 0
    mixed = random.integers(-1000, 1000, 128).astype(np.int32)
    halves = mixed.reshape(2, 64)
    yield "ordered", ordered, [mixed, "out"], 64, (2,), np.sort(halves, 1).ravel(), 0
    few = random.integers(0, 16, 512).astype(np.int32)
    counts = [np.bincount(part, minlength=16) for part in few.reshape(2, 256)]
    yield "binned", binned, [few, "out"], 256, (2,), integers_of(np.concatenate(counts)), 0
    places = random.integers(0, 64, 128).astype(np.int32)
    found = np.take_along_axis(halves, places.reshape(2, 64), 1).ravel()
    yield "picked", picked, [mixed, places, "out"], 64, (2,), found, 0
    a8, b8 = eighths(random, (32, 64)), eighths(random, (32, 64))
    yield ("product8", product8, [a8[0], b8[0], "out", 64], 32, (1,), a8[1] @ b8[1].T, 1e-3)
    a, b = f16(64, 128), f16(128, 64)
    yield ("pipelined", pipelined, [a, b, "out:f16", 64, 128], 64, (1, 1),
           wide(a) @ wide(b), 2e-2)
    a, b = (random.integers(-100, 100, s).astype(np.int8) for s in [(32, 64), (64, 32)])
    yield ("integers", integers, [a, b, "out", 64], 32, (1,),
           a.astype(np.int32) @ b.astype(np.int32), 0)
    # NVIDIA's products keep ten bits of a number.
    a, b = f32(32, 64), f32(64, 32)
    yield "single", single, [a, b, "out", 64], 32, (1,), wide(a) @ wide(b), 5e-2
    starts = random.integers(1, 100, 200).astype(np.int32)
    yield "steps", steps, [starts, "out", 200], 128, (2,), collatz(starts), 0
    # Multiples of 1/4 below 1 are numbers of all the narrow types.
    exact = (random.integers(-4, 5, 200) / 4).astype(np.float32)
    yield "narrowed", narrowed, [exact, "out", 200], 128, (2,), 7 * wide(exact), 0
    factors, y = random.uniform(0.5, 1, (3, 200)).astype(np.float32), np.zeros((3, 200))
    for i in range(200):
        y[:, i] = wide(factors)[:, i] * (y[:, i - 1] if i else 0) + wide(rows)[:, i]
    yield "recurrence", recurrence, [factors, rows, "out", 200], 256, (3,), y, 1e-4
    yield ("locked", locked, [rows, "out=0", "i32[1]=0", 200], 256, (3,), wide(rows).sum(0), 1e-5)
    yield ("extremes", extremes, [mixed, "out=0", 128], 64, (2,),
           integers_of([max(mixed.max(), 0), min(mixed.min(), 0), np.bitwise_xor.reduce(mixed)]), 0)
    at = np.array([5, 0, 199], np.int32)
    total = np.log(np.exp(wide(rows)).sum(1)) - wide(rows)[range(3), at]
    yield "loss", loss, [rows, at, "out", 200], 256, (3,), total, 1e-5
    bits, values = brain(rows)
    normal = values / np.sqrt((values * values).mean(1, keepdims=True) + 1e-6) * w
    yield "rooted", rooted, [bits, w, "out", 200], 256, (3,), normal, 1e-4
    a, b = f16(80, 40), f16(40, 70)
    y = wide(a) @ wide(b)
    yield ("turned", turned, [a, b, "out", 80, 70, 40], 32, (9,), np.where(y > 0, y, y * 0.01), 1e-3)
    yield ("moments", moments, [rows, "out", 200], 256, (3,),
           np.stack([wide(rows).mean(1), wide(rows).var(1)], 1), 1e-5)
    a, b = f16(64, 64), f16(64, 64)
    yield ("described", described, [a, b, "out", 64, 64, 64], 32, (2, 2), wide(a) @ wide(b), 1e-3)
    image, weights = f32(10, 40), f32(3, 3)
    around = np.pad(wide(image), 1)
    y = sum(around[dy:dy + 10, dx:dx + 40] * weights[dy, dx] for dy in range(3) for dx in range(3))
    yield "convolution", convolution, [image, weights, "out", 10, 40], 32, (10, 2), y, 1e-4
    (qb, q), (kb, k), (vb, v) = (brain(f32(2, 64, 64)) for _ in range(3))
    p = np.where(np.tri(64, dtype=bool), q @ k.transpose(0, 2, 1) * 0.125, -np.inf)
    p = np.exp(p - p.max(2, keepdims=True))
    yield ("causal", causal, [qb, kb, vb, "out", 64], {"B": 32, "D": 64}, (2, 2),
           p / p.sum(2, keepdims=True) @ v, 2e-2)
    yield ("highest", highest, [mixed, "out"], 64, (2,),
           np.sort(halves, 1)[:, :-9:-1].ravel(), 0)
    other = mixed[::-1].copy()
    pairs = np.stack([halves, other.reshape(2, 64)[:, ::-1]], 2)
    yield "joined", joined, [mixed, other, "out"], 64, (2,), pairs.ravel(), 0
    v = rows / (np.abs(rows).max(1, keepdims=True) / np.float32(127))
    yield ("quantized", quantized, [rows, "out", 200], 256, (3,),
           integers_of(np.where(v >= 0, np.floor(v + 0.5), np.ceil(v - 0.5))), 1)
    yield ("persistent", persistent, [x, "out", 500], 64, (3,), wide(x) / (1 + np.exp(-wide(x))),
           1e-5)
    a, b = f16(32, 128), f16(128, 32)
    yield "split", split, [a, b, "out=0", 128], 32, (4,), wide(a) @ wide(b), 1e-3
    yield ("last", last, [x, "out", "f32[4]", "i32[1]=0", 500], 128, (4,),
           wide(x).sum(keepdims=True), 1e-4)
    v = wide(x)
    erf = np.vectorize(math.erf)(v * 0.7071067811865476)
    yield ("bent", bent, [x, "out", 500], 128, (4,),
           0.5 * v * (1 + erf) + np.sin(v) * np.cos(v) + np.log2(1 + v * v) + np.sqrt(v * v + 1), 1e-5)
    yield "wide", square_mean, [rows, "out", 200], 256, (3,), (wide(rows) ** 2).mean(1), 1e-6
    yield ("reversed_scan", reversed_scan, [halves, "out", 64], 64, (2,),
           np.cumsum(halves[:, ::-1], 1, dtype=np.int32)[:, ::-1], 0)
    powers = [random.integers(125, 130, (64, 2)).astype(np.uint8) for _ in range(2)]
    a8, b8 = eighths(random, (64, 64)), eighths(random, (64, 64))
    scales = [np.repeat(2.0 ** (wide(p) - 127), 32, axis=1) for p in powers]
    yield ("scaled", scaled, [a8[0], powers[0], b8[0], powers[1], "out"], 64, (1,),
           (a8[1] * scales[0]) @ (b8[1] * scales[1]).T, 1e-2)
    if chip.startswith("sm_"):
        u = mixed.view(np.uint32)
        yield ("assembly", assembly, [mixed, "out", 128], 64, (2,),
               (u << np.uint32(7) | u >> np.uint32(25)).view(np.int32), 0)
