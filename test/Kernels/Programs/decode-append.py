# New tokens stored and attended to by one launch, on the emulator, against float64.
# RUN: %python %s %src sm_80
# RUN: %python %s %src sm_90a
# RUN: %python %s %src gfx942
# RUN: %python %s %src gfx950
"""kvbuffer.cache_append before kvbuffer.attention, of caches of every kind.

    decode-append.py SOURCE CHIP

Rows of new tokens hold NaN before the launch. What is stored is compared with
float64, what attention makes of it with float64 on what is stored, and nothing
else may change. Lengths are such that tokens lie in the first tile, in the last
row of a piece, and on both sides of where pieces meet. The last test takes the
barrier between stores and reads out.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
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
FLOATS = {"e4m3": "f8E4M3" + (FNUZ or "FN"), "e5m2": "f8E5M2" + FNUZ}


class Case:
    """Sequences of `cached` tokens, and `new` ones for each."""

    def __init__(self, cached, new=1, heads=8, kv=2, size=64, values=0, page=16,
                 room=None, kind="", scale="", rope=0, interleaved=False, window=-1):
        self.cached, self.new, self.heads, self.kv = cached, new, heads, kv
        self.size, self.page, self.kind, self.scale = size, page, kind, scale
        self.rope, self.interleaved, self.window = rope, interleaved, window
        batch, most = len(cached), max(cached) + new
        rows = page or most
        per = -(-most // page) + 1 if page else 1
        self.room = room or (per * page if page else most)
        blocks = batch * per + 2
        shapes = {n: (blocks, rows, kv, d)
                  for n, d in (("k", size), ("v", values or size))}
        shape = shapes["k"]
        self.values = float8(FLOATS[kind]) if kind else None
        code = self.values.size - 1 if kind else 0x7FC0
        self.kept = {}
        ids = RNG.permutation(blocks)[:batch * per].reshape(batch, per)
        self.table = ids.astype(np.int32)
        used = np.zeros(shape[:2], bool)
        for b, n in enumerate(cached):
            for i in range(n):
                used[self.place(b, i)] = True
        finite = np.flatnonzero(np.isfinite(self.values)) if kind else None
        for name, shape in shapes.items():
            if kind:
                # Ordinary numbers, and not a number where there is no token.
                data = RNG.choice(finite[abs(self.values[finite]) <= 32], shape)
                data = data.astype(np.uint8)
                data[~used] = np.flatnonzero(np.isnan(self.values))[0]
            else:
                data = to_bf16(RNG.standard_normal(shape))
                data[~used] = code
            self.kept[name] = data
        self.scales = {}
        # Elements of a token's head that a scale is made of; 0: none is made.
        self.groups = {n: shape[-1] if scale == "token" else
                       int(scale) if scale.isdigit() else 0
                       for n, shape in shapes.items()}
        for name, shape in shapes.items():
            if scale == "tensor":
                self.scales[name] = np.float32([RNG.uniform(0.02, 0.05)])
            elif scale == "head":
                self.scales[name] = np.float32(RNG.uniform(0.02, 0.05, kv))
            elif self.groups[name]:
                count = shape[-1] // self.groups[name]
                s = np.float32(RNG.uniform(0.02, 0.05, (*shape[:3], count)))
                s[~used] = np.nan
                self.scales[name] = s
        self.q = to_bf16(RNG.standard_normal((batch, new, heads, size)))
        self.out_shape = batch, new, heads, values or size
        self.fresh = {n: to_bf16(RNG.standard_normal((batch, new, *shape[2:])))
                      for n, shape in shapes.items()}
        angles = RNG.uniform(0, 7, (most, max(rope, 1)))
        self.angles = [f(angles).astype(np.float32) for f in (np.cos, np.sin)]

    def place(self, b, i):
        if self.page:
            return self.table[b, i // self.page], i % self.page
        return self.table[b, 0], i

    def problem(self):
        dtype = {"": "", "e4m3": "e4m3", "e5m2": "e5m2"}[self.kind]
        dtype += "fnuz" if dtype and FNUZ else ""
        return kvbuf.Problem(
            heads=self.heads, kv_heads=self.kv, head_size=self.size,
            v_head_size=self.out_shape[-1],
            cache="paged" if self.page else "continuous", page_size=self.page,
            lengths="cached", causal=True, window_left=self.window,
            seq_q=self.new, k_dtype=dtype, v_dtype=dtype, k_scale=self.scale,
            v_scale=self.scale, rope=self.rope, lse=True,
            append="plain" if not self.rope else
            "interleaved" if self.interleaved else "half")

    def run(self, kernel, seed=1):
        """Launches; (output, log-sum-exp, caches, scales)."""
        out = np.full(self.out_shape, 0x7FC0, np.uint16)
        lse = np.full((len(self.cached), self.heads, self.new), np.nan, np.float32)
        caches = {n: x.copy() for n, x in self.kept.items()}
        scales = {n: x.copy() for n, x in self.scales.items()}
        table = self.table if self.page else self.table[:, 0].copy()
        lengths = np.int32(self.cached)
        given = dict(q=self.q, o=out, lse=lse, **caches)
        for n in "kv":
            given.update({n + "_new": self.fresh[n], n + "_table": table,
                          n + "_lengths": lengths})
            if n in scales:
                given[n + "_scales"] = scales[n]
        if self.rope:
            given["cos"], given["sin"] = self.angles
        kernel(**given, device=kvbuf.Device("emulator", seed=seed))
        return out, lse, caches, scales

    def run_tiles(self, text):
        """The same on whole tiles: a program of the tile stage."""
        table = self.table if self.page else self.table[:, 0].copy()
        given = {"q": self.q, "o": np.full(self.out_shape, 0x7FC0, np.uint16),
                 "lse": np.full((len(self.cached), self.heads, self.new), np.nan,
                                np.float32)}
        for n in "kv":
            given.update({n: self.kept[n], n + "_new": self.fresh[n],
                          n + ".table": table, n + ".lengths": np.int32(self.cached)})
            if n in self.scales:
                given[n + ".scales"] = self.scales[n]
        if self.rope:
            given["cos"], given["sin"] = self.angles
        written = ["o", "lse", "k", "v"] + [n + ".scales" for n in self.scales]
        with tempfile.TemporaryDirectory() as folder:
            options = []
            for n, x in given.items():
                np.save(f"{folder}/{n}.npy", x)
                options.append(f"--input={n}={folder}/{n}.npy")
            options += [f"--output={n}={folder}/{n}.out.npy" for n in written]
            done = subprocess.run(["kvbuf-tile-run", "-", *options], input=text,
                                  capture_output=True, text=True)
            if done.returncode:
                raise kvbuf.Error(done.stderr)
            got = {n: np.load(f"{folder}/{n}.out.npy") for n in written}
        bits = {n: x.view(np.uint16) if x.dtype.itemsize == 2 else
                x.view(np.uint8) if x.dtype.itemsize == 1 else x
                for n, x in got.items()}
        return (bits["o"], bits["lse"], {n: bits[n] for n in "kv"},
                {n: bits[n + ".scales"] for n in self.scales})

    def scale_of(self, scales, name, place):
        """Of each element, [heads, head size], or of each head."""
        if not self.scale:
            return np.ones((self.kv, 1))
        if self.groups[name]:
            return np.repeat(scales[name][place].astype(np.float64),
                             self.groups[name], axis=-1)
        return np.broadcast_to(scales[name].astype(np.float64)[:, None],
                               (self.kv, 1))

    def check_stored(self, test, caches, scales):
        """What the new tokens' rows hold, and that nothing else has changed."""
        for name in "kv":
            expected, given = self.kept[name].copy(), caches[name]
            made = scales[name].copy() if self.scale else None
            before = self.scales.get(name)
            for b, n in enumerate(self.cached):
                for i in range(self.new):
                    at = self.place(b, n + i)
                    x = from_bf16(self.fresh[name][b, i])
                    size = abs(x)
                    if name == "k" and self.rope:
                        x, size = rotated(x, n + i, *self.angles,
                                          self.interleaved)
                    got = expected[at] = given[at]
                    if not self.kind:
                        if not self.rope or name == "v":
                            np.testing.assert_array_equal(got, to_bf16(x))
                            continue
                        ulp = np.ldexp(1.0, np.frexp(x)[1] - 8)
                        test.assertTrue((abs(from_bf16(got) - x) <= 0.501 * ulp
                                         + 3 * 2.0 ** -24 * size).all())
                        continue
                    scale = self.scale_of(scales, name, at)
                    finite = np.unique(self.values[np.isfinite(self.values)])
                    if group := self.groups[name]:
                        wanted = abs(x).reshape(self.kv, -1, group).max(-1)
                        wanted = np.repeat(wanted / finite[-1], group, axis=-1)
                        np.testing.assert_allclose(scale, wanted, rtol=1e-6)
                        made[at] = before[at]
                    exact = np.clip(x / scale, finite[0], finite[-1])
                    value = self.values[got]
                    test.assertTrue(np.isfinite(value).all())
                    above = finite[np.minimum(np.searchsorted(finite, exact),
                                              len(finite) - 1)]
                    below = finite[np.maximum(
                        np.searchsorted(finite, exact, "right") - 1, 0)]
                    best = np.minimum(abs(above - exact), abs(below - exact))
                    test.assertTrue((abs(value - exact) <= best + 8 * 2.0 ** -24
                                     * size / scale).all())
            np.testing.assert_array_equal(given, expected)
            if self.scale:
                np.testing.assert_array_equal(made, before)

    def check_attention(self, test, out, lse, caches, scales):
        out = from_bf16(out)
        test.assertFalse(np.isnan(out).any())
        exact, base = np.zeros_like(out), np.zeros_like(out)
        for b, n in enumerate(self.cached):
            keys = n + self.new
            rows = {}
            for name in "kv":
                stored = [(caches[name][self.place(b, j)],
                           self.scale_of(scales, name, self.place(b, j)))
                          for j in range(keys)]
                rows[name] = np.stack([
                    (self.values[x] if self.kind else from_bf16(x)) * s
                    for x, s in stored])
            for i in range(self.new):
                last = n + i
                first = max(0, last - self.window) if self.window >= 0 else 0
                k, v = (np.repeat(rows[x][first:last + 1], self.heads // self.kv,
                                  axis=1) for x in "kv")
                s = np.einsum("hd,jhd->hj", from_bf16(self.q[b, i]), k)
                s /= self.size ** 0.5
                top = s.max(-1)
                p = np.exp(s - top[:, None])
                total = p.sum(-1)
                exact[b, i] = np.einsum("hj,jhd->hd", p, v) / total[:, None]
                low = np.einsum("hj,jhd->hd", from_bf16(to_bf16(p)), v)
                base[b, i] = from_bf16(to_bf16(low / total[:, None]))
                np.testing.assert_allclose(lse[b, :, i], top + np.log(total),
                                           rtol=1e-5, atol=1e-4)
        ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
        error, usual = abs(out - exact), abs(base - exact)
        test.assertLessEqual((error - ulp).max(), 2 * usual.max())
        test.assertLessEqual(error.mean(), 1.15 * usual.mean() + 1e-6)


#: Keys of a piece over several warps, which do not divide the heads of the cache.
WARPS = ("split_keys=true,warps=2,stages=1" if CHIP.startswith("gfx")
         else "split_keys=true,warps=4")


#: Lets each piece store all tokens.
ALL_STORE = (r"scf\.if %\w+ (\{\n *kvbuffer\.append_tokens.* from) %\w+ upto %\w+ ",
             r"%zero_ = arith.constant 0 : index\n%all_ = arith.constant 4096 : "
             r"index\n%yes_ = arith.constant true\nscf.if %yes_ \1 %zero_ upto %all_ ")


class DecodeAppend(unittest.TestCase):
    def check(self, *lengths, seeds=(1,), schedule=None, **options):
        """One kernel, several batches."""
        kernel = None
        for cached in lengths:
            case = Case(cached, **options)
            kernel = kernel or kvbuf.compile(case.problem().source(), target=CHIP,
                                             schedule=schedule, machine_code=False)
            first = None
            for seed in seeds:
                out, lse, caches, scales = case.run(kernel, seed)
                case.check_stored(self, caches, scales)
                case.check_attention(self, out, lse, caches, scales)
                first = first or (out, lse)
                # The order in which blocks run changes no bit.
                np.testing.assert_array_equal(out, first[0])

    def test_tokens_in_two_pieces(self):
        self.check([126, 0, 255, 31], [383], new=4, seeds=(1, 2))

    @unittest.skipIf(CHIP.startswith("gfx"), "one wave has all rows of a tile")
    def test_shared_tiles(self):
        """64 rows, of which each of a block's warps has some."""
        self.check([0, 15, 16, 511], new=16, seeds=(1, 2))

    def test_rope(self):
        """Slots, a window, head sizes that lanes divide otherwise."""
        self.check([63, 150], rope=20, interleaved=True, new=2, size=80, page=0,
                   window=40)

    def test_quantized(self):
        self.check([127, 200], kind="e4m3", scale="token", rope=32)
        self.check([33], kind="e5m2", scale="head", new=2, heads=4, kv=1,
                   schedule=WARPS)

    def test_groups(self):
        """Scales that are made of groups of a token's elements."""
        self.check([127, 200], [15], kind="e4m3", scale="32", rope=32, new=2)
        self.check([140], kind="e5m2", scale="64", size=128, page=0)

    def test_value_sizes(self):
        """V's heads larger and smaller than K's: lanes with elements of one only."""
        self.check([63, 150], size=192, values=128, rope=96, new=2, heads=4)
        self.check([33], size=64, values=80, page=0, rope=20, interleaved=True)
        self.check([140, 20], size=192, values=128, kind="e4m3", scale="64", rope=32)
        self.check([33], size=64, values=128, kind="e4m3", scale="token", new=2,
                   schedule=WARPS)

    def test_heads_side_by_side(self):
        """A head of the cache for each warp of a block, which stores its tokens."""
        schedule = WARPS.replace("stages=1", "stages=2")
        for options in {}, {"kind": "e4m3", "scale": "token", "rope": 32}:
            self.check([126, 0, 255, 31], [383], new=2, kv=4, seeds=(1, 2),
                       schedule=schedule, **options)

    def test_wide_heads(self):
        self.check([140], size=256, heads=2, kv=1, rope=128)

    def test_what_the_host_knows(self):
        case = Case([140])
        kernel = kvbuf.compile(case.problem().source(), target=CHIP, machine_code=False)
        for length, message in ((-1, "'k.lengths' holds -1 at 0; expected 0 to "),
                                (1000, "'k.lengths' holds 1000 at 0; expected 0 to ")):
            case.cached = [length]
            with self.assertRaisesRegex(kvbuf.Error, message):
                case.run(kernel)

    def test_tiles(self):
        for options in ({"kind": "e4m3", "scale": "token", "rope": 32, "new": 2},
                        {"kind": "e4m3", "scale": "32", "rope": 32, "new": 2},
                        {"rope": 20, "interleaved": True},
                        {"kind": "e5m2", "scale": "32", "size": 96, "values": 64}):
            case = Case([127, 40], **options)
            text = self.text(case, "tile")
            out, lse, caches, scales = case.run_tiles(text)
            case.check_stored(self, caches, scales)
            case.check_attention(self, out, lse, caches, scales)
        case = Case([200])
        with self.assertRaisesRegex(kvbuf.Error, "writes an element of k that another "
                                    "block or store has written"):
            case.run_tiles(self.replaced(self.text(case, "tile"), *ALL_STORE))

    def text(self, case, stage, schedule=None):
        return subprocess.run(
            ["kvbuf-compile", "-", f"--target={CHIP}", f"--emit={stage}",
             *([f"--schedule={schedule}"] if schedule else [])],
            input=case.problem().source(), capture_output=True, text=True,
            check=True).stdout

    def replaced(self, text, pattern, replacement):
        broken, count = re.subn(pattern, replacement, text, count=1)
        self.assertEqual(count, 1)
        return broken

    def fails(self, case, stage, pattern, replacement, schedule=None):
        broken = self.replaced(self.text(case, stage, schedule), pattern,
                               replacement)
        with self.assertRaisesRegex(kvbuf.KernelFault,
                                    "global-memory race|race between lanes"):
            case.run(kvbuf.compile(broken, target=CHIP, machine_code=False))

    def test_faults(self):
        """Without the barrier between stores and reads of a block; where each piece
        stores all tokens."""
        # So many tokens that one warp reads what another has stored.
        self.fails(Case([300], new=8, size=128, heads=2, kv=1), "thread",
                   r"(kvbuffer\.cache\.store (?:(?!gpu\.barrier)[\s\S])*?)"
                   r"gpu\.barrier", r"\1", WARPS)
        self.fails(Case([200], new=2), "tile", *ALL_STORE)


if __name__ == "__main__":
    unittest.main()
