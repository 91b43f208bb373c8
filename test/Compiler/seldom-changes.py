# REQUIRES: ld.lld
# RUN: %python %s %bin %src %t
"""What exponents are counted from follows from a row's maximum, by constants: the least
finite number, and the scale. Only blocks that are seldom executed raise a maximum, and make
the other number, too: each iteration has two vector instructions less. So do scores of any
size, whose scale and limit follow from the maximum, too. What the code object
computes where maxima rise is compared with float64; without what these blocks do it is wrong.
"""

import json
import subprocess
import sys

import numpy as np

binaries, source, stem = sys.argv[1:]
sys.path.append(f"{source}/tools")
sys.path.append(f"{source}/test/Kernels/Inputs")
from code_objects.image import CodeObject  # noqa: E402
from code_objects.launch import open_artifact  # noqa: E402
from numbers16 import from_bf16, to_bf16  # noqa: E402

RNG = np.random.default_rng(1)
SIZE, ROWS, KEYS = 64, 24, 300
PATH = f"{stem}.kvbuf"

problem = subprocess.run([sys.executable, f"{source}/benchmark/problem.py", "heads=1",
                          f"head_size={SIZE}"], check=True, capture_output=True).stdout


def compile_it(*options):
    return subprocess.run([f"{binaries}/kvbuf-compile", "-", "--target=gfx950",
                           "--no-alternatives", *options], input=problem, check=True,
                          capture_output=True, text=False).stdout


# Per iteration: 32 exponentials, multiply-adds, 16 sums of pairs and conversions, 9 others.
report = json.loads(compile_it("--report=json", "-o", PATH))
hot = next(loop for loop in report["kernels"][0]["loops"] if loop["hot"])
assert hot["instructions"]["valu"] == 105, hot["instructions"]

# Tiles come from right to left, and each tile's scores are larger than those before.
grows = np.linspace(3, 0.2, KEYS)[:, None]
q, k, v = (to_bf16(x.astype(np.float32).reshape(1, -1, 1, SIZE)) for x in (
    2 * RNG.standard_normal((ROWS, SIZE)), grows * RNG.standard_normal((KEYS, SIZE)),
    RNG.standard_normal((KEYS, SIZE))))
wide = [from_bf16(x).astype(np.float64).reshape(-1, SIZE) for x in (q, k, v)]
scores = wide[0] @ wide[1].T / np.sqrt(SIZE)
weights = np.exp(scores - scores.max(1, keepdims=True))
want = weights @ wide[2] / weights.sum(1, keepdims=True)


def error(*options, rest=()):
    command = [sys.executable, f"{source}/tools/run-code-object.py", PATH,
               "--disassembler=llvm-objdump", "--output", f"o={stem}.o.npy", *rest, *options]
    for name, array in (("q", q), ("k", k), ("v", v)):
        np.save(f"{stem}.{name}.npy", array)
        command += ["--input", f"{name}={stem}.{name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if options and "run-code-object: error" in done.stderr:
        return np.inf
    assert done.returncode == 0, done.stderr
    got = from_bf16(np.load(f"{stem}.o.npy")).astype(np.float64)
    return np.abs(got.reshape(want.shape) - want).max()


assert error() < 0.02

# Without one of the multiplications by the scale a register has an older number, as where a
# maximum is not raised for exponents: what comes of it is wrong, or no number to divide by.
_, data = open_artifact(PATH)
code = CodeObject(data, "gfx950", "llvm-objdump").instructions
products = [i for i in code if i.name.startswith("v_mul_f32") and "0xbe38aa3b" in i.text]
assert len(products) >= 4, [i.text for i in products]
assert any(error(f"--without={i.address:x}") > 0.1 for i in products)

# Scores of any size: where a maximum is large the scale is a power of two, and no score may be
# above it. Both follow from the maximum, by comparisons, too: seven instructions less an
# iteration (134, and 131 in tiles that no mask cuts). Slopes of heads make scores small and
# large, those of one beyond what is multiplied by the scale as it is.
HEADS = 4
problem = open(f"{source}/examples/scores/alibi.mlir", "rb").read()
report = json.loads(compile_it("--report=json", "-o", PATH))
counts = [loop["instructions"]["valu"] for loop in report["kernels"][0]["loops"]]
assert counts == [127, 124], counts

q, k, v = (to_bf16(x.astype(np.float32).reshape(1, -1, HEADS, SIZE)) for x in (
    2 * RNG.standard_normal((ROWS, HEADS, SIZE)),
    grows[:, None] * RNG.standard_normal((KEYS, HEADS, SIZE)),
    RNG.standard_normal((KEYS, HEADS, SIZE))))
wide = [from_bf16(x).astype(np.float64).reshape(-1, HEADS, SIZE) for x in (q, k, v)]
slopes = np.array([0.01, 1.5, -1e4, -1e7], np.float32)
np.save(f"{stem}.slopes.npy", slopes)
behind = np.arange(KEYS)[None, :] - (np.arange(ROWS) + KEYS - ROWS)[:, None]
scores = np.einsum("rhd,khd->hrk", *wide[:2]) / np.sqrt(SIZE)
scores += slopes.astype(np.float64)[:, None, None] * behind
scores[:, behind > 0] = -np.inf
weights = np.exp(scores - scores.max(-1, keepdims=True))
want = np.einsum("hrk,khd->rhd", weights / weights.sum(-1, keepdims=True), wide[2])

REST = "--input", f"slopes={stem}.slopes.npy"
assert error(rest=REST) < 0.02

# Without one of the products with the scale that was chosen.
_, data = open_artifact(PATH)
code = CodeObject(data, "gfx950", "llvm-objdump").instructions
products = [i for i in code if i.name.startswith("v_mul_f32") and "-v" in i.text]
assert products
assert any(error(f"--without={i.address:x}", rest=REST) > 0.1 for i in products)
