#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes an attention problem as MLIR, for kvbuf-compile and kvbuf-run.

    benchmark/problem.py heads=8 kv_heads=2 cache=paged page_size=64 causal=true
    benchmark/problem.py head_size=80 dtype=f16 | kvbuf-compile - -o d80.kvbuf

Options, with their defaults: those of the manifest's "problem".
"""

import importlib.util
import pathlib
import sys

#: The package's writer, without the package: it needs no library.
_FILE = pathlib.Path(__file__).resolve().parent.parent / "python/kvbuf/_module_text.py"
_SPEC = importlib.util.spec_from_file_location("kvbuf_module_text", _FILE)
text = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(text)

#: Packed rows that engines have, by their bytes (docs/latent.md).
ROWS = {
    "656": "bytes = 656, parts = [<count = 512, element = f8E4M3FN, at = 0, "
           "scale = f32, granularity = 128, scale_at = 512>, "
           "<count = 64, element = bf16, at = 528>]",
    "528": "bytes = 528, parts = [<count = 512, element = f8E4M3FN, at = 0, "
           "scale = f8E8M0FNU, granularity = 32, scale_at = 512>]",
    "584": "bytes = 576, parts = [<count = 448, element = f8E4M3FN, at = 0, "
           "scale = f8E8M0FNU, granularity = 64, scale_at = 576>, "
           "<count = 64, element = bf16, at = 448>], tail = 8, rows = 64, "
           "stride = 37440",
}

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
#: of K's rows, in one cache with them; `row=656`: rows are packed into so many
#: bytes, as `ROWS` says, or as it is written there.
DEFAULTS = {
    "name": "kernel", "dtype": "bf16", "heads": 2, "kv_heads": 0,
    "head_size": 64, "query": "dense", "cache": "dense", "page_size": 0,
    "k_cache_depth": 0, "k_head_dim_offset": 0, "v_cache_depth": 0,
    "v_head_dim_offset": 0, "index": "", "lengths": "",
    "causal": False, "window_left": -1, "window_right": -1, "softcap": 0.0,
    "sink": False, "lse": False, "scale": None, "batch_invariant": False,
    "schedule": "", "seq_q": 0, "kv_dtype": "", "granularity": "",
    "v_granularity": "", "v_head_size": 0, "o_dtype": "", "latent": False,
    "row": "",
}


def problem(**options):
    """The module's text. Raises ValueError on an unknown option."""
    unknown = options.keys() - DEFAULTS.keys()
    if unknown:
        raise ValueError(f"no such option: {', '.join(sorted(unknown))}; "
                         f"expected {', '.join(DEFAULTS)}")
    o = DEFAULTS | options
    heads, ragged = o["heads"], o["query"] == "ragged"
    rows = "?" if ragged else f"?x{o['seq_q'] or '?'}"
    values = o["v_head_size"] or o["head_size"]
    caches = {
        name: text.cache_type(
            o["cache"], o["kv_dtype"] or o["dtype"], o["kv_heads"] or heads, size,
            o["page_size"], scaled, cache_depth=o[name + "_cache_depth"],
            head_dim_offset=o[name + "_head_dim_offset"],
            row=f"<{ROWS.get(o['row'], o['row'])}>" if o["row"] else "")
        for name, size, scaled in (
            ("k", o["head_size"], o["granularity"]),
            ("v", values, o["v_granularity"] or o["granularity"]))}
    lse = (f"memref<{heads}x?xf32>" if ragged else
           f"memref<?x{heads}x{o['seq_q'] or '?'}xf32>")
    said = {name: o[name] for name in (
        "causal", "window_left", "window_right", "scale", "softcap",
        "batch_invariant", "lengths", "schedule")}
    return text.attention_module(
        o["name"], query=text.rows_type(rows, heads, o["head_size"], o["dtype"]),
        out=text.rows_type(rows, heads, values, o["o_dtype"] or o["dtype"]),
        caches=caches, said=text.attributes(**said), ragged=ragged,
        index=o["index"] or "i32", wide=bool(o["index"]),
        lse=lse if o["lse"] else "", sink=o["sink"], latent=o["latent"])


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
