# Numbers in functions of scores that do not fit 32 bits, on the emulator, with warp
# roles and without.
# RUN: %python %s sm_90a sm_80
"""Prefixes of 64 bits, and an index of an i64 that wraps in 32 bits, against float64.

    wide-indices.py CHIP...
"""

import sys

import numpy as np

import kvbuf

TEXT = """
!qo = memref<?x?x1x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
func.func @f(%q: !qo, %k: !kv, %v: !kv,
             %prefix: memref<?xi64> {kvbuffer.name = "prefix", kvbuffer.shape = ["batch"]},
             %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%prefix : memref<?xi64>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %p: memref<?xi64>):
      %c = arith.constant 16777217 : index
      %end = memref.load %p[%batch] : memref<?xi64>
      %i = arith.index_cast %end : i64 to index
      %in = arith.cmpi slt, %key, %i : index
      // More than 2^32 from key 256 on.
      %large = arith.muli %key, %c : index
      %c3 = arith.constant 3 : index
      %least = arith.muli %c, %c3 : index
      %late = arith.cmpi sge, %large, %least : index
      // 64-bit arithmetic on a key.
      %wide = arith.index_cast %key : index to i64
      %left = arith.subi %end, %wide : i64
      %one = arith.constant 1 : i64
      %before = arith.cmpi sgt, %left, %one : i64
      %s = arith.andi %in, %late : i1
      %t = arith.andi %s, %before : i1
      kvbuffer.yield %t : i1
    }
  return
}
"""
KEYS, QUERIES = 300, 20
PREFIXES = np.array([2**32 + 5, 17, -2**31 - 8 + 2**33, -5, 2**31 - 1, 260], np.int64)
RNG = np.random.default_rng()


def main():
    for chip in sys.argv[1:]:
        run = kvbuf.compile(TEXT, target=chip, machine_code=False)
        batch = len(PREFIXES)
        q = np.zeros((batch, QUERIES, 1, 64), np.uint16)
        k = np.zeros((batch, KEYS, 1, 64), np.uint16)
        # Scores are all the same: O is the mean of what is seen, of 0 or 1.
        bits = RNG.random((batch, KEYS)) < 0.5
        v = np.where(bits[:, :, None, None], np.uint16(0x3F80), np.uint16(0)) * np.ones(
            (1, 1, 1, 64), np.uint16)
        out = np.full(q.shape, 0x7FC0, np.uint16)
        run(q=q, k=k, v=v, o=out, prefix=PREFIXES)
        got = (out.astype(np.uint32) << 16).view(np.float32)
        key = np.arange(KEYS)
        for b, prefix in enumerate(PREFIXES):
            seen = (key + 1 < prefix) & (key >= 3)
            mean = bits[b][seen].mean() if seen.any() else 0
            if abs(got[b] - mean).max() > 2**-8:
                sys.exit(f"{chip}: prefix {prefix}: {got[b].ravel()[:2]}, expected {mean}")


main()
