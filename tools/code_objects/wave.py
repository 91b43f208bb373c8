# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A wave: its registers, and what it has not waited for.

Loads and stores happen when they are waited for (`late`), or at once, before anything that
another wave does meanwhile. Either way a register that a load fills may not be read or
written before, and bytes of LDS are there for others only then.
"""

import re

import numpy as np

from .image import Fault

LANES = 64
NAMED = {"vcc_lo": 106, "vcc_hi": 107, "m0": 124, "exec_lo": 126, "exec_hi": 127}
PAIRS = {"vcc": 106, "exec": 126}
FLOATS = {"0.5": 0x3f000000, "-0.5": 0xbf000000, "1.0": 0x3f800000, "-1.0": 0xbf800000,
          "2.0": 0x40000000, "-2.0": 0xc0000000, "4.0": 0x40800000, "-4.0": 0xc0800000,
          "0.15915494": 0x3e22f983}


def register(token):
    """("v" or "s", first, count) of a register's name, else None."""
    token = token.strip("-|")
    if token in NAMED:
        return "s", NAMED[token], 1
    if token in PAIRS:
        return "s", PAIRS[token], 2
    found = re.fullmatch(r"([vsa])(?:(\d+)|\[(\d+):(\d+)\])", token)
    if not found:
        return None
    kind, one, first, last = found.groups()
    if kind == "a":
        raise Fault(f"an accumulation register: {token}")
    if one is not None:
        return kind, int(one), 1
    return kind, int(first), int(last) - int(first) + 1


def constant(token):
    if token in FLOATS:
        return FLOATS[token]
    try:
        return int(token.removeprefix("lit(").removesuffix(")"), 0)
    except ValueError:
        raise Fault(f"an operand that is not known: {token}") from None


class Pending:
    """An access that is not waited for. `act` reads or writes memory."""

    def __init__(self, registers, act, at):
        self.registers, self.act, self.at = registers, act, at


class Wave:
    def __init__(self, block, number):
        self.block, self.number = block, number
        self.v = np.full((512, LANES), 0x7fc0dead, np.uint32)
        self.s = [0] * 128
        self.scc = 0
        self.at = 0
        self.ended = self.waits = False
        self.flushes = True
        self.queues = {"vmcnt": [], "lgkmcnt": []}
        self.unready = {}
        self.set_exec((1 << LANES) - 1)

    # Registers.

    def set_exec(self, value):
        self.s[126], self.s[127] = value & 0xffffffff, value >> 32
        self.mask = np.array([value >> lane & 1 for lane in range(LANES)], bool)
        self.full = value == (1 << LANES) - 1

    def scalar64(self, first):
        return self.s[first] | self.s[first + 1] << 32

    def set_scalar(self, first, value):
        self.s[first] = value & 0xffffffff
        if first in (126, 127):
            self.set_exec(self.scalar64(126))

    def set_scalar64(self, first, value):
        self.s[first], self.s[first + 1] = value & 0xffffffff, value >> 32 & 0xffffffff
        if first == 126:
            self.set_exec(self.scalar64(126))

    def set_vector(self, number, value):
        if self.full:
            self.v[number] = value
        else:
            self.v[number][self.mask] = value[self.mask]

    def set_vector64(self, number, value):
        self.set_vector(number, value.astype(np.uint32))
        self.set_vector(number + 1, (value >> np.uint64(32)).astype(np.uint32))

    # What is on its way.

    def issue(self, counter, registers, act, instruction):
        pending = Pending(registers, act, instruction)
        for name in registers:
            self.unready[name] = pending
        self.queues[counter].append(pending)
        if not self.block.late:
            act()
            pending.act = None

    def wait(self, counter, left):
        queue = self.queues[counter]
        # Scalar loads come back in any order.
        scalar = any(name[0] == "s" for p in queue for name in p.registers)
        if scalar and left and len(queue) > left:
            raise Fault(f"waits for all but {left} where scalar loads are on their way")
        while len(queue) > left:
            pending = queue.pop(0)
            if pending.act:
                pending.act()
            for name in pending.registers:
                if self.unready.get(name) is pending:
                    del self.unready[name]

    def check_ready(self, instruction):
        for name in instruction.touched:
            if name in self.unready:
                load = self.unready[name].at
                # Vector loads come back in their order: the later one's stays. Where
                # the first one's address was does not matter any more.
                if name in instruction.fills and is_vector_load(load):
                    continue
                raise Fault(f"0x{instruction.address:x}: {instruction.text}: register "
                            f"{name[0]}{name[1]} is not awaited, which 0x{load.address:x}: "
                            f"{load.text} fills")


def is_vector_load(instruction):
    """Whether it loads from memory into vector registers."""
    return instruction.name.startswith(("global_load_", "buffer_load_")) and (
        "lds" not in instruction.operands)


def filled(instruction):
    """Registers that a vector load fills, and of which it reads none."""
    if not is_vector_load(instruction):
        return frozenset()
    first, *others = instruction.operands
    return frozenset(touched(first) - touched(*others))


def touched(*tokens):
    names = set()
    for token in tokens:
        found = register(token.removeprefix("sext(").removesuffix(")"))
        if found:
            kind, first, count = found
            names.update((kind, n) for n in range(first, first + count))
    return names
