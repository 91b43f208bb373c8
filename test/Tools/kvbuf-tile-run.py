"""Any tile program on arrays from files, compared with what is expected.

RUN: rm -rf %t && mkdir %t && %python %s %src/examples/gemm.mlir %t
"""

import pathlib
import subprocess
import sys

import numpy as np

kernel, folder = sys.argv[1], pathlib.Path(sys.argv[2])
rng = np.random.default_rng()
m, n, k = 70, 130, 96
# Integers: their products and sums are exact in bf16 and fp32, whose bits are
# the upper half of fp32's.
a = rng.integers(-2, 3, (m, k)).astype(np.float32)
b = rng.integers(-2, 3, (n, k)).astype(np.float32)
b[:, 4:] = 0   # small sums
c = a @ b.T


def save(name, array):
    np.save(folder / f"{name}.npy", (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
    return f"{name}={folder / name}.npy"


def run(status, *options):
    result = subprocess.run(["kvbuf-tile-run", kernel, *options], text=True, capture_output=True)
    assert result.returncode == status, (result.returncode, result.stdout, result.stderr)
    return result.stdout + result.stderr


inputs = ["--input", save("a", a), "--input", save("b", b)]
said = run(0, *inputs, "--expect", save("c", c), "--tolerance=0", "--output", f"c={folder}/out.npy")
assert "PASS" in said and "largest difference 0.000e+00" in said, said
assert (np.load(folder / "out.npy") == np.load(folder / "c.npy")).all()
# One element that differs is found, and named.
c[69, 129] += 2
said = run(1, *inputs, "--expect", save("c", c), "--tolerance=0")
assert "FAIL" in said and "at [69, 129]" in said and "EXCEEDED" in said, said
# Bad input.
said = run(2, *inputs)
assert "the tensor 'c' needs --input c=FILE.npy" in said, said
said = run(2, *inputs, "--expect", "d=x.npy")
assert "--expect d: the kernel has no such tensor; it has a, b, c" in said, said
# Options that would have no effect: of drawn inputs, and of arrays.
said = run(2, *inputs, "--expect", save("c", c), "--seed=3")
assert "--seed is for inputs that are drawn; --input and --expect give arrays" in said, said
said = run(2, "--output", f"c={folder}/out.npy")
assert "--output is for arrays; give --input or --expect" in said, said
