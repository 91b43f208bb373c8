# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that a launch runs beside each other, from one file each.

    beside.py KERNEL.mlir KERNEL.mlir...                 > both.mlir
    kvbuf-compile both.mlir --emit=target | beside.py -  > launched.mlir

The first form puts kernels of the tile or scheduled stage into one module; their
memory of the runtime's gets names of its own. The second says in a module of the
target stage that a launch of the first kernel runs the others, too, as artifacts
of ragged batches do for sequences of few and of many query rows.
"""

import re
import sys


def merge(texts):
    aliases, bodies = [], []
    for number, text in enumerate(texts):
        for alias in re.findall(r"^#(\w+) =", text, re.M):
            text = re.sub(rf"#{alias}\b", f"#{alias}_{number}", text)
        text = re.sub(r'(kvbuffer.access = "(?:workspace|counter)", '
                      r'kvbuffer.name = "\w+)"', rf'\g<1>_{number}"', text)
        head, module, rest = re.split(r"^(module .*)$", text, 1, re.M)
        aliases.append(head)
        bodies.append(re.search(r"^    gpu\.func.*?^    }\n", rest,
                                re.S | re.M).group())
    return (f"{''.join(aliases)}{module}\n  gpu.module @kernels {{\n"
            f"{''.join(bodies)}  }}\n}}\n")


def launch(text):
    first, *others = re.findall(r'\bentry = "(\w+)"', text)
    names = ", ".join(f'"{name}"' for name in others)
    # Each is the next one's alternative, for launches without long sequences.
    for name, after in zip((first, *others), others):
        beside = f"beside = [{names}], " if name == first else ""
        text = text.replace(
            f'entry = "{name}"', f'{beside}entry = "{name}", instead = "{after}", '
            'launch_if = sum(seq_q, -8)', 1)
    return text


if sys.argv[1:] == ["-"]:
    sys.stdout.write(launch(sys.stdin.read()))
else:
    sys.stdout.write(merge([open(name).read() for name in sys.argv[1:]]))
