# RUN: env KVBUF_LIB_DIR=%lib %python %s sm_80
# RUN: env KVBUF_LIB_DIR=%lib %python %s sm_90a
# RUN: env KVBUF_LIB_DIR=%lib %python %s gfx942
# RUN: env KVBUF_LIB_DIR=%lib %python %s gfx950
"""Lengths and offsets that no cache can have: refused where the host can read
them, brought into range by kernels where it cannot."""

import sys
import unittest

import numpy as np

import kvbuf

CHIP = sys.argv.pop()
RNG = np.random.default_rng()
HEADS, SIZE, PAGE = 2, 64, 64
LEAST, MOST = -2**31, 2**31 - 1


def compile(cache, ragged, rows="?", region=""):
    """`rows`: of queries that are not ragged; 1 is a decode kernel's. `region`:
    functions of scores."""
    of = {"paged": f", page_size = {PAGE}"}.get(cache, "")
    cache = f"!kvbuffer.cache<{cache}, f16, heads = 1, head_size = {SIZE}{of}>"
    q = f"memref<{'?x' if ragged else f'?x{rows}x'}{HEADS}x{SIZE}xf16>"
    more, types = "", ""
    arguments = f"%q: {q}, %k: {cache}, %v: {cache}, %o: {q}"
    if ragged:
        more, types = " offsets(%at)", ", offsets memref<?xi32>"
        arguments += ", %at: memref<?xi32>"
    return kvbuf.compile(f"""func.func @f({arguments}) {{
      kvbuffer.attention q(%q) k(%k) v(%v) out(%o){more}
        {{mask = #kvbuffer.mask<causal = true>}}
        : {q}, {cache}, {cache}, {q}{types} {region}
      return }}""", target=CHIP,
        schedule=SCHEDULE if region else None, machine_code=False)


#: Whoever asks for one gets its kernel, and none beside it for few rows: those with
#: regions take less time to compile.
SCHEDULE = "stages=2"


#: Changes no score; the program's own all the same.
SAME = """score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %last: index, %key: index):
      kvbuffer.yield %s : f32
    }"""
#: Hides nothing.
ALL = """visible {
    ^bb0(%batch: index, %head: index, %row: index, %last: index, %key: index):
      %all = arith.constant true
      kvbuffer.yield %all : i1
    }"""


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float16)


def attention(q, k, v):
    """Rows, heads, columns; one KV head; causal at the bottom right."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    out = np.zeros_like(q)
    for i in range(len(q)):
        n = max(0, i + len(k) - len(q) + 1)
        if n:
            s = q[i] @ k[:n, 0].T / np.sqrt(SIZE)
            p = np.exp(s - s.max(-1, keepdims=True))
            out[i] = p / p.sum(-1, keepdims=True) @ v[:n, 0]
    return out


def within(x, least, most):
    """`most` counts where the two cross."""
    return min(max(x, least), most)


class Lengths(unittest.TestCase):
    #: Whether launches are on a GPU (benchmark/verify_programs.py): then no host
    #: reads what arrays hold.
    ON_GPU = False

    @classmethod
    def setUpClass(cls):
        cls.gpu_like = kvbuf.Device("emulator", check_lengths=False)

    def check(self, o, expected):
        np.testing.assert_allclose(o.astype(np.float64), expected, rtol=0,
                                   atol=1e-2)

    def cache(self, kernel, lengths, room, tables, data, new=3):
        q = normal(len(lengths), new, HEADS, SIZE)
        k, v = (normal(*data, 1, SIZE) for _ in range(2))
        lengths = np.array(lengths, np.int32)
        given = dict(q=q, k=k, v=v, k_table=tables, v_table=tables,
                     k_lengths=lengths, v_lengths=lengths)
        o = np.full_like(q, np.nan)
        kernel(**given, out=o, device=self.gpu_like)
        for b, length in enumerate(lengths.tolist()):
            keys = min(max(length, 0) + new, room)
            rows = [x[tables[b]].reshape(-1, 1, SIZE)[:keys] for x in (k, v)]
            self.check(o[b], attention(q[b], *rows))
        if self.ON_GPU:
            return
        with self.assertRaisesRegex(
                kvbuf.Error, r"^missing tensor 'v_table': i32 of shape "
                r"\[batch(, pages_per_seq)?\]$"):
            kernel(**{n: x for n, x in given.items() if n != "v_table"}, out=o)
        # The host's memory is looked at first.
        for b, bad in ((0, LEAST), (1, -1), (len(lengths) - 1, room - new + 1),
                       (0, MOST)):
            lengths[:] = room - new
            lengths[b] = bad
            with self.assertRaisesRegex(
                    kvbuf.Error, rf"^tensor 'k.lengths' holds {bad} at {b}; "
                    rf"expected 0 to {room} - {new}, the keys that a sequence "
                    "has room for less the new ones$"):
                kernel(**given, out=o)
        lengths[:] = room - new
        kernel(**given, out=o)
        # So are the entries of tables that keys are looked up by, and no others.
        blocks = data[0]
        for name in "kv":
            tables = given[f"{name}_table"] = tables.copy()
            last = (len(lengths) - 1,) + (1,) * (tables.ndim - 1)
            for bad in -1, blocks, MOST:
                kept, tables[last] = tables[last], bad
                with self.assertRaisesRegex(
                        kvbuf.Error, rf"^tensor '{name}.table' holds {bad} at "
                        rf"{', '.join(map(str, last))}, which is looked up; "
                        rf"expected 0 to {blocks - 1}, a block of '{name}'$"):
                    kernel(**given, out=o)
                if tables.ndim > 1:
                    lengths[-1] = PAGE - new
                    kernel(**given, out=o)
                    lengths[-1] = room - new
                tables[last] = kept

    WILD = [LEAST, -1, MOST, 0, 127, 128, 126, 2**20]

    def test_paged(self):
        tables = RNG.permutation(20)[:16].astype(np.int32).reshape(8, 2)
        self.cache(compile("paged", False), self.WILD, 128, tables, (20, PAGE))

    def test_decode(self):
        """Keys split over blocks, one new token a sequence."""
        tables = RNG.permutation(20)[:16].astype(np.int32).reshape(8, 2)
        self.cache(compile("paged", False, 1), self.WILD, 128, tables,
                   (20, PAGE), new=1)
        tables = RNG.permutation(9)[:8].astype(np.int32)
        self.cache(compile("continuous", False, 1), self.WILD, 128, tables,
                   (9, 128), new=1)

    def test_continuous(self):
        tables = RNG.permutation(9)[:8].astype(np.int32)
        self.cache(compile("continuous", False), self.WILD, 128, tables,
                   (9, 128))

    def test_own_scores(self):
        """What an attention asks of tensors does not hang on its scores."""
        tables = RNG.permutation(20)[:16].astype(np.int32).reshape(8, 2)
        self.cache(compile("paged", False, region=SAME), self.WILD, 128, tables,
                   (20, PAGE))
        self.cache(compile("paged", False, 1, region=ALL), self.WILD, 128, tables,
                   (20, PAGE), new=1)
        self.ragged(compile("ragged", True, region=ALL))

    def test_own_program(self):
        """A kernel by lanes that no pass knows: what its caches' tensors hold, and
        an output in a cache's memory."""
        kinds = {"p": "paged, f32, heads = 1, head_size = 4, page_size = 2",
                 "s": "continuous, f32, heads = 1, head_size = 4",
                 "r": "ragged, f32, heads = 1, head_size = 4",
                 "d": "dense, f32, heads = 1, head_size = 4"}
        caches = ", ".join(
            f'%{n}: !kvbuffer.cache<{t}> {{kvbuffer.name = "{n}"' + (
                f', kvbuffer.sizes = {{num_blocks = "{n}_blocks"}}}}' if n in "ps"
                else "}") for n, t in kinds.items())
        sums = "".join(
            f"""%{n}0 = kvbuffer.cache.load %{n}[%b, %c0, %c0, %c0]
              {{alignment = 16 : i64}} : !kvbuffer.cache<{t}> -> vector<4xf32>
            vector.store %{n}0, %o[%b, %c{i}, %c0] {{alignment = 16 : i64}}
              : memref<?x4x4xf32>, vector<4xf32>
            """ for i, (n, t) in enumerate(kinds.items()))
        kernel = kvbuf.compile(f"""gpu.module @m {{
          gpu.func @f({caches}, %o: memref<?x4x4xf32> {{kvbuffer.name = "o",
                      kvbuffer.shape = ["batch", 4, 4]}}) kernel
              attributes {{kvbuffer.phase = #kvbuffer.phase<thread>,
                known_block_size = array<i32: 1, 1, 1>,
                kvbuffer.grid = ["batch", 1, 1]}} {{
            %c0 = arith.constant 0 : index
            %c1 = arith.constant 1 : index
            %c2 = arith.constant 2 : index
            %c3 = arith.constant 3 : index
            %b = gpu.block_id x
            {sums}gpu.return }} }}""", target=CHIP, machine_code=False)
        data = {n: RNG.standard_normal(shape).astype(np.float32)
                for n, shape in (("p", (5, 2, 1, 4)), ("s", (3, 6, 1, 4)),
                                 ("r", (9, 1, 4)), ("d", (2, 3, 1, 4)))}

        def ints(*x):
            return np.array(x, np.int32)

        given = {**data, "p_table": ints([4, 1, 0], [2, 99, -1]),
                 "p_lengths": ints(6, 1), "s_table": ints(2, 0),
                 "s_lengths": ints(6, 1), "r_offsets": ints(0, 4, 9)}

        def run(out=None, **changed):
            out = np.zeros((2, 4, 4), np.float32) if out is None else out
            kernel(**{**given, **changed}, o=out)
            return out

        p, s, r, d = (x.reshape(*x.shape[:-2], 4) for x in data.values())
        np.testing.assert_array_equal(
            run(), [[p[4, 0], s[2, 0], r[0], d[0, 0]],
                    [p[2, 0], s[0, 0], r[4], d[1, 0]]])
        if self.ON_GPU:
            return
        for name in "p", "s":
            for bad in (-1, 0), (1, 7):
                at = int(bad[0] >= 0)
                with self.assertRaisesRegex(
                        kvbuf.Error, rf"^tensor '{name}.lengths' holds {bad[at]} at "
                        rf"{at}; expected 0 to 6, the tokens that a sequence has "
                        "room for$"):
                    run(**{f"{name}_lengths": ints(*bad)})
        with self.assertRaisesRegex(
                kvbuf.Error, "^tensor 'r.offsets' holds 10 at 2; expected offsets "
                "that never fall, here from 4 to 9, the rows of 'r'$"):
            run(r_offsets=ints(0, 4, 10))
        for name, x in data.items():
            both = np.zeros(x.size + 32, np.float32)
            for at in 0, x.size - 4:
                with self.assertRaisesRegex(
                        kvbuf.Error, f"^tensor 'o' shares memory with tensor "
                        f"'{name}', which is still read while it is written; "
                        "expected memory of its own$"):
                    run(both[at:at + 32].reshape(2, 4, 4),
                        **{name: both[:x.size].reshape(x.shape)})

    def test_ragged(self):
        self.ragged(compile("ragged", True))

    def ragged(self, kernel):
        q = normal(40, HEADS, SIZE)
        k, v = (normal(90, 1, SIZE) for _ in range(2))

        def run(q_offsets, k_offsets, v_offsets, **where):
            given = [np.array(x, np.int32)
                     for x in (q_offsets, k_offsets, v_offsets)]
            o = np.full_like(q, np.nan)
            kernel(q=q, k=k, v=v, q_offsets=given[0], k_offsets=given[1],
                   v_offsets=given[2], out=o, seq_q=40, **where)
            return o

        # Offsets that fall: those sequences are empty. Every row of q belongs
        # to one sequence.
        q_at = [LEAST, 5, 30, MOST, 12]
        k_at = [-7, 50, 15, MOST, 100]
        v_at = [MOST, 3, 60, -1, 0]
        o = run(q_at, k_at, v_at, device=self.gpu_like)
        written = np.zeros(len(q), bool)
        for b in range(4):
            first = within(q_at[b], 0, 40)
            rows = slice(first, within(q_at[b + 1], first, 40))
            start = within(k_at[b], 0, 90)
            keys = within(k_at[b + 1], start, 90) - start
            at = within(v_at[b], 0, 90 - keys)
            self.check(o[rows], attention(q[rows], k[start:start + keys],
                                          v[at:at + keys]))
            written[rows] = True
        self.assertTrue(written.all())
        if self.ON_GPU:
            return

        fine = [0, 5, 12, 40, 40]
        for name, at, rows in (("q_offsets", 0, 40), ("k.offsets", 1, 90),
                               ("v.offsets", 2, 90)):
            for position, bad, least in ((0, -1, 0), (2, 4, 5),
                                         (4, rows + 1, 40)):
                given = [list(fine) for _ in range(3)]
                given[at][position] = bad
                with self.assertRaisesRegex(
                        kvbuf.Error, f"^tensor '{name}' holds {bad} at "
                        f"{position}; expected offsets that never fall, here "
                        f"from {least} to {rows}, the rows of '{name[0]}'$"):
                    run(*given)

    def test_append(self):
        """Offsets of new tokens that fall: each token goes to a sequence that has
        it, or nowhere."""
        new = f"memref<?x1x{SIZE}xf16>"
        cache = (f"!kvbuffer.cache<paged, f16, heads = 1, head_size = {SIZE}, "
                 f"page_size = 16>")
        kernel = kvbuf.compile(f"""func.func @f(%k: {new}, %kc: {cache}, %v: {new},
            %vc: {cache}, %at: memref<?xi32>) {{
          kvbuffer.cache_append k(%k : {new}) to(%kc : {cache})
            v(%v : {new}) to(%vc : {cache}) offsets(%at : memref<?xi32>)
          return }}""", target=CHIP, machine_code=False)
        rows, table = 40, RNG.permutation(20)[:16].astype(np.int32).reshape(4, 4)
        k = normal(rows, 1, SIZE)
        k[:, 0, 0] = 1 + np.arange(rows)

        def run(offsets, lengths, **where):
            caches = [np.zeros((20, 16, 1, SIZE), np.float16) for _ in "kv"]
            offsets, lengths = (np.array(x, np.int32) for x in (offsets, lengths))
            kernel(k_new=k, v_new=k, k=caches[0], v=caches[1], k_table=table,
                   v_table=table, k_lengths=lengths, v_lengths=lengths,
                   offsets=offsets, **where)
            np.testing.assert_array_equal(*caches)
            return caches[0]

        for at, lengths in (([LEAST, 5, 30, 12, MOST], [0, 3, 60, 17]),
                            ([7, -3, MOST, 20, 40], [LEAST, 1, MOST, 5]),
                            ([0, 5, 5, 30, 40], [60, 0, 0, 7])):
            got, owner = run(at, lengths, device=self.gpu_like), {}
            for b in range(4):
                first, length = within(at[b], 0, rows), within(lengths[b], 0, 64)
                for t in range(first, within(at[b + 1], first, rows)):
                    place = length + t - first
                    if place < 64:
                        slot = int(table[b, place // 16]), place % 16
                        owner.setdefault(slot, set()).add(t)
            written = 0
            for slot in np.ndindex(20, 16):
                token = int(got[slot][0, 0]) - 1
                if token >= 0:
                    self.assertIn(token, owner.get(slot, ()))
                    np.testing.assert_array_equal(got[slot], k[token])
                    written += 1
            self.assertGreater(written, 0)
            if sorted(at) == at and at[0] == 0:
                self.assertEqual(written, len(owner))
        if self.ON_GPU:
            return
        for at, position, bad, least in (([0, 5, 30, 12, 40], 3, 12, 30),
                                         ([0, 5, 30, 30, 41], 4, 41, 30)):
            with self.assertRaisesRegex(
                    kvbuf.Error, f"^tensor 'offsets' holds {bad} at {position}; "
                    f"expected offsets that never fall, here from {least} to 40, "
                    "the rows of 'k_new'$"):
                run(at, [0, 0, 0, 0])


if __name__ == "__main__":
    unittest.main()
