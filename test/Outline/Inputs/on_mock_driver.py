"""Runs a program with launches on the stand-in for CUDA's driver.

Usage: on_mock_driver.py BUILD CHIP[,OPTION=VALUE...] FILE

Kernels are outlined, and in the place of their code comes what the stand-in takes for
one: their names and the kinds of their parameters (test/Runtime/Inputs/MockCuda.cpp).
"""

import os
import pathlib
import re
import subprocess
import sys

build, chip, file = sys.argv[1:]
chip, *options = chip.split(",")
plugin = f"{build}/lib/KVBufferPlugin.so"
outline = " ".join([f"chip={chip}", "targets=false", *options])
LETTERS = {"!llvm.ptr": "w", "i64": "w", "i32": "i", "!llvm.array<16 x i64>": "m"}


def tool(*command, text, **how):
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, **how)
    if done.returncode:
        sys.stdout.write(done.stdout if command[0] == "mlir-runner" else "")
        sys.exit(f"error: {command[0]} ended with status {done.returncode}")
    return done.stdout


launches = tool("mlir-opt", f"--load-dialect-plugin={plugin}", f"--load-pass-plugin={plugin}",
                f"--pass-pipeline=builtin.module(kvbuf-outline-kernels{{{outline}}})", text=pathlib.Path(file).read_text())
# Functions that do not go to a stream go to one that upstream makes.
if "kvbuffer.stream" not in pathlib.Path(file).read_text():
    launches = tool("mlir-opt", "--pass-pipeline=builtin.module(func.func(gpu-async-region))",
                    text=launches)
image = ""
for name, args in re.findall(r"@kvbuf_kernels::@(\w+).*args\((.*)\)", launches):
    types = re.findall(r"%[\w#]+ : (!llvm\.array<16 x i64>|!?[\w.]+)", args)
    image += f"{name} {''.join(LETTERS[type] for type in types)}\\0A"
host = launches[:launches.index("gpu.module @kvbuf_kernels")]
host += f'gpu.binary @kvbuf_kernels [#gpu.object<#nvvm.target, bin = "{image}\\00">]\n'
rest = launches[launches.index("gpu.module @kvbuf_kernels"):]
host += "\n".join(re.findall(r"^  func\.func private .*$", rest, re.M)) + "\n}\n"
lowered = tool("mlir-opt", "--convert-scf-to-cf", "--expand-strided-metadata", "--lower-affine",
               "--gpu-to-llvm", "--convert-index-to-llvm", "--reconcile-unrealized-casts", text=host)
driver = f"{build}/test/mock-cuda"
environment = {**os.environ, "KVBUF_DEVICE": "cuda", "LD_LIBRARY_PATH": driver}
sys.stdout.write(tool("mlir-runner", "--entry-point-result=void", f"--shared-libs={driver}/libcuda.so.1",
                      f"--shared-libs={build}/lib/libkvbuf_mlir_runtime.so", text=lowered, env=environment))
