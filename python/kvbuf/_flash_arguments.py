# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments that flash-attn 3 and 4, and vLLM's forks, have beside flash-attn 2's:
each is another name of one of kvbuf's, a hint, or refused by its name."""

from __future__ import annotations

from ._attention import require_index

#: What changes how a kernel is launched, not its result: taken, and not used.
HINTS = {
    "num_splits": "the compiler's schedule says where keys are split",
    "pack_gqa": "heads that share a key head share tiles where rows are few",
    "sm_margin": "launches take the whole device",
    "scheduler_metadata": "launches plan nothing ahead",
    "fa_version": "there is one",
    "min_seqlen_k": "kernels take any length",
}

#: Other names of arguments; those of log-sum-exps follow from the function.
ALIASES = {
    "page_table": "block_table",
    "s_aux": "sink",
    "learnable_sink": "sink",
    "return_softmax_lse": "return_lse",
    "return_lse": "return_softmax_lse",
    "fa4_window_size": "window_size",
}

#: What no kernel computes: what means nothing, and why it is refused.
REFUSED = {
    "qv": (None, "flash_attn_with_kvcache alone adds products with V to scores"),
    "q_v": (None, "flash_attn_with_kvcache alone adds products with V to scores"),
    "attention_chunk": (0, "masks have no chunks; kvbuf.torch.flex_attention takes "
                        "any"),
    "seqused_q": (None, "queries are those of cu_seqlens_q"),
    "cu_seqlens_k_new": (None, "new keys and values are a dense batch"),
    "rotary_seqlens": (None, "positions are those in the cache"),
    "leftpad_k": (None, "keys begin where their offsets or pages do"),
    "seqlen_k_per_split": (None, "the compiler's schedule says where keys are "
                           "split"),
    "gather_kv_indices": (None, "kernels read all keys that a mask shows"),
    "gather_kv_valid_length": (None, "kernels read all keys that a mask shows"),
    "score_mod": (None, "it is code of CUTLASS; kvbuf.torch.flex_attention takes "
                  "functions of torch's"),
    "score_mod_bwd": (None, "there is no backward pass"),
    "mask_mod": (None, "it is code of CUTLASS; kvbuf.torch.flex_attention takes "
                 "functions of torch's"),
    "aux_tensors": (None, "they belong to score_mod and mask_mod"),
    "aux_scalars": (None, "they belong to score_mod and mask_mod"),
    "aux_tensor_leading_dims": (None, "they belong to score_mod and mask_mod"),
    "block_sparse_tensors": (None, "these functions take masks and windows alone"),
    "dynamic_causal": (None, "flash_attn_varlen_func alone takes a causal flag a "
                       "sequence"),
    "cp_world_size": (1, "tokens of several processes are kvbuf.distributed's"),
    "cp_rank": (0, "tokens of several processes are kvbuf.distributed's"),
    "cp_tot_seqused_k": (None, "tokens of several processes are "
                         "kvbuf.distributed's"),
}


def _is(value, neutral):
    return value is neutral or (isinstance(value, (bool, int, float))
                                and neutral is not None and value == neutral)


def _window_of_fa4(window):
    """flash-attn 4's: None is open, and a side below 0 moves the window, where in
    flash-attn 2 and 3 it is open."""
    try:
        sides = tuple(window)
    except TypeError:
        sides = ()
    if len(sides) != 2:
        raise ValueError(f"fa4_window_size is {window!r}; expected (left, right)")
    for side in sides:
        if side is not None and require_index("a side of fa4_window_size", side,
                                              -2**31) < 0:
            raise NotImplementedError(
                f"fa4_window_size is {window!r}; a side below 0 moves the window away "
                "from the query, which kvbuf.torch.flex_attention takes as a mask")
    return tuple(-1 if side is None else side for side in sides)


def resolve(function, more, **own):
    """``own``, arguments of a function that may have other names, with what
    ``more`` gives them. TypeError for what no library has, NotImplementedError for
    what no kernel computes."""
    for name, value in more.items():
        if name in HINTS:
            continue
        if name in REFUSED:
            neutral, why = REFUSED[name]
            if not _is(value, neutral):
                said = (f"of shape {tuple(value.shape)}" if hasattr(value, "shape")
                        else repr(value))
                raise NotImplementedError(
                    f"{name} of {function} is {said}; expected {neutral}: {why}")
            continue
        real = ALIASES.get(name)
        if real not in own:
            raise TypeError(f"{function} has no argument {name!r}")
        if value is None or value is False:
            continue
        before = own[real]
        if not (before is None or before is False or _open(real, before)):
            raise ValueError(f"{real} and {name} are one argument; expected one of "
                             "them")
        if real == "sink" and str(getattr(value, "dtype", "")) in (
                "torch.bfloat16", "torch.float16"):
            value = value.float()
        if name == "fa4_window_size":
            value = _window_of_fa4(value)
        own[real] = value
    return own


def _open(name, value):
    return name == "window_size" and tuple(value) == (-1, -1)


def get_scheduler_metadata(*arguments, **named) -> None:
    """flash-attn 3's: what its kernels plan ahead. kvbuf's plan nothing, so there
    is nothing to hand on: None, which ``scheduler_metadata`` takes."""
    return None
