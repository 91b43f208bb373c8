# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector instructions on pairs of 16-bit numbers, on parts of registers (SDWA), and on
8-bit floats."""

import re

import numpy as np

from . import arithmetic as a
from .arithmetic import F32, I32, U32
from .image import Fault
from .vector import INTEGERS, floats, into, signed, source
from .wave import LANES, constant, register

U16, I16, F16 = np.uint16, np.int16, np.float16


def float8(exponent, mantissa, fnuz):
    """What the 256 numbers of a format are: OCP's, or FNUZ, whose only zero is 0."""
    bias = (1 << exponent - 1) - (0 if fnuz else 1)
    code = np.arange(256)
    e, m = code >> mantissa & (1 << exponent) - 1, code & (1 << mantissa) - 1
    value = np.where(e == 0, m * 2.0**(1 - bias - mantissa),
                     (1 + m / (1 << mantissa)) * 2.0**(e - bias))
    if fnuz:
        value[0x80] = np.nan
    elif exponent == 5:
        value[e == 31] = np.where(m[e == 31] == 0, np.inf, np.nan)
    else:
        value[code & 0x7f == 0x7f] = np.nan
    return np.where(code >> 7 == 1, -value, value).astype(F32)


#: By the chip and the format's name in instructions.
NUMBERS = {(chip, kind): float8(*size, chip == "gfx942") for chip in ("gfx942", "gfx950")
           for kind, size in (("fp8", (4, 3)), ("bf8", (5, 2)))}


def options(operands):
    """What stands behind the operands: sizes of parts, and which halves are taken."""
    plain = [o for o in operands if not re.match(r"\w+:", o)]
    return plain, dict(o.split(":", 1) for o in operands if re.match(r"\w+:", o))


def flags(text, count, default):
    return [int(x) for x in text.strip("[]").split(",")] if text else [default] * count


def half_of(token, high, is_float):
    """What reads 16 bits of each lane; a constant's are the lower ones, the upper ones 0."""
    if register(token):
        get = source(token)
        return lambda w: (get(w) >> U32(16 * high)).astype(U16)
    if re.fullmatch(r"-?\d*\.\d+", token):
        bits = int(F16(float(token)).view(U16))
    else:
        bits = constant(token) & 0xffffffff
    bits = bits >> 16 * high & 0xffff if bits > 0xffff or high else bits & 0xffff
    if is_float and high and not re.match("0x|lit", token):
        bits = 0
    value = np.full(LANES, bits, U16)
    return lambda w: value


def shift(act, kind):
    return lambda n, x: act(x.view(kind), (n & U16(15)).astype(kind)).view(U16)


def of_floats(act):
    return lambda *x: act(*(y.view(F16) for y in x)).astype(F16).view(U16)


def fma16(x, y, z):
    return a.to_odd(*(n.astype(F32) for n in (x, y, z)))


def compared(act):
    return lambda *x: act(*(y.view(I16) for y in x)).view(U16)


#: Of 16-bit numbers, for both halves or one.
SIXTEEN = {
    "add_u16": lambda x, y: x + y, "sub_u16": lambda x, y: x - y, "sub_i16": lambda x, y: x - y,
    "mul_lo_u16": lambda x, y: x * y, "add_i16": lambda x, y: x + y,
    "max_u16": np.maximum, "min_u16": np.minimum,
    "max_i16": compared(np.maximum), "min_i16": compared(np.minimum),
    "lshlrev_b16": shift(np.left_shift, U16), "lshrrev_b16": shift(np.right_shift, U16),
    "ashrrev_i16": shift(np.right_shift, I16),
    "max3_i16": compared(lambda x, y, z: np.maximum(np.maximum(x, y), z)),
    "mul_f16": of_floats(lambda x, y: x.astype(F32) * y.astype(F32)),
    "add_f16": of_floats(lambda x, y: x.astype(F32) + y.astype(F32)),
    "fma_f16": of_floats(fma16),
}


def pairs(name, operands):
    act = SIXTEEN.get(name.removeprefix("v_pk_")) if name.startswith("v_pk_") else None
    if not act:
        return None
    plain, more = options(operands)
    sources = plain[1:]
    low, high = (flags(more.pop(key, ""), len(sources), bit)
                 for key, bit in (("op_sel", 0), ("op_sel_hi", 1)))
    if more:
        raise Fault(f"'{name}' with {', '.join(more)} is not executed")
    to = into(plain[0])
    gets = [[half_of(o, bit, name.endswith("f16")) for o, bit in zip(sources, bits)]
            for bits in (low, high)]

    def run(w):
        lower, upper = (act(*(get(w) for get in half)).astype(U32) for half in gets)
        w.set_vector(to, lower | upper << U32(16))
    return run


def singles(name, operands):
    """Of the lower halves: the upper one of the result is 0, or, where an instruction could
    choose halves, as it was."""
    act = SIXTEEN.get(name.removeprefix("v_"))
    if not act:
        return None
    plain, more = options(operands)
    if more:
        raise Fault(f"'{name}' with {', '.join(more)} is not executed")
    to, keeps = into(plain[0]), len(plain) > 3
    gets = [half_of(o, 0, name.endswith("f16")) for o in plain[1:]]

    def run(w):
        result = act(*(get(w) for get in gets)).astype(U32)
        w.set_vector(to, w.v[to] & U32(0xffff0000) | result if keeps else result)
    return run


def part_of(token, which):
    """What reads a part of each lane's register, without a sign or with one."""
    is_signed = token.startswith("sext(")
    get = source(token.removeprefix("sext(").removesuffix(")"))
    kind, _, number = which.partition("_")
    bits = {"DWORD": 32, "WORD": 16, "BYTE": 8}[kind]
    at = U32(bits * int(number or 0))

    def read(w):
        x = get(w) >> at
        if bits == 32:
            return x
        up = U32(32 - bits)
        x = x << up
        return (x.view(I32) >> up.astype(I32)).view(U32) if is_signed else x >> up
    return read


def s24(x):
    return (x << U32(8)).view(I32) >> I32(8)


PARTS = INTEGERS | {"v_mul_i32_i24": lambda x, y: (s24(x) * s24(y)).view(U32)}


def parts(name, operands):
    act = PARTS.get(name.removesuffix("_sdwa")) if name.endswith("_sdwa") else None
    if not act:
        return None
    plain, more = options(operands)
    if more.pop("dst_sel", "DWORD") != "DWORD" or more.pop("dst_unused", "") == "UNUSED_PRESERVE":
        raise Fault(f"'{name}' into a part of a register is not executed")
    to = into(plain[0])
    gets = [part_of(o, more.pop(f"src{i}_sel", "DWORD")) for i, o in enumerate(plain[1:])]
    if more:
        raise Fault(f"'{name}' with {', '.join(more)} is not executed")
    return lambda w: w.set_vector(to, act(*(get(w) for get in gets)))


def toward_zero(x):
    """f32 as f16 bits, cut off."""
    half = x.astype(F16)
    bits = half.view(U16)
    with np.errstate(invalid="ignore"):
        beyond = np.abs(half.astype(F32)) > np.abs(x)
    return np.where(beyond, bits - U16(1), bits).astype(U32)


def widened(name, operands, chip):
    """From 8-bit floats."""
    plain, more = options(operands)
    found = re.fullmatch(r"v_cvt_scalef32_pk_(f16|bf16)_(fp8|bf8)", name)
    if found:
        if chip != "gfx950" or plain[2] != "1.0":
            raise Fault(f"'{name}' with a scale of {plain[2]} on {chip} is not executed")
        get = part_of(plain[1], f"WORD_{flags(more.pop('op_sel', ''), 3, 0)[0]}")
        narrow = to_f16 if found[1] == "f16" else a.to_bf16
    else:
        found = re.fullmatch(r"v_cvt_pk_f32_(fp8|bf8)(_sdwa)?", name)
        if not found:
            return None
        if found[2] and more.get("src0_sel") not in ("WORD_0", "WORD_1"):
            raise Fault(f"'{name}' of {more.get('src0_sel')} is not executed")
        get, narrow = part_of(plain[1], more.pop("src0_sel", "WORD_0")), None
    if more:
        raise Fault(f"'{name}' with {', '.join(more)} is not executed")
    to, numbers = into(plain[0]), NUMBERS[chip, found[2] if narrow else found[1]]

    def run(w):
        low, high = (numbers[get(w) >> U32(8 * i) & U32(0xff)] for i in (0, 1))
        if narrow:
            w.set_vector(to, narrow(low) | narrow(high) << U32(16))
            return
        w.set_vector(to, low.view(U32))
        w.set_vector(to + 1, high.view(U32))
    return run


def numbers_of(words, kind, chip):
    """8-bit floats of (registers, lanes) words as f32: (lanes, 4 registers)."""
    return NUMBERS[chip, kind][np.ascontiguousarray(words.T).view(np.uint8)]


def products(name, operands, chip):
    """Of 8-bit floats; those that take scales take them where these are 1."""
    found = re.fullmatch(r"v_mfma_(scale_)?f32_(32x32|16x16)x(\d+)_(?:(fp8|bf8)_(fp8|bf8)|"
                         r"f8f6f4)", name)
    if not found:
        return None
    plain, more = options(operands)
    scales = [source(o) for o in plain[4:]]
    if more.pop("op_sel_hi", "[0,0,0]") != "[0,0,0]" or more or (found[1] and not scales):
        raise Fault(f"'{name}' with {', '.join(map(str, operands[4:]))} is not executed")
    size, depth, kinds = int(found[2][:2]), int(found[3]), (found[4] or "fp8", found[5] or "fp8")
    (_, to, count), (_, x, nx), (_, y, ny) = (register(o) for o in plain[:3])
    added = register(plain[3])

    def run(w):
        if any(np.any(get(w) & U32(0xff) != 127) for get in scales):
            raise Fault("products with scales that are not 1")
        c = (w.v[added[1]:added[1] + count].view(F32) if added
             else np.full((count, LANES), constant(plain[3]), U32).view(F32))
        left, right = (numbers_of(w.v[first:first + n], kind, chip)
                       for first, n, kind in zip((x, y), (nx, ny), kinds))
        w.v[to:to + count] = a.multiply_numbers(
            size, depth, left, right, c, 16 if found[1] else 0).view(U32)
    return run


def rounded(x, kind, chip):
    """f32 to the nearest 8-bit float, ties to even; what exceeds the format is no number, with
    its sign if the format has such. As the emulator's `toFloat8`."""
    numbers = NUMBERS[chip, kind].astype(np.float64)
    finite = int(np.isfinite(numbers[:128]).sum())
    with np.errstate(invalid="ignore"):
        size = np.abs(x.astype(np.float64))
        code = np.searchsorted((numbers[:finite - 1] + numbers[1:finite]) / 2, size)
        above = np.minimum(code + 1, finite - 1)
        tie = (numbers[code] + numbers[above]) / 2 == size
        code = np.where(tie & (code % 2 == 1), above, code)
        step = numbers[finite - 1] - numbers[finite - 2]
        border = numbers[finite - 1] + step / 2
        # A tie at the border goes to the largest number where that is even.
        none = ~((size < border) | ((size == border) & (finite % 2 == 1)))
    sign = np.where(np.signbit(x), 0x80, 0)
    if chip == "gfx942":
        return np.where(none, 0x80, np.where(code == 0, 0, code | sign)).astype(U32)
    return np.where(none, np.where(np.isnan(x), 0x7f, 0x7f | sign), code | sign).astype(U32)


def narrowed(name, operands, chip):
    """To a pair of 8-bit floats, one half of a register."""
    found = re.fullmatch(r"v_cvt_pk_(fp8|bf8)_f32", name)
    if not found:
        return None
    plain, more = options(operands)
    high = flags(more.pop("op_sel", ""), 3, 0)
    if more or any(high[:2]) or (found[1] == "bf8" and chip != "gfx942"):
        raise Fault(f"'{name}' with {', '.join(map(str, operands[3:]))} is not executed")
    to, x, y, up = into(plain[0]), floats(plain[1]), floats(plain[2]), U32(16 * high[2])

    def run(w):
        pair = rounded(x(w), found[1], chip) | rounded(y(w), found[1], chip) << U32(8)
        w.set_vector(to, w.v[to] & ~(U32(0xffff) << up) | pair << up)
    return run


def to_f16(x):
    return x.astype(F16).view(U16).astype(U32)


def largest_of_three(x, y, z):
    """What is no number stays none (IEEE 754's maximum)."""
    return np.maximum(np.maximum(x, y), z)


def others(name, operands):
    plain, more = options(operands)
    narrow = {"v_cvt_pk_f16_f32": to_f16, "v_cvt_pkrtz_f16_f32": toward_zero}.get(name)
    if narrow and not more:
        to, x, y = into(plain[0]), floats(plain[1]), floats(plain[2])
        return lambda w: w.set_vector(to, narrow(x(w)) | narrow(y(w)) << U32(16))
    if name == "v_dot2c_f32_bf16" and not more:
        to, x, y = into(plain[0]), source(plain[1]), source(plain[2])

        def dot(w):
            # To the sum that the register has, in the emulator's order.
            total = a.flush(w.v[to].view(F32))
            for left, right in zip(*(a.halves(get(w)[None], "bf16").T for get in (x, y))):
                total = a.fma(left, right, total)
            w.set_vector(to, a.flush(total).view(U32))
        return dot
    if name == "v_maximum3_f32" and not more:
        to, gets = into(plain[0]), [floats(o) for o in plain[1:]]
        return lambda w: w.set_vector(
            to, largest_of_three(*(get(w) for get in gets)).view(U32))
    if name == "v_bfe_i32":
        to, (x, first, count) = into(plain[0]), (source(o) for o in plain[1:])

        def run(w):
            bits = count(w) & U32(31)
            up = U32(32) - bits
            field = (x(w) >> (first(w) & U32(31))) << up
            w.set_vector(to, np.where(bits == 0, U32(0), (
                field.view(I32) >> up.astype(I32)).view(U32)))
        return run
    if name == "v_mul_i32_i24":
        act = signed(lambda x, y: s24(x.view(U32)) * s24(y.view(U32)))
        to, x, y = into(plain[0]), source(plain[1]), source(plain[2])
        return lambda w: w.set_vector(to, act(x(w), y(w)))
    return None


def decode(instruction, chip):
    name = re.sub(r"_e(32|64)$", "", instruction.name)
    operands = list(instruction.operands)
    if not name.startswith("v_"):
        return None
    return (pairs(name, operands) or singles(name, operands) or widened(name, operands, chip)
            or parts(name, operands) or products(name, operands, chip)
            or narrowed(name, operands, chip) or others(name, operands))
