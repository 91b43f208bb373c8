# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kvbuf.append_slots as an operator of torch's."""

from __future__ import annotations

import torch

from . import _slots
from ._operators import _plain


@torch.library.custom_op(
    "kvbuf::append_slots",
    mutates_args=("k_cache", "v_cache", "k_descale", "v_descale"),
    schema="(Tensor k, Tensor v, Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor "
    "slot_mapping, Tensor(c!)? k_descale, Tensor(d!)? v_descale, str? kv_dtype, Tensor? "
    "rotary_cos, Tensor? rotary_sin, Tensor? positions, bool rotary_interleaved) -> ()")
def _operator(k, v, k_cache, v_cache, slot_mapping, k_descale, v_descale, kv_dtype,
              rotary_cos, rotary_sin, positions, rotary_interleaved):
    tensors = map(_plain, (k, v, k_cache, v_cache, slot_mapping))
    _slots.append_slots(*tensors, k_descale=_plain(k_descale),
                        v_descale=_plain(v_descale), kv_dtype=kv_dtype,
                        rotary_cos=_plain(rotary_cos), rotary_sin=_plain(rotary_sin),
                        positions=_plain(positions),
                        rotary_interleaved=rotary_interleaved)


@_operator.register_fake
def _fake(*_, **__):
    return None


def call(*arguments):
    """The operator."""
    _operator(*arguments)
