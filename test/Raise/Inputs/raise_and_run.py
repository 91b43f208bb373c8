"""Runs a graph of linalg as it is and raised, and compares the results.

    raise_and_run.py FILE [--attentions=N] [--pass-options=OPTIONS]
                     [--target=CHIP] [--schedule=LIST] [--plant=OLD=>NEW]

FILE is a module with one function, @main, from tensors to one tensor. It runs on
the host, through upstream's passes and mlir-runner, with fresh random inputs.
Then `kvbuf-raise-attention` has to find N problems. What stands before the
problem runs on the host, the problem itself is a kernel on the emulator, and what
stands after it runs on the host again. The two results may differ by what
rounding weights and results to 16 bits does.

Inputs of 16 bits are standard normal; of i1, mostly true.
"""

import argparse
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import tempfile

import numpy as np

WIDEN = [
    "--canonicalize", "--convert-elementwise-to-linalg",
    "--linalg-generalize-named-ops",
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
    """A ranked type of static sizes."""

    def __init__(self, text):
        self.text = text
        *sizes, self.kind = re.match(r"tensor<(.*)>$", text)[1].split("x")
        self.shape = [int(n) for n in sizes]


def literal(array, kind):
    bits = to_bits(array, kind)
    return f'dense<"0x{bits.tobytes().hex().upper()}">'


def on_host(module, function, inputs, results):
    """Runs a function with constants as arguments; arrays of its results."""
    lines, args = [], []
    for i, (array, type) in enumerate(inputs):
        if type.kind == "i1":
            flat = ", ".join("true" if x else "false" for x in array.ravel())
            lines.append(f"%c{i} = arith.constant dense<[{flat}]> : "
                         f"tensor<{array.size}xi1>")
            sizes = ", ".join(map(str, type.shape))
            group = ", ".join(map(str, range(len(type.shape))))
            lines.append(
                f"%a{i} = tensor.expand_shape %c{i} [[{group}]] output_shape "
                f"[{sizes}] : tensor<{array.size}xi1> into {type.text}"
                if len(type.shape) > 1 else
                f"%a{i} = tensor.cast %c{i} : {type.text} to {type.text}")
        else:
            lines.append(f"%a{i} = arith.constant {literal(array, type.kind)} : "
                         f"{type.text}")
        args.append(f"%a{i}")
    names = ", ".join(f"%r{i}" for i in range(len(results)))
    types = ", ".join(t.text for _, t in inputs)
    lines.append(f"{names} = func.call @{function}({', '.join(args)}) : "
                 f"({types}) -> ({', '.join(t.text for t in results)})")
    for i, type in enumerate(results):
        wide = type.text.replace(type.kind + ">", "f32>")
        lines.append(f"%w{i} = arith.extf %r{i} : {type.text} to {wide}"
                     if type.kind != "f32" else
                     f"%w{i} = tensor.cast %r{i} : {wide} to {wide}")
        lines.append(f"%u{i} = tensor.cast %w{i} : {wide} to tensor<*xf32>")
        lines.append(f"func.call @printMemrefF32(%u{i}) : (tensor<*xf32>) -> ()")
    entry = ("func.func private @printMemrefF32(tensor<*xf32>)\n"
             "func.func @entry() {\n" + "\n".join(lines) + "\nreturn\n}\n")
    # What widening allows to contract would stop mlir-runner at calls of libm.
    wide = tool("mlir-opt", *WIDEN, text=module + "\n" + entry)
    lowered = tool("mlir-opt", *LOWER,
                   text=wide.replace(" fastmath<contract>", ""))
    lib = os.path.join(os.path.dirname(os.path.dirname(
        os.path.realpath(shutil.which("mlir-opt")))), "lib")
    printed = tool("mlir-runner", "-e", "entry", "--entry-point-result=void",
                   f"--shared-libs={lib}/libmlir_runner_utils.so",
                   f"--shared-libs={lib}/libmlir_c_runner_utils.so",
                   text=lowered)
    arrays = []
    for block, type in zip(printed.split("Unranked Memref")[1:], results):
        numbers = re.findall(r"-?(?:inf|nan|\d[\d.]*(?:e[+-]?\d+)?)",
                             block.split("data =")[1])
        arrays.append(np.array([float(n) for n in numbers]).reshape(type.shape))
    return arrays


def signature(module):
    match = re.search(r"func\.func (?:public )?@main\((.*?)\)\s*->\s*\(?"
                      r"(tensor<[^>]*>)", module, re.S)
    types = re.findall(r"%\w+: (tensor<[^>]*>)", match[1])
    return [Tensor(t) for t in types], Tensor(match[2])


PROBLEM = re.compile(
    r"^ *(%\w+) = kvbuffer\.attention q\((%\w+)\) k\((%\w+)\) v\((%\w+)\) "
    r"out\(%\w+\) (\{.*?\}) : (tensor<[^>]*>), (tensor<[^>]*>), "
    r"(tensor<[^>]*>), (tensor<[^>]*>) -> tensor<[^>]*>$", re.M)


def run_kernel(attrs, q, k, v, types, target, schedule):
    """The problem on the emulator."""
    tq, tk, tv, to = types
    cache = (f"!kvbuffer.cache<dense, {tk.kind}, heads = {tk.shape[2]}, "
             f"head_size = {tk.shape[3]}>")
    qo = f"memref<?x?x{tq.shape[2]}x{tq.shape[3]}x{tq.kind}>"
    text = (f"func.func @attention(%q: {qo}, %k: {cache}, %v: {cache}, "
            f"%o: {qo}) {{\n  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) "
            f"{attrs} : {qo}, {cache}, {cache}, {qo}\n  return\n}}\n")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "p.mlir").write_text(text)
        for name, array in zip("qkv", (q, k, v)):
            np.save(path / f"{name}.npy", to_bits(array, tq.kind))
        command = ["kvbuf-run", str(path / "p.mlir"), "--device=emulator",
                   f"--target={target}", "--check",
                   f"--size=batch={tq.shape[0]}", f"--size=seq_q={tq.shape[1]}",
                   f"--size=seq_k={tk.shape[1]}", f"--output=o={path}/o.npy"]
        command += [f"--input={n}={path}/{n}.npy" for n in "qkv"]
        if schedule:
            command.append(f"--schedule={schedule}")
        tool(*command, text="")
        return from_bits(np.load(path / "o.npy"), tq.kind)


def run_raised(raised, inputs, result, options):
    problem = PROBLEM.search(raised)
    if not problem:
        sys.exit(f"no single problem to run in\n{raised}")
    name, q, k, v, attrs, *types = problem.groups()
    types = [Tensor(t) for t in types]
    head, tail = raised[:problem.start()], raised[problem.end():]
    values = ", ".join(t.text for t in types[:3])
    before = re.sub(r"(@main\(.*?\)\s*->\s*)\(?tensor<[^>]*>(?: \{[^}]*\}\))?",
                    lambda m: f"{m[1]}({values})", head, count=1, flags=re.S)
    before += f"return {q}, {k}, {v} : {values}\n}}\n}}"
    arrays = on_host(strip(before), "main", inputs, types[:3])
    out = run_kernel(attrs, *arrays, types, options.target, options.schedule)
    after = head + tail
    after = re.sub(r"@main\(", f"@main({name}: {types[3].text}, ", after, count=1)
    return on_host(strip(after), "main", [(out, types[3])] + inputs, [result])[0]


def strip(module):
    """The functions of a module without its own line."""
    aliases, body = re.match(r"(.*?)^module[^{]*(?:attributes \{[^}]*\} )?\{(.*)\}"
                             r"\s*$", module, re.S | re.M).groups()
    return aliases + body


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--attentions", type=int, default=1)
    parser.add_argument("--pass-options", default="")
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--schedule", default="")
    parser.add_argument("--plant", default="",
                        help="OLD=NEW: damage the raised module")
    options = parser.parse_args()
    seed = secrets.randbits(32)
    print("seed", seed)
    rng = np.random.default_rng(seed)
    source = pathlib.Path(options.file).read_text()
    plain = tool("mlir-opt", text=source)
    types, result = signature(plain)
    inputs = []
    for type in types:
        if type.kind == "i1":
            array = rng.random(type.shape) < 0.8
        else:
            array = from_bits(to_bits(rng.standard_normal(type.shape),
                                      type.kind), type.kind)
        inputs.append((array, type))
    passes = "kvbuf-raise-attention"
    if options.pass_options:
        passes += "{" + options.pass_options + "}"
    raised = tool("kvbuf-opt", f"--pass-pipeline=builtin.module({passes})",
                  "--mlir-print-local-scope", text=source)
    count = raised.count("kvbuffer.attention")
    if count != options.attentions:
        sys.exit(f"expected {options.attentions} kvbuffer.attention, got {count}")
    for left in ("math.exp", "linalg.softmax", "linalg.batch_matmul"):
        if left in raised:
            sys.exit(f"{left} is left\n{raised}")
    if options.plant:
        old, new = options.plant.split("=>")
        assert old in raised, raised
        raised = raised.replace(old, new)
    expected = on_host(strip(plain), "main", inputs, [result])[0]
    actual = run_raised(raised, inputs, result, options)
    error = np.abs(actual - expected)
    # Weights and the result are rounded to 16 bits, in the graph perhaps the
    # scores too: half a unit in the last place of numbers below 8.
    unit = 2.0**-8 if result.kind != "f16" else 2.0**-11
    scale = max(np.abs(expected).max(), 1.0)
    print(f"largest error {error.max():.3g}, mean {error.mean():.3g}, largest "
          f"result {np.abs(expected).max():.3g}")
    if not (error.max() <= 8 * unit * scale and error.mean() <= unit):
        sys.exit("the raised graph computes something else")


main()
