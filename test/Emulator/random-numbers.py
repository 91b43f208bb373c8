# The random numbers of kernels are those of cuRAND's generators.
# REQUIRES: clang
# RUN: rm -rf %t && mkdir -p %t && %python %s %t
"""Compares both generators with their definitions, sequences and offsets included.

XORWOW's step is a matrix over GF(2), whose powers are found by squaring here, where the
kernel computes with polynomials. Normal numbers are compared with float64.
"""

import math
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(sys.argv[1])
M = 2**32 - 1
SOURCE = r"""
#include <curand_kernel.h>
template <typename State> __device__ void put(unsigned *out, float *normal, State state) {
  out[0] = curand(&state);
  out[1] = curand(&state);
  normal[0] = curand_uniform(&state);
  for (int k = 1; k < 4; ++k)
    normal[k] = curand_normal(&state);
}
__global__ void numbers(unsigned *out, float *normal, unsigned long long seed,
                        unsigned long long sequence, unsigned long long offset) {
  int i = threadIdx.x;
  curandState xorwow;
  curand_init(seed, sequence + i, offset, &xorwow);
  put(out + 4 * i, normal + 8 * i, xorwow);
  curandStatePhilox4_32_10_t philox;
  curand_init(seed, sequence + i, offset, &philox);
  put(out + 4 * i + 2, normal + 8 * i + 4, philox);
}
"""


def step(v):
    t = v[0] ^ v[0] >> 2
    return [*v[1:], (v[4] ^ v[4] << 4 ^ t ^ t << 1) & M]


def joined(v):
    return sum(word << 32 * k for k, word in enumerate(v))


def parted(x):
    return [x >> 32 * k & M for k in range(5)]


def apply(matrix, x):
    result = 0
    while x:
        low = x & -x
        result ^= matrix[low.bit_length() - 1]
        x ^= low
    return result


def moved(v, n, matrix):
    x = joined(v)
    while n:
        if n & 1:
            x = apply(matrix, x)
        n >>= 1
        matrix = [apply(matrix, column) for column in matrix] if n else matrix
    return parted(x)


ONCE = [joined(step(parted(1 << k))) for k in range(160)]
SEQUENCE = ONCE
for _ in range(67):
    SEQUENCE = [apply(SEQUENCE, column) for column in SEQUENCE]


def xorwow(seed, sequence, offset):
    low = 1099087573 * ((seed & M) ^ 0xaad26b49) & M
    high = 2591861531 * (seed >> 32 ^ 0xf7dcefdd) & M
    d = 6615241 + high + low + 362437 * offset
    v = [(123456789 + low) & M, 362436069 ^ low, (521288629 + high) & M, 88675123 ^ high,
         (5783321 + low) & M]
    v = moved(moved(v, sequence, SEQUENCE), offset, ONCE)
    while True:
        v, d = step(v), d + 362437
        yield (v[4] + d) & M


def philox(seed, sequence, offset):
    count = (sequence << 64) + offset // 4
    skip = offset % 4
    while True:
        c, key = [count >> 32 * k & M for k in range(4)], [seed & M, seed >> 32]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [b >> 32 ^ c[1] ^ key[0], b & M, a >> 32 ^ c[3] ^ key[1], a & M]
            key = [(key[0] + 0x9E3779B9) & M, (key[1] + 0xBB67AE85) & M]
        yield from c[skip:]
        count, skip = (count + 1) % 2**128, 0


def floats(words):
    """A uniform number, and three normal ones."""
    yield next(words) * 2**-32 + 2**-33
    for _ in range(2):
        u, v = (next(words) * 2**-32 + 2**-33 for _ in range(2))
        size = math.sqrt(-2 * math.log(u))
        yield math.sin(2 * math.pi * v) * size
        yield math.cos(2 * math.pi * v) * size


# A known answer of the authors' for a key and a counter of zeros.
assert next(philox(0, 0, 0)) == 0x6627e8d5

source, code = FOLDER / "random.cu", FOLDER / "random.bc"
source.write_text(SOURCE)
for seed, sequence, offset in ((5, 0, 0), (2**56 + 89, 1000, 7), (11, 2**33 - 1, 2**40 + 3)):
    done = subprocess.run(
        ["kvbuf-emulate", *([code] if code.exists() else [source, f"--keep={code}"]), "--block=3",
         "i32[12]", "f32[24]", f"i64:{seed}", f"i64:{sequence}", f"i64:{offset}",
         "--print=0,1"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    got = [int(word) & M for word in done[0].split()]
    normal = [float(word) for word in done[1].split()]
    for lane in range(3):
        for place, kind in ((0, xorwow), (1, philox)):
            words = kind(seed, sequence + lane, offset)
            at = 4 * lane + 2 * place
            assert got[at:at + 2] == [next(words), next(words)], (kind, seed, lane)
            at = 8 * lane + 4 * place
            for x, y in zip(normal[at:at + 4], floats(words)):
                assert abs(x - y) < 2e-6 * (1 + abs(y)), (kind, seed, lane, x, y)
