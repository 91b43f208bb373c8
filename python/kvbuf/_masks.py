# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The masks of transformers' models as what kernels take: flags, windows and a
few numbers a sequence, where a mask is that; booleans where it is not.

transformers makes a mask once a forward pass, hands it to every layer as a tensor,
and between the two copies it, compiles with it and passes it through untouched if it
has four dimensions. So all that a mask says is in a tensor: int32, of shape

    [sequences, 1 + causal, 1 + window, count]

where what is static is in the shape and numbers are read on the device. ``window``
is 0 for none, else one more than the keys on the left (without ``causal`` on the
right, too). All elements along the two dimensions in the middle are the same, in no
memory of their own. ``count``:

    0   nothing else: each row sees all keys that causal and window let it
    1   the keys that a sequence has; rows end where they do
    3   the first key, the one past the last, and the key at which row 0 stands

and with 2 added to 1 + causal: offsets of sequences in one row of tokens.
"""

from __future__ import annotations

import typing

import torch
from torch import Tensor


class Form(typing.NamedTuple):
    """What a tensor of this module's says; numbers stay tensors."""

    causal: bool
    left: int                        # -1: no window
    kind: str                        # "flags", "lengths", "segments", "offsets"
    numbers: Tensor | None = None    # [sequences, count]

    @property
    def right(self) -> int:
        """A window without `causal` has two sides."""
        return -1 if self.causal else self.left

    def tensor(self) -> Tensor:
        """As a mask that transformers hands around."""
        numbers = self.numbers.to(torch.int32)
        dims = (1 + self.causal + 2 * (self.kind == "offsets"), self.left + 2)
        return numbers[:, None, None].expand(
            numbers.shape[0], *dims, numbers.shape[1])


def form_of(mask: Tensor) -> Form | None:
    """The Form in a mask, None of one that has its elements."""
    if mask.dtype != torch.int32 or mask.dim() != 4:
        return None
    flags, window, count = mask.shape[1:]
    kind = "offsets" if flags > 2 else {0: "flags", 1: "lengths"}.get(
        count, "segments")
    return Form(flags in (2, 4), window - 2, kind, mask[:, 0, 0])


def window_of(left, right, rows, keys):
    """Which keys [.., rows, keys] a window shows of places that broadcast."""
    seen = None
    if left >= 0:
        seen = keys >= rows - left
    if right >= 0:
        within = keys <= rows + right
        seen = within if seen is None else seen & within
    return seen


def as_booleans(form: Form, rows: int, keys: int, device) -> Tensor | None:
    """The mask element by element, [sequences, 1, rows, keys] or with 1 in place of
    any; None where every row sees every key."""
    i = torch.arange(rows, device=device)[None, :, None]
    j = torch.arange(keys, device=device)[None, None]
    seen, place = None, i + (keys - rows)
    if form.kind == "lengths":
        end = form.numbers[:, :1, None]
        seen, place = j < end, end - rows + i
    elif form.kind == "segments":
        first, end, start = (form.numbers[:, n:n + 1, None] for n in range(3))
        seen, place = (j >= first) & (j < end), start + i
    elif form.kind == "offsets":
        ends = form.numbers[:, 1:].contiguous()
        of_row = torch.searchsorted(ends[0], i.flatten(), right=True)
        of_key = torch.searchsorted(ends[-1], j.flatten(), right=True)
        seen = (of_row[:, None] == of_key[None])[None]
        last = ends[:, of_row.clamp(max=ends.shape[1] - 1)]
        place = i + (last[-1] - last[0])[None, :, None]
    right = 0 if form.causal else form.right
    window = window_of(form.left, right, place, j)
    if window is not None:
        seen = window if seen is None else seen & window
    return None if seen is None else seen[:, None]


#===------------------------------------------------------------------------===#
# transformers' mask functions
#===------------------------------------------------------------------------===#


class Pattern(typing.NamedTuple):
    """What a mask function of transformers' computes."""

    causal: bool = False
    left: int = -1
    right: int = -1
    packed: Tensor | None = None     # the number of each token's sequence

    def both(self, other: Pattern) -> Pattern | None:
        if self.packed is not None and other.packed is not None:
            return None

        def least(a, b):
            return min(a, b) if a >= 0 and b >= 0 else max(a, b)

        return Pattern(self.causal or other.causal, least(self.left, other.left),
                       least(self.right, other.right),
                       other.packed if self.packed is None else self.packed)


def pattern_of(function) -> Pattern | None:
    """The pattern of a function, found by its name and what it captures; None for
    one that is not transformers' own, or that it combines in another way."""
    if getattr(function, "__module__", "") != "transformers.masking_utils":
        return None
    name = function.__qualname__
    captured = dict(zip(function.__code__.co_freevars,
                        (cell.cell_contents for cell in function.__closure__
                         or ())))
    if name == "causal_mask_function":
        return Pattern(causal=True)
    if name == "bidirectional_mask_function":
        return Pattern()
    if name == "sliding_window_overlay.<locals>.inner_mask":
        return Pattern(left=captured["sliding_window"] - 1)
    if name == "sliding_window_bidirectional_overlay.<locals>.inner_mask":
        return Pattern(left=captured["sliding_window"],
                       right=captured["sliding_window"])
    if name == "packed_sequence_mask_function.<locals>.inner_mask":
        return Pattern(packed=captured["packed_sequence_mask"])
    if name == "remap_positions_for_packed_sequence.<locals>.inner_mask":
        # Places within a sequence, of which tokens that follow each other are one
        # apart: their differences are those of the tokens' own.
        return pattern_of(captured["mask_function"])
    if name == "and_masks.<locals>.and_mask":
        result = Pattern()
        for part in captured["mask_functions"]:
            part = pattern_of(part)
            result = part and result.both(part)
            if result is None:
                return None
        return result
    return None


#: Rows up to which a mask's elements are few, and are what kernels read best.
FEW_ROWS = 32


def make(batch: int, rows: int, keys: int, q_offset, kv_offset: int,
         pattern: Pattern, padding: Tensor | None, device):
    """A mask: None where the layer's own flags say it all, a Form, or False where
    elements have to say it. Row i stands at q_offset + i, which may be a number on
    the device, key j at kv_offset + j; ``padding`` [sequences, tokens] says which
    tokens there are. The host waits for the device once, if there is padding."""
    causal, left, right, packed = pattern
    if right >= 0 and (causal or left != right):
        if not causal:
            return False
        right = -1
    if not causal and left >= 0 and right < 0:
        return False
    start = q_offset - kv_offset
    end = start + rows
    known = not isinstance(end, Tensor)

    def form(kind, numbers):
        return Form(causal, left, kind, numbers)

    def every(number):
        number = torch.as_tensor(number, device=device).reshape(-1, 1)
        return number.to(torch.int32).expand(batch, 1)

    def whole():
        """No padding that a row which counts could see."""
        if not causal and left < 0:
            return None
        if known and end > keys:
            return False
        if not known or end != keys:
            return form("lengths", every(end).clamp(max=keys))
        if left < 0 or left + 1 >= keys:
            return None
        return form("flags", torch.zeros((batch, 0), dtype=torch.int32,
                                         device=device))

    if packed is not None:
        if padding is not None or packed.shape[0] != 1 or rows != keys:
            return False
        fresh = torch.ones_like(packed, dtype=torch.bool)
        fresh[:, 1:] = packed[:, 1:] != packed[:, :-1]
        starts = fresh[0].nonzero()[:, 0]
        offsets = torch.cat([starts, starts.new_full((1,), rows)])
        return form("offsets", offsets[None])
    if padding is None:
        return whole()
    missing = kv_offset + keys - padding.shape[1]
    if missing > 0:
        padding = torch.nn.functional.pad(padding, (0, missing))
    there = padding[:, kv_offset:kv_offset + keys].to(torch.bool)
    count = there.sum(1, dtype=torch.int32)
    order = torch.arange(keys, device=device, dtype=torch.int32)
    past = torch.where(there, order + 1, 0).amax(1).to(torch.int32)
    first = torch.where(there, order, keys).amin(1).to(torch.int32)
    first = torch.minimum(first, past)
    # Keys that no row can see yet are no padding.
    full, runs, prefixes = torch.stack([
        (count == (end if causal else keys)).all() & (first == 0).all(),
        (past - first == count).all(), (first == 0).all()]).tolist()
    if full:
        return whole()
    if not runs:
        return False
    if prefixes and not (causal and rows > 1) and left < 0:
        return form("lengths", past[:, None])
    if prefixes and causal and rows > 1:
        # What is missing follows every row that counts.
        return whole()
    if rows <= FEW_ROWS or (not causal and (not known or start != 0
                                            or rows != keys)):
        return False
    return form("segments", torch.stack(
        [first, past, every(start)[:, 0]], 1))


def segments(form: Form, rows: int, keys: int):
    """Offsets of queries and of keys, in tokens of all sequences one after the
    other, of three sequences for each: what is before the first key, what counts,
    and what comes after."""
    first, end, start = form.numbers.unbind(1)
    batch = first.shape[0]
    at = torch.arange(batch, device=first.device, dtype=torch.int32)

    def offsets(size, *places):
        parts = torch.stack([at * size + x for x in
                             (torch.zeros_like(first), *places)], 1).flatten()
        total = torch.full((1,), batch * size, dtype=torch.int32,
                           device=first.device)
        return torch.cat([parts.to(torch.int32), total])

    return (offsets(rows, (first - start).clamp(0, rows),
                    (end - start).clamp(0, rows)),
            offsets(keys, first, end))
