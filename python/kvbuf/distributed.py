# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of sequences that several processes share, on torch.distributed.

    x = kvbuf.distributed.shard(x, dim=1)            # this process's tokens
    o = kvbuf.distributed.ring_attention(q, k, v, causal=True)
    o = kvbuf.distributed.ring_attention_varlen(q, k, v, cu_seqlens, longest)
    o = kvbuf.distributed.sharded_decode(q, k_cache, v_cache, cache_seqlens=mine)

Every function takes ``group``: a process group, a one-dimensional device mesh, or
None for all processes. All processes of it call with tensors of the same shapes.
Nothing here starts processes or picks devices: that is torchrun's, or the
caller's, and NCCL's or gloo's to carry out.

**Order of tokens.** Prefill functions divide a sequence into 2 n parts for n
processes. In the order "zigzag", the default, process r holds the parts r and
2 n - 1 - r, so that a causal mask leaves every process the same work; in
"contiguous" it holds the parts 2 r and 2 r + 1. A ragged batch is divided sequence
by sequence, in zigzag order.
"""

from __future__ import annotations

from typing import Iterator, Union

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from . import torch as _functions
from ._merge import merge_states

__all__ = ["allgather_attention", "merge", "ring_attention",
           "ring_attention_varlen", "ring_steps", "shard", "shard_varlen",
           "sharded_decode", "unshard", "unshard_varlen"]

Group = Union[dist.ProcessGroup, DeviceMesh, None]

_ORDERS = ("zigzag", "contiguous")


def _group(group):
    """The process group that `group` stands for."""
    if group is None:
        return dist.group.WORLD
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise ValueError(f"group is a device mesh of {group.ndim} dimensions;"
                             " expected one: mesh[\"name\"]")
        return group.get_group()
    return group


def _check_order(order):
    if order not in _ORDERS:
        raise ValueError(f"order is {order!r}; expected \"zigzag\" or "
                         "\"contiguous\"")


def _parts(rank, size, order):
    """Numbers of the parts, of 2 * size, that a process holds."""
    if order == "zigzag":
        return rank, 2 * size - 1 - rank
    return 2 * rank, 2 * rank + 1


def merge(outs: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
    """Attention over all keys, of results over parts of them.

    ``outs`` (parts, ..., rows, heads, head size), ``lses`` (parts, ..., heads,
    rows) as the attention functions return them, stacked. Returns (out, in the
    type of outs, lse in float32), as `kvbuf.merge_states` does, whose kernel this is:
    what a part without a key holds counts nothing. Where no part has a key: 0 and
    -inf."""
    lead = outs.shape[1:-3]
    out, lse = merge_states(
        outs.reshape(len(outs), lead.numel(), *outs.shape[-3:]),
        lses.float().reshape(len(lses), lead.numel(), *lses.shape[-2:]))
    return out.reshape(outs.shape[1:]), lse.reshape(lses.shape[1:])


class _Sum:
    """As `merge`, part after part, in float32."""

    def __init__(self):
        self.out = self.lse = None

    def add(self, out, lse, rows=slice(None)):
        """A part's result; `rows` are those of the whole that it is about: a
        slice or a tensor of indices. The first part is about all."""
        if self.out is None:
            self.out, self.lse = out.float(), lse.float()
            return
        before = self.lse[..., rows]
        both = torch.logaddexp(before, lse)
        base = both.masked_fill(torch.isneginf(both), 0)
        a, b = (torch.exp(x - base).transpose(-1, -2)[..., None]
                for x in (before, lse))
        # Of a slice this is the whole's own memory, of indices a copy.
        mine = self.out[..., rows, :, :].mul_(a).addcmul_(out, b)
        if not isinstance(rows, slice):
            self.out[..., rows, :, :] = mine
        self.lse[..., rows] = both


def shard(
        x: Tensor, dim: int = 1, group: Group | None = None,
        order: str = "zigzag") -> Tensor:
    """This process's tokens of a whole tensor: a copy. Dimension `dim` holds the
    tokens; its size is a multiple of 2 n."""
    _check_order(order)
    pg = _group(group)
    size, rank = pg.size(), pg.rank()
    if x.shape[dim] % (2 * size):
        raise ValueError(f"dimension {dim} has {x.shape[dim]} tokens; expected a "
                         f"multiple of {2 * size}, twice the processes")
    parts = x.chunk(2 * size, dim)
    return torch.cat([parts[i] for i in _parts(rank, size, order)], dim)


def unshard(
        x: Tensor, dim: int = 1, group: Group | None = None,
        order: str = "zigzag") -> Tensor:
    """The whole tensor, of every process's tokens; on all processes."""
    _check_order(order)
    pg = _group(group)
    whole = [torch.empty_like(x, memory_format=torch.contiguous_format)
             for _ in range(pg.size())]
    dist.all_gather(whole, x.contiguous(), group=pg)
    return _in_order(whole, dim, order)


def _in_order(pieces, dim, order):
    """Tokens in their sequence's order, of what each process holds."""
    if pieces[0].shape[dim] % 2:
        raise ValueError(f"dimension {dim} has {pieces[0].shape[dim]} tokens on this "
                         "process; expected two parts of one size")
    parts = [None] * (2 * len(pieces))
    for rank, piece in enumerate(pieces):
        for i, part in zip(_parts(rank, len(pieces), order),
                           piece.chunk(2, dim)):
            parts[i] = part
    return torch.cat(parts, dim)


def _check_offsets(cu_seqlens):
    if cu_seqlens.dim() != 1 or cu_seqlens.shape[0] < 1 or \
            cu_seqlens.dtype not in (torch.int32, torch.int64):
        raise ValueError(
            f"cu_seqlens is {tuple(cu_seqlens.shape)} of {cu_seqlens.dtype}; "
            "expected (sequences + 1) of int32 or int64")


def _shares(cu_seqlens, size):
    """Tokens of a whole ragged batch that each of `size` processes holds, in its
    order (processes, tokens of one). Reads the offsets."""
    _check_offsets(cu_seqlens)
    ends = cu_seqlens.tolist()
    shares = [[] for _ in range(size)]
    for b, (first, last) in enumerate(zip(ends, ends[1:])):
        if (last - first) % (2 * size):
            raise ValueError(f"sequence {b} has {last - first} tokens; expected a "
                             f"multiple of {2 * size}, twice the processes")
        parts = torch.arange(first, last).chunk(2 * size) if last > first else \
            [torch.arange(0)] * (2 * size)
        for rank, share in enumerate(shares):
            share += [parts[i] for i in _parts(rank, size, "zigzag")]
    return torch.stack([torch.cat(x) if x else torch.arange(0) for x in shares])


def shard_varlen(
        x: Tensor, cu_seqlens: Tensor, group: Group | None = None
        ) -> tuple[Tensor, Tensor]:
    """This process's tokens of a ragged batch (all tokens, ...), each sequence
    divided in zigzag order, and their offsets: those of any process. A sequence's
    tokens are a multiple of 2 n. Reads cu_seqlens on the host."""
    pg = _group(group)
    share = _shares(cu_seqlens, pg.size())[pg.rank()]
    return x[share.to(x.device)], cu_seqlens // pg.size()


def unshard_varlen(
        x: Tensor, cu_seqlens: Tensor, group: Group | None = None) -> Tensor:
    """The whole ragged batch, of every process's tokens; on all processes.
    ``cu_seqlens`` are the whole's offsets. Reads them on the host."""
    pg = _group(group)
    shares = _shares(cu_seqlens, pg.size()).to(x.device)
    pieces = [torch.empty_like(x, memory_format=torch.contiguous_format)
              for _ in range(pg.size())]
    dist.all_gather(pieces, x.contiguous(), group=pg)
    whole = x.new_empty((shares.numel(), *x.shape[1:]))
    for share, piece in zip(shares, pieces):
        whole[share] = piece
    return whole


def _attend(q, k, v, causal, scale, softcap, window=(-1, -1)):
    return _functions.flash_attn_func(
        q, k, v, softmax_scale=scale, causal=causal, softcap=softcap,
        window_size=window, return_lse=True)


def _check_sizes(k, v):
    if k.shape[-1] != v.shape[-1]:
        raise NotImplementedError(
            f"k has head size {k.shape[-1]}, and v {v.shape[-1]}; K and V go to "
            "other processes in one tensor: expected one head size")


def _check_shares(q, k, v):
    for name, x in ("q", q), ("k", k), ("v", v):
        if x.dim() != 4:
            raise ValueError(f"{name} has {x.dim()} dimensions; expected (batch, "
                             "tokens of this process, heads, head size)")
        if x.shape[1] % 2:
            raise ValueError(f"{name} has {x.shape[1]} tokens on this process; "
                             "expected two parts of one size")
    if q.shape[1] != k.shape[1]:
        raise ValueError(f"q has {q.shape[1]} tokens on this process, and k "
                         f"{k.shape[1]}; expected as many")
    _check_sizes(k, v)


def ring_attention(
        q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False,
        softmax_scale: float | None = None, softcap: float = 0.0,
        window_size: tuple[int, int] = (-1, -1), group: Group | None = None,
        order: str = "zigzag", return_lse: bool = False
        ) -> Tensor | tuple[Tensor, Tensor]:
    """Attention of a sequence that the processes share: K and V go round.

    q, k, v (batch, tokens of this process, heads, head size) in the given
    `order`; the result is out, like q, and with ``return_lse`` (out, lse (batch,
    heads, tokens of this process)). Each of n steps computes over one process's K
    and V while the next ones are on their way; partial results are merged in
    float32, always in the same order, so runs agree bit by bit.

    ``causal`` in the order "zigzag": after the first, each step is half a square
    on every process. NotImplementedError: ``window_size`` (`allgather_attention`
    takes it), and "contiguous" with ``causal``."""
    _check_order(order)
    _check_shares(q, k, v)
    if tuple(window_size) != (-1, -1):
        raise NotImplementedError(
            f"window_size is {window_size}; ring_attention takes none (expected "
            "(-1, -1)): use allgather_attention")
    if causal and order != "zigzag":
        raise NotImplementedError(
            "order is \"contiguous\" with causal; ring_attention takes "
            "\"zigzag\", in which all processes have the same work")
    pg = _group(group)
    out, lse = torch.ops.kvbuf.ring_attention(
        q, k, v, bool(causal), softmax_scale, float(softcap), pg.group_name)
    return (out, lse) if return_lse else out


def _resolve(name):
    return dist.distributed_c10d._resolve_process_group(name)


def ring_steps(held: Tensor, group: Group | None = None
               ) -> Iterator[tuple[int, Tensor]]:
    """Each process's `held`, this one's first, for a ring of your own: (that
    process's number less ours, what it holds). While one is in use the next one
    is on its way. ``held`` has the same shape on all processes."""
    pg = _group(group)
    size, rank = pg.size(), pg.rank()
    for step in range(size):
        work, coming = [], None
        if step + 1 < size:
            coming = torch.empty_like(held)
            work = dist.batch_isend_irecv([
                dist.P2POp(dist.isend, held, group=pg,
                           group_peer=(rank + 1) % size),
                dist.P2POp(dist.irecv, coming, group=pg,
                           group_peer=(rank - 1) % size)])
        yield (rank - step) % size - rank, held
        for w in work:
            w.wait()
        held = coming


@torch.library.custom_op(
    "kvbuf::ring_attention", mutates_args=(),
    schema="(Tensor q, Tensor k, Tensor v, bool causal, float? scale, float "
           "softcap, str group) -> (Tensor, Tensor)")
def _ring(q, k, v, causal, scale, softcap, group):
    half = q.shape[1] // 2
    lo, hi = slice(None, half), slice(half, None)
    sums = _Sum()
    for order, (keys, values) in ring_steps(torch.stack([k, v]),
                                            _resolve(group)):
        if not causal or order == 0:
            sums.add(*_attend(q, keys, values, causal, scale, softcap))
        elif order < 0:
            # Its first part is before all of ours, its second after all.
            sums.add(*_attend(q, keys[:, lo], values[:, lo], False, scale,
                              softcap))
        else:
            # All of it lies between our two parts.
            sums.add(*_attend(q[:, hi], keys, values, False, scale, softcap),
                     rows=hi)
    return sums.out.to(q.dtype), sums.lse


@_ring.register_fake
def _(q, k, v, causal, scale, softcap, group):
    return torch.empty_like(q), q.new_empty(
        (q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32)


def ring_attention_varlen(
        q: Tensor, k: Tensor, v: Tensor, cu_seqlens: Tensor, max_seqlen: int, *,
        causal: bool = False, softmax_scale: float | None = None,
        softcap: float = 0.0, group: Group | None = None,
        return_lse: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """`ring_attention` of a ragged batch, sequence by sequence.

    q, k, v (tokens of this process, heads, head size) as `shard_varlen` divides
    them; ``cu_seqlens`` (sequences + 1) are the offsets of this process's tokens,
    the same on every process, each sequence an even number; they stay on the
    device. ``max_seqlen`` bounds the longest of them. The result is out, like q,
    and with ``return_lse`` (out, lse (heads, tokens of this process))."""
    for name, x in ("q", q), ("k", k), ("v", v):
        if x.dim() != 3:
            raise ValueError(f"{name} has {x.dim()} dimensions; expected (tokens "
                             "of this process, heads, head size)")
        if x.shape[0] != q.shape[0] or x.shape[0] % 2:
            raise ValueError(f"{name} has {x.shape[0]} tokens on this process; "
                             "expected an even number, and as many as q")
    _check_sizes(k, v)
    _check_offsets(cu_seqlens)
    pg = _group(group)
    out, lse = torch.ops.kvbuf.ring_attention_varlen(
        q, k, v, cu_seqlens, int(max_seqlen), bool(causal), softmax_scale,
        float(softcap), pg.group_name)
    return (out, lse) if return_lse else out


def _halves(cu_seqlens, tokens):
    """Offsets of sequences of half the length, and where the first and the second
    halves' tokens lie; nothing is read on the host."""
    half = cu_seqlens // 2
    at = torch.arange(tokens // 2, device=cu_seqlens.device,
                      dtype=cu_seqlens.dtype)
    sequence = torch.searchsorted(half[1:].contiguous(), at, right=True)
    first = cu_seqlens[sequence] + at - half[sequence]
    return half, first, first + half[sequence + 1] - half[sequence]


@torch.library.custom_op(
    "kvbuf::ring_attention_varlen", mutates_args=(),
    schema="(Tensor q, Tensor k, Tensor v, Tensor cu_seqlens, SymInt max_seqlen, "
           "bool causal, float? scale, float softcap, str group) -> "
           "(Tensor, Tensor)")
def _ring_varlen(q, k, v, cu_seqlens, max_seqlen, causal, scale, softcap, group):
    longest, half = max_seqlen, (max_seqlen + 1) // 2
    if cu_seqlens.device.type == "cpu":
        # Where the host has them. Halves of odd lengths would be others' tokens.
        lengths = (cu_seqlens[1:] - cu_seqlens[:-1]).tolist()
        for b, length in enumerate(lengths):
            if length % 2:
                raise ValueError(f"sequence {b} has {length} tokens on this process; "
                                 "expected an even number")
    if causal:
        half_cu, lo, hi = _halves(cu_seqlens, q.shape[0])

    def attend(q, k, v, cu_q, cu_k, max_q, max_k, causal=False):
        return _functions.flash_attn_varlen_func(
            q, k, v, cu_q, cu_k, max_q, max_k, softmax_scale=scale,
            causal=causal, softcap=softcap, return_lse=True)

    sums = _Sum()
    for order, (keys, values) in ring_steps(torch.stack([k, v]),
                                            _resolve(group)):
        if not causal or order == 0:
            sums.add(*attend(q, keys, values, cu_seqlens, cu_seqlens, longest,
                             longest, causal))
        elif order < 0:
            sums.add(*attend(q, keys[lo], values[lo], cu_seqlens, half_cu,
                             longest, half))
        else:
            sums.add(*attend(q[hi], keys, values, half_cu, cu_seqlens, half,
                             longest), rows=hi)
    return sums.out.to(q.dtype), sums.lse


@_ring_varlen.register_fake
def _(q, k, v, cu_seqlens, max_seqlen, causal, scale, softcap, group):
    return torch.empty_like(q), q.new_empty(
        (q.shape[1], q.shape[0]), dtype=torch.float32)


def allgather_attention(
        q: Tensor, k: Tensor, v: Tensor, *,
        causal: bool = False, softmax_scale: float | None = None,
        softcap: float = 0.0, window_size: tuple[int, int] = (-1, -1),
        group: Group | None = None, order: str = "zigzag",
        return_lse: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """As `ring_attention`, but every process gets all of K and V at once: fewer
    and larger messages, for sequences whose K and V fit. Windows are taken, and
    both orders."""
    _check_order(order)
    _check_shares(q, k, v)
    pg = _group(group)
    out, lse = torch.ops.kvbuf.allgather_attention(
        q, k, v, bool(causal), softmax_scale, float(softcap),
        [-1 if n is None else int(n) for n in window_size], order, pg.group_name)
    return (out, lse) if return_lse else out


@torch.library.custom_op(
    "kvbuf::allgather_attention", mutates_args=(),
    schema="(Tensor q, Tensor k, Tensor v, bool causal, float? scale, float "
           "softcap, SymInt[] window, str order, str group) -> (Tensor, Tensor)")
def _gathered(q, k, v, causal, scale, softcap, window, order, group):
    pg = _resolve(group)
    size, rank = pg.size(), pg.rank()
    held = torch.stack([k, v])
    pieces = [torch.empty_like(held) for _ in range(size)]
    dist.all_gather(pieces, held, group=pg)
    keys, values = _in_order(pieces, 2, order)
    window = tuple(window)
    if not causal and window == (-1, -1):
        return _attend(q, keys, values, False, scale, softcap)
    part = q.shape[1] // 2
    total = keys.shape[1]
    outs, lses = [], []
    for i, rows in zip(_parts(rank, size, order), q.chunk(2, 1)):
        # Masks are aligned bottom-right, at the last key that a part is given:
        # so many keys after the part's last row.
        last = (i + 1) * part
        if not causal:
            last = total if window[1] < 0 else min(total, last + window[1])
        beyond = last - (i + 1) * part
        left = window[0] + beyond if window[0] >= 0 else -1
        right = window[1] - beyond if window[1] >= 0 else -1
        out, lse = _attend(rows, keys[:, :last], values[:, :last], causal, scale,
                           softcap, (left, right))
        outs.append(out)
        lses.append(lse)
    return torch.cat(outs, 1), torch.cat(lses, 2)


@_gathered.register_fake
def _(q, k, v, causal, scale, softcap, window, order, group):
    return torch.empty_like(q), q.new_empty(
        (q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32)


def sharded_decode(
        q: Tensor, k_cache: Tensor, v_cache: Tensor, *,
        cache_seqlens: Tensor, block_table: Tensor | None = None,
        cache_batch_idx: Tensor | None = None,
        softmax_scale: float | None = None, softcap: float = 0.0,
        group: Group | None = None, return_lse: bool = False
        ) -> Tensor | tuple[Tensor, Tensor]:
    """Decode over a cache whose tokens the processes share.

    q (batch, rows, heads, head size), the same on every process; k_cache, v_cache
    and what finds their tokens are this process's, as
    `kvbuf.torch.flash_attn_with_kvcache` takes them, and ``cache_seqlens``
    (batch) counts its tokens of each sequence, none too. Which tokens are whose
    makes no difference: every row sees all of them. Each process computes over
    its own; results are gathered and merged in float32, in the order of the
    processes, so all of them return the same bits: out, like q, and with
    ``return_lse`` (out, lse (batch, heads, rows)).

    Where there are as many KV heads as processes, giving each process its heads
    needs no exchange at all: call flash_attn_with_kvcache on them."""
    pg = _group(group)
    out, lse = _functions.flash_attn_with_kvcache(
        q, k_cache, v_cache, cache_seqlens=cache_seqlens,
        block_table=block_table, cache_batch_idx=cache_batch_idx,
        softmax_scale=softmax_scale, softcap=softcap, return_softmax_lse=True)
    out, lse = torch.ops.kvbuf.merge_processes(out, lse, pg.group_name)
    return (out, lse) if return_lse else out


@torch.library.custom_op(
    "kvbuf::merge_processes", mutates_args=(),
    schema="(Tensor out, Tensor lse, str group) -> (Tensor, Tensor)")
def _merge_processes(out, lse, group):
    pg = _resolve(group)
    # One message: a row's log-sum-exp beside its output.
    mine = torch.cat([out.float(), lse.transpose(-1, -2)[..., None]], -1)
    all_ = [torch.empty_like(mine) for _ in range(pg.size())]
    dist.all_gather(all_, mine.contiguous(), group=pg)
    all_ = torch.stack(all_)
    merged, total = merge(all_[..., :-1], all_[..., -1].transpose(-1, -2))
    return merged.to(out.dtype), total.contiguous()


@_merge_processes.register_fake
def _(out, lse, group):
    return torch.empty_like(out), torch.empty_like(lse)
