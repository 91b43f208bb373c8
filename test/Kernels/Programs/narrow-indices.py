# Rows and keys in functions of visibility that are cut off to 8 bits, or leave 32, on the
# emulator.
# RUN: %python %s sm_80 sm_90a
# RUN: %if ld.lld %{ %python %s gfx950 %}
"""A key of 8 bits is no bound of keys: it is small again from key 256 on. The same of a row,
of how far they are apart, and of sums that wrap in 32 bits.

    narrow-indices.py CHIP...
"""

import sys

import numpy as np

import kvbuf

TEXT = """
!qo = memref<?x?x1x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
func.func @f(%q: !qo, %k: !kv, %v: !kv, %o: !qo,
             %n: memref<?xi32> {kvbuffer.name = "n", kvbuffer.shape = ["batch"]}) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%n : memref<?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %n_: memref<?xi32>):
      %number = memref.load %n_[%batch] : memref<?xi32>
      %c50 = arith.constant 50 : i8
      %c0 = arith.constant 0 : i8
      %key8 = arith.index_cast %key : index to i8
      %row8 = arith.index_cast %row : index to i8
      %key32 = arith.extsi %key8 : i8 to i32
      %apart = arith.subi %key, %at : index
      %apart8 = arith.index_cast %apart : index to i8
      // Beyond 2^31 from key 1 and row 1 on, and beyond 2^32.
      %most = arith.constant 2147483647 : i32
      %word = arith.index_cast %key : index to i32
      %place = arith.index_cast %at : index to i32
      %far = arith.addi %word, %most : i32
      %farther = arith.addi %place, %most : i32
      %c32 = arith.constant 4294967296 : index
      %times = arith.muli %batch, %c32 : index
      %seen = CONDITION
      kvbuffer.yield %seen : i1
    }
  return
}
"""
QUERIES, KEYS = 300, 400
N = np.array([-100, 20, 127], np.int32)
ROW, KEY = np.arange(QUERIES)[None, :, None], np.arange(KEYS)[None, None]


def byte(x):
    return x.astype(np.int8)


CASES = {
    "arith.cmpi slt, %key8, %c50 : i8": byte(KEY) < 50,
    "arith.cmpi sge, %key8, %c50 : i8": byte(KEY) >= 50,
    "arith.cmpi slt, %key32, %number : i32": byte(KEY) < N[:, None, None],
    "arith.cmpi sle, %key8, %row8 : i8": byte(KEY) <= byte(ROW),
    "arith.cmpi sle, %apart8, %c0 : i8": byte(KEY - ROW - KEYS + QUERIES) <= 0,
    "arith.cmpi sgt, %apart8, %c50 : i8": byte(KEY - ROW - KEYS + QUERIES) > 50,
    "arith.cmpi sge, %far, %farther : i32":
        (KEY + 2**31 - 1).astype(np.int32) >= (ROW + KEYS - QUERIES + 2**31 - 1).astype(np.int32),
    "arith.cmpi slt, %key, %times : index": KEY < np.arange(3)[:, None, None] * 2**32,
}


def main():
    rng = np.random.default_rng()
    failed = []
    for chip in sys.argv[1:]:
        for condition, seen in CASES.items():
            run = kvbuf.compile(TEXT.replace("CONDITION", condition), target=chip,
                                machine_code=False)
            batch = len(N)
            # Scores are all the same: O is the mean of what is seen, of 0 or 1.
            q = np.zeros((batch, QUERIES, 1, 64), np.uint16)
            k = np.zeros((batch, KEYS, 1, 64), np.uint16)
            bits = rng.random((batch, KEYS)) < 0.5
            v = np.where(bits, np.uint16(0x3F80), np.uint16(0))[:, :, None, None].repeat(64, 3)
            out = np.full(q.shape, 0x7FC0, np.uint16)  # NaN
            run(q=q, k=k, v=v, o=out, n=N)
            got = (out.astype(np.uint32) << 16).view(np.float32)[:, :, 0]
            seen = np.broadcast_to(seen, (batch, QUERIES, KEYS))
            count = seen.sum(-1)
            mean = (seen & bits[:, None]).sum(-1) / np.maximum(count, 1)
            error = abs(got - mean[..., None]).max()
            if not error <= 2**-8:
                failed.append(f"{chip}: {condition}: off by {error}")
    if failed:
        sys.exit("\n".join(failed))


main()
