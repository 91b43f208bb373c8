# Random programs of loads in loops and branches: what kvbuf-assign-slots makes of
# them, executed, fills the slots of each buffer in the order in which loads run.
#
# RUN: %python %s --count 40
# A wrong number is found: a constant more, and a loop that carries another one.
# RUN: not %python %s --count 10 --plant addi | FileCheck %s
# RUN: not %python %s --count 40 --plant yield | FileCheck %s
# CHECK: expected slot
"""Executes the index arithmetic and the control flow that kvbuf-opt prints.

    slots-in-order.py --seed 3 --count 500      # another choice of programs
"""

import argparse
import random
import re
import subprocess
import sys

HEADER = """\
!tile = !kvbuffer.tile<16x16xbf16>
#two = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
#three = #kvbuffer.kv_buffer<16x16xbf16, stages = 3>
gpu.module @m {
  gpu.func @f(%tile: !tile, %n0: index, %n1: index, %n2: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
"""
SLOTS = {"two": 2, "three": 3}


class Writer:
    """Writes a random program; `kinds` are its buffers."""

    def __init__(self, rng):
        self.rng, self.lines, self.names = rng, [], 0

    def name(self):
        self.names += 1
        return f"%v{self.names}"

    def put(self, text):
        self.lines.append(text)

    def load(self, buffers):
        buffer, kind = self.rng.choice(buffers)
        token = self.name()
        self.put(f"{token} = kvbuffer.dram_load %tile into {buffer}"
                 f" : !tile, !kvbuffer.buffer<#{kind}>")
        if self.rng.random() < 0.2:
            self.put("kvbuffer.meet")
        self.put(f"{self.name()} = kvbuffer.lds_stage {token} : !kvbuffer.token<#{kind}>")

    def condition(self, numbers):
        name = self.name()
        left, right = self.rng.choice(numbers), self.rng.choice(numbers)
        self.put(f"{name} = arith.cmpi slt, {left}, {right} : index")
        return name

    def alloc(self, kind):
        name = self.name()
        self.put(f"{name} = kvbuffer.alloc : !kvbuffer.buffer<#{kind}>")
        return name, kind

    def body(self, depth, buffers, numbers):
        for _ in range(self.rng.randint(1, 3)):
            what = self.rng.choice(
                ["load"] * 3 + ["meet"] + (["for", "for", "if", "while", "alloc"]
                                           if depth else []))
            if what == "load":
                self.load(buffers)
            elif what == "meet":
                self.put("kvbuffer.meet")
            elif what == "alloc":
                own = self.alloc(self.rng.choice(list(SLOTS)))
                self.body(depth - 1, buffers + [own, own], numbers)
            elif what == "for":
                i, start = self.name(), self.rng.choice(["%c0", "%c0", "%c1", "%n2"])
                step = self.rng.choice(["%c1"] * 4 + ["%c2"])
                self.put(f"scf.for {i} = {start} to {self.rng.choice(numbers)}"
                         f" step {step} {{")
                self.body(depth - 1, buffers, numbers + [i])
                self.put("}")
            elif what == "if":
                self.put(f"scf.if {self.condition(numbers)} {{")
                self.body(depth - 1, buffers, numbers)
                if self.rng.random() < 0.6:
                    self.put("} else {")
                    self.body(depth - 1, buffers, numbers)
                self.put("}")
            else:
                i, more, now, next_ = (self.name() for _ in range(4))
                self.put(f"{self.name()} = scf.while ({i} = %c0) : (index) -> index {{")
                if self.rng.random() < 0.3:
                    self.load(buffers)
                self.put(f"{more} = arith.cmpi slt, {i}, {self.rng.choice(numbers)} : index")
                self.put(f"scf.condition({more}) {i} : index")
                self.put("} do {")
                self.put(f"^bb0({now}: index):")
                self.body(depth - 1, buffers, numbers + [now])
                self.put(f"{next_} = arith.addi {now}, %c1 : index")
                self.put(f"scf.yield {next_} : index")
                self.put("}")

    def program(self):
        buffers = [self.alloc("two"), self.alloc("three")]
        self.body(3, buffers, ["%n0", "%n1", "%n2"])
        return HEADER + "\n".join(self.lines) + "\ngpu.return\n}\n}\n"


class Wrong(Exception):
    """A slot that is not the next one."""


OPS = {"addi": lambda a, b: a + b, "subi": lambda a, b: a - b,
       "muli": lambda a, b: a * b, "remui": lambda a, b: a % b, "maxsi": max}
NAMES = re.compile(r"%[\w-]+(?:#\d+)?")


class Machine:
    """Executes a kernel's lines, and checks the slot of each load."""

    def __init__(self, lines, sizes):
        self.lines, self.values = lines, dict(sizes)
        #: By the aliases of the buffers' parameters.
        self.slots = {alias: int(slots) for alias, slots in re.findall(
            r"^#(\w+) = #kvbuffer\.kv_buffer<.*stages = (\d+)", "\n".join(lines), re.M)}
        self.buffers, self.held = {}, set()
        self.steps = 0

    def end(self, at):
        """The line that ends the region begun by line `at`."""
        depth = 1
        while True:
            at += 1
            depth -= self.lines[at].startswith("}")
            if depth == 0:
                return at
            depth += self.lines[at].endswith("{")

    def get(self, text):
        return [self.values[name] for name in NAMES.findall(text)]

    def set(self, result, values):
        if result and ":" in result:
            for i, value in enumerate(values):
                self.values[f"{result.split(':')[0]}#{i}"] = value
        elif result:
            self.values[result] = values[0]

    def run(self, at, end):
        """Runs [at, end); returns what the region's terminator hands on."""
        while at < end:
            self.steps += 1
            if self.steps > 100000:
                raise Wrong("a loop that does not end")
            line = self.lines[at]
            match = re.match(r"(%[\w-]+(?::\d+)?) = (.*)", line)
            result, op = match.groups() if match else (None, line)
            if op.startswith("scf.for"):
                last = self.end(at)
                self.run_for(result, op, at, last)
                at = last
            elif op.startswith("scf.if"):
                middle = self.end(at)
                last = self.end(middle) if "else" in self.lines[middle] else middle
                begin, stop = (at, middle) if self.get(op)[0] else (middle, last)
                self.set(result, self.run(begin + 1, stop) or [])
                at = last
            elif op.startswith("scf.while"):
                middle = self.end(at)
                last = self.end(middle)
                args, inits = self.pairs(op)
                values = self.get(inits)
                while True:
                    self.values.update(zip(args, values))
                    more, *values = self.run(at + 1, middle)
                    if not more:
                        break
                    names = NAMES.findall(self.lines[middle + 1])
                    self.values.update(zip(names, values))
                    values = self.run(middle + 2, last)
                self.set(result, values)
                at = last
            elif op.startswith(("scf.yield", "scf.condition")):
                return self.get(op)
            else:
                self.simple(result, op)
            at += 1
        return None

    def pairs(self, op):
        """Names and first values of what a loop carries."""
        inside = re.search(r"(?:iter_args|scf\.while) ?\((.*?)\)", op)
        pairs = NAMES.findall(inside[1]) if inside else []
        return pairs[::2], " ".join(pairs[1::2])

    def run_for(self, result, op, at, last):
        args, inits = self.pairs(op)
        i, *bounds = NAMES.findall(op)[:4]
        first, end, step = (self.values[name] for name in bounds)
        values = self.get(inits)
        for number in range(first, end, step):
            self.values[i] = number
            self.values.update(zip(args, values))
            values = self.run(at + 1, last) or []
        self.set(result, values)

    def simple(self, result, op):
        name = op.split()[0]
        if name == "arith.constant":
            self.values[result] = int(op.split()[1])
        elif name == "arith.cmpi":
            a, b = self.get(op)
            self.values[result] = a < b
        elif name.startswith("arith."):
            self.values[result] = OPS[name[6:]](*self.get(op))
        elif name == "kvbuffer.alloc":
            kind = re.search(r"<#(\w+)>", op)[1]
            self.buffers[result] = [0, self.slots[kind]]
        elif name == "kvbuffer.dram_load":
            buffer, slot = re.search(r"into (%\w+)\[(%[\w-]+)\]", op).groups()
            count = self.buffers[buffer]
            # All were free: any slot may be the first.
            if count[0] is None:
                count[0] = self.values[slot]
            if count[0] % count[1] != self.values[slot]:
                raise Wrong(f"expected slot {count[0] % count[1]}, got "
                            f"{self.values[slot]}: {op}")
            count[0] += 1
            self.held.add((buffer, result))
        elif name == "kvbuffer.lds_stage":
            self.held = {h for h in self.held if h[1] not in op}
        elif name == "kvbuffer.meet":
            for buffer, count in self.buffers.items():
                if not any(held == buffer for held, _ in self.held):
                    count[0] = None
        elif name != "gpu.return":
            raise ValueError(op)


def check(seed, plant):
    rng = random.Random(seed)
    text = Writer(rng).program()
    done = subprocess.run(
        ["kvbuf-opt", "-", "--pass-pipeline=builtin.module(gpu.module("
         "gpu.func(kvbuf-assign-slots)))"],
        input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"seed {seed}: {done.stderr}\n{text}")
    lines = [line.strip() for line in done.stdout.splitlines()]
    first = next(i for i, line in enumerate(lines) if "gpu.func" in line) + 1
    last = next(i for i, line in enumerate(lines) if "gpu.return" in line)
    arguments = NAMES.findall(lines[first - 1])
    lines = [line.split(" : ")[0] if "arith." in line else line for line in lines]
    if plant == "addi":
        # One more than what the slot is the remainder of.
        lines = [re.sub(r"arith\.remui (%[\w-]+), (%c2\w*)$", r"arith.addi \1, \2", line)
                 for line in lines]
    elif plant == "yield":
        # A loop hands on what its iteration began with.
        carried = [re.search(r"(%\w+) = %\w+\) -> \(", line) for line in lines]
        for match in filter(None, carried):
            lines = [re.sub(r"^(scf\.yield.*)%\w+ : index$", rf"\1{match[1]}", line)
                     for line in lines]
    for _ in range(4):
        sizes = [rng.choice([0, 1, 2, 3, 5]) for _ in range(3)]
        try:
            Machine(lines, zip(arguments[1:], sizes)).run(first, last)
        except Wrong as wrong:
            print(f"seed {seed}, sizes {sizes}: {wrong}")
            return False
        except KeyError:
            # A planted fault names a value of another place.
            if not plant:
                raise
    return True


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--count", type=int, default=60)
parser.add_argument("--plant", default="")
options = parser.parse_args()
results = [check(options.seed * 10000 + i, options.plant)
           for i in range(options.count)]
sys.exit(0 if all(results) else 1)
