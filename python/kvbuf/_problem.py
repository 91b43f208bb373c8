# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An attention problem as a value, and its text in MLIR."""

from __future__ import annotations

import dataclasses
import math
import re

from . import _module_text

#: The 8-bit floats, by their names in MLIR.
_FLOAT8 = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "e4m3fnuz": "f8E4M3FNUZ",
           "e5m2fnuz": "f8E5M2FNUZ"}


@dataclasses.dataclass(frozen=True)
class Problem:
    """What a kernel computes: everything but the tensors' run-time sizes.

    ``dtype`` is "bf16" or "f16", or an 8-bit float, as ``k_dtype`` has: that of
    ``k_dtype`` and ``v_dtype`` then, with an ``o_dtype``. ``query`` is "dense" (Q is [batch, rows, heads,
    head_size]) or "ragged" ([rows, heads, head_size] with offsets). ``cache`` is
    "dense", "ragged", "continuous" or "paged" (with ``page_size`` tokens a
    page). ``index`` is the type of tables, lengths and offsets, "i32" or "i64".
    ``lengths`` says what the lengths of a continuous or paged cache count: "all"
    tokens, or those that were "cached" before this call. ``seq_q`` is the rows of
    each sequence that the kernel is for, or 0 for any: kernels for a few rows
    split keys over blocks. It goes with "dense" queries.

    ``k_dtype`` and ``v_dtype`` are "" for caches of ``dtype``, or one of "e4m3",
    "e5m2", "e4m3fnuz" and "e5m2fnuz"; ``k_scale`` and ``v_scale`` say what such
    elements stand for themselves times: "" nothing, a number of the "tensor", of
    each "head", of each "token" and head, or of each group of so many elements of
    these, "32".

    ``causal`` and the windows are aligned bottom-right; -1 leaves a side open.
    ``scale`` None is 1/sqrt(head_size); ``softcap`` 0 is none. ``alibi`` is 1 for a
    tensor of slopes [heads], 2 for [batch, heads], 0 for none. ``bias``: the type
    of a tensor "bias" [batch, heads, rows, keys] that is added to scores, whose
    -inf hides, "" for none. ``hidden``: whether a tensor "keep" of these sizes,
    int32, says which keys a row sees. ``tree``: whether a tensor "tree" [batch,
    tokens], int32, says by bits which of up to 32 new tokens each of them sees.
    ``prefix``: the type of a tensor "prefix" [batch], "i32" or "i64", up to which key
    ``causal`` hides none, "" for none. Those five need kernels without warp roles.

    ``append``: the kernel first stores a new token for each query row, "k_new" and
    "v_new" [batch, seq_q, kv_heads, head_size], V's its own, after those that the
    lengths count: "plain", or with keys rotated by tensors "cos" and "sin" [positions,
    ``rope``] of type ``angles``: "half" (element i with i + rope) or "interleaved"
    (2i with 2i + 1). It goes with ``seq_q`` and lengths of "cached" tokens.

    ``v_head_size``: that of V and O, where it is not ``head_size``, that of Q and
    K; 0 where it is. ``o_dtype``: the type of O, "f32", "bf16" or "f16", where it
    is not ``dtype``; "" where it is, or, of 8-bit floats, ``dtype``.

    ``score`` and ``visible``: the lines of regions of one's own, with what they
    yield, on %s, %batch, %head, %row, %at (its position), %key and %capture0_,
    %capture1_, ...: tensors whose ranks and types are ``captures``, "2:f32,1:i32".
    They go with none of the tensors that give scores (alibi, bias, hidden, tree).

    ``block_mask``: "128x128" where the last four captures list the blocks of keys,
    here of 128, that blocks of queries, here of 128, see partly and wholly, as
    FlexAttention's BlockMask does; "128x128 partly" where the last two list those
    that are partly seen, and there are no others. Goes with none of seq_q and latent.

    ``alone``: one kernel computes all sequences of a ragged batch, those of few rows,
    too, which else have others beside it. Goes with none of seq_q, latent and
    batch_invariant.

    ``latent``: V is the first ``v_head_size`` columns of K's rows, and no tensor of
    its own; what is said of ``k_dtype`` and ``k_scale`` holds of both. ``row``: the
    text of a `#kvbuffer.row`, where its rows are packed into bytes. ``q_scale``: scores
    are multiplied by a number of the queries, a tensor "q_scale" of one element; of other
    problems a scale of the keys has it. It goes with no softcap, score and visible.
    """

    heads: int
    kv_heads: int
    head_size: int
    dtype: str = "bf16"
    query: str = "dense"
    cache: str = "dense"
    page_size: int = 0
    index: str = "i32"
    lengths: str = "all"
    causal: bool = False
    window_left: int = -1
    window_right: int = -1
    scale: float | None = None
    softcap: float = 0.0
    sink: bool = False
    lse: bool = False
    batch_invariant: bool = False
    alibi: int = 0
    bias: str = ""
    hidden: bool = False
    tree: bool = False
    prefix: str = ""
    seq_q: int = 0
    k_dtype: str = ""
    v_dtype: str = ""
    k_scale: str = ""
    v_scale: str = ""
    append: str = ""
    rope: int = 0
    angles: str = "f32"
    v_head_size: int = 0
    o_dtype: str = ""
    score: str = ""
    visible: str = ""
    captures: str = ""
    block_mask: str = ""
    alone: bool = False
    latent: bool = False
    row: str = ""
    q_scale: bool = False

    def __post_init__(self):
        choices = {"dtype": ("bf16", "f16", *_FLOAT8), "query": ("dense", "ragged"),
                   "cache": ("dense", "ragged", "continuous", "paged"),
                   "index": ("i32", "i64"), "lengths": ("all", "cached"),
                   "alibi": (0, 1, 2), "bias": ("", "f32", "f16", "bf16"),
                   "append": ("", "plain", "half", "interleaved"),
                   "prefix": ("", "i32", "i64"),
                   "angles": ("f32", "f16", "bf16"),
                   "o_dtype": ("", "f32", "f16", "bf16",
                               *({self.dtype} & _FLOAT8.keys()))}
        for name in "k", "v":
            choices[f"{name}_dtype"] = ("", *_FLOAT8)
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is {getattr(self, name)!r}; expected "
                                 f"one of {', '.join(allowed)}")
        for name, size in ("k", self.head_size), ("v", self.value_size):
            of = getattr(self, f"{name}_scale")
            if of in ("", "tensor", "head", "token"):
                continue
            if not (of.isdecimal() and 0 < int(of) <= size):
                raise ValueError(f"{name}_scale is {of!r}; expected one of , tensor, "
                                 f"head, token, or a number up to {size}, the "
                                 "elements of a group")
        v_dtype = self.k_dtype if self.latent else self.v_dtype
        if self.dtype in _FLOAT8 and not (
                self.k_dtype == v_dtype == self.dtype and self.o_dtype):
            raise ValueError(f"dtype is {self.dtype!r}; expected k_dtype and "
                             "v_dtype like it, and an o_dtype")
        for name in "heads", "kv_heads", "head_size":
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected 1 "
                                 "or more")
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} query heads are no multiple of "
                             f"{self.kv_heads} key and value heads")
        for name in "head_size", "v_head_size":
            if getattr(self, name) < 0 or getattr(self, name) % 8:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a "
                                 "multiple of 8")
        if self.seq_q < 0 or (self.seq_q and self.query == "ragged"):
            raise ValueError(f"seq_q is {self.seq_q}; expected 0, or the rows of "
                             "each sequence of dense queries")
        for name in "k", "v":
            if (getattr(self, f"{name}_scale")
                    and not getattr(self, f"{name}_dtype")):
                raise ValueError(f"{name}_scale goes with {name}_dtype")
        if self.latent and (self.value_size > self.head_size or self.v_dtype
                            or self.v_scale or self.append):
            raise ValueError("latent goes with a v_head_size of at most "
                             f"head_size, {self.head_size}, and with none of "
                             "v_dtype, v_scale and append")
        if self.q_scale and (not self.latent or self.softcap or self.score
                             or self.visible):
            raise ValueError("q_scale goes with latent, and with none of softcap, score "
                             "and visible")
        if self.row and (not self.latent or self.k_dtype):
            raise ValueError("row goes with latent, and with no k_dtype")
        if self.append and (not self.seq_q or not self.has_lengths
                            or self.lengths != "cached"):
            raise ValueError("append goes with seq_q, and with a continuous or "
                             "paged cache whose lengths count the cached tokens")
        if (self.append in ("half", "interleaved")) != (self.rope > 0):
            raise ValueError("rope, the pairs that are rotated, goes with append "
                             "\"half\" or \"interleaved\"")
        if (self.cache == "paged") != (self.page_size > 0):
            raise ValueError("page_size goes with a paged cache")
        if (self.score or self.visible) and (self.alibi or self.bias or self.hidden
                                             or self.tree or self.prefix):
            raise ValueError("score and visible go with none of alibi, bias, hidden, "
                             "tree and prefix")
        if self.alone and (self.query != "ragged" or self.latent
                           or self.batch_invariant):
            raise ValueError("alone goes with ragged queries, and with none of latent "
                             "and batch_invariant")
        if self.prefix and not self.causal:
            raise ValueError("prefix goes with causal")
        if self.block_mask and (self.seq_q or self.latent or not re.fullmatch(
                r"[1-9]\d*x[1-9]\d*( partly)?", self.block_mask)):
            raise ValueError(f"block_mask is {self.block_mask!r}; expected rows and "
                             'keys of a block, "128x128", and no seq_q or latent')
        if len(self.captures.split(",")) < self._lists():
            raise ValueError(f"block_mask goes with {self._lists()} captures of "
                             "lists or more")
        for name in "scale", "softcap":
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{name} is {value}; expected a finite number")

    @property
    def value_size(self) -> int:
        """The head size of V and O."""
        return self.v_head_size or self.head_size

    @property
    def schedule(self) -> str | None:
        """What of the schedule follows from the problem."""
        return "split_keys=false" if self.alone else None

    @property
    def has_lengths(self) -> bool:
        """Whether the cache comes with a table and lengths."""
        return self.cache in ("continuous", "paged")

    def _lists(self):
        """How many captures list blocks of keys."""
        return 0 if not self.block_mask else 2 if " " in self.block_mask else 4

    def source(self) -> str:
        """The problem as a module in MLIR. Its tensors are q, k, v (but for latent
        ones), o and, where the problem has them, k_new, v_new, cos, sin, q_offsets, k_offsets, v_offsets, k_table, v_table,
        k_lengths, v_lengths, k_scales, v_scales, sink, q_scale, alibi, bias, keep and
        lse."""
        ragged = self.query == "ragged"
        rows = "?" if ragged else f"?x{self.seq_q or '?'}"
        query, out = (_module_text.rows_type(rows, self.heads, size,
                                             _FLOAT8.get(dtype, dtype))
                      for size, dtype in ((self.head_size, self.dtype),
                                          (self.value_size,
                                           self.o_dtype or self.dtype)))
        caches = {}
        for name, size in ("k", self.head_size), ("v", self.value_size):
            of = getattr(self, f"{name}_scale")
            caches[name] = _module_text.cache_type(
                self.cache, _FLOAT8.get(getattr(self, f"{name}_dtype"), self.dtype),
                self.kv_heads, size, self.page_size, size if of == "token" else of,
                row=f"<{self.row}>" if self.row else "")
        lse = (f"memref<{self.heads}x?xf32>" if ragged
               else f"memref<?x{self.heads}x?xf32>")
        blocks = ""
        if self.block_mask:
            tall, wide = self.block_mask.split()[0].split("x")
            captures = len(self.captures.split(","))
            lists = range(captures - self._lists(), captures)
            blocks = (f"rows = {tall}, keys = {wide}, lists = "
                      f"[{', '.join(map(str, lists))}]")
        said = _module_text.attributes(
            causal=self.causal and not self.prefix, window_left=self.window_left,
            window_right=self.window_right, scale=self.scale, softcap=self.softcap,
            block_mask=blocks, batch_invariant=self.batch_invariant,
            lengths=self.lengths if self.has_lengths else "")
        captures, regions = self._own_scores()
        return _module_text.attention_module(
            "attention", query=query, out=out, caches=caches, said=said,
            ragged=ragged, index=self.index,
            wide=self.index == "i64" and self.cache != "dense",
            lse=lse if self.lse else "", sink=self.sink, latent=self.latent,
            before=self._append if self.append else None,
            captures=[(n, t, names) for n, (t, names) in captures.items()],
            regions=regions)

    def _append(self, operands):
        """The text of the append before the attention, whose operands have these
        types, and the arguments that it needs."""
        parts = {n: (n + "_new", _module_text.rows_type(f"?x{self.seq_q}",
                                                        self.kv_heads, size,
                                                        self.dtype),
                     n, operands[n])
                 for n, size in (("k", self.head_size), ("v", self.value_size))}
        more = [(new, type, "") for new, type, _, _ in parts.values()]
        angles = ""
        if self.rope:
            angles = f"memref<?x{self.rope}x{self.angles}, strided<[?, 1]>>"
            more += [("cos", angles, ""), ("sin", angles, "")]
        return _module_text.append_op(parts, angles,
                                      self.append == "interleaved"), more

    def _own_scores(self):
        """Captured tensors, as name: (type, attributes), and the text after the
        problem's types: docs/scores.md."""
        if self.score or self.visible or self.block_mask:
            return self._given_regions()
        captures = {}

        def shape(name, *dims):
            named = ", ".join(f'"{d}"' if isinstance(d, str) else str(d)
                              for d in dims)
            return f'kvbuffer.name = "{name}", kvbuffer.shape = [{named}]'

        free = "strided<[?, ?, ?, 1]>"
        if self.q_scale:
            captures["q_scale"] = ("memref<1xf32>", shape("q_scale", 1))
        if self.alibi == 1:
            captures["alibi"] = (f"memref<{self.heads}xf32>",
                                 shape("alibi", self.heads))
        elif self.alibi:
            captures["alibi"] = (f"memref<?x{self.heads}xf32, strided<[?, 1]>>",
                                 shape("alibi", "batch", self.heads))
        for name, kind in ("bias", self.bias), ("keep", "i32" * self.hidden):
            if kind:
                captures[name] = (
                    f"memref<?x{self.heads}x?x?x{kind}, {free}>",
                    shape(name, "batch", self.heads, "seq_q", "seq_k"))
        if self.tree:
            captures["tree"] = ("memref<?x?xi32, strided<[?, 1]>>",
                                shape("tree", "batch", "tree_tokens"))
        if self.prefix:
            captures["prefix"] = (f"memref<?x{self.prefix}>",
                                  shape("prefix", "batch"))
        if not captures:
            return {}, ""
        given = ", ".join(f"%{n}_: {t}" for n, (t, _) in captures.items())
        place = ("%batch: index, %head: index, %row: index, %at: index, "
                 f"%key: index, {given}):")
        here = "[%batch, %head, %row, %key]"
        score, now = [], "%s"
        if self.q_scale:
            score = ["%c0_ = arith.constant 0 : index",
                     "%of_q = memref.load %q_scale_[%c0_] : memref<1xf32>",
                     "%scaled = arith.mulf %s, %of_q : f32"]
            now = "%scaled"
        if self.alibi:
            where = "[%head]" if self.alibi == 1 else "[%batch, %head]"
            score += [
                f"%slope = memref.load %alibi_{where} : {captures['alibi'][0]}",
                "%ahead = arith.subi %key, %at : index",
                "%behind = arith.subi %at, %key : index",
                "%far = arith.maxsi %ahead, %behind : index",
                "%narrow = arith.index_cast %far : index to i32",
                "%distance = arith.sitofp %narrow : i32 to f32",
                "%fall = arith.mulf %slope, %distance : f32",
                f"%lower = arith.subf {now}, %fall : f32"]
            now = "%lower"
        load = []
        if self.bias:
            load = [f"%b0 = memref.load %bias_{here} : {captures['bias'][0]}"]
            more = "%b0"
            if self.bias != "f32":
                load.append(f"%b = arith.extf %b0 : {self.bias} to f32")
                more = "%b"
            # Models hide keys by the type's lowest number, also all of a row's:
            # scores may be of any size.
            score += [*load, f"%sum = arith.addf {now}, {more} : f32"]
            now = "%sum"
        text = f"\n    captures({', '.join('%' + n for n in captures)} : "
        text += ", ".join(t for t, _ in captures.values()) + ")"

        def region(name, arguments, lines, result):
            body = "".join(f"      {line}\n" for line in lines)
            return (f"\n    {name} {{\n    ^bb0({arguments}\n{body}"
                    f"      kvbuffer.yield {result}\n    }}")

        if score:
            text += region("score", f"%s: f32, {place}", score, f"{now} : f32")
        seen = []
        if self.bias:
            seen += [*load, "%least = arith.constant 0xFF800000 : f32",
                     f"%visible = arith.cmpf one, {more}, %least : f32"]
            result = "%visible"
        if self.hidden:
            seen += [f"%k0 = memref.load %keep_{here} : {captures['keep'][0]}",
                     "%none = arith.constant 0 : i32",
                     "%kept = arith.cmpi ne, %k0, %none : i32"]
            result = "%kept"
        if self.bias and self.hidden:
            seen.append("%both = arith.andi %visible, %kept : i1")
            result = "%both"
        if self.prefix:
            # What bounds the tiles of keys: the row's place, or the number.
            before = result if seen else ""
            seen += [
                "%behind_row = arith.cmpi sle, %key, %at : index",
                f"%open0 = memref.load %prefix_[%batch] : {captures['prefix'][0]}",
                f"%open = arith.index_cast %open0 : {self.prefix} to index",
                "%in_prefix = arith.cmpi slt, %key, %open : index",
                "%causal_or = arith.ori %behind_row, %in_prefix : i1"]
            result = "%causal_or"
            if before:
                seen.append(f"%with_prefix = arith.andi {before}, %causal_or : i1")
                result = "%with_prefix"
        if self.tree:
            # Tokens beyond the tensor have the bits of its last one.
            kind = captures["tree"][0]
            before = result if seen else ""
            seen += [
                "%c0 = arith.constant 0 : index",
                "%c1 = arith.constant 1 : index",
                "%c31 = arith.constant 31 : index",
                "%first = arith.subi %at, %row : index",
                "%token = arith.subi %key, %first : index",
                "%old = arith.cmpi slt, %token, %c0 : index",
                "%node0 = arith.maxsi %token, %c0 : index",
                "%node = arith.minsi %node0, %c31 : index",
                "%by = arith.index_cast %node : index to i32",
                f"%tokens = memref.dim %tree_, %c1 : {kind}",
                "%last = arith.subi %tokens, %c1 : index",
                "%own = arith.minsi %row, %last : index",
                f"%word = memref.load %tree_[%batch, %own] : {kind}",
                "%shifted = arith.shrui %word, %by : i32",
                "%one = arith.constant 1 : i32",
                "%low = arith.andi %shifted, %one : i32",
                "%marked = arith.cmpi eq, %low, %one : i32",
                "%in_tree = arith.ori %old, %marked : i1"]
            result = "%in_tree"
            if before:
                seen.append(f"%all = arith.andi {before}, %in_tree : i1")
                result = "%all"
        if seen:
            text += region("visible", place, seen, f"{result} : i1")
        return captures, text

    def _given_regions(self):
        """As `_own_scores`, of the lines that the problem has."""
        captures = {}
        given = list(filter(None, self.captures.split(",")))
        for i, text in enumerate(given):
            rank, kind = text.split(":")
            free = f", strided<[{'?, ' * (int(rank) - 1)}1]>" * (int(rank) > 1)
            # Lists are of one size, which the launch checks.
            of = "list" if i >= len(given) - self._lists() else f"capture{i}"
            dims = ", ".join(f'"{of}_{n}"' for n in range(int(rank)))
            captures[f"capture{i}"] = (
                f"memref<{'?x' * int(rank)}{kind}{free}>",
                f'kvbuffer.name = "capture{i}", kvbuffer.shape = [{dims}]')
        text = ""
        if captures:
            text = f"\n    captures({', '.join('%' + n for n in captures)} : "
            text += ", ".join(t for t, _ in captures.values()) + ")"
        place = ", ".join(["%batch: index, %head: index, %row: index, %at: index, "
                           "%key: index",
                           *[f"%{n}_: {t}" for n, (t, _) in captures.items()]])
        for name, lines in ("score", self.score), ("visible", self.visible):
            if lines:
                first = "%s: f32, " * (name == "score")
                lines = lines.replace("\n", "\n      ")
                text += (f"\n    {name} {{\n    ^bb0({first}{place}):\n"
                         f"      {lines}\n    }}")
        return captures, text

    def to_dict(self) -> dict:
        """The fields that differ from their defaults, for a list in a file."""
        return {f.name: getattr(self, f.name)
                for f in dataclasses.fields(self)
                if getattr(self, f.name) != f.default}
