#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes an attention problem as MLIR, for kvbuf-compile and kvbuf-run.

    benchmark/problem.py heads=8 kv_heads=2 cache=paged page_size=64 causal=true
    benchmark/problem.py head_size=80 dtype=f16 | kvbuf-compile - -o d80.kvbuf

Options, with their defaults: those of the manifest's "problem".
"""

import sys

#: The options of a problem and their defaults. `scale=None`: 1/sqrt(head_size);
#: `window_*=-1`: no limit; `softcap=0`: none; `kv_heads=0`: as many as heads;
#: `*_cache_depth=0`: rows of head_size elements; `index=i64`: the type of
#: tables, lengths and offsets; `lengths=all`: lengths count the new tokens;
#: `seq_q=0`: query rows are known at the launch; `kv_dtype=f8E4M3FN`: elements
#: of the caches that are not of `dtype`; `granularity`: tensor, head or a
#: number, what a scale of theirs is of; empty: they have none;
#: `v_granularity`: that of V, where it is not K's;
#: `v_head_size=0`: that of V and O is `head_size`; `o_dtype=f32`: elements of O
#: that are not of `dtype`; `latent=true`: V is the first `v_head_size` columns
#: of K's rows, in one cache with them.
DEFAULTS = {
    "name": "kernel", "dtype": "bf16", "heads": 2, "kv_heads": 0,
    "head_size": 64, "query": "dense", "cache": "dense", "page_size": 0,
    "k_cache_depth": 0, "k_head_dim_offset": 0, "v_cache_depth": 0,
    "v_head_dim_offset": 0, "index": "", "lengths": "",
    "causal": False, "window_left": -1, "window_right": -1, "softcap": 0.0,
    "sink": False, "lse": False, "scale": None, "batch_invariant": False,
    "schedule": "", "seq_q": 0, "kv_dtype": "", "granularity": "",
    "v_granularity": "", "v_head_size": 0, "o_dtype": "", "latent": False,
}


def problem(**options):
    """The module's text. Raises ValueError on an unknown option."""
    unknown = options.keys() - DEFAULTS.keys()
    if unknown:
        raise ValueError(f"no such option: {', '.join(sorted(unknown))}; "
                         f"expected {', '.join(DEFAULTS)}")
    o = DEFAULTS | options
    heads, kv_heads = o["heads"], o["kv_heads"] or o["heads"]
    ragged = o["query"] == "ragged"
    rows = "?" if ragged else f"?x{o['seq_q'] or '?'}"
    strides = "?, ?, 1" if ragged else "?, ?, ?, 1"
    page = f", page_size = {o['page_size']}" if o["page_size"] else ""
    sizes = {"k": o["head_size"], "v": o["v_head_size"] or o["head_size"]}
    query, out = (f"memref<{rows}x{heads}x{size}x{dtype}, strided<[{strides}]>>"
                  for size, dtype in ((sizes["k"], o["dtype"]),
                                      (sizes["v"], o["o_dtype"] or o["dtype"])))
    scaled = {"k": o["granularity"],
              "v": o["v_granularity"] or o["granularity"]}
    caches = {}
    for name in "k", "v":
        row = "".join(f", {part} = {o[f'{name}_{part}']}"
                      for part in ("cache_depth", "head_dim_offset")
                      if o[f"{name}_{part}"])
        scale = (f", scale = f32, granularity = {scaled[name]}"
                 if scaled[name] else "")
        caches[name] = (
            f"!kvbuffer.cache<{o['cache']}, {o['kv_dtype'] or o['dtype']}, "
            f"heads = {kv_heads}, head_size = {sizes[name]}{page}{row}"
            f"{scale}>")
    if o["latent"]:
        caches["v"] = caches["k"]
    alike = caches["k"] == caches["v"]
    aliases = ({"!kv": caches["k"]} if alike
               else {"!k": caches["k"], "!v": caches["v"]})
    if out != query:
        aliases["!o"] = out

    operands = {"q": "!q", "k": "!kv" if alike else "!k",
                "v": "!kv" if alike else "!v",
                "out": "!q" if out == query else "!o"}
    if ragged:
        operands["offsets"] = f"memref<?x{o['index'] or 'i32'}>"
    if o["lse"]:
        operands["lse"] = (f"memref<{heads}x?xf32>" if ragged else
                           f"memref<?x{heads}x{o['seq_q'] or '?'}xf32>")
    if o["sink"]:
        operands["sink"] = "memref<?xf32>"

    attributes = []
    mask = []
    if o["causal"]:
        mask.append("causal = true")
    for side in "left", "right":
        if o["window_" + side] >= 0:
            mask.append(f"{side} = {o['window_' + side]}")
    if mask:
        attributes.append(f"mask = #kvbuffer.mask<{', '.join(mask)}>")
    for number in "scale", "softcap":
        if o[number] or (number == "scale" and o[number] is not None):
            attributes.append(f"{number} = {o[number]:.9e} : f32")
    if o["batch_invariant"]:
        attributes.append("batch_invariant")
    if o["lengths"]:
        attributes.append(f'kvbuffer.lengths = "{o["lengths"]}"')
    if o["schedule"]:
        attributes.append(f"schedule = #kvbuffer.schedule<{o['schedule']}>")

    index = f" {{kvbuffer.index = {o['index']}}}" if o["index"] else ""
    arguments = ", ".join(f"%{n}: {t}" + (index if n in ("k", "v") else "")
                          for n, t in operands.items()
                          if n != "v" or not o["latent"])
    uses = " ".join(f"{n}(%{'k' if n == 'v' and o['latent'] else n})"
                    for n in operands)
    types = ", ".join(t if n in ("q", "k", "v", "out") else f"{n} {t}"
                      for n, t in operands.items())
    lines = "".join(f"{name} = {type}\n" for name, type in aliases.items())
    return (f"!q = {query}\n{lines}\n"
            f"func.func @{o['name']}({arguments}) {{\n"
            f"  kvbuffer.attention {uses} {{{', '.join(attributes)}}}\n"
            f"    : {types}\n  return\n}}\n")


def parse(arguments):
    """The options of a list of NAME=VALUE. Raises ValueError."""
    options = {}
    for argument in arguments:
        name, equal, value = argument.partition("=")
        if not equal:
            raise ValueError(f"'{argument}': expected NAME=VALUE")
        if value in ("true", "false"):
            options[name] = value == "true"
        elif name in ("scale", "softcap"):
            options[name] = float(value)
        elif isinstance(DEFAULTS.get(name), int):
            options[name] = int(value)
        else:
            options[name] = value
    return options


if __name__ == "__main__":
    try:
        sys.stdout.write(problem(**parse(sys.argv[1:])))
    except ValueError as error:
        sys.exit(f"problem.py: error: {error}")
