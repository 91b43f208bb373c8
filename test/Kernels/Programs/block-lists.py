# Block-sparse attention by lists of tiles, on the emulator.
# RUN: rm -rf %t && mkdir %t
# RUN: %python %s sm_80 64 %t
# RUN: %python %s sm_90a 128 %t
# RUN: %if ld.lld %{ %python %s gfx950 128 %t %}
# RUN: %if ld.lld %{ %python %s gfx942 128 %t %}
# RUN: %python %s sm_90a 128 %t tiles
"""Lists of blocks that are partly and wholly visible against float64 with a mask of
elements, which knows of no lists; and lists that are wrong by one block, which the same
check must catch.

    block-lists.py CHIP ROWS_AND_KEYS_OF_A_BLOCK FOLDER [tiles]

With `tiles` the interpreter runs the scheduled program on tiles.
"""

import pathlib
import subprocess
import sys
import unittest

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import attend, from_bf16, to_bf16

CHIP, BLOCK, FOLDER, *TILES = sys.argv[1:]
BLOCK = int(BLOCK)
del sys.argv[1:]
RNG = np.random.default_rng(11)
HEADS, SIZE = 2, 32
NAMES = ["kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"]


def source(lists, score=False, causal=False):
    """A program whose partly visible tiles hide keys of other documents."""
    kinds = ["!numbers", "!blocks"] * 2
    arguments = "".join(f', %l{i}: {kinds[i]} {{kvbuffer.name = "{NAMES[i]}"}}'
                        for i in range(lists))
    inside = "".join(f", %m{i}: {kinds[i]}" for i in range(lists))
    captured = "".join(f", %l{i}" for i in range(lists))
    types = "".join(f", {kinds[i]}" for i in range(lists))
    place = ("%batch: index, %head: index, %row: index, %at: index, %key: index, "
             f"%d: memref<?x?xi32>{inside}")
    far = f"""
    score {{
    ^bb0(%s: f32, {place}):
      %n = arith.index_cast %key : index to i32
      %f = arith.sitofp %n : i32 to f32
      %c = arith.constant 0.015625 : f32
      %b = arith.mulf %f, %c : f32
      %t = arith.subf %s, %b : f32
      kvbuffer.yield %t : f32
    }}""" * score
    mask = ", mask = #kvbuffer.mask<causal = true>" * causal
    return f"""
!qo = memref<?x?x{HEADS}x{SIZE}xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = {HEADS}, head_size = {SIZE}>
!numbers = memref<?x?x?xi32>
!blocks = memref<?x?x?x?xi32>
func.func @f(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %lse: memref<?x{HEADS}x?xf32>,
             %doc: memref<?x?xi32> {{kvbuffer.name = "doc", kvbuffer.shape = ["batch", "seq_k"]}}{arguments}) {{
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse)
    {{block_mask = #kvbuffer.block_mask<rows = {BLOCK}, keys = {BLOCK}, lists = [{", ".join(str(i + 1) for i in range(lists))}]>{mask}}}
    : !qo, !kv, !kv, !qo, lse memref<?x{HEADS}x?xf32>
    captures(%doc{captured} : memref<?x?xi32>{types}){far}
    visible {{
    ^bb0({place}):
      %own = memref.load %d[%batch, %row] : memref<?x?xi32>
      %its = memref.load %d[%batch, %key] : memref<?x?xi32>
      %t = arith.cmpi eq, %own, %its : i32
      kvbuffer.yield %t : i1
    }}
  return
}}
"""


def blocks_of(seen):
    """Lists of what a mask of elements, [batch, heads, rows, keys], leaves: as
    FlexAttention's BlockMask has them, with what is behind a list's end left to chance."""
    batch, heads, rows, keys = seen.shape
    tall, wide = -(-rows // BLOCK), -(-keys // BLOCK)
    kept = np.zeros((2, batch, heads, tall, wide), bool)
    for r in range(tall):
        for c in range(wide):
            part = seen[:, :, r * BLOCK:(r + 1) * BLOCK, c * BLOCK:(c + 1) * BLOCK]
            kept[1, :, :, r, c] = part.all((2, 3)) & ((c + 1) * BLOCK <= keys)
            kept[0, :, :, r, c] = part.any((2, 3)) & ~kept[1, :, :, r, c]
    return kept


def lists_of(kept):
    batch, heads, tall, wide = kept.shape
    which = RNG.integers(-2**31, 2**31, (batch, heads, tall, wide)).astype(np.int32)
    for at in np.ndindex(batch, heads, tall):
        blocks = np.flatnonzero(kept[at])
        which[at][:len(blocks)] = blocks
    return kept.sum(-1).astype(np.int32), which


def run_tiles(text, arrays):
    """Runs arrays by the interpreter of tiles."""
    folder, options = pathlib.Path(FOLDER), []
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
        options += ["--input", f"{name}={folder}/{name}.npy"]
        if name in ("o", "lse"):
            options += ["--output", f"{name}={folder}/{name}.npy"]
    subprocess.run(["kvbuf-opt", "-", f"--kvbuf-to-scheduled=chip={CHIP}", "-o",
                    folder / "tile.mlir"], input=text, text=True, check=True)
    subprocess.run(["kvbuf-tile-run", folder / "tile.mlir", *options], check=True)
    for name in ("o", "lse"):
        arrays[name] = np.load(folder / f"{name}.npy")


class BlockLists(unittest.TestCase):
    kernels = {}

    def problem(self, rows, keys, documents, score=False):
        """Tensors, and what is seen of them. The last block of rows sees nothing."""
        q, k, v = (to_bf16(RNG.standard_normal((1, n, HEADS, SIZE)))
                   for n in (rows, keys, keys))
        doc = np.searchsorted(documents, np.arange(keys), side="right")[None]
        seen = np.repeat((doc[:, :rows, None] == doc[:, None])[:, None], HEADS, 1)
        seen[:, :, (rows - 1) // BLOCK * BLOCK:] = False
        seen[:, 1, :BLOCK, BLOCK:] = False
        return dict(q=q, k=k, v=v, doc=doc.astype(np.int32)), seen

    def run_lists(self, tensors, *lists, **more):
        o = np.full(tensors["q"].shape, 0x7FC0, np.uint16)
        lse = np.full((1, HEADS, o.shape[1]), np.nan, np.float32)
        arrays = dict(tensors, o=o, lse=lse, **dict(zip(NAMES, lists)))
        text = source(len(lists), **more)
        if TILES:
            run_tiles(text, arrays)
            return from_bf16(arrays["o"]), arrays["lse"]
        if text not in self.kernels:
            path = pathlib.Path(FOLDER, f"{len(self.kernels)}.kvbuf")
            subprocess.run(["kvbuf-compile", "-", "--no-alternatives",
                            f"--target={CHIP}", "-o", path], input=text, text=True,
                           check=True)
            self.kernels[text] = kvbuf.load(str(path))
        self.kernels[text](**arrays)
        return from_bf16(o), lse

    def right(self, tensors, seen, result, score=False):
        out, lse = result
        q, k, v = (from_bf16(tensors[n]) for n in "qkv")
        s = np.einsum("bihd,bjhd->bhij", q, k) / SIZE ** 0.5
        s = s - score * np.arange(s.shape[-1]) / 64
        exact, base, sums = attend(s, seen, v.transpose(0, 2, 1, 3))
        exact, base = (x.transpose(0, 2, 1, 3) for x in (exact, base))
        ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
        error, usual = abs(out - exact), abs(base - exact)
        gone = np.isneginf(sums)
        return bool(not np.isnan(out).any() and
                    (error - ulp).max() <= 2 * usual.max() and
                    (np.isneginf(lse) == gone).all() and
                    abs(np.where(gone, 0, lse - np.where(gone, 0, sums))).max() < 1e-4)

    def test_right_and_wrong(self):
        rows, keys = 3 * BLOCK - 5, 4 * BLOCK
        tensors, seen = self.problem(rows, keys, [BLOCK + 20, 3 * BLOCK])
        kept = blocks_of(seen)
        # What the first block of rows sees of the second document: all and parts.
        self.assertTrue(kept[0].any() and kept[1].any())
        partly, wholly = map(lists_of, kept)
        good = self.run_lists(tensors, *partly, *wholly, score=True)
        self.assertTrue(self.right(tensors, seen, good, True))
        self.assertFalse(good[0][:, 2 * BLOCK:].any())

        # Numbers of lists in another order are the same tiles.
        back = partly[1].copy()
        for at in np.ndindex(back.shape[:3]):
            n = partly[0][at]
            back[at][:n] = partly[1][at][:n][::-1]
        self.assertTrue(self.right(tensors, seen, self.run_lists(
            tensors, partly[0], back, *wholly, score=True), True))

        faults = []
        at = tuple(np.argwhere(kept[0])[0])
        called_whole = kept.copy()
        called_whole[(0, *at)], called_whole[(1, *at)] = False, True
        faults.append(called_whole)
        for part in 0, 1:
            dropped = kept.copy()
            dropped[(part, *np.argwhere(kept[part])[-1])] = False
            faults.append(dropped)
        for fault in faults:
            partly, wholly = map(lists_of, fault)
            bad = self.run_lists(tensors, *partly, *wholly, score=True)
            self.assertFalse(self.right(tensors, seen, bad, True))

    def test_cut(self):
        """The end of the sequence cuts the last block; it counts as partly visible, or, by
        whoever does not look, as whole. Lists of one head are those of all."""
        rows, keys = BLOCK + 3, 2 * BLOCK - 9
        tensors, seen = self.problem(rows, keys, [])
        seen[:, 1] = seen[:, 0]
        partly, wholly = (lists_of(x[:, :1]) for x in blocks_of(seen))
        self.assertTrue(self.right(tensors, seen, self.run_lists(
            tensors, *partly, *wholly)))
        neither = np.zeros_like(partly[0]), partly[1]
        every = lists_of(blocks_of(seen).any(0)[:, :1])
        self.assertTrue(self.right(tensors, seen, self.run_lists(
            tensors, *neither, *every)))
        # Without lists of whole blocks.
        self.assertTrue(self.right(tensors, seen, self.run_lists(tensors, *every)))
        # Blocks behind the last one are that one, and so many as there is room for.
        beyond = every[1].copy()
        beyond[0, 0, 0, 1] = 77
        self.assertTrue(self.right(tensors, seen, self.run_lists(
            tensors, np.array([[[77, -3]]], np.int32), beyond)))


    def test_lists_know_better(self):
        """A mask hides keys of partly visible blocks alone, wherever the sequence ends."""
        for keys in 2 * BLOCK, 2 * BLOCK - 9:
            tensors, _ = self.problem(BLOCK, keys, [20])
            doc = tensors["doc"][0]
            partly = np.array([[[1]]], np.int32), np.array([[[[0, 9]]]], np.int32)
            wholly = np.array([[[1]]], np.int32), np.array([[[[1, 9]]]], np.int32)
            at = np.arange(BLOCK)[:, None] + keys - BLOCK
            seen = (doc[:BLOCK, None] == doc) & (np.arange(keys) <= at)
            seen[:, BLOCK:] = True
            self.assertTrue(self.right(tensors, seen[None, None], self.run_lists(
                tensors, *partly, *wholly, causal=True)))


if __name__ == "__main__":
    unittest.main()
