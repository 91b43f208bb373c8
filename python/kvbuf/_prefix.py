# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of sequences that begin alike: what they share is read once a group."""

from __future__ import annotations

import dataclasses

from . import _ops
from ._attention import (Tensor, attention, require_index, require_rank,
                         require_shape, shape_of)
from ._flash import require_counts
from ._library import Error
from ._merge import merge_states

#: Keys of a part of what is shared, at least; and tiles of 128 rows of a part, times
#: heads, of which more are as many as there are multiprocessors.
PART_KEYS, MOST_TILES, TILE_ROWS = 2048, 132, 128

#: More keys than a sequence has: `causal` hides none.
ALL_KEYS = 2**30


@dataclasses.dataclass(frozen=True)
class SharedPrefixTables:
    """Parts of what groups share, and what follows of each sequence, as sequences of
    one launch. Made by `shared_prefix_tables`, once for all layers of a step."""

    parts: int
    rows: int
    longest: int
    table: Tensor
    lengths: Tensor
    offsets: Tensor
    #: Up to which key each of them hides none, where rows are several.
    prefix: Tensor | None
    #: Sequences, and rows of a page, of whom they are.
    batch: int
    page_size: int


def _module(x):
    """torch's or numpy's functions; None of others."""
    ops = _ops.of(x)
    if isinstance(ops, _ops.Torch):
        return ops.torch
    return ops.np if type(ops) is _ops.Numpy else None


def _is_read(x):
    """Whether the host reads what a tensor holds."""
    if _module(x) is None:
        return False
    ops = _ops.of(x)
    if isinstance(ops, _ops.Torch):
        from . import _torch_state
        if _torch_state.is_recorded():
            return False
    return ops.device_name(x) == "emulator"


def _require_room(x, name, most):
    """Refuses lengths that tables have no pages for, where the host reads them: of
    parts of these nobody could any more."""
    if _is_read(x):
        require_counts(_ops.of(x), name, x, most,
                       "the keys that its table has pages for")


def _require_groups(group_offsets, batch):
    """Refuses groups that are not all of the batch, where the host reads them: a row of
    none has no result of what a group shares."""
    if not _is_read(group_offsets):
        return
    at = group_offsets.tolist()
    if at[:1] != [0] or at[-1] != batch or at != sorted(at):
        raise Error(f"group_offsets holds {at}; expected 0 to {batch}, all of the batch, "
                    "in order")


def shared_prefix_tables(
        *, group_offsets: Tensor, prefix_table: Tensor, prefix_lengths: Tensor,
        page_table: Tensor, lengths: Tensor, page_size: int, heads: int, rows: int = 1,
        longest_group: int | None = None, parts: int | None = None
        ) -> SharedPrefixTables:
    """What `shared_prefix_attention` makes of its tables, which layers of a step share:
    ``tables``. ``page_size``, ``heads`` and ``rows`` are those of its k and q.
    ``parts``: of how many the shared keys are; by default of 2048 keys or more, and no
    more than keep a chip busy. torch's tensors, or numpy's; nothing waits for a
    device."""
    m = _module(group_offsets)
    if m is None:
        raise NotImplementedError(
            f"tables of a {type(group_offsets).__name__} are wanted; expected torch's "
            "tensors or numpy's arrays")
    require_rank("group_offsets", group_offsets, 1, "(groups + 1)")
    require_rank("prefix_table", prefix_table, 2, "(groups, pages)")
    require_rank("page_table", page_table, 2, "(batch, pages)")
    groups, pages = shape_of(prefix_table)
    batch = page_table.shape[0]
    for name, x, count, what in (
            ("group_offsets", group_offsets, groups + 1, "groups + 1"),
            ("prefix_lengths", prefix_lengths, groups, "one a group"),
            ("lengths", lengths, batch, "one a sequence")):
        require_shape(name, x, (count,), what)
    _require_groups(group_offsets, batch)
    _require_room(prefix_lengths, "prefix_lengths", pages * page_size)
    _require_room(lengths, "lengths", page_table.shape[1] * page_size)
    if parts is None:
        tiles = (-(-batch * rows // TILE_ROWS) + max(groups - 1, 0)) * heads
        parts = max(1, min(pages * page_size // PART_KEYS, MOST_TILES // max(tiles, 1)))
    width = max(-(-pages // parts), 1)
    most = max(width, page_table.shape[1])

    def widened(x):
        missing = most - x.shape[1]
        if not missing:
            return x
        if m.__name__ == "torch":
            return m.nn.functional.pad(x, (0, missing))
        return m.pad(x, ((0, 0), (0, missing)))

    join = m.concatenate
    room = width * page_size
    table = [widened(prefix_table[:, p * width:(p + 1) * width]) for p in range(parts)]
    counts = [(prefix_lengths - p * room).clip(0, room) for p in range(parts)]
    starts = [group_offsets[:-1] * rows + p * batch * rows for p in range(parts)]
    on = {"device": group_offsets.device} if m.__name__ == "torch" else {}
    own = m.arange(batch + 1, dtype=group_offsets.dtype, **on)
    open_to = [m.full_like(prefix_lengths, ALL_KEYS)] * parts + [m.zeros_like(lengths)]
    longest = batch if longest_group is None else require_index(
        "longest_group", longest_group, 0)
    return SharedPrefixTables(
        parts, rows, longest * rows, join([*table, widened(page_table)]),
        join([*counts, lengths]), join([*starts, (own + parts * batch) * rows]),
        join(open_to) if rows > 1 else None, batch, page_size)


def shared_prefix_attention(
        q: Tensor, k: Tensor, v: Tensor, *, group_offsets: Tensor | None = None,
        prefix_table: Tensor | None = None, prefix_lengths: Tensor | None = None,
        page_table: Tensor | None = None, lengths: Tensor | None = None,
        longest_group: int | None = None, causal: bool = True,
        scale: float | None = None, softcap: float | None = None,
        sink: Tensor | None = None, k_descale: Tensor | None = None,
        v_descale: Tensor | None = None, return_lse: bool = False,
        tables: SharedPrefixTables | None = None
        ) -> Tensor | tuple[Tensor, Tensor]:
    """Attention over pages to a part that a group of sequences shares, and to one of
    each sequence's own behind it.

    q [batch, rows, H, D], k and v [pages, page size, G, D], as `kvbuf.attention` has
    them. Group g has the sequences ``group_offsets``[g] to ``group_offsets``[g + 1]
    ([groups + 1], all of the batch), whose first ``prefix_lengths``[g] tokens lie in
    the pages ``prefix_table``[g] ([groups, pages]); what follows them, new tokens too,
    in ``page_table`` [batch, pages], ``lengths`` [batch] tokens of each. These include
    as many as q has rows. All are int32, or all int64, and stay on the device.
    ``longest_group``: the most sequences of a group; without it, all. In place of
    them all, ``tables``: what `shared_prefix_tables` has made of them.

    Equal to attention over each sequence's whole tokens, without windows and slopes,
    which would count over both parts. One launch for all parts: a group's queries over
    a part of what it shares are a sequence, whose keys are read once for all of them,
    and so are a sequence's queries over its own; `merge_states` merges their results,
    which are float32. With a sink, and of JAX's arrays (whose results are of q's type),
    both kinds have a launch of their own. Nothing waits for the device."""
    ops = _ops.of(q, k, v)
    require_rank("q", q, 4, "(batch, rows, heads, head size)")
    batch, rows, heads, size = shape_of(q)
    width = v.shape[-1]
    shared = {"scale": scale, "softcap": softcap, "k_descale": k_descale,
              "v_descale": v_descale, "return_lse": True}
    if tables is not None and sink is not None:
        raise NotImplementedError("sink is given with tables, of which each would have "
                                  "it; expected the tensors that they are made of")
    made_of = {"group_offsets": group_offsets, "prefix_table": prefix_table,
               "prefix_lengths": prefix_lengths, "page_table": page_table,
               "lengths": lengths, "longest_group": longest_group}
    for name, x in made_of.items():
        if tables is not None and x is not None:
            raise ValueError(f"{name} is given with tables, which are in its place")
        if tables is None and x is None and name != "longest_group":
            raise ValueError(f"{name} is None, and so is tables")
    if tables is None and (sink is not None or _module(q) is None):
        return _apart(ops, q, k, v, group_offsets, prefix_table, prefix_lengths,
                      page_table, lengths, longest_group, causal, sink, shared,
                      return_lse)
    if tables is None:
        tables = shared_prefix_tables(
            group_offsets=group_offsets, prefix_table=prefix_table,
            prefix_lengths=prefix_lengths, page_table=page_table, lengths=lengths,
            page_size=k.shape[1], heads=heads, rows=rows, longest_group=longest_group)
    for have, what, name, want in (
            (tables.rows, "rows a sequence", "q", rows),
            (tables.batch, "sequences", "q", batch),
            (tables.page_size, "rows a page", "k", k.shape[1])):
        if have != want:
            raise ValueError(f"tables are of {have} {what}, and {name} has {want}; "
                             f"expected tables of {name}'s")
    kinds = tables.parts + 1
    copies = q.reshape(1, batch * rows, heads, size)
    copies = ops.expand(copies, (kinds, *shape_of(copies)[1:]))
    several = bool(causal and tables.prefix is not None)
    out, lse = attention(
        copies.reshape(-1, heads, size), k, v, q_offsets=tables.offsets,
        longest_query=tables.longest, page_table=tables.table, lengths=tables.lengths,
        causal=several, prefix=tables.prefix if several else None,
        out=ops.empty((kinds * batch * rows, heads, width), "f32", q), **shared)
    lse = lse.reshape(heads, kinds, batch, rows).swapaxes(0, 1).swapaxes(1, 2)
    return _merged(ops, q, out.reshape(kinds, batch, rows, heads, width), lse,
                   return_lse)


def _merged(ops, q, outs, lses, return_lse):
    out = None
    if not ops.frozen:
        kind = ops.dtype(q) if not ops.float8_of(q) else "bf16"
        parts = outs[0] if isinstance(outs, list) else outs
        out = ops.empty(shape_of(parts)[-4:], kind, q)
    out, lse = merge_states(outs, lses, out=out)
    return (out, lse) if return_lse else out


def _apart(ops, q, k, v, group_offsets, prefix_table, prefix_lengths, page_table, lengths,
           longest_group, causal, sink, shared, return_lse):
    """The same by a launch of each kind."""
    require_rank("group_offsets", group_offsets, 1, "(groups + 1)")
    require_rank("prefix_table", prefix_table, 2, "(groups, pages)")
    batch, rows, heads, size = shape_of(q)
    _require_groups(group_offsets, batch)
    width = v.shape[-1]
    most = batch if longest_group is None else require_index(
        "longest_group", longest_group, 0)

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
    return _merged(ops, q, [common, own], [common_lse, own_lse], return_lse)
