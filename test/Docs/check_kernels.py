# docs/writing-kernels.md builds examples/decode.mlir step by step, and breaks it
# on purpose: every step runs and is right, every fault gives the message that the
# page shows, and the last step is the example.
# RUN: %python %s %src %src/docs/writing-kernels.md
#
# The checker is no yes-man: a message that is not given, a fault that is none, a
# step that is wrong and one that does not fit the program are found.
# RUN: sed -e 's/copy still owes/copy owes/' %src/docs/writing-kernels.md > %t.words.md
# RUN: not %python %s %src %t.words.md | FileCheck %s --check-prefix=WORDS
# WORDS: words.md:{{[0-9]+}}: does not print {{.*}}copy owes'
# RUN: sed -e 's/^+ .*arith.subi %used, %c1 .*$/+ %few = arith.subi %used, %c0 : index/' %src/docs/writing-kernels.md > %t.harmless.md
# RUN: not %python %s %src %t.harmless.md | FileCheck %s --check-prefix=HARMLESS
# HARMLESS: harmless.md:{{[0-9]+}}: no fault is found
# RUN: sed -e 's/rescale %%a0, %%rescale/rescale %%zero, %%rescale/' %src/docs/writing-kernels.md > %t.wrong.md
# RUN: not %python %s %src %t.wrong.md | FileCheck %s --check-prefix=WRONG
# WRONG: wrong.md:{{[0-9]+}}: batch {{[0-9]+}}, head {{[0-9]+}}:
# RUN: sed -e 's/^     %%ks = kvbuffer.lds_stage %%k_token /     %%ks = kvbuffer.lds_stage %%k_tokens /' %src/docs/writing-kernels.md > %t.fit.md
# RUN: not %python %s %src %t.fit.md | FileCheck %s --check-prefix=FIT
# FIT: fit.md:{{[0-9]+}}: fits 0 places of the program: %k_slots = kvbuffer.alloc
"""Runs the programs of a page that teaches by changes.

    check_kernels.py SOURCE PAGE

A ```mlir block is a whole program, a ```diff block a change of the program so
far (spaces do not matter). A change after "Break it" is not kept: the ```text
block that follows is what compiling or running the changed program prints, with
... for what the page leaves out. Where the text before it names --emit=STAGE, the
change is of what that prints; ... in it stands for what is left as it is.
"""

import pathlib
import re
import subprocess
import sys

import numpy as np

import kvbuf

SOURCE, PAGE = map(pathlib.Path, sys.argv[1:])
CHIP = "sm_80"
RNG = np.random.default_rng()
HEADS, KV, SIZE, PAGE_SIZE = 8, 2, 128, 64
BLOCK = re.compile(r"^```(mlir|diff|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Fault(Exception):
    """What compiling, running or checking a program says."""


def to_bf16(x):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def fits(line, text):
    """What each ... of the text stands for in a line; None if it is another."""
    parts = [re.escape(" ".join(x.split())) for x in text.split("...")]
    match = re.fullmatch("(.*)".join(parts), " ".join(line.split()))
    return match and match.groups()


def changed(program, diff):
    """The program's lines with a change made where its lines stand."""
    program = [line for line in program if line.strip()]
    hunks = [[]]
    for line in diff.splitlines():
        if line.strip() == "...":
            hunks.append([])
        elif line[1:].strip():
            hunks[-1].append((line[0], line[1:]))
    for hunk in hunks:
        old = [text for mark, text in hunk if mark != "+"]
        places = [i for i in range(len(program) - len(old) + 1)
                  if all(fits(*pair) is not None
                         for pair in zip(program[i:i + len(old)], old))]
        if len(places) != 1:
            raise Fault(f"fits {len(places)} places of the program: "
                        f"{old[0].strip()}")
        at = places[0]
        new, held, own = [], [], iter(program[at:at + len(old)])
        for mark, text in hunk:
            if mark == " ":
                new.append(next(own))
            elif mark == "-":
                held += fits(next(own), text)
            else:
                new.append(re.sub(r"\.\.\.", lambda _: held.pop(0), text))
        program = program[:at] + new + program[at + len(old):]
    return program


def tool(*command, text):
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    if result.returncode:
        raise Fault(result.stderr)
    return result.stdout


def compiled(lines, stage=None, change=None):
    text = "\n".join(lines) + "\n"
    if stage:
        text = tool("kvbuf-compile", "-", f"--target={CHIP}", f"--emit={stage}",
                    text=text)
        text = "\n".join(changed([x for x in text.splitlines() if x.strip()],
                                 change))
    try:
        return kvbuf.compile(text, target=CHIP, machine_code=False)
    except kvbuf.Error as e:
        raise Fault(str(e)) from None


class Inputs:
    """Sequences of a few lengths in pages at random places; what no sequence
    uses is NaN, and entries of the table past a sequence's end are wild."""

    def __init__(self):
        self.keys = [1, 65, 333, 700]
        batch, per = len(self.keys), 1024 // PAGE_SIZE
        used = [-(-n // PAGE_SIZE) for n in self.keys]
        pages = RNG.permutation(sum(used) + 3)
        self.q = to_bf16(RNG.standard_normal((batch, 1, HEADS, SIZE)))
        shape = len(pages), PAGE_SIZE, KV, SIZE
        self.k, self.v = (np.full(shape, 0x7FC0, np.uint16) for _ in "kv")
        self.table = np.full((batch, per), 0x3FFFFFFF, np.int32)
        self.rows = []
        for b, n in enumerate(self.keys):
            own, pages = pages[:used[b]], pages[used[b]:]
            self.table[b, :used[b]] = own
            rows = [to_bf16(RNG.standard_normal((n, KV, SIZE)) * np.linspace(
                0.5, 2, n)[:, None, None]) for _ in "kv"]
            for pool, x in zip((self.k, self.v), rows):
                for i in range(n):
                    pool[own[i // PAGE_SIZE], i % PAGE_SIZE] = x[i]
            self.rows.append(rows)
        self.lengths = np.array(self.keys, np.int32) - 1

    def run(self, kernel, text, seed):
        arguments = dict(q=self.q, k=self.k, k_table=self.table,
                         k_lengths=self.lengths)
        scores = '"s"' in text
        name, size = ("s", 32) if scores else ("o", SIZE)
        if not scores:
            arguments.update(v=self.v, v_table=self.table, v_lengths=self.lengths)
        out = np.full((len(self.keys), 1, HEADS, size), 0x7FC0, np.uint16)
        try:
            kernel(**arguments, **{name: out},
                   device=kvbuf.Device("emulator", seed=seed))
        except kvbuf.Error as e:
            raise Fault(str(e)) from None
        self.check(scores, from_bf16(out))

    def check(self, scores, out):
        q = from_bf16(self.q)
        for b, rows in enumerate(self.rows):
            k, v = (np.repeat(from_bf16(x), HEADS // KV, axis=1) for x in rows)
            s = np.einsum("hd,jhd->hj", q[b, 0], k)
            if scores:
                exact = np.zeros((HEADS, 32))
                exact[:, :min(32, self.keys[b])] = s[:, :32]
                base = exact
            else:
                p = np.exp((s - s.max(-1, keepdims=True)) / SIZE ** 0.5)
                total = p.sum(-1)[:, None]
                exact = np.einsum("hj,jhd->hd", p, v) / total
                base = np.einsum("hj,jhd->hd", from_bf16(to_bf16(p)), v) / total
            base = from_bf16(to_bf16(base))
            ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
            # f32 sums of products, before they are rounded.
            allowed = 2 * abs(base - exact).max() + 1e-4
            error = np.max(abs(out[b, 0] - exact) - ulp, axis=-1)
            for head in range(HEADS):
                if not error[head] <= allowed:
                    raise Fault(f"batch {b}, head {head}: {error[head]:.3g} off, "
                                f"more than {allowed:.3g}")


def warnings(lines):
    return subprocess.run(
        ["kvbuf-compile", "-", f"--target={CHIP}", "--emit=scheduled", "-o", "-"],
        input="\n".join(lines) + "\n", capture_output=True, text=True).stderr


def run(lines, inputs, stage=None, change=None):
    kernel = compiled(lines, stage, change)
    # Blocks run in an order of the seed.
    for seed in (1, 2):
        inputs.run(kernel, "\n".join(lines), seed)


def printed(text):
    """The program as the parser understands it."""
    return tool("kvbuf-opt", "-", "--canonicalize", "--cse", text=text)


def expects(said, shown):
    """What of the shown lines was not said; ... is anything."""
    for line in shown.splitlines():
        parts = [re.escape(" ".join(x.split())) for x in line.split("...")]
        if not re.search(".*?".join(parts), " ".join(said.split())):
            return line
    return None


def main():
    page = PAGE.read_text()
    program, inputs, fault = [], Inputs(), None
    steps = faults = 0
    for match in BLOCK.finditer(page):
        kind, text = match.groups()
        where = f"{PAGE.name}:{page.count(chr(10), 0, match.start()) + 1}"
        before = page[:match.start()]
        heading = re.findall(r"^#+ (.*)", before, re.M)[-1]
        try:
            if kind == "text":
                if fault is None:
                    continue
                missing = expects(fault, text)
                fault = None
                if missing:
                    raise Fault(f"does not print '{missing}'")
                continue
            if kind == "diff" and heading.startswith("Break it"):
                faults += 1
                stage = re.findall(r"--emit=(\w+)", before[before.rindex("\n- "):]
                                   if "\n- " in before else before)
                lines = program if stage else changed(program, text)
                said = None
                try:
                    if stage:
                        run(lines, inputs, stage[-1], text)
                    else:
                        run(lines, inputs)
                except Fault as e:
                    said = str(e)
                if said is None:
                    said = warnings(lines)
                if not said or said.startswith("fits "):
                    raise Fault(said or "no fault is found")
                fault = said
                continue
            if kind == "mlir":
                program = [line for line in text.splitlines() if line.strip()]
            else:
                program = changed(program, text)
            # A step of several changes runs after the last of them.
            if page[match.end():].lstrip().startswith("<!-- goes on -->"):
                continue
            steps += 1
            run(program, inputs)
        except Fault as e:
            print(f"{where}: {e}")
            sys.exit(1)
    example = (SOURCE / "examples" / "decode.mlir").read_text()
    if printed("\n".join(program)) != printed(example):
        sys.exit(f"{PAGE.name}: the last step is not examples/decode.mlir")
    if steps < 3 or faults < 12:
        sys.exit(f"only {steps} steps and {faults} faults are on the page")


main()
