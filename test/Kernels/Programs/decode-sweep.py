# Random problems of few query rows, on the emulator, against float64.
# RUN: %python %s --widest 96 --cases 1 --seed 5 --chip sm_80
# RUN: %python %s --widest 96 --cases 1 --seed 8 --chip sm_90a
# RUN: %if ld.lld %{ %python %s --widest 96 --cases 1 --seed 1 --chip gfx942 %}
# RUN: %if ld.lld %{ %python %s --widest 96 --cases 1 --seed 9 --chip gfx950 %}
"""Draws problems of decode, and compares each result with float64.

    decode-sweep.py --seed 7 --cases 300 --apart    # each in a process of its own
    decode-sweep.py --only 7:123                    # one of them again

One to eight query rows a sequence, whose number the type says, the launch, or
offsets; groups of 1 to 16 heads; head sizes of 64 to 512; caches of every kind,
K and V in one tensor or in two, heads inside of tokens or outside of them; 8-bit
floats with scales; windows, chunks and trees; biases and slopes; sinks, soft caps
and log-sum-exp; splits that do not depend on the batch; sequences without a row
or a key. benchmark/verify_decode.py does the same where kvbuf-run has a reference,
also on a GPU; here there are regions of scores, and layouts.

A case depends on the seed and its number. It passes by the rule of kvbuf-run, with
errors in units of those of the same mathematics with P and O rounded. What no
sequence uses holds NaN, pages before a window and past an end are none of the
cache's. A problem that the compiler refuses fails, but for the reasons in ALLOWED,
and so does a launch that another kernel takes.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import subprocess
import sys

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers8 import float8  # noqa: E402

CHIPS = ["sm_80", "sm_90a", "gfx942", "gfx950"]
#: What the compiler may refuse, and why that is no fault.
ALLOWED = {}
#: Launches of each kernel, on lengths of their own.
RUNS = 2
#: Entries of tables that no cache has.
WILD = 0x3FFFFFFF


#: 8-bit floats in Python and in MLIR.
FLOAT8 = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "e4m3fnuz": "f8E4M3FNUZ",
          "e5m2fnuz": "f8E5M2FNUZ"}


class Float16:
    """bf16 or f16: what holds the bits, their values, and the last place."""

    def __init__(self, name):
        self.name, self.bf16 = name, name == "bf16"
        self.nan = 0x7FC0 if self.bf16 else 0x7E00
        self.digits = 8 if self.bf16 else 11

    def bits(self, x):
        if not self.bf16:
            return np.asarray(x).astype(np.float16).view(np.uint16)
        word = np.ascontiguousarray(x, np.float32).view(np.uint32)
        return ((word + 0x7FFF + ((word >> 16) & 1)) >> 16).astype(np.uint16)

    def values(self, bits):
        if not self.bf16:
            return bits.view(np.float16).astype(np.float64)
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)

    def rounded(self, x):
        return self.values(self.bits(x))

    def tensor(self, bits):
        """As the kernels' callers hold it."""
        return bits if self.bf16 else bits.view(np.float16)

    def ulp(self, x):
        return np.ldexp(1.0, np.frexp(x)[1] - self.digits)


class Draw:
    """A problem, its tensors, and what is right."""

    def __init__(self, seed, number, chip=None, widest=512):
        self.widest = widest
        self.rng = rng = random.Random(f"{seed}:{number}")
        self.chip = chip or rng.choice(CHIPS)
        self.numbers = np.random.default_rng(rng.randrange(1 << 32))
        self.draw_problem(rng)
        self.draw_run()

    def draw_run(self):
        """Other lengths and numbers for the same kernel."""
        self.draw_lengths(self.rng)
        self.draw_tensors(self.rng)

    # What is computed.

    def draw_problem(self, rng):
        kv_heads = rng.choice([1, 1, 2, 3, 4])
        group = rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 12, 16])
        sizes = [64, 64, 80, 96, 128, 128, 192, 256, 512]
        size = rng.choice([n for n in sizes if n <= self.widest])
        p = dict(heads=kv_heads * group, kv_heads=kv_heads, head_size=size,
                 dtype=rng.choice(["bf16", "bf16", "f16"]),
                 query=rng.choice(["dense", "dense", "ragged"]),
                 cache=rng.choice(["dense", "ragged", "continuous", "paged",
                                   "paged", "paged"]),
                 lse=rng.random() < 0.5, sink=rng.random() < 0.3,
                 batch_invariant=rng.random() < 0.15)
        self.tokens = rng.randint(1, 8)
        if p["query"] == "dense" and rng.random() < 0.7:
            p["seq_q"] = self.tokens
        if p["cache"] == "paged":
            p["page_size"] = rng.choice([1, 3, 16, 16, 64, 528])
        if p["cache"] in ("paged", "continuous"):
            p["lengths"] = rng.choice(["all", "cached"])
        if p["cache"] != "dense" and rng.random() < 0.2:
            p["index"] = "i64"
        self.draw_mask(rng, p)
        if rng.random() < 0.2:
            p["softcap"] = rng.choice([1.0, 15.0, 50.0])
        if rng.random() < 0.1:
            p["scale"] = rng.choice([-0.125, 0.02])
        if rng.random() < 0.3:
            self.draw_quantized(rng, p)
        self.one_tensor = rng.random() < 0.3
        self.heads_outside = rng.random() < 0.3
        self.problem = kvbuf.Problem(**p)
        self.group, self.kv_heads, self.size = group, kv_heads, size
        self.float = Float16(p["dtype"])

    def draw_mask(self, rng, p):
        self.chunk = self.tree_of = 0
        kind = rng.choice(["none", "causal", "causal", "left", "both", "right",
                           "chunk", "tree", "alibi", "bias"])
        if kind in ("causal", "left", "alibi"):
            p["causal"] = True
        if kind in ("left", "both"):
            p["window_left"] = rng.choice([0, 1, 7, 64, 100])
        if kind in ("both", "right"):
            p["window_right"] = rng.choice([0, 2, 5])
        if kind == "chunk":
            p["hidden"], self.chunk = True, rng.choice([8, 64, 100])
        p["tree"] = kind == "tree"
        if kind == "alibi":
            p["alibi"] = rng.choice([1, 2])
        if kind == "bias":
            p["bias"] = rng.choice(["f32", p["dtype"]])

    def draw_quantized(self, rng, p):
        ending = "fnuz" if self.chip == "gfx942" else ""
        for name in "kv":
            p[f"{name}_dtype"] = rng.choice(["e4m3", "e4m3", "e5m2"]) + ending
        scale = rng.choice(["", "tensor", "head", "token"])
        p["k_scale"] = p["v_scale"] = scale

    def draw_lengths(self, rng):
        p = self.problem
        batch = rng.choice([1, 2, 3, 5, 17])
        most = 200 if self.size > 128 or batch > 5 else 600
        keys = [rng.choice([0, 1, 15, 16, 33, rng.randint(0, most)])
                for _ in range(batch)]
        keys[rng.randrange(batch)] = rng.randint(most // 2, most)
        if not p.seq_q:
            self.tokens = rng.randint(1, 8)
        queries = [self.tokens] * batch
        if p.query == "ragged":
            queries = [rng.randint(0, self.tokens) for _ in range(batch)]
            queries[rng.randrange(batch)] = self.tokens
            if rng.random() < 0.15:  # Kernels of many rows beside.
                queries[rng.randrange(batch)] = rng.randint(9, 40)
        if p.cache == "dense":
            keys = [rng.choice(keys)] * batch
        if p.lengths == "cached" and p.has_lengths:
            keys = [n + q for n, q in zip(keys, queries)]
        self.queries, self.keys = queries, keys

    # Tensors.

    def draw_tensors(self, rng):
        p, numbers = self.problem, self.numbers
        batch = len(self.keys)
        offsets = np.concatenate([[0], np.cumsum(self.queries)])
        shape = ((offsets[-1],) if p.query == "ragged"
                 else (batch, self.queries[0]))
        self.q = self.float.bits(
            numbers.standard_normal((*shape, p.heads, self.size)))
        self.offsets = offsets
        self.place_rows(rng)
        self.values = {n: float8(FLOAT8[getattr(p, f"{n}_dtype")])
                       if p.k_dtype else None for n in "kv"}
        unused = np.ones(self.shape[:2], bool)
        for b, n in enumerate(self.keys):
            unused[tuple(self.place(b, np.arange(self.first[b], n)))] = False
        self.cache, self.scales = self.empty_caches(), {}
        for name in "kv":
            x = numbers.standard_normal((*self.shape[:2], self.kv_heads,
                                         self.size))
            self.store(name, x, unused)
        self.sink = numbers.standard_normal(p.heads).astype(np.float32)
        most_q, most_k = max(self.queries), max([*self.keys, 1])
        self.slopes = numbers.random((batch, p.heads)).astype(np.float32)
        bias = numbers.standard_normal((batch, p.heads, most_q, most_k))
        bias[numbers.random(bias.shape) < 0.1] = -np.inf
        self.bias = (bias.astype(np.float32) if p.bias == "f32" else
                     self.float.rounded(bias)) if p.bias else None
        self.words = numbers.integers(0, 1 << 31, (batch, 32)).astype(np.int32)

    def place_rows(self, rng):
        """The cache's shape without heads, its table, and where rows lie."""
        p, batch, most = self.problem, len(self.keys), max([*self.keys, 1])
        self.first = [0] * batch
        self.table = None
        if p.cache == "dense":
            self.shape = batch, self.keys[0]
            self.base = [(b, 0) for b in range(batch)]
        elif p.cache == "ragged":
            starts = np.concatenate([[0], np.cumsum(self.keys)])
            self.shape = 1, starts[-1]
            self.base = [(0, s) for s in starts]
            self.starts = starts
        elif p.cache == "continuous":
            slots = rng.sample(range(batch + 2), batch)
            self.shape = batch + 2, most + rng.choice([0, 5])
            self.base = [(s, 0) for s in slots]
            self.table = np.array(slots, np.int64)
        else:
            page = p.page_size
            counts = [-(-n // page) for n in self.keys]
            ids = rng.sample(range(sum(counts) + 3), sum(counts))
            self.shape = sum(counts) + 3, page
            self.table = np.full((batch, max([*counts, 1]) + rng.choice([0, 2])),
                                 WILD, np.int64)
            for b, count in enumerate(counts):
                self.table[b, :count], ids = ids[:count], ids[count:]
                # Pages that lie before the window of all rows may be gone.
                if p.window_left >= 0 or not self.queries[b]:
                    gone = (count if not self.queries[b] else
                            max(0, self.keys[b] - self.queries[b]
                                - p.window_left) // page)
                    self.first[b] = min(gone * page, self.keys[b])
            self.paged = self.table.copy()
            for b in range(batch):
                self.table[b, :self.first[b] // page] = WILD

    def place(self, b, rows):
        if self.problem.cache == "paged":
            page = self.problem.page_size
            return self.paged[b, rows // page], rows % page
        block, first = self.base[b]
        return np.full(rows.shape, block), first + rows

    def empty_caches(self):
        """Views [blocks, rows, heads, size] of K and V, in their layout."""
        blocks, rows = self.shape
        kind = np.uint8 if self.problem.k_dtype else np.uint16
        inner = ((self.kv_heads, rows) if self.heads_outside
                 else (rows, self.kv_heads))
        if self.problem.cache == "ragged":
            # Rows first, for there is no block; a tensor's part beside a row.
            pool = np.zeros((*inner[:1], 2, *inner[1:], self.size), kind) \
                if self.one_tensor else None
            parts = ([pool[:, i] for i in range(2)] if self.one_tensor else
                     [np.zeros((*inner, self.size), kind) for _ in "kv"])
            parts = [x.transpose(1, 0, 2) if self.heads_outside else x
                     for x in parts]
            return {n: x[None] for n, x in zip("kv", parts)}
        if self.one_tensor:
            pool = np.zeros((blocks, 2, *inner, self.size), kind)
            parts = [pool[:, i] for i in range(2)]
        else:
            parts = [np.zeros((blocks, *inner, self.size), kind) for _ in "kv"]
        return {n: x.swapaxes(1, 2) if self.heads_outside else x
                for n, x in zip("kv", parts)}

    def store(self, name, x, unused):
        """Stores values, as near as the type has them, and their scales."""
        p, data = self.problem, self.cache[name]
        if not p.k_dtype:
            data[:] = self.float.bits(x)
            data[unused] = self.float.nan
            return
        of = getattr(p, f"{name}_scale")
        shape = {"": (), "tensor": (1,), "head": (self.kv_heads,),
                 "token": (*self.shape, self.kv_heads)}[of]
        scale = np.float32(self.numbers.uniform(0.02, 0.05, shape))
        if not of:
            scale = np.float32(1)
        wide = {"token": scale[..., None] if of == "token" else 0,
                "head": scale[..., None] if of == "head" else 0}.get(of, scale)
        values = self.values[name]
        finite = np.flatnonzero(np.isfinite(values))
        finite = finite[np.argsort(values[finite], kind="stable")]
        at = np.searchsorted(values[finite], x / wide).clip(1, len(finite) - 1)
        data[:] = finite[at].astype(np.uint8)
        data[unused] = np.flatnonzero(np.isnan(values))[0]
        if of == "token":
            scale[unused] = np.nan
        if of:
            self.scales[name] = scale

    def rows_of(self, name, b):
        """[keys, heads, size] in float64; NaN where the row is gone."""
        at = self.place(b, np.arange(self.keys[b]))
        x = self.cache[name][at]
        if not self.problem.k_dtype:
            return self.float.values(x)
        scale = self.scales.get(name, np.float32([1])).astype(np.float64)
        scale = scale[at][..., None] if scale.ndim == 3 else scale[:, None]
        return self.values[name][x] * scale

    def given(self):
        """The kernel's arguments."""
        p, batch = self.problem, len(self.keys)
        kind = np.int64 if p.index == "i64" else np.int32
        tensor = self.float.tensor
        out = np.full(self.q.shape, self.float.nan, np.uint16)
        given = {"q": tensor(self.q), "o": tensor(out)}
        for name, x in self.cache.items():
            x = x[0] if p.cache == "ragged" else x
            given[name] = x if p.k_dtype else tensor(x)
            if p.cache == "ragged":
                given[name + "_offsets"] = self.starts.astype(kind)
            if p.has_lengths:
                counted = ([n - q for n, q in zip(self.keys, self.queries)]
                           if p.lengths == "cached" else self.keys)
                given[name + "_table"] = self.table.astype(kind)
                given[name + "_lengths"] = np.array(counted, kind)
            if name in self.scales:
                scale = self.scales[name]
                if scale.ndim == 3:
                    scale = (scale[0] if p.cache == "ragged" else scale)[..., None]
                given[name + "_scales"] = scale
        if p.query == "ragged":
            given["q_offsets"] = self.offsets.astype(kind)
        if p.sink:
            given["sink"] = self.sink
        if p.lse:
            given["lse"] = np.full(
                (p.heads, self.offsets[-1]) if p.query == "ragged" else
                (batch, p.heads, self.queries[0]), np.nan, np.float32)
        if p.alibi:
            given["alibi"] = self.slopes if p.alibi == 2 else self.slopes[0].copy()
        if p.bias:
            given["bias"] = (self.bias if p.bias == "f32" else
                             tensor(self.float.bits(self.bias)))
        if p.tree:
            given["tree"] = self.words
        if p.hidden:
            # As wide as a dense cache, also where that has no key.
            least = [] if p.cache == "dense" else [1]
            keep = np.zeros((batch, p.heads, max(self.queries),
                             max([*self.keys, *least])), np.int32)
            for b in range(batch):
                at, j = self.positions(b)
                keep[b, :, :at.shape[0], :j.shape[1]] = \
                    (j <= at) & (j // self.chunk == at // self.chunk)
            given["keep"] = keep
        return given

    # What is right.

    def positions(self, b):
        """Of rows, [rows, 1], and of keys, [1, keys]."""
        rows, keys = self.queries[b], self.keys[b]
        return (np.arange(rows)[:, None] + keys - rows, np.arange(keys)[None])

    def scores(self, b):
        """Of sequence `b`, [heads, rows, keys]; -inf where a row does not
        see the key."""
        p = self.problem
        at, j = self.positions(b)
        q = self.float.values(self.part(self.q, b))
        k = np.repeat(np.nan_to_num(self.rows_of("k", b)), self.group, 1)
        scale = self.size ** -0.5 if p.scale is None else p.scale
        s = scale * np.einsum("ihd,jhd->hij", q, k)
        if p.softcap:
            s = p.softcap * np.tanh(s / p.softcap)
        seen = np.ones((at.shape[0], j.shape[1]), bool)
        if p.causal:
            seen &= j <= at
        if p.window_left >= 0:
            seen &= j >= at - p.window_left
        if p.window_right >= 0:
            seen &= j <= at + p.window_right
        if p.hidden:
            seen &= (j <= at) & (j // self.chunk == at // self.chunk)
        if p.tree:
            node = j - (self.keys[b] - self.queries[b])
            row = np.arange(self.queries[b]).clip(0, 31)[:, None]
            bit = (self.words[b][row] >> node.clip(0, 31)) & 1
            seen &= (node < 0) | (bit == 1)
        if p.alibi:
            slopes = self.slopes[b if p.alibi == 2 else 0].astype(np.float64)
            s = s - slopes[:, None, None] * abs(j - at)
        s = np.where(seen, s, -np.inf)
        if p.bias:
            s = s + self.bias[b, :, :at.shape[0], :j.shape[1]]
        return s

    def part(self, x, b):
        if self.problem.query == "ragged":
            return x[self.offsets[b]:self.offsets[b + 1]]
        return x[b]

    def expected(self, b):
        """O, O with P and O rounded, and the log-sum-exp [rows, heads]."""
        s = self.scores(b)
        v = np.repeat(np.nan_to_num(self.rows_of("v", b)), self.group, 1)
        top = s.max(-1, keepdims=True, initial=-np.inf)
        sink = self.sink.astype(np.float64)[:, None, None]
        if self.problem.sink:
            top = np.maximum(top, sink)
        finite = np.where(np.isfinite(top), top, 0)
        p = np.exp(s - finite)
        total = p.sum(-1, keepdims=True)
        if self.problem.sink:
            total = total + np.exp(sink - finite)

        def apply(p):
            o = np.einsum("hij,jhd->hid", p, v)
            o = np.divide(o, total, out=np.zeros_like(o), where=total > 0)
            return o.transpose(1, 0, 2)
        with np.errstate(divide="ignore"):
            lse = (finite + np.log(total))[..., 0].T
        rounded = self.float.rounded
        return apply(p), rounded(apply(rounded(p))), lse

    def compare(self, given):
        """What is wrong with a launch's results; nothing if they are right."""
        # As bits: rows of the kernel's own choice are not numbers.
        out = self.float.values(given["o"].view(np.uint16))
        error, usual, beyond, wrong = [], [], [], None
        for b, rows in enumerate(self.queries):
            if not rows:
                continue
            exact, base, lse = self.expected(b)
            got = self.part(out, b)
            if np.isnan(got).any():
                row, head, column = np.argwhere(np.isnan(got))[0]
                return (f"NaN at sequence {b}, row {row}, head {head}, column "
                        f"{column}")
            error.append(abs(got - exact).ravel())
            usual.append(abs(base - exact).ravel())
            beyond.append(error[-1] - self.float.ulp(exact).ravel())
            if self.problem.lse:
                part = (given["lse"][:, self.offsets[b]:self.offsets[b + 1]].T
                        if self.problem.query == "ragged" else given["lse"][b].T)
                same = np.isclose(part, lse, rtol=1e-5, atol=1e-4)
                if not same.all():
                    row, head = np.argwhere(~same)[0]
                    wrong = (f"log-sum-exp {part[row, head]} at sequence {b}, row "
                             f"{row}, head {head}; expected {lse[row, head]}")
        error, usual, beyond = map(np.concatenate, (error, usual, beyond))
        if beyond.max() > 2 * usual.max():
            return f"largest error {error.max():.3g}, usual {usual.max():.3g}"
        # The rule on the mean needs some numbers.
        if error.size > 512 and error.mean() > 1.15 * usual.mean() + 1e-6:
            return f"mean error {error.mean():.3g}, usual {usual.mean():.3g}"
        return wrong

    def text(self):
        said = " ".join(f"{n}={v}" for n, v in self.problem.to_dict().items())
        return (f"{self.chip} {said} queries={self.queries} keys={self.keys}"
                + " one_tensor" * self.one_tensor
                + " heads_outside" * self.heads_outside)


def run(seed, number, chip, widest):
    """(verdict, what happened, the case); verdict: passed, unsplit (by
    a kernel of many rows), refused or FAILED."""
    case = Draw(seed, number, chip, widest)
    try:
        kernel = kvbuf.compile(case.problem.source(), target=case.chip,
                               machine_code=False)
    except kvbuf.Error as e:
        text = str(e)
        located = re.search(r":\d+:\d+: error: ", text)
        if located and any(re.search(why, text) for why in ALLOWED):
            return "refused", text, case
        return "FAILED", f"refused: {text}", case
    for again in range(RUNS):
        if again:
            case.draw_run()
        given = case.given()
        # Not all kernels of ragged queries ask for it.
        more = ({"seq_q": max(case.queries)}
                if case.problem.query == "ragged" and "seq_q" in kernel._sizes
                else {})
        try:
            kernel(**given, **more, device=kvbuf.Device(
                "emulator", seed=number % 7 + again + 1))
        except kvbuf.Error as e:
            return "FAILED", f"{type(e).__name__}: {e}", case
        if wrong := case.compare(given) or "; ".join(kernel.remarks()):
            return "FAILED", wrong, case
    splits = any("work = split_keys" in k.get("schedule", "")
                 for k in kernel.manifest["kernels"])
    return "passed" if splits else "unsplit", "", case


def main():
    # The emulator runs what the assembler is given.
    os.environ["KVBUF_PTXAS"] = "none"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=10)
    parser.add_argument("--chip", choices=CHIPS, help="[any]")
    parser.add_argument("--widest", type=int, default=512,
                        help="head size, at most: wide ones take longer [512]")
    parser.add_argument("--only", metavar="SEED:NUMBER", help="one case")
    parser.add_argument("--apart", action="store_true",
                        help="each in a process of its own, with a limit of time")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    seed, numbers = args.seed, range(args.cases)
    if args.only:
        seed, only = map(int, args.only.split(":"))
        numbers = [only]
    counts = collections.Counter()
    for number in numbers:
        if args.apart:
            command = [sys.executable, __file__, "--only", f"{seed}:{number}"]
            command += ["--widest", str(args.widest)]
            command += ["--chip", args.chip] if args.chip else []
            try:
                done = subprocess.run(command, capture_output=True, text=True,
                                      timeout=900)
                said, failed = done.stdout + done.stderr, done.returncode
            except subprocess.TimeoutExpired:
                said, failed = f"FAILED {seed}:{number} not done after 900 s", 1
            verdict = ("FAILED" if failed else
                       said.split()[0])
        else:
            verdict, what, case = run(seed, number, args.chip, args.widest)
            said = f"{verdict} {seed}:{number} {case.text()}\n{what}"
        counts[verdict] += 1
        if verdict != "passed" or args.verbose or args.only:
            print(said.strip(), flush=True)
    print(", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items())))
    sys.exit(1 if counts["FAILED"] or not sum(counts.values()) else 0)


main()
