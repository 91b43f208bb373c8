"""Graphs of linalg on the host, for raise_and_run.py and raise_and_launch.py."""

import os
import re
import shutil
import subprocess
import sys

import numpy as np

WIDEN = [
    "--canonicalize", "--convert-elementwise-to-linalg",
    "--linalg-generalize-named-ops",
    "--math-expand-ops=ops=rsqrt",
    "--arith-emulate-unsupported-floats=source-types=bf16,f16 target-type=f32"
]
LOWER = [
    "--one-shot-bufferize=bufferize-function-boundaries allow-unknown-ops "
    "function-boundary-type-conversion=identity-layout-map",
    "--convert-linalg-to-loops", "--lower-affine", "--convert-scf-to-cf",
    "--expand-strided-metadata", "--lower-affine",
    "--arith-expand=include-bf16=true include-f8e8m0=false",
    "--convert-math-to-libm", "--convert-to-llvm",
    "--reconcile-unrealized-casts"
]


def to_bits(x, kind):
    """Little-endian bytes of an array of floats."""
    if kind == "bf16":
        bits = x.astype(np.float32).view(np.uint32)
        bits = bits + 0x7FFF + ((bits >> 16) & 1)
        return (bits >> 16).astype(np.uint16)
    return x.astype({"f16": np.float16, "f32": np.float32,
                     "i32": np.int32, "i64": np.int64, "i1": np.bool_}[kind])


def from_bits(x, kind):
    if kind == "bf16":
        return (x.astype(np.uint32) << 16).view(np.float32)
    return x.astype(np.float64)


def tool(*command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{text[:2000]}\n{done.stderr[:3000]}")
    return done.stdout


class Tensor:
    """A ranked type; `sizes` are those that are not in it, as in 2x4x24."""

    def __init__(self, text, sizes=None):
        self.text = text
        *own, self.kind = re.match(r"tensor<(.*)>$", text)[1].split("x")
        self.shape = [int(n) for n in (sizes.split("x") if sizes else own)]
        self.known = f"tensor<{'x'.join([*map(str, self.shape), self.kind])}>"

    def arrives(self, name, static):
        """Text that makes a value of this type of one of static sizes."""
        return f"{name} = tensor.cast {static} : {self.known} to {self.text}"


def literal(array, kind):
    bits = to_bits(array, kind)
    return f'dense<"0x{bits.tobytes().hex().upper()}">'


def entry_of(function, inputs, results):
    """A function that calls another one with constants, and prints its results."""
    lines, args = [], []
    for i, (array, type) in enumerate(inputs):
        if type.kind == "i1":
            flat = ", ".join("true" if x else "false" for x in array.ravel())
            lines.append(f"%c{i} = arith.constant dense<[{flat}]> : "
                         f"tensor<{array.size}xi1>")
            sizes = ", ".join(map(str, type.shape))
            group = ", ".join(map(str, range(len(type.shape))))
            lines.append(
                f"%s{i} = tensor.expand_shape %c{i} [[{group}]] output_shape "
                f"[{sizes}] : tensor<{array.size}xi1> into {type.known}"
                if len(type.shape) > 1 else
                f"%s{i} = tensor.cast %c{i} : {type.known} to {type.known}")
        else:
            lines.append(f"%s{i} = arith.constant {literal(array, type.kind)} : "
                         f"{type.known}")
        lines.append(type.arrives(f"%a{i}", f"%s{i}"))
        args.append(f"%a{i}")
    names = ", ".join(f"%r{i}" for i in range(len(results)))
    types = ", ".join(t.text for _, t in inputs)
    lines.append(f"{names} = func.call @{function}({', '.join(args)}) : "
                 f"({types}) -> ({', '.join(t.text for t in results)})")
    for i, type in enumerate(results):
        wide = type.text.replace(type.kind + ">", "f32>")
        how = {"f32": "tensor.cast", "i1": "arith.uitofp",
               "i32": "arith.sitofp", "i64": "arith.sitofp"}
        lines.append(f"%w{i} = {how.get(type.kind, 'arith.extf')} %r{i} : "
                     f"{type.text} to {wide}")
        lines.append(f"%u{i} = tensor.cast %w{i} : {wide} to tensor<*xf32>")
        lines.append(f"func.call @printMemrefF32(%u{i}) : (tensor<*xf32>) -> ()")
    return ("func.func private @printMemrefF32(tensor<*xf32>)\n"
            "func.func @entry() {\n" + "\n".join(lines) + "\nreturn\n}\n")


def runner_libraries():
    """What mlir-runner needs to print."""
    lib = os.path.join(os.path.dirname(os.path.dirname(
        os.path.realpath(shutil.which("mlir-opt")))), "lib")
    return [f"--shared-libs={lib}/libmlir_runner_utils.so",
            f"--shared-libs={lib}/libmlir_c_runner_utils.so"]


def printed_arrays(printed, results):
    """The arrays that a program has printed."""
    arrays = []
    for block, type in zip(printed.split("Unranked Memref")[1:], results):
        numbers = re.findall(r"-?(?:inf|nan|\d[\d.]*(?:e[+-]?\d+)?)",
                             block.split("data =")[1])
        arrays.append(np.array([float(n) for n in numbers]).reshape(type.shape))
    return arrays


def on_host(module, function, inputs, results):
    """Runs a function with constants as arguments; arrays of its results."""
    entry = entry_of(function, inputs, results)
    # What widening allows to contract would stop mlir-runner at calls of libm.
    wide = tool("mlir-opt", *WIDEN, text=module + "\n" + entry)
    lowered = tool("mlir-opt", *LOWER,
                   text=wide.replace(" fastmath<contract>", ""))
    printed = tool("mlir-runner", "-e", "entry", "--entry-point-result=void",
                   *runner_libraries(), text=lowered)
    return printed_arrays(printed, results)


def signature(module, sizes=()):
    """Types of @main's arguments and first result; `sizes` are those of them all."""
    match = re.search(r"func\.func (?:public )?@main\((.*?)\)\s*->\s*\(?"
                      r"(tensor<[^>]*>)", module, re.S)
    types = re.findall(r"%\w+: (tensor<[^>]*>)", match[1])
    known = list(sizes) or [None] * (len(types) + 1)
    return [Tensor(*t) for t in zip(types, known)], Tensor(match[2], known[-1])


def strip(module):
    """The functions of a module without its own line."""
    aliases, body = re.match(r"(.*?)^module[^{]*(?:attributes \{[^}]*\} )?\{(.*)\}"
                             r"\s*$", module, re.S | re.M).groups()
    return aliases + body


def widened(module):
    """The graph in f32 for bf16 and f64 for f32."""
    module = module.replace("f32", "f64").replace("bf16", "f32")
    for kind, old, new in (("f64", "0xFF800000", "0xFFF0000000000000"),
                           ("f32", "0xFF80", "0xFF800000")):
        module = module.replace(f"{old} : {kind}", f"{new} : {kind}").replace(
            f"<{old}> : tensor<{kind}>", f"<{new}> : tensor<{kind}>")
    # What was rounded from f64, as torch's numbers are.
    return re.sub(r"arith\.(trunc|ext)f (%\w+ : f64 to f64)", r"arith.bitcast \2", module)
