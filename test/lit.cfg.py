"""lit configuration: substitutions, and the features that tests may require."""

import os
import shutil
import subprocess

import lit.formats

config.name = "kvbuf"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test", ".py", ".c"]
config.excludes = ["Inputs", "lit.cfg.py", "lit.site.cfg.py", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.kvbuf_build_dir, "test")

path = [config.kvbuf_bin_dir, config.llvm_tools_dir, os.environ.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)
config.environment["PYTHONPATH"] = os.path.join(config.kvbuf_src_dir, "python")
config.environment["KVBUF_LIB_DIR"] = config.kvbuf_lib_dir
# Kernels of the Python package: one run's tests share them, no user's are used.
config.environment["KVBUF_CACHE_DIR"] = os.path.join(config.test_exec_root,
                                                     "kernels")

config.substitutions += [
    ("%src", config.kvbuf_src_dir),
    ("%build", config.kvbuf_build_dir),
    ("%lib", config.kvbuf_lib_dir),
    ("%bin", config.kvbuf_bin_dir),
    ("%python", config.python),
    ("%cmake", config.kvbuf_cmake),
    ("%cxx", config.kvbuf_cxx),
    ("%cc", config.kvbuf_cc),
    # Holds the report of an AMD kernel against limits.
    ("%check_isa", f"{config.python} {config.test_source_root}/Compiler/Inputs/check-isa.py"),
]

# ptxas comes with the CUDA toolkit, which users may lack: tests that need it
# say `REQUIRES: ptxas` and are skipped without it.
if config.ptxas and os.path.exists(config.ptxas):
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", config.ptxas))
    config.environment["KVBUF_PTXAS"] = config.ptxas

# These are no packages of Debian's; their tests run where the tests' Python has
# them.
for package in ["torch", "jax", "transformers", "kernels", "vllm", "sglang",
                "triton", "iree"]:
    if subprocess.run([config.python, "-c", "import importlib.util, sys\n"
                       f"sys.exit(importlib.util.find_spec('{package}') is None)"],
                      check=False).returncode == 0:
        config.available_features.add(package)

# LLVM's linker and readelf come in packages of their own (lld, llvm).
# patchelf makes a wheel's libraries find each other; node draws pages' pictures.
for tool in ["compute-sanitizer", "ld.lld", "llc", "llvm-mc", "llvm-readelf", "llvm-tblgen", "patchelf", "node", "clang-format-22"]:
    if shutil.which(tool, path=config.environment["PATH"]):
        config.available_features.add(tool)

# Kernels in CUDA and HIP are compiled by clang, of which kvbuf-emulate takes the
# first that is there.
if any(shutil.which(tool, path=config.environment["PATH"]) for tool in ["clang-22", "clang"]):
    config.available_features.add("clang")

# MLIR's own tools run whole programs on our runtime library, on the emulator.
tools_lib = os.path.join(os.path.dirname(config.llvm_tools_dir.rstrip("/")), "lib")
config.substitutions.append(("%mlir_include", config.mlir_include_dir))
if all(shutil.which(tool, path=config.environment["PATH"]) for tool in ["mlir-opt", "mlir-runner"]):
    config.available_features.add("mlir-runner")
config.environment["KVBUF_DEVICE"] = "emulator"
mlir_runner = (
    f"mlir-runner --shared-libs={config.kvbuf_lib_dir}/libkvbuf_mlir_runtime.so"
    f" --shared-libs={tools_lib}/libmlir_runner_utils.so"
    f" --shared-libs={tools_lib}/libmlir_c_runner_utils.so --entry-point-result=void"
)
config.substitutions += [
    # From upstream dialects to LLVM, kernels as bitcode: NVIDIA's.
    (
        "%nvvm",
        "mlir-opt --convert-linalg-to-loops --gpu-lower-to-nvvm-pipeline="
        "'cubin-format=offloading cubin-chip=sm_90a cubin-features=+ptx80'",
    ),
    ("%mlir_runner", mlir_runner),
    # Attention among other ops, through stock tools: `%outline sm_80 FILE...`.
    (
        "%outline",
        f"{config.python} {config.test_source_root}/Outline/Inputs/outline.py {config.kvbuf_build_dir}"
        f" '{mlir_runner}'",
    ),
    # The same for AMD's, of which MLIR has no pipeline. `%rocdl gfx942 FILE`.
    ("%rocdl", f"{config.python} {config.test_source_root}/MlirRuntime/Inputs/lower-rocdl.py {config.kvbuf_build_dir}"),
]

# A GPU that CUDA can open.
if any(os.path.exists(f"/dev/nvidia{i}") for i in range(8)):
    config.available_features.add("cuda")
