# Kernels that Triton compiles without a GPU, on the emulator.
# REQUIRES: triton
# RUN: rm -rf %t && %python %s %t --only=softmax,histogram,pipelined --target=gfx942,sm_90
"""Compiles programs in Triton for GPUs that are not here, and emulates them.

    triton.py FOLDER [--only=NAME,...] [--target=CHIP,...]

Prints a line a program and how many ran right: their results are those of numpy in
float64 within a tolerance, and no detector found a fault. Without options it is
all of Inputs/triton_programs.py for 5 chips.
"""

import argparse
import math
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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "Inputs"))

import numpy as np  # noqa: E402
import triton  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton_programs import Bits, programs  # noqa: E402

TYPES = {"float32": "*fp32", "float16": "*fp16", "int32": "*i32", "int8": "*i8", "uint8": "*u8"}
RESULTS = {"f32": "*fp32", "f16": "*fp16", "i32": "*i32"}


def target_of(chip):
    if chip.startswith("sm_"):
        return GPUTarget("cuda", int(chip[3:]), 32)
    return GPUTarget("hip", chip, 64 if chip.startswith("gfx9") else 32)


def run(name, kernel, given, constants, grid, expected, tolerance, chip):
    """Nothing, or what is wrong."""
    where = OPTIONS.folder / f"{name}-{chip}"
    where.mkdir(exist_ok=True)
    if isinstance(constants, int):
        constants = {"B": constants}
    names, signature, words = kernel.arg_names, {}, []
    for argument, value in zip(names, given):
        if isinstance(value, str) and value.startswith("out"):
            made, _, fill = value.partition("=")
            kind = made.partition(":")[2] or ("i32" if expected.dtype == np.int32 else "f32")
            signature[argument] = RESULTS[kind]
            words.append(f"{kind}[{','.join(map(str, expected.shape))}]" + (f"={fill}" if fill else ""))
            output = len(words) - 1
        elif isinstance(value, str):
            signature[argument] = RESULTS[value[:3]]
            words.append(value)
        elif isinstance(value, int):
            signature[argument] = "i32"
            words.append(f"i32:{value}")
        else:
            signature[argument] = value.type if isinstance(value, Bits) else TYPES[str(value.dtype)]
            np.save(where / f"{argument}.npy", value.bits if isinstance(value, Bits) else value)
            words.append(str(where / f"{argument}.npy"))
    signature.update(dict.fromkeys(constants, "constexpr"))
    source = triton.compiler.ASTSource(kernel, signature, constants)
    target = target_of(chip)
    compiled = triton.compile(source, target=target)
    (where / "kernel.ll").write_text(compiled.asm["llir"])
    # Triton's own memory for programs (tensor maps) and profiles.
    scratch = compiled.metadata.global_scratch_size if hasattr(
        compiled.metadata, "global_scratch_size") else 0
    words += [f"i8[{scratch * math.prod(grid)}]" if scratch else "i64:0", "i64:0"]
    threads = compiled.metadata.num_warps * target.warp_size
    done = subprocess.run(
        ["kvbuf-emulate", str(where / "kernel.ll"), f"--grid={','.join(map(str, grid))}",
         f"--block={threads}", f"--shared={compiled.metadata.shared}",
         # Triton's code for sm_90 is that of the chip with all of its own.
         f"--chip={'sm_90a' if chip == 'sm_90' else chip}",
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
        for name, *program in programs(chip):
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
