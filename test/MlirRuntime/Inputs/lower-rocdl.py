"""Lowers a program in upstream dialects for an AMD GPU with stock mlir-opt.

Usage: lower-rocdl.py BUILD CHIP FILE

MLIR has no pipeline for this; these are the passes of its own tests for ROCm. It
links ROCm's device libraries into each kernel. They need not be there: empty ones
leave calls of `__ocml_...`, which the emulator executes by name.
"""

import subprocess
import sys

from rocm_toolkit import make_toolkit

build, chip, file = sys.argv[1:]
toolkit = make_toolkit(build)

kernels = (
    "builtin.module(convert-linalg-to-loops,convert-vector-to-scf,convert-scf-to-cf,"
    f"gpu-kernel-outlining,gpu.module(strip-debuginfo,convert-amdgpu-to-rocdl{{chipset={chip}}},"
    f"expand-strided-metadata,lower-affine,"
    f"convert-gpu-to-rocdl{{chipset={chip} index-bitwidth=0 runtime=HIP}},"
    "convert-vector-to-llvm,convert-index-to-llvm,"
    f"reconcile-unrealized-casts),rocdl-attach-target{{chip={chip}}})"
)
host = [
    "--convert-vector-to-llvm",
    "--gpu-to-llvm",
    "--convert-index-to-llvm",
    "--reconcile-unrealized-casts",
    f"--gpu-module-to-binary=format=offloading toolkit={toolkit}",
]
first = subprocess.run(["mlir-opt", file, f"--pass-pipeline={kernels}"], stdout=subprocess.PIPE, check=True)
sys.exit(subprocess.run(["mlir-opt", *host], input=first.stdout).returncode)
