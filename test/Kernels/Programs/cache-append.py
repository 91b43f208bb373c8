# kvbuffer.cache_append on the emulator, against numpy.
# RUN: %python %s %src sm_80
# RUN: %python %s %src sm_90a
# RUN: %python %s %src gfx942
# RUN: %python %s %src gfx950
"""New keys and values into caches of every kind: rotated, quantized, ragged.

    cache-append.py SOURCE CHIP

What is not rotated and not quantized is compared bit by bit. A rotated element may
differ from float64 by a unit in the last place of the cache's type and by what
three roundings of f32 make of its operands; a quantized one by half the distance to
its neighbours besides.
"""

import pathlib
import sys
import unittest

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import from_bf16, to_bf16
from numbers8 import float8, rotated

CHIP = sys.argv.pop()
sys.argv.pop()
RNG = np.random.default_rng()
FNUZ = "FNUZ" if CHIP == "gfx942" else ""
E4M3 = "f8E4M3FNUZ" if FNUZ else "f8E4M3FN"
E5M2 = "f8E5M2" + FNUZ


def problem(cache, k="memref<?x{h}x{d}xbf16, strided<[?, ?, 1]>>", values=True,
            at=False, rope=None, ragged=True, interleaved=False, heads=2, size=64):
    """The text of a problem. `rope`: columns of the tables."""
    if not ragged:
        k = "memref<?x?x{h}x{d}xbf16, strided<[?, ?, ?, 1]>>"
    new = k.format(h=heads, d=size)
    cache = "!kvbuffer.cache<" + cache.format(h=heads, d=size) + ">"
    angles = f"memref<?x{rope}xf32>"
    args = [("k", new), ("kc", cache)]
    text = f"k(%k : {new}) to(%kc : {cache})"
    if values:
        args += [("v", new), ("vc", cache)]
        text += f" v(%v : {new}) to(%vc : {cache})"
    if ragged:
        args += [("o", "memref<?xi32>")]
        text += " offsets(%o : memref<?xi32>)"
    if at:
        args += [("at", "memref<?xi32>")]
        text += " at(%at : memref<?xi32>)"
    if rope:
        args += [("cos", angles), ("sin", angles)]
        text += f" rope(%cos, %sin : {angles}, {angles})"
    if interleaved:
        text += " {interleaved}"
    names = ", ".join(f"%{n}: {t}" for n, t in args)
    return (f"func.func @append({names}) {{\n  kvbuffer.cache_append {text}\n"
            "  return\n}\n")


class Append(unittest.TestCase):
    def check(self, text, counts, lengths, page=4, blocks=11, per_seq=4, heads=2,
              size=64, rope=None, interleaved=False, stored="bf16", granularity=None,
              ragged=True, values=True, at=None, scale=None, device=None):
        kernel = kvbuf.compile(text, target=CHIP, machine_code=False)
        total = sum(counts)
        table = RNG.permutation(max(blocks, len(counts) * per_seq))[
            :len(counts) * per_seq].reshape(len(counts), per_seq).astype(np.int32)
        given = {"k_table": table, "k_lengths": np.int32(lengths)}
        if at is not None:
            given["at"] = np.int32(at)
        begin = np.clip(lengths, 0, per_seq * page) if at is None else at
        new, caches, scales = {}, {}, {}
        for name in "kv" if values else "k":
            x = to_bf16(RNG.standard_normal((total, heads, size)))
            new[name] = from_bf16(x)
            given[name + "_new"] = x
            if not ragged:
                given[name + "_new"] = x.reshape(len(counts), -1, heads, size)
            given[name + "_table"], given[name + "_lengths"] = table, np.int32(lengths)
            kind = np.uint16 if stored == "bf16" else np.uint8
            caches[name] = RNG.integers(0, 250, (blocks, page, heads, size), kind)
            given[name] = caches[name].copy()
            if granularity == "tensor":
                given[name + "_scales"] = np.float32([scale or 0.03])
            elif granularity == "head":
                given[name + "_scales"] = np.float32(RNG.uniform(0.01, 0.04, heads))
            elif granularity:
                groups = -(-size // granularity)
                scales[name] = RNG.standard_normal(
                    (blocks, page, heads, groups)).astype(np.float32)
                given[name + "_scales"] = scales[name].copy()
        if ragged:
            given["offsets"] = np.concatenate([[0], np.cumsum(counts)]).astype(
                np.int32)
        if rope:
            angles = RNG.uniform(0, 7, (per_seq * page, rope))
            given["cos"], given["sin"] = (f(angles).astype(np.float32)
                                          for f in (np.cos, np.sin))
        kernel(**given, **({"device": device} if device else {}))
        for name in caches:
            expected = caches[name].copy()
            expected_scales = scales[name].copy() if name in scales else None
            row = 0
            for b, count in enumerate(counts):
                for i in range(count):
                    at_row, row = row, row + 1
                    position = begin[b] + i
                    if not 0 <= position < per_seq * page:
                        continue
                    block = table[b, position // page]
                    if not 0 <= block < blocks:
                        continue
                    place = block, position % page
                    x = new[name][at_row]
                    size_of = abs(x)
                    if rope and name == "k":
                        x, size_of = rotated(x, position, given["cos"],
                                             given["sin"], interleaved)
                    got = given[name][place]
                    expected[place] = got
                    if stored == "bf16":
                        self.close_bf16(got, x, size_of, rope and name == "k")
                        continue
                    if granularity == "tensor":
                        scale = np.full(x.shape, given[name + "_scales"][0])
                    elif granularity == "head":
                        scale = np.repeat(given[name + "_scales"][:, None], size, 1)
                    elif granularity:
                        groups = given[name + "_scales"][place]
                        expected_scales[place] = groups
                        scale = np.repeat(groups, granularity, 1)[:, :size]
                        self.right_scales(groups, x, granularity, stored)
                    else:
                        scale = np.ones(x.shape)
                    self.close_float8(got, x, size_of, scale, stored)
            # Nothing else was written.
            np.testing.assert_array_equal(given[name], expected)
            if expected_scales is not None:
                np.testing.assert_array_equal(given[name + "_scales"],
                                              expected_scales)

    def close_bf16(self, got, x, size_of, is_rotated):
        if not is_rotated:
            np.testing.assert_array_equal(got, to_bf16(x))
            return
        ulp = np.ldexp(1.0, np.frexp(x)[1] - 8)
        self.assertTrue((abs(from_bf16(got) - x)
                         <= 0.501 * ulp + 3 * 2.0 ** -24 * size_of).all())

    def right_scales(self, groups, x, granularity, stored):
        values = float8(stored)
        largest = values[np.isfinite(values)].max()
        for g in range(groups.shape[1]):
            amax = abs(x[:, g * granularity:(g + 1) * granularity]).max(1)
            wanted = np.where(amax == 0, 1, amax / largest)
            np.testing.assert_allclose(groups[:, g], wanted, rtol=1e-6)

    def close_float8(self, got, x, size_of, scale, stored):
        values = float8(stored)
        finite = np.unique(values[np.isfinite(values)])
        exact = np.clip(x / scale, finite[0], finite[-1])
        got = values[got]
        self.assertTrue(np.isfinite(got).all())
        # No element is nearer than the one that was stored, by more than what
        # f32 makes of it.
        above = finite[np.minimum(np.searchsorted(finite, exact), len(finite) - 1)]
        below = finite[np.maximum(np.searchsorted(finite, exact, "right") - 1, 0)]
        best = np.minimum(abs(above - exact), abs(below - exact))
        self.assertTrue((abs(got - exact) <= best + 8 * 2.0 ** -24
                         * size_of / scale).all())

    PAGED = "paged, bf16, heads = {h}, head_size = {d}, page_size = 4"

    def test_ragged(self):
        self.check(problem(self.PAGED), [5, 0, 3, 9], [2, 3, 0, 7], blocks=20)

    def test_dense(self):
        self.check(problem(self.PAGED, ragged=False), [3, 3], [5, 13], ragged=False)

    def test_keys_alone(self):
        self.check(problem(self.PAGED, values=False), [4], [1], values=False)

    def test_at(self):
        # Positions before the first, and past the room, have no row.
        self.check(problem(self.PAGED, at=True), [4, 4, 4, 4], [0, 0, 0, 0],
                   at=[3, -2, 14, 1 << 30], blocks=16)

    def test_pages_that_there_are_not(self):
        self.check(problem(self.PAGED, at=True), [9, 9], [0, 0], blocks=4, at=[2, 0])

    def test_what_a_device_reads(self):
        """Lengths count as the nearest that there can be; what has no row, or no
        page, is left out."""
        device = kvbuf.Device("emulator", check_lengths=False)
        self.check(problem(self.PAGED), [4, 4, 3, 5], [-5, 14, 1 << 30, -2 ** 31],
                   device=device, blocks=16)
        self.check(problem(self.PAGED), [9, 9], [0, 3], blocks=4, device=device)

    def test_what_the_host_knows(self):
        """Errors instead, where lengths alone say where tokens go."""
        for counts, lengths, message in (
                ([4], [-1], r"'k.lengths' holds -1 at 0; expected 0 to 16 - 4, the "
                 "tokens that a sequence has room for in 'k' less the new ones"),
                ([4], [13], "'k.lengths' holds 13 at 0; expected 0 to 16 - 4"),
                ([2, 4], [0, 1 << 30], "'k.lengths' holds 1073741824 at 1")):
            with self.assertRaisesRegex(kvbuf.Error, message):
                self.check(problem(self.PAGED), counts, lengths)
        with self.assertRaisesRegex(kvbuf.Error, "'k.table' holds .* where new tokens "
                                    "go; expected 0 to 0, a block of 'k'"):
            self.check(problem(self.PAGED), [4, 4, 4], [0, 0, 0], blocks=1)
        with self.assertRaisesRegex(kvbuf.Error, "'offsets' holds .*; expected offsets "
                                    "that never fall"):
            self.check(problem(self.PAGED), [4, -2, 6], [0, 0, 0])

    def test_rope(self):
        for interleaved, rope, size in ((False, 16, 64), (False, 40, 80),
                                        (True, 32, 64), (True, 10, 80)):
            self.check(problem(self.PAGED, rope=rope, size=size,
                               interleaved=interleaved),
                       [5, 2], [3, 9], rope=rope, size=size,
                       interleaved=interleaved)

    def float8_cache(self, stored, granularity=None):
        text = self.PAGED.replace("bf16", stored)
        return text + (f", scale = f32, granularity = {granularity}"
                       if granularity else "")

    def test_given_scales(self):
        for granularity, stored in (("tensor", E4M3), ("head", E5M2)):
            self.check(problem(self.float8_cache(stored, granularity), rope=32),
                       [5, 2], [3, 9], rope=32, stored=stored,
                       granularity=granularity)
        # Most elements exceed the largest.
        self.check(problem(self.float8_cache(E4M3, "tensor")), [5], [3],
                   stored=E4M3, granularity="tensor", scale=0.001)

    def test_no_scales(self):
        self.check(problem(self.float8_cache(E5M2)), [5], [3], stored=E5M2)

    def test_made_scales(self):
        for granularity, size in (16, 64), (80, 80), (128, 128):
            self.check(problem(self.float8_cache(E4M3, granularity), rope=size // 2,
                               interleaved=size == 80, size=size),
                       [5, 2], [3, 9], rope=size // 2, size=size, stored=E4M3,
                       interleaved=size == 80, granularity=granularity)


if __name__ == "__main__":
    unittest.main()
