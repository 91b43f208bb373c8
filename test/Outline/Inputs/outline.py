"""Runs a program with attention on tensors through stock tools alone: mlir-opt with
the plugin, and mlir-runner on the runtime library.

Usage: outline.py BUILD RUNNER CHIP[,OPTION=VALUE...] FILE...

The files are one program. Options are those of kvbuf-outline-kernels. RUNNER is the
command that executes what mlir-opt writes.
"""

import pathlib
import shlex
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parents[2] / "MlirRuntime" / "Inputs"))
from rocm_toolkit import make_toolkit  # noqa: E402

build, runner, chip, *files = sys.argv[1:]
chip, *options = chip.split(",")
program = "".join(pathlib.Path(file).read_text() for file in files)
plugin = f"{build}/lib/KVBufferPlugin.so"
bufferize = "bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map"
outline = " ".join([f"chip={chip}", "register-host", *options])
passes = (
    f"builtin.module(one-shot-bufferize{{{bufferize}}},kvbuf-outline-kernels{{{outline}}},"
    "convert-linalg-to-loops,canonicalize,func.func(gpu-async-region))"
)
nvidia = [
    f"--gpu-lower-to-nvvm-pipeline=cubin-format=offloading cubin-chip={chip} cubin-features=+ptx80",
]
amd = [
    "--convert-scf-to-cf",
    "--expand-strided-metadata",
    "--lower-affine",
    "--convert-vector-to-llvm",
    "--gpu-to-llvm",
    "--convert-index-to-llvm",
    "--reconcile-unrealized-casts",
    f"--gpu-module-to-binary=format=offloading toolkit={make_toolkit(build)}",
]
commands = [
    ["mlir-opt", f"--load-dialect-plugin={plugin}", f"--load-pass-plugin={plugin}", f"--pass-pipeline={passes}"],
    ["mlir-opt", *(nvidia if chip.startswith("sm_") else amd)],
    # A failed assertion does not write out what was printed before it.
    ["stdbuf", "-oL", *shlex.split(runner)],
]
data = program.encode()
for command in commands:
    done = subprocess.run(command, input=data, stdout=subprocess.PIPE)
    data = done.stdout
    if done.returncode:
        sys.stdout.buffer.write(data if command is commands[-1] else b"")
        sys.exit(done.returncode)
sys.stdout.buffer.write(data)
