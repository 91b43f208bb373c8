# The split-key program of examples/, on the emulator, against float64.
# RUN: %python %s %src sm_80
# RUN: %python %s %src sm_90a
# RUN: %python %s %src gfx942
# RUN: %python %s %src gfx950
"""One new token a sequence, keys split over blocks that run in random order.

    decode.py SOURCE CHIP

The program is one file for all chips: kvbuf-complete-program chooses what it leaves
open. The last tests break the program on purpose: each fault has to be found.
"""

import pathlib
import re
import subprocess
import sys
import unittest

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import from_bf16, to_bf16

CHIP = sys.argv.pop()
SOURCE = pathlib.Path(sys.argv.pop())
RNG = np.random.default_rng()
HEADS, KV, SIZE, PAGE, RUN = 8, 2, 128, 64, 128

def program():
    return (SOURCE / "examples" / "decode.mlir").read_text()


class Case:
    """Sequences of so many cached tokens, in pages at random places; what no
    sequence uses is NaN, and entries past a sequence's end are wild."""

    def __init__(self, cached, room):
        self.keys = [n + 1 for n in cached]
        batch, per = len(cached), room // PAGE
        used = [-(-n // PAGE) for n in self.keys]
        pages = RNG.permutation(sum(used) + 3)
        self.q = to_bf16(RNG.standard_normal((batch, 1, HEADS, SIZE)))
        shape = len(pages), PAGE, KV, SIZE
        self.k, self.v = (np.full(shape, 0x7FC0, np.uint16) for _ in "kv")
        self.table = np.full((batch, per), 0x3FFFFFFF, np.int32)
        self.rows = []
        for b, n in enumerate(self.keys):
            own, pages = pages[:used[b]], pages[used[b]:]
            self.table[b, :used[b]] = own
            rows = [RNG.standard_normal((n, KV, SIZE)) for _ in "kv"]
            # Maxima that rise from run to run.
            rows[0] *= np.linspace(0.5, 2, n)[:, None, None]
            rows = [to_bf16(x) for x in rows]
            for pool, x in zip((self.k, self.v), rows):
                for i in range(n):
                    pool[own[i // PAGE], i % PAGE] = x[i]
            self.rows.append(rows)
        self.lengths = np.array(cached, np.int32)

    def run(self, artifact, seed=1, **options):
        out = np.full(self.q.shape, 0x7FC0, np.uint16)
        artifact(q=self.q, k=self.k, v=self.v, k_table=self.table,
                 k_lengths=self.lengths, v_table=self.table,
                 v_lengths=self.lengths, o=out,
                 device=kvbuf.Device("emulator", seed=seed, **options))
        return out

    def check(self, test, out):
        out = from_bf16(out)
        test.assertFalse(np.isnan(out).any())
        exact, base = np.zeros_like(out), np.zeros_like(out)
        q = from_bf16(self.q)
        for b, (k, v) in enumerate(self.rows):
            k, v = (np.repeat(from_bf16(x), HEADS // KV, axis=1)
                    for x in (k, v))
            s = np.einsum("hd,jhd->hj", q[b, 0], k) / SIZE ** 0.5
            p = np.exp(s - s.max(-1, keepdims=True))
            total = p.sum(-1)[:, None]
            exact[b, 0] = np.einsum("hj,jhd->hd", p, v) / total
            rounded = np.einsum("hj,jhd->hd", from_bf16(to_bf16(p)), v)
            base[b, 0] = from_bf16(to_bf16(rounded / total))
        ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
        error, usual = abs(out - exact), abs(base - exact)
        test.assertLessEqual((error - ulp).max(), 2 * usual.max())
        test.assertLessEqual(error.mean(), 1.15 * usual.mean() + 1e-6)


class Decode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = program()
        cls.artifact = kvbuf.compile(cls.text, target=CHIP, machine_code=False)

    def test_lengths(self):
        for cached, room in (([0, 31, 32, 700], 1024), ([63], 64),
                             ([1000, 5], 1024)):
            case = Case(cached, room)
            outs = [case.run(self.artifact, seed) for seed in (1, 2, 3)]
            case.check(self, outs[0])
            # The order in which blocks arrive changes no bit.
            for out in outs[1:]:
                np.testing.assert_array_equal(out, outs[0])

    def fails(self, text, *messages):
        """In every order of the blocks; one of the messages says why."""
        broken = kvbuf.compile(text, target=CHIP, machine_code=False)
        case = Case([700, 300], 1024)
        for seed in (1, 2):
            with self.assertRaises(kvbuf.KernelFault) as caught:
                case.run(broken, seed)
            self.assertTrue(any(m in str(caught.exception) for m in messages),
                            caught.exception)

    def replaced(self, text, old, new):
        self.assertEqual(len(re.findall(old, text)), 1, old)
        return re.sub(old, new, text)

    def test_one_arrival_too_few(self):
        self.fails(self.replaced(
            self.text, r"( +)(%is_last = .*) of %used",
            r"\1%few = arith.subi %used, %c1 : index\n\1\2 of %few"),
            "global-memory race", "nothing has written", "leaves element")

    def test_instructions(self):
        """What the arrival is made of, taken out piece by piece."""
        target = subprocess.run(
            ["kvbuf-compile", "-", f"--target={CHIP}", "--emit=target"],
            input=self.text, capture_output=True, text=True, check=True).stdout
        race = "global-memory race"
        scope, narrow = (("agent", "workgroup") if CHIP[:3] == "gfx"
                         else ("device", "block"))
        for order in "release", "acquire":
            self.fails(self.replaced(
                target, rf'llvm.fence syncscope\("{scope}"\) {order}', ""), race)
        self.fails(self.replaced(
            target, rf'(atomicrmw add .*)"{scope}"', rf'\1"{narrow}"'),
            race, "of too narrow a scope")
        self.fails(self.replaced(
            target, r"(atomicrmw add (?:.*\n){5,6}?) *llvm\.store .*\n", r"\1"),
            "leaves element 0 of the counters 'arrived' at")


if __name__ == "__main__":
    unittest.main()
