# Pages of one row and of two that lie 4 GiB apart, 64 GiB, and about as far: their numbers times
# that, in bytes or in units of 16 bytes, are of 32 bits or not.
# RUN: %python %s
"""Attention over pages whose rows the lanes of a warp copy, on the emulator, against
float64. Memory that nothing writes is never there: two pages of each cache are.
"""

import mmap
import pathlib
import sys

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import attend, from_bf16, to_bf16

HEADS, SIZE, KEYS, QUERIES = 1, 64, 300, 40
RNG = np.random.default_rng(5)
QO = f"memref<?x?x{HEADS}x{SIZE}xbf16>"


def text(page):
    kv = (f"!kvbuffer.cache<paged, bf16, heads = {HEADS}, head_size = {SIZE}, "
          f"page_size = {page}>")
    return f"""func.func @f(%q: {QO}, %k: {kv}, %v: {kv}, %o: {QO}) {{
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : {QO}, {kv}, {kv}, {QO}
  return
}}"""


def cache(page, apart):
    """Two pages that lie so many bytes apart, and their rows."""
    no_reserve = 0x4000
    memory = np.frombuffer(
        mmap.mmap(-1, apart + 4096,
                  flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve), np.uint16)
    row = 2 * HEADS * SIZE
    pages = np.lib.stride_tricks.as_strided(
        memory, (2, page, HEADS, SIZE), (apart, row, 2 * SIZE, 2))
    pages[:] = to_bf16(RNG.standard_normal(pages.shape))
    return pages


def check(run, page, apart, apart_of_v=None):
    q = to_bf16(RNG.standard_normal((1, QUERIES, HEADS, SIZE)))
    k, v = cache(page, apart), cache(page, apart_of_v or apart)
    table = RNG.integers(0, 2, (1, KEYS // page)).astype(np.int32)
    lengths = np.array([KEYS - QUERIES], np.int32)  # Besides the new ones.
    out = np.full(q.shape, 0x7FC0, np.uint16)  # NaN
    run(q=q, k=k, v=v, o=out, k_table=table, v_table=table, k_lengths=lengths,
        v_lengths=lengths)
    q, rows, values, out = map(from_bf16, (
        q, *(x[table[0]].reshape(KEYS, HEADS, SIZE) for x in (k, v)), out))
    s = np.einsum("bihd,jhd->bhij", q, rows) / np.sqrt(SIZE)
    exact, base = (x.transpose(0, 2, 1, 3)
                   for x in attend(s, True, values.transpose(1, 0, 2)[None])[:2])
    error, usual = abs(out - exact), abs(base - exact)
    print(page, apart, apart_of_v, error.max(), usual.max())
    ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
    if np.isnan(out).any() or (error - ulp).max() > 2 * usual.max():
        sys.exit("the kernel computes something else")


for page in 1, 2:
    run = kvbuf.compile(text(page), target="sm_90a", machine_code=False)
    for apart in (4096, (1 << 32) - (1 << 20), 1 << 32, (1 << 32) + (1 << 20),
                  (1 << 36) - 4096, 1 << 36, (1 << 36) + (1 << 20)):
        check(run, page, apart)
    # One far and one near.
    check(run, page, 4096, 1 << 36)
    check(run, page, 1 << 36, 4096)
