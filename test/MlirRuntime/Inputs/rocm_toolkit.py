"""A folder that stands for ROCm's where gpu-module-to-binary wants its device
libraries: empty ones, which leave calls of `__ocml_...`."""

import pathlib
import subprocess


def make_toolkit(build):
    """The folder's path; made if it is not there."""
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
    return toolkit
