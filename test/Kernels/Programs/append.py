# examples/append.mlir on the emulator, against numpy.
# RUN: %python %s %src sm_80
# RUN: %python %s %src sm_90a
# RUN: %python %s %src gfx942
# RUN: %python %s %src gfx950
"""New tokens stored into caches by a program of the thread stage, which is also run
for dense, ragged and continuous caches, other page sizes and layouts of pages.

    append.py SOURCE CHIP
"""

import pathlib
import re
import sys
import unittest

import numpy as np

import kvbuf

CHIP = sys.argv.pop()
SOURCE = pathlib.Path(sys.argv.pop())
RNG = np.random.default_rng()
TEXT = (SOURCE / "examples/append.mlir").read_text()

HEADS, SIZE = 8, 128


def random(*shape):
    return RNG.integers(0, 1 << 16, shape, np.uint16)


def pages(batch, per_seq, blocks):
    """A table of different pages for all sequences."""
    return RNG.permutation(blocks)[:batch * per_seq].reshape(
        batch, per_seq).astype(np.int32)


class Append(unittest.TestCase):
    #: Whether launches are on a GPU (benchmark/verify_programs.py).
    ON_GPU = False

    def run_on(self, kernel, counts, lengths, table, page, k, v):
        """Launches, and compares both caches with what numpy makes of them."""
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        k_new, v_new = (random(offsets[-1], HEADS, SIZE) for _ in "kv")
        expected = []
        for cache, new in ((k, k_new), (v, v_new)):
            cache = cache.copy()
            for b, count in enumerate(counts):
                for i in range(count):
                    at = lengths[b] + i
                    if at < table.shape[1] * page:
                        block = table[b, at // page]
                        if 0 <= block < len(cache):
                            cache[block, at % page] = new[offsets[b] + i]
            expected.append(cache)
        word = np.int32
        kernel(k_new=k_new, v_new=v_new, offsets=offsets, k=k, v=v,
               k_table=table, v_table=table, k_lengths=word(lengths),
               v_lengths=word(lengths))
        np.testing.assert_array_equal(k, expected[0])
        np.testing.assert_array_equal(v, expected[1])

    def test_paged(self):
        for page in (16, 1, 3, 528):
            kernel = kvbuf.compile(
                TEXT.replace("page_size = 16", f"page_size = {page}"),
                target=CHIP, machine_code=False)
            batch, blocks, room = 3, 50 if page < 100 else 5, 14
            per_seq = -(-room // page)
            counts, lengths = [5, 0, 7], [room - 5, 2, 0]
            table = pages(batch, per_seq, blocks)
            k, v = (random(blocks, page, HEADS, SIZE) for _ in "kv")
            self.run_on(kernel, counts, lengths, table, page, k, v)

    def test_layouts(self):
        kernel = kvbuf.compile(TEXT, target=CHIP, machine_code=False)
        table = pages(2, 2, 9)
        # K and V of a page in one tensor; heads outside of tokens; a table of
        # longer rows.
        both = random(9, 2, 16, HEADS, SIZE)
        self.run_on(kernel, [3, 20], [13, 2], table, 16, both[:, 0], both[:, 1])
        k, v = (random(9, HEADS, 16, SIZE).transpose(0, 2, 1, 3) for _ in "kv")
        wide = np.full((2, 7), 1 << 30, np.int32)
        wide[:, :2] = table
        self.run_on(kernel, [20, 3], [0, 11], wide[:, :2], 16, k, v)

    def test_what_has_no_row(self):
        """Past the table, in pages that there are not, at lengths that no
        sequence has: nothing is stored, and nothing else is written. A host that
        can read lengths refuses those."""
        kernel = kvbuf.compile(TEXT, target=CHIP, machine_code=False)
        device = kvbuf.Device("emulator", check_lengths=False)
        table = pages(3, 2, 9)
        table[1, 0], table[2] = 9, [-1, 1 << 30]
        k, v = (random(9, 16, HEADS, SIZE) for _ in "kv")
        self.run_on(kernel, [9, 20, 18], [28, 0, 15], table, 16, k, v)
        before = k.copy()
        offsets, lengths = np.int32([0, 2, 4, 6]), np.int32([32, 40, 1 << 30])
        new = random(6, HEADS, SIZE)
        kernel(k_new=new, v_new=new, offsets=offsets, k=k, v=v, k_table=table,
               v_table=table, k_lengths=lengths, v_lengths=lengths, device=device)
        np.testing.assert_array_equal(k, before)
        if not self.ON_GPU:
            with self.assertRaisesRegex(
                    kvbuf.Error, "^tensor 'k.lengths' holds 40 at 1; expected 0 to "
                    "32, the tokens that a sequence has room for$"):
                kernel(k_new=new, v_new=new, offsets=offsets, k=k, v=v, k_table=table,
                       v_table=table, k_lengths=lengths, v_lengths=lengths)
        # A negative length counts as none.
        kernel(k_new=new, v_new=new, offsets=offsets, k=k, v=v, k_table=table,
               v_table=table, k_lengths=np.int32([-5, 40, 40]),
               v_lengths=np.int32([40, 40, 40]), device=device)
        before[table[0, 0], :2] = new[:2]
        np.testing.assert_array_equal(k, before)

    def test_wide_indices(self):
        kernel = kvbuf.compile(
            re.sub(r'(kvbuffer.name = "[kv]")', r"\1, kvbuffer.index = i64",
                   TEXT), target=CHIP, machine_code=False)
        table = pages(2, 2, 9).astype(np.int64)
        table[1, 1] |= 1 << 40
        k, v = (random(9, 16, HEADS, SIZE) for _ in "kv")
        before = k.copy()
        new = random(30, HEADS, SIZE)
        lengths = np.int64([0, 2])
        kernel(k_new=new, v_new=new, offsets=np.int32([0, 10, 30]), k=k, v=v,
               k_table=table, v_table=table, k_lengths=lengths,
               v_lengths=lengths)
        before[table[0, 0], :10] = new[:10]
        before[table[1, 0], 2:] = new[10:24]
        np.testing.assert_array_equal(k, before)

    def test_other_kinds(self):
        for kind in "continuous", "dense", "ragged":
            text = TEXT.replace("paged", kind).replace(", page_size = 16", "")
            if kind != "continuous":
                # These have all their rows from the beginning.
                text = re.sub(r"%length = .*", "%length = arith.constant 3 : "
                              "index", text)
            kernel = kvbuf.compile(text, target=CHIP, machine_code=False)
            counts = [4, 9]
            new = random(13, HEADS, SIZE)
            given = {"offsets": np.int32([0, 4, 13])}
            k = random(21, HEADS, SIZE)
            if kind != "ragged":
                k = random(3, 10, HEADS, SIZE)
            v, expected = k.copy(), k.copy()
            if kind == "ragged":
                for name in "kv":
                    given[f"{name}_offsets"] = np.int32([2, 10, 21])
                expected[5:9], expected[13:21] = new[:4], new[4:12]
            elif kind == "dense":
                k, v, expected = k[:2], v[:2], expected[:2]
                expected[0, 3:7], expected[1, 3:10] = new[:4], new[4:11]
            else:
                for name in "kv":
                    given[f"{name}_table"] = np.int32([2, 0])
                    given[f"{name}_lengths"] = np.int32([6, 3])
                expected[2, 6:10], expected[0, 3:10] = new[:4], new[4:11]
            kernel(k_new=new, v_new=new, k=k, v=v, **given)
            np.testing.assert_array_equal(k, expected, err_msg=kind)
            np.testing.assert_array_equal(v, expected, err_msg=kind)


if __name__ == "__main__":
    unittest.main()
