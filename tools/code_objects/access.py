# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads, stores and waits. Each is made once into a function of the wave."""

import re

import numpy as np

from .arithmetic import I64, U32, U64
from .image import Fault
from .vector import source, source64
from .wave import LANES, constant, register


def modifiers(operands):
    """What stands behind the operands: offset:N and words."""
    found = {"offset": 0}
    while operands and not register(operands[-1]) and not re.fullmatch(
            r"-?(0x)?[0-9a-f]+|off", operands[-1]):
        key, _, value = operands.pop().partition(":")
        found[key] = int(value, 0) if value else True
    return found


def registers_of(token):
    kind, first, count = register(token)
    return [(kind, n) for n in range(first, first + count)]


def words(data):
    """Bytes of lanes as registers."""
    return np.ascontiguousarray(data).view(U32).T


def bytes_of(w, token):
    _, first, count = register(token)
    return np.ascontiguousarray(w.v[first:first + count].T).view(np.uint8).copy()


def fill(w, token, data, mask):
    """Registers from bytes, in the lanes of `mask`."""
    _, first, count = register(token)
    for n, word in enumerate(words(data)[:count]):
        w.v[first + n][mask] = word[mask]


SIZES = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "dwordx8": 32, "dwordx16": 64}


def scalar_load(instruction):
    found = re.fullmatch(r"s_load_(dword\w*)", instruction.name)
    if not found:
        return None
    operands = list(instruction.operands)
    more = modifiers(operands)
    size, (_, to, count), (_, base, _) = SIZES[found[1]], register(operands[0]), register(
        operands[1])
    by = operands[2] if len(operands) > 2 else "0"

    def run(w):
        at = w.scalar64(base) + more["offset"]
        at += w.s[register(by)[1]] if register(by) else constant(by)

        def act():
            data = w.block.memory.scalar(at, size)
            for n in range(count):
                w.set_scalar(to + n, int.from_bytes(data[4 * n:4 * n + 4], "little"))
        w.issue("lgkmcnt", registers_of(operands[0]), act, instruction)
    return run


def global_access(instruction):
    found = re.fullmatch(r"global_(load|store)_(dword(?:x[234])?|(?<=load_)ushort|"
                         r"(?<=store_)short|(?<=store_)short_d16_hi)", instruction.name)
    if not found:
        return None
    operands = list(instruction.operands)
    more = modifiers(operands)
    loads, size, offset = found[1] == "load", SIZES.get(found[2], 2), more["offset"]
    first_byte = 2 if found[2].endswith("hi") else 0
    data, place = (operands[0], operands[1]) if loads else (operands[1], operands[0])
    base = operands[2]

    if base == "off":
        address = source64(place)
    else:
        low, first = source(place), register(base)[1]
        address = lambda w: low(w).astype(U64) + U64(w.scalar64(first))  # noqa: E731

    def run(w):
        at = (address(w).astype(I64) + offset).astype(U64)
        mask = w.mask.copy()
        if loads:
            def act():
                read = w.block.memory.gather(at, mask, size)
                fill(w, data, np.pad(read, ((0, 0), (0, -size % 4))), mask)
            w.issue("vmcnt", registers_of(data), act, instruction)
            return
        values = bytes_of(w, data)[:, first_byte:first_byte + size]
        w.issue("vmcnt", [], lambda: w.block.memory.scatter(at, mask, values), instruction)
    return run


def atomic(instruction):
    if instruction.name != "global_atomic_add":
        return None
    operands = list(instruction.operands)
    more = modifiers(operands)
    if not more.get("sc0"):
        raise Fault("an atomic operation without a result is not executed")
    to, low, first = operands[0], source(operands[1]), register(operands[3])[1]

    def run(w):
        at = low(w).astype(U64) + U64(w.scalar64(first)) + U64(more["offset"])
        mask, values = w.mask.copy(), bytes_of(w, operands[2])

        def act():
            memory, old = w.block.memory, np.zeros((LANES, 4), np.uint8)
            for lane in np.flatnonzero(mask):
                one = np.arange(LANES) == lane
                old[lane] = memory.gather(at, one, 4)[lane]
                total = old[lane].view(U32) + values[lane].view(U32)
                memory.scatter(at, one, np.tile(total.view(np.uint8), (LANES, 1)))
            fill(w, to, old, mask)
        w.issue("vmcnt", registers_of(to), act, instruction)
    return run


def buffer_load(instruction):
    """Of a range of memory by offsets; what lies outside is 0. `lds`: into LDS, the lanes'
    words one after the other from M0 on."""
    found = re.fullmatch(r"buffer_load_(dword\w*)", instruction.name)
    if not found:
        return None
    operands = list(instruction.operands)
    more = modifiers(operands)
    size, to_lds = SIZES[found[1]], "lds" in more
    if not more.get("offen"):
        raise Fault("a buffer without lanes' offsets is not executed")
    place, descriptor, further = operands if to_lds else operands[1:]
    _, first, _ = register(descriptor)
    offset = source(place)
    begin = (lambda w: w.s[register(further)[1]]) if register(further) else (
        lambda w: constant(further))

    def run(w):
        base = w.s[first] | (w.s[first + 1] & 0xffff) << 32
        if w.s[first + 1] >> 16 & 0x3fff:
            raise Fault("a buffer of structures is not executed")
        length = w.s[first + 2]
        within = offset(w).astype(U64) + U64(more["offset"])
        inside = within + U64(begin(w)) + U64(size) <= U64(length)
        at = U64(base) + within + U64(begin(w))
        mask, m0 = w.mask.copy(), w.s[124]

        def act():
            data = w.block.memory.gather(at, mask & inside, size)
            if not to_lds:
                return fill(w, operands[0], data, mask)
            places = m0 + more["offset"] + size * np.arange(LANES)
            w.block.lds.write(places, mask, data)
        if to_lds:  # the offset is that of LDS, too
            inside &= within < U64(1 << 31)
        w.issue("vmcnt", [] if to_lds else registers_of(operands[0]), act, instruction)
    return run


def turned(data):
    """ds_read_b64_tr_b16: each 16 lanes read 16 rows of 4 elements."""
    rows = np.ascontiguousarray(data).view(np.uint16).reshape(LANES // 16, 16, 4)
    lane = np.arange(16)
    result = np.stack([rows[:, 4 * i + lane // 4, lane % 4] for i in range(4)], axis=-1)
    return np.ascontiguousarray(result.reshape(LANES, 4)).view(np.uint8)


def lds_access(instruction):
    found = re.fullmatch(r"ds_(read|write)_(u16_d16_hi|u16_d16|u16|b64_tr_b16|b32|b64|b96|b128)",
                         instruction.name)
    if not found:
        return None
    operands = list(instruction.operands)
    more = modifiers(operands)
    kind = found[2]
    size = 2 if kind.startswith("u16") else 8 if kind.startswith("b64") else int(kind[1:]) // 8
    loads = found[1] == "read"
    place = source(operands[1] if loads else operands[0])

    def run(w):
        at, mask = place(w).astype(I64) + more["offset"], w.mask.copy()
        if not loads:
            values = bytes_of(w, operands[1])
            w.issue("lgkmcnt", [], lambda: w.block.lds.write(at, mask, values), instruction)
            return

        def act():
            data = w.block.lds.read(at, mask, size)
            if kind == "b64_tr_b16":
                data = turned(data)
            if size == 2:
                half = data.view(np.uint16)[:, 0].astype(U32)
                number = w.v[register(operands[0])[1]]
                new = (half if kind == "u16" else number & U32(0xffff0000) | half
                       if kind == "u16_d16" else number & U32(0xffff) | half << U32(16))
                number[mask] = new[mask]
                return
            fill(w, operands[0], data, mask)
        w.issue("lgkmcnt", registers_of(operands[0]), act, instruction)
    return run


def lds_pair(instruction):
    """Two reads, each so many elements from the address, or so many times 64."""
    found = re.fullmatch(r"ds_read2(st64)?_b(32|64)", instruction.name)
    if not found:
        return None
    operands = list(instruction.operands)
    more = modifiers(operands)
    size, place = int(found[2]) // 8, source(operands[1])
    step = size * (64 if found[1] else 1)

    def run(w):
        at, mask = place(w).astype(I64), w.mask.copy()

        def act():
            both = [w.block.lds.read(at + step * int(more.get(f"offset{i}", 0)), mask, size)
                    for i in (0, 1)]
            fill(w, operands[0], np.concatenate(both, axis=1), mask)
        w.issue("lgkmcnt", registers_of(operands[0]), act, instruction)
    return run


def exchange(instruction):
    if instruction.name != "ds_bpermute_b32":
        return None
    operands = list(instruction.operands)
    more = modifiers(operands)
    to, place, value = register(operands[0])[1], source(operands[1]), source(operands[2])

    def run(w):
        lane = (place(w).astype(I64) + more["offset"]) // 4 % LANES
        mask = w.mask.copy()
        given = np.where(mask, value(w), 0).astype(U32)[lane]

        def act():
            w.v[to][mask] = given[mask]
        w.issue("lgkmcnt", registers_of(operands[0]), act, instruction)
    return run


def wait(instruction):
    if instruction.name != "s_waitcnt":
        return None
    counts = dict(re.findall(r"(\w+)\((\d+)\)", " ".join(instruction.operands)))

    def run(w):
        for counter in ("vmcnt", "lgkmcnt"):
            if counter in counts:
                w.wait(counter, int(counts[counter]))
    return run


def cache(instruction):
    """What makes others' stores, or one's own, seen: counted like a load."""
    if instruction.name not in ("buffer_wbl2", "buffer_inv"):
        return None
    return lambda w: w.issue("vmcnt", [], lambda: None, instruction)


def decode(instruction):
    for make in (scalar_load, global_access, atomic, buffer_load, lds_access, lds_pair,
                 exchange, wait, cache):
        run = make(instruction)
        if run:
            return run
    return None
