# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of sequences that begin alike: what they share is read once a group."""

from __future__ import annotations

from . import _ops
from ._attention import Tensor, attention, require_index, require_rank, shape_of
from ._merge import merge_states


def shared_prefix_attention(
        q: Tensor, k: Tensor, v: Tensor, *, group_offsets: Tensor,
        prefix_table: Tensor, prefix_lengths: Tensor, page_table: Tensor,
        lengths: Tensor, longest_group: int | None = None, causal: bool = True,
        scale: float | None = None, softcap: float | None = None,
        sink: Tensor | None = None, k_descale: Tensor | None = None,
        v_descale: Tensor | None = None, return_lse: bool = False
        ) -> Tensor | tuple[Tensor, Tensor]:
    """Attention over pages to a part that a group of sequences shares, and to one of
    each sequence's own behind it.

    q [batch, rows, H, D], k and v [pages, page size, G, D], as `kvbuf.attention` has
    them. Group g has the sequences ``group_offsets``[g] to ``group_offsets``[g + 1]
    ([groups + 1]), whose first ``prefix_lengths``[g] tokens lie in the pages
    ``prefix_table``[g] ([groups, pages]); what follows them, new tokens too, in
    ``page_table`` [batch, pages], ``lengths`` [batch] tokens of each. These include as
    many as q has rows. All are int32, or all int64, and stay on the device.
    ``longest_group``: the most sequences of a group; without it, all.

    Equal to attention over each sequence's whole tokens, without windows and slopes,
    which would count over both parts. Three kernels: one of a group's queries over
    what it shares, whose keys are read once for all of them; one of the sequences over
    their own; and `merge_states` of their results, which are float32 (JAX's: of q's
    type). Nothing waits for the device."""
    ops = _ops.of(q, k, v)
    require_rank("q", q, 4, "(batch, rows, heads, head size)")
    require_rank("group_offsets", group_offsets, 1, "(groups + 1)")
    require_rank("prefix_table", prefix_table, 2, "(groups, pages)")
    batch, rows, heads, size = shape_of(q)
    width = v.shape[-1]
    most = batch if longest_group is None else require_index(
        "longest_group", longest_group, 0)
    shared = {"scale": scale, "softcap": softcap, "k_descale": k_descale,
              "v_descale": v_descale, "return_lse": True}

    def room(*shape):
        """Where a part's result is written, unrounded."""
        return None if ops.frozen else ops.empty((*shape, width), "f32", q)

    # A group's queries are one sequence's, which see all of what they share.
    common, common_lse = attention(
        q.reshape(batch * rows, heads, size), k, v, q_offsets=group_offsets * rows,
        longest_query=most * rows, page_table=prefix_table, lengths=prefix_lengths,
        out=room(batch * rows, heads), **shared)
    own, own_lse = attention(
        q, k, v, page_table=page_table, lengths=lengths, causal=causal, sink=sink,
        out=room(batch, rows, heads), **shared)
    common = common.reshape(batch, rows, heads, width)
    common_lse = common_lse.reshape(heads, batch, rows).swapaxes(0, 1)
    out = None
    if not ops.frozen:
        kind = ops.dtype(q) if not ops.float8_of(q) else "bf16"
        out = ops.empty((batch, rows, heads, width), kind, q)
    out, lse = merge_states([common, own], [common_lse, own_lse], out=out)
    return (out, lse) if return_lse else out
