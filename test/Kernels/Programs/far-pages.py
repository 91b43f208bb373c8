# Pages of one row that lie 4 GiB apart, and less: their numbers times that are not of 32 bits.
# RUN: %python %s
"""Attention over pages whose rows the lanes of a warp copy, on the emulator, against
float64. Memory that nothing writes is never there: two pages of each cache are.
"""

import pathlib
import sys

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import attend, from_bf16, to_bf16

HEADS, SIZE, KEYS, QUERIES = 1, 64, 300, 40
RNG = np.random.default_rng(5)
QO = f"memref<?x?x{HEADS}x{SIZE}xbf16>"
KV = f"!kvbuffer.cache<paged, bf16, heads = {HEADS}, head_size = {SIZE}, page_size = 1>"
TEXT = f"""func.func @f(%q: {QO}, %k: {KV}, %v: {KV}, %o: {QO}) {{
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : {QO}, {KV}, {KV}, {QO}
  return
}}"""


def cache(apart):
    """Two pages that lie so many bytes apart, and their rows."""
    memory = np.zeros(apart + 4096, np.uint8).view(np.uint16)
    pages = np.lib.stride_tricks.as_strided(
        memory, (2, 1, HEADS, SIZE), (apart, 2 * HEADS * SIZE, 2 * SIZE, 2))
    pages[:] = to_bf16(RNG.standard_normal(pages.shape))
    return pages


run = kvbuf.compile(TEXT, target="sm_90a", machine_code=False)
for apart in 1 << 32, (1 << 32) + (1 << 20), (1 << 32) - (1 << 20), 4096:
    q = to_bf16(RNG.standard_normal((1, QUERIES, HEADS, SIZE)))
    k, v = cache(apart), cache(apart)
    table = RNG.integers(0, 2, (1, KEYS)).astype(np.int32)
    lengths = np.array([KEYS - QUERIES], np.int32)  # Besides the new ones.
    out = np.full(q.shape, 0x7FC0, np.uint16)  # NaN
    run(q=q, k=k, v=v, o=out, k_table=table, v_table=table, k_lengths=lengths,
        v_lengths=lengths)
    q, rows, values, out = map(from_bf16, (q, k[table[0], 0], v[table[0], 0], out))
    s = np.einsum("bihd,jhd->bhij", q, rows) / np.sqrt(SIZE)
    exact, base = (x.transpose(0, 2, 1, 3)
                   for x in attend(s, True, values.transpose(1, 0, 2)[None])[:2])
    error, usual = abs(out - exact), abs(base - exact)
    print(apart, error.max(), usual.max())
    ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
    if np.isnan(out).any() or (error - ulp).max() > 2 * usual.max():
        sys.exit("the kernel computes something else")
