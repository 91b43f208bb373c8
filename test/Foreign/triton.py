# Kernels that Triton compiles without a GPU, on the emulator.
# REQUIRES: triton
# RUN: rm -rf %t && %python %s %t --only=softmax,histogram --target=gfx942,sm_80
"""Compiles programs in Triton for GPUs that are not here, and emulates them.

    triton.py FOLDER [--only=NAME,...] [--target=CHIP,...]

Prints a line a program and how many ran right: their results are those of numpy in
float64 within a tolerance, and no detector found a fault. Without options it is 11
programs for 5 chips.
"""

import argparse
import os
import pathlib
import subprocess
import sys

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--only", default="")
parser.add_argument("--target", default="gfx942,gfx950,gfx1100,sm_80,sm_90")
OPTIONS = parser.parse_args()
OPTIONS.folder.mkdir(parents=True, exist_ok=True)
os.environ["TRITON_CACHE_DIR"] = str(OPTIONS.folder / "cache")
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
# This file's folder is no place to look for the package.
sys.path[:] = [p for p in sys.path if pathlib.Path(p or ".").resolve()
               != pathlib.Path(__file__).resolve().parent]

import numpy as np  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402


@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def softmax(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.program_id(0) * n
    v = tl.load(x + row + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row + i, e / tl.sum(e, 0), mask=i < n)


@triton.jit
def layernorm(x, w, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.program_id(0) * n
    v = tl.load(x + row + i, mask=i < n, other=0.0)
    mean = tl.sum(v, 0) / n
    d = tl.where(i < n, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(d * d, 0) / n + 1e-5)
    tl.store(out + row + i, d * scale * tl.load(w + i, mask=i < n), mask=i < n)


@triton.jit
def matmul(a, b, out, k, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    i = tl.arange(0, B)
    width = tl.num_programs(1) * B
    total = tl.zeros((B, B), tl.float32)
    for s in range(0, k, B):
        left = tl.load(a + r[:, None] * k + s + i[None, :])
        right = tl.load(b + (s + i)[:, None] * width + c[None, :])
        total += tl.dot(left, right)
    tl.store(out + r[:, None] * width + c[None, :], total)


@triton.jit
def attention(q, k, v, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    place = i[:, None] * B + i[None, :]
    rows = tl.load(q + tl.program_id(0) * B * B + place)
    most = tl.full((B,), -float("inf"), tl.float32)
    total = tl.zeros((B,), tl.float32)
    result = tl.zeros((B, B), tl.float32)
    for s in range(0, n, B):
        keys = tl.load(k + s * B + place)
        scores = tl.dot(rows, tl.trans(keys)) * 0.125
        new = tl.maximum(most, tl.max(scores, 1))
        e = tl.exp(scores - new[:, None])
        factor = tl.exp(most - new)
        total = total * factor + tl.sum(e, 1)
        values = tl.load(v + s * B + place)
        result = result * factor[:, None] + tl.dot(e.to(tl.float16), values)
        most = new
    tl.store(out + tl.program_id(0) * B * B + place, result / total[:, None])


@triton.jit
def scan(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    tl.store(out + tl.program_id(0) * n + i, tl.cumsum(v, 0), mask=i < n)


@triton.jit
def columns(x, out, n, B: tl.constexpr):
    r = tl.arange(0, 32)
    c = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + r[:, None] * n + c[None, :], mask=c[None, :] < n, other=0.0)
    tl.store(out + c, tl.sum(v, 0), mask=c < n)


@triton.jit
def histogram(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    bins = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(out + bins, tl.full((B,), 1, tl.int32), mask=i < n)


@triton.jit
def dropout(x, out, seed, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    keep = tl.rand(seed, i) > 0.5
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(keep, v * 2, 0.0), mask=i < n)


@triton.jit
def lookup(table, at, out, n, B: tl.constexpr):
    row = tl.load(at + tl.program_id(0))
    i = tl.arange(0, B)
    tl.store(out + tl.program_id(0) * n + i, tl.load(table + row * n + i, mask=i < n), mask=i < n)


@triton.jit
def transposed(x, out, n, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    v = tl.load(x + r[:, None] * n + c[None, :])
    tl.store(out + c[:, None] * n + r[None, :], tl.trans(v))


def philox(seed, counters):
    """The first word of Philox 4x32 with 10 rounds, of counters (i, 0, 0, 0)."""
    c = [np.asarray(counters, np.uint64), *[np.zeros(len(counters), np.uint64)] * 3]
    key, low = [seed & 0xFFFFFFFF, seed >> 32], np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]), b & low,
             (a >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]), a & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0].astype(np.uint32)


def programs():
    """Name: kernel, arguments in order (an int is a number, "out" the result), B, grid,
    the result in float64, the tolerance."""
    random = np.random.default_rng(1)
    f32 = lambda *s: random.standard_normal(s).astype(np.float32)  # noqa: E731
    f16 = lambda *s: random.standard_normal(s).astype(np.float16)  # noqa: E731
    wide = lambda a: a.astype(np.float64)  # noqa: E731
    x, y, rows = f32(500), f32(500), f32(3, 200)
    yield "add", add, [x, y, "out", 500], 128, (4,), wide(x) + y, 1e-6
    e = np.exp(wide(rows) - rows.max(1, keepdims=True))
    yield "softmax", softmax, [rows, "out", 200], 256, (3,), e / e.sum(1, keepdims=True), 1e-5
    w, d = f32(200), wide(rows) - wide(rows).mean(1, keepdims=True)
    normal = d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * w
    yield "layernorm", layernorm, [rows, w, "out", 200], 256, (3,), normal, 1e-4
    a, b = f16(64, 64), f16(64, 64)
    yield "matmul", matmul, [a, b, "out", 64], 32, (2, 2), wide(a) @ wide(b), 1e-3
    q, k, v = f16(64, 64), f16(128, 64), f16(128, 64)
    p = wide(q) @ wide(k).T * 0.125
    p = np.exp(p - p.max(1, keepdims=True))
    yield ("attention", attention, [q, k, v, "out", 128], 64, (1,),
           p / p.sum(1, keepdims=True) @ wide(v), 4e-3)
    yield "scan", scan, [rows, "out", 200], 256, (3,), np.cumsum(wide(rows), 1), 1e-4
    tall = f32(32, 100)
    yield "columns", columns, [tall, "out", 100], 64, (2,), wide(tall).sum(0), 1e-4
    bins = random.integers(0, 16, 500).astype(np.int32)
    yield ("histogram", histogram, [bins, "out", 500], 128, (4,),
           np.bincount(bins, minlength=16).astype(np.int32), 0)
    # As tl.rand makes a number of a word: its absolute value over 2^31, nearly.
    words = philox(77, np.arange(500)).view(np.int32).astype(np.int64)
    keep = np.where(words < 0, -words - 1, words) * 4.6566127342e-10 > 0.5
    yield "dropout", dropout, [x, "out", 77, 500], 128, (4,), np.where(keep, wide(x) * 2, 0), 1e-6
    at = np.array([2, 0, 1, 2], np.int32)
    yield "lookup", lookup, [rows, at, "out", 200], 256, (4,), wide(rows)[at], 0
    square = f32(64, 64)
    yield "transposed", transposed, [square, "out", 64], 32, (2, 2), wide(square).T, 0


TYPES = {"float32": "*fp32", "float16": "*fp16", "int32": "*i32"}


def target_of(chip):
    if chip.startswith("sm_"):
        return GPUTarget("cuda", int(chip[3:]), 32)
    return GPUTarget("hip", chip, 64 if chip.startswith("gfx9") else 32)


def run(name, kernel, given, size, grid, expected, tolerance, chip):
    """Nothing, or what is wrong."""
    where = OPTIONS.folder / f"{name}-{chip}"
    where.mkdir(exist_ok=True)
    names, signature, words = kernel.arg_names, {}, []
    result = "i32" if expected.dtype == np.int32 else "f32"
    for argument, value in zip(names, given):
        if isinstance(value, str):
            signature[argument] = "*i32" if result == "i32" else "*fp32"
            shape = ",".join(map(str, expected.shape))
            # Atomic operations add to what is there.
            words.append(f"{result}[{shape}]" + ("=0" if result == "i32" else ""))
            output = len(words) - 1
        elif isinstance(value, int):
            signature[argument] = "i32"
            words.append(f"i32:{value}")
        else:
            signature[argument] = TYPES[str(value.dtype)]
            np.save(where / f"{argument}.npy", value)
            words.append(str(where / f"{argument}.npy"))
    signature[names[-1]] = "constexpr"
    source = triton.compiler.ASTSource(kernel, signature, {names[-1]: size})
    target = target_of(chip)
    compiled = triton.compile(source, target=target)
    (where / "kernel.ll").write_text(compiled.asm["llir"])
    # Triton's own memory for programs and profiles: none.
    words += ["i64:0", "i64:0"]
    threads = compiled.metadata.num_warps * target.warp_size
    done = subprocess.run(
        ["kvbuf-emulate", str(where / "kernel.ll"), f"--grid={','.join(map(str, grid))}",
         f"--block={threads}", f"--shared={compiled.metadata.shared}", f"--chip={chip}",
         f"--output={output}={where / 'out.npy'}", *words],
        capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[0]
    found = np.load(where / "out.npy").astype(np.float64)
    error = np.abs(found - expected).max()
    return None if error <= tolerance else f"differs by {error}"


def main():
    right, count = 0, 0
    for chip in OPTIONS.target.split(","):
        for name, *program in programs():
            if OPTIONS.only and name not in OPTIONS.only.split(","):
                continue
            count += 1
            try:
                wrong = run(name, *program, chip)
            except Exception as problem:  # what a compiler does not take is a line, too
                wrong = f"{type(problem).__name__}: {str(problem).splitlines()[0:1]}"
            right += wrong is None
            print(f"{chip} {name}: {wrong or 'right'}", flush=True)
    print(f"{right} of {count} are right")
    sys.exit(right != count)


if __name__ == "__main__":
    main()
