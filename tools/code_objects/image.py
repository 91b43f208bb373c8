# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a code object holds: bytes, kernel descriptors, and instructions as LLVM prints them."""

import re
import struct
import subprocess
import tempfile


class Fault(Exception):
    """What a kernel does that it must not, or that is not executed here."""


class Instruction:
    """One line of a disassembly."""

    def __init__(self, address, name, operands, text):
        self.address, self.name, self.operands, self.text = address, name, operands, text


def split_operands(text):
    """Operands and modifiers: separated by commas, and by spaces behind the last."""
    parts = re.findall(r"[^,\s\[\]()]+(?:\[[^\]]*\])?(?:\([^)]*\))?", text)
    return [part for part in parts if part]


class CodeObject:
    def __init__(self, data, chip, disassembler):
        self.data = data
        self.symbols, self.segments = {}, []
        self._read_elf()
        self.chip = chip
        self.instructions = self._disassemble(chip, disassembler)
        self.index = {i.address: n for n, i in enumerate(self.instructions)}

    def _read_elf(self):
        data = self.data
        programs, sections = struct.unpack_from("<QQ", data, 32)
        size, count, section_size, section_count = struct.unpack_from("<HHHH", data, 54)
        for i in range(count):
            kind, _, offset, address, _, in_file, in_memory, _ = struct.unpack_from(
                "<IIQQQQQQ", data, programs + i * size)
            if kind == 1:  # PT_LOAD
                content = data[offset:offset + in_file].ljust(in_memory, b"\0")
                self.segments.append((address, content))
        tables = [struct.unpack_from("<IIQQQQIIQQ", data, sections + i * section_size)
                  for i in range(section_count)]
        for _, kind, _, _, offset, length, link, _, _, entry in tables:
            if kind not in (2, 11):  # SHT_SYMTAB, SHT_DYNSYM
                continue
            strings = tables[link][4]
            for at in range(offset, offset + length, entry):
                name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", data, at)
                end = data.index(b"\0", strings + name)
                self.symbols[data[strings + name:end].decode()] = value

    def read(self, address, size):
        for begin, content in self.segments:
            if begin <= address and address + size <= begin + len(content):
                return content[address - begin:address - begin + size]
        raise Fault(f"no bytes of the code object at 0x{address:x}")

    def _disassemble(self, chip, disassembler):
        with tempfile.NamedTemporaryFile(suffix=".hsaco") as file:
            file.write(self.data)
            file.flush()
            done = subprocess.run([disassembler, "-d", f"--mcpu={chip}", file.name],
                                  capture_output=True, text=True)
        if done.returncode:
            raise Fault(f"{disassembler} does not disassemble it: {done.stderr.strip()}")
        instructions = []
        for line in done.stdout.splitlines():
            found = re.match(r"\t(\S+)\s*(.*?)\s*// ([0-9A-F]+):", line)
            if found:
                name, operands, address = found.groups()
                instructions.append(Instruction(int(address, 16), name, split_operands(operands),
                                                f"{name} {operands}"))
        return instructions

    def descriptor(self, kernel):
        """Where a kernel begins, its user registers, and which block numbers it gets."""
        at = self.symbols.get(kernel + ".kd")
        if at is None:
            raise Fault(f"the code object has no kernel '{kernel}'")
        words = self.read(at, 64)
        lds, _, kernarg, _, entry = struct.unpack_from("<IIIIq", words)
        first, second = struct.unpack_from("<II", words, 48)
        properties, preload = struct.unpack_from("<HH", words, 56)
        if preload:
            raise Fault("the kernel's arguments are loaded into registers ahead")
        if properties & 0x7f != 0x08:
            raise Fault(f"user registers 0x{properties:x}; expected the arguments' address")
        return {"entry": at + entry, "lds": lds, "kernarg": kernarg,
                "user": second >> 1 & 31, "ids": [bool(second >> bit & 1) for bit in (7, 8, 9)],
                "flushes": first >> 16 & 3 == 0}
