# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector instructions on registers. Each is made once into a function of the wave."""

import re

import numpy as np

from . import arithmetic as a
from .arithmetic import F32, I32, I64, U32, U64
from .image import Fault
from .scalar import COMPARES
from .wave import LANES, constant, register


def wide(number):
    return np.full(LANES, number & 0xffffffff, U32)


def source(token):
    """What reads an operand: 32 bits of each lane."""
    found = register(token)
    if not found:
        value = wide(constant(token))
        return lambda w: value
    if token[0] in "-|":
        raise Fault(f"a sign that is changed: {token}")
    kind, first, _ = found
    if kind == "v":
        return lambda w: w.v[first]
    return lambda w: wide(w.s[first])


def source64(token, is_signed=False):
    found = register(token)
    if not found:
        value = constant(token)
        if re.fullmatch(r"-?[\d.]*\.[\d.]*", token):
            raise Fault(f"a number of 64 bits: {token}")
        if is_signed and value >> 31 == 1:
            value -= 1 << 32
        filled = np.full(LANES, value & 0xffffffffffffffff, U64)
        return lambda w: filled
    kind, first, _ = found
    if kind == "v":
        return lambda w: w.v[first].astype(U64) | w.v[first + 1].astype(U64) << U64(32)
    return lambda w: np.full(LANES, w.scalar64(first), U64)


def floats(token):
    """An operand as f32, with its sign changed or dropped; small numbers are 0."""
    negates, absolute = token.startswith("-") and register(token), "|" in token
    get = source(token.strip("-|") if register(token) else token)

    def read(w):
        x = get(w).view(F32)
        if absolute:
            x = np.abs(x)
        if negates:
            x = -x
        return a.flush(x) if w.flushes else x
    return read


def into(token):
    return register(token)[1]


def mask_of(token):
    """What reads a mask of lanes."""
    _, first, _ = register(token)

    def read(w):
        value = w.scalar64(first)
        return np.unpackbits(np.array([value], "<u8").view(np.uint8),
                             bitorder="little").astype(bool)
    return read


def set_mask(w, first, lanes):
    bits = np.packbits(lanes & w.mask, bitorder="little")
    w.set_scalar64(first, int(bits.view("<u8")[0]))


def u24(x):
    return x & U32(0xffffff)


def signed(act):
    return lambda *x: act(*(y.view(I32) for y in x)).astype(I32).view(U32)


def middle(x, y, z):
    return np.maximum(np.minimum(x, y), np.minimum(np.maximum(x, y), z))


INTEGERS = {
    "v_mov_b32": lambda x: x, "v_not_b32": lambda x: ~x,
    "v_add_u32": lambda x, y: x + y, "v_sub_u32": lambda x, y: x - y,
    "v_subrev_u32": lambda x, y: y - x,
    "v_and_b32": lambda x, y: x & y, "v_or_b32": lambda x, y: x | y,
    "v_xor_b32": lambda x, y: x ^ y,
    "v_lshlrev_b32": lambda n, x: x << (n & U32(31)),
    "v_lshrrev_b32": lambda n, x: x >> (n & U32(31)),
    "v_ashrrev_i32": lambda n, x: (x.view(I32) >> (n & U32(31)).astype(I32)).view(U32),
    "v_max_u32": np.maximum, "v_min_u32": np.minimum,
    "v_max_i32": signed(np.maximum), "v_min_i32": signed(np.minimum),
    "v_med3_i32": signed(middle), "v_med3_u32": middle,
    "v_mul_lo_u32": lambda x, y: x * y,
    "v_mul_hi_u32": lambda x, y: (x.astype(U64) * y.astype(U64) >> U64(32)).astype(U32),
    "v_mul_u32_u24": lambda x, y: u24(x) * u24(y),
    "v_mad_u32_u24": lambda x, y, z: u24(x) * u24(y) + z,
    "v_add3_u32": lambda x, y, z: x + y + z, "v_xad_u32": lambda x, y, z: (x ^ y) + z,
    "v_lshl_add_u32": lambda x, n, y: (x << (n & U32(31))) + y,
    "v_add_lshl_u32": lambda x, y, n: x + y << (n & U32(31)),
    "v_lshl_or_b32": lambda x, n, y: x << (n & U32(31)) | y,
    "v_and_or_b32": lambda x, y, z: x & y | z, "v_or3_b32": lambda x, y, z: x | y | z,
    "v_bfi_b32": lambda x, y, z: x & y | ~x & z,
    "v_perm_b32": a.permute,
}


def bit_field(x, offset, width):
    width = width & U32(31)
    return x >> (offset & U32(31)) & (U32(1) << width) - U32(1)


def any_logic(table):
    def act(x, y, z):
        result = np.zeros_like(x)
        for row in range(8):
            if table >> row & 1:
                result |= ((x if row & 4 else ~x) & (y if row & 2 else ~y)
                           & (z if row & 1 else ~z))
        return result
    return act


def count_below(high):
    def act(mask, base):
        lane = np.arange(LANES)
        bits = np.clip(lane - 32 if high else lane, 0, 32)
        below = (U64(1) << bits.astype(U64)) - U64(1)
        x = mask.astype(U64) & below
        return base + np.array([bin(int(y)).count("1") for y in x], U32)
    return act


def integers(name, operands):
    act = INTEGERS.get(name)
    if name == "v_bfe_u32":
        act = bit_field
    elif name.startswith("v_mbcnt"):
        act = count_below("hi" in name)
    elif name == "v_bitop3_b32":
        act = any_logic(int(operands.pop().split(":")[1], 0))
    elif name == "v_bfrev_b32":
        act = lambda x: np.array([int(f"{int(y):032b}"[::-1], 2) for y in x], U32)  # noqa: E731
    if not act:
        return None
    to, sources = into(operands[0]), [source(o) for o in operands[1:]]
    return lambda w: w.set_vector(to, act(*(get(w) for get in sources)))


def inverse(x):
    with np.errstate(divide="ignore"):
        return F32(1) / x


def log2(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log2(x.astype(np.float64)).astype(F32)


FLOATS = {
    "v_add_f32": lambda x, y: x + y, "v_sub_f32": lambda x, y: x - y,
    "v_subrev_f32": lambda x, y: y - x, "v_mul_f32": lambda x, y: x * y,
    "v_max_f32": a.max_num, "v_min_f32": a.min_num,
    "v_max3_f32": lambda x, y, z: a.max_num(a.max_num(x, y), z),
    "v_min3_f32": lambda x, y, z: a.min_num(a.min_num(x, y), z),
    "v_fma_f32": a.fma, "v_exp_f32": a.exp2, "v_rcp_f32": inverse, "v_rcp_iflag_f32": inverse,
    "v_log_f32": log2, "v_trunc_f32": np.trunc,
}


def to_unsigned(x):
    x = np.nan_to_num(x.astype(np.float64), nan=0.0)
    return np.clip(np.trunc(x), 0, 0xffffffff).astype(U32)


def float_ops(name, operands):
    act = FLOATS.get(name)
    if name in ("v_fmac_f32", "v_fmamk_f32", "v_fmaak_f32"):
        if name == "v_fmac_f32":
            operands = operands + operands[:1]
        act = a.fma
    if act:
        to, sources = into(operands[0]), [floats(o) for o in operands[1:]]

        def run(w):
            result = act(*(get(w) for get in sources)).astype(F32)
            w.set_vector(to, (a.flush(result) if w.flushes else result).view(U32))
        return run
    if name == "v_cvt_pk_bf16_f32":
        to, x, y = into(operands[0]), floats(operands[1]), floats(operands[2])
        return lambda w: w.set_vector(to, a.to_bf16(x(w)) | a.to_bf16(y(w)) << U32(16))
    if name in ("v_cvt_f32_u32", "v_cvt_f32_i32"):
        to, x = into(operands[0]), source(operands[1])
        words = np.int32 if name.endswith("i32") else U32
        return lambda w: w.set_vector(to, x(w).view(words).astype(F32).view(U32))
    if name == "v_cvt_u32_f32":
        to, x = into(operands[0]), floats(operands[1])
        return lambda w: w.set_vector(to, to_unsigned(x(w)))
    return None


def division(name, operands):
    """Of numbers whose quotient needs no scaling."""
    if name == "v_div_scale_f32":
        to, (_, flag, _), x = into(operands[0]), register(operands[1]), floats(operands[2])

        def run(w):
            number = x(w)
            if not np.all((np.abs(number) > 2.0**-60) & (np.abs(number) < 2.0**60) | ~w.mask):
                raise Fault("a division of numbers that are scaled")
            set_mask(w, flag, np.zeros(LANES, bool))
            w.set_vector(to, number.view(U32))
        return run
    if name not in ("v_div_fmas_f32", "v_div_fixup_f32"):
        return None
    to, sources = into(operands[0]), [floats(o) for o in operands[1:]]
    if name == "v_div_fmas_f32":
        return lambda w: w.set_vector(to, a.fma(*(get(w) for get in sources)).view(U32))
    return lambda w: w.set_vector(to, sources[0](w).view(U32))


def comparisons(name, operands):
    if not name.startswith("v_cmp_"):
        return None
    _, _, kind, number = name.split("_")
    if kind == "class" or number not in ("f32", "i32", "u32", "i64", "u64"):
        return None
    first = register(operands[0])[1]
    if number == "f32":
        x, y = floats(operands[1]), floats(operands[2])
        act = {"u": lambda x, y: np.isnan(x) | np.isnan(y), "neq": lambda x, y: x != y,
               "lg": lambda x, y: (x < y) | (x > y), **{k: COMPARES[k] for k in (
                   "eq", "gt", "ge", "lt", "le")},
               "o": lambda x, y: ~(np.isnan(x) | np.isnan(y)),
               "nlt": lambda x, y: ~(x < y), "ngt": lambda x, y: ~(x > y),
               "nle": lambda x, y: ~(x <= y), "nge": lambda x, y: ~(x >= y)}[kind]
        return lambda w: set_mask(w, first, act(x(w), y(w)))
    act = COMPARES["lg" if kind == "ne" else kind]
    if number.endswith("64"):
        x, y = (source64(o, True) for o in operands[1:])
        view = I64 if number[0] == "i" else U64
    else:
        x, y = (source(o) for o in operands[1:])
        view = I32 if number[0] == "i" else U32
    return lambda w: set_mask(w, first, act(x(w).view(view), y(w).view(view)))


def pairs(name, operands):
    """What has operands of 64 bits."""
    to = into(operands[0])
    if name == "v_mov_b64":
        get = source64(operands[1], True)
        return lambda w: w.set_vector64(to, get(w))
    if name == "v_lshl_add_u64":
        x, n, y = source64(operands[1]), source(operands[2]), source64(operands[3], True)
        return lambda w: w.set_vector64(to, (x(w) << (n(w) & U32(7)).astype(U64)) + y(w))
    if name in ("v_lshrrev_b64", "v_lshlrev_b64"):
        n, x = source(operands[1]), source64(operands[2])
        shift = np.right_shift if "shr" in name else np.left_shift
        return lambda w: w.set_vector64(to, shift(x(w), (n(w) & U32(63)).astype(U64)))
    if name in ("v_mad_u64_u32", "v_mad_i64_i32"):
        kind, wider = (U32, U64) if name == "v_mad_u64_u32" else (I32, I64)
        x, y = source(operands[2]), source(operands[3])
        z = source64(operands[4], True)
        return lambda w: w.set_vector64(
            to, (x(w).view(kind).astype(wider) * y(w).view(kind).astype(wider)).view(U64) + z(w))
    return None


def carries(name, operands):
    if name not in ("v_add_co_u32", "v_sub_co_u32", "v_subrev_co_u32", "v_addc_co_u32",
                    "v_subb_co_u32"):
        return None
    if "rev" in name:
        operands[2:4] = operands[3:1:-1]
    to, flag = into(operands[0]), register(operands[1])[1]
    x, y = source(operands[2]), source(operands[3])
    carry = mask_of(operands[4]) if len(operands) > 4 else lambda w: np.zeros(LANES, bool)

    def run(w):
        p, q, c = x(w).astype(I64), y(w).astype(I64), carry(w).astype(I64)
        result = p + q + c if "add" in name else p - q - c
        w.set_vector(to, result.astype(U32))
        set_mask(w, flag, (result < 0) | (result > 0xffffffff))
    return run


def lanes(name, operands):
    """What asks other lanes, or masks of them."""
    if name == "v_cndmask_b32":
        to, x, y = into(operands[0]), source(operands[1]), source(operands[2])
        chosen = mask_of(operands[3])
        return lambda w: w.set_vector(to, np.where(chosen(w), y(w), x(w)))
    if name == "v_readfirstlane_b32":
        to, get = into(operands[0]), source(operands[1])
        return lambda w: w.set_scalar(to, int(get(w)[int(np.argmax(w.mask))]))
    if name == "v_readlane_b32":
        to, get, lane = into(operands[0]), source(operands[1]), source(operands[2])
        return lambda w: w.set_scalar(to, int(get(w)[int(lane(w)[0]) & 63]))
    if name == "v_writelane_b32":
        to, get, lane = into(operands[0]), source(operands[1]), source(operands[2])

        def run(w):
            w.v[to][int(lane(w)[0]) & 63] = get(w)[0]
        return run
    return None


def products(name, operands):
    found = re.fullmatch(r"v_mfma_f32_(32x32|16x16)x(\d+)_(bf16|f16)(?:_1k)?", name)
    if not found:
        return None
    if len(operands) > 4:  # what is sent to other blocks, or negated
        raise Fault(f"'{name}' with {operands[4]} is not executed")
    size, depth, kind = int(found[1][:2]), int(found[2]), found[3]
    (_, to, count), (_, x, nx), (_, y, ny) = (register(o) for o in operands[:3])
    added = register(operands[3])

    def run(w):
        c = (w.v[added[1]:added[1] + count].view(F32) if added
             else np.full((count, LANES), constant(operands[3]), U32).view(F32))
        w.v[to:to + count] = a.multiply(size, depth, kind, w.v[x:x + nx], w.v[y:y + ny],
                                        c).view(U32)
    return run


def decode(instruction):
    name = re.sub(r"_e(32|64)$", "", instruction.name)
    if not name.startswith("v_"):
        return None
    for operand in instruction.operands:
        if operand == "clamp" or operand.startswith(("mul:", "div:")):
            raise Fault(f"'{name}' with {operand} is not executed")
    for make in (integers, float_ops, division, comparisons, pairs, carries, lanes, products):
        run = make(name, list(instruction.operands))
        if run:
            return run
    return None
