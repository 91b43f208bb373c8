#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executes the code object of an artifact for gfx942 or gfx950, as LLVM disassembles it.

    tools/run-code-object.py x.kvbuf --input q=q.npy --input k=k.npy --input v=v.npy \\
        --output o=o.npy

What the emulator runs is the target stage; this is what LLVM made of it. Numbers are the
emulator's, so that results can be compared bit for bit. What is looked at:

  - registers that a load fills are not touched before they are awaited; loads and stores
    happen when they are awaited (--landing=early: when they are issued), so that bytes of
    LDS are there for other waves no earlier than the code makes sure of;
  - each access lies in a tensor, in LDS, in the arguments or in the code's constants, and
    no byte of LDS is read that nothing has written.

Waves of a block run one after the other from barrier to barrier, in an order that --order
chooses, blocks one after the other. Tensors are contiguous, sizes those of the inputs'
shapes, outputs have the shapes that follow. Elements of bf16 are those of uint16 arrays.
Instructions that are not executed yet are named when a wave comes to one, with status 1;
hazards that need s_nop are `kvbuf-compile --check-isa`'s. Only the first kernel of the
artifact is run; --without=ADDRESS leaves an instruction out.
"""

import argparse
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent))

TYPES = {"bf16": "uint16", "f16": "float16", "f32": "float32", "i32": "int32", "i64": "int64"}


def pair(text):
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text}: expected NAME=VALUE")
    return name, value


def number(text):
    name, value = pair(text)
    if not value.isdecimal():
        raise argparse.ArgumentTypeError(f"{text}: expected NAME=N")
    return name, int(value)


def address(text):
    try:
        return int(text, 16)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: expected an address in hex") from None


def fail(text):
    sys.exit(f"run-code-object: error: {text}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("artifact")
    parser.add_argument("--input", type=pair, action="append", default=[], metavar="NAME=NPY")
    parser.add_argument("--output", type=pair, action="append", default=[], metavar="NAME=NPY")
    parser.add_argument("--size", type=number, action="append", default=[], metavar="NAME=N")
    parser.add_argument("--landing", choices=("late", "early"), default="late")
    parser.add_argument("--order", type=int, default=0, metavar="SEED")
    parser.add_argument("--without", type=address, action="append", default=[],
                        metavar="ADDRESS")
    parser.add_argument("--disassembler", default="llvm-objdump-22", metavar="PATH")
    return parser.parse_args()


def bind(manifest, inputs, sizes):
    """All tensors: those given, and zeros, NaN in floats, for those that are written."""
    import numpy as np
    tensors = {}
    for spec in manifest["tensors"]:
        name, array = spec["name"], inputs.get(spec["name"])
        kind = TYPES.get(spec["dtype"], "uint8")
        if array is None and spec["access"] == "read":
            fail(f"no --input for tensor '{name}'")
        if array is not None:
            if str(array.dtype) != kind or array.ndim != len(spec["shape"]):
                fail(f"tensor '{name}' is {array.dtype} of {array.ndim} dimensions; expected "
                     f"{kind} of {len(spec['shape'])}")
            for extent, size in zip(array.shape, spec["shape"]):
                known = sizes.setdefault(size, extent) if isinstance(size, str) else (
                    size if isinstance(size, int) else extent)
                if known != extent:
                    fail(f"tensor '{name}' has a size of {extent}; expected {known}")
        tensors[name] = array
    from code_objects.launch import evaluate
    for spec in manifest["tensors"]:
        if tensors[spec["name"]] is None:
            shape = [evaluate(size, sizes) for size in spec["shape"]]
            kind = np.dtype(TYPES.get(spec["dtype"], "uint8"))
            tensors[spec["name"]] = np.frombuffer(
                b"\xff" * (int(np.prod(shape)) * kind.itemsize), kind).reshape(shape)
    return tensors


def main():
    options = parse()
    import numpy as np
    from code_objects.image import Fault
    from code_objects.launch import Launch, open_artifact
    sizes = {"sms": 4} | dict(options.size)
    try:
        manifest, _ = open_artifact(options.artifact)
        known = [spec["name"] for spec in manifest["tensors"]]
        for name, _ in options.input + options.output:
            if name not in known:
                fail(f"the kernel has no tensor '{name}'; expected one of {', '.join(known)}")
        inputs = {}
        for name, path in options.input:
            try:
                inputs[name] = np.load(path)
            except ValueError:
                fail(f"{path} holds no array of NumPy")
        tensors = bind(manifest, inputs, sizes)
        launch = Launch(options.artifact, options.disassembler, tensors, sizes,
                        late=options.landing == "late")
        for address in options.without:
            launch.leave_out(address)
        written = launch.run(options.order)
    except (Fault, OSError) as fault:
        fail(fault)
    for name, path in options.output:
        np.save(path, np.frombuffer(written[name].tobytes(),
                                    tensors[name].dtype).reshape(tensors[name].shape))


if __name__ == "__main__":
    main()
