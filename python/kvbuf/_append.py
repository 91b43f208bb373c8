# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""New tokens' keys and values into caches, by a kernel of their own."""

from __future__ import annotations

import dataclasses

from . import _kernels, _module_text
from ._attention import descaled, require_type
from ._problem import _FLOAT8


@dataclasses.dataclass(frozen=True)
class AppendProblem:
    """What such a kernel stores: a dense batch of new tokens into a continuous or
    paged cache, after those that its lengths count. Names are those of
    `Problem`; ``k_size`` and ``v_size`` are head sizes."""

    heads: int
    k_size: int
    v_size: int
    dtype: str
    cache: str
    page_size: int
    index: str
    k_dtype: str
    v_dtype: str
    k_scale: str
    v_scale: str
    rope: int
    angles: str
    interleaved: bool
    #: The type of rows of the tables, one a sequence, which positions are else.
    turns: str = ""

    def source(self) -> str:
        """The problem as a module in MLIR. Its tensors are k_new, v_new, k, v,
        cos and sin (with rope), and those that belong to the caches."""
        wide = "kvbuffer.index = i64" if self.index == "i64" else ""
        arguments, parts = [], {}
        for n in "k", "v":
            size, of = getattr(self, n + "_size"), getattr(self, n + "_scale")
            cache = _module_text.cache_type(
                self.cache, _FLOAT8.get(getattr(self, n + "_dtype"), self.dtype),
                self.heads, size, self.page_size, size if of == "token" else of)
            new = _module_text.rows_type("?x?", self.heads, size, self.dtype)
            arguments += [(n, new, ""), (n + "c", cache, wide)]
            parts[n] = n, new, n + "c", cache
        angles, turns = "", ""
        if self.rope:
            angles = f"memref<?x{self.rope}x{self.angles}, strided<[?, 1]>>"
            arguments += [("cos", angles, ""), ("sin", angles, "")]
        if self.turns:
            turns = f"memref<?x{self.turns}>"
            arguments.append(("rope_at", turns, ""))
        return _module_text.function(
            "append", arguments, _module_text.append_op(
                parts, angles, self.interleaved, turns))


@dataclasses.dataclass(frozen=True)
class PackedAppendProblem:
    """The same of one cache of pages whose rows are packed, of the `#kvbuffer.row`
    ``row`` with so many ``elements``."""

    row: str
    elements: int
    dtype: str
    page_size: int
    index: str

    def source(self) -> str:
        """The problem as a module in MLIR. Its tensors are k_new, k, k_table and
        k_lengths."""
        wide = "kvbuffer.index = i64" if self.index == "i64" else ""
        cache = _module_text.cache_type("paged", "bf16", 1, self.elements,
                                        self.page_size, row=f"<{self.row}>")
        new = _module_text.rows_type("?x?", 1, self.elements, self.dtype)
        return _module_text.function(
            "append", [("n", new, ""), ("c", cache, wide)],
            _module_text.append_op({"k": ("n", new, "c", cache)}))


def append_packed(ops, row, data, new, table, lengths, device=None):
    """Stores ``new`` (batch, tokens, 1, elements) after the tokens of each sequence
    in a cache of packed rows: ``data`` and ``row`` are those of `packed_rows`."""
    problem = PackedAppendProblem(row.text, row.elements, ops.dtype(new),
                                  data.shape[1], ops.dtype(lengths))
    name = ops.device_name(new)
    kernel = _kernels.find(problem, _kernels.chip_on(name), None, name == "emulator")
    tensors = {"k_new": ops.detach(new), "k": data, "k_table": ops.contiguous(table),
               "k_lengths": ops.contiguous(lengths)}
    ops.before_launch(tensors.values())
    kernel(**tensors, device=device)
    ops.after_launch(name)


def append(ops, q, k_cache, v_cache, k, v, angles, interleaved, table, lengths,
           k_descale, v_descale, kv_dtype=None, device=None, turns=None):
    """Stores k and v (batch, tokens, heads, head size) after the tokens of each
    sequence; ``angles`` is None or cosines and sines, by which k is rotated: by the
    rows of its positions, or of ``turns`` (batch), those of first tokens. A
    ``device`` is that of the tensors, with options of its own. ``kv_dtype``: what
    caches of bytes hold."""
    for name, x in ("k", k), ("v", v):
        require_type(ops, name, x, "f16", "bf16", "f32")
    kinds = ([ops.float8_of(x) or "" for x in (k_cache, v_cache)]
             if kv_dtype is None else [kv_dtype] * 2)
    if angles:
        kind = ops.dtype(angles[0])
        if kind not in ("f32", "f16", "bf16") or ops.dtype(angles[1]) != kind:
            kind = "f32"
        angles = [ops.rows_contiguous(x if ops.dtype(x) == kind
                                      else ops.cast(x, kind)) for x in angles]
    k_of, k_scales = descaled(ops, "k_descale", k_descale, k_cache, kinds[0])
    v_of, v_scales = descaled(ops, "v_descale", v_descale, v_cache, kinds[1])
    paged = len(table.shape) == 2
    problem = AppendProblem(
        heads=k_cache.shape[2], k_size=k_cache.shape[3], v_size=v_cache.shape[3],
        dtype=ops.dtype(k), cache="paged" if paged else "continuous",
        page_size=k_cache.shape[1] if paged else 0, index=ops.dtype(lengths),
        k_dtype=kinds[0], v_dtype=kinds[1], k_scale=k_of, v_scale=v_of,
        rope=angles[0].shape[1] if angles else 0,
        angles=ops.dtype(angles[0]) if angles else "f32",
        interleaved=interleaved,
        turns=ops.dtype(turns) if turns is not None else "")
    tensors = {"k_new": ops.rows_contiguous(k), "v_new": ops.rows_contiguous(v),
               "k": ops.as_bytes(k_cache) if kinds[0] else k_cache,
               "v": ops.as_bytes(v_cache) if kinds[1] else v_cache}
    if angles:
        tensors["cos"], tensors["sin"] = angles
    if turns is not None:
        tensors["rope_at"] = ops.contiguous(turns)
    # One table of both, by which a launch knows that they are stored in one way.
    table, lengths = ops.contiguous(table), ops.contiguous(lengths)
    for n, scales in ("k", k_scales), ("v", v_scales):
        tensors[n + "_table"] = table
        tensors[n + "_lengths"] = lengths
        if scales is not None:
            tensors[n + "_scales"] = scales
    name = ops.device_name(q)
    emulated = name == "emulator"
    kernel = _kernels.find(problem, _kernels.chip_on(name), None, emulated)
    tensors = {n: ops.detach(x) for n, x in tensors.items()}
    ops.before_launch(tensors.values())
    kernel(**tensors, device=device)
    ops.after_launch(name)
