# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kvbuf.merge_states as an operator of torch's."""

from __future__ import annotations

import torch

from . import _merge
from ._operators import _plain


@torch.library.custom_op(
    "kvbuf::merge_states", mutates_args=(),
    schema="(Tensor outs, Tensor lses, ScalarType? out_type) -> (Tensor, Tensor)")
def _operator(outs, lses, out_type):
    outs, lses = _plain(outs), _plain(lses)
    kind = outs.dtype if out_type is None else out_type
    return _merge.merge_states(outs, lses, out=outs.new_empty(
        outs.shape[1:], dtype=kind))


@_operator.register_fake
def _fake(outs, lses, out_type):
    kind = outs.dtype if out_type is None else out_type
    return (outs.new_empty(outs.shape[1:], dtype=kind),
            outs.new_empty(lses.shape[1:], dtype=torch.float32))


def call(outs, lses, out):
    """The operator, whose result a given tensor gets by a copy."""
    result, lse = _operator(outs, lses, None if out is None else out.dtype)
    return (result if out is None else out.copy_(result)), lse
