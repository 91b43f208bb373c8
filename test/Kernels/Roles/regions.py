# Functions of scores and of visibility beside warp roles, each beside each feature of the
# table of docs/support.md, on the emulator: here of latent rows; regions-*.test have the other
# kinds, which so run beside each other.
# RUN: %python %s %src/docs/support.md "latent"
# It notices a kernel that forgets its region.
# RUN: not %python %s %src/docs/support.md "latent" --forget | FileCheck %s
# CHECK: latent, {{.*}} log-sum-exp: log-sum-exps
# CHECK: latent, {{.*}}: errors of {{.*}}, where rounding makes
"""    regions.py PAGE KIND [--forget]

Problems of a region and some features at once, of one of the kinds of operands of
combinations.py, until a region of scores and one of visibility has met each feature that
has roles beside the kind; lists of blocks are among them where rows are many. Every row is
compared with float64. A kernel without roles is an error. With --forget two of them are
compared with what they were without their region.
"""

import itertools
import pathlib
import re
import sys

import numpy as np

import kvbuf

sys.path += [str(pathlib.Path(__file__).parent),
             str(pathlib.Path(__file__).parents[1] / "Inputs")]
from combinations import KINDS, problem, table
from numbers16 import attend, from_bf16, rounded, to_bf16

RNG = np.random.default_rng(7)
PLACE = "%batch: index, %head: index, %row: index, %at: index, %key: index"
LINE = """\
      %ahead = arith.subi %key, %at : index
      %i = arith.index_cast %ahead : index to i32
"""


class Region:
    """A region's text and the type of the tensor that it reads; `of` has what is added
    and seen, of positions of rows and keys of a sequence."""
    score = visible = None

    def __init__(self, batch, heads, rows, keys):
        self.tensor = self.make(batch, heads, rows, keys)


class Alibi(Region):
    kind, shape = "memref<?xf32>", '["heads"]'
    score = LINE + """\
      %slope = memref.load %t[%head] : memref<?xf32>
      %d = arith.sitofp %i : i32 to f32
      %less = arith.mulf %slope, %d : f32
      %sum = arith.addf %s, %less : f32
      kvbuffer.yield %sum : f32
"""

    def make(self, batch, heads, rows, keys):
        return RNG.random(heads).astype(np.float32) / 8

    def of(self, b, n, i, j):
        return self.tensor.astype(np.float64)[:, None, None] * (j - i), True


class Relative(Region):
    kind, shape = "memref<?x31xf32>", '["heads", 31]'
    score = """\
      %c15 = arith.constant 15 : index
      %c30 = arith.constant 30 : index
      %c0 = arith.constant 0 : index
      %ahead = arith.subi %key, %at : index
      %from = arith.addi %ahead, %c15 : index
      %least = arith.maxsi %from, %c0 : index
      %place = arith.minsi %least, %c30 : index
      %more = memref.load %t[%head, %place] : memref<?x31xf32>
      %sum = arith.addf %s, %more : f32
      kvbuffer.yield %sum : f32
"""

    def make(self, batch, heads, rows, keys):
        return RNG.standard_normal((heads, 31)).astype(np.float32)

    def of(self, b, n, i, j):
        return self.tensor[:, np.clip(j - i, -15, 15) + 15].astype(np.float64), True


class Bias(Region):
    kind, shape = "memref<?x?x?x?xf32>", '["sequences", "heads", "most_rows", "most"]'
    score = """\
      %more = memref.load %t[%batch, %head, %row, %key] : memref<?x?x?x?xf32>
      %sum = arith.addf %s, %more : f32
      kvbuffer.yield %sum : f32
"""

    def make(self, batch, heads, rows, keys):
        # Rows that begin at multiples of 16 bytes, which a team moves.
        return RNG.standard_normal((batch, heads, rows, -(-keys // 4) * 4)).astype(
            np.float32)

    def of(self, b, n, i, j):
        return self.tensor[b, :, :i.shape[0], :n].astype(np.float64), True


class Documents(Region):
    kind, shape = "memref<?x?xi32>", '["sequences", "most"]'
    visible = """\
      %own = memref.load %t[%batch, %at] : memref<?x?xi32>
      %its = memref.load %t[%batch, %key] : memref<?x?xi32>
      %seen = arith.cmpi eq, %own, %its : i32
      kvbuffer.yield %seen : i1
"""

    def make(self, batch, heads, rows, keys):
        return np.sort(RNG.integers(0, 3, (batch, keys)), -1).astype(np.int32)

    def of(self, b, n, i, j):
        own = self.tensor[b]
        return 0, own[np.clip(i, 0, len(own) - 1)] == own[j]


class Prefix(Region):
    kind, shape = "memref<?xi32>", '["sequences"]'
    visible = """\
      %word = memref.load %t[%batch] : memref<?xi32>
      %end = arith.index_cast %word : i32 to index
      %before = arith.cmpi slt, %key, %end : index
      %past = arith.cmpi sle, %key, %at : index
      %seen = arith.ori %before, %past : i1
      kvbuffer.yield %seen : i1
"""

    def make(self, batch, heads, rows, keys):
        return RNG.integers(0, keys, batch).astype(np.int32)

    def of(self, b, n, i, j):
        return 0, (j < self.tensor[b]) | (j <= i)


class Window(Region):
    kind, shape = "memref<?xi32>", '["heads"]'
    visible = LINE + """\
      %word = memref.load %t[%head] : memref<?xi32>
      %zero = arith.constant 0 : i32
      %far = arith.subi %zero, %i : i32
      %seen = arith.cmpi sle, %far, %word : i32
      kvbuffer.yield %seen : i1
"""

    def make(self, batch, heads, rows, keys):
        return RNG.integers(0, 40, heads).astype(np.int32)

    def of(self, b, n, i, j):
        return 0, (i - j)[None] <= self.tensor[:, None, None]


class Both(Documents):
    """Scores beside documents."""
    score = """\
      %less = arith.constant 0.5 : f32
      %sum = arith.mulf %s, %less : f32
      kvbuffer.yield %sum : f32
"""
    half = True


REGIONS = (Alibi, Relative, Bias, Documents, Prefix, Window, Both)

#: Features beside regions: options, and what excludes each other.
FEATURES = {
    "causal": {"causal": True}, "windows": {"window_left": 30, "window_right": 20},
    "soft cap": {"softcap": 20.0}, "sinks": {"sink": True}, "log-sum-exp": {"lse": True},
    "negative scale": {"scale": -0.1}, "batch_invariant": {"batch_invariant": True},
    "O of f32": {"o_dtype": "f32"}, "f16": {"dtype": "f16"},
    "scales of heads": {"granularity": "head"},
    "ragged caches": {"cache": "ragged"}, "continuous caches": {"cache": "continuous"},
    "pages of 1": {"cache": "paged", "page_size": 1},
    "pages of 16": {"cache": "paged", "page_size": 16},
    "lengths of all tokens": {"cache": "paged", "page_size": 3, "lengths": "all"},
    "64-bit indices": {"cache": "paged", "page_size": 64, "index": "i64"},
    "ragged queries": {"query": "ragged"},
    "block_mask": {"lists": True, "cache": "dense"},
}
#: Rows and keys of a block of lists.
BLOCK = 128
LISTS = {"kv_num_blocks": "memref<?x?x?xi32>", "kv_indices": "memref<?x?x?x?xi32>"}


def text_of(options, region):
    """The module of a problem with the region."""
    text = problem(**{n: x for n, x in options.items() if n != "lists"})
    lists = LISTS if options.get("lists") else {}
    captured = {"t": region.kind} | lists
    arguments = "".join(
        f', %c_{name}: {kind} {{kvbuffer.name = "{name}"'
        + (f", kvbuffer.shape = {region.shape}" if name == "t" else "") + "}"
        for name, kind in captured.items())
    text = re.sub(r"(func.func .*)\) \{", rf"\1{arguments}) {{", text)
    if lists:
        said = (f"block_mask = #kvbuffer.block_mask<rows = {BLOCK}, keys = {BLOCK}, "
                "lists = [1, 2]>")
        text = text.replace(" {}", f" {{{said}}}") if " {}" in text else re.sub(
            r"(kvbuffer.attention .* \{)", rf"\1{said}, ", text)
    place = PLACE + "".join(f", %{name}: {kind}" for name, kind in captured.items())
    said = (f"    captures({', '.join(f'%c_{name}' for name in captured)} : "
            f"{', '.join(captured.values())})\n")
    if region.score:
        said += f"    score {{\n    ^bb0(%s: f32, {place}):\n{region.score}    }}\n"
    if region.visible:
        said += f"    visible {{\n    ^bb0({place}):\n{region.visible}    }}\n"
    return text.replace("  return\n", said + "  return\n")


class Lists:
    """Lists of the blocks of keys that are not hidden; about a third is. What stands
    behind a list's end is left to chance."""

    def __init__(self, batch, heads, rows, keys):
        shape = batch, heads, -(-rows // BLOCK), -(-keys // BLOCK)
        self.kept = RNG.random(shape) > 1 / 3
        indices = RNG.integers(-2 ** 31, 2 ** 31, shape).astype(np.int32)
        for at in np.ndindex(shape[:3]):
            own = np.flatnonzero(self.kept[at])
            indices[at][:len(own)] = RNG.permutation(own)
        self.tensors = {"kv_num_blocks": self.kept.sum(-1).astype(np.int32),
                        "kv_indices": indices}

    def of(self, b, rows, keys):
        kept = np.repeat(np.repeat(self.kept[b], BLOCK, 1), BLOCK, 2)
        return kept[:, :rows, :keys]


def cases(kind, page):
    """(a region, names of features) until a region of scores and one of visibility has met
    each feature that has roles beside the kind."""
    cells = table(page)
    names = [name for name in FEATURES if cells[name, kind] == "roles"]
    if not names:
        sys.exit(f"{page} has no features of {kind}")
    left = [(what, name) for name in names for what in ("score", "visible")]
    used = dict.fromkeys(REGIONS, 0)
    while left:
        region = min(REGIONS, key=lambda r: (used[r], -sum(
            bool(getattr(r, what)) for what, _ in left)))
        used[region] += 1
        options, taken = {}, []
        wanted = [name for what, name in left if getattr(region, what)]
        if not wanted:
            continue
        # With others that were there already, where nothing speaks against it.
        for name in wanted + list(RNG.permutation(names)):
            more = FEATURES[name]
            if (name not in taken and len(taken) < 4
                    and not set(more) & set(options)
                    and not {"causal", "window_left"} <= set(more) | set(options)
                    and not {"lists", "query"} <= set(more) | set(options)):
                options |= more
                taken.append(name)
        left = [(what, name) for what, name in left
                if name not in taken or not getattr(region, what)]
        yield region, taken


#: An array of a type, and its exact values.
def made(kind, shape):
    x = RNG.standard_normal(shape)
    if kind == "bf16":
        return (bits := to_bf16(x)), from_bf16(bits)
    if kind == "f16":
        return (half := x.astype(np.float16)), half.astype(np.float64)
    codes = kvbuf.to_fp8(x, "e4m3")
    return codes, kvbuf.from_fp8(codes, "e4m3").astype(np.float64)


def packed(shape):
    """The same of rows of 656 bytes: 512 elements of e4m3 with scales of 128, and 64 of
    bf16."""
    tokens, heads, _ = shape
    codes, own = made("f8E4M3FN", (tokens, heads, 4, 128))
    # By others the products are rounded to bf16 where kernels widen them.
    scales = (2.0 ** RNG.integers(-1, 2, (tokens, heads, 4))).astype(np.float32)
    bits, turned = made("bf16", (tokens, heads, 64))
    rows = np.concatenate([codes.reshape(tokens, heads, 512), scales.view(np.uint8),
                           bits.view(np.uint8)], -1)
    own = (own * scales[..., None].astype(np.float64)).reshape(tokens, heads, 512)
    return rows, np.concatenate([own, turned], -1)


NONE = {"bf16": 0x7FC0, "f16": np.nan, "f8E4M3FN": 0x7F, "packed": 0xFF}


class Cache:
    """Keys and values of sequences of `keys` tokens, as the problem has them."""

    def __init__(self, options, queries, keys):
        self.options, self.keys = options, keys
        self.heads = options["kv_heads"]
        self.columns = options["head_size"]
        self.kind = options.get("kv_dtype", options.get("dtype", "bf16"))
        if "row" in options:
            self.kind = "packed"
        self.tensors, self.rows = {}, {}
        self.paged(queries) if options.get("cache") in ("paged", "continuous") \
            else self.plain()

    def names(self):
        return "k" if self.options.get("latent") else "kv"

    def fill(self, name, codes, exact):
        if "granularity" in self.options and name != "latent":
            scales = RNG.uniform(0.5, 2, self.heads if
                                 self.options["granularity"] == "head" else 1)
            self.tensors[f"{name}_scales"] = scales.astype(np.float32)
            exact = [x * self.tensors[f"{name}_scales"].astype(np.float64)[:, None]
                     for x in exact]
        self.tensors[name], self.rows[name] = codes, exact

    def tokens(self, count):
        shape = count, self.heads, self.columns
        return packed(shape) if self.kind == "packed" else made(self.kind, shape)

    def plain(self):
        ragged = self.options.get("cache") == "ragged"
        for name in self.names():
            parts = [self.tokens(n) for n in self.keys]
            join = np.concatenate if ragged else np.stack
            self.fill(name, join([p[0] for p in parts]), [p[1] for p in parts])
            if ragged:
                self.tensors[f"{name}_offsets"] = np.concatenate(
                    [[0], np.cumsum(self.keys)]).astype(np.int32)

    def paged(self, queries):
        page = self.options.get("page_size", max(self.keys) + 3)
        index = np.int64 if self.options.get("index") == "i64" else np.int32
        pages = [-(-n // page) for n in self.keys]
        for name in self.names():
            places = list(RNG.permutation(sum(pages) + 2))
            parts = [self.tokens(n) for n in self.keys]
            cache = np.full((len(places), page, *parts[0][0].shape[1:]),
                            NONE[self.kind], parts[0][0].dtype)
            table_ = np.full((len(pages), max(pages)), 1 << 20, index)
            for b, (codes, _) in enumerate(parts):
                for p in range(pages[b]):
                    table_[b, p] = places.pop()
                    own = codes[p * page:(p + 1) * page]
                    cache[table_[b, p], :len(own)] = own
            self.fill(name, cache, [p[1] for p in parts])
            if self.options["cache"] == "continuous":
                table_ = table_[:, 0]
            self.tensors[f"{name}_table"] = np.ascontiguousarray(table_)
            new = 0 if self.options.get("lengths") else np.array(queries)
            self.tensors[f"{name}_lengths"] = (np.array(self.keys) - new).astype(index)


def rounded8(x):
    """Weights as products of 8-bit floats take them."""
    return kvbuf.from_fp8(kvbuf.to_fp8(x, "e4m3"), "e4m3").astype(np.float64)


def scores_of(options, region, q, k, b):
    """Scores [heads, rows, keys] of a sequence, and which are seen; a region None adds and
    hides nothing."""
    group = options["heads"] // options["kv_heads"]
    scale = options.get("scale", options["head_size"] ** -0.5)
    s = scale * np.einsum("ihd,jhd->hij", q, np.repeat(k, group, 1))
    if cap := options.get("softcap"):
        s = cap * np.tanh(s / cap)
    rows, keys = s.shape[1:]
    i, j = np.arange(rows)[:, None] + keys - rows, np.arange(keys)[None]
    added, seen = region.of(b, keys, i, j) if region else (0, True)
    if getattr(region, "half", False):
        s = s / 2
    seen = np.broadcast_to(seen, s.shape)
    if options.get("causal"):
        seen = seen & (j <= i)
    if "window_left" in options:
        seen = seen & (i - j <= options["window_left"])
        seen = seen & (j - i <= options["window_right"])
    return s + added, seen


def run_case(kind, region_kind, features, forget):
    """What is wrong of a problem's kernel, in words."""
    options = KINDS[kind] | {} if "latent" in kind else KINDS[kind] | {
        "heads": 4, "kv_heads": 2}
    for name in features:
        options |= FEATURES[name]
    rows = options.get("seq_q", 70)
    ragged = options.get("query") == "ragged"
    queries = [rows, rows - 61] if ragged and rows > 61 else [rows, rows]
    keys = [n + cached for n, cached in zip(
        queries, (80, 80) if options.get("cache", "dense") == "dense" else (80, 0))]
    if options.get("cache") == "continuous":
        options.pop("page_size", None)
    values = options.get("v_head_size", options["head_size"])
    heads, out_kind = options["heads"], options.get("o_dtype", options.get("dtype", "bf16"))
    region = region_kind(len(keys), heads, max(queries), max(keys))
    parts = [made(options.get("dtype", "bf16"), (n, heads, options["head_size"]))
             for n in queries]
    join = np.concatenate if ragged else np.stack
    q = join([p[0] for p in parts])
    out = np.full((*q.shape[:-1], values), *{
        "bf16": (0x7FC0, np.uint16), "f16": (np.nan, np.float16),
        "f32": (np.nan, np.float32)}[out_kind])
    cache = Cache(options, queries, keys)
    tensors = cache.tensors | {"q": q, "o": out, "t": region.tensor}
    if ragged:
        index = np.int64 if options.get("index") == "i64" else np.int32
        tensors["q_offsets"] = np.concatenate([[0], np.cumsum(queries)]).astype(index)
        tensors["seq_q"] = max(queries)
    lists = None
    if options.get("lists"):
        lists = Lists(len(keys), heads, max(queries), max(keys))
        tensors |= lists.tensors
    if options.get("lse"):
        tensors["lse"] = np.full((heads, len(q)) if ragged else
                                 (len(q), heads, rows), np.nan, np.float32)
    if options.get("sink"):
        tensors["sink"] = RNG.standard_normal(heads).astype(np.float32)
    run = kvbuf.compile(text_of(options, region_kind), target="sm_90a", machine_code=False)
    if not any("teams = moving" in kernel["schedule"] for kernel in run.manifest["kernels"]):
        return "no roles"
    run(**tensors)
    if run.remarks():
        return f"another kernel runs: {run.remarks()}"
    got = from_bf16(out) if out_kind == "bf16" else out.astype(np.float64)
    begin, errors, usuals = 0, [], []
    for b, n in enumerate(queries):
        own = got[begin:begin + n] if ragged else got[b]
        k = cache.rows["k"][b]
        v = k[..., :values] if options.get("latent") else cache.rows["v"][b]
        s, seen = scores_of(options, None if forget else region, parts[b][1], k, b)
        if lists:
            seen = seen & lists.of(b, *s.shape[1:])
        v = np.repeat(v, heads // options["kv_heads"], 1).transpose(1, 0, 2)
        if options.get("sink"):  # a key of its own, whose value is 0
            s = np.concatenate([s, np.broadcast_to(
                tensors["sink"].astype(np.float64)[:, None, None], (*s.shape[:2], 1))], -1)
            seen = np.concatenate([seen, np.ones((*s.shape[:2], 1), bool)], -1)
            v = np.concatenate([v, np.zeros((heads, 1, v.shape[-1]))], 1)
        narrow = rounded8 if options.get("dtype", "").startswith("f8") else rounded
        exact, base, sums = attend(s, seen, v, narrow)
        if options.get("lse"):
            lse = tensors["lse"][:, begin:begin + n] if ragged else tensors["lse"][b]
            gone = np.isneginf(sums)
            if ((np.isneginf(lse) != gone).any() or
                    abs(lse[~gone] - sums[~gone]).max(initial=0) > 1e-4):
                return "log-sum-exps"
        exact, base = (x.transpose(1, 0, 2) for x in (exact, base))
        ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
        errors.append((abs(own - exact) - ulp).ravel())
        usuals.append(abs(base - exact).ravel())
        begin += n
    error, usual = np.concatenate(errors), np.concatenate(usuals)
    if not error.max() <= 2 * usual.max():
        return f"errors of {error.max()}, where rounding makes {usual.max()}"
    return ""


def main():
    page, kind, *forget = sys.argv[1:]
    failed = False
    for region, features in itertools.islice(cases(kind, page), 2 if forget else None):
        wrong = run_case(kind, region, features, forget)
        print(f"{kind}, {region.__name__}: {', '.join(features)}"
              + (f": {wrong}" if wrong else ""), flush=True)
        failed |= bool(wrong)
    sys.exit(failed)


if __name__ == "__main__":
    main()
