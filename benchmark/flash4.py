# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of scores.py as FlashAttention 4's: `score_mod` and `mask_mod`.

Needs the package flash-attn-4, a GPU and what it compiles with (nvidia-cutlass-dsl).
`runner` gives what launches: positions where rows stand are those of as many keys as
rows. Hidden tiles are named by lists that the package's own pass makes beforehand.
"""

import cutlass
from cutlass import cute
from flash_attn.cute import interface, utils
from flash_attn.cute.compute_block_sparsity import compute_block_sparsity

#: Rows and keys of a tile at head size 128 on sm_90a.
TILE = 128

# The package calls functions of scores by the names of their arguments.


@cute.jit
def element(tensor, at, kind: cutlass.Constexpr):
    """An element of an auxiliary tensor at indices that are vectors of one number."""
    place = cute.make_rmem_tensor(1, kind)
    place[0] = tensor[at]
    return place.load()


@cute.jit
def alibi(s, b_idx, h_idx, q_idx, kv_idx, seqlen_info, aux_tensors):
    slope = element(aux_tensors[0], h_idx[0], cutlass.Float32)
    return s + slope * (kv_idx - q_idx).to(cutlass.Float32)


@cute.jit
def relative(s, b_idx, h_idx, q_idx, kv_idx, seqlen_info, aux_tensors):
    bucket = cutlass.min(cutlass.max(kv_idx[0] - q_idx[0], -15), 15) + 15
    return s + element(aux_tensors[0], (h_idx[0], bucket), cutlass.Float32)


@cute.jit
def bias(s, b_idx, h_idx, q_idx, kv_idx, seqlen_info, aux_tensors):
    b = element(aux_tensors[0], (h_idx[0], q_idx[0], kv_idx[0]), cutlass.BFloat16)
    return s + b.to(cutlass.Float32)


@cute.jit
def documents(batch, head, row, key, lengths, aux):
    own = element(aux[0], (batch[0], row[0]), cutlass.Int32)
    other = element(aux[0], (batch[0], key[0]), cutlass.Int32)
    return (own == other) & (key <= row)


@cute.jit
def prefix(batch, head, row, key, lengths, aux):
    end = element(aux[0], batch[0], cutlass.Int32)
    return (key < end) | (key <= row)


def window(left):
    @cute.jit
    def near(batch, head, row, key, lengths, aux):
        return (key <= row) & (row - key <= utils.scalar_to_ssa(left, cutlass.Int32))
    return near


def runner(torch, name, tensor, q, k, v, cap, left):
    """Launches FlashAttention 4 with the function of a name; gives O. `cap`, `left`:
    scores.py's. The causal mask beside a function of scores is the package's own."""
    scores = {"alibi": alibi, "relative": relative, "bias": bias,
              "softcap": utils.create_softcap_scoremod(cap)}
    masks = {"documents": documents, "prefix": prefix, "window": window(left)}
    aux = None if tensor is None else [tensor]
    more = {"score_mod": scores.get(name), "aux_tensors": aux,
            "causal": name in ("alibi", "softcap")}
    if mask := masks.get(name):
        made = compute_block_sparsity(
            TILE, TILE, len(q), q.shape[2], q.shape[1], k.shape[1], mask, aux, q.device)
        more |= {"mask_mod": mask,
                 "block_sparse_tensors": made}

    def run():
        with torch.no_grad():
            out = interface.flash_attn_func(q, k, v, **more)
        return out[0] if isinstance(out, tuple) else out
    return run
