"""Runs a graph of linalg as it is and raised, and compares the results.

    raise_and_run.py FILE [--attentions=N] [--pass-options=OPTIONS]
                     [--target=CHIP] [--schedule=LIST] [--plant=OLD=>NEW]
                     [--range=N=LOW:HIGH]...

FILE is a module with one function, @main, from tensors to one tensor. It runs on
the host, through upstream's passes and mlir-runner, with fresh random inputs.
Then `kvbuf-raise-attention` has to find N problems. What stands before the
problem runs on the host, the problem itself is a kernel on the emulator, and what
stands after it runs on the host again. The two results may differ by what
rounding weights and results to 16 bits does.

Inputs of floats are standard normal; of i1, mostly true; integers of argument N lie
between LOW and HIGH.
"""

import argparse
import pathlib
import re
import secrets
import sys
import tempfile

import numpy as np

from graphs import Tensor, from_bits, on_host, signature, strip, to_bits, tool

PROBLEM = re.compile(
    r"^ *(%\w+) = kvbuffer\.attention q\((%\w+)\) k\((%\w+)\) v\((%\w+)\) "
    r"out\(%\w+\)(?: sink\((%\w+)\))? (\{.*?\}) : (tensor<[^>]*>), (tensor<[^>]*>), "
    r"(tensor<[^>]*>), (tensor<[^>]*>)(?:, sink (tensor<[^>]*>))? -> tensor<[^>]*>"
    r"(?: captures\((.*?) : (.*?)\))?((?: (?:score|visible) \{.*?^    \})*)$", re.M | re.S)


def operand_types(types):
    """Q, K, V and O of a kernel that takes caches."""
    tq, tk, tv, to = types
    def cache(t):
        return (f"!kvbuffer.cache<dense, {t.kind}, heads = {t.shape[2]}, "
                f"head_size = {t.shape[3]}>")
    def tensor(t):
        return f"memref<?x?x{t.shape[2]}x{t.shape[3]}x{t.kind}>"
    return tensor(tq), cache(tk), cache(tv), tensor(to)


def run_kernel(attrs, q, k, v, types, target, schedule):
    """The problem on the emulator."""
    tq, tk, tv, to = types
    q_type, k_type, v_type, o_type = operand_types(types)
    text = (f"func.func @attention(%q: {q_type}, %k: {k_type}, %v: {v_type}, "
            f"%o: {o_type}) {{\n  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) "
            f"{attrs} : {q_type}, {k_type}, {v_type}, {o_type}\n  return\n}}\n")
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
        return from_bits(np.load(path / "o.npy"), to.kind)


def run_program(attrs, q, k, v, sink, types, captures, score, target):
    """The problem with a sink, or functions that read tensors, likewise."""
    import kvbuf
    tq, tk, tv, to = types
    q_type, k_type, v_type, o_type = operand_types(types)
    score = re.sub(r"tensor\.extract (.*?) : tensor<", r"memref.load \1 : memref<",
                   score).replace(": tensor<", ": memref<")
    memrefs = [t.text.replace("tensor<", "memref<") for _, t in captures]
    args = "".join(f', %x{i}: {m} {{kvbuffer.name = "x{i}"}}'
                   for i, m in enumerate(memrefs))
    names = ", ".join(f"%x{i}" for i in range(len(captures)))
    given = f" captures({names} : {', '.join(memrefs)})" if captures else ""
    more, more_type = "", ""
    if sink is not None:
        args += f", %sink: memref<{sink.size}xf32>"
        more, more_type = " sink(%sink)", f", sink memref<{sink.size}xf32>"
    text = (f"func.func @attention(%q: {q_type}, %k: {k_type}, %v: {v_type}{args}, "
            f"%o: {o_type}) {{\n  kvbuffer.attention q(%q) k(%k) v(%v) out(%o){more} "
            f"{attrs} : {q_type}, {k_type}, {v_type}, {o_type}{more_type}{given}{score}\n"
            "  return\n}\n")
    bits = [to_bits(x, tq.kind) for x in (q, k, v)]
    out = to_bits(np.full(to.shape, np.nan), to.kind)
    kvbuf.compile(text, target=target, machine_code=False)(
        q=bits[0], k=bits[1], v=bits[2], o=out,
        **{f"x{i}": np.atleast_1d(to_bits(x, t.kind)) for i, (x, t) in enumerate(captures)},
        **({} if sink is None else {"sink": sink.astype(np.float32)}))
    return from_bits(out, to.kind)


def run_raised(raised, inputs, result, options):
    problem = PROBLEM.search(raised)
    if not problem:
        sys.exit(f"no single problem to run in\n{raised}")
    name, q, k, v, sink, attrs, *types, sink_type, read, read_types, score = problem.groups()
    types = [Tensor(t) for t in types]
    sinks = [sink] if sink else []
    sink_types = [Tensor(sink_type)] if sink else []
    read = read.split(", ") if read else []
    read_types = [Tensor(t) for t in re.findall(r"tensor<[^>]*>", read_types or "")]
    head, tail = raised[:problem.start()], raised[problem.end():]
    values = ", ".join(t.text for t in types[:3] + sink_types + read_types)
    before = re.sub(r"(@main\(.*?\)\s*->\s*)\(?tensor<[^>]*>(?: \{[^}]*\}\))?",
                    lambda m: f"{m[1]}({values})", head, count=1, flags=re.S)
    names = ", ".join([q, k, v] + sinks + read)
    before += f"return {names} : {values}\n}}\n}}"
    arrays = on_host(strip(before), "main", inputs, types[:3] + sink_types + read_types)
    if score or sink:
        given = arrays.pop(3) if sink else None
        out = run_program(attrs, *arrays[:3], given, types,
                          list(zip(arrays[3:], read_types)), score,
                          options.target)
    else:
        out = run_kernel(attrs, *arrays, types, options.target,
                         options.schedule)
    after = head + tail
    after = re.sub(r"@main\(", f"@main({name}: {types[3].text}, ", after, count=1)
    return on_host(strip(after), "main", [(out, types[3])] + inputs, [result])[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--attentions", type=int, default=1)
    parser.add_argument("--pass-options", default="")
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--schedule", default="")
    parser.add_argument("--plant", default="",
                        help="OLD=NEW: damage the raised module")
    parser.add_argument("--range", action="append", default=[])
    options = parser.parse_args()
    ranges = {int(n): [int(x) for x in bounds.split(":")]
              for n, bounds in (text.split("=") for text in options.range)}
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
        elif type.kind[0] == "i":
            low, high = ranges[len(inputs)]
            array = rng.integers(low, high, type.shape, endpoint=True)
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


if __name__ == "__main__":
    main()
