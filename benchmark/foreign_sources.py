"""Tries other people's GPU programs on the emulator, where their sources are.

    benchmark/foreign_sources.py KIND CHECKOUT [BUILD]

Nothing of them is here; KIND says what CHECKOUT has:

  mlir   https://github.com/llvm/llvm-project, of the version that the build uses: MLIR's
         integration tests for GPUs are run as their RUN lines say, on our runtime library
         (those with HIP's printf want ROCM_PATH to name a toolkit's folder)
  buddy  https://github.com/buddy-compiler/buddy-mlir: its examples for upstream's mlir-opt
         (examples/MLIRGPU) that launch a kernel end without an error
  cuda   files that end in .cu, as https://github.com/NVIDIA/cuda-samples and
         https://github.com/karpathy/llm.c have them: each is compiled by clang, and its
         kernels are decoded
  hip    the same for .hip, as https://github.com/ROCm/rocm-examples has them

Prints a line a file and the counts. Kernels that are decoded run with kvbuf-emulate, and
arguments that a person gives.
"""

import pathlib
import re
import subprocess
import sys

FOLDERS = {"mlir": "mlir/test/Integration/GPU", "buddy": "examples/MLIRGPU"}
SUFFIXES = {"cuda": ".cu", "hip": ".hip"}


def commands(text):
    """The RUN lines of a test, those that end in a backslash joined."""
    lines = re.findall(r"(?://|#)\s*RUN:(.*)", text)
    joined = "\n".join(lines).replace("\\\n", " ")
    return [line.strip() for line in joined.split("\n") if line.strip()]


def llvm_libraries():
    found = subprocess.run(["llvm-config-22", "--libdir"], stdout=subprocess.PIPE, text=True,
                           check=False).stdout.strip()
    return pathlib.Path(found or "/usr/lib/llvm-22/lib")


def run_shell(line, text=None):
    """Nothing, or the first error of a pipeline."""
    try:
        done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True,
                              input=text, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return "takes more than 300 s"
    if not done.returncode:
        return None
    errors = [x for x in done.stderr.splitlines() if "error" in x]
    return (errors or done.stderr.splitlines() or ["fails"])[0][:200]


def run_buddy(path, build):
    """Nothing, or what is wrong with an example of buddy-mlir's."""
    # A comma follows the text of gpu.printf since LLVM 20.
    text = re.sub(r'(gpu\.printf "[^"]*") %', r"\1, %", path.read_text(encoding="utf-8"))
    whole = ('mlir-opt "--gpu-lower-to-nvvm-pipeline=cubin-chip=sm_80 cubin-features=+ptx76 '
             'cubin-format=offloading"')
    if "async.execute" in text:
        passes = ["mlir-opt -gpu-kernel-outlining", "mlir-opt -pass-pipeline='builtin.module("
                  "gpu.module(strip-debuginfo,convert-gpu-to-nvvm),"
                  "nvvm-attach-target{chip=sm_80 features=+ptx76})'",
                  "mlir-opt -gpu-async-region -gpu-to-llvm -gpu-module-to-binary=format=offloading",
                  "mlir-opt -async-to-async-runtime -async-runtime-ref-counting",
                  "mlir-opt -convert-async-to-llvm -convert-func-to-llvm -convert-arith-to-llvm "
                  "-convert-cf-to-llvm -reconcile-unrealized-casts"]
    elif "vector.contract" in text:
        passes = ["mlir-opt -pass-pipeline='builtin.module(gpu.module(convert-vector-to-gpu,"
                  "canonicalize))'", whole]
    elif "affine.for" in text and "gpu.launch" not in text:
        passes = ["mlir-opt -pass-pipeline='builtin.module(convert-linalg-to-loops,func.func("
                  "convert-affine-for-to-gpu{gpu-block-dims=1 gpu-thread-dims=0}))'",
                  "mlir-opt -lower-affine -gpu-kernel-outlining", whole]
    else:
        passes = ["mlir-opt -gpu-kernel-outlining -lower-affine", whole]
    llvm = llvm_libraries()
    libraries = [build / "lib/libkvbuf_mlir_runtime.so", *(
        llvm / f"libmlir_{n}.so" for n in ("runner_utils", "c_runner_utils", "async_runtime"))]
    passes.append("mlir-runner -O0 --entry-point-result=void "
                  + " ".join(f"--shared-libs={name}" for name in libraries))
    return run_shell(" | ".join(passes), text)


def run_test(path, build):
    """Nothing, or what is wrong with a test of MLIR's."""
    library = str(build / "lib/libkvbuf_mlir_runtime.so")
    llvm = llvm_libraries()
    chip = "gfx1100" if "WMMA" in path.parts else "gfx942"
    values = {"%mlir_cuda_runtime": library, "%mlir_rocm_runtime": library,
              "%mlir_runner_utils": str(llvm / "libmlir_runner_utils.so"),
              "%mlir_c_runner_utils": str(llvm / "libmlir_c_runner_utils.so"),
              "%gpu_compilation_format": "offloading", "%chip": chip, "%s": str(path),
              "%t": f"/tmp/{path.stem}.tmp"}
    for line in commands(path.read_text(encoding="utf-8")):
        for name, value in values.items():
            line = line.replace(name, value)
        # The emulator wants bitcode where they leave the format open, and PTX of a version
        # that knows the chip.
        line = re.sub(r"-gpu-module-to-binary(?![={\w])", "-gpu-module-to-binary=format=offloading",
                      line)
        line = re.sub(r"gpu-module-to-binary(?=[,)])", "gpu-module-to-binary{format=offloading}",
                      line)
        if "cubin-features" not in line:
            line = line.replace("cubin-chip=sm_80", "cubin-chip=sm_80 cubin-features=+ptx76")
        if wrong := run_shell(line):
            return wrong
    return None


def try_source(path, build):
    """Nothing, or what is wrong with a source in CUDA or HIP."""
    try:
        done = subprocess.run(
            [build / "bin/kvbuf-emulate", path, "--list", f"--clang=-I{path.parent}"],
            capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return "takes more than 300 s"
    errors = [x for x in done.stderr.splitlines() if "error" in x]
    # Refused kernels are errors, and the others are listed all the same.
    return errors[0][:200] if errors or done.returncode else None


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in (*FOLDERS, *SUFFIXES):
        sys.exit(__doc__)
    kind, checkout = sys.argv[1], pathlib.Path(sys.argv[2])
    build = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else "build").resolve()
    if kind == "mlir":
        root = checkout / FOLDERS["mlir"]
        files = [*root.glob("CUDA/**/*.mlir"), *root.glob("ROCM/**/*.mlir")]
    elif kind == "buddy":
        files = [path for path in (checkout / FOLDERS["buddy"]).glob("*.mlir")
                 if "func.func @main" in path.read_text(encoding="utf-8")]
    else:
        files = checkout.rglob(f"*{SUFFIXES[kind]}")
    right = count = 0
    for path in sorted(files):
        wrong = {"mlir": run_test, "buddy": run_buddy}.get(kind, try_source)(path, build)
        count += 1
        right += wrong is None
        print(f"{path.relative_to(checkout)}: {wrong or 'right'}", flush=True)
    print(f"{right} of {count} are right")


if __name__ == "__main__":
    main()
