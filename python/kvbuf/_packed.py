# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of latent attention that are packed into bytes: docs/latent.md."""

from __future__ import annotations

import dataclasses

import torch


@dataclasses.dataclass(frozen=True)
class PackedRow:
    """How a row is packed: ``text`` is a `#kvbuffer.row`'s, ``elements`` those that
    it has, ``bytes_in_cache`` what engines count for it."""

    text: str
    elements: int
    bytes_in_cache: int


def _part(count, element, at, scale="", group=0, scale_at=0):
    of = (f", scale = {scale}, granularity = {group}, scale_at = {scale_at}"
          if scale else "")
    return f"<count = {count}, element = {element}, at = {at}{of}>"


def _row(size, *parts, tail=""):
    return f"bytes = {size}, parts = [{', '.join(parts)}]{tail}"


#: By bytes of the cache.
_ROWS = {
    656: PackedRow(_row(656, _part(512, "f8E4M3FN", 0, "f32", 128, 512),
                        _part(64, "bf16", 528)), 576, 656),
    528: PackedRow(_row(528, _part(512, "f8E4M3FN", 0, "f8E8M0FNU", 32, 512)),
                   512, 528)}

#: Rows of 584 bytes: those that lie together, and those behind the page's rows.
_WITH_TAIL = 584
_OWN, _TAIL = 576, 8


def packed_rows(q, k_cache):
    """(bytes of rows as the kernel takes them, PackedRow) of a cache [pages, page
    size, heads, bytes of a row]."""
    size = k_cache.shape[-1]
    if k_cache.element_size() != 1:
        raise ValueError(f"k_cache has type {k_cache.dtype}; expected bytes, or "
                         "8-bit floats, with is_fp8_kvcache")
    if k_cache.device != q.device:
        raise ValueError(f"k_cache is on {k_cache.device}, and q on {q.device}; "
                         "expected one device")
    data = k_cache.view(torch.uint8)
    if size in _ROWS:
        return data, _ROWS[size]
    if size != _WITH_TAIL:
        raise NotImplementedError(
            f"k_cache has rows of {size} bytes; expected "
            f"{', '.join(map(str, sorted((*_ROWS, _WITH_TAIL))))}")
    pages, rows, heads, _ = data.shape
    stride = data.stride(0) if pages > 1 else -(-rows * _WITH_TAIL // _OWN) * _OWN
    if heads != 1 or data.stride(1) != _WITH_TAIL or stride % _OWN \
            or stride < rows * _WITH_TAIL:
        raise NotImplementedError(
            f"k_cache has rows of {_WITH_TAIL} bytes, {heads} heads and strides "
            f"{tuple(data.stride())}; expected one head, pages of a multiple of "
            f"{_OWN} bytes, and rows side by side")
    text = _row(_OWN, _part(448, "f8E4M3FN", 0, "f8E8M0FNU", 64, _OWN),
                _part(64, "bf16", 448),
                tail=f", tail = {_TAIL}, rows = {rows}, stride = {stride}")
    # The last dimension reaches from any row to the end of the last one's tail.
    shape = (pages, rows, 1, _OWN + rows * _TAIL)
    return (data.as_strided(shape, (stride, _OWN, _OWN, 1)),
            PackedRow(text, 512, _WITH_TAIL))


def tokens_of(rows):
    """(rows as pages of one, how many of these there are from page to page)."""
    pages, size = rows.shape[:2]
    own, step = rows.stride(1), size
    if pages > 1:
        step, rest = divmod(rows.stride(0), own)
        if rest or step < size:
            raise NotImplementedError(
                f"indices are given, and k_cache has {rows.stride(0)} elements "
                f"from page to page; expected a multiple of {own}, from row to "
                "row")
    count = (pages - 1) * step + size if pages else 0
    return rows.as_strided((count, 1, *rows.shape[2:]),
                           (own, own, *rows.stride()[2:])), step
