# RUN: %python %s %S/../Conversion
"""Attention of other compilers' dialects computes what each op says, against f64.

The ops are those of test/Conversion/attention-ops-*.mlir, in generic form. Each is
converted; the problem runs on the emulator, what stands around it on the host. The
references are each op's definition in numpy.
"""

import pathlib
import re
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).parent / "Inputs"))
from graphs import Tensor, from_bits, signature, to_bits, tool  # noqa: E402
from raise_and_run import run_raised  # noqa: E402

FOLDER = pathlib.Path(sys.argv[1])


def attention(q, k, v, scale, change=lambda s: s):
    """Of [..., heads, tokens, columns]; heads that follow each other share keys."""
    if q.ndim > 2:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    s = change(scale * q @ np.swapaxes(k, -1, -2))
    highest = s.max(-1, keepdims=True)
    w = np.exp(s - np.where(np.isinf(highest), 0, highest))
    total = w.sum(-1, keepdims=True)
    return w / np.where(total == 0, 1, total) @ v


def hide(visible):
    return lambda s: np.where(visible, s, -np.inf)


def inside(x):
    """[batch, heads, tokens, ...] of [batch, tokens, heads, ...], or the reverse."""
    return np.swapaxes(x, 1, 2)


def each(lengths):
    return lengths[:, None, None, None]


I24, J24, J40 = np.arange(24)[:, None], np.arange(24), np.arange(40)
ROOT32 = 32**-0.5


def packed(q, k, v):
    q, k, v = (inside(x.reshape(2, 24, -1, 32)) for x in (q, k, v))
    o = attention(q, k, v, 0.25, lambda s: hide(J24 <= I24)(20 * np.tanh(s / 20)))
    return inside(o).reshape(2, 24, 256)


CASES = {
    "torch": {
        "causal": lambda q, k, v: attention(q, k, v, 0.25, hide(J24 <= I24)),
        "causal_bias": lambda q, k, v, m: attention(
            q, k, v, ROOT32, lambda s: hide(J40 <= I24)(s + m)),
    },
    "tm-tensor": {
        "masked": lambda q, k, v, m: attention(q, k, v, ROOT32, lambda s: s + m),
        "truth": lambda q, k, v, m: attention(q, k, v, ROOT32, hide(m)),
    },
    "iree": {
        "masked": lambda q, k, v, m: attention(q, k, v, 0.25, lambda s: s + m),
        "function": lambda q, k, v: attention(
            q, k, v, 0.25, lambda s: s * s + (J40 - I24) / 32),
        "online": lambda q, k, v: attention(q, k, v, 0.25, hide(J40 <= I24 + 16)),
    },
    "stablehlo": {
        "pad": lambda q, k, v, m, n: inside(attention(
            inside(q), inside(k), inside(v), 0.25,
            hide((I24 < each(m)) & (J40 < each(n))))),
        "composite": lambda q, k, v, m: inside(
            attention(inside(q), inside(k), inside(v), 0.25, lambda s: s + m)),
    },
    "onnx": {
        "packed": packed,
        "lengths": lambda q, k, v, m, n: attention(
            q, k, v, ROOT32, hide(m & (J40 < each(n)))),
        "window": lambda q, k, v: attention(
            q, k, v, ROOT32, hide((J24 >= I24 - 5) & (J24 <= I24 + 2))),
    },
}


class Options:
    target, schedule = "sm_80", ""


for dialect, cases in CASES.items():
    sections = (FOLDER / f"attention-ops-{dialect}.mlir").read_text().split("// -----")
    for name, reference in cases.items():
        text = next(s for s in sections if f'sym_name = "{name}"' in s)
        text = text.replace(f'sym_name = "{name}"', 'sym_name = "main"')
        converted = tool("kvbuf-opt", "--allow-unregistered-dialect",
                         "--kvbuf-convert-attention-ops", "--symbol-dce",
                         "--mlir-print-local-scope", text=text)
        # What the exporter puts around the op.
        converted = re.sub(r'(%\w+) = "stablehlo.transpose"\((\S+)\) .*array<i64: (.*?)>.*'
                           r': \((.*?)\) -> (\S+)',
                           r"%init = tensor.empty() : \5\n\1 = linalg.transpose "
                           r"ins(\2 : \4) outs(%init : \5) permutation = [\3]", converted)
        types, result = signature(converted)
        rng = np.random.default_rng(len(name))
        inputs = []
        for type in types:
            array = (rng.random(type.shape) < 0.6 if type.kind == "i1" else
                     rng.integers(0, 41, type.shape) if type.kind[0] == "i" else
                     from_bits(to_bits(rng.standard_normal(type.shape), type.kind),
                               type.kind).astype(np.float64))
            inputs.append((array, type))
        expected = reference(*[array for array, _ in inputs])
        actual = run_raised(converted, inputs, result, Options)
        error = np.abs(actual - expected)
        # Weights and the result are rounded to 16 bits.
        unit = 2.0**-8 if types[0].kind == "bf16" else 2.0**-11
        print(f"{dialect} {name}: largest error {error.max():.3g}, mean {error.mean():.3g}")
        if not (error.max() <= 4 * unit and error.mean() <= unit):
            sys.exit(f"{name} computes something else")
