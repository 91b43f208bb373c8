"""A kernel's tensors and sizes have the names that its program gives them; the
problem's `tensors` say which part each plays. So kvbuf-run checks it like any
other. (test/Runtime/own-names.py has what the runtime makes of such manifests.)

RUN: %python %s kvbuf-compile %t sm_90a
RUN: %python %s kvbuf-compile %t gfx950
"""

import subprocess
import sys
import unittest

sys.path.insert(0, f"{sys.path[0]}/../../../benchmark")
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
    text = done.stdout
    for old, new in NAMES.items():
        text = text.replace(f'kvbuffer.name = "{old}"', f'kvbuffer.name = "{new}"')
    for old, new in SIZES.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    text = text.replace('{seq_q = "tokens"}', '{longest = "tokens"}')
    parts = ", ".join(f'{part} = "{name}"' for part, name in NAMES.items()
                      if f'"{name}"' in text)
    return text.replace("kvbuffer.problem = {", f"kvbuffer.problem = {{tensors = {{{parts}}}, ")


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


unittest.main(argv=sys.argv[:1])
