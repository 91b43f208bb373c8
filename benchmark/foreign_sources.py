"""Tries other people's GPU programs on the emulator, where their sources are.

    benchmark/foreign_sources.py KIND CHECKOUT [BUILD]

Nothing of them is here; KIND says what CHECKOUT has:

  mlir   https://github.com/llvm/llvm-project, of the version that the build uses: MLIR's
         integration tests for GPUs are run as their RUN lines say, on our runtime library
         (those with HIP's printf want ROCM_PATH to name a toolkit's folder)
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

FOLDERS = {"mlir": "mlir/test/Integration/GPU"}
SUFFIXES = {"cuda": ".cu", "hip": ".hip"}


def commands(text):
    """The RUN lines of a test, those that end in a backslash joined."""
    lines = re.findall(r"(?://|#)\s*RUN:(.*)", text)
    joined = "\n".join(lines).replace("\\\n", " ")
    return [line.strip() for line in joined.split("\n") if line.strip()]


def run_test(path, build):
    """Nothing, or what is wrong with a test of MLIR's."""
    library = str(build / "lib/libkvbuf_mlir_runtime.so")
    llvm = pathlib.Path(subprocess.run(["llvm-config-22", "--libdir"], stdout=subprocess.PIPE,
                                       text=True, check=False).stdout.strip()
                        or "/usr/lib/llvm-22/lib")
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
        try:
            done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True,
                                  text=True, timeout=300, check=False)
        except subprocess.TimeoutExpired:
            return "takes more than 300 s"
        if done.returncode:
            errors = [x for x in done.stderr.splitlines() if "error" in x]
            return (errors or done.stderr.splitlines() or ["fails"])[0][:200]
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
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in ("mlir", *SUFFIXES):
        sys.exit(__doc__)
    kind, checkout = sys.argv[1], pathlib.Path(sys.argv[2])
    build = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else "build").resolve()
    if kind == "mlir":
        root = checkout / FOLDERS["mlir"]
        files = [*root.glob("CUDA/**/*.mlir"), *root.glob("ROCM/**/*.mlir")]
    else:
        files = checkout.rglob(f"*{SUFFIXES[kind]}")
    right = count = 0
    for path in sorted(files):
        wrong = (run_test if kind == "mlir" else try_source)(path, build)
        count += 1
        right += wrong is None
        print(f"{path.relative_to(checkout)}: {wrong or 'right'}", flush=True)
    print(f"{right} of {count} are right")


if __name__ == "__main__":
    main()
