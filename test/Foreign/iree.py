# Kernels that IREE compiles without a GPU, on the emulator.
# REQUIRES: iree
# RUN: rm -rf %t && %python %s %t
"""Compiles programs in linalg by IREE for GPUs that are not here, and emulates them.

    iree.py FOLDER [--only=NAME,...] [--target=CHIP,...]

The package `iree-base-compiler` has the compiler. Prints a line a program and how many
ran right: their results are those of numpy in float64, and no detector found a fault.
"""

import argparse
import pathlib
import re
import subprocess
import sys

import numpy as np

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--only", default="")
parser.add_argument("--target", default="gfx942,gfx1100,sm_80,sm_89")
OPTIONS = parser.parse_args()
OPTIONS.folder.mkdir(parents=True, exist_ok=True)

TYPES = {np.dtype(np.float32): "f32", np.dtype(np.float16): "f16", np.dtype(np.int32): "i32"}


def tensor(array):
    return f"tensor<{'x'.join(map(str, array.shape))}x{TYPES[array.dtype]}>"


def filled(type, zero="0.0 : f32"):
    return (f"  %z = arith.constant {zero}\n  %e = tensor.empty() : {type}\n"
            f"  %f = linalg.fill ins(%z : {zero.split()[-1]}) outs(%e : {type}) -> {type}\n")


def programs():
    """Name, inputs, the body with the result %r, the result, its tolerance."""
    random = np.random.default_rng(3)
    f32 = lambda *s: random.standard_normal(s).astype(np.float32)  # noqa: E731
    f16 = lambda *s: random.standard_normal(s).astype(np.float16)  # noqa: E731
    wide = lambda a: a.astype(np.float64)  # noqa: E731

    a, b = f32(1000), f32(1000)
    yield ("add", [a, b], "  %r = arith.addf %x0, %x1 : tensor<1000xf32>\n",
           wide(a) + wide(b), 1e-6)
    yield ("gelu", [a], "  %r = math.tanh %x0 : tensor<1000xf32>\n", np.tanh(wide(a)), 1e-5)
    for kind, make, m, n, k in (("matmul", f32, 64, 64, 64), ("odd", f32, 37, 50, 23),
                                ("half", f16, 64, 64, 64), ("tall", f16, 128, 32, 96)):
        a, b = make(m, k), make(k, n)
        c = f"tensor<{m}x{n}xf32>"
        yield (kind, [a, b], filled(c) + f"  %r = linalg.matmul ins(%x0, %x1 : {tensor(a)}, "
               f"{tensor(b)}) outs(%f : {c}) -> {c}\n", wide(a) @ wide(b), 1e-3)
    a, b = f16(2, 64, 64), f16(2, 64, 64)
    c = "tensor<2x64x64xf32>"
    yield ("batched", [a, b], filled(c) + f"  %r = linalg.batch_matmul ins(%x0, %x1 : "
           f"{tensor(a)}, {tensor(b)}) outs(%f : {c}) -> {c}\n", wide(a) @ wide(b), 1e-3)
    a = f32(8, 256)
    e = np.exp(wide(a) - wide(a).max(1, keepdims=True))
    t = tensor(a)
    yield ("softmax", [a], f"  %e = tensor.empty() : {t}\n  %r = linalg.softmax dimension(1) "
           f"ins(%x0 : {t}) outs(%e : {t}) -> {t}\n", e / e.sum(1, keepdims=True), 1e-5)
    a = f32(64, 128)
    yield ("transposed", [a], "  %e = tensor.empty() : tensor<128x64xf32>\n  %r = "
           f"linalg.transpose ins(%x0 : {tensor(a)}) outs(%e : tensor<128x64xf32>) "
           "permutation = [1, 0]\n", wide(a).T, 0)
    a = f32(8, 300)
    c = "tensor<8xf32>"
    yield ("sums", [a], filled(c) + f"  %r = linalg.reduce {{ arith.addf }} ins(%x0 : "
           f"{tensor(a)}) outs(%f : {c}) dimensions = [1]\n", wide(a).sum(1), 1e-4)
    yield ("largest", [a], filled(c, "0xFF800000 : f32") + "  %r = linalg.reduce "
           f"{{ arith.maximumf }} ins(%x0 : {tensor(a)}) outs(%f : {c}) dimensions = [1]\n",
           wide(a).max(1), 0)
    a, w = f32(1, 10, 10, 4), f32(3, 3, 4, 8)
    c = "tensor<1x8x8x8xf32>"
    windows = np.lib.stride_tricks.sliding_window_view(wide(a), (3, 3), axis=(1, 2))
    yield ("convolution", [a, w], filled(c) + "  %r = linalg.conv_2d_nhwc_hwcf {dilations = "
           f"dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}} ins(%x0, %x1 : "
           f"{tensor(a)}, {tensor(w)}) outs(%f : {c}) -> {c}\n",
           np.einsum("nhwcij,ijcf->nhwf", windows, wide(w)), 1e-4)


def compiled(source, chip, where):
    """The IR and, of each of its kernels in order, name, grid, block, dynamic memory."""
    nvidia = chip.startswith("sm_")
    flags = ([f"--iree-cuda-target={chip}", "--iree-hal-target-device=cuda"] if nvidia else
             [f"--iree-rocm-target={chip}", "--iree-hal-target-device=hip"])
    command = [sys.executable, "-m", "iree.compiler.tools.scripts.iree_compile", str(source),
               *flags]
    text = subprocess.run([*command, "--compile-to=executable-targets", "-o", "-"],
                          capture_output=True, text=True, check=True).stdout
    subprocess.run([*command, f"--iree-hal-dump-executable-intermediates-to={where}", "-o",
                    "/dev/null"], capture_output=True, check=True)
    kernels = []
    for part in text.split("hal.executable.export public @")[1:]:
        numbers = dict(re.findall(r"(%c\w+) = arith.constant (\d+) : index", part))
        counts = re.search(r"hal.return (.*?) :", part)[1].split(", ")
        size = re.search(r"workgroup_size = \[(\d+) : index, (\d+) : index, (\d+) : index\]",
                         part).groups()
        shared = re.search(r"workgroup_local_memory = (\d+)", part)
        kernels.append((re.match(r"\w+", part)[0], [numbers[c] for c in counts], size,
                        shared[1] if shared else "0"))
    return next(where.glob("*.linked.ll")), kernels


def run(name, inputs, body, expected, tolerance, chip):
    """Nothing, or what is wrong."""
    where = OPTIONS.folder / f"{name}-{chip}"
    where.mkdir(exist_ok=True)
    types = [tensor(a) for a in inputs]
    result = f"tensor<{'x'.join(map(str, expected.shape))}xf32>"
    source = where / "program.mlir"
    source.write_text(
        f"func.func @{name}({', '.join(f'%x{i}: {t}' for i, t in enumerate(types))}) -> {result} "
        f"{{\n{body}  return %r : {result}\n}}\n")
    code, kernels = compiled(source, chip, where)
    if len(kernels) != 1:
        return f"{len(kernels)} kernels"
    kernel, grid, block, shared = kernels[0]
    words = []
    for i, array in enumerate(inputs):
        np.save(where / f"x{i}.npy", array)
        words.append(str(where / f"x{i}.npy"))
    words.append(f"f32[{','.join(map(str, expected.shape))}]")
    done = subprocess.run(
        ["kvbuf-emulate", str(code), f"--kernel={kernel}", f"--grid={','.join(grid)}",
         f"--block={','.join(block)}", f"--shared={shared}", f"--chip={chip}",
         f"--output={len(inputs)}={where / 'out.npy'}", *words],
        capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[0]
    error = np.abs(np.load(where / "out.npy").astype(np.float64) - expected).max()
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
            except subprocess.CalledProcessError as problem:
                text = problem.stderr if isinstance(problem.stderr, str) else (
                    problem.stderr or b"").decode()
                wrong = f"iree: {text.strip().splitlines()[:1]}"
            right += wrong is None
            print(f"{chip} {name}: {wrong or 'right'}", flush=True)
    print(f"{right} of {count} are right")
    sys.exit(right != count)


if __name__ == "__main__":
    main()
