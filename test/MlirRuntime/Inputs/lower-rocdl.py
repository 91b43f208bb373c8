"""Lowers a program in upstream dialects for an AMD GPU with stock mlir-opt.

Usage: lower-rocdl.py BUILD CHIP FILE

MLIR has no pipeline for this; these are the passes of its own tests for ROCm. It
links ROCm's device libraries into each kernel. They need not be there: empty ones
leave calls of `__ocml_...`, which the emulator executes by name.
"""

import pathlib
import subprocess
import sys

build, chip, file = sys.argv[1:]
toolkit = pathlib.Path(build, "test", "MlirRuntime", "rocm")
folder = toolkit / "amdgcn" / "bitcode"
if not (folder / "ockl.bc").exists():
    folder.mkdir(parents=True, exist_ok=True)
    text = b'target triple = "amdgcn-amd-amdhsa"\n'
    empty = subprocess.run(["llvm-as", "-", "-o", "-"], input=text, stdout=subprocess.PIPE, check=True)
    for name in ["ocml", "opencl", "hip", "ockl"]:
        partial = folder / f"{name}.{id(name)}.tmp"
        partial.write_bytes(empty.stdout)
        partial.rename(folder / f"{name}.bc")

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
