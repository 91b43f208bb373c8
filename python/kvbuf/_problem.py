# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An attention problem as a value, and its text in MLIR."""

from __future__ import annotations

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Problem:
    """What a kernel computes: everything but the tensors' run-time sizes.

    ``dtype`` is "bf16" or "f16". ``query`` is "dense" (Q is [batch, rows, heads,
    head_size]) or "ragged" ([rows, heads, head_size] with offsets). ``cache`` is
    "dense", "ragged", "continuous" or "paged" (with ``page_size`` tokens a
    page). ``index`` is the type of tables, lengths and offsets, "i32" or "i64".
    ``lengths`` says what the lengths of a continuous or paged cache count: "all"
    tokens, or those that were "cached" before this call.

    ``causal`` and the windows are aligned bottom-right; -1 leaves a side open.
    ``scale`` None is 1/sqrt(head_size); ``softcap`` 0 is none.
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

    def __post_init__(self):
        choices = {"dtype": ("bf16", "f16"), "query": ("dense", "ragged"),
                   "cache": ("dense", "ragged", "continuous", "paged"),
                   "index": ("i32", "i64"), "lengths": ("all", "cached")}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is {getattr(self, name)!r}; expected "
                                 f"one of {', '.join(allowed)}")
        for name in "heads", "kv_heads", "head_size":
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected 1 "
                                 "or more")
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} query heads are no multiple of "
                             f"{self.kv_heads} key and value heads")
        if self.head_size % 8:
            raise ValueError(f"head_size is {self.head_size}; expected a "
                             "multiple of 8")
        if (self.cache == "paged") != (self.page_size > 0):
            raise ValueError("page_size goes with a paged cache")
        for name in "scale", "softcap":
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{name} is {value}; expected a finite number")

    @property
    def has_lengths(self) -> bool:
        """Whether the cache comes with a table and lengths."""
        return self.cache in ("continuous", "paged")

    def source(self) -> str:
        """The problem as a module in MLIR. Its tensors are q, k, v, o and, where
        the problem has them, q_offsets, k_offsets, v_offsets, k_table, v_table,
        k_lengths, v_lengths, sink and lse."""
        ragged = self.query == "ragged"
        rows, strides = (("?", "?, ?, 1") if ragged else ("?x?", "?, ?, ?, 1"))
        page = f", page_size = {self.page_size}" if self.page_size else ""
        query = (f"memref<{rows}x{self.heads}x{self.head_size}x{self.dtype}, "
                 f"strided<[{strides}]>>")
        cache = (f"!kvbuffer.cache<{self.cache}, {self.dtype}, heads = "
                 f"{self.kv_heads}, head_size = {self.head_size}{page}>")
        operands = {"q": "!q", "k": "!kv", "v": "!kv", "out": "!q"}
        if ragged:
            operands["offsets"] = f"memref<?x{self.index}>"
        if self.lse:
            operands["lse"] = (f"memref<{self.heads}x?xf32>" if ragged
                               else f"memref<?x{self.heads}x?xf32>")
        if self.sink:
            operands["sink"] = "memref<?xf32>"
        mask = ["causal = true"] if self.causal else []
        for side in "left", "right":
            if (window := getattr(self, "window_" + side)) >= 0:
                mask.append(f"{side} = {window}")
        attributes = [f"mask = #kvbuffer.mask<{', '.join(mask)}>"] * bool(mask)
        if self.scale is not None:
            attributes.append(f"scale = {self.scale:.9e} : f32")
        if self.softcap:
            attributes.append(f"softcap = {self.softcap:.9e} : f32")
        if self.batch_invariant:
            attributes.append("batch_invariant")
        if self.has_lengths:
            attributes.append(f'kvbuffer.lengths = "{self.lengths}"')
        wide = (" {kvbuffer.index = i64}"
                if self.index == "i64" and self.cache != "dense" else "")
        arguments = ", ".join(f"%{n}: {t}" + wide * (n in ("k", "v"))
                              for n, t in operands.items())
        uses = " ".join(f"{n}(%{n})" for n in operands)
        types = ", ".join(t if n in ("q", "k", "v", "out") else f"{n} {t}"
                          for n, t in operands.items())
        return (f"!q = {query}\n!kv = {cache}\n"
                f"func.func @attention({arguments}) {{\n"
                f"  kvbuffer.attention {uses} {{{', '.join(attributes)}}}\n"
                f"    : {types}\n  return\n}}\n")

    def to_dict(self) -> dict:
        """The fields that differ from their defaults, for a list in a file."""
        return {f.name: getattr(self, f.name)
                for f in dataclasses.fields(self)
                if getattr(self, f.name) != f.default}
