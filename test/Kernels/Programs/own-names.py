"""A kernel's tensors and sizes have the names that its program gives them; the
problem's `tensors` say which part each plays. So kvbuf-run checks it like any
other. (test/Runtime/own-names.py has what the runtime makes of such manifests.)

RUN: %python %s kvbuf-compile %t sm_90a
RUN: %python %s kvbuf-compile %t gfx950
"""

import re
import subprocess
import sys
import unittest

import numpy as np

sys.path.insert(0, f"{sys.path[0]}/../../../benchmark")
import kvbuf
from problem import problem

compiler, base, chip = sys.argv[1:4]
NAMES = {"q": "rows", "k": "left", "v": "right", "o": "result", "q_offsets": "starts"}
SIZES = {"seq_q": "length", "total_q": "tokens", "batch": "users"}


def run(*command, **options):
    return subprocess.run(command, text=True, capture_output=True, check=False, **options)


def tile(**options):
    """The tile program of a problem, under names of its own."""
    done = run(compiler, "-", "--target=" + chip, "--emit=tile", "--no-alternatives",
               input=problem(heads=4, kv_heads=2, head_size=64, dtype="f16", causal=True,
                             **options))
    # Labels of buffers are for messages alone.
    text = re.sub(r' {label = "[qkvo]"}', "", done.stdout)
    for old, new in NAMES.items():
        text = text.replace(f'kvbuffer.name = "{old}"', f'kvbuffer.name = "{new}"')
    for old, new in SIZES.items():
        # In shapes, and bare among the operands of expressions.
        text = text.replace(f'"{old}"', f'"{new}"')
        text = re.sub(rf"(?<=[( ]){old}(?=[,)])", new, text)
    text = text.replace('{seq_q = "tokens"}', '{length = "tokens"}')
    parts = ", ".join(f'{part} = "{name}"' for part, name in NAMES.items()
                      if f'"{name}"' in text)
    return text.replace("#kvbuffer.problem<", f"#kvbuffer.problem<tensors = {{{parts}}}, ")


def artifact(text, name):
    path = f"{base}-{chip}-{name}.kvbuf"
    done = run(compiler, "-", "--target=" + chip, "-o", path, input=text)
    assert done.returncode == 0, done.stderr
    return path


class OwnNames(unittest.TestCase):
    def check(self, name, *sizes, **options):
        text = tile(**options)
        self.assertNotRegex(text, r'"(q|k|v|o|q_offsets|seq_q|total_q|batch)"')
        done = run("kvbuf-run", artifact(text, name), "--device=emulator", "--check", *sizes)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("pass", done.stdout.lower())

    def test_dense(self):
        self.check("dense", "--size", "batch=2", "--size", "seq_q=70", "--size", "seq_k=90")

    def test_ragged(self):
        self.check("ragged", "--lengths-q", "3,70,0", "--lengths-k", "9,70,5",
                   query="ragged", cache="ragged")

    def test_paged(self):
        self.check("paged", "--lengths-q", "5,1", "--cache-lengths", "7,60",
                   query="ragged", cache="paged", page_size=64)

    def test_pools(self):
        """Caches of one kernel may differ in sizes that have names of their own."""
        random = np.random.default_rng()
        keys, page = [5, 40, 23], 16
        given = {"rows": random.standard_normal((3, 3, 4, 64)).astype(np.float16)}
        values = {}
        for name, pages, row in ("left", 9, 3), ("right", 14, 5):
            pool = np.full((pages, page, 2, 64), np.nan, np.float16)
            table = np.full((3, row), 1 << 30, np.int32)
            free = list(random.permutation(pages))
            values[name] = []
            for b, n in enumerate(keys):
                own = random.standard_normal((n, 2, 64)).astype(np.float16)
                values[name].append(own.astype(float))
                for i in range(0, n, page):
                    table[b, i // page] = free.pop()
                    part = own[i:i + page]
                    pool[table[b, i // page], :len(part)] = part
            given |= {name: pool, f"{name}_table": table,
                      f"{name}_lengths": np.array(keys, np.int32)}
        text = tile(cache="paged", page_size=page, lengths="all")
        own, count = re.subn('kvbuffer.name = "right"', r'\g<0>, kvbuffer.sizes = '
                             '{num_blocks = "pool", pages_per_seq = "row"}', text)
        self.assertEqual(count, 1)
        result = kvbuf.load(artifact(own, "pools"))(**given, device="emulator")
        for b, n in enumerate(keys):
            for head in range(4):
                q = given["rows"][b, :, head].astype(float)
                k, v = (values[name][b][:, head // 2] for name in ("left", "right"))
                weights = np.exp(q @ k.T / 8) * np.tri(3, n, n - 3)
                expected = weights / weights.sum(1, keepdims=True) @ v
                np.testing.assert_allclose(result[b, :, head], expected, atol=4e-3)
        with self.assertRaisesRegex(kvbuf.Error, "num_blocks"):
            kvbuf.load(artifact(text, "pool"))(**given, device="emulator")


unittest.main(argv=sys.argv[:1])
