# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar instructions. Each is made once into a function of the wave."""

from .image import Fault
from .wave import constant, register

M32, M64 = 0xffffffff, 0xffffffffffffffff


def signed(x, bits=32):
    return x - (1 << bits) if x >> bits - 1 & 1 else x


def source(token, bits=32, is_signed=False):
    """What reads an operand, as a number without a sign."""
    if token == "scc":
        return lambda w: w.scc
    found = register(token)
    if found:
        kind, first, count = found
        if kind != "s":
            raise Fault(f"a vector register for a scalar: {token}")
        return (lambda w: w.s[first]) if bits == 32 else (lambda w: w.scalar64(first))
    value = constant(token)
    if bits == 64 and value > M32 >> 1 and is_signed:
        value = signed(value)
    value &= M32 if bits == 32 else M64
    return lambda w: value


def target(token, bits=32):
    _, first, _ = register(token)
    if bits == 32:
        return lambda w, x: w.set_scalar(first, x)
    return lambda w, x: w.set_scalar64(first, x)


#: name -> (bits, function of operands, how SCC is set: by a result that is not 0, or not).
PLAIN = {
    "s_and": (lambda a, b: a & b, True), "s_or": (lambda a, b: a | b, True),
    "s_xor": (lambda a, b: a ^ b, True), "s_andn2": (lambda a, b: a & ~b, True),
    "s_orn2": (lambda a, b: a | ~b, True), "s_not": (lambda a: ~a, True),
    "s_mov": (lambda a: a, False),
}
SHIFTS = {"s_lshl": lambda a, n, bits: a << n, "s_lshr": lambda a, n, bits: a >> n,
          "s_ashr": lambda a, n, bits: signed(a, bits) >> n}
COMPARES = {"eq": lambda a, b: a == b, "lg": lambda a, b: a != b, "gt": lambda a, b: a > b,
            "ge": lambda a, b: a >= b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b}


def logic(name, operands):
    stem, _, kind = name.rpartition("_")
    bits = 64 if kind.endswith("64") else 32
    mask = M64 if bits == 64 else M32
    if stem in PLAIN:
        act, sets = PLAIN[stem]
        put = target(operands[0], bits)
        sources = [source(o, bits, True) for o in operands[1:]]

        def run(w):
            result = act(*(get(w) for get in sources)) & mask
            if sets:
                w.scc = int(result != 0)
            put(w, result)
        return run
    if stem in SHIFTS:
        act, put = SHIFTS[stem], target(operands[0], bits)
        value, count = source(operands[1], bits, True), source(operands[2])

        def run(w):
            result = act(value(w), count(w) & bits - 1, bits) & mask
            w.scc = int(result != 0)
            put(w, result)
        return run
    if name in ("s_bfe_u32", "s_bfe_i32"):  # a field of bits: its first one, and how many
        put, value, field = target(operands[0]), source(operands[1]), source(operands[2])

        def run(w):
            at, count = field(w) & 31, min(field(w) >> 16 & 127, 32)
            count = min(count, 32 - at)
            result = value(w) >> at & (1 << count) - 1
            if name == "s_bfe_i32" and count:
                result = signed(result, count) & M32
            w.scc = int(result != 0)
            put(w, result)
        return run
    if stem == "s_cselect":
        put, (a, b) = target(operands[0], bits), [source(o, bits, True) for o in operands[1:]]
        return lambda w: put(w, a(w) if w.scc else b(w))
    if name == "s_brev_b32":
        put, value = target(operands[0]), source(operands[1], 32, True)
        return lambda w: put(w, int(f"{value(w) & M32:032b}"[::-1], 2))
    if name == "s_bcnt1_i32_b64":
        put, value = target(operands[0]), source(operands[1], 64)

        def run(w):
            result = bin(value(w)).count("1")
            w.scc = int(result != 0)
            put(w, result)
        return run
    return None


def saving(name, operands):
    """s_OP_saveexec_b64."""
    act = {"s_and_saveexec_b64": lambda s, e: s & e, "s_or_saveexec_b64": lambda s, e: s | e,
           "s_andn2_saveexec_b64": lambda s, e: s & ~e & M64}.get(name)
    if not act:
        return None
    put, get = target(operands[0], 64), source(operands[1], 64, True)

    def run(w):
        before, value = w.scalar64(126), get(w)
        put(w, before)
        w.set_exec(act(value, before))
        w.scc = int(w.scalar64(126) != 0)
    return run


def sums(name, operands):
    if name in ("s_movk_i32", "s_addk_i32", "s_mulk_i32"):
        put, k = target(operands[0]), signed(constant(operands[1]) & 0xffff, 16)
        old = source(operands[0])
        if name == "s_movk_i32":
            return lambda w: put(w, k)
        if name == "s_mulk_i32":
            return lambda w: put(w, signed(old(w)) * k)
        name, get = "s_add_i32", [old, lambda w: k & M32]
    elif len(operands) == 3:
        put, get = target(operands[0]), [source(o) for o in operands[1:]]
    else:
        return None
    a, b = get

    def carried(act, carry):
        def run(w):
            result = act(a(w), b(w), w.scc)
            w.scc = carry(result, a(w), b(w))
            put(w, result)
        return run

    def overflow(result, x, y):
        return int(not -2**31 <= result < 2**31)
    wide = lambda result, x, y: int(result > M32 or result < 0)  # noqa: E731
    made = {
        "s_add_u32": carried(lambda x, y, c: x + y, wide),
        "s_sub_u32": carried(lambda x, y, c: x - y, wide),
        "s_addc_u32": carried(lambda x, y, c: x + y + c, wide),
        "s_subb_u32": carried(lambda x, y, c: x - y - c, wide),
        "s_add_i32": carried(lambda x, y, c: signed(x) + signed(y), overflow),
        "s_sub_i32": carried(lambda x, y, c: signed(x) - signed(y), overflow),
    }
    if name in made:
        return made[name]
    products = {"s_mul_i32": lambda x, y: x * y, "s_mul_hi_u32": lambda x, y: x * y >> 32,
                "s_mul_hi_i32": lambda x, y: signed(x) * signed(y) >> 32}
    if name in products:
        act = products[name]
        return lambda w: put(w, act(a(w), b(w)))
    least = {"s_min_u32": (min, False), "s_max_u32": (max, False),
             "s_min_i32": (min, True), "s_max_i32": (max, True)}
    if name in least:
        pick, signs = least[name]

        def run(w):
            x, y = a(w), b(w)
            result = pick(x, y, key=signed if signs else None)
            w.scc = int(result == x and (x != y))
            put(w, result)
        return run
    return None


def comparison(name, operands):
    if not name.startswith("s_cmp"):
        return None
    _, compare, kind, number = name.split("_")
    bits = 64 if number.endswith("64") else 32
    if compare == "cmpk":  # with 16 bits
        low = constant(operands[1]) & 0xffff
        k = (signed(low, 16) if number[0] == "i" else low) & M32
        a, b = source(operands[0]), lambda w: k
    else:
        a, b = (source(o, bits, True) for o in operands)
    act = COMPARES[kind]
    read = (lambda x: signed(x, bits)) if number[0] == "i" else (lambda x: x)

    def run(w):
        w.scc = int(act(read(a(w)), read(b(w))))
    return run


def branch(instruction, index):
    """The branch that an instruction is: whether it is taken."""
    name = instruction.name
    taken = {
        "s_branch": lambda w: True, "s_cbranch_scc0": lambda w: not w.scc,
        "s_cbranch_scc1": lambda w: w.scc,
        "s_cbranch_vccz": lambda w: not w.scalar64(106),
        "s_cbranch_vccnz": lambda w: w.scalar64(106),
        "s_cbranch_execz": lambda w: not w.scalar64(126),
        "s_cbranch_execnz": lambda w: w.scalar64(126)}.get(name)
    if not taken:
        return None
    words = signed(constant(instruction.operands[0]) & 0xffff, 16)
    to = index[instruction.address + 4 + 4 * words]

    def run(w):
        if taken(w):
            w.at = to
    return run


def decode(instruction):
    name, operands = instruction.name, instruction.operands
    if not name.startswith("s_"):
        return None
    for make in (saving, logic, sums, comparison):
        run = make(name, operands)
        if run:
            return run
    if name == "s_getpc_b64":
        put, after = target(operands[0], 64), instruction.address + 4
        return lambda w: put(w, after + w.block.base)
    return None
