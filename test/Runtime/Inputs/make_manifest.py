#!/usr/bin/env python3
"""Writes the manifest of an attention kernel, or an artifact around it.

  make_manifest.py OUT [key=value ...]   keys of the manifest's "problem";
      chip=NAME, vendor=NAME; ptx=TEXT, cubin=TEXT, hsaco=TEXT
      (sections of OUT.kvbuf); mlir= (one that the mock compiler runs)

With tensor_maps=true the 16-bit tensors come as tensor maps, on a persistent
grid with a counter; instead=NAME adds a kernel without maps that runs in its
place, and alignment=BYTES is what the last kernel needs; dependent=true says that
the first waits by itself for earlier launches;
columns=[FIRST, COUNT] replaces those of K and V in wider rows.
--function=NAME begins another function of that name, with options and sections of
its own. OUT.kvbuf gets an artifact, anything else the manifest itself, which the
mock compiler takes for source. The container is written from its description,
not with the project's code.
"""

import json
import struct
import sys
import zlib


def manifest(tensor_maps=False, instead="", alignment=None, shared=0,
             columns=None, dependent=False, **options):
    p = {"op": "attention", "dtype": "bf16", "heads": 2, "kv_heads": 2,
         "head_size": 64, "query": "dense", "cache": "dense", "causal": False,
         "window_left": -1, "window_right": -1, "softcap": 0.0, "sink": False,
         "lse": False, "scale": 0.125}
    p.update(options)
    heads, kv_heads, size = p["heads"], p["kv_heads"], p["head_size"]
    columns_of = {"k": size, "v": p.get("v_head_size", size)}
    ragged_q = p["query"] == "ragged"
    data, tensors, args = p["dtype"], [], []

    def tensor(name, dtype, shape, access="read", strides=False):
        tensors.append({"name": name, "dtype": dtype, "shape": shape,
                        "access": access})
        args.append({"kind": "pointer", "tensor": name})
        for dim in range(len(shape) - 1 if strides else 0):
            args.append({"kind": "stride", "tensor": name, "dim": dim})

    rows = ["total_q"] if ragged_q else ["batch", "seq_q"]
    tensor("q", data, rows + [heads, size], strides=True)
    if ragged_q:
        tensor("q_offsets", "i32", [{"sum": ["batch", 1]}])
    # Ragged kernels need the longest query for their grid alone.
    sizes = ["batch"] + (["total_q"] if ragged_q else ["seq_q"])
    for name in "k", "v":
        outer = {"dense": ["batch", "seq_k"], "ragged": ["total_k"],
                 "continuous": ["num_blocks", "max_seq"],
                 "paged": ["num_blocks", p.get("page_size")]}[p["cache"]]
        depth = p.get(name + "_cache_depth", columns_of[name])
        tensor(name, data, outer + [kv_heads, depth], strides=True)
        if p["cache"] == "ragged":
            tensor(name + ".offsets", "i32", [{"sum": ["batch", 1]}])
        if p["cache"] == "paged":
            tensor(name + ".table", "i32", ["batch", "pages_per_seq"])
        if p["cache"] == "continuous":
            tensor(name + ".table", "i32", ["batch"])
        if p["cache"] in ("paged", "continuous"):
            tensor(name + ".lengths", "i32", ["batch"])
    sizes += {"dense": ["seq_k"], "ragged": ["total_k"],
              "continuous": ["max_seq"],
              "paged": ["pages_per_seq"]}[p["cache"]]
    if p["sink"]:
        tensor("sink", "f32", [heads])
    tensor("o", p.get("o_dtype", data), rows + [heads, columns_of["v"]], "write",
           strides=True)
    if p["lse"]:
        tensor("lse", "f32", [heads, "total_q"] if ragged_q
               else ["batch", heads, "seq_q"], "write")
    args += [{"kind": "size", "name": name} for name in sizes]
    tiles = {"product": [{"ceildiv": ["seq_q", 128]}, "batch", heads]}
    kernels = [{"entry": "mock", "block": [128, 1, 1], "grid": [tiles, 1, 1],
                "dynamic_shared_bytes": shared, "args": args}]
    if instead:
        kernels.append({**kernels[0], "entry": instead})
    if tensor_maps:
        parts = {name: columns or [p.get(name + "_head_dim_offset", 0), size]
                 for name in ("k", "v") if name + "_cache_depth" in p}
        kernels[0] = with_maps(kernels[0], tensors, parts)
    if instead:
        kernels[0]["instead"] = instead
    if alignment:
        kernels[-1]["alignment"] = alignment
    if dependent:
        kernels[0]["dependent_launch"] = True
    return {"kvbuf": 1, "producer": "test", "name": "mock",
            "target": {"vendor": "nvidia", "chip": "sm_80", "wave": 32},
            "problem": p, "tensors": tensors,
            "kernels": kernels}


def with_maps(kernel, tensors, parts):
    """The kernel with tensor maps in place of pointers and strides; `parts` has
    the columns of tensors that are not covered as a whole."""
    ranks = {t["name"]: len(t["shape"]) for t in tensors
             if t["dtype"] in ("bf16", "f16")}
    args = []
    for arg in kernel["args"]:
        rank = ranks.get(arg.get("tensor"))
        if not rank:
            args.append(arg)
        elif arg["kind"] == "pointer":
            dims = [3, 1, 2, 0] if rank == 4 else [2, 0, 1]
            args.append({"kind": "tensor_map", "tensor": arg["tensor"],
                         "dims": dims, "box": [64, 128, 1, 1][:rank],
                         "swizzle": 128})
            if arg["tensor"] in parts:
                args[-1]["columns"] = parts[arg["tensor"]]
    grid = [{"min": [{"product": ["sms", 2]}, kernel["grid"][0]]}, 1, 1]
    args.append({"kind": "launch_counter"})
    return {**kernel, "args": args, "grid": grid, "requires": "tensor_maps"}


def artifact(text, sections, version=1):
    """The container's bytes; `sections` maps kinds to bytes, or is a list of both,
    where kinds repeat."""
    if isinstance(sections, dict):
        sections = list(sections.items())
    table, data = b"", b""
    offset = 28 + 32 * len(sections) + len(text)
    for kind, content in sections:
        table += kind.encode().ljust(16, b"\0")
        table += struct.pack("<QQ", offset + len(data), len(content))
        data += content
    rest = struct.pack("<II", len(text), len(sections)) + table + text + data
    return (b"KVBUF\0\0" + bytes([version]) +
            struct.pack("<QI", 20 + len(rest), zlib.crc32(rest)) + rest)


def several(functions, name="model"):
    """A manifest of functions, from their names to options of `manifest`; each has
    one section, in their order."""
    return {"kvbuf": 3, "producer": "test", "name": name, "functions": [
        {"manifest": manifest(**options) | {"name": function}, "sections": [number]}
        for number, (function, options) in enumerate(functions.items())]}


def main():
    options, sections, target = {}, {}, {"chip": "sm_80"}
    functions, code = {}, []
    for pair in sys.argv[2:]:
        if pair.startswith("--function="):
            options = functions[pair.split("=", 1)[1]] = {}
            sections = {}
            code.append(sections)
            continue
        key, value = pair.split("=", 1)
        if key in ("ptx", "cubin", "hsaco", "mlir"):
            sections[key] = value.encode() + b"\0"
            continue
        if key in ("chip", "vendor"):
            target[key] = value
            continue
        if key == "peaks":
            target[key] = json.loads(value)
            continue
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    if functions:
        content = several(functions)
        all_code = []
        for function, own in zip(content["functions"], code):
            function["manifest"]["target"].update(target)
            own.setdefault("mlir", json.dumps(function["manifest"]).encode())
            function["sections"] = list(range(len(all_code), len(all_code) + len(own)))
            all_code += own.items()
        text = json.dumps(content).encode()
        image = artifact(text, all_code)
        with open(sys.argv[1], "wb") as out:
            out.write(image if sys.argv[1].endswith(".kvbuf") else text)
        return
    content = manifest(**options)
    content["target"].update(target)
    text = json.dumps(content).encode()
    if "mlir" in sections:
        sections["mlir"] = text
    with open(sys.argv[1], "wb") as out:
        if sys.argv[1].endswith(".kvbuf"):
            text = artifact(text, {"mlir": text, **sections})
        out.write(text)


if __name__ == "__main__":
    main()
