# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a folder in the layout of Hugging Face's `kernels`:

    python -m kvbuf.hf_kernels FOLDER [--alone] [--backend cuda|rocm|cpu]

    kernels.get_local_kernel(FOLDER)
    LOCAL_KERNELS=me/kvbuf=FOLDER    # model: attn_implementation="me/kvbuf"

The folder uses the kvbuf that is installed where it is loaded. With ``--alone`` it
also has a copy of this one, with its libraries, for where none is; one for each back
end of torch's, as only one is ever fetched."""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil

from . import __version__

#: Back ends of torch's; nothing in a build is of one torch's version.
BACKENDS = ("cuda", "rocm", "cpu")


def write(folder, alone: bool = False, backends=BACKENDS) -> pathlib.Path:
    """Writes ``folder``, which is made, and returns it."""
    here = pathlib.Path(__file__).resolve().parent
    for backend in backends:
        to = pathlib.Path(folder) / "build" / f"torch-{backend}"
        to.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(here / "_hf_kernel.py", to / "__init__.py")
        number = __version__.replace(".", "_")
        (to / "metadata.json").write_text(json.dumps({
            "id": f"kvbuf_attention_{backend}_{number}",
            "name": "kvbuf-attention", "version": 1, "license": "Apache-2.0",
            "python-depends": [], "backend": {"type": backend}}, indent=2) + "\n")
        if alone:
            shutil.copytree(here, to / "packages" / "kvbuf", dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("__pycache__"))
    return pathlib.Path(folder)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m kvbuf.hf_kernels",
        description="Writes a folder in the layout of Hugging Face's kernels.")
    parser.add_argument("folder", help="is made, or written over")
    parser.add_argument("--alone", action="store_true",
                        help="copy this kvbuf into it, for where none is installed")
    parser.add_argument("--backend", action="append", choices=BACKENDS,
                        help="of torch's; by default all")
    options = parser.parse_args(arguments)
    print(write(options.folder, options.alone, options.backend or BACKENDS))


if __name__ == "__main__":
    main()
