"""Runs a graph of linalg as it is and raised, and compares the results.

    raise_and_launch.py BUILD CHIP FILE [SIZES...] [--pass-options=OPTIONS]
                        [--range=N=LOW:HIGH]... [--f32-weights]

FILE is of bf16 and f32, of i1, mostly true, and integers: those of argument N lie
between LOW and HIGH. SIZES of the arguments and the result, 2x4x24 say, are needed where
the types do not have them. As raise_and_run.py, but the raised module goes through stock
tools as a whole: bufferized, with kernels outlined, as a gpu.binary, to mlir-runner
with the runtime library, which executes the launches on the emulator. A result passes
by the rule of kvbuf-run: against the graph in f32 and f64, errors in units of those of
the graph as it is. With --f32-weights the graph does not round weights, and the rule is
that of raise_and_run.py.
"""

import argparse
import os
import pathlib
import secrets
import sys

import numpy as np

from graphs import (Tensor, WIDEN, entry_of, from_bits, on_host, printed_arrays,
                    runner_libraries, signature, strip, to_bits, tool, widened)

sys.path.append(str(pathlib.Path(__file__).parents[2] / "MlirRuntime" / "Inputs"))
from rocm_toolkit import make_toolkit  # noqa: E402


def to_binary(build, chip):
    """Options of mlir-opt that make a gpu.binary, and calls of its launches."""
    if chip.startswith("sm_"):
        return ["--gpu-lower-to-nvvm-pipeline=cubin-format=offloading "
                f"cubin-chip={chip} cubin-features=+ptx80"]
    return ["--convert-scf-to-cf", "--expand-strided-metadata", "--lower-affine",
            "--convert-vector-to-llvm", "--gpu-to-llvm", "--convert-index-to-llvm",
            "--reconcile-unrealized-casts",
            f"--gpu-module-to-binary=format=offloading toolkit={make_toolkit(build)}"]


def main():
    parser = argparse.ArgumentParser()
    for name in ("build", "chip", "file"):
        parser.add_argument(name)
    parser.add_argument("sizes", nargs="*")
    parser.add_argument("--pass-options", default="")
    parser.add_argument("--range", action="append", default=[])
    parser.add_argument("--f32-weights", action="store_true")
    options = parser.parse_args()
    build, chip, file = options.build, options.chip, options.file
    ranges = {int(n): [int(x) for x in bounds.split(":")]
              for n, bounds in (text.split("=") for text in options.range)}
    seed = secrets.randbits(32)
    print("seed", seed)
    rng = np.random.default_rng(seed)
    plain = tool("mlir-opt", text=pathlib.Path(file).read_text())
    types, result = signature(plain, options.sizes)

    def draw(n, t):
        if t.kind == "i1":
            return rng.random(t.shape) < 0.8
        if t.kind[0] == "i":
            return rng.integers(*ranges[n], t.shape, endpoint=True)
        return from_bits(to_bits(rng.standard_normal(t.shape), t.kind), t.kind)
    inputs = [(draw(n, t), t) for n, t in enumerate(types)]
    base = on_host(strip(plain), "main", inputs, [result])[0]

    def wide_type(type):
        return Tensor(widened(type.text), "x".join(map(str, type.shape)))
    exact = on_host(strip(widened(plain)), "main",
                    [(x, wide_type(t)) for x, t in inputs],
                    [wide_type(result)])[0]

    plugin = f"{build}/lib/KVBufferPlugin.so"
    stock = ["mlir-opt", f"--load-dialect-plugin={plugin}",
             f"--load-pass-plugin={plugin}"]
    raised = tool(*stock, "--pass-pipeline=builtin.module(kvbuf-raise-attention"
                  f"{{{options.pass_options}}})", text=plain)
    if "kvbuffer.attention" not in raised or "linalg.softmax" in raised:
        sys.exit(f"not raised:\n{raised}")
    program = strip(raised) + "\n" + entry_of("main", inputs, [result])
    wide = tool(*stock, *WIDEN, text=program).replace(" fastmath<contract>", "")
    bufferize = ("bufferize-function-boundaries "
                 "function-boundary-type-conversion=identity-layout-map")
    launches = tool(
        *stock, f"--pass-pipeline=builtin.module(one-shot-bufferize{{{bufferize}}},"
        f"kvbuf-outline-kernels{{chip={chip} register-host}},"
        "convert-linalg-to-loops,canonicalize,"
        "func.func(arith-expand{include-bf16=true include-f8e8m0=false}),"
        "func.func(gpu-async-region),convert-math-to-libm)", text=wide)
    lowered = tool("mlir-opt", *to_binary(build, chip), text=launches)
    os.environ.setdefault("KVBUF_DEVICE", "emulator")
    printed = tool("mlir-runner", "-e", "entry", "--entry-point-result=void",
                   f"--shared-libs={build}/lib/libkvbuf_mlir_runtime.so",
                   *runner_libraries(), text=lowered)
    actual = printed_arrays(printed, [result])[0]
    # The rounding of bf16 at the reference's magnitude.
    ulp = np.ldexp(1.0, np.frexp(exact)[1] - 8)
    error, usual = np.abs(actual - exact), np.abs(base - exact)
    print(f"largest error {error.max():.3g}, of the graph {usual.max():.3g}; mean "
          f"{error.mean():.3g}, of the graph {usual.mean():.3g}")
    if options.f32_weights:
        apart = np.abs(actual - base)
        scale = max(np.abs(base).max(), 1.0)
        good = apart.max() <= 8 * 2.0**-8 * scale and apart.mean() <= 2.0**-8
    else:
        good = ((error - ulp).max() <= 2 * usual.max() and
                error.mean() <= 1.15 * usual.mean() + 1e-6)
    if not good:
        sys.exit("the raised graph computes something else")


main()
