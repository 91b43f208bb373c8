# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A launch of an artifact's kernel: arguments, blocks, and waves that take turns."""

import json
import random
import re
import struct

import numpy as np

from . import access, narrow, packed, scalar, vector
from .image import CodeObject, Fault
from .memory import Lds, Memory
from .wave import LANES, Wave, filled, touched

#: Where the code lies, and the first tensor.
CODE, TENSORS, ARGUMENTS = 0x10000000, 0x100000000, 0x20000000
#: Instructions after which a wave is said to have no end.
MOST = 10_000_000

NOTHING = {"s_nop", "s_setprio", "s_sleep", "s_sched_barrier", "s_code_end"}
OPERATORS = {
    "product": lambda x: int(np.prod(x, dtype=object)), "sum": sum, "min": min, "max": max,
    "ceildiv": lambda x: -(-x[0] // x[1]), "floordiv": lambda x: x[0] // x[1]}


def evaluate(expression, sizes):
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        if expression not in sizes:
            raise Fault(f"no tensor tells size '{expression}'; expected it to be given")
        return sizes[expression]
    (operator, operands), = expression.items()
    return OPERATORS[operator]([evaluate(x, sizes) for x in operands])


def open_artifact(path):
    """The manifest and the code object of an artifact with one function."""
    data = open(path, "rb").read()
    found = re.search(rb'\{\s*"kvbuf"', data)
    if not found:
        raise Fault(f"{path} is no artifact")
    begin = found.start()
    manifest, _ = json.JSONDecoder().raw_decode(data[begin:].decode("latin1"))
    at = data.find(b"\x7fELF", begin)
    if at < 0:
        raise Fault(f"{path} holds no code object; expected one made with machine code")
    return manifest, data[at:]


class Block:
    def __init__(self, launch, number):
        self.memory, self.late, self.base = launch.memory, launch.late, CODE
        self.lds = Lds(launch.kernel["lds"])
        self.waves = [self._wave(launch, number, n) for n in range(launch.waves)]
        self.launch = launch

    def _wave(self, launch, number, n):
        w = Wave(self, n)
        kernel = launch.kernel
        w.s = [0xdead0000 | i for i in range(128)]
        w.set_exec((1 << LANES) - 1)
        w.set_scalar64(0, ARGUMENTS)
        ids = [x for x, given in zip(number, kernel["ids"]) if given]
        for i, x in enumerate(ids):
            w.s[kernel["user"] + i] = x
        w.v[0] = n * LANES + np.arange(LANES)
        w.flushes = kernel["flushes"]
        w.at = launch.code.index[kernel["entry"]]
        return w

    def run(self, order):
        waves = list(self.waves)
        while waves:
            order.shuffle(waves)
            for w in waves:
                self.launch.run_wave(w)
            waves = [w for w in waves if not w.ended]
            for w in waves:
                w.waits = False


class Launch:
    """Tensors are bytes by name; what is written is found there behind the launch."""

    def __init__(self, path, disassembler, tensors, sizes, late=True):
        manifest, data = open_artifact(path)
        self.late = late
        chip = manifest["target"]["chip"]
        if chip not in ("gfx942", "gfx950"):
            raise Fault(f"{chip} is not executed; expected gfx942 or gfx950")
        spec = manifest["kernels"][0]
        if spec["block"][0] % LANES or spec["block"][1:] != [1, 1]:
            raise Fault(f"blocks of {spec['block']} lanes are not executed")
        self.code = CodeObject(data, chip, disassembler)
        self.kernel = self.code.descriptor(spec["entry"])
        self.waves = spec["block"][0] // LANES
        self.grid = [evaluate(x, sizes) for x in spec["grid"]]
        self.tensors = tensors
        self._add_scratch(manifest, sizes)
        self._lay_out(manifest, spec, sizes)
        self.made = [self._make(i) for i in self.code.instructions]

    def _add_scratch(self, manifest, sizes):
        for entry in manifest.get("scratch", []):
            shape = [evaluate(x, sizes) for x in entry["shape"]]
            fill = 0 if entry["access"] == "counter" else np.nan
            kind = np.float32 if entry["dtype"] == "f32" else np.int32
            self.tensors[entry["name"]] = np.full(shape, fill, kind)

    def _lay_out(self, manifest, spec, sizes):
        self.memory, self.data, addresses = Memory(), {}, {}
        written = {t["name"] for t in manifest["tensors"] if t["access"] != "read"}
        written |= {t["name"] for t in manifest.get("scratch", [])}
        at = TENSORS
        for name, array in self.tensors.items():
            flat = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8).copy()
            self.data[name], addresses[name] = flat, at
            self.memory.add(name, at, flat, name in written)
            at += (len(flat) + 0xffff) // 0x10000 * 0x10000 + 0x10000
        for address, content in self.code.segments:
            self.memory.add("the code", CODE + address, np.frombuffer(content, np.uint8), False)
        arguments = b""
        for arg in spec["args"]:
            size = 4 if arg["kind"] == "size" else 8
            arguments = arguments.ljust((len(arguments) + size - 1) // size * size, b"\0")
            if arg["kind"] == "pointer":
                arguments += struct.pack("<Q", addresses[arg["tensor"]])
            elif arg["kind"] == "stride":
                array = self.tensors[arg["tensor"]]
                arguments += struct.pack(
                    "<q", int(np.prod(array.shape[arg["dim"] + 1:], dtype=object)))
            elif arg["kind"] == "size":
                arguments += struct.pack("<i", evaluate(arg.get("value", arg.get("name")), sizes))
            else:
                raise Fault(f"an argument of kind {arg['kind']} is not passed")
        arguments = arguments.ljust(max(self.kernel["kernarg"], len(arguments)), b"\0")
        self.memory.add("the arguments", ARGUMENTS, np.frombuffer(arguments, np.uint8), False)

    def _make(self, instruction):
        """A function of the wave, or what to say when it is executed."""
        instruction.touched = instruction.fills = frozenset()
        try:
            instruction.touched = frozenset(touched(*instruction.operands))
            instruction.fills = filled(instruction)
            if instruction.name in NOTHING:
                return lambda w: None
            if instruction.name == "s_setreg_imm32_b32":
                return self._set_mode(instruction)
            run = (scalar.branch(instruction, self.code.index) or access.decode(instruction)
                   or scalar.decode(instruction) or vector.decode(instruction)
                   or packed.decode(instruction)
                   or narrow.decode(instruction, self.code.chip))
        except Fault as fault:
            return str(fault)
        return run or f"'{instruction.text}' is not executed"

    def _set_mode(self, instruction):
        where, value = instruction.operands
        if where == "hwreg(HW_REG_MODE, 2, 2)" and value == "0":
            return lambda w: None  # f16 rounds to the nearest, as it does
        if where != "hwreg(HW_REG_MODE, 4, 2)":
            raise Fault(f"'{instruction.text}' is not executed")

        def run(w):
            w.flushes = int(value, 0) == 0
        return run

    def leave_out(self, address):
        if address not in self.code.index:
            raise Fault(f"no instruction at 0x{address:x}")
        at = self.code.index[address]
        left = self.code.instructions[at]
        if left.name == "s_endpgm":
            raise Fault(f"0x{address:x} is the end of a kernel, which cannot be left out")
        left.name, left.touched, self.made[at] = "s_nop", frozenset(), lambda w: None

    def run_wave(self, w):
        """As far as the next barrier, or the end."""
        for _ in range(MOST):
            instruction, made = self.code.instructions[w.at], self.made[w.at]
            if instruction.name == "s_endpgm":
                w.wait("vmcnt", 0)
                w.wait("lgkmcnt", 0)
                w.ended = True
                return
            w.at += 1
            if instruction.name == "s_barrier":
                w.waits = True
                return
            if isinstance(made, str):
                raise Fault(f"0x{instruction.address:x}: {made}")
            if w.unready:
                w.check_ready(instruction)
            try:
                made(w)
            except Fault as fault:
                text = str(fault)
                raise Fault(text if text.startswith("0x") else
                            f"0x{instruction.address:x}: {instruction.text}: {text}") from None
        raise Fault("a wave has no end")

    def run(self, seed=0):
        order = random.Random(seed)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for z in range(self.grid[2]):
                for y in range(self.grid[1]):
                    for x in range(self.grid[0]):
                        Block(self, (x, y, z)).run(order)
        return self.data
