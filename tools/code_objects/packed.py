# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector instructions on pairs of f32, and on f16."""

import re

import numpy as np

from . import arithmetic as a
from .arithmetic import F32, U32
from .image import Fault
from .vector import floats, into, source
from .wave import LANES, constant, register

PAIRS = {"v_pk_mul_f32": lambda x, y: x * y, "v_pk_add_f32": lambda x, y: x + y,
         "v_pk_fma_f32": a.fma}


def half_of(token, high):
    """What reads the lower or the upper f32 of a pair; a constant is both."""
    found = register(token)
    if not found:
        value = np.full(LANES, constant(token) & 0xffffffff, U32).view(F32)
        return lambda w: value
    kind, first, _ = found
    if kind == "v":
        return lambda w: w.v[first + high].view(F32)
    return lambda w: np.full(LANES, w.s[first + high], U32).view(F32)


def pairs(name, operands):
    act = PAIRS.get(name)
    if not act:
        return None
    sources = [o for o in operands[1:] if ":[" not in o]
    chosen = {"op_sel": [0] * len(sources), "op_sel_hi": [1] * len(sources)}
    for more in operands[1 + len(sources):]:
        key, _, flags = more.partition(":")
        if key not in chosen:
            raise Fault(f"'{name}' with {more} is not executed")
        chosen[key] = [int(x) for x in flags.strip("[]").split(",")]
    to = into(operands[0])
    gets = [[half_of(o, bit) for o, bit in zip(sources, chosen[key])]
            for key in ("op_sel", "op_sel_hi")]

    def run(w):
        results = []
        for half in gets:
            numbers = [get(w) for get in half]
            if w.flushes:
                numbers = [a.flush(x) for x in numbers]
            result = act(*numbers).astype(F32)
            results.append((a.flush(result) if w.flushes else result).view(U32))
        for i, result in enumerate(results):
            w.set_vector(to + i, result)
    return run


def to_f16(x):
    return x.astype(np.float16).view(np.uint16).astype(U32)


def halves(name, operands):
    if any(":" in o and "[" in o and not register(o) for o in operands):
        return None
    to = into(operands[0])
    if name == "v_cvt_f16_f32":
        x = floats(operands[1])
        return lambda w: w.set_vector(to, to_f16(x(w)))
    if name == "v_cvt_f32_f16":
        x = source(operands[1])
        return lambda w: w.set_vector(
            to, (x(w) & U32(0xffff)).astype(np.uint16).view(np.float16).astype(F32).view(U32))
    if name == "v_pack_b32_f16":
        x, y = source(operands[1]), source(operands[2])
        return lambda w: w.set_vector(to, x(w) & U32(0xffff) | y(w) << U32(16))
    if name in ("v_fma_mixlo_f16", "v_fma_mixhi_f16"):
        x, y, z = (floats(o) for o in operands[1:])

        def run(w):
            half, old = to_f16(a.fma(x(w), y(w), z(w))), w.v[to]
            w.set_vector(to, old & U32(0xffff0000) | half if name == "v_fma_mixlo_f16"
                         else old & U32(0xffff) | half << U32(16))
        return run
    return None


def decode(instruction):
    name = re.sub(r"_e(32|64)$", "", instruction.name)
    if not name.startswith("v_"):
        return None
    return pairs(name, instruction.operands) or halves(name, instruction.operands)
